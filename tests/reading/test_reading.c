/* SPDX-License-Identifier: Apache-2.0
 * Readings through utter.h, on the small checkpoints and with the built-in voice. */
#include "tests/engine/speaking.h"

#include <math.h>
#include <stdio.h>

#include "tests/heap.h"

#define BUILTIN "voice/builtin"

static const char LONG[] =
    "The train left the old station at noon, and nobody had told the people who were waiting. They "
    "looked at each "
    "other. A man in a grey coat put down his bag and laughed.\n\nIt was a warm day in the middle of "
    "the summer, so "
    "they sat down on the grass, and somebody began to sing. Did the train come back? It did not. But "
    "in the evening "
    "a bus stopped in front of the station, and the driver asked them where they wanted to go.";

struct heard {
    float *pcm;
    size_t n;
    utter_piece pieces[64];
    size_t n_pieces;
    utter_reading_stats stats;
};

static void on_piece(void *user, const utter_piece *piece)
{
    struct heard *h = user;
    assert_true(h->n_pieces < 64);
    assert_int_equal(piece->index, h->n_pieces);
    assert_int_equal(piece->begin, h->n_pieces ? h->pieces[h->n_pieces - 1].end : 0);
    h->pieces[h->n_pieces++] = *piece;
}

static struct heard hear(utter_model *model, const utter_stream_options *voice,
    utter_reading_options *o, const char *text, size_t piece, size_t step)
{
    enum { MOST = 120 * 24000 };
    struct heard h = {.pcm = malloc(MOST * sizeof(float))};
    utter_reading *reading;
    utter_error error = {0};
    utter_status status;
    size_t n;
    o->piece = on_piece;
    o->piece_user = &h;
    assert_int_equal(utter_reading_open(&reading, model, voice, o, &error), UTTER_OK);
    for (size_t at = 0, bytes = strlen(text); at < bytes; at += piece) {
        size_t take = bytes - at < piece ? bytes - at : piece;
        assert_int_equal(utter_reading_text(reading, text + at, take, &error), UTTER_OK);
        while ((status = utter_reading_read(reading, h.pcm + h.n, step, &n, &error)) == UTTER_OK) {
            h.n += n;
            assert_true(h.n + step < MOST);
        }
        assert_true(status == UTTER_AGAIN || status == UTTER_END);
    }
    assert_int_equal(utter_reading_finish(reading, &error), UTTER_OK);
    while ((status = utter_reading_read(reading, h.pcm + h.n, step, &n, &error)) == UTTER_OK) {
        h.n += n;
        assert_true(h.n + step < MOST);
    }
    assert_string_equal(error.text, "");
    assert_int_equal(status, UTTER_END);
    h.stats.size = sizeof h.stats;
    assert_int_equal(utter_reading_get_stats(reading, &h.stats), UTTER_OK);
    assert_int_equal(h.n_pieces ? h.pieces[h.n_pieces - 1].end : h.n, h.n);
    utter_reading_free(&reading);
    assert_null(reading);
    return h;
}

static utter_reading_options reading_options(void)
{
    utter_reading_options o;
    utter_reading_options_init(&o);
    return o;
}

/* Bit for bit what a stream gives, live or not. */
static void a_short_text_is_one_utterance(void **state)
{
    (void)state;
    utter_model *model = open_with(MODEL, 1, 2);
    utter_stream_options voice = options_of(model, 12, 7);
    struct result *stream = speak(model, &voice, TEXT, sizeof TEXT, 1920);
    for (int live = 0; live < 2; live++) {
        utter_reading_options o = reading_options();
        o.live = live;
        o.retries = 0;
        struct heard h = hear(model, &voice, &o, TEXT, live ? 3 : 100, 1000);
        assert_int_equal(h.n, stream->n_samples);
        assert_memory_equal(h.pcm, stream->pcm, h.n * sizeof *h.pcm);
        assert_int_equal(h.n_pieces, 1);
        assert_int_equal(h.pieces[0].finish, stream->finish);
        assert_int_equal(h.pieces[0].bytes, strlen(TEXT));
        free(h.pcm);
    }
    free(stream);
    utter_model_close(&model);
}

/* Its words too are those of the stream, to the sample. */
static void words_of_a_short_text_are_the_streams(void **state)
{
    (void)state;
    utter_model *model = open_with(MODEL, 1, 1);
    utter_stream_options voice = options_of(model, 12, 7);
    utter_reading_options o = reading_options();
    utter_stream *stream;
    utter_reading *reading;
    utter_error error = {0};
    utter_word wanted[16];
    float pcm[1920];
    size_t n, n_words;
    uint64_t first;
    voice.words = true;
    assert_int_equal(utter_stream_open(&stream, model, &voice, &error), UTTER_OK);
    assert_int_equal(utter_stream_text(stream, TEXT, strlen(TEXT), &error), UTTER_OK);
    assert_int_equal(utter_stream_finish(stream, &error), UTTER_OK);
    while (utter_stream_read(stream, pcm, 1920, &n, &error) == UTTER_OK) {
    }
    const utter_word *words = utter_stream_words(stream, &n_words);
    assert_in_range(n_words, 7, 16);
    memcpy(wanted, words, n_words * sizeof *words);
    utter_stream_free(&stream);
    o.retries = 0;
    assert_int_equal(utter_reading_open(&reading, model, &voice, &o, &error), UTTER_OK);
    assert_int_equal(utter_reading_text(reading, TEXT, strlen(TEXT), &error), UTTER_OK);
    assert_int_equal(utter_reading_finish(reading, &error), UTTER_OK);
    while (utter_reading_read(reading, pcm, 1920, &n, &error) == UTTER_OK) {
    }
    words = utter_reading_words(reading, &first, &n);
    assert_int_equal(first + n, n_words);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(words[i].start, wanted[first + i].start);
        assert_int_equal(words[i].end, wanted[first + i].end);
    }
    utter_reading_free(&reading);
    utter_model_close(&model);
}

/* Who speaks as the text comes does not lose its lane to others while it waits for more. */
static void a_reading_keeps_its_lane(void **state)
{
    (void)state;
    utter_model *model = open_with(MODEL, 1, 1);
    utter_stream_options voice = options_of(model, 3, 7);
    utter_reading_options o = reading_options();
    utter_reading *reading;
    utter_stream *other;
    utter_error error = {0};
    static const char text[] = "It was late and dark. ";
    float pcm[1920];
    size_t n;
    o.piece_length = 20;
    o.retries = 0;
    assert_int_equal(utter_reading_open(&reading, model, &voice, &o, &error), UTTER_OK);
    for (int i = 0; i < 3; i++) {
        utter_status status;
        assert_int_equal(utter_reading_text(reading, text, strlen(text), &error), UTTER_OK);
        while ((status = utter_reading_read(reading, pcm, 1920, &n, &error)) == UTTER_OK) {
        }
        assert_int_equal(status, UTTER_AGAIN);
        assert_int_equal(utter_stream_open(&other, model, &voice, &error), UTTER_AGAIN);
    }
    utter_reading_free(&reading);
    assert_int_equal(utter_stream_open(&other, model, &voice, &error), UTTER_OK);
    utter_stream_free(&other);
    utter_model_close(&model);
}

/* How the text came, the size of the reads and lanes change nothing; pieces are those of the text. */
static void a_long_text_is_whole(void **state)
{
    (void)state;
    utter_model *model = open_with(BUILTIN, 2, 3);
    utter_stream_options voice;
    utter_stream_options_init(&voice, model);
    utter_reading_options o = reading_options();
    const char *text =
        SUPPORT_SANITIZED ? "It was a warm noon.\n\nThey sat down. Did the train come?" : LONG;
    o.piece_length = SUPPORT_SANITIZED ? 20 : 0;
    struct heard live = hear(model, &voice, &o, text, strlen(text), 1920);
    assert_int_equal(live.stats.finish, UTTER_FINISH_EOS);
    assert_int_equal(live.stats.n_broken, 0);
    assert_true(live.n_pieces >= 3);
    size_t at = 0;
    for (size_t i = 0; i < live.n_pieces; i++) {
        assert_true(live.pieces[i].whole);
        assert_true(live.pieces[i].at - at <= 2); /* a blank, or an end of a paragraph */
        at = live.pieces[i].at + live.pieces[i].bytes;
    }
    assert_int_equal(at, strlen(text));
    o.live = false;
    for (o.lanes = SUPPORT_SANITIZED ? 3 : 1; o.lanes <= 3; o.lanes += 2) {
        struct heard file = hear(model, &voice, &o, text, 7, 5000);
        assert_int_equal(file.n, live.n);
        assert_memory_equal(file.pcm, live.pcm, live.n * sizeof *live.pcm);
        free(file.pcm);
    }
    free(live.pcm);
    utter_model_close(&model);
}

/* A hundred thousand words, given as they are asked for, take no more memory than the first thousands. */
static void memory_does_not_grow(void **state)
{
    enum { TEXTS = SUPPORT_SANITIZED ? 12 : 1220, EARLY = TEXTS / 10 };
    (void)state;
    utter_model *model = open_with(MODEL, 2, 2);
    utter_stream_options voice = options_of(model, 1, 7);
    utter_reading_options o = reading_options();
    utter_reading *reading;
    utter_error error = {0};
    utter_status status = UTTER_AGAIN;
    float pcm[1920];
    size_t n, early = 0, most = 0;
    int n_given = 0;
    o.live = false;
    o.lanes = 2;
    o.retries = 0;
    assert_int_equal(utter_reading_open(&reading, model, &voice, &o, &error), UTTER_OK);
    while (status != UTTER_END) {
        status = utter_reading_read(reading, pcm, 1920, &n, &error);
        assert_true(status >= 0);
        if (status != UTTER_AGAIN) {
            continue;
        }
        size_t used = heap_used();
        most = used > most ? used : most;
        early = n_given == EARLY ? most : early;
        assert_int_equal(n_given++ < TEXTS ? utter_reading_text(reading, LONG, sizeof LONG - 1, &error)
                                           : utter_reading_finish(reading, &error),
            UTTER_OK);
    }
    utter_reading_stats stats = {.size = sizeof stats};
    utter_reading_get_stats(reading, &stats);
    assert_true(stats.n_pieces > TEXTS);
    assert_true(most <= early + 65536);
    utter_reading_free(&reading);
    utter_model_close(&model);
}

/* A model that never ends by itself: each piece is tried as often as was asked for, and what stays bad is told; in
 * several lanes too, where what is said again may have to wait for one. */
static void what_is_not_whole_is_said_again(void **state)
{
    (void)state;
    utter_model *model = open_with(MODEL, 1, 3);
    utter_stream_options voice = options_of(model, 3, 7);
    utter_reading_options o = reading_options();
    struct heard alone = {0};
    o.live = false;
    o.retries = 2;
    o.piece_length = 50;
    for (o.lanes = 1; o.lanes <= 3; o.lanes++) {
        struct heard h = hear(model, &voice, &o, LONG, sizeof LONG, 1920);
        assert_true(h.stats.n_broken == h.stats.n_pieces && h.stats.n_retries == 2 * h.stats.n_pieces);
        assert_int_not_equal(h.stats.finish, UTTER_FINISH_EOS);
        assert_true(h.n_pieces > 6);
        for (size_t i = 0; i < h.n_pieces; i++) {
            assert_false(h.pieces[i].whole);
            assert_int_equal(h.pieces[i].tries, 3);
            assert_int_equal(h.pieces[i].seed, 9);
        }
        alone = o.lanes == 1 ? h : alone;
        assert_int_equal(h.n, alone.n);
        assert_memory_equal(h.pcm, alone.pcm, h.n * sizeof *h.pcm);
        if (o.lanes > 1) {
            free(h.pcm);
        }
    }
    free(alone.pcm);
    utter_model_close(&model);
}

/* The try that is heard is that of its seed: nothing stays of those before. */
static void what_is_said_again_is_as_if_said_first(void **state)
{
    (void)state;
    utter_model *model = open_with(MODEL, 1, 1);
    utter_stream_options again = options_of(model, 3, 7), first = options_of(model, 3, 9);
    utter_reading_options o = reading_options();
    o.live = false;
    o.piece_length = 50;
    o.retries = 2;
    struct heard h = hear(model, &again, &o, LONG, sizeof LONG, 1920);
    o.retries = 0;
    struct heard wanted = hear(model, &first, &o, LONG, sizeof LONG, 1920);
    assert_int_equal(h.n, wanted.n);
    assert_memory_equal(h.pcm, wanted.pcm, h.n * sizeof *h.pcm);
    assert_int_equal(h.stats.n_frames, wanted.stats.n_frames);
    free(h.pcm);
    free(wanted.pcm);
    utter_model_close(&model);
}

/* Lanes do not wait for the piece in front: of what a step could make, nine tenths are made. */
static void lanes_are_kept_at_work(void **state)
{
    enum { LANES = 4 };
    (void)state;
    utter_model *model = open_with(BUILTIN, 2, LANES);
    utter_reading_options o = reading_options();
    utter_reading *reading;
    utter_reading_stats stats = {.size = sizeof stats};
    utter_error error = {0};
    utter_status status;
    float pcm[1920];
    size_t n, n_steps = 0;
    o.live = false;
    o.lanes = LANES;
    assert_int_equal(utter_reading_open(&reading, model, NULL, &o, &error), UTTER_OK);
    for (int i = 0; i < (SUPPORT_SANITIZED ? 1 : 4); i++) {
        assert_int_equal(utter_reading_text(reading, LONG, sizeof LONG - 1, &error), UTTER_OK);
        assert_int_equal(utter_reading_text(reading, "\n\n", 2, &error), UTTER_OK);
    }
    assert_int_equal(utter_reading_finish(reading, &error), UTTER_OK);
    while ((status = utter_reading_take(reading, pcm, 1920, &n, &error)) != UTTER_END) {
        assert_true(status >= 0);
        if (status == UTTER_AGAIN) {
            assert_int_equal(utter_model_step_together(model, &error), UTTER_OK);
            n_steps++;
        }
    }
    utter_reading_get_stats(reading, &stats);
    double share = (double)stats.n_frames / ((double)n_steps * LANES);
    assert_true(share > (SUPPORT_SANITIZED ? 0.5 : 0.86));
    utter_reading_free(&reading);
    utter_model_close(&model);
}

/* A list of numbers takes long for its letters, and nothing behind it is measured by that. */
static void a_slow_piece_makes_no_others_short(void **state)
{
    static const char text[] =
        "14, 56, 160, 96.\n\nEric grew my old issue without the lemon, since each of the others "
        "followed on her bridge. The museum hid Rachel, and nobody could tell for how many days she "
        "had been there. My brother likes the red chair in the attic, but not the one that stands "
        "beside it.\n\nThe door was open.";
    (void)state;
    utter_model *model = open_with(BUILTIN, 2, 1);
    utter_stream_options voice = options_of(model, 400, 1);
    utter_reading_options o = reading_options();
    o.live = false;
    struct heard h = hear(model, &voice, &o, text, sizeof text, 1920);
    assert_true(h.n_pieces > 2);
    assert_int_equal(h.stats.n_retries, 0);
    assert_int_equal(h.stats.n_broken, 0);
    free(h.pcm);
    utter_model_close(&model);
}

/* Where another try would give the same, there is none, and what is made is given at once. */
static void what_cannot_be_said_again_comes_as_it_is_made(void **state)
{
    (void)state;
    utter_model *model = open_with(MODEL, 1, 1);
    utter_stream_options voice = options_of(model, 12, 7);
    voice.talker.temperature = voice.predictor.temperature = 0;
    utter_reading_options o = reading_options();
    o.live = false;
    o.piece_length = 100;
    utter_reading *reading;
    float pcm[100];
    size_t n;
    assert_int_equal(utter_reading_open(&reading, model, &voice, &o, NULL), UTTER_OK);
    assert_int_equal(utter_reading_text(reading, LONG, strlen(LONG), NULL), UTTER_OK);
    assert_int_equal(utter_reading_finish(reading, NULL), UTTER_OK);
    assert_int_equal(utter_reading_read(reading, pcm, 100, &n, NULL), UTTER_OK);
    utter_reading_stats stats = {.size = sizeof stats};
    assert_int_equal(utter_reading_get_stats(reading, &stats), UTTER_OK);
    assert_true(stats.n_pieces == 0 && stats.n_frames < 12);
    while (utter_reading_read(reading, pcm, 100, &n, NULL) == UTTER_OK) {
    }
    assert_int_equal(utter_reading_get_stats(reading, &stats), UTTER_OK);
    assert_true(stats.n_pieces > 3 && stats.n_broken == stats.n_pieces && stats.n_retries == 0);
    utter_reading_free(&reading);
    utter_model_close(&model);
}

/* In the stream layout there is sound before it is known whether the text is one piece, and the same sound. */
static void speech_begins_with_the_first_words(void **state)
{
    static const char *const texts[] = {TEXT, LONG};
    (void)state;
    utter_model *model = open_with(MODEL, 1, 1);
    utter_stream_options voice = options_of(model, SUPPORT_SANITIZED ? 4 : 30, 7);
    voice.layout = UTTER_LAYOUT_STREAM;
    utter_reading_options o = reading_options();
    o.piece_length = 100;
    for (size_t i = 0; i < 2; i++) {
        struct heard whole = hear(model, &voice, &o, texts[i], 10000, 1920);
        struct heard typed = hear(model, &voice, &o, texts[i], 1, 700);
        assert_int_equal(typed.n, whole.n);
        assert_memory_equal(typed.pcm, whole.pcm, whole.n * sizeof *whole.pcm);
        assert_int_equal(typed.n_pieces, whole.n_pieces);
        free(whole.pcm);
        free(typed.pcm);
    }
    utter_reading *reading;
    float pcm[1920];
    size_t n;
    o.piece = NULL;
    assert_int_equal(utter_reading_open(&reading, model, &voice, &o, NULL), UTTER_OK);
    assert_int_equal(utter_reading_text(reading, "Hello there, my friend", 22, NULL), UTTER_OK);
    assert_int_equal(utter_reading_read(reading, pcm, 1920, &n, NULL), UTTER_OK);
    while (utter_reading_read(reading, pcm, 1920, &n, NULL) == UTTER_OK) {
    }
    utter_reading_cancel(reading);
    assert_int_equal(utter_reading_read(reading, pcm, 1920, &n, NULL), UTTER_OK); /* held for a fade */
    assert_int_equal(utter_reading_read(reading, pcm, 1920, &n, NULL), UTTER_END);
    utter_reading_free(&reading);
    utter_model_close(&model);
}

static void a_limit_of_the_caller_cuts(void **state)
{
    (void)state;
    const int frames = SUPPORT_SANITIZED ? 20 : 150;
    utter_model *model = open_with(BUILTIN, 2, 1);
    utter_reading_options o = reading_options();
    o.max_frames = frames;
    struct heard h = hear(model, NULL, &o, LONG, sizeof LONG, 1920);
    assert_int_equal(h.stats.finish, UTTER_FINISH_MAX_FRAMES);
    assert_int_equal(h.stats.n_frames, frames);
    assert_int_equal(h.stats.n_broken, 1);
    free(h.pcm);
    utter_model_close(&model);
}

static void a_cancelled_reading_ends(void **state)
{
    (void)state;
    utter_model *model = open_with(BUILTIN, 2, 2);
    for (int live = 0; live < 2; live++) {
        utter_reading_options o = reading_options();
        struct heard h = {0};
        utter_reading *reading;
        float pcm[4000];
        size_t n, total = 0;
        o.live = live;
        o.piece = on_piece;
        o.piece_user = &h;
        assert_int_equal(utter_reading_open(&reading, model, NULL, &o, NULL), UTTER_OK);
        assert_int_equal(utter_reading_text(reading, LONG, strlen(LONG), NULL), UTTER_OK);
        assert_int_equal(utter_reading_read(reading, pcm, 4000, &n, NULL), UTTER_OK);
        utter_reading_cancel(reading);
        utter_status status;
        while ((status = utter_reading_read(reading, pcm, 4000, &n, NULL)) == UTTER_OK) {
            total += n;
        }
        assert_int_equal(status, UTTER_END);
        assert_true(total < 24000 * 20);
        utter_reading_stats stats = {.size = sizeof stats};
        assert_int_equal(utter_reading_get_stats(reading, &stats), UTTER_OK);
        assert_int_equal(stats.finish, UTTER_FINISH_CANCELLED);
        assert_true(h.n_pieces > 0 && h.pieces[h.n_pieces - 1].finish == UTTER_FINISH_CANCELLED);
        utter_reading_free(&reading);
    }
    utter_model_close(&model);
}

static void wrong_requests_are_told(void **state)
{
    (void)state;
    utter_model *model = open_with(MODEL, 1, 1);
    utter_reading_options o = reading_options();
    utter_reading *reading, *second;
    utter_error error;
    o.retries = -1;
    assert_int_equal(utter_reading_open(&reading, model, NULL, &o, &error), UTTER_E_ARGUMENT);
    assert_int_equal(utter_reading_open(&reading, model, NULL, NULL, &error), UTTER_OK);
    assert_int_equal(utter_reading_open(&second, model, NULL, NULL, &error), UTTER_AGAIN);
    assert_int_equal(utter_reading_finish(reading, &error), UTTER_E_ARGUMENT); /* no text */
    utter_reading_free(&reading);
    assert_int_equal(utter_reading_open(&reading, model, NULL, NULL, &error), UTTER_OK);
    assert_int_equal(utter_reading_text(reading, "abc\xe4\xbd", 5, &error), UTTER_OK);
    assert_int_equal(utter_reading_text(reading, "x", 1, &error), UTTER_E_ARGUMENT);
    assert_string_equal(error.text, "the text is not UTF-8 at byte 3");
    utter_reading_stats stats = {.size = sizeof stats}; /* what has failed stays so */
    assert_int_equal(utter_reading_get_stats(reading, &stats), UTTER_OK);
    assert_int_equal(stats.finish, UTTER_FINISH_ERROR);
    for (int i = 0; i < 3; i++) {
        float pcm[16];
        size_t n;
        error = (utter_error){0};
        assert_int_equal(i == 0   ? utter_reading_text(reading, "y", 1, &error)
                         : i == 1 ? utter_reading_finish(reading, &error)
                                  : utter_reading_read(reading, pcm, 16, &n, &error),
            UTTER_E_ARGUMENT);
        assert_int_equal(error.code, UTTER_E_ARGUMENT);
        assert_string_equal(error.text, "the text is not UTF-8 at byte 3");
    }
    utter_reading_free(&reading);
    utter_model_close(&model);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    utter_model *model = open_with(MODEL, 1, 1);
    utter_stream_options voice = options_of(model, 2, 7);
    utter_reading_options o = reading_options();
    o.retries = 0;
    o.piece_length = 100;
    struct heard whole = hear(model, &voice, &o, LONG, sizeof LONG, 4000);
    o.piece = NULL;
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        utter_reading *reading;
        float pcm[4000];
        size_t got, total = 0;
        utter_status status = utter_reading_open(&reading, model, &voice, &o, NULL);
        status = status ? status : utter_reading_text(reading, LONG, strlen(LONG), NULL);
        status = status ? status : utter_reading_finish(reading, NULL);
        while (status == UTTER_OK) {
            status = utter_reading_read(reading, pcm, 4000, &got, NULL);
            total += status == UTTER_OK ? got : 0;
        }
        /* What can do without memory, as a snapshot, goes on without it. */
        assert_true(status == UTTER_E_MEMORY || (status == UTTER_END && total == whole.n));
        assert_true(status == UTTER_END || support_failed());
        utter_reading_free(&reading);
    }
    free(whole.pcm);
    utter_model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_short_text_is_one_utterance),
        cmocka_unit_test(words_of_a_short_text_are_the_streams),
        cmocka_unit_test(a_reading_keeps_its_lane),
        cmocka_unit_test(a_long_text_is_whole),
        cmocka_unit_test(what_is_not_whole_is_said_again),
        cmocka_unit_test(what_is_said_again_is_as_if_said_first),
        cmocka_unit_test(lanes_are_kept_at_work),
        cmocka_unit_test(a_slow_piece_makes_no_others_short),
        cmocka_unit_test(memory_does_not_grow),
        cmocka_unit_test(what_cannot_be_said_again_comes_as_it_is_made),
        cmocka_unit_test(speech_begins_with_the_first_words),
        cmocka_unit_test(a_limit_of_the_caller_cuts),
        cmocka_unit_test(a_cancelled_reading_ends),
        cmocka_unit_test(wrong_requests_are_told),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
