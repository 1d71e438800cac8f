/* SPDX-License-Identifier: Apache-2.0
 * Products of many vectors, for prompts and many lanes: the same as cuda_linear_queue, to the bit, but the vectors are
 * brought into the order of the tensor cores' operand once, by a kernel in front, or already by the kernel that makes
 * them, and a block's tile is several row tiles high and several groups of vectors wide.
 *
 * Operand: a group of CUDA_TILE_VECTORS vectors and a tile of 16 columns are 256 bytes, the 8 columns of the tensor
 * cores' operand with 8 bytes for each thread of a warp (cuda_weights.h); group i, tile k lie at (i * n_k_tiles + k) *
 * 256. */
#ifndef CUDA_CUDA_WIDE_H
#define CUDA_CUDA_WIDE_H

#include "cuda/cuda_steps.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    CUDA_WIDE_VECTORS = 512, /* of one product, at most */
    CUDA_WIDE_GROUP = 16,    /* groups of vectors of the widest tile: operands are whole multiples */
    CUDA_WIDE_FROM = 9,      /* vectors from which on this way is the faster one */
    CUDA_WIDE_TALL = 96,     /* from here on the tiles of cuda_wide_tall.cu may be taken */
    CUDA_WIDE_SHAPES = 5,    /* 4 whose warps split the columns, and that one */
};

struct cuda_wide {
    struct cuda_linear linear;
    void *operand; /* x in operand order; cuda_wide_prepare writes it */
    float *scales; /* [n_vectors]: factors of the norm, likewise; not used without norm */
    void *next;    /* NULL, or of CUDA_GATE: the result goes here as the operand of the next product */
    int next_k_tiles; /* of that product */
    int n_sms;        /* of the device */
    int block_shared; /* bytes */
    int shape;        /* of a block's tile, 0 .. CUDA_WIDE_SHAPES - 1; -1: the one that suits */
};

/* Once for a device: lets the kernels have their shared memory. */
cudaError_t cuda_wide_open(int block_shared);
/* Bytes of the operand of n vectors of `cols` columns. */
uint64_t cuda_wide_bytes(int n_vectors, int cols);
/* linear.x, normed where there is a norm, into operand order; and `normed`. */
cudaError_t cuda_wide_prepare(const struct cuda_queue *queue, const struct cuda_wide *wide);
/* The product of an operand that is ready. cudaErrorInvalidValue: the shape does not suit the matrix or the device. */
cudaError_t cuda_wide_multiply(const struct cuda_queue *queue, const struct cuda_wide *wide);

#ifdef __cplusplus
}
#endif

#endif
