/* SPDX-License-Identifier: Apache-2.0
 * The stress of beginnings by its formula: what is measured, where, and what is taken off. */
#include "reading/stress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support.h"

enum {
    RATE = 2000,
    EARLY = RATE / 2,
    REST = RATE + RATE / 2,
    MOST = 8 * RATE,
    N = 9 * RATE,
    HOLD = 32
};

static void take(struct stress *s, float *pcm, size_t n, size_t step)
{
    for (size_t at = 0; at < n; at += step) {
        stress_take(s, pcm + at, n - at < step ? n - at : step);
    }
}

/* The first half second against what stands behind the first one and a half, up to eight seconds. What is quiet in
 * front is not of the piece, and what is quiet within is not measured. */
static void levels_are_those_of_loud_samples(void **state)
{
    static float pcm[N + 10];
    static const size_t steps[] = {1, 31, 1000, N + 10};
    double early = 0, rest = 0;
    size_t n_early = 0, n_rest = 0;
    (void)state;
    for (size_t i = 0; i < N; i++) { /* each sample counts for something of its own */
        float x = i % 7 == 3 && i > 0 ? 0.004f : 0.01f + 0.00001f * (float)(i * i % 997);
        pcm[10 + i] = i % 2 ? x : -x;
        if (x > 0.004f && i < EARLY) {
            early += (double)x * (double)x;
            n_early++;
        } else if (x > 0.004f && i > REST && i < MOST) {
            rest += (double)x * (double)x;
            n_rest++;
        }
    }
    for (size_t i = 0; i < 10; i++) {
        pcm[i] = i % 2 ? 0.004f : 0;
    }
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct stress s = {.rate = RATE};
        float before[N + 10];
        memcpy(before, pcm, sizeof pcm);
        for (int piece = 0; piece < 2; piece++) { /* the second has nothing of the first */
            stress_begin(&s, false);
            take(&s, pcm, N + 10, steps[i]);
            assert_int_equal(s.at, MOST);
            assert_int_equal(s.n_early, n_early);
            assert_int_equal(s.n_rest, n_rest);
            assert_true(fabs(s.early - early) < 1e-12 && fabs(s.rest - rest) < 1e-12);
        }
        assert_memory_equal(before, pcm, sizeof pcm); /* not evened: as it was */
    }
}

/* The gain is that of the first of each 32 samples, as it decays, up to eight seconds. */
static void beginnings_are_evened_by_a_gain_that_decays(void **state)
{
    static float pcm[N];
    static const double stresses[] = {1, 2.5, 2.9, 7};
    static const size_t steps[] = {1, 5, 32, 700, N};
    (void)state;
    for (size_t k = 0; k < sizeof stresses / sizeof *stresses; k++) {
        double height = stresses[k] / 0.715 < 4 ? stresses[k] / 0.715 : 4;
        for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
            struct stress s = {.rate = RATE, .db = stresses[k]};
            for (size_t j = 0; j < N; j++) {
                pcm[j] = 0.3f;
            }
            stress_begin(&s, true);
            take(&s, pcm, N, steps[i]);
            for (size_t j = 0; j < N; j++) {
                double held = (double)(j - j % HOLD) / RATE;
                float gain = (float)pow(10, -height / 20 * exp(-held / 0.7));
                assert_true(fabsf(pcm[j] - 0.3f * (j < MOST ? gain : 1)) < 1e-7f);
            }
        }
    }
}

/* Only what is above nothing is taken off, and only where another piece comes before. */
static void what_has_no_stress_stays(void **state)
{
    static const struct {
        double db;
        bool even;
    } cases[] = {{0, true}, {-3, true}, {3, false}};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct stress s = {.rate = RATE, .db = cases[i].db};
        float pcm[] = {0.5f, -0.25f, 0.125f};
        const float wanted[] = {0.5f, -0.25f, 0.125f};
        stress_begin(&s, cases[i].even);
        stress_take(&s, pcm, 3);
        assert_memory_equal(pcm, wanted, sizeof pcm);
    }
}

/* The mean of up to 32 pieces, as if one before had none; of pieces that have half a second of a rest. */
static void the_mean_is_learned_of_long_pieces(void **state)
{
    double db = 0;
    struct stress s = {.rate = RATE};
    (void)state;
    for (int i = 1; i < 100; i++) {
        double measured = i % 5;
        s.n_early = 10;
        s.early = 10 * pow(10, measured / 10) * 0.04;
        s.n_rest = RATE / 2 + 1;
        s.rest = (double)s.n_rest * 0.04;
        stress_end(&s);
        int n = i < 32 ? i : 32;
        db += (measured - db) / (n + 1);
        assert_int_equal(s.n, n);
        assert_true(fabs(s.db - db) < 1e-9);
    }
    s.n_rest = RATE / 2;
    stress_end(&s);
    assert_true(fabs(s.db - db) < 1e-9);
    int n = s.n;
    s.n_rest = RATE;
    s.n_early = 0; /* all of its beginning was quiet */
    stress_end(&s);
    assert_int_equal(s.n, n);
    assert_true(fabs(s.db - db) < 1e-9);
    s = (struct stress){.rate = RATE, .n_early = 1, .early = 0.08, .n_rest = RATE, .rest = 0.04 * RATE};
    stress_end(&s);
    assert_int_equal(s.n, 1);
    assert_true(fabs(s.db - 10 * log10(2) / 2) < 1e-9);
    s = (struct stress){.rate = RATE};
    stress_end(&s); /* nothing was heard */
    assert_int_equal(s.n, 0);
    assert_true(s.db >= 0 && s.db <= 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(levels_are_those_of_loud_samples),
        cmocka_unit_test(beginnings_are_evened_by_a_gain_that_decays),
        cmocka_unit_test(what_has_no_stress_stays),
        cmocka_unit_test(the_mean_is_learned_of_long_pieces)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
