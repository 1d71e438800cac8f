/* SPDX-License-Identifier: Apache-2.0
 * Convolutions over rows of time, spread over time steps where there are many and over outputs where there are
 * few. A number is one dot product wherever it is computed, so neither shows in the result. */
#include "cpu/encoders/encoder_conv.h"

#include "base/memory.h"
#include "base/minmax.h"
#include "base/threads.h"

bool encoder_conv_init(struct encoder_conv *c, const struct conv_weights *weights, int taps)
{
    int64_t n_out = weights->w.rows, n_in = weights->w.cols / taps;
    float *row = memory_new((size_t)weights->w.cols, sizeof *row);
    c->w = memory_new((size_t)(n_out * weights->w.cols), sizeof *c->w);
    if (!row || !c->w) {
        memory_free(row);
        return false;
    }
    c->bias = weights->bias;
    c->n_in = (int)n_in, c->n_out = (int)n_out, c->taps = taps;
    for (int64_t o = 0; o < n_out; o++) {
        float *to = c->w + o * weights->w.cols;
        weight_row(&weights->w, o, row);
        for (int64_t i = 0; i < n_in; i++) {
            for (int j = 0; j < taps; j++) {
                to[j * n_in + i] = row[i * taps + j];
            }
        }
    }
    memory_free(row);
    return true;
}

void encoder_conv_fini(struct encoder_conv *c)
{
    memory_free(c->w);
    c->w = NULL;
}

struct encoder_conv_job {
    const struct encoder_conv *conv;
    const struct kern *kern;
    const struct encoder_conv_pass *run;
    bool by_output;
};

enum { TIME_STEP_GRAIN = 12, OUTPUT_GRAIN = 8, TIME_STEP_BLOCK = 96 };

/* Bias, residual and activation of outputs o0 .. o1 at one time step. */
static void finish(const struct encoder_conv_job *job, int64_t t, int64_t o0, int64_t o1)
{
    const struct encoder_conv_pass *run = job->run;
    int64_t at = t * job->conv->n_out + o0, n = o1 - o0;
    float *y = run->y + at;
    const float *bias = job->conv->bias ? job->conv->bias + o0 : NULL;
    for (int64_t o = 0; o < n; o++) {
        float sum = bias ? y[o] + bias[o] : y[o];
        y[o] = run->residual ? run->residual[at + o] + sum : sum;
    }
    for (int64_t o = 0; run->plain && o < n; o++) {
        run->plain[at + o] = y[o];
    }
    if (run->after == ENCODER_CONV_ELU) {
        job->kern->elu(y, y, n);
    }
    for (int64_t o = 0; run->after == ENCODER_CONV_RELU && o < n; o++) {
        y[o] = max(0, y[o]); /* NaN stays */
    }
}

static void encoder_conv_part(void *arg, int part, int n_parts)
{
    const struct encoder_conv_job *job = arg;
    const struct encoder_conv *c = job->conv;
    const struct encoder_conv_pass *run = job->run;
    int64_t t0 = 0, t1 = run->n_t, o0 = 0, o1 = c->n_out;
    if (job->by_output) {
        pool_slice(o1, OUTPUT_GRAIN, part, n_parts, &o0, &o1);
    } else {
        pool_slice(t1, TIME_STEP_GRAIN, part, n_parts, &t0, &t1);
    }
    for (int64_t t = t0; t < t1 && o0 < o1; t += TIME_STEP_BLOCK) {
        int n = (int)min(t1 - t, TIME_STEP_BLOCK);
        job->kern->matmul_f32(run->y + t * c->n_out, c->n_out, c->w, (int64_t)c->taps * c->n_in, o0, o1,
            run->x + t * run->x_stride, run->x_stride, n);
        for (int i = 0; i < n; i++) {
            finish(job, t + i, o0, o1);
        }
    }
}

void encoder_conv_run(const struct encoder_conv *c, const struct kern *kern, struct pool *pool,
    const struct encoder_conv_pass *run)
{
    struct encoder_conv_job job = {c, kern, run, false};
    int64_t work = run->n_t * c->n_out * c->n_in * c->taps, most = (int64_t)pool_size(pool) * 4,
            n_parts = work >> 16;
    n_parts = min(n_parts, most);
    if (n_parts <= 1) {
        encoder_conv_part(&job, 0, 1);
        return;
    }
    /* Few time steps: each part reads its own rows of the weights once. */
    job.by_output = run->n_t < n_parts * TIME_STEP_GRAIN * 2;
    pool_run(pool, encoder_conv_part, &job, (int)n_parts);
}
