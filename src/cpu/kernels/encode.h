/* SPDX-License-Identifier: Apache-2.0
 * Kernels of the codec's encoder: ELU, and the nearest row of a code table. Contracts in cpu/kernels/kern.h.
 * Included by body.h. */
#include <math.h>

#include "base/minmax.h"

/* e^x - 1 for x <= 0, relative error of a few ulp; NaN stays. */
KERN_INLINE vf encode_expm1(vf x)
{
    vf low = vf_set(-87.0f), p;
    vi n = vf_exp_parts(vf_select(x < low, low, x), &p);
    vf scale = (vf)((n + 127) << 23); /* 2^n, n from -126 to 0: normal */
    return vf_select(x == x, vf_fma(scale, p, scale - 1.0f), x);
}

/* min has the value that may be NaN last: then it stays. */
KERN_INLINE vf encode_elu(vf x)
{
    return vf_select(x > vf_set(0), x, encode_expm1(vf_min(vf_set(0), x)));
}

static void elu(float *y, const float *x, int64_t n)
{
    int64_t i = 0;
    for (; i + KERN_LANES <= n; i += KERN_LANES) {
        vf_store(y + i, encode_elu(vf_load(x + i)));
    }
    if (i < n) {
        vf_store_part(y + i, encode_elu(vf_load_part(x + i, n - i)), n - i);
    }
}

enum { NEAREST_VECTORS = 2, NEAREST_COLUMNS = 4, NEAREST_PIECE = NEAREST_VECTORS * KERN_LANES };

/* Squared distances of some columns to NEAREST_PIECE entries. */
KERN_INLINE void nearest_tile(const struct kern_nearest *t, int columns, const float *entries,
    const float *norms, const float *x, int64_t x_stride, const float *x_norm, float *out)
{
    vf sum[NEAREST_COLUMNS][NEAREST_VECTORS], all[NEAREST_COLUMNS][NEAREST_VECTORS];
    KERN_UNROLL
    for (int c = 0; c < columns; c++) {
        KERN_UNROLL
        for (int v = 0; v < NEAREST_VECTORS; v++) {
            all[c][v] = (vf){0};
        }
    }
    for (int begin = 0; begin < t->dim + 2; begin += t->terms) {
        int end = begin + t->terms, last = min(end, t->dim);
        KERN_UNROLL
        for (int c = 0; c < columns; c++) {
            KERN_UNROLL
            for (int v = 0; v < NEAREST_VECTORS; v++) {
                sum[c][v] = (vf){0};
            }
        }
        for (int k = begin; k < last; k++) {
            vf es[NEAREST_VECTORS];
            KERN_UNROLL
            for (int v = 0; v < NEAREST_VECTORS; v++) {
                es[v] = vf_load(entries + (int64_t)k * KERN_NEAREST_BLOCK + v * KERN_LANES);
            }
            KERN_UNROLL
            for (int c = 0; c < columns; c++) {
                vf xs = vf_set(-2.0f * x[c * x_stride + k]);
                KERN_UNROLL
                for (int v = 0; v < NEAREST_VECTORS; v++) {
                    sum[c][v] = vf_fma(xs, es[v], sum[c][v]);
                }
            }
        }
        KERN_UNROLL
        for (int c = 0; c < columns; c++) {
            KERN_UNROLL
            for (int v = 0; v < NEAREST_VECTORS; v++) {
                vf s = sum[c][v];
                s = begin <= t->dim && t->dim < end ? s + x_norm[c] : s;
                s = begin <= t->dim + 1 && t->dim + 1 < end ? s + vf_load(norms + v * KERN_LANES) : s;
                all[c][v] += s;
            }
        }
    }
    KERN_UNROLL
    for (int c = 0; c < columns; c++) {
        KERN_UNROLL
        for (int v = 0; v < NEAREST_VECTORS; v++) {
            vf_store(out + c * NEAREST_PIECE + v * KERN_LANES, all[c][v]);
        }
    }
}

/* The first of the smallest distances, for up to NEAREST_COLUMNS columns. */
KERN_INLINE void nearest_columns(const struct kern_nearest *t, int columns, const float *x,
    int64_t x_stride, const float *x_norm, int32_t *index)
{
    float best[NEAREST_COLUMNS], piece[NEAREST_COLUMNS * NEAREST_PIECE];
    for (int c = 0; c < columns; c++) {
        best[c] = INFINITY;
        index[c] = 0;
    }
    for (int64_t e = 0; e < t->n; e += NEAREST_PIECE) {
        int64_t block = e / KERN_NEAREST_BLOCK, inside = e % KERN_NEAREST_BLOCK;
        nearest_tile(t, columns, t->table + block * t->dim * KERN_NEAREST_BLOCK + inside, t->norms + e,
            x, x_stride, x_norm, piece);
        int64_t n = min(t->n - e, NEAREST_PIECE);
        for (int c = 0; c < columns; c++) {
            for (int64_t i = 0; i < n; i++) {
                float square = piece[c * NEAREST_PIECE + i], distance = sqrtf(max(square, 0));
                if (distance < best[c]) {
                    best[c] = distance;
                    index[c] = (int32_t)(e + i);
                }
            }
        }
    }
}

static void nearest(const struct kern_nearest *t, const float *x, int64_t x_stride, const float *x_norm,
    int n_c, int32_t *index)
{
    int c = 0;
    for (; c + NEAREST_COLUMNS <= n_c; c += NEAREST_COLUMNS) {
        nearest_columns(t, NEAREST_COLUMNS, x + c * x_stride, x_stride, x_norm + c, index + c);
    }
    for (; c < n_c; c++) {
        nearest_columns(t, 1, x + c * x_stride, x_stride, x_norm + c, index + c);
    }
}
