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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_inside_a_file_are_read),
        cmocka_unit_test(files_of_a_folder_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
