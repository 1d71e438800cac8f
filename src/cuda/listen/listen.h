/* SPDX-License-Identifier: Apache-2.0
 * The kernels of both encoders, in fp32 without tensor cores: their results are compared with
 * tables, and near-ties must fall as they do on the CPU. Activations are [time steps][channels].
 * Every number is summed in one order that depends on the shape alone. */
#ifndef CUDA_LISTEN_LISTEN_H
#define CUDA_LISTEN_LISTEN_H

#include "cuda/device/device.h"
#include "model/model.h"

#ifdef __cplusplus
extern "C" {
#endif

enum listen_edge { /* what lies before the first and behind the last row */
    LISTEN_ZERO,
    LISTEN_REPEAT, /* the edge row again */
    LISTEN_MIRROR, /* the rows mirrored, without the edge row twice */
};
enum listen_after { LISTEN_AS_IS, LISTEN_ELU, LISTEN_RELU, LISTEN_GELU, LISTEN_RELU_TANH };

/* y[t][o] = residual[t][o] + scale[o] * (bias[o] + sum over c, j of w[o][c * taps + j] * in(t, j)[c]), then `after`,
 * where in(t, j) is row t * step + j * dilation - left of x (+ add). */
struct listen_conv {
    float *y;
    int64_t y_stride;
    float *plain;          /* NULL, or where the value before `after` goes; same layout as y */
    const float *residual; /* NULL, or the same layout as y */
    const float *scale;    /* [n_out] or NULL */
    const float *x;
    const float *add; /* NULL, or [n_rows][..] with stride x_stride */
    int64_t x_stride, n_rows;
    enum listen_edge edge;
    const void *w; /* device, row-major */
    enum dtype type;
    int64_t w_stride;
    const float *bias; /* or NULL */
    int n_in, n_out, taps, dilation, step, left;
    int64_t n_t;
    enum listen_after after;
};
cudaError_t listen_conv_run(const struct listen_conv *conv, cudaStream_t stream);

/* y = LayerNorm of x[n][width] */
struct listen_norm {
    float *y;
    const float *x, *w, *bias;
    int64_t n;
    int width;
    float eps;
};
cudaError_t listen_norm_run(const struct listen_norm *norm, cudaStream_t stream);

/* Turns the heads of q and k by their positions, in place. */
struct listen_turn {
    float *q, *k; /* [n][n_heads * head], [n][n_kv_heads * head] */
    const float *inv_freq;
    int64_t n;
    int n_heads, n_kv_heads, head;
};
cudaError_t listen_turn_run(const struct listen_turn *turn, cudaStream_t stream);

/* Causal attention over all rows before, no window. */
struct listen_attend {
    float *y;
    const float *q, *k, *v;
    int64_t n;
    int n_heads, n_kv_heads, head;
    float scale;
};
enum { LISTEN_MAX_HEAD = 256 };
cudaError_t listen_attend_run(const struct listen_attend *attend, cudaStream_t stream);

/* One codebook: rows = sum / usage, columns = the same transposed, norms; then for each of n rows of
 * `left` the nearest entry, which is taken away from it. The order of all sums is the CPU's. */
struct listen_codebook {
    const void *sum; /* device, [size][dim] in `type` */
    enum dtype type;
    const float *usage; /* device, [size] */
    float *rows, *columns, *norms;
    int size, dim, terms; /* terms of a chain */
    float *left;          /* [n][dim] */
    int32_t *codes;       /* [n][codes_stride] */
    int codes_stride;
    int64_t n;
};
enum { LISTEN_MAX_DIM = 1024 };
cudaError_t listen_codebook_run(const struct listen_codebook *book, cudaStream_t stream);

/* Means over time of x[n][width], and deviations unless NULL. */
struct listen_stats {
    const float *x;
    int64_t n;
    int width;
    float *mean, *deviation;
};
cudaError_t listen_stats_run(const struct listen_stats *stats, cudaStream_t stream);

/* x = t * sigmoid(gate) + x, and a copy of x beside other blocks. */
struct listen_excite {
    float *x;
    const float *t, *gate; /* gate [width] */
    float *copy;           /* rows copy_stride apart */
    int64_t n, copy_stride;
    int width;
};
cudaError_t listen_excite_run(const struct listen_excite *excite, cudaStream_t stream);

/* Channel by channel: softmax of the scores over time, then mean and deviation of x with these weights. */
struct listen_pool {
    float *score; /* [n][width], overwritten */
    const float *x;
    int64_t n;
    int width;
    float *pooled; /* [2 * width]: means, deviations */
};
cudaError_t listen_pool_run(const struct listen_pool *pool, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
