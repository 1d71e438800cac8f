/* SPDX-License-Identifier: Apache-2.0
 * The model's config files -> one typed, range-checked struct. Geometry and ids come from here and from
 * nowhere else. Comes in: a checkpoint folder. Goes out: struct config, immutable. */
#ifndef WEIGHTS_CONFIG_H
#define WEIGHTS_CONFIG_H

#include "base/error.h"

enum { CONFIG_MAX_CODEBOOKS = 64, CONFIG_MAX_RATES = 8 };

/* One transformer stack. */
struct stack_config {
    int width; /* hidden size */
    int inner; /* MLP width */
    int n_layers;
    int n_heads, n_kv_heads;
    int head;   /* width of one head; heads * head is not width in general */
    int window; /* keys that a query sees, itself included; 0: all */
    float norm_eps;
    double rope_theta;
};

/* A name and its id; `dialect` is the language that a preset voice speaks in place of Chinese, or NULL. */
struct named_id {
    char *name;
    int id;
    char *dialect;
};

enum { CONFIG_SPEAKER_BLOCKS = 16, CONFIG_SPEAKER_GROUPS = 64, CONFIG_SPEAKER_RATE = 24000 };

/* The codec's encoder: recordings -> codes. Causal convolutions with zeros before the first sample. */
struct encoder_config {
    struct stack_config stack; /* LayerNorm, GELU; all keys are seen: its window is 0 (docs/model.md) */
    int filters;               /* channels after the first convolution; doubled by each stage */
    int first_taps, residual_taps, last_taps;
    int compress; /* a residual unit is filters / compress wide inside */
    int n_rates,
        rates[CONFIG_MAX_RATES]; /* in the order they are applied: 4, 5, 6, 8, behind which comes 2 */
    int codebook_dim;            /* width of a table row */
};

/* The speaker encoder (ECAPA-TDNN): log-mel features -> one vector. */
struct speaker_config {
    int n_mels;
    int n_blocks; /* the first convolution and the Res2Net blocks */
    int channels[CONFIG_SPEAKER_BLOCKS], taps[CONFIG_SPEAKER_BLOCKS], dilations[CONFIG_SPEAKER_BLOCKS];
    int last_channels; /* after the blocks are put together: the sum of all but the first */
    int groups;        /* of a Res2Net block */
    int attention_channels, squeeze_channels;
};

/* The codec's decoder (the vocoder) and its encoder. */
struct codec_config {
    int n_codebooks, n_semantic; /* quantizers in all, and of the first kind */
    int codebook_size;
    int codebook_dim; /* width of the quantizer's sum; a table row is half of it */
    int latent;
    int decoder_width; /* channels after the first convolution of the stack; halved by each block */
    struct stack_config stack;
    int n_rates, rates[CONFIG_MAX_RATES];   /* upsampling of the convolution stack: 8, 5, 4, 3 */
    int n_ratios, ratios[CONFIG_MAX_RATES]; /* upsampling before it: 2, 2 */
    int frame_samples;                      /* product of all of them: 1920 */
    int sample_rate;                        /* 24000 */
    bool has_encoder;
    struct encoder_config encoder;
};

struct config {
    char *kind_name;            /* tts_model_type: "base", "custom_voice", "voice_design" */
    char *size_name;            /* tts_model_size: "0b6", "1b7" */
    char *transformers_version; /* NULL when missing; chooses the pre-tokeniser (docs/model.md) */
    utter_model_kind kind;

    struct stack_config talker, predictor;
    int max_positions;
    int text_vocabulary, text_width;
    int codec_vocabulary;     /* rows of the talker's code table and head: 3072 */
    int predictor_vocabulary; /* codes of one codebook: 2048 */
    int n_codebooks;

    int im_start, im_end, assistant; /* text ids */
    int tts_pad, tts_bos, tts_eos;
    int codec_pad, codec_bos, codec_eos; /* code ids */
    int think, nothink, think_bos, think_eos;

    struct named_id *languages; /* dialects included */
    int n_languages;
    struct named_id *voices;
    int n_voices;

    utter_sampling talker_sampling, predictor_sampling;
    int max_new_tokens;

    bool has_speaker_encoder;
    int speaker_width;             /* of the x-vector: the talker's */
    struct speaker_config speaker; /* when has_speaker_encoder */

    struct codec_config codec;
};

/* Reads config.json, generation_config.json and speech_tokenizer/config.json of a folder. */
utter_status config_open(struct config **config, const char *folder, utter_error *error);
void config_close(struct config **config);

/* The index of a language or voice by name, any case; -1 when unknown. */
int config_find(const struct named_id *list, int n, const char *name);
/* The first of the talker's ids that are never chosen, but for the end token. */
int config_suppress_from(const struct config *config);
/* Rotary frequency i < head / 2, rounded to fp32 where the official code rounds. */
float config_rotary(const struct stack_config *stack, int i);
/* True for a language that only preset voices select by themselves ("sichuan_dialect"). */
bool config_is_dialect(const char *language);

#endif
