/* SPDX-License-Identifier: Apache-2.0
 * safetensors files that are right, and every way we know in which they are wrong. */
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

/* Each is refused, and the reason holds the words. */
static const struct {
    const char *header;
    size_t data_bytes;
    const char *words;
} bad_files[] = {
    {"", 0, "does not begin with {"},
    {"[]", 0, "does not begin with {"},
    {"{", 0, "not usable JSON"},
    {"{}", 1, "1 bytes after the last tensor"},
    {"{\"w\":[]}", 0, "tensor w: its entry is not an object"},
    {"{\"w\":{\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "no dtype"},
    {"{\"w\":{\"dtype\":\"F31\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "dtype F31 is not known"},
    {"{\"w\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4, "no shape"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4, "a dimension is not"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[1.0],\"data_offsets\":[0,4]}}", 4, "a dimension is not"},
    {"{\"w\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,1]}}", 1,
        "more than 8 dimensions"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "no data_offsets"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,4]}}", 4, "no data_offsets"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,\"4\"]}}", 4, "no data_offsets"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,8]}}", 4, "cut short"},
    {"{\"w\":{\"dtype\":\"U8\",\"shape\":[5],\"data_offsets\":[0,5]}}", 4, "bytes 0 to 5 of 4 bytes"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]}}", 4, "bytes -4 to 0"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 4, "bytes 4 to 0"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4,
        "take 8 bytes, data_offsets give 4"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904],\"data_offsets\":[0,0]}}", 0,
        "too large"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0,
        "too large"},
    {"{\"w\":{\"dtype\":\"F32\",\"shape\":[99999999999999999999],\"data_offsets\":[0,0]}}", 0,
        "too big integer"},
    {"{\"w\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[4,8]}}", 8,
        "tensor w: unused bytes before"},
    {"{\"v\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
     "\"w\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[3,5]}}",
        5, "tensor w: unused bytes before"},
    {"{\"v\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]},"
     "\"w\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[2,5]}}",
        5, "tensor w: its data overlaps"},
    {"{\"v\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]},"
     "\"w\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]}}",
        3, "its data overlaps"},
    {"{\"w\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]}}", 4,
        "1 bytes after the last tensor"},
    {"{\"v\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
     "\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[1,5]}}",
        5, "tensor w: its data is not aligned"},
    {"{\"w\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
     "\"w\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
        2, "duplicate object key"},
    {"{\"__metadata__\":[]}", 0, "__metadata__ is not an object"},
    {"{\"__metadata__\":{\"a\":1}}", 0, "a value that is no string"},
    {"{\"a\\nb\":{}}", 0, "tensor a\\nb: no dtype"},
};

static void bad_files_are_refused_with_the_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad_files / sizeof bad_files[0]; i++) {
        struct image image;
        struct tensor_set *set;
        utter_error error = {.text = ""};
        image_make(&image, bad_files[i].header, bad_files[i].data_bytes);
        utter_status status =
            tensor_set_open_memory(&set, image.bytes, image.n, "bad.safetensors", &error);
        if (status != UTTER_E_FILE || set || !strstr(error.text, bad_files[i].words) ||
            strncmp(error.text, "bad.safetensors: ", 17) != 0 || strchr(error.text, '\n')) {
            fail_msg("%s: status %d, \"%s\", want \"%s\"", bad_files[i].header, status, error.text,
                bad_files[i].words);
        }
    }
}

/* What has no bytes needs no alignment. */
static void empty_tensors_may_lie_anywhere(void **state)
{
    (void)state;
    struct image image;
    struct tensor_set *set;
    image_make(&image,
        "{\"v\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]},"
        "\"w\":{\"dtype\":\"F64\",\"shape\":[0],\"data_offsets\":[3,3]}}",
        3);
    assert_int_equal(tensor_set_open_memory(&set, image.bytes, image.n, "x", NULL), UTTER_OK);
    assert_int_equal(tensor_set_find(set, "w")->bytes, 0);
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
    /* Within the file, but larger than the format allows. */
    uint8_t *large = memory_new(8 + 100000008, 1);
    struct tensor_set *set;
    utter_error error;
    assert_non_null(large);
    memcpy(large, "\x01\xe1\xf5\x05\0\0\0\0{", 9);
    assert_int_equal(tensor_set_open_memory(&set, large, 8 + 100000008, "x", &error), UTTER_E_FILE);
    assert_non_null(strstr(error.text, "larger than 100000000"));
    memory_free(large);
}

static void nesting_is_bounded(void **state)
{
    (void)state;
    struct image image;
    char header[1024] = "{\"w\":";
    memset(header + 5, '[', 900);
    image_make(&image, header, 0);
    struct tensor_set *set;
    utter_error error;
    assert_int_equal(tensor_set_open_memory(&set, image.bytes, image.n, "x", &error), UTTER_E_FILE);
    assert_non_null(strstr(error.text, "nested deeper than 64"));
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
        cmocka_unit_test(bad_files_are_refused_with_the_reason),
        cmocka_unit_test(empty_tensors_may_lie_anywhere),
        cmocka_unit_test(header_length_is_bounded),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(every_prefix_is_refused),
        cmocka_unit_test(every_bit_flip_is_survived),
        cmocka_unit_test(failing_calls_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
