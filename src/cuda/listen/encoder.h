/* SPDX-License-Identifier: Apache-2.0
 * Recordings -> codes on the GPU. Nothing of it is kept between two recordings: weights and buffers are allocated
 * for the call and given back. The call waits. */
#ifndef CUDA_LISTEN_ENCODER_H
#define CUDA_LISTEN_ENCODER_H

#include "cuda/device/device.h"
#include "model/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As `encode` of the backend door, whose checks of the arguments have been made. */
utter_status cuda_encode(const struct model *model, struct cuda_device *device, const float *pcm,
    size_t n_samples, int32_t *codes, backend_progress_fn *progress, void *user, utter_error *error);

#ifdef __cplusplus
}
#endif

#endif
