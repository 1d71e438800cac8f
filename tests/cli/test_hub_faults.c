/* SPDX-License-Identifier: Apache-2.0
 * A download in a machine that fails: what is told of each call, what is kept for the next time, and that the next time
 * goes on from there. */
#include "tests/cli/posed_hub.h"

#include <errno.h>

#include "base/error.h"

/* ---- Calls that fail ---- */

static const char *failing; /* the call; NULL: none */

int __real_ftruncate(int fd, off_t length);
int __wrap_ftruncate(int fd, off_t length);
off_t __real_lseek(int fd, off_t offset, int whence);
off_t __wrap_lseek(int fd, off_t offset, int whence);
int __real_symlink(const char *target, const char *path);
int __wrap_symlink(const char *target, const char *path);

static bool fails(const char *call)
{
    bool is_it = failing && strcmp(failing, call) == 0;
    errno = is_it ? EIO : errno;
    return is_it;
}

int __wrap_ftruncate(int fd, off_t length)
{
    return fails("ftruncate") ? -1 : __real_ftruncate(fd, length);
}

off_t __wrap_lseek(int fd, off_t offset, int whence)
{
    return fails("lseek") ? -1 : __real_lseek(fd, offset, whence);
}

int __wrap_symlink(const char *target, const char *path)
{
    return fails("symlink") ? -1 : __real_symlink(target, path);
}

static int begin_well(void **state)
{
    failing = NULL;
    support_fail_off();
    return begin(state);
}

/* The error ends with this, and names this file of the cache. */
static void assert_fault(utter_status status, const char *name, const char *what)
{
    char wanted[PATH_MAX + 128];
    snprintf(wanted, sizeof wanted, "%s: %s", of_cache(name), what);
    assert_refused(status, wanted);
}

static const char *of_weights(const char *ending)
{
    static char name[128];
    snprintf(name, sizeof name, "blobs/%s%s", files[MODEL].hash, ending);
    return name;
}

static void pull_well(void)
{
    failing = NULL;
    support_fail_off();
    assert_int_equal(pull(), UTTER_OK);
    assert_whole();
}

/* ---- What fails ---- */

static void what_cannot_begin_anew_is_told(void **state)
{
    (void)state;
    static const char *const calls[] = {"ftruncate", "lseek"};
    for (int i = 0; i < 4; i++) {
        begin(NULL);
        /* What is of another file, or a server that gives all of it. */
        leave(MODEL, ".incomplete", WEIGHTS "!", i < 2 ? 45 : 20);
        hub.from_the_start = i >= 2;
        failing = calls[i % 2];
        assert_fault(UTTER_E_IO, of_weights(".incomplete"), "cannot write: Input/output error");
        hub.from_the_start = false;
        pull_well();
    }
}

static void what_cannot_be_written_is_told(void **state)
{
    (void)state;
    leave(0, "", files[0].data, 2);
    leave(MODEL, ".incomplete", WEIGHTS, 20);
    support_fail_read_at(1); /* the first that is read is what is there */
    assert_fault(UTTER_E_IO, of_weights(".incomplete"), "cannot read: Input/output error");
    pull_well();
    begin(NULL);
    leave(0, "", files[0].data, 2);
    support_fail_write_at(1);
    assert_fault(UTTER_E_IO, of_weights(".incomplete"),
        "cannot write: No space left on device (free some space, or choose another disk)");
    pull_well();
    begin(NULL);
    leave(0, "", files[0].data, 2);
    support_fail_fsync_at(1);
    assert_fault(UTTER_E_IO, of_weights(""), "cannot write: Input/output error");
    pull_well();
    begin(NULL);
    leave(0, "", files[0].data, 2);
    support_fail_rename_at(1);
    assert_int_equal(pull(), UTTER_E_FILE);
    assert_non_null(strstr(why.text, ": cannot write: Permission denied"));
    assert_int_equal(access(of_cache(of_weights(".incomplete")), F_OK), 0);
    pull_well();
    begin(NULL);
    failing = "symlink";
    assert_fault(
        UTTER_E_IO, "snapshots/" COMMIT "/config.json", "cannot make the link: Input/output error");
    pull_well();
}

/* A folder has the name of a file that is to come. */
static void what_cannot_be_opened_is_told(void **state)
{
    (void)state;
    leave(0, "", files[0].data, 2);
    assert_int_equal(mkdir(of_blob(MODEL, ".incomplete"), 0700), 0);
    assert_fault(UTTER_E_FILE, of_weights(".incomplete"), "cannot write: Is a directory");
    assert_int_equal(rmdir(of_blob(MODEL, ".incomplete")), 0);
    pull_well();
    /* The name that makes it a model comes last, and may not. */
    assert_int_equal(unlink(of_cache("refs/main")), 0);
    assert_int_equal(rmdir(of_cache("refs")), 0);
    support_write_file(of_cache("refs"), "", 0);
    assert_int_not_equal(pull(), UTTER_OK);
    assert_int_equal(unlink(of_cache("refs")), 0);
    support_fail_write_at(1);
    assert_int_not_equal(pull(), UTTER_OK);
    assert_int_not_equal(access(of_cache("refs/main"), F_OK), 0);
    pull_well();
}

/* Bytes come and go a few at a time, and a signal in between ends nothing. */
static void few_bytes_at_a_time_are_as_good(void **state)
{
    (void)state;
    support_short_io(3);
    pull_well();
    begin(NULL);
    leave(MODEL, ".incomplete", WEIGHTS, 20);
    pull_well();
    support_short_io(0);
    begin(NULL);
    leave(0, "", files[0].data, 2);
    support_fail_write_at(1);
    support_fail_with(EINTR);
    assert_int_equal(pull(), UTTER_OK);
    assert_true(support_failed());
    assert_whole();
    begin(NULL);
    leave(0, "", files[0].data, 2);
    support_fail_write_at(1);
    support_fail_with(SUPPORT_MOVES_NOTHING);
    assert_int_equal(pull(), UTTER_OK);
    assert_whole();
}

/* A list that was cut is asked for as a whole. */
static void a_list_that_was_cut_is_asked_for_again(void **state)
{
    (void)state;
    hub.cut_list = 1;
    pull_well();
    assert_int_equal(hub.n_asked, 2 + 1 + N_FILES);
    assert_int_equal(seconds_slept, 1);
    begin(NULL);
    hub.cut_list = 5;
    assert_int_equal(pull(), UTTER_E_DEVICE);
    assert_int_equal(hub.n_asked, 5);
}

static void memory_that_is_lacking_is_told(void **state)
{
    (void)state;
    support_fail_malloc_at(1);
    assert_refused(UTTER_E_MEMORY,
        "out of memory: no room for list of files (close other programs, or use a smaller model)");
    support_fail_malloc_at(2);
    assert_refused(UTTER_E_MEMORY,
        "out of memory: no room for transfer (close other programs, or use a smaller model)");
    pull_well();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_cannot_begin_anew_is_told, begin_well),
        cmocka_unit_test_setup(what_cannot_be_written_is_told, begin_well),
        cmocka_unit_test_setup(what_cannot_be_opened_is_told, begin_well),
        cmocka_unit_test_setup(few_bytes_at_a_time_are_as_good, begin_well),
        cmocka_unit_test_setup(a_list_that_was_cut_is_asked_for_again, begin_well),
        cmocka_unit_test_setup(memory_that_is_lacking_is_told, begin_well),
    };
    return cmocka_run_group_tests_name("hub_faults", tests, start_hub, server_end);
}
