/* SPDX-License-Identifier: Apache-2.0
 * Numbers in words of ten languages: cardinals and ordinals. Pure. */
#ifndef SCRIPT_NUMERALS_H
#define SCRIPT_NUMERALS_H

#include "text/chars.h"

/* The order of every table of languages here. */
enum tongue { ZH, EN, JA, KO, DE, FR, RU, PT, ES, IT, N_TONGUES };

/* What is counted; COUNTING: nothing is, the number stands alone. */
enum gender { COUNTING, MASCULINE, FEMININE, NEUTER };

/* What is said in place of a number, as it grows word by word; the first failure stays. */
struct phrase {
    struct chars *out;
    utter_status status;
    utter_error *error;
};

void phrase_add(struct phrase *w, const char *text); /* right behind what is there */
void phrase_blank(struct phrase *w); /* unless nothing is there, or a blank at its end */
/* As a word of its own, with a blank in front; "" adds nothing. */
void phrase_say(struct phrase *w, const char *text);

enum { NUMERAL_MOST_DIGITS = 15 };

void numeral_cardinal(struct phrase *w, enum tongue tongue, uint64_t n, enum gender gender);
/* One of the first 999,999; `ending` is the case where the language has one ("" or NULL: as a title). */
void numeral_ordinal(
    struct phrase *w, enum tongue tongue, uint64_t n, enum gender gender, const char *ending);
/* Digit by digit. */
void numeral_digits(struct phrase *w, enum tongue tongue, const char *digits, size_t n);
/* Which form of a noun stands with n: 0 one, 1 few (2 to 4 in Russian), 2 many. */
int numeral_form(enum tongue tongue, uint64_t n);

/* ---- By language (numerals_*.c); n > 0 but in the first ---- */

void numeral_of_east_asia(struct phrase *w, enum tongue tongue, uint64_t n);
void numeral_korean_native(struct phrase *w, uint64_t n); /* 1 to 99, before a counter */
void numeral_russian(struct phrase *w, uint64_t n, enum gender gender);
void numeral_french(struct phrase *w, uint64_t n, enum gender gender);
void numeral_spanish(struct phrase *w, uint64_t n, enum gender gender);
void numeral_portuguese(struct phrase *w, uint64_t n, enum gender gender);
void numeral_italian(struct phrase *w, uint64_t n, enum gender gender);
void ordinal_russian(struct phrase *w, uint64_t n, enum gender gender, const char *ending);
void ordinal_french(struct phrase *w, uint64_t n, enum gender gender);
void ordinal_spanish(struct phrase *w, uint64_t n, enum gender gender);
void ordinal_portuguese(struct phrase *w, uint64_t n, enum gender gender);
void ordinal_italian(struct phrase *w, uint64_t n, enum gender gender);

#endif
