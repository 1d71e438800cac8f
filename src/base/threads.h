/* SPDX-License-Identifier: Apache-2.0
 * A persistent pool for short parallel loops. The caller is one of the workers; waiting workers spin
 * for a moment, then sleep. Which thread runs which part never changes a result. */
#ifndef BASE_THREADS_H
#define BASE_THREADS_H

#include "base/error.h"

struct pool;

/* Cores that this process may run on (affinity and cgroup quota respected), at least 1. */
int threads_available(void);

/* The processor quota in whole cores, rounded to the nearest and at least 1, of the control groups that
 * `cgroups` (as /proc/self/cgroup) names below `mount` (as /sys/fs/cgroup); 0 when there is none. */
int threads_quota(const char *cgroups, const char *mount);

/* n_threads >= 1, the caller included. NULL when out of memory or threads. */
struct pool *pool_new(int n_threads);
void pool_free(struct pool *pool); /* accepts NULL */
int pool_size(const struct pool *pool);

/* Runs fn(arg, part, n_parts) for every part in 0 .. n_parts-1 and returns when all are done. Parts are
 * handed out in order to whoever is free. Not reentrant: one pool_run at a time. */
void pool_run(struct pool *pool, void (*fn)(void *arg, int part, int n_parts), void *arg, int n_parts);

/* The part-th of n_parts nearly equal pieces of [0, n), borders rounded to multiples of `grain`. */
void pool_slice(int64_t n, int grain, int part, int n_parts, int64_t *begin, int64_t *end);

#endif
