/* SPDX-License-Identifier: Apache-2.0
 * Heads are ranked by what they look at: the one that follows the text best is found among others that follow it ahead
 * of time, or look at what is new, at one place, or anywhere; where none follows, none is taken. And planted heads of a
 * checkpoint, through utter.h. */
#include "tests/support.h"

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
        cmocka_unit_test(test_file),
        cmocka_unit_test(test_align),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
