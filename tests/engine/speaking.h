/* SPDX-License-Identifier: Apache-2.0
 * Speech on the small checkpoints through utter.h, kept whole. The caller frees a result. */
#ifndef TESTS_SPEAKING_H
#define TESTS_SPEAKING_H

#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

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

#endif
