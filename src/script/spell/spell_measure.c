/* SPDX-License-Identifier: Apache-2.0
 * Money, units and percent. */
#include <stdio.h>
#include <string.h>

#include "script/letters.h"
#include "script/spell/spell_parts.h"

enum { MOST_FORM = 96 };

static bool no_blanks(const struct spot *s)
{
    return s->t->wide;
}

/* The noun behind a number: "fünf" "Meter". */
static void say_noun(const struct spot *s, const char *noun)
{
    if (no_blanks(s)) {
        phrase_add(s->w, noun);
    } else {
        phrase_say(s->w, noun);
    }
}

static void say_form(const struct spot *s, const char *name, const struct number *number)
{
    char form[MOST_FORM];
    /* Of a part of one: French has the singular below two, Russian the genitive, the others the plural. */
    uint64_t n = number->n_decimals == 0 ? number->value
                 : s->tongue == RU       ? 2
                 : s->tongue == FR       ? (number->value < 2 ? 1 : 2)
                                         : 2;
    table_form(name, s->tongue, number->plain ? n : 2, form, sizeof form);
    say_noun(s, form);
}

/* ---- Money ---- */

/* The sign or code at text[at], of `signs`; 0: none. A code of letters needs its borders. */
static size_t sign_at(const struct spot *s, size_t at, const char *signs, bool behind)
{
    for (const char *sign = signs; *sign; sign += strspn(sign, " ")) {
        char one[16];
        size_t n = strcspn(sign, " ");
        snprintf(one, sizeof one, "%.*s", (int)n, sign);
        size_t bytes = spot_has(s, at, one);
        bool letters = (one[n - 1] >= 'A' && one[n - 1] <= 'Z') || strstr(one, "руб");
        if (bytes > 0 && (!behind || !letters || spot_ends(s, at + bytes))) {
            return bytes;
        }
        sign += n;
    }
    return 0;
}

static void say_small_coin(const struct spot *s, const struct currency *c, uint64_t cents)
{
    char form[MOST_FORM];
    const char *name = c->cents[s->tongue];
    numeral_cardinal(s->w, s->tongue, cents, table_gender(name));
    table_form(name, s->tongue, cents, form, sizeof form);
    say_noun(s, form);
}

/* "un millón de euros" */
static const char *million_of(const struct spot *s, const char *noun)
{
    bool vowel = strchr("aeio", noun[0]) != NULL;
    return s->tongue == ES || s->tongue == PT ? "de"
           : s->tongue == IT                  ? "di"
           : s->tongue != FR                  ? ""
           : vowel                            ? "d'"
                                              : "de";
}

static void say_money(const struct spot *s, const struct currency *c, const struct number *number,
    const char *scale, bool negative)
{
    static const char *const and[N_TONGUES] = {"", "and", "", "", "und", "et", "", "e", "con", "e"};
    const char *name = c->names[s->tongue];
    char form[MOST_FORM];
    bool cents =
        number->n_decimals == 2 && c->decimals == 2 && !*scale && number->plain && !no_blanks(s);
    uint64_t small =
        cents ? (uint64_t)(number->decimals[0] - '0') * 10 + (uint64_t)(number->decimals[1] - '0') : 0;
    struct number whole = *number;
    say_noun(s, negative ? s->t->minus : "");
    if (cents && number->value == 0 && small > 0) {
        say_small_coin(s, c, small);
        return;
    }
    if (cents || (no_blanks(s) && c->decimals == 2)) { /* 3.50: the zero is not said */
        while (whole.n_decimals > 0 && (cents || whole.decimals[whole.n_decimals - 1] == '0')) {
            whole.n_decimals--;
        }
    }
    number_say(s, &whole, table_gender(name));
    if (*scale) {
        phrase_say(s->w, scale);
        table_form(name, s->tongue, 2, form, sizeof form);
        say_noun(s, form);
    } else {
        bool million =
            whole.plain && whole.n_decimals == 0 && whole.value > 0 && whole.value % 1000000 == 0;
        table_form(name, s->tongue, 2, form, sizeof form);
        const char *of = million ? million_of(s, form) : "";
        phrase_say(s->w, of);
        if (strcmp(of, "d'") == 0) {
            phrase_add(s->w, form);
        } else {
            say_form(s, name, &whole);
        }
    }
    if (small > 0) {
        phrase_say(s->w, and[s->tongue]);
        say_small_coin(s, c, small);
    }
}

/* "$5 million": the word between a number and its money. */
static size_t scale_at(const struct spot *s, size_t at, const char **scale)
{
    static const char *const scales[] = {"thousand", "million", "billion", "trillion"};
    size_t blank = spot_blank(s, at);
    for (size_t i = 0; s->tongue == EN && blank && i < sizeof scales / sizeof *scales; i++) {
        size_t n = spot_has(s, at + blank, scales[i]);
        if (n > 0 && spot_ends(s, at + blank + n)) {
            *scale = scales[i];
            return blank + n;
        }
    }
    return 0;
}

size_t spell_money(const struct spot *s)
{
    size_t minus = spot_has(s, s->at, "-");
    for (size_t i = 0; i < currency_count; i++) {
        size_t sign = sign_at(s, s->at + minus, currency_table[i].signs, false);
        size_t at = s->at + minus + sign;
        struct number number = sign ? number_at(s, at + spot_blank(s, at)) : (struct number){0};
        if (number.bytes == 0) {
            continue;
        }
        const char *scale = "";
        at += spot_blank(s, at) + number.bytes;
        at += scale_at(s, at, &scale);
        if (!spot_ends(s, at)) {
            return 0;
        }
        say_money(s, &currency_table[i], &number, scale, minus > 0);
        return at - s->at;
    }
    return 0;
}

/* ---- Behind a number ---- */

static size_t say_percent(const struct spot *s, const struct number *number, size_t at, bool negative)
{
    size_t blank = spot_blank(s, at), n = spot_has(s, at + blank, "%");
    n = n ? n : spot_has(s, at + blank, "％");
    if (n == 0) {
        return 0;
    }
    say_noun(s, negative ? s->t->minus : "");
    if (s->tongue == ZH) {
        phrase_add(s->w, s->t->percent);
        number_say(s, number, COUNTING);
        return blank + n;
    }
    number_say(s, number, table_gender(s->t->percent));
    if (s->tongue == KO) {
        phrase_say(s->w, s->t->percent);
    } else {
        say_form(s, s->t->percent, number);
    }
    return blank + n;
}

size_t spell_measure(const struct spot *s, const struct number *number, size_t at, bool negative)
{
    size_t blank = spot_blank(s, at), n = say_percent(s, number, at, negative);
    if (n > 0) {
        return n;
    }
    for (size_t i = 0; i < currency_count; i++) {
        n = sign_at(s, at + blank, currency_table[i].signs, true);
        if (n > 0) {
            say_money(s, &currency_table[i], number, "", negative);
            return blank + n;
        }
    }
    for (size_t i = 0; i < unit_count; i++) {
        const char *name = unit_table[i].names[s->tongue];
        n = name ? spot_has(s, at + blank, unit_table[i].symbol) : 0;
        uint32_t behind = letters_at(s->text, s->n, at + blank + n);
        bool ends = spot_ends(s, at + blank + n) && behind != '/';
        if (n > 0 && ends) {
            say_noun(s, negative ? s->t->minus : "");
            number_say(s, number, table_gender(name));
            say_form(s, name, number);
            return blank + n;
        }
    }
    return 0;
}
