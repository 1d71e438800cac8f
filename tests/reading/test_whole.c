/* SPDX-License-Identifier: Apache-2.0
 * Whether a piece is whole: by how its stream ended, the words it went past, and its pace beside that of the pieces
 * before. */
#include <math.h>
#include <string.h>

#include "model/backend.h"
#include "model/model.h"
#include "reading/reading_parts.h"
#include "tests/support.h"

enum { RATE = 24000, FRAME = 1920 }; /* a frame lasts 80 ms */

/* In place of a prompt: of words that have ended nobody looks at the tokens. */
static max_align_t no_prompt[64];

/* A reading whose pieces have streams of their own making. */
struct scene {
    struct config config;
    struct model model;
    struct engine engine;
    struct utter_reading reading;
    struct backend_ops ops;
    struct words words;
    utter_word word;
    struct utter_stream stream;
    struct work work;
};

static utter_status weigh(struct backend *b, int lane, const struct row *rows, int n,
    const int32_t *codes, struct likelihood *likelihoods, utter_error *error)
{
    (void)b;
    (void)lane;
    (void)rows;
    (void)n;
    (void)codes;
    (void)likelihoods;
    return error_set(error, UTTER_E_ARGUMENT, "nobody asks");
}

/* A piece of 100 letters that took so many frames and ended by itself. */
static void set(struct scene *s, int n_frames)
{
    *s = (struct scene){.config.codec.frame_samples = FRAME, .ops.weigh = weigh};
    s->model.config = &s->config;
    s->engine.context.model = &s->model;
    s->engine.context.ops = &s->ops;
    s->reading.engine = &s->engine;
    s->reading.seam.rate = RATE;
    s->words = (struct words){.at = &s->word, .n_told = 1, .n_final = 1, .ended = true};
    s->stream.context = &s->engine.context;
    s->stream.prompt = (struct prompt *)no_prompt;
    s->stream.finish = UTTER_FINISH_EOS;
    s->stream.n_frames = n_frames;
    s->work = (struct work){.stream = &s->stream, .units = 100, .length = 100};
}

static void a_frame_has_its_seconds(void **state)
{
    struct scene s;
    (void)state;
    set(&s, 25);
    assert_true(fabs(whole_seconds(&s.reading, &s.work) - 2) < 1e-12);
}

static void what_did_not_end_by_itself_is_not_whole(void **state)
{
    struct scene s;
    (void)state;
    for (int only = 0; only < 2; only++) {
        for (int finish = UTTER_FINISH_EOS; finish <= UTTER_FINISH_ERROR; finish++) {
            set(&s, 100);
            s.work.only = only;
            s.stream.finish = (utter_finish)finish;
            assert_int_equal(whole_is(&s.reading, &s.work), finish == UTTER_FINISH_EOS);
        }
    }
}

/* Where it is known which words were not said, one is enough; where it is not, none counts. */
static void what_went_past_a_word_is_not_whole(void **state)
{
    struct scene s;
    (void)state;
    for (int kind = 0; kind < 16; kind++) {
        bool skipped = kind & 1, guarded = kind & 2, asked = kind & 4, only = kind & 8;
        set(&s, 100);
        s.word.skipped = skipped;
        s.stream.use_guard = guarded;
        s.stream.words = asked ? &s.words : NULL;
        s.work.only = only;
        assert_int_equal(whole_is(&s.reading, &s.work), !(skipped && guarded && asked));
        s.ops.weigh = NULL;
        assert_true(whole_is(&s.reading, &s.work));
    }
}

/* No voice says a letter in less than 30 ms: 100 letters take 37.5 frames. Of a text that is one piece this is not
 * asked. */
static void a_piece_takes_its_time(void **state)
{
    struct scene s;
    (void)state;
    set(&s, 37);
    assert_false(whole_is(&s.reading, &s.work));
    s.work.only = true;
    assert_true(whole_is(&s.reading, &s.work));
    set(&s, 38);
    assert_true(whole_is(&s.reading, &s.work));
    set(&s, 15);
    s.work.units = 40; /* 1.2 s, to the sample */
    assert_true(whole_is(&s.reading, &s.work));
    s.work.units = 41;
    assert_false(whole_is(&s.reading, &s.work));
}

/* Where each of those before took 0.08 s for a letter, as one frame, 100 letters are 100 frames. */
static void a_piece_is_as_fast_as_those_before(void **state)
{
    static const struct {
        size_t n; /* pieces before */
        int n_frames;
        size_t units;
        bool whole;
    } all[] = {{0, 1000, 100, true}, {0, 50, 100, true}, {1, 59, 100, false}, {1, 61, 100, true},
        {1, 219, 100, true}, {1, 221, 100, false}, {2, 61, 100, true}, {2, 219, 100, true},
        {3, 61, 100, false}, {3, 74, 100, false}, {3, 76, 100, true}, {3, 169, 100, true},
        {3, 171, 100, false}, {9, 74, 100, false}, {9, 171, 100, false}, {9, 100, 100, true},
        {9, 200, 40, false}, {9, 200, 39, true}, {9, 50, 40, false}, {9, 50, 39, true}};
    struct scene s;
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        set(&s, all[i].n_frames);
        s.work.units = all[i].units;
        for (size_t k = 0; k < all[i].n; k++) {
            s.reading.pace.unit_s[s.reading.pace.n++] = 0.08;
        }
        if (whole_is(&s.reading, &s.work) != all[i].whole) {
            fail_msg("%d frames behind %zu pieces", all[i].n_frames, all[i].n);
        }
    }
}

/* The pace is the median of the last nine, of the upper two where they are even; a few that are slow change nothing. */
static void the_pace_is_a_median(void **state)
{
    static const struct {
        double seen[9];
        size_t n;
        double median;
    } all[] = {{{0.08}, 1, 0.08}, {{0.2, 0.08}, 2, 0.2}, {{0.08, 0.2}, 2, 0.2},
        {{0.2, 0.08, 0.02}, 3, 0.08}, {{0.02, 0.2, 0.08}, 3, 0.08}, {{0.08, 0.08, 0.2}, 3, 0.08},
        {{0.3, 0.2, 0.1, 0.08}, 4, 0.2}, {{0.3, 0.02, 0.2, 0.04, 0.08}, 5, 0.08},
        {{0.3, 0.02, 0.2, 0.04, 0.08, 0.5, 0.01, 0.6, 0.03}, 9, 0.08},
        {{0.3, 0.02, 0.2, 0.04, 0.08, 0.5, 0.01, 0.6, 0.03}, 20, 0.08},
        {{0.6, 0.5, 0.3, 0.2, 0.08, 0.04, 0.03, 0.02, 0.01}, 9, 0.08}};
    struct scene s;
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        double least = all[i].n < 3 ? 0.6 : 0.75, most = all[i].n < 3 ? 2.2 : 1.7;
        for (int side = 0; side < 4;
             side++) { /* beside both bounds, in 10,000ths of a frame's length */
            double part = (side < 2 ? least : most) * (side % 2 ? 1.001 : 0.999);
            set(&s, 1000000);
            s.work.length = (size_t)(80000 / all[i].median / part);
            memcpy(s.reading.pace.unit_s, all[i].seen, sizeof all[i].seen);
            s.reading.pace.n = all[i].n;
            assert_int_equal(whole_is(&s.reading, &s.work), side == 1 || side == 2);
        }
    }
}

/* Of pieces of 40 letters and more that ended by themselves, the newest in place of the oldest. */
static void the_pace_is_learned_of_long_pieces(void **state)
{
    struct scene s;
    struct pace_seen pace = {{0}, 0};
    (void)state;
    for (int i = 1; i < 30; i++) {
        set(&s, 10 * i);
        s.reading.pace = pace;
        s.work.units = 39 + (size_t)(i % 2);
        s.work.length = 50;
        s.stream.finish = i % 3 == 0 ? UTTER_FINISH_MAX_FRAMES : UTTER_FINISH_EOS;
        whole_learn(&s.reading, &s.work);
        bool learned = i % 2 == 1 && i % 3 != 0;
        assert_int_equal(s.reading.pace.n, pace.n + learned);
        for (size_t k = 0; k < PACE_KEPT; k++) {
            double wanted = learned && k == pace.n % PACE_KEPT ? 0.8 * i / 50 : pace.unit_s[k];
            assert_true(fabs(s.reading.pace.unit_s[k] - wanted) < 1e-12);
        }
        pace = s.reading.pace;
    }
    assert_true(pace.n == 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_frame_has_its_seconds),
        cmocka_unit_test(what_did_not_end_by_itself_is_not_whole),
        cmocka_unit_test(what_went_past_a_word_is_not_whole), cmocka_unit_test(a_piece_takes_its_time),
        cmocka_unit_test(a_piece_is_as_fast_as_those_before), cmocka_unit_test(the_pace_is_a_median),
        cmocka_unit_test(the_pace_is_learned_of_long_pieces)};
    return cmocka_run_group_tests_name("whole pieces", tests, NULL, NULL);
}
