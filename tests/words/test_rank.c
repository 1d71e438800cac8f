/* SPDX-License-Identifier: Apache-2.0
 * Heads are ranked by what they look at: the one that follows the text best is found among others that follow it ahead
 * of time, or look at what is new, at one place, or anywhere; where none follows, none is taken. And planted heads of a
 * checkpoint, through utter.h. */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "utter.h"
#include "words/rank.h"

enum { N_TOKENS = 20, N_FRAMES = 80, N_HEADS = 8 };

/* What head `head` scores place `place` in a frame. */
static float score_of(int head, int frame, int place, uint32_t *seed)
{
    const int at = frame * N_TOKENS / N_FRAMES, ahead = (frame + 2) * N_TOKENS / N_FRAMES,
              newest = frame < N_TOKENS ? frame : N_TOKENS;
    *seed = *seed * 1664525u + 1013904223u;
    const float noise = (float)(*seed >> 16) / 65536;
    return head == 5   ? noise + (place == at ? 5.0f : 0.0f)
           : head == 6 ? noise + (place == ahead ? 4.8f : 0.0f)
           : head == 2 ? noise + (place == newest ? 5.0f : 0.0f)
           : head == 1 ? noise + (place == 3 ? 5.0f : 0.0f)
                       : 3 * noise;
}

static void speak(struct rank *r, bool follows, bool whole, uint32_t seed)
{
    float scores[N_HEADS * (N_TOKENS + 1)];
    for (int f = 0; f < N_FRAMES; f++) {
        for (int h = 0; h < N_HEADS; h++) {
            for (int i = 0; i <= N_TOKENS; i++) {
                scores[h * (N_TOKENS + 1) + i] = score_of(follows ? h : h % 5, f, i, &seed);
            }
        }
        rank_frame(r, scores, N_TOKENS + 1, N_TOKENS + 1);
    }
    rank_end(r, N_TOKENS, whole);
}

static const struct config CONFIG = {
    .talker = {.n_layers = 2, .n_heads = N_HEADS / 2}, .max_positions = 64};

static void test_rank(void **state)
{
    (void)state;
    for (int follows = 0; follows < 2; follows++) {
        struct rank r = {0};
        struct heads heads;
        struct ranked_head order[N_HEADS];
        assert_int_equal(rank_init(&r, &CONFIG, NULL), UTTER_OK);
        rank_order(&r, order);
        assert_true(order[0].score == 0); /* nothing is known yet */
        speak(&r, follows, true, 1);
        speak(&r, follows, false, 2); /* not whole: counts for nothing */
        assert_int_equal(rank_choose(&r, &heads, NULL), UTTER_OK);
        assert_true(!rank_enough(&r) && heads.n == 0);
        speak(&r, follows, true, 3);
        assert_int_equal(rank_choose(&r, &heads, NULL), UTTER_OK);
        assert_int_equal(heads.n, follows);
        assert_int_equal(r.n_frames, 2 * N_FRAMES);
        rank_order(&r, order);
        if (follows) {
            assert_true(heads.at[0].layer == 1 && heads.at[0].head == 1);
            assert_true(order[0].head.layer == 1 && order[0].score > 0.8);
            assert_true(order[1].head.head == 2 && order[1].score > 0.95 * order[0].score);
        }
        assert_true(order[2 * follows].score < RANK_LEAST_SCORE);
        rank_fini(&r);
    }
}

/* ---- Numbers ---- */

/* An utterance of `n` frames, in which head 0 is at token(frame) alone and all others at the first one. */
static void speak_at(struct rank *r, int n, int (*token)(int), int n_tokens, bool whole)
{
    for (int f = 0; f < n; f++) {
        float scores[N_HEADS * (N_TOKENS + 1)] = {0};
        for (int h = 0; h < N_HEADS; h++) {
            scores[h * (N_TOKENS + 1) + (h == 0 ? token(f) : 0)] = 40;
        }
        rank_frame(r, scores, N_TOKENS + 1, N_TOKENS + 1);
    }
    rank_end(r, n_tokens, whole);
}

static int two_frames_each(int frame)
{
    return frame / 2;
}

static int a_frame_each(int frame)
{
    return frame < 5 ? frame : 5; /* of 10: the last of 6 at half of the time */
}

/* Attention on the way, times the part of the text that it visits, times how late it comes to the end, squared. */
static void test_scores(void **state)
{
    (void)state;
    struct rank r = {0};
    struct ranked_head order[N_HEADS];
    assert_int_equal(rank_init(&r, &CONFIG, NULL), UTTER_OK);
    assert_int_equal(r.n, N_HEADS);
    for (int i = 0; i < N_HEADS; i++) {
        assert_true(r.heads[i].layer == i / 4 && r.heads[i].head == i % 4);
    }
    speak_at(&r, 10, two_frames_each, 5, true);
    assert_true(fabs(r.sums[0] - 10) < 1e-4);
    assert_true(fabs(r.sums[1] - 2) < 1e-4); /* one of 5 tokens, and not early at the last one */
    assert_true(r.n_frames == 10 && r.n_tokens == 5 && r.n_utterances == 1);
    speak_at(&r, 10, two_frames_each, 10, true); /* which has 10 of them: half is visited */
    assert_true(fabs(r.sums[0] - 15) < 1e-4);
    speak_at(&r, 10, a_frame_each, 6, true);
    assert_true(fabs(r.sums[0] - 15 - 10 * (0.5 / 0.7) * (0.5 / 0.7)) < 1e-4);
    assert_true(r.n_frames == 30 && r.n_tokens == 21 && r.n_utterances == 3);
    rank_order(&r, order);
    assert_true(order[0].head.layer == 0 && order[0].head.head == 0);
    assert_true(fabs(order[0].score - r.sums[0] / 30) < 1e-6);
    /* What does not count: speech that was cut, without frames, without text, and too long for all to be looked at. */
    speak_at(&r, 10, two_frames_each, 5, false);
    speak_at(&r, 0, two_frames_each, 5, true);
    speak_at(&r, 10, two_frames_each, 0, true);
    rank_frame(&r, NULL, N_TOKENS + 1, N_TOKENS + 1);
    rank_frame(&r, (const float[N_HEADS]){0}, 0, 5);
    rank_end(&r, 5, true);
    for (int i = 0; i < RANK_FRAMES; i++) {
        rank_frame(&r, (const float[N_HEADS]){0}, 1, 5);
        assert_int_equal(r.paths[N_HEADS - 1].n, i + 1);
    }
    rank_frame(&r, (const float[N_HEADS]){0}, 1, 5);
    assert_int_equal(r.paths[0].n, RANK_FRAMES);
    rank_end(&r, 1, true);
    assert_true(r.n_frames == 30 && r.n_tokens == 21 && r.n_utterances == 3);
    for (int i = 0; i < RANK_FRAMES - 1; i++) {
        rank_frame(&r, (const float[N_HEADS]){0}, 1, 5);
    }
    rank_end(&r, 1, true);
    assert_int_equal(r.n_frames, 30 + RANK_FRAMES - 1);
    const double before = r.sums[0];
    speak_at(&r, 1, two_frames_each, 1, true); /* the least that counts */
    assert_int_equal(r.n_frames, 30 + RANK_FRAMES);
    assert_true(r.sums[0] == before); /* it is at the end from the first frame on */
    rank_fini(&r);
}

/* Enough is 100 frames of 30 tokens in 2 utterances; then a head that explains 0.3 is taken, and of those that explain
 * as much the first. */
static void test_choice(void **state)
{
    (void)state;
    struct rank r = {0};
    struct heads heads;
    struct ranked_head order[N_HEADS];
    static const int order_wanted[N_HEADS] = {5, 2, 3, 6, 0, 1, 4, 7};
    static const double sums[N_HEADS] = {1, 1, 29.9, 29.9, 1, 30, 29.9, 1};
    assert_int_equal(rank_init(&r, &CONFIG, NULL), UTTER_OK);
    memcpy(r.sums, sums, sizeof sums);
    for (int i = 0; i < 8; i++) {
        r.n_frames = 100 - (i & 1);
        r.n_tokens = 30 - (i >> 1 & 1);
        r.n_utterances = 2 - (i >> 2);
        assert_int_equal(rank_enough(&r), i == 0);
        assert_int_equal(rank_choose(&r, &heads, NULL), UTTER_OK);
        assert_int_equal(heads.n, i == 0);
        assert_true(i > 0 || (heads.at[0].layer == 1 && heads.at[0].head == 1 && heads.lead_ms == 0));
    }
    r.n_frames = 100;
    r.n_tokens = 30;
    r.n_utterances = 2;
    rank_order(&r, order);
    for (int i = 0; i < N_HEADS; i++) {
        assert_int_equal(4 * order[i].head.layer + order[i].head.head, order_wanted[i]);
    }
    r.sums[5] = 29.9;
    assert_int_equal(rank_choose(&r, &heads, NULL), UTTER_OK);
    assert_int_equal(heads.n, 0);
    r.sums[5] = 90;
    utter_error error = {.text = ""};
    heads.n = 3;
    support_fail_malloc_at(1);
    assert_int_equal(rank_choose(&r, &heads, &error), UTTER_E_MEMORY);
    support_fail_off();
    assert_true(heads.n == 0 && error.text[0]);
    rank_fini(&r);
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        const utter_status status = rank_init(&r, &CONFIG, NULL);
        assert_int_equal(status, support_failed() ? UTTER_E_MEMORY : UTTER_OK);
        assert_int_equal(r.n, status ? 0 : N_HEADS);
        rank_fini(&r);
    }
}

static void test_bad_files(void **state)
{
    (void)state;
    static const struct {
        const char *text, *said;
        utter_status status;
        int n;
        double lead_ms;
    } cases[] = {
        {"{\"alignment_heads\": []}", "", UTTER_OK, 0, 0},
        {"{\"alignment_heads\": [[0, 0], [1, 3]], \"lead_ms\": -2000}", "", UTTER_OK, 2, -2000},
        {"{\"alignment_heads\": [[0,0],[0,1],[0,2],[0,3],[1,0],[1,1],[1,2],[1,3]], \"lead_ms\": 2000}",
            "", UTTER_OK, 8, 2000},
        {"{\"alignment_heads\": [[0,0],[0,1],[0,2],[0,3],[1,0],[1,1],[1,2],[1,3],[0,0]]}",
            "9 heads: at most 8", UTTER_E_MODEL, 0, 0},
        {"{\"alignment_heads\": [[0, 0]], \"lead_ms\": 2001}", "lead_ms", UTTER_E_FILE, 0, 0},
        {"{\"alignment_heads\": [[0, 0]], \"lead_ms\": -2001}", "lead_ms", UTTER_E_FILE, 0, 0},
        {"{\"alignment_heads\": [[0, 0], [2, 0]]}", "entry 1 is no", UTTER_E_MODEL, 0, 0},
        {"{\"alignment_heads\": [[0, 4]]}", "entry 0 is no", UTTER_E_MODEL, 0, 0},
        {"{\"alignment_heads\": [[-1, 0]]}", "entry 0 is no", UTTER_E_MODEL, 0, 0},
        {"{\"alignment_heads\": [[0, -1]]}", "entry 0 is no", UTTER_E_MODEL, 0, 0},
        {"{\"alignment_heads\": [[0, 0, 0]]}", "entry 0 is no", UTTER_E_MODEL, 0, 0},
        {"{\"alignment_heads\": [[0]]}", "entry 0 is no", UTTER_E_MODEL, 0, 0},
        {"{\"alignment_heads\": [[0.5, 0]]}", "entry 0 is no", UTTER_E_MODEL, 0, 0},
        {"{\"alignment_heads\": [[0, \"1\"]]}", "entry 0 is no", UTTER_E_MODEL, 0, 0},
        {"{\"alignment_heads\": {}}", "alignment_heads", UTTER_E_FILE, 0, 0},
        {"{}", "alignment_heads", UTTER_E_FILE, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *path = support_path("heads.json");
        struct heads heads = {.n = 5, .lead_ms = 3};
        utter_error error = {.text = ""};
        support_write_file(path, cases[i].text, strlen(cases[i].text));
        const utter_status status = heads_read(&heads, &CONFIG, path, &error);
        assert_int_equal(status, cases[i].status);
        assert_int_equal(heads.n, cases[i].n);
        assert_true(status || heads.lead_ms == cases[i].lead_ms);
        assert_non_null(strstr(error.text, cases[i].said));
        assert_int_equal(error.text[0] != 0, status != UTTER_OK);
    }
}

/* The whole text; and a file that cannot be written leaves what there was. */
static void test_written(void **state)
{
    (void)state;
    const char *path = support_path("written.json");
    const struct heads none = {.n = 0}, all = {.at = {{10, 31}, {0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9},
                                                   {27, 15}, {11, 12}},
                                            .n = HEADS_MOST,
                                            .lead_ms = -12.5};
    static const char wanted[] =
        "{\"alignment_heads\": [[10, 31], [0, 1], [2, 3], [4, 5], [6, 7], [8, 9], "
        "[27, 15], [11, 12]], \"lead_ms\": -12.5}\n";
    assert_int_equal(heads_write(&all, path, NULL), UTTER_OK);
    for (int call = SUPPORT_WRITE; call <= SUPPORT_FSYNC; call++) {
        utter_error error = {.text = ""};
        support_fail_at((enum support_call)call, 1);
        const utter_status status = heads_write(&none, path, &error);
        assert_true(support_failed());
        support_fail_off();
        assert_int_equal(status, UTTER_E_IO);
        assert_true(error.text[0]);
        size_t bytes;
        char *text = support_read_file(path, &bytes);
        assert_string_equal(text, wanted);
        free(text);
    }
    assert_int_equal(heads_write(&none, path, NULL), UTTER_OK);
    size_t bytes;
    char *text = support_read_file(path, &bytes);
    assert_string_equal(text, "{\"alignment_heads\": [], \"lead_ms\": 0}\n");
    free(text);
    assert_int_equal(support_count_files(support_folder()), 2);
}

static void test_file(void **state)
{
    (void)state;
    char path[] = "/tmp/heads-XXXXXX";
    close(mkstemp(path));
    const struct heads heads = {.at = {{1, 3}, {0, 2}}, .n = 2, .lead_ms = 11};
    struct heads again;
    assert_int_equal(heads_write(&heads, path, NULL), UTTER_OK);
    assert_int_equal(heads_read(&again, &CONFIG, path, NULL), UTTER_OK);
    assert_memory_equal(&heads, &again, sizeof heads);
    static const char other[] =
        "{\"alignment_heads\": [[1, 3], [2, 0]]}"; /* of a model of more layers */
    char wanted[128];
    utter_error error;
    support_write_file(path, other, strlen(other));
    assert_int_equal(heads_read(&again, &CONFIG, path, &error), UTTER_E_MODEL);
    snprintf(wanted, sizeof wanted,
        "%s: alignment_heads: entry 1 is no [layer, head] of this model (2 layers of 4)", path);
    assert_string_equal(error.text, wanted);
    unlink(path);
}

/* ---- Planted ---- */

static const char TEXT[] =
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi"; /* 50 tokens */
enum { FRAMES = 57, REPEATS = 3 };

static utter_model *open_model(const char *path, const char *cache)
{
    utter_model *model;
    utter_model_options o;
    utter_model_options_init(&o);
    o.n_threads = 1;
    o.cache = cache;
    assert_int_equal(utter_model_open(&model, path, &o, NULL), UTTER_OK);
    return model;
}

static utter_stream_options stream_options(const utter_model *model)
{
    utter_stream_options o;
    utter_stream_options_init(&o, model);
    o.layout = UTTER_LAYOUT_STREAM;
    o.max_frames = FRAMES;
    o.words = true;
    return o;
}

/* Whether words of this model are approximate now. */
static bool is_approximate(utter_model *model)
{
    float pcm[1920];
    size_t n;
    utter_stream *stream;
    utter_stream_options o = stream_options(model);
    utter_stream_stats stats = {.size = sizeof stats};
    o.max_frames = 20;
    assert_int_equal(utter_stream_open(&stream, model, &o, NULL), UTTER_OK);
    assert_int_equal(utter_stream_text(stream, TEXT, strlen(TEXT), NULL), UTTER_OK);
    assert_int_equal(utter_stream_finish(stream, NULL), UTTER_OK);
    while (utter_stream_read(stream, pcm, 1920, &n, NULL) == UTTER_OK) {
    }
    utter_stream_get_stats(stream, &stats);
    utter_stream_free(&stream);
    return stats.words_approximate;
}

static void align(const char *path, bool follows)
{
    char cache[] = "/tmp/cache-XXXXXX", folder[64], command[96];
    assert_non_null(mkdtemp(cache));
    snprintf(folder, sizeof folder, "%s/deep/utter", cache); /* folders that there are not */
    const char *texts[REPEATS] = {TEXT, TEXT, TEXT};
    utter_head *heads;
    size_t n;
    utter_model *model = open_model(path, folder);
    utter_stream_options o = stream_options(model);
    o.size = offsetof(utter_stream_options, words); /* of a program that knows nothing of words */
    assert_int_equal(
        utter_model_align_heads(model, &o, texts, REPEATS, NULL, &heads, &n, NULL), UTTER_OK);
    assert_int_equal(n, 8);
    assert_true(heads[0].follows == follows && (heads[0].score >= RANK_LEAST_SCORE) == follows);
    for (size_t i = 0; follows && i < 2; i++) { /* as tools/maker/craft.c has planted them */
        assert_true(heads[i].layer == 0 ? heads[i].head == 1 : heads[i].head == 3);
    }
    utter_memory_free(heads);
    assert_true(is_approximate(model) == !follows);
    utter_model_close(&model);
    model = open_model(path, folder); /* another run, which finds what this one has learnt */
    assert_true(is_approximate(model) == !follows);
    utter_model_close(&model);
    snprintf(command, sizeof command, "rm -r %s", cache);
    assert_int_equal(system(command), 0);
}

static void test_align(void **state)
{
    (void)state;
    align("build/checkpoints/follows", true);
    align("build/checkpoints/tiny06-custom_voice", false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rank),
        cmocka_unit_test(test_scores),
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_written),
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_align),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
