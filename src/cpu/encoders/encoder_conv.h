/* SPDX-License-Identifier: Apache-2.0
 * Convolutions of the encoders, over rows that are time steps: [time steps][channels]. The taps of one output
 * are neighbours in memory then, so a convolution is a matrix product whose columns overlap. */
#ifndef CPU_ENCODERS_ENCODER_CONV_H
#define CPU_ENCODERS_ENCODER_CONV_H

#include "cpu/kernels/kern.h"

struct encoder_conv {
    float *w;          /* [n_out][taps][n_in], own memory */
    const float *bias; /* [n_out] or NULL, the model's */
    int n_in, n_out, taps;
};

/* Unpacks [n_out][n_in][taps] of a model's file. False when out of memory. */
bool encoder_conv_init(struct encoder_conv *c, const struct conv_weights *weights, int taps);
void encoder_conv_fini(struct encoder_conv *c); /* accepts a zeroed one */

enum encoder_conv_after { ENCODER_CONV_AS_IS, ENCODER_CONV_ELU, ENCODER_CONV_RELU };

/* y[t][n_out] = after(bias + residual[t][n_out] + w x); column t of x is taps * n_in values from
 * x + t * x_stride on. */
struct encoder_conv_pass {
    float *y;
    float *plain;          /* NULL, or where the value before `after` goes; may be residual */
    const float *residual; /* NULL: none */
    const float *x;
    int64_t x_stride, n_t;
    enum encoder_conv_after after;
};

struct pool;
void encoder_conv_run(const struct encoder_conv *c, const struct kern *kern, struct pool *pool,
    const struct encoder_conv_pass *run);

#endif
