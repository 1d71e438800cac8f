/* SPDX-License-Identifier: Apache-2.0
 * Brings the weights of the vocoder to the GPU. Comes in: the bound checkpoint. Goes out: products in the order of
 * the kernels, small vectors padded with zeros. */
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/minmax.h"
#include "cuda/device/wait.h"
#include "cuda/vocoder/vocoder_parts.h"

static const float usage_least = 1e-5f;

struct loader {
    struct cuda_vocoder *v;
    struct cuda_upload *upload;
    struct cuda_arena staging; /* one tensor, fp32 as the model has all of the codec */
    utter_error *error;
    utter_status status; /* after a failure nothing more happens */
};

static void load_floats(struct loader *l, const float *to, const float *from, int64_t n)
{
    if (!l->status) {
        l->status =
            cuda_upload_copy(l->upload, (void *)to, from, (uint64_t)n * sizeof(float), l->error);
    }
}

static void load_snake(struct loader *l, struct vocoder_snake *to, const struct snake_weights *w, int n)
{
    float *a = memory_new((size_t)n, sizeof *a), *b = memory_new((size_t)n, sizeof *b);
    if (!a || !b) {
        l->status = l->status ? l->status : error_memory(l->error, "the vocoder");
    }
    for (int i = 0; !l->status && i < n; i++) {
        a[i] = expf(w->alpha[i]);
        b[i] = 1.0f / (expf(w->beta[i]) + 1e-9f);
    }
    load_floats(l, to->a, a, n);
    load_floats(l, to->b, b, n);
    memory_free(a);
    memory_free(b);
}

/* As floats to the staging buffer: files of utter quantize have 16 bits. */
static utter_status send_matrix(struct loader *l, const struct weight *w)
{
    const uint64_t bytes = (uint64_t)(w->rows * w->cols) * sizeof(float);
    if (w->type == DTYPE_F32) {
        return cuda_upload_copy(l->upload, l->staging.base, w->data, bytes, l->error);
    }
    float *values = memory_new((size_t)(w->rows * w->cols), sizeof *values);
    for (int64_t r = 0; values && r < w->rows; r++) {
        weight_row(w, r, values + r * w->cols);
    }
    utter_status status = values ? cuda_upload_copy(l->upload, l->staging.base, values, bytes, l->error)
                                 : error_memory(l->error, "the vocoder");
    memory_free(values);
    return status;
}

/* One tensor to the staging buffer and from there to its steps. The caller has set the places of the elements. */
static void load_pack(
    struct loader *l, const struct cuda_product *p, const struct weight *w, struct conv_pack pack)
{
    if (l->status) {
        return;
    }
    struct cuda_device *device = l->v->device;
    l->status = send_matrix(l, w);
    if (!l->status) {
        l->status = cuda_upload_finish(l->upload, l->error);
    }
    pack.from = (const float *)(const void *)l->staging.base, pack.to = (unsigned char *)p->w;
    pack.groups = p->groups, pack.taps = p->taps, pack.chunk = p->chunk;
    if (!l->status) {
        l->status = cuda_device_check(
            device, cuda_conv_pack(&pack, l->v->stream), "pack the vocoder's weights", l->error);
    }
    if (!l->status) {
        l->status = cuda_wait_stream(device, l->v->stream, "pack the vocoder's weights", l->error);
    }
}

/* [out][in * taps] */
static struct conv_pack conv_pack(const struct weight *w, int taps)
{
    int n_in = (int)(w->cols / taps), n_out = (int)w->rows;
    return (struct conv_pack){.n_out = n_out,
        .n_in = n_in,
        .n_phases = 1,
        .width = vocoder_pad(n_out),
        .m_step = w->cols,
        .c_step = taps,
        .j_step = 1};
}

static void load_conv(struct loader *l, const struct cuda_product *p, const struct conv_weights *w)
{
    load_pack(l, p, &w->w, conv_pack(&w->w, p->taps));
    load_floats(l, p->bias, w->bias, w->w.rows);
}

/* Transposed, [in][out * taps] with `rate` or 2 * rate taps: phase p of the outputs takes tap p of
 * its own time step and tap p + rate of the one before, which is tap 0 of the product. */
static void load_transposed(
    struct loader *l, const struct cuda_product *p, const struct conv_weights *w, int n_out, int rate)
{
    int64_t taps = w->w.cols / n_out;
    struct conv_pack pack = {.n_out = n_out,
        .n_in = (int)w->w.rows,
        .n_phases = rate,
        .width = vocoder_pad(n_out),
        .offset = taps > rate ? rate : 0,
        .m_step = taps,
        .c_step = w->w.cols,
        .j_step = -rate,
        .p_step = 1};
    load_pack(l, p, &w->w, pack);
    load_floats(l, p->bias, w->bias, n_out);
}

static void load_layer(struct loader *l, struct vocoder_layer *to, const struct layer_weights *w)
{
    const struct stack_config *s = &l->v->config->stack;
    int q_tiles = l->v->q_width / CONV_GROUP, kv_tiles = l->v->kv_width / CONV_GROUP;
    load_floats(l, to->input_norm, w->input_norm, s->width);
    load_floats(l, to->post_norm, w->post_norm, s->width);
    load_floats(l, to->attention_scale, w->attention_scale, s->width);
    load_floats(l, to->mlp_scale, w->mlp_scale, s->width);
    const struct weight *qkv[] = {&w->q, &w->k, &w->v};
    for (int i = 0; i < 3; i++) {
        struct conv_pack pack = conv_pack(qkv[i], 1);
        pack.first_tile = i == 0 ? 0 : q_tiles + (i - 1) * kv_tiles;
        pack.column_scale = to->input_norm;
        load_pack(l, &to->qkv, qkv[i], pack);
    }
    const struct weight *gate_up[] = {&w->gate, &w->up};
    for (int i = 0; i < 2; i++) {
        struct conv_pack pack = conv_pack(gate_up[i], 1);
        pack.half = i + 1;
        pack.column_scale = to->post_norm;
        load_pack(l, &to->gate_up, gate_up[i], pack);
    }
    load_pack(l, &to->o, &w->o, conv_pack(&w->o, 1));
    load_pack(l, &to->down, &w->down, conv_pack(&w->down, 1));
}

static void load_tables(struct loader *l)
{
    const struct codec_config *d = l->v->config;
    const struct vocoder_weights *w = &l->v->model->vocoder;
    int64_t half = d->codebook_dim / 2, size = d->codebook_size;
    float *table = memory_new((size_t)(size * half), sizeof *table);
    if (!table) {
        l->status = l->status ? l->status : error_memory(l->error, "the vocoder");
    }
    for (int g = 0; !l->status && g < d->n_codebooks; g++) {
        for (int64_t e = 0; e < size; e++) {
            float usage = w->table_usage[g][e], *row = table + e * half;
            usage = usage < usage_least ? usage_least : usage; /* NaN stays */
            weight_row(&w->table_sum[g], e, row);
            for (int64_t i = 0; i < half; i++) {
                row[i] /= usage;
            }
        }
        load_floats(l, l->v->tables + g * size * half, table, size * half);
    }
    memory_free(table);
    const struct weight *projections[] = {&w->first_projection, &w->rest_projection};
    for (int i = 0; i < 2; i++) {
        struct conv_pack pack = conv_pack(projections[i], 1);
        pack.first_in = i * (int)half;
        load_pack(l, &l->v->quantizer, projections[i], pack);
    }
}

static void load_stack(struct loader *l)
{
    struct cuda_vocoder *v = l->v;
    const struct vocoder_weights *w = &v->model->vocoder;
    const struct stack_config *s = &v->config->stack;
    float inv_freq[ATTEND_MAX_HEAD / 2];
    for (int i = 0; i < s->head / 2; i++) {
        inv_freq[i] = config_rotary(s, i);
    }
    load_floats(l, v->inv_freq, inv_freq, s->head / 2);
    load_floats(l, v->stack_norm, w->stack.norm, s->width);
    load_conv(l, &v->pre_conv, &w->pre_conv);
    load_conv(l, &v->stack_in, &w->stack_in);
    for (int i = 0; i < s->n_layers; i++) {
        load_layer(l, &v->layers[i], &w->stack.layers[i]);
    }
    struct conv_pack pack = conv_pack(&w->stack_out.w, 1);
    pack.column_scale = v->stack_norm;
    load_pack(l, &v->stack_out, &w->stack_out.w, pack);
    load_floats(l, v->stack_out.bias, w->stack_out.bias, v->config->latent);
}

/* [channels][taps] -> [taps][width] */
static void load_by_tap(struct loader *l, const float *to, const float *w, int channels, int taps)
{
    int width = vocoder_pad(channels);
    float *transposed = memory_new((size_t)width * (size_t)taps, sizeof *transposed);
    if (!transposed) {
        l->status = l->status ? l->status : error_memory(l->error, "the vocoder");
        return;
    }
    for (int j = 0; j < taps; j++) {
        for (int c = 0; c < channels; c++) {
            transposed[j * width + c] = w[c * taps + j];
        }
    }
    load_floats(l, to, transposed, (int64_t)width * taps);
    memory_free(transposed);
}

static void load_ups(struct loader *l)
{
    const struct codec_config *d = l->v->config;
    for (int i = 0; i < d->n_ratios; i++) {
        struct vocoder_up *u = &l->v->ups[i];
        const struct convnext_weights *w = &l->v->model->vocoder.upsample[i];
        load_transposed(l, &u->up, &w->up, d->latent, u->ratio);
        load_by_tap(l, u->taps, w->depthwise.w.data, d->latent, DEPTHWISE_TAPS);
        load_floats(l, u->taps_bias, w->depthwise.bias, d->latent);
        load_floats(l, u->norm, w->norm, d->latent);
        load_floats(l, u->norm_bias, w->norm_bias, d->latent);
        load_conv(l, &u->widen, &w->widen);
        load_conv(l, &u->narrow, &w->narrow);
        load_floats(l, u->gamma, w->gamma, d->latent);
    }
}

static void load_blocks(struct loader *l)
{
    struct cuda_vocoder *v = l->v;
    const struct vocoder_weights *w = &v->model->vocoder;
    load_conv(l, &v->first, &w->first);
    for (int i = 0; i < v->config->n_rates; i++) {
        struct vocoder_block *b = &v->blocks[i];
        load_snake(l, &b->snake, &w->blocks[i].snake, b->n_in);
        load_transposed(l, &b->up, &w->blocks[i].up, b->n_out, b->rate);
        for (int k = 0; k < VOCODER_UNITS; k++) {
            const struct unit_weights *u = &w->blocks[i].units[k];
            load_snake(l, &b->units[k].snake1, &u->snake1, b->n_out);
            load_conv(l, &b->units[k].conv1, &u->conv1);
            load_snake(l, &b->units[k].snake2, &u->snake2, b->n_out);
            load_conv(l, &b->units[k].conv2, &u->conv2);
        }
    }
    int channels = v->blocks[v->config->n_rates - 1].n_out;
    load_snake(l, &v->last_snake, &w->last_snake, channels);
    load_by_tap(l, v->last_w, w->last.w.data, channels, (int)(w->last.w.cols / channels));
    v->last_bias = w->last.bias[0];
}

/* Bytes of the largest tensor that goes through the staging buffer. */
static uint64_t staging_bytes(const struct cuda_vocoder *v)
{
    const struct codec_config *d = v->config;
    const struct vocoder_weights *w = &v->model->vocoder;
    int64_t most = max(w->first.w.rows * w->first.w.cols, w->pre_conv.w.rows * w->pre_conv.w.cols);
    most = max(most, w->stack_in.w.rows * w->stack_in.w.cols);
    most = max(most, w->first_projection.rows * w->first_projection.cols);
    for (int i = 0; i < d->n_ratios; i++) {
        most = max(most, w->upsample[i].up.w.rows * w->upsample[i].up.w.cols);
        most = max(most, w->upsample[i].widen.w.rows * w->upsample[i].widen.w.cols);
    }
    for (int i = 0; i < d->n_rates; i++) {
        most = max(most, w->blocks[i].up.w.rows * w->blocks[i].up.w.cols);
        most = max(most, w->blocks[i].units[0].conv1.w.rows * w->blocks[i].units[0].conv1.w.cols);
    }
    for (int i = 0; i < d->stack.n_layers; i++) {
        const struct layer_weights *l = &w->stack.layers[i];
        most = max(most, max(l->q.rows * l->q.cols, l->gate.rows * l->gate.cols));
        most = max(most, l->k.rows * l->k.cols);
    }
    return (uint64_t)most * sizeof(float);
}

utter_status vocoder_load(struct cuda_vocoder *v, utter_error *error)
{
    struct loader l = {.v = v, .error = error};
    l.status = cuda_upload_open(&l.upload, v->device, error);
    if (!l.status) {
        l.staging.used = staging_bytes(v);
        l.status = cuda_arena_open(&l.staging, v->device, "room to load the vocoder through", error);
    }
    load_tables(&l);
    load_stack(&l);
    load_ups(&l);
    load_blocks(&l);
    if (!l.status) {
        l.status = cuda_upload_finish(l.upload, error);
    }
    cuda_upload_close(&l.upload);
    cuda_arena_close(&l.staging);
    return l.status;
}
