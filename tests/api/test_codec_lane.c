/* SPDX-License-Identifier: Apache-2.0
 * Codes decoded through utter.h: the lane is nobody else's meanwhile, and who takes the sound gets all of it and never
 * nothing. */
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

#include "api/api.h"

enum { FRAME = 1920, CODES = 16, MOST_FRAMES = 302 };

static utter_model *model;
static int32_t codes[MOST_FRAMES * CODES];
static float sound[MOST_FRAMES * FRAME];
static size_t n_calls, n_samples, stop_at;
static utter_status status_inside;

static int open_model(void **state)
{
    utter_model_options o;
    (void)state;
    utter_model_options_init(&o);
    o.n_threads = 1;
    for (int i = 0; i < MOST_FRAMES * CODES; i++) {
        codes[i] = (i * 5 + i / 16) % 64;
    }
    return utter_model_open(&model, "build/checkpoints/tiny06-custom_voice", &o, NULL);
}

static int close_model(void **state)
{
    (void)state;
    utter_model_close(&model);
    return 0;
}

static bool count(void *user, const float *pcm, size_t n)
{
    assert_ptr_equal(user, codes);
    assert_non_null(pcm);
    assert_true(n > 0 && n % FRAME == 0 && n_samples + n <= MOST_FRAMES * FRAME);
    memcpy(sound + n_samples, pcm, n * sizeof *pcm);
    n_samples += n;
    return ++n_calls != stop_at;
}

static utter_status decode(size_t n_frames, utter_codec_rule rule, int chunk, utter_sink_fn *sink)
{
    utter_error error = {.text = ""};
    n_calls = n_samples = 0;
    const utter_status status =
        utter_codec_decode(model, codes, n_frames, rule, chunk, sink, codes, &error);
    assert_true(!status == !error.text[0]);
    assert_true(engine_is_idle(&model->engine));
    assert_int_equal(engine_free_lane(&model->engine), 0);
    return status;
}

static void check_calls(size_t n_frames, utter_codec_rule rule, int chunk, size_t wanted)
{
    assert_int_equal(decode(n_frames, rule, chunk, count), UTTER_OK);
    assert_int_equal(n_samples, n_frames * FRAME);
    assert_int_equal(n_calls, wanted);
}

static void sound_comes_chunk_by_chunk(void **state)
{
    (void)state;
    stop_at = 0;
    check_calls(0, UTTER_CODEC_WHOLE, 0, 0);
    check_calls(1, UTTER_CODEC_WHOLE, 0, 1);
    check_calls(8, UTTER_CODEC_WHOLE, 0, 1); /* eight frames where no other number is asked for */
    check_calls(9, UTTER_CODEC_WHOLE, 0, 2);
    check_calls(9, UTTER_CODEC_WHOLE, 1, 9);
    check_calls(9, UTTER_CODEC_WHOLE, 9, 1);
    check_calls(32, UTTER_CODEC_WHOLE, 32, 1);
    check_calls(33, UTTER_CODEC_WHOLE, 32, 2);
}

/* Behind the cut at 300 frames the 25 before it come again and are not given. */
static void what_comes_again_is_not_given(void **state)
{
    (void)state;
    stop_at = 0;
    if (SUPPORT_SANITIZED) {
        return; /* it is long */
    }
    check_calls(300, UTTER_CODEC_OFFICIAL_CHUNKS, 30, 10);
    check_calls(301, UTTER_CODEC_OFFICIAL_CHUNKS, 25, 12 + 1);
    check_calls(302, UTTER_CODEC_OFFICIAL_CHUNKS, 20, 15 + 1);
    check_calls(301, UTTER_CODEC_OFFICIAL_CHUNKS, 26, 12 + 1);
}

/* ... so that the sound there is that of a decoder which has heard these 25 and nothing before. */
static void behind_a_cut_the_decoder_is_cold(void **state)
{
    enum { CUT = 300, BEFORE = 25, BEHIND = MOST_FRAMES - CUT };
    float cut[BEHIND * FRAME];
    (void)state;
    stop_at = 0;
    if (SUPPORT_SANITIZED) {
        return;
    }
    check_calls(MOST_FRAMES, UTTER_CODEC_OFFICIAL_CHUNKS, 32, 10 + 1);
    memcpy(cut, sound + CUT * FRAME, sizeof cut);
    n_calls = n_samples = 0;
    assert_int_equal(utter_codec_decode(model, codes + (CUT - BEFORE) * CODES, BEFORE + BEHIND,
                         UTTER_CODEC_WHOLE, 0, count, codes, NULL),
        UTTER_OK);
    assert_int_equal(n_samples, (BEFORE + BEHIND) * FRAME);
    assert_memory_equal(cut, sound + BEFORE * FRAME, sizeof cut);
}

static void who_stops_gets_no_more(void **state)
{
    (void)state;
    for (stop_at = 1; stop_at <= 3; stop_at++) {
        assert_int_equal(decode(24, UTTER_CODEC_WHOLE, 8, count), UTTER_E_CANCELLED);
        assert_true(n_calls == stop_at && n_samples == 8 * FRAME * stop_at);
    }
    if (SUPPORT_SANITIZED) {
        return;
    }
    stop_at = 10; /* the last call of the first run of the official rule: there is no second one */
    assert_int_equal(decode(301, UTTER_CODEC_OFFICIAL_CHUNKS, 30, count), UTTER_E_CANCELLED);
    assert_int_equal(n_calls, 10);
}

/* Who opens a stream, or decodes, while a sound comes. */
static bool open_inside(void *user, const float *pcm, size_t n)
{
    utter_stream *stream = NULL;
    (void)pcm, (void)n;
    status_inside = utter_stream_open(&stream, model, NULL, NULL);
    utter_stream_free(&stream);
    return *(const int32_t *)user >= 0;
}

static bool decode_inside(void *user, const float *pcm, size_t n)
{
    (void)pcm, (void)n;
    status_inside = utter_codec_decode(model, user, 1, UTTER_CODEC_WHOLE, 0, count, codes, NULL);
    return true;
}

static void the_lane_is_taken_meanwhile(void **state)
{
    (void)state;
    stop_at = 0;
    assert_int_equal(decode(2, UTTER_CODEC_WHOLE, 1, open_inside), UTTER_OK);
    assert_int_equal(status_inside, UTTER_AGAIN);
    assert_int_equal(decode(2, UTTER_CODEC_WHOLE, 1, decode_inside), UTTER_OK);
    assert_int_equal(status_inside, UTTER_AGAIN);
    utter_stream *stream;
    assert_int_equal(utter_stream_open(&stream, model, NULL, NULL), UTTER_OK);
    utter_stream_free(&stream);
}

static int n_fed;

static utter_status fail_to_feed(
    struct backend *b, int lane, const int32_t *at, int n_frames, utter_error *error)
{
    (void)b, (void)lane, (void)at, (void)n_frames;
    n_fed++;
    return error_set(error, UTTER_E_DEVICE, "no power");
}

/* A failure of the device is remembered: whoever comes next hears of it, and the device is not asked again. */
static void a_device_that_failed_decodes_no_more(void **state)
{
    (void)state;
    struct backend_ops ops = cpu_backend;
    const struct backend_ops *before = model->engine.context.ops;
    utter_error error = {.text = ""};
    ops.feed = fail_to_feed;
    model->engine.context.ops = &ops;
    assert_int_equal(decode(2, UTTER_CODEC_WHOLE, 1, count), UTTER_E_DEVICE);
    assert_int_equal(engine_check(&model->engine, &error), UTTER_E_DEVICE);
    assert_string_equal(error.text, "no power");
    assert_int_equal(decode(2, UTTER_CODEC_WHOLE, 1, count), UTTER_E_DEVICE);
    assert_true(n_fed == 1 && n_calls == 0);
    model->engine.context.ops = before;
    model->engine.broken.code = UTTER_OK;
    stop_at = 0;
    check_calls(2, UTTER_CODEC_WHOLE, 1, 2);
}

static int n_collected;

static utter_status collect_nonsense(
    struct backend *b, int lane, struct lane_out *out, utter_error *error)
{
    const utter_status status = cpu_backend.collect(b, lane, out, error);
    out->not_a_number = ++n_collected == 2;
    return status;
}

/* The frames of one call are named, and those before them were given. */
static void what_is_not_a_number_is_named(void **state)
{
    (void)state;
    struct backend_ops ops = cpu_backend;
    const struct backend_ops *before = model->engine.context.ops;
    utter_error error = {.text = ""};
    ops.collect = collect_nonsense;
    model->engine.context.ops = &ops;
    stop_at = n_calls = n_samples = 0;
    assert_int_equal(utter_codec_decode(model, codes, 8, UTTER_CODEC_WHOLE, 3, count, codes, &error),
        UTTER_E_NUMBER);
    assert_string_equal(
        error.text, "the sound of frames 3..5 is not a number (the codec's weights are damaged)");
    assert_true(n_calls == 1 && n_samples == 3 * FRAME && n_collected == 2);
    model->engine.context.ops = before;
    assert_true(engine_is_idle(&model->engine));
    check_calls(2, UTTER_CODEC_WHOLE, 1, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sound_comes_chunk_by_chunk),
        cmocka_unit_test(what_comes_again_is_not_given),
        cmocka_unit_test(behind_a_cut_the_decoder_is_cold),
        cmocka_unit_test(who_stops_gets_no_more),
        cmocka_unit_test(the_lane_is_taken_meanwhile),
        cmocka_unit_test(a_device_that_failed_decodes_no_more),
        cmocka_unit_test(what_is_not_a_number_is_named),
    };
    return cmocka_run_group_tests_name("codec", tests, open_model, close_model);
}
