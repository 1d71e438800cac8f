/* SPDX-License-Identifier: Apache-2.0
 * What the checks of single instructions share (check_primitives.cu): a kernel gets words and leaves words, and a
 * function in plain C says what they should be. */
#ifndef TESTS_CUDA_PRIMITIVES_PRIMITIVES_H
#define TESTS_CUDA_PRIMITIVES_PRIMITIVES_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/numeric.h"
#include "cuda/lib/ptx_copy.cuh"
#include "cuda/lib/ptx_matrix.cuh"
#include "cuda/lib/ptx_order.cuh"

enum { N_WORDS = 1 << 14, UNTOUCHED = 0x5eed }; /* in and out; what out has before */

struct words {
    const uint32_t *in;
    uint32_t *out;
    uint32_t *shared; /* N_WORDS words that are 0, for what blocks tell each other */
};

/* What the code that runs must have (struct cuda_arch): that of 8.0 has neither on a card of 9.0. */
enum { ANY, FROM_90, ONLY_90 };

struct check {
    const char *name;
    void (*kernel)(struct words);
    void (*expect)(const uint32_t *in, uint32_t *out);
    int blocks, threads;
    int needs = ANY;
    float about =
        0; /* how far floats may be off, relative to 1 or to what they are; 0: words are compared */
    int cluster = 0;       /* blocks of a cluster; 0: none */
    bool together = false; /* all blocks are there at once */
    int shared_bytes = 0;  /* dynamic */
};

/* Numbers for tables: a small whole one as bf16, whose products and sums are exact in any order. */
static inline __host__ __device__ int small_of(uint32_t word)
{
    return (int)(word % 17) - 8;
}

static inline __host__ __device__ uint32_t bf16_bits(int small)
{
    return numeric_to_bits((float)small) >> 16;
}

/* Two of them in a register. */
static inline __host__ __device__ uint32_t two_small(uint32_t word)
{
    return bf16_bits(small_of(word)) | bf16_bits(small_of(word >> 16)) << 16;
}

static inline float float_of(uint32_t word)
{
    return numeric_from_bits(word);
}

static inline uint32_t word_of(float f)
{
    return numeric_to_bits(f);
}

#endif
