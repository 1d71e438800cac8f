/* SPDX-License-Identifier: Apache-2.0
 * Exact times of a planted speech: attention that is on one place alone, sound that begins and ends with a frame. When
 * a word is told and when it is final, by the frame; what is told of words that were not heard; which are in doubt. */
#include "tests/support.h"

#include <math.h>
#include <string.h>

#include "words/words.h"

enum { FRAME = 1920, RATE = 24000, MOST_FRAMES = 60, MOST_TOKENS = 64 };

struct speech {
    const char *text;
    const uint64_t *begins; /* [n_tokens] */
    int n_tokens;
    /* [n_tokens + 1]: the frame that each place, and behind them the end of the text, begins at. */
    const int *enters;
    int n; /* frames */
    int loud_from, loud_to;
    double lead_ms;
};

/* Three tokens of the first word, one of the others and of the comma, which no frame is at. */
static const uint64_t BEGINS[] = {0, 2, 4, 5, 10, 11, 17};
static const int ENTERS[] = {0, 4, 6, 10, 20, 20, 28, 36};
static const struct speech PLAIN = {"alpha beta, gamma delta", BEGINS, 7, ENTERS, 40, 0, 40, 0};
/* Three words of one token. */
static const uint64_t SHARED_BEGINS[] = {0, 4, 20};
static const int SHARED_ENTERS[] = {0, 10, 30, 48};
static const struct speech SHARED = {
    "one two three four, five", SHARED_BEGINS, 3, SHARED_ENTERS, 50, 0, 50, 0};

static struct words_tokens tokens_of(const struct speech *s)
{
    return (struct words_tokens){s->begins, s->n_tokens, true};
}

static void begin(struct words *w, struct heads *heads, const struct speech *s)
{
    *w = (struct words){0};
    *heads = (struct heads){.at = {{0, 0}}, .n = 1, .lead_ms = s->lead_ms};
    assert_int_equal(words_init(w, heads, MOST_TOKENS, MOST_FRAMES, FRAME, RATE, NULL), UTTER_OK);
    assert_int_equal(words_text(w, s->text, strlen(s->text), NULL), UTTER_OK);
    assert_int_equal(words_finish(w, NULL), UTTER_OK);
}

static void make_frame(struct words *w, const struct speech *s, int frame)
{
    float scores[MOST_TOKENS] = {0};
    const struct words_tokens tokens = tokens_of(s);
    int place = 0;
    for (int i = 0; i <= s->n_tokens; i++) {
        place = s->enters[i] <= frame ? i : place;
    }
    scores[place] = 30;
    words_frame(w, scores, s->n_tokens + 1, &tokens);
}

static void hear_frame(struct words *w, const struct speech *s, int frame)
{
    float pcm[FRAME];
    const struct words_tokens tokens = tokens_of(s);
    for (int i = 0; i < FRAME; i++) {
        pcm[i] = frame >= s->loud_from && frame < s->loud_to ? 0.3f : 0;
    }
    words_sound(w, pcm, FRAME, &tokens);
}

static void speak(struct words *w, struct heads *heads, const struct speech *s)
{
    begin(w, heads, s);
    for (int f = 0; f < s->n; f++) {
        make_frame(w, s, f);
        hear_frame(w, s, f);
    }
}

static void end(struct words *w, const struct speech *s, bool whole)
{
    const struct words_tokens tokens = tokens_of(s);
    words_end(w, whole, &tokens);
}

/* Times in frames. */
static void check_word(const struct words *w, size_t i, double start, double stop)
{
    assert_true(i < w->n_told);
    assert_int_equal(w->at[i].at, w->segmenter.at[i].at);
    assert_int_equal(w->at[i].bytes, w->segmenter.at[i].bytes);
    if (fabs((double)w->at[i].start - start * FRAME) > 1 ||
        fabs((double)w->at[i].end - stop * FRAME) > 1) {
        fail_msg("word %zu from %g to %g, not from %g to %g", i, (double)w->at[i].start / FRAME,
            (double)w->at[i].end / FRAME, start, stop);
    }
}

static void words_begin_and_end_to_the_sample(void **state)
{
    (void)state;
    static const struct {
        int loud_from, loud_to;
        double lead_ms, times[4][2]; /* in frames */
    } cases[] = {
        {0, 40, 0, {{0, 10}, {10, 20}, {20, 28}, {28, 40}}},
        {2, 38, 0, {{2, 10}, {10, 20}, {20, 28}, {28, 38}}},
        {4, 38, 0, {{4, 10}, {10, 20}, {20, 28}, {28, 38}}},
        {5, 38, 0,
            {{0, 10}, {10, 20}, {20, 28}, {28, 38}}}, /* more than 5 frames of a word are no pause */
        {2, 24, 0, {{2, 10}, {10, 20}, {20, 24}, {28, 28}}},
        {14, 38, 0, {{0, 0}, {14, 20}, {20, 28}, {28, 38}}},
        {2, 38, 80, {{2, 11}, {11, 21}, {21, 29}, {29, 38}}},
        {0, 40, 120, {{1.5, 11.5}, {11.5, 21.5}, {21.5, 29.5}, {29.5, 40}}},
        {0, 40, -40, {{0, 9.5}, {9.5, 19.5}, {19.5, 27.5}, {27.5, 40}}},
        {0, 40, -1000, {{0, 0}, {0, 7.5}, {7.5, 15.5}, {15.5, 40}}},
        {0, 40, 1000,
            {{12.5, 22.5}, {22.5, 32.5}, {32.5, 40}, {40, 40}}}, /* none begins behind the sound */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct speech s = PLAIN;
        struct words w;
        struct heads heads;
        s.loud_from = cases[i].loud_from;
        s.loud_to = cases[i].loud_to;
        s.lead_ms = cases[i].lead_ms;
        speak(&w, &heads, &s);
        end(&w, &s, true);
        assert_int_equal(w.n_told, 4);
        for (size_t k = 0; k < 4; k++) {
            check_word(&w, k, cases[i].times[k][0], cases[i].times[k][1]);
            assert_true(fabsf(w.at[k].certainty - 1) < 1e-6f && !w.at[k].skipped && w.at[k].final);
        }
        words_fini(&w);
    }
}

static void words_of_one_token_share_its_time(void **state)
{
    (void)state;
    static const double times[][2] = {{0, 10}, {10, 15}, {15, 22.5}, {22.5, 30}, {30, 50}};
    struct words w;
    struct heads heads;
    speak(&w, &heads, &SHARED);
    end(&w, &SHARED, true);
    assert_int_equal(w.n_told, 5);
    for (size_t i = 0; i < 5; i++) {
        check_word(&w, i, times[i][0], times[i][1]);
        assert_true(fabsf(w.at[i].certainty - 1) < 1e-6f && !w.at[i].skipped);
    }
    assert_int_equal(words_skipped(&w), 0);
    words_fini(&w);
}

/* A word is told one frame behind that which enters it, and final when nothing can move the next one's beginning: once
 * that is settled, or with several in one token the place behind it, and its first frame has been heard. */
static void each_word_is_told_and_final_in_its_time(void **state)
{
    (void)state;
    static const int told[2][5] = {{2, 12, 22, 30}, {2, 12, 12, 12, 32}}; /* from so many frames on */
    static const int final[2][5] = {{23, 33, 41, 61}, {23, 43, 43, 43, 61}};
    for (int k = 0; k < 2; k++) {
        const struct speech *s = k ? &SHARED : &PLAIN;
        const size_t n_words = k ? 5 : 4;
        struct words w;
        struct heads heads;
        begin(&w, &heads, s);
        assert_int_equal(words_place(&w), -1);
        assert_int_equal(words_there(&w), 0);
        for (int f = 0; f < s->n; f++) {
            size_t n_told = 0, n_final = 0;
            make_frame(&w, s, f);
            hear_frame(&w, s, f);
            for (size_t i = 0; i < n_words; i++) {
                n_told += told[k][i] <= f + 1;
                n_final += final[k][i] <= f + 1;
            }
            assert_int_equal(w.n_told, n_told);
            assert_int_equal(w.n_final, n_final);
            for (size_t i = 0; i < n_told; i++) {
                assert_int_equal(w.at[i].final, i < n_final);
            }
        }
        end(&w, s, false);
        assert_int_equal(w.n_told, n_words);
        assert_int_equal(w.n_final, n_words);
        assert_true(w.at[n_words - 1].final);
        words_fini(&w);
    }
}

/* Of the newest token it is not known whether more of it comes: its words are told once the next one is there. */
static void words_of_the_newest_token_wait(void **state)
{
    (void)state;
    for (int finished = 0; finished < 2; finished++) {
        struct words w;
        struct heads heads;
        float scores[8] = {0};
        begin(&w, &heads, &PLAIN);
        for (int f = 0; f < 9; f++) {
            const struct words_tokens tokens = {BEGINS, 4, finished}; /* up to that of "beta" */
            scores[0] = f < 5 ? 30 : 0;
            scores[3] = f < 5 ? 0 : 30;
            words_frame(&w, scores, 5, &tokens);
        }
        assert_int_equal(
            w.n_told, finished ? 4 : 1); /* what has no token of its own is in the last one */
        if (!finished) {
            const struct words_tokens more = {BEGINS, 5, false};
            words_frame(&w, scores, 5, &more);
            assert_int_equal(w.n_told, 2);
        }
        words_fini(&w);
    }
}

/* The mean attention on the word's own tokens, of the frames that are at them. */
static void certainty_is_attention_on_the_word(void **state)
{
    (void)state;
    const struct words_tokens tokens = tokens_of(&PLAIN);
    struct words w;
    struct heads heads;
    begin(&w, &heads, &PLAIN);
    for (int f = 0; f < PLAIN.n; f++) {
        float scores[8];
        for (int i = 0; i < 8; i++) {
            scores[i] = -50;
        }
        if (f <
            10) { /* the three tokens of the first word, and the second word, which is still to come */
            scores[f < 4 ? 0 : f < 6 ? 1 : 2] = logf(f < 6 ? 0.6f : 0.8f);
            scores[3] = logf(f < 6 ? 0.4f : 0.2f);
        } else {
            scores[f < 20 ? 3 : f < 28 ? 5 : 6] = logf(0.8f); /* and the token behind */
            scores[f < 20 ? 4 : f < 28 ? 6 : 7] = logf(0.2f);
        }
        words_frame(&w, scores, 8, &tokens);
        hear_frame(&w, &PLAIN, f);
    }
    end(&w, &PLAIN, true);
    static const float wanted[] = {0.6f * 0.6f + 0.4f * 0.8f, 0.8f, 0.8f, 0.8f};
    for (int i = 0; i < 4; i++) {
        assert_true(fabsf(w.at[i].certainty - wanted[i]) < 1e-5f);
    }
    words_fini(&w);
}

/* Frames may be far ahead of their sound: a word ends where the next one begins until its sound has come. */
static void sound_may_come_late(void **state)
{
    (void)state;
    struct speech s = PLAIN;
    struct words w;
    struct heads heads;
    s.loud_from = 1;
    s.loud_to = 6;
    begin(&w, &heads, &s);
    for (int f = 0; f < s.n; f++) {
        make_frame(&w, &s, f);
    }
    static const double times[][2] = {{0, 10}, {10, 20}, {20, 28}, {28, 40}};
    assert_int_equal(w.n_told, 4);
    for (size_t i = 0; i < 4; i++) {
        check_word(&w, i, times[i][0], times[i][1]);
    }
    for (int f = 0; f < s.n; f++) {
        hear_frame(&w, &s, f);
        const int heard = f + 1;
        check_word(&w, 0, heard < 2 ? 0 : 1, heard < 10 ? 10 : 6);
        check_word(&w, 1, 10, heard < 20 ? 20 : 10); /* silent */
        assert_int_equal(w.n_final, (heard >= 12) + (heard >= 22));
    }
    words_fini(&w);
    /* It ends with less sound than frames: nothing is behind the sound. */
    s.loud_to = 40;
    begin(&w, &heads, &s);
    for (int f = 0; f < s.n; f++) {
        make_frame(&w, &s, f);
    }
    for (int f = 0; f < 15; f++) {
        hear_frame(&w, &s, f);
    }
    end(&w, &s, true);
    static const double cut[][2] = {{1, 10}, {10, 15}, {15, 15}, {15, 15}};
    for (size_t i = 0; i < 4; i++) {
        check_word(&w, i, cut[i][0], cut[i][1]);
    }
    words_fini(&w);
}

/* The last frame alone may enter a word, where it is the end; what was not entered is told of whole speech only. */
static void the_end_tells_the_rest(void **state)
{
    (void)state;
    for (int whole = 0; whole < 2; whole++) {
        struct speech s = PLAIN;
        struct words w;
        struct heads heads;
        s.n = 11;
        speak(&w, &heads, &s);
        assert_int_equal(w.n_told, 1);
        end(&w, &s, whole);
        assert_int_equal(w.n_told, whole ? 4 : 2);
        assert_int_equal(w.n_final, w.n_told);
        check_word(&w, 1, 10, 11);
        for (size_t i = 0; i < w.n_told; i++) {
            assert_true(w.at[i].final && w.at[i].skipped == (i >= 2));
        }
        for (size_t i = 2; i < w.n_told; i++) {
            check_word(&w, i, 11, 11);
        }
        hear_frame(&w, &s, 11);
        const size_t n = w.n_told;
        end(&w, &s, true); /* it has ended */
        assert_int_equal(w.n_told, n);
        words_fini(&w);
    }
}

/* What is known better than by attention holds of every word, and of those behind one that was not said. */
static void what_was_weighed_holds(void **state)
{
    (void)state;
    static const int passes[] = {0, 4, 6, 20, 20, 20, 28, 36}; /* over the second word */
    for (int missed = -1; missed < 3; missed++) {
        struct speech s = PLAIN;
        struct words w;
        struct heads heads;
        s.enters = passes;
        s.n = 36;
        speak(&w, &heads, &s);
        assert_true(w.n_final == 2 && w.at[1].skipped);
        assert_int_equal(words_skipped(&w), 1);
        words_weighed(&w, missed);
        end(&w, &s, true);
        assert_int_equal(words_skipped(&w), missed >= 0);
        for (int i = 0; i < 4; i++) {
            assert_int_equal(w.at[i].skipped, i == missed);
        }
        words_fini(&w);
        s.n = 24; /* the last word is not heard */
        speak(&w, &heads, &s);
        assert_int_equal(w.n_told, 3);
        words_weighed(&w, missed);
        end(&w, &s, true);
        assert_int_equal(w.n_told, 4);
        for (int i = 0; i < 4; i++) {
            assert_int_equal(w.at[i].skipped, i == missed || (i == 3 && missed < 0));
        }
        words_fini(&w);
    }
}

/* The mean of the heads' attention, of those places that there are; frames without room are left out. */
static void frames_give_shares_of_attention(void **state)
{
    (void)state;
    enum { N_SCORES = 5, ROOM = 3 };
    static const float scores[2][N_SCORES] = {{50, 0, 0, 99, 99}, {0, 50, 0, 99, 99}};
    const struct heads heads = {.at = {{0, 0}, {1, 1}}, .n = 2};
    const struct words_tokens none = {BEGINS, 0, false}, two = {BEGINS, 2, true},
                              many = {BEGINS, 7, true};
    struct words w = {0};
    assert_int_equal(words_init(&w, &heads, 4, ROOM, FRAME, RATE, NULL), UTTER_OK);
    words_frame(&w, scores[0], N_SCORES, &none);
    assert_int_equal(w.path.n, 0); /* there is no place yet */
    words_frame(&w, scores[0], N_SCORES, &two);
    assert_int_equal(w.path.n, 1);
    assert_true(
        fabsf(w.shares[0] - 0.5f) < 1e-6f && fabsf(w.shares[1] - 0.5f) < 1e-6f && w.shares[2] < 1e-6f);
    words_frame(&w, NULL, 0, &two);
    for (int i = 0; i < 3; i++) {
        assert_true(fabsf(w.shares[i] - 1 / 3.0f) < 1e-6f);
    }
    words_frame(&w, NULL, 0, &many); /* no more than can be told apart */
    for (int i = 0; i < 4; i++) {
        assert_true(fabsf(w.shares[i] - 0.25f) < 1e-6f);
    }
    assert_int_equal(w.path.n, ROOM);
    words_frame(&w, scores[0], N_SCORES, &two);
    assert_int_equal(w.path.n, ROOM);
    words_fini(&w);
    assert_int_equal(words_init(&w, &heads, 8, ROOM, FRAME, RATE, NULL), UTTER_OK);
    words_frame(
        &w, (const float[]){50, 0, 7, 7}, 2, &many); /* fewer scores than tokens; heads stand 2 apart */
    assert_true(
        fabsf(w.shares[0] - 0.75f) < 1e-6f && fabsf(w.shares[1] - 0.25f) < 1e-6f && w.shares[2] == 0);
    words_fini(&w);
}

static void without_memory_there_are_no_words(void **state)
{
    (void)state;
    const struct heads heads = {.at = {{0, 0}}, .n = 1};
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        struct words w = {0};
        utter_error error = {.text = ""};
        const utter_status status =
            words_init(&w, &heads, MOST_TOKENS, MOST_FRAMES, FRAME, RATE, &error);
        assert_int_equal(status, support_failed() ? UTTER_E_MEMORY : UTTER_OK);
        assert_int_equal(error.text[0] != 0, status != UTTER_OK);
        words_fini(&w);
    }
}

/* ---- Without heads ---- */

/* Until the end 15 letters a second; then the loud windows by letters: 5, 4, 5 and 5. */
static void guesses_are_shares_of_what_is_loud(void **state)
{
    (void)state;
    static const int told[] = {
        1, 9, 12, 16}; /* frames that must have been heard; the first 4 are quiet */
    const struct heads none = {.n = 0};
    struct speech s = PLAIN;
    s.loud_from = 4;
    s.loud_to = 36;
    struct words w = {0};
    assert_int_equal(words_init(&w, &none, MOST_TOKENS, MOST_FRAMES, FRAME, RATE, NULL), UTTER_OK);
    assert_int_equal(words_text(&w, s.text, strlen(s.text), NULL), UTTER_OK);
    assert_int_equal(words_finish(&w, NULL), UTTER_OK);
    for (int f = 0; f < s.n; f++) {
        size_t n_told = 0;
        make_frame(&w, &s, f);
        hear_frame(&w, &s, f);
        for (size_t i = 0; i < 4; i++) {
            n_told += told[i] <= f + 1;
        }
        assert_int_equal(w.n_told, n_told);
        assert_int_equal(w.n_final, 0);
        assert_false(w.at[0].final);
    }
    /* 5 letters of 15 a second are 33.3 windows of 10 ms, the 34th of which ends 4 * 8 + 34 windows from the start. */
    assert_int_equal(w.at[0].start, 4 * FRAME);
    assert_int_equal(w.at[0].end, (32 + 34) * FRAME / 8);
    assert_int_equal(w.at[1].start, (32 + 34) * FRAME / 8);
    assert_int_equal(w.at[1].end, (32 + 60) * FRAME / 8);
    end(&w, &s, false);
    static const int ends[] = {
        68, 122, 189, 256}; /* of 256 loud windows: 5, 9, 14 and 19 of 19 letters */
    assert_int_equal(w.n_final, 4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(w.at[i].start, (32 + (i ? ends[i - 1] : 0)) * FRAME / 8);
        assert_int_equal(w.at[i].end, (32 + ends[i]) * FRAME / 8);
        assert_true(w.at[i].final && !w.at[i].skipped && w.at[i].certainty == 0);
    }
    assert_int_equal(words_place(&w), -1);
    words_fini(&w);
}

/* ---- Doubts ---- */

/* Frames that surprise make those words doubtful whose frames they are, or one before them, or two behind. */
static void frames_around_a_word_make_it_doubtful(void **state)
{
    (void)state;
    static const int from[] = {0, 9, 19, 27}, to[] = {12, 22, 30, 40};
    static const int tokens_from[] = {0, 3, 5, 6}, tokens_to[] = {3, 4, 6, 7};
    const struct words_tokens tokens = tokens_of(&PLAIN);
    struct words_doubt at[WORDS_DOUBTS];
    struct words w;
    struct heads heads;
    speak(&w, &heads, &PLAIN);
    for (int f = 0; f < PLAIN.n; f++) {
        int n = 0;
        words_surprise(&w, f, 12);
        const int n_doubts = words_doubts(&w, &tokens, at);
        for (int i = 0; i < 4; i++) {
            if (f >= from[i] && f < to[i]) {
                assert_true(n < n_doubts && at[n].surprise == 12);
                assert_int_equal(at[n].word, i);
                assert_int_equal(at[n].from, tokens_from[i]);
                assert_int_equal(at[n].to, tokens_to[i]);
                n++;
            }
        }
        assert_int_equal(n_doubts, n);
        words_surprise(&w, f, 11.9f);
        assert_int_equal(words_doubts(&w, &tokens, at), 0);
        words_surprise(&w, f, 0);
    }
    words_surprise(&w, PLAIN.n, 50); /* no such frame */
    assert_true(w.surprise[PLAIN.n] == 0);
    assert_int_equal(words_doubts(&w, &tokens, at), 0);
    words_fini(&w);
}

/* The stretch of frames that surprises most counts, with what does not surprise inside it. */
static void the_worst_stretch_counts(void **state)
{
    (void)state;
    static const struct {
        float nats[4];
        double sum;
    } cases[] = {{{7, 0, 6, 0}, 13}, {{7, -1, 7, 0}, 13}, {{13, -1, 0.5f, 0}, 13}, {{7, -8, 13, 0}, 13},
        {{7, -2, 6, -9}, 0}};
    const struct words_tokens tokens = tokens_of(&PLAIN);
    struct words_doubt at[WORDS_DOUBTS];
    struct words w;
    struct heads heads;
    speak(&w, &heads, &PLAIN);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int k = 0; k < 4; k++) {
            words_surprise(&w, 13 + k, cases[i].nats[k]);
        }
        assert_int_equal(words_doubts(&w, &tokens, at), cases[i].sum > 0);
        assert_true(cases[i].sum <= 0 || (at[0].word == 1 && at[0].surprise == cases[i].sum));
    }
    words_fini(&w);
}

/* A word that the way passes over is in doubt whatever its frames say. All of the text is not: something was said. */
static void what_is_passed_over_is_in_doubt(void **state)
{
    (void)state;
    static const int passes[] = {0, 4, 6, 20, 20, 20, 28, 36}, one_enters[] = {0, 5};
    static const uint64_t one_begins[] = {0};
    static const struct speech one = {"alpha", one_begins, 1, one_enters, 10, 0, 10, 0};
    struct words_doubt at[WORDS_DOUBTS];
    struct words w;
    struct heads heads;
    struct speech s = PLAIN;
    s.enters = passes;
    const struct words_tokens tokens = tokens_of(&s), only = tokens_of(&one);
    speak(&w, &heads, &s);
    end(&w, &s, true);
    assert_int_equal(words_doubts(&w, &tokens, at), 1);
    assert_true(at[0].word == 1 && at[0].from == 3 && at[0].to == 4 && at[0].surprise == 0);
    words_fini(&w);
    speak(&w, &heads, &one);
    words_surprise(&w, 3, 100);
    assert_int_equal(words_doubts(&w, &only, at), 0);
    words_fini(&w);
}

/* Of six doubtful words the four that surprise most, the first of those that surprise alike. */
static void the_worst_doubts_are_kept(void **state)
{
    (void)state;
    enum { N = 6 };
    static const uint64_t begins[N] = {0, 3, 6, 9, 12, 15};
    static const int enters[N + 1] = {0, 8, 16, 24, 32, 40, 48};
    static const struct speech six = {"aa bb cc dd ee ff", begins, N, enters, 50, 0, 50, 0};
    static const struct {
        float nats[N];
        size_t wanted[WORDS_DOUBTS];
    } cases[] = {
        {{13, 20, 13, 15, 14, 13}, {1, 3, 4, 0}},
        {{13, 13, 13, 13, 13, 13}, {0, 1, 2, 3}},
        {{13, 14, 15, 16, 17, 18}, {5, 4, 3, 2}},
        {{18, 17, 16, 15, 14, 13}, {0, 1, 2, 3}},
        {{18, 17, 16, 15, 15, 15.5f}, {0, 1, 2, 5}},
    };
    const struct words_tokens tokens = tokens_of(&six);
    struct words_doubt at[WORDS_DOUBTS];
    struct words w;
    struct heads heads;
    speak(&w, &heads, &six);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int k = 0; k < N; k++) {
            words_surprise(&w, enters[k] + 4, cases[i].nats[k]);
        }
        assert_int_equal(words_doubts(&w, &tokens, at), WORDS_DOUBTS);
        for (int k = 0; k < WORDS_DOUBTS; k++) {
            assert_int_equal(at[k].word, cases[i].wanted[k]);
            assert_true(at[k].surprise == (double)cases[i].nats[at[k].word]);
        }
    }
    words_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_begin_and_end_to_the_sample),
        cmocka_unit_test(words_of_one_token_share_its_time),
        cmocka_unit_test(each_word_is_told_and_final_in_its_time),
        cmocka_unit_test(words_of_the_newest_token_wait),
        cmocka_unit_test(certainty_is_attention_on_the_word),
        cmocka_unit_test(sound_may_come_late),
        cmocka_unit_test(the_end_tells_the_rest),
        cmocka_unit_test(what_was_weighed_holds),
        cmocka_unit_test(frames_give_shares_of_attention),
        cmocka_unit_test(without_memory_there_are_no_words),
        cmocka_unit_test(guesses_are_shares_of_what_is_loud),
        cmocka_unit_test(frames_around_a_word_make_it_doubtful),
        cmocka_unit_test(the_worst_stretch_counts),
        cmocka_unit_test(what_is_passed_over_is_in_doubt),
        cmocka_unit_test(the_worst_doubts_are_kept),
    };
    return cmocka_run_group_tests_name("times of words", tests, NULL, NULL);
}
