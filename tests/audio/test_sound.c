/* SPDX-License-Identifier: Apache-2.0
 * Sound files: what is written can be read back by libsndfile, samples are rounded and clipped as said, and whatever
 * fails leaves no file. */
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/heap.h"
#include "tests/support.h"
#include "utter.h"

enum { RATE = 24000, N_WAVE = 12000 };

static float wave[N_WAVE];

static int make_wave(void **state)
{
    (void)state;
    for (int i = 0; i < N_WAVE; i++) {
        wave[i] = 0.5f * sinf(0.05f * (float)i) + 0.1f * sinf(0.31f * (float)i);
    }
    return 0;
}

/* Writes the wave in pieces of uneven size. */
static utter_status write_wave(
    const char *path, const char *format, utter_sample sample, utter_error *error)
{
    utter_sound *sound = NULL;
    utter_status status = utter_sound_create(&sound, path, format, sample, RATE, error);
    for (size_t at = 0, piece = 1; status == UTTER_OK && at < N_WAVE;
         at += piece, piece = 2 * piece + 1) {
        piece = piece < N_WAVE - at ? piece : N_WAVE - at;
        status = utter_sound_write(sound, wave + at, piece, error);
    }
    if (status != UTTER_OK) {
        utter_sound_abort(&sound);
        return status;
    }
    status = utter_sound_close(&sound, error);
    assert_null(sound);
    return status;
}

/* Reads a file with libsndfile; the caller frees. */
static float *read_back(const char *path, SF_INFO *info)
{
    memset(info, 0, sizeof *info);
    SNDFILE *file = sf_open(path, SFM_READ, info);
    assert_non_null(file);
    float *pcm = calloc((size_t)info->frames + 1, sizeof *pcm);
    assert_int_equal(sf_read_float(file, pcm, info->frames), info->frames);
    sf_close(file);
    return pcm;
}

static float largest_difference(const float *pcm)
{
    float largest = 0;
    for (int i = 0; i < N_WAVE; i++) {
        largest = fmaxf(largest, fabsf(pcm[i] - wave[i]));
    }
    return largest;
}

static void test_formats(void **state)
{
    (void)state;
    /* Half a step of 16 bits; the float of a float; what the lossy coders keep is measured by the energy below. */
    static const struct {
        const char *name, *format;
        utter_sample sample;
        float limit;
    } cases[] = {
        {"a.wav", NULL, UTTER_SAMPLE_S16, 0.5001f / 32768},
        {"b.wav", NULL, UTTER_SAMPLE_F32, 0},
        {"c.WAV", NULL, UTTER_SAMPLE_S16, 0.5001f / 32768},
        {"d", "wav", UTTER_SAMPLE_S16, 0.5001f / 32768},
        {"e.flac", NULL, UTTER_SAMPLE_S16, 0.5001f / 32768},
        {"f.raw", "flac", UTTER_SAMPLE_S16, 0.5001f / 32768},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        utter_error error = {0};
        const char *path = support_path(cases[i].name);
        assert_int_equal(write_wave(path, cases[i].format, cases[i].sample, &error), UTTER_OK);
        SF_INFO info;
        float *pcm = read_back(path, &info);
        assert_int_equal(info.frames, N_WAVE);
        assert_int_equal(info.channels, 1);
        assert_int_equal(info.samplerate, RATE);
        assert_true(largest_difference(pcm) <= cases[i].limit);
        free(pcm);
    }
}

static void test_lossy(void **state)
{
    (void)state;
    static const char *const names[] = {"a.ogg", "a.opus", "a.mp3"};
    enum { MP3 = 0x230000 }; /* SF_FORMAT_MPEG, which older headers do not have */
    static const int kinds[] = {SF_FORMAT_OGG | SF_FORMAT_VORBIS, SF_FORMAT_OGG | SF_FORMAT_OPUS, MP3};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        utter_error error = {0};
        const char *path = support_path(names[i]);
        utter_status status = write_wave(path, NULL, UTTER_SAMPLE_S16, &error);
        if (status == UTTER_E_ARGUMENT && strstr(error.text, "the libsndfile here")) {
            print_message("SKIP %s: %s\n", names[i], error.text);
            continue;
        }
        assert_int_equal(status, UTTER_OK);
        SF_INFO info;
        float *pcm = read_back(path, &info);
        assert_int_equal(info.channels, 1);
        assert_int_equal(info.samplerate, RATE);
        assert_true(info.frames >= N_WAVE);
        assert_int_equal(info.format & (kinds[i] == MP3 ? SF_FORMAT_TYPEMASK : INT_MAX), kinds[i]);
        double energy = 0, wanted = 0;
        for (int k = 0; k < N_WAVE; k++) {
            energy += pcm[k] * pcm[k];
            wanted += wave[k] * wave[k];
        }
        assert_true(energy > 0.8 * wanted && energy < 1.2 * wanted);
        free(pcm);
    }
}

/* Every byte of a small file, so that no reader's leniency hides a wrong header. */
static void test_wav_bytes(void **state)
{
    (void)state;
    static const unsigned char wanted[] =
        "RIFF\x2a\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\xc0\x5d\0\0\x80\xbb\0\0\2\0\x10\0"
        "data\6\0\0\0\0\x40\xff\x7f\0\x80";
    static const float pcm[] = {0.5f, 1.0f, -1.0f};
    utter_error error = {0};
    utter_sound *sound = NULL;
    const char *path = support_path("bytes.wav");
    assert_int_equal(utter_sound_create(&sound, path, NULL, UTTER_SAMPLE_S16, RATE, &error), UTTER_OK);
    assert_int_equal(utter_sound_write(sound, pcm, 3, &error), UTTER_OK);
    assert_int_equal(utter_sound_close(&sound, &error), UTTER_OK);
    size_t bytes;
    char *have = support_read_file(path, &bytes);
    assert_int_equal(bytes, sizeof wanted - 1);
    assert_memory_equal(have, wanted, bytes);
    free(have);
}

static void test_float_wav_bytes(void **state)
{
    (void)state;
    static const unsigned char wanted[] =
        "RIFF\x3a\0\0\0WAVEfmt \x12\0\0\0\3\0\1\0\x40\x1f\0\0\0\x7d\0\0\4\0\x20\0\0\0"
        "fact\4\0\0\0\2\0\0\0data\x8\0\0\0\0\0\0\x3f\0\0\0\xc0";
    static const float pcm[] = {0.5f, -2.0f};
    utter_sound *sound = NULL;
    const char *path = support_path("floats.wav");
    assert_int_equal(utter_sound_create(&sound, path, NULL, UTTER_SAMPLE_F32, 8000, NULL), UTTER_OK);
    assert_int_equal(utter_sound_write(sound, pcm, 2, NULL), UTTER_OK);
    assert_int_equal(utter_sound_write(sound, NULL, 0, NULL), UTTER_OK);
    assert_int_equal(utter_sound_close(&sound, NULL), UTTER_OK);
    size_t bytes;
    char *have = support_read_file(path, &bytes);
    assert_int_equal(bytes, sizeof wanted - 1);
    assert_memory_equal(have, wanted, bytes);
    free(have);
}

/* What is louder than can be is clipped before a coder hears it, and what is no number is silence. */
static void test_coders_are_given_what_can_be(void **state)
{
    (void)state;
    static const char *const names[] = {"ogg", "flac"};
    enum { N = 6000 };
    static float loud[N], most[N];
    for (int i = 0; i < N; i++) {
        const float x = 3 * sinf(0.05f * (float)i);
        loud[i] = i % 100 == 7 ? NAN : i % 100 == 8 ? INFINITY : x;
        most[i] = i % 100 == 7 ? 0 : i % 100 == 8 || x > 1 ? 1 : x < -1 ? -1 : x;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        float *heard[2];
        for (int k = 0; k < 2; k++) {
            utter_sound *sound = NULL;
            SF_INFO info;
            const char *path = support_path(k ? "most" : "loud");
            assert_int_equal(
                utter_sound_create(&sound, path, names[i], UTTER_SAMPLE_S16, RATE, NULL), UTTER_OK);
            assert_int_equal(utter_sound_write(sound, k ? most : loud, N, NULL), UTTER_OK);
            assert_int_equal(utter_sound_close(&sound, NULL), UTTER_OK);
            heard[k] = read_back(path, &info);
            assert_int_equal(info.frames, N);
        }
        assert_memory_equal(heard[0], heard[1], N * sizeof(float));
        free(heard[0]);
        free(heard[1]);
    }
}

/* What a file says of itself, in the words of each format; a wav says nothing. */
static void test_tags(void **state)
{
    static const char *const names[] = {"t.flac", "t.ogg", "t.opus", "t.wav"};
    static const struct {
        const char *key, *text;
        int kind;
    } tags[] = {{"title", "A title", SF_STR_TITLE}, {"artist", "Ann", SF_STR_ARTIST},
        {"album", "Songs", SF_STR_ALBUM}, {"track", "7", SF_STR_TRACKNUMBER}};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *path = support_path(names[i]);
        utter_sound *sound = NULL;
        SF_INFO info = {0};
        assert_int_equal(
            utter_sound_create(&sound, path, NULL, UTTER_SAMPLE_S16, RATE, NULL), UTTER_OK);
        for (size_t k = 0; k < sizeof tags / sizeof *tags; k++) {
            assert_int_equal(utter_sound_tag(sound, tags[k].key, tags[k].text, NULL), UTTER_OK);
            assert_int_equal(
                utter_sound_tag(sound, tags[k].key, "", NULL), UTTER_OK); /* nothing to say */
        }
        assert_int_equal(utter_sound_write(sound, wave, 100, NULL), UTTER_OK);
        assert_int_equal(utter_sound_close(&sound, NULL), UTTER_OK);
        SNDFILE *file = sf_open(path, SFM_READ, &info);
        assert_non_null(file);
        for (size_t k = 0; k < sizeof tags / sizeof *tags; k++) {
            const char *text = sf_get_string(file, tags[k].kind);
            assert_string_equal(text ? text : "", i == 3 ? "" : tags[k].text);
        }
        sf_close(file);
    }
}

static void tag_refused(utter_sound *sound, const char *key, const char *text)
{
    utter_error error = {0};
    assert_int_equal(utter_sound_tag(sound, key, text, &error), UTTER_E_ARGUMENT);
    assert_string_equal(error.text, "utter_sound_tag: no sound or text, an unknown key, or too late");
}

static void test_tags_refused(void **state)
{
    (void)state;
    utter_sound *sound = NULL;
    assert_int_equal(
        utter_sound_create(&sound, support_path("r.wav"), NULL, UTTER_SAMPLE_S16, RATE, NULL),
        UTTER_OK);
    tag_refused(NULL, "title", "x");
    tag_refused(sound, NULL, "x");
    tag_refused(sound, "title", NULL);
    tag_refused(sound, "Title", "x");
    tag_refused(sound, "tracks", "x");
    assert_int_equal(utter_sound_tag(sound, "track", "x", NULL), UTTER_OK);
    assert_int_equal(utter_sound_write(sound, wave, 1, NULL), UTTER_OK);
    tag_refused(sound, "track", "x");
    utter_sound_abort(&sound);
}

static void test_rounding(void **state)
{
    (void)state;
    static const float pcm[] = {
        0, 1, -1, 2, -2, 0.4f / 32768, 0.6f / 32768, -0.6f / 32768, NAN, INFINITY, -INFINITY};
    static const int16_t wanted[] = {0, 32767, -32768, 32767, -32768, 0, 1, -1, 0, 32767, -32768};
    utter_error error = {0};
    utter_sound *sound = NULL;
    const char *path = support_path("rounded.raw");
    assert_int_equal(utter_sound_create(&sound, path, NULL, UTTER_SAMPLE_S16, RATE, &error), UTTER_OK);
    assert_int_equal(utter_sound_write(sound, pcm, sizeof pcm / sizeof *pcm, &error), UTTER_OK);
    assert_int_equal(utter_sound_close(&sound, &error), UTTER_OK);
    size_t bytes;
    char *have = support_read_file(path, &bytes);
    assert_int_equal(bytes, sizeof wanted);
    assert_memory_equal(have, wanted, bytes);
    free(have);
}

/* The header of a stream says "to the end"; libsndfile then reads what is there. */
static void test_stream(void **state)
{
    (void)state;
    const char *path = support_path("stream.wav");
    int kept = dup(STDOUT_FILENO);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    assert_true(kept >= 0 && file >= 0);
    fflush(stdout);
    dup2(file, STDOUT_FILENO);
    utter_error error = {0};
    utter_status wav = write_wave("-", "wav", UTTER_SAMPLE_F32, &error);
    utter_status flac = write_wave("-", "flac", UTTER_SAMPLE_S16, &error);
    dup2(kept, STDOUT_FILENO);
    close(kept);
    close(file);
    assert_int_equal(wav, UTTER_OK);
    assert_int_equal(flac, UTTER_E_ARGUMENT);
    size_t bytes;
    char *have = support_read_file(path, &bytes);
    assert_int_equal(bytes, 58 + 4 * N_WAVE);
    assert_memory_equal(have + 4, "\xff\xff\xff\xff", 4);
    assert_memory_equal(have + 54, "\xff\xff\xff\xff", 4);
    assert_memory_equal(have + 58, wave, sizeof wave);
    free(have);
}

/* A plain name on standard output is samples alone; a wav of 16 bits has its own header there. */
static void test_plain_stream(void **state)
{
    (void)state;
    static const float pcm[] = {0.5f, -0.5f};
    static const char wanted[] =
        "\0\x40\0\xc0"
        "RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0\1\0\1\0\xc0\x5d\0\0\x80\xbb\0\0\2\0\x10\0"
        "data\xff\xff\xff\xff\0\x40\0\xc0";
    static const char *const formats[] = {NULL, "WAV"};
    const char *path = support_path("plain.stream");
    int kept = dup(STDOUT_FILENO), n_good = 0;
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    assert_true(kept >= 0 && file >= 0);
    fflush(stdout);
    dup2(file, STDOUT_FILENO);
    for (int i = 0; i < 2; i++) {
        utter_sound *sound = NULL;
        n_good +=
            utter_sound_create(&sound, "-", formats[i], UTTER_SAMPLE_S16, RATE, NULL) == UTTER_OK &&
            utter_sound_write(sound, pcm, 2, NULL) == UTTER_OK &&
            utter_sound_close(&sound, NULL) == UTTER_OK;
    }
    dup2(kept, STDOUT_FILENO);
    close(kept);
    close(file);
    assert_int_equal(n_good, 2);
    size_t bytes;
    char *have = support_read_file(path, &bytes);
    assert_int_equal(bytes, sizeof wanted - 1);
    assert_memory_equal(have, wanted, bytes);
    free(have);
}

/* Each reason in full, where it names the file and what would do. */
static void test_reasons(void **state)
{
    static const struct {
        const char *path, *format;
        utter_sample sample;
        int rate;
        const char *text;
    } cases[] = {
        {"a\tb", NULL, UTTER_SAMPLE_S16, RATE,
            "a\\tb: the name does not tell the format (let it end in .wav, or say the format)"},
        {"a.wav/b", NULL, UTTER_SAMPLE_S16, RATE,
            "a.wav/b: the name does not tell the format (let it end in .wav, or say the format)"},
        {"a.", NULL, UTTER_SAMPLE_S16, RATE,
            "a.: the name does not tell the format (let it end in .wav, or say the format)"},
        {"a.wav.xy", NULL, UTTER_SAMPLE_S16, RATE,
            "a.wav.xy: no sound format 'xy' (there are wav, raw, pcm, flac, ogg, opus, mp3)"},
        {"a.wav", "wa", UTTER_SAMPLE_S16, RATE,
            "a.wav: no sound format 'wa' (there are wav, raw, pcm, flac, ogg, opus, mp3)"},
        {"a.flac", NULL, UTTER_SAMPLE_F32, RATE,
            "a.flac: flac holds no 32-bit floats (wav and raw do; or leave the samples at 16 bits)"},
        {"-", "ogg", UTTER_SAMPLE_F32, RATE,
            "standard output: ogg holds no 32-bit floats (wav and raw do; or leave the samples at 16 "
            "bits)"},
        {"-", "ogg", UTTER_SAMPLE_S16, RATE,
            "standard output: ogg needs a file (a stream takes raw and wav)"},
        {"a.wav", NULL, UTTER_SAMPLE_S16, 999,
            "utter_sound_create: no path, an unknown sample type, or a rate outside 1000..768000"},
        {"a.wav", NULL, UTTER_SAMPLE_S16, 768001,
            "utter_sound_create: no path, an unknown sample type, or a rate outside 1000..768000"},
        {"", "wav", UTTER_SAMPLE_S16, RATE,
            "utter_sound_create: no path, an unknown sample type, or a rate outside 1000..768000"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        utter_sound *sound = (utter_sound *)1;
        utter_error error = {0};
        assert_int_equal(utter_sound_create(&sound, cases[i].path, cases[i].format, cases[i].sample,
                             cases[i].rate, &error),
            UTTER_E_ARGUMENT);
        assert_null(sound);
        assert_string_equal(error.text, cases[i].text);
    }
    static const int rates[] = {1000, 768000};
    for (size_t i = 0; i < 2; i++) {
        utter_sound *sound;
        assert_int_equal(utter_sound_create(
                             &sound, support_path("edge.wav"), NULL, UTTER_SAMPLE_S16, rates[i], NULL),
            UTTER_OK);
        utter_sound_abort(&sound);
    }
}

static void test_refused(void **state)
{
    (void)state;
    utter_error error = {0};
    utter_sound *sound = NULL;
    static const struct {
        const char *name, *format;
        int sample, rate;
    } cases[] = {
        {"x.xyz", NULL, UTTER_SAMPLE_S16, RATE},
        {"x", NULL, UTTER_SAMPLE_S16, RATE},
        {"x.wav/", NULL, UTTER_SAMPLE_S16, RATE},
        {"x.wav", "wave", UTTER_SAMPLE_S16, RATE},
        {"x.wav", "", UTTER_SAMPLE_S16, RATE},
        {"x.wav", NULL, 2, RATE},
        {"x.wav", NULL, UTTER_SAMPLE_S16, 0},
        {"x.wav", NULL, UTTER_SAMPLE_S16, -1},
        {"x.opus", NULL, UTTER_SAMPLE_S16, 22050},
    };
    int n_files = support_count_files(support_folder());
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        error = (utter_error){0};
        const char *path = support_path(cases[i].name);
        assert_int_equal(utter_sound_create(&sound, path, cases[i].format,
                             (utter_sample)cases[i].sample, cases[i].rate, &error),
            UTTER_E_ARGUMENT);
        assert_null(sound);
        assert_true(strlen(error.text) > 10);
    }
    assert_int_equal(
        utter_sound_create(NULL, "x.wav", NULL, UTTER_SAMPLE_S16, RATE, &error), UTTER_E_ARGUMENT);
    assert_int_equal(
        utter_sound_create(&sound, NULL, "wav", UTTER_SAMPLE_S16, RATE, &error), UTTER_E_ARGUMENT);
    assert_int_equal(utter_sound_write(NULL, wave, 1, &error), UTTER_E_ARGUMENT);
    assert_int_equal(utter_sound_close(NULL, &error), UTTER_OK);
    utter_sound_abort(NULL);
    utter_sound_abort(&sound);
    assert_int_equal(support_count_files(support_folder()), n_files);
}

static void test_abort(void **state)
{
    (void)state;
    int n_files = support_count_files(support_folder());
    static const char *const names[] = {"dropped.wav", "dropped.flac", "dropped.ogg"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        utter_sound *sound = NULL;
        const char *path = support_path(names[i]);
        assert_int_equal(
            utter_sound_create(&sound, path, NULL, UTTER_SAMPLE_S16, RATE, NULL), UTTER_OK);
        assert_int_equal(utter_sound_write(sound, wave, N_WAVE, NULL), UTTER_OK);
        utter_sound_abort(&sound);
        assert_null(sound);
    }
    assert_int_equal(support_count_files(support_folder()), n_files);
}

/* The n-th call fails, for every n: the status says so, the old file stays, and no other is left. */
static void fail_each(enum support_call call, const char *name, utter_status wanted)
{
    const char *path = support_path(name);
    support_write_file(path, "old", 3);
    int n_files = support_count_files(support_folder());
    SUPPORT_EACH_FAILURE(call, n)
    {
        utter_error error = {0};
        utter_status status = write_wave(path, NULL, UTTER_SAMPLE_S16, &error);
        /* The second sync is the folder's, which nobody insists on. */
        bool fails = support_failed() && !(call == SUPPORT_FSYNC && n == 2);
        assert_int_equal(status, fails ? wanted : UTTER_OK);
        assert_int_equal(error.code, status);
        size_t bytes;
        char *have = support_read_file(path, &bytes);
        assert_true(fails == (bytes == 3));
        free(have);
        assert_int_equal(support_count_files(support_folder()), n_files);
    }
    unlink(path);
}

static void test_failures(void **state)
{
    (void)state;
    fail_each(SUPPORT_WRITE, "failed.wav", UTTER_E_IO);
    fail_each(SUPPORT_WRITE, "failed.flac", UTTER_E_IO);
    fail_each(SUPPORT_WRITE, "failed.ogg", UTTER_E_IO);
    fail_each(SUPPORT_FSYNC, "failed.wav", UTTER_E_IO);
    fail_each(SUPPORT_RENAME, "failed.flac", UTTER_E_IO);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    int n_files = support_count_files(support_folder());
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        utter_status status = write_wave(support_path("memory.wav"), NULL, UTTER_SAMPLE_S16, NULL);
        assert_int_equal(status, support_failed() ? UTTER_E_MEMORY : UTTER_OK);
    }
    unlink(support_path("memory.wav"));
    assert_int_equal(support_count_files(support_folder()), n_files);
}

/* Of a file that was written or given up all memory goes back. */
static void test_nothing_stays(void **state)
{
    static const char *const gone[] = {"gone.wav", "gone.flac"};
    (void)state;
    for (int round = 0; round < 16;
         round++) { /* until the heap has in store what it keeps of freed blocks */
        size_t before = heap_used();
        assert_int_equal(write_wave(support_path("stays.wav"), NULL, UTTER_SAMPLE_S16, NULL), UTTER_OK);
        assert_true(round < 15 || heap_used() == before);
        utter_sound *sound;
        for (size_t i = 0; i < sizeof gone / sizeof *gone; i++) {
            assert_int_equal(
                utter_sound_create(&sound, support_path(gone[i]), NULL, UTTER_SAMPLE_S16, RATE, NULL),
                UTTER_OK);
            assert_int_equal(utter_sound_tag(sound, "title", "t", NULL), UTTER_OK);
            assert_int_equal(utter_sound_write(sound, wave, 5000, NULL), UTTER_OK);
            utter_sound_abort(&sound);
            assert_null(sound);
        }
        assert_int_equal(
            utter_sound_create(&sound, "-", "flac", UTTER_SAMPLE_S16, RATE, NULL), UTTER_E_ARGUMENT);
        assert_null(sound);
        assert_true(round < 15 || heap_used() == before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formats),
        cmocka_unit_test(test_lossy),
        cmocka_unit_test(test_wav_bytes),
        cmocka_unit_test(test_float_wav_bytes),
        cmocka_unit_test(test_coders_are_given_what_can_be),
        cmocka_unit_test(test_tags),
        cmocka_unit_test(test_tags_refused),
        cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_stream),
        cmocka_unit_test(test_plain_stream),
        cmocka_unit_test(test_reasons),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_abort),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_nothing_stays),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, make_wave, NULL);
}
