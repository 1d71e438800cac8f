/* SPDX-License-Identifier: Apache-2.0
 * Speed, rate and loudness: how much comes out, that nothing is louder than can be, and what no memory leads to. */
#include "tests/support.h"

#include <math.h>
#include <sonic.h>
#include <soxr.h>
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

/* What comes out of pieces of this size, at most `room` samples; how many there were. */
static size_t samples_of(const struct effects_settings *settings, size_t piece, float *out, size_t room)
{
    struct effects *e = effects_new(settings, RATE);
    size_t total = 0;
    assert_non_null(e);
    assert_int_equal(effects_rate(e), settings->sample_rate ? settings->sample_rate : RATE);
    for (size_t at = 0; at <= N_SAMPLES; at += piece) { /* the last is flushed with nothing more */
        float *pcm = tone + at;
        size_t n = N_SAMPLES - at < piece ? N_SAMPLES - at : piece;
        assert_true(effects_feed(e, &pcm, &n, at + piece > N_SAMPLES));
        assert_true(total + n <= room);
        memcpy(out + total, pcm, n * sizeof *pcm);
        total += n;
    }
    effects_free(e);
    return total;
}

/* At another rate the tone is the same one, as loud as asked, every sample of it, in whatever pieces it comes. */
static void another_rate_is_the_same_sound(void **state)
{
    enum { ROOM = 8 * N_SAMPLES };
    static const int rates[] = {8000, 16000, 44100, 48000, 168000};
    static float out[ROOM], again[ROOM];
    (void)state;
    make_tone();
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        const struct effects_settings settings = {.speed = 1, .volume = 0.5, .sample_rate = rates[i]};
        const double ratio = (double)RATE / rates[i];
        const size_t n = samples_of(&settings, 480, out, ROOM);
        assert_true(fabs((double)n - N_SAMPLES / ratio) <= 1);
        for (size_t t = n / 8; t < n - n / 8; t++) {
            assert_true(fabs((double)out[t] - 0.25 * sin(0.05 * ratio * (double)t)) < 1e-3);
        }
        assert_int_equal(samples_of(&settings, N_SAMPLES, again, ROOM), n);
        assert_memory_equal(out, again, n * sizeof *out);
    }
}

static void a_rate_that_cannot_be_is_refused(void **state)
{
    static const struct effects_settings settings = {.speed = 1.5, .volume = 1, .sample_rate = -1};
    (void)state;
    assert_null(effects_new(&settings, RATE));
}

/* The pitch stays, and what was loud is as loud; also where the rate changes behind it. */
static void another_speed_has_the_same_pitch(void **state)
{
    enum { ROOM = 4 * N_SAMPLES };
    static const struct effects_settings settings[] = {{.speed = 0.6, .volume = 1},
        {.speed = 1.7, .volume = 1}, {.speed = 0.5, .volume = 0.5, .sample_rate = 48000}};
    static float out[ROOM];
    (void)state;
    make_tone();
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const int rate = settings[i].sample_rate ? settings[i].sample_rate : RATE;
        const size_t n = samples_of(&settings[i], 1000, out, ROOM);
        double turns = 0, squares = 0;
        assert_true(fabs((double)n * settings[i].speed * RATE / rate - N_SAMPLES) < 0.04 * N_SAMPLES);
        for (size_t t = n / 8; t < n - n / 8; t++) {
            turns += 0.5 * ((out[t - 1] < 0) != (out[t] < 0));
            squares += (double)out[t] * (double)out[t];
        }
        const double wanted = 0.05 / 6.2831853 * RATE * ((double)n * 0.75 / rate);
        const double level = 0.5 * settings[i].volume;
        assert_true(fabs(turns - wanted) < 0.03 * wanted);
        assert_true(fabs(sqrt(squares / ((double)n * 0.75)) - level * sqrt(0.5)) < 0.05 * level);
    }
}

/* What is as it comes in costs nothing: also where its rate is asked for by its number. */
static void what_changes_the_samples_is_not_light(void **state)
{
    static const struct {
        struct effects_settings settings;
        bool light;
    } cases[] = {{{.speed = 1, .volume = 0.5, .sample_rate = RATE}, true},
        {{.speed = 1, .volume = 1, .sample_rate = 8000}, false}, {{.speed = 0.99, .volume = 1}, false},
        {{.speed = 1.01, .volume = 1}, false}};
    (void)state;
    effects_free(NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct effects *e = effects_new(&cases[i].settings, RATE);
        assert_int_equal(effects_are_light(e), cases[i].light);
        effects_free(e);
    }
}

/* Who has said nothing ends with nothing. */
static void of_nothing_comes_nothing(void **state)
{
    static const struct effects_settings settings[] = {{.speed = 2, .volume = 2},
        {.speed = 1, .volume = 1, .sample_rate = 16000},
        {.speed = 0.5, .volume = 1, .sample_rate = 48000}};
    (void)state;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        struct effects *e = effects_new(&settings[i], RATE);
        float *pcm = tone;
        size_t n = 0;
        assert_non_null(e);
        assert_true(effects_feed(e, &pcm, &n, false));
        assert_int_equal(n, 0);
        assert_true(effects_feed(e, &pcm, &n, true));
        assert_int_equal(n, 0);
        effects_free(e);
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

/* Which of their calls the libraries refuse, and how much they took of what was given and made of it. */
static enum { NOTHING, TAKING, FLUSHING, CHANGING, ENDING, STALLING } refused;

int __real_sonicWriteFloatToStream(sonicStream stream, float *samples, int n);
int __wrap_sonicWriteFloatToStream(sonicStream stream, float *samples, int n);
int __real_sonicFlushStream(sonicStream stream);
int __wrap_sonicFlushStream(sonicStream stream);
soxr_error_t __real_soxr_process(
    soxr_t s, soxr_in_t in, size_t n_in, size_t *used, soxr_out_t out, size_t room, size_t *made);
soxr_error_t __wrap_soxr_process(
    soxr_t s, soxr_in_t in, size_t n_in, size_t *used, soxr_out_t out, size_t room, size_t *made);

int __wrap_sonicWriteFloatToStream(sonicStream stream, float *samples, int n)
{
    return refused == TAKING ? 0 : __real_sonicWriteFloatToStream(stream, samples, n);
}

int __wrap_sonicFlushStream(sonicStream stream)
{
    return refused == FLUSHING ? 0 : __real_sonicFlushStream(stream);
}

/* Never more than some of what it could take and make at once. */
soxr_error_t __wrap_soxr_process(
    soxr_t s, soxr_in_t in, size_t n_in, size_t *used, soxr_out_t out, size_t room, size_t *made)
{
    enum { MOST = 1000 };
    if (refused == (in ? CHANGING : ENDING)) {
        *made = 0;
        return "no";
    }
    if (in && refused == STALLING) {
        *used = *made = 0;
        return NULL;
    }
    return __real_soxr_process(
        s, in, n_in < MOST ? n_in : MOST, used, out, in || room < MOST ? room : MOST, made);
}

/* Whatever a library refuses ends it, and what it takes and gives by and by is all of it. */
static void what_a_library_refuses_is_told(void **state)
{
    static const struct effects_settings settings = {.speed = 0.8, .volume = 1, .sample_rate = 16000};
    (void)state;
    make_tone();
    for (refused = NOTHING; refused <= STALLING; refused++) {
        for (int final = 0; final < 2; final++) {
            struct effects *e = effects_new(&settings, RATE);
            float *pcm = tone;
            size_t n = N_SAMPLES;
            const bool ends = refused == FLUSHING || refused == ENDING;
            assert_non_null(e);
            assert_int_equal(effects_feed(e, &pcm, &n, final), refused == NOTHING || (ends && !final));
            effects_free(e);
        }
    }
    refused = NOTHING;
}

/* Whatever of it there is no memory for. */
static void effects_are_there_whole_or_not(void **state)
{
    static const struct effects_settings settings = {.speed = 1.5, .volume = 1, .sample_rate = 16000};
    (void)state;
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        struct effects *e = effects_new(&settings, RATE);
        assert_int_equal(e != NULL, !support_failed());
        effects_free(e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_louder_than_can_be),
        cmocka_unit_test(what_is_not_changed_stays),
        cmocka_unit_test(lengths_are_as_asked),
        cmocka_unit_test(another_rate_is_the_same_sound),
        cmocka_unit_test(a_rate_that_cannot_be_is_refused),
        cmocka_unit_test(another_speed_has_the_same_pitch),
        cmocka_unit_test(what_changes_the_samples_is_not_light),
        cmocka_unit_test(of_nothing_comes_nothing),
        cmocka_unit_test(without_memory_it_says_so),
        cmocka_unit_test(what_a_library_refuses_is_told),
        cmocka_unit_test(effects_are_there_whole_or_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
