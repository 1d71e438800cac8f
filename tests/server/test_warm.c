/* SPDX-License-Identifier: Apache-2.0
 * What a worker learns before its first client comes, of models whose steps take their time by a clock of this file
 * (the Makefile sends clock_gettime here); and, by that clock, since when a speech is waited for. */
#include "tests/support.h"

#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "server/worker/warm.h"
#include "utter.h"

enum { LANES = 256, FRAME_MS = 80 };

static struct {
    double now;
    double step_ms[LANES + 1]; /* by lanes */
    double prompt_ms;          /* of one lane, in n_pieces steps */
    int n_pieces, most_frames;
    int short_place, short_frames; /* where one ends before the others */
    bool is_restless;              /* who is held steps, too */
    int breaks_at;                 /* the step that fails; 0: none */
    int n_opened;                  /* readings, as far as they were asked for */
    int lacks_at;                  /* the one that is not opened; 0: none */
    utter_status why;              /* it is not */
    int n_steps, widths[64], n_widths, n_free_voices;
    utter_reading *readings[LANES];
} fake;

struct utter_reading {
    bool held;
    int n_pieces, n_frames, place;
};

int __wrap_clock_gettime(clockid_t which, struct timespec *time);
int __wrap_clock_gettime(clockid_t which, struct timespec *time)
{
    (void)which;
    *time = (struct timespec){(time_t)fake.now, (long)(1e9 * (fake.now - (double)(time_t)fake.now))};
    return 0;
}

/* ---- The library ---- */

utter_status utter_stream_options_init_sized(
    utter_stream_options *options, size_t size, const utter_model *model)
{
    (void)model;
    memset(options, 0, size);
    return UTTER_OK;
}

void utter_reading_options_init_sized(utter_reading_options *options, size_t size)
{
    memset(options, 0, size);
}

utter_status utter_reading_open(utter_reading **reading, utter_model *model,
    const utter_stream_options *voice, const utter_reading_options *options, utter_error *error)
{
    (void)model, (void)voice, (void)options, (void)error;
    int place = 0;
    if (++fake.n_opened == fake.lacks_at) {
        return fake.why;
    }
    while (place < LANES && fake.readings[place]) {
        place++;
    }
    assert_true(place < LANES);
    *reading = fake.readings[place] = memory_new(1, sizeof **reading);
    (*reading)->place = place;
    return UTTER_OK;
}

void utter_reading_free(utter_reading **reading)
{
    if (*reading) {
        fake.readings[(*reading)->place] = NULL;
        memory_free(*reading);
        *reading = NULL;
    }
}

utter_status utter_reading_text(utter_reading *r, const char *text, size_t n, utter_error *error)
{
    (void)r, (void)text, (void)n, (void)error;
    return UTTER_OK;
}

utter_status utter_reading_finish(utter_reading *r, utter_error *error)
{
    (void)r, (void)error;
    return UTTER_OK;
}

void utter_reading_hold(utter_reading *r, bool held)
{
    r->held = held;
}

utter_status utter_reading_get_stats(const utter_reading *r, utter_reading_stats *stats)
{
    stats->n_frames = (uint64_t)r->n_frames;
    stats->prefill_s = 1e-3 * fake.prompt_ms * r->n_pieces / fake.n_pieces;
    return UTTER_OK;
}

utter_status utter_reading_take(
    utter_reading *r, float *pcm, size_t capacity, size_t *n, utter_error *error)
{
    (void)r, (void)pcm, (void)capacity, (void)n, (void)error;
    fail();
    return UTTER_END;
}

const utter_word *utter_reading_words(utter_reading *r, uint64_t *first, size_t *n)
{
    (void)r, (void)first, (void)n;
    fail();
    return NULL;
}

const char *utter_model_voice_name(const utter_model *model, int index)
{
    (void)model;
    return index == 0 ? "clara" : NULL;
}

utter_status utter_voice_preset(
    utter_voice **voice, const utter_model *model, const char *name, utter_error *error)
{
    (void)model, (void)error;
    assert_string_equal(name, "clara");
    *voice = NULL;
    return UTTER_OK;
}

void utter_voice_free(utter_voice **voice)
{
    (void)voice;
    fake.n_free_voices++;
}

/* A piece of each prompt that is not read, or a frame. Each width is noted once in a row. */
utter_status utter_model_step(utter_model *model, utter_error *error)
{
    int n_frames = 0, n_moved = 0;
    (void)model, (void)error;
    if (++fake.n_steps == fake.breaks_at) {
        return UTTER_E_DEVICE;
    }
    for (int i = 0; i < LANES; i++) {
        utter_reading *r = fake.readings[i];
        const int most = i == fake.short_place ? fake.short_frames : fake.most_frames;
        if (!r || (r->held && !fake.is_restless) || r->n_frames == most) {
            continue;
        }
        n_moved++;
        if (r->n_pieces < fake.n_pieces) {
            r->n_pieces++;
            fake.now += 1e-3 * fake.prompt_ms / fake.n_pieces;
        }
        if (r->n_pieces == fake.n_pieces) {
            r->n_frames++;
            n_frames++;
        }
    }
    fake.now += 1e-3 * fake.step_ms[n_frames];
    if (n_frames > 0 && (fake.n_widths == 0 || fake.widths[fake.n_widths - 1] != n_frames)) {
        assert_true(fake.n_widths < 64);
        fake.widths[fake.n_widths++] = n_frames;
    }
    return n_moved > 0 ? UTTER_OK : UTTER_AGAIN;
}

/* ---- Checks ---- */

/* So many lanes take first_ms and each one more each_ms; from `slow` lanes on slow_ms are added. */
static void build(double first_ms, double each_ms, int slow, double slow_ms)
{
    memset(&fake, 0, sizeof fake);
    fake.prompt_ms = 2;
    fake.n_pieces = 1;
    fake.most_frames = 1000;
    fake.short_place = LANES;
    for (int n = 1; n <= LANES; n++) {
        fake.step_ms[n] = first_ms + each_ms * (n - 1) + (n >= slow ? slow_ms : 0);
    }
}

static struct schedule_clock warm(int n_lanes)
{
    static struct slot slots[LANES];
    struct schedule_clock clock = {0};
    utter_error error;
    assert_int_equal(warm_up((utter_model *)1, slots, n_lanes, &clock, &error), UTTER_OK);
    for (int i = 0; i < LANES; i++) {
        assert_null(fake.readings[i]);
        assert_null(slots[i].reading);
    }
    return clock;
}

static void assert_widths(const int *widths, int n)
{
    assert_int_equal(fake.n_widths, n);
    assert_memory_equal(fake.widths, widths, (size_t)n * sizeof *widths);
}

/* Eight lanes at 2.2 ms, nine at 19: 8 * 0.8 * 80 / 2.2 = 232 speeches, not the 256 that the line through one lane and
 * all of them says. */
static void the_last_quick_width_is_found(void **state)
{
    static const int widths[] = {1, 256, 2, 4, 8, 16, 12, 10, 9};
    (void)state;
    build(1.3, 0.13, 9, 16.5);
    struct schedule_clock clock = warm(LANES);
    assert_widths(widths, 9);
    assert_in_range(schedule_capacity(&clock, LANES, 1e-3 * FRAME_MS), 229, 233);
    /* So it is with any other number. */
    build(1.3, 0.13, 7, 16.5);
    clock = warm(LANES);
    assert_int_equal(fake.widths[fake.n_widths - 2], 6);
    assert_int_equal(fake.widths[fake.n_widths - 1], 7);
    assert_in_range(schedule_capacity(&clock, LANES, 1e-3 * FRAME_MS), 195, 198);
    build(1.3, 0.13, 17, 10); /* 32 lanes take less than twice 16: all these are on the line */
    clock = warm(LANES);
    assert_in_range(schedule_capacity(&clock, LANES, 1e-3 * FRAME_MS), 200, LANES);
}

static void where_all_pay_all_are_tried(void **state)
{
    static const int widths[] = {1, 100, 2, 4, 8, 16, 32, 64, 100};
    (void)state;
    build(1.5, 0.1, LANES + 1, 0);
    struct schedule_clock clock = warm(100);
    assert_widths(widths, 9);
    assert_int_equal(schedule_capacity(&clock, 100, 1e-3 * FRAME_MS), 100);
    assert_in_range((int)(1e6 * schedule_step_s(&clock, 64, 0)), 7700, 7900);
}

/* What is wider than a step may be is not taken, so it is not looked for either; but the width behind the last good one
 * is: an H200 in 8 bits takes 20 ms for 128 lanes and 28 for 129. */
static void long_steps_are_not_looked_into(void **state)
{
    static const int widths[] = {1, 24, 2, 4, 8, 16, 9};
    static const int leap[] = {1, 256, 2, 4, 8, 16, 32, 64, 128, 256, 129};
    (void)state;
    build(2.6, 2.4, LANES + 1, 0);
    warm(24);
    assert_widths(widths, 7);
    build(3.5, 0.13, 129, 8);
    struct schedule_clock clock = warm(LANES);
    assert_widths(leap, 11);
    assert_true(schedule_step_s(&clock, 128, 0) < 1e-3 * SCHEDULE_STEP_MS);
    assert_true(schedule_step_s(&clock, 129, 0) > 1e-3 * SCHEDULE_STEP_MS);
}

/* A model slower than hearing is open when one lane has shown it. */
static void a_slow_model_warms_one_lane(void **state)
{
    static const int widths[] = {1};
    (void)state;
    build(95, 80, LANES + 1, 0);
    struct schedule_clock clock = warm(24);
    assert_widths(widths, 1);
    assert_true(schedule_falls_behind(&clock, 1e-3 * FRAME_MS));
    assert_true(fake.now < 1);
}

/* A prompt that is read in pieces: only steps that make frames tell what a frame costs, and the pieces together what
 * a prompt does. */
static void pieces_of_a_prompt_are_no_frames(void **state)
{
    (void)state;
    build(40, 40, LANES + 1, 0);
    fake.prompt_ms = 60;
    fake.n_pieces = 5;
    struct schedule_clock clock = warm(4);
    assert_in_range((int)(1e6 * schedule_step_s(&clock, 1, 0)), 39900, 40100);
    const double text = slot_prompt_size(strlen("One, two, three."));
    assert_in_range((int)(1e6 * clock.prompt_s * text), 59000, 61000);
}

/* Speeches that end meanwhile tell nothing of a width that they are no longer part of. */
static void who_has_ended_is_not_counted(void **state)
{
    (void)state;
    build(1.5, 0.1, LANES + 1, 0);
    fake.most_frames = 5;
    struct schedule_clock clock = warm(8);
    assert_in_range((int)(1e6 * schedule_step_s(&clock, 1, 0)), 1400, 1600);
    fake.most_frames = 1; /* nothing at all */
    clock = warm(8);
    assert_true(clock.weight <= 0);
}

/* The search goes on without it. */
static void one_that_ends_by_chance_costs_no_width(void **state)
{
    static const int places[] = {1, 2, 5, 100, LANES - 1};
    (void)state;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        for (int frames = 1; frames < 5; frames++) {
            build(1.3, 0.13, 9, 16.5);
            fake.short_place = places[i];
            fake.short_frames = frames;
            struct schedule_clock clock = warm(LANES);
            assert_int_equal(fake.widths[fake.n_widths - 1], 9);
            assert_in_range(schedule_capacity(&clock, LANES, 1e-3 * FRAME_MS), 229, 233);
            build(1.5, 0.1, LANES + 1, 0);
            fake.short_place = places[i];
            fake.short_frames = frames;
            clock = warm(100);
            assert_in_range(fake.widths[fake.n_widths - 1], 99, 100);
            assert_int_equal(schedule_capacity(&clock, 100, 1e-3 * FRAME_MS), 100);
        }
    }
}

/* A model that cannot be timed opens nevertheless. */
static void steps_of_other_widths_tell_nothing(void **state)
{
    static const int widths[] = {1, 8};
    (void)state;
    build(1.5, 0.1, LANES + 1, 0);
    fake.is_restless = true;
    struct schedule_clock clock = warm(8);
    assert_widths(widths, 2);
    assert_in_range((int)(1e6 * schedule_step_s(&clock, 1, 0)), 1400, 1600);
}

static void a_broken_model_is_told(void **state)
{
    static struct slot slots[8];
    (void)state;
    for (int at = 1; at < 12; at++) {
        struct schedule_clock clock = {0};
        utter_error error;
        build(1.5, 0.1, LANES + 1, 0);
        fake.breaks_at = at;
        assert_int_equal(warm_up((utter_model *)1, slots, 8, &clock, &error), UTTER_E_DEVICE);
        assert_int_equal(fake.n_steps, at);
        for (int i = 0; i < 8; i++) {
            assert_null(fake.readings[i]);
        }
    }
}

/* A lane that cannot be opened: without memory for it the others do; a model that is broken is told. */
static void lanes_that_do_not_open(void **state)
{
    static struct slot slots[8];
    static const utter_status why[] = {UTTER_E_MEMORY, UTTER_E_DEVICE, UTTER_E_FILE};
    (void)state;
    for (int at = 1; at <= 9; at++) {
        for (int i = 0; i < 3; i++) {
            struct schedule_clock clock = {0};
            utter_error error;
            build(1.5, 0.1, LANES + 1, 0);
            fake.lacks_at = at;
            fake.why = why[i];
            assert_int_equal(
                warm_up((utter_model *)1, slots, 8, &clock, &error), i == 0 ? UTTER_OK : why[i]);
            assert_int_equal(fake.n_widths > 0, at > 1);
            for (int k = 0; k < 8; k++) {
                assert_null(fake.readings[k]);
            }
        }
    }
}

/* The rest of a sentence that came late: until then nobody waited for us, so others do not wait for it. */
static void who_waits_for_its_text_comes_with_it(void **state)
{
    struct wire_open open = {.live = true};
    (void)state;
    for (int background = 0; background < 2; background++) {
        struct slot slot = {0};
        utter_error error;
        build(1.5, 0.1, LANES + 1, 0);
        const double came = fake.now;
        open.background = background;
        assert_int_equal(slot_open(&slot, (utter_model *)1, 1, &open, NULL, &error), UTTER_OK);
        fake.now += 2; /* we were late: it has text */
        assert_int_equal(slot_text(&slot, "One", 3, &error), UTTER_OK);
        assert_true(slot.due == came);
        slot.starved = true;
        fake.now += 2;
        assert_int_equal(slot_text(&slot, ", two.", 6, &error), UTTER_OK);
        assert_true(slot.due == (background ? came : fake.now) && slot_can_step(&slot));
        slot.has_sound = slot.starved = true; /* what was made is heard until then, whatever comes */
        slot.due = came + 9;
        assert_int_equal(slot_text(&slot, " Three.", 7, &error), UTTER_OK);
        assert_true(slot.due == came + 9);
        slot_close(&slot);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_quick_width_is_found),
        cmocka_unit_test(where_all_pay_all_are_tried),
        cmocka_unit_test(long_steps_are_not_looked_into),
        cmocka_unit_test(a_slow_model_warms_one_lane),
        cmocka_unit_test(pieces_of_a_prompt_are_no_frames),
        cmocka_unit_test(who_has_ended_is_not_counted),
        cmocka_unit_test(one_that_ends_by_chance_costs_no_width),
        cmocka_unit_test(steps_of_other_widths_tell_nothing),
        cmocka_unit_test(a_broken_model_is_told),
        cmocka_unit_test(lanes_that_do_not_open),
        cmocka_unit_test(who_waits_for_its_text_comes_with_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
