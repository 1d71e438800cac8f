/* SPDX-License-Identifier: Apache-2.0
 * Convolution kernels of the vocoder and its activation. Contracts in cpu/kernels/kern.h. Included by
 * body.h.
 *
 * Every sum of a convolution is made of chains of fused steps over channels, then taps, each starting at
 * zero and short, because rounding grows with their length; the chains are added in order. A lane holds one
 * time step and never touches another lane, so no tile, and no border of a call, can be seen in the
 * result. */

#include <math.h>

#include "base/minmax.h"

enum {
    CONV_ROWS = 6, /* outputs side by side: rows of weights often lie apart by */
                   /* pages, and more than 8 would fight for one set of a cache */
    CONV_VECTORS = KERN_LANES == 16 ? 4 : 2, /* of time beside each, as registers allow */
    CONV_LONE_VECTORS = 4,                   /* for one output alone */
    CONV_CHAIN = 256,                        /* steps of a chain, at most */
    CONV_TIME_STEPS = 256,                   /* of time in a block */
    CONV_BLOCK_FLOATS = 80 << 10,            /* of input that stay in the L2 cache */
    CONV_TILE_FLOATS = 4 << 10,              /* of input and weights that stay in the L1 cache */
};

/* ---- Convolution ---- */

KERN_INLINE vf conv_load(const float *p, bool whole, int64_t left)
{
    return whole || left >= KERN_LANES ? vf_load(p) : left > 0 ? vf_load_part(p, left) : (vf){0};
}

KERN_INLINE void conv_store(float *p, vf v, bool whole, int64_t left)
{
    if (whole || left >= KERN_LANES) {
        vf_store(p, v);
    } else if (left > 0) {
        vf_store_part(p, v, left);
    }
}

/* What one tile sums over: channels i0 <= i < i1 of the input, in chains of `chain` channels; i0 begins a
 * chain. The sums wait in y between blocks. */
struct conv_block {
    int i0, i1, chain;
    int64_t t0, t1;
};

/* total += the sums over n_i channels from w and x on: one chain each. */
KERN_INLINE void conv_chain(const struct kern_conv *c, int rows, int vectors, int taps, int n_i,
    vf total[CONV_ROWS][CONV_LONE_VECTORS], const float *w, const float *x)
{
    vf sum[CONV_ROWS][CONV_LONE_VECTORS];
    int64_t row = (int64_t)c->n_in * taps;
    KERN_UNROLL
    for (int r = 0; r < rows; r++) {
        KERN_UNROLL
        for (int v = 0; v < vectors; v++) {
            sum[r][v] = (vf){0};
        }
    }
    for (int i = 0; i < n_i; i++, x += c->x_stride) {
        const float *moved = x;
        for (int j = 0; j < taps; j++, moved += c->dilation, w++) {
            vf xs[CONV_LONE_VECTORS];
            KERN_UNROLL
            for (int v = 0; v < vectors; v++) {
                xs[v] = vf_load(moved + v * KERN_LANES);
            }
            KERN_UNROLL
            for (int r = 0; r < rows; r++) {
                vf ws = vf_set(w[r * row]);
                KERN_UNROLL
                for (int v = 0; v < vectors; v++) {
                    sum[r][v] = vf_fma(ws, xs[v], sum[r][v]);
                }
            }
        }
    }
    KERN_UNROLL
    for (int r = 0; r < rows; r++) {
        KERN_UNROLL
        for (int v = 0; v < vectors; v++) {
            total[r][v] += sum[r][v];
        }
    }
}

/* rows outputs from o on, vectors * KERN_LANES time steps from t on, of which those before t1 are wanted. */
KERN_INLINE void conv_tile(const struct kern_conv *c, const struct conv_block *b, int rows, int vectors,
    int taps, int o, int64_t t)
{
    vf total[CONV_ROWS][CONV_LONE_VECTORS];
    float *y = c->y + o * c->y_stride + t;
    bool whole = b->t1 - t >= vectors * KERN_LANES;
    KERN_UNROLL
    for (int r = 0; r < rows; r++) {
        KERN_UNROLL
        for (int v = 0; v < vectors; v++) {
            int64_t first = v * KERN_LANES;
            total[r][v] =
                b->i0 ? conv_load(y + r * c->y_stride + first, whole, b->t1 - t - first) : (vf){0};
        }
    }
    int64_t row = (int64_t)c->n_in * taps;
    const float *w = c->w + o * row + b->i0 * taps, *x = c->x + b->i0 * c->x_stride + t;
    for (int i = b->i0; i < b->i1; i += b->chain) {
        int n_i = min(b->i1 - i, b->chain);
        conv_chain(c, rows, vectors, taps, n_i, total, w, x);
        w += n_i * taps, x += n_i * c->x_stride;
    }
    bool last = b->i1 == c->n_in;
    KERN_UNROLL
    for (int r = 0; r < rows; r++) {
        float bias = last && c->bias ? c->bias[o + r] : 0;
        KERN_UNROLL
        for (int v = 0; v < vectors; v++) {
            int64_t first = v * KERN_LANES, left = b->t1 - t - first;
            vf out = total[r][v];
            if (last) {
                out = out + bias;
                if (c->residual) {
                    out += conv_load(c->residual + (o + r) * c->y_stride + t + first, whole, left);
                }
            }
            conv_store(y + r * c->y_stride + first, out, whole, left);
        }
    }
}

/* All time steps of a block for `rows` outputs. */
KERN_INLINE void conv_rows(
    const struct kern_conv *c, const struct conv_block *b, int rows, int vectors, int taps, int o)
{
    int64_t t = b->t0;
    for (; vectors == 4 && b->t1 - t > 2 * KERN_LANES; t += 4 * KERN_LANES) {
        conv_tile(c, b, rows, 4, taps, o, t);
    }
    for (; b->t1 - t > KERN_LANES; t += 2 * KERN_LANES) {
        conv_tile(c, b, rows, 2, taps, o, t);
    }
    for (; t < b->t1; t += KERN_LANES) {
        conv_tile(c, b, rows, 1, taps, o, t);
    }
}

KERN_INLINE void conv_outputs(
    const struct kern_conv *c, const struct conv_block *b, int taps, int o0, int o1)
{
    int o = o0;
    for (; o + CONV_ROWS <= o1; o += CONV_ROWS) {
        conv_rows(c, b, CONV_ROWS, CONV_VECTORS, taps, o);
    }
    for (; o < o1; o++) {
        conv_rows(c, b, 1, CONV_LONE_VECTORS, taps, o);
    }
}

/* Channels in a block of n_t time steps. With many tiles in a row, what one tile reads of its inputs and
 * weights stays in the L1 cache for the next; with few, long rows of weights come faster from memory. */
static int64_t conv_channels(const struct kern_conv *c, int64_t n_t, int64_t chain)
{
    int64_t reach = (int64_t)(c->taps - 1) * c->dilation, width = CONV_VECTORS * KERN_LANES;
    int64_t n = n_t < 4 * width ? CONV_BLOCK_FLOATS / (n_t + reach)
                                : CONV_TILE_FLOATS / (width + reach + (int64_t)CONV_ROWS * c->taps);
    return n < chain ? chain : n / chain * chain;
}

static void conv(const struct kern_conv *c, int o0, int o1)
{
    int chain = c->taps < CONV_CHAIN ? CONV_CHAIN / c->taps : 1;
    for (int64_t t = 0; t < c->n_t; t += CONV_TIME_STEPS) {
        int64_t end = c->n_t - t < CONV_TIME_STEPS ? c->n_t : t + CONV_TIME_STEPS;
        int64_t n_i = conv_channels(c, end - t, chain);
        for (int64_t i = 0; i < c->n_in; i += n_i) {
            int64_t i_end = c->n_in - i < n_i ? c->n_in : i + n_i;
            struct conv_block b = {(int)i, (int)i_end, chain, t, end};
            if (c->taps == 1) {
                conv_outputs(c, &b, 1, o0, o1);
            } else {
                conv_outputs(c, &b, c->taps, o0, o1);
            }
        }
    }
}

/* ---- Transposed convolution ---- */

enum {
    UPCONV_COLUMNS =
        KERN_LANES == 16 ? 12 : 6, /* time steps side by side, with UPCONV_VECTORS of places */
    UPCONV_VECTORS = 2,
    UPCONV_WIDE = UPCONV_VECTORS * KERN_LANES,
    UPCONV_INPUTS = 128,        /* rows of weights that are worked on together: one chain */
    UPCONV_FEW_TIME_STEPS = 12, /* up to here weights come from memory for little work: then ... */
    UPCONV_STREAMS = 8,         /* ... so many rows are read side by side where they lie */
    UPCONV_AHEAD = 64,          /* floats of a row that are asked for ahead */
};

/* z[t][k] += sum over n_i inputs i of x[i][t] * w[i][k] for `columns` time steps and UPCONV_WIDE places k. */
KERN_INLINE void upconv_tile(const struct kern_upconv *u, int columns, float *z, int64_t z_stride,
    const float *x, const float *w, int64_t w_stride, int n_i, bool first, int ahead)
{
    vf sum[UPCONV_COLUMNS][UPCONV_VECTORS];
    KERN_UNROLL
    for (int t = 0; t < columns; t++) {
        KERN_UNROLL
        for (int v = 0; v < UPCONV_VECTORS; v++) {
            sum[t][v] = first ? (vf){0} : vf_load(z + t * z_stride + v * KERN_LANES);
        }
    }
    for (int i = 0; i < n_i; i++, x += u->x_stride, w += w_stride) {
        vf ws[UPCONV_VECTORS];
        if (ahead) {
            __builtin_prefetch(w + ahead);
        }
        KERN_UNROLL
        for (int v = 0; v < UPCONV_VECTORS; v++) {
            ws[v] = vf_load(w + v * KERN_LANES);
        }
        KERN_UNROLL
        for (int t = 0; t < columns; t++) {
            vf xs = vf_set(x[t * u->x_step]);
            KERN_UNROLL
            for (int v = 0; v < UPCONV_VECTORS; v++) {
                sum[t][v] = vf_fma(xs, ws[v], sum[t][v]);
            }
        }
    }
    KERN_UNROLL
    for (int t = 0; t < columns; t++) {
        KERN_UNROLL
        for (int v = 0; v < UPCONV_VECTORS; v++) {
            vf_store(z + t * z_stride + v * KERN_LANES, sum[t][v]);
        }
    }
}

/* All time steps of UPCONV_WIDE places. */
KERN_INLINE void upconv_strip(const struct kern_upconv *u, float *z, int64_t z_stride, const float *x,
    int64_t n_t, const float *w, int64_t w_stride, int n_i, bool first, int ahead)
{
    int64_t t = 0, step = u->x_step;
    for (; t + UPCONV_COLUMNS <= n_t; t += UPCONV_COLUMNS, ahead = 0) {
        upconv_tile(u, UPCONV_COLUMNS, z + t * z_stride, z_stride, x + t * step, w, w_stride, n_i,
            first, ahead);
    }
    for (; t + 4 <= n_t; t += 4, ahead = 0) {
        upconv_tile(u, 4, z + t * z_stride, z_stride, x + t * step, w, w_stride, n_i, first, ahead);
    }
    for (; t + 2 <= n_t; t += 2, ahead = 0) {
        upconv_tile(u, 2, z + t * z_stride, z_stride, x + t * step, w, w_stride, n_i, first, ahead);
    }
    for (; t < n_t; t++, ahead = 0) {
        upconv_tile(u, 1, z + t * z_stride, z_stride, x + t * step, w, w_stride, n_i, first, ahead);
    }
}

/* n (at most UPCONV_WIDE) places of n_i rows side by side, zeros behind them: rows lie apart by pages, and many of
 * them would fight for one set of a cache and for the few pages that a core has at hand. */
KERN_INLINE void upconv_fetch(float *strip, const float *w, int64_t row, int64_t n, int n_i)
{
    for (int i = 0; i < n_i; i++, w += row, strip += UPCONV_WIDE) {
        if (n < UPCONV_WIDE) {
            memset(strip, 0, UPCONV_WIDE * sizeof *strip);
            memcpy(strip, w, (size_t)n * sizeof *w);
            continue;
        }
        KERN_UNROLL
        for (int v = 0; v < UPCONV_VECTORS; v++) {
            __builtin_prefetch(w + UPCONV_AHEAD + v * KERN_LANES);
            vf_store(strip + v * KERN_LANES, vf_load(w + v * KERN_LANES));
        }
    }
}

/* to[t][n] = what n_i inputs give of time step t to n places from w on, one chain each. */
static void upconv_chain(const struct kern_upconv *u, float *to, int64_t z_stride, int64_t n,
    const float *x, int64_t n_t, const float *w, int n_i)
{
    float strip[UPCONV_INPUTS * UPCONV_WIDE];
    int64_t row = (int64_t)u->n_out * u->taps, k = 0;
    for (int i = 0; n_t <= UPCONV_FEW_TIME_STEPS && i < n_i; i += UPCONV_STREAMS) {
        const float *from = x + i * u->x_stride, *rows = w + i * row;
        int n_rows = min(n_i - i, UPCONV_STREAMS);
        for (k = 0; k + UPCONV_WIDE <= n; k += UPCONV_WIDE) {
            upconv_strip(u, to + k, z_stride, from, n_t, rows + k, row, n_rows, !i, UPCONV_AHEAD);
        }
    }
    for (; k < n; k += UPCONV_WIDE) {
        upconv_fetch(strip, w + k, row, min(n - k, UPCONV_WIDE), n_i);
        upconv_strip(u, to + k, z_stride, x, n_t, strip, UPCONV_WIDE, n_i, true, 0);
    }
}

/* z[t][n] = what all inputs give; rows of z have room for whole UPCONV_WIDE, `chain` is as large. */
static void upconv_products(const struct kern_upconv *u, float *z, float *chain, int64_t z_stride,
    int64_t n, const float *x, int64_t n_t, const float *w)
{
    int64_t row = (int64_t)u->n_out * u->taps;
    for (int64_t i = 0; i < u->n_in; i += UPCONV_INPUTS) {
        int n_i = u->n_in - i < UPCONV_INPUTS ? (int)(u->n_in - i) : UPCONV_INPUTS;
        upconv_chain(u, i ? chain : z, z_stride, n, x + i * u->x_stride, n_t, w + i * row, n_i);
        for (int64_t k = 0; i && k < n_t * z_stride; k += KERN_LANES) {
            vf_store(z + k, vf_load(z + k) + vf_load(chain + k));
        }
    }
}

/* Lays the products of one output over each other: y[t s + j] = z[t][j] + z[t - 1][s + j] + bias. */
static void upconv_overlap(
    const struct kern_upconv *u, int o, float *y, const float *z, int64_t z_stride, int64_t n_t)
{
    int s = u->stride;
    float bias = u->bias ? u->bias[o] : 0;
    const float *past = u->tail + (int64_t)o * s;
    if (u->taps == s) {
        for (int64_t t = 0; t < n_t; t++, z += z_stride) {
            for (int j = 0; j < s; j++, y += u->y_step) {
                *y = z[j] + bias;
            }
        }
        return;
    }
    for (int64_t t = 0; t < n_t; t++, past = z + s, z += z_stride) {
        for (int j = 0; j < s; j++, y += u->y_step) {
            *y = z[j] + past[j] + bias;
        }
    }
    memmove(u->tail + (int64_t)o * s, past, (size_t)s * sizeof *past);
}

static void upconv(const struct kern_upconv *u, int o0, int o1)
{
    float *z = u->products, *chain = z + kern_upconv_products(u->taps) / 2;
    for (int64_t t = 0; t < u->n_t; t += KERN_UPCONV_TIME_STEPS) {
        int64_t n_t = min(u->n_t - t, KERN_UPCONV_TIME_STEPS);
        int n_o = (int)(KERN_UPCONV_FLOATS / (n_t * u->taps)) / KERN_UPCONV_GRAIN * KERN_UPCONV_GRAIN;
        n_o = n_o ? n_o : KERN_UPCONV_GRAIN;
        for (int o = o0; o < o1; o += n_o) {
            int end = o1 - o < n_o ? o1 : o + n_o;
            int64_t n = (int64_t)(end - o) * u->taps;
            int64_t z_stride = (n + UPCONV_WIDE - 1) / UPCONV_WIDE * UPCONV_WIDE;
            upconv_products(
                u, z, chain, z_stride, n, u->x + t * u->x_step, n_t, u->w + (int64_t)o * u->taps);
            for (int i = o; i < end; i++) {
                float *y = u->y + i * u->y_stride + t * u->stride * u->y_step;
                upconv_overlap(u, i, y, z + (int64_t)(i - o) * u->taps, z_stride, n_t);
            }
        }
    }
}

/* ---- Snake ---- */

/* Angles up to here are reduced in vectors, larger ones by the C library, one by one. */
#define SNAKE_REACH 0x1p12f

KERN_INLINE bool vi_any(vi mask)
{
#if KERN_LANES == 16
    return _mm512_test_epi32_mask((__m512i)mask, (__m512i)mask) != 0;
#elif KERN_LANES == 8
    return _mm256_movemask_ps((__m256)mask) != 0;
#else
    uint64_t half[2];
    memcpy(half, &mask, sizeof half);
    return (half[0] | half[1]) != 0;
#endif
}

/* sin(x)^2 for |x| <= SNAKE_REACH, error below 2^-23. x loses a multiple n of pi / 2, which turns the
 * square into 1 - itself when n is odd: pi / 2 in four parts, the first three with so few bits that n
 * times each is exact with and without a fused step; then a minimax fit of the sine up to pi / 4. */
KERN_INLINE vf sine_square(vf x)
{
    const float round =
        0x1.8p23f; /* adding it rounds to an integer, whose last bit is the last of all */
    vf shifted = vf_fma(x, vf_set(0x1.45f306p-1f), vf_set(round)), n = shifted - round;
    vf high = vf_fma(n, vf_set(-0x1.922p+0f), x), second = n * 0x1.2aep-18f, r = high + second;
    vf low = high - r + second; /* what that sum lost */
    low = vf_fma(n, vf_set(0x1.deap-31f), low);
    r += vf_fma(n, vf_set(-0x1.184698p-44f), low);
    vf square = r * r, p = vf_set(-0x1.991bf4p-13f);
    p = vf_fma(p, square, vf_set(0x1.1106c6p-7f));
    p = vf_fma(p, square, vf_set(-0x1.555544p-3f));
    vf sine = vf_fma(p * square, r, r), even = sine * sine;
    vi odd = -((vi)shifted & 1);
    return vf_select(odd, 1.0f - even, even);
}

KERN_INLINE vf snake_lanes(vf x, vf a, vf b)
{
    vf angle = x * a, square = sine_square(angle);
    vi far = ~(vi)(vf_abs(angle) <= SNAKE_REACH); /* not a number too */
    if (__builtin_expect(vi_any(far), 0)) {
        for (int i = 0; i < KERN_LANES; i++) {
            float sine = far[i] ? (float)sin((double)angle[i]) : 0;
            square[i] = far[i] ? sine * sine : square[i];
        }
    }
    return x + square * b;
}

static void snake(float *y, const float *x, float alpha, float beta, int64_t n)
{
    vf a = vf_set(alpha), b = vf_set(beta);
    int64_t t = 0;
    for (; t + KERN_LANES <= n; t += KERN_LANES) {
        vf_store(y + t, snake_lanes(vf_load(x + t), a, b));
    }
    if (t < n) {
        vf_store_part(y + t, snake_lanes(vf_load_part(x + t, n - t), a, b), n - t);
    }
}
