/* SPDX-License-Identifier: Apache-2.0
 * Streams through utter.h on the small checkpoints: what comes out may depend on nothing but weights, text,
 * settings and seed. */
#include "tests/engine/speaking.h"

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

/* Once it is known what a row takes, a prompt that is read in the time that it may take is read at once. */
static void a_prompt_that_is_quick_is_one_piece(void **state)
{
    utter_model_options o;
    utter_model *model;
    utter_error error;
    (void)state;
    utter_model_options_init(&o);
    o.n_threads = o.n_lanes = 2;
    o.prompt_seconds = 1000;
    assert_int_equal(utter_model_open(&model, MODEL, &o, &error), UTTER_OK);
    utter_stream_options long_one = options_of(model, 1, 1);
    long_one.layout = UTTER_LAYOUT_FULL;
    for (int i = 0; i < 2; i++) {
        utter_stream *stream;
        utter_stream_stats stats = {.size = sizeof stats};
        int n_steps = 0;
        assert_int_equal(utter_stream_open(&stream, model, &long_one, &error), UTTER_OK);
        assert_int_equal(utter_stream_text(stream, LONG, strlen(LONG), &error), UTTER_OK);
        assert_int_equal(utter_stream_finish(stream, &error), UTTER_OK);
        for (; stats.n_frames == 0; n_steps++) {
            assert_int_equal(utter_model_step(model, &error), UTTER_OK);
            utter_stream_get_stats(stream, &stats);
        }
        assert_true(i == 0 ? n_steps > 1 : n_steps == 1);
        utter_stream_free(&stream);
    }
    utter_model_close(&model);
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
        for (uint64_t seed = 1; seed < (SUPPORT_SANITIZED ? 2 : 4); seed++) {
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

/* A bound ends a stream at once, however much text it has: what is read behind its last frame is its end. */
static void a_bound_needs_no_text(void **state)
{
    utter_model *model = open_with(MODEL, 1, 1);
    utter_error error;
    int n_ended = 0, n_waited = 0;
    (void)state;
    for (int most = 1; most <= 40; most += SUPPORT_SANITIZED ? 3 : 1) {
        utter_stream_options o = options_of(model, most, 3);
        utter_stream *stream;
        size_t n, n_frames;
        static float pcm[1920];
        utter_status status;
        o.layout = UTTER_LAYOUT_STREAM;
        assert_int_equal(utter_stream_open(&stream, model, &o, &error), UTTER_OK);
        assert_int_equal(utter_stream_text(stream, TEXT, strlen(TEXT), &error), UTTER_OK);
        while ((status = utter_stream_read(stream, pcm, 1920, &n, &error)) == UTTER_OK) {
        }
        utter_stream_codes(stream, &n_frames);
        assert_int_equal(status, n_frames == (size_t)most ? UTTER_END : UTTER_AGAIN);
        n_ended += status == UTTER_END;
        n_waited += status == UTTER_AGAIN;
        utter_stream_free(&stream);
    }
    assert_true(n_ended > 1 && n_waited > 1);
    utter_model_close(&model);
}

/* What is said of one call in utter.h and of one number. */
static void what_is_out_of_range_is_refused(void **state)
{
    utter_model *model = open_with(MODEL, 1, 1);
    utter_stream_options o = options_of(model, 1, 1);
    utter_stream *stream;
    utter_error error;
    float sample;
    size_t n = 1;
    (void)state;
    o.talker.repetition_penalty = 0;
    assert_int_equal(utter_stream_open(&stream, model, &o, &error), UTTER_E_ARGUMENT);
    o.talker.repetition_penalty = 1001;
    assert_int_equal(utter_stream_open(&stream, model, &o, &error), UTTER_E_ARGUMENT);
    assert_non_null(strstr(error.text, "repetition_penalty"));
    o.talker.repetition_penalty = 1000;
    o.predictor.repetition_penalty = 0; /* ignored */
    assert_int_equal(utter_stream_open(&stream, model, &o, &error), UTTER_OK);
    assert_int_equal(utter_stream_read(stream, &sample, 0, &n, &error), UTTER_E_ARGUMENT);
    assert_int_equal(n, 0);
    assert_int_equal(utter_stream_take(stream, &sample, 1, &n, &error), UTTER_AGAIN);
    utter_stream_free(&stream);
    utter_model_close(&model);
}

/* How many suit the device is told, and what they take: on a CPU it is always the same number, and each takes as much
 * as another. */
static void lanes_are_found_out(void **state)
{
    utter_stream *streams[24], *one_more;
    utter_error error;
    utter_model_info info = {.size = sizeof info};
    uint64_t bytes[2];
    (void)state;
    for (int i = 0; i < 2; i++) {
        utter_model *few = open_with(MODEL, 1, 1 + i);
        assert_int_equal(utter_model_get_info(few, &info), UTTER_OK);
        bytes[i] = info.memory_bytes;
        utter_model_close(&few);
    }
    assert_true(bytes[1] > bytes[0] && bytes[0] > 0);
    utter_model *model = open_with(MODEL, 1, 0);
    assert_int_equal(utter_model_get_info(model, &info), UTTER_OK);
    assert_int_equal(info.n_lanes, 24);
    assert_int_equal(info.memory_bytes, bytes[0] + 23 * (bytes[1] - bytes[0]));
    utter_stream_options o = options_of(model, 6, 3);
    for (int i = 0; i < 24; i++) {
        assert_int_equal(utter_stream_open(&streams[i], model, &o, &error), UTTER_OK);
    }
    assert_int_equal(utter_stream_open(&one_more, model, &o, &error), UTTER_AGAIN);
    for (int i = 0; i < 24; i++) {
        utter_stream_free(&streams[i]);
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
        cmocka_unit_test(a_prompt_that_is_quick_is_one_piece),
        cmocka_unit_test(frames_that_wait_for_their_sound_are_the_same),
        cmocka_unit_test(a_full_ring_waits_for_its_reader),
        cmocka_unit_test(a_bound_needs_no_text),
        cmocka_unit_test(what_is_out_of_range_is_refused),
        cmocka_unit_test(lanes_are_found_out),
    };
    return cmocka_run_group_tests_name("streams", tests, NULL, NULL);
}
