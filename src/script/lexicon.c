/* SPDX-License-Identifier: Apache-2.0
 * The dictionary: terms by their first character, the longest first. */
#include "script/lexicon.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <utf8proc.h>

#include "base/memory.h"
#include "base/tables/languages.h"
#include "script/letters.h"
#include "text/chars.h"

enum { MOST_TERMS = 1 << 20, MOST_LINE = 4096 };

struct term {
    char *term, *spelled;
    size_t n;
    const char *language, *voice; /* of a section, NULL: all */
    uint32_t first;               /* its first character, in lower case */
    bool exact;                   /* case counts */
};

struct lexicon {
    struct term *terms; /* by first character, then the longest first, then who is nearest */
    size_t n_terms, room;
    char **names; /* of sections */
    size_t n_names, names_room;
};

static uint32_t small_at(const char *text)
{
    uint32_t code;
    utf8_get(text, &code);
    return (uint32_t)utf8proc_tolower((utf8proc_int32_t)code);
}

static bool has_large(const char *text, size_t n)
{
    uint32_t code;
    for (size_t at = 0; at < n;) {
        at += utf8_get(text + at, &code);
        if ((uint32_t)utf8proc_tolower((utf8proc_int32_t)code) != code) {
            return true;
        }
    }
    return false;
}

static const char *keep_name(struct lexicon *l, const char *text, size_t n)
{
    if (l->n_names == l->names_room) {
        char **grown = memory_resize(l->names, l->names_room, l->names_room + 16, sizeof *l->names);
        if (!grown) {
            return NULL;
        }
        l->names = grown;
        l->names_room += 16;
    }
    char *name = memory_string_n(text, n);
    if (name) {
        l->names[l->n_names++] = name;
    }
    return name;
}

struct section {
    const char *language, *voice;
};

/* [de voice:anna] */
static utter_status take_section(struct lexicon *l, const char *line, size_t n, struct section *section,
    size_t number, utter_error *error)
{
    *section = (struct section){0};
    for (size_t at = 1, end; at < n - 1; at = end) {
        while (at < n - 1 && line[at] == ' ') {
            at++;
        }
        for (end = at; end < n - 1 && line[end] != ' '; end++) {
        }
        bool voice = end - at > 6 && memcmp(line + at, "voice:", 6) == 0;
        const char **what = voice ? &section->voice : &section->language;
        if (end == at) {
            break;
        }
        if (*what) {
            return error_set(error, UTTER_E_ARGUMENT,
                "the lexicon, line %zu: a section is [LANGUAGE], [voice:NAME] or [LANGUAGE voice:NAME]",
                number);
        }
        *what = keep_name(l, line + at + (voice ? 6 : 0), end - at - (voice ? 6 : 0));
        if (!*what) {
            return error_memory(error, "a lexicon");
        }
    }
    return UTTER_OK;
}

static utter_status add(struct lexicon *l, const char *line, size_t n, const struct section *section,
    size_t number, utter_error *error)
{
    const char *mark = memchr(line, '\t', n);
    mark = mark ? mark : memchr(line, '=', n);
    const char *term = line, *spelled = mark ? mark + 1 : line;
    size_t term_n = mark ? (size_t)(mark - line) : 0, spelled_n = (size_t)(line + n - spelled);
    letters_trim(&term, &term_n);
    letters_trim(&spelled, &spelled_n);
    if (term_n == 0 || spelled_n == 0 || n > MOST_LINE) {
        return error_set(
            error, UTTER_E_ARGUMENT, "the lexicon, line %zu: a line is \"term = respelling\"", number);
    }
    if (l->n_terms == MOST_TERMS) {
        return error_set(error, UTTER_E_ARGUMENT, "the lexicon has more than %d terms", MOST_TERMS);
    }
    if (l->n_terms == l->room) {
        size_t room = l->room + l->room / 2 + 64;
        struct term *grown = memory_resize(l->terms, l->room, room, sizeof *l->terms);
        if (!grown) {
            return error_memory(error, "a lexicon");
        }
        l->terms = grown;
        l->room = room;
    }
    struct term *t = &l->terms[l->n_terms++];
    *t = (struct term){.term = memory_string_n(term, term_n),
        .spelled = memory_string_n(spelled, spelled_n),
        .n = term_n,
        .language = section->language,
        .voice = section->voice,
        .first = small_at(term),
        .exact = has_large(term, term_n)};
    return t->term && t->spelled ? UTTER_OK : error_memory(error, "a lexicon");
}

/* How near a term is to a voice and a language. */
static int nearness(const struct term *t)
{
    return 2 * (t->voice != NULL) + (t->language != NULL);
}

static int compare(const void *left, const void *right)
{
    const struct term *a = left, *b = right;
    return a->first != b->first   ? (a->first < b->first ? -1 : 1)
           : a->n != b->n         ? (a->n > b->n ? -1 : 1)
           : a->exact != b->exact ? (a->exact ? -1 : 1)
                                  : nearness(b) - nearness(a);
}

utter_status lexicon_read(struct lexicon **lexicon, const char *text, utter_error *error)
{
    struct lexicon *l = memory_new(1, sizeof *l);
    struct section section = {0};
    utter_status status = UTTER_OK;
    size_t number = 1, bytes = strlen(text);
    bool bad;
    *lexicon = l;
    if (!l) {
        return error_memory(error, "a lexicon");
    }
    if (utf8_valid(text, bytes, &bad) != bytes) {
        status = error_set(error, UTTER_E_ARGUMENT, "the lexicon is not UTF-8");
    }
    text += letters_byte_order(text, bytes);
    for (const char *at = text, *end; *at && status == UTTER_OK; at = *end ? end + 1 : end, number++) {
        end = strchrnul(at, '\n');
        const char *line = at;
        size_t n = (size_t)(end - at);
        letters_trim(&line, &n);
        if (n == 0 || (*line == '#' && (n == 1 || line[1] == ' '))) {
            continue;
        }
        status = *line == '[' && line[n - 1] == ']' ? take_section(l, line, n, &section, number, error)
                                                    : add(l, line, n, &section, number, error);
    }
    if (status) {
        lexicon_free(lexicon);
    } else if (l->n_terms > 1) {
        qsort(l->terms, l->n_terms, sizeof *l->terms, compare);
    }
    return status;
}

/* Whether text[0..n) begins with the term. */
static bool begins(const struct term *t, const char *text, size_t n, size_t *bytes)
{
    if (t->exact) {
        *bytes = t->n;
        return n >= t->n && memcmp(text, t->term, t->n) == 0;
    }
    size_t at = 0, to = 0;
    uint32_t a, b;
    while (to < t->n && at < n) {
        to += utf8_get(t->term + to, &a);
        at += utf8_get(text + at, &b);
        if ((uint32_t)utf8proc_tolower((utf8proc_int32_t)b) != a) {
            return false;
        }
    }
    *bytes = at;
    return to == t->n;
}

static bool is_for(const char *wanted, const char *here, bool language)
{
    return !wanted || (here && strcasecmp(language ? language_name(wanted) : wanted,
                                   language ? language_name(here) : here) == 0);
}

/* The first term with this first character. */
static size_t first_of(const struct lexicon *l, uint32_t first)
{
    size_t low = 0, high = l->n_terms;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (l->terms[middle].first < first) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

const char *lexicon_find(const struct lexicon *l, const char *language, const char *voice,
    const char *text, size_t n, size_t at, size_t *bytes)
{
    uint32_t first = small_at(text + at);
    size_t i = letters_border(text, n, at) ? first_of(l, first) : l->n_terms;
    for (; i < l->n_terms && l->terms[i].first == first; i++) {
        const struct term *t = &l->terms[i];
        if (is_for(t->language, language, true) && is_for(t->voice, voice, false) &&
            begins(t, text + at, n - at, bytes) && letters_border(text, n, at + *bytes)) {
            return t->spelled;
        }
    }
    return NULL;
}

void lexicon_free(struct lexicon **lexicon)
{
    struct lexicon *l = *lexicon;
    if (l) {
        for (size_t i = 0; i < l->n_terms; i++) {
            memory_free(l->terms[i].term);
            memory_free(l->terms[i].spelled);
        }
        for (size_t i = 0; i < l->n_names; i++) {
            memory_free(l->names[i]);
        }
        memory_free(l->terms);
        memory_free(l->names);
        memory_free(l);
    }
    *lexicon = NULL;
}
