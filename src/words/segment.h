/* SPDX-License-Identifier: Apache-2.0
 * Text, whole or in pieces -> its words by the rules of Unicode (UAX 29): what has a letter or a digit between two
 * borders. Ideographs and kana are words of one character. Where words are cut does not depend on how the text
 * arrived. Owns the text whose words are not certain yet. */
#ifndef WORDS_SEGMENT_H
#define WORDS_SEGMENT_H

#include "text/chars.h"

struct segment {
    uint64_t at; /* in the text, in bytes */
    uint32_t bytes;
    uint32_t weight; /* how long it takes to say, in letters of an alphabet */
    bool breathes;   /* a mark stands behind it at which a reader pauses */
};

/* Zero it before use. */
struct segmenter {
    struct chars text;  /* not certain yet */
    struct chars marks; /* scratch: what the library says of each byte */
    uint64_t n_gone;    /* bytes of the whole text before it */
    struct segment *at; /* [n], all words so far */
    size_t n, room;
};

utter_status segmenter_text(struct segmenter *s, const char *text, size_t bytes, utter_error *error);
utter_status segmenter_finish(struct segmenter *s, utter_error *error);
void segmenter_fini(struct segmenter *s);

#endif
