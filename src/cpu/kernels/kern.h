/* SPDX-License-Identifier: Apache-2.0
 * The CPU kernels: a table of pointers, filled at open for the instruction sets that this machine and its
 * operating system offer. body.h holds each kernel once, over a small vector layer; plain.c, avx2.c,
 * avxvnni.c, avx512.c, vnni.c, amx.c, neon.c, dotprod.c and i8mm.c compile it for one set each. The plain C table
 * is the specification.
 *
 * Every kernel sums in an order that depends on its table alone: not on the number of columns or rows
 * asked for, nor on the thread that runs it. */
#ifndef CPU_KERNELS_KERN_H
#define CPU_KERNELS_KERN_H

#include <stdint.h>

#include "model/model.h"

/* y[c * y_stride + r] = sum over k of w[r * n_k + k] * x[c * x_stride + k],  r0 <= r < r1, 0 <= c < n_c.
 * fp32 sums. w is row-major in the type that the name says. */
typedef void kern_matmul_fn(float *y, int64_t y_stride, const void *w, int64_t n_k, int64_t r0,
    int64_t r1, const float *x, int64_t x_stride, int n_c);

/* Columns rounded to integers ("codes") for products with packed weights: element 32 g + i of column c is
 * code i of group g times scales[c][g]; the last group is filled up with zeros. Codes have twice the bits of the
 * weights that they are multiplied with, so the error of this rounding is small beside that of packing the weights. */
struct kern_rounded {
    int16_t *codes; /* beside weights of 8 bits: [n_c][n_groups][PACK_GROUP] */
    /* Beside weights of 4 bits: [n_c][n_groups][PACK_GROUP], where each eight elements are stored in the order
     * 0 4 1 5 2 6 3 7. One mask takes the low nibbles of a word of weights (elements 0 4 1 5, see weights/pack.h) and
     * one shift the high ones (2 6 3 7), and either then has its elements side by side here. */
    int8_t *bytes;
    float *scales;    /* [n_c][n_groups] */
    int32_t *zeros;   /* [n_c][n_groups]: -8 times the sum of the bytes */
    int64_t n_groups; /* of a column */
};
typedef void kern_round_fn(const struct kern_rounded *to, int c, const float *x, int64_t n_k);
/* As kern_matmul_fn with packed weights; r0 a multiple of PACK_ROWS, and r1 too or the last row. */
typedef void kern_packed_fn(float *y, int64_t y_stride, const struct weight *w, int64_t r0, int64_t r1,
    const struct kern_rounded *x, int n_c);

/* Rows that a convolution reads must be readable this many floats behind their last sample (what lies
 * there does not matter). */
enum { KERN_PAD = 32 };

/* Convolution over time, channel-first: y[o * y_stride + t] = bias[o] + sum over c, j of
 * w[(o * n_in + c) * taps + j] * x[c * x_stride + t + j * dilation],  o0 <= o < o1, 0 <= t < n_t.
 * x holds (taps - 1) * dilation samples of the past in front of each channel's first new one. */
struct kern_conv {
    float *y;
    const float *x; /* KERN_PAD */
    const float *w;
    const float *bias;     /* or NULL */
    const float *residual; /* NULL, or added to y: same layout as y, another place */
    int64_t y_stride, x_stride;
    int n_in, taps, dilation;
    int64_t n_t;
};
typedef void kern_conv_fn(const struct kern_conv *conv, int o0, int o1);

/* Transposed convolution of stride s with s or 2 s taps: time step t of the input gives
 * z[o][k] = sum over c of w[(c * n_out + o) * taps + k] * x[c * x_stride + t * x_step],
 * and y[o * y_stride + (t * s + j) * y_step] = z of t [o][j] + z of t - 1 [o][s + j] + bias[o]. */
struct kern_upconv {
    float *y;
    const float *x;
    const float *w;
    const float *bias;
    float *tail; /* [n_out][s]: z[o][s ..] of the last time step, in and out; not used with s taps */
    float *products; /* scratch of kern_upconv_products(taps) floats */
    int64_t y_stride, y_step, x_stride, x_step;
    int n_in, n_out, stride, taps;
    int64_t n_t;
};
/* Outputs o0 <= o < o1, o0 a multiple of KERN_UPCONV_GRAIN for full speed. */
typedef void kern_upconv_fn(const struct kern_upconv *conv, int o0, int o1);
enum {
    KERN_UPCONV_GRAIN = 16,
    KERN_UPCONV_TIME_STEPS = 96,   /* worked on at once */
    KERN_UPCONV_FLOATS = 32 << 10, /* of products that stay in the L2 cache */
};
static inline int64_t kern_upconv_products(int taps)
{
    int64_t least = (int64_t)KERN_UPCONV_GRAIN * KERN_UPCONV_TIME_STEPS * taps;
    return 2 * ((least > KERN_UPCONV_FLOATS ? least : KERN_UPCONV_FLOATS) +
                   KERN_UPCONV_TIME_STEPS * KERN_PAD); /* rows are filled up to whole vectors */
}

/* Activations as integers, for the vocoder beside packed weights. Channels go in groups of KERN_INTEGER_GROUP; the
 * last group is filled up with zeros. Each time step of a group is rounded by itself, without a look at its neighbours,
 * to kern.integer_words words of two 16-bit values each. Which values these are is the table's own business: only its
 * kernels write and read them. A NaN among the channels makes every sum over the group NaN. Buffers have room for
 * KERN_PAD more time steps.
 *
 * There are two layouts, and a table takes one of them:
 * - Rows: a row for each channel (or word), time steps side by side. Words hold codes of 16 bits and a scale.
 * - Time steps (kern.integer_by_time): all channels of a time step side by side. Words hold bf16: first those of all
 *   time steps with the channels rounded to bf16, then, in a second plane of the same size, those with what that
 *   rounding left over, again as bf16. With `fine` both planes are multiplied (16 bits of precision); without it the
 *   second plane is neither written nor read. Tables in rows are always fine. */
enum {
    KERN_INTEGER_GROUP = 32,
    KERN_INTEGER_ROWS = 4,
    KERN_INTEGER_SCALED = KERN_INTEGER_GROUP / 2 + 1, /* words: codes of 16 bits, and a scale */
    KERN_INTEGER_HALVES = KERN_INTEGER_GROUP,         /* words: bf16, and what it leaves over as bf16 */
};
/* One group, time steps 0 <= t < n: words for x + sin(a x)^2 * b, or x where a is NULL. */
struct kern_integer_rounding {
    int32_t *words; /* rows: [integer_words][stride]; time steps: [2][stride][integer_words / 2] */
    const float *x; /* rows: [KERN_INTEGER_GROUP][x_stride]; time steps: [n][x_stride] */
    const float *a, *b;
    int64_t stride, x_stride;
    bool fine;
};
typedef void kern_integer_round_fn(const struct kern_integer_rounding *rounding, int64_t n);
/* As kern_conv: y[o][t] = bias[o] + residual + w_scales[o] * the sums of codes. In rows no group of one tap can
 * overflow: the magnitudes of its weights add up to at most KERN_INTEGER_MOST. At most KERN_INTEGER_TAPS taps. */
enum { KERN_INTEGER_MOST = 65535, KERN_INTEGER_TAPS = 8 };
/* Weights lie in the order in which they are read, group of outputs by group of outputs.
 * - Rows: the groups of the input are taken kern_integer_visit at a time (a visit; the last may be shorter). For each
 *   visit, for each KERN_INTEGER_ROWS outputs of the group, for each input group of the visit: words
 *   [taps][KERN_INTEGER_GROUP / 2][KERN_INTEGER_ROWS], each of two neighbouring channels' codes, the first in the low
 *   half.
 * - Time steps: for each group of the input: words [taps][KERN_INTEGER_GROUP / 2][KERN_INTEGER_GROUP], each of two
 *   channels that are half a group apart, as bf16. */
static inline int kern_integer_visit(int taps)
{
    return KERN_INTEGER_TAPS / taps;
}
struct kern_integer {
    /* rows: [outputs][y_stride]; time steps: [n_t][y_stride] of the one group that is asked for */
    float *y;
    /* rows: [n_groups][integer_words][x_stride]; time steps: [n_groups][2][x_stride][integer_words / 2] */
    const int32_t *x;
    const int32_t *w;
    const float *w_scales, *bias;
    const float *residual; /* NULL, or added to y: same layout as y, another place */
    int64_t y_stride, x_stride;
    int n_groups, taps, dilation;
    int64_t n_t;
    bool fine;
};
/* Rows: multiples of KERN_INTEGER_ROWS; time steps: one group. */
typedef void kern_integer_fn(const struct kern_integer *conv, int o0, int o1);
/* Where the weight (output o, channel i, tap j) of a convolution stands among its weights, in numbers of 16 bits. */
int64_t kern_integer_place(bool by_time, int n_groups, int taps, int64_t o, int i, int j);

/* The keys that a query sees, of one kv head: n_keys (at least 1) slots from `first` on, oldest first, slot
 * `capacity` being slot 0 again. */
struct kern_attend {
    const float *keys, *values; /* [capacity][stride], at this kv head */
    int64_t stride, capacity, first, n_keys;
    int head;
    float scale;
};

/* A code table, entries in blocks of KERN_NEAREST_BLOCK: [blocks][dim][KERN_NEAREST_BLOCK], and the sum of squares
 * of each entry. The squared distance is made as the official program makes it, so that near-ties fall the same way:
 * dim products of -2 x[k] and the entry, then the column's sum of squares, then the entry's; `terms` of these dim + 2
 * at a time are summed in one chain, and the chains are added. */
enum { KERN_NEAREST_BLOCK = 32 };
struct kern_nearest {
    const float *table, *norms; /* whole blocks */
    int64_t n;
    int dim, terms;
};

struct kern {
    /* "c", "avx2", "avxvnni", "avx512", "avx512vnni", "amx", "neon", "dotprod", "i8mm" */
    const char *name;
    kern_matmul_fn *matmul_bf16, *matmul_f16, *matmul_f32;
    kern_packed_fn *packed_q8, *packed_q4;
    /* Column c of *to from x[n_k], for packed_q8 and packed_q4. */
    kern_round_fn *round_q8, *round_q4;
    kern_conv_fn *conv;
    kern_upconv_fn *upconv;
    kern_integer_fn *integer;
    kern_integer_round_fn *integer_round;
    int integer_words;
    bool integer_by_time;
    /* y[t] = x[t] + sin(a x[t])^2 * b over n values of one channel; a = exp(alpha), b = 1 / (exp(beta) + 1e-9). */
    void (*snake)(float *y, const float *x, float a, float b, int64_t n);
    /* y = w * x / sqrt(mean(x^2) + eps), the same in every table; y may be x */
    void (*norm)(float *y, const float *x, const float *w, int64_t n, float eps);
    /* x[i] and x[half + i], as one number's two parts, rotated by an angle */
    void (*rotate)(float *x, const float *cosine, const float *sine, int half);
    /* gate[i] = silu(gate[i]) * up[i] */
    void (*silu_mul)(float *gate, const float *up, int64_t n);
    /* x[i] = gelu(x[i]), exact (erf) */
    void (*gelu)(float *x, int64_t n);
    /* out[head] = softmax(scale q.K) V for one query head; scores is scratch of n_keys floats. */
    void (*attend)(const struct kern_attend *attend, float *out, const float *q, float *scores);
    /* y[i] = x[i] > 0 ? x[i] : e^x[i] - 1; y may be x */
    void (*elu)(float *y, const float *x, int64_t n);
    /* index[c] = the first of the entries nearest to x[c * x_stride ..]; x_norm[c] is that column's sum of squares. */
    void (*nearest)(const struct kern_nearest *table, const float *x, int64_t x_stride,
        const float *x_norm, int n_c, int32_t *index);
};

/* The table of that name, or the best for this machine when name is NULL; NULL when it does not exist or
 * cannot run here. */
const struct kern *kern_find(const char *name);
/* All that can run here, best last, comma separated; static. */
const char *kern_all(void);

extern const struct kern kern_c;

/* Room for n_columns rounded columns of up to n_k numbers; false when out of memory. */
bool kern_rounded_init(struct kern_rounded *room, int64_t n_k, int n_columns);
void kern_rounded_fini(struct kern_rounded *room);

/* y = W x for all rows of W on the pool: columns as in kern_matmul_fn. `room` is scratch for packed weights; NULL
 * where there are none. */
struct pool;
void kern_matmul(const struct kern *kern, struct pool *pool, float *y, int64_t y_stride,
    const struct weight *w, const float *x, int64_t x_stride, int n_c, struct kern_rounded *room);

/* Several matrices of the same n_k against the same columns, in one run of the pool. */
struct kern_product {
    float *y;
    int64_t y_stride;
    const struct weight *w;
};
void kern_products(const struct kern *kern, struct pool *pool, const struct kern_product *products,
    int n, const float *x, int64_t x_stride, int n_c, struct kern_rounded *room);
/* Two of them, of as many rows: products[0].y = silu(itself) * products[1].y. */
void kern_gated(const struct kern *kern, struct pool *pool, const struct kern_product *products,
    const float *x, int64_t x_stride, int n_c, struct kern_rounded *room);

#endif
