/* SPDX-License-Identifier: Apache-2.0
 * Plain text with tags in it ([pause:500ms], [voice:anna], [lang:de]), headings ("# ") and, with a cast, lines that
 * somebody speaks ("ANNA: Hello."). Everything else stays as it is. */
#include <ctype.h>
#include <string.h>

#include "script/script_parts.h"

enum { MOST_TAG = 200 };

struct tag {
    size_t bytes; /* 0: none begins here */
    const char *name, *value;
    size_t name_n, value_n;
};

/* [name:value] in one line, the name in small letters; [/name] and [name] are ends and have no value. */
static struct tag tag_at(const char *text, size_t n)
{
    struct tag t = {0};
    size_t at = 1, begin;
    at += n > 1 && text[1] == '/';
    begin = at;
    while (at < n && text[at] >= 'a' && text[at] <= 'z') {
        at++;
    }
    if (at == begin || at == n) {
        return t;
    }
    bool end = begin == 2 && text[at] == ']';
    if (!end && text[at] != ':') {
        return t;
    }
    size_t value = end ? at : at + 1, close = value;
    while (close < n && close < MOST_TAG && text[close] != ']' && text[close] != '\n') {
        close++;
    }
    if (close == n || text[close] != ']' || isspace((unsigned char)text[value])) {
        return t; /* [note: this] is words */
    }
    return (struct tag){close + 1, text + begin, text + value, at - begin, close - value};
}

static bool is_named(const struct tag *t, const char *name)
{
    return strlen(name) == t->name_n && memcmp(t->name, name, t->name_n) == 0;
}

static size_t line_of(const struct script *s, const char *text, size_t at)
{
    size_t line = s->line;
    for (size_t i = 0; i < at; i++) {
        line += text[i] == '\n';
    }
    return line;
}

/* A name or nothing; "default" and an empty value are nothing. */
static utter_status take_name(
    struct script *s, const struct tag *t, const char **name, const char *own, utter_error *error)
{
    bool none = t->value_n == 0 || (t->value_n == 7 && memcmp(t->value, "default", 7) == 0);
    *name = own;
    return none ? UTTER_OK : script_name(s, t->value, t->value_n, name, error);
}

static utter_status obey(struct script *s, const struct tag *t, size_t line, utter_error *error)
{
    struct script_style style = s->style;
    double number = 1;
    bool good = true, empty = t->value_n == 0;
    utter_status status = UTTER_OK;
    if (is_named(t, "pause")) {
        good = value_pause(t->value, t->value_n, &number);
        return good ? span_pause(s, number, error)
                    : (script_add_note(s,
                           "line %zu: [pause:%.*s] was left out: a pause is 500ms or 1.5s, up to 60s",
                           line, (int)t->value_n, t->value),
                          UTTER_OK);
    }
    if (is_named(t, "voice")) {
        status = take_name(s, t, &style.voice, s->speaker ? s->speaker : cast_narrator(s->cast), error);
    } else if (is_named(t, "lang")) {
        status = take_name(s, t, &style.language, NULL, error);
    } else if (is_named(t, "rate")) {
        good = empty || value_rate(t->value, t->value_n, &number);
        style.rate = number;
    } else if (is_named(t, "volume")) {
        good = empty || value_volume(t->value, t->value_n, &number);
        style.volume = number;
    } else {
        script_add_note(s,
            "line %zu: [%.*s:...] was left out: tags are pause, voice, lang, rate, volume", line,
            (int)t->name_n, t->name);
        return UTTER_OK;
    }
    if (!good) {
        script_add_note(s, "line %zu: [%.*s:%.*s] was left out: its value is none", line,
            (int)t->name_n, t->name, (int)t->value_n, t->value);
    }
    return status || !good ? status : span_style(s, &style, error);
}

/* Words with tags among them: text[from..to). */
static utter_status read_words(
    struct script *s, const char *text, size_t from, size_t to, utter_error *error)
{
    utter_status status = UTTER_OK;
    size_t begin = from;
    for (size_t at = from; at < to && status == UTTER_OK;) {
        struct tag t = text[at] == '[' && s->markup == UTTER_MARKUP_TAGS ? tag_at(text + at, to - at)
                                                                         : (struct tag){0};
        bool escaped = t.bytes && at > begin && text[at - 1] == '\\';
        if (t.bytes == 0 || escaped) {
            if (escaped) {
                status = span_same(s, text + begin, at - 1 - begin, s->offset + begin, error);
                begin = at;
            }
            at++;
            continue;
        }
        status = span_same(s, text + begin, at - begin, s->offset + begin, error);
        status = status ? status : obey(s, &t, line_of(s, text, at), error);
        at += t.bytes;
        /* "a [pause:1s] b" has one blank too many. */
        bool blank = at < to && text[at] == ' ' &&
                     (s->boundary || (s->now.text.n > 0 && s->now.text.at[s->now.text.n - 1] == ' '));
        begin = at += blank;
        s->written_white |= blank;
    }
    return status ? status : span_same(s, text + begin, to - begin, s->offset + begin, error);
}

/* The marks "# " of a heading that text[0..n) begins with, 0: it is none. */
static size_t heading_mark(const char *text, size_t n)
{
    size_t at = 0;
    while (at < n && text[at] == '#') {
        at++;
    }
    return at > 0 && at <= 6 && at < n && text[at] == ' ' ? at + 1 : 0;
}

static utter_status read_heading(
    struct script *s, const char *text, size_t at, size_t end, utter_error *error)
{
    struct script_style style = s->style;
    utter_status status = span_paragraph(s, s->offset + at, error);
    style.heading = true;
    status = status ? status : span_style(s, &style, error);
    status = status ? status : read_words(s, text, at, end, error);
    style = s->style;
    style.heading = false;
    s->written_white = true; /* its line break */
    return status ? status : span_style(s, &style, error);
}

/* A line that begins like that of a speaker whom the cast does not have: BOB SMITH: */
static void note_stranger(struct script *s, const char *text, size_t at, size_t end)
{
    const char *colon = memchr(text + at, ':', end - at);
    size_t n = colon ? (size_t)(colon - text) - at : 0;
    bool name = n > 1 && n < 40;
    for (size_t i = 0; i < n && name; i++) {
        unsigned char c = (unsigned char)text[at + i];
        name = isupper(c) || (i > 0 && (c == ' ' || c == '.' || isdigit(c)));
    }
    if (name) {
        script_add_note(s, "line %zu: \"%.*s\" is not in the cast, so that the name is spoken",
            line_of(s, text, at), (int)n, text + at);
    }
}

static utter_status set_speaker(struct script *s, const char *voice, utter_error *error)
{
    struct script_style style = s->style;
    const char *name = NULL;
    utter_status status = voice ? script_name(s, voice, strlen(voice), &name, error) : UTTER_OK;
    if (status) {
        return status;
    }
    s->speaker = name;
    style.voice = name ? name : cast_narrator(s->cast);
    return span_style(s, &style, error);
}

/* A line, text[at..end), its line break behind it. */
static utter_status read_line(
    struct script *s, const char *text, size_t at, size_t end, size_t next, utter_error *error)
{
    utter_status status = UTTER_OK;
    size_t words = 0, blank = at;
    while (blank < end && strchr(" \t\r", text[blank])) {
        blank++;
    }
    const char *voice = s->cast ? cast_find(s->cast, text + at, end - at, &words) : NULL;
    size_t mark = s->markup == UTTER_MARKUP_TAGS ? heading_mark(text + at, end - at) : 0;
    if (mark) {
        return read_heading(s, text, at + mark, end, error);
    }
    if (voice) {
        status = span_paragraph(s, s->offset + at, error);
        status = status ? status : set_speaker(s, voice, error);
        at += words;
        while (at < end && strchr(" \t", text[at])) {
            at++;
        }
    } else if (s->cast) {
        note_stranger(s, text, at, end);
        if (blank == end && s->speaker) { /* behind an empty line nobody of the cast speaks */
            status = span_paragraph(s, s->offset + at, error);
            status = status ? status : set_speaker(s, NULL, error);
        }
    }
    return status ? status : read_words(s, text, at, next, error);
}

utter_status tags_read(struct script *s, const char *text, size_t n, utter_error *error)
{
    utter_status status = UTTER_OK;
    for (size_t at = 0, next; at < n && status == UTTER_OK; at = next) {
        const char *end = memchr(text + at, '\n', n - at);
        size_t line_end = end ? (size_t)(end - text) : n;
        next = end ? line_end + 1 : n;
        status = read_line(s, text, at, line_end, next, error);
    }
    return status;
}
