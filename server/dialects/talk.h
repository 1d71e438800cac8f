/* SPDX-License-Identifier: Apache-2.0
 * A WebSocket of another service: JSON messages in, contexts by name that speak at once, what the dialect makes of them
 * out. It may go, and so may each context, in the middle of a call: calls on what is gone do nothing, and it is
 * freed when the last of them has returned. */
#ifndef SERVER_TALK_H
#define SERVER_TALK_H

#include "server/dialects/context.h"
#include "server/dialects/markup.h"
#include "server/dialects/spoken.h"

struct talk;

struct talk_context {
    TAILQ_ENTRY(talk_context) entry;
    struct talk *talk;
    struct context *speaks;
    struct markup markup;
    char name[129];
    bool closing; /* the client has said all */
    bool is_gone;
    struct spoken spoken; /* of the piece that is spoken */
    int n_flushes;        /* the dialect's own */
    void *own;          /* and its memory, a block of base/memory that goes with the context; or NULL */
    struct event *wait; /* flushes what is left without more text, or NULL */
};

/* How it is told. */
struct talk_dialect {
    void (*message)(struct talk *x, const json_t *message);
    void (*sound)(struct talk_context *t, const void *bytes, size_t n);
    void (*piece)(struct talk_context *t, const struct context_piece *piece);
    /* The last word of a context that was closed; it goes then. */
    void (*ended)(struct talk_context *t);
    void (*failed)(struct talk *x, const struct refusal *r, const char *name); /* of a context, or "" */
    void (*gone)(struct talk *x); /* frees what `own` owns; may be NULL */
    /* As of a context; may be NULL where the fields ask for no words. */
    void (*words)(struct talk_context *t, const struct context_piece *piece,
        const struct speech_word *words, size_t n, bool next);
};

struct talk {
    struct conn *conn;
    const struct talk_dialect *dialect;
    TAILQ_HEAD(talk_contexts, talk_context) contexts, gone;
    int n_contexts;
    bool closing; /* when nothing is spoken any more */
    bool is_gone;
    int n_inside;  /* calls that run */
    double idle_s; /* without a message or sound: it ends */
    void *own;     /* the dialect's, freed with it */
};

/* Answers the handshake (accept: as conn_handshake filled it in). Takes `own` over, a block of base/memory. NULL: it
 * has been refused. */
struct talk *talk_open(
    struct conn *c, const char *accept, const struct talk_dialect *dialect, double idle_s, void *own);
void talk_send(struct talk *x, json_t *json); /* taken over */
void talk_send_sound(struct talk *x, const void *bytes, size_t n);
/* Counts it and tells the client. */
void talk_fail(struct talk *x, const struct refusal *r, const char *name);
/* Ends it with this code, now. */
void talk_hang_up(struct talk *x, int code, const char *why);
/* What was flushed is said to its end, then it closes. */
void talk_close(struct talk *x);

struct talk_context *talk_find(struct talk *x, const char *name);
/* Takes the fields over. NULL: *refusal says why. */
struct talk_context *talk_begin(
    struct talk *x, const char *name, struct fields *fields, double ahead_s, struct refusal *refusal);
/* Text without its markup, and without white space in front of the first word. */
bool talk_text(struct talk_context *t, const char *text, size_t n, struct refusal *refusal);
bool talk_has_text(const struct talk_context *t);
/* `tag` comes back with the piece. */
void talk_flush(struct talk_context *t, int tag);
/* Flushes by itself when no more text comes for so long; negative: not. */
void talk_flush_after(struct talk_context *t, double seconds);
/* Nothing of what was said so far is heard any more. */
void talk_clear(struct talk_context *t);
/* The client has said all: `ended` follows when it has been spoken. */
void talk_end(struct talk_context *t);
/* Nothing more of it is said or told. */
void talk_drop(struct talk_context *t);

#endif
