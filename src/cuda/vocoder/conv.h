/* SPDX-License-Identifier: Apache-2.0
 * Convolutions and matrix products of the vocoder on tensor cores, with nearly the precision of fp32:
 * weights and activations are split into an upper and a lower bf16 half, and three of the four products
 * are summed.
 *
 * Rows: activations that a product reads lie one time step a row, 64 bytes for each group of 16
 * channels, 16 bytes for each four channels of it: their four upper halves, then their four lower
 * halves. So one 16-byte load gives a thread its operand of both halves. Channels past the last are
 * zero.
 *
 * A column of a product is a time step of one item; items are the lanes of a call. A number is
 * summed in an order that depends on the shape alone: neither the tile that makes it nor the other
 * columns show in its bits. */
#ifndef CUDA_VOCODER_CONV_H
#define CUDA_VOCODER_CONV_H

#include "cuda/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    CONV_GROUP = 16,        /* channels of a group */
    CONV_GROUP_BYTES = 64,  /* of a row */
    CONV_WEIGHT_HALVES = 2, /* bf16 numbers whose sum a weight is, the largest first */
    CONV_HALF_BYTES = 512,  /* 16 outputs, 16 inputs */
    CONV_STEP_BYTES = CONV_WEIGHT_HALVES * CONV_HALF_BYTES, /* of weights */
    CONV_CALL_LANES = 64,                                   /* most lanes of a call */
};

/* What changes from call to call, in device memory. */
struct cuda_call {
    int32_t n; /* lanes */
    int32_t lanes[CONV_CALL_LANES];
    const int32_t *codes; /* lane l's at codes + l * codes_stride */
    int64_t codes_stride;
    float *pcm;
    int64_t pcm_stride;
    uint32_t *not_a_number;
};

/* Prepared weights. Step k of row tile i (16 outputs) is the CONV_STEP_BYTES at w + (i * n_steps + k) *
 * CONV_STEP_BYTES; steps go by chunks of groups, within a chunk by taps, within a tap by groups. */
struct cuda_product {
    const unsigned char *w;
    const float *bias; /* [outputs of one phase, padded] or NULL */
    int n_tiles;       /* of 16 outputs, all phases */
    int groups;        /* of 16 inputs */
    int taps, dilation;
    int chunk;  /* groups of a chunk */
    int splits; /* 1, 2, 4 or 8 parts of the steps, summed apart and then together */
};

enum cuda_conv_after { CONV_AS_IS, CONV_GELU, CONV_GATE };

/* One product: sum -> norm -> activation -> + bias (before the activation) -> * scale -> + residual. */
struct cuda_conv {
    struct cuda_product product;
    const struct cuda_call *call;
    int most_columns;       /* of which activations may be read, whatever the call says */
    int time_steps;         /* columns of one item */
    const unsigned char *x; /* rows [items * time_steps] */
    /* Of lane 0: the (taps - 1) * dilation rows before each call's first; NULL with 1 tap. */
    const unsigned char *past;
    int64_t past_stride; /* bytes from lane to lane */
    int norm_width; /* 0, or each column is divided by the root of its mean square over so many channels */
    float norm_eps;
    /* CONV_GATE: outputs 0 .. 7 of a tile are gates of its outputs 8 .. 15. */
    enum cuda_conv_after after;
    int width; /* outputs of one phase, padded: output m is channel m % width of time step column * rate + m / width */
    int rate;
    const float *scale;             /* [width] or NULL */
    const float *residual;          /* [items * time_steps * rate][width] or NULL */
    float *raw;                     /* the same layout, or NULL; may be residual */
    unsigned char *ready;           /* rows, or NULL: the value after its snake (NULL: as it is) */
    const float *snake_a, *snake_b; /* [width] */
};

/* How a matrix of a checkpoint becomes steps. Element (output m of phase p, input c, tap j) is at
 * offset + m * m_step + c * c_step + j * j_step + p * p_step of the tensor. */
struct conv_pack {
    const float *from; /* device */
    unsigned char *to; /* the product's w */
    int first_tile;    /* where this part of the outputs begins */
    int n_out;         /* outputs of a phase, without padding */
    int n_in;          /* all inputs, without padding */
    int n_phases;
    int width; /* outputs of a phase, padded */
    int groups, taps, chunk;
    int64_t offset, m_step, c_step, j_step, p_step;
    int first_in; /* inputs before this one belong to another tensor, and so do those from first_in + n_in on */
    int half;                  /* 0; 1 or 2: outputs fill only the first or second 8 of each tile */
    const float *column_scale; /* [n_in] device, or NULL */
};

/* Once, before the first run: lets the kernels have their shared memory. */
cudaError_t cuda_conv_prepare(const struct cuda_device *device);
/* Queues a product of up to n_items items, by the kernel that suits their number; all give the same bits. */
cudaError_t cuda_conv_run(
    const struct cuda_conv *conv, int n_items, const struct cuda_device *device, cudaStream_t stream);
/* The kernel of many columns by itself: whether it suits, its run, and its part of cuda_conv_prepare. */
bool cuda_conv_suits_many(
    const struct cuda_conv *conv, int n_columns, const struct cuda_device *device);
cudaError_t cuda_conv_run_many(
    const struct cuda_conv *conv, int n_columns, const struct cuda_device *device, cudaStream_t stream);
cudaError_t cuda_conv_prepare_many(const struct cuda_device *device);
/* Elements that belong to another tensor are left as they are. */
cudaError_t cuda_conv_pack(const struct conv_pack *pack, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
