/* SPDX-License-Identifier: Apache-2.0
 * Tiles from rows of weights, a warp for each tile. */
#include "cuda/device/pack.h"
#include "cuda/device/tiles.h"
#include "cuda/lib/launch.cuh"

namespace {

enum { N_THREADS = 256 };

__device__ __forceinline__ uint32_t two_weights(const struct cuda_pack &p, int row, bool there, int col)
{
    if (!there || col >= p.cols) {
        return 0;
    }
    const uint16_t *at = p.raw + (int64_t)row * p.cols + col;
    return at[0] | (col + 1 < p.cols ? (uint32_t)at[1] << 16 : 0u);
}

__global__ void __launch_bounds__(N_THREADS) pack_kernel(struct cuda_pack p)
{
    const int64_t warp = ((int64_t)blockIdx.x * N_THREADS + threadIdx.x) / 32;
    const int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int i = (int)(warp / p.n_k_tiles), k = (int)(warp % p.n_k_tiles);
    if (i >= p.n_row_tiles) {
        return;
    }
    const int upper = p.halves ? i * 8 + g : i * CUDA_TILE + g;
    const int lower = p.halves ? p.rows + upper : upper + 8;
    const bool has_upper = upper < p.rows, has_lower = p.halves ? has_upper : lower < p.rows;
    const int col = k * CUDA_TILE + 2 * t;
    uint4 v;
    v.x = two_weights(p, upper, has_upper, col);
    v.y = two_weights(p, lower, has_lower, col);
    v.z = two_weights(p, upper, has_upper, col + 8);
    v.w = two_weights(p, lower, has_lower, col + 8);
    ((uint4 *)p.tiles)[warp * 32 + lane] = v;
}

} // namespace

cudaError_t cuda_pack_queue(const struct cuda_queue *q, const struct cuda_pack *pack)
{
    int64_t n_tiles = (int64_t)pack->n_row_tiles * pack->n_k_tiles;
    return launch(pack_kernel, dim3((unsigned)((n_tiles + N_THREADS / 32 - 1) / (N_THREADS / 32))),
        N_THREADS, false, q->stream, *pack);
}
