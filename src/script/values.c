/* SPDX-License-Identifier: Apache-2.0
 * Values of markup: lengths of time, rates, loudness. */
#include <math.h>
#include <string.h>

#include "script/script_parts.h"

static const double most_pause_s = 60;

/* A decimal number at text[0..n) without a sign; the bytes it takes, 0: there is none. No locale. */
static size_t take_number(const char *text, size_t n, double *value)
{
    size_t at = 0, digits = 0;
    double number = 0, place = 1;
    for (bool point = false; at < n && (text[at] == '.' || (text[at] >= '0' && text[at] <= '9'));
         at++) {
        if (text[at] == '.') {
            if (point) {
                return 0;
            }
            point = true;
            continue;
        }
        place /= point ? 10 : 1;
        number = point ? number + (text[at] - '0') * place : number * 10 + (text[at] - '0');
        digits++;
    }
    *value = number;
    return digits && isfinite(number) ? at : 0;
}

static bool is_word(const char *text, size_t n, const char *word)
{
    return strlen(word) == n && memcmp(text, word, n) == 0;
}

bool value_pause(const char *text, size_t n, double *seconds)
{
    double number;
    size_t sign = n > 0 && text[0] == '+', used = take_number(text + sign, n - sign, &number) + sign;
    bool ms = is_word(text + used, n - used, "ms");
    if (used == sign || !(ms || is_word(text + used, n - used, "s"))) {
        return false;
    }
    *seconds = ms ? number / 1000 : number;
    return *seconds <= most_pause_s;
}

struct named {
    const char *name;
    double value;
};

static bool find(const struct named *table, size_t count, const char *text, size_t n, double *value)
{
    for (size_t i = 0; i < count; i++) {
        if (is_word(text, n, table[i].name)) {
            *value = table[i].value;
            return true;
        }
    }
    return false;
}

bool value_strength(const char *text, size_t n, double *seconds)
{
    static const struct named table[] = {{"none", 0}, {"x-weak", 0.25}, {"weak", 0.5}, {"medium", 0.75},
        {"strong", 1}, {"x-strong", 1.25}};
    return find(table, sizeof table / sizeof *table, text, n, seconds);
}

/* 120%, +20%, -20%, 1.2: a factor. */
static bool take_factor(const char *text, size_t n, double *factor)
{
    char sign = n > 0 ? text[0] : 0;
    size_t begin = sign == '+' || sign == '-';
    double number;
    size_t used = take_number(text + begin, n - begin, &number) + begin;
    bool percent = is_word(text + used, n - used, "%");
    if (used == begin || !(percent || used == n)) {
        return false;
    }
    number = percent ? number / 100 : number;
    *factor = sign == '+' ? 1 + number : sign == '-' ? 1 - number : number;
    return true;
}

bool value_rate(const char *text, size_t n, double *rate)
{
    static const struct named table[] = {
        {"x-slow", 0.5}, {"slow", 0.8}, {"medium", 1}, {"default", 1}, {"fast", 1.25}, {"x-fast", 1.6}};
    return (find(table, sizeof table / sizeof *table, text, n, rate) || take_factor(text, n, rate)) &&
           *rate >= 0.25 && *rate <= 4;
}

bool value_volume(const char *text, size_t n, double *volume)
{
    static const struct named table[] = {{"silent", 0}, {"x-soft", 0.25}, {"soft", 0.5}, {"medium", 1},
        {"default", 1}, {"loud", 1.5}, {"x-loud", 2}};
    char sign = n > 0 ? text[0] : 0;
    size_t begin = sign == '+' || sign == '-';
    double number;
    size_t used = take_number(text + begin, n - begin, &number) + begin;
    if (used > begin && is_word(text + used, n - used, "dB") && number <= 120) {
        *volume = pow(10, (sign == '-' ? -number : number) / 20);
        return *volume <= 4;
    }
    if (find(table, sizeof table / sizeof *table, text, n, volume)) {
        return true;
    }
    if (!take_factor(text, n, volume)) {
        return false;
    }
    /* A bare number is of 0 to 100, as the first SSML had it. */
    bool bare = begin == 0 && text[n - 1] != '%';
    *volume = bare ? *volume / 100 : *volume;
    return *volume >= 0 && *volume <= 4;
}
