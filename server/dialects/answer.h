/* SPDX-License-Identifier: Apache-2.0
 * One speech as the answer to one request, in the way of a dialect: sound, or JSON with sound in it, in
 * pieces or whole. */
#ifndef SERVER_ANSWER_H
#define SERVER_ANSWER_H

#include "server/dialects/spoken.h"
#include "server/loop/conn/conn.h"
#include "server/speech/speech.h"

enum answer_way {
    ANSWER_SOUND,  /* chunks of sound */
    ANSWER_LINES,  /* a JSON object a line */
    ANSWER_EVENTS, /* server-sent events */
    ANSWER_WHOLE,  /* one JSON object at the end */
};

/* What of a speech is told. */
struct answer_said {
    const json_t *asked; /* the request, or NULL */
    const char *text;
    double seconds;    /* at the end */
    const void *bytes; /* of a piece of sound */
    size_t n;
    /* That were not told yet; `next`: one more can be seen behind them. */
    const struct speech_word *words;
    size_t n_words;
    bool next, approximate;
    struct spoken *spoken; /* what of the text has been told */
    void *own;             /* the dialect's */
};

/* How it is told; NULL is nothing. An array is told as several. */
struct answer_dialect {
    json_t *(*sound)(const struct answer_said *said);
    /* Of ANSWER_WHOLE: all of it, but the sound. */
    json_t *(*end)(const struct answer_said *said);
    /* Of events, when sound has begun. */
    json_t *(*fault)(const struct refusal *refusal);
    /* Where the fields ask for words. */
    json_t *(*words)(const struct answer_said *said);
    const char *sound_name; /* of ANSWER_WHOLE: the member that holds it */
};

/* Begins to speak the input of these fields (taken over). `asked` is kept; `own`, a block of base/memory or NULL, is
 * taken over. */
void answer_speech(struct conn *c, struct fields *fields, json_t *asked, enum answer_way way,
    const struct answer_dialect *dialect, void *own);

#endif
