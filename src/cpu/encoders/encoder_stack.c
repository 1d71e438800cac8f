/* SPDX-License-Identifier: Apache-2.0
 * The transformer of the encoder: LayerNorm, causal attention over the whole past, LayerNorm, exact GELU
 * between two matrices; a scale on both branches, no norm at the end. */
#include <math.h>

#include "base/memory.h"
#include "base/minmax.h"
#include "base/threads.h"
#include "cpu/encoders/encoder_parts.h"

enum { MLP_TIME_STEPS = 256, ATTEND_PARTS = 4, ROW_GRAIN = 4 };

struct stack_room {
    const struct encoder_run *run;
    const struct stack_config *shape;
    const struct encoder_layer *layer;
    float *x; /* [n][width] */
    int64_t n;
    float *normed;        /* [n][width] */
    float *q, *k, *v;     /* [n][heads * head] */
    float *mixed;         /* [n][n_heads * head] */
    float *inner;         /* [MLP_TIME_STEPS][inner] */
    float *cosine, *sine; /* [n][head / 2] */
    float *scores;        /* [n_heads * ATTEND_PARTS][n] */
};

static void room_free(struct stack_room *r)
{
    float *all[] = {r->normed, r->q, r->k, r->v, r->mixed, r->inner, r->cosine, r->sine, r->scores};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        memory_free(all[i]);
    }
}

static bool room_init(struct stack_room *r)
{
    const struct stack_config *s = r->shape;
    int q = s->n_heads * s->head, kv = s->n_kv_heads * s->head;
    struct {
        float **at;
        int64_t n, size;
    } parts[] = {
        {&r->normed, r->n, s->width},
        {&r->q, r->n, q},
        {&r->k, r->n, kv},
        {&r->v, r->n, kv},
        {&r->mixed, r->n, q},
        {&r->inner, MLP_TIME_STEPS, s->inner},
        {&r->cosine, r->n, s->head / 2},
        {&r->sine, r->n, s->head / 2},
        {&r->scores, r->n, (int64_t)s->n_heads * ATTEND_PARTS},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        *parts[i].at = memory_new((size_t)parts[i].n, (size_t)parts[i].size * sizeof(float));
        if (!*parts[i].at) {
            return false;
        }
    }
    return true;
}

/* Angles in fp32 with the official roundings: of the frequency, of the product. */
static void make_angles(struct stack_room *r)
{
    int half = r->shape->head / 2;
    for (int i = 0; i < half; i++) {
        float frequency = config_rotary(r->shape, i);
        for (int64_t t = 0; t < r->n; t++) {
            float angle = (float)t * frequency;
            r->cosine[t * half + i] = cosf(angle);
            r->sine[t * half + i] = sinf(angle);
        }
    }
}

static void layer_norm(
    float *y, const float *x, const float *w, const float *bias, int64_t n, float eps)
{
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += (double)x[i];
    }
    double mean = sum / (double)n;
    for (int64_t i = 0; i < n; i++) {
        squares += ((double)x[i] - mean) * ((double)x[i] - mean);
    }
    double scale = 1 / sqrt(squares / (double)n + (double)eps);
    for (int64_t i = 0; i < n; i++) {
        y[i] = (float)(((double)x[i] - mean) * scale) * w[i] + bias[i];
    }
}

struct norm_job {
    struct stack_room *room;
    const float *w, *bias;
};

static void norm_part(void *arg, int part, int n_parts)
{
    const struct norm_job *job = arg;
    const struct stack_room *r = job->room;
    int64_t t0, t1, width = r->shape->width;
    pool_slice(r->n, ROW_GRAIN, part, n_parts, &t0, &t1);
    for (int64_t t = t0; t < t1; t++) {
        layer_norm(
            r->normed + t * width, r->x + t * width, job->w, job->bias, width, r->shape->norm_eps);
    }
}

static void run_norm(struct stack_room *r, const float *w, const float *bias)
{
    struct norm_job job = {r, w, bias};
    pool_run(r->run->pool, norm_part, &job, pool_size(r->run->pool));
}

/* Rotates the halves of every head. */
static void rotate(const struct stack_room *r, float *x, int n_heads, int64_t t)
{
    int half = r->shape->head / 2;
    const float *cosine = r->cosine + t * half, *sine = r->sine + t * half;
    x += t * n_heads * r->shape->head;
    for (int h = 0; h < n_heads; h++, x += r->shape->head) {
        for (int i = 0; i < half; i++) {
            float a = x[i], b = x[i + half];
            x[i] = a * cosine[i] + -b * sine[i];
            x[i + half] = b * cosine[i] + a * sine[i];
        }
    }
}

static void rotate_part(void *arg, int part, int n_parts)
{
    const struct stack_room *r = arg;
    int64_t t0, t1;
    pool_slice(r->n, ROW_GRAIN, part, n_parts, &t0, &t1);
    for (int64_t t = t0; t < t1; t++) {
        rotate(r, r->q, r->shape->n_heads, t);
        rotate(r, r->k, r->shape->n_kv_heads, t);
    }
}

/* One head, and every n-th query: later ones see more. */
static void attend_part(void *arg, int part, int n_parts)
{
    const struct stack_room *r = arg;
    const struct stack_config *s = r->shape;
    int h = part % s->n_heads, kv = h / (s->n_heads / s->n_kv_heads), step = n_parts / s->n_heads;
    int64_t q_stride = (int64_t)s->n_heads * s->head, kv_stride = (int64_t)s->n_kv_heads * s->head;
    struct kern_attend a = {r->k + kv * s->head, r->v + kv * s->head, kv_stride, r->n, 0, 0, s->head,
        1.0f / sqrtf((float)s->head)};
    for (int64_t t = part / s->n_heads; t < r->n; t += step) {
        a.n_keys = t + 1;
        int64_t at = t * q_stride + h * s->head;
        r->run->kern->attend(&a, r->mixed + at, r->q + at, r->scores + part * r->n);
    }
}

struct add_job {
    const struct stack_room *room;
    float *x;
    const float *y, *scale;
    int64_t n;
};

/* x += scale * y */
static void add_part(void *arg, int part, int n_parts)
{
    const struct add_job *job = arg;
    int64_t t0, t1, width = job->room->shape->width;
    pool_slice(job->n, ROW_GRAIN, part, n_parts, &t0, &t1);
    for (int64_t t = t0; t < t1; t++) {
        for (int64_t i = 0; i < width; i++) {
            job->x[t * width + i] += job->scale[i] * job->y[t * width + i];
        }
    }
}

static void run_attention(struct stack_room *r)
{
    const struct encoder_layer *l = r->layer;
    const struct encoder_run *run = r->run;
    int width = r->shape->width;
    struct kern_product products[] = {
        {r->q, l->q.rows, &l->q}, {r->k, l->k.rows, &l->k}, {r->v, l->v.rows, &l->v}};
    run_norm(r, l->input_norm, l->input_norm_bias);
    kern_products(run->kern, run->pool, products, 3, r->normed, width, (int)r->n, NULL);
    pool_run(run->pool, rotate_part, r, pool_size(run->pool));
    pool_run(run->pool, attend_part, r, r->shape->n_heads * ATTEND_PARTS);
    kern_matmul(run->kern, run->pool, r->normed, width, &l->o, r->mixed, l->q.rows, (int)r->n, NULL);
    struct add_job add = {r, r->x, r->normed, l->attention_scale, r->n};
    pool_run(run->pool, add_part, &add, pool_size(run->pool));
}

struct gelu_job {
    const struct stack_room *room;
    int64_t n;
};

static void gelu_part(void *arg, int part, int n_parts)
{
    const struct gelu_job *job = arg;
    int64_t begin, end;
    pool_slice(job->n, 64, part, n_parts, &begin, &end);
    job->room->run->kern->gelu(job->room->inner + begin, end - begin);
}

static void run_mlp(struct stack_room *r)
{
    const struct encoder_layer *l = r->layer;
    const struct encoder_run *run = r->run;
    int64_t width = r->shape->width, inner = r->shape->inner;
    run_norm(r, l->post_norm, l->post_norm_bias);
    for (int64_t t = 0; t < r->n; t += MLP_TIME_STEPS) {
        int n = (int)min(r->n - t, MLP_TIME_STEPS);
        float *y = r->normed + t * width;
        struct gelu_job gelu = {r, n * inner};
        struct add_job add = {r, r->x + t * width, y, l->mlp_scale, n};
        kern_matmul(run->kern, run->pool, r->inner, inner, &l->fc1, y, width, n, NULL);
        pool_run(run->pool, gelu_part, &gelu, pool_size(run->pool));
        kern_matmul(run->kern, run->pool, y, width, &l->fc2, r->inner, inner, n, NULL);
        pool_run(run->pool, add_part, &add, pool_size(run->pool));
    }
}

utter_status encoder_stack(const struct encoder_run *run, float *x, int64_t n)
{
    struct stack_room r = {
        .run = run, .shape = &run->model->config->codec.encoder.stack, .x = x, .n = n};
    utter_status status = room_init(&r) ? UTTER_OK : error_memory(run->error, "the encoder");
    if (!status) {
        make_angles(&r);
    }
    for (int i = 0; !status && i < r.shape->n_layers; i++) {
        r.layer = &run->model->encoder.layers[i];
        run_attention(&r);
        run_mlp(&r);
        status = encoder_report(run, 0.75 + 0.2 * (i + 1) / r.shape->n_layers);
    }
    room_free(&r);
    return status;
}
