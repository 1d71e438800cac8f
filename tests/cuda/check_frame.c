/* SPDX-License-Identifier: Apache-2.0
 * The persistent kernel behind the backend's door: codes equal those of the graphs, a lost frame is made again by
 * them or, with 8-bit weights, is an error, the memory of those, the choice at open. Needs a GPU and checkpoints of
 * the released shapes; goes on after a failure. Usage: check_frame [-n FRAMES] [-l MOST LANES] [-f FRAMES]
 * [-q] CHECKPOINT ...; -n: of one lane, 0: not these; -l: 1: none together; -f: of lanes together; -q: the most
 * lanes only, of which the first and the last speak alone, and not what memory is told. */
#include "base/clock.h"
#include "cuda/door/backend_parts.h"
#include "cuda/graph/frame_parts.h"
#include "tests/cuda/drive_backend.h"

enum {
    MOST_FRAMES = 400,
    CODEBOOKS = 16,
    LOST_AT = 5,
    MOST_LANES = 12,
    MANY_FRAMES = 30,
    LOST_LANES = 8,
    LEAST_TO_PART = 8
};

static struct model *model;
static int n_frames = 60, most_lanes = MOST_LANES, many_frames = MANY_FRAMES;
static bool few_alone;

static struct backend *open_with(const char *kernels, utter_weights weights, int n_lanes)
{
    utter_error error;
    struct backend *b = NULL;
    struct backend_options o = {
        .n_lanes = n_lanes, .lane_positions = POSITIONS, .cpu_kernels = kernels, .weights = weights};
    said(cuda_backend.open(&b, model, &o, &error), &error, kernels ? kernels : "the faster");
    return b;
}

static const char *kernels_of(const struct backend *b)
{
    const char *used = "", *all;
    int n;
    cuda_backend.kernels(b, &used, &all, &n);
    return used;
}

/* Frames of one lane with their sound; frame lose_at runs out of time (-1: none). How many there were; ms: of a frame
 * without its sound, and with everything. */
static int speak(struct backend *b, int n, int lose_at, int32_t (*codes)[CODEBOOKS], double (*ms)[2])
{
    static const struct lane_settings settings = {{0.9f, 50, 1, 1.05f}, {0.9f, 50, 1, 1}, 21, 2};
    struct run r = {&cuda_backend, b, model->config};
    struct lane_out out;
    (*ms)[0] = (*ms)[1] = 0;
    if (!start(&r, 0, 1, &settings, 20)) {
        return 0;
    }
    for (int i = 0; i < n; i++) {
        if (i == lose_at && b->frame->kernel) {
            frame_kernel_patience(b->frame->kernel, 1);
        }
        double begin = clock_seconds();
        if (!one_frame(&r, 0, model->config->tts_pad, NULL, &out)) {
            return i;
        }
        memcpy(codes[i], out.codes, sizeof codes[i]);
        (*ms)[0] += 1e3 * (out.talker_s + out.predictor_s) / n;
        (*ms)[1] += 1e3 * (clock_seconds() - begin) / n;
    }
    return n;
}

static void compare(struct backend *b, const char *what, int n, int lose_at, int n_want,
    int32_t (*want)[CODEBOOKS], bool same)
{
    static int32_t got[MOST_FRAMES][CODEBOOKS];
    double ms[2] = {0, 0};
    int n_got = b ? speak(b, n, lose_at, got, &ms) : 0, equal = 0;
    while (equal < n_got && equal < n_want && memcmp(got[equal], want[equal], sizeof got[0]) == 0) {
        equal++;
    }
    result(n_got > 0 && (!same || (n_got == n_want && equal == n_want)),
        "%s (%s): %d frames, %d of %d equal from the first on, %.3f ms each, %.3f with sound", what,
        b ? kernels_of(b) : "not open", n_got, equal, n_want, ms[0], ms[1]);
    if (lose_at >= 0) {
        result(b && !b->frame->kernel && strncmp(kernels_of(b), "graph", 5) == 0,
            "%s: the graphs have gone on, and say so: %s", what, b ? kernels_of(b) : "");
    }
    cuda_backend.close(&b);
}

/* Only the kernel has weights in 8 bits: without it there are no more frames, rather than other codes. */
static void check_lost_packed(utter_weights weights, const char *what)
{
    static const struct lane_settings settings = {{0.9f, 50, 1, 1.05f}, {0.9f, 50, 1, 1}, 21, 2};
    const struct frame_in in = {0, model->config->tts_pad, NULL};
    struct run r = {&cuda_backend, open_with(NULL, weights, 1), model->config};
    struct lane_out out;
    utter_error error = {0}, later = {0};
    bool good = r.b && start(&r, 0, 1, &settings, 20) && one_frame(&r, 0, in.text, NULL, &out);
    if (good) {
        frame_kernel_patience(r.b->frame->kernel, 1);
        good = cuda_backend.frame(r.b, &in, 1, &error) == UTTER_E_DEVICE &&
               strstr(error.text, "8 bits") &&
               cuda_backend.lane_reset(r.b, 0, &settings, &later) == UTTER_E_DEVICE &&
               strcmp(error.text, later.text) == 0;
    }
    result(good, "a lost frame of %s: %s", what, error.text);
    cuda_backend.close(&r.b);
}

/* The kernel without what is around it: a lost frame is told once, and behind that the kernel is as new. */
static void check_errors(void)
{
    enum { ROWS = 20 };
    static const struct lane_settings settings = {{0.9f, 50, 1, 1.05f}, {0.9f, 50, 1, 1}, 21, 2};
    struct run r = {&cuda_backend, open_with("frame", UTTER_WEIGHTS_STORED, 2), model->config};
    const size_t bytes = (size_t)model->config->n_codebooks *
                         (size_t)model->config->predictor_vocabulary * sizeof(float);
    float *heads = NULL;
    uint32_t lost = 0, after = 0;
    utter_error error;
    bool good =
        r.b && start(&r, 0, 1, &settings, ROWS) && cudaMalloc((void **)&heads, bytes) == cudaSuccess;
    if (good) {
        struct cuda_frame *f = r.b->frame;
        const struct frame_ask ask = {.lane = 0, .position = ROWS, .text = f->b.pad, .out = f->out_at};
        frame_kernel_trace(f->kernel, NULL);
        frame_kernel_patience(f->kernel, 1);
        good = said(frame_kernel_run(f->kernel, &ask, 1, FRAME_STEP, 1001, &error), &error, "run") &&
               said(frame_kernel_errors(f->kernel, &lost, &error), &error, "errors");
        frame_kernel_patience(f->kernel, (uint64_t)1 << 40);
        frame_kernel_tap(f->kernel, heads);
        good = good &&
               said(frame_kernel_run(f->kernel, &ask, 1, FRAME_STEP, 1002, &error), &error, "run") &&
               said(frame_kernel_errors(f->kernel, &after, &error), &error, "errors") &&
               f->out[0].sequence == 1002;
        cudaFree(heads);
    }
    result(good && lost && !after, "a lost frame is told once: %u, then %u", (unsigned)lost,
        (unsigned)after);
    cuda_backend.close(&r.b);
}

/* ---- Lanes together ---- */

/* What lanes have said: each its own text and seed. */
struct crowd {
    int32_t codes[MOST_LANES][MANY_FRAMES][CODEBOOKS];
    bool ended[MOST_LANES];
    double ms; /* of a frame of all */
};

/* False after a failure; frame lose_at runs out of time (-1: none). Lanes begin one after the other, or several at
 * once where there are more than frames, so that some have their first frame beside others' later ones. only: -1, or
 * the lane that speaks alone. */
static bool speak_together(struct backend *b, int n_lanes, int only, int lose_at, struct crowd *crowd)
{
    struct run r = {&cuda_backend, b, model->config};
    struct frame_in in[MOST_LANES];
    struct lane_out out;
    utter_error error;
    bool good = true;
    const int each = (n_lanes + many_frames - 1) / many_frames;
    for (int t = 0; t < many_frames && good; t++) {
        int n = 0;
        for (int l = t * each; l < (t + 1) * each && l < n_lanes && good; l++) {
            struct lane_settings settings = {{0.9f, 50, 1, 1.05f}, {0.9f, 50, 1, 1}, 21, 2};
            settings.seed += (uint64_t)l;
            good = (only >= 0 && l != only) || start(&r, l, 1 + l, &settings, 5 + 9 * l);
        }
        for (int l = 0; l < (t + 1) * each && l < n_lanes; l++) {
            if ((only < 0 || l == only) && !crowd->ended[l]) {
                in[n++] = (struct frame_in){l, l % 3 == 1 ? 30 + t : model->config->tts_pad, NULL};
            }
        }
        if (t == lose_at && b->frame->kernel) {
            frame_kernel_patience(b->frame->kernel, 1);
        }
        good = good && (n == 0 || said(cuda_backend.frame(b, in, n, &error), &error, "frame"));
        for (int i = 0; i < n && good; i++) {
            const int l = in[i].lane;
            good = said(cuda_backend.collect(b, l, &out, &error), &error, "collect");
            if (good) {
                if (!out.end) {
                    memcpy(crowd->codes[l][t], out.codes,
                        (size_t)model->config->n_codebooks * sizeof(int32_t));
                }
                crowd->ended[l] = out.end;
                crowd->ms = 1e3 * (out.talker_s + out.predictor_s);
            }
        }
    }
    return good;
}

/* Of every step-th lane. */
static int lanes_equal(const struct crowd *a, const struct crowd *b, int n_lanes, int step)
{
    int n = 0;
    for (int l = 0; l < n_lanes; l += step) {
        n += memcmp(a->codes[l], b->codes[l], sizeof a->codes[l]) == 0;
    }
    return n;
}

/* A lane beside others gets what it gets alone, to the last bit. The graphs take their sums in another order: of the
 * 500 to 6,000 choices here one or another may stand so near to a second that they part there; of
 * a few frames, none. */
static void check_together(int n_lanes, int lose_at)
{
    const int step = few_alone ? n_lanes - 1 : 1, n_alone = few_alone ? 2 : n_lanes;
    static struct crowd graphs_said, alone, got;
    struct backend *graphs = open_with("graph", UTTER_WEIGHTS_STORED, n_lanes),
                   *kernel = open_with("frame", UTTER_WEIGHTS_STORED, n_lanes);
    memset(&graphs_said, 0, sizeof graphs_said);
    memset(&alone, 0, sizeof alone);
    memset(&got, 0, sizeof got);
    bool spoken = graphs && kernel && speak_together(graphs, n_lanes, -1, -1, &graphs_said);
    for (int l = 0; l < n_lanes && spoken && (lose_at < 0 || !few_alone); l += step) {
        spoken = speak_together(kernel, n_lanes, l, -1, &alone);
    }
    spoken = spoken && speak_together(kernel, n_lanes, -1, lose_at, &got);
    const int as_alone = lanes_equal(&alone, &got, n_lanes, step),
              as_graphs = lanes_equal(&graphs_said, &got, n_lanes, 1),
              parted = many_frames < LEAST_TO_PART ? 0 : 1;
    result(spoken && (lose_at >= 0 || as_alone == n_alone) && as_graphs >= n_lanes - parted,
        "%d lanes together%s: %d as alone, %d as by the graphs; %.3f ms a frame, the graphs %.3f",
        n_lanes, lose_at < 0 ? "" : ", one frame lost", as_alone, as_graphs, got.ms, graphs_said.ms);
    if (spoken && lose_at >= 0) {
        result(!kernel->frame->kernel, "%d lanes: the graphs have gone on", n_lanes);
    }
    cuda_backend.close(&graphs);
    cuda_backend.close(&kernel);
    if (lose_at < 0) {
        struct backend *faster = open_with(NULL, UTTER_WEIGHTS_STORED, n_lanes);
        result(faster != NULL, "%d lanes, the faster: %s", n_lanes, faster ? kernels_of(faster) : "");
        cuda_backend.close(&faster);
    }
}

/* What is told of weights: narrow ones are named, and of their matrices a little more than half is read. */
static void check_weights_told(utter_weights weights, const struct backend_memory *memory)
{
    const char *name = weights == UTTER_WEIGHTS_STORED ? NULL
                       : weights == UTTER_WEIGHTS_Q8   ? "q8"
                                                       : "q8-predictor";
    const double talker = (double)memory->talker_frame_bytes / (double)model->talker_frame_bytes,
                 predictor =
                     (double)memory->predictor_frame_bytes / (double)model->predictor_frame_bytes;
    bool good = name ? memory->weights && strcmp(memory->weights, name) == 0 : !memory->weights;
    if (name) {
        good = good && predictor > 0.5 && predictor < 0.6 &&
               (weights == UTTER_WEIGHTS_Q8 ? talker > 0.5 && talker < 0.6 : talker == 1);
    }
    result(good, "weights %s: %.3f of the talker's bytes, %.3f of the predictor's",
        memory->weights ? memory->weights : "as stored", talker, predictor);
}

/* Memory in MB that a backend takes, and that it tells, of which its plan is made. */
static bool taken(utter_weights weights, double *used, double *told)
{
    struct cuda_device device;
    struct backend_memory memory = {0};
    utter_error error;
    if (!said(cuda_device_open(&device, 0, &error), &error, "the device")) {
        return false;
    }
    *used = (double)cuda_device_free_bytes(&device);
    struct backend *b = open_with("frame", weights, 1);
    if (b) {
        cuda_backend.memory(b, &memory);
        check_weights_told(weights, &memory);
    }
    *used = 1e-6 * (*used - (double)cuda_device_free_bytes(&device));
    *told = 1e-6 * (double)(memory.shared_bytes + memory.lane_bytes);
    const bool good = b != NULL;
    cuda_backend.close(&b);
    return good;
}

/* The first of two backends loads code, so only what 8 bits take more is compared. */
static void check_memory_told(void)
{
    enum { GRAIN = 8 }; /* MB: of single allocations */
    double stored[2], packed[2];
    if (taken(UTTER_WEIGHTS_STORED, &stored[0], &stored[1]) &&
        taken(UTTER_WEIGHTS_STORED, &stored[0], &stored[1]) &&
        taken(UTTER_WEIGHTS_Q8, &packed[0], &packed[1])) {
        const double used = packed[0] - stored[0], told = packed[1] - stored[1];
        result(told > GRAIN && used - told < GRAIN && told - used < GRAIN,
            "weights in 8 bits take %.0f MB more, of which %.0f are in the plan", used, told);
    }
    taken(UTTER_WEIGHTS_Q8_PREDICTOR, &packed[0], &packed[1]);
}

/* One lane by the kernel, beside the graphs' codes. */
static void check_alone(int n)
{
    static int32_t want[MOST_FRAMES][CODEBOOKS];
    const int lost_at = n > LOST_AT ? LOST_AT : n / 2;
    double ms[2] = {0, 0};
    struct backend *graphs = open_with("graph", UTTER_WEIGHTS_STORED, 1);
    int n_want = graphs ? speak(graphs, n, -1, want, &ms) : 0;
    result(n_want > 0, "%s: %d frames, %.3f ms each, %.3f with sound",
        graphs ? kernels_of(graphs) : "graph", n_want, ms[0], ms[1]);
    if (graphs) {
        cuda_backend.close(&graphs);
    }
    compare(
        open_with("frame", UTTER_WEIGHTS_STORED, 1), "one kernel a frame", n, -1, n_want, want, true);
    compare(
        open_with("frame", UTTER_WEIGHTS_STORED, 1), "a lost frame", n, lost_at, n_want, want, true);
    compare(open_with(NULL, UTTER_WEIGHTS_STORED, 1), "the faster", n, -1, n_want, want, true);
    compare(open_with(NULL, UTTER_WEIGHTS_Q8_PREDICTOR, 1), "the predictor in 8 bits", n, -1, n_want,
        want, false);
    compare(open_with(NULL, UTTER_WEIGHTS_Q8, 1), "8 bits", n, -1, n_want, want, false);
    check_lost_packed(UTTER_WEIGHTS_Q8_PREDICTOR, "the predictor in 8 bits");
    check_lost_packed(UTTER_WEIGHTS_Q8, "8 bits");
    check_errors();
}

static void check_model(void)
{
    utter_error error;
    if (!said(model_open(&model, folder, &error), &error, "model")) {
        return;
    }
    if (n_frames > 0) {
        check_alone(n_frames);
    }
    for (int n_lanes = few_alone ? most_lanes : 2; most_lanes > 1 && n_lanes <= most_lanes;
         n_lanes = n_lanes == 8 ? 12 : 2 * n_lanes) {
        check_together(n_lanes, -1);
    }
    if (most_lanes > 1) {
        check_together(most_lanes < LOST_LANES ? most_lanes : LOST_LANES, many_frames / 2);
    }
    if (!few_alone) {
        check_memory_told();
    }
    model_close(&model);
}

static int within(const char *number, int least, int most)
{
    const int n = atoi(number);
    return n < least || n > most ? most : n;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const bool more = i + 1 < argc;
        if (strcmp(argv[i], "-n") == 0 && more) {
            n_frames = within(argv[++i], 0, MOST_FRAMES);
        } else if (strcmp(argv[i], "-l") == 0 && more) {
            most_lanes = within(argv[++i], 1, MOST_LANES);
        } else if (strcmp(argv[i], "-f") == 0 && more) {
            many_frames = within(argv[++i], 2, MANY_FRAMES);
        } else if (strcmp(argv[i], "-q") == 0) {
            few_alone = true;
        } else {
            folder = argv[i];
            check_model();
        }
    }
    printf("%d passed, %d failed\n", n_passed, n_failed);
    return n_failed > 0 || n_passed == 0;
}
