/* SPDX-License-Identifier: Apache-2.0
 * Where connections come from: how many places an address holds, which of its connections could go, how many bytes of
 * it may be read, how often it may ask, and how often it may be thrown out at once. An address of IPv6 is its first
 * half: within it a customer has as many as he likes. Some have 256 such halves beside each other, and are 256 to us:
 * elsewhere each of these is the telephone or the machine of somebody else, who would rest for his neighbours. GitLab
 * and Tor count so, too. */
#ifndef SERVER_ORIGIN_H
#define SERVER_ORIGIN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "server/loop/budget.h"

/* What a connection is worth when all places are taken and somebody comes, least first. */
enum worth {
    WORTH_HALF,    /* has sent half of a request; or is thrown out, and not told yet */
    WORTH_SILENT,  /* a WebSocket that has said nothing */
    WORTH_IDLE,    /* waits for a request, or has had its last answer */
    WORTH_SESSION, /* a WebSocket on which nothing is spoken */
    WORTHS         /* others are at work, and stay */
};

TAILQ_HEAD(conn_list, conn);

struct origin {
    LIST_ENTRY(origin) entry;
    uint64_t network[2];
    int n_conns;
    struct conn_list could_go[WORTHS];
    struct bucket bytes, asks, thrown_out;
    double told_at; /* when the log was told of it last; 0: never */
};

/* Those that have connections, and those that have sent much, or were thrown out, a moment ago: who is thrown out and
 * comes back begins where he was. Also those that the log was told of within the minute. */
enum { ORIGIN_CHAINS = 1024, ORIGINS_LEFT = 4096 };
struct origins {
    LIST_HEAD(, origin) chains[ORIGIN_CHAINS];
    uint64_t secret;         /* the server's, so that nobody can choose addresses of one chain */
    int n_left;              /* without connections */
    struct origin *majority; /* who holds more than half of all places, or NULL */
};

void origins_begin(struct origins *all);
void origins_end(struct origins *all);
/* Forgets who has no connection, and may do as much as anybody again. Called now and then. */
void origins_tick(struct origins *all, double now);

/* NULL: none of its connections is there, and it is not remembered. */
struct origin *origin_find(struct origins *all, const struct sockaddr *from);
/* One more connection of it, of so many places. NULL: out of memory. */
struct origin *origin_enter(struct origins *all, const struct sockaddr *from, int places, double now);
/* One less. */
void origin_leave(struct origins *all, struct origin *o, int places, double now);
/* So many bytes of it have been read. Returns for how many seconds those should rest who send much; 0: go on. */
double origin_take(struct origin *o, double now, double bytes);
/* So many requests of it have come, a connection with its first one counting as two. Returns for how many seconds those
 * should rest who ask again and again; 0: go on. */
double origin_ask(struct origin *o, double now, double n);
/* One of it is thrown out. Returns for how many seconds that should be put off; 0: at once. */
double origin_throw_out(struct origin *o, double now);
/* Whether the log should be told what becomes of it: that is so once a minute. */
bool origin_is_news(struct origin *o, double now);

#endif
