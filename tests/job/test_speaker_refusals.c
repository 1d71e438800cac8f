/* SPDX-License-Identifier: Apache-2.0
 * What a server does not make, or not now: what its refusals mean, and how long it is waited for. */
#include "tests/job/beside_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void assert_why(const char *rest)
{
    char wanted[512];
    snprintf(
        wanted, sizeof wanted, "%.*s/v1/audio/speech: %s", (int)strlen(posed.url) - 1, posed.url, rest);
    assert_string_equal(why.text, wanted);
}

static void a_refusal_is_the_lines_the_workers_or_for_now(void **state)
{
    (void)state;
    static const struct {
        const char *head, *body, *why;
        bool misfit, away;
    } cases[] = {
        {"400 Bad", "{\"error\":{\"message\":\"no\",\"param\":\"input\"}}", "no", false, false},
        {"400 Bad", "{\"error\":{\"message\":\"no\",\"param\":\"voice\"}}", "no", true, false},
        {"400 Bad", "nothing", "it answers 400, and not why", false, false},
        {"401 Who", "{\"error\":{\"message\":\"who\"}}", "who (--key)", true, false},
        {"403 No", "", "it answers 403, and not why (--key)", true, false},
        {"404 No", "{\"error\":{\"message\":\"where\"}}", "where", true, false},
        {"409 No", "{\"error\":{\"message\":\"another\"}}", "another", true, false},
        {"408 Late", "{\"error\":{\"message\":\"late\"}}", "late", false, true},
        {"429 Many", "{\"error\":{\"message\":\"many\"}}", "many", false, true},
        {"500 Bad", "{\"error\":{\"message\":\"bad\"}}", "bad", false, false},
        {"500 Bad", "{\"error\":{\"message\":\"bad\",\"type\":\"overloaded_error\"}}", "bad", false,
            true},
        {"501 Bad", "", "it answers 501, and not why", false, true},
        {"599 Bad", "", "it answers 599, and not why", false, true},
        {"600 Bad", "", "it answers 600, and not why", false, false},
        {"204 None", "", "it answers 204, and not why", false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char answer[512];
        open_speaker(NULL);
        snprintf(answer, sizeof answer, "HTTP/1.1 %s\r\nConnection: close\r\n\r\n%s", cases[i].head,
            cases[i].body);
        assert_int_equal(ask(answer), cases[i].away ? UTTER_AGAIN : UTTER_E_ARGUMENT);
        assert_why(cases[i].why);
        assert_int_equal(speaker->misfit, cases[i].misfit);
        assert_int_equal(told_away.n, cases[i].away);
        assert_int_equal(speaker->lanes, cases[i].away ? 1 : 5);
        assert_string_equal(told_away.text, cases[i].away ? why.text : "");
        clear();
        speaker_close(&speaker);
    }
}

/* 4,096 bytes of a refusal are kept, in which its reason may be. They come in two parts. */
static void a_refusal_may_have_so_many_bytes(void **state)
{
    (void)state;
    char body[4098], answer[5000];
    for (int more = 0; more < 2; more++) {
        const int n =
            snprintf(body, sizeof body, "{\"error\":{\"message\":\"no\"}%*s}", 4096 - 26 + more, "");
        assert_int_equal(n, 4096 + more);
        snprintf(answer, sizeof answer,
            "HTTP/1.1 400 Bad\r\nTransfer-Encoding: chunked\r\n\r\n"
            "800\r\n%.2048s\r\n%x\r\n%s\r\n0\r\n\r\n",
            body, (unsigned)n - 2048, body + 2048);
        open_speaker(NULL);
        assert_int_equal(ask(answer), UTTER_E_ARGUMENT);
        assert_why(more ? "it answers 400, and not why" : "no");
        clear();
        speaker_close(&speaker);
    }
}

/* In the middle of the sound. */
static void an_end_of_the_servers_worker_may_be_of_this_line(void **state)
{
    (void)state;
    open_speaker(NULL);
    assert_int_equal(
        ask(GOOD "data: {\"type\":\"speech.audio.delta\",\"audio\":\"AAAAPw==\"}\n"
                 "data: {\"type\":\"speech.audio.error\",\"error\":{\"message\":\"x\",\"code\":"
                 "\"given_back\"}}\n"),
        UTTER_AGAIN);
    assert_why("x");
    assert_int_equal(slot.claim.deaths, 0);
    clear();
    for (int deaths = 0; deaths <= 2; deaths++) {
        posed.answer =
            GOOD "data: {\"type\":\"speech.audio.error\",\"error\":{\"code\":\"given_back\"}}\n"
                 "data: {\"type\":\"speech.audio.error\",\"error\":{\"code\":\"worker_ended\"}}\n";
        posed.bytes = strlen(posed.answer);
        assert_int_equal(begin(LINE "}"), UTTER_OK);
        slot.claim.deaths = deaths;
        assert_int_equal(finish(), deaths < 2 ? UTTER_AGAIN : UTTER_E_ARGUMENT);
        assert_int_equal(slot.claim.deaths, deaths < 2 ? deaths + 1 : 2);
        clear();
    }
    assert_false(speaker->misfit);
    assert_int_equal(told_away.n, 0);
    speaker_close(&speaker);
}

static void a_server_that_is_away_is_told_of_once(void **state)
{
    (void)state;
    open_speaker(NULL);
    assert_int_equal(ask(GOOD), UTTER_AGAIN);
    assert_why("the answer was cut");
    assert_int_equal(told_away.n, 1);
    assert_int_equal(speaker->lanes, 1);
    clear();
    assert_int_equal(ask("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n"), UTTER_AGAIN);
    assert_null(strstr(why.text, "the answer was cut")); /* but what libcurl says */
    assert_int_equal(told_away.n, 1);
    clear();
    assert_int_equal(ask(GOOD ENDED), UTTER_END);
    assert_int_equal(speaker->lanes, 5);
    clear();
    assert_int_equal(ask("HTTP/1.1 503 Later\r\nConnection: close\r\n\r\n"), UTTER_AGAIN);
    assert_int_equal(told_away.n, 2);
    assert_why("it answers 503, and not why");
    clear();
    speaker_close(&speaker);
}

static void a_sound_that_cannot_be_kept_ends_it(void **state)
{
    (void)state;
    open_speaker(NULL);
    posed.answer = GOOD "data: {\"type\":\"speech.audio.delta\",\"audio\":\"AAAAPw==\"}\n" ENDED;
    posed.bytes = strlen(posed.answer);
    assert_int_equal(begin(LINE "}"), UTTER_OK);
    utter_sound_abort(&slot.sound);
    assert_int_equal(finish(), UTTER_E_IO);
    assert_true(why.text[0]);
    assert_int_equal(told_away.n, 0);
    clear();
    speaker_close(&speaker);
}

/* A line of an answer, too, has a bound, and memory may lack for it and for words. */
static void an_answer_without_room_ends_it(void **state)
{
    (void)state;
    static const char lacks[] = "there is no memory for what a server says";
    enum { LONG = 9 << 20 };
    char *answer = malloc(LONG + 1);
    assert_non_null(answer);
    open_speaker(NULL);
    memset(answer, 'x', LONG);
    answer[LONG] = 0;
    memcpy(answer, GOOD, strlen(GOOD));
    if (!SUPPORT_SANITIZED) { /* which take long over so many bytes */
        assert_int_equal(ask(answer), UTTER_E_MEMORY);
        assert_string_equal(why.text, lacks);
        clear();
    }
    answer[3 << 20] = '\n'; /* a long line, which means nothing, and one that ends it */
    strcpy(answer + (3 << 20) + 1, ENDED);
    assert_int_equal(ask(answer), UTTER_END);
    clear();
    free(answer);
    posed.answer = GOOD "data: {\"type\":\"speech.audio.delta\",\"audio\":\"AAAAPw==\"}\n"
                        "data: {\"type\":\"speech.audio.words\",\"words\":[{\"index\":0}]}\n" ENDED;
    posed.bytes = strlen(posed.answer);
    bool failed = true;
    for (long n = 1; failed; n++) { /* what came is whole, or it is none */
        assert_int_equal(begin(LINE "}"), UTTER_OK);
        support_fail_malloc_at(n);
        utter_status status = finish();
        failed = support_failed();
        support_fail_off();
        assert_int_equal(status, failed ? UTTER_E_MEMORY : UTTER_END);
        assert_true(!failed || why.text[0]);
        if (!failed) {
            assert_int_equal(slot.n_samples, 1);
            assert_int_equal(slot.n_words, 1);
        }
        clear();
    }
    assert_int_equal(told_away.n, 0);
    speaker_close(&speaker);
}

static void a_step_waits_for_what_comes(void **state)
{
    (void)state;
    open_speaker(NULL);
    posed.late_ms = 50;
    assert_int_equal(ask(GOOD ENDED), UTTER_END);
    posed.late_ms = 0;
    assert_in_range(n_steps, 1, 200);
    clear();
    speaker_close(&speaker);
}

static void a_line_that_is_dropped_is_asked_for_no_more(void **state)
{
    (void)state;
    open_speaker(NULL);
    posed.waits = true;
    assert_int_equal(begin(LINE "}"), UTTER_OK);
    while (!atomic_load(&posed.came)) {
        assert_int_equal(speaker->calls->step(speaker, &why), UTTER_OK);
        assert_int_equal(speaker->calls->take(speaker, &slot, &why), UTTER_OK);
    }
    clear();
    assert_null(slot.making);
    for (int i = 0; i < 30000 && !atomic_load(&posed.left);
         i++) { /* the bound is for what never comes */
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    assert_true(atomic_load(&posed.left));
    posed.waits = false;
    assert_int_equal(ask(GOOD ENDED), UTTER_END);
    clear();
    speaker_close(&speaker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refusal_is_the_lines_the_workers_or_for_now),
        cmocka_unit_test(a_refusal_may_have_so_many_bytes),
        cmocka_unit_test(an_end_of_the_servers_worker_may_be_of_this_line),
        cmocka_unit_test(a_server_that_is_away_is_told_of_once),
        cmocka_unit_test(a_sound_that_cannot_be_kept_ends_it),
        cmocka_unit_test(an_answer_without_room_ends_it),
        cmocka_unit_test(a_step_waits_for_what_comes),
        cmocka_unit_test(a_line_that_is_dropped_is_asked_for_no_more),
    };
    return cmocka_run_group_tests_name("speaker_refusals", tests, start, end);
}
