/* SPDX-License-Identifier: Apache-2.0
 * The codec alone behind utter.h: known codes -> samples. */
#include "api/api.h"
#include "base/minmax.h"

enum {
    /* Frames a call when the caller does not care: reads the weights once for all of them */
    WHOLE_CHUNK = 8,
    OFFICIAL_CHUNK = 300,  /* the official decoder cuts here ... */
    OFFICIAL_CONTEXT = 25, /* ... and decodes so many frames before the cut again, from a cold start */
};

struct codec_job {
    utter_model *model;
    int lane;
    const int32_t *codes;
    int chunk;
    utter_sink_fn *sink;
    void *user;
};

static utter_status check_codes(
    const struct config *c, const int32_t *codes, size_t n_frames, utter_error *error)
{
    size_t n = (size_t)c->n_codebooks;
    for (size_t i = 0; i < n_frames * n; i++) {
        if (codes[i] < 0 || codes[i] >= c->codec.codebook_size) {
            return error_set(error, UTTER_E_ARGUMENT,
                "frame %zu, codebook %zu: code %d is not in 0..%d", i / n, i % n, codes[i],
                c->codec.codebook_size - 1);
        }
    }
    return UTTER_OK;
}

/* Decodes frames [from, to) from a cold start and gives what lies at or behind `keep` to the sink. */
static utter_status decode_run(
    const struct codec_job *job, size_t from, size_t keep, size_t to, utter_error *error)
{
    const struct backend_ops *ops = job->model->engine.context.ops;
    struct backend *backend = job->model->engine.context.backend;
    const struct config *c = api_config(job->model);
    size_t frame_samples = (size_t)c->codec.frame_samples;
    const utter_sampling greedy = {.top_p = 1, .repetition_penalty = 1};
    struct lane_settings settings = {.talker = greedy, .predictor = greedy};
    utter_status status = ops->lane_reset(backend, job->lane, &settings, error);
    for (size_t at = from; status == UTTER_OK && at < to;) {
        size_t n = min(to - at, (size_t)job->chunk);
        struct lane_out out;
        if ((status = ops->feed(
                 backend, job->lane, job->codes + at * (size_t)c->n_codebooks, (int)n, error)) ||
            (status = ops->vocode(backend, &job->lane, 1, error)) ||
            (status = ops->collect(backend, job->lane, &out, error))) {
            return status;
        }
        if (out.not_a_number) {
            return error_set(error, UTTER_E_NUMBER,
                "the sound of frames %zu..%zu is not a number (the codec's weights are damaged)", at,
                at + n - 1);
        }
        size_t skip = at < keep ? min(keep - at, n) * frame_samples : 0;
        if (skip < out.n_samples && !job->sink(job->user, out.pcm + skip, out.n_samples - skip)) {
            return error_set(error, UTTER_E_CANCELLED, "the sink asked to stop");
        }
        at += n;
    }
    return status;
}

utter_status utter_codec_decode(utter_model *model, const int32_t *codes, size_t n_frames,
    utter_codec_rule rule, int chunk, utter_sink_fn *sink, void *user, utter_error *error)
{
    utter_status status = api_need(model && codes && sink ? model : NULL, "an argument", error);
    if (status || (status = engine_check(&model->engine, error)) ||
        (status = check_codes(api_config(model), codes, n_frames, error))) {
        return status;
    }
    if (chunk < 0 || chunk > BACKEND_MAX_FEED ||
        (rule != UTTER_CODEC_WHOLE && rule != UTTER_CODEC_OFFICIAL_CHUNKS)) {
        return error_set(error, UTTER_E_ARGUMENT,
            "chunk %d is not in 0..%d, or the rule %d does not exist", chunk, BACKEND_MAX_FEED,
            (int)rule);
    }
    int lane = engine_free_lane(&model->engine);
    if (lane < 0) {
        error_set(error, UTTER_AGAIN, "all %d lanes of the model are taken", model->engine.n_lanes);
        return UTTER_AGAIN;
    }
    struct codec_job job = {model, lane, codes, chunk ? chunk : WHOLE_CHUNK, sink, user};
    size_t step = rule == UTTER_CODEC_WHOLE ? n_frames : OFFICIAL_CHUNK;
    model->engine.reserved[lane] = true;
    for (size_t at = 0; status == UTTER_OK && at < n_frames; at += step) {
        size_t to = n_frames - at < step ? n_frames : at + step;
        size_t context = rule == UTTER_CODEC_WHOLE ? 0 : min(at, OFFICIAL_CONTEXT);
        status =
            engine_keep_failure(&model->engine, decode_run(&job, at - context, at, to, error), error);
    }
    model->engine.reserved[lane] = false;
    return status;
}
