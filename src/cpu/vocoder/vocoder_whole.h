/* SPDX-License-Identifier: Apache-2.0
 * The vocoder in whole numbers, beside packed weights of the talker: its matrices in 16 bits, its
 * convolutions with weights of 16 bits (12 to 14 of them in use) against activations of 16 bits; on tables that lie
 * by moments both are bf16 (kern.h). Shared by round.c (weights, once) and vocoder_whole.c (the
 * convolution stack). Any cut of the frames gives the same bits here too. */
#ifndef CPU_VOCODER_VOCODER_WHOLE_H
#define CPU_VOCODER_VOCODER_WHOLE_H

#include "cpu/vocoder/vocoder_parts.h"

/* Outputs come in groups of KERN_WHOLE_GROUP; each group has group_rows rows of weights: its outputs, or for a
 * transposed convolution of stride s its outputs at the first of s places, then at the second one, and so on. */
struct whole_conv {
    int32_t *w;           /* as struct kern_whole has it */
    float *scales, *bias; /* [n_out_groups * group_rows] */
    int n_in_groups, n_out_groups, group_rows, taps, dilation;
    bool fine; /* as the kernels take it: all but the units, which are most of the work */
};

/* The next convolution's input, its past in front; `stride` moments have room. */
struct whole_rows {
    /* [n_groups][kern.whole_words][stride], or by time steps
     * [n_groups][2][stride][kern.whole_words / 2] */
    int32_t *words;
    int64_t stride;
};

struct whole_unit {
    struct vocoder_snake snake1, snake2; /* filled up with zeros to whole groups */
    struct whole_conv conv1, conv2;
};

struct whole_block {
    int n_groups, rate, n_piece;
    struct vocoder_snake snake; /* of the input */
    struct whole_conv up;
    struct whole_unit units[VOCODER_UNITS];
    float *main, *other; /* [n_groups][KERN_WHOLE_GROUP][stride], or by moments */
    struct whole_rows ready, inner;
    int64_t stride; /* of the piece at hand */
};

struct vocoder_whole {
    struct vocoder_weights weights; /* the model's, with large matrices in 16 bits */
    struct layer_weights *layers;
    /* [ratio * latent][latent]: all outputs of a place side by side */
    struct weight up[CONFIG_MAX_RATES];
    struct whole_conv first;
    struct whole_block blocks[CONFIG_MAX_RATES];
    struct vocoder_snake last_snake;
    struct whole_rows first_rows, wave_ready;
    float *wave;      /* [decoder_width, whole groups][moments] */
    float *last_rows; /* [channels][stride of the last block], the past in front */
    float *places; /* [n_parts][n_places]: what a transposed convolution gives before it is laid out */
    int64_t n_places;
    char *matrices;
    uint64_t matrix_bytes;
};

static inline int whole_groups(int64_t channels)
{
    return (int)((channels + KERN_WHOLE_GROUP - 1) / KERN_WHOLE_GROUP);
}

/* Memory for everything that v->whole holds but the matrices; with c->base NULL it is only counted. */
void vocoder_whole_carve(struct cpu_vocoder *v, struct vocoder_carver *c);
void vocoder_whole_carve_lane(
    const struct cpu_vocoder *v, struct cpu_vocoder_lane *lane, struct vocoder_carver *c);

/* Makes v->whole with its matrices, and puts v->weights on them. */
utter_status vocoder_whole_new(struct cpu_vocoder *v, utter_error *error);
void vocoder_whole_free(struct cpu_vocoder *v);
/* The convolutions' weights, behind vocoder_whole_carve. */
utter_status vocoder_whole_round(struct cpu_vocoder *v, utter_error *error);

/* As vocoder_wave_run, from v->first_rows without a past. */
void vocoder_whole_run(struct cpu_vocoder *v, struct cpu_vocoder_lane *lane, int n_moments, float *pcm,
    const struct cpu_tap *tap);

#endif
