/* SPDX-License-Identifier: Apache-2.0
 * Every table that runs here: ELU against expm1 in double, and the nearest entry of a code table. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/threads.h"
#include "cpu/encoders/encoder_conv.h"
#include "cpu/kernels/kern.h"
#include "tests/cpu/random.h"
#include "tests/support.h"

static const char *const TABLES[] = {
    "c", "avx2", "avxvnni", "avx512", "avx512vnni", "amx", "neon", "dotprod", "i8mm"};
enum { N_TABLES = sizeof TABLES / sizeof *TABLES };

#define EACH_TABLE(kern)                                                                               \
    for (int i_##kern = 0; i_##kern < N_TABLES; i_##kern++)                                            \
        for (const struct kern *kern = kern_find(TABLES[i_##kern]); kern; kern = NULL)

static void test_elu(void **state)
{
    enum { N = 4003 };
    (void)state;
    EACH_TABLE(kern)
    {
        float x[N + 1], y[N + 1];
        for (int i = 0; i < N; i++) {
            /* both signs, from far down to very near zero */
            x[i] = i < 2000 ? (float)(i - 1000) * 0.13f : ldexpf(i % 2 ? -1.3f : 1.7f, (2000 - i) / 16);
        }
        y[N] = 77;
        kern->elu(y, x, N);
        assert_true(y[N] == 77);
        for (int i = 0; i < N; i++) {
            double want = x[i] > 0 ? (double)x[i] : expm1((double)x[i]);
            assert_true(fabs((double)y[i] - want) <= 4 * 0x1p-24 * fabs(want) + 1e-44);
            float one = x[i];
            kern->elu(&one, &one, 1); /* in place, and the place of a value does not matter */
            assert_true(one == y[i]);
        }
        float special[] = {NAN, INFINITY, -INFINITY, 0.0f, -1e-40f};
        kern->elu(special, special, 5);
        assert_true(isnan(special[0]) && special[1] == INFINITY && special[2] == -1.0f);
        assert_true(fabsf(special[3]) < 1e-44f && special[4] <= 0 && special[4] > -2e-40f);
    }
}

/* A table in the layout of the kernel; entries are rows of `rows`. */
struct table {
    struct kern_nearest nearest;
    float *packed, *norms;
};

static struct table table_make(const float *rows, int64_t n, int dim, int terms)
{
    int64_t padded = (n + KERN_NEAREST_BLOCK - 1) / KERN_NEAREST_BLOCK * KERN_NEAREST_BLOCK;
    struct table t = {{0}, calloc((size_t)(padded * dim), 4), calloc((size_t)padded, 4)};
    for (int64_t e = 0; e < n; e++) {
        double square = 0;
        for (int i = 0; i < dim; i++) {
            t.packed[(e / KERN_NEAREST_BLOCK * dim + i) * KERN_NEAREST_BLOCK + e % KERN_NEAREST_BLOCK] =
                rows[e * dim + i];
            square += (double)rows[e * dim + i] * (double)rows[e * dim + i];
        }
        t.norms[e] = (float)square;
    }
    t.nearest = (struct kern_nearest){t.packed, t.norms, n, dim, terms};
    return t;
}

static void check_nearest(const struct kern *kern, int64_t n, int dim, int terms, int n_c)
{
    struct random random = {(uint32_t)(n + dim), 0};
    int64_t stride = dim + 5;
    float *rows = malloc((size_t)(n * dim) * 4), *x = malloc((size_t)(n_c * stride) * 4),
          *norms = malloc((size_t)n_c * 4);
    int32_t *index = malloc((size_t)(n_c + 1) * 4);
    random_fill(&random, rows, n * dim, 1);
    random_fill(&random, x, n_c * stride, 1);
    struct table t = table_make(rows, n, dim, terms);
    for (int c = 0; c < n_c; c++) {
        double square = 0;
        for (int i = 0; i < dim; i++) {
            square += (double)x[c * stride + i] * (double)x[c * stride + i];
        }
        norms[c] = (float)square;
    }
    index[n_c] = 99;
    kern->nearest(&t.nearest, x, stride, norms, n_c, index);
    assert_int_equal(index[n_c], 99);
    for (int c = 0; c < n_c; c++) {
        double best = INFINITY;
        int32_t want = 0;
        for (int64_t e = 0; e < n; e++) {
            double d = 0;
            for (int i = 0; i < dim; i++) {
                double step = (double)x[c * stride + i] - (double)rows[e * dim + i];
                d += step * step;
            }
            want = d < best ? (int32_t)e : want;
            best = d < best ? d : best;
        }
        assert_int_equal(index[c], want);
    }
    free(rows);
    free(x);
    free(norms);
    free(index);
    free(t.packed);
    free(t.norms);
}

static void test_nearest(void **state)
{
    (void)state;
    EACH_TABLE(kern)
    {
        check_nearest(kern, 2048, 256, 129, 7);
        check_nearest(kern, 2048, 256, 258, 4);
        check_nearest(kern, 64, 16, 18, 33);
        check_nearest(kern, 1, 3, 5, 2);
        check_nearest(kern, 45, 7, 4, 5); /* no whole block; chains of 4, 4 and 1 */
    }
}

/* Equal entries: the first one. Distances so large or so broken that none is nearest: still an index in range. */
static void test_nearest_ties(void **state)
{
    enum { N = 70, DIM = 4 };
    (void)state;
    EACH_TABLE(kern)
    {
        float rows[N * DIM], x[2 * DIM] = {1, 1, 1, 1, NAN, 0, 0, 0}, norms[2] = {4, NAN};
        int32_t index[2] = {-1, -1};
        for (int e = 0; e < N; e++) {
            for (int i = 0; i < DIM; i++) {
                rows[e * DIM + i] = e == 37 || e == 38 || e == 64 ? 0.5f : 3.0f;
            }
        }
        struct table t = table_make(rows, N, DIM, DIM + 2);
        kern->nearest(&t.nearest, x, DIM, norms, 2, index);
        assert_int_equal(index[0], 37);
        assert_int_equal(index[1], 0);
        free(t.packed);
        free(t.norms);
    }
}

/* A convolution over time steps against its definition, however it is spread. */
static void test_encoder_conv(void **state)
{
    enum { N_IN = 5, N_OUT = 19, TAPS = 3, STRIDE = 2, N_T = 300 };
    (void)state;
    struct random random = {11, 0};
    static float w[N_OUT * N_IN * TAPS], x[(N_T * STRIDE + TAPS) * N_IN], bias[N_OUT],
        residual[N_T * N_OUT], y[N_T * N_OUT], plain[N_T * N_OUT], first[N_T * N_OUT];
    random_fill(&random, w, N_OUT * N_IN * TAPS, 1);
    random_fill(&random, x, (N_T * STRIDE + TAPS) * N_IN, 1);
    random_fill(&random, bias, N_OUT, 1);
    random_fill(&random, residual, N_T * N_OUT, 1);
    struct conv_weights weights = {{w, DTYPE_F32, N_OUT, N_IN * TAPS}, bias};
    struct encoder_conv conv = {0};
    assert_true(encoder_conv_init(&conv, &weights, TAPS));
    for (int n_threads = 1; n_threads <= 5; n_threads += 4) {
        struct pool *pool = pool_new(n_threads);
        for (int n_t = 3; n_t <= N_T; n_t += N_T - 3) {
            struct encoder_conv_pass run = {
                y, plain, residual, x, STRIDE * N_IN, n_t, ENCODER_CONV_RELU};
            encoder_conv_run(&conv, kern_find(NULL), pool, &run);
            for (int t = 0; t < n_t; t++) {
                for (int o = 0; o < N_OUT; o++) {
                    double sum = (double)bias[o] + (double)residual[t * N_OUT + o];
                    for (int i = 0; i < N_IN; i++) {
                        for (int j = 0; j < TAPS; j++) {
                            sum += (double)w[(o * N_IN + i) * TAPS + j] *
                                   (double)x[(t * STRIDE + j) * N_IN + i];
                        }
                    }
                    assert_true(fabs((double)plain[t * N_OUT + o] - sum) < 1e-5);
                    float want = plain[t * N_OUT + o] > 0 ? plain[t * N_OUT + o] : 0;
                    assert_true(y[t * N_OUT + o] == want);
                }
            }
            if (n_threads == 1) {
                memcpy(first, y, sizeof y);
            }
            assert_memory_equal(first, y, (size_t)(n_t * N_OUT) * sizeof *y);
        }
        pool_free(pool);
    }
    encoder_conv_fini(&conv);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_elu),
        cmocka_unit_test(test_nearest),
        cmocka_unit_test(test_nearest_ties),
        cmocka_unit_test(test_encoder_conv),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
