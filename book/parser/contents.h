/* SPDX-License-Identifier: Apache-2.0
 * The table of contents of an epub: nav of EPUB 3, NCX of EPUB 2. */
#ifndef BOOK_CONTENTS_H
#define BOOK_CONTENTS_H

#include "book/parser/page.h"
#include "book/parser/zip.h"

struct contents_entry {
    char *title, *page, *fragment; /* fragment: NULL at the beginning of the page */
    int level;
    size_t order; /* in the table */
};

struct contents {
    struct contents_entry *entries; /* by page, then order */
    size_t n, room;
};

void contents_read_nav(
    struct draft *d, const struct library *l, struct contents *c, const struct zip_file *file);
void contents_read_ncx(
    struct draft *d, const struct library *l, struct contents *c, const struct zip_file *file);
/* Once all is read: sorts. */
void contents_sort(struct contents *c);
/* The entries of a page, *n of them. */
struct contents_entry *contents_of(const struct contents *c, const char *page, size_t *n);
void contents_fini(struct contents *c);

/* A file of XML, however broken; NULL: not at all. */
xmlDocPtr contents_xml(const struct library *l, const struct zip_file *file);

#endif
