/* SPDX-License-Identifier: Apache-2.0
 * The product kernel. Comes in: rows and prepared weights. Goes out: fp32 values, rows for the next product, or both.
 *
 * A block is 8 warps: `splits` of them sum parts of the same outputs and columns, the others take further columns.
 * Weights come in the order of the instruction, several steps ahead and before the kernel in front has ended. Shared
 * memory holds what waits, and in the end adds the parts up and turns outputs into rows. */
#include "cuda/parts/norm.cuh"
#include "cuda/vocoder/conv.cuh"

enum { CONV_WARPS = 8, CONV_THREADS = 32 * CONV_WARPS, CONV_PASS = 4 };

template <int WN>
static __device__ __forceinline__ void reader_begin(
    conv_reader<WN> &r, const cuda_conv &p, int first_column, int n_columns, int chunk)
{
#pragma unroll
    for (int i = 0; i < WN; i++) {
        int column = first_column + i * 8 + (int)(threadIdx.x & 31) / 4;
        column = column < n_columns ? column : n_columns - 1;
        r.column[i] = column;
        r.time_step[i] = column % p.time_steps;
        r.lane[i] = p.product.taps > 1 ? p.call->lanes[column / p.time_steps] : 0;
    }
    r.chunk = chunk, r.tap = 0, r.group = 0;
    reader_point(r, p);
}

/* The next step's operands; the position moves on. */
template <int WN>
static __device__ __forceinline__ void reader_next(
    conv_reader<WN> &r, const cuda_conv &p, uint4 (&b)[WN])
{
#pragma unroll
    for (int i = 0; i < WN; i++) {
        b[i] = *(const uint4 *)(r.row[i] + r.group * CONV_GROUP_BYTES);
    }
    reader_move(r, p);
}

template <int WM>
static __device__ __forceinline__ void load_weights(
    uint4 (&a)[WM][CONV_WEIGHT_HALVES], const unsigned char *const (&w)[WM], int step)
{
#pragma unroll
    for (int i = 0; i < WM; i++) {
        load_step<true>(
            a[i], (const uint4 *)(w[i] + (int64_t)step * CONV_STEP_BYTES), CONV_HALF_BYTES / 16);
    }
}

template <int WN>
static __device__ __forceinline__ void add_squares(float (&square)[WN], const uint4 (&b)[WN])
{
#pragma unroll
    for (int i = 0; i < WN; i++) {
        float4 v = rows_join(b[i]);
        square[i] += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
    }
}

static __device__ __forceinline__ float silu(float x)
{
    return x / (1.0f + expf(-x));
}

/* What a thread of the block is for. */
template <int WM, int WN> struct conv_place {
    enum {
        COLUMNS = 8 * WN,
        PASS = WN < CONV_PASS ? WN : CONV_PASS,
        QUADS = 4 * WM,
        STRIDE = 16 * WM + 4
    };
    int warp, lane, part, n_steps;
    int n_subs;    /* warps beside each other */
    int first;     /* column of the block */
    int n_columns; /* of all blocks */
    const unsigned char *w[WM];
};

/* Where the operands of the steps to come wait. Few columns: the time is that of the weights' way from memory, and
 * each thread copies what it will need to shared memory many steps ahead. Many columns: registers, one or two steps.
 * */
template <int WM, int WN, int DEPTH> struct conv_ahead {
    enum { BYTES = 0, AHEAD = DEPTH };
    uint4 a[DEPTH][WM][CONV_WEIGHT_HALVES], b[DEPTH][WN];
};

template <int WM, int WN, int DEPTH> struct conv_queue {
    enum {
        WEIGHTS = CONV_WEIGHT_HALVES * WM,
        QUADS = WEIGHTS + WN,
        BYTES = DEPTH * QUADS * CONV_THREADS * 16,
        AHEAD = DEPTH
    };
    uint4 *at; /* this thread's first */
};

template <int WM, int WN>
static __device__ __forceinline__ void begin_place(const cuda_conv &p, conv_place<WM, WN> &at)
{
    const int splits = p.product.splits, n_all = p.product.groups * p.product.taps;
    at.warp = (int)threadIdx.x / 32, at.lane = (int)threadIdx.x % 32;
    at.part = at.warp % splits, at.n_subs = CONV_WARPS / splits, at.n_steps = n_all / splits;
#pragma unroll
    for (int i = 0; i < WM; i++) {
        int tile = (int)blockIdx.x * WM + i;
        tile = tile < p.product.n_tiles ? tile : p.product.n_tiles - 1;
        at.w[i] = p.product.w + ((int64_t)tile * n_all + at.part * at.n_steps) * CONV_STEP_BYTES +
                  at.lane * 16;
    }
}

/* The small vectors that the end of the kernel needs, on their way from memory meanwhile. */
static __device__ __forceinline__ void fetch_operands(const cuda_conv &p, int first_output, int lane)
{
    const float *vectors[] = {p.product.bias, p.scale, p.snake_a, p.snake_b};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if (lane == i && vectors[i]) {
            ptx_prefetch(vectors[i] + first_output % p.width);
        }
    }
}

template <int WM, int WN>
static __device__ __forceinline__ void begin_reader(
    conv_reader<WN> &reader, const cuda_conv &p, const conv_place<WM, WN> &at)
{
    reader_begin(reader, p, at.first + at.warp / p.product.splits * at.COLUMNS, p.most_columns,
        at.n_steps / (p.product.chunk * p.product.taps) * at.part);
}

/* Before the kernels in front have ended: the weights of the first steps. */
template <int WM, int WN, int DEPTH>
static __device__ __forceinline__ void begin_weights(
    conv_ahead<WM, WN, DEPTH> &ahead, const conv_place<WM, WN> &at)
{
#pragma unroll
    for (int d = 0; d < DEPTH; d++) {
        if (d < at.n_steps) {
            load_weights(ahead.a[d], at.w, d);
        }
    }
}

template <int WM, int WN, int DEPTH>
static __device__ __forceinline__ void queue_weights(
    const conv_queue<WM, WN, DEPTH> &queue, const conv_place<WM, WN> &at, int step, int slot)
{
    uint4 *to = queue.at + slot * queue.QUADS * CONV_THREADS;
#pragma unroll
    for (int i = 0; i < WM; i++) {
        const unsigned char *from = at.w[i] + (int64_t)step * CONV_STEP_BYTES;
        bool shared = at.n_subs > 1; /* by warps beside this one */
        copy_step(to + CONV_WEIGHT_HALVES * i * CONV_THREADS, CONV_THREADS, from, shared);
    }
}

template <int WM, int WN, int DEPTH>
static __device__ __forceinline__ void begin_weights(
    conv_queue<WM, WN, DEPTH> &queue, const conv_place<WM, WN> &at)
{
    for (int d = 0; d < DEPTH && d < at.n_steps; d++) {
        queue_weights(queue, at, d, d);
    }
}

/* All steps of a warp. */
template <int WM, int WN, int DEPTH>
static __device__ __forceinline__ void sum_steps(const cuda_conv &p, const conv_place<WM, WN> &at,
    conv_ahead<WM, WN, DEPTH> &ahead, conv_reader<WN> &reader, float (&sum)[WM][WN][4],
    float (&square)[WN])
{
#pragma unroll
    for (int d = 0; d < DEPTH; d++) {
        if (d < at.n_steps) {
            reader_next(reader, p, ahead.b[d]);
        }
    }
    for (int s = 0; s < at.n_steps; s += DEPTH) {
#pragma unroll
        for (int d = 0; d < DEPTH; d++) {
            if (s + d < at.n_steps) {
                if (p.norm_width) {
                    add_squares(square, ahead.b[d]);
                }
                multiply(sum, ahead.a[d], ahead.b[d]);
                if (s + d + DEPTH < at.n_steps) {
                    load_weights(ahead.a[d], at.w, s + d + DEPTH);
                    reader_next(reader, p, ahead.b[d]);
                }
            }
        }
    }
}

template <int WM, int WN, int DEPTH>
static __device__ __forceinline__ void queue_columns(
    const conv_queue<WM, WN, DEPTH> &queue, conv_reader<WN> &reader, const cuda_conv &p, int slot)
{
    uint4 *to = queue.at + (slot * queue.QUADS + queue.WEIGHTS) * CONV_THREADS;
#pragma unroll
    for (int i = 0; i < WN; i++) {
        ptx_copy(to + i * CONV_THREADS, reader.row[i] + reader.group * CONV_GROUP_BYTES, true);
    }
    reader_move(reader, p);
}

/* A thread reads only what it has copied itself, so no barrier is needed; a place is filled again when what lay there
 * has been multiplied. */
template <int WM, int WN, int DEPTH>
static __device__ __forceinline__ void sum_steps(const cuda_conv &p, const conv_place<WM, WN> &at,
    conv_queue<WM, WN, DEPTH> &queue, conv_reader<WN> &reader, float (&sum)[WM][WN][4],
    float (&square)[WN])
{
    for (int d = 0; d < DEPTH; d++) {
        if (d < at.n_steps) {
            queue_columns(queue, reader, p, d);
        }
        ptx_copy_end();
    }
    for (int s = 0, slot = 0; s < at.n_steps; s++) {
        ptx_copy_wait<DEPTH - 1>();
        const uint4 *from = queue.at + slot * queue.QUADS * CONV_THREADS;
        uint4 a[WM][CONV_WEIGHT_HALVES], b[WN];
#pragma unroll
        for (int i = 0; i < WM; i++) {
            load_step<false>(a[i], from + CONV_WEIGHT_HALVES * i * CONV_THREADS, CONV_THREADS);
        }
#pragma unroll
        for (int i = 0; i < WN; i++) {
            b[i] = from[(queue.WEIGHTS + i) * CONV_THREADS];
        }
        if (p.norm_width) {
            add_squares(square, b);
        }
        multiply(sum, a, b);
        if (s + DEPTH < at.n_steps) {
            queue_weights(queue, at, s + DEPTH, slot);
            queue_columns(queue, reader, p, slot);
        }
        ptx_copy_end();
        slot = slot + 1 == DEPTH ? 0 : slot + 1;
    }
}

/* The squares of a warp's part of its columns. */
template <int WN>
static __device__ __forceinline__ void keep_squares(float *squares, float (&square)[WN], int lane)
{
#pragma unroll
    for (int i = 0; i < WN; i++) {
        square[i] += __shfl_xor_sync(0xffffffffu, square[i], 1);
        square[i] += __shfl_xor_sync(0xffffffffu, square[i], 2);
        if (lane % 4 == 0) {
            squares[i * 8 + lane / 4] = square[i];
        }
    }
}

static __device__ __forceinline__ float4 scale4(float4 v, float scale)
{
    return make_float4(v.x * scale, v.y * scale, v.z * scale, v.w * scale);
}

/* Four outputs of a column: `parts` and `squares` are those of the first of `splits` warps. */
static __device__ __forceinline__ void add_parts(const cuda_conv &p, const float *parts, int parts_step,
    const float *squares, int squares_step, const conv_operands &operands)
{
    float4 v = make_float4(0, 0, 0, 0), up = v;
    float total = 0;
    bool gate = p.after == CONV_GATE;
    for (int i = 0; i < p.product.splits; i++) {
        v = add4(v, *(const float4 *)(parts + i * parts_step));
        if (gate) {
            up = add4(up, *(const float4 *)(parts + i * parts_step + 8));
        }
        if (p.norm_width) {
            total += squares[i * squares_step];
        }
    }
    if (p.norm_width) {
        float scale = norm_factor(total, p.norm_width, p.norm_eps);
        v = scale4(v, scale), up = scale4(up, scale);
    }
    if (gate) {
        v = multiply4(make_float4(silu(v.x), silu(v.y), silu(v.z), silu(v.w)), up);
    }
    finish(p, v, operands);
}

/* What an item of a pass is: four outputs of one column. */
struct conv_item {
    int sub, c, quad, tile, column;
    bool own;
};

template <int WM, int WN>
static __device__ __forceinline__ conv_item item_of(
    const cuda_conv &p, const conv_place<WM, WN> &at, int pass, int k)
{
    typedef conv_place<WM, WN> place;
    conv_item item;
    item.quad = k % place::QUADS, item.c = k / place::QUADS % (8 * place::PASS);
    item.sub = k / place::QUADS / (8 * place::PASS);
    item.tile = (int)blockIdx.x * WM + item.quad / 4;
    item.column = at.first + item.sub * at.COLUMNS + pass * 8 + item.c;
    bool counts = p.after != CONV_GATE || item.quad % 4 < 2; /* the others are used with these */
    item.own =
        counts && item.sub < at.n_subs && item.column < at.n_columns && item.tile < p.product.n_tiles;
    return item;
}

static __device__ __forceinline__ conv_operands constants_of(const cuda_conv &p, const conv_item &item)
{
    int output = item.tile * (p.after == CONV_GATE ? 8 : 16) + item.quad % 4 * 4;
    return constants_of(p, output % p.width, (int64_t)item.column * p.rate + output / p.width);
}

static __device__ __forceinline__ void place_queue(...)
{
}

template <int WM, int WN, int DEPTH>
static __device__ __forceinline__ void place_queue(
    conv_queue<WM, WN, DEPTH> *queue, unsigned char *shared)
{
    queue->at = (uint4 *)shared + threadIdx.x;
}

/* What the kernel uses after its wait. */
static __device__ __forceinline__ void need_late(const cuda_conv &p)
{
    ptx_need(p.residual);
    ptx_need(p.raw);
    ptx_need(p.ready);
    ptx_need(p.norm_width);
}

/* A warp's sums of one pass go to shared memory. */
template <int WM, int WN>
static __device__ __forceinline__ void lay_down(
    float (*parts)[conv_place<WM, WN>::STRIDE], const float (&sum)[WM][WN][4], int pass, int lane)
{
#pragma unroll
    for (int i = 0; i < WM; i++) {
#pragma unroll
        for (int j = 0; j < conv_place<WM, WN>::PASS; j++) {
            int column = j * 8 + lane % 4 * 2, output = i * 16 + lane / 4;
            parts[column][output] = sum[i][pass + j][0];
            parts[column + 1][output] = sum[i][pass + j][1];
            parts[column][output + 8] = sum[i][pass + j][2];
            parts[column + 1][output + 8] = sum[i][pass + j][3];
        }
    }
}

/* Dynamic shared memory: the queue, and after the steps the parts. */
template <int WM, int WN, typename A>
static __global__ __launch_bounds__(CONV_THREADS) void conv_kernel(cuda_conv p)
{
    typedef conv_place<WM, WN> place;
    constexpr bool EARLY = WM * WN == 1; /* a thread has one item at most */
    PTX_DYNAMIC_SHARED(unsigned char, conv_shared, 16);
    float(*parts)[8 * place::PASS][place::STRIDE] =
        (float(*)[8 * place::PASS][place::STRIDE])(void *)conv_shared;
    __shared__ float squares[CONV_WARPS][place::COLUMNS];
    place at = {};
    A ahead;
    place_queue(&ahead, conv_shared);
    begin_place(p, at);
    begin_weights(ahead, at);
    ptx_let_next_begin();
    if (at.warp == 0 && p.after != CONV_GATE) {
        fetch_operands(p, (int)blockIdx.x * WM * 16, at.lane);
    }
    at.n_columns = p.call->n * p.time_steps, at.first = (int)blockIdx.y * at.n_subs * at.COLUMNS;
    conv_reader<WN> reader;
    begin_reader(reader, p, at);
    const conv_item first = item_of(p, at, 0, (int)threadIdx.x);
    conv_operands early = {};
    if (EARLY && first.own) {
        early = constants_of(p, first);
    }
    need_late(p);
    ptx_wait_for_earlier();
    if (at.first > 0 && at.first >= at.n_columns) {
        return;
    }
    if (EARLY && first.own) {
        load_residual(p, early);
    }
    float sum[WM][WN][4] = {}, square[WN] = {};
    sum_steps(p, at, ahead, reader, sum, square);
    if (p.norm_width) {
        keep_squares(squares[at.warp], square, at.lane);
    }
    /* PASS * 8 columns of each warp at a time go through shared memory. */
#pragma unroll
    for (int pass = 0; pass < WN; pass += place::PASS) {
        __syncthreads();
        lay_down<WM, WN>(parts[at.warp], sum, pass, at.lane);
        __syncthreads();
        for (int k = (int)threadIdx.x; k < at.n_subs * 8 * place::PASS * place::QUADS;
             k += CONV_THREADS) {
            const conv_item item = item_of(p, at, pass, k);
            if (item.own) {
                if (!EARLY) {
                    early = constants_of(p, item);
                    load_residual(p, early);
                }
                add_parts(p, &parts[item.sub * p.product.splits][item.c][item.quad * 4],
                    8 * place::PASS * place::STRIDE,
                    &squares[item.sub * p.product.splits][pass * 8 + item.c], place::COLUMNS, early);
            }
        }
    }
}

/* ---- Which tile ---- */

struct conv_variant {
    void (*kernel)(cuda_conv);
    int tiles, columns; /* of a warp: of 16 outputs, and columns */
    int shared_bytes;
};

template <int WM, int WN, typename A> static constexpr conv_variant variant_of()
{
    typedef conv_place<WM, WN> place;
    int parts = CONV_WARPS * 8 * place::PASS * place::STRIDE * (int)sizeof(float);
    return {conv_kernel<WM, WN, A>, WM, 8 * WN, parts > A::BYTES ? parts : A::BYTES};
}

static const struct conv_variant variants[] = {
    variant_of<2, 8, conv_ahead<2, 8, 2>>(),
    variant_of<2, 4, conv_ahead<2, 4, 3>>(),
    variant_of<1, 4, conv_queue<1, 4, 4>>(),
    variant_of<1, 2, conv_queue<1, 2, 6>>(),
    variant_of<1, 1, conv_queue<1, 1, 8>>(),
};
enum { N_VARIANTS = sizeof variants / sizeof *variants };

static dim3 grid_of(const struct conv_variant *v, const struct cuda_conv *conv, int n_columns)
{
    int columns = v->columns * (CONV_WARPS / conv->product.splits);
    return dim3((unsigned)((conv->product.n_tiles + v->tiles - 1) / v->tiles),
        (unsigned)((n_columns + columns - 1) / columns));
}

/* The largest tile that still fills the device. */
static const struct conv_variant *choose(const struct cuda_conv *conv, int n_columns, int n_sms)
{
    for (int i = 0; i < N_VARIANTS - 1; i++) {
        dim3 grid = grid_of(&variants[i], conv, n_columns);
        bool fits = n_columns > variants[i + 1].columns;
        int enough = i < 2 ? 50 : 150; /* blocks for 100 multiprocessors, as measured */
        if (fits && (int64_t)grid.x * grid.y * 100 >= (int64_t)n_sms * enough) {
            return &variants[i];
        }
    }
    return &variants[N_VARIANTS - 1];
}

cudaError_t cuda_conv_run(
    const struct cuda_conv *conv, int n_items, const struct cuda_device *device, cudaStream_t stream)
{
    int n_columns = n_items * conv->time_steps;
    if (cuda_conv_suits_many(conv, n_columns, device)) {
        return cuda_conv_run_many(conv, n_columns, device, stream);
    }
    const struct conv_variant *v = choose(conv, n_columns, device->arch.n_sms);
    return launch(v->kernel, grid_of(v, conv, n_columns), CONV_THREADS, device->arch.overlaps, stream,
        *conv, v->shared_bytes);
}

cudaError_t cuda_conv_prepare(const struct cuda_device *device)
{
    cudaError_t result = cuda_conv_prepare_many(device);
    for (int i = 0; !result && i < N_VARIANTS; i++) {
        result = cudaFuncSetAttribute(ptx_kernel(variants[i].kernel),
            cudaFuncAttributeMaxDynamicSharedMemorySize, variants[i].shared_bytes);
        result = result ? result : prefer_shared(ptx_kernel(variants[i].kernel));
    }
    return result;
}
