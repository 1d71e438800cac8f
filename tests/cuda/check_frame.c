/* SPDX-License-Identifier: Apache-2.0
 * The persistent kernel behind the backend's door: codes equal those of the graphs, a lost frame is made again by
 * them or, with 8-bit weights, is an error, the memory of those, the choice at open. Needs a GPU and checkpoints of
 * the released shapes; goes on after a failure. Usage: check_frame [-n FRAMES] [-l MOST LANES] [-f FRAMES]
 * [-q] [-8] CHECKPOINT ...; -n: of one lane, 0: not these; -8: only with 8 bits; -l: 1: none together; -f: of lanes
 * together; -q: the most lanes only, of which the first and the last speak alone, no sound, and not what memory is
 * told. */
#include <math.h>

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
/* Of scores with weights in 8 bits, of the largest: a rounding border of 16-bit vectors moves a little; and with the
 * talker in 8 bits the GPU makes a prompt's rows from the weights as stored, which the CPU does not have then. */
static const double PREDICTOR_APART = 1e-3, TALKER_APART = 1e-2;

static const struct lane_settings SPOKEN = {{0.9f, 50, 1, 1.05f}, {0.9f, 50, 1, 1}, 21, 2};

static struct model *model;
static int n_frames = 60, most_lanes = MOST_LANES, many_frames = MANY_FRAMES;
static bool few_alone, only_packed;

/* The model with all or with the predictor's matrices in 8 bits, once it was asked for. */
static struct model *packed_all, *packed_predictor;

static struct model *model_in(utter_weights weights)
{
    struct model **at = weights == UTTER_WEIGHTS_Q8             ? &packed_all
                        : weights == UTTER_WEIGHTS_Q8_PREDICTOR ? &packed_predictor
                                                                : &model;
    utter_error error;
    if (!*at && said(model_open(at, folder, &error), &error, "model")) {
        said(weights == UTTER_WEIGHTS_Q8 ? model_pack(*at, DTYPE_Q8, 0, &error)
                                         : model_pack_predictor(*at, DTYPE_Q8, 0, &error),
            &error, "pack");
    }
    return *at;
}

static struct backend *open_with(const char *kernels, utter_weights weights, int n_lanes)
{
    utter_error error;
    struct backend *b = NULL;
    struct backend_options o = {
        .n_lanes = n_lanes, .lane_positions = POSITIONS, .cpu_kernels = kernels, .weights = weights};
    said(cuda_backend.open(&b, model_in(weights), &o, &error), &error, kernels ? kernels : "unasked");
    return b;
}

static const char *kernels_of(const struct backend *b)
{
    const char *used = "", *all;
    int n;
    cuda_backend.kernels(b, &used, &all, &n);
    return used;
}

static void keep_codes(int32_t *to, const struct lane_out *out)
{
    memset(to, 0, CODEBOOKS * sizeof *to);
    memcpy(to, out->codes, (size_t)model->config->n_codebooks * sizeof *to);
}

/* A frame that is lost so often ends the kernel. */
enum { LOST_FOR_GOOD = CUDA_TRIES };

/* Frames of one lane with their sound; frame lose_at runs out of time `losses` times (-1: none). How many there were;
 * ms: of a frame without its sound, and with everything. */
static int speak(
    struct backend *b, int n, int lose_at, int losses, int32_t (*codes)[CODEBOOKS], double (*ms)[2])
{
    struct run r = {&cuda_backend, b, model->config};
    struct lane_out out;
    (*ms)[0] = (*ms)[1] = 0;
    if (!start(&r, 0, 1, &SPOKEN, 20)) {
        return 0;
    }
    for (int i = 0; i < n; i++) {
        if (i == lose_at && b->frame->kernel) {
            frame_kernel_patience(b->frame->kernel, 1, losses);
        }
        double begin = clock_seconds();
        if (!one_frame_of(&r, 0, model->config->tts_pad, NULL, !few_alone, &out)) {
            return i;
        }
        keep_codes(codes[i], &out);
        (*ms)[0] += 1e3 * (out.talker_s + out.predictor_s) / n;
        (*ms)[1] += 1e3 * (clock_seconds() - begin) / n;
    }
    return n;
}

/* least: frames that must be as wanted, from the first on. */
static void compare(struct backend *b, const char *what, int n, int lose_at, int losses, int n_want,
    int32_t (*want)[CODEBOOKS], int least)
{
    static int32_t got[MOST_FRAMES][CODEBOOKS];
    double ms[2] = {0, 0};
    int n_got = b ? speak(b, n, lose_at, losses, got, &ms) : 0, equal = 0;
    while (equal < n_got && equal < n_want && memcmp(got[equal], want[equal], sizeof got[0]) == 0) {
        equal++;
    }
    result(n_got > 0 && equal >= least && (least == 0 || n_got == n_want),
        "%s (%s): %d frames, %d of %d equal from the first on, %.3f ms each, %.3f with sound", what,
        b ? kernels_of(b) : "not open", n_got, equal, n_want, ms[0], ms[1]);
    if (lose_at >= 0) {
        const bool for_good = losses == LOST_FOR_GOOD;
        result(b && !b->frame->kernel == for_good &&
                   strncmp(kernels_of(b), for_good ? "graph" : "frame", 5) == 0,
            "%s: %s, and says so: %s", what,
            for_good ? "the graphs have gone on" : "the kernel goes on", b ? kernels_of(b) : "");
    }
}

static void compare_opened(struct backend *b, const char *what, int n, int lose_at, int losses,
    int n_want, int32_t (*want)[CODEBOOKS])
{
    compare(b, what, n, lose_at, losses, n_want, want, n_want);
    cuda_backend.close(&b);
}

/* Two frames: codes, the predictor's scores of the last, and the talker's behind it. */
struct scores {
    int32_t codes[2][CODEBOOKS];
    float *predictor, *talker; /* [n_codebooks][predictor_vocabulary], [codec_vocabulary] */
};

static size_t predictor_scores(void)
{
    return (size_t)model->config->n_codebooks * (size_t)model->config->predictor_vocabulary;
}

static void keep_scores(
    void *user, const char *name, int index, const float *data, int64_t rows, int64_t cols)
{
    struct scores *s = user;
    if (strcmp(name, "talker.logits") == 0) {
        memcpy(s->talker, data, (size_t)(rows * cols) * sizeof *data);
    } else if (strcmp(name, "predictor.logits") == 0) {
        memcpy(s->predictor + (size_t)index * (size_t)cols, data, (size_t)(rows * cols) * sizeof *data);
    }
}

static bool two_frames(struct run *r, struct scores *s)
{
    struct lane_out out;
    bool good = start(r, 0, 1, &SPOKEN, 20);
    for (int i = 0; i < 2 && good; i++) {
        good = one_frame_of(r, 0, model->config->tts_pad, NULL, false, &out);
        if (good) {
            keep_codes(s->codes[i], &out);
        }
    }
    return good;
}

/* By the CPU, of the same weights in 8 bits. */
static bool scores_of_cpu(utter_weights weights, struct scores *s)
{
    utter_error error;
    struct run r = {&cpu_backend, NULL, model->config};
    const struct backend_options o = {.n_lanes = 1, .lane_positions = POSITIONS};
    bool good = said(cpu_backend.open(&r.b, model_in(weights), &o, &error), &error, "open");
    if (good) {
        cpu_backend.tap(r.b, keep_scores, s);
        good = two_frames(&r, s);
    }
    cpu_backend.close(&r.b);
    return good;
}

static bool scores_of_kernel(struct backend *b, struct scores *s)
{
    struct run r = {&cuda_backend, b, model->config};
    const size_t n = predictor_scores(), n_talker = (size_t)model->config->codec_vocabulary;
    float *heads = NULL;
    if (cudaMalloc((void **)&heads, n * sizeof *heads) != cudaSuccess) {
        return false;
    }
    frame_kernel_tap(b->frame->kernel, heads);
    const bool good =
        two_frames(&r, s) &&
        cudaMemcpy(s->predictor, heads, n * sizeof *heads, cudaMemcpyDeviceToHost) == cudaSuccess &&
        cudaMemcpy(s->talker, b->frame->lanes.logits, n_talker * sizeof *heads,
            cudaMemcpyDeviceToHost) == cudaSuccess;
    frame_kernel_tap(b->frame->kernel, NULL);
    cudaFree(heads);
    return good;
}

/* The largest difference, of the largest score. */
static double farthest(const float *a, const float *b, size_t n)
{
    double most = 0, scale = 1e-30;
    for (size_t i = 0; i < n; i++) {
        const double apart = fabs((double)a[i] - (double)b[i]);
        most = apart <= most ? most : apart; /* NaN too */
        scale = fmax(scale, fabs((double)b[i]));
    }
    return most / scale;
}

/* What the kernel makes of weights in 8 bits is what the CPU makes of them. */
static void check_scores(utter_weights weights, const char *what, struct backend *b)
{
    const size_t n = predictor_scores(), each = (size_t)model->config->predictor_vocabulary,
                 n_talker = (size_t)model->config->codec_vocabulary;
    struct scores got = {.predictor = calloc(n, sizeof(float)),
                      .talker = calloc(n_talker, sizeof(float))},
                  want = got;
    want.predictor = calloc(n, sizeof(float));
    want.talker = calloc(n_talker, sizeof(float));
    const double most = weights == UTTER_WEIGHTS_Q8 ? TALKER_APART : PREDICTOR_APART;
    const bool good = scores_of_cpu(weights, &want) && scores_of_kernel(b, &got);
    const double predictor = farthest(got.predictor + each, want.predictor + each, n - each),
                 talker = farthest(got.talker, want.talker, n_talker);
    result(good && predictor < most && talker < most &&
               memcmp(got.codes, want.codes, sizeof got.codes) == 0,
        "%s, two frames: scores at most %.1e (predictor) and %.1e (talker) from the CPU's of the same",
        what, predictor, talker);
    free(got.predictor);
    free(got.talker);
    free(want.predictor);
    free(want.talker);
}

/* Narrow weights by the kernel, beside the CPU's scores and the graphs' codes; behind a lost frame the graphs go on. */
static void check_packed(utter_weights weights, const char *what, int n)
{
    static int32_t want[MOST_FRAMES][CODEBOOKS];
    double ms[2] = {0, 0};
    struct backend *graphs = open_with("graph", weights, 1), *kernel = open_with("frame", weights, 1);
    const int n_want = graphs ? speak(graphs, n, -1, 0, want, &ms) : 0;
    cuda_backend.close(&graphs);
    if (kernel) {
        check_scores(weights, what, kernel);
    }
    compare(kernel, what, n, 0, LOST_FOR_GOOD - 1, n_want, want, 0);
    compare(kernel, what, n, n / 2, LOST_FOR_GOOD, n_want, want, 0);
    cuda_backend.close(&kernel);
}

/* The kernel without what is around it: frames that are lost at one place or another are each told once, and behind
 * them the kernel is as new. */
static void check_errors(utter_weights weights, const char *what)
{
    enum { ROWS = 20, N_LOST = 6, LATER = 400 };
    struct run r = {&cuda_backend, open_with("frame", weights, 1), model->config};
    const size_t bytes = (size_t)model->config->n_codebooks *
                         (size_t)model->config->predictor_vocabulary * sizeof(float);
    float *heads = NULL;
    uint32_t errors = 0;
    int lost = 0;
    utter_error error;
    bool good =
        r.b && start(&r, 0, 1, &SPOKEN, ROWS) && cudaMalloc((void **)&heads, bytes) == cudaSuccess;
    if (good) {
        struct cuda_frame *f = r.b->frame;
        const struct frame_ask ask = {.lane = 0, .position = ROWS, .text = f->b.pad, .out = f->out_at};
        frame_kernel_trace(f->kernel, NULL);
        for (int i = 0; i < N_LOST && good; i++) {
            frame_kernel_patience(f->kernel, 1 + LATER * (uint64_t)i, 1);
            good =
                said(frame_kernel_run(f->kernel, &ask, 1, FRAME_STEP, 1001, &error), &error, "run") &&
                said(frame_kernel_errors(f->kernel, &errors, &error), &error, "errors");
            lost += errors != 0;
        }
        frame_kernel_tap(f->kernel, heads);
        good = good &&
               said(frame_kernel_run(f->kernel, &ask, 1, FRAME_STEP, 1002, &error), &error, "run") &&
               said(frame_kernel_errors(f->kernel, &errors, &error), &error, "errors") &&
               f->out[0].sequence == 1002;
        cudaFree(heads);
    }
    result(good && lost == N_LOST && !errors, "%s: %d of %d lost frames are told once, then %u", what,
        lost, N_LOST, (unsigned)errors);
    cuda_backend.close(&r.b);
}

/* A build that does not give the graphs' scores, here because it is told another epsilon than they were made with: it
 * is not used, and that is said; who asked for it is refused. */
static void check_wrong(void)
{
    struct backend *b = open_with("graph", UTTER_WEIGHTS_STORED, 1);
    const char *note = NULL, *ignored;
    utter_error error = {0};
    bool good = b && said(cuda_lanes_grow(&b->pages, 0, CUDA_FRAME_TRIAL_POSITIONS, b->stream, &error),
                         &error, "pages");
    if (good) {
        b->weights.talker.norm_eps = 1;
        good = said(cuda_frame_choose(b->frame, CUDA_FRAME_RULE, &note, &error), &error, "the rule") &&
               !cuda_frame_persistent(b->frame) && note && strstr(note, "other scores") &&
               cuda_frame_choose(b->frame, CUDA_FRAME_KERNEL, &ignored, &error) == UTTER_E_DEVICE &&
               !b->device.broken.code;
    }
    result(good, "other scores: %s; asked for: %s", note ? note : "not said", error.text);
    cuda_backend.close(&b);
}

/* ---- Lanes together ---- */

/* What lanes have said: each its own text and seed. */
struct crowd {
    int32_t codes[MOST_LANES][MANY_FRAMES][CODEBOOKS];
    bool ended[MOST_LANES];
    double ms; /* of a frame of all */
};

/* False after a failure; frame lose_at runs out of time `losses` times (-1: none). Lanes begin one after the other, or
 * several at once where there are more than frames, so that some have their first frame beside others' later ones.
 * only: -1, or the lane that speaks alone. */
static bool speak_together(
    struct backend *b, int n_lanes, int only, int lose_at, int losses, struct crowd *crowd)
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
            struct lane_settings settings = SPOKEN;
            settings.seed += (uint64_t)l;
            good = (only >= 0 && l != only) || start(&r, l, 1 + l, &settings, 5 + 9 * l);
        }
        for (int l = 0; l < (t + 1) * each && l < n_lanes; l++) {
            if ((only < 0 || l == only) && !crowd->ended[l]) {
                in[n++] = (struct frame_in){l, l % 3 == 1 ? 30 + t : model->config->tts_pad, NULL};
            }
        }
        if (t == lose_at && b->frame->kernel) {
            frame_kernel_patience(b->frame->kernel, 1, losses);
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
static void check_together(int n_lanes, int lose_at, int losses)
{
    const int step = few_alone ? n_lanes - 1 : 1, n_alone = few_alone ? 2 : n_lanes;
    static struct crowd graphs_said, alone, got;
    struct backend *graphs = open_with("graph", UTTER_WEIGHTS_STORED, n_lanes),
                   *kernel = open_with("frame", UTTER_WEIGHTS_STORED, n_lanes);
    memset(&graphs_said, 0, sizeof graphs_said);
    memset(&alone, 0, sizeof alone);
    memset(&got, 0, sizeof got);
    bool spoken = graphs && kernel && speak_together(graphs, n_lanes, -1, -1, 0, &graphs_said);
    for (int l = 0; l < n_lanes && spoken && (lose_at < 0 || !few_alone); l += step) {
        spoken = speak_together(kernel, n_lanes, l, -1, 0, &alone);
    }
    spoken = spoken && speak_together(kernel, n_lanes, -1, lose_at, losses, &got);
    const int as_alone = lanes_equal(&alone, &got, n_lanes, step),
              as_graphs = lanes_equal(&graphs_said, &got, n_lanes, 1),
              parted = many_frames < LEAST_TO_PART ? 0 : 1;
    result(spoken && (lose_at >= 0 || as_alone == n_alone) && as_graphs >= n_lanes - parted,
        "%d lanes together%s: %d as alone, %d as by the graphs; %.3f ms a frame, the graphs %.3f",
        n_lanes, lose_at < 0 ? "" : ", one frame lost", as_alone, as_graphs, got.ms, graphs_said.ms);
    if (spoken && lose_at >= 0) {
        const bool for_good = losses == LOST_FOR_GOOD;
        result(!kernel->frame->kernel == for_good, "%d lanes: the %s gone on", n_lanes,
            for_good ? "graphs have" : "kernel has");
    }
    cuda_backend.close(&graphs);
    cuda_backend.close(&kernel);
    if (lose_at < 0) {
        struct backend *unasked = open_with(NULL, UTTER_WEIGHTS_STORED, n_lanes);
        result(unasked != NULL, "%d lanes, unasked: %s", n_lanes, unasked ? kernels_of(unasked) : "");
        cuda_backend.close(&unasked);
    }
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
    }
    *used = 1e-6 * (*used - (double)cuda_device_free_bytes(&device));
    *told = 1e-6 * (double)(memory.shared_bytes + memory.lane_bytes);
    const bool good = b != NULL;
    cuda_backend.close(&b);
    return good;
}

/* The first of two backends loads code, so only what 8 bits take less is compared. */
static void check_memory_told(void)
{
    enum { GRAIN = 8 }; /* MB: of single allocations */
    double stored[2], packed[2];
    if (taken(UTTER_WEIGHTS_STORED, &stored[0], &stored[1]) &&
        taken(UTTER_WEIGHTS_STORED, &stored[0], &stored[1]) &&
        taken(UTTER_WEIGHTS_Q8, &packed[0], &packed[1])) {
        const double spared = stored[0] - packed[0], told = stored[1] - packed[1];
        result(told > GRAIN && spared - told < GRAIN && told - spared < GRAIN,
            "weights in 8 bits take %.0f MB less, of which %.0f are in the plan", spared, told);
    }
}

/* One lane by the kernel, beside the graphs' codes. */
static void check_stored(int n, int n_want, int32_t (*want)[CODEBOOKS])
{
    const int lost_at = n > LOST_AT ? LOST_AT : n / 2;
    compare_opened(
        open_with("frame", UTTER_WEIGHTS_STORED, 1), "one kernel a frame", n, -1, 0, n_want, want);
    for (int losses = 1; losses <= LOST_FOR_GOOD; losses += LOST_FOR_GOOD - 1) {
        compare_opened(open_with("frame", UTTER_WEIGHTS_STORED, 1),
            losses == 1 ? "a frame lost once" : "a lost frame", n, lost_at, losses, n_want, want);
    }
    compare_opened(open_with(NULL, UTTER_WEIGHTS_STORED, 1), "unasked", n, -1, 0, n_want, want);
    check_errors(UTTER_WEIGHTS_STORED, "weights as stored");
    check_wrong();
}

static void check_alone(int n)
{
    static int32_t want[MOST_FRAMES][CODEBOOKS];
    double ms[2] = {0, 0};
    if (!only_packed) {
        struct backend *graphs = open_with("graph", UTTER_WEIGHTS_STORED, 1);
        int n_want = graphs ? speak(graphs, n, -1, 0, want, &ms) : 0;
        result(n_want > 0, "%s: %d frames, %.3f ms each, %.3f with sound",
            graphs ? kernels_of(graphs) : "graph", n_want, ms[0], ms[1]);
        cuda_backend.close(&graphs);
        check_stored(n, n_want, want);
    }
    check_packed(UTTER_WEIGHTS_Q8_PREDICTOR, "the predictor in 8 bits", n);
    check_packed(UTTER_WEIGHTS_Q8, "8 bits", n);
    check_errors(UTTER_WEIGHTS_Q8, "8 bits");
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
        check_together(n_lanes, -1, 0);
    }
    if (most_lanes > 1) {
        for (int losses = 1; losses <= LOST_FOR_GOOD; losses += LOST_FOR_GOOD - 1) {
            check_together(most_lanes < LOST_LANES ? most_lanes : LOST_LANES, many_frames / 2, losses);
        }
    }
    if (!few_alone) {
        check_memory_told();
    }
    model_close(&packed_all);
    model_close(&packed_predictor);
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
        } else if (strcmp(argv[i], "-8") == 0) {
            only_packed = true;
        } else {
            folder = argv[i];
            check_model();
        }
    }
    printf("%d passed, %d failed\n", n_passed, n_failed);
    return n_failed > 0 || n_passed == 0;
}
