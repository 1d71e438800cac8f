/* SPDX-License-Identifier: Apache-2.0
 * Whatever is done through utter.h gives back what it took, to the byte: of the heap, of descriptors and of mapped
 * files, also where it is left in the middle or refused. */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/heap.h"
#include "utter.h"

#define PRESETS "build/checkpoints/tiny17-custom_voice"
#define BASE "build/checkpoints/tiny06-base"
#define DESIGNER "build/checkpoints/tiny06-voice_design"
#define EOS_FIRST "build/checkpoints/eos-first"

enum { RATE = 24000, N_SAMPLES = 2 * RATE };

static const char TEXT[] = "Hello there, friend. How are you today?";

static utter_model *presets, *base, *designer, *eos_first;
static float sound[N_SAMPLES];

static utter_model *open_model(const char *path)
{
    utter_model *model;
    utter_model_options o;
    utter_model_options_init(&o);
    o.n_threads = 1;
    o.device = "cpu";
    o.snapshot_bytes = 0; /* beginnings are kept for others on purpose */
    assert_int_equal(utter_model_open(&model, path, &o, NULL), UTTER_OK);
    return model;
}

static int open_models(void **state)
{
    (void)state;
    for (int i = 0; i < N_SAMPLES; i++) {
        sound[i] = 0.3f * sinf(0.05f * (float)i) * sinf(0.0007f * (float)i);
    }
    presets = open_model(PRESETS);
    base = open_model(BASE);
    designer = open_model(DESIGNER);
    eos_first = open_model(EOS_FIRST);
    return 0;
}

static int close_models(void **state)
{
    (void)state;
    utter_model_close(&presets);
    utter_model_close(&base);
    utter_model_close(&designer);
    utter_model_close(&eos_first);
    return 0;
}

/* ---- What is done ---- */

static void open_and_close(void)
{
    static const char *const kernels[] = {NULL, "none"};
    utter_model *model = open_model(BASE);
    utter_model_close(&model);
    for (int i = 0; i < 2; i++) {
        utter_model_options o;
        utter_model_options_init(&o);
        o.n_threads = 1;
        o.device = "cpu";
        o.cpu_kernels = kernels[i];
        o.cache = support_folder();
        o.weights = UTTER_WEIGHTS_Q8;
        assert_int_equal(utter_model_open(&model, i ? PRESETS : "/nowhere", &o, NULL),
            i ? UTTER_E_ARGUMENT : UTTER_E_FILE);
    }
}

/* `n_frames`: the stream is left behind so many. */
static void speak(utter_model *model, const utter_voice *voice, const char *language, int n_frames)
{
    float pcm[1920];
    size_t n;
    utter_stream *stream;
    utter_stream_options o;
    utter_status status;
    utter_stream_options_init(&o, model);
    o.max_frames = 12;
    o.words = true;
    o.voice = voice;
    o.language = language;
    status = utter_stream_open(&stream, model, &o, NULL);
    for (int i = 0; i < 2 && !status; i++) {
        status = utter_stream_text(stream, TEXT, sizeof TEXT - 1, NULL);
    }
    status = status ? status : utter_stream_finish(stream, NULL);
    for (int i = 0; i < n_frames && !status; i++) {
        status = utter_stream_read(stream, pcm, 1920, &n, NULL);
    }
    utter_stream_free(&stream);
}

static void speak_and_leave(void)
{
    utter_voice *voice;
    assert_int_equal(
        utter_voice_preset(&voice, presets, utter_model_voice_name(presets, 0), NULL), UTTER_OK);
    speak(presets, voice, NULL, 20);
    speak(presets, voice, "english", 5);
    speak(presets, voice, NULL, 0);
    speak(presets, voice, "klingon", 20);
    utter_voice_free(&voice);
    assert_int_equal(utter_voice_preset(&voice, presets, "nobody", NULL), UTTER_E_ARGUMENT);
}

static void tokenize(void)
{
    int32_t *ids;
    size_t n;
    assert_int_equal(utter_model_tokenize(base, TEXT, sizeof TEXT - 1, &ids, &n, NULL), UTTER_OK);
    utter_memory_free(ids);
    assert_int_equal(utter_model_tokenize(base, "a\xff", 2, &ids, &n, NULL), UTTER_E_ARGUMENT);
}

static void clone_and_keep(void)
{
    const char *path = support_path("a.voice"), *damaged = support_path("b.voice");
    utter_clone_options o;
    utter_voice *voices[2], *mixed, *again;
    size_t bytes;
    utter_clone_options_init(&o);
    o.language = "english";
    assert_int_equal(utter_voice_clone_samples(&voices[0], base, sound, N_SAMPLES, &o, NULL), UTTER_OK);
    o.transcript = "Hello.";
    assert_int_equal(utter_voice_clone_samples(&voices[1], base, sound, N_SAMPLES, &o, NULL), UTTER_OK);
    speak(base, voices[1], NULL, 20);
    assert_int_equal(utter_voice_save(voices[1], path, NULL), UTTER_OK);
    assert_int_equal(utter_voice_load(&again, path, NULL), UTTER_OK);
    utter_voice_free(&again);
    char *data = support_read_file(path, &bytes);
    data[bytes / 2] ^= 1;
    support_write_file(damaged, data, bytes);
    free(data);
    assert_int_equal(utter_voice_load(&again, damaged, NULL), UTTER_E_FILE);
    assert_int_equal(utter_voice_mix(&mixed, (const utter_voice *const[]){voices[0], voices[1]},
                         (const double[]){1, 2}, 2, "both", NULL),
        UTTER_OK);
    utter_voice_free(&mixed);
    utter_voice_free(&voices[0]);
    utter_voice_free(&voices[1]);
    o.transcript = " ";
    assert_int_equal(
        utter_voice_clone_samples(&voices[0], base, sound, N_SAMPLES, &o, NULL), UTTER_E_ARGUMENT);
}

static bool take(void *user, const float *pcm, size_t n)
{
    (void)user, (void)pcm, (void)n;
    return true;
}

static void encode_and_decode(void)
{
    const char *path = support_path("sound.wav");
    utter_sound *file;
    utter_voice *voice;
    int32_t *codes;
    size_t n;
    assert_int_equal(utter_sound_create(&file, path, "wav", UTTER_SAMPLE_F32, RATE, NULL), UTTER_OK);
    assert_int_equal(utter_sound_write(file, sound, N_SAMPLES, NULL), UTTER_OK);
    assert_int_equal(utter_sound_close(&file, NULL), UTTER_OK);
    assert_int_equal(utter_codec_encode(base, path, &codes, &n, NULL, NULL, NULL), UTTER_OK);
    assert_int_equal(
        utter_codec_decode(base, codes, n, UTTER_CODEC_WHOLE, 0, take, NULL, NULL), UTTER_OK);
    utter_memory_free(codes);
    assert_int_equal(utter_voice_clone(&voice, base, path, NULL, NULL, NULL), UTTER_OK);
    utter_voice_free(&voice);
}

static void ignore(void *user, const utter_check *check)
{
    (void)user, (void)check;
}

static void verify(void)
{
    static const char golden[] = "tests/golden/eos-first.safetensors";
    assert_int_equal(utter_model_verify(eos_first, golden, ignore, NULL, NULL), UTTER_OK);
    assert_int_equal(utter_model_verify(base, golden, ignore, NULL, NULL), UTTER_E_ARGUMENT);
    assert_int_equal(utter_model_verify(base, "Makefile", ignore, NULL, NULL), UTTER_E_FILE);
    assert_int_equal(
        utter_model_verify(base, BASE "/model.safetensors", ignore, NULL, NULL), UTTER_E_FILE);
}

static void design(void)
{
    utter_voice *voice;
    utter_design_options o;
    utter_design_options_init(&o);
    o.text = "Hello.";
    utter_voice_design(&voice, designer, "A calm old man.", base, &o, NULL);
    utter_voice_free(&voice);
    o.language = "klingon";
    utter_voice_design(&voice, designer, "A calm old man.", base, &o, NULL);
    assert_null(voice);
}

static void align(void)
{
    static const char *const texts[] = {"Hello there.", "How are you?"};
    utter_head *heads;
    utter_stream_options o;
    size_t n;
    utter_stream_options_init(&o, presets);
    o.max_frames = 6;
    assert_int_equal(
        utter_model_align_heads(presets, &o, texts, 2, support_path("heads"), &heads, &n, NULL),
        UTTER_OK);
    assert_true(n > 0);
    utter_memory_free(heads);
    assert_int_equal(utter_model_align_heads(presets, &o, texts, 2, "/nowhere/heads", &heads, &n, NULL),
        UTTER_E_FILE);
}

static void read_aloud(void)
{
    static const char text[] = "[voice:default]One. [pause:1s] Two [rate:120%]three.";
    float pcm[1920];
    char *spoken;
    size_t n;
    utter_reading_options o;
    utter_stream_options v;
    utter_reading_options_init(&o);
    utter_stream_options_init(&v, presets);
    v.max_frames = 4;
    o.markup = UTTER_MARKUP_TAGS;
    for (int i = 0; i < 2; i++) {
        utter_reading *reading;
        utter_status status;
        assert_int_equal(utter_reading_open(&reading, presets, &v, &o, NULL), UTTER_OK);
        assert_int_equal(utter_reading_text(reading, text, sizeof text - 1, NULL), UTTER_OK);
        status = utter_reading_finish(reading, NULL);
        for (int k = 0; (i == 0 || k < 3) && !status; k++) {
            status = utter_reading_read(reading, pcm, 1920, &n, NULL);
        }
        utter_reading_free(&reading);
    }
    assert_int_equal(
        utter_text_spoken(&spoken, text, sizeof text - 1, &o, NULL, NULL, NULL, NULL, NULL), UTTER_OK);
    utter_memory_free(spoken);
}

/* Where memory is missing a voice is not there, and no part of it. */
static void run_short(void)
{
    const char *path = support_path("c.voice");
    utter_clone_options o;
    utter_voice *voice, *other;
    utter_clone_options_init(&o);
    o.transcript = "Hello.";
    o.language = "english";
    assert_int_equal(utter_voice_clone_samples(&voice, base, sound, N_SAMPLES, &o, NULL), UTTER_OK);
    assert_int_equal(utter_voice_save(voice, path, NULL), UTTER_OK);
    for (int kind = 0; kind < 3; kind++) {
        SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
        {
            const double weight = 1;
            const char *name = utter_model_voice_name(presets, 0);
            const utter_status status =
                kind == 0 ? utter_voice_mix(
                                &other, (const utter_voice *const[]){voice}, &weight, 1, "one", NULL)
                : kind == 1 ? utter_voice_load(&other, path, NULL)
                            : utter_voice_preset(&other, presets, name, NULL);
            assert_int_equal(status, support_failed() ? UTTER_E_MEMORY : UTTER_OK);
            utter_voice_free(&other);
        }
    }
    utter_voice_free(&voice);
}

static const struct {
    const char *name;
    void (*run)(void);
} things[] = {{"opening", open_and_close}, {"speaking", speak_and_leave}, {"tokens", tokenize},
    {"clones", clone_and_keep}, {"codes", encode_and_decode}, {"verification", verify},
    {"designs", design}, {"heads", align}, {"readings", read_aloud}, {"failures", run_short}};

/* ---- What is held ---- */

static int count_mapped(void)
{
    char line[5000];
    int n = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps)) {
        n += strchr(line, '/') != NULL;
    }
    fclose(maps);
    return n;
}

/* Done again and again it holds no more than before: what something keeps of each time is more each time, whatever the
 * heap keeps for its own use. */
static void all_is_given_back(void **state)
{
    (void)state;
    enum { WARM = 1, ROUNDS = 2 };
    if (SUPPORT_SANITIZED) {
        skip(); /* which looks for itself */
    }
    for (size_t i = 0; i < sizeof things / sizeof *things; i++) {
        bool even = false;
        for (int k = 0; k < WARM; k++) {
            things[i].run();
        }
        const int n_files = support_count_files("/proc/self/fd"), n_mapped = count_mapped();
        size_t before = heap_used(), first = before;
        for (int k = 0; k < ROUNDS; k++) {
            things[i].run();
            const size_t now = heap_used();
            even = even || now <= before;
            before = now;
        }
        if (!even) {
            fail_msg("%s: the heap holds %zu bytes more each time", things[i].name,
                (before - first) / ROUNDS);
        }
        assert_int_equal(support_count_files("/proc/self/fd"), n_files);
        assert_int_equal(count_mapped(), n_mapped);
    }
}

/* The heap keeps small blocks for each thread, which count as held: without them what is held is exact. */
int main(int argc, char **argv)
{
    (void)argc;
    if (!getenv("GLIBC_TUNABLES")) {
        setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0", 1);
        execv("/proc/self/exe", argv);
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_is_given_back)};
    return cmocka_run_group_tests_name("given back", tests, open_models, close_models);
}
