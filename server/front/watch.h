/* SPDX-License-Identifier: Apache-2.0
 * How the server is, for who looks after it; and its workers, sent away and brought back. */
#ifndef SERVER_WATCH_H
#define SERVER_WATCH_H

#include "server/loop/conn/conn.h"

void watch_health(struct conn *c);
void watch_ready(struct conn *c);
void watch_metrics(struct conn *c);
void watch_workers(struct conn *c);
/* The number of the worker stands in the path. */
void watch_drain(struct conn *c);
void watch_replace(struct conn *c);
void watch_start(struct conn *c);

#endif
