/* SPDX-License-Identifier: Apache-2.0
 * What the files of the worker share. */
#ifndef JOB_WORKER_PARTS_H
#define JOB_WORKER_PARTS_H

#include <pthread.h>

#include "job/worker.h"

/* Of workers, whose line is then made alone: others die along no more. */
enum { SUSPECT_DEATHS = 2 };

enum slot_stage {
    SLOT_FREE,
    SLOT_HELD,     /* claimed; others have to end before it begins */
    SLOT_LOOKING,  /* claimed; a finisher looks whether there is a result */
    SLOT_WAITING,  /* claimed; no lane is free */
    SLOT_SPEAKING, /* has a lane */
    SLOT_ENDED,    /* spoken, or failed for good: the finishers have it */
};

/* A claimed line, from the claim to its result. */
struct slot {
    enum slot_stage stage; /* the worker's thread alone asks for it */
    struct slot *next;     /* of the finishers' list */
    struct claim claim;
    struct line line;
    void *making; /* the speaker's; NULL: it has nothing of the line */
    utter_sound *sound;
    char path[PATH_MAX]; /* of the sound */
    uint64_t n_samples;
    utter_word *words; /* [n_words] so far, where the line wants them */
    size_t n_words, words_room;
    bool words_approximate;
    utter_reading_stats stats;
    bool looks;              /* for the finisher: find `state` instead */
    enum result_state state; /* of the line's result, before */
    bool failed;             /* for good: `error` says why, and the result says it on */
    utter_status status;
    utter_error error;
};

/* For speakers: more of the sound; room for n words from number `first` on (NULL with *error), of MOST_WORDS in all. */
enum { MOST_WORDS = 1 << 20 };
utter_status slot_sound(struct slot *slot, const float *pcm, size_t n, utter_error *error);
utter_word *slot_words(struct slot *slot, uint64_t first, size_t n, utter_error *error);

/* Threads that complete results, and look for them where that takes long. */
enum { N_FINISHERS = 4 };
struct finishers {
    struct results *results;
    int rate; /* samples a second */
    pthread_t threads[N_FINISHERS];
    int n_threads;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t given, finished;
    struct slot *to_do, **last; /* a list, and where the next one goes */
    struct slot *done;
    bool ending;
};

utter_status finishers_start(
    struct finishers *finishers, struct results *results, int rate, utter_error *error);
void finishers_give(struct finishers *finishers, struct slot *slot);
/* One whose result is there, or whose `status` says why not; NULL: none by now. */
struct slot *finishers_take(struct finishers *finishers);
/* Waits until there is one, for a fifth of a second at most. */
void finishers_wait(struct finishers *finishers);
/* They end when they have nothing to do; what they have finished can still be taken. */
void finishers_end(struct finishers *finishers);
void finishers_fini(struct finishers *finishers);

#endif
