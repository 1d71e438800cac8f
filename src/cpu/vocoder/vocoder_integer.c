/* SPDX-License-Identifier: Apache-2.0
 * The convolution stack in integers: v->first_rows -> samples, block by block as in wave.c. A part
 * of a parallel loop makes a group of channels for a stretch of time, and at once what the next convolution reads.
 * How a group lies in memory, of words or of floats, is the kernel table's choice (kern.integer_by_time). */
#include <string.h>

#include "cpu/vocoder/vocoder_integer.h"

#include "base/minmax.h"

enum {
    PIECE_TIME_STEPS = 1024, /* that a block makes in one piece, about */
    PIECE_STEP = 16,
    STRETCH = 32, /* time steps of input that a part takes at least */
    PAIRS = KERN_INTEGER_GROUP / 2,
};

/* Words of a time step side by side. */
static int words_beside(const struct kern *kern)
{
    return kern->integer_by_time ? kern->integer_words / 2 : 1;
}

/* Where time step t of group g stands, with room for `stride` time steps. */
static int32_t *words_at(const struct kern *kern, const struct integer_rows *rows, int64_t g, int64_t t)
{
    return rows->words + g * kern->integer_words * rows->stride + t * words_beside(kern);
}

static int64_t floats_at(const struct kern *kern, int64_t stride, int64_t g, int64_t t)
{
    return g * KERN_INTEGER_GROUP * stride + t * (kern->integer_by_time ? KERN_INTEGER_GROUP : 1);
}

/* ---- Memory ---- */

static int piece_of(int rate)
{
    int n = PIECE_TIME_STEPS / rate / PIECE_STEP * PIECE_STEP;
    return n ? n : PIECE_STEP;
}

static int64_t block_stride(const struct integer_block *b, int64_t n_made)
{
    return vocoder_stride(VOCODER_REACH * b->units[VOCODER_UNITS - 1].conv1.dilation + n_made);
}

static struct integer_rows carve_rows(
    const struct cpu_vocoder *v, struct vocoder_carver *c, int n_groups, int64_t stride)
{
    return (struct integer_rows){
        (int32_t *)vocoder_carve(c, n_groups * v->kern->integer_words * stride), stride};
}

static struct vocoder_snake carve_snake(struct vocoder_carver *c, int64_t channels)
{
    int64_t n = (int64_t)integer_groups(channels) * KERN_INTEGER_GROUP;
    return (struct vocoder_snake){vocoder_carve(c, n), vocoder_carve(c, n)};
}

/* rate 0: no transposed convolution. */
static struct integer_conv carve_conv(
    struct vocoder_carver *c, int64_t n_in, int64_t n_out, int taps, int dilation, int rate)
{
    struct integer_conv conv = {.n_in_groups = integer_groups(n_in),
        .n_out_groups = integer_groups(n_out),
        .group_rows = KERN_INTEGER_GROUP * (rate ? rate : 1),
        .taps = taps,
        .dilation = dilation};
    int64_t rows = (int64_t)conv.n_out_groups * conv.group_rows;
    conv.fine = rate != 0;
    conv.w = (int32_t *)vocoder_carve(c, rows * conv.n_in_groups * taps * PAIRS);
    conv.scales = vocoder_carve(c, rows);
    conv.bias = vocoder_carve(c, rows);
    return conv;
}

static void carve_block(struct cpu_vocoder *v, struct vocoder_carver *c, int i)
{
    struct integer_block *b = &v->integer->blocks[i];
    int n_in = v->config->decoder_width >> i, n_out = n_in / 2;
    b->n_groups = integer_groups(n_out);
    b->rate = v->config->rates[i];
    b->n_piece = piece_of(b->rate);
    b->snake = carve_snake(c, n_in);
    b->up = carve_conv(c, n_in, n_out, 2, 1, b->rate);
    for (int k = 0, dilation = 1; k < VOCODER_UNITS; k++, dilation *= 3) {
        struct integer_unit *u = &b->units[k];
        u->snake1 = carve_snake(c, n_out);
        u->snake2 = carve_snake(c, n_out);
        u->conv1 = carve_conv(c, n_out, n_out, VOCODER_REACH + 1, dilation, 0);
        u->conv2 = carve_conv(c, n_out, n_out, 1, 1, 0);
    }
    int64_t stride = block_stride(b, (int64_t)b->n_piece * b->rate);
    b->main = vocoder_carve(c, stride * b->n_groups * KERN_INTEGER_GROUP);
    b->other = vocoder_carve(c, stride * b->n_groups * KERN_INTEGER_GROUP);
    b->ready = carve_rows(v, c, b->n_groups, stride);
    b->inner = carve_rows(v, c, b->n_groups, stride);
    int64_t n_places = vocoder_stride(b->n_piece) * b->up.group_rows;
    v->integer->n_places = max(n_places, v->integer->n_places);
}

void vocoder_integer_carve(struct cpu_vocoder *v, struct vocoder_carver *c)
{
    const struct codec_config *d = v->config;
    struct vocoder_integer *w = v->integer;
    int64_t time_steps = BACKEND_MAX_FEED, channels = d->decoder_width >> d->n_rates;
    for (int i = 0; i < d->n_ratios; i++) {
        time_steps *= d->ratios[i];
    }
    w->first = carve_conv(c, d->latent, d->decoder_width, VOCODER_REACH + 1, 1, 0);
    w->first.fine = true;
    w->first_rows =
        carve_rows(v, c, integer_groups(d->latent), vocoder_stride(VOCODER_REACH + time_steps));
    w->wave = vocoder_carve(
        c, vocoder_stride(time_steps) * integer_groups(d->decoder_width) * KERN_INTEGER_GROUP);
    w->wave_ready = carve_rows(v, c, integer_groups(d->decoder_width), vocoder_stride(1 + time_steps));
    v->n_tapped = (size_t)(time_steps * d->decoder_width);
    for (int i = 0; i < d->n_rates; i++) {
        carve_block(v, c, i);
        const struct integer_block *b = &w->blocks[i];
        size_t n = (size_t)b->n_piece * (size_t)b->rate * (size_t)(d->decoder_width >> (i + 1));
        v->n_tapped = max(n, v->n_tapped);
    }
    const struct integer_block *last = &w->blocks[d->n_rates - 1];
    w->last_snake = carve_snake(c, channels);
    w->last_rows = vocoder_carve(c, block_stride(last, (int64_t)last->n_piece * last->rate) * channels);
    w->places = vocoder_carve(c, w->n_places * v->n_parts);
    v->tapped = vocoder_carve(c, (int64_t)v->n_tapped);
}

static void carve_past(const struct cpu_vocoder *v, struct vocoder_carver *c,
    struct vocoder_integer_past *past, int64_t channels, int n_past)
{
    past->n_past = n_past;
    past->words = (int32_t *)vocoder_carve(
        c, (int64_t)integer_groups(channels) * v->kern->integer_words * n_past);
}

void vocoder_integer_carve_lane(
    const struct cpu_vocoder *v, struct cpu_vocoder_lane *lane, struct vocoder_carver *c)
{
    const struct codec_config *d = v->config;
    carve_past(v, c, &lane->integer_first, d->latent, VOCODER_REACH);
    for (int i = 0; i < d->n_rates; i++) {
        int channels = d->decoder_width >> i;
        carve_past(v, c, &lane->blocks[i].integer_up, channels, 1);
        for (int k = 0; k < VOCODER_UNITS; k++) {
            carve_past(v, c, &lane->blocks[i].integer_unit[k], channels / 2,
                VOCODER_REACH * v->integer->blocks[i].units[k].conv1.dilation);
        }
    }
}

/* ---- One convolution ---- */

/* What is made of its output: rounded rows behind a past, through a snake or without; or floats for the last one. */
struct integer_next {
    const struct vocoder_snake *snake;
    struct integer_rows *rows; /* NULL: floats */
    const struct vocoder_integer_past *past;
    bool fine; /* as the convolution that reads them */
};

struct integer_job {
    struct cpu_vocoder *v;
    const struct integer_conv *conv;
    const struct integer_rows *from;
    int64_t offset;                             /* of the input in `from`: its past begins there */
    const struct vocoder_integer_past *renewed; /* the past that the end of `from` becomes, or NULL */
    float *y;
    const float *residual;
    int64_t y_stride, n_t;
    int rate; /* 1, or of a transposed convolution */
    struct integer_next next;
    int n_stretches;
    int64_t stretch;
};

/* The past of group g, which stands in front of `rows`, from the lane or, from time step t on, to it. */
static void copy_past(const struct kern *kern, const struct integer_rows *rows, bool fine,
    const struct vocoder_integer_past *past, int g, int64_t t, bool to_lane)
{
    int step = words_beside(kern);
    int n_rows = kern->integer_by_time && !fine ? 1 : kern->integer_words / step;
    size_t n = (size_t)past->n_past * (size_t)step;
    int32_t *here = words_at(kern, rows, g, t),
            *there = past->words + g * kern->integer_words * past->n_past;
    for (int i = 0; i < n_rows; i++, here += rows->stride * step, there += n) {
        memcpy(to_lane ? there : here, to_lane ? here : there, n * sizeof *here);
    }
}

/* Rows of one place after the other -> time steps in their order. */
static void lay_out_places(
    const struct integer_job *job, int g, const float *places, int64_t stride, int64_t t0, int64_t t1)
{
    int rate = job->rate;
    for (int o = 0; o < KERN_INTEGER_GROUP; o++) {
        float *y = job->y + (g * KERN_INTEGER_GROUP + o) * job->y_stride + t0 * rate;
        for (int j = 0; j < rate; j++) {
            const float *z = places + (j * KERN_INTEGER_GROUP + o) * stride;
            for (int64_t t = 0; t < t1 - t0; t++) {
                y[t * rate + j] = z[t];
            }
        }
    }
}

/* Time steps t0 <= t < t1 of the output's group g, for the next convolution. */
static void make_next(const struct integer_job *job, int g, int64_t t0, int64_t t1)
{
    const struct integer_next *next = &job->next;
    struct cpu_vocoder *v = job->v;
    const float *x = job->y + floats_at(v->kern, job->y_stride, g, t0);
    if (next->rows) {
        const struct integer_rows *rows = next->rows;
        struct kern_integer_rounding rounding = {
            .words = words_at(v->kern, rows, g, (next->past ? next->past->n_past : 0) + t0),
            .x = x,
            .a = next->snake ? next->snake->a + g * KERN_INTEGER_GROUP : NULL,
            .b = next->snake ? next->snake->b + g * KERN_INTEGER_GROUP : NULL,
            .stride = rows->stride,
            .x_stride = v->kern->integer_by_time ? KERN_INTEGER_GROUP : job->y_stride,
            .fine = next->fine,
        };
        v->kern->integer_round(&rounding, t1 - t0);
        return;
    }
    for (int i = 0, o = g * KERN_INTEGER_GROUP; i < KERN_INTEGER_GROUP && o < v->last.n_in; i++, o++) {
        float *row = v->integer->last_rows + o * job->y_stride + VOCODER_REACH + t0;
        for (int64_t t = 0; v->kern->integer_by_time && t < t1 - t0; t++) {
            row[t] = x[t * KERN_INTEGER_GROUP + i];
        }
        v->kern->snake(row, v->kern->integer_by_time ? row : x + i * job->y_stride, next->snake->a[o],
            next->snake->b[o], t1 - t0);
    }
}

/* Time steps t0 <= t < t1 of the input: the output's group g. */
static void make_group(const struct integer_job *job, int part, int g, int64_t t0, int64_t t1)
{
    const struct integer_conv *c = job->conv;
    const struct vocoder_integer *w = job->v->integer;
    const struct kern *kernels = job->v->kern;
    int64_t first = (int64_t)g * c->group_rows,
            out = floats_at(kernels, job->y_stride, g, t0 * job->rate);
    bool apart = job->rate > 1 && !kernels->integer_by_time;
    float *places = w->places + part * w->n_places;
    struct kern_integer kern = {
        .y = apart ? places : job->y + out,
        .x = words_at(kernels, job->from, 0, job->offset + t0),
        .w = c->w,
        .w_scales = c->scales,
        .bias = c->bias,
        .residual = job->residual ? job->residual + out : NULL,
        .y_stride = apart ? vocoder_stride(t1 - t0) : job->y_stride,
        .x_stride = job->from->stride,
        .n_groups = c->n_in_groups,
        .taps = c->taps,
        .dilation = c->dilation,
        .n_t = t1 - t0,
        .fine = c->fine,
    };
    if (kernels->integer_by_time) { /* place by place, each to its time steps */
        kern.y_stride = (int64_t)job->rate * KERN_INTEGER_GROUP;
        for (int64_t o = first; o < first + c->group_rows;
             o += KERN_INTEGER_GROUP, kern.y += KERN_INTEGER_GROUP) {
            kernels->integer(&kern, (int)o, (int)o + KERN_INTEGER_GROUP);
        }
        return;
    }
    kern.w += first * c->n_in_groups * c->taps * PAIRS;
    kern.w_scales += first, kern.bias += first;
    kernels->integer(&kern, 0, c->group_rows);
    if (apart) {
        lay_out_places(job, g, places, kern.y_stride, t0, t1);
    }
}

/* Output group g, stretch i of the input's time. */
static void run_item(const struct integer_job *job, int part, int g, int i)
{
    const struct kern *kern = job->v->kern;
    int64_t t0 = i * job->stretch, t1 = min(t0 + job->stretch, job->n_t);
    make_group(job, part, g, t0, t1);
    make_next(job, g, t0 * job->rate, t1 * job->rate);
    if (i == 0 && job->next.rows && job->next.past) {
        copy_past(kern, job->next.rows, job->next.fine, job->next.past, g, 0, false);
    }
    if (i == 0 && job->renewed) {
        int64_t g0, g1;
        pool_slice(job->conv->n_in_groups, 1, g, job->conv->n_out_groups, &g0, &g1);
        for (int64_t from = g0; from < g1; from++) {
            copy_past(kern, job->from, job->conv->fine, job->renewed, (int)from, job->offset + job->n_t,
                true);
        }
    }
}

static void conv_part(void *arg, int part, int n_parts)
{
    const struct integer_job *job = arg;
    int64_t begin, end;
    pool_slice((int64_t)job->conv->n_out_groups * job->n_stretches, 1, part, n_parts, &begin, &end);
    for (int64_t item = begin; item < end; item++) {
        run_item(job, part, (int)(item / job->n_stretches), (int)(item % job->n_stretches));
    }
}

static void run_conv(struct integer_job *job)
{
    enum { ITEMS = 6 }; /* a thread, so that none waits long for the others */
    const struct integer_conv *c = job->conv;
    int64_t wanted = (pool_size(job->v->pool) * ITEMS + c->n_out_groups - 1) / c->n_out_groups;
    int64_t most = (job->n_t + STRETCH - 1) / STRETCH;
    wanted = min(wanted, most);
    job->stretch = ((job->n_t + wanted - 1) / wanted + STRETCH - 1) / STRETCH * STRETCH;
    job->n_stretches = (int)((job->n_t + job->stretch - 1) / job->stretch);
    int64_t n = (int64_t)c->n_out_groups * job->n_stretches;
    vocoder_spread(job->v, conv_part, job, n, 1,
        n * c->group_rows * c->n_in_groups * KERN_INTEGER_GROUP * c->taps * job->stretch);
}

/* ---- Blocks ---- */

/* One run down the stack. */
struct integer_run {
    struct cpu_vocoder *v;
    struct cpu_vocoder_lane *lane;
    const struct cpu_tap *tap;
    float *pcm; /* where the next samples go */
};

static struct integer_next next_unit(const struct integer_run *run, int i_block, int k)
{
    struct integer_block *b = &run->v->integer->blocks[i_block];
    return (struct integer_next){
        &b->units[k].snake1, &b->ready, &run->lane->blocks[i_block].integer_unit[k], false};
}

/* What comes behind the last unit of a block. */
static struct integer_next next_block(const struct integer_run *run, int i_block)
{
    struct vocoder_integer *w = run->v->integer;
    if (i_block + 1 < run->v->config->n_rates) {
        return (struct integer_next){&w->blocks[i_block + 1].snake, &w->blocks[i_block].ready,
            &run->lane->blocks[i_block + 1].integer_up, true};
    }
    return (struct integer_next){&w->last_snake, NULL, NULL, true};
}

/* Unit k: to = from + conv2(snake2(conv1(ready))); then `ready` is what comes next. */
static void run_unit(const struct integer_run *run, int i_block, int k, float *to, const float *from,
    int64_t n, struct integer_next next)
{
    struct integer_block *b = &run->v->integer->blocks[i_block];
    const struct integer_unit *u = &b->units[k];
    struct integer_job job = {.v = run->v,
        .conv = &u->conv1,
        .from = &b->ready,
        .renewed = &run->lane->blocks[i_block].integer_unit[k],
        .y = to,
        .y_stride = b->stride,
        .n_t = n,
        .rate = 1,
        .next = {&u->snake2, &b->inner, NULL, false}};
    run_conv(&job);
    job.conv = &u->conv2;
    job.from = &b->inner;
    job.renewed = NULL;
    job.residual = from;
    job.next = next;
    run_conv(&job);
}

/* ---- Ends ---- */

/* The last convolution, in floats. */
static void run_last(struct integer_run *run, int64_t stride, int64_t n)
{
    struct cpu_vocoder *v = run->v;
    float *rows = v->integer->last_rows;
    for (int o = 0; o < v->last.n_in; o++) {
        vocoder_join_past(
            rows + o * stride, run->lane->last_past + o * VOCODER_REACH, VOCODER_REACH, n);
    }
    vocoder_wave_last(v, rows, stride, run->pcm, n);
    run->pcm += n;
}

struct first_job {
    struct cpu_vocoder *v;
    struct cpu_vocoder_lane *lane;
    int64_t n;
};

static void first_part(void *arg, int part, int n_parts)
{
    const struct first_job *job = arg;
    const struct integer_rows *rows = &job->v->integer->first_rows;
    const struct kern *kern = job->v->kern;
    int64_t g0, g1, stride = vocoder_stride(job->n), latent = job->v->config->latent;
    pool_slice(integer_groups(latent), 1, part, n_parts, &g0, &g1);
    for (int64_t g = g0; g < g1; g++) {
        float *x = job->v->first_rows + g * KERN_INTEGER_GROUP * stride;
        for (int64_t i = latent - g * KERN_INTEGER_GROUP; i < KERN_INTEGER_GROUP; i++) {
            for (int64_t t = 0; t < job->n; t++) {
                x[kern->integer_by_time ? t * KERN_INTEGER_GROUP + i : i * stride + t] = 0;
            }
        }
        struct kern_integer_rounding rounding = {
            .words = words_at(kern, rows, g, VOCODER_REACH),
            .x = x,
            .stride = rows->stride,
            .x_stride = kern->integer_by_time ? KERN_INTEGER_GROUP : stride,
            .fine = true,
        };
        kern->integer_round(&rounding, job->n);
        copy_past(kern, rows, true, &job->lane->integer_first, (int)g, 0, false);
    }
}

/* As vocoder_tap_rows, of floats as the table has them. */
static void tap_floats(const struct integer_run *run, const char *name, int index, const float *x,
    int64_t stride, int64_t n_time_steps, int64_t n_channels)
{
    struct cpu_vocoder *v = run->v;
    if (!v->kern->integer_by_time) {
        vocoder_tap_rows(v, run->tap, name, index, x, stride, n_time_steps, n_channels);
    } else if (run->tap->fn) {
        for (int64_t t = 0; t < n_time_steps; t++) {
            for (int64_t c = 0; c < n_channels; c++) {
                v->tapped[t * n_channels + c] =
                    x[floats_at(v->kern, stride, c / KERN_INTEGER_GROUP, t) + c % KERN_INTEGER_GROUP];
            }
        }
        run->tap->fn(run->tap->user, name, index, v->tapped, n_time_steps, n_channels);
    }
}

/* ---- Blocks, one in the other ---- */

static void run_block(struct integer_run *run, int i_block, const struct integer_rows *rows, int64_t n);

/* Time steps t .. t + n of n_rows -> n * rate time steps, handed on. */
static void run_piece(struct integer_run *run, int i_block, const struct integer_rows *rows, int64_t t,
    int64_t n, int64_t n_rows)
{
    struct cpu_vocoder *v = run->v;
    struct integer_block *b = &v->integer->blocks[i_block];
    int64_t n_made = n * b->rate;
    b->stride = b->ready.stride = b->inner.stride = block_stride(b, n_made);
    struct integer_job job = {.v = v,
        .conv = &b->up,
        .from = rows,
        .offset = t,
        .renewed = t + n == n_rows ? &run->lane->blocks[i_block].integer_up : NULL,
        .y = b->main,
        .y_stride = b->stride,
        .n_t = n,
        .rate = b->rate,
        .next = next_unit(run, i_block, 0)};
    run_conv(&job);
    float *from = b->main, *to = b->other;
    for (int k = 0; k < VOCODER_UNITS; k++) {
        run_unit(run, i_block, k, to, from, n_made,
            k + 1 < VOCODER_UNITS ? next_unit(run, i_block, k + 1) : next_block(run, i_block));
        float *made = to;
        to = from, from = made;
    }
    tap_floats(run, "vocoder.block", i_block, from, b->stride, n_made,
        v->config->decoder_width >> (i_block + 1));
    if (i_block + 1 < v->config->n_rates) {
        run_block(run, i_block + 1, &b->ready, n_made);
    } else {
        run_last(run, b->stride, n_made);
    }
}

static void run_block(struct integer_run *run, int i_block, const struct integer_rows *rows, int64_t n)
{
    int64_t most = run->v->integer->blocks[i_block].n_piece, n_pieces = (n + most - 1) / most;
    int64_t piece = (n + n_pieces - 1) / n_pieces;
    piece = (piece + PIECE_STEP - 1) / PIECE_STEP * PIECE_STEP;
    for (int64_t t = 0; t < n; t += piece) {
        run_piece(run, i_block, rows, t, min(n - t, piece), n);
    }
}

void vocoder_integer_run(struct cpu_vocoder *v, struct cpu_vocoder_lane *lane, int n_time_steps,
    float *pcm, const struct cpu_tap *tap)
{
    struct vocoder_integer *w = v->integer;
    struct integer_run run = {v, lane, tap, pcm};
    struct first_job first = {v, lane, n_time_steps};
    enum { ROUND_WORK = 16 }; /* what rounding a number costs, in products, about */
    w->first_rows.stride = vocoder_stride(VOCODER_REACH + n_time_steps);
    w->wave_ready.stride = vocoder_stride(1 + n_time_steps);
    vocoder_spread(v, first_part, &first, integer_groups(v->config->latent), 1,
        (int64_t)n_time_steps * v->config->latent * ROUND_WORK);
    struct integer_job job = {.v = v,
        .conv = &w->first,
        .from = &w->first_rows,
        .renewed = &lane->integer_first,
        .y = w->wave,
        .y_stride = vocoder_stride(n_time_steps),
        .n_t = n_time_steps,
        .rate = 1,
        .next = {&w->blocks[0].snake, &w->wave_ready, &lane->blocks[0].integer_up, true}};
    run_conv(&job);
    tap_floats(&run, "vocoder.first", 0, w->wave, job.y_stride, n_time_steps, v->config->decoder_width);
    run_block(&run, 0, &w->wave_ready, n_time_steps);
}
