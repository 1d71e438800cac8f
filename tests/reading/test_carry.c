/* SPDX-License-Identifier: Apache-2.0
 * What a piece goes on from: its codes are those of one speech by a voice whose recording ends with the piece before.
 * That such a voice's prompt is the official package's is what the goldens of base models prove, whose references are
 * codes and transcripts of any kind. */
#include "tests/engine/speaking.h"

#include <stdio.h>

#include "api/api.h"
#include "reading/reading_parts.h"
#include "voice/voice.h"

#define BASE "build/checkpoints/base-ends"

enum { WIDTH = 64, FRAMES = 20, CODEBOOKS = 16, MOST = 40, CUT = 14 };
static const char SAID[] = "The boats came home.";
static const char TEXTS[] =
    "One boat left. Two boats came. Three of us saw. Four men sang. Five sat down. Six went.";

struct said {
    struct one {
        char text[128];
        int32_t codes[200 * CODEBOOKS];
        size_t n_frames;
        uint64_t seed;
        bool whole;
    } at[MOST];
    size_t n;
};

static void on_piece(void *user, const utter_piece *piece)
{
    struct said *said = user;
    assert_true(said->n < MOST && piece->n_frames <= 200 && piece->text_bytes < 128);
    struct one *one = &said->at[said->n++];
    snprintf(one->text, sizeof one->text, "%.*s", (int)piece->text_bytes, piece->text);
    memcpy(one->codes, piece->codes, piece->n_frames * CODEBOOKS * sizeof *one->codes);
    one->n_frames = piece->n_frames;
    one->seed = piece->seed;
    one->whole = piece->whole;
}

/* The recording's voice, or another one's of the same words, and behind the recording `before` if it is not NULL. */
static utter_voice *voice_of(int who, const struct one *before)
{
    static int32_t codes[(FRAMES + 200) * CODEBOOKS];
    float vector[WIDTH];
    char text[256];
    utter_voice *voice;
    size_t n = FRAMES;
    for (int i = 0; i < FRAMES * CODEBOOKS; i++) {
        codes[i] = (i * 7 + i / 16) % 32;
    }
    for (int i = 0; i < WIDTH; i++) {
        vector[i] = (float)((i + who) % 9 - 4) / 8;
    }
    snprintf(text, sizeof text, "%s%s%s", SAID, before ? " " : "", before ? before->text : "");
    if (before) {
        memcpy(codes + n * CODEBOOKS, before->codes, before->n_frames * CODEBOOKS * sizeof *codes);
        n += before->n_frames;
    }
    assert_int_equal(
        voice_new_clone(&voice, "me", vector, WIDTH, codes, (int)n, CODEBOOKS, text, NULL), UTTER_OK);
    return voice;
}

static utter_voice *voice_behind(const struct one *before)
{
    return voice_of(0, before);
}

static struct said *read_all(utter_model *model, const utter_voice *voice, bool carry, bool live)
{
    struct said *said = calloc(1, sizeof *said);
    utter_stream_options v = options_of(model, CUT, 5);
    utter_reading_options o;
    utter_reading *reading;
    utter_error error = {0};
    utter_status status;
    float pcm[1920];
    size_t n;
    v.voice = voice;
    utter_reading_options_init(&o);
    o.carry = carry;
    o.live = live;
    o.lanes = 3;
    o.retries = 0;
    o.piece_length = 20;
    o.piece = on_piece;
    o.piece_user = said;
    assert_int_equal(utter_reading_open(&reading, model, &v, &o, &error), UTTER_OK);
    assert_int_equal(utter_reading_text(reading, TEXTS, strlen(TEXTS), &error), UTTER_OK);
    assert_int_equal(utter_reading_finish(reading, &error), UTTER_OK);
    while ((status = utter_reading_read(reading, pcm, 1920, &n, &error)) == UTTER_OK) {
    }
    assert_string_equal(error.text, "");
    assert_int_equal(status, UTTER_END);
    utter_reading_free(&reading);
    return said;
}

/* The piece as one speech by the voice whose recording ends with `before`. */
static void is_said_behind(utter_model *model, const struct one *one, const struct one *before)
{
    utter_voice *voice = voice_behind(before);
    utter_stream_options v = options_of(model, CUT, one->seed);
    v.voice = voice;
    struct result *alone = speak(model, &v, one->text, strlen(one->text), 1920);
    assert_int_equal(alone->n_frames, one->n_frames);
    assert_memory_equal(alone->codes, one->codes, one->n_frames * CODEBOOKS * sizeof *one->codes);
    free(alone);
    utter_voice_free(&voice);
}

static void a_piece_goes_on_from_the_one_before(void **state)
{
    (void)state;
    utter_model *model = open_with(BASE, 1, 4);
    utter_voice *voice = voice_behind(NULL);
    size_t n_carried = 0, n_anew = 0;
    for (int live = 0; live < 2; live++) {
        struct said *said = read_all(model, voice, true, live);
        assert_true(said->n >= 5);
        is_said_behind(model, &said->at[0], NULL);
        for (size_t i = 1; i < said->n;
             i++) { /* behind one that lacks words, from the recording alone */
            const struct one *before = &said->at[i - 1];
            is_said_behind(model, &said->at[i], before->whole ? before : NULL);
            n_carried += before->whole;
            n_anew += !before->whole;
        }
        free(said);
    }
    assert_true(n_carried > 0 && n_anew > 0);
    utter_voice_free(&voice);
    utter_model_close(&model);
}

static void without_it_pieces_are_as_before(void **state)
{
    (void)state;
    utter_model *model = open_with(BASE, 1, 4);
    utter_voice *voice = voice_behind(NULL);
    struct said *said = read_all(model, voice, false, false);
    for (size_t i = 0; i < said->n; i++) {
        is_said_behind(model, &said->at[i], NULL);
    }
    free(said);
    utter_voice_free(&voice);
    utter_model_close(&model);
}

/* Where the recording fits the positions, and the piece before behind it does not, each begins from the recording. */
static void what_would_not_fit_is_left_out(void **state)
{
    (void)state;
    utter_model *model = open_with(BASE, 1, 4);
    utter_voice *voice = voice_behind(NULL);
    ((struct config *)model->engine.context.model->config)->max_positions = 46;
    struct said *anew = read_all(model, voice, false, false),
                *said = read_all(model, voice, true, false);
    assert_int_equal(said->n, anew->n);
    for (size_t i = 0; i < said->n; i++) {
        const struct one *one = &said->at[i], *other = &anew->at[i];
        assert_int_equal(one->n_frames, other->n_frames);
        assert_memory_equal(one->codes, other->codes, one->n_frames * CODEBOOKS * sizeof *one->codes);
    }
    free(said);
    free(anew);
    utter_voice_free(&voice);
    utter_model_close(&model);
}

/* Half of the positions, to the frame, are what the recording and a piece may take. */
static void what_fits_to_the_frame_is_carried(void **state)
{
    (void)state;
    utter_model *model = open_with(BASE, 1, 4);
    utter_voice *voice = voice_behind(NULL);
    struct config *config = (struct config *)model->engine.context.model->config;
    struct said *first = read_all(model, voice, true, false);
    assert_true(first->at[0].whole);
    for (int less = 0; less < 2; less++) {
        config->max_positions = 2 * (FRAMES + (int)first->at[0].n_frames) - less;
        struct said *said = read_all(model, voice, true, false);
        assert_int_equal(said->at[0].n_frames, first->at[0].n_frames);
        is_said_behind(model, &said->at[1], less ? NULL : &said->at[0]);
        free(said);
    }
    free(first);
    utter_voice_free(&voice);
    utter_model_close(&model);
}

/* The voice that goes on is of the same codec as the recording. */
static void what_is_carried_has_its_codec(void **state)
{
    (void)state;
    utter_model *model = open_with(BASE, 1, 1);
    utter_voice *voice = voice_behind(NULL);
    utter_stream_options v = options_of(model, CUT, 5);
    utter_reading_options o;
    utter_reading *r;
    float pcm[1920];
    size_t n, n_carried = 0;
    voice->codec = model->engine.context.model->codec_fingerprint;
    v.voice = voice;
    utter_reading_options_init(&o);
    o.carry = true;
    o.retries = 0;
    o.piece_length = 20;
    assert_int_equal(utter_reading_open(&r, model, &v, &o, NULL), UTTER_OK);
    assert_int_equal(utter_reading_text(r, TEXTS, strlen(TEXTS), NULL), UTTER_OK);
    assert_int_equal(utter_reading_finish(r, NULL), UTTER_OK);
    while (utter_reading_read(r, pcm, 1920, &n, NULL) == UTTER_OK) {
        n_carried += r->carried != NULL;
        assert_true(!r->carried || (r->carried->codec == voice->codec && r->carried_from == voice));
        assert_true(r->carried || !r->carried_from);
        assert_true(!r->carried || strcmp(r->carried->name, voice->name) == 0);
    }
    assert_true(n_carried > 0 && voice->codec);
    utter_reading_free(&r);
    utter_voice_free(&voice);
    utter_model_close(&model);
}

/* A utter_find_voice_fn. */
static utter_status find_other(void *user, const char *name, utter_voice **voice, utter_error *error)
{
    (void)user;
    (void)error;
    assert_string_equal(name, "other");
    *voice = voice_of(3, NULL);
    return UTTER_OK;
}

/* A piece goes on from one of its own voice alone, whoever's that is. */
static void each_voice_goes_on_from_itself(void **state)
{
    static const char text[] = "One boat left. Two boats came. [voice:other]Three of us saw. Four men "
                               "sang.[/voice] Five sat down. Six went.";
    (void)state;
    utter_model *model = open_with(BASE, 1, 1);
    utter_voice *voice = voice_behind(NULL);
    struct said *said = calloc(1, sizeof *said);
    utter_stream_options v = options_of(model, CUT, 5);
    utter_reading_options o;
    utter_reading *r;
    float pcm[1920];
    size_t n, n_carried[2] = {0};
    v.voice = voice;
    utter_reading_options_init(&o);
    o.carry = true;
    o.retries = 0;
    o.piece_length = 20;
    o.markup = UTTER_MARKUP_TAGS;
    o.find_voice = find_other;
    o.piece = on_piece;
    o.piece_user = said;
    for (uint64_t seed = 1; seed < 12 && (n_carried[0] == 0 || n_carried[1] == 0); seed++) {
        v.seed = seed;
        said->n = 0;
        assert_int_equal(utter_reading_open(&r, model, &v, &o, NULL), UTTER_OK);
        assert_int_equal(utter_reading_text(r, text, strlen(text), NULL), UTTER_OK);
        assert_int_equal(utter_reading_finish(r, NULL), UTTER_OK);
        while (utter_reading_read(r, pcm, 1920, &n, NULL) == UTTER_OK) {
        }
        utter_reading_free(&r);
        assert_int_equal(said->n, 6);
        for (size_t i = 0; i < 6; i++) {
            bool carried = i % 2 == 1 && said->at[i - 1].whole;
            utter_voice *who = voice_of(i == 2 || i == 3 ? 3 : 0, carried ? &said->at[i - 1] : NULL);
            v.voice = who;
            struct result *alone = speak(model, &v, said->at[i].text, strlen(said->at[i].text), 1920);
            assert_int_equal(alone->n_frames, said->at[i].n_frames);
            assert_memory_equal(alone->codes, said->at[i].codes, alone->n_frames * CODEBOOKS * 4);
            n_carried[i == 3] += carried;
            free(alone);
            utter_voice_free(&who);
        }
        v.voice = voice;
    }
    assert_true(n_carried[0] > 0 && n_carried[1] > 0);
    free(said);
    utter_voice_free(&voice);
    utter_model_close(&model);
}

static void what_has_no_transcript_is_refused(void **state)
{
    (void)state;
    utter_model *model = open_with(BASE, 1, 1);
    utter_stream_options v = options_of(model, 10, 1);
    utter_reading_options o;
    utter_reading *reading;
    utter_error error;
    utter_voice *vector;
    const float x[WIDTH] = {1};
    utter_reading_options_init(&o);
    o.carry = true;
    assert_int_equal(voice_new_clone(&vector, "me", x, WIDTH, NULL, 0, 0, NULL, NULL), UTTER_OK);
    for (int i = 0; i < 2; i++) {
        v.voice = i ? vector : NULL;
        assert_int_equal(utter_reading_open(&reading, model, &v, &o, &error), UTTER_E_ARGUMENT);
        assert_null(reading);
        assert_non_null(strstr(error.text, "transcript"));
    }
    utter_voice_free(&vector);
    utter_model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_piece_goes_on_from_the_one_before),
        cmocka_unit_test(without_it_pieces_are_as_before),
        cmocka_unit_test(what_would_not_fit_is_left_out),
        cmocka_unit_test(what_fits_to_the_frame_is_carried),
        cmocka_unit_test(what_is_carried_has_its_codec),
        cmocka_unit_test(each_voice_goes_on_from_itself),
        cmocka_unit_test(what_has_no_transcript_is_refused)};
    return cmocka_run_group_tests_name("readings that go on", tests, NULL, NULL);
}
