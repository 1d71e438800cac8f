/* SPDX-License-Identifier: Apache-2.0
 * Takes the file from libevent's warning: there is no other way to learn that the kernel has refused. */
#include "server/loop/conn/lapse.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <string.h>

static struct {
    void (*lapsed)(void *user, evutil_socket_t file);
    void *user;
} told;

/* What the kernel refuses to watch is no lapse: whoever asked for it hears of that. */
static void on_warning(int severity, const char *words)
{
    int file;
    (void)severity;
    fprintf(stderr, "[warn] %s\n", words);
    if (strstr(words, "(del)") && sscanf(words, "Epoll %*s on fd %d failed", &file) == 1) {
        told.lapsed(told.user, file);
    }
}

void lapse_begin(void (*lapsed)(void *user, evutil_socket_t file), void *user)
{
    told.lapsed = lapsed;
    told.user = user;
    event_set_log_callback(on_warning);
}

void lapse_tell(struct bufferevent *b, evutil_socket_t file)
{
    if (bufferevent_getfd(b) == file) {
        errno = EBADF; /* the owner looks at it: this is no lack of memory */
        bufferevent_trigger_event(b, BEV_EVENT_ERROR, BEV_OPT_DEFER_CALLBACKS);
    }
}

void lapse_end(void)
{
    event_set_log_callback(NULL);
}
