/* SPDX-License-Identifier: Apache-2.0
 * Russian numbers in words. */
#include <string.h>

#include "script/spell/numerals.h"

static const char *const ones[] = {"", "один", "два", "три", "четыре", "пять", "шесть", "семь",
    "восемь", "девять", "десять", "одиннадцать", "двенадцать", "тринадцать", "четырнадцать",
    "пятнадцать", "шестнадцать", "семнадцать", "восемнадцать", "девятнадцать"};
static const char *const tens[] = {"", "", "двадцать", "тридцать", "сорок", "пятьдесят", "шестьдесят",
    "семьдесят", "восемьдесят", "девяносто"};
static const char *const hundreds[] = {"", "сто", "двести", "триста", "четыреста", "пятьсот",
    "шестьсот", "семьсот", "восемьсот", "девятьсот"};

static void below_thousand(struct phrase *w, uint64_t n, enum gender gender)
{
    phrase_say(w, hundreds[n / 100]);
    n %= 100;
    if (n >= 20) {
        phrase_say(w, tens[n / 10]);
        n %= 10;
    }
    if (n == 1 && gender >= FEMININE) {
        phrase_say(w, gender == FEMININE ? "одна" : "одно");
    } else {
        phrase_say(w, n == 2 && gender == FEMININE ? "две" : ones[n]);
    }
}

void numeral_russian(struct phrase *w, uint64_t n, enum gender gender)
{
    static const struct {
        uint64_t value;
        const char *forms[3];
    } big[] = {{1000000000000, {"триллион", "триллиона", "триллионов"}},
        {1000000000, {"миллиард", "миллиарда", "миллиардов"}},
        {1000000, {"миллион", "миллиона", "миллионов"}}, {1000, {"тысяча", "тысячи", "тысяч"}}};
    for (size_t i = 0; i < sizeof big / sizeof *big; i++) {
        uint64_t count = n / big[i].value;
        n %= big[i].value;
        if (count > 0) {
            below_thousand(w, count, big[i].value == 1000 ? FEMININE : MASCULINE);
            phrase_say(w, big[i].forms[numeral_form(RU, count)]);
        }
    }
    below_thousand(w, n, gender);
}

/* Stems of ordinals, with the letter that says which endings they take: h (hard), o (stressed), s (third). */
static const char *const ordinal_ones[] = {"", "hперв", "oвтор", "sтрет", "hчетвёрт", "hпят", "oшест",
    "oседьм", "oвосьм", "hдевят", "hдесят", "hодиннадцат", "hдвенадцат", "hтринадцат", "hчетырнадцат",
    "hпятнадцат", "hшестнадцат", "hсемнадцат", "hвосемнадцат", "hдевятнадцат"};
static const char *const ordinal_tens[] = {"", "", "hдвадцат", "hтридцат", "oсороков", "hпятидесят",
    "hшестидесят", "hсемидесят", "hвосьмидесят", "hдевяност"};
static const char *const ordinal_hundreds[] = {"", "hсот", "hдвухсот", "hтрёхсот", "hчетырёхсот",
    "hпятисот", "hшестисот", "hсемисот", "hвосьмисот", "hдевятисот"};

/* "го": genitive, "м": prepositional, "му": dative, "ым": instrumental; else the nominative of the gender. */
static void say_stem(struct phrase *w, const char *stem, enum gender gender, const char *ending)
{
    static const char *const masculine[] = {"ый", "ой", "ий"};
    int kind = stem[0] == 'h' ? 0 : stem[0] == 'o' ? 1 : 2;
    phrase_say(w, stem + 1);
    if (ending && strcmp(ending, "ым") == 0) {
        phrase_add(w, kind == 2 ? "ьим" : ending);
    } else if (ending && *ending) {
        phrase_add(w, kind == 2 ? "ье" : "о");
        phrase_add(w, ending);
    } else if (gender == FEMININE) {
        phrase_add(w, kind == 2 ? "ья" : "ая");
    } else if (gender == NEUTER) {
        phrase_add(w, kind == 2 ? "ье" : "ое");
    } else {
        phrase_add(w, masculine[kind]);
    }
}

/* "двухтысячный" is one word; of more than ten thousands only the last word changes. */
static void say_thousandth(struct phrase *w, uint64_t count, enum gender gender, const char *ending)
{
    static const char *const stems[] = {"", "hтысячн", "hдвухтысячн", "hтрёхтысячн", "hчетырёхтысячн",
        "hпятитысячн", "hшеститысячн", "hсемитысячн", "hвосьмитысячн", "hдевятитысячн",
        "hдесятитысячн"};
    if (count > 10) {
        below_thousand(w, count, MASCULINE);
    }
    say_stem(w, stems[count > 10 ? 1 : count], gender, ending);
}

void ordinal_russian(struct phrase *w, uint64_t n, enum gender gender, const char *ending)
{
    uint64_t rest = n % 100, hundred = n % 1000;
    if (n > 1000 && n < 2000) { /* a year, as a rule */
        phrase_say(w, "тысяча");
        n -= 1000;
    }
    if (hundred == 0) {
        say_thousandth(w, n / 1000, gender, ending);
    } else if (rest == 0) {
        numeral_russian(w, n - hundred, MASCULINE);
        say_stem(w, ordinal_hundreds[hundred / 100], gender, ending);
    } else if (rest < 20) {
        numeral_russian(w, n - rest, MASCULINE);
        say_stem(w, ordinal_ones[rest], gender, ending);
    } else if (rest % 10 == 0) {
        numeral_russian(w, n - rest, MASCULINE);
        say_stem(w, ordinal_tens[rest / 10], gender, ending);
    } else {
        numeral_russian(w, n - rest % 10, MASCULINE);
        say_stem(w, ordinal_ones[rest % 10], gender, ending);
    }
}
