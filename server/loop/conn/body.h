/* SPDX-License-Identifier: Apache-2.0
 * What a client has sent as JSON. */
#ifndef SERVER_BODY_H
#define SERVER_BODY_H

#include "server/loop/conn/conn.h"

/* A text as JSON, the caller's; `what` names it in the error. Not more values than it may have. */
utter_status body_parse(
    json_t **json, const char *text, size_t n, const char *what, utter_error *error);
/* The body of a request as JSON, the caller's; NULL after it has refused. */
json_t *body_json(struct conn *c);

#endif
