/* SPDX-License-Identifier: Apache-2.0
 * A dictionary: how words are spelled so that a voice says them right, by language and voice. Pure. */
#ifndef SCRIPT_LEXICON_H
#define SCRIPT_LEXICON_H

#include "base/error.h"

struct lexicon;

/* Lines "term = respelling" or, from a spreadsheet, with a tab; "# " begins a comment. A line "[de]", "[voice:anna]" or
 * "[de voice:anna]" says whom the lines behind it are for, "[]" that they are for all. A wrong line is refused. */
utter_status lexicon_read(struct lexicon **lexicon, const char *text, utter_error *error);
/* The respelling of the longest term that text[at..n) begins with, as a whole word, and the term's length in *bytes;
 * NULL: there is none. One for the voice goes before one for the language, and that before one for all. A term in small
 * letters stands for words in any case, one with a large letter for itself. */
const char *lexicon_find(const struct lexicon *lexicon, const char *language, const char *voice,
    const char *text, size_t n, size_t at, size_t *bytes);
void lexicon_free(struct lexicon **lexicon); /* accepts a pointer to NULL */

#endif
