/* SPDX-License-Identifier: Apache-2.0
 * Words of a planted speech: attention that is known, and sound that is known, give times that are known. */
#include "tests/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "words/words.h"

enum { FRAME = 1920, RATE = 24000, N_FRAMES = 40, MOST_TOKENS = 64 };

static const char TEXT[] = "alpha beta, gamma delta";
/* Three tokens of the first word, one of the others and of the comma, which no frame is at. */
static const uint64_t BEGINS[] = {0, 2, 4, 5, 10, 11, 17};
enum { N_TOKENS = sizeof BEGINS / sizeof *BEGINS };
/* The token of each frame; N_TOKENS is the end of the text. */
static const int PLACES[N_FRAMES] = {0, 0, 0, 0, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 5, 5,
    5, 5, 5, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 6, 7, 7, 7, 7};

struct planted {
    const int *places;         /* [n] */
    int n, loud_from, loud_to; /* frames with sound */
    bool slips;                /* some frames look somewhere else */
    bool blind;                /* of the first one it is not known where it looks */
};

static void scores_of(float *scores, const struct planted *p, int frame)
{
    int place = p->places[frame];
    if (p->slips && frame % 7 == 5) {
        place = (place + 5) % (N_TOKENS + 1);
    }
    for (int i = 0; i <= N_TOKENS; i++) {
        scores[i] = i == place ? 4.0f : 0.0f;
    }
}

static void speak(struct words *w, const struct heads *heads, const struct planted *p)
{
    static float pcm[FRAME];
    float scores[N_TOKENS + 1];
    const struct words_tokens tokens = {BEGINS, N_TOKENS, true};
    assert_int_equal(words_init(w, heads, MOST_TOKENS, N_FRAMES, FRAME, RATE, NULL), UTTER_OK);
    assert_int_equal(words_text(w, TEXT, strlen(TEXT), NULL), UTTER_OK);
    assert_int_equal(words_finish(w, NULL), UTTER_OK);
    for (int f = 0; f < p->n; f++) {
        size_t n_final = w->n_final;
        utter_word before[8];
        memcpy(before, w->at, n_final * sizeof *before);
        scores_of(scores, p, f);
        const bool blind = p->blind && f == 0;
        words_frame(w, blind ? NULL : scores, blind ? 0 : N_TOKENS + 1, &tokens);
        for (int i = 0; i < FRAME; i++) {
            bool loud = f >= p->loud_from && f < p->loud_to;
            pcm[i] = loud ? 0.3f * (float)sin(0.1 * i) : 0;
        }
        words_sound(w, pcm, FRAME, &tokens);
        assert_true(w->n_final >= n_final && w->n_told >= w->n_final);
        assert_memory_equal(before, w->at, n_final * sizeof *before); /* nothing final is taken back */
    }
    words_end(w, true, &tokens);
}

static void in_order(const struct words *w)
{
    assert_int_equal(w->n_told, w->segmenter.n);
    for (size_t i = 0; i < w->n_told; i++) {
        assert_true(w->at[i].final);
        assert_true(w->at[i].start <= w->at[i].end && (int64_t)w->at[i].end <= w->n_samples);
        assert_true(i == 0 || w->at[i].start >= w->at[i - 1].start);
        assert_int_equal(w->at[i].at, w->segmenter.at[i].at);
    }
}

/* Within a frame's half of what was planted, with slips and without, with the first frame's scores and without. */
static void test_planted(void **state)
{
    (void)state;
    const struct heads heads = {.at = {{0, 0}}, .n = 1};
    for (int i_case = 0; i_case < 4; i_case++) {
        const struct planted p = {PLACES, N_FRAMES, 2, 38, i_case % 2 != 0, i_case / 2 != 0};
        static const int starts[] = {2, 10, 20, 28};
        struct words w = {0};
        speak(&w, &heads, &p);
        assert_false(words_approximate(&w));
        in_order(&w);
        for (int i = 0; i < 4; i++) {
            assert_true(llabs((long long)w.at[i].start - starts[i] * FRAME) <= FRAME * 6 / 10);
            assert_true(w.at[i].certainty > 0.5f);
        }
        assert_int_equal(w.at[3].end, 36 * FRAME + 2 * FRAME); /* where the sound ends */
        words_fini(&w);
    }
}

/* Words that share a token begin at their part of its time, and all of them are said when it is. */
static void test_shared(void **state)
{
    enum {
        N_SHARED = 3,
        FIRST = 10,
        SECOND = 30
    }; /* frames that the second and the third token begin at */
    static const char shared[] = "one two three four, five";
    static const uint64_t begins[N_SHARED] = {0, 4, 20};
    static const double starts[] = {FIRST, FIRST + 20 * 4 / 16.0, FIRST + 20 * 10 / 16.0, SECOND};
    const struct heads heads = {.at = {{0, 0}}, .n = 1};
    const struct words_tokens tokens = {begins, N_SHARED, true};
    static float pcm[FRAME];
    struct words w = {0};
    (void)state;
    for (int i = 0; i < FRAME; i++) {
        pcm[i] = 0.3f * (float)sin(0.1 * i);
    }
    assert_int_equal(words_init(&w, &heads, MOST_TOKENS, N_FRAMES, FRAME, RATE, NULL), UTTER_OK);
    assert_int_equal(words_text(&w, shared, strlen(shared), NULL), UTTER_OK);
    assert_int_equal(words_finish(&w, NULL), UTTER_OK);
    for (int f = 0; f < N_FRAMES; f++) {
        const int place = (f >= FIRST) + (f >= SECOND);
        float scores[N_SHARED + 1] = {0};
        scores[place] = 6;
        words_frame(&w, scores, N_SHARED + 1, &tokens);
        words_sound(&w, pcm, FRAME, &tokens);
    }
    words_end(&w, true, &tokens);
    in_order(&w);
    for (int i = 0; i < 4; i++) {
        assert_true(fabs((double)w.at[i + 1].start - starts[i] * FRAME) <= 0.6 * FRAME);
        assert_true(w.at[i].start < w.at[i].end && w.at[i].certainty > 0.5f && !w.at[i].skipped);
    }
    words_fini(&w);
}

/* The way passes a word over: it is told, without a length, and no other word moves. */
static void test_skipped(void **state)
{
    (void)state;
    const struct heads heads = {.at = {{0, 0}}, .n = 1};
    int places[N_FRAMES];
    memcpy(places, PLACES, sizeof places);
    for (int i = 0; i < N_FRAMES; i++) {
        places[i] = places[i] == 3 ? 2 : places[i];
    }
    const struct planted p = {places, N_FRAMES, 0, N_FRAMES, false, false};
    struct words w = {0};
    speak(&w, &heads, &p);
    in_order(&w);
    assert_true(w.at[1].certainty == 0 && w.at[1].start == w.at[1].end);
    assert_true(w.at[1].skipped && !w.at[0].skipped && !w.at[2].skipped && !w.at[3].skipped);
    assert_int_equal(words_skipped(&w), 1);
    assert_int_equal(words_place(&w), N_TOKENS);
    assert_true(w.at[0].certainty > 0.5f && w.at[2].certainty > 0.5f);
    words_fini(&w);
}

/* One frame that looks at the end of the text does not begin the time that speech is there. */
static void test_there(void **state)
{
    (void)state;
    const struct heads heads = {.at = {{0, 0}}, .n = 1};
    int places[N_FRAMES];
    memcpy(places, PLACES, sizeof places);
    places[22] = N_TOKENS;
    const struct planted strays = {places, 23, 0, 23, false, false},
                         returned = {places, 27, 0, 27, false, false},
                         ends = {places, N_FRAMES, 0, N_FRAMES, false, false};
    const struct planted *all[] = {&strays, &returned, &ends};
    static const int there[][2] = {{N_TOKENS, 1}, {5, 7}, {N_TOKENS, 4}};
    for (int i = 0; i < 3; i++) {
        struct words w = {0};
        speak(&w, &heads, all[i]);
        assert_int_equal(words_place(&w), there[i][0]);
        assert_int_equal(words_there(&w), there[i][1]);
        words_fini(&w);
    }
}

/* Of a frame without scores all is as likely, so that a word which only that frame can have said is not certain, and
 * not out of the question. */
static void test_blind(void **state)
{
    (void)state;
    const struct heads heads = {.at = {{0, 0}}, .n = 1};
    const struct planted p = {PLACES, 1, 0, 1, false, true};
    struct words w = {0};
    speak(&w, &heads, &p);
    assert_true(w.at[0].certainty > 0.1f && w.at[0].certainty < 0.6f);
    words_fini(&w);
}

/* The words that surprise most are looked into, the worst of them first. */
static void test_doubts(void **state)
{
    (void)state;
    static const int middles[] = {5, 15, 24, 32}; /* frames of the words */
    static const float nats[] = {20, 40, 15, 30};
    static const size_t order[] = {1, 3, 0, 2};
    const struct heads heads = {.at = {{0, 0}}, .n = 1};
    const struct planted p = {PLACES, N_FRAMES, 0, N_FRAMES, false, false};
    const struct words_tokens tokens = {BEGINS, N_TOKENS, true};
    struct words_doubt doubts[WORDS_DOUBTS];
    struct words w = {0};
    speak(&w, &heads, &p);
    for (int i = 0; i < N_FRAMES; i++) {
        words_surprise(&w, i, -100);
    }
    for (int i = 0; i < 4; i++) {
        words_surprise(&w, middles[i], nats[i]);
    }
    assert_int_equal(words_doubts(&w, &tokens, doubts), 4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(doubts[i].word, order[i]);
        assert_true(doubts[i].surprise == (double)nats[order[i]]);
    }
    words_fini(&w);
}

/* Speech that ends early: what was not heard is told at the end. */
static void test_unheard(void **state)
{
    (void)state;
    const struct heads heads = {.at = {{0, 0}}, .n = 1};
    const struct planted p = {PLACES, 15, 0, 15, false, false};
    struct words w = {0};
    speak(&w, &heads, &p);
    in_order(&w);
    for (int i = 2; i < 4; i++) {
        assert_true(w.at[i].skipped && (int64_t)w.at[i].start == w.n_samples);
    }
    words_fini(&w);
}

/* No heads: shares of what is loud, none of them certain. */
static void test_guess(void **state)
{
    (void)state;
    const struct heads none = {.n = 0};
    const struct planted p = {PLACES, N_FRAMES, 4, 36, false, false};
    struct words w = {0};
    speak(&w, &none, &p);
    assert_true(words_approximate(&w));
    in_order(&w);
    assert_int_equal(w.at[0].start, 4 * FRAME);
    assert_true((int64_t)w.at[3].end <= 36 * FRAME && w.at[3].end > 35 * FRAME);
    assert_true(w.at[2].certainty == 0);
    assert_int_equal(words_skipped(&w), 0); /* it does not know */
    words_fini(&w);
}

/* A word begins where its sound does, not at a click before it, which a codec may begin with. */
static void test_click(void **state)
{
    (void)state;
    enum { WINDOW = 10, CLICK = 2, LOUD = 6, N = 12 };
    struct loudness l = {0};
    float pcm[N * WINDOW] = {0};
    for (int i = 0; i < WINDOW; i++) {
        pcm[CLICK * WINDOW + i] = 0.05f;
    }
    for (int i = LOUD * WINDOW; i < N * WINDOW; i++) {
        pcm[i] = 0.3f;
    }
    assert_int_equal(loudness_init(&l, WINDOW, N, NULL), UTTER_OK);
    loudness_add(&l, pcm, N * WINDOW);
    for (int from = 0; from < LOUD; from++) {
        assert_int_equal(loudness_onset(&l, from * WINDOW + 3, N * WINDOW), LOUD * WINDOW);
    }
    assert_int_equal(loudness_onset(&l, 0, LOUD * WINDOW), 0); /* a click alone */
    assert_int_equal(loudness_onset(&l, 65, N * WINDOW), 65);
    loudness_fini(&l);
}

/* ---- Nothing depends on when samples and frames come ---- */

/* Times of the words of SHARED, three of which are in one token, when the frames come `ahead` of their sound and that
 * comes `each` frames at once: the same ones, from the first time on that they are final. The sound begins as a whisper
 * and grows, so that what is loud at first is quiet beside what comes. */
static void speak_in_turns(struct words *w, int ahead, int each)
{
    enum { MOST_EACH = 16, N_SHARED = 3, LONG = 100 };
    static const char shared[] = "one two three four, five";
    static const uint64_t begins[N_SHARED] = {0, 4, 20};
    static float pcm[MOST_EACH * FRAME];
    const struct heads heads = {.at = {{0, 0}}, .n = 1};
    const struct words_tokens tokens = {begins, N_SHARED, true};
    float scores[N_SHARED + 1];
    utter_word final[8];
    size_t n_final = 0;
    assert_int_equal(words_init(w, &heads, MOST_TOKENS, LONG, FRAME, RATE, NULL), UTTER_OK);
    assert_int_equal(words_text(w, shared, strlen(shared), NULL), UTTER_OK);
    assert_int_equal(words_finish(w, NULL), UTTER_OK);
    for (int made = 0, heard = 0; heard < LONG;) {
        for (int n = 0; n < each && made < LONG; n++, made++) {
            for (int i = 0; i <= N_SHARED; i++) {
                scores[i] = i == made * (N_SHARED + 1) / LONG ? 3.0f : 0.0f;
            }
            words_frame(w, scores, N_SHARED + 1, &tokens);
        }
        for (; heard < LONG && (made == LONG || heard + ahead + each <= made); heard += each) {
            const int n = LONG - heard < each ? LONG - heard : each;
            for (int i = 0; i < n * FRAME; i++) {
                const int at = heard * FRAME + i;
                const double level =
                    0.03 * exp(6.0 * at / (LONG * FRAME)); /* syllables, and breath between them */
                pcm[i] = (float)((at / 4000 % 3 ? level : 0.065 * level) * sin(0.1 * at));
            }
            words_sound(w, pcm, (size_t)(n * FRAME), &tokens);
        }
        assert_memory_equal(final, w->at, n_final * sizeof *final);
        n_final = w->n_final;
        memcpy(final, w->at, n_final * sizeof *final);
    }
    words_end(w, true, &tokens);
    assert_memory_equal(final, w->at, n_final * sizeof *final);
    in_order(w);
}

static void test_turns(void **state)
{
    (void)state;
    static const int turns[][2] = {{0, 1}, {0, 4}, {0, 16}, {1, 1}, {8, 1}, {30, 2}, {80, 10}, {99, 1}};
    struct words first = {0};
    speak_in_turns(&first, turns[0][0], turns[0][1]);
    for (size_t i = 1; i < sizeof turns / sizeof *turns; i++) {
        struct words w = {0};
        speak_in_turns(&w, turns[i][0], turns[i][1]);
        assert_int_equal(w.n_told, first.n_told);
        assert_memory_equal(w.at, first.at, w.n_told * sizeof *w.at);
        words_fini(&w);
    }
    words_fini(&first);
}

/* Frames of few samples, as a small checkpoint has them: windows of loudness are at least one, and cover the sound. */
static void test_small_frames(void **state)
{
    (void)state;
    static const int frames[] = {1, 4, 15};
    static const float pcm[16] = {
        0.3f, 0.3f, 0.3f, 0.3f, 0.3f, 0.3f, 0.3f, 0.3f, 0.3f, 0.3f, 0.3f, 0.3f, 0.3f, 0.3f, 0.3f, 0.3f};
    const struct heads heads = {.n = 0};
    for (size_t i = 0; i < sizeof frames / sizeof *frames; i++) {
        struct words w = {0};
        assert_int_equal(words_init(&w, &heads, 1, N_FRAMES, frames[i], RATE, NULL), UTTER_OK);
        assert_int_equal(words_text(&w, TEXT, strlen(TEXT), NULL), UTTER_OK);
        assert_int_equal(words_finish(&w, NULL), UTTER_OK);
        for (int f = 0; f < N_FRAMES; f++) {
            words_sound(&w, pcm, (size_t)frames[i], NULL);
        }
        words_end(&w, true, NULL);
        in_order(&w);
        assert_true((int64_t)(w.loudness.n + 1) * w.loudness.window > w.n_samples);
        words_fini(&w);
    }
}

/* Every allocation fails once, and whoever speaks goes on: words may be missing, nothing is written beyond them. */
static void test_memory(void **state)
{
    (void)state;
    const struct heads heads = {.n = 0};
    static const float pcm[FRAME] = {0};
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        struct words w = {0};
        if (words_init(&w, &heads, 1, N_FRAMES, FRAME, RATE, NULL) == UTTER_OK) {
            words_text(&w, TEXT, 5, NULL); /* a word that is certain at the end only */
            words_finish(&w, NULL);
            words_sound(&w, pcm, FRAME, NULL);
            words_end(&w, true, NULL);
            assert_true(w.n_told <= w.room && w.segmenter.n <= w.room);
        }
        words_fini(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_planted),
        cmocka_unit_test(test_shared),
        cmocka_unit_test(test_skipped),
        cmocka_unit_test(test_there),
        cmocka_unit_test(test_blind),
        cmocka_unit_test(test_doubts),
        cmocka_unit_test(test_unheard),
        cmocka_unit_test(test_guess),
        cmocka_unit_test(test_click),
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_small_frames),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
