/* SPDX-License-Identifier: Apache-2.0
 * Who can speak: presets of the model, the 13 names of OpenAI, and voice files of one folder, which come from
 * uploads. */
#ifndef SERVER_VOICES_H
#define SERVER_VOICES_H

#include <sys/types.h>

#include "server/loop/server.h"
#include "server/protocol/refusal.h"
#include "server/speech/fields.h"

struct voices;

struct voices_found {
    const char *preset; /* or NULL */
    char file[4096];    /* or "" */
};

/* Reads the folder. False when it cannot be read or made (a message is on stderr). */
bool voices_open(struct server *s);
void voices_close(struct server *s);

/* The voice that a request asks for; without a name the model's first. A model that speaks without voices gives neither
 * preset nor file. */
bool voices_find(
    struct server *s, const struct fields *fields, struct voices_found *found, struct refusal *refusal);

/* The answer of GET /v1/audio/voices; `legacy`: names only. And of one voice, or NULL. */
json_t *voices_list(struct server *s, bool legacy);
json_t *voices_one(struct server *s, const char *name);

/* Makes a voice from a recording in a process of its own; `done` is called in the loop, once, with the voice's JSON
 * (taken over) or NULL and a refusal. False: refused at once. */
struct voices_upload {
    const char *name, *transcript, *description, *consent; /* NULL: none */
    const void *sound;
    size_t sound_bytes;
    bool overwrite;
    bool once;                     /* not listed: for one request, at `file` of voices_done */
    const struct account *account; /* the uploader's, who may change it; NULL: there are no keys */
};
typedef void voices_done(void *user, json_t *voice, const char *file, const struct refusal *refusal);
bool voices_create(struct server *s, const struct voices_upload *upload, voices_done *done, void *user,
    struct refusal *refusal);
/* `user` is gone: its upload goes on, `done` is not called. */
void voices_abandon(struct server *s, void *user);

/* `account`: whose wish it is, as above. False: refused at once; else `done` is called, perhaps before this returns. */
bool voices_delete(struct server *s, const char *name, const struct account *account, voices_done *done,
    void *user, struct refusal *refusal);

/* Some child has ended. */
void voices_reap(struct server *s, pid_t pid, int status);

/* The child: "serve-clone MODEL BASE OUT caged|open" makes BASE.sound, with what BASE.json says of it, a voice; its
 * name and transcript come by a pipe. */
int voices_child(char **arguments);

#endif
