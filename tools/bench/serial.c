/* SPDX-License-Identifier: Apache-2.0
 * What of a frame on the CPU does not get shorter with more threads: how long the calling thread is outside of the
 * pool's loops, and how much of the loops is waiting. The pool's door is wrapped by the linker; nothing is measured
 * in the library itself.
 *
 *     serial [-w bf16|q8|q4] [-k KERNELS] [-n FRAMES] [-v FRAMES_A_CALL] MODEL THREADS...
 *
 * A line for each number of threads and stage, milliseconds a frame, means: wall; serial: outside of loops; work: what
 * all threads did in loops; waste: loops less their work shared evenly; loops: how many. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/threads.h"
#include "cpu/kernels/kern.h"
#include "model/backend.h"

enum { N_ROWS = 40, WARM_UP = 6, MOST_FRAMES = 400 };

/* ---- Loops ---- */

struct loop {
    void (*fn)(void *arg, int part, int n_parts);
    void *arg;
    _Atomic int64_t work_ns;
};

static struct {
    int64_t ns, work_ns;
    int n;
} loops; /* since it was emptied; only the calling thread opens loops */

static void timed_part(void *arg, int part, int n_parts)
{
    struct loop *loop = arg;
    int64_t begin = clock_ns();
    loop->fn(loop->arg, part, n_parts);
    loop->work_ns += clock_ns() - begin;
}

void __real_pool_run(struct pool *pool, void (*fn)(void *, int, int), void *arg, int n_parts);
void __wrap_pool_run(struct pool *pool, void (*fn)(void *, int, int), void *arg, int n_parts);

void __wrap_pool_run(struct pool *pool, void (*fn)(void *, int, int), void *arg, int n_parts)
{
    struct loop loop = {fn, arg, 0};
    int64_t begin = clock_ns();
    __real_pool_run(pool, timed_part, &loop, n_parts);
    loops.ns += clock_ns() - begin;
    loops.work_ns += loop.work_ns;
    loops.n++;
}

/* ---- Frames ---- */

struct stage {
    const char *name;
    double wall, serial, work, waste, n_loops; /* sums */
};

static void check(utter_status status, const utter_error *error)
{
    if (status != UTTER_OK) {
        fprintf(stderr, "serial: %s\n", error->text);
        exit(1);
    }
}

static void add(struct stage *stage, int64_t wall_ns, int n_threads)
{
    double wall = 1e-6 * (double)wall_ns, in = 1e-6 * (double)loops.ns,
           work = 1e-6 * (double)loops.work_ns;
    stage->wall += wall;
    stage->serial += wall - in;
    stage->work += work;
    stage->waste += in - work / n_threads;
    stage->n_loops += loops.n;
    memset(&loops, 0, sizeof loops);
}

static void begin_stage(int64_t *begin)
{
    memset(&loops, 0, sizeof loops);
    *begin = clock_ns();
}

struct job {
    const struct model *model;
    const char *kernels;
    int n_frames, each;
};

static void run(const struct job *job, int n_threads)
{
    const struct backend_ops *cpu = &cpu_backend;
    const struct backend_options options = {
        .cpu_kernels = job->kernels, .n_lanes = 1, .n_threads = n_threads, .lane_positions = 512};
    const struct lane_settings settings = {
        .talker = {0.9f, 50, 1, 1.05f}, .predictor = {0.9f, 50, 1, 1}, .seed = 1, .min_frames = 512};
    struct stage frame = {.name = "frame"}, sound = {.name = "vocoder"};
    struct backend *b;
    utter_error error = {0};
    struct row rows[N_ROWS] = {{0}};
    static int32_t codes[BACKEND_MAX_FEED * 64];
    int64_t begin;
    check(cpu->open(&b, job->model, &options, &error), &error);
    check(cpu->lane_reset(b, 0, &settings, &error), &error);
    for (int i = 0; i < N_ROWS; i++) {
        rows[i] = (struct row){.text = i + 1, .codec = ROW_NONE};
    }
    check(cpu->prefill(b, 0, rows, N_ROWS, &error), &error);
    int n_codes = job->model->config->n_codebooks, waiting = 0, n_kept = 0;
    for (int i = 0; i < WARM_UP * job->each + job->n_frames; i++) {
        struct frame_in in = {.lane = 0, .text = 1};
        struct lane_out out;
        bool kept = i >= WARM_UP * job->each;
        n_kept += kept;
        begin_stage(&begin);
        check(cpu->frame(b, &in, 1, &error), &error);
        if (kept) {
            add(&frame, clock_ns() - begin, n_threads);
        }
        check(cpu->collect(b, 0, &out, &error), &error);
        memcpy(codes + waiting++ * n_codes, out.codes, (size_t)n_codes * sizeof *codes);
        if (waiting == job->each) {
            const int lane = 0;
            check(cpu->feed(b, 0, codes, waiting, &error), &error);
            begin_stage(&begin);
            check(cpu->vocode(b, &lane, 1, &error), &error);
            if (kept) {
                add(&sound, clock_ns() - begin, n_threads);
            }
            waiting = 0;
        }
    }
    cpu->close(&b);
    const struct stage *const stages[] = {&frame, &sound};
    for (int i = 0; i < 2; i++) {
        const struct stage *s = stages[i];
        printf("%7d %-8s %8.3f %8.3f %8.3f %8.3f %7.1f\n", n_threads, s->name, s->wall / n_kept,
            s->serial / n_kept, s->work / n_kept, s->waste / n_kept, s->n_loops / n_kept);
    }
    fflush(stdout);
}

int main(int argc, char **argv)
{
    struct job job = {.n_frames = 40, .each = 4};
    enum dtype type = DTYPE_Q8;
    int i = 1;
    for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
        const char *value = argv[i + 1];
        switch (argv[i][1]) {
        case 'w':
            type = strcmp(value, "q8") == 0   ? DTYPE_Q8
                   : strcmp(value, "q4") == 0 ? DTYPE_Q4
                                              : DTYPE_BF16;
            break;
        case 'k':
            job.kernels = value;
            break;
        case 'n':
            job.n_frames = atoi(value);
            break;
        case 'v':
            job.each = atoi(value);
            break;
        default:
            argc = 0;
        }
    }
    if (i + 1 >= argc || job.n_frames < 1 || job.n_frames > MOST_FRAMES || job.each < 1 ||
        job.each > BACKEND_MAX_FEED) {
        fprintf(stderr, "wanted: serial [-w bf16|q8|q4] [-k KERNELS] [-n FRAMES] [-v FRAMES_A_CALL] "
                        "MODEL THREADS...\n");
        return 1;
    }
    struct model *model;
    utter_error error = {0};
    check(model_open(&model, argv[i], &error), &error);
    if (pack_is(type)) {
        check(model_pack(model, type, 0, &error), &error);
    }
    job.model = model;
    printf("threads stage        wall   serial     work    waste   loops\n");
    for (i++; i < argc; i++) {
        run(&job, atoi(argv[i]));
    }
    model_close(&model);
    return 0;
}
