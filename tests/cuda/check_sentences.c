/* SPDX-License-Identifier: Apache-2.0
 * A trained model says sentences on the GPU, led along the codes that the CPU has said with the same weights, packed as
 * the program packs them: each choice of a code has the same past on both. Where vectors are rounded, one number that
 * falls to the other side moves all behind it, and so the CPU's own sets of kernels part now and then, in 4 bits often
 * (docs/log/packed-weights.md): the GPU may part so often too, and no more. Needs a GPU; goes on after a failure.
 * Usage: check_sentences [-q BITS] [-l LANES] [-n FRAMES] [-w KERNELS] CHECKPOINT ...; -q: of weights, 8 or 4; -l:
 * lanes that speak together, each a sentence with a seed of its own; -n: frames of each at most. The checkpoint has
 * named voices. Ends with `N passed, N failed`. */
#include <math.h>
#include <unistd.h>

#include "base/minmax.h"
#include "cuda/door/backend_parts.h"
#include "engine/engine.h"
#include "tests/cuda/drive_backend.h"

enum { MOST_LANES = 64, MOST_FRAMES = 200 };

/* Of many choices. Plain C and AVX2 part from AVX-512 VNNI in 0.05 % of 17,104 in 8 bits, in 1.4 % of 17,176 in 4: the
 * GPU may in twice as many. Of few choices chance makes more: one of the 480 of a lane is another in every fifth
 * run, and 0.1 % would allow none. So many standard deviations of their number, and one choice, are no fault. */
static const double APART = 1e-3, APART_IN_4_BITS = 0.03, SCATTER = 4;

static const char *const SENTENCES[] = {"Good morning, and welcome back.",
    "The next train leaves at seven from platform four.", "Please close the window before it rains.",
    "She has never seen the sea.", "Turn left at the second light, then keep straight on.",
    "Nobody knew where the old road went.", "Two cups of tea, please.",
    "The letter came on a cold day in March.", "What would you do with an hour to spare?",
    "Bread, butter, salt and a little patience."};
enum { N_SENTENCES = sizeof SENTENCES / sizeof *SENTENCES };

static const char *kernels;
static utter_weights weights = UTTER_WEIGHTS_STORED;
static int n_lanes = 1, n_frames = 20;

/* What the lanes have said. */
struct said {
    int32_t codes[MOST_LANES][MOST_FRAMES][MAX_CODEBOOKS]; /* as chosen */
    int n[MOST_LANES];                                     /* frames */
    int n_codebooks;
};

static bool open_engine(struct engine *engine, const struct backend_ops *ops, const char *which)
{
    utter_error error;
    struct engine_options options = {.ops = ops,
        .backend = {
            .n_lanes = n_lanes, .lane_positions = 1024, .cpu_kernels = which, .weights = weights}};
    return said(engine_open(engine, folder, &options, &error), &error, "engine");
}

/* The prompt of lane i, whose voices take turns. */
static struct prompt *open_prompt(const struct stream_context *m, int i)
{
    const struct config *c = m->model->config;
    const char *text = SENTENCES[i % N_SENTENCES];
    utter_error error;
    utter_voice *voice = NULL;
    struct prompt *prompt = NULL;
    if (said(voice_new_preset(&voice, c, c->voices[i % c->n_voices].name, &error), &error, "voice")) {
        struct prompt_request request = {.voice = voice,
            .language = "english",
            .layout = i / 2 % 2 ? UTTER_LAYOUT_STREAM : UTTER_LAYOUT_FULL};
        said(prompt_open(&prompt, c, m->tokenizer, &request, &error) ||
                     prompt_text(prompt, text, strlen(text), &error) || prompt_finish(prompt, &error)
                 ? error.code
                 : UTTER_OK,
            &error, "prompt");
    }
    voice_free(&voice);
    return prompt;
}

static bool begin_lane(const struct stream_context *m, int i, struct prompt **prompt)
{
    const struct lane_settings settings = {
        m->model->config->talker_sampling, m->model->config->predictor_sampling, (uint64_t)i + 1, 2};
    utter_error error;
    int n_rows;
    *prompt = open_prompt(m, i);
    const struct row *rows = *prompt ? prompt_rows(*prompt, &n_rows) : NULL;
    return rows && said(m->ops->lane_reset(m->backend, i, &settings, &error), &error, "reset") &&
           said(m->ops->prefill(m->backend, i, rows, n_rows, &error), &error, "prefill");
}

/* Frame t of all lanes that still speak, along the codes of `leader`, or as they like (NULL). False: none does, or a
 * failure. */
static bool next_frame(const struct stream_context *m, struct prompt **prompts, int t,
    const struct said *leader, struct said *to)
{
    struct frame_in in[MOST_LANES];
    utter_error error;
    int n = 0;
    for (int i = 0; i < n_lanes; i++) {
        if (to->n[i] == t && (!leader || t < leader->n[i])) {
            in[n++] = (struct frame_in){i, t == 0 ? -1 : prompt_trailing(prompts[i], t - 1),
                leader ? leader->codes[i][t] : NULL};
        }
    }
    if (n == 0 || !said(m->ops->frame(m->backend, in, n, &error), &error, "frame")) {
        return false;
    }
    for (int k = 0; k < n; k++) {
        struct lane_out out;
        if (!said(m->ops->collect(m->backend, in[k].lane, &out, &error), &error, "collect")) {
            return false;
        }
        if (!out.end) {
            memcpy(to->codes[in[k].lane][to->n[in[k].lane]++], out.codes,
                (size_t)m->model->config->n_codebooks * sizeof(int32_t));
        }
    }
    return true;
}

static bool speak(
    const struct backend_ops *ops, const char *which, const struct said *leader, struct said *to)
{
    struct engine engine = {0};
    struct prompt *prompts[MOST_LANES] = {NULL};
    bool good = open_engine(&engine, ops, which);
    memset(to, 0, sizeof *to);
    to->n_codebooks = good ? engine.context.model->config->n_codebooks : 0;
    for (int i = 0; i < n_lanes && good; i++) {
        good = begin_lane(&engine.context, i, &prompts[i]);
    }
    for (int t = 0; t < n_frames && good && next_frame(&engine.context, prompts, t, leader, to); t++) {
    }
    for (int i = 0; i < n_lanes; i++) {
        prompt_close(&prompts[i]);
    }
    engine_close(&engine);
    return good;
}

/* Choices of `b` that are not a's; a frame that is missing has all of its codes wrong. */
static int count_apart(const struct said *a, const struct said *b)
{
    int n = 0;
    for (int i = 0; i < n_lanes; i++) {
        for (int t = 0; t < a->n[i]; t++) {
            for (int k = 0; k < a->n_codebooks; k++) {
                n += t >= b->n[i] || a->codes[i][t][k] != b->codes[i][t][k];
            }
        }
    }
    return n;
}

/* How many of n choices may be others. */
static int most_apart(int n)
{
    const double usual = (weights == UTTER_WEIGHTS_Q4 ? APART_IN_4_BITS : APART) * n;
    return (int)(usual + SCATTER * sqrt(usual)) + 1;
}

static void check(void)
{
    static struct said gpu, cpu;
    int n = 0, n_whole = 0;
    if (!speak(&cpu_backend, NULL, NULL, &cpu) || !speak(&cuda_backend, kernels, &cpu, &gpu)) {
        return;
    }
    for (int i = 0; i < n_lanes; i++) {
        n += cpu.n[i] * cpu.n_codebooks;
        n_whole += cpu.n[i] < n_frames;
    }
    const int apart = count_apart(&cpu, &gpu);
    result(n > 0 && apart <= most_apart(n),
        "%d lanes, %d sentences whole: %d of %d choices are not the CPU's, %d may be", n_lanes, n_whole,
        apart, n, most_apart(n));
}

int main(int argc, char **argv)
{
    for (int option; (option = getopt(argc, argv, "q:l:n:w:")) != -1;) {
        switch (option) {
        case 'q':
            weights = atoi(optarg) == 4 ? UTTER_WEIGHTS_Q4 : UTTER_WEIGHTS_Q8;
            break;
        case 'l':
            n_lanes = min(max(atoi(optarg), 1), (int)MOST_LANES);
            break;
        case 'n':
            n_frames = min(max(atoi(optarg), 1), (int)MOST_FRAMES);
            break;
        case 'w':
            kernels = optarg;
            break;
        default:
            return 2;
        }
    }
    for (int i = optind; i < argc; i++) {
        folder = argv[i];
        check();
    }
    printf("%d passed, %d failed\n", n_passed, n_failed);
    return n_failed > 0 || n_passed == 0;
}
