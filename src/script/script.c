/* SPDX-License-Identifier: Apache-2.0
 * The life of a script: text in, paragraph by paragraph or whole, to its reader of markup, spans out. */
#include "script/script.h"

#include <string.h>

#include "base/memory.h"
#include "base/minmax.h"
#include "script/letters.h"
#include "script/script_parts.h"

/* Text without an empty line is not waited for beyond this; and a document has an end. */
enum { LONG_PARAGRAPH = 1 << 16, MOST_DOCUMENT = 1 << 26 };

bool script_is_wanted(const struct script_options *o)
{
    return o->markup != UTTER_MARKUP_NONE || o->cast || o->lexicon || o->spell_out;
}

utter_status script_open(
    struct script **script, const struct script_options *options, utter_error *error)
{
    struct script *s = memory_new(1, sizeof *s);
    utter_status status = s ? UTTER_OK : error_memory(error, "a script");
    *script = s;
    if (status) {
        return status;
    }
    s->markup = options->markup;
    s->decided = options->markup != UTTER_MARKUP_AUTO;
    s->spell_out = options->spell_out;
    s->written = options->written;
    s->written_user = options->written_user;
    s->line = 1;
    s->style = (struct script_style){.rate = 1, .volume = 1};
    s->boundary = true;
    s->language = options->language ? memory_string(options->language) : NULL;
    s->voice = options->voice ? memory_string(options->voice) : NULL;
    if ((options->language && !s->language) || (options->voice && !s->voice)) {
        status = error_memory(error, "a script");
    }
    status = status || !options->cast ? status : cast_read(&s->cast, options->cast, error);
    status = status || !options->lexicon ? status : lexicon_read(&s->lexicon, options->lexicon, error);
    if (status) {
        script_free(script);
        return status;
    }
    s->style.voice = cast_narrator(s->cast);
    s->now = (struct script_span){.pause_s = -1, .style = s->style};
    return UTTER_OK;
}

void script_free(struct script **script)
{
    struct script *s = *script;
    if (s) {
        for (size_t i = s->from; i < s->n_spans; i++) {
            script_span_fini(&s->spans[i]);
        }
        for (size_t i = 0; i < s->n_names; i++) {
            memory_free(s->names[i]);
        }
        for (int i = 0; i < s->n_notes; i++) {
            memory_free(s->notes[i]);
        }
        script_span_fini(&s->now);
        chars_fini(&s->pending);
        chars_fini(&s->unknown);
        cast_free(&s->cast);
        lexicon_free(&s->lexicon);
        memory_free(s->spans);
        memory_free(s->names);
        memory_free(s->language);
        memory_free(s->voice);
        memory_free(s);
    }
    *script = NULL;
}

/* The bytes of white space and marks of byte order that text[0..n) begins with. */
static size_t skip_front(const char *text, size_t n)
{
    size_t at = letters_byte_order(text, n);
    while (at < n && strchr(" \t\r\n", text[at])) {
        at++;
    }
    return at;
}

bool script_looks_like_ssml(const char *text, size_t n)
{
    static const char *const begins[] = {"<speak>", "<speak ", "<speak\n", "<?xml"};
    size_t at = skip_front(text, n);
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        size_t length = strlen(begins[i]);
        if (n - at >= length && memcmp(text + at, begins[i], length) == 0) {
            return true;
        }
    }
    return false;
}

/* `auto` is decided by how the text begins. False: too little is there. */
static bool decide(struct script *s)
{
    enum { ENOUGH = 8 };
    if (!s->decided) {
        size_t at = skip_front(s->pending.at, s->pending.n);
        if (s->pending.n - at < ENOUGH && !s->finished) {
            return false;
        }
        s->markup =
            script_looks_like_ssml(s->pending.at, s->pending.n) ? UTTER_MARKUP_SSML : UTTER_MARKUP_TAGS;
        s->decided = true;
    }
    return true;
}

/* Where the first paragraph of text[0..n) ends, none of which ends before `from`; 0: none has ended. One that is too
 * long ends at a blank, or at a character. */
static size_t paragraph_end(const char *text, size_t from, size_t n)
{
    size_t most = min(n, LONG_PARAGRAPH);
    bool empty = true; /* the line */
    for (size_t at = from; at < most; at++) {
        if (text[at] == '\n' && at > from && empty) {
            return at + 1;
        }
        empty =
            text[at] == '\n' || (empty && (text[at] == '\r' || text[at] == ' ' || text[at] == '\t'));
    }
    if (n <= LONG_PARAGRAPH) {
        return 0;
    }
    size_t blank = most, border = most;
    while (blank > 0 && text[blank - 1] != ' ' && text[blank - 1] != '\n') {
        blank--;
    }
    while (border > 0 && ((unsigned char)text[border] & 0xc0) == 0x80) {
        border--;
    }
    return blank ? blank : border;
}

/* Spans of text[0..n), the beginning of what waits; it is passed. */
static utter_status read_part(struct script *s, const char *text, size_t n, utter_error *error)
{
    bool document = s->markup == UTTER_MARKUP_SSML;
    utter_status status = document ? ssml_read(s, text, n, error) : tags_read(s, text, n, error);
    status = status ? status : span_end(s, error);
    for (size_t i = 0; i < n; i++) {
        s->line += text[i] == '\n';
    }
    s->offset += n;
    return status;
}

static utter_status move(struct script *s, size_t looked, utter_error *error)
{
    const char *text = s->pending.at;
    size_t passed = 0, n = 0, all = s->pending.n;
    utter_status status = UTTER_OK;
    if (!decide(s)) {
        return UTTER_OK;
    }
    bool document = s->markup == UTTER_MARKUP_SSML;
    if (document && all > MOST_DOCUMENT) {
        return error_set(error, UTTER_E_ARGUMENT, "markup: a document has more than %d MB of SSML",
            MOST_DOCUMENT >> 20);
    }
    while (!document && status == UTTER_OK &&
           (n = paragraph_end(text + passed, passed ? 0 : looked, all - passed)) > 0) {
        status = read_part(s, text + passed, n, error);
        passed += n;
    }
    if (status == UTTER_OK && s->finished && passed < all) {
        status = read_part(s, text + passed, all - passed, error);
        passed = all;
    }
    chars_drop(&s->pending, passed);
    return status;
}

utter_status script_text(struct script *s, const char *text, size_t bytes, utter_error *error)
{
    /* An empty line may have begun in what was there; nobody has looked before the kind of markup was decided. */
    bool all = !s->decided || s->pending.n == 0 || s->pending.n > LONG_PARAGRAPH;
    size_t looked = all ? 0 : s->pending.n - 1;
    while (looked > 0 && strchr(" \t\r\n", s->pending.at[looked])) {
        looked--;
    }
    utter_status status = chars_add(&s->pending, text, bytes, error);
    return status ? status : move(s, looked, error);
}

utter_status script_finish(struct script *s, utter_error *error)
{
    s->finished = true;
    utter_status status = chars_reserve(&s->pending, 1, error);
    status = status ? status : move(s, 0, error);
    if (s->unknown.n > 0) {
        script_add_note(s, "elements that are not known were left out, their words are spoken: %.*s",
            (int)s->unknown.n, s->unknown.at);
    }
    /* A pause behind the last word is a span without text. */
    return status == UTTER_OK && s->now.pause_s > 0 ? span_put(s, error) : status;
}

bool script_next(struct script *s, struct script_span *span)
{
    if (s->from == s->n_spans) {
        return false;
    }
    *span = s->spans[s->from++];
    return true;
}

bool script_is_done(const struct script *s)
{
    return s->finished && s->from == s->n_spans;
}

const struct script_style *script_next_style(struct script *s)
{
    s->n_styles = max(s->n_styles, s->from);
    return s->n_styles < s->n_spans ? &s->spans[s->n_styles++].style : NULL;
}

void script_note_language(struct script *s, const char *language)
{
    script_add_note(s,
        "the model does not speak \"%s\": the words that the text marks so are left to it", language);
}

const char *script_note(struct script *s)
{
    return s->notes_given < s->n_notes ? s->notes[s->notes_given++] : NULL;
}
