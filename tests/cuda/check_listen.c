/* SPDX-License-Identifier: Apache-2.0
 * Both encoders on the GPU against the ones on the CPU, and their norm of rows as wide as released models have them.
 * Goes on after a failure; prints one line for each recording and ends with `N passed, N failed`. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audio/mel.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/threads.h"
#include "cpu/encoders/encoder.h"
#include "cpu/encoders/speaker.h"
#include "cuda/listen/encoder.h"
#include "cuda/listen/listen.h"
#include "cuda/listen/speaker.h"
#include "tests/cpu/random.h"
#include "tests/cpu/recordings.h"

enum { RATE = 24000 };

static const double least_equal = 0.995,
                    most_off = 2e-5, /* codes; x-vector, of its largest component */
    most_off_norm = 2e-6;

static int n_passed, n_failed;

struct setting {
    struct model *model;
    struct pool *pool;
    struct cuda_device device;
    utter_error error;
};

static void report(bool good, const char *line)
{
    n_passed += good;
    n_failed += !good;
    printf("%s %s\n", good ? "ok  " : "FAIL", line);
    fflush(stdout);
}

static void check_codes(struct setting *s, const float *pcm, size_t n)
{
    int n_codebooks = s->model->config->codec.n_codebooks;
    size_t n_frames = cpu_encoder_frames(s->model->config, n), all = n_frames * (size_t)n_codebooks;
    int32_t *want = calloc(all, sizeof *want), *have = calloc(all, sizeof *have);
    char line[sizeof s->error.text + 200];
    int a = cpu_encode(s->model, kern_find(NULL), s->pool, pcm, n, want, NULL, NULL, &s->error);
    double start = clock_seconds();
    int b = cuda_encode(s->model, &s->device, pcm, n, have, NULL, NULL, &s->error);
    double took = clock_seconds() - start;
    size_t equal = 0, first = all, whole = 0;
    for (size_t i = 0; i < all; i++) {
        equal += have[i] == want[i];
        first = have[i] != want[i] && first == all ? i : first;
    }
    for (size_t f = 0; f < n_frames; f++) {
        whole += memcmp(have + f * (size_t)n_codebooks, want + f * (size_t)n_codebooks,
                     (size_t)n_codebooks * sizeof *have) == 0;
    }
    snprintf(line, sizeof line,
        "codes of %.3f s: %zu of %zu equal (%.3f%%), %zu of %zu frames, first other at frame %zu code "
        "%zu; %.1f ms%s%s",
        (double)n / RATE, equal, all, 100.0 * (double)equal / (double)all, whole, n_frames,
        first / (size_t)n_codebooks, first % (size_t)n_codebooks, 1e3 * took, a || b ? " " : "",
        a || b ? s->error.text : "");
    report(a == 0 && b == 0 && (double)equal >= least_equal * (double)all, line);
    free(want);
    free(have);
}

static void check_vector(struct setting *s, const float *pcm, size_t n)
{
    size_t width = (size_t)s->model->config->speaker_width, n_mels = 0;
    float *mels = NULL, *want = calloc(width, sizeof *want), *have = calloc(width, sizeof *have);
    char line[sizeof s->error.text + 200];
    if (mel_features(&mels, &n_mels, pcm, n, &s->error)) {
        report(false, s->error.text);
        return;
    }
    int a = cpu_speaker(s->model, kern_find(NULL), s->pool, mels, n_mels, want, &s->error);
    double start = clock_seconds();
    int b = cuda_speaker(s->model, &s->device, mels, n_mels, have, &s->error);
    double took = clock_seconds() - start, largest = 0, off = 0;
    for (size_t i = 0; i < width; i++) {
        largest = fmax(largest, fabs((double)want[i]));
        off = fmax(off, fabs((double)want[i] - (double)have[i]));
    }
    snprintf(line, sizeof line, "x-vector of %.3f s: off by %.2g, largest component %.3g; %.1f ms%s%s",
        (double)n / RATE, off, largest, 1e3 * took, a || b ? " " : "", a || b ? s->error.text : "");
    report(a == 0 && b == 0 && off <= most_off * largest, line);
    memory_free(mels);
    free(want);
    free(have);
}

/* A row's norm is of sums of all warps. The small checkpoints' rows are one warp wide, and all other sums zero: whether
 * warps wait for each other shows only here. */
static void check_norm(void)
{
    enum { ROWS = 64, WIDTH = 512, ALL = (ROWS + 2) * WIDTH };
    static float data[ALL], have[ROWS * WIDTH]; /* rows, weights, bias */
    const float *w = data + ROWS * WIDTH, *bias = w + WIDTH, eps = 1e-5f;
    struct random random = {5, 0};
    float *at = NULL, *y = NULL;
    double off = 0;
    random_fill(&random, data, ALL, 1);
    cudaError_t result = cudaMalloc((void **)&at, sizeof data);
    result = result ? result : cudaMalloc((void **)&y, sizeof have);
    result = result ? result : cudaMemcpy(at, data, sizeof data, cudaMemcpyHostToDevice);
    const struct listen_norm norm = {
        y, at, at + ROWS * WIDTH, at + (ROWS + 1) * WIDTH, ROWS, WIDTH, eps};
    result = result ? result : listen_norm_run(&norm, NULL);
    result = result ? result : cudaMemcpy(have, y, sizeof have, cudaMemcpyDeviceToHost);
    for (int r = 0; r < ROWS; r++) {
        const float *x = data + r * WIDTH;
        double mean = 0, squares = 0;
        for (int i = 0; i < WIDTH; i++) {
            mean += (double)x[i] / WIDTH;
        }
        for (int i = 0; i < WIDTH; i++) {
            squares += ((double)x[i] - mean) * ((double)x[i] - mean) / WIDTH;
        }
        for (int i = 0; i < WIDTH; i++) {
            double want =
                ((double)x[i] - mean) / sqrt(squares + (double)eps) * (double)w[i] + (double)bias[i];
            off = fmax(off, fabs((double)have[r * WIDTH + i] - want));
        }
    }
    char line[100];
    snprintf(line, sizeof line, "norm of %d rows of %d: off by %.2g%s%s", ROWS, WIDTH, off,
        result ? ", " : "", result ? cudaGetErrorName(result) : "");
    report(!result && off <= most_off_norm, line);
    cudaFree(at);
    cudaFree(y);
}

static void check(const char *folder, double longest)
{
    struct setting s = {0};
    if (model_open(&s.model, folder, &s.error) || cuda_device_open(&s.device, 0, &s.error)) {
        report(false, s.error.text);
        return;
    }
    s.pool = pool_new(threads_available());
    size_t n = (size_t)(longest * RATE);
    const size_t lengths[] = {1, 959, 1921, n / 8, n, n};
    float *pcm = recording_make("speech", 7, RATE, n);
    printf("     %s\n", folder);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        if (s.model->has_encoder && lengths[i] <= n) {
            check_codes(&s, pcm, lengths[i]);
        }
        if (s.model->has_speaker && lengths[i] >= MEL_MIN_SAMPLES && lengths[i] <= n) {
            check_vector(&s, pcm, lengths[i]);
        }
    }
    free(pcm);
    pool_free(s.pool);
    model_close(&s.model);
}

/* Folders, and before them --seconds N of the longest recording. */
int main(int argc, char **argv)
{
    int i = 1;
    double longest = 12;
    if (argc > 2 && strcmp(argv[1], "--seconds") == 0) {
        longest = atof(argv[2]);
        i = 3;
    }
    if (i >= argc || longest < 0.1) {
        fprintf(stderr, "check_listen [--seconds N] FOLDER...\n");
        return 2;
    }
    check_norm();
    for (; i < argc; i++) {
        check(argv[i], longest);
    }
    printf("%d passed, %d failed\n", n_passed, n_failed);
    return n_failed > 0 || n_passed == 0;
}
