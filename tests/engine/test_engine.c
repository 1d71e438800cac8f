/* SPDX-License-Identifier: Apache-2.0
 * What the engine decides by itself, and the codec alone. */
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/api.h"

static void the_official_pattern_follows_the_version(void **state)
{
    static const struct {
        const char *version;
        enum pretokenizer pattern;
    } cases[] = {
        {NULL, PRETOKENIZER_PATCHED},
        {"4.50.0", PRETOKENIZER_NATIVE},
        {"4.57.2", PRETOKENIZER_NATIVE},
        {"4.57.3", PRETOKENIZER_PATCHED},
        {"4.57.6", PRETOKENIZER_PATCHED},
        {"4.58.0", PRETOKENIZER_PATCHED},
        {"4.58.0.dev0", PRETOKENIZER_PATCHED},
        {"5.0.0rc1", PRETOKENIZER_PATCHED},
        {"5.0.0", PRETOKENIZER_NATIVE},
        {"5.1.0", PRETOKENIZER_NATIVE},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (engine_pretokenizer(cases[i].version) != cases[i].pattern) {
            fail_msg("transformers_version %s", cases[i].version ? cases[i].version : "missing");
        }
    }
}

static utter_status refuse(struct backend **b, const struct model *model,
    const struct backend_options *options, utter_error *error)
{
    (void)b;
    (void)model;
    (void)options;
    return error_set(error, UTTER_E_DEVICE, "no device");
}

/* The device is asked once there is room for all that the lanes need: the last allocations before it, each in turn. */
static void without_room_no_device_is_asked(void **state)
{
    enum { NEEDED = 5 };
    struct backend_ops ops = cpu_backend;
    struct engine_options o = {.ops = &ops, .backend = {.n_lanes = 2, .n_threads = 1}};
    struct engine engine = {0};
    (void)state;
    ops.open = refuse;
    long n = 0;
    for (int i = 0; i < 2; i++) { /* what is made once is there the second time */
        n = -support_calls(SUPPORT_MALLOC);
        assert_int_equal(
            engine_open(&engine, "build/checkpoints/tiny17-custom_voice", &o, NULL), UTTER_E_DEVICE);
        n += support_calls(SUPPORT_MALLOC);
    }
    for (int i = 0; i < NEEDED; i++) {
        support_fail_at(SUPPORT_MALLOC, n - i);
        assert_int_equal(
            engine_open(&engine, "build/checkpoints/tiny17-custom_voice", &o, NULL), UTTER_E_MEMORY);
        assert_true(support_failed());
        support_fail_off();
    }
}

struct sound {
    float pcm[400 * 1920];
    size_t n;
};

static bool keep(void *user, const float *pcm, size_t n)
{
    struct sound *s = user;
    memcpy(s->pcm + s->n, pcm, n * sizeof *pcm);
    s->n += n;
    return true;
}

static utter_model *open_tiny(const char *path)
{
    utter_model *model;
    assert_int_equal(utter_model_open(&model, path, NULL, NULL), UTTER_OK);
    return model;
}

static int32_t *some_codes(int n_frames)
{
    int32_t *codes = malloc((size_t)n_frames * 16 * sizeof *codes);
    uint32_t x = 1;
    for (int i = 0; i < n_frames * 16; i++) {
        x = x * 1664525u + 1013904223u;
        codes[i] = (int32_t)(x >> 26);
    }
    return codes;
}

static void any_chunking_gives_the_same_samples(void **state)
{
    enum { FRAMES = SUPPORT_SANITIZED ? 40 : 90 };
    utter_model *model = open_tiny("build/checkpoints/tiny17-custom_voice");
    struct sound *whole = calloc(1, sizeof *whole), *other = calloc(1, sizeof *other);
    int32_t *codes = some_codes(FRAMES);
    static const int chunks[] = {1, 2, 3, 7, 25, 32};
    (void)state;
    assert_int_equal(
        utter_codec_decode(model, codes, FRAMES, UTTER_CODEC_WHOLE, 0, keep, whole, NULL), UTTER_OK);
    assert_int_equal(whole->n, FRAMES * 1920);
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
        other->n = 0;
        assert_int_equal(
            utter_codec_decode(model, codes, FRAMES, UTTER_CODEC_WHOLE, chunks[i], keep, other, NULL),
            UTTER_OK);
        assert_int_equal(other->n, whole->n);
        assert_memory_equal(other->pcm, whole->pcm, whole->n * sizeof *whole->pcm);
    }
    free(codes);
    free(whole);
    free(other);
    utter_model_close(&model);
}

static void the_official_rule_cuts_after_300_frames(void **state)
{
    enum { FRAMES = 330 };
    utter_model *model = open_tiny("build/checkpoints/tiny17-custom_voice");
    struct sound *whole = calloc(1, sizeof *whole), *cut = calloc(1, sizeof *cut);
    int32_t *codes = some_codes(FRAMES);
    (void)state;
    assert_int_equal(
        utter_codec_decode(model, codes, FRAMES, UTTER_CODEC_WHOLE, 0, keep, whole, NULL), UTTER_OK);
    assert_int_equal(
        utter_codec_decode(model, codes, FRAMES, UTTER_CODEC_OFFICIAL_CHUNKS, 0, keep, cut, NULL),
        UTTER_OK);
    assert_int_equal(cut->n, whole->n);
    assert_memory_equal(cut->pcm, whole->pcm, (size_t)300 * 1920 * sizeof *cut->pcm);
    assert_memory_not_equal(cut->pcm + (size_t)300 * 1920, whole->pcm + (size_t)300 * 1920,
        (size_t)30 * 1920 * sizeof *cut->pcm);
    free(codes);
    free(whole);
    free(cut);
    utter_model_close(&model);
}

static bool stop_at_once(void *user, const float *pcm, size_t n)
{
    (void)pcm;
    *(size_t *)user += n;
    return false;
}

static void codec_refusals(void **state)
{
    utter_model *model = open_tiny("build/checkpoints/tiny17-custom_voice");
    int32_t *codes = some_codes(4);
    utter_error error;
    size_t n = 0;
    (void)state;
    codes[17] = 64;
    assert_int_equal(
        utter_codec_decode(model, codes, 4, UTTER_CODEC_WHOLE, 0, stop_at_once, &n, &error),
        UTTER_E_ARGUMENT);
    assert_string_equal(error.text, "frame 1, codebook 1: code 64 is not in 0..63");
    codes[17] = -1;
    assert_int_equal(
        utter_codec_decode(model, codes, 4, UTTER_CODEC_WHOLE, 0, stop_at_once, &n, &error),
        UTTER_E_ARGUMENT);
    codes[17] = 1;
    assert_int_equal(
        utter_codec_decode(model, codes, 4, UTTER_CODEC_WHOLE, 33, stop_at_once, &n, &error),
        UTTER_E_ARGUMENT);
    assert_int_equal(n, 0);
    assert_int_equal(
        utter_codec_decode(model, codes, 4, UTTER_CODEC_WHOLE, 1, stop_at_once, &n, &error),
        UTTER_E_CANCELLED);
    assert_int_equal(n, 1920);
    free(codes);
    utter_model_close(&model);
}

/* A model file that shrinks while it is mapped ends every later call with a status. */
static void a_file_that_shrinks_is_an_error(void **state)
{
    char command[512], path[512];
    const char *folder = support_path("shrinks");
    utter_stream *stream;
    utter_error error;
    static float pcm[1920];
    size_t n;
    (void)state;
    snprintf(command, sizeof command, "cp -r build/checkpoints/tiny17-custom_voice %s", folder);
    assert_int_equal(system(command), 0);
    utter_model *model = open_tiny(folder);
    assert_int_equal(utter_stream_open(&stream, model, NULL, &error), UTTER_OK);
    assert_int_equal(utter_stream_text(stream, "Hello", 5, &error), UTTER_OK);
    assert_int_equal(utter_stream_finish(stream, &error), UTTER_OK);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    assert_int_equal(truncate(path, 8192), 0);
    for (int i = 0; i < 3; i++) { /* what the zeros in its place would give is never heard */
        assert_int_equal(utter_stream_read(stream, pcm, 1920, &n, &error), UTTER_E_FILE);
        assert_non_null(strstr(error.text, "shrunk"));
    }
    utter_stream_free(&stream);
    assert_int_equal(utter_stream_open(&stream, model, NULL, &error), UTTER_E_FILE);
    utter_model_close(&model);
}

/* A backend that says it has waited a second for each collect. */
static struct {
    const struct backend_ops *ops;
    int n_collected;
} slow;

static utter_status collect_slowly(
    struct backend *b, int lane, struct lane_out *out, utter_error *error)
{
    utter_status status = slow.ops->collect(b, lane, out, error);
    slow.n_collected++;
    out->wait_s = 1;
    return status;
}

/* A device that only queues would make others wait for all pieces of a prompt at once. */
static void each_piece_of_a_prompt_is_waited_for(void **state)
{
    static const char TEXT[] =
        "One fox, two dogs and three geese went to the river, and on the way they met "
        "a heron who knew a better place, far behind the hills.";
    utter_model_options o;
    utter_stream_options speech;
    utter_stream_stats stats = {.size = sizeof stats};
    utter_model *model;
    utter_stream *stream;
    utter_error error;
    int n_steps = 0;
    (void)state;
    utter_model_options_init(&o);
    o.prompt_seconds = 1e-9; /* the smallest pieces */
    assert_int_equal(utter_model_open(&model, "build/checkpoints/tiny17-custom_voice", &o, &error), 0);
    slow.ops = model->engine.context.ops;
    struct backend_ops ops = *model->engine.context.ops;
    ops.collect = collect_slowly;
    model->engine.context.ops = &ops;
    assert_int_equal(utter_stream_options_init(&speech, model), UTTER_OK);
    speech.layout = UTTER_LAYOUT_FULL;
    assert_int_equal(utter_stream_open(&stream, model, &speech, &error), UTTER_OK);
    assert_int_equal(utter_stream_text(stream, TEXT, sizeof TEXT - 1, &error), UTTER_OK);
    assert_int_equal(utter_stream_finish(stream, &error), UTTER_OK);
    while (stats.n_frames == 0) {
        assert_int_equal(utter_model_step(model, &error), UTTER_OK);
        assert_int_equal(utter_stream_get_stats(stream, &stats), UTTER_OK);
        assert_int_equal(slow.n_collected, ++n_steps); /* a piece; with the last one, the frame */
        assert_true(stats.wait_s == n_steps);
    }
    assert_in_range(n_steps, 3, 100);
    utter_stream_free(&stream);
    model->engine.context.ops = slow.ops;
    utter_model_close(&model);
}

static int n_resets;

static utter_status count_reset(
    struct backend *b, int lane, const struct lane_settings *settings, utter_error *error)
{
    n_resets++;
    return slow.ops->lane_reset(b, lane, settings, error);
}

/* What a lane held others may need: it is emptied when its stream is freed, not only when the next one comes. */
static void a_freed_stream_gives_back_its_lane(void **state)
{
    utter_model_options o;
    utter_stream_options speech;
    utter_model *model;
    utter_stream *stream;
    utter_error error;
    (void)state;
    utter_model_options_init(&o);
    assert_int_equal(utter_model_open(&model, "build/checkpoints/tiny17-custom_voice", &o, &error), 0);
    slow.ops = model->engine.context.ops;
    struct backend_ops ops = *model->engine.context.ops;
    ops.lane_reset = count_reset;
    model->engine.context.ops = &ops;
    assert_int_equal(utter_stream_options_init(&speech, model), UTTER_OK);
    for (int i = 1; i <= 2; i++) {
        assert_int_equal(utter_stream_open(&stream, model, &speech, &error), UTTER_OK);
        assert_int_equal(n_resets, 2 * i - 1);
        utter_stream_free(&stream);
        assert_int_equal(n_resets, 2 * i);
    }
    model->engine.context.ops = slow.ops;
    utter_model_close(&model);
}

/* Asked for by name, bf16 leaves what is stored and halves what the vocoder reads. */
static void bf16_halves_the_vocoder(void **state)
{
    utter_model_info stored = {.size = sizeof stored}, halved = stored;
    utter_model_options o;
    utter_model *model;
    (void)state;
    utter_model_options_init(&o);
    o.device = "cpu";
    for (int i = 0; i < 2; i++) {
        o.weights = i ? UTTER_WEIGHTS_BF16 : UTTER_WEIGHTS_STORED;
        assert_int_equal(
            utter_model_open(&model, "build/checkpoints/tiny17-custom_voice", &o, NULL), 0);
        assert_int_equal(utter_model_get_info(model, i ? &halved : &stored), UTTER_OK);
        utter_model_close(&model);
    }
    assert_string_equal(halved.weights, stored.weights);
    assert_int_equal(halved.talker_frame_bytes, stored.talker_frame_bytes);
    assert_int_equal(halved.predictor_frame_bytes, stored.predictor_frame_bytes);
    assert_int_equal(2 * halved.vocoder_frame_bytes, stored.vocoder_frame_bytes);
    assert_int_equal(stored.frame_bytes,
        stored.talker_frame_bytes + stored.predictor_frame_bytes + stored.vocoder_frame_bytes);
    o.weights = (utter_weights)(UTTER_WEIGHTS_BF16 + 1);
    assert_int_equal(
        utter_model_open(&model, "build/checkpoints/tiny17-custom_voice", &o, NULL), UTTER_E_ARGUMENT);
}

/* A head that follows nothing: the guard ends the speech on the same frame whether its sound comes at once, or that of
 * several frames together. */
static void what_the_guard_follows_ends_on_one_frame(void **state)
{
    utter_stream_stats stats[2] = {{.size = sizeof *stats}, {.size = sizeof *stats}};
    (void)state;
    for (int together = 0; together < 2; together++) {
        utter_model *model = open_tiny("build/checkpoints/tiny17-custom_voice");
        struct stream_context *m = &model->engine.context;
        m->heads = (struct heads){.at = {{0, 0}}, .n = 1};
        assert_int_equal(m->ops->watch(m->backend, m->heads.at, m->heads.n, NULL), UTTER_OK);
        utter_stream_options o;
        utter_stream *stream;
        utter_stream_options_init(&o, model);
        o.words = true;
        o.max_frames = 350;
        assert_int_equal(utter_stream_open(&stream, model, &o, NULL), UTTER_OK);
        assert_int_equal(utter_stream_text(stream, "Hello there, friend.", 20, NULL), UTTER_OK);
        assert_int_equal(utter_stream_finish(stream, NULL), UTTER_OK);
        float pcm[1920];
        size_t n;
        utter_status status = UTTER_OK;
        while (status != UTTER_END) {
            status = together ? utter_model_step_together(model, NULL) : utter_model_step(model, NULL);
            assert_true(status >= 0);
            do {
                status = utter_stream_take(stream, pcm, 1920, &n, NULL);
            } while (status == UTTER_OK);
        }
        utter_stream_get_stats(stream, &stats[together]);
        utter_stream_free(&stream);
        utter_model_close(&model);
    }
    assert_true(stats[0].finish == UTTER_FINISH_SAID || stats[0].finish == UTTER_FINISH_STUCK);
    assert_int_equal(stats[1].finish, stats[0].finish);
    assert_int_equal(stats[1].n_frames, stats[0].n_frames);
}

/* Streams that are freed before they speak do not end the search for heads. */
static void what_did_not_speak_teaches_nothing(void **state)
{
    utter_model *model = open_tiny("build/checkpoints/tiny17-custom_voice");
    utter_stream_options o;
    (void)state;
    utter_stream_options_init(&o, model);
    o.words = true;
    for (int i = 0; i <= LEARN_MOST_UTTERANCES; i++) {
        utter_stream *stream;
        assert_int_equal(utter_stream_open(&stream, model, &o, NULL), UTTER_OK);
        assert_ptr_equal(model->engine.context.learning.by, stream);
        utter_stream_free(&stream);
    }
    assert_false(model->engine.context.learning.over);
    utter_model_close(&model);
}

/* From too little no other run is to learn that no head follows the text. */
static void what_tells_too_little_is_not_kept(void **state)
{
    char folder[] = "/tmp/utter-heads-XXXXXX";
    const char *text = "Hi.", *none[] = {text, NULL};
    utter_model *model;
    utter_model_options o;
    utter_head *heads;
    size_t n;
    (void)state;
    assert_non_null(mkdtemp(folder));
    utter_model_options_init(&o);
    o.cache = folder;
    assert_int_equal(utter_model_open(&model, "build/checkpoints/tiny17-custom_voice", &o, NULL), 0);
    utter_stream_options voice;
    utter_stream_options_init(&voice, model);
    voice.max_frames = 20;
    assert_int_equal(
        utter_model_align_heads(model, &voice, none, 2, NULL, &heads, &n, NULL), UTTER_E_ARGUMENT);
    assert_int_equal(utter_model_align_heads(model, &voice, &text, 1, NULL, &heads, &n, NULL), 0);
    assert_true(n > 0 && !heads[0].follows);
    utter_memory_free(heads);
    utter_model_close(&model);
    assert_int_equal(rmdir(folder), 0); /* it is empty */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_official_pattern_follows_the_version),
        cmocka_unit_test(without_room_no_device_is_asked),
        cmocka_unit_test(any_chunking_gives_the_same_samples),
        cmocka_unit_test(the_official_rule_cuts_after_300_frames),
        cmocka_unit_test(codec_refusals),
        cmocka_unit_test(a_file_that_shrinks_is_an_error),
        cmocka_unit_test(each_piece_of_a_prompt_is_waited_for),
        cmocka_unit_test(a_freed_stream_gives_back_its_lane),
        cmocka_unit_test(bf16_halves_the_vocoder),
        cmocka_unit_test(what_the_guard_follows_ends_on_one_frame),
        cmocka_unit_test(what_did_not_speak_teaches_nothing),
        cmocka_unit_test(what_tells_too_little_is_not_kept),
    };
    return cmocka_run_group_tests_name("engine", tests, NULL, NULL);
}
