/* SPDX-License-Identifier: Apache-2.0
 * Which worker a speech goes to, to the millisecond and the byte: how long its first sound takes there, when a crowd is
 * one, and what a worker is known to have read. */
#include "tests/support.h"

#include <math.h>
#include <string.h>

#include "server/speech/speech_parts.h"

enum { WORKERS = 3, MOST = 24 };

static struct serve_options options;
static struct server s;
static struct link links[WORKERS];
static const struct speech_sink sink;
static struct speech all[MOST];
static int n_all;

/* Workers like each other, that have told nothing of how long things take. */
static void build(void)
{
    options = (struct serve_options){.queue = 8, .patience_ms = 300};
    s = (struct server){.options = &options, .links = links, .n_links = WORKERS};
    TAILQ_INIT(&s.queued);
    TAILQ_INIT(&s.background.queued);
    admission_begin(&s);
    s.admission.seconds_a_byte = 0.125;
    for (int i = 0; i < WORKERS; i++) {
        links[i] = (struct link){.server = &s,
            .number = i,
            .is_ready = true,
            .lanes = 20,
            .heard = clock_seconds(),
            .beat = {.capacity = 20}};
        TAILQ_INIT(&links[i].running);
    }
    n_all = 0;
}

/* One whose listener waits for its first sound. */
static struct speech *make(size_t text_bytes, uint64_t beginning)
{
    static uint32_t id;
    struct speech *p = &all[n_all++];
    assert_true(n_all <= MOST);
    *p = (struct speech){.server = &s,
        .id = ++id,
        .sink = &sink,
        .beginning = beginning,
        .speed = 1,
        .text_bytes = text_bytes,
        .text_ended = true};
    return p;
}

static void put(struct speech *p, struct link *l)
{
    p->link = l;
    speech_begins(p);
    TAILQ_INSERT_TAIL(&l->running, p, entry);
    l->n_running++;
}

static void take_away(struct speech *p)
{
    TAILQ_REMOVE(&p->link->running, p, entry);
    p->link->n_running--;
}

static int place(const struct speech *p)
{
    const struct link *l = speech_place(p, clock_seconds());
    return l ? l->number : -1;
}

/* A prompt took so long where its worker had read the voice before, or not. */
static void learn(struct speech *p, double prefill_s, int n_pieces, int n_retries)
{
    p->end.model =
        (struct wire_done){.n_pieces = n_pieces, .n_retries = n_retries, .prefill_s = prefill_s};
    speech_began(p);
}

static bool near(double a, double b)
{
    return fabs(a - b) < 1e-12;
}

/* ---- What workers have read ---- */

static void a_beginning_is_known_by_all_that_opens_it(void **state)
{
    const struct wire_open usual = {
        .voice_name = "v", .voice_file = "f", .language = "l", .instruct = "i"};
    struct wire_open others[] = {usual, usual, usual, usual, usual, usual, usual, usual};
    (void)state;
    others[0].voice_name = "w";
    others[1].voice_file = NULL;
    others[2].language = "";
    others[3].instruct = "j";
    others[4].layout = 1; /* no more like another voice than a voice is */
    others[5].voice_name = "vf", others[5].voice_file = ""; /* the same letters in another place */
    others[6].language = NULL;
    others[7].instruct = NULL;
    const uint64_t hash = speech_beginning(&usual);
    struct wire_open same = usual;
    same.seed = 7, same.max_frames = 9, same.live = true;
    assert_true(speech_beginning(&same) == hash);
    for (int i = 0; i < 8; i++) {
        assert_true(speech_beginning(&others[i]) != hash);
        for (int k = 0; k < i; k++) {
            assert_true(speech_beginning(&others[i]) != speech_beginning(&others[k]));
        }
    }
}

static void what_was_read_is_kept_for_so_many(void **state)
{
    (void)state;
    build();
    struct speech *p = make(40, 7);
    put(p, &links[1]);
    assert_true(p->is_new && s.beginnings[0].hash == 7 && s.beginnings[0].used == p->id);
    assert_int_equal(s.beginnings[0].where, 2);
    put(make(40, 7), &links[1]);
    assert_false(all[1].is_new);
    put(make(40, 7), &links[2]);
    assert_true(all[2].is_new && s.beginnings[0].where == 6 && s.beginnings[0].used == all[2].id);
    links[0].is_idle = true; /* keeps nothing */
    put(make(40, 7), &links[0]);
    put(make(40, 7), &links[0]);
    assert_true(all[4].is_new && s.beginnings[0].where == 6);
    links[0].is_idle = false;
    speech_worker_ready(&links[1]); /* a new one has read nothing */
    assert_int_equal(s.beginnings[0].where, 4);
    /* As many as there is room for; then the one goes that was used least lately. */
    for (uint64_t i = 1; i < BEGINNINGS; i++) {
        n_all = 5;
        put(make(40, 100 + i), &links[0]);
        take_away(&all[5]);
        assert_true(s.beginnings[i].hash == 100 + i && s.beginnings[i].where == 1);
    }
    n_all = 5;
    put(make(40, 7), &links[0]);
    assert_true(s.beginnings[0].hash == 7 && s.beginnings[0].where == 5);
    put(make(40, 200), &links[0]);
    assert_true(s.beginnings[0].hash == 7 && s.beginnings[1].hash == 200);
    assert_true(all[6].is_new && s.beginnings[1].where == 1 && s.beginnings[1].first_s <= 0);
}

static void times_of_beginnings_are_means(void **state)
{
    (void)state;
    build();
    struct speech *first = make(40, 7), *again = make(40, 7), *other = make(40, 8);
    put(other, &links[0]), put(first, &links[0]), put(again, &links[0]);
    learn(first, 1, 1, 0);
    learn(again, 0.5, 1, 0);
    assert_true(near(s.beginnings[1].first_s, 1) && near(s.beginnings[1].again_s, 0.5));
    learn(first, 2, 1, 0);
    learn(again, 0.25, 1, 0);
    assert_true(near(s.beginnings[1].first_s, 1.3) && near(s.beginnings[1].again_s, 0.425));
    learn(first, 9, 2, 0); /* the time of more than one prompt tells nothing */
    learn(first, 9, 1, 1);
    learn(first, 9, 0, 0);
    assert_true(near(s.beginnings[1].first_s, 1.3) && s.beginnings[0].first_s <= 0);
    s.beginnings[1].used = 0; /* it is forgotten */
    learn(first, 9, 1, 0);
    assert_true(near(s.beginnings[1].first_s, 1.3));
}

/* ---- The choice ---- */

/* Those that are sooner by less than five milliseconds are as good; then the one with less to do, then one that knows
 * the voice, then the first. */
static void who_is_soonest_has_it(void **state)
{
    (void)state;
    build();
    struct speech *p = make(40, 7), *other = make(40, 8);
    assert_int_equal(place(p), 0);
    links[0].beat.next_step_s = 0.004; /* and half a step before it */
    assert_int_equal(place(p), 1);
    links[0].beat.next_step_s = 0.003;
    assert_int_equal(place(p), 0);
    links[0].beat.next_step_s = 0;
    put(other, &links[0]);
    assert_int_equal(place(p), 1); /* has less to do */
    struct speech *third = make(40, 7);
    put(third, &links[2]);
    take_away(third);
    assert_int_equal(place(p), 2); /* has read it */
    put(make(40, 9), &links[2]);
    assert_int_equal(place(p), 1);
    links[1].lanes = 0;
    assert_int_equal(place(p), 2);
    links[2].lanes = 10; /* one of ten is more than one of twenty */
    assert_int_equal(place(p), 0);
    links[2].lanes = 20;
    options.paced = true;
    links[0].beat.capacity = 10; /* likewise of what it keeps up with */
    assert_int_equal(place(p), 2);
    links[2].beat.capacity = 0; /* not known: its lanes */
    assert_int_equal(place(p), 2);
    links[2].beat.capacity = 4;
    links[2].lanes = 2;
    assert_int_equal(place(p), 0);
    links[0].lanes = links[2].lanes = 0;
    assert_int_equal(place(p), -1);
}

/* Steps since the worker has foretold one, prompts before its own, and its own. */
static void what_is_before_a_first_sound_is_reckoned(void **state)
{
    (void)state;
    build();
    struct speech *p = make(40, 7), *heard, *waits;
    links[1].lanes = 0;
    for (int i = 0; i < 3; i += 2) {
        links[i].lanes = links[i].beat.capacity = 1000; /* none has more to do than the other */
    }
    heard = make(40, 8);
    heard->first_samples = 1;
    put(heard, &links[0]);
    links[0].beat.lane_s = 0.004; /* one more than it has told of, and half as long again */
    assert_int_equal(place(p), 2);
    links[0].beat.n_open = 1;
    assert_int_equal(place(p), 2); /* has less to do */
    take_away(heard);
    assert_int_equal(place(p), 0); /* who has told of more than there are is not sooner for that */
    links[0].beat.lane_s = 0;
    waits = make(100, 8);
    put(waits, &links[0]);
    put(make(0, 9), &links[2]);
    links[0].beat.prompt_s = links[2].beat.prompt_s = 0.001;
    assert_int_equal(place(p), 2); /* 132 ms are before it, not 32 */
    waits->first_samples = 1;      /* its prompt is read */
    assert_int_equal(place(p), 0);
    waits->first_samples = 0;
    waits->background = true; /* what nobody waits for is read behind it */
    assert_int_equal(place(p), 0);
    waits->background = false;
    /* Of its own prompt 240 bytes at most, and what is there without text. */
    links[2].beat.prompt_s = 0;
    waits->first_samples = 1;
    static const struct {
        size_t text_bytes;
        double own_s;
    } prompts[] = {{5000, 0.272}, {241, 0.272}, {240, 0.272}, {239, 0.271}, {0, 0.032}};
    for (size_t i = 0; i < sizeof prompts / sizeof *prompts; i++) {
        p->text_bytes = prompts[i].text_bytes;
        links[2].beat.next_step_s = (prompts[i].own_s - 0.0055) / 1.5;
        assert_int_equal(place(p), 2);
        links[2].beat.next_step_s = (prompts[i].own_s - 0.0045) / 1.5; /* as good as sooner */
        assert_int_equal(place(p), 0);
    }
}

/* A voice is read anew where it was not read before: that takes what it took longer so far. */
static void a_new_voice_takes_longer(void **state)
{
    (void)state;
    build();
    struct speech *p = make(40, 7), *known = make(40, 7), *fresh = make(40, 7);
    links[2].lanes = 0;
    put(known, &links[1]);
    take_away(known);
    put(fresh, &links[1]);
    take_away(fresh);
    assert_true(known->is_new && !fresh->is_new);
    links[1].beat.next_step_s = 0.100 / 1.5; /* where it is known it takes a tenth of a second */
    assert_int_equal(place(p), 0);
    learn(known, 0.150, 1, 0);
    assert_int_equal(place(p), 0); /* what it takes there is not known yet */
    learn(fresh, 0.040, 1, 0);
    assert_int_equal(place(p), 1); /* 110 ms more */
    s.beginnings[0].first_s = 0.130;
    assert_int_equal(place(p), 0); /* 90 */
    s.beginnings[0].first_s = 0;   /* never less than nothing */
    links[1].beat.next_step_s = 0.010 / 1.5;
    assert_int_equal(place(p), 0);
    s.n_links = 1; /* where there is one, nothing is looked up */
    assert_int_equal(place(p), 0);
}

/* ---- What is so now ---- */

/* First sounds are promised where sixteen wait for theirs: in the time that frames leave, but half of it at most. */
static void sixteen_are_a_crowd(void **state)
{
    (void)state;
    build();
    s.n_links = 1;
    options.paced = true;
    links[0].beat.prompt_s = 0.001;
    links[0].beat.next_step_s = 0.020;
    for (int i = 0; i < 15; i++) {
        put(make(68, 7), &links[0]); /* 100 ms each */
        all[i].paused = true;        /* takes no frames */
    }
    links[0].beat.n_open = 16;
    assert_true(speech_look(&s, false, clock_seconds()).first_s <= 0);
    put(make(68, 7), &links[0]);
    all[15].paused = true;
    assert_true(near(speech_look(&s, false, clock_seconds()).first_s, 0.030 + 1.6 / 0.5));
    all[3].first_samples = 1;
    assert_true(speech_look(&s, false, clock_seconds()).first_s <= 0);
    all[3].first_samples = 0;
    all[3].background = true;
    assert_true(speech_look(&s, false, clock_seconds()).first_s <= 0);
    all[3].background = false;
    for (int i = 0; i < 16; i++) {
        all[i].paused =
            false; /* each needs a lane: sixteen of twenty, of which a full house takes 80 % */
    }
    assert_true(near(speech_look(&s, false, clock_seconds()).first_s, 0.030 + 1.6 / (1 - 0.64)));
    links[0].lanes = 100;
    links[0].beat.capacity = 16; /* all that it can make, and no more than that */
    assert_true(near(speech_look(&s, false, clock_seconds()).first_s, INFINITY) ||
                isinf(speech_look(&s, false, clock_seconds()).first_s)); /* it has no lane free */
    options.paced = false;
    assert_true(near(speech_look(&s, false, clock_seconds()).first_s, 0.030 + 1.6 / (1 - 0.8)));
    links[0].beat.capacity = 4;
    assert_true(near(speech_look(&s, false, clock_seconds()).first_s, 0.030 + 1.6 / (1 - 0.8)));
}

/* While more come than fit, one of 64 lanes, and the last of fewer, is open to nobody while two wait for their first
 * sound who have come less than a step ago. */
static void the_last_lanes_are_filled_two_at_a_time(void **state)
{
    (void)state;
    build();
    s.n_links = 1;
    options.paced = true;
    links[0].beat.capacity = 1000;
    for (int i = 0; i < 19; i++) {
        put(make(40, 7), &links[0]);
        all[i].read_at = 70;
        all[i].end.queue_s = 6.976;
        all[i].first_samples = 1;
    }
    all[2].first_samples = all[9].first_samples = 0;
    assert_int_equal(speech_look(&s, false, 77).n_free, 1); /* nobody has been refused lately */
    s.admission.crowded_since = 76;
    assert_int_equal(speech_look(&s, false, 77).n_free, 0);
    assert_int_equal(speech_look(&s, true, 77).n_free, 1); /* who is in has it */
    assert_int_equal(speech_free_lanes(&links[0], 77), 1);
    all[9].first_samples = 1;
    assert_int_equal(speech_look(&s, false, 77).n_free, 1);
    all[9].first_samples = 0;
    all[9].background = true; /* nobody waits for that */
    assert_int_equal(speech_look(&s, false, 77).n_free, 1);
    all[9].background = false;
    all[9].end.queue_s = 6.974; /* it has had a lane for 26 ms; a session may wait for its text */
    assert_int_equal(speech_look(&s, false, 77).n_free, 1);
    all[9].end.queue_s = 6.976;
    options.paced = false; /* all lanes run, however late */
    assert_int_equal(speech_look(&s, false, 77).n_free, 1);
    options.paced = true;
    take_away(&all[18]);
    assert_int_equal(speech_look(&s, false, 77).n_free, 2); /* not the last one */
    links[0].lanes = 128;
    links[0].n_running = 126; /* of 128 lanes the last two */
    assert_int_equal(speech_look(&s, false, 77).n_free, 0);
    links[0].n_running = 125;
    assert_int_equal(speech_look(&s, false, 77).n_free, 3);
    links[0].lanes = 127;
    assert_int_equal(speech_look(&s, false, 77).n_free, 2);
    /* Each worker has its own: one that is open to nobody says nothing of how soon a crowd hears its first sounds. */
    links[0].n_running = 126;
    s.n_links = 2;
    links[1].lanes = 1;
    assert_int_equal(speech_look(&s, false, 77).n_free, 1);
    links[1].is_leaving = true;
    assert_true(isinf(speech_look(&s, false, 77).first_s));
    assert_true(speech_look(&s, true, 77).first_s <= 0);
}

/* The soonest of those that have a lane; a patient one counts all who wait, others those who are not patient. */
static void the_house_is_looked_at_as_a_whole(void **state)
{
    struct speech *p[3];
    (void)state;
    build();
    for (int i = 0; i < 3; i++) {
        p[i] = make(40, 7);
        p[i]->patient = i > 0;
        TAILQ_INSERT_TAIL(&s.queued, p[i], entry);
    }
    struct admission_now now = speech_look(&s, false, 77);
    assert_true(now.time == 77 && now.n_free == 60 && now.n_before == 1 && now.n_ending == 0);
    assert_int_equal(speech_look(&s, true, 77).n_before, 3);
    assert_int_equal(speech_room(&s), 60);
    links[1].lanes = 5;
    links[2].is_leaving = true;
    assert_int_equal(speech_look(&s, false, clock_seconds()).n_free, 25);
    struct speech *ends = make(0, 7);
    put(ends, &links[1]);
    put(make(8000, 7), &links[1]);
    assert_int_equal(speech_look(&s, false, clock_seconds()).n_ending, 1);
    ends->background = true; /* makes room at once */
    assert_int_equal(speech_look(&s, false, clock_seconds()).n_ending, 0);
    ends->background = false;
    ends->paused = true; /* its listener does not read */
    assert_int_equal(speech_look(&s, false, clock_seconds()).n_ending, 0);
    ends->paused = false;
    links[1].is_leaving = true; /* what it frees is nobody's */
    assert_int_equal(speech_look(&s, false, clock_seconds()).n_ending, 0);
}

/* What a speech needs of its worker: nothing where it waits for its client. */
static void who_waits_for_its_client_needs_nothing(void **state)
{
    (void)state;
    build();
    s.n_links = 1;
    options.paced = true;
    links[0].beat.capacity = links[0].lanes = 2;
    struct speech *p = make(8000, 7);
    const double now = clock_seconds();
    put(p, &links[0]);
    links[0].n_running = 0;
    assert_int_equal(speech_free_lanes(&links[0], now), 1);
    for (int i = 0; i < 5; i++) {
        p->paused = i == 0;
        p->ended = i == 1;
        p->background = i == 2;
        p->text_ended = i != 3; /* its text has not come for a second */
        p->moved_at = now - 1;
        assert_int_equal(speech_free_lanes(&links[0], now), i == 4 ? 1 : 2);
        p->moved_at = now - 0.999;
        assert_int_equal(speech_free_lanes(&links[0], now), i >= 3 ? 1 : 2);
    }
    p->first_samples = 1; /* so much sound in hand that it needs a quarter, and so does another */
    p->heard_until = now + 60;
    assert_int_equal(speech_free_lanes(&links[0], now), 2);
    p->heard_until = now + 50;
    assert_int_equal(speech_free_lanes(&links[0], now), 1);
    p->first_samples = 0; /* nothing of it is heard yet */
    p->heard_until = now + 60;
    assert_int_equal(speech_free_lanes(&links[0], now), 1);
}

/* An item of a batch waits for the one before it, and not for another request's. */
static void who_is_patient_waits_for_its_own(void **state)
{
    (void)state;
    build();
    struct speech *runs = make(40, 7), *p = make(40, 7);
    strcpy(runs->request, "req-1"), strcpy(p->request, "req-1");
    p->patient = true;
    assert_false(speech_waits_for_its_own(p));
    put(runs, &links[2]);
    assert_true(speech_waits_for_its_own(p));
    p->patient = false;
    assert_false(speech_waits_for_its_own(p));
    p->patient = true;
    strcpy(p->request, "req-2");
    assert_false(speech_waits_for_its_own(p));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_beginning_is_known_by_all_that_opens_it),
        cmocka_unit_test(what_was_read_is_kept_for_so_many),
        cmocka_unit_test(times_of_beginnings_are_means),
        cmocka_unit_test(who_is_soonest_has_it),
        cmocka_unit_test(what_is_before_a_first_sound_is_reckoned),
        cmocka_unit_test(a_new_voice_takes_longer),
        cmocka_unit_test(sixteen_are_a_crowd),
        cmocka_unit_test(the_last_lanes_are_filled_two_at_a_time),
        cmocka_unit_test(the_house_is_looked_at_as_a_whole),
        cmocka_unit_test(who_waits_for_its_client_needs_nothing),
        cmocka_unit_test(who_is_patient_waits_for_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
