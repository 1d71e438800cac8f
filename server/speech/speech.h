/* SPDX-License-Identifier: Apache-2.0
 * One utterance on its way: the queue, a lane of the worker, the encoder, and whoever asked for it. */
#ifndef SERVER_SPEECH_H
#define SERVER_SPEECH_H

#include "server/loop/server.h"
#include "server/protocol/refusal.h"
#include "server/protocol/trace.h"
#include "server/speech/fields.h"

struct speech;
struct speech_words;

/* How it went; times in seconds from the request. */
struct speech_end {
    bool good; /* else `refusal` says why not */
    struct refusal refusal;
    enum utter_finish finish;
    int n_frames, n_text_tokens;
    double queue_s, first_s, total_s, audio_s; /* first_s: the first encoded byte was handed over */
    uint64_t n_samples;                        /* of the sound that left */
    double worst_gap_s;     /* longest time in which a listener had nothing to hear */
    struct wire_done model; /* times of the stages; pieces of the text, and those that are not whole */
};

/* Who asked. `bytes` comes any number of times, and `words` where fields.words asks for them (else it may be NULL),
 * then `end` once; after speech_cancel nothing. The speech is gone when `end` returns. */
struct speech_sink {
    void (*bytes)(void *user, const void *bytes, size_t n);
    void (*end)(void *user, const struct speech_end *end);
    void (*words)(void *user, const struct speech_words *words);
};

/* What is asked, and by whom: strings are copied. */
struct speech_request {
    const struct fields *fields;
    enum metrics_endpoint endpoint;
    double read_at;          /* when the request was there */
    struct account *account; /* of its key, or NULL */
    const char *id, *client; /* of the connection, for the log */
    /* It may wait for its lane: nobody hears it while it is made, or its listener has heard what comes before it. */
    bool patient;
    const struct trace *trace; /* that it is part of, or NULL */
};

/* Queues a speech, without text yet. NULL: refused, *refusal says why. */
struct speech *speech_start(struct server *s, const struct speech_request *request,
    const struct speech_sink *sink, void *user, struct refusal *refusal);
void speech_text(struct speech *p, const char *text, size_t n);
void speech_finish(struct speech *p);
void speech_cancel(struct speech *p); /* accepts NULL */
/* The client does not read (or does again): the model makes no more for it. Accepts NULL. */
void speech_hold(struct speech *p, bool held);
int speech_rate(const struct speech *p);       /* of the encoded samples */
double speech_seconds(const struct speech *p); /* of sound that the model has made, as it is heard */

/* One more would be refused. So many more would have a lane at once. */
bool speech_is_full(const struct server *s);
int speech_room(const struct server *s);

/* "stop" or "length" (a limit has cut it), as other servers say it, or "incomplete": the model left words out, also
 * when it was asked again. */
const char *speech_finish_reason(enum utter_finish finish);
/* What the served model allows; once it has been opened. */
struct fields_model speech_fields_model(const struct server *s);

/* From the link. */
void speech_dispatch(struct server *s); /* lanes may be free */
void speech_worker_ready(struct link *l);
void speech_worker_lost(struct link *l, const char *unopened); /* as of the link's owner */
void speech_message(struct link *l, const struct wire_message *m);
/* Ends those that have waited too long; called a few times a second. */
void speech_tick(struct server *s, double now);
/* All that are not whole end now, and who asked is told so. While the server drains, so that nobody comes anew. */
void speech_stop(struct server *s);

#endif
