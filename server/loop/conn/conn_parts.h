/* SPDX-License-Identifier: Apache-2.0
 * What the two halves of a connection, reading and answering, need of each other. */
#ifndef SERVER_CONN_PARTS_H
#define SERVER_CONN_PARTS_H

#include "server/loop/conn/conn.h"

void conn_enter(struct conn *c, enum conn_state state);
void conn_answered(struct conn *c); /* the answer is complete */
void conn_wrote(struct conn *c);    /* something may have been written */

#endif
