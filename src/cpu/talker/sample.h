/* SPDX-License-Identifier: Apache-2.0
 * The choice of one code from logits: the official order of processors, then argmax or one draw.
 *
 * A draw is a race of exponentials: among the ids that survive, the one with the largest
 *     score - log(-log1p(-v)),   v = (bits + 0.5) / 2^32
 * wins, lowest id on a tie; `bits` is word id % 4 of philox(counter {frame, codebook, id / 4, 0}, key seed). This is a
 * draw from softmax(score) that any device can make in any order with the same result. In double. */
#ifndef CPU_TALKER_SAMPLE_H
#define CPU_TALKER_SAMPLE_H

#include "model/backend.h"

struct sample_in {
    const float *logits; /* [n], unchanged */
    int n;
    const utter_sampling *sampling;
    /* NULL, or [n]: 1 for ids chosen before in this utterance (repetition penalty) */
    const uint8_t *seen;
    int suppress_from; /* ids from here to n - 1 are suppressed but `keep`; n: none */
    int keep;          /* the end token, or -1 */
    bool keep_blocked; /* the end may not come yet */
    uint64_t seed;
    uint32_t frame, codebook;
};

/* Scratch of n floats and n ints. The id chosen, always in [0, n); *bad turns true when a logit was NaN or +inf, or
 * when nothing was left to choose from. */
int sample_choose(const struct sample_in *in, float *scores, int32_t *order, bool *bad);

/* How likely `code` is by n logits as they are, among those that may be chosen (suppress_from and keep as above). */
struct likelihood sample_likelihood(
    const float *logits, int n, int suppress_from, int keep, int32_t code);

/* The probabilities that the draw follows (sum 1), for tests: out[n]. */
void sample_probabilities(const struct sample_in *in, float *scores, int32_t *order, double *out);

#endif
