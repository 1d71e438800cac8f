/* SPDX-License-Identifier: Apache-2.0
 * Rows that are weighed on the GPU: how likely given codes are is what the CPU says; any cut of the rows into pieces
 * gives the same bits, also behind a kept beginning; lanes beside it make the frames that they make alone, and their
 * clock of prompts is their own. Needs a GPU; goes on after a failure. Usage: check_weigh [-w KERNELS] [-r ROWS]
 * [-n FRAMES] [-q BITS] [-L] [-T] CHECKPOINT ...; -w: graph or frame; -n: of the lanes beside it; -q: of weights, 8 or
 * 4; -L: only what is weighed again because it was lost; -T: only how long it takes. Ends with `N passed, N failed`. */
#include <math.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/minmax.h"
#include "cuda/door/backend_parts.h"
#include "cuda/graph/frame_parts.h"
#include "tests/cuda/drive_backend.h"

/* Nats from the CPU's. Beside weights of 4 bits vectors are rounded to 8: one rounding that falls to the other side
 * changes all behind it. The CPU is 0.11 from itself
 * where its norms move by 3e-6 (docs/log/gpu-small-cards.md). */
#define FAR 2e-3
#define FAR_IN_4_BITS 0.2

enum { MOST_ROWS = 700, KEPT = 21, MOST_BESIDE = 64, MOST_FRAMES = 16, WEIGHED = 2 };

static const char *kernels;
static int weight_bits; /* 0: as they are stored */
static int n_rows = 150, n_frames = 3;

/* A prompt, and codes as they may have been said behind some of its rows: the end and the first and last code, too. */
struct text {
    struct row rows[MOST_ROWS];
    int32_t codes[MOST_ROWS];
};

static void make_text(const struct config *c, struct text *t)
{
    make_rows(c, 3, t->rows, n_rows);
    for (int i = 0; i < n_rows; i++) {
        t->codes[i] = i % 5 == 0 || i < KEPT ? -1 : i * 31 % config_suppress_from(c);
    }
    t->codes[n_rows - 1] = c->codec_eos;
    t->codes[KEPT + 1] = 0;
    t->codes[n_rows / 2] = config_suppress_from(c) - 1;
}

static bool open_backend(
    struct run *r, const struct backend_ops *ops, const struct model *model, int n_lanes)
{
    utter_error error;
    const bool gpu = ops == &cuda_backend;
    struct backend_options o = {
        .n_lanes = n_lanes, .lane_positions = 1024, .cpu_kernels = gpu ? kernels : NULL};
    *r = (struct run){ops, NULL, model->config};
    return said(ops->open(&r->b, model, &o, &error), &error, "open");
}

static const struct likelihood NONE = {7, 8};

static void forget(struct likelihood *at)
{
    for (int i = 0; i < n_rows; i++) {
        at[i] = NONE;
    }
}

/* Rows from `done` on in pieces of `each`. */
static bool weigh_from(
    struct run *r, int lane, const struct text *t, int done, int each, struct likelihood *at)
{
    bool good = true;
    for (int some; done < n_rows && good; done += some) {
        utter_error error;
        some = min(each, n_rows - done);
        good = said(r->ops->weigh(r->b, lane, t->rows + done, some, t->codes + done, at + done, &error),
            &error, "weigh");
    }
    return good;
}

static bool weigh(struct run *r, int lane, const struct text *t, int each, struct likelihood *at)
{
    utter_error error;
    forget(at);
    return said(r->ops->lane_reset(r->b, lane, &GREEDY, &error), &error, "reset") &&
           weigh_from(r, lane, t, 0, each, at);
}

static void check_likelihoods(struct run *gpu, struct run *cpu, const struct text *t)
{
    static struct likelihood got[MOST_ROWS], wanted[MOST_ROWS], again[MOST_ROWS];
    const int cuts[] = {n_rows, 1, 7, 16, 33, 100}, n_cuts = sizeof cuts / sizeof *cuts;
    double worst = 0;
    int bad = 0, n = 0;
    if (!weigh(gpu, 0, t, MOST_ROWS, got) || !weigh(cpu, 0, t, MOST_ROWS, wanted)) {
        return;
    }
    for (int i = 0; i < n_rows; i++) {
        const double off = fmax(fabs((double)got[i].log_p - (double)wanted[i].log_p),
            fabs((double)got[i].usual_log_p - (double)wanted[i].usual_log_p));
        worst = fmax(worst, off);
        bad += !(off < (weight_bits == 4 ? FAR_IN_4_BITS : FAR));
        n += t->codes[i] >= 0;
        bad += t->codes[i] < 0 && got[i].log_p != NONE.log_p; /* nothing is written beside them */
    }
    result(bad == 0, "%d rows, %d with a code: at most %.1e nats from the CPU's; %d bad", n_rows, n,
        worst, bad);
    bad = 0;
    for (int i = 0; i < n_cuts; i++) {
        bad += !weigh(gpu, i % 2, t, cuts[i], again) ||
               memcmp(got, again, (size_t)n_rows * sizeof *got) != 0;
    }
    result(bad == 0, "%d cuts into pieces: %d with other bits", n_cuts, bad);
}

/* A beginning that another lane has left. */
static void check_kept(struct run *gpu, const struct text *t)
{
    static struct likelihood got[MOST_ROWS], again[MOST_ROWS];
    struct backend_snapshot *kept = NULL;
    utter_error error;
    const struct backend_ops *ops = gpu->ops;
    bool good = weigh(gpu, 0, t, 64, got) &&
                said(ops->lane_reset(gpu->b, 1, &GREEDY, &error), &error, "reset") &&
                said(ops->prefill(gpu->b, 1, t->rows, n_rows, &error), &error, "prefill") &&
                said(ops->lane_keep(gpu->b, 1, KEPT, false, &kept, &error), &error, "keep") &&
                said(ops->lane_reset(gpu->b, 0, &GREEDY, &error), &error, "reset") &&
                said(ops->lane_resume(gpu->b, 0, kept, &error), &error, "resume");
    forget(again);
    good = good && weigh_from(gpu, 0, t, KEPT, MOST_ROWS, again);
    ops->snapshot_free(gpu->b, &kept);
    result(good && memcmp(got + KEPT, again + KEPT, (size_t)(n_rows - KEPT) * sizeof *got) == 0,
        "behind a kept beginning: the same bits");
}

static void check_refused(struct run *gpu, const struct text *t)
{
    struct likelihood at[2];
    const int32_t outside[2] = {gpu->config->codec_vocabulary, 0};
    utter_error error;
    said(gpu->ops->lane_reset(gpu->b, 0, &GREEDY, &error), &error, "reset");
    const utter_status code = gpu->ops->weigh(gpu->b, 0, t->rows, 2, outside, at, NULL),
                       lane = gpu->ops->weigh(gpu->b, 99, t->rows, 2, outside + 1, at, NULL);
    result(code == UTTER_E_ARGUMENT && lane == UTTER_E_ARGUMENT, "a code outside its table is refused");
}

/* Blocks that share the layers of the rows and do not wait for each other: the rows are weighed again without them.
 * Only where there is that kernel. */
static void check_lost(struct run *gpu, const struct text *t)
{
    static struct likelihood got[MOST_ROWS], again[MOST_ROWS];
    struct cuda_frame *frame = gpu->b->frame;
    if (frame->layer_blocks == 0 || !cuda_layers_suit(&frame->weights->talker) ||
        n_rows < CUDA_LAYERS_FROM) {
        return;
    }
    bool good = weigh(gpu, 0, t, MOST_ROWS, got);
    const int losses = frame->layer_losses;
    frame->layer_patience = 1;
    good = good && weigh(gpu, 0, t, MOST_ROWS, again);
    frame->layer_patience = CUDA_LAYERS_PATIENCE;
    result(
        good && frame->layer_losses > losses && memcmp(got, again, (size_t)n_rows * sizeof *got) == 0,
        "%d rows that were lost, weighed again: the same bits", n_rows);
}

/* ---- Beside others ---- */

struct spoken {
    int32_t codes[WEIGHED + 1][MOST_FRAMES][MAX_CODEBOOKS];
    bool known; /* how long their prompt took */
};

/* Lanes 0 .. WEIGHED - 1 and the one behind them speak; with `t` lane WEIGHED is weighed a piece before each frame. */
static bool speak(struct run *r, const struct text *t, struct spoken *to)
{
    static struct likelihood at[MOST_ROWS];
    utter_error error;
    int lanes[] = {0, 1, WEIGHED + 1}, done = 0;
    const int n_lanes = sizeof lanes / sizeof *lanes, each = (n_rows + n_frames - 1) / n_frames;
    bool good = said(r->ops->lane_reset(r->b, WEIGHED, &GREEDY, &error), &error, "reset");
    for (int i = 0; i < n_lanes && good; i++) {
        good = start(r, lanes[i], i, &GREEDY, 20 + i);
    }
    for (int f = 0; f < n_frames && good; f++) {
        struct frame_in in[WEIGHED + 1];
        const int some = min(each, n_rows - done);
        if (t && some > 0) {
            good = said(r->ops->weigh(r->b, WEIGHED, t->rows + done, some, t->codes + done, at, &error),
                &error, "weigh");
            done += some;
        }
        for (int i = 0; i < n_lanes; i++) {
            in[i] = (struct frame_in){lanes[i], text_of(r->config, i, f), NULL};
        }
        good = good && said(r->ops->frame(r->b, in, n_lanes, &error), &error, "frame");
        for (int i = 0; i < n_lanes && good; i++) {
            struct lane_out out;
            good = said(r->ops->collect(r->b, lanes[i], &out, &error), &error, "collect");
            memcpy(to->codes[i][f], out.codes, (size_t)r->config->n_codebooks * sizeof(int32_t));
            to->known = to->known || (f == 0 && i == n_lanes - 1 && out.prefill_s > 0);
        }
    }
    return good;
}

static void check_beside(struct run *gpu, const struct text *t)
{
    static struct spoken alone, beside;
    memset(&alone, 0, sizeof alone);
    memset(&beside, 0, sizeof beside);
    const bool good = speak(gpu, NULL, &alone) && speak(gpu, t, &beside);
    result(good && memcmp(alone.codes, beside.codes, sizeof alone.codes) == 0,
        "lanes beside it: the same codes");
    result(beside.known == alone.known, "lanes beside it: the time of their prompt");
}

static void check(const struct model *model, bool only_lost)
{
    static struct text text;
    struct run gpu, cpu;
    make_text(model->config, &text);
    if (!open_backend(&gpu, &cuda_backend, model, WEIGHED + 2)) {
        return;
    }
    check_lost(&gpu, &text);
    if (!only_lost && open_backend(&cpu, &cpu_backend, model, 1)) {
        check_likelihoods(&gpu, &cpu, &text);
        cpu_backend.close(&cpu.b);
    }
    if (!only_lost) {
        check_kept(&gpu, &text);
        check_refused(&gpu, &text);
    }
    if (!only_lost && n_frames > 0) {
        check_beside(&gpu, &text);
    }
    cuda_backend.close(&gpu.b);
}

/* ---- What it costs ---- */

/* Seconds of a frame of n lanes; with pieces of `each` rows that are weighed before every one. */
static double time_frames(struct run *r, int n, const struct text *t, int each)
{
    enum { TIMED = 60, ROWS = 100 };
    static struct likelihood at[MOST_ROWS];
    struct frame_in in[MOST_BESIDE];
    struct row rows[ROWS];
    struct lane_settings settings = GREEDY;
    utter_error error;
    double begin = 0;
    bool good = true;
    settings.min_frames = 1 << 20;
    make_rows(r->config, 1, rows, ROWS);
    for (int i = 0; i < n && good; i++) {
        in[i] = (struct frame_in){i, r->config->tts_pad, NULL};
        good = said(r->ops->lane_reset(r->b, i, &settings, &error), &error, "reset") &&
               said(r->ops->prefill(r->b, i, rows, ROWS, &error), &error, "prefill");
    }
    for (int f = 0; f < TIMED + 10 && good; f++) {
        struct lane_out out;
        begin = f == 10 ? clock_seconds() : begin;
        if (each > 0) {
            good = said(r->ops->lane_reset(r->b, n, &settings, &error), &error, "reset") &&
                   said(r->ops->weigh(r->b, n, t->rows, each, t->codes, at, &error), &error, "weigh");
        }
        good = good && said(r->ops->frame(r->b, in, n, &error), &error, "frame");
        for (int i = 0; i < n && good; i++) {
            good = said(r->ops->collect(r->b, i, &out, &error), &error, "collect");
        }
    }
    return good ? (clock_seconds() - begin) / TIMED : NAN;
}

static void time_all(const struct model *model)
{
    static const int lanes[] = {1, 8, 64}, pieces[] = {16, 64, 300};
    static struct text text;
    static struct likelihood at[MOST_ROWS];
    struct run gpu;
    n_rows = 300;
    make_text(model->config, &text);
    if (!open_backend(&gpu, &cuda_backend, model, MOST_BESIDE + 1)) {
        return;
    }
    for (int turn = 0; turn < 3; turn++) {
        weigh(&gpu, 0, &text, n_rows, at);
        const double begin = clock_seconds();
        for (int i = 0; i < 10; i++) {
            weigh(&gpu, 0, &text, n_rows, at);
        }
        printf("%d rows weighed alone: %.2f ms\n", n_rows, 100 * (clock_seconds() - begin));
        for (int l = 0; l < 3; l++) {
            printf("%2d lanes: %.3f ms a frame", lanes[l], 1e3 * time_frames(&gpu, lanes[l], &text, 0));
            for (int p = 0; p < 3; p++) {
                printf(", %.3f with %d rows", 1e3 * time_frames(&gpu, lanes[l], &text, pieces[p]),
                    pieces[p]);
            }
            printf("\n");
        }
    }
    cuda_backend.close(&gpu.b);
}

int main(int argc, char **argv)
{
    bool only_cost = false, only_lost = false;
    for (int option; (option = getopt(argc, argv, "w:r:n:q:LT")) != -1;) {
        switch (option) {
        case 'w':
            kernels = optarg;
            break;
        case 'r':
            n_rows = min(max(atoi(optarg), 2 * KEPT), (int)MOST_ROWS);
            break;
        case 'n':
            n_frames = min(atoi(optarg), (int)MOST_FRAMES);
            break;
        case 'q':
            weight_bits = atoi(optarg) == 4 ? 4 : 8;
            break;
        case 'L':
            only_lost = true;
            break;
        case 'T':
            only_cost = true;
            break;
        default:
            return 2;
        }
    }
    for (int i = optind; i < argc; i++) {
        struct model *model;
        utter_error error;
        folder = argv[i];
        if (said(model_open(&model, folder, &error), &error, "open") &&
            (weight_bits == 0 ||
                said(model_pack(model, weight_bits == 8 ? DTYPE_Q8 : DTYPE_Q4, 0, &error), &error,
                    "pack"))) {
            only_cost ? time_all(model) : check(model, only_lost);
            model_close(&model);
        }
    }
    printf("%d passed, %d failed\n", n_passed, n_failed);
    return n_failed > 0;
}
