/* SPDX-License-Identifier: Apache-2.0
 * Texts beside memory that nobody may touch: who reads a byte in front of one or behind it ends the test. */
#ifndef TESTS_FENCE_H
#define TESTS_FENCE_H

#include <string.h>
#include <sys/mman.h>

#include "tests/support.h"

enum { FENCE = 1 << 16 }; /* as long as a page of any machine, or several */

/* text[0..n), copied: right in front of such memory, or right behind it. Valid until the next call. */
static inline const char *fence(const char *text, size_t n, bool in_front)
{
    static char *room;
    if (!room) {
        room = mmap(NULL, 3 * FENCE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(room != MAP_FAILED && mprotect(room + FENCE, FENCE, PROT_READ | PROT_WRITE) == 0);
    }
    assert_true(n <= FENCE);
    char *at = room + FENCE + (in_front ? FENCE - n : 0);
    memcpy(at, text, n);
    return at;
}

/* The bytes of the character that text[at] begins, of valid UTF-8 that ends with a 0. */
static inline size_t fence_step(const char *text, size_t at)
{
    size_t n = 1;
    while (((unsigned char)text[at + n] & 0xc0) == 0x80) {
        n++;
    }
    return n;
}

#endif
