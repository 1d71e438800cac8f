/* SPDX-License-Identifier: Apache-2.0
 * How a model learns by speaking which head follows its text: whose frames count, when the search ends, and what is
 * kept for other runs. The device computes nothing, and the frames are posed. */
#include "tests/engine/told.h"

#include <sys/stat.h>

#include "base/memory.h"
#include "engine/learn.h"

enum { N_TOKENS = 20, N_PLACES = N_TOKENS + 1, N_FRAMES = 60, MOST_HEADS = 64 };

static struct learning *l;
/* Learning tells streams apart by where they are, and looks into none. */
static char places[2];
static const utter_stream *const ONE = (const utter_stream *)&places[0],
                                 *const OTHER = (const utter_stream *)&places[1];
static int n_kept; /* folders of caches */

/* A model that knows no head, with a cache where nothing lies. */
static void begin(void)
{
    char name[32];
    open_engine(MODEL);
    l = &engine.context.learning;
    assert_int_equal(l->heads->n, 0);
    snprintf(name, sizeof name, "cache%d", n_kept++);
    memory_free(l->folder);
    l->folder = memory_string(support_path(name));
}

static int n_files(void)
{
    struct stat about;
    return stat(l->folder, &about) ? 0 : support_count_files(l->folder);
}

/* All heads look at the first place, but for the second one, which follows the text where `follows`. */
static void hear(int n_frames, bool follows)
{
    static float scores[MOST_HEADS * N_PLACES];
    assert_true(l->rank.n > 1 && l->rank.n <= MOST_HEADS);
    for (int f = 0; f < n_frames; f++) {
        memset(scores, 0, sizeof scores);
        for (int h = 0; h < l->rank.n; h++) {
            scores[h * N_PLACES + (h == 1 && follows ? f * N_TOKENS / n_frames : 0)] = 40;
        }
        learn_frame(l, scores, N_PLACES, N_TOKENS, true);
    }
}

/* A speech of N_FRAMES frames; what its end tells. */
static bool speak(bool follows, utter_finish finish)
{
    assert_int_equal(learn_begin(l, ONE, NULL), UTTER_OK);
    assert_ptr_equal(l->by, ONE);
    hear(N_FRAMES, follows);
    const bool told = learn_end(l, ONE, N_TOKENS, finish);
    assert_null(l->by);
    return told;
}

static void what_follows_is_found_and_kept(void **state)
{
    (void)state;
    begin();
    assert_int_equal(learn_begin(l, ONE, NULL), UTTER_OK);
    assert_int_equal(fake.n_watched, l->rank.n); /* all heads */
    assert_false(learn_end(l, OTHER, N_TOKENS, UTTER_FINISH_EOS));
    assert_false(learn_end(l, NULL, N_TOKENS, UTTER_FINISH_EOS));
    assert_ptr_equal(l->by, ONE);
    assert_false(speak(true, UTTER_FINISH_EOS));
    assert_true(l->n_tried == 1 && !l->over && n_files() == 0);
    assert_true(l->rank.sums[1] > 0.99 * N_FRAMES); /* it was at every token, the last one too */
    assert_true(speak(true, UTTER_FINISH_EOS));
    assert_true(l->over && l->rank.n == 0 && n_files() == 1);
    assert_true(l->heads->n == 1 && l->heads->at[0].layer == 0 && l->heads->at[0].head == 1);
    assert_int_equal(fake.n_watched, 1);
    assert_string_equal(l->note, "words: timed by heads 0.1");
    /* The next run reads it before its first speech. */
    *l->heads = (struct heads){.n = 0};
    l->begun = l->over = false;
    fake.n_watched = 0;
    assert_int_equal(learn_begin(l, ONE, NULL), UTTER_OK);
    assert_true(l->begun && l->over && !l->by && l->rank.n == 0);
    assert_true(l->heads->n == 1 && l->heads->at[0].head == 1 && fake.n_watched == 1);
    engine_close(&engine);
}

static void only_one_speech_is_listened_to(void **state)
{
    (void)state;
    begin();
    assert_int_equal(learn_begin(l, ONE, NULL), UTTER_OK);
    assert_int_equal(learn_begin(l, OTHER, NULL), UTTER_OK);
    assert_ptr_equal(l->by, ONE);
    hear(N_FRAMES, true);
    assert_false(learn_end(l, ONE, N_TOKENS, UTTER_FINISH_EOS));
    assert_int_equal(learn_begin(l, OTHER, NULL), UTTER_OK);
    assert_ptr_equal(l->by, OTHER);
    engine_close(&engine);
}

/* Enough was heard to say so: no other run need search again. */
static void that_none_follows_is_kept_too(void **state)
{
    (void)state;
    begin();
    assert_false(speak(false, UTTER_FINISH_EOS));
    assert_true(speak(false, UTTER_FINISH_EOS));
    assert_true(l->over && l->heads->n == 0 && n_files() == 1);
    assert_string_equal(
        l->note, "words: no head of this model follows its text: times are approximate");
    assert_int_equal(learn_begin(l, ONE, NULL), UTTER_OK); /* over for this run */
    assert_null(l->by);
    l->begun = l->over = false;
    assert_int_equal(learn_begin(l, ONE, NULL), UTTER_OK); /* and for the next one */
    assert_true(l->over && !l->by && l->heads->n == 0);
    engine_close(&engine);
}

/* Speeches that a limit cut tell nothing; after eight of them the search ends, and another run begins anew. */
static void what_is_cut_teaches_nothing(void **state)
{
    (void)state;
    begin();
    for (int i = 1; i < LEARN_MOST_UTTERANCES; i++) {
        assert_false(speak(true, UTTER_FINISH_MAX_FRAMES));
        assert_true(l->n_tried == i && l->rank.n_utterances == 0);
    }
    assert_int_equal(learn_begin(l, ONE, NULL), UTTER_OK);
    assert_false(learn_end(l, ONE, N_TOKENS, UTTER_FINISH_EOS)); /* it did not speak */
    assert_int_equal(l->n_tried, LEARN_MOST_UTTERANCES - 1);
    assert_true(speak(true, UTTER_FINISH_MAX_FRAMES));
    assert_true(l->over && l->heads->n == 0 && n_files() == 0);
    engine_close(&engine);
}

/* Where it is asked to, it listens until it is told to decide, and speeches that a limit cut count. */
static void it_listens_when_it_is_asked(void **state)
{
    const char *path = support_path("asked.json");
    (void)state;
    begin();
    *l->heads = (struct heads){.at = {{1, 0}}, .n = 1};
    l->over = true;
    l->n_tried = 7;
    assert_int_equal(learn_anew(l, NULL), UTTER_OK);
    assert_true(l->listens && l->begun && !l->over && l->heads->n == 0 && l->n_tried == 0);
    for (int i = 1; i <= 10; i++) {
        assert_false(speak(true, i % 2 ? UTTER_FINISH_MAX_FRAMES : UTTER_FINISH_EOS));
        assert_int_equal(l->rank.n_utterances, i);
    }
    assert_false(speak(true, UTTER_FINISH_LOOP)); /* any other end tells of a speech that went wrong */
    assert_int_equal(l->rank.n_utterances, 10);
    assert_int_equal(learn_finish(l, path, NULL), UTTER_OK);
    assert_true(!l->listens && l->over && l->heads->n == 1 && l->heads->at[0].head == 1);
    assert_int_equal(fake.n_watched, 1);
    assert_int_equal(n_files(), 0); /* it is where it was wanted */
    size_t bytes;
    char *text = support_read_file(path, &bytes);
    assert_string_equal(text, "{\"alignment_heads\": [[0, 1]], \"lead_ms\": 0}\n");
    free(text);
    engine_close(&engine);
}

/* Into a file that was named goes what was heard, however little; into the cache only what tells of the model. */
static void a_named_file_is_always_written(void **state)
{
    const char *path = support_path("little.json");
    (void)state;
    for (int named = 0; named < 2; named++) {
        begin();
        assert_int_equal(learn_anew(l, NULL), UTTER_OK);
        assert_false(speak(true, UTTER_FINISH_EOS));
        assert_int_equal(learn_finish(l, named ? path : NULL, NULL), UTTER_OK);
        assert_true(l->heads->n == 0 && n_files() == 0);
        engine_close(&engine);
    }
    size_t bytes;
    char *text = support_read_file(path, &bytes);
    assert_string_equal(text, "{\"alignment_heads\": [], \"lead_ms\": 0}\n");
    free(text);
    begin();
    assert_int_equal(learn_anew(l, NULL), UTTER_OK);
    assert_false(speak(true, UTTER_FINISH_EOS));
    assert_false(speak(true, UTTER_FINISH_EOS));
    assert_int_equal(learn_finish(l, NULL, NULL), UTTER_OK);
    assert_int_equal(n_files(), 1);
    engine_close(&engine);
}

/* Without a cache nothing is written, and what was learnt holds for this run. */
static void there_need_be_no_cache(void **state)
{
    (void)state;
    begin();
    memory_free(l->folder);
    l->folder = NULL;
    assert_false(speak(true, UTTER_FINISH_EOS));
    assert_true(speak(true, UTTER_FINISH_EOS));
    assert_int_equal(l->heads->n, 1);
    engine_close(&engine);
}

/* Speech goes on without it, and who asked for it is told. */
static void a_cache_that_cannot_be_made_is_told(void **state)
{
    char path[256];
    utter_error error = {.text = ""};
    (void)state;
    begin();
    support_write_file(l->folder, "no folder", 9);
    snprintf(path, sizeof path, "%s/inside", l->folder);
    memory_free(l->folder);
    l->folder = memory_string(path);
    assert_false(speak(true, UTTER_FINISH_EOS));
    assert_true(speak(true, UTTER_FINISH_EOS));
    assert_int_equal(l->heads->n, 1);
    assert_int_equal(learn_anew(l, NULL), UTTER_OK);
    assert_false(speak(true, UTTER_FINISH_EOS));
    assert_false(speak(true, UTTER_FINISH_EOS));
    assert_true(learn_finish(l, NULL, &error) < 0);
    assert_non_null(strstr(error.text, l->folder));
    engine_close(&engine);
}

/* The place behind the last token is one only once the text is known to end there. */
static void the_end_is_a_place_once_it_is_known(void **state)
{
    float scores[MOST_HEADS * N_PLACES] = {0};
    (void)state;
    begin();
    assert_int_equal(learn_begin(l, ONE, NULL), UTTER_OK);
    for (int h = 0; h < l->rank.n; h++) {
        scores[h * N_PLACES + N_TOKENS] = 40;
    }
    learn_frame(l, scores, N_PLACES, N_TOKENS, false);
    assert_true(l->rank.shares[N_TOKENS - 1] < 0.1f);
    assert_true(l->rank.shares[N_TOKENS] == 0);
    learn_frame(l, scores, N_PLACES, N_TOKENS, true);
    assert_true(l->rank.shares[N_TOKENS] > 0.9f);
    engine_close(&engine);
}

static utter_status refuse(
    struct backend *b, const struct talker_head *heads, int n, utter_error *error)
{
    (void)b, (void)heads, (void)n;
    return error_set(error, UTTER_E_DEVICE, "no heads today");
}

static void a_device_may_show_no_heads(void **state)
{
    utter_error error = {.text = ""};
    (void)state;
    begin();
    ops.watch = refuse;
    assert_int_equal(learn_begin(l, ONE, &error), UTTER_E_DEVICE);
    assert_string_equal(error.text, "no heads today");
    assert_true(!l->by && l->rank.n == 0 && !l->over);
    ops.watch = fake_watch; /* the next speech tries again */
    assert_int_equal(learn_begin(l, ONE, NULL), UTTER_OK);
    assert_ptr_equal(l->by, ONE);
    hear(N_FRAMES, true);
    assert_false(learn_end(l, ONE, N_TOKENS, UTTER_FINISH_EOS));
    assert_int_equal(learn_begin(l, ONE, NULL), UTTER_OK);
    hear(N_FRAMES, true);
    ops.watch = refuse; /* the one that was found cannot be watched: nothing is kept of it */
    assert_true(learn_end(l, ONE, N_TOKENS, UTTER_FINISH_EOS));
    assert_true(l->over && l->heads->n == 0 && n_files() == 0);
    ops.watch = NULL;
    l->over = false;
    assert_int_equal(learn_begin(l, ONE, NULL), UTTER_OK);
    assert_null(l->by);
    assert_int_equal(learn_anew(l, &error), UTTER_E_DEVICE);
    assert_string_equal(error.text, "the device fake does not show its heads (choose the cpu)");
    assert_false(l->listens);
    engine_close(&engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_follows_is_found_and_kept),
        cmocka_unit_test(only_one_speech_is_listened_to),
        cmocka_unit_test(that_none_follows_is_kept_too),
        cmocka_unit_test(what_is_cut_teaches_nothing),
        cmocka_unit_test(it_listens_when_it_is_asked),
        cmocka_unit_test(a_named_file_is_always_written),
        cmocka_unit_test(there_need_be_no_cache),
        cmocka_unit_test(a_cache_that_cannot_be_made_is_told),
        cmocka_unit_test(the_end_is_a_place_once_it_is_known),
        cmocka_unit_test(a_device_may_show_no_heads),
    };
    return cmocka_run_group_tests_name("learning", tests, NULL, NULL);
}
