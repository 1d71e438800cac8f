/* SPDX-License-Identifier: Apache-2.0
 * POST /v1/audio/voices: a voice from a recording. DELETE: it goes. */
#ifndef SERVER_VOICES_HTTP_H
#define SERVER_VOICES_HTTP_H

#include "server/loop/conn/conn.h"

/* Takes the whole request, and answers it sooner or later. */
void voices_http_create(struct conn *c);
void voices_http_delete(struct conn *c);

#endif
