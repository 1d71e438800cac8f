/* SPDX-License-Identifier: Apache-2.0
 * The way through the text is the best one of all that its rules allow, found here by looking at every step of each;
 * what is told of it is exact, and so is how loud a window is. */
#include "tests/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "words/loudness.h"
#include "words/path.h"
#include "words/shares.h"

enum { MOST_PLACES = 200, MOST_FRAMES = 80 };

/* ---- The best way, the long way round ---- */

struct way {
    int n, base[MOST_FRAMES], from[MOST_FRAMES][MOST_PLACES], place[MOST_FRAMES];
    float score[MOST_FRAMES][MOST_PLACES];
};

static bool is_in_band(const struct way *w, int frame, int place, int n)
{
    return place >= w->base[frame] && place < w->base[frame] + 64 && place < n;
}

/* Passing one place over costs 0.7, as its share is 0.001 at least; at most 23 are passed over in a frame. */
static void find_step(struct way *w, int place, float share)
{
    const int f = w->n - 1;
    float best = -INFINITY;
    int from = place;
    for (int before = place; f > 0 && before >= 0 && before >= place - 24; before--) {
        const int over = place - before > 1 ? place - before - 1 : 0;
        const float score = w->score[f - 1][before] - 0.7f * (float)over;
        if (score > best) {
            best = score;
            from = before;
        }
    }
    best = f == 0 ? -0.7f * (float)place : best;
    w->score[f][place] = best + logf(share + 0.001f);
    w->from[f][place] = from;
}

static void take_frame(struct way *w, const float *shares, int n)
{
    const int f = w->n++;
    const int behind = f > 0 ? w->place[f - 1] - 16 : 0;
    w->base[f] = f == 0 ? 0 : behind > w->base[f - 1] ? behind : w->base[f - 1];
    int best = w->base[f];
    for (int i = 0; i < MOST_PLACES; i++) {
        w->score[f][i] = -INFINITY;
        if (is_in_band(w, f, i, n)) {
            find_step(w, i, shares[i]);
            best = w->score[f][i] > w->score[f][best] ? i : best;
        }
    }
    const float most = w->score[f][best];
    for (int i = 0; i < MOST_PLACES; i++) {
        w->score[f][i] -= most;
    }
    const int first = w->n > 12 ? w->n - 12 : 0;
    for (int back = f, at = best; back >= first; back--) {
        w->place[back] = at;
        at = w->from[back][at];
    }
    for (int i = first > 0 ? first : 1; i < w->n;
         i++) { /* what is settled stays, and nothing goes back */
        w->place[i] = w->place[i] > w->place[i - 1] ? w->place[i] : w->place[i - 1];
    }
}

static uint32_t any(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* Attention that goes through the text, strays, and now and then jumps over more than a step may. */
static void make_shares(float *shares, int n, int at, uint32_t *seed)
{
    float sum = 0;
    const bool strays = any(seed) % 6 == 0;
    const int place = strays ? (int)(any(seed) % (uint32_t)n) : at;
    for (int i = 0; i < n; i++) {
        const float noise = (float)(any(seed) % 1000) / 1000;
        shares[i] = noise * noise + (i == place ? (float)n / 4 : 0);
        sum += shares[i];
    }
    for (int i = 0; i < n; i++) {
        shares[i] /= sum;
    }
}

static void the_best_way_is_found(void **state)
{
    (void)state;
    struct way *w = malloc(sizeof *w);
    for (uint32_t seed = 1; seed <= 40; seed++) {
        uint32_t next = seed;
        struct path p = {0};
        int at = 0, most = 20 + 40 * (int)(seed % 5), n_jumps = 0;
        memset(w, 0, sizeof *w);
        assert_int_equal(path_init(&p, MOST_FRAMES, NULL), UTTER_OK);
        for (int f = 0; f < MOST_FRAMES; f++) {
            float shares[MOST_PLACES];
            const int n = seed % 2           ? most
                          : 4 + 3 * f < most ? 4 + 3 * f
                                             : most; /* as text that arrives has it */
            const bool jumps = any(&next) % 20 == 0;
            n_jumps += jumps;
            at += jumps ? (int)(any(&next) % 50) - 10 : (int)(any(&next) % 3);
            at = at < 0 ? 0 : at >= n ? n - 1 : at;
            make_shares(shares, n, at, &next);
            path_step(&p, shares, n);
            take_frame(w, shares, n);
            assert_int_equal(p.n, f + 1);
            assert_int_equal(p.base[f], w->base[f]);
            assert_memory_equal(p.place, w->place, (size_t)p.n * sizeof *p.place);
            for (int i = 0; i < PATH_BAND; i++) {
                const bool in = is_in_band(w, f, w->base[f] + i, n);
                assert_int_equal(p.share[f][i], in ? (int)lrintf(255 * shares[w->base[f] + i]) : 0);
                assert_true(!in || !isfinite(w->score[f][w->base[f] + i]) ||
                            fabsf(p.score[i] - w->score[f][w->base[f] + i]) < 0.001f);
            }
        }
        assert_true(n_jumps > 0);
        path_fini(&p);
    }
    free(w);
}

/* ---- What is told of a way ---- */

/* A way whose frames give these shares to the second of three places, the rest to the first. */
static struct path way_of(const float *shares, int n)
{
    struct path p = {0};
    assert_int_equal(path_init(&p, n, NULL), UTTER_OK);
    for (int f = 0; f < n; f++) {
        const float of[] = {1 - shares[f], shares[f], 0};
        path_step(&p, of, 3);
    }
    return p;
}

static void check_share(const struct path *p, int frame, int from, int to, int wanted)
{
    assert_true(fabsf(path_share(p, frame, from, to) - (float)wanted / 255) < 1e-6f);
}

static void shares_of_places_add_up(void **state)
{
    (void)state;
    struct path p = {0};
    float shares[MOST_PLACES] = {0.2f, 0.4f, 0.4f};
    assert_int_equal(path_init(&p, 3, NULL), UTTER_OK);
    path_step(&p, shares, 3);
    check_share(&p, 0, 0, 1, 51);
    check_share(&p, 0, 1, 2, 102);
    check_share(&p, 0, 1, 3, 204);
    check_share(&p, 0, -7, 1, 51);
    check_share(&p, 0, 2, 1000, 102);
    check_share(&p, 0, 3, 1000, 0);
    check_share(&p, 0, 2, 2, 0);
    check_share(&p, 0, 2, 1, 0);
    memcpy(shares, (const float[]){0.5f, 0.5f, 0},
        3 * sizeof *shares); /* 128 + 128 are no more than all */
    path_step(&p, shares, 3);
    check_share(&p, 1, 0, 2, 255);
    /* Of a band that has moved, and its ends. */
    memset(shares, 0, sizeof shares);
    p.base[1] = 20;
    p.place[1] = 36;
    shares[36] = 0.4f;
    shares[20] = 0.2f;
    shares[20 + PATH_BAND - 1] = 0.2f;
    shares[20 + PATH_BAND] = 0.2f;
    path_step(&p, shares, MOST_PLACES);
    assert_int_equal(p.base[2], 20);
    check_share(&p, 2, 0, 21, 51);
    check_share(&p, 2, 0, 36, 51);
    check_share(&p, 2, 36, 37, 102);
    check_share(&p, 2, 20 + PATH_BAND - 1, MOST_PLACES, 51);
    check_share(&p, 2, 20 + PATH_BAND, MOST_PLACES, 0);
    check_share(&p, 2, 0, MOST_PLACES, 204);
    path_fini(&p);
}

/* A place is entered between two frames, where the attention that is on it or behind it says so. */
static void a_moment_lies_between_two_frames(void **state)
{
    (void)state;
    static const struct {
        float shares[6];
        int frame;
        double wanted;
    } cases[] = {
        {{0, 0, 0, 1, 1, 1}, 3, 3},
        {{0, 0, 0.2f, 0.6f, 1, 1}, 3, 1 + 1 + 0.8 + 0.4},
        {{0, 0.4f, 0.2f, 0.6f, 0.8f, 1}, 3, 1 + 0.6 + 0.8 + 0.4 + 0.2},
        {{0, 1, 1, 1, 0.8f, 1}, 3, 2}, /* at most one frame before */
        {{1, 0, 0, 0, 0, 1}, 3, 4},    /* or behind */
        {{1, 1, 0, 0.2f, 0.4f, 0}, 3, 1 + 1 + 0.8 + 0.6},
        {{0.2f, 0.6f, 0.8f, 0, 0, 0}, 1, 0.8 + 0.4 + 0.2},
        {{0, 0, 0, 0.2f, 0.6f, 0.8f}, 5, 3 + 0.8 + 0.4 + 0.2},
        {{0, 0, 0, 0.2f, 0.6f, 0.8f}, 0, 0},
        {{0, 0, 0, 0.2f, 0.6f, 0.8f}, 6, 6},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct path p = way_of(cases[i].shares, 6);
        assert_true(fabs(path_moment(&p, cases[i].frame, 1) - cases[i].wanted) < 1e-6);
        path_fini(&p);
    }
}

static void a_place_is_entered_once(void **state)
{
    (void)state;
    struct path p = way_of((const float[]){0, 0, 1, 1, 1, 1}, 6);
    assert_memory_equal(p.place, ((const int32_t[]){0, 0, 1, 1, 1, 1}), 6 * sizeof *p.place);
    assert_int_equal(path_enter(&p, 0, 0), 0);
    assert_int_equal(path_enter(&p, 0, 1), 2);
    assert_int_equal(path_enter(&p, 1, 1), 2);
    assert_int_equal(path_enter(&p, 4, 1), 4);
    assert_int_equal(path_enter(&p, 0, 2), 6);
    assert_int_equal(path_enter(&p, 6, 0), 6);
    path_fini(&p);
}

static void attention_is_shared_out(void **state)
{
    (void)state;
    float shares[3];
    static const float scores[] = {1, 1 + 0.6931472f, 1};
    shares[2] = 9;
    shares_clear(shares, 2);
    assert_memory_equal(shares, ((const float[]){0, 0, 9}), sizeof shares);
    shares_clear(shares, 3);
    shares_add(shares, scores, 3, 0.5f);
    shares_add(
        shares, (const float[]){-1000, 3, 1000}, 2, 0.5f); /* of two places, one of which gets all */
    assert_true(fabsf(shares[0] - 0.125f) < 1e-6f);
    assert_true(fabsf(shares[1] - 0.75f) < 1e-6f);
    assert_true(fabsf(shares[2] - 0.125f) < 1e-6f);
    for (int n = 1; n <= 3; n++) { /* the most of them all, wherever it is */
        for (int most = 0; most < n; most++) {
            float far[4] = {-1000, -1000, -1000, -1000};
            far[most] = 1000;
            far[n] = 3000; /* of no place */
            shares_clear(shares, 3);
            shares_add(shares, far, n, 1);
            for (int i = 0; i < 3; i++) {
                assert_true(shares[i] == (float)(i == most));
            }
        }
    }
}

/* ---- Loudness ---- */

enum { WINDOW = 10, N_WINDOWS = 10 };

/* Windows of these levels, which arrive in pieces that no window ends with. */
static struct loudness sound_of(const float *levels, int n, int room)
{
    struct loudness l = {0};
    float pcm[2 * N_WINDOWS * WINDOW];
    assert_int_equal(loudness_init(&l, WINDOW, room, NULL), UTTER_OK);
    for (int i = 0; i < n * WINDOW; i++) {
        pcm[i] = i % 2 ? levels[i / WINDOW] : -levels[i / WINDOW];
    }
    for (int at = 0; at < n * WINDOW; at += 7) {
        loudness_add(&l, pcm + at, (size_t)(n * WINDOW - at < 7 ? n * WINDOW - at : 7));
    }
    return l;
}

/* The first is quiet, the second a click, loud is what is above 0.003. */
static const float LEVELS[N_WINDOWS] = {0, 0.3f, 0, 0.3f, 0.3f, 0, 0.0031f, 0.0031f, 0.0029f, 0.0029f};

static void windows_have_their_loudness(void **state)
{
    (void)state;
    struct loudness l = sound_of(LEVELS, N_WINDOWS, N_WINDOWS - 2);
    assert_int_equal(l.n, N_WINDOWS - 2); /* the rest has no room */
    for (int i = 0; i < l.n; i++) {
        assert_true(fabsf(l.at[i] - LEVELS[i]) < 1e-6f);
        assert_true(fabsf(l.loudest[i] - (i < 1 ? 0 : 0.3f)) < 1e-6f);
    }
    assert_true(fabsf(loudness_threshold(&l, 0) - 0.0005f) < 1e-9f);
    assert_true(fabsf(loudness_threshold(&l, 1) - 0.0005f) < 1e-9f);
    assert_true(fabsf(loudness_threshold(&l, 2) - 0.003f) < 1e-7f);
    loudness_fini(&l);
    static const float rising[] = {0.02f, 0.04f, 0.06f, 0.05f, 0.1f, 0.01f};
    static const float wanted[] = {0.0005f, 0.0005f, 0.0006f, 0.0006f, 0.001f, 0.001f};
    l = sound_of(rising, 6, 20);
    assert_int_equal(l.n, 6);
    for (int i = 0; i < 6; i++) {
        assert_true(fabsf(loudness_threshold(&l, i + 1) - wanted[i]) < 1e-7f);
    }
    loudness_fini(&l);
    /* Half a window waits for the rest of it. */
    static const float halves[] = {0.1f, 0.1f, 0.1f, 0.1f, 0.1f, 0.7f, 0.7f, 0.7f, 0.7f, 0.7f};
    assert_int_equal(loudness_init(&l, WINDOW, 2, NULL), UTTER_OK);
    loudness_add(&l, halves, 5);
    assert_int_equal(l.n, 0);
    loudness_add(&l, halves + 5, 5);
    loudness_add(&l, halves, 5);
    loudness_add(&l, halves, 5);
    assert_int_equal(l.n, 2);
    assert_true(fabsf(l.at[0] - 0.5f) < 1e-6f && fabsf(l.at[1] - 0.1f) < 1e-6f);
    loudness_fini(&l);
}

static void edges_are_where_it_gets_loud(void **state)
{
    (void)state;
    static const struct {
        int from, end, onset, offset;
    } cases[] = {
        {0, 100, 30, 80},
        {29, 100, 30, 80},
        {30, 100, 30, 80},
        {35, 100, 35, 80},
        {45, 100, 60, 80}, /* one loud window alone is a click */
        {65, 100, 65, 80},
        {70, 100, 70, 80},
        {85, 100, 85, 85}, /* nothing loud is left */
        {0, 1000, 30, 80},
        {5, 20, 10, 20}, /* of the last window it is not known what follows */
        {5, 11, 10, 11},
        {5, 10, 5, 5},
        {0, 21, 0, 20},
        {0, 75, 30, 75},
        {0, 60, 30, 50},
        {50, 60, 50, 50},
        {55, 60, 55, 55},
        {45, 58, 45, 50},
        {3, 10, 3, 3},
        {0, 0, 0, 0},
    };
    struct loudness l = sound_of(LEVELS, N_WINDOWS, N_WINDOWS);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(loudness_onset(&l, cases[i].from, cases[i].end), cases[i].onset);
        assert_int_equal(loudness_offset(&l, cases[i].from, cases[i].end), cases[i].offset);
    }
    loudness_fini(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_way_is_found),
        cmocka_unit_test(shares_of_places_add_up),
        cmocka_unit_test(a_moment_lies_between_two_frames),
        cmocka_unit_test(a_place_is_entered_once),
        cmocka_unit_test(attention_is_shared_out),
        cmocka_unit_test(windows_have_their_loudness),
        cmocka_unit_test(edges_are_where_it_gets_loud),
    };
    return cmocka_run_group_tests_name("ways and loudness", tests, NULL, NULL);
}
