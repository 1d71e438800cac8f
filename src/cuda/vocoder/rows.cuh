/* SPDX-License-Identifier: Apache-2.0
 * Rows of activations in two bf16 halves (vocoder/conv.h), for kernels of the vocoder and the encoders. */
#ifndef CUDA_VOCODER_ROWS_CUH
#define CUDA_VOCODER_ROWS_CUH

#include "cuda/lib/launch.cuh"

static __device__ __forceinline__ float rows_low(uint32_t two)
{
    return __uint_as_float(two << 16);
}

static __device__ __forceinline__ float rows_high(uint32_t two)
{
    return __uint_as_float(two & 0xffff0000u);
}

/* Four channels as the 16 bytes of a row. */
static __device__ __forceinline__ uint4 rows_split(float4 v)
{
    uint4 out;
    out.x = pack_bf16(v.x, v.y);
    out.y = pack_bf16(v.z, v.w);
    out.z = pack_bf16(v.x - rows_low(out.x), v.y - rows_high(out.x));
    out.w = pack_bf16(v.z - rows_low(out.y), v.w - rows_high(out.y));
    return out;
}

static __device__ __forceinline__ float4 rows_join(uint4 r)
{
    return make_float4(rows_low(r.x) + rows_low(r.z), rows_high(r.x) + rows_high(r.z),
        rows_low(r.y) + rows_low(r.w), rows_high(r.y) + rows_high(r.w));
}

static __device__ __forceinline__ float rows_snake(float x, float a, float b)
{
    float s = sinf(a * x);
    return x + s * s * b;
}

#endif
