/* SPDX-License-Identifier: Apache-2.0
 * Merging one word: by windows as all at once, and as the definition says it.
 * test_bpe [WORDS [SEED]] compares so many words of random tables of merges. */
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "text/bpe.h"

enum { OWN_WINDOW = 0, N_SLOTS = 2048, N_LETTERS = 4, LONGEST = 10000 };

static long n_words = SUPPORT_SANITIZED ? 3000 : 30000;
static uint32_t random_state = 1;

/* The tables that tests make: the id of a byte is the byte, those of merges follow. */
static struct bpe_merge slots[N_SLOTS];
static struct bpe made;

static void table_clear(size_t n_slots)
{
    made = (struct bpe){.slot = slots, .slot_mask = n_slots - 1};
    for (int32_t i = 0; i < 256; i++) {
        made.byte_id[i] = i;
    }
    for (size_t i = 0; i < n_slots; i++) {
        slots[i].id = -1;
    }
}

static void table_add(int32_t left, int32_t right, int32_t id)
{
    *bpe_find(&made, left, right) = (struct bpe_merge){bpe_pair(left, right), id, (uint32_t)id};
}

static uint32_t below(uint32_t n)
{
    random_state = random_state * 1664525 + 1013904223;
    return (random_state >> 8) % n;
}

/* A list in which an id stands already. */
static struct ids list_begun(void)
{
    struct ids ids = {0};
    assert_int_equal(ids_add(&ids, 77, 7777, NULL), UTTER_OK);
    return ids;
}

static void merge_by_windows(const struct bpe *bpe, struct bpe_scratch *scratch, size_t window,
    const char *word, size_t n, struct ids *ids)
{
    utter_status status = window == OWN_WINDOW
                              ? bpe_encode(bpe, scratch, word, n, ids, NULL)
                              : bpe_encode_by(bpe, scratch, window, word, n, ids, NULL);
    assert_int_equal(status, UTTER_OK);
}

/* Again and again the lowest rank, leftmost first. */
static void merge_by_definition(const struct bpe *bpe, const char *word, size_t n, struct ids *ids)
{
    const size_t first = ids->n;
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(ids_add(ids, bpe->byte_id[(uint8_t)word[i]], i, NULL), UTTER_OK);
    }
    for (;;) {
        const struct bpe_merge *best = NULL;
        size_t at = 0;
        for (size_t i = first; i + 1 < ids->n; i++) {
            const struct bpe_merge *merge = bpe_find(bpe, ids->at[i], ids->at[i + 1]);
            if (merge->id >= 0 && (!best || merge->rank < best->rank)) {
                best = merge;
                at = i;
            }
        }
        if (!best) {
            return;
        }
        const size_t n_behind = ids->n - at - 2;
        ids->at[at] = best->id;
        memmove(ids->at + at + 1, ids->at + at + 2, n_behind * sizeof *ids->at);
        memmove(ids->begin + at + 1, ids->begin + at + 2, n_behind * sizeof *ids->begin);
        ids->n--;
    }
}

static bool are_same(const struct ids *a, const struct ids *b)
{
    return a->n == b->n && memcmp(a->at, b->at, a->n * sizeof *a->at) == 0 &&
           memcmp(a->begin, b->begin, a->n * sizeof *a->begin) == 0;
}

/* Whether windows of this size give what one for the whole word gives and, of a short word, the definition. */
static bool windows_agree(
    const struct bpe *bpe, struct bpe_scratch *scratch, size_t window, const char *word, size_t n)
{
    enum { SHORT = 300 };
    struct ids ids = list_begun(), whole = list_begun(), defined = list_begun();
    merge_by_windows(bpe, scratch, window, word, n, &ids);
    merge_by_windows(bpe, scratch, n, word, n, &whole);
    bool same = are_same(&ids, &whole);
    if (n <= SHORT) {
        merge_by_definition(bpe, word, n, &defined);
        same = same && are_same(&ids, &defined);
    }
    ids_fini(&ids);
    ids_fini(&whole);
    ids_fini(&defined);
    return same;
}

static void words_of_a_vocabulary(void **state)
{
    static const char letters[] = "etaoinshr dlu\n";
    (void)state;
    struct vocabulary vocabulary;
    struct bpe bpe;
    struct bpe_scratch scratch = {0};
    assert_int_equal(
        vocabulary_open(&vocabulary, "tests/fixtures/vocabulary/vocab.json", file_read, NULL),
        UTTER_OK);
    assert_int_equal(
        bpe_open(&bpe, &vocabulary, "tests/fixtures/vocabulary/merges.txt", file_read, NULL), UTTER_OK);
    for (int round = 0; round < 3000; round++) {
        static char word[LONGEST];
        const size_t n = 1 + below(round % 300 == 0 ? LONGEST : round % 30 == 0 ? 299 : 20);
        const uint32_t n_kinds = 1 + below(14);
        for (size_t i = 0; i < n; i++) {
            word[i] = letters[below(n_kinds)];
        }
        assert_true(windows_agree(&bpe, &scratch, OWN_WINDOW, word, n));
    }
    bpe_scratch_fini(&scratch);
    bpe_close(&bpe);
    vocabulary_close(&vocabulary);
}

/* Up to 40 merges of four letters and of what they become; half of the tables have ranks in any order, so that a merge
 * may come before those that make its parts. */
static void make_random_table(void)
{
    enum { SLOTS = 128 };
    table_clear(SLOTS);
    const int32_t n_merges = 1 + (int32_t)below(40), n_letters = 1 + (int32_t)below(N_LETTERS);
    const bool in_order = below(2) == 0;
    for (int32_t i = 0; i < n_merges; i++) {
        int32_t part[2];
        for (int side = 0; side < 2; side++) {
            int32_t of = below(2) == 0 ? 0 : i;
            int32_t chosen = (int32_t)below((uint32_t)(n_letters + of));
            part[side] = chosen < n_letters ? 'a' + chosen : 256 + chosen - n_letters;
        }
        struct bpe_merge *merge = bpe_find(&made, part[0], part[1]);
        uint32_t rank = (in_order ? 0 : below(1 << 16) << 8) + (uint32_t)i;
        *merge = (struct bpe_merge){bpe_pair(part[0], part[1]), 256 + i, rank};
    }
}

/* Some letters, once or again and again, then others. */
static void make_random_word(char *word, size_t n)
{
    for (size_t at = 0; at < n;) {
        const size_t period = 1 + below(8), end = at + period * (1 + below(below(2) == 0 ? 1 : 40));
        for (size_t i = at; i < n && i < end; i++) {
            word[i] = i < at + period ? (char)('a' + below(N_LETTERS)) : word[i - period];
        }
        at = end;
    }
}

static void words_of_random_tables(void **state)
{
    (void)state;
    struct bpe_scratch scratch = {0};
    for (long i = 0; i < n_words; i++) {
        static char word[LONGEST];
        const uint32_t seed = random_state;
        make_random_table();
        const bool is_long = below(1000) == 0;
        const size_t window = is_long ? 2048 : 1 + below(40), n = 1 + below(is_long ? LONGEST : 200);
        make_random_word(word, n);
        if (!windows_agree(&made, &scratch, window, word, n)) {
            fail_msg("word %ld, of seed %lu: windows of %zu bytes", i, (unsigned long)seed, window);
        }
    }
    bpe_scratch_fini(&scratch);
}

/* Tokens of 2, 4, ... 512 "a", of 768, of "c" and these, and of "b" and that: a window that ends behind fewer "a" keeps
 * the "b" alone, though it stands far before the end. */
static void words_that_windows_cut_badly(void **state)
{
    enum { BYTES = 3000, N_DOUBLES = 9 };
    (void)state;
    table_clear(N_SLOTS);
    int32_t id = 256;
    for (int i = 0; i < N_DOUBLES; i++, id++) {
        table_add(i == 0 ? 'a' : id - 1, i == 0 ? 'a' : id - 1, id);
    }
    table_add(id - 1, id - 2, id);
    table_add('c', id, id + 1);
    table_add('b', id + 1, id + 2);
    static char word[BYTES];
    struct bpe_scratch scratch = {0};
    for (size_t at = 0; at < 2048; at += 128) {
        memset(word, '.', BYTES);
        memset(word + at + 2, 'a', 512 + 256);
        word[at] = 'b';
        word[at + 1] = 'c';
        assert_true(windows_agree(&made, &scratch, OWN_WINDOW, word, BYTES));
    }
    bpe_scratch_fini(&scratch);
}

/* Tokens of 2, 4, ... 4,096 "a": a window that is one token, and the next larger one, give nothing. */
static void tokens_as_long_as_windows(void **state)
{
    (void)state;
    table_clear(N_SLOTS);
    for (int32_t id = 256; id < 256 + 12; id++) {
        table_add(id == 256 ? 'a' : id - 1, id == 256 ? 'a' : id - 1, id);
    }
    static char word[LONGEST];
    struct bpe_scratch scratch = {0};
    memset(word, 'a', LONGEST);
    for (size_t n = 1; n < 300; n++) {
        assert_true(windows_agree(&made, &scratch, 16, word, n));
    }
    for (size_t n = LONGEST; n > 0; n /= 3) {
        assert_true(windows_agree(&made, &scratch, OWN_WINDOW, word, n));
    }
    bpe_scratch_fini(&scratch);
}

static double seconds_of(struct bpe_scratch *scratch, size_t window, const char *word, size_t n)
{
    struct ids ids = {0};
    clock_t began = clock();
    merge_by_windows(&made, scratch, window, word, n, &ids);
    double took = (double)(clock() - began) / CLOCKS_PER_SEC;
    ids_fini(&ids);
    return took;
}

/* "ab", "abc", and "abc" before "ab" and each token of these: of "abcabc..." cut behind an "ab", all but two "abc" are
 * one token. Windows of one size would each give three bytes, at 300 times the cost of the whole word at once. */
static void windows_that_give_little_grow(void **state)
{
    enum { BYTES = 30000, N_CHAINED = 680, MOST_TIMES = 30 };
    (void)state;
    table_clear(N_SLOTS);
    const int32_t ab = 256, abc = 257, chained = 258;
    table_add('a', 'b', ab);
    table_add(ab, 'c', abc);
    for (int32_t i = 0; i < N_CHAINED; i++) {
        table_add(abc, i == 0 ? ab : chained + i - 1, chained + i);
    }
    static char word[BYTES];
    for (size_t i = 0; i < BYTES; i++) {
        word[i] = "abc"[i % 3];
    }
    struct bpe_scratch scratch = {0};
    assert_true(windows_agree(&made, &scratch, OWN_WINDOW, word, BYTES));
    double whole = seconds_of(&scratch, BYTES, word, BYTES);
    double windows = seconds_of(&scratch, OWN_WINDOW, word, BYTES);
    if (windows > MOST_TIMES * whole) {
        fail_msg("%.4f s by windows, %.4f s at once", windows, whole);
    }
    bpe_scratch_fini(&scratch);
}

/* A word of many windows takes the memory of one: windows agree about the token that they share, and none grows. */
static void a_long_word_takes_the_memory_of_a_window(void **state)
{
    enum { WINDOW = 2048, MOST = 4096, BYTES = 9800 };
    static char word[BYTES];
    struct bpe_scratch scratch = {0};
    struct ids ids = {0};
    (void)state;
    table_clear(N_SLOTS);
    table_add('a', 'b', 256);
    table_add(256, 'c', 257);
    table_add(257, 257, 258);
    for (size_t i = 0; i < BYTES; i++) {
        word[i] = "abcabc."[i % 7];
    }
    merge_by_windows(&made, &scratch, OWN_WINDOW, word, BYTES, &ids);
    assert_int_equal(ids.n, BYTES / 7 * 2);
    for (size_t i = 0; i < ids.n; i++) {
        assert_int_equal(ids.begin[i], i / 2 * 7 + i % 2 * 6);
    }
    assert_true(scratch.capacity >= WINDOW && scratch.capacity < MOST);
    /* What there is room for is not asked for again. */
    const long asked = support_calls(SUPPORT_MALLOC);
    ids.n = 0;
    merge_by_windows(&made, &scratch, OWN_WINDOW, word, BYTES, &ids);
    assert_int_equal(support_calls(SUPPORT_MALLOC), asked);
    const size_t room = scratch.capacity;
    ids.n = 0;
    merge_by_windows(&made, &scratch, room, word, room, &ids);
    assert_int_equal(support_calls(SUPPORT_MALLOC), asked);
    merge_by_windows(&made, &scratch, room + 1, word, room + 1, &ids);
    assert_true(scratch.capacity > room);
    ids_fini(&ids);
    bpe_scratch_fini(&scratch);
    assert_int_equal(scratch.capacity, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        /* The first, so that `test_bpe 1 SEED` is the word that it told of. */
        cmocka_unit_test(words_of_random_tables),
        cmocka_unit_test(words_of_a_vocabulary),
        cmocka_unit_test(words_that_windows_cut_badly),
        cmocka_unit_test(tokens_as_long_as_windows),
        cmocka_unit_test(windows_that_give_little_grow),
        cmocka_unit_test(a_long_word_takes_the_memory_of_a_window),
    };
    n_words = argc > 1 ? atol(argv[1]) : n_words;
    random_state = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : random_state;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
