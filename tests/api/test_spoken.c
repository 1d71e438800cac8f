/* SPDX-License-Identifier: Apache-2.0
 * Readings through utter.h: a text as it is spoken, line by line; which options are refused; who reads hears. */
#include "tests/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"

#define MODEL "build/checkpoints/tiny17-custom_voice"

static char said[1024]; /* notes, a line each */

static void keep_line(void *user, const char *line)
{
    assert_ptr_equal(user, said);
    strncat(said, line, sizeof said - strlen(said) - 2);
    strcat(said, "\n");
}

static char *spoken_of(const char *text, int markup)
{
    char *spoken = NULL;
    utter_error error = {.text = ""};
    utter_reading_options o;
    utter_reading_options_init(&o);
    o.markup = markup;
    said[0] = 0;
    utter_text_spoken(&spoken, text, strlen(text), &o, "german", "zoe", keep_line, said, &error);
    assert_string_equal(error.text, "");
    assert_non_null(spoken);
    return spoken;
}

/* Tags where something changes, a line for each change, the words of a line without breaks and without an end. */
static void a_text_is_shown_as_it_is_spoken(void **state)
{
    (void)state;
    static const struct {
        const char *text, *wanted, *note;
    } cases[] = {
        {"<speak>Hello <break time=\"500ms\"/>world</speak>", "Hello\n[pause:500ms]world\n", ""},
        {"<speak><voice name=\"ann\">One</voice> two <voice name=\"bob\">three</voice>"
         "<lang xml:lang=\"de\">vier</lang> five</speak>",
            "[voice:ann]One\n[voice:default]two\n[voice:bob]three\n[voice:default][lang:de]vier\n[lang:"
            "default]five\n",
            ""},
        {"<speak><prosody rate=\"150%\">quick</prosody> as <prosody rate=\"50%\">slow</prosody>"
         "<prosody rate=\"50%\" volume=\"50%\">low</prosody> <prosody "
         "volume=\"loud\">loud</prosody></speak>",
            "[rate:150%]quick\n[rate:100%]as\n[rate:50%]slow\n[volume:50%]low\n[rate:100%][volume:150%]"
            "loud\n",
            ""},
        {"<speak>\n <p>One\r\ntwo.</p>\n<p>Three </p></speak>", "One two.  Three\n", ""},
        {"# A heading\n\nThe text. [pause:1s] More [voice:ann]hers[voice:default] his "
         "[rate:120%]x[rate:100%] y "
         "[volume:30%]z",
            "# A heading\nThe "
            "text.\n[pause:1000ms]More\n[voice:ann]hers\n[voice:default]his\n[rate:120%]x\n"
            "[rate:100%]y\n[volume:30%]z\n",
            ""},
        {"One\rtwo\nthree\tfour \t", "One two three\tfour\n", ""},
        {"", "", ""},
        {"  \n\t", "", ""},
        {"<speak>a <break time=\"61s\"/>b</speak>", "a b\n",
            "<break time=\"61s\"/> was left out: a pause is 500ms or 1.5s, up to 60s\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *spoken = spoken_of(cases[i].text, UTTER_MARKUP_AUTO);
        assert_string_equal(spoken, cases[i].wanted);
        assert_string_equal(said, cases[i].note);
        utter_memory_free(spoken);
    }
    char *spoken = spoken_of("[pause:1s]a<speak>", UTTER_MARKUP_NONE);
    assert_string_equal(spoken, "[pause:1s]a<speak>\n");
    utter_memory_free(spoken);
    spoken = (char *)1;
    assert_int_equal(
        utter_text_spoken(&spoken, "[pause:1s]ab", 11, NULL, NULL, NULL, NULL, NULL, NULL), UTTER_OK);
    assert_string_equal(spoken, "[pause:1s]a\n"); /* without markup, and of so many bytes */
    utter_memory_free(spoken);
}

static void what_cannot_be_spoken_is_refused(void **state)
{
    (void)state;
    char *spoken = (char *)1;
    utter_error error = {.text = ""};
    utter_reading_options o;
    utter_reading_options_init(&o);
    assert_int_equal(
        utter_text_spoken(NULL, "a", 1, &o, NULL, NULL, NULL, NULL, &error), UTTER_E_ARGUMENT);
    assert_string_equal(error.text, "spoken or text is NULL");
    assert_int_equal(
        utter_text_spoken(&spoken, NULL, 1, &o, NULL, NULL, NULL, NULL, &error), UTTER_E_ARGUMENT);
    assert_int_equal(
        utter_text_spoken(&spoken, "a\xff", 2, &o, NULL, NULL, NULL, NULL, &error), UTTER_E_ARGUMENT);
    assert_string_equal(error.text, "the text is not UTF-8");
    assert_null(spoken);
    o.markup = UTTER_MARKUP_SSML;
    spoken = (char *)1;
    assert_int_equal(utter_text_spoken(&spoken, "<speak>a", 8, &o, NULL, NULL, keep_line, said, &error),
        UTTER_E_ARGUMENT);
    assert_string_equal(error.text, "markup, line 1, column 1: <speak> has no end");
    assert_null(spoken);
    o.size = 0;
    assert_int_equal(
        utter_text_spoken(&spoken, "a", 1, &o, NULL, NULL, NULL, NULL, &error), UTTER_E_ARGUMENT);
    assert_non_null(strstr(error.text, "utter_reading_options: its size is not set"));
    utter_reading_options_init(&o);
    o.markup = UTTER_MARKUP_TAGS;
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        static const char text[] = "One [voice:a]two [rate:120%]three.";
        const utter_status status =
            utter_text_spoken(&spoken, text, sizeof text - 1, &o, NULL, NULL, NULL, NULL, &error);
        assert_int_equal(status, support_failed() ? UTTER_E_MEMORY : UTTER_OK);
        assert_true((status == UTTER_OK) == (spoken != NULL));
        assert_true(status || strcmp(spoken, "One\n[voice:a]two\n[rate:120%]three.\n") == 0);
        utter_memory_free(spoken);
    }
}

/* Each at the last value that it takes and the first that it does not. */
static void reading_options_have_bounds(void **state)
{
    (void)state;
    static const struct {
        int retries, lanes, max_frames, piece_length, markup;
        double clause, sentence, paragraph;
        bool good;
    } cases[] = {
        {2, 1, 0, 0, 0, 0.15, 0.35, 0.7, true},
        {0, 1, 0, 20, 3, 0, 0, 0, true},
        {100, 1 << 20, 1 << 30, 10000, 1, 60, 60, 60, true},
        {-1, 1, 0, 0, 0, 0, 0, 0, false},
        {101, 1, 0, 0, 0, 0, 0, 0, false},
        {2, 0, 0, 0, 0, 0, 0, 0, false},
        {2, 1, -1, 0, 0, 0, 0, 0, false},
        {2, 1, 0, 19, 0, 0, 0, 0, false},
        {2, 1, 0, 1, 0, 0, 0, 0, false},
        {2, 1, 0, 10001, 0, 0, 0, 0, false},
        {2, 1, 0, -1, 0, 0, 0, 0, false},
        {2, 1, 0, 0, -1, 0, 0, 0, false},
        {2, 1, 0, 0, 4, 0, 0, 0, false},
        {2, 1, 0, 0, 0, -0.1, 0, 0, false},
        {2, 1, 0, 0, 0, 60.1, 0, 0, false},
        {2, 1, 0, 0, 0, NAN, 0, 0, false},
        {2, 1, 0, 0, 0, 0, -0.1, 0, false},
        {2, 1, 0, 0, 0, 0, 60.1, 0, false},
        {2, 1, 0, 0, 0, 0, 0, -0.1, false},
        {2, 1, 0, 0, 0, 0, 0, 60.1, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        utter_error error = {.text = ""};
        utter_reading_options o;
        char *spoken;
        utter_reading_options_init(&o);
        o.retries = cases[i].retries;
        o.lanes = cases[i].lanes;
        o.max_frames = cases[i].max_frames;
        o.piece_length = cases[i].piece_length;
        o.markup = cases[i].markup;
        o.clause_pause_s = cases[i].clause;
        o.sentence_pause_s = cases[i].sentence;
        o.paragraph_pause_s = cases[i].paragraph;
        const utter_status status =
            utter_text_spoken(&spoken, "<speak>a</speak>", 16, &o, NULL, NULL, NULL, NULL, &error);
        assert_int_equal(status, cases[i].good ? UTTER_OK : UTTER_E_ARGUMENT);
        assert_true(cases[i].good ||
                    strcmp(error.text,
                        "an option of the reading is out of range (retries 0 to 100, lanes from 1, "
                        "max_frames from 0, piece_length 20 to 10000, markup, pauses 0 to 60 s)") == 0);
        utter_memory_free(spoken);
    }
}

static void readings_need_their_arguments(void **state)
{
    (void)state;
    utter_model *model;
    utter_reading *reading = (utter_reading *)1, *none = NULL;
    utter_error error = {.text = ""};
    utter_reading_options o;
    utter_stream_options v;
    utter_reading_stats stats = {.size = sizeof stats};
    float pcm[1920];
    size_t n = 5;
    uint64_t first = 5;
    assert_int_equal(utter_model_open(&model, MODEL, NULL, NULL), UTTER_OK);
    assert_int_equal(utter_reading_open(NULL, model, NULL, NULL, &error), UTTER_E_ARGUMENT);
    assert_int_equal(utter_reading_open(&reading, NULL, NULL, NULL, &error), UTTER_E_ARGUMENT);
    assert_string_equal(error.text, "reading or model is NULL");
    utter_reading_options_init(&o);
    o.size = 0;
    assert_int_equal(utter_reading_open(&reading, model, NULL, &o, &error), UTTER_E_ARGUMENT);
    assert_null(reading);
    utter_reading_options_init(&o);
    o.retries = 101;
    assert_int_equal(utter_reading_open(&reading, model, NULL, &o, &error), UTTER_E_ARGUMENT);
    utter_stream_options_init(&v, model);
    v.size = 0;
    assert_int_equal(utter_reading_open(&reading, model, &v, NULL, &error), UTTER_E_ARGUMENT);
    assert_non_null(strstr(error.text, "utter_stream_options: its size"));
    assert_int_equal(utter_reading_open(&reading, model, NULL, NULL, &error), UTTER_OK);
    assert_int_equal(utter_reading_text(NULL, "a", 1, &error), UTTER_E_ARGUMENT);
    assert_int_equal(utter_reading_text(reading, NULL, 1, &error), UTTER_E_ARGUMENT);
    assert_int_equal(utter_reading_finish(NULL, &error), UTTER_E_ARGUMENT);
    assert_int_equal(utter_reading_read(NULL, pcm, 1, &n, &error), UTTER_E_ARGUMENT);
    assert_int_equal(utter_reading_read(reading, NULL, 1, &n, &error), UTTER_E_ARGUMENT);
    assert_int_equal(utter_reading_read(reading, pcm, 1, NULL, &error), UTTER_E_ARGUMENT);
    assert_int_equal(utter_reading_read(reading, pcm, 0, &n, &error), UTTER_E_ARGUMENT);
    assert_int_equal(n, 0);
    assert_int_equal(utter_reading_get_stats(NULL, &stats), UTTER_E_ARGUMENT);
    assert_int_equal(utter_reading_get_stats(reading, NULL), UTTER_E_ARGUMENT);
    assert_int_equal(utter_reading_get_stats(reading, &stats), UTTER_OK);
    assert_true(stats.size == sizeof stats && stats.n_pieces == 0);
    stats.size = 0;
    assert_int_equal(utter_reading_get_stats(reading, &stats), UTTER_E_ARGUMENT);
    n = 5;
    assert_null(utter_reading_words(NULL, &first, &n));
    assert_true(first == 0 && n == 0);
    utter_reading_words(reading, NULL, NULL);
    utter_reading_hold(NULL, true);
    utter_reading_cancel(NULL);
    utter_reading_free(NULL);
    utter_reading_free(&none);
    utter_reading_free(&reading);
    assert_null(reading);
    assert_true(engine_is_idle(&model->engine));
    utter_model_close(&model);
}

/* Whoever reads moves the model, until text is wanted, the reading is held, cancelled, or at its end. */
static void who_reads_hears(void **state)
{
    (void)state;
    utter_model *model;
    utter_reading *reading;
    utter_error error = {.text = ""};
    utter_stream_options v;
    utter_reading_stats stats = {.size = sizeof stats};
    float pcm[1920];
    size_t n, sum = 0;
    assert_int_equal(utter_model_open(&model, MODEL, NULL, NULL), UTTER_OK);
    utter_stream_options_init(&v, model);
    v.max_frames = 3;
    v.guard = false;
    v.words = true;
    assert_int_equal(utter_reading_open(&reading, model, &v, NULL, NULL), UTTER_OK);
    assert_int_equal(utter_reading_read(reading, pcm, 1920, &n, NULL), UTTER_AGAIN);
    assert_int_equal(utter_reading_text(reading, "Hello there.", 12, NULL), UTTER_OK);
    assert_int_equal(utter_reading_finish(reading, NULL), UTTER_OK);
    utter_reading_hold(reading, true);
    assert_int_equal(utter_reading_read(reading, pcm, 1920, &n, NULL), UTTER_AGAIN);
    assert_int_equal(n, 0);
    utter_reading_hold(reading, false);
    assert_int_equal(
        utter_reading_take(reading, pcm, 1920, &n, NULL), UTTER_AGAIN); /* it moves nothing */
    utter_status status;
    while ((status = utter_reading_read(reading, pcm, 1920, &n, NULL)) == UTTER_OK) {
        assert_in_range(n, 1, 1920);
        sum += n;
    }
    assert_int_equal(status, UTTER_END);
    assert_true(sum > 0);
    assert_int_equal(utter_reading_get_stats(reading, &stats), UTTER_OK);
    assert_true(stats.n_pieces == 1 && stats.n_frames > 0);
    uint64_t first = 5;
    const utter_word *words = utter_reading_words(reading, &first, &n);
    assert_true(words && n > 0 && first == 0 && words[0].at == 0);
    utter_reading_free(&reading);
    assert_int_equal(utter_reading_open(&reading, model, &v, NULL, NULL), UTTER_OK);
    assert_int_equal(utter_reading_text(reading, "Hello there.", 12, NULL), UTTER_OK);
    utter_reading_cancel(reading);
    assert_int_equal(utter_reading_read(reading, pcm, 1920, &n, NULL), UTTER_END);
    utter_reading_free(&reading);
    /* A device that has failed says so whether there is something to say or not. */
    for (int finished = 0; finished < 2; finished++) {
        assert_int_equal(utter_reading_open(&reading, model, &v, NULL, NULL), UTTER_OK);
        assert_int_equal(utter_reading_text(reading, "Hello there.", 12, NULL), UTTER_OK);
        assert_true(!finished || utter_reading_finish(reading, NULL) == UTTER_OK);
        error_set(&model->engine.broken, UTTER_E_DEVICE, "broken");
        assert_int_equal(utter_reading_read(reading, pcm, 1920, &n, &error), UTTER_E_DEVICE);
        assert_string_equal(error.text, "broken");
        model->engine.broken.code = UTTER_OK;
        utter_reading_free(&reading);
    }
    utter_model_close(&model);
}

static int n_fed;

static utter_status count_feed(
    struct backend *b, int lane, const int32_t *codes, int n_frames, utter_error *error)
{
    n_fed++;
    return cpu_backend.feed(b, lane, codes, n_frames, error);
}

/* A listener who has waited longer than a machine like this one can mend hears several frames at a time. */
static void who_reads_slowly_hears_frames_together(void **state)
{
    (void)state;
    utter_model *model;
    utter_reading *reading;
    utter_stream_options v;
    utter_reading_options o;
    float pcm[1920];
    size_t n, sum = 0;
    assert_int_equal(utter_model_open(&model, MODEL, NULL, NULL), UTTER_OK);
    struct backend_ops ops = cpu_backend;
    ops.gathers = 4;
    ops.feed = count_feed;
    model->engine.context.ops = &ops;
    utter_stream_options_init(&v, model);
    v.max_frames = 20;
    v.guard = false;
    utter_reading_options_init(&o);
    o.retries = 0;
    n_fed = 0;
    assert_int_equal(utter_reading_open(&reading, model, &v, &o, NULL), UTTER_OK);
    assert_int_equal(utter_reading_text(reading, "Hello there.", 12, NULL), UTTER_OK);
    assert_int_equal(utter_reading_finish(reading, NULL), UTTER_OK);
    while (utter_reading_read(reading, pcm, 1920, &n, NULL) == UTTER_OK) {
        utter_stream *s = model->engine.streams[0];
        sum += n;
        if (s && s->n_frames > 0) {
            s->stats.talker_s = 1000;
            s->waited_s = 1;
        }
    }
    assert_true(sum > 0 && n_fed > 0);
    utter_reading_free(&reading);
    utter_model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_is_shown_as_it_is_spoken),
        cmocka_unit_test(what_cannot_be_spoken_is_refused),
        cmocka_unit_test(reading_options_have_bounds),
        cmocka_unit_test(readings_need_their_arguments),
        cmocka_unit_test(who_reads_hears),
        cmocka_unit_test(who_reads_slowly_hears_frames_together),
    };
    return cmocka_run_group_tests_name("spoken", tests, NULL, NULL);
}
