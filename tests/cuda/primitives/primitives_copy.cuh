/* SPDX-License-Identifier: Apache-2.0
 * Checks of copies that go on by themselves and of the barriers that count them (lib/ptx_copy.cuh). */
#ifndef TESTS_CUDA_PRIMITIVES_PRIMITIVES_COPY_CUH
#define TESTS_CUDA_PRIMITIVES_PRIMITIVES_COPY_CUH

#include "tests/cuda/primitives/primitives.h"

enum { COPY_THREADS = 128, STAGES = 4, ROUNDS = 9 };

/* A ring of groups, each waited for when three more are under way. */
static __global__ void copy_kernel(struct words w)
{
    __shared__ __align__(16) uint4 ring[STAGES][COPY_THREADS];
    const uint4 *in = (const uint4 *)w.in;
    const int me = (int)threadIdx.x;
    for (int i = 0; i < STAGES - 1; i++) {
        ptx_copy(&ring[i][me], in + i * COPY_THREADS + me, i % 2);
        ptx_copy_end();
    }
    for (int i = 0; i < ROUNDS; i++) {
        if (i + STAGES - 1 < ROUNDS) {
            ptx_copy(
                &ring[(i + STAGES - 1) % STAGES][me], in + (i + STAGES - 1) * COPY_THREADS + me, i % 2);
        }
        ptx_copy_end();
        ptx_copy_wait<STAGES - 1>();
        __syncthreads();
        ((uint4 *)w.out)[i * COPY_THREADS + me] = ring[i % STAGES][COPY_THREADS - 1 - me];
        __syncthreads();
    }
    ptx_copy(&ring[0][me], in + me, false);
    ptx_copy_wait_all(); /* without an end of the group */
    ((uint4 *)w.out)[ROUNDS * COPY_THREADS + me] = ring[0][me];
}

static void copy_expect(const uint32_t *in, uint32_t *out)
{
    for (int i = 0; i < ROUNDS; i++) {
        for (int me = 0; me < COPY_THREADS; me++) {
            memcpy(out + 4 * (i * COPY_THREADS + me),
                in + 4 * (i * COPY_THREADS + COPY_THREADS - 1 - me), 16);
        }
    }
    memcpy(out + 4 * ROUNDS * COPY_THREADS, in, 16 * COPY_THREADS);
}

/* A warp hands rounds of words to another one, and the second one says when it has them. */
static __global__ void barrier_kernel(struct words w)
{
#if PTX_BULK
    __shared__ uint64_t full, empty;
    __shared__ uint32_t told[32];
    const uint32_t lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        ptx_barrier_begin(&full, 32);
        ptx_barrier_begin(&empty, 1);
        ptx_barriers_ready();
    }
    __syncthreads();
    for (uint32_t i = 0; i < ROUNDS; i++) {
        if (threadIdx.x < 32) {
            ptx_wait(&empty, (i & 1) ^ 1);
            told[lane] = w.in[32 * i + lane];
            ptx_arrive(&full);
        } else {
            if (i % 2) {
                ptx_wait_at(ptx_shared_at(&full), 1);
            } else {
                while (!ptx_has_ended(&full, 0)) {
                }
            }
            w.out[32 * i + lane] = told[31 - lane];
            __syncwarp();
            if (lane == 0) {
                ptx_arrive_at(ptx_shared_at(&empty));
            }
        }
    }
#endif
}

static void barrier_expect(const uint32_t *in, uint32_t *out)
{
    for (int i = 0; i < 32 * ROUNDS; i++) {
        out[i] = in[i / 32 * 32 + 31 - i % 32];
    }
}

/* A warp gives up waiting for a phase, and two end meanwhile. */
static __global__ void over_kernel(struct words w)
{
#if PTX_BULK
    __shared__ uint64_t barrier;
    __shared__ volatile uint32_t over;
    if (threadIdx.x == 0) {
        over = 0;
        ptx_barrier_begin(&barrier, 1);
        ptx_barriers_ready();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 0; i < 100; i++) {
            __nanosleep(1);
        }
        over = 1;
        ptx_arrive(&barrier);
        ptx_arrive(&barrier);
    } else if (threadIdx.x >= 32) {
        while (!ptx_has_ended_unless(&barrier, 0, (const uint32_t *)&over) && over == 0) {
        }
        w.out[threadIdx.x - 32] = w.in[threadIdx.x - 32] + over;
    }
#endif
}

static void over_expect(const uint32_t *in, uint32_t *out)
{
    for (int i = 0; i < 32; i++) {
        out[i] = in[i] + 1;
    }
}

/* Copies in bulk into a ring of two slots; in every other round by way of a policy, and in two pieces. */
static __global__ void bulk_kernel(struct words w)
{
#if PTX_BULK
    __shared__ __align__(128) uint32_t ring[2][512];
    __shared__ uint64_t full[2];
    if (threadIdx.x == 0) {
        ptx_barrier_begin(&full[0], 1);
        ptx_barrier_begin(&full[1], 1);
        ptx_barriers_ready();
    }
    __syncthreads();
    for (int i = 0; i < ROUNDS; i++) {
        const int slot = i % 2;
        if (threadIdx.x == 0) {
            const uint32_t *from = w.in + 512 * i;
            const uint32_t barrier = ptx_shared_at(&full[slot]);
            ptx_expect(barrier, sizeof ring[0]);
            ptx_bulk_copy(ptx_shared_at(ring[slot]), from, 512, barrier);
            ptx_bulk_copy_by(
                ring[slot] + 128, from + 128, sizeof ring[0] - 512, &full[slot], ptx_policy(i % 3));
        }
        ptx_wait(&full[slot], (uint32_t)i / 2 & 1);
        for (int k = 0; k < 4; k++) {
            w.out[512 * i + k * COPY_THREADS + (int)threadIdx.x] =
                ring[slot][k * COPY_THREADS + (int)threadIdx.x];
        }
        ptx_copies_follow();
        __syncthreads();
    }
#endif
}

static void bulk_expect(const uint32_t *in, uint32_t *out)
{
    memcpy(out, in, 4 * 512 * ROUNDS);
}

/* Each block of a cluster brings a half to both. The instruction is slow but on sm_90a. */
static __global__ void all_kernel(struct words w)
{
#if PTX_GROUPS
    __shared__ __align__(128) uint32_t halves[2][256];
    __shared__ uint64_t full, empty;
    const uint32_t rank = blockIdx.x % 2, me = threadIdx.x;
    if (me == 0) {
        ptx_barrier_begin(&full, 1);
        ptx_barrier_begin(&empty, 2 * COPY_THREADS);
        ptx_barriers_ready();
    }
    __syncthreads();
    ptx_cluster_barrier();
    for (uint32_t i = 0; i < ROUNDS; i++) {
        if (me < 32) {
            ptx_wait(&empty, (i & 1) ^ 1);
            ptx_expect_by_one(&full, sizeof halves);
            ptx_bulk_copy_to_all(halves[rank], w.in + 512 * i + 256 * rank, sizeof halves[0], &full, 3);
        }
        ptx_wait(&full, i & 1);
        for (uint32_t k = 0; k < 512; k += COPY_THREADS) {
            w.out[(blockIdx.x * ROUNDS + i) * 512 + k + me] = halves[k / 256][k % 256 + me];
        }
        ptx_copies_follow();
        ptx_arrive_at(ptx_cluster_map(ptx_shared_at(&empty), 0));
        ptx_arrive_at(ptx_cluster_map(ptx_shared_at(&empty), 1));
    }
    __syncthreads();
    ptx_cluster_barrier(); /* nobody leaves while others write to its memory */
#endif
}

static void all_expect(const uint32_t *in, uint32_t *out)
{
    for (int block = 0; block < 2; block++) {
        for (int i = 0; i < ROUNDS; i++) {
            memcpy(out + (block * ROUNDS + i) * 512, in + 512 * i, 4 * 512);
        }
    }
}

/* Words that blocks wrote, then copied in bulk behind a fence of both kinds. */
static __global__ void see_kernel(struct words w)
{
#if PTX_BULK
    __shared__ __align__(16) uint32_t got[COPY_THREADS];
    __shared__ uint64_t full;
    const uint32_t me = threadIdx.x, other = (blockIdx.x + 1) % gridDim.x;
    uint32_t *slots = w.shared + 64;
    slots[blockIdx.x * COPY_THREADS + me] = w.in[blockIdx.x * COPY_THREADS + me];
    if (me == 0) {
        ptx_barrier_begin(&full, 1);
        ptx_barriers_ready();
    }
    __syncthreads();
    if (me == 0) {
        ptx_add_last(w.shared);
        while (ptx_load_first(w.shared) < gridDim.x) {
        }
        ptx_copies_see();
        ptx_expect(ptx_shared_at(&full), sizeof got);
        ptx_bulk_copy(
            ptx_shared_at(got), slots + other * COPY_THREADS, sizeof got, ptx_shared_at(&full));
    }
    ptx_wait(&full, 0);
    w.out[blockIdx.x * COPY_THREADS + me] = got[me];
#endif
}

static void see_expect(const uint32_t *in, uint32_t *out)
{
    for (int block = 0; block < 8; block++) {
        memcpy(out + block * COPY_THREADS, in + (block + 1) % 8 * COPY_THREADS, 4 * COPY_THREADS);
    }
}

#define COPY_CHECKS                                                                                    \
    {"copy", copy_kernel, copy_expect, 1, COPY_THREADS},                                               \
        {"barrier", barrier_kernel, barrier_expect, 1, 64, FROM_90},                                   \
        {"barrier_unless", over_kernel, over_expect, 1, 64, FROM_90},                                  \
        {"bulk_copy", bulk_kernel, bulk_expect, 1, COPY_THREADS, FROM_90},                             \
        {"bulk_copy_to_all", all_kernel, all_expect, 2, COPY_THREADS, ONLY_90, 0, 2},                  \
    {                                                                                                  \
        "copies_see", see_kernel, see_expect, 8, COPY_THREADS, FROM_90, 0, 0, true                     \
    }

#endif
