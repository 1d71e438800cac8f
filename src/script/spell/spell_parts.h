/* SPDX-License-Identifier: Apache-2.0
 * What the files that find numbers share. */
#ifndef SCRIPT_SPELL_PARTS_H
#define SCRIPT_SPELL_PARTS_H

#include "script/spell/spell.h"
#include "script/spell/spell_table.h"

/* A place in a text, and its language. */
struct spot {
    enum tongue tongue;
    const struct tongue_words *t;
    const char *text; /* [n], of which text[at] is the place */
    size_t n, at;
    struct phrase *w; /* takes what is said there */
};

static inline bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A number as it is written, without its sign. */
struct number {
    size_t bytes;      /* 0: none is there */
    char digits[64];   /* before the decimal mark, without group marks */
    char decimals[64]; /* behind it */
    size_t n_digits, n_decimals;
    uint64_t value; /* of the digits, where there are few enough */
    bool plain;     /* no zeros in front, and few enough digits to be counted */
};

struct number number_at(const struct spot *s, size_t at);
void number_say(const struct spot *s, const struct number *number, enum gender gender);
/* The unsigned whole number of at most `most` digits at text[at]: its digits, 0: there is none. */
size_t number_digits(const struct spot *s, size_t at, size_t most, unsigned *value);

/* The bytes of `what` at text[at], 0: something else is there. */
size_t spot_has(const struct spot *s, size_t at, const char *what);
/* The same, of a blank or nothing. */
size_t spot_blank(const struct spot *s, size_t at);
/* No letter (of an alphabet) or digit goes on at text[at]. */
bool spot_ends(const struct spot *s, size_t at);
/* The word before text[at], without the blanks between, is one of the list "am vom zum". */
bool spot_behind(const struct spot *s, size_t at, const char *list);

/* What begins at s->at: its bytes, 0: none of these. */
size_t spell_date(const struct spot *s);
size_t spell_time(const struct spot *s);
size_t spell_phone(const struct spot *s);
size_t spell_ordinal(const struct spot *s);
void spell_year(const struct spot *s, uint64_t year);
/* Money whose sign stands in front; and what stands behind a number that ends at `at`: money, a unit, percent. */
size_t spell_money(const struct spot *s);
size_t spell_measure(const struct spot *s, const struct number *number, size_t at, bool negative);

#endif
