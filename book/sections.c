/* SPDX-License-Identifier: Apache-2.0
 * Paragraphs are gathered until there are enough; one that is far too long is cut behind a sentence. */
#include "book/sections.h"

#include <string.h>

#include "base/memory.h"
#include "book/draft.h"

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

utter_status sections_add(
    struct sections *s, const struct chapter *chapter, size_t number, bool whole, utter_error *error)
{
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
        status = add(s, (struct section){number, at, text_bytes, how}, error);
        at += bytes;
    }
    if (s->n > before) {
        s->at[s->n - 1].end = SECTION_CHAPTER;
    }
    return status;
}

void sections_fini(struct sections *s)
{
    memory_free(s->at);
    *s = (struct sections){0};
}
