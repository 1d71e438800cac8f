/* SPDX-License-Identifier: Apache-2.0
 * Which path does what, who may ask, and how long a body may be. */
#ifndef SERVER_ROUTE_H
#define SERVER_ROUTE_H

#include "server/loop/conn/conn.h"

extern const struct conn_service route_service;

#endif
