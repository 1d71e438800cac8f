/* SPDX-License-Identifier: Apache-2.0
 * Products of many vectors, for prompts and many lanes: the same as cuda_linear_queue, to the bit, but the vectors
 * are brought into the order of the tensor cores' operand once, by a kernel in front, or already by the kernel that
 * makes them, and a block's tile is several row tiles high and several groups of vectors wide.
 *
 * Operand: a group of CUDA_TILE_VECTORS vectors and a tile of 16 columns of the matrix are 256 bytes, two blocks of
 * 8 x 8 numbers, the first 8 columns of the tile and the last; row 2 v of a block is the upper part of vector v, row
 * 2 v + 1 its lower part (device/weights.h). Both kinds of products on tensor cores read such blocks from shared
 * memory. Group i, tile k lie at ((k / CUDA_WIDE_SLAB * cuda_wide_groups + i) * CUDA_WIDE_SLAB + k % CUDA_WIDE_SLAB)
 * * 256: what a block wants at once of its groups is one piece. */
#ifndef CUDA_PROMPT_WIDE_H
#define CUDA_PROMPT_WIDE_H

#include "cuda/parts/steps.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    CUDA_WIDE_GROUP = 16,  /* groups of vectors of the widest tile: operands are whole multiples */
    CUDA_WIDE_FROM = 9,    /* vectors from which on this way is the faster one */
    CUDA_WIDE_TALL = 96,   /* from here on the tiles of wide_tall.cu may be taken */
    CUDA_WIDE_SHAPES = 11, /* 4 whose warps split the columns, that one, 6 by teams of warps */
};

struct cuda_wide {
    struct cuda_linear linear;
    void *operand; /* x in operand order; cuda_wide_prepare writes it */
    float *scales; /* [n_vectors]: factors of the norm, likewise; not used without norm */
    void *next;    /* NULL, or of CUDA_GATE: the result goes here as the operand of the next product */
    int next_k_tiles; /* of that product */
    /* NULL, or where teams multiply (cuda_wide_by_teams), of CUDA_ADD: the sums go to `next` times these weights of
     * the norm in front of the next product; their squares, [n_vectors][next_k_tiles][4], to next_squares. */
    const float *next_norm;
    float *next_squares;
    /* NULL, or likewise what the product before has left: instead of cuda_wide_prepare. */
    const float *squares;
    const struct cuda_arch *arch; /* of the device: the tiles are chosen by it */
    int shape; /* of a block's tile, 0 .. CUDA_WIDE_SHAPES - 1; -1: the one that suits */
};

/* Once for a device: lets the kernels have their shared memory. */
cudaError_t cuda_wide_open(const struct cuda_arch *arch);
/* Groups of the operand of n vectors, those that fill it up included. */
int cuda_wide_groups(int n_vectors);
/* Bytes of the operand of n vectors of `cols` columns. */
uint64_t cuda_wide_bytes(int n_vectors, int cols);
/* The same where weights are packed: with the scales behind it. */
uint64_t cuda_wide_packed_bytes(int n_vectors, int cols);
/* linear.x, normed where there is a norm, into operand order; and `normed`. */
cudaError_t cuda_wide_prepare(const struct cuda_queue *queue, const struct cuda_wide *wide);
/* Whether it is a product by teams. */
bool cuda_wide_by_teams(const struct cuda_wide *wide);
/* The product of an operand that is ready. cudaErrorInvalidValue: the shape does not suit the matrix or the device.
 * */
cudaError_t cuda_wide_multiply(const struct cuda_queue *queue, const struct cuda_wide *wide);

#ifdef __cplusplus
}
#endif

#endif
