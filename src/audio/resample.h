/* SPDX-License-Identifier: Apache-2.0
 * Another sample rate, as the official wrapper makes it: soxr, high quality, whole recordings. */
#ifndef AUDIO_RESAMPLE_H
#define AUDIO_RESAMPLE_H

#include "base/error.h"

/* n (at least 1) samples at rate `from` -> *n_out samples at rate `to`, ceil(n * to / from). *out is the
 * caller's, to be freed with memory_free. Equal rates give a copy. */
utter_status resample(
    float **out, size_t *n_out, const float *in, size_t n, int from, int to, utter_error *error);

#endif
