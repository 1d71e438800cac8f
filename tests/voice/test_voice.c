/* SPDX-License-Identifier: Apache-2.0
 * Cloned voices and mixtures of them: complete or not there, and why one cannot be; and what is told of
 * recordings. */
#include "tests/support.h"

#include <string.h>

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
        cmocka_unit_test(the_nearest_preset_is_named),
        cmocka_unit_test(mixtures_are_of_one_width),
        cmocka_unit_test(codes_that_the_model_has_not_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
