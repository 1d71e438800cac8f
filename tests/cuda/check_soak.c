/* SPDX-License-Identifier: Apache-2.0
 * Many frames with random settings, lanes, prompts, texts and kernels, everything spoken twice: the second time other
 * lanes of the backend speak it, together again or each alone. A frame that differs, fails or comes too late for the
 * frame kernel is a fault. Some rounds are spoken by the graphs too; their sums are taken in another order, so a few
 * streams part there, which is counted. Needs a GPU. Usage: check_soak [-w graph] [-n FRAMES] [-f STEPS] [-l LANES]
 * [-s SECONDS] [-r SEED] CHECKPOINT ...; -w graph: by the graphs alone, as on a card without the frame kernel; -f, -l:
 * the most of a round; ends with `N passed, N failed`. */
#include "base/clock.h"
#include "cuda/door/backend_parts.h"
#include "cuda/graph/frame_parts.h"
#include "tests/cuda/drive_backend.h"

enum { MOST_LANES = 16, MOST_FRAMES = 96, CODEBOOKS = 16, MOST_BEGIN = 6, LEAST_FRAMES = 20 };
/* One round of so many: its voices are repeated each alone; it is spoken by the graphs too. */
enum { REPEATED_ALONE = 8, SHARED_BY_GRAPHS = 6 };

/* The kernels that take turns; the first in most of them. */
struct kind {
    const char *kernels;
    utter_weights weights;
    int share; /* rounds of SHARES */
    const char *name;
};
enum { N_KINDS = 4, SHARES = 24 };
static const struct kind WITH_FRAME[N_KINDS] = {
    {"frame", UTTER_WEIGHTS_STORED, 21, "frame kernel"},
    {"graph", UTTER_WEIGHTS_STORED, 1, "graphs"},
    {"frame", UTTER_WEIGHTS_Q8_PREDICTOR, 1, "predictor in 8 bits"},
    {"frame", UTTER_WEIGHTS_Q8, 1, "8 bits"},
};
static const struct kind GRAPHS[N_KINDS] = {
    {"graph", UTTER_WEIGHTS_STORED, 12, "graphs"},
    {"graph", UTTER_WEIGHTS_Q8_PREDICTOR, 4, "predictor in 8 bits"},
    {"graph", UTTER_WEIGHTS_Q8, 4, "8 bits"},
    {"graph", UTTER_WEIGHTS_Q4, 4, "4 bits"},
};

static const struct kind *kinds = WITH_FRAME;
static uint64_t state;
static int most_steps = MOST_FRAMES, most_lanes = MOST_LANES;

static uint32_t below(uint32_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((state >> 33) % n);
}

/* ---- A round ---- */

struct voice {
    struct lane_settings settings;
    int kind, n_rows, begin; /* of its prompt; the step at which it comes in */
};

struct plan {
    struct voice of[MOST_LANES];
    int n, n_steps;
};

/* Most likely ones by mass, of all, take the GPU milliseconds for each code: seldom. */
static utter_sampling any_sampling(void)
{
    static const float temperatures[] = {0, 0.3f, 0.7f, 0.9f, 0.9f, 1, 1.6f, 20},
                       ps[] = {0.95f, 0.8f, 0.3f, 1e-6f}, penalties[] = {1, 1.05f, 1.05f, 1.3f, 0.8f};
    static const int ks[] = {0, 0, 1, 2, 20, 50, 50, 300, 5000};
    utter_sampling s;
    s.temperature = temperatures[below(8)];
    s.top_k = ks[below(9)];
    s.top_p = below(4) == 0 ? ps[below(4)] : 1;
    s.repetition_penalty = penalties[below(5)];
    if (s.top_p < 1 && (s.top_k == 0 || s.top_k > 50) && below(16) > 0) {
        s.top_k = 50;
    }
    return s;
}

static void draw(struct plan *plan)
{
    static const int counts[] = {1, 1, 2, 3, 4, 4, 5, 6, 7, 8, 8, 8, 8, 8, 11, 16},
                     least[] = {0, 2, 2, 2, 40, 1 << 20};
    plan->n = counts[below(16)];
    plan->n = plan->n < most_lanes ? plan->n : most_lanes;
    const int least_steps = most_steps < LEAST_FRAMES ? most_steps : LEAST_FRAMES;
    plan->n_steps = least_steps + (int)below((uint32_t)(most_steps - least_steps + 1));
    for (int i = 0; i < plan->n; i++) {
        struct voice *v = &plan->of[i];
        v->settings =
            (struct lane_settings){any_sampling(), any_sampling(), below(1u << 30), least[below(6)]};
        v->kind = (int)below(1000);
        v->n_rows = 1 + (int)below(N_ROWS);
        v->begin = (int)below(most_steps < MOST_BEGIN ? (uint32_t)most_steps : MOST_BEGIN);
    }
    plan->of[0].begin = 0;
}

struct speech {
    int32_t codes[MOST_LANES][MOST_FRAMES][CODEBOOKS];
    uint64_t scores[MOST_LANES]
                   [MOST_FRAMES]; /* sums of the bits of those of code 0; of the first: the prompt's */
    int n_frames[MOST_LANES];
};

/* Takes in the scores of code 0 of some voices' last frame. */
static bool note_scores(
    struct run *r, const struct frame_in *in, const int *who, int n, struct speech *said_codes)
{
    static uint32_t scores[MOST_LANES * CUDA_MAX_CODES];
    const int each = r->config->codec_vocabulary;
    if (cudaMemcpy(scores, r->b->lanes.logits, (size_t)(most_lanes * each) * sizeof *scores,
            cudaMemcpyDeviceToHost) != cudaSuccess) {
        result(false, "scores: not to be had");
        return false;
    }
    for (int k = 0; k < n; k++) {
        uint64_t sum = 0;
        for (int j = 0; j < each; j++) {
            sum = (sum ^ scores[in[k].lane * each + j]) * 0x9e3779b97f4a7c15u;
        }
        said_codes->scores[who[k]][said_codes->n_frames[who[k]]] = sum;
    }
    return true;
}

/* Voice i on lane (i + shift) of the backend. False after a failure, which has been told. */
static bool speak(struct run *r, const struct plan *plan, int shift, struct speech *said_codes)
{
    bool ended[MOST_LANES] = {false}, good = true;
    memset(said_codes, 0, sizeof *said_codes);
    for (int t = 0; t < plan->n_steps && good; t++) {
        struct frame_in in[MOST_LANES];
        int who[MOST_LANES], n = 0;
        utter_error error;
        for (int i = 0; i < plan->n && good; i++) {
            const struct voice *v = &plan->of[i];
            const int lane = (i + shift) % most_lanes;
            good = t != v->begin || start(r, lane, v->kind, &v->settings, v->n_rows);
            if (t >= v->begin && !ended[i]) {
                who[n] = i;
                in[n++] = (struct frame_in){lane, text_of(r->config, v->kind, t - v->begin), NULL};
            }
        }
        good = good && (n == 0 || said(r->ops->frame(r->b, in, n, &error), &error, "frame"));
        struct lane_out out;
        good = good &&
               (n == 0 || (said(r->ops->collect(r->b, in->lane, &out, &error), &error, "collect") &&
                              note_scores(r, in, who, n, said_codes)));
        for (int k = 0; k < n && good; k++) {
            const int i = who[k];
            good = said(r->ops->collect(r->b, in[k].lane, &out, &error), &error, "collect");
            ended[i] = good && out.end;
            if (good && !out.end) {
                memcpy(said_codes->codes[i][said_codes->n_frames[i]++], out.codes,
                    (size_t)r->config->n_codebooks * sizeof(int32_t));
            }
        }
    }
    return good;
}

/* Each voice by itself. */
static bool speak_alone(struct run *r, const struct plan *plan, struct speech *all)
{
    static struct speech one;
    bool good = true;
    memset(all, 0, sizeof *all);
    for (int i = 0; i < plan->n && good; i++) {
        struct plan alone = {.of = {plan->of[i]}, .n = 1, .n_steps = plan->n_steps - plan->of[i].begin};
        alone.of[0].begin = 0;
        good = speak(r, &alone, (int)below((uint32_t)most_lanes), &one);
        memcpy(all->codes[i], one.codes[0], sizeof one.codes[0]);
        memcpy(all->scores[i], one.scores[0], sizeof one.scores[0]);
        all->n_frames[i] = one.n_frames[0];
    }
    return good;
}

/* Frames in which a voice has other codes, or other scores of the first. */
static int differing(const struct plan *plan, const struct speech *a, const struct speech *b)
{
    int n = 0;
    for (int i = 0; i < plan->n; i++) {
        n += abs(a->n_frames[i] - b->n_frames[i]);
        for (int t = 0; t < a->n_frames[i] && t < b->n_frames[i]; t++) {
            n += a->scores[i][t] != b->scores[i][t] ||
                 memcmp(a->codes[i][t], b->codes[i][t], sizeof a->codes[i][t]) != 0;
        }
    }
    return n;
}

/* Voices that are other ones. */
static int parted(const struct plan *plan, const struct speech *a, const struct speech *b)
{
    int n = 0;
    for (int i = 0; i < plan->n; i++) {
        n += a->n_frames[i] != b->n_frames[i] ||
             memcmp(a->codes[i], b->codes[i], sizeof a->codes[i]) != 0;
    }
    return n;
}

/* The first frame in which two voices have other scores, or other codes; n_steps: none. */
static int first_other(
    const struct plan *plan, const struct speech *a, const struct speech *b, int i, bool scores)
{
    int t = 0;
    while (t < plan->n_steps &&
           (scores ? a->scores[i][t] == b->scores[i][t]
                   : memcmp(a->codes[i][t], b->codes[i][t], sizeof a->codes[i][t]) == 0)) {
        t++;
    }
    return t;
}

/* What there is to say of voices that are other ones: where the first scores of code 0, and the first code, differ.
 * */
static void tell(
    const struct plan *plan, int kind, bool alone, const struct speech *a, const struct speech *b)
{
    for (int i = 0; i < plan->n; i++) {
        const struct voice *v = &plan->of[i];
        const utter_sampling *s = &v->settings.talker, *p = &v->settings.predictor;
        const int scores = first_other(plan, a, b, i, true), t = first_other(plan, a, b, i, false);
        int j = 0;
        if (t == plan->n_steps && scores == plan->n_steps) {
            continue;
        }
        while (t < plan->n_steps && j + 1 < CODEBOOKS && a->codes[i][t][j] == b->codes[i][t][j]) {
            j++;
        }
        printf("     %s %d, voice %d of %d%s, %d rows, from step %d of %d: other scores from frame %d, "
               "codes from "
               "frame %d, code %d; %d and %d frames; temperature %g, top_k %d, top_p %g, penalty %g; "
               "%g, %d, %g\n",
            kinds[kind].kernels, (int)kinds[kind].weights, i, plan->n, alone ? " and alone" : "",
            v->n_rows, v->begin, plan->n_steps, scores, t, j, a->n_frames[i], b->n_frames[i],
            (double)s->temperature, s->top_k, (double)s->top_p, (double)s->repetition_penalty,
            (double)p->temperature, p->top_k, (double)p->top_p);
    }
}

/* ---- Rounds ---- */

struct tally {
    long n_frames, n_differing, n_failures, n_streams, n_ends;
    long n_beside_graphs, frames_beside_graphs, n_parted;
    long of_kind[N_KINDS];
};

/* The frame kernel has not given up. */
static bool holds(const struct backend *b, int kind)
{
    return strcmp(kinds[kind].kernels, "graph") == 0 || b->frame->kernel;
}

static int draw_kind(void)
{
    int kind = 0;
    for (int at = (int)below(SHARES); at >= kinds[kind].share; kind++) {
        at -= kinds[kind].share;
    }
    return kind;
}

static void take_round(struct run *runs, struct tally *tally)
{
    static struct speech first, second;
    struct plan plan;
    draw(&plan);
    const int kind = draw_kind();
    const bool beside = kinds == WITH_FRAME && kind == 0 && below(SHARED_BY_GRAPHS) == 0,
               alone = below(REPEATED_ALONE) == 0;
    if (!speak(&runs[kind], &plan, (int)below((uint32_t)most_lanes), &first) ||
        !(alone ? speak_alone(&runs[kind], &plan, &second)
                : speak(&runs[kind], &plan, (int)below((uint32_t)most_lanes), &second)) ||
        !holds(runs[kind].b, kind)) {
        tally->n_failures++;
        return;
    }
    long frames = 0;
    for (int i = 0; i < plan.n; i++) {
        frames += first.n_frames[i];
        tally->n_ends += first.n_frames[i] < plan.n_steps - plan.of[i].begin;
    }
    tally->n_frames += frames;
    tally->of_kind[kind] += frames;
    tally->n_streams += plan.n;
    tally->n_differing += differing(&plan, &first, &second);
    tell(&plan, kind, alone, &first, &second);
    if (beside && speak(&runs[1], &plan, 0, &second)) {
        tally->n_beside_graphs += plan.n;
        tally->frames_beside_graphs += frames;
        tally->n_parted += parted(&plan, &first, &second);
    }
}

/* Opens what takes a turn with weights of its own. */
static bool open_kind(const struct kind *kind, struct model **model, struct run *r)
{
    utter_error error;
    const struct backend_options o = {.n_lanes = most_lanes,
        .lane_positions = 256,
        .cpu_kernels = kind->kernels,
        .weights = kind->weights};
    utter_status status = model_open(model, folder, &error);
    if (!status && kind->weights == UTTER_WEIGHTS_Q8_PREDICTOR) {
        status = model_pack_predictor(*model, DTYPE_Q8, 0, &error);
    } else if (!status && kind->weights != UTTER_WEIGHTS_STORED) {
        status = model_pack(*model, kind->weights == UTTER_WEIGHTS_Q8 ? DTYPE_Q8 : DTYPE_Q4, 0, &error);
    }
    if (!said(status, &error, kind->name)) {
        return false;
    }
    *r = (struct run){&cuda_backend, NULL, (*model)->config};
    return said(cuda_backend.open(&r->b, *model, &o, &error), &error, "open");
}

static void check_model(long n_frames, double seconds)
{
    struct model *models[N_KINDS] = {0};
    struct run runs[N_KINDS] = {0};
    struct tally tally = {0};
    bool good = true;
    for (int i = 0; i < N_KINDS && good; i++) {
        good = open_kind(&kinds[i], &models[i], &runs[i]);
    }
    const double begin = clock_seconds();
    while (good && tally.n_frames < n_frames && clock_seconds() - begin < seconds &&
           tally.n_failures < 3) {
        take_round(runs, &tally);
    }
    result(good && tally.n_frames > 0 && tally.n_differing == 0 && tally.n_failures == 0,
        "%ld frames with random settings, each twice: %ld differ, %ld failures; %ld streams, %ld ended "
        "by themselves; %s %ld, %s %ld, %s %ld, %s %ld; %.0f s",
        tally.n_frames, tally.n_differing, tally.n_failures, tally.n_streams, tally.n_ends,
        kinds[0].name, tally.of_kind[0], kinds[1].name, tally.of_kind[1], kinds[2].name,
        tally.of_kind[2], kinds[3].name, tally.of_kind[3], clock_seconds() - begin);
    if (kinds == WITH_FRAME) {
        printf("     %ld of %ld streams of the frame kernel (%ld frames) part from the graphs\n",
            tally.n_parted, tally.n_beside_graphs, tally.frames_beside_graphs);
    }
    for (int i = 0; i < N_KINDS; i++) {
        cuda_backend.close(&runs[i].b);
        model_close(&models[i]);
    }
}

int main(int argc, char **argv)
{
    long n_frames = 2000;
    double seconds = 3600;
    state = 1;
    for (int i = 1; i < argc; i++) {
        const bool more = i + 1 < argc;
        if (strcmp(argv[i], "-w") == 0 && more) {
            kinds = strcmp(argv[++i], "graph") == 0 ? GRAPHS : WITH_FRAME;
        } else if (strcmp(argv[i], "-n") == 0 && more) {
            n_frames = atol(argv[++i]);
        } else if (strcmp(argv[i], "-f") == 0 && more) {
            most_steps = atoi(argv[++i]);
            most_steps = most_steps < 1 || most_steps > MOST_FRAMES ? MOST_FRAMES : most_steps;
        } else if (strcmp(argv[i], "-l") == 0 && more) {
            most_lanes = atoi(argv[++i]);
            most_lanes = most_lanes < 1 || most_lanes > MOST_LANES ? MOST_LANES : most_lanes;
        } else if (strcmp(argv[i], "-s") == 0 && more) {
            seconds = atof(argv[++i]);
        } else if (strcmp(argv[i], "-r") == 0 && more) {
            state = (uint64_t)atol(argv[++i]);
        } else {
            folder = argv[i];
            check_model(n_frames, seconds);
        }
    }
    printf("%d passed, %d failed\n", n_passed, n_failed);
    return n_failed > 0 || n_passed == 0;
}
