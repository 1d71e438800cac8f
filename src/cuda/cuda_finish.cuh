/* SPDX-License-Identifier: Apache-2.0
 * What every product does alike, whatever its kernel: the split of an activation in two bf16 parts, and the last steps
 * of an output. For the kernels of cuda_linear.cu and cuda_wide.cu, which give the same bits. */
#ifndef CUDA_CUDA_FINISH_CUH
#define CUDA_CUDA_FINISH_CUH

#include "cuda/cuda_launch.cuh"
#include "cuda/cuda_steps.h"

static __device__ __forceinline__ float finish_silu(float v)
{
    return v / (1.0f + expf(-v));
}

/* Two values as bf16: their upper parts, or what these leave. */
static __device__ __forceinline__ uint32_t finish_part(float a, float b, bool rest)
{
    uint32_t upper = pack_bf16(a, b);
    uint32_t lower =
        pack_bf16(a - __uint_as_float(upper << 16), b - __uint_as_float(upper & 0xffff0000u));
    return rest ? lower : upper;
}

/* What is done with the two rows g and g + 8 of row tile `tile` for vector v; `rows`: of the matrix, as y has them. */
static __device__ __forceinline__ void finish_rows(
    const struct cuda_linear &p, int rows, int tile, int v, int g, float first, float second)
{
    int to = p.map ? p.map[v] : v;
    if (to < 0) {
        return;
    }
    float *y = p.y + to * p.y_stride;
    if (p.kind == CUDA_GATE) {
        y[tile * 8 + g] = finish_silu(first) * second;
        return;
    }
    for (int half = 0; half < 2; half++) {
        int row = tile * CUDA_TILE + half * 8 + g;
        float value = half ? second : first;
        if (row >= rows) {
            return;
        }
        if (p.kind == CUDA_ADD) {
            y[row] += value;
        } else {
            value += p.bias ? p.bias[row] : 0.0f;
            y[row] = p.kind == CUDA_STORE_SILU ? finish_silu(value) : value;
        }
    }
}

#endif
