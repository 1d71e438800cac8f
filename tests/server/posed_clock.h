/* SPDX-License-Identifier: Apache-2.0
 * Tests that play a room in time: a clock that stands until the test moves it. libevent's timers go by it too. */
#ifndef TESTS_SERVER_POSED_CLOCK_H
#define TESTS_SERVER_POSED_CLOCK_H

#include <math.h>
#include <time.h>

static double now_s;

int clock_gettime(clockid_t which, struct timespec *time)
{
    (void)which;
    time->tv_sec = (time_t)now_s;
    time->tv_nsec = (long)(1e9 * (now_s - floor(now_s)));
    return 0;
}

#endif
