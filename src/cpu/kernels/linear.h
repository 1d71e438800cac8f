/* SPDX-License-Identifier: Apache-2.0
 * Kernels of the transformer stacks: matrix products, gated activations, attention. Contracts in
 * cpu/kernels/kern.h. Included by body.h. */
#include <math.h>

#include "base/minmax.h"

/* A dot product is one vector accumulator over k in steps of KERN_LANES, the tail filled up with zeros,
 * then vf_sum. Tiles only decide which dot products run side by side. */
enum {
    TILE_ROWS = 4,
    TILE_COLUMNS = KERN_LANES == 16  ? 6
                   : KERN_LANES == 8 ? 3
                                     : 2, /* TILE_ROWS * this accumulators fit the registers */
    TALL_ROWS = 8,                        /* for one column: enough sums in flight */
    BLOCK_BYTES = 128 << 10,              /* of weights that stay in the L2 cache */
};

KERN_INLINE size_t weight_bytes(enum dtype type)
{
    return type == DTYPE_F32 ? 4 : 2;
}

KERN_INLINE vf weight_load(enum dtype type, const char *w, int64_t k)
{
    if (type == DTYPE_F32) {
        return vf_load((const float *)(const void *)w + k);
    }
    const uint16_t *h = (const uint16_t *)(const void *)w + k;
    return type == DTYPE_BF16 ? vf_bf16(h) : vf_f16(h);
}

KERN_INLINE vf weight_load_part(enum dtype type, const char *w, int64_t k, int64_t n)
{
    char part[4 * KERN_LANES] = {0};
    memcpy(part, w + (size_t)k * weight_bytes(type), (size_t)n * weight_bytes(type));
    return weight_load(type, part, 0);
}

/* One step of KERN_LANES terms for every sum of a tile. */
KERN_INLINE void tile_step(enum dtype type, int rows, int columns, vf (*sum)[TILE_COLUMNS],
    const char *w, size_t row_bytes, const float *x, int64_t x_stride, int64_t k)
{
    vf xs[TILE_COLUMNS];
    KERN_UNROLL
    for (int c = 0; c < columns; c++) {
        xs[c] = vf_load(x + c * x_stride + k);
    }
    KERN_UNROLL
    for (int r = 0; r < rows; r++) {
        vf ws = weight_load(type, w + (size_t)r * row_bytes, k);
        KERN_UNROLL
        for (int c = 0; c < columns; c++) {
            sum[r][c] = vf_fma(ws, xs[c], sum[r][c]);
        }
    }
}

/* rows x columns dot products; w and y begin at the first row, x and y at the first column. `fresh`: the weights come
 * from memory. */
KERN_INLINE void tile(enum dtype type, int rows, int columns, bool fresh, float *y, int64_t y_stride,
    const char *w, int64_t n_k, const float *x, int64_t x_stride)
{
    vf sum[TALL_ROWS][TILE_COLUMNS];
    size_t row_bytes = (size_t)n_k * weight_bytes(type);
    KERN_UNROLL
    for (int r = 0; r < rows; r++) {
        KERN_UNROLL
        for (int c = 0; c < columns; c++) {
            sum[r][c] = (vf){0};
        }
    }
    int64_t k = 0;
    /* Short rows are too many streams for the machine to foresee: the next tile's are asked for here. */
    for (; fresh && k + 32 <= n_k; k += 32) {
        KERN_UNROLL
        for (int r = 0; r < rows; r++) {
            const char *next = w + (size_t)(rows + r) * row_bytes + (size_t)k * weight_bytes(type);
            __builtin_prefetch(next);
            if (type == DTYPE_F32) { /* 32 of them are two lines */
                __builtin_prefetch(next + 64);
            }
        }
        KERN_UNROLL
        for (int i = 0; i < 32; i += KERN_LANES) {
            tile_step(type, rows, columns, sum, w, row_bytes, x, x_stride, k + i);
        }
    }
    for (; k + KERN_LANES <= n_k; k += KERN_LANES) {
        tile_step(type, rows, columns, sum, w, row_bytes, x, x_stride, k);
    }
    KERN_UNROLL
    for (int r = 0; r < rows; r++) {
        KERN_UNROLL
        for (int c = 0; c < columns; c++) {
            if (k < n_k) {
                vf ws = weight_load_part(type, w + (size_t)r * row_bytes, k, n_k - k);
                sum[r][c] = vf_fma(ws, vf_load_part(x + c * x_stride + k, n_k - k), sum[r][c]);
            }
            y[c * y_stride + r] = vf_sum(sum[r][c]);
        }
    }
}

/* All rows of a block for `columns` columns. */
KERN_INLINE void strip(enum dtype type, int columns, bool fresh, float *y, int64_t y_stride,
    const char *w, int64_t n_k, int64_t n_rows, const float *x, int64_t x_stride)
{
    size_t row_bytes = (size_t)n_k * weight_bytes(type);
    int64_t r = 0;
    for (; columns == 1 && r + TALL_ROWS <= n_rows; r += TALL_ROWS) {
        tile(type, TALL_ROWS, columns, fresh, y + r, y_stride, w + (size_t)r * row_bytes, n_k, x,
            x_stride);
    }
    for (; r + TILE_ROWS <= n_rows; r += TILE_ROWS) {
        tile(type, TILE_ROWS, columns, fresh, y + r, y_stride, w + (size_t)r * row_bytes, n_k, x,
            x_stride);
    }
    for (; r < n_rows; r++) {
        tile(type, 1, columns, fresh, y + r, y_stride, w + (size_t)r * row_bytes, n_k, x, x_stride);
    }
}

/* Weights come from memory once: a block of rows stays in the cache while all columns pass over it. */
KERN_INLINE void matmul(enum dtype type, float *y, int64_t y_stride, const void *w, int64_t n_k,
    int64_t r0, int64_t r1, const float *x, int64_t x_stride, int n_c)
{
    size_t row_bytes = (size_t)n_k * weight_bytes(type);
    int64_t block = (int64_t)(BLOCK_BYTES / (row_bytes + 1)) / TALL_ROWS * TALL_ROWS;
    block = max(block, TALL_ROWS);
    for (int64_t r = r0; r < r1; r += block) {
        int64_t n = min(r1 - r, block);
        const char *rows = (const char *)w + (size_t)r * row_bytes;
        int c = 0;
        for (; c + TILE_COLUMNS <= n_c; c += TILE_COLUMNS) {
            strip(type, TILE_COLUMNS, c == 0, y + c * y_stride + r, y_stride, rows, n_k, n,
                x + c * x_stride, x_stride);
        }
        for (; TILE_COLUMNS > 4 && c + 4 <= n_c; c += 4) {
            strip(type, 4, c == 0, y + c * y_stride + r, y_stride, rows, n_k, n, x + c * x_stride,
                x_stride);
        }
        for (; c + 2 <= n_c; c += 2) {
            strip(type, 2, c == 0, y + c * y_stride + r, y_stride, rows, n_k, n, x + c * x_stride,
                x_stride);
        }
        if (c < n_c) {
            strip(type, 1, c == 0, y + c * y_stride + r, y_stride, rows, n_k, n, x + c * x_stride,
                x_stride);
        }
    }
}

static void matmul_bf16(float *y, int64_t y_stride, const void *w, int64_t n_k, int64_t r0, int64_t r1,
    const float *x, int64_t x_stride, int n_c)
{
    matmul(DTYPE_BF16, y, y_stride, w, n_k, r0, r1, x, x_stride, n_c);
}

static void matmul_f16(float *y, int64_t y_stride, const void *w, int64_t n_k, int64_t r0, int64_t r1,
    const float *x, int64_t x_stride, int n_c)
{
    matmul(DTYPE_F16, y, y_stride, w, n_k, r0, r1, x, x_stride, n_c);
}

static void matmul_f32(float *y, int64_t y_stride, const void *w, int64_t n_k, int64_t r0, int64_t r1,
    const float *x, int64_t x_stride, int n_c)
{
    matmul(DTYPE_F32, y, y_stride, w, n_k, r0, r1, x, x_stride, n_c);
}

enum { NORM_CHAINS = 16, NORM_LANES = KERN_LANES / 2, NORM_VECTORS = NORM_CHAINS / NORM_LANES };

/* The sum of squares in double, in so many chains for every table. */
KERN_INLINE double norm_squares(const float *x, int64_t n)
{
    typedef float floats __attribute__((vector_size(4 * NORM_LANES)));
    typedef double doubles __attribute__((vector_size(8 * NORM_LANES)));
    doubles sum[NORM_VECTORS] = {{0}};
    double chains[NORM_CHAINS];
    int64_t i = 0;
    for (; i + NORM_CHAINS <= n; i += NORM_CHAINS) {
        KERN_UNROLL
        for (int v = 0; v < NORM_VECTORS; v++) {
            floats part;
            memcpy(&part, x + i + v * NORM_LANES, sizeof part);
            doubles wide = __builtin_convertvector(part, doubles);
            sum[v] += wide * wide;
        }
    }
    memcpy(chains, sum, sizeof chains);
    for (; i < n; i++) {
        chains[i % NORM_CHAINS] += (double)x[i] * (double)x[i];
    }
    KERN_UNROLL
    for (int half = NORM_CHAINS / 2; half > 0; half /= 2) {
        KERN_UNROLL
        for (int c = 0; c < half; c++) {
            chains[c] += chains[c + half];
        }
    }
    return chains[0];
}

static void norm(float *y, const float *x, const float *w, int64_t n, float eps)
{
    float mean = (float)(norm_squares(x, n) / (double)n), scale = 1.0f / sqrtf(mean + eps);
    int64_t i = 0;
    for (; i + KERN_LANES <= n; i += KERN_LANES) {
        vf_store(y + i, vf_load(w + i) * (vf_load(x + i) * scale));
    }
    for (; i < n; i++) {
        y[i] = w[i] * (x[i] * scale);
    }
}

static void rotate(float *x, const float *cosine, const float *sine, int half)
{
    int i = 0;
    for (; i + KERN_LANES <= half; i += KERN_LANES) {
        vf a = vf_load(x + i), b = vf_load(x + half + i), c = vf_load(cosine + i),
           s = vf_load(sine + i);
        vf_store(x + i, a * c - b * s);
        vf_store(x + half + i, b * c + a * s);
    }
    for (; i < half; i++) {
        float a = x[i], b = x[i + half];
        x[i] = a * cosine[i] - b * sine[i];
        x[i + half] = b * cosine[i] + a * sine[i];
    }
}

KERN_INLINE vf silu(vf x)
{
    return x / (1.0f + vf_exp(-x));
}

static void silu_mul(float *gate, const float *up, int64_t n)
{
    int64_t i = 0;
    for (; i + KERN_LANES <= n; i += KERN_LANES) {
        vf_store(gate + i, silu(vf_load(gate + i)) * vf_load(up + i));
    }
    if (i < n) {
        vf_store_part(
            gate + i, silu(vf_load_part(gate + i, n - i)) * vf_load_part(up + i, n - i), n - i);
    }
}

/* erf, error about 1 ulp: near zero v + v P(v^2), beyond 1 the complement as exp(-Q(|v|)), which is nothing
 * beyond 4 in fp32. Both polynomials are minimax fits of ours. */
KERN_INLINE vf vf_erf(vf v)
{
    vf square = v * v, p = vf_set(0x1.4771fcp-14f);
    p = vf_fma(p, square, vf_set(-0x1.a3515ep-11f));
    p = vf_fma(p, square, vf_set(0x1.53f224p-8f));
    p = vf_fma(p, square, vf_set(-0x1.b7f71ap-6f));
    p = vf_fma(p, square, vf_set(0x1.ce2ce6p-4f));
    p = vf_fma(p, square, vf_set(-0x1.81273ep-2f));
    p = vf_fma(p, square, vf_set(0x1.06eba8p-3f));
    vf near = vf_fma(p, v, v), t = vf_min(vf_abs(v), vf_set(4.1f)), q = vf_set(0x1.6bceb6p-16f);
    q = vf_fma(q, t, vf_set(-0x1.cebf62p-12f));
    q = vf_fma(q, t, vf_set(0x1.138adap-8f));
    q = vf_fma(q, t, vf_set(-0x1.9d01ecp-6f));
    q = vf_fma(q, t, vf_set(0x1.bc14bep-4f));
    q = vf_fma(q, t, vf_set(0x1.44356ep-1f));
    q = vf_fma(q, t, vf_set(0x1.212c0cp+0f));
    q = vf_fma(q, t, vf_set(-0x1.8a574cp-13f));
    vf far = (vf)((vu)(1.0f - vf_exp(-q)) | ((vu)v & 0x80000000u));
    return vf_select(t < 1.0f, near, vf_select(v == v, far, v));
}

static void gelu(float *x, int64_t n)
{
    int64_t i = 0;
    for (; i + KERN_LANES <= n; i += KERN_LANES) {
        vf v = vf_load(x + i);
        vf_store(x + i, v * 0.5f * (1.0f + vf_erf(v * 0.70710678118654752f)));
    }
    if (i < n) {
        vf v = vf_load_part(x + i, n - i);
        vf_store_part(x + i, v * 0.5f * (1.0f + vf_erf(v * 0.70710678118654752f)), n - i);
    }
}

enum { ATTEND_KEYS = 4, ATTEND_VECTORS = 8 }; /* side by side: sums that do not wait for each other */

/* out[r] = q . rows[r], each in one chain. */
KERN_INLINE void dots(int n_rows, float *out, const float *q, const float *const *rows, int64_t n)
{
    vf sum[ATTEND_KEYS];
    int64_t i = 0;
    KERN_UNROLL
    for (int r = 0; r < n_rows; r++) {
        sum[r] = (vf){0};
    }
    for (; i + KERN_LANES <= n; i += KERN_LANES) {
        vf part = vf_load(q + i);
        KERN_UNROLL
        for (int r = 0; r < n_rows; r++) {
            sum[r] = vf_fma(part, vf_load(rows[r] + i), sum[r]);
        }
    }
    KERN_UNROLL
    for (int r = 0; r < n_rows; r++) {
        if (i < n) {
            sum[r] = vf_fma(vf_load_part(q + i, n - i), vf_load_part(rows[r] + i, n - i), sum[r]);
        }
        out[r] = vf_sum(sum[r]);
    }
}

/* scores[i] = exp(scores[i] - largest); returns their sum. */
KERN_INLINE float softmax_terms(float *scores, int64_t n)
{
    float largest = scores[0];
    for (int64_t i = 1; i < n; i++) {
        largest = max(scores[i], largest);
    }
    vf sum = {0};
    int64_t i = 0;
    for (; i + KERN_LANES <= n; i += KERN_LANES) {
        vf e = vf_exp(vf_load(scores + i) - largest);
        vf_store(scores + i, e);
        sum += e;
    }
    float rest = 0;
    if (i < n) {
        vf_store_part(scores + i, vf_exp(vf_load_part(scores + i, n - i) - largest), n - i);
        for (; i < n; i++) {
            rest += scores[i];
        }
    }
    return vf_sum(sum) + rest;
}

/* out[0 .. n_vectors * KERN_LANES) = scale * sum over i of p[i] * values[slot of i]. */
KERN_INLINE void weigh(int n_vectors, float *out, const struct kern_attend *a, const float *values,
    const float *p, float scale)
{
    vf sum[ATTEND_VECTORS];
    KERN_UNROLL
    for (int v = 0; v < n_vectors; v++) {
        sum[v] = (vf){0};
    }
    int64_t slot = a->first;
    for (int64_t i = 0; i < a->n_keys; i++) {
        const float *row = values + slot * a->stride;
        KERN_UNROLL
        for (int v = 0; v < n_vectors; v++) {
            sum[v] = vf_fma(vf_set(p[i]), vf_load(row + v * KERN_LANES), sum[v]);
        }
        slot = slot + 1 == a->capacity ? 0 : slot + 1;
    }
    KERN_UNROLL
    for (int v = 0; v < n_vectors; v++) {
        vf_store(out + v * KERN_LANES, sum[v] * scale);
    }
}

static void attend(const struct kern_attend *a, float *out, const float *q, float *scores)
{
    int64_t slot = a->first;
    for (int64_t i = 0; i < a->n_keys; i += ATTEND_KEYS) {
        int n = a->n_keys - i < ATTEND_KEYS ? (int)(a->n_keys - i) : ATTEND_KEYS;
        const float *rows[ATTEND_KEYS];
        for (int r = 0; r < n; r++) {
            rows[r] = a->keys + slot * a->stride;
            slot = slot + 1 == a->capacity ? 0 : slot + 1;
        }
        if (n == ATTEND_KEYS) {
            dots(ATTEND_KEYS, scores + i, q, rows, a->head);
        } else {
            for (int r = 0; r < n; r++) {
                dots(1, scores + i + r, q, rows + r, a->head);
            }
        }
    }
    for (int64_t i = 0; i < a->n_keys; i++) {
        scores[i] *= a->scale;
    }
    float scale = 1.0f / softmax_terms(scores, a->n_keys);
    int d = 0;
    for (; d + ATTEND_VECTORS * KERN_LANES <= a->head; d += ATTEND_VECTORS * KERN_LANES) {
        weigh(ATTEND_VECTORS, out + d, a, a->values + d, scores, scale);
    }
    for (; d + 4 * KERN_LANES <= a->head; d += 4 * KERN_LANES) {
        weigh(4, out + d, a, a->values + d, scores, scale);
    }
    for (; d + KERN_LANES <= a->head; d += KERN_LANES) {
        weigh(1, out + d, a, a->values + d, scores, scale);
    }
    for (; d < a->head; d++) {
        float sum = 0;
        slot = a->first;
        for (int64_t i = 0; i < a->n_keys; i++) {
            sum += scores[i] * a->values[slot * a->stride + d];
            slot = slot + 1 == a->capacity ? 0 : slot + 1;
        }
        out[d] = sum * scale;
    }
}
