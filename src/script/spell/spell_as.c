/* SPDX-License-Identifier: Apache-2.0
 * <say-as>: what is to be said is known, the words follow. */
#include <string.h>
#include <strings.h>

#include "script/letters.h"
#include "script/spell/spell_parts.h"

/* Letters one by one, digits by their names. */
static void say_characters(const struct spot *s, bool digits_only)
{
    for (size_t at = 0, n; at < s->n; at += n) {
        uint32_t code;
        char one[5] = "";
        n = utf8_get(s->text + at, &code);
        memcpy(one, s->text + at, n);
        if (code >= '0' && code <= '9') {
            phrase_add(s->w, s->w->out->n && s->tongue == KO ? " " : "");
            numeral_digits(s->w, s->tongue, s->text + at, 1);
        } else if (letters_is_word(code) && !digits_only) {
            phrase_say(s->w, one);
        }
    }
}

static size_t say_cardinal(const struct spot *s)
{
    size_t minus = spot_has(s, 0, "-");
    struct number number = number_at(s, minus);
    phrase_say(s->w, minus ? s->t->minus : "");
    number_say(s, &number, COUNTING);
    return number.bytes ? minus + number.bytes : 0;
}

static size_t say_ordinal(const struct spot *s)
{
    unsigned value;
    size_t n = number_digits(s, 0, 6, &value);
    numeral_ordinal(s->w, s->tongue, value, MASCULINE, s->tongue == DE ? "er" : NULL);
    return n;
}

/* A date whose parts stand in the order that `format` says: mdy, dmy, ymd; others by the language. */
static size_t say_date_of(struct spot *s, const char *format)
{
    struct tongue_words t = *s->t;
    t.day_first = format[0] == 'd' ? true : format[0] == 'm' ? false : t.day_first;
    s->t = &t;
    return spell_date(s);
}

static size_t say_phone(const struct spot *s)
{
    size_t used = spell_phone(s);
    if (used < s->n) {
        s->w->out->n = 0;
        say_characters(s, true);
    }
    return s->n;
}

/* The bytes that were said; all of them, or this is none of what `as` says. */
static size_t say(struct spot *s, const char *as, const char *format)
{
    utter_status status = UTTER_OK;
    if (strcmp(as, "characters") == 0 || strcmp(as, "spell-out") == 0 || strcmp(as, "verbatim") == 0) {
        say_characters(s, false);
        return s->n;
    }
    if (strcmp(as, "digits") == 0) {
        say_characters(s, true);
        return s->n;
    }
    if (strcmp(as, "currency") == 0 || strcmp(as, "unit") == 0 || strcmp(as, "fraction") == 0) {
        size_t n = spell_at(s->t->name, s->text, s->n, 0, s->w->out, &status, s->w->error);
        s->w->status = status;
        return n;
    }
    return strcmp(as, "telephone") == 0                               ? say_phone(s)
           : strcmp(as, "cardinal") == 0 || strcmp(as, "number") == 0 ? say_cardinal(s)
           : strcmp(as, "ordinal") == 0                               ? say_ordinal(s)
           : strcmp(as, "date") == 0                                  ? say_date_of(s, format)
           : strcmp(as, "time") == 0                                  ? spell_time(s)
                                                                      : 0;
}

utter_status spell_as(const char *language, const char *as, const char *format, const char *text,
    size_t n, struct chars *out, utter_error *error)
{
    struct phrase w = {.out = out, .error = error};
    const char *name = spell_language(language, text, n);
    size_t front = 0;
    while (n > 0 && strchr(" \t\r\n", text[n - 1])) {
        n--;
    }
    while (front < n && strchr(" \t\r\n", text[front])) {
        front++;
    }
    struct spot s = {.text = text + front, .n = n - front, .w = &w};
    for (size_t i = 0; i < N_TONGUES; i++) {
        if (strcasecmp(tongue_table[i].name, name) == 0) {
            s.t = &tongue_table[i];
            s.tongue = (enum tongue)i;
        }
    }
    if (!s.t || s.n == 0) {
        return UTTER_AGAIN;
    }
    size_t used = say(&s, as, format);
    return w.status ? w.status : used == s.n ? UTTER_OK : UTTER_AGAIN;
}
