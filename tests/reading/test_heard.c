/* SPDX-License-Identifier: Apache-2.0
 * Words of a reading: every word of the source once, in its place, in order, inside the sound; given as it is spoken
 * and again when final. */
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

#include "utter.h"

enum { MOST_WORDS = 256, PIECE = 1920 };

static const char TEXT[] = "The  first\tsentence is short.\n\n\nThe second one, with   a caf\u00e9 in "
                           "it, goes on for a while, and "
                           "then it ends here.   A third sentence follows it now.\n\n***\n\nThe last "
                           "paragraph says\n\nvery little.";
static const char *const WORDS[] = {"The", "first", "sentence", "is", "short", "The", "second", "one",
    "with", "a", "caf\u00e9", "in", "it", "goes", "on", "for", "a", "while", "and", "then", "it",
    "ends", "here", "A", "third", "sentence", "follows", "it", "now", "The", "last", "paragraph",
    "says", "very", "little"};
enum { N_WORDS = sizeof WORDS / sizeof *WORDS };

struct told {
    utter_word at[MOST_WORDS];
    size_t n, n_early; /* n_early: told before they were final */
};

static void note(utter_reading *reading, struct told *told)
{
    uint64_t first;
    size_t n;
    const utter_word *words = utter_reading_words(reading, &first, &n);
    for (size_t i = 0; i < n; i++) {
        size_t at = (size_t)first + i;
        assert_true(at < MOST_WORDS);
        if (at < told->n && told->at[at].final) { /* nothing final is taken back */
            assert_memory_equal(&told->at[at], &words[i], sizeof words[i]);
        }
        told->n_early += at >= told->n && !words[i].final;
        told->at[at] = words[i];
        told->n = at + 1 > told->n ? at + 1 : told->n;
    }
}

static void read_whole(utter_model *model, bool live, struct told *told, uint64_t *n_samples)
{
    utter_reading *reading;
    utter_stream_options v;
    utter_reading_options o;
    float pcm[PIECE];
    utter_status status;
    utter_stream_options_init(&v, model);
    utter_reading_options_init(&o);
    v.words = true;
    v.seed = 3;
    o.live = live;
    o.piece_length = 60;
    o.retries = live ? 0 : 2;
    *told = (struct told){.n = 0};
    *n_samples = 0;
    assert_int_equal(utter_reading_open(&reading, model, &v, &o, NULL), UTTER_OK);
    assert_int_equal(utter_reading_text(reading, TEXT, strlen(TEXT), NULL), UTTER_OK);
    assert_int_equal(utter_reading_finish(reading, NULL), UTTER_OK);
    do {
        size_t n = 0;
        status = utter_reading_read(reading, pcm, PIECE, &n, NULL);
        *n_samples += n;
        note(reading, told);
    } while (status == UTTER_OK);
    assert_int_equal(status, UTTER_END);
    utter_reading_stats stats = {.size = sizeof stats};
    assert_int_equal(utter_reading_get_stats(reading, &stats), UTTER_OK);
    assert_true(stats.n_pieces > 3 && !stats.words_approximate);
    utter_reading_free(&reading);
}

static void test_words(void **state)
{
    (void)state;
    utter_model *model;
    assert_int_equal(utter_model_open(&model, "voice/builtin", NULL, NULL), UTTER_OK);
    for (int live = SUPPORT_SANITIZED ? 1 : 0; live < 2; live++) {
        struct told told;
        uint64_t n_samples;
        read_whole(model, live, &told, &n_samples);
        assert_int_equal(told.n, N_WORDS);
        for (size_t i = 0; i < N_WORDS; i++) {
            const utter_word *w = &told.at[i];
            assert_int_equal(w->bytes, strlen(WORDS[i]));
            assert_memory_equal(TEXT + w->at, WORDS[i], w->bytes);
            assert_true(w->final && w->start <= w->end && w->end <= n_samples);
            assert_true(i == 0 || (w->at > w[-1].at && w->start >= w[-1].start));
        }
        assert_true(live ? told.n_early > N_WORDS / 2 : told.n_early == 0);
    }
    utter_model_close(&model);
}

/* A word of markup is where the source has what it stands for, without the tags around it: both words of a number at
 * the number, a character at its reference. */
static void test_markup(void **state)
{
    static const char text[] =
        "<speak>The <say-as interpret-as='cardinal'>42</say-as> of <em>them</em> left &#65;.</speak>";
    static const char *const words[] = {"The", "42", "42", "of", "them", "left", "&#65;"};
    (void)state;
    utter_model *model;
    utter_model_options m;
    utter_reading *reading;
    utter_stream_options v;
    utter_reading_options o;
    struct told told = {.n = 0};
    float pcm[PIECE];
    size_t n;
    utter_model_options_init(&m);
    m.n_threads = 1;
    assert_int_equal(
        utter_model_open(&model, "build/checkpoints/tiny17-custom_voice", &m, NULL), UTTER_OK);
    utter_stream_options_init(&v, model);
    utter_reading_options_init(&o);
    v.words = true;
    v.max_frames = 6;
    v.language = "english";
    o.markup = UTTER_MARKUP_SSML;
    o.retries = 0;
    assert_int_equal(utter_reading_open(&reading, model, &v, &o, NULL), UTTER_OK);
    assert_int_equal(utter_reading_text(reading, text, strlen(text), NULL), UTTER_OK);
    assert_int_equal(utter_reading_finish(reading, NULL), UTTER_OK);
    while (utter_reading_read(reading, pcm, PIECE, &n, NULL) == UTTER_OK) {
        note(reading, &told);
    }
    note(reading, &told);
    assert_int_equal(told.n, sizeof words / sizeof *words);
    for (size_t i = 0; i < told.n; i++) {
        assert_int_equal(told.at[i].bytes, strlen(words[i]));
        assert_memory_equal(text + told.at[i].at, words[i], told.at[i].bytes);
    }
    utter_reading_free(&reading);
    utter_model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_words), cmocka_unit_test(test_markup)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
