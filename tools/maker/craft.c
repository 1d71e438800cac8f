/* SPDX-License-Identifier: Apache-2.0
 * Crafted checkpoints: small changes that make a rule of the model visible which plain random weights hide.
 *
 * Many of them need a score that does not depend on the input, but the heads have no bias. They get it from a
 * channel: channel 0 of the residual stream is given a large constant (through the bias of the text projection,
 * which is part of every row), so that the normed state always has a large positive value there, and column 0 of a
 * head acts as a bias. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tools/maker/maker.h"

struct scene {
    const struct request *request;
    struct plan *model, *codec;
};

static void change(struct plan *plan, struct change what, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void change(struct plan *plan, struct change what, const char *format, ...)
{
    char name[128];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    for (size_t i = 0; i < plan->n; i++) {
        struct planned *t = &plan->at[i];
        if (strcmp(t->name, name) == 0) {
            if (t->n_changes == MAX_CHANGES) {
                fail("too many crafts change %s", name);
            }
            t->changes[t->n_changes++] = what;
            return;
        }
    }
    fail("this variant has no tensor %s to craft", name);
}

static struct change set_all(int64_t column, float value)
{
    return (struct change){CHANGE_SET, 0, 1, column, value};
}

static struct change set_row(int64_t row, int64_t column, float value)
{
    return (struct change){CHANGE_SET, row, 0, column, value};
}

static struct change scale_all(float value)
{
    return (struct change){CHANGE_SCALE, 0, 1, -1, value};
}

/* Channel 0 of the talker's residual stream: about 0.6 sqrt(width) after the final norm, whatever comes in. */
static void constant_channel(struct scene *s)
{
    float width = (float)s->request->shape.talker.width;
    change(s->model, set_row(0, 0, 4 * sqrtf(width)), "talker.text_projection.linear_fc2.bias");
}

/* The weight on channel 0 that shifts a score by about `shift`. */
static float weight_for(float shift, int width)
{
    return shift / (0.6f * sqrtf((float)width));
}

static int eos(const struct scene *s)
{
    return shape_control_id(&s->request->shape, 2150);
}

static void eos_first(struct scene *s)
{
    constant_channel(s);
    change(s->model, set_row(eos(s), 0, weight_for(60, s->request->shape.talker.width)),
        "talker.codec_head.weight");
}

static void endless(struct scene *s)
{
    constant_channel(s);
    change(s->model, set_row(eos(s), 0, weight_for(-60, s->request->shape.talker.width)),
        "talker.codec_head.weight");
}

/* The end token's score spreads wider than the others', so that it is the largest about once in twenty frames. */
static void eos_sometimes(struct scene *s)
{
    float highest =
        sqrtf(2 * logf((float)s->request->shape.codebook_size)); /* of so many normal values, about */
    change(s->model, (struct change){CHANGE_SCALE, eos(s), 0, -1, 0.45f * highest},
        "talker.codec_head.weight");
}

static void negative_scores(struct scene *s)
{
    constant_channel(s);
    change(s->model, set_all(0, weight_for(-60, s->request->shape.talker.width)),
        "talker.codec_head.weight");
}

static void ties(struct scene *s)
{
    const struct change repeat = {CHANGE_REPEAT, 1, 2, -1, 0};
    change(s->model, repeat, "talker.codec_head.weight");
    for (int j = 0; j < s->request->shape.codebooks - 1; j++) {
        change(s->model, repeat, "talker.code_predictor.lm_head.%d.weight", j);
    }
}

/* Every frame has the same codes, greedy or sampled: 5 3 3 3 ... */
static void loop(struct scene *s)
{
    const struct shape *shape = &s->request->shape;
    float constant = 4 * sqrtf((float)shape->talker.width);
    constant_channel(s);
    change(s->model, set_row(5, 0, weight_for(80, shape->talker.width)), "talker.codec_head.weight");
    change(s->model, set_all(0, constant), "talker.model.codec_embedding.weight");
    bool projected = shape->predictor.width != shape->talker.width;
    if (projected) {
        change(s->model, set_row(0, 0, 4 * sqrtf((float)shape->predictor.width)),
            "talker.code_predictor.small_to_mtp_projection.bias");
    }
    for (int j = 0; j < shape->codebooks - 1; j++) {
        if (!projected) {
            change(s->model, set_all(0, constant),
                "talker.code_predictor.model.codec_embedding.%d.weight", j);
        }
        change(s->model, set_row(3, 0, weight_for(80, shape->predictor.width)),
            "talker.code_predictor.lm_head.%d.weight", j);
    }
}

/* Heads whose query and key are the same at every position but for the rotation: they look FOLLOWS_LAG rows back. */
static void follows(struct scene *s)
{
    const struct stack *t = &s->request->shape.talker;
    const int layers[] = {0, t->layers - 1}, heads[] = {1, t->heads - 1};
    constant_channel(s);
    for (int i = 0; i < 2; i++) {
        int64_t kv = heads[i] / (t->heads / t->kv_heads);
        change(s->model,
            (struct change){CHANGE_TURN, (int64_t)heads[i] * t->head_dim, t->head_dim, 0, 0},
            "talker.model.layers.%d.self_attn.q_proj.weight", layers[i]);
        change(s->model, (struct change){CHANGE_TURN, kv * t->head_dim, t->head_dim, 0, FOLLOWS_LAG},
            "talker.model.layers.%d.self_attn.k_proj.weight", layers[i]);
        change(s->model, scale_all(12), "talker.model.layers.%d.self_attn.q_norm.weight", layers[i]);
    }
}

static void nan_scores(struct scene *s)
{
    change(s->model, set_row(7, -1, NAN), "talker.codec_head.weight");
}

static void nan_sound(struct scene *s)
{
    change(s->codec, set_row(0, -1, NAN), "decoder.decoder.6.conv.bias");
}

/* A quarter of the channels: exp(beta) = 1e-9, as large as what Snake adds to it, and alpha such that the square is
 * heard. */
static void snake(struct scene *s)
{
    const struct change alpha = {CHANGE_SET, 0, 4, -1, -11.5f}, beta = {CHANGE_SET, 0, 4, -1, -20.723f};
    change(s->codec, alpha, "decoder.decoder.5.alpha");
    change(s->codec, beta, "decoder.decoder.5.beta");
    change(s->codec, alpha, "decoder.decoder.1.block.0.alpha");
    change(s->codec, beta, "decoder.decoder.1.block.0.beta");
}

/* A third of the codes was never used: below the clamp of 1e-5, with a sum to match. */
static void rare_codes(struct scene *s)
{
    for (int g = 0; g < s->request->shape.codebooks; g++) {
        char codebook[96];
        snprintf(codebook, sizeof codebook, "decoder.quantizer.%s.vq.layers.%d._codebook",
            g ? "rvq_rest" : "rvq_first", g ? g - 1 : 0);
        change(s->codec, (struct change){CHANGE_SET, 0, 3, -1, 2e-6f}, "%s.cluster_usage", codebook);
        change(s->codec, (struct change){CHANGE_SCALE, 0, 3, -1, 1e-5f}, "%s.embedding_sum", codebook);
    }
}

/* The decoder's transformer sees values near its RMS epsilon of 1e-5, and says enough to be heard. */
static void quiet(struct scene *s)
{
    change(s->codec, scale_all(5e-4f), "decoder.pre_transformer.input_proj.weight");
    change(s->codec, scale_all(5e-4f), "decoder.pre_transformer.input_proj.bias");
    for (int i = 0; i < s->request->shape.vocoder.layers; i++) {
        change(s->codec, scale_all(5e-3f),
            "decoder.pre_transformer.layers.%d.self_attn_layer_scale.scale", i);
        change(
            s->codec, scale_all(5e-3f), "decoder.pre_transformer.layers.%d.mlp_layer_scale.scale", i);
    }
}

/* The full sizes have a calm Snake (maker.h); with this they have that of the small shapes, which multiplies rounding
 * errors: fp32 decoders then differ by 1e-4 of the signal. */
static void wide_snake(struct scene *s)
{
    for (size_t i = 0; i < s->codec->n; i++) {
        struct planned *t = &s->codec->at[i];
        size_t length = strlen(t->name);
        if (length > 5 && strcmp(t->name + length - 5, ".beta") == 0) {
            t->mean = 0;
        }
    }
}

static void loud(struct scene *s)
{
    change(s->codec, scale_all(100), "decoder.decoder.6.conv.weight");
}

static void silent(struct scene *s)
{
    change(s->codec, set_all(-1, 0), "decoder.decoder.6.conv.weight");
    change(s->codec, set_all(-1, 0), "decoder.decoder.6.conv.bias");
}

static const struct {
    const char *name, *what;
    void (*apply)(struct scene *);
} crafts[] = {
    {"eos-first", "the end token always has the best score: 2 frames, the minimum", eos_first},
    {"endless", "the end token always has the worst score", endless},
    {"eos-sometimes", "speech ends by the end token after some tens of frames", eos_sometimes},
    {"negative-scores", "all scores of the talker are negative", negative_scores},
    {"ties", "every score comes twice, at ids 2n and 2n + 1", ties},
    {"loop", "every frame has the same codes", loop},
    {"follows", "two heads, of the first layer and the last, look six rows back", follows},
    {"nan-scores", "one score of the talker is not a number", nan_scores},
    {"nan-sound", "no sample is a number", nan_sound},
    {"snake", "exp(beta) is as small as the 1e-9 that Snake adds to it", snake},
    {"rare-codes", "a third of the codes has a usage below the clamp of 1e-5", rare_codes},
    {"quiet", "the vocoder's transformer works near its RMS epsilon", quiet},
    {"wide-snake", "full sizes: Snake multiplies what fp32 rounds away", wide_snake},
    {"loud", "the sound clips", loud},
    {"silent", "the sound is zero", silent},
};

void craft_apply(
    const char *name, const struct request *request, struct plan *model, struct plan *codec)
{
    struct scene scene = {request, model, codec};
    for (size_t i = 0; i < sizeof crafts / sizeof *crafts; i++) {
        if (strcmp(crafts[i].name, name) == 0) {
            crafts[i].apply(&scene);
            return;
        }
    }
    fail("there is no craft \"%s\" (see --help)", name);
}

void craft_list(void)
{
    for (size_t i = 0; i < sizeof crafts / sizeof *crafts; i++) {
        printf("  %-16s %s\n", crafts[i].name, crafts[i].what);
    }
}
