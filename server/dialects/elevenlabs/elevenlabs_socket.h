/* SPDX-License-Identifier: Apache-2.0
 * WebSocket /v1/text-to-speech/VOICE/stream-input and multi-stream-input. */
#ifndef SERVER_ELEVENLABS_SOCKET_H
#define SERVER_ELEVENLABS_SOCKET_H

#include "server/loop/conn/conn.h"

/* Each takes the whole request, and answers it sooner or later. */
void elevenlabs_socket_one(struct conn *c);
void elevenlabs_socket_many(struct conn *c);
/* The voice in the path, in out[size]; cut where it does not fit. */
const char *elevenlabs_voice(const struct conn *c, char *out, size_t size);

#endif
