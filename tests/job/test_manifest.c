/* SPDX-License-Identifier: Apache-2.0
 * Manifests, a line at a time. */
#include "tests/support.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
    support_fail_at(SUPPORT_MALLOC, 1);
    assert_int_equal(manifest_open(&m, "/etc/passwd", &error), UTTER_E_MEMORY);
    support_fail_off();
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

/* Also where it is all that the line has. */
static void a_mark_of_utf8_is_no_text(void **state)
{
    (void)state;
    struct manifest m;
    size_t n;
    static const char marked[] = "\xEF\xBB\xBF\nx", half[] = "\xEF\xBB\nx";
    support_write_file(support_path("mark"), marked, sizeof marked - 1);
    assert_int_equal(manifest_open(&m, support_path("mark"), NULL), UTTER_OK);
    assert_int_equal(manifest_next(&m, &n, NULL), UTTER_OK);
    assert_string_equal(m.line, "x");
    assert_int_equal(m.number, 2);
    manifest_close(&m);
    support_write_file(support_path("mark"), half, sizeof half - 1);
    assert_int_equal(manifest_open(&m, support_path("mark"), NULL), UTTER_OK);
    assert_int_equal(manifest_next(&m, &n, NULL), UTTER_OK);
    assert_string_equal(m.line, "\xEF\xBB");
    manifest_close(&m);
}

static void a_manifest_that_cannot_be_read_on_is_told(void **state)
{
    (void)state;
    struct manifest m;
    size_t n;
    utter_error error;
    char wanted[2 * PATH_MAX];
    support_write_file(support_path("unread"), "x", 1);
    assert_int_equal(manifest_open(&m, support_path("unread"), NULL), UTTER_OK);
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC); /* in place of the file, which is read then */
    assert_true(dup2(fd, fileno(m.file)) >= 0);
    close(fd);
    assert_int_equal(manifest_next(&m, &n, &error), UTTER_E_FILE);
    snprintf(wanted, sizeof wanted, "%s: cannot read: Bad file descriptor", m.path);
    assert_string_equal(error.text, wanted);
    manifest_close(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_come_one_after_the_other),
        cmocka_unit_test(a_file_below_the_root_lies_there),
        cmocka_unit_test(a_line_of_a_manifest_has_a_bound),
        cmocka_unit_test(a_mark_of_utf8_is_no_text),
        cmocka_unit_test(a_manifest_that_cannot_be_read_on_is_told),
    };
    return cmocka_run_group_tests_name("manifest", tests, NULL, NULL);
}
