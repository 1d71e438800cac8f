/* SPDX-License-Identifier: Apache-2.0
 * API keys: a file with one account a line. */
#ifndef SERVER_KEYS_H
#define SERVER_KEYS_H

#include "server/loop/account.h"
#include "server/loop/server.h"
#include "server/protocol/http.h"

/* Reads the file, or reads it again; accounts that stay keep what they have used. False after a message on stderr; the
 * old keys stay. */
bool keys_read(struct server *s);
void keys_free(struct server *s);
/* Whether the request shows a key, where keys are asked for; its account is borrowed. NULL: no keys, or none shown. */
bool keys_check(const struct server *s, const struct http_head *head, struct account **account);

#endif
