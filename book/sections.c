/* SPDX-License-Identifier: Apache-2.0
 * Paragraphs are gathered until there are enough; one that is far too long is cut behind a sentence. Each section is a
 * reading of its own, so tags that hold from the one before are said again in front of it. */
#include "book/sections.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "book/parser/draft.h"

/* In bytes. A reading judges the pace of a piece by those before it, and so needs some; what is lost when a run is
 * killed is a section for each lane. */
enum { ENOUGH = 900, MOST = 2400 };

/* Behind the last sentence of text[n], by a mark that can hardly be anything else; else behind the last blank;
 * else n. */
static size_t cut_at(const char *text, size_t n)
{
    static const char *const wide[] = {"。", "！", "？", "…"};
    size_t blank = 0;
    for (size_t at = n - 1; at > n / 3; at--) {
        if (strchr(" \n", text[at]) && text[at]) {
            bool mark = text[at - 1] == '!' || text[at - 1] == '?' || text[at - 1] == '"';
            /* "Mr." and "e.g." end no sentence; a word of four small letters and more does. */
            bool word = text[at - 1] == '.' && at > 6;
            for (size_t i = 2; i <= 5 && word; i++) {
                word = text[at - i] >= 'a' && text[at - i] <= 'z';
            }
            if (mark || word) {
                return at + 1;
            }
            blank = blank ? blank : at + 1;
        }
        for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
            if (memcmp(text + at - 2, wide[i], 3) == 0) {
                return at + 1;
            }
        }
    }
    while (blank == 0 && n > 1 && ((unsigned char)text[n] & 0xC0) == 0x80) {
        n--; /* not inside a character */
    }
    return blank ? blank : n;
}

static utter_status add(struct sections *s, struct section section, utter_error *error)
{
    if (!text_speaks(section.text, section.bytes)) {
        return UTTER_OK;
    }
    if (s->n == s->room) {
        size_t room = s->room ? 2 * s->room : 64;
        struct section *grown = memory_resize(s->at, s->room, room, sizeof *grown);
        if (!grown) {
            return error_memory(error, "the sections of a book");
        }
        s->at = grown;
        s->room = room;
    }
    s->at[s->n++] = section;
    s->bytes += section.bytes;
    return UTTER_OK;
}

enum { N_TAGS = 4, MOST_TAG = 200 };
static const char *const tag_names[N_TAGS] = {"voice", "lang", "rate", "volume"};

/* What is in force, as it stood; empty: nothing. */
struct in_force {
    char tags[N_TAGS][MOST_TAG + 1];
    char speaker[MOST_TAG + 1]; /* "NAME:" */
};

static void note_left_out(void *user, const char *note)
{
    (void)note;
    *(bool *)user = true;
}

/* What a reading with tags or a cast makes of a few words, to be freed with utter_memory_free; NULL without memory. */
static char *spoken_of(const char *text, size_t n, const struct sections_rules *rules, bool *left_out)
{
    char *spoken = NULL;
    utter_reading_options o;
    utter_reading_options_init(&o);
    o.markup = rules->tags ? UTTER_MARKUP_TAGS : UTTER_MARKUP_NONE;
    o.cast = rules->cast;
    *left_out = false;
    utter_text_spoken(&spoken, text, n, &o, NULL, NULL, note_left_out, left_out, NULL);
    return spoken;
}

/* A tag whose value is none is left out, and what was in force stays so. */
static bool is_obeyed(const char *tag, size_t n, const struct sections_rules *rules)
{
    bool left_out;
    utter_memory_free(spoken_of(tag, n, rules, &left_out));
    return !left_out;
}

/* Bytes of "NAME:" in front of a line that one of the cast speaks, else 0: of them nothing is spoken. */
static size_t speaker_bytes(const char *line, size_t n, const struct sections_rules *rules)
{
    bool ignored;
    const char *colon = memchr(line, ':', n < MOST_TAG ? n : MOST_TAG);
    size_t bytes = colon ? (size_t)(colon + 1 - line) : 0;
    bool name = text_speaks(line, bytes) && !memchr(line, '\n', bytes) && !memchr(line, '[', bytes);
    char *spoken = name ? spoken_of(line, bytes, rules, &ignored) : NULL;
    bool is = spoken && !text_speaks(spoken, strcspn(spoken, "["));
    utter_memory_free(spoken);
    return is ? bytes : 0;
}

/* A line begins: a speaker speaks to the next one, or to an empty line, and begins with the own voice. */
static void follow_line(
    struct in_force *now, const char *line, size_t n, const struct sections_rules *rules)
{
    size_t bytes = speaker_bytes(line, n, rules);
    bool empty = n > 0 && line[0] == '\n' && now->speaker[0];
    if (bytes > 0 || empty) {
        snprintf(now->speaker, sizeof now->speaker, "%.*s", (int)bytes, line);
        now->tags[0][0] = 0;
    }
}

/* A tag that may begin at `tag`, n bytes before the text ends: [name:value] begins, [name:], [name:default] and [/name]
 * end. As for the reading, "[voice]" and "[voice: of the sea]" are words. */
static void follow_tag(
    struct in_force *now, const char *tag, size_t n, const struct sections_rules *rules)
{
    const char *end = memchr(tag, ']', n < MOST_TAG ? n : MOST_TAG);
    size_t length = end ? (size_t)(end + 1 - tag) : 0;
    for (size_t i = 0; i < N_TAGS && end; i++) {
        const char *name = tag + 1 + (tag[1] == '/');
        size_t name_n = strlen(tag_names[i]), value_n = (size_t)(end - name) - name_n;
        if (name + name_n > end || memcmp(name, tag_names[i], name_n) != 0) {
            continue;
        }
        const char *value = name + name_n;
        bool slash = tag[1] == '/', words = *value == ':' && isspace((unsigned char)value[1]);
        bool ends = slash || value_n <= 1 || (value_n == 8 && memcmp(value, ":default", 8) == 0);
        if (*value == (slash ? ']' : ':') && !words && !memchr(value, '\n', value_n) &&
            (ends || is_obeyed(tag, length, rules))) {
            snprintf(now->tags[i], sizeof now->tags[i], "%.*s", ends ? 0 : (int)length, tag);
        }
    }
}

/* Follows text[n), in front of which `line_begins`. */
static void follow(struct in_force *now, const char *text, size_t n, bool line_begins,
    const struct sections_rules *rules)
{
    for (size_t at = 0; at < n; at++) {
        if (rules->cast && (at > 0 ? text[at - 1] == '\n' : line_begins)) {
            follow_line(now, text + at, n - at, rules);
        }
        if (rules->tags && text[at] == '[' && (at == 0 || text[at - 1] != '\\')) {
            follow_tag(now, text + at, n - at, rules);
        }
    }
}

static utter_status put_prefix(struct section *section, const struct in_force *now, utter_error *error)
{
    char all[(N_TAGS + 1) * MOST_TAG + 2];
    snprintf(all, sizeof all, "%s%s%s%s%s%s", now->speaker, now->speaker[0] ? " " : "", now->tags[0],
        now->tags[1], now->tags[2], now->tags[3]);
    section->prefix = all[0] ? memory_string(all) : NULL;
    return all[0] && !section->prefix ? error_memory(error, "the sections of a book") : UTTER_OK;
}

utter_status sections_add(struct sections *s, const struct chapter *chapter, size_t number,
    struct sections_rules rules, utter_error *error)
{
    const bool whole = rules.whole;
    struct in_force now = {0};
    utter_status status = UTTER_OK;
    const char *at = chapter->text, *end = at + strlen(at);
    size_t before = s->n;
    while (at < end && status == UTTER_OK) {
        const char *to = at;
        /* Whole paragraphs, as long as there is not enough. */
        while (to < end && (whole || to - at < ENOUGH)) {
            const char *gap = strstr(to, "\n\n");
            const char *next = gap ? gap + 2 : end;
            if (!whole && to > at && next - at > MOST) {
                break;
            }
            to = next;
        }
        enum section_end how = SECTION_PARAGRAPH;
        size_t bytes = (size_t)(to - at);
        if (!whole && bytes > MOST) {
            bytes = cut_at(at, MOST);
            how = SECTION_SENTENCE;
        }
        size_t text_bytes = bytes;
        while (text_bytes > 0 && strchr(" \n", at[text_bytes - 1])) {
            text_bytes--;
        }
        struct section section = {number, NULL, at, text_bytes, how};
        size_t n = s->n;
        status = add(s, section, error);
        if (status == UTTER_OK && (rules.tags || rules.cast) && !whole) {
            status = s->n > n ? put_prefix(&s->at[n], &now, error) : UTTER_OK;
            follow(&now, at, bytes, at == chapter->text || at[-1] == '\n', &rules);
        }
        at += bytes;
    }
    if (s->n > before) {
        s->at[s->n - 1].end = SECTION_CHAPTER;
    }
    return status;
}

void sections_fini(struct sections *s)
{
    for (size_t i = 0; i < s->n; i++) {
        memory_free(s->at[i].prefix);
    }
    memory_free(s->at);
    *s = (struct sections){0};
}
