/* SPDX-License-Identifier: Apache-2.0
 * Checks of words that blocks tell each other (lib/ptx_order.cuh). All blocks of a kernel are there at once. */
#ifndef TESTS_CUDA_PRIMITIVES_PRIMITIVES_ORDER_CUH
#define TESTS_CUDA_PRIMITIVES_PRIMITIVES_ORDER_CUH

#include "tests/cuda/primitives/primitives.h"

enum { ORDER_BLOCKS = 8, ORDER_THREADS = 64, TURNS = 5 };

/* Words go around the blocks, data and sign in one: the sign is the upper half. */
static __global__ void words_kernel(struct words w)
{
    const uint32_t me = threadIdx.x, block = blockIdx.x,
                   from = (block + ORDER_BLOCKS - 1) % ORDER_BLOCKS;
    uint32_t *words = w.shared;
    uint64_t *wide = (uint64_t *)(w.shared + 4096);
    uint32_t v = w.in[block * ORDER_THREADS + me] & 0xffff;
    uint64_t twice = v;
    for (uint32_t turn = 1; turn <= TURNS; turn++) {
        uint32_t *at = words + (turn * ORDER_BLOCKS + block) * ORDER_THREADS + me;
        uint64_t *wide_at = wide + (turn * ORDER_BLOCKS + block) * ORDER_THREADS + me;
        ptx_store(at, turn << 16 | v);
        ptx_store(wide_at, (uint64_t)turn << 48 | twice);
        at += ((int)from - (int)block) * ORDER_THREADS;
        wide_at += ((int)from - (int)block) * ORDER_THREADS;
        do {
            v = ptx_load(at);
        } while (v >> 16 != turn);
        do {
            twice = ptx_load(wide_at);
        } while (twice >> 48 != turn);
        v = (v + 1) & 0xffff;
        twice = (twice + v) & 0xffffffffu;
    }
    w.out[2 * (block * ORDER_THREADS + me)] = v;
    w.out[2 * (block * ORDER_THREADS + me) + 1] = (uint32_t)twice;
}

static void words_expect(const uint32_t *in, uint32_t *out)
{
    for (int block = 0; block < ORDER_BLOCKS; block++) {
        for (int me = 0; me < ORDER_THREADS; me++) {
            const int from = (block + TURNS * (ORDER_BLOCKS - 1)) % ORDER_BLOCKS;
            uint32_t v = in[from * ORDER_THREADS + me] & 0xffff, twice = v;
            for (int turn = 0; turn < TURNS; turn++) {
                v = (v + 1) & 0xffff;
                twice += v;
            }
            out[2 * (block * ORDER_THREADS + me)] = v;
            out[2 * (block * ORDER_THREADS + me) + 1] = twice;
        }
    }
}

/* Words beside each other, asked for until all are there; what is not asked for stays as it is. */
static __global__ void vectors_kernel(struct words w)
{
    const uint32_t me = threadIdx.x, block = blockIdx.x, from = (block + 1) % ORDER_BLOCKS;
    uint32_t *words = w.shared, *out = w.out + (block * ORDER_THREADS + me) * 16;
    uint64_t *wide = (uint64_t *)(w.shared + 4096);
    for (uint32_t i = 0; i < 4; i++) {
        ptx_store(words + (block * ORDER_THREADS + me) * 4 + i, w.in[me * 4 + i] | 1);
    }
    uint64_t mine[2], *at = wide + (block * ORDER_THREADS + me) * 2;
    for (uint32_t i = 0; i < 2; i++) {
        mine[i] = (uint64_t)w.in[me * 2 + i] << 32 | block << 1 | 1;
    }
    if (me % 2) {
        ptx_store_two(at, mine[0], mine[1]);
    } else {
        ptx_store(at, mine[0]);
        ptx_store(at + 1, mine[1]);
    }
    uint4 four = {0, 0, 0, 0}, stays = {1, 2, 3, 4};
    uint64_t two[2] = {0, 0}, stay[2] = {5, 6};
    uint2 pair;
    do {
        ptx_load_four_if(1, words + (from * ORDER_THREADS + me) * 4, four);
        ptx_load_four_if(0, words + (from * ORDER_THREADS + me) * 4, stays);
    } while (!(four.x & four.y & four.z & four.w & 1));
    do {
        ptx_load_two_if(me | 1, wide + (from * ORDER_THREADS + me) * 2, two);
        ptx_load_two_if(0, wide + (from * ORDER_THREADS + me) * 2, stay);
    } while (!(two[0] & two[1] & 1));
    do {
        pair = ptx_load_two(words + (from * ORDER_THREADS + (me ^ 1)) * 4 + 2);
    } while (!(pair.x & pair.y & 1));
    const uint32_t all[16] = {four.x, four.y, four.z, four.w, stays.x, stays.y, stays.z, stays.w,
        (uint32_t)two[0], (uint32_t)(two[0] >> 32), (uint32_t)two[1], (uint32_t)(two[1] >> 32),
        (uint32_t)stay[0], (uint32_t)stay[1], pair.x, pair.y};
    for (int i = 0; i < 16; i++) {
        out[i] = all[i];
    }
}

static void vectors_expect(const uint32_t *in, uint32_t *out)
{
    for (uint32_t i = 0; i < ORDER_BLOCKS * ORDER_THREADS; i++) {
        const uint32_t me = i % ORDER_THREADS, other = (i / ORDER_THREADS + 1) % ORDER_BLOCKS * 2 + 1;
        const uint32_t want[16] = {in[me * 4] | 1, in[me * 4 + 1] | 1, in[me * 4 + 2] | 1,
            in[me * 4 + 3] | 1, 1, 2, 3, 4, other, in[me * 2], other, in[me * 2 + 1], 5, 6,
            in[(me ^ 1) * 4 + 2] | 1, in[(me ^ 1) * 4 + 3] | 1};
        memcpy(out + 16 * i, want, sizeof want);
    }
}

/* Data and sign apart: in one direction by release and acquire, back by fences and plain words. */
static __global__ void signs_kernel(struct words w)
{
    const uint32_t me = threadIdx.x, block = blockIdx.x;
    uint32_t *data = w.shared + 64, *back = w.shared + 64 + ORDER_BLOCKS * ORDER_THREADS,
             *met = w.shared, *signs = w.shared + 1;
    data[block * ORDER_THREADS + me] = w.in[block * ORDER_THREADS + me];
    __syncthreads();
    if (me == 0) {
        ptx_add_last(met);
        while (ptx_load_first(met) < gridDim.x) {
        }
    }
    __syncthreads();
    uint32_t sum = 0;
    for (uint32_t i = 0; i < gridDim.x; i++) {
        sum += __ldcg(data + i * ORDER_THREADS + me);
    }
    back[block * ORDER_THREADS + me] = sum + block;
    __syncthreads();
    if (me == 0) {
        ptx_fence();
        ptx_store(signs + block, 1);
        while (ptx_load(signs + (block + 3) % ORDER_BLOCKS) == 0) {
        }
        ptx_fence();
    }
    __syncthreads();
    w.out[block * ORDER_THREADS + me] = __ldcg(back + (block + 3) % ORDER_BLOCKS * ORDER_THREADS + me);
}

static void signs_expect(const uint32_t *in, uint32_t *out)
{
    for (uint32_t block = 0; block < ORDER_BLOCKS; block++) {
        for (uint32_t me = 0; me < ORDER_THREADS; me++) {
            uint32_t sum = (block + 3) % ORDER_BLOCKS;
            for (uint32_t i = 0; i < ORDER_BLOCKS; i++) {
                sum += in[i * ORDER_THREADS + me];
            }
            out[block * ORDER_THREADS + me] = sum;
        }
    }
}

/* All blocks store the same numbers; no order is told by them. */
static __global__ void alike_kernel(struct words w)
{
    const uint32_t me = threadIdx.x;
    float *alike = (float *)w.shared;
    ptx_store_alike(alike + me, (float)(w.in[me] & 0xffff));
    __syncthreads();
    ptx_leads_to(alike);
    ptx_follows(alike);
    w.out[blockIdx.x * ORDER_THREADS + me] = (uint32_t)ptx_load_alike(alike + (me ^ 1));
}

static void alike_expect(const uint32_t *in, uint32_t *out)
{
    for (uint32_t i = 0; i < ORDER_BLOCKS * ORDER_THREADS; i++) {
        out[i] = in[i % ORDER_THREADS ^ 1] & 0xffff;
    }
}

/* ---- Clusters ---- */

/* Two blocks write each other's memory, words and four words, and wait for words that are not 0. */
static __global__ void cluster_kernel(struct words w)
{
#if PTX_BULK
    __shared__ __align__(16) uint32_t fours[ORDER_THREADS][4];
    __shared__ uint32_t singles[ORDER_THREADS];
    const uint32_t me = threadIdx.x, rank = blockIdx.x % 2;
    const uint32_t *in = w.in + blockIdx.x * ORDER_THREADS * 5 + me * 5;
    for (int i = 0; i < 4; i++) {
        fours[me][i] = 0;
    }
    singles[me] = 0;
    ptx_cluster_barrier_warps();
    const uint32_t four[4] = {in[0] | 1, in[1] | 1, in[2] | 1, in[3] | 1};
    ptx_cluster_store_four(fours[me], (int)rank ^ 1, four);
    ptx_cluster_store_other(&singles[me], in[4] | 1);
    uint32_t got[5], stays = 77;
    for (int i = 0; i < 5; i++) {
        const uint32_t *from = i < 4 ? &fours[me][i] : &singles[me];
        got[i] = 0;
        while (got[i] == 0) {
            if (i % 2) {
                got[i] = ptx_cluster_load(from);
            } else {
                ptx_cluster_load_if(1, from, got[i]);
            }
        }
        ptx_cluster_load_if(0, from, stays);
        w.out[(blockIdx.x * ORDER_THREADS + me) * 6 + (unsigned)i] = got[i];
    }
    w.out[(blockIdx.x * ORDER_THREADS + me) * 6 + 5] = stays;
    ptx_cluster_barrier();
#endif
}

static void cluster_expect(const uint32_t *in, uint32_t *out)
{
    for (int block = 0; block < 4; block++) {
        for (int me = 0; me < ORDER_THREADS; me++) {
            for (int i = 0; i < 5; i++) {
                out[(block * ORDER_THREADS + me) * 6 + i] =
                    in[((block ^ 1) * ORDER_THREADS + me) * 5 + i] | 1;
            }
            out[(block * ORDER_THREADS + me) * 6 + 5] = 77;
        }
    }
}

#define ORDER_CHECKS                                                                                   \
    {"words", words_kernel, words_expect, ORDER_BLOCKS, ORDER_THREADS, ANY, 0, 0, true},               \
        {"vectors", vectors_kernel, vectors_expect, ORDER_BLOCKS, ORDER_THREADS, ANY, 0, 0, true},     \
        {"signs", signs_kernel, signs_expect, ORDER_BLOCKS, ORDER_THREADS, ANY, 0, 0, true},           \
        {"alike", alike_kernel, alike_expect, ORDER_BLOCKS, ORDER_THREADS, ANY, 0, 0, true},           \
    {                                                                                                  \
        "cluster", cluster_kernel, cluster_expect, 4, ORDER_THREADS, FROM_90, 0, 2                     \
    }

#endif
