/* SPDX-License-Identifier: Apache-2.0
 * Cuts a text where a reader breathes. Text comes in, whole or in pieces cut anywhere; out go pieces that are spoken
 * one after the other. Where a text is cut does not depend on how it arrived. Owns the text that has not gone out. */
#ifndef READING_CUT_H
#define READING_CUT_H

#include "text/chars.h"

/* What stands behind a piece, from the shortest pause to the longest. */
enum cut_end { CUT_CHARACTER, CUT_WORD, CUT_CLAUSE, CUT_SENTENCE, CUT_PARAGRAPH };

/* Zero it, set `most`. */
struct cutter {
    size_t most; /* units (marks_units) of a piece */
    struct chars text;
    struct chars source; /* of the newest piece */
    size_t begin;        /* in text.at: what is before it has gone out */
    size_t offset;       /* of text.at[begin] in the source */
    size_t looked;       /* bytes that were there when no piece was to be had */
    bool ended;          /* no more text will come */
    bool part;           /* of a longer text: it does not go out unchanged, though it is one piece */
    size_t n_pieces;
};

/* A piece. Valid until the next call. */
struct cut_piece {
    /* In the source: without the white space around it. */
    size_t at, bytes;
    /* As it is spoken: white space in the middle is one blank. Of a text that is one piece: the text, unchanged. */
    const char *text;
    size_t text_bytes, units;
    /* Before white space was folded, and where its text begins in the source. NULL: nothing was folded. */
    const char *source;
    size_t source_bytes, text_at;
    bool no_memory; /* for the source */
    enum cut_end end;
    bool speaks; /* has a letter or a digit at least */
    bool last;   /* nothing but white space is behind it */
};

utter_status cutter_text(struct cutter *cutter, const char *text, size_t bytes, utter_error *error);
void cutter_finish(struct cutter *cutter);
/* The next piece: no longer than `most` where a word is not. False: it depends on text to come, or there is none. A
 * text of no more than `most` is one piece. Of a longer one the first piece is its first sentence or two, so that it
 * sounds as soon as a sentence does, the others as many sentences of a paragraph as there is room for; a sentence that
 * is too long is cut at its clauses, into parts of about the same length. */
bool cutter_next(struct cutter *cutter, struct cut_piece *piece);
/* While the first piece is not to be had: so many bytes of the text it begins with, unchanged, whatever comes. */
size_t cutter_certain(const struct cutter *cutter);
bool cutter_is_done(const struct cutter *cutter);
/* What text[0..n) ends, by its last mark and the line breaks behind it. */
enum cut_end cut_end_of(const char *text, size_t n);
/* Bytes of the first sentence of text[0..n), with the white space behind it; 0: it may go on. `ended`: no text will
 * come. */
size_t cut_sentence(const char *text, size_t n, bool ended);

void cutter_fini(struct cutter *cutter);

#endif
