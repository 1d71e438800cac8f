/* SPDX-License-Identifier: Apache-2.0
 * A page of HTML or XHTML, however broken: what a reader would read out, as text of a draft. */
#ifndef BOOK_PAGE_H
#define BOOK_PAGE_H

#include "book/parser/draft.h"
#include "book/parser/library.h"

/* A place where a chapter begins. */
struct page_mark {
    const char *id; /* of an element; NULL: the page's beginning */
    const char *title;
    int level;
    bool found;
};

enum page_chapters {
    PAGE_MARKS,    /* chapters begin at marks; without any the page goes on with the last one */
    PAGE_WHOLE,    /* the page is a chapter, named for its first heading or its title */
    PAGE_HEADINGS, /* at its own headings, h1 and h2 */
};

struct page {
    const struct library *library;
    enum page_chapters chapters;
    struct page_mark *marks; /* in their order */
    size_t n_marks;
    const char *source;
    bool about; /* title, author and language of the book stand in its head */
};

void page_read(struct draft *d, const struct page *page, const char *bytes, size_t n);

/* The tree of a page, in UTF-8; NULL after a failure of the draft. */
htmlDocPtr page_parse(struct draft *d, const struct library *l, const char *bytes, size_t n);

/* ---- Trees ---- */

bool node_is(const xmlNode *node, const char *name);               /* an element of this local name */
const char *node_attribute(const xmlNode *node, const char *name); /* or NULL */
/* The next node of the tree behind `node`, in the order of the text, that is below `top`; without its own children
 * when `over`. NULL: none. */
xmlNode *node_next(xmlNode *node, const xmlNode *top, bool over);
/* The text below, squeezed; freed with memory_free. NULL: no memory. */
char *node_text(xmlNode *node);
/* Whether one of the words of the attribute is the word. */
bool node_has_word(const xmlNode *node, const char *attribute, const char *word);

#endif
