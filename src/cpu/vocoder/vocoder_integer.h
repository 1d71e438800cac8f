/* SPDX-License-Identifier: Apache-2.0
 * The vocoder in integers, beside packed weights of the talker: its matrices in 16 bits, its
 * convolutions with weights of 16 bits (12 to 14 of them in use) against activations of 16 bits; on tables that lie
 * by time steps both are bf16 (kern.h). Shared by round.c (weights, once) and vocoder_integer.c (the
 * convolution stack). Any cut of the frames gives the same bits here too. */
#ifndef CPU_VOCODER_VOCODER_INTEGER_H
#define CPU_VOCODER_VOCODER_INTEGER_H

#include "cpu/vocoder/vocoder_parts.h"

/* Outputs come in groups of KERN_INTEGER_GROUP; each group has group_rows rows of weights: its outputs, or for a
 * transposed convolution of stride s its outputs at the first of s places, then at the second one, and so on. */
struct integer_conv {
    int32_t *w;           /* as struct kern_integer has it */
    float *scales, *bias; /* [n_out_groups * group_rows] */
    int n_in_groups, n_out_groups, group_rows, taps, dilation;
    bool fine; /* as the kernels take it: all but the units, which are most of the work */
};

/* The next convolution's input, its past in front; `stride` time steps have room. */
struct integer_rows {
    /* [n_groups][kern.integer_words][stride], or by time steps
     * [n_groups][2][stride][kern.integer_words / 2] */
    int32_t *words;
    int64_t stride;
};

struct integer_unit {
    struct vocoder_snake snake1, snake2; /* filled up with zeros to whole groups */
    struct integer_conv conv1, conv2;
};

struct integer_block {
    int n_groups, rate, n_piece;
    struct vocoder_snake snake; /* of the input */
    struct integer_conv up;
    struct integer_unit units[VOCODER_UNITS];
    float *main, *other; /* [n_groups][KERN_INTEGER_GROUP][stride], or by time steps */
    struct integer_rows ready, inner;
    int64_t stride; /* of the piece at hand */
};

struct vocoder_integer {
    struct vocoder_weights weights; /* the model's, with large matrices in 16 bits */
    struct layer_weights *layers;
    /* [ratio * latent][latent]: all outputs of a place side by side */
    struct weight up[CONFIG_MAX_RATES];
    struct integer_conv first;
    struct integer_block blocks[CONFIG_MAX_RATES];
    struct vocoder_snake last_snake;
    struct integer_rows first_rows, wave_ready;
    float *wave;      /* [decoder_width, whole groups][time steps] */
    float *last_rows; /* [channels][stride of the last block], the past in front */
    float *places; /* [n_parts][n_places]: what a transposed convolution gives before it is laid out */
    int64_t n_places;
    char *matrices;
    uint64_t matrix_bytes;
};

static inline int integer_groups(int64_t channels)
{
    return (int)((channels + KERN_INTEGER_GROUP - 1) / KERN_INTEGER_GROUP);
}

/* Memory for everything that v->integer holds but the matrices; with c->base NULL it is only counted. */
void vocoder_integer_carve(struct cpu_vocoder *v, struct vocoder_carver *c);
void vocoder_integer_carve_lane(
    const struct cpu_vocoder *v, struct cpu_vocoder_lane *lane, struct vocoder_carver *c);

/* Makes v->integer with its matrices, and puts v->weights on them. */
utter_status vocoder_integer_new(struct cpu_vocoder *v, utter_error *error);
void vocoder_integer_free(struct cpu_vocoder *v);
/* The convolutions' weights, behind vocoder_integer_carve. */
utter_status vocoder_integer_round(struct cpu_vocoder *v, utter_error *error);

/* As vocoder_wave_run, from v->first_rows without a past. */
void vocoder_integer_run(struct cpu_vocoder *v, struct cpu_vocoder_lane *lane, int n_time_steps,
    float *pcm, const struct cpu_tap *tap);

#endif
