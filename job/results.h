/* SPDX-License-Identifier: Apache-2.0
 * Results by key: a sound, and the JSON that tells of it, each written whole, the JSON last. They are the truth: a line
 * is done when its JSON and its sound are there and are what they were. In a folder (results_folder.c), or a store that
 * speaks S3 (results_s3.c). All calls but open and close may come from several threads. */
#ifndef JOB_RESULTS_H
#define JOB_RESULTS_H

#include <jansson.h>
#include <limits.h>

#include "base/error.h"
#include "book/identity.h"

enum result_state {
    RESULT_NONE,   /* nothing, or damaged */
    RESULT_DONE,   /* a sound that is as its JSON says */
    RESULT_FAILED, /* a JSON that says why there is none */
};

struct results {
    const struct results_calls *calls;
    bool is_far; /* each question takes long */
    /* NULL, or asked while something is waited for: true ends it (UTTER_E_CANCELLED). */
    bool (*stop)(void);
    bool (*stop_keep)(void); /* the same for what is being kept; NULL: `stop` */
    /* NULL: a store that stays away is a failure. Else this is told, from any thread, and the store waited for. */
    void (*away)(void *user, const utter_error *error);
    void *user;
};

/* Names are KEY.json, KEY.flac and so on. */
struct results_calls {
    /* Where a file is to be written whole, so that `keep` finds it there. */
    utter_status (*place)(
        struct results *results, const char *name, char path[PATH_MAX], utter_error *error);
    utter_status (*keep)(
        struct results *results, const char *name, const char *path, utter_error *error);
    /* The text of one; UTTER_AGAIN: there is none. To be freed with memory_free. */
    utter_status (*text)(
        struct results *results, const char *name, char **text, size_t *bytes, utter_error *error);
    /* Whether it has so many bytes and, where `hash` is given, this hash: UTTER_OK or UTTER_AGAIN. */
    utter_status (*check)(struct results *results, const char *name, uint64_t bytes, const char *hash,
        utter_error *error);
    utter_status (*drop)(struct results *results, const char *name, utter_error *error);
    /* A file of it, linked or copied to `path`. */
    utter_status (*fetch)(
        struct results *results, const char *name, const char *path, utter_error *error);
    /* NULL where each question is quick. Else: so many lines will be looked for, and what is there is asked for at
     * once, if that is less: 16 bytes a line of memory. What comes later is not seen. */
    utter_status (*look_at_all)(struct results *results, uint64_t n_lines, utter_error *error);
    /* Whether that has seen a text and a sound of this key. */
    bool (*is_believed)(const struct results *results, const char *key);
    void (*close)(struct results *results);
};

/* A folder, or s3://BUCKET[/PREFIX]. `make`: for those who bring results. */
utter_status results_open(struct results **results, const char *address, bool make, utter_error *error);
void results_close(struct results **results);

utter_status results_s3_open(struct results **results, const char *url, utter_error *error);
utter_status results_folder_open(
    struct results **results, const char *folder, bool make, utter_error *error);

enum { RESULT_NAME = IDENTITY_SIZE + 8 };
void result_name(char name[RESULT_NAME], const char *key, const char *ending);

/* SHA-256 and length of a file. */
utter_status result_hash(
    char hash[IDENTITY_SIZE], uint64_t *bytes, const char *path, utter_error *error);

/* What is there of a key. *about (may be NULL): its JSON, the caller's; NULL where the state is RESULT_NONE. `quick`
 * does not read the sound, and believes its length; where `about` is NULL in a store that was looked at as a whole,
 * that it is there. */
utter_status result_look(struct results *results, const char *key, bool quick, enum result_state *state,
    json_t **about, utter_error *error);
/* Writes the JSON, under a seal that tells damage. The object stays the caller's. */
utter_status result_tell(
    struct results *results, const char *key, const json_t *about, utter_error *error);

#endif
