/* SPDX-License-Identifier: Apache-2.0
 * Readings of texts with markup, with the built-in voice: what is heard, where, and that a text without any is as it
 * was. */
#include "tests/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "utter.h"

#define BUILTIN "voice/builtin"

enum { RATE = 24000, MOST_SOUND = 60 * RATE, MOST_PIECES = 16 };

struct heard {
    float *pcm;
    size_t n, n_pieces, n_notes;
    struct told {
        char text[200];
        size_t at, bytes, first,
            last; /* of the source: the piece, its first byte and the end of its last */
        double seconds;
        bool heading;
    } pieces[MOST_PIECES];
    char note[200];
};

static void on_piece(void *user, const utter_piece *piece)
{
    struct heard *h = user;
    assert_true(h->n_pieces < MOST_PIECES && piece->text_bytes < sizeof h->pieces[0].text);
    struct told *t = &h->pieces[h->n_pieces++];
    *t = (struct told){.at = piece->at, .bytes = piece->bytes, .seconds = piece->seconds};
    t->heading = piece->heading;
    memcpy(t->text, piece->text, piece->text_bytes);
    if (piece->origins) {
        t->first = piece->origins[0];
        t->last = piece->origins[piece->text_bytes];
        for (size_t i = 0; i < piece->text_bytes; i++) {
            assert_true(piece->origins[i] <= piece->origins[i + 1]);
        }
    }
}

static void on_note(void *user, const char *line)
{
    struct heard *h = user;
    h->n_notes++;
    snprintf(h->note, sizeof h->note, "%s", line);
}

static struct heard *model_notes; /* of the model that is open */

static utter_model *open_builtin(void)
{
    utter_model *model;
    utter_model_options o;
    utter_model_options_init(&o);
    o.device = "cpu";
    o.n_threads = 1;
    o.n_lanes = 2;
    o.log = on_note;
    o.log_user = model_notes;
    assert_int_equal(utter_model_open(&model, BUILTIN, &o, NULL), UTTER_OK);
    return model;
}

/* The status of the first call that fails, or of the whole. */
static utter_status hear(struct heard *h, utter_reading_options o, const char *text, utter_error *error)
{
    utter_reading *reading;
    size_t n;
    float *pcm = malloc(MOST_SOUND * sizeof *pcm);
    *h = (struct heard){.pcm = pcm};
    model_notes = h;
    utter_model *model = open_builtin();
    o.piece = on_piece;
    o.piece_user = h;
    utter_status status = utter_reading_open(&reading, model, NULL, &o, error);
    status = status ? status : utter_reading_text(reading, text, strlen(text), error);
    status = status ? status : utter_reading_finish(reading, error);
    while (status == UTTER_OK) {
        assert_true(h->n + RATE < MOST_SOUND);
        status = utter_reading_read(reading, pcm + h->n, RATE, &n, error);
        h->n += status == UTTER_OK ? n : 0;
    }
    utter_reading_free(&reading);
    utter_model_close(&model);
    return status;
}

static utter_reading_options with_markup(int markup)
{
    utter_reading_options o;
    utter_reading_options_init(&o);
    o.markup = markup;
    o.live = false;
    return o;
}

static bool is_loud(float sample)
{
    return fabsf(sample) > 0.004f;
}

/* Samples between two loud ones: the longest run, and those before the first and behind the last. */
struct quiet {
    size_t longest, front, end;
};

static struct quiet find_quiet(const struct heard *h)
{
    struct quiet q = {0};
    size_t last = h->n;
    for (size_t i = 0; i < h->n; i++) {
        if (is_loud(h->pcm[i])) {
            q.front = last == h->n ? i : q.front;
            q.longest = last < h->n && i - last - 1 > q.longest ? i - last - 1 : q.longest;
            last = i;
        }
    }
    q.end = h->n - 1 - last;
    return q;
}

/* Markup that asks for nothing changes no bit, and neither does a dictionary without a word of the text. */
static void a_sentence_is_as_without_markup(void **state)
{
    static const char plain[] = "The train was late again.";
    struct heard a, b;
    (void)state;
    assert_int_equal(hear(&a, with_markup(UTTER_MARKUP_NONE), plain, NULL), UTTER_END);
    assert_int_equal(a.pieces[0].last, 0); /* plain text needs no way back */
    static const struct {
        int markup;
        const char *lexicon, *text;
    } same[] = {{UTTER_MARKUP_SSML, NULL, "<speak>The train was late again.</speak>"},
        {UTTER_MARKUP_TAGS, NULL, plain}, {UTTER_MARKUP_AUTO, "bus = buss\n", plain},
        {UTTER_MARKUP_NONE, "bus = buss\n", plain}};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        utter_reading_options o = with_markup(same[i].markup);
        o.lexicon = same[i].lexicon;
        o.spell_out = true;
        assert_int_equal(hear(&b, o, same[i].text, NULL), UTTER_END);
        assert_int_equal(b.n, a.n);
        assert_memory_equal(a.pcm, b.pcm, a.n * sizeof *a.pcm);
        free(b.pcm);
    }
    free(a.pcm);
}

/* To the sample, between loud ones: in front, in the middle and at the end. */
static void pauses_are_exact(void **state)
{
    static const char text[] = "[pause:1s]It was late.[pause:1.5s]They slept.[pause:0.25s]";
    struct heard h;
    (void)state;
    assert_int_equal(hear(&h, with_markup(UTTER_MARKUP_TAGS), text, NULL), UTTER_END);
    struct quiet q = find_quiet(&h);
    assert_int_equal(q.front, RATE);
    assert_int_equal(q.longest, 3 * RATE / 2);
    assert_int_equal(q.end, RATE / 4);
    free(h.pcm);
    assert_int_equal(
        hear(&h, with_markup(UTTER_MARKUP_SSML),
            "<speak>It was late.<break time='700ms'/> <break time='1300ms'/>They slept.</speak>", NULL),
        UTTER_END);
    assert_int_equal(find_quiet(&h).longest, 2 * RATE);
    free(h.pcm);
    /* Also where it is less than what a piece keeps in front by itself, 20 ms. */
    size_t shorter = 0;
    for (int ms = 0; ms < 80; ms += 15) {
        char marked[64];
        snprintf(marked, sizeof marked, "It was late.[pause:%dms]They slept.", ms);
        assert_int_equal(hear(&h, with_markup(UTTER_MARKUP_TAGS), marked, NULL), UTTER_END);
        assert_true(ms == 0 || h.n == shorter + 15 * RATE / 1000);
        shorter = h.n;
        free(h.pcm);
    }
}

/* Another voice, rate and loudness: the same words, from other pieces. */
static void spans_are_spoken_as_they_say(void **state)
{
    static const char text[] = "[voice:clara]It was a warm day.[voice:miles]It was a warm day."
                               "[rate:200%]It was a warm day.[rate:1][volume:50%]It was a warm day.";
    struct heard h;
    float peaks[4] = {0};
    (void)state;
    assert_int_equal(hear(&h, with_markup(UTTER_MARKUP_TAGS), text, NULL), UTTER_END);
    assert_int_equal(h.n_pieces, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(h.pieces[i].text, "It was a warm day.");
        assert_int_equal(h.pieces[i].bytes, strlen("It was a warm day."));
        assert_memory_equal(text + h.pieces[i].at, "It was a warm day.", h.pieces[i].bytes);
        assert_int_equal(h.pieces[i].first, h.pieces[i].at);
        assert_int_equal(h.pieces[i].last, h.pieces[i].at + h.pieces[i].bytes);
    }
    /* Neither says it as the other. */
    assert_true(fabs(h.pieces[0].seconds - h.pieces[1].seconds) > 0.05);
    assert_true(h.pieces[2].seconds < 0.51 * h.pieces[1].seconds);
    assert_true(h.pieces[2].seconds > 0.49 * h.pieces[1].seconds);
    /* The last piece is as loud as half of its voice, the second, which said the same with the same seed. */
    size_t tail = (size_t)(0.9 * h.pieces[3].seconds * RATE);
    for (size_t i = 0; i < h.n; i++) {
        float *peak = &peaks[i + tail < h.n ? 0 : 3];
        *peak = fmaxf(*peak, fabsf(h.pcm[i]));
    }
    assert_true(peaks[3] < 0.75f * peaks[0]);
    free(h.pcm);
}

/* To the sample, and no louder than can be. */
static void a_piece_is_as_loud_as_asked(void **state)
{
    struct heard plain, loud;
    (void)state;
    assert_int_equal(hear(&plain, with_markup(UTTER_MARKUP_TAGS), "It was late.", NULL), UTTER_END);
    assert_int_equal(
        hear(&loud, with_markup(UTTER_MARKUP_TAGS), "[volume:150%]It was late.", NULL), UTTER_END);
    assert_int_equal(loud.n, plain.n);
    for (size_t i = 0; i < loud.n; i++) {
        float wanted = fmaxf(-1, fminf(1, 1.5f * plain.pcm[i]));
        assert_true(fabsf(loud.pcm[i] - wanted) < 1e-6f);
    }
    free(plain.pcm);
    free(loud.pcm);
}

/* What the change of a rate holds back comes at the end: all of a piece is heard, at any rate. */
static void the_end_of_a_changed_piece_is_heard(void **state)
{
    static const char *const texts[] = {"[rate:200%]It was late.", "[rate:50%]It was late."};
    struct heard h;
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_int_equal(hear(&h, with_markup(UTTER_MARKUP_TAGS), texts[i], NULL), UTTER_END);
        assert_int_equal(h.n_pieces, 1);
        double missing = h.pieces[0].seconds * RATE - (double)h.n;
        assert_true(fabs(missing) < 2);
        free(h.pcm);
    }
}

/* What is spoken points into the source, whatever it was written as. */
static void pieces_know_their_source(void **state)
{
    static const char text[] = "<speak>I paid <say-as interpret-as='currency'>$3.50</say-as> &amp; "
                               "left.<break/>It is <sub alias='Saint'>St.</sub> Paul.</speak>";
    struct heard h;
    (void)state;
    assert_int_equal(hear(&h, with_markup(UTTER_MARKUP_SSML), text, NULL), UTTER_END);
    assert_int_equal(h.n_pieces, 2);
    assert_string_equal(h.pieces[0].text, "I paid three dollars and fifty cents & left.");
    assert_memory_equal(text + h.pieces[0].at, "I paid <say-as", 14);
    assert_memory_equal(text + h.pieces[0].last, "<break/>", 8);
    assert_string_equal(h.pieces[1].text, "It is Saint Paul.");
    assert_memory_equal(text + h.pieces[1].first, "It is <sub", 10);
    assert_memory_equal(text + h.pieces[1].last, "</speak>", 8);
    free(h.pcm);
}

static void what_cannot_be_is_told(void **state)
{
    struct heard h;
    utter_error error;
    (void)state;
    static const struct {
        int markup;
        const char *text, *why;
    } wrong[] = {{UTTER_MARKUP_TAGS, "Hello. [voice:nobody]Hi.",
                     "unknown voice \"nobody\" (known: clara, miles)"},
        {UTTER_MARKUP_SSML, "<speak>Hello.\n<p></speak>",
            "markup, line 2, column 4: </speak> ends what has not begun (<p> is open)"},
        {UTTER_MARKUP_SSML, "<speak><break/></speak>", "the text is empty: there is nothing to say"},
        {9, "Hello.", NULL}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(
            hear(&h, with_markup(wrong[i].markup), wrong[i].text, &error), UTTER_E_ARGUMENT);
        assert_int_equal(h.n, 0);
        if (wrong[i].why) {
            assert_string_equal(error.text, wrong[i].why);
        }
        free(h.pcm);
    }
    assert_int_equal(
        hear(&h, with_markup(UTTER_MARKUP_TAGS), "[lang:de]# Hello.\n\n# Bye\n\nNow.", NULL),
        UTTER_END);
    assert_int_equal(h.n_notes, 1);
    assert_string_equal(
        h.note, "the model does not speak \"de\": the words that the text marks so are left to it");
    assert_true(h.n_pieces == 3 && !h.pieces[0].heading && h.pieces[1].heading && !h.pieces[2].heading);
    free(h.pcm);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    utter_reading_options o = with_markup(UTTER_MARKUP_TAGS);
    utter_stream_options voice;
    model_notes = &(struct heard){.n = 0};
    utter_model *model = open_builtin();
    utter_stream_options_init(&voice, model);
    voice.max_frames = 2;
    o.retries = 0;
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        static const char text[] = "[voice:clara]3 [pause:1s][volume:50%]cats.";
        utter_reading *reading;
        float pcm[4000];
        size_t got;
        o.spell_out = true;
        utter_status status = utter_reading_open(&reading, model, &voice, &o, NULL);
        status = status ? status : utter_reading_text(reading, text, strlen(text), NULL);
        status = status ? status : utter_reading_finish(reading, NULL);
        while (status == UTTER_OK) {
            status = utter_reading_read(reading, pcm, 4000, &got, NULL);
        }
        assert_true(status == UTTER_E_MEMORY || status == UTTER_END);
        utter_reading_free(&reading);
    }
    utter_model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sentence_is_as_without_markup),
        cmocka_unit_test(pauses_are_exact),
        cmocka_unit_test(spans_are_spoken_as_they_say),
        cmocka_unit_test(a_piece_is_as_loud_as_asked),
        cmocka_unit_test(the_end_of_a_changed_piece_is_heard),
        cmocka_unit_test(pieces_know_their_source),
        cmocka_unit_test(what_cannot_be_is_told),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
