/* SPDX-License-Identifier: Apache-2.0
 * The speaker encoder on the GPU: log-mel features -> x-vector. Every convolution keeps the length; past the ends the
 * recording is mirrored. */
#include "cuda/listen/speaker.h"

#include <math.h>

#include "base/memory.h"
#include "base/minmax.h"
#include "cuda/listen/listen_room.h"

struct speak_block {
    struct listen_conv conv_in, conv_out, squeeze, excite;
    struct listen_conv groups[CONFIG_SPEAKER_GROUPS];
};

struct speak {
    struct listen_room room;
    const struct model *model;
    const struct speaker_config *config;
    int64_t n;
    int channels, last; /* of the blocks, and of all but the first together */
    const float *mels;
    struct speak_block blocks[CONFIG_SPEAKER_BLOCKS];
    struct listen_conv join, attend1, attend2, out;
    float *x, *t, *u;    /* [n][channels] */
    float *joined, *mfa; /* [n][last] */
    float *attention;    /* [n][attention channels] */
    float *pooled;       /* [2 * last]: means, deviations */
    float *small, *narrow, *vector;
};

static struct listen_conv put(struct speak *s, const struct conv_weights *w, int taps, int dilation)
{
    struct listen_conv c = listen_put_conv(&s->room, &w->w, w->bias, taps);
    c.dilation = dilation;
    c.left = taps / 2 * dilation;
    c.edge = LISTEN_MIRROR;
    return c;
}

static void take_all(struct speak *s, const float *mels)
{
    struct listen_room *r = &s->room;
    const struct speaker_config *c = s->config;
    const struct speaker_weights *w = &s->model->speaker;
    s->mels = listen_put(r, mels, (uint64_t)(s->n * c->n_mels) * sizeof(float));
    s->blocks[0].conv_in = put(s, &w->blocks[0].conv_in, c->taps[0], c->dilations[0]);
    for (int i = 1; i < c->n_blocks; i++) {
        struct speak_block *b = &s->blocks[i];
        b->conv_in = put(s, &w->blocks[i].conv_in, 1, 1);
        b->conv_out = put(s, &w->blocks[i].conv_out, 1, 1);
        b->squeeze = put(s, &w->blocks[i].squeeze, 1, 1);
        b->excite = put(s, &w->blocks[i].excite, 1, 1);
        for (int g = 0; g < c->groups - 1; g++) {
            b->groups[g] = put(s, &w->blocks[i].groups[g], c->taps[i], c->dilations[i]);
        }
    }
    s->join = put(s, &w->join, 1, 1);
    s->attend1 = put(s, &w->attend1, 1, 1);
    s->attend2 = put(s, &w->attend2, 1, 1);
    s->out = put(s, &w->out, 1, 1);
    s->x = listen_take(r, s->n * s->channels);
    s->t = listen_take(r, s->n * s->channels);
    s->u = listen_take(r, s->n * s->channels);
    s->joined = listen_take(r, s->n * s->last);
    s->mfa = listen_take(r, s->n * s->last);
    s->attention = listen_take(r, s->n * c->attention_channels);
    s->pooled = listen_take(r, 2 * (int64_t)s->last);
    s->small = listen_take(r, max(s->channels, c->attention_channels));
    s->narrow = listen_take(r, max(c->squeeze_channels, c->attention_channels));
    s->vector = listen_take(r, s->model->config->speaker_width);
}

static void run(
    struct speak *s, struct listen_conv c, float *y, const float *x, int64_t n, enum listen_after after)
{
    c.y = y, c.x = x, c.n_rows = c.n_t = n, c.after = after;
    listen_run(&s->room, &c);
}

/* The groups one after the other, each on its own channels and what the group before made of its own: t -> u. */
static void run_groups(struct speak *s, const struct speak_block *b)
{
    struct listen_room *r = &s->room;
    int width = s->channels / s->config->groups;
    size_t pitch = (size_t)s->channels * sizeof(float);
    if (!r->status) {
        listen_note(r, cudaMemcpy2DAsync(s->u, pitch, s->t, pitch, (size_t)width * sizeof(float),
                           (size_t)s->n, cudaMemcpyDeviceToDevice, r->stream));
    }
    for (int g = 1; g < s->config->groups; g++) {
        struct listen_conv c = b->groups[g - 1];
        c.x_stride = c.y_stride = s->channels;
        c.add = g > 1 ? s->u + (int64_t)(g - 1) * width : NULL;
        run(s, c, s->u + (int64_t)g * width, s->t + (int64_t)g * width, s->n, LISTEN_RELU);
    }
}

static void run_stats(struct speak *s, const float *x, int width, float *mean, float *deviation)
{
    struct listen_stats stats = {x, s->n, width, mean, deviation};
    if (!s->room.status) {
        listen_note(&s->room, listen_stats_run(&stats, s->room.stream));
    }
}

static void run_blocks(struct speak *s)
{
    run(s, s->blocks[0].conv_in, s->x, s->mels, s->n, LISTEN_RELU);
    for (int i = 1; i < s->config->n_blocks; i++) {
        const struct speak_block *b = &s->blocks[i];
        run(s, b->conv_in, s->t, s->x, s->n, LISTEN_RELU);
        run_groups(s, b);
        run(s, b->conv_out, s->t, s->u, s->n, LISTEN_RELU);
        run_stats(s, s->t, s->channels, s->small, NULL);
        run(s, b->squeeze, s->narrow, s->small, 1, LISTEN_RELU);
        run(s, b->excite, s->small, s->narrow, 1, LISTEN_AS_IS);
        struct listen_excite excite = {s->x, s->t, s->small, s->joined + (int64_t)(i - 1) * s->channels,
            s->n, s->last, s->channels};
        if (!s->room.status) {
            listen_note(&s->room, listen_excite_run(&excite, s->room.stream));
        }
    }
}

static void run_pooling(struct speak *s)
{
    run(s, s->join, s->mfa, s->joined, s->n, LISTEN_RELU);
    run_stats(s, s->mfa, s->last, s->pooled, s->pooled + s->last);
    /* Mean and deviation are the same for all time steps: their products are made once, and are the
     * bias of the others.
     * */
    struct listen_conv c = s->attend1;
    c.w = (const char *)c.w + (size_t)s->last * dtype_bytes(c.type);
    c.n_in = 2 * s->last;
    run(s, c, s->narrow, s->pooled, 1, LISTEN_AS_IS);
    c = s->attend1;
    c.n_in = s->last, c.x_stride = s->last, c.bias = s->narrow;
    run(s, c, s->attention, s->mfa, s->n, LISTEN_RELU_TANH);
    run(s, s->attend2, s->joined, s->attention, s->n, LISTEN_AS_IS);
    struct listen_pool pool = {s->joined, s->mfa, s->n, s->last, s->pooled};
    if (!s->room.status) {
        listen_note(&s->room, listen_pool_run(&pool, s->room.stream));
    }
    run(s, s->out, s->vector, s->pooled, 1, LISTEN_AS_IS);
}

static void fetch(struct speak *s, float *vector)
{
    struct listen_room *r = &s->room;
    int n = s->model->config->speaker_width;
    listen_wait(r);
    if (!r->status) {
        listen_note(
            r, cudaMemcpy(vector, s->vector, (size_t)n * sizeof *vector, cudaMemcpyDeviceToHost));
    }
    for (int i = 0; !r->status && i < n; i++) {
        if (!isfinite(vector[i])) {
            r->status = error_set(r->error, UTTER_E_NUMBER,
                "the speaker encoder came to a value that is not a number (damaged weights?)");
        }
    }
}

utter_status cuda_speaker(const struct model *model, struct cuda_device *device, const float *mels,
    size_t n_mels, float *vector, utter_error *error)
{
    struct speak *s = memory_new(1, sizeof *s);
    if (!s) {
        return error_memory(error, "the speaker encoder");
    }
    s->room = (struct listen_room){.device = device, .what = "the speaker encoder", .error = error};
    s->model = model, s->config = &model->config->speaker, s->n = (int64_t)n_mels;
    s->channels = s->config->channels[0], s->last = s->config->last_channels;
    take_all(s, mels);
    listen_room_open(&s->room);
    if (!s->room.status) {
        take_all(s, mels);
        listen_room_ready(&s->room);
    }
    if (!s->room.status) {
        run_blocks(s);
        run_pooling(s);
    }
    fetch(s, vector);
    utter_status status = s->room.status;
    listen_room_close(&s->room);
    memory_free(s);
    return status;
}
