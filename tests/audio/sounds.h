/* SPDX-License-Identifier: Apache-2.0
 * Sound files for tests, made by libsndfile; and what is refused, with its reason. */
#ifndef TESTS_AUDIO_SOUNDS_H
#define TESTS_AUDIO_SOUNDS_H

#include <math.h>
#include <sndfile.h>
#include <stdlib.h>
#include <string.h>

#include "audio/sound_read.h"
#include "tests/support.h"

/* Channel c of time step t: different in all channels. */
static inline float sample(int t, int c)
{
    return 0.5f * sinf((float)t * 0.05f * (float)(c + 1)) - 0.01f * (float)c;
}

/* A sound file of n time steps, in a buffer of malloc. */
static inline uint8_t *make_file(
    const char *name, int format, int rate, int channels, const float *x, int n, size_t *bytes)
{
    SF_INFO info = {.samplerate = rate, .channels = channels, .format = format};
    const char *path = support_path(name);
    SNDFILE *file = sf_open(path, SFM_WRITE, &info);
    assert_non_null(file);
    assert_int_equal(sf_writef_float(file, x, n), n);
    assert_int_equal(sf_close(file), 0);
    return (uint8_t *)support_read_file(path, bytes);
}

static inline float *make_samples(int channels, int n)
{
    float *x = malloc((size_t)(n * channels + 1) * sizeof *x);
    for (int i = 0; i < n * channels; i++) {
        x[i] = sample(i / channels, i % channels);
    }
    return x;
}

static inline uint8_t *make_sound(
    const char *name, int format, int rate, int channels, int n, size_t *bytes)
{
    float *x = make_samples(channels, n);
    uint8_t *data = make_file(name, format, rate, channels, x, n, bytes);
    free(x);
    return data;
}

static inline void refused(
    const void *data, size_t bytes, const struct sound_limits *limits, const char *reason)
{
    float *pcm = (float *)1;
    size_t n = 7;
    utter_error error = {0};
    assert_int_equal(sound_read_memory(&pcm, &n, NULL, data, bytes, "some.wav", 24000, limits, &error),
        UTTER_E_FILE);
    assert_null(pcm);
    assert_int_equal(n, 0);
    if (!strstr(error.text, reason) || strncmp(error.text, "some.wav: ", 10) != 0) {
        fail_msg("\"%s\" does not say \"%s\"", error.text, reason);
    }
}

#endif
