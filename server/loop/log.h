/* SPDX-License-Identifier: Apache-2.0
 * The log of the front end: one line of JSON for each event, on standard error. */
#ifndef SERVER_LOG_H
#define SERVER_LOG_H

#include <jansson.h>

#include "server/loop/server.h"

/* `fields` is taken over and may be NULL, which is no line. */
void log_event(const struct server *s, const char *event, json_t *fields);

#endif
