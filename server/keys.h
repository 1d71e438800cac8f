/* SPDX-License-Identifier: Apache-2.0
 * API keys: a file with one key a line, kept as hashes. */
#ifndef SERVER_KEYS_H
#define SERVER_KEYS_H

#include "server/http.h"
#include "server/server.h"

/* Reads the file, or reads it again. False after a message on stderr; the old keys stay. */
bool keys_read(struct server *s);
void keys_free(struct server *s);
/* Which key the request shows: its number; 0 when no keys are asked for; -1: none or a wrong one. */
int keys_check(const struct server *s, const struct http_head *head);

#endif
