/* SPDX-License-Identifier: Apache-2.0
 * How loud windows of samples are, where sound begins and where it ends: numbers that are exact, at each bound. */
#include "tests/support.h"

#include <string.h>

#include "words/loudness.h"

enum { WINDOW = 4, ROOM = 16 };

/* A window for each level, as samples of that level. */
static void add_windows(struct loudness *l, const float *levels, int n)
{
    for (int i = 0; i < n; i++) {
        const float pcm[WINDOW] = {levels[i], -levels[i], levels[i], -levels[i]};
        loudness_add(l, pcm, WINDOW);
    }
}

static struct loudness of_levels(const float *levels, int n)
{
    struct loudness l = {0};
    assert_int_equal(loudness_init(&l, WINDOW, ROOM, NULL), UTTER_OK);
    add_windows(&l, levels, n);
    assert_int_equal(l.n, n);
    return l;
}

static void a_window_is_a_root_of_mean_squares(void **state)
{
    static const float samples[] = {1, -1, 1, 1, 3, -1, -1, 5, 2};
    (void)state;
    struct loudness l = of_levels(NULL, 0);
    for (size_t i = 0; i < 9; i++) { /* one by one as well as many at once */
        loudness_add(&l, samples + i, 1);
        assert_int_equal(l.n, (i + 1) / WINDOW);
        assert_int_equal(l.n_sum, (i + 1) % WINDOW);
    }
    assert_true(l.at[0] == 1 && l.at[1] == 3 && l.sum == 4);
    assert_true(l.loudest[0] == 1 && l.loudest[1] == 3);
    loudness_add(&l, samples, 3);
    assert_int_equal(l.n, 3);
    assert_true(l.loudest[2] == 3 && l.at[2] < 3 && l.sum == 0 && l.n_sum == 0);
    loudness_fini(&l);
    assert_true(!l.at && !l.loudest && l.n == 0);
    loudness_fini(&l);
}

/* What stands in memory before the list or behind it is none of it. */
static void lists_have_bounds(void **state)
{
    float at[4] = {-1, -1, -1, -1}, loudest[4] = {9, -1, -1, 9};
    struct loudness l = {.window = WINDOW, .at = at + 1, .loudest = loudest + 1, .room = 2};
    static const float levels[] = {0.5f, 0.25f, 1};
    (void)state;
    add_windows(&l, levels, 3);
    assert_int_equal(l.n, 2);
    assert_int_equal(l.n_sum, 0);
    assert_true(at[0] == -1 && at[1] == 0.5f && at[2] == 0.25f && at[3] == -1);
    assert_true(loudest[0] == 9 && loudest[1] == 0.5f && loudest[2] == 0.5f && loudest[3] == 9);
}

static void quiet_is_a_hundredth_of_the_loudest_so_far(void **state)
{
    static const float levels[] = {0.01f, 0.25f, 1, 0.5f};
    (void)state;
    struct loudness l = of_levels(levels, 4);
    assert_true(loudness_threshold(&l, 0) == 0.0005f);
    assert_true(loudness_threshold(&l, 1) == 0.0005f); /* and at least that */
    assert_true(loudness_threshold(&l, 2) == 0.01f * 0.25f);
    assert_true(loudness_threshold(&l, 3) == 0.01f);
    assert_true(loudness_threshold(&l, 4) == 0.01f);
    loudness_fini(&l);
}

/* Windows 3 and 4 are loud, and 6; window 1 is a click. */
static const float CLICK[] = {0, 1, 0, 1, 1, 0, 1, 0};

static void check_onset(const struct loudness *l, int64_t from, int64_t end, int64_t wanted)
{
    const int64_t onset = loudness_onset(l, from, end);
    if (onset != wanted) {
        fail_msg("from %d to %d it begins at %d, not %d", (int)from, (int)end, (int)onset, (int)wanted);
    }
}

static void check_offset(const struct loudness *l, int64_t from, int64_t end, int64_t wanted)
{
    const int64_t offset = loudness_offset(l, from, end);
    if (offset != wanted) {
        fail_msg("from %d to %d it ends at %d, not %d", (int)from, (int)end, (int)offset, (int)wanted);
    }
}

static void sound_begins_with_two_loud_windows(void **state)
{
    (void)state;
    struct loudness l = of_levels(CLICK, 8);
    check_onset(&l, 0, 32, 12);
    check_onset(&l, 4, 32, 12);
    check_onset(&l, 12, 32, 12);
    check_onset(&l, 13, 32, 13);
    check_onset(&l, 15, 32, 15);
    check_onset(&l, 16, 32, 16); /* 4 is followed by a quiet one, and so is 6: nothing begins */
    check_onset(&l, 17, 32, 17);
    check_onset(&l, 0, 16, 12); /* of the last window before the end none behind it is asked */
    check_onset(&l, 0, 13, 12);
    check_onset(&l, 0, 12, 0);
    check_onset(&l, 2, 5, 4);
    check_onset(&l, 0, 1000, 12); /* no more than there is */
    check_onset(&l, 40, 32, 40);
    loudness_fini(&l);
}

static void sound_ends_behind_the_last_loud_window(void **state)
{
    (void)state;
    struct loudness l = of_levels(CLICK, 8);
    check_offset(&l, 0, 32, 28);
    check_offset(&l, 0, 1000, 28);
    check_offset(&l, 0, 28, 28);
    check_offset(&l, 0, 27, 27); /* in a loud window */
    check_offset(&l, 0, 24, 20);
    check_offset(&l, 0, 21, 20);
    check_offset(&l, 0, 12, 8);
    check_offset(&l, 9, 12, 9);
    check_offset(&l, 8, 12, 8);
    check_offset(&l, 7, 12, 8);
    check_offset(&l, 0, 4, 0);
    check_offset(&l, 2, 4, 2);
    check_offset(&l, 30, 32, 30);
    loudness_fini(&l);
}

/* As loud as the bound is loud enough. */
static void the_bound_itself_is_loud(void **state)
{
    const float least = 0.0005f, below = 0.00049f;
    (void)state;
    const float even[] = {below, least, least, below};
    struct loudness l = of_levels(even, 4);
    l.at[1] = l.at[2] = least; /* not what rounding makes of it */
    check_onset(&l, 0, 16, 4);
    check_offset(&l, 0, 16, 12);
    l.at[1] = below;
    check_onset(&l, 0, 16, 0);
    l.at[1] = least, l.at[2] = below;
    check_onset(&l, 0, 16, 0);
    check_offset(&l, 0, 16, 8);
    loudness_fini(&l);
}

static void memory_that_is_missing_is_told(void **state)
{
    (void)state;
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        struct loudness l = {0};
        utter_error error = {.text = ""};
        const utter_status status = loudness_init(&l, WINDOW, ROOM, &error);
        assert_int_equal(status, support_failed() ? UTTER_E_MEMORY : UTTER_OK);
        assert_true(!status == !error.text[0]);
        loudness_fini(&l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_window_is_a_root_of_mean_squares),
        cmocka_unit_test(lists_have_bounds),
        cmocka_unit_test(quiet_is_a_hundredth_of_the_loudest_so_far),
        cmocka_unit_test(sound_begins_with_two_loud_windows),
        cmocka_unit_test(sound_ends_behind_the_last_loud_window),
        cmocka_unit_test(the_bound_itself_is_loud),
        cmocka_unit_test(memory_that_is_missing_is_told),
    };
    return cmocka_run_group_tests_name("loudness", tests, NULL, NULL);
}
