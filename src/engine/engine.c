/* SPDX-License-Identifier: Apache-2.0
 * Opens a checkpoint on a backend and steps its streams. */
#include "engine/engine.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/minmax.h"
#include "weights/checkpoint.h"

enum pretokenizer engine_pretokenizer(const char *version)
{
    int major = 0, minor = 0, patch = 0;
    if (!version || sscanf(version, "%d.%d.%d", &major, &minor, &patch) < 2) {
        return PRETOKENIZER_PATCHED;
    }
    bool before_release = strstr(version, "dev") || strstr(version, "rc") || strpbrk(version, "ab");
    long number = major * 1000000L + minor * 1000L + patch;
    bool above = number > 4057002 || (number == 4057002 && strstr(version, "post"));
    bool below = number < 5000000 || (number == 5000000 && before_release);
    return above && below ? PRETOKENIZER_PATCHED : PRETOKENIZER_NATIVE;
}

static enum pretokenizer choose_pretokenizer(
    const struct config *config, const struct engine_options *options)
{
    return options->native_pretokenizer ? PRETOKENIZER_NATIVE
                                        : engine_pretokenizer(config->transformers_version);
}

static utter_status engine_allocate(
    struct engine *e, const char *folder, int n_lanes, utter_error *error)
{
    e->n_lanes = n_lanes;
    e->streams = memory_new((size_t)n_lanes, sizeof *e->streams);
    e->reserved = memory_new((size_t)n_lanes, sizeof *e->reserved);
    e->frames = memory_new((size_t)n_lanes, sizeof *e->frames);
    e->lanes = memory_new((size_t)n_lanes, sizeof *e->lanes);
    e->folder = memory_string(folder);
    return e->folder && e->streams && e->reserved && e->frames && e->lanes
               ? UTTER_OK
               : error_memory(error, "lanes");
}

/* Packs the model where the device reads it so; what it could not do is refused rather than passed over. */
static utter_status engine_pack(
    struct engine *e, const struct backend_options *options, utter_error *error)
{
    enum dtype type = options->weights == UTTER_WEIGHTS_Q4 ? DTYPE_Q4 : DTYPE_Q8;
    bool stored = backend_keeps_weights(options->weights);
    if (!e->context.ops->reads_packed && (e->context.model->packed_file || !stored)) {
        return error_set(error, UTTER_E_ARGUMENT,
            "weights of 8 or 4 bits: the device %s cannot use them (choose the cpu, or the checkpoint "
            "as it is)",
            e->context.ops->name);
    }
    if (options->weights == UTTER_WEIGHTS_BF16) {
        model_shorten_sound(e->context.model);
    }
    return stored ? UTTER_OK
           : options->weights == UTTER_WEIGHTS_Q8_PREDICTOR
               ? model_pack_predictor(e->context.model, type, options->n_threads, error)
               : model_pack(e->context.model, type, options->n_threads, error);
}

/* Opens what the checkpoint's folder holds, and checks that its parts belong together. */
static utter_status open_checkpoint(
    struct engine *e, const char *folder, const struct engine_options *options, utter_error *error)
{
    utter_status status = model_open(&e->context.model, folder, error);
    if (status) {
        return status;
    }
    const struct config *c = e->context.model->config;
    status = tokenizer_open(
        &e->context.tokenizer, folder, checkpoint_read, choose_pretokenizer(c, options), error);
    size_t n_ids = status ? 0 : tokenizer_vocabulary(e->context.tokenizer);
    if (n_ids > (size_t)c->text_vocabulary) {
        return error_set(error, UTTER_E_MODEL,
            "the tokenizer knows %zu tokens, the model %d (files of two models are mixed)", n_ids,
            c->text_vocabulary);
    }
    return status;
}

/* Which heads follow the text: what the checkpoint brings, or a file of its own. None on a device that cannot watch. */
static utter_status open_heads(
    struct engine *e, const char *folder, const struct engine_options *options, utter_error *error)
{
    const struct backend_ops *ops = e->context.ops;
    char path[PATH_MAX];
    utter_status status = file_join(path, sizeof path, folder, HEADS_FILE, error);
    const char *from = options->heads ? options->heads : path;
    if (status || !ops->watch || !checkpoint_exists(from)) {
        return status;
    }
    struct heads *heads = &e->context.heads;
    status = heads_read(heads, e->context.model->config, from, error);
    return status ? status : ops->watch(e->context.backend, heads->at, heads->n, error);
}

utter_status engine_open(
    struct engine *e, const char *folder, const struct engine_options *options, utter_error *error)
{
    struct backend_options backend = options->backend;
    const struct backend_ops *ops = e->context.ops = options->ops;
    utter_status status;
    if ((status = open_checkpoint(e, folder, options, error)) ||
        (status = engine_pack(e, &backend, error))) {
        engine_close(e);
        return status;
    }
    struct model *model = e->context.model;
    backend.lane_positions = model->config->max_positions;
    if (backend.n_lanes == 0) {
        backend.n_lanes = ops->suiting_lanes ? ops->suiting_lanes(model, &backend) : ENGINE_LANES;
    }
    if ((status = engine_allocate(e, folder, backend.n_lanes, error)) ||
        (status = ops->open(&e->context.backend, model, &backend, error)) ||
        (status = open_heads(e, folder, options, error))) {
        engine_close(e);
        return status;
    }
    e->context.learning = (struct learning){.ops = ops,
        .backend = e->context.backend,
        .model = model,
        .heads = &e->context.heads,
        .folder = options->cache ? memory_string(options->cache) : NULL};
    struct backend_memory memory;
    ops->memory(e->context.backend, &memory);
    e->context.snapshots = (struct snapshot_store){.ops = ops,
        .backend = e->context.backend,
        .config = model->config,
        .position_bytes = memory.position_bytes,
        .kept_bytes = memory.kept_bytes,
        .limit_bytes = options->snapshot_bytes};
    e->context.prompt_clock.most_s = options->prompt_s;
    return UTTER_OK;
}

void engine_close(struct engine *e)
{
    snapshot_store_clear(&e->context.snapshots);
    learn_fini(&e->context.learning);
    if (e->context.backend) {
        e->context.ops->close(&e->context.backend);
    }
    tokenizer_close(&e->context.tokenizer);
    model_close(&e->context.model);
    memory_free(e->folder);
    memory_free(e->streams);
    memory_free(e->reserved);
    memory_free(e->frames);
    memory_free(e->lanes);
    *e = (struct engine){0};
}

utter_status engine_check(struct engine *e, utter_error *error)
{
    if (e->broken.code == UTTER_OK && model_damaged(e->context.model)) {
        error_set(&e->broken, UTTER_E_FILE,
            "a file of the model has shrunk while it was in use (open the model again)");
    }
    if (e->broken.code != UTTER_OK && error) {
        *error = e->broken;
    }
    return e->broken.code;
}

utter_status engine_keep_failure(struct engine *e, utter_status status, const utter_error *error)
{
    if (status == UTTER_E_DEVICE && e->broken.code == UTTER_OK) {
        error_set(&e->broken, status, "%s", error ? error->text : "the device failed");
    }
    return status;
}

void engine_log(const struct engine *e, const char *line)
{
    if (e->log) {
        e->log(e->log_user, line);
    }
}

int engine_free_lane(const struct engine *e)
{
    for (int i = 0; i < e->n_lanes; i++) {
        if (!e->streams[i] && !e->reserved[i]) {
            return i;
        }
    }
    return -1;
}

bool engine_is_idle(const struct engine *e)
{
    bool idle = true;
    for (int i = 0; i < e->n_lanes; i++) {
        idle = idle && !e->streams[i] && !e->reserved[i];
    }
    return idle;
}

utter_status engine_open_stream(
    utter_stream **stream, struct engine *e, const utter_stream_options *options, utter_error *error)
{
    *stream = NULL;
    utter_status status = stream_check_options(&e->context, options, error);
    if (status || (status = engine_check(e, error))) {
        return status;
    }
    int lane = engine_free_lane(e);
    if (lane < 0) {
        error_set(error, UTTER_AGAIN,
            "all %d lanes of the model are taken (free a stream, or open it with more)", e->n_lanes);
        return UTTER_AGAIN;
    }
    utter_stream *s;
    status = engine_keep_failure(e, stream_open(&s, &e->context, lane, options, error), error);
    if (status) {
        return status;
    }
    s->engine = e;
    e->streams[lane] = s;
    *stream = s;
    return UTTER_OK;
}

void engine_note_stream(const utter_stream *s)
{
    if (prompt_note(s->prompt)) {
        engine_log(s->engine, prompt_note(s->prompt));
    }
}

void engine_release_lane(utter_stream *s)
{
    if (stream_learnt(s)) {
        engine_log(s->engine, s->context->learning.note);
    }
    if (s->lane >= 0) { /* what the lane held others may need */
        s->engine->streams[s->lane] = NULL;
        s->context->ops->lane_reset(s->context->backend, s->lane, &s->settings, NULL);
        s->lane = -1;
    }
    memory_free(s->ring);
    s->ring = NULL;
    s->ring_n = 0;
}

void engine_free_stream(utter_stream **stream)
{
    if (*stream) {
        engine_release_lane(*stream);
    }
    stream_free(stream);
}

/* Streams that can make a frame now; those that are new have read their prompt, or a piece of it and wait for the next
 * step. *moved: one of them did either. */
static int gather(struct engine *e, bool *moved)
{
    int n = 0;
    *moved = false;
    for (int i = 0; i < e->n_lanes; i++) {
        utter_stream *s = e->streams[i];
        utter_error error;
        if (!s || !stream_ready(s)) {
            continue;
        }
        bool doubts = stream_doubts(s);
        utter_status status = UTTER_OK;
        if (doubts || !s->prefilled) {
            status = doubts ? stream_doubt(s, &error) : stream_prefill(s, &error);
            engine_keep_failure(e, status, &error);
        }
        if (!status && s->prefilled && !doubts && e->context.ops->room) {
            status =
                engine_keep_failure(e, e->context.ops->room(e->context.backend, i, &error), &error);
        }
        if (status) {
            stream_fail(s, status, &error);
            continue;
        }
        *moved = true;
        if (!s->prefilled || doubts) {
            continue;
        }
        e->lanes[n] = i;
        e->frames[n++] = stream_frame_in(s);
    }
    return n;
}

static void fail_all(struct engine *e, int n, utter_status status, const utter_error *error)
{
    for (int i = 0; i < n; i++) {
        stream_fail(e->streams[e->frames[i].lane], status, error);
    }
}

/* Of all streams: more frames in one call of a vocoder gain nothing, and all would wait for it. */
enum { MOST_TOGETHER = 16 };

/* Somebody waits for the first sound, whose text is there. */
static bool is_urgent(const struct engine *e)
{
    bool urgent = false;
    for (int i = 0, n_rows; i < e->n_lanes && !urgent; i++) {
        const utter_stream *s = e->streams[i];
        urgent = s && s->n_made == 0 && s->finish == UTTER_FINISH_NONE && !s->held &&
                 prompt_rows(s->prompt, &n_rows);
    }
    return urgent;
}

/* Frames of n lanes, and the sound of those that want it at once: it is queued behind them, and all is waited for
 * together. */
static utter_status make_frames(struct engine *e, int n, bool urgent, utter_error *error)
{
    int m = 0;
    for (int i = 0; i < n; i++) {
        if (stream_at_once(e->streams[e->frames[i].lane], urgent)) {
            e->lanes[m++] = e->frames[i].lane;
        }
    }
    utter_status status = e->context.ops->frame(e->context.backend, e->frames, n, error);
    if (!status && m > 0) {
        status = e->context.ops->vocode(e->context.backend, e->lanes, m, error);
    }
    status = status ? status : engine_check(e, error); /* what a damaged file gave reaches nobody */
    for (int i = 0, k = 0; i < n && !status; i++) {
        struct lane_out out;
        utter_stream *s = e->streams[e->frames[i].lane];
        if ((status = e->context.ops->collect(e->context.backend, s->lane, &out, error))) {
            break;
        }
        stream_take_codes(s, &out);
        if (k < m && e->lanes[k] == s->lane) {
            k++;
            stream_take_sound(s, &out);
        }
    }
    return status;
}

/* The sound of frames that have waited long enough. */
static utter_status make_sound(struct engine *e, int n, bool urgent, utter_error *error)
{
    const int n_codes = e->context.model->config->n_codebooks;
    utter_status status = UTTER_OK;
    int m = 0;
    for (int i = 0; i < n && !status; i++) {
        const utter_stream *s = e->streams[e->frames[i].lane];
        int n_due = s->finish == UTTER_FINISH_NONE ? stream_sound_due(s, urgent) : 0;
        if (n_due > 0) {
            e->lanes[m++] = s->lane;
            status = e->context.ops->feed(
                e->context.backend, s->lane, s->codes + (ptrdiff_t)s->n_frames * n_codes, n_due, error);
        }
    }
    if (!status && m > 0) {
        status = e->context.ops->vocode(e->context.backend, e->lanes, m, error);
    }
    status = status ? status : engine_check(e, error);
    for (int i = 0; i < m && !status; i++) {
        struct lane_out out;
        utter_stream *s = e->streams[e->lanes[i]];
        if (!(status = e->context.ops->collect(e->context.backend, s->lane, &out, error))) {
            s->stats.wait_s += out.wait_s;
            stream_take_sound(s, &out);
        }
    }
    return status;
}

utter_status engine_step(struct engine *e, bool together, utter_error *error)
{
    utter_error local;
    utter_error *why = error ? error : &local;
    utter_status status = engine_check(e, why);
    if (status) {
        return status;
    }
    bool moved;
    int n = gather(e, &moved);
    if (n == 0) {
        status = engine_check(e, why);
        return status || moved ? status : UTTER_AGAIN;
    }
    bool urgent = !together || e->no_waiting || is_urgent(e);
    e->context.n_together = min(MOST_TOGETHER / n, e->context.ops->gathers);
    if ((status = make_frames(e, n, urgent, why)) || (status = make_sound(e, n, urgent, why))) {
        fail_all(e, n, status, why);
        return engine_keep_failure(e, status, why);
    }
    return engine_check(e, why);
}
