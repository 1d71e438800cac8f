/* SPDX-License-Identifier: Apache-2.0
 * safetensors files that are right; cut anywhere, and with any bit turned. Wrong ones of every kind: test_crafted.c. */
#include "tests/support.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "weights/safetensors.h"

/* A file in aligned memory: header text as given, padded with spaces, then n data bytes 1, 2, 3 ... */
struct image {
    _Alignas(64) uint8_t bytes[4096];
    size_t n;
};

static void image_make(struct image *image, const char *header, size_t data_bytes)
{
    size_t n = strlen(header), padded = (n + 7) & ~(size_t)7;
    memset(image, 0, sizeof *image);
    for (int i = 0; i < 8; i++) {
        image->bytes[i] = (uint8_t)((uint64_t)padded >> (8 * i));
    }
    memset(image->bytes + 8, ' ', padded);
    memcpy(image->bytes + 8, header, n);
    for (size_t i = 0; i < data_bytes; i++) {
        image->bytes[8 + padded + i] = (uint8_t)(i + 1);
    }
    image->n = 8 + padded + data_bytes;
}

static const char good_header[] =
    "{\"__metadata__\":{\"made_by\":\"a test\"},"
    "\"w\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]},"
    "\"b\":{\"dtype\":\"BF16\",\"shape\":[3],\"data_offsets\":[16,22]},"
    "\"none\":{\"dtype\":\"F32\",\"shape\":[0,7],\"data_offsets\":[16,16]},"
    "\"one\":{\"dtype\":\"I16\",\"shape\":[],\"data_offsets\":[22,24]}}";

static void good_file_gives_its_tensors(void **state)
{
    (void)state;
    struct image image;
    image_make(&image, good_header, 24);
    struct tensor_set *set;
    utter_error error;
    assert_int_equal(tensor_set_open_memory(&set, image.bytes, image.n, "good", &error), UTTER_OK);
    assert_int_equal(tensor_set_count(set), 4);
    assert_string_equal(tensor_set_at(set, 0)->name, "b");
    assert_string_equal(tensor_set_at(set, 3)->name, "w");
    const struct tensor *w = tensor_set_find(set, "w");
    assert_non_null(w);
    assert_int_equal(w->type, DTYPE_F32);
    assert_int_equal(w->n_dims, 2);
    assert_int_equal(w->dims[0], 2);
    assert_int_equal(w->bytes, 16);
    assert_int_equal(*(const uint8_t *)w->data, 1);
    assert_int_equal(*(const uint8_t *)tensor_set_find(set, "one")->data, 23);
    assert_int_equal(tensor_set_find(set, "none")->bytes, 0);
    assert_null(tensor_set_find(set, "x"));
    assert_string_equal(tensor_set_metadata(set, "made_by"), "a test");
    assert_null(tensor_set_metadata(set, "other"));
    assert_int_equal(tensor_set_bytes(set), image.n);
    assert_false(tensor_set_damaged(set));
    tensor_set_close(&set);
    assert_null(set);
    tensor_set_close(&set);
}

static void header_length_is_bounded(void **state)
{
    (void)state;
    static const uint64_t lengths[] = {17, 1u << 20, 100000001, UINT64_MAX, UINT64_MAX - 7, 1ull << 63};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        uint8_t bytes[24] = {0};
        struct tensor_set *set;
        utter_error error;
        for (int k = 0; k < 8; k++) {
            bytes[k] = (uint8_t)(lengths[i] >> (8 * k));
        }
        assert_int_equal(tensor_set_open_memory(&set, bytes, sizeof bytes, "x", &error), UTTER_E_FILE);
        assert_non_null(strstr(error.text, "header does not fit"));
    }
}

/* Reads every byte that the set promises. */
static uint64_t touch_all(const struct tensor_set *set)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < tensor_set_count(set); i++) {
        const struct tensor *t = tensor_set_at(set, i);
        assert_ptr_equal(tensor_set_find(set, t->name), t);
        for (size_t k = 0; k < t->bytes; k++) {
            sum += ((const uint8_t *)t->data)[k];
        }
    }
    return sum;
}

/* A private block of exactly n bytes, so that ASan sees any read past its end. */
static utter_status open_and_touch(const uint8_t *bytes, size_t n)
{
    uint8_t *copy = memory_new(n, 1);
    struct tensor_set *set;
    utter_error error;
    assert_non_null(copy);
    memcpy(copy, bytes, n);
    utter_status status = tensor_set_open_memory(&set, copy, n, "x", &error);
    if (status == UTTER_OK) {
        touch_all(set);
    }
    tensor_set_close(&set);
    memory_free(copy);
    return status;
}

static void every_prefix_is_refused(void **state)
{
    (void)state;
    struct image image;
    image_make(&image, good_header, 24);
    for (size_t n = 0; n < image.n; n++) {
        assert_int_equal(open_and_touch(image.bytes, n), UTTER_E_FILE);
    }
    assert_int_equal(open_and_touch(image.bytes, image.n), UTTER_OK);
}

static void every_bit_flip_is_survived(void **state)
{
    (void)state;
    struct image image;
    image_make(&image, good_header, 24);
    for (size_t bit = 0; bit < 8 * image.n; bit++) {
        image.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        utter_status status = open_and_touch(image.bytes, image.n);
        assert_true(status == UTTER_OK || status == UTTER_E_FILE);
        if (bit < 64) { /* the header's length */
            assert_int_equal(status, UTTER_E_FILE);
        }
        image.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

static void failing_calls_are_reported(void **state)
{
    (void)state;
    struct image image;
    image_make(&image, good_header, 24);
    const char *path = support_path("good.safetensors");
    support_write_file(path, image.bytes, image.n);
    for (int call = SUPPORT_MALLOC; call <= SUPPORT_OPEN; call++) {
        SUPPORT_EACH_FAILURE((enum support_call)call, n)
        {
            struct tensor_set *set;
            utter_error error;
            utter_status status = tensor_set_open_file(&set, path, &error);
            assert_true((status == UTTER_OK) == !support_failed());
            assert_true(status == UTTER_OK || !set);
            assert_true(call != SUPPORT_MALLOC || status == UTTER_OK || status == UTTER_E_MEMORY);
            tensor_set_close(&set);
            assert_true(n < 1000);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_file_gives_its_tensors),
        cmocka_unit_test(header_length_is_bounded),
        cmocka_unit_test(every_prefix_is_refused),
        cmocka_unit_test(every_bit_flip_is_survived),
        cmocka_unit_test(failing_calls_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
