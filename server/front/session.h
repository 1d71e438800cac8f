/* SPDX-License-Identifier: Apache-2.0
 * WebSocket /v1/audio/speech/stream: text in pieces, sound while it is made. */
#ifndef SERVER_SESSION_H
#define SERVER_SESSION_H

#include "server/loop/conn/conn.h"

/* Takes the whole request, and answers it sooner or later. */
void session_request(struct conn *c);

#endif
