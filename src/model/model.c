/* SPDX-License-Identifier: Apache-2.0
 * Opens a checkpoint folder: config, tensors, bindings. */
#include "model/model.h"

#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "base/numeric.h"
#include "model/model_parts.h"

void *model_own(struct model *m, size_t bytes)
{
    struct model_bind mb = {.model = m};
    return model_new(&mb, (int64_t)bytes, 1);
}

void *model_new(struct model_bind *mb, int64_t n, size_t size)
{
    struct model *m = mb->model;
    if (m->n_owned == m->owned_capacity) {
        size_t capacity = m->owned_capacity ? 2 * m->owned_capacity : 256;
        void **grown = memory_resize(m->owned, m->owned_capacity, capacity, sizeof *grown);
        if (!grown) {
            mb->out_of_memory = true;
            return NULL;
        }
        m->owned = grown;
        m->owned_capacity = capacity;
    }
    void *block = memory_new((size_t)n, size);
    if (!block) {
        mb->out_of_memory = true;
        return NULL;
    }
    m->owned[m->n_owned++] = block;
    return block;
}

/* Room in the list first, so that a vector cannot be lost between being made and being listed. */
float *model_vector(struct model_bind *mb, const char *name, int i, int j, int64_t n)
{
    void **slot = model_new(mb, 0, 1) ? &mb->model->owned[mb->model->n_owned - 1] : NULL;
    float *values = bind_vector(&mb->bind, name, i, j, n);
    if (!slot) {
        memory_free(values);
        return NULL;
    }
    if (values) {
        memory_free(*slot);
        *slot = values;
    }
    return values;
}

struct weight model_matrix(
    struct model_bind *mb, const char *name, int i, int j, int64_t rows, int64_t cols)
{
    return bind_weight(&mb->bind, name, i, j, 2, (int64_t[]){rows, cols});
}

struct weight model_linear(
    struct model_bind *mb, const char *name, int i, int j, int64_t rows, int64_t cols)
{
    return bind_linear(&mb->bind, name, i, j, rows, cols);
}

struct weight model_exact(
    struct model_bind *mb, const char *name, int i, int j, int64_t rows, int64_t cols, int64_t taps)
{
    struct weight w = bind_weight(&mb->bind, name, i, j, taps ? 3 : 2, (int64_t[]){rows, cols, taps});
    if (!w.data || w.type == DTYPE_F32) {
        return w;
    }
    float *values = model_new(mb, w.rows * w.cols, sizeof *values);
    for (int64_t r = 0; values && r < w.rows; r++) {
        weight_row(&w, r, values + r * w.cols);
    }
    return (struct weight){values, DTYPE_F32, w.rows, w.cols};
}

bool model_bind_has(const struct model_bind *mb, const char *prefix)
{
    const struct tensor_set *set = mb->bind.set;
    for (size_t i = 0; i < tensor_set_count(set); i++) {
        if (strncmp(tensor_set_at(set, i)->name, prefix, strlen(prefix)) == 0) {
            return true;
        }
    }
    return false;
}

/* What the tensors whose names begin with `prefix`, but not with `except`, hold together; packed ones are left out. */
struct tally {
    uint64_t values, bytes;
};

static struct tally tally(const struct tensor_set *set, const char *prefix, const char *except)
{
    struct tally sum = {0, 0};
    for (size_t i = 0; i < tensor_set_count(set); i++) {
        const struct tensor *t = tensor_set_at(set, i);
        bool left_out = except && strncmp(t->name, except, strlen(except)) == 0;
        if (strncmp(t->name, prefix, strlen(prefix)) == 0 && !left_out && t->type != DTYPE_U32 &&
            t->type != DTYPE_U8) {
            sum.values += t->bytes / dtype_bytes(t->type);
            sum.bytes += t->bytes;
        }
    }
    return sum;
}

/* What a frame reads of a stack's matrices; what of them is packed in the file is added to *values. */
static uint64_t stack_bytes(
    const struct stack_weights *stack, int n_layers, uint64_t *values, bool counted)
{
    uint64_t bytes = 0;
    for (int i = 0; i < n_layers; i++) {
        const struct layer_weights *l = &stack->layers[i];
        const struct weight *const all[] = {&l->q, &l->k, &l->v, &l->o, &l->gate, &l->up, &l->down};
        for (size_t j = 0; j < sizeof all / sizeof *all; j++) {
            bytes += matrix_bytes(all[j]);
            *values += counted ? (uint64_t)(all[j]->rows * all[j]->cols) : 0;
        }
    }
    return bytes;
}

void model_count(struct model *m)
{
    static const char predictor[] = "talker.code_predictor.";
    const struct tensor_set *main = m->tensors, *codec = m->codec_tensors;
    const struct predictor_weights *p = &m->predictor;
    uint64_t steps = (uint64_t)m->config->n_codebooks - 1, packed[2] = {0, 0};
    bool is_packed = m->packed_file;
    uint64_t talker = stack_bytes(&m->talker.stack, m->config->talker.n_layers, &packed[0], is_packed);
    uint64_t step = stack_bytes(&p->stack, m->config->predictor.n_layers, &packed[1], is_packed);
    talker += matrix_bytes(&m->talker.head);
    packed[0] += is_packed ? (uint64_t)(m->talker.head.rows * m->talker.head.cols) : 0;
    if (p->projection.data) {
        step += matrix_bytes(&p->projection);
        packed[1] += is_packed ? (uint64_t)(p->projection.rows * p->projection.cols) : 0;
    }
    uint64_t heads = 0;
    for (uint64_t j = 0; j < steps; j++) {
        heads += matrix_bytes(&p->head[j]);
        packed[1] += is_packed ? (uint64_t)(p->head[j].rows * p->head[j].cols) : 0;
    }
    m->talker_parameters = tally(main, "talker.", predictor).values + packed[0];
    m->predictor_parameters = tally(main, predictor, NULL).values + packed[1];
    m->vocoder_parameters = tally(codec, "decoder.", NULL).values;
    m->all_parameters = tally(main, "", NULL).values + packed[0] + packed[1] +
                        (is_packed ? 0 : tally(codec, "", NULL).values);
    m->talker_frame_bytes = talker;
    m->predictor_frame_bytes = steps * step + heads;
    struct tally vocoder = tally(codec, "decoder.", "decoder.quantizer.");
    m->short_sound = m->short_sound || pack_is(m->talker.stack.layers[0].q.type);
    m->vocoder_frame_bytes = m->short_sound ? 2 * vocoder.values : vocoder.bytes;
}

void model_shorten_sound(struct model *m)
{
    m->short_sound = true;
    model_count(m);
}

/* Binds one tensor set with `bind_all` and reports what does not fit. */
static utter_status model_bind_set(struct model *m, const struct tensor_set *set, const char *file,
    void (*bind_all)(struct model_bind *), utter_error *error)
{
    struct model_bind mb = {.model = m};
    bind_begin(&mb.bind, set, file);
    bind_all(&mb);
    utter_status status = bind_finish(&mb.bind, error);
    return status == UTTER_OK && mb.out_of_memory ? error_memory(error, "model") : status;
}

static void bind_main(struct model_bind *mb)
{
    model_bind_talker(mb);
    model_bind_speaker(mb);
}

static void bind_codec(struct model_bind *mb)
{
    model_bind_vocoder(mb);
    model_bind_encoder(mb);
}

/* Where matrices of a stack are packed all are, and alike: products of one vector round it once, for one type. */
static utter_status check_types(const struct stack_weights *stack, int n_layers, const char *file,
    const char *name, utter_error *error)
{
    const enum dtype first = stack->layers[0].q.type;
    for (int i = 0; i < n_layers; i++) {
        const struct layer_weights *l = &stack->layers[i];
        const struct weight *const all[] = {&l->q, &l->k, &l->v, &l->o, &l->gate, &l->up, &l->down};
        for (size_t j = 0; j < sizeof all / sizeof *all; j++) {
            const enum dtype type = all[j]->type;
            if (type != first && (pack_is(first) || pack_is(type))) {
                return error_set(error, UTTER_E_MODEL,
                    "%s: the %s mixes matrices in %s and %s (pack the checkpoint again)", file, name,
                    weights_name(first), weights_name(type));
            }
        }
    }
    return UTTER_OK;
}

/* The two tensor sets: of a folder, or both of one file. */
static utter_status open_tensors(struct model *m, const char *path, utter_error *error)
{
    char codec_folder[4096];
    if (m->packed_file) {
        utter_status status = tensor_set_open_file(&m->tensors, path, error);
        return status ? status : tensor_set_open_file(&m->codec_tensors, path, error);
    }
    utter_status status = file_join(codec_folder, sizeof codec_folder, path, "speech_tokenizer", error);
    if (!status) {
        status = tensor_set_open_folder(&m->tensors, path, error);
    }
    return status ? status : tensor_set_open_folder(&m->codec_tensors, codec_folder, error);
}

utter_status model_open(struct model **model, const char *folder, utter_error *error)
{
    struct model *m = memory_new(1, sizeof *m);
    *model = NULL;
    if (!m) {
        return error_memory(error, "model");
    }
    m->packed_file = model_file_is(folder);
    const char *file = m->packed_file ? folder : "model.safetensors";
    const char *codec_file = m->packed_file ? folder : "speech_tokenizer/model.safetensors";
    utter_status status = m->packed_file ? model_file_check(folder, error) : UTTER_OK;
    if (status || (status = config_open(&m->config, folder, error)) ||
        (status = open_tensors(m, folder, error)) ||
        (status = model_bind_set(m, m->tensors, file, bind_main, error)) ||
        (status = check_types(&m->talker.stack, m->config->talker.n_layers, file, "talker", error)) ||
        (status = check_types(
             &m->predictor.stack, m->config->predictor.n_layers, file, "predictor", error)) ||
        (status = model_bind_set(m, m->codec_tensors, codec_file, bind_codec, error))) {
        model_close(&m);
        return status;
    }
    model_count(m);
    const struct weight *table = &m->vocoder.table_sum[0];
    m->codec_fingerprint =
        XXH64(table->data, (size_t)(table->rows * table->cols) * dtype_bytes(table->type), 0);
    *model = m;
    return UTTER_OK;
}

uint64_t model_heads_fingerprint(const struct model *model)
{
    enum { MOST_BYTES = 1 << 16 }; /* of a matrix: training changes all of it */
    const struct stack_weights *stack = &model->talker.stack;
    uint64_t hash = 0;
    for (int i = 0; i < model->config->talker.n_layers; i++) {
        const struct weight *of[] = {&stack->layers[i].q, &stack->layers[i].k};
        for (int j = 0; j < 2; j++) {
            hash = XXH64(of[j]->data, min(matrix_bytes(of[j]), (size_t)MOST_BYTES), hash);
        }
    }
    return hash;
}

void model_close(struct model **model)
{
    struct model *m = *model;
    if (m) {
        for (size_t i = 0; i < m->n_owned; i++) {
            memory_free(m->owned[i]);
        }
        memory_free(m->owned);
        tensor_set_close(&m->tensors);
        tensor_set_close(&m->codec_tensors);
        config_close(&m->config);
        memory_free(m);
    }
    *model = NULL;
}

bool model_damaged(const struct model *model)
{
    return tensor_set_damaged(model->tensors) || tensor_set_damaged(model->codec_tensors);
}

void weight_row(const struct weight *w, int64_t row, float *out)
{
    if (pack_is(w->type)) {
        pack_row(w->data, w->type, w->cols, row, out);
        return;
    }
    const char *at = (const char *)w->data + (size_t)(row * w->cols) * dtype_bytes(w->type);
    if (w->type == DTYPE_F32) {
        memcpy(out, at, (size_t)w->cols * sizeof *out);
        return;
    }
    for (int64_t i = 0; i < w->cols; i++) {
        uint16_t bits;
        memcpy(&bits, at + 2 * i, 2);
        out[i] = w->type == DTYPE_BF16 ? bf16_to_float(bits) : f16_to_float(bits);
    }
}
