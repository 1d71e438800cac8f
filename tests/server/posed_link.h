/* SPDX-License-Identifier: Apache-2.0
 * A front end of two workers that are only posed: each is a socket, and the times that the test sets. */
#ifndef TESTS_SERVER_POSED_LINK_H
#define TESTS_SERVER_POSED_LINK_H

#include "base/clock.h"
#include "tests/support.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/loop/links.h"

enum { LINKS = 2, STARTED = 1000 /* by the posed clock */ };

static struct serve_options options;
static struct server s;
static struct link links[LINKS];
static int far[LINKS]; /* the workers' ends of their sockets */
static int n_lost, n_beats, n_given_up;
static char lost_as[200]; /* what was told of the last one that was lost */

static inline void ignore(struct link *l)
{
    (void)l;
}

static inline void count_beat(struct link *l)
{
    (void)l;
    n_beats++;
}

static inline void ignore_message(struct link *l, const struct wire_message *m)
{
    (void)l, (void)m;
}

static inline void note_lost(struct link *l, const char *unopened)
{
    (void)l;
    n_lost++;
    snprintf(lost_as, sizeof lost_as, "%s", unopened ? unopened : "nothing");
}

static inline void count_given_up(struct server *server)
{
    (void)server;
    n_given_up++;
}

static const struct link_owner owner = {ignore, count_beat, ignore_message, note_lost, count_given_up};

static inline void on_come(evutil_socket_t socket, short what, void *user)
{
    (void)socket, (void)what, (void)user;
}

/* A socket, as if a worker were at its other end; it has no process. */
static inline void pose(struct link *l)
{
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
    l->socket = bufferevent_socket_new(s.base, pair[0], BEV_OPT_CLOSE_ON_FREE);
    l->come = event_new(s.base, pair[0], EV_READ | EV_PERSIST, on_come, l);
    assert_true(l->socket && l->come);
    l->started = l->heard = STARTED;
    far[l->number] = pair[1];
}

/* Two workers whose models have been open once; nobody is there now. */
static inline void begin(void)
{
    options = (struct serve_options){.model = "m", .no_cage = true, .quiet = true};
    s = (struct server){
        .options = &options, .base = event_base_new(), .links = links, .n_links = LINKS};
    assert_int_equal(event_base_priority_init(s.base, SERVER_PRIORITIES), 0);
    n_lost = n_beats = n_given_up = 0;
    lost_as[0] = 0;
    for (int i = 0; i < LINKS; i++) {
        links[i] =
            (struct link){.server = &s, .owner = &owner, .device = "cpu", .number = i, .lanes = 2};
        TAILQ_INIT(&links[i].running);
        far[i] = -1;
    }
}

static inline void end(void)
{
    for (int i = 0; i < LINKS; i++) {
        link_close(&links[i]);
        assert_true(!links[i].socket && links[i].pid == 0);
        if (far[i] >= 0) {
            close(far[i]);
        }
    }
    event_base_free(s.base);
}

/* A process that does nothing. */
static inline pid_t idler(void)
{
    const pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pause();
        _exit(0);
    }
    assert_true(pid > 0);
    return pid;
}

static inline void bury(pid_t pid)
{
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Whether a worker so posed is lost at this time. */
static inline bool is_lost(struct link *l, double now)
{
    const uint64_t before = l->n_deaths;
    if (!l->socket) {
        pose(l);
    }
    link_tick(l, now);
    assert_int_equal(l->socket == NULL, l->n_deaths > before);
    if (!l->socket) {
        event_base_loop(s.base, EVLOOP_NONBLOCK);
        assert_int_equal(recv(far[l->number], &(char){0}, 1, 0), 0); /* and sees that it is */
        close(far[l->number]);
        far[l->number] = -1;
    }
    return l->n_deaths > before;
}

#endif
