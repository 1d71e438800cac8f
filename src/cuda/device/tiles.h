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
 * part of vector v; in the result both stand in the same thread. */
#ifndef CUDA_DEVICE_TILES_H
#define CUDA_DEVICE_TILES_H

enum {
    CUDA_TILE = 16,
    CUDA_TILE_BYTES = 512,
    CUDA_TILE_VECTORS = 4, /* of 8 columns */
};

/* The next multiple of CUDA_TILE. */
static inline int cuda_padded(int n)
{
    return (n + CUDA_TILE - 1) / CUDA_TILE * CUDA_TILE;
}

#endif
