/* SPDX-License-Identifier: Apache-2.0
 * Which path does what, who may ask, and how long a body may be. */
#ifndef SERVER_ROUTE_H
#define SERVER_ROUTE_H

#include "server/conn.h"

/* Called with the head alone. False: *refusal says why. */
bool route_admit(struct conn *c, size_t *body_limit, struct refusal *refusal);
/* Called with the whole request. */
void route_request(struct conn *c);

/* What a client has sent as JSON, the caller's; `what` names it in the error. Not more values than it may have. */
utter_status route_parse(
    json_t **json, const char *text, size_t n, const char *what, utter_error *error);
/* The body as JSON, the caller's; NULL after it has refused. */
json_t *route_json(struct conn *c);

/* The answers that are files of their own. */
void speech_http_request(struct conn *c);  /* POST /v1/audio/speech */
void speech_batch_request(struct conn *c); /* POST /v1/audio/speech/batch */
void session_request(struct conn *c);      /* WebSocket /v1/audio/speech/stream */
void voices_http_create(struct conn *c);   /* POST /v1/audio/voices */

#endif
