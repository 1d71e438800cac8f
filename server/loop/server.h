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
#include "server/loop/conn/origin.h"
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
 * none of it waits, and what the idle worker says, which nobody waits for, behind that. */
enum { SERVER_SOUND, SERVER_OTHER, SERVER_IDLE, SERVER_PRIORITIES };

/* Where clients connect. */
enum { PORT_HTTP, PORT_WYOMING, SERVER_PORTS };

struct bufferevent;
struct conn;
struct speech;
struct link;
struct voices;
struct wyoming;
struct keys;
struct account;
struct port;

TAILQ_HEAD(speech_list, speech);

/* What speech/admission.c knows of the speeches so far. Times by the clock; 0: not so. */
struct admission {
    double seconds_a_byte; /* of sound, for a byte of text: a running mean */
    double speech_s;       /* length of a speech: a running mean */
    double crowded_since;  /* since when more have come than there is room for */
    double quiet_since;    /* since when there has been room */
};

/* What speeches of one voice have in common at their beginning: a worker that has read it once reads it faster. */
struct beginning {
    uint64_t hash, where;    /* where: a bit for each worker that has read it */
    double first_s, again_s; /* how long a prompt took where it was new, and where not: running means */
    uint32_t used;           /* the last speech that had it; 0: free */
};
enum { BEGINNINGS = 64 };

struct server {
    const struct serve_options *options;
    struct event_base *base;
    struct port *ports[SERVER_PORTS]; /* NULL: closed, or not wanted */
    struct event *tick, *signals[4];
    struct conn_list conns, could_go[WORTHS]; /* could_go: see conn_room.c */
    struct origins origins;
    int n_conns, most_conns, n_lingering; /* n_lingering: those in CONN_LINGER */
    size_t held_bytes, unsent_bytes;      /* of all clients */
    size_t filed_bytes;                   /* of whole answers, in files */
    int n_files, most_files;
    double spread;    /* of deadlines, 0 to 1 */
    double full_told; /* when it was logged that all connections are taken */
    uint64_t n_requests;
    char boot[9]; /* in request ids: differs from run to run */

    struct link *links; /* to the workers, each with the speeches that run on it */
    int n_links;
    struct wire_ready ready; /* what one of them said of the model; strings in ready_bytes */
    uint8_t *ready_bytes;
    bool was_ready; /* some worker has been */
    bool is_announced;
    bool is_resting;  /* there is none, because nobody asked for long; the next speech brings them */
    double worked_at; /* when there was something to do last */
    double tidied_at; /* when the heap's free pages were given back last */
    char model_id[128];

    struct speech_list queued;
    int n_queued, n_running; /* n_running: on all workers */
    struct {
        struct speech_list queued;
        int n_queued, n_running;
        double worked_at; /* when there was some last */
        /* On processors they have a worker of their own, which is none of `links`: the kernel takes the processor from
         * it as soon as another one has something to do. NULL: it has not been asked for. */
        struct link *link;
        /* How long that worker has stood still for listeners, less what it has run since; when that was reckoned last;
         * it has stood still long enough: until it has run as long, it runs. */
        double still_s, looked_at;
        double most_still_s; /* in a row, and a tick */
        bool is_due;
    } background; /* likewise, and apart: listeners do not count them */
    struct admission admission;
    struct beginning beginnings[BEGINNINGS];
    uint32_t next_id;

    struct jobs *jobs;
    struct voices *voices;
    const char *voice_folders[2]; /* that the worker reads, or NULL; of the voices */
    struct keys *keys;
    struct wyoming *wyoming;
    int n_wyoming;     /* its clients */
    json_t *voice_map; /* of --voice-map, or NULL */
    char *openapi;     /* what /openapi.json answers, or NULL: nobody has asked */
    struct metrics metrics;
    bool draining;
    double drain_until,
        open_until;   /* open_until: for those who were about to connect when it began to drain */
    bool is_stopping; /* its time is up: those who were left have been told */
    int exit_code;
};

/* Leaves the loop when a drain has nothing left to wait for. */
void server_check_drained(struct server *s);
/* Something that a client has sent is there, and nobody has looked at it yet. */
bool server_has_come(struct bufferevent *from);

#endif
