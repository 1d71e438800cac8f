/* SPDX-License-Identifier: Apache-2.0
 * Voices through utter.h: clones from samples and files, designs, mixtures: what they hold, what is refused, progress
 * and cancelling. */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "utter.h"

#define BASE "build/checkpoints/tiny06-base"
#define WIDE_BASE "build/checkpoints/tiny17-base"
#define DESIGNER "build/checkpoints/tiny06-voice_design"
#define PRESETS "build/checkpoints/tiny06-custom_voice"

enum { RATE = 24000, N_SAMPLES = 4 * RATE + 1 };

static utter_model *open_model(const char *path)
{
    utter_model *model;
    utter_error error = {0};
    utter_model_options o;
    utter_model_options_init(&o);
    o.n_threads = 1;
    utter_model_open(&model, path, &o, &error);
    assert_string_equal(error.text, "");
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

/* Counts the calls, checks that they rise, and stops at one of them or from a share of the work on. */
struct watch {
    double last;
    int n_calls, stop_at;
    double stop_from; /* this share of the work on; 0: never */
};

static bool watch_progress(void *user, double done)
{
    struct watch *w = user;
    assert_true(done >= w->last && done <= 1);
    w->last = done;
    return ++w->n_calls != w->stop_at && (w->stop_from <= 0 || done < w->stop_from);
}

static utter_voice_info info_of(const utter_voice *voice)
{
    utter_voice_info info = {.size = sizeof info};
    assert_int_equal(utter_voice_get_info(voice, &info), UTTER_OK);
    return info;
}

static void clones_hold_what_was_heard(void **state)
{
    (void)state;
    utter_model *model = open_model(BASE);
    float *pcm = make_sound();
    utter_voice *vector, *context;
    struct watch watch = {0};
    utter_clone_options o;
    utter_clone_options_init(&o);
    assert_int_equal(utter_voice_clone_samples(&vector, model, pcm, N_SAMPLES, &o, NULL), UTTER_OK);
    o.transcript = "Hello.";
    o.name = "Ann";
    o.language = "english";
    o.progress = watch_progress;
    o.progress_user = &watch;
    assert_int_equal(utter_voice_clone_samples(&context, model, pcm, N_SAMPLES, &o, NULL), UTTER_OK);
    assert_true(watch.n_calls > 0);
    utter_voice_info v = info_of(vector), c = info_of(context);
    assert_int_equal(v.kind, UTTER_VOICE_VECTOR);
    assert_int_equal(v.n_frames, 0);
    assert_null(v.transcript);
    assert_int_equal(c.kind, UTTER_VOICE_CONTEXT);
    assert_int_equal(c.n_frames, (N_SAMPLES + 1919) / 1920);
    assert_string_equal(c.name, "Ann");
    assert_string_equal(c.language, "english");
    assert_memory_equal(v.x_vector, c.x_vector, (size_t)v.width * sizeof *v.x_vector);
    utter_error error = {0};
    utter_model *wide = open_model(WIDE_BASE);
    assert_int_equal(utter_voice_fits(context, model, &error), UTTER_OK);
    assert_int_equal(utter_voice_fits(NULL, model, &error), UTTER_E_ARGUMENT);
    assert_int_equal(utter_voice_fits(context, NULL, &error), UTTER_E_ARGUMENT);
    assert_int_equal(utter_voice_fits(context, wide, &error), UTTER_E_ARGUMENT);
    char widths[64];
    snprintf(widths, sizeof widths, "of width %d, this one", v.width);
    assert_non_null(strstr(error.text, widths));
    utter_model_close(&wide);
    utter_voice_free(&vector);
    utter_voice_free(&context);
    free(pcm);
    utter_model_close(&model);
}

static void clone_refused(utter_model *model, const float *pcm, size_t n, const utter_clone_options *o,
    utter_status wanted, const char *word)
{
    utter_error error = {0};
    utter_voice *voice = (utter_voice *)1;
    assert_int_equal(utter_voice_clone_samples(&voice, model, pcm, n, o, &error), wanted);
    assert_null(voice);
    if (!strstr(error.text, word)) {
        fail_msg("\"%s\" is not in: %s", word, error.text);
    }
}

static void bad_clones_are_refused(void **state)
{
    (void)state;
    utter_model *model = open_model(BASE), *presets = open_model(PRESETS);
    float *pcm = make_sound();
    utter_clone_options o;
    utter_clone_options_init(&o);
    clone_refused(presets, pcm, N_SAMPLES, &o, UTTER_E_ARGUMENT, "take a Base model");
    clone_refused(model, pcm, RATE * 3 / 10 - 1, &o, UTTER_E_ARGUMENT, "too short");
    float *silence = calloc(N_SAMPLES, sizeof *silence);
    clone_refused(model, silence, N_SAMPLES, &o, UTTER_E_ARGUMENT, "silent");
    utter_voice *none = (utter_voice *)1;
    assert_int_equal(utter_voice_clone(&none, model, "no-such.wav", &o, NULL, NULL), UTTER_E_FILE);
    assert_null(none);
    for (uint32_t i = 0, hash = 1; i < N_SAMPLES; i++, hash = hash * 1664525u + 1013904223u) {
        silence[i] = (float)(hash >> 8) / 16777216 - 0.5f;
    }
    clone_refused(model, silence, N_SAMPLES, &o, UTTER_E_ARGUMENT, "no speech is heard");
    free(silence);
    o.max_seconds = 3.9;
    clone_refused(model, pcm, N_SAMPLES, &o, UTTER_E_ARGUMENT, "more than 3.9 s");
    utter_clone_options_init(&o);
    o.name = "\xff";
    clone_refused(model, pcm, N_SAMPLES, &o, UTTER_E_ARGUMENT, "name");
    o.name = NULL;
    o.transcript = "ok \xc0\x80";
    clone_refused(model, pcm, N_SAMPLES, &o, UTTER_E_ARGUMENT, "byte 3");
    o.transcript = " \n";
    clone_refused(model, pcm, N_SAMPLES, &o, UTTER_E_ARGUMENT, "transcript");
    o.transcript = "Hello.";
    struct watch watch = {.stop_at = 1};
    o.progress = watch_progress;
    o.progress_user = &watch;
    clone_refused(model, pcm, N_SAMPLES, &o, UTTER_E_CANCELLED, "");
    pcm[777] = NAN;
    clone_refused(model, pcm, N_SAMPLES, &o, UTTER_E_ARGUMENT, "sample 777");
    free(pcm);
    utter_model_close(&presets);
    utter_model_close(&model);
}

static void designs_become_clones(void **state)
{
    (void)state;
    utter_model *designer = open_model(DESIGNER), *base = open_model(BASE);
    utter_voice *a, *again, *other;
    utter_error error = {0};
    struct watch watch = {0};
    utter_design_options o;
    utter_design_options_init(&o);
    o.progress = watch_progress;
    o.progress_user = &watch;
    utter_voice_design(&a, designer, "A calm old man.", base, &o, &error);
    assert_string_equal(error.text, "");
    assert_true(watch.n_calls > 2 && watch.last > 0.9);
    o.progress = NULL;
    assert_int_equal(utter_voice_design(&again, designer, "A calm old man.", base, &o, NULL), UTTER_OK);
    o.name = "Heidi";
    o.language = "German";
    o.seed = 2;
    assert_int_equal(utter_voice_design(&other, designer, "Hell.", base, &o, NULL), UTTER_OK);
    utter_voice_info i = info_of(a), j = info_of(again), k = info_of(other);
    assert_int_equal(i.kind, UTTER_VOICE_CONTEXT);
    assert_string_equal(i.name, "designed");
    assert_non_null(strstr(i.provenance, "A calm old man."));
    assert_int_equal(i.n_frames, j.n_frames);
    assert_memory_equal(i.codes, j.codes, (size_t)(i.n_frames * 16) * sizeof *i.codes);
    assert_memory_equal(i.x_vector, j.x_vector, (size_t)i.width * sizeof *i.x_vector);
    assert_string_equal(k.name, "Heidi");
    assert_non_null(strstr(k.transcript, "Zug"));
    assert_int_equal(utter_voice_fits(a, base, NULL), UTTER_OK);
    utter_voice_free(&a);
    utter_voice_free(&again);
    utter_voice_free(&other);
    utter_model_close(&base);
    utter_model_close(&designer);
}

static void design_refused(utter_model *designer, const char *instruct, utter_model *base,
    const utter_design_options *o, utter_status wanted, const char *word)
{
    utter_error error = {0};
    utter_voice *voice = (utter_voice *)1;
    assert_int_equal(utter_voice_design(&voice, designer, instruct, base, o, &error), wanted);
    assert_null(voice);
    if (!strstr(error.text, word)) {
        fail_msg("\"%s\" is not in: %s", word, error.text);
    }
}

static void bad_designs_are_refused(void **state)
{
    (void)state;
    utter_model *designer = open_model(DESIGNER), *base = open_model(BASE);
    utter_design_options o;
    utter_design_options_init(&o);
    design_refused(base, "A man.", base, &o, UTTER_E_ARGUMENT, "VoiceDesign");
    design_refused(designer, "A man.", designer, &o, UTTER_E_ARGUMENT, "Base model");
    design_refused(designer, " \n", base, &o, UTTER_E_ARGUMENT, "empty");
    design_refused(designer, "\xff", base, &o, UTTER_E_ARGUMENT, "UTF-8");
    o.language = "latin";
    design_refused(designer, "A man.", base, &o, UTTER_E_ARGUMENT, "latin");
    o.language = NULL;
    o.text = "  ";
    design_refused(designer, "A man.", base, &o, UTTER_E_ARGUMENT, "");
    o.text = NULL;
    /* Cancelled while it speaks, and while it listens. */
    struct watch watch = {.stop_at = 1};
    o.progress = watch_progress;
    o.progress_user = &watch;
    design_refused(designer, "A man.", base, &o, UTTER_E_CANCELLED, "");
    watch = (struct watch){.stop_from = 0.9};
    design_refused(designer, "A man.", base, &o, UTTER_E_CANCELLED, "");
    /* Its lane is free again. */
    utter_stream *stream;
    assert_int_equal(utter_stream_open(&stream, designer, NULL, NULL), UTTER_OK);
    design_refused(designer, "A man.", base, NULL, UTTER_AGAIN, "lanes");
    utter_stream_free(&stream);
    utter_model_close(&base);
    utter_model_close(&designer);
}

static void mixtures_are_weighted_means(void **state)
{
    (void)state;
    utter_model *model = open_model(BASE), *presets = open_model(PRESETS);
    float *pcm = make_sound();
    utter_voice *parts[2], *mixed, *preset;
    utter_error error = {0};
    const double weights[] = {3, 1};
    assert_int_equal(utter_voice_clone_samples(&parts[0], model, pcm, N_SAMPLES, NULL, NULL), UTTER_OK);
    assert_int_equal(
        utter_voice_clone_samples(&parts[1], model, pcm, N_SAMPLES / 2, NULL, NULL), UTTER_OK);
    const utter_voice *const of[] = {parts[0], parts[1]};
    assert_int_equal(utter_voice_mix(&mixed, of, weights, 2, "both", &error), UTTER_OK);
    utter_voice_info a = info_of(parts[0]), b = info_of(parts[1]), m = info_of(mixed);
    for (int i = 0; i < m.width; i++) {
        float want = (float)(0.75 * (double)a.x_vector[i] + 0.25 * (double)b.x_vector[i]);
        assert_true(m.x_vector[i] == want);
    }
    assert_non_null(strstr(m.provenance, "clone 3, clone 1"));
    utter_voice_free(&mixed);
    assert_int_equal(utter_voice_preset(&preset, presets, "ryan", NULL), UTTER_OK);
    const utter_voice *const wrong[] = {parts[0], preset};
    assert_int_equal(utter_voice_mix(&mixed, wrong, weights, 2, "x", &error), UTTER_E_ARGUMENT);
    assert_int_equal(utter_voice_mix(&mixed, of, weights, 2, "\xff", &error), UTTER_E_ARGUMENT);
    assert_int_equal(utter_voice_mix(&mixed, of, weights, 0, "x", &error), UTTER_E_ARGUMENT);
    utter_voice_free(&preset);
    utter_voice_free(&parts[0]);
    utter_voice_free(&parts[1]);
    free(pcm);
    utter_model_close(&presets);
    utter_model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clones_hold_what_was_heard),
        cmocka_unit_test(bad_clones_are_refused),
        cmocka_unit_test(designs_become_clones),
        cmocka_unit_test(bad_designs_are_refused),
        cmocka_unit_test(mixtures_are_weighted_means),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
