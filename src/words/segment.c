/* SPDX-License-Identifier: Apache-2.0
 * Borders by libunibreak, kinds of characters by utf8proc. */
#include "words/segment.h"

#include <utf8proc.h>
#include <wordbreak.h>

#include "base/memory.h"

/* What has no border for so long is cut, so that an endless word costs linear time. */
enum { LONGEST = 4096 };

/* A digit is a word when it is spoken, a character of East Asia a syllable; 0: it is not spoken. */
static uint32_t weight_of(uint32_t code)
{
    enum { LETTER = 1, SYLLABLE = 3, DIGIT = 4, EAST_ASIA = 0x2e80 };
    utf8proc_category_t kind = utf8proc_category((utf8proc_int32_t)code);
    if (kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO) {
        return DIGIT;
    }
    bool letter = kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
    return !letter ? 0 : kind == UTF8PROC_CATEGORY_LO && code >= EAST_ASIA ? SYLLABLE : LETTER;
}

static bool is_pause(uint32_t code)
{
    utf8proc_category_t kind = utf8proc_category((utf8proc_int32_t)code);
    return code == '\n' || (kind >= UTF8PROC_CATEGORY_PC && kind <= UTF8PROC_CATEGORY_PO &&
                               code != '\'' && code != '"' && code != 0x2019);
}

/* What stands between two borders: a word, or something that follows one. */
static utter_status take(struct segmenter *s, const char *text, size_t bytes, utter_error *error)
{
    struct segment word = {.at = s->n_gone, .bytes = (uint32_t)bytes};
    bool pause = false;
    for (size_t i = 0; i < bytes;) {
        uint32_t code;
        i += utf8_get(text + i, &code);
        word.weight += weight_of(code);
        pause = pause || is_pause(code);
    }
    s->n_gone += bytes;
    if (word.weight == 0) {
        if (s->n > 0 && pause) {
            s->at[s->n - 1].breathes = true;
        }
        return UTTER_OK;
    }
    if (s->n == s->room) {
        size_t room = 2 * s->room + 64;
        struct segment *at = memory_resize(s->at, s->room, room, sizeof *at);
        if (!at) {
            return error_memory(error, "words");
        }
        s->at = at;
        s->room = room;
    }
    s->at[s->n++] = word;
    return UTTER_OK;
}

/* The end of what begins at `begin`: behind the next border. */
static size_t next_border(const char *marks, size_t begin, size_t n)
{
    size_t at = begin;
    while (at + 1 < n && marks[at] != WORDBREAK_BREAK) {
        at++;
    }
    return at + 1;
}

/* Text to come can move the last two borders: of "don'" both, when a t follows. */
static utter_status take_certain(struct segmenter *s, bool final, utter_error *error)
{
    bool bad;
    size_t n = utf8_valid(s->text.at, s->text.n, &bad), begin = 0;
    s->marks.n = 0;
    utter_status status = chars_reserve(&s->marks, n, error);
    if (status || n == 0) {
        return status;
    }
    set_wordbreaks_utf8((const utf8_t *)s->text.at, n, "", s->marks.at);
    while (status == UTTER_OK && begin < n) {
        size_t end = next_border(s->marks.at, begin, n);
        size_t second = end < n ? next_border(s->marks.at, end, n) : n;
        if (!final && second >= n && n - begin < LONGEST) {
            break;
        }
        status = take(s, s->text.at + begin, end - begin, error);
        begin = end;
    }
    chars_drop(&s->text, begin);
    return status;
}

utter_status segmenter_text(struct segmenter *s, const char *text, size_t bytes, utter_error *error)
{
    utter_status status = chars_add(&s->text, text, bytes, error);
    return status ? status : take_certain(s, false, error);
}

utter_status segmenter_finish(struct segmenter *s, utter_error *error)
{
    return take_certain(s, true, error);
}

void segmenter_fini(struct segmenter *s)
{
    chars_fini(&s->text);
    chars_fini(&s->marks);
    memory_free(s->at);
    *s = (struct segmenter){0};
}
