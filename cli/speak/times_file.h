/* SPDX-License-Identifier: Apache-2.0
 * When each word is heard, as a file: JSON, or subtitles. Gathers the text and its words while they come. */
#ifndef CLI_TIMES_FILE_H
#define CLI_TIMES_FILE_H

#include "cli/text_file.h"
#include "utter.h"

enum times_kind { TIMES_JSON, TIMES_SRT, TIMES_VTT, TIMES_ASS };

/* A word in the text, and when it is heard: seconds of the sound that leaves. */
struct timed_word {
    size_t at, bytes;
    double start_s, end_s;
    float certainty;
    bool final, skipped;
};

/* Zero it before use. */
struct times_file {
    struct text_file file;
    enum times_kind kind;
    double scale; /* seconds a sample */
    char *text;   /* [n_text], all of it */
    size_t n_text, text_room;
    struct timed_word *words; /* [n] */
    size_t n, room;
    bool no_memory;
};

/* The kind by the name; false: it has none of them. "-" is JSON. */
bool times_kind_of(const char *path, enum times_kind *kind);
/* rate: samples a second that the model makes, which are heard `speed` times as fast. 0, or an exit code after a
 * message. */
int times_file_open(struct times_file *t, const char *path, int rate, double speed);
void times_file_text(struct times_file *t, const char *text, size_t bytes);
/* Takes what the reading tells. */
void times_file_note(struct times_file *t, utter_reading *reading);
int times_file_finish(struct times_file *t, bool approximate);
void times_file_abort(struct times_file *t); /* accepts a zeroed one */

/* Writes subtitles: cues of at most two lines, of at most 42 columns each, broken where people pause. (subtitles.c) */
void subtitles_write(const struct times_file *t);

#endif
