/* SPDX-License-Identifier: Apache-2.0
 * Takes lines out of a queue, as many at a time as there are lanes for, and makes results of them. One thread moves
 * the model and the queue; some more complete sounds, hash them and bring them to the results. */
#ifndef JOB_WORKER_H
#define JOB_WORKER_H

#include "job/line.h"
#include "job/queue.h"
#include "job/results.h"
#include "job/speaker/speaker.h"

struct worker_told {
    uint64_t made, found, failed,
        not_whole;       /* by this worker; found: had a result when they were claimed */
    uint64_t again;      /* tries that failed */
    uint64_t given_back; /* lines that a server would not make then */
    double seconds;      /* of sound */
};

/* Not copied: it stays the caller's. */
struct worker_settings {
    struct speaker *speaker;
    struct queue *queue;
    struct results *results;
    int most_tries;
    bool until_empty; /* ends when no line waits, nor is being made by others, who may die */
    bool (*stop)(void);
    /* Told after each step; why a try failed; and waits a little, or until a signal. */
    void (*told)(void *user, const struct worker_told *told);
    void (*note)(void *user, const char *id, const char *reason, int tries);
    void (*rest)(void *user);
    void *user;
};

/* Until the queue is empty, a signal came, or the machine failed. Whatever happens, lines that are not done wait again
 * when it returns. */
utter_status worker_run(
    const struct worker_settings *settings, struct worker_told *told, utter_error *error);

#endif
