/* SPDX-License-Identifier: Apache-2.0
 * Every table that runs here: matrix products, gates, attention, against sums in double; and that the
 * way the work is cut up never changes a bit. */
#include <stdlib.h>
#include <string.h>

#include "base/threads.h"
#include "cpu/kernels/kern.h"
#include "tests/cpu/random.h"
#include "tests/support.h"

static const char *const TABLES[] = {
    "c", "avx2", "avxvnni", "avx512", "avx512vnni", "amx", "neon", "dotprod", "i8mm"};
enum { N_TABLES = sizeof TABLES / sizeof *TABLES };

#define EACH_TABLE(kern)                                                                               \
    for (int i_##kern = 0; i_##kern < N_TABLES; i_##kern++)                                            \
        for (const struct kern *kern = kern_find(TABLES[i_##kern]); kern; kern = NULL)

static void test_tables(void **state)
{
    (void)state;
    const char *all = kern_all();
    assert_ptr_equal(kern_find("c"), &kern_c);
    assert_null(kern_find("none"));
    assert_non_null(kern_find(NULL));
    EACH_TABLE(kern)
    {
        assert_string_equal(kern->name, TABLES[i_kern]);
        assert_non_null(strstr(all, kern->name));
    }
    for (int i = 0; i < N_TABLES; i++) {
        assert_int_equal(kern_find(TABLES[i]) != NULL, strstr(all, TABLES[i]) != NULL);
    }
}

/* ---- Matrix products ---- */

struct product {
    int64_t n_rows, n_k, x_stride, y_stride;
    int n_c;
    enum dtype type;
    char *w; /* not aligned: begins 2 bytes into its block, as tensors in files may */
    char *block;
    float *x, *y;
    double *want, *size; /* [n_c][n_rows]: the sum, and the sum of magnitudes */
};

static double weight_at(const struct product *p, int64_t r, int64_t k)
{
    int64_t i = r * p->n_k + k;
    uint16_t h;
    float f;
    if (p->type == DTYPE_F32) {
        memcpy(&f, p->w + 4 * i, 4);
        return f;
    }
    memcpy(&h, p->w + 2 * i, 2);
    return p->type == DTYPE_BF16 ? bf16_to_float(h) : f16_to_float(h);
}

static struct product product_new(enum dtype type, int64_t n_rows, int64_t n_k, int n_c)
{
    struct random random = {(uint32_t)(n_rows * 7 + n_k), 0};
    struct product p = {
        n_rows, n_k, n_k + 3, n_rows + 5, n_c, type, NULL, NULL, NULL, NULL, NULL, NULL};
    size_t bytes = type == DTYPE_F32 ? 4 : 2, n = (size_t)(n_rows * n_k);
    p.block = malloc(n * bytes + 4);
    p.w = p.block + (type == DTYPE_F32 ? 4 : 2);
    for (size_t i = 0; i < n; i++) {
        float f = random_normal(&random);
        uint16_t h =
            type == DTYPE_BF16 ? bf16_from_float(f) : (uint16_t)(random_word(&random) & 0xbbff);
        memcpy(p.w + i * bytes, type == DTYPE_F32 ? (void *)&f : (void *)&h, bytes);
    }
    p.x = malloc((size_t)(p.x_stride * n_c) * 4);
    p.y = malloc((size_t)(p.y_stride * n_c) * 4);
    random_fill(&random, p.x, p.x_stride * n_c, 1);
    p.want = calloc((size_t)(n_rows * n_c), 8);
    p.size = calloc((size_t)(n_rows * n_c), 8);
    for (int c = 0; c < n_c; c++) {
        for (int64_t r = 0; r < n_rows; r++) {
            for (int64_t k = 0; k < n_k; k++) {
                double term = weight_at(&p, r, k) * (double)p.x[c * p.x_stride + k];
                p.want[c * n_rows + r] += term;
                p.size[c * n_rows + r] += fabs(term);
            }
        }
    }
    return p;
}

static void product_free(struct product *p)
{
    free(p->block);
    free(p->x);
    free(p->y);
    free(p->want);
    free(p->size);
}

static kern_matmul_fn *matmul_of(const struct kern *kern, enum dtype type)
{
    return type == DTYPE_F32   ? kern->matmul_f32
           : type == DTYPE_F16 ? kern->matmul_f16
                               : kern->matmul_bf16;
}

static const float UNTOUCHED = -12345.0f;

static void run_product(
    struct product *p, kern_matmul_fn *matmul, int64_t r0, int64_t r1, int c0, int n_c)
{
    for (int64_t i = 0; i < p->y_stride * p->n_c; i++) {
        p->y[i] = UNTOUCHED;
    }
    matmul(p->y + c0 * p->y_stride, p->y_stride, p->w, p->n_k, r0, r1, p->x + c0 * p->x_stride,
        p->x_stride, n_c);
}

/* A lane sums at most n_k terms one after the other: an error of n_k * 2^-24 of the sum of magnitudes at
 * the very worst; 16 * 2^-24 is what random signs give with room to spare. */
static void check_product(const struct product *p)
{
    for (int c = 0; c < p->n_c; c++) {
        for (int64_t r = 0; r < p->y_stride; r++) {
            float y = p->y[c * p->y_stride + r];
            if (r >= p->n_rows) {
                assert_true(y == UNTOUCHED);
                continue;
            }
            int64_t i = c * p->n_rows + r;
            assert_true(fabs((double)y - p->want[i]) <= 16 * 0x1p-24 * p->size[i]);
        }
    }
}

/* Any rows and columns alone give the bits that they give with all others. */
static void check_cuts(struct product *p, kern_matmul_fn *matmul)
{
    size_t n = (size_t)(p->y_stride * p->n_c);
    float *whole = malloc(n * 4);
    memcpy(whole, p->y, n * 4);
    struct random random = {9, 0};
    for (int i = 0; i < 12; i++) {
        int64_t r0 = random_word(&random) % (uint32_t)p->n_rows;
        int64_t r1 = r0 + 1 + random_word(&random) % (uint32_t)(p->n_rows - r0);
        int c0 = (int)(random_word(&random) % (uint32_t)p->n_c);
        int n_c = i == 0 ? 1 : 1 + (int)(random_word(&random) % (uint32_t)(p->n_c - c0));
        run_product(p, matmul, r0, r1, c0, n_c);
        for (int c = 0; c < p->n_c; c++) {
            for (int64_t r = 0; r < p->n_rows; r++) {
                bool asked = r >= r0 && r < r1 && c >= c0 && c < c0 + n_c;
                /* y of column c0 begins at its own row 0 */
                float y = p->y[c * p->y_stride + r];
                assert_true(asked ? y == whole[c * p->y_stride + r] : y == UNTOUCHED);
            }
        }
    }
    free(whole);
}

static void test_matmul(void **state)
{
    (void)state;
    static const struct {
        int64_t n_rows, n_k;
        int n_c;
    } SHAPES[] = {{1, 1, 1}, {3, 5, 2}, {8, 16, 1}, {17, 33, 3}, {13, 64, 5}, {40, 128, 8},
        {31, 100, 19}, {70, 1024, 7}, {9, 3072, 4}, {200, 513, 2}};
    static const enum dtype TYPES[] = {DTYPE_BF16, DTYPE_F16, DTYPE_F32};
    for (size_t i = 0; i < sizeof SHAPES / sizeof *SHAPES; i++) {
        for (int t = 0; t < 3; t++) {
            struct product p = product_new(TYPES[t], SHAPES[i].n_rows, SHAPES[i].n_k, SHAPES[i].n_c);
            EACH_TABLE(kern)
            {
                run_product(&p, matmul_of(kern, p.type), 0, p.n_rows, 0, p.n_c);
                check_product(&p);
                check_cuts(&p, matmul_of(kern, p.type));
            }
            product_free(&p);
        }
    }
}

/* Values with no room for rounding, and those that only bits can tell. */
static void test_special_weights(void **state)
{
    (void)state;
    static const uint16_t HALVES[] = {
        0x0000, 0x8000, 0x0001, 0x83ff, 0x0400, 0x3c00, 0xbc00, 0x7bff, 0xfbff, 0x7c00, 0xfc00};
    EACH_TABLE(kern)
    {
        for (size_t i = 0; i < sizeof HALVES / sizeof *HALVES; i++) {
            uint16_t w[20] = {0};
            float x[20] = {0}, y;
            for (int at = 0; at < 20; at += 19) { /* a whole vector, and the tail */
                memset(w, 0, sizeof w);
                memset(x, 0, sizeof x);
                w[at] = HALVES[i];
                x[at] = 1;
                kern->matmul_f16(&y, 1, w, 20, 0, 1, x, 20, 1);
                assert_true(y == f16_to_float(HALVES[i]));
                w[at] = (uint16_t)(HALVES[i] | 0x0100);
                kern->matmul_bf16(&y, 1, w, 20, 0, 1, x, 20, 1);
                float want = bf16_to_float(w[at]);
                assert_true(isnan(want) ? isnan(y) : y == want);
            }
        }
    }
}

static void test_pool(void **state)
{
    (void)state;
    struct product p = product_new(DTYPE_BF16, 333, 512, 6);
    EACH_TABLE(kern)
    {
        run_product(&p, kern->matmul_bf16, 0, p.n_rows, 0, p.n_c);
        size_t n = (size_t)(p.y_stride * p.n_c);
        float *whole = malloc(n * 4);
        memcpy(whole, p.y, n * 4);
        for (int n_threads = 1; n_threads <= 8; n_threads += n_threads == 1 ? 1 : 6) {
            struct pool *pool = pool_new(n_threads);
            struct weight w = {p.w, DTYPE_BF16, p.n_rows, p.n_k};
            struct weight head = {p.w, DTYPE_BF16, 100, p.n_k};
            struct weight tail = {p.w + 2 * 100 * p.n_k, DTYPE_BF16, p.n_rows - 100, p.n_k};
            memset(p.y, 0, n * 4);
            kern_matmul(kern, pool, p.y, p.y_stride, &w, p.x, p.x_stride, p.n_c, NULL);
            for (int c = 0; c < p.n_c; c++) {
                assert_memory_equal(p.y + c * p.y_stride, whole + c * p.y_stride, (size_t)p.n_rows * 4);
            }
            memset(p.y, 0, n * 4);
            struct kern_product parts[] = {{p.y, p.y_stride, &head}, {p.y + 100, p.y_stride, &tail}};
            kern_products(kern, pool, parts, 2, p.x, p.x_stride, p.n_c, NULL);
            for (int c = 0; c < p.n_c; c++) {
                assert_memory_equal(p.y + c * p.y_stride, whole + c * p.y_stride, (size_t)p.n_rows * 4);
            }
            pool_free(pool);
        }
        free(whole);
    }
    product_free(&p);
}

/* ---- Activations ---- */

static double relative(double have, double want, double floor)
{
    return fabs(have - want) / (fabs(want) > floor ? fabs(want) : floor);
}

static void test_silu_mul(void **state)
{
    (void)state;
    enum { N = 1031 };
    EACH_TABLE(kern)
    {
        float gate[N + 1], up[N + 1], have[N + 1];
        for (int i = 0; i <= N; i++) {
            gate[i] = (float)(i - N / 2) * 0.25f; /* -129 .. 129 */
            up[i] = i % 2 ? 1.0f : -0.5f;
        }
        memcpy(have, gate, sizeof have);
        kern->silu_mul(have, up, N);
        assert_true(have[N] == gate[N]);
        for (int i = 0; i < N; i++) {
            double g = (double)gate[i], want = g / (1 + exp(-g)) * (double)up[i];
            /* exp is off by 2 ulp at most; the rest rounds three times */
            assert_true(relative((double)have[i], want, 1e-30) < 5 * 0x1p-23 || fabs(want) < 1e-36);
        }
        for (int i = 0; i < N; i++) { /* the place of a value does not matter */
            float one = gate[i];
            kern->silu_mul(&one, &up[i], 1);
            assert_true(one == have[i]);
        }
        float special[3] = {NAN, INFINITY, -INFINITY}, ones[3] = {1, 1, 1};
        kern->silu_mul(special, ones, 3);
        assert_true(isnan(special[0]) && special[1] == INFINITY);
        assert_false(special[2] < 0 || special[2] > 0); /* -inf * 0 */
    }
}

static void test_gelu(void **state)
{
    (void)state;
    enum { N = 401 };
    EACH_TABLE(kern)
    {
        float x[N];
        for (int i = 0; i < N; i++) {
            x[i] = (float)(i - N / 2) * 0.05f;
        }
        kern->gelu(x, N);
        for (int i = 0; i < N; i++) {
            double v = (double)((float)(i - N / 2) * 0.05f), want = 0.5 * v * (1 + erf(v * sqrt(0.5)));
            assert_true(fabs((double)x[i] - want) <= 0x1p-23 * fmax(fabs(v), 1e-6));
        }
    }
}

/* ---- Attention ---- */

static void attend_exact(const struct kern_attend *a, const float *q, double *out)
{
    double *p = calloc((size_t)a->n_keys, 8), largest = -INFINITY, sum = 0;
    for (int64_t i = 0; i < a->n_keys; i++) {
        const float *key = a->keys + (a->first + i) % a->capacity * a->stride;
        for (int d = 0; d < a->head; d++) {
            p[i] += (double)q[d] * (double)key[d] * (double)a->scale;
        }
        largest = fmax(largest, p[i]);
    }
    for (int d = 0; d < a->head; d++) {
        out[d] = 0;
    }
    for (int64_t i = 0; i < a->n_keys; i++) {
        sum += p[i] = exp(p[i] - largest);
    }
    for (int64_t i = 0; i < a->n_keys; i++) {
        for (int d = 0; d < a->head; d++) {
            out[d] += p[i] / sum * (double)a->values[(a->first + i) % a->capacity * a->stride + d];
        }
    }
    free(p);
}

static void check_attend(
    const struct kern *kern, int head, int64_t capacity, int64_t first, int64_t n_keys, float scale)
{
    struct random random = {(uint32_t)(head + capacity), 0};
    int64_t stride = head + 3;
    float *keys = malloc((size_t)(capacity * stride) * 4),
          *values = malloc((size_t)(capacity * stride) * 4);
    float *q = malloc((size_t)head * 4), *out = malloc((size_t)head * 4),
          *scores = malloc((size_t)n_keys * 4);
    double *want = malloc((size_t)head * 8);
    random_fill(&random, keys, capacity * stride, 1);
    random_fill(&random, values, capacity * stride, 1);
    random_fill(&random, q, head, 1);
    for (int64_t i = n_keys; i < capacity; i++) { /* slots outside must not be looked at */
        for (int64_t d = 0; d < stride; d++) {
            keys[(first + i) % capacity * stride + d] = values[(first + i) % capacity * stride + d] =
                NAN;
        }
    }
    struct kern_attend a = {keys, values, stride, capacity, first, n_keys, head, scale};
    kern->attend(&a, out, q, scores);
    attend_exact(&a, q, want);
    for (int d = 0; d < head; d++) {
        /* scores up to some tens, each off by about head * 2^-24 of its size: e^x turns that into a relative error */
        assert_true(fabs((double)out[d] - want[d]) < 2e-5);
    }
    free(keys);
    free(values);
    free(q);
    free(out);
    free(scores);
    free(want);
}

static void test_attend(void **state)
{
    (void)state;
    EACH_TABLE(kern)
    {
        check_attend(kern, 128, 1, 0, 1, 0.088f);
        check_attend(kern, 128, 40, 0, 33, 0.088f);
        check_attend(kern, 64, 103, 60, 72, 0.125f); /* a ring, past its end */
        check_attend(kern, 64, 72, 71, 72, 0.125f);
        check_attend(kern, 128, 700, 0, 700, 0.088f);
        check_attend(kern, 36, 50, 20, 50, 1.0f); /* sharp, and a head that fills no vector */
        check_attend(kern, 2, 9, 3, 5, 0.7f);
    }
}

/* Far apart scores: the far ones weigh nothing, and nothing overflows. */
static void test_attend_range(void **state)
{
    (void)state;
    EACH_TABLE(kern)
    {
        float keys[3 * 4] = {1000, 0, 0, 0, -1000, 0, 0, 0, 999, 0, 0, 0},
                       values[3 * 4] = {1, 2, 3, 4, 9, 9, 9, 9, 1, 2, 3, 4};
        float q[4] = {1, 0, 0, 0}, out[4], scores[3];
        struct kern_attend a = {keys, values, 4, 3, 0, 3, 4, 1.0f};
        kern->attend(&a, out, q, scores);
        for (int d = 0; d < 4; d++) {
            assert_true(fabsf(out[d] - (float)(d + 1)) < 1e-6f);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_matmul),
        cmocka_unit_test(test_special_weights),
        cmocka_unit_test(test_pool),
        cmocka_unit_test(test_silu_mul),
        cmocka_unit_test(test_gelu),
        cmocka_unit_test(test_attend),
        cmocka_unit_test(test_attend_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
