/* SPDX-License-Identifier: Apache-2.0
 * What the files of words share. */
#ifndef WORDS_WORDS_PARTS_H
#define WORDS_WORDS_PARTS_H

#include "words/words.h"

/* Where the way through the text meets a word. */
struct words_place {
    int token;     /* that its first byte is in */
    int enter;     /* frame, path_enter */
    int64_t start; /* sample, before it is trimmed */
};

/* Without heads: shares of what is loud. All words when `ended`, else those that have probably begun. */
void words_guess(struct words *w);

#endif
