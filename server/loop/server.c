/* SPDX-License-Identifier: Apache-2.0
 * When the front end is done. */
#include "server/loop/server.h"

#include <event2/event.h>

void server_check_drained(struct server *s)
{
    bool busy = s->n_running > 0 || s->n_queued > 0 || s->n_conns > s->n_lingering || s->n_wyoming > 0;
    if (s->draining && !busy) {
        event_base_loopbreak(s->base);
    }
}
