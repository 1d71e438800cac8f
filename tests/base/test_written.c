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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(places_are_found),
        cmocka_unit_test(what_is_only_spoken_is_found), cmocka_unit_test(the_front_is_forgotten)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
