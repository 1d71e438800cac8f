/* SPDX-License-Identifier: Apache-2.0
 * Speed, rate and loudness: how much comes out, that nothing is louder than can be, and what no memory leads to. */
#include "tests/support.h"

#include <math.h>
#include <string.h>

#include "effects/effects.h"

enum { RATE = 24000, N_SAMPLES = RATE / 2 };

static float tone[N_SAMPLES];

static void make_tone(void)
{
    for (int i = 0; i < N_SAMPLES; i++) {
        tone[i] = 0.5f * (float)sin(0.05 * i);
    }
}

static void nothing_is_louder_than_can_be(void **state)
{
    static const struct effects_settings settings = {.speed = 1, .volume = 4};
    const float in[] = {0.1f, 0.5f, -0.1f, -0.5f}, out[] = {0.4f, 1, -0.4f, -1};
    float samples[4], *pcm = samples;
    size_t n = 4;
    (void)state;
    memcpy(samples, in, sizeof in);
    struct effects *e = effects_new(&settings, RATE);
    assert_true(e && effects_are_light(e) && effects_rate(e) == RATE);
    assert_true(effects_feed(e, &pcm, &n, true));
    assert_true(n == 4 && pcm == samples);
    for (int i = 0; i < 4; i++) {
        assert_true(fabsf(pcm[i] - out[i]) < 1e-6f);
    }
    effects_free(e);
}

/* What is asked to stay as it is, even where no file could hold it. */
static void what_is_not_changed_stays(void **state)
{
    static const struct effects_settings settings = {.speed = 1, .volume = 1};
    float samples[] = {1.5f, -2}, *pcm = samples;
    size_t n = 2;
    (void)state;
    struct effects *e = effects_new(&settings, RATE);
    assert_non_null(e);
    assert_true(effects_feed(e, &pcm, &n, true));
    assert_true(n == 2 && pcm[0] == 1.5f && pcm[1] == -2);
    effects_free(e);
}

/* All of it, in pieces; what the filters still hold comes at the end. */
static size_t length_of(const struct effects_settings *settings, size_t piece)
{
    struct effects *e = effects_new(settings, RATE);
    size_t total = 0;
    assert_non_null(e);
    for (size_t at = 0; at < N_SAMPLES; at += piece) {
        float *pcm = tone + at;
        size_t n = N_SAMPLES - at < piece ? N_SAMPLES - at : piece;
        assert_true(effects_feed(e, &pcm, &n, at + piece >= N_SAMPLES));
        total += n;
    }
    effects_free(e);
    return total;
}

static void lengths_are_as_asked(void **state)
{
    static const struct {
        struct effects_settings settings;
        double length; /* of that of what comes in */
    } cases[] = {{{.speed = 2, .volume = 1}, 0.5}, {{.speed = 0.5, .volume = 1}, 2},
        {{.speed = 1, .volume = 1, .sample_rate = 8000}, 1.0 / 3},
        {{.speed = 1, .volume = 1, .sample_rate = 48000}, 2},
        {{.speed = 2, .volume = 1, .sample_rate = 48000}, 1}};
    (void)state;
    make_tone();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const double want = cases[i].length * N_SAMPLES;
        for (size_t piece = 480; piece <= N_SAMPLES; piece *= 5) {
            assert_true(fabs((double)length_of(&cases[i].settings, piece) - want) < 0.04 * want);
        }
    }
}

/* The first call for memory is ours; sonic's own would end the program. */
static void without_memory_it_says_so(void **state)
{
    static const struct effects_settings settings[] = {
        {.speed = 1.5, .volume = 1}, {.speed = 1, .volume = 1, .sample_rate = 16000}};
    (void)state;
    make_tone();
    for (int i = 0; i < 2; i++) {
        float *pcm = tone;
        size_t n = N_SAMPLES;
        support_fail_at(SUPPORT_MALLOC, 1);
        assert_null(effects_new(&settings[i], RATE));
        support_fail_off();
        struct effects *e = effects_new(&settings[i], RATE);
        support_fail_at(SUPPORT_MALLOC, 1);
        assert_false(effects_feed(e, &pcm, &n, true));
        support_fail_off();
        effects_free(e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_louder_than_can_be),
        cmocka_unit_test(what_is_not_changed_stays),
        cmocka_unit_test(lengths_are_as_asked),
        cmocka_unit_test(without_memory_it_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
