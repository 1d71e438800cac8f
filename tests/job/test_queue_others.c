/* SPDX-License-Identifier: Apache-2.0
 * What others do to a queue that is a folder: lines without a key, halves of segments, files that go while they are
 * looked at, and a folder that is deleted. */
#include "tests/job/beside_queue.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void a_line_without_a_key_fails(void **state)
{
    (void)state;
    static const char digits[] = "0123456789abcdef";
    char key[IDENTITY_SIZE], wire[256], wrong[256];
    make_line(key, wire, 1, "");
    const size_t n = strlen(wire);
    assert_ptr_equal(queue_line_key(wire, n), wire + 8);
    assert_ptr_equal(queue_line_key(wire, 8 + IDENTITY_SIZE + 1), wire + 8);
    assert_null(queue_line_key(wire, 8 + IDENTITY_SIZE - 1));
    for (size_t i = 0; i <= 8 + IDENTITY_SIZE - 1; i++) {
        memcpy(wrong, wire, n + 1);
        wrong[i] = 'G';
        assert_null(queue_line_key(wrong, n));
        if (i >= 8 && i < 8 + IDENTITY_SIZE - 1) {
            for (size_t k = 0; k < 16; k++) {
                wrong[i] = digits[k];
                assert_ptr_equal(queue_line_key(wrong, n), wrong + 8);
            }
        }
    }
    struct queue *in = open_queue("keyless", true), *queue = open_queue("keyless", false);
    struct claim one, none;
    assert_int_equal(in->calls->begin(in, name, NULL), UTTER_OK);
    assert_int_equal(in->calls->put(in, key, "{\"key\":\"../../../../etc/passwd\"}", NULL), UTTER_OK);
    put(in, 2);
    assert_int_equal(in->calls->flush(in, NULL), UTTER_OK);
    assert_claimed(queue, &one, 2);
    assert_int_equal(queue->calls->done(queue, &one, false, NULL), UTTER_OK);
    assert_int_equal(claim(queue, &none), UTTER_AGAIN);
    assert_counts(queue, 0, 0, 1, 1);
    queue_close(&queue);
    queue_close(&in);
}

static void what_lacks_its_other_half_is_no_line(void **state)
{
    (void)state;
    struct claim one, none;
    char lines[PATH_MAX], states[PATH_MAX];
    struct queue *in = submit("halves", 1, 2);
    queue_close(&in);
    snprintf(lines, sizeof lines, "%s", only_file("halves", ".lines"));
    snprintf(states, sizeof states, "%s", only_file("halves", ".state"));
    /* Names that are none of a segment. */
    support_write_file(support_path("halves/.hidden.lines"), "x\n", 2);
    support_write_file(support_path("halves/.lines"), "x\n", 2);
    char longest[128], path[256];
    memset(longest, 'l', sizeof longest);
    snprintf(path, sizeof path, "halves/%.64s.lines", longest);
    support_write_file(support_path(path), "x\n", 2);
    struct queue *queue = open_queue("halves", false);
    assert_int_equal(rename(states, support_path("halves/kept")), 0);
    assert_int_equal(claim(queue, &none), UTTER_AGAIN);
    assert_counts(queue, 0, 0, 0, 0);
    assert_int_equal(rename(support_path("halves/kept"), states), 0);
    assert_int_equal(rename(lines, support_path("halves/kept")), 0);
    assert_int_equal(claim(queue, &none), UTTER_AGAIN);
    assert_counts(queue, 0, 0, 0, 0);
    assert_int_equal(rename(support_path("halves/kept"), lines), 0);
    assert_counts(queue, 2, 0, 0, 0);
    assert_claimed(queue, &one, 1);
    /* States that are too short for the lines are an error, not a crash. */
    assert_int_equal(truncate(states, 4), 0);
    utter_error error;
    queue_close(&queue);
    queue = open_queue("halves", false);
    assert_int_equal(queue->calls->claim(queue, &one, &error), UTTER_E_IO);
    assert_int_equal(truncate(states, 8), 0);
    /* A last line that was cut is none. */
    size_t n;
    char *text = support_read_file(lines, &n);
    assert_int_equal(truncate(lines, (off_t)n - 1), 0);
    free(text);
    queue_close(&queue);
    queue = open_queue("halves", false);
    assert_claimed(queue, &one, 1);
    assert_int_equal(claim(queue, &none), UTTER_AGAIN);
    queue_close(&queue);
    /* Nor is it thrown away where it is the only one. */
    assert_int_equal(truncate(lines, 1), 0);
    queue = open_queue("halves", false);
    assert_int_equal(claim(queue, &none), UTTER_AGAIN);
    assert_int_equal(claim(queue, &none), UTTER_AGAIN);
    assert_int_equal(access(lines, F_OK), 0);
    queue_close(&queue);
}

/* A worker that stays for days has no more open than what it has claimed, and what it reads. */
static void a_segment_is_closed_behind_its_last_claim(void **state)
{
    (void)state;
    static const char fds[] = "/proc/self/fd";
    struct claim one, two, none;
    struct queue *in = submit("closed", 1, 2), *queue = open_queue("closed", false);
    queue_close(&in);
    const int before = support_count_files(fds);
    assert_claimed(queue, &one, 1);
    assert_claimed(queue, &two, 2);
    assert_int_equal(support_count_files(fds), before + 2);
    assert_int_equal(claim(queue, &none), UTTER_AGAIN);
    assert_int_equal(support_count_files(fds), before + 2);
    assert_int_equal(queue->calls->done(queue, &one, false, NULL), UTTER_OK);
    assert_int_equal(support_count_files(fds), before + 2);
    assert_int_equal(queue->calls->done(queue, &two, false, NULL), UTTER_OK);
    assert_int_equal(support_count_files(fds), before);
    /* The one that it reads stays, also without a claim. */
    in = submit("closed", 3, 4);
    queue_close(&in);
    assert_claimed(queue, &one, 3);
    assert_int_equal(queue->calls->done(queue, &one, false, NULL), UTTER_OK);
    assert_int_equal(support_count_files(fds), before + 2);
    assert_claimed(queue, &two, 4);
    queue_close(&queue);
    assert_int_equal(support_count_files(fds), before - 1); /* nor its lock */
}

static char going[PATH_MAX];

static void it_goes(void)
{
    unlink(going);
}

/* Behind the list in which it stood. */
static void a_segment_may_go_before_it_is_opened(void **state)
{
    (void)state;
    static const char *const endings[] = {".state", ".lines"};
    for (int i = 0; i < 2; i++) {
        struct claim one;
        utter_error error;
        const char *folder = i ? "goes1" : "goes0";
        struct queue *in = submit(folder, 1, 1), *queue = open_queue(folder, false);
        queue_close(&in);
        snprintf(going, sizeof going, "%s", only_file(folder, endings[i]));
        support_fail_open_at(i + 1);
        support_fail_with(EACCES);
        assert_true(queue->calls->claim(queue, &one, &error) < 0);
        assert_non_null(strstr(error.text, going));
        support_happens_at(SUPPORT_OPEN, i + 1, it_goes);
        assert_int_equal(claim(queue, &one), UTTER_AGAIN);
        assert_true(support_failed());
        support_fail_off();
        queue_close(&queue);
    }
}

static void segments_come_in_the_order_of_their_names(void **state)
{
    (void)state;
    enum { N = 150 };
    struct folder_queue q = {0};
    struct segment_names names;
    char file[32], wanted[32];
    snprintf(q.folder, sizeof q.folder, "%s", support_fresh_folder("names"));
    for (int i = 0; i < N; i++) {
        snprintf(file, sizeof file, "names/%03d-s.lines", i * 7 % N);
        support_write_file(support_path(file), "", 0);
    }
    assert_int_equal(names_list(&names, &q, ".lines", NULL), UTTER_OK);
    assert_int_equal(names.n, N);
    for (int i = 0; i < N; i++) {
        snprintf(wanted, sizeof wanted, "%03d-s", i);
        assert_string_equal(names.names[i], wanted);
    }
    names_free(&names);
    assert_true(!names.names && names.n == 0);
    /* A name has 63 bytes at most, and is none without any. */
    char longest[80] = "names/";
    memset(longest + 6, 'l', 64);
    strcpy(longest + 6 + 64, ".state");
    support_write_file(support_path(longest), "", 0);
    assert_int_equal(names_list(&names, &q, ".state", NULL), UTTER_OK);
    assert_int_equal(names.n, 0);
    support_write_file(support_path("names/.state"), "", 0);
    support_write_file(support_path("names/x.state.x"), "", 0);
    strcpy(longest + 6 + 63, ".state");
    support_write_file(support_path(longest), "", 0);
    assert_int_equal(names_list(&names, &q, ".state", NULL), UTTER_OK);
    assert_int_equal(names.n, 1);
    assert_int_equal(strlen(names.names[0]), 63);
    names_free(&names);
}

/* From here on the states of the segment at hand can only be read, or only be written. */
static void open_states(struct queue *queue, const char *folder, int how)
{
    int fd = open(only_file(folder, ".state"), how | O_CLOEXEC);
    assert_int_equal(dup2(fd, ((struct folder_queue *)queue)->current->state),
        ((struct folder_queue *)queue)->current->state);
    close(fd);
}

static void assert_told(const utter_error *error, const char *folder, const char *what, const char *why)
{
    char wanted[PATH_MAX + 64];
    snprintf(wanted, sizeof wanted, "%s: cannot %s: %s", support_path(folder), what, why);
    assert_string_equal(error->text, wanted);
}

static void states_that_cannot_be_kept_are_told(void **state)
{
    (void)state;
    struct claim one, two;
    utter_error error;
    struct queue *in = submit("kept", 1, 3), *queue = open_queue("kept", false);
    queue_close(&in);
    assert_claimed(queue, &one, 1);
    open_states(queue, "kept", O_RDONLY);
    assert_int_equal(queue->calls->done(queue, &one, false, &error), UTTER_E_FILE);
    assert_told(&error, "kept", "write", "Bad file descriptor");
    assert_null(one.place);
    assert_int_equal(queue->calls->claim(queue, &two, &error), UTTER_E_FILE);
    assert_told(&error, "kept", "lock in", "Bad file descriptor");
    queue_close(&queue);
    queue = open_queue("kept", false);
    assert_claimed(queue, &one, 1); /* its end was not written */
    open_states(queue, "kept", O_WRONLY);
    assert_int_equal(queue->calls->claim(queue, &two, &error), UTTER_E_FILE);
    assert_told(&error, "kept", "read", "Bad file descriptor");
    assert_int_equal(queue->calls->done(queue, &one, false, &error), UTTER_OK);
    queue_close(&queue);
}

static void what_is_too_large_is_no_segment(void **state)
{
    (void)state;
    struct claim one;
    utter_error error;
    struct queue *in = submit("large", 1, 1), *queue = open_queue("large", false);
    queue_close(&in);
    const char *lines = only_file("large", ".lines");
    assert_int_equal(truncate(lines, SEGMENT_BYTES + 1), 0);
    assert_int_equal(queue->calls->claim(queue, &one, &error), UTTER_E_FILE);
    assert_non_null(strstr(error.text, "-000000.lines: is no part of a queue"));
    assert_int_equal(truncate(lines, SEGMENT_BYTES), 0);
    assert_claimed(queue, &one, 1);
    queue_close(&queue);
}

/* A byte each: they do not begin anew. */
static void tries_and_deaths_are_255_at_most(void **state)
{
    (void)state;
    struct claim one;
    struct queue *in = submit("most", 1, 1), *queue = open_queue("most", false);
    queue_close(&in);
    const char *states = only_file("most", ".state");
    support_write_file(states, " \xff\xff", 4);
    for (int i = 0; i < 2; i++) {
        assert_claimed(queue, &one, 1);
        assert_int_equal(one.tries, 255);
        assert_int_equal(one.deaths, 255);
        assert_int_equal(queue->calls->back(queue, &one, true, NULL), UTTER_OK);
        support_assert_content(states, " \xff\xff");
    }
    assert_claimed(queue, &one, 1);
    one.deaths++; /* a worker that fails counts one more */
    assert_int_equal(queue->calls->back(queue, &one, false, NULL), UTTER_OK);
    support_assert_content(states, " \xff\xff");
    queue_close(&queue);
}

/* ---- Many lines, and blocks of them ---- */

/* `n` bytes of what repeats itself, as a file. */
static void write_again_and_again(const char *path, const char *unit, size_t n)
{
    const size_t bytes = strlen(unit);
    char *all = malloc(n * bytes);
    assert_non_null(all);
    for (size_t i = 0; i < n; i++) {
        memcpy(all + i * bytes, unit, bytes);
    }
    support_write_file(path, all, n * bytes);
    free(all);
}

/* States are read 1,024 at a time. */
static void a_line_far_behind_is_claimed(void **state)
{
    (void)state;
    enum { N = 2100 };
    static char states[4 * N];
    static const size_t waiting[] = {1023, 1024, 1025, 2047, 2048, 2099};
    enum { N_WAITING = sizeof waiting / sizeof *waiting };
    struct claim claims[N_WAITING], none;
    struct queue *in = submit("behind", 0, N - 1), *queue = open_queue("behind", false);
    queue_close(&in);
    for (size_t i = 0; i < N; i++) {
        memcpy(states + 4 * i, "d\0\0", 4);
    }
    for (size_t i = 0; i < N_WAITING; i++) {
        states[4 * waiting[i]] = ' ';
    }
    support_write_file(only_file("behind", ".state"), states, sizeof states);
    assert_counts(queue, N_WAITING, 0, N - N_WAITING, 0);
    for (size_t i = 0; i < N_WAITING; i++) {
        assert_claimed(queue, &claims[i], (unsigned)waiting[i]);
        assert_int_equal(claims[i].record, waiting[i]);
    }
    assert_int_equal(claim(queue, &none), UTTER_AGAIN);
    for (size_t i = 0; i < N_WAITING; i++) {
        assert_int_equal(queue->calls->done(queue, &claims[i], true, NULL), UTTER_OK);
    }
    assert_counts(queue, 0, 0, N - N_WAITING, N_WAITING);
    queue_close(&queue);
}

/* A segment has 32,768 lines at most; what others write behind them is none. */
static void lines_behind_the_last_are_none(void **state)
{
    (void)state;
    struct claim none;
    struct queue *queue = open_queue("more", true);
    write_again_and_again(support_path("more/0-0-0.lines"), "x\n", SEGMENT_LINES + 1);
    write_again_and_again(support_path("more/0-0-0.state"), "    ", SEGMENT_LINES + 1);
    assert_int_equal(claim(queue, &none), UTTER_AGAIN);
    assert_counts(queue, 1, 0, 0, SEGMENT_LINES);
    assert_int_equal(claim(queue, &none), UTTER_AGAIN); /* nobody waits for it */
    assert_counts(queue, 0, 0, 0, SEGMENT_LINES);
    queue_close(&queue);
}

/* ---- Locks ---- */

/* Whether somebody holds this byte of a file. */
static bool is_locked(const char *path, off_t at)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(fcntl(fd, F_OFD_GETLK, &lock), 0);
    close(fd);
    return lock.l_type != F_UNLCK;
}

/* Workers of another version, too, keep out of each other's way: where the locks lie is the queue's format. */
static void a_claim_is_two_locks(void **state)
{
    (void)state;
    static const unsigned number = 0xabcde1;
    struct claim one;
    struct queue *in = submit("locks", number - 1, number), *queue = open_queue("locks", false);
    queue_close(&in);
    assert_claimed(queue, &one, number - 1);
    assert_int_equal(queue->calls->done(queue, &one, false, NULL), UTTER_OK);
    const char *states = only_file("locks", ".state"), *making = support_path("locks/making");
    assert_claimed(queue, &one, number);
    for (int ended = 0; ended < 2; ended++) {
        for (int away = -4; away <= 4; away++) {
            assert_int_equal(is_locked(states, 4 + away), away == 0 && !ended);
            assert_int_equal(is_locked(making, (off_t)number + away), away == 0 && !ended);
        }
        if (!ended) {
            assert_int_equal(queue->calls->back(queue, &one, false, NULL), UTTER_OK);
        }
    }
    queue_close(&queue);
}

/* More than there are lines that wait are not claimed, whatever else is locked. */
static void foreign_locks_are_not_counted_twice(void **state)
{
    (void)state;
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    struct queue *in = submit("foreign", 1, 3);
    int fd = open(only_file("foreign", ".state"), O_RDWR | O_CLOEXEC);
    assert_int_equal(fcntl(fd, F_OFD_SETLK, &all), 0);
    assert_counts(in, 0, 3, 0, 0);
    close(fd);
    assert_counts(in, 3, 0, 0, 0);
    queue_close(&in);
}

static void a_claim_without_memory_is_left_to_others(void **state)
{
    (void)state;
    struct claim one, two, none;
    utter_error error;
    struct queue *in = submit("left", 1, 2);
    struct queue *a = open_queue("left", false), *b = open_queue("left", false);
    queue_close(&in);
    assert_claimed(a, &one, 1);
    support_fail_malloc_at(1);
    assert_int_equal(a->calls->claim(a, &two, &error), UTTER_E_MEMORY);
    support_fail_off();
    assert_counts(a, 1, 1, 0, 0);
    assert_claimed(b, &two, 2);
    assert_int_equal(claim(a, &none), UTTER_AGAIN);
    queue_close(&b);
    assert_claimed(a, &two, 2);
    queue_close(&a);
}

/* ---- Counts that fail, and ends ---- */

static void what_cannot_be_counted_is_told(void **state)
{
    (void)state;
    struct queue_counts counts;
    utter_error error;
    char wanted[PATH_MAX + 64];
    struct queue *in = submit("uncounted", 1, 1);
    const char *states = only_file("uncounted", ".state");
    support_fail_open_at(1);
    assert_int_equal(in->calls->count(in, &counts, &error), UTTER_E_FILE);
    snprintf(wanted, sizeof wanted, "%s: cannot open: Permission denied", states);
    assert_memory_equal(error.text, wanted, strlen(wanted));
    support_fail_read_at(1);
    assert_int_equal(in->calls->count(in, &counts, &error), UTTER_E_IO);
    snprintf(wanted, sizeof wanted, "%s: cannot read: Input/output error", states);
    assert_string_equal(error.text, wanted);
    support_happens_at(SUPPORT_OPEN, 1, it_goes); /* and is none of the queue any more */
    snprintf(going, sizeof going, "%s", states);
    assert_counts(in, 0, 0, 0, 0);
    support_fail_off();
    queue_close(&in);
}

static void a_queue_ends_also_without_its_states(void **state)
{
    (void)state;
    struct claim one, two;
    struct queue *in = submit("stateless", 1, 2), *queue = open_queue("stateless", false);
    queue_close(&in);
    const int before = support_count_files("/proc/self/fd");
    assert_claimed(queue, &one, 1);
    assert_claimed(queue, &two, 2);
    assert_int_equal(truncate(only_file("stateless", ".state"), 0), 0);
    queue_close(&queue);
    support_assert_content(only_file("stateless", ".state"), "");
    assert_int_equal(support_count_files("/proc/self/fd"), before - 1); /* nor "making" */
    /* Then nothing can be claimed, for a reason that is not that of another call. */
    utter_error error;
    queue = open_queue("stateless", false);
    errno = ENOENT;
    assert_int_equal(queue->calls->claim(queue, &one, &error), UTTER_E_IO);
    assert_told(&error, "stateless", "read", "Input/output error");
    queue_close(&queue);
}

/* ---- The folder ---- */

static int mode_of(const char *path)
{
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    return (int)(about.st_mode & ~(mode_t)S_IFMT);
}

/* Others may work there as the user lets them; who is started beside it keeps no lock of it. */
static void what_is_open_is_no_childs(void **state)
{
    (void)state;
    struct claim one;
    const mode_t before = umask(0);
    struct queue *in = submit("own", 1, 1), *queue = open_queue("own", false);
    umask(before);
    assert_int_equal(mode_of(support_path("own/making")), 0666);
    assert_int_equal(mode_of(support_path("own/submitting")), 0666);
    assert_claimed(queue, &one, 1);
    const struct folder_queue *q = (struct folder_queue *)queue;
    const int open[] = {((struct folder_queue *)in)->submitting, q->making, q->current->state,
        q->current->lines.descriptor};
    for (size_t i = 0; i < sizeof open / sizeof *open; i++) {
        assert_int_equal(fcntl(open[i], F_GETFD), FD_CLOEXEC);
    }
    queue_close(&in);
    queue_close(&queue);
}

static void a_queue_that_is_deleted_is_empty(void **state)
{
    (void)state;
    struct claim one, none;
    struct queue *in = submit("deleted", 1, 2), *queue = open_queue("deleted", false);
    char command[PATH_MAX + 16];
    queue_close(&in);
    const int before = support_count_files("/proc/self/fd") - 1; /* but for "making" */
    assert_claimed(queue, &one, 1);
    snprintf(command, sizeof command, "rm -r %s", support_path("deleted"));
    assert_int_equal(system(command), 0);
    assert_int_equal(claim(queue, &none), UTTER_AGAIN);
    assert_counts(queue, 0, 0, 0, 0);
    assert_int_equal(queue->calls->done(queue, &one, false, NULL), UTTER_OK);
    in = submit("deleted", 7, 7);
    queue_close(&in);
    struct queue *other = open_queue("deleted", false);
    assert_claimed(queue, &one, 7);
    assert_int_equal(claim(other, &none), UTTER_AGAIN);
    assert_int_equal(queue->calls->back(queue, &one, false, NULL), UTTER_OK);
    assert_claimed(other, &one, 7);
    queue_close(&other);
    /* Nothing of the one that was is open any more. */
    assert_int_equal(claim(queue, &one), UTTER_OK);
    assert_int_equal(support_count_files("/proc/self/fd"), before + 3);
    queue_close(&queue);
    assert_int_equal(support_count_files("/proc/self/fd"), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_without_a_key_fails),
        cmocka_unit_test(what_lacks_its_other_half_is_no_line),
        cmocka_unit_test(a_segment_is_closed_behind_its_last_claim),
        cmocka_unit_test(a_segment_may_go_before_it_is_opened),
        cmocka_unit_test(segments_come_in_the_order_of_their_names),
        cmocka_unit_test(states_that_cannot_be_kept_are_told),
        cmocka_unit_test(what_is_too_large_is_no_segment),
        cmocka_unit_test(tries_and_deaths_are_255_at_most),
        cmocka_unit_test(a_line_far_behind_is_claimed),
        cmocka_unit_test(lines_behind_the_last_are_none),
        cmocka_unit_test(a_claim_is_two_locks),
        cmocka_unit_test(foreign_locks_are_not_counted_twice),
        cmocka_unit_test(a_claim_without_memory_is_left_to_others),
        cmocka_unit_test(what_cannot_be_counted_is_told),
        cmocka_unit_test(a_queue_ends_also_without_its_states),
        cmocka_unit_test(what_is_open_is_no_childs),
        cmocka_unit_test(a_queue_that_is_deleted_is_empty),
    };
    return cmocka_run_group_tests_name("queue_others", tests, NULL, NULL);
}
