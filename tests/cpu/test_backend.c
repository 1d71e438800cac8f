/* SPDX-License-Identifier: Apache-2.0
 * The backend door on the CPU with small checkpoints: what may not change a bit (threads, neighbours, the way a
 * prompt comes), what a frame reports. */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/numeric.h"
#include "base/threads.h"
#include "cpu/talker/lane.h"
#include "tests/cpu/backend_run.h"

/* What one utterance gave. */
struct result {
    int32_t codes[N_FRAMES][MAX_CODEBOOKS];
    float pcm[N_FRAMES * 1920];
    size_t n_samples;
};

static void step(struct backend *b, const struct config *c, const int *lanes, const int *kinds, int n,
    int t, struct result *results)
{
    struct frame_in in[8] = {0};
    for (int i = 0; i < n; i++) {
        in[i] = (struct frame_in){lanes[i], text_of(c, kinds[i], t), NULL};
    }
    assert_int_equal(cpu->frame(b, in, n, NULL), UTTER_OK);
    assert_int_equal(cpu->vocode(b, lanes, n, NULL), UTTER_OK);
    for (int i = 0; i < n; i++) {
        struct lane_out out;
        assert_int_equal(cpu->collect(b, lanes[i], &out, NULL), UTTER_OK);
        assert_false(out.not_a_number || out.end);
        assert_int_equal(out.n_frames, 1);
        assert_int_equal(out.n_samples, c->codec.frame_samples);
        assert_true(out.talker_s > 0 && out.predictor_s > 0 && out.vocoder_s > 0);
        memcpy(results[kinds[i]].codes[t], out.codes, (size_t)c->n_codebooks * sizeof(int32_t));
        memcpy(
            results[kinds[i]].pcm + t * c->codec.frame_samples, out.pcm, out.n_samples * sizeof(float));
        results[kinds[i]].n_samples += out.n_samples;
    }
}

static struct result *run_alone(const struct model *model, int kind, int n_threads)
{
    struct result *results = calloc(4, sizeof *results);
    struct backend *b = open_backend(model, 1, n_threads);
    int lane = 0;
    start(b, model->config, lane, kind);
    for (int t = 0; t < N_FRAMES; t++) {
        step(b, model->config, &lane, &kind, 1, t, results);
    }
    cpu->close(&b);
    assert_null(b);
    results[0] = results[kind];
    return results;
}

static void test_threads(void **state)
{
    (void)state;
    struct model *model = open_model(MODEL);
    struct result *one = run_alone(model, 1, 1);
    for (int n = 2; n <= 8; n += 6) {
        struct result *many = run_alone(model, 1, n);
        assert_memory_equal(one, many, sizeof *one);
        free(many);
    }
    free(one);
    model_close(&model);
}

/* Three lanes that start at different times, next to one another, against each alone. */
static void test_neighbours(void **state)
{
    (void)state;
    struct model *model = open_model(MODEL);
    struct backend *b = open_backend(model, 3, 2);
    struct result *together = calloc(4, sizeof *together);
    static const int lanes[] = {2, 0, 1}, kinds[] = {1, 2, 3};
    for (int t = -2; t < N_FRAMES; t++) {
        /* lane i is i - 2 frames ahead: it begins at t = -i */
        for (int i = 0; i < 3; i++) {
            if (t == -i) {
                start(b, model->config, lanes[i], kinds[i]);
            }
        }
        struct frame_in in[3];
        int n = 0, who[3];
        for (int i = 0; i < 3; i++) {
            if (t >= -i && t + i < N_FRAMES) {
                in[n] = (struct frame_in){lanes[i], text_of(model->config, kinds[i], t + i), NULL};
                who[n++] = i;
            }
        }
        assert_int_equal(cpu->frame(b, in, n, NULL), UTTER_OK);
        for (int k = 0; k < n; k++) {
            struct lane_out out;
            int i = who[k];
            assert_int_equal(cpu->vocode(b, &lanes[i], 1, NULL), UTTER_OK);
            assert_int_equal(cpu->collect(b, lanes[i], &out, NULL), UTTER_OK);
            struct result *r = &together[kinds[i]];
            memcpy(r->codes[t + i], out.codes, (size_t)model->config->n_codebooks * sizeof(int32_t));
            memcpy(r->pcm + (t + i) * model->config->codec.frame_samples, out.pcm,
                out.n_samples * sizeof(float));
            r->n_samples += out.n_samples;
        }
    }
    cpu->close(&b);
    for (int kind = 1; kind <= 3; kind++) {
        struct result *alone = run_alone(model, kind, 1);
        assert_memory_equal(alone, &together[kind], sizeof *alone);
        free(alone);
    }
    free(together);
    model_close(&model);
}

/* A lane used again gives what a new one gives; another seed gives something else. */
static void test_reset(void **state)
{
    (void)state;
    struct model *model = open_model(MODEL);
    const struct config *c = model->config;
    struct result *alone = run_alone(model, 2, 1), *again = calloc(4, sizeof *again);
    struct backend *b = open_backend(model, 1, 1);
    int lane = 0, kind = 2, other = 3;
    start(b, c, lane, other);
    for (int t = 0; t < 3; t++) {
        step(b, c, &lane, &other, 1, t, again);
    }
    start(b, c, lane, kind);
    for (int t = 0; t < N_FRAMES; t++) {
        step(b, c, &lane, &kind, 1, t, again);
    }
    assert_memory_equal(alone, &again[kind], sizeof *alone);
    cpu->close(&b);
    free(alone);
    free(again);
    model_close(&model);
}

/* What an utterance took behind so many positions goes back to the system, in every layer; zeros are there then. */
static void test_long_lane_rests(void **state)
{
    enum { KEPT = 512, CAPACITY = 4096 };
    (void)state;
    struct model *model = open_model(MODEL);
    const struct stack_config *shape = &model->config->talker;
    const size_t one = (size_t)shape->n_kv_heads * (size_t)shape->head, layer = CAPACITY * one;
    struct pool *pool = pool_new(1);
    struct cpu_vocoder *vocoder;
    struct cpu_lane lane = {0};
    assert_int_equal(cpu_vocoder_open(&vocoder, model, kern_find(NULL), pool, NULL), UTTER_OK);
    assert_int_equal(cpu_lane_init(&lane, model, vocoder, CAPACITY, NULL), UTTER_OK);
    float *const caches[] = {lane.talker.keys, lane.talker.values};
    for (int n = KEPT; n <= KEPT + 1; n++) {
        for (size_t i = 0; i < 2 * (size_t)shape->n_layers * layer; i++) {
            caches[i % 2][i / 2] = 1;
        }
        lane.position = n;
        cpu_lane_reset(&lane, model, vocoder, &SETTINGS);
        for (int i = 0; i < 2 * shape->n_layers; i++) {
            const float *cache = caches[i % 2] + (size_t)(i / 2) * layer;
            assert_true(cache[0] == 1 && cache[KEPT * one - 1] == 1);
            assert_true(cache[layer / 2] == (n > KEPT ? 0 : 1));
        }
    }
    cpu_lane_fini(&lane, model);
    cpu_vocoder_close(&vocoder);
    pool_free(pool);
    model_close(&model);
}

struct look {
    float logits[2][4096], hidden[2][4096], prompt[N_ROWS * 512];
    int n_codebooks, n_logits, n_hidden, n_layers, n_sub, rows;
};

static void keep(void *user, const char *name, int index, const float *data, int64_t rows, int64_t cols)
{
    struct look *look = user;
    if (strcmp(name, "prompt") == 0) {
        assert_int_equal(index, look->rows);
        memcpy(look->prompt + index * cols, data, (size_t)(rows * cols) * sizeof *data);
        look->rows += (int)rows;
    } else if (strcmp(name, "talker.layer") == 0) {
        look->n_layers++;
    } else if (strcmp(name, "talker.hidden") == 0) {
        memcpy(look->hidden[look->n_hidden++ % 2], data, (size_t)(rows * cols) * sizeof *data);
    } else if (strcmp(name, "talker.logits") == 0) {
        memcpy(look->logits[look->n_logits++ % 2], data, (size_t)(rows * cols) * sizeof *data);
    } else if (strcmp(name, "predictor.logits") == 0) {
        assert_int_equal(index, look->n_sub % (look->n_codebooks - 1) + 1);
        look->n_sub++;
    }
}

/* Prompt rows in one call or in many: the same state. Rows of all kinds, more than one pass holds. */
static void test_prefill_pieces(void **state)
{
    (void)state;
    struct model *model = open_model(MODEL);
    struct backend *b = open_backend(model, 2, 2);
    struct row rows[N_ROWS];
    struct look *look = calloc(1, sizeof *look);
    look->n_codebooks = model->config->n_codebooks;
    make_rows(model->config, 1, rows, N_ROWS);
    cpu->tap(b, keep, look);
    assert_int_equal(cpu->lane_reset(b, 0, &SETTINGS, NULL), UTTER_OK);
    assert_int_equal(cpu->prefill(b, 0, rows, N_ROWS, NULL), UTTER_OK);
    assert_int_equal(look->rows, N_ROWS);
    assert_int_equal(look->n_layers, 3 * model->config->talker.n_layers); /* 64 + 64 + 22 rows */
    assert_int_equal(look->n_logits, 1);
    cpu->tap(b, NULL, NULL);
    assert_int_equal(cpu->lane_reset(b, 1, &SETTINGS, NULL), UTTER_OK);
    assert_int_equal(cpu->prefill(b, 1, rows, 1, NULL), UTTER_OK);
    assert_int_equal(cpu->prefill(b, 1, rows + 1, 70, NULL), UTTER_OK);
    look->rows = 0;
    cpu->tap(b, keep, look);
    assert_int_equal(cpu->prefill(b, 1, rows + 71, N_ROWS - 71, NULL), UTTER_OK);
    assert_int_equal(look->n_logits, 2);
    assert_memory_equal(look->logits[0], look->logits[1], sizeof look->logits[0]);
    assert_memory_equal(look->hidden[0], look->hidden[1], sizeof look->hidden[0]);
    cpu->close(&b);
    free(look);
    model_close(&model);
}

static void exact_table_row(const struct weight *w, int64_t row, double *out)
{
    for (int64_t i = 0; i < w->cols; i++) {
        out[i] += (double)bf16_to_float(((const uint16_t *)w->data)[row * w->cols + i]);
    }
}

static void exact_text(const struct talker_weights *w, int id, double *out)
{
    double e[2048] = {0}, m[2048];
    exact_table_row(&w->text_embedding, id, e);
    for (int64_t r = 0; r < w->text_fc1.rows; r++) {
        double sum = (double)w->text_fc1_bias[r];
        for (int64_t k = 0; k < w->text_fc1.cols; k++) {
            sum +=
                (double)bf16_to_float(((const uint16_t *)w->text_fc1.data)[r * w->text_fc1.cols + k]) *
                e[k];
        }
        m[r] = sum / (1 + exp(-sum));
    }
    for (int64_t r = 0; r < w->text_fc2.rows; r++) {
        out[r] += (double)w->text_fc2_bias[r];
        for (int64_t k = 0; k < w->text_fc2.cols; k++) {
            out[r] +=
                (double)bf16_to_float(((const uint16_t *)w->text_fc2.data)[r * w->text_fc2.cols + k]) *
                m[k];
        }
    }
}

/* The vector of each kind of row, against the same in double. */
static void test_rows(void **state)
{
    (void)state;
    struct model *model = open_model(MODEL);
    const struct config *c = model->config;
    struct backend *b = open_backend(model, 1, 1);
    struct row rows[N_ROWS];
    struct look *look = calloc(1, sizeof *look);
    look->n_codebooks = model->config->n_codebooks;
    make_rows(c, 2, rows, N_ROWS);
    cpu->tap(b, keep, look);
    assert_int_equal(cpu->lane_reset(b, 0, &SETTINGS, NULL), UTTER_OK);
    assert_int_equal(cpu->prefill(b, 0, rows, N_ROWS, NULL), UTTER_OK);
    for (int i = 0; i < N_ROWS; i++) {
        double want[512] = {0};
        if (rows[i].text >= 0) {
            exact_text(&model->talker, rows[i].text, want);
        }
        if (rows[i].codec == ROW_ID) {
            exact_table_row(&model->talker.codec_embedding, rows[i].id, want);
        }
        for (int j = 0; rows[i].codec == ROW_CODES && j < c->n_codebooks; j++) {
            exact_table_row(j ? &model->predictor.embedding[j - 1] : &model->talker.codec_embedding,
                rows[i].codes[j], want);
        }
        for (int j = 0; j < c->talker.width; j++) {
            want[j] += rows[i].codec == ROW_VECTOR ? (double)rows[i].vector[j] : 0;
            assert_true(fabs((double)look->prompt[i * c->talker.width + j] - want[j]) < 2e-5);
        }
    }
    cpu->close(&b);
    free(look);
    model_close(&model);
}

/* Forced codes lead the lane; what it would have chosen is still told. */
static void test_forced(void **state)
{
    (void)state;
    struct model *model = open_model(MODEL);
    const struct config *c = model->config;
    struct result *alone = run_alone(model, 1, 1);
    struct backend *b = open_backend(model, 2, 1);
    struct lane_out free_out, forced_out;
    int32_t other[MAX_CODEBOOKS];
    start(b, c, 0, 1);
    start(b, c, 1, 1);
    int n_other = 0;
    for (int t = 0; t < N_FRAMES; t++) { /* forced to what it chooses: nothing changes */
        struct frame_in in[] = {{0, text_of(c, 1, t), alone->codes[t]}};
        assert_int_equal(cpu->frame(b, in, 1, NULL), UTTER_OK);
        assert_int_equal(cpu->collect(b, 0, &forced_out, NULL), UTTER_OK);
        assert_memory_equal(
            forced_out.codes, alone->codes[t], (size_t)c->n_codebooks * sizeof(int32_t));
    }
    for (int t = 0; t < N_FRAMES;
         t++) { /* forced elsewhere: code 0 of frame 0 is still its own, then it drifts */
        for (int j = 0; j < c->n_codebooks; j++) {
            other[j] = (alone->codes[t][j] + 1 + j) % c->predictor_vocabulary;
        }
        struct frame_in in[] = {{1, text_of(c, 1, t), other}};
        assert_int_equal(cpu->frame(b, in, 1, NULL), UTTER_OK);
        assert_int_equal(cpu->collect(b, 1, &free_out, NULL), UTTER_OK);
        assert_int_equal(free_out.n_frames, 1);
        if (t == 0) {
            assert_int_equal(free_out.codes[0], alone->codes[0][0]);
        }
        n_other += memcmp(free_out.codes + 1, alone->codes[t] + 1,
                       (size_t)(c->n_codebooks - 1) * sizeof(int32_t)) != 0;
    }
    assert_int_equal(n_other, N_FRAMES);
    cpu->close(&b);
    free(alone);
    model_close(&model);
}

/* The end token: not before min_frames, then at once; no codes with it, and no frame after it. Under force
 * it is only told. */
static void test_end(void **state)
{
    (void)state;
    struct model *model = open_model("build/checkpoints/eos-first");
    const struct config *c = model->config;
    struct backend *b = open_backend(model, 1, 1);
    struct lane_settings greedy = {.talker = {0, 0, 1, 1}, .predictor = {0, 0, 1, 1}, .min_frames = 3};
    struct row rows[4];
    struct lane_out out;
    int lane = 0;
    make_rows(c, 1, rows, 4);
    struct frame_in in = {0, c->tts_pad, NULL};
    assert_int_equal(cpu->lane_reset(b, 0, &greedy, NULL), UTTER_OK);
    assert_int_equal(cpu->prefill(b, 0, rows, 4, NULL), UTTER_OK);
    for (int t = 0; t < 4; t++) {
        assert_int_equal(cpu->frame(b, &in, 1, NULL), UTTER_OK);
        assert_int_equal(cpu->vocode(b, &lane, 1, NULL), UTTER_OK);
        assert_int_equal(cpu->collect(b, 0, &out, NULL), UTTER_OK);
        assert_int_equal(out.end, t == 3);
        assert_int_equal(out.n_frames, t < 3);
        assert_int_equal(out.n_samples, t < 3 ? c->codec.frame_samples : 0);
        assert_true((out.pcm != NULL) == (t < 3));
    }
    assert_int_equal(cpu->frame(b, &in, 1, NULL), UTTER_E_ARGUMENT);
    greedy.min_frames = 0;
    int32_t forced[MAX_CODEBOOKS] = {0};
    in.forced = forced;
    assert_int_equal(cpu->lane_reset(b, 0, &greedy, NULL), UTTER_OK);
    assert_int_equal(cpu->prefill(b, 0, rows, 4, NULL), UTTER_OK);
    assert_int_equal(cpu->frame(b, &in, 1, NULL), UTTER_OK);
    assert_int_equal(cpu->collect(b, 0, &out, NULL), UTTER_OK);
    assert_false(out.end);
    assert_int_equal(out.codes[0], c->codec_eos);
    cpu->close(&b);
    model_close(&model);
}

static void test_not_a_number(void **state)
{
    (void)state;
    struct model *model = open_model("build/checkpoints/nan-scores");
    struct backend *b = open_backend(model, 1, 1);
    struct row rows[4];
    struct lane_out out;
    make_rows(model->config, 1, rows, 4);
    struct frame_in in = {0, model->config->tts_pad, NULL};
    assert_int_equal(cpu->lane_reset(b, 0, &SETTINGS, NULL), UTTER_OK);
    assert_int_equal(cpu->prefill(b, 0, rows, 4, NULL), UTTER_OK);
    assert_int_equal(cpu->frame(b, &in, 1, NULL), UTTER_OK);
    assert_int_equal(cpu->collect(b, 0, &out, NULL), UTTER_OK);
    assert_true(out.not_a_number);
    assert_true(out.codes[0] >= 0 && out.codes[0] < model->config->codec_vocabulary);
    cpu->close(&b);
    model_close(&model);
}

/* Known codes give the sound that the same codes gave as frames, in any portions. */
static void test_feed(void **state)
{
    (void)state;
    struct model *model = open_model(MODEL);
    const struct config *c = model->config;
    struct result *alone = run_alone(model, 1, 1);
    struct backend *b = open_backend(model, 1, 2);
    int lane = 0;
    static const int PORTIONS[][3] = {{N_FRAMES, 0, 0}, {1, 2, N_FRAMES - 3}};
    int32_t codes[N_FRAMES * MAX_CODEBOOKS];
    for (int t = 0; t < N_FRAMES; t++) {
        memcpy(codes + t * c->n_codebooks, alone->codes[t], (size_t)c->n_codebooks * sizeof *codes);
    }
    for (int p = 0; p < 2; p++) {
        assert_int_equal(cpu->lane_reset(b, 0, &SETTINGS, NULL), UTTER_OK);
        for (int i = 0, at = 0; i < 3 && PORTIONS[p][i]; at += PORTIONS[p][i++]) {
            struct lane_out out;
            int n = PORTIONS[p][i];
            assert_int_equal(cpu->feed(b, 0, codes + at * c->n_codebooks, n, NULL), UTTER_OK);
            assert_int_equal(cpu->vocode(b, &lane, 1, NULL), UTTER_OK);
            assert_int_equal(cpu->collect(b, 0, &out, NULL), UTTER_OK);
            assert_int_equal(out.n_frames, n);
            assert_memory_equal(
                out.codes, codes + at * c->n_codebooks, (size_t)(n * c->n_codebooks) * sizeof *codes);
            assert_int_equal(out.n_samples, n * c->codec.frame_samples);
            assert_memory_equal(
                out.pcm, alone->pcm + at * c->codec.frame_samples, out.n_samples * sizeof(float));
        }
    }
    cpu->close(&b);
    free(alone);
    model_close(&model);
}

/* Nothing is allocated from the first frame on. */
static void test_no_allocation(void **state)
{
    (void)state;
    struct model *model = open_model(MODEL);
    struct backend *b = open_backend(model, 1, 2);
    struct result *results = calloc(4, sizeof *results);
    int lane = 0, kind = 1;
    start(b, model->config, lane, kind);
    long before = support_calls(SUPPORT_MALLOC) + support_calls(SUPPORT_MMAP);
    for (int t = 0; t < N_FRAMES; t++) {
        step(b, model->config, &lane, &kind, 1, t, results);
    }
    assert_int_equal(support_calls(SUPPORT_MALLOC) + support_calls(SUPPORT_MMAP), before);
    cpu->close(&b);
    free(results);
    model_close(&model);
}

/* The configs that are unlike the others run too. */
static void test_shapes(void **state)
{
    (void)state;
    static const char *const FOLDERS[] = {
        "build/checkpoints/tiny06-custom_voice", "build/checkpoints/unusual"};
    for (int i = 0; i < 2; i++) {
        struct model *model = open_model(FOLDERS[i]);
        struct result *one = run_alone(model, 1, 1), *two = run_alone(model, 1, 2);
        assert_memory_equal(one, two, sizeof *one);
        free(one);
        free(two);
        model_close(&model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_neighbours),
        cmocka_unit_test(test_reset),
        cmocka_unit_test(test_long_lane_rests),
        cmocka_unit_test(test_prefill_pieces),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_forced),
        cmocka_unit_test(test_end),
        cmocka_unit_test(test_not_a_number),
        cmocka_unit_test(test_feed),
        cmocka_unit_test(test_no_allocation),
        cmocka_unit_test(test_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
