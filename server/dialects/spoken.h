/* SPDX-License-Identifier: Apache-2.0
 * What of a text was said when: from the times of its words, or from the length of its sound alone, the time of each
 * letter. Pure. */
#ifndef SERVER_SPOKEN_H
#define SERVER_SPOKEN_H

#include <stdbool.h>
#include <stddef.h>

#include "server/speech/words.h"

/* A text whose letters are told in order, each once. Zero it before the first. */
struct spoken {
    size_t told;     /* bytes */
    double told_s;   /* until where the sound is told */
    double letter_s; /* where the last letter ends */
};

/* Hears of a character of UTF-8, or of a part of one where the text is none. */
typedef void spoken_letter(void *user, const char *letter, size_t bytes, double start_s, double end_s);

/* Tells the letters of text[0..n_text) up to the end of the last of these n words; where `next` says that one more
 * follows them, up to that. Times of words count from where the sound of the text begins. */
void spoken_words(struct spoken *s, const char *text, size_t n_text, const struct speech_word *words,
    size_t n, bool next, spoken_letter *tell, void *user);
/* Tells the rest, which ends with the sound; then a space of no length, unless one ends the text: whoever puts words
 * together from letters takes the last one for whole. */
void spoken_rest(
    struct spoken *s, const char *text, size_t n, double end_s, spoken_letter *tell, void *user);

#endif
