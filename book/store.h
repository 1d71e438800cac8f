/* SPDX-License-Identifier: Apache-2.0
 * A folder of sections that have been spoken, which a killed run leaves to the next one. Each is a file named for
 * all that its sound depends on; the manifest, a line of JSON for each, says what is whole. A file without its
 * line, or with another hash than its line says, is spoken again. */
#ifndef BOOK_STORE_H
#define BOOK_STORE_H

#include <limits.h>

#include "book/identity.h"

struct store_entry {
    char key[IDENTITY_SIZE], sound[IDENTITY_SIZE]; /* of the file */
    uint64_t seed, n_pieces, n_retries, n_broken;
    double seconds;
};

struct store {
    char folder[PATH_MAX];
    int manifest; /* open, locked */
    struct store_entry *entries;
    size_t n, room;
};

/* What a run begins with, for people: its line in the manifest. */
struct store_about {
    const char *book, *model, *voice, *settings; /* hashes, and the settings as text */
};

/* Makes the folder, or finds what is in it. `fresh` drops that. A failure where another run works there. */
utter_status store_open(struct store *store, const char *folder, const struct store_about *about,
    bool fresh, utter_error *error);
/* The entry of a section whose file is there and as it was; NULL: it is to be spoken. */
const struct store_entry *store_find(const struct store *store, const char *key);
void store_path(const struct store *store, char path[PATH_MAX], const char *key);
/* A section's file is complete: hashes it and writes its line. */
utter_status store_add(struct store *store, struct store_entry *entry, utter_error *error);
void store_close(struct store *store);
/* Nothing of it is needed any more. */
void store_remove(struct store *store);

#endif
