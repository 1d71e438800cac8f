/* SPDX-License-Identifier: Apache-2.0
 * The vocoder on the GPU against the one on the CPU: stage by stage, samples, cuts into calls, lanes together. Goes
 * on after a failure; prints one line for each question and ends with `N passed, N failed`. "bench" adds times,
 * "choices" measures other tiles, "once" does one run kernel by kernel for a profiler, "orders" only repeats a run,
 * which must give the same bits each time. */
#include <cuda_profiler_api.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/threads.h"
#include "cpu/vocoder/vocoder.h"
#include "cuda/device/memory.h"
#include "cuda/vocoder/vocoder.h"
#include "tests/cpu/random.h"
#include "tests/cuda/bits.h"

enum { MAX_STAGES = 32, LANES = 64, FEW_LANES = 5, MANY_LANES = 20 };

static const double least_snr = 50; /* dB, of samples against the CPU's */

static int n_passed, n_failed;

static void report(bool good, const char *what)
{
    n_passed += good;
    n_failed += !good;
    printf("%s %s\n", good ? "ok  " : "FAIL", what);
    fflush(stdout);
}

struct setting {
    struct model *model;
    struct pool *pool;
    struct cpu_vocoder *cpu;
    struct cuda_device device;
    struct cuda_vocoder *cuda;
    cudaStream_t stream;
    const struct codec_config *shape;
    int n_frames;
    int32_t *codes;      /* [LANES][n_frames][n_codebooks] */
    int32_t *codes_at;   /* the same on the device */
    float *pcm, *pcm_at; /* [LANES][n_frames * frame_samples], mapped */
    uint32_t *bad, *bad_at;
    float *want; /* lane 0's samples on the CPU */
    utter_error error;
};

static void need(struct setting *s, int status, const char *what)
{
    if (status) {
        printf("FAIL %s: %s\n", what, s->error.text);
        exit(1);
    }
}

static size_t lane_samples(const struct setting *s)
{
    return (size_t)s->n_frames * (size_t)s->shape->frame_samples;
}

static void setting_open(struct setting *s, const char *folder, int n_frames, int n_lanes, int n_sms)
{
    need(s, model_open(&s->model, folder, &s->error), "model");
    s->shape = &s->model->config->codec;
    s->n_frames = n_frames;
    s->pool = pool_new(threads_available());
    need(s, cpu_vocoder_open(&s->cpu, s->model, kern_find(NULL), s->pool, &s->error), "cpu");
    need(s, cuda_device_open(&s->device, 0, &s->error), "device");
    s->device.arch.n_sms = n_sms ? n_sms : s->device.arch.n_sms;
    double start = clock_seconds();
    need(s, cuda_vocoder_open(&s->cuda, s->model, &s->device, n_lanes, &s->error), "open");
    uint64_t shared, lane;
    cuda_vocoder_memory(s->cuda, &shared, &lane);
    printf("     %s: %s, %d lanes, open %.2f s, %.1f MB and %.1f MB a lane\n", folder, s->device.name,
        n_lanes, clock_seconds() - start, 1e-6 * (double)shared, 1e-6 * (double)lane);
    cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking);
    size_t n = (size_t)(n_frames * s->shape->n_codebooks) * LANES;
    struct random random = {3, 0};
    s->codes = malloc(n * sizeof *s->codes);
    for (size_t i = 0; i < n; i++) {
        s->codes[i] = (int32_t)(random_word(&random) % (uint32_t)s->shape->codebook_size);
    }
    cudaMalloc((void **)&s->codes_at, n * sizeof *s->codes);
    cudaMemcpy(s->codes_at, s->codes, n * sizeof *s->codes, cudaMemcpyHostToDevice);
    cudaDeviceSynchronize(); /* the copy may still be on its way, and other streams do not wait for it */
    need(s,
        cuda_pinned_open(&s->device, lane_samples(s) * LANES * sizeof(float), (void **)&s->pcm,
            (void **)&s->pcm_at, "pcm", &s->error),
        "pcm");
    need(s,
        cuda_pinned_open(&s->device, LANES * sizeof(uint32_t), (void **)&s->bad, (void **)&s->bad_at,
            "flags", &s->error),
        "flags");
    s->want = malloc(lane_samples(s) * sizeof *s->want);
}

static void setting_close(struct setting *s)
{
    cuda_vocoder_close(&s->cuda);
    cpu_vocoder_close(&s->cpu);
    model_close(&s->model);
    pool_free(s->pool);
    cudaFree(s->codes_at);
    cuda_pinned_close(s->pcm);
    cuda_pinned_close(s->bad);
    cudaStreamDestroy(s->stream);
    free(s->codes);
    free(s->want);
}

/* Frames t .. t + n - 1 of some lanes, queued. Lane i speaks codes i + shift. */
static void run(struct setting *s, const int *lanes, int n_lanes, int shift, int t, int n)
{
    int64_t codes_stride = (int64_t)s->n_frames * s->shape->n_codebooks;
    struct cuda_vocoder_job job = {.lanes = lanes,
        .n = n_lanes,
        .n_frames = n,
        .codes = s->codes_at + shift * codes_stride + (int64_t)t * s->shape->n_codebooks,
        .codes_stride = codes_stride,
        .pcm = s->pcm_at + (int64_t)t * s->shape->frame_samples,
        .pcm_stride = (int64_t)lane_samples(s),
        .not_a_number = s->bad_at};
    need(s, cuda_vocoder_run(s->cuda, &job, s->stream, &s->error), "run");
}

static void finish(struct setting *s)
{
    need(s, cuda_device_check(&s->device, cudaStreamSynchronize(s->stream), "wait", &s->error), "wait");
}

static void reset(struct setting *s, int lane)
{
    need(s, cuda_vocoder_reset(s->cuda, lane, s->stream, &s->error), "reset");
}

/* Signal to noise in dB, and where the values part first by more than `away`. */
static double compare(
    const float *have, const float *want, size_t n, float away, size_t *first, double *largest)
{
    double signal = 0, noise = 0;
    *first = n;
    *largest = 0;
    for (size_t i = 0; i < n; i++) {
        double d = (double)have[i] - (double)want[i];
        signal += (double)want[i] * (double)want[i];
        noise += d * d;
        *largest = fabs(d) > *largest ? fabs(d) : *largest;
        if (*first == n && !(fabs(d) <= (double)away)) {
            *first = i;
        }
    }
    return noise > 0 ? 10 * log10(signal / noise) : noise <= 0 ? 999 : -999;
}

/* ---- Stages ---- */

struct stage {
    char name[32];
    int index;
    int64_t cols;
    size_t n;
    float *data;
};

struct stages {
    struct stage stage[MAX_STAGES];
    int n;
};

static void note_stage(
    void *user, const char *name, int index, const float *data, int64_t rows, int64_t cols)
{
    struct stages *s = user;
    int i = 0;
    while (i < s->n && (strcmp(s->stage[i].name, name) != 0 || s->stage[i].index != index)) {
        i++;
    }
    if (i == s->n) {
        s->n += i + 1 < MAX_STAGES;
        snprintf(s->stage[i].name, sizeof s->stage[i].name, "%s", name);
        s->stage[i].index = index;
        s->stage[i].cols = cols;
    }
    size_t n = (size_t)(rows * cols);
    s->stage[i].data = realloc(s->stage[i].data, (s->stage[i].n + n) * sizeof *data);
    memcpy(s->stage[i].data + s->stage[i].n, data, n * sizeof *data);
    s->stage[i].n += n;
}

static void check_stages(struct setting *s, int n)
{
    struct stages want = {0}, have = {0};
    struct cpu_tap tap = {note_stage, &want};
    struct cpu_vocoder_lane *lane = cpu_vocoder_lane_new(s->cpu);
    float *pcm = malloc((size_t)n * (size_t)s->shape->frame_samples * sizeof *pcm);
    int lanes[] = {0};
    reset(s, 0);
    cuda_vocoder_tap(s->cuda, note_stage, &have);
    for (int t = 0; t < n; t++) {
        cpu_vocoder_run(s->cpu, lane, s->codes + t * s->shape->n_codebooks, 1, pcm, &tap);
        run(s, lanes, 1, 0, t, 1);
    }
    finish(s);
    cuda_vocoder_tap(s->cuda, NULL, NULL);
    for (int i = 0; i < want.n; i++) {
        struct stage *w = &want.stage[i], *h = NULL;
        for (int k = 0; k < have.n; k++) {
            if (strcmp(have.stage[k].name, w->name) == 0 && have.stage[k].index == w->index) {
                h = &have.stage[k];
            }
        }
        char line[200];
        if (!h || h->n != w->n) {
            snprintf(line, sizeof line, "stage %s %d: %zu values, want %zu", w->name, w->index,
                h ? h->n : 0, w->n);
            report(false, line);
            continue;
        }
        size_t first;
        double largest, snr;
        double rms = 0;
        for (size_t k = 0; k < w->n; k++) {
            rms += (double)w->data[k] * (double)w->data[k] / (double)w->n;
        }
        snr = compare(h->data, w->data, w->n, (float)(1e-2 * sqrt(rms)), &first, &largest);
        snprintf(line, sizeof line,
            "stage %s %d: %.1f dB, rms %.3g, largest error %.2g; first off: row %lld of %lld, channel "
            "%lld (%g, want %g)",
            w->name, w->index, snr, sqrt(rms), largest, (long long)(first / (size_t)w->cols),
            (long long)(w->n / (size_t)w->cols), (long long)(first % (size_t)w->cols),
            first < w->n ? (double)h->data[first] : 0, first < w->n ? (double)w->data[first] : 0);
        report(snr >= least_snr, line);
    }
    for (int i = 0; i < MAX_STAGES; i++) {
        free(want.stage[i].data);
        free(have.stage[i].data);
    }
    cpu_vocoder_lane_free(lane);
    free(pcm);
}

/* ---- Bits ---- */

static void check_cuts(struct setting *s)
{
    static const int steps[] = {32, 1, 2, 3, 7, 25, 0}, mixed[] = {1, 25, 2, 7, 1, 3, 32};
    size_t n = lane_samples(s), first;
    float *whole = malloc(n * sizeof *whole);
    int lanes[] = {0};
    char line[160];
    struct cpu_vocoder_lane *lane = cpu_vocoder_lane_new(s->cpu);
    for (int t = 0; t < s->n_frames; t += 32) {
        int step = s->n_frames - t < 32 ? s->n_frames - t : 32;
        cpu_vocoder_run(s->cpu, lane, s->codes + t * s->shape->n_codebooks, step,
            s->want + (size_t)t * (size_t)s->shape->frame_samples, NULL);
    }
    cpu_vocoder_lane_free(lane);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        reset(s, 0);
        memset(s->pcm, 0, n * sizeof *s->pcm);
        for (int t = 0, k = 0; t < s->n_frames; k++) {
            int step = steps[i] ? steps[i] : mixed[k % 7];
            step = step < s->n_frames - t ? step : s->n_frames - t;
            run(s, lanes, 1, 0, t, step);
            t += step;
        }
        finish(s);
        double largest, snr = compare(s->pcm, s->want, n, 0.05f, &first, &largest);
        if (i == 0) {
            memcpy(whole, s->pcm, n * sizeof *whole);
            snprintf(line, sizeof line,
                "samples against the CPU: %.1f dB, largest error %.2g, first off %zu of %zu", snr,
                largest, first, n);
            report(snr >= least_snr, line);
        }
        compare(s->pcm, whole, n, 0, &first, &largest);
        snprintf(line, sizeof line, "calls of %d frames: bits of whole (first other %zu of %zu, %.2g)",
            steps[i], first, n, largest);
        report(memcmp(s->pcm, whole, n * sizeof *whole) == 0, line);
    }
    free(whole);
}

static void check_lanes(struct setting *s, int n_lanes)
{
    size_t n = lane_samples(s);
    float *alone = malloc(n * (size_t)n_lanes * sizeof *alone);
    int lanes[LANES], n_frames = s->n_frames < 6 ? s->n_frames : 6;
    size_t part = (size_t)n_frames * (size_t)s->shape->frame_samples;
    for (int i = 0; i < n_lanes; i++) {
        reset(s, i);
        for (int t = 0; t < n_frames; t++) {
            run(s, &i, 1, 0, t, 1);
        }
        finish(s);
    }
    memcpy(alone, s->pcm, n * (size_t)n_lanes * sizeof *alone);
    memset(s->pcm, 0, n * (size_t)n_lanes * sizeof *alone);
    for (int i = 0; i < n_lanes; i++) {
        reset(s, i);
        lanes[i] = n_lanes - 1 - i;
    }
    /* All of them, then every second one alone and the others together, then all, two frames at once. */
    int odd[LANES], even[LANES], n_odd = 0, n_even = 0;
    for (int i = 0; i < n_lanes; i++) {
        if (i % 2) {
            odd[n_odd++] = i;
        } else {
            even[n_even++] = i;
        }
    }
    run(s, lanes, n_lanes, 0, 0, 1);
    for (int t = 1; t < n_frames - 2; t++) {
        run(s, even, n_even, 0, t, 1);
        if (n_odd) {
            run(s, odd, n_odd, 0, t, 1);
        }
    }
    if (n_frames > 2) {
        run(s, lanes, n_lanes, 0, n_frames - 2, 2);
    }
    finish(s);
    int n_other = 0;
    for (int i = 0; i < n_lanes; i++) {
        n_other += memcmp(s->pcm + n * (size_t)i, alone + n * (size_t)i, part * sizeof *alone) != 0;
    }
    char line[100];
    snprintf(line, sizeof line, "%d lanes together: %d differ from alone", n_lanes, n_other);
    report(n_other == 0, line);
    bool any = false;
    for (int i = 0; i < n_lanes; i++) {
        any = any || s->bad[i];
    }
    report(!any, "no sample was no number");
    free(alone);
}

/* A GPU's threads and blocks run in another order each time. Two lanes' first frame and the one behind it. */
static void check_orders(struct setting *s, int n_orders)
{
    enum { SPEAKING = 2, SAID = 2 };
    static const int lanes[SPEAKING] = {0, 1};
    const size_t said = SAID * (size_t)s->shape->frame_samples * sizeof *s->pcm;
    uint64_t first = 0;
    int same = 0;
    for (int i = 0; i < n_orders; i++) {
        uint64_t bits = BITS_BEGIN;
        reset(s, 0);
        reset(s, 1);
        for (int t = 0; t < SAID; t++) {
            run(s, lanes, SPEAKING, 0, t, 1);
        }
        finish(s);
        for (int l = 0; l < SPEAKING; l++) {
            float *pcm = s->pcm + (size_t)l * lane_samples(s);
            bits = bits_of(bits, pcm, said);
            memset(pcm, 0, said);
        }
        first = i == 0 ? bits : first;
        same += bits == first;
    }
    char line[100];
    printf("     bits %016llx\n", (unsigned long long)first);
    snprintf(line, sizeof line, "%d of %d orders give the bits of the first", same, n_orders);
    report(same == n_orders, line);
}

/* ---- Time ---- */

static void measure(struct setting *s, int n_lanes, int n_frames)
{
    int lanes[LANES];
    for (int i = 0; i < n_lanes; i++) {
        lanes[i] = i;
        reset(s, i);
    }
    cudaEvent_t begin, end;
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    enum { WARM = 10, RUNS = 60 };
    float best = 1e9f, ms;
    double all = 0;
    for (int i = 0; i < WARM + RUNS; i++) {
        cudaEventRecord(begin, s->stream);
        run(s, lanes, n_lanes, 0, 0, n_frames);
        cudaEventRecord(end, s->stream);
        finish(s);
        cudaEventElapsedTime(&ms, begin, end);
        if (i >= WARM) {
            best = ms < best ? ms : best;
            all += (double)ms / RUNS;
        }
    }
    cudaEventRecord(begin, s->stream);
    for (int i = 0; i < RUNS; i++) {
        run(s, lanes, n_lanes, 0, 0, n_frames);
    }
    cudaEventRecord(end, s->stream);
    finish(s);
    cudaEventElapsedTime(&ms, begin, end);
    double one = (double)ms / RUNS, sound = 80.0 * n_lanes * n_frames;
    printf("     %2d lanes, %d frames: %.3f ms mean, %.3f ms least, %.3f ms back to back: %.0f times "
           "real time\n",
        n_lanes, n_frames, all, (double)best, one, sound / one);
    fflush(stdout);
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
}

/* One run, kernel by kernel, for a profiler. */
static void run_once(struct setting *s, int n_lanes)
{
    struct stages none = {0};
    int lanes[LANES];
    for (int i = 0; i < n_lanes; i++) {
        lanes[i] = i;
    }
    cuda_vocoder_tap(s->cuda, note_stage, &none);
    cudaProfilerStart();
    run(s, lanes, n_lanes, 0, 0, 1);
    finish(s);
    cudaProfilerStop();
    for (int i = 0; i < none.n; i++) {
        free(none.stage[i].data);
    }
}

/* Times with other choices than the device's own: tiles for another number of multiprocessors, no overlap. */
static void compare_choices(struct setting *s)
{
    static const int percent[] = {25, 50, 200, 400, 100};
    int n_sms = s->device.arch.n_sms;
    bool overlaps = s->device.arch.overlaps;
    for (size_t i = 0; i < sizeof percent / sizeof *percent; i++) {
        s->device.arch.n_sms = n_sms * percent[i] / 100;
        s->device.arch.overlaps = overlaps && percent[i] != 100;
        cuda_vocoder_close(&s->cuda);
        need(s, cuda_vocoder_open(&s->cuda, s->model, &s->device, LANES, &s->error), "open");
        printf("     tiles for %d multiprocessors%s:\n", s->device.arch.n_sms,
            s->device.arch.overlaps ? "" : ", no overlap");
        measure(s, 1, 1);
        measure(s, 1, 8);
        measure(s, 8, 1);
        measure(s, 64, 1);
    }
    s->device.arch.n_sms = n_sms;
    s->device.arch.overlaps = overlaps;
}

static void measure_all(struct setting *s)
{
    static const int sizes[][2] = {
        {1, 1}, {1, 2}, {1, 4}, {1, 8}, {2, 1}, {4, 1}, {8, 1}, {16, 1}, {32, 1}, {64, 1}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (sizes[i][1] <= s->n_frames) {
            measure(s, sizes[i][0], sizes[i][1]);
        }
    }
}

struct choice {
    int n_frames, once, n_orders, n_sms; /* n_sms: 0, or tiles are chosen for so many multiprocessors */
    bool bench, choices;
};

static void check(const char *folder, const struct choice *choice)
{
    struct setting s = {0};
    setting_open(&s, folder, choice->n_frames,
        choice->bench || choice->choices ? LANES
        : choice->once                   ? choice->once
                                         : FEW_LANES,
        choice->n_sms);
    if (choice->once) {
        run_once(&s, choice->once);
    } else if (choice->n_orders) {
        check_orders(&s, choice->n_orders);
    } else {
        check_stages(&s, 4);
        check_cuts(&s);
        check_lanes(&s, choice->bench ? MANY_LANES : FEW_LANES);
    }
    if (choice->bench) {
        measure_all(&s);
    }
    if (choice->choices) {
        compare_choices(&s);
    }
    setting_close(&s);
}

/* Folders, and before them --frames N (at least 4), --bench, --choices, --once LANES, --orders N, --sms N. */
int main(int argc, char **argv)
{
    struct choice choice = {.n_frames = 110};
    int i = 1;
    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        bool number = i + 1 < argc;
        if (strcmp(argv[i], "--frames") == 0 && number) {
            choice.n_frames = atoi(argv[++i]);
        } else if (strcmp(argv[i], "--once") == 0 && number) {
            choice.once = atoi(argv[++i]);
        } else if (strcmp(argv[i], "--orders") == 0 && number) {
            choice.n_orders = atoi(argv[++i]);
        } else if (strcmp(argv[i], "--sms") == 0 && number) {
            choice.n_sms = atoi(argv[++i]);
        } else if (strcmp(argv[i], "--bench") == 0) {
            choice.bench = true;
        } else if (strcmp(argv[i], "--choices") == 0) {
            choice.choices = true;
        }
    }
    if (i >= argc || choice.n_frames < 4) {
        fprintf(stderr,
            "check_vocoder [--frames N] [--bench] [--choices] [--once LANES] [--orders N] [--sms N] "
            "FOLDER...\n");
        return 2;
    }
    for (; i < argc; i++) {
        check(argv[i], &choice);
    }
    printf("%d passed, %d failed\n", n_passed, n_failed);
    return n_failed > 0 || n_passed == 0;
}
