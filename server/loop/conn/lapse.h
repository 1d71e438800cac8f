/* SPDX-License-Identifier: Apache-2.0
 * Files that the kernel goes on watching though nobody waits for them any more. libevent 2.1 has only a warning for
 * that: such a file is ready at every turn of the loop, and nothing comes of it, so that it turns without an end. */
#ifndef SERVER_LAPSE_H
#define SERVER_LAPSE_H

#include <event2/bufferevent.h>

/* From now on `lapsed` is called for each, in the middle of whatever libevent was asked for. */
void lapse_begin(void (*lapsed)(void *user, evutil_socket_t file), void *user);
/* If the file is that of `b`, its owner is told of an error in the next turn of the loop: who frees `b` closes the
 * file, and the kernel forgets it. */
void lapse_tell(struct bufferevent *b, evutil_socket_t file);
void lapse_end(void);

#endif
