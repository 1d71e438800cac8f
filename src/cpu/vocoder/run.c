/* SPDX-License-Identifier: Apache-2.0
 * The vocoder's memory and one run of it. Owns: the prepared weights and the scratch (struct cpu_vocoder),
 * the state of a stream (struct cpu_vocoder_lane). Weights are used where the model has them. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/minmax.h"
#include "cpu/vocoder/vocoder_integer.h"

/* ---- Parts that all files use ---- */

float *vocoder_carve(struct vocoder_carver *c, int64_t n)
{
    float *at = c->base ? c->base + c->n : NULL;
    c->n += ((size_t)n + 15) / 16 * 16;
    return at;
}

int64_t vocoder_stride(int64_t n)
{
    return ((n + KERN_PAD + 15) / 16 | 1) * 16;
}

void vocoder_spread(const struct cpu_vocoder *v, void (*fn)(void *, int, int), void *arg, int64_t n,
    int grain, int64_t work)
{
    const int64_t least_work = 1 << 16; /* below, waking a thread costs more than it gives */
    int64_t n_parts = (n + grain - 1) / grain, worth = work / least_work;
    n_parts = min(n_parts, worth);
    n_parts = min(n_parts, v->n_parts);
    if (n_parts <= 1) {
        fn(arg, 0, 1);
    } else {
        pool_run(v->pool, fn, arg, (int)n_parts);
    }
}

struct kern_conv vocoder_conv_of(const struct vocoder_conv *conv, const float *x, int64_t x_stride)
{
    return (struct kern_conv){.x = x,
        .x_stride = x_stride,
        .w = conv->w,
        .bias = conv->bias,
        .n_in = conv->n_in,
        .taps = conv->taps,
        .dilation = conv->dilation};
}

void vocoder_transpose(float *y, const float *x, int64_t x_stride, int64_t n_rows, int64_t n_cols)
{
    for (int64_t t = 0; t < n_cols; t++) {
        for (int64_t c = 0; c < n_rows; c++) {
            y[t * n_rows + c] = x[c * x_stride + t];
        }
    }
}

void vocoder_tap_rows(struct cpu_vocoder *v, const struct cpu_tap *tap, const char *name, int index,
    const float *rows, int64_t stride, int64_t n_time_steps, int64_t n_channels)
{
    if (tap->fn) {
        vocoder_transpose(v->tapped, rows, stride, n_channels, n_time_steps);
        tap->fn(tap->user, name, index, v->tapped, n_time_steps, n_channels);
    }
}

void vocoder_join_past(float *row, float *past, int64_t n_past, int64_t n)
{
    if (n_past) {
        memcpy(row, past, (size_t)n_past * sizeof *row);
        memcpy(past, row + n, (size_t)n_past * sizeof *row);
    }
}

/* ---- Prepared weights ---- */

static struct vocoder_conv take_conv(const struct conv_weights *w, int n_in, int dilation)
{
    return (struct vocoder_conv){.w = w->w.data,
        .bias = w->bias,
        .n_in = n_in,
        .n_out = (int)w->w.rows,
        .taps = (int)(w->w.cols / n_in),
        .dilation = dilation};
}

void vocoder_snake_fill(struct vocoder_snake *s, const struct snake_weights *w, int n)
{
    for (int i = 0; i < n; i++) {
        s->a[i] = expf(w->alpha[i]);
        s->b[i] = 1.0f / (expf(w->beta[i]) + 1e-9f);
    }
}

static struct vocoder_snake take_snake(struct vocoder_carver *c, const struct snake_weights *w, int n)
{
    struct vocoder_snake s = {vocoder_carve(c, n), vocoder_carve(c, n)};
    if (s.a) {
        vocoder_snake_fill(&s, w, n);
    }
    return s;
}

static void take_block(struct cpu_vocoder *v, struct vocoder_carver *c, int i)
{
    const struct block_weights *w = &v->model->vocoder.blocks[i];
    struct vocoder_block *b = &v->blocks[i];
    b->n_in = v->config->decoder_width >> i;
    b->n_out = b->n_in / 2;
    b->rate = v->config->rates[i];
    b->snake = take_snake(c, &w->snake, b->n_in);
    b->up_w = w->up.w.data;
    b->up_bias = w->up.bias;
    for (int k = 0, dilation = 1; k < VOCODER_UNITS; k++, dilation *= 3) {
        const struct unit_weights *u = &w->units[k];
        b->units[k].snake1 = take_snake(c, &u->snake1, b->n_out);
        b->units[k].conv1 = take_conv(&u->conv1, b->n_out, dilation);
        b->units[k].snake2 = take_snake(c, &u->snake2, b->n_out);
        b->units[k].conv2 = take_conv(&u->conv2, b->n_out, 1);
    }
}

/* Everything in v->memory: with c->base NULL it is only counted. */
static void lay_out(struct cpu_vocoder *v, struct vocoder_carver *c)
{
    const struct codec_config *d = v->config;
    const struct vocoder_weights *w = &v->model->vocoder;
    int channels = d->decoder_width >> d->n_rates, most_taps = 1;
    v->pre_conv = take_conv(&w->pre_conv, d->codebook_dim, 1);
    v->first = take_conv(&w->first, d->latent, 1);
    v->last = take_conv(&w->last, channels, 1);
    v->last_snake = take_snake(c, &w->last_snake, channels);
    for (int i = 0; i < d->n_ratios; i++) {
        v->upsample[i].up_w = w->upsample[i].up.w.data;
        most_taps = max(d->ratios[i], most_taps);
    }
    for (int i = 0; i < d->n_rates; i++) {
        take_block(v, c, i);
        most_taps = max(2 * d->rates[i], most_taps);
    }
    vocoder_front_carve(v, c);
    if (v->integer) {
        vocoder_integer_carve(v, c);
    } else {
        v->n_products = kern_upconv_products(most_taps);
        v->products = vocoder_carve(c, v->n_parts * v->n_products);
        vocoder_wave_carve(v, c);
    }
}

/* The depthwise weights with the tap outside, so that channels lie side by side. */
static void turn_depthwise(struct cpu_vocoder *v, int i)
{
    const float *w = v->model->vocoder.upsample[i].depthwise.w.data;
    vocoder_transpose(v->upsample[i].taps, w, VOCODER_REACH + 1, v->config->latent, VOCODER_REACH + 1);
}

/* Keys that a call may need at once: those that its first frame sees, and the call's own. */
static int64_t cache_capacity(const struct codec_config *d)
{
    return d->stack.window + BACKEND_MAX_FEED - 1;
}

utter_status cpu_vocoder_open(struct cpu_vocoder **vocoder, const struct model *model,
    const struct kern *kern, struct pool *pool, utter_error *error)
{
    struct cpu_vocoder *v = *vocoder = memory_new(1, sizeof *v);
    if (!v) {
        return error_memory(error, "the vocoder");
    }
    v->model = model, v->config = &model->config->codec, v->kern = kern, v->pool = pool;
    v->n_parts = pool_size(pool) == 1 ? 1 : 2 * pool_size(pool);
    v->weights = &model->vocoder;
    utter_status status = UTTER_OK;
    if (model->short_sound && (status = vocoder_integer_new(v, error))) {
        cpu_vocoder_close(vocoder);
        return status;
    }
    struct vocoder_carver c = {0};
    lay_out(v, &c);
    v->n_memory = c.n;
    v->memory = c.base = memory_new(c.n, sizeof(float));
    const struct stack_config *shape = &v->config->stack;
    v->stack_scratch =
        cpu_scratch_new(&shape, 1, BACKEND_MAX_FEED, cache_capacity(v->config), pool_size(pool));
    if (!v->memory || !v->stack_scratch ||
        cpu_stack_init(&v->stack, shape, &v->weights->stack, kern, pool, NULL)) {
        cpu_vocoder_close(vocoder);
        return error_memory(error, "the vocoder");
    }
    c.n = 0;
    lay_out(v, &c);
    for (int i = 0; i < v->config->n_ratios; i++) {
        turn_depthwise(v, i);
    }
    if (v->integer && (status = vocoder_integer_round(v, error))) {
        cpu_vocoder_close(vocoder);
    }
    return status;
}

void cpu_vocoder_close(struct cpu_vocoder **vocoder)
{
    struct cpu_vocoder *v = *vocoder;
    if (v) {
        cpu_stack_fini(&v->stack);
        vocoder_integer_free(v);
        cpu_scratch_free(v->stack_scratch);
        memory_free(v->memory);
        memory_free(v);
        *vocoder = NULL;
    }
}

/* ---- Lanes ---- */

static void lay_out_lane(
    const struct cpu_vocoder *v, struct cpu_vocoder_lane *lane, struct vocoder_carver *c)
{
    const struct codec_config *d = v->config;
    lane->pre_past = vocoder_carve(c, (int64_t)d->codebook_dim * VOCODER_PRE_REACH);
    for (int i = 0; i < d->n_ratios; i++) {
        lane->depthwise[i] = vocoder_carve(c, (int64_t)d->latent * VOCODER_REACH);
    }
    if (v->integer) {
        vocoder_integer_carve_lane(v, lane, c);
    } else {
        lane->first_past = vocoder_carve(c, (int64_t)d->latent * VOCODER_REACH);
    }
    for (int i = 0; !v->integer && i < d->n_rates; i++) {
        const struct vocoder_block *b = &v->blocks[i];
        lane->blocks[i].tail = vocoder_carve(c, (int64_t)b->n_out * b->rate);
        for (int k = 0; k < VOCODER_UNITS; k++) {
            int64_t reach = VOCODER_REACH * b->units[k].conv1.dilation;
            lane->blocks[i].past[k] = vocoder_carve(c, b->n_out * reach);
        }
    }
    lane->last_past = vocoder_carve(c, (int64_t)v->last.n_in * VOCODER_REACH);
    lane->n_past = c->n; /* what a reset empties; written keys and values are known by their position */
    const struct stack_config *s = &d->stack;
    int64_t n = cache_capacity(d) * s->n_layers * s->n_kv_heads * s->head;
    lane->cache = (struct cpu_cache){vocoder_carve(c, n), vocoder_carve(c, n), cache_capacity(d)};
}

struct cpu_vocoder_lane *cpu_vocoder_lane_new(const struct cpu_vocoder *v)
{
    struct cpu_vocoder_lane counted = {0}, *lane;
    struct vocoder_carver c = {0};
    lay_out_lane(v, &counted, &c);
    size_t head = (sizeof *lane + 63) / 64 * 16; /* floats that the struct itself takes */
    lane = memory_new(head + c.n, sizeof(float));
    if (lane) {
        c = (struct vocoder_carver){(float *)(void *)lane + head, 0};
        lay_out_lane(v, lane, &c);
    }
    return lane;
}

void cpu_vocoder_lane_free(struct cpu_vocoder_lane *lane)
{
    memory_free(lane);
}

void cpu_vocoder_lane_reset(const struct cpu_vocoder *v, struct cpu_vocoder_lane *lane)
{
    (void)v;
    memset(lane->pre_past, 0, lane->n_past * sizeof(float));
    lane->position = 0;
}

void cpu_vocoder_memory(const struct cpu_vocoder *v, uint64_t *shared_bytes, uint64_t *lane_bytes)
{
    struct cpu_vocoder_lane counted = {0};
    struct vocoder_carver c = {0};
    lay_out_lane(v, &counted, &c);
    *shared_bytes = sizeof *v + v->n_memory * sizeof(float) + cpu_scratch_bytes(v->stack_scratch) +
                    (v->integer ? sizeof *v->integer + v->integer->matrix_bytes : 0);
    *lane_bytes = sizeof counted + c.n * sizeof(float);
}

/* The position, then everything from pre_past on: it is one piece of memory. */
static size_t state_floats(const struct cpu_vocoder *v)
{
    struct cpu_vocoder_lane counted = {0};
    struct vocoder_carver c = {0};
    lay_out_lane(v, &counted, &c);
    return c.n;
}

enum { POSITION_FLOATS = sizeof(int64_t) / sizeof(float) };

size_t cpu_vocoder_state_bytes(const struct cpu_vocoder *v)
{
    return (POSITION_FLOATS + state_floats(v)) * sizeof(float);
}

void cpu_vocoder_state_get(
    const struct cpu_vocoder *v, const struct cpu_vocoder_lane *lane, float *state)
{
    memcpy(state, &lane->position, sizeof lane->position);
    memcpy(state + POSITION_FLOATS, lane->pre_past, state_floats(v) * sizeof *state);
}

void cpu_vocoder_state_put(
    const struct cpu_vocoder *v, struct cpu_vocoder_lane *lane, const float *state)
{
    memcpy(&lane->position, state, sizeof lane->position);
    memcpy(lane->pre_past, state + POSITION_FLOATS, state_floats(v) * sizeof *state);
}

/* ---- A run ---- */

bool cpu_vocoder_run(struct cpu_vocoder *v, struct cpu_vocoder_lane *lane, const int32_t *codes,
    int n_frames, float *pcm, const struct cpu_tap *tap)
{
    static const struct cpu_tap no_tap = {0};
    tap = tap ? tap : &no_tap;
    int n = vocoder_front_run(v, lane, codes, n_frames, tap);
    (v->integer ? vocoder_integer_run : vocoder_wave_run)(v, lane, n, pcm, tap);
    lane->position += n_frames;
    bool finite = true;
    for (int64_t i = 0; i < (int64_t)n_frames * v->config->frame_samples; i++) {
        float x = pcm[i];
        finite = finite && isfinite(x);
        pcm[i] = !isfinite(x) ? 0 : x < -1 ? -1 : x > 1 ? 1 : x;
    }
    return finite;
}

/* How many frames the wave part must hear until nothing in its state depends on what it held before. Counted are the
 * time steps of a block's output that still do: a transposed convolution looks back by one input, the three units by
 * the sum of their reaches, and the last convolution keeps a reach more. Beside packed weights the wave part also
 * keeps the past of the first convolution; else the front has it. */
static int wave_memory(const struct cpu_vocoder *v)
{
    int64_t n_old = v->integer ? VOCODER_REACH : 0;
    for (int i = 0; i < v->config->n_rates; i++) {
        const struct vocoder_block *b = &v->blocks[i];
        n_old = (n_old + 1) * b->rate;
        for (int k = 0; k < VOCODER_UNITS; k++) {
            n_old += (int64_t)VOCODER_REACH * b->units[k].conv1.dilation;
        }
    }
    n_old += VOCODER_REACH;
    return (int)((n_old + v->config->frame_samples - 1) / v->config->frame_samples);
}

void cpu_vocoder_prime(struct cpu_vocoder *v, struct cpu_vocoder_lane *lane, const int32_t *codes,
    int n_frames, float *scratch)
{
    static const struct cpu_tap no_tap = {0};
    int n_front = n_frames > wave_memory(v) ? n_frames - wave_memory(v) : 0;
    for (int at = 0, n; at < n_frames; at += n) {
        int end = at < n_front ? n_front : n_frames;
        n = min(end - at, BACKEND_MAX_FEED);
        const int32_t *of = codes + (int64_t)at * v->model->config->n_codebooks;
        if (at < n_front) {
            vocoder_front_run(v, lane, of, n, &no_tap);
            lane->position += n;
        } else {
            cpu_vocoder_run(v, lane, of, n, scratch, &no_tap);
        }
    }
}
