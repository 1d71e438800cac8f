/* SPDX-License-Identifier: Apache-2.0
 * y = W x for a few vectors x on the tensor cores, bf16 weights times activations in two bf16 parts (cuda_weights.h). A
 * block makes 16 rows; its warps split the columns, and the parts are added in the order of the warps. Weights are
 * asked for before the kernel waits for the one in front of it. */
#include "cuda/cuda_launch.cuh"
#include "cuda/cuda_steps.h"

#ifndef PRODUCT_DEPTH
#define PRODUCT_DEPTH 8
#define PRODUCT_BLOCKS 1
#endif

namespace {

enum { GROUP = 4 }; /* tiles of vectors that are summed over the warps at once */

struct task {
    struct cuda_linear p;
    int rows; /* of the matrix, as y has them */
};

__device__ __forceinline__ float silu(float v)
{
    return v / (1.0f + expf(-v));
}

/* Two values as bf16: their upper parts, or what these leave. */
__device__ __forceinline__ uint32_t part_of(float a, float b, bool rest)
{
    uint32_t upper = pack_bf16(a, b);
    uint32_t lower =
        pack_bf16(a - __uint_as_float(upper << 16), b - __uint_as_float(upper & 0xffff0000u));
    return rest ? lower : upper;
}

/* What is done with the two rows g and g + 8 of a tile for one vector. */
__device__ void finish_rows(const struct task &task, int v, int g, float first, float second)
{
    const struct cuda_linear &p = task.p;
    int to = p.map ? p.map[v] : v;
    if (to < 0) {
        return;
    }
    float *y = p.y + to * p.y_stride;
    if (p.kind == CUDA_GATE) {
        y[blockIdx.x * 8 + g] = silu(first) * second;
        return;
    }
    for (int half = 0; half < 2; half++) {
        int row = (int)blockIdx.x * CUDA_TILE + half * 8 + g;
        float value = half ? second : first;
        if (row >= task.rows) {
            return;
        }
        if (p.kind == CUDA_ADD) {
            y[row] += value;
        } else {
            value += p.bias ? p.bias[row] : 0.0f;
            y[row] = p.kind == CUDA_STORE_SILU ? silu(value) : value;
        }
    }
}

/* Weights before anything else is known: the first DEPTH tiles of a warp into registers, the others into the cache. */
template <int DEPTH>
__device__ __forceinline__ void ask_for_weights(uint4 (&weights)[DEPTH], const uint4 *tiles, int n)
{
#pragma unroll
    for (int i = 0; i < DEPTH; i++) {
        weights[i] = make_uint4(0, 0, 0, 0);
        if (i < n) {
            weights[i] = ptx_load_once(tiles + i * 32);
        }
    }
    for (int i = DEPTH; i < n; i++) {
        if (threadIdx.x % 8 == 0) {
            ptx_prefetch(tiles + i * 32);
        }
    }
}

/* One tile of weights times all vectors; with a norm, its weights go into x, and the squares of x are summed. */
template <int N_TILES, bool NORM>
__device__ __forceinline__ void multiply_tile(const struct cuda_linear &p, const uint4 &w, int col,
    float (&d)[N_TILES][4], float (&square)[N_TILES])
{
    const int g = (int)threadIdx.x % 32 / 4;
    float2 norm0 = make_float2(1, 1), norm1 = make_float2(1, 1);
    if (NORM) {
        norm0 = *(const float2 *)(p.norm + col);
        norm1 = *(const float2 *)(p.norm + col + 8);
    }
#pragma unroll
    for (int j = 0; j < N_TILES; j++) {
        const int v = j * CUDA_TILE_VECTORS + g / 2;
        float2 x0 = make_float2(0, 0), x1 = make_float2(0, 0);
        if (v < p.n_vectors) {
            const float *x = p.x + v * p.x_stride + col;
            x0 = *(const float2 *)x;
            x1 = *(const float2 *)(x + 8);
        }
        if (NORM) {
            square[j] += x0.x * x0.x + x0.y * x0.y + (x1.x * x1.x + x1.y * x1.y);
            x0 = make_float2(x0.x * norm0.x, x0.y * norm0.y);
            x1 = make_float2(x1.x * norm1.x, x1.y * norm1.y);
        }
        ptx_mma(d[j], w, part_of(x0.x, x0.y, g & 1), part_of(x1.x, x1.y, g & 1));
    }
}

template <int N_WARPS, int N_TILES> struct shared {
    float2 sums[N_WARPS][N_TILES < GROUP ? N_TILES : GROUP][32];
    float squares[N_WARPS][N_TILES * CUDA_TILE_VECTORS];
    float scales[N_TILES * CUDA_TILE_VECTORS]; /* of the norm, for each vector */
};

/* The factor of the norm is the same for all columns: it is applied to the result. */
template <int N_WARPS, int N_TILES>
__device__ __forceinline__ void find_scales(
    struct shared<N_WARPS, N_TILES> &s, const struct cuda_linear &p, float (&square)[N_TILES])
{
    const int lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int j = 0; j < N_TILES; j++) {
        square[j] += __shfl_xor_sync(0xffffffffu, square[j], 1);
        square[j] += __shfl_xor_sync(0xffffffffu, square[j], 2);
        if (lane % 8 == 0) {
            s.squares[threadIdx.x / 32][j * CUDA_TILE_VECTORS + lane / 8] = square[j];
        }
    }
    __syncthreads();
    if (threadIdx.x < N_TILES * CUDA_TILE_VECTORS) {
        float sum = 0;
        for (int w = 0; w < N_WARPS; w++) {
            sum += s.squares[w][threadIdx.x];
        }
        s.scales[threadIdx.x] = 1.0f / sqrtf(sum / (float)p.matrix.cols + p.eps);
    }
}

/* Adds what the warps have, in their order, and hands the rows on. */
template <int N_WARPS, int N_TILES, bool NORM>
__device__ __forceinline__ void add_warps(
    struct shared<N_WARPS, N_TILES> &s, const struct task &task, const float (&d)[N_TILES][4])
{
    constexpr int N_SUMMED = N_TILES < GROUP ? N_TILES : GROUP;
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int j0 = 0; j0 < N_TILES; j0 += N_SUMMED) {
#pragma unroll
        for (int j = 0; j < N_SUMMED; j++) {
            s.sums[warp][j][lane] =
                make_float2(d[j0 + j][0] + d[j0 + j][1], d[j0 + j][2] + d[j0 + j][3]);
        }
        __syncthreads();
        for (int i = (int)threadIdx.x; i < N_SUMMED * 32; i += N_WARPS * 32) {
            int v = (j0 + i / 32) * CUDA_TILE_VECTORS + i % 4;
            float2 sum = make_float2(0, 0);
            for (int w = 0; w < N_WARPS; w++) {
                float2 part = s.sums[w][i / 32][i % 32];
                sum.x += part.x;
                sum.y += part.y;
            }
            if (v < task.p.n_vectors) {
                float scale = NORM ? s.scales[v] : 1.0f;
                finish_rows(task, v, i % 32 / 4, sum.x * scale, sum.y * scale);
            }
        }
        __syncthreads();
    }
}

/* The normed vectors themselves, by one block. */
__device__ void write_normed(const struct cuda_linear &p, const float *scales, int n_threads)
{
    for (int v = 0; v < p.n_vectors; v++) {
        int to = p.map ? p.map[v] : v;
        for (int i = (int)threadIdx.x; to >= 0 && i < p.matrix.cols; i += n_threads) {
            p.normed[to * p.normed_stride + i] = p.norm[i] * (p.x[v * p.x_stride + i] * scales[v]);
        }
    }
}

/* Few vectors leave registers for several blocks on a multiprocessor, so that the next kernel's weights are on their
 * way while this one ends. */
template <int N_TILES, int N_WARPS, bool NORM>
__global__ void __launch_bounds__(N_WARPS * 32, N_TILES <= 2 ? 32 / N_WARPS : 1)
    product_kernel(struct task task)
{
    constexpr int DEPTH = N_TILES >= 8 ? 4 : PRODUCT_DEPTH; /* weight tiles on their way */
    __shared__ struct shared<N_WARPS, N_TILES> s;
    const struct cuda_linear &p = task.p;
    const int each = (p.matrix.n_k_tiles + N_WARPS - 1) / N_WARPS, begin = (int)threadIdx.x / 32 * each;
    const int n = min(each, max(p.matrix.n_k_tiles - begin, 0));
    const uint4 *tiles = (const uint4 *)p.matrix.tiles +
                         ((size_t)blockIdx.x * p.matrix.n_k_tiles + begin) * 32 + threadIdx.x % 32;
    uint4 weights[DEPTH];
    ask_for_weights(weights, tiles, n);
    ptx_let_next_begin();
    ptx_wait_for_earlier();

    float d[N_TILES][4] = {};
    float square[N_TILES] = {};
    for (int from = 0; from < n; from += DEPTH) {
#pragma unroll
        for (int i = 0; i < DEPTH; i++) {
            if (from + i >= n) {
                break;
            }
            uint4 w = weights[i];
            if (from + i + DEPTH < n) {
                weights[i] = ptx_load_once(tiles + (from + i + DEPTH) * 32);
            }
            int col = (begin + from + i) * CUDA_TILE + 2 * ((int)threadIdx.x % 4);
            multiply_tile<N_TILES, NORM>(p, w, col, d, square);
        }
    }
    if (NORM) {
        find_scales(s, p, square);
    }
    add_warps<N_WARPS, N_TILES, NORM>(s, task, d);
    if (NORM && p.normed && blockIdx.x == 0) {
        write_normed(p, s.scales, N_WARPS * 32);
    }
}

template <int N_TILES, int N_WARPS>
cudaError_t start(const struct cuda_queue *q, const struct task &task)
{
    dim3 grid((unsigned)task.p.matrix.n_row_tiles);
    return task.p.norm ? launch(product_kernel<N_TILES, N_WARPS, true>, grid, N_WARPS * 32, q->overlaps,
                             q->stream, task)
                       : launch(product_kernel<N_TILES, N_WARPS, false>, grid, N_WARPS * 32,
                             q->overlaps, q->stream, task);
}

template <int N_TILES> cudaError_t start_tiles(const struct cuda_queue *q, const struct task &task)
{
    /* By the matrix alone: the order of the sums is the same for any number of vectors. */
    return task.p.matrix.n_k_tiles > 64 ? start<N_TILES, 16>(q, task) : start<N_TILES, 8>(q, task);
}

} // namespace

cudaError_t cuda_linear_queue(const struct cuda_queue *queue, const struct cuda_linear *product)
{
    for (int done = 0; done < product->n_vectors; done += CUDA_MAX_VECTORS) {
        struct task task = {*product, product->matrix.rows};
        struct cuda_linear &p = task.p;
        p.n_vectors =
            product->n_vectors - done < CUDA_MAX_VECTORS ? product->n_vectors - done : CUDA_MAX_VECTORS;
        p.x += done * p.x_stride;
        if (p.map) {
            p.map += done;
        } else {
            p.y += done * p.y_stride;
            p.normed = p.normed ? p.normed + done * p.normed_stride : NULL;
        }
        int n_tiles = (p.n_vectors + CUDA_TILE_VECTORS - 1) / CUDA_TILE_VECTORS;
        cudaError_t result = n_tiles <= 1   ? start_tiles<1>(queue, task)
                             : n_tiles <= 2 ? start_tiles<2>(queue, task)
                             : n_tiles <= 4 ? start_tiles<4>(queue, task)
                             : n_tiles <= 8 ? start_tiles<8>(queue, task)
                                            : start_tiles<16>(queue, task);
        if (result != cudaSuccess) {
            return result;
        }
    }
    return cudaSuccess;
}
