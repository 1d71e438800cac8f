/* SPDX-License-Identifier: Apache-2.0
 * What the readers of markup share: the script that they fill, span by span. */
#ifndef SCRIPT_SCRIPT_PARTS_H
#define SCRIPT_SCRIPT_PARTS_H

#include "script/lexicon.h"
#include "script/script.h"

enum { SCRIPT_MOST_NOTES = 16 };

struct script {
    int markup;   /* UTTER_MARKUP_ */
    bool decided; /* what `auto` means here */
    bool spell_out, finished;
    char *language, *voice;
    struct cast *cast;
    struct lexicon *lexicon;
    struct chars pending; /* source that no span holds yet */
    size_t offset;        /* of pending.at[0] in the source */
    size_t line;          /* the same, from 1 */

    struct script_style style; /* of what comes now */
    struct script_span now;    /* the span that is being filled */
    bool boundary;             /* a blank would stand at the beginning of a line */
    const char *speaker;       /* the cast's voice for this paragraph */

    utter_written_fn *written; /* NULL: nobody asks */
    void *written_user;
    uint32_t written_last; /* its last character, without marks on it and what closes */
    /* Since then markup has changed the style or paused; white space stood there, or the end of a paragraph, which
     * were not told. */
    bool written_parts, written_white;

    struct script_span *spans; /* ready ones: [from, n) */
    size_t from, n_spans, spans_room;
    size_t n_styles; /* of spans, script_next_style has given */
    char **names;    /* voices and languages of styles */
    size_t n_names, names_room;
    char *notes[SCRIPT_MOST_NOTES];
    int n_notes, notes_given;
    struct chars unknown; /* names of elements that were left out */
};

/* ---- Filling spans (span.c) ---- */

/* Spoken bytes and where they come from: the same ones, or others. Errors are of memory only. */
utter_status span_same(struct script *s, const char *text, size_t n, size_t source, utter_error *error);
utter_status span_other(struct script *s, const char *text, size_t n, size_t source, size_t source_n,
    bool fixed, utter_error *error);
/* The same for any span, as the run says, but for where it stands in the span. */
utter_status span_add(
    struct script_span *span, const char *text, const struct script_run *run, utter_error *error);
/* The same bytes as they are written, whatever is spoken for them. Where markup has kept words apart, a blank does. */
void span_written(struct script *s, const char *text, size_t n, size_t source, size_t source_n);
/* Puts the span that is being filled in line, with or without text. */
utter_status span_put(struct script *s, utter_error *error);
/* Ends the span that is being filled, where it has text, and puts it in line. */
utter_status span_end(struct script *s, utter_error *error);
/* What comes now is spoken in this style; a pause before it. */
utter_status span_style(struct script *s, const struct script_style *style, utter_error *error);
utter_status span_pause(struct script *s, double seconds, utter_error *error);
/* The end of a sentence or a paragraph that the markup says, whatever the marks are. */
utter_status span_sentence(struct script *s, size_t source, utter_error *error);
utter_status span_paragraph(struct script *s, size_t source, utter_error *error);
/* A voice or language that a style names: a string that lives as long as the script, the same one for the same bytes.
 * Too many of them are refused. */
utter_status script_name(
    struct script *s, const char *text, size_t n, const char **name, utter_error *error);
/* A note, unless it was made before. */
void script_add_note(struct script *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Spoken text of a span after dictionary and numbers (rewrite.c). */
utter_status span_rewrite(struct script *s, struct script_span *span, utter_error *error);

/* ---- Readers of markup: the source text[0..n), which begins at s->offset ---- */

utter_status ssml_read(struct script *s, const char *text, size_t n, utter_error *error);
utter_status tags_read(struct script *s, const char *text, size_t n, utter_error *error);

/* ---- Values (values.c); false: it is none ---- */

bool value_pause(const char *text, size_t n, double *seconds); /* 500ms, 1.5s, 0..60 s */
bool value_strength(const char *text, size_t n, double *seconds);
bool value_rate(const char *text, size_t n, double *rate); /* 120%, +20%, 1.2, slow */
bool value_volume(const char *text, size_t n, double *volume);

/* ---- Cast (cast.c) ---- */

utter_status cast_read(struct cast **cast, const char *text, utter_error *error);
/* The voice of who speaks the line text[0..n), and in *words where its words begin; NULL: nobody of the cast. */
const char *cast_find(const struct cast *cast, const char *line, size_t n, size_t *words);
/* The voice of lines that nobody speaks; NULL: the reading's. */
const char *cast_narrator(const struct cast *cast);
void cast_free(struct cast **cast);

#endif
