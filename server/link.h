/* SPDX-License-Identifier: Apache-2.0
 * The worker as the front end sees it: a child process and a socket. One that ends unasked, or says nothing for too
 * long, is replaced. */
#ifndef SERVER_LINK_H
#define SERVER_LINK_H

#include <sys/types.h>

#include "server/server.h"

struct link;

/* Starts the worker. False when that is impossible (a message is on stderr). */
bool link_open(struct server *s);
void link_close(struct server *s);

/* The buffer of messages to the worker: write into it, then link_send. NULL while there is no worker that is ready.
 * Neither ends a speech: a worker whose messages cannot be sent is lost later, in the loop. */
struct wire_out *link_out(struct server *s);
void link_send(struct server *s);

/* Called by the loop a few times a second. */
void link_tick(struct server *s, double now);
/* Some child has ended. */
void link_reap(struct server *s, pid_t pid, int status);

/* Starts this program again with the arguments; `socket`, or -1, stays open in it as number 3. stderr goes to
 * `error_pipe` unless -1. The id, or -1. */
pid_t link_spawn(char *const *arguments, int socket, int error_pipe);

#endif
