/* SPDX-License-Identifier: Apache-2.0
 * Ids of a manifest: whichever two lines have the same are told, of however many, and files that hold them meanwhile
 * leave nothing behind. */
#include "tests/support.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "job/ids.h"

static struct ids *ids;
static utter_error why;

static int begin(void **state)
{
    (void)state;
    memset(&why, 0, sizeof why);
    assert_int_equal(setenv("TMPDIR", support_folder(), 1), 0);
    return ids_new(&ids, NULL);
}

static int end(void **state)
{
    (void)state;
    ids_free(ids);
    return unsetenv("TMPDIR");
}

static utter_status add(unsigned number, uint64_t line)
{
    char id[32];
    snprintf(id, sizeof id, "part/%u", number);
    return ids_add(ids, id, line, &why);
}

static void each_id_is_one_lines(void **state)
{
    (void)state;
    enum { N = 3000 };
    assert_int_equal(ids_check(ids, NULL), UTTER_OK); /* there are none */
    for (unsigned i = 0; i < N; i++) {
        assert_int_equal(add(i, i + 1), UTTER_OK);
    }
    assert_int_equal(ids_check(ids, &why), UTTER_OK);
    assert_string_equal(why.text, "");
}

static void two_lines_of_one_id_are_told_in_their_order(void **state)
{
    (void)state;
    static const uint64_t lines[][2] = {{1, 2}, {7, 70000000000}, {70000000000, 7}};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        for (unsigned k = 0; k < 200; k++) {
            assert_int_equal(add(k, k == 50 ? lines[i][0] : 1000 + k), UTTER_OK);
        }
        assert_int_equal(add(50, lines[i][1]), UTTER_OK);
        assert_int_equal(ids_check(ids, &why), UTTER_E_ARGUMENT);
        assert_string_equal(
            why.text, i ? "lines 7 and 70000000000 have one \"id\"" : "lines 1 and 2 have one \"id\"");
        end(NULL);
        begin(NULL);
    }
}

static void the_files_have_no_names_and_are_closed(void **state)
{
    (void)state;
    const int before = support_count_files("/proc/self/fd");
    for (unsigned i = 0; i < 1000; i++) {
        assert_int_equal(add(i, i), UTTER_OK);
    }
    assert_int_equal(support_count_files("/proc/self/fd"), before + 64);
    assert_int_equal(support_count_files(support_folder()), 0);
    ids_free(ids);
    ids = NULL;
    assert_int_equal(support_count_files("/proc/self/fd"), before);
}

static void assert_told(const char *reason)
{
    char wanted[256];
    snprintf(wanted, sizeof wanted,
        "a temporary file of ids cannot be written: %s (TMPDIR names another folder)", reason);
    assert_string_equal(why.text, wanted);
}

static void a_folder_for_them_may_be_named(void **state)
{
    (void)state;
    assert_int_equal(setenv("TMPDIR", support_path("nowhere"), 1), 0);
    assert_int_equal(add(1, 1), UTTER_E_IO);
    assert_told("No such file or directory");
    assert_int_equal(setenv("TMPDIR", "", 1), 0); /* where files may be large, else in /tmp */
    assert_int_equal(add(1, 1), UTTER_OK);
    assert_int_equal(unsetenv("TMPDIR"), 0);
    assert_int_equal(add(2, 2), UTTER_OK);
    assert_int_equal(ids_check(ids, NULL), UTTER_OK);
}

/* More than a file may hold: also what only the end brings to the disk. */
static void a_full_disk_is_told(void **state)
{
    (void)state;
    struct rlimit usual, small;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &usual), 0);
    small = (struct rlimit){4096, usual.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    utter_status status = UTTER_OK;
    unsigned n = 0;
    for (; n < 64 * 700 && status == UTTER_OK; n++) {
        status = add(n, n);
    }
    assert_int_equal(status, UTTER_E_IO);
    assert_told("File too large");
    assert_int_equal(ids_check(ids, &why), UTTER_E_IO);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &usual), 0);
    signal(SIGXFSZ, SIG_DFL);
}

static void without_memory_nothing_is_checked(void **state)
{
    (void)state;
    struct ids *none;
    assert_int_equal(add(1, 1), UTTER_OK);
    support_fail_at(SUPPORT_MALLOC, 1);
    assert_int_equal(ids_check(ids, &why), UTTER_E_MEMORY);
    support_fail_at(SUPPORT_MALLOC, 1);
    assert_int_equal(ids_new(&none, &why), UTTER_E_MEMORY);
    support_fail_off();
    ids_free(none);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    support_folder(); /* before TMPDIR is another */
    const struct CMUnitTest tests[] = {
        EACH(each_id_is_one_lines),
        EACH(two_lines_of_one_id_are_told_in_their_order),
        EACH(the_files_have_no_names_and_are_closed),
        EACH(a_folder_for_them_may_be_named),
        EACH(a_full_disk_is_told),
        EACH(without_memory_nothing_is_checked),
    };
    return cmocka_run_group_tests_name("ids", tests, NULL, NULL);
}
