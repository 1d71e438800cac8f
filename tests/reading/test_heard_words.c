/* SPDX-License-Identifier: Apache-2.0
 * Words of pieces as words of the reading: where they stand in the source, when they are heard, which of them are given
 * and when they are dropped. */
#include <string.h>

#include "reading/reading_parts.h"
#include "tests/support.h"

enum { MOST = 16 };

/* A piece whose stream has these words. */
struct scene {
    struct heads heads;
    struct words words;
    utter_word at[MOST];
    struct utter_stream stream;
    struct work work;
};

static void set(struct scene *s, const char *text)
{
    *s = (struct scene){.heads.n = 1};
    s->words = (struct words){.heads = &s->heads, .at = s->at};
    s->stream.words = &s->words;
    s->work = (struct work){.stream = &s->stream,
        .text = (char *)(uintptr_t)text,
        .text_bytes = strlen(text),
        .speed = 1,
        .passed = 1};
}

/* The words of the text, of a hundred samples each. */
static void add_words(struct scene *s)
{
    const char *text = s->work.text;
    for (size_t at = 0, n; at < s->work.text_bytes; at += n + 1) {
        n = strcspn(text + at, " ");
        assert_true(s->words.n_told < MOST);
        size_t start = 100 * s->words.n_told;
        s->at[s->words.n_told++] =
            (utter_word){.at = at, .bytes = n, .start = start, .end = start + 100};
    }
}

/* In the source of a text that was folded: blanks are runs of white space, between characters of East Asia there is
 * none. */
static void words_stand_in_the_source(void **state)
{
    static const struct {
        const char *source, *text;
        size_t at[4]; /* in the source, of the words */
    } all[] = {{NULL, "One two three", {0, 4, 8}}, {"One two", "One two", {0, 4}},
        {"One  two\n\n three", "One two three", {0, 5, 11}}, {"One\xc2\xa0 two", "One two", {0, 6}},
        {"caf\xc3\xa9\t\t\xe2\x80\x9ctwo\xe2\x80\x9d  x", "caf\xc3\xa9 \xe2\x80\x9ctwo\xe2\x80\x9d x",
            {0, 7, 18}},
        {"\xe5\xa4\xa9\n\xe5\xa4\xa9  a", "\xe5\xa4\xa9\xe5\xa4\xa9 a", {0, 9}},
        {"a \xe5\xa4\xa9\n\xe5\xa4\xa9 b", "a \xe5\xa4\xa9\xe5\xa4\xa9 b", {0, 2, 10}}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct scene s;
        struct heard h = {0};
        uint64_t first;
        size_t n;
        set(&s, all[i].text);
        add_words(&s);
        s.work.text_at = 1000;
        s.work.source = (char *)(uintptr_t)all[i].source;
        s.work.source_bytes = all[i].source ? strlen(all[i].source) : 0;
        const utter_word *words = heard_words(&h, &s.work, &first, &n);
        assert_int_equal(n, s.words.n_told);
        for (size_t k = 0; k < n; k++) {
            assert_int_equal(words[k].at, 1000 + all[i].at[k]);
            assert_int_equal(words[k].bytes, s.at[k].bytes);
            assert_false(words[k].final);
        }
        heard_fini(&h);
        assert_null(h.at);
    }
}

/* A second part of East Asia behind white space that was left out. */
static void a_word_behind_white_space_that_went_has_its_place(void **state)
{
    static char source[] = "\xe5\xa4\xa9 \n\xe5\xa4\xa9x";
    struct scene s;
    struct heard h = {0};
    uint64_t first;
    size_t n;
    (void)state;
    set(&s, "\xe5\xa4\xa9\xe5\xa4\xa9x");
    s.work.source = source;
    s.work.source_bytes = sizeof source - 1;
    s.at[0] = (utter_word){.at = 3, .bytes = 3};
    s.at[1] = (utter_word){.at = 6, .bytes = 1};
    s.at[2] = (utter_word){.at = 99, .bytes = 1}; /* beyond the text: at its end */
    s.words.n_told = 3;
    const utter_word *words = heard_words(&h, &s.work, &first, &n);
    assert_int_equal(words[0].at, 5);
    assert_int_equal(words[1].at, 8);
    assert_int_equal(words[2].at, 9);
    heard_fini(&h);
}

/* Of markup: each byte knows its place, several words may have one. */
static void words_of_markup_stand_where_they_come_from(void **state)
{
    static size_t origins[] = {3, 7, 7, 7, 7, 9, 9}, ends[] = {4, 9, 9, 9, 9, 12};
    struct scene s;
    struct heard h = {0};
    uint64_t first;
    size_t n;
    (void)state;
    set(&s, "abcdef");
    s.work.origins = origins;
    s.work.ends = ends;
    s.work.text_at = 1000;
    s.at[0] = (utter_word){.at = 0, .bytes = 1};
    s.at[1] = (utter_word){.at = 1, .bytes = 2};
    s.at[2] = (utter_word){.at = 3, .bytes = 2};
    s.at[3] = (utter_word){.at = 4, .bytes = 2};
    s.at[4] = (utter_word){.at = 5, .bytes = 9}; /* longer than the text */
    s.at[5] = (utter_word){.at = 6, .bytes = 1};
    s.at[6] = (utter_word){.at = 2, .bytes = 0};
    s.words.n_told = 7;
    static const size_t wanted[][2] = {{3, 1}, {7, 2}, {7, 2}, {7, 5}, {9, 3}, {9, 0}, {7, 0}};
    const utter_word *words = heard_words(&h, &s.work, &first, &n);
    assert_int_equal(n, 7);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(words[i].at, wanted[i][0]);
        assert_int_equal(words[i].bytes, wanted[i][1]);
    }
    heard_fini(&h);
}

/* By the rate of the piece and by what the seam has cut; none begins before the one in front, nor ends before it
 * begins. */
static void words_are_heard_in_their_order(void **state)
{
    static const struct {
        double speed;
        int64_t shift;
        uint64_t start[3], end[3];
    } all[] = {{1, 0, {0, 100, 200}, {100, 200, 300}}, {1, 50, {50, 150, 250}, {150, 250, 350}},
        {2, 10, {10, 60, 110}, {60, 110, 160}}, {0.5, 0, {0, 200, 400}, {200, 400, 600}},
        {1, -150, {0, 0, 50}, {0, 50, 150}}, {1, -1000, {0, 0, 0}, {0, 0, 0}}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct scene s;
        struct heard h = {0};
        uint64_t first;
        size_t n;
        set(&s, "a b c");
        add_words(&s);
        s.work.speed = all[i].speed;
        s.work.shift = all[i].shift;
        const utter_word *words = heard_words(&h, &s.work, &first, &n);
        assert_int_equal(n, 3);
        for (size_t k = 0; k < n; k++) {
            assert_int_equal(words[k].start, all[i].start[k]);
            assert_int_equal(words[k].end, all[i].end[k]);
        }
        heard_fini(&h);
    }
}

/* Words of pieces that ended are given once, and dropped with the next call; those of the piece that is spoken come
 * anew with each. */
static void words_are_given_until_they_are_final(void **state)
{
    struct scene s;
    struct heard h = {0};
    uint64_t first = 99;
    size_t n = 99, given = 0;
    const utter_word *words;
    (void)state;
    assert_null(heard_words(&h, NULL, &first, &n));
    assert_int_equal(first + n, 0);
    for (int piece = 0; piece < 40; piece++) {
        set(&s, "a b c");
        s.work.shift = 1000 * piece;
        s.heads.n = piece % 2;
        add_words(&s);
        for (size_t told = 1; told <= 3; told++) {
            s.words.n_told = told;
            words = heard_words(&h, &s.work, &first, &n);
            assert_int_equal(first, given);
            assert_int_equal(n, told);
            assert_int_equal(words[n - 1].start, 1000 * piece + 100 * ((int)told - 1));
            assert_true(!words[n - 1].final && h.approximate == (piece % 2 == 0));
        }
        h.approximate = piece % 2;
        assert_int_equal(heard_piece(&h, &s.work, NULL), UTTER_OK);
        assert_int_equal(h.approximate, piece % 2 == 0);
        if (piece % 3 == 0) { /* another piece may end before anybody asks */
            s.work.shift += 500;
            assert_int_equal(heard_piece(&h, &s.work, NULL), UTTER_OK);
        }
        words = heard_words(&h, NULL, &first, &n);
        assert_int_equal(first, given);
        assert_int_equal(n, piece % 3 == 0 ? 6 : 3);
        for (size_t i = 0; i < n; i++) {
            assert_true(words[i].final);
            assert_int_equal(words[i].start, 1000 * piece + 500 * (int)(i / 3) + 100 * (int)(i % 3));
        }
        given += n;
    }
    words = heard_words(&h, NULL, &first, &n);
    assert_int_equal(first, given);
    assert_int_equal(n, 0);
    assert_true(h.room < 32);
    heard_fini(&h);
}

/* Ended words stay in front of those that are spoken, and begin none before them. */
static void ended_words_are_in_front(void **state)
{
    struct scene s;
    struct heard h = {0};
    uint64_t first;
    size_t n;
    (void)state;
    set(&s, "a b");
    add_words(&s);
    s.work.shift = 500;
    assert_int_equal(heard_piece(&h, &s.work, NULL), UTTER_OK);
    s.work.shift = 550;
    const utter_word *words = heard_words(&h, &s.work, &first, &n);
    assert_int_equal(n, 4);
    assert_true(words[0].final && words[1].final && !words[2].final);
    assert_int_equal(words[1].start, 600);
    assert_int_equal(words[2].start, 600);
    assert_int_equal(words[2].end, 650);
    assert_int_equal(words[3].start, 650);
    words = heard_words(&h, &s.work, &first, &n);
    assert_int_equal(first, 2);
    assert_int_equal(n, 2);
    assert_int_equal(words[0].start, 550);
    heard_fini(&h);
}

/* What was given is dropped in front of a piece that ended meanwhile. */
static void words_that_were_given_make_room(void **state)
{
    struct scene s;
    struct heard h = {0};
    uint64_t first;
    size_t n;
    (void)state;
    for (int piece = 0; piece < 5; piece++) {
        set(&s, piece % 2 ? "a" : "a b c");
        add_words(&s);
        s.work.shift = 1000 * piece;
        assert_int_equal(heard_piece(&h, &s.work, NULL), UTTER_OK);
        const utter_word *words = heard_words(&h, NULL, &first, &n);
        assert_int_equal(first, piece / 2 * 4 + piece % 2 * 3);
        assert_int_equal(n, s.words.n_told);
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(words[i].start, 1000 * piece + 100 * (int)i);
        }
    }
    heard_fini(&h);
    set(&s, "a"); /* behind one word alone no other begins before it, either */
    add_words(&s);
    s.work.shift = 500;
    assert_int_equal(heard_piece(&h, &s.work, NULL), UTTER_OK);
    s.work.shift = 100;
    const utter_word *words = heard_words(&h, &s.work, &first, &n);
    assert_int_equal(n, 2);
    assert_int_equal(words[1].start, 500);
    heard_fini(&h);
}

/* A piece without words, without a stream, or of which nothing was heard, gives none. */
static void what_is_not_heard_has_no_words(void **state)
{
    struct scene s;
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        struct heard h = {.approximate = true};
        uint64_t first;
        size_t n;
        set(&s, "a b");
        add_words(&s);
        s.stream.words = kind == 0 ? NULL : s.stream.words;
        s.work.stream = kind == 1 ? NULL : s.work.stream;
        s.work.passed = kind == 2 ? 0 : 1;
        assert_int_equal(kind == 0 ? heard_piece(&h, &s.work, NULL) : UTTER_OK, UTTER_OK);
        heard_words(&h, kind == 3 ? NULL : &s.work, &first, &n);
        assert_int_equal(n, 0);
        assert_true(h.approximate && h.n == 0);
        heard_fini(&h);
    }
}

/* While a piece is spoken its words may wait for memory; when it has ended it fails. */
static void words_without_memory_are_told(void **state)
{
    struct scene s;
    struct heard h = {0};
    uint64_t first;
    size_t n;
    utter_error error = {0};
    (void)state;
    set(&s, "a b");
    add_words(&s);
    support_fail_malloc_at(1);
    heard_words(&h, &s.work, &first, &n);
    assert_true(support_failed());
    assert_int_equal(n, 0);
    support_fail_malloc_at(1);
    assert_int_equal(heard_piece(&h, &s.work, &error), UTTER_E_MEMORY);
    assert_non_null(strstr(error.text, "words"));
    support_fail_off();
    assert_int_equal(heard_piece(&h, &s.work, &error), UTTER_OK);
    heard_words(&h, NULL, &first, &n);
    assert_int_equal(n, 2);
    heard_fini(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(words_stand_in_the_source),
        cmocka_unit_test(a_word_behind_white_space_that_went_has_its_place),
        cmocka_unit_test(words_of_markup_stand_where_they_come_from),
        cmocka_unit_test(words_are_heard_in_their_order),
        cmocka_unit_test(words_are_given_until_they_are_final),
        cmocka_unit_test(ended_words_are_in_front), cmocka_unit_test(words_that_were_given_make_room),
        cmocka_unit_test(what_is_not_heard_has_no_words),
        cmocka_unit_test(words_without_memory_are_told)};
    return cmocka_run_group_tests_name("words that are heard", tests, NULL, NULL);
}
