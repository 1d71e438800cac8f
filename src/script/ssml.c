/* SPDX-License-Identifier: Apache-2.0
 * SSML: what of it a voice can do. Elements that are not known lose their tags, which is told once, and keep their
 * words; those that hold no words for listeners lose both. */
#include <stdio.h>
#include <string.h>

#include "base/minmax.h"
#include "script/letters.h"
#include "script/script_parts.h"
#include "script/spell/spell.h"
#include "script/xml.h"

enum { MOST_DEPTH = 64, MOST_VALUE = 1024 };

/* How the words of an element are read. */
enum manner { AS_IT_IS, REPLACED, SAID_AS, NOT_SPOKEN };

struct element {
    const char *name; /* of the source */
    size_t name_n, at;
    struct script_style style; /* to go back to */
    enum manner manner;        /* the same */
};

struct reader {
    struct script *s;
    struct xml xml;
    struct element stack[MOST_DEPTH];
    int depth;
    enum manner manner;
    bool ended; /* there was a </speak> */
    /* REPLACED and SAID_AS: the words, by whom, and from where to where in the source. */
    char as[MOST_VALUE], format[MOST_VALUE];
    struct chars inside;
    size_t from, to;
    utter_error *error;
};

static bool is_named(const struct xml_token *t, const char *name)
{
    return strlen(name) == t->n && memcmp(t->text, name, t->n) == 0;
}

/* The value of an attribute in out, false: it has none. */
static bool value_of(const struct xml_token *t, const char *name, char out[MOST_VALUE])
{
    struct xml_attribute a;
    for (size_t at = 0; xml_attribute(t, &at, &a);) {
        if (strlen(name) == a.name_n && memcmp(a.name, name, a.name_n) == 0) {
            xml_value(&a, out, MOST_VALUE);
            return true;
        }
    }
    return false;
}

/* ---- Words ---- */

/* Runs of white space are one blank, none at the beginning of a line: a document is laid out for the eye. A character
 * that is no text, as &#32;, is white space. */
static utter_status add_words(struct reader *r, const struct xml_token *t)
{
    struct script *s = r->s;
    bool same = t->kind == XML_TEXT;
    const char *text = same ? t->text : " ";
    size_t n = same ? t->n : 1, source = s->offset + t->at;
    utter_status status = UTTER_OK;
    for (size_t at = 0, end; at < n && status == UTTER_OK; at = end) {
        bool white = strchr(" \t\r\n", text[at]) && text[at];
        for (end = at; end < n && (strchr(" \t\r\n", text[end]) && text[end]) == white; end++) {
        }
        if (!white) {
            status = span_same(s, text + at, end - at, source + at, r->error);
            continue;
        }
        size_t have = s->now.text.n;
        bool blank = !s->boundary && have > 0 && !strchr(" \n", s->now.text.at[have - 1]);
        s->written_white = true;
        if (blank && same && end - at == 1 && text[at] == ' ') {
            status = span_same(s, " ", 1, source + at, r->error);
        } else if (blank) {
            size_t source_n = same ? end - at : t->bytes;
            status = span_other(s, " ", 1, source + at, source_n, false, r->error);
        }
    }
    return status;
}

static utter_status take_words(struct reader *r, const struct xml_token *t)
{
    char character[4];
    const char *text = t->kind == XML_TEXT ? t->text : character;
    size_t n = t->kind == XML_TEXT ? t->n : utf8_put(t->code, character);
    size_t source = r->s->offset + t->at;
    if (r->manner == NOT_SPOKEN || r->ended) {
        return UTTER_OK;
    }
    if (r->manner != AS_IT_IS) {
        r->from = r->inside.n ? r->from : source;
        r->to = source + t->bytes;
        return chars_add(&r->inside, text, n, r->error);
    }
    if (t->kind == XML_TEXT || (n == 1 && strchr(" \t\r\n", text[0]))) {
        return add_words(r, t);
    }
    span_written(r->s, text, n, source, t->bytes);
    return span_other(r->s, text, n, source, t->bytes, false, r->error);
}

/* The end of <sub>, <phoneme>, <say-as>: their words, in place of what stood in them. */
static utter_status end_words(struct reader *r)
{
    struct chars words = {0};
    const char *language = r->s->style.language ? r->s->style.language : r->s->language;
    utter_status status = UTTER_OK;
    size_t source = r->inside.n ? r->from : r->s->offset + r->xml.at;
    size_t source_n = r->inside.n ? r->to - r->from : 0;
    bool only_spoken = r->manner == REPLACED && r->inside.n == 0;
    span_written(r->s, only_spoken ? r->as : r->inside.at, only_spoken ? strlen(r->as) : r->inside.n,
        source, source_n);
    if (r->manner == REPLACED) {
        status = span_other(r->s, r->as, strlen(r->as), source, source_n, true, r->error);
    } else if (r->inside.n > 0) {
        status = spell_as(language, r->as, r->format, r->inside.at, r->inside.n, &words, r->error);
        if (status == UTTER_AGAIN) {
            script_add_note(r->s, "<say-as interpret-as=\"%.40s\"> was left out for \"%.*s\"", r->as,
                (int)min(r->inside.n, 40), r->inside.at);
            words.n = 0;
            status = chars_add(&words, r->inside.at, r->inside.n, r->error);
        }
        status =
            status ? status : span_other(r->s, words.at, words.n, source, source_n, true, r->error);
    }
    chars_fini(&words);
    r->inside.n = 0;
    return status;
}

/* ---- Elements ---- */

static utter_status take_break(struct reader *r, const struct xml_token *t)
{
    char value[MOST_VALUE];
    double seconds = 0;
    bool time = value_of(t, "time", value);
    bool strength = !time && value_of(t, "strength", value);
    bool good = time       ? value_pause(value, strlen(value), &seconds)
                : strength ? value_strength(value, strlen(value), &seconds)
                           : value_strength("medium", 6, &seconds);
    if (!good) {
        script_add_note(r->s, "<break %s=\"%.40s\"/> was left out: %s", time ? "time" : "strength",
            value,
            time ? "a pause is 500ms or 1.5s, up to 60s"
                 : "it is none, x-weak, weak, medium, strong or x-strong");
        return UTTER_OK;
    }
    return span_pause(r->s, seconds, r->error);
}

static utter_status name_of(
    struct reader *r, const struct xml_token *t, const char *attribute, const char **name)
{
    char value[MOST_VALUE];
    if (value_of(t, attribute, value) && value[0]) {
        return script_name(r->s, value, strlen(value), name, r->error);
    }
    return UTTER_OK;
}

static void take_prosody(struct reader *r, const struct xml_token *t, struct script_style *style)
{
    char value[MOST_VALUE];
    double number;
    struct xml_attribute a;
    if (value_of(t, "rate", value)) {
        bool good = value_rate(value, strlen(value), &number);
        double rate = good ? style->rate * number : style->rate;
        style->rate = rate < 0.25 ? 0.25 : rate > 4 ? 4 : rate;
        if (!good) {
            script_add_note(r->s, "<prosody rate=\"%.40s\"> was left out", value);
        }
    }
    if (value_of(t, "volume", value)) {
        bool good = value_volume(value, strlen(value), &number);
        style->volume = good ? style->volume * number : style->volume;
        style->volume = style->volume > 4 ? 4 : style->volume;
        if (!good) {
            script_add_note(r->s, "<prosody volume=\"%.40s\"> was left out", value);
        }
    }
    for (size_t at = 0; xml_attribute(t, &at, &a);) {
        bool known = (a.name_n == 4 && memcmp(a.name, "rate", 4) == 0) ||
                     (a.name_n == 6 && memcmp(a.name, "volume", 6) == 0);
        if (!known) {
            script_add_note(r->s, "<prosody %.*s> was left out", (int)a.name_n, a.name);
        }
    }
}

/* Elements whose words are replaced. */
static bool take_replaced(struct reader *r, const struct xml_token *t)
{
    char alphabet[MOST_VALUE];
    if (is_named(t, "sub")) {
        r->manner = value_of(t, "alias", r->as) ? REPLACED : r->manner;
        return true;
    }
    if (is_named(t, "phoneme")) {
        bool respelled = value_of(t, "alphabet", alphabet) &&
                         (strcmp(alphabet, "respell") == 0 || strcmp(alphabet, "x-respell") == 0);
        if (respelled && value_of(t, "ph", r->as)) {
            r->manner = REPLACED;
        } else {
            script_add_note(r->s, "<phoneme> was left out: the voice reads letters, so that ph must be "
                                  "a respelling (alphabet=\"x-respell\")");
        }
        return true;
    }
    if (is_named(t, "say-as")) {
        r->format[0] = 0;
        value_of(t, "format", r->format);
        r->manner = value_of(t, "interpret-as", r->as) ? SAID_AS : r->manner;
        return true;
    }
    return false;
}

/* All of them are told in one note. */
static utter_status note_unknown(struct reader *r, const struct xml_token *t)
{
    enum { MOST_NAMES = 200, MOST_NAME = 40 };
    char name[MOST_NAME + 4];
    struct chars *list = &r->s->unknown;
    snprintf(name, sizeof name, "<%.*s>", (int)min(t->n, MOST_NAME), t->text);
    utter_status status = chars_reserve(list, 1, r->error);
    if (status || list->n > MOST_NAMES ||
        (list->n > 0 && memmem(list->at, list->n, name, strlen(name)))) {
        return status;
    }
    status = list->n ? chars_add(list, ", ", 2, r->error) : UTTER_OK;
    return status ? status : chars_add(list, name, strlen(name), r->error);
}

static utter_status take_known(struct reader *r, const struct xml_token *t, struct script_style *style)
{
    static const char *const silent[] = {"metadata", "meta", "desc", "lexicon", "mark", "lookup"};
    size_t source = r->s->offset + t->at;
    utter_status status = UTTER_OK;
    if (is_named(t, "break")) {
        return take_break(r, t);
    }
    if (is_named(t, "voice")) {
        status = name_of(r, t, "name", &style->voice);
        return status ? status : name_of(r, t, "xml:lang", &style->language);
    }
    bool paragraph = is_named(t, "p"), sentence = is_named(t, "s");
    if (paragraph || sentence || is_named(t, "lang") || is_named(t, "speak")) {
        status = paragraph  ? span_paragraph(r->s, source, r->error)
                 : sentence ? span_sentence(r->s, source, r->error)
                            : UTTER_OK;
        return status ? status : name_of(r, t, "xml:lang", &style->language);
    }
    if (is_named(t, "prosody")) {
        take_prosody(r, t, style);
        return UTTER_OK;
    }
    if (take_replaced(r, t)) {
        return UTTER_OK;
    }
    for (size_t i = 0; i < sizeof silent / sizeof *silent; i++) {
        if (is_named(t, silent[i])) {
            r->manner = NOT_SPOKEN;
            return UTTER_OK;
        }
    }
    return note_unknown(r, t);
}

static utter_status leave(struct reader *r)
{
    struct element *e = &r->stack[--r->depth];
    struct xml_token t = {.text = e->name, .n = e->name_n};
    size_t source = r->s->offset + r->xml.at;
    utter_status status = UTTER_OK;
    if (r->manner != e->manner && (r->manner == REPLACED || r->manner == SAID_AS)) {
        status = end_words(r);
    }
    r->manner = e->manner;
    if (status == UTTER_OK && r->manner == AS_IT_IS) {
        status = is_named(&t, "p")   ? span_paragraph(r->s, source, r->error)
                 : is_named(&t, "s") ? span_sentence(r->s, source, r->error)
                                     : UTTER_OK;
    }
    r->ended |= r->depth == 0 && is_named(&t, "speak");
    return status ? status : span_style(r->s, &e->style, r->error);
}

static utter_status enter(struct reader *r, const struct xml_token *t)
{
    struct script_style style = r->s->style;
    utter_status status = UTTER_OK;
    bool root = is_named(t, "speak");
    if (r->ended || (root && r->depth > 0)) {
        return xml_refuse(
            &r->xml, t->at, r->error, "an element stands behind </speak>, or <speak> in another");
    }
    if (r->depth == MOST_DEPTH) {
        return xml_refuse(&r->xml, t->at, r->error, "elements lie more than %d deep", MOST_DEPTH);
    }
    r->stack[r->depth++] = (struct element){t->text, t->n, t->at, r->s->style, r->manner};
    if (r->manner == AS_IT_IS) {
        status = take_known(r, t, &style);
    }
    status = status ? status : span_style(r->s, &style, r->error);
    return status || !t->empty ? status : leave(r);
}

static utter_status take_token(struct reader *r, const struct xml_token *t)
{
    if (t->kind == XML_OPEN) {
        return enter(r, t);
    }
    if (t->kind != XML_CLOSE) {
        return take_words(r, t);
    }
    const struct element *e = r->depth ? &r->stack[r->depth - 1] : NULL;
    if (!e || e->name_n != t->n || memcmp(e->name, t->text, t->n) != 0) {
        return xml_refuse(&r->xml, t->at, r->error, "</%.*s> ends what has not begun%s%.*s%s",
            (int)min(t->n, 40), t->text, e ? " (<" : "", e ? (int)min(e->name_n, 40) : 0,
            e ? e->name : "", e ? "> is open)" : "");
    }
    return leave(r);
}

utter_status ssml_read(struct script *s, const char *text, size_t n, utter_error *error)
{
    struct reader r = {.s = s, .xml = {.text = text, .n = n}, .error = error};
    struct xml_token t = {.kind = XML_TEXT};
    utter_status status = UTTER_OK;
    r.xml.at = letters_byte_order(text, n);
    while (
        status == UTTER_OK && (status = xml_next(&r.xml, &t, error)) == UTTER_OK && t.kind != XML_END) {
        status = take_token(&r, &t);
    }
    if (status == UTTER_OK && r.depth > 0) {
        const struct element *e = &r.stack[r.depth - 1];
        status =
            xml_refuse(&r.xml, e->at, error, "<%.*s> has no end", (int)min(e->name_n, 40), e->name);
    }
    chars_fini(&r.inside);
    return status;
}
