/* SPDX-License-Identifier: Apache-2.0
 * Words and gaps to paragraphs; paragraphs to chapters. */
#include "book/parser/draft.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

#include "base/memory.h"
#include "base/minmax.h"

void draft_fail(struct draft *d, const char *format, ...)
{
    char text[sizeof d->error.text];
    va_list arguments;
    if (d->status == UTTER_OK) {
        va_start(arguments, format);
        vsnprintf(text, sizeof text, format, arguments);
        va_end(arguments);
        d->status = error_set(&d->error, UTTER_E_FILE, "%s: %s", d->name, text);
    }
}

static bool no_memory(struct draft *d)
{
    draft_fail(d, "it takes more than 1 GB of memory to read");
    return false;
}

/* Also a zero: it would end the text for all who come later. */
static bool is_white(unsigned char c)
{
    return c == ' ' || c == 0 || (c >= '\t' && c <= '\r');
}

/* Bytes at `text` that are read as nothing (soft hyphen, BOM, zero width) or, *blank, as a blank (U+00A0). */
static size_t odd_space(const char *text, size_t n, bool *blank)
{
    static const struct {
        const char *bytes;
        bool blank;
    } odd[] = {{"\xC2\xAD", false}, {"\xEF\xBB\xBF", false}, {"\xE2\x80\x8B", false},
        {"\xE2\x81\xA0", false}, {"\xC2\xA0", true}, {"\xE2\x80\xAF", true}, {"\xE2\x80\x89", true}};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        size_t bytes = strlen(odd[i].bytes);
        if (n >= bytes && memcmp(text, odd[i].bytes, bytes) == 0) {
            *blank = odd[i].blank;
            return bytes;
        }
    }
    return 0;
}

static bool make_room(struct draft *d, size_t more)
{
    struct chapter *c = &d->book.chapters[d->book.n_chapters - 1];
    if (d->all + more > DRAFT_MOST_TEXT) {
        draft_fail(d, "it has more than %d MB of text", DRAFT_MOST_TEXT >> 20);
        return false;
    }
    if (d->n + more + 1 > d->room) {
        size_t room = d->n + more + 1 + d->room + 64;
        char *grown = memory_resize(c->text, d->room, room, 1);
        if (!grown) {
            return no_memory(d);
        }
        c->text = grown;
        d->room = room;
    }
    return true;
}

static void put(struct draft *d, const char *bytes, size_t n)
{
    memcpy(d->book.chapters[d->book.n_chapters - 1].text + d->n, bytes, n);
    d->n += n;
    d->all += n;
}

void draft_text(struct draft *d, const char *text, size_t n)
{
    static const char *const gaps[] = {"", " ", "\n", "\n\n"};
    if (d->status == UTTER_OK && d->book.n_chapters == 0) {
        draft_chapter(d, "", 1, "");
    }
    if (d->status || !make_room(d, n + 2)) {
        return;
    }
    for (size_t i = 0; i < n;) {
        bool blank = false;
        size_t odd = (unsigned char)text[i] >= 0x80 ? odd_space(text + i, n - i, &blank) : 0;
        if (odd > 0 || is_white((unsigned char)text[i])) {
            d->gap = d->gap == GAP_NONE && (blank || odd == 0) ? GAP_BLANK : d->gap;
            i += odd ? odd : 1;
            continue;
        }
        if (d->n > 0) {
            put(d, gaps[d->gap], strlen(gaps[d->gap]));
        }
        d->gap = GAP_NONE;
        size_t end = i + 1;
        while (
            end < n && !is_white((unsigned char)text[end]) && (text[end] & 0x80) == (text[i] & 0x80)) {
            if ((text[end] & 0x80) && odd_space(text + end, n - end, &blank)) {
                break;
            }
            end++;
        }
        if (!make_room(d, n - i + 4)) {
            return;
        }
        put(d, text + i, end - i);
        i = end;
    }
}

void draft_line(struct draft *d)
{
    d->gap = max(d->gap, GAP_LINE);
}

void draft_paragraph(struct draft *d)
{
    d->gap = GAP_PARAGRAPH;
}

char *text_squeezed(const char *text, size_t n)
{
    char *copy = memory_new(n + 1, 1);
    size_t out = 0;
    bool gap = false;
    for (size_t i = 0; copy && i < n; i++) {
        if (is_white((unsigned char)text[i])) {
            gap = out > 0;
            continue;
        }
        if (gap) {
            copy[out++] = ' ';
        }
        copy[out++] = text[i];
        gap = false;
    }
    return copy;
}

void draft_set(struct draft *d, char **place, const char *text, size_t n)
{
    if (d->status == UTTER_OK && (!*place || !(*place)[0])) {
        memory_free(*place);
        *place = text_squeezed(text, n);
        if (!*place) {
            no_memory(d);
        }
    }
}

void draft_chapter(struct draft *d, const char *title, int level, const char *source)
{
    if (d->status == UTTER_OK && d->book.n_chapters == DRAFT_MOST_CHAPTERS) {
        draft_fail(d, "it has more than %d chapters", DRAFT_MOST_CHAPTERS);
    }
    if (d->status) {
        return;
    }
    if (d->book.n_chapters == d->chapters_room) {
        size_t room = d->chapters_room ? 2 * d->chapters_room : 16;
        struct chapter *grown =
            memory_resize(d->book.chapters, d->chapters_room, room, sizeof *d->book.chapters);
        if (!grown) {
            no_memory(d);
            return;
        }
        d->book.chapters = grown;
        d->chapters_room = room;
    }
    struct chapter *c = &d->book.chapters[d->book.n_chapters];
    *c = (struct chapter){.level = level < 1   ? 1
                                   : level > 9 ? 9
                                               : level,
        .title = text_squeezed(title, strlen(title)),
        .source = text_squeezed(source, strlen(source)),
        .text = memory_new(1, 1)};
    d->book.n_chapters++;
    d->n = 0;
    d->room = 1;
    d->gap = GAP_NONE;
    if (!c->title || !c->source || !c->text) {
        no_memory(d);
    }
}

/* The character at text[0..n), and its length; 0: it is not UTF-8. */
static size_t character_at(const char *text, size_t n, utf8proc_int32_t *code)
{
    utf8proc_ssize_t bytes =
        utf8proc_iterate((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)n, code);
    return bytes > 0 ? (size_t)bytes : 0;
}

bool text_speaks(const char *text, size_t n)
{
    utf8proc_int32_t code;
    for (size_t i = 0, bytes; i < n && (bytes = character_at(text + i, n - i, &code)) > 0; i += bytes) {
        utf8proc_category_t kind = utf8proc_category(code);
        if ((kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO) ||
            (kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO)) {
            return true;
        }
    }
    return false;
}

size_t text_valid(const char *text, size_t n)
{
    utf8proc_int32_t code;
    size_t i = 0;
    for (size_t bytes; i < n && (bytes = character_at(text + i, n - i, &code)) > 0; i += bytes) {
    }
    return i;
}

static void chapter_free(struct chapter *c)
{
    memory_free(c->title);
    memory_free(c->text);
    memory_free(c->source);
}

void draft_finish(struct draft *d)
{
    size_t kept = 0;
    for (size_t i = 0; i < d->book.n_chapters; i++) {
        struct chapter *c = &d->book.chapters[i];
        if (c->text && text_speaks(c->text, strlen(c->text))) {
            d->book.chapters[kept++] = *c;
        } else {
            chapter_free(c);
        }
    }
    d->book.n_chapters = kept;
    if (kept == 0) {
        draft_fail(d, "there is no text in it");
    }
}

void book_close(struct book *book)
{
    for (size_t i = 0; i < book->n_chapters; i++) {
        chapter_free(&book->chapters[i]);
    }
    memory_free(book->chapters);
    memory_free(book->title);
    memory_free(book->author);
    memory_free(book->language);
    memory_free(book->cover);
    *book = (struct book){0};
}
