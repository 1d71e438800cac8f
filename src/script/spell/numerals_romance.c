/* SPDX-License-Identifier: Apache-2.0
 * French, Spanish, Portuguese (of Brazil) and Italian numbers in words. */
#include <string.h>

#include "script/spell/numerals.h"

static bool ends_in(const struct phrase *w, const char *text)
{
    size_t n = strlen(text);
    return w->status == UTTER_OK && w->out->n >= n && memcmp(w->out->at + w->out->n - n, text, n) == 0;
}

/* ---- French ---- */

static const char *const french_small[] = {"", "un", "deux", "trois", "quatre", "cinq", "six", "sept",
    "huit", "neuf", "dix", "onze", "douze", "treize", "quatorze", "quinze", "seize", "dix-sept",
    "dix-huit", "dix-neuf"};
static const char *const french_tens[] = {"", "", "vingt", "trente", "quarante", "cinquante",
    "soixante", "soixante", "quatre-vingt", "quatre-vingt"};

/* 1 to 999; `last`: hundreds and four-twenties that end the number have their s. */
static void french_below_thousand(struct phrase *w, uint64_t n, bool last)
{
    uint64_t hundreds = n / 100;
    n %= 100;
    if (hundreds > 1) {
        phrase_say(w, french_small[hundreds]);
    }
    if (hundreds > 0) {
        phrase_say(w, hundreds > 1 && n == 0 && last ? "cents" : "cent");
    }
    if (n < 20) {
        phrase_say(w, french_small[n]);
        return;
    }
    uint64_t ten = n / 10, one = n % 10 + (ten == 7 || ten == 9 ? 10 : 0);
    phrase_say(w, french_tens[ten]);
    if (one == 0) {
        phrase_add(w, ten == 8 && last ? "s" : "");
    } else if ((one == 1 || one == 11) && ten < 8) {
        phrase_say(w, "et");
        phrase_say(w, french_small[one]);
    } else {
        phrase_add(w, "-");
        phrase_add(w, french_small[one]);
    }
}

void numeral_french(struct phrase *w, uint64_t n, enum gender gender)
{
    static const struct {
        uint64_t value;
        const char *one, *many;
    } big[] = {{1000000000000, "billion", "billions"}, {1000000000, "milliard", "milliards"},
        {1000000, "million", "millions"}};
    for (size_t i = 0; i < sizeof big / sizeof *big; i++) {
        uint64_t count = n / big[i].value;
        n %= big[i].value;
        if (count > 0) {
            french_below_thousand(w, count, true);
            phrase_say(w, count > 1 ? big[i].many : big[i].one);
        }
    }
    if (n >= 1000) {
        if (n >= 2000) {
            french_below_thousand(w, n / 1000, false);
        }
        phrase_say(w, "mille");
        n %= 1000;
    }
    french_below_thousand(w, n, true);
    phrase_add(w, gender == FEMININE && n % 10 == 1 && ends_in(w, "un") ? "e" : "");
}

void ordinal_french(struct phrase *w, uint64_t n, enum gender gender)
{
    if (n == 1) {
        phrase_say(w, gender == FEMININE ? "première" : "premier");
        return;
    }
    numeral_french(w, n, COUNTING);
    if (ends_in(w, "cinq")) {
        phrase_add(w, "u");
    } else if (ends_in(w, "neuf")) {
        w->out->n--;
        phrase_add(w, "v");
    } else if (ends_in(w, "e") || ends_in(w, "cents") || ends_in(w, "vingts")) {
        w->out->n--;
    }
    phrase_add(w, "ième");
}

/* ---- Spanish ---- */

static const char *const spanish_small[] = {"", "uno", "dos", "tres", "cuatro", "cinco", "seis",
    "siete", "ocho", "nueve", "diez", "once", "doce", "trece", "catorce", "quince", "dieciséis",
    "diecisiete", "dieciocho", "diecinueve", "veinte", "veintiuno", "veintidós", "veintitrés",
    "veinticuatro", "veinticinco", "veintiséis", "veintisiete", "veintiocho", "veintinueve"};
static const char *const spanish_tens[] = {
    "", "", "", "treinta", "cuarenta", "cincuenta", "sesenta", "setenta", "ochenta", "noventa"};
static const char *const spanish_hundreds[] = {"", "ciento", "doscient", "trescient", "cuatrocient",
    "quinient", "seiscient", "setecient", "ochocient", "novecient"};

/* 1 to 999. Before a noun of men "uno" is "un". */
static void spanish_below_thousand(struct phrase *w, uint64_t n, enum gender gender)
{
    if (n == 100) {
        phrase_say(w, "cien");
        return;
    }
    phrase_say(w, spanish_hundreds[n / 100]);
    phrase_add(w, n >= 200 ? gender == FEMININE ? "as" : "os" : "");
    n %= 100;
    if (n >= 30) {
        phrase_say(w, spanish_tens[n / 10]);
        n %= 10;
        phrase_say(w, n ? "y" : "");
    }
    if (n % 10 == 1 && n != 11 && gender != COUNTING) {
        phrase_say(w, gender == FEMININE ? n == 21 ? "veintiuna" : "una" : n == 21 ? "veintiún" : "un");
    } else {
        phrase_say(w, spanish_small[n]);
    }
}

static void spanish_below_million(struct phrase *w, uint64_t n, enum gender gender)
{
    if (n >= 1000) {
        if (n >= 2000) {
            spanish_below_thousand(w, n / 1000, gender == FEMININE ? FEMININE : MASCULINE);
        }
        phrase_say(w, "mil");
    }
    spanish_below_thousand(w, n % 1000, gender);
}

void numeral_spanish(struct phrase *w, uint64_t n, enum gender gender)
{
    static const struct {
        uint64_t value;
        const char *one, *many;
    } big[] = {{1000000000000, "billón", "billones"}, {1000000, "millón", "millones"}};
    for (size_t i = 0; i < 2; i++) {
        uint64_t count = n / big[i].value;
        n %= big[i].value;
        if (count > 0) {
            spanish_below_million(w, count, MASCULINE);
            phrase_say(w, count > 1 ? big[i].many : big[i].one);
        }
    }
    spanish_below_million(w, n, gender);
}

/* The ordinals of each decimal place, as stems that take o or a. */
struct ordinal_stems {
    const char *ones[10], *tens[10], *hundreds[10];
};

static void ordinal_by_place(
    struct phrase *w, const struct ordinal_stems *p, uint64_t n, enum gender gender)
{
    const char *ending = gender == FEMININE ? "a" : "o";
    const char *const parts[] = {p->hundreds[n / 100 % 10], p->tens[n / 10 % 10], p->ones[n % 10]};
    for (size_t i = 0; i < 3; i++) {
        if (*parts[i]) {
            phrase_say(w, parts[i]);
            phrase_add(w, ending);
        }
    }
}

void ordinal_spanish(struct phrase *w, uint64_t n, enum gender gender)
{
    static const struct ordinal_stems stems = {
        {"", "primer", "segund", "tercer", "cuart", "quint", "sext", "séptim", "octav", "noven"},
        {"", "décim", "vigésim", "trigésim", "cuadragésim", "quincuagésim", "sexagésim", "septuagésim",
            "octogésim", "nonagésim"},
        {"", "centésim", "ducentésim", "tricentésim", "cuadringentésim", "quingentésim", "sexcentésim",
            "septingentésim", "octingentésim", "noningentésim"}};
    if (n == 11 || n == 12) {
        phrase_say(w, n == 11 ? "undécim" : "duodécim");
        phrase_add(w, gender == FEMININE ? "a" : "o");
    } else if (n < 1000) {
        ordinal_by_place(w, &stems, n, gender);
    } else {
        numeral_spanish(w, n, gender == FEMININE ? FEMININE : COUNTING);
    }
}

/* ---- Portuguese ---- */

static const char *const portuguese_small[] = {"", "um", "dois", "três", "quatro", "cinco", "seis",
    "sete", "oito", "nove", "dez", "onze", "doze", "treze", "catorze", "quinze", "dezesseis",
    "dezessete", "dezoito", "dezenove"};
static const char *const portuguese_tens[] = {
    "", "", "vinte", "trinta", "quarenta", "cinquenta", "sessenta", "setenta", "oitenta", "noventa"};
static const char *const portuguese_hundreds[] = {"", "cento", "duzent", "trezent", "quatrocent",
    "quinhent", "seiscent", "setecent", "oitocent", "novecent"};

static void portuguese_below_thousand(struct phrase *w, uint64_t n, enum gender gender)
{
    bool before = n >= 100;
    if (n == 100) {
        phrase_say(w, "cem");
        return;
    }
    phrase_say(w, portuguese_hundreds[n / 100]);
    phrase_add(w, n >= 200 ? gender == FEMININE ? "as" : "os" : "");
    n %= 100;
    if (n >= 20) {
        phrase_say(w, before ? "e" : "");
        phrase_say(w, portuguese_tens[n / 10]);
        n %= 10;
        before = true;
    }
    phrase_say(w, n > 0 && before ? "e" : "");
    phrase_say(w, gender == FEMININE && n > 0 && n < 3 ? n == 1 ? "uma" : "duas" : portuguese_small[n]);
}

/* Whether "e" stands before the last group, n < 1000. */
static bool joined(uint64_t n)
{
    return n > 0 && (n < 100 || n % 100 == 0);
}

void numeral_portuguese(struct phrase *w, uint64_t n, enum gender gender)
{
    static const struct {
        uint64_t value;
        const char *one, *many;
    } big[] = {{1000000000000, "trilhão", "trilhões"}, {1000000000, "bilhão", "bilhões"},
        {1000000, "milhão", "milhões"}};
    bool before = false;
    for (size_t i = 0; i < sizeof big / sizeof *big; i++) {
        uint64_t count = n / big[i].value;
        n %= big[i].value;
        if (count > 0) {
            portuguese_below_thousand(w, count, MASCULINE);
            phrase_say(w, count > 1 ? big[i].many : big[i].one);
            before = true;
        }
    }
    if (n >= 1000) {
        phrase_say(w, before && n % 1000 == 0 && joined(n / 1000) ? "e" : "");
        if (n >= 2000) {
            portuguese_below_thousand(w, n / 1000, gender);
        }
        phrase_say(w, "mil");
        n %= 1000;
        before = true;
    }
    phrase_say(w, before && joined(n) ? "e" : "");
    portuguese_below_thousand(w, n, gender);
}

void ordinal_portuguese(struct phrase *w, uint64_t n, enum gender gender)
{
    static const struct ordinal_stems stems = {
        {"", "primeir", "segund", "terceir", "quart", "quint", "sext", "sétim", "oitav", "non"},
        {"", "décim", "vigésim", "trigésim", "quadragésim", "quinquagésim", "sexagésim", "septuagésim",
            "octogésim", "nonagésim"},
        {"", "centésim", "ducentésim", "tricentésim", "quadringentésim", "quingentésim", "sexcentésim",
            "septingentésim", "octingentésim", "noningentésim"}};
    if (n < 1000) {
        ordinal_by_place(w, &stems, n, gender);
    } else {
        numeral_portuguese(w, n, gender == FEMININE ? FEMININE : COUNTING);
    }
}

/* ---- Italian ---- */

static const char *const italian_small[] = {"", "uno", "due", "tre", "quattro", "cinque", "sei",
    "sette", "otto", "nove", "dieci", "undici", "dodici", "tredici", "quattordici", "quindici",
    "sedici", "diciassette", "diciotto", "diciannove"};
static const char *const italian_tens[] = {
    "", "", "venti", "trenta", "quaranta", "cinquanta", "sessanta", "settanta", "ottanta", "novanta"};

/* 1 to 999 in one word. */
static void italian_below_thousand(struct phrase *w, uint64_t n)
{
    bool before = n >= 20;
    if (n >= 100) {
        phrase_add(w, n >= 200 ? italian_small[n / 100] : "");
        phrase_add(w, "cento");
        n %= 100;
        w->out->n -= (n / 10 == 8 || n == 8) && w->status == UTTER_OK; /* centottanta */
    }
    if (n >= 20) {
        phrase_add(w, italian_tens[n / 10]);
        n %= 10;
        w->out->n -= (n == 1 || n == 8) && w->status == UTTER_OK; /* ventuno, ventotto */
    }
    phrase_add(w, n == 3 && before ? "tré" : italian_small[n]);
}

void numeral_italian(struct phrase *w, uint64_t n, enum gender gender)
{
    static const struct {
        uint64_t value;
        const char *one, *many;
    } big[] = {{1000000000000, "un bilione", "bilioni"}, {1000000000, "un miliardo", "miliardi"},
        {1000000, "un milione", "milioni"}};
    for (size_t i = 0; i < sizeof big / sizeof *big; i++) {
        uint64_t count = n / big[i].value;
        n %= big[i].value;
        if (count == 1) {
            phrase_say(w, big[i].one);
        } else if (count > 1) {
            phrase_blank(w);
            italian_below_thousand(w, count);
            phrase_say(w, big[i].many);
        }
    }
    if (n == 0) {
        return;
    }
    phrase_blank(w);
    if (n == 1 && gender != COUNTING) {
        phrase_add(w, gender == FEMININE ? "una" : "un");
        return;
    }
    if (n >= 1000) {
        if (n >= 2000) {
            italian_below_thousand(w, n / 1000);
        }
        /* tre is not stressed within a word */
        if (ends_in(w, "tré")) {
            w->out->n -= strlen("é");
            phrase_add(w, "e");
        }
        phrase_add(w, n >= 2000 ? "mila" : "mille");
        bool three = n % 1000 == 3;
        phrase_add(w, three ? "tré" : "");
        n = three ? 0 : n % 1000;
    }
    italian_below_thousand(w, n);
}

void ordinal_italian(struct phrase *w, uint64_t n, enum gender gender)
{
    static const char *const first[] = {
        "", "prim", "second", "terz", "quart", "quint", "sest", "settim", "ottav", "non", "decim"};
    if (n <= 10) {
        phrase_say(w, first[n]);
    } else {
        numeral_italian(w, n, COUNTING);
        if (ends_in(w, "tré")) {
            w->out->n -= strlen("é");
            phrase_add(w, "e");
        } else if (n % 1000 == 0 && n > 1000) {
            w->out->n--; /* duemila: duemillesimo */
            phrase_add(w, "l");
        } else if (!ends_in(w, "sei")) {
            w->out->n -= w->out->n > 0;
        }
        phrase_add(w, "esim");
    }
    phrase_add(w, gender == FEMININE ? "a" : "o");
}
