/* SPDX-License-Identifier: Apache-2.0
 * What has come of the stream between a front end and a worker, cut into messages. Pure. */
#ifndef SERVER_WIRE_IN_H
#define SERVER_WIRE_IN_H

#include "server/protocol/wire.h"

/* Bytes [begin, n) are in no message yet. Zero it. */
struct wire_in {
    uint8_t *bytes;
    size_t begin, n, room;
};

/* Where the next *n bytes may be written: once all whole messages have been taken, the rest of the one that has begun,
 * or some frames of sound. NULL: memory has ended. Messages that came before are not valid any more. */
uint8_t *wire_in_room(struct wire_in *in, size_t *n);
/* So many have been written there. */
void wire_in_came(struct wire_in *in, size_t n);
/* The next whole message, which is done with then; valid until one of the other calls. */
enum wire_progress wire_next(struct wire_in *in, struct wire_message *m);
/* Gives back what a long message took, if nothing is left. */
void wire_in_rest(struct wire_in *in);
void wire_in_fini(struct wire_in *in);

#endif
