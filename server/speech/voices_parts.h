/* SPDX-License-Identifier: Apache-2.0
 * The table of voices, shared by its two halves: what is there, and uploads on their way. */
#ifndef SERVER_VOICES_PARTS_H
#define SERVER_VOICES_PARTS_H

#include <sys/stat.h>

#include "server/speech/voices.h"
#include "server/speech/voices_told.h"

struct voice_entry {
    TAILQ_ENTRY(voice_entry) entry;
    char *name, *file, *transcript; /* transcript: NULL for x-vectors */
    int width;
    long long made;     /* seconds since 1970 */
    json_t *told;       /* by the uploader: description, consent, owner */
    char hash[65];      /* as requests name it; "": nobody has asked */
    struct stat hashed; /* the file of which that is the hash */
};

struct upload;
struct voices_store;

struct voices {
    TAILQ_HEAD(voice_entries, voice_entry) entries;
    int n;
    TAILQ_HEAD(upload_list, upload) uploads;
    int n_uploads;
    char folder[4096];          /* absolute; "" when nothing is kept */
    char temporary[256];        /* for sounds, and voices of one request */
    int temporary_lock;         /* this folder, open and locked as long as the process lives */
    struct voices_store *store; /* that `folder` is a copy of, or NULL */
};

/* The voice in a file, or NULL. */
struct voice_entry *voice_entry_read(const char *file, utter_error *error);
void voice_entry_free(struct voice_entry *v); /* accepts NULL */
struct voice_entry *voices_entry(const struct server *s, const char *name);
/* Whether it was uploaded with this key (NULL: there are no keys, and everybody may). */
bool voices_may_change(const struct voice_entry *v, const struct account *account, struct refusal *r);
void voices_insert(struct server *s, struct voice_entry *v); /* replaces one of the same name */
void voices_remove(struct server *s, struct voice_entry *v); /* from the table, not its file */
/* Takes its files from the folder; false with errno when that cannot be. */
bool voices_unlink(const struct voice_entry *v);
json_t *voices_entry_json(const struct voice_entry *v);
void voices_end_uploads(struct server *s);
/* A file of the folder has changed, or has gone. */
void voices_read_again(struct server *s, const char *file);
/* A voice that was uploaded is where it is kept: it is one of the table, and who waits is told. */
void voices_kept(struct server *s, const char *file, voices_done *done, void *user);

/* ---- voices_store.c ---- */

/* Makes voices->folder, as the store has it, or as it was when the store could be reached. */
bool voices_store_open(struct server *s, const char *url);
void voices_store_close(struct server *s);
bool voices_store_is_away(const struct server *s);
/* A voice in the folder of temporary files goes into the store, and from there into the folder of voices; then `done`,
 * as that of voices_create. */
void voices_store_put(struct server *s, const char *file, voices_done *done, void *user);
bool voices_store_is_putting(const struct server *s, const char *file);
/* A voice of the folder goes, in the store and here. */
void voices_store_drop(struct server *s, const char *file, voices_done *done, void *user);
void voices_store_abandon(struct server *s, void *user);

#endif
