/* SPDX-License-Identifier: Apache-2.0
 * Spans: filling one, and the way from its words back to the source. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "script/letters.h"
#include "script/script_parts.h"

void script_span_fini(struct script_span *span)
{
    chars_fini(&span->text);
    memory_free(span->runs);
    *span = (struct script_span){0};
}

utter_status span_add(
    struct script_span *span, const char *text, const struct script_run *run, utter_error *error)
{
    struct script_run *last = span->n_runs ? &span->runs[span->n_runs - 1] : NULL;
    utter_status status = run->n ? chars_add(&span->text, text, run->n, error) : UTTER_OK;
    if (status || run->n == 0) {
        return status;
    }
    if (last && last->same && run->same && last->source + last->source_n == run->source) {
        last->n += run->n;
        last->source_n += run->n;
        return UTTER_OK;
    }
    if (span->n_runs == span->runs_room) {
        size_t room = span->n_runs + span->n_runs / 2 + 8;
        struct script_run *grown = memory_resize(span->runs, span->runs_room, room, sizeof *span->runs);
        if (!grown) {
            return error_memory(error, "a span of text");
        }
        span->runs = grown;
        span->runs_room = room;
    }
    span->runs[span->n_runs] = *run;
    span->runs[span->n_runs++].spoken = span->text.n - run->n;
    return UTTER_OK;
}

static bool is_white(uint32_t code)
{
    return code == 0 || (code < 0x80 && strchr(" \t\r\n", (int)code));
}

/* "Hello[pause:1s]there", but not "Hello[pause:1s], there", nor anything in Chinese. */
static bool are_apart(uint32_t before, uint32_t behind)
{
    enum { ELLIPSIS = 0x2026 };
    bool ends = before == ELLIPSIS || (before && before < 0x80 && strchr(".!?,;:", (int)before));
    return (ends || letters_is_spaced(before)) && letters_is_spaced(behind);
}

/* The last character that is neither a mark on another nor closes a quotation or a bracket; 0: all are. */
static uint32_t last_of(const char *text, size_t n)
{
    char bytes[4];
    uint32_t code;
    while ((code = letters_before(text, n)) && (letters_is_mark(code) || letters_closes(code))) {
        n -= utf8_put(code, bytes);
    }
    return code;
}

void span_written(struct script *s, const char *text, size_t n, size_t source, size_t source_n)
{
    if (!s->written || n == 0) {
        return;
    }
    uint32_t before = s->written_last, behind = letters_at(text, n, 0), last = last_of(text, n);
    bool apart = s->written_white || (s->written_parts && are_apart(before, behind));
    if (apart && !is_white(before) && !is_white(behind)) {
        s->written(s->written_user, source, 0, " ", 1);
    }
    s->written(s->written_user, source, source_n, text, n);
    s->written_last = last ? last : before; /* a mark in a piece of its own: &#x301; */
    s->written_parts = s->written_white = false;
}

utter_status span_same(struct script *s, const char *text, size_t n, size_t source, utter_error *error)
{
    span_written(s, text, n, source, n);
    s->boundary = s->boundary && n == 0;
    return span_add(&s->now, text,
        &(struct script_run){.n = n, .source = source, .source_n = n, .same = true}, error);
}

utter_status span_other(struct script *s, const char *text, size_t n, size_t source, size_t source_n,
    bool fixed, utter_error *error)
{
    s->boundary = s->boundary && n == 0;
    return span_add(&s->now, text,
        &(struct script_run){.n = n, .source = source, .source_n = source_n, .fixed = fixed}, error);
}

static bool is_blank_text(const struct chars *text)
{
    size_t at = 0;
    while (at < text->n && strchr(" \t\r\n", text->at[at])) {
        at++;
    }
    return at == text->n;
}

utter_status span_put(struct script *s, utter_error *error)
{
    if (s->from > 0 && s->from == s->n_spans) {
        s->from = s->n_spans = s->n_styles = 0;
    }
    if (s->n_spans == s->spans_room) {
        size_t room = s->n_spans + s->n_spans / 2 + 8;
        struct script_span *grown = memory_resize(s->spans, s->spans_room, room, sizeof *s->spans);
        if (!grown) {
            return error_memory(error, "spans of text");
        }
        s->spans = grown;
        s->spans_room = room;
    }
    s->spans[s->n_spans++] = s->now;
    s->now = (struct script_span){.pause_s = -1, .style = s->style};
    s->boundary = true;
    return UTTER_OK;
}

utter_status span_end(struct script *s, utter_error *error)
{
    struct script_span *span = &s->now;
    if (is_blank_text(&span->text)) { /* what was blank is not spoken; a pause stays */
        span->text.n = 0;
        span->n_runs = 0;
        return UTTER_OK;
    }
    utter_status status = span_rewrite(s, span, error);
    return status ? status : span_put(s, error);
}

static bool same_style(const struct script_style *a, const struct script_style *b)
{
    return a->voice == b->voice && a->language == b->language && a->rate == b->rate &&
           a->volume == b->volume && a->heading == b->heading;
}

utter_status span_style(struct script *s, const struct script_style *style, utter_error *error)
{
    if (same_style(&s->style, style)) {
        return UTTER_OK;
    }
    utter_status status = span_end(s, error);
    s->style = *style;
    s->now.style = *style;
    s->written_parts = true;
    return status;
}

utter_status span_pause(struct script *s, double seconds, utter_error *error)
{
    utter_status status = span_end(s, error);
    s->now.pause_s = (s->now.pause_s < 0 ? 0 : s->now.pause_s) + seconds;
    s->written_parts = true;
    if (s->now.pause_s > SCRIPT_MOST_PAUSE_S) {
        s->now.pause_s = SCRIPT_MOST_PAUSE_S;
        script_add_note(s, "pauses that stand together were cut to %d s, the most that there is",
            SCRIPT_MOST_PAUSE_S);
    }
    return status;
}

/* The last byte that is no blank; 0: there is none. */
static char last_byte(const struct script_span *span)
{
    size_t n = span->text.n;
    while (n > 0 && strchr(" \t\r\n", span->text.at[n - 1])) {
        n--;
    }
    return n > 0 ? span->text.at[n - 1] : 0;
}

/* A word at the end of a sentence that the markup ends needs a mark, or the voice runs on. */
utter_status span_sentence(struct script *s, size_t source, utter_error *error)
{
    char last = last_byte(&s->now);
    bool word =
        (last >= 'a' && last <= 'z') || (last >= 'A' && last <= 'Z') || (last >= '0' && last <= '9');
    s->written_white = true;
    if (last == 0 || s->boundary) {
        return UTTER_OK;
    }
    utter_status status = span_other(s, word ? ". " : "\n", word ? 2 : 1, source, 0, true, error);
    s->boundary = true;
    return status;
}

utter_status span_paragraph(struct script *s, size_t source, utter_error *error)
{
    const struct chars *text = &s->now.text;
    bool ended = text->n > 1 && memcmp(text->at + text->n - 2, "\n\n", 2) == 0;
    utter_status status =
        last_byte(&s->now) && !ended ? span_other(s, "\n\n", 2, source, 0, true, error) : UTTER_OK;
    s->boundary = s->written_white = true;
    return status;
}

utter_status script_name(
    struct script *s, const char *text, size_t n, const char **name, utter_error *error)
{
    enum { MOST_NAMES = 2000 }; /* each is looked for among the others */
    for (size_t i = 0; i < s->n_names; i++) {
        if (strlen(s->names[i]) == n && memcmp(s->names[i], text, n) == 0) {
            *name = s->names[i];
            return UTTER_OK;
        }
    }
    if (s->n_names == MOST_NAMES) {
        return error_set(error, UTTER_E_ARGUMENT,
            "markup: the text names more than %d voices and languages", MOST_NAMES);
    }
    if (s->n_names == s->names_room) {
        char **grown = memory_resize(s->names, s->names_room, s->names_room + 16, sizeof *s->names);
        if (!grown) {
            return error_memory(error, "a script");
        }
        s->names = grown;
        s->names_room += 16;
    }
    char *copy = memory_string_n(text, n);
    if (!copy) {
        return error_memory(error, "a script");
    }
    *name = s->names[s->n_names++] = copy;
    return UTTER_OK;
}

void script_add_note(struct script *s, const char *format, ...)
{
    char line[400], quoted[480];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    error_quote(quoted, sizeof quoted, line, strlen(line));
    for (int i = 0; i < s->n_notes; i++) {
        if (strcmp(s->notes[i], quoted) == 0) {
            return;
        }
    }
    if (s->n_notes < SCRIPT_MOST_NOTES && (s->notes[s->n_notes] = memory_string(quoted))) {
        s->n_notes++;
    }
}

/* The run that holds spoken byte `at`. */
static const struct script_run *run_at(const struct script_span *span, size_t at)
{
    size_t low = 0, high = span->n_runs;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (span->runs[middle].spoken <= at) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return &span->runs[low];
}

void script_source(
    const struct script_span *span, size_t at, size_t n, size_t *source, size_t *source_n)
{
    *source = *source_n = 0;
    if (span->n_runs == 0) {
        return;
    }
    const struct script_run *a = run_at(span, at), *b = run_at(span, n ? at + n - 1 : at);
    *source = a->source + (a->same ? at - a->spoken : 0);
    size_t end = b->source + (b->same ? at + n - b->spoken : b->source_n);
    *source_n = end > *source ? end - *source : 0;
}
