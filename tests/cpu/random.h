/* SPDX-License-Identifier: Apache-2.0
 * Repeatable numbers for tests: a stream that depends on its seed alone. */
#ifndef TESTS_CPU_RANDOM_H
#define TESTS_CPU_RANDOM_H

#include <math.h>

#include "base/numeric.h"

struct random {
    uint32_t seed, count;
};

static inline uint32_t random_word(struct random *r)
{
    uint32_t counter[4] = {r->count++, 0, 0, 0}, key[2] = {r->seed, 77}, out[4];
    philox(counter, key, out);
    return out[0];
}

/* Uniform in (-1, 1). */
static inline float random_uniform(struct random *r)
{
    return ((float)(random_word(r) >> 8) + 0.5f) * 0x1p-23f - 1.0f;
}

static inline float random_normal(struct random *r)
{
    double u = ((double)random_word(r) + 0.5) * 0x1p-32, v = (double)random_word(r) * 0x1p-32;
    return (float)(sqrt(-2 * log(u)) * cos(6.283185307179586 * v));
}

static inline void random_fill(struct random *r, float *x, int64_t n, float scale)
{
    for (int64_t i = 0; i < n; i++) {
        x[i] = scale * random_normal(r);
    }
}

#endif
