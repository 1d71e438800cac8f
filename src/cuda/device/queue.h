/* SPDX-License-Identifier: Apache-2.0
 * Where kernels are queued, and what they may use there. */
#ifndef CUDA_DEVICE_QUEUE_H
#define CUDA_DEVICE_QUEUE_H

#include "cuda/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cuda_queue {
    cudaStream_t stream;
    bool overlaps;    /* of struct cuda_arch: a kernel may begin before the one in front has ended */
    int block_shared; /* bytes that a block may have, once cuda_linear_open has run; 0: the static ones */
};

#ifdef __cplusplus
}
#endif

#endif
