/* SPDX-License-Identifier: Apache-2.0
 * Where words begin and end. Pure; text is valid UTF-8. */
#ifndef SCRIPT_LETTERS_H
#define SCRIPT_LETTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool letters_is_word(uint32_t code);   /* a letter, a digit, or a mark on one */
bool letters_is_wide(uint32_t code);   /* of Chinese or Japanese: no blank stands between words */
bool letters_is_hangul(uint32_t code); /* a syllable of Korean, whose words stand between blanks */
bool letters_is_mark(uint32_t code);   /* an accent or the like, on the character before it */
bool letters_closes(uint32_t code);    /* a quotation or a bracket */
/* A letter or digit of a script that has blanks between its words. */
bool letters_is_spaced(uint32_t code);
/* The character before text[at], 0 at the beginning; and the one at it, 0 at the end. */
uint32_t letters_before(const char *text, size_t at);
uint32_t letters_at(const char *text, size_t n, size_t at);
/* Whether a word may begin or end between text[at - 1] and text[at]. */
bool letters_border(const char *text, size_t n, size_t at);

/* The bytes of a mark of byte order that text[0..n) begins with, or 0. */
size_t letters_byte_order(const char *text, size_t n);
/* text[0..n) without blanks, tabs and carriage returns at its ends. */
void letters_trim(const char **text, size_t *n);

#endif
