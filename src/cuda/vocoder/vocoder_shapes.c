/* SPDX-License-Identifier: Apache-2.0
 * Shapes of the vocoder on the GPU and where everything lies: products, small vectors, activations, a lane's state.
 * Comes in: the config. Goes out: offsets and sizes, counted before anything is allocated. */
#include "base/minmax.h"
#include "cuda/vocoder/vocoder_parts.h"

enum { PRE_TAPS = 3, CONV_TAPS = 7 };

/* ---- Shapes ---- */

/* Parts of the steps that are summed apart. Few columns: weights come from memory, and every warp helps to fetch
 * them; else as many as it takes for one frame to fill a large device. Part of the result: never a device's. */
static int choose_splits(int n_tiles, int columns, int n_chunks)
{
    const int enough_warps = 700;
    int splits = 1;
    while (splits < 8 && n_chunks % (2 * splits) == 0 &&
           (columns <= 8 || n_tiles * ((columns + 15) / 16) * splits < enough_warps)) {
        splits *= 2;
    }
    return splits;
}

static int choose_chunk(int groups, int taps)
{
    if (taps == 1) {
        return 1;
    }
    return groups % 3 == 0 ? 3 : groups % 4 == 0 ? 4 : 1;
}

/* `columns` of one frame; n_out with padding and all phases. */
static struct cuda_product product_of(int n_out, int n_in, int taps, int dilation, int columns)
{
    struct cuda_product p = {.n_tiles = n_out / CONV_GROUP,
        .groups = vocoder_pad(n_in) / CONV_GROUP,
        .taps = taps,
        .dilation = dilation};
    p.chunk = choose_chunk(p.groups, taps);
    p.splits = choose_splits(p.n_tiles, columns, p.groups / p.chunk);
    return p;
}

static struct vocoder_past past_of(struct cuda_vocoder *v, int row_bytes, int n_rows)
{
    struct vocoder_past past = {v->lane_bytes, row_bytes, n_rows};
    v->lane_bytes += (int64_t)row_bytes * n_rows;
    return past;
}

static int row_bytes(int channels)
{
    return vocoder_pad(channels) / CONV_GROUP * CONV_GROUP_BYTES;
}

static void describe_stack(struct cuda_vocoder *v)
{
    const struct codec_config *d = v->config;
    const struct stack_config *s = &d->stack;
    int width = vocoder_pad(s->width), q = s->n_heads * s->head, kv = s->n_kv_heads * s->head;
    v->q_width = vocoder_pad(q), v->kv_width = vocoder_pad(kv);
    v->stack_in = product_of(width, d->latent, 1, 1, 1);
    v->stack_out = product_of(vocoder_pad(d->latent), s->width, 1, 1, 1);
    for (int i = 0; i < s->n_layers; i++) {
        struct vocoder_layer *l = &v->layers[i];
        l->qkv = product_of(v->q_width + 2 * v->kv_width, s->width, 1, 1, 1);
        l->o = product_of(width, q, 1, 1, 1);
        l->gate_up = product_of((s->inner + 7) / 8 * CONV_GROUP, s->width, 1, 1, 1);
        l->down = product_of(width, s->inner, 1, 1, 1);
    }
}

static void describe_ups(struct cuda_vocoder *v)
{
    const struct codec_config *d = v->config;
    int width = vocoder_pad(d->latent), time_steps = 1;
    for (int i = 0; i < d->n_ratios; i++) {
        struct vocoder_up *u = &v->ups[i];
        u->ratio = d->ratios[i];
        u->up = product_of(width * u->ratio, d->latent, 1, 1, time_steps);
        time_steps *= u->ratio;
        u->time_steps = time_steps;
        u->widen = product_of(vocoder_pad(VOCODER_WIDEN * d->latent), d->latent, 1, 1, time_steps);
        u->narrow = product_of(width, VOCODER_WIDEN * d->latent, 1, 1, time_steps);
        u->past = past_of(v, width * (int)sizeof(float), DEPTHWISE_TAPS - 1);
    }
    v->first = product_of(vocoder_pad(d->decoder_width), d->latent, CONV_TAPS, 1, time_steps);
    v->first_past = past_of(v, row_bytes(d->latent), CONV_TAPS - 1);
}

static void describe_blocks(struct cuda_vocoder *v)
{
    const struct codec_config *d = v->config;
    int time_steps = v->ups[d->n_ratios - 1].time_steps;
    for (int i = 0; i < d->n_rates; i++) {
        struct vocoder_block *b = &v->blocks[i];
        b->n_in = d->decoder_width >> i, b->n_out = b->n_in / 2, b->rate = d->rates[i];
        b->width = vocoder_pad(b->n_out);
        b->up = product_of(b->width * b->rate, b->n_in, 2, 1, time_steps);
        b->past = past_of(v, row_bytes(b->n_in), 1);
        time_steps *= b->rate;
        b->time_steps = time_steps;
        for (int k = 0, dilation = 1; k < VOCODER_UNITS; k++, dilation *= 3) {
            struct vocoder_unit *u = &b->units[k];
            u->conv1 = product_of(b->width, b->n_out, CONV_TAPS, dilation, time_steps);
            u->conv2 = product_of(b->width, b->n_out, 1, 1, time_steps);
            u->past = past_of(v, row_bytes(b->n_out), (CONV_TAPS - 1) * dilation);
        }
    }
    v->last_past = past_of(v, row_bytes(v->blocks[d->n_rates - 1].n_out), CONV_TAPS - 1);
}

utter_status vocoder_describe(struct cuda_vocoder *v, utter_error *error)
{
    const struct codec_config *d = v->config;
    const struct stack_config *s = &d->stack;
    if (s->n_layers > VOCODER_MAX_LAYERS || s->head > ATTEND_MAX_HEAD || s->head % 2 || s->window < 1 ||
        s->window > ATTEND_MAX_WINDOW || d->latent > DEPTHWISE_MAX_CHANNELS || d->n_ratios < 1 ||
        d->n_rates < 1 || s->n_heads % s->n_kv_heads) {
        return error_set(error, UTTER_E_MODEL,
            "cuda: the codec's decoder has a shape that the GPU kernels do not hold: %d layers, heads "
            "of %d, window "
            "%d, %d channels (device cpu can run it)",
            s->n_layers, s->head, s->window, d->latent);
    }
    v->lane_bytes = CUDA_ALIGN; /* the position */
    v->quantizer = product_of(vocoder_pad(d->codebook_dim), d->codebook_dim / 2 * 2, 1, 1, 1);
    v->pre_conv = product_of(vocoder_pad(d->latent), d->codebook_dim, PRE_TAPS, 1, 1);
    v->pre_past = past_of(v, row_bytes(d->codebook_dim), PRE_TAPS - 1);
    describe_stack(v);
    describe_ups(v);
    describe_blocks(v);
    v->past_bytes = v->lane_bytes;
    v->cache_capacity = s->window + VOCODER_MAX_FRAMES - 1;
    for (int i = 0; i < s->n_layers; i++) {
        for (int k = 0; k < 2; k++) {
            v->cache_at[i][k] = v->lane_bytes;
            v->lane_bytes +=
                (int64_t)v->cache_capacity * s->n_kv_heads * s->head * (int64_t)sizeof(float);
        }
    }
    v->lane_bytes = (v->lane_bytes + CUDA_ALIGN - 1) / CUDA_ALIGN * CUDA_ALIGN;
    return UTTER_OK;
}

static double numbers_of(const struct cuda_product *p, int columns)
{
    return 256.0 * p->n_tiles * p->groups * p->taps * columns; /* tiles of 16 outputs by 16 inputs */
}

double cuda_vocoder_products(const struct cuda_vocoder *v)
{
    const struct codec_config *d = v->config;
    double n = numbers_of(&v->quantizer, 1) + numbers_of(&v->pre_conv, 1) +
               numbers_of(&v->stack_in, 1) + numbers_of(&v->stack_out, 1);
    int steps = 1;
    for (int i = 0; i < d->stack.n_layers; i++) {
        const struct vocoder_layer *l = &v->layers[i];
        n += numbers_of(&l->qkv, 1) + numbers_of(&l->o, 1) + numbers_of(&l->gate_up, 1) +
             numbers_of(&l->down, 1);
    }
    for (int i = 0; i < d->n_ratios; i++) { /* a transposed convolution's columns are its inputs */
        const struct vocoder_up *u = &v->ups[i];
        n += numbers_of(&u->up, steps) + numbers_of(&u->widen, u->time_steps) +
             numbers_of(&u->narrow, u->time_steps);
        steps = u->time_steps;
    }
    n += numbers_of(&v->first, steps);
    for (int i = 0; i < d->n_rates; i++) {
        const struct vocoder_block *block = &v->blocks[i];
        n += numbers_of(&block->up, steps);
        steps = block->time_steps;
        for (int k = 0; k < VOCODER_UNITS; k++) {
            n += numbers_of(&block->units[k].conv1, steps) + numbers_of(&block->units[k].conv2, steps);
        }
    }
    return n;
}

/* ---- Memory ---- */

static float *take_floats(struct cuda_arena *arena, int64_t n)
{
    return cuda_arena_take(arena, (uint64_t)n * sizeof(float));
}

static void take_product(struct cuda_arena *arena, struct cuda_product *p, int bias)
{
    p->w = cuda_arena_take(
        arena, (uint64_t)p->n_tiles * (uint64_t)(p->groups * p->taps) * CONV_STEP_BYTES);
    p->bias = bias ? take_floats(arena, bias) : NULL;
}

static void take_snake(struct cuda_arena *arena, struct vocoder_snake *s, int width)
{
    s->a = take_floats(arena, width);
    s->b = take_floats(arena, width);
}

static void take_weights(struct cuda_vocoder *v, struct cuda_arena *a)
{
    const struct codec_config *d = v->config;
    int width = vocoder_pad(d->stack.width), latent = vocoder_pad(d->latent);
    v->tables = take_floats(a, (int64_t)d->n_codebooks * d->codebook_size * (d->codebook_dim / 2));
    v->inv_freq = take_floats(a, d->stack.head / 2);
    v->stack_norm = take_floats(a, width);
    take_product(a, &v->quantizer, 0);
    take_product(a, &v->pre_conv, latent);
    take_product(a, &v->stack_in, width);
    take_product(a, &v->stack_out, latent);
    take_product(a, &v->first, vocoder_pad(d->decoder_width));
    for (int i = 0; i < d->stack.n_layers; i++) {
        struct vocoder_layer *l = &v->layers[i];
        take_product(a, &l->qkv, 0);
        take_product(a, &l->o, 0);
        take_product(a, &l->gate_up, 0);
        take_product(a, &l->down, 0);
        l->input_norm = take_floats(a, width), l->post_norm = take_floats(a, width);
        l->attention_scale = take_floats(a, width), l->mlp_scale = take_floats(a, width);
    }
    for (int i = 0; i < d->n_ratios; i++) {
        struct vocoder_up *u = &v->ups[i];
        take_product(a, &u->up, latent);
        take_product(a, &u->widen, vocoder_pad(VOCODER_WIDEN * d->latent));
        take_product(a, &u->narrow, latent);
        u->taps = take_floats(a, (int64_t)DEPTHWISE_TAPS * latent);
        u->taps_bias = take_floats(a, latent);
        u->norm = take_floats(a, latent), u->norm_bias = take_floats(a, latent);
        u->gamma = take_floats(a, latent);
    }
    for (int i = 0; i < d->n_rates; i++) {
        struct vocoder_block *b = &v->blocks[i];
        take_snake(a, &b->snake, vocoder_pad(b->n_in));
        take_product(a, &b->up, b->width);
        for (int k = 0; k < VOCODER_UNITS; k++) {
            take_product(a, &b->units[k].conv1, b->width);
            take_product(a, &b->units[k].conv2, b->width);
            take_snake(a, &b->units[k].snake1, b->width);
            take_snake(a, &b->units[k].snake2, b->width);
        }
    }
    int channels = v->blocks[d->n_rates - 1].width;
    take_snake(a, &v->last_snake, channels);
    v->last_w = take_floats(a, (int64_t)CONV_TAPS * channels);
}

static void *take_rows(struct cuda_arena *arena, int64_t n, int channels)
{
    return cuda_arena_take(arena, (uint64_t)n * (uint64_t)row_bytes(channels));
}

/* Activations of n frames. */
static void take_activations(struct cuda_vocoder *v, struct cuda_arena *a, int64_t n)
{
    const struct codec_config *d = v->config;
    int width = vocoder_pad(d->stack.width), latent = vocoder_pad(d->latent);
    int64_t most = max(latent, d->codebook_dim + CONV_GROUP), wave = 0;
    v->gathered = take_rows(a, n, d->codebook_dim);
    v->quantized = take_rows(a, n, d->codebook_dim);
    v->latent = take_rows(a, n, d->latent);
    v->x = take_floats(a, n * width);
    v->x_ready = take_rows(a, n, d->stack.width);
    v->qkv = take_floats(a, n * (v->q_width + 2 * v->kv_width));
    v->mixed = take_rows(a, n, d->stack.n_heads * d->stack.head);
    v->inner = take_rows(a, n, d->stack.inner);
    v->stacked = take_rows(a, n, d->latent);
    for (int i = 0; i < d->n_ratios; i++) {
        struct vocoder_up *u = &v->ups[i];
        u->raw = take_floats(a, n * u->time_steps * latent);
        u->normed = take_rows(a, n * u->time_steps, d->latent);
        u->wide = take_rows(a, n * u->time_steps, VOCODER_WIDEN * d->latent);
        u->ready = take_rows(a, n * u->time_steps, d->latent);
        most = max(most, (int64_t)u->time_steps * max(latent, vocoder_pad(d->decoder_width)));
    }
    for (int i = 0; i < d->n_rates; i++) {
        struct vocoder_block *b = &v->blocks[i];
        b->ready = take_rows(a, n * b->time_steps / b->rate, b->n_in);
        for (int k = 0; k < VOCODER_UNITS; k++) {
            b->units[k].ready = take_rows(a, n * b->time_steps, b->n_out);
        }
        wave = max(wave, (int64_t)b->time_steps * b->width);
    }
    v->last_ready =
        take_rows(a, n * v->blocks[d->n_rates - 1].time_steps, v->blocks[d->n_rates - 1].n_out);
    v->wave = take_floats(a, n * wave);
    v->unit_inner = cuda_arena_take(a, (uint64_t)(n * wave) * 4);
    v->tapped = take_floats(a, n * most);
}

void vocoder_lay_out(struct cuda_vocoder *v, struct cuda_arena *arena)
{
    v->call = cuda_arena_take(arena, sizeof *v->call);
    v->state = cuda_arena_take(arena, (uint64_t)v->lane_bytes * (uint64_t)v->n_lanes);
    take_weights(v, arena);
    take_activations(v, arena, v->n_slots);
}
