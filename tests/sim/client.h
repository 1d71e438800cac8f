/* SPDX-License-Identifier: Apache-2.0
 * Clients of every kind: those who listen, those who leave, those who do not read, those who send nonsense. Each must
 * be told what becomes of what it asked, within its time. */
#ifndef SIM_CLIENT_H
#define SIM_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum client_kind {
    CLIENT_RAW,
    CLIENT_WHOLE,
    CLIENT_EVENTS,
    CLIENT_SESSION, /* a WebSocket */
    CLIENT_ASKS,    /* for what is no speech */
    CLIENT_BAD,     /* a request in which bytes are wrong */
    CLIENT_HALF,    /* a request that stops coming */
    CLIENT_SILENT,
    CLIENT_ELSE, /* in another dialect or format, or for a batch */
    CLIENT_TALK, /* likewise, on a WebSocket */
    CLIENT_KINDS
};

enum client_reading { READS_AT_ONCE, READS_AS_HEARD, READS_SLOWLY, READS_NO_MORE };

struct client_plan {
    enum client_kind kind;
    enum client_reading reading;
    int n_requests;
    size_t least_bytes, most_bytes; /* of a text */
    double leaves_s;                /* after so long, < 0: never */
    double send_s;                  /* so long its request takes to come */
    double handshake_s;             /* so long the server does not know of it yet */
    double asks_s;                  /* it asks so long after it has connected */
    int key;                        /* -1: none, -2: one that is none */
    uint32_t address;
    bool must_be_served;
    bool background; /* a speech that nobody waits for */
    bool whole;      /* no limit of frames */
};

/* Times, in the order in which they came. */
struct series {
    double *at;
    size_t n, room;
};
/* Of all, so many of a hundred are at most that; sorts them. */
double series_percentile(struct series *s, double of_hundred);

/* What all clients of a life have seen. */
struct clients_seen {
    uint64_t n_clients, n_asked;                             /* asked: speeches, whole requests */
    uint64_t n_whole, n_broken, n_refused, n_left, n_closed; /* of those */
    uint64_t n_speech_refused[600];                          /* by status */
    uint64_t n_good;                                         /* audible in time and without a gap */
    uint64_t n_with_gaps;
    double longest_bound_s;  /* of all that were told: the longest wait */
    struct series firsts_s;  /* first audible of each that was */
    struct series refused_s; /* until a refusal was there */
    double sound_s;
};
extern struct clients_seen seen;

/* `slowness`: seconds that the server may take for one of sound. */
void clients_begin(double patience_s, bool has_keys, double slowness);
/* What was seen until now is forgotten. */
void clients_forget(void);
/* A client comes. */
void client_new(const struct client_plan *plan);
int clients_count(void);
/* The server is about to stop, or has stopped: connections may be refused and closed. Those who have asked before are
 * told nevertheless, but where it ends at once. */
void clients_know_of_end(bool at_once);
void clients_end(void);

#endif
