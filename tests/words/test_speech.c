/* SPDX-License-Identifier: Apache-2.0
 * Words of the built-in voice through utter.h: every word once, in order, inside the sound, the same ones however the
 * text came; the sound is the same as without. */
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

#include "utter.h"

enum { MOST_SAMPLES = 24000 * 30, MOST_WORDS = 64 };

struct heard {
    float *pcm;
    size_t n_samples, n_words;
    utter_word words[MOST_WORDS];
    bool approximate;
};

static utter_model *open_voice(void)
{
    utter_model *model;
    utter_model_options o;
    utter_model_options_init(&o);
    o.n_threads = 2;
    assert_int_equal(utter_model_open(&model, "voice/builtin", &o, NULL), UTTER_OK);
    return model;
}

static struct heard speak(
    utter_model *model, const char *text, utter_layout layout, bool words, size_t piece)
{
    struct heard h = {.pcm = calloc(MOST_SAMPLES, sizeof(float))};
    utter_stream *stream;
    utter_stream_options o;
    utter_stream_stats stats = {.size = sizeof stats};
    utter_stream_options_init(&o, model);
    o.layout = layout;
    o.words = words;
    o.max_frames = MOST_SAMPLES / 1920;
    assert_int_equal(utter_stream_open(&stream, model, &o, NULL), UTTER_OK);
    for (size_t at = 0, n; at < strlen(text); at += n) {
        n = strlen(text) - at < piece ? strlen(text) - at : piece;
        assert_int_equal(utter_stream_text(stream, text + at, n, NULL), UTTER_OK);
    }
    assert_int_equal(utter_stream_finish(stream, NULL), UTTER_OK);
    utter_status status;
    do {
        size_t n = 0;
        status = utter_stream_read(stream, h.pcm + h.n_samples, MOST_SAMPLES - h.n_samples, &n, NULL);
        h.n_samples += n;
    } while (status == UTTER_OK);
    assert_int_equal(status, UTTER_END);
    const utter_word *list = utter_stream_words(stream, &h.n_words);
    assert_true((list != NULL) == words && h.n_words <= MOST_WORDS);
    if (list) {
        memcpy(h.words, list, h.n_words * sizeof *list);
    }
    utter_stream_get_stats(stream, &stats);
    h.approximate = stats.words_approximate;
    utter_stream_free(&stream);
    return h;
}

static void check(utter_model *model, const char *text, size_t n_words, utter_layout layout)
{
    struct heard plain = speak(model, text, layout, false, 1000);
    struct heard h = speak(model, text, layout, true, 1000),
                 pieces = speak(model, text, layout, true, 1);
    assert_int_equal(h.n_samples, plain.n_samples);
    assert_memory_equal(h.pcm, plain.pcm, h.n_samples * sizeof *h.pcm);
    assert_false(h.approximate);
    assert_int_equal(h.n_words, n_words);
    assert_int_equal(pieces.n_words, n_words);
    for (size_t i = 0; i < h.n_words; i++) {
        const utter_word *w = &h.words[i], *p = &pieces.words[i];
        assert_true(w->at == p->at && w->bytes == p->bytes && w->start == p->start && w->end == p->end);
        assert_true(w->final && w->bytes > 0 && w->at + w->bytes <= strlen(text));
        assert_true((w->start < w->end || w->skipped) && w->end <= h.n_samples);
        assert_true(i == 0 || (w->at > w[-1].at && w->start >= w[-1].start));
    }
    free(plain.pcm);
    free(h.pcm);
    free(pieces.pcm);
}

static void test_speech(void **state)
{
    (void)state;
    utter_model *model = open_voice();
    static const struct {
        const char *text;
        size_t n_words;
    } texts[] = {{"Before you leave, please feed the cat.", 7}, {"\n\nYes.\n", 1},
        {"It is 9 o'clock \U0001F600, caf\u00e9 or cafe\u0301?", 7}, {"\u4f60\u597d hello", 3}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts - (SUPPORT_SANITIZED ? 2 : 0); i++) {
        check(model, texts[i].text, texts[i].n_words, UTTER_LAYOUT_FULL);
        check(model, texts[i].text, texts[i].n_words, UTTER_LAYOUT_STREAM);
    }
    utter_model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_speech)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
