/* SPDX-License-Identifier: Apache-2.0
 * A book as it is read out: chapters of plain text. Comes in: a file of txt, md, html, epub, srt or vtt, which nobody
 * need trust. Goes out: struct book. */
#ifndef BOOK_BOOK_H
#define BOOK_BOOK_H

#include "base/error.h"

enum { BOOK_MOST_S = 100 * 3600 }; /* where a subtitle may end */

struct chapter {
    char *title;           /* may be empty */
    int level;             /* 1: a part or chapter; 2 and more: inside one */
    char *text;            /* paragraphs, a blank line between two */
    char *source;          /* where in the file it stood: a page of an epub; may be empty */
    double begin_s, end_s; /* of a subtitle: when it is to be heard */
};

struct book {
    char *title, *author, *language; /* empty where the file does not say */
    struct chapter *chapters;
    size_t n_chapters;
    bool timed;           /* subtitles: a chapter is one of them */
    unsigned char *cover; /* a JPEG or PNG as it stood in the file; NULL: none */
    size_t cover_bytes;
};

/* Reads the file in a process without rights (jail.h). */
utter_status book_open(struct book *book, const char *path, utter_error *error);
void book_close(struct book *book); /* accepts a zeroed one */

#endif
