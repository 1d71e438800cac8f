/* SPDX-License-Identifier: Apache-2.0
 * One pass of some columns through all layers of a transformer stack. Comes in: x, where each column
 * stands, and its cache. Goes out: x after the last layer; the caches hold the columns' keys and values.
 * Work is spread over rows (products), columns (positions) and kv heads (attention); each number is
 * computed whole by one thread, so spreading never changes it. */
#include "cpu/stack/stack.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/minmax.h"
#include "base/threads.h"
#include "cpu/kernels/vector.h"

struct cpu_scratch {
    int n_columns, n_parts;
    int64_t n_keys;
    uint64_t bytes;
    float *normed;        /* [n_columns][width] */
    float *q;             /* [n_columns][n_heads * head] */
    float *k, *v;         /* [n_columns][n_kv_heads * head] */
    float *mixed;         /* [n_columns][n_heads * head] */
    float *out;           /* [n_columns][width] */
    float *gate, *up;     /* [n_columns][inner] */
    float *cosine, *sine; /* [n_columns][head / 2] */
    float *scores;        /* [n_parts][n_keys] */
    struct kern_rounded rounded;
};

struct cpu_scratch *cpu_scratch_new(const struct stack_config *const *shapes, int n_shapes,
    int n_columns, int64_t n_keys, int n_threads)
{
    int width = 1, inner = 1, q = 1, kv = 1, half = 1;
    for (int i = 0; i < n_shapes; i++) {
        width = max(width, shapes[i]->width);
        inner = max(inner, shapes[i]->inner);
        q = max(q, shapes[i]->n_heads * shapes[i]->head);
        kv = max(kv, shapes[i]->n_kv_heads * shapes[i]->head);
        half = max(half, shapes[i]->head / 2);
    }
    struct cpu_scratch *s = memory_new(1, sizeof *s);
    if (!s) {
        return NULL;
    }
    s->n_columns = n_columns;
    s->n_parts = n_threads * 4;
    s->n_keys = n_keys;
    struct {
        float **at;
        int64_t n, size;
    } parts[] = {
        {&s->normed, n_columns, width},
        {&s->q, n_columns, q},
        {&s->k, n_columns, kv},
        {&s->v, n_columns, kv},
        {&s->mixed, n_columns, q},
        {&s->out, n_columns, width},
        {&s->gate, n_columns, inner},
        {&s->up, n_columns, inner},
        {&s->cosine, n_columns, half},
        {&s->sine, n_columns, half},
        {&s->scores, s->n_parts, n_keys},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        s->bytes += (uint64_t)(parts[i].n * parts[i].size) * sizeof(float);
        *parts[i].at = memory_new((size_t)parts[i].n, (size_t)parts[i].size * sizeof(float));
        if (!*parts[i].at) {
            cpu_scratch_free(s);
            return NULL;
        }
    }
    int64_t n_k = max(max(width, inner), q);
    if (!kern_rounded_init(&s->rounded, n_k, n_columns)) {
        cpu_scratch_free(s);
        return NULL;
    }
    s->bytes += (uint64_t)(n_columns * pack_groups(n_k)) * (PACK_GROUP * 3 + 8);
    return s;
}

struct kern_rounded *cpu_scratch_rounded(struct cpu_scratch *s)
{
    return &s->rounded;
}

void cpu_scratch_free(struct cpu_scratch *s)
{
    if (!s) {
        return;
    }
    float *const parts[] = {
        s->normed, s->q, s->k, s->v, s->mixed, s->out, s->gate, s->up, s->cosine, s->sine, s->scores};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        memory_free(parts[i]);
    }
    kern_rounded_fini(&s->rounded);
    memory_free(s);
}

uint64_t cpu_scratch_bytes(const struct cpu_scratch *s)
{
    return s->bytes;
}

utter_status cpu_stack_init(struct cpu_stack *stack, const struct stack_config *shape,
    const struct stack_weights *weights, const struct kern *kern, struct pool *pool, utter_error *error)
{
    int half = shape->head / 2;
    *stack = (struct cpu_stack){shape, weights, kern, pool, memory_new((size_t)half, sizeof(float))};
    if (!stack->inv_freq) {
        return error_memory(error, "rotary frequencies");
    }
    for (int i = 0; i < half; i++) {
        stack->inv_freq[i] = config_rotary(shape, i);
    }
    return UTTER_OK;
}

void cpu_stack_fini(struct cpu_stack *stack)
{
    memory_free(stack->inv_freq);
    stack->inv_freq = NULL;
}

/* ---- One layer ---- */

struct pass {
    const struct cpu_stack *stack;
    const struct layer_weights *weights; /* of this layer */
    int i_layer, n_parts;
    float *x;
    const struct cpu_column *columns;
    int n;
    struct cpu_scratch *scratch;
};

/* Runs fn over n_parts parts; one part runs here, without waking anyone. */
static void spread(struct pass *p, void (*fn)(void *, int, int), int n_parts)
{
    p->n_parts = n_parts;
    if (n_parts <= 1) {
        fn(p, 0, 1);
    } else {
        pool_run(p->stack->pool, fn, p, n_parts);
    }
}

/* Normalises and rotates the heads of one column's queries or keys. */
static void place_heads(const struct pass *p, int i_column, float *x, int n_heads, const float *norm)
{
    const struct stack_config *shape = p->stack->shape;
    const struct kern *kern = p->stack->kern;
    int head = shape->head, half = head / 2;
    for (int h = 0; h < n_heads; h++, x += head) {
        if (norm) {
            kern->norm(x, x, norm, head, shape->norm_eps);
        }
        kern->rotate(x, p->scratch->cosine + (int64_t)i_column * half,
            p->scratch->sine + (int64_t)i_column * half, half);
    }
}

static float *cache_slot(const struct pass *p, float *of, const struct cpu_column *column, int64_t slot)
{
    int64_t kv = (int64_t)p->stack->shape->n_kv_heads * p->stack->shape->head;
    return of + (p->i_layer * column->cache->capacity + slot) * kv;
}

/* Queries ready for attention, keys and values into the caches. */
static void place_columns(void *arg, int part, int n_parts)
{
    const struct pass *p = arg;
    const struct stack_config *shape = p->stack->shape;
    int64_t q = (int64_t)shape->n_heads * shape->head, kv = (int64_t)shape->n_kv_heads * shape->head,
            begin, end;
    pool_slice(p->n, 1, part, n_parts, &begin, &end);
    for (int c = (int)begin; c < end; c++) {
        const struct cpu_column *column = &p->columns[c];
        int64_t slot = column->position % column->cache->capacity;
        float *k = p->scratch->k + c * kv;
        place_heads(p, c, p->scratch->q + c * q, shape->n_heads, p->weights->q_norm);
        place_heads(p, c, k, shape->n_kv_heads, p->weights->k_norm);
        memcpy(cache_slot(p, column->cache->keys, column, slot), k, (size_t)kv * sizeof *k);
        memcpy(cache_slot(p, column->cache->values, column, slot), p->scratch->v + c * kv,
            (size_t)kv * sizeof *k);
    }
}

/* The number of keys that a column sees, itself included. */
static int64_t visible_keys(const struct pass *p, const struct cpu_column *column)
{
    int64_t n = column->position + 1, window = p->stack->shape->window;
    return window && n > window ? window : n;
}

/* Tasks are (kv head, column): the query heads that share a kv head run one after the other. */
static void attend_tasks(void *arg, int part, int n_parts)
{
    const struct pass *p = arg;
    const struct stack_config *shape = p->stack->shape;
    int head = shape->head, group = shape->n_heads / shape->n_kv_heads;
    int64_t q = (int64_t)shape->n_heads * head, begin, end;
    float *scores = p->scratch->scores + part * p->scratch->n_keys;
    pool_slice((int64_t)p->n * shape->n_kv_heads, 1, part, n_parts, &begin, &end);
    for (int64_t task = begin; task < end; task++) {
        int c = (int)(task % p->n), kv_head = (int)(task / p->n);
        const struct cpu_column *column = &p->columns[c];
        int64_t n_keys = visible_keys(p, column), capacity = column->cache->capacity;
        struct kern_attend attend = {
            .keys = cache_slot(p, column->cache->keys, column, 0) + kv_head * head,
            .values = cache_slot(p, column->cache->values, column, 0) + kv_head * head,
            .stride = (int64_t)shape->n_kv_heads * head,
            .capacity = capacity,
            .first = (column->position + 1 - n_keys) % capacity,
            .n_keys = n_keys,
            .head = head,
            .scale = (float)(1.0 / sqrt((double)head)),
        };
        for (int h = kv_head * group; h < (kv_head + 1) * group; h++) {
            p->stack->kern->attend(&attend, p->scratch->mixed + c * q + h * head,
                p->scratch->q + c * q + h * head, scores);
        }
    }
}

int cpu_look_rows(const struct cpu_look *look, int64_t position)
{
    int64_t end = min(look->end, position + 1);
    return end > look->begin ? (int)(end - look->begin) : 0;
}

static float dot(const float *a, const float *b, int n)
{
    vf sum = {0};
    float rest = 0;
    int i = 0;
    for (; i + KERN_LANES <= n; i += KERN_LANES) {
        sum += vf_load(a + i) * vf_load(b + i);
    }
    for (; i < n; i++) {
        rest += a[i] * b[i];
    }
    return vf_sum(sum) + rest;
}

/* What one head of a column that looks scores each row; keys and queries are in their places. */
static void look_with(const struct pass *p, int c, int i_head)
{
    const struct stack_config *shape = p->stack->shape;
    const struct cpu_column *column = &p->columns[c];
    const struct cpu_look *look = column->look;
    int head = look->heads[i_head].head, n = cpu_look_rows(look, column->position);
    int64_t kv = (int64_t)shape->n_kv_heads * shape->head;
    const float *q = p->scratch->q + ((int64_t)c * shape->n_heads + head) * shape->head;
    const float *k = cache_slot(p, column->cache->keys, column, look->begin) +
                     (int64_t)(head / (shape->n_heads / shape->n_kv_heads)) * shape->head;
    float scale = (float)(1.0 / sqrt((double)shape->head));
    for (int i = 0; i < n; i++) {
        look->scores[(int64_t)i_head * n + i] = scale * dot(q, k + i * kv, shape->head);
    }
}

static void look_columns(const struct pass *p)
{
    for (int c = 0; c < p->n; c++) {
        const struct cpu_look *look = p->columns[c].look;
        for (int h = 0; look && h < look->n_heads; h++) {
            if (look->heads[h].layer == p->i_layer) {
                look_with(p, c, h);
            }
        }
    }
}

/* x += scale * add, or x += add without a scale. */
static void add_columns(const struct pass *p, const float *add, const float *scale)
{
    int width = p->stack->shape->width;
    for (int c = 0; c < p->n; c++) {
        float *x = p->x + (int64_t)c * width;
        const float *a = add + (int64_t)c * width;
        int i = 0;
        for (; i + KERN_LANES <= width; i += KERN_LANES) {
            vf part = vf_load(a + i);
            vf_store(x + i, vf_load(x + i) + (scale ? vf_load(scale + i) * part : part));
        }
        for (; i < width; i++) {
            x[i] += scale ? scale[i] * a[i] : a[i];
        }
    }
}

static void norm_columns(const struct pass *p, const float *weight)
{
    int64_t width = p->stack->shape->width;
    for (int c = 0; c < p->n; c++) {
        p->stack->kern->norm(
            p->scratch->normed + c * width, p->x + c * width, weight, width, p->stack->shape->norm_eps);
    }
}

static void run_attention(struct pass *p)
{
    const struct stack_config *shape = p->stack->shape;
    const struct kern *kern = p->stack->kern;
    struct pool *pool = p->stack->pool;
    struct cpu_scratch *s = p->scratch;
    int64_t q = (int64_t)shape->n_heads * shape->head, kv = (int64_t)shape->n_kv_heads * shape->head,
            n_keys = 0;
    norm_columns(p, p->weights->input_norm);
    struct kern_product products[] = {
        {s->q, q, &p->weights->q}, {s->k, kv, &p->weights->k}, {s->v, kv, &p->weights->v}};
    kern_products(kern, pool, products, 3, s->normed, shape->width, p->n, &s->rounded);
    spread(p, place_columns, min(p->n / 4, s->n_parts));
    look_columns(p);
    for (int c = 0; c < p->n; c++) {
        n_keys += visible_keys(p, &p->columns[c]);
    }
    int64_t parts = n_keys * q >>
                    13; /* enough keys, which come from far, for a part to be worth a thread's while */
    int64_t most = (int64_t)p->n * shape->n_kv_heads;
    most = min(most, s->n_parts);
    spread(p, attend_tasks, (int)min(parts, most));
    kern_matmul(kern, pool, s->out, shape->width, &p->weights->o, s->mixed, q, p->n, &s->rounded);
    add_columns(p, s->out, p->weights->attention_scale);
}

static void run_mlp(struct pass *p)
{
    const struct stack_config *shape = p->stack->shape;
    struct cpu_scratch *s = p->scratch;
    norm_columns(p, p->weights->post_norm);
    struct kern_product products[] = {
        {s->gate, shape->inner, &p->weights->gate}, {s->up, shape->inner, &p->weights->up}};
    kern_gated(p->stack->kern, p->stack->pool, products, s->normed, shape->width, p->n, &s->rounded);
    kern_matmul(p->stack->kern, p->stack->pool, s->out, shape->width, &p->weights->down, s->gate,
        shape->inner, p->n, &s->rounded);
    add_columns(p, s->out, p->weights->mlp_scale);
}

void cpu_stack_run(const struct cpu_stack *stack, float *x, const struct cpu_column *columns, int n,
    struct cpu_scratch *scratch, const struct cpu_tap *tap, const char *tap_name)
{
    const struct stack_config *shape = stack->shape;
    int half = shape->head / 2;
    for (int c = 0; c < n; c++) {
        for (int i = 0; i < half; i++) {
            float angle = (float)columns[c].position * stack->inv_freq[i];
            scratch->cosine[(int64_t)c * half + i] = cosf(angle);
            scratch->sine[(int64_t)c * half + i] = sinf(angle);
        }
    }
    struct pass p = {.stack = stack, .x = x, .columns = columns, .n = n, .scratch = scratch};
    for (p.i_layer = 0; p.i_layer < shape->n_layers; p.i_layer++) {
        p.weights = &stack->weights->layers[p.i_layer];
        run_attention(&p);
        run_mlp(&p);
        if (tap && tap->fn && tap_name) {
            tap->fn(tap->user, tap_name, p.i_layer, x, n, shape->width);
        }
    }
}
