/* SPDX-License-Identifier: Apache-2.0
 * The worker as the front end sees it: a child process and a socket. One that ends unasked, or says nothing for too
 * long, is replaced. */
#ifndef SERVER_LINK_H
#define SERVER_LINK_H

#include <sys/types.h>

#include "server/loop/server.h"

struct link;

/* Who has use for the worker; none of these may be NULL. */
struct link_owner {
    void (*ready)(
        struct server *s, bool first); /* the model is open: the first time, or in a new worker */
    void (*beat)(struct server *s); /* it is alive, and s->capacity may be another: lanes may be free */
    void (*message)(struct server *s, const struct wire_message *m); /* about a speech */
    /* There is no worker now, and what it had is lost. `unopened`: why the model that others wait for was not opened;
     * NULL: it was open, or nobody had asked for it. */
    void (*lost)(struct server *s, const char *unopened);
};

/* Starts the worker; `owner` must stay. False when that is impossible (a message is on stderr). */
bool link_open(struct server *s, const struct link_owner *owner);
void link_close(struct server *s);

/* The buffer of messages to the worker: write into it, then link_send. NULL while there is no worker that is ready.
 * Neither ends a speech: a worker whose messages cannot be sent is lost later, in the loop. */
struct wire_out *link_out(struct server *s);
void link_send(struct server *s);

/* Whether the worker, which is ready, has said nothing for longer than its steps explain: it may hang. */
bool link_is_silent(const struct server *s);

/* A speech wants a lane: a worker that was ended for want of work is started again. */
void link_want(struct server *s);

/* Called by the loop a few times a second. */
void link_tick(struct server *s, double now);
/* Some child has ended. */
void link_reap(struct server *s, pid_t pid, int status);

#endif
