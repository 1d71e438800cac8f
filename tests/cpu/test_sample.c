/* SPDX-License-Identifier: Apache-2.0
 * The choice of a code: each processor alone, their order, ties, hopeless logits; and a million draws
 * against the probabilities that the official pipeline gives for the same logits (golden file). */
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/threads.h"
#include "cpu/talker/sample.h"
#include "tests/cpu/random.h"
#include "weights/safetensors.h"

enum { MAX = 4096, N_PARTS = 16 };

/* Greedy, nothing suppressed, no penalty. */
static struct sample_in plain(const float *logits, int n, utter_sampling *s)
{
    *s = (utter_sampling){0, 0, 1, 1};
    return (struct sample_in){.logits = logits, .n = n, .sampling = s, .suppress_from = n, .keep = -1};
}

static int choose(const struct sample_in *in, bool *bad)
{
    float scores[MAX];
    int32_t order[MAX];
    *bad = false;
    return sample_choose(in, scores, order, bad);
}

static int choose_well(const struct sample_in *in)
{
    bool bad;
    int id = choose(in, &bad);
    assert_false(bad);
    return id;
}

static void probabilities(const struct sample_in *in, double *out)
{
    float scores[MAX];
    int32_t order[MAX];
    sample_probabilities(in, scores, order, out);
}

static void test_greedy(void **state)
{
    (void)state;
    float logits[] = {-3, 2, 5, 5, 1};
    utter_sampling s;
    struct sample_in in = plain(logits, 5, &s);
    assert_int_equal(choose_well(&in), 2); /* a tie goes to the lowest id */
    logits[3] = 5.0001f;
    assert_int_equal(choose_well(&in), 3);
    s.top_k = 1, s.top_p = 0.1f; /* nothing to do with greed */
    assert_int_equal(choose_well(&in), 3);
}

static void test_penalty(void **state)
{
    (void)state;
    float logits[] = {4, 3.9f, -1, -1.01f};
    uint8_t seen[] = {1, 0, 0, 0};
    utter_sampling s;
    struct sample_in in = plain(logits, 4, &s);
    in.seen = seen;
    s.repetition_penalty = 1.05f;
    assert_int_equal(choose_well(&in), 1); /* 4 / 1.05 < 3.9 */
    assert_true(logits[0] == 4);
    float below[] = {-1, -1.01f}; /* a score below zero is multiplied: it becomes less */
    in = plain(below, 2, &s);
    in.seen = seen;
    s.repetition_penalty = 1.05f;
    assert_int_equal(choose_well(&in), 1);
    s.repetition_penalty = 1.005f;
    assert_int_equal(choose_well(&in), 0);
}

static void test_suppression(void **state)
{
    (void)state;
    float logits[] = {1, 2, 3, 9, 8, 10};
    utter_sampling s;
    struct sample_in in = plain(logits, 6, &s);
    in.suppress_from = 3;
    assert_int_equal(choose_well(&in), 2);
    in.keep = 4;
    assert_int_equal(choose_well(&in), 4);
    in.keep_blocked = true;
    assert_int_equal(choose_well(&in), 2);
    in.suppress_from = 0;
    bool bad;
    int id = choose(&in, &bad); /* nothing is left */
    assert_true(bad && id >= 0 && id < 6);
}

static void test_not_a_number(void **state)
{
    (void)state;
    static const float BAD[] = {NAN, INFINITY};
    for (int i = 0; i < 2; i++) {
        for (int temperature = 0; temperature < 2; temperature++) {
            float logits[] = {1, BAD[i], 3, 2};
            utter_sampling s;
            struct sample_in in = plain(logits, 4, &s);
            s.temperature = (float)temperature;
            s.top_k = 2;
            bool bad;
            int id = choose(&in, &bad);
            assert_true(bad && id >= 0 && id < 4 && id != 1);
        }
    }
    float hopeless[] = {NAN, NAN, -INFINITY}, fine[] = {1, -INFINITY};
    utter_sampling s;
    struct sample_in in = plain(hopeless, 3, &s);
    bool bad;
    int id = choose(&in, &bad);
    assert_true(bad && id >= 0 && id < 3);
    in = plain(fine, 2, &s); /* minus infinity is a score like others: it cannot win */
    s.temperature = 1;
    assert_int_equal(choose_well(&in), 0);
}

/* Where nothing can be chosen, the draws and the probabilities agree about which id it is then, greedy or not. */
static void test_hopeless(void **state)
{
    static const float logits[] = {-INFINITY, NAN, -INFINITY};
    (void)state;
    for (int temperature = 0; temperature < 2; temperature++) {
        double p[3] = {7, 7, 7};
        utter_sampling s;
        bool bad;
        struct sample_in in = plain(logits, 3, &s);
        s.temperature = (float)temperature;
        s.top_k = 2;
        s.top_p = 0.5f;
        probabilities(&in, p);
        assert_true(p[choose(&in, &bad)] == 1 && bad);
        assert_true(p[0] + p[1] + p[2] == 1);
    }
}

static int count_possible(const double *p, int n)
{
    int count = 0;
    for (int i = 0; i < n; i++) {
        count += p[i] > 0;
    }
    return count;
}

static void test_top_k(void **state)
{
    (void)state;
    float logits[] = {-5, 3, 0.0f, 3, -0.0f, 1, -2};
    double p[7];
    utter_sampling s;
    struct sample_in in = plain(logits, 7, &s);
    s.temperature = 1;
    static const int LEFT[] = {
        7, 2, 2, 3, 5, 5, 6, 7, 7}; /* [k]; ties at the border stay; 0 and -0 tie */
    for (int k = 0; k <= 8; k++) {
        s.top_k = k;
        probabilities(&in, p);
        assert_int_equal(count_possible(p, 7), LEFT[k]);
    }
}

/* The threshold against a full sort, over numbers of all sizes. */
static void test_top_k_many(void **state)
{
    (void)state;
    struct random random = {3, 0};
    float logits[777];
    double p[777];
    for (int round = 0; round < 200; round++) {
        for (int i = 0; i < 777; i++) {
            uint32_t bits = random_word(&random);
            logits[i] = round % 2 ? random_normal(&random) : numeric_from_bits(bits & 0xbfffffffu);
        }
        utter_sampling s;
        struct sample_in in = plain(logits, 777, &s);
        s.temperature = 1;
        s.top_k = 1 + (int)(random_word(&random) % 777);
        probabilities(&in, p);
        double best = -INFINITY, worst = INFINITY; /* best of those dropped, worst of those kept */
        int kept = 0;
        float scores[MAX];
        int32_t order[MAX];
        sample_probabilities(&in, scores, order, p);
        for (int i = 0; i < 777; i++) {
            bool in_play = scores[i] > -INFINITY;
            kept += in_play;
            worst = in_play && (double)logits[i] < worst ? (double)logits[i] : worst;
            best = !in_play && (double)logits[i] > best ? (double)logits[i] : best;
        }
        assert_true(best < worst && kept >= s.top_k);
    }
}

static void test_top_p(void **state)
{
    (void)state;
    float logits[4];
    static const double P[] = {0.5, 0.3, 0.15, 0.05};
    for (int i = 0; i < 4; i++) {
        logits[i] = (float)log(P[i]);
    }
    static const struct {
        float top_p;
        int left;
    } CASES[] = {{1e-17f, 1}, {0.0001f, 1}, {0.4f, 1}, {0.51f, 2}, {0.79f, 2}, {0.81f, 3}, {0.94f, 3},
        {0.96f, 4}, {1, 4}};
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        double p[4];
        utter_sampling s;
        struct sample_in in = plain(logits, 4, &s);
        s.temperature = 1;
        s.top_p = CASES[i].top_p;
        probabilities(&in, p);
        assert_int_equal(count_possible(p, 4), CASES[i].left);
        assert_true(p[0] > 0);
        assert_true(fabs(p[0] + p[1] + p[2] + p[3] - 1) < 1e-12);
    }
}

/* In whatever order the ids stand: the least likely go first. */
static void test_top_p_in_any_order(void **state)
{
    static const double P[] = {0.45, 0.3, 0.2, 0.05};
    static const int ORDERS[][4] = {{0, 1, 2, 3}, {1, 0, 2, 3}, {2, 1, 0, 3}, {0, 2, 1, 3},
        {3, 2, 1, 0}, {2, 0, 3, 1}, {1, 3, 0, 2}, {3, 0, 1, 2}, {1, 2, 3, 0}, {0, 3, 2, 1}};
    (void)state;
    for (size_t k = 0; k < sizeof ORDERS / sizeof *ORDERS; k++) {
        for (int n = 1; n <= 4; n++) { /* of the n most likely */
            float logits[4];
            double p[4], sum = 0, mass = 0;
            utter_sampling s;
            struct sample_in in = plain(logits, 4, &s);
            for (int i = 0; i < 4; i++) {
                const int rank = ORDERS[k][i];
                logits[i] = rank < n ? (float)log(P[rank]) : -INFINITY;
                sum += rank < n ? P[rank] : 0;
            }
            s.temperature = 1;
            for (int left = 1; left <= n;
                 left++) { /* so many stay, of a mass of a bit more than theirs before */
                s.top_p = (float)(mass / sum) + 0.01f;
                mass += P[left - 1];
                probabilities(&in, p);
                assert_int_equal(count_possible(p, 4), left);
                for (int i = 0; i < 4; i++) {
                    const int rank = ORDERS[k][i];
                    assert_true(fabs(p[i] - (rank < left ? P[rank] / mass : 0)) < 1e-6);
                }
            }
        }
    }
}

/* Of equal scores on the border of top-p the lowest ids stay. */
static void test_top_p_tie(void **state)
{
    (void)state;
    float logits[8] = {0};
    double p[8];
    utter_sampling s;
    struct sample_in in = plain(logits, 8, &s);
    s.temperature = 1, s.top_p = 0.25f;
    probabilities(&in, p);
    for (int i = 0; i < 8; i++) {
        assert_true(p[i] == (i < 2 ? 0.5 : 0));
    }
}

/* Temperature comes before top-p: a cold one leaves fewer ids in the nucleus. */
static void test_order(void **state)
{
    (void)state;
    float logits[] = {2, 1, 0, -1};
    double p[4];
    utter_sampling s;
    struct sample_in in = plain(logits, 4, &s);
    s.temperature = 1, s.top_p = 0.8f;
    probabilities(&in, p);
    assert_int_equal(count_possible(p, 4), 2);
    s.temperature = 0.25f;
    probabilities(&in, p);
    assert_int_equal(count_possible(p, 4), 1);
    s.temperature = 0;
    probabilities(&in, p);
    assert_true(p[0] == 1 && count_possible(p, 4) == 1);
    s.temperature = 4;
    probabilities(&in, p);
    assert_int_equal(count_possible(p, 4), 3);
}

/* Seed, frame and codebook all matter, and nothing else does: not what other ids do. */
static void test_counter(void **state)
{
    (void)state;
    struct random random = {5, 0};
    float logits[64];
    random_fill(&random, logits, 64, 0.2f);
    utter_sampling s;
    struct sample_in in = plain(logits, 64, &s);
    s.temperature = 1;
    int changed[3] = {0};
    for (uint32_t frame = 0; frame < 200; frame++) {
        in.frame = frame, in.codebook = 3, in.seed = 42;
        int id = choose_well(&in);
        assert_int_equal(choose_well(&in), id);
        in.frame = frame + 1;
        changed[0] += choose_well(&in) != id;
        in.frame = frame, in.codebook = 4;
        changed[1] += choose_well(&in) != id;
        in.codebook = 3, in.seed = (uint64_t)42 << 32;
        changed[2] += choose_well(&in) != id;
        in.seed = 42;
        int other = (id + 1) % 64;
        float kept = logits[other];
        logits[other] = -INFINITY;
        assert_int_equal(choose_well(&in), id);
        logits[other] = kept;
    }
    for (int i = 0; i < 3; i++) {
        assert_true(changed[i] > 150);
    }
}

/* The 0.999 point of chi-square with `freedom` degrees (Wilson and Hilferty). */
static double chi_limit(int freedom)
{
    double a = 2.0 / (9.0 * freedom), z = 1 - a + 3.0902 * sqrt(a);
    return freedom * z * z * z;
}

struct draws {
    const struct sample_in *in;
    int n_draws;
    int counts[N_PARTS][MAX];
};

static void draw_part(void *arg, int part, int n_parts)
{
    struct draws *draws = arg;
    struct sample_in in = *draws->in;
    float scores[MAX];
    int32_t order[MAX];
    int64_t begin, end;
    bool bad = false;
    pool_slice(draws->n_draws, 1, part, n_parts, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        in.frame = (uint32_t)i;
        draws->counts[part][sample_choose(&in, scores, order, &bad)]++;
    }
    draws->counts[part][0] += bad ? draws->n_draws : 0; /* spoils the test */
}

/* n_draws frames of one seed against `want`; ids that are expected less than 5 times share a cell. */
static void check_draws(const char *name, const struct sample_in *in, const double *want, int n_draws)
{
    struct pool *pool = pool_new(threads_available());
    struct draws *draws = calloc(1, sizeof *draws);
    draws->in = in;
    draws->n_draws = n_draws;
    pool_run(pool, draw_part, draws, N_PARTS);
    pool_free(pool);
    double chi = 0, rare_want = 0, rare_count = 0;
    int cells = 0;
    for (int i = 0; i < in->n; i++) {
        double expected = want[i] * n_draws, count = 0;
        for (int part = 0; part < N_PARTS; part++) {
            count += draws->counts[part][i];
        }
        assert_true(want[i] > 0 || count == 0);
        if (expected < 5) {
            rare_want += expected;
            rare_count += count;
        } else {
            chi += (count - expected) * (count - expected) / expected;
            cells++;
        }
    }
    if (rare_want >= 5) {
        chi += (rare_count - rare_want) * (rare_count - rare_want) / rare_want;
        cells++;
    }
    print_message("%s: %d draws, chi-square %.1f over %d cells (0.1%% limit %.1f)\n", name, n_draws,
        chi, cells, cells > 1 ? chi_limit(cells - 1) : 0);
    assert_true(cells <= 1 || chi < chi_limit(cells - 1));
    free(draws);
}

static void test_draws(void **state)
{
    (void)state;
    struct random random = {11, 0};
    float logits[300];
    double p[300];
    random_fill(&random, logits, 300, 2);
    logits[7] = logits[8]; /* a tie is two candidates */
    static const utter_sampling SETTINGS[] = {
        {1, 0, 1, 1}, {0.9f, 50, 1, 1}, {0.7f, 0, 0.8f, 1}, {1.3f, 20, 0.9f, 1.5f}};
    for (int i = 0; i < 4; i++) {
        utter_sampling s = SETTINGS[i];
        struct sample_in in = plain(logits, 300, &s);
        s = SETTINGS[i];
        in.seed = 1000 + (uint64_t)i;
        probabilities(&in, p);
        check_draws("random logits", &in, p, 30000);
    }
}

/* ---- Against the official pipeline ---- */

static const struct tensor *part(const struct tensor_set *set, const char *name, const char *what)
{
    char full[160];
    snprintf(full, sizeof full, "%s/%s", name, what);
    const struct tensor *t = tensor_set_find(set, full);
    assert_non_null(t);
    return t;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Every setting is compared exactly; a million draws each would take minutes. */
static int draws_of(const char *name)
{
    static const char *const often[] = {
        "talker-defaults", "talker-top-k-top-p", "talker-ties", "predictor-top-p-ties"};
    if (SUPPORT_SANITIZED) {
        return 5000;
    }
    for (size_t i = 0; i < sizeof often / sizeof *often; i++) {
        if (strcmp(name, often[i]) == 0) {
            return 1000000;
        }
    }
    return 30000;
}

static void check_official(const struct tensor_set *set, const json_t *c)
{
    struct json_fields f = {c, "case", NULL, UTTER_OK};
    const char *name = json_need_string(&f, "name");
    bool talker = strcmp(json_need_string(&f, "head"), "talker") == 0;
    const struct tensor *logits = part(set, name, "logits"), *want = part(set, name, "probabilities");
    int n = (int)logits->dims[0];
    assert_in_range(n, 1, MAX);
    utter_sampling s = {(float)json_need_number(&f, "temperature", 0, 100),
        (int)json_need_int(&f, "top_k", 0, MAX), (float)json_need_number(&f, "top_p", 0, 1),
        (float)json_need_number(&f, "repetition_penalty", 0, 100)};
    uint8_t seen[MAX] = {0};
    size_t i;
    json_t *id;
    json_array_foreach(json_need_array(&f, "history"), i, id)
    {
        seen[json_integer_value(id)] = 1;
    }
    struct sample_in in = {
        .logits = logits->data, .n = n, .sampling = &s, .suppress_from = n, .keep = -1, .seed = 7};
    if (talker) {
        in.seen = seen;
        in.suppress_from = (int)json_need_int(&f, "codebook_size", 1, n);
        in.keep = (int)json_need_int(&f, "eos", 0, n - 1);
        in.keep_blocked = json_need_int(&f, "drawn", 0, 1 << 30) < 2;
    }
    assert_int_equal(f.status, UTTER_OK);
    double have[MAX], exact[MAX];
    probabilities(&in, have);
    check_draws(name, &in, have, draws_of(name));
    memcpy(exact, want->data, want->bytes);
    if (json_take_bool(
            &f, "border_tie", false)) { /* which of equal scores stay is an accident of sorting there */
        qsort(have, (size_t)n, sizeof *have, by_size);
        qsort(exact, (size_t)n, sizeof *exact, by_size);
    }
    for (int k = 0; k < n; k++) {
        assert_int_equal(have[k] > 0, exact[k] > 0);
        /* the official pipeline works in fp32 before its softmax: 1e-6 of a probability, some rounding */
        assert_true(fabs(have[k] - exact[k]) <= 1e-5 * exact[k] + 1e-12);
    }
}

static void test_official(void **state)
{
    (void)state;
    struct tensor_set *set;
    utter_error error;
    if (!file_exists("tests/golden/sampling.safetensors")) {
        print_message("skip: tests/golden/sampling.safetensors is missing (make oracle writes it)\n");
        skip();
    }
    assert_int_equal(tensor_set_open_file(&set, "tests/golden/sampling.safetensors", &error), UTTER_OK);
    const char *text = tensor_set_metadata(set, "cases");
    assert_non_null(text);
    json_t *cases, *c;
    size_t i;
    assert_int_equal(json_text(&cases, text, strlen(text), JSON_LARGE, "cases", &error), UTTER_OK);
    assert_true(json_array_size(cases) > 0);
    json_array_foreach(cases, i, c)
    {
        check_official(set, c);
    }
    json_decref(cases);
    tensor_set_close(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_greedy),
        cmocka_unit_test(test_penalty),
        cmocka_unit_test(test_suppression),
        cmocka_unit_test(test_not_a_number),
        cmocka_unit_test(test_hopeless),
        cmocka_unit_test(test_top_k),
        cmocka_unit_test(test_top_k_many),
        cmocka_unit_test(test_top_p),
        cmocka_unit_test(test_top_p_in_any_order),
        cmocka_unit_test(test_top_p_tie),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_counter),
        cmocka_unit_test(test_draws),
        cmocka_unit_test(test_official),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
