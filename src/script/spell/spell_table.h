/* SPDX-License-Identifier: Apache-2.0
 * What ten languages call months, units and money, and how they write numbers: data. */
#ifndef SCRIPT_SPELL_TABLE_H
#define SCRIPT_SPELL_TABLE_H

#include "script/spell/numerals.h"

/* How a language writes and says what is around numbers. */
struct tongue_words {
    const char *name;   /* as the table of languages has it */
    char decimal;       /* mark before decimals */
    const char *groups; /* marks between groups of three digits, besides blanks that do not break */
    bool wide;          /* no blanks between words */
    const char *point, *minus, *plus, *to, *percent;
    bool day_first; /* 3/5/2024 is the third of May */
    const char *months[12];
    const char *month_of; /* 3 de mayo */
};
extern const struct tongue_words tongue_table[N_TONGUES];

/* "m:Meter|Meter", "f:минута|минуты|минут": gender, then one, (few,) many; one form for all where there is no bar. */
struct unit {
    const char *symbol;
    const char *names[N_TONGUES];
};
extern const struct unit unit_table[];
extern const size_t unit_count;

struct currency {
    const char *signs; /* separated by blanks: "$ USD US$" */
    int decimals;      /* places of its small coin; 0: it has none */
    const char *names[N_TONGUES], *cents[N_TONGUES];
};
extern const struct currency currency_table[];
extern const size_t currency_count;

/* The gender of a name, and its form for n in out[size]. */
enum gender table_gender(const char *name);
void table_form(const char *name, enum tongue tongue, uint64_t n, char *out, size_t size);

#endif
