/* SPDX-License-Identifier: Apache-2.0
 * What every product does alike, whatever its kernel: the split of an activation in two bf16 parts, and the last
 * steps of an output. For the kernels of graph/linear.cu and prompt/wide.cu, which give the same bits. */
#ifndef CUDA_PARTS_FINISH_CUH
#define CUDA_PARTS_FINISH_CUH

#include "cuda/lib/launch.cuh"
#include "cuda/parts/steps.h"

static __device__ __forceinline__ float finish_silu(float v)
{
    return v / (1.0f + expf(-v));
}

/* a / b for several numbers beside each other: the compiler's own steps, to the bit, without its branch for numbers
 * near the ends of what a float holds, at which each division would wait for the one before. Where finish_divides
 * says no they are divided as usual. */
static __device__ __forceinline__ bool finish_divides(float a, float b)
{
    const float size = fabsf(a);
    return size > 0x1p-60f && size < 0x1p60f && b > 0x1p-30f && b < 0x1p60f;
}

static __device__ __forceinline__ float finish_reciprocal(float b)
{
    const float near = ptx_reciprocal(b);
    return __fmaf_rn(near, __fmaf_rn(-b, near, 1.0f), near);
}

static __device__ __forceinline__ float finish_divide(float a, float b, float reciprocal)
{
    const float quotient = __fmul_rn(a, reciprocal);
    return __fmaf_rn(reciprocal, __fmaf_rn(-b, quotient, a), quotient);
}

/* Two values as bf16: their upper parts, or what these leave. */
static __device__ __forceinline__ uint32_t finish_part(float a, float b, bool rest)
{
    uint32_t upper = pack_bf16(a, b);
    uint32_t lower =
        pack_bf16(a - __uint_as_float(upper << 16), b - __uint_as_float(upper & 0xffff0000u));
    return rest ? lower : upper;
}

/* What is done with the two rows g and g + 8 of row tile `tile` for vector v; `rows`: of the matrix, as y has them.
 * */
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
