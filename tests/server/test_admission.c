/* SPDX-License-Identifier: Apache-2.0
 * Who is taken, and what the others are told: the bounds of admission, on workers that are posed. */
#include "tests/support.h"

#include <math.h>
#include <string.h>

#include "server/speech/admission.h"

enum { WORKERS = 3 };

struct house {
    struct serve_options options;
    struct server server;
    struct link links[WORKERS];
};

/* Three workers with four lanes each, that make four speeches each as fast as they are heard. */
static struct house *build(void)
{
    static struct house h;
    memset(&h, 0, sizeof h);
    h.options = (struct serve_options){.paced = true, .queue = 8, .patience_ms = 500};
    h.server = (struct server){.options = &h.options,
        .links = h.links,
        .n_links = WORKERS,
        .ready = {.sample_rate = 24000, .frame_samples = 1920}};
    admission_begin(&h.server);
    for (int i = 0; i < WORKERS; i++) {
        h.links[i] = (struct link){.server = &h.server,
            .is_ready = true,
            .lanes = 4,
            .heard = clock_seconds(),
            .beat = {.capacity = 4}};
    }
    return &h;
}

static bool near(double a, double b)
{
    return fabs(a - b) < 1e-9;
}

static void means_follow_what_was_spoken(void **state)
{
    struct server *s = &build()->server;
    (void)state;
    assert_true(near(s->admission.seconds_a_byte, 1 / 14.0) && near(s->admission.speech_s, 4));
    assert_true(s->admission.crowded_since <= 0 && s->admission.quiet_since <= 0);
    admission_learn(s, 100, 30); /* a long one counts as one of 20 s */
    assert_true(near(s->admission.speech_s, 5.6));
    assert_true(near(s->admission.seconds_a_byte, 1 / 14.0 + 0.1 * (0.3 - 1 / 14.0)));
    double before = s->admission.seconds_a_byte;
    admission_learn(s, 0, 2);
    assert_true(near(s->admission.speech_s, 5.24) && near(s->admission.seconds_a_byte, before));
    admission_learn(s, 1, 0);
    assert_true(
        near(s->admission.speech_s, 5.24 * 0.9) && near(s->admission.seconds_a_byte, before * 0.9));
}

static void a_speech_needs_what_is_left_of_it(void **state)
{
    struct server *s = &build()->server;
    static const struct {
        struct admission_speech p;
        double need;
    } cases[] = {{{80, 1, 0, 0}, 1}, {{80, 2, 2, 1}, 0.75}, /* 3 s are left, one is in hand */
        {{80, 1, 9.5, 1}, 0.5}, {{80, 1, 100, 3}, 0.25},    /* never nearer to its end than a second */
        {{8000, 1, 0, 5}, 0.8}, {{80, 0.25, 10, 20}, 0.5},  /* nor farther than twenty */
        {{80, 1, 5, -3}, 1}};
    (void)state;
    s->admission.seconds_a_byte = 0.125;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_true(near(admission_need(s, &cases[i].p), cases[i].need));
    }
}

static void bytes_of_a_sound_are_reckoned(void **state)
{
    static const struct {
        struct encode_settings sound;
        double bytes; /* of 4 s at half the speed of hearing, and a quarter more */
    } cases[] = {{{.format = ENCODE_PCM}, 480000}, {{.format = ENCODE_WAV}, 480000},
        {{.format = ENCODE_PCM, .sample_rate = 8000, .samples = SAMPLES_F32}, 320000},
        {{.format = ENCODE_WAV, .sample_rate = 8000, .samples = SAMPLES_ALAW}, 80000},
        {{.format = ENCODE_FLAC}, 480000}, {{.format = ENCODE_FLAC, .sample_rate = 16000}, 320000},
        {{.format = ENCODE_MP3}, 160000}, {{.format = ENCODE_AAC}, 160000},
        {{.format = ENCODE_OPUS, .bit_rate = 8000}, 10000},
        {{.format = ENCODE_MP3, .bit_rate = 8}, 10}};
    struct server *s = &build()->server;
    (void)state;
    s->admission.seconds_a_byte = 0.5;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fields f = {.input = "eight by", .sound = cases[i].sound};
        f.sound.speed = 0.5;
        assert_true(near(admission_bytes(s, &f), cases[i].bytes));
    }
}

static void lanes_are_free_as_far_as_they_are_not_promised(void **state)
{
    struct house *h = build();
    struct link *l = &h->links[0];
    (void)state;
    l->lanes = 6;
    l->n_running = 2;
    static const struct {
        double promised;
        int n_free;
    } cases[] = {{0, 4}, {0.25, 4}, {0.26, 3}, {2.25, 2}, {2.26, 1}, {3.25, 1}, {3.26, 0}, {9, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(admission_free(l, cases[i].promised), cases[i].n_free);
    }
    h->options.paced = false; /* all lanes then, whatever is promised */
    assert_int_equal(admission_free(l, 9), 4);
    h->options.paced = true;
    l->beat.capacity = 0; /* not known */
    assert_int_equal(admission_free(l, 9), 4);
    l->n_running = 7;
    assert_int_equal(admission_free(l, 0), 0);
    l->beat.capacity = 4;
    assert_int_equal(admission_free(l, 0), 0);
}

/* Whether a worker makes just so many seconds of sound in a second, for so many lanes that run. */
static bool makes(struct house *h, double speed, int n_running)
{
    struct link *l = &h->links[0];
    const double left_s = 0.5 * speed / n_running; /* of 100 s of sound, within half a second */
    struct admission_speech in_time = {800, 1, 100 - left_s, 0},
                            late = {800, 1, 100 - left_s - 1e-6, 0};
    l->n_running = n_running;
    return admission_ends_in_time(l, &in_time, true) && !admission_ends_in_time(l, &late, true);
}

static void a_speech_ends_as_fast_as_its_worker_goes(void **state)
{
    struct house *h = build();
    struct link *l = &h->links[0];
    (void)state;
    h->server.admission.seconds_a_byte = 0.125;
    assert_true(makes(h, 4, 1) && makes(h, 4, 2) && makes(h, 4, 4));
    l->n_running = 0; /* as if it ran alone */
    assert_true(admission_ends_in_time(l, &(struct admission_speech){800, 1, 98, 0}, true));
    assert_false(admission_ends_in_time(l, &(struct admission_speech){800, 1, 97.9, 0}, true));
    l->beat.capacity = 2;
    assert_true(makes(h, 2, 1));
    l->beat.capacity = 9; /* no more than it has lanes */
    assert_true(makes(h, 4, 1));
    l->beat.capacity = 2;
    h->options.paced = false;
    assert_true(makes(h, 4, 1));
    l->beat.capacity = 0;
    h->options.paced = true;
    assert_true(makes(h, 4, 1));
    /* Slower than hearing: two speeches in steps of 320 ms, each of which gives 80. */
    l->beat = (struct wire_beat){.capacity = 4, .n_open = 1, .falls_behind = true, .next_step_s = 0.32};
    assert_true(makes(h, 0.5, 1) && makes(h, 0.5, 2));
    l->beat.next_step_s = 0.01; /* never more than its lanes */
    assert_true(makes(h, 4, 1));
    l->beat.next_step_s = 0; /* not known */
    assert_true(makes(h, 4, 1));
    l->beat.falls_behind = false;
    l->beat.next_step_s = 0.32;
    assert_true(makes(h, 4, 1));
}

static void a_text_that_still_comes_is_taken_to_be_as_long_as_others(void **state)
{
    struct house *h = build();
    struct link *l = &h->links[0];
    static const struct {
        size_t text_bytes;
        double made_s;
        bool all, more;
    } cases[] = {{0, 2, true, true}, {0, 1.99, true, false}, {80, 8, true, true},
        {80, 7.9, false, false}, {0, 100, true, true}};
    (void)state;
    h->server.admission.seconds_a_byte = 0.125;
    l->n_running = 1; /* 2 s are made within its patience */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct admission_speech p = {cases[i].text_bytes, 1, cases[i].made_s, 0};
        assert_int_equal(admission_ends_in_time(l, &p, true), cases[i].all);
        assert_int_equal(admission_ends_in_time(l, &p, false), cases[i].more);
    }
    const struct admission_speech done = {0, 1, 100, 0};
    l->n_running = 2; /* at least a second is always left of it */
    assert_true(admission_ends_in_time(l, &done, false));
    l->n_running = 3;
    assert_false(admission_ends_in_time(l, &done, false));
    assert_true(admission_ends_in_time(l, &done, true));
}

/* ---- Taken, or told why not ---- */

static struct refusal refusal;

static bool take(struct house *h, bool patient, const struct admission_now *now)
{
    refusal = (struct refusal){.status = 0};
    struct admission before = h->server.admission;
    bool full = admission_is_full(&h->server, now);
    assert_memory_equal(&h->server.admission, &before, sizeof before); /* only asked */
    bool taken = admission_take(&h->server, patient, now, &refusal);
    assert_true(patient || taken == !full);
    assert_int_equal(refusal.status, taken ? 0 : 503);
    return taken;
}

static void expect_refusal(const char *message, int retry_ms)
{
    assert_string_equal(refusal.message, message);
    assert_int_equal(refusal.retry_ms, retry_ms);
}

static void the_queue_has_an_end(void **state)
{
    struct house *h = build();
    struct server *s = &h->server;
    struct admission_now now = {.time = 100, .n_before = 7};
    (void)state;
    s->n_queued = 7;
    assert_true(take(h, true, &now));
    s->n_queued = now.n_before = 8;
    assert_false(take(h, true, &now)); /* nine before it, at three a second */
    expect_refusal("the request queue is full (8 waiting; try again in 3 s)", 3000);
    assert_false(take(h, false, &now));
    expect_refusal("the request queue is full (8 waiting; try again in 3 s)", 3000);
    now.n_free = 1;
    assert_true(take(h, true, &now));
    now = (struct admission_now){.time = 100, .n_before = 20000};
    assert_false(take(h, true, &now)); /* who comes again comes within an hour */
    expect_refusal("the request queue is full (8 waiting; try again in 3600 s)", 3600000);
    now.n_before = 0;
    assert_false(take(h, true, &now)); /* and not at once */
    expect_refusal("the request queue is full (8 waiting; try again in 1 s)", 1000);
    h->options.queue = 0;
    s->n_queued = 0;
    now.n_free = 1;
    assert_true(take(h, false, &now));
    now.n_free = 0;
    assert_false(take(h, true, &now));
}

/* Nobody is ready yet: the queue alone counts, and the lanes of a worker that rests. */
static void who_wakes_a_worker_is_taken(void **state)
{
    struct house *h = build();
    struct server *s = &h->server;
    struct admission_now now = {.time = 100, .n_free = 3, .first_s = 99};
    (void)state;
    for (int i = 0; i < WORKERS; i++) {
        h->links[i].is_ready = false;
    }
    s->n_queued = 8;
    assert_false(take(h, false, &now));
    expect_refusal("the request queue is full (8 waiting; try again in 1 s)", 1000);
    s->is_resting = true;
    assert_true(take(h, false, &now));
    s->n_queued = 9;
    assert_false(take(h, false, &now));
    assert_true(s->admission.crowded_since <= 0);
}

static void first_sounds_come_within_the_patience(void **state)
{
    struct house *h = build();
    struct admission_now now = {.time = 100, .n_free = 1, .first_s = 0.5};
    (void)state;
    h->server.admission.quiet_since = 99;
    assert_true(take(h, false, &now));
    assert_true(near(h->server.admission.quiet_since, 99) && h->server.admission.crowded_since <= 0);
    now.first_s = 0.6;
    assert_false(take(h, false, &now));
    expect_refusal("no more first sounds can be made in time (0 waiting; try again in 1 s)", 1000);
    assert_true(h->server.admission.quiet_since <= 0 && near(h->server.admission.crowded_since, 100));
    now.first_s = 3;
    now.time = 101;
    assert_false(take(h, false, &now));
    expect_refusal("no more first sounds can be made in time (0 waiting; try again in 3 s)", 2500);
    assert_true(near(h->server.admission.crowded_since, 100)); /* since then */
    assert_true(take(h, true, &now));
    h->options.paced = false;
    assert_true(take(h, false, &now));
}

static void a_burst_is_taken_and_a_crowd_is_not(void **state)
{
    static const char no_more[] =
        "no more speeches can be made as fast as they are heard (0 waiting; try again in 1 s)";
    struct house *h = build();
    struct server *s = &h->server;
    struct admission_now now = {.time = 100};
    (void)state;
    assert_true(take(h, false, &now)); /* one before it: a third of a second */
    assert_true(near(s->admission.crowded_since, 100));
    now.time = 100.5;
    assert_true(take(h, false, &now));
    now.time = 100.6; /* others have come for longer than the patience */
    assert_false(take(h, false, &now));
    expect_refusal(no_more, 1000);
    assert_true(take(h, true, &now));
    now.n_free = 1;
    assert_true(take(h, false, &now));
    now.n_free = 0;
    s->admission.crowded_since = 0;
    s->n_running = 1; /* who runs came at once as well, and has its length before it */
    assert_false(take(h, false, &now));
    expect_refusal(no_more, 1000);
    s->admission.crowded_since = 0;
    now.n_ending = 1; /* but one of them is as good as through */
    assert_true(take(h, false, &now));
    s->admission.crowded_since = 0;
    now.n_before = 1, now.n_ending = 2; /* two before it are too many */
    assert_false(take(h, false, &now));
    s->admission.crowded_since = 0;
    h->links[0].is_ready = false; /* two workers: half a second for one */
    now.n_before = 0;
    assert_true(take(h, false, &now));
    s->admission.speech_s = 4.1;
    s->admission.crowded_since = 0;
    assert_false(take(h, false, &now));
}

/* As long as one who waits is patient, to the millisecond, and no longer. */
static void a_wait_of_all_the_patience_is_in_time(void **state)
{
    struct house *h = build();
    struct server *s = &h->server;
    const struct admission_now now = {.time = 100};
    (void)state;
    s->n_running = 2; /* three speeches of four seconds on three workers that make four at once */
    h->options.patience_ms = 1000;
    s->admission.speech_s = 4;
    assert_true(take(h, false, &now));
    s->admission.crowded_since = 0;
    h->options.patience_ms = 999;
    assert_false(take(h, false, &now));
}

static void who_waits_is_told_when(void **state)
{
    struct house *h = build();
    struct admission_now now = {.time = 100};
    (void)state;
    h->options.patience_ms = 2500;
    h->server.n_running = 12; /* 13 of them take more than four seconds */
    assert_false(take(h, false, &now));
    expect_refusal(
        "no more speeches can be made as fast as they are heard (0 waiting; try again in 3 s)",
        2500); /* not before the patience has passed */
    now.n_before = 8;
    h->server.n_queued = 7;
    assert_false(take(h, false, &now));
    expect_refusal(
        "no more speeches can be made as fast as they are heard (7 waiting; try again in 3 s)", 3000);
}

static void patience_has_an_end(void **state)
{
    struct house *h = build();
    (void)state;
    assert_true(near(admission_most_wait(&h->server, false), 1.5));
    assert_true(near(admission_most_wait(&h->server, true), 30));
    h->options.patience_ms = 40000;
    assert_true(near(admission_most_wait(&h->server, false), 41));
    assert_true(near(admission_most_wait(&h->server, true), 41));
}

static void a_crowd_is_over_after_a_quiet_second(void **state)
{
    struct house *h = build();
    struct admission *a = &h->server.admission;
    struct admission_now now = {.time = 100, .n_free = 1};
    (void)state;
    a->crowded_since = 90;
    admission_tick(&h->server, &now);
    assert_true(near(a->quiet_since, 100) && near(a->crowded_since, 90));
    now.time = 101;
    admission_tick(&h->server, &now);
    assert_true(near(a->quiet_since, 100) && near(a->crowded_since, 90));
    h->server.n_queued = 1;
    now.time = 101.5;
    admission_tick(&h->server, &now); /* somebody waits */
    assert_true(a->quiet_since <= 0 && near(a->crowded_since, 90));
    h->server.n_queued = 0;
    now.n_free = 0;
    admission_tick(&h->server, &now); /* or could have no lane */
    assert_true(a->quiet_since <= 0);
    now.n_free = 1;
    admission_tick(&h->server, &now);
    now.time = 102.6;
    admission_tick(&h->server, &now);
    assert_true(near(a->quiet_since, 101.5) && a->crowded_since <= 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(means_follow_what_was_spoken),
        cmocka_unit_test(a_speech_needs_what_is_left_of_it),
        cmocka_unit_test(bytes_of_a_sound_are_reckoned),
        cmocka_unit_test(lanes_are_free_as_far_as_they_are_not_promised),
        cmocka_unit_test(a_speech_ends_as_fast_as_its_worker_goes),
        cmocka_unit_test(a_text_that_still_comes_is_taken_to_be_as_long_as_others),
        cmocka_unit_test(the_queue_has_an_end),
        cmocka_unit_test(who_wakes_a_worker_is_taken),
        cmocka_unit_test(first_sounds_come_within_the_patience),
        cmocka_unit_test(a_burst_is_taken_and_a_crowd_is_not),
        cmocka_unit_test(a_wait_of_all_the_patience_is_in_time),
        cmocka_unit_test(who_waits_is_told_when),
        cmocka_unit_test(patience_has_an_end),
        cmocka_unit_test(a_crowd_is_over_after_a_quiet_second),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
