/* SPDX-License-Identifier: Apache-2.0
 * What the kernels in which teams of four warps multiply (wgmma) do alike: wide_group.cu, a product a launch, and
 * layers.cu, all layers in one. Sums are added up where the kernels of fewer vectors change from one warp's part to the
 * next, so that all give the same bits. */
#ifndef CUDA_PROMPT_WIDE_TEAM_CUH
#define CUDA_PROMPT_WIDE_TEAM_CUH

#include "cuda/parts/norm.cuh"
#include "cuda/prompt/wide.cuh"

namespace {

enum {
    DEEP = CUDA_WIDE_SLAB, /* tiles of columns of a stage */
    HALF = DEEP / 2,       /* that are multiplied at once: parts are whole halves */
    FEW_TILES = 64,        /* of columns: up to these FEW_PARTS parts are summed, else MANY_PARTS */
    FEW_PARTS = 8,
    MANY_PARTS = 16,
    WEIGHT_BYTES = DEEP * CUDA_TILE_BYTES,  /* of a row tile in a stage */
    GROUP_BYTES = DEEP * GROUP_PIECES * 16, /* of a group of vectors in a stage */
};

/* Into how many parts n_k_tiles tiles of columns are split. */
__host__ __device__ __forceinline__ int parts_of(int n_k_tiles)
{
    return n_k_tiles > FEW_TILES ? MANY_PARTS : FEW_PARTS;
}

/* Whether the parts of so many tiles are whole halves of stages. */
static inline bool are_whole_halves(int n_k_tiles)
{
    return n_k_tiles % (parts_of(n_k_tiles) * HALF) == 0 && n_k_tiles % DEEP == 0;
}

#if PTX_GROUPS

/* A warp's sums of N groups of vectors: of the part that it is in, and of the parts before. */
template <int N> struct sums {
    float now[N * 4], before[N][2];
};

template <int N> __device__ __forceinline__ void end_part(struct sums<N> &s)
{
#pragma unroll
    for (int j = 0; j < N; j++) {
        s.before[j][0] += s.now[4 * j] + s.now[4 * j + 1];
        s.before[j][1] += s.now[4 * j + 2] + s.now[4 * j + 3];
    }
}

/* This thread's weights of half a stage; `tiles`: of its warp's row tile, the first of the stage. */
__device__ __forceinline__ void load_weights(
    uint4 (&weights)[HALF], const unsigned char *tiles, int half, int lane)
{
    const uint4 *from = (const uint4 *)tiles + half * HALF * TILE_PIECES + lane;
#pragma unroll
    for (int k = 0; k < HALF; k++) {
        weights[k] = from[k * TILE_PIECES];
    }
}

/* Sets half a stage's products off; `groups`: the operand's first group of the stage, in shared memory. `fresh`: a part
 * begins, and its sums with it. */
template <int N>
__device__ __forceinline__ void begin_half(
    struct sums<N> &s, const uint4 (&weights)[HALF], const unsigned char *groups, int half, bool fresh)
{
    const uint64_t operand =
        ptx_group_operand(groups, GROUP_BYTES) + (uint64_t)(half * HALF * GROUP_PIECES);
    ptx_group_begin();
#pragma unroll
    for (int k = 0; k < HALF; k++) {
        ptx_group_mma(s.now, weights[k], operand + (uint64_t)(k * GROUP_PIECES), k > 0 || !fresh);
    }
    ptx_group_end();
}

/* The squares of a part's tiles, one after the other: `each` tiles, or EACH where the kernel is built for so many. What
 * this kernel may have written itself is loaded past the L1 cache. */
template <int EACH> __device__ __forceinline__ float add_tiles(const float *squares, int each)
{
    float sum = 0;
    if constexpr (EACH == 0) {
#pragma unroll 8
        for (int tile = 0; tile < each; tile++) {
            sum = __fadd_rn(sum, squares[tile * 4]);
        }
    } else {
        float square[EACH];
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            square[i] = __ldcg(squares + i * 4);
        }
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            sum = __fadd_rn(sum, square[i]);
        }
    }
    return sum;
}

/* The sum of the squares of vector v by one warp, in the order of norm.cuh, from those of its tiles, [v][n_k][4]:
 * `parts` parts of `each` tiles. */
template <int EACH>
__device__ __forceinline__ float add_squares(
    const float *all, int v, int n_k, int parts, int each, int lane)
{
    float total = 0;
#pragma unroll 1
    for (int from = 0; from < parts; from += 8) {
        const float *squares = all + ((int64_t)v * n_k + (from + lane / 4) * each) * 4 + lane % 4;
        const float sum = norm_add_columns(add_tiles<EACH>(squares, each));
#pragma unroll
        for (int i = 0; i < 8; i++) {
            total += __shfl_sync(0xffffffffu, sum, i * 4);
        }
    }
    return total;
}

#endif

} // namespace

#endif
