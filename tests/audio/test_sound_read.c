/* SPDX-License-Identifier: Apache-2.0
 * Sound files in: what comes out of good ones, and that bad ones end in one sentence, within bounds. */
#include <stdio.h>
#include <unistd.h>

#include "base/memory.h"
#include "tests/audio/sounds.h"
#include "tests/heap.h"

enum { N = 4800 };

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

/* Rounding tells in which order: of eight channels in pairs of pairs, of any other number one by one. */
static void channels_are_summed_in_their_order(void **state)
{
    static const float e = 0x1p-24f; /* lost beside 1, and two of them are not */
    const struct {
        float x[SOUND_MAX_CHANNELS], sum;
        int n;
    } cases[] = {{{1, 0, e, e}, 1 + 2 * e, 8}, {{1, e, e, 0}, 1, 8}, {{e, 1, 0, 0, 0, 0, e}, 1, 8},
        {{0, 0, 0, 0, 1, 0, e, e}, 1 + 2 * e, 8}, {{1, 0, 0, 0, e, 0, e, 0}, 1 + 2 * e, 8},
        {{1, 0, 0, 0, e, e, 0, 0}, 1 + 2 * e, 8}, {{e, 0, e, 0, 1, 0, 0, 0}, 1 + 2 * e, 8},
        {{0, e, e, 0, 0, 0, 0, 1}, 1 + 2 * e, 8}, {{0, 0, 0, 1, 0, 0, e, e}, 1 + 2 * e, 8},
        {{0, 0, 1, e, 0, e, 0, 0}, 1, 8}, {{1, 0, e, e}, 1, 4}, {{e, e, 1}, 1 + 2 * e, 3},
        {{1, 0, 0, 0, 0, e, e}, 1, 7}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t bytes, n;
        float *pcm;
        uint8_t *data = make_file(
            "o.wav", SF_FORMAT_WAV | SF_FORMAT_FLOAT, 24000, cases[i].n, cases[i].x, 1, &bytes);
        assert_int_equal(
            sound_read_memory(&pcm, &n, NULL, data, bytes, "o.wav", 24000, NULL, NULL), UTTER_OK);
        assert_int_equal(n, 1);
        assert_true(pcm[0] == cases[i].sum / (float)cases[i].n);
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

static void not_a_sound_file(void **state)
{
    (void)state;
    static uint8_t junk[5000];
    for (size_t i = 0; i < sizeof junk; i++) {
        junk[i] = (uint8_t)(i * 131 ^ i >> 3);
    }
    refused(NULL, 0, NULL, "some.wav: empty");
    refused(junk, sizeof junk, NULL, "not a sound file");
    refused("R", 1, NULL, "not a sound file");
    refused("RIFF", 4, NULL, "not a sound file");
    refused("\0\0\0\040ftypM4A \0\0\0\0isom", 20, NULL, "ffmpeg -i some.wav me.wav");
    refused("\0\0\0\040ftypM", 9, NULL, "ffmpeg -i some.wav me.wav");
    refused("\0\0\0\040ftyp", 8, NULL, "not a sound file");
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
    refused(data, bytes, NULL, "some.wav: 9 channels, not 1 to 8");
    free(data);
    data = make_sound("x.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 24000, 1, 0, &bytes);
    refused(data, bytes, NULL, "no samples");
    free(data);
    data = make_sound("x.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 24000, 1, 2401, &bytes);
    struct sound_limits limits = {.seconds = 0.1};
    refused(data, bytes, &limits, "longer than 0.1 s");
    float *pcm;
    size_t n;
    limits = (struct sound_limits){.seconds = 2401.0 / 24000};
    assert_int_equal(sound_read_memory(&pcm, &n, NULL, data, bytes, "x", 0, &limits, NULL), UTTER_OK);
    memory_free(pcm);
    limits = (struct sound_limits){.bytes = bytes - 1};
    refused(data, bytes, &limits, "bytes, more than");
    free(data);
}

static void set_flac_length(uint8_t *flac, uint64_t samples)
{
    flac[21] = (uint8_t)((flac[21] & 0xf0) | (samples >> 32 & 0x0f));
    for (int i = 0; i < 4; i++) {
        flac[22 + i] = (uint8_t)(samples >> (24 - 8 * i));
    }
}

/* What lies on a bound is read, by default and as asked; no more than that. */
static void up_to_the_bounds(void **state)
{
    enum { RATE = 8000, MOST = SOUND_MAX_SECONDS * RATE };
    static float silence[MOST + 1];
    size_t bytes, n;
    float *pcm;
    (void)state;
    uint8_t *data =
        make_file("x.flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16, RATE, 1, silence, MOST, &bytes);
    struct sound_limits limits = {.bytes = bytes};
    assert_int_equal(
        sound_read_memory(&pcm, &n, NULL, data, bytes, "x.flac", 0, &limits, NULL), UTTER_OK);
    assert_int_equal(n, MOST);
    memory_free(pcm);
    set_flac_length(data, 0);
    assert_int_equal(sound_read_memory(&pcm, &n, NULL, data, bytes, "x.flac", 0, NULL, NULL), UTTER_OK);
    assert_int_equal(n, MOST);
    memory_free(pcm);
    free(data);
    data = make_file("x.flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16, RATE, 1, silence, MOST + 1, &bytes);
    refused(data, bytes, NULL, "longer than 120 s (take a part of it)");
    set_flac_length(data, 0);
    refused(data, bytes, NULL, "longer than 120 s (take a part of it)");
    free(data);
    data = calloc(SOUND_MAX_BYTES + 1, 1);
    refused(data, SOUND_MAX_BYTES, NULL, "not a sound file that can be read");
    refused(data, SOUND_MAX_BYTES + (size_t)1, NULL,
        "some.wav: 67108865 bytes, more than 67108864 (cut it, or make it a flac)");
    free(data);
}

/* Floats that mean integers of 32 bits are read; what is louder is no sound. */
static void absurdly_loud_samples(void **state)
{
    float x[] = {0.5f, -4e9f, 4e9f}, *pcm;
    size_t bytes, n;
    struct sound_heard heard;
    (void)state;
    uint8_t *data = make_file("l.wav", SF_FORMAT_WAV | SF_FORMAT_FLOAT, 8000, 1, x, 3, &bytes);
    assert_int_equal(
        sound_read_memory(&pcm, &n, &heard, data, bytes, "l.wav", 0, NULL, NULL), UTTER_OK);
    assert_memory_equal(pcm, x, sizeof x);
    assert_true(heard.peak == 4e9 && fabs(heard.clipped - 2.0 / 3) < 1e-9);
    memory_free(pcm);
    free(data);
    for (int sign = -1; sign < 2; sign += 2) {
        x[2] = (float)sign * 4.1e9f;
        data = make_file("l.wav", SF_FORMAT_WAV | SF_FORMAT_FLOAT, 8000, 1, x, 3, &bytes);
        refused(data, bytes, NULL,
            sign < 0 ? "sample 2 is -4.1e+09, and full scale is 1"
                     : "sample 2 is 4.1e+09, and full scale is 1");
        free(data);
    }
}

/* At full scale is what 16 bits have no room for, or nearly. */
static void what_is_clipped_is_counted(void **state)
{
    const float x[] = {0.9991f, 0.9985f, -0.9991f, -0.9985f, 1.5f, 0, 0, 0};
    float *pcm;
    size_t bytes, n;
    struct sound_heard heard;
    (void)state;
    uint8_t *data = make_file("c.wav", SF_FORMAT_WAV | SF_FORMAT_FLOAT, 8000, 2, x, 4, &bytes);
    assert_int_equal(
        sound_read_memory(&pcm, &n, &heard, data, bytes, "c.wav", 0, NULL, NULL), UTTER_OK);
    assert_true(fabs(heard.clipped - 3.0 / 8) < 1e-9);
    assert_true(fabs(heard.peak - (double)((0.9991f + 0.9985f) / 2)) < 1e-7);
    memory_free(pcm);
    free(data);
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
    refused(data, bytes, NULL, "ends after 0.38 s of the 2.00 s that its header promises (cut off?)");
    const struct sound_limits part = {.from = 0.1, .to = 0.375}, behind = {.from = 0.1, .to = 0.376};
    assert_int_equal(
        sound_read_memory(&pcm, &n, NULL, data, bytes, "lie.flac", 0, &part, NULL), UTTER_OK);
    assert_int_equal(n, 9000 - 2400);
    memory_free(pcm);
    refused(data, bytes, &behind, "ends after 0.38 s of the 2.00 s");
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

static const char *shrinking;

static void shrink(void)
{
    assert_int_equal(truncate(shrinking, 1000), 0);
}

/* At whatever moment: half a recording is none. */
static void a_file_that_shrinks_meanwhile(void **state)
{
    size_t bytes, n;
    float *pcm;
    (void)state;
    uint8_t *data = make_sound("s.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 16000, 1, 9000, &bytes);
    shrinking = support_path("s.wav");
    support_leave_sigbus();
    bool shrunk = true;
    for (long k = 1; shrunk; k++) {
        utter_error error = {0};
        support_write_file(shrinking, data, bytes);
        support_happens_at(SUPPORT_MALLOC, k, shrink);
        utter_status status = sound_read(&pcm, &n, NULL, shrinking, 24000, NULL, &error);
        shrunk = support_failed();
        support_fail_off();
        assert_int_equal(status, shrunk ? UTTER_E_FILE : UTTER_OK);
        assert_int_equal(pcm != NULL, !shrunk);
        assert_int_equal(n, shrunk ? 0 : 13500);
        assert_int_equal(strstr(error.text, "became shorter while it was read") != NULL, shrunk);
        memory_free(pcm);
    }
    free(data);
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
        pcm = (float *)1;
        n = 7;
        support_fail_at(calls[i], 1);
        assert_true(sound_read(&pcm, &n, NULL, path, 24000, NULL, NULL) < 0);
        assert_null(pcm);
        assert_int_equal(n, 0);
        support_fail_off();
    }
}

/* Whether it was read or refused, a file is let go of, and so is all memory. */
static void nothing_stays_of_a_file(void **state)
{
    static const char *const names[] = {"stays.wav", "none.wav"};
    size_t bytes, n;
    float *pcm;
    (void)state;
    free(make_sound(names[0], SF_FORMAT_WAV | SF_FORMAT_PCM_16, 16000, 2, 9000, &bytes));
    support_write_file(support_path(names[1]), "no sound at all", 15);
    for (int round = 0; round < 16;
         round++) { /* until the heap has in store what it keeps of freed blocks */
        size_t before = heap_used();
        for (int i = 0; i < 2; i++) {
            utter_status status = sound_read(&pcm, &n, NULL, support_path(names[i]), 24000, NULL, NULL);
            assert_int_equal(status, i ? UTTER_E_FILE : UTTER_OK);
            assert_int_equal(support_count_mappings(names[i]), 0);
            memory_free(pcm);
        }
        assert_true(round < 15 || heap_used() == before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_format),
        cmocka_unit_test(channels_become_their_mean),
        cmocka_unit_test(channels_are_summed_in_their_order),
        cmocka_unit_test(rate_is_changed),
        cmocka_unit_test(resampled_sound_is_the_same),
        cmocka_unit_test(level_and_clipping),
        cmocka_unit_test(not_a_sound_file),
        cmocka_unit_test(outside_the_ranges),
        cmocka_unit_test(up_to_the_bounds),
        cmocka_unit_test(absurdly_loud_samples),
        cmocka_unit_test(what_is_clipped_is_counted),
        cmocka_unit_test(broken_samples),
        cmocka_unit_test(bombs_and_lies),
        cmocka_unit_test(lost_ends),
        cmocka_unit_test(every_prefix_and_bit),
        cmocka_unit_test(a_file_that_shrinks_meanwhile),
        cmocka_unit_test(calls_that_fail),
        cmocka_unit_test(nothing_stays_of_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
