/* SPDX-License-Identifier: Apache-2.0
 * txt: paragraphs between blank lines, in which lines are broken anywhere; chapters where a line of its own says so.
 * Markdown becomes a page. */
#include "book/parser/plain.h"

#include <cmark.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "book/parser/page.h"

/* ---- txt ---- */

struct line {
    const char *at;
    size_t n;
    bool blank;
};

static struct line line_at(const char *text, size_t n, size_t at)
{
    const char *end = memchr(text + at, '\n', n - at);
    struct line line = {text + at, end ? (size_t)(end - text) - at : n - at, true};
    for (size_t i = 0; i < line.n && line.blank; i++) {
        line.blank = strchr(" \t\r\f\v", line.at[i]) != NULL && line.at[i];
    }
    return line;
}

/* "Chapter 12", "KAPITEL IV.", "第三章 ..": a word for a part of a book, then its number. */
static bool is_chapter(const struct line *line)
{
    static const char *const words[] = {"chapter", "part", "book", "kapitel", "teil", "chapitre",
        "partie", "capítulo", "parte", "capitolo", "глава", "ГЛАВА", "Глава", "часть", "ЧАСТЬ",
        "Часть"};
    const char *at = line->at, *end = line->at + line->n;
    while (at < end && (*at == ' ' || *at == '\t')) {
        at++;
    }
    size_t n = (size_t)(end - at);
    if (n > 80) {
        return false;
    }
    if (n >= 9 && (memcmp(at, "第", 3) == 0 || memcmp(at, "제", 3) == 0)) {
        for (size_t i = 3; i + 3 <= n && i < 24; i++) {
            if (memcmp(at + i, "章", 3) == 0 || memcmp(at + i, "장", 3) == 0) {
                return true;
            }
        }
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t length = strlen(words[i]);
        if (n > length + 1 && strncasecmp(at, words[i], length) == 0 && at[length] == ' ') {
            size_t digits = 0;
            const char *number = at + length + 1;
            while (number + digits < end && strchr("0123456789IVXLCivxlc", number[digits]) &&
                   number[digits]) {
                digits++;
            }
            const char *behind = number + digits;
            return digits > 0 && (behind == end || strchr(" .:\r\n-", *behind));
        }
    }
    return false;
}

void plain_read(struct draft *d, const char *text, size_t n)
{
    bool blank_before = true;
    for (size_t at = 0; at < n && d->status == UTTER_OK;) {
        struct line line = line_at(text, n, at);
        at += line.n + 1;
        bool blank_behind = at >= n || line_at(text, n, at).blank;
        if (line.blank) {
            draft_paragraph(d);
        } else if (blank_before && blank_behind && is_chapter(&line)) {
            char *title = text_squeezed(line.at, line.n);
            draft_chapter(d, title ? title : "", 1, "");
            memory_free(title);
        }
        draft_text(d, line.at, line.n);
        draft_text(d, "\n", 1);
        blank_before = line.blank;
    }
}

/* ---- Markdown ---- */

/* Lines of "key: value" between two of "---" at the beginning, which blogs and pandoc write. Returns their length. */
static size_t read_front(struct draft *d, const char *text, size_t n)
{
    struct line line = line_at(text, n, 0);
    if (line.n < 3 || strncmp(line.at, "---", 3) != 0) {
        return 0;
    }
    for (size_t at = line.n + 1; at < n; at += line.n + 1) {
        line = line_at(text, n, at);
        if (line.n >= 3 && (strncmp(line.at, "---", 3) == 0 || strncmp(line.at, "...", 3) == 0)) {
            return at + line.n + (at + line.n < n);
        }
        const char *colon = memchr(line.at, ':', line.n);
        size_t key = colon ? (size_t)(colon - line.at) : 0;
        char **place = key == 5 && strncmp(line.at, "title", key) == 0    ? &d->book.title
                       : key == 6 && strncmp(line.at, "author", key) == 0 ? &d->book.author
                       : (key == 4 && strncmp(line.at, "lang", key) == 0) ? &d->book.language
                                                                          : NULL;
        if (place) {
            char *value = text_squeezed(colon + 1, line.n - key - 1);
            size_t length = value ? strlen(value) : 0;
            bool quoted = length >= 2 && strchr("\"'", value[0]) && value[length - 1] == value[0];
            draft_set(d, place, value ? value + quoted : "", length - 2 * (size_t)quoted);
            memory_free(value);
        }
    }
    return 0;
}

void markdown_read(struct draft *d, const struct library *l, const char *text, size_t n)
{
    size_t front = read_front(d, text, n);
    char *html = cmark_markdown_to_html(text + front, n - front, CMARK_OPT_DEFAULT);
    if (!html) {
        draft_fail(d, "it takes more than 1 GB of memory to read");
        return;
    }
    struct page page = {.library = l, .chapters = PAGE_HEADINGS, .source = "", .about = true};
    page_read(d, &page, html, strlen(html));
}
