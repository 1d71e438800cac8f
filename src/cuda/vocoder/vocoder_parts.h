/* SPDX-License-Identifier: Apache-2.0
 * The inside of the vocoder on the GPU, shared by its files: vocoder.c (memory, calls, graphs), vocoder_shapes.c
 * (shapes, and where everything lies), vocoder_load.c (weights) and vocoder_queue.c (one run, kernel by kernel).
 *
 * A run decodes the same number of frames for each of its items (lanes of a call). Between kernels every activation
 * has a place of its own for n_slots frames in all; what convolutions need of earlier calls lies in a lane's state:
 * position, pasts, keys and values. The last kernel of a run renews it. */
#ifndef CUDA_VOCODER_VOCODER_PARTS_H
#define CUDA_VOCODER_VOCODER_PARTS_H

#include "cuda/device/memory.h"
#include "cuda/vocoder/vocoder.h"
#include "cuda/vocoder/vocoder_steps.h"

enum {
    VOCODER_UNITS = 3,
    VOCODER_WIDEN = 4,
    VOCODER_MAX_LAYERS = 64,
    VOCODER_MAX_FRAMES = 8,  /* of a lane in one run */
    VOCODER_FRAME_STEPS = 4, /* 1, 2, 4, 8 */
    VOCODER_ITEM_STEPS = 7,  /* 1, 2, 4 .. CONV_CALL_LANES */
};

struct vocoder_snake {
    float *a, *b; /* exp(alpha), 1 / (exp(beta) + 1e-9) */
};

/* The rows before a call's first, in a lane's state. */
struct vocoder_past {
    int64_t at;
    int row_bytes, n_rows;
};

struct vocoder_layer {
    struct cuda_product qkv, o, gate_up, down;
    float *input_norm, *post_norm; /* folded into qkv and gate_up */
    float *attention_scale, *mlp_scale;
};

struct vocoder_up {
    struct cuda_product up, widen, narrow;
    float *taps, *taps_bias, *norm, *norm_bias, *gamma;
    struct vocoder_past past;
    int ratio, time_steps; /* made of one frame */
    /* Activations. */
    float *raw;            /* [time_steps][latent]: out of the transposed convolution */
    unsigned char *normed; /* rows */
    unsigned char *wide, *ready;
};

struct vocoder_unit {
    struct cuda_product conv1, conv2;
    struct vocoder_snake snake1, snake2;
    struct vocoder_past past;
    unsigned char *ready; /* rows: what conv1 reads */
};

struct vocoder_block {
    struct cuda_product up;
    struct vocoder_snake snake;
    struct vocoder_past past; /* of the transposed convolution: one row */
    struct vocoder_unit units[VOCODER_UNITS];
    int n_in, n_out, width, rate, time_steps; /* made of one frame */
    unsigned char *ready;                     /* rows: what the transposed convolution reads */
};

struct cuda_vocoder {
    const struct model *model;
    const struct codec_config *config;
    struct cuda_device *device;
    struct cuda_arena arena;
    int n_lanes, n_slots;

    struct cuda_product quantizer, pre_conv, stack_in, stack_out, first;
    struct vocoder_layer layers[VOCODER_MAX_LAYERS];
    struct vocoder_up ups[CONFIG_MAX_RATES];
    struct vocoder_block blocks[CONFIG_MAX_RATES];
    struct vocoder_snake last_snake;
    float *tables; /* [n_codebooks][codebook_size][codebook_dim / 2] */
    float *inv_freq, *stack_norm, *last_w;
    float last_bias;
    int q_width, kv_width; /* padded */

    struct vocoder_past pre_past, first_past, last_past;
    int64_t cache_at[VOCODER_MAX_LAYERS][2]; /* keys, values */
    int cache_capacity;
    int64_t past_bytes, lane_bytes; /* of a lane: what a reset empties, and all of it */
    unsigned char *state;           /* [n_lanes][lane_bytes]: position first */

    unsigned char *gathered, *quantized, *latent, *x_ready, *mixed, *inner, *stacked, *last_ready,
        *unit_inner;
    float *x, *qkv, *wave, *tapped; /* wave: what the units of a block add to */

    struct cuda_call *call; /* device */
    cudaStream_t stream;    /* to capture on */
    cudaGraphExec_t graphs[VOCODER_ITEM_STEPS][VOCODER_FRAME_STEPS];
    cudaGraphExec_t fronts[VOCODER_FRAME_STEPS]; /* of one lane, up to the waves */
    backend_tap_fn *tap_fn;
    void *tap_user;
};

/* UTTER_E_MODEL when these kernels cannot hold the shape; else every shape and offset is set. */
utter_status vocoder_describe(struct cuda_vocoder *v, utter_error *error);
/* Hands out everything of the arena; runs twice. */
void vocoder_lay_out(struct cuda_vocoder *v, struct cuda_arena *arena);
utter_status vocoder_load(struct cuda_vocoder *v, utter_error *error);

/* How far a run goes: to the samples, or only to the time steps that the wave part would hear, with
 * their pasts. */
enum vocoder_reach { VOCODER_WHOLE, VOCODER_FRONT };

/* Queues all kernels of `frames` frames for up to n_items items; `v->call` says which. Taps wait for each stage
 * (`call` is the host's copy then). */
cudaError_t vocoder_queue(struct cuda_vocoder *v, int n_items, int frames, enum vocoder_reach reach,
    cudaStream_t stream, const struct cuda_call *call);

static inline int vocoder_pad(int n)
{
    return (n + CONV_GROUP - 1) / CONV_GROUP * CONV_GROUP;
}

#endif
