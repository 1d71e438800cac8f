/* SPDX-License-Identifier: Apache-2.0
 * What is spoken and kept as one: some paragraphs of a chapter, about a minute of speech. Where a text is cut
 * depends on nothing but the text. */
#ifndef BOOK_SECTIONS_H
#define BOOK_SECTIONS_H

#include "book/book.h"

/* What follows a section, and how long the pause is. */
enum section_end { SECTION_SENTENCE, SECTION_PARAGRAPH, SECTION_CHAPTER };

struct section {
    size_t chapter;
    char *prefix;     /* tags that hold since before it, or NULL */
    const char *text; /* of the chapter's; no zero at its end */
    size_t bytes;
    enum section_end end;
};

struct sections {
    struct section *at;
    size_t n, room;
    uint64_t bytes; /* of all texts */
};

/* How a chapter is cut. */
struct sections_rules {
    bool whole;       /* not at all */
    bool tags;        /* it holds tags (utter(1), MARKUP), which hold to its end */
    const char *cast; /* whose lines begin with names, as of utter_reading_options; or NULL */
};

/* Adds those of a chapter, whose text must stay. */
utter_status sections_add(struct sections *s, const struct chapter *chapter, size_t number,
    struct sections_rules rules, utter_error *error);
void sections_fini(struct sections *s);

#endif
