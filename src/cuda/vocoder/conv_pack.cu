/* SPDX-License-Identifier: Apache-2.0
 * Matrices of a checkpoint -> the steps that the product kernel reads (vocoder/conv.h). */
#include "cuda/vocoder/conv.h"
#include "cuda/vocoder/rows.cuh"

/* Output m (of 16 in a tile) and input c, tap j; false: it is not this tensor's. */
static __device__ bool pack_value(const conv_pack &p, int tile, int m, int c, int j, float *value)
{
    int output = tile * 16 + m;
    if (p.half) {
        if ((m >= 8) != (p.half == 2)) {
            return false;
        }
        output = tile * 8 + m % 8;
    }
    int phase = output / p.width, channel = output % p.width, input = c - p.first_in;
    *value = 0;
    if (input < 0 || input >= p.n_in) {
        return p.first_in == 0 && c >= p.n_in; /* padding; what a second tensor owns comes after */
    }
    if (phase < p.n_phases && channel < p.n_out) {
        *value =
            p.from[p.offset + channel * p.m_step + input * p.c_step + j * p.j_step + phase * p.p_step];
        if (p.column_scale) {
            *value *= p.column_scale[input];
        }
    }
    return true;
}

/* One thread: the eight weights of one lane in one step, all halves. Position i of the eight is, in the
 * instruction's order, output lane / 4 + i / 2 % 2 * 8 and input 4 (lane % 4) + i / 4 * 2 + i % 2. */
static __global__ void pack_kernel(conv_pack p)
{
    int n_steps = p.groups * p.taps, step = (int)(blockIdx.x % (unsigned)n_steps),
        tile = (int)(blockIdx.x / (unsigned)n_steps), lane = (int)threadIdx.x;
    int per_chunk = p.chunk * p.taps, chunk = step / per_chunk, tap = step % per_chunk / p.chunk;
    int group = chunk * p.chunk + step % p.chunk;
    unsigned char *at =
        p.to + ((int64_t)(p.first_tile + tile) * n_steps + step) * CONV_STEP_BYTES + lane * 16;
    for (int i = 0; i < 8; i++) {
        float v;
        int m = lane / 4 + i / 2 % 2 * 8, c = group * 16 + lane % 4 * 4 + i / 4 * 2 + i % 2;
        if (pack_value(p, tile, m, c, tap, &v)) {
#pragma unroll
            for (int half = 0; half < CONV_WEIGHT_HALVES; half++) {
                const uint32_t bits = pack_bf16(v, 0);
                ((uint16_t *)(at + half * CONV_HALF_BYTES))[i] = (uint16_t)bits;
                v -= rows_low(bits);
            }
        }
    }
}

cudaError_t cuda_conv_pack(const struct conv_pack *p, cudaStream_t stream)
{
    int outputs = p->half ? (p->n_out + 7) / 8 * 16 : p->width * p->n_phases;
    unsigned blocks = (unsigned)(outputs / 16 * p->groups * p->taps);
    return launch(pack_kernel, dim3(blocks), 32, false, stream, *p);
}
