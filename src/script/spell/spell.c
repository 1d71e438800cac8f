/* SPDX-License-Identifier: Apache-2.0
 * Finds what is not read as it is written, and says numbers. */
#include "script/spell/spell.h"

#include <string.h>
#include <strings.h>

#include "base/tables/languages.h"
#include "script/letters.h"
#include "script/spell/spell_parts.h"

size_t spot_has(const struct spot *s, size_t at, const char *what)
{
    size_t n = strlen(what);
    return at + n <= s->n && memcmp(s->text + at, what, n) == 0 ? n : 0;
}

/* A blank at which no line breaks, wide or narrow. */
static size_t unbroken_blank(const struct spot *s, size_t at)
{
    size_t n = spot_has(s, at, "\u00a0");
    return n ? n : spot_has(s, at, "\u202f");
}

size_t spot_blank(const struct spot *s, size_t at)
{
    size_t n = spot_has(s, at, " ");
    return n ? n : unbroken_blank(s, at);
}

bool spot_ends(const struct spot *s, size_t at)
{
    uint32_t code = letters_at(s->text, s->n, at);
    return !letters_is_word(code) || letters_is_wide(code) || letters_is_hangul(code);
}

bool spot_behind(const struct spot *s, size_t at, const char *list)
{
    size_t end = at;
    while (end > 0 && s->text[end - 1] == ' ') {
        end--;
    }
    enum { LONGEST = 64 }; /* longer than any word of a list */
    size_t begin = end;
    while (
        begin > 0 && end - begin < LONGEST && s->text[begin - 1] != ' ' && s->text[begin - 1] != '\n') {
        begin--;
    }
    for (const char *word = list; *word && end > begin; word += strspn(word, " ")) {
        size_t n = strcspn(word, " ");
        if (n == end - begin && strncasecmp(word, s->text + begin, n) == 0) {
            return true;
        }
        word += n;
    }
    return false;
}

/* ---- Numbers ---- */

/* The mark between groups of three digits at text[at], 0: none. */
static size_t group_mark(const struct spot *s, size_t at)
{
    for (const char *mark = s->t->groups; *mark; mark++) {
        if (at < s->n && s->text[at] == *mark) {
            return 1;
        }
    }
    size_t n = unbroken_blank(s, at);
    bool blank = s->tongue == FR || s->tongue == RU;
    return n ? n : blank ? spot_has(s, at, " ") : 0;
}

static size_t count_digits(const struct spot *s, size_t at)
{
    size_t n = 0;
    while (at + n < s->n && is_digit(s->text[at + n])) {
        n++;
    }
    return n;
}

size_t number_digits(const struct spot *s, size_t at, size_t most, unsigned *value)
{
    size_t n = count_digits(s, at);
    *value = 0;
    for (size_t i = 0; i < n && n <= most; i++) {
        *value = *value * 10 + (unsigned)(s->text[at + i] - '0');
    }
    return n <= most ? n : 0;
}

struct number number_at(const struct spot *s, size_t at)
{
    struct number r = {0};
    size_t begin = at, n = count_digits(s, at), most = sizeof r.digits - 4, mark;
    if (n == 0 || n > most) {
        return r;
    }
    memcpy(r.digits, s->text + at, n);
    r.n_digits = n;
    at += n;
    while (
        n <= 3 && r.n_digits < most && (mark = group_mark(s, at)) && count_digits(s, at + mark) == 3) {
        memcpy(r.digits + r.n_digits, s->text + at + mark, 3);
        r.n_digits += 3;
        at += mark + 3;
    }
    size_t decimals = at < s->n && s->text[at] == s->t->decimal ? count_digits(s, at + 1) : 0;
    if (decimals > 0 && decimals < sizeof r.decimals) {
        memcpy(r.decimals, s->text + at + 1, decimals);
        r.n_decimals = decimals;
        at += 1 + decimals;
    }
    r.bytes = at - begin;
    r.plain = r.n_digits <= NUMERAL_MOST_DIGITS && (r.digits[0] != '0' || r.n_digits == 1);
    for (size_t i = 0; i < r.n_digits && r.plain; i++) {
        r.value = r.value * 10 + (uint64_t)(r.digits[i] - '0');
    }
    return r;
}

/* Three hundredths: Russian names the place of the last digit. */
static bool say_russian_decimals(const struct spot *s, const struct number *number)
{
    static const char *const places[3][2] = {
        {"десятая", "десятых"}, {"сотая", "сотых"}, {"тысячная", "тысячных"}};
    uint64_t value = 0;
    for (size_t i = 0; i < number->n_decimals; i++) {
        value = value * 10 + (uint64_t)(number->decimals[i] - '0');
    }
    if (!number->plain || number->n_decimals > 3) {
        return false;
    }
    numeral_cardinal(s->w, RU, number->value, FEMININE);
    phrase_say(s->w, numeral_form(RU, number->value) == 0 && number->value > 0 ? "целая" : "целых");
    numeral_cardinal(s->w, RU, value, FEMININE);
    phrase_say(s->w, places[number->n_decimals - 1][numeral_form(RU, value) > 0 || value == 0]);
    return true;
}

/* Where no blanks stand between words, none stands before the point. */
static void say_point(const struct spot *s, const char *point)
{
    if (s->t->wide || s->tongue == KO) {
        phrase_add(s->w, point);
    } else {
        phrase_say(s->w, point);
    }
}

static void say_decimals(const struct spot *s, const struct number *number)
{
    const char *digits = number->decimals;
    size_t n = number->n_decimals;
    bool counted = (s->tongue == FR || s->tongue == ES || s->tongue == PT || s->tongue == IT) && n <= 2;
    say_point(s, s->t->point);
    if (counted) {
        for (; n > 1 && *digits == '0'; digits++, n--) {
            numeral_cardinal(s->w, s->tongue, 0, COUNTING);
        }
        uint64_t value = (uint64_t)(digits[0] - '0');
        value = n == 2 ? value * 10 + (uint64_t)(digits[1] - '0') : value;
        numeral_cardinal(s->w, s->tongue, value, COUNTING);
    } else {
        numeral_digits(s->w, s->tongue, digits, n);
    }
}

void number_say(const struct spot *s, const struct number *number, enum gender gender)
{
    if (number->n_decimals > 0 && s->tongue == RU && say_russian_decimals(s, number)) {
        return;
    }
    if (number->plain) {
        numeral_cardinal(s->w, s->tongue, number->value, number->n_decimals ? COUNTING : gender);
    } else {
        numeral_digits(s->w, s->tongue, number->digits, number->n_digits);
    }
    if (number->n_decimals > 0) {
        say_decimals(s, number);
    }
}

/* ---- What stands around them ---- */

/* Halves and the like, in the order 1/2 1/3 2/3 1/4 3/4. */
static size_t spell_fraction(const struct spot *s)
{
    static const char *const written[] = {"1/2", "1/3", "2/3", "1/4", "3/4"};
    static const char *const said[N_TONGUES][5] = {
        [ZH] = {"二分之一", "三分之一", "三分之二", "四分之一", "四分之三"},
        [EN] = {"one half", "one third", "two thirds", "one quarter", "three quarters"},
        [JA] = {"二分の一", "三分の一", "三分の二", "四分の一", "四分の三"},
        [KO] = {"이분의 일", "삼분의 일", "삼분의 이", "사분의 일", "사분의 삼"},
        [DE] = {"ein halb", "ein Drittel", "zwei Drittel", "ein Viertel", "drei Viertel"},
        [FR] = {"un demi", "un tiers", "deux tiers", "un quart", "trois quarts"},
        [RU] = {"одна вторая", "одна третья", "две трети", "одна четвёртая", "три четверти"},
        [PT] = {"um meio", "um terço", "dois terços", "um quarto", "três quartos"},
        [ES] = {"un medio", "un tercio", "dos tercios", "un cuarto", "tres cuartos"},
        [IT] = {"un mezzo", "un terzo", "due terzi", "un quarto", "tre quarti"},
    };
    for (size_t i = 0; i < 5; i++) {
        size_t n = spot_has(s, s->at, written[i]);
        if (n > 0 && spot_ends(s, s->at + n) && !spot_has(s, s->at + n, "/")) {
            phrase_say(s->w, said[s->tongue][i]);
            return n;
        }
    }
    return 0;
}

/* 2.0.1: digits between points. */
static size_t spell_version(const struct spot *s)
{
    size_t at = s->at, parts = 0, n;
    unsigned value;
    while ((n = number_digits(s, at, 4, &value)) > 0) {
        parts++;
        at += n;
        if (!(at + 1 < s->n && s->text[at] == '.' && is_digit(s->text[at + 1]))) {
            break;
        }
        at++;
    }
    bool grouped = s->at + number_at(s, s->at).bytes >= at; /* 1.000.000 */
    if (parts < 3 || n == 0 || grouped || !spot_ends(s, at)) {
        return 0;
    }
    for (size_t from = s->at; from < at; from += n + 1) {
        n = number_digits(s, from, 4, &value);
        if (from > s->at) {
            say_point(s, s->tongue == DE ? "Punkt" : s->t->point);
        }
        numeral_cardinal(s->w, s->tongue, value, COUNTING);
    }
    return at - s->at;
}

/* Counters that want other numbers than a number that stands alone. */
static bool say_counted(const struct spot *s, const struct number *number, size_t at)
{
    static const char *const pairs[] = {"个", "位", "只", "条", "张", "本", "次", "天", "年", "岁",
        "周", "斤", "公斤", "公里", "小时", "分钟", "种", "件", "辆", "家", "块", "倍", "点", "米",
        "升", "元"};
    static const char *const natives[] = {
        "시", "개", "명", "살", "마리", "잔", "권", "대", "장", "병", "송이", "번째"};
    if (!number->plain || number->n_decimals > 0) {
        return false;
    }
    for (size_t i = 0; s->tongue == ZH && number->value == 2 && i < sizeof pairs / sizeof *pairs; i++) {
        if (spot_has(s, at, pairs[i])) {
            phrase_add(s->w, "两");
            return true;
        }
    }
    if (s->tongue == ZH && number->n_digits == 4 && spot_has(s, at, "年")) {
        numeral_digits(s->w, ZH, number->digits, 4);
        return true;
    }
    bool month =
        s->tongue == KO && spot_has(s, at, "월") && (number->value == 6 || number->value == 10);
    if (month) {
        phrase_add(s->w, number->value == 6 ? "유" : "시");
        return true;
    }
    for (size_t i = 0; s->tongue == KO && i < sizeof natives / sizeof *natives; i++) {
        bool hour = spot_has(s, at, "시") && !spot_has(s, at, "시간");
        bool first = number->value == 1 && spot_has(s, at, "번째");
        bool titled = s->at >= 3 && spot_has(s, s->at - 3, "제"); /* 제3장: the third chapter */
        if (!titled && number->value > 0 && number->value <= (hour ? 12 : 99) &&
            spot_has(s, at, natives[i])) {
            if (first) {
                phrase_add(s->w, "첫");
            } else {
                numeral_korean_native(s->w, number->value);
            }
            return true;
        }
    }
    return false;
}

/* A number alone, or with its unit, in a range, before a counter. */
static size_t spell_number(const struct spot *s, size_t at, bool negative)
{
    struct number number = number_at(s, at);
    size_t end = at + number.bytes, dash = spot_has(s, end, "-");
    dash = dash ? dash : spot_has(s, end, "–");
    if (number.bytes == 0 || spot_has(s, end, "/")) {
        return 0;
    }
    size_t measure = spell_measure(s, &number, end, negative);
    if (measure > 0) {
        return end + measure - s->at;
    }
    if (!spot_ends(s, end)) {
        return 0;
    }
    bool range = end + dash < s->n && is_digit(s->text[end + dash]); /* no digit goes on at `end` */
    bool year = number.bytes == 4 && number.plain && number.n_decimals == 0 &&
                (s->tongue == EN || s->tongue == DE);
    phrase_say(s->w, negative ? s->t->minus : "");
    if (year) {
        spell_year(s, number.value);
    } else if (!say_counted(s, &number, end)) {
        number_say(s, &number, COUNTING);
    }
    if (range) {
        if (s->t->wide || s->tongue == KO) {
            phrase_add(s->w, s->t->to);
        } else {
            phrase_say(s->w, s->t->to);
        }
        phrase_add(s->w, s->t->wide ? "" : " ");
    }
    return end + (range ? dash : 0) - s->at;
}

static const struct tongue_words *tongue_of(const char *language)
{
    for (size_t i = 0; language && i < N_TONGUES; i++) {
        if (strcasecmp(tongue_table[i].name, language) == 0) {
            return &tongue_table[i];
        }
    }
    return NULL;
}

const char *spell_language(const char *language, const char *text, size_t n)
{
    if (language && strcasecmp(language, "auto") != 0) {
        return language_name(language);
    }
    const char *found = "english";
    uint32_t code;
    for (size_t at = 0; at < n;) {
        at += utf8_get(text + at, &code);
        if (code >= 0x3040 && code < 0x3100) { /* kana */
            return "japanese";
        }
        if (letters_is_hangul(code)) {
            return "korean";
        }
        if (code >= 0x400 && code < 0x500) { /* Cyrillic */
            return "russian";
        }
        found = letters_is_wide(code) ? "chinese" : found;
    }
    return found;
}

/* Whether something may begin at text[at]: not within a word or a number. */
static bool may_begin(const char *text, size_t at)
{
    uint32_t before = letters_before(text, at);
    bool inner = at > 1 && (before == '.' || before == ',' || before == ':' || before == '/') &&
                 is_digit(text[at - 2]);
    return !inner && (!letters_is_word(before) || letters_is_wide(before) || letters_is_hangul(before));
}

static size_t spell_here(struct spot *s)
{
    static size_t (*const all[])(const struct spot *) = {
        spell_date, spell_time, spell_fraction, spell_version, spell_phone, spell_ordinal};
    size_t bytes = spell_money(s);
    bool digit = is_digit(s->text[s->at]), plus = s->text[s->at] == '+' || s->text[s->at] == '(';
    for (size_t i = 0; (digit || plus) && bytes == 0 && i < sizeof all / sizeof *all; i++) {
        bytes = all[i](s);
    }
    if (bytes > 0 || digit) {
        return bytes ? bytes : spell_number(s, s->at, false);
    }
    size_t minus = spot_has(s, s->at, "-");
    minus = minus ? minus : spot_has(s, s->at, "−");
    uint32_t before = letters_before(s->text, s->at);
    bool sign = s->at + minus < s->n && is_digit(s->text[s->at + minus]) &&
                (before == 0 || before == ' ' || before == '(' || before == '\n' || before > 0x3000);
    return sign ? spell_number(s, s->at + minus, true) : 0;
}

size_t spell_at(const char *language, const char *text, size_t n, size_t at, struct chars *words,
    utter_status *status, utter_error *error)
{
    const struct tongue_words *t = tongue_of(language);
    struct phrase w = {.out = words, .error = error};
    *status = UTTER_OK;
    bool candidate = is_digit(text[at]) || text[at] == '+' || text[at] == '(' || text[at] == '-' ||
                     text[at] == '$' || (text[at] >= 'A' && text[at] <= 'Z') ||
                     ((unsigned char)text[at] >= 0xc2 && (unsigned char)text[at] <= 0xef);
    if (!t || !candidate || !may_begin(text, at)) {
        return 0;
    }
    struct spot s = {(enum tongue)(t - tongue_table), t, text, n, at, &w};
    size_t bytes = spell_here(&s);
    *status = w.status;
    return bytes;
}
