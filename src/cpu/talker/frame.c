/* SPDX-License-Identifier: Apache-2.0
 * The frame loop on the CPU. Several lanes share each pass over the weights, a column each; what a lane
 * gets does not depend on who shares the pass. */
#include "cpu/talker/frame.h"

#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "base/threads.h"
#include "cpu/talker/sample.h"

/* Columns of one pass: enough for prompts to run at the speed of arithmetic, not of memory. */
enum { N_COLUMNS = 64 };

static void *take(struct cpu_frame *f, int64_t n, size_t size)
{
    f->bytes += (uint64_t)n * size;
    return memory_new((size_t)n, size);
}

utter_status cpu_frame_init(struct cpu_frame *f, const struct model *model, const struct kern *kern,
    struct pool *pool, int n_positions, utter_error *error)
{
    const struct config *c = model->config;
    int64_t width = max(c->talker.width, c->predictor.width);
    int64_t vocabulary = max(c->codec_vocabulary, c->predictor_vocabulary);
    f->model = model;
    f->kern = kern;
    f->pool = pool;
    f->n_columns = N_COLUMNS;
    f->columns = take(f, f->n_columns, sizeof *f->columns);
    f->input = take(f, (int64_t)f->n_columns * c->talker.width, sizeof(float));
    f->x = take(f, f->n_columns * width, sizeof(float));
    f->normed = take(f, f->n_columns * width, sizeof(float));
    f->logits = take(f, f->n_columns * vocabulary, sizeof(float));
    f->scores = take(f, vocabulary, sizeof(float));
    f->order = take(f, vocabulary, sizeof(int32_t));
    const struct stack_config *const shapes[] = {&c->talker, &c->predictor};
    f->scratch =
        cpu_scratch_new(shapes, 2, f->n_columns, max(n_positions, c->n_codebooks), pool_size(pool));
    if (!f->columns || !f->input || !f->x || !f->normed || !f->logits || !f->scores || !f->order ||
        !f->scratch) {
        return error_memory(error, "buffers of the talker");
    }
    utter_status status =
        cpu_stack_init(&f->talker, &c->talker, &model->talker.stack, kern, pool, error);
    if (!status) {
        status =
            cpu_stack_init(&f->predictor, &c->predictor, &model->predictor.stack, kern, pool, error);
    }
    return status ? status : cpu_embed_init(&f->embed, model, kern, pool, f->n_columns, error);
}

void cpu_frame_fini(struct cpu_frame *f)
{
    cpu_embed_fini(&f->embed);
    cpu_stack_fini(&f->predictor);
    cpu_stack_fini(&f->talker);
    cpu_scratch_free(f->scratch);
    memory_free(f->order);
    memory_free(f->scores);
    memory_free(f->logits);
    memory_free(f->normed);
    memory_free(f->x);
    memory_free(f->input);
    memory_free(f->columns);
    *f = (struct cpu_frame){0};
}

static void tap(const struct cpu_frame *f, const char *name, int index, const float *data, int64_t rows,
    int64_t cols)
{
    if (f->tap.fn) {
        f->tap.fn(f->tap.user, name, index, data, rows, cols);
    }
}

/* ---- Talker ---- */

/* The final norm and the head for `n` vectors x of n lanes. */
static void finish_talker(struct cpu_frame *f, struct cpu_lane *const *lanes, const float *x, int n)
{
    int64_t width = f->model->config->talker.width, vocabulary = f->model->config->codec_vocabulary;
    for (int i = 0; i < n; i++) {
        f->kern->norm(f->normed + i * width, x + i * width, f->model->talker.stack.norm, width,
            f->model->config->talker.norm_eps);
    }
    kern_matmul(f->kern, f->pool, f->logits, vocabulary, &f->model->talker.head, f->normed, width, n,
        cpu_scratch_rounded(f->scratch));
    for (int i = 0; i < n; i++) {
        memcpy(lanes[i]->hidden, f->normed + i * width, (size_t)width * sizeof(float));
        memcpy(lanes[i]->logits, f->logits + i * vocabulary, (size_t)vocabulary * sizeof(float));
        lanes[i]->ready = true;
        tap(f, "talker.hidden", 0, lanes[i]->hidden, 1, width);
        tap(f, "talker.logits", 0, lanes[i]->logits, 1, vocabulary);
    }
}

/* What a lane's position looks at, or NULL. */
static const struct cpu_look *look_of(const struct cpu_lane *lane)
{
    return lane->look.end > lane->look.begin ? &lane->look : NULL;
}

/* At most n_columns rows, of which `done` of the prompt were read before. `look`: what the last one looks at, or
 * NULL. */
static void read_rows(struct cpu_frame *f, struct cpu_lane *lane, const struct row *rows, int n,
    int done, const struct cpu_look *look)
{
    cpu_embed_rows(&f->embed, rows, n, f->x);
    tap(f, "prompt", done, f->x, n, f->model->config->talker.width);
    for (int i = 0; i < n; i++) {
        f->columns[i] = (struct cpu_column){&lane->talker, lane->position++, i == n - 1 ? look : NULL};
    }
    cpu_stack_run(&f->talker, f->x, f->columns, n, f->scratch, &f->tap, "talker.layer");
}

void cpu_frame_prefill(struct cpu_frame *f, struct cpu_lane *lane, const struct row *rows, int n)
{
    int last = 0;
    for (int done = 0; done < n; done += last) {
        last = min(n - done, f->n_columns);
        bool is_end = done + last == n; /* its last row may choose the first frame */
        read_rows(f, lane, rows + done, last, done, is_end ? look_of(lane) : NULL);
    }
    finish_talker(f, &lane, f->x + (last - 1) * f->model->config->talker.width, 1);
}

/* Of n rows that were read: likelihoods of those that have a code. */
static void weigh_rows(struct cpu_frame *f, int n, const int32_t *codes, struct likelihood *likelihoods)
{
    const struct config *c = f->model->config;
    const struct talker_weights *w = &f->model->talker;
    int64_t width = c->talker.width, vocabulary = c->codec_vocabulary;
    int m = 0;
    for (int i = 0; i < n; i++) {
        if (codes[i] >= 0) {
            f->kern->norm(
                f->normed + m++ * width, f->x + i * width, w->stack.norm, width, c->talker.norm_eps);
        }
    }
    if (m > 0) {
        kern_matmul(f->kern, f->pool, f->logits, vocabulary, &w->head, f->normed, width, m,
            cpu_scratch_rounded(f->scratch));
    }
    m = 0;
    for (int i = 0; i < n; i++) {
        if (codes[i] >= 0) {
            likelihoods[i] = sample_likelihood(f->logits + m++ * vocabulary, c->codec_vocabulary,
                config_suppress_from(c), c->codec_eos, codes[i]);
        }
    }
}

void cpu_frame_weigh(struct cpu_frame *f, struct cpu_lane *lane, const struct row *rows, int n,
    const int32_t *codes, struct likelihood *likelihoods)
{
    for (int done = 0, some; done < n; done += some) {
        some = min(n - done, f->n_columns);
        read_rows(f, lane, rows + done, some, done, NULL);
        weigh_rows(f, some, codes + done, likelihoods + done);
    }
}

/* The step that takes the codes of the frame before and one text id. */
static void step_talker(struct cpu_frame *f, struct cpu_lane *const *lanes, const int32_t *texts, int n)
{
    int64_t width = f->model->config->talker.width;
    for (int i = 0; i < n; i++) {
        struct row row = {.text = texts[i], .codec = ROW_CODES, .codes = lanes[i]->taken};
        cpu_embed_rows(&f->embed, &row, 1, f->x + i * width);
        f->columns[i] = (struct cpu_column){&lanes[i]->talker, lanes[i]->position++, look_of(lanes[i])};
    }
    cpu_stack_run(&f->talker, f->x, f->columns, n, f->scratch, &f->tap, "talker.layer");
    finish_talker(f, lanes, f->x, n);
}

/* ---- Choice ---- */

static int32_t choose(struct cpu_frame *f, struct cpu_lane *lane, int codebook, const float *logits)
{
    const struct config *c = f->model->config;
    int n = codebook == 0 ? c->codec_vocabulary : c->predictor_vocabulary;
    struct sample_in in = {
        .logits = logits,
        .n = n,
        .sampling = codebook == 0 ? &lane->settings.talker : &lane->settings.predictor,
        .seen = codebook == 0 ? lane->seen : NULL,
        .suppress_from = codebook == 0 ? config_suppress_from(c) : n,
        .keep = codebook == 0 ? c->codec_eos : -1,
        .keep_blocked = lane->n_frames < (uint32_t)lane->settings.min_frames,
        .seed = lane->settings.seed,
        .frame = lane->n_frames,
        .codebook = (uint32_t)codebook,
    };
    return sample_choose(&in, f->scores, f->order, &lane->out.not_a_number);
}

/* Code 0. A forced lane goes on whatever was chosen; another one ends with the end token. */
static void choose_first(struct cpu_frame *f, struct cpu_lane *lane, const int32_t *forced)
{
    const struct config *c = f->model->config;
    int32_t code = choose(f, lane, 0, lane->logits);
    if (look_of(lane)) {
        lane->out.scores = lane->look.scores;
        lane->out.n_scores = cpu_look_rows(&lane->look, lane->position - 1);
        lane->out.likelihood = sample_likelihood(lane->logits, c->codec_vocabulary,
            config_suppress_from(c), c->codec_eos, forced ? forced[0] : code);
    }
    lane->ready = false;
    lane->out.end = code == c->codec_eos && !forced;
    lane->codes[0] = code;
    lane->taken[0] = forced ? forced[0] : code;
    if (!lane->out.end) {
        cpu_lane_note_code(lane, lane->taken[0]);
    }
}

/* ---- Predictor ---- */

/* Talker-wide inputs of n columns -> x of the predictor. */
static void project_inputs(struct cpu_frame *f, int n)
{
    const struct predictor_weights *w = &f->model->predictor;
    int64_t width = f->model->config->predictor.width, talker_width = f->model->config->talker.width;
    if (!w->projection.data) {
        memcpy(f->x, f->input, (size_t)(n * width) * sizeof(float));
        return;
    }
    kern_matmul(f->kern, f->pool, f->x, width, &w->projection, f->input, talker_width, n,
        cpu_scratch_rounded(f->scratch));
    for (int c = 0; c < n; c++) {
        for (int64_t i = 0; i < width; i++) {
            f->x[c * width + i] += w->projection_bias[i];
        }
    }
}

/* Columns of the step that yields `codebook`: the first step has two positions of each lane. Returns the
 * number of columns of one lane. */
static int enter_codes(struct cpu_frame *f, struct cpu_lane *const *lanes, int n, int codebook)
{
    int64_t width = f->model->config->talker.width;
    int each = codebook == 1 ? 2 : 1;
    for (int i = 0; i < n; i++) {
        float *input = f->input + i * each * width;
        if (codebook == 1) {
            memcpy(input, lanes[i]->hidden, (size_t)width * sizeof *input);
        }
        cpu_embed_code(
            f->model, codebook - 1, lanes[i]->taken[codebook - 1], input + (each - 1) * width);
        for (int j = 0; j < each; j++) {
            f->columns[i * each + j] =
                (struct cpu_column){&lanes[i]->predictor, codebook - each + 1 + j, NULL};
        }
    }
    return each;
}

/* The other codes of one frame, for n lanes that have code 0. */
static void run_predictor(
    struct cpu_frame *f, struct cpu_lane *const *lanes, const int32_t *const *forced, int n)
{
    const struct config *c = f->model->config;
    int64_t width = c->predictor.width, vocabulary = c->predictor_vocabulary;
    for (int codebook = 1; codebook < c->n_codebooks; codebook++) {
        int each = enter_codes(f, lanes, n, codebook);
        project_inputs(f, n * each);
        cpu_stack_run(&f->predictor, f->x, f->columns, n * each, f->scratch, NULL, NULL);
        for (int i = 0; i < n; i++) {
            f->kern->norm(f->normed + i * width, f->x + (i * each + each - 1) * width,
                f->model->predictor.stack.norm, width, c->predictor.norm_eps);
        }
        kern_matmul(f->kern, f->pool, f->logits, vocabulary, &f->model->predictor.head[codebook - 1],
            f->normed, width, n, cpu_scratch_rounded(f->scratch));
        for (int i = 0; i < n; i++) {
            const float *logits = f->logits + i * vocabulary;
            tap(f, "predictor.logits", codebook, logits, 1, vocabulary);
            lanes[i]->codes[codebook] = choose(f, lanes[i], codebook, logits);
            lanes[i]->taken[codebook] = forced[i] ? forced[i][codebook] : lanes[i]->codes[codebook];
        }
    }
}

/* ---- Frame ---- */

static void finish_frame(struct cpu_frame *f, struct cpu_lane *lane)
{
    memcpy(lane->spoken, lane->taken, (size_t)f->model->config->n_codebooks * sizeof *lane->spoken);
    lane->out.n_frames = lane->n_waiting = 1;
    lane->n_frames++;
}

/* At most n_columns / 2 lanes. */
static void run_group(struct cpu_frame *f, struct cpu_lane *const *lanes, const struct frame_in *in,
    int n, struct cpu_lane **some, int32_t *texts, const int32_t **forced)
{
    int m = 0;
    double start = clock_seconds();
    for (int i = 0; i < n; i++) {
        lanes[i]->out = (struct lane_out){.codes = lanes[i]->codes};
        if (!lanes[i]->ready) {
            some[m] = lanes[i];
            texts[m++] = in[i].text;
        }
    }
    if (m > 0) {
        step_talker(f, some, texts, m);
    }
    m = 0;
    for (int i = 0; i < n; i++) {
        choose_first(f, lanes[i], in[i].forced);
        if (!lanes[i]->out.end) {
            some[m] = lanes[i];
            forced[m++] = in[i].forced;
        }
    }
    double middle = clock_seconds();
    run_predictor(f, some, forced, m);
    for (int i = 0; i < m; i++) {
        finish_frame(f, some[i]);
    }
    double end = clock_seconds();
    for (int i = 0; i < n; i++) {
        lanes[i]->out.talker_s = middle - start;
        lanes[i]->out.predictor_s = end - middle;
    }
}

void cpu_frame_run(struct cpu_frame *f, struct cpu_lane *const *lanes, const struct frame_in *in, int n)
{
    enum { GROUP = N_COLUMNS / 2 };
    struct cpu_lane *some[GROUP];
    int32_t texts[GROUP];
    const int32_t *forced[GROUP];
    for (int i = 0; i < n; i += GROUP) {
        run_group(f, lanes + i, in + i, min(n - i, GROUP), some, texts, forced);
    }
}
