/* SPDX-License-Identifier: Apache-2.0
 * One run of the vocoder, kernel by kernel: codes -> samples. Comes in: a call in device memory. Nothing here waits,
 * but for a tap. */
#include <math.h>

#include "base/memory.h"
#include "base/minmax.h"
#include "cuda/vocoder/vocoder_parts.h"

static const float layer_norm_eps = 1e-6f;

struct queue {
    struct cuda_vocoder *v;
    int n_items, frames;
    cudaStream_t stream;
    const struct cuda_call *call; /* the host's, for a tap */
    cudaError_t result;           /* the first failure; nothing more is queued then */
};

static bool tapped(const struct queue *q)
{
    return q->v->tap_fn != NULL;
}

/* Reports raw values [items * time_steps][width], lane by lane. */
static void tap(
    struct queue *q, const char *name, int index, const float *raw, int time_steps, int channels)
{
    struct cuda_vocoder *v = q->v;
    if (!tapped(q) || q->result) {
        return;
    }
    int width = vocoder_pad(channels), n = time_steps * q->frames;
    size_t all = (size_t)n * (size_t)width * (size_t)q->call->n;
    float *rows = memory_new(all, sizeof *rows);
    if (!rows) {
        q->result = cudaErrorMemoryAllocation;
        return;
    }
    q->result = cudaMemcpyAsync(rows, raw, all * sizeof *rows, cudaMemcpyDeviceToHost, q->stream);
    q->result = q->result ? q->result : cudaStreamSynchronize(q->stream);
    for (int i = 0; !q->result && i < q->call->n; i++) {
        float *lane = rows + (size_t)i * (size_t)n * (size_t)width;
        for (int t = 0; t < n; t++) {
            for (int c = 0; c < channels; c++) {
                lane[t * channels + c] = lane[t * width + c];
            }
        }
        v->tap_fn(v->tap_user, name, index, lane, n, channels);
    }
    memory_free(rows);
}

static struct cuda_conv conv_of(const struct queue *q, const struct cuda_product *product,
    int time_steps, const unsigned char *x, int width)
{
    int most_items = min(q->n_items, q->v->n_lanes);
    return (struct cuda_conv){.product = *product,
        .call = q->v->call,
        .most_columns = most_items * time_steps * q->frames,
        .time_steps = time_steps * q->frames,
        .x = x,
        .width = width,
        .rate = 1};
}

static void set_past(const struct queue *q, struct cuda_conv *c, const struct vocoder_past *past)
{
    c->past = q->v->state + past->at;
    c->past_stride = q->v->lane_bytes;
}

static void set_snake(struct cuda_conv *c, const struct vocoder_snake *snake)
{
    c->snake_a = snake->a, c->snake_b = snake->b;
}

static void run_conv(struct queue *q, const struct cuda_conv *c)
{
    if (!q->result) {
        q->result = cuda_conv_run(c, q->n_items, q->v->device, q->stream);
    }
}

/* ---- Front ---- */

static void queue_tables(struct queue *q)
{
    struct cuda_vocoder *v = q->v;
    const struct codec_config *d = v->config;
    struct cuda_gather gather = {.call = v->call,
        .tables = v->tables,
        .n_codebooks = d->n_codebooks,
        .n_semantic = d->n_semantic,
        .size = d->codebook_size,
        .half = d->codebook_dim / 2,
        .frames = q->frames,
        .groups = vocoder_pad(d->codebook_dim) / CONV_GROUP,
        .ready = v->gathered};
    q->result = cuda_gather_run(&gather, q->n_items, v->device, q->stream);
    struct cuda_conv c = conv_of(q, &v->quantizer, 1, v->gathered, vocoder_pad(d->codebook_dim));
    c.ready = v->quantized;
    c.raw = tapped(q) ? v->tapped : NULL;
    run_conv(q, &c);
    tap(q, "vocoder.quantizer", 0, v->tapped, 1, d->codebook_dim);
    c = conv_of(q, &v->pre_conv, 1, v->quantized, vocoder_pad(d->latent));
    set_past(q, &c, &v->pre_past);
    c.ready = v->latent;
    c.raw = tapped(q) ? v->tapped : NULL;
    run_conv(q, &c);
    tap(q, "vocoder.pre_conv", 0, v->tapped, 1, d->latent);
}

static void queue_attention(struct queue *q, int i)
{
    struct cuda_vocoder *v = q->v;
    const struct stack_config *s = &v->config->stack;
    struct vocoder_attend attend = {.call = v->call,
        .qkv = v->qkv,
        .stride = v->q_width + 2 * v->kv_width,
        .k_at = v->q_width,
        .v_at = v->q_width + v->kv_width,
        .frames = q->frames,
        .n_heads = s->n_heads,
        .n_kv_heads = s->n_kv_heads,
        .head = s->head,
        .window = s->window,
        .capacity = v->cache_capacity,
        .inv_freq = v->inv_freq,
        .scale = (float)(1.0 / sqrt((double)s->head)),
        .position = (const int64_t *)(const void *)v->state,
        .keys = (float *)(void *)(v->state + v->cache_at[i][0]),
        .values = (float *)(void *)(v->state + v->cache_at[i][1]),
        .lane_bytes = v->lane_bytes,
        .groups = vocoder_pad(s->n_heads * s->head) / CONV_GROUP,
        .ready = v->mixed};
    if (!q->result) {
        q->result = cuda_attend_run(&attend, q->n_items, v->device, q->stream);
    }
}

/* x += scale * product, as values and as rows */
static void queue_add(
    struct queue *q, const struct cuda_product *product, const unsigned char *x, const float *scale)
{
    struct cuda_vocoder *v = q->v;
    struct cuda_conv c = conv_of(q, product, 1, x, vocoder_pad(v->config->stack.width));
    c.scale = scale;
    c.residual = c.raw = v->x;
    c.ready = v->x_ready;
    run_conv(q, &c);
}

static void set_norm(const struct queue *q, struct cuda_conv *c)
{
    c->norm_width = q->v->config->stack.width;
    c->norm_eps = q->v->config->stack.norm_eps;
}

static void queue_stack(struct queue *q)
{
    struct cuda_vocoder *v = q->v;
    const struct stack_config *s = &v->config->stack;
    struct cuda_conv c = conv_of(q, &v->stack_in, 1, v->latent, vocoder_pad(s->width));
    c.raw = v->x, c.ready = v->x_ready;
    run_conv(q, &c);
    for (int i = 0; i < s->n_layers; i++) {
        const struct vocoder_layer *l = &v->layers[i];
        c = conv_of(q, &l->qkv, 1, v->x_ready, v->q_width + 2 * v->kv_width);
        set_norm(q, &c);
        c.raw = v->qkv;
        run_conv(q, &c);
        queue_attention(q, i);
        queue_add(q, &l->o, v->mixed, l->attention_scale);
        c = conv_of(q, &l->gate_up, 1, v->x_ready, vocoder_pad(s->inner));
        set_norm(q, &c);
        c.after = CONV_GATE;
        c.ready = v->inner;
        run_conv(q, &c);
        queue_add(q, &l->down, v->inner, l->mlp_scale);
    }
    c = conv_of(q, &v->stack_out, 1, v->x_ready, vocoder_pad(v->config->latent));
    set_norm(q, &c);
    c.ready = v->stacked;
    c.raw = tapped(q) ? v->tapped : NULL;
    run_conv(q, &c);
    tap(q, "vocoder.stack", 0, v->tapped, 1, v->config->latent);
}

/* Stage i of the upsampling. */
static void queue_up(struct queue *q, int i, const unsigned char *x)
{
    struct cuda_vocoder *v = q->v;
    const struct vocoder_up *u = &v->ups[i];
    int latent = v->config->latent, width = vocoder_pad(latent);
    struct cuda_conv c = conv_of(q, &u->up, u->time_steps / u->ratio, x, width);
    c.rate = u->ratio;
    c.raw = u->raw;
    run_conv(q, &c);
    struct cuda_depthwise depthwise = {.call = v->call,
        .x = u->raw,
        .past = (const float *)(const void *)(v->state + u->past.at),
        .past_stride = v->lane_bytes,
        .time_steps = u->time_steps * q->frames,
        .channels = latent,
        .width = width,
        .taps = u->taps,
        .bias = u->taps_bias,
        .norm = u->norm,
        .norm_bias = u->norm_bias,
        .eps = layer_norm_eps,
        .ready = u->normed};
    if (!q->result) {
        q->result = cuda_depthwise_run(&depthwise, q->n_items, v->device, q->stream);
    }
    c = conv_of(q, &u->widen, u->time_steps, u->normed, vocoder_pad(VOCODER_WIDEN * latent));
    c.after = CONV_GELU;
    c.ready = u->wide;
    run_conv(q, &c);
    c = conv_of(q, &u->narrow, u->time_steps, u->wide, width);
    c.scale = u->gamma;
    c.residual = u->raw;
    c.ready = u->ready;
    c.raw = tapped(q) ? v->tapped : NULL;
    run_conv(q, &c);
    tap(q, "vocoder.upsample", i, v->tapped, u->time_steps, latent);
}

/* ---- Wave ---- */

/* Unit k: v->wave += conv2(snake2(conv1(ready))); the rows of what comes next go to `next`. */
static void queue_unit(struct queue *q, const struct vocoder_block *b, int k, unsigned char *next,
    const struct vocoder_snake *next_snake)
{
    struct cuda_vocoder *v = q->v;
    const struct vocoder_unit *u = &b->units[k];
    struct cuda_conv c = conv_of(q, &u->conv1, b->time_steps, u->ready, b->width);
    set_past(q, &c, &u->past);
    set_snake(&c, &u->snake2);
    c.ready = v->unit_inner;
    run_conv(q, &c);
    c = conv_of(q, &u->conv2, b->time_steps, v->unit_inner, b->width);
    set_snake(&c, next_snake);
    c.residual = v->wave;
    c.raw = k + 1 < VOCODER_UNITS || tapped(q) ? v->wave : NULL;
    c.ready = next;
    run_conv(q, &c);
}

static void queue_block(struct queue *q, int i)
{
    struct cuda_vocoder *v = q->v;
    const struct vocoder_block *b = &v->blocks[i];
    struct cuda_conv c = conv_of(q, &b->up, b->time_steps / b->rate, b->ready, b->width);
    set_past(q, &c, &b->past);
    set_snake(&c, &b->units[0].snake1);
    c.rate = b->rate;
    c.raw = v->wave;
    c.ready = b->units[0].ready;
    run_conv(q, &c);
    for (int k = 0; k < VOCODER_UNITS; k++) {
        bool last = i + 1 == v->config->n_rates;
        if (k + 1 < VOCODER_UNITS) {
            queue_unit(q, b, k, b->units[k + 1].ready, &b->units[k + 1].snake1);
        } else {
            queue_unit(q, b, k, last ? v->last_ready : v->blocks[i + 1].ready,
                last ? &v->last_snake : &v->blocks[i + 1].snake);
        }
    }
    tap(q, "vocoder.block", i, v->wave, b->time_steps, b->n_out);
}

static void queue_last(struct queue *q)
{
    struct cuda_vocoder *v = q->v;
    const struct vocoder_block *b = &v->blocks[v->config->n_rates - 1];
    struct cuda_last last = {.call = v->call,
        .x = v->last_ready,
        .past = v->state + v->last_past.at,
        .past_stride = v->lane_bytes,
        .time_steps = b->time_steps * q->frames,
        .groups = b->width / CONV_GROUP,
        .w = v->last_w,
        .bias = v->last_bias};
    if (!q->result) {
        q->result = cuda_last_run(&last, q->n_items, v->device, q->stream);
    }
}

/* ---- Past ---- */

static void add_part(
    struct cuda_carry *c, const struct vocoder_past *past, const void *fresh, int time_steps)
{
    c->parts[c->n_parts++] = (struct cuda_carry_part){.fresh = fresh,
        .past = past->at,
        .row_bytes = past->row_bytes,
        .time_steps = time_steps * c->frames,
        .n_rows = past->n_rows,
        .first_piece = c->n_pieces};
    c->n_pieces += past->row_bytes / 16;
}

static void queue_carry(struct queue *q, enum vocoder_reach reach)
{
    struct cuda_vocoder *v = q->v;
    const struct codec_config *d = v->config;
    struct cuda_carry c = {
        .call = v->call, .state = v->state, .lane_bytes = v->lane_bytes, .frames = q->frames};
    add_part(&c, &v->pre_past, v->quantized, 1);
    for (int i = 0; i < d->n_ratios; i++) {
        add_part(&c, &v->ups[i].past, v->ups[i].raw, v->ups[i].time_steps);
    }
    const struct vocoder_up *u = &v->ups[d->n_ratios - 1];
    add_part(&c, &v->first_past, u->ready, u->time_steps);
    for (int i = 0; i < d->n_rates && reach == VOCODER_WHOLE; i++) {
        const struct vocoder_block *b = &v->blocks[i];
        add_part(&c, &b->past, b->ready, b->time_steps / b->rate);
        for (int k = 0; k < VOCODER_UNITS; k++) {
            add_part(&c, &b->units[k].past, b->units[k].ready, b->time_steps);
        }
    }
    if (reach == VOCODER_WHOLE) {
        add_part(&c, &v->last_past, v->last_ready, v->blocks[d->n_rates - 1].time_steps);
    }
    if (!q->result) {
        q->result = cuda_carry_run(&c, q->n_items, v->device, q->stream);
    }
}

static void queue_waves(struct queue *q)
{
    struct cuda_vocoder *v = q->v;
    const struct codec_config *d = v->config;
    const struct vocoder_up *u = &v->ups[d->n_ratios - 1];
    struct cuda_conv c = conv_of(q, &v->first, u->time_steps, u->ready, vocoder_pad(d->decoder_width));
    set_past(q, &c, &v->first_past);
    set_snake(&c, &v->blocks[0].snake);
    c.ready = v->blocks[0].ready;
    c.raw = tapped(q) ? v->tapped : NULL;
    run_conv(q, &c);
    tap(q, "vocoder.first", 0, v->tapped, u->time_steps, d->decoder_width);
    for (int i = 0; i < d->n_rates; i++) {
        queue_block(q, i);
    }
    queue_last(q);
}

cudaError_t vocoder_queue(struct cuda_vocoder *v, int n_items, int frames, enum vocoder_reach reach,
    cudaStream_t stream, const struct cuda_call *call)
{
    struct queue q = {v, n_items, frames, stream, call, cudaSuccess};
    queue_tables(&q);
    queue_stack(&q);
    for (int i = 0; i < v->config->n_ratios; i++) {
        queue_up(&q, i, i ? v->ups[i - 1].ready : v->stacked);
    }
    if (reach == VOCODER_WHOLE) {
        queue_waves(&q);
    }
    queue_carry(&q, reach);
    return q.result;
}
