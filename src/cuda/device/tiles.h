/* SPDX-License-Identifier: Apache-2.0
 * The order of weights in device memory.
 *
 * A matrix [rows][cols] of bf16 is cut into tiles of 16 rows and 16 columns, zero where they reach over the edge.
 * Tile (i, k) is the 512 bytes at tiles + (i * n_k_tiles + k) * 512, in the order in which mma.m16n8k16 wants its A
 * operand: lane l of a warp finds its four registers in 16 consecutive bytes, l * 16 from the tile's start. With g =
 * l / 4 and t = l % 4 these are
 *     {(g, 2t), (g, 2t+1)}, {(g+8, 2t), (g+8, 2t+1)}, {(g, 2t+8), (g, 2t+9)}, {(g+8, 2t+8), (g+8, 2t+9)}.
 * So one row tile (16 rows, all columns) is one contiguous stream, and a warp reads it with one 16-byte load a
 * thread and tile, without shared memory.
 *
 * Lanes are the 8 columns of the B operand, two for each vector: its upper bf16 half and what is left of it, so that
 * bf16 weights are multiplied with activations of 16 bits of mantissa. Column 2 v is the upper, 2 v + 1 the lower
 * part of vector v; in the result both stand in the same thread.
 *
 * Packed weights (weights/pack.h) have units of 16 rows and 32 columns, two tiles, with a scale for each row. A unit is
 * its codes, in which lane l finds for columns 4t .. 4t+3 and 16+4t .. 16+4t+3 of rows g and g+8
 *     8 bits   16 bytes: the first four columns of row g, the same of row g+8, then the other four of both: the order
 *              of mma.m16n8k32, which multiplies bytes
 *     4 bits   8 bytes, a word for each four columns. Bits 4 i .. 4 i + 3 of its lower and of its upper half are 8 +
 *              the codes of neighbouring columns: i = 0 the first two of row g, 1 of row g+8, 2 and 3 the second two
 * and behind them 16 scales in bf16, of rows 0, 8, 1, 9 .. 7, 15. Where tiles of bf16 have columns 2t, 2t+1, 2t+8 and
 * 2t+9, units have 4t .. 4t+3; nothing else differs for the tensor cores, which multiply the codes as bf16. */
#ifndef CUDA_DEVICE_TILES_H
#define CUDA_DEVICE_TILES_H

#include <stdint.h>

enum {
    CUDA_TILE = 16,
    CUDA_TILE_BYTES = 512,
    CUDA_TILE_VECTORS = 4, /* of 8 columns */
    CUDA_UNIT_TILES = 2,   /* of a unit of packed weights */
    CUDA_Q8_CODES = 512,   /* bytes of a unit's codes */
    CUDA_Q4_CODES = 256,
    CUDA_UNIT_SCALES = 32, /* bytes of the scales behind them */
};

/* How a matrix lies in device memory. */
enum cuda_format { CUDA_BF16, CUDA_Q8, CUDA_Q4 };

/* Bytes of a row tile that is n_k_tiles long. */
static inline int64_t cuda_row_bytes(enum cuda_format format, int n_k_tiles)
{
    const int64_t units = (n_k_tiles + CUDA_UNIT_TILES - 1) / CUDA_UNIT_TILES;
    return format == CUDA_BF16
               ? (int64_t)n_k_tiles * CUDA_TILE_BYTES
               : units * ((format == CUDA_Q8 ? CUDA_Q8_CODES : CUDA_Q4_CODES) + CUDA_UNIT_SCALES);
}

/* The next multiple of CUDA_TILE. */
static inline int cuda_padded(int n)
{
    return (n + CUDA_TILE - 1) / CUDA_TILE * CUDA_TILE;
}

#endif
