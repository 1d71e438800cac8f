/* SPDX-License-Identifier: Apache-2.0
 * WebSocket /tts/websocket. */
#ifndef SERVER_CARTESIA_SOCKET_H
#define SERVER_CARTESIA_SOCKET_H

#include "server/loop/conn/conn.h"

/* Takes the whole request, and answers it sooner or later. */
void cartesia_socket(struct conn *c);

#endif
