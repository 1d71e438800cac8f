/* SPDX-License-Identifier: Apache-2.0
 * POST /v1/audio/speech/batch: several speeches, one answer. */
#ifndef SERVER_SPEECH_BATCH_H
#define SERVER_SPEECH_BATCH_H

#include "server/loop/conn/conn.h"

/* Takes the whole request, and answers it sooner or later. */
void speech_batch_request(struct conn *c);

#endif
