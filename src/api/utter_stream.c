/* SPDX-License-Identifier: Apache-2.0
 * Streams behind utter.h. */
#include <string.h>

#include "api/api.h"

utter_status utter_stream_options_init_sized(
    utter_stream_options *options, size_t size, const utter_model *model)
{
    if (!options || !model) {
        return UTTER_E_ARGUMENT;
    }
    const struct config *c = api_config(model);
    const utter_stream_options all = {
        .talker = c->talker_sampling,
        .predictor = c->predictor_sampling,
        /* The official package's last token never becomes a frame. */
        .max_frames = c->max_new_tokens > 1 ? c->max_new_tokens - 1 : 1,
        .guard = true,
    };
    api_init_sized(options, size, &all, sizeof all);
    return UTTER_OK;
}

utter_status utter_stream_open(
    utter_stream **stream, utter_model *model, const utter_stream_options *options, utter_error *error)
{
    utter_stream_options o;
    utter_status status = api_need(stream && model ? model : NULL, "stream or model", error);
    if (status) {
        return status;
    }
    *stream = NULL;
    utter_stream_options_init(&o, model);
    if (options && (status = api_copy_sized(
                        &o, sizeof o, options, options->size, "utter_stream_options", error))) {
        return status;
    }
    status = engine_open_stream(stream, &model->engine, &o, error);
    if (status == UTTER_OK) {
        engine_note_stream(*stream);
    }
    return status;
}

utter_status utter_stream_text(utter_stream *stream, const char *text, size_t bytes, utter_error *error)
{
    utter_status status = api_need(stream && text ? stream : NULL, "stream or text", error);
    return status ? status : stream_text(stream, text, bytes, error);
}

utter_status utter_stream_finish(utter_stream *stream, utter_error *error)
{
    utter_status status = api_need(stream, "stream", error);
    return status ? status : stream_finish(stream, error);
}

utter_status utter_stream_take(
    utter_stream *stream, float *pcm, size_t capacity, size_t *n, utter_error *error)
{
    utter_status status = api_need_room(stream, pcm, capacity, n, error);
    if (status) {
        return status;
    }
    *n = stream_drain(stream, pcm, capacity);
    if (*n > 0) {
        return UTTER_OK;
    }
    if (stream->failure.code != UTTER_OK) {
        if (error) {
            *error = stream->failure;
        }
        return stream->failure.code;
    }
    stream_ready(stream); /* notices a bound that has been reached */
    return stream->finish == UTTER_FINISH_NONE ? UTTER_AGAIN : UTTER_END;
}

utter_status utter_stream_read(
    utter_stream *stream, float *pcm, size_t capacity, size_t *n, utter_error *error)
{
    utter_status status = utter_stream_take(stream, pcm, capacity, n, error);
    while (status == UTTER_AGAIN) {
        if (!stream_ready(stream)) { /* others may have text, but this one needs some */
            status = engine_check(stream->engine, error);
            return status ? status : utter_stream_take(stream, pcm, capacity, n, error);
        }
        status = engine_step(stream->engine, true, error);
        if (status == UTTER_AGAIN) { /* a step that moved nothing may have ended this stream */
            return utter_stream_take(stream, pcm, capacity, n, error);
        }
        if (status < 0) {
            return status;
        }
        status = utter_stream_take(stream, pcm, capacity, n, error);
    }
    return status;
}

void utter_stream_hold(utter_stream *stream, bool held)
{
    if (stream) {
        stream->held = held;
    }
}

const int32_t *utter_stream_codes(const utter_stream *stream, size_t *n_frames)
{
    if (n_frames) {
        *n_frames = stream ? (size_t)stream->n_frames : 0;
    }
    return stream ? stream->codes : NULL;
}

const utter_word *utter_stream_words(utter_stream *stream, size_t *n_words)
{
    size_t n = 0;
    const utter_word *words = stream ? stream_words(stream, &n) : NULL;
    if (n_words) {
        *n_words = n;
    }
    return words;
}

void utter_stream_cancel(utter_stream *stream)
{
    if (stream) {
        __atomic_store_n(&stream->cancelled, 1, __ATOMIC_RELAXED);
    }
}

void utter_stream_free(utter_stream **stream)
{
    if (stream) {
        engine_free_stream(stream);
    }
}

const char *utter_finish_text(utter_finish finish)
{
    static const char *const names[] = {"none", "eos", "max_frames", "context", "ceiling", "loop",
        "silence", "cancelled", "error", "said", "stuck"};
    size_t i = (size_t)finish;
    return i < sizeof names / sizeof *names ? names[i] : "unknown";
}

utter_status utter_stream_get_stats(const utter_stream *stream, utter_stream_stats *stats)
{
    if (!stream || !stats) {
        return UTTER_E_ARGUMENT;
    }
    utter_stream_stats full = stream->stats;
    full.size = stats->size;
    full.finish = stream->finish;
    full.n_frames = stream->n_frames;
    full.n_text_tokens = prompt_text_tokens(stream->prompt);
    full.words_approximate = stream->words && words_approximate(stream->words);
    return api_copy_sized(stats, stats->size, &full, sizeof full, "utter_stream_stats", NULL);
}

utter_status utter_say(utter_model *model, const char *text, const utter_stream_options *options,
    utter_sink_fn *sink, void *user, utter_error *error)
{
    enum { PIECE = 1920 };
    float pcm[PIECE];
    size_t n;
    utter_stream *stream = NULL;
    utter_status status = api_need(model && text && sink ? model : NULL, "an argument", error);
    if (status || (status = utter_stream_open(&stream, model, options, error)) ||
        (status = utter_stream_text(stream, text, strlen(text), error)) ||
        (status = utter_stream_finish(stream, error))) {
        utter_stream_free(&stream);
        return status;
    }
    while ((status = utter_stream_read(stream, pcm, PIECE, &n, error)) == UTTER_OK) {
        if (!sink(user, pcm, n)) {
            status = error_set(error, UTTER_E_CANCELLED, "the sink asked to stop");
            break;
        }
    }
    utter_stream_free(&stream);
    return status == UTTER_END ? UTTER_OK : status;
}
