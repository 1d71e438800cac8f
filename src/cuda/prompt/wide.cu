/* SPDX-License-Identifier: Apache-2.0
 * Products of many vectors (wide.h). As in graph/linear.cu the warps of a block split the columns by
 * the matrix alone, and their parts are added in order: an output is summed by the same instructions
 * in the same order, whatever the shape of the tile. Each warp brings its own tiles of weights and
 * operand through its own ring in shared memory; warps reach a barrier only at the end. */
#include "cuda/parts/norm.cuh"
#include "cuda/parts/tile.cuh"
#include "cuda/prompt/wide.cuh"

namespace {

enum {
    PREPARE_THREADS = 256,
    MANY_TILES = 64, /* of columns: more than this are split over 16 warps, and not 8 */
    SPLIT_SHAPES = 4,
};

/* ---- Operands ---- */

struct prepare {
    struct cuda_linear p;
    void *operand;
    int n_groups;
    float *scales;
};

/* The factor of the norm of one vector from the squares of its tiles, [tile][4], by the first threads of a block. */
template <int FORMAT, int N_WARPS>
__device__ float find_block_scale(const struct cuda_linear &p, const float *squares)
{
    __shared__ float parts[N_WARPS];
    const int me = (int)threadIdx.x, n_k = p.matrix.n_k_tiles, each = tile_each<FORMAT>(n_k, N_WARPS);
    if (me < N_WARPS * 4) {
        const int begin = me / 4 * each, end = min(begin + each, n_k);
        float sum = 0;
        for (int tile = begin; tile < end; tile++) {
            sum = __fadd_rn(sum, squares[tile * 4 + me % 4]);
        }
        sum = norm_add_columns(sum);
        if (me % 4 == 0) {
            parts[me / 4] = sum;
        }
    }
    __syncthreads();
    float sum = 0;
#pragma unroll
    for (int w = 0; w < N_WARPS; w++) {
        sum += parts[w];
    }
    return norm_factor(sum, p.matrix.cols, p.eps);
}

/* Where the operand of packed weights has the scales of its vectors: [units][groups of vectors][CUDA_TILE_VECTORS]. */
__device__ __forceinline__ int64_t scales_piece(int n_k_tiles, int n_groups)
{
    return (int64_t)((n_k_tiles + CUDA_WIDE_SLAB - 1) / CUDA_WIDE_SLAB) * n_groups * SLAB_PIECES;
}

/* Four columns of vector v, rounded; one of their eight threads has the scale to store. */
template <int FORMAT>
__device__ __forceinline__ void store_rounded(
    const struct prepare &task, int v, int tile, int t, float2 x0, float2 x1)
{
    const int n_k = task.p.matrix.n_k_tiles;
    const float scale = tile_round<FORMAT>(x0, x1);
    uint32_t *to = (uint32_t *)((uint16_t *)task.operand +
                                operand_place(task.n_groups, v, tile * CUDA_TILE + 2 * t));
    if (tile / CUDA_UNIT_TILES * CUDA_UNIT_TILES >= n_k) {
        return;
    }
    to[0] = tile_part<FORMAT>(x0.x, x0.y, false);
    to[4] = tile_part<FORMAT>(x0.x, x0.y, true);
    to[32] = tile_part<FORMAT>(x1.x, x1.y, false);
    to[36] = tile_part<FORMAT>(x1.x, x1.y, true);
    if (t == 0 && tile % CUDA_UNIT_TILES == 0) {
        float *scales = (float *)((uint4 *)task.operand + scales_piece(n_k, task.n_groups));
        scales[(int64_t)tile / CUDA_UNIT_TILES * task.n_groups * CUDA_TILE_VECTORS + v] = scale;
    }
}

/* One vector a block; a thread has four columns of a tile (tile_format). Of packed weights all threads come to each
 * step. */
template <int FORMAT, int N_WARPS>
__global__ void __launch_bounds__(PREPARE_THREADS) prepare_kernel(struct prepare task)
{
    typedef tile_format<FORMAT> F;
    PTX_DYNAMIC_SHARED(float, squares, 4);
    const struct cuda_linear &p = task.p;
    const int v = (int)blockIdx.x, n_k = p.matrix.n_k_tiles;
    const float *x = p.x + v * p.x_stride;
    ptx_let_next_begin();
    ptx_wait_for_earlier();
    for (int i = (int)threadIdx.x; i - (F::PACKED ? (int)threadIdx.x : 0) < n_k * 4;
         i += PREPARE_THREADS) {
        const int col = i / 4 * CUDA_TILE + F::EACH * (i % 4);
        float2 x0 = make_float2(0, 0), x1 = x0;
        if (!F::PACKED || i < n_k * 4) {
            x0 = *(const float2 *)(x + col), x1 = *(const float2 *)(x + col + F::OTHER);
            if (p.norm) {
                squares[i] = norm_squares(x0, x1);
                const float2 n0 = *(const float2 *)(p.norm + col),
                             n1 = *(const float2 *)(p.norm + col + F::OTHER);
                x0 = make_float2(__fmul_rn(x0.x, n0.x), __fmul_rn(x0.y, n0.y));
                x1 = make_float2(__fmul_rn(x1.x, n1.x), __fmul_rn(x1.y, n1.y));
            }
        }
        if constexpr (F::PACKED) {
            store_rounded<FORMAT>(task, v, i / 4, i % 4, x0, x1);
        } else {
            operand_store_two(task.operand, task.n_groups, v, col, x0.x, x0.y);
            operand_store_two(task.operand, task.n_groups, v, col + 8, x1.x, x1.y);
        }
    }
    if (!p.norm) {
        return;
    }
    __syncthreads();
    const float scale = find_block_scale<FORMAT, N_WARPS>(p, squares);
    if (threadIdx.x == 0) {
        task.scales[v] = scale;
    }
    const int row = p.map ? p.map[v] : v;
    for (int i = (int)threadIdx.x; p.normed && row >= 0 && i < p.matrix.cols; i += PREPARE_THREADS) {
        p.normed[row * p.normed_stride + i] = p.norm[i] * (x[i] * scale);
    }
}

/* ---- Products ---- */

/* A block's tile: ROWS tiles of rows, GROUPS groups of vectors, WARPS parts of the columns. A step is a unit of
 * columns; packed: the scales of its vectors, a piece a group, stand behind all else. */
template <int FORMAT, int WARPS_, int ROWS_, int GROUPS_> struct tiling {
    typedef tile_format<FORMAT> F;
    static constexpr int format = FORMAT;
    static constexpr int WARPS = WARPS_, ROWS = ROWS_, GROUPS = GROUPS_;
    static constexpr int STAGES = (WARPS == 8 ? 4 : 3) - F::PACKED; /* steps on their way */
    static constexpr int EACH = F::TILES * GROUP_PIECES;            /* of a group in a step */
    static constexpr int COPIES = GROUPS * EACH / 32;
    static constexpr int SCALES_AT = ROWS * F::PIECES + GROUPS * EACH;
    static constexpr int PIECES = SCALES_AT + (F::PACKED ? GROUPS : 0); /* of a step */
    static constexpr int SHARED = WARPS * STAGES * PIECES * 16;
    /* A thread of 16 warps has 128 registers. Code for 8.x spilled some where the compiler brought all of a packed step
     * forward; it brings nothing past a __syncwarp(), and so there is one behind so many rows and groups. */
    static constexpr bool NARROW = F::PACKED && WARPS == 16 && !PTX_BULK;
    static constexpr int ROWS_AT_ONCE = NARROW ? 2 : ROWS, GROUPS_AT_ONCE = NARROW ? 4 : GROUPS;
    static_assert(ROWS % ROWS_AT_ONCE == 0, "rows at once are all of this tile");
    static_assert(STAGES * PIECES * 16 >= ROWS * GROUPS * 256, "the sums take the place of the ring");
};

/* Where this thread's pieces of a step come from. Found once: what is reckoned in a step delays its products. */
template <class S> struct bringer {
    const uint4 *weights[S::ROWS];   /* of the step at which they stand */
    const uint4 *operand[S::COPIES]; /* of the first */
    const uint4 *scales;             /* packed: of the first */
    int tile;                        /* of columns: the first of the step */
    int slab;                        /* pieces from one slab to the next */
};

/* Row tiles past the last are read as the last; their sums go nowhere. */
template <class S>
__device__ __forceinline__ void begin_bringer(
    struct bringer<S> &b, const struct wide_task &task, int begin)
{
    const struct cuda_matrix &m = task.p.matrix;
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int r = 0; r < S::ROWS; r++) {
        const int row = min((int)blockIdx.y * S::ROWS + r, m.n_row_tiles - 1);
        const int units = (m.n_k_tiles + S::F::TILES - 1) / S::F::TILES;
        b.weights[r] =
            (const uint4 *)m.tiles + ((int64_t)row * units + begin / S::F::TILES) * S::F::PIECES + lane;
    }
#pragma unroll
    for (int e = 0; e < S::COPIES; e++) {
        const int group = (int)blockIdx.x * S::GROUPS + 32 / S::EACH * e + lane / S::EACH;
        b.operand[e] = task.operand + (int64_t)group * SLAB_PIECES + lane % S::EACH;
    }
    b.tile = begin;
    b.slab = task.n_groups * SLAB_PIECES;
    b.scales =
        task.operand + scales_piece(m.n_k_tiles, task.n_groups) + (int)blockIdx.x * S::GROUPS + lane;
}

/* The step `ahead` of the one at which the pointers stand, into a stage of this warp's ring. */
template <class S>
__device__ __forceinline__ void ask_for_weights(const struct bringer<S> &b, uint4 *stage, int ahead)
{
    uint4 *to = stage + threadIdx.x % 32;
#pragma unroll
    for (int r = 0; r < S::ROWS; r++) {
#pragma unroll
        for (int piece = 0; piece < S::F::PIECES; piece += 32) {
            if (piece + 32 <= S::F::PIECES || (int)threadIdx.x % 32 < S::F::PIECES - piece) {
                ptx_copy(
                    to + r * S::F::PIECES + piece, b.weights[r] + ahead * S::F::PIECES + piece, false);
            }
        }
    }
}

template <class S>
__device__ __forceinline__ void ask_for_operand(const struct bringer<S> &b, uint4 *stage, int ahead)
{
    uint4 *to = stage + S::ROWS * S::F::PIECES + threadIdx.x % 32;
    const int tile = b.tile + ahead * S::F::TILES;
    const int64_t from =
        (int64_t)(tile / CUDA_WIDE_SLAB) * b.slab + tile % CUDA_WIDE_SLAB * GROUP_PIECES;
#pragma unroll
    for (int e = 0; e < S::COPIES; e++) {
        ptx_copy(to + e * 32, b.operand[e] + from, false);
    }
    if (S::F::PACKED && (int)threadIdx.x % 32 < S::GROUPS) {
        const int n_groups = b.slab / SLAB_PIECES;
        ptx_copy(stage + S::SCALES_AT + threadIdx.x % 32,
            b.scales + (int64_t)(tile / S::F::TILES) * n_groups, false);
    }
}

/* A ring further. */
template <class S> __device__ __forceinline__ void move_on(struct bringer<S> &b)
{
#pragma unroll
    for (int r = 0; r < S::ROWS; r++) {
        b.weights[r] += S::STAGES * S::F::PIECES;
    }
    b.tile += S::STAGES * S::F::TILES;
}

/* Of a step, the products of the row tiles from `row` on with all vectors. */
template <class S>
__device__ __forceinline__ void multiply_rows(
    float (&d)[S::ROWS][S::GROUPS][4], const uint4 *step, int row)
{
    const int lane = (int)threadIdx.x % 32;
    tile_operand<S::format> weights[S::ROWS_AT_ONCE];
#pragma unroll
    for (int r = 0; r < S::ROWS_AT_ONCE; r++) {
        weights[r] = tile_decode<S::format>(
            tile_take<S::format, false>(step + (row + r) * S::F::PIECES + lane, lane));
    }
    const uint4 *vectors = step + S::ROWS * S::F::PIECES + lane;
#pragma unroll
    for (int j = 0; j < S::GROUPS; j += 32 / S::EACH) {
        if (j > 0 && j % S::GROUPS_AT_ONCE == 0) {
            __syncwarp();
        }
        const uint4 b = ptx_blocks(vectors + j * S::EACH);
        if constexpr (S::F::PACKED) { /* both tiles of a group */
            const float *scales = (const float *)(step + S::SCALES_AT);
            const uint2 both[] = {make_uint2(b.x, b.y), make_uint2(b.z, b.w)};
#pragma unroll
            for (int r = 0; r < S::ROWS_AT_ONCE; r++) {
                tile_multiply(
                    d[row + r][j], weights[r], both, scales[j * CUDA_TILE_VECTORS + lane % 4]);
            }
        } else { /* a tile of two groups */
#pragma unroll
            for (int r = 0; r < S::ROWS_AT_ONCE; r++) {
                ptx_mma(d[row + r][j], weights[r], b.x, b.y);
                ptx_mma(d[row + r][j + 1], weights[r], b.z, b.w);
            }
        }
    }
}

template <class S>
__device__ __forceinline__ void multiply_step(float (&d)[S::ROWS][S::GROUPS][4], const uint4 *step)
{
#pragma unroll
    for (int row = 0; row < S::ROWS; row += S::ROWS_AT_ONCE) {
        if (row > 0) {
            __syncwarp();
        }
        multiply_rows<S>(d, step, row);
    }
}

/* Adds what the warps have, in their order, and hands the rows on. The ring is free by now. */
template <class S>
__device__ __forceinline__ void add_warps(
    uint4 *ring, const struct wide_task &task, const float (&d)[S::ROWS][S::GROUPS][4])
{
    constexpr int EACH = S::ROWS * S::GROUPS * 32; /* pairs of rows of a warp */
    constexpr int N = EACH > S::WARPS * 32 ? EACH / (S::WARPS * 32) : 1;
    float2 *sums = (float2 *)ring;
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    __syncthreads();
#pragma unroll
    for (int r = 0; r < S::ROWS; r++) {
#pragma unroll
        for (int j = 0; j < S::GROUPS; j++) {
            sums[warp * EACH + (r * S::GROUPS + j) * 32 + lane] =
                make_float2(d[r][j][0] + d[r][j][1], d[r][j][2] + d[r][j][3]);
        }
    }
    __syncthreads();
    if ((int)threadIdx.x >= EACH) {
        return;
    }
    struct results<N> all;
#pragma unroll
    for (int k = 0; k < N; k++) {
        const int i = (int)threadIdx.x + k * S::WARPS * 32;
        const int group = (int)blockIdx.x * S::GROUPS + i / 32 % S::GROUPS;
        all.tile[k] = (int)blockIdx.y * S::ROWS + i / (S::GROUPS * 32);
        all.v[k] = group * CUDA_TILE_VECTORS + i % 4;
        all.first[k] = all.second[k] = 0;
#pragma unroll
        for (int w = 0; w < S::WARPS; w++) {
            const float2 part = sums[w * EACH + i];
            all.first[k] += part.x;
            all.second[k] += part.y;
        }
    }
    store_results(task, lane / 4, all);
}

template <class S>
__global__ void __launch_bounds__(S::WARPS * 32, 1) wide_kernel(struct wide_task task)
{
    PTX_DYNAMIC_SHARED(uint4, rings, 16);
    const struct cuda_matrix &m = task.p.matrix;
    const int warp = (int)threadIdx.x / 32, each = tile_each<S::format>(m.n_k_tiles, S::WARPS);
    const int begin = warp * each, n_tiles = min(each, max(m.n_k_tiles - begin, 0));
    const int n = (n_tiles + S::F::TILES - 1) / S::F::TILES;
    uint4 *ring = rings + warp * S::STAGES * S::PIECES;
    struct bringer<S> bringer;
    begin_bringer<S>(bringer, task, begin);
#pragma unroll
    for (int i = 0; i < S::STAGES - 1; i++) {
        if (i < n) {
            ask_for_weights<S>(bringer, ring + i * S::PIECES, i);
        }
    }
    ptx_let_next_begin();
    ptx_wait_for_earlier();
#pragma unroll
    for (int i = 0; i < S::STAGES - 1; i++) {
        if (i < n) {
            ask_for_operand<S>(bringer, ring + i * S::PIECES, i);
        }
        ptx_copy_end();
    }
    float d[S::ROWS][S::GROUPS][4] = {};
    for (int from = 0; from < n; from += S::STAGES) {
#pragma unroll
        for (int k = 0; k < S::STAGES; k++) {
            if (from + k < n) {
                ptx_copy_wait<S::STAGES - 2>();
                __syncwarp(); /* all threads see the step, and are through with the one before it */
                if (from + k + S::STAGES - 1 < n) {
                    uint4 *stage = ring + (k + S::STAGES - 1) % S::STAGES * S::PIECES;
                    ask_for_weights<S>(bringer, stage, k + S::STAGES - 1);
                    ask_for_operand<S>(bringer, stage, k + S::STAGES - 1);
                }
                ptx_copy_end();
                multiply_step<S>(d, ring + k * S::PIECES);
            }
        }
        move_on<S>(bringer);
    }
    add_warps<S>(rings, task, d);
}

/* ---- Launches ---- */

template <class S> cudaError_t allow(int block_shared)
{
    return S::SHARED > block_shared ? cudaSuccess
                                    : cudaFuncSetAttribute(wide_kernel<S>,
                                          cudaFuncAttributeMaxDynamicSharedMemorySize, S::SHARED);
}

template <class S> cudaError_t start(const struct cuda_queue *q, const struct wide_task &task)
{
    const int groups = (task.p.n_vectors + CUDA_TILE_VECTORS - 1) / CUDA_TILE_VECTORS;
    dim3 grid((unsigned)((groups + S::GROUPS - 1) / S::GROUPS),
        (unsigned)((task.p.matrix.n_row_tiles + S::ROWS - 1) / S::ROWS));
    return launch(wide_kernel<S>, grid, S::WARPS * 32, q->overlaps, q->stream, task, S::SHARED);
}

/* What tiles of this shape cost: bytes that the busiest multiprocessor must bring in. */
template <class S> int64_t cost(const struct cuda_wide *w)
{
    const struct cuda_matrix &m = w->linear.matrix;
    const int64_t groups = (w->linear.n_vectors + CUDA_TILE_VECTORS - 1) / CUDA_TILE_VECTORS;
    const int64_t blocks =
        (groups + S::GROUPS - 1) / S::GROUPS * ((m.n_row_tiles + S::ROWS - 1) / S::ROWS);
    if (S::SHARED > (int)w->arch->block_shared) {
        return INT64_MAX;
    }
    return (blocks + w->arch->n_sms - 1) / w->arch->n_sms *
           (S::PIECES * 16 * (int64_t)m.n_k_tiles / S::F::TILES);
}

template <class A, class B, class C, class D>
cudaError_t start_best(
    const struct cuda_queue *q, const struct cuda_wide *w, const struct wide_task &task)
{
    const int64_t costs[] = {cost<A>(w), cost<B>(w), cost<C>(w), cost<D>(w)};
    int best = w->shape;
    for (int i = 0; w->shape < 0 && i < SPLIT_SHAPES; i++) {
        best = best < 0 || costs[i] < costs[best] ? i : best;
    }
    if (best >= SPLIT_SHAPES || costs[best] == INT64_MAX) {
        return cudaErrorInvalidValue;
    }
    return best == 0   ? start<A>(q, task)
           : best == 1 ? start<B>(q, task)
           : best == 2 ? start<C>(q, task)
                       : start<D>(q, task);
}

template <int FORMAT, int WARPS, int A, int B, int C, int D, int E, int F, int G, int H>
cudaError_t start_shape(
    const struct cuda_queue *q, const struct cuda_wide *w, const struct wide_task &task)
{
    return start_best<tiling<FORMAT, WARPS, A, B>, tiling<FORMAT, WARPS, C, D>,
        tiling<FORMAT, WARPS, E, F>, tiling<FORMAT, WARPS, G, H>>(q, w, task);
}

/* The shapes of a format's tiles. */
template <int FORMAT>
cudaError_t start_format(
    const struct cuda_queue *q, const struct cuda_wide *w, const struct wide_task &task)
{
    return w->linear.matrix.n_k_tiles > MANY_TILES
               ? start_shape<FORMAT, 16, 2, 2, 2, 4, 4, 4, 2, 8>(q, w, task)
               : start_shape<FORMAT, 8, 2, 4, 4, 4, 2, 8, 4, 8>(q, w, task);
}

template <int FORMAT> cudaError_t open_format(int block_shared)
{
    cudaFuncAttributes seen; /* asking for them loads a kernel */
    const cudaError_t results[] = {
        cudaFuncGetAttributes(&seen, prepare_kernel<FORMAT, 8>),
        cudaFuncGetAttributes(&seen, prepare_kernel<FORMAT, 16>),
        allow<tiling<FORMAT, 8, 2, 4>>(block_shared),
        allow<tiling<FORMAT, 8, 4, 4>>(block_shared),
        allow<tiling<FORMAT, 8, 2, 8>>(block_shared),
        allow<tiling<FORMAT, 8, 4, 8>>(block_shared),
        allow<tiling<FORMAT, 16, 2, 4>>(block_shared),
        allow<tiling<FORMAT, 16, 4, 4>>(block_shared),
        allow<tiling<FORMAT, 16, 2, 8>>(block_shared),
        allow<tiling<FORMAT, 16, 2, 2>>(block_shared),
    };
    for (cudaError_t result : results) {
        if (result != cudaSuccess) {
            return result;
        }
    }
    return cudaSuccess;
}

template <int FORMAT> cudaError_t prepare_format(const struct cuda_queue *q, const struct prepare &task)
{
    const int n_k = task.p.matrix.n_k_tiles;
    dim3 grid((unsigned)task.p.n_vectors);
    return n_k > MANY_TILES ? launch(prepare_kernel<FORMAT, 16>, grid, PREPARE_THREADS, q->overlaps,
                                  q->stream, task, n_k * 16)
                            : launch(prepare_kernel<FORMAT, 8>, grid, PREPARE_THREADS, q->overlaps,
                                  q->stream, task, n_k * 16);
}

} // namespace

int cuda_wide_groups(int n_vectors)
{
    const int n = (n_vectors + CUDA_TILE_VECTORS - 1) / CUDA_TILE_VECTORS;
    return (n + CUDA_WIDE_GROUP - 1) / CUDA_WIDE_GROUP * CUDA_WIDE_GROUP;
}

uint64_t cuda_wide_bytes(int n_vectors, int cols)
{
    const uint64_t slab = CUDA_TILE * CUDA_WIDE_SLAB, slabs = ((uint64_t)cols + slab - 1) / slab;
    return (uint64_t)cuda_wide_groups(n_vectors) * CUDA_TILE_VECTORS * slabs * slab * 4;
}

uint64_t cuda_wide_packed_bytes(int n_vectors, int cols)
{
    const uint64_t bytes = cuda_wide_bytes(n_vectors, cols);
    return bytes + bytes / (CUDA_TILE * CUDA_UNIT_TILES); /* 4 for as many columns as a unit has */
}

cudaError_t cuda_wide_open(const struct cuda_arch *arch)
{
    const int block_shared = (int)arch->block_shared;
    cudaError_t result = wide_tall_open(block_shared);
    result = result ? result : wide_group_open(arch);
    result = result ? result : open_format<CUDA_BF16>(block_shared);
    result = result ? result : open_format<CUDA_Q8>(block_shared);
    return result ? result : open_format<CUDA_Q4>(block_shared);
}

cudaError_t cuda_wide_prepare(const struct cuda_queue *q, const struct cuda_wide *w)
{
    struct prepare task = {w->linear, w->operand, cuda_wide_groups(w->linear.n_vectors), w->scales};
    const int format = (int)w->linear.matrix.format;
    return format == CUDA_BF16 ? prepare_format<CUDA_BF16>(q, task)
           : format == CUDA_Q8 ? prepare_format<CUDA_Q8>(q, task)
                               : prepare_format<CUDA_Q4>(q, task);
}

/* Whether the tiles of wide_tall.cu are taken: where they nearly put two on every multiprocessor, as measured. */
static bool takes_tall(const struct cuda_wide *w)
{
    return w->shape == SPLIT_SHAPES || (w->shape < 0 && w->linear.n_vectors >= CUDA_WIDE_TALL &&
                                           wide_tall_blocks(w) * 100 >= (int64_t)w->arch->n_sms * 165);
}

bool cuda_wide_by_teams(const struct cuda_wide *w)
{
    return w->shape < 0 && w->linear.matrix.format == CUDA_BF16 && wide_group_best(w) >= 0;
}

cudaError_t cuda_wide_multiply(const struct cuda_queue *q, const struct cuda_wide *w)
{
    struct wide_task task = {w->linear, w->linear.matrix.rows, (const uint4 *)w->operand, w->scales,
        w->next, w->next_k_tiles, cuda_wide_groups(w->linear.n_vectors), w->squares, w->next_norm,
        w->next_squares};
    const int format = (int)w->linear.matrix.format;
    if (format != CUDA_BF16) {
        return format == CUDA_Q8 ? start_format<CUDA_Q8>(q, w, task)
                                 : start_format<CUDA_Q4>(q, w, task);
    }
    const int group = w->shape < 0 ? wide_group_best(w) : w->shape - SPLIT_SHAPES - 1;
    if (group >= 0) {
        return wide_group_start(q, w, task, group);
    }
    if (takes_tall(w) && wide_tall_suits(w)) {
        return wide_tall_start(q, task);
    }
    return start_format<CUDA_BF16>(q, w, task);
}
