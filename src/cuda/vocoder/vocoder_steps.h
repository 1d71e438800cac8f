/* SPDX-License-Identifier: Apache-2.0
 * The steps of the vocoder that are no products: tables, attention, depthwise convolution, the last convolution, and
 * the past that a call leaves to the next. Rows and calls as in vocoder/conv.h. */
#ifndef CUDA_VOCODER_VOCODER_STEPS_H
#define CUDA_VOCODER_VOCODER_STEPS_H

#include "cuda/vocoder/conv.h"
#include "model/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Codes -> rows of the two sums of table rows beside each other: [items * frames] rows of 2 * half channels. */
struct cuda_gather {
    const struct cuda_call *call;
    const float *tables; /* [n_codebooks][size][half], divided by their usage */
    int n_codebooks, n_semantic, size, half;
    int frames;
    int groups;
    unsigned char *ready;
};
cudaError_t cuda_gather_run(const struct cuda_gather *gather, int n_items,
    const struct cuda_device *device, cudaStream_t stream);

/* Products of one layer -> mixed values; new keys and values go to the caches. */
struct vocoder_attend {
    const struct cuda_call *call;
    const float *qkv; /* [items * frames][stride]: queries, keys, values */
    int stride, k_at, v_at;
    int frames;
    int n_heads, n_kv_heads, head;
    int window, capacity;
    const float *inv_freq; /* [head / 2] */
    float scale;
    const int64_t *position; /* lane 0's number of frames so far */
    float *keys, *values;    /* lane 0's, [capacity][n_kv_heads * head] */
    int64_t lane_bytes;      /* from lane to lane, of the three */
    int groups;
    unsigned char *ready; /* rows [items * frames] */
    bool staged;          /* set by the run: earlier keys and values fit into shared memory */
};
enum { ATTEND_MAX_HEAD = 256, ATTEND_MAX_WINDOW = 1024 };
cudaError_t cuda_attend_run(const struct vocoder_attend *attend, int n_items,
    const struct cuda_device *device, cudaStream_t stream);

/* Depthwise convolution of 7 taps, then LayerNorm. */
struct cuda_depthwise {
    const struct cuda_call *call;
    const float *x;      /* [items * time_steps][width] */
    const float *past;   /* lane 0's 6 rows */
    int64_t past_stride; /* bytes */
    int time_steps;
    int channels, width;                  /* width: padded */
    const float *taps;                    /* [7][width] */
    const float *bias, *norm, *norm_bias; /* [width] */
    float eps;
    unsigned char *ready; /* rows [items * time_steps] */
};
enum { DEPTHWISE_TAPS = 7, DEPTHWISE_MAX_CHANNELS = 8192 };
cudaError_t cuda_depthwise_run(const struct cuda_depthwise *depthwise, int n_items,
    const struct cuda_device *device, cudaStream_t stream);

/* The last convolution, of 7 taps to one channel: rows -> samples, clamped; what is no number becomes 0 and is told.
 * */
struct cuda_last {
    const struct cuda_call *call;
    const unsigned char *x, *past;
    int64_t past_stride;
    int time_steps;
    int groups;
    const float *w; /* [7][groups * 16] */
    float bias;
};
cudaError_t cuda_last_run(
    const struct cuda_last *last, int n_items, const struct cuda_device *device, cudaStream_t stream);

/* After all else: each past becomes the last n_rows of itself and the call's rows; the position moves on. */
struct cuda_carry_part {
    const unsigned char *fresh; /* [items * time_steps] rows */
    int64_t past;               /* from a lane's state */
    int row_bytes, time_steps, n_rows;
    int first_piece; /* pieces (16 bytes of a row) of the parts before */
};
enum { CARRY_MAX_PARTS = 3 + 5 * CONFIG_MAX_RATES };
struct cuda_carry {
    const struct cuda_call *call;
    unsigned char *state; /* lane 0's */
    int64_t lane_bytes;
    int64_t position; /* where a lane's position lies in its state */
    int frames;
    int n_parts, n_pieces;
    struct cuda_carry_part parts[CARRY_MAX_PARTS];
};
cudaError_t cuda_carry_run(
    const struct cuda_carry *carry, int n_items, const struct cuda_device *device, cudaStream_t stream);

/* Once for a device: kernels that share the L1 cache alike may overlap. */
cudaError_t cuda_steps_prepare(void);

/* Writes a call to device memory, in stream order. */
cudaError_t cuda_call_set(struct cuda_call *at, const struct cuda_call *call, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
