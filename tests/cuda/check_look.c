/* SPDX-License-Identifier: Apache-2.0
 * Watched heads on the GPU: their scores are the CPU's, planted ones look where they were planted, times of words are
 * the CPU's; and codes, samples and the number of launches are the same as when nobody watches. Lanes have prompts of
 * their own, look at rows of their own, some at none, and some begin a frame later. Checkpoints of the craft `follows`.
 * Needs a GPU; goes on after a failure. Usage: check_look [-w KERNELS] [-l LANES] [-n FRAMES] [-r ROWS] [-q] [-t] [-T]
 * CHECKPOINT ...; -w: graph or frame; -n: 0: none; -r: of the longest prompt; -q: not with all heads watched; -t: times
 * of words, too; -T: only how long frames take, of any checkpoint. Ends with `N passed, N failed`. */
#include <math.h>
#include <unistd.h>

#include "base/memory.h"
#include "cuda/door/backend_parts.h"
#include "cuda/graph/frame_parts.h"
#include "engine/engine.h"
#include "tests/cuda/drive_backend.h"

enum {
    LAG = 6, /* tools/maker: FOLLOWS_LAG */
    MOST_LANES = 64,
    MOST_FRAMES = 16,
    MOST_ROWS = 320,
    N_PLANTED = 2, /* the first of those that are watched */
    FIRST = 2,     /* row that is looked at, or a few behind it */
};

static struct model *model;
static const char *kernels, *list; /* list: of launches, which only a posed GPU writes */
static int n_lanes = 5, n_frames = 4, most_rows = 40;
static bool quick; /* not with all heads */

/* ---- Lanes ---- */

static int rows_of(int lane)
{
    return lane == n_lanes - 1 ? most_rows : 20 - lane % 5 + lane % 2 * 4;
}

static int begin_of(int lane)
{
    return FIRST + lane % 5;
}

static int end_of(int lane)
{
    return lane % 4 == 3   ? begin_of(lane)
           : lane % 3 == 1 ? rows_of(lane) - 2
                           : rows_of(lane) + n_frames;
}

static int first_frame_of(int lane)
{
    return lane % 3 == 2;
}

/* What lanes have said, and what their heads scored: scores[lane][frame], NULL where none were told. */
struct said {
    int32_t codes[MOST_LANES][MOST_FRAMES][MAX_CODEBOOKS];
    float *pcm[MOST_LANES][MOST_FRAMES], *scores[MOST_LANES][MOST_FRAMES];
    int n_scores[MOST_LANES][MOST_FRAMES];
    long n_launches;
};

static void forget(struct said *s)
{
    for (int i = 0; i < MOST_LANES * MOST_FRAMES; i++) {
        free(s->pcm[i / MOST_FRAMES][i % MOST_FRAMES]);
        free(s->scores[i / MOST_FRAMES][i % MOST_FRAMES]);
    }
    memset(s, 0, sizeof *s);
}

static float *copy(const float *from, size_t n)
{
    float *to = from ? malloc((n + 1) * sizeof *to) : NULL;
    return to ? memcpy(to, from, n * sizeof *to) : NULL;
}

static long count_launches(void)
{
    FILE *file = list ? fopen(list, "r") : NULL;
    long n = 0;
    for (int c; file && (c = getc(file)) != EOF;) {
        n += c == '\n';
    }
    if (file) {
        fclose(file);
    }
    return n;
}

static bool begin(struct run *r, int lane)
{
    static const struct lane_settings settings = {{0.9f, 50, 1, 1.05f}, {0.9f, 50, 1, 1}, 21, 1 << 20};
    utter_error error;
    struct lane_settings own = settings;
    struct row rows[MOST_ROWS];
    for (int i = 0; i < rows_of(lane); i++) {
        rows[i] = (struct row){.text = (lane * 5 + i * 3) % 200, .codec = ROW_NONE};
    }
    own.seed += (uint64_t)lane;
    return said(r->ops->lane_reset(r->b, lane, &own, &error), &error, "reset") &&
           (end_of(lane) == begin_of(lane) ||
               said(r->ops->look(r->b, lane, begin_of(lane), end_of(lane), &error), &error, "look")) &&
           said(r->ops->prefill(r->b, lane, rows, rows_of(lane), &error), &error, "prefill");
}

static bool keep(struct run *r, int lane, int t, int n_heads, struct said *to)
{
    utter_error error;
    struct lane_out out;
    if (!said(r->ops->collect(r->b, lane, &out, &error), &error, "collect") || !out.codes || !out.pcm) {
        return false;
    }
    memcpy(to->codes[lane][t], out.codes, (size_t)r->config->n_codebooks * sizeof(int32_t));
    to->pcm[lane][t] = copy(out.pcm, out.n_samples);
    to->scores[lane][t] = copy(out.scores, (size_t)n_heads * (size_t)out.n_scores);
    to->n_scores[lane][t] = out.n_scores;
    return true;
}

/* All lanes with n_heads heads watched; led: along these codes. */
static bool speak(struct run *r, const struct talker_head *heads, int n_heads, const struct said *led,
    struct said *to)
{
    utter_error error;
    bool good = said(r->ops->watch(r->b, heads, n_heads, &error), &error, "watch");
    const long before = count_launches();
    for (int lane = 0; lane < n_lanes && good; lane++) {
        good = begin(r, lane);
    }
    for (int step = 0; step < n_frames + 1 && good; step++) {
        struct frame_in in[MOST_LANES];
        int lanes[MOST_LANES], n = 0;
        for (int lane = 0; lane < n_lanes; lane++) {
            const int t = step - first_frame_of(lane);
            if (t >= 0 && t < n_frames) {
                lanes[n] = lane;
                in[n++] = (struct frame_in){lane, 7 + t, led ? led->codes[lane][t] : NULL};
            }
        }
        good = n == 0 || (said(r->ops->frame(r->b, in, n, &error), &error, "frame") &&
                             said(r->ops->vocode(r->b, lanes, n, &error), &error, "vocode"));
        for (int i = 0; i < n && good; i++) {
            good = keep(r, lanes[i], step - first_frame_of(lanes[i]), n_heads, to);
        }
    }
    to->n_launches = count_launches() - before;
    return good;
}

/* ---- Scores ---- */

struct compared {
    int n_heads, n_planted; /* the first of them */
    int n_seen;
    double worst;
};

/* True when a lane's scores in a frame are the CPU's, and those of planted heads are largest where they should be. */
static bool compare_scores(
    const struct said *gpu, const struct said *cpu, int lane, int t, struct compared *c)
{
    const float *got = gpu->scores[lane][t], *wanted = cpu->scores[lane][t];
    const int n = gpu->n_scores[lane][t], position = rows_of(lane) - 1 + t;
    if (t == 0 || end_of(lane) == begin_of(lane)) {
        return !got && n == 0;
    }
    bool good = got && wanted && n == cpu->n_scores[lane][t] && n > 0;
    for (int i = 0; good && i < c->n_heads * n; i++) {
        const double off = fabs((double)got[i] - (double)wanted[i]) / (1 + fabs((double)wanted[i]));
        c->worst = off > c->worst ? off : c->worst;
        good = off < 2e-3;
        c->n_seen++;
    }
    for (int h = 0; good && h < c->n_planted && position - LAG < end_of(lane); h++) {
        int best = 0;
        for (int i = 1; i < n; i++) {
            best = got[h * n + i] > got[h * n + best] ? i : best;
        }
        good = best + begin_of(lane) == position - LAG;
    }
    return good;
}

static void check_scores(
    const struct said *gpu, const struct said *cpu, const char *what, int n_heads, int n_planted)
{
    struct compared c = {n_heads, n_planted, 0, 0};
    int bad = 0, first = -1;
    for (int i = 0; i < n_lanes * n_frames; i++) {
        if (!compare_scores(gpu, cpu, i / n_frames, i % n_frames, &c)) {
            first = bad++ == 0 ? i : first;
        }
    }
    result(bad == 0 && c.n_seen > 0,
        "%d lanes, %d heads%s: %d scores, at most %.1e from the CPU's; %d of %d frames bad, the first "
        "of lane %d",
        n_lanes, n_heads, what, c.n_seen, c.worst, bad, n_lanes * n_frames,
        first < 0 ? -1 : first / n_frames);
}

static void check_same(const struct said *watched, const struct said * not )
{
    int bad = 0;
    for (int i = 0; i < n_lanes * n_frames; i++) {
        const int lane = i / n_frames, t = i % n_frames;
        const size_t codes = (size_t)model->config->n_codebooks * sizeof(int32_t),
                     samples = (size_t)model->config->codec.frame_samples * sizeof(float);
        bad += memcmp(watched->codes[lane][t], not ->codes[lane][t], codes) != 0 ||
               memcmp(watched->pcm[lane][t], not ->pcm[lane][t], samples) != 0 || not ->scores[lane][t];
    }
    result(bad == 0 && watched->n_launches == not ->n_launches,
        "%d lanes: codes and samples without watching: %d of %d differ; %ld launches, %ld without",
        n_lanes, bad, n_lanes * n_frames, watched->n_launches, not ->n_launches);
}

/* Frames with these heads watched, on both, along the GPU's codes. */
static bool speak_both(struct run *gpu, struct run *cpu, const struct talker_head *heads, int n_heads,
    struct said *on_gpu, struct said *on_cpu)
{
    return speak(gpu, heads, n_heads, NULL, on_gpu) && speak(cpu, heads, n_heads, on_gpu, on_cpu);
}

static void list_heads(struct talker_head *heads)
{
    const struct stack_config *t = &model->config->talker;
    for (int i = 0; i < t->n_layers * t->n_heads; i++) {
        heads[i] = (struct talker_head){i / t->n_heads, i % t->n_heads};
    }
}

/* All heads, as they are when a model's are learnt. */
static void check_all_heads(struct run *gpu, struct run *cpu)
{
    static struct said on_gpu, on_cpu;
    const struct stack_config *t = &model->config->talker;
    const int n = t->n_layers * t->n_heads;
    struct talker_head *heads = calloc((size_t)n, sizeof *heads);
    list_heads(heads);
    if (speak_both(gpu, cpu, heads, n, &on_gpu, &on_cpu)) {
        check_scores(&on_gpu, &on_cpu, ", all there are", n, 0);
    }
    free(heads);
    forget(&on_gpu);
    forget(&on_cpu);
}

static void check_heads(struct run *gpu, struct run *cpu)
{
    static struct said unwatched, on_gpu, on_cpu;
    const int last = model->config->talker.n_layers - 1, n_heads = model->config->talker.n_heads;
    const struct talker_head heads[] = {{0, 1}, {last, n_heads - 1}, {last, 0}, {last / 2, 2}, {0, 0}};
    const int n = sizeof heads / sizeof *heads;
    if (speak(gpu, NULL, 0, NULL, &unwatched) && speak_both(gpu, cpu, heads, n, &on_gpu, &on_cpu)) {
        check_same(&on_gpu, &unwatched);
        check_scores(&on_gpu, &on_cpu, "", n, N_PLANTED);
    }
    forget(&unwatched);
    forget(&on_gpu);
    forget(&on_cpu);
}

static void check_lanes(void)
{
    struct run gpu = {&cuda_backend, NULL, model->config}, cpu = {&cpu_backend, NULL, model->config};
    struct backend_options o = {
        .n_lanes = n_lanes, .lane_positions = MOST_ROWS + MOST_FRAMES, .cpu_kernels = kernels};
    utter_error error;
    if (said(cuda_backend.open(&gpu.b, model, &o, &error), &error, "open")) {
        o.cpu_kernels = NULL;
        if (said(cpu_backend.open(&cpu.b, model, &o, &error), &error, "open")) {
            check_heads(&gpu, &cpu);
            if (!quick) {
                check_all_heads(&gpu, &cpu);
            }
            cpu_backend.close(&cpu.b);
        }
        const bool kernel = gpu.b->frame->kernel != NULL;
        result(!kernels || kernel == (strcmp(kernels, "frame") == 0), "made by %s",
            kernel ? "the frame kernel" : "graphs");
        cuda_backend.close(&gpu.b);
    }
}

/* ---- What it costs ---- */

/* Milliseconds of a frame without its sound while these heads are watched, by the first n_look lanes; 0: a failure. */
static double time_frames(struct run *r, const struct talker_head *heads, int n_heads, int n_look)
{
    enum { WARM = 20, TIMED = 200, ROWS = 100 };
    static const struct lane_settings settings = {{0.9f, 50, 1, 1.05f}, {0.9f, 50, 1, 1}, 21, 1 << 20};
    struct row rows[ROWS];
    struct frame_in in[MOST_LANES];
    utter_error error;
    double sum = 0;
    bool good = said(r->ops->watch(r->b, heads, n_heads, &error), &error, "watch");
    make_rows(r->config, 1, rows, ROWS);
    for (int i = 0; i < n_lanes && good; i++) {
        in[i] = (struct frame_in){i, r->config->tts_pad, NULL};
        good = said(r->ops->lane_reset(r->b, i, &settings, &error), &error, "reset") &&
               (i >= n_look || said(r->ops->look(r->b, i, 8, ROWS, &error), &error, "look")) &&
               said(r->ops->prefill(r->b, i, rows, ROWS, &error), &error, "prefill");
    }
    for (int t = 0; t < WARM + TIMED && good; t++) {
        struct lane_out out = {0};
        good = said(r->ops->frame(r->b, in, n_lanes, &error), &error, "frame");
        for (int i = 0; i < n_lanes && good; i++) {
            good = said(r->ops->collect(r->b, i, &out, &error), &error, "collect");
        }
        sum += t < WARM ? 0 : out.talker_s + out.predictor_s;
    }
    return good ? 1e3 * sum / TIMED : 0;
}

/* By turns, since no two runs are alike. */
static void time_watching(void)
{
    const struct stack_config *s = &model->config->talker;
    const int n_all = s->n_layers * s->n_heads, middle = s->n_layers / 2;
    struct talker_head *all = calloc((size_t)n_all, sizeof *all);
    const struct talker_head few[] = {
        {middle, 0}, {middle, 5}, {middle + 1 < s->n_layers ? middle + 1 : 0, 3}};
    struct run r = {&cuda_backend, NULL, model->config};
    struct backend_options o = {.n_lanes = n_lanes, .lane_positions = 512, .cpu_kernels = kernels};
    utter_error error;
    list_heads(all);
    if (said(cuda_backend.open(&r.b, model, &o, &error), &error, "open")) {
        for (int turn = 0; turn < 4; turn++) {
            const double without = time_frames(&r, NULL, 0, 0), with = time_frames(&r, few, 3, n_lanes),
                         nobody = time_frames(&r, few, 3, 0), learning = time_frames(&r, all, n_all, 1);
            printf("%s, %d lanes: %.4f ms a frame, 3 heads %.4f (%.4f), nobody looks %.4f, all heads "
                   "of one "
                   "lane %.4f (%.4f)\n",
                r.b->frame->kernel ? "frame" : "graph", n_lanes, without, with, with / without, nobody,
                learning, learning / without);
        }
        cuda_backend.close(&r.b);
    }
    free(all);
}

/* ---- Times ---- */

enum { N_TEXTS = 2, MOST_WORDS = 64, MOST_SPOKEN = 12 };

/* Words of some texts that are spoken side by side. */
struct times {
    utter_word words[N_TEXTS][MOST_WORDS];
    size_t n[N_TEXTS];
    bool approximate;
};

static bool tell(struct engine *engine, utter_layout layout, int max_frames, struct times *times)
{
    static const char *const texts[N_TEXTS] = {
        "One two three four five six seven eight nine ten.", "Every word is heard once."};
    const struct config *c = engine->context.model->config;
    static float pcm[1 << 15];
    utter_voice *voice;
    utter_stream *streams[N_TEXTS] = {NULL};
    utter_error error;
    bool good = said(voice_new_preset(&voice, c, c->voices[0].name, &error), &error, "voice");
    for (int i = 0; i < N_TEXTS && good; i++) {
        utter_stream_options o = {.voice = voice,
            .layout = layout,
            .seed = 3,
            .max_frames = max_frames,
            .talker = c->talker_sampling,
            .predictor = c->predictor_sampling,
            .words = true};
        good = said(engine_open_stream(&streams[i], engine, &o, &error), &error, "stream") &&
               said(stream_text(streams[i], texts[i], strlen(texts[i]), &error), &error, "text") &&
               said(stream_finish(streams[i], &error), &error, "text");
    }
    for (utter_status step = UTTER_OK;
         step == UTTER_OK && good;) { /* until nobody has a frame to make */
        step = engine_step(engine, false, &error);
        good = step >= 0 || said(step, &error, "step");
        for (int i = 0; i < N_TEXTS; i++) {
            stream_drain(streams[i], pcm, sizeof pcm / sizeof *pcm);
        }
    }
    for (int i = 0; i < N_TEXTS && good; i++) {
        const utter_word *words = stream_words(streams[i], &times->n[i]);
        times->approximate = words_approximate(streams[i]->words);
        times->n[i] = times->n[i] < MOST_WORDS ? times->n[i] : MOST_WORDS;
        memcpy(times->words[i], words, times->n[i] * sizeof *words);
    }
    for (int i = 0; i < N_TEXTS; i++) {
        if (streams[i]) {
            engine_free_stream(&streams[i]);
        }
    }
    voice_free(&voice);
    return good;
}

static bool time_words(
    const struct backend_ops *ops, const char *heads, utter_layout layout, struct times *times)
{
    static struct engine engine;
    utter_error error;
    struct engine_options o = {.ops = ops, .heads = heads};
    o.backend.n_lanes = N_TEXTS;
    o.backend.cpu_kernels = ops == &cuda_backend ? kernels : NULL;
    bool good = said(engine_open(&engine, folder, &o, &error), &error, "open") &&
                tell(&engine, layout, MOST_SPOKEN, times);
    engine_close(&engine);
    return good;
}

static bool near(uint64_t a, uint64_t b, uint64_t most)
{
    return a > b ? a - b <= most : b - a <= most;
}

/* To the sample; but of its first frame the GPU tells no scores, so that words that begin beside it may move by one. */
static bool same_word(const utter_word *a, const utter_word *b)
{
    const uint64_t frame = (uint64_t)model->config->codec.frame_samples;
    const uint64_t most = b->start < 3 * frame ? frame : 0;
    return a->at == b->at && a->bytes == b->bytes && near(a->start, b->start, most) &&
           near(a->end, b->end, most);
}

/* The planted heads are the model's: each word begins on both when it begins on the other. */
static void check_times(void)
{
    static const char *const names[] = {"stream", "full"};
    static struct times gpu, cpu;
    char path[] = "/tmp/check_look_heads_XXXXXX";
    const int file = mkstemp(path);
    struct heads heads = {.n = N_PLANTED};
    utter_error error;
    heads.at[0] = (struct talker_head){0, 1};
    heads.at[1] =
        (struct talker_head){model->config->talker.n_layers - 1, model->config->talker.n_heads - 1};
    if (file < 0 || !said(heads_write(&heads, path, &error), &error, "heads")) {
        return;
    }
    for (int layout = 0; layout < 2; layout++) {
        const utter_layout of = layout ? UTTER_LAYOUT_FULL : UTTER_LAYOUT_STREAM;
        if (!time_words(&cuda_backend, path, of, &gpu) || !time_words(&cpu_backend, path, of, &cpu)) {
            break;
        }
        int n = 0, same = 0;
        for (int i = 0; i < N_TEXTS; i++) {
            for (size_t k = 0; k < cpu.n[i] && k < gpu.n[i]; k++, n++) {
                same += same_word(&gpu.words[i][k], &cpu.words[i][k]);
            }
        }
        result(n > 0 && same == n && !gpu.approximate,
            "%s layout: %d of %d words with the CPU's times%s", names[layout], same, n,
            gpu.approximate ? ", approximate" : "");
    }
    close(file);
    remove(path);
}

int main(int argc, char **argv)
{
    bool times = false, only_cost = false;
    char launches[] = "/tmp/check_look_launches_XXXXXX";
    const int file = mkstemp(launches);
    if (file >= 0 && setenv("HOST_LAUNCHES", launches, 1) == 0) {
        list = launches;
    }
    for (int option; (option = getopt(argc, argv, "w:l:n:r:qtT")) != -1;) {
        const int n = optarg ? atoi(optarg) : 0;
        switch (option) {
        case 'w':
            kernels = optarg;
            break;
        case 'l':
            n_lanes = n;
            break;
        case 'n':
            n_frames = n;
            break;
        case 'r':
            most_rows = n;
            break;
        case 'q':
            quick = true;
            break;
        case 't':
            times = true;
            break;
        case 'T':
            only_cost = true;
            break;
        default:
            return 2;
        }
    }
    for (int i = optind; i < argc; i++) {
        utter_error error;
        folder = argv[i];
        if (said(model_open(&model, folder, &error), &error, "open")) {
            if (n_frames > 0) {
                only_cost ? time_watching() : check_lanes();
            }
            if (times && !only_cost) {
                check_times();
            }
            model_close(&model);
        }
    }
    close(file);
    remove(launches);
    printf("%d passed, %d failed\n", n_passed, n_failed);
    return n_failed > 0;
}
