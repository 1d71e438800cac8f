/* SPDX-License-Identifier: Apache-2.0
 * The quiet between pieces to the sample: what is left of it, what is added, and how its ends fade. */
#include "reading/seam.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/heap.h"
#include "tests/support.h"

enum { RATE = 24000, MS = RATE / 1000, FADE = 5 * MS, LEAD = 20 * MS, MOST = 2 * RATE };

/* A piece: quiet samples, loud ones, quiet ones, each sample a value of its own. How it ends: with a pause as long as
 * a reading has it, with one that is exact, or as the last. */
enum how { PAUSE, EXACT, LAST };
struct piece {
    size_t front, loud, end;
    enum how how;
    size_t pause;
};

static size_t make(const struct piece *p, float *pcm)
{
    size_t n = p->front + p->loud + p->end;
    for (size_t i = 0; i < n; i++) {
        bool is_loud = i >= p->front && i < p->front + p->loud;
        pcm[i] = (is_loud ? 0.1f : 0.001f) + 1e-6f * (float)(i % 1000) * (is_loud ? 1 : 0.1f);
        pcm[i] = !is_loud && i % 13 == 0 ? 0.004f : pcm[i]; /* as loud as quiet may be */
    }
    return n;
}

/* What is to come out of it. `keep`: of the quiet in front, as much is left; `fill`: and not less. */
static size_t expect(const struct piece *p, bool first, size_t keep, bool fill, float *out)
{
    static float pcm[MOST];
    size_t n = make(p, pcm), front = p->front, n_out = 0, behind = 0;
    if (!first) {
        size_t missing = fill && front < keep ? keep - front : 0,
               skip = front > keep ? front - keep : 0;
        memset(out, 0, missing * sizeof *out);
        memmove(pcm, pcm + skip, (n - skip) * sizeof *pcm);
        n -= skip;
        front -= skip;
        for (size_t i = 0; i < front + missing; i++) {
            out[i] = i < missing ? 0 : pcm[i - missing];
            out[i] *= i < FADE ? (float)(i + 1) / (float)(FADE + 1) : 1;
        }
        n_out = front + missing;
        memcpy(out + n_out, pcm + front, (n - front) * sizeof *pcm);
        n_out += n - front;
    } else {
        memcpy(out, pcm, n * sizeof *pcm);
        n_out = n;
    }
    if (p->how == LAST) {
        return n_out;
    }
    behind = p->how == EXACT   ? p->pause - (p->pause < LEAD ? p->pause : LEAD)
             : p->pause > LEAD ? p->pause - LEAD
                               : 0;
    size_t beyond = p->end > behind ? p->end - behind : 0;
    n_out -= beyond;
    for (size_t i = 0; i + beyond < FADE; i++) { /* what was cut off was held for the fade as well */
        out[n_out - 1 - i] *= (float)i / (float)FADE;
    }
    for (size_t i = p->end; i < behind; i++) {
        out[n_out++] = 0;
    }
    return n_out;
}

static utter_status put_piece(
    struct seam *seam, const struct piece *p, bool first, size_t step, struct samples *out)
{
    static float pcm[MOST];
    size_t n = make(p, pcm);
    utter_status status = UTTER_OK;
    seam_begin(seam, (double)p->pause / RATE, first);
    if (p->how == EXACT) {
        seam_exact(seam, (double)p->pause / RATE, false);
    }
    for (size_t at = 0; at < n && status == UTTER_OK; at += step) {
        status = seam_put(seam, pcm + at, n - at < step ? n - at : step, out, NULL);
    }
    return status ? status : seam_end(seam, p->how == LAST, out, NULL);
}

/* Two pieces, one behind the other, in steps of any length. */
static void check_pair(const struct piece *one, const struct piece *other)
{
    static const size_t steps[] = {MOST, 1, 7, 100, 1000, 1400, 1440, 1441};
    static float wanted[2 * MOST];
    size_t keep = one->how == EXACT && one->pause < LEAD ? one->pause : LEAD;
    size_t n = expect(one, true, 0, false, wanted);
    n += expect(other, false, keep, one->how == EXACT, wanted + n);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct seam seam = {.rate = RATE, .stress = {.rate = RATE}};
        struct samples out = {0};
        assert_int_equal(put_piece(&seam, one, true, steps[i], &out), UTTER_OK);
        assert_int_equal(put_piece(&seam, other, false, steps[i], &out), UTTER_OK);
        assert_int_equal(out.n, n);
        for (size_t k = 0; k < n; k++) {
            if (out.at[k] != wanted[k]) {
                fail_msg("step %zu: sample %zu is %g, not %g", steps[i], k, (double)out.at[k],
                    (double)wanted[k]);
            }
        }
        seam_fini(&seam);
        samples_fini(&out);
    }
}

static void pauses_are_as_long_as_they_are_to_be(void **state)
{
    static const struct piece ones[] = {{0, 2000, 0, PAUSE, 100 * MS},
        {500, 1000, 3000, PAUSE, 100 * MS}, {100, 1000, 80 * MS, PAUSE, 100 * MS},
        {100, 1000, 80 * MS - 1, PAUSE, 100 * MS}, {100, 1000, 80 * MS + 1, PAUSE, 100 * MS},
        {0, 1000, 700, PAUSE, 20 * MS}, {0, 1000, 700, PAUSE, 20 * MS + 1}, {0, 1000, 700, PAUSE, 0},
        {0, 1000, 700, PAUSE, 5 * MS}};
    static const struct piece others[] = {{0, 3000, 100, LAST, 0}, {1, 3000, 100, LAST, 0},
        {FADE - 1, 3000, 0, LAST, 0}, {FADE, 3000, 0, LAST, 0}, {LEAD - 1, 3000, 9000, LAST, 0},
        {LEAD, 3000, 9000, LAST, 0}, {LEAD + 1, 3000, 0, LAST, 0}, {5000, 3000, 2000, PAUSE, 50 * MS},
        {0, 1000, 100, LAST, 0}, {300, 1000, 0, LAST, 0}, {0, 1440, 0, PAUSE, 50 * MS}};
    (void)state;
    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++) {
        for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
            check_pair(&ones[i], &others[k]);
        }
    }
}

static void exact_pauses_are_filled_or_cut(void **state)
{
    static const size_t pauses[] = {0, 1, FADE, LEAD - 1, LEAD, LEAD + 1, 200 * MS};
    static const size_t fronts[] = {0, 1, LEAD - 1, LEAD, 3000}, ends[] = {0, 1, 180 * MS, 9000};
    (void)state;
    for (size_t i = 0; i < sizeof pauses / sizeof *pauses; i++) {
        for (size_t k = 0; k < sizeof fronts / sizeof *fronts; k++) {
            for (size_t j = 0; j < sizeof ends / sizeof *ends; j++) {
                const struct piece one = {10, 1000, ends[j], EXACT, pauses[i]};
                const struct piece other = {fronts[k], 2000, 500, LAST, 0};
                check_pair(&one, &other);
            }
        }
    }
}

/* Each piece behind the first begins anew: nothing of the one before it comes a second time. */
static void a_third_piece_is_like_the_second(void **state)
{
    static const struct piece piece = {700, 3000, 900, PAUSE, 100 * MS};
    static float wanted[MOST];
    struct seam seam = {.rate = RATE, .stress = {.rate = RATE}};
    struct samples out = {0};
    size_t n = expect(&piece, false, LEAD, false, wanted);
    (void)state;
    assert_int_equal(put_piece(&seam, &piece, true, 500, &out), UTTER_OK);
    for (int i = 0; i < 3; i++) {
        out.n = 0;
        assert_int_equal(put_piece(&seam, &piece, false, 500, &out), UTTER_OK);
        assert_int_equal(out.n, n);
        assert_memory_equal(out.at, wanted, n * sizeof *wanted);
    }
    seam_fini(&seam);
    samples_fini(&out);
}

/* A piece in which nothing is loud leaves no trace of the one before: in front of what comes next stands the pause
 * behind it, and what it kept of its own quiet. */
static void a_quiet_piece_is_a_pause(void **state)
{
    static float pcm[MOST];
    static const struct piece one = {0, 1000, 9000, PAUSE, 100 * MS};
    static const size_t lengths[] = {1, FADE, LEAD, 3000, 9000};
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct seam seam = {.rate = RATE, .stress = {.rate = RATE}};
        struct samples out = {0};
        assert_int_equal(put_piece(&seam, &one, true, 500, &out), UTTER_OK);
        assert_int_equal(out.n, 1000 + 80 * MS);
        seam_begin(&seam, 0.05, false);
        assert_int_equal(seam_put(&seam, pcm, lengths[i], &out, NULL), UTTER_OK);
        assert_int_equal(seam_end(&seam, false, &out, NULL), UTTER_OK);
        size_t kept = lengths[i] < LEAD ? lengths[i] : LEAD;
        assert_int_equal(out.n, 1000 + 80 * MS + kept + 30 * MS);
        seam_fini(&seam);
        samples_fini(&out);
    }
}

/* The stress of each piece is measured, and that of those behind the first is taken off. */
static void the_stress_of_pieces_is_evened(void **state)
{
    enum { SLOW = 2000, N_PIECE = 3 * SLOW, STEP = 70 };
    static float pcm[N_PIECE], own[N_PIECE];
    struct seam seam = {.rate = SLOW, .stress = {.rate = SLOW}};
    struct stress stress = {.rate = SLOW};
    struct samples out = {0};
    (void)state;
    for (int i = 0; i < N_PIECE; i++) {
        pcm[i] = i < SLOW / 2 ? 0.4f : 0.3f;
    }
    for (int piece = 0; piece < 4; piece++) {
        memcpy(own, pcm, sizeof pcm);
        stress_begin(&stress, piece > 0);
        stress_take(&stress, own, N_PIECE);
        stress_end(&stress);
        seam_begin(&seam, 0.02, piece == 0);
        for (size_t at = 0; at < N_PIECE; at += STEP) {
            size_t n = N_PIECE - at < STEP ? N_PIECE - at : STEP;
            assert_int_equal(seam_put(&seam, pcm + at, n, &out, NULL), UTTER_OK);
        }
        assert_int_equal(seam_end(&seam, true, &out, NULL), UTTER_OK);
        assert_int_equal(seam.stress.n, piece + 1);
        assert_true(fabs(seam.stress.db - stress.db) < 1e-6);
        assert_int_equal(out.n, N_PIECE);
        for (int i = 0; i < N_PIECE; i++) {
            assert_true(fabsf(out.at[i] - own[i]) < 1e-6f);
        }
        out.n = 0;
    }
    seam_fini(&seam);
    samples_fini(&out);
}

/* In front of the first piece, and one more behind an exact pause: all of it but what the piece itself keeps. */
static void silence_stands_in_front(void **state)
{
    static const size_t pauses[] = {0, 1, LEAD, LEAD + 1, 300 * MS};
    static const struct piece piece = {100, 2000, 50, LAST, 0};
    static float wanted[MOST];
    (void)state;
    for (size_t i = 0; i < sizeof pauses / sizeof *pauses; i++) {
        struct seam seam = {.rate = RATE, .stress = {.rate = RATE}};
        struct samples out = {0};
        size_t keep = pauses[i] < LEAD ? pauses[i] : LEAD,
               n = expect(&piece, false, keep, true, wanted);
        assert_int_equal(seam_silence(&seam, (double)pauses[i] / RATE, &out, NULL), UTTER_OK);
        assert_int_equal(out.n, pauses[i] - keep);
        assert_int_equal(seam_silence(&seam, 0.5, &out, NULL), UTTER_OK);
        size_t before = pauses[i] - keep + RATE / 2;
        assert_int_equal(out.n, before);
        assert_int_equal(put_piece(&seam, &piece, true, 333, &out), UTTER_OK);
        assert_int_equal(out.n, before + n);
        for (size_t k = 0; k < before; k++) {
            assert_true(out.at[k] >= 0 && out.at[k] <= 0);
        }
        assert_memory_equal(out.at + before, wanted, n * sizeof *wanted);
        seam_fini(&seam);
        samples_fini(&out);
    }
}

/* An exact pause at the very end leaves nothing for a piece behind it. */
static void a_last_exact_pause_is_whole(void **state)
{
    static float pcm[MOST];
    static const struct piece piece = {0, 1000, 9000, LAST, 0};
    (void)state;
    for (int last = 0; last < 2; last++) {
        struct seam seam = {.rate = RATE, .stress = {.rate = RATE}};
        struct samples out = {0};
        size_t n = make(&piece, pcm);
        seam_begin(&seam, 0, true);
        seam_exact(&seam, 0.1, last);
        assert_int_equal(seam_put(&seam, pcm, n, &out, NULL), UTTER_OK);
        assert_int_equal(seam_end(&seam, false, &out, NULL), UTTER_OK);
        assert_int_equal(out.n, 1000 + 100 * MS - (last ? 0 : LEAD));
        seam_fini(&seam);
        samples_fini(&out);
    }
}

/* A pause that is known only later is as long as one that was known from the beginning. */
static void a_pause_may_be_told_later(void **state)
{
    static float pcm[MOST];
    static const struct piece piece = {0, 1000, 0, PAUSE, 100 * MS};
    struct seam seam = {.rate = RATE, .stress = {.rate = RATE}};
    struct samples out = {0};
    size_t n = make(&piece, pcm);
    (void)state;
    seam_begin(&seam, 0, true);
    assert_int_equal(seam_put(&seam, pcm, n, &out, NULL), UTTER_OK);
    seam_pause(&seam, 0.1);
    assert_int_equal(seam_end(&seam, false, &out, NULL), UTTER_OK);
    assert_int_equal(out.n, 1000 + 80 * MS);
    seam_fini(&seam);
    samples_fini(&out);
}

/* Silence is silent wherever it comes to stand, and what is there stays. */
static void samples_are_added_behind_others(void **state)
{
    static const float some[] = {1, 2, 3, 4, 5};
    struct samples s = {0};
    (void)state;
    for (int i = 0; i < 4000; i++) { /* all of the room has been used */
        assert_int_equal(samples_add(&s, some, 5, NULL), UTTER_OK);
    }
    assert_int_equal(s.n, 20000);
    s.n = 5;
    assert_int_equal(samples_add(&s, NULL, 3, NULL), UTTER_OK);
    assert_int_equal(samples_add(&s, some, 0, NULL), UTTER_OK);
    assert_int_equal(samples_add(&s, some, 1, NULL), UTTER_OK);
    static const float wanted[] = {1, 2, 3, 4, 5, 0, 0, 0, 1};
    assert_int_equal(s.n, 9);
    assert_memory_equal(s.at, wanted, sizeof wanted);
    assert_true(s.at[9] > 4.5f); /* nothing behind was touched */
    samples_fini(&s);
    assert_null(s.at);
    assert_int_equal(s.n + s.room, 0);
}

/* Of pieces between exact pauses every allocation fails once: a failure is told, and nothing stays. */
static void memory_may_run_out(void **state)
{
    static const struct piece one = {100, 9000, 200, EXACT, LEAD + 5}, other = {3, 9000, 100, LAST, 0};
    (void)state;
    size_t before = 0;
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        struct seam seam = {.rate = RATE, .stress = {.rate = RATE}};
        struct samples out = {0};
        before = heap_used();
        utter_error error = {0};
        utter_status status = seam_silence(&seam, 1, &out, &error);
        bool told = status == UTTER_OK || strstr(error.text, "sound");
        status = status ? status : put_piece(&seam, &one, true, 500, &out);
        status = status ? status : put_piece(&seam, &other, false, 500, &out);
        assert_true(told && status == (support_failed() ? UTTER_E_MEMORY : UTTER_OK));
        seam_fini(&seam);
        samples_fini(&out);
        assert_int_equal(heap_used(), before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pauses_are_as_long_as_they_are_to_be),
        cmocka_unit_test(exact_pauses_are_filled_or_cut),
        cmocka_unit_test(a_third_piece_is_like_the_second),
        cmocka_unit_test(a_quiet_piece_is_a_pause),
        cmocka_unit_test(the_stress_of_pieces_is_evened),
        cmocka_unit_test(silence_stands_in_front),
        cmocka_unit_test(a_last_exact_pause_is_whole),
        cmocka_unit_test(a_pause_may_be_told_later),
        cmocka_unit_test(samples_are_added_behind_others),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
