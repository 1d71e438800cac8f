/* SPDX-License-Identifier: Apache-2.0
 * From a manifest and its results to what is to be done: put into a queue, counted, or collected. Nothing is kept of
 * the lines in memory but the one at hand. */
#ifndef JOB_SUBMIT_H
#define JOB_SUBMIT_H

#include "job/line.h"
#include "job/manifest.h"
#include "job/queue.h"
#include "job/results.h"

struct job {
    struct manifest manifest;
    struct line_rules rules;
    struct results *results; /* NULL: there are none yet */
    bool quick;              /* a sound of the right length is believed */
    bool retry;              /* lines that have failed are to be done again */
    bool (*stop)(void);      /* asked at each line; true ends the work (UTTER_E_CANCELLED) */
    /* Told of each line, of each pass; and of lines that are wrong. */
    void (*told)(void *user, const char *what, const struct manifest *manifest);
    void (*fault)(void *user, uint64_t number, const utter_error *error);
    void *user;
};

struct job_counts {
    uint64_t lines;                   /* of the manifest */
    uint64_t done, not_whole, failed; /* that have a result */
    uint64_t missing;                 /* that have none */
    double seconds;                   /* of sound that is done */
};

/* Checks every line and tells all faults, the first ones at least. */
utter_status job_check(struct job *job, utter_error *error);
/* Puts what is to be done into the queue: counts->missing says how many lines. */
utter_status job_submit(
    struct job *job, struct queue *queue, struct job_counts *counts, utter_error *error);
/* Looks at the results, and puts them into `folder` (NULL: only counts) under their lines' ids, with a line of JSON for
 * each in results.jsonl. */
utter_status job_collect(
    struct job *job, const char *folder, struct job_counts *counts, utter_error *error);

#endif
