/* SPDX-License-Identifier: Apache-2.0
 * The clock that waits and times are measured by: it only goes forward, and nobody can set it. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * (int64_t)1000000000 + t.tv_nsec;
}

static inline double clock_seconds(void)
{
    return 1e-9 * (double)clock_ns();
}

#endif
