/* SPDX-License-Identifier: Apache-2.0
 * One speech as the answer to one request, in the way of a dialect: sound, or JSON with sound in it, in
 * pieces or whole. */
#ifndef SERVER_ANSWER_H
#define SERVER_ANSWER_H

#include "server/loop/conn.h"
#include "server/speech/speech.h"

struct answer;

enum answer_way {
    ANSWER_SOUND,  /* chunks of sound */
    ANSWER_LINES,  /* a JSON object a line */
    ANSWER_EVENTS, /* server-sent events */
    ANSWER_WHOLE,  /* one JSON object at the end */
};

/* How it is told. All JSON is the caller's of these; NULL is nothing. */
struct answer_dialect {
    json_t *(*sound)(const void *bytes, size_t n);   /* lines, events: a piece of sound */
    json_t *(*end)(const char *text, double seconds, /* what comes last; */
        const void *bytes, size_t n);                /* ANSWER_WHOLE: with all the sound */
    json_t *(*fault)(const struct refusal *refusal); /* events: when sound has begun */
};

/* Begins to speak the input of these fields (taken over). */
void answer_speech(
    struct conn *c, struct fields *fields, enum answer_way way, const struct answer_dialect *dialect);

#endif
