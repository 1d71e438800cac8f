/* SPDX-License-Identifier: Apache-2.0
 * A speech as its own files see it: its life (speech.c), and its samples on their way to who asked (speech_sound.c). */
#ifndef SERVER_SPEECH_PARTS_H
#define SERVER_SPEECH_PARTS_H

#include "server/loop/jobs.h"
#include "server/speech/speech.h"

struct speech {
    TAILQ_ENTRY(speech) entry;
    struct server *server;
    uint32_t id;
    char request[32], client[64]; /* for the log */
    double speed;                 /* of hearing: 2 is twice as fast as the model made it */
    bool queued;
    bool patient; /* waits for its lane; see admission.h */
    bool live;    /* it is heard while it is made */
    bool words;   /* who asked wants to know which word is heard when */
    bool held;    /* the client does not read */
    bool behind;  /* the encoder has more than it takes */
    bool paused;  /* the worker was told to wait, for one of these two reasons */
    int tries;
    struct account *account;        /* of the key that asked, or NULL */
    const struct speech_sink *sink; /* NULL: nobody wants it any more */
    void *user;
    enum metrics_endpoint endpoint;
    /* What was asked: kept whole until the first samples come, so that a new worker can begin again. */
    struct wire_out opening, text;
    bool text_ended;
    size_t text_bytes; /* that have come in all */

    struct encode *encoder;
    struct wire_out samples; /* floats that wait for the encoder */
    struct job job;
    struct wire_out job_in, job_out;
    bool job_runs, job_final, job_failed;
    bool ended;      /* the worker has said all */
    bool final_done; /* so has the encoder */
    struct speech_end end;

    double read_at, queued_at, started, first_samples, cancelled_at, heard_until;
    double made_s;            /* of sound, as it is heard */
    double moved_at;          /* when text or samples came last */
    enum metrics_stage stage; /* in which it was cancelled */
};

bool speech_is_wanted(const struct speech *p);
/* The client or the encoder has more than it takes, or no longer: tells the worker. */
void speech_steer(struct speech *p);
/* Ends: each may free it. */
void speech_tell_end(struct speech *p);
void speech_fail(struct speech *p, int status, const char *why);
void speech_fail_running(struct speech *p, int status, const char *why); /* tells the worker, too */
void speech_free_if_done(struct speech *p);

/* Samples from the worker; the end of them (`ended` is set). Each may free it. */
void speech_samples(struct speech *p, const struct wire_message *m);
/* Words from the worker. It may free it. */
void speech_take_words(struct speech *p, const struct wire_message *m);
void speech_pump(struct speech *p);

#endif
