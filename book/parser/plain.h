/* SPDX-License-Identifier: Apache-2.0
 * Text without a page around it: txt, Markdown, subtitles. */
#ifndef BOOK_PLAIN_H
#define BOOK_PLAIN_H

#include "book/parser/draft.h"
#include "book/parser/library.h"

void plain_read(struct draft *d, const char *text, size_t n);
void markdown_read(struct draft *d, const struct library *l, const char *text, size_t n);
/* srt and WebVTT. */
void subtitles_read(struct draft *d, const char *text, size_t n);

#endif
