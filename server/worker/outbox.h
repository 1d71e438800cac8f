/* SPDX-License-Identifier: Apache-2.0
 * What the worker says, on its way to the front end: the model's next step does not wait for the one that reads. */
#ifndef SERVER_OUTBOX_H
#define SERVER_OUTBOX_H

#include <stdbool.h>

#include "server/protocol/wire.h"

struct outbox;

/* For a socket that blocks and stays the caller's. NULL when out of memory. */
struct outbox *outbox_new(int socket);
/* Takes all of `out`, which is empty then, and keeps memory for a few steps at most. It waits only while some megabytes
 * are still on their way. False when the other end has gone, or memory. */
bool outbox_send(struct outbox *box, struct wire_out *out);
/* Gives the memory back that was kept, if nothing is on its way. */
void outbox_rest(struct outbox *box);
/* Waits until everything has been sent, or the other end has gone. Accepts NULL. */
void outbox_free(struct outbox *box);

#endif
