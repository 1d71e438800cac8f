/* SPDX-License-Identifier: Apache-2.0
 * Convolutions of the encoders, over rows that are moments of time: [moments][channels]. The taps of one output
 * are neighbours in memory then, so a convolution is a matrix product whose columns overlap. */
#ifndef CPU_ENCODERS_MOMENTS_H
#define CPU_ENCODERS_MOMENTS_H

#include "cpu/kernels/kern.h"

struct moments_conv {
    float *w;          /* [n_out][taps][n_in], own memory */
    const float *bias; /* [n_out] or NULL, the model's */
    int n_in, n_out, taps;
};

/* Unpacks [n_out][n_in][taps] of a model's file. False when out of memory. */
bool moments_conv_init(struct moments_conv *c, const struct conv_weights *weights, int taps);
void moments_conv_fini(struct moments_conv *c); /* accepts a zeroed one */

enum moments_after { MOMENTS_AS_IS, MOMENTS_ELU, MOMENTS_RELU };

/* y[t][n_out] = after(bias + residual[t][n_out] + w x); column t of x is taps * n_in values from
 * x + t * x_stride on. */
struct moments_run {
    float *y;
    float *plain;          /* NULL, or where the value before `after` goes; may be residual */
    const float *residual; /* NULL: none */
    const float *x;
    int64_t x_stride, n_t;
    enum moments_after after;
};

struct pool;
void moments_conv_run(const struct moments_conv *c, const struct kern *kern, struct pool *pool,
    const struct moments_run *run);

#endif
