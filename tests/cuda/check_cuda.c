/* SPDX-License-Identifier: Apache-2.0
 * The GPU backend against the CPU backend, and its speed. A program of its own, not a unit test: it needs a GPU,
 * goes on after a failure, and says where the first difference is. Ends with `N passed, N failed`.
 * Usage: check_cuda [-n FRAMES] [-f FORCED FRAMES] [-b FRAMES BESIDE OTHERS] [-t LANES] [-T] CHECKPOINT ...
 * -t: times of 1, 8 .. LANES lanes too; -T: only those. */
#include <math.h>

#include "base/clock.h"
#include "tests/cuda/drive_backend.h"

enum { MAX_STAGES = 512 };

/* ---- Taps ---- */

struct stage {
    char name[40];
    float *data;
    int64_t n;
};

struct record {
    struct stage stages[MAX_STAGES];
    int n;
};

static void keep(void *user, const char *name, int index, const float *data, int64_t rows, int64_t cols)
{
    struct record *r = user;
    if (r->n == MAX_STAGES || strncmp(name, "vocoder", 7) == 0) {
        return;
    }
    struct stage *s = &r->stages[r->n++];
    snprintf(s->name, sizeof s->name, "%s %d", name, index);
    s->n = rows * cols;
    s->data = malloc((size_t)s->n * sizeof *s->data);
    memcpy(s->data, data, (size_t)s->n * sizeof *s->data);
}

static void forget(struct record *r)
{
    for (int i = 0; i < r->n; i++) {
        free(r->stages[i].data);
    }
    r->n = 0;
}

static int64_t largest(const float *x, int64_t n)
{
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++) {
        best = x[i] > x[best] ? i : best;
    }
    return best;
}

/* |a - b| / |b| over a stage, and where the largest difference is. */
static double distance(const struct stage *a, const struct stage *b, int64_t *where)
{
    double d = 0, n = 0, most = -1;
    for (int64_t i = 0; i < a->n; i++) {
        double e = (double)a->data[i] - (double)b->data[i];
        if (isnan(a->data[i]) && isnan(b->data[i])) {
            continue; /* of a checkpoint that has them */
        }
        d += e * e;
        n += (double)b->data[i] * (double)b->data[i];
        if (!(fabs(e) <= most)) {
            most = fabs(e);
            *where = i;
        }
    }
    return sqrt(d / (n > 0 ? n : 1));
}

/* Activations of both runs: the worst stage, the first one that is far off, and how many heads agree. */
static void compare_records(const struct record *gpu, const struct record *cpu, const char *what)
{
    double worst = 0;
    int at = -1, first_bad = -1, heads = 0, equal = 0;
    int64_t where = 0, where_bad = 0;
    for (int i = 0; i < cpu->n && i < gpu->n; i++) {
        const struct stage *a = &gpu->stages[i], *b = &cpu->stages[i];
        if (strcmp(a->name, b->name) != 0 || a->n != b->n) {
            result(false, "%s: stage %d is \"%s\" of %lld, on the CPU \"%s\" of %lld", what, i, a->name,
                (long long)a->n, b->name, (long long)b->n);
            return;
        }
        double d = distance(a, b, &where);
        if (!(d <= worst)) {
            worst = d;
            at = i;
        }
        if (!(d <= 1e-4) && first_bad < 0) {
            first_bad = i;
            where_bad = where;
        }
        if (strstr(b->name, "logits")) {
            heads++;
            equal += largest(a->data, a->n) == largest(b->data, b->n);
        }
    }
    result(first_bad < 0 && gpu->n == cpu->n,
        "%s: %d stages, worst %.2e in \"%s\"; %d of %d heads agree", what, cpu->n, worst,
        at >= 0 ? cpu->stages[at].name : "-", equal, heads);
    if (first_bad >= 0) {
        printf("     first far off: \"%s\" [%lld of %lld] gpu %g cpu %g\n", cpu->stages[first_bad].name,
            (long long)where_bad, (long long)cpu->stages[first_bad].n,
            (double)gpu->stages[first_bad].data[where_bad],
            (double)cpu->stages[first_bad].data[where_bad]);
    }
}

static void check_forced(struct run *gpu, struct run *cpu, int n_rows)
{
    static struct record a, b;
    int32_t forced[MAX_CODEBOOKS];
    char what[64];
    cpu->ops->tap(cpu->b, keep, &b);
    gpu->ops->tap(gpu->b, keep, &a);
    snprintf(what, sizeof what, "prompt of %d rows", n_rows);
    if (start(cpu, 0, 1, &GREEDY, n_rows) && start(gpu, 0, 1, &GREEDY, n_rows)) {
        compare_records(&a, &b, what);
    }
    for (int t = 0; t < 3; t++) {
        struct lane_out of_gpu, of_cpu;
        forget(&a);
        forget(&b);
        for (int j = 0; j < cpu->config->n_codebooks; j++) {
            forced[j] = (t * 31 + j * 17 + 3) % cpu->config->predictor_vocabulary;
        }
        bool both = one_frame(cpu, 0, text_of(cpu->config, 1, t), forced, &of_cpu) &&
                    one_frame(gpu, 0, text_of(cpu->config, 1, t), forced, &of_gpu);
        snprintf(what, sizeof what, "frame %d, forced", t);
        if (both) {
            compare_records(&a, &b, what);
        }
    }
    forget(&a);
    forget(&b);
    cpu->ops->tap(cpu->b, NULL, NULL);
    gpu->ops->tap(gpu->b, NULL, NULL);
}

/* ---- Codes ---- */

static void check_free(
    struct run *gpu, struct run *cpu, const char *what, const struct lane_settings *s, int n)
{
    int same = 0, t = 0;
    double signal = 0, noise = 0;
    if (!start(cpu, 0, 2, s, N_ROWS - 5) || !start(gpu, 0, 2, s, N_ROWS - 5)) {
        return;
    }
    for (; t < n; t++) {
        struct lane_out a, b;
        bool go_gpu = one_frame(gpu, 0, text_of(cpu->config, 2, t), NULL, &a);
        bool go_cpu = one_frame(cpu, 0, text_of(cpu->config, 2, t), NULL, &b);
        if (go_gpu != go_cpu) {
            printf("     frame %d: the end on the GPU %d, on the CPU %d\n", t, !go_gpu, !go_cpu);
            break;
        }
        if (!go_gpu) {
            same = n;
            break;
        }
        int j = 0;
        while (j < cpu->config->n_codebooks && a.codes[j] == b.codes[j]) {
            j++;
        }
        if (j < cpu->config->n_codebooks) {
            printf("     frame %d, codebook %d: %d, on the CPU %d\n", t, j, a.codes[j], b.codes[j]);
            break;
        }
        same++;
        for (size_t i = 0; i < b.n_samples && a.n_samples == b.n_samples; i++) {
            signal += (double)b.pcm[i] * (double)b.pcm[i];
            noise += ((double)a.pcm[i] - (double)b.pcm[i]) * ((double)a.pcm[i] - (double)b.pcm[i]);
        }
    }
    result(same == n, "%s: %d of %d frames have the CPU's codes; sound %.1f dB over the difference",
        what, same, n, 10 * log10(signal / (noise > 0 ? noise : 1e-30)));
}

/* The GPU goes on with the CPU's codes, frame by frame: how many of its own choices are the same. */
static void check_heads(struct run *gpu, struct run *cpu, int n_frames)
{
    int32_t going[MAX_CODEBOOKS];
    int n = cpu->config->n_codebooks, heads = 0, equal = 0;
    const struct lane_settings endless = {GREEDY.talker, GREEDY.predictor, 7, 1 << 20};
    if (!start(cpu, 0, 3, &endless, N_ROWS) || !start(gpu, 0, 3, &endless, N_ROWS)) {
        return;
    }
    for (int t = 0; t < n_frames; t++) {
        struct lane_out a, b;
        int32_t text = text_of(cpu->config, 3, t);
        if (!one_frame_of(cpu, 0, text, NULL, false, &b)) {
            break;
        }
        memcpy(going, b.codes, (size_t)n * sizeof *going);
        if (!one_frame_of(gpu, 0, text, going, false, &a)) {
            break;
        }
        for (int j = 0; j < n; j++) {
            equal += a.codes[j] == going[j];
        }
        heads += n;
    }
    result(heads > 0 && equal >= 0.999 * heads, "teacher-forced: %d of %d heads choose as the CPU",
        equal, heads);
}

static int n_beside = N_FRAMES; /* frames of lanes next to others */

struct speech {
    int32_t codes[N_FRAMES][MAX_CODEBOOKS];
    float pcm[N_FRAMES * 1920];
};

/* n lanes at once, lane i with prompt kind[i], beginning i frames later than lane 0. */
static bool speak(struct run *r, const int *lanes, const int *kinds, int n, struct speech *out)
{
    const struct lane_settings s = {{0.9f, 20, 0.95f, 1.05f}, {0.9f, 20, 1, 1}, 5, N_FRAMES};
    memset(out, 0, (size_t)n * sizeof *out);
    for (int t = 0; t < n_beside + n; t++) {
        struct frame_in in[N_LANES];
        int who[N_LANES], some[N_LANES], m = 0;
        utter_error error;
        for (int i = 0; i < n; i++) {
            if (t == i && !start(r, lanes[i], kinds[i], &s, N_ROWS - kinds[i] * 3)) {
                return false;
            }
            if (t >= i && t - i < n_beside) {
                in[m] = (struct frame_in){lanes[i], text_of(r->config, kinds[i], t - i), NULL};
                some[m] = lanes[i];
                who[m++] = i;
            }
        }
        if (!said(r->ops->frame(r->b, in, m, &error), &error, "frame") ||
            !said(r->ops->vocode(r->b, some, m, &error), &error, "vocode")) {
            return false;
        }
        for (int k = 0; k < m; k++) {
            struct lane_out o;
            struct speech *to = &out[who[k]];
            if (!said(r->ops->collect(r->b, some[k], &o, &error), &error, "collect")) {
                return false;
            }
            memcpy(to->codes[t - who[k]], o.codes, (size_t)r->config->n_codebooks * sizeof(int32_t));
            if (o.pcm && o.n_samples <= 1920) {
                memcpy(to->pcm + (t - who[k]) * 1920, o.pcm, o.n_samples * sizeof(float));
            }
        }
    }
    return true;
}

static void check_lanes(struct run *gpu)
{
    static struct speech together[N_LANES], alone[N_LANES];
    static const int lanes[N_LANES] = {3, 0, 4, 1, 2}, kinds[N_LANES] = {1, 2, 3, 4, 5};
    if (!speak(gpu, lanes, kinds, N_LANES, together)) {
        return;
    }
    for (int i = 0; i < N_LANES; i++) {
        int lane = (lanes[i] + 1) % N_LANES;
        if (!speak(gpu, &lane, &kinds[i], 1, &alone[i])) {
            return;
        }
        bool codes = memcmp(together[i].codes, alone[i].codes, sizeof alone[i].codes) == 0;
        bool pcm = memcmp(together[i].pcm, alone[i].pcm, sizeof alone[i].pcm) == 0;
        result(codes && pcm, "lane %d next to %d others: codes %s, samples %s", i, N_LANES - 1,
            codes ? "as alone" : "differ", pcm ? "as alone" : "differ");
    }
}

/* ---- Speed ---- */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x, int n, double at)
{
    qsort(x, (size_t)n, sizeof *x, by_size);
    return x[(int)(at * (n - 1) + 0.5)];
}

/* Prompts of 30 rows (a text of 13 words) into all lanes, each twice so that nothing is cold: seconds of the last
 * one, and from prompt to the first frame's samples on lane 0. */
static void time_starts(struct run *r, int n_lanes, double *prefill, double *first)
{
    struct lane_settings s = {{0.9f, 50, 1, 1.05f}, {0.9f, 50, 1, 1}, 5, 1 << 20};
    utter_error error;
    struct lane_out out;
    double t0 = 0;
    for (int i = 0; i < 2 * n_lanes; i++) {
        s.seed = (uint64_t)i;
        t0 = clock_seconds();
        if (!start(r, i % n_lanes, i % 7, &s, 30)) {
            return;
        }
        r->ops->collect(r->b, i % n_lanes, &out, &error);
        *prefill = clock_seconds() - t0;
    }
    for (int twice = 0; twice < 2; twice++) {
        t0 = clock_seconds();
        if (start(r, 0, 1, &s, 30) && one_frame(r, 0, 0, NULL, &out)) {
            *first = clock_seconds() - t0;
        }
    }
}

enum { TIMED = 400 };
struct times {
    double whole[TIMED], talker[TIMED], predictor[TIMED], vocoder[TIMED];
};

static bool time_frame(
    struct run *r, const int *lanes, const struct frame_in *in, int n, struct times *times, int t)
{
    utter_error error;
    struct lane_out out = {0};
    double t0 = clock_seconds();
    if (!said(r->ops->frame(r->b, in, n, &error), &error, "frame") ||
        !said(r->ops->vocode(r->b, lanes, n, &error), &error, "vocode")) {
        return false;
    }
    for (int i = 0; i < n; i++) {
        if (!said(r->ops->collect(r->b, i, &out, &error), &error, "collect")) {
            return false;
        }
    }
    times->whole[t] = clock_seconds() - t0;
    times->talker[t] = out.talker_s;
    times->predictor[t] = out.predictor_s;
    times->vocoder[t] = out.vocoder_s;
    return true;
}

/* Frames of n lanes, one after the other. */
static void time_frames(const struct model *model, int n_lanes, int n_frames)
{
    static struct times times;
    struct run r;
    int lanes[64], n = 0;
    struct frame_in in[64];
    double began = clock_seconds(), prefill = 0, first = 0;
    if (!open_run(&r, &cuda_backend, model, n_lanes)) {
        return;
    }
    double opened = clock_seconds() - began;
    for (int i = 0; i < n_lanes; i++) {
        lanes[i] = i;
        in[i] = (struct frame_in){i, r.config->tts_pad, NULL};
    }
    time_starts(&r, n_lanes, &prefill, &first);
    while (n < n_frames && time_frame(&r, lanes, in, n_lanes, &times, n)) {
        n++;
    }
    double frame = n > 0 ? median(times.whole, n, 0.5) : 0,
           slow = n > 0 ? median(times.whole, n, 0.95) : 0;
    printf("time %s, %d lanes: open %.2f s, prefill of 30 %.2f ms, first sound %.2f ms; frame %.3f ms "
           "(p95 %.3f): "
           "talker %.3f predictor %.3f vocoder %.3f; %.0f x real time\n",
        strrchr(folder, '/') ? strrchr(folder, '/') + 1 : folder, n_lanes, opened, 1e3 * prefill,
        1e3 * first, 1e3 * frame, 1e3 * slow, 1e3 * median(times.talker, n, 0.5),
        1e3 * median(times.predictor, n, 0.5), 1e3 * median(times.vocoder, n, 0.5),
        frame > 0 ? 0.08 * n_lanes / frame : 0);
    fflush(stdout);
    r.ops->close(&r.b);
}

static void check_model(bool checks, int timed_lanes, int n_frames, int n_forced)
{
    utter_error error;
    struct model *model;
    struct run gpu = {0}, cpu = {0};
    static const struct lane_settings sampled = {{0.9f, 50, 1, 1.05f}, {0.9f, 50, 1, 1}, 11, 2},
                                      narrow = {{0.7f, 0, 0.8f, 1.3f}, {1.3f, 7, 0.9f, 1}, 12, 2};
    if (!said(model_open(&model, folder, &error), &error, "open")) {
        return;
    }
    if (checks && open_run(&gpu, &cuda_backend, model, N_LANES) &&
        open_run(&cpu, &cpu_backend, model, 1)) {
        check_forced(&gpu, &cpu, 9);
        check_forced(&gpu, &cpu, N_ROWS);
        check_forced(&gpu, &cpu, LONG_ROWS);
        check_heads(&gpu, &cpu, n_forced);
        check_free(&gpu, &cpu, "greedy", &GREEDY, n_frames);
        check_free(&gpu, &cpu, "sampled", &sampled, n_frames);
        check_free(&gpu, &cpu, "top-p", &narrow, n_frames);
        check_lanes(&gpu);
    }
    if (gpu.b) {
        gpu.ops->close(&gpu.b);
    }
    if (cpu.b) {
        cpu.ops->close(&cpu.b);
    }
    for (int n = 1; n <= timed_lanes; n *= 8) {
        time_frames(model, n, n == 1 ? 200 : 40);
    }
    model_close(&model);
}

int main(int argc, char **argv)
{
    bool checks = true;
    int n_frames = 24, n_forced = 24, timed_lanes = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-t") == 0 && i + 1 < argc) {
            timed_lanes = atoi(argv[++i]);
        } else if (strcmp(argv[i], "-T") == 0) {
            checks = false;
        } else if (strcmp(argv[i], "-f") == 0 && i + 1 < argc) {
            n_forced = atoi(argv[++i]);
        } else if (strcmp(argv[i], "-n") == 0 && i + 1 < argc) {
            n_frames = atoi(argv[++i]);
        } else if (strcmp(argv[i], "-b") == 0 && i + 1 < argc) {
            n_beside = atoi(argv[++i]) < N_FRAMES ? atoi(argv[i]) : N_FRAMES;
        } else {
            folder = argv[i];
            check_model(checks, timed_lanes, n_frames, n_forced);
        }
    }
    printf("%d passed, %d failed\n", n_passed, n_failed);
    return n_failed > 0 || n_passed + timed_lanes == 0;
}
