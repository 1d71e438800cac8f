/* SPDX-License-Identifier: Apache-2.0
 * Streams through utter.h on the small checkpoints: who waits for whom, and that every stream ends, with its reason. */
#include "tests/engine/speaking.h"

#include <math.h>
#include <pthread.h>

#include "api/api.h"

/* Two streams of one model, and what calls on them give. */
struct two {
    utter_model *model;
    utter_stream *streams[2];
    utter_error error;
    size_t n, n_frames;
    float pcm[1920];
};

/* Of at most 6 frames; the first n_texts have their whole text. */
static struct two open_two(int n_texts)
{
    struct two t = {.model = open_with(MODEL, 1, 2)};
    utter_stream_options o = options_of(t.model, 6, 3);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(utter_stream_open(&t.streams[i], t.model, &o, &t.error), UTTER_OK);
        if (i < n_texts) {
            assert_int_equal(utter_stream_text(t.streams[i], TEXT, strlen(TEXT), &t.error), UTTER_OK);
            assert_int_equal(utter_stream_finish(t.streams[i], &t.error), UTTER_OK);
        }
    }
    return t;
}

static void close_two(struct two *t)
{
    utter_stream_free(&t->streams[0]);
    utter_stream_free(&t->streams[1]);
    utter_model_close(&t->model);
}

/* Who waits for text hears so at once, whatever others have. */
static void reading_makes_nobody_else_speak(void **state)
{
    (void)state;
    struct two t = open_two(1);
    assert_int_equal(utter_stream_read(t.streams[1], t.pcm, 1920, &t.n, &t.error), UTTER_AGAIN);
    utter_stream_codes(t.streams[0], &t.n_frames);
    assert_int_equal(t.n_frames, 0);
    close_two(&t);
}

static utter_status no_room_for_lane_1(struct backend *b, int lane, utter_error *error)
{
    (void)b;
    return lane == 1 ? error_set(error, UTTER_E_MEMORY, "no room for lane 1") : UTTER_OK;
}

/* Memory for one stream's next frame is that stream's matter. */
static void one_without_room_ends_alone(void **state)
{
    (void)state;
    struct two t = open_two(2);
    struct backend_ops ops = *t.model->engine.context.ops;
    ops.room = no_room_for_lane_1;
    t.model->engine.context.ops = &ops;
    while (utter_model_step(t.model, &t.error) == UTTER_OK) {
    }
    utter_stream_codes(t.streams[0], &t.n_frames);
    assert_int_equal(t.n_frames, 6);
    assert_int_equal(utter_stream_read(t.streams[1], t.pcm, 1920, &t.n, &t.error), UTTER_E_MEMORY);
    assert_string_equal(t.error.text, "no room for lane 1");
    close_two(&t);
}

static void a_held_stream_stands_still(void **state)
{
    (void)state;
    struct two t = open_two(2);
    utter_stream_hold(t.streams[1], true);
    while (utter_model_step(t.model, &t.error) == UTTER_OK) {
    }
    utter_stream_codes(t.streams[0], &t.n_frames);
    assert_int_equal(t.n_frames, 6);
    utter_stream_codes(t.streams[1], &t.n_frames);
    assert_int_equal(t.n_frames, 0);
    assert_int_equal(utter_stream_read(t.streams[1], t.pcm, 1920, &t.n, &t.error), UTTER_AGAIN);
    utter_stream_hold(t.streams[1], false);
    assert_int_equal(utter_stream_read(t.streams[1], t.pcm, 1920, &t.n, &t.error), UTTER_OK);
    /* An end is not held up. */
    utter_stream_hold(t.streams[1], true);
    utter_stream_cancel(t.streams[1]);
    assert_int_equal(utter_model_step(t.model, &t.error), UTTER_AGAIN);
    assert_int_equal(utter_stream_take(t.streams[1], t.pcm, 1920, &t.n, &t.error), UTTER_END);
    close_two(&t);
}

static struct {
    const struct backend_ops *ops;
    int n_fed;
} slow;

static utter_status collect_late(struct backend *b, int lane, struct lane_out *out, utter_error *error)
{
    utter_status status = slow.ops->collect(b, lane, out, error);
    out->talker_s = 1;
    return status;
}

static utter_status count_feed(
    struct backend *b, int lane, const int32_t *codes, int n_frames, utter_error *error)
{
    slow.n_fed++;
    return slow.ops->feed(b, lane, codes, n_frames, error);
}

/* Where frames are so slow that they wait for their sound together, a stream that has no text yet is no haste. */
static void an_idle_stream_hastens_nobody(void **state)
{
    (void)state;
    struct two t = open_two(1);
    slow.ops = t.model->engine.context.ops;
    struct backend_ops ops = *t.model->engine.context.ops;
    ops.collect = collect_late;
    ops.feed = count_feed;
    ops.gathers = 4;
    t.model->engine.context.ops = &ops;
    t.streams[0]->waited_s = 1;
    while (utter_stream_read(t.streams[0], t.pcm, 1920, &t.n, &t.error) == UTTER_OK) {
    }
    utter_stream_codes(t.streams[0], &t.n_frames);
    assert_int_equal(t.n_frames, 6);
    assert_int_equal(slow.n_fed, 2); /* the first frame at once, then 4, then the last */
    t.model->engine.context.ops = slow.ops;
    close_two(&t);
}

/* Pieces of prompts are as large as their time allows: the first prompt is believed as it is, for it is all that is
 * known. Three tries, should the machine stop this process between two looks at the clock. */
static void the_first_prompt_tells_what_rows_take(void **state)
{
    bool told = false;
    (void)state;
    for (int i = 0; i < 3 && !told; i++) {
        utter_model *model = open_with(MODEL, 1, 1);
        utter_stream_options o = options_of(model, 1, 1);
        utter_stream_stats stats = {.size = sizeof stats};
        utter_stream *stream;
        utter_error error;
        float pcm[1920];
        size_t n;
        o.layout = UTTER_LAYOUT_FULL;
        assert_int_equal(utter_stream_open(&stream, model, &o, &error), UTTER_OK);
        assert_int_equal(utter_stream_text(stream, TEXT, strlen(TEXT), &error), UTTER_OK);
        assert_int_equal(utter_stream_finish(stream, &error), UTTER_OK);
        assert_int_equal(utter_stream_read(stream, pcm, 1920, &n, &error), UTTER_OK);
        assert_int_equal(utter_stream_get_stats(stream, &stats), UTTER_OK);
        double row_s = model->engine.context.prompt_clock.row_s;
        told = row_s * stats.n_rows > 0.5 * stats.prefill_s;
        utter_stream_free(&stream);
        utter_model_close(&model);
    }
    assert_true(told);
}

static void every_end_has_its_reason(void **state)
{
    static const struct {
        const char *model;
        bool guard;
        int max_frames;
        utter_finish finish;
        int n_frames;
    } cases[] = {
        {"build/checkpoints/eos-first", true, 100, UTTER_FINISH_EOS, 2},
        {"build/checkpoints/tiny06-custom_voice", true, 3, UTTER_FINISH_MAX_FRAMES, 3},
        {"build/checkpoints/loop", true, 200, UTTER_FINISH_LOOP, 126},
        {"build/checkpoints/loop", false, 140, UTTER_FINISH_MAX_FRAMES, 140},
        {"build/checkpoints/silent", true, 200, UTTER_FINISH_SILENCE, -1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        utter_model *model = open_with(cases[i].model, 2, 1);
        utter_stream_options o = options_of(model, cases[i].max_frames, 0);
        o.guard = cases[i].guard;
        struct result *r = speak(model, &o, "Hello", 100, 1920);
        assert_string_equal(utter_finish_text(r->finish), utter_finish_text(cases[i].finish));
        if (cases[i].n_frames >= 0) {
            assert_int_equal(r->n_frames, cases[i].n_frames);
        } else {
            assert_in_range(r->n_frames, 62, 80);
        }
        free(r);
        utter_model_close(&model);
    }
}

static void what_is_not_a_number_ends_as_an_error(void **state)
{
    static const char *const models[] = {"build/checkpoints/nan-scores", "build/checkpoints/nan-sound"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        utter_model *model = open_with(models[i], 1, 1);
        utter_stream_options o = options_of(model, 10, 0);
        utter_stream *stream;
        utter_error error;
        utter_stream_stats stats = {.size = sizeof stats};
        static float pcm[1920];
        size_t n;
        assert_int_equal(utter_stream_open(&stream, model, &o, &error), UTTER_OK);
        assert_int_equal(utter_stream_text(stream, "Hi", 2, &error), UTTER_OK);
        assert_int_equal(utter_stream_finish(stream, &error), UTTER_OK);
        for (int k = 0; k < 3; k++) {
            memset(&error, 0, sizeof error);
            assert_int_equal(utter_stream_read(stream, pcm, 1920, &n, &error), UTTER_E_NUMBER);
            assert_non_null(strstr(error.text, "not a number"));
        }
        assert_int_equal(utter_stream_get_stats(stream, &stats), UTTER_OK);
        assert_int_equal(stats.finish, UTTER_FINISH_ERROR);
        utter_stream_free(&stream);
        utter_model_close(&model);
    }
}

static void *cancel(void *stream)
{
    utter_stream_cancel(stream);
    return NULL;
}

static void another_thread_may_cancel(void **state)
{
    utter_model *model = open_with(MODEL, 2, 1);
    utter_stream_options o = options_of(model, 5000, 0);
    utter_stream *stream;
    utter_error error;
    utter_stream_stats stats = {.size = sizeof stats};
    pthread_t thread;
    static float pcm[1920];
    size_t n;
    utter_status status;
    (void)state;
    o.guard = false;
    assert_int_equal(utter_stream_open(&stream, model, &o, &error), UTTER_OK);
    assert_int_equal(utter_stream_text(stream, "Hi", 2, &error), UTTER_OK);
    assert_int_equal(utter_stream_finish(stream, &error), UTTER_OK);
    assert_int_equal(utter_stream_read(stream, pcm, 1920, &n, &error), UTTER_OK);
    assert_int_equal(pthread_create(&thread, NULL, cancel, stream), 0);
    while ((status = utter_stream_read(stream, pcm, 1920, &n, &error)) == UTTER_OK) {
    }
    pthread_join(thread, NULL);
    assert_int_equal(status, UTTER_END);
    assert_int_equal(utter_stream_get_stats(stream, &stats), UTTER_OK);
    assert_int_equal(stats.finish, UTTER_FINISH_CANCELLED);
    assert_true(stats.n_frames < 5000);
    utter_stream_free(&stream);
    utter_model_close(&model);
}

/* The whole way from the folder to samples with one call failing: a status with a reason, and nothing leaks. */
static void failing_calls_end_as_errors(void **state)
{
    (void)state;
    for (int call = SUPPORT_MALLOC; call <= SUPPORT_READ; call++) {
        bool failed = true;
        for (long n = 1; failed; n += 1 + n / 12) {
            utter_model *model = NULL;
            utter_stream *stream = NULL;
            utter_error error = {0};
            float pcm[16];
            size_t got;
            support_fail_at((enum support_call)call, n);
            utter_status status = utter_model_open(&model, MODEL, NULL, &error);
            status = status ? status : utter_stream_open(&stream, model, NULL, &error);
            status = status ? status : utter_stream_text(stream, TEXT, strlen(TEXT), &error);
            status = status ? status : utter_stream_finish(stream, &error);
            status = status ? status : utter_stream_read(stream, pcm, 16, &got, &error);
            failed = support_failed();
            support_fail_off();
            if (status != UTTER_OK) {
                assert_true(failed && status < 0 && error.text[0] != 0);
            }
            utter_stream_free(&stream);
            utter_model_close(&model);
        }
    }
}

static void options_out_of_range_are_refused(void **state)
{
    utter_model *model = open_with(MODEL, 1, 1);
    utter_stream *stream;
    utter_error error;
    (void)state;
    for (int i = 0; i < 9; i++) {
        utter_stream_options o = options_of(model, 10, 0);
        o.talker.temperature = i == 0 ? -1 : i == 1 ? NAN : o.talker.temperature;
        o.talker.top_k = i == 2 ? -1 : 50;
        o.predictor.top_p = i == 3 ? 0 : i == 4 ? 1.5f : 1;
        o.talker.repetition_penalty = i == 5 ? 0 : 1;
        o.max_frames = i == 6 ? 0 : 10;
        o.language = i == 7 ? "klingon" : NULL;
        o.size = i == 8 ? 0 : sizeof o;
        assert_int_equal(utter_stream_open(&stream, model, &o, &error), UTTER_E_ARGUMENT);
        assert_null(stream);
    }
    utter_model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reading_makes_nobody_else_speak),
        cmocka_unit_test(one_without_room_ends_alone),
        cmocka_unit_test(a_held_stream_stands_still),
        cmocka_unit_test(an_idle_stream_hastens_nobody),
        cmocka_unit_test(the_first_prompt_tells_what_rows_take),
        cmocka_unit_test(every_end_has_its_reason),
        cmocka_unit_test(what_is_not_a_number_ends_as_an_error),
        cmocka_unit_test(another_thread_may_cancel),
        cmocka_unit_test(failing_calls_end_as_errors),
        cmocka_unit_test(options_out_of_range_are_refused),
    };
    return cmocka_run_group_tests_name("turns and ends", tests, NULL, NULL);
}
