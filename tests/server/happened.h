/* SPDX-License-Identifier: Apache-2.0
 * All that happens in a test, in order, in words, which the test compares. */
#ifndef TESTS_SERVER_HAPPENED_H
#define TESTS_SERVER_HAPPENED_H

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

#endif
