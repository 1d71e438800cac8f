/* SPDX-License-Identifier: Apache-2.0
 * What Deepgram's interface says and hears: its query and JSON in, ours out, and back. Pure. */
#ifndef SERVER_DEEPGRAM_MESSAGE_H
#define SERVER_DEEPGRAM_MESSAGE_H

#include <jansson.h>

#include "server/protocol/refusal.h"

/* What a request's query says; NULL: not given. */
struct deepgram_query {
    const char *encoding, *container, *sample_rate, *bit_rate, *speed;
};

/* The fields of our own interface: of a request with its body, or of a socket (body NULL), which has raw sound only.
 * The caller's; NULL: *refusal says why. */
json_t *deepgram_fields(
    const struct deepgram_query *query, const json_t *body, struct refusal *refusal);

enum deepgram_kind {
    DEEPGRAM_SPEAK,
    DEEPGRAM_FLUSH,
    DEEPGRAM_CLEAR,     /* of Aura */
    DEEPGRAM_INTERRUPT, /* of Flux */
    DEEPGRAM_CONFIGURE, /* of Flux */
    DEEPGRAM_CLOSE,
};

struct deepgram_message {
    enum deepgram_kind kind;
    const char *text; /* of DEEPGRAM_SPEAK; the JSON's */
    size_t bytes;
    double played_ms; /* of DEEPGRAM_INTERRUPT; negative: not told */
    double speed;     /* of DEEPGRAM_CONFIGURE */
};
bool deepgram_read(struct deepgram_message *m, const json_t *json, bool flux, struct refusal *refusal);

/* One turn of Flux. */
struct deepgram_turn {
    const char *id;
    double seconds;
    size_t chars;
};
json_t *deepgram_speech_metadata(const struct deepgram_turn *turn);
/* `spoken` bytes of text[0..n) were heard; spoken < 0: it is not known. */
json_t *deepgram_interrupted(
    const struct deepgram_turn *turn, double played_ms, const char *text, size_t n, long long spoken);

json_t *deepgram_warning(const char *code, const char *what);
json_t *deepgram_error(const struct refusal *r);   /* of a socket */
json_t *deepgram_refusal(const struct refusal *r); /* of HTTP */

#endif
