/* SPDX-License-Identifier: Apache-2.0
 * libnats, for tests of a queue that uses it: it writes down what it is asked for, says what a test has it say, and
 * counts what it has given out. */
#ifndef TESTS_JOB_POSED_NATS_H
#define TESTS_JOB_POSED_NATS_H

#include "tests/support.h"

#include <stdio.h>
#include <string.h>

#include "base/library.h"
#include "job/queue_nats.h"

static struct {
    char said[2048];   /* what was asked for, in its order */
    const char *fails; /* the words of what does so */
    natsStatus how;
    jsErrCode code;
    natsConnStatus connection;
    int64_t created; /* the stream */
    uint64_t messages, reconnects;
    int64_t unacknowledged;
    /* The message that waits; NULL: none. */
    const char *wire, *tries, *deaths;
    uint64_t n_delivered; /* 0: it does not say */
    int n_alive;          /* things of the library that were made, less those that were destroyed */
} posed;

static struct queue *queue; /* that uses it */
static char thing;          /* whatever the library makes */

static natsStatus say(const char *format, ...)
{
    char text[256], word[16];
    size_t n = strlen(posed.said);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    snprintf(posed.said + n, sizeof posed.said - n, "%s%s", n ? "; " : "", text);
    snprintf(word, sizeof word, "%.*s", (int)strcspn(text, " "), text);
    return posed.fails && strstr(posed.fails, word) ? posed.how : NATS_OK;
}

static void assert_said(const char *wanted)
{
    assert_string_equal(posed.said, wanted);
    posed.said[0] = 0;
}

/* A thing for *place, where all is well. */
static natsStatus make(void *place, natsStatus status)
{
    const void *made = status == NATS_OK ? &thing : NULL;
    memcpy(place, &made, sizeof made);
    posed.n_alive += made != NULL;
    return status;
}

/* NAME(thing), which takes one back; what nobody needs to hear of says nothing. */
#define TAKES_BACK(name, type, says)                                                                   \
    static void name(type *taken)                                                                      \
    {                                                                                                  \
        if (taken && (says)) {                                                                         \
            say(#name);                                                                                \
        }                                                                                              \
        posed.n_alive -= taken != NULL;                                                                \
    }

TAKES_BACK(options_destroy, natsOptions, false)
TAKES_BACK(statistics_destroy, natsStatistics, false)
TAKES_BACK(unsubscribe, natsSubscription, true)
TAKES_BACK(leave_jetstream, jsCtx, true)
TAKES_BACK(disconnect, natsConnection, true)
TAKES_BACK(forget, natsMsg, true)
TAKES_BACK(metadata_destroy, jsMsgMetaData, false)
TAKES_BACK(stream_destroy, jsStreamInfo, false)
TAKES_BACK(consumer_destroy, jsConsumerInfo, false)

#define CLEARS(name, type)                                                                             \
    static natsStatus name(type *object)                                                               \
    {                                                                                                  \
        memset(object, 0, sizeof *object);                                                             \
        return NATS_OK;                                                                                \
    }

CLEARS(clear_options, jsOptions)
CLEARS(clear_publishing, jsPubOptions)
CLEARS(clear_consumer, jsConsumerConfig)
CLEARS(clear_subscription, jsSubOptions)
CLEARS(clear_request, jsFetchRequest)

static const char *status_text(natsStatus status)
{
    return status == NATS_TIMEOUT ? "Timeout" : "Trouble";
}

static void end_library(void)
{
    say("end");
}

static natsStatus options_create(natsOptions **options)
{
    return make(options, say("options"));
}

static natsStatus set_url(natsOptions *options, const char *url)
{
    assert_ptr_equal(options, &thing);
    return say("url %s", url);
}

static natsStatus set_timeout(natsOptions *options, int64_t ms)
{
    assert_ptr_equal(options, &thing);
    return say("within %lld", (long long)ms);
}

static natsStatus set_reconnect(natsOptions *options, int most)
{
    assert_ptr_equal(options, &thing);
    return say("again %d", most);
}

static natsStatus set_name(natsOptions *options, const char *name)
{
    assert_ptr_equal(options, &thing);
    return say("as %s", name);
}

static natsStatus set_credentials(natsOptions *options, const char *file, const char *seed)
{
    assert_ptr_equal(options, &thing);
    return say("credentials %s%s", file, seed ? seed : "");
}

static natsStatus set_buffer(natsOptions *options, int bytes)
{
    assert_ptr_equal(options, &thing);
    return say("buffer %d", bytes);
}

static natsStatus connect_to(natsConnection **connection, natsOptions *options)
{
    assert_ptr_equal(options, &thing);
    return make(connection, say("connect"));
}

static natsConnStatus connection_status(natsConnection *connection)
{
    assert_ptr_equal(connection, &thing);
    return posed.connection;
}

static natsStatus statistics_create(natsStatistics **statistics)
{
    return make(statistics, NATS_OK);
}

static natsStatus get_statistics(natsConnection *connection, natsStatistics *statistics)
{
    assert_ptr_equal(connection, &thing);
    assert_ptr_equal(statistics, &thing);
    return NATS_OK;
}

static natsStatus get_counts(const natsStatistics *statistics, uint64_t *in, uint64_t *in_bytes,
    uint64_t *out, uint64_t *out_bytes, uint64_t *reconnects)
{
    assert_ptr_equal(statistics, &thing);
    assert_true(!in && !in_bytes && !out && !out_bytes);
    *reconnects = posed.reconnects;
    return NATS_OK;
}

static natsStatus flush_within(natsConnection *connection, int64_t ms)
{
    assert_ptr_equal(connection, &thing);
    return say("flush within %lld", (long long)ms);
}

static natsStatus jetstream(jsCtx **js, natsConnection *connection, jsOptions *options)
{
    assert_ptr_equal(connection, &thing);
    assert_ptr_equal(options->PublishAsync.ErrHandler, nats_on_publish_error);
    assert_ptr_equal(options->PublishAsync.ErrHandlerClosure, queue);
    return make(js, say("jetstream %lld %lld", (long long)options->PublishAsync.MaxPending,
                        (long long)options->PublishAsync.StallWait));
}

/* How long an answer may take; 0: as long as is usual. */
static long long wait_of(const jsOptions *options)
{
    return options ? (long long)options->Wait : 0;
}

static natsStatus look_at_stream(
    jsStreamInfo **info, jsCtx *js, const char *stream, jsOptions *options, jsErrCode *code)
{
    static jsStreamInfo is;
    assert_ptr_equal(js, &thing);
    natsStatus status = say("stream %s %lld", stream, wait_of(options));
    is.Created = posed.created;
    is.State.Msgs = posed.messages;
    if (code && status != NATS_OK) {
        *code = posed.code;
    }
    *info = status == NATS_OK ? &is : NULL;
    posed.n_alive += *info != NULL;
    return status;
}

static natsStatus look_at_consumer(jsConsumerInfo **info, jsCtx *js, const char *stream,
    const char *consumer, jsOptions *options, jsErrCode *code)
{
    static jsConsumerInfo is;
    assert_ptr_equal(js, &thing);
    assert_null(code);
    natsStatus status = say("consumer %s %s %lld", stream, consumer, wait_of(options));
    is.NumAckPending = posed.unacknowledged;
    *info = status == NATS_OK ? &is : NULL;
    posed.n_alive += *info != NULL;
    return status;
}

static natsStatus add_consumer(jsConsumerInfo **info, jsCtx *js, const char *stream,
    jsConsumerConfig *config, jsOptions *options, jsErrCode *code)
{
    assert_ptr_equal(js, &thing);
    assert_null(info);
    assert_string_equal(config->FilterSubject, "books.lines.*");
    assert_int_equal(config->AckPolicy, js_AckExplicit);
    assert_int_equal(config->MaxDeliver, -1);
    natsStatus status = say("make %s %s %lld ns %lld %lld", stream, config->Durable,
        (long long)config->AckWait, (long long)config->MaxAckPending, wait_of(options));
    if (status != NATS_OK) {
        *code = posed.code;
    }
    return status;
}

static natsStatus subscribe(natsSubscription **lines, jsCtx *js, const char *subject,
    const char *durable, jsOptions *options, jsSubOptions *how, jsErrCode *code)
{
    assert_ptr_equal(js, &thing);
    assert_null(options);
    natsStatus status = say("subscribe %s %s %s %s%s", subject, durable, how->Stream, how->Consumer,
        how->ManualAck ? "" : " at once");
    if (status != NATS_OK) {
        *code = posed.code;
    }
    return make(lines, status);
}

static natsStatus fetch(natsMsgList *list, natsSubscription *lines, jsFetchRequest *request)
{
    assert_ptr_equal(lines, &thing);
    natsStatus status = say("fetch %d %s %lld ns", request->Batch, request->NoWait ? "now" : "later",
        (long long)request->Expires);
    if (status == NATS_OK) {
        static natsMsg *messages[1];
        *list = (natsMsgList){messages, posed.wire != NULL};
        make(&messages[0], posed.wire ? NATS_OK : NATS_NOT_FOUND);
        posed.n_alive++; /* the list */
    }
    return status;
}

static void list_destroy(natsMsgList *list)
{
    forget(list->Msgs[0]);
    posed.n_alive--;
}

static const char *message_data(const natsMsg *message)
{
    assert_ptr_equal(message, &thing);
    return posed.wire;
}

static int message_bytes(const natsMsg *message)
{
    assert_ptr_equal(message, &thing);
    return (int)strlen(posed.wire);
}

static const char *message_subject(const natsMsg *message)
{
    assert_ptr_equal(message, &thing);
    return "books.lines.some";
}

static natsStatus get_header(natsMsg *message, const char *name, const char **value)
{
    assert_ptr_equal(message, &thing);
    *value = strcmp(name, "Utter-Tries") == 0    ? posed.tries
             : strcmp(name, "Utter-Deaths") == 0 ? posed.deaths
                                                 : NULL;
    return *value ? NATS_OK : NATS_NOT_FOUND;
}

static natsStatus get_metadata(jsMsgMetaData **about, natsMsg *message)
{
    static jsMsgMetaData is;
    assert_ptr_equal(message, &thing);
    is.NumDelivered = posed.n_delivered;
    *about = posed.n_delivered ? &is : NULL;
    posed.n_alive += *about != NULL;
    return *about ? NATS_OK : NATS_ERR;
}

static natsStatus acknowledge(natsMsg *message, jsOptions *options)
{
    assert_true(message == (natsMsg *)&thing && !options);
    return say("done");
}

static natsStatus refuse(natsMsg *message, jsOptions *options)
{
    assert_true(message == (natsMsg *)&thing && !options);
    return say("not done");
}

static natsStatus in_progress(natsMsg *message, jsOptions *options)
{
    assert_true(message == (natsMsg *)&thing && !options);
    return say("at work");
}

static natsStatus message_create(
    natsMsg **message, const char *subject, const char *reply, const char *data, int bytes)
{
    assert_null(reply);
    return make(message, say("message %s %.*s", subject, bytes, data));
}

static natsStatus set_header(natsMsg *message, const char *name, const char *value)
{
    assert_ptr_equal(message, &thing);
    return say("%s %s", name, value);
}

static natsStatus publish(jsCtx *js, natsMsg **message, jsPubOptions *options)
{
    assert_ptr_equal(js, &thing);
    natsStatus status = say("publish %s", options->MsgId ? options->MsgId : "anew");
    if (status == NATS_OK) { /* it is the server's */
        *message = NULL;
        posed.n_alive--;
    }
    return status;
}

static natsStatus all_published(jsCtx *js, jsPubOptions *options)
{
    assert_ptr_equal(js, &thing);
    return say("all within %lld", (long long)options->MaxWait);
}

static const struct nats_calls nats = {.StatusText = status_text,
    .Close = end_library,
    .Options_Create = options_create,
    .Options_Destroy = options_destroy,
    .Options_SetURL = set_url,
    .Options_SetTimeout = set_timeout,
    .Options_SetMaxReconnect = set_reconnect,
    .Options_SetName = set_name,
    .Options_SetCredentials = set_credentials,
    .Options_SetReconnectBufSize = set_buffer,
    .Connect = connect_to,
    .Connection_Status = connection_status,
    .GetStats = get_statistics,
    .Statistics_Create = statistics_create,
    .Statistics_GetCounts = get_counts,
    .Statistics_Destroy = statistics_destroy,
    .FlushTimeout = flush_within,
    .Connection_Destroy = disconnect,
    .JetStream = jetstream,
    .Ctx_Destroy = leave_jetstream,
    .Options_Init = clear_options,
    .GetStreamInfo = look_at_stream,
    .StreamInfo_Destroy = stream_destroy,
    .GetConsumerInfo = look_at_consumer,
    .ConsumerInfo_Destroy = consumer_destroy,
    .PubOptions_Init = clear_publishing,
    .PublishMsgAsync = publish,
    .PublishAsyncComplete = all_published,
    .ConsumerConfig_Init = clear_consumer,
    .AddConsumer = add_consumer,
    .SubOptions_Init = clear_subscription,
    .PullSubscribe = subscribe,
    .Subscription_Destroy = unsubscribe,
    .FetchRequest_Init = clear_request,
    .FetchRequest = fetch,
    .MsgList_Destroy = list_destroy,
    .Msg_Create = message_create,
    .Msg_Destroy = forget,
    .Msg_GetData = message_data,
    .Msg_GetDataLength = message_bytes,
    .Msg_GetSubject = message_subject,
    .Header_Set = set_header,
    .Header_Get = get_header,
    .Msg_GetMetaData = get_metadata,
    .MetaData_Destroy = metadata_destroy,
    .Msg_Ack = acknowledge,
    .Msg_Nak = refuse,
    .Msg_InProgress = in_progress};

static bool is_here;

/* In place of the program's. */
bool library_load(const char *file, const struct library_call *calls, size_t n)
{
    assert_string_equal(file, NATS_LIBRARY);
    assert_int_equal(n * sizeof calls->place, sizeof nats);
    memcpy(calls[0].place, &nats, sizeof nats); /* the places are those of a table like it */
    return is_here;
}

#endif
