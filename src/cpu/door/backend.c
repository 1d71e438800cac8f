/* SPDX-License-Identifier: Apache-2.0
 * The backend door on the CPU: checks of what comes in, and the calls that it leads to. Every call is
 * done when it returns; collect only hands out. */
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/threads.h"
#include "cpu/encoders/encoder.h"
#include "cpu/encoders/speaker.h"
#include "cpu/talker/frame.h"
#include "cpu/vocoder/team.h"
#include "model/request.h"

struct backend {
    const struct model *model;
    const struct kern *kern;
    struct pool *pool;
    struct cpu_vocoder *vocoder;
    struct cpu_vocoder_team *team; /* or NULL */
    struct cpu_frame frame;
    struct cpu_lane *lanes;
    int n_lanes;
    struct talker_head *heads; /* that are watched */
    int n_heads;
    struct cpu_lane **chosen;     /* [n_lanes]: the lanes of one call */
    struct vocoder_order *orders; /* [n_lanes]: of one call */
};

static void cpu_close(struct backend **at)
{
    struct backend *b = *at;
    *at = NULL;
    if (!b) {
        return;
    }
    for (int i = 0; b->lanes && i < b->n_lanes; i++) {
        cpu_lane_fini(&b->lanes[i], b->model);
    }
    memory_free(b->lanes);
    memory_free(b->heads);
    memory_free(b->chosen);
    memory_free(b->orders);
    cpu_vocoder_team_close(&b->team);
    cpu_frame_fini(&b->frame);
    cpu_vocoder_close(&b->vocoder);
    pool_free(b->pool);
    memory_free(b);
}

static utter_status open_parts(
    struct backend *b, const struct backend_options *options, utter_error *error)
{
    b->kern = kern_find(options->cpu_kernels);
    if (!b->kern) {
        return error_set(error, UTTER_E_ARGUMENT,
            "kernels \"%s\": this machine cannot run them (it runs %s)", options->cpu_kernels,
            kern_all());
    }
    b->pool = pool_new(options->n_threads > 0 ? options->n_threads : threads_available());
    b->lanes = memory_new((size_t)options->n_lanes, sizeof *b->lanes);
    b->chosen = memory_new((size_t)options->n_lanes, sizeof *b->chosen);
    b->orders = memory_new((size_t)options->n_lanes, sizeof *b->orders);
    if (!b->pool || !b->lanes || !b->chosen || !b->orders) {
        return error_memory(error, "threads and lanes");
    }
    b->n_lanes = options->n_lanes;
    utter_status status = cpu_vocoder_open(&b->vocoder, b->model, b->kern, b->pool, error);
    if (!status) {
        status = cpu_vocoder_team_open(&b->team, b->vocoder, b->pool, b->n_lanes, error);
    }
    if (!status) {
        status = cpu_frame_init(&b->frame, b->model, b->kern, b->pool, options->lane_positions, error);
    }
    for (int i = 0; !status && i < b->n_lanes; i++) {
        status = cpu_lane_init(&b->lanes[i], b->model, b->vocoder, options->lane_positions, error);
    }
    return status;
}

static utter_status cpu_open(struct backend **at, const struct model *model,
    const struct backend_options *options, utter_error *error)
{
    *at = NULL;
    utter_status status = request_open(options, error);
    if (status) {
        return status;
    }
    struct backend *b = memory_new(1, sizeof *b);
    if (!b) {
        return error_memory(error, "the backend");
    }
    b->model = model;
    status = open_parts(b, options, error);
    if (status) {
        cpu_close(&b);
    }
    *at = b;
    return status;
}

static void cpu_kernels(const struct backend *b, const char **used, const char **all, int *n_threads)
{
    *used = b->kern->name;
    *all = kern_all();
    *n_threads = pool_size(b->pool);
}

static utter_status cpu_reset(
    struct backend *b, int lane, const struct lane_settings *settings, utter_error *error)
{
    utter_status status = request_lane(lane, b->n_lanes, error);
    if (!status) {
        cpu_lane_reset(&b->lanes[lane], b->model, b->vocoder, settings);
    }
    return status;
}

static struct request_lane standing(const struct cpu_lane *l)
{
    return (struct request_lane){l->position, l->talker.capacity, l->n_frames, l->ready, l->out.end};
}

static utter_status cpu_prefill(
    struct backend *b, int lane, const struct row *rows, int n, utter_error *error)
{
    utter_status status = request_lane(lane, b->n_lanes, error);
    if (status) {
        return status;
    }
    const struct request_lane at = standing(&b->lanes[lane]);
    if ((status = request_rows(b->model->config, &at, rows, n, error))) {
        return status;
    }
    cpu_frame_prefill(&b->frame, &b->lanes[lane], rows, n);
    return UTTER_OK;
}

static utter_status check_frame(const struct backend *b, const struct frame_in *in, utter_error *error)
{
    utter_status status = request_lane(in->lane, b->n_lanes, error);
    if (status) {
        return status;
    }
    const struct request_lane at = standing(&b->lanes[in->lane]);
    return request_frame(b->model->config, &at, in, error);
}

static utter_status cpu_frame_call(
    struct backend *b, const struct frame_in *in, int n, utter_error *error)
{
    if (n < 0 || n > b->n_lanes) {
        return error_set(error, UTTER_E_ARGUMENT, "%d frames: there are %d lanes", n, b->n_lanes);
    }
    for (int i = 0; i < n; i++) {
        utter_status status = check_frame(b, &in[i], error);
        if (status) {
            return status;
        }
        b->chosen[i] = &b->lanes[in[i].lane];
    }
    cpu_frame_run(&b->frame, b->chosen, in, n);
    return UTTER_OK;
}

static utter_status cpu_feed(
    struct backend *b, int lane, const int32_t *codes, int n_frames, utter_error *error)
{
    utter_status status = request_lane(lane, b->n_lanes, error);
    if (status || (status = request_feed(b->model->config, codes, n_frames, error))) {
        return status;
    }
    struct cpu_lane *l = &b->lanes[lane];
    size_t bytes = (size_t)(n_frames * b->model->config->n_codebooks) * sizeof *codes;
    memcpy(l->codes, codes, bytes);
    memcpy(l->spoken, codes, bytes);
    l->n_waiting = n_frames;
    l->out = (struct lane_out){.codes = l->codes, .n_frames = n_frames};
    return UTTER_OK;
}

/* The frames that wait in n lanes: all at once where that helps, else one lane after the other. */
static void run_orders(struct backend *b, int n)
{
    if (b->team && n > 1 && !b->frame.tap.fn) {
        cpu_vocoder_team_run(b->team, b->orders, n);
        return;
    }
    for (int i = 0; i < n; i++) {
        struct vocoder_order *o = &b->orders[i];
        o->finite = cpu_vocoder_run(b->vocoder, o->lane, o->codes, o->n_frames, o->pcm, &b->frame.tap);
    }
}

static utter_status cpu_vocode(struct backend *b, const int *lanes, int n, utter_error *error)
{
    size_t frame_samples = (size_t)b->model->config->codec.frame_samples;
    int m = 0;
    for (int i = 0; i < n; i++) {
        utter_status status = request_lane(lanes[i], b->n_lanes, error);
        if (status) {
            return status;
        }
        struct cpu_lane *lane = &b->lanes[lanes[i]];
        if (lane->n_waiting > 0 && m < b->n_lanes) {
            b->orders[m] =
                (struct vocoder_order){lane->vocoder, lane->spoken, lane->n_waiting, lane->pcm, true};
            b->chosen[m++] = lane;
            lane->n_waiting = 0;
        }
    }
    double start = clock_seconds();
    run_orders(b, m);
    double elapsed = clock_seconds() - start;
    for (int i = 0; i < m; i++) {
        struct cpu_lane *lane = b->chosen[i];
        lane->out.not_a_number = lane->out.not_a_number || !b->orders[i].finite;
        lane->out.vocoder_s = elapsed;
        lane->out.pcm = lane->pcm;
        lane->out.n_samples = (size_t)b->orders[i].n_frames * frame_samples;
    }
    return UTTER_OK;
}

static utter_status cpu_collect(struct backend *b, int lane, struct lane_out *out, utter_error *error)
{
    utter_status status = request_lane(lane, b->n_lanes, error);
    *out = status ? (struct lane_out){0} : b->lanes[lane].out;
    return status;
}

static utter_status cpu_prime(
    struct backend *b, int lane, const int32_t *codes, int n_frames, utter_error *error)
{
    utter_status status = request_lane(lane, b->n_lanes, error);
    if (status || (status = request_prime(b->model->config, codes, n_frames, error))) {
        return status;
    }
    cpu_vocoder_prime(b->vocoder, b->lanes[lane].vocoder, codes, n_frames, b->lanes[lane].pcm);
    return UTTER_OK;
}

/* ---- Watched heads ---- */

static utter_status cpu_watch(
    struct backend *b, const struct talker_head *heads, int n, utter_error *error)
{
    utter_status status = request_watch(b->model->config, heads, n, error);
    struct talker_head *copy = status || n == 0 ? NULL : memory_new((size_t)n, sizeof *copy);
    if (status || (n > 0 && !copy)) {
        return status ? status : error_memory(error, "heads to watch");
    }
    for (int i = 0; i < n; i++) {
        copy[i] = heads[i];
    }
    for (int i = 0; i < b->n_lanes; i++) {
        b->lanes[i].look.begin = b->lanes[i].look.end = 0;
        b->lanes[i].out.scores = NULL;
    }
    memory_free(b->heads);
    b->heads = copy;
    b->n_heads = n;
    return UTTER_OK;
}

static utter_status cpu_look_call(struct backend *b, int lane, int begin, int end, utter_error *error)
{
    utter_status status = request_lane(lane, b->n_lanes, error);
    if (status) {
        return status;
    }
    const struct request_lane at = standing(&b->lanes[lane]);
    if ((status = request_look(&at, begin, end, error))) {
        return status;
    }
    return cpu_lane_look(
        &b->lanes[lane], b->heads, b->n_heads, begin, b->n_heads > 0 ? end : begin, error);
}

static utter_status cpu_weigh(struct backend *b, int lane, const struct row *rows, int n,
    const int32_t *codes, struct likelihood *likelihoods, utter_error *error)
{
    utter_status status = request_lane(lane, b->n_lanes, error);
    if (status) {
        return status;
    }
    const struct request_lane at = standing(&b->lanes[lane]);
    if ((status = request_rows(b->model->config, &at, rows, n, error)) ||
        (status = request_weigh(b->model->config, codes, n, error))) {
        return status;
    }
    cpu_frame_weigh(&b->frame, &b->lanes[lane], rows, n, codes, likelihoods);
    return UTTER_OK;
}

/* ---- Snapshots ---- */

static utter_status cpu_keep(struct backend *b, int lane, int n_rows, bool vocoder,
    struct backend_snapshot **snapshot, utter_error *error)
{
    *snapshot = NULL;
    utter_status status = request_lane(lane, b->n_lanes, error);
    if (status) {
        return status;
    }
    const struct cpu_lane *l = &b->lanes[lane];
    if (n_rows < 1 || n_rows > l->position || l->n_frames > 0) {
        return error_set(error, UTTER_E_ARGUMENT,
            "a snapshot of %d rows: the lane has %lld, and %u frames", n_rows, (long long)l->position,
            (unsigned)l->n_frames);
    }
    *snapshot = cpu_snapshot_new(l, b->model, b->vocoder, n_rows, vocoder);
    return *snapshot ? UTTER_OK : error_memory(error, "a snapshot");
}

static utter_status cpu_resume(
    struct backend *b, int lane, const struct backend_snapshot *snapshot, utter_error *error)
{
    utter_status status = request_lane(lane, b->n_lanes, error);
    if (status) {
        return status;
    }
    if (b->lanes[lane].position > 0) {
        return error_set(error, UTTER_E_ARGUMENT, "lane %d: a snapshot goes into an empty lane", lane);
    }
    const struct request_lane at = standing(&b->lanes[lane]);
    if ((status = request_room(&at, cpu_snapshot_rows(snapshot), error))) {
        return status;
    }
    cpu_snapshot_put(snapshot, &b->lanes[lane], b->model, b->vocoder);
    return UTTER_OK;
}

static void cpu_snapshot_release(struct backend *b, struct backend_snapshot **snapshot)
{
    (void)b;
    cpu_snapshot_free(*snapshot);
    *snapshot = NULL;
}

static utter_status cpu_encode_call(struct backend *b, const float *pcm, size_t n_samples,
    int32_t *codes, size_t capacity_frames, size_t *n_frames, backend_progress_fn *progress, void *user,
    utter_error *error)
{
    size_t n = cpu_encoder_frames(b->model->config, n_samples);
    *n_frames = 0;
    utter_status status = request_encode(b->model, n_samples, n, capacity_frames, error);
    if (status) {
        return status;
    }
    status = cpu_encode(b->model, b->kern, b->pool, pcm, n_samples, codes, progress, user, error);
    *n_frames = status ? 0 : n;
    return status;
}

static utter_status cpu_speaker_call(
    struct backend *b, const float *mels, size_t n_mels, float *vector, utter_error *error)
{
    utter_status status = request_speaker(b->model, n_mels, error);
    return status ? status : cpu_speaker(b->model, b->kern, b->pool, mels, n_mels, vector, error);
}

static void cpu_tap_set(struct backend *b, backend_tap_fn *fn, void *user)
{
    b->frame.tap = (struct cpu_tap){fn, user};
}

static void cpu_memory(const struct backend *b, struct backend_memory *memory)
{
    const struct config *config = b->model->config;
    cpu_vocoder_memory(b->vocoder, &memory->shared_bytes, &memory->lane_bytes);
    memory->shared_bytes += b->frame.bytes + cpu_vocoder_team_bytes(b->team);
    memory->lane_bytes += cpu_lane_fixed_bytes(config);
    memory->position_bytes = cpu_lane_position_bytes(config);
    memory->kept_bytes = cpu_vocoder_state_bytes(b->vocoder);
}

const struct backend_ops cpu_backend = {
    .name = "cpu",
    .gathers = 8,
    .reads_packed = true,
    .open = cpu_open,
    .close = cpu_close,
    .kernels = cpu_kernels,
    .lane_reset = cpu_reset,
    .prefill = cpu_prefill,
    .frame = cpu_frame_call,
    .feed = cpu_feed,
    .vocode = cpu_vocode,
    .collect = cpu_collect,
    .prime = cpu_prime,
    .watch = cpu_watch,
    .look = cpu_look_call,
    .weigh = cpu_weigh,
    .lane_keep = cpu_keep,
    .lane_resume = cpu_resume,
    .snapshot_free = cpu_snapshot_release,
    .encode = cpu_encode_call,
    .speaker = cpu_speaker_call,
    .tap = cpu_tap_set,
    .memory = cpu_memory,
};
