/* SPDX-License-Identifier: Apache-2.0
 * Rows, text ids and codes -> the talker's input vectors; the order that begins a frame. All small: a block for each
 * vector or lane. */
#include "cuda/lib/launch.cuh"
#include "cuda/parts/history.cuh"
#include "cuda/parts/steps.h"

namespace {

enum { N_THREADS = 256 };

__global__ void __launch_bounds__(N_THREADS) text_kernel(struct cuda_text p)
{
    const int v = (int)blockIdx.x;
    ptx_let_next_begin();
    ptx_wait_for_earlier();
    const int id = *(const int32_t *)((const char *)p.text + v * p.text_stride);
    const bool there = id >= 0 && id < p.n_ids;
    for (int i = (int)threadIdx.x; i < p.width; i += N_THREADS) {
        p.x[v * p.x_stride + i] = there ? bf16_value(p.table[(int64_t)id * p.width + i]) : 0.0f;
    }
}

/* Number i of the codec part of a row; codes are summed in order, as the official code does. */
__device__ float codec_part(const struct cuda_embed &p, const struct cuda_row *row, int v, int i)
{
    if (row->codec == ROW_ID) {
        return bf16_value(p.code_table[0][(int64_t)row->id * p.width + i]);
    }
    if (row->codec == ROW_VECTOR) {
        return p.vectors[(int64_t)v * p.width + i];
    }
    float sum = bf16_value(p.code_table[0][(int64_t)row->codes[0] * p.width + i]);
    for (int j = 1; j < p.n_codebooks; j++) {
        sum += bf16_value(p.code_table[j][(int64_t)row->codes[j] * p.width + i]);
    }
    return sum;
}

__global__ void __launch_bounds__(N_THREADS) embed_kernel(struct cuda_embed p)
{
    const int v = (int)blockIdx.x;
    ptx_let_next_begin();
    ptx_wait_for_earlier();
    float *x = p.x + v * p.x_stride;
    const float *text = p.text + v * p.text_stride;
    if (p.rows) {
        const struct cuda_row *row = &p.rows[v];
        for (int i = (int)threadIdx.x; i < p.width; i += N_THREADS) {
            float value = row->text < 0 ? 0.0f : text[i];
            x[i] = row->codec == ROW_NONE ? value : value + codec_part(p, row, v, i);
        }
        return;
    }
    const int lane = p.slots->step_lane[v], id = p.slots->text[v];
    if (lane < 0) {
        return;
    }
    text = id == p.pad_id ? p.pad : text;
    for (int i = (int)threadIdx.x; i < p.width; i += N_THREADS) {
        x[i] = (id < 0 ? 0.0f : text[i]) + p.sum[(int64_t)lane * p.sum_stride + i];
    }
}

/* The order lies in the host's memory: all that is always needed is asked for at once. */
__global__ void __launch_bounds__(CUDA_MAX_SLOTS) begin_kernel(struct cuda_begin p)
{
    const int i = (int)threadIdx.x;
    ptx_let_next_begin();
    ptx_wait_for_earlier();
    const struct cuda_order *o = p.order;
    struct cuda_slots *s = p.slots;
    const uint32_t lost = *p.lost & CUDA_PROMPT_LOST;
    const int asked = o->n, looks = o->looks, its_lane = o->slots[i].lane, its_step = o->slots[i].step,
              position = o->slots[i].position, text = o->slots[i].text, forced = o->slots[i].forced;
    const uint64_t sequence = o->sequence;
    const bool used = !lost && i < asked, step = used && its_step;
    const int lane = used ? its_lane : -1;
    s->lane[i] = lane;
    s->alive[i] = lane;
    s->step_lane[i] = step ? lane : -1;
    s->step_position[i] = step ? position : 0;
    if (used) {
        p.lanes[lane].position = position + step;
    }
    s->text[i] = used ? text : -1;
    s->forced[i] = used ? forced : 0;
    s->bad[i] = 0;
    s->look[i] = used && looks ? o->slots[i].look : (struct cuda_look){0, 0, NULL};
    for (int j = 0; used && forced && j < CONFIG_MAX_CODEBOOKS; j++) {
        s->given[i][j] = o->slots[i].codes[j];
    }
    if (i == 0) {
        s->sequence = sequence;
    }
}

__global__ void __launch_bounds__(N_THREADS) renew_kernel(struct cuda_renew p)
{
    ptx_let_next_begin();
    ptx_wait_for_earlier();
    if (threadIdx.x == 0) {
        struct cuda_lane *lane = &p.lanes.state[p.lane];
        lane->settings = p.settings;
        lane->position = 0;
        lane->n_frames = 0;
        lane->ended = 0;
        for (int j = 0; j < CONFIG_MAX_CODEBOOKS; j++) {
            lane->taken[j] = 0;
        }
    }
    for (int i = (int)threadIdx.x; i < p.codec_vocabulary; i += N_THREADS) {
        history_forget(p.lanes.seen + (int64_t)p.lane * p.codec_vocabulary, i);
    }
}

} // namespace

cudaError_t cuda_text_queue(const struct cuda_queue *q, const struct cuda_text *text)
{
    return launch(
        text_kernel, dim3((unsigned)text->n_vectors), N_THREADS, q->overlaps, q->stream, *text);
}

cudaError_t cuda_embed_queue(const struct cuda_queue *q, const struct cuda_embed *embed)
{
    return launch(
        embed_kernel, dim3((unsigned)embed->n_vectors), N_THREADS, q->overlaps, q->stream, *embed);
}

cudaError_t cuda_begin_queue(const struct cuda_queue *q, const struct cuda_begin *begin)
{
    return launch(begin_kernel, dim3(1), CUDA_MAX_SLOTS, q->overlaps, q->stream, *begin);
}

cudaError_t cuda_renew_queue(const struct cuda_queue *q, const struct cuda_renew *renew)
{
    return launch(renew_kernel, dim3(1), N_THREADS, q->overlaps, q->stream, *renew);
}
