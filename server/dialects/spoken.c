/* SPDX-License-Identifier: Apache-2.0
 * Letters share the time of their word; what stands between two words shares the time between them. */
#include "server/dialects/spoken.h"

#include <string.h>

#include "base/minmax.h"

static bool is_white(char c)
{
    return c && strchr(" \t\r\n\v\f", c);
}

/* Bytes of the character at text[0..n). */
static size_t letter_bytes(const char *text, size_t n)
{
    size_t bytes = 1;
    while (bytes < n && bytes < 4 && ((unsigned char)text[bytes] & 0xC0) == 0x80) {
        bytes++;
    }
    return bytes;
}

static size_t count_letters(const char *text, size_t n)
{
    size_t letters = 0;
    for (size_t i = 0; i < n; i += letter_bytes(text + i, n - i)) {
        letters++;
    }
    return letters;
}

/* Tells the letters up to `to`, evenly until end_s. Time never goes back. */
static void tell_until(
    struct spoken *s, const char *text, size_t to, double end_s, spoken_letter *tell, void *user)
{
    if (to <= s->told) {
        s->told_s = max(s->told_s, end_s); /* a silence */
        return;
    }
    double start_s = s->told_s, length_s = end_s > start_s ? end_s - start_s : 0;
    size_t letters = count_letters(text + s->told, to - s->told);
    for (size_t i = 0; i < letters; i++) {
        size_t bytes = letter_bytes(text + s->told, to - s->told);
        double from = start_s + length_s * (double)i / (double)letters;
        double until = start_s + length_s * (double)(i + 1) / (double)letters;
        tell(user, text + s->told, bytes, from, until);
        s->told += bytes;
        s->letter_s = until;
    }
    s->told_s = start_s + length_s;
}

void spoken_words(struct spoken *s, const char *text, size_t n_text, const struct speech_word *words,
    size_t n, bool next, spoken_letter *tell, void *user)
{
    for (size_t i = 0; i < n + next; i++) {
        const struct speech_word *w = &words[i];
        bool inside = w->at <= n_text && w->bytes <= n_text - w->at;
        if (inside) {
            tell_until(s, text, w->at, w->start_s, tell, user);
        }
        if (inside && i < n) {
            tell_until(s, text, w->at + w->bytes, w->end_s, tell, user);
        }
    }
}

void spoken_rest(
    struct spoken *s, const char *text, size_t n, double end_s, spoken_letter *tell, void *user)
{
    tell_until(s, text, n, end_s, tell, user);
    if (n && !is_white(text[n - 1])) {
        tell(user, " ", 1, s->told_s, s->told_s);
        s->letter_s = s->told_s;
    }
}
