/* SPDX-License-Identifier: Apache-2.0
 * Log-mel features against their definition, computed the slow way in double. The official program's own values are
 * compared through the x-vectors of tests/cpu/test_speaker.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "audio/mel.h"
#include "base/memory.h"
#include "tests/cpu/random.h"
#include "tests/support.h"

enum { SIZE = 1024, BINS = 513, EDGE = 384 };

static const double turn = 6.283185307179586;

static double mel_of_hz(double hz)
{
    return hz < 1000 ? 3 * hz / 200 : 15 + 27 * log(hz / 1000) / log(6.4);
}

static double hz_of_mel(double mel)
{
    return mel < 15 ? 200 * mel / 3 : 1000 * pow(6.4, (mel - 15) / 27);
}

static void slow_frame(const float *pcm, int n, int t, double out[MEL_BANDS])
{
    static double amplitude[BINS];
    for (int k = 0; k < BINS; k++) {
        double re = 0, im = 0;
        for (int i = 0; i < SIZE; i++) {
            int at = t * MEL_HOP - EDGE + i;
            at = at < 0 ? -at : at >= n ? 2 * (n - 1) - at : at;
            double x = (double)pcm[at] * (0.5 - 0.5 * cos(turn * i / SIZE));
            int place = (int)((int64_t)i * k % SIZE);
            re += x * cos(turn * place / SIZE);
            im -= x * sin(turn * place / SIZE);
        }
        amplitude[k] = sqrt(re * re + im * im + 1e-9);
    }
    for (int b = 0; b < MEL_BANDS; b++) {
        double edges[3], sum = 0;
        for (int j = 0; j < 3; j++) {
            edges[j] = hz_of_mel(mel_of_hz(12000) * (b + j) / (MEL_BANDS + 1));
        }
        for (int k = 0; k < BINS; k++) {
            double f = 12000.0 * k / (BINS - 1), up = (f - edges[0]) / (edges[1] - edges[0]),
                   down = (edges[2] - f) / (edges[2] - edges[1]);
            sum += fmax(0, fmin(up, down)) * 2 / (edges[2] - edges[0]) * amplitude[k];
        }
        out[b] = log(fmax(sum, 1e-5));
    }
}

static void check(const float *pcm, int n, double limit)
{
    float *mels;
    size_t n_mels;
    assert_int_equal(mel_features(&mels, &n_mels, pcm, (size_t)n, NULL), UTTER_OK);
    assert_int_equal(n_mels, n / MEL_HOP);
    for (int t = 0; t < (int)n_mels; t++) {
        double want[MEL_BANDS];
        slow_frame(pcm, n, t, want);
        for (int b = 0; b < MEL_BANDS; b++) {
            assert_true(fabs((double)mels[t * MEL_BANDS + b] - want[b]) < limit);
        }
    }
    memory_free(mels);
}

static void features_by_definition(void **state)
{
    static const int lengths[] = {1280, 1281, 1535, 1536, 2999};
    (void)state;
    float pcm[3000];
    struct random random = {5, 0};
    random_fill(&random, pcm, 3000, 0.1f);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        check(pcm, lengths[i], 2e-5);
    }
    for (int i = 0; i < 3000; i++) {
        pcm[i] =
            (float)(0.7 * sin(turn * 1000 * i / 24000)); /* bands near the floor, far from the tone */
    }
    check(pcm, 2000, 1e-3);
}

/* Silence: the floor inside the root, seen through each filter, and no less than the floor of the logarithm. */
static void silence(void **state)
{
    (void)state;
    float pcm[1280] = {0};
    check(pcm, 1280, 2e-6);
}

static void too_short(void **state)
{
    (void)state;
    float pcm[1280] = {0}, *mels = (float *)1;
    size_t n_mels = 3;
    utter_error error;
    for (size_t n = 0; n < MEL_MIN_SAMPLES; n += 1279) {
        assert_int_equal(mel_features(&mels, &n_mels, pcm, n, &error), UTTER_E_ARGUMENT);
        assert_null(mels);
        assert_int_equal(n_mels, 0);
        assert_string_equal(error.text,
            n ? "a recording of 0.053 s is too short for the speaker encoder, which needs 0.053 s"
              : "a recording of 0.000 s is too short for the speaker encoder, which needs 0.053 s");
    }
}

static void without_memory_there_are_none(void **state)
{
    (void)state;
    float pcm[1280] = {0}, *mels = (float *)1;
    size_t n_mels = 3;
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        utter_status status = mel_features(&mels, &n_mels, pcm, 1280, NULL);
        assert_int_equal(status, support_failed() ? UTTER_E_MEMORY : UTTER_OK);
        assert_int_equal(mels != NULL, status == UTTER_OK);
        assert_int_equal(n_mels, status ? 0 : 5);
        memory_free(mels);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(features_by_definition),
        cmocka_unit_test(silence),
        cmocka_unit_test(too_short),
        cmocka_unit_test(without_memory_there_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
