/* SPDX-License-Identifier: Apache-2.0
 * Dictionary, then numbers, over the words of a span; what comes of it still knows its place in the source. */
#include <string.h>

#include "base/memory.h"
#include "base/minmax.h"
#include "script/letters.h"
#include "script/script_parts.h"
#include "script/spell/spell.h"

struct pen {
    const struct script *script;
    const struct script_span *from;
    struct script_span to;
    size_t i_run;   /* of from: that holds `at`, or one before */
    size_t i_fixed; /* the first from there on that the markup has fixed; n_runs: none */
    utter_error *error;
};

static const struct script_run *run_of(struct pen *p, size_t at)
{
    const struct script_run *runs = p->from->runs;
    while (runs[p->i_run].spoken + runs[p->i_run].n <= at) {
        p->i_run++;
    }
    return &runs[p->i_run];
}

/* Bytes behind text[at] up to the next that the markup has fixed. */
static size_t free_bytes(struct pen *p, size_t at)
{
    size_t i = max(p->i_fixed, p->i_run);
    while (i < p->from->n_runs && !p->from->runs[i].fixed) {
        i++;
    }
    p->i_fixed = i;
    return (i < p->from->n_runs ? p->from->runs[i].spoken : p->from->text.n) - at;
}

/* Copies text[at..at + n), all of one run. */
static utter_status copy(struct pen *p, const struct script_run *run, size_t at, size_t n)
{
    struct script_run piece = *run;
    piece.n = n;
    if (run->same) {
        piece.source += at - run->spoken;
        piece.source_n = n;
    }
    return span_add(&p->to, p->from->text.at + at, &piece, p->error);
}

static utter_status replace(struct pen *p, const char *text, size_t n, size_t at, size_t bytes)
{
    struct script_run piece = {.n = n};
    script_source(p->from, at, bytes, &piece.source, &piece.source_n);
    return span_add(&p->to, text, &piece, p->error);
}

/* One step at text[at], whose bytes it returns in *bytes. */
static utter_status step(
    struct pen *p, size_t at, const char *language, struct chars *words, size_t *bytes)
{
    const struct script *s = p->script;
    const struct script_run *run = run_of(p, at);
    const char *text = p->from->text.at, *voice = p->from->style.voice;
    uint32_t code;
    if (run->fixed) {
        *bytes = run->spoken + run->n - at;
        return copy(p, run, at, *bytes);
    }
    size_t limit = at + free_bytes(p, at);
    const char *spelled = s->lexicon ? lexicon_find(s->lexicon, language, voice ? voice : s->voice,
                                           text, limit, at, bytes)
                                     : NULL;
    if (spelled) {
        return replace(p, spelled, strlen(spelled), at, *bytes);
    }
    if (s->spell_out) {
        utter_status status;
        words->n = 0;
        *bytes = spell_at(language, text, limit, at, words, &status, p->error);
        if (status || *bytes > 0) {
            return status ? status : replace(p, words->at, words->n, at, *bytes);
        }
    }
    *bytes = utf8_get(text + at, &code);
    return copy(p, run, at, *bytes);
}

utter_status span_rewrite(struct script *s, struct script_span *span, utter_error *error)
{
    struct pen p = {.script = s,
        .from = span,
        .to = {.style = span->style, .pause_s = span->pause_s},
        .error = error};
    struct chars words = {0};
    utter_status status = UTTER_OK;
    const char *language = span->style.language ? span->style.language : s->language;
    language = spell_language(language, span->text.at, span->text.n);
    for (size_t at = 0, bytes; (s->lexicon || s->spell_out) && at < span->text.n; at += bytes) {
        status = step(&p, at, language, &words, &bytes);
        if (status) {
            script_span_fini(&p.to);
            break;
        }
    }
    if (status == UTTER_OK && (s->lexicon || s->spell_out)) {
        script_span_fini(span);
        *span = p.to;
    }
    chars_fini(&words);
    return status;
}
