/* SPDX-License-Identifier: Apache-2.0
 * What concerns all workers together: their beginning, their rest, their end. */
#include "server/loop/links.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/threads.h"
#include "server/loop/conn/lapse.h"
#include "server/loop/log.h"
#include "server/protocol/devices.h"

enum { MOST_FAILED = 3, QUIET_S = 1 };

bool links_open(struct server *s, const struct link_owner *owner)
{
    const char *const *devices = s->options->devices;
    int n = s->options->n_devices, n_started = 0;
    struct devices_cores cores;
    s->links = memory_new((size_t)n, sizeof *s->links);
    for (int i = 0; s->links && i < n; i++) {
        struct link *l = &s->links[i];
        *l = (struct link){.server = s, .owner = owner, .device = devices[i], .number = i};
        if (devices_cores(&cores, devices[i])) {
            l->threads = devices_threads(devices[i], devices, n, threads_available());
        }
        TAILQ_INIT(&l->running);
        s->n_links = i + 1;
        n_started += link_open(l);
    }
    if (n_started == 0) {
        fprintf(stderr, "utter: no worker can be started: %s\n", strerror(errno));
    }
    return n_started > 0;
}

void links_close(struct server *s)
{
    struct link *idle = s->background.link;
    if (idle) {
        link_close(idle);
        idle->owner->lost(idle, NULL);
        memory_free(idle);
        s->background.link = NULL;
    }
    LINKS_FOREACH(l, s)
    {
        link_close(l);
    }
    LINKS_FOREACH(l, s)
    {
        l->owner->lost(l, NULL);
    }
    memory_free(s->links);
    s->links = NULL;
    s->n_links = 0;
}

int links_lanes(const struct server *s)
{
    int n = 0;
    LINKS_FOREACH(l, s)
    {
        n += l->is_ready || !l->is_out ? l->lanes : 0;
    }
    return n;
}

int links_capacity(const struct server *s)
{
    int n = 0;
    LINKS_FOREACH(l, s)
    {
        n += link_takes(l) ? l->beat.capacity : 0;
    }
    return n;
}

int links_ready(const struct server *s)
{
    int n = 0;
    LINKS_FOREACH(l, s)
    {
        n += link_stays(l);
    }
    return n;
}

bool links_up(const struct server *s)
{
    bool up = false;
    LINKS_FOREACH(l, s)
    {
        up = up || link_stays(l) || l->is_waking;
    }
    return up;
}

bool links_out(const struct server *s)
{
    bool out = s->n_links > 0;
    LINKS_FOREACH(l, s)
    {
        out = out && l->is_out;
    }
    return out;
}

const struct link *links_first(const struct server *s)
{
    LINKS_FOREACH(l, s)
    {
        if (l->is_ready) {
            return l;
        }
    }
    return NULL;
}

struct link *links_idle(struct server *s)
{
    const struct link *first = links_first(s);
    const char *how = s->options->background;
    struct link *l = s->background.link;
    if (how && strcmp(how, "shared") == 0) {
        return NULL;
    }
    LINKS_FOREACH(other, s)
    {
        if (other->is_ready && strcmp(other->opened_on, "cpu") != 0) {
            return NULL;
        }
    }
    if (!l && first && (l = memory_new(1, sizeof *l))) {
        *l = (struct link){.server = s, .owner = first->owner, .number = s->n_links, .is_idle = true};
        l->device = s->n_links == 1 ? first->device : "cpu";
        TAILQ_INIT(&l->running);
        s->background.link = l;
    }
    if (l && !l->socket && l->restart_at <= 0) {
        link_wake(l);
    }
    return l && l->n_failed_starts < MOST_FAILED ? l : NULL;
}

/* Nobody has asked for long. */
static void rest(struct server *s)
{
    s->is_resting = true;
    LINKS_FOREACH(l, s)
    {
        link_rest(l);
    }
}

void links_want(struct server *s)
{
    s->worked_at = clock_seconds(); /* it may be over before the next tick */
    if (s->is_resting) {
        s->is_resting = false;
        LINKS_FOREACH(l, s)
        {
            link_wake(l);
        }
    }
}

void links_tick(struct server *s, double now)
{
    LINKS_FOREACH(l, s)
    {
        link_tick(l, now);
    }
    if (s->background.link) {
        link_tick(s->background.link, now);
    }
    bool speaks = s->n_queued + s->background.n_queued > 0;
    LINKS_FOREACH(l, s)
    {
        speaks = speaks || !TAILQ_EMPTY(&l->running); /* also what was cut, and not told yet */
    }
    if (links_ready(s) == 0 || speaks || s->background.n_running > 0) {
        s->worked_at = now;
    } else if (s->options->idle_minutes > 0 && now - s->worked_at > 60 * s->options->idle_minutes) {
        rest(s);
    }
    /* Else what is seldom, such as hundreds who wait at once, leaves holes that stay. It takes a millisecond or more:
     * not while somebody still hears what was made. */
    if (s->worked_at > s->tidied_at && now - s->worked_at > QUIET_S && s->unsent_bytes == 0) {
        s->tidied_at = now;
        memory_give_back();
    }
}

void links_lapsed(struct server *s, evutil_socket_t file)
{
    const struct link *idle = s->background.link;
    LINKS_FOREACH(l, s)
    {
        if (l->socket) {
            lapse_tell(l->socket, file);
        }
    }
    if (idle && idle->socket) {
        lapse_tell(idle->socket, file);
    }
}

void links_reap(struct server *s, pid_t pid, int status)
{
    if (s->background.link && s->background.link->pid == pid) {
        link_reap(s->background.link, status);
        return;
    }
    LINKS_FOREACH(l, s)
    {
        if (l->pid == pid) {
            link_reap(l, status);
            return;
        }
    }
}
