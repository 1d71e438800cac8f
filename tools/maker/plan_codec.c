/* SPDX-License-Identifier: Apache-2.0
 * The tensors of speech_tokenizer/model.safetensors: the codec's decoder (vocoder) and encoder. */
#include <math.h>
#include <stdio.h>

#include "tools/maker/maker.h"

static const float bias_scale = 0.05f, norm_scale = 0.1f, snake_scale = 0.3f;
/* The layer scales: large enough that every layer is heard. */
static const float layer_scale = 0.3f, layer_scale_spread = 0.05f;
/* What the last convolution is scaled by, so that the sound does not clip. */
static const float last_gain = 0.03f;
/* The three residual units of a block make their input about three times larger. */
static const float block_gain = 0.35f;

/* [out][in][k]; every output sums in * k products. */
static void conv(
    struct plan *plan, int64_t out, int64_t in, int64_t kernel, bool bias, const char *name)
{
    plan_add(plan, 0, 1 / sqrtf((float)(in * kernel)), out, in, kernel, "%s.weight", name);
    if (bias) {
        plan_add(plan, 0, bias_scale, out, 0, 0, "%s.bias", name);
    }
}

/* [in][out][k] with stride `rate`; every output sums in * k / rate products. */
static void transposed(
    struct plan *plan, int64_t in, int64_t out, int64_t kernel, int64_t rate, const char *name)
{
    plan_add(plan, 0, 1 / sqrtf((float)(in * kernel / rate)), in, out, kernel, "%s.weight", name);
    plan_add(plan, 0, bias_scale, out, 0, 0, "%s.bias", name);
}

static void linear(
    struct plan *plan, int64_t out, int64_t in, bool bias, const char *prefix, const char *name)
{
    plan_add(plan, 0, 1 / sqrtf((float)in), out, in, 0, "%s%s.weight", prefix, name);
    if (bias) {
        plan_add(plan, 0, bias_scale, out, 0, 0, "%s%s.bias", prefix, name);
    }
}

static void norm(struct plan *plan, int64_t width, bool bias, const char *prefix, const char *name)
{
    plan_add(plan, 1, norm_scale, width, 0, 0, "%s%s.weight", prefix, name);
    if (bias) {
        plan_add(plan, 0, bias_scale, width, 0, 0, "%s%s.bias", prefix, name);
    }
}

static void scale(struct plan *plan, int64_t width, const char *prefix, const char *name)
{
    plan_add(plan, layer_scale, layer_scale_spread, width, 0, 0, "%s%s", prefix, name);
}

static void snake(
    struct plan *plan, const struct shape *s, int64_t channels, const char *prefix, const char *name)
{
    plan_add(plan, 0, snake_scale, channels, 0, 0, "%s%s.alpha", prefix, name);
    plan_add(plan, s->snake_beta, snake_scale, channels, 0, 0, "%s%s.beta", prefix, name);
}

static void usage(struct plan *plan, int64_t n, const char *name)
{
    plan_add(plan, 0.5f, 3, n, 0, 0, "%s", name)->fill = FILL_UNIFORM;
}

static void decoder_codebooks(struct plan *plan, const struct shape *s)
{
    int64_t row = s->code_width / 2;
    for (int g = 0; g < s->codebooks; g++) {
        char codebook[96], name[128];
        snprintf(codebook, sizeof codebook, "decoder.quantizer.%s.vq.layers.%d._codebook",
            g ? "rvq_rest" : "rvq_first", g ? g - 1 : 0);
        plan_add(plan, 0, 1, s->codebook_size, row, 0, "%s.embedding_sum", codebook);
        snprintf(name, sizeof name, "%s.cluster_usage", codebook);
        usage(plan, s->codebook_size, name);
    }
    conv(plan, s->code_width, row, 1, false, "decoder.quantizer.rvq_first.output_proj");
    conv(plan, s->code_width, row, 1, false, "decoder.quantizer.rvq_rest.output_proj");
    conv(plan, row, s->code_width, 1, false, "decoder.quantizer.rvq_first.input_proj");
    conv(plan, row, s->code_width, 1, false, "decoder.quantizer.rvq_rest.input_proj");
}

static void decoder_transformer(struct plan *plan, const struct shape *s)
{
    const char *all = "decoder.pre_transformer.";
    const struct stack *v = &s->vocoder;
    int64_t heads = (int64_t)v->heads * v->head_dim;
    linear(plan, v->width, s->latent, true, all, "input_proj");
    for (int i = 0; i < v->layers; i++) {
        char layer[64];
        snprintf(layer, sizeof layer, "%slayers.%d.", all, i);
        norm(plan, v->width, false, layer, "input_layernorm");
        norm(plan, v->width, false, layer, "post_attention_layernorm");
        linear(plan, heads, v->width, false, layer, "self_attn.q_proj");
        linear(plan, heads, v->width, false, layer, "self_attn.k_proj");
        linear(plan, heads, v->width, false, layer, "self_attn.v_proj");
        linear(plan, v->width, heads, false, layer, "self_attn.o_proj");
        scale(plan, v->width, layer, "self_attn_layer_scale.scale");
        scale(plan, v->width, layer, "mlp_layer_scale.scale");
        linear(plan, v->inner, v->width, false, layer, "mlp.gate_proj");
        linear(plan, v->inner, v->width, false, layer, "mlp.up_proj");
        linear(plan, v->width, v->inner, false, layer, "mlp.down_proj");
    }
    norm(plan, v->width, false, all, "norm");
    linear(plan, s->latent, v->width, true, all, "output_proj");
}

static void decoder_upsample(struct plan *plan, const struct shape *s)
{
    int64_t width = s->latent;
    for (int i = 0; i < 2; i++) {
        char name[64], block[64];
        snprintf(name, sizeof name, "decoder.upsample.%d.0.conv", i);
        transposed(plan, width, width, 2, 2, name);
        snprintf(name, sizeof name, "decoder.upsample.%d.1.dwconv.conv", i);
        conv(plan, width, 1, 7, true, name);
        snprintf(block, sizeof block, "decoder.upsample.%d.1.", i);
        norm(plan, width, true, block, "norm");
        linear(plan, 4 * width, width, true, block, "pwconv1");
        linear(plan, width, 4 * width, true, block, "pwconv2");
        scale(plan, width, block, "gamma");
    }
}

static void decoder_convolutions(struct plan *plan, const struct shape *s)
{
    static const int rates[4] = {8, 5, 4, 3};
    conv(plan, s->conv_width, s->latent, 7, true, "decoder.decoder.0.conv");
    int64_t in = s->conv_width;
    for (int b = 1; b <= 4; b++) {
        int64_t out = in / 2;
        char name[96], block[48];
        snprintf(block, sizeof block, "decoder.decoder.%d.block.", b);
        snake(plan, s, in, block, "0");
        snprintf(name, sizeof name, "%s1.conv", block);
        transposed(plan, in, out, 2 * rates[b - 1], rates[b - 1], name);
        plan->at[plan->n - 2].scale *= block_gain;
        for (int j = 2; j <= 4; j++) {
            snprintf(name, sizeof name, "%s%d.", block, j);
            snake(plan, s, out, name, "act1");
            snake(plan, s, out, name, "act2");
            snprintf(name, sizeof name, "%s%d.conv1.conv", block, j);
            conv(plan, out, out, 7, true, name);
            snprintf(name, sizeof name, "%s%d.conv2.conv", block, j);
            conv(plan, out, out, 1, true, name);
        }
        in = out;
    }
    snake(plan, s, in, "decoder.decoder.", "5");
    conv(plan, 1, in, 7, true, "decoder.decoder.6.conv");
    plan->at[plan->n - 2].scale *= last_gain;
    plan->at[plan->n - 1].scale *= last_gain;
}

static void encoder_convolutions(struct plan *plan, const struct shape *s)
{
    static const int rates[4] = {4, 5, 6, 8};
    int64_t width = s->filters;
    conv(plan, width, 1, 7, true, "encoder.encoder.layers.0.conv");
    for (int i = 0; i < 4; i++) {
        char name[64];
        snprintf(name, sizeof name, "encoder.encoder.layers.%d.block.1.conv", 1 + 3 * i);
        conv(plan, width / 2, width, 3, true, name);
        snprintf(name, sizeof name, "encoder.encoder.layers.%d.block.3.conv", 1 + 3 * i);
        conv(plan, width, width / 2, 1, true, name);
        snprintf(name, sizeof name, "encoder.encoder.layers.%d.conv", 3 + 3 * i);
        conv(plan, 2 * width, width, 2 * rates[i], true, name);
        width *= 2;
    }
    conv(plan, s->encoder.width, width, 3, true, "encoder.encoder.layers.14.conv");
    conv(plan, s->encoder.width, s->encoder.width, 4, false, "encoder.downsample.conv");
}

static void encoder_transformer(struct plan *plan, const struct stack *e)
{
    int64_t heads = (int64_t)e->heads * e->head_dim;
    for (int i = 0; i < e->layers; i++) {
        char layer[64];
        snprintf(layer, sizeof layer, "encoder.encoder_transformer.layers.%d.", i);
        norm(plan, e->width, true, layer, "input_layernorm");
        norm(plan, e->width, true, layer, "post_attention_layernorm");
        linear(plan, heads, e->width, false, layer, "self_attn.q_proj");
        linear(plan, heads, e->width, false, layer, "self_attn.k_proj");
        linear(plan, heads, e->width, false, layer, "self_attn.v_proj");
        linear(plan, e->width, heads, false, layer, "self_attn.o_proj");
        linear(plan, e->inner, e->width, false, layer, "mlp.fc1");
        linear(plan, e->width, e->inner, false, layer, "mlp.fc2");
        scale(plan, e->width, layer, "self_attn_layer_scale.scale");
        scale(plan, e->width, layer, "mlp_layer_scale.scale");
    }
}

static void encoder_codebooks(struct plan *plan, const struct shape *s)
{
    int64_t row = s->encoder_code_width;
    for (int g = 0; g < s->quantizers; g++) {
        char codebook[128], name[160];
        snprintf(codebook, sizeof codebook,
            "encoder.quantizer.%s_residual_vector_quantizer.layers.%d.codebook",
            g ? "acoustic" : "semantic", g ? g - 1 : 0);
        plan_add(plan, 0, 1, s->codebook_size, row, 0, "%s.embed_sum", codebook);
        snprintf(name, sizeof name, "%s.cluster_usage", codebook);
        usage(plan, s->codebook_size, name);
        plan_add(plan, 1, 0, 1, 0, 0, "%s.initialized", codebook);
    }
    for (int g = 0; g < 2; g++) {
        char name[128];
        const char *kind = g ? "acoustic" : "semantic";
        snprintf(name, sizeof name, "encoder.quantizer.%s_residual_vector_quantizer.input_proj", kind);
        conv(plan, row, s->encoder.width, 1, false, name);
        snprintf(name, sizeof name, "encoder.quantizer.%s_residual_vector_quantizer.output_proj", kind);
        conv(plan, s->encoder.width, row, 1, false, name);
    }
}

void plan_codec(struct plan *plan, const struct request *request)
{
    const struct shape *s = &request->shape;
    plan->bf16 = false;
    decoder_codebooks(plan, s);
    conv(plan, s->latent, s->code_width, 3, true, "decoder.pre_conv.conv");
    decoder_transformer(plan, s);
    decoder_upsample(plan, s);
    decoder_convolutions(plan, s);
    encoder_convolutions(plan, s);
    encoder_transformer(plan, &s->encoder);
    encoder_codebooks(plan, s);
}
