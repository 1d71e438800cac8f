/* SPDX-License-Identifier: Apache-2.0
 * Packs matrices for the frame kernel on the GPU. Comes in: bf16 tiles in device memory; goes out: packed units
 * there. */
#include "cuda/lib/launch.cuh"
#include "cuda/persistent/frame_pack.cuh"
#include "cuda/persistent/persistent.h"

enum { PACK_THREADS = 256 };

struct pack_task {
    unsigned char *to;
    const uint16_t *tiles;
    int k_units;
    int64_t n_groups;
};

static __global__ void pack_kernel(struct pack_task task)
{
    for (int64_t i = (int64_t)blockIdx.x * PACK_THREADS + threadIdx.x; i < task.n_groups;
         i += (int64_t)gridDim.x * PACK_THREADS) {
        pack_place(task.to, task.tiles, task.k_units, i);
    }
}

extern "C" uint64_t frame_pack_bytes(const struct cuda_matrix *m)
{
    return (uint64_t)m->n_row_tiles * (uint64_t)(m->cols / FRAME_UNIT_K) * FRAME_PACKED_BYTES;
}

extern "C" cudaError_t frame_pack(void *to, const struct cuda_matrix *m, cudaStream_t stream)
{
    const int k_units = m->cols / FRAME_UNIT_K;
    const struct pack_task task = {(unsigned char *)to, (const uint16_t *)m->tiles, k_units,
        (int64_t)m->n_row_tiles * k_units * 8 * 16};
    return launch(pack_kernel, dim3(1024), PACK_THREADS, false, stream, task);
}
