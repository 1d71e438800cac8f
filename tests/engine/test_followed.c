/* SPDX-License-Identifier: Apache-2.0
 * What a stream looks at, what becomes of who strays from the text, which heads are learnt, and which word was not
 * said: by scores and likelihoods that a device is told to give. */
#include "tests/engine/told.h"

static void watch_one(void)
{
    engine.context.heads = (struct heads){.at = {{0, 0}}, .n = 1};
    fake.n_watched = 1;
}

/* All tokens and the end; in the stream layout a row for each frame, and one more. */
static void a_lane_looks_at_the_rows_of_its_text(void **state)
{
    (void)state;
    open_engine(MODEL);
    struct config *c = (struct config *)engine.context.model->config;
    const int all = c->max_positions;
    watch_one();
    for (int i = 0; i < 4; i++) {
        utter_stream_options o = options_of(5);
        o.words = i != 3;
        o.layout = i == 0 || i == 3 ? UTTER_LAYOUT_FULL : UTTER_LAYOUT_STREAM;
        utter_stream *s = open_stream(&o);
        const int begin = prompt_text_position(s->prompt), n = prompt_text_tokens(s->prompt);
        assert_true(n > 5);
        fake.look_begin = fake.look_end = -1;
        c->max_positions = i == 2 ? begin + 3 > rows_of(s) + 1 ? begin + 3 : rows_of(s) + 1 : all;
        assert_int_equal(engine_step(&engine, false, NULL), UTTER_OK);
        assert_int_equal(fake.look_begin, i == 3 ? -1 : begin);
        assert_int_equal(fake.look_end, i == 3                         ? -1
                                        : i == 0                       ? begin + n + 1
                                        : i == 1                       ? begin + 5 + 1
                                        : c->max_positions < begin + 6 ? c->max_positions
                                                                       : begin + 6);
        c->max_positions = all;
        engine_free_stream(&s);
    }
    engine_close(&engine);
}

/* Behind the text 62 frames, on one token 100: the frame that is too much is the last one. */
static void who_strays_from_the_text_is_ended(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        const bool stays = i < 2, together = i % 2, guards = i < 4;
        open_engine(MODEL);
        watch_one();
        utter_stream_options o = options_of(190);
        o.words = true;
        o.guard = guards;
        utter_stream *s = open_stream(&o);
        const int n = prompt_text_tokens(s->prompt);
        fake.out.n_scores = n + 1;
        fake.place_of_frame = stays ? 0 : 2;
        run(s, together);
        if (!guards) {
            assert_int_equal(s->finish, UTTER_FINISH_MAX_FRAMES);
        } else {
            assert_int_equal(s->finish, stays ? UTTER_FINISH_STUCK : UTTER_FINISH_SAID);
            assert_int_equal(s->n_frames, stays ? 100 : 2 * n + 62);
            assert_int_equal(s->n_made, s->n_frames);
        }
        engine_free_stream(&s);
        engine_close(&engine);
    }
}

/* Silence ends at a frame, although more have been made by then. */
static void what_comes_behind_an_end_was_made_in_vain(void **state)
{
    (void)state;
    for (int together = 0; together < 2; together++) {
        open_engine(MODEL);
        fake.level = 1e-9f;
        utter_stream *s = open_plain(190);
        run(s, together);
        assert_int_equal(s->finish, UTTER_FINISH_SILENCE);
        assert_int_equal(s->n_frames, prompt_text_tokens(s->prompt) + 62);
        assert_int_equal(s->n_made, s->n_frames);
        engine_free_stream(&s);
        engine_close(&engine);
    }
}

/* ---- Words in doubt ---- */

/* Speech of two frames a token, whose frames surprise by so much; in the middle of the second and the fifth word. */
static utter_stream *say_with_doubts(float second, float fifth)
{
    utter_stream_options o = options_of(190);
    o.words = true;
    watch_one();
    ops.weigh = fake_weigh;
    utter_stream *s = open_stream(&o);
    const int n = prompt_text_tokens(s->prompt);
    const uint64_t *begins = prompt_token_begins(s->prompt);
    int tokens[2] = {0, 0}; /* that have the last letters of these words */
    for (int i = 0; i < n; i++) {
        tokens[0] = begins[i] <= strlen("Hello ther") ? i : tokens[0];
        tokens[1] = begins[i] <= strlen("Hello there, friend. How ar") ? i : tokens[1];
    }
    fake.out.n_scores = n + 1;
    fake.place_of_frame = 2;
    fake.end_at = 2 * n + 3;
    fake.surprises_at[0] = 2 * tokens[0];
    fake.surprises_at[1] = 2 * tokens[1];
    fake.surprises[0] = second;
    fake.surprises[1] = fifth;
    fake.out.likelihood = (struct likelihood){fake.tells_late ? 0 : -1, fake.tells_late ? 0 : -1};
    return s;
}

/* The word that was not said, or -1, of a stream that ended by itself. */
static int missed_of(utter_stream *s)
{
    size_t n;
    int missed = -1;
    assert_int_equal(s->finish, UTTER_FINISH_EOS);
    assert_int_equal(s->n_made, fake.end_at);
    const utter_word *words = stream_words(s, &n);
    assert_int_equal(n, 9);
    for (size_t i = 0; i < n; i++) {
        if (words[i].skipped) {
            assert_int_equal(missed, -1);
            missed = (int)i;
        }
    }
    return missed;
}

/* A text without the word must explain the codes by more than 8 nats better; of several words the best one is it. The
 * one that surprises more is looked at first. */
static void a_word_is_missed_by_more_than_eight_nats(void **state)
{
    (void)state;
    static const struct {
        float surprises[2], better[2];
        int n_passes, missed;
    } cases[] = {
        {{0, 0}, {0, 0}, 0, -1},
        {{20, 0}, {8, 0}, 1, -1},
        {{20, 0}, {8.5f, 0}, 1, 1},
        {{20, 0}, {-30, 0}, 1, -1},
        {{20, 30}, {9, 12}, 2, 1},
        {{20, 30}, {12, 9}, 2, 4},
        {{30, 20}, {9, 9}, 2, 1},
        {{30, 20}, {-1, 9}, 2, 4},
        {{30, 20}, {7, 8}, 2, -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        open_engine(MODEL);
        utter_stream *s = say_with_doubts(cases[i].surprises[0], cases[i].surprises[1]);
        const float log_p = -1 - (float)fake.end_at - fake.surprises[0] - fake.surprises[1];
        fake.weights[0] = log_p + cases[i].better[0];
        fake.weights[1] = log_p + cases[i].better[1];
        run(s, i % 2);
        assert_int_equal(fake.n_passes, cases[i].n_passes);
        assert_int_equal(fake.n[CALL_WEIGH], cases[i].n_passes); /* each at once */
        assert_int_equal(missed_of(s), cases[i].missed);
        engine_free_stream(&s);
        engine_close(&engine);
    }
}

/* Each row of the prompt but the word's, then the frames' codes, then the end; 16 rows at a time where so asked. */
static void the_codes_are_weighed_behind_the_other_words(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        open_engine(MODEL);
        fake.tells_late = i >= 2;
        utter_stream *s = say_with_doubts(20, 0);
        const int n_rows = rows_of(s), n_frames = fake.end_at,
                  eos = engine.context.model->config->codec_eos;
        const float log_p = -1 - (float)n_frames - 20;
        fake.weights[0] = fake.weights[1] = log_p + 9;
        if (i % 2) {
            engine.context.prompt_clock = (struct prompt_clock){1, 1};
        }
        run(s, false);
        assert_int_equal(fake.n_passes, 1 + fake.tells_late);
        for (int pass = 0; pass < fake.n_passes; pass++) {
            const bool whole = fake.tells_late && pass == 0;
            const int n_out = n_rows + n_frames - fake.n_weighed[pass]; /* tokens that were left out */
            assert_true(whole ? n_out == 0 : n_out > 0 && n_out < 9);
            for (int k = 0; k < fake.n_weighed[pass]; k++) {
                const int frame = k - (n_rows - n_out - 1);
                assert_int_equal(fake.weighed[pass][k], frame < 0           ? -1
                                                        : frame == n_frames ? eos
                                                                            : frame);
            }
        }
        for (int k = 0, at = 0; i % 2 && k < fake.n[CALL_WEIGH]; k++) {
            at += fake.sizes[CALL_WEIGH][k];
            const bool last = at == fake.n_weighed[0] || at == fake.n_weighed[0] + fake.n_weighed[1];
            assert_true(fake.sizes[CALL_WEIGH][k] == 16 || (last && fake.sizes[CALL_WEIGH][k] < 16));
        }
        assert_int_equal(missed_of(s), 1);
        engine_free_stream(&s);
        engine_close(&engine);
    }
}

/* Where there is no room nothing is in doubt; another failure is the stream's. */
static void a_failure_to_weigh_is_told(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        open_engine(MODEL);
        utter_stream *s = say_with_doubts(20, 30);
        fake.weights[0] = fake.weights[1] = 1000;
        fake.fails = CALL_WEIGH;
        fake.fails_at = 2;
        fake.failure = i ? UTTER_E_INTERNAL : UTTER_E_MEMORY;
        run(s, false);
        assert_int_equal(s->finish, i ? UTTER_FINISH_ERROR : UTTER_FINISH_EOS);
        if (i) {
            assert_string_equal(s->failure.text, "call 2 was told to fail");
        } else {
            assert_int_equal(missed_of(s), -1);
        }
        engine_free_stream(&s);
        engine_close(&engine);
    }
}

/* Speech that did not end by itself, without a guard or on a device that cannot tell is not looked into. */
static void not_all_speech_is_weighed(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        open_engine(MODEL);
        utter_stream *s = say_with_doubts(20, 30);
        s->max_frames = i == 0 ? fake.end_at : s->max_frames;
        s->use_guard = i != 1;
        ops.weigh = i == 2 ? NULL : fake_weigh;
        assert_int_equal(stream_weighs(s), i == 0);
        run(s, false);
        assert_int_equal(s->finish, i == 0 ? UTTER_FINISH_MAX_FRAMES : UTTER_FINISH_EOS);
        assert_int_equal(fake.n[CALL_WEIGH], 0);
        engine_free_stream(&s);
        engine_close(&engine);
    }
}

/* ---- Heads that are learnt ---- */

static void say_to_learn(int n_frames, int place_of_frame)
{
    utter_stream_options o = options_of(190);
    o.words = true;
    utter_stream *s = open_stream(&o);
    assert_ptr_equal(engine.context.learning.by, s);
    fake.end_at = n_frames;
    fake.out.n_scores = prompt_text_tokens(s->prompt) + 1;
    fake.place_of_frame = place_of_frame;
    run(s, false);
    assert_int_equal(s->finish, UTTER_FINISH_EOS);
    assert_int_equal(s->n_frames, n_frames);
    engine_free_stream(&s);
    assert_null(engine.context.learning.by);
}

/* Enough has been heard after some utterances: the best head is watched from then on, and a note says which. */
static void heads_are_learnt_by_listening(void **state)
{
    (void)state;
    open_engine(MODEL);
    const struct stack_config *t = &engine.context.model->config->talker;
    assert_int_equal(t->n_layers * t->n_heads, 8);
    say_to_learn(45, 1);
    assert_int_equal(fake.n_watched, 8);
    say_to_learn(45, 1);
    assert_string_equal(said, ""); /* 100 frames are needed, and 30 tokens */
    const struct rank *r = &engine.context.learning.rank;
    assert_int_equal(r->n_frames, 90);
    const int n_tokens = fake.out.n_scores - 1;
    assert_in_range(n_tokens, 15, 30); /* all are said, and behind them the end is */
    const double late = fmin(1, (n_tokens - 1) / 45.0 / 0.7);
    assert_true(fabs(r->sums[0] / 90 - late * late) < 0.01); /* all attention is on the way */
    say_to_learn(45, 1);
    assert_string_equal(said, "words: timed by heads 0.0\n");
    assert_int_equal(fake.n_watched, 1);
    assert_int_equal(engine.context.heads.n, 1);
    assert_true(engine.context.learning.over);
    utter_stream_options o = options_of(5);
    o.words = true;
    utter_stream *s = open_stream(&o);
    assert_null(engine.context.learning.by);
    assert_false(words_approximate(s->words));
    engine_free_stream(&s);
    engine_close(&engine);
}

/* None follows in 8 utterances: the search is over. */
static void a_model_without_such_heads_is_left_alone(void **state)
{
    (void)state;
    open_engine(MODEL);
    for (int i = 0; i < LEARN_MOST_UTTERANCES; i++) {
        assert_string_equal(said, "");
        say_to_learn(5, 0);
    }
    assert_string_equal(said, "words: no head of this model follows its text: times are approximate\n");
    assert_int_equal(engine.context.heads.n, 0);
    assert_int_equal(fake.n_watched, 0);
    utter_stream_options o = options_of(5);
    o.words = true;
    utter_stream *s = open_stream(&o);
    assert_null(engine.context.learning.by);
    assert_true(words_approximate(s->words));
    engine_free_stream(&s);
    engine_close(&engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lane_looks_at_the_rows_of_its_text),
        cmocka_unit_test(who_strays_from_the_text_is_ended),
        cmocka_unit_test(what_comes_behind_an_end_was_made_in_vain),
        cmocka_unit_test(a_word_is_missed_by_more_than_eight_nats),
        cmocka_unit_test(the_codes_are_weighed_behind_the_other_words),
        cmocka_unit_test(a_failure_to_weigh_is_told),
        cmocka_unit_test(not_all_speech_is_weighed),
        cmocka_unit_test(heads_are_learnt_by_listening),
        cmocka_unit_test(a_model_without_such_heads_is_left_alone),
    };
    return cmocka_run_group_tests_name("followed", tests, NULL, NULL);
}
