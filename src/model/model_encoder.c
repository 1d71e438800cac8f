/* SPDX-License-Identifier: Apache-2.0
 * The tensors of the codec's encoder by name and shape. A codec without them still speaks. */
#include "model/model_parts.h"

#define ENCODER "encoder."
#define LAYERS ENCODER "encoder.layers.{}."
#define STACK ENCODER "encoder_transformer.layers.{}."
#define SEMANTIC ENCODER "quantizer.semantic_residual_vector_quantizer."
#define ACOUSTIC ENCODER "quantizer.acoustic_residual_vector_quantizer."

enum { DOWN_TAPS = 4 };

/* The official module list: a convolution, then for each stage the unit, an ELU and a convolution. */
static void bind_convolutions(
    struct model_bind *mb, struct encoder_weights *w, const struct encoder_config *e)
{
    int64_t channels = e->filters;
    w->first.w = model_exact(mb, LAYERS "conv.weight", 0, -1, channels, 1, e->first_taps);
    w->first.bias = model_vector(mb, LAYERS "conv.bias", 0, -1, channels);
    for (int i = 0; i < e->n_rates; i++) {
        struct encoder_stage *s = &w->stages[i];
        int unit = 1 + 3 * i, down = unit + 2;
        int64_t inner = channels / e->compress;
        s->narrow.w =
            model_exact(mb, LAYERS "block.1.conv.weight", unit, -1, inner, channels, e->residual_taps);
        s->narrow.bias = model_vector(mb, LAYERS "block.1.conv.bias", unit, -1, inner);
        s->widen.w = model_exact(mb, LAYERS "block.3.conv.weight", unit, -1, channels, inner, 1);
        s->widen.bias = model_vector(mb, LAYERS "block.3.conv.bias", unit, -1, channels);
        s->down.w = model_exact(
            mb, LAYERS "conv.weight", down, -1, 2 * channels, channels, 2 * (int64_t)e->rates[i]);
        s->down.bias = model_vector(mb, LAYERS "conv.bias", down, -1, 2 * channels);
        channels *= 2;
    }
    int last = 2 + 3 * e->n_rates, width = e->stack.width;
    w->last.w = model_exact(mb, LAYERS "conv.weight", last, -1, width, channels, e->last_taps);
    w->last.bias = model_vector(mb, LAYERS "conv.bias", last, -1, width);
    w->down = model_exact(mb, ENCODER "downsample.conv.weight", -1, -1, width, width, DOWN_TAPS);
}

static void bind_layers(struct model_bind *mb, struct encoder_weights *w, const struct stack_config *s)
{
    int64_t q = (int64_t)s->n_heads * s->head, kv = (int64_t)s->n_kv_heads * s->head;
    w->layers = model_new(mb, s->n_layers, sizeof *w->layers);
    for (int i = 0; w->layers && i < s->n_layers; i++) {
        struct encoder_layer *l = &w->layers[i];
        l->input_norm = model_vector(mb, STACK "input_layernorm.weight", i, -1, s->width);
        l->input_norm_bias = model_vector(mb, STACK "input_layernorm.bias", i, -1, s->width);
        l->post_norm = model_vector(mb, STACK "post_attention_layernorm.weight", i, -1, s->width);
        l->post_norm_bias = model_vector(mb, STACK "post_attention_layernorm.bias", i, -1, s->width);
        l->q = model_matrix(mb, STACK "self_attn.q_proj.weight", i, -1, q, s->width);
        l->k = model_matrix(mb, STACK "self_attn.k_proj.weight", i, -1, kv, s->width);
        l->v = model_matrix(mb, STACK "self_attn.v_proj.weight", i, -1, kv, s->width);
        l->o = model_matrix(mb, STACK "self_attn.o_proj.weight", i, -1, s->width, q);
        l->fc1 = model_matrix(mb, STACK "mlp.fc1.weight", i, -1, s->inner, s->width);
        l->fc2 = model_matrix(mb, STACK "mlp.fc2.weight", i, -1, s->width, s->inner);
        l->attention_scale = model_vector(mb, STACK "self_attn_layer_scale.scale", i, -1, s->width);
        l->mlp_scale = model_vector(mb, STACK "mlp_layer_scale.scale", i, -1, s->width);
    }
}

static void bind_tables(struct model_bind *mb, struct encoder_weights *w, const struct codec_config *c)
{
    int64_t dim = c->encoder.codebook_dim, width = c->encoder.stack.width;
    w->first_projection = model_exact(mb, SEMANTIC "input_proj.weight", -1, -1, dim, width, 1);
    w->rest_projection = model_exact(mb, ACOUSTIC "input_proj.weight", -1, -1, dim, width, 1);
    for (int g = 0; g < c->n_codebooks; g++) {
        int layer = g < c->n_semantic ? g : g - c->n_semantic;
        w->table_sum[g] = model_exact(mb,
            g < c->n_semantic ? SEMANTIC "layers.{}.codebook.embed_sum"
                              : ACOUSTIC "layers.{}.codebook.embed_sum",
            layer, -1, c->codebook_size, dim, 0);
        w->table_usage[g] = model_vector(mb,
            g < c->n_semantic ? SEMANTIC "layers.{}.codebook.cluster_usage"
                              : ACOUSTIC "layers.{}.codebook.cluster_usage",
            layer, -1, c->codebook_size);
    }
}

void model_bind_encoder(struct model_bind *mb)
{
    const struct codec_config *c = &mb->model->config->codec;
    if (!c->has_encoder || !model_bind_has(mb, ENCODER)) {
        return;
    }
    mb->model->has_encoder = true;
    bind_convolutions(mb, &mb->model->encoder, &c->encoder);
    bind_layers(mb, &mb->model->encoder, &c->encoder.stack);
    bind_tables(mb, &mb->model->encoder, c);
}
