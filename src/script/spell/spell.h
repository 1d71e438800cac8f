/* SPDX-License-Identifier: Apache-2.0
 * Numbers, dates, times, units, money, ordinals and phone numbers in words of ten languages. Pure. */
#ifndef SCRIPT_SPELL_H
#define SCRIPT_SPELL_H

#include "text/chars.h"

/* The language of a text as the table of languages names it ("german"): as it is said, or for NULL and "auto" as its
 * letters show, English where they show nothing. */
const char *spell_language(const char *language, const char *text, size_t n);

/* What begins at text[at] and is not read as it is written: its words are added to `words`, its bytes returned. 0:
 * nothing does, or the language is none of the ten. What stands before text[at] is looked at, too. */
size_t spell_at(const char *language, const char *text, size_t n, size_t at, struct chars *words,
    utter_status *status, utter_error *error);

/* As <say-as> asks: cardinal, ordinal, digits, characters, date, time, telephone, currency, unit ... `format` may be
 * "". UTTER_AGAIN: that is not to be had of this text. */
utter_status spell_as(const char *language, const char *as, const char *format, const char *text,
    size_t n, struct chars *words, utter_error *error);

#endif
