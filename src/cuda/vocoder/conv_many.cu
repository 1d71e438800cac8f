/* SPDX-License-Identifier: Apache-2.0
 * The product kernel of many columns: 96 outputs of 64 or 128 columns a block, operands shared by its 8 warps. An
 * output is summed as in conv.cu, by the same instructions in the same order and in the same parts, so both give
 * the same bits. */
#include "cuda/vocoder/conv.cuh"

namespace {

enum {
    WARPS = 8,
    THREADS = 32 * WARPS,
    TILES = 6, /* of 16 outputs: half of them for each of two rows of warps */
    WM = TILES / 2,
    STEP_PIECES = CONV_STEP_BYTES / 16,
    PIECES = TILES * STEP_PIECES,
    TURNS = (PIECES + THREADS - 1) / THREADS, /* in which the threads bring the weights of a step */
    STRIDE = TILES * 16 + 4,                  /* of sums in shared memory: no two threads in one bank */
    QUADS = TILES * 4,                        /* of outputs */
    BESIDE = THREADS / QUADS,                 /* columns that are handed on at once */
    TOGETHER = 4,                             /* columns whose residuals are on their way at once */
    MANY = 75,          /* blocks for 100 multiprocessors: from here on this kernel is taken */
    FULL = 90,          /* and from here on, for each block that stands on one, the wide tile */
    BLOCK_KEEPS = 1024, /* bytes of shared memory that a block takes beside its own */
};

/* WN: tiles of 8 columns of a warp. */
template <int WN> struct stage {
    static constexpr int COLUMNS = WARPS / 2 * WN * 8;
    uint4 weights[TILES][STEP_PIECES];
    uint4 columns[COLUMNS][4];
};

template <int COLUMN_TILES, int N_STAGES> struct room {
    static constexpr int WN = COLUMN_TILES, STAGES = N_STAGES;
    struct stage<WN> stages[STAGES];
    float sums[stage<WN>::COLUMNS][STRIDE];
};

typedef room<2, 4> narrow;
typedef room<4, 4> wide;
typedef room<4, 3> wide_short; /* for blocks with 99 KB, of which a multiprocessor has one */

/* What a thread brings of each step: its pieces of weights, and a quarter of the rows of C columns. All that
 * can be known before the steps is: with 8 warps that wait for each other, reckoning in a step costs all of them. */
template <int C> struct bringer {
    const unsigned char *weights[TURNS];    /* of step 0 */
    const unsigned char *fresh[C], *old[C]; /* tap 0 of a column, in this call's rows or before */
    const unsigned char *row[C];            /* of the tap that is next */
    int first_fresh[C];                     /* tap */
    int tap, group, offset;                 /* next: tap, group of a chunk, bytes into a row */
    int tap_bytes;                          /* from tap to tap */
};

template <int C>
__device__ __forceinline__ void begin_weights(struct bringer<C> &b, const cuda_conv &p, int n_all)
{
#pragma unroll
    for (int i = 0; i < TURNS; i++) {
        const int piece = (int)threadIdx.x + i * THREADS;
        const int tile = min((int)blockIdx.x * TILES + piece / STEP_PIECES, p.product.n_tiles - 1);
        b.weights[i] = p.product.w + (int64_t)tile * n_all * CONV_STEP_BYTES + piece % STEP_PIECES * 16;
    }
}

/* Weights of the step `ahead` of those that the pointers stand at. */
template <int C>
__device__ __forceinline__ void ask_for_weights(
    const struct bringer<C> &b, struct stage<2 * C> &to, int ahead)
{
    uint4 *at = &to.weights[0][0] + threadIdx.x;
#pragma unroll
    for (int i = 0; i < TURNS; i++) {
        if ((i + 1) * THREADS <= PIECES || (int)threadIdx.x + i * THREADS < PIECES) {
            ptx_copy(at + i * THREADS, b.weights[i] + ahead * CONV_STEP_BYTES, false);
        }
    }
}

template <int C> __device__ __forceinline__ void find_rows(struct bringer<C> &b)
{
#pragma unroll
    for (int i = 0; i < C; i++) {
        b.row[i] = (b.tap >= b.first_fresh[i] ? b.fresh[i] : b.old[i]) + (int64_t)b.tap * b.tap_bytes;
    }
}

template <int C>
__device__ __forceinline__ void begin_columns(struct bringer<C> &b, const cuda_conv &p, int first)
{
    const int row_bytes = p.product.groups * CONV_GROUP_BYTES;
    const int dilation = p.product.dilation, reach = (p.product.taps - 1) * dilation;
#pragma unroll
    for (int i = 0; i < C; i++) {
        const int column = min(first + (int)threadIdx.x / 4 + i * (THREADS / 4), p.most_columns - 1);
        const int time_step = column % p.time_steps;
        const int lane = reach > 0 ? p.call->lanes[column / p.time_steps] : 0;
        const int64_t piece = threadIdx.x % 4 * 16;
        b.fresh[i] = p.x + (int64_t)(column - reach) * row_bytes + piece;
        b.old[i] = p.past + lane * p.past_stride + (int64_t)time_step * row_bytes + piece;
        b.first_fresh[i] = time_step >= reach ? 0 : (reach - time_step + dilation - 1) / dilation;
    }
    b.tap = b.group = b.offset = 0;
    b.tap_bytes = dilation * row_bytes;
    find_rows(b);
}

/* Rows of the next step; steps go by chunks of groups, within a chunk by taps (conv.h). */
template <int C>
__device__ __forceinline__ void ask_for_columns(
    struct bringer<C> &b, const cuda_conv &p, struct stage<2 * C> &to)
{
    uint4 *at = &to.columns[0][0] + threadIdx.x;
#pragma unroll
    for (int i = 0; i < C; i++) {
        ptx_copy(at + i * THREADS, b.row[i] + b.offset, false);
    }
    b.offset += CONV_GROUP_BYTES;
    if (++b.group == p.product.chunk) {
        b.group = 0;
        if (++b.tap == p.product.taps) {
            b.tap = 0;
        } else {
            b.offset -= p.product.chunk * CONV_GROUP_BYTES;
        }
        find_rows(b);
    }
}

template <int WN>
__device__ __forceinline__ void take_stage(float (&sum)[WM][WN][4], const struct stage<WN> &from)
{
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    uint4 a[WM][CONV_WEIGHT_HALVES], b[WN];
#pragma unroll
    for (int i = 0; i < WM; i++) {
        load_step<false>(a[i], &from.weights[warp % 2 * WM + i][lane], CONV_HALF_BYTES / 16);
    }
#pragma unroll
    for (int j = 0; j < WN; j++) {
        b[j] = from.columns[(warp / 2 * WN + j) * 8 + lane / 4][lane % 4];
    }
    multiply(sum, a, b);
}

/* A part of the steps is summed: it joins the parts before it. */
template <int WN>
__device__ __forceinline__ void add_part(
    float (&sums)[stage<WN>::COLUMNS][STRIDE], float (&sum)[WM][WN][4], bool first)
{
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < WM; i++) {
#pragma unroll
        for (int j = 0; j < WN; j++) {
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int column = (warp / 2 * WN + j) * 8 + lane % 4 * 2 + e % 2;
                float *at = &sums[column][(warp % 2 * WM + i) * 16 + lane / 4 + e / 2 * 8];
                *at = (first ? 0.0f : *at) + sum[i][j][e];
                sum[i][j][e] = 0;
            }
        }
    }
}

/* A thread has the same four outputs of every BESIDE-th column. */
template <int WN>
__device__ __forceinline__ void store_sums(
    const cuda_conv &p, const float (&sums)[stage<WN>::COLUMNS][STRIDE], int first, int n_columns)
{
    const int quad = (int)threadIdx.x % QUADS, output = (int)blockIdx.x * TILES * 16 + quad * 4;
    if ((int)threadIdx.x >= BESIDE * QUADS || output >= p.product.n_tiles * 16) {
        return;
    }
    const int channel = output % p.width, phase = output / p.width;
    const int end = min((int)stage<WN>::COLUMNS, n_columns - first);
    conv_operands o = constants_of(p, channel, 0);
    for (int from = (int)threadIdx.x / QUADS; from < end; from += TOGETHER * BESIDE) {
        float4 residual[TOGETHER];
#pragma unroll
        for (int i = 0; i < TOGETHER; i++) {
            const int c = from + i * BESIDE;
            const int64_t row = (int64_t)(first + c) * p.rate + phase;
            residual[i] = p.residual && c < end
                              ? *(const float4 *)(p.residual + row * p.width + channel)
                              : make_float4(0, 0, 0, 0);
        }
#pragma unroll
        for (int i = 0; i < TOGETHER; i++) {
            const int c = from + i * BESIDE;
            if (c < end) {
                o.at = ((int64_t)(first + c) * p.rate + phase) * p.width + channel;
                o.residual = residual[i];
                finish(p, *(const float4 *)&sums[c][quad * 4], o);
            }
        }
    }
}

template <class R>
__global__ __launch_bounds__(THREADS, R::STAGES == 4 ? 2 : 1) void conv_many_kernel(cuda_conv p)
{
    constexpr int WN = R::WN, STAGES = R::STAGES;
    PTX_DYNAMIC_SHARED(unsigned char, shared, 16);
    R &all = *(R *)shared;
    const int n_all = p.product.groups * p.product.taps, part = n_all / p.product.splits;
    struct bringer<WN / 2> bringer;
    begin_weights(bringer, p, n_all);
    for (int s = 0; s < STAGES - 1 && s < n_all; s++) {
        ask_for_weights(bringer, all.stages[s], s);
    }
    ptx_let_next_begin();
    ptx_wait_for_earlier();
    const int n_columns = p.call->n * p.time_steps, first = (int)blockIdx.y * stage<WN>::COLUMNS;
    if (first > 0 && first >= n_columns) {
        return;
    }
    begin_columns(bringer, p, first);
    for (int s = 0; s < STAGES - 1; s++) {
        if (s < n_all) {
            ask_for_columns(bringer, p, all.stages[s]);
        }
        ptx_copy_end();
    }
    float sum[WM][WN][4] = {};
    int left = part;
    for (int from = 0; from < n_all; from += STAGES) {
#pragma unroll
        for (int k = 0; k < STAGES; k++) {
            if (from + k < n_all) {
                ptx_copy_wait<STAGES - 2>();
                __syncthreads(); /* all see the stage, and are through with the one before it */
                if (from + k + STAGES - 1 < n_all) {
                    ask_for_weights(bringer, all.stages[(k + STAGES - 1) % STAGES], k + STAGES - 1);
                    ask_for_columns(bringer, p, all.stages[(k + STAGES - 1) % STAGES]);
                }
                ptx_copy_end();
                take_stage(sum, all.stages[k]);
                if (--left == 0) {
                    add_part<WN>(all.sums, sum, from + k + 1 == part);
                    left = part;
                }
            }
        }
#pragma unroll
        for (int i = 0; i < TURNS; i++) {
            bringer.weights[i] += STAGES * CONV_STEP_BYTES;
        }
    }
    __syncthreads();
    store_sums<WN>(p, all.sums, first, n_columns);
}

template <class R> dim3 grid_of(const struct cuda_conv *conv, int n_columns)
{
    return dim3((unsigned)((conv->product.n_tiles + TILES - 1) / TILES),
        (unsigned)((n_columns + stage<R::WN>::COLUMNS - 1) / stage<R::WN>::COLUMNS));
}

template <class R> bool fits(const struct cuda_device *device)
{
    return sizeof(R) <= device->arch.block_shared;
}

/* percent: blocks for 100 multiprocessors. */
template <class R>
bool fills(const struct cuda_conv *conv, int n_columns, const struct cuda_device *device, int percent)
{
    const dim3 grid = grid_of<R>(conv, n_columns);
    return fits<R>(device) && (int64_t)grid.x * grid.y * 100 >= (int64_t)device->arch.n_sms * percent;
}

/* The same for as many blocks as stand on a multiprocessor at once, of which two are enough. */
template <class R>
bool fills_all(const struct cuda_conv *conv, int n_columns, const struct cuda_device *device)
{
    const bool two = device->arch.sm_shared >= 2 * (sizeof(R) + BLOCK_KEEPS);
    return fills<R>(conv, n_columns, device, two ? 2 * FULL : FULL);
}

template <class R> cudaError_t allow(const struct cuda_device *device)
{
    return fits<R>(device) ? cudaFuncSetAttribute(ptx_kernel(conv_many_kernel<R>),
                                 cudaFuncAttributeMaxDynamicSharedMemorySize, (int)sizeof(R))
                           : cudaSuccess;
}

template <class R>
cudaError_t start(
    const struct cuda_conv *conv, int n_columns, const struct cuda_device *device, cudaStream_t stream)
{
    return launch(conv_many_kernel<R>, grid_of<R>(conv, n_columns), THREADS, device->arch.overlaps,
        stream, *conv, (int)sizeof(R));
}

} // namespace

bool cuda_conv_suits_many(const struct cuda_conv *conv, int n_columns, const struct cuda_device *device)
{
    return conv->norm_width == 0 && conv->after != CONV_GATE &&
           fills<narrow>(conv, n_columns, device, MANY);
}

cudaError_t cuda_conv_run_many(
    const struct cuda_conv *conv, int n_columns, const struct cuda_device *device, cudaStream_t stream)
{
    return fills_all<wide>(conv, n_columns, device) ? start<wide>(conv, n_columns, device, stream)
           : !fits<wide>(device) && fills_all<wide_short>(conv, n_columns, device)
               ? start<wide_short>(conv, n_columns, device, stream)
               : start<narrow>(conv, n_columns, device, stream);
}

cudaError_t cuda_conv_prepare_many(const struct cuda_device *device)
{
    const cudaError_t results[] = {
        allow<narrow>(device), allow<wide>(device), allow<wide_short>(device)};
    cudaError_t result = cudaSuccess;
    for (const cudaError_t one : results) {
        result = result ? result : one;
    }
    return result;
}
