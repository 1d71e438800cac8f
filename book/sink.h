/* SPDX-License-Identifier: Apache-2.0
 * Where a book's sound goes: one sound file, one for each chapter, or an m4b. */
#ifndef BOOK_SINK_H
#define BOOK_SINK_H

#include <limits.h>

#include "book/encoder.h"
#include "utter.h"

struct sink_settings {
    const char *path;
    const char *format; /* "m4b": by ffmpeg; NULL: as the name of the file says */
    bool split;         /* a file for each chapter: NAME.mp3 gives NAME-0001.mp3 */
    int rate;
    const char *folder; /* for what is made on the way */
};

struct sink {
    struct sink_settings settings;
    const struct book *book;
    bool m4b;
    utter_sound *sound;
    struct encoder *encoder;
    uint64_t n_samples; /* in all */
    struct encoder_mark *marks;
    size_t n_marks, room;
    size_t n_files; /* that are complete */
};

utter_status sink_open(struct sink *sink, const struct sink_settings *settings, const struct book *book,
    utter_error *error);
/* What comes now is of this chapter. */
utter_status sink_chapter(struct sink *sink, size_t chapter, utter_error *error);
utter_status sink_write(struct sink *sink, const float *pcm, size_t n, utter_error *error);
/* Completes what was written; the sink stays to be asked. UTTER_AGAIN: `stop` said so meanwhile, and an m4b has no
 * chapters. */
utter_status sink_close(struct sink *sink, bool (*stop)(void), utter_error *error);
/* Drops what is not complete. Accepts a zeroed or closed one. */
void sink_fini(struct sink *sink);

/* The file of a chapter, NAME-0001.mp3. False: too long. */
bool sink_chapter_path(char path[PATH_MAX], const char *name, size_t chapter);

#endif
