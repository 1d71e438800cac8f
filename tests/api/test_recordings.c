/* SPDX-License-Identifier: Apache-2.0
 * Voices from sound files through utter.h: what a clone is called and tells of its origin, which part is heard, options
 * to their last values, mixtures, designs in each language; codes of a file. */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"

#define BASE "build/checkpoints/tiny06-base"
#define DESIGNER "build/checkpoints/tiny06-voice_design"

enum { RATE = 24000, N_SAMPLES = 5 * RATE };

static char said[1024]; /* notes, a line each */

static void keep_line(void *user, const char *line)
{
    (void)user;
    strncat(said, line, sizeof said - strlen(said) - 2);
    strcat(said, "\n");
}

static utter_model *open_model(const char *path)
{
    utter_model *model;
    utter_error error = {.text = ""};
    utter_model_options o;
    utter_model_options_init(&o);
    o.n_threads = 1;
    o.log = keep_line;
    said[0] = 0;
    utter_model_open(&model, path, &o, &error);
    assert_string_equal(error.text, "");
    said[0] = 0;
    return model;
}

static float *make_sound(void)
{
    float *pcm = calloc(N_SAMPLES, sizeof *pcm);
    for (int i = 0; i < N_SAMPLES; i++) {
        pcm[i] = 0.3f * sinf(0.05f * (float)i) * sinf(0.0007f * (float)i);
    }
    return pcm;
}

/* A sound file of the first n samples, as floats, under that name. */
static const char *write_sound(const char *name, const float *pcm, size_t n, int rate)
{
    utter_sound *sound;
    const char *path = support_path(name);
    assert_int_equal(utter_sound_create(&sound, path, "wav", UTTER_SAMPLE_F32, rate, NULL), UTTER_OK);
    assert_int_equal(utter_sound_write(sound, pcm, n, NULL), UTTER_OK);
    assert_int_equal(utter_sound_close(&sound, NULL), UTTER_OK);
    return path;
}

static utter_voice_info info_of(const utter_voice *voice)
{
    utter_voice_info info = {.size = sizeof info};
    assert_int_equal(utter_voice_get_info(voice, &info), UTTER_OK);
    return info;
}

/* By the file's name without its folder and its last ending, however strange it is. */
static void a_clone_is_called_as_its_file(void **state)
{
    (void)state;
    static const char *const names[][2] = {{"ann.wav", "ann"}, {"a.b.wav", "a.b"}, {".wav", ".wav"},
        {"bob", "bob"}, {"x\x01y.wav", "x\\x01y"}};
    utter_model *model = open_model(BASE);
    float *pcm = make_sound();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        utter_voice *voice;
        utter_error error = {.text = ""};
        char wanted[256];
        utter_recording heard = {.size = sizeof heard};
        const char *path = write_sound(names[i][0], pcm, N_SAMPLES, RATE);
        utter_voice_clone(&voice, model, path, NULL, &heard, &error);
        assert_string_equal(error.text, "");
        assert_string_equal(utter_voice_name(voice), names[i][1]);
        snprintf(wanted, sizeof wanted, "cloned from %s, 5.00 s at 24000 Hz, by utter %s", names[i][1],
            utter_version_text());
        const utter_voice_info info = info_of(voice);
        assert_string_equal(info.provenance, wanted);
        assert_true(info.size == sizeof info && info.kind == UTTER_VOICE_VECTOR && info.width > 0 &&
                    !info.language);
        assert_true(heard.size == sizeof heard && heard.sample_rate == RATE && heard.channels == 1);
        assert_true(
            heard.seconds == 5 && heard.clipped == 0 && heard.peak > 0.25 && heard.peak <= 0.3001);
        assert_true(heard.rms_db > -20 && heard.rms_db < -14);
        utter_voice_free(&voice);
        assert_null(voice);
    }
    assert_string_equal(said, "");
    free(pcm);
    utter_model_close(&model);
}

/* A part of a file is what its samples alone give, but for what is said of it. */
static void a_part_of_a_file_is_heard(void **state)
{
    (void)state;
    utter_model *model = open_model(BASE);
    float *pcm = make_sound();
    const char *path = write_sound("whole.wav", pcm, N_SAMPLES, RATE);
    utter_voice *part, *samples;
    utter_recording heard = {.size = sizeof heard};
    utter_clone_options o;
    utter_clone_options_init(&o);
    o.from_seconds = 1;
    o.to_seconds = 3;
    o.max_seconds = 2;
    o.transcript = "Hello.";
    o.name = "Ann";
    o.language = "english";
    assert_int_equal(utter_voice_clone(&part, model, path, &o, &heard, NULL), UTTER_OK);
    assert_true(heard.seconds == 2);
    assert_string_equal(
        said, "the recording is short, 2.0 s; 5 to 15 s of speech make a better voice\n");
    o.from_seconds = o.to_seconds = 0;
    assert_int_equal(
        utter_voice_clone_samples(&samples, model, pcm + RATE, 2 * RATE, &o, NULL), UTTER_OK);
    const utter_voice_info a = info_of(part), b = info_of(samples);
    assert_string_equal(a.name, "Ann");
    assert_string_equal(a.language, "english");
    assert_string_equal(a.transcript, "Hello.");
    assert_int_equal(a.kind, UTTER_VOICE_CONTEXT);
    assert_int_equal(a.n_frames, 25);
    assert_int_equal(b.n_frames, 25);
    assert_int_equal(a.n_codebooks, 16);
    assert_memory_equal(a.codes, b.codes, 25 * 16 * sizeof *a.codes);
    assert_memory_equal(a.x_vector, b.x_vector, (size_t)a.width * sizeof *a.x_vector);
    char wanted[128];
    snprintf(wanted, sizeof wanted, "cloned from 2.00 s of samples, by utter %s", utter_version_text());
    assert_string_equal(b.provenance, wanted);
    utter_voice_free(&part);
    utter_voice_free(&samples);
    o.name = NULL;
    assert_int_equal(utter_voice_clone_samples(&samples, model, pcm, 2 * RATE, &o, NULL), UTTER_OK);
    assert_string_equal(utter_voice_name(samples), "clone");
    utter_voice_free(&samples);
    free(pcm);
    utter_model_close(&model);
}

/* Too short or silent: the file is named, and what was heard of it is told all the same. */
static void a_file_with_too_little_is_refused(void **state)
{
    static const struct {
        const char *name, *said;
        size_t n;
        float level;
    } cases[] = {{"short.wav", "the recording is too short, 0.20 s", RATE / 5, 1},
        {"silent.wav", "the recording is silent", N_SAMPLES, 0}};
    utter_model *model = open_model(BASE);
    float *pcm = make_sound();
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        utter_voice *voice = (utter_voice *)1;
        utter_recording heard = {.size = sizeof heard};
        utter_error error = {.text = ""};
        for (size_t k = 0; k < cases[i].n; k++) {
            pcm[k] *= cases[i].level;
        }
        const char *path = write_sound(cases[i].name, pcm, cases[i].n, RATE);
        assert_int_equal(
            utter_voice_clone(&voice, model, path, NULL, &heard, &error), UTTER_E_ARGUMENT);
        assert_null(voice);
        assert_int_equal(strncmp(error.text, path, strlen(path)), 0);
        assert_non_null(strstr(error.text, cases[i].said));
        assert_true(heard.sample_rate == RATE && heard.channels == 1);
    }
    assert_string_equal(said, "");
    free(pcm);
    utter_model_close(&model);
}

/* Of a hum too the file is named, at the rate that the file is heard at. */
static void a_file_with_an_even_sound_is_refused(void **state)
{
    static const int rates[] = {RATE, 2 * RATE};
    utter_model *model = open_model(BASE);
    float *pcm = calloc(N_SAMPLES, sizeof *pcm);
    (void)state;
    for (int i = 0; i < N_SAMPLES; i++) {
        pcm[i] = 0.3f * sinf(0.06f * (float)i);
    }
    for (size_t i = 0; i < 2; i++) {
        utter_voice *voice = (utter_voice *)1;
        utter_error error = {.text = ""};
        char wanted[512];
        const char *path = write_sound("hum.wav", pcm, N_SAMPLES, rates[i]);
        snprintf(wanted, sizeof wanted,
            "%s: no speech is heard, only an even sound (5 to 15 s of speech make a voice)", path);
        assert_int_equal(utter_voice_clone(&voice, model, path, NULL, NULL, &error), UTTER_E_ARGUMENT);
        assert_string_equal(error.text, wanted);
        assert_null(voice);
    }
    assert_string_equal(said, "");
    free(pcm);
    utter_model_close(&model);
}

static int n_asked; /* of a device without power */

static utter_status fail_to_hear(
    struct backend *b, const float *mels, size_t n_mels, float *vector, utter_error *error)
{
    (void)b, (void)mels, (void)n_mels, (void)vector;
    n_asked++;
    return error_set(error, UTTER_E_DEVICE, "no power");
}

static utter_status fail_to_encode(struct backend *b, const float *pcm, size_t n_samples,
    int32_t *codes, size_t capacity, size_t *n_frames, backend_progress_fn *progress, void *user,
    utter_error *error)
{
    (void)b, (void)pcm, (void)n_samples, (void)codes, (void)capacity, (void)n_frames, (void)progress;
    (void)user;
    n_asked++;
    return error_set(error, UTTER_E_DEVICE, "no power");
}

/* A device that failed is not asked again, whichever way it is asked. */
static void a_device_that_failed_is_asked_no_more(void **state)
{
    utter_model *model = open_model(BASE);
    struct backend_ops ops = cpu_backend;
    float *pcm = make_sound();
    const char *path = write_sound("asked.wav", pcm, N_SAMPLES, RATE);
    (void)state;
    ops.speaker = fail_to_hear;
    ops.encode = fail_to_encode;
    model->engine.context.ops = &ops;
    for (int i = 0; i < 3; i++) {
        n_asked = 0;
        for (int again = 0; again < 2; again++) {
            utter_voice *voice = NULL;
            int32_t *codes = NULL;
            size_t n = 0;
            utter_error error = {.text = ""};
            const utter_status status =
                i == 0   ? utter_voice_clone(&voice, model, path, NULL, NULL, &error)
                : i == 1 ? utter_voice_clone_samples(&voice, model, pcm, N_SAMPLES, NULL, &error)
                         : utter_codec_encode(model, path, &codes, &n, NULL, NULL, &error);
            assert_int_equal(status, UTTER_E_DEVICE);
            assert_string_equal(error.text, "no power");
            assert_true(!voice && !codes && n_asked == 1);
        }
        model->engine.broken.code = UTTER_OK;
    }
    free(pcm);
    model->engine.context.ops = &cpu_backend;
    utter_model_close(&model);
}

static void clone_options_have_bounds(void **state)
{
    (void)state;
    static const struct {
        double max, from, to;
        const char *said; /* "": the recording is looked for, and not found */
    } cases[] = {
        {120, 0, 0, ""},
        {3600, 1e6, 0, ""},
        {0.001, 2, 1e6, ""},
        {1, 0, 0.001, ""},
        {0, 0, 0, "max_seconds 0 is not above 0 and at most 3600"},
        {-1, 0, 0, "max_seconds -1 is not above 0"},
        {3600.5, 0, 0, "max_seconds 3600.5 is not above 0"},
        {NAN, 0, 0, "max_seconds nan"},
        {1, -0.5, 0, "no part of a recording: from -0.5 s to 0 s"},
        {1, 1000001, 0, "no part of a recording"},
        {1, 0, 1000001, "no part of a recording"},
        {1, 2, 2, "no part of a recording: from 2 s to 2 s"},
        {1, 2, 1, "no part of a recording: from 2 s to 1 s"},
        {1, 0, -1, "no part of a recording"},
        {1, NAN, 0, "no part of a recording"},
        {1, 0, NAN, "no part of a recording"},
    };
    utter_model *model = open_model(BASE);
    utter_clone_options o;
    utter_voice *voice;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        utter_error error = {.text = ""};
        utter_clone_options_init(&o);
        o.max_seconds = cases[i].max;
        o.from_seconds = cases[i].from;
        o.to_seconds = cases[i].to;
        const utter_status status = utter_voice_clone(&voice, model, "/nowhere.wav", &o, NULL, &error);
        assert_int_equal(status, cases[i].said[0] ? UTTER_E_ARGUMENT : UTTER_E_FILE);
        assert_non_null(strstr(error.text, cases[i].said));
    }
    static const struct {
        const char *name, *transcript, *language, *said;
    } texts[] = {{"a\xff", NULL, NULL, "the name of a voice is not UTF-8: byte 1 (convert it)"},
        {NULL, "\xff", NULL, "the transcript of a voice is not UTF-8: byte 0 (convert it)"},
        {NULL, NULL, "abc\xff", "the language of a voice is not UTF-8: byte 3 (convert it)"}};
    for (int i = 0; i < 3; i++) {
        utter_error error = {.text = ""};
        utter_clone_options_init(&o);
        o.name = texts[i].name;
        o.transcript = texts[i].transcript;
        o.language = texts[i].language;
        assert_int_equal(
            utter_voice_clone(&voice, model, "/nowhere.wav", &o, NULL, &error), UTTER_E_ARGUMENT);
        assert_string_equal(error.text, texts[i].said);
    }
    utter_model_close(&model);
}

/* That a model cannot hear what a transcript is for is told before the file is looked for. */
static void what_cannot_be_heard_is_not_read(void **state)
{
    (void)state;
    utter_model *model = open_model(BASE);
    struct model *parts = model->engine.context.model;
    utter_clone_options o;
    utter_voice *voice;
    utter_error error;
    utter_clone_options_init(&o);
    parts->has_encoder = false;
    for (int i = 0; i < 2; i++) {
        o.transcript = i ? "Hello." : NULL;
        assert_int_equal(utter_voice_clone(&voice, model, "/nowhere.wav", &o, NULL, &error),
            i ? UTTER_E_ARGUMENT : UTTER_E_FILE);
    }
    parts->has_encoder = true;
    utter_model_close(&model);
}

static void clones_need_their_arguments(void **state)
{
    (void)state;
    utter_model *model = open_model(BASE), *designer = open_model(DESIGNER);
    float *pcm = make_sound();
    const char *path = write_sound("b.wav", pcm, N_SAMPLES, RATE);
    utter_voice *voice = (utter_voice *)1;
    utter_error error = {.text = ""};
    utter_recording heard = {.size = 3};
    utter_clone_options o = {.size = 0};
    assert_int_equal(utter_voice_clone(NULL, model, path, NULL, NULL, &error), UTTER_E_ARGUMENT);
    assert_int_equal(utter_voice_clone(&voice, NULL, path, NULL, NULL, &error), UTTER_E_ARGUMENT);
    assert_int_equal(utter_voice_clone(&voice, model, NULL, NULL, NULL, &error), UTTER_E_ARGUMENT);
    assert_int_equal(utter_voice_clone_samples(NULL, model, pcm, 1, NULL, &error), UTTER_E_ARGUMENT);
    assert_int_equal(utter_voice_clone_samples(&voice, NULL, pcm, 1, NULL, &error), UTTER_E_ARGUMENT);
    assert_int_equal(utter_voice_clone_samples(&voice, model, NULL, 1, NULL, &error), UTTER_E_ARGUMENT);
    assert_int_equal(utter_voice_clone_samples(&voice, model, pcm, 0, NULL, &error), UTTER_E_ARGUMENT);
    assert_string_equal(error.text, "an argument is NULL");
    assert_ptr_equal(voice, (utter_voice *)1);
    assert_int_equal(utter_voice_clone(&voice, model, path, NULL, &heard, &error), UTTER_E_ARGUMENT);
    assert_non_null(strstr(error.text, "utter_recording: its size is not set"));
    assert_null(voice);
    assert_int_equal(utter_voice_clone(&voice, model, path, &o, NULL, &error), UTTER_E_ARGUMENT);
    assert_non_null(strstr(error.text, "utter_clone_options: its size is not set"));
    assert_int_equal(
        utter_voice_clone_samples(&voice, model, pcm, N_SAMPLES, &o, &error), UTTER_E_ARGUMENT);
    assert_int_equal(utter_voice_clone(&voice, designer, path, NULL, NULL, &error), UTTER_E_ARGUMENT);
    assert_non_null(strstr(error.text, "take a Base model"));
    memset(pcm, 0, N_SAMPLES * sizeof *pcm);
    heard.size = sizeof heard;
    path = write_sound("silent.wav", pcm, N_SAMPLES, RATE);
    assert_int_equal(utter_voice_clone(&voice, model, path, NULL, &heard, &error), UTTER_E_ARGUMENT);
    assert_true(
        heard.seconds == 5 && heard.peak == 0 && isinf(heard.rms_db)); /* what was heard is told */
    assert_non_null(strstr(error.text, "silent"));
    error_set(&model->engine.broken, UTTER_E_DEVICE, "broken");
    free(pcm);
    pcm = make_sound();
    assert_int_equal(
        utter_voice_clone_samples(&voice, model, pcm, N_SAMPLES, NULL, &error), UTTER_E_DEVICE);
    assert_string_equal(error.text, "broken");
    assert_null(voice);
    model->engine.broken.code = UTTER_OK;
    assert_int_equal(utter_voice_save(NULL, path, &error), UTTER_E_ARGUMENT);
    assert_int_equal(utter_voice_load(NULL, path, &error), UTTER_E_ARGUMENT);
    assert_int_equal(utter_voice_load(&voice, NULL, &error), UTTER_E_ARGUMENT);
    assert_int_equal(utter_voice_preset(&voice, NULL, "a", &error), UTTER_E_ARGUMENT);
    assert_int_equal(utter_voice_preset(&voice, model, NULL, &error), UTTER_E_ARGUMENT);
    assert_int_equal(utter_voice_preset(NULL, model, "a", &error), UTTER_E_ARGUMENT);
    utter_voice_free(NULL);
    assert_null(utter_voice_name(NULL));
    free(pcm);
    utter_model_close(&model);
    utter_model_close(&designer);
}

/* Stops at its first call. */
static bool stop(void *user, double done)
{
    assert_true(done >= 0 && done <= 1);
    ++*(int *)user;
    return false;
}

/* The codes are those of a clone in context. */
static void a_file_becomes_codes(void **state)
{
    (void)state;
    utter_model *model = open_model(BASE);
    float *pcm = make_sound();
    const char *path = write_sound("codes.wav", pcm, N_SAMPLES, RATE);
    utter_voice *voice;
    utter_error error = {.text = ""};
    utter_clone_options o;
    int32_t *codes = (int32_t *)1;
    size_t n = 0;
    utter_clone_options_init(&o);
    o.transcript = "Hello.";
    assert_int_equal(utter_voice_clone_samples(&voice, model, pcm, N_SAMPLES, &o, NULL), UTTER_OK);
    const utter_voice_info info = info_of(voice);
    assert_int_equal(utter_codec_encode(model, path, &codes, &n, NULL, NULL, NULL), UTTER_OK);
    assert_int_equal(n, (N_SAMPLES + 1919) / 1920);
    assert_int_equal(info.n_frames, n);
    assert_memory_equal(codes, info.codes, n * 16 * sizeof *codes);
    utter_memory_free(codes);
    int n_calls = 0;
    assert_int_equal(
        utter_codec_encode(model, path, &codes, &n, stop, &n_calls, &error), UTTER_E_CANCELLED);
    assert_true(n_calls == 1 && !codes && error.text[0]);
    codes = (int32_t *)1;
    assert_int_equal(
        utter_codec_encode(model, "/nowhere.wav", &codes, &n, NULL, NULL, &error), UTTER_E_FILE);
    assert_null(codes);
    assert_int_equal(utter_codec_encode(NULL, path, &codes, &n, NULL, NULL, &error), UTTER_E_ARGUMENT);
    assert_int_equal(utter_codec_encode(model, NULL, &codes, &n, NULL, NULL, &error), UTTER_E_ARGUMENT);
    assert_int_equal(utter_codec_encode(model, path, NULL, &n, NULL, NULL, &error), UTTER_E_ARGUMENT);
    assert_int_equal(
        utter_codec_encode(model, path, &codes, NULL, NULL, NULL, &error), UTTER_E_ARGUMENT);
    utter_voice_free(&voice);
    free(pcm);
    utter_model_close(&model);
}

/* Of many parts, and of those with long names, as many are told as there is room for. */
static void a_mixture_tells_its_parts(void **state)
{
    (void)state;
    enum { N = 40 };
    utter_model *model = open_model(BASE);
    float *pcm = make_sound();
    utter_voice *one, *mixed;
    const utter_voice *of[N];
    double weights[N];
    utter_clone_options o;
    utter_error error = {.text = ""};
    char wanted[200];
    utter_clone_options_init(&o);
    o.name = "a voice with a name that is as long as names of voices can be expected to be";
    assert_int_equal(utter_voice_clone_samples(&one, model, pcm, 2 * RATE, &o, NULL), UTTER_OK);
    for (int i = 0; i < N; i++) {
        of[i] = one;
        weights[i] = 0.5 + i;
    }
    assert_int_equal(utter_voice_mix(&mixed, of, weights, 2, "both", NULL), UTTER_OK);
    snprintf(wanted, sizeof wanted, "mixed from %s 0.5, %s 1.5, by utter %s",
        "a voice with a name that is as long as names of voices can be expected to be",
        "a voice with a name that is as long as names of voices can be expected to be",
        utter_version_text());
    assert_string_equal(info_of(mixed).provenance, wanted);
    assert_string_equal(utter_voice_name(mixed), "both");
    utter_voice_free(&mixed);
    assert_int_equal(utter_voice_mix(&mixed, of, weights, N, "many", NULL), UTTER_OK);
    const char *provenance = info_of(mixed).provenance;
    snprintf(wanted, sizeof wanted, "by utter %s", utter_version_text());
    assert_string_equal(provenance + strlen(provenance) - strlen(wanted), wanted);
    assert_in_range(strlen(provenance), 824, 1000);
    utter_voice_free(&mixed);
    mixed = (utter_voice *)1;
    assert_int_equal(utter_voice_mix(&mixed, NULL, weights, 2, "x", &error), UTTER_E_ARGUMENT);
    assert_null(mixed);
    assert_int_equal(utter_voice_mix(&mixed, of, NULL, 2, "x", &error), UTTER_E_ARGUMENT);
    assert_int_equal(utter_voice_mix(&mixed, of, weights, 2, NULL, &error), UTTER_E_ARGUMENT);
    assert_int_equal(utter_voice_mix(NULL, of, weights, 2, "x", &error), UTTER_E_ARGUMENT);
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        const utter_status status = utter_voice_mix(&mixed, of, weights, 2, "x", &error);
        assert_int_equal(status, support_failed() ? UTTER_E_MEMORY : UTTER_OK);
        assert_true((status == UTTER_OK) == (mixed != NULL));
        utter_voice_free(&mixed);
    }
    utter_voice_info info = {.size = 0};
    assert_int_equal(utter_voice_get_info(one, &info), UTTER_E_ARGUMENT);
    assert_int_equal(utter_voice_get_info(one, NULL), UTTER_E_ARGUMENT);
    assert_int_equal(utter_voice_get_info(NULL, &info), UTTER_E_ARGUMENT);
    utter_voice_free(&one);
    free(pcm);
    utter_model_close(&model);
}

/* What a design says where nobody cares, in the language that was asked for, by name or code. */
static void designs_say_something_in_each_language(void **state)
{
    (void)state;
    static const struct {
        const char *language, *begin;
        int seed; /* with which it is short */
    } cases[] = {{NULL, "The morning train", 2}, {"auto", "The morning train", 3},
        {"AUTO", "The morning train", 3}, {"English", "The morning train", 3},
        {"en-GB", "The morning train", 3}, {"de", "Der Zug heute", 0}, {"german", "Der Zug heute", 0},
        {"fr", "Ce matin", 4}, {"es", "El tren", 5}, {"it", "Il treno", 6}, {"pt-BR", "O comboio", 2},
        {"chinese", "\u65e9\u4e0a", 5}, {"ja", "\u4eca\u671d", 4}, {"ko", "\uc624\ub298", 2},
        {"ru", "\u0423\u0442\u0440\u0435\u043d\u043d\u0438\u0439", 5}};
    utter_model *designer = open_model(DESIGNER), *base = open_model(BASE);
    utter_design_options o;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        utter_voice *voice;
        utter_error error = {.text = ""};
        char wanted[128];
        utter_design_options_init(&o);
        o.language = cases[i].language;
        o.seed = (uint64_t)cases[i].seed;
        utter_voice_design(&voice, designer, i ? "A man." : "A \"man\".\n", base, &o, &error);
        assert_string_equal(error.text, "");
        const utter_voice_info info = info_of(voice);
        assert_int_equal(strncmp(info.transcript, cases[i].begin, strlen(cases[i].begin)), 0);
        snprintf(wanted, sizeof wanted, "designed from \"%s\", seed %d, by utter %s",
            i ? "A man." : "A \"man\".\\n", cases[i].seed, utter_version_text());
        assert_string_equal(info.provenance, wanted);
        assert_string_equal(info.name, "designed");
        utter_voice_free(&voice);
    }
    utter_model_close(&designer);
    utter_model_close(&base);
}

static void designs_need_their_arguments(void **state)
{
    (void)state;
    utter_model *designer = open_model(DESIGNER), *base = open_model(BASE);
    utter_design_options o;
    static const struct {
        const char *name, *language, *text, *said;
    } cases[] = {{"a\xff", NULL, NULL, "the name of a voice is not UTF-8: byte 1 (convert it)"},
        {NULL, "\xff", NULL, "the language of a voice is not UTF-8: byte 0 (convert it)"},
        {NULL, NULL, "ab\xff", "the reference text of a voice is not UTF-8: byte 2 (convert it)"},
        {NULL, "klingon", NULL, "no reference text is known for the language \"klingon\" (give one)"}};
    for (int i = 0; i < 4; i++) {
        utter_voice *voice = (utter_voice *)1;
        utter_error error = {.text = ""};
        utter_design_options_init(&o);
        o.name = cases[i].name;
        o.language = cases[i].language;
        o.text = cases[i].text;
        assert_int_equal(
            utter_voice_design(&voice, designer, "A man.", base, &o, &error), UTTER_E_ARGUMENT);
        assert_string_equal(error.text, cases[i].said);
        assert_null(voice);
    }
    struct config *c = (struct config *)api_config(base);
    utter_voice *voice;
    utter_error error;
    c->codec.sample_rate = 16000;
    assert_int_equal(
        utter_voice_design(&voice, designer, "A man.", base, NULL, &error), UTTER_E_ARGUMENT);
    assert_string_equal(error.text, "the models speak at 24000 Hz and listen at 16000 Hz");
    c->codec.sample_rate = 24000;
    assert_int_equal(
        utter_voice_design(NULL, designer, "A man.", base, NULL, &error), UTTER_E_ARGUMENT);
    assert_int_equal(utter_voice_design(&voice, NULL, "A man.", base, NULL, &error), UTTER_E_ARGUMENT);
    assert_int_equal(utter_voice_design(&voice, designer, NULL, base, NULL, &error), UTTER_E_ARGUMENT);
    assert_int_equal(
        utter_voice_design(&voice, designer, "A man.", NULL, NULL, &error), UTTER_E_ARGUMENT);
    assert_true(engine_is_idle(&designer->engine));
    utter_model_close(&designer);
    utter_model_close(&base);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clone_is_called_as_its_file),
        cmocka_unit_test(a_part_of_a_file_is_heard),
        cmocka_unit_test(a_file_with_too_little_is_refused),
        cmocka_unit_test(a_file_with_an_even_sound_is_refused),
        cmocka_unit_test(a_device_that_failed_is_asked_no_more),
        cmocka_unit_test(clone_options_have_bounds),
        cmocka_unit_test(what_cannot_be_heard_is_not_read),
        cmocka_unit_test(clones_need_their_arguments),
        cmocka_unit_test(a_file_becomes_codes),
        cmocka_unit_test(a_mixture_tells_its_parts),
        cmocka_unit_test(designs_say_something_in_each_language),
        cmocka_unit_test(designs_need_their_arguments),
    };
    return cmocka_run_group_tests_name("recordings", tests, NULL, NULL);
}
