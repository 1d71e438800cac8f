/* SPDX-License-Identifier: Apache-2.0
 * Packed weights behind every table: against sums in double, against the plain table, and that neither cuts,
 * threads nor neighbours change a bit. */
#include <stdlib.h>

#include "base/threads.h"
#include "tests/cpu/backend_run.h"
#include "tests/cpu/random.h"
#include "tests/cpu/tile_emulation.h"

static const char *const TABLES[] = {
    "c", "emulated", "avx2", "avxvnni", "avx512", "avx512vnni", "amx", "neon", "dotprod", "i8mm"};
enum { N_TABLES = sizeof TABLES / sizeof *TABLES };

static const struct kern *table_at(int i)
{
    return strcmp(TABLES[i], "emulated") == 0 ? &tiles_emulated : kern_find(TABLES[i]);
}

#define EACH_TABLE(kern)                                                                               \
    for (int i_##kern = 0; i_##kern < N_TABLES; i_##kern++)                                            \
        for (const struct kern *kern = table_at(i_##kern); kern; kern = NULL)

struct product {
    struct weight w;
    void *blocks;
    float *x, *y;
    double *want, *most; /* [n_c][rows]: the sum, and how far rounding x may move it */
    int n_c;
    int64_t y_stride;
};

static struct product product_new(enum dtype type, int64_t rows, int64_t cols, int n_c)
{
    struct random random = {(uint32_t)(rows * 3 + cols), 0};
    struct product p = {.n_c = n_c, .y_stride = rows + 3};
    size_t block = pack_block_bytes(type, cols);
    float *from = malloc((size_t)(PACK_ROWS * cols) * sizeof *from), *row = malloc((size_t)cols * 4);
    p.blocks = malloc((size_t)pack_blocks(rows) * block + 4);
    p.w = (struct weight){(char *)p.blocks + 4, type, rows, cols}; /* aligned as a file may have it */
    for (int64_t r = 0; r < rows; r += PACK_ROWS) {
        random_fill(&random, from, PACK_ROWS * cols, 0.1f);
        pack_block((char *)p.blocks + 4 + (size_t)(r / PACK_ROWS) * block, type, from,
            rows - r < PACK_ROWS ? rows - r : PACK_ROWS, cols);
    }
    p.x = malloc((size_t)(cols * n_c) * 4);
    p.y = malloc((size_t)(p.y_stride * n_c) * 4);
    random_fill(&random, p.x, cols * n_c, 1);
    p.x[0] = 1000; /* large numbers cost their neighbours nothing outside their group */
    p.want = calloc((size_t)(rows * n_c), 8);
    p.most = calloc((size_t)(rows * n_c), 8);
    for (int64_t i = 0; i < rows * n_c; i++) {
        const float *x = p.x + i / rows * cols;
        pack_row(p.w.data, type, cols, i % rows, row);
        for (int64_t k = 0; k < cols; k++) {
            double largest = 0, term = (double)row[k] * (double)x[k];
            for (int64_t j = k / 32 * 32; j < cols && j < k / 32 * 32 + 32; j++) {
                largest = fmax(largest, fabs((double)x[j]));
            }
            p.want[i] += term;
            /* half a step of 16 or 8 bits; and fp32, where group sums are added */
            double steps = type == DTYPE_Q8 ? 32767 : 127;
            p.most[i] += fabs((double)row[k]) * largest * 0.51 / steps + fabs(term) * 4 * 0x1p-24;
        }
    }
    free(from);
    free(row);
    return p;
}

static void product_free(struct product *p)
{
    free(p->blocks);
    free(p->x);
    free(p->y);
    free(p->want);
    free(p->most);
}

/* Columns c0 .. c0 + n_c through the pool. */
static void run(struct product *p, const struct kern *kern, int n_threads, int c0, int n_c)
{
    struct pool *pool = pool_new(n_threads);
    struct kern_rounded room = {0};
    assert_true(kern_rounded_init(&room, p->w.cols, n_c));
    for (int64_t i = 0; i < p->y_stride * p->n_c; i++) {
        p->y[i] = -12345;
    }
    kern_matmul(kern, pool, p->y + c0 * p->y_stride, p->y_stride, &p->w, p->x + c0 * p->w.cols,
        p->w.cols, n_c, &room);
    kern_rounded_fini(&room);
    pool_free(pool);
}

static void check(const struct product *p)
{
    for (int c = 0; c < p->n_c; c++) {
        for (int64_t r = 0; r < p->y_stride; r++) {
            float y = p->y[c * p->y_stride + r];
            int64_t i = c * p->w.rows + r;
            assert_true(r < p->w.rows ? fabs((double)y - p->want[i]) <= p->most[i] : y == -12345);
        }
    }
}

static void test_products(void **state)
{
    (void)state;
    static const int SHAPES[][3] = {{1, 1, 1}, {16, 32, 1}, {17, 33, 3}, {40, 100, 9}, {33, 1024, 14},
        {200, 96, 21}, {4099, 64, 2}, {25, 1100, 37}, {50, 64, 86}};
    for (size_t i = 0; i < sizeof SHAPES / sizeof *SHAPES; i++) {
        for (enum dtype type = DTYPE_Q8; type <= DTYPE_Q4; type++) {
            struct product p = product_new(type, SHAPES[i][0], SHAPES[i][1], SHAPES[i][2]);
            size_t n = (size_t)(p.y_stride * p.n_c);
            float *before[2] = {malloc(n * 4), malloc(n * 4)}, *whole = malloc(n * 4);
            bool have[2] = {false, false};
            EACH_TABLE(kern)
            {
                run(&p, kern, 1, 0, p.n_c);
                check(&p);
                memcpy(whole, p.y, n * 4);
                /* Equal in all tables with fused steps, and in all without. */
                int fused = strcmp(kern->name, "c") != 0 && kern != &tiles_emulated;
                assert_true(!have[fused] || memcmp(before[fused], whole, n * 4) == 0);
                memcpy(before[fused], whole, n * 4);
                have[fused] = true;
                if (kern != &tiles_emulated) { /* whose tiles are one thread's */
                    run(&p, kern, 3, 0, p.n_c);
                }
                assert_memory_equal(p.y, whole, n * 4);
                assert_int_equal(emulated_begun, 0);
                for (int c = 0; c < p.n_c; c++) {
                    run(&p, kern, 1, c, 1);
                    size_t at = (size_t)(c * p.y_stride);
                    assert_memory_equal(p.y + at, whole + at, (size_t)p.w.rows * 4);
                }
            }
            free(before[0]);
            free(before[1]);
            free(whole);
            product_free(&p);
        }
    }
}

static void test_no_number(void **state)
{
    (void)state;
    static const float WRONG[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 6; i++) {
        struct product p = product_new(i < 3 ? DTYPE_Q8 : DTYPE_Q4, 20, 70, 2);
        p.x[69] = WRONG[i % 3];
        EACH_TABLE(kern)
        {
            run(&p, kern, 1, 0, 2);
            for (int r = 0; r < 20; r++) {
                assert_true(isnan(p.y[r]) && isfinite(p.y[p.y_stride + r]));
            }
        }
        product_free(&p);
    }
}

/* Codes and samples of a few frames of each of the kinds together, one lane each. */
static void speak(const struct model *model, const int *kinds, int n, int n_threads, int32_t *codes)
{
    const struct config *c = model->config;
    struct backend *b = open_backend(model, n, n_threads);
    for (int i = 0; i < n; i++) {
        struct row rows[N_ROWS];
        struct lane_settings settings = SETTINGS;
        settings.min_frames = N_FRAMES;
        make_rows(c, kinds[i], rows, N_ROWS);
        assert_int_equal(cpu->lane_reset(b, i, &settings, NULL), UTTER_OK);
        assert_int_equal(cpu->prefill(b, i, rows, N_ROWS - kinds[i] * 3, NULL), UTTER_OK);
    }
    for (int t = 0; t < N_FRAMES; t++) {
        struct frame_in in[8];
        for (int i = 0; i < n; i++) {
            in[i] = (struct frame_in){i, text_of(c, kinds[i], t), NULL};
        }
        assert_int_equal(cpu->frame(b, in, n, NULL), UTTER_OK);
        for (int i = 0; i < n; i++) {
            struct lane_out out;
            assert_int_equal(cpu->collect(b, i, &out, NULL), UTTER_OK);
            memcpy(codes + (i * N_FRAMES + t) * c->n_codebooks, out.codes, (size_t)c->n_codebooks * 4);
        }
    }
    cpu->close(&b);
}

static void test_lanes(void **state)
{
    (void)state;
    static const int kinds[] = {1, 2, 3};
    for (enum dtype type = DTYPE_Q8; type <= DTYPE_Q4; type++) {
        struct model *model = open_model(MODEL);
        uint64_t talker_bytes = model->talker_frame_bytes, parameters = model->all_parameters;
        assert_int_equal(model_pack(model, type, 2, NULL), UTTER_OK);
        assert_int_equal(model->talker.stack.layers[0].down.type, type);
        assert_int_equal(model->talker.head.type, DTYPE_Q8);
        assert_int_equal(model->all_parameters, parameters);
        assert_true(model->talker_frame_bytes < talker_bytes);
        assert_int_equal(model_pack(model, type, 1, NULL), UTTER_OK);
        assert_int_equal(
            model_pack(model, type == DTYPE_Q8 ? DTYPE_Q4 : DTYPE_Q8, 1, NULL), UTTER_E_ARGUMENT);
        int32_t together[3 * N_FRAMES * MAX_CODEBOOKS], alone[N_FRAMES * MAX_CODEBOOKS];
        size_t n = (size_t)(N_FRAMES * model->config->n_codebooks);
        speak(model, kinds, 3, 3, together);
        for (int i = 0; i < 3; i++) {
            speak(model, &kinds[i], 1, 1, alone);
            assert_memory_equal(alone, together + (size_t)i * n, n * sizeof *alone);
        }
        model_close(&model);
    }
}

/* The predictor alone: the talker's matrices stay as they were, and what is half packed is not packed again. */
static void test_predictor_alone(void **state)
{
    (void)state;
    struct model *model = open_model(MODEL);
    assert_int_equal(model_pack_predictor(model, DTYPE_Q8, 2, NULL), UTTER_OK);
    assert_int_equal(model->predictor.stack.layers[0].down.type, DTYPE_Q8);
    assert_int_equal(model->predictor.head[0].type, DTYPE_Q8);
    assert_int_equal(model->talker.stack.layers[0].down.type, DTYPE_BF16);
    assert_int_equal(model->talker.head.type, DTYPE_BF16);
    assert_string_equal(model_weights_name(model), "q8-predictor");
    assert_int_equal(model_pack_predictor(model, DTYPE_Q8, 1, NULL), UTTER_OK);
    assert_int_equal(model_pack(model, DTYPE_Q8, 1, NULL), UTTER_E_ARGUMENT);
    int kind = 2;
    int32_t codes[N_FRAMES * MAX_CODEBOOKS];
    speak(model, &kind, 1, 1, codes);
    model_close(&model);
}

static void test_pack_failures(void **state)
{
    (void)state;
    struct model *model = open_model(MODEL);
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        utter_status status = model_pack(model, DTYPE_Q4, 1, NULL);
        /* Counting the cores is allowed to fail. */
        assert_true(status == UTTER_OK || (support_failed() && status == UTTER_E_MEMORY));
        assert_int_equal(model->talker.stack.layers[0].q.type, status ? DTYPE_BF16 : DTYPE_Q4);
    }
    model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_no_number),
        cmocka_unit_test(test_lanes),
        cmocka_unit_test(test_predictor_alone),
        cmocka_unit_test(test_pack_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
