/* SPDX-License-Identifier: Apache-2.0
 * The frame kernel on a GPU: compared with the CPU backend, repeated, and timed; lanes together compared with lanes
 * alone, and timed. Goes on after faults. Usage: frame_on_gpu CHECKPOINT [FRAMES_TO_TIME [FRAMES_TO_COMPARE
 * [bf16|predictor|all|each [sweep|- [FRAMES_TO_SOAK]]]]]; the names: what is in 8 bits. */
#include <cuda_runtime.h>

extern "C" {
#include "cuda/persistent/persistent.h"
}
#include "tests/cuda/frame_soak.h"

static void must(cudaError_t result, const char *what)
{
    if (result != cudaSuccess) {
        printf("FATAL %s: %s\n", what, cudaGetErrorString(result));
        exit(2);
    }
}

static void *machine_new(size_t bytes, const void *from)
{
    void *p;
    must(cudaMalloc(&p, bytes), "memory");
    must(from ? cudaMemcpy(p, from, bytes, cudaMemcpyHostToDevice) : cudaMemset(p, 0, bytes), "fill");
    return p;
}
static void machine_read(void *to, const void *from, size_t bytes)
{
    must(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "read");
}
static void machine_write(void *to, const void *from, size_t bytes)
{
    must(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "write");
}

/* ---- Repeats and times ---- */

static const struct lane_settings USUAL = {{0.9f, 50, 1, 1.05f}, {0.9f, 50, 1, 1}, 11, 2};

struct timing {
    float *ms;      /* [n], sorted by sort_times */
    int32_t *codes; /* [n][n_codebooks] */
    int n, ends, errors;
};

static int by_size(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static double share_of(const float *ms, int n, double share)
{
    float *sorted = (float *)malloc((size_t)n * sizeof *ms);
    memcpy(sorted, ms, (size_t)n * sizeof *ms);
    qsort(sorted, (size_t)n, sizeof *ms, by_size);
    int at = (int)(share * n);
    double value = sorted[at < n ? at : n - 1];
    free(sorted);
    return value;
}

/* An utterance of t->n frames behind one row; every frame timed by itself. An end is passed over. */
static void speak(struct rig *rig, const struct lane_settings *settings, struct timing *t)
{
    const int n_codebooks = rig->model->config->n_codebooks, width = rig->model->config->talker.width;
    float row[2048];
    for (int i = 0; i < width; i++) {
        row[i] = (float)((i * 7919) % 997) * 1e-4f - 0.05f;
    }
    utter_error error;
    cudaEvent_t begin, end;
    must(cudaEventCreate(&begin), "event");
    must(cudaEventCreate(&end), "event");
    rig_reset(rig, settings);
    rig_run(rig, row, NULL, FRAME_STEP | FRAME_ROW | FRAME_NO_CODES);
    t->ms = (float *)calloc((size_t)t->n, sizeof *t->ms);
    t->codes = (int32_t *)calloc((size_t)t->n * n_codebooks, sizeof *t->codes);
    for (int f = 0; f < t->n && t->errors <= 3; f++) {
        must(cudaEventRecord(begin), "event");
        const struct frame_ask ask = {0, rig->position, rig->row, NULL, rig->out_device};
        machine_check("frame",
            frame_kernel_run(rig->kernel, &ask, 1, f == 0 ? 0 : FRAME_STEP, ++rig->sequence, &error),
            &error);
        rig->position += f > 0;
        must(cudaEventRecord(end), "event");
        must(cudaEventSynchronize(end), "a frame");
        must(cudaEventElapsedTime(&t->ms[f], begin, end), "time");
        t->ends += rig->out->end;
        memcpy(t->codes + f * n_codebooks, rig->out->codes, (size_t)n_codebooks * sizeof *t->codes);
        t->errors += rig->out->sequence != rig->sequence;
    }
    uint32_t errors;
    machine_check("errors", frame_kernel_errors(rig->kernel, &errors, &error), &error);
    t->errors += errors != 0;
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
}

static const char *const PACKED_NAMES[] = {"bf16", "predictor", "all"};

/* Bytes of weights that a frame reads. */
static double frame_bytes(const struct rig *rig, enum frame_packed packed)
{
    const struct cuda_stack *t = &rig->weights.talker, *p = &rig->weights.predictor;
    int n = rig->model->config->n_codebooks - 1;
    double talker =
        (double)t->n_layers * (6144.0 * t->width + 3.0 * t->width * t->inner) + 3072.0 * t->width;
    double predictor =
        (double)p->n_layers * (6144.0 * p->width + 3.0 * p->width * p->inner) + 2048.0 * p->width;
    const double narrow = (double)FRAME_PACKED_BYTES / (FRAME_UNIT_BYTES / 2);
    return talker * (packed == FRAME_PACKED_ALL ? narrow : 2) +
           n * (predictor + (t->width != p->width ? (double)t->width * p->width : 0)) *
               (packed != FRAME_PACKED_NONE ? narrow : 2);
}

/* What this GPU can stream: bytes a second of a kernel that only reads. */
__global__ void read_all(const uint4 *from, int64_t n, uint32_t *to)
{
    uint32_t all = 0;
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n;
         i += 8 * gridDim.x * (int64_t)blockDim.x) {
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const int64_t at = i + j * gridDim.x * (int64_t)blockDim.x;
            const uint4 v = at < n ? __ldcs(from + at) : uint4{0, 0, 0, 0};
            all ^= v.x ^ v.y ^ v.z ^ v.w;
        }
    }
    if (all == 12345) {
        *to = all;
    }
}

static double stream_rate(void)
{
    enum { N = 9 };
    const int64_t bytes = (int64_t)4 << 30;
    float ms[N];
    double best = 0;
    unsigned char *from = (unsigned char *)machine_new(bytes + 4, NULL);
    for (int64_t at = 0; at < bytes; at += bytes / 64) { /* not all zero */
        must(cudaMemset(from + at, (int)(at >> 26) * 37 + 1, bytes / 64), "fill");
    }
    cudaEvent_t begin, end;
    must(cudaEventCreate(&begin), "event");
    must(cudaEventCreate(&end), "event");
    for (int blocks = 264; blocks <= 1056; blocks *= 2) {
        for (int i = 0; i < N; i++) {
            must(cudaEventRecord(begin), "event");
            read_all<<<blocks, 512>>>((const uint4 *)from, bytes / 16, (uint32_t *)(from + bytes));
            must(cudaEventRecord(end), "event");
            must(cudaEventSynchronize(end), "reading");
            must(cudaEventElapsedTime(&ms[i], begin, end), "time");
        }
        best = fmax(best, (double)bytes / share_of(ms, N, 0.5) * 1e-9);
    }
    cudaFree(from);
    return best;
}

static int time_frames(struct rig *rig, int n, enum frame_packed packed, double rate)
{
    struct timing first = {NULL, NULL, n, 0, 0}, second = first;
    speak(rig, &USUAL, &first);
    speak(rig, &USUAL, &second);
    size_t bytes = (size_t)n * rig->model->config->n_codebooks * sizeof *first.codes;
    bool same = memcmp(first.codes, second.codes, bytes) == 0;
    const float *ms = second.ms + 1; /* the first frame has no talker step */
    double median = share_of(ms, n - 1, 0.5);
    printf("%d frames: median %.4f ms, p5 %.4f, p95 %.4f, worst %.4f; %.2f TB/s, %.0f%% of the stream "
           "rate; repeats %s, %d ends, "
           "%d errors\n",
        n, median, share_of(ms, n - 1, 0.05), share_of(ms, n - 1, 0.95), share_of(ms, n - 1, 1),
        frame_bytes(rig, packed) / median * 1e-9, frame_bytes(rig, packed) / median * 1e-7 / rate,
        same ? "equal" : "DIFFER", second.ends, first.errors + second.errors);
    printf("  first frame (no talker step) %.4f ms\n", second.ms[0]);
    for (int at = 0; at + 50 < n - 1; at += n / 4) {
        printf("  frames %d to %d: %.4f ms\n", at, at + 50, share_of(ms + at, 50, 0.5));
    }
    return !same + first.errors + second.errors;
}

/* Frames of n lanes, each from its own first row on, in one launch each time. */
static int time_lanes(struct rig *rig, int n, int n_frames)
{
    struct frame_ask asks[FRAME_MOST_LANES];
    struct timing t = {NULL, NULL, n_frames, 0, 0};
    utter_error error;
    uint32_t errors;
    cudaEvent_t begin, end;
    must(cudaEventCreate(&begin), "event");
    must(cudaEventCreate(&end), "event");
    t.ms = (float *)calloc((size_t)n_frames, sizeof *t.ms);
    for (int l = 0; l < n; l++) {
        struct lane_settings settings = USUAL;
        settings.seed += (uint64_t)l;
        rig_reset_lane(rig, l, &settings);
        t.errors += together_prompt(rig, l, 1);
        asks[l] = (struct frame_ask){
            l, 1, rig->row + (size_t)l * rig->model->config->talker.width, NULL, rig->out_device + l};
    }
    for (int f = 0; f < n_frames && t.errors <= 3; f++) {
        must(cudaEventRecord(begin), "event");
        machine_check("frame",
            frame_kernel_run(rig->kernel, asks, n, f == 0 ? 0 : FRAME_STEP, ++rig->sequence, &error),
            &error);
        must(cudaEventRecord(end), "event");
        must(cudaEventSynchronize(end), "a frame");
        must(cudaEventElapsedTime(&t.ms[f], begin, end), "time");
        for (int l = 0; l < n; l++) {
            asks[l].position += f > 0;
            t.ends += rig->out[l].end;
            t.errors += rig->out[l].sequence != rig->sequence || rig->out[l].failed;
        }
    }
    machine_check("errors", frame_kernel_errors(rig->kernel, &errors, &error), &error);
    t.errors += errors != 0;
    printf("%d lanes, %d frames: median %.4f ms, p5 %.4f, p95 %.4f, worst %.4f; %d ends, %d errors\n",
        n, n_frames, share_of(t.ms + 1, n_frames - 1, 0.5), share_of(t.ms + 1, n_frames - 1, 0.05),
        share_of(t.ms + 1, n_frames - 1, 0.95), share_of(t.ms + 1, n_frames - 1, 1), t.ends, t.errors);
    free(t.ms);
    return t.errors;
}

/* Lanes together: compared, timed, and traced where the build does that. */
static int run_lanes(struct rig *rig, int n_time, bool sweep)
{
    const int counts[] = {2, 3, 4, 5, 8}, aheads[] = {1, 2, 2, 2, 2, 3, 3, 2},
              copy_clocks[] = {0, 0, 200, 300, 400, 200, 300, 250};
    int bad = 0;
    for (int i = 0; i < 5; i++) {
        if (counts[i] > frame_kernel_lanes(rig->kernel)) {
            continue;
        }
        bad += together_run(rig, counts[i], 8);
        bad += time_lanes(rig, counts[i], n_time);
        for (int j = 0; sweep && counts[i] % 4 == 0 && j < 8; j++) {
            printf("%d slots on their way, %d clocks: ", aheads[j], copy_clocks[j]);
            frame_kernel_ahead(rig->kernel, aheads[j], copy_clocks[j]);
            bad += time_lanes(rig, counts[i], n_time);
        }
    }
    return bad;
}

/* Mean time from place to place of the trace, in us at 1.98 GHz; places are the numbers in
 * persistent/persistent.cuh, with 16 added in the predictor and 32 in its first pass. */
static void show_trace(struct rig *rig, int n_lanes)
{
    enum { PLACES = 48 };
    static uint64_t trace[FRAME_TRACE];
    static double sum[PLACES][PLACES];
    static int n[PLACES][PLACES];
    uint64_t *at = (uint64_t *)machine_new(sizeof trace, NULL);
    struct timing t = {NULL, NULL, 20, 0, 0};
    memset(sum, 0, sizeof sum);
    memset(n, 0, sizeof n);
    frame_kernel_trace(rig->kernel, at);
    if (n_lanes == 1) {
        speak(rig, &USUAL, &t);
    } else {
        time_lanes(rig, n_lanes, 20);
    }
    frame_kernel_trace(rig->kernel, NULL);
    machine_read(trace, at, sizeof trace);
    for (int i = 1; i < FRAME_TRACE && trace[i];
         i++) { /* the last frame that was traced: from its first layer on */
        int from = (int)(trace[i - 1] & 255), to = (int)(trace[i] & 255);
        sum[from][to] += (double)(trace[i] / 256 - trace[i - 1] / 256);
        n[from][to]++;
    }
    for (int i = 0; i < PLACES * PLACES; i++) {
        if (n[i / PLACES][i % PLACES]) {
            printf("  %d to %d: %.3f us x %d\n", i / PLACES, i % PLACES,
                sum[i / PLACES][i % PLACES] / n[i / PLACES][i % PLACES] / 1980,
                n[i / PLACES][i % PLACES]);
        }
    }
}

/* Ways of bringing weights. */
static int sweep_ways(struct rig *rig, int n, enum frame_packed packed, double rate)
{
    static const struct {
        int n_slots, copy_clocks;
    } ways[] = {{1, 0}, {2, 0}, {2, 250}, {3, 0}, {3, 150}, {3, 200}, {3, 300}, {4, 150}, {4, 300},
        {4, 400}, {8, 300}, {8, 400}, {8, 500}};
    int bad = 0;
    for (const auto &way : ways) {
        printf("%d slots on their way, %d clocks: ", way.n_slots, way.copy_clocks);
        frame_kernel_ahead(rig->kernel, way.n_slots, way.copy_clocks);
        bad += time_frames(rig, n, packed, rate);
    }
    return bad;
}

/* A build of the kernel: compared, repeated, timed. */
static int run_one(
    const char *folder, int n_time, int n_compare, enum frame_packed packed, bool sweep, int n_soak)
{
    utter_error error;
    struct model *model;
    struct rig rig = {};
    const double rate = stream_rate();
    machine_check("model", model_open(&model, folder, &error), &error);
    machine_check("device", cuda_device_open(&rig.device, 0, &error), &error);
    must(cudaHostAlloc((void **)&rig.out, FRAME_MOST_LANES * sizeof *rig.out, cudaHostAllocMapped),
        "pinned");
    must(cudaHostGetDevicePointer((void **)&rig.out_device, rig.out, 0), "pinned");
    rig_open(&rig, model, FRAME_MOST_LANES, n_time + 600, packed);
    printf("%s, in 8 bits: %s, on %s, %d SMs, %d slots, %.3f TB/s can be read\n", folder,
        packed == FRAME_PACKED_NONE ? "nothing" : PACKED_NAMES[packed], rig.device.name,
        rig.device.arch.n_sms,
        frame_n_slots(rig.device.arch.block_shared,
            frame_kernel_build(rig.weights.talker.width, packed).ring_at, packed != FRAME_PACKED_NONE,
            rig.device.arch.half_slots),
        rate);
    int bad = time_frames(&rig, n_time, packed, rate);
    show_trace(&rig, 1);
    bad += run_lanes(&rig, n_time, sweep);
    show_trace(&rig, frame_kernel_lanes(rig.kernel));
    bad += sweep ? sweep_ways(&rig, n_time, packed, rate) : 0;
    bad += n_soak > 0 ? soak_run(&rig, n_soak, (uint64_t)n_time) : 0;
    const double limit = packed != FRAME_PACKED_NONE
                             ? 5e-4
                             : 1e-4; /* a rounding border of 16-bit vectors moves a little more */
    const struct comparison runs[] = {
        {folder, 40, n_compare, true, true, limit},
        {folder, 3, n_compare, false, false, limit},
        {folder, 300, 1, true, false, limit},
    };
    for (int i = 0; n_compare > 0 && i < 3; i++) {
        bad += compare_run(&rig, &runs[i]);
    }
    printf("%s: %d faults\n", folder, bad);
    return bad != 0;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    const int n_time = argc > 2 ? atoi(argv[2]) : 200, n_compare = argc > 3 ? atoi(argv[3]) : 3;
    const char *which = argc > 4 ? argv[4] : "each";
    int bad = 0;
    for (int i = FRAME_PACKED_NONE; i <= FRAME_PACKED_ALL; i++) {
        if (strcmp(which, "each") == 0 || strcmp(which, PACKED_NAMES[i]) == 0) {
            bad += run_one(argv[1], n_time, n_compare, (enum frame_packed)i,
                argc > 5 && strcmp(argv[5], "sweep") == 0, argc > 6 ? atoi(argv[6]) : 0);
        }
    }
    return bad != 0;
}
