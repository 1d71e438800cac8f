/* SPDX-License-Identifier: Apache-2.0
 * Whether a word of the text was not said: how much better the text without it explains the codes that were made. Only
 * for words in doubt (words.h), once the speech has ended, step by step. Where the frames did not tell how likely their
 * codes were, the whole text is read first, which tells it. Owns the lane's rows from then on. */
#ifndef ENGINE_DOUBT_H
#define ENGINE_DOUBT_H

#include "engine/snapshot.h"
#include "prompt/prompt.h"
#include "words/words.h"

/* Zero it before use. */
struct doubt {
    double log_p; /* of all codes 0 so far and of the end, by the whole text; 0: not known */
    struct words_doubt at[WORDS_DOUBTS];
    int n, n_done;
    struct row *rows; /* without word n_done, or all; NULL: it is not begun */
    int32_t *codes;   /* behind each row, -1: not of the speech */
    struct likelihood *likelihoods;
    int n_rows, n_read, first; /* first: the row of frame 0 */
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
    struct words *words;
    const int32_t *codes; /* [n_frames] frames */
    int n_frames;
};

/* Nothing is pending where no word is in doubt. */
void doubt_begin(struct doubt *d, const struct doubt_in *in);
/* Something is still to be read. */
bool doubt_pending(const struct doubt *d);
/* Reads at most n rows. When nothing is pending any more, the words know which was not said. */
utter_status doubt_step(struct doubt *d, const struct doubt_in *in, int n, utter_error *error);
void doubt_fini(struct doubt *d); /* accepts a zeroed one */

#endif
