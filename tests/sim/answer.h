/* SPDX-License-Identifier: Apache-2.0
 * What a client hears: the bytes of an answer, in pieces of any size, and whether they are what they must be. */
#ifndef SIM_ANSWER_H
#define SIM_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "server/protocol/http.h"

enum answer_sound { ANSWER_ANY, ANSWER_RAW, ANSWER_WAV, ANSWER_EVENTS, ANSWER_SOCKET };

enum answer_state {
    ANSWER_HEAD,
    ANSWER_BODY,
    ANSWER_WHOLE,  /* its end is there, and says that it is one */
    ANSWER_BROKEN, /* the client was told that it is not whole */
};

/* The sound of one speech, sample by sample. */
struct heard_sound {
    uint32_t id;
    uint64_t n_samples;
    uint8_t odd;
    bool has_odd;
    double first_at, until; /* by the clock: the first sample came; all that has come is heard */
    double gaps_s;
    int n_gaps;
};

void sound_begin(struct heard_sound *s, uint32_t id);
/* Samples of 16 bits; fails when one is not this speech's next. */
void sound_feed(struct heard_sound *s, const uint8_t *bytes, size_t n);

struct answer {
    enum answer_sound kind;
    enum answer_state state;
    int status;
    bool chunked, has_length, is_error, done; /* is_error, done: an event that says so */
    uint64_t left;                            /* of a body with a length */
    size_t n_skipped;                         /* of a WAV's head */
    struct http_chunks chunks;
    struct heard_sound sound;
    char head[2048];
    size_t n_head;
    char *line; /* of an event stream */
    size_t n_line, line_room;
};

void answer_begin(struct answer *a, enum answer_sound kind, uint32_t id);
/* How many of the bytes belong to it. */
size_t answer_feed(struct answer *a, const uint8_t *bytes, size_t n);
/* The connection has ended. */
void answer_end(struct answer *a);
void answer_fini(struct answer *a);
/* The value of a line of the head, or NULL. */
const char *answer_header(const struct answer *a, const char *name);

#endif
