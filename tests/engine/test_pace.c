/* SPDX-License-Identifier: Apache-2.0
 * When frames wait for their sound: a machine by its times and a listener are played through, frame by frame. */
#include "tests/support.h"

#include "engine/pace.h"

enum { MOST_TOGETHER = 8, N_FRAMES = 200 };

static const double frame_s = 0.08;

struct machine {
    double codes_s, call_s,
        each_s; /* of a frame's codes; of a call of the vocoder, and of each frame in it */
    int together;
    double stop_s; /* once, before frame 100 */
};

struct outcome {
    int n_calls[MOST_TOGETHER + 1]; /* by the frames in them */
    double waited_s, late_waited_s; /* by the listener: in all, and from frame 100 on */
};

static struct outcome play(const struct machine *m)
{
    struct outcome outcome = {{0}, 0, 0};
    double now = 0, heard_since = 0, sound_s = 0;
    int sounded = 0, made = 0;
    while (sounded < N_FRAMES) {
        now += m->codes_s + (made == 100 ? m->stop_s : 0);
        made++;
        int n = made - sounded;
        struct pace pace = {m->codes_s, sounded ? sound_s / sounded : 0, frame_s, outcome.waited_s};
        double ahead = sounded * frame_s - (now - heard_since);
        if (sounded > 0 && n < m->together && made < N_FRAMES && pace_waits(&pace, n, ahead)) {
            continue;
        }
        now += m->call_s + n * m->each_s;
        sound_s += m->call_s + n * m->each_s;
        double late = now - heard_since - sounded * frame_s;
        if (sounded == 0) {
            heard_since = now;
        } else if (late > 0) {
            heard_since += late;
            outcome.waited_s += late;
            outcome.late_waited_s += sounded >= 100 ? late : 0;
        }
        sounded = made;
        outcome.n_calls[n]++;
    }
    return outcome;
}

static void test_fast_enough(void **state)
{
    (void)state;
    const struct machine machine = {.codes_s = 0.042, .call_s = 0.013, .each_s = 0.010, .together = 4};
    struct outcome o = play(&machine);
    assert_true(o.waited_s == 0);
    assert_in_range(o.n_calls[1], 1, 10); /* while little is in hand */
    assert_true(o.n_calls[4] >= 45);
}

static void test_fast_enough_together(void **state)
{
    (void)state; /* 85 ms a frame one by one, 73 in fours */
    const struct machine machine = {.codes_s = 0.060, .call_s = 0.016, .each_s = 0.009, .together = 4};
    struct outcome o = play(&machine);
    assert_true(o.waited_s > 0.1 && o.waited_s < 0.5);
    assert_true(o.late_waited_s == 0);
    assert_true(o.n_calls[3] + o.n_calls[4] >= 40);
}

static void test_never_fast_enough(void **state)
{
    (void)state;
    const struct machine machine = {.codes_s = 0.120, .call_s = 0.020, .each_s = 0.015, .together = 4};
    struct outcome o = play(&machine);
    assert_in_range(o.n_calls[1], 1, 4);
    assert_true(o.n_calls[4] >= 48);
}

static void test_at_once_on_a_device(void **state)
{
    (void)state;
    const struct machine machine = {
        .codes_s = 0.0014, .call_s = 0.0005, .each_s = 0.0001, .together = MOST_TOGETHER};
    struct outcome o = play(&machine);
    assert_true(o.waited_s == 0);
    assert_int_equal(o.n_calls[1], 1);
    assert_int_equal(o.n_calls[MOST_TOGETHER], N_FRAMES / MOST_TOGETHER - 1);
}

/* Somebody else had the machine for a while: frames come singly until there is enough in hand again, at once. */
static void test_after_a_stop(void **state)
{
    (void)state;
    const struct machine machine = {
        .codes_s = 0.050, .call_s = 0.010, .each_s = 0.010, .together = 4, .stop_s = 3};
    const struct machine even = {.codes_s = 0.050, .call_s = 0.010, .each_s = 0.010, .together = 4};
    struct outcome o = play(&machine), without = play(&even);
    assert_true(without.waited_s == 0);
    assert_true(o.waited_s < machine.stop_s);
    assert_true(o.n_calls[1] > without.n_calls[1]);
}

/* With nothing in hand and a machine that is quick there is nothing to gain by waiting. */
static void test_quick_and_late(void **state)
{
    (void)state;
    const struct pace quick = {.codes_s = 0.05, .sound_s = 0.02, .frame_s = frame_s, .waited_s = 9};
    const struct pace slow = {.codes_s = 0.07, .sound_s = 0.02, .frame_s = frame_s, .waited_s = 9};
    const struct pace early = {.codes_s = 0.07, .sound_s = 0.02, .frame_s = frame_s, .waited_s = 0.05};
    assert_false(pace_waits(&quick, 1, -1));
    assert_true(pace_waits(&slow, 1, -1));
    assert_false(pace_waits(&early, 1, -1));
    assert_true(pace_waits(&early, 1, 0.2));
}

/* At each bound: what is just enough is enough. The numbers are such that sums of them are exact. */
static void test_bounds(void **state)
{
    static const struct pace even = {
        .codes_s = 0.0625, .sound_s = 0.0625, .frame_s = 0.125, .waited_s = 9};
    static const struct pace slow = {
        .codes_s = 0.125, .sound_s = 0.0625, .frame_s = 0.125, .waited_s = 0.1};
    struct pace later = slow;
    (void)state;
    later.waited_s = 0.101;
    assert_false(pace_waits(&even, 1, -1)); /* as quick as sound is heard */
    assert_false(pace_waits(&slow, 1, -1)); /* a tenth of a second has been waited, and no more */
    assert_true(pace_waits(&later, 1, -1));
    for (int n = 1; n < 4; n++) {
        const double needed = 1.5 * (0.0625 + (n + 1) * 0.0625);
        assert_false(pace_waits(&even, n, needed));
        assert_true(pace_waits(&even, n, needed + 0.001));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fast_enough),
        cmocka_unit_test(test_fast_enough_together),
        cmocka_unit_test(test_never_fast_enough),
        cmocka_unit_test(test_at_once_on_a_device),
        cmocka_unit_test(test_after_a_stop),
        cmocka_unit_test(test_quick_and_late),
        cmocka_unit_test(test_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
