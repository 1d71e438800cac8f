/* SPDX-License-Identifier: Apache-2.0
 * EPUB 2 and 3: the pages of the spine, chapters where the table of contents says (nav, or NCX; nested), cover,
 * title. */
#ifndef BOOK_EPUB_H
#define BOOK_EPUB_H

#include "book/parser/draft.h"
#include "book/parser/library.h"

void epub_read(struct draft *d, const struct library *l, const char *bytes, size_t n);

#endif
