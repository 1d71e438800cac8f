/* SPDX-License-Identifier: Apache-2.0
 * For tests that play a room in time: a clock that stands until the test moves it, which libevent's timers go by too,
 * and a list of all that happens, in order, which the test compares. */
#ifndef TESTS_SERVER_POSED_CLOCK_H
#define TESTS_SERVER_POSED_CLOCK_H

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "tests/support.h"

static char happened[2000];

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
    size_t n = strlen(happened);
    va_list list;
    va_start(list, format);
    vsnprintf(happened + n, sizeof happened - n, format, list);
    va_end(list);
}

/* What has happened since the last time it was asked. */
#define EXPECT(words)                                                                                  \
    do {                                                                                               \
        assert_string_equal(happened, words);                                                          \
        happened[0] = 0;                                                                               \
    } while (0)

static double now_s;

int clock_gettime(clockid_t which, struct timespec *time)
{
    (void)which;
    time->tv_sec = (time_t)now_s;
    time->tv_nsec = (long)(1e9 * (now_s - floor(now_s)));
    return 0;
}

#endif
