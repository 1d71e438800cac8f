/* SPDX-License-Identifier: Apache-2.0
 * Checks of what threads of a warp and of a block do together: shuffles, votes, sums, barriers, atomic additions. */
#ifndef TESTS_CUDA_PRIMITIVES_PRIMITIVES_WARP_CUH
#define TESTS_CUDA_PRIMITIVES_PRIMITIVES_WARP_CUH

#include "tests/cuda/primitives/primitives.h"

enum { WARP_THREADS = 256 };

static __global__ void shuffle_kernel(struct words w)
{
    const uint32_t all = 0xffffffffu, v = w.in[threadIdx.x], lane = threadIdx.x % 32;
    const uint32_t eight = 0xffu << lane / 8 * 8;
    uint32_t *out = w.out + 6 * threadIdx.x;
    out[0] = __shfl_sync(all, v, (int)(lane * 7 + 5) & 31);
    out[1] = (uint32_t)__shfl_xor_sync(all, (int)v, 21);
    out[2] = __float_as_uint(__shfl_xor_sync(all, (float)(v >> 8), 4));
    out[3] = (uint32_t)__shfl_xor_sync(all, (double)v, 1);
    out[4] = __shfl_xor_sync(eight, v, 3);          /* four groups of lanes, each for itself */
    out[5] = __shfl_sync(all, v, (int)threadIdx.x); /* of a lane modulo 32 */
}

static void shuffle_expect(const uint32_t *in, uint32_t *out)
{
    for (int i = 0; i < WARP_THREADS; i++) {
        const int warp = i / 32 * 32, lane = i % 32;
        const uint32_t want[6] = {in[warp + ((lane * 7 + 5) & 31)], in[warp + (lane ^ 21)],
            word_of((float)(in[warp + (lane ^ 4)] >> 8)), in[warp + (lane ^ 1)], in[warp + (lane ^ 3)],
            in[i]};
        memcpy(out + 6 * i, want, sizeof want);
    }
}

static __global__ void vote_kernel(struct words w)
{
    const uint32_t all = 0xffffffffu, v = w.in[threadIdx.x],
                   half = 0xffffu << threadIdx.x % 32 / 16 * 16;
    uint32_t *out = w.out + 10 * threadIdx.x;
    out[0] = __ballot_sync(all, v & 1);
    out[1] = (uint32_t)__all_sync(all, threadIdx.x / 32 % 2 || (v & 1));
    out[2] = __ballot_sync(half, v & 2);
    out[3] = __reduce_add_sync(all, v);
    out[4] = __reduce_min_sync(all, v);
    out[5] = __reduce_max_sync(all, v);
    out[6] = (uint32_t)__reduce_min_sync(all, (int)v);
    out[7] = (uint32_t)__reduce_max_sync(all, (int)v);
    out[8] = __reduce_add_sync(half, v);
    __syncwarp();
    out[9] = (uint32_t)__all_sync(half, 1);
}

static void vote_expect(const uint32_t *in, uint32_t *out)
{
    for (int i = 0; i < WARP_THREADS; i++) {
        const int warp = i / 32 * 32, half = i / 16 * 16;
        uint32_t want[10] = {0, 1, 0, 0, 0xffffffffu, 0, 0x7fffffffu, 0x80000000u, 0, 1};
        for (int lane = 0; lane < 32; lane++) {
            const uint32_t v = in[warp + lane];
            want[0] |= (v & 1) << lane;
            want[1] &= (uint32_t)(warp / 32 % 2) | (v & 1);
            want[3] += v;
            want[4] = v < want[4] ? v : want[4];
            want[5] = v > want[5] ? v : want[5];
            want[6] = (int32_t)v < (int32_t)want[6] ? v : want[6];
            want[7] = (int32_t)v > (int32_t)want[7] ? v : want[7];
            if ((warp + lane) / 16 * 16 == half) {
                want[2] |= (v >> 1 & 1) << lane;
                want[8] += v;
            }
        }
        memcpy(out + 10 * i, want, sizeof want);
    }
}

/* elect.sync: one thread of each warp, and each time the same. */
static __global__ void one_kernel(struct words w)
{
#if PTX_BULK
    const uint32_t first = __ballot_sync(0xffffffffu, ptx_one()),
                   again = __ballot_sync(0xffffffffu, ptx_one());
    w.out[threadIdx.x] = (uint32_t)__popc(first) + (first == again);
#endif
}

static void one_expect(const uint32_t *in, uint32_t *out)
{
    (void)in;
    for (int i = 0; i < WARP_THREADS; i++) {
        out[i] = 2;
    }
}

/* Barriers of all threads, and of some beside others that do not wait for them. */
static __global__ void block_barriers_kernel(struct words w)
{
    __shared__ uint32_t told[WARP_THREADS];
    const uint32_t i = threadIdx.x;
    told[i] = w.in[i];
    __syncthreads();
    const uint32_t other = told[WARP_THREADS - 1 - i];
    __syncthreads();
    told[i] = other + 1;
    uint32_t count = 0;
    if (i < WARP_THREADS / 2) {
        ptx_some_barrier<1, WARP_THREADS / 2>();
        w.out[i] = told[WARP_THREADS / 2 - 1 - i];
        count = (uint32_t)ptx_some_count<2, WARP_THREADS / 2>(w.in[i] & 1);
    } else {
        ptx_some_barrier<3, WARP_THREADS / 2>();
        w.out[i] = told[WARP_THREADS / 2 + WARP_THREADS - 1 - i];
    }
    w.out[WARP_THREADS + i] = count;
    w.out[2 * WARP_THREADS + i] = (uint32_t)__syncthreads_count(w.in[i] & 2);
}

static void block_barriers_expect(const uint32_t *in, uint32_t *out)
{
    const int half = WARP_THREADS / 2;
    uint32_t n = 0, all = 0;
    for (int i = 0; i < WARP_THREADS; i++) {
        n += i < half ? in[i] & 1 : 0;
        all += in[i] >> 1 & 1;
    }
    for (int i = 0; i < WARP_THREADS; i++) {
        const int from = i < half ? half - 1 - i : half + WARP_THREADS - 1 - i;
        out[i] = in[WARP_THREADS - 1 - from] + 1;
        out[WARP_THREADS + i] = i < half ? n : 0;
        out[2 * WARP_THREADS + i] = all;
    }
}

/* Counters of a block and of all, that many threads add to; each gets a number of its own. */
static __global__ void atomic_kernel(struct words w)
{
    __shared__ uint32_t n, bits, taken[WARP_THREADS / 32];
    if (threadIdx.x < WARP_THREADS / 32) {
        taken[threadIdx.x] = 0;
    }
    if (threadIdx.x == 0) {
        n = 0;
        bits = 0;
    }
    __syncthreads();
    const uint32_t mine = atomicAdd(&n, 1u);
    atomicOr(&bits, 1u << threadIdx.x % 32);
    atomicOr(&taken[mine / 32], 1u << mine % 32);
    atomicAdd(w.shared, w.in[blockIdx.x * WARP_THREADS + threadIdx.x]);
    ptx_add_to((uint64_t *)(w.shared + 2), (uint64_t)w.in[threadIdx.x] << 20);
    __syncthreads();
    if (threadIdx.x < 8) {
        w.out[blockIdx.x * 16 + threadIdx.x] = taken[threadIdx.x];
    }
    if (threadIdx.x != 0) {
        return;
    }
    w.out[blockIdx.x * 16 + 8] = n;
    w.out[blockIdx.x * 16 + 9] = bits;
    __threadfence();
    if (atomicAdd(w.shared + 1, 1u) == gridDim.x - 1) { /* the last block has what all have added */
        __threadfence();
        w.out[1000] = __ldcg(w.shared);
        w.out[1001] = __ldcg(w.shared + 2);
        w.out[1002] = __ldcg(w.shared + 3);
    }
}

static void atomic_expect(const uint32_t *in, uint32_t *out)
{
    uint32_t sum = 0;
    uint64_t wide = 0;
    for (int block = 0; block < 3; block++) {
        for (int i = 0; i < WARP_THREADS; i++) {
            out[block * 16 + i % 8] = 0xffffffffu;
            sum += in[block * WARP_THREADS + i];
            wide += (uint64_t)in[i] << 20;
        }
        out[block * 16 + 8] = WARP_THREADS;
        out[block * 16 + 9] = 0xffffffffu;
    }
    out[1000] = sum;
    out[1001] = (uint32_t)wide;
    out[1002] = (uint32_t)(wide >> 32);
}

#define WARP_CHECKS                                                                                    \
    {"shuffle", shuffle_kernel, shuffle_expect, 1, WARP_THREADS},                                      \
        {"vote", vote_kernel, vote_expect, 1, WARP_THREADS},                                           \
        {"one", one_kernel, one_expect, 1, WARP_THREADS, FROM_90},                                     \
        {"block_barriers", block_barriers_kernel, block_barriers_expect, 1, WARP_THREADS},             \
    {                                                                                                  \
        "atomic", atomic_kernel, atomic_expect, 3, WARP_THREADS                                        \
    }

#endif
