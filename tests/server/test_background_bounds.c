/* SPDX-License-Identifier: Apache-2.0
 * Speeches that nobody waits for, at their bounds: which worker's idle lanes they have, who gives one back and what is
 * told then, how long they wait, when the worker for them alone ends, and how long it stands still. */
#include "tests/server/posed_speech.h"

#define GIVEN_BACK                                                                                     \
    ": 503 given_back listeners need the lane that it had, or leave none idle (ask again)|"

static const struct fields ground = {.sound = {ENCODE_PCM, 1, 1, 0}, .background = true};

static void ask_aside(struct asker *a, const char *name)
{
    assert_true(ask_as(a, name, &ground, false, NULL));
    say(a, "Hi");
    speech_finish(a->speech);
}

/* Where they share the lanes of listeners. */
static void begin_shared(int n_ready)
{
    begin_speeches(n_ready);
    options.background = "shared";
}

/* Where the second worker is theirs alone. */
static void begin_apart(void)
{
    begin_speeches(2);
    s.n_links = 1;
    s.background.link = &links[1];
    s.background.worked_at = BEGAN;
    s.background.most_still_s = 0.5;
    strcpy(links[0].opened_on, "cpu");
    links[1].is_idle = true;
    links[1].lanes = 2;
}

static void end_apart(struct asker *askers, int n)
{
    s.n_links = LINKS;
    s.background.link = NULL;
    end_speeches(askers, n);
}

/* ---- Lanes ---- */

static void it_goes_where_most_is_idle(void **state)
{
    struct asker all[10];
    (void)state;
    begin_shared(2);
    for (int i = 7; i < 10; i++) {
        ask_for(&all[i], "listener", "Hi");
    }
    assert_true(links[0].n_running == 2 && links[1].n_running == 1);
    static const int places[] = {
        1, 0, 1, 0, 1}; /* three and two are idle; of two that are alike the first */
    for (int i = 0; i < 5; i++) {
        ask_aside(&all[i], "ground");
        assert_ptr_equal(all[i].speech->link, &links[places[i]]);
    }
    assert_true(
        links[0].n_background == 2 && links[1].n_background == 3 && s.background.n_running == 5);
    ask_aside(&all[5], "late");
    assert_true(!all[5].speech->link && s.background.n_queued == 1);
    speech_cancel(all[4].speech);
    hear_odd(&links[1], all[4].speech->id, WIRE_FREED, false);
    all[4].speech = NULL;
    assert_ptr_equal(all[5].speech->link, &links[1]); /* who waits has what comes free */
    /* Nothing of one that leaves, nor while a listener waits, nor where the server ends. */
    links[1].lanes = links[0].lanes = 5;
    links[1].beat.capacity = links[0].beat.capacity = 5;
    links[0].is_leaving = true;
    ask_aside(&all[4], "one more");
    assert_ptr_equal(all[4].speech->link, &links[1]);
    links[0].is_leaving = false;
    s.n_queued++;
    ask_aside(&all[6], "waits");
    s.n_queued--;
    s.draining = true;
    speech_background_dispatch(&s);
    assert_true(!all[6].speech->link && s.background.n_queued == 1);
    s.draining = false;
    speech_background_dispatch(&s);
    assert_ptr_equal(all[6].speech->link, &links[0]);
    end_speeches(all, 10);
}

/* Who has not said all, and whose text is not whole, are passed by. */
static void only_a_whole_text_has_a_lane(void **state)
{
    struct asker all[3];
    (void)state;
    begin_shared(1);
    for (int i = 0; i < 2; i++) {
        assert_true(ask_as(&all[i], i ? "not whole" : "begun", &ground, false, NULL));
        say(&all[i], "Hi");
    }
    all[1].speech->text.failed = all[1].speech->text_ended = true;
    ask_aside(&all[2], "whole");
    assert_string_equal(told(&links[0]), "open 3|text 3 Hi|finish 3|");
    speech_finish(all[0].speech);
    assert_string_equal(told(&links[0]), "open 1|text 1 Hi|finish 1|");
    speech_background_tick(&s, now_s);
    EXPECT("not whole" GIVEN_BACK);
    end_speeches(all, 3);
}

static void who_gives_its_lane_back_is_told_when_it_is_free(void **state)
{
    struct asker all[4], listener;
    (void)state;
    begin_shared(1);
    for (int i = 0; i < 4; i++) {
        static const char *const names[] = {"a", "b", "c", "d"};
        ask_aside(&all[i], names[i]);
    }
    told(&links[0]);
    ask_for(&listener, "listener", "Hi");
    assert_string_equal(told(&links[0]), "cancel 4|open 5|text 5 Hi|finish 5|");
    assert_true(links[0].n_background == 3 && links[0].n_running == 1 && s.background.n_running == 3);
    EXPECT("");
    hear_odd(&links[0], 4, WIRE_FREED, false);
    EXPECT("d" GIVEN_BACK);
    assert_int_equal(s.metrics.requests[METRICS_BACKGROUND][METRICS_GIVEN_BACK], 1);
    assert_true(links[0].n_background == 3 && s.background.n_running == 3);
    links[0].lanes = 3; /* as many as it takes give theirs */
    speech_background_yield(&links[0]);
    assert_string_equal(told(&links[0]), "cancel 3|cancel 2|");
    speech_background_yield(&links[0]);
    assert_string_equal(told(&links[0]), "");
    hear_sound(&links[0], 3, 0.5); /* it was quicker */
    hear_done(&links[0], 3, UTTER_FINISH_EOS, 1);
    EXPECT("c: 8000 bytes|c: good 0.5 s|");
    assert_true(s.admission.speech_s == 4 && s.metrics.background_s == 0.5);
    hear_failed(&links[0], 2, UTTER_E_MEMORY, "why");
    EXPECT("b" GIVEN_BACK);
    assert_true(links[0].n_background == 1 && s.background.n_running == 1 && links[0].n_running == 1);
    /* One that was cut, and one that was not, of a worker that is lost. */
    ask_aside(&all[1], "e");
    speech_background_yield(&links[0]);
    links[0].lanes = 2;
    speech_background_yield(&links[0]);
    assert_int_equal(links[0].n_background, 0);
    links[0].lanes = 4;
    ask_aside(&all[2], "f");
    happened[0] = 0;
    links[0].is_ready = false;
    speech_worker_lost(&links[0], NULL);
    EXPECT(
        "f: 503 worker_ended the worker ended while it spoke (ask again)|e" GIVEN_BACK "a" GIVEN_BACK);
    assert_true(s.background.n_running == 0 && s.n_running == 0 && s.n_queued == 1);
    assert_int_equal(s.metrics.requests[METRICS_BACKGROUND][METRICS_ERROR], 1);
    end_speeches(&listener, 1);
}

/* ---- Time ---- */

static void it_waits_for_so_long(void **state)
{
    struct asker all[4];
    (void)state;
    begin_shared(1);
    links[0].lanes = 1;
    ask_for(&all[0], "listener", "Hi");
    options.queue = 2;
    for (int i = 1; i < 4; i++) {
        static const char *const names[] = {"", "a", "b", "c"};
        now_s += 0.125;
        ask_aside(&all[i], names[i]);
    }
    struct asker refused;
    assert_false(ask_as(&refused, "d", &ground, false, NULL));
    assert_string_equal(refusal.message, "3 speeches wait for lanes that listeners leave idle");
    now_s = BEGAN + 0.125 + 30;
    speech_background_tick(&s, now_s);
    EXPECT("");
    now_s += 0.125;
    speech_background_tick(&s, now_s);
    EXPECT("a" GIVEN_BACK);
    links[0].is_ready = false; /* it waits for a model that is opened */
    links[1].is_waking = true;
    speech_background_tick(&s, BEGAN + 100);
    assert_true(all[2].speech->queued_at == BEGAN + 100 && all[3].speech->queued_at == BEGAN + 100);
    links[1].is_waking = false;
    speech_background_tick(&s, BEGAN + 130);
    EXPECT("");
    links[0].is_ready = true;
    s.draining = true; /* nobody should wait for it any more */
    speech_background_tick(&s, BEGAN + 100);
    EXPECT("b" GIVEN_BACK "c" GIVEN_BACK);
    s.draining = false;
    end_speeches(all, 1);
}

/* In a drain those that have a lane give it back, too. */
static void it_ends_with_the_first_wish_to_end(void **state)
{
    struct asker all[2];
    (void)state;
    begin_shared(1);
    ask_aside(&all[0], "a"), ask_aside(&all[1], "b");
    told(&links[0]);
    speech_background_tick(&s, now_s);
    assert_string_equal(told(&links[0]), "");
    s.draining = true;
    speech_background_tick(&s, now_s);
    assert_string_equal(told(&links[0]), "cancel 2|cancel 1|");
    s.draining = false;
    end_speeches(all, 0);
    EXPECT("b" GIVEN_BACK "a" GIVEN_BACK);
}

static void a_worker_of_their_own_ends_after_a_quiet_minute(void **state)
{
    struct asker all[3];
    (void)state;
    begin_apart();
    ask_aside(&all[0], "a"), ask_aside(&all[1], "b"), ask_aside(&all[2], "c"); /* it has two lanes */
    assert_true(links[1].n_background == 2 && s.background.n_queued == 1 && links[0].n_background == 0);
    now_s += 100;
    links[1].heard = now_s;
    all[2].speech->queued_at = now_s;
    speech_background_tick(&s, now_s);
    assert_true(links[1].socket && s.background.worked_at == now_s);
    speech_cancel(all[0].speech), speech_cancel(all[1].speech);
    hear_odd(&links[1], 1, WIRE_FREED, false), hear_odd(&links[1], 2, WIRE_FREED, false);
    assert_int_equal(links[1].n_background, 1);
    speech_background_tick(&s, now_s + 100);
    speech_cancel(all[2].speech);
    hear_odd(&links[1], 3, WIRE_FREED, false);
    speech_background_tick(&s, now_s + 160);
    assert_non_null(links[1].socket);
    speech_background_tick(&s, now_s + 160.125);
    assert_null(links[1].socket);
    end_apart(NULL, 0);
    /* At once when the server is to end, whoever has a lane there. */
    begin_apart();
    ask_aside(&all[0], "a");
    s.draining = true;
    speech_background_tick(&s, now_s);
    assert_null(links[1].socket);
    EXPECT("a" GIVEN_BACK);
    assert_true(s.background.n_running == 0 && links[1].n_background == 0);
    s.draining = false;
    end_apart(NULL, 0);
}

/* ---- Who waits for a first sound ---- */

/* Whether the worker for them stands still now. */
static bool is_still(void)
{
    speech_background_still(&s);
    return links[1].is_still;
}

static void it_stands_still_for_who_waits_for_a_first_sound(void **state)
{
    const struct fields whole = {.sound = {ENCODE_PCM, 1, 1, 0}, .streaming = FIELDS_WHOLE};
    struct asker a, b;
    (void)state;
    begin_apart();
    const pid_t pid = links[1].pid = idler();
    s.background.most_still_s = 1e6;
    assert_false(is_still());
    assert_true(ask(&a, "a"));
    assert_false(is_still());
    say(&a, "Hi");
    assert_true(links[1].is_still); /* in this very call */
    now_s += 0.875;
    assert_true(is_still());
    now_s += 0.125;
    assert_false(is_still());
    say(&a, "Hi");
    assert_true(links[1].is_still);
    now_s += 1;
    assert_false(is_still());
    speech_finish(a.speech); /* from then on it waits for us */
    now_s += 9;
    assert_true(is_still());
    speech_hold(a.speech, true);
    assert_false(is_still());
    speech_hold(a.speech, false);
    assert_true(is_still());
    hear_sound(&links[0], 1, 0.5);
    now_s += 0.125;
    a.speech->end.first_s = 0.125; /* it left */
    assert_false(is_still());
    assert_true(ask_as(&b, "b", &whole, false, NULL)); /* heard when it is whole */
    say(&b, "Hi");
    assert_false(is_still());
    speech_cancel(b.speech);
    assert_true(ask_as(&b, "b", &plain, true, NULL)); /* has heard others */
    say(&b, "Hi");
    assert_false(is_still());
    speech_cancel(b.speech);
    s.n_links = 0; /* on no lane yet */
    ask_for(&b, "b", "Hi");
    s.n_links = 1;
    assert_true(b.speech->queued && is_still());
    speech_cancel(b.speech);
    assert_false(is_still());
    links[1].pid = 0;
    bury(pid);
    end_apart(&a, 1);
}

/* So long in a row, and half of the time. */
static void it_stands_still_for_half_of_the_time(void **state)
{
    static const struct {
        double after_s;
        bool is_still;
    } cases[] = {{0, true}, {0.5, true}, {0.125, false}, {0.5, false}, {0.125, true}, {0.5, true},
        {0.125, false}, {0.125, false}, {0.5, true}, {0.625, false},
        /* It ran for longer than it had to: that is no credit. */
        {5, true}, {0.5, true}, {0.125, false},
        /* Where this process stood still itself, it owes ten seconds at most. */
        {0.625, true}, {100, false}, {9.875, false}, {0.125, true}};
    struct asker a;
    (void)state;
    begin_apart();
    const pid_t pid = links[1].pid = idler();
    s.background.looked_at = now_s;
    ask_for(&a, "a", "Hi");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        now_s += cases[i].after_s;
        if (is_still() != cases[i].is_still) {
            fail_msg("%zu: %g s", i, s.background.still_s);
        }
    }
    links[1].pid = 0;
    bury(pid);
    end_apart(&a, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_goes_where_most_is_idle),
        cmocka_unit_test(only_a_whole_text_has_a_lane),
        cmocka_unit_test(who_gives_its_lane_back_is_told_when_it_is_free),
        cmocka_unit_test(it_waits_for_so_long),
        cmocka_unit_test(it_ends_with_the_first_wish_to_end),
        cmocka_unit_test(a_worker_of_their_own_ends_after_a_quiet_minute),
        cmocka_unit_test(it_stands_still_for_who_waits_for_a_first_sound),
        cmocka_unit_test(it_stands_still_for_half_of_the_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
