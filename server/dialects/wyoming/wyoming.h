/* SPDX-License-Identifier: Apache-2.0
 * The Wyoming protocol (Home Assistant's) on a port of its own: --wyoming tcp://HOST:PORT. It knows no keys. */
#ifndef SERVER_WYOMING_H
#define SERVER_WYOMING_H

#include "server/loop/server.h"

/* Listens where the options say so. False after a message on stderr. */
bool wyoming_open(struct server *s);
/* A drain has begun: as conn_drain. */
void wyoming_drain(struct server *s);
/* As conn_lapsed. */
void wyoming_lapsed(struct server *s, evutil_socket_t file);
void wyoming_close(struct server *s);

#endif
