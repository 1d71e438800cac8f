/* SPDX-License-Identifier: Apache-2.0
 * A reading: pieces of a text spoken one after the other. Owns the text that has not been spoken, a stream for each
 * piece that is being made, and the sound that nobody has taken. */
#ifndef READING_READING_H
#define READING_READING_H

#include "engine/engine.h"
#include "reading/cut.h"
#include "reading/seam.h"

/* The length of a piece where nobody asked for one. A small talker, like that of the built-in voice, keeps its place in
 * a text of up to 200 letters; beyond it leaves words out. Large ones speak for minutes. */
enum { READING_SMALL_WIDTH = 512, READING_SMALL_PIECE = 180, READING_PIECE = 360 };

/* The options are checked by who calls: `voice` is a stream's, whose strings are copied. */
utter_status reading_open(utter_reading **reading, struct engine *engine,
    const utter_stream_options *voice, const utter_reading_options *options, utter_error *error);
utter_status reading_text(utter_reading *r, const char *text, size_t bytes, utter_error *error);
utter_status reading_finish(utter_reading *r, utter_error *error);
/* What there is; makes no frame. As utter_reading_take. */
utter_status reading_take(utter_reading *r, float *pcm, size_t capacity, size_t *n, utter_error *error);
/* A frame of one of its streams can be made now. */
bool reading_ready(utter_reading *r);
struct engine *reading_engine(const utter_reading *r);
void reading_hold(utter_reading *r, bool held);
void reading_cancel(utter_reading *r);
const utter_word *reading_words(utter_reading *r, uint64_t *first, size_t *n);
void reading_stats(const utter_reading *r, utter_reading_stats *stats);
void reading_free(utter_reading **reading);

#endif
