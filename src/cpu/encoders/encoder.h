/* SPDX-License-Identifier: Apache-2.0
 * Recordings -> codes on the CPU. Nothing of it is kept between two recordings. */
#ifndef CPU_ENCODERS_ENCODER_H
#define CPU_ENCODERS_ENCODER_H

#include "cpu/kernels/kern.h"
#include "model/backend.h"

/* Frames that a recording of n samples has: ceil(n / frame_samples). */
size_t cpu_encoder_frames(const struct config *config, size_t n_samples);

/* As `encode` of the backend door. The model has an encoder, codes has room for cpu_encoder_frames. */
utter_status cpu_encode(const struct model *model, const struct kern *kern, struct pool *pool,
    const float *pcm, size_t n_samples, int32_t *codes, backend_progress_fn *progress, void *user,
    utter_error *error);

#endif
