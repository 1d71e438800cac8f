/* SPDX-License-Identifier: Apache-2.0
 * Sections that are ready -> the sound of the book: pauses, speed, rate, loudness; subtitles in their slots. What comes
 * out hangs on the files of the store alone, not on when they were made. */
#ifndef BOOK_JOINER_H
#define BOOK_JOINER_H

#include <sndfile.h>

#include "book/sink.h"
#include "book/speaker.h"
#include "effects/effects.h"

struct joiner_settings {
    struct effects_settings effects;
    double lufs; /* 0: as it is */
    double fit;  /* so fast at most may a subtitle be spoken to fit its slot */
    int rate;    /* of the store's files */
};

struct joiner {
    struct joiner_settings settings;
    const struct book *book;
    struct task *tasks;
    size_t n_tasks, next; /* next: the first that is not written */
    const struct store *store;
    struct sink *sink;
    bool (*stop)(void); /* asked a few times a second */
    struct effects *effects;
    struct loudness *meter; /* while it is measured: nothing is written */
    double gain;
    SNDFILE *file; /* the section's, while it is written */
    /* What is told at the end. */
    size_t n_quiet;   /* chapters that stay below the loudness */
    size_t n_late;    /* subtitles that begin late */
    size_t n_hurried; /* subtitles that are spoken faster */
    double most_short_lu, most_late_s;
};

/* The number of sections that can be written once the first n are ready: with a loudness, whole chapters. */
size_t joiner_reach(const struct joiner *j, size_t n_ready);
/* Writes the next section, or chapter. UTTER_AGAIN: stop() said so; what was written stays. */
utter_status joiner_move(struct joiner *j, utter_error *error);
void joiner_fini(struct joiner *j);

#endif
