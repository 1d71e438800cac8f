/* SPDX-License-Identifier: Apache-2.0
 * A queue in a NATS server: a stream of JetStream whose messages are lines, each given to one worker of the consumer
 * `workers`. A worker that says nothing of a line for ACK_WAIT_S has died, and another gets it. libnats is loaded when
 * a queue is named so; where its header was not there, the program says that. */
#include "job/queue.h"

#if __has_include(<nats/nats.h>)

#include <nats/nats.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/library.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "job/queue_nats.h"

enum {
    ACK_WAIT_S = 20,
    MOST_CLAIMS = 1 << 16, /* of all workers together */
    FETCH_MS = 100,        /* for which an empty queue is asked */
    ASK_MS = 500,          /* for which anything else is, by a worker, at first */
    MOST_ASK_MS = 5000,    /* and behind answers that came too late for that */
    BACK_S = 2,            /* until the server has a line that is put back: others are being spoken */
};
static const double look_again_s = 1; /* for a server, or a stream, that is away */
static const double silent_for_s = 4; /* a server that does not answer is asked nothing */
static const double sure_for_s = 1;   /* that the stream is still the one that it was */

static bool load(struct nats_calls *calls)
{
    const struct library_call list[] = {NATS_CALLS(NATS_PLACE)};
    return library_load(NATS_LIBRARY, list, sizeof list / sizeof *list);
}

utter_status nats_fail(
    const struct nats_queue *q, utter_error *error, const char *what, natsStatus status)
{
    return error_set(
        error, UTTER_E_IO, "--queue: %s cannot %s: %s", q->name, what, q->n.StatusText(status));
}

/* It is made apart from who subscribes: one that a subscription makes goes with it, and takes the claims of others
 * along. */
natsStatus nats_make_consumer(struct nats_queue *q, jsErrCode *code)
{
    char subjects[NATS_SUBJECT];
    jsConsumerConfig config;
    snprintf(subjects, sizeof subjects, "%s.lines.*", q->name);
    q->n.ConsumerConfig_Init(&config);
    config.Durable = nats_consumer;
    config.AckPolicy = js_AckExplicit;
    config.AckWait = ACK_WAIT_S * INT64_C(1000000000);
    config.MaxDeliver = -1;
    config.MaxAckPending = MOST_CLAIMS;
    config.FilterSubject = subjects;
    return q->n.AddConsumer(NULL, q->js, q->name, &config, q->submits ? NULL : &q->brief, code);
}

utter_status nats_fail_consumer(const struct nats_queue *q, jsErrCode code, utter_error *error)
{
    return error_set(error, UTTER_E_IO,
        "--queue: the server lets nobody take lines of %s: JetStream's error %d (look at the limits of "
        "the stream %s)",
        q->name, (int)code, q->name);
}

/* A server that is away may come again; nothing is asked meanwhile, since asking waits and lanes are spoken. */
static bool is_there(const struct nats_queue *q)
{
    return q->n.Connection_Status(q->connection) == NATS_CONN_STATUS_CONNECTED;
}

static uint64_t count_reconnects(const struct nats_queue *q)
{
    natsStatistics *about = NULL;
    uint64_t n = 0;
    if (q->n.Statistics_Create(&about) == NATS_OK && q->n.GetStats(q->connection, about) == NATS_OK) {
        q->n.Statistics_GetCounts(about, NULL, NULL, NULL, NULL, &n);
    }
    q->n.Statistics_Destroy(about);
    return n;
}

/* A server that is far away, or slow, has longer to answer from then on. */
static void note_silence(struct nats_queue *q, natsStatus status)
{
    q->silent_s = status == NATS_TIMEOUT ? clock_seconds() : 0;
    if (status == NATS_TIMEOUT) {
        q->brief.Wait = min(2 * q->brief.Wait, MOST_ASK_MS);
    }
}

/* When the stream was made; 0: it is away. */
static int64_t ask_created(struct nats_queue *q)
{
    jsStreamInfo *stream = NULL;
    uint64_t reconnects =
        count_reconnects(q); /* before the answer: what breaks behind it is seen the next time */
    int64_t created = 0;
    natsStatus status = q->n.GetStreamInfo(&stream, q->js, q->name, &q->brief, NULL);
    if (status == NATS_OK) {
        created = stream->Created;
        q->reconnects = reconnects;
        q->sure_s = clock_seconds();
    }
    note_silence(q, status);
    q->n.StreamInfo_Destroy(stream);
    return created;
}

/* Connected, but nobody answers: a cluster without a leader. Each claim would wait for an answer by itself. */
static bool is_silent(const struct nats_queue *q)
{
    return q->silent_s > 0 && clock_seconds() - q->silent_s < silent_for_s;
}

static void drop_subscription(struct nats_queue *q)
{
    q->n.Subscription_Destroy(q->lines);
    q->lines = NULL;
    q->looked_s = clock_seconds();
}

/* Whether the stream is the one that it was; claims of one that is gone are nobody's. It is lost with its server, and
 * looked at again behind each break of the connection; who takes it away on a server that stays has a second in which
 * that is not seen. */
static bool is_same_stream(struct nats_queue *q)
{
    if (count_reconnects(q) == q->reconnects && clock_seconds() - q->sure_s < sure_for_s) {
        return true;
    }
    int64_t created = is_silent(q) ? 0 : ask_created(q);
    if (created != 0 && created != q->created) {
        if (q->lines) {
            drop_subscription(q);
        }
        q->created = created;
        q->n_streams++;
        return false;
    }
    return created != 0;
}

/* A server ends a claim by its line's number, and a stream that was lost and made again gives its lines the same ones:
 * what is said of an old claim must not end a new line. */
static bool is_current(struct nats_queue *q, const struct claim *claim)
{
    return is_there(q) && is_same_stream(q) && claim->record == q->n_streams;
}

/* UTTER_AGAIN: the stream is away, or no stream yet. */
static utter_status subscribe(struct nats_queue *q, utter_error *error)
{
    char subjects[NATS_SUBJECT];
    jsSubOptions options;
    if (q->lines || (q->looked_s > 0 && clock_seconds() - q->looked_s < look_again_s)) {
        return q->lines ? UTTER_OK : UTTER_AGAIN;
    }
    q->looked_s = clock_seconds();
    jsErrCode code = 0;
    natsStatus status = nats_make_consumer(q, &code);
    note_silence(q, status);
    if (status == NATS_OK) {
        snprintf(subjects, sizeof subjects, "%s.lines.*", q->name);
        q->n.SubOptions_Init(&options);
        options.Stream = q->name;
        options.Consumer = nats_consumer;
        options.ManualAck = true;
        status = q->n.PullSubscribe(&q->lines, q->js, subjects, nats_consumer, NULL, &options, &code);
    }
    if (code && code != JSStreamNotFoundErr && code != JSClusterNotAvailErr) {
        return nats_fail_consumer(q, code, error);
    }
    return status == NATS_OK ? UTTER_OK : UTTER_AGAIN;
}

/* An empty queue and one that is gone say the same; who works for it is asked for now and then. */
static void look_for_stream(struct nats_queue *q)
{
    jsConsumerInfo *workers = NULL;
    if (clock_seconds() - q->looked_s < look_again_s) {
        return;
    }
    q->looked_s = clock_seconds();
    natsStatus status = q->n.GetConsumerInfo(&workers, q->js, q->name, nats_consumer, &q->brief, NULL);
    note_silence(q, status);
    if (status != NATS_OK) {
        drop_subscription(q);
    }
    q->n.ConsumerInfo_Destroy(workers);
}

/* 0 where the message says nothing of it, or no small number: others may write into a queue too. */
static int header_number(const struct nats_queue *q, natsMsg *message, const char *name)
{
    const char *text = NULL;
    long number = 0;
    if (q->n.Header_Get(message, name, &text) == NATS_OK && text) {
        number = strtol(text, NULL, 10);
    }
    return number < 0 || number > UINT8_MAX ? 0 : (int)number;
}

static utter_status take_message(struct nats_queue *q, natsMsg *message, struct claim *claim)
{
    jsMsgMetaData *about = NULL;
    const char *wire = q->n.Msg_GetData(message);
    size_t bytes = (size_t)q->n.Msg_GetDataLength(message);
    const char *key = queue_line_key(wire, bytes);
    if (!key) {
        q->n.Msg_Ack(message, NULL); /* none of ours: it would come again for ever */
        q->n.Msg_Destroy(message);
        return UTTER_AGAIN;
    }
    *claim = (struct claim){.wire = wire, .bytes = bytes, .place = message, .record = q->n_streams};
    memcpy(claim->key, key, IDENTITY_SIZE - 1);
    claim->tries = header_number(q, message, nats_tries);
    claim->deaths = header_number(q, message, nats_deaths);
    if (q->n.Msg_GetMetaData(&about, message) == NATS_OK) {
        claim->deaths += (int)min(about->NumDelivered, UINT8_MAX) - 1; /* who had it has said no more */
        q->n.MetaData_Destroy(about);
    }
    return UTTER_OK;
}

static utter_status nats_claim(struct queue *queue, struct claim *claim, utter_error *error)
{
    struct nats_queue *q = nats_of(queue);
    natsMsgList list = {0};
    jsFetchRequest request;
    utter_status ready = UTTER_AGAIN;
    if (is_there(q)) {
        is_same_stream(q); /* what is asked for from now on comes out of this one, or a later one */
        ready = is_silent(q) ? UTTER_AGAIN : subscribe(q, error);
    }
    if (ready) {
        return ready;
    }
    q->n.FetchRequest_Init(&request);
    request.Batch = 1;
    request.NoWait = true;
    request.Expires = FETCH_MS * INT64_C(1000000);
    natsStatus status = q->n.FetchRequest(&list, q->lines, &request);
    if (status != NATS_OK) {
        look_for_stream(q);
        return UTTER_AGAIN;
    }
    natsMsg *message = list.Count > 0 ? list.Msgs[0] : NULL;
    if (message) {
        list.Msgs[0] = NULL;
    }
    q->n.MsgList_Destroy(&list);
    return message ? take_message(q, message, claim) : UTTER_AGAIN;
}

/* What cannot be told now, because the server is away, it asks for again by giving out the line a second time; a line
 * of a stream that was lost went in again with its submission. */
static utter_status end_claim(struct nats_queue *q, struct claim *claim)
{
    q->n.Msg_Destroy(claim->place);
    *claim = (struct claim){0};
    return UTTER_OK;
}

static utter_status nats_extend(struct queue *queue, struct claim *claim, utter_error *error)
{
    (void)error;
    if (is_current(nats_of(queue), claim)) {
        nats_of(queue)->n.Msg_InProgress(claim->place, NULL);
    }
    return UTTER_OK;
}

static utter_status nats_done(struct queue *queue, struct claim *claim, bool failed, utter_error *error)
{
    (void)failed, (void)error;
    if (is_current(nats_of(queue), claim)) {
        nats_of(queue)->n.Msg_Ack(claim->place, NULL);
    }
    return end_claim(nats_of(queue), claim);
}

/* A line that is put back is another message, which knows how many tries have failed; the server would count a worker
 * that gave it back as one that died. */
static utter_status nats_back(struct queue *queue, struct claim *claim, bool failed, utter_error *error)
{
    struct nats_queue *q = nats_of(queue);
    claim->tries += failed;
    if (!is_current(q, claim)) {
        return end_claim(q, claim);
    }
    utter_status status = nats_publish(q, q->n.Msg_GetSubject(claim->place), NULL, claim, error);
    status = status ? status : nats_flush_within(q, BACK_S, error);
    if (status == UTTER_OK) {
        q->n.Msg_Ack(claim->place, NULL);
    } else {
        q->n.Msg_Nak(claim->place, NULL);
    }
    return end_claim(q, claim);
}

static utter_status nats_count(struct queue *queue, struct queue_counts *counts, utter_error *error)
{
    struct nats_queue *q = nats_of(queue);
    jsStreamInfo *stream = NULL;
    jsConsumerInfo *workers = NULL;
    jsErrCode code = 0;
    *counts = (struct queue_counts){0};
    natsStatus status = is_there(q) ? q->n.GetStreamInfo(&stream, q->js, q->name, NULL, &code)
                                    : NATS_CONNECTION_DISCONNECTED;
    if (code == JSStreamNotFoundErr) {
        return UTTER_OK;
    }
    if (status != NATS_OK) {
        nats_fail(q, error, "be asked", status);
        return UTTER_AGAIN;
    }
    counts->waiting = stream->State.Msgs;
    q->n.StreamInfo_Destroy(stream);
    if (q->n.GetConsumerInfo(&workers, q->js, q->name, nats_consumer, NULL, NULL) == NATS_OK) {
        uint64_t claimed = (uint64_t)workers->NumAckPending;
        /* Those that were given back are among them until somebody takes them. */
        counts->claimed = claimed < counts->waiting ? claimed : counts->waiting;
        counts->waiting -= counts->claimed;
        q->n.ConsumerInfo_Destroy(workers);
    }
    return UTTER_OK;
}

/* ---- Life ---- */

static void nats_close(struct queue *queue)
{
    enum { FLUSH_MS = 2000 };
    struct nats_queue *q = nats_of(queue);
    q->n.Subscription_Destroy(q->lines);
    if (q->connection) {
        q->n.FlushTimeout(q->connection, FLUSH_MS); /* what was acknowledged gets there */
    }
    q->n.Ctx_Destroy(q->js);
    q->n.Connection_Destroy(q->connection);
    q->n.Close();
    pthread_mutex_destroy(&q->lock);
    memory_free(q);
}

/* nats://[USER:PASSWORD@]HOST[:PORT][/NAME]: the address without its name, and the name. */
static utter_status split(
    struct nats_queue *q, char *server, size_t size, const char *url, utter_error *error)
{
    const char *host = strstr(url, "://") + 3, *slash = strchr(host, '/');
    int n = snprintf(server, size, "%.*s", slash ? (int)(slash - url) : (int)strlen(url), url);
    const char *name = slash && slash[1] ? slash + 1 : "utter";
    bool good = strlen(name) < sizeof q->name &&
                strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") ==
                    strlen(name);
    snprintf(q->name, sizeof q->name, "%s", good ? name : "");
    return good && n < (int)size && host[0] && host != slash
               ? UTTER_OK
               : error_set(error, UTTER_E_ARGUMENT,
                     "--queue: is not nats://HOST[:PORT][/NAME], whose NAME has letters, digits, - and "
                     "_");
}

static utter_status connect_to(struct nats_queue *q, const char *server, utter_error *error)
{
    enum { CONNECT_MS = 5000 };
    const char *at = strrchr(server, '@'), *shown = at ? at + 1 : server; /* without a password */
    natsOptions *options = NULL;
    jsOptions js;
    const char *credentials = getenv("NATS_CREDS");
    natsStatus status = q->n.Options_Create(&options);
    status = status ? status : q->n.Options_SetURL(options, server);
    status = status ? status : q->n.Options_SetTimeout(options, CONNECT_MS);
    status = status ? status : q->n.Options_SetMaxReconnect(options, -1);
    status = status ? status : q->n.Options_SetName(options, "utter job");
    /* What workers say of claims does not wait for a server that may have lost them. */
    status = status || q->submits ? status : q->n.Options_SetReconnectBufSize(options, 1);
    if (status == NATS_OK && credentials && credentials[0]) {
        status = q->n.Options_SetCredentials(options, credentials, NULL);
    }
    status = status ? status : q->n.Connect(&q->connection, options);
    q->n.Options_Destroy(options);
    q->n.Options_Init(&q->brief);
    q->brief.Wait = ASK_MS;
    q->n.Options_Init(&js);
    js.PublishAsync.MaxPending = NATS_PENDING;
    js.PublishAsync.StallWait = NATS_PUBLISH_S * 1000;
    js.PublishAsync.ErrHandler = nats_on_publish_error;
    js.PublishAsync.ErrHandlerClosure = q;
    status = status ? status : q->n.JetStream(&q->js, q->connection, &js);
    return status == NATS_OK ? UTTER_OK
                             : error_set(error, UTTER_E_IO,
                                   "--queue %s: cannot be reached: %s (is a nats-server there?)", shown,
                                   q->n.StatusText(status));
}

static const struct queue_calls nats_queue_calls = {nats_begin, nats_put, nats_flush, nats_claim,
    nats_extend, nats_done, nats_back, nats_count, nats_close};

utter_status queue_nats_open(struct queue **queue, const char *url, bool make, utter_error *error)
{
    char server[1024];
    struct queue_counts counts;
    struct timespec now;
    struct nats_queue *q = memory_new(1, sizeof *q);
    if (!q) {
        return error_memory(error, "a queue");
    }
    if (!load(&q->n)) {
        memory_free(q);
        return error_set(error, UTTER_E_DEVICE,
            "--queue: %s is not here (apt-get install libnats%d.%d)", NATS_LIBRARY, NATS_VERSION_MAJOR,
            NATS_VERSION_MINOR);
    }
    q->base.calls = &nats_queue_calls;
    q->base.pause_s = 20 * FETCH_MS / 1000.0;
    pthread_mutex_init(&q->lock, NULL);
    clock_gettime(CLOCK_REALTIME, &now);
    q->generation = (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    q->submits = make;
    *queue = &q->base;
    utter_status status = split(q, server, sizeof server, url, error);
    status = status ? status : connect_to(q, server, error);
    status = status ? status : nats_count(*queue, &counts, error);
    if (status == UTTER_AGAIN) {
        status = error_set(error, UTTER_E_IO,
            "--queue: the server has no JetStream, or does not answer (nats-server --jetstream)");
    }
    if (status) {
        queue_close(queue);
    }
    return status;
}

#else

utter_status queue_nats_open(struct queue **queue, const char *url, bool make, utter_error *error)
{
    (void)queue, (void)url, (void)make;
    return error_set(error, UTTER_E_DEVICE,
        "--queue: this utter was built without NATS (with libnats-dev there, build it again; or name a "
        "folder)");
}

#endif
