/* SPDX-License-Identifier: Apache-2.0
 * Talker, predictor, embeddings and heads as they lie in device memory; the graph of kernels and the persistent
 * kernel read the same bytes, in tiles (tiles.h). */
#ifndef CUDA_DEVICE_WEIGHTS_H
#define CUDA_DEVICE_WEIGHTS_H

#include "cuda/device/memory.h"
#include "cuda/device/tiles.h"
#include "model/model.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    CUDA_MAX_LAYERS = 64,
    CUDA_MAX_CODES = 4096, /* that can be chosen among */
    CUDA_MAX_HEAD = 256
};

struct cuda_matrix {
    const void *tiles; /* NULL: there is none */
    int rows : 24;
    unsigned format : 8; /* enum cuda_format; kernels are told neither rows nor format by this */
    int cols;
    int n_row_tiles, n_k_tiles;
};

struct cuda_layer {
    const float *input_norm, *post_norm; /* [width], zeros behind up to a multiple of 16 */
    const float *q_norm, *k_norm;        /* [head] */
    struct cuda_matrix qkv;              /* rows: all of q, then k, then v */
    struct cuda_matrix o;
    /* Row tile i holds rows 8 i .. 8 i + 7 of gate in its upper half and the same rows of up in its lower half: both
     * stand in the same thread. `rows` is 2 * inner rounded up to whole tiles. */
    struct cuda_matrix gate_up;
    struct cuda_matrix down;
};

struct cuda_stack {
    int width, inner, n_layers, n_heads, n_kv_heads, head;
    int width_padded, inner_padded,
        mixed_padded; /* to multiples of 16: the stride of vectors of activations */
    float norm_eps;
    struct cuda_layer layers[CUDA_MAX_LAYERS];
    const float *norm;     /* [width_padded], before the head */
    const float *inv_freq; /* [head / 2] */
};

/* Which weights the persistent kernel reads in 8 bits. */
enum frame_packed { FRAME_PACKED_NONE, FRAME_PACKED_PREDICTOR, FRAME_PACKED_ALL };

struct cuda_weights {
    struct cuda_stack talker, predictor;
    struct cuda_matrix talker_head;                          /* [codec_vocabulary][talker width] */
    struct cuda_matrix predictor_head[CONFIG_MAX_CODEBOOKS]; /* [j] predicts code j + 1 */
    struct cuda_matrix projection; /* talker width -> predictor width; none when equal */
    const float *projection_bias;
    struct cuda_matrix text_fc1, text_fc2;
    const float *text_fc1_bias, *text_fc2_bias;
    const uint16_t *text_table; /* [text_vocabulary][text_width] bf16, row-major */
    void *text_host;            /* it, where a packed talker leaves it in pinned memory; else NULL */
    const uint16_t *code_table[CONFIG_MAX_CODEBOOKS]; /* [codes][talker width] bf16; 0 the talker's */
    int text_width, text_padded;
    int n_codebooks, codec_vocabulary, predictor_vocabulary, text_vocabulary;

    struct cuda_arena arena;
};

/* All but the addresses of *weights, which cuda_weights_open takes as it takes zeros: for what is reckoned before
 * anything is allocated. */
void cuda_weights_shapes(struct cuda_weights *weights, const struct model *model);

/* UTTER_E_MODEL when these kernels cannot hold the checkpoint: a type other than bf16 and packed, a shape past their
 * limits. */
utter_status cuda_weights_fit(const struct model *model, utter_error *error);
/* Bytes of device memory that cuda_weights_open allocates. */
uint64_t cuda_weights_plan(const struct model *model);
/* All-zero weights in. Copies and waits. */
utter_status cuda_weights_open(struct cuda_weights *weights, const struct model *model,
    struct cuda_device *device, utter_error *error);
void cuda_weights_close(struct cuda_weights *weights);

#ifdef __cplusplus
}
#endif

#endif
