/* SPDX-License-Identifier: Apache-2.0
 * The speaker encoder (ECAPA-TDNN) over rows of time. Every convolution keeps the length: past the ends the
 * recording is mirrored, without its edge row twice. Sums over time are made in double. */
#include "cpu/encoders/speaker.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/minmax.h"
#include "base/threads.h"
#include "cpu/encoders/encoder_conv.h"

enum { ROW_GRAIN = 4, CHANNEL_GRAIN = 16 };

static const double least_variance = 1e-12;

struct speaker_run {
    const struct model *model;
    const struct kern *kern;
    struct pool *pool;
    int64_t n;
    int channels, last; /* of the blocks, and of all but the first together */
    float *x;           /* [n][channels]: into a block, out of it */
    float *t, *u;       /* [n][channels] */
    float *taps;        /* [n][widest column of a convolution with taps] */
    float *dense;       /* [n][channels of a group] */
    float *joined;    /* [n][last]: the blocks beside each other; later the weights of the time steps */
    float *mfa;       /* [n][last] */
    float *attention; /* [n][attention channels] */
    float *pooled;    /* [2 * last]: means, deviations */
    float *small, *narrow; /* [channels or attention channels] */
};

static void run_free(struct speaker_run *r)
{
    float *all[] = {r->x, r->t, r->u, r->taps, r->dense, r->joined, r->mfa, r->attention, r->pooled,
        r->small, r->narrow};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        memory_free(all[i]);
    }
}

static bool run_init(struct speaker_run *r)
{
    const struct speaker_config *s = &r->model->config->speaker;
    int64_t widest = (int64_t)s->n_mels * s->taps[0];
    for (int i = 1; i < s->n_blocks; i++) {
        widest = max(widest, (int64_t)s->channels[i] / s->groups * s->taps[i]);
    }
    int64_t narrow = max(s->squeeze_channels, s->attention_channels);
    r->channels = s->channels[0];
    r->last = s->last_channels;
    struct {
        float **at;
        int64_t n, size;
    } parts[] = {
        {&r->x, r->n, r->channels},
        {&r->t, r->n, r->channels},
        {&r->u, r->n, r->channels},
        {&r->taps, r->n, widest},
        {&r->dense, r->n, r->channels / s->groups},
        {&r->joined, r->n, r->last},
        {&r->mfa, r->n, r->last},
        {&r->attention, r->n, s->attention_channels},
        {&r->pooled, 2, r->last},
        {&r->small, max(r->channels, narrow), 1},
        {&r->narrow, narrow, 1},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        *parts[i].at = memory_new((size_t)parts[i].n, (size_t)parts[i].size * sizeof(float));
        if (!*parts[i].at) {
            return false;
        }
    }
    return true;
}

/* y[t] = w x[t] + bias for every time step, 1 tap; ReLU when asked. */
struct row_job {
    float *y;
    const float *bias;
    int64_t n, n_out;
    bool relu;
};

static void row_part(void *arg, int part, int n_parts)
{
    const struct row_job *job = arg;
    int64_t t0, t1;
    pool_slice(job->n, ROW_GRAIN, part, n_parts, &t0, &t1);
    for (int64_t t = t0; t < t1; t++) {
        float *y = job->y + t * job->n_out;
        for (int64_t o = 0; o < job->n_out; o++) {
            y[o] += job->bias[o];
            y[o] = job->relu && y[o] < 0 ? 0 : y[o];
        }
    }
}

static void pointwise(const struct speaker_run *r, const struct conv_weights *c, float *y,
    const float *x, int64_t n, bool relu)
{
    kern_matmul(r->kern, r->pool, y, c->w.rows, &c->w, x, c->w.cols, (int)n, NULL);
    struct row_job job = {y, c->bias, n, c->w.rows, relu};
    pool_run(r->pool, row_part, &job, pool_size(r->pool));
}

/* TDNN with taps: columns are gathered, mirrored at the ends, from `n_in` channels of rows that are `x_stride` wide
 * (plus those of `add`, unless NULL); the outputs go to rows `y_stride` wide. */
struct taps_job {
    const struct speaker_run *run;
    const float *x, *add;
    int64_t x_stride, add_stride;
    int n_in, taps, dilation;
};

static void gather_part(void *arg, int part, int n_parts)
{
    const struct taps_job *job = arg;
    int64_t t0, t1, n = job->run->n;
    pool_slice(n, ROW_GRAIN, part, n_parts, &t0, &t1);
    float *to = job->run->taps + t0 * job->taps * job->n_in;
    for (int64_t t = t0; t < t1; t++) {
        for (int j = 0; j < job->taps; j++, to += job->n_in) {
            int64_t from = t + (int64_t)(j - job->taps / 2) * job->dilation;
            from = from < 0 ? -from : from >= n ? 2 * (n - 1) - from : from;
            memcpy(to, job->x + from * job->x_stride, (size_t)job->n_in * sizeof *to);
            for (int i = 0; job->add && i < job->n_in; i++) {
                to[i] += job->add[from * job->add_stride + i];
            }
        }
    }
}

static bool tdnn(const struct taps_job *job, const struct conv_weights *weights, float *y)
{
    const struct speaker_run *r = job->run;
    struct encoder_conv conv = {0};
    bool good = encoder_conv_init(&conv, weights, job->taps);
    if (good) {
        struct encoder_conv_pass run = {.y = y,
            .x = r->taps,
            .x_stride = (int64_t)job->taps * job->n_in,
            .n_t = r->n,
            .after = ENCODER_CONV_RELU};
        pool_run(r->pool, gather_part, (void *)job, pool_size(r->pool));
        encoder_conv_run(&conv, r->kern, r->pool, &run);
    }
    encoder_conv_fini(&conv);
    return good;
}

static void copy_columns(
    float *y, int64_t y_stride, const float *x, int64_t x_stride, int64_t n, int64_t width)
{
    for (int64_t t = 0; t < n; t++) {
        memcpy(y + t * y_stride, x + t * x_stride, (size_t)width * sizeof *y);
    }
}

/* The groups one after the other, each on its own channels and what the group before made of its own: t -> u. */
static bool res2net(const struct speaker_run *r, const struct speaker_block *b, int i_block)
{
    const struct speaker_config *s = &r->model->config->speaker;
    int width = r->channels / s->groups;
    struct taps_job job = {.run = r,
        .x_stride = r->channels,
        .add_stride = r->channels,
        .n_in = width,
        .taps = s->taps[i_block],
        .dilation = s->dilations[i_block]};
    copy_columns(r->u, r->channels, r->t, r->channels, r->n, width);
    for (int g = 1; g < s->groups; g++) {
        job.x = r->t + (int64_t)g * width;
        job.add = g > 1 ? r->u + (int64_t)(g - 1) * width : NULL;
        if (!tdnn(&job, &b->groups[g - 1], r->dense)) {
            return false;
        }
        copy_columns(r->u + (int64_t)g * width, r->channels, r->dense, width, r->n, width);
    }
    return true;
}

/* Means over time, and deviations unless NULL. */
struct stats_job {
    const float *x; /* [n][width] */
    int64_t n, width;
    float *mean, *deviation;
};

static void stats_part(void *arg, int part, int n_parts)
{
    const struct stats_job *job = arg;
    int64_t begin, end;
    pool_slice(job->width, CHANNEL_GRAIN, part, n_parts, &begin, &end);
    for (; begin < end; begin += CHANNEL_GRAIN) {
        int64_t n_c = min(end - begin, CHANNEL_GRAIN);
        double mean[CHANNEL_GRAIN] = {0}, square[CHANNEL_GRAIN] = {0};
        for (int64_t t = 0; t < job->n; t++) {
            for (int64_t c = 0; c < n_c; c++) {
                mean[c] += (double)job->x[t * job->width + begin + c];
            }
        }
        for (int64_t c = 0; c < n_c; c++) {
            mean[c] /= (double)job->n;
            job->mean[begin + c] = (float)mean[c];
        }
        for (int64_t t = 0; job->deviation && t < job->n; t++) {
            for (int64_t c = 0; c < n_c; c++) {
                double d = (double)job->x[t * job->width + begin + c] - mean[c];
                square[c] += d * d;
            }
        }
        for (int64_t c = 0; job->deviation && c < n_c; c++) {
            job->deviation[begin + c] = (float)sqrt(fmax(square[c] / (double)job->n, least_variance));
        }
    }
}

/* x += t * sigmoid(excite(relu(squeeze(mean over time of t)))) */
static void squeeze_and_excite(const struct speaker_run *r, const struct speaker_block *b)
{
    struct stats_job stats = {r->t, r->n, r->channels, r->small, NULL};
    pool_run(r->pool, stats_part, &stats, pool_size(r->pool));
    pointwise(r, &b->squeeze, r->narrow, r->small, 1, true);
    pointwise(r, &b->excite, r->small, r->narrow, 1, false);
    for (int c = 0; c < r->channels; c++) {
        r->small[c] = 1.0f / (1.0f + expf(-r->small[c]));
    }
    for (int64_t t = 0; t < r->n; t++) {
        for (int c = 0; c < r->channels; c++) {
            int64_t i = t * r->channels + c;
            r->x[i] = r->t[i] * r->small[c] + r->x[i];
        }
    }
}

static bool run_blocks(const struct speaker_run *r, const float *mels)
{
    const struct speaker_config *s = &r->model->config->speaker;
    const struct speaker_weights *w = &r->model->speaker;
    struct taps_job first = {.run = r,
        .x = mels,
        .x_stride = s->n_mels,
        .n_in = s->n_mels,
        .taps = s->taps[0],
        .dilation = s->dilations[0]};
    if (!tdnn(&first, &w->blocks[0].conv_in, r->x)) {
        return false;
    }
    for (int i = 1; i < s->n_blocks; i++) {
        const struct speaker_block *b = &w->blocks[i];
        pointwise(r, &b->conv_in, r->t, r->x, r->n, true);
        if (!res2net(r, b, i)) {
            return false;
        }
        pointwise(r, &b->conv_out, r->t, r->u, r->n, true);
        squeeze_and_excite(r, b);
        copy_columns(
            r->joined + (int64_t)(i - 1) * r->channels, r->last, r->x, r->channels, r->n, r->channels);
    }
    return true;
}

/* tanh(relu(W (x, mean, deviation) + bias)) for every time step: mean and deviation are the same for all of them, so
 * their products are made once. */
static bool attend_first(const struct speaker_run *r)
{
    const struct conv_weights *c = &r->model->speaker.attend1;
    int64_t n_out = c->w.rows;
    float *own = memory_new((size_t)n_out, (size_t)r->last * sizeof *own),
          *row = memory_new((size_t)c->w.cols, sizeof *row);
    bool good = own && row;
    for (int64_t o = 0; good && o < n_out; o++) {
        double sum = (double)c->bias[o];
        weight_row(&c->w, o, row);
        memcpy(own + o * r->last, row, (size_t)r->last * sizeof *own);
        for (int i = 0; i < 2 * r->last; i++) {
            sum += (double)row[r->last + i] * (double)r->pooled[i];
        }
        r->narrow[o] = (float)sum;
    }
    if (good) {
        struct conv_weights part = {{own, DTYPE_F32, n_out, r->last}, r->narrow};
        pointwise(r, &part, r->attention, r->mfa, r->n, true);
        for (int64_t i = 0; i < r->n * n_out; i++) {
            r->attention[i] = tanhf(r->attention[i]);
        }
    }
    memory_free(own);
    memory_free(row);
    return good;
}

/* Channel by channel: softmax of the scores (in r->joined) over time, then mean and deviation with these weights. */
static void pool_part(void *arg, int part, int n_parts)
{
    const struct speaker_run *r = arg;
    int64_t begin, end;
    pool_slice(r->last, CHANNEL_GRAIN, part, n_parts, &begin, &end);
    for (; begin < end; begin += CHANNEL_GRAIN) {
        int64_t n_c = min(end - begin, CHANNEL_GRAIN);
        float largest[CHANNEL_GRAIN];
        double sum[CHANNEL_GRAIN] = {0}, mean[CHANNEL_GRAIN] = {0}, square[CHANNEL_GRAIN] = {0};
        float *score = r->joined + begin;
        const float *x = r->mfa + begin;
        memcpy(largest, score, (size_t)n_c * sizeof *largest);
        for (int64_t t = 1; t < r->n; t++) {
            for (int64_t c = 0; c < n_c; c++) {
                largest[c] = fmaxf(largest[c], score[t * r->last + c]);
            }
        }
        for (int64_t t = 0; t < r->n; t++) {
            for (int64_t c = 0; c < n_c; c++) {
                int64_t i = t * r->last + c;
                score[i] = expf(score[i] - largest[c]);
                sum[c] += (double)score[i];
                mean[c] += (double)score[i] * (double)x[i];
            }
        }
        for (int64_t t = 0; t < r->n; t++) {
            for (int64_t c = 0; c < n_c; c++) {
                int64_t i = t * r->last + c;
                double d = (double)x[i] - mean[c] / sum[c];
                square[c] += (double)score[i] * d * d;
            }
        }
        for (int64_t c = 0; c < n_c; c++) {
            r->pooled[begin + c] = (float)(mean[c] / sum[c]);
            r->pooled[r->last + begin + c] = (float)sqrt(fmax(square[c] / sum[c], least_variance));
        }
    }
}

static bool run_pooling(const struct speaker_run *r)
{
    const struct speaker_weights *w = &r->model->speaker;
    pointwise(r, &w->join, r->mfa, r->joined, r->n, true);
    struct stats_job stats = {r->mfa, r->n, r->last, r->pooled, r->pooled + r->last};
    pool_run(r->pool, stats_part, &stats, pool_size(r->pool));
    if (!attend_first(r)) {
        return false;
    }
    pointwise(r, &w->attend2, r->joined, r->attention, r->n, false);
    pool_run(r->pool, pool_part, (void *)r, pool_size(r->pool));
    return true;
}

utter_status cpu_speaker(const struct model *model, const struct kern *kern, struct pool *pool,
    const float *mels, size_t n_mels, float *vector, utter_error *error)
{
    struct speaker_run r = {.model = model, .kern = kern, .pool = pool, .n = (int64_t)n_mels};
    bool good = run_init(&r) && run_blocks(&r, mels) && run_pooling(&r);
    if (good) {
        pointwise(&r, &model->speaker.out, vector, r.pooled, 1, false);
    }
    run_free(&r);
    if (!good) {
        return error_memory(error, "the speaker encoder");
    }
    for (int64_t i = 0; i < model->config->speaker_width; i++) {
        if (!isfinite(vector[i])) {
            return error_set(error, UTTER_E_NUMBER,
                "the speaker encoder came to a value that is not a number (damaged weights?)");
        }
    }
    return UTTER_OK;
}
