/* SPDX-License-Identifier: Apache-2.0
 * Fills what arch.h describes. */
#ifndef CUDA_DEVICE_ARCH_READ_H
#define CUDA_DEVICE_ARCH_READ_H

#include <cuda_runtime_api.h>

#include "cuda/device/arch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* 10 times the major part of a compute capability and the minor part. */
static inline int cuda_arch_capability(const struct cudaDeviceProp *properties)
{
    return 10 * properties->major + properties->minor;
}

/* What this thread's device, which has these properties, and the code for it can do; `as` NULL, or no more than this
 * card can (cuda_arch_limit). A failure where the program has no code for the device. */
cudaError_t cuda_arch_read(
    struct cuda_arch *arch, const struct cudaDeviceProp *properties, const struct cuda_arch *as);

#ifdef __cplusplus
}
#endif

#endif
