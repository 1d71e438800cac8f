/* SPDX-License-Identifier: Apache-2.0
 * Readings behind utter.h. */
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "base/memory.h"
#include "reading/reading.h"
#include "script/script.h"

void utter_reading_options_init_sized(utter_reading_options *options, size_t size)
{
    const utter_reading_options all = {.retries = 2,
        .live = true,
        .lanes = 1,
        .clause_pause_s = 0.15,
        .sentence_pause_s = 0.35,
        .paragraph_pause_s = 0.7};
    api_init_sized(options, size, &all, sizeof all);
}

/* A utter_find_voice_fn: the presets of the model. */
static utter_status find_preset(void *user, const char *name, utter_voice **voice, utter_error *error)
{
    return utter_voice_preset(voice, user, name, error);
}

static bool is_pause(double seconds)
{
    return seconds >= 0 && seconds <= 60;
}

static utter_status check(const utter_reading_options *o, utter_error *error)
{
    bool good = o->retries >= 0 && o->retries <= 100 && o->lanes >= 1 && o->max_frames >= 0 &&
                (o->piece_length == 0 || (o->piece_length >= 20 && o->piece_length <= 10000)) &&
                o->markup >= UTTER_MARKUP_NONE && o->markup <= UTTER_MARKUP_SSML &&
                is_pause(o->clause_pause_s) && is_pause(o->sentence_pause_s) &&
                is_pause(o->paragraph_pause_s);
    return good ? UTTER_OK
                : error_set(error, UTTER_E_ARGUMENT,
                      "an option of the reading is out of range (retries 0 to 100, lanes from 1, "
                      "max_frames from 0, "
                      "piece_length 20 to 10000, markup, pauses 0 to 60 s)");
}

utter_status utter_reading_open(utter_reading **reading, utter_model *model,
    const utter_stream_options *voice, const utter_reading_options *options, utter_error *error)
{
    utter_stream_options v;
    utter_reading_options o;
    utter_status status = api_need(reading && model ? model : NULL, "reading or model", error);
    if (status) {
        return status;
    }
    *reading = NULL;
    utter_stream_options_init(&v, model);
    utter_reading_options_init(&o);
    if ((voice && (status = api_copy_sized(
                       &v, sizeof v, voice, voice->size, "utter_stream_options", error))) ||
        (options && (status = api_copy_sized(
                         &o, sizeof o, options, options->size, "utter_reading_options", error))) ||
        (status = check(&o, error))) {
        return status;
    }
    if (!o.find_voice) {
        o.find_voice = find_preset;
        o.find_voice_user = model;
    }
    return reading_open(reading, &model->engine, &v, &o, error);
}

utter_status utter_reading_text(
    utter_reading *reading, const char *text, size_t bytes, utter_error *error)
{
    utter_status status = api_need(reading && text ? reading : NULL, "reading or text", error);
    return status ? status : reading_text(reading, text, bytes, error);
}

utter_status utter_reading_finish(utter_reading *reading, utter_error *error)
{
    utter_status status = api_need(reading, "reading", error);
    return status ? status : reading_finish(reading, error);
}

utter_status utter_reading_take(
    utter_reading *reading, float *pcm, size_t capacity, size_t *n, utter_error *error)
{
    utter_status status = api_need_room(reading, pcm, capacity, n, error);
    return status ? status : reading_take(reading, pcm, capacity, n, error);
}

utter_status utter_reading_read(
    utter_reading *reading, float *pcm, size_t capacity, size_t *n, utter_error *error)
{
    utter_status status = utter_reading_take(reading, pcm, capacity, n, error);
    while (status == UTTER_AGAIN) {
        struct engine *engine = reading_engine(reading);
        if (!reading_ready(reading)) {
            status = engine_check(engine, error);
            return status ? status : utter_reading_take(reading, pcm, capacity, n, error);
        }
        status = engine_step(engine, true, error);
        if (status < 0) {
            return status;
        }
        status = utter_reading_take(reading, pcm, capacity, n, error);
    }
    return status;
}

const utter_word *utter_reading_words(utter_reading *reading, uint64_t *first, size_t *n_words)
{
    uint64_t before = 0;
    size_t n = 0;
    const utter_word *words = reading ? reading_words(reading, &before, &n) : NULL;
    if (first) {
        *first = before;
    }
    if (n_words) {
        *n_words = n;
    }
    return words;
}

void utter_reading_hold(utter_reading *reading, bool held)
{
    if (reading) {
        reading_hold(reading, held);
    }
}

void utter_reading_cancel(utter_reading *reading)
{
    if (reading) {
        reading_cancel(reading);
    }
}

void utter_reading_free(utter_reading **reading)
{
    if (reading) {
        reading_free(reading);
    }
}

utter_status utter_reading_get_stats(const utter_reading *reading, utter_reading_stats *stats)
{
    if (!reading || !stats) {
        return UTTER_E_ARGUMENT;
    }
    utter_reading_stats full;
    reading_stats(reading, &full);
    full.size = stats->size;
    return api_copy_sized(stats, stats->size, &full, sizeof full, "utter_reading_stats", NULL);
}

/* How a span is spoken, as tags before its words. */
static utter_status write_style(struct chars *out, const struct script_span *span,
    const struct script_style *before, utter_error *error)
{
    const struct script_style *s = &span->style;
    char tag[64];
    utter_status status = UTTER_OK;
    const struct {
        const char *name, *now, *then;
    } names[] = {{"[voice:", s->voice, before->voice}, {"[lang:", s->language, before->language}};
    for (size_t i = 0; i < 2 && status == UTTER_OK; i++) {
        if (names[i].now != names[i].then) {
            const char *name = names[i].now ? names[i].now : "default";
            status = chars_add(out, names[i].name, strlen(names[i].name), error);
            status = status ? status : chars_add(out, name, strlen(name), error);
            status = status ? status : chars_add(out, "]", 1, error);
        }
    }
    const struct {
        const char *format;
        double value;
        bool wanted;
    } numbers[] = {{"[rate:%.0f%%]", 100 * s->rate, s->rate < before->rate || s->rate > before->rate},
        {"[volume:%.0f%%]", 100 * s->volume, s->volume < before->volume || s->volume > before->volume},
        {"[pause:%.0fms]", 1000 * span->pause_s, span->pause_s >= 0},
        {"# ", 0, s->heading && span->text.n > 0}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && status == UTTER_OK; i++) {
        int n = numbers[i].wanted ? snprintf(tag, sizeof tag, numbers[i].format, numbers[i].value) : 0;
        status = chars_add(out, tag, (size_t)n, error);
    }
    return status;
}

/* Its words in one line. */
static utter_status write_words(struct chars *out, const struct chars *text, utter_error *error)
{
    utter_status status = UTTER_OK;
    size_t end = text->n;
    while (end > 0 && strchr(" \t\r\n", text->at[end - 1])) {
        end--;
    }
    for (size_t i = 0; i < end && status == UTTER_OK; i++) {
        bool line = text->at[i] == '\n' || text->at[i] == '\r';
        status = chars_add(out, line ? " " : text->at + i, 1, error);
    }
    return status ? status : chars_add(out, "\n", 1, error);
}

static utter_status write_spans(struct script *script, struct chars *out, utter_error *error)
{
    struct script_style before = {.rate = 1, .volume = 1};
    struct script_span span;
    utter_status status = UTTER_OK;
    while (status == UTTER_OK && script_next(script, &span)) {
        status = write_style(out, &span, &before, error);
        status = status ? status : write_words(out, &span.text, error);
        before = span.style;
        script_span_fini(&span);
    }
    return status ? status : chars_add(out, "", 1, error);
}

utter_status utter_text_spoken(char **spoken, const char *text, size_t bytes,
    const utter_reading_options *options, const char *language, const char *voice, utter_log_fn *log,
    void *log_user, utter_error *error)
{
    utter_reading_options o;
    struct script *script = NULL;
    struct chars out = {0};
    bool bad;
    utter_status status = api_need(spoken && text ? text : NULL, "spoken or text", error);
    if (status) {
        return status;
    }
    *spoken = NULL;
    utter_reading_options_init(&o);
    if ((options && (status = api_copy_sized(
                         &o, sizeof o, options, options->size, "utter_reading_options", error))) ||
        (status = check(&o, error))) {
        return status;
    }
    if (utf8_valid(text, bytes, &bad) != bytes) {
        return error_set(error, UTTER_E_ARGUMENT, "the text is not UTF-8");
    }
    const struct script_options how = {
        o.markup, o.cast, o.lexicon, o.spell_out, language, voice, o.written, o.written_user};
    status = script_open(&script, &how, error);
    status = status ? status : script_text(script, text, bytes, error);
    status = status ? status : script_finish(script, error);
    status = status ? status : write_spans(script, &out, error);
    for (const char *note; status == UTTER_OK && log && (note = script_note(script));) {
        log(log_user, note);
    }
    *spoken = status ? NULL : memory_string(out.at);
    status = status || *spoken ? status : error_memory(error, "a text");
    script_free(&script);
    chars_fini(&out);
    return status;
}
