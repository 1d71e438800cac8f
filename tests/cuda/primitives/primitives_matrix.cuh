/* SPDX-License-Identifier: Apache-2.0
 * Checks of products (lib/ptx_matrix.cuh). Their numbers are small and whole, so that sums are exact in any order. */
#ifndef TESTS_CUDA_PRIMITIVES_PRIMITIVES_MATRIX_CUH
#define TESTS_CUDA_PRIMITIVES_PRIMITIVES_MATRIX_CUH

#include "tests/cuda/primitives/primitives.h"

/* ---- A warp ---- */

/* Operands as registers are: word i of lane l is word 32 i + l. */
static __global__ void mma_kernel(struct words w)
{
    const uint32_t lane = threadIdx.x % 32, *in = w.in + threadIdx.x / 32 * 256;
    const uint4 a = {two_small(in[lane]), two_small(in[32 + lane]), two_small(in[64 + lane]),
        two_small(in[96 + lane])};
    float d[4];
    for (int i = 0; i < 4; i++) {
        d[i] = (float)small_of(in[lane + i]);
    }
    ptx_mma(d, a, two_small(in[128 + lane]), two_small(in[160 + lane]));
    ptx_mma(d, a, two_small(in[192 + lane]), two_small(in[224 + lane]));
    for (int i = 0; i < 4; i++) {
        w.out[4 * threadIdx.x + i] = __float_as_uint(d[i]);
    }
}

/* Number (row, k) of a, (k, column) of b number `which`, as mma.m16n8k16 has them. */
static int mma_a(const uint32_t *in, int row, int k)
{
    const int lane = row % 8 * 4 + k % 8 / 2, i = row / 8 + k / 8 * 2;
    return small_of(in[32 * i + lane] >> 16 * (k % 2));
}

static int mma_b(const uint32_t *in, int which, int k, int column)
{
    return small_of(in[128 + 64 * which + 32 * (k / 8) + column * 4 + k % 8 / 2] >> 16 * (k % 2));
}

static void mma_expect(const uint32_t *all, uint32_t *out)
{
    for (int thread = 0; thread < 64; thread++) {
        const uint32_t *in = all + thread / 32 * 256;
        for (int i = 0; i < 4; i++) {
            const int lane = thread % 32, row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
            int sum = small_of(in[lane + i]);
            for (int k = 0; k < 32; k++) {
                sum += mma_a(in, row, k % 16) * mma_b(in, k / 16, k % 16, column);
            }
            out[4 * thread + i] = word_of((float)sum);
        }
    }
}

static __global__ void mma_bytes_kernel(struct words w)
{
    const uint32_t lane = threadIdx.x;
    const uint4 a = {w.in[lane], w.in[32 + lane], w.in[64 + lane], w.in[96 + lane]};
    int32_t d[4];
    for (int i = 0; i < 4; i++) {
        d[i] = (int32_t)w.in[i * 32 + lane];
    }
    ptx_mma_bytes(d, a, w.in[128 + lane], w.in[160 + lane]);
    for (int i = 0; i < 4; i++) {
        w.out[4 * lane + i] = (uint32_t)d[i];
    }
}

static void mma_bytes_expect(const uint32_t *in, uint32_t *out)
{
    for (int lane = 0; lane < 32; lane++) {
        for (int i = 0; i < 4; i++) {
            const int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
            uint32_t sum = in[i * 32 + lane];
            for (int k = 0; k < 32; k++) {
                const int t = k % 16 / 4, by = 8 * (k % 4);
                const int8_t a = (int8_t)(in[32 * (row / 8 + k / 16 * 2) + row % 8 * 4 + t] >> by),
                             b = (int8_t)(in[128 + 32 * (k / 16) + column * 4 + t] >> by);
                sum += (uint32_t)(a * b);
            }
            out[4 * lane + i] = sum;
        }
    }
}

/* ldmatrix of rows that lie in any order. */
static __global__ void blocks_kernel(struct words w)
{
    __shared__ __align__(16) uint4 rows[64];
    const int i = (int)threadIdx.x;
    rows[i] = ((const uint4 *)w.in)[i];
    __syncthreads();
    const uint4 plain = ptx_blocks(rows + (i * 5 + 3) % 64),
                transposed = ptx_blocks_transposed(rows + (i * 3 + 7) % 64);
    ((uint4 *)w.out)[2 * i] = plain;
    ((uint4 *)w.out)[2 * i + 1] = transposed;
}

static void blocks_expect(const uint32_t *in, uint32_t *out)
{
    const uint16_t *halves = (const uint16_t *)in;
    for (int thread = 0; thread < 64; thread++) {
        const int warp = thread / 32 * 32, g = thread % 32 / 4, t = thread % 4;
        for (int i = 0; i < 4; i++) {
            const uint16_t *row = halves + ((warp + 8 * i + g) * 5 + 3) % 64 * 8;
            const uint16_t *first = halves + ((warp + 8 * i + 2 * t) * 3 + 7) % 64 * 8,
                           *second = halves + ((warp + 8 * i + 2 * t + 1) * 3 + 7) % 64 * 8;
            out[8 * thread + i] = row[2 * t] | (uint32_t)row[2 * t + 1] << 16;
            out[8 * thread + 4 + i] = first[g] | (uint32_t)second[g] << 16;
        }
    }
}

/* ---- Four warps ---- */

enum { GROUP_K = 32 /* two steps */, GROUP_MOST = 144 };

/* Number (k, column) of b; of a see mma_a: warp w's registers for step s are the words from 128 (4 s + w) on. */
static inline __host__ __device__ int group_b(const uint32_t *in, int k, int column)
{
    return small_of(in[2048 + k * GROUP_MOST + column]);
}

/* b as blocks of 8 x 8: those of a step of k beside each other, then the columns, then the next step. */
static __device__ __forceinline__ void put_blocks(uint16_t *to, const uint32_t *in, int n)
{
    for (int i = (int)threadIdx.x; i < GROUP_K * n; i += 128) {
        const int k = i % GROUP_K, column = i / GROUP_K;
        to[(k / 16 * (n / 8) + column / 8) * 128 + k % 16 / 8 * 64 + column % 8 * 8 + k % 8] =
            (uint16_t)bf16_bits(group_b(in, k, column));
    }
}

/* b as lines of 64 numbers of k, whose pieces change places. */
static __device__ __forceinline__ void put_lines(uint16_t *to, const uint32_t *in, int n)
{
    for (int i = (int)threadIdx.x; i < GROUP_K * n; i += 128) {
        const int k = i % GROUP_K, column = i / GROUP_K;
        to[column * 64 + (k / 8 ^ column % 8) * 8 + k % 8] =
            (uint16_t)bf16_bits(group_b(in, k, column));
    }
}

/* b as lines of 64 columns; the next 64 columns `across` numbers on, lines of the next k beside each other. */
static __device__ __forceinline__ void put_transposed(
    uint16_t *to, const uint32_t *in, int n, int across)
{
    for (int i = (int)threadIdx.x; i < GROUP_K * n; i += 128) {
        const int k = i % GROUP_K, column = i / GROUP_K;
        to[column / 64 * across + k * 64 + (column % 64 / 8 ^ k % 8) * 8 + column % 8] =
            (uint16_t)bf16_bits(group_b(in, k, column));
    }
}

template <int N> static __device__ __forceinline__ void group_end(const struct words &w, float (&d)[N])
{
    ptx_group_end();
    ptx_group_wait(d);
    for (int i = 0; i < N; i++) {
        w.out[threadIdx.x * N + (unsigned)i] = __float_as_uint(d[i]);
    }
}

static __device__ __forceinline__ uint4 group_a(const uint32_t *in, int step)
{
    const uint32_t *at = in + 128 * (4 * step + (int)threadIdx.x / 32) + threadIdx.x % 32;
    return {two_small(at[0]), two_small(at[32]), two_small(at[64]), two_small(at[96])};
}

/* What was written by threads is read by products: a fence of the other kind, and a barrier. */
static __device__ __forceinline__ void group_ready()
{
    ptx_copies_follow();
    __syncthreads();
}

enum group_way { AS_BLOCKS, AS_LINES, ADDED };

template <int N, int WAY> static __global__ void __launch_bounds__(128) group_kernel(struct words w)
{
#if PTX_GROUPS
    PTX_NEEDS_GROUPS;
    PTX_DYNAMIC_SHARED(uint16_t, b, 1024);
    float d[N / 2];
    if (WAY == AS_LINES) {
        put_lines(b, w.in, N);
    } else {
        put_blocks(b, w.in, N);
    }
    for (int i = 0; i < N / 2; i++) {
        d[i] = (float)i;
    }
    group_ready();
    const uint64_t at = WAY == AS_LINES ? ptx_group_lines(b, 16, 1024) : ptx_group_operand(b, 256);
    const uint4 first = group_a(w.in, 0), second = group_a(w.in, 1);
    ptx_group_begin();
    ptx_group_mma(d, first, at, WAY == ADDED);
    ptx_group_mma(d, second, at + (WAY == AS_LINES ? 2 : N * 2), 1);
    group_end(w, d);
#endif
}

static __global__ void __launch_bounds__(128) group_turned_kernel(struct words w)
{
#if PTX_GROUPS
    PTX_NEEDS_GROUPS;
    PTX_DYNAMIC_SHARED(uint16_t, b, 1024);
    float d[64];
    put_transposed(b, w.in, 128, 64 * GROUP_K);
    for (int i = 0; i < 64; i++) {
        d[i] = (float)i;
    }
    group_ready();
    const uint64_t at = ptx_group_lines(b, 128 * GROUP_K, 1024);
    const uint4 first = group_a(w.in, 0), second = group_a(w.in, 1);
    ptx_group_begin();
    ptx_group_mma_transposed(d, first, at, 1);
    ptx_group_mma_transposed(d, second, at + 2048 / 16, 1);
    group_end(w, d);
#endif
}

template <int N, bool ADDED_TO> static void group_expect(const uint32_t *in, uint32_t *out)
{
    for (int thread = 0; thread < 128; thread++) {
        const int lane = thread % 32;
        for (int i = 0; i < N / 2; i++) {
            const int row = lane / 4 + i % 4 / 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
            int sum = ADDED_TO ? i : 0;
            for (int k = 0; k < GROUP_K; k++) {
                sum +=
                    mma_a(in + 128 * (k / 16 * 4 + thread / 32), row, k % 16) * group_b(in, k, column);
            }
            out[thread * (N / 2) + i] = word_of((float)sum);
        }
    }
}

/* setmaxnreg: a team gives registers away, two take them, and both go on. */
static __global__ void __launch_bounds__(384, 1) registers_kernel(struct words w)
{
    const uint32_t v = w.in[threadIdx.x];
    if (threadIdx.x < 128) {
        ptx_registers_less<40>();
        w.out[threadIdx.x] = v + 1;
    } else {
        ptx_registers_more<232>();
        w.out[threadIdx.x] = v + 2;
    }
}

static void registers_expect(const uint32_t *in, uint32_t *out)
{
    for (uint32_t i = 0; i < 384; i++) {
        out[i] = in[i] + (i < 128 ? 1 : 2);
    }
}

#define GROUP_CHECK(n)                                                                                 \
    {"group_mma " #n, group_kernel<n, AS_BLOCKS>, group_expect<n, false>, 1, 128, ONLY_90, 0, 0,       \
        false, 32768},                                                                                 \
    {                                                                                                  \
        "group_mma added " #n, group_kernel<n, ADDED>, group_expect<n, true>, 1, 128, ONLY_90, 0, 0,   \
            false, 32768                                                                               \
    }
#define MATRIX_CHECKS                                                                                  \
    {"mma", mma_kernel, mma_expect, 1, 64}, {"mma_bytes", mma_bytes_kernel, mma_bytes_expect, 1, 32},  \
        {"blocks", blocks_kernel, blocks_expect, 1, 64}, GROUP_CHECK(16), GROUP_CHECK(32),             \
        GROUP_CHECK(40), GROUP_CHECK(64), GROUP_CHECK(72), GROUP_CHECK(80), GROUP_CHECK(128),          \
        GROUP_CHECK(144),                                                                              \
        {"group_lines", group_kernel<64, AS_LINES>, group_expect<64, false>, 1, 128, ONLY_90, 0, 0,    \
            false, 32768},                                                                             \
        {"group_transposed", group_turned_kernel, group_expect<128, true>, 1, 128, ONLY_90, 0, 0,      \
            false, 32768},                                                                             \
    {                                                                                                  \
        "registers", registers_kernel, registers_expect, 1, 384                                        \
    }

#endif
