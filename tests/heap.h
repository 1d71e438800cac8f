/* SPDX-License-Identifier: Apache-2.0
 * What the heap holds, for tests of what stays: asked of glibc, as its release can tell it. */
#ifndef TESTS_HEAP_H
#define TESTS_HEAP_H

#include <malloc.h>
#include <stddef.h>

/* Bytes of the heap in use, those of blocks that have a mapping of their own with them. */
static inline size_t heap_used(void)
{
#if __GLIBC_PREREQ(2, 33)
    const struct mallinfo2 heap = mallinfo2();
    return heap.uordblks + heap.hblkhd;
#else
    const struct mallinfo heap = mallinfo(); /* right up to 2 GB */
    return (size_t)heap.uordblks + (size_t)heap.hblkhd;
#endif
}

/* Blocks that have a mapping of their own. */
static inline size_t heap_mapped_blocks(void)
{
#if __GLIBC_PREREQ(2, 33)
    return mallinfo2().hblks;
#else
    return (size_t)mallinfo().hblks;
#endif
}

#endif
