/* SPDX-License-Identifier: Apache-2.0
 * Products of very many vectors: a block makes 64 rows of 64 vectors, and its 8 warps share what it brings to shared
 * memory. Each warp goes through all columns, and adds its sums up where the kernels of fewer vectors change
 * from one warp's part to the next: the same instructions in the same order, so the same bits. */
#include "cuda/prompt/wide.cuh"

namespace {

enum {
    WARPS = 8,
    THREADS = WARPS * 32,
    DEEP = 2, /* tiles of columns of a stage */
    SLAB_STAGES = CUDA_WIDE_SLAB / DEEP,
    STAGES = 4,
    WARP_ROWS = 2,  /* row tiles of a warp */
    FEW_TILES = 64, /* of columns: up to these 8 parts are summed, else 16 */
};

/* ROWS row tiles by GROUPS groups of vectors; warps stand in ROWS / 2 rows. */
template <int ROWS_, int GROUPS_> struct tall {
    static constexpr int ROWS = ROWS_, GROUPS = GROUPS_;
    static constexpr int HIGH = ROWS / WARP_ROWS, WARP_GROUPS = GROUPS / (WARPS / HIGH);
    static constexpr int WEIGHTS = ROWS * DEEP * TILE_PIECES, OPERAND = GROUPS * DEEP * GROUP_PIECES;
    static constexpr int PIECES = WEIGHTS + OPERAND; /* of a stage */
    static constexpr int SHARED = STAGES * PIECES * 16;
    static constexpr int BLOCKS = WARP_GROUPS > 4 ? 1 : 2; /* on a multiprocessor */
    static_assert(WEIGHTS % THREADS == 0 && OPERAND % THREADS == 0, "every thread brings as much");
};

/* Where this thread's pieces of the next stage come from. */
template <class S> struct bringer {
    const uint4 *weights[S::WEIGHTS / THREADS], *operand[S::OPERAND / THREADS];
    int64_t slab; /* pieces from the last stage of a slab to the next */
    int left;     /* stages of this slab */
};

template <class S>
__device__ __forceinline__ void begin_bringer(struct bringer<S> &b, const struct wide_task &task)
{
    const struct cuda_matrix &m = task.p.matrix;
#pragma unroll
    for (int e = 0; e < S::WEIGHTS / THREADS; e++) {
        const int piece = (int)threadIdx.x + e * THREADS, width = DEEP * TILE_PIECES;
        const int row = min((int)blockIdx.y * S::ROWS + piece / width, m.n_row_tiles - 1);
        b.weights[e] =
            (const uint4 *)m.tiles + (int64_t)row * m.n_k_tiles * TILE_PIECES + piece % width;
    }
#pragma unroll
    for (int e = 0; e < S::OPERAND / THREADS; e++) {
        const int piece = (int)threadIdx.x + e * THREADS, width = DEEP * GROUP_PIECES;
        const int group = (int)blockIdx.x * S::GROUPS + piece / width;
        b.operand[e] = task.operand + (int64_t)group * SLAB_PIECES + piece % width;
    }
    b.slab = (int64_t)task.n_groups * SLAB_PIECES - (SLAB_STAGES - 1) * DEEP * GROUP_PIECES;
    b.left = SLAB_STAGES;
}

template <class S> __device__ __forceinline__ void ask_for_weights(struct bringer<S> &b, uint4 *stage)
{
#pragma unroll
    for (int e = 0; e < S::WEIGHTS / THREADS; e++) {
        ptx_copy(stage + threadIdx.x + e * THREADS, b.weights[e], false);
        b.weights[e] += DEEP * TILE_PIECES;
    }
}

template <class S> __device__ __forceinline__ void ask_for_operand(struct bringer<S> &b, uint4 *stage)
{
#pragma unroll
    for (int e = 0; e < S::OPERAND / THREADS; e++) {
        ptx_copy(stage + S::WEIGHTS + threadIdx.x + e * THREADS, b.operand[e], false);
        b.operand[e] += b.left == 1 ? b.slab : DEEP * GROUP_PIECES;
    }
    b.left = b.left == 1 ? SLAB_STAGES : b.left - 1;
}

/* Sums of a warp: of the part that it is in, and of the parts before. */
template <class S> struct sums {
    float now[WARP_ROWS][S::WARP_GROUPS][4], before[WARP_ROWS][S::WARP_GROUPS][2];
};

template <class S>
__device__ __forceinline__ void multiply_tile(struct sums<S> &s, const uint4 *stage, int tile)
{
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const uint4 *from = stage + (warp % S::HIGH * WARP_ROWS * DEEP + tile) * TILE_PIECES + lane;
    const int group = warp / S::HIGH * S::WARP_GROUPS + lane / GROUP_PIECES;
    const uint4 *vectors =
        stage + S::WEIGHTS + (group * DEEP + tile) * GROUP_PIECES + lane % GROUP_PIECES;
    uint4 weights[WARP_ROWS];
#pragma unroll
    for (int r = 0; r < WARP_ROWS; r++) {
        weights[r] = from[r * DEEP * TILE_PIECES];
    }
#pragma unroll
    for (int j = 0; j < S::WARP_GROUPS; j += 2) {
        const uint4 b = ptx_blocks(vectors + j * DEEP * GROUP_PIECES);
#pragma unroll
        for (int r = 0; r < WARP_ROWS; r++) {
            ptx_mma(s.now[r][j], weights[r], b.x, b.y);
            ptx_mma(s.now[r][j + 1], weights[r], b.z, b.w);
        }
    }
}

template <class S> __device__ __forceinline__ void end_part(struct sums<S> &s)
{
#pragma unroll
    for (int r = 0; r < WARP_ROWS; r++) {
#pragma unroll
        for (int j = 0; j < S::WARP_GROUPS; j++) {
            float(&now)[4] = s.now[r][j];
            s.before[r][j][0] += now[0] + now[1];
            s.before[r][j][1] += now[2] + now[3];
            now[0] = now[1] = now[2] = now[3] = 0;
        }
    }
}

template <class S>
__device__ __forceinline__ void store_sums(const struct wide_task &task, const struct sums<S> &s)
{
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int r = 0; r < WARP_ROWS; r++) {
        struct results<S::WARP_GROUPS> some;
#pragma unroll
        for (int j = 0; j < S::WARP_GROUPS; j++) {
            const int group = (int)blockIdx.x * S::GROUPS + warp / S::HIGH * S::WARP_GROUPS + j;
            some.tile[j] = (int)blockIdx.y * S::ROWS + warp % S::HIGH * WARP_ROWS + r;
            some.v[j] = group * CUDA_TILE_VECTORS + lane % 4;
            some.first[j] = s.before[r][j][0];
            some.second[j] = s.before[r][j][1];
        }
        store_results(task, lane / 4, some);
    }
}

template <class S>
__global__ void __launch_bounds__(THREADS, S::BLOCKS) tall_kernel(struct wide_task task)
{
    PTX_DYNAMIC_SHARED(uint4, stages, 16);
    const int n_k = task.p.matrix.n_k_tiles, n = n_k / DEEP;
    const int parts = n_k > FEW_TILES ? 16 : 8, part = (n_k + parts - 1) / parts;
    struct bringer<S> bringer;
    begin_bringer<S>(bringer, task);
    for (int i = 0; i < STAGES - 1 && i < n; i++) {
        ask_for_weights<S>(bringer, stages + i * S::PIECES);
    }
    ptx_let_next_begin();
    ptx_wait_for_earlier();
    for (int i = 0; i < STAGES - 1; i++) {
        if (i < n) {
            ask_for_operand<S>(bringer, stages + i * S::PIECES);
        }
        ptx_copy_end();
    }
    struct sums<S> s = {};
    for (int i = 0, slot = 0, left = part; i < n; i++) {
        ptx_copy_wait<STAGES - 2>();
        __syncthreads(); /* all see the stage, and are through with the one before it */
        if (i + STAGES - 1 < n) {
            uint4 *stage = stages + (slot == 0 ? STAGES - 1 : slot - 1) * S::PIECES;
            ask_for_weights<S>(bringer, stage);
            ask_for_operand<S>(bringer, stage);
        }
        ptx_copy_end();
#pragma unroll
        for (int k = 0; k < DEEP; k++) {
            multiply_tile<S>(s, stages + slot * S::PIECES, k);
            if (--left == 0 || (k == DEEP - 1 && i == n - 1)) {
                end_part<S>(s);
                left = part;
            }
        }
        slot = slot + 1 == STAGES ? 0 : slot + 1;
    }
    store_sums<S>(task, s);
}

typedef tall<4, 16> shape;

} // namespace

bool wide_tall_suits(const struct cuda_wide *w)
{
    return w->linear.matrix.n_k_tiles % DEEP == 0 && shape::SHARED <= (int)w->arch->block_shared;
}

int64_t wide_tall_blocks(const struct cuda_wide *w)
{
    const int groups = (w->linear.n_vectors + CUDA_TILE_VECTORS - 1) / CUDA_TILE_VECTORS;
    return (int64_t)((groups + shape::GROUPS - 1) / shape::GROUPS) *
           ((w->linear.matrix.n_row_tiles + shape::ROWS - 1) / shape::ROWS);
}

cudaError_t wide_tall_start(const struct cuda_queue *q, const struct wide_task &task)
{
    const int groups = (task.p.n_vectors + CUDA_TILE_VECTORS - 1) / CUDA_TILE_VECTORS;
    dim3 grid((unsigned)((groups + shape::GROUPS - 1) / shape::GROUPS),
        (unsigned)((task.p.matrix.n_row_tiles + shape::ROWS - 1) / shape::ROWS));
    return launch(tall_kernel<shape>, grid, THREADS, q->overlaps, q->stream, task, shape::SHARED);
}

cudaError_t wide_tall_open(int block_shared)
{
    return shape::SHARED > block_shared
               ? cudaSuccess
               : cudaFuncSetAttribute(
                     tall_kernel<shape>, cudaFuncAttributeMaxDynamicSharedMemorySize, shape::SHARED);
}
