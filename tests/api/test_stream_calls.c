/* SPDX-License-Identifier: Apache-2.0
 * Single calls of utter.h to their last detail: what is taken of a stream, how a failure is told, whose voices a
 * reading finds, and which ids a text has. */
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

#include "api/api.h"

static utter_model *model;

static int open_model(void **state)
{
    utter_model_options o;
    (void)state;
    utter_model_options_init(&o);
    o.n_threads = 1;
    return utter_model_open(&model, "build/checkpoints/tiny17-custom_voice", &o, NULL);
}

static int close_model(void **state)
{
    (void)state;
    utter_model_close(&model);
    return 0;
}

static utter_stream *open_stream(int max_frames)
{
    utter_stream *stream;
    utter_stream_options o;
    utter_stream_options_init(&o, model);
    o.max_frames = max_frames;
    o.guard = false;
    assert_int_equal(utter_stream_open(&stream, model, &o, NULL), UTTER_OK);
    assert_int_equal(utter_stream_text(stream, "Hello there.", 12, NULL), UTTER_OK);
    return stream;
}

static void samples_are_taken_one_by_one(void **state)
{
    float one = 9, rest[1920];
    size_t n = 9;
    (void)state;
    utter_stream *stream = open_stream(2);
    assert_int_equal(utter_stream_finish(stream, NULL), UTTER_OK);
    assert_int_equal(utter_stream_read(stream, &one, 1, &n, NULL), UTTER_OK);
    assert_int_equal(n, 1);
    assert_int_equal(utter_stream_take(stream, &one, 1, &n, NULL), UTTER_OK);
    assert_int_equal(n, 1);
    assert_int_equal(utter_stream_take(stream, rest, 1920, &n, NULL), UTTER_OK);
    assert_int_equal(n, 1918);
    assert_int_equal(utter_stream_take(stream, rest, 1920, &n, NULL), UTTER_AGAIN);
    assert_int_equal(n, 0);
    utter_stream_free(&stream);
}

/* Nobody need move the model for it. */
static void a_cancelled_stream_is_at_its_end(void **state)
{
    float pcm[16];
    size_t n = 9;
    utter_stream_stats stats = {.size = sizeof stats};
    (void)state;
    utter_stream *stream = open_stream(2);
    utter_stream_cancel(stream);
    assert_int_equal(utter_stream_take(stream, pcm, 16, &n, NULL), UTTER_END);
    assert_int_equal(n, 0);
    assert_int_equal(utter_stream_get_stats(stream, &stats), UTTER_OK);
    assert_int_equal(stats.finish, UTTER_FINISH_CANCELLED);
    utter_stream_free(&stream);
}

static void a_failed_stream_tells_why_each_time(void **state)
{
    float pcm[16];
    size_t n = 9;
    (void)state;
    utter_stream *stream = open_stream(2);
    error_set(&stream->failure, UTTER_E_NUMBER, "the sound is none");
    for (int i = 0; i < 2; i++) {
        utter_error error = {.text = ""};
        assert_int_equal(utter_stream_take(stream, pcm, 16, &n, &error), UTTER_E_NUMBER);
        assert_int_equal(error.code, UTTER_E_NUMBER);
        assert_string_equal(error.text, "the sound is none");
        assert_int_equal(utter_stream_take(stream, pcm, 16, &n, NULL), UTTER_E_NUMBER);
        assert_int_equal(n, 0);
    }
    utter_stream_free(&stream);
}

static void a_held_stream_does_not_move(void **state)
{
    float pcm[1920];
    size_t n;
    (void)state;
    utter_stream *stream = open_stream(2);
    assert_int_equal(utter_stream_finish(stream, NULL), UTTER_OK);
    utter_stream_hold(stream, true);
    assert_int_equal(utter_stream_read(stream, pcm, 1920, &n, NULL), UTTER_AGAIN);
    assert_int_equal(n, 0);
    utter_stream_hold(stream, false);
    assert_int_equal(utter_stream_read(stream, pcm, 1920, &n, NULL), UTTER_OK);
    assert_int_equal(n, 1920);
    utter_stream_free(&stream);
}

/* ---- A reading's voices ---- */

static int n_asked;

static utter_status find_voice(void *user, const char *name, utter_voice **voice, utter_error *error)
{
    assert_ptr_equal(user, &n_asked);
    assert_string_equal(name, "somebody");
    n_asked++;
    return utter_voice_preset(voice, model, "ryan", error);
}

static utter_status read_with(utter_find_voice_fn *find, const char *text, utter_error *error)
{
    utter_reading *reading;
    utter_reading_options o;
    utter_stream_options v;
    float pcm[1920];
    size_t n;
    utter_stream_options_init(&v, model);
    utter_reading_options_init(&o);
    v.max_frames = 2;
    v.guard = false;
    o.markup = UTTER_MARKUP_TAGS;
    o.retries = 0;
    o.find_voice = find;
    o.find_voice_user = &n_asked;
    n_asked = 0;
    utter_status status = utter_reading_open(&reading, model, &v, &o, error);
    assert_int_equal(status, UTTER_OK);
    status = utter_reading_text(reading, text, strlen(text), error);
    status = status ? status : utter_reading_finish(reading, error);
    while (!status) {
        status = utter_reading_read(reading, pcm, 1920, &n, error);
    }
    utter_reading_free(&reading);
    return status;
}

static void a_reading_asks_who_was_named_for_voices(void **state)
{
    utter_error error = {.text = ""};
    (void)state;
    assert_int_equal(read_with(find_voice, "[voice:somebody]Hello there.", &error), UTTER_END);
    assert_true(n_asked > 0);
    /* Else there are the presets of the model. */
    assert_int_equal(read_with(NULL, "[voice:ryan]Hello there.", &error), UTTER_END);
    assert_int_equal(n_asked, 0);
}

/* ---- Ids ---- */

static void a_text_has_the_ids_of_the_tokenizer(void **state)
{
    static const char text[] = "Hello there, friend.";
    struct ids wanted = {0};
    int32_t *ids;
    size_t n;
    (void)state;
    assert_int_equal(
        tokenizer_encode(model->engine.context.tokenizer, text, sizeof text - 1, &wanted, NULL),
        UTTER_OK);
    assert_int_equal(utter_model_tokenize(model, text, sizeof text - 1, &ids, &n, NULL), UTTER_OK);
    assert_true(n > 1 && n == wanted.n);
    assert_memory_equal(ids, wanted.at, n * sizeof *ids);
    utter_memory_free(ids);
    ids_fini(&wanted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_taken_one_by_one),
        cmocka_unit_test(a_cancelled_stream_is_at_its_end),
        cmocka_unit_test(a_failed_stream_tells_why_each_time),
        cmocka_unit_test(a_held_stream_does_not_move),
        cmocka_unit_test(a_reading_asks_who_was_named_for_voices),
        cmocka_unit_test(a_text_has_the_ids_of_the_tokenizer),
    };
    return cmocka_run_group_tests_name("calls", tests, open_model, close_model);
}
