/* SPDX-License-Identifier: Apache-2.0
 * POST /v1/audio/speech: one speech. */
#ifndef SERVER_SPEECH_HTTP_H
#define SERVER_SPEECH_HTTP_H

#include "server/loop/conn/conn.h"

/* Takes the whole request, and answers it sooner or later. */
void speech_http_request(struct conn *c);

#endif
