/* SPDX-License-Identifier: Apache-2.0
 * Every table that runs here: convolutions, transposed convolutions and the snake against sums in double;
 * and that no border of a call, a part or a tile changes a bit. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/kern.h"
#include "tests/cpu/random.h"
#include "tests/support.h"

static const char *const TABLES[] = {"c", "avx2", "avx512", "avx512vnni", "neon"};
enum { N_TABLES = 5 };

#define EACH_TABLE(kern)                                                                               \
    for (int i_##kern = 0; i_##kern < N_TABLES; i_##kern++)                                            \
        for (const struct kern *kern = kern_find(TABLES[i_##kern]); kern; kern = NULL)

/* What n terms of about 1 may be off: a chain of roundings. */
static double allowed(double size, int64_t n_terms)
{
    return size * 0x1p-24 * (2 + sqrt((double)n_terms));
}

static float *numbers(struct random *random, int64_t n, float scale)
{
    float *x = malloc((size_t)n * sizeof *x);
    random_fill(random, x, n, scale);
    return x;
}

/* ---- Convolution ---- */

struct conv_shape {
    int n_in, n_out, taps, dilation, n_t;
    bool bias, residual;
};

static const struct conv_shape CONVS[] = {
    {1, 1, 1, 1, 1, false, false},
    {3, 13, 7, 1, 5, true, false},
    {5, 25, 3, 1, 1, true, false},
    {96, 1, 7, 1, 100, true, false},
    {12, 24, 7, 3, 33, true, true},
    {17, 31, 7, 9, 200, true, false},
    {700, 12, 7, 9, 300, true, true}, /* several blocks of channels and of time */
    {400, 13, 1, 1, 530, true, true},
};

struct conv_case {
    struct kern_conv conv;
    int n_out;
    float *x, *w, *bias, *residual, *y;
};

/* Rows end where the next begin, but for KERN_PAD: what lies in the pad must not count, so it is NaN. */
static struct conv_case conv_case_new(const struct conv_shape *s)
{
    struct random random = {(uint32_t)(s->n_in * 31 + s->n_t), 0};
    int64_t past = (int64_t)(s->taps - 1) * s->dilation, x_stride = past + s->n_t + KERN_PAD,
            y_stride = s->n_t + 3;
    struct conv_case c = {.n_out = s->n_out};
    c.x = numbers(&random, x_stride * s->n_in, 1);
    c.w = numbers(&random, (int64_t)s->n_out * s->n_in * s->taps, 1);
    c.bias = numbers(&random, s->n_out, 1);
    c.residual = numbers(&random, y_stride * s->n_out, 1);
    c.y = numbers(&random, y_stride * s->n_out, 1);
    for (int i = 0; i < s->n_in; i++) {
        for (int j = 0; j < KERN_PAD; j++) {
            c.x[i * x_stride + past + s->n_t + j] = NAN;
        }
    }
    c.conv = (struct kern_conv){.y = c.y,
        .x = c.x,
        .w = c.w,
        .bias = s->bias ? c.bias : NULL,
        .residual = s->residual ? c.residual : NULL,
        .y_stride = y_stride,
        .x_stride = x_stride,
        .n_in = s->n_in,
        .taps = s->taps,
        .dilation = s->dilation,
        .n_t = s->n_t};
    return c;
}

static void conv_case_free(struct conv_case *c)
{
    free(c->x);
    free(c->w);
    free(c->bias);
    free(c->residual);
    free(c->y);
}

/* Squares of the differences, and of the values, over all outputs. */
struct squares {
    double off, all;
};

static struct squares check_conv(const struct conv_case *c)
{
    const struct kern_conv *k = &c->conv;
    struct squares squares = {0};
    for (int64_t o = 0; o < c->n_out; o++) {
        for (int64_t t = 0; t < k->n_t; t++) {
            double sum = 0, size = 0;
            for (int64_t i = 0; i < k->n_in; i++) {
                for (int64_t j = 0; j < k->taps; j++) {
                    double term = (double)k->w[(o * k->n_in + i) * k->taps + j] *
                                  (double)k->x[i * k->x_stride + t + j * k->dilation];
                    sum += term;
                    size += fabs(term);
                }
            }
            sum += (k->bias ? (double)k->bias[o] : 0) +
                   (k->residual ? (double)k->residual[o * k->y_stride + t] : 0);
            double got = (double)k->y[o * k->y_stride + t];
            assert_true(fabs(got - sum) <= allowed(size + fabs(sum), (int64_t)k->n_in * k->taps));
            squares.off += (got - sum) * (got - sum);
            squares.all += sum * sum;
        }
    }
    return squares;
}

/* One chain of n roundings is off by sqrt(n / 6) of 2^-24 (rms), and chains of `chain` that are added by
 * sqrt((chain + n / chain) / 6): the difference that fp64 shows in the vocoder's sound (docs/quality.md). */
static void check_chains(struct squares squares, int64_t n, int64_t chain)
{
    double one = sqrt((double)n / 6), many = sqrt((double)(chain + n / chain) / 6);
    double off = sqrt(squares.off / squares.all) * 0x1p24;
    assert_true(2 * many < one); /* else this says nothing */
    assert_true(off < 1.4 * many);
}

static void conv_rounding(void **state)
{
    (void)state;
    EACH_TABLE(kern)
    {
        struct conv_case c = conv_case_new(&(struct conv_shape){768, 24, 7, 1, 64, false, false});
        kern->conv(&c.conv, 0, c.n_out);
        check_chains(check_conv(&c), 768 * 7, 252);
        conv_case_free(&c);
    }
}

static void conv_sums(void **state)
{
    (void)state;
    EACH_TABLE(kern)
    {
        for (size_t i = 0; i < sizeof CONVS / sizeof *CONVS; i++) {
            struct conv_case c = conv_case_new(&CONVS[i]);
            float behind = c.y[CONVS[i].n_t];
            kern->conv(&c.conv, 0, c.n_out);
            check_conv(&c);
            assert_true(c.y[CONVS[i].n_t] == behind); /* nothing is written behind a row */
            conv_case_free(&c);
        }
    }
}

/* The same outputs from calls of 1, 2, 3, ... moments and of 1, 2, 3, ... channels. */
static void conv_borders_do_not_show(void **state)
{
    (void)state;
    EACH_TABLE(kern)
    {
        for (size_t i = 0; i < sizeof CONVS / sizeof *CONVS; i++) {
            struct conv_case c = conv_case_new(&CONVS[i]);
            kern->conv(&c.conv, 0, c.n_out);
            size_t n = (size_t)(c.conv.y_stride * c.n_out);
            float *want = malloc(n * sizeof *want);
            memcpy(want, c.y, n * sizeof *want);
            memset(c.y, 0, (n - 3) * sizeof *want);
            int64_t step = 1;
            for (int64_t t = 0; t < c.conv.n_t; t += step++) {
                struct kern_conv piece = c.conv;
                piece.x += t, piece.y += t;
                piece.residual = piece.residual ? piece.residual + t : NULL;
                piece.n_t = piece.n_t - t < step ? piece.n_t - t : step;
                for (int o = 0, rows = (int)step; o < c.n_out; o += rows++) {
                    kern->conv(&piece, o, c.n_out - o < rows ? c.n_out : o + rows);
                }
            }
            for (int64_t o = 0; o < c.n_out; o++) {
                size_t bytes = (size_t)c.conv.n_t * sizeof *want;
                assert_memory_equal(c.y + o * c.conv.y_stride, want + o * c.conv.y_stride, bytes);
            }
            free(want);
            conv_case_free(&c);
        }
    }
}

/* ---- Transposed convolution ---- */

struct upconv_shape {
    int n_in, n_out, stride, taps, n_t;
    bool by_moment; /* columns of channels instead of rows of moments, in and out */
};

static const struct upconv_shape UPCONVS[] = {
    {1, 1, 1, 2, 1, false}, {7, 5, 3, 6, 11, false}, {40, 37, 5, 10, 20, false},
    {70, 48, 8, 16, 4, false}, {33, 20, 4, 8, 230, false}, /* several blocks of time */
    {24, 24, 2, 2, 3, true}, {10, 9, 3, 3, 1, true}, {9, 4, 64, 128, 7, false},
    {300, 11, 4, 8, 19, false}, /* several chains */
};

struct upconv_case {
    struct kern_upconv up;
    float *x, *w, *bias, *tail, *products, *y;
    int64_t n_y;
};

static struct upconv_case upconv_case_new(const struct upconv_shape *s)
{
    struct random random = {(uint32_t)(s->n_in * 37 + s->n_t), 0};
    struct upconv_case c = {.n_y = (int64_t)s->n_out * s->n_t * s->stride};
    int64_t moments = (int64_t)s->n_t * s->stride, n_w = (int64_t)s->n_in * s->n_out * s->taps;
    c.x = numbers(&random, (int64_t)s->n_in * s->n_t, 1);
    c.w = numbers(&random, n_w, 1);
    c.bias = numbers(&random, s->n_out, 1);
    c.tail = calloc((size_t)(s->n_out * s->stride), sizeof(float));
    c.products = malloc((size_t)kern_upconv_products(s->taps) * sizeof(float));
    c.y = calloc((size_t)c.n_y, sizeof(float));
    c.up = (struct kern_upconv){.y = c.y,
        .x = c.x,
        .w = c.w,
        .bias = c.bias,
        .tail = s->taps > s->stride ? c.tail : NULL,
        .products = c.products,
        .y_stride = s->by_moment ? 1 : moments,
        .y_step = s->by_moment ? s->n_out : 1,
        .x_stride = s->by_moment ? 1 : s->n_t,
        .x_step = s->by_moment ? s->n_in : 1,
        .n_in = s->n_in,
        .n_out = s->n_out,
        .stride = s->stride,
        .taps = s->taps,
        .n_t = s->n_t};
    return c;
}

static void upconv_case_free(struct upconv_case *c)
{
    free(c->x);
    free(c->w);
    free(c->bias);
    free(c->tail);
    free(c->products);
    free(c->y);
}

/* The transposed convolution by its definition, cut on the right: y[t s + k] gets w[k] x[t]. */
static struct squares check_upconv(const struct upconv_case *c)
{
    const struct kern_upconv *u = &c->up;
    struct squares squares = {0};
    int64_t moments = u->n_t * u->stride;
    for (int64_t o = 0; o < u->n_out; o++) {
        for (int64_t at = 0; at < moments; at++) {
            double sum = (double)u->bias[o], size = fabs(sum);
            for (int64_t t = 0; t < u->n_t; t++) {
                int64_t k = at - t * u->stride;
                for (int64_t i = 0; k >= 0 && k < u->taps && i < u->n_in; i++) {
                    double term = (double)u->w[(i * u->n_out + o) * u->taps + k] *
                                  (double)u->x[i * u->x_stride + t * u->x_step];
                    sum += term;
                    size += fabs(term);
                }
            }
            double got = (double)u->y[o * u->y_stride + at * u->y_step];
            assert_true(fabs(got - sum) <= allowed(size, 2 * u->n_in));
            squares.off += (got - sum) * (got - sum);
            squares.all += sum * sum;
        }
    }
    return squares;
}

static void upconv_rounding(void **state)
{
    (void)state;
    EACH_TABLE(kern)
    {
        struct upconv_case c = upconv_case_new(&(struct upconv_shape){1536, 24, 4, 8, 20, false});
        kern->upconv(&c.up, 0, c.up.n_out);
        check_chains(check_upconv(&c), 1536, 128);
        upconv_case_free(&c);
    }
}

static void upconv_sums(void **state)
{
    (void)state;
    EACH_TABLE(kern)
    {
        for (size_t i = 0; i < sizeof UPCONVS / sizeof *UPCONVS; i++) {
            struct upconv_case c = upconv_case_new(&UPCONVS[i]);
            kern->upconv(&c.up, 0, c.up.n_out);
            check_upconv(&c);
            upconv_case_free(&c);
        }
    }
}

static void upconv_borders_do_not_show(void **state)
{
    (void)state;
    EACH_TABLE(kern)
    {
        for (size_t i = 0; i < sizeof UPCONVS / sizeof *UPCONVS; i++) {
            struct upconv_case c = upconv_case_new(&UPCONVS[i]);
            size_t bytes = (size_t)c.n_y * sizeof(float),
                   tail_bytes = (size_t)(c.up.n_out * c.up.stride) * sizeof(float);
            kern->upconv(&c.up, 0, c.up.n_out);
            float *want = malloc(bytes), *want_tail = malloc(tail_bytes);
            memcpy(want, c.y, bytes);
            memcpy(want_tail, c.tail, tail_bytes);
            memset(c.y, 0, bytes);
            memset(c.tail, 0, tail_bytes);
            int64_t step = 1;
            for (int64_t t = 0; t < c.up.n_t; t += step++) {
                struct kern_upconv piece = c.up;
                piece.x += t * piece.x_step, piece.y += t * piece.stride * piece.y_step;
                piece.n_t = piece.n_t - t < step ? piece.n_t - t : step;
                for (int o = 0, rows = (int)step; o < piece.n_out; o += rows++) {
                    kern->upconv(&piece, o, piece.n_out - o < rows ? piece.n_out : o + rows);
                }
            }
            assert_memory_equal(c.y, want, bytes);
            assert_memory_equal(c.tail, want_tail, tail_bytes);
            free(want);
            free(want_tail);
            upconv_case_free(&c);
        }
    }
}

/* ---- Snake ---- */

/* The angle is rounded before the sine, as the official code does; the rest may be off by rounding. */
static void check_snake(float y, float x, float a, float b)
{
    float angle = x * a;
    double sine = sin((double)angle), square = sine * sine, want = (double)x + (double)b * square;
    double off = 0x1p-24 * (fabs(want) + fabs((double)x)) +
                 (double)b * (fmin(6 * square, 2.2) * 0x1p-24 + 0x1p-60);
    assert_true(fabs((double)y - want) <= off);
}

static void snake_values(void **state)
{
    (void)state;
    enum { N = 1003 };
    static const float angles[] = {0.8f, 3.2f, 50, 400, 4090, 4200, 1e5f, 3e9f};
    static const float scales[] = {1, 0.25f, 1e9f}; /* 1e9: what is left when exp(beta) is nothing */
    EACH_TABLE(kern)
    {
        struct random random = {5, 0};
        float x[N], y[N];
        for (size_t i = 0; i < sizeof angles / sizeof *angles; i++) {
            for (int j = 0; j < N; j++) {
                x[j] = angles[i] * random_uniform(&random);
            }
            for (size_t k = 0; k < sizeof scales / sizeof *scales; k++) {
                for (float a = 1; a < 1.5f; a += 0.37f) {
                    kern->snake(y, x, a, scales[k], N);
                    for (int j = 0; j < N; j++) {
                        check_snake(y[j], x[j], a, scales[k]);
                    }
                }
            }
        }
    }
}

/* Multiples of pi / 2, where little is left of the angle. */
static void snake_near_its_zeros(void **state)
{
    (void)state;
    enum { N = 2600 };
    EACH_TABLE(kern)
    {
        float x[N], y[N];
        for (int j = 0; j < N; j++) {
            x[j] = (float)((j - N / 2) * 1.5707963267948966);
        }
        kern->snake(y, x, 1, 1e9f, N);
        for (int j = 0; j < N; j++) {
            check_snake(y[j], x[j], 1, 1e9f);
        }
    }
}

static void snake_borders_do_not_show(void **state)
{
    (void)state;
    enum { N = 131 };
    EACH_TABLE(kern)
    {
        struct random random = {9, 0};
        float x[N], y[N], piece[N];
        random_fill(&random, x, N, 3000); /* some beyond the reach of the vectors */
        kern->snake(y, x, 1.7f, 0.3f, N);
        int step = 1;
        for (int t = 0; t < N; t += step++) {
            kern->snake(piece + t, x + t, 1.7f, 0.3f, N - t < step ? N - t : step);
        }
        assert_memory_equal(piece, y, sizeof y);
        kern->snake(x, x, 1.7f, 0.3f, N); /* in place */
        assert_memory_equal(x, y, sizeof y);
    }
}

static void snake_of_no_number(void **state)
{
    (void)state;
    EACH_TABLE(kern)
    {
        float x[19], y[19];
        for (int i = 0; i < 19; i++) {
            x[i] = 0.5f;
        }
        x[3] = NAN, x[17] = INFINITY;
        kern->snake(y, x, 1, 1, 19);
        for (int i = 0; i < 19; i++) {
            assert_int_equal(isnan(y[i]) != 0, i == 3 || i == 17);
        }
    }
}

/* ---- Whole numbers ---- */

enum {
    GROUPS = 3,
    WHOLE_IN = GROUPS * KERN_WHOLE_GROUP,
    OUT = 2 * KERN_WHOLE_GROUP,
    TAPS = 3,
    DILATION = 5,
    N_T = 150,
    STRIDE = (TAPS - 1) * DILATION + N_T + KERN_PAD,
    PAIRS = KERN_WHOLE_GROUP / 2,
};

struct whole_case {
    struct kern_whole conv;
    float x[WHOLE_IN * STRIDE], y[OUT * STRIDE], scales[GROUPS * STRIDE], residual[OUT * STRIDE];
    float bias[OUT], w_scales[OUT];
    int32_t codes[WHOLE_IN / 2 * STRIDE], w[OUT * WHOLE_IN / 2 * TAPS];
};

static struct whole_case *whole_case_new(void)
{
    struct random random = {77, 0};
    struct whole_case *c = calloc(1, sizeof *c);
    random_fill(&random, c->x, WHOLE_IN * STRIDE, 1);
    random_fill(&random, c->residual, OUT * STRIDE, 1);
    random_fill(&random, c->bias, OUT, 1);
    c->x[40] = 500; /* costs its own moment and group only */
    for (int i = 0; i < OUT; i++) {
        c->w_scales[i] = 0.001f * (float)(i + 1);
    }
    for (int i = 0; i < OUT * WHOLE_IN / 2 * TAPS; i++) { /* a group of at most 2,047 each */
        uint32_t word = random_word(&random);
        uint32_t low = word % 4095 - 2047, high = (word >> 12) % 4095 - 2047;
        c->w[i] = (int32_t)((low & 0xffff) | high << 16);
    }
    c->conv = (struct kern_whole){c->y, c->codes, c->scales, c->w, c->w_scales, c->bias, c->residual,
        STRIDE, STRIDE, GROUPS, TAPS, DILATION, N_T};
    return c;
}

static double whole_weight(const struct whole_case *c, int o, int i, int j)
{
    int n = kern_whole_visit(TAPS), g = i / KERN_WHOLE_GROUP, g0 = g / n * n;
    int64_t at =
        kern_whole_place(o - o % KERN_WHOLE_ROWS, g0, GROUPS - g0 < n ? GROUPS - g0 : n, GROUPS);
    at = ((at + g - g0) * TAPS + j) * PAIRS + i % KERN_WHOLE_GROUP / 2;
    int32_t word = c->w[at * KERN_WHOLE_ROWS + o % KERN_WHOLE_ROWS];
    return (double)(i % 2 ? word >> 16 : (int16_t)(word & 0xffff)) * (double)c->w_scales[o];
}

static void check_whole(const struct whole_case *c)
{
    for (int o = 0; o < OUT; o++) {
        for (int t = 0; t < N_T; t++) {
            double sum = (double)c->bias[o] + (double)c->residual[o * STRIDE + t], size = 0;
            for (int i = 0; i < WHOLE_IN; i++) {
                for (int j = 0; j < TAPS; j++) {
                    double weight = whole_weight(c, o, i, j);
                    sum += weight * (double)c->x[i * STRIDE + t + j * DILATION];
                    size += fabs(weight) * (i < 32 && t + j * DILATION == 40 ? 500 : 1);
                }
            }
            /* Half a step, and fp32. */
            assert_true(fabs((double)c->y[o * STRIDE + t] - sum) <= size * 0.6 / 32767);
        }
    }
}

/* Rounded rows and a convolution of them against sums in double; then in calls of 1, 2, 3, ... moments, to the bit. */
static void whole_sums(void **state)
{
    (void)state;
    EACH_TABLE(kern)
    {
        struct whole_case *c = whole_case_new();
        float *again = calloc(OUT * STRIDE, sizeof *again);
        for (int g = 0; g < GROUPS; g++) {
            struct kern_whole_rounding rounding = {c->codes + g * PAIRS * STRIDE,
                c->scales + g * STRIDE, c->x + g * KERN_WHOLE_GROUP * STRIDE, NULL, NULL, STRIDE,
                STRIDE};
            kern->whole_round(&rounding, STRIDE - KERN_PAD);
        }
        kern->whole(&c->conv, 0, OUT);
        check_whole(c);
        for (int64_t t = 0, step = 1; t < N_T; t += step++) {
            struct kern_whole piece = c->conv;
            piece.y = again + t, piece.x += t, piece.x_scales += t, piece.residual += t;
            piece.n_t = N_T - t < step ? N_T - t : step;
            for (int o = 0; o < OUT; o += KERN_WHOLE_GROUP) {
                kern->whole(&piece, o, o + KERN_WHOLE_GROUP);
            }
        }
        assert_memory_equal(again, c->y, OUT * STRIDE * sizeof *again);
        free(again);
        free(c);
    }
}

/* The largest sums that the contract allows do not wrap: all in one pair or spread, up and down. */
static void whole_sums_do_not_overflow(void **state)
{
    (void)state;
    enum { LONE = 1 + KERN_PAD };
    static int32_t codes[PAIRS * LONE], w[PAIRS * KERN_WHOLE_GROUP];
    static float scales[LONE], w_scales[KERN_WHOLE_GROUP], bias[KERN_WHOLE_GROUP], y[KERN_WHOLE_GROUP];
    for (int p = 0; p < PAIRS; p++) {
        codes[p * LONE] = (int32_t)0x7fff7fff;
    }
    scales[0] = 1;
    for (int r = 0; r < KERN_WHOLE_GROUP; r++) {
        uint32_t code = r % 4 < 2 ? 0x7fff : 0x07ff, down = 0x10000u - code;
        uint32_t pair = (r % 2 ? down : code) * 0x10001u;
        for (int p = 0; p < (r % 4 < 2 ? 1 : PAIRS); p++) {
            w[((r / KERN_WHOLE_ROWS) * PAIRS + p) * KERN_WHOLE_ROWS + r % KERN_WHOLE_ROWS] =
                (int32_t)pair;
        }
        w_scales[r] = 1;
    }
    EACH_TABLE(kern)
    {
        struct kern_whole c = {y, codes, scales, w, w_scales, bias, NULL, 1, LONE, 1, 1, 1, 1};
        kern->whole(&c, 0, KERN_WHOLE_GROUP);
        for (int r = 0; r < KERN_WHOLE_GROUP; r++) {
            float size = (r % 4 < 2 ? 2 * 32767.0f : 32 * 2047.0f) * 32767.0f;
            assert_true(y[r] == (r % 2 ? -size : size));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conv_sums),
        cmocka_unit_test(conv_rounding),
        cmocka_unit_test(conv_borders_do_not_show),
        cmocka_unit_test(upconv_sums),
        cmocka_unit_test(upconv_rounding),
        cmocka_unit_test(upconv_borders_do_not_show),
        cmocka_unit_test(snake_values),
        cmocka_unit_test(snake_near_its_zeros),
        cmocka_unit_test(snake_borders_do_not_show),
        cmocka_unit_test(snake_of_no_number),
        cmocka_unit_test(whole_sums),
        cmocka_unit_test(whole_sums_do_not_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
