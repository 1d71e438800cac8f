/* SPDX-License-Identifier: Apache-2.0
 * Tiles from rows of weights, units from packed blocks: a warp for each. */
#include "cuda/device/pack.h"
#include "cuda/lib/launch.cuh"

namespace {

enum { N_THREADS = 256 };

__device__ __forceinline__ uint32_t two_weights(const struct cuda_pack &p, int row, bool there, int col)
{
    if (!there || col >= p.cols) {
        return 0;
    }
    const uint16_t *at = (const uint16_t *)p.raw + (int64_t)row * p.cols + col;
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

enum { BLOCK_ROWS = 16 }; /* of a packed block */

/* The block that has row `row` of all parts, and which of its rows that is; NULL: there is no such row. */
__device__ const unsigned char *block_of(const struct cuda_pack &p, int row, bool there, int &r)
{
    int64_t block = 0;
    for (int part = 0; there && part < CUDA_PACK_PARTS; part++) {
        if (row < p.part_rows[part]) {
            r = row % BLOCK_ROWS;
            return (const unsigned char *)p.raw + (block + row / BLOCK_ROWS) * p.block_bytes;
        }
        row -= p.part_rows[part];
        block += (p.part_rows[part] + BLOCK_ROWS - 1) / BLOCK_ROWS;
    }
    return NULL;
}

/* Four codes from column `col` of unit u on, a multiple of four, a byte each; of 4 bits as they stand, 8 too high. */
template <int FORMAT>
__device__ uint32_t four_codes(
    const struct cuda_pack &p, const unsigned char *block, int r, int u, int col)
{
    if (!block) {
        return FORMAT == CUDA_Q8 ? 0 : 0x08080808u;
    }
    const unsigned char *group =
        block + p.scale_bytes + (int64_t)u * (FORMAT == CUDA_Q8 ? CUDA_Q8_CODES : CUDA_Q4_CODES);
    uint32_t four = 0;
    for (int i = 0; i < 4; i++) {
        const int k = col + i;
        uint32_t code;
        if (FORMAT == CUDA_Q8) {
            code = group[(k / 2 * BLOCK_ROWS + r) * 2 + k % 2];
        } else {
            const int shift = k % 8 / 2 * 4;
            code = group[((k / 8 * BLOCK_ROWS + r) * 2 + k % 2) * 2 + shift / 8] >> shift % 8 & 15u;
        }
        four |= code << 8 * i;
    }
    return four;
}

/* Four codes of a row and of the row 8 below -> the word of tiles.h. */
__device__ uint32_t word_of_codes(uint32_t row, uint32_t lower)
{
    uint32_t word = 0;
    for (int pair = 0; pair < 2; pair++) {
        for (int second = 0; second < 2; second++) {
            const int from = 16 * pair + 8 * second, to = 8 * pair + 16 * second;
            word |= (row >> from & 15u) << to | (lower >> from & 15u) << (to + 4);
        }
    }
    return word;
}

template <int FORMAT> __global__ void __launch_bounds__(N_THREADS) unit_kernel(struct cuda_pack p)
{
    const int n_units = (p.n_k_tiles + CUDA_UNIT_TILES - 1) / CUDA_UNIT_TILES;
    const int64_t warp = ((int64_t)blockIdx.x * N_THREADS + threadIdx.x) / 32;
    const int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int i = (int)(warp / n_units), u = (int)(warp % n_units);
    if (i >= p.n_row_tiles) {
        return;
    }
    constexpr int CODES = FORMAT == CUDA_Q8 ? CUDA_Q8_CODES : CUDA_Q4_CODES;
    const int upper = p.halves ? i * 8 + g : i * CUDA_TILE + g,
              lower = p.halves ? p.rows + upper : upper + 8;
    const bool has_upper = upper < p.rows, has_lower = p.halves ? has_upper : lower < p.rows;
    int r[2] = {0, 0};
    const unsigned char *blocks[2] = {
        block_of(p, upper, has_upper, r[0]), block_of(p, lower, has_lower, r[1])};
    unsigned char *unit = (unsigned char *)p.tiles + warp * (CODES + CUDA_UNIT_SCALES);
    uint32_t words[CUDA_UNIT_TILES][2];
    for (int k = 0; k < CUDA_UNIT_TILES; k++) {
        for (int half = 0; half < 2; half++) {
            words[k][half] = four_codes<FORMAT>(p, blocks[half], r[half], u, k * CUDA_TILE + 4 * t);
        }
    }
    if (FORMAT == CUDA_Q8) {
        ((uint4 *)unit)[lane] = make_uint4(words[0][0], words[0][1], words[1][0], words[1][1]);
    } else {
        ((uint2 *)unit)[lane] = make_uint2(
            word_of_codes(words[0][0], words[0][1]), word_of_codes(words[1][0], words[1][1]));
    }
    if (t == 0) {
        for (int half = 0; half < 2; half++) {
            const unsigned char *from = blocks[half] + (u * BLOCK_ROWS + r[half]) * 2;
            ((uint16_t *)(unit + CODES))[2 * g + half] =
                blocks[half] ? (uint16_t)(from[0] | from[1] << 8) : (uint16_t)0;
        }
    }
}

} // namespace

cudaError_t cuda_pack_queue(const struct cuda_queue *q, const struct cuda_pack *pack)
{
    const int format = (int)pack->format;
    const int across = format == CUDA_BF16 ? pack->n_k_tiles
                                           : (pack->n_k_tiles + CUDA_UNIT_TILES - 1) / CUDA_UNIT_TILES;
    const int64_t n = (int64_t)pack->n_row_tiles * across;
    return launch(format == CUDA_BF16 ? pack_kernel
                  : format == CUDA_Q8 ? unit_kernel<CUDA_Q8>
                                      : unit_kernel<CUDA_Q4>,
        dim3((unsigned)((n + N_THREADS / 32 - 1) / (N_THREADS / 32))), N_THREADS, false, q->stream,
        *pack);
}
