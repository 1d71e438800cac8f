/* SPDX-License-Identifier: Apache-2.0
 * Files being written: whole or not at all. */
#include "tests/support.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"

static utter_status write_text(const char *path, const char *text, utter_error *error)
{
    struct file_out *out;
    utter_status status = file_out_open(&out, path, error);
    if (status == UTTER_OK) {
        status = file_out_write(out, text, strlen(text), error);
        utter_status closed = file_out_close(&out, status == UTTER_OK ? error : NULL);
        status = status == UTTER_OK ? closed : status;
        assert_null(out);
    } else {
        assert_null(out);
    }
    return status;
}

static void file_appears_when_it_is_complete(void **state)
{
    (void)state;
    const char *folder = support_fresh_folder("appears"), *path = support_path("appears/file");
    struct file_out *out;
    utter_error error;
    assert_int_equal(file_out_open(&out, path, &error), UTTER_OK);
    assert_true(file_out_seekable(out));
    assert_int_equal(file_out_write(out, "hello ", 6, &error), UTTER_OK);
    assert_false(file_exists(path));
    support_short_io(1);
    assert_int_equal(file_out_write(out, "world", 5, &error), UTTER_OK);
    support_short_io(0);
    assert_int_equal(file_out_patch(out, 1, "EL", 2, &error), UTTER_OK);
    assert_int_equal(file_out_patch(out, 10, "xy", 2, &error), UTTER_E_INTERNAL);
    assert_int_equal(file_out_patch(out, UINT64_MAX, "xy", 2, &error), UTTER_E_INTERNAL);
    assert_int_equal(file_out_close(&out, &error), UTTER_OK);
    assert_null(out);
    support_assert_content(path, "hELlo world");
    assert_int_equal(support_count_files(folder), 1);
    assert_int_equal(file_out_close(&out, &error), UTTER_OK); /* nothing to close */
}

static void abort_leaves_what_was_there(void **state)
{
    (void)state;
    const char *folder = support_fresh_folder("abort"), *path = support_path("abort/file");
    struct file_out *out;
    for (int round = 0; round < 2; round++) {
        assert_int_equal(file_out_open(&out, path, NULL), UTTER_OK);
        assert_int_equal(file_out_write(out, "new", 3, NULL), UTTER_OK);
        file_out_abort(&out);
        assert_null(out);
        file_out_abort(&out);
        assert_int_equal(support_count_files(folder), round);
        support_write_file(path, "old", 3);
    }
    support_assert_content(path, "old");
}

static void permissions_and_links_are_kept(void **state)
{
    (void)state;
    support_fresh_folder("kept");
    const char *path = support_path("kept/file"), *link = support_path("kept/link");
    struct stat about;
    mode_t before = umask(022);
    support_write_file(path, "old", 3);
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(symlink("file", link), 0);
    assert_int_equal(write_text(link, "new", NULL), UTTER_OK);
    support_assert_content(path, "new");
    assert_int_equal(lstat(link, &about), 0);
    assert_true(S_ISLNK(about.st_mode));
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0640);
    assert_int_equal(write_text(support_path("kept/other"), "new", NULL), UTTER_OK);
    assert_int_equal(stat(support_path("kept/other"), &about), 0);
    assert_int_equal(about.st_mode & 0777, 0644);
    umask(before);
}

/* A link to where nothing is yet stays one, and so does a chain of them; a circle leads nowhere. */
static void links_to_nothing_are_followed(void **state)
{
    (void)state;
    utter_error error;
    struct stat about;
    support_fresh_folder("links");
    support_fresh_folder("links/in");
    const char *link = support_path("links/link"), *circle = support_path("links/circle");
    assert_int_equal(symlink("in/second", link), 0);
    assert_int_equal(symlink("../file", support_path("links/in/second")), 0);
    assert_int_equal(symlink("circle", circle), 0);
    assert_int_equal(write_text(link, "new", NULL), UTTER_OK);
    support_assert_content(support_path("links/file"), "new");
    assert_int_equal(lstat(link, &about), 0);
    assert_true(S_ISLNK(about.st_mode));
    assert_int_equal(lstat(support_path("links/in/second"), &about), 0);
    assert_true(S_ISLNK(about.st_mode));
    assert_int_equal(write_text(circle, "new", &error), UTTER_E_FILE);
    assert_non_null(strstr(error.text, "Too many levels of symbolic links"));
}

/* While it is written it has no name, where the system can do that; else, or if that fails, a hidden one. */
static void what_is_not_complete_has_no_name(void **state)
{
    (void)state;
    const char *folder = support_fresh_folder("nameless"), *path = support_path("nameless/file");
    int probe = open(folder, O_RDWR | O_TMPFILE, 0600);
    for (int round = 0; round < 2; round++) {
        struct file_out *out;
        bool nameless = probe >= 0 && round == 0;
        support_fail_open_at(round); /* the first attempt of the second round */
        assert_int_equal(file_out_open(&out, path, NULL), UTTER_OK);
        support_fail_off();
        assert_int_equal(file_out_write(out, "new", 3, NULL), UTTER_OK);
        assert_int_equal(support_count_files(folder), nameless ? 0 : 1);
        assert_int_equal(file_out_close(&out, NULL), UTTER_OK);
        support_assert_content(path, "new");
        assert_int_equal(support_count_files(folder), 1);
        unlink(path);
    }
    close(probe);
}

/* Also a file name alone, without a folder. */
static void bare_names_are_written_here(void **state)
{
    (void)state;
    char *before = getcwd(NULL, 0);
    assert_int_equal(chdir(support_fresh_folder("here")), 0);
    assert_int_equal(write_text("bare", "new", NULL), UTTER_OK);
    support_assert_content("bare", "new");
    assert_int_equal(support_count_files("."), 1);
    assert_int_equal(chdir(before), 0);
    free(before);
}

static void every_failing_call_leaves_nothing(void **state)
{
    (void)state;
    static const enum support_call calls[] = {
        SUPPORT_MALLOC, SUPPORT_OPEN, SUPPORT_WRITE, SUPPORT_FSYNC, SUPPORT_RENAME};
    const char *folder = support_fresh_folder("fails"), *path = support_path("fails/file");
    int n_failures = 0, n_open = support_count_files("/proc/self/fd");
    for (int with_old = 0; with_old < 2; with_old++) {
        for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
            SUPPORT_EACH_FAILURE(calls[i], n)
            {
                utter_error error = {.text = ""};
                unlink(path);
                if (with_old) {
                    support_write_file(path, "old", 3);
                }
                utter_status status = write_text(path, "new", &error);
                /* A file that cannot be nameless has a name. Of the folder only the sync may fail quietly: the file
                 * itself is whole and in place. */
                bool quiet = calls[i] == SUPPORT_OPEN || (calls[i] == SUPPORT_FSYNC && n == 2);
                bool must_fail = support_failed() && !quiet;
                assert_int_equal(status != UTTER_OK, must_fail);
                assert_int_equal(must_fail, error.text[0] != 0);
                assert_int_equal(support_count_files(folder), with_old || !must_fail);
                if (file_exists(path)) {
                    support_assert_content(path, must_fail ? "old" : "new");
                }
                n_failures += must_fail;
            }
        }
    }
    assert_int_equal(n_failures, 2 * (3 + 1 + 1 + 1));
    assert_int_equal(support_count_files("/proc/self/fd"), n_open);
}

static void failed_writes_say_what_to_do(void **state)
{
    (void)state;
    utter_error error;
    support_fresh_folder("says");
    support_fail_write_at(1);
    assert_int_equal(write_text(support_path("says/file"), "new", &error), UTTER_E_IO);
    support_fail_off();
    assert_non_null(
        strstr(error.text, "says/file: cannot write: No space left on device (free some space"));
    assert_int_equal(write_text(support_path("nowhere/file"), "new", &error), UTTER_E_FILE);
    assert_non_null(strstr(error.text, "nowhere/file: cannot create: No such file or directory"));
    assert_int_equal(write_text(support_path("says"), "new", &error), UTTER_E_FILE);
    assert_non_null(strstr(error.text, "is a folder"));
    assert_int_equal(write_text(support_path("says/"), "new", &error), UTTER_E_FILE);
}

/* Once a write has failed the file is not completed, whatever the caller does with the status. */
static void close_remembers_a_failed_write(void **state)
{
    (void)state;
    const char *folder = support_fresh_folder("remembers");
    struct file_out *out;
    assert_int_equal(file_out_open(&out, support_path("remembers/file"), NULL), UTTER_OK);
    support_fail_write_at(1);
    assert_int_equal(file_out_write(out, "a", 1, NULL), UTTER_E_IO);
    support_fail_off();
    assert_int_equal(file_out_write(out, "b", 1, NULL), UTTER_OK);
    assert_int_equal(file_out_close(&out, NULL), UTTER_E_IO);
    assert_int_equal(support_count_files(folder), 0);
}

static void devices_are_written_directly(void **state)
{
    (void)state;
    struct file_out *out;
    utter_error error;
    struct stat about;
    assert_int_equal(write_text("/dev/null", "new", &error), UTTER_OK);
    assert_int_equal(stat("/dev/null", &about), 0);
    assert_true(S_ISCHR(about.st_mode));
    assert_int_equal(write_text("/dev/full", "new", &error), UTTER_E_IO);
    assert_non_null(strstr(error.text, "/dev/full: cannot write: No space left"));
    assert_int_equal(file_out_open(&out, "/dev/null", &error), UTTER_OK);
    assert_false(file_out_seekable(out));
    assert_int_equal(file_out_patch(out, 0, "a", 1, &error), UTTER_E_INTERNAL);
    file_out_abort(&out);
    assert_true(file_exists("/dev/null"));
}

/* Runs in a child whose standard output is the write end of a pipe. */
static int stdout_child(int pipe_fd, bool without_reader)
{
    utter_error error;
    struct file_out *out;
    if (dup2(pipe_fd, 1) != 1 || file_out_open(&out, "-", &error) != UTTER_OK ||
        file_out_seekable(out)) {
        return 1;
    }
    close(pipe_fd);
    signal(SIGPIPE, SIG_IGN);
    static char block[300000];
    memset(block, 'x', sizeof block);
    utter_status status = file_out_write(out, block, sizeof block, &error);
    if (without_reader) {
        return status == UTTER_E_IO &&
                       strstr(error.text, "standard output: cannot write: Broken pipe") &&
                       file_out_close(&out, NULL) == UTTER_E_IO
                   ? 0
                   : 2;
    }
    if (status != UTTER_OK || file_out_close(&out, &error) != UTTER_OK) {
        return 3;
    }
    return write(1, "open", 4) == 4 ? 0 : 4; /* ours to use, not to close */
}

static void standard_output_is_streamed(void **state)
{
    (void)state;
    for (int round = 0; round < 3; round++) { /* blocking, non-blocking, nobody reads */
        int ends[2], status;
        assert_int_equal(pipe(ends), 0);
        if (round == 1) {
            assert_int_equal(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
        }
        pid_t child = fork();
        if (child == 0) {
            close(ends[0]);
            _exit(stdout_child(ends[1], round == 2));
        }
        close(ends[1]);
        size_t n_all = 0;
        if (round < 2) {
            char buffer[5000];
            usleep(20000); /* until the pipe is full */
            for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) {
                n_all += (size_t)n;
            }
        }
        close(ends[0]);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        assert_int_equal(n_all, round < 2 ? 300004 : 0);
    }
}

/* A file of this name that has not changed for an hour. */
static void make_old(int folder, const char *name)
{
    struct timespec times[2] = {{time(NULL) - 3600, 0}, {time(NULL) - 3600, 0}};
    int fd = openat(folder, name, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0 && futimens(fd, times) == 0 && close(fd) == 0);
}

/* The same for the file that is being written under a hidden name, the only one. */
static void make_hidden_old(const char *path, int folder)
{
    DIR *list = opendir(path);
    for (const struct dirent *entry; (entry = readdir(list));) {
        if (strncmp(entry->d_name, ".utter-", 7) == 0) {
            make_old(folder, entry->d_name);
        }
    }
    closedir(list);
}

static void what_killed_writers_left_goes(void **state)
{
    static const char left[] = ".utter-0123456789abcdef", target[] = "target",
                      link[] = ".utter-00000000deadbeef";
    static const char *const others[] = {".utter-0123456789abcdeg", ".utter-0123456789abcde", target};
    (void)state;
    const char *path = support_fresh_folder("sweep");
    int folder = open(path, O_RDONLY | O_DIRECTORY);
    struct file_out *alive;
    support_fail_open_at(1); /* not without a name */
    assert_int_equal(file_out_open(&alive, support_path("sweep/whole"), NULL), UTTER_OK);
    support_fail_off();
    make_hidden_old(path, folder);
    make_old(folder, left);
    for (int i = 0; i < 3; i++) {
        make_old(folder, others[i]);
    }
    assert_int_equal(symlinkat(target, folder, link), 0);
    file_out_sweep(path);
    assert_int_not_equal(faccessat(folder, left, F_OK, 0), 0);
    assert_int_equal(support_count_files(path), 5); /* others, the link, and what is being written */
    assert_int_equal(file_out_close(&alive, NULL), UTTER_OK); /* it was still there */
    make_old(folder, left);
    assert_int_equal(utimensat(folder, left, NULL, 0), 0); /* just now */
    file_out_sweep(path);
    assert_int_equal(faccessat(folder, left, F_OK, 0), 0);
    close(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(file_appears_when_it_is_complete),
        cmocka_unit_test(abort_leaves_what_was_there),
        cmocka_unit_test(permissions_and_links_are_kept),
        cmocka_unit_test(links_to_nothing_are_followed),
        cmocka_unit_test(what_is_not_complete_has_no_name),
        cmocka_unit_test(bare_names_are_written_here),
        cmocka_unit_test(every_failing_call_leaves_nothing),
        cmocka_unit_test(failed_writes_say_what_to_do),
        cmocka_unit_test(close_remembers_a_failed_write),
        cmocka_unit_test(devices_are_written_directly),
        cmocka_unit_test(standard_output_is_streamed),
        cmocka_unit_test(what_killed_writers_left_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
