/* SPDX-License-Identifier: Apache-2.0
 * What a lane of the GPU backend is put into and taken out of, what is refused, and what is left when the device
 * fails: snapshots, recordings, too many rows or lanes, a device that hangs or is lost. Needs a GPU; goes on after a
 * failure. Usage: check_state [-p FRAMES] CHECKPOINT ...; -p: of the longest recording. Ends with `N
 * passed, N failed`. */
#include <limits.h>
#include <math.h>

#include "base/clock.h"
#include "cuda/door/backend_parts.h"
#include "cuda/graph/frame_parts.h"
#include "tests/cuda/drive_backend.h"

/* Frames of two lanes of one model are the same to the bit. */
static bool go_on_alike(struct run *gpu, int one, int other, int kind, int n)
{
    static float pcm[N_FRAMES * 1920];
    for (int t = 0; t < n; t++) {
        struct lane_out a, b;
        int32_t codes[MAX_CODEBOOKS], text = text_of(gpu->config, kind, t);
        size_t code_bytes = (size_t)gpu->config->n_codebooks * sizeof *codes;
        if (!one_frame(gpu, one, text, NULL, &a) || a.n_samples > sizeof pcm / sizeof *pcm) {
            return false;
        }
        memcpy(codes, a.codes, code_bytes);
        memcpy(pcm, a.pcm, a.n_samples * sizeof *pcm);
        if (!one_frame(gpu, other, text, NULL, &b) || a.n_samples != b.n_samples ||
            memcmp(codes, b.codes, code_bytes) != 0 ||
            memcmp(pcm, b.pcm, b.n_samples * sizeof *pcm) != 0) {
            printf("     frame %d: %s\n", t,
                memcmp(codes, b.codes, code_bytes) ? "other codes" : "other samples");
            return false;
        }
    }
    return true;
}

static const struct lane_settings SAMPLED = {{0.9f, 20, 1, 1.05f}, {0.9f, 20, 1, 1}, 5, 1 << 20};

/* A lane that goes on from another one's beginning gives what that one gives. */
static void check_snapshot(struct run *gpu)
{
    enum { KEPT = 37 };
    struct row rows[N_ROWS];
    struct backend_snapshot *snapshot = NULL;
    utter_error error;
    make_rows(gpu->config, 4, rows, N_ROWS);
    bool same =
        start(gpu, 0, 4, &SAMPLED, N_ROWS) &&
        said(gpu->ops->lane_keep(gpu->b, 0, KEPT, true, &snapshot, &error), &error, "keep") &&
        said(gpu->ops->lane_reset(gpu->b, 1, &SAMPLED, &error), &error, "reset") &&
        said(gpu->ops->lane_resume(gpu->b, 1, snapshot, &error), &error, "resume") &&
        said(gpu->ops->prefill(gpu->b, 1, rows + KEPT, N_ROWS - KEPT, &error), &error, "prefill");
    same = same && go_on_alike(gpu, 0, 1, 4, 4);
    result(same, "a lane from a snapshot of %d rows gives the same", KEPT);
    gpu->ops->snapshot_free(gpu->b, &snapshot);
}

static int most_recorded = 1000; /* frames */

/* A vocoder that has heard a recording the short way goes on as one that has decoded all of it. */
static void check_prime(struct run *gpu)
{
    enum { MOST = 125 };
    static const int lengths[] = {5, 1, 4, 31, MOST};
    static int32_t codes[MOST * MAX_CODEBOOKS];
    const int n_codebooks = gpu->config->n_codebooks;
    utter_error error;
    for (int i = 0; i < MOST * n_codebooks; i++) {
        codes[i] = (i * 29 + i / 7) % gpu->config->predictor_vocabulary;
    }
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths && lengths[i] <= most_recorded; i++) {
        struct row rows[N_ROWS];
        struct lane_out out;
        int lane = 0;
        bool same = said(gpu->ops->lane_reset(gpu->b, 0, &SAMPLED, &error), &error, "reset") &&
                    said(gpu->ops->lane_reset(gpu->b, 1, &SAMPLED, &error), &error, "reset");
        for (int at = 0, n; at < lengths[i] && same; at += n) {
            n = lengths[i] - at < 7 ? lengths[i] - at : 7;
            same =
                said(gpu->ops->feed(gpu->b, 0, codes + at * n_codebooks, n, &error), &error, "feed") &&
                said(gpu->ops->vocode(gpu->b, &lane, 1, &error), &error, "vocode") &&
                said(gpu->ops->collect(gpu->b, 0, &out, &error), &error, "collect");
        }
        make_rows(gpu->config, 4, rows, N_ROWS);
        same = same && said(gpu->ops->prime(gpu->b, 1, codes, lengths[i], &error), &error, "prime") &&
               said(gpu->ops->prefill(gpu->b, 0, rows, N_ROWS, &error), &error, "prefill") &&
               said(gpu->ops->prefill(gpu->b, 1, rows, N_ROWS, &error), &error, "prefill") &&
               go_on_alike(gpu, 0, 1, 4, 3);
        result(same, "a recording of %d frames, heard the short way, leaves the same", lengths[i]);
    }
    codes[3] = gpu->config->predictor_vocabulary;
    result(gpu->ops->prime(gpu->b, 1, codes, 1, &error) == UTTER_E_ARGUMENT,
        "a recording with a code that is not there");
}

/* Frames that waited for their sound have it, also when the frame behind them was the end. */
static void check_end(struct run *gpu)
{
    enum { WAITING = 3 };
    const int32_t codes[WAITING * MAX_CODEBOOKS] = {0};
    const size_t n_samples = WAITING * (size_t)gpu->config->codec.frame_samples;
    struct lane_out out = {0};
    int lane = 0;
    utter_error error;
    bool done = said(gpu->ops->lane_reset(gpu->b, 0, &SAMPLED, &error), &error, "reset");
    gpu->b->of[0].ended = true; /* as a frame leaves it that chose the end */
    done = done && said(gpu->ops->feed(gpu->b, 0, codes, WAITING, &error), &error, "feed") &&
           said(gpu->ops->vocode(gpu->b, &lane, 1, &error), &error, "vocode") &&
           said(gpu->ops->collect(gpu->b, 0, &out, &error), &error, "collect");
    result(done && out.pcm && out.n_samples == n_samples, "%d frames in front of the end have sound",
        WAITING);
}

/* Orders and pieces of prompts are counted as long as a model is open: frames after 2^31 of them are as before. */
static void check_count(struct run *gpu)
{
    gpu->b->frame->next_order = gpu->b->frame->next_stage = (unsigned)INT_MAX - 2;
    result(start(gpu, 0, 4, &SAMPLED, N_ROWS) && start(gpu, 1, 4, &SAMPLED, N_ROWS) &&
               go_on_alike(gpu, 0, 1, 4, 4),
        "frames past the 2^31st");
}

/* ---- What is refused ---- */

static void check_errors(struct run *gpu)
{
    utter_error error;
    struct row rows[N_ROWS];
    struct lane_out out;
    struct frame_in in = {0, 0, NULL};
    int bad_lane = N_LANES;
    make_rows(gpu->config, 1, rows, N_ROWS);
    result(gpu->ops->lane_reset(gpu->b, bad_lane, &GREEDY, &error) == UTTER_E_ARGUMENT,
        "a lane that is not there");
    gpu->ops->lane_reset(gpu->b, 0, &GREEDY, &error);
    result(gpu->ops->frame(gpu->b, &in, 1, &error) == UTTER_E_ARGUMENT, "a frame without a prompt");
    rows[1].text = gpu->config->text_vocabulary;
    result(gpu->ops->prefill(gpu->b, 0, rows, 2, &error) == UTTER_E_ARGUMENT,
        "a text id outside the vocabulary");
    rows[1].text = 0;
    utter_status status = UTTER_OK;
    for (int i = 0; i < 20 && !status; i++) {
        status = gpu->ops->prefill(gpu->b, 0, rows, N_ROWS, &error);
    }
    result(status == UTTER_E_MODEL, "more rows than a lane holds: %s", status ? error.text : "taken");
    result(gpu->ops->collect(gpu->b, 0, &out, &error) == UTTER_OK, "and the lane goes on");
}

/* Of a prompt that was begun, more rows than it has; into a lane that has some. Frames of more lanes than there are. */
static void check_snapshot_errors(struct run *gpu)
{
    enum { ROWS = 9 };
    utter_error error;
    struct backend_snapshot *snapshot = NULL;
    struct frame_in in[N_LANES + 1] = {{0}};
    bool refused =
        start(gpu, 0, 1, &GREEDY, ROWS) &&
        gpu->ops->lane_keep(gpu->b, 0, ROWS + 1, false, &snapshot, &error) == UTTER_E_ARGUMENT &&
        !snapshot;
    result(refused &&
               said(gpu->ops->lane_keep(gpu->b, 0, 4, false, &snapshot, &error), &error, "keep") &&
               gpu->ops->lane_resume(gpu->b, 0, snapshot, &error) == UTTER_E_ARGUMENT,
        "a snapshot of more rows than there are, and into a lane that is not empty");
    gpu->ops->snapshot_free(gpu->b, &snapshot);
    result(
        gpu->ops->frame(gpu->b, in, N_LANES + 1, &error) == UTTER_E_ARGUMENT, "more frames than lanes");
}

static bool never(void *user, double done)
{
    (void)user;
    (void)done;
    return false;
}

/* What the encoders give is looked at by check_listen; here, that they are behind the door, and what is no sound. */
static void check_recording(struct run *gpu)
{
    enum { SAMPLES = 6000, FRAMES = 4, MELS = 8, BANDS = 128 };
    static float pcm[SAMPLES], mels[MELS * BANDS], vector[8192];
    int32_t codes[FRAMES * MAX_CODEBOOKS];
    size_t n = 0;
    utter_error error;
    for (int i = 0; i < SAMPLES; i++) {
        pcm[i] = (float)(i % 97) / 97 - 0.5f;
    }
    for (int i = 0; i < MELS * BANDS; i++) {
        mels[i] = (float)(i % 31) / 31;
    }
    result(said(gpu->ops->encode(gpu->b, pcm, SAMPLES, codes, FRAMES, &n, NULL, NULL, &error), &error,
               "encode") &&
               n > 0,
        "a recording has %d frames", (int)n);
    result(gpu->ops->encode(gpu->b, pcm, SAMPLES, codes, FRAMES, &n, never, NULL, &error) ==
               UTTER_E_CANCELLED,
        "a recording that is stopped");
    result(said(gpu->ops->speaker(gpu->b, mels, MELS, vector, &error), &error, "speaker") &&
               isfinite(vector[0]),
        "a speaker's vector");
    pcm[100] = NAN;
    mels[100] = NAN;
    result(
        gpu->ops->encode(gpu->b, pcm, SAMPLES, codes, FRAMES, &n, NULL, NULL, &error) == UTTER_E_NUMBER,
        "a recording with a sample that is no number");
    result(gpu->ops->speaker(gpu->b, mels, MELS, vector, &error) == UTTER_E_NUMBER,
        "features of which one is no number");
}

/* Shapes that the kernels do not hold are refused when the model is opened. */
static void check_shapes(struct model *model)
{
    static const struct backend_options options = {.n_lanes = 1, .lane_positions = POSITIONS};
    struct config *own = model->config;
    for (int i = 0; i < 3; i++) {
        struct config odd = *own;
        struct backend *b = NULL;
        utter_error error = {0};
        *(i == 0 ? &odd.talker.head : i == 1 ? &odd.codec_vocabulary : &odd.codec.stack.head) = 1 << 14;
        model->config = &odd;
        const utter_status status = cuda_backend.open(&b, model, &options, &error);
        model->config = own;
        result(status == UTTER_E_MODEL && !b, "refused: %s", error.text);
    }
}

/* Said before anything is allocated. */
static void check_memory_bound(const struct model *model)
{
    struct cuda_device device;
    struct backend *b = NULL;
    utter_error error = {0};
    struct backend_options options = {.n_lanes = 1000000, .lane_positions = POSITIONS};
    if (!said(cuda_device_open(&device, 0, &error), &error, "the device")) {
        return;
    }
    uint64_t before = cuda_device_free_bytes(&device);
    utter_status status = cuda_backend.open(&b, model, &options, &error);
    result(status == UTTER_E_MEMORY && cuda_device_free_bytes(&device) == before, "a million lanes: %s",
        error.text);
}

/* Where no number of lanes is asked for: several, and a part of the memory stays free. */
static void check_suiting_lanes(const struct model *model)
{
    struct cuda_device device;
    struct backend *b = NULL;
    utter_error error = {0};
    struct backend_options options = {.lane_positions = model->config->max_positions};
    if (!said(cuda_device_open(&device, 0, &error), &error, "the device")) {
        return;
    }
    const uint64_t before = cuda_device_free_bytes(&device);
    options.n_lanes = cuda_backend.suiting_lanes(model, &options);
    if (!said(cuda_backend.open(&b, model, &options, &error), &error, "lanes that suit")) {
        return;
    }
    const uint64_t after = cuda_device_free_bytes(&device);
    result(
        options.n_lanes >= CUDA_FEW_LANES && options.n_lanes <= CUDA_MAX_SLOTS && after > before / 12,
        "%d lanes suit %.1f GB, of which %.1f stay", options.n_lanes, 1e-9 * (double)before,
        1e-9 * (double)after);
    cuda_backend.close(&b);
    options.device = cuda_device_count();
    result(cuda_backend.suiting_lanes(model, &options) == CUDA_FEW_LANES,
        "a GPU that is not there: a few lanes");
}

/* Kernels that cannot be had are told before memory is looked at: this much there never is. */
static void check_wanted(const struct model *model)
{
    const struct backend_options options = {
        .n_lanes = 1000000, .lane_positions = POSITIONS, .cpu_kernels = "avx2"};
    struct backend *b = NULL;
    utter_error error = {0};
    utter_status status = cuda_backend.open(&b, model, &options, &error);
    result(status == UTTER_E_ARGUMENT && !b, "refused: %s", error.text);
}

/* The last of several GPUs is asked for its own memory, whichever is the thread's. */
static void check_asked_device(void)
{
    const int last = cuda_device_count() - 1;
    struct cuda_device device;
    utter_error error = {0};
    int now = -1;
    if (last < 1 || !said(cuda_device_open(&device, last, &error), &error, "the last device")) {
        return;
    }
    bool asked = cudaSetDevice(0) == cudaSuccess && cuda_device_free_bytes(&device) > 0 &&
                 cudaGetDevice(&now) == cudaSuccess && now == last;
    cudaSetDevice(0);
    result(asked, "cuda:%d is asked for its memory", last);
}

/* ---- A device that fails ---- */

static void CUDART_CB hold_up(void *seconds)
{
    struct timespec t = {.tv_sec = *(int *)seconds};
    nanosleep(&t, NULL);
}

/* Every call after the failure, and closing, come back at once and say the same; memory tells without the device. */
static void check_after(struct run *gpu, const utter_error *first, const char *what)
{
    utter_error error = {0};
    struct backend_memory memory = {0};
    struct lane_out out;
    double began = clock_seconds();
    gpu->ops->memory(gpu->b, &memory);
    bool same = gpu->ops->lane_reset(gpu->b, 0, &GREEDY, &error) == UTTER_E_DEVICE &&
                strcmp(error.text, first->text) == 0 &&
                gpu->ops->collect(gpu->b, 0, &out, &error) == UTTER_E_DEVICE &&
                strcmp(error.text, first->text) == 0 && memory.most_lanes == gpu->b->lanes.n;
    gpu->ops->close(&gpu->b);
    result(
        same && clock_seconds() - began < 0.5, "%s: every later call says so, and closing ends", what);
}

/* A lane whose pages are on their way is emptied behind them: the next one's are written to the same place. */
static void check_reset_waits(struct run *gpu)
{
    utter_error error;
    int held_s = 1;
    bool queued = said(gpu->ops->lane_reset(gpu->b, 0, &GREEDY, &error), &error, "reset") &&
                  cudaLaunchHostFunc(gpu->b->stream, hold_up, &held_s) == cudaSuccess;
    double began = clock_seconds();
    queued = queued && start(gpu, 0, 1, &GREEDY, 9);
    const double queued_s = clock_seconds() - began;
    queued = queued && said(gpu->ops->lane_reset(gpu->b, 0, &GREEDY, &error), &error, "reset");
    result(queued && queued_s < 0.5 && clock_seconds() - began > 0.5,
        "a prompt is queued in %.2f s, and its lane emptied after %.2f s", queued_s,
        clock_seconds() - began);
}

/* A backend with little patience, and behind held_s seconds of nothing one frame of work. */
static bool open_hanging(struct run *gpu, const struct model *model, int *held_s, bool *queued)
{
    if (!open_run(gpu, &cuda_backend, model, 1)) {
        return false;
    }
    gpu->b->device.patience_s = 0.2;
    *queued = cudaLaunchHostFunc(gpu->b->stream, hold_up, held_s) == cudaSuccess &&
              start(gpu, 0, 1, &GREEDY, 9);
    return true;
}

/* A call that has failed once, of a device that would work: nobody knows what has become of what was queued. */
static void check_broken(const struct model *model)
{
    struct run gpu;
    utter_error error = {0};
    if (!open_run(&gpu, &cuda_backend, model, 1)) {
        return;
    }
    cuda_device_check(&gpu.b->device, cudaErrorInvalidValue, "a call", &error);
    check_after(&gpu, &error, "a call that failed once");
}

static utter_status collect_one(struct run *gpu, utter_error *error)
{
    struct lane_out out;
    return gpu->ops->collect(gpu->b, 0, &out, error);
}

static utter_status keep_some(struct run *gpu, utter_error *error)
{
    struct backend_snapshot *snapshot = NULL;
    return gpu->ops->lane_keep(gpu->b, 0, 5, true, &snapshot, error);
}

static utter_status encode_some(struct run *gpu, utter_error *error)
{
    static const float silence[4000];
    int32_t codes[3 * MAX_CODEBOOKS];
    size_t n_frames;
    return gpu->ops->encode(
        gpu->b, silence, sizeof silence / sizeof *silence, codes, 3, &n_frames, NULL, NULL, error);
}

/* Work that does not end within the patience that a backend has: each call that waits for it comes back, and those
 * that allocate memory do not begin with it. */
static void check_hang(const struct model *model, const char *what,
    utter_status (*call)(struct run *gpu, utter_error *error))
{
    struct run gpu;
    utter_error error = {0};
    int held_s = 3;
    bool queued;
    if (!open_hanging(&gpu, model, &held_s, &queued)) {
        return;
    }
    double began = clock_seconds();
    utter_status status = call(&gpu, &error);
    result(queued && status == UTTER_E_DEVICE && clock_seconds() - began < 1,
        "%s of a device that hangs, after %.2f s: %s", what, clock_seconds() - began, error.text);
    check_after(&gpu, &error, what);
    hold_up(&held_s); /* until the work that was given up has ended */
}

/* A frame whose usual length is known is given up long before the device's patience ends. */
static void check_late_frame(const struct model *model)
{
    struct run gpu;
    struct lane_out out;
    utter_error error = {0};
    int held_s = 8;
    if (!open_run(&gpu, &cuda_backend, model, 1)) {
        return;
    }
    bool good = start(&gpu, 0, 1, &GREEDY, 9);
    for (int i = 0; i < 4 && good; i++) {
        good = one_frame(&gpu, 0, gpu.config->tts_pad, NULL, &out);
    }
    good = good && gpu.b->usual_s[0] > 0;
    gpu.b->usual_s[0] = 0.002; /* of a GPU: a posed one is slower */
    gpu.b->device.patience_s = 20;
    good = good && cudaLaunchHostFunc(gpu.b->stream, hold_up, &held_s) == cudaSuccess;
    const double began = clock_seconds();
    struct frame_in in = {0, gpu.config->tts_pad, NULL};
    utter_status status = gpu.ops->frame(gpu.b, &in, 1, &error);
    status = status ? status : gpu.ops->collect(gpu.b, 0, &out, &error);
    const double waited_s = clock_seconds() - began;
    result(good && status == UTTER_E_DEVICE && waited_s > 1.5 && waited_s < 6,
        "a frame that should take 2 ms is given up after %.2f s: %s", waited_s, error.text);
    check_after(&gpu, &error, "a late frame");
    hold_up(&held_s);
}

/* Nobody has waited for it yet when the model is closed. */
static void check_close_hanging(const struct model *model)
{
    struct run gpu;
    int held_s = 2;
    bool queued;
    if (!open_hanging(&gpu, model, &held_s, &queued)) {
        return;
    }
    double began = clock_seconds();
    gpu.ops->close(&gpu.b);
    result(queued && clock_seconds() - began < 1, "a device that hangs is closed, after %.2f s",
        clock_seconds() - began);
    hold_up(&held_s);
}

/* A kernel that writes where nothing is: CUDA then refuses all further work of the process. */
static void check_lost(const struct model *model)
{
    enum { N_LOST = 9 };
    struct row rows[N_LOST];
    struct run gpu;
    struct lane_out out;
    utter_error error = {0};
    if (!open_run(&gpu, &cuda_backend, model, 1)) {
        return;
    }
    struct cuda_queue queue = {.stream = gpu.b->stream};
    struct cuda_renew renew = {gpu.b->lanes, 0, 16, GREEDY};
    renew.lanes.state = (struct cuda_lane *)(uintptr_t)0xdead0000u;
    setenv("HOST_FINDINGS", "1", 1); /* that a posed GPU makes of it, which may say so at once */
    make_rows(gpu.config, 1, rows, N_LOST);
    const bool queued = cuda_renew_queue(&queue, &renew) == cudaSuccess;
    utter_status status = gpu.ops->lane_reset(gpu.b, 0, &GREEDY, &error);
    status = status ? status : gpu.ops->prefill(gpu.b, 0, rows, N_LOST, &error);
    status = status ? status : gpu.ops->collect(gpu.b, 0, &out, &error);
    result(queued && status == UTTER_E_DEVICE, "a device that is lost: %s", error.text);
    check_after(&gpu, &error, "after that");
}

static void check_model(void)
{
    utter_error error;
    struct model *model;
    struct run gpu = {0};
    if (!said(model_open(&model, folder, &error), &error, "open")) {
        return;
    }
    if (open_run(&gpu, &cuda_backend, model, N_LANES)) {
        check_snapshot(&gpu);
        check_prime(&gpu);
        check_end(&gpu);
        check_count(&gpu);
        check_reset_waits(&gpu);
        check_errors(&gpu);
        check_snapshot_errors(&gpu);
        if (model->has_encoder && model->has_speaker) {
            check_recording(&gpu);
        }
        gpu.ops->close(&gpu.b);
    }
    check_memory_bound(model);
    check_suiting_lanes(model);
    check_wanted(model);
    check_shapes(model);
    check_asked_device();
    model_close(&model);
}

int main(int argc, char **argv)
{
    utter_error error;
    struct model *model;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-p") == 0 && i + 1 < argc) {
            most_recorded = atoi(argv[++i]);
        } else {
            folder = argv[i];
            check_model();
        }
    }
    if (folder && said(model_open(&model, folder, &error), &error, "open")) {
        check_broken(model);
        check_hang(model, "a frame", collect_one);
        check_hang(model, "a snapshot", keep_some);
        if (model->has_encoder) {
            check_hang(model, "a recording", encode_some);
        }
        check_late_frame(model);
        check_close_hanging(model);
        check_lost(model); /* last: the process has no GPU after it */
        model_close(&model);
    }
    printf("%d passed, %d failed\n", n_passed, n_failed);
    return n_failed > 0 || n_passed == 0;
}
