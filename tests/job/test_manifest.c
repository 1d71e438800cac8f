/* SPDX-License-Identifier: Apache-2.0
 * Manifests, a line at a time, and ids that come twice. */
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "job/ids.h"
#include "job/line.h"
#include "job/manifest.h"

static void lines_come_one_after_the_other(void **state)
{
    (void)state;
    static const char text[] = "\xEF\xBB\xBF"
                               "first\n\n \t\r\n\xEF\xBB\xBF"
                               "fifth\r\nlast";
    static const struct {
        const char *text;
        uint64_t number, at;
    } wanted[] = {{"first", 1, 9},
        {"\xEF\xBB\xBF"
         "fifth\r",
            4, 24},
        {"last", 5, 29}};
    struct manifest m;
    size_t n;
    char folder[PATH_MAX];
    support_write_file(support_path("manifest"), text, sizeof text - 1);
    assert_int_equal(manifest_open(&m, support_path("manifest"), NULL), UTTER_OK);
    assert_int_equal(m.bytes, sizeof text - 1);
    assert_non_null(realpath(support_folder(), folder));
    assert_string_equal(m.folder, folder);
    assert_int_equal(strncmp(m.path, folder, strlen(folder)), 0);
    assert_string_equal(m.path + strlen(folder), "/manifest");
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
            assert_int_equal(manifest_next(&m, &n, NULL), UTTER_OK);
            assert_string_equal(m.line, wanted[i].text);
            assert_int_equal(n, strlen(wanted[i].text));
            assert_int_equal(m.number, wanted[i].number);
            assert_int_equal(m.at, wanted[i].at);
        }
        assert_int_equal(manifest_next(&m, &n, NULL), UTTER_END);
        manifest_rewind(&m);
        assert_int_equal(m.number, 0);
        assert_int_equal(m.at, 0);
    }
    manifest_close(&m);
    assert_null(m.file);
    manifest_close(&m);
}

static void a_file_below_the_root_lies_there(void **state)
{
    (void)state;
    struct manifest m;
    utter_error error;
    assert_int_equal(manifest_open(&m, "/etc/passwd", &error), UTTER_OK);
    assert_string_equal(m.folder, "/etc");
    manifest_close(&m);
    assert_int_equal(manifest_open(&m, "/", &error), UTTER_E_ARGUMENT);
    assert_string_equal(
        error.text, "/: is no file (a manifest is read twice: first all of it is checked)");
    manifest_close(&m);
    assert_int_equal(manifest_open(&m, support_path("nowhere"), &error), UTTER_E_FILE);
    manifest_close(&m);
}

static void a_line_of_a_manifest_has_a_bound(void **state)
{
    (void)state;
    char *text = malloc(LINE_BYTES + 8), wanted[PATH_MAX + 64], folder[PATH_MAX];
    struct manifest m;
    size_t n;
    utter_error error;
    assert_non_null(text);
    text[0] = '\n';
    memset(text + 1, 'x', LINE_BYTES + 1);
    support_write_file(support_path("bound"), text, LINE_BYTES + 1);
    assert_int_equal(manifest_open(&m, support_path("bound"), NULL), UTTER_OK);
    assert_int_equal(manifest_next(&m, &n, NULL), UTTER_OK);
    assert_int_equal(n, LINE_BYTES);
    assert_int_equal(m.number, 2);
    manifest_close(&m);
    support_write_file(support_path("bound"), text, LINE_BYTES + 2);
    assert_int_equal(manifest_open(&m, support_path("bound"), NULL), UTTER_OK);
    assert_int_equal(manifest_next(&m, &n, &error), UTTER_E_ARGUMENT);
    assert_non_null(realpath(support_folder(), folder));
    snprintf(wanted, sizeof wanted, "%s/bound: line 2 is longer than 4 MB", folder);
    assert_string_equal(error.text, wanted);
    manifest_close(&m);
    free(text);
}

static void an_id_that_comes_twice_is_found(void **state)
{
    (void)state;
    struct ids *ids;
    utter_error error;
    char id[32];
    assert_int_equal(ids_new(&ids, NULL), UTTER_OK);
    for (uint64_t i = 1; i <= 500; i++) {
        snprintf(id, sizeof id, "line%llu", (unsigned long long)i);
        assert_int_equal(ids_add(ids, id, i, NULL), UTTER_OK);
    }
    assert_int_equal(ids_check(ids, NULL), UTTER_OK);
    assert_int_equal(ids_add(ids, "line77", 501, NULL), UTTER_OK);
    assert_int_equal(ids_check(ids, &error), UTTER_E_ARGUMENT);
    assert_string_equal(error.text, "lines 77 and 501 have one \"id\"");
    ids_free(ids);
    ids_free(NULL);
    /* Whatever their order is. */
    assert_int_equal(ids_new(&ids, NULL), UTTER_OK);
    assert_int_equal(ids_add(ids, "a", 9, NULL), UTTER_OK);
    assert_int_equal(ids_add(ids, "b", 8, NULL), UTTER_OK);
    assert_int_equal(ids_add(ids, "a", 2, NULL), UTTER_OK);
    assert_int_equal(ids_check(ids, &error), UTTER_E_ARGUMENT);
    assert_string_equal(error.text, "lines 2 and 9 have one \"id\"");
    ids_free(ids);
}

static void ids_need_a_folder_and_leave_nothing_there(void **state)
{
    (void)state;
    struct ids *ids;
    utter_error error;
    char *before = getenv("TMPDIR");
    assert_int_equal(mkdir(support_path("ids"), 0700), 0);
    assert_int_equal(setenv("TMPDIR", support_path("ids"), 1), 0);
    assert_int_equal(ids_new(&ids, NULL), UTTER_OK);
    assert_int_equal(ids_add(ids, "a", 1, NULL), UTTER_OK);
    assert_int_equal(support_count_files(support_path("ids")), 0);
    ids_free(ids);
    assert_int_equal(setenv("TMPDIR", support_path("none"), 1), 0);
    assert_int_equal(ids_new(&ids, NULL), UTTER_OK);
    assert_int_equal(ids_add(ids, "a", 1, &error), UTTER_E_IO);
    assert_string_equal(error.text,
        "a temporary file of ids cannot be written: No such file or directory (TMPDIR "
        "names another folder)");
    ids_free(ids);
    assert_int_equal(setenv("TMPDIR", "", 1), 0);
    assert_int_equal(ids_new(&ids, NULL), UTTER_OK);
    assert_int_equal(ids_add(ids, "a", 1, &error), UTTER_OK);
    ids_free(ids);
    assert_int_equal(before ? setenv("TMPDIR", before, 1) : unsetenv("TMPDIR"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_come_one_after_the_other),
        cmocka_unit_test(a_file_below_the_root_lies_there),
        cmocka_unit_test(a_line_of_a_manifest_has_a_bound),
        cmocka_unit_test(an_id_that_comes_twice_is_found),
        cmocka_unit_test(ids_need_a_folder_and_leave_nothing_there),
    };
    return cmocka_run_group_tests_name("manifest", tests, NULL, NULL);
}
