/* SPDX-License-Identifier: Apache-2.0
 * A bounded reader over untrusted bytes: it never reads past the end and remembers that it would have. */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes {
    const uint8_t *at, *end;
    bool short_read; /* sticky: something was asked for that is not there */
};

static inline struct bytes bytes_of(const void *data, size_t size)
{
    const uint8_t *p = data;
    return (struct bytes){p, p ? p + size : p, false};
}

static inline size_t bytes_left(const struct bytes *b)
{
    return (size_t)(b->end - b->at);
}

/* The next n bytes, or NULL. */
static inline const uint8_t *bytes_take(struct bytes *b, size_t n)
{
    if (b->short_read || n > bytes_left(b)) {
        b->short_read = true;
        return NULL;
    }
    const uint8_t *p = b->at;
    b->at += n;
    return p;
}

/* A little-endian number of n (1..8) bytes; 0 after a short read. */
static inline uint64_t bytes_number(struct bytes *b, int n)
{
    const uint8_t *p = bytes_take(b, (size_t)n);
    uint64_t v = 0;
    for (int i = n - 1; p && i >= 0; i--) {
        v = v << 8 | p[i];
    }
    return v;
}

#endif
