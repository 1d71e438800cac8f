/* SPDX-License-Identifier: Apache-2.0
 * Kept beginnings through utter.h: what is spoken is the same with and without them, they are found when they fit and
 * only then, and they stay within their bytes. */
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

#include "api/api.h"

#define BASE "build/checkpoints/tiny17-base"
#define PRESETS "build/checkpoints/tiny17-custom_voice"

enum { N_FRAMES = 6, FRAME = 1920 };

struct spoken {
    int32_t codes[N_FRAMES * 16];
    float pcm[N_FRAMES * FRAME];
    utter_stream_stats stats;
};

/* `prompt_seconds` as in utter.h. */
static utter_model *open_in_pieces(const char *path, uint64_t snapshot_bytes, double prompt_seconds)
{
    utter_model *model;
    utter_error error = {0};
    utter_model_options o;
    utter_model_options_init(&o);
    o.n_threads = 1;
    o.n_lanes = 2;
    o.snapshot_bytes = snapshot_bytes;
    o.prompt_seconds = prompt_seconds;
    utter_model_open(&model, path, &o, &error);
    assert_string_equal(error.text, "");
    return model;
}

static utter_model *open_model(const char *path, uint64_t snapshot_bytes)
{
    return open_in_pieces(path, snapshot_bytes, 0);
}

/* A voice of n_frames frames; `kind` makes its codes differ, `vector` its x-vector. */
static utter_voice *make_voice(
    const utter_model *model, int n_frames, int kind, float vector, const char *transcript)
{
    utter_voice *voice;
    int width = model->engine.context.model->config->talker.width;
    float *x = calloc((size_t)width, sizeof *x);
    int32_t *codes = calloc((size_t)n_frames * 16 + 1, sizeof *codes);
    for (int i = 0; i < width; i++) {
        x[i] = vector * (float)(i % 5 - 2);
    }
    for (int i = 0; i < n_frames * 16; i++) {
        codes[i] = (i * 7 + (i / 16) * kind) % model->engine.context.model->config->codec.codebook_size;
    }
    assert_int_equal(voice_new_clone(&voice, "test", x, width, n_frames ? codes : NULL, n_frames, 16,
                         n_frames ? transcript : NULL, NULL),
        UTTER_OK);
    free(x);
    free(codes);
    return voice;
}

static struct spoken *speak(
    utter_model *model, const utter_voice *voice, utter_layout layout, const char *text)
{
    struct spoken *s = calloc(1, sizeof *s);
    utter_stream_options o;
    utter_stream *stream;
    utter_error error = {0};
    size_t at = 0, n, n_frames;
    utter_stream_options_init(&o, model);
    o.voice = voice;
    o.layout = layout;
    o.max_frames = N_FRAMES;
    o.seed = 3;
    if (utter_stream_open(&stream, model, &o, &error) ||
        utter_stream_text(stream, text, strlen(text), &error) || utter_stream_finish(stream, &error)) {
        fail_msg("%s", error.text);
    }
    while (utter_stream_read(stream, s->pcm + at, N_FRAMES * FRAME - at + 1, &n, &error) == UTTER_OK) {
        at += n;
    }
    const int32_t *codes = utter_stream_codes(stream, &n_frames);
    assert_true(n_frames > 0 && n_frames <= N_FRAMES);
    assert_int_equal(at, n_frames * FRAME);
    memcpy(s->codes, codes, n_frames * 16 * sizeof *codes);
    s->stats.size = sizeof s->stats;
    utter_stream_get_stats(stream, &s->stats);
    utter_stream_free(&stream);
    return s;
}

/* Speaks, and compares with what `wanted` is; how many rows came from a snapshot. */
static int speak_same(utter_model *model, const utter_voice *voice, utter_layout layout,
    const char *text, const struct spoken *wanted)
{
    struct spoken *s = speak(model, voice, layout, text);
    if (wanted) {
        assert_memory_equal(s->codes, wanted->codes, sizeof s->codes);
        assert_memory_equal(s->pcm, wanted->pcm, sizeof s->pcm);
        assert_int_equal(s->stats.n_rows, wanted->stats.n_rows);
    }
    int kept = s->stats.n_kept_rows;
    free(s);
    return kept;
}

static utter_model_info info_of(const utter_model *model)
{
    utter_model_info info = {.size = sizeof info};
    utter_model_get_info(model, &info);
    return info;
}

static const char *const TEXTS[] = {"Hello there, friend. How are you today?", "Well,\nyes.", "No"};
enum { N_TEXTS = 3 };

/* The transcript ends before the codes, and behind them (then all rows but the last are the voice's). */
static void bytes_are_the_same_with_and_without(void **state)
{
    (void)state;
    utter_model *off = open_model(BASE, 0), *on = open_model(BASE, UINT64_MAX);
    utter_voice *voices[] = {make_voice(off, 0, 1, 0.3f, NULL),
        make_voice(off, 45, 2, 0.3f, "a short transcript"),
        make_voice(off, 4, 3, 0.3f, "a transcript that has many more tokens than there are frames")};
    for (int v = 0; v < 3; v++) {
        for (int layout = UTTER_LAYOUT_FULL; layout <= UTTER_LAYOUT_STREAM; layout++) {
            for (int t = 0; t < N_TEXTS; t++) {
                struct spoken *wanted = speak(off, voices[v], (utter_layout)layout, TEXTS[t]);
                int kept = speak_same(on, voices[v], (utter_layout)layout, TEXTS[t], wanted);
                assert_int_equal(wanted->stats.n_kept_rows, 0);
                /* An x-vector voice begins alike in both layouts; the header at least is kept. */
                bool first = t == 0 && (v > 0 || layout == UTTER_LAYOUT_FULL);
                assert_true(first ? kept == 0 : kept >= 7);
                assert_true(kept < wanted->stats.n_rows);
                free(wanted);
            }
        }
    }
    assert_int_equal(info_of(off).n_snapshots, 0);
    assert_int_equal(info_of(on).n_snapshots, 5);
    for (int v = 0; v < 3; v++) {
        utter_voice_free(&voices[v]);
    }
    utter_model_close(&on); /* with everything it kept */
    utter_model_close(&off);
}

static void presets_and_languages_do_not_mix(void **state)
{
    (void)state;
    utter_model *off = open_model(PRESETS, 0), *on = open_model(PRESETS, UINT64_MAX);
    for (int i = 0; i < 6; i++) {
        utter_voice *voice;
        assert_int_equal(
            utter_voice_preset(&voice, off, utter_model_voice_name(off, i % 3), NULL), UTTER_OK);
        struct spoken *wanted = speak(off, voice, UTTER_LAYOUT_AUTO, TEXTS[i % 2]);
        int kept = speak_same(on, voice, UTTER_LAYOUT_AUTO, TEXTS[i % 2], wanted);
        assert_true(i < 3 ? kept == 0 : kept >= 7);
        free(wanted);
        utter_voice_free(&voice);
    }
    assert_int_equal(info_of(on).n_snapshots, 3);
    utter_model_close(&on);
    utter_model_close(&off);
}

/* The rows and the codes decide, not which object the voice is. */
static void a_snapshot_is_found_by_what_it_is_made_of(void **state)
{
    (void)state;
    utter_model *model = open_model(BASE, UINT64_MAX);
    utter_voice *first = make_voice(model, 20, 1, 0.3f, "one two three"),
                *same = make_voice(model, 20, 1, 0.3f, "one two three"),
                *other[] = {make_voice(model, 20, 2, 0.3f, "one two three"), /* codes */
                    make_voice(model, 20, 1, 0.4f, "one two three"),         /* x-vector */
                    make_voice(model, 20, 1, 0.3f, "one two four"),          /* transcript */
                    make_voice(model, 21, 1, 0.3f, "one two three"),         /* one frame more */
                    make_voice(model, 0, 1, 0.3f, NULL)};                    /* no codes */
    assert_int_equal(speak_same(model, first, UTTER_LAYOUT_STREAM, "hi", NULL), 0);
    utter_voice_free(&first); /* the snapshot lives on */
    assert_true(speak_same(model, same, UTTER_LAYOUT_STREAM, "you", NULL) > 0);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(speak_same(model, other[i], UTTER_LAYOUT_STREAM, "hi", NULL), 0);
        assert_true(speak_same(model, other[i], UTTER_LAYOUT_STREAM, "hi", NULL) > 0);
        utter_voice_free(&other[i]);
    }
    assert_int_equal(info_of(model).n_snapshots, 6);
    utter_voice_free(&same);
    utter_model_close(&model);
}

/* Room for two of three voices: the one that was used least recently goes. */
static void the_least_recently_used_goes(void **state)
{
    (void)state;
    utter_model *model = open_model(BASE, UINT64_MAX);
    utter_voice *v[3];
    for (int i = 0; i < 3; i++) {
        v[i] = make_voice(model, 20, i + 1, 0.3f, "one two three");
    }
    assert_int_equal(speak_same(model, v[0], UTTER_LAYOUT_STREAM, "hi", NULL), 0);
    uint64_t one = info_of(model).snapshot_bytes;
    assert_true(one > 0);
    utter_model_close(&model);

    model = open_model(BASE, 2 * one);
    /* Each step: the voice, and whether it is there. */
    static const struct {
        int voice;
        bool kept;
    } steps[] = {{0, false}, {1, false}, {0, true}, {2, false}, {0, true}, {1, false}, {0, true},
        {2, false}, {0, true}, {2, true}};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        int kept = speak_same(model, v[steps[i].voice], UTTER_LAYOUT_STREAM, "hi", NULL);
        assert_int_equal(kept > 0, steps[i].kept);
        assert_in_range(info_of(model).snapshot_bytes, one, 2 * one);
        assert_int_equal(info_of(model).snapshot_bytes, one * (uint64_t)info_of(model).n_snapshots);
    }
    utter_model_close(&model);

    /* One that does not fit at all drops nothing. */
    model = open_model(BASE, one);
    utter_voice *large = make_voice(model, 20, 9, 0.3f, "one two three and a word or two more");
    assert_int_equal(speak_same(model, v[0], UTTER_LAYOUT_STREAM, "hi", NULL), 0);
    assert_int_equal(speak_same(model, large, UTTER_LAYOUT_STREAM, "hi", NULL), 0);
    assert_int_equal(info_of(model).n_snapshots, 1);
    assert_true(speak_same(model, v[0], UTTER_LAYOUT_STREAM, "hi", NULL) > 0);
    utter_voice_free(&large);
    for (int i = 0; i < 3; i++) {
        utter_voice_free(&v[i]);
    }
    utter_model_close(&model);
}

static utter_stream *begin(utter_model *model, const utter_voice *voice)
{
    utter_stream_options o;
    utter_stream *stream;
    utter_error error = {0};
    utter_stream_options_init(&o, model);
    o.voice = voice;
    o.max_frames = N_FRAMES;
    if (utter_stream_open(&stream, model, &o, &error) || utter_stream_text(stream, "hi", 2, &error) ||
        utter_stream_finish(stream, &error)) {
        fail_msg("%s", error.text);
    }
    return stream;
}

static int rows_read(const utter_stream *stream)
{
    utter_stream_stats stats = {.size = sizeof stats};
    utter_stream_get_stats(stream, &stats);
    return stats.n_rows;
}

/* Two that read the same beginning in pieces, by turns, both come to its end: one snapshot, and one that was used. Kept
 * twice, it would put out what another voice has kept. */
static void what_begins_together_is_kept_once(void **state)
{
    (void)state;
    utter_model *model = open_in_pieces(BASE, UINT64_MAX, 1e-9); /* the smallest pieces */
    utter_voice *other = make_voice(model, 40, 2, 0.3f, "one two three"),
                *voice = make_voice(model, 40, 1, 0.3f, "one two three");
    assert_int_equal(speak_same(model, other, UTTER_LAYOUT_STREAM, "hi", NULL), 0);
    uint64_t one = info_of(model).snapshot_bytes;
    model->engine.context.snapshots.limit_bytes = 2 * one;
    utter_stream *streams[] = {begin(model, voice), begin(model, voice)};
    assert_int_equal(utter_model_step(model, NULL), UTTER_OK);
    for (int i = 0; i < 2; i++) { /* in the middle of it, both */
        assert_in_range(rows_read(streams[i]), 1, 39);
    }
    while (utter_model_step(model, NULL) == UTTER_OK) {
    }
    assert_int_equal(info_of(model).n_snapshots, 2);
    assert_int_equal(info_of(model).snapshot_bytes, 2 * one);
    for (int i = 0; i < 2; i++) {
        utter_stream_stats stats = {.size = sizeof stats};
        utter_stream_get_stats(streams[i], &stats);
        assert_int_equal(stats.n_kept_rows, 0);
        utter_stream_free(&streams[i]);
    }
    assert_true(speak_same(model, other, UTTER_LAYOUT_STREAM, "hi", NULL) > 0);
    assert_true(speak_same(model, voice, UTTER_LAYOUT_STREAM, "hi", NULL) > 0);
    utter_voice_free(&voice);
    utter_voice_free(&other);
    utter_model_close(&model);
}

/* A backend that keeps nothing, and one whose memory is used up: the speech goes on without. */
static void speech_does_not_need_them(void **state)
{
    (void)state;
    utter_model *model = open_model(BASE, UINT64_MAX);
    utter_voice *voice = make_voice(model, 20, 1, 0.3f, "one two three");
    struct spoken *wanted = speak(model, voice, UTTER_LAYOUT_STREAM, "hi");
    snapshot_store_clear(&model->engine.context.snapshots);
    struct backend_ops none = *model->engine.context.ops;
    const struct backend_ops *ops = model->engine.context.snapshots.ops;
    none.lane_keep = NULL;
    none.lane_resume = NULL;
    none.snapshot_free = NULL;
    model->engine.context.snapshots.ops = &none;
    assert_int_equal(speak_same(model, voice, UTTER_LAYOUT_STREAM, "hi", wanted), 0);
    assert_int_equal(speak_same(model, voice, UTTER_LAYOUT_STREAM, "hi", wanted), 0);
    model->engine.context.snapshots.ops = ops;

    struct row row = {.text = 0};
    struct beginning beginning = {voice, &row, 1};
    for (int n = 1; n <= 2; n++) { /* the entry, then the state */
        struct lane_settings settings = {{0, 0, 1, 1}, {0, 0, 1, 1}, 0, 2};
        utter_error error = {0};
        model->engine.context.ops->lane_reset(model->engine.context.backend, 0, &settings, NULL);
        model->engine.context.ops->prefill(model->engine.context.backend, 0, &row, 1, NULL);
        support_fail_malloc_at(n);
        assert_int_equal(
            snapshot_keep(&model->engine.context.snapshots, 0, &beginning, &error), UTTER_OK);
        assert_true(support_failed());
        support_fail_off();
        assert_int_equal(info_of(model).n_snapshots, 0);
        assert_int_equal(info_of(model).snapshot_bytes, 0);
    }
    free(wanted);
    utter_voice_free(&voice);
    utter_model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_the_same_with_and_without),
        cmocka_unit_test(presets_and_languages_do_not_mix),
        cmocka_unit_test(a_snapshot_is_found_by_what_it_is_made_of),
        cmocka_unit_test(the_least_recently_used_goes),
        cmocka_unit_test(what_begins_together_is_kept_once),
        cmocka_unit_test(speech_does_not_need_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
