/* SPDX-License-Identifier: Apache-2.0
 * The rules by which a code is chosen, as far as bits depend on them: for the choosers of the graphs
 * (graph/choose.cu) and of the persistent kernel (persistent/sample.cuh), which go through the
 * scores in ways of their own. The order of the rules and the random numbers are those of the CPU
 * (sample_choose). */
#ifndef CUDA_PARTS_CHOICE_CUH
#define CUDA_PARTS_CHOICE_CUH

#include <cuda_runtime.h>
#include <math.h>

#include "base/numeric.h"
#include "cuda/parts/history.cuh"
#include "model/backend.h"

struct choice_rule {
    utter_sampling sampling;
    int n;                   /* codes */
    int suppress_from, keep; /* codes from suppress_from on cannot be chosen, but for `keep` */
    bool keep_blocked;       /* nor can `keep`: the utterance has too few frames to end */
    const uint8_t *seen;     /* the lane's history (history.cuh), or NULL */
    uint64_t seed;           /* random numbers follow from seed, frame, codebook and code */
    uint32_t frame, codebook;
};

/* The rules of a logit, in the order in which they apply; then comes the temperature, where it is
 * not 0. */

/* NaN and +INFINITY set `bad` and cannot be chosen. */
template <typename T> static __device__ __forceinline__ float choice_admit(float score, T &bad)
{
    if (!(score < INFINITY)) {
        bad = 1;
        score = -INFINITY;
    }
    return score;
}

/* For codes of the lane's history. */
static __device__ __forceinline__ float choice_penalize(const struct choice_rule &rule, float score)
{
    const float penalty = rule.sampling.repetition_penalty;
    return score < 0 ? score * penalty : score / penalty;
}

/* Minimum length and suppression. */
static __device__ __forceinline__ float choice_suppress(
    const struct choice_rule &rule, int id, float score)
{
    const bool blocked = id == rule.keep ? rule.keep_blocked : id >= rule.suppress_from;
    return blocked ? -INFINITY : score;
}

/* All of them. */
template <typename T>
static __device__ __forceinline__ float choice_process(
    const struct choice_rule &rule, int id, float score, bool seen, T &bad)
{
    score = choice_admit(score, bad);
    if (seen) {
        score = choice_penalize(rule, score);
    }
    return choice_suppress(rule, id, score);
}

/* A number that orders as the float does; -0 as 0. No score has key 0. */
static __device__ __forceinline__ uint32_t choice_key(float f)
{
    const uint32_t bits = __float_as_uint(f + 0.0f);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

/* The random bits of ids 4 n to 4 n + 3. */
static __device__ __forceinline__ void choice_four(
    const struct choice_rule &rule, uint32_t n, uint32_t (&words)[4])
{
    const uint32_t counter[4] = {rule.frame, rule.codebook, n, 0};
    const uint32_t key[2] = {(uint32_t)rule.seed, (uint32_t)(rule.seed >> 32)};
    philox(counter, key, words);
}

/* Those of one id. */
static __device__ __forceinline__ uint32_t choice_bits(const struct choice_rule &rule, uint32_t id)
{
    uint32_t words[4];
    choice_four(rule, id / 4, words);
    const uint32_t low = id % 2 ? words[1] : words[0], high = id % 2 ? words[3] : words[2];
    return id % 4 < 2 ? low : high;
}

/* What is taken from an id's score to choose by chance: the id with the largest difference is chosen, and each id with
 * the probability that softmax gives its score (the Gumbel-max trick). `bits`: the id's random number. */
static __device__ __forceinline__ double choice_handicap(uint32_t bits)
{
    const double v = ((double)bits + 0.5) / 0x1p32;
    return log(-log1p(-v));
}

#endif
