/* SPDX-License-Identifier: Apache-2.0
 * A text without its markup: what of it a place of the source is, while text comes and its front is forgotten. */
#include "tests/support.h"

#include <string.h>

#include "base/written.h"

/* "Say &amp;c <b>42</b>, <i>o</i>k" without its tags. */
static void fill(struct written *w)
{
    written_add(w, 0, 2, "Sa", 2);
    written_add(w, 2, 2, "y ", 2);
    written_add(w, 4, 5, "&", 1);
    written_add(w, 9, 2, "c ", 2);
    written_add(w, 14, 2, "42", 2);
    written_add(w, 20, 2, ", ", 2);
    written_add(w, 25, 1, "o", 1);
    written_add(w, 30, 1, "k", 1);
    assert_false(w->no_memory);
    assert_memory_equal(w->text, "Say &c 42, ok", 13);
}

static void assert_found(const struct written *w, uint64_t source, uint64_t source_n, const char *text)
{
    size_t n, at = written_find(w, source, source_n, &n);
    assert_int_equal(n, strlen(text));
    assert_true(at + n <= w->n);
    assert_memory_equal(w->text + at, text, n);
}

static void places_are_found(void **state)
{
    struct written w = {.n = 0};
    size_t n;
    (void)state;
    assert_int_equal(written_find(&w, 7, 3, &n), 0);
    assert_int_equal(n, 0);
    fill(&w);
    assert_int_equal(w.n_runs, 7); /* what is one for one and goes on is one run */
    assert_found(&w, 0, 3, "Say");
    assert_found(&w, 4, 6, "&c");
    assert_found(&w, 4, 5, "&");
    assert_found(&w, 14, 2, "42");
    assert_found(&w, 14, 6, "42"); /* with its tag */
    assert_found(&w, 25, 6, "ok");
    assert_found(&w, 30, 99, "k");
    assert_int_equal(written_find(&w, 16, 0, &n), 9); /* in the tag, which stands for nothing */
    assert_int_equal(n, 0);
    written_fini(&w);
}

/* Another text than the source has, of no bytes there. */
static void what_is_only_spoken_is_found(void **state)
{
    struct written w = {.n = 0};
    size_t n;
    (void)state;
    written_add(&w, 3, 3, "abc", 3);
    written_add(&w, 20, 0, "x y", 3);
    assert_int_equal(written_find(&w, 20, 0, &n), 3);
    assert_int_equal(n, 0);
    written_add(&w, 20, 2, " d", 2);
    assert_found(&w, 21, 1, "d");
    written_fini(&w);
}

/* Also of a long text nothing is kept but what is asked for. */
static void the_front_is_forgotten(void **state)
{
    struct written w = {.n = 0};
    size_t n;
    (void)state;
    fill(&w);
    written_drop(&w, 8); /* up to the middle of 42 */
    assert_found(&w, 14, 2, "2");
    assert_found(&w, 0, 3, "");
    assert_found(&w, 25, 1, "o");
    written_drop(&w, w.n);
    assert_int_equal(w.n_runs, w.n_passed);
    for (uint64_t i = 0; i < 10000; i++) {
        written_add(&w, 100 + 6 * i, 1, "e", 1);
        written_add(&w, 101 + 6 * i, 5, "x", 1);
        assert_found(&w, 100 + 6 * i, 6, "ex");
        written_drop(&w, written_find(&w, 100 + 6 * i, 0, &n));
        assert_found(&w, 100 + 6 * i, 6, "ex");
    }
    assert_true(w.room < 64 && w.runs_room < 64);
    written_fini(&w);
}

/* What has no room is missing, with all that comes behind it; what was there stays. */
static void text_without_room_is_missing(void **state)
{
    (void)state;
    for (int n = 1; n <= 2; n++) { /* of the text, of the list of runs */
        struct written w = {.n = 0};
        support_fail_malloc_at(n);
        written_add(&w, 0, 3, "abc", 3);
        support_fail_off();
        assert_true(w.no_memory);
        assert_int_equal(w.n + w.n_runs, 0);
        written_add(&w, 3, 3, "def", 3);
        assert_int_equal(w.n + w.n_runs, 0);
        written_fini(&w);
        assert_false(w.no_memory);
        assert_null(w.text);
        assert_null(w.runs);
    }
    struct written w = {.n = 0};
    written_add(&w, 0, 3, "abc", 3);
    static const char more[1000];
    support_fail_malloc_at(1);
    written_add(&w, 3, sizeof more, more, sizeof more);
    support_fail_off();
    assert_true(w.no_memory);
    assert_found(&w, 0, 3, "abc");
    written_fini(&w);
}

/* Runs are one where the source goes on byte for byte, and only there. */
static void only_what_goes_on_is_one_run(void **state)
{
    (void)state;
    struct written w = {.n = 0};
    written_add(&w, 10, 2, "ab", 2);
    written_add(&w, 12, 2, "cd", 2); /* goes on */
    assert_int_equal(w.n_runs, 1);
    assert_int_equal(w.runs[0].n, 4);
    assert_int_equal(w.runs[0].source_n, 4);
    written_add(&w, 15, 2, "ef", 2); /* a byte is left out */
    assert_int_equal(w.n_runs, 2);
    written_add(&w, 17, 3, "gh", 2); /* goes on, but stands for another number of bytes */
    assert_int_equal(w.n_runs, 3);
    written_add(&w, 20, 1, "i", 1);
    assert_int_equal(w.n_runs, 4);
    written_add(&w, 21, 5, "", 0); /* no text, no run */
    assert_int_equal(w.n_runs, 4);
    written_drop(&w, w.n);
    written_add(&w, 21, 1, "j", 1); /* what was forgotten does not go on */
    assert_found(&w, 21, 1, "j");
    assert_int_equal(w.runs[w.n_runs - 1].n, 1);
    written_fini(&w);
}

/* Before the first run, and across two of them. */
static void ranges_begin_and_end_anywhere(void **state)
{
    (void)state;
    struct written w = {.n = 0};
    size_t n;
    written_add(&w, 10, 4, "abcd", 4);
    written_add(&w, 20, 6, "xy", 2); /* another text than the source has */
    written_add(&w, 30, 2, "ef", 2);
    assert_int_equal(written_find(&w, 3, 2, &n), 0);
    assert_int_equal(n, 0);
    assert_found(&w, 9, 2, "a");
    assert_found(&w, 10, 1, "a");
    assert_found(&w, 13, 1, "d");
    assert_int_equal(written_find(&w, 14, 1, &n), 4); /* behind the run */
    assert_int_equal(n, 0);
    assert_found(&w, 12, 9, "cdxy");
    assert_found(&w, 25, 1, "xy"); /* any byte of it is all of it */
    assert_found(&w, 22, 9, "xye");
    assert_found(&w, 31, 1, "f");
    assert_int_equal(written_find(&w, 12, 0, &n), 2);
    assert_int_equal(n, 0);
    written_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(places_are_found),
        cmocka_unit_test(text_without_room_is_missing), cmocka_unit_test(only_what_goes_on_is_one_run),
        cmocka_unit_test(ranges_begin_and_end_anywhere), cmocka_unit_test(what_is_only_spoken_is_found),
        cmocka_unit_test(the_front_is_forgotten)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
