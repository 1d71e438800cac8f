/* SPDX-License-Identifier: Apache-2.0
 * Kernels of the vocoder beside its products. Each number is made by one thread or one block in an order that depends
 * on the shape alone. The call stands in memory before a run begins, and so what it says need not wait for the
 * kernels in front. */
#include "cuda/lib/ptx_copy.cuh"
#include "cuda/vocoder/rows.cuh"
#include "cuda/vocoder/vocoder_steps.h"

enum { STEP_THREADS = 256, STEP_WARPS = STEP_THREADS / 32 };

/* ---- The call ---- */

struct call_setting {
    struct cuda_call *at;
    struct cuda_call call;
};

static __global__ void call_kernel(call_setting p)
{
    if (threadIdx.x == 0) {
        *p.at = p.call;
    }
}

cudaError_t cuda_call_set(struct cuda_call *at, const struct cuda_call *call, cudaStream_t stream)
{
    call_setting p = {at, *call};
    return launch(call_kernel, dim3(1), 32, false, stream, p);
}

/* ---- Tables ---- */

static __device__ float gather_channel(const cuda_gather &p, const int32_t *codes, int channel)
{
    bool rest = channel >= p.half;
    if (channel >= 2 * p.half) {
        return 0;
    }
    const float *table = p.tables + channel - (rest ? p.half : 0);
    float sum = 0;
#pragma unroll 8
    for (int g = rest ? p.n_semantic : 0; g < (rest ? p.n_codebooks : p.n_semantic); g++) {
        sum += table[((int64_t)g * p.size + codes[g]) * p.half];
    }
    return sum;
}

static __global__ __launch_bounds__(STEP_THREADS) void gather_kernel(cuda_gather p)
{
    __shared__ int32_t codes[CONFIG_MAX_CODEBOOKS];
    ptx_let_next_begin();
    ptx_wait_for_earlier();
    int column = (int)blockIdx.x, item = column / p.frames;
    if (item >= p.call->n) {
        return;
    }
    if ((int)threadIdx.x < p.n_codebooks) {
        int32_t code = p.call->codes[p.call->lanes[item] * p.call->codes_stride +
                                     (int64_t)(column % p.frames) * p.n_codebooks + threadIdx.x];
        codes[threadIdx.x] = code < 0 ? 0 : code < p.size ? code : p.size - 1;
    }
    __syncthreads();
    for (int quad = (int)threadIdx.x; quad < p.groups * 4; quad += STEP_THREADS) {
        float4 v =
            make_float4(gather_channel(p, codes, quad * 4), gather_channel(p, codes, quad * 4 + 1),
                gather_channel(p, codes, quad * 4 + 2), gather_channel(p, codes, quad * 4 + 3));
        *(uint4 *)(p.ready + ((int64_t)column * p.groups * 4 + quad) * 16) = rows_split(v);
    }
}

cudaError_t cuda_gather_run(
    const struct cuda_gather *p, int n_items, const struct cuda_device *device, cudaStream_t stream)
{
    return launch(gather_kernel, dim3((unsigned)(n_items * p->frames)), STEP_THREADS,
        device->arch.overlaps, stream, *p);
}

/* ---- Attention ---- */

/* Value d of a head at `position`, rotated by its angle. */
static __device__ __forceinline__ float attend_rotated(
    const vocoder_attend &p, const float *x, int64_t position, int d)
{
    int half = p.head / 2, i = d % half;
    float angle = (float)position * p.inv_freq[i], a = x[i], b = x[i + half];
    float c, s;
    sincosf(angle, &s, &c);
    return d < half ? a * c - b * s : b * c + a * s;
}

/* One head of one frame of one lane: what its block works on. */
struct attend_place {
    int tid, kv, frame;
    int64_t begin, position, first; /* of the call, of this frame, of the oldest key that it sees */
    int n_keys;                     /* that the frame sees */
    int n_old;                      /* of them those of earlier calls */
    int64_t width;                  /* of a slot of the cache */
    float *keys, *values;           /* the cache of this head */
    const float *own;               /* the products of the call's first frame */
    bool keeps;                     /* writes the new key and value to the cache */
    float *old;                     /* keys, then values of earlier calls in shared memory, or NULL */
};

static __device__ __forceinline__ attend_place attend_place_of(
    const vocoder_attend &p, int item, int frame)
{
    attend_place at = {};
    int group = p.n_heads / p.n_kv_heads;
    int64_t lane = p.call->lanes[item] * p.lane_bytes;
    at.tid = (int)threadIdx.x, at.kv = (int)blockIdx.x / group, at.frame = frame;
    at.begin = *(const int64_t *)((const char *)p.position + lane), at.position = at.begin + frame;
    at.n_keys = at.position + 1 < p.window ? (int)at.position + 1 : p.window;
    at.n_old = at.n_keys - frame - 1 > 0 ? at.n_keys - frame - 1 : 0;
    at.first = at.position + 1 - at.n_keys;
    at.width = (int64_t)p.n_kv_heads * p.head;
    at.keys = (float *)((char *)p.keys + lane) + at.kv * p.head;
    at.values = (float *)((char *)p.values + lane) + at.kv * p.head;
    at.own = p.qkv + (int64_t)item * p.frames * p.stride;
    at.keeps = (int)blockIdx.x % group == 0;
    return at;
}

/* q . key over the threads of `mask`, eight of which share a key: in all of them. */
static __device__ float attend_score(
    const float *q, const float *key, int head, unsigned mask, bool any)
{
    float sum = 0;
    for (int d = (int)threadIdx.x % 8; any && d < head; d += 8) {
        sum += q[d] * key[d];
    }
    sum += __shfl_xor_sync(mask, sum, 1);
    sum += __shfl_xor_sync(mask, sum, 2);
    return sum + __shfl_xor_sync(mask, sum, 4);
}

/* Keys and values of earlier calls on their way to shared memory, all at once. */
static __device__ __forceinline__ void attend_bring(
    const vocoder_attend &p, attend_place &at, float *shared)
{
    const int quads = p.head / 4, n = at.n_old * quads;
    for (int i = at.tid; i < 2 * n; i += STEP_THREADS) {
        const bool value = i >= n;
        const int j = value ? i - n : i;
        const float *from =
            (value ? at.values : at.keys) + (at.first + j / quads) % p.capacity * at.width;
        ptx_copy(shared + (value ? p.window * p.head : 0) + j * 4, from + j % quads * 4, false);
    }
    ptx_copy_end();
    at.old = shared;
}

/* Key number k of those seen, of an earlier call. */
static __device__ __forceinline__ const float *attend_old_key(
    const vocoder_attend &p, const attend_place &at, int k)
{
    return at.old ? at.old + k * p.head : at.keys + (at.first + k) % p.capacity * at.width;
}

static __device__ __forceinline__ const float *attend_value(
    const vocoder_attend &p, const attend_place &at, int k)
{
    const int64_t position = at.first + k;
    if (position >= at.begin) {
        return at.own + (position - at.begin) * p.stride + p.v_at + at.kv * p.head;
    }
    return at.old ? at.old + (p.window + k) * p.head : at.values + position % p.capacity * at.width;
}

static __device__ void attend_old_keys(
    const vocoder_attend &p, const attend_place &at, const float *q, float *score)
{
    for (int k0 = 0; k0 < at.n_old; k0 += STEP_THREADS / 8) {
        int k = k0 + at.tid / 8;
        float sum = attend_score(q, attend_old_key(p, at, k), p.head, 0xffffffffu, k < at.n_old);
        if (k < at.n_old && at.tid % 8 == 0) {
            score[k] = sum * p.scale;
        }
    }
}

/* Keys of this call, rotated here; the block of a frame keeps that frame's. */
static __device__ void attend_own_keys(
    const vocoder_attend &p, const attend_place &at, const float *q, float *key, float *score)
{
    for (int k = at.n_old; k < at.n_keys; k++) {
        int64_t position = at.first + k, slot = position % p.capacity * at.width;
        const float *row = at.own + (position - at.begin) * p.stride;
        for (int d = at.tid; d < p.head; d += STEP_THREADS) {
            key[d] = attend_rotated(p, row + p.k_at + at.kv * p.head, position, d);
            if (position == at.position && at.keeps) {
                at.keys[slot + d] = key[d];
                at.values[slot + d] = row[p.v_at + at.kv * p.head + d];
            }
        }
        __syncthreads();
        if (at.tid < 8) {
            float sum = attend_score(q, key, p.head, 0xffu, true);
            if (at.tid == 0) {
                score[k] = sum * p.scale;
            }
        }
        __syncthreads();
    }
}

/* Scores -> e^(score - largest), by one warp. Returns their sum. */
static __device__ float attend_weights(float *score, int n)
{
    int lane = (int)threadIdx.x;
    float high = -INFINITY, sum = 0;
    for (int k = lane; k < n; k += 32) {
        high = fmaxf(high, score[k]);
    }
    for (int step = 16; step; step /= 2) {
        high = fmaxf(high, __shfl_xor_sync(0xffffffffu, high, step));
    }
    for (int k = lane; k < n; k += 32) {
        score[k] = expf(score[k] - high);
        sum += score[k];
    }
    for (int step = 16; step; step /= 2) {
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    }
    return sum;
}

/* Value d of the mixed head in thread d; as many parts of the keys as there are threads for. */
static __device__ float attend_mix(
    const vocoder_attend &p, const attend_place &at, const float *weight, float *sums)
{
    int n_parts = STEP_THREADS / p.head, part = at.tid / p.head, d = at.tid % p.head;
    float sum = 0;
    for (int k = part; part < n_parts && k < at.n_keys; k += n_parts) {
        sum += weight[k] * attend_value(p, at, k)[d];
    }
    sums[at.tid] = sum;
    __syncthreads();
    for (int i = 1; at.tid < p.head && i < n_parts; i++) {
        sum += sums[i * p.head + d];
    }
    return sum;
}

/* One block: one head of one frame of one lane. Dynamic shared memory, if `staged`: keys, then values of earlier
 * calls, window * head each. They, the call and the position stand since before the run, and need not wait. */
static __global__ __launch_bounds__(STEP_THREADS) void attend_kernel(vocoder_attend p)
{
    PTX_DYNAMIC_SHARED(float, attend_shared, 16);
    __shared__ float q[ATTEND_MAX_HEAD], key[ATTEND_MAX_HEAD], score[ATTEND_MAX_WINDOW];
    __shared__ float sums[STEP_THREADS], total;
    ptx_let_next_begin();
    int column = (int)blockIdx.y, item = column / p.frames;
    const bool there = item < p.call->n;
    attend_place at = {};
    if (there) {
        at = attend_place_of(p, item, column % p.frames);
        if (p.staged) {
            attend_bring(p, at, attend_shared);
        }
    }
    ptx_wait_for_earlier();
    if (!there) {
        return;
    }
    const float *query = at.own + (int64_t)at.frame * p.stride + (int)blockIdx.x * p.head;
    for (int d = at.tid; d < p.head; d += STEP_THREADS) {
        q[d] = attend_rotated(p, query, at.position, d);
    }
    ptx_copy_wait<0>();
    __syncthreads();
    attend_old_keys(p, at, q, score);
    attend_own_keys(p, at, q, key, score);
    __syncthreads();
    if (at.tid < 32) {
        float sum = attend_weights(score, at.n_keys);
        if (at.tid == 0) {
            total = sum;
        }
    }
    __syncthreads();
    float mixed = attend_mix(p, at, score, sums) / total;
    if (at.tid < p.head) {
        int channel = (int)blockIdx.x * p.head + at.tid;
        unsigned char *to =
            p.ready + ((int64_t)column * p.groups * 4 + channel / 4) * 16 + channel % 4 * 2;
        uint32_t high = pack_bf16(mixed, 0);
        *(uint16_t *)to = (uint16_t)high;
        *(uint16_t *)(to + 8) = (uint16_t)pack_bf16(mixed - rows_low(high), 0);
    }
}

enum { ATTEND_STAGED_BYTES = 40 << 10 }; /* beside what the kernel has */

cudaError_t cuda_attend_run(
    const struct vocoder_attend *p, int n_items, const struct cuda_device *device, cudaStream_t stream)
{
    struct vocoder_attend attend = *p;
    const int bytes = 2 * p->window * p->head * (int)sizeof(float);
    attend.staged = p->head % 4 == 0 && bytes <= ATTEND_STAGED_BYTES;
    return launch(attend_kernel, dim3((unsigned)p->n_heads, (unsigned)(n_items * p->frames)),
        STEP_THREADS, device->arch.overlaps, stream, attend, attend.staged ? bytes : 0);
}

/* ---- Depthwise convolution and LayerNorm ---- */

static __device__ double block_sum(double x, double *scratch)
{
    int tid = (int)threadIdx.x;
    for (int step = 16; step; step /= 2) {
        x += __shfl_xor_sync(0xffffffffu, x, step);
    }
    __syncthreads();
    if (tid % 32 == 0) {
        scratch[tid / 32] = x;
    }
    __syncthreads();
    x = 0;
    for (int i = 0; i < STEP_WARPS; i++) {
        x += scratch[i];
    }
    return x;
}

/* The sums of four channels; padding stays 0. */
static __device__ __forceinline__ float4 depthwise_quad(
    const cuda_depthwise &p, const float *past, int column, int time_step, int quad)
{
    float4 taps[DEPTHWISE_TAPS], rows[DEPTHWISE_TAPS], v = make_float4(0, 0, 0, 0);
#pragma unroll
    for (int j = 0; j < DEPTHWISE_TAPS; j++) {
        int back = DEPTHWISE_TAPS - 1 - j;
        const float *row = time_step >= back ? p.x + (int64_t)(column - back) * p.width
                                             : past + (int64_t)(time_step + j) * p.width;
        taps[j] = __ldg((const float4 *)(p.taps + j * p.width) + quad);
        rows[j] = *((const float4 *)row + quad);
    }
    float4 bias = __ldg((const float4 *)p.bias + quad);
#pragma unroll
    for (int j = 0; j < DEPTHWISE_TAPS; j++) {
        v.x = fmaf(taps[j].x, rows[j].x, v.x);
        v.y = fmaf(taps[j].y, rows[j].y, v.y);
        v.z = fmaf(taps[j].z, rows[j].z, v.z);
        v.w = fmaf(taps[j].w, rows[j].w, v.w);
    }
    return make_float4(v.x + bias.x, v.y + bias.y, v.z + bias.z, v.w + bias.w);
}

static __device__ __forceinline__ double square_away(float x, double mean, bool counts)
{
    double away = (double)x - mean;
    return counts ? away * away : 0;
}

static __global__ __launch_bounds__(STEP_THREADS) void depthwise_kernel(cuda_depthwise p)
{
    __shared__ __align__(16) float4 y[DEPTHWISE_MAX_CHANNELS / 4];
    __shared__ double scratch[STEP_WARPS];
    int column = (int)blockIdx.x, item = column / p.time_steps, time_step = column % p.time_steps;
    const bool there = item < p.call->n;
    const int lane = there ? p.call->lanes[item] : 0;
    const float *past = (const float *)((const char *)p.past + lane * p.past_stride);
    ptx_let_next_begin();
    ptx_wait_for_earlier();
    if (!there) {
        return;
    }
    double sum = 0, squares = 0;
    for (int quad = (int)threadIdx.x; quad < p.width / 4; quad += STEP_THREADS) {
        float4 v = depthwise_quad(p, past, column, time_step, quad);
        y[quad] = v;
        sum += (double)v.x + (double)v.y + (double)v.z + (double)v.w;
    }
    double mean = block_sum(sum, scratch) / p.channels;
    for (int quad = (int)threadIdx.x; quad < p.width / 4; quad += STEP_THREADS) {
        float4 v = y[quad];
        int left = p.channels - quad * 4; /* padding does not count */
        squares += square_away(v.x, mean, left > 0) + square_away(v.y, mean, left > 1) +
                   square_away(v.z, mean, left > 2) + square_away(v.w, mean, left > 3);
    }
    double scale = 1.0 / sqrt(block_sum(squares, scratch) / p.channels + (double)p.eps);
    for (int quad = (int)threadIdx.x; quad < p.width / 4; quad += STEP_THREADS) {
        float4 v = y[quad], w = __ldg((const float4 *)p.norm + quad),
               bias = __ldg((const float4 *)p.norm_bias + quad);
        v.x = (float)(((double)v.x - mean) * scale) * w.x + bias.x;
        v.y = (float)(((double)v.y - mean) * scale) * w.y + bias.y;
        v.z = (float)(((double)v.z - mean) * scale) * w.z + bias.z;
        v.w = (float)(((double)v.w - mean) * scale) * w.w + bias.w;
        *(uint4 *)(p.ready + ((int64_t)column * (p.width / 4) + quad) * 16) = rows_split(v);
    }
}

cudaError_t cuda_depthwise_run(
    const struct cuda_depthwise *p, int n_items, const struct cuda_device *device, cudaStream_t stream)
{
    return launch(depthwise_kernel, dim3((unsigned)(n_items * p->time_steps)), STEP_THREADS,
        device->arch.overlaps, stream, *p);
}

/* ---- The last convolution ---- */

enum { LAST_TAPS = 7, LAST_RUN = 8 }; /* samples of one warp */

static __global__ __launch_bounds__(STEP_THREADS) void last_kernel(cuda_last p)
{
    int per_item = (p.time_steps + LAST_RUN - 1) / LAST_RUN, lane = (int)threadIdx.x % 32;
    int run = (int)blockIdx.x * STEP_WARPS + (int)threadIdx.x / 32, item = run / per_item;
    int t0 = run % per_item * LAST_RUN, row_bytes = p.groups * CONV_GROUP_BYTES;
    const bool there = item < p.call->n;
    const int who = there ? p.call->lanes[item] : 0;
    ptx_let_next_begin();
    ptx_wait_for_earlier();
    if (!there) {
        return;
    }
    float sum[LAST_RUN] = {};
    for (int quad = lane; quad < p.groups * 4; quad += 32) {
        float4 w[LAST_TAPS];
#pragma unroll
        for (int j = 0; j < LAST_TAPS; j++) {
            w[j] = *(const float4 *)(p.w + j * p.groups * 16 + quad * 4);
        }
#pragma unroll
        for (int i = 0; i < LAST_RUN + LAST_TAPS - 1; i++) {
            int t = t0 + i - (LAST_TAPS - 1);
            if (t >= p.time_steps) {
                break;
            }
            const unsigned char *row =
                t >= 0 ? p.x + ((int64_t)item * p.time_steps + t) * row_bytes
                       : p.past + who * p.past_stride + (int64_t)(LAST_TAPS - 1 + t) * row_bytes;
            float4 x = rows_join(*(const uint4 *)(row + quad * 16));
#pragma unroll
            for (int j = 0; j < LAST_TAPS; j++) {
                int s = i - j; /* the sample that sees this row through tap j */
                if (s >= 0 && s < LAST_RUN) {
                    sum[s] = fmaf(w[j].x, x.x, sum[s]);
                    sum[s] = fmaf(w[j].y, x.y, sum[s]);
                    sum[s] = fmaf(w[j].z, x.z, sum[s]);
                    sum[s] = fmaf(w[j].w, x.w, sum[s]);
                }
            }
        }
    }
    float mine = 0;
#pragma unroll
    for (int s = 0; s < LAST_RUN; s++) {
        float v = sum[s];
        for (int step = 16; step; step /= 2) {
            v += __shfl_xor_sync(0xffffffffu, v, step);
        }
        mine = lane == s ? v + p.bias : mine;
    }
    if (lane < LAST_RUN && t0 + lane < p.time_steps) {
        if (!isfinite(mine)) {
            mine = 0;
            p.call->not_a_number[who] = 1;
        }
        p.call->pcm[who * p.call->pcm_stride + t0 + lane] = fminf(fmaxf(mine, -1.0f), 1.0f);
    }
}

cudaError_t cuda_last_run(
    const struct cuda_last *p, int n_items, const struct cuda_device *device, cudaStream_t stream)
{
    int runs = n_items * ((p->time_steps + LAST_RUN - 1) / LAST_RUN);
    return launch(last_kernel, dim3((unsigned)((runs + STEP_WARPS - 1) / STEP_WARPS)), STEP_THREADS,
        device->arch.overlaps, stream, *p);
}

/* ---- Past ---- */

enum { CARRY_AT_ONCE = 8 };

/* One thread: 16 bytes of every row of a past, oldest first; what it reads lies behind what it has written. */
static __device__ void carry_piece(
    const cuda_carry_part &part, unsigned char *past, const unsigned char *fresh)
{
    for (int r0 = 0; r0 < part.n_rows; r0 += CARRY_AT_ONCE) {
        uint4 v[CARRY_AT_ONCE];
#pragma unroll
        for (int i = 0; i < CARRY_AT_ONCE; i++) {
            int from = r0 + i + part.time_steps; /* in past and fresh rows together */
            if (r0 + i < part.n_rows) {
                v[i] = from < part.n_rows
                           ? *(const uint4 *)(past + (int64_t)from * part.row_bytes)
                           : *(const uint4 *)(fresh + (int64_t)(from - part.n_rows) * part.row_bytes);
            }
        }
#pragma unroll
        for (int i = 0; i < CARRY_AT_ONCE; i++) {
            if (r0 + i < part.n_rows) {
                *(uint4 *)(past + (int64_t)(r0 + i) * part.row_bytes) = v[i];
            }
        }
    }
}

static __global__ __launch_bounds__(STEP_THREADS) void carry_kernel(
    const __grid_constant__ cuda_carry p)
{
    int item = (int)blockIdx.y, piece = (int)(blockIdx.x * STEP_THREADS + threadIdx.x);
    const bool there = item < p.call->n;
    unsigned char *state = p.state + (there ? p.call->lanes[item] : 0) * p.lane_bytes;
    ptx_let_next_begin();
    ptx_wait_for_earlier();
    if (!there) {
        return;
    }
    if (piece == 0) {
        *(int64_t *)(state + p.position) += p.frames;
    }
    if (piece < p.n_pieces) {
        int i = 0;
        while (i + 1 < p.n_parts && p.parts[i + 1].first_piece <= piece) {
            i++;
        }
        const cuda_carry_part &part = p.parts[i];
        int64_t at = (int64_t)(piece - part.first_piece) * 16;
        carry_piece(part, state + part.past + at,
            part.fresh + (int64_t)item * part.time_steps * part.row_bytes + at);
    }
}

cudaError_t cuda_carry_run(
    const struct cuda_carry *p, int n_items, const struct cuda_device *device, cudaStream_t stream)
{
    unsigned blocks = (unsigned)((p->n_pieces + STEP_THREADS - 1) / STEP_THREADS);
    return launch(carry_kernel, dim3(blocks ? blocks : 1, (unsigned)n_items), STEP_THREADS,
        device->arch.overlaps, stream, *p);
}

/* ---- Once ---- */

cudaError_t cuda_steps_prepare(void)
{
    const void *const kernels[] = {ptx_kernel(gather_kernel), ptx_kernel(attend_kernel),
        ptx_kernel(depthwise_kernel), ptx_kernel(last_kernel), ptx_kernel(carry_kernel)};
    cudaError_t result = cudaSuccess;
    for (int i = 0; i < 5 && !result; i++) {
        result = prefer_shared(kernels[i]);
    }
    return result;
}
