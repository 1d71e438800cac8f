/* SPDX-License-Identifier: Apache-2.0
 * A speech as its own files see it: its life (speech.c), the worker that it goes to (speech_place.c), and its samples
 * on their way to who asked (speech_sound.c). */
#ifndef SERVER_SPEECH_PARTS_H
#define SERVER_SPEECH_PARTS_H

#include "server/loop/jobs.h"
#include "server/loop/links.h"
#include "server/speech/admission.h"
#include "server/speech/speech.h"

struct speech {
    TAILQ_ENTRY(speech) entry;
    struct server *server;
    struct link *link; /* on whose lane it is; NULL: on none */
    uint32_t id;
    char request[32], client[64]; /* for the log */
    struct trace trace;           /* likewise */
    double speed;                 /* of hearing: 2 is twice as fast as the model made it */
    bool queued;
    bool patient;    /* waits for its lane; see admission.h */
    bool live;       /* it is heard while it is made */
    bool background; /* nobody waits for it: it has a lane that listeners leave idle */
    bool is_cut;     /* the lane is given back, and the worker has not said so yet */
    bool words;      /* who asked wants to know which word is heard when */
    bool held;       /* the client does not read */
    bool behind;     /* the encoder has more than it takes */
    bool paused;     /* the worker was told to wait, for one of these two reasons */
    int tries;
    uint64_t beginning;             /* what it has in common with others: see struct beginning */
    bool is_new;                    /* its worker has not read that before */
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

    double read_at, queued_at, first_samples, cancelled_at, heard_until;
    double made_s;            /* of sound, as it is heard */
    double moved_at;          /* when text or samples came last */
    enum metrics_stage stage; /* in which it was cancelled */
};

bool speech_is_wanted(const struct speech *p);
/* To the counters and the log: it has ended; it was cancelled in p->stage; what it had is free, so long after that. */
void speech_count_end(const struct speech *p);
void speech_count_cancelled(const struct speech *p);
void speech_count_freed(const struct speech *p, double seconds);
/* Another one of its request has a lane, an item of its batch or a context of its session: it waits for what its own
 * client has asked for, however long that is. */
bool speech_waits_for_its_own(const struct speech *p);
/* What is so now. `patient`: as one who is patient finds the queue and the lanes. */
struct admission_now speech_look(const struct server *s, bool patient, double time);
/* The worker where it begins now; NULL: no lane is free. */
struct link *speech_place(const struct speech *p, double now);
/* What speeches that open so have in common, as a number. */
uint64_t speech_beginning(const struct wire_open *open);
/* It goes to its worker; it came to its end there, and p->end.model tells how long its prompt took. */
void speech_begins(struct speech *p);
void speech_began(const struct speech *p);
/* The client or the encoder has more than it takes, or no longer: tells the worker. */
void speech_steer(struct speech *p);
/* Ends: each may free it. */
void speech_tell_end(struct speech *p);
void speech_fail(struct speech *p, int status, const char *why);
void speech_fail_as(struct speech *p, int status, const char *code, const char *why);
void speech_fail_running(struct speech *p, int status, const char *why); /* tells the worker, too */
void speech_free_if_done(struct speech *p);

/* To a lane of this worker. Waits for one no longer; has it no longer. */
void speech_send(struct speech *p, struct link *l);
void speech_leave_queue(struct speech *p);
void speech_leave_lane(struct speech *p);
/* To its lane, if it has one that is still its own. */
void speech_send_one(struct speech *p, enum wire_kind kind, const void *body, size_t n);

/* Those in the background: whether one more may wait; to lanes that are idle; a listener takes a lane of this worker;
 * what a tick has to see to. */
bool speech_background_admit(const struct server *s, struct refusal *refusal);
void speech_background_dispatch(struct server *s);
void speech_background_yield(struct link *l);
void speech_background_tick(struct server *s, double now);
/* Their own worker stands still from now on, while a listener waits for a first sound, or goes on. */
void speech_background_still(struct server *s);
/* It is told that its lane was given back, or that listeners have left none. It may be freed. */
void speech_background_end(struct speech *p);
/* Text has come, or all of it: it waits for us. */
bool speech_has_text(const struct speech *p, double now);
/* Lanes of this worker that speeches of listeners could have now. */
int speech_free_lanes(const struct link *l, double now);

/* Samples from the worker; the end of them (`ended` is set). Each may free it. */
void speech_samples(struct speech *p, const struct wire_message *m);
/* Words from the worker. It may free it. */
void speech_take_words(struct speech *p, const struct wire_message *m);
void speech_pump(struct speech *p);

#endif
