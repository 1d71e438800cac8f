/* SPDX-License-Identifier: Apache-2.0
 * The model maker: random checkpoints in the official format, a pure function of shape, variant, seed and
 * options. What its parts share. A tool, not the library: a failure prints one line and exits. */
#ifndef MAKER_H
#define MAKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Shapes (shape.c) ---- */

enum variant { VARIANT_BASE, VARIANT_CUSTOM_VOICE, VARIANT_VOICE_DESIGN, N_VARIANTS };
const char *variant_name(enum variant variant);

struct stack { /* a decoder-only transformer */
    int width, inner, layers, heads, kv_heads, head_dim;
};

struct shape {
    const char *name;
    const char *size; /* tts_model_size */
    struct stack talker, predictor;
    int text_width,
        text_rows; /* embedding of text; text_rows is a minimum, the vocabulary may need more */
    int codebooks, codebook_size;
    struct stack vocoder;               /* the codec decoder's transformer */
    int latent, code_width, conv_width; /* latent_dim, codebook_dim, decoder_dim */
    int window;
    struct stack encoder;                        /* the codec encoder's transformer */
    int filters, encoder_code_width, quantizers; /* num_filters, codebook_dim, num_quantizers */
    /* Mean logarithm of Snake's beta. Snake multiplies rounding errors by up to 1 + alpha / beta; 25 of them on wide
     * random layers make 1e-4 of fp32 rounding, which trained weights do not. 1 leaves some 1e-6. */
    float snake_beta;
    int speaker_channels, speaker_last, speaker_narrow; /* enc_channels[0..3], [4], attention and SE */
};

/* NULL when there is none of that name. */
const struct shape *shape_find(const char *name);
const char *shape_names(void); /* for messages */

/* Options that change one number of a shape, "--layers" and so on. */
int *shape_field(struct shape *shape, const char *option);
void shape_list_fields(void);
void shape_check(const struct shape *shape); /* exits when the numbers do not fit together */

/* Control ids keep their distance to the codebook: 2150 of the released models is codebook_size + 102. */
int shape_control_id(const struct shape *shape, int released_id);
int shape_codec_rows(const struct shape *shape); /* codebook + 1024 control ids */

/* ---- What to make (make_model.c fills it) ---- */

struct vocabulary { /* vocabulary.c */
    const char *folder;
    int im_start, im_end, assistant, tts_pad, tts_bos, tts_eos;
    int n_tokens; /* 1 + largest id */
};
void vocabulary_read(struct vocabulary *vocabulary);
void vocabulary_copy(const struct vocabulary *vocabulary, const char *folder);

enum { MAX_CRAFTS = 8, FOLLOWS_LAG = 6 };

/* Of the talker and the predictor. */
#define MAKER_ROPE_THETA 1000000

struct request {
    struct shape shape;
    enum variant variant;
    const char *folder;
    uint64_t seed;
    int shards, threads;
    bool fine_tuned; /* one speaker, no speaker encoder, as the official fine-tuning leaves it */
    bool hollow;     /* no values: zeros, which take no room */
    const char *crafts[MAX_CRAFTS];
    int n_crafts;
    struct vocabulary vocabulary;
};
int request_text_rows(const struct request *request);

/* ---- Tensors (plan.c, plan_codec.c, craft.c) ---- */

enum fill { FILL_NORMAL, FILL_UNIFORM }; /* mean + scale * N(0,1); mean + scale * [0,1) */

/* A change to part of a tensor, seen as a matrix of dims[0] rows: elements in rows `row`, `row` + `row_step`, ... and
 * column `column` (-1: all). */
enum change_kind {
    CHANGE_SET,
    CHANGE_SCALE,
    CHANGE_REPEAT, /* the row before it */
    /* The rows of a head, `row_step` from `row` on: `column` alone says something, and turns by so much as `value`
     * positions turn it. */
    CHANGE_TURN
};
struct change {
    enum change_kind kind;
    int64_t row, row_step; /* row_step 0: that row only */
    int64_t column;
    float value;
};

enum { MAX_CHANGES = 4 };

struct planned {
    char name[128];
    int n_dims;
    int64_t dims[3];
    enum fill fill;
    float mean, scale;
    struct change changes[MAX_CHANGES];
    int n_changes;
    uint64_t offset; /* in the data part of its file; the writer's */
    int shard;
};

struct plan {
    struct planned *at;
    size_t n, capacity;
    bool bf16; /* else F32 */
};

/* Adds a tensor and returns it (valid until the next one); dims end at the first 0. `name` is a format. */
struct planned *plan_add(struct plan *plan, float mean, float scale, int64_t d0, int64_t d1, int64_t d2,
    const char *name, ...) __attribute__((format(printf, 7, 8)));
int64_t planned_count(const struct planned *tensor);
void plan_model(struct plan *plan, const struct request *request); /* model.safetensors */
void plan_codec(
    struct plan *plan, const struct request *request); /* speech_tokenizer/model.safetensors */

/* Applies one named craft to both plans; exits when there is none of that name. */
void craft_apply(
    const char *name, const struct request *request, struct plan *model, struct plan *codec);
void craft_list(void);

/* ---- Values and files (values.c, writer.c, configs.c) ---- */

/* Elements begin .. begin + n - 1 of a tensor, as float; a pure function of the arguments. */
void values_make(const struct planned *tensor, uint64_t seed, int64_t begin, int64_t n, float *out);

/* Writes plan as folder/model.safetensors, or as shards with an index; without threads no values. Sorts the plan. */
void writer_write(struct plan *plan, const char *folder, uint64_t seed, int shards, int threads);

void configs_write(const struct request *request);

/* ---- Failures and paths (make_model.c) ---- */

_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void *take(size_t n, size_t size); /* calloc that does not fail */
const char *path_in(char *out, size_t size, const char *folder, const char *name);
void make_folder(const char *path);

#endif
