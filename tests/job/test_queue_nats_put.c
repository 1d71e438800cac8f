/* SPDX-License-Identifier: Apache-2.0
 * What a submission asks of a NATS server, which a table of calls poses: how the stream is made, what of an earlier
 * submission goes, how lines are published, and that none is lost in silence. */
#include "tests/support.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "job/queue.h"
#if __has_include(<nats/nats.h>)
#include "job/queue_nats.h"

/* ---- The server ---- */

static struct {
    char calls[1024]; /* their names, in their order */
    natsStatus stream, last, purge, drop, consumer, message, header, publish, complete;
    jsErrCode stream_code, last_code, drop_code, consumer_code;
    /* What waits in the stream, and what the consumer knows of: of this many looks, then of all. */
    uint64_t messages, pending;
    int64_t unacknowledged;
    int stranded_looks;
    /* What was asked for. */
    jsStreamConfig config;
    char subjects[NATS_SUBJECT], purged[NATS_SUBJECT], asked[NATS_SUBJECT];
    char published[1024], tries[16], deaths[16], id[160], subject[NATS_SUBJECT];
    int64_t wait_ms, wait_all_ms;
    int n_alive; /* messages and answers that were made, less those that were destroyed */
    struct nats_queue *complains; /* whose line is not taken, once it is asked whether all are */
    jsPubAckErr complaint;
} posed;

static struct nats_queue queue;
static char a_message, a_stream_of[1];

static void called(const char *name)
{
    size_t n = strlen(posed.calls);
    snprintf(posed.calls + n, sizeof posed.calls - n, "%s%s", n ? " " : "", name);
}

static const char *status_text(natsStatus status)
{
    return status == NATS_TIMEOUT ? "Timeout" : "Trouble";
}

static natsStatus init_config(jsStreamConfig *config)
{
    memset(config, 0, sizeof *config);
    return NATS_OK;
}

static natsStatus add_stream(
    jsStreamInfo **info, jsCtx *js, jsStreamConfig *config, jsOptions *options, jsErrCode *code)
{
    (void)js, (void)options;
    called("stream");
    assert_null(info);
    posed.config = *config;
    assert_int_equal(config->SubjectsLen, 1);
    snprintf(posed.subjects, sizeof posed.subjects, "%s", config->Subjects[0]);
    *code = posed.stream_code;
    return posed.stream;
}

static natsStatus last_message(natsMsg **message, jsCtx *js, const char *stream, const char *subject,
    jsOptions *options, jsErrCode *code)
{
    (void)js, (void)options;
    called("last");
    assert_string_equal(stream, "books");
    snprintf(posed.asked, sizeof posed.asked, "%s", subject);
    *code = posed.last_code;
    *message = posed.last == NATS_OK ? (natsMsg *)&a_message : NULL;
    posed.n_alive += *message != NULL;
    return posed.last;
}

static void destroy_message(natsMsg *message)
{
    assert_true(!message || message == (natsMsg *)&a_message);
    posed.n_alive -= message != NULL;
}

static natsStatus init_options(jsOptions *options)
{
    memset(options, 0, sizeof *options);
    return NATS_OK;
}

static natsStatus purge(jsCtx *js, const char *stream, jsOptions *options, jsErrCode *code)
{
    (void)js, (void)code;
    called("purge");
    assert_string_equal(stream, "books");
    snprintf(posed.purged, sizeof posed.purged, "%s", options->Stream.Purge.Subject);
    return posed.purge;
}

static natsStatus look_at_consumer(jsConsumerInfo **info, jsCtx *js, const char *stream,
    const char *consumer, jsOptions *options, jsErrCode *code)
{
    static jsConsumerInfo is;
    (void)js, (void)options, (void)code;
    assert_string_equal(stream, "books");
    assert_string_equal(consumer, "workers");
    is.NumPending = posed.pending;
    is.NumAckPending = posed.unacknowledged;
    *info = &is;
    posed.n_alive++;
    return NATS_OK;
}

static void destroy_consumer(jsConsumerInfo *info)
{
    posed.n_alive -= info != NULL;
}

static natsStatus look_at_stream(
    jsStreamInfo **info, jsCtx *js, const char *stream, jsOptions *options, jsErrCode *code)
{
    static jsStreamInfo is;
    (void)js, (void)options, (void)code;
    assert_string_equal(stream, "books");
    called("look");
    is.State.Msgs = posed.stranded_looks-- > 0 ? posed.messages : 0;
    *info = &is;
    posed.n_alive++;
    return NATS_OK;
}

static void destroy_stream(jsStreamInfo *info)
{
    posed.n_alive -= info != NULL;
}

static natsStatus delete_consumer(
    jsCtx *js, const char *stream, const char *consumer, jsOptions *options, jsErrCode *code)
{
    (void)js, (void)options;
    called("drop");
    assert_string_equal(stream, "books");
    assert_string_equal(consumer, "workers");
    *code = posed.drop_code;
    return posed.drop;
}

static natsStatus init_consumer(jsConsumerConfig *config)
{
    memset(config, 0, sizeof *config);
    return NATS_OK;
}

static natsStatus add_consumer(jsConsumerInfo **info, jsCtx *js, const char *stream,
    jsConsumerConfig *config, jsOptions *options, jsErrCode *code)
{
    (void)js, (void)options;
    called("consumer");
    assert_null(info);
    assert_string_equal(stream, "books");
    assert_string_equal(config->Durable, "workers");
    assert_string_equal(config->FilterSubject, "books.lines.*");
    assert_int_equal(config->AckPolicy, js_AckExplicit);
    assert_int_equal(config->MaxDeliver, -1);
    *code = posed.consumer_code;
    return posed.consumer;
}

static natsStatus init_publishing(jsPubOptions *options)
{
    memset(options, 0, sizeof *options);
    return NATS_OK;
}

static natsStatus make_message(
    natsMsg **message, const char *subject, const char *reply, const char *data, int bytes)
{
    assert_null(reply);
    snprintf(posed.subject, sizeof posed.subject, "%s", subject);
    snprintf(posed.published, sizeof posed.published, "%.*s", bytes, data);
    *message = posed.message == NATS_OK ? (natsMsg *)&a_message : NULL;
    posed.n_alive += *message != NULL;
    return posed.message;
}

static natsStatus set_header(natsMsg *message, const char *key, const char *value)
{
    assert_ptr_equal(message, &a_message);
    char *to = strcmp(key, "Utter-Tries") == 0 ? posed.tries : posed.deaths;
    assert_true(to == posed.tries || strcmp(key, "Utter-Deaths") == 0);
    snprintf(to, sizeof posed.tries, "%s", value);
    return posed.header;
}

static natsStatus publish(jsCtx *js, natsMsg **message, jsPubOptions *options)
{
    assert_ptr_equal(js, a_stream_of);
    called("publish");
    snprintf(posed.id, sizeof posed.id, "%s", options->MsgId ? options->MsgId : "none");
    posed.wait_ms = options->MaxWait;
    if (posed.publish == NATS_OK) { /* it is the server's */
        destroy_message(*message);
        *message = NULL;
    }
    return posed.publish;
}

static natsStatus complete(jsCtx *js, jsPubOptions *options)
{
    (void)js;
    called("complete");
    posed.wait_all_ms = options->MaxWait;
    if (posed.complains) {
        nats_on_publish_error((jsCtx *)a_stream_of, &posed.complaint, posed.complains);
    }
    return posed.complete;
}

/* In place of the system's: nobody waits here between two looks. */
int nanosleep(const struct timespec *pause, struct timespec *rest)
{
    (void)rest;
    assert_true(pause->tv_sec == 0 && pause->tv_nsec == 50000000);
    called("pause");
    return 0;
}

static utter_error why;

static int begin_test(void **state)
{
    (void)state;
    memset(&posed, 0, sizeof posed);
    memset(&why, 0, sizeof why);
    queue = (struct nats_queue){.name = "books",
        .js = (jsCtx *)a_stream_of,
        .submits = true,
        .generation = 0xabc,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .n = {.StatusText = status_text,
            .StreamConfig_Init = init_config,
            .AddStream = add_stream,
            .GetLastMsg = last_message,
            .Msg_Destroy = destroy_message,
            .Options_Init = init_options,
            .PurgeStream = purge,
            .GetConsumerInfo = look_at_consumer,
            .ConsumerInfo_Destroy = destroy_consumer,
            .GetStreamInfo = look_at_stream,
            .StreamInfo_Destroy = destroy_stream,
            .DeleteConsumer = delete_consumer,
            .ConsumerConfig_Init = init_consumer,
            .AddConsumer = add_consumer,
            .PubOptions_Init = init_publishing,
            .Msg_Create = make_message,
            .Header_Set = set_header,
            .PublishMsgAsync = publish,
            .PublishAsyncComplete = complete}};
    return 0;
}

static int end_test(void **state)
{
    (void)state;
    assert_int_equal(posed.n_alive, 0); /* nothing of the library's is left */
    return 0;
}

/* ---- A submission begins ---- */

static void a_submission_begins(void **state)
{
    (void)state;
    static const struct {
        const char *calls;
        natsStatus stream, last, purge, drop, consumer;
        jsErrCode stream_code, last_code, drop_code, consumer_code;
        int stranded_looks;
        const char *why; /* NULL: it has begun */
    } rows[] = {
        /* Nothing was there: whoever works makes the consumer. */
        {"stream last", .last = NATS_NOT_FOUND, .last_code = JSNoMessageFoundErr},
        {"stream last", .stream = NATS_ERR, .stream_code = JSStreamNameExistErr, .last = NATS_NOT_FOUND,
            .last_code = JSNoMessageFoundErr},
        {"stream", .stream = NATS_ERR, .stream_code = JSInsufficientResourcesErr,
            .why = "--queue: books cannot be made: Trouble"},
        /* What was goes; a consumer that still knows of all lines stays. */
        {"stream last purge look consumer", .stranded_looks = 0},
        {"stream last purge look pause look pause look pause look consumer", .stranded_looks = 3},
        {"stream last purge look pause look pause look pause look pause drop consumer",
            .stranded_looks = 4},
        {"stream last purge look pause look pause look pause look pause drop consumer",
            .stranded_looks = 9, .drop = NATS_NOT_FOUND, .drop_code = JSConsumerNotFoundErr},
        {"stream last purge look pause look pause look pause look pause drop", .stranded_looks = 9,
            .drop = NATS_TIMEOUT, .why = "--queue: books cannot drop an earlier submission: Timeout"},
        {"stream last", .last = NATS_TIMEOUT,
            .why = "--queue: books cannot drop an earlier submission: Timeout"},
        {"stream last purge", .purge = NATS_ERR,
            .why = "--queue: books cannot drop an earlier submission: Trouble"},
        {"stream last purge look consumer", .consumer = NATS_ERR, .consumer_code = 10026,
            .why = "--queue: the server lets nobody take lines of books: JetStream's error 10026 (look "
                   "at the limits of the stream books)"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        begin_test(NULL);
        posed.stream = rows[i].stream;
        posed.last = rows[i].last;
        posed.purge = rows[i].purge;
        posed.drop = rows[i].drop;
        posed.consumer = rows[i].consumer;
        posed.stream_code = rows[i].stream_code;
        posed.last_code = rows[i].last_code;
        posed.drop_code = rows[i].drop_code;
        posed.consumer_code = rows[i].consumer_code;
        posed.stranded_looks = rows[i].stranded_looks;
        posed.messages = 8;
        posed.pending = 4;
        posed.unacknowledged = 3;
        utter_status status = nats_begin(&queue.base, "0123456789abcdef0123", &why);
        assert_string_equal(posed.calls, rows[i].calls);
        assert_int_equal(status, rows[i].why ? UTTER_E_IO : UTTER_OK);
        assert_string_equal(why.text, rows[i].why ? rows[i].why : "");
        assert_int_equal(posed.n_alive, 0);
        const char *subject = "books.lines.0123456789abcdef";
        assert_string_equal(posed.asked, strstr(posed.calls, "last") ? subject : "");
        assert_string_equal(posed.purged, strstr(posed.calls, "purge") ? subject : "");
    }
}

/* They are still somebody's. */
static void what_others_have_is_not_stranded(void **state)
{
    (void)state;
    begin_test(NULL);
    posed.stranded_looks = 9;
    posed.messages = 7;
    posed.pending = 4;
    posed.unacknowledged = 3;
    assert_int_equal(nats_begin(&queue.base, "0", NULL), UTTER_OK);
    assert_string_equal(posed.calls, "stream last purge look consumer");
}

static void a_stream_keeps_lines_until_they_are_done(void **state)
{
    (void)state;
    posed.last = NATS_NOT_FOUND;
    posed.last_code = JSNoMessageFoundErr;
    assert_int_equal(nats_begin(&queue.base, "name", NULL), UTTER_OK);
    assert_string_equal(posed.config.Name, "books");
    assert_string_equal(posed.subjects, "books.lines.*");
    assert_int_equal(posed.config.Retention, js_WorkQueuePolicy);
    assert_int_equal(posed.config.Storage, js_FileStorage);
    assert_int_equal(
        posed.config.Discard, js_DiscardNew); /* what is full takes no line, and drops none */
    assert_int_equal(posed.config.Duplicates, INT64_C(30000000000));
}

/* ---- Lines ---- */

static void a_line_is_published_once(void **state)
{
    (void)state;
    char key[IDENTITY_SIZE];
    memset(key, 'k', sizeof key);
    key[IDENTITY_SIZE - 1] = 0;
    snprintf(queue.subject, sizeof queue.subject, "books.lines.name");
    assert_int_equal(nats_put(&queue.base, key, "{\"key\":1}", &why), UTTER_OK);
    assert_string_equal(posed.subject, "books.lines.name");
    assert_string_equal(posed.published, "{\"key\":1}");
    assert_int_equal(strncmp(posed.id, key, 64), 0);
    assert_string_equal(posed.id + 64, ".abc"); /* another submission's is another line */
    assert_int_equal(posed.wait_ms, 60000);
    assert_string_equal(posed.tries, "");
    assert_string_equal(posed.deaths, "");
    /* One that is put back says what became of it, and is no second of another. */
    static const struct claim lines[] = {{.wire = "wire", .bytes = 3, .tries = 2, .deaths = 0},
        {.wire = "wire", .bytes = 4, .tries = 0, .deaths = 1}};
    for (int i = 0; i < 2; i++) {
        begin_test(NULL);
        assert_int_equal(nats_publish(&queue, "back", NULL, &lines[i], &why), UTTER_OK);
        assert_string_equal(posed.subject, "back");
        assert_string_equal(posed.id, "none");
        assert_string_equal(posed.published, i ? "wire" : "wir");
        assert_string_equal(posed.tries, i ? "" : "2");
        assert_string_equal(posed.deaths, i ? "1" : "");
    }
}

static void what_cannot_be_published_is_told(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        begin_test(NULL);
        posed.message = i == 0 ? NATS_NO_MEMORY : NATS_OK;
        posed.header = i == 1 ? NATS_ERR : NATS_OK;
        posed.publish = i == 2 ? NATS_TIMEOUT : NATS_OK;
        const struct claim line = {.wire = "wire", .bytes = 4, .tries = 1};
        assert_int_equal(nats_publish(&queue, "back", NULL, &line, &why), UTTER_E_IO);
        assert_string_equal(why.text, i == 2 ? "--queue: books cannot take a line: Timeout"
                                             : "--queue: books cannot take a line: Trouble");
        assert_string_equal(posed.calls, i == 2 ? "publish" : "");
        assert_int_equal(posed.n_alive, 0);
    }
}

/* The library tells on a thread of its own which line the server did not take. */
static void a_line_that_is_not_taken_is_told_once(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        natsStatus status, complete;
        const char *why;
    } rows[] = {
        {"maximum bytes exceeded", NATS_ERR, NATS_OK, "maximum bytes exceeded"},
        {"", NATS_TIMEOUT, NATS_OK, "Timeout"},
        {NULL, NATS_TIMEOUT, NATS_OK, "Timeout"},
        {"maximum bytes exceeded", NATS_ERR, NATS_TIMEOUT, "maximum bytes exceeded"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char wanted[256];
        begin_test(NULL);
        posed.complains = &queue;
        posed.complaint = (jsPubAckErr){.Err = rows[i].status, .ErrText = rows[i].text};
        posed.complete = rows[i].complete;
        assert_int_equal(nats_flush(&queue.base, &why), UTTER_E_IO);
        snprintf(wanted, sizeof wanted,
            "the queue books does not take a line: %s (submit again when it can)", rows[i].why);
        assert_string_equal(why.text, wanted);
        assert_int_equal(posed.wait_all_ms, 60000);
        posed.complains = NULL;
        posed.complete = NATS_OK;
        assert_int_equal(nats_flush(&queue.base, &why), UTTER_OK);
    }
    /* Before the end too; the first of several is the one. */
    static jsPubAckErr first = {.Err = NATS_ERR, .ErrText = "first"},
                       second = {.Err = NATS_ERR, .ErrText = "second"};
    const struct claim line = {.wire = "wire", .bytes = 4};
    nats_on_publish_error((jsCtx *)a_stream_of, &first, &queue);
    nats_on_publish_error((jsCtx *)a_stream_of, &second, &queue);
    assert_int_equal(nats_publish(&queue, "s", NULL, &line, &why), UTTER_E_IO);
    assert_non_null(strstr(why.text, ": first ("));
    assert_int_equal(nats_publish(&queue, "s", NULL, &line, &why), UTTER_OK);
    /* A server that does not answer in time. */
    posed.complete = NATS_TIMEOUT;
    assert_int_equal(nats_flush_within(&queue, 3, &why), UTTER_E_IO);
    assert_string_equal(why.text, "--queue: books cannot say that it has all lines: Timeout");
    assert_int_equal(posed.wait_all_ms, 3000);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, begin_test, end_test)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EACH(a_submission_begins),
        EACH(what_others_have_is_not_stranded),
        EACH(a_stream_keeps_lines_until_they_are_done),
        EACH(a_line_is_published_once),
        EACH(what_cannot_be_published_is_told),
        EACH(a_line_that_is_not_taken_is_told_once),
    };
    return cmocka_run_group_tests_name("queue_nats_put", tests, NULL, NULL);
}

#else

int main(void)
{
    return 0; /* built without NATS */
}

#endif
