/* SPDX-License-Identifier: Apache-2.0
 * WebSocket /v1/speak (Aura) and /v2/speak (Flux). */
#ifndef SERVER_DEEPGRAM_SOCKET_H
#define SERVER_DEEPGRAM_SOCKET_H

#include "server/dialects/ask.h"

/* Each takes the whole request, and answers it sooner or later. */
void deepgram_aura(struct conn *c);
void deepgram_flux(struct conn *c);

/* The fields that the query of a connection asks for; `body` with the text, or NULL. */
bool deepgram_ask(struct fields *fields, struct conn *c, const json_t *body, struct refusal *refusal);
/* How both sockets open: the handshake, zeroed state of so many bytes, which the talk frees, and a look at what is
 * asked for. NULL: the client has been told why not. */
void *deepgram_begin(struct conn *c, char *accept, size_t state_bytes);
/* Their first message, to which each adds the model's id in its own way. */
json_t *deepgram_about(const struct conn *c, const char *type);

#endif
