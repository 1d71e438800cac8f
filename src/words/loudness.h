/* SPDX-License-Identifier: Apache-2.0
 * Samples -> how loud each short window is, and where sound begins and ends: what a heard word's edges are trimmed
 * by. */
#ifndef WORDS_LOUDNESS_H
#define WORDS_LOUDNESS_H

#include "base/error.h"

/* Zero it, then loudness_init. */
struct loudness {
    int window;     /* samples */
    float *at;      /* [room]: root mean square of each window */
    float *loudest; /* [room]: the largest up to each */
    int n, room;
    double sum; /* of squares of the window that is not full */
    int n_sum;  /* its samples */
};

utter_status loudness_init(struct loudness *l, int window, int room, utter_error *error);
void loudness_fini(struct loudness *l);
void loudness_add(struct loudness *l, const float *pcm, size_t n);
/* Below it is quiet, by what is known of the first n_windows: what comes later changes nothing. */
float loudness_threshold(const struct loudness *l, int n_windows);
/* The first sample at or behind `from`, before `end`, from which on it is loud, by what was heard until `end`; `from`
 * when there is none. One loud window alone is a click, as a codec begins with. */
int64_t loudness_onset(const struct loudness *l, int64_t from, int64_t end);
/* Behind the last loud sample before `end`, at or behind `from`; `from` when there is none. */
int64_t loudness_offset(const struct loudness *l, int64_t from, int64_t end);

#endif
