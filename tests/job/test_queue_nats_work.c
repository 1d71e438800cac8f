/* SPDX-License-Identifier: Apache-2.0
 * What a worker asks of a NATS server, and when, on a clock that stands: a table of calls is in the library's place.
 * How it connects, what it takes and gives back, and what it does not ask of a server that is silent or away. */
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if __has_include(<nats/nats.h>)
#include "tests/job/posed_nats.h"
#include "tests/server/posed_clock.h"

/* ---- A queue in it ---- */

enum { SOME_TIME = 1000 };

static utter_error why;

#define WIRE "{\"key\":\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\",\"text\":1}"
static const char wire[] = WIRE;

static int begin_test(void **state)
{
    (void)state;
    memset(&posed, 0, sizeof posed);
    memset(&why, 0, sizeof why);
    posed.connection = NATS_CONN_STATUS_CONNECTED;
    posed.created = 7;
    is_here = true;
    now_s = SOME_TIME;
    unsetenv("NATS_CREDS");
    return 0;
}

static utter_status open_queue(const char *url, bool submits)
{
    return queue_nats_open(&queue, url, submits, &why);
}

/* A worker's queue that is open, and has said nothing yet. */
static void begin(void)
{
    begin_test(NULL);
    assert_int_equal(open_queue("nats://host/books", false), UTTER_OK);
    posed.said[0] = 0;
}

static void end(void)
{
    queue_close(&queue);
    posed.said[0] = 0;
    assert_int_equal(posed.n_alive, 0); /* nothing of the library's is left */
}

static utter_status claim(struct claim *claimed)
{
    return queue->calls->claim(queue, claimed, &why);
}

#define LOOKS "stream books 500"
#define MAKES "make books workers 20000000000 ns 65536 500"
#define SUBSCRIBES "subscribe books.lines.* workers books workers"
#define FETCHES "fetch 1 now 100000000 ns"

/* A queue with a line that is claimed. */
static void begin_claimed(struct claim *claimed)
{
    begin();
    posed.wire = wire;
    assert_int_equal(claim(claimed), UTTER_OK);
    assert_said(LOOKS "; " MAKES "; " SUBSCRIBES "; " FETCHES);
}

/* ---- It connects ---- */

static void a_worker_connects_for_ever_and_keeps_nothing_back(void **state)
{
    (void)state;
    now_s = 1700000000.25;
    assert_int_equal(open_queue("nats://ann:secret@host:4222/books", false), UTTER_OK);
    assert_said(
        "options; url nats://ann:secret@host:4222; within 5000; again -1; as utter job; buffer 1; "
        "connect; jetstream 4096 60000; stream books 0; consumer books workers 0");
    assert_true(nats_of(queue)->generation == 1700000000250);
    assert_true(queue->pause_s == 2);
    assert_int_equal(posed.n_alive, 2); /* a connection, and what is asked through it */
    queue_close(&queue);
    assert_said("flush within 2000; leave_jetstream; disconnect; end");
    assert_int_equal(posed.n_alive, 0);
}

static void a_submission_waits_for_its_server(void **state)
{
    (void)state;
    setenv("NATS_CREDS", "", 1);
    assert_int_equal(open_queue("nats://host", true), UTTER_OK);
    assert_said("options; url nats://host; within 5000; again -1; as utter job; connect; "
                "jetstream 4096 60000; stream utter 0; consumer utter workers 0");
    end();
    setenv("NATS_CREDS", "/some/file", 1);
    assert_int_equal(open_queue("tls://host", true), UTTER_OK);
    assert_said("options; url tls://host; within 5000; again -1; as utter job; credentials /some/file; "
                "connect; jetstream 4096 60000; stream utter 0; consumer utter workers 0");
    end();
}

static void what_keeps_from_connecting_is_told(void **state)
{
    (void)state;
    static const char *const steps[] = {
        "options", "url", "within", "again", "as", "buffer", "credentials", "connect", "jetstream"};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        begin_test(NULL);
        setenv("NATS_CREDS", "/some/file", 1);
        posed.fails = steps[i];
        posed.how = NATS_TIMEOUT;
        assert_int_equal(open_queue("nats://ann:secret@host:4222/books", false), UTTER_E_IO);
        assert_string_equal(
            why.text, "--queue host:4222: cannot be reached: Timeout (is a nats-server there?)");
        assert_null(queue);
        assert_int_equal(posed.n_alive, 0);
        const char *failed = strstr(posed.said, steps[i]), *next = strchr(failed, ';');
        assert_non_null(next);
        assert_string_equal(next, i < 8 ? "; end" : "; flush within 2000; disconnect; end");
    }
    begin_test(NULL);
    is_here = false;
    assert_int_equal(open_queue("nats://host", false), UTTER_E_DEVICE);
    assert_non_null(strstr(why.text, NATS_LIBRARY " is not here (apt-get install libnats3."));
    begin_test(NULL);
    support_fail_at(SUPPORT_MALLOC, 1);
    assert_int_equal(open_queue("nats://host", false), UTTER_E_MEMORY);
    support_fail_off();
}

static void a_server_without_jetstream_is_told(void **state)
{
    (void)state;
    posed.fails = "stream";
    posed.how = NATS_ERR;
    posed.code = JSNotEnabledErr;
    assert_int_equal(open_queue("nats://host", false), UTTER_E_IO);
    assert_string_equal(
        why.text, "--queue: the server has no JetStream, or does not answer (nats-server --jetstream)");
    assert_int_equal(posed.n_alive, 0);
    posed.code = JSStreamNotFoundErr; /* one comes with the first submission */
    assert_int_equal(open_queue("nats://host", false), UTTER_OK);
    end();
}

static void an_address_has_as_much_room_as_it_says(void **state)
{
    (void)state;
    char url[1100];
    for (int more = 0; more < 2; more++) {
        snprintf(url, sizeof url, "nats://%0*d/books", 1016 + more, 7);
        assert_int_equal(open_queue(url, false), more ? UTTER_E_ARGUMENT : UTTER_OK);
        queue_close(&queue);
    }
}

/* ---- Lines ---- */

static void a_line_is_taken_out_and_ends(void **state)
{
    (void)state;
    struct claim one;
    begin_claimed(&one);
    assert_ptr_equal(one.wire, wire);
    assert_int_equal(one.bytes, sizeof wire - 1);
    assert_int_equal(strncmp(one.key, wire + 8, IDENTITY_SIZE - 1), 0);
    assert_int_equal(queue->calls->extend(queue, &one, NULL), UTTER_OK);
    assert_said("at work");
    assert_int_equal(queue->calls->done(queue, &one, false, NULL), UTTER_OK);
    assert_said("done; forget");
    assert_null(one.place);
    assert_int_equal(claim(&one), UTTER_OK); /* what it knows of the stream lasts for a second */
    assert_said(FETCHES);
    assert_int_equal(queue->calls->done(queue, &one, true, NULL), UTTER_OK);
    assert_said("done; forget");
    posed.wire = NULL;
    assert_int_equal(claim(&one), UTTER_AGAIN);
    assert_said(FETCHES);
    posed.wire = "{}"; /* none of ours would come again for ever */
    assert_int_equal(claim(&one), UTTER_AGAIN);
    assert_said(FETCHES "; done; forget");
    end();
}

/* Another message takes the place of one that is put back, or it is said that it has none. */
static void a_line_that_is_given_back_is_put_in_again(void **state)
{
    (void)state;
    static const struct {
        const char *fails, *says;
    } rows[] = {
        {NULL, "; Utter-Tries 3; Utter-Deaths 4; publish anew; all within 2000; done; forget"},
        {"message", "; not done; forget"},
        {"Utter-Deaths", "; Utter-Tries 3; Utter-Deaths 4; forget; not done; forget"},
        {"all", "; Utter-Tries 3; Utter-Deaths 4; publish anew; all within 2000; not done; forget"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct claim one;
        char wanted[512];
        begin_claimed(&one);
        one.tries = 2;
        one.deaths = 4;
        posed.fails = rows[i].fails;
        posed.how = NATS_ERR;
        assert_int_equal(queue->calls->back(queue, &one, true, NULL), UTTER_OK);
        snprintf(wanted, sizeof wanted, "message books.lines.some %s%s", wire, rows[i].says);
        assert_said(wanted);
        assert_null(one.place);
        end();
    }
    struct claim one;
    begin_claimed(&one);
    assert_int_equal(queue->calls->back(queue, &one, false, NULL), UTTER_OK);
    assert_said("message books.lines.some " WIRE "; publish anew; all within 2000; done; forget");
    end();
}

/* Who had a line before, and has said no more, has died over it. */
static void a_message_says_what_became_of_it(void **state)
{
    (void)state;
    static const struct {
        const char *tries, *deaths;
        uint64_t n_delivered;
        int n_tries, n_deaths;
    } rows[] = {{NULL, NULL, 1, 0, 0}, {"2", "3", 1, 2, 3}, {"255", "255", 1, 255, 255},
        {"256", "256", 1, 0, 0}, {"-1", "-1", 1, 0, 0}, {"x", "", 2, 0, 1}, {"0", "1", 4, 0, 4},
        {NULL, NULL, 255, 0, 254}, {NULL, NULL, 256, 0, 254}, {NULL, NULL, UINT64_MAX, 0, 254},
        {"1", "2", 0, 1, 2} /* it is not known */};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct claim one;
        begin();
        posed.wire = wire;
        posed.tries = rows[i].tries;
        posed.deaths = rows[i].deaths;
        posed.n_delivered = rows[i].n_delivered;
        assert_int_equal(claim(&one), UTTER_OK);
        assert_int_equal(one.tries, rows[i].n_tries);
        assert_int_equal(one.deaths, rows[i].n_deaths);
        assert_int_equal(queue->calls->done(queue, &one, false, NULL), UTTER_OK);
        end();
    }
}

/* What is with workers is among what the stream holds, which may not know it yet. */
static void lines_are_counted(void **state)
{
    (void)state;
    static const struct {
        const char *fails;
        uint64_t messages;
        int64_t unacknowledged;
        uint64_t waiting, claimed;
    } rows[] = {{NULL, 5, 2, 3, 2}, {NULL, 5, 0, 5, 0}, {NULL, 5, 5, 0, 5}, {NULL, 5, 6, 0, 5},
        {"consumer", 5, 2, 5, 0}, {"stream", 5, 2, 0, 0}};
    begin();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct queue_counts counts;
        const int n_alive = posed.n_alive;
        posed.fails = rows[i].fails;
        posed.how = NATS_ERR;
        posed.code = JSStreamNotFoundErr;
        posed.messages = rows[i].messages;
        posed.unacknowledged = rows[i].unacknowledged;
        assert_int_equal(queue->calls->count(queue, &counts, &why), UTTER_OK);
        assert_int_equal(counts.waiting, rows[i].waiting);
        assert_int_equal(counts.claimed, rows[i].claimed);
        assert_true(!counts.all && counts.done == 0 && counts.failed == 0);
        assert_int_equal(posed.n_alive, n_alive);
    }
    end();
}

/* ---- What is not there ---- */

/* Neither the stream nor a server that has lost its leader is asked for more than once a second. */
static void a_stream_may_come_later(void **state)
{
    (void)state;
    static const jsErrCode codes[] = {JSStreamNotFoundErr, JSClusterNotAvailErr, 0};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        struct claim one;
        begin();
        posed.fails = "make";
        posed.how = NATS_ERR;
        posed.code = codes[i];
        assert_int_equal(claim(&one), UTTER_AGAIN);
        assert_said(LOOKS "; " MAKES);
        now_s += 0.9;
        assert_int_equal(claim(&one), UTTER_AGAIN);
        assert_said("");
        now_s += 0.2;
        assert_int_equal(claim(&one), UTTER_AGAIN);
        assert_said(LOOKS "; " MAKES);
        now_s += 1.1;
        posed.fails = NULL;
        posed.wire = wire;
        assert_int_equal(claim(&one), UTTER_OK);
        assert_said(LOOKS "; " MAKES "; " SUBSCRIBES "; " FETCHES);
        assert_int_equal(queue->calls->done(queue, &one, false, NULL), UTTER_OK);
        end();
    }
    struct claim one;
    begin();
    now_s = 0.25; /* a machine that has just begun */
    posed.fails = "make";
    posed.how = NATS_ERR;
    assert_int_equal(claim(&one), UTTER_AGAIN);
    assert_said(MAKES);
    now_s = 0.5;
    assert_int_equal(claim(&one), UTTER_AGAIN);
    assert_said("");
    now_s = 1.5;
    posed.fails = NULL;
    assert_int_equal(claim(&one), UTTER_AGAIN);
    assert_said(LOOKS "; " MAKES "; " SUBSCRIBES "; " FETCHES);
    end();
}

static void a_consumer_that_cannot_be_is_told(void **state)
{
    (void)state;
    static const char *const fails[] = {"make", "subscribe"};
    for (int i = 0; i < 2; i++) {
        struct claim one;
        begin();
        posed.fails = fails[i];
        posed.how = NATS_ERR;
        posed.code = JSMaximumConsumersLimitErr;
        assert_int_equal(claim(&one), UTTER_E_IO);
        assert_string_equal(why.text,
            "--queue: the server lets nobody take lines of books: JetStream's error 10026 (look at the "
            "limits of the stream books)");
        end();
    }
    jsErrCode code;
    begin();
    nats_of(queue)->submits = true; /* a submission has time */
    assert_int_equal(nats_make_consumer(nats_of(queue), &code), NATS_OK);
    assert_said("make books workers 20000000000 ns 65536 0");
    end();
}

/* An empty queue and one that is gone say the same. */
static void who_finds_nothing_looks_for_the_queue(void **state)
{
    (void)state;
    struct claim none;
    begin();
    posed.fails = "fetch";
    posed.how = NATS_TIMEOUT;
    assert_int_equal(claim(&none), UTTER_AGAIN);
    assert_said(LOOKS "; " MAKES "; " SUBSCRIBES "; " FETCHES);
    now_s += 0.9;
    assert_int_equal(claim(&none), UTTER_AGAIN);
    assert_said(FETCHES);
    now_s += 0.2;
    assert_int_equal(claim(&none), UTTER_AGAIN);
    assert_said(LOOKS "; " FETCHES "; consumer books workers 500");
    now_s += 0.1;
    assert_int_equal(claim(&none), UTTER_AGAIN);
    assert_said(FETCHES);
    now_s += 1.1;
    posed.fails = "fetch consumer";
    posed.how = NATS_ERR;
    assert_int_equal(claim(&none), UTTER_AGAIN);
    assert_said(LOOKS "; " FETCHES "; consumer books workers 500; unsubscribe");
    now_s += 0.9;
    assert_int_equal(claim(&none), UTTER_AGAIN);
    assert_said("");
    now_s += 0.2;
    posed.fails = NULL;
    assert_int_equal(claim(&none), UTTER_AGAIN);
    assert_said(LOOKS "; " MAKES "; " SUBSCRIBES "; " FETCHES);
    end();
}

/* Its lines have the numbers of those of the stream before, of which nothing is said any more. */
static void a_stream_that_was_made_anew_is_another(void **state)
{
    (void)state;
    for (int breaks = 0; breaks < 2; breaks++) { /* it is seen at once where the connection broke */
        struct claim one, two;
        begin_claimed(&one);
        posed.created++;
        posed.reconnects += (uint64_t)breaks;
        now_s += breaks ? 0.1 : 0.9;
        assert_int_equal(queue->calls->extend(queue, &one, NULL), UTTER_OK);
        assert_said(breaks ? LOOKS "; unsubscribe" : "at work");
        now_s += 0.2;
        assert_int_equal(queue->calls->extend(queue, &one, NULL), UTTER_OK);
        assert_said(breaks ? "" : LOOKS "; unsubscribe");
        assert_int_equal(claim(&two), UTTER_AGAIN);
        assert_said("");
        now_s += 1.1;
        assert_int_equal(claim(&two), UTTER_OK);
        assert_said(LOOKS "; " MAKES "; " SUBSCRIBES "; " FETCHES);
        assert_int_equal(queue->calls->done(queue, &two, false, NULL), UTTER_OK);
        assert_said("done; forget");
        assert_int_equal(queue->calls->back(queue, &one, false, NULL), UTTER_OK);
        assert_said("forget");
        end();
    }
}

static void a_server_that_is_away_is_asked_nothing(void **state)
{
    (void)state;
    struct claim one, two;
    struct queue_counts counts;
    begin_claimed(&one);
    assert_int_equal(claim(&two), UTTER_OK);
    posed.said[0] = 0;
    posed.connection = NATS_CONN_STATUS_RECONNECTING;
    now_s += 60;
    assert_int_equal(claim(&(struct claim){0}), UTTER_AGAIN);
    assert_int_equal(queue->calls->count(queue, &counts, &why), UTTER_AGAIN);
    assert_string_equal(why.text, "--queue: books cannot be asked: Trouble");
    assert_int_equal(queue->calls->extend(queue, &one, NULL), UTTER_OK);
    assert_said("");
    assert_int_equal(queue->calls->done(queue, &one, false, NULL), UTTER_OK);
    assert_int_equal(queue->calls->back(queue, &two, false, NULL), UTTER_OK);
    assert_said("forget; forget");
    end();
}

/* Connected, and silent: for four seconds nothing is asked, and then it has twice as long to answer. */
static void a_silent_server_is_given_time(void **state)
{
    (void)state;
    static const int waits_ms[] = {500, 1000, 2000, 4000, 5000, 5000};
    struct claim one, none;
    char wanted[64];
    begin_claimed(&one);
    posed.fails = "stream";
    posed.how = NATS_TIMEOUT;
    now_s += 1.5;
    for (size_t i = 0; i < sizeof waits_ms / sizeof *waits_ms; i++) {
        assert_int_equal(queue->calls->extend(queue, &one, NULL), UTTER_OK);
        snprintf(wanted, sizeof wanted, "stream books %d", waits_ms[i]);
        assert_said(wanted);
        now_s += 3.9;
        assert_int_equal(queue->calls->extend(queue, &one, NULL), UTTER_OK);
        assert_int_equal(claim(&none), UTTER_AGAIN);
        assert_said("");
        now_s += 0.2;
    }
    posed.fails = NULL; /* it speaks again, and is the one that it was */
    assert_int_equal(queue->calls->done(queue, &one, false, NULL), UTTER_OK);
    assert_said("stream books 5000; done; forget");
    end();
}

/* A second, or four, is over when it is over. */
static void times_end_to_the_moment(void **state)
{
    (void)state;
    struct claim one, none;
    begin_claimed(&one);
    now_s += 1; /* it may be another stream by now */
    assert_int_equal(queue->calls->extend(queue, &one, NULL), UTTER_OK);
    assert_said(LOOKS "; at work");
    assert_int_equal(queue->calls->done(queue, &one, false, NULL), UTTER_OK);
    posed.said[0] = 0;
    posed.fails = "fetch consumer"; /* nothing is there, nor who works for it */
    posed.how = NATS_ERR;
    assert_int_equal(claim(&none), UTTER_AGAIN);
    assert_said(FETCHES "; consumer books workers 500; unsubscribe");
    now_s += 1;
    posed.fails = NULL;
    assert_int_equal(claim(&one), UTTER_OK);
    assert_said(LOOKS "; " MAKES "; " SUBSCRIBES "; " FETCHES);
    posed.fails = "stream";
    posed.how = NATS_TIMEOUT;
    now_s += 1;
    assert_int_equal(queue->calls->extend(queue, &one, NULL), UTTER_OK);
    assert_said(LOOKS);
    now_s += 4;
    assert_int_equal(queue->calls->extend(queue, &one, NULL), UTTER_OK);
    assert_said("stream books 1000");
    posed.fails = NULL;
    now_s += 4;
    assert_int_equal(queue->calls->done(queue, &one, false, NULL), UTTER_OK);
    assert_said("stream books 2000; done; forget");
    end();
}

#define EACH(test) cmocka_unit_test_setup(test, begin_test)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EACH(a_worker_connects_for_ever_and_keeps_nothing_back),
        EACH(a_submission_waits_for_its_server),
        EACH(what_keeps_from_connecting_is_told),
        EACH(a_server_without_jetstream_is_told),
        EACH(an_address_has_as_much_room_as_it_says),
        EACH(a_line_is_taken_out_and_ends),
        EACH(a_line_that_is_given_back_is_put_in_again),
        EACH(a_message_says_what_became_of_it),
        EACH(lines_are_counted),
        EACH(a_stream_may_come_later),
        EACH(a_consumer_that_cannot_be_is_told),
        EACH(who_finds_nothing_looks_for_the_queue),
        EACH(a_stream_that_was_made_anew_is_another),
        EACH(a_server_that_is_away_is_asked_nothing),
        EACH(a_silent_server_is_given_time),
        EACH(times_end_to_the_moment),
    };
    return cmocka_run_group_tests_name("queue_nats_work", tests, NULL, NULL);
}

#else

int main(void)
{
    return 0; /* built without NATS */
}

#endif
