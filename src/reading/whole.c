/* SPDX-License-Identifier: Apache-2.0
 * Whether a piece is whole: by how its stream ended, and by its pace beside that of the pieces before. */
#include "base/minmax.h"
#include "reading/marks.h"
#include "reading/reading_parts.h"

/* Beside letters, in letters, as both built-in voices speak (fitted to 153 of their pieces, which are then within a
 * fifth of the mean): what every piece takes for its quiet ends; a digit, which is a word or a part of one; the pauses
 * behind marks. */
enum { LENGTH_ENDS = 9, LENGTH_DIGIT = 6, LENGTH_CLAUSE = 3, LENGTH_SENTENCE = 5 };

/* Pieces of fewer units tell nothing of the pace; with fewer than so many before, it is hardly known. */
enum { PACE_LEAST_UNITS = 40, PACE_SURE = 3 };

/* No voice says a letter in less. How far from the pace of those before a piece may be; while it is hardly known. */
static const double least_unit_s = 0.03, pace_least = 0.75, pace_most = 1.7, first_least = 0.6,
                    first_most = 2.2;

size_t whole_length(const char *text, size_t n)
{
    size_t length = LENGTH_ENDS;
    uint32_t code;
    for (size_t at = 0, bytes; at < n; at += bytes) {
        bytes = marks_get(text + at, n - at, &code);
        enum mark mark = marks_of(code);
        bool wide = mark == MARK_CLAUSE_WIDE || mark == MARK_SENTENCE_WIDE;
        bool pause = wide || (mark != MARK_NONE && at + bytes < n && text[at + bytes] == ' ');
        length += marks_is_digit(code)                              ? LENGTH_DIGIT
                  : !pause                                          ? marks_units(code)
                  : mark == MARK_CLAUSE || mark == MARK_CLAUSE_WIDE ? LENGTH_CLAUSE
                                                                    : LENGTH_SENTENCE;
    }
    return length;
}

/* The median of those that are known; 0: none is. */
static double pace_of(const struct pace_seen *seen)
{
    double sorted[PACE_KEPT];
    size_t n = min(seen->n, (size_t)PACE_KEPT);
    for (size_t i = 0; i < n; i++) {
        size_t k = i;
        for (; k > 0 && sorted[k - 1] > seen->unit_s[i]; k--) {
            sorted[k] = sorted[k - 1];
        }
        sorted[k] = seen->unit_s[i];
    }
    return n > 0 ? sorted[n / 2] : 0;
}

double whole_seconds(const struct utter_reading *r, const struct work *w)
{
    return (double)w->stream->n_frames * r->engine->context.model->config->codec.frame_samples /
           r->seam.rate;
}

bool whole_is(const struct utter_reading *r, const struct work *w)
{
    size_t n_words;
    stream_words(w->stream, &n_words); /* they are what they will be, now that it has ended */
    bool said = !stream_weighs(w->stream) || words_skipped(w->stream->words) == 0;
    if (w->stream->finish != UTTER_FINISH_EOS || w->only || !said) {
        return w->stream->finish == UTTER_FINISH_EOS && said;
    }
    double seconds = whole_seconds(r, w), pace_s = pace_of(&r->pace);
    bool sure = r->pace.n >= PACE_SURE;
    if (seconds < least_unit_s * (double)w->units) {
        return false;
    }
    double part = pace_s > 0 ? seconds / (double)w->length / pace_s : 1;
    return w->units < PACE_LEAST_UNITS ||
           (part >= (sure ? pace_least : first_least) && part <= (sure ? pace_most : first_most));
}

void whole_learn(struct utter_reading *r, const struct work *w)
{
    if (w->stream->finish == UTTER_FINISH_EOS && w->units >= PACE_LEAST_UNITS) {
        r->pace.unit_s[r->pace.n++ % PACE_KEPT] = whole_seconds(r, w) / (double)w->length;
    }
}
