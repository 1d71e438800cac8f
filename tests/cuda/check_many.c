/* SPDX-License-Identifier: Apache-2.0
 * Many lanes and long prompts on the GPU: a lane beside many others gives the bits that it gives alone, a prompt in
 * pieces those of the whole; and how long frames of many lanes and prompts of many rows take. Needs a GPU; goes on
 * after a failure. Usage: check_many [-l LANES] [-n FRAMES] [-k NUMBER] [-c] [-s] [-d] [-L] [-v LANES] [-p ROWS]
 * [-r ROWS] [-w KERNELS] [-q BITS] [-o ORDERS] [-t MOST LANES] [-T] CHECKPOINT ...; -k: lanes that are compared, and
 * cuts of a prompt; -c: with the CPU's codes too; -s: every way to choose codes, in turn; -d: a lane fewer in each
 * frame; -L: late prompts; -v: that have sound, from the compared one on; -p: of a lane's prompt, at least; -r: of the
 * prompt in pieces, 0: none; -w: graph or frame; -q: weights of 8 or 4 bits; -o: so often, same bits: of the prompt of
 * -r, with -r 0 of the lanes; -t: times, -T: only those. Ends with `N passed, N failed`. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cuda/door/backend_parts.h"
#include "cuda/graph/frame_parts.h"
#include "tests/backend_rows.h"
#include "tests/cuda/bits.h"
#include "tests/cuda/heads.h"

enum {
    MOST_LANES = 256,
    MOST_ORDERS = 1000,
    MOST_ROWS = 400,
    LEAST_ROWS = 16,
    N_FRAMES = 5,
    N_CHOSEN = 5,
    WARM = 10,
    TIMED = 30
};

bool host_launch_waited(void) __attribute__((weak)); /* of the host bench: runtime.h */
static int n_passed, n_failed;
static const char *folder, *kernels;
static int weight_bits; /* 0: as they are stored */

/* What is checked, and how much of it. */
struct sizes {
    int n_lanes, n_frames, n_chosen, n_prompt, n_rows, n_heard, n_orders;
    bool beside_cpu, all_ways, late, fewer;
};
static struct sizes sizes = {
    20, N_FRAMES, N_CHOSEN, 10, 333, MOST_LANES, 1, false, false, false, false};

struct run {
    const struct backend_ops *ops;
    struct backend *b;
    const struct config *config;
    int n_lanes;
};

static const char *name(void)
{
    const char *slash = strrchr(folder, '/');
    return slash ? slash + 1 : folder;
}

__attribute__((format(printf, 2, 3))) static void result(bool good, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    printf("%s %s: ", good ? "ok  " : "FAIL", name());
    vprintf(format, list);
    printf("\n");
    fflush(stdout);
    va_end(list);
    n_passed += good;
    n_failed += !good;
}

static bool said(utter_status status, const utter_error *error, const char *what)
{
    if (status) {
        result(false, "%s: %s", what, error->text);
    }
    return status == UTTER_OK;
}

static bool open_run(
    struct run *r, const struct backend_ops *ops, const struct model *model, int n_lanes)
{
    utter_error error;
    struct backend_options options = {.n_lanes = n_lanes,
        .lane_positions = 1024,
        .cpu_kernels = ops == &cuda_backend ? kernels : NULL};
    *r = (struct run){ops, NULL, model->config, n_lanes};
    return said(ops->open(&r->b, model, &options, &error), &error, "open");
}

/* ---- Lanes ---- */

struct speech {
    int32_t codes[N_FRAMES][MAX_CODEBOOKS];
    float *pcm; /* [N_FRAMES][1920] */
    struct heads last;
};

/* Ways to choose codes: as usual; the most likely by their mass, of all and of a few; without chance; of more than are
 * sorted, and where scores over the temperature are so large that what chance adds is lost. */
static const struct lane_settings WAYS[] = {
    {{0.9f, 50, 1, 1.05f}, {0.9f, 50, 1, 1}, 5, 1 << 20},
    {{0.7f, 0, 0.8f, 1.3f}, {1.3f, 7, 0.9f, 1}, 5, 1 << 20},
    {{0, 50, 1, 1.05f}, {0, 50, 1, 1}, 5, 1 << 20},
    {{0.9f, 300, 0.9f, 1.05f}, {1e-19f, 50, 1, 1}, 5, 1 << 20},
};
enum { N_WAYS = sizeof WAYS / sizeof *WAYS };

/* Taps are of the graphs, which a frame that is tapped is made by. */
static bool has_taps(void)
{
    return !kernels || strcmp(kernels, "frame") != 0;
}

static bool start(struct run *r, int lane, int kind, int n_rows)
{
    static struct row rows[MOST_ROWS];
    utter_error error;
    struct lane_settings s = WAYS[sizes.all_ways ? kind % N_WAYS : 0];
    s.seed = (uint64_t)kind;
    make_rows(r->config, kind, rows, n_rows);
    return said(r->ops->lane_reset(r->b, lane, &s, &error), &error, "reset") &&
           said(r->ops->prefill(r->b, lane, rows, n_rows, &error), &error, "prefill");
}

static bool keep_frame(struct run *r, int lane, int t, struct speech *to)
{
    utter_error error;
    struct lane_out o;
    if (!said(r->ops->collect(r->b, lane, &o, &error), &error, "collect") || !o.codes) {
        return false;
    }
    memcpy(to->codes[t], o.codes, (size_t)r->config->n_codebooks * sizeof(int32_t));
    to->pcm = to->pcm ? to->pcm : calloc(N_FRAMES * 1920, sizeof(float));
    if (o.pcm) {
        memcpy(to->pcm + t * 1920, o.pcm, (o.n_samples < 1920 ? o.n_samples : 1920) * sizeof(float));
    }
    return true;
}

/* n utterances of the kinds from `kind` on, on the lanes from `lane` on; of utterance `slot` also the heads of the
 * last frame. */
static bool speak(struct run *r, int lane, int kind, int n, int slot, struct speech *out)
{
    struct frame_in in[MOST_LANES];
    int lanes[MOST_LANES], heard[MOST_LANES];
    utter_error error;
    bool good = true;
    for (int i = 0; i < n && good; i++) {
        lanes[i] = (lane + i) % r->n_lanes;
        out[i].last = (struct heads){.slot = slot, .n_slots = n};
        good = start(r, lanes[i], kind + i, sizes.n_prompt + (kind + i) % 17);
    }
    for (int t = 0, now = n; t < sizes.n_frames && good; t++, now -= sizes.fewer && now > slot + 1) {
        const int n_heard = now < sizes.n_heard ? now : sizes.n_heard;
        for (int i = 0; i < now; i++) {
            in[i] = (struct frame_in){lanes[i], text_of(r->config, kind + i, t), NULL};
            heard[i] = lanes[(slot + i) % now];
        }
        bool last = t == sizes.n_frames - 1;
        r->ops->tap(r->b, last && has_taps() ? keep_heads : NULL, &out[slot].last);
        good = said(r->ops->frame(r->b, in, now, &error), &error, "frame");
        r->ops->tap(r->b, NULL, NULL);
        good = good && said(r->ops->vocode(r->b, heard, n_heard, &error), &error, "vocode");
        for (int i = 0; i < now && good; i++) {
            good = keep_frame(r, lanes[i], t, &out[i]);
        }
    }
    return good;
}

static uint64_t bits_of_speech(uint64_t sum, const struct speech *s)
{
    sum = bits_of(sum, s->codes, sizeof s->codes);
    sum = bits_of(sum, s->pcm, N_FRAMES * 1920 * sizeof *s->pcm);
    return bits_of(sum, s->last.data, (size_t)s->last.n * sizeof *s->last.data);
}

static bool same_codes(const struct speech *a, const struct speech *b)
{
    return memcmp(a->codes, b->codes, sizeof a->codes) == 0;
}

static bool same_speech(const struct speech *a, const struct speech *b)
{
    return same_codes(a, b) && memcmp(a->pcm, b->pcm, N_FRAMES * 1920 * sizeof(float)) == 0;
}

/* The bits of all that was said; 0 after a failure. */
static uint64_t check_lanes(struct run *r, struct run *cpu)
{
    static struct speech together[MOST_LANES], alone, of_cpu;
    const int n = r->n_lanes, chosen = sizes.n_chosen;
    int same = 0, heads = 0, as_cpu = 0;
    uint64_t bits = BITS_BEGIN;
    for (int i = 0; i < chosen; i++) {
        const int slot = chosen > 1 ? i * (n - 1) / (chosen - 1) : n / 2;
        const bool again = i == 0 || has_taps() || sizes.fewer; /* this slot's heads; or it stays */
        alone = of_cpu = (struct speech){0};
        if ((again && !speak(r, 0, 1, n, slot, together)) ||
            !speak(r, (slot + 1) % n, 1 + slot, 1, 0, &alone) ||
            (cpu && !speak(cpu, 0, 1 + slot, 1, 0, &of_cpu))) {
            return 0;
        }
        same += same_speech(&together[slot], &alone);
        heads += same_heads(&together[slot].last, &alone.last);
        as_cpu += cpu && same_codes(&alone, &of_cpu);
        for (int k = 0; k < n && again; k++) {
            bits = bits_of_speech(bits, &together[k]);
        }
        forget(&together[slot].last);
        forget(&alone.last);
        forget(&of_cpu.last);
        free(alone.pcm);
        free(of_cpu.pcm);
    }
    for (int k = 0; k < n; k++) {
        free(together[k].pcm);
        together[k] = (struct speech){0};
    }
    result(same == chosen && (has_taps() ? heads == chosen : cuda_frame_persistent(r->b->frame)),
        "lanes next to %d others: %d of %d with the codes and samples, %d with the logits of a lane "
        "alone%s",
        n - 1, same, chosen, heads,
        cuda_frame_persistent(r->b->frame) ? ", in one kernel a frame" : "");
    printf("     bits %016llx\n", (unsigned long long)bits);
    if (cpu) {
        result(as_cpu == chosen, "lanes next to %d others: %d of %d with the codes of the CPU", n - 1,
            as_cpu, chosen);
    }
    return bits;
}

/* A GPU's threads and blocks run in another order each time. */
static void check_orders(struct run *r, struct run *cpu)
{
    const uint64_t first = check_lanes(r, cpu);
    int same = 1;
    for (int i = 1; i < sizes.n_orders; i++) {
        same += check_lanes(r, cpu) == first;
    }
    if (sizes.n_orders > 1) {
        result(first && same == sizes.n_orders, "%d of %d orders give the bits of the first", same,
            sizes.n_orders);
    }
}

/* ---- Prompts ---- */

static bool prompt_heads(struct run *r, const int *pieces, int n_pieces, struct heads *heads)
{
    static struct row rows[MOST_ROWS];
    utter_error error;
    int done = 0;
    bool good = said(r->ops->lane_reset(r->b, 0, &WAYS[0], &error), &error, "reset");
    make_rows(r->config, 3, rows, MOST_ROWS);
    for (int i = 0; i < n_pieces && good; i++) {
        r->ops->tap(r->b, i == n_pieces - 1 ? keep_heads : NULL, heads);
        good = said(r->ops->prefill(r->b, 0, rows + done, pieces[i], &error), &error, "prefill");
        done += pieces[i];
    }
    r->ops->tap(r->b, NULL, NULL);
    return good;
}

enum { MOST_PIECES = 8 };

/* One of the ways to cut a prompt; returns how many pieces there are. */
static int cut_prompt(int way, int n_rows, int pieces[MOST_PIECES])
{
    enum { USUAL = 333 };
    static const int cuts[N_CHOSEN][MOST_PIECES] = {
        {300, 33}, {1, 332}, {332, 1}, {5, 8, 9, 16, 64, 70, 160, 1}, {17, 15, 1, 47, 100, 100, 50, 3}};
    const int n_pieces = way < 3 ? 2 : MOST_PIECES;
    for (int k = 0, left = n_rows; k < n_pieces; k++) {
        const int some = cuts[way][k] * n_rows / USUAL;
        pieces[k] = k + 1 == n_pieces ? left : some > 0 ? some : 1;
        left -= pieces[k];
    }
    return n_pieces;
}

static void check_pieces(struct run *r, int n_rows)
{
    struct heads of_whole = {.n_slots = 1}, of_pieces = {.n_slots = 1};
    int same = 0, n = sizes.n_chosen;
    if (!prompt_heads(r, &n_rows, 1, &of_whole)) {
        return;
    }
    for (int i = 0; i < n; i++) {
        int pieces[MOST_PIECES];
        const int n_pieces = cut_prompt(i, n_rows, pieces);
        forget(&of_pieces);
        same += prompt_heads(r, pieces, n_pieces, &of_pieces) && same_heads(&of_whole, &of_pieces);
    }
    forget(&of_whole);
    forget(&of_pieces);
    result(same == n, "a prompt of %d rows in pieces: %d of %d cuts give the logits of the whole",
        n_rows, same, n);
}

/* In two pieces, since the last one is tapped, and what is tapped is read without the kernel of all layers. */
static void check_prompt_orders(struct run *r, int n_rows)
{
    struct heads first = {.n_slots = 1}, again = {.n_slots = 1};
    int pieces[MOST_PIECES], same = 1;
    const int n_pieces = cut_prompt(0, n_rows, pieces);
    const struct cuda_frame *frame = r->b->frame;
    const bool in_one = frame->layer_blocks > 0 && cuda_layers_suit(&frame->weights->talker);
    bool good = prompt_heads(r, pieces, n_pieces, &first);
    for (int i = 1; i < sizes.n_orders && good; i++) {
        forget(&again);
        good = prompt_heads(r, pieces, n_pieces, &again);
        same += good && same_heads(&first, &again);
    }
    printf("     bits %016llx\n",
        (unsigned long long)bits_of(BITS_BEGIN, first.data, (size_t)first.n * sizeof *first.data));
    result(good && same == sizes.n_orders,
        "a prompt of %d rows%s: %d of %d orders give the bits of the first", n_rows,
        in_one ? ", all layers in one kernel" : "", same, sizes.n_orders);
    forget(&first);
    forget(&again);
}

/* ---- Speed ---- */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, by_size);
    return n > 0 ? x[n / 2] : 0;
}

/* Milliseconds of a prompt, from the call to the end of the work, and on to the samples of the first frame. */
static bool time_prompt(struct run *r, int n_rows, double *prefill, double *first)
{
    double a[9], b[9];
    utter_error error;
    struct lane_out out;
    for (int i = 0; i < 9; i++) {
        int lane = 0;
        struct frame_in in = {0, r->config->tts_pad, NULL};
        double t0 = clock_seconds();
        if (!start(r, 0, 1, n_rows) ||
            !said(cuda_backend.collect(r->b, 0, &out, &error), &error, "collect")) {
            return false;
        }
        a[i] = 1e3 * (clock_seconds() - t0);
        t0 = clock_seconds();
        if (!start(r, 0, 1, n_rows) ||
            !said(cuda_backend.frame(r->b, &in, 1, &error), &error, "frame") ||
            !said(cuda_backend.vocode(r->b, &lane, 1, &error), &error, "vocode") ||
            !said(cuda_backend.collect(r->b, 0, &out, &error), &error, "collect")) {
            return false;
        }
        b[i] = 1e3 * (clock_seconds() - t0);
    }
    *prefill = median(a, 9);
    *first = median(b, 9);
    return true;
}

static void time_prompts(struct run *r)
{
    static const int rows[] = {1, 8, 9, 17, 30, 64, 125, 200, 300, 400};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double prefill, first;
        if (!time_prompt(r, rows[i], &prefill, &first)) {
            return;
        }
        printf("time %s, prompt of %d rows: prefill %.2f ms, to the first samples %.2f ms\n", name(),
            rows[i], prefill, first);
        fflush(stdout);
    }
}

/* All lanes speak for a frame; then lane 0, of more than two lanes lane 1 too, has a new prompt, the blocks of lane 0's
 * waiting `patience` clocks for each other; one more frame. *waited: the host bench has seen a wait between the two. */
static bool join_late(struct run *r, uint64_t patience, struct speech *out, bool *waited)
{
    struct frame_in in[MOST_LANES];
    int lanes[MOST_LANES];
    utter_error error;
    struct cuda_frame *frame = r->b->frame;
    const int n = r->n_lanes, n_joins = n > 2 ? 2 : 1;
    bool good = true;
    for (int t = 0; t < 2 && good; t++) {
        for (int i = 0; i < (t == 0 ? n : n_joins) && good; i++) {
            frame->layer_patience = t == 1 && i == 0 ? patience : CUDA_LAYERS_PATIENCE;
            good = start(r, i, t == 0 && i < n_joins ? 50 + i : 1 + i, t == 0 ? 10 : CUDA_LAYERS_FROM);
        }
        frame->layer_patience = CUDA_LAYERS_PATIENCE;
        for (int i = 0; i < n; i++) {
            lanes[i] = i;
            in[i] = (struct frame_in){i, text_of(r->config, 1 + i, t), NULL};
        }
        *waited = host_launch_waited && host_launch_waited();
        good = good && said(r->ops->frame(r->b, in, n, &error), &error, "frame");
        *waited = host_launch_waited && host_launch_waited();
        good = good && said(r->ops->vocode(r->b, lanes, n, &error), &error, "vocode");
        for (int i = 0; i < n && good; i++) {
            good = keep_frame(r, i, t, &out[i]);
        }
    }
    return good;
}

/* Blocks that share the layers of a prompt and do not wait for each other as long as it takes: the prompt is read
 * again without them, and nobody sees that; they share no more once that has been so CUDA_TRIES times. Only where there
 * is that kernel. */
static void check_late(struct run *r)
{
    static struct speech want[MOST_LANES], got[MOST_LANES];
    struct cuda_frame *frame = r->b->frame;
    if (frame->layer_blocks == 0 || !cuda_layers_suit(&frame->weights->talker)) {
        return;
    }
    bool waited, good = join_late(r, CUDA_LAYERS_PATIENCE, want, &waited) && frame->layer_losses == 0;
    result(good && !waited, "no prompt is late%s", host_launch_waited ? ", no frame waits for it" : "");
    for (int i = 0; i < CUDA_TRIES && good; i++) {
        int same = 0;
        good = frame->layer_blocks > 0 && join_late(r, 1, got, &waited) && frame->layer_losses == i + 1;
        for (int k = 0; k < r->n_lanes && good; k++) {
            same += same_speech(&want[k], &got[k]);
        }
        result(good && same == r->n_lanes, "a late prompt, the %d. time: %d of %d lanes as before",
            i + 1, same, r->n_lanes);
    }
    result(good && frame->layer_blocks == 0, "then kernel after kernel");
    for (int k = 0; k < r->n_lanes; k++) {
        free(want[k].pcm);
        free(got[k].pcm);
        want[k] = got[k] = (struct speech){0};
    }
}

static bool one_round(struct run *r, const struct frame_in *in, const int *lanes, struct lane_out *out)
{
    utter_error error;
    bool good = said(cuda_backend.frame(r->b, in, r->n_lanes, &error), &error, "frame") &&
                said(cuda_backend.vocode(r->b, lanes, r->n_lanes, &error), &error, "vocode");
    for (int i = r->n_lanes - 1; i >= 0 && good; i--) {
        good = said(cuda_backend.collect(r->b, lanes[i], out, &error), &error, "collect");
    }
    return good;
}

static void time_lanes(const struct model *model, int n_lanes)
{
    struct run r;
    struct frame_in in[MOST_LANES];
    int lanes[MOST_LANES];
    double whole[TIMED], talker[TIMED], predictor[TIMED], vocoder[TIMED], began = clock_seconds();
    struct lane_out out;
    if (!open_run(&r, &cuda_backend, model, n_lanes)) {
        return;
    }
    double opened = clock_seconds() - began;
    struct backend_memory memory;
    cuda_backend.memory(r.b, &memory);
    if (n_lanes == 1) {
        time_prompts(&r);
    }
    for (int i = 0; i < n_lanes; i++) {
        lanes[i] = i;
        in[i] = (struct frame_in){i, r.config->tts_pad, NULL};
        if (!start(&r, i, i, 30)) {
            return;
        }
    }
    int n = 0;
    for (int i = 0; i < WARM + TIMED; i++) {
        double t0 = clock_seconds();
        if (!one_round(&r, in, lanes, &out)) {
            break;
        }
        if (i >= WARM) {
            whole[n] = 1e3 * (clock_seconds() - t0);
            talker[n] = 1e3 * out.talker_s;
            predictor[n] = 1e3 * out.predictor_s;
            vocoder[n++] = 1e3 * out.vocoder_s;
        }
    }
    double frame = median(whole, n);
    printf("time %s, %d lanes: open %.2f s, %.2f GB and %.1f MB a lane; frame %.2f ms: talker %.2f "
           "predictor %.2f "
           "vocoder %.2f; %.0f x real time\n",
        name(), n_lanes, opened, 1e-9 * (double)memory.shared_bytes, 1e-6 * (double)memory.lane_bytes,
        frame, median(talker, n), median(predictor, n), median(vocoder, n),
        frame > 0 ? 80 * n_lanes / frame : 0);
    fflush(stdout);
    cuda_backend.close(&r.b);
}

static void check_model(bool checks, int timed_lanes)
{
    static const int counts[] = {1, 8, 16, 32, 64, 128, 256};
    utter_error error;
    struct model *model;
    struct run r = {0}, cpu = {0};
    if (!said(model_open(&model, folder, &error), &error, "open")) {
        return;
    }
    if (weight_bits &&
        !said(model_pack(model, weight_bits == 8 ? DTYPE_Q8 : DTYPE_Q4, 0, &error), &error, "pack")) {
        return;
    }
    if (checks && open_run(&r, &cuda_backend, model, sizes.n_lanes) &&
        (!sizes.beside_cpu || open_run(&cpu, &cpu_backend, model, 1))) {
        if (sizes.n_orders > 1 && sizes.n_rows > 0) {
            check_prompt_orders(&r, sizes.n_rows);
        } else {
            check_orders(&r, cpu.b ? &cpu : NULL);
            if (sizes.n_rows > 0) {
                check_pieces(&r, sizes.n_rows);
            }
        }
        if (sizes.late) {
            check_late(&r);
        }
    }
    cuda_backend.close(&r.b);
    cpu_backend.close(&cpu.b);
    for (size_t i = 0; i < sizeof counts / sizeof *counts && counts[i] <= timed_lanes; i++) {
        time_lanes(model, counts[i]);
    }
    model_close(&model);
}

static int within(int n, int least, int most)
{
    return n < least || n > most ? most : n;
}

int main(int argc, char **argv)
{
    bool checks = true;
    int timed_lanes = 0;
    for (int i = 1; i < argc; i++) {
        const int number = i + 1 < argc ? atoi(argv[i + 1]) : 0;
        if (strcmp(argv[i], "-T") == 0) {
            checks = false;
        } else if (strcmp(argv[i], "-c") == 0) {
            sizes.beside_cpu = true;
        } else if (strcmp(argv[i], "-s") == 0) {
            sizes.all_ways = true;
        } else if (strcmp(argv[i], "-L") == 0) {
            sizes.late = true;
        } else if (strcmp(argv[i], "-d") == 0) {
            sizes.fewer = true;
        } else if (argv[i][0] != '-') {
            folder = argv[i];
            check_model(checks, timed_lanes);
        } else {
            switch (argv[i++][1]) {
            case 'w':
                kernels = argv[i];
                break;
            case 'l':
                sizes.n_lanes = within(number, 1, MOST_LANES);
                break;
            case 'n':
                sizes.n_frames = within(number, 1, N_FRAMES);
                break;
            case 'k':
                sizes.n_chosen = within(number, 1, N_CHOSEN);
                break;
            case 'q':
                weight_bits = number == 4 ? 4 : 8;
                break;
            case 'o':
                sizes.n_orders = within(number, 1, MOST_ORDERS);
                break;
            case 'v':
                sizes.n_heard = within(number, 1, MOST_LANES);
                break;
            case 'p':
                sizes.n_prompt = within(number, 1, MOST_ROWS - 16);
                break;
            case 'r':
                sizes.n_rows = number == 0 ? 0 : within(number, LEAST_ROWS, MOST_ROWS);
                break;
            case 't':
                timed_lanes = number;
                break;
            default:
                fprintf(stderr, "check_many: unknown option %s\n", argv[i - 1]);
                return 2;
            }
        }
    }
    printf("%d passed, %d failed\n", n_passed, n_failed);
    return n_failed > 0 || n_passed + timed_lanes == 0;
}
