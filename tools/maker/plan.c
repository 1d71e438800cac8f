/* SPDX-License-Identifier: Apache-2.0
 * The tensors of model.safetensors: names, shapes and how their values are drawn. Linear weights keep the size of what
 * goes through them (variance 1 / inputs); heads are three times larger, so that argmax decides something. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/maker/maker.h"

static const float bias_scale = 0.05f, norm_scale = 0.1f, head_gain = 3.0f;

struct planned *plan_add(struct plan *plan, float mean, float scale, int64_t d0, int64_t d1, int64_t d2,
    const char *name, ...)
{
    if (plan->n == plan->capacity) {
        plan->capacity = plan->capacity ? 2 * plan->capacity : 512;
        plan->at = realloc(plan->at, plan->capacity * sizeof *plan->at);
        if (!plan->at) {
            fail("out of memory");
        }
    }
    struct planned *t = &plan->at[plan->n++];
    *t = (struct planned){.dims = {d0, d1, d2}, .mean = mean, .scale = scale};
    t->n_dims = d1 == 0 ? 1 : d2 == 0 ? 2 : 3;
    va_list args;
    va_start(args, name);
    vsnprintf(t->name, sizeof t->name, name, args);
    va_end(args);
    return t;
}

int64_t planned_count(const struct planned *tensor)
{
    int64_t n = 1;
    for (int i = 0; i < tensor->n_dims; i++) {
        n *= tensor->dims[i];
    }
    return n;
}

/* out x in, without bias. */
static void linear(struct plan *plan, const char *prefix, const char *name, int64_t out, int64_t in)
{
    plan_add(plan, 0, 1 / sqrtf((float)in), out, in, 0, "%s%s.weight", prefix, name);
}

static void linear_with_bias(
    struct plan *plan, const char *prefix, const char *name, int64_t out, int64_t in)
{
    linear(plan, prefix, name, out, in);
    plan_add(plan, 0, bias_scale, out, 0, 0, "%s%s.bias", prefix, name);
}

static void norm(struct plan *plan, const char *prefix, const char *name, int64_t width)
{
    plan_add(plan, 1, norm_scale, width, 0, 0, "%s%s.weight", prefix, name);
}

static void qwen3_stack(struct plan *plan, const char *prefix, const struct stack *s)
{
    int64_t q = (int64_t)s->heads * s->head_dim, kv = (int64_t)s->kv_heads * s->head_dim;
    for (int i = 0; i < s->layers; i++) {
        char layer[96];
        snprintf(layer, sizeof layer, "%smodel.layers.%d.", prefix, i);
        norm(plan, layer, "input_layernorm", s->width);
        linear(plan, layer, "self_attn.q_proj", q, s->width);
        linear(plan, layer, "self_attn.k_proj", kv, s->width);
        linear(plan, layer, "self_attn.v_proj", kv, s->width);
        linear(plan, layer, "self_attn.o_proj", s->width, q);
        norm(plan, layer, "self_attn.q_norm", s->head_dim);
        norm(plan, layer, "self_attn.k_norm", s->head_dim);
        norm(plan, layer, "post_attention_layernorm", s->width);
        linear(plan, layer, "mlp.gate_proj", s->inner, s->width);
        linear(plan, layer, "mlp.up_proj", s->inner, s->width);
        linear(plan, layer, "mlp.down_proj", s->width, s->inner);
    }
    norm(plan, prefix, "model.norm", s->width);
}

static void conv(struct plan *plan, int64_t out, int64_t in, int64_t kernel, const char *name)
{
    plan_add(
        plan, 0, 1 / sqrtf((float)(in * kernel)), out, in, kernel, "speaker_encoder.%s.weight", name);
    plan_add(plan, 0, bias_scale, out, 0, 0, "speaker_encoder.%s.bias", name);
}

static void speaker_encoder(struct plan *plan, const struct shape *s)
{
    int64_t wide = s->speaker_channels, last = s->speaker_last, narrow = s->speaker_narrow;
    enum { MEL = 128, SCALE = 8 };
    conv(plan, wide, MEL, 5, "blocks.0.conv");
    for (int b = 1; b <= 3; b++) {
        char name[64];
        snprintf(name, sizeof name, "blocks.%d.tdnn1.conv", b);
        conv(plan, wide, wide, 1, name);
        for (int i = 0; i < SCALE - 1; i++) {
            snprintf(name, sizeof name, "blocks.%d.res2net_block.blocks.%d.conv", b, i);
            conv(plan, wide / SCALE, wide / SCALE, 3, name);
        }
        snprintf(name, sizeof name, "blocks.%d.tdnn2.conv", b);
        conv(plan, wide, wide, 1, name);
        snprintf(name, sizeof name, "blocks.%d.se_block.conv1", b);
        conv(plan, narrow, wide, 1, name);
        snprintf(name, sizeof name, "blocks.%d.se_block.conv2", b);
        conv(plan, wide, narrow, 1, name);
    }
    conv(plan, last, 3 * wide, 1, "mfa.conv");
    conv(plan, narrow, 3 * last, 1, "asp.tdnn.conv");
    conv(plan, last, narrow, 1, "asp.conv");
    conv(plan, s->talker.width, 2 * last, 1, "fc");
}

void plan_model(struct plan *plan, const struct request *request)
{
    const struct shape *s = &request->shape;
    int64_t width = s->talker.width, rows = shape_codec_rows(s);
    plan->bf16 = true;
    plan_add(
        plan, 0, 1, request_text_rows(request), s->text_width, 0, "talker.model.text_embedding.weight");
    plan_add(plan, 0, 1, rows, width, 0, "talker.model.codec_embedding.weight");
    linear_with_bias(plan, "talker.text_projection.", "linear_fc1", s->text_width, s->text_width);
    linear_with_bias(plan, "talker.text_projection.", "linear_fc2", width, s->text_width);
    qwen3_stack(plan, "talker.", &s->talker);
    plan_add(plan, 0, head_gain / sqrtf((float)width), rows, width, 0, "talker.codec_head.weight");

    const char *predictor = "talker.code_predictor.";
    for (int j = 0; j < s->codebooks - 1; j++) {
        plan_add(
            plan, 0, 1, s->codebook_size, width, 0, "%smodel.codec_embedding.%d.weight", predictor, j);
        plan_add(plan, 0, head_gain / sqrtf((float)s->predictor.width), s->codebook_size,
            s->predictor.width, 0, "%slm_head.%d.weight", predictor, j);
    }
    qwen3_stack(plan, predictor, &s->predictor);
    if (s->predictor.width != s->talker.width) {
        linear_with_bias(plan, predictor, "small_to_mtp_projection", s->predictor.width, width);
    }
    if (request->variant == VARIANT_BASE) {
        speaker_encoder(plan, s);
    }
}
