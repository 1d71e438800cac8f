/* SPDX-License-Identifier: Apache-2.0
 * A worker as the front end sees it: a child process and a socket, on its own device. One that ends unasked, or says
 * nothing for too long, is replaced; the others know nothing of it. */
#ifndef SERVER_LINK_H
#define SERVER_LINK_H

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <sys/types.h>

#include "server/loop/server.h"
#include "server/protocol/wire_in.h"

/* Who has use for workers; none of these may be NULL. */
struct link_owner {
    void (*ready)(struct link *l); /* its model is open: the first time, or in a new worker */
    void (*beat)(struct link *l);  /* it is alive, and its capacity may be another: lanes may be free */
    void (*message)(struct link *l, const struct wire_message *m); /* about a speech */
    /* This worker is not there now, and what it had is lost. `unopened`: why the model that others wait for was not
     * opened; NULL: it was open, or nobody had asked for it. */
    void (*lost)(struct link *l, const char *unopened);
    /* No worker can open the model, and none ever could: the server is to end with the exit_code that it has now. */
    void (*given_up)(struct server *s);
};

enum { LINK_IDLE_LANES = 8 }; /* of a worker that is idle */

struct link {
    struct server *server;
    const struct link_owner *owner;
    const char *device; /* as serve was asked for it */
    int number;
    int threads; /* that it has where nobody says how many; 0: as it finds right */

    bool is_ready; /* the worker is, now */
    /* It opens the model for those who wait: they are not late yet. */
    bool is_waking;
    bool is_leaving;   /* takes no more speeches, and ends with its last one */
    bool is_out;       /* none takes its place, until somebody asks for one */
    bool is_idle;      /* it has the processor when nobody else wants it, and may be silent for long */
    bool is_still;     /* it does not run at all: see link_still */
    char kernels[352]; /* that make the frames now; a GPU may go on with others after a fault */
    /* Where it computes, and how many lanes it has: so will the one that follows it. */
    char opened_on[16];
    int lanes;
    uint64_t memory_bytes;
    struct wire_beat beat; /* the last; capacity 0: not known */
    uint64_t n_starts, n_deaths;
    double audio_s; /* speech that it has made */

    struct speech_list running;  /* also those that were cancelled, until their lane is free */
    int n_running, n_background; /* lanes that they have: of listeners, and in the background */

    /* Of link.c. */
    pid_t pid;                  /* 0: none */
    struct bufferevent *socket; /* to write to */
    struct event *come;         /* of the same socket: there is something to read */
    struct wire_in in;
    struct wire_out out;
    double started, heard, restart_at; /* restart_at 0: not planned */
    double lost_at;                    /* when there was one last */
    double still_since;
    int n_failed_starts; /* workers in a row that ended before they were ready */
    int n_unborn;        /* tries in a row, since it was woken, to start one that gave no process */
    int start_fault; /* the exit code that it has for the server if none is ever ready; 0: it may still be */
    bool broken;   /* a message to it was lost: the loop will end it */
    bool is_asked; /* it was asked to end, or has said why it does */
};

#define LINKS_FOREACH(l, s) for (struct link *l = (s)->links; l < (s)->links + (s)->n_links; l++)

/* A worker. False: no process could be started (errno says why); it will be tried again. */
bool link_open(struct link *l);
/* Ends its process, and waits for it. */
void link_close(struct link *l);

/* The buffer of messages to the worker: write into it, then link_send. NULL while there is no worker that is ready.
 * Neither ends a speech: a worker whose messages cannot be sent is lost later, in the loop. */
struct wire_out *link_out(struct link *l);
void link_send(struct link *l);

/* It is ready, and nobody has sent it away. */
bool link_stays(const struct link *l);
/* Whether it may be given a speech: one that stays. One that makes sound more slowly than it is heard may only where no
 * other keeps up, and one that says nothing only where no other speaks. */
bool link_takes(const struct link *l);

/* What an operator asks for: it takes no more speeches, and ends with the last one that it has; then another takes its
 * place, or it stays out. And back: it takes speeches, or one is started. */
void link_leave(struct link *l, bool stays_out);
void link_return(struct link *l);

/* Whether the worker, which is ready, has said nothing for longer than its steps explain: it may hang. */
bool link_is_silent(const struct link *l);

/* Its process stands still from this moment on, also in the middle of a step, or goes on. What is sent to it meanwhile
 * waits, and so long a silence is none. Nothing, while it is not ready. */
void link_still(struct link *l, bool still);

/* For links.c: opens the model for those who wait; gives its memory back; what is due at this time. */
void link_wake(struct link *l);
void link_rest(struct link *l);
void link_tick(struct link *l, double now);
/* Its process has ended. */
void link_reap(struct link *l, int status);

#endif
