/* SPDX-License-Identifier: Apache-2.0
 * Elements of a wide product's operand (prompt/wide.h), for the kernels that make it where it arises. */
#ifndef CUDA_PARTS_OPERAND_CUH
#define CUDA_PARTS_OPERAND_CUH

#include "cuda/parts/finish.cuh"

/* Where the operand has the upper part of a number, in steps of two bytes; its lower part lies 8 steps behind. */
static __device__ __forceinline__ int64_t operand_place(int n_groups, int v, int col)
{
    return (((int64_t)(col / (CUDA_TILE * CUDA_WIDE_SLAB)) * n_groups + v / CUDA_TILE_VECTORS) *
                   CUDA_WIDE_SLAB +
               col / CUDA_TILE % CUDA_WIDE_SLAB) *
               128 +
           col % CUDA_TILE / 8 * 64 + v % CUDA_TILE_VECTORS * 16 + col % 8;
}

/* Column `col` of vector v. */
static __device__ __forceinline__ void operand_store(
    void *operand, int n_groups, int v, int col, float value)
{
    uint16_t *at = (uint16_t *)operand + operand_place(n_groups, v, col);
    at[0] = (uint16_t)finish_part(value, 0.0f, false);
    at[8] = (uint16_t)finish_part(value, 0.0f, true);
}

/* Columns `col`, an even number, and the one behind it. */
static __device__ __forceinline__ void operand_store_two(
    void *operand, int n_groups, int v, int col, float a, float b)
{
    uint32_t *at = (uint32_t *)((uint16_t *)operand + operand_place(n_groups, v, col));
    at[0] = finish_part(a, b, false);
    at[4] = finish_part(a, b, true);
}

#endif
