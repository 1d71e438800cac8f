/* SPDX-License-Identifier: Apache-2.0
 * srt and WebVTT: a time on a line with an arrow, then lines of text until a blank one. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "book/parser/plain.h"

/* "1:02:03,500" or "02:03.500" at *at; moves it behind. -1: no time. */
static double take_time(const char **at)
{
    double s = 0, part = 0;
    int n_parts = 0, n_digits = 0;
    const char *c = *at + strspn(*at, " \t");
    for (;; c++) {
        if (*c >= '0' && *c <= '9' && n_digits < 6) {
            part = 10 * part + (*c - '0');
            n_digits++;
        } else if (*c == ':' && n_digits > 0 && n_parts < 2) {
            s = 60 * (s + part);
            part = 0;
            n_parts++;
            n_digits = 0;
        } else {
            break;
        }
    }
    s += part;
    if (n_parts == 0 || n_digits == 0) {
        return -1;
    }
    double scale = 0.1;
    if (*c == ',' || *c == '.') {
        for (c++; *c >= '0' && *c <= '9'; c++, scale /= 10) {
            s += (*c - '0') * scale;
        }
    }
    *at = c;
    return s;
}

/* Whether the line, which ends with a zero, has the time of a subtitle. */
static bool take_times(const char *line, double *begin_s, double *end_s)
{
    const char *at = line;
    *begin_s = take_time(&at);
    at += strspn(at, " \t");
    if (*begin_s < 0 || strncmp(at, "-->", 3) != 0) {
        return false;
    }
    at += 3;
    *end_s = take_time(&at);
    return *end_s >= *begin_s;
}

/* A line of text without <tags>, {\settings} and entities. */
static void put_line(struct draft *d, const char *line)
{
    static const char *const entities[][2] = {{"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"},
        {"&nbsp;", " "}, {"&lrm;", ""}, {"&rlm;", ""}, {"&quot;", "\""}};
    enum { N = sizeof entities / sizeof *entities };
    for (const char *at = line; *at;) {
        size_t plain = strcspn(at, "<{&");
        draft_text(d, at, plain);
        at += plain;
        const char *end = *at == '<'                      ? strchr(at, '>')
                          : at[0] == '{' && at[1] == '\\' ? strchr(at, '}')
                                                          : NULL;
        int i = 0;
        while (*at == '&' && i < N && strncmp(at, entities[i][0], strlen(entities[i][0])) != 0) {
            i++;
        }
        if (end) {
            at = end + 1;
        } else if (*at == '&' && i < N) {
            draft_text(d, entities[i][1], strlen(entities[i][1]));
            at += strlen(entities[i][0]);
        } else if (*at) {
            draft_text(d, at++, 1);
        }
    }
    draft_text(d, "\n", 1);
}

void subtitles_read(struct draft *d, const char *text, size_t n)
{
    bool inside = false; /* of a subtitle */
    size_t number = 0;
    d->book.timed = true;
    for (size_t at = 0; at < n && d->status == UTTER_OK;) {
        const char *end = memchr(text + at, '\n', n - at);
        size_t bytes = end ? (size_t)(end - text) - at : n - at;
        char *line = memory_string_n(text + at, bytes);
        at += bytes + 1;
        if (!line) {
            draft_fail(d, "it takes more than 1 GB of memory to read");
            return;
        }
        for (size_t i = 0; i < bytes; i++) {
            line[i] = line[i] ? line[i] : ' ';
        }
        double begin_s, end_s;
        if (bytes > 0 && line[bytes - 1] == '\r') {
            line[bytes - 1] = 0;
        }
        if (take_times(line, &begin_s, &end_s)) {
            char title[32];
            snprintf(title, sizeof title, "%zu", ++number);
            draft_chapter(d, title, 1, "");
            if (end_s > BOOK_MOST_S) {
                draft_fail(
                    d, "its subtitle %zu ends after more than %d hours", number, BOOK_MOST_S / 3600);
            }
            if (d->status == UTTER_OK) {
                d->book.chapters[d->book.n_chapters - 1].begin_s = begin_s;
                d->book.chapters[d->book.n_chapters - 1].end_s = end_s;
            }
            inside = true;
        } else if (line[strspn(line, " \t")] == 0) {
            inside = false;
        } else if (inside) {
            put_line(d, line);
        }
        memory_free(line);
    }
}
