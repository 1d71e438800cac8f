/* SPDX-License-Identifier: Apache-2.0
 * The choice of one code for each slot: the same rules, order and random numbers as on the CPU (sample_choose), one
 * block for each slot. Then what follows from the code: the predictor's next input, the sum of embeddings for the
 * talker's next step, and at the end of a frame the report to the host. */
#include "cuda/lib/launch.cuh"
#include "cuda/parts/choice.cuh"
#include "cuda/parts/steps.h"

namespace {

enum {
    N_THREADS = 512,
    N_WARPS = N_THREADS / 32,
    EACH = CUDA_MAX_CODES / N_THREADS,
    N_GROUPS = 128, /* of ids: those of four neighbouring threads */
    GROUPS_K = 100, /* the largest k that is cut by groups */
};

struct shared {
    float scores[CUDA_MAX_CODES]; /* -INFINITY: cannot be chosen */
    uint16_t ids[CUDA_MAX_CODES];
    double terms[N_THREADS];
    double score[N_WARPS]; /* of the best of each warp */
    int id[N_WARPS];
    uint32_t counts[2][N_WARPS];
    float4 best[N_GROUPS / 4]; /* scores of the best of each group of ids */
    float cut;                 /* of the list: no id below it is among the k best */
    float listed[N_THREADS];
    uint32_t n_listed; /* ids in `ids`, with their scores in `listed` */
    int n, bad;
};

/* The sum over a warp, in all threads. */
__device__ __forceinline__ uint32_t warp_total(uint32_t v)
{
    return __reduce_add_sync(0xffffffffu, v);
}

/* The sum over the block, in all threads. */
__device__ int count_all(struct shared &s, int mine)
{
    uint32_t sum = warp_total((uint32_t)mine);
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        s.counts[0][threadIdx.x / 32] = sum; /* cut_top_k begins with the other one */
    }
    __syncthreads();
    sum = 0;
#pragma unroll
    for (int w = 0; w < N_WARPS; w++) {
        sum += s.counts[0][w];
    }
    return (int)sum;
}

/* The id with the largest score, lowest id on a tie, over all threads' candidates; -1: nobody has one. */
__device__ int best_of_block(struct shared &s, double score, int id)
{
    for (int step = 16; step > 0; step /= 2) {
        double other = __shfl_xor_sync(0xffffffffu, score, step);
        int other_id = __shfl_xor_sync(0xffffffffu, id, step);
        if (other_id >= 0 && (id < 0 || other > score || (other == score && other_id < id))) {
            score = other;
            id = other_id;
        }
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) {
        s.score[threadIdx.x / 32] = score;
        s.id[threadIdx.x / 32] = id;
    }
    __syncthreads();
    score = s.score[0];
    id = s.id[0];
    for (int w = 1; w < N_WARPS; w++) {
        if (s.id[w] >= 0 && (id < 0 || s.score[w] > score || (s.score[w] == score && s.id[w] < id))) {
            score = s.score[w];
            id = s.id[w];
        }
    }
    return id;
}

/* Penalty, minimum length, suppression, temperature: logits of this thread's ids -> scores, here and in s. Returns
 * the number of possible ids; the best of each group is noted too. */
__device__ int process(struct shared &s, const struct choice_rule &r, float (&own)[EACH])
{
    int n = 0;
    float best = -INFINITY;
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        const int i = e * N_THREADS + (int)threadIdx.x;
        if (i >= r.n) {
            own[e] = -INFINITY;
            continue;
        }
        float v = choice_process(r, i, own[e], r.seen && history_has(r.seen, i), s.bad);
        v = r.sampling.temperature == 0 ? v : v / r.sampling.temperature;
        s.scores[i] = own[e] = v;
        best = fmaxf(best, v);
        n += v > -INFINITY;
    }
    best = fmaxf(best, __shfl_xor_sync(0xffffffffu, best, 1));
    best = fmaxf(best, __shfl_xor_sync(0xffffffffu, best, 2));
    if (threadIdx.x % 4 == 0) {
        ((float *)s.best)[threadIdx.x / 4] = best;
    }
    return count_all(s, n);
}

/* Drops all but the k largest scores; ties with the k-th stay. Its key is found two bits at a time. */
__device__ void cut_top_k(struct shared &s, int n_ids, int k)
{
    uint32_t keys[EACH], prefix = 0;
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        int i = e * N_THREADS + (int)threadIdx.x;
        keys[e] =
            i < n_ids && s.scores[i] > -INFINITY ? choice_key(s.scores[i]) : 0; /* no score has key 0 */
    }
    for (int shift = 30; shift >= 0; shift -= 2) {
        uint32_t count = 0; /* of keys at or above each of the three digits: ten bits each */
#pragma unroll
        for (int e = 0; e < EACH; e++) {
#pragma unroll
            for (uint32_t digit = 1; digit <= 3; digit++) {
                count += (keys[e] >= (prefix | digit << shift) ? 1u : 0u) << 10 * (digit - 1);
            }
        }
        count = warp_total(count);
        uint32_t(&counts)[N_WARPS] = s.counts[shift / 2 % 2]; /* the other one may still be read */
        if (threadIdx.x % 32 == 0) {
            counts[threadIdx.x / 32] = count;
        }
        __syncthreads();
        int sums[3] = {0, 0, 0};
#pragma unroll
        for (int w = 0; w < N_WARPS; w++) {
            sums[0] += counts[w] & 1023u;
            sums[1] += counts[w] >> 10 & 1023u;
            sums[2] += counts[w] >> 20;
        }
        uint32_t chosen = sums[2] >= k ? 3 : sums[1] >= k ? 2 : sums[0] >= k ? 1 : 0; /* they fall */
        prefix |= chosen << shift;
    }
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        int i = e * N_THREADS + (int)threadIdx.x;
        if (i < n_ids && keys[e] < prefix) {
            s.scores[i] = -INFINITY;
        }
    }
    __syncthreads();
}

/* The same for small k by another way: k groups of ids have a best one at least as good as the k-th best of these, so
 * that all of the k best ids are. Few others are, and they are listed. False when the list does not hold them. */
__device__ bool list_by_groups(struct shared &s, const float (&own)[EACH], int k)
{
    if (threadIdx.x < N_GROUPS) {
        const float mine = ((const float *)s.best)[threadIdx.x];
        int before = 0;
#pragma unroll 8
        for (int j = 0; j < N_GROUPS / 4; j++) {
            const float4 four = s.best[j];
            const int first = 4 * j - (int)threadIdx.x; /* on a tie the lower group comes first */
            before += four.x > mine || (four.x == mine && first < 0);
            before += four.y > mine || (four.y == mine && first + 1 < 0);
            before += four.z > mine || (four.z == mine && first + 2 < 0);
            before += four.w > mine || (four.w == mine && first + 3 < 0);
        }
        if (before == k - 1) {
            s.cut = mine;
        }
    }
    __syncthreads();
    const float cut = s.cut;
    if (!(cut > -INFINITY)) {
        return false;
    }
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        if (own[e] >= cut) {
            const uint32_t at = atomicAdd(&s.n_listed, 1u);
            if (at < N_THREADS) {
                s.ids[at] = (uint16_t)(e * N_THREADS + threadIdx.x);
                s.listed[at] = own[e];
            }
        }
    }
    __syncthreads();
    return s.n_listed <= N_THREADS;
}

/* How many of the list surpass number i of it. */
__device__ int above_listed(const struct shared &s, int i, int n)
{
    const float mine = s.listed[i];
    int above = 0;
#pragma unroll 8
    for (int j = 0; j < n; j++) {
        above += s.listed[j] > mine;
    }
    return above;
}

/* True when id a comes before id b: smaller score, on a tie larger id. What is no id comes last. */
__device__ __forceinline__ bool before(const struct shared &s, uint16_t a, uint16_t b)
{
    if (a == 0xffffu || b == 0xffffu) {
        return a != 0xffffu;
    }
    return s.scores[a] < s.scores[b] || (s.scores[a] == s.scores[b] && a > b);
}

/* Possible ids in the order of their scores, smallest first: a bitonic sort. Returns their number. */
__device__ int sort_ids(struct shared &s, int n_ids)
{
    int mine = 0, size = 2;
    for (int i = (int)threadIdx.x; i < CUDA_MAX_CODES; i += N_THREADS) {
        bool possible = i < n_ids && s.scores[i] > -INFINITY;
        s.ids[i] = possible ? (uint16_t)i : (uint16_t)0xffffu;
        mine += possible;
    }
    int n = count_all(s, mine);
    while (size < n_ids) {
        size *= 2;
    }
    for (int run = 2; run <= size; run *= 2) {
        for (int step = run / 2; step > 0; step /= 2) {
            __syncthreads();
            for (int i = (int)threadIdx.x; i < size; i += N_THREADS) {
                int j = i ^ step;
                bool rising = (i & run) == 0;
                if (j > i && before(s, s.ids[j], s.ids[i]) == rising &&
                    before(s, s.ids[i], s.ids[j]) != rising) {
                    uint16_t swap = s.ids[i];
                    s.ids[i] = s.ids[j];
                    s.ids[j] = swap;
                }
            }
        }
    }
    __syncthreads();
    return n;
}

/* Drops the least likely ids whose mass together is at most 1 - top_p; the largest always stays. Sums are made one
 * by one in the order of the scores, as on the CPU. */
__device__ void cut_top_p(struct shared &s, int n_ids, float top_p)
{
    const int n = sort_ids(s, n_ids);
    const double largest = s.scores[s.ids[n - 1]];
    double total = 0, mass = 0;
    bool done = false;
    int dropped = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int from = 0; from < n; from += N_THREADS) {
            int i = from + (int)threadIdx.x;
            s.terms[threadIdx.x] = i < n ? exp((double)s.scores[s.ids[i]] - largest) : 0;
            __syncthreads();
            for (int j = 0; threadIdx.x == 0 && j < N_THREADS && from + j < n && !done; j++) {
                if (pass == 0) {
                    total += s.terms[j];
                    continue;
                }
                mass += s.terms[j] / total;
                done = mass > 1.0 - (double)top_p || dropped == n - 1;
                dropped += !done;
            }
            __syncthreads();
        }
    }
    if (threadIdx.x == 0) {
        s.n = dropped;
    }
    __syncthreads();
    for (int i = (int)threadIdx.x; i < s.n; i += N_THREADS) {
        s.scores[s.ids[i]] = -INFINITY;
    }
    __syncthreads();
}

__device__ double handicap(const struct choice_rule &r, int id)
{
    return choice_handicap(choice_bits(r, (uint32_t)id));
}

/* The race of all possible ids. */
__device__ int race(struct shared &s, const struct choice_rule &r)
{
    double best = 0;
    int best_id = -1;
    for (int id = (int)threadIdx.x; id < r.n; id += N_THREADS) {
        if (s.scores[id] > -INFINITY) {
            double score = (double)s.scores[id] - handicap(r, id);
            if (best_id < 0 || score > best) { /* ids of one thread rise */
                best = score;
                best_id = id;
            }
        }
    }
    return best_of_block(s, best, best_id);
}

/* The race of those of the list that fewer than k surpass; rank and handicap are found by different warps where the
 * list is short enough. */
__device__ int race_listed(struct shared &s, const struct choice_rule &r, int k)
{
    const int n = (int)s.n_listed, i = (int)threadIdx.x, half = N_THREADS / 2;
    if (n <= half && i >= half && i - half < n) {
        s.terms[i - half] = handicap(r, s.ids[i - half]);
    }
    const bool stays = i < n && above_listed(s, i, n) < k;
    __syncthreads();
    double score = 0;
    if (stays) {
        score = (double)s.listed[i] - (n <= half ? s.terms[i] : handicap(r, s.ids[i]));
    }
    return best_of_block(s, score, stays ? (int)s.ids[i] : -1);
}

__device__ int choose_code(struct shared &s, const struct choice_rule &r, float (&own)[EACH])
{
    const int n = process(s, r, own);
    if (threadIdx.x == 0 && n == 0) {
        s.bad = 1;
    }
    if (n == 0 || r.sampling.temperature == 0) {
        float best = -INFINITY;
        int best_id = -1;
        for (int i = (int)threadIdx.x; i < r.n; i += N_THREADS) {
            if (s.scores[i] > best) {
                best = s.scores[i];
                best_id = i;
            }
        }
        return max(best_of_block(s, best, best_id), 0);
    }
    const bool cuts = r.sampling.top_k > 0 && r.sampling.top_k < n;
    if (cuts && r.sampling.top_k <= GROUPS_K && r.sampling.top_p >= 1.0f &&
        list_by_groups(s, own, r.sampling.top_k)) {
        return max(race_listed(s, r, r.sampling.top_k), 0);
    }
    if (cuts) {
        cut_top_k(s, r.n, r.sampling.top_k);
    }
    if (r.sampling.top_p < 1.0f) {
        cut_top_p(s, r.n, r.sampling.top_p);
    }
    return max(race(s, r), 0);
}

/* The result of a slot's frame, for the host: last the sequence number. By the first warp. */
__device__ void report(const struct cuda_choose &c, int slot, int lane, bool end)
{
    struct cuda_frame_out *out = &c.out[lane];
    for (int j = (int)threadIdx.x; j < c.n_codebooks; j += 32) {
        out->codes[j] = end && j > 0 ? 0 : c.slots->codes[slot][j];
    }
    if (threadIdx.x == 0) {
        out->end = end;
        out->not_a_number = c.slots->bad[slot];
    }
    __threadfence_system();
    __syncwarp();
    if (threadIdx.x == 0) {
        *(volatile uint64_t *)&out->sequence = c.slots->sequence;
    }
}

/* Notes a code, by one thread. `code` is what was chosen; `taken` is the code that the lane
 * continues with, which is another one where the caller gives the codes, or -1: the utterance has
 * ended. */
__device__ void note_code(const struct cuda_choose &c, int slot, int lane, int code, int taken, int bad)
{
    struct cuda_slots *slots = c.slots;
    struct cuda_lane *state = &c.lanes.state[lane];
    slots->codes[slot][c.codebook] = code;
    if (bad) {
        slots->bad[slot] = 1;
    }
    if (c.codebook == 0) {
        if (taken < 0) {
            slots->alive[slot] = -1;
            state->ended = 1;
            return;
        }
        history_note(c.lanes.seen + (int64_t)lane * c.n, taken);
        slots->alive[slot] = lane;
    }
    state->taken[c.codebook] = taken;
    c.lanes.codes[(int64_t)lane * BACKEND_MAX_FEED * c.n_codebooks + c.codebook] = taken;
    if (c.codebook == c.n_codebooks - 1) {
        state->n_frames++;
    }
}

/* The predictor's next input, and the sum of the frame's embeddings so far, from the code that was
 * taken. */
__device__ void write_next_input(const struct cuda_choose &c, int slot, int lane, int taken)
{
    float *sum = c.lanes.sum + (int64_t)lane * c.sum_stride;
    const uint16_t *row = c.table + (int64_t)taken * c.width;
    float *input = c.input + (int64_t)(c.codebook == 0 ? 2 * slot : slot) * c.input_stride;
    for (int i = (int)threadIdx.x; i < c.width; i += N_THREADS) {
        float e = bf16_value(row[i]);
        sum[i] = c.codebook == 0 ? e : sum[i] + e;
        if (c.codebook == 0) {
            input[i] = c.lanes.hidden[(int64_t)lane * c.hidden_stride + i];
            input[c.input_stride + i] = e;
        } else if (c.codebook < c.n_codebooks - 1) {
            input[i] = e;
        }
    }
}

/* Logits of this thread's ids. */
__device__ __forceinline__ void load_logits(const struct cuda_choose &c, int row, float (&own)[EACH])
{
    const float *logits = c.logits + (int64_t)row * c.logits_stride;
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        const int i = e * N_THREADS + (int)threadIdx.x;
        own[e] = i < c.n ? logits[i] : 0.0f;
    }
}

/* What the kernel uses after its wait. */
__device__ __forceinline__ void need_late(const struct cuda_choose &c)
{
    ptx_need(c.slots);
    ptx_need(c.lanes.state);
    ptx_need(c.lanes.hidden);
    ptx_need(c.lanes.seen);
    ptx_need(c.lanes.sum);
    ptx_need(c.lanes.codes);
    ptx_need(c.logits);
    ptx_need(c.logits_stride);
    ptx_need(c.suppress_from);
    ptx_need(c.table);
    ptx_need(c.hidden_stride);
    ptx_need(c.input);
    ptx_need(c.out);
}

__global__ void __launch_bounds__(N_THREADS) choose_kernel(struct cuda_choose c)
{
    __shared__ struct shared s;
    const int slot = (int)blockIdx.x;
    if (threadIdx.x == 0) {
        s.bad = 0;
        s.n_listed = 0;
        s.cut = -INFINITY;
    }
    ptx_let_next_begin();
    need_late(c);
    ptx_wait_for_earlier();
    float own[EACH];
    if (c.codebook > 0) {
        load_logits(c, slot, own);
    }
    const int lane = c.codebook == 0 ? c.slots->lane[slot] : c.slots->alive[slot];
    if (lane < 0) {
        return;
    }
    const struct cuda_lane *state = &c.lanes.state[lane];
    const bool forced = c.slots->forced[slot] != 0;
    const int given = c.slots->given[slot][c.codebook];
    if (c.codebook == 0) {
        load_logits(c, lane, own);
    }
    struct choice_rule r;
    r.sampling = c.codebook == 0 ? state->settings.talker : state->settings.predictor;
    r.seen = c.codebook == 0 ? c.lanes.seen + (int64_t)lane * c.n : NULL;
    r.n = c.n;
    r.suppress_from = c.suppress_from;
    r.keep = c.keep;
    r.keep_blocked = state->n_frames < (uint32_t)state->settings.min_frames;
    r.seed = state->settings.seed;
    r.frame = state->n_frames;
    r.codebook = (uint32_t)c.codebook;
    __syncthreads();
    int code = choose_code(s, r, own);
    __syncthreads();
    const bool end = code == c.keep && !forced;
    const int taken = end ? -1 : forced ? given : code;
    if (taken >= 0) {
        write_next_input(c, slot, lane, taken);
    }
    if (threadIdx.x == 0) {
        note_code(c, slot, lane, code, taken, s.bad);
    }
    if (threadIdx.x < 32 && (taken < 0 || c.codebook == c.n_codebooks - 1)) {
        __syncwarp();
        report(c, slot, lane, taken < 0);
    }
}

} // namespace

cudaError_t cuda_choose_open(void)
{
    return prefer_shared(ptx_kernel(choose_kernel));
}

cudaError_t cuda_choose_queue(const struct cuda_queue *queue, const struct cuda_choose *choose)
{
    return launch(choose_kernel, dim3((unsigned)choose->n_slots), N_THREADS, queue->overlaps,
        queue->stream, *choose);
}
