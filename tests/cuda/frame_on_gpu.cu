/* SPDX-License-Identifier: Apache-2.0
 * The frame kernel on a GPU: compared with the CPU backend, repeated, and timed. Goes on after faults.
 * Usage: frame_on_gpu CHECKPOINT [FRAMES_TO_TIME [FRAMES_TO_COMPARE]]. */
#include <cuda_runtime.h>

extern "C" {
#include "cuda/frame.h"
}
#include "tests/cuda/frame_compare.h"

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

__global__ void put_tiles(
    uint16_t *tiles, const uint16_t *from, int64_t rows, int n_cols, int first, int interleave)
{
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < rows * n_cols;
         i += gridDim.x * (int64_t)blockDim.x) {
        tiles[tiles_at(n_cols, first, interleave, i / n_cols, i % n_cols)] = from[i];
    }
}

static void machine_tiles(void *tiles, int n_cols, const struct weight *w, int first, int interleave)
{
    static uint16_t *raw;
    static size_t raw_bytes;
    size_t bytes = (size_t)(w->rows * w->cols) * 2;
    if (bytes > raw_bytes) {
        cudaFree(raw);
        must(cudaMalloc(&raw, bytes), "memory");
        raw_bytes = bytes;
    }
    machine_write(raw, w->data, bytes);
    put_tiles<<<1024, 256>>>((uint16_t *)tiles, raw, w->rows, n_cols, first, interleave);
    must(cudaDeviceSynchronize(), "tiles");
}

/* ---- Repeats and times ---- */

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
static void speak(struct rig *rig, uint64_t seed, struct timing *t)
{
    const int n_codebooks = rig->model->config->n_codebooks, width = rig->model->config->talker.width;
    struct lane_settings settings = {{0.9f, 50, 1, 1.05f}, {0.9f, 50, 1, 1}, seed, 2};
    float row[2048];
    for (int i = 0; i < width; i++) {
        row[i] = (float)((i * 7919) % 997) * 1e-4f - 0.05f;
    }
    utter_error error;
    cudaEvent_t begin, end;
    must(cudaEventCreate(&begin), "event");
    must(cudaEventCreate(&end), "event");
    rig_reset(rig, &settings);
    rig_run(rig, row, NULL, FRAME_STEP | FRAME_ROW | FRAME_NO_CODES);
    t->ms = (float *)calloc((size_t)t->n, sizeof *t->ms);
    t->codes = (int32_t *)calloc((size_t)t->n * n_codebooks, sizeof *t->codes);
    for (int f = 0; f < t->n && t->errors <= 3; f++) {
        must(cudaEventRecord(begin), "event");
        machine_check("frame",
            frame_kernel_run(rig->kernel, 0, rig->position, rig->row, NULL, f == 0 ? 0 : FRAME_STEP,
                ++rig->sequence, rig->out_device, &error),
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
}

/* Bytes of weights that a frame reads. */
static double frame_bytes(const struct rig *rig)
{
    const struct cuda_stack *t = &rig->weights.talker, *p = &rig->weights.predictor;
    int n = rig->model->config->n_codebooks - 1;
    double talker =
        (double)t->n_layers * (6144.0 * t->width + 3.0 * t->width * t->inner) + 3072.0 * t->width;
    double predictor =
        (double)p->n_layers * (6144.0 * p->width + 3.0 * p->width * p->inner) + 2048.0 * p->width;
    return 2 * (talker + n * (predictor + (t->width != p->width ? (double)t->width * p->width : 0)));
}

static int time_frames(struct rig *rig, int n)
{
    struct timing first = {NULL, NULL, n, 0, 0}, second = first;
    speak(rig, 11, &first);
    speak(rig, 11, &second);
    size_t bytes = (size_t)n * rig->model->config->n_codebooks * sizeof *first.codes;
    bool same = memcmp(first.codes, second.codes, bytes) == 0;
    const float *ms = second.ms + 1; /* the first frame has no talker step */
    double median = share_of(ms, n - 1, 0.5);
    printf("%d frames: median %.4f ms, p5 %.4f, p95 %.4f, worst %.4f; %.2f TB/s; repeats %s, %d ends, "
           "%d errors\n",
        n, median, share_of(ms, n - 1, 0.05), share_of(ms, n - 1, 0.95), share_of(ms, n - 1, 1),
        frame_bytes(rig) / median * 1e-9, same ? "equal" : "DIFFER", second.ends,
        first.errors + second.errors);
    printf("  first frame (no talker step) %.4f ms\n", second.ms[0]);
    for (int at = 0; at + 50 < n - 1; at += n / 4) {
        printf("  frames %d to %d: %.4f ms\n", at, at + 50, share_of(ms + at, 50, 0.5));
    }
    return !same + first.errors + second.errors;
}

/* Mean time from place to place of the trace, in us at 1.98 GHz; places are the numbers in frame.cu. */
static void show_trace(struct rig *rig)
{
    static uint64_t trace[FRAME_TRACE];
    double sum[16][16] = {};
    int n[16][16] = {};
    uint64_t *at = (uint64_t *)machine_new(sizeof trace, NULL);
    struct timing t = {NULL, NULL, 20, 0, 0};
    frame_kernel_trace(rig->kernel, at);
    speak(rig, 11, &t);
    frame_kernel_trace(rig->kernel, NULL);
    machine_read(trace, at, sizeof trace);
    for (int i = 1; i < FRAME_TRACE && trace[i]; i++) {
        int from = (int)(trace[i - 1] & 15), to = (int)(trace[i] & 15);
        sum[from][to] += (double)(trace[i] / 256 - trace[i - 1] / 256);
        n[from][to]++;
    }
    for (int i = 0; i < 256; i++) {
        if (n[i / 16][i % 16]) {
            printf("  %d to %d: %.3f us x %d\n", i / 16, i % 16,
                sum[i / 16][i % 16] / n[i / 16][i % 16] / 1980, n[i / 16][i % 16]);
        }
    }
}

int main(int argc, char **argv)
{
    utter_error error;
    struct model *model;
    struct rig rig = {};
    setvbuf(stdout, NULL, _IOLBF, 0);
    int n_time = argc > 2 ? atoi(argv[2]) : 200, n_compare = argc > 3 ? atoi(argv[3]) : 3;
    machine_check("model", model_open(&model, argv[1], &error), &error);
    machine_check("device", cuda_device_open(&rig.device, 0, &error), &error);
    must(cudaHostAlloc((void **)&rig.out, sizeof *rig.out, cudaHostAllocMapped), "pinned");
    must(cudaHostGetDevicePointer((void **)&rig.out_device, rig.out, 0), "pinned");
    rig_open(&rig, model, n_time + 600);
    printf("%s on %s, %d SMs, %d slots\n", argv[1], rig.device.name, rig.device.n_sms,
        frame_n_slots(rig.device.block_shared));
    int bad = 0;
    if (n_compare > 0) {
        const struct comparison runs[] = {
            {argv[1], 40, n_compare, true, true, 1e-4},
            {argv[1], 3, n_compare, false, false, 1e-4},
            {argv[1], 300, 1, true, false, 1e-4},
        };
        for (int i = 0; i < 3; i++) {
            bad += compare_run(&rig, &runs[i]);
        }
    }
    const int aheads[] = {1, 2, 2, 3, 3}, paces[] = {0, 0, 250, 200, 300};
    for (int i = 0; argc > 4 && i < 5; i++) {
        printf("%d pieces on their way, %d clocks: ", aheads[i], paces[i]);
        frame_kernel_ahead(rig.kernel, aheads[i], paces[i]);
        bad += time_frames(&rig, n_time);
    }
    frame_kernel_ahead(rig.kernel, 2, 200);
    bad += time_frames(&rig, n_time);
    show_trace(&rig);
    printf("%s: %d faults\n", argv[1], bad);
    return bad != 0;
}
