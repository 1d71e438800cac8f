/* SPDX-License-Identifier: Apache-2.0
 * A speech from its request to its lane: who is refused at the door and how that is counted, who waits behind whom and
 * for how long, what its worker is told, and what becomes of those whose worker is lost. */
#include "tests/server/posed_speech.h"

/* ---- The door ---- */

static void expect_refused(const struct fields *fields, struct account *account,
    enum metrics_rejection reason, const char *message, int retry_ms)
{
    struct asker a;
    const uint64_t before = s.metrics.rejected[reason];
    uint64_t sum = 0;
    for (int i = 0; i < METRICS_N_REJECTIONS; i++) {
        sum += s.metrics.rejected[i];
    }
    assert_false(ask_as(&a, "x", fields, false, account));
    assert_string_equal(refusal.message, message);
    assert_int_equal(refusal.status, reason == METRICS_RATE ? 429 : 503);
    assert_int_equal(refusal.retry_ms, retry_ms);
    for (int i = 0; i < METRICS_N_REJECTIONS; i++) {
        sum -= s.metrics.rejected[i];
    }
    assert_true(s.metrics.rejected[reason] == before + 1 && sum + 1 == 0); /* once, and as that alone */
    assert_true(s.n_queued == 0 && s.background.n_queued == 0);
}

static void who_is_refused_is_told_why(void **state)
{
    const struct fields ground = {.sound = {ENCODE_PCM, 1, 1, 0}, .background = true};
    struct account account = {.n_holders = 1, .most_speeches = 1, .n_speeches = 1};
    struct asker a;
    (void)state;
    begin_speeches(1);
    s.unsent_bytes = LIMIT_UNSENT_ALL;
    assert_true(ask(&a, "a"));
    speech_cancel(a.speech);
    s.unsent_bytes++;
    expect_refused(
        &plain, NULL, METRICS_QUEUE_FULL, "too much sound waits for clients that do not read", 1000);
    expect_refused(
        &ground, NULL, METRICS_QUEUE_FULL, "too much sound waits for clients that do not read", 1000);
    options.queue = -LANES; /* not even who has a lane at once */
    expect_refused(&plain, NULL, METRICS_QUEUE_FULL,
        "the request queue is full (0 waiting; try again in 1 s)", 1000);
    expect_refused(&ground, NULL, METRICS_BACKGROUND_FULL,
        "0 speeches wait for lanes that listeners leave idle", 1000);
    links[0].is_out = links[1].is_out = true;
    expect_refused(&plain, NULL, METRICS_NOT_READY, "all workers have been taken out of service", 1000);
    s.draining = true;
    expect_refused(&plain, NULL, METRICS_DRAINING, "the server is about to stop", 1000);
    /* What a key may do is looked at first, and its own time is told. */
    assert_false(ask_as(&a, "a", &plain, false, &account));
    const struct refusal before = refusal;
    expect_refused(&plain, &account, METRICS_RATE, before.message, before.retry_ms);
    assert_int_equal(account.n_speeches, 1);
    end_speeches(NULL, 0);
}

static void a_key_has_its_speeches_until_they_end(void **state)
{
    struct account account = {.n_holders = 1, .most_speeches = 9};
    struct asker all[4];
    (void)state;
    begin_speeches(1);
    for (int i = 0; i < 4; i++) {
        assert_true(ask_as(&all[i], "a", &plain, false, &account));
    }
    assert_true(account.n_speeches == 4 && account.n_holders == 5);
    speech_cancel(all[0].speech); /* on no lane */
    all[0].speech = NULL;
    assert_true(account.n_speeches == 3 && account.n_holders == 4);
    for (int i = 1; i < 4; i++) {
        say(&all[i], "Hi");
    }
    assert_int_equal(s.n_running, 3);
    speech_cancel(all[1].speech); /* its lane is not free yet */
    all[1].speech = NULL;
    assert_true(account.n_speeches == 2 && account.n_holders == 3 && s.n_running == 3);
    hear_failed(&links[0], 3, UTTER_E_MEMORY, "no memory");
    assert_true(account.n_speeches == 1 && account.n_holders == 2 && s.n_running == 2);
    end_speeches(all, 4);
    assert_true(account.n_speeches == 0 && account.n_holders == 1);
}

static void what_was_asked_is_kept(void **state)
{
    const struct trace trace = {.trace_id = "abc"};
    struct fields fields = {.sound = {ENCODE_PCM, 2, 1, 0}, .n_unknown = 3, .words = true};
    struct speech_request request = {
        &fields, METRICS_STREAM, 990, NULL, "request-id", "client", true, &trace};
    const struct speech_sink no_words = {on_bytes, on_end, NULL};
    struct asker a = {.name = "a"};
    (void)state;
    begin_speeches(0);
    s.next_id = 41;
    for (int i = 0; i < 6; i++) {
        fields.background = i == 1;
        fields.streaming = i == 2 ? FIELDS_WHOLE : FIELDS_RAW;
        request.endpoint = i == 3 ? METRICS_BATCH : METRICS_STREAM;
        request.trace = i == 4 ? NULL : &trace;
        struct speech *p = speech_start(&s, &request, i == 5 ? &no_words : &sink, &a, &refusal);
        assert_non_null(p);
        assert_true(p->id == 42 + (uint32_t)i && s.next_id == p->id);
        assert_true(strcmp(p->request, "request-id") == 0 && strcmp(p->client, "client") == 0);
        assert_int_equal(p->live, i == 0 || i == 4 || i == 5); /* heard while it is made */
        assert_int_equal(p->words, i != 5);
        assert_int_equal(p->endpoint, i == 1   ? METRICS_BACKGROUND
                                      : i == 3 ? METRICS_BATCH
                                               : METRICS_STREAM);
        assert_true(p->read_at == 990 && p->queued_at == BEGAN && p->speed == 2 && p->patient);
        assert_string_equal(p->trace.trace_id, i == 4 ? "" : "abc");
        assert_int_equal(s.metrics.unknown_fields, 3 * (i + 1));
        assert_int_equal(s.background.n_queued, i == 1);
        speech_cancel(p);
    }
    end_speeches(NULL, 0);
}

static void the_usual_format_is_the_servers(void **state)
{
    static const char *const names[] = {"wav", "pcm", "mp3", "opus", "flac", "aac"};
    static const char *const languages[] = {"english", "german"};
    (void)state;
    begin_speeches(0);
    s.ready.takes_instructions = true;
    s.ready.n_languages = 2;
    memcpy(s.ready.languages, languages, sizeof languages);
    for (int i = 0; i < ENCODE_FORMATS; i++) {
        options.format = names[i];
        assert_int_equal(speech_fields_model(&s).default_format, i);
    }
    const struct fields_model m = speech_fields_model(&s);
    assert_true(m.id == s.model_id && m.kind == s.ready.kind_name && m.languages == s.ready.languages);
    assert_true(m.n_languages == 2 && m.takes_instructions);
    options.format = "other";
    assert_int_equal(speech_fields_model(&s).default_format, ENCODE_MP3);
    end_speeches(NULL, 0);
}

/* ---- The queue ---- */

/* Names of those that wait, in their order. */
static const char *waiting(void)
{
    static char all[100];
    const struct speech *p;
    int n = 0;
    all[0] = 0;
    TAILQ_FOREACH(p, &s.queued, entry)
    {
        strcat(all, ((struct asker *)p->user)->name);
        assert_true(p->queued && !p->link);
        n++;
    }
    assert_int_equal(s.n_queued, n);
    return all;
}

static void who_is_patient_stands_behind(void **state)
{
    static const char *const names[] = {"A", "b", "C", "d", "E"}; /* small ones wait for nobody */
    struct asker all[5];
    (void)state;
    begin_speeches(0);
    for (int i = 0; i < 5; i++) {
        assert_true(ask_as(&all[i], names[i], &plain, i % 2 == 0, NULL));
        say(&all[i], names[i]);
    }
    assert_string_equal(waiting(), "bdACE");
    pose(&links[0]);
    links[0].is_ready = true;
    links[0].lanes = links[0].beat.capacity = 3;
    speech_worker_ready(&links[0]);
    assert_string_equal(waiting(), "CE");
    assert_string_equal(told(&links[0]), "open 2|text 2 b|open 4|text 4 d|open 1|text 1 A|");
    end_speeches(all, 5);
}

/* Who has no lane waits for so long; where a model is opened for it, not before that is over. */
static void who_waits_in_vain_is_told_so(void **state)
{
    struct asker all[3];
    (void)state;
    begin_speeches(1);
    links[0].lanes = 1;
    ask_for(&all[0], "runs", "Hi");
    s.admission.speech_s = 0.1; /* ends soon, so that one may wait */
    assert_true(ask(&all[1], "waits") && ask_as(&all[2], "patient", &plain, true, NULL));
    assert_int_equal(s.n_running, 1);
    speech_tick(&s, BEGAN + 1.5);
    assert_string_equal(waiting(), "waitspatient");
    speech_tick(&s, BEGAN + 1.625);
    EXPECT("waits: 503 no lane became free in time|");
    speech_tick(&s, BEGAN + 30);
    assert_string_equal(waiting(), "patient");
    links[0].is_ready = false; /* nobody opens it */
    links[0].is_leaving = true;
    speech_tick(&s, BEGAN + 30.125);
    EXPECT("patient: 503 the model is being opened|");
    assert_int_equal(s.metrics.rejected[METRICS_QUEUE_FULL], 2);
    links[0].is_ready = true, links[0].is_leaving = false;
    end_speeches(all, 3);
    begin_speeches(0);
    links[1].is_waking = true;
    assert_true(ask(&all[0], "a"));
    speech_tick(&s, BEGAN + 100);
    links[1].is_waking = false;
    speech_tick(&s, BEGAN + 101.5);
    EXPECT("");
    speech_tick(&s, BEGAN + 101.625);
    EXPECT("a: 503 the model is being opened|");
    end_speeches(all, 1);
}

/* Half of a text is not spoken, though a lane is free. */
static void who_could_not_be_heard_whole_is_told_so(void **state)
{
    struct asker a;
    (void)state;
    begin_speeches(0);
    ask_for(&a, "a", "Hi");
    a.speech->text.failed = true;
    pose(&links[0]);
    links[0].is_ready = true;
    links[0].lanes = 1;
    speech_dispatch(&s);
    assert_string_equal(told(&links[0]), "");
    speech_tick(&s, now_s);
    EXPECT("a: 503 out of memory|");
    assert_int_equal(s.metrics.rejected[METRICS_QUEUE_FULL], 0);
    end_speeches(&a, 1);
}

static struct asker again;

static void ask_again(void)
{
    assert_true(ask(&again, "again"));
}

/* All workers are gone: who waits now is told, not who asks because of it. */
static void who_waits_for_nobody_is_told_so(void **state)
{
    const struct fields ground = {.sound = {ENCODE_PCM, 1, 1, 0}, .background = true};
    struct asker all[3];
    (void)state;
    for (int out = 0; out < 2; out++) {
        begin_speeches(0);
        links[1].is_waking = !out;
        assert_true(ask(&all[0], "a") && ask(&all[1], "b"));
        assert_true(ask_as(&all[2], "ground", &ground, false, NULL));
        all[0].does = out ? NULL : ask_again;
        if (out) { /* by an operator */
            links[0].is_out = true;
            speech_tick(&s, now_s);
            assert_int_equal(s.n_queued, 2);
            links[1].is_out = true;
            speech_tick(&s, now_s);
            EXPECT("a: 503 all workers have been taken out of service|b: 503 all workers have been "
                   "taken out of service|ground: 503 all workers have been taken out of service|");
        } else {
            speech_worker_lost(&links[0], "not there"); /* another one opens it */
            speech_worker_lost(&links[1], NULL);
            assert_true(s.n_queued == 2 && s.background.n_queued == 1);
            links[1].is_waking = false;
            speech_worker_lost(&links[1], NULL); /* nobody waited for that one */
            assert_int_equal(s.n_queued, 2);
            speech_worker_lost(&links[1], "not there");
            EXPECT("a: 503 not there|b: 503 not there|ground: 503 not there|");
            assert_string_equal(waiting(), "again");
            speech_cancel(again.speech);
        }
        assert_int_equal(s.metrics.rejected[METRICS_NOT_READY], 3);
        end_speeches(all, 3);
    }
}

/* ---- The lane ---- */

static void a_worker_is_told_all(void **state)
{
    struct asker all[3];
    (void)state;
    begin_speeches(0);
    ask_for(&all[0], "a", "Hi ");
    assert_true(ask(&all[1], "b") && ask(&all[2], "c"));
    say(&all[1], "One"), say(&all[1], " two");
    speech_hold(all[1].speech, true);
    speech_hold(NULL, true);
    now_s += 0.25;
    pose(&links[0]);
    links[0].is_ready = true;
    links[0].lanes = links[0].beat.capacity = LANES;
    speech_dispatch(&s);
    assert_true(s.n_running == 3 && links[0].n_running == 3 && s.n_queued == 0);
    assert_string_equal(
        told(&links[0]), "open 1|text 1 Hi |finish 1|open 2|text 2 One two|pause 2|open 3|");
    assert_true(all[0].speech->tries == 1 && all[0].speech->moved_at == now_s);
    assert_true(all[0].speech->end.queue_s == 0.25 && s.metrics.queue_wait.sum == 0.75);
    say(&all[1], "!");
    assert_string_equal(told(&links[0]), "text 2 !|");
    speech_hold(all[1].speech, true);
    assert_string_equal(told(&links[0]), "");
    speech_hold(all[1].speech, false);
    speech_finish(all[1].speech);
    assert_string_equal(told(&links[0]), "resume 2|finish 2|");
    end_speeches(all, 3);
}

/* Who has heard nothing begins again, in front of all others and in the same order; twice at most. */
static void who_has_heard_nothing_begins_again(void **state)
{
    struct asker all[5];
    (void)state;
    begin_speeches(2);
    links[1].is_leaving = true;
    for (int i = 0; i < LANES; i++) {
        static const char *const names[] = {"a", "b", "heard", "gone"};
        ask_for(&all[i], names[i], "Hi");
    }
    assert_true(ask_as(&all[4], "late", &plain, true, NULL) && s.n_queued == 1);
    speech_hold(all[0].speech, true);
    hear_sound(&links[0], 3, 0.5);
    EXPECT("heard: 8000 bytes|");
    say(&all[2], "more"); /* is not kept */
    speech_cancel(all[3].speech);
    all[3].speech = NULL;
    assert_string_equal(told(&links[0]),
        "open 1|text 1 Hi|finish 1|open 2|text 2 Hi|finish 2|open 3|text 3 Hi|finish 3|open 4|text 4 "
        "Hi|finish 4|pause 1|text 3 more|cancel 4|");
    assert_int_equal(all[2].speech->text.n, 0);
    links[0].is_ready = false;
    now_s += 1;
    speech_worker_lost(&links[0], NULL);
    EXPECT("heard: 503 the worker ended while it spoke (ask again)|");
    assert_string_equal(waiting(), "ablate");
    assert_true(s.n_running == 0 && links[0].n_running == 0);
    assert_true(all[0].speech->queued_at == now_s && all[4].speech->queued_at == BEGAN);
    links[1].is_leaving = false;
    speech_dispatch(&s);
    assert_string_equal(
        told(&links[1]), "open 1|text 1 Hi|finish 1|pause 1|open 2|text 2 Hi|finish 2|open 5|");
    links[1].is_ready = false;
    speech_worker_lost(&links[1], NULL);
    EXPECT("b: 503 the worker ended while it spoke (ask again)|a: 503 the worker ended while it spoke "
           "(ask again)|");
    assert_string_equal(waiting(), "late");
    end_speeches(all, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_refused_is_told_why),
        cmocka_unit_test(a_key_has_its_speeches_until_they_end),
        cmocka_unit_test(what_was_asked_is_kept),
        cmocka_unit_test(the_usual_format_is_the_servers),
        cmocka_unit_test(who_is_patient_stands_behind),
        cmocka_unit_test(who_waits_in_vain_is_told_so),
        cmocka_unit_test(who_could_not_be_heard_whole_is_told_so),
        cmocka_unit_test(who_waits_for_nobody_is_told_so),
        cmocka_unit_test(a_worker_is_told_all),
        cmocka_unit_test(who_has_heard_nothing_begins_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
