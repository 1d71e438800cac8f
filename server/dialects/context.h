/* SPDX-License-Identifier: Apache-2.0
 * One voice in a client's conversation, whatever the dialect: text comes in any size, a flush ends a piece,
 * pieces are spoken one after the other. A connection may have several contexts, which speak at once.
 *
 * Sound runs ahead of hearing by a bounded time only: who interrupts then has little that was made for nothing, and a
 * client that cannot tell what it has dropped has dropped little. */
#ifndef SERVER_CONTEXT_H
#define SERVER_CONTEXT_H

#include "server/loop/conn/conn.h"
#include "server/speech/speech.h"
#include "server/speech/words.h"

struct context;

/* A piece that has been spoken, or that held no word. */
struct context_piece {
    const char *text; /* not ended by a zero */
    size_t bytes;
    double from_s, seconds; /* of the context's sound */
    bool blank;             /* there was nothing to say */
    int tag;                /* as its flush had it; -1: it has ended before */
    bool approximate;       /* times of its words are shares of that */
};

/* Who asked. Each may free the context or close the connection. */
struct context_sink {
    void (*sound)(void *user, const void *bytes, size_t n);
    void (*piece)(void *user, const struct context_piece *piece);
    void (*failed)(void *user, const struct refusal *r); /* and what waited is forgotten */
    /* Words of the piece that is spoken, each once, in order; the last ones before `piece`. `next`: the one that
     * follows these n can be seen behind them. */
    void (*words)(void *user, const struct context_piece *piece, const struct speech_word *words,
        size_t n, bool next);
};

/* Takes the fields over, also when it fails; it hears of words where they ask for them. ahead_s: how far sound may run
 * ahead of hearing. NULL: out of memory. */
struct context *context_new(
    struct conn *c, struct fields *fields, double ahead_s, const struct context_sink *sink, void *user);
/* Ends what it says. Accepts NULL. */
void context_free(struct context *x);

/* False: too much text waits on this connection, or memory is out; *refusal says which. */
bool context_text(struct context *x, const char *text, size_t n, struct refusal *refusal);
/* The piece has no more text: `piece` will be called for it, also when it is blank. False: as context_text. */
bool context_flush(struct context *x, int tag, struct refusal *refusal);
/* The piece that was not flushed is not said, or not further. */
void context_drop_open(struct context *x);
/* Nothing of what was said so far is heard any more; the next text begins anew. */
void context_clear(struct context *x);
/* The client does not read, or does again. */
void context_hold(struct context *x, bool held);

/* Something is spoken, or is about to be. */
bool context_speaks(const struct context *x);
/* Nothing is spoken, and nothing waits to be. */
bool context_is_idle(const struct context *x);
/* Whether the piece that text goes into now holds any. */
bool context_has_text(const struct context *x);
/* What is being spoken, as far as it has come; borrowed until the next call. False: nothing is. */
bool context_now(const struct context *x, struct context_piece *now);
/* How fast the pieces behind this one are spoken. */
void context_speed(struct context *x, double speed);

#endif
