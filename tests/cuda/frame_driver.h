/* SPDX-License-Identifier: Apache-2.0
 * The frame kernel against the CPU backend on one checkpoint: the same rows, the same forced codes, every logit and
 * code compared. What runs the kernel is behind four functions that the including file
 * defines. */
#ifndef TESTS_CUDA_FRAME_DRIVER_H
#define TESTS_CUDA_FRAME_DRIVER_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/numeric.h"
#include "cuda/persistent/persistent.h"

/* `bytes` bytes of device memory, zero or as `from`. Never freed. */
static void *machine_new(size_t bytes, const void *from);
static void machine_read(void *to, const void *from, size_t bytes);
static void machine_write(void *to, const void *from, size_t bytes);
/* Rows of w -> their places in the tiles of a matrix in device memory: see tiles_put. */
static void machine_tiles(void *tiles, int n_cols, const struct weight *w, int first, int interleave);
static void machine_check(const char *what, utter_status status, const utter_error *error)
{
    if (status) {
        fprintf(stderr, "%s: %s\n", what, error->text);
        exit(2);
    }
}

/* ---- Weights in the layout of device/weights.h ---- */

/* Where element (r, k) of a matrix that begins at row `first` of the tiles lies, in elements. interleave 0 and 1:
 * rows go in groups of 8 into the upper or lower halves of the tiles (gate and up). */
NUMERIC_FN int64_t tiles_at(int n_cols, int first, int interleave, int64_t r, int64_t k)
{
    int64_t row = interleave < 0 ? first + r : r / 8 * 16 + interleave * 8 + r % 8;
    int64_t g = row % 8, low = row / 8 % 2, t = k % 8 / 2, right = k / 8 % 2;
    return (row / 16 * (n_cols / 16) + k / 16) * 256 + (g * 4 + t) * 8 + right * 4 + low * 2 + k % 2;
}

static struct cuda_matrix matrix_new(const struct weight *const *parts, int n, bool interleaved)
{
    int64_t rows = 0, cols = parts[0]->cols;
    for (int i = 0; i < n; i++) {
        rows += parts[i]->rows;
    }
    void *tiles = machine_new((size_t)(rows * cols) * 2, NULL);
    for (int i = 0, first = 0; i < n; first += (int)parts[i++]->rows) {
        machine_tiles(tiles, (int)cols, parts[i], first, interleaved ? i : -1);
    }
    struct cuda_matrix m = {tiles, (int)rows, (int)cols, (int)rows / 16, (int)cols / 16};
    return m;
}

static struct cuda_matrix matrix_of(const struct weight *w)
{
    return matrix_new(&w, 1, false);
}

static const float *vector_of(const float *values, int n)
{
    return (const float *)machine_new((size_t)n * sizeof *values, values);
}

static void stack_of(struct cuda_stack *s, const struct stack_config *c, const struct stack_weights *w)
{
    s->width = s->width_padded = c->width;
    s->inner = s->inner_padded = c->inner;
    s->n_layers = c->n_layers;
    s->n_heads = c->n_heads;
    s->n_kv_heads = c->n_kv_heads;
    s->head = c->head;
    s->norm_eps = c->norm_eps;
    s->norm = vector_of(w->norm, c->width);
    float freq[64];
    for (int i = 0; i < 64; i++) {
        freq[i] = 1.0f / (float)pow(c->rope_theta, (double)((float)(2 * i) / (float)c->head));
    }
    s->inv_freq = vector_of(freq, 64);
    for (int i = 0; i < c->n_layers; i++) {
        const struct layer_weights *l = &w->layers[i];
        const struct weight *qkv[] = {&l->q, &l->k, &l->v}, *gate_up[] = {&l->gate, &l->up};
        s->layers[i].qkv = matrix_new(qkv, 3, false);
        s->layers[i].o = matrix_of(&l->o);
        s->layers[i].gate_up = matrix_new(gate_up, 2, true);
        s->layers[i].down = matrix_of(&l->down);
        s->layers[i].input_norm = vector_of(l->input_norm, c->width);
        s->layers[i].post_norm = vector_of(l->post_norm, c->width);
        s->layers[i].q_norm = vector_of(l->q_norm, c->head);
        s->layers[i].k_norm = vector_of(l->k_norm, c->head);
    }
}

static void weights_of(struct cuda_weights *w, const struct model *model)
{
    const struct config *c = model->config;
    memset(w, 0, sizeof *w);
    stack_of(&w->talker, &c->talker, &model->talker.stack);
    stack_of(&w->predictor, &c->predictor, &model->predictor.stack);
    w->talker_head = matrix_of(&model->talker.head);
    w->n_codebooks = c->n_codebooks;
    w->codec_vocabulary = c->codec_vocabulary;
    w->predictor_vocabulary = c->predictor_vocabulary;
    const struct weight *table = &model->talker.codec_embedding;
    w->code_table[0] =
        (const uint16_t *)machine_new((size_t)(table->rows * table->cols) * 2, table->data);
    for (int j = 0; j + 1 < c->n_codebooks; j++) {
        w->predictor_head[j] = matrix_of(&model->predictor.head[j]);
        table = &model->predictor.embedding[j];
        w->code_table[j + 1] =
            (const uint16_t *)machine_new((size_t)(table->rows * table->cols) * 2, table->data);
    }
    if (model->predictor.projection.data) {
        w->projection = matrix_of(&model->predictor.projection);
        w->projection_bias = vector_of(model->predictor.projection_bias, c->predictor.width);
    }
}

/* Lane l has the pages from l * pages_stride on. */
static void lanes_of(struct cuda_lanes *l, const struct config *c, int n_lanes, int n_positions)
{
    const size_t n = (size_t)n_lanes, width = (size_t)c->talker.width;
    memset(l, 0, sizeof *l);
    l->n = n_lanes;
    l->state = (struct cuda_lane *)machine_new(n * sizeof *l->state, NULL);
    l->hidden = (float *)machine_new(n * width * 4, NULL);
    l->logits = (float *)machine_new(n * (size_t)c->codec_vocabulary * 4, NULL);
    l->seen = (uint8_t *)machine_new(n * (size_t)c->codec_vocabulary, NULL);
    l->sum = (float *)machine_new(n * width * 4, NULL);
    l->codes = (int32_t *)machine_new(n * BACKEND_MAX_FEED * c->n_codebooks * 4, NULL);
    l->pages_stride = n_positions / CUDA_PAGE + 1;
    l->n_pages = n_lanes * l->pages_stride;
    l->page_floats = (uint64_t)c->talker.n_layers * FRAME_KV_HEADS * 2 * CUDA_PAGE * FRAME_HEAD;
    l->cache = (float *)machine_new(l->page_floats * (size_t)l->n_pages * 4, NULL);
    int32_t *pages = (int32_t *)calloc((size_t)l->n_pages, sizeof *pages);
    for (int i = 0; i < l->n_pages; i++) { /* in no simple order */
        pages[i] = i / l->pages_stride * l->pages_stride + l->pages_stride - 1 - i % l->pages_stride;
    }
    l->pages = (int32_t *)machine_new((size_t)l->n_pages * sizeof *pages, pages);
    free(pages);
}

/* ---- The reference ---- */

enum { DRIVER_CODEBOOKS = 16 };

struct expected {
    float *rows, *hidden, *talker; /* of the last call */
    float *predictor;              /* [n_codebooks][predictor_vocabulary] */
    int n_rows;
    const struct config *config;
};

static void expected_tap(
    void *user, const char *name, int index, const float *data, int64_t rows, int64_t cols)
{
    struct expected *e = (struct expected *)user;
    size_t bytes = (size_t)(rows * cols) * sizeof *data;
    if (strcmp(name, "prompt") == 0) {
        memcpy(e->rows + (size_t)index * cols, data, bytes);
    } else if (strcmp(name, "talker.hidden") == 0) {
        memcpy(e->hidden, data, bytes);
    } else if (strcmp(name, "talker.logits") == 0) {
        memcpy(e->talker, data, bytes);
    } else if (strcmp(name, "predictor.logits") == 0) {
        memcpy(e->predictor + (size_t)index * cols, data, bytes);
    }
}

/* Largest difference relative to the largest value; where. */
static double compare(
    const char *what, int index, const float *got, const float *want, int n, double limit, int *bad)
{
    double largest = 0, scale = 0;
    int where = 0;
    for (int i = 0; i < n; i++) {
        double d = fabs((double)got[i] - want[i]);
        scale = fmax(scale, fabs((double)want[i]));
        if (!(d <= largest)) {
            largest = d;
            where = i;
        }
        if (d != d) {
            largest = INFINITY;
            break;
        }
    }
    double relative = largest / (scale > 0 ? scale : 1);
    if (!(relative <= limit)) {
        (*bad)++;
        printf("  %s %d: error %.3g of %.3g at %d: %g, wanted %g\n", what, index, largest, scale, where,
            got[where], want[where]);
    }
    return relative;
}

#endif
