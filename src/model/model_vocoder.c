/* SPDX-License-Identifier: Apache-2.0
 * The tensors of the codec's decoder by name and shape. */
#include <string.h>

#include "model/model_parts.h"

#define DECODER "decoder."
#define STACK "decoder.pre_transformer."
#define UP "decoder.upsample.{}."
#define BLOCK "decoder.decoder.{}."

enum {
    PRE_TAPS = 3,
    FIRST_TAPS = 7,
    DEPTHWISE_TAPS = 7,
    UNIT_TAPS = 7,
    LAST_TAPS = 7,
    CONVNEXT_WIDEN = 4
};

/* As model_exact; but a file of utter quantize has it in 16 bits, as backends read it beside packed weights. */
static struct weight model_narrow(
    struct model_bind *mb, const char *name, int i, int j, int64_t rows, int64_t cols)
{
    struct weight w = {0};
    if (mb->model->packed_file) {
        w = model_matrix(mb, name, i, j, rows, cols);
    }
    return w.type == DTYPE_F16 ? w : model_exact(mb, name, i, j, rows, cols, 0);
}

static void bind_tables(struct model_bind *mb, const struct codec_config *d)
{
    struct vocoder_weights *v = &mb->model->vocoder;
    int64_t half = d->codebook_dim / 2;
    for (int g = 0; g < d->n_codebooks; g++) {
        bool first = g < d->n_semantic;
        int layer = first ? g : g - d->n_semantic;
        v->table_sum[g] = model_exact(mb,
            first ? DECODER "quantizer.rvq_first.vq.layers.{}._codebook.embedding_sum"
                  : DECODER "quantizer.rvq_rest.vq.layers.{}._codebook.embedding_sum",
            layer, -1, d->codebook_size, half, 0);
        v->table_usage[g] = model_vector(mb,
            first ? DECODER "quantizer.rvq_first.vq.layers.{}._codebook.cluster_usage"
                  : DECODER "quantizer.rvq_rest.vq.layers.{}._codebook.cluster_usage",
            layer, -1, d->codebook_size);
    }
    v->first_projection = model_exact(
        mb, DECODER "quantizer.rvq_first.output_proj.weight", -1, -1, d->codebook_dim, half, 1);
    v->rest_projection = model_exact(
        mb, DECODER "quantizer.rvq_rest.output_proj.weight", -1, -1, d->codebook_dim, half, 1);
}

static void bind_stack(struct model_bind *mb, const struct codec_config *d)
{
    struct vocoder_weights *v = &mb->model->vocoder;
    const struct stack_config *s = &d->stack;
    int64_t q = (int64_t)s->n_heads * s->head, kv = (int64_t)s->n_kv_heads * s->head;
    v->stack_in.w = model_narrow(mb, STACK "input_proj.weight", -1, -1, s->width, d->latent);
    v->stack_in.bias = model_vector(mb, STACK "input_proj.bias", -1, -1, s->width);
    v->stack_out.w = model_narrow(mb, STACK "output_proj.weight", -1, -1, d->latent, s->width);
    v->stack_out.bias = model_vector(mb, STACK "output_proj.bias", -1, -1, d->latent);
    v->stack.norm = model_vector(mb, STACK "norm.weight", -1, -1, s->width);
    v->stack.layers = model_new(mb, s->n_layers, sizeof *v->stack.layers);
    for (int i = 0; v->stack.layers && i < s->n_layers; i++) {
        struct layer_weights *l = &v->stack.layers[i];
        l->input_norm = model_vector(mb, STACK "layers.{}.input_layernorm.weight", i, -1, s->width);
        l->q = model_narrow(mb, STACK "layers.{}.self_attn.q_proj.weight", i, -1, q, s->width);
        l->k = model_narrow(mb, STACK "layers.{}.self_attn.k_proj.weight", i, -1, kv, s->width);
        l->v = model_narrow(mb, STACK "layers.{}.self_attn.v_proj.weight", i, -1, kv, s->width);
        l->o = model_narrow(mb, STACK "layers.{}.self_attn.o_proj.weight", i, -1, s->width, q);
        l->attention_scale =
            model_vector(mb, STACK "layers.{}.self_attn_layer_scale.scale", i, -1, s->width);
        l->post_norm =
            model_vector(mb, STACK "layers.{}.post_attention_layernorm.weight", i, -1, s->width);
        l->gate = model_narrow(mb, STACK "layers.{}.mlp.gate_proj.weight", i, -1, s->inner, s->width);
        l->up = model_narrow(mb, STACK "layers.{}.mlp.up_proj.weight", i, -1, s->inner, s->width);
        l->down = model_narrow(mb, STACK "layers.{}.mlp.down_proj.weight", i, -1, s->width, s->inner);
        l->mlp_scale = model_vector(mb, STACK "layers.{}.mlp_layer_scale.scale", i, -1, s->width);
    }
    bind_no_more(&mb->bind, STACK "layers.{}.input_layernorm.weight", s->n_layers);
}

static void bind_upsample(struct model_bind *mb, const struct codec_config *d)
{
    int64_t c = d->latent, wide = CONVNEXT_WIDEN * c;
    for (int i = 0; i < d->n_ratios; i++) {
        struct convnext_weights *u = &mb->model->vocoder.upsample[i];
        u->up.w = model_exact(mb, UP "0.conv.weight", i, -1, c, c, d->ratios[i]);
        u->up.bias = model_vector(mb, UP "0.conv.bias", i, -1, c);
        u->depthwise.w = model_exact(mb, UP "1.dwconv.conv.weight", i, -1, c, 1, DEPTHWISE_TAPS);
        u->depthwise.bias = model_vector(mb, UP "1.dwconv.conv.bias", i, -1, c);
        u->norm = model_vector(mb, UP "1.norm.weight", i, -1, c);
        u->norm_bias = model_vector(mb, UP "1.norm.bias", i, -1, c);
        u->widen.w = model_narrow(mb, UP "1.pwconv1.weight", i, -1, wide, c);
        u->widen.bias = model_vector(mb, UP "1.pwconv1.bias", i, -1, wide);
        u->narrow.w = model_narrow(mb, UP "1.pwconv2.weight", i, -1, c, wide);
        u->narrow.bias = model_vector(mb, UP "1.pwconv2.bias", i, -1, c);
        u->gamma = model_vector(mb, UP "1.gamma", i, -1, c);
    }
}

/* Residual unit `k` of block `b` is part 2 + k of the official module list. */
static void bind_unit(struct model_bind *mb, struct unit_weights *u, int b, int k, int64_t channels)
{
    int part = 2 + k;
    u->snake1.alpha = model_vector(mb, BLOCK "block.{}.act1.alpha", b, part, channels);
    u->snake1.beta = model_vector(mb, BLOCK "block.{}.act1.beta", b, part, channels);
    u->conv1.w =
        model_exact(mb, BLOCK "block.{}.conv1.conv.weight", b, part, channels, channels, UNIT_TAPS);
    u->conv1.bias = model_vector(mb, BLOCK "block.{}.conv1.conv.bias", b, part, channels);
    u->snake2.alpha = model_vector(mb, BLOCK "block.{}.act2.alpha", b, part, channels);
    u->snake2.beta = model_vector(mb, BLOCK "block.{}.act2.beta", b, part, channels);
    u->conv2.w = model_exact(mb, BLOCK "block.{}.conv2.conv.weight", b, part, channels, channels, 1);
    u->conv2.bias = model_vector(mb, BLOCK "block.{}.conv2.conv.bias", b, part, channels);
}

static void bind_blocks(struct model_bind *mb, const struct codec_config *d)
{
    struct vocoder_weights *v = &mb->model->vocoder;
    int64_t channels = d->decoder_width;
    for (int i = 0; i < d->n_rates; i++) {
        struct block_weights *block = &v->blocks[i];
        int b = i + 1;
        block->snake.alpha = model_vector(mb, BLOCK "block.0.alpha", b, -1, channels);
        block->snake.beta = model_vector(mb, BLOCK "block.0.beta", b, -1, channels);
        block->up.w = model_exact(
            mb, BLOCK "block.1.conv.weight", b, -1, channels, channels / 2, 2 * d->rates[i]);
        block->up.bias = model_vector(mb, BLOCK "block.1.conv.bias", b, -1, channels / 2);
        channels /= 2;
        for (int k = 0; k < 3; k++) {
            bind_unit(mb, &block->units[k], b, k, channels);
        }
    }
    v->last_snake.alpha = model_vector(mb, BLOCK "alpha", d->n_rates + 1, -1, channels);
    v->last_snake.beta = model_vector(mb, BLOCK "beta", d->n_rates + 1, -1, channels);
    v->last.w = model_exact(mb, BLOCK "conv.weight", d->n_rates + 2, -1, 1, channels, LAST_TAPS);
    v->last.bias = model_vector(mb, BLOCK "conv.bias", d->n_rates + 2, -1, 1);
}

void model_bind_vocoder(struct model_bind *mb)
{
    const struct codec_config *d = &mb->model->config->codec;
    struct vocoder_weights *v = &mb->model->vocoder;
    bind_tables(mb, d);
    v->pre_conv.w =
        model_exact(mb, DECODER "pre_conv.conv.weight", -1, -1, d->latent, d->codebook_dim, PRE_TAPS);
    v->pre_conv.bias = model_vector(mb, DECODER "pre_conv.conv.bias", -1, -1, d->latent);
    bind_stack(mb, d);
    bind_upsample(mb, d);
    v->first.w = model_exact(mb, BLOCK "conv.weight", 0, -1, d->decoder_width, d->latent, FIRST_TAPS);
    v->first.bias = model_vector(mb, BLOCK "conv.bias", 0, -1, d->decoder_width);
    bind_blocks(mb, d);
}

int model_vocoder_matrices(struct model *m, struct weight **list)
{
    struct vocoder_weights *v = &m->vocoder;
    int n = 0;
    list[n++] = &v->stack_in.w;
    for (int i = 0; i < m->config->codec.stack.n_layers; i++) {
        struct layer_weights *l = &v->stack.layers[i];
        struct weight *const all[] = {&l->q, &l->k, &l->v, &l->o, &l->gate, &l->up, &l->down};
        memcpy(list + n, all, sizeof all);
        n += (int)(sizeof all / sizeof *all);
    }
    list[n++] = &v->stack_out.w;
    for (int i = 0; i < m->config->codec.n_ratios; i++) {
        list[n++] = &v->upsample[i].widen.w;
        list[n++] = &v->upsample[i].narrow.w;
    }
    return n;
}
