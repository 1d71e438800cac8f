/* SPDX-License-Identifier: Apache-2.0
 * Words with times -> subtitles. A cue ends with a sentence, before a pause, or where its two lines are full; a line
 * ends behind a mark where it can, and the two are about equally long. */
#include <ctype.h>
#include <math.h>
#include <string.h>
#include <utf8proc.h>

#include "base/minmax.h"
#include "cli/speak/times_file.h"

enum { LINE_COLUMNS = 42, LINES = 2, LINE_BYTES = 4 * LINE_COLUMNS * LINES + 64 };

static const double pause_s = 0.8, longest_s = 7, shortest_s = 0.9, gap_s = 0.04;

/* Words first .. last, and their text up to the next word; word `seen` is the last by which that was found. */
struct cue {
    size_t first, last, seen;
};

static size_t text_end(const struct times_file *t, size_t i_word)
{
    return i_word + 1 < t->n && t->words[i_word + 1].at > t->words[i_word].at ? t->words[i_word + 1].at
                                                                              : t->written.n;
}

/* How many bytes a mark of full width that closes what stands before it has, at the begin of a text; 0: it begins with
 * none. East Asia puts no blank behind it. */
static size_t closing_mark(const char *text, size_t n)
{
    static const char *const marks[] = {"\u3002", "\u3001", "\uff0c", "\uff0e", "\uff01", "\uff1f",
        "\uff1a", "\uff1b", "\uff09", "\u300d", "\u300f", "\u3011", "\u300b", "\u3009", "\u201d",
        "\u2019", "\u2026"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        size_t length = strlen(marks[i]);
        if (n >= length && memcmp(text, marks[i], length) == 0) {
            return length;
        }
    }
    return 0;
}

/* Where the text of a word begins: marks in front of it, like an opening quote, belong to it, but none that closes the
 * word before. */
static size_t text_begin(const struct times_file *t, size_t i_word)
{
    size_t at = t->words[i_word].at, n;
    size_t least = i_word ? t->words[i_word - 1].at + t->words[i_word - 1].bytes : 0;
    while (least < at && (n = closing_mark(t->written.text + least, at - least)) > 0) {
        least += n;
    }
    while (at > least && !strchr(" \t\r\n", t->written.text[at - 1])) {
        at--;
    }
    return at;
}

/* A piece is said again before this word, to who listens: the text goes back. */
static bool goes_back(const struct times_file *t, size_t i_word)
{
    return i_word > 0 && t->words[i_word].at < t->words[i_word - 1].at;
}

/* Up to the marks of the next word. */
static size_t text_stop(const struct times_file *t, size_t i_word)
{
    if (i_word + 1 >= t->n) {
        return t->written.n;
    }
    if (goes_back(t, i_word + 1)) {
        return t->words[i_word].at + t->words[i_word].bytes;
    }
    size_t begin = text_begin(t, i_word + 1), end = text_end(t, i_word);
    return min(begin, end);
}

/* Columns on a screen: characters of East Asia take two. */
static int columns_of(const char *text, size_t n)
{
    int columns = 0;
    for (size_t i = 0; i < n;) {
        utf8proc_int32_t code;
        utf8proc_ssize_t length =
            utf8proc_iterate((const utf8proc_uint8_t *)text + i, (utf8proc_ssize_t)(n - i), &code);
        i += length > 0 ? (size_t)length : 1;
        columns += length > 0 && code >= 0x20 ? utf8proc_charwidth(code) : 1;
    }
    return columns;
}

static char last_mark(const struct times_file *t, size_t i_word)
{
    size_t at = text_stop(t, i_word), begin = t->words[i_word].at;
    while (at > begin && strchr(" \t\r\n\"')", t->written.text[at - 1])) {
        at--;
    }
    return at > begin ? t->written.text[at - 1] : 0;
}

/* How good it is to break behind a word: the end of a sentence, another mark, nothing. */
static int rank_of(const struct times_file *t, size_t i_word)
{
    char mark = last_mark(t, i_word);
    size_t stop = text_stop(t, i_word), at = t->words[i_word].at + t->words[i_word].bytes, n;
    bool sentence = mark && strchr(".!?", mark), wide = false;
    for (; at < stop && (n = closing_mark(t->written.text + at, stop - at)) > 0; at += n) {
        const char *closing = t->written.text + at;
        wide = wide || (uint8_t)*closing >= 0xe3;
        sentence = sentence || memcmp(closing, "\u3002", 3) == 0 || memcmp(closing, "\uff01", 3) == 0 ||
                   memcmp(closing, "\uff1f", 3) == 0;
    }
    return sentence ? 2 : wide || (mark && strchr(",;:", mark)) ? 1 : 0;
}

static int columns_between(const struct times_file *t, size_t first, size_t last)
{
    size_t begin = text_begin(t, first), end = text_stop(t, last);
    while (end > begin && strchr(" \t\r\n", t->written.text[end - 1])) {
        end--;
    }
    return columns_of(t->written.text + begin, end - begin);
}

/* The word that ends the first line: words first .. last do not fit one. */
static size_t break_of(const struct times_file *t, const struct cue *cue)
{
    size_t best = cue->last;
    double least = HUGE_VAL;
    for (size_t i = cue->first; i < cue->last; i++) {
        int left = columns_between(t, cue->first, i), right = columns_between(t, i + 1, cue->last);
        double cost = fabs((double)(left - right)) - 12.0 * rank_of(t, i);
        if (left <= LINE_COLUMNS && right <= LINE_COLUMNS && cost < least) {
            least = cost;
            best = i;
        }
    }
    return best;
}

static bool fits(const struct times_file *t, const struct cue *cue)
{
    return columns_between(t, cue->first, cue->last) <= LINE_COLUMNS || cue->first == cue->last ||
           break_of(t, cue) != cue->last;
}

/* The cue that begins with word `first`: as long as it fits, then back to the best place of its second half. */
static struct cue next_cue(const struct times_file *t, size_t first)
{
    struct cue cue = {first, first, first};
    bool full = false, ended = rank_of(t, first) == 2;
    while (!ended && !full && cue.last + 1 < t->n) {
        struct cue longer = {first, cue.last + 1, cue.last + 1};
        const struct timed_word *w = &t->words[longer.last];
        bool again = goes_back(t, longer.last);
        bool pause = w->start_s - t->words[cue.last].end_s > pause_s;
        full = !again && (!fits(t, &longer) || w->end_s - t->words[first].start_s > longest_s);
        ended = again || pause;
        cue.seen = longer.seen;
        if (!full && !ended) {
            cue = longer;
            ended = rank_of(t, cue.last) == 2;
        }
    }
    if (full) {
        for (size_t i = cue.last; i > first + (cue.last - first) / 2; i--) {
            if (rank_of(t, i) > 0) {
                cue.last = i;
                break;
            }
        }
    }
    return cue;
}

/* ---- Writing ---- */

static void put_clock(FILE *out, double s, enum times_kind kind)
{
    long ms = lrint(1000 * s);
    if (kind == TIMES_ASS) {
        long cs = lrint(100 * s);
        fprintf(out, "%ld:%02ld:%02ld.%02ld", cs / 360000, cs / 6000 % 60, cs / 100 % 60, cs % 100);
    } else {
        fprintf(out, "%02ld:%02ld:%02ld%c%03ld", ms / 3600000, ms / 60000 % 60, ms / 1000 % 60,
            kind == TIMES_SRT ? ',' : '.', ms % 1000);
    }
}

/* A character of the text, with what the format would take for a sign of its own made harmless. */
static void put_char(FILE *out, char c, enum times_kind kind)
{
    const char *escaped = kind != TIMES_VTT ? NULL
                          : c == '&'        ? "&amp;"
                          : c == '<'        ? "&lt;"
                          : c == '>'        ? "&gt;"
                                            : NULL;
    if (kind == TIMES_ASS && (c == '{' || c == '}' || c == '\\')) {
        escaped = c == '{' ? "(" : c == '}' ? ")" : "/";
    }
    if (escaped) {
        fputs(escaped, out);
    } else {
        fputc(c, out);
    }
}

/* White space becomes one blank, none at the end of a line. */
static void put_text(FILE *out, const struct times_file *t, size_t begin, size_t end, bool ends_line)
{
    bool white = false;
    while (ends_line && end > begin && strchr(" \t\r\n", t->written.text[end - 1])) {
        end--;
    }
    for (size_t i = begin; i < end; i++) {
        bool is_white = strchr(" \t\r\n", t->written.text[i]) != NULL;
        if (!is_white || !white) {
            put_char(out, is_white ? ' ' : t->written.text[i], t->kind);
        }
        white = is_white;
    }
}

/* Players that can, mark the word that is heard. */
static void put_mark(
    FILE *out, const struct times_file *t, const struct cue *cue, size_t i, double end_s)
{
    if (t->kind == TIMES_VTT && i > cue->first) {
        fputc('<', out);
        put_clock(out, t->words[i].start_s, t->kind);
        fputc('>', out);
    } else if (t->kind == TIMES_ASS) {
        double next_s = i < cue->last ? t->words[i + 1].start_s : end_s;
        fprintf(out, "{\\k%ld}", lrint(100 * next_s) - lrint(100 * t->words[i].start_s));
    }
}

static void put_cue(FILE *out, const struct times_file *t, const struct cue *cue, size_t number)
{
    double start_s = t->words[cue->first].start_s, end_s = t->words[cue->last].end_s;
    double next_s = cue->last + 1 < t->n ? t->words[cue->last + 1].start_s - gap_s : HUGE_VAL;
    end_s = fmax(end_s, fmin(start_s + shortest_s, next_s));
    if (t->kind == TIMES_ASS) {
        fputs("Dialogue: 0,", out);
        put_clock(out, start_s, t->kind);
        fputc(',', out);
        put_clock(out, end_s, t->kind);
        fputs(",Default,,0,0,0,,", out);
    } else {
        if (t->kind == TIMES_SRT) {
            fprintf(out, "%zu\n", number);
        }
        put_clock(out, start_s, t->kind);
        fputs(" --> ", out);
        put_clock(out, end_s, t->kind);
        fputc('\n', out);
    }
    bool one = columns_between(t, cue->first, cue->last) <= LINE_COLUMNS;
    size_t line_end = one ? cue->last : break_of(t, cue);
    for (size_t i = cue->first; i <= cue->last; i++) {
        put_mark(out, t, cue, i, end_s);
        bool ends = i == line_end || i == cue->last;
        put_text(out, t, text_begin(t, i), text_stop(t, i), ends);
        if (i == line_end && i < cue->last) {
            fputs(t->kind == TIMES_ASS ? "\\N" : "\n", out);
        }
    }
    fputs(t->kind == TIMES_ASS ? "\n" : "\n\n", out);
}

void subtitles_begin(const struct times_file *t)
{
    FILE *out = t->file.lines;
    if (t->kind == TIMES_VTT) {
        fputs("WEBVTT\n\n", out);
    } else if (t->kind == TIMES_ASS) {
        fputs("[Script Info]\nScriptType: v4.00+\nPlayResX: 1280\nPlayResY: 720\nWrapStyle: 2\n\n"
              "[V4+ Styles]\nFormat: Name, Fontname, Fontsize, PrimaryColour, SecondaryColour, "
              "OutlineColour, BackColour, Bold, Italic, Underline, StrikeOut, ScaleX, ScaleY, Spacing, "
              "Angle, BorderStyle, Outline, Shadow, Alignment, MarginL, MarginR, MarginV, Encoding\n"
              "Style: "
              "Default,Sans,48,&H0000FFFF,&H00FFFFFF,&H00000000,&H64000000,0,0,0,0,100,100,0,0,1,2,"
              "0,2,40,40,40,1\n\n[Events]\n"
              "Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n",
            out);
    }
}

void subtitles_write(struct times_file *t, bool all)
{
    while (t->n_written < (all ? t->n : t->n_settled)) {
        struct cue cue = next_cue(t, t->n_written);
        /* The text of a word ends where the next one begins. */
        if (!all && cue.seen + 1 >= t->n_settled) {
            break;
        }
        put_cue(t->file.lines, t, &cue, (size_t)++t->n_items);
        t->n_written = cue.last + 1;
    }
}

void subtitles_cut(struct times_file *t)
{
    const struct timed_word *last = t->n > 0 ? &t->words[t->n - 1] : NULL;
    size_t end = last ? last->at + last->bytes : 0, n = 1;
    while (end < t->written.n && n > 0) {
        n = closing_mark(t->written.text + end, t->written.n - end);
        n = ispunct((unsigned char)t->written.text[end]) ? 1 : n;
        end += n;
    }
    t->written.n = end;
}
