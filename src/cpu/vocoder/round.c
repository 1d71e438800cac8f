/* SPDX-License-Identifier: Apache-2.0
 * The vocoder's weights beside packed ones of the talker, made once from the model's when a backend is opened:
 * matrices in 16 bits (those that a file has so stay there), convolutions in integers, row by row. The pages of
 * the file that they came from are given back. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/minmax.h"
#include "base/numeric.h"
#include "cpu/vocoder/vocoder_integer.h"

/* ---- Matrices ---- */

struct matrix_job {
    const struct weight *from;
    struct weight *to;
    int ratio; /* 0: `from` has the rows; else it is [cols][rows / ratio][ratio], and rows go by place, then output */
};

static void narrow_row(const struct matrix_job *job, int64_t row)
{
    int64_t cols = job->to->cols, step = 1;
    const float *w = (const float *)job->from->data + row * cols;
    uint16_t *to = (uint16_t *)job->to->data + row * cols;
    if (job->ratio) {
        int64_t n_out = job->to->rows / job->ratio;
        w = (const float *)job->from->data + row % n_out * job->ratio + row / n_out;
        step = job->to->rows;
    }
    for (int64_t c = 0; c < cols; c++, w += step) {
        to[c] = job->to->type == DTYPE_F16 ? f16_from_float(*w) : bf16_from_float(*w);
    }
}

static void matrix_part(void *arg, int part, int n_parts)
{
    const struct matrix_job *job = arg;
    int64_t begin, end;
    pool_slice(job->to->rows, 1, part, n_parts, &begin, &end);
    for (int64_t row = begin; row < end; row++) {
        narrow_row(job, row);
    }
}

/* Every large matrix, in the order of its use; fn is called with where it lies and where it goes. */
typedef void matrix_fn(struct cpu_vocoder *v, const struct weight *from, struct weight *to, int ratio);

static void each_matrix(struct cpu_vocoder *v, matrix_fn *fn)
{
    const struct vocoder_weights *m = &v->model->vocoder;
    struct vocoder_weights *w = &v->integer->weights;
    fn(v, &m->stack_in.w, &w->stack_in.w, 0);
    for (int i = 0; i < v->config->stack.n_layers; i++) {
        const struct layer_weights *from = &m->stack.layers[i];
        struct layer_weights *to = &v->integer->layers[i];
        fn(v, &from->q, &to->q, 0);
        fn(v, &from->k, &to->k, 0);
        fn(v, &from->v, &to->v, 0);
        fn(v, &from->o, &to->o, 0);
        fn(v, &from->gate, &to->gate, 0);
        fn(v, &from->up, &to->up, 0);
        fn(v, &from->down, &to->down, 0);
    }
    fn(v, &m->stack_out.w, &w->stack_out.w, 0);
    for (int i = 0; i < v->config->n_ratios; i++) {
        fn(v, &m->upsample[i].up.w, &v->integer->up[i], v->config->ratios[i]);
        fn(v, &m->upsample[i].widen.w, &w->upsample[i].widen.w, 0);
        fn(v, &m->upsample[i].narrow.w, &w->upsample[i].narrow.w, 0);
    }
}

/* f16 for what it can hold, which is every matrix that was trained; else bf16. */
static enum dtype narrow_type(const struct weight *w)
{
    return values_fit_f16(w->data, w->rows * w->cols) ? DTYPE_F16 : DTYPE_BF16;
}

static void count_matrix(struct cpu_vocoder *v, const struct weight *from, struct weight *to, int ratio)
{
    if (from->type == DTYPE_F16) { /* as the file has it */
        *to = *from;
        return;
    }
    *to = (struct weight){NULL, DTYPE_F16, from->rows, from->cols};
    if (ratio) {
        to->rows = from->cols, to->cols = from->rows;
    }
    v->integer->matrix_bytes += matrix_bytes(to);
}

/* Behind what `matrix_bytes` counts. */
static void narrow_matrix(
    struct cpu_vocoder *v, const struct weight *from, struct weight *to, int ratio)
{
    struct vocoder_integer *w = v->integer;
    struct matrix_job job = {from, to, ratio};
    if (from->type == DTYPE_F16) {
        return;
    }
    to->type = narrow_type(from);
    to->data = w->matrices + w->matrix_bytes;
    w->matrix_bytes += matrix_bytes(to);
    pool_run(v->pool, matrix_part, &job, v->n_parts);
    tensor_set_rest(v->model->codec_tensors, from->data, matrix_bytes(from));
}

utter_status vocoder_integer_new(struct cpu_vocoder *v, utter_error *error)
{
    const struct codec_config *d = v->config;
    struct vocoder_integer *w = v->integer = memory_new(1, sizeof *w);
    if (!w || !(w->layers = memory_new((size_t)d->stack.n_layers, sizeof *w->layers))) {
        return error_memory(error, "the vocoder's weights");
    }
    w->weights = v->model->vocoder;
    memcpy(w->layers, w->weights.stack.layers, (size_t)d->stack.n_layers * sizeof *w->layers);
    w->weights.stack.layers = w->layers;
    each_matrix(v, count_matrix);
    w->matrices = memory_new(w->matrix_bytes, 1);
    if (!w->matrices) {
        return error_memory(error, "the vocoder's weights");
    }
    w->matrix_bytes = 0;
    each_matrix(v, narrow_matrix);
    v->weights = &w->weights;
    return UTTER_OK;
}

void vocoder_integer_free(struct cpu_vocoder *v)
{
    if (v->integer) {
        memory_free(v->integer->matrices);
        memory_free(v->integer->layers);
        memory_free(v->integer);
    }
}

/* ---- Convolutions ---- */

struct conv_job {
    struct integer_conv *to;
    const float *w, *bias;
    int n_in, n_out, rate; /* rate 0: w is [out][in][taps], else [in][out][2 * rate] */
    float *rows;           /* [n_parts][rate][KERN_INTEGER_ROWS][n_in * taps] */
    bool by_time;          /* kern.integer_by_time */
};

/* KERN_INTEGER_ROWS outputs from o on, at all places: rows[place][output][n_in][taps]; zeros where there is none. */
static void fetch_rows(const struct conv_job *job, int o, float *rows)
{
    const struct integer_conv *c = job->to;
    int64_t n = (int64_t)job->n_in * c->taps, rate = job->rate;
    int n_o = min(job->n_out - o, KERN_INTEGER_ROWS);
    memset(rows, 0, (size_t)(KERN_INTEGER_ROWS * n * (rate ? rate : 1)) * sizeof *rows);
    if (!rate) {
        if (n_o > 0) {
            memcpy(rows, job->w + o * n, (size_t)(n_o * n) * sizeof *rows);
        }
        return;
    }
    for (int64_t i = 0; i < job->n_in; i++) { /* the line of an input and an output holds all places */
        for (int64_t r = 0; r < n_o; r++) {
            const float *w = job->w + (i * job->n_out + o + r) * 2 * rate;
            for (int64_t place = 0; place < rate; place++) {
                float *to = rows + (place * KERN_INTEGER_ROWS + r) * n + i * 2;
                to[0] = w[rate + place]; /* what the time step before gives */
                to[1] = w[place];
            }
        }
    }
}

/* The largest scale that some rule asks for: no code beyond 16 bits, no sum of a group and a tap beyond 32. */
static float scale_of(const float *row, int n_in, int taps)
{
    float largest = 0, most = 0;
    for (int i = 0; i < n_in; i += KERN_INTEGER_GROUP) {
        for (int k = 0; k < taps; k++) {
            float sum = 0;
            for (int c = i; c < n_in && c < i + KERN_INTEGER_GROUP; c++) {
                float size = fabsf(row[c * taps + k]);
                largest = size > largest || size != size ? size : largest;
                sum += size;
            }
            most = max(sum, most);
        }
    }
    /* Rounding adds half a step for each of a group; sums of floats are off by less. */
    float scale = largest / 32767.0f, other = most / (KERN_INTEGER_MOST - KERN_INTEGER_GROUP);
    return scale != scale || scale > other ? scale : other;
}

/* One output's row [n_in * taps] -> its weights as output o, and their scale. */
static void round_row(const struct conv_job *job, const float *row, int64_t o)
{
    const struct integer_conv *c = job->to;
    enum { PAIRS = KERN_INTEGER_GROUP / 2 };
    uint16_t *to = (uint16_t *)(void *)c->w;
    int step =
        2 * (job->by_time ? KERN_INTEGER_GROUP : KERN_INTEGER_ROWS); /* from a pair to the next */
    float scale = job->by_time ? 1 : scale_of(row, job->n_in, c->taps);
    float inverse = isfinite(scale) && scale > 0 ? 1 / scale : 0;
    c->scales[o] = isfinite(scale) ? scale : NAN;
    for (int g = 0; g < c->n_in_groups; g++) {
        for (int k = 0; k < c->taps; k++) {
            int i0 = g * KERN_INTEGER_GROUP;
            uint16_t *at = to + kern_integer_place(job->by_time, c->n_in_groups, c->taps, o, i0, k);
            for (int i = 0; i < KERN_INTEGER_GROUP; i++, at += i % 2 ? 1 : step - 1) {
                int channel = i0 + (job->by_time ? i / 2 + i % 2 * PAIRS : i);
                float w = channel < job->n_in ? row[channel * c->taps + k] : 0;
                *at = job->by_time  ? bf16_from_float(w)
                      : inverse > 0 ? (uint16_t)(lrintf(w * inverse) & 0xffff)
                                    : 0;
            }
        }
    }
}

static void conv_part(void *arg, int part, int n_parts)
{
    const struct conv_job *job = arg;
    const struct integer_conv *c = job->to;
    int64_t begin, end, n_places = job->rate ? job->rate : 1;
    int64_t place_floats = (int64_t)KERN_INTEGER_ROWS * job->n_in * c->taps;
    enum { TILES = KERN_INTEGER_GROUP / KERN_INTEGER_ROWS };
    float *rows = job->rows + part * n_places * place_floats;
    pool_slice((int64_t)c->n_out_groups * TILES, 1, part, n_parts, &begin, &end);
    for (int64_t tile = begin; tile < end; tile++) {
        int o = (int)tile * KERN_INTEGER_ROWS;
        fetch_rows(job, o, rows);
        for (int64_t place = 0; place < n_places; place++) {
            int64_t at = (tile / TILES * n_places + place) * TILES + tile % TILES;
            for (int r = 0; r < KERN_INTEGER_ROWS; r++) {
                round_row(job, rows + place * place_floats + (int64_t)r * job->n_in * c->taps,
                    at * KERN_INTEGER_ROWS + r);
                c->bias[at * KERN_INTEGER_ROWS + r] =
                    job->bias && o + r < job->n_out ? job->bias[o + r] : 0;
            }
        }
    }
}

static utter_status round_conv(const struct cpu_vocoder *v, struct integer_conv *to,
    const struct conv_weights *from, int n_in, int n_out, int rate, utter_error *error)
{
    struct conv_job job = {
        to, from->w.data, from->bias, n_in, n_out, rate, NULL, v->kern->integer_by_time};
    size_t floats = (size_t)(rate ? rate : 1) * KERN_INTEGER_ROWS * (size_t)n_in * (size_t)to->taps;
    job.rows = memory_new((size_t)v->n_parts * floats, sizeof *job.rows);
    if (!job.rows) {
        return error_memory(error, "the vocoder's weights");
    }
    pool_run(v->pool, conv_part, &job, v->n_parts);
    tensor_set_rest(v->model->codec_tensors, from->w.data, matrix_bytes(&from->w));
    memory_free(job.rows);
    return UTTER_OK;
}

static utter_status round_block(struct cpu_vocoder *v, int i, utter_error *error)
{
    const struct block_weights *from = &v->model->vocoder.blocks[i];
    struct integer_block *b = &v->integer->blocks[i];
    int n_in = v->config->decoder_width >> i, n_out = n_in / 2;
    vocoder_snake_fill(&b->snake, &from->snake, n_in);
    utter_status status = round_conv(v, &b->up, &from->up, n_in, n_out, b->rate, error);
    for (int k = 0; !status && k < VOCODER_UNITS; k++) {
        const struct unit_weights *u = &from->units[k];
        vocoder_snake_fill(&b->units[k].snake1, &u->snake1, n_out);
        vocoder_snake_fill(&b->units[k].snake2, &u->snake2, n_out);
        status = round_conv(v, &b->units[k].conv1, &u->conv1, n_out, n_out, 0, error);
        if (!status) {
            status = round_conv(v, &b->units[k].conv2, &u->conv2, n_out, n_out, 0, error);
        }
    }
    return status;
}

utter_status vocoder_integer_round(struct cpu_vocoder *v, utter_error *error)
{
    const struct codec_config *d = v->config;
    const struct vocoder_weights *from = &v->model->vocoder;
    utter_status status =
        round_conv(v, &v->integer->first, &from->first, d->latent, d->decoder_width, 0, error);
    for (int i = 0; !status && i < d->n_rates; i++) {
        status = round_block(v, i, error);
    }
    vocoder_snake_fill(&v->integer->last_snake, &from->last_snake, d->decoder_width >> d->n_rates);
    return status;
}
