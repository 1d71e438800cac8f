/* SPDX-License-Identifier: Apache-2.0
 * Lines come into a queue of NATS: of a submission, which drops an earlier one of its name, and back. */
#include "job/queue.h"

#if __has_include(<nats/nats.h>)

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "job/queue_nats.h"

enum { WINDOW_S = 30 }; /* in which the server knows a message again that was sent twice */

void nats_on_publish_error(jsCtx *js, jsPubAckErr *trouble, void *user)
{
    struct nats_queue *q = user;
    (void)js;
    pthread_mutex_lock(&q->lock);
    if (!q->trouble[0]) {
        snprintf(q->trouble, sizeof q->trouble, "%s",
            trouble->ErrText && trouble->ErrText[0] ? trouble->ErrText : q->n.StatusText(trouble->Err));
    }
    pthread_mutex_unlock(&q->lock);
}

static utter_status tell_trouble(struct nats_queue *q, utter_error *error)
{
    pthread_mutex_lock(&q->lock);
    utter_status status = q->trouble[0] ? error_set(error, UTTER_E_IO,
                                              "the queue %s does not take a line: %s (submit "
                                              "again when it can)",
                                              q->name, q->trouble)
                                        : UTTER_OK;
    q->trouble[0] = 0; /* it was that of the lines so far */
    pthread_mutex_unlock(&q->lock);
    return status;
}

/* The stream, where there is none. */
static utter_status make_stream(struct nats_queue *q, utter_error *error)
{
    char subjects[NATS_SUBJECT];
    const char *list[] = {subjects};
    jsStreamConfig config;
    jsErrCode code = 0;
    snprintf(subjects, sizeof subjects, "%s.lines.*", q->name);
    q->n.StreamConfig_Init(&config);
    config.Name = q->name;
    config.Subjects = list;
    config.SubjectsLen = 1;
    config.Retention = js_WorkQueuePolicy;
    config.Storage = js_FileStorage;
    config.Discard = js_DiscardNew;
    config.Duplicates = WINDOW_S * INT64_C(1000000000);
    natsStatus status = q->n.AddStream(NULL, q->js, &config, NULL, &code);
    return status == NATS_OK || code == JSStreamNameExistErr ? UTTER_OK
                                                             : nats_fail(q, error, "be made", status);
}

/* Whether lines of the stream are behind its consumer, which nobody would ever get. What is acknowledged meanwhile may
 * look so for a moment. */
static bool has_stranded(const struct nats_queue *q)
{
    enum { LOOKS = 4 };
    const struct timespec pause = {.tv_nsec = 50000000};
    for (int i = 0; i < LOOKS; i++) {
        jsConsumerInfo *workers = NULL;
        jsStreamInfo *stream = NULL;
        bool is_so =
            q->n.GetConsumerInfo(&workers, q->js, q->name, nats_consumer, NULL, NULL) == NATS_OK &&
            q->n.GetStreamInfo(&stream, q->js, q->name, NULL, NULL) == NATS_OK &&
            stream->State.Msgs > workers->NumPending + (uint64_t)workers->NumAckPending;
        q->n.ConsumerInfo_Destroy(workers);
        q->n.StreamInfo_Destroy(stream);
        if (!is_so) {
            return false;
        }
        nanosleep(&pause, NULL);
    }
    return true;
}

/* What waits of an earlier submission of this name goes. A server before 2.10 then takes its consumer behind all
 * lines, and those of other submissions would wait for ever: it is made anew. What the old one had given out the new
 * one gives out once more, and who gets such a line finds its result, or makes it a second time. */
static utter_status drop_earlier(struct nats_queue *q, utter_error *error)
{
    jsOptions options;
    jsErrCode code = 0;
    natsMsg *last = NULL;
    natsStatus status = q->n.GetLastMsg(&last, q->js, q->name, q->subject, NULL, &code);
    if (code == JSNoMessageFoundErr) {
        return UTTER_OK;
    }
    q->n.Msg_Destroy(last);
    if (status == NATS_OK) {
        q->n.Options_Init(&options);
        options.Stream.Purge.Subject = q->subject;
        status = q->n.PurgeStream(q->js, q->name, &options, NULL);
    }
    if (status == NATS_OK && has_stranded(q)) {
        status = q->n.DeleteConsumer(q->js, q->name, nats_consumer, NULL, &code);
        status = code == JSConsumerNotFoundErr ? NATS_OK : status;
    }
    /* Who counts GPUs by what waits asks the consumer, and nobody may be at work. A new stream gets its own from who
     * works: lines of one that was lost had the same numbers, and what acknowledges those must not end these. */
    if (status == NATS_OK && nats_make_consumer(q, &code) != NATS_OK) {
        return nats_fail_consumer(q, code, error);
    }
    return status == NATS_OK ? UTTER_OK : nats_fail(q, error, "drop an earlier submission", status);
}

utter_status nats_begin(struct queue *queue, const char *name, utter_error *error)
{
    struct nats_queue *q = nats_of(queue);
    snprintf(q->subject, sizeof q->subject, "%s.lines.%.16s", q->name, name);
    utter_status status = make_stream(q, error);
    return status ? status : drop_earlier(q, error);
}

utter_status nats_publish(struct nats_queue *q, const char *subject, const char *id,
    const struct claim *line, utter_error *error)
{
    char tries[16], deaths[16];
    natsMsg *message = NULL;
    jsPubOptions options;
    snprintf(tries, sizeof tries, "%d", line->tries);
    snprintf(deaths, sizeof deaths, "%d", line->deaths);
    q->n.PubOptions_Init(&options);
    options.MsgId = id;
    options.MaxWait = NATS_PUBLISH_S * 1000;
    natsStatus status = q->n.Msg_Create(&message, subject, NULL, line->wire, (int)line->bytes);
    if (status == NATS_OK && line->tries > 0) {
        status = q->n.Header_Set(message, nats_tries, tries);
    }
    if (status == NATS_OK && line->deaths > 0) {
        status = q->n.Header_Set(message, nats_deaths, deaths);
    }
    status = status ? status : q->n.PublishMsgAsync(q->js, &message, &options);
    q->n.Msg_Destroy(message); /* NULL when it was taken */
    return status == NATS_OK ? tell_trouble(q, error) : nats_fail(q, error, "take a line", status);
}

utter_status nats_put(struct queue *queue, const char *key, const char *wire, utter_error *error)
{
    char id[IDENTITY_SIZE + 48];
    const struct claim line = {.wire = wire, .bytes = strlen(wire)};
    snprintf(id, sizeof id, "%.64s.%llx", key, nats_of(queue)->generation);
    return nats_publish(nats_of(queue), nats_of(queue)->subject, id, &line, error);
}

utter_status nats_flush_within(struct nats_queue *q, int seconds, utter_error *error)
{
    jsPubOptions options;
    q->n.PubOptions_Init(&options);
    options.MaxWait = seconds * 1000;
    natsStatus status = q->n.PublishAsyncComplete(q->js, &options);
    utter_status told = tell_trouble(q, error);
    return told                ? told
           : status == NATS_OK ? UTTER_OK
                               : nats_fail(q, error, "say that it has all lines", status);
}

utter_status nats_flush(struct queue *queue, utter_error *error)
{
    return nats_flush_within(nats_of(queue), NATS_PUBLISH_S, error);
}

#endif
