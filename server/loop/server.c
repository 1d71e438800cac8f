/* SPDX-License-Identifier: Apache-2.0
 * When the front end is done. */
#include "server/loop/server.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <sys/socket.h>

void server_check_drained(struct server *s)
{
    bool speaks = s->n_running + s->background.n_running > 0,
         waits = s->n_queued + s->background.n_queued > 0;
    bool busy = speaks || waits || s->n_conns > s->n_lingering || s->n_wyoming > 0;
    if (s->draining && !busy) {
        event_base_loopbreak(s->base);
    }
}

bool server_has_come(struct bufferevent *from)
{
    char first;
    return evbuffer_get_length(bufferevent_get_input(from)) > 0 ||
           recv(bufferevent_getfd(from), &first, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}
