/* SPDX-License-Identifier: Apache-2.0
 * Weights as a checkpoint has them, into the tiles that products read. */
#ifndef CUDA_DEVICE_PACK_H
#define CUDA_DEVICE_PACK_H

#include "cuda/device/queue.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Rows of bf16 -> tiles (device/tiles.h). `halves`: raw is all of gate, then all of up, `rows` each. */
struct cuda_pack {
    const uint16_t *raw; /* [rows][cols], device */
    int rows, cols;
    bool halves;
    void *tiles;
    int n_row_tiles, n_k_tiles;
};
cudaError_t cuda_pack_queue(const struct cuda_queue *queue, const struct cuda_pack *pack);

#ifdef __cplusplus
}
#endif

#endif
