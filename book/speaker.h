/* SPDX-License-Identifier: Apache-2.0
 * A thread that speaks sections, as many at a time as the model has lanes, each into its file of the store. The
 * caller's thread meanwhile writes the book's files, and can end at once whatever the model is doing. */
#ifndef BOOK_SPEAKER_H
#define BOOK_SPEAKER_H

#include "book/sections.h"
#include "book/store.h"
#include "utter.h"

struct task {
    const struct section *section;
    struct store_entry entry; /* its key is known from the beginning, the rest once it is ready */
    bool ready;               /* its file is whole */
};

struct speaker_state {
    uint64_t ready_bytes;  /* of the text, that are ready */
    uint64_t spoken_bytes; /* of those, the ones that this run has spoken */
    double spoken_s;       /* of sound, that this run has made */
    bool ended;
    utter_status status; /* why it ended before all were ready */
    utter_error error;
};

struct speaker;

/* How sections are spoken. Not copied: it stays the caller's. */
struct speaker_settings {
    utter_model *model;
    const utter_stream_options *voice;
    const utter_reading_options *reading; /* its live and lanes are the speaker's */
    int lanes; /* of the model, at most; each is a section that a killed run has lost */
};

/* Until the speaker has ended, the caller leaves the store alone, and each task until speaker_is_ready says that it is
 * ready. */
utter_status speaker_start(struct speaker **speaker, const struct speaker_settings *settings,
    struct task *tasks, size_t n, struct store *store, utter_error *error);
/* Can be read when something has changed since the last call of speaker_look. */
int speaker_descriptor(const struct speaker *s);
struct speaker_state speaker_look(struct speaker *s);
bool speaker_is_ready(struct speaker *s, size_t i);
/* Ends it within a frame, waits for that, and frees it. Accepts NULL. */
void speaker_free(struct speaker *s);

#endif
