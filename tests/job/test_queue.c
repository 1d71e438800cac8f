/* SPDX-License-Identifier: Apache-2.0
 * A queue that is a folder: what waits, whose it is, what became of it, and what a death leaves behind. */
#include "tests/job/beside_queue.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"

/* ---- Lines in, lines out ---- */

static void lines_are_claimed_in_their_order_and_end(void **state)
{
    (void)state;
    struct claim claims[4];
    struct queue *in = submit("order", 1, 4), *queue = open_queue("order", false);
    queue_close(&in);
    assert_null(in);
    queue_close(&in);
    assert_counts(queue, 4, 0, 0, 0);
    for (unsigned i = 0; i < 4; i++) {
        assert_claimed(queue, &claims[i], i + 1);
        assert_int_equal(claims[i].tries, 0);
        assert_int_equal(claims[i].deaths, 0);
        assert_counts(queue, 3 - i, i + 1, 0, 0);
    }
    struct claim none;
    assert_int_equal(claim(queue, &none), UTTER_AGAIN);
    assert_int_equal(queue->calls->extend(queue, &claims[0], NULL), UTTER_OK);
    assert_int_equal(queue->calls->done(queue, &claims[1], false, NULL), UTTER_OK);
    assert_null(claims[1].place);
    assert_null(claims[1].wire);
    assert_counts(queue, 0, 3, 1, 0);
    assert_int_equal(queue->calls->done(queue, &claims[0], true, NULL), UTTER_OK);
    assert_counts(queue, 0, 2, 1, 1);
    assert_int_equal(queue->calls->back(queue, &claims[3], false, NULL), UTTER_OK);
    assert_counts(queue, 1, 1, 1, 1);
    assert_claimed(queue, &claims[3], 4);
    /* The segment that it left is read on until the last claim of it ends. */
    assert_memory_equal(claims[2].wire, "{\"key\":\"", 8);
    assert_int_equal(queue->calls->done(queue, &claims[2], false, NULL), UTTER_OK);
    assert_int_equal(queue->calls->done(queue, &claims[3], false, NULL), UTTER_OK);
    assert_counts(queue, 0, 0, 3, 1);
    assert_int_equal(claim(queue, &none), UTTER_AGAIN);
    queue_close(&queue);
}

static void the_lines_go_when_all_have_ended_and_the_counts_stay(void **state)
{
    (void)state;
    struct claim one, two, none;
    struct queue *in = submit("ended", 1, 2), *queue = open_queue("ended", false);
    queue_close(&in);
    assert_claimed(queue, &one, 1);
    assert_claimed(queue, &two, 2);
    assert_int_equal(queue->calls->done(queue, &one, false, NULL), UTTER_OK);
    assert_int_equal(claim(queue, &none), UTTER_AGAIN);
    const char *lines = only_file("ended", ".lines");
    assert_int_equal(queue->calls->done(queue, &two, true, NULL), UTTER_OK);
    assert_int_equal(access(lines, F_OK), 0);
    assert_int_equal(claim(queue, &none), UTTER_AGAIN);
    assert_int_equal(claim(queue, &none), UTTER_AGAIN);
    assert_int_not_equal(access(lines, F_OK), 0);
    assert_counts(queue, 0, 0, 1, 1);
    size_t n;
    char *records = support_read_file(only_file("ended", ".state"), &n);
    assert_int_equal(n, 8);
    assert_memory_equal(records, "d\0\0\0f\0\0", 8);
    free(records);
    queue_close(&queue);
}

static void tries_and_deaths_are_counted(void **state)
{
    (void)state;
    struct claim one;
    struct queue *in = submit("tries", 1, 1), *queue = open_queue("tries", false);
    queue_close(&in);
    assert_claimed(queue, &one, 1);
    assert_int_equal(queue->calls->back(queue, &one, true, NULL), UTTER_OK);
    assert_claimed(queue, &one, 1);
    assert_int_equal(one.tries, 1);
    assert_int_equal(one.deaths, 0);
    assert_int_equal(queue->calls->back(queue, &one, false, NULL), UTTER_OK);
    assert_claimed(queue, &one, 1);
    assert_int_equal(one.tries, 1);
    one.deaths = 3;
    assert_int_equal(queue->calls->back(queue, &one, true, NULL), UTTER_OK);
    assert_claimed(queue, &one, 1);
    assert_int_equal(one.tries, 2);
    assert_int_equal(one.deaths, 3);
    /* Neither count leaves its byte. */
    one.tries = 255;
    one.deaths = 1000;
    assert_int_equal(queue->calls->back(queue, &one, true, NULL), UTTER_OK);
    assert_claimed(queue, &one, 1);
    assert_int_equal(one.tries, 255);
    assert_int_equal(one.deaths, 255);
    assert_int_equal(queue->calls->back(queue, &one, false, NULL), UTTER_OK);
    queue_close(&queue);
}

/* A process that ends with a claim counts as a death; one that closes its queue does not. */
static void who_dies_gives_its_lines_back(void **state)
{
    (void)state;
    struct claim one, none;
    struct queue *in = submit("death", 1, 1), *queue = open_queue("death", false);
    queue_close(&in);
    for (int deaths = 0; deaths < 3; deaths++) {
        pid_t child = fork();
        if (child == 0) {
            struct queue *own;
            bool good = queue_open(&own, support_path("death"), false, NULL) == UTTER_OK &&
                        own->calls->claim(own, &one, NULL) == UTTER_OK && one.deaths == deaths;
            _exit(good ? 0 : 1);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    assert_claimed(queue, &one, 1);
    assert_int_equal(one.deaths, 3);
    assert_int_equal(one.tries, 0);
    queue_close(&queue);
    queue = open_queue("death", false);
    assert_claimed(queue, &one, 1);
    assert_int_equal(one.deaths, 3);
    assert_int_equal(claim(queue, &none), UTTER_AGAIN);
    queue_close(&queue);
}

static void a_line_is_one_workers(void **state)
{
    (void)state;
    struct claim one, two, none;
    struct queue *in = submit("workers", 1, 2);
    struct queue *a = open_queue("workers", false), *b = open_queue("workers", false);
    queue_close(&in);
    assert_claimed(a, &one, 1);
    assert_claimed(b, &two, 2);
    assert_int_equal(claim(a, &none), UTTER_AGAIN);
    assert_int_equal(claim(b, &none), UTTER_AGAIN);
    assert_counts(b, 0, 2, 0, 0);
    assert_int_equal(a->calls->back(a, &one, false, NULL), UTTER_OK);
    assert_counts(a, 1, 1, 0, 0);
    assert_claimed(b, &one, 1);
    assert_int_equal(b->calls->done(b, &one, false, NULL), UTTER_OK);
    assert_int_equal(claim(a, &none), UTTER_AGAIN);
    queue_close(&b);
    assert_claimed(a, &two, 2);
    queue_close(&a);
}

/* Lines of one key are made one after the other, in whatever worker and segment they are. */
static void lines_of_one_sound_wait_for_each_other(void **state)
{
    (void)state;
    struct claim one, two, none;
    struct queue *in = open_queue("same", true);
    assert_int_equal(in->calls->begin(in, name, NULL), UTTER_OK);
    put(in, 5);
    put(in, 5);
    assert_int_equal(in->calls->flush(in, NULL), UTTER_OK);
    put(in, 5);
    assert_int_equal(in->calls->flush(in, NULL), UTTER_OK);
    queue_close(&in);
    struct queue *a = open_queue("same", false), *b = open_queue("same", false);
    assert_claimed(a, &one, 5);
    assert_int_equal(claim(a, &none), UTTER_AGAIN);
    assert_int_equal(claim(b, &none), UTTER_AGAIN);
    assert_counts(b, 2, 1, 0, 0);
    assert_int_equal(a->calls->done(a, &one, false, NULL), UTTER_OK);
    assert_claimed(b, &two, 5);
    assert_int_equal(claim(a, &none), UTTER_AGAIN);
    assert_int_equal(b->calls->back(b, &two, false, NULL), UTTER_OK);
    assert_claimed(a, &one, 5);
    assert_int_equal(a->calls->done(a, &one, false, NULL), UTTER_OK);
    assert_claimed(a, &one, 5);
    assert_int_equal(a->calls->done(a, &one, false, NULL), UTTER_OK);
    assert_int_equal(claim(b, &none), UTTER_AGAIN);
    assert_counts(b, 0, 0, 3, 0);
    queue_close(&a);
    queue_close(&b);
}

/* ---- Submissions ---- */

static void a_submission_replaces_what_waits_of_its_own(void **state)
{
    (void)state;
    struct claim one, none;
    struct queue *in = submit("again", 1, 3), *worker = open_queue("again", false);
    assert_claimed(worker, &one, 1);
    struct queue *second = open_queue("again", true);
    utter_error error;
    char wanted[PATH_MAX + 128];
    assert_int_equal(second->calls->begin(second, name, &error), UTTER_E_IO);
    snprintf(wanted, sizeof wanted,
        "%s: another utter job submit writes there (wait for it, or end it)", support_path("again"));
    assert_string_equal(error.text, wanted);
    queue_close(&second);
    queue_close(&in);
    in = submit("again", 8, 9);
    /* What is claimed of the first may be done; the rest of it is gone. */
    assert_memory_equal(one.wire, "{\"key\":\"", 8);
    assert_int_equal(worker->calls->done(worker, &one, false, NULL), UTTER_OK);
    assert_claimed(worker, &one, 8);
    assert_counts(worker, 1, 1, 0, 0);
    queue_close(&in);
    /* Another submission's lines stay beside it; their names are told apart by 16 digits. */
    in = open_queue("again", true);
    assert_int_equal(in->calls->begin(in, "0123456789abcdee", NULL), UTTER_OK);
    put(in, 20);
    assert_int_equal(in->calls->flush(in, NULL), UTTER_OK);
    assert_int_equal(in->calls->flush(in, NULL), UTTER_OK); /* nothing */
    assert_counts(in, 2, 1, 0, 0);
    queue_close(&in);
    assert_int_equal(worker->calls->done(worker, &one, false, NULL), UTTER_OK);
    assert_claimed(worker, &one, 9);
    assert_int_equal(worker->calls->done(worker, &one, false, NULL), UTTER_OK);
    assert_claimed(worker, &one, 20);
    assert_int_equal(worker->calls->done(worker, &one, false, NULL), UTTER_OK);
    assert_int_equal(claim(worker, &none), UTTER_AGAIN);
    queue_close(&worker);
}

static void a_segment_has_as_many_lines_as_it_may(void **state)
{
    (void)state;
    struct queue *in = submit("many", 1, SEGMENT_LINES);
    struct folder_queue *q = (struct folder_queue *)in;
    assert_int_equal(q->number, 1);
    for (unsigned i = 1; i <= SEGMENT_LINES; i++) {
        put(in, i);
    }
    assert_int_equal(q->number, 1);
    assert_int_equal(q->n_records, SEGMENT_LINES);
    put(in, 7);
    assert_int_equal(q->number, 2);
    assert_int_equal(q->n_records, 1);
    assert_counts(in, 2 * SEGMENT_LINES, 0, 0, 0);
    queue_close(&in);
    struct claim one;
    struct queue *queue = open_queue("many", false);
    assert_claimed(queue, &one, 1);
    const struct segment *full = ((struct folder_queue *)queue)->current;
    assert_int_equal(full->n, SEGMENT_LINES);
    assert_int_equal(full->starts[SEGMENT_LINES], full->lines.size);
    queue_close(&queue);
}

static void a_segment_has_as_many_bytes_as_it_may(void **state)
{
    (void)state;
    struct queue *in = open_queue("bytes", true);
    struct folder_queue *q = (struct folder_queue *)in;
    enum { LONG = SEGMENT_BYTES - 1 };
    char *wire = malloc(LONG + 1), key[IDENTITY_SIZE], begin[256];
    assert_non_null(wire);
    make_line(key, begin, 1, "");
    memset(wire, 'x', LONG);
    memcpy(wire, begin, strlen(begin) - 2);
    wire[LONG] = 0;
    assert_int_equal(in->calls->begin(in, name, NULL), UTTER_OK);
    assert_int_equal(in->calls->put(in, key, wire, NULL), UTTER_OK);
    assert_int_equal(q->n_bytes, SEGMENT_BYTES);
    assert_int_equal(q->number, 0);
    put(in, 2);
    assert_int_equal(q->number, 1);
    assert_int_equal(in->calls->flush(in, NULL), UTTER_OK);
    assert_int_equal(q->number, 2);
    put(in, 3); /* a byte more than there would be room for behind it */
    const size_t short_bytes = q->n_bytes;
    assert_int_equal(in->calls->put(in, key, wire + short_bytes - 1, NULL), UTTER_OK);
    assert_int_equal(q->number, 3);
    assert_int_equal(in->calls->flush(in, NULL), UTTER_OK);
    queue_close(&in);
    struct queue *queue = open_queue("bytes", false);
    struct claim one, two;
    assert_int_equal(claim(queue, &one), UTTER_OK);
    assert_int_equal(one.bytes, LONG);
    assert_memory_equal(one.wire, wire, LONG);
    assert_claimed(queue, &two, 2);
    queue_close(&queue);
    free(wire);
}

/* ---- Addresses, and what fails ---- */

static void an_address_is_a_folder_or_a_server(void **state)
{
    (void)state;
    struct queue *queue = (struct queue *)&queue;
    utter_error error;
    char wanted[PATH_MAX + 128], longest[PATH_MAX];
    assert_int_equal(queue_open(&queue, "http://host", true, &error), UTTER_E_ARGUMENT);
    assert_null(queue);
    assert_string_equal(error.text, "--queue http://host: is no folder and no nats://HOST");
    assert_int_equal(queue_open(&queue, support_path("no/such"), false, &error), UTTER_E_FILE);
    snprintf(wanted, sizeof wanted, "--queue %s: there is no such folder (utter job submit makes it)",
        support_path("no/such"));
    assert_string_equal(error.text, wanted);
    assert_null(queue);
    assert_int_equal(queue_open(&queue, support_path("made/in/50% %s"), true, &error), UTTER_OK);
    assert_true(queue->pause_s == 0.2);
    assert_int_equal(access(support_path("made/in/50% %s/making"), F_OK), 0);
    queue_close(&queue);
    memset(longest, '/', sizeof longest);
    const char *long_one = support_path("long");
    memcpy(longest, long_one, strlen(long_one));
    longest[PATH_MAX - 129] = 0;
    assert_int_equal(queue_open(&queue, longest, true, &error), UTTER_OK);
    assert_int_equal(access(support_path("long/making"), F_OK), 0);
    queue_close(&queue);
    longest[PATH_MAX - 129] = '/';
    longest[PATH_MAX - 128] = 0;
    assert_int_equal(queue_open(&queue, longest, false, &error), UTTER_E_FILE);
    assert_string_equal(error.text, "--queue: the name is too long");
    assert_null(queue);
    support_fail_open_at(1);
    assert_int_equal(queue_open(&queue, support_path("made/in/50% %s"), false, &error), UTTER_E_FILE);
    support_fail_off();
    assert_null(queue);
}

/* A name that no other submission has: when it began, to the nanosecond, and what it is. */
static void a_submission_begins_with_its_time(void **state)
{
    (void)state;
    const char *left = ".utter-0123456789abcdef";
    struct queue *in = open_queue("begins", true);
    const struct folder_queue *q = (struct folder_queue *)in;
    char path[128];
    snprintf(path, sizeof path, "begins/%s", left);
    support_write_file(support_path(path), "", 0);
    const struct timespec old = {.tv_sec = time(NULL) - 120};
    assert_int_equal(utimensat(AT_FDCWD, support_path(path), (struct timespec[]){old, old}, 0), 0);
    const long long begin = time(NULL);
    assert_int_equal(in->calls->begin(in, name, NULL), UTTER_OK);
    assert_int_equal(strlen(q->submission), 19 + 1 + 16);
    assert_int_equal(strspn(q->submission, "0123456789"), 19);
    assert_string_equal(q->submission + 19, "-0123456789abcdef");
    char seconds[11];
    snprintf(seconds, sizeof seconds, "%.10s", q->submission);
    assert_in_range(strtoll(seconds, NULL, 10), begin, time(NULL));
    /* What a killed one has left halfway is gone. */
    assert_int_not_equal(access(support_path(path), F_OK), 0);
    put(in, 1);
    assert_int_equal(in->calls->flush(in, NULL), UTTER_OK);
    put(in, 2);
    assert_int_equal(in->calls->flush(in, NULL), UTTER_OK);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "begins/%s-%06d.lines", q->submission, i);
        assert_int_equal(access(support_path(path), F_OK), 0);
    }
    queue_close(&in);
}

static void a_submission_that_cannot_begin_is_told(void **state)
{
    (void)state;
    utter_error error;
    char wanted[PATH_MAX + 64], path[PATH_MAX];
    for (int i = 1; i <= 2; i++) { /* of the lines, and of their states */
        struct queue *in = open_queue("unbegun", true);
        support_fail_malloc_at(i);
        assert_int_equal(in->calls->begin(in, name, &error), UTTER_E_MEMORY);
        support_fail_off();
        queue_close(&in);
    }
    struct queue *in = open_queue("unbegun", true);
    support_fail_open_at(1);
    assert_int_equal(in->calls->begin(in, name, &error), UTTER_E_FILE);
    support_fail_off();
    snprintf(wanted, sizeof wanted, "%s: cannot open: ", support_path("unbegun/submitting"));
    assert_memory_equal(error.text, wanted, strlen(wanted));
    queue_close(&in);
    /* What waits of an earlier one, and does not go. */
    static const char *const endings[] = {"state", "lines"};
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s.%s", support_path("unbegun/1-0123456789abcdef-0"), endings[i]);
        assert_int_equal(mkdir(path, 0700), 0);
        in = open_queue("unbegun", true);
        assert_true(in->calls->begin(in, name, &error) < 0);
        snprintf(wanted, sizeof wanted, "%s: cannot remove: ", path);
        assert_memory_equal(error.text, wanted, strlen(wanted));
        queue_close(&in);
        assert_int_equal(rmdir(path), 0);
    }
}

/* A segment of which a part cannot be written is not there, and the next one may be. */
static void a_segment_is_whole_or_not_there(void **state)
{
    (void)state;
    SUPPORT_EACH_FAILURE(SUPPORT_WRITE, n)
    {
        char folder[32];
        snprintf(folder, sizeof folder, "whole%ld", n);
        struct queue *in = open_queue(folder, true);
        assert_int_equal(in->calls->begin(in, name, NULL), UTTER_OK);
        put(in, 1);
        utter_status status = in->calls->flush(in, NULL);
        bool failed = support_failed();
        assert_int_equal(status, failed ? UTTER_E_IO : UTTER_OK);
        struct claim one;
        struct queue *queue = open_queue(folder, false);
        assert_counts(queue, !failed, 0, 0, 0);
        assert_int_equal(claim(queue, &one), failed ? UTTER_AGAIN : UTTER_OK);
        queue_close(&queue);
        assert_int_equal(support_count_files(support_path(folder)), failed ? 2 : 4);
        queue_close(&in);
    }
}

static void memory_that_lacks_loses_no_line(void **state)
{
    (void)state;
    struct queue *in = submit("memory", 1, 2);
    queue_close(&in);
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        struct queue *queue;
        struct claim one, two;
        utter_error error;
        utter_status status = queue_open(&queue, support_path("memory"), false, &error);
        if (status == UTTER_OK) {
            status = queue->calls->claim(queue, &one, &error);
            status = status ? status : queue->calls->claim(queue, &two, &error);
        }
        if (support_failed()) {
            assert_int_equal(status, UTTER_E_MEMORY);
        } else {
            assert_int_equal(status, UTTER_OK);
            assert_int_equal(two.deaths, 0);
        }
        queue_close(&queue);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_claimed_in_their_order_and_end),
        cmocka_unit_test(the_lines_go_when_all_have_ended_and_the_counts_stay),
        cmocka_unit_test(tries_and_deaths_are_counted),
        cmocka_unit_test(who_dies_gives_its_lines_back),
        cmocka_unit_test(a_line_is_one_workers),
        cmocka_unit_test(lines_of_one_sound_wait_for_each_other),
        cmocka_unit_test(a_submission_replaces_what_waits_of_its_own),
        cmocka_unit_test(a_segment_has_as_many_lines_as_it_may),
        cmocka_unit_test(a_segment_has_as_many_bytes_as_it_may),
        cmocka_unit_test(an_address_is_a_folder_or_a_server),
        cmocka_unit_test(a_submission_begins_with_its_time),
        cmocka_unit_test(a_submission_that_cannot_begin_is_told),
        cmocka_unit_test(a_segment_is_whole_or_not_there),
        cmocka_unit_test(memory_that_lacks_loses_no_line),
    };
    return cmocka_run_group_tests_name("queue", tests, NULL, NULL);
}
