/* SPDX-License-Identifier: Apache-2.0
 * Weights as a model has them, into the order that products read: tiles of bf16 or units of packed ones (tiles.h). */
#ifndef CUDA_DEVICE_PACK_H
#define CUDA_DEVICE_PACK_H

#include "cuda/device/queue.h"
#include "cuda/device/tiles.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CUDA_PACK_PARTS = 3 };

/* Matrices of the same width, one under the other. `halves`: gate and up, `rows` each. */
struct cuda_pack {
    /* In device memory: rows of bf16, [rows][cols]; packed: the blocks of part after part (weights/pack.h). */
    const void *raw;
    int rows, cols;
    bool halves;
    void *tiles;
    int n_row_tiles, n_k_tiles;
    /* Packed: */
    enum cuda_format format;
    int part_rows[CUDA_PACK_PARTS];
    int scale_bytes, block_bytes; /* of a block */
};
cudaError_t cuda_pack_queue(const struct cuda_queue *queue, const struct cuda_pack *pack);

#ifdef __cplusplus
}
#endif

#endif
