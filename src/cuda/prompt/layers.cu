/* SPDX-License-Identifier: Apache-2.0
 * All layers of a prompt in one kernel (layers.h). Its blocks, one on every multiprocessor, stay from
 * the first layer to the last and reach a barrier five times a layer: behind queries, keys and values,
 * normed, rotated and split where they arise; behind attention; the output projection; the gate; what
 * follows it. A product's weights are on their way while blocks wait there.
 *
 * In a block, warps 0 to 7, two teams, multiply and attend; one thread of warp 8 waits for the other
 * blocks and asks for copies; the three warps left find the factors of the norms and split keys of
 * earlier positions. What is summed in which order is as in the kernels of single products and of
 * attend_rows.cu.
 *
 * The code of a layer is kept small enough for the instructions' caches (128 KB on a
 * multiprocessor): code that is run once in each layer and was thrown out since comes at 30 cycles
 * and more an instruction. Hence loops that are not unrolled where that costs little, and one place
 * in the code for what two products do. */
#include "cuda/prompt/layers.h"

#include "cuda/prompt/layers_attend.cuh"
#include "cuda/prompt/layers_tiles.cuh"

namespace {

#if PTX_GROUPS

/* ---- Barriers of all blocks ---- */

/* What this thread wrote can be read by all blocks once `arrivals` has counted this block: one
 * thread waits for all stores of the block. Copies see them behind the fence of who asks for them
 * (wait_for_all). */
__device__ __forceinline__ void end_phase(const struct layers_task &task, struct state &b)
{
    ptx_some_barrier<3, BARRIER_THREADS>();
    if (self() == 0) {
        *(volatile uint32_t *)&b.ended += 1;
        ptx_add_last(task.arrivals);
    }
}

__device__ __forceinline__ void begin_phase(struct state &b, int &phase)
{
    ptx_wait(&b.open, (uint32_t)phase & 1);
    phase++;
}

/* ---- The warps that bring and multiply ---- */

/* Product number i of all layers': heads, output projection, gate, what follows it. */
__device__ __forceinline__ struct product find_product(const struct layers_task &task, int i)
{
    const struct layer &layer = task.layers[i / 4];
    const bool late = i % 4 > 1;
    if (i % 2 == 0) {
        return {
            late ? layer.gate : layer.qkv, task.operand, late ? OF_GATE : OF_HEADS, task.width_tiles};
    }
    return {
        late ? layer.down : layer.o, task.inner, OF_SUMS, late ? task.inner_tiles : task.mixed_tiles};
}

__device__ __forceinline__ void bring_all(
    const struct layers_task &task, struct state &b, unsigned char *slots)
{
    const struct ring ring = ring_of(b, slots);
    struct place at = {0, 0}, pages_at = {0, 0};
    int phase = 1;
#pragma unroll 1
    for (int i = 0; i < 4 * task.n_layers; i++) {
        if (i % 4 == 1) {
            wait_for_all(task, b, phase++);
            bring_pages(task, b, ring.slots, pages_at);
            ptx_wait(&b.room, (uint32_t)(i / 4) & 1);
        }
        const struct product product = find_product(task, i);
        if (i % 2) {
            bring<tile_4x10>(task, b, ring, at, product, phase++);
        } else if (i % 4 == 0 || !task.gate_12x18) {
            bring<tile_8x18>(task, b, ring, at, product, phase++);
        } else {
            bring<tile_12x18>(task, b, ring, at, product, phase++);
        }
    }
}

/* Cosines and sines of all rows. */
__device__ __forceinline__ void find_all_angles(const struct layers_task &task)
{
    const struct heads_task &a = task.attend;
    for (int v = (int)blockIdx.x * MULTIPLIERS + warp_of(); v < a.a.n_vectors;
         v += (int)gridDim.x * MULTIPLIERS) {
        find_angles(a, a.a.first_position + v, task.angles + (int64_t)v * HEAD, self() % 32, 32);
    }
}

__device__ __forceinline__ void multiply_all(
    const struct layers_task &task, struct state &b, unsigned char *slots)
{
    struct place at = {0, 0}, pages_at = {0, 0};
    int phase = 0;
    find_all_angles(task);
    end_phase(task, b);
#pragma unroll 1
    for (int i = 0; i < 2 * task.n_layers; i++) { /* halves of layers */
        const bool gate = i % 2;
        const struct layer &layer = task.layers[i / 2];
        begin_phase(b, phase);
        if (gate && task.gate_12x18) {
            make_gate_12x18(task, b, slots, at);
        } else {
            make_heads_or_gate(task, b, slots, at, i / 2, gate);
        }
        end_phase(task, b);
        if (!gate) {
            begin_phase(b, phase);
            attend_all(task, b, slots, pages_at, phase);
            end_phase(task, b);
        }
        begin_phase(b, phase);
        make_sums(task, b, slots, at, gate ? task.inner_tiles : task.mixed_tiles,
            gate ? layer.next_norm : layer.post_norm);
        end_phase(task, b);
    }
}

/* ---- The warps that are left ---- */

/* The factor of the norm of a vector. */
__device__ __forceinline__ float find_scale(const struct layers_task &task, int v)
{
    const int n_k = task.width_tiles;
    return norm_factor(add_squares<EACH>(task.squares, v, n_k, n_k / EACH, EACH, self() % 32),
        n_k * CUDA_TILE, task.eps);
}

/* Each block finds the factors of a few vectors, and hears those of its tiles. */
__device__ __forceinline__ void find_all_scales(
    const struct layers_task &task, struct state &b, bool gate, int phase)
{
    const int me = self() - (THREADS - SCALE_WARPS * 32), n = task.attend.a.n_vectors;
    const uint32_t sign = task.arrivals_before + (uint32_t)phase;
    const struct grid grid = task.grids[gate ? OF_GATE : OF_HEADS];
    int turn = 0;
    for (int v = (int)blockIdx.x + me / 32 * (int)gridDim.x; v < n; v += (int)gridDim.x * SCALE_WARPS) {
        const float scale = phase == 1 ? task.scales[v] : find_scale(task, v);
        if (me % 32 == 0) {
            publish_scale(task.signals + v, sign, scale);
        }
    }
#pragma unroll 1
    for (int i = (int)blockIdx.x; i < grid.n; i += (int)gridDim.x, turn ^= 1) {
        const struct found tile = find_tile(grid, i);
        const int v = tile.group * CUDA_TILE_VECTORS + me;
        if (me < tile.n_groups * CUDA_TILE_VECTORS && v < n) {
            b.scales[turn][me] = await_scale(task, b, task.signals + v, sign);
        }
        ptx_some_barrier<2, BARRIER_THREADS>();
    }
}

/* Keys and values of earlier positions as attention of layer l wants them, and nothing behind the last. */
__device__ __forceinline__ void split_old_keys(const struct layers_task &task, int l)
{
    const struct heads_task &a = task.attend;
    const int warp = (self() - (THREADS - SCALE_WARPS * 32)) / 32, lane_id = a.a.lanes[0];
    const int before = a.a.first_position, end = before + a.a.n_vectors;
    const int n = before + (end + CUDA_PAGE - 1) / CUDA_PAGE * CUDA_PAGE - end;
    const int64_t layer_at = (int64_t)l * a.n_kv_heads * 2 * CUDA_PAGE * HEAD;
#pragma unroll 1
    for (int i = (int)blockIdx.x * SCALE_WARPS + warp; i < n * a.n_kv_heads && lane_id >= 0;
         i += (int)gridDim.x * SCALE_WARPS) {
        const int other = divide(i, task.kv_heads), kv_head = i - other * a.n_kv_heads;
        const int position = other < before ? other : other + a.a.n_vectors;
        const float *keys =
            other < before ? page_of(a, lane_id, kv_head, position / CUDA_PAGE) + layer_at : NULL;
        ready_old_key(a, keys, position, kv_head);
    }
}

__device__ __forceinline__ void help_all(const struct layers_task &task, struct state &b)
{
    int phase = 0;
    split_old_keys(task, 0);
    end_phase(task, b);
#pragma unroll 1
    for (int i = 0; i < 2 * task.n_layers; i++) { /* halves of layers */
        const bool gate = i % 2;
        begin_phase(b, phase);
        find_all_scales(task, b, gate, phase);
        end_phase(task, b);
        if (!gate) { /* attention */
            begin_phase(b, phase);
            end_phase(task, b);
        }
        begin_phase(b, phase);
        if (!gate && i / 2 + 1 < task.n_layers) {
            split_old_keys(task, i / 2 + 1);
        }
        end_phase(task, b);
    }
}

#endif

__global__ void __launch_bounds__(THREADS, 1)
    layers_kernel(const __grid_constant__ struct layers_task task)
{
#if PTX_GROUPS
    PTX_NEEDS_GROUPS;
    PTX_DYNAMIC_SHARED(unsigned char, dynamic, 128);
    __shared__ struct state b;
    const int warp = warp_of();
    unsigned char *slots = dynamic + (LINES - ptx_shared_at(dynamic) % LINES) % LINES;
    if (self() == 0) {
        b.late = 0;
        b.ended = 0;
        for (int i = 0; i < SLOTS; i++) {
            ptx_barrier_begin(&b.full[i], 1);
            ptx_barrier_begin(&b.empty[i], MULTIPLIERS);
        }
        for (int i = 0; i < PAGE_SLOTS; i++) {
            ptx_barrier_begin(&b.pages_full[i], 1);
            ptx_barrier_begin(&b.pages_empty[i], MULTIPLIERS);
        }
        ptx_barrier_begin(&b.open, 1);
        ptx_barrier_begin(&b.room, MULTIPLIERS);
        ptx_barriers_ready();
    }
    __syncthreads();
    if (warp < MULTIPLIERS) {
        ptx_registers_more<REGISTERS>();
        multiply_all(task, b, slots);
    } else {
        ptx_registers_less<OTHER_REGISTERS>();
        if (warp > MULTIPLIERS) {
            help_all(task, b);
        } else if (ptx_one()) {
            bring_all(task, b, slots);
        }
    }
#endif
}

} // namespace

/* ---- Launch ---- */

int cuda_layers_blocks(const struct cuda_arch *arch)
{
    int n = 0;
    if (!arch->wgmma || !arch->register_moves || SHARED > (int)arch->block_shared ||
        cudaFuncSetAttribute(layers_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED) !=
            cudaSuccess ||
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&n, layers_kernel, THREADS, SHARED) !=
            cudaSuccess) {
        cudaGetLastError();
        return 0;
    }
    return n * arch->n_sms;
}

/* Rows in whole tiles, columns in whole stages and parts; the width in parts of one stage. */
bool cuda_layers_suit(const struct cuda_stack *s)
{
    const int n_k[] = {s->width / CUDA_TILE, s->n_heads * HEAD / CUDA_TILE, s->inner / CUDA_TILE};
    for (int n : n_k) {
        if (!are_whole_halves(n)) {
            return false;
        }
    }
    return s->layers[0].qkv.format == CUDA_BF16 && s->head == HEAD &&
           s->n_heads == PAIR * s->n_kv_heads && s->n_layers > 1 && s->n_layers <= LAYERS_MOST &&
           s->width % (tile_4x10::ROWS * CUDA_TILE) == 0 && s->inner % CUDA_TILE == 0 &&
           2 * s->inner % (tile_8x18::ROWS * CUDA_TILE) == 0 && n_k[0] == parts_of(n_k[0]) * EACH;
}

static struct divisor divisor_of(int n)
{
    return {((uint64_t)1 << 32) / (uint64_t)n + (((uint64_t)1 << 32) % (uint64_t)n != 0)};
}

/* What comes to the busiest block for a column of a product, in steps of 16 bytes: a tile of 16 rows is two of them,
 * four vectors one. A tile's beginning and end take as long as TILE_COST of these. */
static int busiest(const struct grid &grid, int rows, int n_blocks)
{
    const int rest = grid.n_whole % n_blocks;
    return (grid.n_whole / n_blocks + (rest > 0)) * (2 * rows + grid.step + TILE_COST) +
           (grid.n > grid.n_whole ? 2 * rows + grid.first_half + TILE_COST : 0);
}

template <class S>
static struct grid grid_of_columns(int n_row_tiles, int n_groups, int n_columns, int n_blocks)
{
    struct grid grid;
    grid.step = (n_groups + n_columns - 1) / n_columns;
    grid.n_columns = (n_groups + grid.step - 1) / grid.step;
    grid.first_half = (grid.step + 1) / 2;
    grid.columns = divisor_of(grid.n_columns);
    const int all = n_row_tiles / S::ROWS * grid.n_columns, rest = all % n_blocks;
    grid.n_whole = (int)S::ROWS == (int)MULTIPLIERS && 2 * rest <= n_blocks ? all - rest : all;
    grid.n = grid.n_whole + 2 * (all - grid.n_whole);
    return grid;
}

/* As many columns of tiles as give the busiest block least: few vectors are spread over many blocks. */
template <class S> static struct grid grid_of(int n_row_tiles, int n_groups, int n_blocks)
{
    const int least = (n_groups + S::GROUPS - 1) / S::GROUPS;
    struct grid best = grid_of_columns<S>(n_row_tiles, n_groups, least, n_blocks);
    for (int n = least + 1; n <= n_groups; n++) {
        const struct grid grid = grid_of_columns<S>(n_row_tiles, n_groups, n, n_blocks);
        if (busiest(grid, S::ROWS, n_blocks) < busiest(best, S::ROWS, n_blocks)) {
            best = grid;
        }
    }
    return best;
}

/* A byte of tile_12x18 takes a third longer: 12.5 us for 42 of the steps of `busiest`, tile_8x18 7.6
 * for 34. Two blocks for a task cost 2 us of attention, and 0.9 us less for every fourth page. */
static void plan_tiles(struct layers_task *task, int n_blocks)
{
    const struct heads_task &a = task->attend;
    const int n = task->n_groups, gate_tiles = 2 * task->inner_tiles;
    task->grids[OF_HEADS] =
        grid_of<tile_8x18>((a.n_heads + 2 * a.n_kv_heads) * HEAD / CUDA_TILE, n, n_blocks);
    task->grids[OF_GATE] = grid_of<tile_8x18>(gate_tiles, n, n_blocks);
    task->grids[OF_SUMS] = grid_of<tile_4x10>(task->width_tiles, n, n_blocks);
    task->kv_heads = divisor_of(a.n_kv_heads);
    const int tasks = (a.a.n_vectors + TASK_ROWS - 1) / TASK_ROWS * a.n_kv_heads;
    const int idle = n_blocks > tasks ? n_blocks - tasks : 0;
    const bool pays = a.a.first_position + a.a.n_vectors > (MANY_PAGES - 1) * CUDA_PAGE;
    task->n_split = !pays ? 0 : tasks < idle ? tasks : idle;
    task->n_tasks = tasks + task->n_split;
    const struct grid high = grid_of<tile_12x18>(gate_tiles, n, n_blocks);
    task->gate_12x18 = gate_tiles % tile_12x18::ROWS == 0 &&
                       4 * busiest(high, tile_12x18::ROWS, n_blocks) <
                           3 * busiest(task->grids[OF_GATE], tile_8x18::ROWS, n_blocks);
    if (task->gate_12x18) {
        task->grids[OF_GATE] = high;
    }
}

uint32_t cuda_layers_counts(const struct cuda_layers *layers)
{
    return (uint32_t)(layers->n_blocks * (1 + 5 * layers->n_layers));
}

cudaError_t cuda_layers_queue(const struct cuda_queue *queue, const struct cuda_layers *in)
{
    const struct cuda_stack *s = in->stack;
    struct layers_task task = {};
    for (int i = 0; i < in->n_layers; i++) {
        const struct cuda_layer *l = &s->layers[i];
        task.layers[i] = {l->qkv.tiles, l->o.tiles, l->gate_up.tiles, l->down.tiles, l->post_norm,
            s->layers[i + 1].input_norm, l->q_norm, l->k_norm};
    }
    task.attend = task_of(&in->attend, 1);
    task.attend.a.layer = 0;
    task.n_layers = in->n_layers;
    task.n_groups = (in->attend.n_vectors + CUDA_TILE_VECTORS - 1) / CUDA_TILE_VECTORS;
    task.room_groups = cuda_wide_groups(in->attend.n_vectors);
    task.attend.a.operand = in->inner;
    task.attend.a.operand_groups = task.room_groups;
    task.width_tiles = s->width / CUDA_TILE;
    task.mixed_tiles = s->n_heads * HEAD / CUDA_TILE;
    task.inner_tiles = s->inner / CUDA_TILE;
    plan_tiles(&task, in->n_blocks);
    task.eps = s->norm_eps;
    task.x = in->x;
    task.x_stride = in->x_stride;
    task.operand = in->operand;
    task.inner = in->inner;
    task.scales = in->scales;
    task.squares = in->squares;
    task.angles = in->angles;
    task.signals = in->signals;
    task.arrivals = in->arrivals;
    task.arrivals_before = in->arrivals_before;
    task.lost = in->lost;
    task.lost_on_device = in->lost_on_device;
    task.patience = in->patience;
    cudaLaunchAttribute attribute;
    attribute.id = cudaLaunchAttributeCooperative;
    attribute.val.cooperative = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)in->n_blocks);
    config.blockDim = dim3(THREADS);
    config.dynamicSmemBytes = SHARED;
    config.stream = queue->stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    return cudaLaunchKernelEx(&config, layers_kernel, task);
}
