/* SPDX-License-Identifier: Apache-2.0
 * The sound of readings beside that of streams: where words are heard, what is said again while somebody listens, what
 * comes when it is cancelled, and what a stream's failure is told as. */
#include "tests/engine/speaking.h"

#include <math.h>

#include "api/api.h"
#include "reading/reading_parts.h"

#define ENDLESS "build/checkpoints/endless"

enum { MOST_PIECES = 24, MOST_WORDS = 64, FRAME = 1920, MOST_SOUND = 24000 * 60 };

static const char SAID[] = "One boat left us. Two boats came here. Three of us saw them.";

struct told {
    utter_piece at[MOST_PIECES];
    char texts[MOST_PIECES][128];
    size_t n;
};

static void on_piece(void *user, const utter_piece *piece)
{
    struct told *t = user;
    assert_true(t->n < MOST_PIECES && piece->text_bytes < 128);
    memcpy(t->texts[t->n], piece->text, piece->text_bytes);
    t->texts[t->n][piece->text_bytes] = 0;
    t->at[t->n++] = *piece;
}

static utter_reading_options reading_options(struct told *t)
{
    utter_reading_options o;
    utter_reading_options_init(&o);
    *t = (struct told){.n = 0};
    o.retries = 0;
    o.piece_length = 20;
    o.piece = on_piece;
    o.piece_user = t;
    return o;
}

static utter_reading *open_reading(
    utter_model *model, const utter_stream_options *v, const utter_reading_options *o, const char *text)
{
    utter_reading *r;
    utter_error error = {0};
    assert_int_equal(utter_reading_open(&r, model, v, o, &error), UTTER_OK);
    assert_int_equal(utter_reading_text(r, text, strlen(text), &error), UTTER_OK);
    assert_int_equal(utter_reading_finish(r, &error), UTTER_OK);
    return r;
}

/* Samples up to the end; the status is that of the last read. */
static size_t read_on(utter_reading *r, float *pcm, utter_status *status, utter_error *error)
{
    size_t n = 0, got;
    while ((*status = utter_reading_read(r, pcm + n, FRAME, &got, error)) == UTTER_OK) {
        n += got;
        assert_true(n + FRAME <= MOST_SOUND);
    }
    return n;
}

/* The words of a stream that says this, where they are in its sound. */
static size_t words_alone(
    utter_model *model, const utter_stream_options *v, const char *text, utter_word *words, float *pcm)
{
    utter_stream *stream;
    size_t n, n_words, all = 0;
    assert_int_equal(utter_stream_open(&stream, model, v, NULL), UTTER_OK);
    assert_int_equal(utter_stream_text(stream, text, strlen(text), NULL), UTTER_OK);
    assert_int_equal(utter_stream_finish(stream, NULL), UTTER_OK);
    while (utter_stream_read(stream, pcm + all, FRAME, &n, NULL) == UTTER_OK) {
        all += n;
    }
    const utter_word *at = utter_stream_words(stream, &n_words);
    assert_true(n_words <= MOST_WORDS);
    memcpy(words, at, n_words * sizeof *words);
    utter_stream_free(&stream);
    return n_words;
}

/* To the sample: behind the beginning of a word the reading has the sound that the stream has there, softer at most. */
static void words_are_where_their_sound_is(void **state)
{
    enum { LOOK = 800 };
    (void)state;
    utter_model *model = open_with(MODEL, 1, 1);
    utter_stream_options v = options_of(model, 12, 7);
    float *pcm = malloc(MOST_SOUND * sizeof *pcm), *own = malloc(MOST_SOUND * sizeof *own);
    v.words = true;
    for (int live = 0; live < 2; live++) {
        struct told told;
        utter_reading_options o = reading_options(&told);
        utter_status status;
        o.live = live;
        utter_reading *r = open_reading(model, &v, &o, SAID);
        size_t n = read_on(r, pcm, &status, NULL), n_words, at = 0, n_looked = 0;
        uint64_t first;
        const utter_word *words = utter_reading_words(r, &first, &n_words);
        assert_int_equal(first, 0);
        assert_true(told.n > 2 && told.at[told.n - 1].end == n);
        for (size_t i = 0; i < told.n; i++) {
            utter_word alone[MOST_WORDS];
            size_t n_alone = words_alone(model, &v, told.texts[i], alone, own);
            for (size_t k = 0; k < n_alone; k++, at++) {
                const utter_word *w = &words[at];
                assert_true(at < n_words && w->final);
                assert_int_equal(w->at, told.at[i].at + alone[k].at);
                for (size_t j = 0; k > 0 && j < LOOK && w->start + j + 200 < told.at[i].end; j++) {
                    float x = own[alone[k].start + j], y = pcm[w->start + j];
                    if (fabsf(x) > 0.01f) {
                        assert_true(x * y > 0 && fabsf(y) <= fabsf(x) * 1.0001f);
                        assert_true(fabsf(y) > 0.6f * fabsf(x)); /* 4 dB at most */
                        n_looked++;
                    }
                }
            }
        }
        assert_int_equal(at, n_words);
        assert_true(n_looked > LOOK);
        utter_reading_free(&r);
    }
    free(pcm);
    free(own);
    utter_model_close(&model);
}

/* A model that never ends: who listens hears each try, and all of them are counted; who does not, the last. */
static void each_try_is_heard_live(void **state)
{
    enum { FRAMES = 3, RETRIES = 2 };
    (void)state;
    utter_model *model = open_with(ENDLESS, 1, 1);
    utter_stream_options v = options_of(model, FRAMES, 7);
    float *pcm = malloc(MOST_SOUND * sizeof *pcm);
    size_t lengths[2];
    for (int live = 0; live < 2; live++) {
        struct told told;
        utter_reading_options o = reading_options(&told);
        utter_reading_stats stats = {.size = sizeof stats};
        utter_status status;
        o.live = live;
        o.retries = RETRIES;
        o.sentence_pause_s = o.paragraph_pause_s = 0.1;
        utter_reading *r = open_reading(model, &v, &o, SAID);
        lengths[live] = read_on(r, pcm, &status, NULL);
        assert_int_equal(status, UTTER_END);
        assert_int_equal(utter_reading_get_stats(r, &stats), UTTER_OK);
        assert_int_equal(stats.n_pieces, told.n);
        assert_int_equal(stats.n_broken, told.n);
        assert_int_equal(stats.n_retries, RETRIES * told.n);
        assert_int_equal(stats.n_frames, (live ? RETRIES + 1 : 1) * FRAMES * told.n);
        for (size_t i = 0; i < told.n; i++) {
            assert_int_equal(told.at[i].tries, RETRIES + 1);
            assert_int_equal(told.at[i].seed, 7 + RETRIES);
            assert_int_equal(told.at[i].n_frames, FRAMES);
            assert_true(fabs(told.at[i].seconds - 0.08 * FRAMES) < 1e-9);
            assert_int_equal(told.at[i].begin, i ? told.at[i - 1].end : 0);
            assert_true(told.at[i].end > told.at[i].begin && !told.at[i].whole);
        }
        utter_reading_free(&r);
    }
    assert_true(lengths[1] > 2 * lengths[0]);
    free(pcm);
    utter_model_close(&model);
}

/* What was made comes, to the last sample, and nothing else; the piece is told as one that was cancelled. */
static void all_that_was_made_comes_when_it_is_cancelled(void **state)
{
    (void)state;
    utter_model *model = open_with(ENDLESS, 1, 1);
    utter_stream_options v = options_of(model, 8, 7);
    float *pcm = malloc(MOST_SOUND * sizeof *pcm);
    struct result *whole = speak(model, &v, "One boat left us.", 100, FRAME);
    struct told told;
    utter_reading_options o = reading_options(&told);
    utter_status status;
    for (int live = 0; live < 2; live++) {
        size_t first;
        o.live = live;
        o.retries = live ? 0 : 1;
        utter_reading *r = open_reading(model, &v, &o, SAID);
        told.n = 0;
        if (live) {
            assert_int_equal(utter_reading_read(r, pcm, FRAME, &first, NULL), UTTER_OK);
        } else { /* of a piece that may be said again nothing has come */
            first = 0;
            for (int i = 0; i < 3; i++) {
                assert_int_equal(utter_reading_take(r, pcm, FRAME, &first, NULL), UTTER_AGAIN);
                assert_int_equal(utter_model_step(model, NULL), UTTER_OK);
            }
        }
        assert_true(r->n_works == 1);
        size_t n_frames = (size_t)r->works[0].stream->n_frames;
        utter_reading_cancel(r);
        assert_true(reading_ready(r));
        size_t n = first + read_on(r, pcm + first, &status, NULL);
        assert_int_equal(status, UTTER_END);
        assert_int_equal(n, n_frames * FRAME);
        assert_true(n > 0 && n < whole->n_samples);
        assert_memory_equal(pcm, whole->pcm, n * sizeof *pcm);
        utter_reading_stats stats = {.size = sizeof stats};
        assert_int_equal(utter_reading_get_stats(r, &stats), UTTER_OK);
        assert_int_equal(stats.finish, UTTER_FINISH_CANCELLED);
        assert_int_equal(stats.n_frames, n_frames);
        assert_true(stats.n_pieces == 1 && stats.n_broken == 1);
        assert_int_equal(told.n, 1);
        assert_int_equal(told.at[0].finish, UTTER_FINISH_CANCELLED);
        assert_int_equal(told.at[0].end, n);
        assert_int_equal(engine_free_lane(&model->engine), 0); /* its lane is free already */
        utter_reading_free(&r);
    }
    free(pcm);
    free(whole);
    utter_model_close(&model);
}

/* A stream's failure is the reading's, with its words, now and later. */
static void a_failed_stream_fails_the_reading(void **state)
{
    static const char *const models[] = {"build/checkpoints/nan-scores", "build/checkpoints/nan-sound"};
    (void)state;
    float *pcm = malloc(MOST_SOUND * sizeof *pcm);
    for (size_t i = 0; i < 2; i++) {
        utter_model *model = open_with(models[i], 1, 1);
        utter_stream_options v = options_of(model, 8, 7);
        utter_stream *stream;
        utter_error wanted = {0}, error = {0};
        struct told told;
        utter_reading_options o = reading_options(&told);
        utter_status status, alone;
        size_t n;
        assert_int_equal(utter_stream_open(&stream, model, &v, NULL), UTTER_OK);
        assert_int_equal(utter_stream_text(stream, SAID, 17, NULL), UTTER_OK);
        assert_int_equal(utter_stream_finish(stream, NULL), UTTER_OK);
        while ((alone = utter_stream_read(stream, pcm, FRAME, &n, &wanted)) == UTTER_OK) {
        }
        assert_true(alone < 0);
        utter_stream_free(&stream);
        utter_reading *r = open_reading(model, &v, &o, SAID);
        for (int again = 0; again < 2; again++) {
            error = (utter_error){0};
            read_on(r, pcm, &status, &error);
            assert_int_equal(status, alone);
            assert_int_equal(error.code, alone);
            assert_string_equal(error.text, wanted.text);
        }
        utter_reading_stats stats = {.size = sizeof stats};
        assert_int_equal(utter_reading_get_stats(r, &stats), UTTER_OK);
        assert_int_equal(stats.finish, UTTER_FINISH_ERROR);
        assert_int_equal(told.n, 0);
        utter_reading_free(&r);
        utter_model_close(&model);
    }
    free(pcm);
}

/* Who did not ask why learns later that it failed. */
static void a_failure_that_nobody_asked_for_has_words(void **state)
{
    (void)state;
    utter_model *model = open_with(MODEL, 1, 1);
    utter_reading *r;
    utter_error error = {0};
    assert_int_equal(utter_reading_open(&r, model, NULL, NULL, NULL), UTTER_OK);
    assert_int_equal(utter_reading_text(r, "\xff", 1, NULL), UTTER_E_ARGUMENT);
    assert_int_equal(utter_reading_text(r, "a", 1, &error), UTTER_E_ARGUMENT);
    assert_int_equal(error.code, UTTER_E_ARGUMENT);
    assert_string_equal(error.text, "the reading failed");
    assert_int_equal(utter_reading_finish(r, NULL), UTTER_E_ARGUMENT);
    utter_reading_free(&r);
    utter_model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(words_are_where_their_sound_is),
        cmocka_unit_test(each_try_is_heard_live),
        cmocka_unit_test(all_that_was_made_comes_when_it_is_cancelled),
        cmocka_unit_test(a_failed_stream_fails_the_reading),
        cmocka_unit_test(a_failure_that_nobody_asked_for_has_words)};
    return cmocka_run_group_tests_name("sound of readings", tests, NULL, NULL);
}
