/* SPDX-License-Identifier: Apache-2.0
 * What of a text was said when: from the times of its words, or from the length of its sound alone, the time of each
 * letter. Pure. */
#ifndef SERVER_SPOKEN_H
#define SERVER_SPOKEN_H

#include <stdbool.h>
#include <stddef.h>

/* Seconds from where the sound of the text begins. */
struct spoken_word {
    size_t at, bytes; /* in the text */
    double start_s, end_s;
};

/* A text whose letters are told in order, each once. Zero it before the first. */
struct spoken {
    size_t told;   /* bytes */
    double told_s; /* where the last of them ends */
};

/* Hears of a character of UTF-8, or of a part of one where the text is none. */
typedef void spoken_letter(void *user, const char *letter, size_t bytes, double start_s, double end_s);

/* Tells the letters up to the end of the last of these words. */
void spoken_words(struct spoken *s, const char *text, size_t n, const struct spoken_word *words,
    size_t n_words, spoken_letter *tell, void *user);
/* Tells the rest, which ends with the sound; then a space of no length, unless one ends the text: whoever puts words
 * together from letters takes the last one for whole. */
void spoken_rest(
    struct spoken *s, const char *text, size_t n, double end_s, spoken_letter *tell, void *user);

/* The next word of the text at or behind *at: its letters without white space. False: there is none. */
bool spoken_next_word(const char *text, size_t n, size_t *at, size_t *bytes);
/* Bytes of the text whose words have begun to be heard by then, by the share of the letters. */
size_t spoken_share(const char *text, size_t n, double heard_s, double seconds);

#endif
