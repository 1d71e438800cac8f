/* SPDX-License-Identifier: Apache-2.0
 * One speech as the answer to one request, in the way of a dialect: sound, or JSON with sound in it, in
 * pieces or whole. */
#ifndef SERVER_ANSWER_H
#define SERVER_ANSWER_H

#include "server/loop/conn.h"
#include "server/speech/speech.h"

enum answer_way {
    ANSWER_SOUND,  /* chunks of sound */
    ANSWER_LINES,  /* a JSON object a line */
    ANSWER_EVENTS, /* server-sent events */
    ANSWER_WHOLE,  /* one JSON object at the end */
};

/* What of a speech is told, beside a piece of its sound. */
struct answer_said {
    const json_t *asked; /* the request, or NULL */
    const char *text;
    double seconds;    /* at the end */
    const void *bytes; /* of sound; at the end of ANSWER_WHOLE: all of it */
    size_t n;
};

/* How it is told; NULL is nothing. An array is told as several. */
struct answer_dialect {
    json_t *(*sound)(const struct answer_said *said);
    json_t *(*end)(const struct answer_said *said);
    json_t *(*fault)(const struct refusal *refusal); /* of events, when sound has begun */
};

/* Begins to speak the input of these fields (taken over). `asked` is kept. */
void answer_speech(struct conn *c, struct fields *fields, json_t *asked, enum answer_way way,
    const struct answer_dialect *dialect);

#endif
