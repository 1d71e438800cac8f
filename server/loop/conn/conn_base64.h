/* SPDX-License-Identifier: Apache-2.0
 * A whole answer of JSON that holds a long sound in base64: written piece by piece while the client takes it, so that
 * nobody else waits for it. */
#ifndef SERVER_CONN_BASE64_H
#define SERVER_CONN_BASE64_H

#include "server/loop/conn/conn.h"

/* Answers with `json` and, as its first member `name`, the sound. Takes over both (json NULL: out of memory); the
 * caller has counted the sound as unsent, which ends here. `more`: as of conn_answer_more. */
void conn_answer_base64(
    struct conn *c, const char *more, const char *name, struct wire_out *sound, json_t *json);

#endif
