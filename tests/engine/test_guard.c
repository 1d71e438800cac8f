/* SPDX-License-Identifier: Apache-2.0
 * The guard: each rule fires where docs/model.md says, and nowhere before. */
#include "tests/support.h"

#include "engine/guard.h"

enum { FRAME = 1920 };

static float loud[FRAME], quiet[FRAME];

static int fill(void **state)
{
    (void)state;
    for (int i = 0; i < FRAME; i++) {
        loud[i] = i == 7 ? 0.0011f : 0;
        quiet[i] = i == 7 ? 0.001f : 0;
    }
    return 0;
}

/* Frames until the guard ends a stream whose code 0 is code(i); -1: not within `limit`. */
static int frames_until(
    utter_finish want, int32_t (*code)(int), const float *pcm, bool consumed, int n_tokens, int limit)
{
    struct guard guard = {0};
    for (int i = 0; i < limit; i++) {
        utter_finish finish = guard_look(&guard, code(i), pcm, FRAME, consumed, n_tokens);
        if (finish != UTTER_FINISH_NONE) {
            assert_int_equal(finish, want);
            return i + 1;
        }
    }
    return -1;
}

static int32_t never_twice(int i)
{
    return i;
}

static int32_t stuck(int i)
{
    return i < 10 ? i : 1995;
}

static int32_t period_eight(int i)
{
    return i % 8;
}

static int32_t period_nine(int i)
{
    return i % 9;
}

static int32_t nearly_stuck(int i)
{
    return i % 125 == 124 ? i : 1995;
}

static void ceiling_counts_tokens(void **state)
{
    (void)state;
    assert_int_equal(frames_until(UTTER_FINISH_CEILING, never_twice, loud, true, 0, 1000), 125);
    assert_int_equal(frames_until(UTTER_FINISH_CEILING, never_twice, loud, true, 4, 1000), 225);
    assert_int_equal(frames_until(UTTER_FINISH_CEILING, never_twice, loud, false, 4, 1000), -1);
}

static void loops_end(void **state)
{
    (void)state;
    assert_int_equal(frames_until(UTTER_FINISH_LOOP, stuck, loud, true, 100, 1000), 10 + 1 + 125);
    assert_int_equal(frames_until(UTTER_FINISH_LOOP, period_eight, loud, false, 100, 1000), 8 + 125);
    assert_int_equal(frames_until(UTTER_FINISH_LOOP, period_nine, loud, false, 100, 1000), -1);
    assert_int_equal(frames_until(UTTER_FINISH_LOOP, nearly_stuck, loud, false, 100, 1000), -1);
}

static void silence_ends_once_the_text_is_in(void **state)
{
    (void)state;
    assert_int_equal(frames_until(UTTER_FINISH_SILENCE, never_twice, quiet, true, 0, 1000), 62);
    assert_int_equal(frames_until(UTTER_FINISH_SILENCE, never_twice, quiet, true, 30, 1000), 30 + 62);
    assert_int_equal(frames_until(UTTER_FINISH_SILENCE, never_twice, quiet, false, 0, 1000), -1);
}

static void sound_starts_the_silence_again(void **state)
{
    struct guard guard = {0};
    (void)state;
    for (int i = 0; i < 110; i++) {
        utter_finish finish = guard_look(&guard, i, i % 61 == 60 ? loud : quiet, FRAME, true, 0);
        assert_int_equal(finish, UTTER_FINISH_NONE);
    }
}

/* Behind the text speech may go on for less than on one of its tokens. */
static void places_end(void **state)
{
    (void)state;
    assert_int_equal(guard_follow(GUARD_SAID_FRAMES - 1, true), UTTER_FINISH_NONE);
    assert_int_equal(guard_follow(GUARD_SAID_FRAMES, true), UTTER_FINISH_SAID);
    assert_int_equal(guard_follow(GUARD_STUCK_FRAMES - 1, false), UTTER_FINISH_NONE);
    assert_int_equal(guard_follow(GUARD_STUCK_FRAMES, false), UTTER_FINISH_STUCK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_end),
        cmocka_unit_test(ceiling_counts_tokens),
        cmocka_unit_test(loops_end),
        cmocka_unit_test(silence_ends_once_the_text_is_in),
        cmocka_unit_test(sound_starts_the_silence_again),
    };
    return cmocka_run_group_tests_name("engine guard", tests, fill, NULL);
}
