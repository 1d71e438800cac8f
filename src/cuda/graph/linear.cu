/* SPDX-License-Identifier: Apache-2.0
 * y = W x for a few vectors x on the tensor cores, weights of any format times activations in two bf16 parts
 * (parts/tile.cuh). A block makes 16 rows; its warps split the columns, and the parts are added in the order of
 * the warps. Weights are asked for before the kernel waits for the one in front of it. */
#include "cuda/graph/few.h"
#include "cuda/parts/norm.cuh"
#include "cuda/parts/tile.cuh"

namespace {

enum {
    GROUP = 4,         /* tiles of vectors that are summed over the warps at once */
    MOST_VECTORS = 32, /* of one launch */
    MOST_PACKED = 16,  /* the same with packed weights, whose units are two tiles */
};

struct linear_task {
    struct cuda_linear p;
    int rows; /* of the matrix, as y has them */
};

/* Weights before anything else is known: the first DEPTH units of a warp into registers, the others into the cache.
 * units: this thread's piece of the first; n: tiles. */
template <int FORMAT, int DEPTH>
__device__ __forceinline__ void ask_for_weights(
    tile_unit<FORMAT> (&weights)[DEPTH], const uint4 *units, int n)
{
    typedef tile_format<FORMAT> F;
#pragma unroll
    for (int i = 0; i < DEPTH; i++) {
        weights[i] = {};
        if (i * F::TILES < n) {
            weights[i] = tile_take<FORMAT, true>(units + i * F::PIECES, (int)threadIdx.x % 32);
        }
    }
    for (int i = DEPTH; i * F::TILES < n; i++) {
        if (threadIdx.x % 8 == 0 && (F::PIECES >= 32 || threadIdx.x % 32 < F::PIECES)) {
            ptx_prefetch(units + i * F::PIECES);
        }
    }
}

/* The tiles DEPTH behind those from tile c of `weights` on, which are used up and stand at `tile`. */
template <int FORMAT, int CHUNK, int DEPTH>
__device__ __forceinline__ void ask_for_more(
    tile_unit<FORMAT> (&weights)[DEPTH], const uint4 *units, int tile, int n, int c)
{
    typedef tile_format<FORMAT> F;
#pragma unroll
    for (int i = 0; i < CHUNK / F::TILES; i++) {
        const bool more = tile + i * F::TILES + DEPTH * F::TILES < n;
        const uint4 *unit = units + (tile + i * F::TILES + DEPTH * F::TILES) / F::TILES * F::PIECES;
        weights[c / F::TILES + i] =
            more ? tile_take<FORMAT, true>(unit, (int)threadIdx.x % 32) : tile_unit<FORMAT>{};
    }
}

/* How a warp goes through its columns: so many tiles at once that the activations of all vectors fill its piece of
 * shared memory. Each thread brings ITEMS times 4 activations there: of a vector, a tile, and the thread's columns.
 * */
template <int N_TILES> struct schedule {
    static constexpr int TILES = N_TILES < 8 ? N_TILES : 8; /* of vectors, at once */
    static constexpr int GROUPS = N_TILES / TILES;          /* of vectors, one after the other */
    static constexpr int DEPTH = N_TILES < 8 ? 8 : 4;       /* weight tiles on their way */
    static constexpr int CHUNK = 8 / TILES;                 /* weight tiles at once */
    static constexpr int ITEMS = 4;
};

struct item {
    float2 x0, x1; /* columns 2t, 2t + 1 and 2t + 8, 2t + 9; packed: 4t .. 4t + 3 */
};

/* Packed: of the vectors of a warp's operand, by units; in all 4 items of 4 groups of 8 threads. */
template <int N_WARPS, bool PACKED> struct rounded {
    float scales[N_WARPS][16];
};
template <int N_WARPS> struct rounded<N_WARPS, false> {
};

template <int FORMAT, int N_WARPS, int N_TILES>
struct shared : rounded<N_WARPS, tile_format<FORMAT>::PACKED> {
    /* The operand of the tensor cores, a tile of 8 columns after the other; later the sums of a warp. */
    uint2 staged[N_WARPS][8][32];
    float squares[N_WARPS][N_TILES * CUDA_TILE_VECTORS];
};

/* Vector and tile of item e of this thread. */
template <int N_TILES> __device__ __forceinline__ int item_vector(int group, int e)
{
    typedef schedule<N_TILES> P;
    return group * P::TILES * CUDA_TILE_VECTORS + e * P::TILES + (int)threadIdx.x % 32 / (4 * P::CHUNK);
}

template <int N_TILES> __device__ __forceinline__ int item_tile()
{
    return (int)threadIdx.x / 4 % schedule<N_TILES>::CHUNK;
}

/* Activations of the tiles from `from` on of a warp whose columns begin with tile `begin`. */
template <int FORMAT, int N_TILES>
__device__ __forceinline__ void load_items(
    struct item (&items)[4], const struct cuda_linear &p, int begin, int from, int n, int group)
{
    typedef tile_format<FORMAT> F;
    const int tile = from + item_tile<N_TILES>(),
              col = (begin + tile) * CUDA_TILE + F::EACH * ((int)threadIdx.x % 4);
#pragma unroll
    for (int e = 0; e < schedule<N_TILES>::ITEMS; e++) {
        const int v = item_vector<N_TILES>(group, e);
        items[e].x0 = items[e].x1 = make_float2(0, 0);
        if (v < p.n_vectors && tile < n) {
            const float *x = p.x + v * p.x_stride + col;
            items[e].x0 = *(const float2 *)x;
            items[e].x1 = *(const float2 *)(x + F::OTHER);
        }
    }
}

/* The weights of the norm for the same columns. */
template <int FORMAT, int N_TILES>
__device__ __forceinline__ struct item load_norm(
    const struct cuda_linear &p, int begin, int from, int n)
{
    typedef tile_format<FORMAT> F;
    const int tile = from + item_tile<N_TILES>(),
              col = (begin + tile) * CUDA_TILE + F::EACH * ((int)threadIdx.x % 4);
    struct item norm = {make_float2(0, 0), make_float2(0, 0)};
    if (tile < n) {
        norm.x0 = *(const float2 *)(p.norm + col);
        norm.x1 = *(const float2 *)(p.norm + col + F::OTHER);
    }
    return norm;
}

/* Puts items where the tensor cores' operand is read; with a norm, its weights go into x, and the squares of x are
 * added up tile after tile. All steps are rounded as written, so that every number of vectors gives the same. */
template <int FORMAT, int N_TILES, bool NORM>
__device__ __forceinline__ void stage_items(uint2 (&staged)[8][32], struct item (&items)[4],
    const struct item &norm, float (&square)[4], float *scales)
{
    typedef schedule<N_TILES> P;
    const int lane = (int)threadIdx.x % 32, t = lane % 4, tile = item_tile<N_TILES>();
#pragma unroll
    for (int e = 0; e < P::ITEMS; e++) {
        float2 x0 = items[e].x0, x1 = items[e].x1;
        if (NORM) {
            const float s = norm_squares(x0, x1);
#pragma unroll
            for (int i = 0; i < P::CHUNK; i++) {
                int from = lane / (4 * P::CHUNK) * (4 * P::CHUNK) + i * 4 + t;
                square[e] = __fadd_rn(square[e], __shfl_sync(0xffffffffu, s, from));
            }
            x0 = make_float2(__fmul_rn(x0.x, norm.x0.x), __fmul_rn(x0.y, norm.x0.y));
            x1 = make_float2(__fmul_rn(x1.x, norm.x1.x), __fmul_rn(x1.y, norm.x1.y));
        }
        const int v = item_vector<N_TILES>(0, e);
        if constexpr (tile_format<FORMAT>::PACKED) {
            const float scale = tile_round<FORMAT>(x0, x1);
            if (lane % 8 == 0) {
                scales[tile / 2 * P::TILES * CUDA_TILE_VECTORS + v] = scale;
            }
        }
        uint2 *to = staged[tile * P::TILES + v / CUDA_TILE_VECTORS] + v % CUDA_TILE_VECTORS * 8 + t;
        to[0] = make_uint2(tile_part<FORMAT>(x0.x, x0.y, false), tile_part<FORMAT>(x1.x, x1.y, false));
        to[4] = make_uint2(tile_part<FORMAT>(x0.x, x0.y, true), tile_part<FORMAT>(x1.x, x1.y, true));
    }
}

/* A warp's part of the sums of squares. */
template <int FORMAT, int N_WARPS, int N_TILES>
__device__ __forceinline__ void note_squares(
    struct shared<FORMAT, N_WARPS, N_TILES> &s, float (&square)[schedule<N_TILES>::GROUPS][4])
{
    typedef schedule<N_TILES> P;
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int group = 0; group < P::GROUPS; group++) {
#pragma unroll
        for (int e = 0; e < P::ITEMS; e++) {
            const float sum = norm_add_columns(square[group][e]);
            if (lane % (4 * P::CHUNK) == 0) {
                s.squares[threadIdx.x / 32][item_vector<N_TILES>(group, e)] = sum;
            }
        }
    }
}

/* Adds what the warps have, in their order, and hands the rows on. */
template <bool NORM, int FORMAT, int N_WARPS, int N_TILES>
__device__ __forceinline__ void add_warps(struct shared<FORMAT, N_WARPS, N_TILES> &s,
    const struct linear_task &task, const float (&d)[N_TILES][4])
{
    constexpr int N_SUMMED = N_TILES < GROUP ? N_TILES : GROUP;
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int j0 = 0; j0 < N_TILES; j0 += N_SUMMED) {
#pragma unroll
        for (int j = 0; j < N_SUMMED; j++) {
            s.staged[warp][j][lane] = make_uint2(__float_as_uint(d[j0 + j][0] + d[j0 + j][1]),
                __float_as_uint(d[j0 + j][2] + d[j0 + j][3]));
        }
        __syncthreads();
        for (int i = (int)threadIdx.x; i < N_SUMMED * 32; i += N_WARPS * 32) {
            int v = (j0 + i / 32) * CUDA_TILE_VECTORS + i % 4;
            float first = 0, second = 0;
#pragma unroll
            for (int w = 0; w < N_WARPS; w++) {
                uint2 part = s.staged[w][i / 32][i % 32];
                first += __uint_as_float(part.x);
                second += __uint_as_float(part.y);
            }
            if (v < task.p.n_vectors) {
                float scale = NORM ? norm_scale(s.squares, v, task.p.matrix.cols, task.p.eps) : 1.0f;
                finish_rows(task.p, task.rows, (int)blockIdx.x, v, i % 32 / 4, __fmul_rn(first, scale),
                    __fmul_rn(second, scale));
            }
        }
        __syncthreads();
    }
}

/* The normed vectors themselves, by one block. */
template <int FORMAT, int N_WARPS, int N_TILES>
__device__ __forceinline__ void write_normed(
    const struct shared<FORMAT, N_WARPS, N_TILES> &s, const struct cuda_linear &p)
{
    for (int v = 0; v < p.n_vectors; v++) {
        const int to = p.map ? p.map[v] : v;
        const float scale = norm_scale(s.squares, v, p.matrix.cols, p.eps);
        for (int i = (int)threadIdx.x; to >= 0 && i < p.matrix.cols; i += N_WARPS * 32) {
            p.normed[to * p.normed_stride + i] = p.norm[i] * (p.x[v * p.x_stride + i] * scale);
        }
    }
}

/* The staged activations times the weights from tile c of `weights` on. */
template <int FORMAT, int N_TILES, int DEPTH>
__device__ __forceinline__ void multiply(float (&d)[N_TILES][4],
    const tile_unit<FORMAT> (&weights)[DEPTH], const uint2 (&staged)[8][32], const float *scales, int c,
    int group)
{
    typedef schedule<N_TILES> P;
    constexpr int EACH = tile_format<FORMAT>::TILES;
    static_assert(P::CHUNK % EACH == 0, "whole units at once");
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < P::CHUNK / EACH; i++) {
        if constexpr (tile_format<FORMAT>::PACKED) {
            const struct tile_decoded w = tile_decode<FORMAT>(weights[c / EACH + i]);
#pragma unroll
            for (int j = 0; j < P::TILES; j++) {
                const uint2 b[] = {
                    staged[2 * i * P::TILES + j][lane], staged[(2 * i + 1) * P::TILES + j][lane]};
                tile_multiply(d[group * P::TILES + j], w, b,
                    scales[(i * P::TILES + j) * CUDA_TILE_VECTORS + lane % 4]);
            }
        } else {
#pragma unroll
            for (int j = 0; j < P::TILES; j++) {
                uint2 b = staged[i * P::TILES + j][lane];
                ptx_mma(d[group * P::TILES + j], weights[c + i], b.x, b.y);
            }
        }
    }
}

/* Few vectors leave registers for several blocks on a multiprocessor, so that the next kernel's weights are on their
 * way while this one ends. There are fewer where none begins before that, and where registers would spill (12.x). */
template <int FORMAT, int N_TILES, int N_WARPS, bool NORM>
__global__ void __launch_bounds__(
    N_WARPS * 32, N_TILES == 1 ? (PTX_OVERLAPS && !PTX_100_KB ? 24 : 16) / N_WARPS : 1)
    linear_kernel(struct linear_task task)
{
    typedef schedule<N_TILES> P;
    typedef tile_format<FORMAT> F;
    __shared__ struct shared<FORMAT, N_WARPS, N_TILES> s;
    const struct cuda_linear &p = task.p;
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const int each = tile_each<FORMAT>(p.matrix.n_k_tiles, N_WARPS), begin = warp * each;
    const int n = min(each, max(p.matrix.n_k_tiles - begin, 0));
    const uint4 *units = tile_at<FORMAT>(p.matrix, blockIdx.x, begin) + lane;
    tile_unit<FORMAT> weights[P::DEPTH / F::TILES];
    struct item items[4], norm = {make_float2(1, 1), make_float2(1, 1)};
    ask_for_weights<FORMAT>(weights, units, n);
    if (NORM) {
        norm = load_norm<FORMAT, N_TILES>(p, begin, 0, n);
    }
    ptx_let_next_begin();
    ptx_wait_for_earlier();

    float d[N_TILES][4] = {};
    float square[P::GROUPS][4] = {}, *scales = NULL;
    if constexpr (F::PACKED) {
        scales = s.scales[warp];
    }
    load_items<FORMAT, N_TILES>(items, p, begin, 0, n, 0);
    for (int from = 0; from < n; from += P::DEPTH) {
#pragma unroll
        for (int c = 0; c < P::DEPTH; c += P::CHUNK) {
            const int next = from + c + P::CHUNK;
            if (from + c >= n) {
                break;
            }
#pragma unroll
            for (int group = 0; group < P::GROUPS; group++) {
                stage_items<FORMAT, N_TILES, NORM>(s.staged[warp], items, norm, square[group], scales);
                __syncwarp();
                bool more = group + 1 < P::GROUPS;
                load_items<FORMAT, N_TILES>(
                    items, p, begin, more ? from + c : next, n, more ? group + 1 : 0);
                if (NORM && !more) {
                    norm = load_norm<FORMAT, N_TILES>(p, begin, next, n);
                }
                multiply<FORMAT>(d, weights, s.staged[warp], scales, c, group);
                __syncwarp();
            }
            ask_for_more<FORMAT, P::CHUNK>(weights, units, from + c, n, c);
        }
    }
    if (NORM) {
        note_squares(s, square);
    }
    add_warps<NORM>(s, task, d);
    if (NORM && p.normed && blockIdx.x == 0) {
        write_normed(s, p);
    }
}

template <int FORMAT, int N_TILES, int N_WARPS>
cudaError_t start(const struct cuda_queue *q, const struct linear_task &task)
{
    dim3 grid((unsigned)task.p.matrix.n_row_tiles);
    return task.p.norm ? launch(linear_kernel<FORMAT, N_TILES, N_WARPS, true>, grid, N_WARPS * 32,
                             q->overlaps, q->stream, task)
                       : launch(linear_kernel<FORMAT, N_TILES, N_WARPS, false>, grid, N_WARPS * 32,
                             q->overlaps, q->stream, task);
}

template <int FORMAT, int N_TILES>
cudaError_t start_tiles(const struct cuda_queue *q, const struct linear_task &task)
{
    /* By the matrix alone: the order of the sums is the same for any number of vectors. */
    return task.p.matrix.n_k_tiles > 64 ? start<FORMAT, N_TILES, 16>(q, task)
                                        : start<FORMAT, N_TILES, 8>(q, task);
}

template <int FORMAT>
cudaError_t start_format(const struct cuda_queue *q, const struct linear_task &task)
{
    const int n_tiles = (task.p.n_vectors + CUDA_TILE_VECTORS - 1) / CUDA_TILE_VECTORS;
    if (n_tiles <= 2) {
        return n_tiles <= 1 ? start_tiles<FORMAT, 1>(q, task) : start_tiles<FORMAT, 2>(q, task);
    }
    if constexpr (FORMAT == CUDA_BF16) {
        if (n_tiles > 4) {
            return start_tiles<FORMAT, 8>(q, task);
        }
    }
    return start_tiles<FORMAT, 4>(q, task);
}

} // namespace

cudaError_t cuda_linear_open(int block_shared)
{
    return cuda_few_open(block_shared);
}

cudaError_t cuda_linear_queue(const struct cuda_queue *queue, const struct cuda_linear *product)
{
    if (cuda_few_suits(queue, product)) {
        return cuda_few_queue(queue, product);
    }
    const int format = (int)product->matrix.format,
              most = format == CUDA_BF16 ? MOST_VECTORS : MOST_PACKED;
    for (int done = 0; done < product->n_vectors; done += most) {
        struct linear_task task = {*product, product->matrix.rows};
        struct cuda_linear &p = task.p;
        p.n_vectors = product->n_vectors - done < most ? product->n_vectors - done : most;
        p.x += done * p.x_stride;
        if (p.map) {
            p.map += done;
        } else {
            p.y += done * p.y_stride;
            p.normed = p.normed ? p.normed + done * p.normed_stride : NULL;
        }
        cudaError_t result = format == CUDA_BF16 ? start_format<CUDA_BF16>(queue, task)
                             : format == CUDA_Q8 ? start_format<CUDA_Q8>(queue, task)
                                                 : start_format<CUDA_Q4>(queue, task);
        if (result != cudaSuccess) {
            return result;
        }
    }
    return cudaSuccess;
}
