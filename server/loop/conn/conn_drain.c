/* SPDX-License-Identifier: Apache-2.0
 * Connections of a server that is about to stop. */
#include "base/minmax.h"
#include "server/loop/conn/conn_parts.h"

void conn_drain(struct server *s)
{
    struct conn *c, *after;
    for (c = TAILQ_FIRST(&s->conns); c; c = after) {
        after = TAILQ_NEXT(c, entry);
        bool is_first = c->request_id[0] == 0; /* has just connected, and will ask */
        /* Who rests is read now: the request may be whole, and its time is short. */
        if (c->resume_at > 0 && !conn_resume(c)) {
            conn_drop(c);
        } else if (c->state == CONN_HEAD && !c->reading && !is_first && !server_has_come(c->bev)) {
            conn_drop(c);
        } else if (c->state == CONN_HEAD) { /* the rest is on its way, or never comes */
            c->deadline = min(c->deadline, clock_seconds() + LINGER_S);
        } else if (c->state == CONN_SOCKET && c->owner && c->owner->idle) {
            c->owner->idle(c->user);
        }
    }
}
