/* SPDX-License-Identifier: Apache-2.0
 * Whether a word of the text was not said: how much better the text without it explains the codes that were made. Only
 * for words in doubt (words.h), once the speech has ended, step by step. Owns the lane's rows from then on. */
#ifndef ENGINE_DOUBT_H
#define ENGINE_DOUBT_H

#include "engine/snapshot.h"
#include "prompt/prompt.h"
#include "words/words.h"

/* Zero it before use. */
struct doubt {
    double log_p; /* of all codes 0 so far and of the end, as they were made */
    struct words_doubt at[WORDS_DOUBTS];
    int n, n_done;
    struct row *rows; /* without word n_done; NULL: it is not begun */
    int32_t *codes;   /* behind each row, -1: not of the speech */
    float *log_ps;
    int n_rows, n_read;
    double most; /* of the words so far: how much better the best one is left out, in nats */
    size_t word; /* that one */
};

/* What it looks at: a stream that has ended, and what it shares. */
struct doubt_in {
    const struct backend_ops *ops;
    struct backend *backend;
    struct snapshot_store *snapshots;
    const struct config *config;
    int lane;
    const struct lane_settings *settings;
    const utter_voice *voice;
    const struct prompt *prompt;
    const int32_t *codes; /* [n_frames] frames */
    int n_frames;
};

/* Some word is still to be looked at. */
bool doubt_pending(const struct doubt *d);
/* Reads at most n rows. When none is pending any more, *missed is the word that was not said, or -1. */
utter_status doubt_step(
    struct doubt *d, const struct doubt_in *in, int n, int64_t *missed, utter_error *error);
void doubt_fini(struct doubt *d); /* accepts a zeroed one */

#endif
