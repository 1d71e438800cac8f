/* SPDX-License-Identifier: Apache-2.0
 * Cloned voices and mixtures of them: complete or not there, and why one cannot be; and what is told of
 * recordings. */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "voice/clone.h"
#include "voice/voice.h"

enum { WIDTH = 2 };
static const float vector[WIDTH] = {0.5f, -1};
static const int32_t codes[] = {1, 2, 3};

/* Whatever memory is not there. */
static void a_clone_is_complete_or_none(void **state)
{
    bool failed = true;
    (void)state;
    for (long n = 1; failed; n++) {
        utter_voice *voice;
        utter_error error = {0};
        support_fail_at(SUPPORT_MALLOC, n);
        utter_status status =
            voice_new_clone(&voice, "Ada", vector, WIDTH, codes, 1, 3, "I said.", &error);
        failed = support_failed();
        support_fail_off();
        assert_int_equal(status, failed ? UTTER_E_MEMORY : UTTER_OK);
        assert_true(
            failed ? !voice : voice->name && voice->vector && voice->codes && voice->transcript);
        voice_free(&voice);
    }
}

static void the_nearest_preset_is_named(void **state)
{
    static char first[] = "serena", second[] = "ryan";
    static struct named_id voices[] = {{.name = first}, {.name = second}};
    static const struct config config = {.voices = voices, .n_voices = 2};
    utter_voice *voice;
    utter_error error = {0};
    (void)state;
    assert_int_equal(voice_new_preset(&voice, &config, "serenna", &error), UTTER_E_ARGUMENT);
    assert_null(voice);
    assert_string_equal(
        error.text, "unknown voice \"serenna\" (did you mean serena? known: serena, ryan)");
}

/* Any case; and the voice is the model's own by its number. */
static void a_preset_is_found_by_name(void **state)
{
    static char first[] = "serena", second[] = "Ryan";
    static struct named_id voices[] = {{.name = first}, {.name = second}};
    static const struct config config = {.voices = voices, .n_voices = 2};
    static const char *const names[] = {"SERENA", "ryan"};
    utter_voice *voice;
    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(voice_new_preset(&voice, &config, names[i], NULL), UTTER_OK);
        assert_int_equal(voice->kind, VOICE_PRESET);
        assert_int_equal(voice->preset, i);
        assert_int_equal(voice->n_users, 1);
        assert_string_equal(voice->name, voices[i].name);
        assert_ptr_not_equal(voice->name, voices[i].name);
        assert_true(!voice->vector && !voice->codes && !voice->transcript && !voice->language);
        voice_free(&voice);
        assert_null(voice);
    }
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        utter_status status = voice_new_preset(&voice, &config, "ryan", NULL);
        assert_int_equal(status, support_failed() ? UTTER_E_MEMORY : UTTER_OK);
        assert_int_equal(voice != NULL, status == UTTER_OK);
        voice_free(&voice);
    }
}

/* Without presets it is said what the model takes; a name is shown so that a terminal can take it. */
static void a_preset_that_is_not_there_is_explained(void **state)
{
    static char base[] = "base", design[] = "voice_design", name[] = "ryan";
    static struct named_id voices[] = {{.name = name}};
    static const struct {
        struct config config;
        const char *typed, *text;
    } cases[] = {
        {{.kind_name = base}, "ryan", "unknown voice \"ryan\": this base model has no preset voices"},
        {{.kind_name = design, .kind = UTTER_MODEL_VOICE_DESIGN}, "a\n",
            "unknown voice \"a\\n\": this voice_design model has no preset voices (describe one with "
            "the "
            "instruction)"},
        {{.kind_name = base},
            "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
            "xxxxxx",
            "unknown voice "
            "\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
            "xxxx...\": "
            "this base model has no preset voices"},
        {{.voices = voices, .n_voices = 1, .kind_name = base}, "clara",
            "unknown voice \"clara\" (known: ryan)"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        utter_voice *voice = (utter_voice *)1;
        utter_error error = {0};
        assert_int_equal(
            voice_new_preset(&voice, &cases[i].config, cases[i].typed, &error), UTTER_E_ARGUMENT);
        assert_null(voice);
        assert_string_equal(error.text, cases[i].text);
    }
}

/* More names than a reason has room for are cut, and nothing is written behind the list. */
static void a_long_list_of_presets_is_cut(void **state)
{
    enum { N = 300 };
    static char names[N][40];
    static struct named_id voices[N];
    static const struct config config = {.voices = voices, .n_voices = N};
    utter_voice *voice;
    utter_error error = {0};
    (void)state;
    for (int i = 0; i < N; i++) {
        memset(names[i], 'a' + i % 26, 30);
        voices[i].name = names[i];
    }
    assert_int_equal(voice_new_preset(&voice, &config, "x", &error), UTTER_E_ARGUMENT);
    assert_int_equal(error.code, UTTER_E_ARGUMENT);
    assert_non_null(strstr(error.text, "known: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, bbb"));
    static char endless[1 << 16];
    memset(endless, 'e', sizeof endless - 1);
    voices[1].name = endless;
    assert_int_equal(voice_new_preset(&voice, &config, "x", &error), UTTER_E_ARGUMENT);
    assert_non_null(strstr(error.text, "known: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, eee"));
}

/* What is there to be copied is copied; without codes there is no transcript either. */
static void a_clone_is_a_copy(void **state)
{
    float given[WIDTH] = {0.5f, -1};
    int32_t numbers[] = {1, 2, 3, 4, 5, 6};
    char name[] = "Ada", words[] = "\n I said.";
    utter_voice *voice;
    (void)state;
    assert_int_equal(voice_new_clone(&voice, name, given, WIDTH, numbers, 3, 2, words, NULL), UTTER_OK);
    memset(given, 0, sizeof given);
    memset(numbers, 0, sizeof numbers);
    name[0] = words[2] = 'x';
    assert_int_equal(voice->kind, VOICE_CONTEXT);
    assert_int_equal(voice->n_users, 1);
    assert_int_equal(voice->preset, -1);
    assert_int_equal(voice->width, WIDTH);
    assert_int_equal(voice->n_frames, 3);
    assert_int_equal(voice->n_codebooks, 2);
    assert_string_equal(voice->name, "Ada");
    assert_string_equal(voice->transcript, "\n I said.");
    assert_memory_equal(voice->vector, vector, sizeof vector);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(voice->codes[i], i + 1);
    }
    voice_free(&voice);
    assert_int_equal(voice_new_clone(&voice, "Ada", vector, WIDTH, NULL, 0, 0, "x", NULL), UTTER_OK);
    assert_int_equal(voice->kind, VOICE_VECTOR);
    assert_true(!voice->codes && !voice->transcript && voice->n_frames == 0 && voice->n_codebooks == 0);
    voice_free(&voice);
}

static void codes_need_a_transcript(void **state)
{
    static const char *const nothing[] = {NULL, "", " \t\r\n"};
    (void)state;
    for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++) {
        utter_voice *voice = (utter_voice *)1;
        utter_error error = {0};
        assert_int_equal(voice_new_clone(&voice, "Ada", vector, WIDTH, codes, 1, 3, nothing[i], &error),
            UTTER_E_ARGUMENT);
        assert_null(voice);
        assert_string_equal(error.text, "a voice with codes needs the transcript of its recording");
        assert_int_equal(
            voice_new_clone(&voice, "Ada", vector, WIDTH, NULL, 0, 0, nothing[i], NULL), UTTER_OK);
        voice_free(&voice);
    }
}

/* Each of the two alone, both and none; without memory it is said. */
static void a_voice_is_described(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        const char *language = i & 1 ? "german" : NULL, *provenance = i & 2 ? "ada.wav" : NULL;
        SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
        {
            utter_voice voice = {0};
            utter_error error = {0};
            utter_status status = voice_describe(&voice, language, provenance, &error);
            assert_int_equal(status, support_failed() ? UTTER_E_MEMORY : UTTER_OK);
            assert_int_equal(error.code, status);
            if (status == UTTER_OK) {
                assert_string_equal(voice.language ? voice.language : "", language ? language : "");
                assert_string_equal(
                    voice.provenance ? voice.provenance : "", provenance ? provenance : "");
                assert_int_equal(!voice.language, !language);
                assert_int_equal(!voice.provenance, !provenance);
            }
            memory_free(voice.language);
            memory_free(voice.provenance);
        }
    }
}

/* A voice lives as long as somebody holds it. */
static void a_voice_is_shared_by_counting(void **state)
{
    utter_voice *one, *other, *none = NULL;
    (void)state;
    assert_int_equal(voice_new_clone(&one, "Ada", vector, WIDTH, NULL, 0, 0, NULL, NULL), UTTER_OK);
    other = voice_share(one);
    assert_ptr_equal(other, one);
    assert_int_equal(one->n_users, 2);
    voice_free(&one);
    assert_null(one);
    assert_int_equal(other->n_users, 1);
    assert_string_equal(other->name, "Ada");
    voice_free(&other);
    assert_null(other);
    voice_free(&none);
    assert_null(voice_share(NULL));
}

static utter_voice *new_vector(const char *name, const float *values, int width)
{
    utter_voice *voice;
    assert_int_equal(voice_new_clone(&voice, name, values, width, NULL, 0, 0, NULL, NULL), UTTER_OK);
    return voice;
}

/* The weights count beside each other, whatever their sum. */
static void a_mixture_is_the_weighted_mean(void **state)
{
    static const float a[WIDTH] = {1, -2}, b[WIDTH] = {5, 2}, c[WIDTH] = {0, 16};
    static const double weights[] = {1e6, 5e5, 5e5};
    utter_voice *parts[] = {new_vector("a", a, WIDTH), new_vector("b", b, WIDTH), NULL}, *mixed;
    (void)state;
    assert_int_equal(voice_new_clone(&parts[2], "c", c, WIDTH, codes, 1, 3, "I said.", NULL), UTTER_OK);
    const utter_voice *const of[] = {parts[0], parts[1], parts[2]};
    assert_int_equal(voice_new_mix(&mixed, of, weights, 3, "all", NULL), UTTER_OK);
    assert_int_equal(mixed->kind, VOICE_VECTOR);
    assert_int_equal(mixed->width, WIDTH);
    assert_string_equal(mixed->name, "all");
    assert_true(!mixed->codes && !mixed->transcript);
    assert_true(mixed->vector[0] == 1.75f && mixed->vector[1] == 3.5f);
    voice_free(&mixed);
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        utter_status status = voice_new_mix(&mixed, of, weights, 3, "all", NULL);
        assert_int_equal(status, support_failed() ? UTTER_E_MEMORY : UTTER_OK);
        assert_int_equal(mixed != NULL, status == UTTER_OK);
        voice_free(&mixed);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(parts[i]->n_users, 1);
        voice_free(&parts[i]);
    }
}

static void what_cannot_be_mixed_is_named(void **state)
{
    static char name[] = "ryan";
    static struct utter_voice preset = {.n_users = 1, .name = name, .kind = VOICE_PRESET};
    utter_voice *voice = new_vector("Ada", vector, WIDTH);
    const struct {
        const utter_voice *of[2];
        double weights[2];
        size_t n;
        const char *text;
    } cases[] = {
        {{voice, &preset}, {1, 1}, 2, "only cloned voices can be mixed, not ryan"},
        {{voice, NULL}, {1, 1}, 2, "only cloned voices can be mixed"},
        {{NULL, voice}, {1, 1}, 2, "only cloned voices can be mixed"},
        {{voice, voice}, {1, 0}, 2, "the weight 0 of \"Ada\" is not above 0 and at most 1e6"},
        {{voice, voice}, {-1, 2}, 2, "the weight -1 of \"Ada\" is not above 0 and at most 1e6"},
        {{voice, voice}, {1, 1000001}, 2, "the weight 1e+06 of \"Ada\" is not above 0 and at most 1e6"},
        {{voice, voice}, {NAN, 1}, 2, "the weight nan of \"Ada\" is not above 0 and at most 1e6"},
        {{voice, voice}, {1, 1}, 0, "no voices to mix"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        utter_voice *mixed = (utter_voice *)1;
        utter_error error = {0};
        assert_int_equal(voice_new_mix(&mixed, cases[i].of, cases[i].weights, cases[i].n, "x", &error),
            UTTER_E_ARGUMENT);
        assert_null(mixed);
        assert_string_equal(error.text, cases[i].text);
    }
    voice_free(&voice);
}

static void mixtures_are_of_one_width(void **state)
{
    static const double weights[] = {1, 3};
    utter_voice *narrow, *wide, *mixed;
    utter_error error = {0};
    (void)state;
    assert_int_equal(voice_new_clone(&narrow, "narrow", vector, 1, NULL, 0, 0, NULL, NULL), UTTER_OK);
    assert_int_equal(voice_new_clone(&wide, "wide", vector, WIDTH, NULL, 0, 0, NULL, NULL), UTTER_OK);
    const utter_voice *const two[] = {narrow, wide};
    assert_int_equal(voice_new_mix(&mixed, two, weights, 2, "both", &error), UTTER_E_ARGUMENT);
    assert_non_null(
        strstr(error.text, "\"narrow\" and \"wide\" fit models of different widths, 1 and 2"));
    assert_int_equal(voice_new_mix(&mixed, two + 1, weights, 1, "one", &error), UTTER_OK);
    assert_memory_equal(mixed->vector, vector, sizeof vector);
    voice_free(&mixed);
    voice_free(&narrow);
    voice_free(&wide);
}

/* A model with fewer codes than the one that the voice was cloned for. */
static void codes_that_the_model_has_not_are_named(void **state)
{
    static struct config config = {.kind = UTTER_MODEL_BASE, .n_codebooks = 3};
    static const struct model model = {.config = &config};
    utter_voice *voice;
    utter_error error = {0};
    (void)state;
    config.talker.width = WIDTH;
    assert_int_equal(
        voice_new_clone(&voice, "Ada", vector, WIDTH, codes, 1, 3, "I said.", NULL), UTTER_OK);
    config.codec.codebook_size = 4;
    assert_int_equal(voice_fits(voice, &model, NULL), UTTER_OK);
    config.codec.codebook_size = 3;
    assert_int_equal(voice_fits(voice, &model, &error), UTTER_E_ARGUMENT);
    assert_string_equal(error.text, "the voice \"Ada\" holds the code 3, this model has 0..2");
    voice_free(&voice);
}

/* Each code is looked at, the first and the last of the last frame too, and nothing behind them. */
static void each_code_of_a_voice_is_looked_at(void **state)
{
    enum { FRAMES = 2, EACH = 3, N = FRAMES * EACH };
    static struct config config = {
        .kind = UTTER_MODEL_BASE, .n_codebooks = EACH, .codec.codebook_size = 4};
    static const struct model model = {.config = &config};
    (void)state;
    config.talker.width = WIDTH;
    for (int at = 0; at <= N; at++) {
        static const int32_t bad[] = {-1, 4};
        for (int i = 0; i < 2; i++) {
            int32_t held[N + 1] = {0};
            char name[] = "Ada", wanted[64];
            const struct utter_voice voice = {.name = name,
                .kind = VOICE_CONTEXT,
                .width = WIDTH,
                .codes = held,
                .n_frames = FRAMES,
                .n_codebooks = EACH};
            utter_error error = {.text = ""};
            held[at] = bad[i];
            snprintf(wanted, sizeof wanted, "the voice \"Ada\" holds the code %d, this model has 0..3",
                bad[i]);
            assert_int_equal(voice_fits(&voice, &model, &error), at < N ? UTTER_E_ARGUMENT : UTTER_OK);
            assert_string_equal(error.text, at < N ? wanted : "");
        }
    }
}

static void preset_fits(const struct model *model, int preset, char *name, const char *text)
{
    const struct utter_voice voice = {
        .n_users = 1, .kind = VOICE_PRESET, .preset = preset, .name = name};
    utter_error error = {0};
    assert_int_equal(voice_fits(&voice, model, &error), text[0] ? UTTER_E_ARGUMENT : UTTER_OK);
    assert_string_equal(error.text, text);
}

/* The same number and the same name. */
static void a_preset_fits_its_own_model(void **state)
{
    static char first[] = "serena", second[] = "ryan";
    static struct named_id voices[] = {{.name = first}, {.name = second}};
    static struct config config = {.kind = UTTER_MODEL_CUSTOM_VOICE, .voices = voices, .n_voices = 2};
    static const struct model model = {.config = &config};
    (void)state;
    preset_fits(&model, 0, first, "");
    preset_fits(&model, 1, second, "");
    preset_fits(&model, 0, second, "the voice \"ryan\" is a preset of another model");
    config.n_voices = 1;
    preset_fits(&model, 1, second, "the voice \"ryan\" is a preset of another model");
}

/* All that a clone and a model must have in common, one after the other. */
static void a_clone_fits_a_model_like_its_own(void **state)
{
    static char base[] = "base";
    static struct config config = {
        .kind_name = base, .n_codebooks = 3, .talker.width = WIDTH, .codec.codebook_size = 4};
    static struct model model = {.config = &config, .codec_fingerprint = 7};
    static const struct {
        int kind, width, n_codebooks;
        uint64_t fingerprint; /* the voice's */
        int32_t code;
        const char *text;
    } cases[] = {
        {UTTER_MODEL_BASE, WIDTH, 3, 7, 3, ""},
        {UTTER_MODEL_BASE, WIDTH, 3, 0, 0, ""}, /* older files do not say which codec */
        {UTTER_MODEL_CUSTOM_VOICE, WIDTH, 3, 7, 3,
            "cloned voices need a base model, this is a base model"},
        {UTTER_MODEL_BASE, WIDTH + 1, 3, 7, 3,
            "the voice \"Ada\" was made for a model of width 2, this one has 3 (clone it again)"},
        {UTTER_MODEL_BASE, WIDTH, 4, 7, 3,
            "the voice \"Ada\" has 3 codebooks, this model 4 (clone it again)"},
        {UTTER_MODEL_BASE, WIDTH, 3, 8, 3,
            "the voice \"Ada\" holds codes of another codec than this model's (clone it again)"},
        {UTTER_MODEL_BASE, WIDTH, 3, 7, -1, "the voice \"Ada\" holds the code -1, this model has 0..3"},
        {UTTER_MODEL_BASE, WIDTH, 3, 7, 4, "the voice \"Ada\" holds the code 4, this model has 0..3"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int32_t given[] = {0, 1, 2, 3, 0, cases[i].code};
        utter_voice *voice, *plain = new_vector("Ada", vector, WIDTH);
        utter_error error = {0};
        assert_int_equal(
            voice_new_clone(&voice, "Ada", vector, WIDTH, given, 2, 3, "I said.", NULL), UTTER_OK);
        voice->codec = cases[i].fingerprint;
        config.kind = (utter_model_kind)cases[i].kind;
        config.talker.width = cases[i].width;
        config.n_codebooks = cases[i].n_codebooks;
        assert_int_equal(
            voice_fits(voice, &model, &error), cases[i].text[0] ? UTTER_E_ARGUMENT : UTTER_OK);
        assert_string_equal(error.text, cases[i].text);
        /* Without codes it is the kind and the width alone. */
        plain->codec = 9;
        assert_int_equal(
            voice_fits(plain, &model, NULL), i == 2 || i == 3 ? UTTER_E_ARGUMENT : UTTER_OK);
        voice_free(&voice);
        voice_free(&plain);
    }
}

static void join(void *user, const char *line)
{
    char *lines = user;
    assert_true(strlen(lines) + strlen(line) + 2 < 512);
    strcat(strcat(lines, line), "\n");
}

/* What a person is told of a recording that makes a voice worse than it could be, and that a good one is passed over in
 * silence. */
static void a_poor_recording_is_told(void **state)
{
    static const struct {
        struct sound_heard heard;
        const char *lines;
    } cases[] = {
        {{.seconds = 10, .rms_db = -20, .clipped = 0.0005}, ""},
        {{.seconds = 1.25, .rms_db = -20},
            "the recording is short, 1.2 s; 5 to 15 s of speech make a better voice\n"},
        {{.seconds = 42, .rms_db = -20},
            "the recording is long, 42.0 s; 5 to 15 s are enough and start faster\n"},
        {{.seconds = 10, .rms_db = -50, .clipped = 0.25},
            "the recording is very quiet, -50 dB: is there speech in it?\n"
            "25.0% of the recording is clipped; record it less loud\n"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char lines[512] = "";
        clone_note_recording(&cases[i].heard, join, lines);
        assert_string_equal(lines, cases[i].lines);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_poor_recording_is_told),
        cmocka_unit_test(a_clone_is_complete_or_none),
        cmocka_unit_test(a_clone_is_a_copy),
        cmocka_unit_test(codes_need_a_transcript),
        cmocka_unit_test(a_voice_is_described),
        cmocka_unit_test(a_voice_is_shared_by_counting),
        cmocka_unit_test(a_preset_is_found_by_name),
        cmocka_unit_test(a_preset_that_is_not_there_is_explained),
        cmocka_unit_test(a_long_list_of_presets_is_cut),
        cmocka_unit_test(the_nearest_preset_is_named),
        cmocka_unit_test(a_mixture_is_the_weighted_mean),
        cmocka_unit_test(what_cannot_be_mixed_is_named),
        cmocka_unit_test(mixtures_are_of_one_width),
        cmocka_unit_test(codes_that_the_model_has_not_are_named),
        cmocka_unit_test(each_code_of_a_voice_is_looked_at),
        cmocka_unit_test(a_preset_fits_its_own_model),
        cmocka_unit_test(a_clone_fits_a_model_like_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
