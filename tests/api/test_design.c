/* SPDX-License-Identifier: Apache-2.0
 * What a designed voice is made from: its description, language and seed all change what is spoken for it. How far the
 * work is, and what ends it. */
#include "tests/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"

static utter_model *designer, *base;

static utter_model *open_model(const char *path)
{
    utter_model *model;
    utter_model_options o;
    utter_model_options_init(&o);
    o.n_threads = 1;
    assert_int_equal(utter_model_open(&model, path, &o, NULL), UTTER_OK);
    return model;
}

static int open_models(void **state)
{
    (void)state;
    designer = open_model("build/checkpoints/tiny06-voice_design");
    base = open_model("build/checkpoints/tiny06-base");
    return 0;
}

static int close_models(void **state)
{
    (void)state;
    utter_model_close(&base);
    utter_model_close(&designer);
    return 0;
}

static utter_voice *design(const char *instruct, const char *language, const char *text, uint64_t seed)
{
    utter_voice *voice;
    utter_error error = {.text = ""};
    utter_design_options o;
    utter_design_options_init(&o);
    o.language = language;
    o.text = text;
    o.seed = seed;
    utter_voice_design(&voice, designer, instruct, base, &o, &error);
    assert_string_equal(error.text, "");
    assert_true(engine_is_idle(&designer->engine) && engine_is_idle(&base->engine));
    return voice;
}

static bool sound_alike(const utter_voice *a, const utter_voice *b)
{
    utter_voice_info i = {.size = sizeof i}, j = {.size = sizeof j};
    assert_int_equal(utter_voice_get_info(a, &i), UTTER_OK);
    assert_int_equal(utter_voice_get_info(b, &j), UTTER_OK);
    return i.n_frames == j.n_frames &&
           memcmp(i.codes, j.codes, (size_t)(i.n_frames * i.n_codebooks) * sizeof *i.codes) == 0;
}

static void all_that_is_asked_for_is_heard(void **state)
{
    static const struct {
        const char *instruct, *language, *text;
        uint64_t seed;
        bool alike;
    } cases[] = {
        {"A shrill young child.", "english", "Hello there.", 0, false},
        {"A calm old man.", "german", "Hello there.", 0, false},
        {"A calm old man.", "english", "Hello there.", 1, false},
    };
    (void)state;
    utter_voice *first = design("A calm old man.", "english", "Hello there.", 0);
    const size_t n = SUPPORT_SANITIZED ? 1 : sizeof cases / sizeof *cases;
    for (size_t i = 0; i < n; i++) {
        utter_voice *voice = design(cases[i].instruct, cases[i].language, cases[i].text, cases[i].seed);
        utter_voice_info info = {.size = sizeof info};
        assert_int_equal(utter_voice_get_info(voice, &info), UTTER_OK);
        assert_string_equal(info.transcript, cases[i].text);
        assert_non_null(strstr(info.provenance, cases[i].instruct));
        if (sound_alike(first, voice) != cases[i].alike) {
            fail_msg("design %zu is %s", i, cases[i].alike ? "another" : "the same");
        }
        utter_voice_free(&voice);
    }
    utter_voice_free(&first);
}

/* ---- The way there ---- */

struct told {
    double at[256];
    int n;
};

static bool keep_progress(void *user, double done)
{
    struct told *told = user;
    assert_true(told->n < 256);
    told->at[told->n++] = done;
    return true;
}

/* With which "Hello there." is said in a second. */
enum { SHORT_SEED = 4 };

/* Four fifths are speech, of which a token is four frames; the rest is listening, to its end. Frames that come together
 * are told together. */
static void progress_is_told_from_frame_to_frame(void **state)
{
    static const char text[] = "Hello there.";
    struct told told = {.n = 0};
    utter_voice *voice;
    utter_design_options o;
    int32_t *ids;
    size_t n_tokens;
    double before = 0;
    int n_speaking = 0;
    (void)state;
    utter_design_options_init(&o);
    o.text = text;
    o.language = "english";
    o.seed = SHORT_SEED;
    o.progress = keep_progress;
    o.progress_user = &told;
    assert_int_equal(
        utter_model_tokenize(designer, text, sizeof text - 1, &ids, &n_tokens, NULL), UTTER_OK);
    utter_memory_free(ids);
    assert_int_equal(utter_voice_design(&voice, designer, "A calm old man.", base, &o, NULL), UTTER_OK);
    for (; n_speaking < told.n && told.at[n_speaking] < 0.8; n_speaking++) {
        const double part = told.at[n_speaking], frames = 4 * (double)n_tokens * part / (0.8 - part);
        assert_true(fabs(frames - round(frames)) <= 1e-6);
        assert_true(n_speaking ? round(frames) >= before : round(frames) == 1);
        before = round(frames);
    }
    assert_true(n_speaking > 1 && n_speaking < told.n);
    for (int i = n_speaking + 1; i < told.n; i++) {
        assert_true(told.at[i] > told.at[i - 1]);
    }
    assert_true(told.at[told.n - 1] == 1);
    utter_voice_free(&voice);
}

/* The design fails so, and both models are as idle as before. */
static void design_fails(utter_status status, const char *said)
{
    utter_voice *voice = (utter_voice *)1;
    utter_error error = {.text = ""};
    utter_design_options o;
    utter_design_options_init(&o);
    o.text = "Hello there.";
    o.language = "english";
    assert_int_equal(utter_voice_design(&voice, designer, "A calm old man.", base, &o, &error), status);
    assert_string_equal(error.text, said);
    assert_null(voice);
    assert_true(engine_is_idle(&designer->engine) && engine_is_idle(&base->engine));
}

static void set_rate(int rate)
{
    ((struct config *)api_config(designer))->codec.sample_rate = rate;
    ((struct config *)api_config(base))->codec.sample_rate = rate;
}

/* At 35 samples a second two minutes have room for a frame's sound, and not for two. */
static void a_reference_has_an_end(void **state)
{
    struct config *c = (struct config *)api_config(designer);
    const int rate = c->codec.sample_rate, most = c->max_new_tokens;
    (void)state;
    c->max_new_tokens = 4;
    design_fails(UTTER_E_MODEL,
        "the model did not end the reference by itself (max_frames, 0.2 s): its sound would not match "
        "its text (try another seed or text)");
    c->max_new_tokens = most;
    set_rate(34);
    design_fails(UTTER_E_ARGUMENT, "the reference is longer than 120 s (give a shorter text)");
    set_rate(35);
    design_fails(UTTER_E_ARGUMENT, "the reference is longer than 120 s (give a shorter text)");
    set_rate(rate);
}

static utter_status fail_to_hear(
    struct backend *b, const float *mels, size_t n_mels, float *vector, utter_error *error)
{
    (void)b, (void)mels, (void)n_mels, (void)vector;
    return error_set(error, UTTER_E_DEVICE, "no power");
}

/* A device that fails while it listens is asked no more. */
static void a_device_that_failed_hears_no_more(void **state)
{
    struct backend_ops ops = cpu_backend;
    const struct backend_ops *before = base->engine.context.ops;
    utter_error error;
    (void)state;
    ops.speaker = fail_to_hear;
    base->engine.context.ops = &ops;
    design_fails(UTTER_E_DEVICE, "no power");
    base->engine.context.ops = before;
    assert_int_equal(engine_check(&base->engine, &error), UTTER_E_DEVICE);
    design_fails(UTTER_E_DEVICE, "no power");
    base->engine.broken.code = UTTER_OK;
}

/* What stands in the voice's file is text. */
static void what_is_no_utf8_is_refused(void **state)
{
    utter_voice *voice;
    utter_error error;
    utter_design_options o;
    (void)state;
    utter_design_options_init(&o);
    o.language = "english";
    assert_int_equal(
        utter_voice_design(&voice, designer, "An old \xff man.", base, &o, &error), UTTER_E_ARGUMENT);
    assert_null(voice);
    assert_string_equal(error.text, "the description of a voice is not UTF-8: byte 7 (convert it)");
    o.name = "a\xc0";
    assert_int_equal(
        utter_voice_design(&voice, designer, "An old man.", base, &o, &error), UTTER_E_ARGUMENT);
    assert_string_equal(error.text, "the name of a voice is not UTF-8: byte 1 (convert it)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_that_is_asked_for_is_heard),
        cmocka_unit_test(progress_is_told_from_frame_to_frame),
        cmocka_unit_test(what_is_no_utf8_is_refused), cmocka_unit_test(a_reference_has_an_end),
        cmocka_unit_test(a_device_that_failed_hears_no_more)};
    return cmocka_run_group_tests_name("designs", tests, open_models, close_models);
}
