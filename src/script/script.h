/* SPDX-License-Identifier: Apache-2.0
 * What a text asks for besides its words: markup, speakers, a dictionary, numbers in words. Text comes in, whole or in
 * pieces cut anywhere; out go spans: the words as they are spoken, how, and where they stand in the source. Pure. */
#ifndef SCRIPT_SCRIPT_H
#define SCRIPT_SCRIPT_H

#include "text/chars.h"

/* Bytes of spoken text and the bytes of the source that they come from: one for one, or all for all. */
struct script_run {
    size_t spoken, n;
    size_t source, source_n;
    bool same;  /* one for one: n == source_n */
    bool fixed; /* the markup said how: neither dictionary nor numbers change it */
};

/* How a span is spoken. Strings belong to the script; NULL: as the reading. */
struct script_style {
    const char *voice, *language;
    double rate, volume; /* 1: as it is */
    bool heading;
};

struct script_span {
    struct script_style style;
    double pause_s; /* exactly so much quiet before it; below 0: what the punctuation asks for */
    struct chars text;
    struct script_run *runs; /* in their order; all bytes of the text have one */
    size_t n_runs, runs_room;
};

/* Pauses that stand together are at most so long: their quiet is made at once. */
enum { SCRIPT_MOST_PAUSE_S = 600 };

struct script_options {
    int markup;                /* UTTER_MARKUP_ */
    const char *cast;          /* lines NAME = voice, or NULL */
    const char *lexicon;       /* lines term = respelling, or NULL */
    bool spell_out;            /* numbers, dates and the like in words */
    const char *language;      /* of the text where it does not say so; NULL: by its letters */
    const char *voice;         /* name of the voice, for the dictionary; NULL: none */
    utter_written_fn *written; /* NULL: nobody asks */
    void *written_user;
};

struct script;

/* Whether the options ask for other words than those of the text: without that it needs no script. */
bool script_is_wanted(const struct script_options *options);
/* The strings of the options are read here and not kept. A cast or lexicon with a wrong line is refused. */
utter_status script_open(
    struct script **script, const struct script_options *options, utter_error *error);
/* Malformed markup is refused in one sentence with its line and column. SSML gives its spans when it has ended, all
 * else paragraph by paragraph. */
utter_status script_text(struct script *script, const char *text, size_t bytes, utter_error *error);
utter_status script_finish(struct script *script, utter_error *error);
/* The next span goes to the caller, who ends it with script_span_fini. False: text is needed, or the end. A last span
 * without text is a pause. */
bool script_next(struct script *script, struct script_span *span);
bool script_is_done(const struct script *script); /* finished, and all spans were taken */
/* The style of the next span that this call has not given; NULL behind the last. Valid until the next text. */
const struct script_style *script_next_style(struct script *script);
/* A note that a language which the text names is not spoken here. */
void script_note_language(struct script *script, const char *language);
/* What was dropped, one sentence a call, each kind once; NULL: nothing more. Borrowed until the next call. */
const char *script_note(struct script *script);
void script_free(struct script **script);

void script_span_fini(struct script_span *span);
/* The bytes of the source that spoken bytes [at, at + n) of the span come from. */
void script_source(
    const struct script_span *span, size_t at, size_t n, size_t *source, size_t *source_n);

/* Whether a plain text looks as if markup was meant: it begins with an element of SSML. */
bool script_looks_like_ssml(const char *text, size_t n);

#endif
