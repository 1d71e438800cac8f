/* SPDX-License-Identifier: Apache-2.0
 * The convolution stack of the encoder: samples -> one row for each 960. Every input buffer begins with the
 * past that its convolution needs: zeros before the first sample, then the end of the block before. */
#include <string.h>

#include "base/memory.h"
#include "base/minmax.h"
#include "cpu/encoders/encoder_parts.h"

/* Output rows of one block: enough to use a weight several times while it is in the cache. */
enum { BLOCK_POSITIONS = 16 };

struct wave_stage {
    struct encoder_conv narrow, widen, down;
    int rate;
    int64_t capacity; /* time steps of a block */
    float *plain;     /* [capacity][channels]: what the unit adds to */
    float *in;        /* [past + capacity][channels], past narrow.taps - 1: its ELU */
    float *inner;     /* [capacity][channels / compress] */
    float *out;       /* [rate + capacity][channels]: ELU of the unit's sum */
};

struct wave {
    struct encoder_conv first, last;
    struct wave_stage stages[CONFIG_MAX_RATES];
    int n_stages;
    int64_t capacity; /* samples of a block */
    float *pcm;       /* [first.taps - 1 + capacity] */
    float *tail;      /* [last.taps - 1 + BLOCK_POSITIONS][channels] */
};

static void wave_free(struct wave *w)
{
    if (!w) {
        return;
    }
    encoder_conv_fini(&w->first);
    encoder_conv_fini(&w->last);
    for (int i = 0; i < CONFIG_MAX_RATES; i++) {
        struct wave_stage *s = &w->stages[i];
        encoder_conv_fini(&s->narrow);
        encoder_conv_fini(&s->widen);
        encoder_conv_fini(&s->down);
        memory_free(s->plain);
        memory_free(s->in);
        memory_free(s->inner);
        memory_free(s->out);
    }
    memory_free(w->pcm);
    memory_free(w->tail);
    memory_free(w);
}

static float *rows_new(int64_t time_steps, int channels)
{
    return memory_new((size_t)time_steps, (size_t)channels * sizeof(float));
}

static bool stage_init(struct wave_stage *s, const struct encoder_stage *weights,
    const struct encoder_config *e, int rate, int64_t capacity)
{
    s->rate = rate;
    s->capacity = capacity;
    if (!encoder_conv_init(&s->narrow, &weights->narrow, e->residual_taps) ||
        !encoder_conv_init(&s->widen, &weights->widen, 1) ||
        !encoder_conv_init(&s->down, &weights->down, 2 * rate)) {
        return false;
    }
    int channels = s->narrow.n_in;
    s->plain = rows_new(capacity, channels);
    s->in = rows_new(s->narrow.taps - 1 + capacity, channels);
    s->inner = rows_new(capacity, s->narrow.n_out);
    s->out = rows_new(rate + capacity, channels);
    return s->plain && s->in && s->inner && s->out;
}

static struct wave *wave_new(const struct model *model)
{
    const struct encoder_config *e = &model->config->codec.encoder;
    const struct encoder_weights *weights = &model->encoder;
    struct wave *w = memory_new(1, sizeof *w);
    if (!w) {
        return NULL;
    }
    w->n_stages = e->n_rates;
    w->capacity = (int64_t)BLOCK_POSITIONS * model->config->codec.frame_samples / 2;
    bool good = encoder_conv_init(&w->first, &weights->first, e->first_taps) &&
                encoder_conv_init(&w->last, &weights->last, e->last_taps);
    int64_t capacity = w->capacity;
    for (int i = 0; good && i < w->n_stages; i++) {
        good = stage_init(&w->stages[i], &weights->stages[i], e, e->rates[i], capacity);
        capacity /= e->rates[i];
    }
    if (good) {
        w->pcm = rows_new(w->first.taps - 1 + w->capacity, 1);
        w->tail = rows_new(w->last.taps - 1 + capacity, w->last.n_in);
    }
    if (!good || !w->pcm || !w->tail) {
        wave_free(w);
        return NULL;
    }
    return w;
}

/* The last `past` of past + n rows become the past of the next block. */
static void keep_past(float *rows, int64_t past, int64_t n, int channels)
{
    memmove(rows, rows + n * channels, (size_t)(past * channels) * sizeof *rows);
}

/* n time steps (in s->plain and behind the past of s->in) -> rows of `to`, ELU applied, and `plain` (or NULL) without
 * it. Returns how many. */
static int64_t stage_run(
    const struct encoder_run *run, const struct wave_stage *s, int64_t n, float *to, float *plain)
{
    int channels = s->narrow.n_in;
    int64_t past = s->narrow.taps - 1, n_out = (n + s->rate - 1) / s->rate;
    struct encoder_conv_pass narrow = {
        .y = s->inner, .x = s->in, .x_stride = channels, .n_t = n, .after = ENCODER_CONV_ELU};
    encoder_conv_run(&s->narrow, run->kern, run->pool, &narrow);
    keep_past(s->in, past, n, channels);
    struct encoder_conv_pass widen = {.y = s->out + (int64_t)s->rate * channels,
        .residual = s->plain,
        .x = s->inner,
        .x_stride = s->narrow.n_out,
        .n_t = n,
        .after = ENCODER_CONV_ELU};
    encoder_conv_run(&s->widen, run->kern, run->pool, &widen);
    /* Only the last block can be no multiple of the rate: zeros follow the recording, at every stage anew. */
    memset(s->out + (s->rate + n) * channels, 0,
        (size_t)((n_out * s->rate - n) * channels) * sizeof *s->out);
    struct encoder_conv_pass down = {.y = to,
        .plain = plain,
        .x = s->out,
        .x_stride = (int64_t)s->rate * channels,
        .n_t = n_out,
        .after = ENCODER_CONV_ELU};
    encoder_conv_run(&s->down, run->kern, run->pool, &down);
    keep_past(s->out, s->rate, n_out * s->rate, channels);
    return n_out;
}

/* n samples behind the past of w->pcm -> x. Returns the rows made. */
static int64_t wave_block(const struct encoder_run *run, struct wave *w, int64_t n, float *x)
{
    struct wave_stage *s = w->stages;
    struct encoder_conv_pass first = {.y = s->in + (int64_t)(s->narrow.taps - 1) * s->narrow.n_in,
        .plain = s->plain,
        .x = w->pcm,
        .x_stride = 1,
        .n_t = n,
        .after = ENCODER_CONV_ELU};
    encoder_conv_run(&w->first, run->kern, run->pool, &first);
    keep_past(w->pcm, w->first.taps - 1, n, 1);
    for (int i = 0; i < w->n_stages; i++, s++) {
        bool more = i + 1 < w->n_stages;
        float *to = more ? s[1].in + (int64_t)(s[1].narrow.taps - 1) * s[1].narrow.n_in
                         : w->tail + (int64_t)(w->last.taps - 1) * w->last.n_in;
        n = stage_run(run, s, n, to, more ? s[1].plain : NULL);
    }
    struct encoder_conv_pass last = {.y = x, .x = w->tail, .x_stride = w->last.n_in, .n_t = n};
    encoder_conv_run(&w->last, run->kern, run->pool, &last);
    keep_past(w->tail, w->last.taps - 1, n, w->last.n_in);
    return n;
}

utter_status encoder_wave(const struct encoder_run *run, const float *pcm, size_t n_samples, float *x)
{
    struct wave *w = wave_new(run->model);
    utter_status status = w ? UTTER_OK : error_memory(run->error, "the encoder");
    int64_t width = run->model->config->codec.encoder.stack.width;
    for (size_t at = 0; !status && at < n_samples;) {
        size_t n = min(n_samples - at, (size_t)w->capacity);
        memcpy(w->pcm + w->first.taps - 1, pcm + at, n * sizeof *pcm);
        x += width * wave_block(run, w, (int64_t)n, x);
        at += n;
        status = encoder_report(run, 0.75 * (double)at / (double)n_samples);
    }
    wave_free(w);
    return status;
}
