/* SPDX-License-Identifier: Apache-2.0
 * Products of very many vectors with wgmma, for sm_90a (lib/ptx_matrix.cuh). Teams of four warps
 * multiply together, and the blocks of a cluster bring weights and operand to each other's shared
 * memory, so that both are read once for several blocks: the L2 cache is what bounds these products,
 * not the tensor cores. One warp asks for copies; the others wait for a stage, take its weights into
 * registers in their order, and multiply them with the operand where it lies. Sums are added up
 * where the kernels of fewer vectors change from one warp's part to the next; both kinds of tensor
 * instructions add 16 products at once and give the same bits. */
#include "cuda/lib/ptx_order.cuh"
#include "cuda/prompt/wide_team.cuh"

namespace {

enum {
    FROM = 96,       /* vectors: fewer are faster without teams */
    FROM_LONG = 256, /* the same with more columns than FEW_TILES */
    MOST_STAGES = 8,
    AT_ONCE = 6, /* groups that are handed on */
    TEAM = 128,  /* threads */
};

/* A block makes 64 TEAMS rows of 4 GROUPS vectors. Those of a cluster: ACROSS beside each other have the same rows,
 * DOWN above each other the same vectors. */
template <int TEAMS_, int GROUPS_, int ACROSS_, int DOWN_> struct team {
    enum : int {
        TEAMS = TEAMS_,
        GROUPS = GROUPS_,
        ACROSS = ACROSS_,
        DOWN = DOWN_,
        ROWS = 4 * TEAMS,
        WARPS = 4 * TEAMS,
        BYTES = ROWS * WEIGHT_BYTES + GROUPS * GROUP_BYTES, /* of a stage */
        BLOCKS = TEAMS == 1 ? 2 : 1,                        /* on a multiprocessor */
        ROOM = (TEAMS == 1 ? 110 : 208) << 10,
        STAGES = ROOM / BYTES < MOST_STAGES ? ROOM / BYTES : MOST_STAGES,
        SHARED = STAGES * BYTES,
        /* Three teams: the warps that bring, four then, leave registers to those that multiply. */
        MOVES = TEAMS > 2,
        REGISTERS = 160,
        LEFT = 32,
        THREADS = TEAMS * TEAM + (MOVES ? TEAM : 32),
    };
};

struct group_task {
    struct wide_task w;
    int n_groups; /* of vectors */
};

#if PTX_GROUPS

struct barriers {
    uint64_t full[MOST_STAGES], empty[MOST_STAGES];
};

/* ---- The warp that asks for copies ---- */

/* What a block brings, and to whom. */
struct bringer {
    const unsigned char *weights, *operand; /* of its first row tile and group of the first stage */
    int64_t row_step;                       /* bytes to the next row tile */
    int64_t slab_step;                      /* bytes to the next stage's groups */
    int rows;                               /* row tiles of the block */
    int mine, groups;                       /* groups that this block brings, of how many */
    uint16_t beside,
        above; /* masks: the cluster's blocks with the same rows, and with the same vectors */
};

template <class S>
__device__ __forceinline__ struct bringer begin_bringer(const struct group_task &task)
{
    const struct cuda_matrix &m = task.w.p.matrix;
    const int x = (int)blockIdx.x, y = (int)blockIdx.y, each = S::GROUPS / S::DOWN;
    const int row = y * S::ROWS + x % S::ACROSS, group = x * S::GROUPS + y % S::DOWN * each;
    struct bringer b;
    b.row_step = (int64_t)m.n_k_tiles * CUDA_TILE_BYTES;
    b.slab_step = (int64_t)task.w.n_groups * GROUP_BYTES;
    b.weights = (const unsigned char *)m.tiles + row * b.row_step;
    b.operand = (const unsigned char *)task.w.operand + (int64_t)group * GROUP_BYTES;
    b.rows = min((int)S::ROWS, max(m.n_row_tiles - y * S::ROWS, 0));
    b.mine = min(each, max(task.n_groups - group, 0));
    b.groups = min((int)S::GROUPS, max(task.n_groups - x * S::GROUPS, 0));
    b.beside = (uint16_t)(((1 << S::ACROSS) - 1) << (y % S::DOWN * S::ACROSS));
    b.above = 0;
#pragma unroll
    for (int i = 0; i < S::DOWN; i++) {
        b.above = (uint16_t)(b.above | 1 << (i * S::ACROSS + x % S::ACROSS));
    }
    return b;
}

/* This block's share of the row tiles of a stage goes to all blocks beside it. */
template <class S>
__device__ __forceinline__ void ask_for_weights(
    const struct bringer &b, int stage, unsigned char *to, uint64_t *barrier)
{
    const int mine = (int)blockIdx.x % S::ACROSS;
    const unsigned char *from = b.weights + stage * WEIGHT_BYTES;
#pragma unroll
    for (int i = 0; i < S::ROWS; i += S::ACROSS) {
        if (i + mine < b.rows) {
            ptx_bulk_copy_to_all(to + (i + mine) * WEIGHT_BYTES, from, WEIGHT_BYTES, barrier, b.beside);
        }
        from += S::ACROSS * b.row_step;
    }
}

/* Its share of the groups goes to all blocks above and below it. */
template <class S>
__device__ __forceinline__ void ask_for_operand(
    const struct bringer &b, int stage, unsigned char *to, uint64_t *barrier)
{
    const int first = (int)blockIdx.y % S::DOWN * (S::GROUPS / S::DOWN);
    if (b.mine > 0) {
        ptx_bulk_copy_to_all(to + S::ROWS * WEIGHT_BYTES + first * GROUP_BYTES,
            b.operand + stage * b.slab_step, (uint32_t)(b.mine * GROUP_BYTES), barrier, b.above);
    }
}

template <class S>
__device__ __forceinline__ void bring(
    const struct group_task &task, unsigned char *stages, struct barriers &at, int n)
{
    const struct bringer b = begin_bringer<S>(task);
    const uint32_t bytes = (uint32_t)(b.rows * WEIGHT_BYTES + b.groups * GROUP_BYTES);
#pragma unroll 1
    for (int i = 0; i < min(n, (int)S::STAGES); i++) {
        ptx_spare(stages + i * S::BYTES + b.rows * WEIGHT_BYTES, (S::ROWS - b.rows) * WEIGHT_BYTES);
        ptx_expect_by_one(&at.full[i], bytes);
        ask_for_weights<S>(b, i, stages + i * S::BYTES, &at.full[i]);
    }
    ptx_let_next_begin();
    ptx_wait_for_earlier();
    ptx_copies_see();
#pragma unroll 1
    for (int i = 0; i < min(n, (int)S::STAGES); i++) {
        ask_for_operand<S>(b, i, stages + i * S::BYTES, &at.full[i]);
    }
    uint32_t parity = 0;
#pragma unroll 1
    for (int i = S::STAGES, slot = 0; i < n; i++) {
        ptx_wait(&at.empty[slot], parity);
        ptx_expect_by_one(&at.full[slot], bytes);
        ask_for_weights<S>(b, i, stages + slot * S::BYTES, &at.full[slot]);
        ask_for_operand<S>(b, i, stages + slot * S::BYTES, &at.full[slot]);
        if (++slot == S::STAGES) {
            slot = 0;
            parity ^= 1;
        }
    }
}

/* ---- The warps that multiply ---- */

/* How far a warp is in the ring. */
struct ring_place {
    int slot;        /* of the stage that is read */
    uint32_t parity; /* of that stage's barrier */
    /* Where this thread says that its warp has left a stage: the barriers `empty` of one of the
     * blocks that copy into this block's stages, as an address in the cluster's shared memory; 0:
     * this thread says nothing. */
    uint32_t empty;
};

template <class S> __device__ __forceinline__ uint32_t empty_barrier_of(struct barriers &b)
{
    const int lane = (int)threadIdx.x % 32;
    const bool writes =
        lane < S::ACROSS * S::DOWN && (lane / S::ACROSS == (int)blockIdx.y % S::DOWN ||
                                          lane % S::ACROSS == (int)blockIdx.x % S::ACROSS);
    return writes ? ptx_cluster_map(ptx_shared_at(b.empty), (uint32_t)lane) : 0;
}

/* This warp's weights of half a stage, once it is there. */
template <class S>
__device__ __forceinline__ void take_weights(uint4 (&weights)[HALF], const unsigned char *stages,
    struct barriers &b, const struct ring_place &at, int half)
{
    const unsigned char *mine = stages + at.slot * S::BYTES + threadIdx.x / 32 * WEIGHT_BYTES;
    if (half == 0) {
        ptx_wait(&b.full[at.slot], at.parity);
    }
    load_weights(weights, mine, half, (int)(threadIdx.x % 32));
}

/* Sets half a stage's products off. */
template <class S>
__device__ __forceinline__ void multiply_half(struct sums<S::GROUPS> &s, const uint4 (&weights)[HALF],
    const unsigned char *stages, const struct ring_place &at, int half, bool fresh)
{
    begin_half(s, weights, stages + at.slot * S::BYTES + S::ROWS * WEIGHT_BYTES, half, fresh);
}

/* Sums to which a norm follows, as the operand of the product behind it: times the norm's weights, and the squares of
 * each tile as prepare_kernel (wide.cu) notes them. Two threads have neighbouring columns: one stores upper parts
 * and the squares, one lower parts. */
__device__ __forceinline__ void leave_normed(
    const struct wide_task &task, int g, const struct results<AT_ONCE> &r)
{
#pragma unroll
    for (int i = 0; i < AT_ONCE; i++) {
        const float first = __shfl_xor_sync(0xffffffffu, r.first[i], 4),
                    second = __shfl_xor_sync(0xffffffffu, r.second[i], 4);
        const int v = r.v[i], tile = r.tile[i], col = tile * CUDA_TILE + g / 2 * 2;
        if (v >= task.p.n_vectors || tile >= task.p.matrix.n_row_tiles) {
            continue;
        }
        const bool odd = g % 2;
        const float2 x0 = odd ? make_float2(first, r.first[i]) : make_float2(r.first[i], first),
                     x1 = odd ? make_float2(second, r.second[i]) : make_float2(r.second[i], second);
        const float2 n0 = *(const float2 *)(task.next_norm + col),
                     n1 = *(const float2 *)(task.next_norm + col + 8);
        uint16_t *to = (uint16_t *)task.next + operand_place(task.n_groups, v, col) + (odd ? 8 : 0);
        *(uint32_t *)to = finish_part(__fmul_rn(x0.x, n0.x), __fmul_rn(x0.y, n0.y), odd);
        *(uint32_t *)(to + 64) = finish_part(__fmul_rn(x1.x, n1.x), __fmul_rn(x1.y, n1.y), odd);
        if (!odd) {
            task.next_squares[((int64_t)v * task.next_k_tiles + tile) * 4 + g / 2] =
                norm_squares(x0, x1);
        }
    }
}

/* The factors of the norm of this block's vectors from the squares of their tiles, a vector a warp. */
template <class S> __device__ __forceinline__ void find_scales(const struct wide_task &task)
{
    const struct cuda_linear &p = task.p;
    const int n_k = p.matrix.n_k_tiles, parts = parts_of(n_k), each = n_k / parts;
    const int lane = (int)threadIdx.x % 32, begin = (int)blockIdx.x * S::GROUPS * CUDA_TILE_VECTORS;
    const int end = min(begin + S::GROUPS * CUDA_TILE_VECTORS, p.n_vectors);
    for (int v = begin + (int)threadIdx.x / 32; v < end; v += S::WARPS) {
        const float sum = add_squares<0>(task.squares, v, n_k, parts, each, lane);
        if (lane == 0) {
            ptx_store_alike(task.scales + v, norm_factor(sum, p.matrix.cols, p.eps));
        }
    }
}

/* Through shared memory, so that one piece of code does a few groups after the other: the last steps of all at once
 * would be more instructions than their cache has room for. */
template <class S>
__device__ __forceinline__ void store_sums(
    const struct wide_task &task, unsigned char *stages, const struct sums<S::GROUPS> &s)
{
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    float2 *mine = (float2 *)stages + warp * S::GROUPS * 32 + lane;
    ptx_some_barrier<1, S::WARPS * 32>(); /* all are through with the stages */
#pragma unroll
    for (int j = 0; j < S::GROUPS; j++) {
        mine[j * 32] = make_float2(s.before[j][0], s.before[j][1]);
    }
#pragma unroll 1
    for (int from = 0; from < S::GROUPS; from += AT_ONCE) {
        struct results<AT_ONCE> some;
#pragma unroll
        for (int j = 0; j < AT_ONCE; j++) {
            const bool there = from + j < S::GROUPS;
            const float2 sum = there ? mine[(from + j) * 32] : make_float2(0, 0);
            const int v = ((int)blockIdx.x * S::GROUPS + from + j) * CUDA_TILE_VECTORS + lane % 4;
            some.tile[j] = (int)blockIdx.y * S::ROWS + warp;
            some.v[j] = there ? v : task.p.n_vectors;
            some.first[j] = sum.x;
            some.second[j] = sum.y;
        }
        store_results(task, lane / 4, some);
        if (task.next_squares) {
            leave_normed(task, lane / 4, some);
        }
    }
}

template <class S>
__device__ __forceinline__ void multiply(
    const struct group_task &task, unsigned char *stages, struct barriers &b, int n, int part)
{
    struct sums<S::GROUPS> s = {};
    struct ring_place at = {0, 0, empty_barrier_of<S>(b)};
    uint4 weights[2][HALF]; /* of this half and the next, in turns */
    ptx_wait_for_earlier();
    if (task.w.squares) { /* other blocks write the same */
        find_scales<S>(task.w);
    }
    take_weights<S>(weights[0], stages, b, at, 0);
    bool fresh = true;
    int left = part;
#pragma unroll 1
    for (int i = 0; i < n; i++) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            multiply_half<S>(s, weights[half], stages, at, half, fresh);
            const uint32_t empty = at.empty ? at.empty + (uint32_t)(at.slot * 8) : 0;
            if (half == 1) {
                at.slot = at.slot + 1 == S::STAGES ? 0 : at.slot + 1;
                at.parity ^= at.slot == 0;
            }
            if (half == 0 || i + 1 < n) {
                take_weights<S>(weights[1 - half], stages, b, at, 1 - half);
            }
            ptx_group_wait(s.now);
            if (half == 1 && empty) {
                ptx_arrive_at(empty);
            }
            fresh = --left == 0;
            if (fresh) {
                end_part(s);
                left = part;
            }
        }
    }
    store_sums<S>(task.w, stages, s);
}

#endif

template <class S>
__global__ void __launch_bounds__(S::THREADS, S::BLOCKS)
    group_kernel(const __grid_constant__ struct group_task task)
{
#if PTX_GROUPS
    PTX_NEEDS_GROUPS;
    PTX_DYNAMIC_SHARED(unsigned char, stages, 128);
    __shared__ struct barriers b;
    const int n_k = task.w.p.matrix.n_k_tiles, n = n_k / DEEP;
    const int part = n_k / parts_of(n_k) / HALF;
    const int warp = __shfl_sync(0xffffffffu, (int)threadIdx.x / 32, 0);
    if (threadIdx.x == 0) {
        for (int i = 0; i < S::STAGES; i++) {
            ptx_barrier_begin(&b.full[i], 1);
            ptx_barrier_begin(&b.empty[i], (uint32_t)(S::WARPS * (S::ACROSS + S::DOWN - 1)));
        }
        ptx_barriers_ready();
    }
    __syncthreads();
    ptx_cluster_barrier();
    if (warp >= S::WARPS) {
        if (S::MOVES) {
            ptx_registers_less<S::LEFT>();
        }
        if (warp == S::WARPS) {
            bring<S>(task, stages, b, n);
        }
    } else {
        if (S::MOVES) {
            ptx_registers_more<S::REGISTERS>();
        }
        multiply<S>(task, stages, b, n, part);
    }
    __syncthreads();
    ptx_cluster_barrier(); /* nobody leaves while others write to its shared memory */
#endif
}

/* ---- Launches ---- */

template <class S> cudaError_t allow()
{
    return cudaFuncSetAttribute(
        group_kernel<S>, cudaFuncAttributeMaxDynamicSharedMemorySize, S::SHARED);
}

template <class S> cudaError_t start(const struct cuda_queue *q, const struct wide_task &w)
{
    const struct group_task task = {w, (w.p.n_vectors + CUDA_TILE_VECTORS - 1) / CUDA_TILE_VECTORS};
    const int wide = (task.n_groups + S::GROUPS - 1) / S::GROUPS,
              high = (task.w.p.matrix.n_row_tiles + S::ROWS - 1) / S::ROWS;
    cudaLaunchAttribute attributes[2];
    attributes[0].id = cudaLaunchAttributeClusterDimension;
    attributes[0].val.clusterDim.x = S::ACROSS;
    attributes[0].val.clusterDim.y = S::DOWN;
    attributes[0].val.clusterDim.z = 1;
    attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[1].val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)((wide + S::ACROSS - 1) / S::ACROSS * S::ACROSS),
        (unsigned)((high + S::DOWN - 1) / S::DOWN * S::DOWN));
    config.blockDim = dim3(S::THREADS);
    config.dynamicSmemBytes = S::SHARED;
    config.stream = q->stream;
    config.attrs = attributes;
    config.numAttrs = q->overlaps ? 2 : 1;
    return cudaLaunchKernelEx(&config, group_kernel<S>, task);
}

/* Cycles, about: a stage takes as long as its products, or its way from the L2 cache. */
template <class S> int64_t cost(const struct cuda_wide *w)
{
    enum { A_COPY = 80, BYTES_A_CYCLE = 24, A_BLOCK = 6000 };
    const struct cuda_matrix &m = w->linear.matrix;
    const int64_t groups = (w->linear.n_vectors + CUDA_TILE_VECTORS - 1) / CUDA_TILE_VECTORS;
    const int64_t blocks =
        (groups + S::GROUPS - 1) / S::GROUPS * ((m.n_row_tiles + S::ROWS - 1) / S::ROWS);
    const int64_t ways[] = {S::TEAMS * DEEP * S::GROUPS * 4, (S::ROWS / S::ACROSS + 1) * A_COPY,
        (S::ROWS * WEIGHT_BYTES / S::ACROSS + S::GROUPS * GROUP_BYTES / S::DOWN) / BYTES_A_CYCLE};
    int64_t stage = 0;
    for (int64_t way : ways) {
        stage = way > stage ? way : stage;
    }
    return (blocks + w->arch->n_sms - 1) / w->arch->n_sms * (m.n_k_tiles / DEEP * stage + A_BLOCK);
}

struct shape {
    cudaError_t (*allow)();
    cudaError_t (*start)(const struct cuda_queue *q, const struct wide_task &w);
    int64_t (*cost)(const struct cuda_wide *w);
};

template <class S> constexpr struct shape shape_of()
{
    return {allow<S>, start<S>, cost<S>};
}

const struct shape shapes[] = {shape_of<team<1, 10, 2, 2>>(), shape_of<team<2, 8, 1, 2>>(),
    shape_of<team<2, 16, 1, 2>>(), shape_of<team<2, 18, 1, 2>>(), shape_of<team<3, 16, 1, 2>>(),
    shape_of<team<3, 18, 1, 2>>()};
static_assert(sizeof shapes / sizeof *shapes == WIDE_GROUP_SHAPES, "CUDA_WIDE_SHAPES counts them");

/* Whether the device and the code for it have products by teams of warps. */
bool has_teams(const struct cuda_arch *arch)
{
    return arch->wgmma && arch->register_moves;
}

} // namespace

cudaError_t wide_group_open(const struct cuda_arch *arch)
{
    cudaError_t result = cudaSuccess;
    for (int i = 0; i < WIDE_GROUP_SHAPES && result == cudaSuccess && has_teams(arch); i++) {
        result = shapes[i].allow();
    }
    return result;
}

int wide_group_best(const struct cuda_wide *w)
{
    const struct cuda_matrix &m = w->linear.matrix;
    int best = -1;
    if (!has_teams(w->arch) || !are_whole_halves(m.n_k_tiles) ||
        w->linear.n_vectors < (m.n_k_tiles > FEW_TILES ? FROM_LONG : FROM)) {
        return -1;
    }
    for (int i = 0; i < WIDE_GROUP_SHAPES; i++) {
        best = best < 0 || shapes[i].cost(w) < shapes[best].cost(w) ? i : best;
    }
    return best;
}

cudaError_t wide_group_start(
    const struct cuda_queue *q, const struct cuda_wide *w, const struct wide_task &task, int shape)
{
    return shape < WIDE_GROUP_SHAPES && has_teams(w->arch) &&
                   are_whole_halves(w->linear.matrix.n_k_tiles)
               ? shapes[shape].start(q, task)
               : cudaErrorInvalidValue;
}
