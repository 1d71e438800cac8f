/* SPDX-License-Identifier: Apache-2.0
 * The convolution stack of the vocoder: v->first_rows -> samples. One row a channel.
 *
 * Each block works on a piece of time steps that stays in the caches, hands it to the next block, which cuts
 * it again, and so on down to samples; then comes the next piece. Within a piece one thread makes some
 * channels, and at once what the next convolution reads of them: its snake and its past. */
#include <string.h>

#include "base/minmax.h"
#include "cpu/vocoder/vocoder_parts.h"

enum {
    PIECE_OUTPUTS = 512, /* time steps that a block makes in one piece, about */
    PIECE_GRAIN = 16,
};

/* Rows of a block lie as close as the piece at hand allows: pages and lines that hold nothing cost. */
static int64_t block_stride(const struct vocoder_block *b, int64_t n_made)
{
    return vocoder_stride(VOCODER_REACH * b->units[VOCODER_UNITS - 1].conv1.dilation + n_made);
}

static int piece_of(int rate)
{
    int n = PIECE_OUTPUTS / rate / PIECE_GRAIN * PIECE_GRAIN;
    return n ? n : PIECE_GRAIN;
}

void vocoder_wave_carve(struct cpu_vocoder *v, struct vocoder_carver *c)
{
    const struct codec_config *d = v->config;
    int64_t time_steps = BACKEND_MAX_FEED;
    for (int i = 0; i < d->n_ratios; i++) {
        time_steps *= d->ratios[i];
    }
    v->wave = vocoder_carve(c, vocoder_stride(time_steps) * d->decoder_width);
    v->wave_ready = vocoder_carve(c, vocoder_stride(time_steps) * d->decoder_width);
    v->n_tapped = (size_t)(time_steps * d->decoder_width);
    for (int i = 0; i < d->n_rates; i++) {
        struct vocoder_block *b = &v->blocks[i];
        b->n_piece = piece_of(b->rate);
        int64_t outputs = (int64_t)b->n_piece * b->rate, most = block_stride(b, outputs) * b->n_out;
        b->main = vocoder_carve(c, most);
        b->other = vocoder_carve(c, most);
        b->ready = vocoder_carve(c, most);
        b->inner = vocoder_carve(c, most);
        size_t n = (size_t)(outputs * b->n_out);
        v->n_tapped = max(n, v->n_tapped);
    }
    v->tapped = vocoder_carve(c, (int64_t)v->n_tapped);
}

/* One run down the stack. */
struct wave_run {
    struct cpu_vocoder *v;
    struct cpu_vocoder_lane *lane;
    const struct cpu_tap *tap;
    float *pcm; /* where the next samples go */
};

/* What a part of a parallel loop does after its channels are made: x -> snake -> y, behind a past or none. */
struct wave_ready {
    const struct vocoder_snake *snake;
    float *past; /* [channels][n_past] */
    int n_past;
};

struct wave_job {
    struct cpu_vocoder *v;
    struct kern_conv conv;
    struct kern_upconv up;
    int n_out;
    struct wave_ready ready;
    float *ready_rows;            /* [n_out][ready_stride] */
    int64_t ready_stride, n_made; /* time steps */
};

static void make_ready(
    const struct wave_job *job, const float *rows, int64_t stride, int64_t o0, int64_t o1)
{
    const struct wave_ready *r = &job->ready;
    for (int64_t o = o0; o < o1; o++) {
        float *y = job->ready_rows + o * job->ready_stride;
        job->v->kern->snake(
            y + r->n_past, rows + o * stride, r->snake->a[o], r->snake->b[o], job->n_made);
        vocoder_join_past(y, r->past + o * r->n_past, r->n_past, job->n_made);
    }
}

static void conv_part(void *arg, int part, int n_parts)
{
    const struct wave_job *job = arg;
    int64_t o0, o1;
    pool_slice(job->n_out, VOCODER_GRAIN, part, n_parts, &o0, &o1);
    job->v->kern->conv(&job->conv, (int)o0, (int)o1);
    make_ready(job, job->conv.y, job->conv.y_stride, o0, o1);
}

static void up_part(void *arg, int part, int n_parts)
{
    const struct wave_job *job = arg;
    struct kern_upconv up = job->up;
    int64_t o0, o1;
    pool_slice(job->n_out, KERN_UPCONV_GRAIN, part, n_parts, &o0, &o1);
    up.products += part * job->v->n_products;
    job->v->kern->upconv(&up, (int)o0, (int)o1);
    make_ready(job, up.y, up.y_stride, o0, o1);
}

/* The samples between two time steps. */
static void last_part(void *arg, int part, int n_parts)
{
    const struct wave_job *job = arg;
    struct kern_conv conv = job->conv;
    int64_t t0, t1;
    pool_slice(conv.n_t, PIECE_GRAIN, part, n_parts, &t0, &t1);
    conv.x += t0, conv.y += t0, conv.n_t = t1 - t0;
    job->v->kern->conv(&conv, 0, 1);
}

static void run_conv(const struct wave_job *job)
{
    const struct kern_conv *c = &job->conv;
    vocoder_spread(job->v, conv_part, (void *)job, job->n_out, VOCODER_GRAIN,
        (int64_t)job->n_out * c->n_in * c->taps * c->n_t);
}

/* Unit k of a block, from -> to: to = from + conv2(snake2(conv1(ready))); then `ready` is what comes next. */
static void run_unit(const struct wave_run *run, const struct vocoder_block *b, int k, float *to,
    const float *from, int64_t n, const struct wave_ready *next)
{
    const struct vocoder_unit *u = &b->units[k];
    struct wave_job job = {.v = run->v,
        .n_out = b->n_out,
        .ready = {&u->snake2, NULL, 0},
        .ready_rows = b->inner,
        .ready_stride = b->stride,
        .n_made = n};
    job.conv = vocoder_conv_of(&u->conv1, b->ready, b->stride);
    job.conv.y = b->inner, job.conv.y_stride = b->stride, job.conv.n_t = n;
    run_conv(&job);
    job.conv = vocoder_conv_of(&u->conv2, b->inner, b->stride);
    job.conv.y = to, job.conv.y_stride = b->stride, job.conv.n_t = n;
    job.conv.residual = from;
    job.ready = *next;
    job.ready_rows = b->ready;
    run_conv(&job);
}

static struct wave_ready ready_for_unit(const struct wave_run *run, int i_block, int k)
{
    const struct vocoder_unit *u = &run->v->blocks[i_block].units[k];
    return (struct wave_ready){
        &u->snake1, run->lane->blocks[i_block].past[k], VOCODER_REACH * u->conv1.dilation};
}

/* The snake of the block after `i_block`, or of the last convolution with its past. */
static struct wave_ready ready_after(const struct wave_run *run, int i_block)
{
    struct cpu_vocoder *v = run->v;
    if (i_block + 1 < v->config->n_rates) {
        return (struct wave_ready){&v->blocks[i_block + 1].snake, NULL, 0};
    }
    return (struct wave_ready){&v->last_snake, run->lane->last_past, VOCODER_REACH};
}

void vocoder_wave_last(struct cpu_vocoder *v, const float *rows, int64_t stride, float *pcm, int64_t n)
{
    struct wave_job job = {.v = v, .conv = vocoder_conv_of(&v->last, rows, stride)};
    job.conv.y = pcm, job.conv.y_stride = n, job.conv.n_t = n;
    vocoder_spread(v, last_part, &job, n, PIECE_GRAIN, (int64_t)v->last.n_in * v->last.taps * n);
}

static void run_block(struct wave_run *run, int i_block, const float *rows, int64_t stride, int64_t n);

/* One piece: n time steps of rows -> n * rate time steps, handed on. */
static void run_piece(struct wave_run *run, int i_block, const float *rows, int64_t stride, int64_t n)
{
    struct cpu_vocoder *v = run->v;
    struct vocoder_block *b = &v->blocks[i_block];
    int64_t n_made = n * b->rate;
    b->stride = block_stride(b, n_made);
    struct wave_job job = {.v = v,
        .n_out = b->n_out,
        .ready = ready_for_unit(run, i_block, 0),
        .ready_rows = b->ready,
        .ready_stride = b->stride,
        .n_made = n_made};
    job.up = (struct kern_upconv){.y = b->main,
        .x = rows,
        .w = b->up_w,
        .bias = b->up_bias,
        .tail = run->lane->blocks[i_block].tail,
        .products = v->products,
        .y_stride = b->stride,
        .y_step = 1,
        .x_stride = stride,
        .x_step = 1,
        .n_in = b->n_in,
        .n_out = b->n_out,
        .stride = b->rate,
        .taps = 2 * b->rate,
        .n_t = n};
    vocoder_spread(
        v, up_part, &job, b->n_out, KERN_UPCONV_GRAIN, (int64_t)b->n_in * b->n_out * 2 * n_made);
    float *from = b->main, *to = b->other;
    for (int k = 0; k < VOCODER_UNITS; k++) {
        struct wave_ready next =
            k + 1 < VOCODER_UNITS ? ready_for_unit(run, i_block, k + 1) : ready_after(run, i_block);
        run_unit(run, b, k, to, from, n_made, &next);
        float *made = to;
        to = from, from = made;
    }
    vocoder_tap_rows(v, run->tap, "vocoder.block", i_block, from, b->stride, n_made, b->n_out);
    if (i_block + 1 < v->config->n_rates) {
        run_block(run, i_block + 1, b->ready, b->stride, n_made);
    } else {
        vocoder_wave_last(v, b->ready, b->stride, run->pcm, n_made);
        run->pcm += n_made;
    }
}

static void run_block(struct wave_run *run, int i_block, const float *rows, int64_t stride, int64_t n)
{
    int64_t most = run->v->blocks[i_block].n_piece, n_pieces = (n + most - 1) / most;
    int64_t piece = (n + n_pieces - 1) / n_pieces;
    piece = (piece + PIECE_GRAIN - 1) / PIECE_GRAIN * PIECE_GRAIN;
    for (int64_t t = 0; t < n; t += piece) {
        run_piece(run, i_block, rows + t, stride, min(n - t, piece));
    }
}

void vocoder_wave_run(struct cpu_vocoder *v, struct cpu_vocoder_lane *lane, int n_time_steps,
    float *pcm, const struct cpu_tap *tap)
{
    struct wave_run run = {v, lane, tap, pcm};
    int64_t stride = vocoder_stride(n_time_steps);
    struct wave_job job = {.v = v,
        .conv = vocoder_conv_of(&v->first, v->first_rows, vocoder_stride(VOCODER_REACH + n_time_steps)),
        .n_out = v->config->decoder_width,
        .ready = {&v->blocks[0].snake, NULL, 0},
        .ready_rows = v->wave_ready,
        .ready_stride = stride,
        .n_made = n_time_steps};
    job.conv.y = v->wave, job.conv.y_stride = stride, job.conv.n_t = n_time_steps;
    run_conv(&job);
    vocoder_tap_rows(
        v, tap, "vocoder.first", 0, v->wave, stride, n_time_steps, v->config->decoder_width);
    run_block(&run, 0, v->wave_ready, stride, n_time_steps);
}
