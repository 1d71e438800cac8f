/* SPDX-License-Identifier: Apache-2.0
 * Dates, times of day, years, phone numbers, ordinals. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "script/letters.h"
#include "script/spell/spell_parts.h"

/* ---- Years and dates ---- */

void spell_year(const struct spot *s, uint64_t year)
{
    uint64_t hundreds = year / 100, rest = year % 100;
    bool pairs = s->tongue == EN && year >= 1100 && year < 2100 && !(year >= 2000 && year < 2010);
    if (pairs) {
        numeral_cardinal(s->w, EN, hundreds, COUNTING);
        phrase_say(s->w, rest == 0 ? "hundred" : rest < 10 ? "oh" : "");
        if (rest > 0) {
            numeral_cardinal(s->w, EN, rest, COUNTING);
        }
    } else if (s->tongue == DE && year >= 1100 && year < 2000) {
        numeral_cardinal(s->w, DE, hundreds, COUNTING);
        phrase_add(s->w, "hundert");
        struct chars tail = {0};
        struct phrase w = {&tail, UTTER_OK, s->w->error};
        if (rest > 0) {
            numeral_cardinal(&w, DE, rest, COUNTING);
            w.status = w.status ? w.status : chars_add(&tail, "", 1, w.error);
            phrase_add(s->w, w.status ? "" : tail.at);
            s->w->status = s->w->status ? s->w->status : w.status;
        }
        chars_fini(&tail);
    } else if (s->tongue == ZH) {
        char digits[24];
        int n = snprintf(digits, sizeof digits, "%llu", (unsigned long long)year);
        numeral_digits(s->w, ZH, digits, (size_t)n);
    } else {
        numeral_cardinal(s->w, s->tongue, year, COUNTING);
    }
}

/* Words after which a German ordinal ends in -en, and in -e. */
static const char ending_en[] = "am vom zum dem den ab bis seit im beim des";
static const char ending_e[] = "der die das";

/* The ending of a German ordinal, as the word before it asks; `strong` where no such word stands there. */
static const char *german_ending(const struct spot *s, const char *strong)
{
    return spot_behind(s, s->at, ending_en) ? "en" : spot_behind(s, s->at, ending_e) ? "e" : strong;
}

static void say_day(const struct spot *s, unsigned day)
{
    switch (s->tongue) {
    case EN:
        numeral_ordinal(s->w, EN, day, COUNTING, NULL);
        break;
    case DE:
        numeral_ordinal(s->w, DE, day, MASCULINE, german_ending(s, "er"));
        break;
    case RU:
        numeral_ordinal(s->w, RU, day, NEUTER, "го");
        break;
    case FR:
    case IT:
    case PT:
        if (day == 1) {
            numeral_ordinal(s->w, s->tongue, 1, MASCULINE, NULL);
            break;
        }
        numeral_cardinal(s->w, s->tongue, day, COUNTING);
        break;
    default:
        numeral_cardinal(s->w, s->tongue, day, COUNTING);
    }
}

static void say_date(const struct spot *s, unsigned year, unsigned month, unsigned day)
{
    if (s->t->wide || s->tongue == KO) {
        bool korean = s->tongue == KO;
        spell_year(s, year);
        phrase_add(s->w, korean ? "년 " : "年");
        phrase_add(s->w, s->t->months[month - 1]);
        numeral_cardinal(s->w, s->tongue, day, COUNTING);
        phrase_add(s->w, korean ? "일" : "日");
        return;
    }
    if (s->tongue == EN) {
        phrase_say(s->w, s->t->months[month - 1]);
        say_day(s, day);
        phrase_add(s->w, ",");
        spell_year(s, year);
        return;
    }
    say_day(s, day);
    phrase_say(s->w, s->t->month_of);
    phrase_say(s->w, s->t->months[month - 1]);
    phrase_say(s->w, s->t->month_of);
    if (s->tongue == RU) {
        numeral_ordinal(s->w, RU, year, MASCULINE, "го");
        phrase_say(s->w, "года");
    } else {
        spell_year(s, year);
    }
}

static bool is_date(unsigned month, unsigned day)
{
    return month >= 1 && month <= 12 && day >= 1 && day <= 31;
}

/* "1984 г.Москва": what was said stands for all up to text[at], where a letter may follow. */
static void say_end(const struct spot *s, size_t at)
{
    phrase_add(s->w, spot_ends(s, at) ? "" : " ");
}

/* The word for the year of a date that ends at `at`, which the date has said already. */
static size_t year_word(const struct spot *s, size_t at)
{
    static const char *const words[] = {"года", "г."};
    size_t blank = spot_blank(s, at);
    for (size_t i = 0; s->tongue == RU && i < 2; i++) {
        size_t n = spot_has(s, at + blank, words[i]);
        if (n > 0) {
            return blank + n;
        }
    }
    return 0;
}

/* Three numbers with one mark between them. */
static size_t spell_numeric_date(const struct spot *s)
{
    unsigned part[3];
    size_t digits[3], at = s->at;
    char mark = 0;
    for (int i = 0; i < 3; i++) {
        digits[i] = number_digits(s, at, 4, &part[i]);
        at += digits[i];
        if (digits[i] == 0 ||
            (i < 2 && (at >= s->n || !strchr("-/.", s->text[at]) || (mark && s->text[at] != mark)))) {
            return 0;
        }
        mark = i < 2 ? s->text[at] : mark;
        at += i < 2;
    }
    if (!spot_ends(s, at) || (at + 1 < s->n && s->text[at] == mark && is_digit(s->text[at + 1]))) {
        return 0;
    }
    if (digits[0] == 4 && digits[1] <= 2 && digits[2] <= 2 && is_date(part[1], part[2])) {
        say_date(s, part[0], part[1], part[2]);
        return at - s->at;
    }
    bool written = mark == '/' || (mark == '.' && s->t->day_first);
    if (!written || digits[2] != 4 || digits[0] > 2 || digits[1] > 2) {
        return 0;
    }
    bool day_first = s->t->day_first || part[0] > 12;
    unsigned day = part[day_first ? 0 : 1], month = part[day_first ? 1 : 0];
    if (!is_date(month, day)) {
        return 0;
    }
    say_date(s, part[2], month, day);
    at += year_word(s, at);
    say_end(s, at);
    return at - s->at;
}

/* The month whose name text[at..n) begins with, 0: none. */
static unsigned month_at(const struct spot *s, size_t at)
{
    for (unsigned i = 0; i < 12; i++) {
        size_t n = spot_has(s, at, s->t->months[i]);
        if (n > 0 && spot_ends(s, at + n)) {
            return i + 1;
        }
    }
    return 0;
}

static bool month_before(const struct spot *s)
{
    for (unsigned i = 0; i < 12; i++) {
        if (spot_behind(s, s->at, s->t->months[i])) {
            return true;
        }
    }
    return false;
}

/* The year behind "3 May", with the word between, where the language changes it: Russian. */
static size_t spell_russian_year(const struct spot *s, size_t at)
{
    unsigned year;
    size_t blank = spot_blank(s, at), digits = number_digits(s, at + blank, 4, &year);
    size_t word = digits == 4 ? year_word(s, at + blank + digits) : 0;
    if (s->tongue != RU || word == 0) {
        return 0;
    }
    numeral_ordinal(s->w, RU, year, MASCULINE, "го");
    phrase_say(s->w, "года");
    say_end(s, at + blank + digits + word);
    return blank + digits + word;
}

/* A day beside the name of a month. */
static size_t spell_day(const struct spot *s)
{
    unsigned day, month;
    size_t digits = number_digits(s, s->at, 2, &day), at = s->at + digits;
    if (digits == 0 || day == 0 || day > 31 || s->t->wide || s->tongue == KO) {
        return 0;
    }
    if (s->tongue == EN && month_before(s) && spot_ends(s, at) && !spot_has(s, at, ":")) {
        say_day(s, day);
        return digits;
    }
    at += s->tongue == DE ? spot_has(s, at, ".") : 0;
    size_t dot = at - s->at - digits, blank = spot_blank(s, at);
    size_t of = *s->t->month_of ? spot_has(s, at + blank, "de ") : 0;
    month = blank ? month_at(s, at + blank + of) : 0;
    if (month == 0 || (s->tongue == DE && dot == 0) || (*s->t->month_of && of == 0)) {
        return 0;
    }
    phrase_say(s->w, s->tongue == EN && !spot_behind(s, s->at, "the") ? "the" : "");
    say_day(s, day);
    phrase_say(s->w, s->tongue == EN ? "of" : "");
    if (s->tongue != RU) {
        return digits + dot;
    }
    size_t end = at + blank + strlen(s->t->months[month - 1]);
    phrase_say(s->w, s->t->months[month - 1]);
    return end + spell_russian_year(s, end) - s->at;
}

/* 1984 году: the year is an ordinal, with the ending of its word. */
static size_t spell_year_case(const struct spot *s)
{
    static const char *const words[] = {"года", "году", "годом", "год", "г."};
    static const char *const endings[] = {"го", "м", "ым", "", "го"};
    unsigned year;
    size_t digits = s->tongue == RU ? number_digits(s, s->at, 4, &year) : 0;
    size_t blank = spot_blank(s, s->at + digits);
    for (size_t i = 0; digits == 4 && i < 5; i++) {
        size_t n = spot_has(s, s->at + digits + blank, words[i]);
        if (n > 0 && (i == 4 || spot_ends(s, s->at + digits + blank + n))) {
            bool within = i == 4 && spot_behind(s, s->at, "в");
            numeral_ordinal(s->w, RU, year, MASCULINE, within ? "м" : endings[i]);
            if (i == 4) {
                phrase_say(s->w, within ? "году" : "года");
                say_end(s, s->at + digits + blank + n);
            }
            return digits + (i == 4 ? blank + n : 0);
        }
    }
    return 0;
}

size_t spell_date(const struct spot *s)
{
    size_t n = spell_numeric_date(s);
    n = n ? n : spell_day(s);
    return n ? n : spell_year_case(s);
}

/* ---- Times ---- */

struct clock {
    unsigned hour, minute, second;
    bool has_second, half; /* half: am or pm follows */
};

static void say_counted_noun(const struct spot *s, unsigned n, const char *name)
{
    char form[64];
    numeral_cardinal(s->w, s->tongue, n, table_gender(name));
    table_form(name, s->tongue, n, form, sizeof form);
    phrase_say(s->w, form);
}

static void say_english_time(const struct spot *s, const struct clock *c)
{
    numeral_cardinal(s->w, EN, c->hour, COUNTING);
    if (c->minute == 0 && !c->has_second) {
        phrase_say(s->w, c->half ? "" : c->hour > 12 || c->hour == 0 ? "hundred" : "o'clock");
        return;
    }
    phrase_say(s->w, c->minute < 10 ? "oh" : "");
    numeral_cardinal(s->w, EN, c->minute, COUNTING);
    if (c->has_second) {
        phrase_say(s->w, "and");
        say_counted_noun(s, c->second, "m:second|seconds");
    }
}

static void say_wide_time(const struct spot *s, const struct clock *c)
{
    bool korean = s->tongue == KO, chinese = s->tongue == ZH;
    if (korean && c->hour > 0 && c->hour <= 12) {
        numeral_korean_native(s->w, c->hour);
    } else if (chinese && c->hour == 2) {
        phrase_add(s->w, "两");
    } else {
        numeral_cardinal(s->w, s->tongue, c->hour, COUNTING);
    }
    phrase_add(s->w, korean ? " 시" : chinese ? "点" : "時");
    if (c->minute > 0 || c->has_second) {
        phrase_add(s->w, korean ? " " : chinese && c->minute < 10 && c->minute > 0 ? "零" : "");
        numeral_cardinal(s->w, s->tongue, c->minute, COUNTING);
        phrase_add(s->w, korean ? " 분" : "分");
    }
    if (c->has_second) {
        phrase_add(s->w, korean ? " " : "");
        numeral_cardinal(s->w, s->tongue, c->second, COUNTING);
        phrase_add(s->w, korean ? " 초" : "秒");
    }
}

static void say_time(const struct spot *s, const struct clock *c)
{
    static const char *const hours[N_TONGUES] = {[DE] = "m:Uhr",
        [FR] = "f:heure|heures",
        [RU] = "m:час|часа|часов",
        [PT] = "f:hora|horas",
        [ES] = "f:hora|horas",
        [IT] = "f:ora|ore"};
    static const char *const seconds[N_TONGUES] = {[DE] = "f:Sekunde|Sekunden",
        [FR] = "f:seconde|secondes",
        [RU] = "f:секунда|секунды|секунд",
        [PT] = "m:segundo|segundos",
        [ES] = "m:segundo|segundos",
        [IT] = "m:secondo|secondi"};
    bool minutes = c->minute > 0 || c->has_second;
    if (s->tongue == EN || s->t->wide || s->tongue == KO) {
        (s->tongue == EN ? say_english_time : say_wide_time)(s, c);
        return;
    }
    if ((s->tongue == ES || s->tongue == IT) && minutes) {
        numeral_cardinal(s->w, s->tongue, c->hour, FEMININE);
        phrase_say(s->w, s->tongue == IT ? "e" : "y");
        numeral_cardinal(s->w, s->tongue, c->minute, COUNTING);
    } else {
        say_counted_noun(s, c->hour, hours[s->tongue]);
        phrase_say(s->w, minutes && s->tongue == PT ? "e" : "");
        if (minutes && s->tongue == RU) {
            say_counted_noun(s, c->minute, "f:минута|минуты|минут");
        } else if (minutes) {
            numeral_cardinal(s->w, s->tongue, c->minute, COUNTING);
        }
    }
    if (c->has_second) {
        phrase_say(s->w, s->tongue == ES ? "y" : s->tongue == IT || s->tongue == PT ? "e" : "");
        say_counted_noun(s, c->second, seconds[s->tongue]);
    }
}

/* Words behind a time that say what it has said. */
static size_t time_word(const struct spot *s, size_t at)
{
    static const char *const words[N_TONGUES] = {
        [DE] = "Uhr", [ES] = "horas", [IT] = "ore", [PT] = "horas", [FR] = "heures"};
    size_t blank = spot_blank(s, at),
           n = words[s->tongue] ? spot_has(s, at + blank, words[s->tongue]) : 0;
    if (n == 0 && (s->tongue == ES || s->tongue == PT)) {
        n = spot_has(s, at + blank, "h");
    }
    return n > 0 && spot_ends(s, at + blank + n) ? blank + n : 0;
}

static bool half_follows(const struct spot *s, size_t at)
{
    static const char *const halves[] = {"am", "pm", "AM", "PM", "a.m.", "p.m."};
    at += spot_blank(s, at);
    for (size_t i = 0; i < sizeof halves / sizeof *halves; i++) {
        if (spot_has(s, at, halves[i])) {
            return true;
        }
    }
    return false;
}

size_t spell_time(const struct spot *s)
{
    struct clock c = {0};
    size_t hour = number_digits(s, s->at, 2, &c.hour), at = s->at + hour, minute = 0;
    if (hour == 0 || c.hour > 24) {
        return 0;
    }
    size_t colon = spot_has(s, at, ":"), word = time_word(s, at);
    if (s->tongue == DE && !colon && spot_has(s, at, ".") &&
        number_digits(s, at + 1, 2, &c.minute) == 2 && time_word(s, at + 3)) {
        colon = 1; /* 14.30 Uhr */
    }
    size_t letter = s->tongue == FR || s->tongue == PT ? spot_blank(s, at) : 0;
    letter = (s->tongue == FR || s->tongue == PT) && spot_has(s, at + letter, "h") ? letter + 1 : 0;
    if (colon) {
        minute = number_digits(s, at + 1, 2, &c.minute);
        at += 1 + minute;
    } else if (letter) {
        size_t blank = spot_blank(s, at + letter);
        minute = number_digits(s, at + letter + blank, 2, &c.minute);
        at += letter + (minute ? blank + minute : 0);
        c.minute = minute ? c.minute : 0;
    } else if (s->tongue != DE || !word) { /* 14 Uhr */
        return 0;
    }
    if ((colon && minute != 2) || c.minute > 59) {
        return 0;
    }
    if (colon && spot_has(s, at, ":") && number_digits(s, at + 1, 2, &c.second) == 2 && c.second < 60) {
        c.has_second = true;
        at += 3;
    }
    c.half = s->tongue == EN && half_follows(s, at);
    if (!c.half &&
        (!spot_ends(s, at) || (spot_has(s, at, ":") && at + 1 < s->n && is_digit(s->text[at + 1])))) {
        return 0;
    }
    say_time(s, &c);
    phrase_add(s->w, c.half && !spot_blank(s, at) ? " " : "");
    return at + (colon || word ? time_word(s, at) : 0) - s->at;
}

/* ---- Phone numbers ---- */

size_t spell_phone(const struct spot *s)
{
    enum { MOST_DIGITS = 15 };
    size_t at = s->at + spot_has(s, s->at, "+"), end = at, digits = 0, marks = 0, run = 0, groups = 0;
    bool plus = at > s->at;
    for (size_t i = at; i < s->n && digits <= MOST_DIGITS; i++) {
        char c = s->text[i];
        if (is_digit(c)) {
            digits++;
            groups += run == 0;
            run++;
            end = i + 1;
        } else if (strchr("-/() ", c) && i - end < 2) {
            marks += run > 0 && c != ' ';
            run = 0;
        } else {
            break;
        }
    }
    bool local = (s->text[s->at] == '0' || s->text[s->at] == '(') && (groups > 1 || digits > 8);
    if (digits < 7 || digits > MOST_DIGITS || !(plus || local || (marks >= 2 && groups >= 3)) ||
        !spot_ends(s, end)) {
        return 0;
    }
    if (plus) {
        phrase_say(s->w, s->t->plus);
    }
    for (size_t i = at, n; i < end; i += n) {
        for (n = 0; i + n < end && is_digit(s->text[i + n]); n++) {
        }
        if (n == 0) {
            n = 1;
            continue;
        }
        phrase_add(s->w, i > at && s->w->out->n ? s->tongue == ZH   ? "，"
                                                  : s->tongue == JA ? "、"
                                                                    : ","
                                                : "");
        phrase_add(s->w, i > at && s->tongue == KO ? " " : "");
        numeral_digits(s->w, s->tongue, s->text + i, n);
    }
    return end - s->at;
}

/* ---- Ordinals ---- */

struct suffix {
    enum tongue tongue;
    const char *text;
    enum gender gender;
    const char *ending;
};

static size_t german_ordinal(const struct spot *s, size_t digits, unsigned value)
{
    static const struct {
        const char *noun, *strong;
    } nouns[] = {{"Jahrhundert", "es"}, {"Kapitel", "es"}, {"Mal", "es"}, {"Stock", "er"},
        {"Platz", "er"}, {"Tag", "er"}, {"Klasse", "e"}, {"Woche", "e"}, {"Etage", "e"},
        {"Auflage", "e"}};
    size_t dot = spot_has(s, s->at + digits, "."), blank = spot_blank(s, s->at + digits + dot);
    for (size_t i = 0; dot && blank && i < sizeof nouns / sizeof *nouns; i++) {
        if (spot_has(s, s->at + digits + dot + blank, nouns[i].noun)) {
            numeral_ordinal(s->w, DE, value, MASCULINE, german_ending(s, nouns[i].strong));
            return digits + dot;
        }
    }
    return 0;
}

size_t spell_ordinal(const struct spot *s)
{
    static const struct suffix suffixes[] = {{EN, "st", COUNTING, ""}, {EN, "nd", COUNTING, ""},
        {EN, "rd", COUNTING, ""}, {EN, "th", COUNTING, ""}, {FR, "ers", MASCULINE, ""},
        {FR, "er", MASCULINE, ""}, {FR, "ère", FEMININE, ""}, {FR, "re", FEMININE, ""},
        {FR, "ème", MASCULINE, ""}, {FR, "e", MASCULINE, ""}, {ES, ".er", MASCULINE, "o"},
        {ES, ".º", MASCULINE, ""}, {ES, "º", MASCULINE, ""}, {ES, ".ª", FEMININE, ""},
        {ES, "ª", FEMININE, ""}, {PT, ".º", MASCULINE, ""}, {PT, "º", MASCULINE, ""},
        {PT, ".ª", FEMININE, ""}, {PT, "ª", FEMININE, ""}, {IT, "º", MASCULINE, ""},
        {IT, "ª", FEMININE, ""}, {RU, "-й", MASCULINE, ""}, {RU, "-я", FEMININE, ""},
        {RU, "-е", NEUTER, ""}, {RU, "-го", MASCULINE, "го"}, {RU, "-му", MASCULINE, "му"},
        {RU, "-м", MASCULINE, "м"}};
    unsigned value;
    size_t digits = number_digits(s, s->at, 6, &value), at = s->at + digits;
    if (digits == 0 || value == 0) {
        return 0;
    }
    if (s->tongue == DE) {
        return german_ordinal(s, digits, value);
    }
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        size_t n = suffixes[i].tongue == s->tongue ? spot_has(s, at, suffixes[i].text) : 0;
        if (n > 0 && spot_ends(s, at + n)) {
            numeral_ordinal(s->w, s->tongue, value, suffixes[i].gender, suffixes[i].ending);
            s->w->out->n -= s->tongue == ES && *suffixes[i].ending && s->w->out->n > 0; /* primer */
            return digits + n;
        }
    }
    return 0;
}
