/* SPDX-License-Identifier: Apache-2.0
 * One piece of the model's work for every CPU kernel: CASES has its data, its call and how far it may be from plain C.
 * A kernel may have several cases, of shapes that its code treats differently. Data is small enough for the caches. */
#ifndef TESTS_CPU_KERNEL_CASES_H
#define TESTS_CPU_KERNEL_CASES_H

#include <stdlib.h>
#include <string.h>

#include "base/numeric.h"
#include "cpu/kernels/kern.h"
#include "tests/cpu/random.h"
#include "tests/support.h"

/* ---- One call: the work of a case for one table, with data of its own ---- */

enum { MOST_OWNED = 10 };

struct call {
    const struct kern *kern;
    const struct kernel_case *the_case;
    struct random random;
    float *y; /* what is compared with plain C's, after `settle` */
    int64_t n_y;
    float *x, *from; /* `from`: what lies in x before a call that works in place */
    void *w;
    union {
        struct kern_conv conv;
        struct kern_upconv upconv;
        struct kern_attend attend;
        struct kern_nearest nearest;
        struct {
            struct weight w;
            struct kern_rounded rounded;
        } product;
        struct {
            struct kern_integer conv;
            struct kern_integer_rounding rounding; /* of the first group */
        } integer;
    };
    int32_t *index;
    float *scratch;
    void *owned[MOST_OWNED];
    int n_owned;
};

/* One line of CASES. */
struct kernel_case {
    const char *name;
    size_t slot; /* of struct kern */
    const char *work;
    /* The largest difference to plain C, as a part of plain C's largest number. 0: the same bits. */
    double most;
    void (*make)(struct call *call);
    void (*run)(struct call *call);
    void (*settle)(struct call *call); /* after the call that is compared; NULL: y is there */
    int n_c;                           /* columns */
};

/* n floats of zero. */
static float *take(struct call *call, int64_t n)
{
    void *block = calloc((size_t)n + 16, sizeof(float));
    assert_true(block && call->n_owned < MOST_OWNED);
    call->owned[call->n_owned++] = block;
    return (float *)(((uintptr_t)block + 63) / 64 * 64); /* as weights in files lie at best */
}

static float *take_random(struct call *call, int64_t n)
{
    float *x = take(call, n);
    random_fill(&call->random, x, n, 1);
    return x;
}

static void call_free(struct call *call)
{
    for (int i = 0; i < call->n_owned; i++) {
        free(call->owned[i]);
    }
}

/* ---- Matrix products ---- */

enum { ROWS = 128, COLS = 1024 };

static void make_columns(struct call *call)
{
    call->x = take_random(call, (int64_t)COLS * call->the_case->n_c);
    call->n_y = (int64_t)ROWS * call->the_case->n_c;
    call->y = take(call, call->n_y);
}

static void make_floats(struct call *call)
{
    make_columns(call);
    call->w = take_random(call, (int64_t)ROWS * COLS);
}

static void make_halves(struct call *call)
{
    make_columns(call);
    uint16_t *w = call->w = take(call, (int64_t)ROWS * COLS / 2);
    for (int i = 0; i < ROWS * COLS; i++) {
        /* As f16 these bits are numbers below 2, as bf16 they are those nearest to a random number. */
        w[i] = call->the_case->slot == offsetof(struct kern, matmul_f16)
                   ? (uint16_t)(random_word(&call->random) & 0xbfff)
                   : bf16_from_float(random_normal(&call->random));
    }
}

static void run_matmul(struct call *call)
{
    size_t slot = call->the_case->slot;
    kern_matmul_fn *matmul = slot == offsetof(struct kern, matmul_f32)   ? call->kern->matmul_f32
                             : slot == offsetof(struct kern, matmul_f16) ? call->kern->matmul_f16
                                                                         : call->kern->matmul_bf16;
    matmul(call->y, ROWS, call->w, COLS, 0, ROWS, call->x, COLS, call->the_case->n_c);
}

/* ---- Packed weights ---- */

static bool of_q8(const struct call *call)
{
    size_t slot = call->the_case->slot;
    return slot == offsetof(struct kern, packed_q8) || slot == offsetof(struct kern, round_q8);
}

static void run_round(struct call *call)
{
    kern_round_fn *round = of_q8(call) ? call->kern->round_q8 : call->kern->round_q4;
    for (int c = 0; c < call->the_case->n_c; c++) {
        round(&call->product.rounded, c, call->x + c * COLS, COLS);
    }
}

static void make_rounded(struct call *call)
{
    enum { N_GROUPS = COLS / PACK_GROUP };
    int n_c = call->the_case->n_c;
    make_columns(call);
    call->product.rounded = (struct kern_rounded){.codes = (int16_t *)take(call, COLS * n_c / 2),
        .bytes = (int8_t *)take(call, COLS * n_c / 4),
        .scales = take(call, N_GROUPS * n_c),
        .zeros = (int32_t *)take(call, N_GROUPS * n_c),
        .n_groups = N_GROUPS};
}

/* What a column was rounded to, as floats: the codes, and beside 4 bits what they add up to. */
static void settle_rounded(struct call *call)
{
    const struct kern_rounded *rounded = &call->product.rounded;
    call->n_y = COLS + COLS / PACK_GROUP;
    call->y = take(call, call->n_y);
    for (int i = 0; i < COLS; i++) {
        int code = of_q8(call) ? rounded->codes[i] : rounded->bytes[i];
        call->y[i] = (float)code * rounded->scales[i / PACK_GROUP];
    }
    for (int g = 0; g < COLS / PACK_GROUP && !of_q8(call); g++) {
        call->y[COLS + g] = (float)rounded->zeros[g] * rounded->scales[g] / PACK_GROUP;
    }
}

static void make_packed(struct call *call)
{
    enum dtype type = of_q8(call) ? DTYPE_Q8 : DTYPE_Q4;
    size_t block = pack_block_bytes(type, COLS);
    make_rounded(call);
    char *w = call->w = take(call, (int64_t)(block * ROWS / PACK_ROWS / sizeof(float)));
    float *rows = take_random(call, PACK_ROWS * COLS);
    for (int r = 0; r < ROWS; r += PACK_ROWS) {
        pack_block(w + (size_t)(r / PACK_ROWS) * block, type, rows, PACK_ROWS, COLS);
    }
    call->product.w = (struct weight){w, type, ROWS, COLS};
    run_round(call);
}

static void run_packed(struct call *call)
{
    kern_packed_fn *packed = of_q8(call) ? call->kern->packed_q8 : call->kern->packed_q4;
    packed(call->y, ROWS, &call->product.w, 0, ROWS, &call->product.rounded, call->the_case->n_c);
}

/* ---- Convolutions of the vocoder ---- */

enum { CHANNELS = 96, OUTPUTS = 32, TAPS = 7, DILATION = 3, N_T = 120 };
enum { PAST = (TAPS - 1) * DILATION, X_STRIDE = PAST + N_T + KERN_PAD };

static void make_conv(struct call *call)
{
    call->n_y = OUTPUTS * N_T;
    call->y = take(call, call->n_y);
    call->conv = (struct kern_conv){.y = call->y,
        .x = take_random(call, CHANNELS * X_STRIDE),
        .w = take_random(call, OUTPUTS * CHANNELS * TAPS),
        .bias = take_random(call, OUTPUTS),
        .residual = take_random(call, OUTPUTS * N_T),
        .y_stride = N_T,
        .x_stride = X_STRIDE,
        .n_in = CHANNELS,
        .taps = TAPS,
        .dilation = DILATION,
        .n_t = N_T};
}

static void run_conv(struct call *call)
{
    call->kern->conv(&call->conv, 0, OUTPUTS);
}

static void make_upconv(struct call *call)
{
    enum { STRIDE = 4, UP_TAPS = 2 * STRIDE };
    call->n_y = (int64_t)OUTPUTS * N_T * STRIDE;
    call->y = take(call, call->n_y);
    call->upconv = (struct kern_upconv){.y = call->y,
        .x = take_random(call, CHANNELS * N_T),
        .w = take_random(call, CHANNELS * OUTPUTS * UP_TAPS),
        .bias = take_random(call, OUTPUTS),
        .tail = take(call, OUTPUTS * STRIDE),
        .products = take(call, kern_upconv_products(UP_TAPS)),
        .y_stride = N_T * STRIDE,
        .y_step = 1,
        .x_stride = N_T,
        .x_step = 1,
        .n_in = CHANNELS,
        .n_out = OUTPUTS,
        .stride = STRIDE,
        .taps = UP_TAPS,
        .n_t = N_T};
}

static void run_upconv(struct call *call)
{
    call->kern->upconv(&call->upconv, 0, OUTPUTS);
}

static void make_samples(struct call *call)
{
    call->n_y = 1920; /* of one frame */
    call->y = take(call, call->n_y);
    call->x = take_random(call, call->n_y);
}

static void run_snake(struct call *call)
{
    call->kern->snake(call->y, call->x, 1.7f, 0.3f, call->n_y);
}

/* ---- The same in integers: a table has its own order of numbers in memory ---- */

static int integer_at(const struct kern *kern, int i, int t)
{
    return kern->integer_by_time
               ? (i / KERN_INTEGER_GROUP * X_STRIDE + t) * KERN_INTEGER_GROUP + i % KERN_INTEGER_GROUP
               : i * X_STRIDE + t;
}

static struct kern_integer_rounding rounding_of(const struct call *call, int group)
{
    const struct kern *kern = call->kern;
    return (struct kern_integer_rounding){
        (int32_t *)call->scratch + group * kern->integer_words * X_STRIDE,
        call->x + group * KERN_INTEGER_GROUP * X_STRIDE, call->from, call->from + KERN_INTEGER_GROUP,
        X_STRIDE, kern->integer_by_time ? KERN_INTEGER_GROUP : X_STRIDE, true};
}

static void run_integer_round(struct call *call)
{
    call->kern->integer_round(&call->integer.rounding, X_STRIDE - KERN_PAD);
}

static void make_integer(struct call *call)
{
    enum { GROUPS = CHANNELS / KERN_INTEGER_GROUP };
    const struct kern *kern = call->kern;
    call->x = take(call, CHANNELS * X_STRIDE);
    call->from = take(call, 2 * KERN_INTEGER_GROUP); /* of the snake: the angles, and the amounts */
    call->scratch = take(call, (int64_t)GROUPS * kern->integer_words * X_STRIDE);
    for (int i = 0; i < CHANNELS * X_STRIDE; i++) {
        call->x[integer_at(kern, i / X_STRIDE, i % X_STRIDE)] = random_normal(&call->random);
    }
    for (int i = 0; i < 2 * KERN_INTEGER_GROUP; i++) {
        call->from[i] = 0.02f * (float)(i + 10);
    }
    uint16_t *w = call->w = take(call, OUTPUTS * CHANNELS * TAPS / 2);
    for (int i = 0; i < OUTPUTS * CHANNELS * TAPS; i++) {
        int code = (int)(random_word(&call->random) % 255) - 127; /* which is a bf16 too */
        w[kern_integer_place(kern->integer_by_time, GROUPS, TAPS, i / (CHANNELS * TAPS),
            i / TAPS % CHANNELS, i % TAPS)] =
            kern->integer_by_time ? bf16_from_float((float)code) : (uint16_t)code;
    }
    call->n_y = OUTPUTS * N_T;
    float *ones = take(call, OUTPUTS), *y = take(call, OUTPUTS * X_STRIDE);
    for (int i = 0; i < OUTPUTS; i++) {
        ones[i] = 1;
    }
    call->integer.conv = (struct kern_integer){y, (int32_t *)call->scratch, call->w, ones,
        take_random(call, OUTPUTS), NULL, kern->integer_by_time ? KERN_INTEGER_GROUP : X_STRIDE,
        X_STRIDE, GROUPS, TAPS, DILATION, N_T, true};
    for (int g = GROUPS; g-- > 0;) {
        call->integer.rounding = rounding_of(call, g);
        run_integer_round(call);
    }
}

static void run_integer(struct call *call)
{
    call->kern->integer(&call->integer.conv, 0, OUTPUTS);
}

/* Only the table knows what its words mean, so that the convolution of them is compared. */
static void settle_integer(struct call *call)
{
    run_integer(call);
    call->y = take(call, call->n_y);
    for (int i = 0; i < call->n_y; i++) {
        call->y[i] = call->integer.conv.y[integer_at(call->kern, i / N_T, i % N_T)];
    }
}

/* ---- Vectors ---- */

/* Two vectors: one to be changed where it lies, and one beside it. */
static void make_vectors(struct call *call)
{
    call->n_y = 3072;
    call->y = take(call, call->n_y);
    call->from = take_random(call, call->n_y);
    call->x = take_random(call, call->n_y);
}

static void run_norm(struct call *call)
{
    call->kern->norm(call->y, call->x, call->from, COLS, 1e-6f);
}

static void make_rotation(struct call *call)
{
    enum { HALF = 64 };
    call->n_y = 2 * HALF;
    call->y = take_random(call, call->n_y);
    call->x = take(call, 2 * HALF);
    for (int i = 0; i < HALF; i++) {
        call->x[i] = cosf(0.3f * (float)i), call->x[HALF + i] = sinf(0.3f * (float)i);
    }
}

static void run_rotate(struct call *call)
{
    call->kern->rotate(call->y, call->x, call->x + call->n_y / 2, (int)(call->n_y / 2));
}

static void run_silu_mul(struct call *call)
{
    memcpy(call->y, call->from, (size_t)call->n_y * sizeof *call->y);
    call->kern->silu_mul(call->y, call->x, call->n_y);
}

static void run_gelu(struct call *call)
{
    memcpy(call->y, call->from, (size_t)call->n_y * sizeof *call->y);
    call->kern->gelu(call->y, call->n_y);
}

static void run_elu(struct call *call)
{
    call->kern->elu(call->y, call->x, call->n_y);
}

/* ---- Attention, and the nearest entry of a code table ---- */

static void make_attend(struct call *call)
{
    enum { HEAD = 128, KEYS = 200 };
    call->n_y = HEAD;
    call->y = take(call, HEAD);
    call->x = take_random(call, HEAD);
    call->scratch = take(call, KEYS);
    call->attend = (struct kern_attend){take_random(call, HEAD * KEYS), take_random(call, HEAD * KEYS),
        HEAD, KEYS, 0, KEYS, HEAD, 0.0883883476f};
}

static void run_attend(struct call *call)
{
    call->kern->attend(&call->attend, call->y, call->x, call->scratch);
}

static void make_nearest(struct call *call)
{
    enum { ENTRIES = 512, DIM = 256, CHAIN = 129 };
    float *norms = take(call, ENTRIES), *table = take_random(call, ENTRIES * DIM);
    call->n_y = call->the_case->n_c;
    call->y = take(call, call->n_y);
    call->x = take_random(call, call->n_y * DIM);
    call->index = (int32_t *)take(call, call->n_y);
    call->scratch = take(call, call->n_y); /* sums of squares, which do not change the choice */
    for (int e = 0; e < ENTRIES; e++) {
        for (int k = 0; k < DIM; k++) {
            float v =
                table[(e / KERN_NEAREST_BLOCK * DIM + k) * KERN_NEAREST_BLOCK + e % KERN_NEAREST_BLOCK];
            norms[e] += v * v;
        }
    }
    call->nearest = (struct kern_nearest){table, norms, ENTRIES, DIM, CHAIN};
}

static void run_nearest(struct call *call)
{
    call->kern->nearest(
        &call->nearest, call->x, call->nearest.dim, call->scratch, (int)call->n_y, call->index);
}

static void settle_nearest(struct call *call)
{
    for (int c = 0; c < call->n_y; c++) {
        call->y[c] = (float)call->index[c];
    }
}

/* ---- The table ---- */

#define SLOT(member) #member, offsetof(struct kern, member)
/* Sums of n numbers in another order, with fused steps or without: a few 2^-24 of what is added. */
static const double SUM = 1e-5;

static const struct kernel_case CASES[] = {
    {SLOT(matmul_bf16), "128 x 1024, 1 column", SUM, make_halves, run_matmul, NULL, 1},
    {SLOT(matmul_bf16), "128 x 1024, 16 columns", SUM, make_halves, run_matmul, NULL, 16},
    {SLOT(matmul_f16), "128 x 1024, 1 column", SUM, make_halves, run_matmul, NULL, 1},
    {SLOT(matmul_f16), "128 x 1024, 16 columns", SUM, make_halves, run_matmul, NULL, 16},
    {SLOT(matmul_f32), "128 x 1024, 1 column", SUM, make_floats, run_matmul, NULL, 1},
    {SLOT(matmul_f32), "128 x 1024, 16 columns", SUM, make_floats, run_matmul, NULL, 16},
    {SLOT(packed_q8), "128 x 1024, 1 column", SUM, make_packed, run_packed, NULL, 1},
    {SLOT(packed_q8), "128 x 1024, 16 columns", SUM, make_packed, run_packed, NULL, 16},
    {SLOT(packed_q4), "128 x 1024, 1 column", SUM, make_packed, run_packed, NULL, 1},
    {SLOT(packed_q4), "128 x 1024, 16 columns", SUM, make_packed, run_packed, NULL, 16},
    {SLOT(round_q8), "1024", 0, make_rounded, run_round, settle_rounded, 1},
    {SLOT(round_q4), "1024", 0, make_rounded, run_round, settle_rounded, 1},
    {SLOT(conv), "96 to 32, 7 taps, 120 samples", SUM, make_conv, run_conv, NULL, 0},
    {SLOT(upconv), "96 to 32, 4 x 120 samples", SUM, make_upconv, run_upconv, NULL, 0},
    /* Tables on tiles round to two bf16, the others to 16 bits. */
    {SLOT(integer), "96 to 32, 7 taps, 120 samples", 1e-3, make_integer, run_integer, settle_integer,
        0},
    {SLOT(integer_round), "32 x 138, with snake", 1e-3, make_integer, run_integer_round, settle_integer,
        0},
    {SLOT(snake), "1920", SUM, make_samples, run_snake, NULL, 0},
    {SLOT(norm), "1024", 0, make_vectors, run_norm, NULL, 0},
    {SLOT(rotate), "a head of 128", SUM, make_rotation, run_rotate, NULL, 0},
    {SLOT(silu_mul), "3072, and a copy", SUM, make_vectors, run_silu_mul, NULL, 0},
    {SLOT(gelu), "3072, and a copy", SUM, make_vectors, run_gelu, NULL, 0},
    {SLOT(attend), "a head of 128, 200 keys", SUM, make_attend, run_attend, NULL, 0},
    {SLOT(elu), "1920", SUM, make_samples, run_elu, NULL, 0},
    {SLOT(nearest), "512 of 256, 4 columns", 0, make_nearest, run_nearest, settle_nearest, 4},
};
enum { N_CASES = sizeof CASES / sizeof *CASES };

/* Data is the same for all tables: it depends on the kernel alone. */
static struct call call_new(const struct kernel_case *the_case, const struct kern *kern)
{
    struct call call = {.kern = kern, .the_case = the_case, .random = {(uint32_t)the_case->slot, 0}};
    the_case->make(&call);
    return call;
}

#endif
