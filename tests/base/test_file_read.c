/* SPDX-License-Identifier: Apache-2.0
 * What reading a file asks of the system and what it says of each refusal: descriptors that no other program inherits,
 * calls that are interrupted, files that grow meanwhile, and a reader whose standard input is closed. */
#include "tests/support.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"

/* ---- Sentences ---- */

static void each_reason_has_its_status_and_advice(void **state)
{
    (void)state;
    static const struct {
        int reason;
        utter_status status;
        const char *advice;
    } cases[] = {
        {ENOSPC, UTTER_E_IO, " (free some space, or choose another disk)"},
        {EDQUOT, UTTER_E_IO, " (free some space, or choose another disk)"},
        {EACCES, UTTER_E_FILE, " (check its permissions and those of its folder)"},
        {EPERM, UTTER_E_FILE, " (check its permissions and those of its folder)"},
        {EROFS, UTTER_E_FILE, " (choose a place that can be written)"},
        {ENOENT, UTTER_E_FILE, " (check the name)"},
        {ENOTDIR, UTTER_E_FILE, " (check the name)"},
        {EMFILE, UTTER_E_IO, " (close some, or raise the limit: ulimit -n)"},
        {ENFILE, UTTER_E_IO, " (close some, or raise the limit: ulimit -n)"},
        {EPIPE, UTTER_E_IO, " (the reader has gone)"},
        {EFBIG, UTTER_E_IO, ""},
        {EIO, UTTER_E_IO, ""},
        {ENOMEM, UTTER_E_MEMORY, ""},
        {EISDIR, UTTER_E_FILE, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char wanted[256];
        utter_error error;
        snprintf(
            wanted, sizeof wanted, "a: cannot read: %s%s", strerror(cases[i].reason), cases[i].advice);
        assert_int_equal(file_error(&error, "a", "read", cases[i].reason), cases[i].status);
        assert_int_equal(error.code, cases[i].status);
        assert_string_equal(error.text, wanted);
    }
}

static void what_is_too_large_is_told_with_the_limit(void **state)
{
    (void)state;
    utter_error error;
    assert_int_equal(file_too_large(&error, "a\tb", 12), UTTER_E_FILE);
    assert_string_equal(error.text, "a\\tb: too large: more than 12 bytes");
}

/* ---- Reading ---- */

/* Something to tell what was left in an out parameter from what was put there. */
static char untouched[] = "untouched";

static void assert_reads(const char *path, size_t limit, const char *wanted)
{
    char *text = untouched;
    size_t n = 77;
    assert_int_equal(file_read_any(path, limit, &text, &n, NULL), UTTER_OK);
    assert_int_equal(n, strlen(wanted));
    assert_string_equal(text, wanted);
    memory_free(text);
}

/* Nothing is left of what stood in the out parameters before. */
static void assert_refused(file_reader *reader, const char *path, size_t limit, utter_status wanted)
{
    char *text = untouched;
    size_t n = 77;
    assert_int_equal(reader(path, limit, &text, &n, NULL), wanted);
    assert_null(text);
    assert_int_equal(n, 0);
}

static void what_is_not_read_leaves_no_text(void **state)
{
    (void)state;
    const char *path = support_path("long");
    support_write_file(path, "abcdef", 6);
    assert_refused(file_read, support_path("missing"), 9, UTTER_E_FILE);
    assert_refused(file_read, path, 5, UTTER_E_FILE);
    assert_refused(file_read, support_folder(), 9, UTTER_E_FILE);
    support_fail_read_at(1);
    assert_refused(file_read, path, 9, UTTER_E_IO);
    support_fail_malloc_at(1);
    assert_refused(file_read, path, 9, UTTER_E_MEMORY);
    support_fail_off();
}

/* A limit with which sizes could overflow is a mistake of the caller; half of all addresses is one still. */
static void the_greatest_limit_is_half_of_all(void **state)
{
    (void)state;
    const char *path = support_path("short");
    char *text;
    size_t n;
    utter_error error;
    support_write_file(path, "abc", 3);
    assert_reads(path, SIZE_MAX >> 1, "abc");
    assert_refused(file_read, path, (SIZE_MAX >> 1) + 1, UTTER_E_ARGUMENT);
    assert_int_equal(file_read(path, SIZE_MAX, &text, &n, &error), UTTER_E_ARGUMENT);
    assert_non_null(strstr(error.text, "short: no limit was given"));
}

static void an_interrupted_read_goes_on(void **state)
{
    (void)state;
    support_write_file(support_path("short"), "abc", 3);
    for (int n = 1; n <= 2; n++) { /* before the first byte, and before the end is known */
        support_fail_read_at(n);
        support_fail_with(EINTR);
        assert_reads(support_path("short"), 9, "abc");
        assert_true(support_failed());
        support_fail_off();
    }
}

/* The text of a pipe or device comes in parts of any size, up to exactly the limit. */
static void a_pipe_may_be_as_long_as_the_limit(void **state)
{
    (void)state;
    enum { BYTES = 20000 };
    static char sent[BYTES + 1];
    for (size_t i = 0; i < BYTES; i++) {
        sent[i] = (char)('a' + i * 7 % 26);
    }
    for (size_t limit = BYTES - 1; limit <= BYTES + 1; limit++) {
        int ends[2];
        char path[64];
        assert_int_equal(pipe(ends), 0);
        assert_int_equal(write(ends[1], sent, BYTES), BYTES);
        assert_int_equal(close(ends[1]), 0);
        snprintf(path, sizeof path, "/proc/self/fd/%d", ends[0]);
        if (limit < BYTES) {
            assert_refused(file_read_any, path, limit, UTTER_E_FILE);
        } else {
            assert_reads(path, limit, sent);
        }
        assert_int_equal(close(ends[0]), 0);
    }
}

static void append_nine_thousand(void)
{
    FILE *file = fopen(support_path("grows"), "a");
    for (int i = 0; file && i < 9000; i++) {
        fputc('y', file);
    }
    if (file) {
        fclose(file);
    }
}

/* Its size of before was only a hint: all that is there when its end is reached is the text. */
static void a_file_that_grows_is_read_whole(void **state)
{
    (void)state;
    static char wanted[9004];
    memcpy(wanted, "abc", 3);
    memset(wanted + 3, 'y', 9000);
    for (size_t limit = 9002; limit <= 9004; limit++) {
        support_write_file(support_path("grows"), "abc", 3);
        support_happens_at(SUPPORT_READ, 1, append_nine_thousand);
        if (limit < 9003) {
            assert_refused(file_read_any, support_path("grows"), limit, UTTER_E_FILE);
        } else {
            assert_reads(support_path("grows"), limit, wanted);
        }
        assert_true(support_failed());
        support_fail_off();
    }
}

static void a_file_that_grows_needs_memory(void **state)
{
    (void)state;
    int pipes[2];
    char path[64];
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(write(pipes[1], "abc", 3), 3);
    snprintf(path, sizeof path, "/proc/self/fd/%d", pipes[0]);
    support_fail_malloc_at(2);
    assert_refused(file_read_any, path, 9000, UTTER_E_MEMORY);
    assert_true(support_failed());
    support_fail_off();
    close(pipes[0]);
    close(pipes[1]);
}

/* ---- Descriptors ---- */

/* Of the descriptors from 3 on that are open: how many there are, and how many another program would inherit. */
static int n_open, n_inherited;

static void count_open(void)
{
    n_open = n_inherited = 0;
    for (int fd = 3; fd < 256; fd++) {
        int flags = fcntl(fd, F_GETFD);
        n_open += flags >= 0;
        n_inherited += flags >= 0 && !(flags & FD_CLOEXEC);
    }
}

/* A program that is started while a file is read gets nothing of it. */
static void no_other_program_inherits_what_is_read(void **state)
{
    (void)state;
    const char *path = support_path("own");
    support_write_file(path, "abc", 3);
    count_open();
    const int before = n_open, inherited = n_inherited;
    for (int any = 0; any < 2; any++) {
        char *text;
        size_t n;
        support_happens_at(SUPPORT_READ, 1, count_open);
        utter_status status =
            any ? file_read_any(path, 9, &text, &n, NULL) : file_read(path, 9, &text, &n, NULL);
        assert_int_equal(status, UTTER_OK);
        assert_true(support_failed());
        support_fail_off();
        memory_free(text);
        assert_int_equal(n_open, before + 1);
        assert_int_equal(n_inherited, inherited);
    }
    struct file_map map;
    assert_int_equal(file_map_open(&map, path, NULL), UTTER_OK);
    assert_int_equal(fcntl(map.descriptor, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    file_map_close(&map);
    count_open();
    assert_int_equal(n_open, before);
}

static void refused_files_leave_nothing_open(void **state)
{
    (void)state;
    char *text;
    size_t n;
    struct file_map map;
    const char *pipe = support_path("pipe"), *empty = support_path("empty");
    support_write_file(empty, "", 0);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    count_open();
    const int before = n_open;
    assert_int_equal(file_read(pipe, 9, &text, &n, NULL), UTTER_E_FILE);
    assert_int_equal(file_read(support_folder(), 9, &text, &n, NULL), UTTER_E_FILE);
    assert_int_equal(file_read(empty, SIZE_MAX, &text, &n, NULL), UTTER_E_ARGUMENT);
    assert_int_equal(file_map_open(&map, pipe, NULL), UTTER_E_FILE);
    assert_int_equal(file_map_open(&map, support_folder(), NULL), UTTER_E_FILE);
    assert_int_equal(file_map_open(&map, empty, NULL), UTTER_OK);
    assert_int_equal(file_device_fault(empty), 0);
    count_open();
    assert_int_equal(n_open, before);
    unlink(pipe);
}

/* In a process whose standard input is closed the next file to be opened is descriptor 0, as good as any other. */
static void the_first_descriptor_is_one_too(void **state)
{
    (void)state;
    const char *path = support_path("first");
    support_write_file(path, "abc", 3);
    const int kept = dup(0);
    close(0);
    errno = EDOM;
    const int fault = file_device_fault(path);
    const bool closed = fcntl(0, F_GETFD) < 0;
    char *text = NULL;
    size_t n;
    const utter_status read = file_read(path, 9, &text, &n, NULL);
    struct file_map map;
    const utter_status mapped = file_map_open(&map, path, NULL);
    const int descriptor = map.descriptor;
    file_map_close(&map);
    const bool all_closed = fcntl(0, F_GETFD) < 0;
    if (kept >= 0) {
        assert_int_equal(dup2(kept, 0), 0);
        close(kept);
    }
    assert_int_equal(fault, 0);
    assert_true(closed);
    assert_int_equal(read, UTTER_OK);
    assert_string_equal(text, "abc");
    memory_free(text);
    assert_int_equal(mapped, UTTER_OK);
    assert_int_equal(descriptor, 0);
    assert_true(all_closed);
}

/* In a session of its own that has no terminal yet: the first that such a process opens would be its own, and its
 * hang-up would end the process. Exits with 0 when it still has none. */
static void open_a_terminal(const char *path)
{
    char *text;
    size_t n;
    struct file_map map;
    struct file_out *out;
    if (setsid() < 0 || file_read(path, 9, &text, &n, NULL) != UTTER_E_FILE ||
        file_map_open(&map, path, NULL) != UTTER_E_FILE ||
        file_out_open(&out, path, NULL) != UTTER_OK) {
        _exit(1);
    }
    _exit(open("/dev/tty", O_RDWR | O_NOCTTY) < 0 ? 0 : 2);
}

static void no_terminal_becomes_ours(void **state)
{
    (void)state;
    int status, terminal = posix_openpt(O_RDWR | O_NOCTTY);
    if (terminal < 0 || grantpt(terminal) != 0 || unlockpt(terminal) != 0) {
        skip(); /* a system without terminals */
    }
    pid_t child = fork();
    if (child == 0) {
        open_a_terminal(ptsname(terminal));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    close(terminal);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- Questions, folders ---- */

static void a_device_is_opened_or_its_fault_told(void **state)
{
    (void)state;
    assert_int_equal(file_device_fault("/dev/null"), 0);
    assert_int_equal(file_device_fault(support_path("missing")), ENOENT);
    assert_int_equal(file_device_fault(support_folder()), EISDIR); /* nobody may write there */
    support_fail_open_at(1);
    assert_int_equal(file_device_fault("/dev/null"), EACCES);
    support_fail_off();
}

static void folders_are_asked_for_what_they_are(void **state)
{
    (void)state;
    assert_false(file_is_folder(support_path("missing")));
    assert_true(file_exists(support_folder()));
    assert_false(file_exists(""));
    assert_false(file_is_folder(""));
}

static void folders_have_the_usual_permissions(void **state)
{
    (void)state;
    static const mode_t masks[] = {0, 022, 077};
    for (int i = 0; i < 3; i++) {
        char name[32];
        struct stat about;
        snprintf(name, sizeof name, "mode%d", i);
        const mode_t before = umask(masks[i]);
        const utter_status status = file_make_folder(support_path(name), NULL);
        umask(before);
        assert_int_equal(status, UTTER_OK);
        assert_int_equal(stat(support_path(name), &about), 0);
        assert_int_equal(about.st_mode & 07777, 0777 & ~masks[i]);
    }
}

/* Also a name of one letter and one without a folder in front; the first thing that failed is what is told. */
static void folders_fail_with_the_first_reason(void **state)
{
    (void)state;
    utter_error error;
    char *before = getcwd(NULL, 0);
    assert_int_equal(chdir(support_folder()), 0);
    utter_status letter = file_make_folder("z", NULL), below = file_make_folder("y/x", NULL);
    utter_status here = file_make_folder(".", NULL), root = file_make_folder("/", NULL);
    assert_int_equal(chdir(before), 0);
    free(before);
    assert_int_equal(letter, UTTER_OK);
    assert_int_equal(below, UTTER_OK);
    assert_int_equal(here, UTTER_OK);
    assert_int_equal(root, UTTER_OK);
    assert_true(file_is_folder(support_path("z")));
    assert_true(file_is_folder(support_path("y/x")));
    assert_int_equal(file_make_folder("", &error), UTTER_E_FILE);
    assert_int_equal(file_make_folder("/proc/none/of/these", &error), UTTER_E_FILE);
    assert_string_equal(error.text, "/proc/none/of/these: cannot make the folder: "
                                    "No such file or directory (check the name)");
    support_fail_malloc_at(1);
    assert_int_equal(file_make_folder(support_path("never"), &error), UTTER_E_MEMORY);
    support_fail_off();
    assert_false(file_exists(support_path("never")));
}

static void a_path_that_is_too_long_is_shown(void **state)
{
    (void)state;
    char out[8];
    utter_error error;
    assert_int_equal(file_join(out, 5, "ab", "c", &error), UTTER_OK);
    assert_string_equal(out, "ab/c");
    assert_int_equal(file_join(out, 4, "ab", "c", &error), UTTER_E_FILE);
    assert_string_equal(error.text, "ab: the path is too long");
    assert_int_equal(file_join(out, 4, "/", "c", &error), UTTER_OK);
    assert_string_equal(out, "/c");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_reason_has_its_status_and_advice),
        cmocka_unit_test(what_is_too_large_is_told_with_the_limit),
        cmocka_unit_test(what_is_not_read_leaves_no_text),
        cmocka_unit_test(the_greatest_limit_is_half_of_all),
        cmocka_unit_test(an_interrupted_read_goes_on),
        cmocka_unit_test(a_pipe_may_be_as_long_as_the_limit),
        cmocka_unit_test(a_file_that_grows_is_read_whole),
        cmocka_unit_test(a_file_that_grows_needs_memory),
        cmocka_unit_test(no_other_program_inherits_what_is_read),
        cmocka_unit_test(refused_files_leave_nothing_open),
        cmocka_unit_test(the_first_descriptor_is_one_too),
        cmocka_unit_test(no_terminal_becomes_ours),
        cmocka_unit_test(a_device_is_opened_or_its_fault_told),
        cmocka_unit_test(folders_are_asked_for_what_they_are),
        cmocka_unit_test(folders_have_the_usual_permissions),
        cmocka_unit_test(folders_fail_with_the_first_reason),
        cmocka_unit_test(a_path_that_is_too_long_is_shown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
