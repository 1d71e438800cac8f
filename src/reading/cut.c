/* SPDX-License-Identifier: Apache-2.0
 * The cutter: breaks of a text in their order, and the choice among them. */
#include "reading/cut.h"

#include <string.h>
#include <utf8proc.h>

#include "base/minmax.h"
#include "reading/marks.h"

enum {
    /* A first piece is no shorter where there is more: a lone "Yes." sounds like nothing. */
    LEAST_UNITS = 40,
    /* A line break behind a line of fewer units ends a title or a verse, behind one of more a paragraph; between them
     * the text was wrapped, and the break is a blank. */
    SHORT_LINE = 36,
    LONG_LINE = 120,
    /* Bytes behind white space that may change what it means. */
    LOOK_AHEAD = 4,
    /* Bytes above which a text that gave no piece is looked at again when it has grown by a quarter. */
    LOOK_AGAIN = 8192,
};

/* A place where the text may be cut: text[0..bytes) is what is before it, with the white space behind it. */
struct place {
    size_t bytes, units;
    enum cut_end end;
};

struct scan {
    const char *text;
    size_t n;
    bool ended;
    size_t at, units, line_units;
};

/* Bytes at the end that may become a character. */
static size_t whole_bytes(const char *text, size_t n)
{
    bool bad;
    size_t tail = min(n, (size_t)3);
    for (size_t back = 1; back <= tail; back++) {
        uint8_t byte = (uint8_t)text[n - back];
        if (byte >= 0xc0) {
            return utf8_valid(text + n - back, back, &bad) == back || bad ? n : n - back;
        }
    }
    return n;
}

/* How many lines the white space text[0..n) ends. */
static size_t count_breaks(const char *text, size_t n)
{
    size_t n_breaks = 0;
    uint32_t code;
    for (size_t at = 0; at < n;) {
        bool pair = text[at] == '\r' && at + 1 < n && text[at + 1] == '\n';
        at += marks_get(text + at, n - at, &code) + pair;
        n_breaks += marks_is_break(code);
    }
    return n_breaks;
}

/* A bullet, a dash of dialogue, a heading's sign: what begins a line of its own. */
static bool begins_item(const char *text, size_t n)
{
    static const char *const signs[] = {
        "- ", "* ", "# ", "## ", "### ", "> ", "\xe2\x80\xa2", "\xe2\x80\x93 ", "\xe2\x80\x94"};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        size_t bytes = strlen(signs[i]);
        if (n >= bytes && memcmp(text, signs[i], bytes) == 0) {
            return true;
        }
    }
    return false;
}

/* The mark that word[0..*n) ends with, behind which only closing quotes and brackets stand; *n is then the length
 * without all of them. "Really?!" is a question, "etc.," the end of a clause. */
static enum mark end_mark(const char *word, size_t *n)
{
    uint32_t code;
    size_t at = *n;
    enum mark mark = MARK_NONE;
    while (at > 0) {
        size_t length = marks_last(word, at, &code);
        enum mark here = marks_of(code);
        if (here != MARK_NONE) {
            mark = mark == MARK_CLAUSE || mark == MARK_CLAUSE_WIDE ? mark : max(mark, here);
        } else if (mark != MARK_NONE || !(marks_is_closing(code) || marks_is_white(code))) {
            break;
        }
        at -= length;
    }
    *n = mark == MARK_NONE ? *n : at;
    return mark;
}

/* What kind of break the white space behind a word is. */
static enum cut_end kind_of(const struct scan *s, size_t word, size_t word_end, size_t next)
{
    size_t n = word_end - word, n_breaks = count_breaks(s->text + word_end, next - word_end);
    uint32_t code = 0;
    if (next < s->n) {
        marks_get(s->text + next, s->n - next, &code);
    }
    if (n_breaks > 1 ||
        (n_breaks > 0 && (s->line_units > LONG_LINE || begins_item(s->text + next, s->n - next)))) {
        return CUT_PARAGRAPH;
    }
    enum mark mark = end_mark(s->text + word, &n);
    bool stop = mark == MARK_SENTENCE && s->text[word + n] == '.' && s->text[word + n + 1] != '.';
    if (mark == MARK_SENTENCE_WIDE || (mark == MARK_SENTENCE && !marks_is_lower(code) &&
                                          !(stop && marks_is_short_form(s->text + word, n, code)))) {
        return CUT_SENTENCE;
    }
    if (n_breaks > 0 && s->line_units < SHORT_LINE && !marks_is_lower(code)) {
        return CUT_SENTENCE;
    }
    return mark == MARK_NONE || stop ? CUT_WORD : CUT_CLAUSE;
}

/* Takes in the white space that begins at s->at. False: it may go on. */
static bool take_white(struct scan *s)
{
    uint32_t code;
    size_t at = s->at;
    while (at < s->n) {
        size_t length = marks_get(s->text + at, s->n - at, &code);
        if (!marks_is_white(code)) {
            break;
        }
        at += length;
    }
    /* Of a letter no more is asked than that it is one. */
    bool letter = at < s->n && (s->text[at] | 0x20) >= 'a' && (s->text[at] | 0x20) <= 'z';
    bool starved = s->n - at < LOOK_AHEAD && !letter && !s->ended;
    s->units += at > s->at;
    s->at = at;
    return !starved;
}

/* Behind a mark of East Asia: more marks and closing quotes belong to it. What they are said to be quoted in goes on:
 * the particle to is hiragana. False: text to come decides. */
static bool take_wide_mark(struct scan *s, enum mark mark, struct place *place)
{
    static const char particle[] = "\xe3\x81\xa8"; /* to */
    uint32_t code = 0;
    bool closed = false;
    while (s->at < s->n) {
        size_t length = marks_get(s->text + s->at, s->n - s->at, &code);
        if (marks_of(code) == MARK_NONE && !marks_is_closing(code)) {
            break;
        }
        closed |= marks_is_closing(code);
        mark = max(mark, marks_of(code));
        s->at += length;
        s->units += marks_units(code);
    }
    size_t word_end = s->at;
    if ((s->at == s->n && !s->ended) || !take_white(s)) {
        return false;
    }
    bool quoted = closed && s->n - s->at >= 3 && memcmp(s->text + s->at, particle, 3) == 0;
    size_t n_breaks = count_breaks(s->text + word_end, s->at - word_end);
    *place = (struct place){s->at, s->units,
        n_breaks > 1 || (n_breaks > 0 && mark == MARK_SENTENCE_WIDE) ? CUT_PARAGRAPH
        : mark == MARK_SENTENCE_WIDE && !quoted                      ? CUT_SENTENCE
                                                                     : CUT_CLAUSE};
    s->line_units = n_breaks ? 0 : s->line_units;
    return true;
}

/* In French a blank stands before a closing quote, and before some marks. */
static bool goes_on(const struct scan *s, size_t word_end)
{
    uint32_t code;
    if (s->at == s->n || count_breaks(s->text + word_end, s->at - word_end) > 0) {
        return false;
    }
    marks_get(s->text + s->at, s->n - s->at, &code);
    bool quote =
        code != '"' && code != '\'' && code != 0x201c && code != 0x201d && marks_is_closing(code);
    return quote || code == '!' || code == '?' || code == ';' || code == ':';
}

/* The next place; false at the end of the text, which is a place itself, and where text to come decides. */
static bool next_place(struct scan *s, struct place *place)
{
    size_t word = s->at;
    uint32_t code, before = 0;
    while (s->at < s->n) {
        size_t length = marks_get(s->text + s->at, s->n - s->at, &code);
        if (marks_is_white(code)) {
            size_t word_end = s->at;
            if (!take_white(s)) {
                return false;
            }
            if (goes_on(s, word_end)) {
                continue;
            }
            *place = (struct place){s->at, s->units, kind_of(s, word, word_end, s->at)};
            s->line_units = count_breaks(s->text + word_end, s->at - word_end) ? 0 : s->line_units + 1;
            return s->at < s->n;
        }
        s->at += length;
        s->units += marks_units(code);
        s->line_units += marks_units(code);
        enum mark mark = marks_of(code);
        bool number =
            code == 0xff0e && marks_is_digit(before); /* a full stop of full width in a number */
        if ((mark == MARK_SENTENCE_WIDE && !number) || mark == MARK_CLAUSE_WIDE) {
            return take_wide_mark(s, mark, place) && s->at < s->n;
        }
        before = code;
    }
    return false;
}

/* The longest part of text[0..n) that is no longer than `most`, cut between characters as readers see them; one
 * character at least. */
static struct place character_place(const char *text, size_t n, size_t most)
{
    struct place place = {0, 0, CUT_CHARACTER};
    utf8proc_int32_t state = 0;
    uint32_t code, before = 0;
    size_t units = 0;
    for (size_t at = 0, length; at < n; at += length, before = code) {
        length = marks_get(text + at, n - at, &code);
        bool here = at > 0 && utf8proc_grapheme_break_stateful(
                                  (utf8proc_int32_t)before, (utf8proc_int32_t)code, &state);
        /* Marks without end on one letter are no character that anybody reads. */
        if (here || (units >= most && place.bytes == 0 && at > 0)) {
            place.bytes = at;
            place.units = units;
        }
        units += marks_units(code);
        if (units > most && place.bytes > 0) {
            return place;
        }
    }
    return (struct place){n, units, CUT_CHARACTER};
}

/* What was found of a text. */
struct found {
    /* The place of the first piece, or the last end of a sentence, that fits; bytes 0: none. */
    struct place sentence;
    struct place paragraph; /* the first, if it fits */
    size_t sentence_units;  /* of the first sentence, as far as it was looked at */
    size_t units;           /* of all that was looked at */
};

static struct found look(const struct cutter *c, struct scan s, bool first)
{
    struct found f = {0};
    struct place p;
    while (s.units <= 2 * c->most && (first || f.paragraph.bytes == 0) && next_place(&s, &p)) {
        if (p.end >= CUT_SENTENCE) {
            f.sentence_units = f.sentence_units ? f.sentence_units : p.units;
            bool wanted = !first || f.sentence.bytes == 0 || f.sentence.units < LEAST_UNITS;
            f.sentence = wanted && p.units <= c->most + 1 ? p : f.sentence;
        }
        if (p.end == CUT_PARAGRAPH && p.units <= c->most + 1 && f.paragraph.bytes == 0) {
            f.paragraph = p;
        }
    }
    f.units = s.units;
    f.sentence_units = f.sentence_units ? f.sentence_units : s.units;
    return f;
}

/* Of a sentence that is too long: where it falls apart into parts of about the same length, at a clause if there is one
 * that makes none of them short. */
static struct place inner_place(const struct cutter *c, struct scan s, size_t sentence_units)
{
    const char *text = s.text;
    size_t n = s.n, wanted = sentence_units <= 2 * c->most ? (sentence_units + 1) / 2 : c->most;
    struct place best[CUT_SENTENCE] = {{0}}, p;
    while (s.units <= c->most && next_place(&s, &p)) {
        if (p.units > c->most + 1 || p.end >= CUT_SENTENCE) {
            break;
        }
        struct place *b = &best[p.end];
        bool nearer = max(p.units, wanted) - min(p.units, wanted) <=
                      max(b->units, wanted) - min(b->units, wanted);
        *b = nearer ? p : *b;
    }
    const struct place *clause = &best[CUT_CLAUSE];
    if (clause->bytes && clause->units >= c->most / 4) {
        return *clause;
    }
    return best[CUT_WORD].bytes ? best[CUT_WORD] : character_place(text, n, c->most);
}

/* Where text[0..n) ends as a piece; bytes 0: text to come decides. */
static struct place choose(const struct cutter *c, const char *text, size_t n)
{
    struct scan s = {.text = text, .n = n, .ended = c->ended};
    bool first = c->n_pieces == 0;
    struct found f = look(c, s, first);
    bool all = c->ended && f.units <= c->most + 1;
    if (first && all) {
        return (struct place){n, f.units, CUT_PARAGRAPH};
    }
    if (first && f.units <= c->most + 1) { /* it may be all */
        return (struct place){0};
    }
    if (f.paragraph.bytes && (!first || f.paragraph.bytes <= f.sentence.bytes)) {
        return f.paragraph;
    }
    if (all) {
        return (struct place){n, f.units, CUT_PARAGRAPH};
    }
    /* Of a piece behind the first more sentences may fit. */
    if (f.sentence.bytes && (first || f.units > c->most + 1)) {
        return f.sentence;
    }
    if (f.sentence.bytes || (!c->ended && f.units <= 2 * c->most)) {
        return (struct place){0};
    }
    return inner_place(c, s, f.sentence_units);
}

size_t cut_sentence(const char *text, size_t n, bool ended)
{
    struct scan s = {.text = text, .n = n, .ended = ended};
    struct place p;
    while (next_place(&s, &p)) {
        if (p.end >= CUT_SENTENCE) {
            return p.bytes;
        }
    }
    return ended ? n : 0;
}

enum cut_end cut_end_of(const char *text, size_t n)
{
    uint32_t code;
    size_t end = n;
    for (size_t length; end > 0 && (length = marks_last(text, end, &code), marks_is_white(code));) {
        end -= length;
    }
    size_t n_breaks = count_breaks(text + end, n - end);
    enum mark mark = end_mark(text, &end);
    return n_breaks > 1                                                          ? CUT_PARAGRAPH
           : n_breaks > 0 || mark == MARK_SENTENCE || mark == MARK_SENTENCE_WIDE ? CUT_SENTENCE
           : mark != MARK_NONE                                                   ? CUT_CLAUSE
                                                                                 : CUT_WORD;
}

static bool speaks(const char *text, size_t n)
{
    uint32_t code;
    for (size_t at = 0; at < n;) {
        at += marks_get(text + at, n - at, &code);
        if (marks_is_spoken(code)) {
            return true;
        }
    }
    return false;
}

/* Makes runs of white space one blank, or none between characters of East Asia. Returns the new length. */
static size_t fold_white(char *text, size_t n)
{
    size_t to = 0;
    uint32_t code, before = 0;
    bool white = false;
    for (size_t at = 0, length; at < n; at += length) {
        length = marks_get(text + at, n - at, &code);
        if (marks_is_white(code)) {
            white = true;
            continue;
        }
        if (white && !(marks_is_wide(before) && marks_is_wide(code))) {
            text[to++] = ' ';
        }
        white = false;
        memmove(text + to, text + at, length);
        to += length;
        before = code;
    }
    return to;
}

utter_status cutter_text(struct cutter *c, const char *text, size_t bytes, utter_error *error)
{
    if (c->begin > c->text.n / 2) {
        chars_drop(&c->text, c->begin);
        c->begin = 0;
    }
    return chars_add(&c->text, text, bytes, error);
}

void cutter_finish(struct cutter *c)
{
    c->ended = true;
    c->looked = 0;
}

static void go_on(struct cutter *c, size_t bytes)
{
    c->begin += bytes;
    c->offset += bytes;
    c->looked = 0;
}

/* White space behind a piece that was cut in a word, or in front of a text that is not one piece. */
static void skip_white(struct cutter *c)
{
    uint32_t code;
    while (c->begin < c->text.n) {
        size_t length = marks_get(c->text.at + c->begin, c->text.n - c->begin, &code);
        if (!marks_is_white(code)) {
            break;
        }
        go_on(c, length);
    }
}

bool cutter_next(struct cutter *c, struct cut_piece *piece)
{
    if (c->n_pieces > 0 || c->part) {
        skip_white(c);
    }
    if (c->begin == c->text.n) { /* of no text there may be no memory, either */
        return false;
    }
    char *text = c->text.at + c->begin;
    size_t n = c->text.n - c->begin;
    n = c->ended ? n : whole_bytes(text, n);
    if (n == 0 || (n > LOOK_AGAIN && n < c->looked + c->looked / 4)) {
        return false;
    }
    struct place place = choose(c, text, n);
    if (place.bytes == 0) {
        c->looked = n;
        return false;
    }
    bool whole = c->n_pieces == 0 && !c->part && c->ended && place.bytes == n;
    size_t from = 0, to = place.bytes;
    uint32_t code;
    for (size_t length;
         from < to && (length = marks_get(text + from, to - from, &code), marks_is_white(code));) {
        from += length;
    }
    for (size_t length; to > from && (length = marks_last(text, to, &code), marks_is_white(code));) {
        to -= length;
    }
    *piece = (struct cut_piece){.at = c->offset + from,
        .bytes = to - from,
        .text = whole ? text : text + from,
        .units = place.units,
        .end = place.end,
        .speaks = speaks(text + from, to - from),
        .last = c->ended && place.bytes == n};
    piece->text_at = whole ? c->offset : piece->at;
    c->source.n = 0;
    if (!whole) {
        piece->no_memory = chars_add(&c->source, text + from, to - from, NULL) != UTTER_OK;
        piece->source = c->source.at;
        piece->source_bytes = c->source.n;
    }
    piece->text_bytes = whole ? n : fold_white(text + from, to - from);
    go_on(c, place.bytes);
    c->n_pieces++;
    return true;
}

/* Bytes up to the first white space of text[0..n) that fold_white changes, or that ends it. */
static size_t unfolded(const char *text, size_t n)
{
    uint32_t code, behind, before = 0;
    for (size_t at = 0, length; at < n; at += length, before = code) {
        length = marks_get(text + at, n - at, &code);
        if (!marks_is_white(code)) {
            continue;
        }
        if (at == 0 || code != ' ' || at + 1 == n) {
            return at;
        }
        marks_get(text + at + 1, n - at - 1, &behind);
        if (marks_is_white(behind) || (marks_is_wide(before) && marks_is_wide(behind))) {
            return at;
        }
    }
    return n;
}

/* The white space that ends text[0..end) stays as it is: the first piece goes on behind it. */
static bool blank_stays(const char *text, size_t n, size_t end)
{
    uint32_t before, behind;
    marks_last(text, end - 1, &before);
    marks_get(text + end, n - end, &behind);
    return text[end - 1] == ' ' && !(marks_is_wide(before) && marks_is_wide(behind));
}

size_t cutter_certain(const struct cutter *c)
{
    const char *text = c->text.at + c->begin;
    size_t n = c->text.n - c->begin, certain = 0;
    struct scan s = {.text = text, .n = c->ended ? n : whole_bytes(text, n), .ended = c->ended};
    struct place p;
    bool more = c->n_pieces == 0 && n > 0;
    /* A sentence that is too long is cut at a quarter of `most` at the earliest. */
    while (more && next_place(&s, &p) && p.units <= c->most / 4) {
        certain = unfolded(text, p.bytes);
        more = p.end < CUT_SENTENCE;
        bool within = more && p.units < c->most / 4 && certain + 1 == p.bytes;
        certain += within && certain > 0 && blank_stays(text, s.n, p.bytes);
    }
    return speaks(text, certain) ? certain : 0;
}

bool cutter_is_done(const struct cutter *c)
{
    return c->ended && c->begin == c->text.n;
}

void cutter_fini(struct cutter *c)
{
    chars_fini(&c->source);
    chars_fini(&c->text);
    *c = (struct cutter){.most = c->most};
}
