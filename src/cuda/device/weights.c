/* SPDX-License-Identifier: Apache-2.0
 * The model's weights -> device memory in tiles. Owns that memory (struct cuda_weights). */
#include "cuda/device/weights.h"

#include <string.h>

#include "base/memory.h"
#include "base/minmax.h"
#include "cuda/device/pack.h"

/* Walks over all weights in one order, three times: to check, to count, to copy. */
struct walk {
    struct cuda_weights *w;
    struct cuda_arena *arena;
    struct cuda_upload *upload; /* NULL: nothing is copied */
    struct cuda_queue queue;
    unsigned char *raw; /* device: room for one matrix as the model has it */
    uint64_t raw_bytes;
    /* In pinned memory; NULL: it is to be in device memory, or is being counted. */
    const uint16_t *text_table;
    struct cuda_device *device;
    utter_status status;
    utter_error *error;
};

/* ---- What fits ---- */

static utter_status check_type(const struct weight *w, const char *name, utter_error *error)
{
    if (w->data && w->type != DTYPE_BF16) {
        return error_set(error, UTTER_E_MODEL,
            "%s is %s: the GPU takes bf16 weights (use --device cpu)", name, dtype_name(w->type));
    }
    return UTTER_OK;
}

/* The same of what may be packed. */
static utter_status check_packable(const struct weight *w, const char *name, utter_error *error)
{
    return pack_is(w->type) ? UTTER_OK : check_type(w, name, error);
}

/* Those of a layer are packed alike. */
static utter_status check_alike(
    const struct weight *const *all, int n, const char *name, utter_error *error)
{
    for (int i = 0; i < n; i++) {
        utter_status status = check_packable(all[i], name, error);
        if (status) {
            return status;
        }
        if (all[i]->type != all[0]->type) {
            return error_set(error, UTTER_E_MODEL, "%s has matrices in %s and %s (use --device cpu)",
                name, weights_name(all[0]->type), weights_name(all[i]->type));
        }
    }
    return UTTER_OK;
}

static utter_status check_stack(
    const struct stack_config *c, const struct stack_weights *w, const char *name, utter_error *error)
{
    if (c->n_layers > CUDA_MAX_LAYERS || c->head > CUDA_MAX_HEAD || c->head % 2 != 0 ||
        c->window != 0) {
        return error_set(error, UTTER_E_MODEL,
            "%s: %d layers with heads of %d: the GPU takes up to %d layers, heads of up to %d (use "
            "--device cpu)",
            name, c->n_layers, c->head, CUDA_MAX_LAYERS, CUDA_MAX_HEAD);
    }
    for (int i = 0; i < c->n_layers; i++) {
        const struct layer_weights *l = &w->layers[i];
        const struct weight *const all[] = {&l->q, &l->k, &l->v, &l->o, &l->gate, &l->up, &l->down};
        utter_status status = check_alike(all, sizeof all / sizeof *all, name, error);
        if (status) {
            return status;
        }
    }
    return UTTER_OK;
}

utter_status cuda_weights_fit(const struct model *m, utter_error *error)
{
    const struct config *c = m->config;
    const struct talker_weights *t = &m->talker;
    const struct predictor_weights *p = &m->predictor;
    utter_status status = check_stack(&c->talker, &t->stack, "the talker", error);
    if (status || (status = check_stack(&c->predictor, &p->stack, "the predictor", error)) ||
        (status = check_type(&t->text_embedding, "the text table", error)) ||
        (status = check_type(&t->text_fc1, "the text projection", error)) ||
        (status = check_type(&t->text_fc2, "the text projection", error)) ||
        (status = check_type(&t->codec_embedding, "the code table", error)) ||
        (status = check_packable(&t->head, "the talker's head", error)) ||
        (status = check_packable(&p->projection, "the predictor's projection", error))) {
        return status;
    }
    for (int j = 0; j < c->n_codebooks - 1; j++) {
        if ((status = check_type(&p->embedding[j], "a code table", error)) ||
            (status = check_packable(&p->head[j], "a head", error))) {
            return status;
        }
    }
    if (c->codec_vocabulary > CUDA_MAX_CODES || c->predictor_vocabulary > CUDA_MAX_CODES) {
        return error_set(error, UTTER_E_MODEL, "%d codes: the GPU takes up to %d (use --device cpu)",
            c->codec_vocabulary, CUDA_MAX_CODES);
    }
    return UTTER_OK;
}

/* ---- Copies ---- */

/* `n` floats and zeros up to `n_padded`. */
static const float *floats(struct walk *k, const float *from, int n, int n_padded)
{
    float *at = cuda_arena_take(k->arena, (uint64_t)n_padded * sizeof(float));
    if (k->upload && !k->status && from) {
        k->status = cuda_upload_copy(k->upload, at, from, (uint64_t)n * sizeof(float), k->error);
    }
    return at;
}

static const uint16_t *table(struct walk *k, const struct weight *w)
{
    uint64_t bytes = (uint64_t)(w->rows * w->cols) * sizeof(uint16_t);
    uint16_t *at = cuda_arena_take(k->arena, bytes);
    if (k->upload && !k->status) {
        k->status = cuda_upload_copy(k->upload, at, w->data, bytes, k->error);
    }
    return at;
}

static enum cuda_format format_of(enum dtype type)
{
    return type == DTYPE_Q8 ? CUDA_Q8 : type == DTYPE_Q4 ? CUDA_Q4 : CUDA_BF16;
}

/* What stands in `raw` -> the order of the device. */
static utter_status arrange(struct walk *k, const struct cuda_matrix *m, void *tiles, int rows,
    const struct weight *const *parts, int n, bool halves)
{
    const enum dtype type = parts[0]->type;
    struct cuda_pack pack = {.raw = k->raw,
        .rows = rows,
        .cols = m->cols,
        .halves = halves,
        .tiles = tiles,
        .n_row_tiles = m->n_row_tiles,
        .n_k_tiles = m->n_k_tiles,
        .format = (enum cuda_format)m->format};
    if (pack.format != CUDA_BF16) {
        pack.scale_bytes = (int)pack_scale_bytes(m->cols);
        pack.block_bytes = (int)pack_block_bytes(type, m->cols);
        for (int i = 0; i < n; i++) {
            pack.part_rows[i] = (int)parts[i]->rows;
        }
    }
    return cuda_device_check(k->device, cuda_pack_queue(&k->queue, &pack), "arrange weights", k->error);
}

/* Matrices of the same width and type, one under the other, or the two halves of a gate_up. */
static struct cuda_matrix matrix(struct walk *k, const struct weight *const *parts, int n, bool halves)
{
    struct cuda_matrix m = {.cols = (int)parts[0]->cols, .format = format_of(parts[0]->type)};
    uint64_t filled = 0;
    for (int i = 0; i < n; i++) {
        m.rows += (int)parts[i]->rows;
        filled += matrix_bytes(parts[i]);
    }
    int pack_rows = halves ? m.rows / 2 : m.rows;
    m.rows = halves ? 2 * cuda_padded(pack_rows) : m.rows;
    m.n_row_tiles = cuda_padded(m.rows) / CUDA_TILE;
    m.n_k_tiles = cuda_padded(m.cols) / CUDA_TILE;
    void *tiles = cuda_arena_take(k->arena,
        (uint64_t)m.n_row_tiles * (uint64_t)cuda_row_bytes((enum cuda_format)m.format, m.n_k_tiles));
    m.tiles = tiles;
    k->raw_bytes = max(filled, k->raw_bytes);
    if (!k->upload || k->status) {
        return m;
    }
    unsigned char *to = k->raw;
    for (int i = 0; i < n && !k->status; i++) {
        k->status = cuda_upload_copy(k->upload, to, parts[i]->data, matrix_bytes(parts[i]), k->error);
        to += matrix_bytes(parts[i]);
    }
    k->status = k->status ? k->status : arrange(k, &m, tiles, pack_rows, parts, n, halves);
    return m;
}

static struct cuda_matrix single(struct walk *k, const struct weight *w)
{
    const struct weight *const parts[] = {w};
    return matrix(k, parts, 1, false);
}

static void walk_layer(
    struct walk *k, struct cuda_stack *s, struct cuda_layer *to, const struct layer_weights *l)
{
    const struct weight *const qkv[] = {&l->q, &l->k, &l->v}, *const gate_up[] = {&l->gate, &l->up};
    to->input_norm = floats(k, l->input_norm, s->width, s->width_padded);
    to->post_norm = floats(k, l->post_norm, s->width, s->width_padded);
    to->q_norm = floats(k, l->q_norm, s->head, s->head);
    to->k_norm = floats(k, l->k_norm, s->head, s->head);
    to->qkv = matrix(k, qkv, 3, false);
    to->o = single(k, &l->o);
    to->gate_up = matrix(k, gate_up, 2, true);
    to->down = single(k, &l->down);
}

static void walk_stack(
    struct walk *k, struct cuda_stack *s, const struct stack_config *c, const struct stack_weights *w)
{
    float inv_freq[CUDA_MAX_HEAD / 2];
    *s = (struct cuda_stack){
        .width = c->width,
        .inner = c->inner,
        .n_layers = c->n_layers,
        .n_heads = c->n_heads,
        .n_kv_heads = c->n_kv_heads,
        .head = c->head,
        .width_padded = cuda_padded(c->width),
        .inner_padded = cuda_padded(c->inner),
        .mixed_padded = cuda_padded(c->n_heads * c->head),
        .norm_eps = c->norm_eps,
    };
    for (int i = 0; i < c->head / 2; i++) {
        inv_freq[i] = config_rotary(c, i);
    }
    s->inv_freq = floats(k, inv_freq, c->head / 2, c->head / 2);
    s->norm = floats(k, w->norm, s->width, s->width_padded);
    for (int i = 0; i < c->n_layers; i++) {
        walk_layer(k, s, &s->layers[i], &w->layers[i]);
    }
}

/* Who packs the talker wants its memory: the table, of which a frame reads one row, is larger than 0.6B in 8 bits. */
static bool leaves_text(const struct model *m)
{
    return pack_is(m->talker.stack.layers[0].q.type);
}

static void walk_all(struct walk *k, const struct model *m)
{
    const struct config *c = m->config;
    const struct talker_weights *t = &m->talker;
    const struct predictor_weights *p = &m->predictor;
    struct cuda_weights *w = k->w;
    int n = c->n_codebooks;
    walk_stack(k, &w->talker, &c->talker, &t->stack);
    walk_stack(k, &w->predictor, &c->predictor, &p->stack);
    w->talker_head = single(k, &t->head);
    w->code_table[0] = table(k, &t->codec_embedding);
    for (int j = 0; j < n - 1; j++) {
        w->predictor_head[j] = single(k, &p->head[j]);
        w->code_table[j + 1] = table(k, &p->embedding[j]);
    }
    w->projection = (struct cuda_matrix){0};
    if (p->projection.data) {
        w->projection = single(k, &p->projection);
        w->projection_bias =
            floats(k, p->projection_bias, c->predictor.width, w->predictor.width_padded);
    }
    w->text_width = c->text_width;
    w->text_padded = cuda_padded(c->text_width);
    w->text_table = leaves_text(m) ? k->text_table : table(k, &t->text_embedding);
    w->text_fc1 = single(k, &t->text_fc1);
    w->text_fc1_bias = floats(k, t->text_fc1_bias, c->text_width, w->text_padded);
    w->text_fc2 = single(k, &t->text_fc2);
    w->text_fc2_bias = floats(k, t->text_fc2_bias, c->talker.width, w->talker.width_padded);
    w->n_codebooks = n;
    w->codec_vocabulary = c->codec_vocabulary;
    w->predictor_vocabulary = c->predictor_vocabulary;
    w->text_vocabulary = c->text_vocabulary;
}

/* ---- Opening ---- */

void cuda_weights_shapes(struct cuda_weights *w, const struct model *model)
{
    struct cuda_arena arena = {0};
    struct walk k = {.w = w, .arena = &arena};
    walk_all(&k, model);
}

uint64_t cuda_weights_plan(const struct model *model)
{
    struct cuda_arena arena = {0};
    struct cuda_weights *w = memory_new(1, sizeof *w);
    if (w) {
        struct walk k = {.w = w, .arena = &arena};
        walk_all(&k, model);
        arena.used += k.raw_bytes;
    }
    memory_free(w);
    return arena.used;
}

static utter_status copy_all(
    struct walk *k, const struct model *model, uint64_t raw_bytes, utter_error *error)
{
    struct cuda_arena raw = {.used = raw_bytes};
    k->error = error;
    k->status = cuda_arena_open(&raw, k->device, "room to arrange weights in", error);
    if (!k->status) {
        k->status = cuda_upload_open(&k->upload, k->device, error);
    }
    if (!k->status) {
        k->raw = raw.base;
        k->queue.stream = cuda_upload_stream(k->upload);
        walk_all(k, model);
        utter_status status = cuda_upload_finish(k->upload, k->status ? NULL : error);
        k->status = k->status ? k->status : status;
    }
    cuda_upload_close(&k->upload);
    cuda_arena_close(&raw);
    return k->status;
}

static utter_status copy_text(struct walk *k, const struct model *model, utter_error *error)
{
    const struct weight *from = &model->talker.text_embedding;
    void *at;
    utter_status status = cuda_pinned_open(k->device, matrix_bytes(from), &k->w->text_host, &at,
        "pinned memory for the text table", error);
    if (!status) {
        memcpy(k->w->text_host, from->data, matrix_bytes(from));
        k->text_table = at;
    }
    return status;
}

utter_status cuda_weights_open(
    struct cuda_weights *w, const struct model *model, struct cuda_device *device, utter_error *error)
{
    struct walk k = {.w = w, .arena = &w->arena, .device = device};
    walk_all(&k, model); /* counts */
    uint64_t raw_bytes = k.raw_bytes;
    utter_status status = cuda_arena_open(&w->arena, device, "the model's weights", error);
    if (!status && leaves_text(model)) {
        status = copy_text(&k, model, error);
    }
    if (!status) {
        status = copy_all(&k, model, raw_bytes, error);
    }
    if (status) {
        cuda_weights_close(w);
    }
    return status;
}

void cuda_weights_close(struct cuda_weights *w)
{
    cuda_arena_close(&w->arena);
    cuda_pinned_close(w->text_host);
    memset(w, 0, sizeof *w);
}
