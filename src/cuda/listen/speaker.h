/* SPDX-License-Identifier: Apache-2.0
 * Log-mel features -> x-vector on the GPU. Nothing of it is kept between two recordings. The call waits. */
#ifndef CUDA_LISTEN_SPEAKER_H
#define CUDA_LISTEN_SPEAKER_H

#include "cuda/device/device.h"
#include "model/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As `speaker` of the backend door, whose checks of the arguments have been made. */
utter_status cuda_speaker(const struct model *model, struct cuda_device *device, const float *mels,
    size_t n_mels, float *vector, utter_error *error);

#ifdef __cplusplus
}
#endif

#endif
