/* SPDX-License-Identifier: Apache-2.0
 * A few threads for work that would hold up the loop. Jobs go to them, and come back, through two pipes: a pointer is
 * written whole or not at all, so that no lock is needed. */
#ifndef SERVER_JOBS_H
#define SERVER_JOBS_H

#include <event2/event.h>
#include <stdbool.h>

struct job {
    void (*run)(struct job *job);  /* in a thread of its own choice */
    void (*done)(struct job *job); /* afterwards, in the loop */
};

struct jobs;

struct jobs *jobs_new(struct event_base *base, int n_threads);
/* The job and what it uses belong to the threads until its `done`. False when too many are waiting. */
bool jobs_submit(struct jobs *jobs, struct job *job);
/* Waits for the jobs, and calls `done` of each; none is taken any more. Accepts NULL. */
void jobs_free(struct jobs *jobs);

#endif
