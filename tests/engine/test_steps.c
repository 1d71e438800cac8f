/* SPDX-License-Identifier: Apache-2.0
 * Which calls a device gets, in which order and size, and what a stream makes of its answers, in numbers. */
#include "tests/engine/told.h"

/* ---- One stream ---- */

static void samples_come_in_their_order(void **state)
{
    (void)state;
    static const size_t takes[] = {1, FRAME - 1, FRAME + 1, 5000, 64 * FRAME, 777};
    open_engine(MODEL);
    utter_stream *s = open_plain(180);
    float *pcm = malloc(200 * FRAME * sizeof *pcm);
    size_t n = 0;
    s->use_guard = false;
    for (int i = 0; n < 180 * FRAME; i++) {
        for (int k = 0; k < i % 3 * 30; k++) {
            engine_step(&engine, false, NULL);
        }
        const size_t room = takes[i % 6], held = s->ring_n;
        const size_t got = stream_drain(s, pcm + n, room);
        assert_int_equal(got, held < room ? held : room);
        assert_int_equal(s->ring_n, held - got);
        n += got;
    }
    for (size_t i = 0; i < n; i++) {
        assert_true(pcm[i] == (float)(i / FRAME + 1) / 1000);
    }
    assert_int_equal(n, 180 * FRAME);
    assert_int_equal(s->finish, UTTER_FINISH_MAX_FRAMES);
    free(pcm);
    engine_free_stream(&s);
    engine_close(&engine);
}

/* 64 frames are held; another one is made once there is room for all of it, also for that of frames that wait. */
static void a_ring_is_filled_to_the_frame(void **state)
{
    (void)state;
    static float pcm[3 * FRAME];
    for (int together = 0; together < 2; together++) {
        open_engine(MODEL);
        utter_stream *s = open_plain(200);
        s->use_guard = false;
        while (engine_step(&engine, together, NULL) == UTTER_OK) {
            s->heard_since = clock_seconds() + 1000;
        }
        assert_int_equal(s->n_made, STREAM_RING_FRAMES);
        assert_int_equal(s->n_frames, STREAM_RING_FRAMES);
        assert_int_equal(stream_drain(s, pcm, FRAME - 1), FRAME - 1);
        assert_int_equal(engine_step(&engine, together, NULL), UTTER_AGAIN);
        assert_int_equal(stream_drain(s, pcm, 1), 1);
        assert_int_equal(engine_step(&engine, together, NULL), UTTER_OK);
        assert_int_equal(engine_step(&engine, together, NULL), UTTER_AGAIN);
        assert_int_equal(s->n_frames, STREAM_RING_FRAMES + 1);
        engine_free_stream(&s);
        engine_close(&engine);
    }
}

/* In the stream layout a token of the text goes in with each frame but the first, and padding behind them. */
static void each_frame_gets_its_token(void **state)
{
    (void)state;
    for (int streams = 0; streams < 2; streams++) {
        open_engine(MODEL);
        utter_stream_options o = options_of(30);
        o.layout = streams ? UTTER_LAYOUT_STREAM : UTTER_LAYOUT_FULL;
        utter_stream *s = open_stream(&o);
        run(s, false);
        const int pad = engine.context.model->config->tts_pad;
        int n_padded = 0;
        assert_int_equal(fake.n[CALL_FRAME], 30);
        assert_int_equal(fake.texts[0], -1);
        for (int f = 1; f < 30; f++) {
            assert_int_equal(fake.texts[f], prompt_trailing(s->prompt, f - 1));
            n_padded += fake.texts[f] == pad;
        }
        assert_true(streams ? n_padded < 20 : n_padded >= 28);
        engine_free_stream(&s);
        engine_close(&engine);
    }
}

/* Also the first token of the vocabulary, "!", is one. */
static void the_first_token_is_text_as_others(void **state)
{
    (void)state;
    static const char text[] = "Yes! No! Go!";
    open_engine(MODEL);
    utter_stream_options o = options_of(30);
    utter_stream *s;
    int n_first = 0;
    o.layout = UTTER_LAYOUT_STREAM;
    assert_int_equal(engine_open_stream(&s, &engine, &o, NULL), UTTER_OK);
    assert_int_equal(stream_text(s, text, strlen(text), NULL), UTTER_OK);
    assert_int_equal(stream_finish(s, NULL), UTTER_OK);
    run(s, false);
    assert_int_equal(fake.n[CALL_FRAME], 30);
    for (int f = 0; f < 30; f++) {
        n_first += fake.texts[f] == 0;
    }
    assert_int_equal(n_first, 3);
    engine_free_stream(&s);
    engine_close(&engine);
}

/* A frame is made once the token that goes in with it is certain. */
static void a_frame_waits_for_its_token(void **state)
{
    (void)state;
    static const char *const pieces[] = {"Hello there, ", "friend. How ", "are you"};
    open_engine(MODEL);
    utter_stream_options o = options_of(60);
    o.layout = UTTER_LAYOUT_STREAM;
    utter_stream *s;
    int n_before = 0;
    assert_int_equal(engine_open_stream(&s, &engine, &o, NULL), UTTER_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(stream_text(s, pieces[i], strlen(pieces[i]), NULL), UTTER_OK);
        run(s, i == 1);
        assert_int_equal(s->finish, UTTER_FINISH_NONE);
        assert_true(s->n_made > n_before && s->n_frames == s->n_made);
        assert_int_equal(prompt_trailing(s->prompt, s->n_made - 1), -1);
        assert_true(s->n_made < 2 || prompt_trailing(s->prompt, s->n_made - 2) >= 0);
        n_before = s->n_made;
    }
    assert_int_equal(stream_finish(s, NULL), UTTER_OK);
    run(s, false);
    assert_int_equal(s->n_frames, 60);
    engine_free_stream(&s);
    engine_close(&engine);
}

static void times_add_up(void **state)
{
    (void)state;
    open_engine(MODEL);
    struct prompt_clock *clock = &engine.context.prompt_clock;
    utter_stream *s = open_plain(4);
    const int n_rows = rows_of(s);
    fake.out = (struct lane_out){
        .talker_s = 1, .predictor_s = 10, .vocoder_s = 100, .wait_s = 1000, .prefill_s = 0.5};
    run(s, false);
    assert_true(s->stats.talker_s == 4 && s->stats.predictor_s == 40);
    assert_true(s->stats.vocoder_s == 400 && s->stats.wait_s == 4000);
    assert_true(s->stats.prefill_s == 0.5);
    assert_int_equal(s->stats.n_rows, n_rows);
    assert_int_equal(s->stats.n_kept_rows, 0);
    assert_true(fabs(clock->row_s - 0.5 / n_rows) < 1e-12);
    CHECK_CALLS(CALL_PREFILL, n_rows);
    CHECK_CALLS(CALL_FRAME, 1, 1, 1, 1);
    CHECK_CALLS(CALL_VOCODE, 1, 1, 1, 1);
    assert_int_equal(fake.n[CALL_ROOM], 4);
    assert_int_equal(fake.n[CALL_FEED], 0);
    engine_free_stream(&s);
    s = open_plain(2); /* a running mean */
    fake.out.prefill_s = 1.5;
    run(s, false);
    assert_true(fabs(clock->row_s - (0.5 + 0.3) / n_rows) < 1e-12);
    engine_free_stream(&s);
    s = open_plain(2); /* others' prompts came with it: nothing is known */
    fake.out.prefill_s = -1;
    run(s, false);
    assert_true(fabs(clock->row_s - (0.5 + 0.3) / n_rows) < 1e-12);
    assert_true(s->stats.prefill_s > 0 && s->stats.prefill_s < 100);
    engine_free_stream(&s);
    s = open_plain(2); /* the prompt was waited for */
    fake.out.prefill_s = 0;
    run(s, false);
    assert_true(clock->row_s < (0.5 + 0.3) / n_rows);
    assert_true(s->stats.prefill_s > 0 && s->stats.prefill_s < 100);
    engine_free_stream(&s);
    /* Pieces: what the device tells is of the last one. */
    s = open_plain(1);
    clock->most_s = 1;
    clock->row_s = 1.0 / (n_rows - 1);
    fake.out.prefill_s = 50;
    fake.out.wait_s = 3;
    run(s, false);
    assert_int_equal(fake.n[CALL_PREFILL], 6);
    assert_true(s->stats.prefill_s >= 50 && s->stats.prefill_s < 60);
    assert_true(s->stats.wait_s == 6); /* for the piece, and for the frame */
    engine_free_stream(&s);
    engine_close(&engine);
}

/* The first sound is waited for from the text on that made its frame certain: in the stream layout the first one that
 * has a token, else the end. */
static void the_first_sound_is_timed_from_its_text_on(void **state)
{
    (void)state;
    for (int streams = 0; streams < 2; streams++) {
        open_engine(MODEL);
        utter_stream_options o = options_of(3);
        o.layout = streams ? UTTER_LAYOUT_STREAM : UTTER_LAYOUT_FULL;
        utter_stream *s;
        assert_int_equal(engine_open_stream(&s, &engine, &o, NULL), UTTER_OK);
        const double begin = clock_seconds();
        assert_int_equal(stream_text(s, TEXT, strlen(TEXT), NULL), UTTER_OK);
        const double read = clock_seconds(), first_s = s->stats.prompt_s;
        assert_true(first_s > 0 && first_s <= read - begin);
        assert_true(streams ? s->text_since >= begin && s->text_since < read : s->text_since == 0);
        const double since = s->text_since;
        assert_int_equal(stream_finish(s, NULL), UTTER_OK);
        const double ended = clock_seconds();
        assert_true(s->stats.prompt_s > first_s && s->stats.prompt_s <= ended - begin);
        assert_true(streams ? s->text_since == since : s->text_since >= read && s->text_since < ended);
        assert_int_equal(engine_step(&engine, false, NULL), UTTER_OK);
        assert_true(s->heard_since >= ended && s->heard_since <= clock_seconds());
        assert_true(s->stats.first_sound_s == s->heard_since - s->text_since);
        engine_free_stream(&s);
        engine_close(&engine);
    }
}

/* A listener who has waited hears all that comes later by so much later; one who has not loses nothing. */
static void what_came_late_is_waited_for_once(void **state)
{
    (void)state;
    open_engine(MODEL);
    utter_stream *s = open_plain(5);
    assert_int_equal(engine_step(&engine, false, NULL), UTTER_OK);
    assert_true(s->waited_s == 0);
    const double early = clock_seconds() + 1000;
    s->heard_since = early;
    assert_int_equal(engine_step(&engine, false, NULL), UTTER_OK);
    assert_true(s->waited_s == 0 && s->heard_since == early);
    const double late = clock_seconds() - 1000;
    for (int i = 1; i < 3; i++) { /* two frames of 80 ms were heard, then three */
        const double waited = s->waited_s, least = clock_seconds() - late;
        s->heard_since = late;
        assert_int_equal(engine_step(&engine, false, NULL), UTTER_OK);
        const double most = clock_seconds() - late, more = s->waited_s - waited;
        assert_true(more >= least - (i + 1) * 0.08 - 1e-6 && more <= most - (i + 1) * 0.08 + 1e-6);
        assert_true(fabs(s->heard_since - late - more) < 1e-6);
    }
    engine_free_stream(&s);
    engine_close(&engine);
}

static utter_status collect_clicks(
    struct backend *b, int lane, struct lane_out *out, utter_error *error)
{
    const utter_status status = fake_collect(b, lane, out, error);
    for (size_t i = 0; i < out->n_samples; i += FRAME) {
        fake.pcm[i] = 0;
    }
    return status;
}

/* Frames that never repeat and are loud in all but their first sample end at the ceiling of their text's tokens. */
static void the_guard_is_told_of_each_frame(void **state)
{
    (void)state;
    for (int together = 0; together < 2; together++) {
        open_engine(MODEL);
        ops.collect = collect_clicks;
        fake.level = 0.5f;
        const utter_stream_options o = options_of(190);
        utter_stream *s;
        assert_int_equal(engine_open_stream(&s, &engine, &o, NULL), UTTER_OK);
        assert_int_equal(stream_text(s, "Hi", 2, NULL), UTTER_OK);
        assert_int_equal(stream_finish(s, NULL), UTTER_OK);
        const int n = prompt_text_tokens(s->prompt);
        assert_in_range(n, 1, 2);
        run(s, together);
        assert_int_equal(s->finish, UTTER_FINISH_CEILING);
        assert_int_equal(s->n_frames, 125 + 25 * n);
        engine_free_stream(&s);
        engine_close(&engine);
    }
}

/* The first piece of a prompt; later ones are of what the machine was seen to take. */
static void pieces_take_the_time_that_was_asked_for(void **state)
{
    (void)state;
    open_engine(MODEL);
    struct prompt_clock *clock = &engine.context.prompt_clock;
    utter_stream *s = open_plain(1);
    const int n_rows = rows_of(s);
    engine_free_stream(&s);
    assert_in_range(n_rows, 33, 100);
    const struct {
        double most_s, rows; /* that so much time is enough for; 0: not known */
        int piece;
    } cases[] = {
        {0, 20, n_rows},
        {1, n_rows, n_rows},
        {1, n_rows - 1, (n_rows + 1) / 2},
        {1, 20, (n_rows + (n_rows + 19) / 20 - 1) / ((n_rows + 19) / 20)},
        {1, 16, (n_rows + (n_rows + 15) / 16 - 1) / ((n_rows + 15) / 16)},
        {1, 3,
            (n_rows + (n_rows + 15) / 16 - 1) / ((n_rows + 15) / 16)}, /* 16 rows are always worth it */
        {1, 0, (n_rows + (n_rows + 15) / 16 - 1) / ((n_rows + 15) / 16)},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        clock->most_s = cases[i].most_s;
        const double row_s = cases[i].rows > 0 ? (1 - 1e-9) / cases[i].rows : 0;
        clock->row_s = row_s;
        s = open_plain(1);
        fake.n[CALL_PREFILL] = 0;
        assert_int_equal(engine_step(&engine, false, NULL), UTTER_OK);
        assert_true(cases[i].piece == n_rows || fabs(clock->row_s - row_s) > 0); /* it is learnt from */
        CHECK_CALLS(CALL_PREFILL, cases[i].piece);
        assert_int_equal(s->n_frames, cases[i].piece == n_rows);
        assert_int_equal(s->stats.n_rows, cases[i].piece);
        run(s, false);
        int sum = 0;
        for (int k = 0; k < fake.n[CALL_PREFILL]; k++) {
            sum += fake.sizes[CALL_PREFILL][k];
        }
        assert_int_equal(sum, n_rows);
        engine_free_stream(&s);
    }
    /* A piece of few rows tells nothing. */
    clock->most_s = 0;
    clock->row_s = 7;
    s = open_plain(1);
    s->begun = true;
    s->n_read = n_rows - STREAM_LEAST_ROWS / 2 + 1;
    fake.out.prefill_s = 1;
    run(s, false);
    assert_true(clock->row_s == 7);
    engine_free_stream(&s);
    s = open_plain(1);
    s->begun = true;
    s->n_read = n_rows - STREAM_LEAST_ROWS / 2;
    run(s, false);
    assert_true(fabs(clock->row_s - (7 + 0.3 * (1 / 8.0 - 7))) < 1e-9);
    engine_free_stream(&s);
    engine_close(&engine);
}

static void an_end_comes_behind_its_last_frame(void **state)
{
    (void)state;
    static const struct {
        int end_at, bad_codes_at, bad_sound_at, max_frames, n_frames;
        utter_finish finish;
        const char *text;
    } cases[] = {
        {9, NEVER, NEVER, 20, 9, UTTER_FINISH_EOS, ""},
        {0, NEVER, NEVER, 20, 0, UTTER_FINISH_EOS, ""},
        {20, NEVER, NEVER, 20, 20, UTTER_FINISH_MAX_FRAMES, ""},
        {19, NEVER, NEVER, 20, 19, UTTER_FINISH_EOS, ""},
        {NEVER, 9, NEVER, 20, 9, UTTER_FINISH_ERROR,
            "frame 9 came out as something that is not a number (the weights are damaged)"},
        {NEVER, NEVER, 8, 20, 8, UTTER_FINISH_ERROR,
            "frame 8 came out as something that is not a number (the weights are damaged)"},
    };
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        open_engine(MODEL);
        const bool together = i % 2;
        const int n_frames =
            i / 2 == 5 && together ? 5 : cases[i / 2].n_frames; /* the first, and fours */
        fake.end_at = cases[i / 2].end_at;
        fake.bad_codes_at = cases[i / 2].bad_codes_at;
        fake.bad_sound_at = cases[i / 2].bad_sound_at;
        utter_stream *s = open_plain(cases[i / 2].max_frames);
        run(s, together);
        assert_int_equal(s->finish, cases[i / 2].finish);
        assert_int_equal(s->n_frames, n_frames);
        assert_int_equal(s->failure.code, cases[i / 2].text[0] ? UTTER_E_NUMBER : UTTER_OK);
        if (i != 11) {
            assert_string_equal(s->failure.text, cases[i / 2].text);
        }
        engine_free_stream(&s);
        engine_close(&engine);
    }
}

/* The model's positions hold rows and frames, but for the first frame's, which is the last row's. */
static void positions_are_used_up(void **state)
{
    (void)state;
    open_engine(MODEL);
    struct config *c = (struct config *)engine.context.model->config;
    utter_stream *s = open_plain(20);
    const int n_rows = rows_of(s), all = c->max_positions;
    engine_free_stream(&s);
    for (int i = 0; i < 6; i++) {
        static const int more[] = {-1, 0, 1, 5, 19, 20}, n_frames[] = {0, 0, 1, 5, 19, 20};
        s = open_plain(20);
        c->max_positions = n_rows + more[i];
        run(s, i % 2);
        assert_int_equal(s->n_frames, n_frames[i]);
        assert_int_equal(s->finish, i < 2   ? UTTER_FINISH_ERROR
                                    : i < 5 ? UTTER_FINISH_CONTEXT
                                            : UTTER_FINISH_MAX_FRAMES);
        if (i < 2) {
            char wanted[100];
            snprintf(wanted, sizeof wanted, "the text takes %d positions, this model has %d (split it)",
                n_rows, n_rows + more[i]);
            assert_int_equal(s->failure.code, UTTER_E_ARGUMENT);
            assert_string_equal(s->failure.text, wanted);
        }
        engine_free_stream(&s);
        c->max_positions = all;
    }
    const utter_stream_options o = options_of(20);
    c->max_positions = 11;
    assert_int_equal(engine_open_stream(&s, &engine, &o, NULL), UTTER_OK);
    assert_int_equal(s->max_frames, 11);
    engine_free_stream(&s);
    c->max_positions = all;
    engine_close(&engine);
}

/* ---- Frames that wait for their sound ---- */

static void frames_gather_while_the_listener_has_enough(void **state)
{
    (void)state;
    open_engine(MODEL);
    fake.out.talker_s = 0.01;
    fake.out.vocoder_s = 0.01;
    utter_stream *s = open_plain(12);
    run(s, true);
    CHECK_CALLS(CALL_FEED, 4, 4, 3); /* the first frame's sound comes at once */
    CHECK_CALLS(CALL_VOCODE, 1, 1, 1, 1);
    assert_int_equal(fake.n[CALL_FRAME], 12);
    engine_free_stream(&s);
    fake.n[CALL_FEED] = fake.n[CALL_VOCODE] = 0;
    engine.no_waiting = true;
    s = open_plain(12);
    run(s, true);
    CHECK_CALLS(CALL_VOCODE, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1);
    assert_int_equal(fake.n[CALL_FEED], 0);
    engine_free_stream(&s);
    engine.no_waiting = false;
    ops.gathers = 0;
    fake.n[CALL_VOCODE] = 0;
    s = open_plain(5);
    run(s, true);
    CHECK_CALLS(CALL_VOCODE, 1, 1, 1, 1, 1);
    assert_int_equal(fake.n[CALL_FEED], 0);
    engine_free_stream(&s);
    engine_close(&engine);
}

/* What a stream decides, at the edges of what it knows. */
static void it_is_known_when_sound_is_due(void **state)
{
    (void)state;
    open_engine(MODEL);
    utter_stream *s = open_plain(50);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(engine_step(&engine, false, NULL), UTTER_OK);
    }
    const double ago = clock_seconds() - 1000, later = clock_seconds() + 1000;
    s->context->n_together = 4;
    s->heard_since = later;
    assert_int_equal(stream_sound_due(s, true), 0); /* all have theirs */
    assert_false(stream_at_once(s, false));
    assert_true(stream_at_once(s, true));
    s->n_made = 5;
    assert_false(stream_at_once(s, true)); /* others wait already, and get theirs with it */
    assert_int_equal(stream_sound_due(s, true), 2);
    assert_int_equal(stream_sound_due(s, false), 0);
    s->heard_since = ago; /* the listener waits */
    assert_int_equal(stream_sound_due(s, false), 2);
    s->heard_since = later;
    s->n_made = 6;
    assert_int_equal(stream_sound_due(s, false), 0);
    s->n_made = 7;
    assert_int_equal(stream_sound_due(s, false), 4);
    s->n_made = 5;
    s->context->n_together = 2;
    assert_int_equal(stream_sound_due(s, false), 2);
    s->context->n_together = 4;
    s->coming = UTTER_FINISH_EOS;
    assert_int_equal(stream_sound_due(s, false), 2);
    s->coming = UTTER_FINISH_NONE;
    s->max_frames = 6;
    assert_int_equal(stream_sound_due(s, false), 0);
    s->max_frames = 5;
    assert_int_equal(stream_sound_due(s, false), 2);
    s->max_frames = 50;
    s->ring_n = s->ring_size - 3 * FRAME; /* room for those two and a third */
    assert_int_equal(stream_sound_due(s, false), 0);
    s->ring_n++;
    assert_int_equal(stream_sound_due(s, false), 2);
    s->ring_n = 0;
    s->n_made = s->n_frames = 3;
    s->heard_since = ago;
    assert_true(stream_at_once(s, false));
    s->heard_since = later;
    s->context->n_together = 1;
    assert_true(stream_at_once(s, false));
    engine_free_stream(&s);
    engine_close(&engine);
}

/* Several at a time have so many frames together that a call has 16; a newcomer's first sound hastens all. */
static void lanes_share_a_call(void **state)
{
    (void)state;
    open_engine(MODEL);
    ops.gathers = 32;
    utter_stream *s[N_LANES];
    float pcm[FRAME];
    for (int i = 0; i < N_LANES; i++) {
        s[i] = open_plain(40);
    }
    for (int f = 0; f < 6; f++) {
        assert_int_equal(engine_step(&engine, true, NULL), UTTER_OK);
        for (int i = 0; i < N_LANES; i++) {
            s[i]->heard_since = clock_seconds() + 1000;
            stream_drain(s[i], pcm, FRAME);
        }
    }
    assert_int_equal(engine.context.n_together, 16 / N_LANES);
    CHECK_CALLS(CALL_FRAME, 3, 3, 3, 3, 3, 3);
    CHECK_CALLS(CALL_FEED, 5, 5, 5);
    CHECK_CALLS(CALL_VOCODE, 3, 3);
    engine_free_stream(&s[1]);
    assert_int_equal(engine_free_lane(&engine), 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(engine_step(&engine, true, NULL), UTTER_OK);
    }
    assert_int_equal(s[0]->n_made - s[0]->n_frames, 2);
    s[1] = open_plain(40);
    assert_int_equal(s[1]->lane, 1);
    assert_int_equal(engine_step(&engine, true, NULL), UTTER_OK);
    assert_int_equal(s[0]->n_frames, 9);
    assert_int_equal(s[1]->n_frames, 1);
    assert_int_equal(s[2]->n_frames, 9);
    for (int i = 0; i < N_LANES; i++) {
        engine_free_stream(&s[i]);
    }
    engine_close(&engine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_come_in_their_order),
        cmocka_unit_test(a_ring_is_filled_to_the_frame),
        cmocka_unit_test(each_frame_gets_its_token),
        cmocka_unit_test(the_first_token_is_text_as_others),
        cmocka_unit_test(a_frame_waits_for_its_token),
        cmocka_unit_test(times_add_up),
        cmocka_unit_test(the_first_sound_is_timed_from_its_text_on),
        cmocka_unit_test(what_came_late_is_waited_for_once),
        cmocka_unit_test(the_guard_is_told_of_each_frame),
        cmocka_unit_test(pieces_take_the_time_that_was_asked_for),
        cmocka_unit_test(an_end_comes_behind_its_last_frame),
        cmocka_unit_test(positions_are_used_up),
        cmocka_unit_test(frames_gather_while_the_listener_has_enough),
        cmocka_unit_test(it_is_known_when_sound_is_due),
        cmocka_unit_test(lanes_share_a_call),
    };
    return cmocka_run_group_tests_name("steps", tests, NULL, NULL);
}
