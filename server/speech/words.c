/* SPDX-License-Identifier: Apache-2.0
 * A list whose end may change. */
#include "server/speech/words.h"
#include "base/json.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/minmax.h"

/* Of the JSON of a word. */
enum { JSON_BYTES = 160 };

static bool is_white(char c)
{
    return c && strchr(" \t\r\n\v\f", c);
}

static bool make_room(struct word_list *l, size_t n)
{
    if (n > l->room) {
        struct speech_word *grown = memory_resize(l->at, l->room, n + n / 2, sizeof *grown);
        if (!grown) {
            l->failed = true;
            return false;
        }
        l->at = grown;
        l->room = n + n / 2;
    }
    return true;
}

void word_list_take(struct word_list *l, const struct speech_words *words)
{
    size_t from = l->n_before + (size_t)words->first, skip = l->first > from ? l->first - from : 0;
    if (l->failed || from > l->first + l->n) {
        return; /* there is a gap, which a worker does not make */
    }
    if (skip > words->n) { /* they end among those that are forgotten */
        l->n = 0;
        return;
    }
    from = from + skip - l->first;
    if (!make_room(l, from + words->n - skip)) {
        return;
    }
    for (size_t i = skip; i < words->n; i++) {
        struct speech_word word = words->at[i];
        word.at += l->at_before;
        word.start_s += l->s_before;
        word.end_s += l->s_before;
        l->at[from + i - skip] = word;
    }
    l->n = from + words->n - skip;
    l->approximate = words->approximate;
}

void word_list_next(struct word_list *l, size_t bytes, double seconds)
{
    l->n_before = l->first + l->n;
    l->at_before += bytes;
    l->s_before += seconds;
}

/* Who hears it has enough of tenths of milliseconds. */
static json_t *rounded(double value, double parts, bool exact)
{
    return json_real(exact ? value : round(parts * value) / parts);
}

static json_t *word_json(
    const struct speech_word *w, size_t index, const char *text, size_t n, bool exact)
{
    size_t at = min(w->at, n), bytes = min(w->bytes, n - at);
    json_t *word = json_stringn(text + at, bytes);
    return json_pack("{s:I,s:o,s:o,s:o,s:I,s:I,s:o,s:b,s:b}", "index", (json_int_t)index, "word",
        word ? word : json_string(""), "start", rounded(w->start_s, 1e4, exact), "end",
        rounded(w->end_s, 1e4, exact), "at", (json_int_t)at, "bytes", (json_int_t)bytes, "certainty",
        rounded((double)w->certainty, 1e3, exact), "final", w->final, "skipped", w->skipped);
}

json_t *word_list_news(struct word_list *l, const char *text, size_t n)
{
    json_t *news = NULL;
    for (size_t i = max(l->n_final, l->first); i < l->first + l->n; i++) {
        const struct speech_word *w = &l->at[i - l->first];
        if (w->final || i >= l->n_told) {
            news = news ? news : json_array();
            json_array_append_new(news, word_json(w, i, text, n, l->exact));
            l->n_told = max(l->n_told, i + 1);
            l->n_final = w->final ? i + 1 : l->n_final;
        }
    }
    l->failed = l->failed || json_text_lacks(); /* some are not told */
    return news;
}

void word_list_write(const struct word_list *l, const char *text, size_t n, struct wire_out *out)
{
    size_t n_written = 0;
    wire_put(out, "[", 1);
    for (size_t i = 0; i < l->n; i++) {
        if (l->at[i].final) {
            json_t *word = word_json(&l->at[i], l->first + i, text, n, l->exact);
            char *json = json_text_write(word, JSON_COMPACT | JSON_REAL_PRECISION(9));
            wire_put(out, ",", n_written++ > 0);
            wire_put(out, json, json ? strlen(json) : 0);
            out->failed = out->failed || !json;
            memory_plain_free(json);
            json_decref(word);
        }
    }
    wire_put(out, "]", 1);
}

size_t word_list_needs(const struct word_list *l)
{
    return word_list_size(l) + l->n * JSON_BYTES;
}

size_t word_list_due(const struct word_list *l, double until_s)
{
    size_t from = max(l->n_told, l->first) - l->first, i = from;
    while (i < l->n && (l->at[i].final || (l->at[i].start_s < until_s && i + 1 < l->n))) {
        i++;
    }
    return i - from;
}

void word_list_forget(struct word_list *l, size_t index)
{
    size_t known = min(index > l->first ? index - l->first : 0, l->n);
    if (known > 0) {
        memmove(l->at, l->at + known, (l->n - known) * sizeof *l->at);
        l->first += known;
        l->n -= known;
    }
}

size_t word_list_heard(const struct word_list *l, const char *text, size_t n, double heard_s)
{
    size_t end = 0, next = n;
    for (size_t i = 0; i < l->n; i++) {
        const struct speech_word *w = &l->at[i];
        if (!w->skipped && w->start_s < heard_s && w->at <= n && w->bytes <= n - w->at) {
            end = max(end, w->at + w->bytes); /* what is said again stands before */
        }
    }
    for (size_t i = 0; i < l->n; i++) {
        next = l->at[i].at >= end ? min(next, l->at[i].at) : next;
    }
    while (end > 0 && end < next && !is_white(text[end])) {
        end++;
    }
    return end;
}

static bool next_word(const char *text, size_t n, size_t *at, size_t *bytes)
{
    size_t from = *at;
    while (from < n && is_white(text[from])) {
        from++;
    }
    size_t to = from;
    while (to < n && !is_white(text[to])) {
        to++;
    }
    *at = from;
    *bytes = to - from;
    return to > from;
}

size_t words_share(const char *text, size_t n, double heard_s, double seconds)
{
    size_t at = 0, bytes, end = 0;
    while (next_word(text, n, &at, &bytes)) {
        double begins_s = n ? seconds * (double)at / (double)n : 0;
        if (heard_s <= begins_s) {
            break;
        }
        end = at + bytes;
        at = end;
    }
    return end;
}

size_t word_list_size(const struct word_list *l)
{
    return l->room * sizeof *l->at;
}

void word_list_fini(struct word_list *l)
{
    memory_free(l->at);
    *l = (struct word_list){0};
}
