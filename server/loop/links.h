/* SPDX-License-Identifier: Apache-2.0
 * All workers: one for each device, alike in everything but that. */
#ifndef SERVER_LINKS_H
#define SERVER_LINKS_H

#include "server/loop/link.h"

/* Starts the workers; `owner` must stay. False when none can be started (a message is on stderr). */
bool links_open(struct server *s, const struct link_owner *owner);
/* Ends them; their speeches are lost. */
void links_close(struct server *s);

/* Of all but those that are out: one that is being replaced with the lanes that it had. */
int links_lanes(const struct server *s);
/* Of those that take speeches. */
int links_capacity(const struct server *s);
/* How many are ready and stay; whether one is, or opens the model for those who wait; whether all were sent away. */
int links_ready(const struct server *s);
bool links_up(const struct server *s);
bool links_out(const struct server *s);
/* The first one that is ready, and may be leaving; NULL: none. */
const struct link *links_first(const struct server *s);

/* The worker for speeches that nobody waits for, where the others are on processors; it is started when it is not
 * there. NULL: there is none, and these speeches share the lanes of the others. */
struct link *links_idle(struct server *s);

/* A speech wants a lane: workers that were ended for want of work are started again. */
void links_want(struct server *s);
/* Called by the loop a few times a second. */
void links_tick(struct server *s, double now);
/* As conn_lapsed: of a worker's socket, which is lost with it. */
void links_lapsed(struct server *s, evutil_socket_t file);
/* Some child has ended. */
void links_reap(struct server *s, pid_t pid, int status);

#endif
