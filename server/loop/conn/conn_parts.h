/* SPDX-License-Identifier: Apache-2.0
 * What the parts of a connection, reading, answering and its place, need of each other. */
#ifndef SERVER_CONN_PARTS_H
#define SERVER_CONN_PARTS_H

#include "server/loop/conn/conn.h"

void conn_enter(struct conn *c, enum conn_state state);
void conn_answered(struct conn *c); /* the answer is complete */
void conn_wrote(struct conn *c);    /* something may have been written */

bool conn_take_place(struct conn *c, const struct sockaddr *from); /* false: out of memory */
void conn_leave_place(struct conn *c);
/* What it is worth may be another now, and it has done something. */
void conn_went_on(struct conn *c);

bool conn_pace(struct conn *c); /* begins to count what comes; false: out of memory */
void conn_pay(struct conn *c);  /* for what has come: it may be too much for now */
/* A request begins, or a message of so many bytes has come. Returns for how many seconds it should rest, before the
 * request is looked at or behind the message, in which more may have come; not above 0: go on. */
double conn_ask(struct conn *c);
double conn_say(struct conn *c, size_t bytes);
/* Not now: others have their turn first. conn_resume: false: it cannot be read any more. */
void conn_rest(struct conn *c, double seconds, enum metrics_limit why);
bool conn_resume(struct conn *c);
/* It is made to wait, or ends, for what it or its address has done: counted, and now and then told to the log. */
void conn_limited(struct conn *c, enum metrics_limit how);
/* It has been told that it is thrown out for what it sent. That leaves the later the more its address is. */
void conn_thrown_out(struct conn *c);

#endif
