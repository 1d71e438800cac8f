/* SPDX-License-Identifier: Apache-2.0
 * Kernels of the encoders: convolutions, norms, attention, tables. Comes in: fp32 activations, weights as in the
 * file. No kernel here waits for another one's end by itself: they run one after the other. */
#include "cuda/listen/listen.h"
#include "cuda/vocoder/rows.cuh"

enum { LISTEN_THREADS = 256, LISTEN_WARPS = LISTEN_THREADS / 32 };

static const double least_variance = 1e-12;
static const float least_usage = 1e-5f;

static __device__ __forceinline__ float listen_weight(const void *w, enum dtype type, int64_t at)
{
    if (type == DTYPE_F32) {
        return ((const float *)w)[at];
    }
    uint32_t bits = ((const uint16_t *)w)[at];
    if (type == DTYPE_BF16) {
        return __uint_as_float(bits << 16);
    }
    /* f16: the exponent is 112 too small once the bits are moved; the product sets it, for subnormal numbers too. */
    float magnitude = __uint_as_float((bits & 0x7fffu) << 13) * 0x1p112f;
    uint32_t special = (bits & 0x7fffu) >= 0x7c00u ? 0x7f800000u : 0;
    return __uint_as_float(__float_as_uint(magnitude) | special | (bits & 0x8000u) << 16);
}

static __device__ double listen_block_sum(double x, double *scratch)
{
    for (int step = 16; step; step /= 2) {
        x += __shfl_xor_sync(0xffffffffu, x, step);
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        scratch[threadIdx.x / 32] = x;
    }
    __syncthreads();
    x = 0;
    for (int i = 0; i < LISTEN_WARPS; i++) {
        x += scratch[i];
    }
    return x;
}

/* ---- Convolution: tiles of 64 time steps and 64 outputs, 4 of each a thread ---- */

enum { TILE = 64, STEP = 16, SIDE = 4, TILE_STRIDE = TILE + 4 };

static __device__ __forceinline__ float listen_input(const listen_conv &p, int64_t t, int k)
{
    int c = k / p.taps, j = k % p.taps;
    int64_t row = t * p.step + (int64_t)j * p.dilation - p.left;
    if (t >= p.n_t || c >= p.n_in) {
        return 0;
    }
    if (row < 0 || row >= p.n_rows) {
        if (p.edge == LISTEN_ZERO) {
            return 0;
        }
        if (p.edge == LISTEN_REPEAT) {
            row = row < 0 ? 0 : p.n_rows - 1;
        } else {
            row = row < 0 ? -row : 2 * (p.n_rows - 1) - row;
        }
    }
    float x = p.x[row * p.x_stride + c];
    return p.add ? x + p.add[row * p.x_stride + c] : x;
}

static __device__ __forceinline__ float listen_finish(float x, enum listen_after after)
{
    switch (after) {
    case LISTEN_ELU:
        return x > 0 ? x : expm1f(x);
    case LISTEN_RELU:
        return x < 0 ? 0 : x; /* not a number stays */
    case LISTEN_RELU_TANH:
        return tanhf(x < 0 ? 0 : x);
    case LISTEN_GELU:
        return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f));
    case LISTEN_AS_IS:
        break;
    }
    return x;
}

static __device__ void listen_store(const listen_conv &p, int64_t t, int o, float sum)
{
    int64_t at = t * p.y_stride + o;
    if (t >= p.n_t || o >= p.n_out) {
        return;
    }
    sum = p.bias ? sum + p.bias[o] : sum;
    if (p.after == LISTEN_GELU) {
        sum = listen_finish(sum, p.after);
    }
    sum = p.scale ? sum * p.scale[o] : sum;
    sum = p.residual ? p.residual[at] + sum : sum;
    if (p.plain) {
        p.plain[at] = sum;
    }
    p.y[at] = p.after == LISTEN_GELU ? sum : listen_finish(sum, p.after);
}

static __global__ __launch_bounds__(LISTEN_THREADS) void listen_conv_kernel(listen_conv p)
{
    __shared__ __align__(16) float xs[STEP][TILE_STRIDE], ws[STEP][TILE_STRIDE];
    int64_t t0 = (int64_t)blockIdx.x * TILE;
    int o0 = (int)blockIdx.y * TILE, n_k = p.n_in * p.taps, tid = (int)threadIdx.x;
    int my_t = tid / 16 * SIDE, my_o = tid % 16 * SIDE;
    float sum[SIDE][SIDE] = {};
    for (int k0 = 0; k0 < n_k; k0 += STEP) {
        for (int i = tid; i < TILE * STEP; i += LISTEN_THREADS) {
            int k = i % STEP, row = i / STEP;
            xs[k][row] = k0 + k < n_k ? listen_input(p, t0 + row, k0 + k) : 0;
            ws[k][row] = k0 + k < n_k && o0 + row < p.n_out
                             ? listen_weight(p.w, p.type, (o0 + row) * p.w_stride + k0 + k)
                             : 0;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < STEP; k++) {
            float4 x = *(const float4 *)&xs[k][my_t], w = *(const float4 *)&ws[k][my_o];
            float x4[] = {x.x, x.y, x.z, x.w}, w4[] = {w.x, w.y, w.z, w.w};
#pragma unroll
            for (int i = 0; i < SIDE; i++) {
#pragma unroll
                for (int j = 0; j < SIDE; j++) {
                    sum[i][j] = fmaf(x4[i], w4[j], sum[i][j]);
                }
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < SIDE; i++) {
#pragma unroll
        for (int j = 0; j < SIDE; j++) {
            listen_store(p, t0 + my_t + i, o0 + my_o + j, sum[i][j]);
        }
    }
}

cudaError_t listen_conv_run(const struct listen_conv *p, cudaStream_t stream)
{
    dim3 grid((unsigned)((p->n_t + TILE - 1) / TILE), (unsigned)((p->n_out + TILE - 1) / TILE));
    return launch(listen_conv_kernel, grid, LISTEN_THREADS, false, stream, *p);
}

/* ---- Transformer ---- */

static __global__ __launch_bounds__(LISTEN_THREADS) void listen_norm_kernel(listen_norm p)
{
    __shared__ double scratch[LISTEN_WARPS];
    const float *x = p.x + (int64_t)blockIdx.x * p.width;
    float *y = p.y + (int64_t)blockIdx.x * p.width;
    double sum = 0, squares = 0;
    for (int i = (int)threadIdx.x; i < p.width; i += LISTEN_THREADS) {
        sum += (double)x[i];
    }
    double mean = listen_block_sum(sum, scratch) / p.width;
    for (int i = (int)threadIdx.x; i < p.width; i += LISTEN_THREADS) {
        squares += ((double)x[i] - mean) * ((double)x[i] - mean);
    }
    double scale = 1 / sqrt(listen_block_sum(squares, scratch) / p.width + (double)p.eps);
    for (int i = (int)threadIdx.x; i < p.width; i += LISTEN_THREADS) {
        y[i] = __fadd_rn(__fmul_rn((float)(((double)x[i] - mean) * scale), p.w[i]), p.bias[i]);
    }
}

cudaError_t listen_norm_run(const struct listen_norm *p, cudaStream_t stream)
{
    return launch(listen_norm_kernel, dim3((unsigned)p->n), LISTEN_THREADS, false, stream, *p);
}

static __global__ __launch_bounds__(LISTEN_THREADS) void listen_turn_kernel(listen_turn p)
{
    int64_t t = blockIdx.x;
    int half = p.head / 2, n_heads = p.n_heads + p.n_kv_heads;
    for (int i = (int)threadIdx.x; i < n_heads * half; i += LISTEN_THREADS) {
        int h = i / half, d = i % half;
        float *x = h < p.n_heads ? p.q + (t * p.n_heads + h) * p.head
                                 : p.k + (t * p.n_kv_heads + h - p.n_heads) * p.head;
        float s, c, a = x[d], b = x[d + half];
        sincosf((float)t * p.inv_freq[d], &s, &c);
        x[d] = __fadd_rn(__fmul_rn(a, c), __fmul_rn(-b, s));
        x[d + half] = __fadd_rn(__fmul_rn(b, c), __fmul_rn(a, s));
    }
}

cudaError_t listen_turn_run(const struct listen_turn *p, cudaStream_t stream)
{
    return launch(listen_turn_kernel, dim3((unsigned)p->n), LISTEN_THREADS, false, stream, *p);
}

/* Largest of `score` and the one so far, over a block; `scratch` [LISTEN_WARPS]. */
static __device__ float listen_block_max(float x, float *scratch)
{
    for (int step = 16; step; step /= 2) {
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, step));
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        scratch[threadIdx.x / 32] = x;
    }
    __syncthreads();
    for (int i = 0; i < LISTEN_WARPS; i++) {
        x = fmaxf(x, scratch[i]);
    }
    return x;
}

/* One block: one head of one row. Keys come in pieces of as many as there are threads; what was summed before is
 * scaled down when a larger score comes. */
static __global__ __launch_bounds__(LISTEN_THREADS) void listen_attend_kernel(listen_attend p)
{
    __shared__ float q[LISTEN_MAX_HEAD], weight[LISTEN_THREADS], sums[LISTEN_THREADS],
        scratch[LISTEN_WARPS];
    int tid = (int)threadIdx.x, h = (int)blockIdx.y, kv = h / (p.n_heads / p.n_kv_heads);
    int64_t t = blockIdx.x, q_stride = (int64_t)p.n_heads * p.head,
            stride = (int64_t)p.n_kv_heads * p.head;
    int n_parts = LISTEN_THREADS / p.head, part = tid / p.head, d = tid % p.head;
    float high = -INFINITY, sum = 0, total = 0;
    for (int i = tid; i < p.head; i += LISTEN_THREADS) {
        q[i] = p.q[t * q_stride + h * p.head + i];
    }
    for (int64_t k0 = 0; k0 <= t; k0 += LISTEN_THREADS) {
        int n = t + 1 - k0 < LISTEN_THREADS ? (int)(t + 1 - k0) : LISTEN_THREADS;
        const float *key = p.k + (k0 + tid) * stride + kv * p.head;
        float score = -INFINITY;
        __syncthreads();
        if (tid < n) {
            score = 0;
            for (int i = 0; i < p.head; i++) {
                score = fmaf(q[i], key[i], score);
            }
            score *= p.scale;
        }
        float before = high;
        high = fmaxf(high, listen_block_max(score, scratch));
        weight[tid] = tid < n ? expf(score - high) : 0;
        __syncthreads();
        float down = k0 ? expf(before - high) : 0, piece = 0;
        for (int i = 0; i < n; i++) {
            piece += weight[i];
        }
        total = total * down + piece;
        sum *= down;
        for (int i = part; part < n_parts && i < n; i += n_parts) {
            sum = fmaf(weight[i], p.v[(k0 + i) * stride + kv * p.head + d], sum);
        }
    }
    sums[tid] = sum;
    __syncthreads();
    if (tid < p.head) {
        for (int i = 1; i < n_parts; i++) {
            sum += sums[i * p.head + d];
        }
        p.y[t * q_stride + h * p.head + d] = sum / total;
    }
}

cudaError_t listen_attend_run(const struct listen_attend *p, cudaStream_t stream)
{
    return launch(listen_attend_kernel, dim3((unsigned)p->n, (unsigned)p->n_heads), LISTEN_THREADS,
        false, stream, *p);
}

/* ---- Tables ---- */

enum { SQUARE_LANES = 8, SQUARE_CHAINS = 4 };

/* In the CPU's order, product and sum rounded one after the other. */
static __device__ float sum_of_squares(const float *x, int n)
{
    float sums[SQUARE_CHAINS * SQUARE_LANES] = {}, tail = 0;
    int i = 0;
    for (; i + SQUARE_CHAINS * SQUARE_LANES <= n; i += SQUARE_CHAINS * SQUARE_LANES) {
        for (int j = 0; j < SQUARE_CHAINS * SQUARE_LANES; j++) {
            sums[j] = __fadd_rn(sums[j], __fmul_rn(x[i + j], x[i + j]));
        }
    }
    for (; i + SQUARE_LANES <= n; i += SQUARE_LANES) {
        for (int j = 0; j < SQUARE_LANES; j++) {
            sums[j] = __fadd_rn(sums[j], __fmul_rn(x[i + j], x[i + j]));
        }
    }
    for (; i < n; i++) {
        tail = __fadd_rn(tail, __fmul_rn(x[i], x[i]));
    }
    for (int j = 0; j < SQUARE_LANES; j++) {
        float four =
            __fadd_rn(__fadd_rn(__fadd_rn(sums[j], sums[SQUARE_LANES + j]), sums[2 * SQUARE_LANES + j]),
                sums[3 * SQUARE_LANES + j]);
        tail = __fadd_rn(tail, four);
    }
    return tail;
}

/* One block: one entry. */
static __global__ __launch_bounds__(LISTEN_THREADS) void listen_table_kernel(listen_codebook p)
{
    int64_t e = blockIdx.x;
    float usage = p.usage[e];
    usage = usage > least_usage ? usage : least_usage;
    for (int i = (int)threadIdx.x; i < p.dim; i += LISTEN_THREADS) {
        float v = __fdiv_rn(listen_weight(p.sum, p.type, e * p.dim + i), usage);
        p.rows[e * p.dim + i] = v;
        p.columns[(int64_t)i * p.size + e] = v;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        p.norms[e] = sum_of_squares(p.rows + e * p.dim, p.dim);
    }
}

/* The distance of x to entry e; the two norms are the last two terms. */
static __device__ float listen_distance(const listen_codebook &p, const float *x, float x_norm, int e)
{
    float all = 0;
    for (int begin = 0; begin < p.dim + 2; begin += p.terms) {
        int end = begin + p.terms, last = end < p.dim ? end : p.dim;
        float sum = 0;
        for (int k = begin; k < last; k++) {
            sum = fmaf(-2.0f * x[k], p.columns[(int64_t)k * p.size + e], sum);
        }
        sum = begin <= p.dim && p.dim < end ? __fadd_rn(sum, x_norm) : sum;
        sum = begin <= p.dim + 1 && p.dim + 1 < end ? __fadd_rn(sum, p.norms[e]) : sum;
        all = __fadd_rn(all, sum);
    }
    return __fsqrt_rn(all > 0 ? all : 0);
}

/* One block: one frame. */
static __global__ __launch_bounds__(LISTEN_THREADS) void listen_nearest_kernel(listen_codebook p)
{
    __shared__ float x[LISTEN_MAX_DIM], best_of[LISTEN_THREADS], norm;
    __shared__ int index_of[LISTEN_THREADS];
    int tid = (int)threadIdx.x;
    float *left = p.left + (int64_t)blockIdx.x * p.dim;
    for (int i = tid; i < p.dim; i += LISTEN_THREADS) {
        x[i] = left[i];
    }
    __syncthreads();
    if (tid == 0) {
        norm = sum_of_squares(x, p.dim);
    }
    __syncthreads();
    float best = INFINITY;
    int index = 0;
    for (int e = tid; e < p.size; e += LISTEN_THREADS) {
        float distance = listen_distance(p, x, norm, e);
        if (distance < best) {
            best = distance, index = e;
        }
    }
    best_of[tid] = best, index_of[tid] = index;
    __syncthreads();
    for (int step = LISTEN_THREADS / 2; step; step /= 2) {
        if (tid < step) {
            float other = best_of[tid + step];
            if (other < best_of[tid] ||
                (other <= best_of[tid] && index_of[tid + step] < index_of[tid])) {
                best_of[tid] = other, index_of[tid] = index_of[tid + step];
            }
        }
        __syncthreads();
    }
    index = index_of[0];
    for (int i = tid; i < p.dim; i += LISTEN_THREADS) {
        left[i] = __fadd_rn(left[i], -p.rows[(int64_t)index * p.dim + i]);
    }
    if (tid == 0) {
        p.codes[(int64_t)blockIdx.x * p.codes_stride] = index;
    }
}

cudaError_t listen_codebook_run(const struct listen_codebook *p, cudaStream_t stream)
{
    cudaError_t result =
        launch(listen_table_kernel, dim3((unsigned)p->size), LISTEN_THREADS, false, stream, *p);
    return result
               ? result
               : launch(listen_nearest_kernel, dim3((unsigned)p->n), LISTEN_THREADS, false, stream, *p);
}

/* ---- Sums over time: one thread a channel, in double ---- */

static __global__ void listen_stats_kernel(listen_stats p)
{
    int c = (int)(blockIdx.x * 32 + threadIdx.x);
    double mean = 0, square = 0;
    if (c >= p.width) {
        return;
    }
    for (int64_t t = 0; t < p.n; t++) {
        mean += (double)p.x[t * p.width + c];
    }
    mean /= (double)p.n;
    p.mean[c] = (float)mean;
    for (int64_t t = 0; p.deviation && t < p.n; t++) {
        double d = (double)p.x[t * p.width + c] - mean;
        square += d * d;
    }
    if (p.deviation) {
        p.deviation[c] = (float)sqrt(fmax(square / (double)p.n, least_variance));
    }
}

cudaError_t listen_stats_run(const struct listen_stats *p, cudaStream_t stream)
{
    return launch(listen_stats_kernel, dim3((unsigned)(p->width + 31) / 32), 32, false, stream, *p);
}

static __global__ __launch_bounds__(LISTEN_THREADS) void listen_excite_kernel(listen_excite p)
{
    int64_t t = blockIdx.x;
    for (int c = (int)threadIdx.x; c < p.width; c += LISTEN_THREADS) {
        int64_t i = t * p.width + c;
        float gate = 1.0f / (1.0f + expf(-p.gate[c]));
        p.x[i] = __fadd_rn(__fmul_rn(p.t[i], gate), p.x[i]);
        p.copy[t * p.copy_stride + c] = p.x[i];
    }
}

cudaError_t listen_excite_run(const struct listen_excite *p, cudaStream_t stream)
{
    return launch(listen_excite_kernel, dim3((unsigned)p->n), LISTEN_THREADS, false, stream, *p);
}

static __global__ void listen_pool_kernel(listen_pool p)
{
    int c = (int)(blockIdx.x * 32 + threadIdx.x);
    if (c >= p.width) {
        return;
    }
    float largest = p.score[c];
    double sum = 0, mean = 0, square = 0;
    for (int64_t t = 1; t < p.n; t++) {
        largest = fmaxf(largest, p.score[t * p.width + c]);
    }
    for (int64_t t = 0; t < p.n; t++) {
        int64_t i = t * p.width + c;
        p.score[i] = expf(p.score[i] - largest);
        sum += (double)p.score[i];
        mean += (double)p.score[i] * (double)p.x[i];
    }
    mean /= sum;
    for (int64_t t = 0; t < p.n; t++) {
        int64_t i = t * p.width + c;
        double d = (double)p.x[i] - mean;
        square += (double)p.score[i] * d * d;
    }
    p.pooled[c] = (float)mean;
    p.pooled[p.width + c] = (float)sqrt(fmax(square / sum, least_variance));
}

cudaError_t listen_pool_run(const struct listen_pool *p, cudaStream_t stream)
{
    return launch(listen_pool_kernel, dim3((unsigned)(p->width + 31) / 32), 32, false, stream, *p);
}
