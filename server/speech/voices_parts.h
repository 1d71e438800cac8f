/* SPDX-License-Identifier: Apache-2.0
 * The table of voices, shared by its two halves: what is there, and uploads on their way. */
#ifndef SERVER_VOICES_PARTS_H
#define SERVER_VOICES_PARTS_H

#include "server/speech/voices.h"
#include "server/speech/voices_told.h"

struct voice_entry {
    TAILQ_ENTRY(voice_entry) entry;
    char *name, *file, *transcript; /* transcript: NULL for x-vectors */
    int width;
    long long made; /* seconds since 1970 */
    json_t *told;   /* by the uploader: description, consent, owner */
};

struct upload;

struct voices {
    TAILQ_HEAD(voice_entries, voice_entry) entries;
    int n;
    TAILQ_HEAD(upload_list, upload) uploads;
    int n_uploads;
    char folder[4096];   /* absolute; "" when nothing is kept */
    char temporary[256]; /* for sounds, and voices of one request */
    int temporary_lock;  /* this folder, open and locked as long as the process lives */
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

#endif
