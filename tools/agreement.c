/* SPDX-License-Identifier: Apache-2.0
 * How much packed weights change what is chosen: a model speaks, and the same model with other weights is led along
 * the same codes (teacher-forced), frame by frame, so that every head of both answers the same question.
 *
 *     agreement [options] MODEL OTHER ...        OTHER: q8, q4 (MODEL, packed as it opens), or a file of utter quantize
 *
 * Prints one table for each OTHER, a row for each codebook: the share of heads whose likeliest code is the same; the
 * part of the probability that both give to the same codes (what a draw has in common at best); the mean divergence
 * in nats; and the difference of the logits against their spread. With --log, one line for each utterance: what it
 * was, its frames, and for each OTHER the logarithm of how much likelier it makes these codes than MODEL does. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/talker/sample.h"
#include "engine/engine.h"

enum { MAX_HEADS = 64, MAX_OTHERS = 8, MOST_FRAMES = 1000, MOST_LINE = 1024 };

struct head {
    uint64_t n, n_equal;
    double overlap, divergence, error, spread;
};

struct speaker {
    const char *name;
    struct engine engine;
    float *logits[MAX_HEADS]; /* of the newest frame */
    struct head heads[MAX_HEADS];
    double log_ratio; /* of the running utterance */
};

struct options {
    const char *texts, *voice, *log;
    utter_layout layout;
    int frames, utterances, every, threads;
    uint64_t seed;
    bool greedy;
};

struct agreement {
    struct options options;
    struct speaker all[MAX_OTHERS + 1]; /* the first one leads */
    int n;
    const struct config *config;
    struct lane_settings settings;
    uint8_t *seen; /* codes of codebook 0 that were chosen in this utterance */
    float *scores; /* scratch of a choice, with `order` */
    int32_t *order;
    double *p, *q; /* probabilities of the leader and of another */
    FILE *log;
};

_Noreturn static void fail(const char *what, const char *why)
{
    fprintf(stderr, "agreement: %s: %s\n", what, why);
    exit(1);
}

static void must(utter_status status, const utter_error *error, const char *what)
{
    if (status) {
        fail(what, error->text);
    }
}

static void *take(size_t n, size_t size)
{
    void *block = calloc(n ? n : 1, size);
    if (!block) {
        fail("memory", "there is not enough");
    }
    return block;
}

static int head_size(const struct agreement *a, int head)
{
    return head == 0 ? a->config->codec_vocabulary : a->config->predictor_vocabulary;
}

/* ---- Opening ---- */

static void keep_logits(
    void *user, const char *name, int index, const float *data, int64_t rows, int64_t cols)
{
    struct speaker *s = user;
    bool first = strcmp(name, "talker.logits") == 0;
    if (first || strcmp(name, "predictor.logits") == 0) {
        memcpy(s->logits[first ? 0 : index], data, (size_t)(rows * cols) * sizeof *data);
    }
}

static void open_speaker(struct agreement *a, struct speaker *s, const char *leader, const char *name)
{
    utter_error error;
    struct engine_options options = {.ops = &cpu_backend};
    bool q8 = strcmp(name, "q8") == 0, q4 = strcmp(name, "q4") == 0;
    options.backend = (struct backend_options){.n_lanes = 1, .n_threads = a->options.threads};
    options.backend.weights = q8 ? UTTER_WEIGHTS_Q8 : q4 ? UTTER_WEIGHTS_Q4 : UTTER_WEIGHTS_STORED;
    s->name = name;
    must(engine_open(&s->engine, q8 || q4 ? leader : name, &options, &error), &error, name);
    if (!a->config) {
        a->config = s->engine.context.model->config;
    }
    const struct config *c = s->engine.context.model->config;
    if (c->n_codebooks != a->config->n_codebooks || c->n_codebooks > MAX_HEADS ||
        c->codec_vocabulary != a->config->codec_vocabulary ||
        c->predictor_vocabulary != a->config->predictor_vocabulary) {
        fail(name, "another kind of model");
    }
    for (int j = 0; j < c->n_codebooks; j++) {
        s->logits[j] = take((size_t)head_size(a, j), sizeof *s->logits[j]);
    }
    s->engine.context.ops->tap(s->engine.context.backend, keep_logits, s);
}

static void prepare(struct agreement *a)
{
    const struct config *c = a->config;
    size_t most = (size_t)(c->codec_vocabulary > c->predictor_vocabulary ? c->codec_vocabulary
                                                                         : c->predictor_vocabulary);
    a->settings = (struct lane_settings){c->talker_sampling, c->predictor_sampling, 0, 2};
    if (a->options.greedy) {
        a->settings.talker.temperature = a->settings.predictor.temperature = 0;
    }
    a->seen = take(most, sizeof *a->seen);
    a->scores = take(most, sizeof *a->scores);
    a->order = take(most, sizeof *a->order);
    a->p = take(most, sizeof *a->p);
    a->q = take(most, sizeof *a->q);
    if (a->options.log && !(a->log = fopen(a->options.log, "w"))) {
        fail(a->options.log, "it cannot be written");
    }
}

/* ---- One head ---- */

/* What a backend's choice starts from (cpu/talker/frame.c). */
static struct sample_in question(
    const struct agreement *a, const float *logits, int head, int frame, const utter_sampling *sampling)
{
    const struct config *c = a->config;
    const int n = head_size(a, head);
    return (struct sample_in){.logits = logits,
        .n = n,
        .sampling = sampling,
        .seen = head == 0 ? a->seen : NULL,
        .suppress_from = head == 0 ? config_suppress_from(c) : n,
        .keep = head == 0 ? c->codec_eos : -1,
        .keep_blocked = frame < a->settings.min_frames};
}

static int likeliest(struct agreement *a, const float *logits, int head, int frame)
{
    bool bad = false;
    utter_sampling greedy = {.top_p = 1, .repetition_penalty = a->settings.talker.repetition_penalty};
    struct sample_in in = question(a, logits, head, frame, &greedy);
    return sample_choose(&in, a->scores, a->order, &bad);
}

/* Difference of two heads' logits against the leader's spread, over the codes that can be chosen. */
static void compare_logits(struct head *h, const float *lead, const float *other, int n)
{
    double mean = 0, mean_d = 0, spread = 0, error = 0;
    for (int i = 0; i < n; i++) {
        mean += (double)lead[i] / n;
        mean_d += ((double)other[i] - (double)lead[i]) / n; /* a constant changes no choice */
    }
    for (int i = 0; i < n; i++) {
        double s = (double)lead[i] - mean, d = (double)other[i] - (double)lead[i] - mean_d;
        spread += s * s;
        error += d * d;
    }
    h->spread += spread / n;
    h->error += error / n;
}

static void compare_head(struct agreement *a, struct speaker *other, int head, int frame, int32_t code)
{
    struct head *h = &other->heads[head];
    const float *lead = a->all[0].logits[head], *follow = other->logits[head];
    const utter_sampling *s = head == 0 ? &a->settings.talker : &a->settings.predictor;
    utter_sampling draw = *s;
    draw.temperature = s->temperature > 0 ? s->temperature : 1;
    struct sample_in p = question(a, lead, head, frame, &draw),
                     q = question(a, follow, head, frame, &draw);
    sample_probabilities(&p, a->scores, a->order, a->p);
    sample_probabilities(&q, a->scores, a->order, a->q);
    double overlap = 0, divergence = 0;
    for (int i = 0; i < p.n; i++) {
        overlap += a->p[i] < a->q[i] ? a->p[i] : a->q[i];
        divergence += a->p[i] > 0 ? a->p[i] * log(a->p[i] / (a->q[i] > 1e-12 ? a->q[i] : 1e-12)) : 0;
    }
    h->n++;
    h->n_equal += likeliest(a, lead, head, frame) == likeliest(a, follow, head, frame);
    h->overlap += overlap;
    h->divergence += divergence;
    compare_logits(
        h, lead, follow, a->config->predictor_vocabulary < p.n ? a->config->predictor_vocabulary : p.n);
    other->log_ratio += log((a->q[code] > 1e-30 ? a->q[code] : 1e-30) / a->p[code]);
}

/* ---- One utterance ---- */

static struct prompt *open_prompt(struct agreement *a, const char *text, const char *voice_name)
{
    utter_error error;
    utter_voice *voice = NULL;
    struct prompt *prompt;
    const struct stream_context *m = &a->all[0].engine.context;
    if (voice_name) {
        must(voice_new_preset(&voice, a->config, voice_name, &error), &error, "the voice");
    }
    struct prompt_request request = {
        .voice = voice, .language = "english", .instruct = NULL, .layout = a->options.layout};
    must(prompt_open(&prompt, a->config, m->tokenizer, &request, &error), &error, "the prompt");
    must(prompt_text(prompt, text, strlen(text), &error), &error, "the text");
    must(prompt_finish(prompt, &error), &error, "the text");
    voice_free(&voice);
    return prompt;
}

static void start(struct agreement *a, const struct prompt *prompt)
{
    utter_error error;
    int n_rows;
    const struct row *rows = prompt_rows(prompt, &n_rows);
    for (int i = 0; i < a->n; i++) {
        const struct stream_context *m = &a->all[i].engine.context;
        must(m->ops->lane_reset(m->backend, 0, &a->settings, &error), &error, "reset");
        must(m->ops->prefill(m->backend, 0, rows, n_rows, &error), &error, "prefill");
        a->all[i].log_ratio = 0;
    }
    memset(a->seen, 0, (size_t)a->config->codec_vocabulary);
}

static bool one_frame(struct speaker *s, int32_t text, const int32_t *forced, struct lane_out *out)
{
    utter_error error;
    struct frame_in in = {0, text, forced};
    must(s->engine.context.ops->frame(s->engine.context.backend, &in, 1, &error), &error, "frame");
    must(s->engine.context.ops->collect(s->engine.context.backend, 0, out, &error), &error, "frame");
    return !out->end;
}

/* Returns the number of frames. */
static int speak(struct agreement *a, const struct prompt *prompt)
{
    int n = a->config->n_codebooks, frame = 0;
    int32_t codes[MAX_HEADS] = {0};
    bool goes_on = true;
    start(a, prompt);
    for (; goes_on && frame < a->options.frames; frame += goes_on) {
        struct lane_out out;
        int32_t text = frame == 0 ? -1 : prompt_trailing(prompt, frame - 1);
        goes_on = one_frame(&a->all[0], text, NULL, &out);
        memset(codes, 0, sizeof codes);
        if (goes_on) {
            memcpy(codes, out.codes, (size_t)n * sizeof *codes);
        }
        for (int i = 1; i < a->n; i++) {
            one_frame(&a->all[i], text, codes, &out);
            for (int j = 0; j < (goes_on ? n : 1); j++) {
                compare_head(a, &a->all[i], j, frame, goes_on ? codes[j] : a->config->codec_eos);
            }
        }
        a->seen[codes[0]] = 1;
    }
    return frame;
}

static void say_line(struct agreement *a, int index, const char *text)
{
    struct prompt *prompt = open_prompt(a, text, a->options.voice);
    a->settings.seed = a->options.seed + (uint64_t)index;
    int frames = speak(a, prompt);
    prompt_close(&prompt);
    if (a->log) {
        fprintf(a->log, "%d %llu %d", index, (unsigned long long)a->settings.seed, frames);
        for (int i = 1; i < a->n; i++) {
            fprintf(a->log, " %.6f", a->all[i].log_ratio);
        }
        fputc('\n', a->log);
        fflush(a->log);
    }
}

/* ---- The table ---- */

static void print_row(const char *name, const struct head *h)
{
    double n = h->n > 0 ? (double)h->n : 1;
    printf("| %s | %llu | %.2f | %.2f | %.6f | %.2f |\n", name, (unsigned long long)h->n,
        100 * (double)h->n_equal / n, 100 * h->overlap / n, h->divergence / n,
        h->spread > 0 ? 100 * sqrt(h->error / h->spread) : 0);
}

static void add(struct head *to, const struct head *h)
{
    to->n += h->n;
    to->n_equal += h->n_equal;
    to->overlap += h->overlap;
    to->divergence += h->divergence;
    to->error += h->error;
    to->spread += h->spread;
}

static void print_table(const struct agreement *a, const struct speaker *s)
{
    struct head finer = {0}, all = {0};
    printf("\n%s, led by %s%s\n\n", s->name, a->all[0].name, a->options.greedy ? ", greedy" : "");
    printf("| Codebook | Heads | Likeliest equal, %% | Probability in common, %% | Divergence, nats | "
           "Logits off, %% of spread |\n|---|---|---|---|---|---|\n");
    for (int j = 0; j < a->config->n_codebooks; j++) {
        char name[16];
        snprintf(name, sizeof name, "%d", j);
        print_row(name, &s->heads[j]);
        add(&all, &s->heads[j]);
        if (j > 0) {
            add(&finer, &s->heads[j]);
        }
    }
    print_row("1 to the last", &finer);
    print_row("all", &all);
}

/* ---- The program ---- */

static void usage(void)
{
    printf(
        "agreement [options] MODEL OTHER ...: what other weights change in each head, on MODEL's own "
        "speech\n\n"
        "OTHER              q8 or q4 (MODEL, packed as it opens), or a file of utter quantize\n"
        "--texts FILE       a text on each line (needed)\n"
        "--utterances N     at most N of them (default 4); --every N: each N-th line\n"
        "--frames N         at most N frames of each (default 100)\n"
        "--voice NAME       a voice of the model; --stream: the layout in which text goes in with the "
        "frames\n"
        "--seed N           line i speaks with seed N + i (default 1); --greedy: the likeliest codes\n"
        "--threads N        (default: one for each core)\n"
        "--log FILE         a line for each utterance: index, seed, frames, log ratio of each OTHER\n");
}

static int number(const char *option, const char *text, long least, long most)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (!*text || *end || value < least || value > most) {
        fail(option, "not a whole number in its range");
    }
    return (int)value;
}

static bool read_value(struct options *o, const char *option, const char *value)
{
    if (strcmp(option, "--texts") == 0) {
        o->texts = value;
    } else if (strcmp(option, "--voice") == 0) {
        o->voice = value;
    } else if (strcmp(option, "--log") == 0) {
        o->log = value;
    } else if (strcmp(option, "--utterances") == 0) {
        o->utterances = number(option, value, 1, 1 << 20);
    } else if (strcmp(option, "--every") == 0) {
        o->every = number(option, value, 1, 1 << 20);
    } else if (strcmp(option, "--frames") == 0) {
        o->frames = number(option, value, 1, MOST_FRAMES);
    } else if (strcmp(option, "--threads") == 0) {
        o->threads = number(option, value, 1, 1024);
    } else if (strcmp(option, "--seed") == 0) {
        o->seed = (uint64_t)number(option, value, 0, 1 << 30);
    } else {
        return false;
    }
    return true;
}

/* Returns the index of the first argument that is no option. */
static int read_options(struct options *o, int argc, char **argv)
{
    int i = 1;
    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        if (strcmp(argv[i], "--greedy") == 0) {
            o->greedy = true;
        } else if (strcmp(argv[i], "--stream") == 0) {
            o->layout = UTTER_LAYOUT_STREAM;
        } else if (i + 1 < argc && read_value(o, argv[i], argv[i + 1])) {
            i++;
        } else {
            usage();
            exit(strcmp(argv[i], "--help") == 0 ? 0 : 1);
        }
    }
    return i;
}

int main(int argc, char **argv)
{
    static struct agreement a;
    a.options = (struct options){
        .layout = UTTER_LAYOUT_FULL, .frames = 100, .utterances = 4, .every = 1, .seed = 1};
    int at = read_options(&a.options, argc, argv);
    if (argc - at < 2 || argc - at > MAX_OTHERS + 1 || !a.options.texts) {
        usage();
        return 1;
    }
    for (int i = at; i < argc; i++) {
        open_speaker(&a, &a.all[a.n++], argv[at], argv[i]);
    }
    prepare(&a);
    FILE *texts = fopen(a.options.texts, "r");
    if (!texts) {
        fail(a.options.texts, "it cannot be read");
    }
    char line[MOST_LINE];
    int n_said = 0;
    for (int index = 0; n_said < a.options.utterances && fgets(line, sizeof line, texts); index++) {
        line[strcspn(line, "\n")] = 0;
        if (index % a.options.every == 0 && line[0]) {
            say_line(&a, index, line);
            n_said++;
        }
    }
    fclose(texts);
    for (int i = 1; i < a.n; i++) {
        print_table(&a, &a.all[i]);
    }
    return a.log && fclose(a.log) ? 1 : 0;
}
