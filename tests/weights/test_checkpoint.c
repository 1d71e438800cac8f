/* SPDX-License-Identifier: Apache-2.0
 * The small files of a checkpoint, in a folder and inside one safetensors file. */
#include "tests/support.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "weights/checkpoint.h"

/* A path through a safetensors file: what is wrong with a member that is there is told as of a file. */
static void files_inside_a_file_are_read(void **state)
{
    (void)state;
    static const char header[] =
        "{\"file/note\":{\"dtype\":\"U8\",\"shape\":[5],\"data_offsets\":[0,5]}}";
    char file[8 + sizeof header - 1 + 5] = {sizeof header - 1}, path[512];
    char *text;
    size_t n;
    utter_error error;
    memcpy(file + 8, header, sizeof header - 1);
    memcpy(file + 8 + sizeof header - 1, "hello", 5);
    support_write_file(support_path("packed"), file, sizeof file);
    snprintf(path, sizeof path, "%s/note", support_path("packed"));
    assert_true(checkpoint_exists(path));
    assert_int_equal(checkpoint_read(path, 5, &text, &n, &error), UTTER_OK);
    assert_int_equal(n, 5);
    assert_string_equal(text, "hello");
    memory_free(text);
    assert_int_equal(checkpoint_read(path, 4, &text, &n, &error), UTTER_E_FILE);
    assert_null(text);
    assert_non_null(strstr(error.text, "more than 4 bytes"));
    utter_status status = UTTER_E_MEMORY;
    long n_failed = 0;
    while (status == UTTER_E_MEMORY) {
        support_fail_malloc_at(n_failed + 1);
        status = checkpoint_read(path, 5, &text, &n, &error);
        n_failed += support_failed();
        support_fail_off();
        assert_true(status == UTTER_OK || !text);
    }
    assert_int_equal(status, UTTER_OK);
    assert_in_range(n_failed, 2, 100); /* its own, and those of the header */
    memory_free(text);
    snprintf(path, sizeof path, "%s/none", support_path("packed"));
    assert_false(checkpoint_exists(path));
    assert_int_equal(checkpoint_read(path, 5, &text, &n, &error), UTTER_E_FILE);
    assert_non_null(strstr(error.text, "Not a directory"));
}

/* In a folder it is the plain file; what is wrong with it is told as of a file. */
static void files_of_a_folder_are_read(void **state)
{
    (void)state;
    json_t *root;
    char *text;
    size_t n;
    utter_error error;
    const char *path = support_path("config.json");
    support_write_file(path, "{\"a\": 1}", 8);
    assert_true(checkpoint_exists(path));
    assert_int_equal(checkpoint_read(path, 8, &text, &n, &error), UTTER_OK);
    assert_int_equal(n, 8);
    memory_free(text);
    assert_int_equal(checkpoint_json(&root, path, 8, JSON_SMALL, &error), UTTER_OK);
    assert_int_equal(json_integer_value(json_object_get(root, "a")), 1);
    json_decref(root);
    assert_int_equal(checkpoint_json(&root, path, 7, JSON_SMALL, &error), UTTER_E_FILE);
    assert_null(root);
    path = support_path("none.json");
    assert_false(checkpoint_exists(path));
    assert_int_equal(checkpoint_json(&root, path, 8, JSON_SMALL, &error), UTTER_E_FILE);
    assert_null(root);
}

/* A file whose header is this JSON, with so many bytes of data "abcdefgh..." behind it. */
static void write_packed(const char *header, size_t n_data)
{
    char file[1024] = {0};
    const size_t n = strlen(header);
    file[0] = (char)(n & 0xff);
    file[1] = (char)(n >> 8);
    memcpy(file + 8, header, n);
    for (size_t i = 0; i < n_data; i++) {
        file[8 + n + i] = (char)('a' + i % 26);
    }
    support_write_file(support_path("some"), file, 8 + n + n_data);
}

/* A member is what its offsets say, in the file and nowhere else. */
static void a_member_lies_inside_its_file(void **state)
{
    static const struct {
        const char *offsets;
        size_t n_data;
        const char *text; /* NULL: there is none */
    } cases[] = {{"[0,5]", 5, "abcde"}, {"[2,5]", 5, "cde"}, {"[1,3]", 9, "bc"}, {"[0,0]", 0, ""},
        {"[3,3]", 3, ""}, {"[0,6]", 5, NULL}, {"[-1,3]", 5, NULL}, {"[3,2]", 5, NULL},
        {"[6,6]", 5, NULL}, {"[0]", 5, NULL}, {"[0,3,5]", 5, NULL}, {"7", 5, NULL}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char header[256], path[5200], *text;
        size_t n = 77;
        snprintf(header, sizeof header, "{\"file/part/note\":{\"data_offsets\":%s}}", cases[i].offsets);
        write_packed(header, cases[i].n_data);
        snprintf(path, sizeof path, "%s/part/note", support_path("some"));
        assert_int_equal(checkpoint_exists(path), cases[i].text != NULL);
        assert_int_equal(
            checkpoint_read(path, 9, &text, &n, NULL), cases[i].text ? UTTER_OK : UTTER_E_FILE);
        if (cases[i].text) {
            assert_int_equal(n, strlen(cases[i].text));
            assert_string_equal(text, cases[i].text);
        } else {
            assert_null(text);
        }
        memory_free(text);
        assert_int_equal(support_count_mappings("some"), 0);
    }
}

/* What is no such file has no members: a header that is cut short, or is none. */
static void other_files_have_no_members(void **state)
{
    static const char good[] = "{\"file/note\":{\"data_offsets\":[0,1]}}";
    char path[5200], file[sizeof good + 8] = {sizeof good - 1};
    (void)state;
    snprintf(path, sizeof path, "%s/note", support_path("some"));
    memcpy(file + 8, good, sizeof good - 1);
    for (size_t n = 0; n < 8 + sizeof good; n++) { /* the last byte is the member's */
        support_write_file(support_path("some"), file, n);
        assert_false(checkpoint_exists(path));
    }
    support_write_file(support_path("some"), file, 8 + sizeof good);
    assert_true(checkpoint_exists(path));
    file[7] = 1; /* a header of more bytes than there can be */
    support_write_file(support_path("some"), file, 8 + sizeof good);
    assert_false(checkpoint_exists(path));
}

/* A name needs no folder in front of it; what is not there at all is a part that is missing, and what cannot be looked
 * for is told as it is. */
static void a_missing_part_is_told(void **state)
{
    static char long_path[5000];
    static const char *const missing[] = {
        "no-such-name", "no-such-folder/name", "/no-such-name", "tests/no-such-name"};
    char wanted[256], *text = NULL;
    size_t n;
    utter_error error = {0};
    (void)state;
    assert_true(checkpoint_exists("Makefile"));
    assert_int_equal(checkpoint_read("Makefile", 1 << 20, &text, &n, &error), UTTER_OK);
    memory_free(text);
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) {
        assert_false(checkpoint_exists(missing[i]));
        assert_int_equal(checkpoint_read(missing[i], 9, &text, &n, &error), UTTER_E_FILE);
        snprintf(wanted, sizeof wanted,
            "%s: is not there: a part of the model is missing (utter pull brings all of a released "
            "one)",
            missing[i]);
        assert_string_equal(error.text, wanted);
        assert_null(text);
    }
    memset(long_path, 'x', sizeof long_path - 1);
    long_path[5] = '/';
    assert_int_equal(checkpoint_read(long_path, 9, &text, &n, &error), UTTER_E_FILE);
    assert_non_null(strstr(error.text, "File name too long"));
    assert_null(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_inside_a_file_are_read),
        cmocka_unit_test(files_of_a_folder_are_read),
        cmocka_unit_test(a_member_lies_inside_its_file),
        cmocka_unit_test(other_files_have_no_members),
        cmocka_unit_test(a_missing_part_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
