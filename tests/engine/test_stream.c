/* SPDX-License-Identifier: Apache-2.0
 * Streams through utter.h on the small checkpoints: what comes out may depend on nothing but weights, text,
 * settings and seed; and every stream ends, with its reason. */
#include "tests/support.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"
#include "utter.h"

#define MODEL "build/checkpoints/tiny17-custom_voice"
static const char TEXT[] = "Hello there, friend. How are you today?";

struct result {
    float pcm[200 * 1920];
    int32_t codes[200 * 16];
    size_t n_samples, n_frames;
    utter_finish finish;
};

static utter_model *open_with(const char *path, int n_threads, int n_lanes)
{
    utter_model *model;
    utter_error error = {0};
    utter_model_options o;
    utter_model_options_init(&o);
    o.n_threads = n_threads;
    o.n_lanes = n_lanes;
    utter_status status = utter_model_open(&model, path, &o, &error);
    assert_string_equal(error.text, "");
    assert_int_equal(status, UTTER_OK);
    return model;
}

static utter_stream_options options_of(const utter_model *model, int max_frames, uint64_t seed)
{
    utter_stream_options o;
    assert_int_equal(utter_stream_options_init(&o, model), UTTER_OK);
    o.max_frames = max_frames;
    o.seed = seed;
    return o;
}

static void take_result(utter_stream *stream, struct result *r)
{
    utter_stream_stats stats = {.size = sizeof stats};
    const int32_t *codes = utter_stream_codes(stream, &r->n_frames);
    memcpy(r->codes, codes, r->n_frames * 16 * sizeof *codes);
    assert_int_equal(utter_stream_get_stats(stream, &stats), UTTER_OK);
    r->finish = stats.finish;
    assert_int_equal(stats.n_frames, r->n_frames);
}

/* Speaks the text in pieces of `piece` bytes, reading `step` samples at a time. */
static struct result *speak(
    utter_model *model, const utter_stream_options *o, const char *text, size_t piece, size_t step)
{
    struct result *r = calloc(1, sizeof *r);
    utter_stream *stream;
    utter_error error = {0};
    size_t n, bytes = strlen(text);
    utter_status status = utter_stream_open(&stream, model, o, &error);
    assert_string_equal(error.text, "");
    assert_int_equal(status, UTTER_OK);
    for (size_t at = 0; at < bytes; at += piece) {
        size_t take = bytes - at < piece ? bytes - at : piece;
        assert_int_equal(utter_stream_text(stream, text + at, take, &error), UTTER_OK);
        while (
            (status = utter_stream_read(stream, r->pcm + r->n_samples, step, &n, &error)) == UTTER_OK) {
            r->n_samples += n;
        }
        assert_true(status == UTTER_AGAIN || status == UTTER_END);
    }
    assert_int_equal(utter_stream_finish(stream, &error), UTTER_OK);
    while ((status = utter_stream_read(stream, r->pcm + r->n_samples, step, &n, &error)) == UTTER_OK) {
        r->n_samples += n;
    }
    assert_int_equal(status, UTTER_END);
    take_result(stream, r);
    utter_stream_free(&stream);
    assert_null(stream);
    return r;
}

/* With so few codes the end token comes by chance: the first seed from *seed on that speaks for all of max_frames. */
static struct result *speak_long(utter_model *model, utter_stream_options *o)
{
    for (;; o->seed++) {
        struct result *r = speak(model, o, TEXT, sizeof TEXT, 1920);
        if (r->n_frames == (size_t)o->max_frames) {
            return r;
        }
        free(r);
        assert_in_range(o->seed, 0, 100);
    }
}

static void assert_same(const struct result *a, const struct result *b)
{
    assert_int_equal(a->n_frames, b->n_frames);
    assert_int_equal(a->n_samples, b->n_samples);
    assert_int_equal(a->finish, b->finish);
    assert_memory_equal(a->codes, b->codes, a->n_frames * 16 * sizeof *a->codes);
    assert_memory_equal(a->pcm, b->pcm, a->n_samples * sizeof *a->pcm);
}

static void nothing_else_changes_the_samples(void **state)
{
    (void)state;
    for (int layout = UTTER_LAYOUT_FULL; layout <= UTTER_LAYOUT_STREAM; layout++) {
        utter_model *model = open_with(MODEL, 1, 1);
        utter_stream_options o = options_of(model, 12, 7);
        o.layout = (utter_layout)layout;
        struct result *base = speak_long(model, &o);
        assert_int_equal(base->n_samples, 12 * 1920);
        assert_int_equal(base->finish, UTTER_FINISH_MAX_FRAMES);
        static const size_t pieces[] = {1, 3, 7}, steps[] = {1919, 100, 5000};
        for (int i = 0; i < 3; i++) {
            struct result *again = speak(model, &o, TEXT, pieces[i], steps[i]);
            assert_same(base, again);
            free(again);
        }
        utter_model_close(&model);
        static const int threads[] = {2, 8};
        for (int i = 0; i < 2; i++) {
            model = open_with(MODEL, threads[i], 3);
            struct result *again = speak(model, &o, TEXT, sizeof TEXT, 1920);
            assert_same(base, again);
            free(again);
            utter_model_close(&model);
        }
        free(base);
    }
}

static void seeds_differ_and_repeat(void **state)
{
    utter_model *model = open_with(MODEL, 1, 1);
    utter_stream_options o = options_of(model, 6, 1);
    (void)state;
    struct result *one = speak_long(model, &o), *again = speak(model, &o, TEXT, 100, 1920);
    o.seed++;
    struct result *two = speak_long(model, &o);
    assert_same(one, again);
    assert_memory_not_equal(one->codes, two->codes, 6 * 16 * sizeof *one->codes);
    free(one);
    free(again);
    free(two);
    utter_model_close(&model);
}

/* The predictor draws by its own settings: code 0 of the first frame alike, the others not. */
static void the_predictor_draws_too(void **state)
{
    utter_model *model = open_with(MODEL, 1, 1);
    utter_stream_options o = options_of(model, 2, 1);
    (void)state;
    o.talker.temperature = 0;
    struct result *one = speak(model, &o, TEXT, 100, 1920);
    o.seed = 2;
    struct result *two = speak(model, &o, TEXT, 100, 1920);
    o.predictor.temperature = 0;
    struct result *greedy = speak(model, &o, TEXT, 100, 1920);
    o.seed = 3;
    struct result *greedy_too = speak(model, &o, TEXT, 100, 1920);
    assert_int_equal(one->codes[0], two->codes[0]);
    assert_memory_not_equal(one->codes, two->codes, 16 * sizeof *one->codes);
    assert_same(greedy, greedy_too);
    free(one);
    free(two);
    free(greedy);
    free(greedy_too);
    utter_model_close(&model);
}

/* Streams side by side, stepped together, joined at different times, equal each one alone. */
static void neighbours_change_nothing(void **state)
{
    enum { N = 3, FRAMES = 10 };
    utter_model *model = open_with(MODEL, 2, N);
    utter_stream *streams[N];
    struct result *alone[N], *together[N];
    utter_error error;
    size_t n;
    (void)state;
    for (int i = 0; i < N; i++) {
        utter_stream_options o = options_of(model, FRAMES, (uint64_t)i);
        o.layout = i == 1 ? UTTER_LAYOUT_STREAM : UTTER_LAYOUT_FULL;
        o.talker.temperature = i == 2 ? 0 : 0.9f;
        alone[i] = speak(model, &o, TEXT + i, 100, 1920);
        together[i] = calloc(1, sizeof **together);
    }
    for (int i = 0; i < N; i++) {
        utter_stream_options o = options_of(model, FRAMES, (uint64_t)i);
        o.layout = i == 1 ? UTTER_LAYOUT_STREAM : UTTER_LAYOUT_FULL;
        o.talker.temperature = i == 2 ? 0 : 0.9f;
        assert_int_equal(utter_stream_open(&streams[i], model, &o, &error), UTTER_OK);
        assert_int_equal(utter_stream_text(streams[i], TEXT + i, strlen(TEXT + i), &error), UTTER_OK);
        assert_int_equal(utter_stream_finish(streams[i], &error), UTTER_OK);
        for (int k = 0; k < 2; k++) {
            assert_int_equal(utter_model_step(model, &error), UTTER_OK);
        }
    }
    utter_stream *none;
    assert_int_equal(utter_stream_open(&none, model, NULL, &error), UTTER_AGAIN);
    while (utter_model_step(model, &error) == UTTER_OK) {
    }
    for (int i = 0; i < N; i++) {
        struct result *r = together[i];
        while (utter_stream_take(streams[i], r->pcm + r->n_samples, 777, &n, &error) == UTTER_OK) {
            r->n_samples += n;
        }
        take_result(streams[i], r);
        assert_same(alone[i], r);
        utter_stream_free(&streams[i]);
        free(alone[i]);
        free(r);
    }
    utter_model_close(&model);
}

static const char LONG[] =
    "One fox, two dogs and three geese went to the river, and on the way they met a heron who "
    "knew a better place, far behind the hills, where nobody fishes. They thanked it, turned "
    "around, and were home before the rain came.";

/* Steps until the second stream has a frame; the first one gets a frame in each step, the second one rows. */
static void step_through_a_prompt(utter_model *model, utter_stream *const *streams)
{
    utter_stream_stats stats = {.size = sizeof stats}, other = {.size = sizeof other};
    utter_error error;
    int n_pieces = 0, n_rows = 0;
    utter_stream_get_stats(streams[0], &other);
    while (stats.n_frames == 0) {
        int n_frames = other.n_frames;
        assert_int_equal(utter_model_step(model, &error), UTTER_OK);
        utter_stream_get_stats(streams[0], &other);
        utter_stream_get_stats(streams[1], &stats);
        n_rows = n_rows > stats.n_kept_rows ? n_rows : stats.n_kept_rows;
        assert_in_range(stats.n_rows - n_rows, 1, 16);
        assert_int_equal(other.n_frames, n_frames + 1);
        n_rows = stats.n_rows;
        n_pieces++;
    }
    assert_in_range(n_pieces, 3, n_rows / 8);
}

/* A long prompt is read in pieces while another stream goes on; nobody's samples change. */
static void prompts_in_pieces_change_nothing(void **state)
{
    utter_model_options o = {0};
    utter_model *model = open_with(MODEL, 2, 2), *cut;
    utter_error error;
    utter_stream *streams[2];
    size_t n, n_frames = 0;
    (void)state;
    utter_stream_options short_one = options_of(model, 20, 1), long_one = options_of(model, 10, 1);
    long_one.layout = UTTER_LAYOUT_FULL;
    struct result *first = speak_long(model, &short_one);
    struct result *second = speak(model, &long_one, LONG, sizeof LONG, 1920),
                  *again = calloc(1, sizeof *again);
    utter_model_close(&model);
    utter_model_options_init(&o);
    o.n_threads = o.n_lanes = 2;
    o.prompt_seconds = -1;
    assert_int_equal(utter_model_open(&cut, MODEL, &o, &error), UTTER_E_ARGUMENT);
    assert_non_null(strstr(error.text, "prompt_seconds"));
    o.prompt_seconds = 1e-9; /* the smallest pieces */
    assert_int_equal(utter_model_open(&cut, MODEL, &o, &error), UTTER_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(
            utter_stream_open(&streams[i], cut, i ? &long_one : &short_one, &error), UTTER_OK);
        assert_int_equal(
            utter_stream_text(streams[i], i ? LONG : TEXT, strlen(i ? LONG : TEXT), &error), UTTER_OK);
        assert_int_equal(utter_stream_finish(streams[i], &error), UTTER_OK);
        while (i == 0 && n_frames == 0) {
            assert_int_equal(utter_model_step(cut, &error), UTTER_OK);
            utter_stream_codes(streams[0], &n_frames);
        }
    }
    step_through_a_prompt(cut, streams);
    while (utter_model_step(cut, &error) == UTTER_OK) {
    }
    for (int i = 0; i < 2; i++) {
        memset(again, 0, sizeof *again);
        while (utter_stream_take(streams[i], again->pcm + again->n_samples, 1920, &n, &error) ==
               UTTER_OK) {
            again->n_samples += n;
        }
        take_result(streams[i], again);
        assert_same(i ? second : first, again);
        utter_stream_free(&streams[i]);
    }
    free(first);
    free(second);
    free(again);
    utter_model_close(&cut);
}

/* The stream's samples by steps of one frame each. */
static struct result *speak_in_steps(utter_model *model, const utter_stream_options *o)
{
    struct result *r = calloc(1, sizeof *r);
    utter_stream *stream;
    utter_error error;
    size_t n;
    assert_int_equal(utter_stream_open(&stream, model, o, &error), UTTER_OK);
    assert_int_equal(utter_stream_text(stream, TEXT, strlen(TEXT), &error), UTTER_OK);
    assert_int_equal(utter_stream_finish(stream, &error), UTTER_OK);
    for (bool moved = true; moved;) {
        moved = utter_model_step(model, &error) == UTTER_OK;
        while (utter_stream_take(stream, r->pcm + r->n_samples, 1920, &n, &error) == UTTER_OK) {
            r->n_samples += n;
        }
    }
    take_result(stream, r);
    utter_stream_free(&stream);
    return r;
}

/* A machine that is quick enough gives several frames at once; they are the same, and so is the end behind them. */
static void frames_that_wait_for_their_sound_are_the_same(void **state)
{
    static const char *const models[] = {
        MODEL, "build/checkpoints/eos-sometimes", "build/checkpoints/loop"};
    static float pcm[8 * 1920];
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        utter_model *model = open_with(models[i], 1, 2);
        for (uint64_t seed = 1; seed < 4; seed++) {
            utter_stream_options o = options_of(model, i == 2 ? 190 : 23, seed);
            struct result *base = speak_in_steps(model, &o), *r = calloc(1, sizeof *r);
            utter_stream *stream;
            utter_error error;
            size_t n, most = 0;
            assert_int_equal(utter_stream_open(&stream, model, &o, &error), UTTER_OK);
            assert_int_equal(utter_stream_text(stream, TEXT, strlen(TEXT), &error), UTTER_OK);
            assert_int_equal(utter_stream_finish(stream, &error), UTTER_OK);
            while (utter_stream_read(stream, pcm, 8 * 1920, &n, &error) == UTTER_OK) {
                assert_true(r->n_samples > 0 || n == 1920);
                memcpy(r->pcm + r->n_samples, pcm, n * sizeof *pcm);
                r->n_samples += n;
                most = n > most ? n : most;
            }
            take_result(stream, r);
            assert_int_equal(r->finish, base->finish);
            assert_int_equal(r->n_frames, base->n_frames);
            assert_int_equal(r->n_samples, base->n_samples);
            assert_memory_equal(r->codes, base->codes, r->n_frames * 16 * sizeof *r->codes);
            assert_memory_equal(r->pcm, base->pcm, r->n_samples * sizeof *r->pcm);
            assert_true(most > 1920 || base->n_frames < 5);
            utter_stream_free(&stream);
            free(base);
            free(r);
        }
        utter_model_close(&model);
    }
}

static void a_full_ring_waits_for_its_reader(void **state)
{
    utter_model *model = open_with(MODEL, 1, 1);
    utter_stream_options o = options_of(model, 80, 3);
    utter_stream *stream;
    utter_error error;
    size_t n_frames, n, total = 0;
    static float pcm[1920];
    (void)state;
    struct result *base = speak_long(model, &o);
    assert_int_equal(utter_stream_open(&stream, model, &o, &error), UTTER_OK);
    assert_int_equal(utter_stream_text(stream, TEXT, strlen(TEXT), &error), UTTER_OK);
    assert_int_equal(utter_stream_finish(stream, &error), UTTER_OK);
    while (utter_model_step(model, &error) == UTTER_OK) {
    }
    utter_stream_codes(stream, &n_frames);
    assert_int_equal(n_frames, 64);
    while (utter_stream_read(stream, pcm, 1920, &n, &error) == UTTER_OK) {
        assert_memory_equal(pcm, base->pcm + total, n * sizeof *pcm);
        total += n;
    }
    assert_int_equal(total, base->n_samples);
    utter_stream_free(&stream);
    free(base);
    utter_model_close(&model);
}

/* Two streams with their settings; the first has its text. */
static utter_model *open_two(utter_stream *streams[2], const utter_stream_options *o)
{
    utter_model *model = open_with(MODEL, 1, 2);
    utter_error error;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(utter_stream_open(&streams[i], model, o, &error), UTTER_OK);
    }
    assert_int_equal(utter_stream_text(streams[0], TEXT, strlen(TEXT), &error), UTTER_OK);
    assert_int_equal(utter_stream_finish(streams[0], &error), UTTER_OK);
    return model;
}

/* Who waits for text hears so at once, whatever others have. */
static void reading_makes_nobody_else_speak(void **state)
{
    utter_stream *streams[2];
    utter_error error;
    size_t n, n_frames;
    static float pcm[1920];
    (void)state;
    utter_model *model = open_two(streams, NULL);
    assert_int_equal(utter_stream_read(streams[1], pcm, 1920, &n, &error), UTTER_AGAIN);
    utter_stream_codes(streams[0], &n_frames);
    assert_int_equal(n_frames, 0);
    utter_stream_free(&streams[0]);
    utter_stream_free(&streams[1]);
    utter_model_close(&model);
}

static utter_status no_room_for_lane_1(struct backend *b, int lane, utter_error *error)
{
    (void)b;
    return lane == 1 ? error_set(error, UTTER_E_MEMORY, "no room for lane 1") : UTTER_OK;
}

/* Memory for one stream's next frame is that stream's matter. */
static void one_without_room_ends_alone(void **state)
{
    utter_model *model = open_with(MODEL, 1, 2);
    utter_stream_options o = options_of(model, 6, 3);
    utter_stream *streams[2];
    utter_error error;
    size_t n, n_frames;
    static float pcm[1920];
    (void)state;
    utter_model_close(&model);
    model = open_two(streams, &o);
    assert_int_equal(utter_stream_text(streams[1], TEXT, strlen(TEXT), &error), UTTER_OK);
    assert_int_equal(utter_stream_finish(streams[1], &error), UTTER_OK);
    struct backend_ops ops = *model->ops;
    ops.room = no_room_for_lane_1;
    model->ops = &ops;
    while (utter_model_step(model, &error) == UTTER_OK) {
    }
    utter_stream_codes(streams[0], &n_frames);
    assert_int_equal(n_frames, 6);
    assert_int_equal(utter_stream_read(streams[1], pcm, 1920, &n, &error), UTTER_E_MEMORY);
    assert_string_equal(error.text, "no room for lane 1");
    utter_stream_free(&streams[0]);
    utter_stream_free(&streams[1]);
    utter_model_close(&model);
}

static void a_held_stream_stands_still(void **state)
{
    utter_model *model = open_with(MODEL, 1, 2);
    utter_stream_options o = options_of(model, 6, 3);
    utter_stream *streams[2];
    utter_error error;
    size_t n, n_frames;
    static float pcm[1920];
    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(utter_stream_open(&streams[i], model, &o, &error), UTTER_OK);
        assert_int_equal(utter_stream_text(streams[i], TEXT, strlen(TEXT), &error), UTTER_OK);
        assert_int_equal(utter_stream_finish(streams[i], &error), UTTER_OK);
    }
    utter_stream_hold(streams[1], true);
    while (utter_model_step(model, &error) == UTTER_OK) {
    }
    utter_stream_codes(streams[0], &n_frames);
    assert_int_equal(n_frames, 6);
    utter_stream_codes(streams[1], &n_frames);
    assert_int_equal(n_frames, 0);
    assert_int_equal(utter_stream_read(streams[1], pcm, 1920, &n, &error), UTTER_AGAIN);
    utter_stream_hold(streams[1], false);
    assert_int_equal(utter_stream_read(streams[1], pcm, 1920, &n, &error), UTTER_OK);
    /* An end is not held up. */
    utter_stream_hold(streams[1], true);
    utter_stream_cancel(streams[1]);
    assert_int_equal(utter_model_step(model, &error), UTTER_AGAIN);
    assert_int_equal(utter_stream_take(streams[1], pcm, 1920, &n, &error), UTTER_END);
    utter_stream_free(&streams[0]);
    utter_stream_free(&streams[1]);
    utter_model_close(&model);
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
        cmocka_unit_test(nothing_else_changes_the_samples),
        cmocka_unit_test(seeds_differ_and_repeat),
        cmocka_unit_test(the_predictor_draws_too),
        cmocka_unit_test(neighbours_change_nothing),
        cmocka_unit_test(prompts_in_pieces_change_nothing),
        cmocka_unit_test(frames_that_wait_for_their_sound_are_the_same),
        cmocka_unit_test(a_full_ring_waits_for_its_reader),
        cmocka_unit_test(reading_makes_nobody_else_speak),
        cmocka_unit_test(one_without_room_ends_alone),
        cmocka_unit_test(a_held_stream_stands_still),
        cmocka_unit_test(every_end_has_its_reason),
        cmocka_unit_test(what_is_not_a_number_ends_as_an_error),
        cmocka_unit_test(another_thread_may_cancel),
        cmocka_unit_test(failing_calls_end_as_errors),
        cmocka_unit_test(options_out_of_range_are_refused),
    };
    return cmocka_run_group_tests_name("streams", tests, NULL, NULL);
}
