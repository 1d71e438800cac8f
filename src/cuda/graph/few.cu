/* SPDX-License-Identifier: Apache-2.0
 * y = W x for one or two vectors: the products of a frame of one lane, with the bits of linear.cu. Nothing in such
 * a frame takes long but the way of the weights: all of a block are on their way to shared memory before it waits for
 * the steps in front, and it has few registers, so that blocks of the next kernels find room beside it. */
#include "cuda/graph/few.h"
#include "cuda/lib/ptx_copy.cuh"
#include "cuda/parts/norm.cuh"
#include "cuda/parts/tile.cuh"

namespace {

enum { CHUNK = 8 }; /* weight tiles that a warp multiplies at once: 128 columns, four of each thread */

struct few_task {
    struct cuda_linear p;
    int rows;  /* of the matrix, as y has them */
    int depth; /* units of weights of a warp that have room in shared memory */
};

/* Packed: of a chunk's units, of each vector. */
template <int N_WARPS, int N_VECTORS, bool PACKED> struct rounded {
    float scales[N_WARPS][CHUNK / CUDA_UNIT_TILES][N_VECTORS];
};
template <int N_WARPS, int N_VECTORS> struct rounded<N_WARPS, N_VECTORS, false> {
};

template <int FORMAT, int N_WARPS, int N_VECTORS>
struct shared : rounded<N_WARPS, N_VECTORS, tile_format<FORMAT>::PACKED> {
    uint2 operand[N_WARPS][CHUNK]
                 [8 * N_VECTORS];      /* of the tensor cores: 8 threads' part of each vector */
    uint2 sums[N_WARPS][N_VECTORS][8]; /* of rows g and g + 8 */
    float squares[N_WARPS][N_VECTORS];
};

struct item {
    float2 x0, x1; /* columns 2t, 2t + 1 and 2t + 8, 2t + 9 of a tile; packed: 4t .. 4t + 3 */
};

/* What a warp multiplies: tiles begin .. begin + n - 1 of the block's rows. */
struct part {
    int warp, lane, begin, n;
    const uint4 *units; /* this thread's 16 bytes of the first unit */
    uint4 *slots;       /* and their places in shared memory */
};

template <int FORMAT, int N_WARPS>
__device__ __forceinline__ struct part part_of_warp(const struct few_task &task, uint4 *room)
{
    const struct cuda_matrix &m = task.p.matrix;
    const int each = tile_each<FORMAT>(m.n_k_tiles, N_WARPS);
    struct part at;
    at.warp = (int)threadIdx.x / 32;
    at.lane = (int)threadIdx.x % 32;
    at.begin = at.warp * each;
    at.n = min(each, max(m.n_k_tiles - at.begin, 0));
    at.units = tile_at<FORMAT>(m, blockIdx.x, at.begin) + at.lane;
    at.slots = room + at.warp * task.depth * tile_format<FORMAT>::PIECES + at.lane;
    return at;
}

/* Chunk c on its way to shared memory, as a group of copies. bf16: a thread reads what it has copied itself. */
template <int FORMAT, int CHUNKS>
__device__ __forceinline__ void ask_for_chunk(const struct part &at, int c)
{
    typedef tile_format<FORMAT> F;
    constexpr int UNITS = CHUNK / F::TILES;
#pragma unroll
    for (int i = 0; i < UNITS; i++) {
        const int unit = c * UNITS + i;
        if (unit * F::TILES < at.n) {
#pragma unroll
            for (int piece = 0; piece < F::PIECES; piece += 32) {
                if (piece + 32 <= F::PIECES || at.lane < F::PIECES - piece) {
                    ptx_copy(at.slots + (c % CHUNKS * UNITS + i) * F::PIECES + piece,
                        at.units + unit * F::PIECES + piece, false);
                }
            }
        }
    }
    ptx_copy_end();
}

/* This thread's four columns of chunk c. */
template <int FORMAT>
__device__ __forceinline__ struct item load_item(const float *x, const struct part &at, int c)
{
    typedef tile_format<FORMAT> F;
    const int tile = c * CHUNK + at.lane / 4,
              col = (at.begin + tile) * CUDA_TILE + F::EACH * (at.lane % 4);
    struct item item = {make_float2(0, 0), make_float2(0, 0)};
    if (tile < at.n) {
        item.x0 = *(const float2 *)(x + col);
        item.x1 = *(const float2 *)(x + col + F::OTHER);
    }
    return item;
}

/* Puts columns where the tensor cores' operand is read; with a norm, its weights go into them, and their squares are
 * added up tile after tile, all rounded as in linear.cu. Returns the scale of packed ones. */
template <int FORMAT, bool NORM>
__device__ __forceinline__ float stage(
    uint2 *to, const struct item &item, const struct item &norm, int lane, float &square)
{
    float2 x0 = item.x0, x1 = item.x1;
    if (NORM) {
        const float s = norm_squares(x0, x1);
#pragma unroll
        for (int i = 0; i < CHUNK; i++) {
            square = __fadd_rn(square, __shfl_sync(0xffffffffu, s, i * 4 + lane % 4));
        }
        x0 = make_float2(__fmul_rn(x0.x, norm.x0.x), __fmul_rn(x0.y, norm.x0.y));
        x1 = make_float2(__fmul_rn(x1.x, norm.x1.x), __fmul_rn(x1.y, norm.x1.y));
    }
    const float scale = tile_round<FORMAT>(x0, x1);
    to[0] = make_uint2(tile_part<FORMAT>(x0.x, x0.y, false), tile_part<FORMAT>(x1.x, x1.y, false));
    to[4] = make_uint2(tile_part<FORMAT>(x0.x, x0.y, true), tile_part<FORMAT>(x1.x, x1.y, true));
    return scale;
}

/* Chunk c's weights, which are there, times the operand. */
template <int FORMAT, int N_WARPS, int N_VECTORS, int CHUNKS>
__device__ __forceinline__ void multiply_chunk(
    const struct shared<FORMAT, N_WARPS, N_VECTORS> &s, const struct part &at, int c, float (&d)[4])
{
    typedef tile_format<FORMAT> F;
    constexpr int UNITS = CHUNK / F::TILES;
    const uint2(&operand)[CHUNK][8 * N_VECTORS] = s.operand[at.warp];
#pragma unroll
    for (int i = 0; i < UNITS; i++) {
        if (c * CHUNK + i * F::TILES < at.n) {
            uint2 b[F::TILES];
#pragma unroll
            for (int k = 0; k < F::TILES; k++) {
                b[k] = at.lane < 8 * N_VECTORS ? operand[i * F::TILES + k][at.lane] : make_uint2(0, 0);
            }
            const uint4 *unit = at.slots + (c % CHUNKS * UNITS + i) * F::PIECES;
            if constexpr (F::PACKED) {
                const float x_scale = s.scales[at.warp][i][at.lane % 4 < N_VECTORS ? at.lane % 4 : 0];
                tile_multiply(
                    d, tile_decode<FORMAT>(tile_take<FORMAT, false>(unit, at.lane)), b, x_scale);
            } else {
                ptx_mma(d, *unit, b[0].x, b[0].y);
            }
        }
    }
}

/* All columns of a warp. */
template <int FORMAT, int N_WARPS, int N_VECTORS, bool NORM, int CHUNKS>
__device__ __forceinline__ void multiply(struct shared<FORMAT, N_WARPS, N_VECTORS> &s,
    const struct cuda_linear &p, const struct part &at, struct item norm, float (&d)[4])
{
    constexpr bool PACKED = tile_format<FORMAT>::PACKED;
    uint2(&operand)[CHUNK][8 * N_VECTORS] = s.operand[at.warp];
    struct item items[N_VECTORS];
    float square[N_VECTORS] = {};
#pragma unroll
    for (int v = 0; v < N_VECTORS; v++) {
        items[v] = load_item<FORMAT>(p.x + v * p.x_stride, at, 0);
    }
    for (int c = 0; c * CHUNK < at.n; c++) {
#pragma unroll
        for (int v = 0; v < N_VECTORS; v++) {
            const float scale = stage<FORMAT, NORM>(
                operand[at.lane / 4] + v * 8 + at.lane % 4, items[v], norm, at.lane, square[v]);
            if constexpr (PACKED) {
                if (at.lane % 8 == 0) {
                    s.scales[at.warp][at.lane / 8][v] = scale;
                }
            }
            items[v] = load_item<FORMAT>(p.x + v * p.x_stride, at, c + 1);
        }
        if (NORM) {
            norm = load_item<FORMAT>(p.norm, at, c + 1);
        }
        __syncwarp();
        ptx_copy_wait<CHUNKS - 1>();
        if (PACKED) { /* of other threads too */
            __syncwarp();
        }
        multiply_chunk<FORMAT, N_WARPS, N_VECTORS, CHUNKS>(s, at, c, d);
        __syncwarp();
        ask_for_chunk<FORMAT, CHUNKS>(at, c + CHUNKS);
    }
#pragma unroll
    for (int v = 0; NORM && v < N_VECTORS; v++) {
        const float sum = norm_add_columns(square[v]);
        if (at.lane == 0) {
            s.squares[at.warp][v] = sum;
        }
    }
}

/* What the kernel uses after its wait. */
__device__ __forceinline__ void need_late(const struct few_task &task)
{
    const struct cuda_linear &p = task.p;
    ptx_need(p.x);
    ptx_need(p.x_stride);
    ptx_need((int)p.kind);
    ptx_need(p.n_vectors);
    ptx_need(p.bias);
    ptx_need(p.y);
    ptx_need(p.y_stride);
    ptx_need(p.map);
    ptx_need(p.normed);
    ptx_need(task.rows);
}

/* The normed vectors themselves, by one block. */
template <int FORMAT, int N_WARPS, int N_VECTORS>
__device__ void write_normed(
    const struct shared<FORMAT, N_WARPS, N_VECTORS> &s, const struct cuda_linear &p)
{
    for (int v = 0; v < p.n_vectors; v++) {
        const int to = p.map ? p.map[v] : v;
        const float scale = norm_scale(s.squares, v, p.matrix.cols, p.eps);
        for (int i = (int)threadIdx.x; to >= 0 && i < p.matrix.cols; i += N_WARPS * 32) {
            p.normed[to * p.normed_stride + i] = p.norm[i] * (p.x[v * p.x_stride + i] * scale);
        }
    }
}

template <int FORMAT, int N_VECTORS, int N_WARPS, bool NORM, int CHUNKS>
__global__ void __launch_bounds__(N_WARPS * 32, N_WARPS > 8     ? 2
                                                : N_VECTORS > 1 ? 4
                                                                : 5) few_kernel(struct few_task task)
{
    PTX_DYNAMIC_SHARED(uint4, few_weights, 16);
    typedef tile_format<FORMAT> F;
    __shared__ struct shared<FORMAT, N_WARPS, N_VECTORS> s;
    const struct cuda_linear &p = task.p;
    const struct part at = part_of_warp<FORMAT, N_WARPS>(task, few_weights);
    struct item norm = {make_float2(1, 1), make_float2(1, 1)};
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
        ask_for_chunk<FORMAT, CHUNKS>(at, c);
    }
    for (int i = CHUNKS * CHUNK; i < at.n; i += F::TILES) {
        if (at.lane % 8 == 0 && (F::PIECES >= 32 || at.lane < F::PIECES)) {
            ptx_prefetch(at.units + i / F::TILES * F::PIECES);
        }
    }
    if (NORM) {
        norm = load_item<FORMAT>(p.norm, at, 0);
    }
    ptx_let_next_begin();
    need_late(task);
    ptx_wait_for_earlier();

    float d[4] = {};
    multiply<FORMAT, N_WARPS, N_VECTORS, NORM, CHUNKS>(s, p, at, norm, d);
    if (at.lane % 4 < N_VECTORS) {
        s.sums[at.warp][at.lane % 4][at.lane / 4] =
            make_uint2(__float_as_uint(d[0] + d[1]), __float_as_uint(d[2] + d[3]));
    }
    __syncthreads();
    const int v = (int)threadIdx.x / 8, g = (int)threadIdx.x % 8;
    if (v < N_VECTORS && v < p.n_vectors) {
        float first = 0, second = 0;
#pragma unroll
        for (int w = 0; w < N_WARPS; w++) {
            const uint2 sums = s.sums[w][v][g];
            first += __uint_as_float(sums.x);
            second += __uint_as_float(sums.y);
        }
        const float scale = NORM ? norm_scale(s.squares, v, p.matrix.cols, p.eps) : 1.0f;
        finish_rows(
            p, task.rows, (int)blockIdx.x, v, g, __fmul_rn(first, scale), __fmul_rn(second, scale));
    }
    if (NORM && p.normed && blockIdx.x == 0) {
        write_normed(s, p);
    }
}

/* A kernel for each case, and what it needs. */
struct choice {
    void (*kernel)(struct few_task);
    int n_threads, static_bytes;
    int unit_tiles, unit_bytes;
};

template <int FORMAT, int N_VECTORS, int N_WARPS, int CHUNKS> struct choice choice_of(bool norm)
{
    typedef tile_format<FORMAT> F;
    return {norm ? few_kernel<FORMAT, N_VECTORS, N_WARPS, true, CHUNKS>
                 : few_kernel<FORMAT, N_VECTORS, N_WARPS, false, CHUNKS>,
        N_WARPS * 32, (int)sizeof(struct shared<FORMAT, N_WARPS, N_VECTORS>), F::TILES, F::BYTES};
}

template <int FORMAT, int N_VECTORS> struct choice choose_size(int n_k_tiles, bool norm)
{
    return n_k_tiles <= 64    ? choice_of<FORMAT, N_VECTORS, 8, 1>(norm) /* the warps as in linear.cu */
           : n_k_tiles <= 128 ? choice_of<FORMAT, N_VECTORS, 16, 1>(norm)
                              : choice_of<FORMAT, N_VECTORS, 16, 2>(norm);
}

template <int N_VECTORS> struct choice choose(int format, int n_k_tiles, bool norm)
{
    return format == CUDA_BF16 ? choose_size<CUDA_BF16, N_VECTORS>(n_k_tiles, norm)
           : format == CUDA_Q8 ? choose_size<CUDA_Q8, N_VECTORS>(n_k_tiles, norm)
                               : choose_size<CUDA_Q4, N_VECTORS>(n_k_tiles, norm);
}

} // namespace

cudaError_t cuda_few_open(int block_shared)
{
    static const int sizes[] = {64, 128, 129};
    cudaError_t result = cudaSuccess;
    for (int i = 0; i < 36 && result == cudaSuccess; i++) {
        const bool norm = i % 2, two = i / 2 % 2;
        const int size = sizes[i / 4 % 3], format = i / 12;
        struct choice c = two ? choose<2>(format, size, norm) : choose<1>(format, size, norm);
        result = cudaFuncSetAttribute(ptx_kernel(c.kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
            block_shared - c.static_bytes);
        if (result == cudaSuccess) {
            result = prefer_shared(ptx_kernel(c.kernel));
        }
    }
    return result;
}

static struct choice choice_for(const struct cuda_linear *p)
{
    const int format = (int)p->matrix.format;
    return p->n_vectors > 1 ? choose<2>(format, p->matrix.n_k_tiles, p->norm != NULL)
                            : choose<1>(format, p->matrix.n_k_tiles, p->norm != NULL);
}

/* Units of a warp in shared memory. */
static int depth_of(const struct choice *c, int n_k_tiles)
{
    const int n_warps = c->n_threads / 32, units = (n_k_tiles + c->unit_tiles - 1) / c->unit_tiles;
    const int each = (units + n_warps - 1) / n_warps, most = 2 * CHUNK / c->unit_tiles;
    return each < most ? each : most;
}

static int weight_bytes(const struct choice *c, int n_k_tiles)
{
    return c->n_threads / 32 * depth_of(c, n_k_tiles) * c->unit_bytes;
}

bool cuda_few_suits(const struct cuda_queue *queue, const struct cuda_linear *product)
{
    if (product->n_vectors > 2) {
        return false;
    }
    const struct choice c = choice_for(product);
    return weight_bytes(&c, product->matrix.n_k_tiles) + c.static_bytes <= queue->block_shared;
}

cudaError_t cuda_few_queue(const struct cuda_queue *queue, const struct cuda_linear *product)
{
    const int n_k_tiles = product->matrix.n_k_tiles;
    const struct choice c = choice_for(product);
    const struct few_task task = {*product, product->matrix.rows, depth_of(&c, n_k_tiles)};
    return launch(c.kernel, dim3((unsigned)product->matrix.n_row_tiles), c.n_threads, queue->overlaps,
        queue->stream, task, weight_bytes(&c, n_k_tiles));
}
