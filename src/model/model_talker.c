/* SPDX-License-Identifier: Apache-2.0
 * The tensors of talker and predictor by name and shape (docs/model.md has the same list in words). */
#include "model/model_parts.h"

#define TALKER "talker."
#define PREDICTOR "talker.code_predictor."

/* Name prefixes are literals, so that a whole tensor name can be found by searching for its end. */
#define BIND_LAYERS(mb, stack, shape, prefix)                                                          \
    for (int i = 0; (stack)->layers && i < (shape)->n_layers; i++) {                                   \
        struct layer_weights *l = &(stack)->layers[i];                                                 \
        const struct stack_config *s = (shape);                                                        \
        int64_t q = (int64_t)s->n_heads * s->head, kv = (int64_t)s->n_kv_heads * s->head;              \
        l->input_norm = model_vector(mb, prefix "layers.{}.input_layernorm.weight", i, -1, s->width);  \
        l->q = model_linear(mb, prefix "layers.{}.self_attn.q_proj.weight", i, -1, q, s->width);       \
        l->k = model_linear(mb, prefix "layers.{}.self_attn.k_proj.weight", i, -1, kv, s->width);      \
        l->v = model_linear(mb, prefix "layers.{}.self_attn.v_proj.weight", i, -1, kv, s->width);      \
        l->o = model_linear(mb, prefix "layers.{}.self_attn.o_proj.weight", i, -1, s->width, q);       \
        l->q_norm = model_vector(mb, prefix "layers.{}.self_attn.q_norm.weight", i, -1, s->head);      \
        l->k_norm = model_vector(mb, prefix "layers.{}.self_attn.k_norm.weight", i, -1, s->head);      \
        l->post_norm =                                                                                 \
            model_vector(mb, prefix "layers.{}.post_attention_layernorm.weight", i, -1, s->width);     \
        l->gate =                                                                                      \
            model_linear(mb, prefix "layers.{}.mlp.gate_proj.weight", i, -1, s->inner, s->width);      \
        l->up = model_linear(mb, prefix "layers.{}.mlp.up_proj.weight", i, -1, s->inner, s->width);    \
        l->down =                                                                                      \
            model_linear(mb, prefix "layers.{}.mlp.down_proj.weight", i, -1, s->width, s->inner);      \
    }                                                                                                  \
    bind_no_more(&(mb)->bind, prefix "layers.{}.input_layernorm.weight", (shape)->n_layers);

static void bind_predictor(struct model_bind *mb)
{
    const struct config *c = mb->model->config;
    struct predictor_weights *p = &mb->model->predictor;
    int n = c->n_codebooks - 1;
    int64_t width = c->predictor.width;
    p->embedding = model_new(mb, n, sizeof *p->embedding);
    p->head = model_new(mb, n, sizeof *p->head);
    p->stack.layers = model_new(mb, c->predictor.n_layers, sizeof *p->stack.layers);
    for (int j = 0; p->embedding && p->head && j < n; j++) {
        p->embedding[j] = model_matrix(mb, PREDICTOR "model.codec_embedding.{}.weight", j, -1,
            c->predictor_vocabulary, c->talker.width);
        p->head[j] =
            model_linear(mb, PREDICTOR "lm_head.{}.weight", j, -1, c->predictor_vocabulary, width);
    }
    if (width != c->talker.width) {
        p->projection = model_linear(
            mb, PREDICTOR "small_to_mtp_projection.weight", -1, -1, width, c->talker.width);
        p->projection_bias = model_vector(mb, PREDICTOR "small_to_mtp_projection.bias", -1, -1, width);
    }
    BIND_LAYERS(mb, &p->stack, &c->predictor, PREDICTOR "model.")
    p->stack.norm = model_vector(mb, PREDICTOR "model.norm.weight", -1, -1, width);
}

void model_bind_talker(struct model_bind *mb)
{
    const struct config *c = mb->model->config;
    struct talker_weights *t = &mb->model->talker;
    int64_t width = c->talker.width;
    t->text_embedding = model_matrix(
        mb, TALKER "model.text_embedding.weight", -1, -1, c->text_vocabulary, c->text_width);
    t->text_fc1 = model_matrix(
        mb, TALKER "text_projection.linear_fc1.weight", -1, -1, c->text_width, c->text_width);
    t->text_fc1_bias =
        model_vector(mb, TALKER "text_projection.linear_fc1.bias", -1, -1, c->text_width);
    t->text_fc2 =
        model_matrix(mb, TALKER "text_projection.linear_fc2.weight", -1, -1, width, c->text_width);
    t->text_fc2_bias = model_vector(mb, TALKER "text_projection.linear_fc2.bias", -1, -1, width);
    t->codec_embedding =
        model_matrix(mb, TALKER "model.codec_embedding.weight", -1, -1, c->codec_vocabulary, width);
    t->head = model_linear(mb, TALKER "codec_head.weight", -1, -1, c->codec_vocabulary, width);
    t->stack.layers = model_new(mb, c->talker.n_layers, sizeof *t->stack.layers);
    BIND_LAYERS(mb, &t->stack, &c->talker, TALKER "model.")
    t->stack.norm = model_vector(mb, TALKER "model.norm.weight", -1, -1, width);
    bind_predictor(mb);
}
