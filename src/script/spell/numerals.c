/* SPDX-License-Identifier: Apache-2.0
 * Numbers in words: English, German, East Asia, and the way to the other languages. */
#include "script/spell/numerals.h"

#include <stdio.h>
#include <string.h>

void phrase_add(struct phrase *w, const char *text)
{
    if (w->status == UTTER_OK) {
        w->status = chars_add(w->out, text, strlen(text), w->error);
    }
}

void phrase_blank(struct phrase *w)
{
    phrase_add(w, w->out->n > 0 && w->out->at[w->out->n - 1] != ' ' ? " " : "");
}

void phrase_say(struct phrase *w, const char *text)
{
    if (*text) {
        phrase_blank(w);
        phrase_add(w, text);
    }
}

/* ---- English ---- */

static const char *const english_small[] = {"zero", "one", "two", "three", "four", "five", "six",
    "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen",
    "seventeen", "eighteen", "nineteen"};
static const char *const english_tens[] = {
    "", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"};

static void english(struct phrase *w, uint64_t n)
{
    static const struct {
        uint64_t value;
        const char *name;
    } big[] = {{1000000000000, "trillion"}, {1000000000, "billion"}, {1000000, "million"},
        {1000, "thousand"}, {100, "hundred"}};
    for (size_t i = 0; i < sizeof big / sizeof *big; i++) {
        if (n >= big[i].value) {
            english(w, n / big[i].value);
            phrase_say(w, big[i].name);
            n %= big[i].value;
            if (n == 0) {
                return;
            }
        }
    }
    if (n < 20) {
        phrase_say(w, english_small[n]);
        return;
    }
    phrase_say(w, english_tens[n / 10]);
    if (n % 10) {
        phrase_add(w, "-");
        phrase_add(w, english_small[n % 10]);
    }
}

static void english_ordinal(struct phrase *w, uint64_t n)
{
    static const struct {
        const char *end, *ordinal;
    } ends[] = {{"one", "first"}, {"two", "second"}, {"three", "third"}, {"five", "fifth"},
        {"eight", "eighth"}, {"nine", "ninth"}, {"twelve", "twelfth"}, {"y", "ieth"}};
    english(w, n);
    for (size_t i = 0; w->status == UTTER_OK && i < sizeof ends / sizeof *ends; i++) {
        size_t length = strlen(ends[i].end);
        if (w->out->n >= length && memcmp(w->out->at + w->out->n - length, ends[i].end, length) == 0) {
            w->out->n -= length;
            phrase_add(w, ends[i].ordinal);
            return;
        }
    }
    phrase_add(w, "th");
}

/* ---- German ---- */

static const char *const german_small[] = {"null", "ein", "zwei", "drei", "vier", "fünf", "sechs",
    "sieben", "acht", "neun", "zehn", "elf", "zwölf", "dreizehn", "vierzehn", "fünfzehn", "sechzehn",
    "siebzehn", "achtzehn", "neunzehn"};
static const char *const german_tens[] = {
    "", "", "zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig"};

/* 1 to 999,999 in one word; `last`: a one at the end is counted, and is "eins". */
static void german_word(struct phrase *w, uint64_t n, bool last)
{
    if (n >= 1000) {
        german_word(w, n / 1000, false);
        phrase_add(w, "tausend");
        n %= 1000;
    }
    if (n >= 100) {
        phrase_add(w, german_small[n / 100]);
        phrase_add(w, "hundert");
        n %= 100;
    }
    if (n >= 20) {
        if (n % 10) {
            phrase_add(w, german_small[n % 10]);
            phrase_add(w, "und");
        }
        phrase_add(w, german_tens[n / 10]);
    } else if (n > 0) {
        phrase_add(w, last && n == 1 ? "eins" : german_small[n]);
    }
}

static void german(struct phrase *w, uint64_t n, enum gender gender)
{
    static const struct {
        uint64_t value;
        const char *one, *many;
    } big[] = {{1000000000000, "eine Billion", "Billionen"},
        {1000000000, "eine Milliarde", "Milliarden"}, {1000000, "eine Million", "Millionen"}};
    for (size_t i = 0; i < sizeof big / sizeof *big; i++) {
        uint64_t count = n / big[i].value;
        n %= big[i].value;
        if (count == 1) {
            phrase_say(w, big[i].one);
        } else if (count > 1) {
            phrase_blank(w);
            german_word(w, count, false);
            phrase_say(w, big[i].many);
        }
    }
    if (n > 0) {
        phrase_blank(w);
        german_word(w, n, gender == COUNTING || n > 1);
        phrase_add(w, n == 1 && gender == FEMININE ? "e" : "");
    }
}

static void german_ordinal(struct phrase *w, uint64_t n, const char *ending)
{
    static const char *const special[] = {"", "ers", "zwei", "drit", "vier", "fünf", "sechs", "sieb",
        "ach", "neun", "zehn", "elf", "zwölf"};
    uint64_t rest = n % 100;
    phrase_blank(w);
    if (rest > 0 && rest <= 12) {
        german_word(w, n - rest, false);
        phrase_add(w, special[rest]);
        phrase_add(w, "t");
    } else {
        bool round = n == 100 || n == 1000; /* hundertste */
        if (round) {
            phrase_add(w, n == 100 ? "hundert" : "tausend");
        } else {
            german_word(w, n, false);
        }
        phrase_add(w, rest >= 20 || rest == 0 ? "st" : "t");
    }
    phrase_add(w, ending && *ending ? ending : "e");
}

/* ---- East Asia ---- */

static const char *const han_digits[] = {"零", "一", "二", "三", "四", "五", "六", "七", "八", "九"};
static const char *const hangul_digits[] = {"영", "일", "이", "삼", "사", "오", "육", "칠", "팔", "구"};

/* 1 to 9,999. Chinese says each zero in the middle once, the others none; `front`: nothing stands before it. */
static void four_digits(struct phrase *w, enum tongue tongue, uint64_t n, bool front)
{
    static const char *const places[2][4] = {{"", "十", "百", "千"}, {"", "십", "백", "천"}};
    const char *const *digits = tongue == KO ? hangul_digits : han_digits;
    uint64_t value = 1000;
    bool zero = !front && n < 1000 && tongue == ZH;
    for (int place = 3; place >= 0; place--, value /= 10) {
        uint64_t digit = n / value % 10;
        if (digit == 0) {
            zero |= tongue == ZH && n > value;
            continue;
        }
        phrase_add(w, zero ? "零" : "");
        bool silent = digit == 1 && place > 0 && (tongue != ZH || (front && n < 20));
        bool pair = tongue == ZH && digit == 2 && place == 3;
        phrase_add(w, silent ? "" : pair ? "两" : digits[digit]);
        phrase_add(w, places[tongue == KO][place]);
        zero = false;
    }
}

void numeral_of_east_asia(struct phrase *w, enum tongue tongue, uint64_t n)
{
    static const char *const myriads[3][4] = {
        {"", "万", "亿", "万亿"}, {"", "万", "億", "兆"}, {"", "만", "억", "조"}};
    const char *const *names = myriads[tongue == KO ? 2 : tongue == JA];
    uint64_t value = 1000000000000;
    bool front = true;
    if (n == 0) {
        phrase_add(w, tongue == KO ? hangul_digits[0] : han_digits[0]);
    }
    for (int i = 3; i >= 0; i--, value /= 10000) {
        uint64_t four = n / value % 10000;
        if (four == 0) {
            continue;
        }
        if (tongue == KO && four == 1 && i == 1 && front) {
            phrase_add(w, "만"); /* no "one" before it */
        } else if (tongue == ZH && four == 2 && i > 0) {
            phrase_add(w, front ? "两" : "零二");
            phrase_add(w, names[i]);
        } else {
            four_digits(w, tongue, four, front);
            phrase_add(w, names[i]);
        }
        front = false;
    }
}

void numeral_korean_native(struct phrase *w, uint64_t n)
{
    static const char *const ones[] = {
        "", "한", "두", "세", "네", "다섯", "여섯", "일곱", "여덟", "아홉"};
    static const char *const tens[] = {
        "", "열", "스물", "서른", "마흔", "쉰", "예순", "일흔", "여든", "아흔"};
    phrase_add(w, n == 20 ? "스무" : tens[n / 10]);
    phrase_add(w, ones[n % 10]);
}

/* ---- All ---- */

void numeral_cardinal(struct phrase *w, enum tongue tongue, uint64_t n, enum gender gender)
{
    static const char *const zero[N_TONGUES] = {
        NULL, "zero", NULL, NULL, "null", "zéro", "ноль", "zero", "cero", "zero"};
    if (n == 0 && zero[tongue]) {
        phrase_say(w, zero[tongue]);
        return;
    }
    switch (tongue) {
    case EN:
        english(w, n);
        break;
    case DE:
        german(w, n, gender);
        break;
    case FR:
        numeral_french(w, n, gender);
        break;
    case RU:
        numeral_russian(w, n, gender);
        break;
    case PT:
        numeral_portuguese(w, n, gender);
        break;
    case ES:
        numeral_spanish(w, n, gender);
        break;
    case IT:
        numeral_italian(w, n, gender);
        break;
    default:
        if (tongue == KO) {
            phrase_blank(w);
        }
        numeral_of_east_asia(w, tongue, n);
    }
}

void numeral_ordinal(
    struct phrase *w, enum tongue tongue, uint64_t n, enum gender gender, const char *ending)
{
    if (n == 0) {
        numeral_cardinal(w, tongue, n, gender);
        return;
    }
    switch (tongue) {
    case EN:
        english_ordinal(w, n);
        break;
    case DE:
        german_ordinal(w, n, ending);
        break;
    case FR:
        ordinal_french(w, n, gender);
        break;
    case RU:
        ordinal_russian(w, n, gender, ending);
        break;
    case PT:
        ordinal_portuguese(w, n, gender);
        break;
    case ES:
        ordinal_spanish(w, n, gender);
        break;
    case IT:
        ordinal_italian(w, n, gender);
        break;
    default:
        phrase_add(w, tongue == KO ? "제" : "第");
        numeral_of_east_asia(w, tongue, n);
    }
}

void numeral_digits(struct phrase *w, enum tongue tongue, const char *digits, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned digit = (unsigned)(digits[i] - '0');
        if (tongue == KO) {
            phrase_add(w, hangul_digits[digit]);
        } else {
            numeral_cardinal(w, tongue, digit, COUNTING);
        }
    }
}

int numeral_form(enum tongue tongue, uint64_t n)
{
    if (tongue == RU) {
        bool teen = n % 100 / 10 == 1;
        return !teen && n % 10 == 1 ? 0 : !teen && n % 10 >= 2 && n % 10 <= 4 ? 1 : 2;
    }
    return n == 1 || (tongue == FR && n == 0) ? 0 : 2;
}
