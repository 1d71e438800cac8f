/* SPDX-License-Identifier: Apache-2.0
 * What is told the system about memory that is not needed, for tests that are linked with --wrap=madvise. */
#ifndef TESTS_BASE_ADVISED_H
#define TESTS_BASE_ADVISED_H

#include <stddef.h>
#include <stdint.h>

/* The last advice that was given, and how many there were. */
static struct {
    uintptr_t begin;
    size_t bytes;
    int advice, n;
} advised;

int __wrap_madvise(void *begin, size_t bytes, int advice);
int __real_madvise(void *begin, size_t bytes, int advice);
int __wrap_madvise(void *begin, size_t bytes, int advice)
{
    advised.begin = (uintptr_t)begin;
    advised.bytes = bytes;
    advised.advice = advice;
    advised.n++;
    return __real_madvise(begin, bytes, advice);
}

#endif
