/* SPDX-License-Identifier: Apache-2.0
 * Any text as a script: the first byte says what is asked for, the second in what pieces the text comes. Every byte,
 * spoken or written, knows its place, places never go back, and how the text came changes nothing. What the dictionary
 * or the cast is made of stands behind a zero byte. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "script/script.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void must(bool good)
{
    if (!good) {
        abort();
    }
}

static size_t hash_span(size_t hash, const struct script_span *span, const char *source, size_t n)
{
    size_t at = 0, before = 0, place, place_n;
    for (size_t i = 0; i < span->n_runs; i++) {
        const struct script_run *run = &span->runs[i];
        must(run->spoken == at && run->n > 0 && run->source >= before);
        must(run->source + run->source_n <= n);
        must(!run->same || memcmp(source + run->source, span->text.at + at, run->n) == 0);
        at += run->n;
        before = run->source + run->source_n;
    }
    must(at == span->text.n);
    script_source(span, at / 2, at - at / 2, &place, &place_n);
    must(place + place_n <= n);
    for (size_t i = 0; i < span->text.n; i++) {
        hash = hash * 31 + (uint8_t)span->text.at[i];
    }
    return hash * 31 + (size_t)(int64_t)(span->pause_s * 1000) + (size_t)(span->style.rate * 100);
}

/* The text as it is written, of a source. */
struct written {
    const char *source;
    size_t n, at, hash;
};

/* A utter_written_fn. */
static void on_written(void *user, uint64_t at, uint64_t bytes, const char *text, size_t n)
{
    struct written *w = user;
    must(n > 0 && at >= w->at && at + bytes <= w->n);
    must(n != bytes || memcmp(text, w->source + at, n) == 0);
    w->at = (size_t)(at + bytes);
    for (size_t i = 0; i < n; i++) {
        w->hash = w->hash * 31 + (uint8_t)text[i];
    }
}

static size_t read_text(const struct script_options *options, const char *text, size_t n, size_t step)
{
    struct script *script;
    struct script_span span;
    struct script_options o = *options;
    struct written written = {.source = text, .n = n};
    size_t hash = 0;
    bool bad;
    o.written = on_written;
    o.written_user = &written;
    utter_status status = script_open(&script, &o, NULL);
    for (size_t at = 0; at < n && status == UTTER_OK; at += step) {
        status = script_text(script, text + at, n - at < step ? n - at : step, NULL);
    }
    status = status ? status : script_finish(script, NULL);
    must(status == UTTER_OK || status == UTTER_E_ARGUMENT);
    while (status == UTTER_OK && script_next(script, &span)) {
        must(utf8_valid(span.text.at ? span.text.at : "", span.text.n, &bad) == span.text.n);
        hash = hash_span(hash, &span, text, n);
        script_span_fini(&span);
    }
    while (status == UTTER_OK && script_note(script)) {
        hash = hash * 31 + 1;
    }
    script_free(&script);
    return status == UTTER_OK ? hash * 31 + written.hash : (size_t)status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const char *const languages[] = {
        NULL, "zh", "en", "ja", "ko", "de", "fr", "ru", "pt", "es", "it", "xx"};
    bool bad;
    if (bytes < 3) {
        return 0;
    }
    char *copy = malloc(bytes + 1);
    must(copy != NULL);
    memcpy(copy, data, bytes);
    copy[bytes] = 0;
    const char *text = copy + 2;
    size_t n = strlen(text), more = n + 3 < bytes ? n + 1 : n;
    struct script_options o = {.markup = (data[0] & 3),
        .spell_out = data[0] & 4,
        .language = languages[(data[0] >> 4) % (sizeof languages / sizeof *languages)]};
    o.lexicon = (data[0] & 8) && (data[1] & 1) ? text + more : NULL;
    o.cast = (data[0] & 8) && !(data[1] & 1) ? text + more : NULL;
    /* Readings refuse what is not UTF-8 before they hand it on. */
    if (utf8_valid(text, n, &bad) == n) {
        must(read_text(&o, text, n, n + 1) == read_text(&o, text, n, 1 + data[1] / 2 % 16));
    }
    free(copy);
    return 0;
}
