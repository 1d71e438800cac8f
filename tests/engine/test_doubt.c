/* SPDX-License-Identifier: Apache-2.0
 * A word that is not said is found, and its piece said again. The fault is planted behind the door: a device that goes
 * on with the codes of another text, in which the word is not. */
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

#include "reading/reading.h"

static const char SAID[] = "The quick fox jumps over the lazy dog.",
                  GIVEN[] = "The quick brown fox jumps over the lazy dog.", MISSED[] = "brown";

enum { MOST_FRAMES = 200 };

/* What the device says in place of what is asked for, while `left` utterances of it are. */
static struct {
    int32_t *codes;
    int n_frames, n_codebooks, frame, left;
    bool is_new;   /* a frame has not been collected */
    bool silent;   /* its frames do not tell how likely their codes are */
    bool full;     /* it has no room for a text that is read again */
    int n_weighed; /* rows of which it has been asked how they explain the codes */
    bool strays;   /* what it looks at leaves out words that are said */
} planted;

static utter_status reset(
    struct backend *b, int lane, const struct lane_settings *settings, utter_error *error)
{
    planted.left -= planted.frame > 0;
    planted.frame = 0;
    return cpu_backend.lane_reset(b, lane, settings, error);
}

static utter_status frame(struct backend *b, const struct frame_in *in, int n, utter_error *error)
{
    struct frame_in forced = *in;
    assert_int_equal(n, 1);
    if (planted.left > 0 && planted.frame < planted.n_frames) {
        forced.forced = planted.codes + (ptrdiff_t)planted.frame * planted.n_codebooks;
    }
    planted.frame++;
    planted.is_new = true;
    return cpu_backend.frame(b, &forced, n, error);
}

/* The scores of a way that is quick to go over some of the first tokens. */
static const float *stray(int n_scores)
{
    enum { HEADS = 64, FROM = 1, TO = 8 };
    static float scores[HEADS * MOST_FRAMES];
    assert_true(n_scores <= MOST_FRAMES);
    int place = (planted.frame - 1) * (n_scores - 1) / planted.n_frames;
    place = place < FROM || place >= TO ? place : TO;
    for (int i = 0; i < HEADS * n_scores; i++) {
        scores[i] = i % n_scores == place ? 20 : 0;
    }
    return scores;
}

static utter_status collect(struct backend *b, int lane, struct lane_out *out, utter_error *error)
{
    utter_status status = cpu_backend.collect(b, lane, out, error);
    if (planted.strays && planted.is_new && out->scores) {
        out->scores = stray(out->n_scores);
    }
    if (planted.left > 0 && planted.is_new) {
        out->end = planted.frame > planted.n_frames;
        out->likelihood.log_p = out->end ? 0 : out->likelihood.log_p;
        out->codes = planted.codes + (ptrdiff_t)(planted.frame - 1) * planted.n_codebooks;
    }
    if (planted.silent) {
        out->likelihood = (struct likelihood){0};
    }
    planted.is_new = false;
    return status;
}

static utter_status weigh(struct backend *b, int lane, const struct row *rows, int n,
    const int32_t *codes, struct likelihood *likelihoods, utter_error *error)
{
    planted.n_weighed += n;
    return planted.full ? error_set(error, UTTER_E_MEMORY, "no pages are free")
                        : cpu_backend.weigh(b, lane, rows, n, codes, likelihoods, error);
}

static struct backend_ops faulty;

static struct engine *open_faulty(double prompt_s)
{
    struct engine *engine = calloc(1, sizeof *engine);
    struct engine_options o = {.ops = &faulty, .prompt_s = prompt_s};
    faulty = cpu_backend;
    faulty.lane_reset = reset;
    faulty.frame = frame;
    faulty.collect = collect;
    faulty.weigh = weigh;
    faulty.gathers = 0;
    o.backend.n_lanes = 1;
    o.backend.n_threads = 2;
    assert_int_equal(engine_open(engine, "voice/builtin", &o, NULL), UTTER_OK);
    return engine;
}

static utter_stream_options options_of(const struct engine *engine, utter_layout layout)
{
    const struct config *c = engine->context.model->config;
    return (utter_stream_options){.layout = layout,
        .seed = 1,
        .talker = c->talker_sampling,
        .predictor = c->predictor_sampling,
        .max_frames = MOST_FRAMES,
        .guard = true,
        .words = true};
}

static utter_stream *say(
    struct engine *engine, const char *text, const utter_stream_options *o, utter_voice **voice)
{
    static float pcm[24000];
    utter_stream *stream;
    utter_stream_options all = *o;
    assert_int_equal(voice_new_preset(voice, engine->context.model->config, "clara", NULL), UTTER_OK);
    all.voice = *voice;
    assert_int_equal(engine_open_stream(&stream, engine, &all, NULL), UTTER_OK);
    assert_int_equal(stream_text(stream, text, strlen(text), NULL), UTTER_OK);
    assert_int_equal(stream_finish(stream, NULL), UTTER_OK);
    while (stream->finish == UTTER_FINISH_NONE) {
        assert_int_equal(engine_step(engine, false, NULL), UTTER_OK);
        stream_drain(stream, pcm, sizeof pcm / sizeof *pcm);
    }
    assert_int_equal(stream->finish, UTTER_FINISH_EOS);
    return stream;
}

/* The next `n` utterances say the text without the word. */
static void plant(struct engine *engine, const utter_stream_options *o, int n)
{
    utter_voice *voice;
    bool strays = planted.strays;
    planted.left = 0;
    planted.strays = false;
    utter_stream *stream = say(engine, SAID, o, &voice);
    planted.strays = strays;
    planted.n_codebooks = engine->context.model->config->n_codebooks;
    planted.n_frames = stream->n_made;
    size_t bytes = (size_t)(planted.n_frames * planted.n_codebooks) * sizeof *planted.codes;
    free(planted.codes);
    planted.codes = malloc(bytes);
    memcpy(planted.codes, stream->codes, bytes);
    planted.frame = 0;
    engine_free_stream(&stream);
    voice_free(&voice);
    planted.left = n;
}

/* The words that were skipped are this one alone, or none. */
static void check_skipped(utter_stream *stream, const char *text, const char *word)
{
    size_t n, n_skipped = 0;
    const utter_word *words = stream_words(stream, &n);
    for (size_t i = 0; i < n; i++) {
        if (words[i].skipped) {
            n_skipped++;
            assert_non_null(word);
            assert_int_equal(words[i].at, strstr(text, word) - text);
            assert_int_equal(words[i].bytes, strlen(word));
        }
    }
    assert_int_equal(n_skipped, word ? 1 : 0);
}

/* `silent`: the whole text is read once more, of what is said as it is given too. */
static void check_word(utter_layout layout, double prompt_s, bool silent)
{
    utter_voice *voice;
    planted.silent = silent;
    struct engine *engine = open_faulty(prompt_s);
    const utter_stream_options o = options_of(engine, layout);
    plant(engine, &o, 1);
    utter_stream *stream = say(engine, GIVEN, &o, &voice);
    assert_int_equal(stream->n_made, planted.n_frames);
    assert_true(planted.n_weighed > 0);
    check_skipped(stream, GIVEN, MISSED);
    engine_free_stream(&stream);
    voice_free(&voice);
    planted.left = 0;
    planted.n_weighed = 0;
    stream = say(engine, GIVEN, &o, &voice); /* as the model says it */
    check_skipped(stream, GIVEN, NULL);
    int n_rows;
    prompt_rows(stream->prompt, &n_rows);
    assert_int_equal(
        planted.n_weighed, silent ? n_rows + stream->n_made : 0); /* nothing was in doubt */
    planted.silent = false;
    engine_free_stream(&stream);
    voice_free(&voice);
    engine_close(engine);
    free(engine);
}

static void a_word_that_is_not_said_is_found(void **state)
{
    (void)state;
    check_word(UTTER_LAYOUT_STREAM, 0, false);
    for (int silent = 0; silent < (SUPPORT_SANITIZED ? 0 : 2); silent++) {
        check_word(UTTER_LAYOUT_FULL, 0, silent);
        check_word(UTTER_LAYOUT_FULL, 1e-9, silent); /* few rows in a step */
    }
}

/* Speech that is cancelled or freed while a word is in doubt ends as it would otherwise. */
static void doubts_can_be_left(void **state)
{
    (void)state;
    struct engine *engine = open_faulty(1e-9);
    utter_voice *voice;
    static float pcm[24000];
    utter_stream_options o = options_of(engine, UTTER_LAYOUT_FULL);
    for (int cancelled = 0; cancelled < 2; cancelled++) {
        utter_stream *stream;
        plant(engine, &o, 1);
        assert_int_equal(
            voice_new_preset(&voice, engine->context.model->config, "clara", NULL), UTTER_OK);
        o.voice = voice;
        assert_int_equal(engine_open_stream(&stream, engine, &o, NULL), UTTER_OK);
        assert_int_equal(stream_text(stream, GIVEN, strlen(GIVEN), NULL), UTTER_OK);
        assert_int_equal(stream_finish(stream, NULL), UTTER_OK);
        for (planted.n_weighed = 0; planted.n_weighed == 0;) {
            assert_int_equal(stream->finish, UTTER_FINISH_NONE);
            assert_int_equal(engine_step(engine, false, NULL), UTTER_OK);
            stream_drain(stream, pcm, sizeof pcm / sizeof *pcm);
        }
        assert_true(stream_doubts(stream));
        if (cancelled) {
            __atomic_store_n(&stream->cancelled, 1, __ATOMIC_RELAXED);
            assert_int_equal(engine_step(engine, false, NULL), UTTER_AGAIN);
            assert_int_equal(stream->finish, UTTER_FINISH_CANCELLED);
        }
        engine_free_stream(&stream);
        voice_free(&voice);
    }
    engine_close(engine);
    free(engine);
}

/* Speech that is whole stays so where others have taken the room of its rows: nothing of it is in doubt then. */
static void without_room_nothing_is_doubted(void **state)
{
    (void)state;
    struct engine *engine = open_faulty(0);
    utter_voice *voice;
    const utter_stream_options o = options_of(engine, UTTER_LAYOUT_FULL);
    plant(engine, &o, 1);
    planted.full = true;
    planted.n_weighed = 0;
    utter_stream *stream = say(engine, GIVEN, &o, &voice);
    assert_true(planted.n_weighed > 0);
    check_skipped(stream, GIVEN, NULL);
    planted.full = false;
    engine_free_stream(&stream);
    voice_free(&voice);
    engine_close(engine);
    free(engine);
}

/* A reading of one sentence whose first `n` tries skip a word: what it says in the end. */
static utter_reading_stats read(struct engine *engine, int n, int retries, size_t *n_samples)
{
    static float pcm[24000];
    utter_reading *reading;
    utter_reading_stats stats = {.size = sizeof stats};
    utter_stream_options v = options_of(engine, UTTER_LAYOUT_FULL);
    utter_reading_options o = {.retries = retries, .lanes = 1};
    utter_status status;
    size_t taken;
    plant(engine, &v, n);
    assert_int_equal(
        voice_new_preset((utter_voice **)&v.voice, engine->context.model->config, "clara", NULL),
        UTTER_OK);
    assert_int_equal(reading_open(&reading, engine, &v, &o, NULL), UTTER_OK);
    assert_int_equal(reading_text(reading, GIVEN, strlen(GIVEN), NULL), UTTER_OK);
    assert_int_equal(reading_finish(reading, NULL), UTTER_OK);
    *n_samples = 0;
    while ((status = reading_take(reading, pcm, sizeof pcm / sizeof *pcm, &taken, NULL)) != UTTER_END) {
        *n_samples += status == UTTER_OK ? taken : 0;
        if (status == UTTER_AGAIN) {
            assert_int_equal(engine_step(engine, false, NULL), UTTER_OK);
        } else {
            assert_int_equal(status, UTTER_OK);
        }
    }
    reading_stats(reading, &stats);
    reading_free(&reading);
    voice_free((utter_voice **)&v.voice);
    return stats;
}

static void what_skips_a_word_is_said_again(void **state)
{
    (void)state;
    if (SUPPORT_SANITIZED) {
        skip(); /* many utterances */
    }
    struct engine *engine = open_faulty(0);
    size_t n_samples, frame_samples = (size_t)engine->context.model->config->codec.frame_samples;
    utter_reading_stats stats = read(engine, 1, 2, &n_samples);
    assert_true(stats.n_pieces == 1 && stats.n_retries == 1 && stats.n_broken == 0);
    assert_int_equal(stats.finish, UTTER_FINISH_EOS);
    assert_int_not_equal(n_samples, (size_t)planted.n_frames * frame_samples);
    stats = read(engine, 100, 2, &n_samples); /* what stays so is told */
    assert_true(stats.n_retries == 2 && stats.n_broken == 1);
    assert_int_equal(stats.finish, UTTER_FINISH_SILENCE);
    assert_int_equal(n_samples, (size_t)planted.n_frames * frame_samples);
    engine_close(engine);
    free(engine);
    free(planted.codes);
    planted.codes = NULL;
}

/* Where codes are not weighed (no such device, no guard), nothing is said again for the sake of attention. */
static void attention_alone_repeats_nothing(void **state)
{
    (void)state;
    if (SUPPORT_SANITIZED) {
        skip(); /* many utterances */
    }
    struct engine *engine = open_faulty(0);
    utter_stream_options o = options_of(engine, UTTER_LAYOUT_FULL);
    utter_voice *voice;
    size_t n, n_skipped = 0, n_samples;
    faulty.weigh = NULL;
    plant(engine, &o, 100);
    planted.strays = true;
    utter_stream *stream = say(engine, GIVEN, &o, &voice);
    const utter_word *words = stream_words(stream, &n);
    for (size_t i = 0; i < n; i++) {
        n_skipped += words[i].skipped;
    }
    assert_true(n_skipped > 0);
    engine_free_stream(&stream);
    voice_free(&voice);
    utter_reading_stats stats = read(engine, 100, 2, &n_samples);
    assert_true(stats.n_pieces == 1 && stats.n_retries == 0 && stats.n_broken == 0);
    assert_int_equal(stats.finish, UTTER_FINISH_EOS);
    planted.strays = false;
    engine_close(engine);
    free(engine);
    free(planted.codes);
    planted.codes = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_word_that_is_not_said_is_found),
        cmocka_unit_test(doubts_can_be_left),
        cmocka_unit_test(without_room_nothing_is_doubted),
        cmocka_unit_test(what_skips_a_word_is_said_again),
        cmocka_unit_test(attention_alone_repeats_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
