/* SPDX-License-Identifier: Apache-2.0
 * Every table that runs here: convolutions, transposed convolutions and the snake against sums in double;
 * and that no border of a call, a part or a tile changes a bit. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/kernels/kern.h"
#include "tests/cpu/random.h"
#include "tests/support.h"

static const char *const TABLES[] = {
    "c", "avx2", "avxvnni", "avx512", "avx512vnni", "amx", "neon", "dotprod", "i8mm"};
enum { N_TABLES = sizeof TABLES / sizeof *TABLES };

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
 * sqrt((chain + n / chain) / 6): the difference that fp64 shows in the vocoder's sound
 * (docs/log/same-as-official.md). */
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

/* The same outputs from calls of 1, 2, 3, ... time steps and of 1, 2, 3, ... channels. */
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
    bool by_time; /* columns of channels instead of rows of time steps, in and out */
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
    int64_t time_steps = (int64_t)s->n_t * s->stride, n_w = (int64_t)s->n_in * s->n_out * s->taps;
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
        .y_stride = s->by_time ? 1 : time_steps,
        .y_step = s->by_time ? s->n_out : 1,
        .x_stride = s->by_time ? 1 : s->n_t,
        .x_step = s->by_time ? s->n_in : 1,
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
    int64_t time_steps = u->n_t * u->stride;
    for (int64_t o = 0; o < u->n_out; o++) {
        for (int64_t at = 0; at < time_steps; at++) {
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
