/* SPDX-License-Identifier: Apache-2.0
 * Rows and codes -> the talker's input vectors: text through its projection, codes by table, and their
 * sum in the official order. */
#include "cpu/stack/embed.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"

/* T(id) = W2 silu(W1 E(id) + b1) + b2 for n ids, into e->projected. */
static void project_text(struct cpu_embed *e, const int32_t *ids, int n)
{
    const struct talker_weights *w = &e->model->talker;
    int64_t middle = w->text_fc1.rows, text = w->text_fc1.cols, width = w->text_fc2.rows;
    for (int i = 0; i < n; i++) {
        weight_row(&w->text_embedding, ids[i], e->text + i * text);
    }
    kern_matmul(e->kern, e->pool, e->middle, middle, &w->text_fc1, e->text, text, n, NULL);
    for (int i = 0; i < n; i++) {
        for (int64_t j = 0; j < middle; j++) {
            float v = e->middle[i * middle + j] + w->text_fc1_bias[j];
            e->middle[i * middle + j] = v / (1.0f + expf(-v));
        }
    }
    kern_matmul(e->kern, e->pool, e->projected, width, &w->text_fc2, e->middle, middle, n, NULL);
    for (int i = 0; i < n; i++) {
        for (int64_t j = 0; j < width; j++) {
            e->projected[i * width + j] += w->text_fc2_bias[j];
        }
    }
}

utter_status cpu_embed_init(struct cpu_embed *e, const struct model *model, const struct kern *kern,
    struct pool *pool, int n_columns, utter_error *error)
{
    size_t n = (size_t)n_columns, text = (size_t)model->config->text_width * sizeof(float);
    size_t width = (size_t)model->config->talker.width * sizeof(float);
    *e = (struct cpu_embed){.model = model, .kern = kern, .pool = pool, .n_columns = n_columns};
    e->text = memory_new(n, text);
    e->middle = memory_new(n, text);
    e->projected = memory_new(n, width);
    e->sum = memory_new(1, width);
    float *pad = memory_new(1, width);
    if (!e->text || !e->middle || !e->projected || !e->sum || !pad) {
        memory_free(pad);
        cpu_embed_fini(e);
        return error_memory(error, "embedding buffers");
    }
    project_text(e, &model->config->tts_pad, 1);
    memcpy(pad, e->projected, width);
    e->pad = pad;
    return UTTER_OK;
}

void cpu_embed_fini(struct cpu_embed *e)
{
    memory_free(e->text);
    memory_free(e->middle);
    memory_free(e->projected);
    memory_free(e->sum);
    memory_free(e->pad);
    *e = (struct cpu_embed){0};
}

void cpu_embed_code(const struct model *model, int codebook, int32_t code, float *out)
{
    const struct weight *table =
        codebook == 0 ? &model->talker.codec_embedding : &model->predictor.embedding[codebook - 1];
    weight_row(table, code, out);
}

/* Adds the codec part to x. The codes of a frame are summed first, in order, as the official code does. */
static void add_codec_part(struct cpu_embed *e, const struct row *row, float *x)
{
    int width = e->model->config->talker.width;
    const float *add = row->vector;
    if (row->codec == ROW_NONE) {
        return;
    }
    if (row->codec == ROW_ID) {
        cpu_embed_code(e->model, 0, row->id, e->sum);
        add = e->sum;
    } else if (row->codec == ROW_CODES) {
        cpu_embed_code(e->model, 0, row->codes[0], e->sum);
        for (int j = 1; j < e->model->config->n_codebooks; j++) {
            cpu_embed_code(e->model, j, row->codes[j], e->projected);
            for (int i = 0; i < width; i++) {
                e->sum[i] += e->projected[i];
            }
        }
        add = e->sum;
    }
    for (int i = 0; i < width; i++) {
        x[i] += add[i];
    }
}

void cpu_embed_rows(struct cpu_embed *e, const struct row *rows, int n, float *x)
{
    int64_t width = e->model->config->talker.width;
    int32_t pad = e->model->config->tts_pad;
    for (int i = 0; i < n; i++) {
        if (rows[i].text == pad) {
            memcpy(x + i * width, e->pad, (size_t)width * sizeof *x);
        } else if (rows[i].text < 0) {
            memset(x + i * width, 0, (size_t)width * sizeof *x);
        }
    }
    enum { BATCH = 64 };
    for (int i = 0; i < n;) {
        int32_t ids[BATCH];
        int where[BATCH], m = 0;
        for (; i < n && m < BATCH && m < e->n_columns; i++) {
            if (rows[i].text >= 0 && rows[i].text != pad) {
                ids[m] = rows[i].text;
                where[m++] = i;
            }
        }
        if (m > 0) {
            project_text(e, ids, m);
        }
        for (int k = 0; k < m; k++) {
            memcpy(x + where[k] * width, e->projected + k * width, (size_t)width * sizeof *x);
        }
    }
    for (int i = 0; i < n; i++) {
        add_codec_part(e, &rows[i], x + i * width);
    }
}
