/* SPDX-License-Identifier: Apache-2.0
 * A model begins each utterance with more stress than a sentence in the middle of one has. How much is learned from the
 * pieces before, and taken off those that follow, so that a listener hears no new beginning at each seam. */
#ifndef READING_STRESS_H
#define READING_STRESS_H

#include <stdbool.h>
#include <stddef.h>

/* Zero it, set `rate`. */
struct stress {
    int rate;
    double db; /* what the first half second of a piece has more than the rest: mean of those before */
    int n;     /* of so many */
    /* Of the piece: samples since its first loud one; number and energy of loud ones at its beginning, and later. */
    size_t at, n_early, n_rest;
    double early, rest;
    bool even; /* it is evened */
};

/* A piece begins; `even`: another one comes before it. */
void stress_begin(struct stress *s, bool even);
/* Its next samples are measured, and evened in place. */
void stress_take(struct stress *s, float *pcm, size_t n);
/* The piece has ended. */
void stress_end(struct stress *s);

#endif
