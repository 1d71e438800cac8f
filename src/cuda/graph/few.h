/* SPDX-License-Identifier: Apache-2.0
 * Products of one or two vectors, whose weights wait in shared memory: the same as cuda_linear_queue, to the bit. */
#ifndef CUDA_GRAPH_FEW_H
#define CUDA_GRAPH_FEW_H

#include "cuda/parts/steps.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Once for a device: lets the kernels have their shared memory, block_shared bytes of a block. */
cudaError_t cuda_few_open(int block_shared);
/* Whether a product has few vectors, and its weights fit in. */
bool cuda_few_suits(const struct cuda_queue *queue, const struct cuda_linear *product);
cudaError_t cuda_few_queue(const struct cuda_queue *queue, const struct cuda_linear *product);

#ifdef __cplusplus
}
#endif

#endif
