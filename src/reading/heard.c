/* SPDX-License-Identifier: Apache-2.0
 * Words of pieces -> words of the reading: places in the source instead of the piece's text, in which white space was
 * folded; samples of the whole sound instead of the piece's, of which the seam has cut. */
#include <string.h>

#include "base/memory.h"
#include "base/minmax.h"
#include "reading/marks.h"
#include "reading/reading_parts.h"

/* Follows the source while the text of the piece is gone through. */
struct walk {
    const char *source, *text;
    size_t source_bytes, text_bytes;
    size_t at; /* in the source */
    size_t to; /* the same place in the text */
};

static void skip_white(struct walk *w)
{
    uint32_t code;
    while (w->at < w->source_bytes) {
        size_t length = marks_get(w->source + w->at, w->source_bytes - w->at, &code);
        if (!marks_is_white(code)) {
            break;
        }
        w->at += length;
    }
}

/* The place in the source of byte `to` of the text; rising from call to call. */
static size_t walk_to(struct walk *w, size_t to)
{
    for (; w->to < to && w->to < w->text_bytes; w->to++) {
        bool begins = ((uint8_t)w->text[w->to] & 0xc0) != 0x80; /* a character */
        if (begins) {
            skip_white(w);
        }
        w->at += w->text[w->to] != ' '; /* a blank is a run of white space */
    }
    skip_white(w);
    return w->at;
}

static utter_status make_room(struct heard *h, size_t n, utter_error *error)
{
    if (h->n + n > h->room) {
        size_t room = h->n + n + h->room / 2;
        utter_word *grown = memory_resize(h->at, h->room, room, sizeof *grown);
        if (!grown) {
            return error_memory(error, "words");
        }
        h->at = grown;
        h->room = room;
    }
    return UTTER_OK;
}

static uint64_t moved(uint64_t sample, const struct work *w, int64_t least)
{
    int64_t at = (int64_t)((double)sample / w->speed) + w->shift;
    return (uint64_t)max(at, least);
}

/* Where a word of the piece's text stands in the source. */
static void place(utter_word *word, const struct work *w, struct walk *walk)
{
    size_t at = min((size_t)word->at, w->text_bytes);
    if (w->origins) { /* of markup: several words may come from one place ("forty" and "two" from 42) */
        size_t end = min(at + (size_t)word->bytes, w->text_bytes);
        word->at = w->origins[at];
        word->bytes = end > at ? w->ends[end - 1] - w->origins[at] : 0;
    } else {
        word->at = w->text_at + (w->source ? walk_to(walk, at) : (size_t)word->at);
    }
}

/* Behind those that are there: the words of a piece as they are now. */
static utter_status add_words(struct heard *h, const struct work *w, utter_error *error)
{
    size_t n;
    const utter_word *words = stream_words(w->stream, &n);
    utter_status status = make_room(h, n, error);
    struct walk walk = {w->source, w->text, w->source_bytes, w->text_bytes, 0, 0};
    int64_t before = h->n > 0 ? (int64_t)h->at[h->n - 1].start : 0;
    for (size_t i = 0; i < n && status == UTTER_OK; i++) {
        utter_word word = words[i];
        place(&word, w, &walk);
        word.start = moved(word.start, w, before);
        word.end = moved(word.end, w, (int64_t)word.start);
        before = (int64_t)word.start;
        h->at[h->n++] = word;
    }
    return status;
}

utter_status heard_piece(struct heard *h, const struct work *w, utter_error *error)
{
    if (!w->stream->words) {
        return UTTER_OK;
    }
    h->approximate = words_approximate(w->stream->words);
    h->n = h->n_ended;
    utter_status status = add_words(h, w, error);
    for (size_t i = h->n_ended; i < h->n; i++) {
        h->at[i].final = true;
    }
    h->n_ended = h->n;
    return status;
}

const utter_word *heard_words(struct heard *h, const struct work *spoken, uint64_t *first, size_t *n)
{
    h->n_ended -= h->n_seen;
    h->first += h->n_seen;
    if (h->n_seen > 0) {
        memmove(h->at, h->at + h->n_seen, h->n_ended * sizeof *h->at);
    }
    h->n = h->n_seen = h->n_ended;
    if (spoken && spoken->stream && spoken->stream->words && spoken->passed > 0) {
        h->approximate = words_approximate(spoken->stream->words);
        add_words(h, spoken, NULL); /* without memory they come when the piece has ended, or fail it */
    }
    *first = h->first;
    *n = h->n;
    return h->at;
}

void heard_fini(struct heard *h)
{
    memory_free(h->at);
    *h = (struct heard){0};
}
