/* SPDX-License-Identifier: Apache-2.0
 * What the parts of the frame kernel cost on this GPU, each alone: ways of exchanging a vector between all blocks,
 * the ring of bulk copies with and without exchanges between, how much stays in the L2 cache, the choice of a
 * code. Usage: frame_parts. Prints one line for each; medians of several launches. */
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <stdio.h>
#include <stdlib.h>

#define FRAME_LANES 1
#define FRAME_LANES_WIDTH 0
#include "cuda/persistent/embed.cuh"
#include "cuda/persistent/produce.cuh"

enum { TURNS = 400, N_LAUNCHES = 7, SLOT_BYTES = FRAME_SLOT_UNITS * FRAME_UNIT_BYTES };

static void must(cudaError_t result, const char *what)
{
    if (result != cudaSuccess) {
        printf("FATAL %s: %s\n", what, cudaGetErrorString(result));
        exit(2);
    }
}

struct parts_args {
    struct frame_args frame;
    uint32_t *counter; /* zero */
    uint32_t *words;   /* [2][8][2048], zero */
    float *data;       /* [2][1024] */
    const unsigned char *weights;
    uint64_t weight_bytes; /* of all blocks, a whole number of pieces each */
    int n_pieces;          /* of one pass of a block */
    int n_passes, per_exchange;
    bool keep;
    float *sink;
};

/* ---- Exchanges: every block gives 8 of 1,024 values and gets all ---- */

enum way { WAY_WORDS, WAY_COUNTER, WAY_GRID, WAY_CLUSTER };

/* One counter that only grows; data behind it. */
DEV void meet_counter(uint32_t *counter, uint32_t goal)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(counter) : "memory");
        uint32_t v;
        do {
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(counter) : "memory");
        } while (v < goal);
    }
    __syncthreads();
}

/* Blocks of a cluster meet first; its first one meets the others. */
DEV void meet_cluster(uint32_t *counter, uint32_t goal)
{
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
    uint32_t rank;
    asm volatile("mov.u32 %0, %cluster_ctarank;" : "=r"(rank));
    if (rank == 0 && threadIdx.x == 0) {
        asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(counter) : "memory");
        uint32_t v;
        do {
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(counter) : "memory");
        } while (v < goal);
    }
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
}

template <int KIND> DEV void meet_kind(struct block &b, float (&x)[1][4])
{
    if (b.thread < 16) {
        exchange_put(exchange_at<KIND>(b) + b.index * 16 + b.thread, x[0][0], exchange_next(b, KIND));
    }
    layer_add<KIND, 1024, 2>(b, x);
}

/* The kernel's own: two kinds in turn, as nobody may write a kind that is still waited for. */
DEV void meet_words(struct block &b, int turn, float (&x)[1][4])
{
    if (turn % 2) {
        meet_kind<FRAME_X_DOWN>(b, x);
    } else {
        meet_kind<FRAME_X_INPUT>(b, x);
    }
    dev_bar();
}

template <enum way WAY>
__global__ void __launch_bounds__(FRAME_ALL_THREADS, 1)
    exchange_kernel(const __grid_constant__ struct parts_args args)
{
    struct block b;
    block_begin(b, args.frame);
    float x[1][4] = {{0, 0, 0, 0}};
    for (int turn = 0; turn < TURNS; turn++) {
        if (WAY == WAY_WORDS) {
            if (b.warp >= FRAME_WARPS) {
                break;
            }
            meet_words(b, turn, x);
            continue;
        }
        float *data = args.data + turn % 2 * 1024;
        if (b.thread < 8) {
            __stcg(data + b.index * 8 + b.thread, x[0][0]);
        }
        if (WAY == WAY_COUNTER) {
            meet_counter(args.counter, (uint32_t)(turn + 1) * FRAME_BLOCKS);
        } else if (WAY == WAY_CLUSTER) {
            meet_cluster(args.counter, (uint32_t)(turn + 1) * (FRAME_BLOCKS / 8));
        } else {
            cooperative_groups::this_grid().sync();
        }
        if (b.thread < 256) {
            const float4 v = __ldcg((const float4 *)data + b.thread);
            x[0][0] += v.x + v.y;
            x[0][1] += v.z + v.w;
        }
    }
    if (b.warp < FRAME_WARPS) {
        args.sink[b.thread] = x[0][0] + x[0][1];
    }
    if (b.thread == 0 && WAY == WAY_WORDS) {
        args.frame.scratch.parity[b.index] = b.marks;
    }
}

/* Marked words, other ways to lay them out: WORDS a block, in COPIES places, each for some of the readers,
 * who take four at a time. */
template <int WORDS, int COPIES>
__global__ void __launch_bounds__(FRAME_ALL_THREADS, 1)
    words_kernel(const __grid_constant__ struct parts_args args)
{
    struct block b;
    block_begin(b, args.frame);
    if (b.warp >= FRAME_WARPS) {
        return;
    }
    constexpr int ALL = WORDS * FRAME_BLOCKS;
    float x = 0;
    uint32_t mark = 1;
    for (int turn = 0; turn < TURNS; turn++) {
        uint32_t *words = args.words + turn % 2 * (ALL * COPIES);
        if (b.thread < WORDS * COPIES) {
            exchange_put(words + b.thread / WORDS * ALL + b.index * WORDS + b.thread % WORDS, x, mark);
        }
        const uint32_t *mine = words + b.index % COPIES * ALL;
        constexpr int READS = ALL / 1024;
        uint4 v[READS];
        exchange_take4<READS>(b, mine + b.thread * 4, 1024, (1u << READS) - 1, mark, v);
        x += numeric_from_bits(v[0].x) + numeric_from_bits(v[0].w);
        dev_bar();
        mark ^= turn % 2;
    }
    args.sink[b.thread] = x;
}

/* ---- The ring, and what stays in the L2 cache ---- */

__global__ void __launch_bounds__(FRAME_ALL_THREADS, 1)
    stream_kernel(const __grid_constant__ struct parts_args args)
{
    struct block b;
    block_begin(b, args.frame);
    const int n = args.n_pieces * args.n_passes;
    if (b.warp >= FRAME_WARPS) {
        struct producer p = {dev_policy(args.keep), 0, 0, 0, 0};
        for (int i = 0; b.thread == FRAME_THREADS && i < n; i++) {
            const unsigned char *from =
                args.weights + ((size_t)b.index * args.n_pieces + i % args.n_pieces) * SLOT_BYTES;
            produce_slot(b, p, SLOT_BYTES);
            for (int at = 0; at < SLOT_BYTES; at += SLOT_BYTES / 4) {
                produce_copy(b, p, at, from + at, SLOT_BYTES / 4);
            }
            ring_next(b, b.slot, b.phase);
        }
        return;
    }
    typedef shape<false, 1, FRAME_SLOT_UNITS, 0> slot;
    struct held<slot> h;
    uint32_t all = 0;
    float x[1][4] = {{0, 0, 0, 0}};
    for (int i = 0; i < n; i++) {
        product_hold(b, h);
        all ^= h.tile[0][0].x ^ h.tile[1][1].y;
        if (args.per_exchange && i % args.per_exchange == args.per_exchange - 1) {
            meet_words(b, i / args.per_exchange, x);
        }
    }
    args.sink[b.thread] = (float)all + x[0][0];
    if (b.thread == 0) {
        args.frame.scratch.parity[b.index] = b.marks;
    }
}

/* ---- The choice of a code ---- */

__global__ void __launch_bounds__(FRAME_ALL_THREADS, 1)
    sample_kernel(const __grid_constant__ struct parts_args args)
{
    struct block b;
    block_begin(b, args.frame);
    if (b.warp >= FRAME_WARPS) {
        return;
    }
    int id = 0;
    for (int turn = 0; turn < TURNS; turn++) {
        struct choice_rule rule = {
            {0.9f, 50, 1, 1}, 2048, 2048, -1, false, NULL, 5, (uint32_t)turn, (uint32_t)id};
        float score[8];
        bool bad = false, any;
        for (int i = 0; i < 8; i++) {
            score[i] = 3.0f * sample_noise(choice_bits(rule, (uint32_t)sample_id(b, i) + 5000));
        }
        float noise[8];
        sample_draw(b, rule, noise);
        id = sample_choose(b, rule, score, noise, bad, &any);
    }
    args.sink[b.thread] = (float)id;
}

/* ---- Times ---- */

static float time_of(const void *kernel, struct parts_args *args, size_t shared, bool clusters)
{
    float all[N_LAUNCHES];
    cudaEvent_t begin, end;
    must(cudaEventCreate(&begin), "event");
    must(cudaEventCreate(&end), "event");
    must(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared),
        "shared memory");
    for (int i = 0; i < N_LAUNCHES; i++) {
        must(cudaMemset(args->counter, 0, 4), "counter");
        must(cudaMemset(args->words, 0, 131072), "words");
        must(cudaEventRecord(begin), "event");
        cudaLaunchAttribute attributes[2] = {};
        attributes[0].id = cudaLaunchAttributeCooperative;
        attributes[0].val.cooperative = 1;
        attributes[1].id = cudaLaunchAttributeClusterDimension;
        attributes[1].val.clusterDim.x = 8;
        attributes[1].val.clusterDim.y = attributes[1].val.clusterDim.z = 1;
        cudaLaunchConfig_t config = {};
        config.gridDim = dim3(FRAME_BLOCKS);
        config.blockDim = dim3(FRAME_ALL_THREADS);
        config.dynamicSmemBytes = shared;
        config.attrs = attributes;
        config.numAttrs = clusters ? 2 : 1;
        void *list[] = {args};
        cudaError_t result = cudaLaunchKernelExC(&config, kernel, list);
        if (result != cudaSuccess) {
            cudaGetLastError();
            printf("  cannot be launched: %s\n", cudaGetErrorString(result));
            return 0;
        }
        must(cudaEventRecord(end), "event");
        must(cudaEventSynchronize(end), "a launch");
        must(cudaEventElapsedTime(&all[i], begin, end), "time");
    }
    for (int i = 0; i < N_LAUNCHES; i++) {
        for (int j = i + 1; j < N_LAUNCHES; j++) {
            if (all[j] < all[i]) {
                float t = all[i];
                all[i] = all[j];
                all[j] = t;
            }
        }
    }
    return all[N_LAUNCHES / 2];
}

static void time_exchanges(struct parts_args *args, size_t shared)
{
    const struct {
        const char *name;
        const void *kernel;
        bool clusters;
    } ways[] = {
        {"marked words", (const void *)exchange_kernel<WAY_WORDS>, false},
        {"16 words a block", (const void *)words_kernel<16, 1>, false},
        {"16 words, 4 copies", (const void *)words_kernel<16, 4>, false},
        {"8 words", (const void *)words_kernel<8, 1>, false},
        {"8 words, 4 copies", (const void *)words_kernel<8, 4>, false},
        {"counter, then data", (const void *)exchange_kernel<WAY_COUNTER>, false},
        {"cooperative groups, then data", (const void *)exchange_kernel<WAY_GRID>, false},
        {"clusters of 8 and a counter, then data", (const void *)exchange_kernel<WAY_CLUSTER>, true},
    };
    for (const auto &way : ways) {
        printf("exchange, %s: %.3f us\n", way.name,
            time_of(way.kernel, args, shared, way.clusters) * 1e3 / TURNS);
    }
}

static void time_streams(struct parts_args *args, size_t shared)
{
    const int every[] = {0, 15, 3}, aheads[] = {1, 2, 2, 2, 3, 3, 3, 8},
              copy_clocks[] = {0, 0, 200, 250, 0, 200, 250, 0};
    args->n_pieces = (int)(args->weight_bytes / FRAME_BLOCKS / SLOT_BYTES);
    args->n_passes = 2;
    args->keep = false;
    for (int i = 0; i < 8; i++) {
        args->frame.control.n_ahead = aheads[i];
        args->frame.control.copy_clocks = copy_clocks[i];
        printf("ring, %d pieces on their way, %d clocks:", aheads[i], copy_clocks[i]);
        for (int per : every) {
            args->per_exchange = per;
            float ms = time_of((const void *)stream_kernel, args, shared, false);
            double bytes = (double)args->n_pieces * args->n_passes * SLOT_BYTES * FRAME_BLOCKS;
            printf(" an exchange every %d pieces: %.3f TB/s, %.3f us a piece;", per, bytes / ms * 1e-9,
                ms * 1e3 / (args->n_pieces * args->n_passes));
        }
        printf("\n");
    }
    args->frame.control.n_ahead = 4;
    args->frame.control.copy_clocks = 0;
    args->per_exchange = 0;
    for (int pieces = 16; pieces <= 96; pieces += pieces < 40 ? 8 : 24) {
        args->n_pieces = pieces;
        args->n_passes = 1600 / pieces;
        float rate[2];
        for (int keep = 0; keep < 2; keep++) {
            args->keep = keep != 0;
            float ms = time_of((const void *)stream_kernel, args, shared, false);
            rate[keep] =
                (float)((double)pieces * args->n_passes * SLOT_BYTES * FRAME_BLOCKS / ms * 1e-9);
        }
        printf("%.0f MB again and again: %.2f TB/s, marked to stay %.2f\n",
            (double)pieces * SLOT_BYTES * FRAME_BLOCKS * 1e-6, rate[0], rate[1]);
    }
}

int main(void)
{
    struct parts_args args = {};
    cudaDeviceProp device;
    must(cudaGetDeviceProperties(&device, 0), "device");
    args.weight_bytes = (uint64_t)512 << 20;
    if (device.major >= 12) {
        printf("FATAL: made for rings with whole slots (PTX_HALF_SLOTS)\n");
        return 2;
    }
    args.frame.control.n_slots =
        frame_n_slots(device.sharedMemPerBlockOptin, frame_ring_at(), false, false);
    args.frame.control.slot_bytes = SLOT_BYTES;
    args.frame.control.patience = 2000000000;
    must(cudaMalloc(&args.frame.scratch.words, frame_exchange_bytes()), "memory");
    must(cudaMemset(args.frame.scratch.words, 0, frame_exchange_bytes()), "memory");
    must(cudaMalloc(&args.frame.state.lane, sizeof *args.frame.state.lane), "memory");
    must(cudaMemset(args.frame.state.lane, 0, sizeof *args.frame.state.lane), "memory");
    must(cudaMalloc(&args.frame.scratch.parity, FRAME_BLOCKS * 4), "memory");
    must(cudaMemset(args.frame.scratch.parity, 0, FRAME_BLOCKS * 4), "memory");
    must(cudaMalloc(&args.frame.control.error, 4), "memory");
    must(cudaMemset(args.frame.control.error, 0, 4), "memory");
    must(cudaMalloc(&args.counter, 4), "memory");
    must(cudaMalloc(&args.data, 8192), "memory");
    must(cudaMalloc(&args.words, 131072), "memory");
    must(cudaMemset(args.data, 0, 8192), "memory");
    must(cudaMalloc(&args.sink, 4096), "memory");
    must(cudaMalloc((void **)&args.weights, args.weight_bytes), "memory");
    must(cudaMemset((void *)args.weights, 0x5a, args.weight_bytes), "memory");
    size_t shared = frame_ring_at() + (size_t)args.frame.control.n_slots * SLOT_BYTES;
    printf("%s, %d multiprocessors, %d slots of %d bytes, L2 cache %d MB\n", device.name,
        device.multiProcessorCount, args.frame.control.n_slots, (int)SLOT_BYTES,
        device.l2CacheSize >> 20);
    time_exchanges(&args, shared);
    time_streams(&args, shared);
    printf("choice of one of 2048, top-k 50: %.3f us\n",
        time_of((const void *)sample_kernel, &args, shared, false) * 1e3 / TURNS);
    uint32_t error;
    must(cudaMemcpy(&error, args.frame.control.error, 4, cudaMemcpyDeviceToHost), "error");
    printf("error bits %u\n", error);
    return error != 0;
}
