/* SPDX-License-Identifier: Apache-2.0
 * A sum over the bits of what a check has made, for runs that must not differ: of one process or of several. */
#ifndef TESTS_CUDA_BITS_H
#define TESTS_CUDA_BITS_H

#include <stddef.h>
#include <stdint.h>

static const uint64_t BITS_BEGIN = 0xcbf29ce484222325u; /* FNV-1a */

static inline uint64_t bits_of(uint64_t sum, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    for (size_t i = 0; i < bytes; i++) {
        sum = (sum ^ at[i]) * 0x100000001b3u;
    }
    return sum;
}

#endif
