/* SPDX-License-Identifier: Apache-2.0
 * One element of a wide product's operand (cuda_wide.h), for the kernels that make it where it arises. */
#ifndef CUDA_CUDA_OPERAND_CUH
#define CUDA_CUDA_OPERAND_CUH

#include "cuda/cuda_finish.cuh"

/* Column `col` of vector v. */
static __device__ __forceinline__ void operand_store(
    void *operand, int n_k_tiles, int v, int col, float value)
{
    const int k = col % CUDA_TILE, group = v / CUDA_TILE_VECTORS;
    const uint32_t upper = finish_part(value, 0.0f, false), lower = finish_part(value, 0.0f, true);
    uint16_t *at = (uint16_t *)operand + ((int64_t)group * n_k_tiles + col / CUDA_TILE) * 128 +
                   (v % CUDA_TILE_VECTORS * 8 + k % 8 / 2) * 4 + k / 8 * 2 + k % 2;
    at[0] = (uint16_t)upper;
    at[16] = (uint16_t)lower;
}

#endif
