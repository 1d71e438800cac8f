/* SPDX-License-Identifier: Apache-2.0
 * Lists of numbers and ranges; the table of contents. */
#include "cli/speak/read_chapters.h"

#include <stdlib.h>
#include <string.h>

#include "cli/report.h"

/* "2-5,8-": the next range, from 1, of the list at *at. False: it is none. */
static bool next_range(const char **at, unsigned long *low, unsigned long *high)
{
    char *end;
    *low = *high = **at >= '0' && **at <= '9' ? strtoul(*at, &end, 10) : 0;
    if (*low == 0) {
        return false;
    }
    if (*end == '-') {
        bool open = end[1] == 0 || end[1] == ',';
        *high = open                             ? (unsigned long)-1
                : end[1] >= '0' && end[1] <= '9' ? strtoul(end + 1, &end, 10)
                                                 : 0;
        end += open;
    }
    *at = end + (*end == ',');
    return *high >= *low && (*end == 0 || (*end == ',' && end[1]));
}

bool read_chapters_have(const struct settings *settings, size_t i)
{
    unsigned long low, high;
    const char *at = settings->chapters.given ? settings->chapters.text : "";
    bool have = !*at;
    while (*at && !have && next_range(&at, &low, &high)) {
        have = i + 1 >= low && i + 1 <= high;
    }
    return have;
}

int read_chapters_check(const struct settings *settings, const struct book *book)
{
    unsigned long low, high;
    const char *text = settings->chapters.given ? settings->chapters.text : "", *at = text;
    while (*at) {
        if (!next_range(&at, &low, &high)) {
            return fail(1, "--chapters: '%s' is no list of chapters (2, 2-5, 2-, 1,4-6)", text);
        }
        if (low > book->n_chapters || (high != (unsigned long)-1 && high > book->n_chapters)) {
            return fail(1, "--chapters: '%s': there are %zu chapters (utter read --list shows them)",
                text, book->n_chapters);
        }
    }
    return 0;
}

static int list_json(const struct book *book, const struct settings *settings)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < book->n_chapters; i++) {
        const struct chapter *c = &book->chapters[i];
        if (read_chapters_have(settings, i)) {
            json_t *one = json_pack("{s:I,s:o,s:i,s:o,s:o}", "number", (json_int_t)i + 1, "title",
                json_name(c->title), "level", c->level, "source", json_name(c->source), "text",
                json_name(c->text));
            if (book->timed && one) {
                json_object_set_new(one, "begin_s", json_real(c->begin_s));
                json_object_set_new(one, "end_s", json_real(c->end_s));
            }
            json_array_append_new(list, one);
        }
    }
    return report_json(json_pack("{s:o,s:o,s:o,s:b,s:o}", "title", json_name(book->title), "author",
        json_name(book->author), "language", json_name(book->language), "cover", book->cover != NULL,
        "chapters", list));
}

int read_list(const struct book *book, const struct settings *settings)
{
    /* Bytes of ordinary speech in a second: letters, or a third as many where each has three bytes. */
    enum { BYTES_A_S = 15 };
    if (settings->json.given) {
        return list_json(book, settings);
    }
    if (book->title[0]) {
        put_line("%s%s%s%s", book->title, book->author[0] ? ", " : "", book->author,
            book->cover ? " (with a cover)" : "");
    }
    for (size_t i = 0; i < book->n_chapters; i++) {
        const struct chapter *c = &book->chapters[i];
        size_t seconds = strlen(c->text) / BYTES_A_S;
        if (read_chapters_have(settings, i)) {
            put_line("%4zu  about %zu:%02zu  %*s%.60s", i + 1, seconds / 60, seconds % 60,
                2 * (c->level - 1), "", c->title[0] ? c->title : c->text);
        }
    }
    return 0;
}
