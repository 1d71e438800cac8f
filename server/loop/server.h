/* SPDX-License-Identifier: Apache-2.0
 * The front end as a whole: what its parts share. One thread; nothing here waits. */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include <event2/event.h>
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "base/clock.h"
#include "server/loop/metrics.h"
#include "server/loop/serve_options.h"
#include "server/protocol/wire.h"

enum {
    LIMIT_CONNECTIONS = 4096,
    LIMIT_JSON = 1 << 20,        /* body of a request */
    LIMIT_JSON_SOUND = 14 << 20, /* with a recording in it (10 MiB in base64) */
    LIMIT_VALUES = 10000,        /* in the JSON of a request or a message: about 2 MB of memory */
    LIMIT_UPLOAD = 10 << 20,     /* a recording */
    LIMIT_HELD = 128 << 20,      /* of all clients: what they have sent and is not done with */
    LIMIT_HELD_SMALL = 32 << 10, /* what one may hold even then */
    LIMIT_WS_MESSAGE = 1 << 20,
    LIMIT_WS_TEXT = 128 << 10,  /* one message of text */
    LIMIT_WS_SESSION = 1 << 20, /* text that waits in a session */
    LIMIT_BATCH = 32,
    LIMIT_VOICES = 1000,
    LIMIT_UNSENT = 192 << 10,     /* bytes for one client; 4 s of samples */
    LIMIT_UNSENT_ALL = 128 << 20, /* for all, with whole answers that are being put together */
    LIMIT_WHOLE = 8 << 20,        /* of such an answer, in memory: the rest goes to a file */
    LIMIT_WHOLE_SMALL = 1 << 20,  /* that may be there even when all memory is taken */
    LIMIT_FILES = 512,            /* of whole answers */
    HEAD_S = 5,
    BODY_S = 30,
    IDLE_S = 60,
    STALL_S = 20,
    SLOW_S = 30, /* and twice what was made: then who takes sound slowly has had time enough */
    WS_CONFIG_S = 10,
    WS_IDLE_S = 30,
    LINGER_S = 1,
    RETRY_MS = 1000,
};

/* Bytes of whole answers in files. */
static const size_t LIMIT_FILED = (size_t)8 << 30;

/* What the loop does first: sound for those who hear. Everything else (new connections, requests, deadlines) comes when
 * none of it waits. */
enum { SERVER_SOUND, SERVER_OTHER, SERVER_PRIORITIES };

struct conn;
struct speech;
struct link;
struct voices;
struct wyoming;
struct keys;
struct account;

TAILQ_HEAD(conn_list, conn);
TAILQ_HEAD(speech_list, speech);

/* What speech/admission.c knows of the speeches so far. Times by the clock; 0: not so. */
struct admission {
    double seconds_a_byte; /* of sound, for a byte of text: a running mean */
    double speech_s;       /* length of a speech: a running mean */
    double crowded_since;  /* since when more have come than there is room for */
    double quiet_since;    /* since when there has been room */
};

struct server {
    const struct serve_options *options;
    struct event_base *base;
    struct evconnlistener *listener;
    struct event *accept, *tick, *signals[4];
    struct conn_list conns;
    int n_conns, most_conns, n_lingering; /* n_lingering: those in CONN_LINGER */
    size_t held_bytes, unsent_bytes;      /* of all clients */
    size_t filed_bytes;                   /* of whole answers, in files */
    int n_files, most_files;
    double spread;    /* of deadlines, 0 to 1 */
    double full_told; /* when it was logged that all connections are taken */
    uint64_t n_requests;
    char boot[9]; /* in request ids: differs from run to run */

    struct link *link;       /* to the worker */
    struct wire_ready ready; /* what it said; strings in ready_bytes */
    uint8_t *ready_bytes;
    bool was_ready;    /* some worker has been */
    bool is_ready;     /* the worker is, now */
    bool is_resting;   /* there is none, because nobody asked for long; the next speech brings one */
    double worked_at;  /* when there was something to do last */
    bool is_waking;    /* that one opens the model: what waits for it is not late yet */
    char kernels[352]; /* that make the frames now; a GPU may go on with others after a fault */
    char model_id[128];

    struct speech_list queued;
    struct speech_list running; /* also those that were cancelled, until their lane is free */
    int n_queued, n_running;
    int capacity; /* speeches that the worker can make as fast as they are heard; 0: not known */
    struct admission admission;
    uint32_t next_id;

    struct jobs *jobs;
    struct voices *voices;
    struct keys *keys;
    struct wyoming *wyoming;
    int n_wyoming;     /* its clients */
    json_t *voice_map; /* of --voice-map, or NULL */
    struct metrics metrics;
    bool draining;
    double drain_until;
    int exit_code;
};

/* Leaves the loop when a drain has nothing left to wait for. */
void server_check_drained(struct server *s);

#endif
