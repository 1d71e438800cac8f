/* SPDX-License-Identifier: Apache-2.0
 * Whose matter a failure is, which lanes are taken, what a device is told of them, and how it is opened. */
#include "tests/engine/told.h"

#include <unistd.h>

#include "base/json.h"

/* ---- Failures ---- */

/* What fails for all ends all, and of a device it is remembered; a prompt, or room for a frame, is its stream's own. */
static void failures_end_whom_they_concern(void **state)
{
    (void)state;
    static const struct {
        enum call call;
        int at;
        utter_status status;
        bool together, step_fails, both;
    } cases[] = {
        {CALL_FRAME, 3, UTTER_E_INTERNAL, false, true, true},
        {CALL_FRAME, 3, UTTER_E_DEVICE, false, true, true},
        {CALL_VOCODE, 3, UTTER_E_DEVICE, false, true, true},
        {CALL_COLLECT, 3, UTTER_E_INTERNAL, false, true, true},
        {CALL_COLLECT, 4, UTTER_E_DEVICE, false, true, true},
        {CALL_FEED, 1, UTTER_E_INTERNAL, true, true, true},
        {CALL_VOCODE, 2, UTTER_E_INTERNAL, true, true, true},
        {CALL_PREFILL, 2, UTTER_E_INTERNAL, false, false, false},
        {CALL_ROOM, 2, UTTER_E_MEMORY, false, false, false},
        {CALL_PREFILL, 2, UTTER_E_DEVICE, false, true, true},
        {CALL_ROOM, 4, UTTER_E_DEVICE, false, true, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char wanted[64];
        utter_error error = {.text = ""}, again;
        utter_stream *s[2];
        utter_status status = UTTER_OK;
        open_engine(MODEL);
        s[0] = open_plain(10);
        s[1] = open_plain(10);
        fake.fails = cases[i].call;
        fake.fails_at = cases[i].at;
        fake.failure = cases[i].status;
        while (status == UTTER_OK) {
            status = engine_step(&engine, cases[i].together, &error);
            s[0]->heard_since = s[1]->heard_since = clock_seconds() + 1000;
        }
        snprintf(wanted, sizeof wanted, "call %d was told to fail", cases[i].at);
        assert_int_equal(status, cases[i].step_fails ? cases[i].status : UTTER_AGAIN);
        for (int k = cases[i].both ? 0 : 1; k < 2; k++) {
            assert_int_equal(s[k]->finish, UTTER_FINISH_ERROR);
            assert_int_equal(s[k]->failure.code, cases[i].status);
            assert_string_equal(s[k]->failure.text, wanted);
        }
        if (!cases[i].both) {
            assert_int_equal(s[0]->finish, UTTER_FINISH_MAX_FRAMES);
        }
        const bool broken = cases[i].status == UTTER_E_DEVICE;
        assert_int_equal(engine_check(&engine, NULL), broken ? UTTER_E_DEVICE : UTTER_OK);
        assert_int_equal(engine_step(&engine, false, &again), broken ? UTTER_E_DEVICE : UTTER_AGAIN);
        if (broken) {
            assert_string_equal(again.text, wanted);
            assert_string_equal(error.text, wanted);
        }
        engine_free_stream(&s[0]);
        engine_free_stream(&s[1]);
        engine_close(&engine);
    }
}

static void the_first_failure_of_a_device_stays(void **state)
{
    (void)state;
    utter_error error;
    open_engine(MODEL);
    error_set(&error, UTTER_E_DEVICE, "first");
    assert_int_equal(engine_keep_failure(&engine, UTTER_E_MEMORY, &error), UTTER_E_MEMORY);
    assert_int_equal(engine_keep_failure(&engine, UTTER_OK, NULL), UTTER_OK);
    assert_int_equal(engine_check(&engine, &error), UTTER_OK);
    assert_int_equal(engine_keep_failure(&engine, UTTER_E_DEVICE, &error), UTTER_E_DEVICE);
    assert_int_equal(engine_keep_failure(&engine, UTTER_E_DEVICE, NULL), UTTER_E_DEVICE);
    error.text[0] = 0;
    assert_int_equal(engine_check(&engine, &error), UTTER_E_DEVICE);
    assert_string_equal(error.text, "first");
    utter_stream *s = (utter_stream *)&error;
    const utter_stream_options o = options_of(1);
    assert_int_equal(engine_open_stream(&s, &engine, &o, &error), UTTER_E_DEVICE);
    assert_null(s);
    engine_close(&engine);
    open_engine(MODEL);
    assert_int_equal(engine_keep_failure(&engine, UTTER_E_DEVICE, NULL), UTTER_E_DEVICE);
    engine_check(&engine, &error);
    assert_string_equal(error.text, "the device failed");
    engine_close(&engine);
}

static const char
    *shrinking; /* a file of the model, which becomes shorter in the next call of that kind */

static void shrink(void)
{
    assert_int_equal(truncate(shrinking, 4096), 0);
}

static utter_status shrink_in_prefill(
    struct backend *b, int lane, const struct row *rows, int n, utter_error *error)
{
    shrink();
    return fake_prefill(b, lane, rows, n, error);
}

static utter_status shrink_in_frame(
    struct backend *b, const struct frame_in *in, int n, utter_error *error)
{
    shrink();
    return fake_frame(b, in, n, error);
}

static utter_status shrink_in_vocode(struct backend *b, const int *lanes, int n, utter_error *error)
{
    shrink();
    return fake_vocode(b, lanes, n, error);
}

/* What a device makes of a file that has become shorter meanwhile is not taken: neither codes nor sound. */
static void what_a_damaged_file_gave_reaches_nobody(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        char command[512], path[256];
        utter_error error = {.text = ""};
        snprintf(command, sizeof command, "rm -rf %s/model && cp -r %s %s/model", support_folder(),
            MODEL, support_folder());
        assert_int_equal(system(command), 0);
        snprintf(path, sizeof path, "%s/model/model.safetensors", support_folder());
        shrinking = path;
        open_engine(support_path("model"));
        engine.context.prompt_clock = (struct prompt_clock){.most_s = 1e-9, .row_s = 1};
        utter_stream *s = open_plain(20);
        while (i > 0 && s->n_made < 3) { /* two frames wait for their sound then */
            assert_int_equal(engine_step(&engine, true, NULL), UTTER_OK);
            s->heard_since = clock_seconds() + 1000;
        }
        const int n_made = s->n_made, n_frames = s->n_frames;
        ops.prefill = shrink_in_prefill;
        ops.frame = i == 1 ? shrink_in_frame : fake_frame;
        ops.vocode = shrink_in_vocode;
        utter_status status = engine_step(&engine, true, &error);
        while (i == 2 && status == UTTER_OK) { /* until no more frames wait */
            status = engine_step(&engine, true, &error);
        }
        assert_int_equal(status, UTTER_E_FILE);
        assert_string_equal(
            error.text, "a file of the model has shrunk while it was in use (open the model again)");
        assert_int_equal(engine_step(&engine, true, NULL), UTTER_E_FILE);
        assert_int_equal(s->n_frames, n_frames);
        assert_true(s->ring_n == (size_t)n_frames * FRAME && n_frames == (i > 0));
        assert_true(i == 2 ? s->n_made > n_made : s->n_made == n_made);
        assert_true(i == 0 || (s->finish == UTTER_FINISH_ERROR && s->failure.code == UTTER_E_FILE));
        assert_int_equal(fake.n[CALL_PREFILL] > 1, i > 0); /* no second piece of a prompt either */
        engine_free_stream(&s);
        engine_close(&engine);
    }
}

/* ---- Lanes ---- */

static void lanes_are_taken_and_given_back(void **state)
{
    (void)state;
    utter_error error;
    utter_stream *s[N_LANES], *more;
    open_engine(MODEL);
    const utter_stream_options o = options_of(5);
    assert_true(engine_is_idle(&engine));
    engine.reserved[1] = true;
    assert_false(engine_is_idle(&engine));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(engine_free_lane(&engine), i ? 2 : 0);
        assert_int_equal(engine_open_stream(&s[i], &engine, &o, &error), UTTER_OK);
        assert_int_equal(s[i]->lane, i ? 2 : 0);
    }
    assert_int_equal(engine_free_lane(&engine), -1);
    assert_int_equal(engine_open_stream(&more, &engine, &o, &error), UTTER_AGAIN);
    assert_null(more);
    assert_string_equal(
        error.text, "all 3 lanes of the model are taken (free a stream, or open it with more)");
    engine.reserved[1] = false;
    assert_int_equal(engine_free_lane(&engine), 1);
    engine_release_lane(s[1]);
    assert_int_equal(s[1]->lane, -1);
    assert_null(s[1]->ring);
    assert_int_equal(s[1]->ring_n, 0);
    assert_null(engine.streams[2]);
    fake.n[CALL_RESET] = 0;
    engine_free_stream(&s[1]); /* which has none */
    assert_int_equal(fake.n[CALL_RESET], 0);
    engine_free_stream(&s[0]);
    CHECK_CALLS(CALL_RESET, 0);
    assert_true(engine_is_idle(&engine));
    engine_free_stream(&s[0]);
    fake.fails = CALL_RESET; /* a stream that cannot begin takes no lane */
    fake.fails_at = fake.n[CALL_RESET] + 1;
    fake.failure = UTTER_E_DEVICE;
    assert_int_equal(engine_open_stream(&more, &engine, &o, &error), UTTER_E_DEVICE);
    assert_null(more);
    assert_true(engine_is_idle(&engine));
    assert_int_equal(engine_check(&engine, NULL), UTTER_E_DEVICE);
    engine_close(&engine);
}

/* Sound that nobody took goes with the lane; what was said stays. */
static void without_its_lane_a_stream_has_no_sound(void **state)
{
    (void)state;
    float pcm[FRAME];
    open_engine(MODEL);
    utter_stream *s = open_plain(10);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(engine_step(&engine, false, NULL), UTTER_OK);
    }
    assert_int_equal(s->ring_n, 3 * FRAME);
    engine_release_lane(s);
    assert_true(engine_is_idle(&engine) && s->lane == -1 && s->n_frames == 3);
    assert_int_equal(stream_drain(s, pcm, FRAME), 0);
    const int n_resets = fake.n[CALL_RESET];
    engine_release_lane(s); /* once more is nothing */
    assert_int_equal(fake.n[CALL_RESET], n_resets);
    engine_free_stream(&s);
    engine_close(&engine);
}

static void a_lane_is_told_its_settings(void **state)
{
    (void)state;
    open_engine(MODEL);
    utter_stream_options o = options_of(5);
    o.seed = 77;
    o.talker = (utter_sampling){0.5f, 7, 0.25f, 1.5f};
    o.predictor = (utter_sampling){0.75f, 9, 0.5f, 1.25f};
    utter_stream *s = open_stream(&o);
    const utter_sampling predictor = {0.75f, 9, 0.5f, 1}; /* it has no penalty */
    assert_memory_equal(&fake.settings.talker, &o.talker, sizeof o.talker);
    assert_memory_equal(&fake.settings.predictor, &predictor, sizeof predictor);
    assert_int_equal(fake.settings.seed, 77);
    assert_int_equal(fake.settings.min_frames, 2);
    engine_free_stream(&s);
    utter_error error;
    static const int layouts[] = {-1, 3}, frames[] = {0, -1};
    for (int i = 0; i < 2; i++) {
        o = options_of(5);
        o.layout = (utter_layout)layouts[i];
        assert_int_equal(engine_open_stream(&s, &engine, &o, &error), UTTER_E_ARGUMENT);
        assert_non_null(strstr(error.text, i ? "layout 3 does not exist" : "layout -1 does not exist"));
        o = options_of(frames[i]);
        assert_int_equal(engine_open_stream(&s, &engine, &o, &error), UTTER_E_ARGUMENT);
        assert_non_null(strstr(error.text, i ? "max_frames -1" : "max_frames 0 is not at least 1"));
    }
    for (int layout = UTTER_LAYOUT_AUTO; layout <= UTTER_LAYOUT_STREAM; layout++) {
        o = options_of(1);
        o.layout = (utter_layout)layout;
        s = open_stream(&o);
        engine_free_stream(&s);
    }
    engine_close(&engine);
}

static int n_heard; /* frames of the recording */

static utter_status hear(
    struct backend *b, int lane, const int32_t *codes, int n_frames, utter_error *error)
{
    for (int i = 0; i < n_frames * N_CODES; i++) {
        assert_int_equal(codes[i], (n_heard * N_CODES + i) % 61);
    }
    n_heard += n_frames;
    return fake_feed(b, lane, codes, n_frames, error);
}

/* A cloned voice's recording goes through the vocoder before the speech does, in pieces of 32 frames. */
static void the_vocoder_hears_the_recording(void **state)
{
    (void)state;
    enum { N = 70 };
    static int32_t codes[N * N_CODES];
    static float vector[4096];
    for (int primes = 0; primes < 2; primes++) {
        open_engine(BASE);
        ops.prime = primes ? fake_prime : NULL;
        ops.feed = hear;
        n_heard = 0;
        for (int i = 0; i < N * N_CODES; i++) {
            codes[i] = i % 61;
        }
        utter_voice *voice;
        utter_error error = {.text = ""};
        voice_new_clone(&voice, "a", vector, engine.context.model->config->talker.width, codes, N,
            N_CODES, "Hello.", &error);
        assert_string_equal(error.text, "");
        utter_stream_options o = options_of(2);
        o.voice = voice;
        utter_stream *s = open_stream(&o);
        run(s, false);
        assert_int_equal(s->n_frames, 2);
        assert_int_equal(fake.n_primed, primes ? N : 0);
        if (primes) {
            assert_int_equal(fake.n[CALL_FEED], 0);
            CHECK_CALLS(CALL_VOCODE, 1, 1);
        } else {
            CHECK_CALLS(CALL_FEED, 32, 32, 6);
            CHECK_CALLS(CALL_VOCODE, 1, 1, 1, 1, 1);
        }
        engine_free_stream(&s);
        voice_free(&voice);
        engine_close(&engine);
    }
}

/* ---- Opening ---- */

static utter_status note_lanes(struct backend **b, const struct model *model,
    const struct backend_options *options, utter_error *error)
{
    (void)b, (void)model;
    return error_set(
        error, UTTER_E_DEVICE, "%d lanes of %d", options->n_lanes, options->lane_positions);
}

static int seven(const struct model *model, const struct backend_options *options)
{
    assert_true(model && options->n_lanes == 0);
    return 7;
}

static void the_device_is_told_how_many_lanes(void **state)
{
    (void)state;
    static const char *const wanted[] = {"24 lanes of 32768", "7 lanes of 32768", "5 lanes of 32768"};
    for (int i = 0; i < 3; i++) {
        struct engine e = {.n_lanes = 0};
        utter_error error;
        ops = silent_ops;
        ops.open = note_lanes;
        ops.suiting_lanes = i ? seven : NULL;
        const struct engine_options o = {.ops = &ops, .backend = {.n_lanes = i == 2 ? 5 : 0}};
        assert_int_equal(engine_open(&e, MODEL, &o, &error), UTTER_E_DEVICE);
        assert_string_equal(error.text, wanted[i]);
        assert_null(e.context.model);
    }
    static const utter_weights weights[] = {
        UTTER_WEIGHTS_Q8, UTTER_WEIGHTS_Q4, UTTER_WEIGHTS_Q8_PREDICTOR};
    for (int i = 0; i < 3; i++) { /* a device that reads none */
        struct engine e = {.n_lanes = 0};
        utter_error error;
        const struct engine_options o = {.ops = &ops, .backend = {.n_lanes = 1, .weights = weights[i]}};
        assert_int_equal(engine_open(&e, MODEL, &o, &error), UTTER_E_ARGUMENT);
        assert_string_equal(error.text,
            "weights of 8 or 4 bits: the device fake cannot use them (choose the cpu, "
            "or the checkpoint as it is)");
    }
}

static utter_status refuse_heads(
    struct backend *b, const struct talker_head *heads, int n, utter_error *error)
{
    (void)b, (void)heads;
    return error_set(error, UTTER_E_DEVICE, "cannot watch %d", n);
}

/* A file of heads holds where the device can watch them; without one they are learnt. */
static void named_heads_are_watched(void **state)
{
    (void)state;
    const char *good = support_path("heads.json"), *bad = support_path("bad.json");
    support_write_file(good, "{\"alignment_heads\": [[1, 2], [0, 3]]}", 37);
    support_write_file(bad, "{\"alignment_heads\": [[9, 9]]}", 29);
    const struct {
        const char *heads;
        utter_status (*watch)(struct backend *, const struct talker_head *, int, utter_error *);
        utter_status status;
        int n;
        const char *said;
    } cases[] = {
        {good, fake_watch, UTTER_OK, 2, ""}, {good, NULL, UTTER_OK, 0, ""},
        {good, refuse_heads, UTTER_E_DEVICE, 0, "cannot watch 2"},
        {bad, fake_watch, UTTER_E_MODEL, 0, "bad.json: alignment_heads: entry 0 is no"},
        {"/nowhere", fake_watch, UTTER_OK, 0, ""},
        {NULL, fake_watch, UTTER_OK, 0, ""}, /* the checkpoint brings none */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct engine e = {.n_lanes = 0};
        utter_error error = {.text = ""};
        renew();
        ops = silent_ops;
        ops.watch = cases[i].watch;
        const struct engine_options o = {.ops = &ops, .backend.n_lanes = 1, .heads = cases[i].heads};
        assert_int_equal(engine_open(&e, MODEL, &o, &error), cases[i].status);
        assert_non_null(strstr(error.text, cases[i].said));
        assert_int_equal(e.context.heads.n, cases[i].n);
        assert_int_equal(fake.n_watched, cases[i].n);
        assert_true((e.context.model != NULL) == (cases[i].status == UTTER_OK));
        engine_close(&e);
    }
}

/* As many tokens more in the folder's list of them that there are n_ids. */
static void write_tokens(const char *folder, int n_ids)
{
    char path[512], id[16], content[32];
    json_t *root =
               json_load_file("build/checkpoints/tiny17-custom_voice/tokenizer_config.json", 0, NULL),
           *tokens = json_object_get(root, "added_tokens_decoder");
    for (int i = 1217; i < n_ids; i++) {
        snprintf(id, sizeof id, "%d", i);
        snprintf(content, sizeof content, "<|more%d|>", i);
        assert_int_equal(json_object_set_new(tokens, id, json_pack("{ss}", "content", content)), 0);
    }
    snprintf(path, sizeof path, "%s/tokenizer_config.json", folder);
    assert_int_equal(json_dump_file(root, path, 0), 0);
    json_decref(root);
}

/* The text's table may have a row for each token and no other, and not a row less. */
static void a_tokenizer_fits_into_the_table(void **state)
{
    (void)state;
    static const char *const files[] = {"config.json", "generation_config.json", "merges.txt",
        "model.safetensors", "speech_tokenizer", "vocab.json"};
    char *place = realpath(MODEL, NULL), from[512], to[512];
    const char *folder = support_fresh_folder("mixed");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(from, sizeof from, "%s/%s", place, files[i]);
        snprintf(to, sizeof to, "%s/%s", folder, files[i]);
        assert_int_equal(symlink(from, to), 0);
    }
    free(place);
    ops = silent_ops;
    for (int i = 0; i < 2; i++) {
        struct engine e = {.n_lanes = 0};
        utter_error error = {.text = ""};
        const struct engine_options o = {.ops = &ops, .backend.n_lanes = 1};
        write_tokens(folder, 1344 + i);
        const utter_status status = engine_open(&e, folder, &o, &error);
        assert_string_equal(error.text,
            i ? "the tokenizer knows 1345 tokens, the model 1344 (files of two models are mixed)" : "");
        assert_int_equal(status, i ? UTTER_E_MODEL : UTTER_OK);
        engine_close(&e);
    }
}

static void versions_decide_over_the_pattern(void **state)
{
    (void)state;
    static const struct {
        const char *version;
        bool patched;
    } cases[] = {{"", true}, {"x", true}, {"5", true}, {"4.57", false}, {"4.58", true}, {"5.0", false},
        {"4.57.2.post1", true}, {"4.57.2.dev1", false}, {"4.57.1.post1", false}, {"4.57.10", true},
        {"4.100.0", true}, {"5.0.0.dev0", true}, {"5.0.0a1", true}, {"5.0.0b2", true},
        {"5.0.dev0", true}, {"5.0rc1", true}, {"5.0a2", true}, {"4.57.dev0", false}, {"5.1rc1", false},
        {"5.0.0.post1", false}, {"5.0.1rc1", false}, {"5.1.0.dev0", false}, {"3.99.99", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (engine_pretokenizer(cases[i].version) !=
            (cases[i].patched ? PRETOKENIZER_PATCHED : PRETOKENIZER_NATIVE)) {
            fail_msg("transformers_version %s", cases[i].version);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failures_end_whom_they_concern),
        cmocka_unit_test(the_first_failure_of_a_device_stays),
        cmocka_unit_test(what_a_damaged_file_gave_reaches_nobody),
        cmocka_unit_test(lanes_are_taken_and_given_back),
        cmocka_unit_test(without_its_lane_a_stream_has_no_sound),
        cmocka_unit_test(a_lane_is_told_its_settings),
        cmocka_unit_test(the_vocoder_hears_the_recording),
        cmocka_unit_test(the_device_is_told_how_many_lanes),
        cmocka_unit_test(named_heads_are_watched),
        cmocka_unit_test(a_tokenizer_fits_into_the_table),
        cmocka_unit_test(versions_decide_over_the_pattern),
    };
    return cmocka_run_group_tests_name("lanes", tests, NULL, NULL);
}
