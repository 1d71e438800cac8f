/* SPDX-License-Identifier: Apache-2.0
 * What a file that is being written leaves to others: no descriptor, a lock that tells that its writer lives, a folder
 * whose entry has reached the disk; and what is swept of writers that are gone, by a clock that the test sets. */
#include "tests/support.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "tests/base/open_out.h"

/* Seconds that the sweep takes for now; 0: it asks the system. */
static time_t posed_now;

time_t __wrap_time(time_t *out);
time_t __real_time(time_t *out);
time_t __wrap_time(time_t *out)
{
    return posed_now ? posed_now : __real_time(out);
}

/* A descriptor of the file with a hidden name, the only one in this folder. */
static int open_hidden(const char *folder)
{
    DIR *list = opendir(folder);
    int fd = -1;
    for (const struct dirent *entry; (entry = readdir(list));) {
        if (strncmp(entry->d_name, ".utter-", 7) == 0) {
            fd = openat(dirfd(list), entry->d_name, O_RDONLY);
        }
    }
    closedir(list);
    assert_true(fd >= 0);
    return fd;
}

/* ---- Descriptors, syncs ---- */

static void no_other_program_inherits_what_is_written(void **state)
{
    (void)state;
    support_fresh_folder("inherits");
    for (int i = 0; i < 3; i++) { /* nameless, with a hidden name, directly */
        const int next = dup(0);
        close(next);
        struct file_out *out = i == 0   ? open_out(support_path("inherits/file"))
                               : i == 1 ? open_named(support_path("inherits/file"))
                                        : open_out("/dev/null");
        assert_int_equal(fcntl(next, F_GETFD), FD_CLOEXEC);
        file_out_abort(&out);
        assert_true(fcntl(next, F_GETFD) < 0);
    }
}

/* A lock tells that somebody writes: nobody else can take it meanwhile. */
static void who_writes_holds_a_lock(void **state)
{
    (void)state;
    support_fresh_folder("lock");
    struct file_out *out = open_named(support_path("lock/file"));
    const int fd = open_hidden(support_path("lock"));
    assert_int_not_equal(flock(fd, LOCK_SH | LOCK_NB), 0);
    assert_int_equal(errno, EWOULDBLOCK);
    file_out_abort(&out);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    close(fd);
}

/* The file, then its folder; of what has no temporary file nothing. */
static void the_file_and_its_folder_are_synced(void **state)
{
    (void)state;
    const int before = support_count_files("/proc/self/fd");
    support_fresh_folder("synced");
    long n = support_calls(SUPPORT_FSYNC);
    struct file_out *out = open_out(support_path("synced/file"));
    assert_int_equal(support_calls(SUPPORT_FSYNC), n);
    assert_int_equal(file_out_close(&out, NULL), UTTER_OK);
    assert_int_equal(support_calls(SUPPORT_FSYNC), n + 2);
    out = open_out("/dev/null");
    assert_int_equal(file_out_close(&out, NULL), UTTER_OK);
    assert_int_equal(support_calls(SUPPORT_FSYNC), n + 2);
    static const char *const synced[] = {"bare", "/root", "/tmp/file"};
    for (int i = 0; i < 3; i++) {
        file_sync_entry(synced[i]);
        assert_int_equal(support_calls(SUPPORT_FSYNC), n + 3 + i);
    }
    file_sync_entry(support_path("none/file"));
    assert_int_equal(support_calls(SUPPORT_FSYNC), n + 5);
    assert_int_equal(support_count_files("/proc/self/fd"), before);
}

/* The name of a folder is copied into room for a path as long as the system takes one, with its end. */
static void a_folder_with_too_long_a_path_is_not_synced(void **state)
{
    (void)state;
    static char path[PATH_MAX + 16];
    for (size_t folder = PATH_MAX - 1; folder <= PATH_MAX + 1; folder++) {
        memset(path, 'a', sizeof path);
        memcpy(path + folder - 1, "/f", 3);
        const long n = support_calls(SUPPORT_OPEN);
        file_sync_entry(path);
        assert_int_equal(support_calls(SUPPORT_OPEN), n + (folder < PATH_MAX));
    }
}

/* ---- The sweep ---- */

enum { CHANGED = 1700000000 }; /* when the files of these tests were changed last */

static void make_left(int folder, const char *name)
{
    const struct timespec times[2] = {{CHANGED, 0}, {CHANGED, 0}};
    const int fd = openat(folder, name, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0 && futimens(fd, times) == 0 && close(fd) == 0);
}

static int sweep(const char *path, time_t now)
{
    posed_now = now;
    file_out_sweep(path);
    posed_now = 0;
    return support_count_files(path);
}

/* A writer that lives may be between two of its calls for a moment: only after a minute is its file left. */
static void what_is_left_stays_for_a_minute(void **state)
{
    (void)state;
    const char *path = support_fresh_folder("minute");
    const int folder = open(path, O_RDONLY | O_DIRECTORY),
              before = support_count_files("/proc/self/fd");
    make_left(folder, ".utter-0123456789abcdef");
    assert_int_equal(sweep(path, CHANGED - 1), 1);
    assert_int_equal(sweep(path, CHANGED + 60), 1);
    assert_int_equal(sweep(path, CHANGED + 61), 0);
    assert_int_equal(support_count_files("/proc/self/fd"), before);
    close(folder);
}

/* Names that begin or end like ours are those of others, and so is what is no file. */
static void what_others_made_stays(void **state)
{
    (void)state;
    static const char *const names[] = {".utter-0123456789abcdef0", ".utter-0123456789ABCDEF",
        ".utter_0123456789abcdef", "xutter-0123456789abcdef", ".utter-", ".utter-0123456789abcde.",
        ".utter-.0123456789abcde", "0123456789abcdef"};
    enum { N = sizeof names / sizeof *names };
    const char *path = support_fresh_folder("others");
    const int folder = open(path, O_RDONLY | O_DIRECTORY),
              before = support_count_files("/proc/self/fd");
    for (int i = 0; i < N; i++) {
        make_left(folder, names[i]);
    }
    assert_int_equal(mkdirat(folder, ".utter-00000000000000dd", 0700), 0);
    assert_int_equal(mkfifoat(folder, ".utter-00000000000000ff", 0600), 0);
    assert_int_equal(sweep(path, CHANGED + 9999999), N + 2);
    make_left(folder, ".utter-fedcba9876543210");
    make_left(folder, ".utter-0000000000000000");
    assert_int_equal(sweep(path, CHANGED + 9999999), N + 2); /* both, and no other */
    assert_int_equal(support_count_files("/proc/self/fd"), before);
    close(folder);
}

/* Whoever has it open and locked lives, however long ago it wrote. */
static void what_is_locked_stays(void **state)
{
    (void)state;
    const char *path = support_fresh_folder("locked"), *left = ".utter-0123456789abcdef";
    const int folder = open(path, O_RDONLY | O_DIRECTORY);
    make_left(folder, left);
    const int fd = openat(folder, left, O_RDONLY);
    assert_int_equal(flock(fd, LOCK_SH), 0);
    assert_int_equal(sweep(path, CHANGED + 61), 1);
    close(fd);
    assert_int_equal(sweep(path, CHANGED + 61), 0);
    close(folder);
}

static void no_folder_has_nothing_to_sweep(void **state)
{
    (void)state;
    const int before = support_count_files("/proc/self/fd");
    file_out_sweep(support_path("no such folder"));
    assert_int_equal(support_count_files("/proc/self/fd"), before);
    assert_false(file_exists(support_path("no such folder")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_other_program_inherits_what_is_written),
        cmocka_unit_test(who_writes_holds_a_lock),
        cmocka_unit_test(the_file_and_its_folder_are_synced),
        cmocka_unit_test(a_folder_with_too_long_a_path_is_not_synced),
        cmocka_unit_test(what_is_left_stays_for_a_minute),
        cmocka_unit_test(what_others_made_stays),
        cmocka_unit_test(what_is_locked_stays),
        cmocka_unit_test(no_folder_has_nothing_to_sweep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
