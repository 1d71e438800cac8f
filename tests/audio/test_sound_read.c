/* SPDX-License-Identifier: Apache-2.0
 * Sound files in: what comes out of good ones, and that bad ones end in one sentence, within bounds. */
#include <math.h>
#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audio/sound_read.h"
#include "base/memory.h"
#include "tests/support.h"

enum { N = 4800 };

/* Channel c of time step t: different in all channels. */
static float sample(int t, int c)
{
    return 0.5f * sinf((float)t * 0.05f * (float)(c + 1)) - 0.01f * (float)c;
}

/* A sound file of n time steps, in a buffer of malloc. */
static uint8_t *make_file(
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

static float *make_samples(int channels, int n)
{
    float *x = malloc((size_t)(n * channels + 1) * sizeof *x);
    for (int i = 0; i < n * channels; i++) {
        x[i] = sample(i / channels, i % channels);
    }
    return x;
}

static uint8_t *make_sound(const char *name, int format, int rate, int channels, int n, size_t *bytes)
{
    float *x = make_samples(channels, n);
    uint8_t *data = make_file(name, format, rate, channels, x, n, bytes);
    free(x);
    return data;
}

/* ---- Good files ---- */

static void every_format(void **state)
{
    static const struct {
        const char *name;
        int format, rate;
        double off; /* rms, of a signal of about 0.35 */
    } formats[] = {
        {"a.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_U8, 24000, 0.01},
        {"b.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 24000, 3e-5},
        {"c.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_24, 44100, 3e-7},
        {"d.wav", SF_FORMAT_WAV | SF_FORMAT_FLOAT, 8000, 0},
        {"e.wav", SF_FORMAT_WAV | SF_FORMAT_DOUBLE, 192000, 0},
        {"f.wav", SF_FORMAT_WAV | SF_FORMAT_ULAW, 8000, 0.01},
        {"g.flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 48000, 3e-5},
        {"h.ogg", SF_FORMAT_OGG | SF_FORMAT_VORBIS, 44100, 0.02},
        {"i.opus", SF_FORMAT_OGG | SF_FORMAT_OPUS, 48000, 0.12},
        {"j.mp3", SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III, 44100, 0.05},
        {"k.aiff", SF_FORMAT_AIFF | SF_FORMAT_PCM_16, 22050, 3e-5},
    };
    (void)state;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        size_t bytes, n;
        float *pcm;
        struct sound_heard heard;
        utter_error error = {0};
        free(make_sound(formats[i].name, formats[i].format, formats[i].rate, 1, N, &bytes));
        utter_status status =
            sound_read(&pcm, &n, &heard, support_path(formats[i].name), 0, NULL, &error);
        assert_string_equal(error.text, "");
        assert_int_equal(status, UTTER_OK);
        assert_int_equal(heard.sample_rate, formats[i].rate);
        assert_int_equal(heard.channels, 1);
        assert_true(n >= N && n < N + 2400); /* coders fill their last block */
        assert_true(fabs(heard.seconds - (double)n / formats[i].rate) < 1e-9);
        double squares = 0;
        for (int t = 0; t < N; t++) {
            squares += pow((double)pcm[t] - (double)sample(t, 0), 2);
        }
        if (!(sqrt(squares / N) <= formats[i].off)) {
            fail_msg("%s: off by %g", formats[i].name, sqrt(squares / N));
        }
        memory_free(pcm);
    }
}

static void channels_become_their_mean(void **state)
{
    (void)state;
    for (int channels = 1; channels <= SOUND_MAX_CHANNELS; channels++) {
        size_t bytes, n;
        float *pcm;
        struct sound_heard heard;
        uint8_t *data =
            make_sound("m.wav", SF_FORMAT_WAV | SF_FORMAT_FLOAT, 24000, channels, 5000, &bytes);
        assert_int_equal(
            sound_read_memory(&pcm, &n, &heard, data, bytes, "m.wav", 24000, NULL, NULL), UTTER_OK);
        assert_int_equal(n, 5000);
        assert_int_equal(heard.channels, channels);
        for (int t = 0; t < 5000; t++) {
            double mean = 0;
            for (int c = 0; c < channels; c++) {
                mean += (double)sample(t, c) / channels;
            }
            assert_true(fabs((double)pcm[t] - mean) < 2e-7);
        }
        memory_free(pcm);
        free(data);
    }
}

static void rate_is_changed(void **state)
{
    static const struct {
        int rate, n;
        size_t want;
    } cases[] = {{44100, 4410, 2400}, {22050, 6615, 7201}, {8000, 800, 2400}, {96000, 4001, 1001},
        {11025, 110, 240}, {24000, 77, 77}, {44100, 1, 1}, {8000, 1, 3}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t bytes, n;
        float *pcm;
        uint8_t *data =
            make_sound("r.wav", SF_FORMAT_WAV | SF_FORMAT_FLOAT, cases[i].rate, 1, cases[i].n, &bytes);
        assert_int_equal(
            sound_read_memory(&pcm, &n, NULL, data, bytes, "r.wav", 24000, NULL, NULL), UTTER_OK);
        assert_int_equal(n, cases[i].want);
        memory_free(pcm);
        free(data);
    }
}

/* A sine far from both ends of the recording comes out as the same sine. */
static void resampled_sound_is_the_same(void **state)
{
    (void)state;
    static float x[44100];
    for (int t = 0; t < 44100; t++) {
        x[t] = (float)(0.5 * sin(2 * 3.14159265358979 * 9000 * t / 44100));
    }
    size_t bytes, n;
    float *pcm;
    uint8_t *data = make_file("s.wav", SF_FORMAT_WAV | SF_FORMAT_FLOAT, 44100, 1, x, 44100, &bytes);
    assert_int_equal(
        sound_read_memory(&pcm, &n, NULL, data, bytes, "s.wav", 24000, NULL, NULL), UTTER_OK);
    assert_int_equal(n, 24001); /* the official ceiling of a ratio that is rounded up */
    double off = 0;
    for (int t = 2000; t < 22000; t++) {
        off = fmax(off, fabs((double)pcm[t] - 0.5 * sin(2 * 3.14159265358979 * 9000 * t / 24000)));
    }
    if (!(off < 5e-5)) {
        fail_msg("off by %g", off);
    }
    memory_free(pcm);
    free(data);
}

static void level_and_clipping(void **state)
{
    (void)state;
    float x[2 * 1000] = {0}; /* left: half of it at full scale; right: silent */
    for (int t = 0; t < 500; t++) {
        x[2 * t] = t % 2 ? 1.0f : -1.0f;
    }
    size_t bytes, n;
    float *pcm;
    struct sound_heard heard;
    uint8_t *data = make_file("l.wav", SF_FORMAT_WAV | SF_FORMAT_FLOAT, 16000, 2, x, 1000, &bytes);
    assert_int_equal(
        sound_read_memory(&pcm, &n, &heard, data, bytes, "l.wav", 0, NULL, NULL), UTTER_OK);
    assert_true(fabs(heard.clipped - 0.25) < 1e-9);
    assert_true(fabs(heard.peak - 0.5) < 1e-9);
    assert_true(fabs(heard.rms_db - 20 * log10(0.5 * sqrt(0.5))) < 1e-6);
    assert_true(fabs(heard.seconds - 1000.0 / 16000) < 1e-12);
    memory_free(pcm);
    free(data);
    memset(x, 0, sizeof x);
    data = make_file("z.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 16000, 2, x, 1000, &bytes);
    assert_int_equal(
        sound_read_memory(&pcm, &n, &heard, data, bytes, "z.wav", 0, NULL, NULL), UTTER_OK);
    assert_true(isinf(heard.rms_db) && heard.rms_db < 0);
    assert_false(heard.clipped > 0 || heard.peak > 0);
    memory_free(pcm);
    free(data);
}

/* ---- Bad files ---- */

static void refused(
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

static void not_a_sound_file(void **state)
{
    (void)state;
    static uint8_t junk[5000];
    for (size_t i = 0; i < sizeof junk; i++) {
        junk[i] = (uint8_t)(i * 131 ^ i >> 3);
    }
    refused(NULL, 0, NULL, "empty");
    refused(junk, sizeof junk, NULL, "not a sound file");
    refused("RIFF", 4, NULL, "not a sound file");
    refused("\0\0\0\040ftypM4A \0\0\0\0isom", 20, NULL, "ffmpeg -i");
    refused("# a text\n", 9, NULL, "not a sound file");
    float *pcm;
    size_t n;
    utter_error error;
    assert_int_equal(
        sound_read(&pcm, &n, NULL, support_path("none.wav"), 0, NULL, &error), UTTER_E_FILE);
    assert_non_null(strstr(error.text, "none.wav"));
    support_write_file(support_path("void.wav"), "", 0);
    assert_int_equal(
        sound_read(&pcm, &n, NULL, support_path("void.wav"), 0, NULL, &error), UTTER_E_FILE);
    assert_non_null(strstr(error.text, "empty"));
    assert_int_equal(sound_read(&pcm, &n, NULL, support_folder(), 0, NULL, &error), UTTER_E_FILE);
}

static void outside_the_ranges(void **state)
{
    size_t bytes;
    uint8_t *data;
    (void)state;
    data = make_sound("x.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 7999, 1, 50, &bytes);
    refused(data, bytes, NULL, "7999 Hz, not 8000 to 192000");
    free(data);
    data = make_sound("x.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 192001, 1, 50, &bytes);
    refused(data, bytes, NULL, "192001 Hz");
    free(data);
    data = make_sound("x.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 24000, 9, 50, &bytes);
    refused(data, bytes, NULL, "9 channels, not 1 to 8");
    free(data);
    data = make_sound("x.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 24000, 1, 0, &bytes);
    refused(data, bytes, NULL, "no samples");
    free(data);
    data = make_sound("x.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 24000, 1, 2401, &bytes);
    struct sound_limits limits = {.seconds = 0.1};
    refused(data, bytes, &limits, "longer than 0.1 s");
    limits = (struct sound_limits){.bytes = bytes - 1};
    refused(data, bytes, &limits, "bytes, more than");
    free(data);
}

/* Of a part exactly its samples come, whatever lies around; the limit is the part's. */
static void a_part(void **state)
{
    enum { RATE = 8000 };
    size_t bytes, n, n_all;
    uint8_t *data = make_sound("x.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, RATE, 2, 10000, &bytes);
    float *all, *part;
    (void)state;
    assert_int_equal(
        sound_read_memory(&all, &n_all, NULL, data, bytes, "x.wav", 0, NULL, NULL), UTTER_OK);
    struct sound_limits limits = {.seconds = 0.75, .from = 0.5, .to = 1.25};
    assert_int_equal(
        sound_read_memory(&part, &n, NULL, data, bytes, "x.wav", 0, &limits, NULL), UTTER_OK);
    assert_int_equal(n, RATE * 3 / 4);
    assert_memory_equal(part, all + RATE / 2, n * sizeof *part);
    memory_free(part);
    limits = (struct sound_limits){.seconds = 1, .from = 0.5};
    assert_int_equal(
        sound_read_memory(&part, &n, NULL, data, bytes, "x.wav", 0, &limits, NULL), UTTER_OK);
    assert_int_equal(n, n_all - RATE / 2);
    assert_memory_equal(part, all + RATE / 2, n * sizeof *part);
    memory_free(part);
    limits.seconds = 0.7;
    refused(data, bytes, &limits, "the part is longer than 0.7 s");
    limits = (struct sound_limits){.from = 1.25};
    refused(data, bytes, &limits, "ends after 1.25 s");
    memory_free(all);
    free(data);
}

/* Of what is too long the part that is proposed is where it is loud, not where it hisses. */
static void the_loud_part_is_proposed(void **state)
{
    enum { RATE = 8000, FROM_S = 20, TO_S = 40, ALL_S = 50 };
    size_t bytes;
    float *x = malloc(ALL_S * RATE * sizeof *x);
    const struct sound_limits limits = {.seconds = 30};
    (void)state;
    for (int t = 0; t < ALL_S * RATE; t++) {
        x[t] = t >= FROM_S * RATE && t < TO_S * RATE ? 0.3f : 0.002f;
        x[t] *= t & 32 ? 1.0f : -1.0f;
    }
    uint8_t *data =
        make_file("x.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, RATE, 1, x, ALL_S * RATE, &bytes);
    refused(data, bytes, &limits, "the 15 s with the least silence go from 20 s to 35 s");
    free(data);
    free(x);
}

static void broken_samples(void **state)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    (void)state;
    for (int i = 0; i < 3; i++) {
        size_t bytes;
        float *x = make_samples(2, 6000);
        x[2 * 5500 + 1] = bad[i];
        uint8_t *data = make_file("n.wav", SF_FORMAT_WAV | SF_FORMAT_FLOAT, 24000, 2, x, 6000, &bytes);
        refused(data, bytes, NULL, "sample 5500 is not a number");
        free(data);
        free(x);
    }
}

static void set_flac_length(uint8_t *flac, uint64_t samples)
{
    flac[21] = (uint8_t)((flac[21] & 0xf0) | (samples >> 32 & 0x0f));
    for (int i = 0; i < 4; i++) {
        flac[22 + i] = (uint8_t)(samples >> (24 - 8 * i));
    }
}

/* Hours of silence in a small file; headers that promise more than there is. */
static void bombs_and_lies(void **state)
{
    enum { LONG_S = 1800 };
    size_t bytes, n;
    float *pcm, *silence = calloc(LONG_S * 8000, sizeof *silence);
    (void)state;
    uint8_t *data = make_file(
        "bomb.flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 8000, 1, silence, LONG_S * 8000, &bytes);
    assert_true(bytes < 1 << 20);
    refused(data, bytes, NULL, "longer than 120 s");
    set_flac_length(data, 0); /* unknown: then the samples count */
    float *some = NULL;
    utter_status status = sound_read_memory(&some, &n, NULL, data, bytes, "bomb.flac", 0, NULL, NULL);
    assert_true(status == UTTER_E_FILE && !some);
    free(data);
    data = make_sound("lie.flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 24000, 1, 9000, &bytes);
    set_flac_length(data, 48000);
    refused(data, bytes, NULL, "");
    set_flac_length(data, (uint64_t)1 << 35);
    refused(data, bytes, NULL, "longer than");
    const uint64_t true_or_unknown[] = {9000, 0};
    for (int i = 0; i < 2; i++) { /* 0: as in a FLAC that was written into a pipe */
        set_flac_length(data, true_or_unknown[i]);
        assert_int_equal(
            sound_read_memory(&pcm, &n, NULL, data, bytes, "lie.flac", 0, NULL, NULL), UTTER_OK);
        assert_int_equal(n, 9000);
        memory_free(pcm);
    }
    refused(data, bytes / 2, NULL, "");
    free(data);
    /* A WAV whose data is said to go on for 4 GB: what is there is taken, as with a stream that was cut. */
    data = make_sound("lie.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 24000, 1, 900, &bytes);
    memset(data + 40, 0xff, 4);
    memset(data + 4, 0xff, 4);
    assert_int_equal(
        sound_read_memory(&pcm, &n, NULL, data, bytes, "lie.wav", 0, NULL, NULL), UTTER_OK);
    assert_int_equal(n, 900);
    memory_free(pcm);
    free(data);
    free(silence);
}

/* Of each format the whole file is read, and one that lost its end is not taken for a shorter recording. */
static void lost_ends(void **state)
{
    static const int formats[] = {SF_FORMAT_WAV | SF_FORMAT_PCM_16, SF_FORMAT_WAVEX | SF_FORMAT_FLOAT,
        SF_FORMAT_OGG | SF_FORMAT_VORBIS, SF_FORMAT_OGG | SF_FORMAT_OPUS,
        SF_FORMAT_FLAC | SF_FORMAT_PCM_16, SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III};
    (void)state;
    for (int i = 0; i < 6; i++) {
        size_t bytes, n;
        float *pcm;
        uint8_t *data = make_sound("whole", formats[i], 24000, 1, 48000, &bytes);
        assert_int_equal(
            sound_read_memory(&pcm, &n, NULL, data, bytes, "whole", 0, NULL, NULL), UTTER_OK);
        assert_true(n >= 48000);
        memory_free(pcm);
        refused(data, bytes / 2, NULL, i == 4 ? "" : "its end is missing");
        refused(data, bytes - bytes / 8, NULL, i == 4 ? "" : "its end is missing");
        refused(data, bytes - 2, NULL, i == 4 ? "" : "its end is missing");
        free(data);
    }
}

/* Any result is allowed but a crash, a sample that is no number, or half a result. */
static void survives(const uint8_t *data, size_t bytes)
{
    float *pcm;
    size_t n;
    struct sound_limits limits = {.seconds = 1};
    utter_error error = {0};
    utter_status status =
        sound_read_memory(&pcm, &n, NULL, data, bytes, "flipped", 24000, &limits, &error);
    assert_true(status == UTTER_OK || status == UTTER_E_FILE);
    assert_int_equal(status == UTTER_OK, pcm != NULL);
    assert_int_equal(status == UTTER_OK, n > 0);
    assert_int_equal(status == UTTER_OK, error.text[0] == 0);
    for (size_t i = 0; i < n; i++) {
        assert_true(isfinite(pcm[i]));
    }
    memory_free(pcm);
}

static void every_prefix_and_bit(void **state)
{
    static const int formats[] = {SF_FORMAT_WAV | SF_FORMAT_PCM_16, SF_FORMAT_WAV | SF_FORMAT_FLOAT,
        SF_FORMAT_FLAC | SF_FORMAT_PCM_16};
    (void)state;
    for (int i = 0; i < 3; i++) {
        size_t bytes;
        uint8_t *data = make_sound("small", formats[i], 24000, 1, 120, &bytes);
        for (size_t n = 0; n < bytes; n++) {
            uint8_t *part = malloc(n + 1); /* no byte behind the end may be read */
            memcpy(part, data, n);
            part = realloc(part, n ? n : 1);
            survives(part, n);
            free(part);
        }
        for (size_t bit = 0; bit < 8 * bytes; bit++) {
            data[bit / 8] ^= (uint8_t)(1 << bit % 8);
            survives(data, bytes);
            data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        free(data);
    }
}

static void calls_that_fail(void **state)
{
    size_t bytes, n;
    float *pcm;
    (void)state;
    free(make_sound("f.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 16000, 2, 90000, &bytes));
    const char *path = support_path("f.wav");
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, k)
    {
        utter_status status = sound_read(&pcm, &n, NULL, path, 24000, NULL, NULL);
        assert_int_equal(status, support_failed() ? UTTER_E_MEMORY : UTTER_OK);
        assert_int_equal(status == UTTER_OK, pcm != NULL);
        memory_free(pcm);
    }
    enum support_call calls[] = {SUPPORT_OPEN, SUPPORT_MMAP};
    for (int i = 0; i < 2; i++) {
        support_fail_at(calls[i], 1);
        assert_true(sound_read(&pcm, &n, NULL, path, 24000, NULL, NULL) < 0);
        assert_null(pcm);
        support_fail_off();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_format),
        cmocka_unit_test(channels_become_their_mean),
        cmocka_unit_test(rate_is_changed),
        cmocka_unit_test(resampled_sound_is_the_same),
        cmocka_unit_test(level_and_clipping),
        cmocka_unit_test(not_a_sound_file),
        cmocka_unit_test(outside_the_ranges),
        cmocka_unit_test(a_part),
        cmocka_unit_test(the_loud_part_is_proposed),
        cmocka_unit_test(broken_samples),
        cmocka_unit_test(bombs_and_lies),
        cmocka_unit_test(lost_ends),
        cmocka_unit_test(every_prefix_and_bit),
        cmocka_unit_test(calls_that_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
