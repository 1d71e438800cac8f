/* SPDX-License-Identifier: Apache-2.0
 * Each call of utter.h refuses what it says it refuses, to the last number that it takes, and leaves the caller's
 * handles as it says; structs of other sizes; what a model tells of itself. */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"

#define MODEL "build/checkpoints/tiny17-custom_voice"
#define BASE "build/checkpoints/tiny06-base"

static utter_model *open_model(const char *path, int n_lanes)
{
    utter_model *model;
    utter_error error = {.text = ""};
    utter_model_options o;
    utter_model_options_init(&o);
    o.n_threads = 1;
    o.n_lanes = n_lanes;
    o.device = "cpu";
    utter_model_open(&model, path, &o, &error);
    assert_string_equal(error.text, "");
    return model;
}

/* The call fails so, with this in its reason. */
#define REFUSED(call, wanted, word)                                                                    \
    do {                                                                                               \
        error = (utter_error){.text = ""};                                                             \
        assert_int_equal(call, wanted);                                                                \
        if (!strstr(error.text, word) || !error.text[0]) {                                             \
            fail_msg("\"%s\" is not in: %s", word, error.text);                                        \
        }                                                                                              \
    } while (0)

/* ---- Names and sizes ---- */

static void every_status_and_end_has_a_name(void **state)
{
    (void)state;
    static const char *const statuses[] = {"internal error", "cancelled", "not a number",
        "device error", "write error", "out of memory", "model error", "file error", "wrong argument",
        "ok", "again", "end"};
    for (int i = 0; i < 12; i++) {
        assert_string_equal(utter_status_text((utter_status)(i - 9)), statuses[i]);
    }
    assert_string_equal(utter_status_text((utter_status)3), "unknown status");
    assert_string_equal(utter_status_text((utter_status)-10), "unknown status");
    static const char *const finishes[] = {"none", "eos", "max_frames", "context", "ceiling", "loop",
        "silence", "cancelled", "error", "said", "stuck", "unknown"};
    for (int i = 0; i < 12; i++) {
        assert_string_equal(utter_finish_text((utter_finish)i), finishes[i]);
    }
    assert_string_equal(utter_finish_text((utter_finish)-1), "unknown");
    char text[32];
    snprintf(
        text, sizeof text, "%d.%d.%d", UTTER_VERSION_MAJOR, UTTER_VERSION_MINOR, UTTER_VERSION_PATCH);
    assert_string_equal(utter_version_text(), text);
    assert_int_equal(utter_version_number(),
        UTTER_VERSION_MAJOR * 1000000 + UTTER_VERSION_MINOR * 1000 + UTTER_VERSION_PATCH);
}

/* A caller of another version has a longer or a shorter struct: what both know is filled, and nothing behind it. */
static void structs_may_have_another_size(void **state)
{
    (void)state;
    unsigned char place[2 * sizeof(utter_clone_options)];
    utter_clone_options whole;
    utter_clone_options_init(&whole);
    assert_true(
        whole.size == sizeof whole && whole.max_seconds == 120 && !whole.name && !whole.progress);
    static const size_t sizes[] = {
        0, sizeof(size_t) - 1, sizeof(size_t), 40, sizeof whole, sizeof whole + 8, 2 * sizeof whole};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const size_t size = sizes[i] < sizeof(size_t) ? 0 : sizes[i];
        memset(place, 0xee, sizeof place);
        utter_clone_options_init_sized((utter_clone_options *)place, sizes[i]);
        for (size_t k = 0; k < sizeof place; k++) {
            const unsigned char known = k < sizeof whole ? ((unsigned char *)&whole)[k] : 0;
            const unsigned char wanted = k < sizeof size ? ((const unsigned char *)&size)[k] : known;
            assert_int_equal(place[k], k < size ? wanted : 0xee);
        }
    }
    utter_clone_options_init_sized(NULL, sizeof whole);
    /* Of a size that no struct has nothing is taken. */
    static const size_t wrong[] = {0, sizeof(size_t) - 1, (1 << 16) + 1};
    unsigned char *large = calloc(1, (1 << 16) + 1);
    utter_error error;
    for (int i = 0; i < 3; i++) {
        REFUSED(api_copy_sized(place, sizeof place, large, wrong[i], "x", &error), UTTER_E_ARGUMENT,
            "x: its size is not set (fill it with the _init call)");
        REFUSED(
            api_copy_sized(large, wrong[i], place, sizeof place, "x", &error), UTTER_E_ARGUMENT, "x: ");
    }
    memset(place, 7, sizeof place);
    assert_int_equal(api_copy_sized(place, sizeof place, large, 1 << 16, "x", NULL), UTTER_OK);
    assert_int_equal(api_copy_sized(large, 1 << 16, place, sizeof place, "x", NULL), UTTER_OK);
    memset(place, 7, sizeof place);
    assert_int_equal(api_copy_sized(place, sizeof place, large, 8, "x", NULL), UTTER_OK);
    assert_true(place[7] == 0 && place[8] == 7);
    api_init_sized(large, 1 << 16, &whole, sizeof whole);
    assert_true(*(size_t *)large == 1 << 16);
    memset(large, 0xee, 8);
    api_init_sized(large, (1 << 16) + 1, &whole, sizeof whole);
    assert_int_equal(large[0], 0xee);
    free(large);
}

static void defaults_are_as_told(void **state)
{
    (void)state;
    utter_model_options m;
    utter_reading_options r;
    utter_design_options d;
    utter_stream_options s;
    utter_model_options_init(&m);
    assert_string_equal(m.device, "auto");
    assert_true(
        m.n_lanes == 1 && m.n_threads == 0 && m.snapshot_bytes == 256 << 20 && m.prompt_seconds == 0);
    assert_true(
        m.weights == UTTER_WEIGHTS_STORED && m.pretokenizer == UTTER_PRETOKENIZER_OFFICIAL && !m.cache);
    utter_reading_options_init(&r);
    assert_true(r.retries == 2 && r.live && r.lanes == 1 && r.max_frames == 0 && r.piece_length == 0);
    assert_true(r.clause_pause_s == 0.15 && r.sentence_pause_s == 0.35 && r.paragraph_pause_s == 0.7);
    assert_true(r.markup == UTTER_MARKUP_NONE && !r.carry && !r.spell_out && !r.find_voice);
    utter_design_options_init(&d);
    assert_true(d.size == sizeof d && !d.name && !d.text && d.seed == 0);
    utter_model *model = open_model(MODEL, 1);
    assert_int_equal(utter_stream_options_init(&s, model), UTTER_OK);
    assert_true(
        s.size == sizeof s && s.max_frames == 8191 && s.guard && !s.words && s.seed == 0 && !s.voice);
    assert_true(
        s.talker.top_k == 50 && s.talker.repetition_penalty == 1.05f && s.talker.temperature == 0.9f);
    assert_true(s.predictor.top_k == 50 && s.predictor.top_p == 1 && s.layout == UTTER_LAYOUT_AUTO);
    assert_int_equal(utter_stream_options_init(&s, NULL), UTTER_E_ARGUMENT);
    assert_int_equal(utter_stream_options_init(NULL, model), UTTER_E_ARGUMENT);
    static const int most[][2] = {{2, 1}, {3, 2}, {1, 1}, {0, 1}};
    for (int i = 0; i < 4; i++) { /* the last token of the official package becomes no frame */
        ((struct config *)api_config(model))->max_new_tokens = most[i][0];
        assert_int_equal(utter_stream_options_init(&s, model), UTTER_OK);
        assert_int_equal(s.max_frames, most[i][1]);
    }
    utter_model_close(&model);
}

/* ---- Models ---- */

static void model_options_have_bounds(void **state)
{
    (void)state;
    utter_model *model = (utter_model *)1;
    utter_error error;
    /* What is in range is refused for its device, which is looked at last. */
    static const struct {
        int n_threads, n_lanes, pretokenizer, weights;
        double prompt_seconds;
        const char *said;
    } cases[] = {
        {0, 0, 0, 0, 0, "unknown device \"gpu\" (known: auto, cpu, cuda, cuda:N)"},
        {1024, 4096, 1, 4, 1e9, "unknown device \"gpu\""},
        {1025, 1, 0, 0, 0, "n_threads 1025 is not in 0..1024"},
        {-1, 1, 0, 0, 0, "n_threads -1 is not in 0..1024"},
        {1, 4097, 0, 0, 0, "n_lanes 4097 is not in 0..4096"},
        {1, -1, 0, 0, 0, "n_lanes -1 is not in 0..4096"},
        {1, 1, 2, 0, 0, "pretokenizer 2 is not in 0..1"},
        {1, 1, -1, 0, 0, "pretokenizer -1 is not in 0..1"},
        {1, 1, 0, 5, 0, "weights 5 is not in 0..4"},
        {1, 1, 0, -1, 0, "weights -1 is not in 0..4"},
        {1, 1, 0, 0, -0.5, "prompt_seconds -0.5 is not at least 0"},
        {1, 1, 0, 0, NAN, "prompt_seconds nan is not at least 0"},
    };
    utter_model_options o;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        utter_model_options_init(&o);
        o.device = "gpu";
        o.n_threads = cases[i].n_threads;
        o.n_lanes = cases[i].n_lanes;
        o.pretokenizer = (utter_pretokenizer)cases[i].pretokenizer;
        o.weights = (utter_weights)cases[i].weights;
        o.prompt_seconds = cases[i].prompt_seconds;
        model = (utter_model *)1;
        REFUSED(utter_model_open(&model, MODEL, &o, &error), UTTER_E_ARGUMENT, cases[i].said);
        assert_null(model);
    }
    o.size = 0;
    REFUSED(
        utter_model_open(&model, MODEL, &o, &error), UTTER_E_ARGUMENT, "utter_model_options: its size");
    REFUSED(utter_model_open(NULL, MODEL, NULL, &error), UTTER_E_ARGUMENT, "model is NULL");
    utter_model_close(NULL);
    utter_model_close(&model);
}

static void devices_have_names(void **state)
{
    (void)state;
    static const char *const unknown[] = {"", "CPU", "cpu0", "cpu:0", "cuda:", "cuda:x", "cuda:-1",
        "cuda:1x", "cuda:1234", "cuda0", "cuda: 1", "cud", "cuda as", "cuda:0as x", "cuda:/",
        "cuda::", "auto "};
    static const char *const gpus[] = {
        "cuda", "cuda:0", "cuda:9", "cuda:12", "cuda:999", "cuda as x", "cuda:9 as x"};
    utter_error error;
    utter_model *model;
    utter_model_options o;
    utter_model_options_init(&o);
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        o.device = unknown[i];
        REFUSED(utter_model_open(&model, "/nowhere", &o, &error), UTTER_E_ARGUMENT, "unknown device");
    }
    for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++) { /* no such model, or no such GPU */
        o.device = gpus[i];
        const utter_status status = utter_model_open(&model, "/nowhere", &o, &error);
        assert_true(status == UTTER_E_DEVICE || status == UTTER_E_FILE);
    }
    static const char *const others[] = {"auto", "cpu", NULL};
    for (int i = 0; i < 3; i++) {
        o.device = others[i];
        REFUSED(utter_model_open(&model, "/nowhere", &o, &error), UTTER_E_FILE, "/nowhere");
    }
    o.device = "auto";
    o.cpu_kernels = "none";
    REFUSED(utter_model_open(&model, MODEL, &o, &error), UTTER_E_ARGUMENT, "none");
}

static void packing_has_bounds(void **state)
{
    (void)state;
    utter_error error;
    const char *file = support_path("packed");
    static const int weights[] = {-1, 0, 3, 4};
    for (int i = 0; i < 4; i++) {
        char said[64];
        snprintf(said, sizeof said, "weights %d is not in 1..2", weights[i]);
        REFUSED(utter_model_quantize(MODEL, (utter_weights)weights[i], file, &error), UTTER_E_ARGUMENT,
            said);
    }
    REFUSED(
        utter_model_quantize(MODEL, UTTER_WEIGHTS_Q8, NULL, &error), UTTER_E_ARGUMENT, "file is NULL");
    REFUSED(utter_model_quantize("/nowhere", UTTER_WEIGHTS_Q8, file, &error), UTTER_E_FILE, "/nowhere");
    uint64_t bytes[2];
    for (int i = 0; i < 2; i++) {
        utter_model *model;
        utter_model_info info = {.size = sizeof info};
        assert_int_equal(
            utter_model_quantize(MODEL, i ? UTTER_WEIGHTS_Q4 : UTTER_WEIGHTS_Q8, file, &error),
            UTTER_OK);
        model = open_model(file, 1);
        assert_int_equal(utter_model_get_info(model, &info), UTTER_OK);
        assert_string_equal(info.weights, i ? "q4" : "q8");
        bytes[i] = info.file_bytes;
        size_t n;
        free(support_read_file(file, &n));
        assert_true(info.file_bytes <= n && info.file_bytes > n / 2); /* once, not for each part */
        utter_model_close(&model);
    }
    assert_true(bytes[1] < bytes[0]);
}

/* Of a checkpoint whose config is known. */
static void a_model_tells_what_it_is(void **state)
{
    (void)state;
    utter_model *model = open_model(MODEL, 3);
    utter_model_info info = {.size = sizeof info};
    assert_int_equal(utter_model_get_info(model, &info), UTTER_OK);
    assert_int_equal(info.size, sizeof info);
    assert_int_equal(info.kind, UTTER_MODEL_CUSTOM_VOICE);
    assert_string_equal(info.kind_name, "custom_voice");
    assert_string_equal(info.size_name, "1b7");
    assert_string_equal(info.device, "cpu");
    assert_true(info.takes_instructions);
    assert_true(info.sample_rate == 24000 && info.frame_samples == 1920 && info.n_codebooks == 16);
    assert_true(info.codebook_size == 64 && info.n_threads == 1 && info.n_lanes == 3);
    assert_true(info.n_voices == 9 && info.n_languages == 10); /* dialects are none */
    assert_true(info.width == 96 && info.n_layers == 2 && info.predictor_width == 64 &&
                info.predictor_layers == 2);
    assert_true(info.max_positions == 32768 && info.n_snapshots == 0 && info.snapshot_bytes == 0);
    assert_true(info.all_parameters >=
                info.talker_parameters + info.predictor_parameters + info.vocoder_parameters);
    assert_true(
        info.talker_parameters > 0 && info.predictor_parameters > 0 && info.vocoder_parameters > 0);
    assert_int_equal(info.frame_bytes,
        info.talker_frame_bytes + info.predictor_frame_bytes + info.vocoder_frame_bytes);
    struct backend_memory memory = {.lane_bytes = 0};
    cpu_backend.memory(model->engine.context.backend, &memory);
    assert_int_equal(info.memory_bytes, memory.shared_bytes + 3 * memory.lane_bytes);
    size_t bytes = 0, n;
    free(support_read_file(MODEL "/model.safetensors", &n));
    bytes += n;
    free(support_read_file(MODEL "/speech_tokenizer/model.safetensors", &n));
    bytes += n;
    assert_true(
        info.file_bytes <= bytes && info.file_bytes + (bytes - info.file_bytes) < 2 * info.file_bytes);
    assert_int_equal(utter_model_get_info(model, NULL), UTTER_E_ARGUMENT);
    assert_int_equal(utter_model_get_info(NULL, &info), UTTER_E_ARGUMENT);
    info.size = 0;
    assert_int_equal(utter_model_get_info(model, &info), UTTER_E_ARGUMENT);
    utter_model_close(&model);
    assert_null(model);
}

static void voices_and_languages_have_names(void **state)
{
    (void)state;
    utter_model *model = open_model(MODEL, 1);
    static const char *const languages[] = {"chinese", "english", "german", "italian", "portuguese",
        "spanish", "japanese", "korean", "french", "russian"};
    for (int i = 0; i < 10; i++) {
        assert_string_equal(utter_model_language_name(model, i), languages[i]);
    }
    static const char *const voices[] = {
        "serena", "vivian", "uncle_fu", "ryan", "aiden", "ono_anna", "sohee", "eric", "dylan"};
    for (int i = 0; i < 9; i++) {
        assert_string_equal(utter_model_voice_name(model, i), voices[i]);
        const char *dialect = utter_model_voice_dialect(model, i);
        assert_true(i < 7 ? !dialect : dialect != NULL);
        assert_true(i < 7 || strcmp(dialect, i == 7 ? "sichuan_dialect" : "beijing_dialect") == 0);
    }
    static const int outside[] = {-1, 9, 10, 12};
    for (int i = 0; i < 4; i++) {
        assert_null(utter_model_voice_name(model, outside[i]));
        assert_null(utter_model_voice_dialect(model, outside[i]));
        assert_true((utter_model_language_name(model, outside[i]) != NULL) == (outside[i] == 9));
    }
    assert_null(utter_model_voice_name(NULL, 0));
    assert_null(utter_model_voice_dialect(NULL, 0));
    assert_null(utter_model_language_name(NULL, 0));
    utter_model_close(&model);
}

static void tokens_are_the_callers(void **state)
{
    (void)state;
    utter_model *model = open_model(MODEL, 1);
    utter_error error;
    int32_t *ids = (int32_t *)1;
    size_t n = 9;
    assert_int_equal(utter_model_tokenize(model, "", 0, &ids, &n, NULL), UTTER_OK);
    assert_true(ids && n == 0);
    utter_memory_free(ids);
    assert_int_equal(utter_model_tokenize(model, "Hello there", 5, &ids, &n, NULL), UTTER_OK);
    assert_true(ids && n > 0);
    utter_memory_free(ids);
    REFUSED(
        utter_model_tokenize(NULL, "a", 1, &ids, &n, &error), UTTER_E_ARGUMENT, "an argument is NULL");
    REFUSED(utter_model_tokenize(model, NULL, 1, &ids, &n, &error), UTTER_E_ARGUMENT,
        "an argument is NULL");
    REFUSED(
        utter_model_tokenize(model, "a", 1, NULL, &n, &error), UTTER_E_ARGUMENT, "an argument is NULL");
    REFUSED(utter_model_tokenize(model, "a", 1, &ids, NULL, &error), UTTER_E_ARGUMENT,
        "an argument is NULL");
    REFUSED(utter_model_tokenize(model, "a\xff", 2, &ids, &n, &error), UTTER_E_ARGUMENT, "UTF-8");
    assert_true(!ids && n == 0);
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, k)
    {
        const utter_status status = utter_model_tokenize(model, "", 0, &ids, &n, &error);
        assert_int_equal(status, support_failed() ? UTTER_E_MEMORY : UTTER_OK);
        assert_true((status == UTTER_OK) == (ids != NULL));
        utter_memory_free(ids);
    }
    REFUSED(utter_model_step(NULL, &error), UTTER_E_ARGUMENT, "model is NULL");
    REFUSED(utter_model_step_together(NULL, &error), UTTER_E_ARGUMENT, "model is NULL");
    assert_int_equal(utter_model_step(model, &error), UTTER_AGAIN);
    assert_int_equal(utter_model_step_together(model, &error), UTTER_AGAIN);
    utter_model_close(&model);
}

/* ---- Streams ---- */

static bool take_some(void *user, const float *pcm, size_t n)
{
    size_t *left = user; /* samples that are wanted */
    assert_non_null(pcm);
    assert_true(n > 0 && n <= 1920);
    *left = *left > n ? *left - n : 0;
    return *left > 0;
}

static void streams_need_their_arguments(void **state)
{
    (void)state;
    utter_model *model = open_model(MODEL, 1);
    utter_error error;
    utter_stream *stream = (utter_stream *)1, *none = NULL;
    float pcm[1920];
    size_t n = 5;
    utter_stream_options o;
    utter_stream_options_init(&o, model);
    o.size = 0;
    REFUSED(utter_stream_open(NULL, model, NULL, &error), UTTER_E_ARGUMENT, "stream or model is NULL");
    REFUSED(
        utter_stream_open(&stream, NULL, NULL, &error), UTTER_E_ARGUMENT, "stream or model is NULL");
    REFUSED(utter_stream_open(&stream, model, &o, &error), UTTER_E_ARGUMENT,
        "utter_stream_options: its size");
    assert_null(stream);
    utter_stream_options_init(&o, model);
    o.max_frames = 3;
    assert_int_equal(utter_stream_open(&stream, model, &o, NULL), UTTER_OK);
    REFUSED(utter_stream_text(NULL, "a", 1, &error), UTTER_E_ARGUMENT, "stream or text is NULL");
    REFUSED(utter_stream_text(stream, NULL, 1, &error), UTTER_E_ARGUMENT, "stream or text is NULL");
    REFUSED(utter_stream_finish(NULL, &error), UTTER_E_ARGUMENT, "stream is NULL");
    REFUSED(utter_stream_read(NULL, pcm, 1920, &n, &error), UTTER_E_ARGUMENT, "an argument is NULL");
    REFUSED(utter_stream_read(stream, NULL, 1920, &n, &error), UTTER_E_ARGUMENT, "an argument is NULL");
    REFUSED(
        utter_stream_read(stream, pcm, 1920, NULL, &error), UTTER_E_ARGUMENT, "an argument is NULL");
    assert_int_equal(n, 5);
    REFUSED(utter_stream_take(stream, pcm, 0, &n, &error), UTTER_E_ARGUMENT,
        "no room for samples: capacity is 0");
    assert_int_equal(n, 0);
    n = 5;
    assert_int_equal(utter_stream_take(stream, pcm, 1, &n, &error), UTTER_AGAIN);
    assert_int_equal(n, 0);
    utter_stream_hold(NULL, true);
    utter_stream_cancel(NULL);
    utter_stream_free(NULL);
    utter_stream_free(&none);
    utter_stream_free(&stream);
    utter_model_close(&model);
}

static void streams_tell_what_was_made(void **state)
{
    (void)state;
    utter_model *model = open_model(MODEL, 1);
    utter_stream *stream;
    float pcm[1920];
    size_t n;
    assert_int_equal(utter_stream_open(&stream, model, NULL, NULL), UTTER_OK);
    utter_stream_stats stats = {.size = 0};
    assert_int_equal(utter_stream_get_stats(stream, &stats), UTTER_E_ARGUMENT);
    assert_int_equal(utter_stream_get_stats(stream, NULL), UTTER_E_ARGUMENT);
    stats.size = sizeof stats;
    assert_int_equal(utter_stream_get_stats(NULL, &stats), UTTER_E_ARGUMENT);
    assert_int_equal(utter_stream_get_stats(stream, &stats), UTTER_OK);
    assert_true(
        stats.size == sizeof stats && stats.finish == UTTER_FINISH_NONE && !stats.words_approximate);
    n = 5;
    assert_null(utter_stream_codes(NULL, &n));
    assert_int_equal(n, 0);
    n = 5;
    assert_non_null(utter_stream_codes(stream, &n));
    assert_int_equal(n, 0);
    assert_non_null(utter_stream_codes(stream, NULL));
    n = 5;
    assert_null(utter_stream_words(NULL, &n));
    assert_int_equal(n, 0);
    n = 5;
    assert_null(utter_stream_words(stream, &n)); /* nobody asked for them */
    assert_int_equal(n, 0);
    assert_null(utter_stream_words(stream, NULL));
    assert_int_equal(utter_stream_text(stream, "Hello.", 6, NULL), UTTER_OK);
    assert_int_equal(utter_stream_finish(stream, NULL), UTTER_OK);
    assert_int_equal(utter_stream_read(stream, pcm, 1920, &n, NULL), UTTER_OK);
    assert_int_equal(utter_stream_get_stats(stream, &stats), UTTER_OK);
    assert_true(stats.n_text_tokens > 0 && stats.n_frames >= 1);
    utter_stream_free(&stream);
    utter_model_close(&model);
}

static void one_call_says_it_all(void **state)
{
    (void)state;
    utter_model *model = open_model(MODEL, 1);
    utter_error error;
    utter_stream_options o;
    size_t wanted = 100 * 1920;
    utter_stream_options_init(&o, model);
    o.max_frames = 4;
    REFUSED(utter_say(NULL, "Hi.", &o, take_some, &wanted, &error), UTTER_E_ARGUMENT,
        "an argument is NULL");
    REFUSED(utter_say(model, NULL, &o, take_some, &wanted, &error), UTTER_E_ARGUMENT,
        "an argument is NULL");
    REFUSED(
        utter_say(model, "Hi.", &o, NULL, &wanted, &error), UTTER_E_ARGUMENT, "an argument is NULL");
    REFUSED(utter_say(model, " ", &o, take_some, &wanted, &error), UTTER_E_ARGUMENT, "");
    REFUSED(utter_say(model, "\xff", &o, take_some, &wanted, &error), UTTER_E_ARGUMENT, "UTF-8");
    assert_int_equal(wanted, 100 * 1920);
    for (o.seed = 0; wanted != 96 * 1920; o.seed++) { /* which ends at the bound */
        wanted = 100 * 1920;
        assert_true(o.seed < 50);
        assert_int_equal(utter_say(model, "Hi.", &o, take_some, &wanted, &error), UTTER_OK);
    }
    wanted = 1;
    REFUSED(utter_say(model, "Hi.", &o, take_some, &wanted, &error), UTTER_E_CANCELLED,
        "the sink asked to stop");
    assert_true(engine_is_idle(&model->engine));
    utter_stream *stream;
    assert_int_equal(utter_stream_open(&stream, model, NULL, NULL), UTTER_OK);
    REFUSED(utter_say(model, "Hi.", &o, take_some, &wanted, &error), UTTER_AGAIN, "all 1 lanes");
    utter_stream_free(&stream);
    utter_model_close(&model);
}

/* ---- The codec ---- */

static bool keep(void *user, const float *pcm, size_t n)
{
    struct {
        float *pcm;
        size_t n;
    } *kept = user;
    memcpy(kept->pcm + kept->n, pcm, n * sizeof *pcm);
    kept->n += n;
    return true;
}

/* Behind the official cut at 300 frames there is what 25 frames of context give. */
static void a_chunk_has_25_frames_of_context(void **state)
{
    (void)state;
    enum { N = 303, CODES = 16, CUT = 300, CONTEXT = 25 };
    utter_model *model = open_model(MODEL, 1);
    int32_t *codes = malloc(N * CODES * sizeof *codes);
    struct {
        float *pcm;
        size_t n;
    } whole = {malloc(N * 1920 * sizeof(float)), 0}, part = {malloc(N * 1920 * sizeof(float)), 0};
    for (int i = 0; i < N * CODES; i++) {
        codes[i] = (i * 7 + i / 16) % 64;
    }
    assert_int_equal(
        utter_codec_decode(model, codes, N, UTTER_CODEC_OFFICIAL_CHUNKS, 32, keep, &whole, NULL),
        UTTER_OK);
    assert_int_equal(utter_codec_decode(model, codes + (CUT - CONTEXT) * CODES, N - CUT + CONTEXT,
                         UTTER_CODEC_WHOLE, 32, keep, &part, NULL),
        UTTER_OK);
    assert_int_equal(whole.n, N * 1920);
    assert_memory_equal(
        whole.pcm + CUT * 1920, part.pcm + CONTEXT * 1920, (N - CUT) * 1920 * sizeof *whole.pcm);
    free(codes);
    free(whole.pcm);
    free(part.pcm);
    utter_model_close(&model);
}

static void decoding_takes_a_lane_for_a_while(void **state)
{
    (void)state;
    utter_model *model = open_model("build/checkpoints/nan-sound", 1);
    utter_error error;
    int32_t codes[9 * 16] = {0};
    size_t wanted = 1 << 30;
    REFUSED(utter_codec_decode(model, codes, 9, UTTER_CODEC_WHOLE, 0, take_some, &wanted, &error),
        UTTER_E_NUMBER, "the sound of frames 0..7 is not a number (the codec's weights are damaged)");
    assert_true(engine_is_idle(&model->engine));
    static const struct {
        int rule, chunk;
        const char *said;
    } cases[] = {{0, -1, "chunk -1 is not in 0..32"},
        {0, 33, "chunk 33 is not in 0..32, or the rule 0 does not exist"},
        {2, 1, "the rule 2 does not exist"}, {-1, 1, "the rule -1 does not exist"}};
    for (int i = 0; i < 4; i++) {
        REFUSED(utter_codec_decode(model, codes, 1, (utter_codec_rule)cases[i].rule, cases[i].chunk,
                    take_some, &wanted, &error),
            UTTER_E_ARGUMENT, cases[i].said);
    }
    codes[20] = 64;
    REFUSED(utter_codec_decode(model, codes, 2, UTTER_CODEC_WHOLE, 0, take_some, &wanted, &error),
        UTTER_E_ARGUMENT, "frame 1, codebook 4: code 64 is not in 0..63");
    REFUSED(utter_codec_decode(NULL, codes, 1, UTTER_CODEC_WHOLE, 0, take_some, NULL, &error),
        UTTER_E_ARGUMENT, "NULL");
    REFUSED(utter_codec_decode(model, NULL, 1, UTTER_CODEC_WHOLE, 0, take_some, NULL, &error),
        UTTER_E_ARGUMENT, "NULL");
    REFUSED(utter_codec_decode(model, codes, 1, UTTER_CODEC_WHOLE, 0, NULL, NULL, &error),
        UTTER_E_ARGUMENT, "NULL");
    utter_stream *stream;
    assert_int_equal(utter_stream_open(&stream, model, NULL, NULL), UTTER_OK);
    REFUSED(utter_codec_decode(model, codes, 1, UTTER_CODEC_WHOLE, 0, take_some, &wanted, &error),
        UTTER_AGAIN, "all 1 lanes of the model are taken");
    utter_stream_free(&stream);
    assert_int_equal(
        utter_codec_decode(model, codes, 0, UTTER_CODEC_WHOLE, 0, take_some, &wanted, &error),
        UTTER_OK);
    utter_model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_and_end_has_a_name),
        cmocka_unit_test(structs_may_have_another_size),
        cmocka_unit_test(defaults_are_as_told),
        cmocka_unit_test(model_options_have_bounds),
        cmocka_unit_test(devices_have_names),
        cmocka_unit_test(packing_has_bounds),
        cmocka_unit_test(a_model_tells_what_it_is),
        cmocka_unit_test(voices_and_languages_have_names),
        cmocka_unit_test(tokens_are_the_callers),
        cmocka_unit_test(streams_need_their_arguments),
        cmocka_unit_test(streams_tell_what_was_made),
        cmocka_unit_test(one_call_says_it_all),
        cmocka_unit_test(a_chunk_has_25_frames_of_context),
        cmocka_unit_test(decoding_takes_a_lane_for_a_while),
    };
    return cmocka_run_group_tests_name("arguments", tests, NULL, NULL);
}
