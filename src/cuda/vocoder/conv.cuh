/* SPDX-License-Identifier: Apache-2.0
 * What both product kernels of the vocoder share: where a column's rows lie, the products of halves, and the way of
 * an output from its sum to memory. */
#ifndef CUDA_VOCODER_CONV_CUH
#define CUDA_VOCODER_CONV_CUH

#include "cuda/lib/launch.cuh"
#include "cuda/lib/ptx_copy.cuh"
#include "cuda/lib/ptx_matrix.cuh"
#include "cuda/vocoder/conv.h"
#include "cuda/vocoder/rows.cuh"

/* Where a thread stands in the steps, and the rows that its columns read there. */
template <int WN> struct conv_reader {
    const unsigned char *row[WN];
    int column[WN], time_step[WN], lane[WN];
    int chunk, tap, group;
};

template <int WN>
static __device__ __forceinline__ void reader_point(conv_reader<WN> &r, const cuda_conv &p)
{
    int row_bytes = p.product.groups * CONV_GROUP_BYTES;
    int reach = (p.product.taps - 1) * p.product.dilation, back = reach - r.tap * p.product.dilation;
    int64_t at = (int64_t)r.chunk * p.product.chunk * CONV_GROUP_BYTES + (threadIdx.x & 3) * 16;
#pragma unroll
    for (int i = 0; i < WN; i++) {
        const unsigned char *fresh = p.x + (int64_t)(r.column[i] - back) * row_bytes;
        const unsigned char *old =
            p.past + r.lane[i] * p.past_stride + (int64_t)(reach + r.time_step[i] - back) * row_bytes;
        r.row[i] = (r.time_step[i] >= back ? fresh : old) + at;
    }
}

template <int WN>
static __device__ __forceinline__ void reader_move(conv_reader<WN> &r, const cuda_conv &p)
{
    if (++r.group == p.product.chunk) {
        r.group = 0;
        if (++r.tap == p.product.taps) {
            r.tap = 0;
            r.chunk++;
        }
        reader_point(r, p);
    }
}

/* A thread's weights of one step, of which the halves lie `apart` pieces of 16 bytes from each other. */
template <bool CONSTANT, int HALF = 0>
static __device__ __forceinline__ void load_step(
    uint4 (&a)[CONV_WEIGHT_HALVES], const uint4 *at, int apart)
{
    a[HALF] = CONSTANT ? __ldg(at + HALF * apart) : at[HALF * apart];
    if constexpr (HALF + 1 < CONV_WEIGHT_HALVES) {
        load_step<CONSTANT, HALF + 1>(a, at, apart);
    }
}

/* The same from device memory to places in shared memory that lie `apart` pieces from each other. */
template <int HALF = 0>
static __device__ __forceinline__ void copy_step(
    uint4 *to, int apart, const unsigned char *from, bool keep)
{
    ptx_copy(to, from, keep);
    if constexpr (HALF + 1 < CONV_WEIGHT_HALVES) {
        copy_step<HALF + 1>(to + apart, apart, from + CONV_HALF_BYTES, keep);
    }
}

/* Three of the four products of halves, the small ones first. */
template <int WM, int WN>
static __device__ __forceinline__ void multiply(
    float (&sum)[WM][WN][4], const uint4 (&a)[WM][CONV_WEIGHT_HALVES], const uint4 (&b)[WN])
{
#pragma unroll
    for (int i = 0; i < WM; i++) {
#pragma unroll
        for (int j = 0; j < WN; j++) {
            ptx_mma(sum[i][j], a[i][1], b[j].x, b[j].y);
        }
    }
#pragma unroll
    for (int i = 0; i < WM; i++) {
#pragma unroll
        for (int j = 0; j < WN; j++) {
            ptx_mma(sum[i][j], a[i][0], b[j].z, b[j].w);
        }
    }
#pragma unroll
    for (int i = 0; i < WM; i++) {
#pragma unroll
        for (int j = 0; j < WN; j++) {
            ptx_mma(sum[i][j], a[i][0], b[j].x, b[j].y);
        }
    }
}

static __device__ __forceinline__ float4 add4(float4 a, float4 b)
{
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

static __device__ __forceinline__ float4 multiply4(float4 a, float4 b)
{
    return make_float4(a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w);
}

static __device__ __forceinline__ float gelu(float x)
{
    return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f));
}

/* What four neighbouring channels of one output time step need beside their sum, read all at once. */
struct conv_operands {
    int64_t at;
    float4 bias, scale, residual, a, b;
};

/* All but the residual: no kernel writes them. */
static __device__ __forceinline__ conv_operands constants_of(
    const cuda_conv &p, int channel, int64_t row)
{
    conv_operands o = {};
    o.at = row * p.width + channel;
    if (p.product.bias) {
        o.bias = __ldg((const float4 *)(p.product.bias + channel));
    }
    if (p.scale) {
        o.scale = __ldg((const float4 *)(p.scale + channel));
    }
    if (p.snake_a) {
        o.a = __ldg((const float4 *)(p.snake_a + channel));
        o.b = __ldg((const float4 *)(p.snake_b + channel));
    }
    return o;
}

static __device__ __forceinline__ void load_residual(const cuda_conv &p, conv_operands &o)
{
    if (p.residual) {
        o.residual = *(const float4 *)(p.residual + o.at);
    }
}

/* From the sum to memory. */
static __device__ __forceinline__ void finish(const cuda_conv &p, float4 v, const conv_operands &o)
{
    if (p.product.bias) {
        v = add4(v, o.bias);
    }
    if (p.after == CONV_GELU) {
        v = make_float4(gelu(v.x), gelu(v.y), gelu(v.z), gelu(v.w));
    }
    if (p.scale) {
        v = multiply4(v, o.scale);
    }
    if (p.residual) {
        v = add4(v, o.residual);
    }
    if (p.raw) {
        *(float4 *)(p.raw + o.at) = v;
    }
    if (p.ready) {
        if (p.snake_a) {
            v = make_float4(rows_snake(v.x, o.a.x, o.b.x), rows_snake(v.y, o.a.y, o.b.y),
                rows_snake(v.z, o.a.z, o.b.z), rows_snake(v.w, o.a.w, o.b.w));
        }
        *(uint4 *)(p.ready + o.at * 4) = rows_split(v);
    }
}

#endif
