/* SPDX-License-Identifier: Apache-2.0
 * What writing a file asks of the system, where the system answers as it seldom does: names that are taken, calls that
 * are interrupted or move a part, folders that cannot name a nameless file. The linker sends those calls here. */
#include "tests/support.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "tests/base/open_out.h"

/* ---- The posed system: each member is how its call answers, zero as ever ---- */

static struct {
    int n_same_names;   /* so many names of files that are to be drawn are one and the same */
    int entropy_reason; /* no name can be drawn: an errno */
    int link_reason;    /* a nameless file cannot get a name */
    int access_reason;
    const char *access_path; /* of this path alone; NULL: of what lies in /proc */
    int close_reason;
    int pwrite_reason, n_pwrite_fails; /* the first so many calls; SUPPORT_MOVES_NOTHING: no byte */
    size_t pwrite_most;                /* bytes a call */
    int n_drawn, n_pwrites;
} posed;

int __wrap_getentropy(void *data, size_t bytes);
int __wrap_linkat(int from_folder, const char *from, int to_folder, const char *to, int flags);
int __wrap_access(const char *path, int mode);
int __wrap_close(int fd);
ssize_t __wrap_pwrite(int fd, const void *data, size_t bytes, off_t offset);
int __real_getentropy(void *data, size_t bytes);
int __real_linkat(int from_folder, const char *from, int to_folder, const char *to, int flags);
int __real_access(const char *path, int mode);
int __real_close(int fd);
ssize_t __real_pwrite(int fd, const void *data, size_t bytes, off_t offset);

static int refuse(int reason)
{
    errno = reason;
    return -1;
}

int __wrap_getentropy(void *data, size_t bytes)
{
    if (posed.entropy_reason) {
        return refuse(posed.entropy_reason);
    }
    if (posed.n_drawn++ < posed.n_same_names) {
        memset(data, 0xa1, bytes);
        return 0;
    }
    return __real_getentropy(data, bytes);
}

int __wrap_linkat(int from_folder, const char *from, int to_folder, const char *to, int flags)
{
    return posed.link_reason ? refuse(posed.link_reason)
                             : __real_linkat(from_folder, from, to_folder, to, flags);
}

int __wrap_access(const char *path, int mode)
{
    const bool meant = posed.access_path ? strcmp(path, posed.access_path) == 0
                                         : strncmp(path, "/proc/", strlen("/proc/")) == 0;
    return posed.access_reason && meant ? refuse(posed.access_reason) : __real_access(path, mode);
}

int __wrap_close(int fd)
{
    const int result = __real_close(fd);
    return posed.close_reason ? refuse(posed.close_reason) : result;
}

ssize_t __wrap_pwrite(int fd, const void *data, size_t bytes, off_t offset)
{
    if (posed.n_pwrites++ < posed.n_pwrite_fails) {
        return posed.pwrite_reason == SUPPORT_MOVES_NOTHING ? 0 : refuse(posed.pwrite_reason);
    }
    const bool is_more = posed.pwrite_most && bytes > posed.pwrite_most;
    return __real_pwrite(fd, data, is_more ? posed.pwrite_most : bytes, offset);
}

static int as_ever(void **state)
{
    (void)state;
    memset(&posed, 0, sizeof posed);
    support_fail_off();
    return 0;
}

/* ---- What the tests ask ---- */

static void put(struct file_out *out, const char *text)
{
    assert_int_equal(file_out_write(out, text, strlen(text), NULL), UTTER_OK);
}

static int open_files(void)
{
    return support_count_files("/proc/self/fd");
}

/* ---- Hidden names ---- */

/* Another name is drawn where one is taken, sixteen times, whether the file is named at once or at the end. */
static void a_hidden_name_that_is_taken_is_drawn_again(void **state)
{
    (void)state;
    const char *folder = support_fresh_folder("taken"), *path = support_path("taken/file");
    support_write_file(support_path("taken/.utter-a1a1a1a1a1a1a1a1"), "other", 5);
    const int before = open_files();
    for (int named = 0; named < 2; named++) {
        for (int n_same = 15; n_same <= 16; n_same++) {
            struct file_out *out = NULL;
            utter_error error = {.text = ""};
            as_ever(NULL);
            posed.n_same_names = n_same;
            support_fail_open_at(named);
            utter_status status = file_out_open(&out, path, &error);
            support_fail_off();
            if (out) {
                put(out, "new");
                status = file_out_close(&out, &error);
            }
            assert_int_equal(posed.n_drawn, 16);
            assert_int_equal(status == UTTER_OK, n_same == 15);
            assert_int_equal(strstr(error.text, "File exists") != NULL, n_same == 16);
            assert_int_equal(support_count_files(folder), n_same == 15 ? 2 : 1);
            assert_int_equal(open_files(), before);
            unlink(path);
        }
    }
    support_assert_content(support_path("taken/.utter-a1a1a1a1a1a1a1a1"), "other");
}

static void a_hidden_name_is_hidden_and_of_sixteen_digits(void **state)
{
    (void)state;
    const char *folder = support_fresh_folder("digits");
    struct file_out *out = open_named(support_path("digits/file"));
    DIR *list = opendir(folder);
    int n = 0;
    for (const struct dirent *entry; (entry = readdir(list));) {
        if (entry->d_name[0] == '.' && strlen(entry->d_name) > 2) {
            assert_memory_equal(entry->d_name, ".utter-", 7);
            assert_int_equal(strlen(entry->d_name), 7 + 16);
            assert_int_equal(strspn(entry->d_name + 7, "0123456789abcdef"), 16);
            n++;
        }
    }
    closedir(list);
    assert_int_equal(n, 1);
    file_out_abort(&out);
    assert_null(out);
    assert_int_equal(support_count_files(folder), 0);
}

/* Without a name that could be drawn nothing is written, and no other name is tried. */
static void a_name_that_cannot_be_drawn_fails(void **state)
{
    (void)state;
    const char *folder = support_fresh_folder("drawn"), *path = support_path("drawn/file");
    const int before = open_files();
    for (int named = 0; named < 2; named++) {
        struct file_out *out = NULL;
        utter_error error;
        as_ever(NULL);
        support_fail_open_at(named);
        posed.entropy_reason = ENOSYS;
        utter_status status = file_out_open(&out, path, &error);
        support_fail_off();
        assert_int_equal(status, named ? UTTER_E_FILE : UTTER_OK);
        if (out) {
            assert_int_equal(file_out_close(&out, &error), UTTER_E_IO);
            assert_int_equal(error.code, UTTER_E_IO);
        }
        assert_null(out);
        assert_non_null(strstr(error.text, strerror(ENOSYS)));
        assert_int_equal(support_count_files(folder), 0);
        assert_int_equal(open_files(), before);
    }
}

static void a_file_that_gets_no_name_is_gone(void **state)
{
    (void)state;
    const char *folder = support_fresh_folder("unnamed"), *path = support_path("unnamed/file");
    support_write_file(path, "old", 3);
    const int before = open_files();
    utter_error error;
    struct file_out *out = open_out(path);
    put(out, "new");
    posed.link_reason = EPERM;
    assert_int_equal(file_out_close(&out, &error), UTTER_E_IO);
    assert_int_equal(error.code, UTTER_E_IO);
    assert_non_null(strstr(error.text, "unnamed/file: cannot write: Operation not permitted"));
    support_assert_content(path, "old");
    assert_int_equal(support_count_files(folder), 1);
    assert_int_equal(open_files(), before);
}

/* Where /proc is not mounted a nameless file could never get a name: it has a hidden one from the start. */
static void without_proc_the_file_is_named(void **state)
{
    (void)state;
    const char *folder = support_fresh_folder("noproc"), *path = support_path("noproc/file");
    const int before = open_files();
    posed.access_reason = ENOENT;
    struct file_out *out = open_out(path);
    assert_int_equal(support_count_files(folder), 1);
    assert_int_equal(open_files(), before + 1); /* the nameless one is closed */
    put(out, "new");
    assert_int_equal(file_out_close(&out, NULL), UTTER_OK);
    support_assert_content(path, "new");
    assert_int_equal(support_count_files(folder), 1);
    assert_int_equal(open_files(), before);
}

/* ---- The target ---- */

/* Who may not write the old file may not replace it either, though the folder would allow it. */
static void what_may_not_be_written_is_not_replaced(void **state)
{
    (void)state;
    const char *folder = support_fresh_folder("mayNot"), *path = support_path("mayNot/file");
    support_write_file(path, "old", 3);
    struct file_out *out = (struct file_out *)1;
    utter_error error;
    const int before = open_files();
    posed.access_path = path;
    posed.access_reason = EACCES;
    assert_int_equal(file_out_open(&out, path, &error), UTTER_E_FILE);
    assert_null(out);
    assert_non_null(strstr(error.text, "mayNot/file: cannot write: Permission denied (check"));
    support_assert_content(path, "old");
    assert_int_equal(support_count_files(folder), 1);
    assert_int_equal(open_files(), before);
}

/* Of the old file's mode the permissions are kept, not that it ran as its owner. */
static void a_new_file_runs_as_nobody(void **state)
{
    (void)state;
    struct stat about;
    support_fresh_folder("mode");
    const char *path = support_path("mode/file");
    support_write_file(path, "old", 3);
    assert_int_equal(chmod(path, 06757), 0);
    const mode_t before = umask(0);
    struct file_out *out = open_out(path), *other = open_out(support_path("mode/other")),
                    *named = open_named(support_path("mode/named"));
    umask(before);
    assert_int_equal(file_out_close(&out, NULL), UTTER_OK);
    assert_int_equal(file_out_close(&other, NULL), UTTER_OK);
    assert_int_equal(file_out_close(&named, NULL), UTTER_OK);
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 07777, 0757);
    assert_int_equal(stat(support_path("mode/other"), &about), 0);
    assert_int_equal(about.st_mode & 07777, 0666);
    assert_int_equal(stat(support_path("mode/named"), &about), 0);
    assert_int_equal(about.st_mode & 07777, 0666);
}

/* A chain of links as long as the system itself follows, and one that is longer by one. */
static void forty_links_are_followed(void **state)
{
    (void)state;
    enum { MOST = 40 };
    support_fresh_folder("chain");
    for (int n = MOST; n <= MOST + 1; n++) {
        char name[64], to[64];
        for (int i = 0; i < n; i++) {
            snprintf(name, sizeof name, "chain/%d-%d", n, i);
            snprintf(to, sizeof to, i + 1 < n ? "%d-%d" : "%d-end", n, i + 1);
            assert_int_equal(symlink(to, support_path(name)), 0);
        }
        snprintf(name, sizeof name, "chain/%d-0", n);
        snprintf(to, sizeof to, "chain/%d-end", n);
        struct file_out *out = NULL;
        const utter_status status = file_out_open(&out, support_path(name), NULL);
        assert_int_equal(status, n == MOST ? UTTER_OK : UTTER_E_FILE);
        file_out_close(&out, NULL);
        assert_int_equal(file_exists(support_path(to)), n == MOST);
    }
}

/* A link that is a whole path leads there, and one in the folder that is ours, given by its bare name, beside it. */
static void a_link_leads_from_where_it_is(void **state)
{
    (void)state;
    support_fresh_folder("from");
    const char *far = support_path("from/far"), *link = support_path("from/link");
    assert_int_equal(symlink(far, link), 0);
    struct file_out *out = open_out(link);
    put(out, "far");
    assert_int_equal(file_out_close(&out, NULL), UTTER_OK);
    support_assert_content(far, "far");
    char *before = getcwd(NULL, 0);
    assert_int_equal(chdir(support_path("from")), 0);
    assert_int_equal(symlink("near", "bare"), 0);
    out = open_out("bare");
    const int n_meanwhile = support_count_files("."); /* far, link, bare */
    put(out, "near");
    assert_int_equal(file_out_close(&out, NULL), UTTER_OK);
    struct file_out *named = open_named("near");
    const bool is_hidden = support_count_files(".") == 5 && !file_exists("n.utter-");
    file_out_abort(&named);
    assert_int_equal(chdir(before), 0);
    free(before);
    assert_int_equal(n_meanwhile, 3);
    assert_true(is_hidden);
    support_assert_content(support_path("from/near"), "near");
}

/* ---- Failures ---- */

/* A target that cannot be opened takes no descriptor with it: standard input is 0, and so is what is not set. */
static void what_is_not_opened_closes_nothing(void **state)
{
    (void)state;
    support_fresh_folder("closes");
    const char *const paths[] = {
        support_path("closes"), support_path("closes/none/file"), "/proc/file"};
    const int kept = dup(0), null = open("/dev/null", O_RDONLY);
    assert_true(null >= 0 && dup2(null, 0) == 0);
    bool is_open = true;
    struct file_out *out;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        assert_int_not_equal(file_out_open(&out, paths[i], NULL), UTTER_OK);
        is_open = is_open && fcntl(0, F_GETFD) >= 0;
    }
    for (int n = 1; n <= 3; n++) {
        support_fail_malloc_at(n);
        assert_int_equal(file_out_open(&out, support_path("closes/file"), NULL), UTTER_E_MEMORY);
        is_open = is_open && fcntl(0, F_GETFD) >= 0;
    }
    support_fail_off();
    if (kept >= 0) {
        assert_int_equal(dup2(kept, 0), 0);
        __real_close(kept);
    }
    __real_close(null);
    assert_true(is_open);
}

/* Descriptor 0, where standard input is closed, is a file like another: written, and closed at the end. */
static void the_first_descriptor_is_written_too(void **state)
{
    (void)state;
    const char *folder = support_fresh_folder("zero");
    const int kept = dup(0);
    bool all_closed = true;
    for (int named = 0; named < 2; named++) {
        __real_close(0);
        struct file_out *out = NULL, *dropped = NULL;
        support_fail_open_at(named);
        file_out_open(&out, support_path(named ? "zero/named" : "zero/nameless"), NULL);
        support_fail_off();
        put(out, "new");
        file_out_close(&out, NULL);
        all_closed = all_closed && fcntl(0, F_GETFD) < 0;
        support_fail_open_at(named);
        file_out_open(&dropped, support_path("zero/dropped"), NULL);
        support_fail_off();
        file_out_abort(&dropped);
        all_closed = all_closed && fcntl(0, F_GETFD) < 0;
    }
    if (kept >= 0) {
        assert_int_equal(dup2(kept, 0), 0);
        __real_close(kept);
    }
    assert_true(all_closed);
    support_assert_content(support_path("zero/named"), "new");
    support_assert_content(support_path("zero/nameless"), "new");
    assert_int_equal(support_count_files(folder), 2);
}

static void an_interrupted_write_goes_on(void **state)
{
    (void)state;
    support_fresh_folder("again");
    const char *path = support_path("again/file");
    struct file_out *out = open_out(path);
    support_fail_write_at(1);
    support_fail_with(EINTR);
    put(out, "new");
    assert_true(support_failed());
    support_fail_off();
    assert_int_equal(file_out_write(out, "x", 0, NULL), UTTER_OK); /* no byte, no call */
    assert_int_equal(file_out_close(&out, NULL), UTTER_OK);
    support_assert_content(path, "new");
}

/* A write that moves nothing would be tried for ever; it is the disk's fault. */
static void a_write_of_nothing_is_a_failure(void **state)
{
    (void)state;
    support_fresh_folder("nothing");
    utter_error error;
    struct file_out *out = open_out(support_path("nothing/file"));
    support_fail_write_at(1);
    support_fail_with(SUPPORT_MOVES_NOTHING);
    errno = EINTR;
    assert_int_equal(file_out_write(out, "a", 1, &error), UTTER_E_IO);
    support_fail_off();
    assert_non_null(strstr(error.text, "cannot write: Input/output error"));
    assert_int_equal(file_out_close(&out, &error), UTTER_E_IO);
    assert_non_null(strstr(error.text, "cannot write: Input/output error"));
}

/* Whatever fails later, the close tells what failed first; each is a failure of the machine. */
static void the_first_failure_is_remembered(void **state)
{
    (void)state;
    const char *folder = support_fresh_folder("first");
    utter_error error;
    struct file_out *out = open_out(support_path("first/file"));
    static const int reasons[] = {EPERM, EDQUOT};
    for (int i = 0; i < 2; i++) {
        support_fail_write_at(1);
        support_fail_with(reasons[i]);
        assert_int_equal(file_out_write(out, "a", 1, &error), UTTER_E_IO);
        assert_int_equal(error.code, UTTER_E_IO);
        assert_non_null(strstr(error.text, strerror(reasons[i])));
    }
    support_fail_off();
    const long n_syncs = support_calls(SUPPORT_FSYNC);
    assert_int_equal(file_out_close(&out, &error), UTTER_E_IO);
    assert_int_equal(error.code, UTTER_E_IO);
    assert_non_null(strstr(error.text, "first/file: cannot write: Operation not permitted"));
    assert_int_equal(support_calls(SUPPORT_FSYNC), n_syncs); /* nothing of it need be kept */
    assert_int_equal(support_count_files(folder), 0);
}

static void a_failed_rename_or_close_leaves_the_old(void **state)
{
    (void)state;
    const char *folder = support_fresh_folder("old"), *path = support_path("old/file");
    for (int named = 0; named < 2; named++) {
        for (int i = 0; i < 4; i++) {
            support_write_file(path, "old", 3);
            utter_error error = {.text = ""};
            struct file_out *out = named ? open_named(path) : open_out(path);
            put(out, "new");
            if (i == 0) {
                support_fail_rename_at(1);
            } else if (i == 1) {
                support_fail_fsync_at(1);
            } else {
                posed.close_reason =
                    i == 2 ? EDQUOT : EINTR; /* interrupted, it is closed all the same */
            }
            const utter_status status = file_out_close(&out, &error);
            as_ever(NULL);
            static const int reasons[] = {EACCES, EIO, EDQUOT, 0};
            assert_int_equal(status, reasons[i] ? UTTER_E_IO : UTTER_OK);
            if (reasons[i]) {
                assert_int_equal(error.code, UTTER_E_IO);
                assert_non_null(strstr(error.text, strerror(reasons[i])));
            }
            support_assert_content(path, reasons[i] ? "old" : "new");
            assert_int_equal(support_count_files(folder), 1);
        }
    }
}

/* ---- Patches ---- */

static void patches_stay_within_what_was_written(void **state)
{
    (void)state;
    support_fresh_folder("patch");
    const char *path = support_path("patch/file");
    utter_error error;
    struct file_out *out = open_out(path);
    put(out, "0123456789");
    assert_int_equal(file_out_patch(out, 10, "", 0, &error), UTTER_OK);
    assert_int_equal(file_out_patch(out, 11, "", 0, &error), UTTER_E_INTERNAL);
    assert_int_equal(file_out_patch(out, 9, "xy", 2, &error), UTTER_E_INTERNAL);
    assert_non_null(strstr(error.text, "cannot overwrite bytes that were never written"));
    assert_int_equal(file_out_patch(out, 8, "IX", 2, &error), UTTER_OK);
    posed.pwrite_most = 3;
    posed.pwrite_reason = EINTR;
    posed.n_pwrite_fails = 1;
    posed.n_pwrites = 0;
    assert_int_equal(file_out_patch(out, 0, "abcdefg", 7, &error), UTTER_OK);
    assert_int_equal(posed.n_pwrites, 4); /* an interrupted one, and 3 + 3 + 1 bytes */
    put(out, "!");
    assert_int_equal(file_out_close(&out, &error), UTTER_OK);
    support_assert_content(path, "abcdefg7IX!");
}

static void a_failed_patch_is_a_failed_write(void **state)
{
    (void)state;
    const char *folder = support_fresh_folder("unpatched");
    static const struct {
        int reason, told;
    } cases[] = {{ENOSPC, ENOSPC}, {SUPPORT_MOVES_NOTHING, EIO}, {EAGAIN, EAGAIN}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        utter_error error;
        as_ever(NULL);
        struct file_out *out = open_out(support_path("unpatched/file"));
        put(out, "0123456789");
        posed.pwrite_reason = cases[i].reason;
        posed.n_pwrite_fails = 1;
        errno = EINTR; /* of a call before, which means nothing */
        assert_int_equal(file_out_patch(out, 0, "abc", 3, &error), UTTER_E_IO);
        assert_non_null(strstr(error.text, strerror(cases[i].told)));
        assert_int_equal(posed.n_pwrites, 1);
        assert_int_equal(file_out_close(&out, &error), UTTER_E_IO);
        assert_non_null(strstr(error.text, strerror(cases[i].told)));
        assert_int_equal(support_count_files(folder), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_hidden_name_that_is_taken_is_drawn_again, as_ever, as_ever),
        cmocka_unit_test_setup_teardown(
            a_hidden_name_is_hidden_and_of_sixteen_digits, as_ever, as_ever),
        cmocka_unit_test_setup_teardown(a_name_that_cannot_be_drawn_fails, as_ever, as_ever),
        cmocka_unit_test_setup_teardown(a_file_that_gets_no_name_is_gone, as_ever, as_ever),
        cmocka_unit_test_setup_teardown(without_proc_the_file_is_named, as_ever, as_ever),
        cmocka_unit_test_setup_teardown(what_may_not_be_written_is_not_replaced, as_ever, as_ever),
        cmocka_unit_test_setup_teardown(a_new_file_runs_as_nobody, as_ever, as_ever),
        cmocka_unit_test_setup_teardown(forty_links_are_followed, as_ever, as_ever),
        cmocka_unit_test_setup_teardown(a_link_leads_from_where_it_is, as_ever, as_ever),
        cmocka_unit_test_setup_teardown(what_is_not_opened_closes_nothing, as_ever, as_ever),
        cmocka_unit_test_setup_teardown(the_first_descriptor_is_written_too, as_ever, as_ever),
        cmocka_unit_test_setup_teardown(an_interrupted_write_goes_on, as_ever, as_ever),
        cmocka_unit_test_setup_teardown(a_write_of_nothing_is_a_failure, as_ever, as_ever),
        cmocka_unit_test_setup_teardown(the_first_failure_is_remembered, as_ever, as_ever),
        cmocka_unit_test_setup_teardown(a_failed_rename_or_close_leaves_the_old, as_ever, as_ever),
        cmocka_unit_test_setup_teardown(patches_stay_within_what_was_written, as_ever, as_ever),
        cmocka_unit_test_setup_teardown(a_failed_patch_is_a_failed_write, as_ever, as_ever),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
