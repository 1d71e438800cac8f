/* SPDX-License-Identifier: Apache-2.0
 * Heads ranked through utter.h: what is refused, what is given back, and what a model knows afterwards. */
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

#include "api/api.h"

static utter_model *model;
static const char *const TEXTS[] = {"Hello there, friend.", "How are you today?"};

static int open_model(void **state)
{
    utter_model_options o;
    (void)state;
    utter_model_options_init(&o);
    o.n_threads = 1;
    assert_int_equal(
        utter_model_open(&model, "build/checkpoints/tiny17-custom_voice", &o, NULL), UTTER_OK);
    return 0;
}

static int close_model(void **state)
{
    (void)state;
    utter_model_close(&model);
    return 0;
}

static utter_stream_options short_speech(void)
{
    utter_stream_options o;
    utter_stream_options_init(&o, model);
    o.max_frames = 12;
    return o;
}

/* Nothing is given, and nothing goes on behind it. */
static void check_refused(const utter_stream_options *options, const char *const *texts, size_t n,
    utter_status wanted, const char *said)
{
    utter_head *heads = (utter_head *)1;
    size_t n_heads = 9;
    utter_error error = {.text = ""};
    assert_int_equal(
        utter_model_align_heads(model, options, texts, n, NULL, &heads, &n_heads, &error), wanted);
    if (!strstr(error.text, said)) {
        fail_msg("\"%s\" is not in: %s", said, error.text);
    }
    assert_null(heads);
    assert_int_equal(n_heads, 0);
    assert_false(model->engine.context.learning.listens);
    assert_int_equal(model->engine.context.learning.rank.n, 0);
}

static void what_is_missing_is_told(void **state)
{
    utter_head *heads = (utter_head *)1;
    size_t n = 9;
    utter_error error;
    (void)state;
    const struct {
        utter_model *model;
        const char *const *texts;
        size_t n_texts;
        utter_head **heads;
        size_t *n;
    } cases[] = {{NULL, TEXTS, 1, &heads, &n}, {model, NULL, 1, &heads, &n},
        {model, TEXTS, 0, &heads, &n}, {model, TEXTS, 1, NULL, &n}, {model, TEXTS, 1, &heads, NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(utter_model_align_heads(cases[i].model, NULL, cases[i].texts, cases[i].n_texts,
                             NULL, cases[i].heads, cases[i].n, &error),
            UTTER_E_ARGUMENT);
        assert_string_equal(error.text, "an argument is NULL");
    }
    assert_true(heads == (utter_head *)1 && n == 9);
    static const char *const last[] = {"Hello.", NULL}, *const first[] = {NULL, "Hello."};
    check_refused(NULL, last, 2, UTTER_E_ARGUMENT, "a text is NULL");
    check_refused(NULL, first, 2, UTTER_E_ARGUMENT, "a text is NULL");
    utter_stream_options o = short_speech();
    o.size = 0;
    check_refused(&o, TEXTS, 1, UTTER_E_ARGUMENT, "utter_stream_options: its size is not set");
}

static void a_model_that_speaks_is_left_alone(void **state)
{
    utter_stream *stream;
    (void)state;
    assert_int_equal(utter_stream_open(&stream, model, NULL, NULL), UTTER_OK);
    check_refused(NULL, TEXTS, 2, UTTER_E_ARGUMENT, "a stream of the model is open (free it first)");
    utter_stream_free(&stream);
}

/* Of a text that cannot be spoken nothing is ranked, and the next speeches teach the model as ever. */
static void a_text_that_fails_ends_it(void **state)
{
    static const char *const texts[] = {"Hello.", "a\xff", "Hello."};
    const utter_stream_options o = short_speech();
    (void)state;
    check_refused(&o, texts, 3, UTTER_E_ARGUMENT, "UTF-8");
    assert_true(engine_is_idle(&model->engine));
    assert_false(model->engine.context.learning.over);
}

/* All heads of the talker, each once, the best first; those that words are timed by are the first ones. */
static void all_heads_are_ranked(void **state)
{
    utter_stream_options o = short_speech();
    utter_head *heads;
    size_t n;
    bool seen[64][64] = {{false}};
    const struct config *c = api_config(model);
    (void)state;
    assert_int_equal(utter_model_align_heads(model, &o, TEXTS, 2, NULL, &heads, &n, NULL), UTTER_OK);
    assert_int_equal(n, c->talker.n_layers * c->talker.n_heads);
    for (size_t i = 0; i < n; i++) {
        assert_in_range(heads[i].layer, 0, c->talker.n_layers - 1);
        assert_in_range(heads[i].head, 0, c->talker.n_heads - 1);
        assert_false(seen[heads[i].layer][heads[i].head]);
        seen[heads[i].layer][heads[i].head] = true;
        assert_true(heads[i].score >= 0 && heads[i].score <= 1);
        assert_true(i == 0 || heads[i].score <= heads[i - 1].score);
        assert_int_equal(heads[i].follows, i < (size_t)model->engine.context.heads.n);
    }
    utter_memory_free(heads);
    assert_false(model->engine.context.learning.listens);
    assert_true(model->engine.context.learning.over);
    assert_int_equal(model->engine.context.learning.rank.n, 0);
}

/* A caller of before there were words has shorter options, and his model speaks with words for this all the same. */
static void older_options_do(void **state)
{
    utter_stream_options o = short_speech();
    utter_head *heads;
    size_t n;
    (void)state;
    o.size = offsetof(utter_stream_options, words);
    assert_int_equal(utter_model_align_heads(model, &o, TEXTS, 2, NULL, &heads, &n, NULL), UTTER_OK);
    assert_true(heads[0].score > 0);
    utter_memory_free(heads);
}

static void memory_that_is_missing_is_told(void **state)
{
    const utter_stream_options o = short_speech();
    utter_head *heads;
    size_t n;
    bool failed = true;
    (void)state;
    for (long k = 1; failed; k += k > 40 ? 7 : 1) {
        utter_error error = {.text = ""};
        support_fail_malloc_at(k);
        const utter_status status =
            utter_model_align_heads(model, &o, TEXTS, 1, NULL, &heads, &n, &error);
        failed = support_failed();
        support_fail_off();
        assert_true(status == UTTER_OK || (status == UTTER_E_MEMORY && failed && error.text[0]));
        assert_true((status == UTTER_OK) == (heads != NULL));
        assert_true((status == UTTER_OK) == (n > 0));
        assert_true(engine_is_idle(&model->engine));
        assert_false(model->engine.context.learning.listens);
        utter_memory_free(heads);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_missing_is_told),
        cmocka_unit_test(a_model_that_speaks_is_left_alone),
        cmocka_unit_test(a_text_that_fails_ends_it),
        cmocka_unit_test(all_heads_are_ranked),
        cmocka_unit_test(older_options_do),
        cmocka_unit_test(memory_that_is_missing_is_told),
    };
    return cmocka_run_group_tests_name("heads", tests, open_model, close_model);
}
