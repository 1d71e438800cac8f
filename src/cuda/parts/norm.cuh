/* SPDX-License-Identifier: Apache-2.0
 * The steps of a norm whose weights and factor are put into a product: y = W (x * weights) * factor. Every product
 * takes the same steps in the same order, and so all give the same bits: a thread squares four columns of a tile of 16;
 * these are added tile after tile of a part of the columns; then the four threads of a tile, then the parts. */
#ifndef CUDA_PARTS_NORM_CUH
#define CUDA_PARTS_NORM_CUH

#include "cuda/lib/ptx.cuh"

/* The squares of columns 2t, 2t + 1 (x0), 2t + 8 and 2t + 9 (x1) of a tile. */
static __device__ __forceinline__ float norm_squares(float2 x0, float2 x1)
{
    const float s = __fmaf_rn(x0.y, x0.y, __fmul_rn(x0.x, x0.x));
    return __fadd_rn(s, __fmaf_rn(x1.y, x1.y, __fmul_rn(x1.x, x1.x)));
}

/* The sums of four neighbouring threads, in each of them. All threads of the warp come here. */
static __device__ __forceinline__ float norm_add_columns(float sum)
{
    sum = __fadd_rn(sum, __shfl_xor_sync(0xffffffffu, sum, 1));
    return __fadd_rn(sum, __shfl_xor_sync(0xffffffffu, sum, 2));
}

/* The factor of a norm over n columns, from the sum of their squares. */
static __device__ __forceinline__ float norm_factor(float sum, int n, float eps)
{
    return 1.0f / sqrtf(sum / (float)n + eps);
}

/* The same of vector v, once all warps have noted their parts of the squares; its result is multiplied by it. */
template <int N_WARPS, int N_VECTORS>
static __device__ __forceinline__ float norm_scale(
    const float (&squares)[N_WARPS][N_VECTORS], int v, int n, float eps)
{
    float sum = 0;
#pragma unroll
    for (int w = 0; w < N_WARPS; w++) {
        sum += squares[w][v];
    }
    return norm_factor(sum, n, eps);
}

#endif
