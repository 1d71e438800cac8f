/* SPDX-License-Identifier: Apache-2.0
 * ElevenLabs' interface: its paths, and the list that shares its path with OpenAI's. */
#ifndef SERVER_ELEVENLABS_H
#define SERVER_ELEVENLABS_H

#include "server/loop/routes.h"

extern const struct route elevenlabs_routes[];

/* GET /v1/models */
void elevenlabs_models(struct conn *c);

#endif
