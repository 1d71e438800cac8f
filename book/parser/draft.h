/* SPDX-License-Identifier: Apache-2.0
 * A book while its file is parsed: text comes in as it stands there, and becomes paragraphs. Runs in the jail. The
 * first failure stays, and what comes later does nothing. */
#ifndef BOOK_DRAFT_H
#define BOOK_DRAFT_H

#include "book/book.h"

enum { DRAFT_MOST_TEXT = 1 << 26, DRAFT_MOST_CHAPTERS = 100000 };

enum draft_gap { GAP_NONE, GAP_BLANK, GAP_LINE, GAP_PARAGRAPH };

struct draft {
    struct book book;
    const char *name; /* of the file, for messages */
    size_t n, room;   /* of the last chapter's text */
    size_t chapters_room, all;
    enum draft_gap gap; /* before the next word */
    utter_status status;
    utter_error error;
};

void draft_fail(struct draft *d, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* What comes from here on is a chapter's. */
void draft_chapter(struct draft *d, const char *title, int level, const char *source);
/* White space in it is one blank. */
void draft_text(struct draft *d, const char *text, size_t n);
void draft_line(struct draft *d);
void draft_paragraph(struct draft *d);
/* Replaces a string of the book (its title) when it is empty. */
void draft_set(struct draft *d, char **place, const char *text, size_t n);
/* Drops chapters without a word. */
void draft_finish(struct draft *d);

/* A copy with one blank for white space, none at the ends. */
char *text_squeezed(const char *text, size_t n);
/* Whether a letter or digit is in it. */
bool text_speaks(const char *text, size_t n);
/* The first byte that is not UTF-8, or n. */
size_t text_valid(const char *text, size_t n);

#endif
