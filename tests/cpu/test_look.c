/* SPDX-License-Identifier: Apache-2.0
 * Watched heads: their scores are those of the definition, over the rows that were asked for, and nothing else
 * changes. */
#include "tests/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/numeric.h"
#include "tests/cpu/backend_run.h"

enum { BEGIN = 7, END = 40, N_WATCHED = 3 };

/* What goes into the last layer, for each position of one lane. */
struct inputs {
    float *x; /* [N_ROWS + N_FRAMES][width] */
    int64_t n, width;
    int layer;
};

static void keep_inputs(
    void *user, const char *name, int index, const float *data, int64_t rows, int64_t cols)
{
    struct inputs *in = user;
    if (strcmp(name, "talker.layer") == 0 && index == in->layer - 1) {
        memcpy(in->x + in->n * cols, data, (size_t)(rows * cols) * sizeof *data);
        in->n += rows;
    }
}

static double weight_at(const struct weight *w, int64_t row, int64_t k)
{
    return (double)bf16_to_float(((const uint16_t *)w->data)[row * w->cols + k]);
}

/* A head's query or key at a position: norm, product, norm, rotation, in doubles. */
static void vector_of(const struct model *model, const struct inputs *in, int64_t position,
    const struct weight *w, const float *head_norm, int head, double *out)
{
    const struct stack_config *s = &model->config->talker;
    const struct layer_weights *layer = &model->talker.stack.layers[in->layer];
    const float *x = in->x + position * in->width;
    double square = 0, head_square = 0;
    for (int64_t i = 0; i < in->width; i++) {
        square += (double)x[i] * (double)x[i];
    }
    double scale = 1 / sqrt(square / (double)in->width + (double)s->norm_eps);
    for (int r = 0; r < s->head; r++) {
        out[r] = 0;
        for (int64_t k = 0; k < in->width; k++) {
            out[r] += weight_at(w, (int64_t)head * s->head + r, k) * (double)x[k] * scale *
                      (double)layer->input_norm[k];
        }
        head_square += out[r] * out[r];
    }
    double head_scale = 1 / sqrt(head_square / s->head + (double)s->norm_eps);
    for (int r = 0; r < s->head; r++) {
        out[r] *= head_scale * (double)head_norm[r];
    }
    for (int r = 0; r < s->head / 2; r++) {
        double angle = (double)position * (double)config_rotary(s, r), a = out[r];
        double b = out[r + s->head / 2];
        out[r] = a * cos(angle) - b * sin(angle);
        out[r + s->head / 2] = b * cos(angle) + a * sin(angle);
    }
}

static double score_of(
    const struct model *model, const struct inputs *in, int head, int64_t position, int64_t row)
{
    const struct stack_config *s = &model->config->talker;
    const struct layer_weights *layer = &model->talker.stack.layers[in->layer];
    double q[256], k[256], sum = 0;
    vector_of(model, in, position, &layer->q, layer->q_norm, head, q);
    vector_of(model, in, row, &layer->k, layer->k_norm, head / (s->n_heads / s->n_kv_heads), k);
    for (int i = 0; i < s->head; i++) {
        sum += q[i] * k[i];
    }
    return sum / sqrt((double)s->head);
}

static void frame(struct backend *b, const struct config *c, int t, struct lane_out *out)
{
    struct frame_in in = {0, text_of(c, 0, t), NULL};
    assert_int_equal(cpu->frame(b, &in, 1, NULL), UTTER_OK);
    assert_int_equal(cpu->collect(b, 0, out, NULL), UTTER_OK);
}

/* The last layer is compared, where every head may be wrong in its own way; others are watched beside it. */
static void test_scores(void **state)
{
    (void)state;
    struct model *model = open_model(MODEL);
    const struct config *c = model->config;
    const struct stack_config *s = &c->talker;
    struct backend *b = open_backend(model, 1, 2);
    struct inputs in = {.width = s->width, .layer = s->n_layers - 1};
    in.x = calloc((size_t)((N_ROWS + N_FRAMES) * s->width), sizeof *in.x);
    const struct talker_head heads[N_WATCHED] = {{0, 1}, {in.layer, s->n_heads - 1}, {in.layer, 0}};
    struct row rows[N_ROWS];
    make_rows(c, 0, rows, N_ROWS);
    cpu->tap(b, keep_inputs, &in);
    assert_int_equal(cpu->watch(b, heads, N_WATCHED, NULL), UTTER_OK);
    assert_int_equal(cpu->lane_reset(b, 0, &SETTINGS, NULL), UTTER_OK);
    assert_int_equal(cpu->look(b, 0, BEGIN, N_ROWS + 2, NULL), UTTER_OK);
    assert_int_equal(cpu->prefill(b, 0, rows, N_ROWS, NULL), UTTER_OK);
    for (int t = 0; t < N_FRAMES; t++) {
        struct lane_out out;
        frame(b, c, t, &out);
        int n = N_ROWS + (t < 2 ? t : 2) - BEGIN; /* as far as the lane has them */
        assert_int_equal(out.n_scores, n);
        for (int h = 1; h < N_WATCHED; h++) {
            for (int i = 0; i < n; i += 13) {
                double wanted = score_of(model, &in, heads[h].head, N_ROWS - 1 + t, BEGIN + i);
                assert_true(fabs((double)out.scores[h * n + i] - wanted) < 1e-3 * (1 + fabs(wanted)));
            }
        }
    }
    cpu->close(&b);
    free(in.x);
    model_close(&model);
}

/* Codes with and without, to the bit; a lane that looks at nothing beside it tells nothing. */
static void test_same_codes(void **state)
{
    (void)state;
    struct model *model = open_model(MODEL);
    const struct config *c = model->config;
    const struct talker_head heads[] = {{0, 0}, {c->talker.n_layers - 1, 1}};
    int32_t codes[2][N_FRAMES * MAX_CODEBOOKS];
    for (int watched = 0; watched < 2; watched++) {
        struct backend *b = open_backend(model, 2, 2);
        assert_int_equal(cpu->watch(b, heads, watched ? 2 : 0, NULL), UTTER_OK);
        struct row rows[N_ROWS];
        make_rows(c, 0, rows, N_ROWS);
        for (int lane = 0; lane < 2; lane++) {
            assert_int_equal(cpu->lane_reset(b, lane, &SETTINGS, NULL), UTTER_OK);
            if (lane == 0) {
                assert_int_equal(cpu->look(b, lane, BEGIN, END, NULL), UTTER_OK);
            }
            assert_int_equal(cpu->prefill(b, lane, rows, N_ROWS, NULL), UTTER_OK);
        }
        for (int t = 0; t < N_FRAMES; t++) {
            struct frame_in in[] = {{0, text_of(c, 0, t), NULL}, {1, text_of(c, 0, t), NULL}};
            struct lane_out out[2];
            assert_int_equal(cpu->frame(b, in, 2, NULL), UTTER_OK);
            for (int lane = 0; lane < 2; lane++) {
                assert_int_equal(cpu->collect(b, lane, &out[lane], NULL), UTTER_OK);
            }
            assert_null(out[1].scores);
            assert_true((out[0].scores != NULL) == (watched == 1));
            assert_int_equal(out[0].n_scores, watched ? END - BEGIN : 0);
            size_t n = (size_t)c->n_codebooks;
            assert_memory_equal(out[0].codes, out[1].codes, n * sizeof *out[0].codes);
            memcpy(codes[watched] + (size_t)t * n, out[0].codes, n * sizeof *out[0].codes);
        }
        cpu->close(&b);
    }
    assert_memory_equal(codes[0], codes[1], (size_t)(N_FRAMES * c->n_codebooks) * sizeof codes[0][0]);
    model_close(&model);
}

struct logits {
    const float *at; /* of the newest position */
    int64_t n;
};

static void keep_logits(
    void *user, const char *name, int index, const float *data, int64_t rows, int64_t cols)
{
    struct logits *logits = user;
    if (strcmp(name, "talker.logits") == 0) {
        *logits = (struct logits){data, cols};
    }
    (void)index;
    (void)rows;
}

/* By the definition, in doubles. */
static double log_p_of(const struct config *c, const struct logits *logits, int32_t code, double *usual)
{
    double sum = 0, mean = 0;
    for (int i = 0; i < logits->n; i++) {
        bool may_be_chosen = i < config_suppress_from(c) || i == c->codec_eos;
        sum += may_be_chosen ? exp((double)logits->at[i]) : 0;
        mean += may_be_chosen ? exp((double)logits->at[i]) * (double)logits->at[i] : 0;
    }
    *usual = mean / sum - log(sum);
    return (double)logits->at[code] - log(sum);
}

/* How likely each code was is what the logits say; the same codes read as rows, in pieces, are as likely. */
static void test_weighed(void **state)
{
    (void)state;
    struct model *model = open_model(MODEL);
    const struct config *c = model->config;
    const struct talker_head head = {0, 0};
    struct backend *b = open_backend(model, 1, 2);
    struct row rows[N_ROWS + N_FRAMES];
    int32_t codes[N_FRAMES * MAX_CODEBOOKS], behind[N_ROWS + N_FRAMES];
    struct likelihood made[N_FRAMES], weighed[N_ROWS + N_FRAMES];
    const struct likelihood none = {7, 8};
    struct logits logits;
    make_rows(c, 0, rows, N_ROWS);
    cpu->tap(b, keep_logits, &logits);
    assert_int_equal(cpu->watch(b, &head, 1, NULL), UTTER_OK);
    assert_int_equal(cpu->lane_reset(b, 0, &SETTINGS, NULL), UTTER_OK);
    assert_int_equal(cpu->look(b, 0, BEGIN, END, NULL), UTTER_OK);
    assert_int_equal(cpu->prefill(b, 0, rows, N_ROWS, NULL), UTTER_OK);
    for (int t = 0; t < N_FRAMES; t++) {
        struct lane_out out;
        double usual;
        int32_t *own = codes + (ptrdiff_t)t * c->n_codebooks;
        frame(b, c, t, &out);
        memcpy(own, out.codes, (size_t)c->n_codebooks * sizeof *own);
        made[t] = out.likelihood;
        assert_true(fabs((double)made[t].log_p - log_p_of(c, &logits, own[0], &usual)) < 1e-4);
        assert_true(fabs((double)made[t].usual_log_p - usual) < 1e-4);
        if (t + 1 < N_FRAMES) {
            rows[N_ROWS + t] =
                (struct row){.text = text_of(c, 0, t + 1), .codec = ROW_CODES, .codes = own};
        }
    }
    const int n = N_ROWS + N_FRAMES - 1;
    for (int i = 0; i < n; i++) {
        int t = i - (N_ROWS - 1); /* chosen behind this row */
        behind[i] = t < 0 || t % 3 == 1 ? -1 : codes[(ptrdiff_t)t * c->n_codebooks];
        weighed[i] = none;
    }
    assert_int_equal(cpu->lane_reset(b, 0, &SETTINGS, NULL), UTTER_OK);
    for (int done = 0, some; done < n; done += some) {
        some = n - done < 20 ? n - done : 20;
        assert_int_equal(
            cpu->weigh(b, 0, rows + done, some, behind + done, weighed + done, NULL), UTTER_OK);
    }
    for (int i = 0; i < n; i++) {
        struct likelihood wanted = behind[i] < 0 ? none : made[i - (N_ROWS - 1)];
        assert_true(fabsf(weighed[i].log_p - wanted.log_p) < 1e-4f);
        assert_true(fabsf(weighed[i].usual_log_p - wanted.usual_log_p) < 1e-4f);
    }
    behind[0] = c->codec_vocabulary;
    assert_int_equal(cpu->lane_reset(b, 0, &SETTINGS, NULL), UTTER_OK);
    assert_int_equal(cpu->weigh(b, 0, rows, 1, behind, weighed, NULL), UTTER_E_ARGUMENT);
    assert_int_equal(cpu->weigh(b, 1, rows, 1, behind + 1, weighed, NULL), UTTER_E_ARGUMENT);
    cpu->close(&b);
    model_close(&model);
}

/* The planted heads of the checkpoint look LAG rows back (tools/maker/craft.c): of every lane at every frame the
 * largest score is there, whoever shares the pass. */
static void test_planted(void **state)
{
    (void)state;
    enum { LAG = 6, MOST = 64, ROWS = 20 };
    struct model *model = open_model("build/checkpoints/follows");
    const struct config *c = model->config;
    const int last = c->talker.n_layers - 1;
    const struct talker_head heads[] = {{0, 1}, {last, c->talker.n_heads - 1}};
    static const int n_lanes[] = {1, 7, MOST};
    for (size_t k = 0; k < sizeof n_lanes / sizeof *n_lanes - SUPPORT_SANITIZED; k++) {
        struct backend *b = open_backend(model, n_lanes[k], 2);
        assert_int_equal(cpu->watch(b, heads, 2, NULL), UTTER_OK);
        for (int lane = 0; lane < n_lanes[k]; lane++) {
            struct row rows[ROWS];
            for (int i = 0; i < ROWS; i++) {
                rows[i] = (struct row){.text = (lane * 5 + i * 3) % 200, .codec = ROW_NONE};
            }
            assert_int_equal(cpu->lane_reset(b, lane, &SETTINGS, NULL), UTTER_OK);
            assert_int_equal(cpu->look(b, lane, 2, ROWS + N_FRAMES, NULL), UTTER_OK);
            assert_int_equal(cpu->prefill(b, lane, rows, ROWS - lane % 5, NULL), UTTER_OK);
        }
        for (int t = 0; t < N_FRAMES; t++) {
            struct frame_in in[MOST];
            for (int lane = 0; lane < n_lanes[k]; lane++) {
                in[lane] = (struct frame_in){lane, 7 + t, NULL};
            }
            assert_int_equal(cpu->frame(b, in, n_lanes[k], NULL), UTTER_OK);
            for (int lane = 0; lane < n_lanes[k]; lane++) {
                struct lane_out out;
                assert_int_equal(cpu->collect(b, lane, &out, NULL), UTTER_OK);
                const int position = ROWS - lane % 5 - 1 + t;
                assert_int_equal(out.n_scores, position + 1 - 2);
                for (int h = 0; h < 2; h++) {
                    const float *scores = out.scores + h * out.n_scores;
                    int best = 0;
                    for (int i = 1; i < out.n_scores; i++) {
                        best = scores[i] > scores[best] ? i : best;
                    }
                    assert_int_equal(best + 2, position - LAG);
                }
            }
        }
        cpu->close(&b);
    }
    model_close(&model);
}

static void test_refused(void **state)
{
    (void)state;
    struct model *model = open_model(MODEL);
    const struct stack_config *s = &model->config->talker;
    struct backend *b = open_backend(model, 1, 1);
    const struct talker_head none[] = {{s->n_layers, 0}}, neither[] = {{0, s->n_heads}};
    assert_int_equal(cpu->watch(b, none, 1, NULL), UTTER_E_ARGUMENT);
    assert_int_equal(cpu->watch(b, neither, 1, NULL), UTTER_E_ARGUMENT);
    assert_int_equal(cpu->look(b, 1, 0, 1, NULL), UTTER_E_ARGUMENT);
    assert_int_equal(cpu->look(b, 0, 5, 4, NULL), UTTER_E_ARGUMENT);
    assert_int_equal(cpu->look(b, 0, 0, N_ROWS + 2 * N_FRAMES + 1, NULL), UTTER_E_ARGUMENT);
    cpu->close(&b);
    model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scores),
        cmocka_unit_test(test_same_codes),
        cmocka_unit_test(test_weighed),
        cmocka_unit_test(test_planted),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
