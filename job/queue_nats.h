/* SPDX-License-Identifier: Apache-2.0
 * What the two files of a queue of NATS share: queue_nats.c takes lines out, queue_nats_put.c brings them in. */
#ifndef JOB_QUEUE_NATS_H
#define JOB_QUEUE_NATS_H

#include <pthread.h>

#include "job/nats_calls.h"
#include "job/queue.h"

enum {
    NATS_NAME = 64,
    NATS_SUBJECT = NATS_NAME + 64,
    NATS_PENDING = 4096, /* messages on their way to the server */
    NATS_PUBLISH_S = 60, /* until the server has answered for the last ones */
};
static const char nats_tries[] = "Utter-Tries", nats_deaths[] = "Utter-Deaths"; /* headers */
static const char nats_consumer[] = "workers";

struct nats_queue {
    struct queue base;
    struct nats_calls n;
    char name[NATS_NAME];
    natsConnection *connection;
    jsCtx *js;
    jsOptions brief;         /* for what a worker asks, whose lanes wait meanwhile */
    natsSubscription *lines; /* NULL: not yet, or the stream is away */
    double looked_s;
    int64_t created;     /* when the stream of `lines` was */
    size_t n_streams;    /* that there were so far: a claim knows by it which was its own */
    uint64_t reconnects; /* of the connection, when the stream was last looked at */
    double sure_s;       /* when that was */
    double silent_s;     /* since when the server does not answer; 0: it has answered */
    bool submits;
    /* Of a submission, and of lines that are put back. */
    char subject[NATS_SUBJECT];
    long long generation; /* a line that is submitted again is another message */
    pthread_mutex_t lock; /* of what the library's thread tells */
    char trouble[256];
};

static inline struct nats_queue *nats_of(struct queue *queue)
{
    return (struct nats_queue *)queue;
}

utter_status nats_fail(
    const struct nats_queue *q, utter_error *error, const char *what, natsStatus status);
/* Whose claims of lines are all workers'. */
natsStatus nats_make_consumer(struct nats_queue *q, jsErrCode *code);
utter_status nats_fail_consumer(const struct nats_queue *q, jsErrCode code, utter_error *error);

void nats_on_publish_error(jsCtx *js, jsPubAckErr *trouble, void *user);
/* `id`, by which the server knows a line that was sent twice; NULL for one that is put back. */
utter_status nats_publish(struct nats_queue *q, const char *subject, const char *id,
    const struct claim *line, utter_error *error);
/* Until the server has all lines, or so many seconds are over. */
utter_status nats_flush_within(struct nats_queue *q, int seconds, utter_error *error);

utter_status nats_begin(struct queue *queue, const char *name, utter_error *error);
utter_status nats_put(struct queue *queue, const char *key, const char *wire, utter_error *error);
utter_status nats_flush(struct queue *queue, utter_error *error);

#endif
