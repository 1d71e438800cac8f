/* SPDX-License-Identifier: Apache-2.0
 * The choice of the next lanes, and the formats. */
#include "tests/support.h"

#include <math.h>
#include <string.h>

#include "server/encode.h"
#include "server/schedule.h"

static void who_has_no_sound_goes_first(void **state)
{
    struct schedule_speech s[] = {{true, true, 10.2, false}, {true, false, 9.9, false},
        {true, true, 20, false}, {false, false, 1, false}, {true, false, 9.5, false}};
    (void)state;
    assert_int_equal(schedule_choose(s, 5, 10, 2), 2);
    assert_true(s[4].chosen && s[1].chosen);
    /* Who has two seconds in hand stands back while others wait; who has less does not. */
    assert_int_equal(schedule_choose(s, 5, 10, 5), 3);
    assert_true(s[0].chosen && !s[2].chosen && !s[3].chosen);
    s[1].can_step = s[4].can_step = false;
    assert_int_equal(schedule_choose(s, 5, 10, 5), 2);
    assert_true(s[0].chosen && s[2].chosen);
    assert_int_equal(schedule_choose(s, 5, 10, 1), 1);
    assert_true(s[0].chosen && !s[2].chosen);
}

static void a_step_takes_what_fits(void **state)
{
    struct schedule_clock clock = {0};
    (void)state;
    assert_int_equal(schedule_width(&clock, 24), 1);
    for (int i = 0; i < 50; i++) {
        schedule_learn(&clock, 1, 0.0025);
    }
    assert_int_equal(schedule_width(&clock, 24), 10);
    for (int i = 0; i < 200; i++) { /* a device on which lanes cost little */
        int n = schedule_width(&clock, 24);
        schedule_learn(&clock, n, 0.002 + 0.00001 * n);
    }
    assert_int_equal(schedule_width(&clock, 24), 24);
    for (int i = 0; i < 200; i++) {
        schedule_learn(&clock, 1, 0.4);
    }
    assert_int_equal(schedule_width(&clock, 24), 1);
}

static size_t encode_second(const struct encode_settings *settings, size_t piece, struct wire_out *out)
{
    struct encode *e = encode_new(settings, 24000);
    float pcm[1920];
    assert_non_null(e);
    for (size_t at = 0; at < 24000; at += piece) {
        size_t n = 24000 - at < piece ? 24000 - at : piece;
        for (size_t i = 0; i < n; i++) {
            pcm[i] = 0.3f * sinf(0.05f * (float)(at + i));
        }
        assert_true(encode_feed(e, pcm, n, false, out));
    }
    assert_true(encode_feed(e, pcm, 0, true, out));
    encode_free(e);
    return out->n;
}

static void formats_are_what_they_say(void **state)
{
    static const struct {
        enum encode_format format;
        const char *begin;
        size_t n_begin, least, most;
    } cases[] = {{ENCODE_WAV, "RIFF", 4, 48044, 48044}, {ENCODE_PCM, "", 0, 48000, 48000},
        {ENCODE_MP3, "\xFF", 1, 15000, 18000}, {ENCODE_OPUS, "OggS", 4, 2000, 12000},
        {ENCODE_FLAC, "fLaC", 4, 5000, 48000}, {ENCODE_AAC, "\xFF\xF9", 2, 5000, 12000}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct encode_settings settings = {cases[i].format, 1, 1, 0};
        struct wire_out one = {0}, other = {0};
        size_t n = encode_second(&settings, 1920, &one);
        if (n < cases[i].least || n > cases[i].most ||
            memcmp(one.bytes, cases[i].begin, cases[i].n_begin) != 0) {
            fail_msg("%s: %zu bytes", encode_format_name(cases[i].format), n);
        }
        /* The pieces in which the samples came do not matter. */
        assert_int_equal(encode_second(&settings, 480, &other), n);
        if (memcmp(one.bytes, other.bytes, n) != 0) {
            fail_msg("%s differs in other pieces", encode_format_name(cases[i].format));
        }
        wire_fini(&one);
        wire_fini(&other);
    }
}

static void speed_rate_and_loudness(void **state)
{
    static const struct {
        double speed, volume;
        int rate;
        size_t bytes;
    } cases[] = {{2, 1, 0, 24000}, {0.5, 1, 0, 96000}, {1, 0.5, 0, 48000}, {1, 1, 8000, 16000},
        {1, 1, 48000, 96000}, {1.25, 1, 16000, 25600}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct encode_settings settings = {ENCODE_PCM, cases[i].speed, cases[i].volume, cases[i].rate};
        struct wire_out out = {0};
        double n = (double)encode_second(&settings, 1920, &out), want = (double)cases[i].bytes;
        /* Stretching works on whole pitch periods: within 60 ms. */
        if (fabs(n - want) > 0.06 * 2 * (cases[i].rate ? cases[i].rate : 24000)) {
            fail_msg("speed %g, rate %d: %g bytes, not %g", cases[i].speed, cases[i].rate, n, want);
        }
        int most = 0;
        for (size_t k = 0; k + 1 < out.n; k += 2) {
            int sample = (int16_t)(out.bytes[k] | out.bytes[k + 1] << 8);
            most = sample > most ? sample : most;
        }
        assert_true(fabs(most / 32768.0 - 0.3 * cases[i].volume) < 0.02);
        wire_fini(&out);
    }
}

static void a_whole_wav_has_true_sizes(void **state)
{
    struct encode_settings settings = {ENCODE_WAV, 1, 1, 0};
    struct wire_out out = {0};
    (void)state;
    size_t n = encode_second(&settings, 1920, &out);
    assert_int_equal(out.bytes[40] & out.bytes[43], 0xFF);
    encode_true_sizes(ENCODE_WAV, out.bytes, n);
    assert_int_equal(out.bytes[40] | out.bytes[41] << 8 | out.bytes[42] << 16, 48000);
    assert_int_equal(out.bytes[4] | out.bytes[5] << 8 | out.bytes[6] << 16, 48036);
    wire_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_has_no_sound_goes_first),
        cmocka_unit_test(a_step_takes_what_fits),
        cmocka_unit_test(formats_are_what_they_say),
        cmocka_unit_test(speed_rate_and_loudness),
        cmocka_unit_test(a_whole_wav_has_true_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
