/* SPDX-License-Identifier: Apache-2.0
 * Packs the matrices of talker and predictor that a frame reads. Embeddings, of which a frame reads a few
 * rows, the text projection, codec and speaker encoder stay as they are. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/minmax.h"
#include "base/threads.h"
#include "model/model_parts.h"

struct pack_job {
    const struct weight *from;
    struct weight *to;
    float *rows; /* [n_parts][PACK_ROWS][cols] */
};

static void pack_part(void *arg, int part, int n_parts)
{
    const struct pack_job *job = arg;
    int64_t begin, end, cols = job->from->cols;
    float *rows = job->rows + part * PACK_ROWS * cols;
    pool_slice(pack_blocks(job->from->rows), 1, part, n_parts, &begin, &end);
    for (int64_t b = begin; b < end; b++) {
        int64_t n = job->from->rows - b * PACK_ROWS;
        n = min(n, PACK_ROWS);
        for (int64_t r = 0; r < n; r++) {
            weight_row(job->from, b * PACK_ROWS + r, rows + r * cols);
        }
        char *out = (char *)job->to->data + (size_t)b * pack_block_bytes(job->to->type, cols);
        pack_block(out, job->to->type, rows, n, cols);
    }
}

/* The matrices in the order in which a frame reads them, those that stay at 8 bits last; `list` NULL only counts. */
struct packable {
    struct weight **list;
    int n, n_narrow; /* the first n_narrow take the type that was asked for */
};

static void list_add(struct packable *p, struct weight *w)
{
    if (p->list) {
        p->list[p->n] = w;
    }
    p->n++;
}

static void list_stack(struct packable *p, const struct stack_weights *stack, int n_layers)
{
    for (int i = 0; i < n_layers; i++) {
        struct layer_weights *l = &stack->layers[i];
        struct weight *const all[] = {&l->q, &l->k, &l->v, &l->o, &l->gate, &l->up, &l->down};
        for (size_t j = 0; j < sizeof all / sizeof *all; j++) {
            list_add(p, all[j]);
        }
    }
}

/* A predictor that stays in a core's own cache is not faster with 4 bits, and loses most by them: each of its steps
 * builds on the one before, and what it gets wrong grows from codebook to codebook (docs/log/packed-weights.md). */
static bool predictor_is_small(const struct model *m)
{
    enum { SMALL_VALUES = 1 << 20 };
    int64_t values = 0;
    for (int i = 0; i < m->config->predictor.n_layers; i++) {
        const struct layer_weights *l = &m->predictor.stack.layers[i];
        values += 2 * (l->q.rows + l->k.rows) * l->q.cols + 3 * l->gate.rows * l->gate.cols;
    }
    return values <= SMALL_VALUES;
}

static void list_all(struct packable *p, struct model *m, bool talker)
{
    p->n = 0;
    if (talker) {
        list_stack(p, &m->talker.stack, m->config->talker.n_layers);
    }
    p->n_narrow = p->n;
    list_stack(p, &m->predictor.stack, m->config->predictor.n_layers);
    if (m->predictor.projection.data) {
        list_add(p, &m->predictor.projection);
    }
    p->n_narrow = predictor_is_small(m) ? p->n_narrow : p->n;
    if (talker) {
        list_add(p, &m->talker.head); /* heads decide near ties, and are few bytes */
    }
    for (int j = 0; j < m->config->n_codebooks - 1; j++) {
        list_add(p, &m->predictor.head[j]);
    }
}

static utter_status packable_of(
    struct model *m, bool talker, struct weight ***list, int *n, int *n_narrow, utter_error *error)
{
    struct packable p = {0};
    list_all(&p, m, talker);
    *list = p.list = memory_new((size_t)p.n, sizeof(struct weight *));
    if (!*list) {
        return error_memory(error, "the list of matrices");
    }
    list_all(&p, m, talker);
    *n = p.n;
    *n_narrow = p.n_narrow;
    return UTTER_OK;
}

utter_status model_packable(
    struct model *m, struct weight ***list, int *n, int *n_narrow, utter_error *error)
{
    return packable_of(m, true, list, n, n_narrow, error);
}

bool values_fit_f16(const float *values, int64_t n)
{
    bool fit = true;
    for (int64_t i = 0; i < n && fit; i++) {
        fit = fabsf(values[i]) <= 65000;
    }
    return fit;
}

size_t matrix_bytes(const struct weight *w)
{
    return pack_is(w->type) ? (size_t)pack_blocks(w->rows) * pack_block_bytes(w->type, w->cols)
                            : (size_t)(w->rows * w->cols) * dtype_bytes(w->type);
}

/* Of the time that packing and writing take together: 0.5 with 0.6B at a busy disk, more where writing is quick. */
static const double PACK_SHARE = 0.6;

/* Packs list[i] for all i into one block of memory; the pages of the file that they came from are given back. */
static utter_status pack_all(struct model *m, struct weight **list, int n, int n_narrow,
    enum dtype type, struct pool *pool, struct progress *progress, utter_error *error)
{
    size_t bytes = 0, most_cols = 1, n_parts = (size_t)pool_size(pool) * 4;
    double values = 0;
    for (int i = 0; i < n; i++) {
        struct weight w = *list[i];
        w.type = i < n_narrow ? type : DTYPE_Q8;
        bytes += matrix_bytes(&w);
        most_cols = max((size_t)w.cols, most_cols);
        values += (double)w.rows * (double)w.cols;
    }
    progress_begin(progress, PACK_SHARE, values);
    char *at = model_own(m, bytes);
    float *rows = memory_new(n_parts * PACK_ROWS, most_cols * sizeof *rows);
    utter_status status = at && rows ? UTTER_OK : error_memory(error, "packed weights");
    for (int i = 0; !status && i < n; i++) {
        struct weight to = *list[i];
        to.data = at;
        to.type = i < n_narrow ? type : DTYPE_Q8;
        struct pack_job job = {list[i], &to, rows};
        pool_run(pool, pack_part, &job, (int)n_parts);
        tensor_set_rest(m->tensors, list[i]->data, matrix_bytes(list[i]));
        *list[i] = to;
        at += matrix_bytes(&to);
        status = progress_add(progress, (double)to.rows * (double)to.cols, error);
    }
    memory_free(rows);
    return status;
}

const char WEIGHTS_PREDICTOR[] = "q8-predictor";

static utter_status pack_model(struct model *m, enum dtype type, bool talker, int n_threads,
    struct progress *progress, utter_error *error)
{
    const enum dtype first = m->talker.stack.layers[0].q.type,
                     now = pack_is(first) ? first : m->predictor.stack.layers[0].q.type;
    if (pack_is(now)) { /* with the talker or without */
        return now == type && pack_is(first) == talker
                   ? UTTER_OK
                   : error_set(error, UTTER_E_ARGUMENT,
                         "weights %s: this file holds %s (pack the checkpoint that it was made from)",
                         talker ? weights_name(type) : WEIGHTS_PREDICTOR, model_weights_name(m));
    }
    struct weight **list;
    int n, n_narrow;
    utter_status status = packable_of(m, talker, &list, &n, &n_narrow, error);
    if (status) {
        return status;
    }
    struct pool *pool = pool_new(n_threads > 0 ? n_threads : threads_available());
    status = pool ? pack_all(m, list, n, n_narrow, type, pool, progress, error)
                  : error_memory(error, "threads");
    pool_free(pool);
    memory_free(list);
    if (!status) {
        model_count(m);
    }
    return status;
}

utter_status model_pack(struct model *m, enum dtype type, int n_threads, utter_error *error)
{
    return pack_model(m, type, true, n_threads, NULL, error);
}

utter_status model_pack_told(
    struct model *m, enum dtype type, int n_threads, struct progress *progress, utter_error *error)
{
    return pack_model(m, type, true, n_threads, progress, error);
}

utter_status model_pack_predictor(struct model *m, enum dtype type, int n_threads, utter_error *error)
{
    return pack_model(m, type, false, n_threads, NULL, error);
}

const char *model_weights_name(const struct model *m)
{
    const enum dtype talker = m->talker.stack.layers[0].q.type;
    return !pack_is(talker) && pack_is(m->predictor.stack.layers[0].q.type) ? WEIGHTS_PREDICTOR
                                                                            : weights_name(talker);
}

const char *weights_name(enum dtype type)
{
    switch (type) {
    case DTYPE_Q8:
        return "q8";
    case DTYPE_Q4:
        return "q4";
    case DTYPE_BF16:
        return "bf16";
    case DTYPE_F16:
        return "f16";
    default:
        return "f32";
    }
}
