/* SPDX-License-Identifier: Apache-2.0
 * What the vocoder computes: samples and the transformer's output against the reference in double; and for
 * each rule that is easily got wrong, that a reference with the wrong rule is far from what we make. */
#include <stdio.h>

#include "base/threads.h"
#include "cpu/vocoder/vocoder.h"
#include "tests/cpu/random.h"
#include "tests/cpu/vocoder_reference.h"
#include "tests/support.h"

static const char *const TABLES[] = {
    "c", "avx2", "avxvnni", "avx512", "avx512vnni", "amx", "neon", "dotprod", "i8mm"};
enum { N_TABLES = sizeof TABLES / sizeof *TABLES, MOST_FRAMES = 90 };

struct setting {
    struct model *model;
    struct pool *pool;
    int32_t *codes; /* [MOST_FRAMES][n_codebooks] */
    float *pcm, *stack;
    bool finite;
    int64_t n_stack; /* floats of `stack` so far */
};

static void keep_stack(
    void *user, const char *name, int index, const float *data, int64_t rows, int64_t cols)
{
    struct setting *s = user;
    (void)index;
    if (strcmp(name, "vocoder.stack") == 0) {
        memcpy(s->stack + s->n_stack, data, (size_t)(rows * cols) * sizeof *data);
        s->n_stack += rows * cols;
    }
}

static struct setting setting_open(const char *checkpoint)
{
    struct setting s = {0};
    char path[256];
    snprintf(path, sizeof path, "build/checkpoints/%s", checkpoint);
    assert_int_equal(model_open(&s.model, path, NULL), UTTER_OK);
    s.pool = pool_new(2);
    assert_non_null(s.pool);
    const struct codec_config *d = &s.model->config->codec;
    struct random random = {3, 0};
    s.codes = malloc(sizeof *s.codes * (size_t)(MOST_FRAMES * d->n_codebooks));
    for (int i = 0; i < MOST_FRAMES * d->n_codebooks; i++) {
        s.codes[i] = (int32_t)(random_word(&random) % (uint32_t)d->codebook_size);
    }
    s.pcm = malloc(sizeof *s.pcm * (size_t)(MOST_FRAMES * d->frame_samples));
    s.stack = malloc(sizeof *s.stack * (size_t)(MOST_FRAMES * d->latent));
    return s;
}

static void setting_close(struct setting *s)
{
    model_close(&s->model);
    pool_free(s->pool);
    free(s->codes);
    free(s->pcm);
    free(s->stack);
}

/* n frames from the start, in calls of `step`. */
static void run(struct setting *s, const struct kern *kern, int n, int step)
{
    const struct codec_config *d = &s->model->config->codec;
    struct cpu_vocoder *v;
    assert_int_equal(cpu_vocoder_open(&v, s->model, kern, s->pool, NULL), UTTER_OK);
    struct cpu_vocoder_lane *lane = cpu_vocoder_lane_new(v);
    assert_non_null(lane);
    struct cpu_tap tap = {keep_stack, s};
    s->finite = true;
    s->n_stack = 0;
    for (int t = 0; t < n; t += step) {
        int count = n - t < step ? n - t : step;
        if (!cpu_vocoder_run(
                v, lane, s->codes + t * d->n_codebooks, count, s->pcm + t * d->frame_samples, &tap)) {
            s->finite = false;
        }
    }
    cpu_vocoder_lane_free(lane);
    cpu_vocoder_close(&v);
}

struct distance {
    double stack, pcm; /* largest difference over the root mean square of the reference */
};

static double largest(const float *got, const double *want, int64_t n, bool clamped)
{
    double most = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) {
        double v = clamped ? fmin(fmax(want[i], -1), 1) : want[i];
        most = fmax(most, fabs((double)got[i] - v));
        squares += v * v;
    }
    return most / sqrt(squares / (double)n);
}

static struct distance distance_to(const struct setting *s, const struct reference_rules *rules, int n)
{
    const struct codec_config *d = &s->model->config->codec;
    struct reference_out want = reference_run(s->model, rules, s->codes, n);
    struct distance far = {largest(s->stack, want.stack, (int64_t)n * d->latent, false), NAN};
    if (want.pcm) {
        far.pcm = largest(s->pcm, want.pcm, (int64_t)n * d->frame_samples, true);
    }
    reference_free(&want);
    return far;
}

/* Rounding in fp32 moves samples by some 1e-4 of the signal (the official decoder in fp32 is as far from
 * itself in fp64), the transformer's output by some 1e-6. */
static const double PCM_CLOSE = 1e-3, STACK_CLOSE = 1e-5;

static void close_to_the_reference(const char *checkpoint, int n)
{
    struct setting s = setting_open(checkpoint);
    struct reference_rules rules = reference_rules_of(s.model);
    for (int i = 0; i < N_TABLES; i++) {
        const struct kern *kern = kern_find(TABLES[i]);
        if (!kern) {
            continue;
        }
        run(&s, kern, n, 7);
        struct distance far = distance_to(&s, &rules, n);
        printf("%s %s: stack %.2g pcm %.2g\n", checkpoint, kern->name, far.stack, far.pcm);
        assert_true(s.finite);
        assert_true(far.stack < STACK_CLOSE);
        assert_true(far.pcm < PCM_CLOSE);
    }
    setting_close(&s);
}

static void samples_are_right(void **state)
{
    (void)state;
    close_to_the_reference("tiny06-custom_voice", SUPPORT_SANITIZED ? 10 : 80);
}

static void samples_of_an_unusual_shape_are_right(void **state)
{
    (void)state;
    close_to_the_reference("unusual", SUPPORT_SANITIZED ? 12 : 25); /* its window is 9 */
}

/* ---- Rules ---- */

/* Opens a checkpoint, checks that we agree with `right`, and that the reference with `wrong` is far away. */
#define WRONG(checkpoint, n, stage, bend)                                                              \
    do {                                                                                               \
        struct setting s = setting_open(checkpoint);                                                   \
        run(&s, kern_find(NULL), n, 25);                                                               \
        struct reference_rules rules = reference_rules_of(s.model);                                    \
        rules.stack_only = !stage##_is_pcm;                                                            \
        struct distance right = distance_to(&s, &rules, n);                                            \
        bend;                                                                                          \
        struct distance wrong = distance_to(&s, &rules, n);                                            \
        printf("%s %s: right %.2g %.2g, wrong %.2g %.2g\n", checkpoint, #bend, right.stack, right.pcm, \
            wrong.stack, wrong.pcm);                                                                   \
        assert_true(right.stage < (stage##_is_pcm ? PCM_CLOSE : STACK_CLOSE));                         \
        assert_true(wrong.stage > 5 * (stage##_is_pcm ? PCM_CLOSE : STACK_CLOSE));                     \
        setting_close(&s);                                                                             \
    } while (0)
enum { stack_is_pcm = 0, pcm_is_pcm = 1 };

static void the_window_is_exact(void **state)
{
    (void)state;
    WRONG("tiny06-custom_voice", 80, stack, rules.window = 71);
    WRONG("tiny06-custom_voice", 80, stack, rules.window = 73);
    WRONG("unusual", 25, stack, rules.window = 8);
    WRONG("unusual", 25, stack, rules.window = 10);
}

static void empty_slots_take_no_part(void **state)
{
    (void)state;
    WRONG("tiny06-custom_voice", 20, stack, rules.empty_slots = true);
}

static void norms_have_their_epsilon(void **state)
{
    (void)state;
    WRONG("quiet", 20, stack, rules.stack_eps = 1e-6);
}

static void branches_are_scaled(void **state)
{
    (void)state;
    WRONG("tiny06-custom_voice", 20, stack, rules.scaled = false);
}

static void usage_is_clamped_at_1e5(void **state)
{
    (void)state;
    WRONG("rare-codes", 20, stack, rules.usage_least = 1e-4);
    WRONG("rare-codes", 20, stack, rules.usage_least = 1e-6);
}

static void tables_keep_their_order(void **state)
{
    (void)state;
    WRONG("tiny06-custom_voice", 20, stack, rules.swapped_tables = true);
}

static void snake_has_its_least(void **state)
{
    (void)state;
    WRONG("snake", 10, pcm, rules.snake_least = 0);
}

static void snake_takes_logarithms(void **state)
{
    (void)state;
    WRONG("tiny06-custom_voice", 10, pcm, rules.snake_exp = false);
}

static void surplus_is_cut_on_the_right(void **state)
{
    (void)state;
    WRONG("tiny06-custom_voice", 10, pcm, rules.cut_left = true);
}

static void gelu_is_exact(void **state)
{
    (void)state;
    WRONG("tiny06-custom_voice", 10, pcm, rules.tanh_gelu = true);
}

/* The depthwise convolutions made so weak that the variance behind them is near the epsilon. */
static void layer_norm_has_its_epsilon(void **state)
{
    (void)state;
    struct setting s = setting_open("tiny06-custom_voice");
    const struct codec_config *d = &s.model->config->codec;
    enum { N = 10 };
    float *weak[CONFIG_MAX_RATES];
    for (int i = 0; i < d->n_ratios; i++) {
        struct conv_weights *w = &s.model->vocoder.upsample[i].depthwise;
        int64_t n = w->w.rows * w->w.cols;
        weak[i] = malloc((size_t)n * sizeof(float));
        for (int64_t k = 0; k < n; k++) {
            weak[i][k] = ((const float *)w->w.data)[k] * 1e-3f;
        }
        w->w.data = weak[i];
        for (int64_t c = 0; c < w->w.rows; c++) {
            w->bias[c] *= 1e-3f;
        }
    }
    run(&s, kern_find(NULL), N, 3);
    struct reference_rules rules = reference_rules_of(s.model);
    assert_true(distance_to(&s, &rules, N).pcm < PCM_CLOSE);
    rules.layer_norm_eps = 1e-5;
    assert_true(distance_to(&s, &rules, N).pcm > 5 * PCM_CLOSE);
    rules.layer_norm_eps = 1e-7;
    assert_true(distance_to(&s, &rules, N).pcm > 5 * PCM_CLOSE);
    for (int i = 0; i < d->n_ratios; i++) {
        free(weak[i]);
    }
    setting_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_right),
        cmocka_unit_test(samples_of_an_unusual_shape_are_right),
        cmocka_unit_test(the_window_is_exact),
        cmocka_unit_test(empty_slots_take_no_part),
        cmocka_unit_test(norms_have_their_epsilon),
        cmocka_unit_test(branches_are_scaled),
        cmocka_unit_test(usage_is_clamped_at_1e5),
        cmocka_unit_test(tables_keep_their_order),
        cmocka_unit_test(snake_has_its_least),
        cmocka_unit_test(snake_takes_logarithms),
        cmocka_unit_test(surplus_is_cut_on_the_right),
        cmocka_unit_test(gelu_is_exact),
        cmocka_unit_test(layer_norm_has_its_epsilon),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
