/* SPDX-License-Identifier: Apache-2.0
 * What a designed voice is made from: its description, language and seed all change what is spoken for it. */
#include "tests/support.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_that_is_asked_for_is_heard)};
    return cmocka_run_group_tests_name("designs", tests, open_models, close_models);
}
