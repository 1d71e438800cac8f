/* SPDX-License-Identifier: Apache-2.0
 * Tensors by name and shape, in every type; all that does not fit is told together. */
#include "tests/support.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "weights/bind.h"

static const float f32[6] = {1, 2, 3, 4, 5, 6};
static const uint16_t bf16[3] = {0x3f80, 0xc000, 0x7fc0};        /* 1, -2, NaN */
static const uint16_t f16[4] = {0x3c00, 0xc000, 0x0001, 0x7bff}; /* 1, -2, 2^-24, 65504 */
static const double f64[2] = {0.5, -4};
static const int64_t i64[2] = {1, 2};

static const struct tensor samples[] = {
    {"layers.0.w", DTYPE_F32, 2, {2, 3}, f32, 24},
    {"layers.12.part.3.w", DTYPE_F32, 3, {1, 2, 3}, f32, 24},
    {"bf16", DTYPE_BF16, 1, {3}, bf16, 6},
    {"f16", DTYPE_F16, 1, {4}, f16, 8},
    {"f64", DTYPE_F64, 1, {2}, f64, 16},
    {"i64", DTYPE_I64, 1, {2}, i64, 16},
    {"f32", DTYPE_F32, 1, {6}, f32, 24},
    {"scalar", DTYPE_F32, 0, {0}, f32, 4},
    {"{}", DTYPE_F32, 1, {1}, f32, 4},
};
static struct tensor_set *set;

static int open_samples(void **state)
{
    (void)state;
    const char *path = support_path("bind.safetensors");
    return tensor_file_write(path, samples, sizeof samples / sizeof samples[0], NULL, NULL) !=
               UTTER_OK ||
           tensor_set_open_file(&set, path, NULL) != UTTER_OK;
}

static int close_samples(void **state)
{
    (void)state;
    tensor_set_close(&set);
    return 0;
}

static void matrices_are_found_by_name_and_shape(void **state)
{
    (void)state;
    struct bind b;
    utter_error error;
    bind_begin(&b, set, "bind.safetensors");
    struct weight w = bind_weight(&b, "layers.{}.w", 0, -1, 2, (const int64_t[]){2, 3});
    assert_int_equal(w.type, DTYPE_F32);
    assert_int_equal(w.rows, 2);
    assert_int_equal(w.cols, 3);
    assert_memory_equal(w.data, f32, sizeof f32);
    w = bind_weight(&b, "layers.{}.part.{}.w", 12, 3, 3, (const int64_t[]){1, 2, 3});
    assert_int_equal(w.rows, 1);
    assert_int_equal(w.cols, 6);
    w = bind_weight(&b, "bf16", -1, -1, 1, (const int64_t[]){3});
    assert_int_equal(w.type, DTYPE_BF16);
    assert_int_equal(w.rows, 3);
    assert_int_equal(w.cols, 1);
    assert_int_equal(bind_weight(&b, "f16", 5, 6, 1, (const int64_t[]){4}).type, DTYPE_F16);
    assert_int_equal(bind_weight(&b, "scalar", -1, -1, 0, NULL).rows, 1);
    assert_non_null(bind_weight(&b, "{}", -1, -1, 1, (const int64_t[]){1}).data);
    assert_int_equal(bind_finish(&b, &error), UTTER_OK);
}

static void vectors_become_fp32(void **state)
{
    (void)state;
    struct bind b;
    bind_begin(&b, set, "bind.safetensors");
    float *v = bind_vector(&b, "bf16", -1, -1, 3);
    assert_true(v[0] == 1 && v[1] == -2 && v[2] != v[2]);
    memory_free(v);
    v = bind_vector(&b, "f16", -1, -1, 4);
    assert_true(v[0] == 1 && v[1] == -2 && v[2] == 5.9604644775390625e-8f && v[3] == 65504);
    memory_free(v);
    v = bind_vector(&b, "f64", -1, -1, 2);
    assert_true(v[0] == 0.5f && v[1] == -4);
    memory_free(v);
    v = bind_vector(&b, "f{}", 32, -1, 6);
    assert_memory_equal(v, f32, sizeof f32);
    memory_free(v);
    assert_int_equal(bind_finish(&b, NULL), UTTER_OK);
}

static void every_mismatch_is_reported(void **state)
{
    (void)state;
    struct bind b;
    utter_error error;
    bind_begin(&b, set, "bind.safetensors");
    struct weight w = bind_weight(&b, "layers.{}.w", 7, -1, 2, (const int64_t[]){2, 3});
    assert_null(w.data);
    assert_int_equal(w.rows, 0);
    bind_weight(&b, "layers.{}.w", 0, -1, 2, (const int64_t[]){3, 2});
    bind_weight(&b, "layers.{}.w", 0, -1, 1, (const int64_t[]){2});
    bind_weight(&b, "i64", -1, -1, 1, (const int64_t[]){2});
    bind_weight(&b, "f64", -1, -1, 1, (const int64_t[]){2});
    assert_null(bind_vector(&b, "i64", -1, -1, 2));
    assert_null(bind_vector(&b, "f32", -1, -1, 7));
    assert_null(bind_vector(&b, "none", -1, -1, 7));
    assert_int_equal(b.n_problems, 8);
    assert_int_equal(bind_finish(&b, &error), UTTER_E_MODEL);
    assert_string_equal(error.text, "bind.safetensors: 8 tensors do not fit: "
                                    "layers.7.w: want BF16, F16 or F32 [2, 3], have nothing; "
                                    "layers.0.w: want BF16, F16 or F32 [3, 2], have F32 [2, 3]; "
                                    "layers.0.w: want BF16, F16 or F32 [2], have F32 [2, 3]; "
                                    "i64: want BF16, F16 or F32 [2], have I64 [2]; "
                                    "f64: want BF16, F16 or F32 [2], have F64 [2]; "
                                    "i64: want floats [2], have I64 [2]; "
                                    "f32: want floats [7], have F32 [6]; "
                                    "none: want floats [7], have nothing");
    assert_null(b.report);
    bind_begin(&b, set, "x");
    assert_null(bind_vector(&b, "none", -1, -1, 1));
    assert_int_equal(bind_finish(&b, &error), UTTER_E_MODEL);
    assert_string_equal(error.text, "x: 1 tensor does not fit: none: want floats [1], have nothing");
}

static void long_reports_are_cut_and_counted(void **state)
{
    (void)state;
    struct bind b;
    utter_error error;
    int n_named = 0, n_more = 0;
    bind_begin(&b, set, "x");
    for (int i = 0; i < 100000; i++) {
        bind_weight(&b, "model.layers.{}.w", i, -1, 2, (const int64_t[]){2, 3});
    }
    assert_int_equal(bind_finish(&b, &error), UTTER_E_MODEL);
    for (const char *at = error.text; (at = strstr(at, "model.layers.")); at++) {
        n_named++;
    }
    const char *end = strstr(error.text, "; and ");
    assert_non_null(end);
    assert_int_equal(sscanf(end, "; and %d more", &n_more), 1);
    assert_true(n_named > 20);
    assert_int_equal(n_named + n_more, 100000);
    assert_string_equal(strrchr(error.text, ' '), " more");
}

static void failing_memory_is_reported(void **state)
{
    (void)state;
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        struct bind b;
        bind_begin(&b, set, "x");
        float *v = bind_vector(&b, "f32", -1, -1, 6);
        bind_vector(&b, "none", -1, -1, 1);
        assert_int_equal(bind_finish(&b, NULL), support_failed() ? UTTER_E_MEMORY : UTTER_E_MODEL);
        memory_free(v);
    }
}

/* A name of any length and any indices stay inside the buffer. */
static void long_names_are_survived(void **state)
{
    (void)state;
    char name[2000];
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = 0;
    for (size_t at = 0; at < 300; at++) {
        struct bind b;
        utter_error error;
        memcpy(name + at, "{}{}", 4);
        bind_begin(&b, set, "x");
        bind_weight(
            &b, name, 2147483647, 2147483647, 8, (const int64_t[8]){INT64_MAX, INT64_MAX, INT64_MAX});
        assert_int_equal(bind_finish(&b, &error), UTTER_E_MODEL);
        memcpy(name + at, "nnnn", 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matrices_are_found_by_name_and_shape),
        cmocka_unit_test(vectors_become_fp32),
        cmocka_unit_test(every_mismatch_is_reported),
        cmocka_unit_test(long_reports_are_cut_and_counted),
        cmocka_unit_test(failing_memory_is_reported),
        cmocka_unit_test(long_names_are_survived),
    };
    return cmocka_run_group_tests(tests, open_samples, close_samples);
}
