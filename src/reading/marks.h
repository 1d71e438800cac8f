/* SPDX-License-Identifier: Apache-2.0
 * What the characters of a text mean to who reads it aloud: white space, marks, how long a character takes. Pure. */
#ifndef READING_MARKS_H
#define READING_MARKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The character at text[0..n), n > 0, and its length; a byte that begins none stands for itself, as U+FFFD. */
size_t marks_get(const char *text, size_t n, uint32_t *code);
/* The last character of text[0..n), n > 0, and its length. */
size_t marks_last(const char *text, size_t n, uint32_t *code);

bool marks_is_white(uint32_t code);
bool marks_is_break(uint32_t code);  /* of a line */
bool marks_is_wide(uint32_t code);   /* of East Asia, where no blank stands between words */
bool marks_is_lower(uint32_t code);  /* a small letter */
bool marks_is_spoken(uint32_t code); /* a letter, a digit or a sign that has a name */
bool marks_is_digit(uint32_t code);
bool marks_is_closing(uint32_t code); /* a quote or bracket that belongs to what it closes */

enum mark {
    MARK_NONE,
    MARK_CLAUSE,      /* , ; : and dashes: before white space */
    MARK_SENTENCE,    /* . ! ? and the like: before white space */
    MARK_CLAUSE_WIDE, /* of East Asia: no white space is asked for */
    MARK_SENTENCE_WIDE,
};
enum mark marks_of(uint32_t code);

/* How long it takes to say a character, in letters of an alphabet. */
size_t marks_units(uint32_t code);

/* Whether the full stop behind word[0..n) belongs to an abbreviation or a number, so that no sentence ends there.
 * `next`: the first character behind the white space that follows. */
bool marks_is_short_form(const char *word, size_t n, uint32_t next);

#endif
