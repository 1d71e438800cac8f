/* SPDX-License-Identifier: Apache-2.0
 * A text as it is written, without its markup (utter_written_fn), and the way from a byte of the source to the same
 * one there. Text comes in its order; the front of it can be forgotten. */
#ifndef BASE_WRITTEN_H
#define BASE_WRITTEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes [at, at + n) of the text stand for source_n bytes of the source: one for one where they are as many. */
struct written_run {
    uint64_t source, source_n, at;
    size_t n;
};

/* Zero it before use. */
struct written {
    char *text; /* [n], from byte text_at of the whole on */
    size_t n, room;
    uint64_t text_at;
    struct written_run *runs; /* [n_runs], of the text that is kept, after the first n_passed */
    size_t n_runs, runs_room, n_passed;
    bool no_memory; /* some of it is missing */
};

void written_add(struct written *w, uint64_t source, uint64_t source_n, const char *text, size_t n);
/* Where bytes [source, source + source_n) of the source, as a word has them, begin in w->text; *n: how many they are
 * there. What has been forgotten is at 0. */
size_t written_find(const struct written *w, uint64_t source, uint64_t source_n, size_t *n);
/* Forgets text[0..n). */
void written_drop(struct written *w, size_t n);
void written_fini(struct written *w);

#endif
