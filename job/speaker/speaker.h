/* SPDX-License-Identifier: Apache-2.0
 * Who makes the sound of lines, as the worker sees it: a model of this process (speaker_model.c), or a server that has
 * listeners too (speaker_server.c). */
#ifndef JOB_SPEAKER_H
#define JOB_SPEAKER_H

#include "job/line.h"
#include "utter.h"

struct slot;

struct speaker {
    const struct speaker_calls *calls;
    int lanes;   /* lines that it makes at the same time */
    int rate;    /* samples a second */
    bool misfit; /* it lacks what the lines need: other workers may have it */
};

struct speaker_calls {
    /* Begins the slot's line, whose pieces may have so many lanes. */
    utter_status (*begin)(struct speaker *speaker, struct slot *slot, int lanes, utter_error *error);
    /* All lines that were begun go on. */
    utter_status (*step)(struct speaker *speaker, utter_error *error);
    /* What has come of one goes to the slot's sound and words. UTTER_OK: it goes on; UTTER_END: that is all, with its
     * stats; UTTER_AGAIN: it will not be made now, which is no fault of the line, and what came of it is void. */
    utter_status (*take)(struct speaker *speaker, struct slot *slot, utter_error *error);
    /* Ends what is made of a line; accepts a slot whose line was not begun. */
    void (*drop)(struct speaker *speaker, struct slot *slot);
    void (*close)(struct speaker *speaker);
};

struct speaker_model_settings {
    utter_model *model;
    const utter_stream_options *voice; /* the checkpoint's defaults */
    const char *model_name;            /* as its lines have it (line_rules.model) */
    int lanes;
    /* The voice called `name`, "" for the model's first, and what it is. */
    utter_status (*find_voice)(void *user, const char *name, utter_voice **voice,
        char hash[IDENTITY_SIZE], utter_error *error);
    utter_find_voice_fn *find_called; /* for voices that a text calls for */
    utter_status (*hash_called)(
        void *user, const struct line *line, char hash[IDENTITY_SIZE], utter_error *error);
    void *user;
};
/* The settings are not copied: they stay the caller's. */
utter_status speaker_model_open(
    struct speaker **speaker, const struct speaker_model_settings *settings, utter_error *error);

struct speaker_server_settings {
    const char *url; /* http://HOST[:PORT] */
    const char *key; /* or NULL */
    int lanes;
    /* Told why lines are not made just now: the server is away, or does not speak. */
    void (*away)(void *user, const utter_error *error);
    void *user;
};
utter_status speaker_server_open(
    struct speaker **speaker, const struct speaker_server_settings *settings, utter_error *error);

void speaker_close(struct speaker **speaker); /* accepts NULL */

#endif
