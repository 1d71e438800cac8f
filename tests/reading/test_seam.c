/* SPDX-License-Identifier: Apache-2.0
 * The quiet between two pieces. */
#include "reading/seam.h"

#include <math.h>

#include "tests/support.h"

enum { RATE = 24000, MS = RATE / 1000, N = 200 * MS };

/* The second piece begins with `tick` samples of such a level, is quiet for `quiet` samples, and then speaks. Returns
 * the samples of it that left, and in *loud_at how many of them are quiet before the first that is not. */
static size_t join(size_t tick, float level, size_t quiet, size_t step, size_t *loud_at)
{
    struct seam seam = {.rate = RATE};
    struct samples out = {0};
    float pcm[N];
    for (size_t i = 0; i < N; i++) {
        pcm[i] = 0.5f;
    }
    seam_begin(&seam, 0.1, true);
    assert_int_equal(seam_put(&seam, pcm, N, &out, NULL), UTTER_OK);
    assert_int_equal(seam_end(&seam, false, &out, NULL), UTTER_OK);
    size_t before = out.n, n_loud = 0;
    for (size_t i = 0; i < tick + quiet; i++) {
        pcm[i] = i < tick ? level : 0;
    }
    seam_begin(&seam, 0.1, false);
    for (size_t at = 0; at < N; at += step) {
        assert_int_equal(
            seam_put(&seam, pcm + at, N - at < step ? N - at : step, &out, NULL), UTTER_OK);
    }
    assert_int_equal(seam_end(&seam, true, &out, NULL), UTTER_OK);
    for (*loud_at = before; *loud_at < out.n && out.at[*loud_at] == 0; ++*loud_at) {
    }
    *loud_at -= before;
    n_loud = out.n - before;
    samples_fini(&out);
    seam_fini(&seam);
    return n_loud;
}

/* A vocoder's tick and the quiet behind it go, but for 20 ms. */
static void a_tick_is_not_heard(void **state)
{
    (void)state;
    for (size_t step = 100; step <= N; step *= 7) {
        size_t loud_at, n = join(30 * MS, 0.02f, 20 * MS, step, &loud_at);
        assert_int_equal(loud_at, 20 * MS);
        assert_int_equal(n, N - 30 * MS);
    }
}

/* What is no tick stays: speech from the first sample on, also with a gap in it that is short, comes late, or stands
 * behind a loud beginning. */
static void speech_is_not_cut(void **state)
{
    static const struct {
        size_t tick;
        float level;
        size_t quiet;
    } cases[] = {
        {0, 0, 0}, {30 * MS, 0.02f, 5 * MS}, {80 * MS, 0.02f, 40 * MS}, {20 * MS, 0.2f, 30 * MS}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t loud_at, n = join(cases[i].tick, cases[i].level, cases[i].quiet, 1000, &loud_at);
        assert_int_equal(loud_at, 0);
        assert_int_equal(n, N);
    }
}

/* The bounds of a tick: 10 ms of quiet behind it, which end in the first 60 ms, and less loud than 0.06. */
static void a_tick_has_bounds(void **state)
{
    enum { QUIET = 10 * MS, ONSET = 60 * MS };
    static const struct {
        size_t tick;
        float level;
        size_t quiet;
        bool is;
    } cases[] = {{240, 0.02f, QUIET, true}, {240, 0.02f, QUIET - 1, false}, {1, 0.02f, QUIET, true},
        {ONSET - QUIET, 0.02f, QUIET, true}, {ONSET - QUIET + 1, 0.02f, QUIET, false},
        {ONSET - QUIET + 1, 0.02f, 20 * MS, false}, {240, 0.06f, QUIET, false},
        {240, 0.0599f, QUIET, true}, {240, -0.0599f, QUIET, true}, {240, -0.06f, QUIET, false},
        {240, 0.0041f, QUIET, true}, {240, 0.004f, QUIET, false}, {240, 0.02f, 30 * MS, true}};
    static const size_t steps[] = {1, 100, 1000, 1400, ONSET - 1, ONSET, ONSET + 1, N};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (size_t k = 0; k < sizeof steps / sizeof *steps; k++) {
            size_t kept = cases[i].quiet < 20 * MS ? cases[i].quiet : 20 * MS, loud_at,
                   n = join(cases[i].tick, cases[i].level, cases[i].quiet, steps[k], &loud_at);
            assert_int_equal(loud_at, cases[i].is ? kept : 0);
            assert_int_equal(n, cases[i].is ? N - cases[i].tick - cases[i].quiet + kept : N);
        }
    }
}

/* A piece of six seconds, whose first half second is louder by db, goes through; its level there against the rest. */
static double level_of_beginning(struct stress *stress, double db, bool even)
{
    enum { LENGTH = 6 * RATE, EARLY = RATE / 2, BLOCK = 700 };
    static float pcm[LENGTH];
    double early = 0, rest = 0;
    for (int i = 0; i < LENGTH; i++) {
        pcm[i] = 0.1f * (i % 3 == 0 ? 1 : -1) * (i < EARLY ? (float)pow(10, db / 20) : 1);
    }
    stress_begin(stress, even);
    for (int i = 0; i < LENGTH; i += BLOCK) {
        stress_take(stress, pcm + i, (size_t)(i + BLOCK > LENGTH ? LENGTH - i : BLOCK));
    }
    stress_end(stress);
    for (int i = 0; i < LENGTH; i++) {
        *(i < EARLY ? &early : &rest) +=
            (double)pcm[i] * (double)pcm[i] / (i < EARLY ? EARLY : LENGTH - EARLY);
    }
    return 10 * log10(early / rest);
}

static void the_stress_of_beginnings_is_learned(void **state)
{
    (void)state;
    struct stress plain = {.rate = RATE}, stressed = {.rate = RATE};
    double before = level_of_beginning(&stressed, 2, false), level = 2;
    assert_true(fabs(before - 2) < 0.01); /* the first piece stays as it is */
    for (int i = 0; i < 20; i++) {
        level = level_of_beginning(&stressed, 2, true);
    }
    assert_true(fabs(level) < 0.5);
    for (int i = 0; i < 20; i++) { /* a soft beginning is not raised, and none is bent beyond 4 dB */
        assert_true(fabs(level_of_beginning(&plain, -3, true) + 3) < 0.01);
    }
    for (int i = 0; i < 80; i++) {
        level = level_of_beginning(&stressed, 20, true);
    }
    assert_true(level > 20 - 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tick_is_not_heard),
        cmocka_unit_test(speech_is_not_cut),
        cmocka_unit_test(a_tick_has_bounds),
        cmocka_unit_test(the_stress_of_beginnings_is_learned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
