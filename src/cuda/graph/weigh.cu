/* SPDX-License-Identifier: Apache-2.0
 * Logits -> how likely the code is that came behind them (struct likelihood), as the CPU has it (sample_likelihood). A
 * block for each row of a prompt. */
#include "cuda/lib/launch.cuh"
#include "cuda/parts/steps.h"

namespace {

enum { N_THREADS = 256, N_WARPS = N_THREADS / 32 };

/* Codes that this thread adds up, one after the other: those below suppress_from, and `keep`. */
__device__ __forceinline__ bool may_be_chosen(const struct cuda_weigh &p, int id)
{
    return id < p.suppress_from || id == p.keep;
}

/* The sum over the block, in all threads; its order is always the same. */
__device__ double sum_of_block(double (&parts)[N_WARPS], double mine)
{
    mine = warp_sum(mine);
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        parts[threadIdx.x / 32] = mine;
    }
    __syncthreads();
    mine = 0;
    for (int w = 0; w < N_WARPS; w++) {
        mine += parts[w];
    }
    return mine;
}

__device__ float largest_of_block(float (&parts)[N_WARPS], float mine)
{
    for (int step = 16; step > 0; step /= 2) {
        mine = fmaxf(mine, __shfl_xor_sync(0xffffffffu, mine, step));
    }
    if (threadIdx.x % 32 == 0) {
        parts[threadIdx.x / 32] = mine;
    }
    __syncthreads();
    for (int w = 0; w < N_WARPS; w++) {
        mine = fmaxf(mine, parts[w]);
    }
    return mine;
}

__global__ void __launch_bounds__(N_THREADS) weigh_kernel(struct cuda_weigh p)
{
    __shared__ float largest_parts[N_WARPS];
    __shared__ double parts[N_WARPS];
    const int v = (int)blockIdx.x, first = (int)threadIdx.x;
    ptx_let_next_begin();
    ptx_wait_for_earlier();
    const int code = p.codes[v];
    if (code < 0) {
        return;
    }
    const float *logits = p.logits + (int64_t)v * p.n;
    float largest = -INFINITY;
    for (int id = first; id < p.n; id += N_THREADS) {
        largest = may_be_chosen(p, id) ? fmaxf(largest, logits[id]) : largest;
    }
    largest = largest_of_block(largest_parts, largest);
    double sum = 0, mean = 0;
    for (int id = first; id < p.n; id += N_THREADS) {
        if (may_be_chosen(p, id)) {
            const float below = logits[id] - largest, likely = expf(below);
            sum += (double)likely;
            mean += (double)(likely * below);
        }
    }
    sum = sum_of_block(parts, sum);
    mean = sum_of_block(parts, mean);
    if (threadIdx.x == 0) {
        p.likelihoods[v].log_p = (float)((double)(logits[code] - largest) - log(sum));
        p.likelihoods[v].usual_log_p = (float)(mean / sum - log(sum));
    }
}

} // namespace

cudaError_t cuda_weigh_queue(const struct cuda_queue *queue, const struct cuda_weigh *weigh)
{
    return launch(weigh_kernel, dim3((unsigned)weigh->n_vectors), N_THREADS, queue->overlaps,
        queue->stream, *weigh);
}
