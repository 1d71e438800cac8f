/* SPDX-License-Identifier: Apache-2.0
 * Beginnings of utterances that are kept: what a lane holds after the rows that come before any text of the caller,
 * and after the recording of a cloned voice has run through the vocoder. Bounded in bytes, the least recently used
 * goes first. A snapshot is found by the rows and codes it was made of, compared value by value, so that a wrong one
 * cannot be taken. Owned by the engine. */
#ifndef ENGINE_SNAPSHOT_H
#define ENGINE_SNAPSHOT_H

#include "model/backend.h"
#include "voice/voice.h"

struct snapshot;

struct snapshot_store {
    const struct backend_ops *ops;
    struct backend *backend;
    const struct config *config;
    uint64_t position_bytes, kept_bytes; /* of the backend's memory */
    uint64_t limit_bytes;                /* 0: nothing is kept */
    uint64_t used_bytes;
    int n;
    struct snapshot *first; /* the most recently used */
};

/* What a beginning is made of; borrowed from a stream. */
struct beginning {
    const utter_voice *voice; /* whose codes the vocoder has heard, if it has codes; or NULL */
    const struct row *rows;
    int n_rows; /* at least 1, and fewer than the prompt has */
};

/* Puts a kept beginning into a lane that was just reset. *found: there was one. */
utter_status snapshot_resume(struct snapshot_store *store, int lane, const struct beginning *beginning,
    bool *found, utter_error *error);
/* Keeps the beginning of a lane that was just prefilled. Does nothing, and is no failure, when it is kept already (two
 * streams that began together have both computed it), when the backend keeps none, when it is larger than the limit, or
 * when there is no memory. */
utter_status snapshot_keep(
    struct snapshot_store *store, int lane, const struct beginning *beginning, utter_error *error);
/* Drops them all, before the backend is closed. Accepts a zeroed store. */
void snapshot_store_clear(struct snapshot_store *store);

#endif
