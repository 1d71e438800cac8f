/* SPDX-License-Identifier: Apache-2.0
 * What the heap holds, for tests of what stays: asked of glibc, as its release can tell it. */
#ifndef TESTS_HEAP_H
#define TESTS_HEAP_H

#include <malloc.h>
#include <stddef.h>

/* Bytes of the heap in use. */
static inline size_t heap_used(void)
{
#if __GLIBC_PREREQ(2, 33)
    return mallinfo2().uordblks;
#else
    return (size_t)mallinfo().uordblks; /* right up to 2 GB */
#endif
}

#endif
