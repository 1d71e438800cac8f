/* SPDX-License-Identifier: Apache-2.0
 * A checkpoint, opened: config, mapped tensors, and every tensor that is used, by name and checked shape.
 * Matrices stay where they lie in the mapped file; small vectors are fp32 copies. Immutable. */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include "base/progress.h"
#include "weights/bind.h"
#include "weights/config.h"
#include "weights/pack.h"

struct layer_weights {
    float *input_norm;                  /* [width] */
    float *post_norm;                   /* [width] */
    struct weight q;                    /* [n_heads * head][width] */
    struct weight k, v;                 /* [n_kv_heads * head][width] */
    struct weight o;                    /* [width][n_heads * head] */
    float *q_norm, *k_norm;             /* [head], NULL in the codec */
    struct weight gate, up;             /* [inner][width] */
    struct weight down;                 /* [width][inner] */
    float *attention_scale, *mlp_scale; /* [width], codec only, else NULL */
};

struct stack_weights {
    struct layer_weights *layers; /* [n_layers] */
    float *norm;                  /* [width] */
};

struct talker_weights {
    struct weight text_embedding;  /* [text_vocabulary][text_width] */
    struct weight text_fc1;        /* [text_width][text_width] */
    float *text_fc1_bias;          /* [text_width] */
    struct weight text_fc2;        /* [width][text_width] */
    float *text_fc2_bias;          /* [width] */
    struct weight codec_embedding; /* [codec_vocabulary][width] */
    struct stack_weights stack;
    struct weight head; /* [codec_vocabulary][width] */
};

struct predictor_weights {
    /* [n_codebooks - 1] of [predictor_vocabulary][talker width]; j embeds code j + 1 */
    struct weight *embedding;
    struct weight *head; /* [n_codebooks - 1] of [predictor_vocabulary][width]; j predicts code j + 1 */
    struct weight projection; /* [width][talker width]; data NULL when the widths are equal */
    float *projection_bias;   /* [width] */
    struct stack_weights stack;
};

struct conv_weights {
    struct weight w; /* [out][in * taps], or for a transposed one [in][out * taps] */
    float *bias;     /* [out] or NULL */
};

struct snake_weights {
    float *alpha, *beta; /* [channels], logarithms as in the file */
};

struct unit_weights { /* residual unit: snake, conv of 7 taps, snake, conv of 1 tap */
    struct snake_weights snake1, snake2;
    struct conv_weights conv1, conv2;
};

struct block_weights { /* upsampling block of the convolution stack */
    struct snake_weights snake;
    struct conv_weights up; /* transposed, 2 * rate taps */
    struct unit_weights units[3];
};

struct convnext_weights {
    struct conv_weights up;        /* transposed, ratio taps, stride ratio */
    struct conv_weights depthwise; /* [channels][7] */
    float *norm, *norm_bias;       /* [channels] */
    struct conv_weights widen;     /* [4 * channels][channels] */
    struct conv_weights narrow;    /* [channels][4 * channels] */
    float *gamma;                  /* [channels] */
};

struct vocoder_weights {
    /* Tables of the quantizer: sum and usage as in the file; a row is sum / max(usage, 1e-5). */
    struct weight table_sum[CONFIG_MAX_CODEBOOKS];   /* [codebook_size][codebook_dim / 2] */
    float *table_usage[CONFIG_MAX_CODEBOOKS];        /* [codebook_size] */
    struct weight first_projection, rest_projection; /* [codebook_dim][codebook_dim / 2] */
    struct conv_weights pre_conv;                    /* [latent][codebook_dim * 3] */
    struct conv_weights stack_in;                    /* [stack width][latent] */
    struct stack_weights stack;
    struct conv_weights stack_out; /* [latent][stack width] */
    struct convnext_weights upsample[CONFIG_MAX_RATES];
    struct conv_weights first; /* [decoder_width][latent * 7] */
    struct block_weights blocks[CONFIG_MAX_RATES];
    struct snake_weights last_snake;
    struct conv_weights last; /* [1][channels * 7] */
};

struct encoder_stage { /* a residual unit, then a convolution of 2 * rate taps and stride rate */
    struct conv_weights narrow; /* [channels / compress][channels * residual taps] */
    struct conv_weights widen;  /* [channels][channels / compress] */
    struct conv_weights down;   /* [2 * channels][channels * 2 * rate] */
};

struct encoder_layer { /* LayerNorm, attention, LayerNorm, GELU between two matrices */
    float *input_norm, *input_norm_bias; /* [width] */
    float *post_norm, *post_norm_bias;   /* [width] */
    struct weight q, k, v, o;
    struct weight fc1;                  /* [inner][width] */
    struct weight fc2;                  /* [width][inner] */
    float *attention_scale, *mlp_scale; /* [width] */
};

struct encoder_weights {
    struct conv_weights first; /* [filters][first taps] */
    struct encoder_stage stages[CONFIG_MAX_RATES];
    struct conv_weights last;                        /* [width][channels * last taps] */
    struct encoder_layer *layers;                    /* [n_layers] */
    struct weight down;                              /* [width][width * 4] */
    struct weight first_projection, rest_projection; /* [codebook_dim][width] */
    /* As in the file; a row of a table is sum / max(usage, 1e-5). */
    struct weight table_sum[CONFIG_MAX_CODEBOOKS]; /* [codebook_size][codebook_dim] */
    float *table_usage[CONFIG_MAX_CODEBOOKS];      /* [codebook_size] */
};

struct speaker_block {                                 /* the first has conv_in only */
    struct conv_weights conv_in, conv_out;             /* [channels][channels] */
    struct conv_weights groups[CONFIG_SPEAKER_GROUPS]; /* [n_groups - 1] of [width][width * taps] */
    struct conv_weights squeeze, excite;               /* [squeeze][channels], [channels][squeeze] */
};

struct speaker_weights {
    struct speaker_block blocks[CONFIG_SPEAKER_BLOCKS];
    struct conv_weights join;             /* [last][last] */
    struct conv_weights attend1, attend2; /* [attention][3 * last], [last][attention] */
    struct conv_weights out;              /* [speaker width][2 * last] */
};

struct model {
    struct config *config;
    struct tensor_set *tensors;       /* model.safetensors */
    struct tensor_set *codec_tensors; /* speech_tokenizer/model.safetensors */
    struct talker_weights talker;
    struct predictor_weights predictor;
    struct vocoder_weights vocoder;
    bool has_encoder, has_speaker; /* the config describes it and its tensors are there */
    struct encoder_weights encoder;
    struct speaker_weights speaker;
    uint64_t talker_parameters, predictor_parameters, vocoder_parameters, all_parameters;
    /* Of weights that one frame reads: talker once, predictor for each code, vocoder once. */
    uint64_t talker_frame_bytes, predictor_frame_bytes, vocoder_frame_bytes;
    uint64_t codec_fingerprint; /* of the first code table: equal codes mean equal sounds */
    bool packed_file;           /* talker and predictor lie packed in the file */
    bool short_sound;           /* the vocoder has 16 bits: asked for, or the talker is packed */
    void **owned;               /* every small vector and table that is not in a mapped file */
    size_t n_owned, owned_capacity;
};

/* A checkpoint folder, or a file that model_file_write made. */
utter_status model_open(struct model **model, const char *folder, utter_error *error);
void model_close(struct model **model);
/* True when `path` may be such a file. */
bool model_file_is(const char *path);
/* True when a file under the mapping has changed its size: what was computed since cannot be trusted. */
bool model_damaged(const struct model *model);

/* Of the talker's queries and keys, as they are held: two models whose heads look alike have the same. */
uint64_t model_heads_fingerprint(const struct model *model);

/* Lets the vocoder work with 16 bits, before a backend is opened. */
void model_shorten_sound(struct model *model);
/* The matrices that may be packed, in the order a frame reads them; the first n_narrow take the type asked
 * for, a small predictor and the heads behind them 8 bits at least. The caller frees *list. */
utter_status model_packable(
    struct model *model, struct weight ***list, int *n, int *n_narrow, utter_error *error);
/* Packs them (DTYPE_Q8 or DTYPE_Q4), before a backend is opened. Nothing to do when the file has them so;
 * UTTER_E_ARGUMENT when it has them packed otherwise. n_threads 0: one for each core. */
utter_status model_pack(struct model *model, enum dtype type, int n_threads, utter_error *error);
/* The same, a first stage of the work that `progress` (may be NULL) tells of; a model whose packing was stopped can
 * only be closed. */
utter_status model_pack_told(
    struct model *model, enum dtype type, int n_threads, struct progress *progress, utter_error *error);
/* The same as model_pack for the predictor's matrices alone. */
utter_status model_pack_predictor(
    struct model *model, enum dtype type, int n_threads, utter_error *error);
/* Packs the model and writes all of it, and the configs and the vocabulary of its folder, into one sealed file, which
 * model_open takes in place of a folder. The model can only be closed after that. `progress` (may be NULL) is told. */
utter_status model_file_write(struct model *model, const char *folder, enum dtype type,
    const char *path, struct progress *progress, utter_error *error);
/* "bf16", "f16", "f32", "q8" or "q4"; and what the predictor's matrices alone in 8 bits are called. */
const char *weights_name(enum dtype type);
extern const char WEIGHTS_PREDICTOR[];
/* How the model holds what every frame reads. */
const char *model_weights_name(const struct model *model);
size_t matrix_bytes(const struct weight *w);
/* True when 16 bits (F16) have room for all of them; NaN does not fit. */
bool values_fit_f16(const float *values, int64_t n);

/* One row of a matrix as fp32: out[cols]. `row` must be in range. */
void weight_row(const struct weight *w, int64_t row, float *out);

#endif
