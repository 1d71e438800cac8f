/* SPDX-License-Identifier: Apache-2.0
 * The vocoder at the frame's own pace: codes -> tables -> first convolution -> transformer -> upsampling.
 * Comes in: codes. Goes out: v->first_rows, the input of the convolution stack, behind its past. One column
 * of numbers a time step, but for the convolutions, which want one row a channel. */
#include <math.h>
#include <string.h>

#include "base/minmax.h"
#include "cpu/vocoder/vocoder_integer.h"

enum { TIME_STEP_WORK = 16 }; /* what a number of a norm or an activation costs, in products, about */

static const float usage_least = 1e-5f, layer_norm_eps = 1e-6f;

static int64_t all_ratios(const struct codec_config *c)
{
    int64_t n = 1;
    for (int i = 0; i < c->n_ratios; i++) {
        n *= c->ratios[i];
    }
    return n;
}

void vocoder_front_carve(struct cpu_vocoder *v, struct vocoder_carver *c)
{
    const struct codec_config *d = v->config;
    int64_t frames = BACKEND_MAX_FEED, time_steps = frames * all_ratios(d), latent = d->latent;
    for (int i = 0; i < 2; i++) {
        v->picked[i] = vocoder_carve(c, frames * (d->codebook_dim / 2));
        v->projected[i] = vocoder_carve(c, frames * d->codebook_dim);
        v->columns[i] = vocoder_carve(c, (VOCODER_REACH + time_steps) * latent);
    }
    v->quantized = vocoder_carve(c, vocoder_stride(VOCODER_PRE_REACH + frames) * d->codebook_dim);
    v->latent_rows = vocoder_carve(c, vocoder_stride(frames) * latent);
    v->narrow = vocoder_carve(c, frames * d->stack.width);
    v->normed = vocoder_carve(c, time_steps * latent);
    v->wide = vocoder_carve(c, time_steps * latent * VOCODER_WIDEN);
    int64_t rows = (int64_t)integer_groups(latent) * KERN_INTEGER_GROUP;
    v->first_rows = vocoder_carve(c, vocoder_stride(VOCODER_REACH + time_steps) * rows);
    for (int i = 0; i < d->n_ratios; i++) {
        v->upsample[i].taps = vocoder_carve(c, latent * (VOCODER_REACH + 1));
    }
}

/* ---- Tables ---- */

/* The official order: a row is divided, the rows of the later tables are summed from the first on. */
static void pick_rows(struct cpu_vocoder *v, const int32_t *codes, float *first, float *rest)
{
    const struct codec_config *d = v->config;
    const struct vocoder_weights *w = &v->model->vocoder;
    int half = d->codebook_dim / 2;
    float *row = v->projected[0]; /* free until the products */
    memset(first, 0, (size_t)half * sizeof *first);
    memset(rest, 0, (size_t)half * sizeof *rest);
    for (int g = 0; g < d->n_codebooks; g++) {
        float *sum = g < d->n_semantic ? first : rest, usage = w->table_usage[g][codes[g]];
        usage = max(usage_least, usage); /* not a number stays */
        weight_row(&w->table_sum[g], codes[g], row);
        for (int i = 0; i < half; i++) {
            sum[i] += row[i] / usage;
        }
    }
}

/* codes -> v->projected[0][n][codebook_dim] */
static void run_quantizer(struct cpu_vocoder *v, const int32_t *codes, int n, const struct cpu_tap *tap)
{
    const struct codec_config *d = v->config;
    const struct vocoder_weights *w = &v->model->vocoder;
    int64_t dim = d->codebook_dim, half = dim / 2;
    for (int t = 0; t < n; t++) {
        pick_rows(v, codes + t * d->n_codebooks, v->picked[0] + t * half, v->picked[1] + t * half);
    }
    float *sum = v->projected[0];
    kern_matmul(v->kern, v->pool, sum, dim, &w->first_projection, v->picked[0], half, n, NULL);
    kern_matmul(
        v->kern, v->pool, v->projected[1], dim, &w->rest_projection, v->picked[1], half, n, NULL);
    for (int64_t i = 0; i < n * dim; i++) {
        sum[i] += v->projected[1][i];
    }
    if (tap->fn) {
        tap->fn(tap->user, "vocoder.quantizer", 0, sum, n, dim);
    }
}

/* ---- Columns and rows ---- */

/* Columns x[n][n_channels] -> one row a channel, behind its past. Returns the rows' stride. */
static int64_t line_up(
    float *rows, float *past, int64_t n_past, const float *x, int64_t n_channels, int64_t n)
{
    int64_t stride = vocoder_stride(n_past + n);
    for (int64_t c = 0; c < n_channels; c++) {
        float *row = rows + c * stride;
        for (int64_t t = 0; t < n; t++) {
            row[n_past + t] = x[t * n_channels + c];
        }
        if (n_past) {
            vocoder_join_past(row, past + c * n_past, n_past, n);
        }
    }
    return stride;
}

/* Columns x[n][n_channels] -> the kernels' groups by time steps, with room for vocoder_stride(n). */
static void group_up(float *groups, const float *x, int64_t n_channels, int64_t n)
{
    for (int64_t c = 0; c < n_channels;
         c += KERN_INTEGER_GROUP, groups += KERN_INTEGER_GROUP * vocoder_stride(n)) {
        int64_t width = min(n_channels - c, KERN_INTEGER_GROUP);
        for (int64_t t = 0; t < n; t++) {
            memcpy(groups + t * KERN_INTEGER_GROUP, x + t * n_channels + c, (size_t)width * sizeof *x);
        }
    }
}

struct rows_job {
    struct cpu_vocoder *v;
    struct kern_conv conv;
    int n_out;
};

static void pre_conv_part(void *arg, int part, int n_parts)
{
    const struct rows_job *job = arg;
    int64_t o0, o1;
    pool_slice(job->n_out, VOCODER_GRAIN, part, n_parts, &o0, &o1);
    job->v->kern->conv(&job->conv, (int)o0, (int)o1);
}

/* The first convolution: columns v->projected[0][n][codebook_dim] -> y[n][latent]. */
static void run_pre_conv(
    struct cpu_vocoder *v, struct cpu_vocoder_lane *lane, float *y, int n, const struct cpu_tap *tap)
{
    int64_t dim = v->config->codebook_dim, latent = v->config->latent;
    int64_t stride = line_up(v->quantized, lane->pre_past, VOCODER_PRE_REACH, v->projected[0], dim, n);
    struct rows_job job = {v, vocoder_conv_of(&v->pre_conv, v->quantized, stride), (int)latent};
    job.conv.y = v->latent_rows, job.conv.y_stride = vocoder_stride(n), job.conv.n_t = n;
    vocoder_spread(
        v, pre_conv_part, &job, latent, VOCODER_GRAIN, latent * dim * (VOCODER_PRE_REACH + 1) * n);
    vocoder_transpose(y, v->latent_rows, job.conv.y_stride, latent, n);
    if (tap->fn) {
        tap->fn(tap->user, "vocoder.pre_conv", 0, y, n, latent);
    }
}

/* ---- Transformer ---- */

static void add_bias(float *x, const float *bias, int64_t n, int64_t width)
{
    for (int64_t t = 0; t < n; t++) {
        for (int64_t c = 0; c < width; c++) {
            x[t * width + c] += bias[c];
        }
    }
}

/* y = W x + bias for n columns */
static void run_linear(
    struct cpu_vocoder *v, float *y, const struct conv_weights *w, const float *x, int n)
{
    kern_matmul(v->kern, v->pool, y, w->w.rows, &w->w, x, w->w.cols, n, NULL);
    add_bias(y, w->bias, n, w->w.rows);
}

static void run_transformer(
    struct cpu_vocoder *v, struct cpu_vocoder_lane *lane, float *x, int n, const struct cpu_tap *tap)
{
    const struct codec_config *d = v->config;
    const struct vocoder_weights *w = v->weights;
    struct cpu_column columns[BACKEND_MAX_FEED];
    int64_t width = d->stack.width;
    for (int t = 0; t < n; t++) {
        columns[t] = (struct cpu_column){&lane->cache, lane->position + t, NULL};
    }
    run_linear(v, v->narrow, &w->stack_in, x, n);
    cpu_stack_run(&v->stack, v->narrow, columns, n, v->stack_scratch, tap, NULL);
    for (int t = 0; t < n; t++) {
        float *column = v->narrow + t * width;
        v->kern->norm(column, column, w->stack.norm, width, d->stack.norm_eps);
    }
    run_linear(v, x, &w->stack_out, v->narrow, n);
    if (tap->fn) {
        tap->fn(tap->user, "vocoder.stack", 0, x, n, d->latent);
    }
}

/* ---- Upsampling ---- */

struct upsample_job {
    struct cpu_vocoder *v;
    struct kern_upconv up;
    const struct convnext_weights *w;
    const float *taps; /* [7][latent] */
    const float *past; /* [6 + n][latent] */
    int n;
};

static void up_part(void *arg, int part, int n_parts)
{
    const struct upsample_job *job = arg;
    struct kern_upconv up = job->up;
    int64_t o0, o1;
    pool_slice(up.n_out, KERN_UPCONV_GRAIN, part, n_parts, &o0, &o1);
    up.products += part * job->v->n_products;
    job->v->kern->upconv(&up, (int)o0, (int)o1);
}

/* y = the depthwise convolution of one time step: x is the first of the 7 columns that it sees. */
static void convolve_depthwise(
    float *y, const float *x, const float *taps, const float *bias, int64_t n)
{
    for (int64_t c = 0; c < n; c++) {
        float sum = 0;
        for (int j = 0; j <= VOCODER_REACH; j++) {
            sum += taps[j * n + c] * x[j * n + c];
        }
        y[c] = sum + bias[c];
    }
}

static void normalise_layer(float *x, const float *w, const float *bias, int64_t n)
{
    double sum = 0, squares = 0;
    for (int64_t c = 0; c < n; c++) {
        sum += (double)x[c];
    }
    double mean = sum / (double)n;
    for (int64_t c = 0; c < n; c++) {
        double away = (double)x[c] - mean;
        squares += away * away;
    }
    double scale = 1.0 / sqrt(squares / (double)n + (double)layer_norm_eps);
    for (int64_t c = 0; c < n; c++) {
        x[c] = (float)(((double)x[c] - mean) * scale) * w[c] + bias[c];
    }
}

static void depthwise_part(void *arg, int part, int n_parts)
{
    const struct upsample_job *job = arg;
    int64_t t0, t1, latent = job->v->config->latent;
    pool_slice(job->n, 1, part, n_parts, &t0, &t1);
    for (int64_t t = t0; t < t1; t++) {
        float *y = job->v->normed + t * latent;
        convolve_depthwise(y, job->past + t * latent, job->taps, job->w->depthwise.bias, latent);
        normalise_layer(y, job->w->norm, job->w->norm_bias, latent);
    }
}

static void gelu_part(void *arg, int part, int n_parts)
{
    const struct upsample_job *job = arg;
    int64_t t0, t1, wide = (int64_t)VOCODER_WIDEN * job->v->config->latent;
    pool_slice(job->n, 1, part, n_parts, &t0, &t1);
    add_bias(job->v->wide + t0 * wide, job->w->widen.bias, t1 - t0, wide);
    job->v->kern->gelu(job->v->wide + t0 * wide, (t1 - t0) * wide);
}

/* The ConvNeXt block on n columns, in place; `past` holds the 6 columns before them in front. */
static void run_convnext(struct upsample_job *job, float *x)
{
    struct cpu_vocoder *v = job->v;
    const struct convnext_weights *w = job->w;
    int64_t latent = v->config->latent, wide = VOCODER_WIDEN * latent;
    int n = job->n;
    vocoder_spread(v, depthwise_part, job, n, 1, n * latent * TIME_STEP_WORK);
    kern_matmul(v->kern, v->pool, v->wide, wide, &w->widen.w, v->normed, latent, n, NULL);
    vocoder_spread(v, gelu_part, job, n, 1, n * wide * TIME_STEP_WORK);
    run_linear(v, v->normed, &w->narrow, v->wide, n);
    for (int t = 0; t < n; t++) {
        for (int64_t c = 0; c < latent; c++) {
            x[t * latent + c] += w->gamma[c] * v->normed[t * latent + c];
        }
    }
}

/* The transposed convolution as a product: it has as many taps as places, so no two inputs meet in an output. */
static void widen_time(struct cpu_vocoder *v, int i, float *y, const float *x, int n)
{
    const struct weight *w = &v->integer->up[i];
    int64_t latent = v->config->latent;
    kern_matmul(v->kern, v->pool, y, w->rows, w, x, latent, n, NULL);
    add_bias(y, v->weights->upsample[i].up.bias, n * v->config->ratios[i], latent);
}

/* Stage i: x[n][latent] -> y[n * ratio][latent], with the stage's past in front of y. */
static int run_upsample(
    struct cpu_vocoder *v, struct cpu_vocoder_lane *lane, int i, float *y, const float *x, int n)
{
    const struct convnext_weights *w = &v->weights->upsample[i];
    int ratio = v->config->ratios[i];
    int64_t latent = v->config->latent, n_past = VOCODER_REACH * latent;
    float *past = y - n_past;
    struct upsample_job job = {
        .v = v, .w = w, .taps = v->upsample[i].taps, .past = past, .n = n * ratio};
    if (v->integer) {
        widen_time(v, i, y, x, n);
    } else {
        job.up = (struct kern_upconv){.y = y,
            .x = x,
            .w = v->upsample[i].up_w,
            .bias = w->up.bias,
            .products = v->products,
            .y_stride = 1,
            .y_step = latent,
            .x_stride = 1,
            .x_step = latent,
            .n_in = (int)latent,
            .n_out = (int)latent,
            .stride = ratio,
            .taps = ratio,
            .n_t = n};
        vocoder_spread(v, up_part, &job, latent, KERN_UPCONV_GRAIN, latent * latent * ratio * n);
    }
    vocoder_join_past(past, lane->depthwise[i], n_past, job.n * latent);
    run_convnext(&job, y);
    return job.n;
}

int vocoder_front_run(struct cpu_vocoder *v, struct cpu_vocoder_lane *lane, const int32_t *codes,
    int n_frames, const struct cpu_tap *tap)
{
    const struct codec_config *d = v->config;
    int64_t latent = d->latent;
    run_quantizer(v, codes, n_frames, tap);
    float *x = v->columns[0] + VOCODER_REACH * latent;
    run_pre_conv(v, lane, x, n_frames, tap);
    run_transformer(v, lane, x, n_frames, tap);
    int n = n_frames;
    for (int i = 0; i < d->n_ratios; i++) {
        float *y = v->columns[1 - i % 2] + VOCODER_REACH * latent;
        n = run_upsample(v, lane, i, y, x, n);
        x = y;
        if (tap->fn) {
            tap->fn(tap->user, "vocoder.upsample", i, x, n, latent);
        }
    }
    if (v->integer && v->kern->integer_by_time) {
        group_up(v->first_rows, x, latent, n);
    } else if (v->integer) {
        line_up(v->first_rows, NULL, 0, x, latent, n); /* the past waits in integers */
    } else {
        line_up(v->first_rows, lane->first_past, VOCODER_REACH, x, latent, n);
    }
    return n;
}
