/* SPDX-License-Identifier: Apache-2.0
 * Log-mel features -> x-vector on the CPU. Nothing of it is kept between two recordings. */
#ifndef CPU_ENCODERS_SPEAKER_H
#define CPU_ENCODERS_SPEAKER_H

#include "cpu/kernels/kern.h"
#include "model/backend.h"

/* As `speaker` of the backend door, whose checks of the arguments have been made. */
utter_status cpu_speaker(const struct model *model, const struct kern *kern, struct pool *pool,
    const float *mels, size_t n_mels, float *vector, utter_error *error);

#endif
