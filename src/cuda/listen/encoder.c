/* SPDX-License-Identifier: Apache-2.0
 * A recording through the codec's encoder on the GPU: convolutions, transformer, quantizer. The convolutions work in
 * pieces of positions (960 samples each), every piece with as many positions in front as its first one can see, which
 * are made again and thrown away: memory for them does not grow with the recording, and the numbers are those of one
 * piece. */
#include "cuda/listen/encoder.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/minmax.h"
#include "cuda/listen/listen_room.h"

enum {
    PIECE_POSITIONS = 128,
    MLP_ROWS = 4096,
    ENCODE_MAX_LAYERS = 64,
    DOWN_TAPS = 4,
    DOWN_RATE = 2,
    LONGEST_CHAIN = 256 /* terms of a product that the official program's library sums in one chain */
};

struct encode_stage {
    struct listen_conv narrow, widen, down;
    int channels, rate;
    int64_t capacity;        /* time steps of a piece */
    float *plain, *in, *out; /* [capacity][channels] */
    float *inner;            /* [capacity][channels / compress] */
};

struct encode_layer {
    const float *norm1, *bias1, *norm2, *bias2, *scale1, *scale2;
    struct listen_conv q, k, v, o, fc1, fc2;
};

struct encode {
    struct listen_room room;
    const struct model *model;
    const struct codec_config *codec;
    backend_progress_fn *progress;
    void *user;
    int64_t n_samples, n, n_frames; /* n: positions */
    int position_samples, halo;     /* halo: positions in front of a piece */

    struct listen_conv first, last, down, project[2];
    struct encode_stage stages[CONFIG_MAX_RATES];
    struct encode_layer layers[ENCODE_MAX_LAYERS];
    const float *inv_freq;
    const void *tables[CONFIG_MAX_CODEBOOKS];
    const float *usage[CONFIG_MAX_CODEBOOKS];

    float *pcm;                            /* of a piece */
    float *tail, *made;                    /* [piece][channels], [piece][width] */
    float *x, *normed, *q, *k, *v, *mixed; /* [n][width] and so on */
    float *inner;                          /* [MLP_ROWS][inner] */
    float *halved, *left;                  /* [n_frames][width], [n_frames][dim] */
    float *rows, *columns, *norms;
    int32_t *codes; /* device */
    float *host;    /* [n][width], to look for NaN */
};

static void report(struct encode *e, double done)
{
    struct listen_room *r = &e->room;
    if (!r->status && e->progress && !e->progress(e->user, done)) {
        r->status = error_set(r->error, UTTER_E_CANCELLED, "encoding of the recording was stopped");
    }
}

/* ---- Memory and weights ---- */

/* Positions in front of a piece that its first one can see, rounded up. */
static int halo_of(const struct encoder_config *c, int position_samples)
{
    int64_t step = 1, reach = c->first_taps - 1;
    for (int i = 0; i < c->n_rates; i++) {
        reach += (c->residual_taps - 1) * step + c->rates[i] * step;
        step *= c->rates[i];
    }
    reach += (c->last_taps - 1) * step;
    return (int)((reach + position_samples - 1) / position_samples);
}

static void take_wave(struct encode *e)
{
    struct listen_room *r = &e->room;
    const struct encoder_config *c = &e->codec->encoder;
    const struct encoder_weights *w = &e->model->encoder;
    int64_t capacity = (int64_t)(PIECE_POSITIONS + e->halo) * e->position_samples;
    int channels = c->filters;
    e->pcm = listen_take(r, capacity);
    e->first = listen_put_conv(r, &w->first.w, w->first.bias, c->first_taps);
    for (int i = 0; i < c->n_rates; i++) {
        struct encode_stage *s = &e->stages[i];
        s->channels = channels, s->rate = c->rates[i], s->capacity = capacity;
        s->narrow =
            listen_put_conv(r, &w->stages[i].narrow.w, w->stages[i].narrow.bias, c->residual_taps);
        s->widen = listen_put_conv(r, &w->stages[i].widen.w, w->stages[i].widen.bias, 1);
        s->down = listen_put_conv(r, &w->stages[i].down.w, w->stages[i].down.bias, 2 * s->rate);
        s->plain = listen_take(r, capacity * channels);
        s->in = listen_take(r, capacity * channels);
        s->inner = listen_take(r, capacity * (channels / c->compress));
        s->out = listen_take(r, capacity * channels);
        capacity /= s->rate;
        channels *= 2;
    }
    e->last = listen_put_conv(r, &w->last.w, w->last.bias, c->last_taps);
    e->tail = listen_take(r, capacity * channels);
    e->made = listen_take(r, capacity * c->stack.width);
}

static void take_stack(struct encode *e, const float *inv_freq)
{
    struct listen_room *r = &e->room;
    const struct stack_config *s = &e->codec->encoder.stack;
    uint64_t bytes = (uint64_t)s->width * sizeof(float);
    for (int i = 0; i < s->n_layers; i++) {
        struct encode_layer *l = &e->layers[i];
        const struct encoder_layer *w = &e->model->encoder.layers[i];
        l->norm1 = listen_put(r, w->input_norm, bytes),
        l->bias1 = listen_put(r, w->input_norm_bias, bytes);
        l->norm2 = listen_put(r, w->post_norm, bytes),
        l->bias2 = listen_put(r, w->post_norm_bias, bytes);
        l->scale1 = listen_put(r, w->attention_scale, bytes);
        l->scale2 = listen_put(r, w->mlp_scale, bytes);
        l->q = listen_put_conv(r, &w->q, NULL, 1);
        l->k = listen_put_conv(r, &w->k, NULL, 1);
        l->v = listen_put_conv(r, &w->v, NULL, 1);
        l->o = listen_put_conv(r, &w->o, NULL, 1);
        l->fc1 = listen_put_conv(r, &w->fc1, NULL, 1);
        l->fc2 = listen_put_conv(r, &w->fc2, NULL, 1);
    }
    e->inv_freq = listen_put(r, inv_freq, (uint64_t)(s->head / 2) * sizeof(float));
    e->x = listen_take(r, e->n * s->width);
    e->normed = listen_take(r, e->n * s->width);
    e->q = listen_take(r, e->n * s->n_heads * s->head);
    e->k = listen_take(r, e->n * s->n_kv_heads * s->head);
    e->v = listen_take(r, e->n * s->n_kv_heads * s->head);
    e->mixed = listen_take(r, e->n * s->n_heads * s->head);
    e->inner = listen_take(r, min(e->n, MLP_ROWS) * s->inner);
}

static void take_codes(struct encode *e)
{
    struct listen_room *r = &e->room;
    const struct encoder_weights *w = &e->model->encoder;
    int64_t dim = e->codec->encoder.codebook_dim, size = e->codec->codebook_size;
    e->down = listen_put_conv(r, &w->down, NULL, DOWN_TAPS);
    e->project[0] = listen_put_conv(r, &w->first_projection, NULL, 1);
    e->project[1] = listen_put_conv(r, &w->rest_projection, NULL, 1);
    for (int g = 0; g < e->codec->n_codebooks; g++) {
        e->tables[g] = listen_put(
            r, w->table_sum[g].data, (uint64_t)(size * dim) * dtype_bytes(w->table_sum[g].type));
        e->usage[g] = listen_put(r, w->table_usage[g], (uint64_t)size * sizeof(float));
    }
    e->halved = listen_take(r, e->n_frames * e->codec->encoder.stack.width);
    e->left = listen_take(r, e->n_frames * dim);
    e->rows = listen_take(r, size * dim);
    e->columns = listen_take(r, size * dim);
    e->norms = listen_take(r, size);
    e->codes = (int32_t *)(void *)listen_take(r, e->n_frames * e->codec->n_codebooks);
}

static void take_all(struct encode *e)
{
    const struct stack_config *s = &e->codec->encoder.stack;
    float inv_freq[LISTEN_MAX_HEAD / 2];
    for (int i = 0; i < s->head / 2; i++) {
        inv_freq[i] = config_rotary(s, i);
    }
    take_wave(e);
    take_stack(e, inv_freq);
    take_codes(e);
}

/* ---- Convolutions ---- */

/* n time steps in s->in and s->plain -> `to` with ELU, and `plain` (or NULL) without. Returns how
 * many. */
static int64_t run_stage(
    struct encode *e, const struct encode_stage *s, int64_t n, float *to, float *plain)
{
    int64_t n_out = (n + s->rate - 1) / s->rate;
    struct listen_conv c = s->narrow;
    c.x = s->in, c.n_rows = c.n_t = n, c.left = c.taps - 1;
    c.y = s->inner, c.after = LISTEN_ELU;
    listen_run(&e->room, &c);
    c = s->widen;
    c.x = s->inner, c.n_rows = c.n_t = n;
    c.y = s->out, c.residual = s->plain, c.after = LISTEN_ELU;
    listen_run(&e->room, &c);
    c = s->down;
    c.x = s->out, c.n_rows = n, c.n_t = n_out;
    c.step = s->rate, c.left = s->rate;
    c.y = to, c.plain = plain, c.after = LISTEN_ELU;
    listen_run(&e->room, &c);
    return n_out;
}

/* Positions p0 .. of the recording, as many as a piece has. Returns the position after the last. */
static int64_t run_piece(struct encode *e, const float *pcm, int64_t p0)
{
    struct listen_room *r = &e->room;
    int64_t begin = max(p0 - e->halo, 0);
    int64_t end = min(p0 + PIECE_POSITIONS, e->n);
    int64_t s0 = begin * e->position_samples, s1 = end * e->position_samples;
    int64_t n = min(s1, e->n_samples) - s0, width = e->codec->encoder.stack.width;
    int n_stages = e->codec->encoder.n_rates;
    listen_wait(r);
    if (!r->status) {
        listen_note(r, cudaMemcpyAsync(e->pcm, pcm + s0, (size_t)n * sizeof *pcm,
                           cudaMemcpyHostToDevice, r->stream));
    }
    struct listen_conv c = e->first;
    c.x = e->pcm, c.n_rows = c.n_t = n, c.left = c.taps - 1;
    c.y = e->stages[0].in, c.plain = e->stages[0].plain, c.after = LISTEN_ELU;
    listen_run(r, &c);
    for (int i = 0; i < n_stages; i++) {
        bool more = i + 1 < n_stages;
        n = run_stage(e, &e->stages[i], n, more ? e->stages[i + 1].in : e->tail,
            more ? e->stages[i + 1].plain : NULL);
    }
    c = e->last;
    c.x = e->tail, c.n_rows = c.n_t = n, c.left = c.taps - 1;
    c.y = e->made;
    listen_run(r, &c);
    if (!r->status) {
        listen_note(
            r, cudaMemcpyAsync(e->x + p0 * width, e->made + (p0 - begin) * width,
                   (size_t)((end - p0) * width) * sizeof(float), cudaMemcpyDeviceToDevice, r->stream));
    }
    return end;
}

/* ---- Transformer ---- */

static void run_norm(struct encode *e, const float *w, const float *bias)
{
    const struct stack_config *s = &e->codec->encoder.stack;
    struct listen_norm norm = {e->normed, e->x, w, bias, e->n, s->width, s->norm_eps};
    if (!e->room.status) {
        listen_note(&e->room, listen_norm_run(&norm, e->room.stream));
    }
}

static void run_linear(struct encode *e, struct listen_conv c, float *y, const float *x, int64_t n)
{
    c.y = y, c.x = x, c.n_rows = c.n_t = n;
    listen_run(&e->room, &c);
}

/* x += scale * product */
static void run_add(
    struct encode *e, struct listen_conv c, float *x, const float *from, int64_t n, const float *scale)
{
    c.residual = x, c.scale = scale;
    run_linear(e, c, x, from, n);
}

static void run_layer(struct encode *e, const struct encode_layer *l)
{
    struct listen_room *r = &e->room;
    const struct stack_config *s = &e->codec->encoder.stack;
    run_norm(e, l->norm1, l->bias1);
    run_linear(e, l->q, e->q, e->normed, e->n);
    run_linear(e, l->k, e->k, e->normed, e->n);
    run_linear(e, l->v, e->v, e->normed, e->n);
    struct listen_turn turn = {e->q, e->k, e->inv_freq, e->n, s->n_heads, s->n_kv_heads, s->head};
    struct listen_attend attend = {e->mixed, e->q, e->k, e->v, e->n, s->n_heads, s->n_kv_heads, s->head,
        1.0f / sqrtf((float)s->head)};
    if (!r->status) {
        listen_note(r, listen_turn_run(&turn, r->stream));
    }
    if (!r->status) {
        listen_note(r, listen_attend_run(&attend, r->stream));
    }
    run_add(e, l->o, e->x, e->mixed, e->n, l->scale1);
    run_norm(e, l->norm2, l->bias2);
    for (int64_t t = 0; t < e->n; t += MLP_ROWS) {
        int64_t n = min(e->n - t, MLP_ROWS);
        struct listen_conv c = l->fc1;
        c.after = LISTEN_GELU;
        run_linear(e, c, e->inner, e->normed + t * s->width, n);
        run_add(e, l->fc2, e->x + t * s->width, e->inner, n, l->scale2);
    }
}

/* NaN would find a code all the same. */
static void check_numbers(struct encode *e)
{
    struct listen_room *r = &e->room;
    size_t all = (size_t)e->n * (size_t)e->codec->encoder.stack.width;
    listen_wait(r);
    if (!r->status) {
        listen_note(r, cudaMemcpy(e->host, e->x, all * sizeof(float), cudaMemcpyDeviceToHost));
    }
    for (size_t i = 0; !r->status && i < all; i++) {
        if (!isfinite(e->host[i])) {
            r->status = error_set(r->error, UTTER_E_NUMBER,
                "the encoder came to a value that is not a number (damaged weights?)");
        }
    }
}

/* ---- Codes ---- */

static void run_codes(struct encode *e, int32_t *codes)
{
    struct listen_room *r = &e->room;
    const struct codec_config *d = e->codec;
    int dim = d->encoder.codebook_dim, n_terms = dim + 2,
        n_chains = (n_terms + LONGEST_CHAIN - 1) / LONGEST_CHAIN;
    struct listen_conv c = e->down;
    c.step = DOWN_RATE, c.left = DOWN_TAPS - DOWN_RATE, c.edge = LISTEN_REPEAT;
    c.x = e->x, c.n_rows = e->n, c.y = e->halved, c.n_t = e->n_frames;
    listen_run(r, &c);
    for (int g = 0; g < d->n_codebooks; g++) {
        if (g == 0 ||
            g == d->n_semantic) { /* the two kinds are coded from the same row, independently */
            run_linear(e, e->project[g != 0], e->left, e->halved, e->n_frames);
        }
        struct listen_codebook book = {.sum = e->tables[g],
            .type = e->model->encoder.table_sum[g].type,
            .usage = e->usage[g],
            .rows = e->rows,
            .columns = e->columns,
            .norms = e->norms,
            .size = d->codebook_size,
            .dim = dim,
            .terms = (n_terms + n_chains - 1) / n_chains,
            .left = e->left,
            .codes = e->codes + g,
            .codes_stride = d->n_codebooks,
            .n = e->n_frames};
        if (!r->status) {
            listen_note(r, listen_codebook_run(&book, r->stream));
        }
    }
    size_t bytes = (size_t)(e->n_frames * d->n_codebooks) * sizeof *codes;
    listen_wait(r);
    if (!r->status) {
        listen_note(r, cudaMemcpy(codes, e->codes, bytes, cudaMemcpyDeviceToHost));
    }
}

static utter_status check_shape(const struct encode *e)
{
    const struct encoder_config *c = &e->codec->encoder;
    if (c->stack.n_layers > ENCODE_MAX_LAYERS || c->stack.head > LISTEN_MAX_HEAD || c->stack.head % 2 ||
        c->codebook_dim > LISTEN_MAX_DIM) {
        return error_set(e->room.error, UTTER_E_MODEL,
            "cuda: the codec's encoder has a shape that the GPU kernels do not hold: %d layers, heads "
            "of %d, "
            "codes of %d (device cpu can run it)",
            c->stack.n_layers, c->stack.head, c->codebook_dim);
    }
    return UTTER_OK;
}

static void run_all(struct encode *e, const float *pcm, int32_t *codes)
{
    for (int64_t p = 0; !e->room.status && p < e->n;) {
        p = run_piece(e, pcm, p);
        report(e, 0.6 * (double)p / (double)e->n);
    }
    for (int i = 0; !e->room.status && i < e->codec->encoder.stack.n_layers; i++) {
        run_layer(e, &e->layers[i]);
        listen_wait(&e->room); /* of a long recording each has a patience of its own */
    }
    check_numbers(e);
    report(e, 0.9);
    run_codes(e, codes);
    report(e, 1);
}

utter_status cuda_encode(const struct model *model, struct cuda_device *device, const float *pcm,
    size_t n_samples, int32_t *codes, backend_progress_fn *progress, void *user, utter_error *error)
{
    struct encode *e = memory_new(1, sizeof *e);
    if (!e) {
        return error_memory(error, "the encoder");
    }
    e->room = (struct listen_room){.device = device, .what = "the codec's encoder", .error = error};
    e->model = model, e->codec = &model->config->codec, e->progress = progress, e->user = user;
    e->position_samples = e->codec->frame_samples / 2;
    e->n_samples = (int64_t)n_samples;
    e->n = (e->n_samples + e->position_samples - 1) / e->position_samples;
    e->n_frames = (e->n + 1) / 2;
    e->halo = halo_of(&e->codec->encoder, e->position_samples);
    e->room.status = check_shape(e);
    e->host = memory_new((size_t)e->n, (size_t)e->codec->encoder.stack.width * sizeof *e->host);
    if (!e->room.status && !e->host) {
        e->room.status = error_memory(error, "the encoder");
    }
    if (!e->room.status) {
        take_all(e);
        listen_room_open(&e->room);
    }
    if (!e->room.status) {
        take_all(e);
        listen_room_ready(&e->room);
    }
    run_all(e, pcm, codes);
    utter_status status = e->room.status;
    listen_room_close(&e->room);
    memory_free(e->host);
    memory_free(e);
    return status;
}
