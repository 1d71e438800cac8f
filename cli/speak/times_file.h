/* SPDX-License-Identifier: Apache-2.0
 * When each word is heard, as a file: JSON, or subtitles. It is written while words come: of a text of any length, only
 * those that may still change, or stand in a subtitle that is not full, are kept, and the text from there on. */
#ifndef CLI_TIMES_FILE_H
#define CLI_TIMES_FILE_H

#include "base/written.h"
#include "cli/text_file.h"
#include "utter.h"

enum times_kind { TIMES_JSON, TIMES_SRT, TIMES_VTT, TIMES_ASS };

/* A word in the text that is kept and in the source, and when it is heard: seconds of the sound that leaves. */
struct timed_word {
    size_t at, bytes;
    uint64_t source, source_bytes;
    double start_s, end_s;
    float certainty;
    bool final, skipped;
};

/* Zero it before use. */
struct times_file {
    struct text_file file;
    enum times_kind kind;
    double scale;           /* seconds a sample */
    struct written written; /* the text, without its markup */
    /* Pieces before this byte of the source are done with, whatever is said again. */
    uint64_t spoken_at;
    /* [n], from word `first` of the reading on; the first n_written of them, one at most, are in the file, the first
     * n_settled stay as they are, and their sound is written. */
    struct timed_word *words;
    size_t n, room, n_written, n_settled;
    uint64_t first;
    uint64_t n_items; /* words, or subtitles, in the file */
    bool no_memory;
};

/* The kind by the name; false: it has none of them. "-" is JSON. */
bool times_kind_of(const char *path, enum times_kind *kind);
/* rate: samples a second that the model makes, which are heard `speed` times as fast. 0, or an exit code after a
 * message. */
int times_file_open(struct times_file *t, const char *path, int rate, double speed);
/* A utter_written_fn of a struct times_file. */
void times_file_text(void *times_file, uint64_t at, uint64_t bytes, const char *text, size_t n);
/* The pieces of the source before byte `at` have ended, and none of them is said again. */
void times_file_piece(struct times_file *t, uint64_t at);
/* Takes what the reading tells. So many seconds of its sound are written: words behind that wait. */
void times_file_note(struct times_file *t, utter_reading *reading, double written_s);
/* Forgets words of sound that was not written: the file of it ends after so many seconds. */
void times_file_cut(struct times_file *t, double end_s);
int times_file_finish(struct times_file *t, bool approximate);
void times_file_abort(struct times_file *t); /* accepts a zeroed one */

/* Subtitles: cues of at most two lines, of at most 42 columns each, broken where people pause. What stands in front of
 * them; those that can be told from the words that are settled, or with `all` the rest. (subtitles.c) */
void subtitles_begin(const struct times_file *t);
void subtitles_write(struct times_file *t, bool all);
/* Forgets the text behind the last word, but the marks that close it. */
void subtitles_cut(struct times_file *t);

#endif
