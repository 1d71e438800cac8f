/* SPDX-License-Identifier: Apache-2.0
 * Who may speak now. A speech is taken when its sound can be made as fast as it is heard beside what is promised
 * already, and begin within the server's patience; else it is refused at once, so that those who are in hear no gap. */
#ifndef SERVER_ADMISSION_H
#define SERVER_ADMISSION_H

#include "server/loop/links.h"
#include "server/protocol/refusal.h"
#include "server/speech/fields.h"

/* A running speech: the text that has come, the sound that was made of it and is not heard yet. */
struct admission_speech {
    size_t text_bytes;
    double speed;             /* of hearing: 2 is twice as fast as the model made it */
    double made_s, in_hand_s; /* as they are heard */
};

/* What is so now, as speech.c sees it. */
struct admission_now {
    double time; /* by the clock */
    int n_free;  /* lanes that speeches may take */
    /* Until all who wait for their first sound have it, on the worker with such lanes where that is soonest; 0: they
     * are few. */
    double first_s;
    int n_before; /* speeches in the queue that one more would stand behind */
    int n_ending; /* of those that run, that will be through within the server's patience */
};

/* As a server begins: what speech is like before any was heard. */
void admission_begin(struct server *s);
/* Of one lane, what this speech needs so that its listener hears no gap; 0 to 1. */
double admission_need(const struct server *s, const struct admission_speech *p);
/* Those of n_free lanes that are open to who comes next. Where more come than fit, the last lanes are filled two at a
 * time, so that no first sound waits for a third prompt: n_new have begun less than a step ago and wait for theirs. */
int admission_open(const struct link *l, int n_free, int n_new);
/* Whether it is likely to be made to its end within the server's patience; has_all: of its text. More text is taken to
 * come until the speech is as long as others. */
bool admission_ends_in_time(const struct link *l, const struct admission_speech *p, bool has_all);
/* Lanes of a worker that speeches may take now, 0: none; promised: the sum of the needs of all that run on it. */
int admission_free(const struct link *l, double promised);
/* Whether one more is taken. `patient`: nobody hears it as it is made, or its listener is in already; it waits for a
 * place in the queue. False: *refusal says why not, and when to come again. */
bool admission_take(
    struct server *s, bool patient, const struct admission_now *now, struct refusal *refusal);
/* One more that is not patient would be refused. */
bool admission_is_full(const struct server *s, const struct admission_now *now);
/* For how long a speech may wait for its lane. */
double admission_most_wait(const struct server *s, bool patient);
/* A speech of so many bytes of text was made to its end. */
void admission_learn(struct server *s, size_t text_bytes, double seconds);
/* How long the sound of a speech will be about, in bytes; rather more than it is. */
double admission_bytes(const struct server *s, const struct fields *fields);
/* Called a few times a second. */
void admission_tick(struct server *s, const struct admission_now *now);

#endif
