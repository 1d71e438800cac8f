/* SPDX-License-Identifier: Apache-2.0
 * Words on their way to a client, at their bounds: what counts as new, what a list takes and forgets, how words are
 * written, and what of them is due and was heard at the very time at which it begins. */
#include "tests/support.h"

#include <string.h>

#include "server/speech/words.h"
#include "server/worker/told.h"

/* ---- What the worker tells ---- */

/* How many words a worker tells, and from which on, which it has now; -1: nothing. */
static int tell(struct told *told, const utter_word *words, uint64_t first, size_t n, uint64_t *from)
{
    struct wire_out out = {0};
    struct wire_message m;
    struct wire_words got = {.n = 0};
    size_t used;
    told_put(told, 3, words, first, n, false, &out);
    const bool is_told = out.n > 0;
    if (is_told) {
        assert_int_equal(wire_read(&m, out.bytes, out.n, &used), WIRE_MESSAGE);
        assert_true(used == out.n && m.id == 3 && wire_get_words(&got, &m));
    }
    wire_fini(&out);
    *from = got.first;
    return is_told ? (int)got.n : -1;
}

static void each_change_of_a_word_is_told(void **state)
{
    const utter_word words[] = {{.at = 0, .bytes = 3, .start = 10, .end = 20, .certainty = 0.5F},
        {.at = 4, .bytes = 2, .start = 30, .end = 40, .certainty = 0.5F},
        {.at = 7, .bytes = 2, .start = 50, .end = 60, .certainty = 0.5F}};
    uint64_t from;
    (void)state;
    for (int i = 0; i < 7; i++) {
        struct told told = {0};
        utter_word other[3];
        memcpy(other, words, sizeof words);
        assert_int_equal(tell(&told, words, 5, 3, &from), 3);
        assert_int_equal(from, 5);
        other[1].at += i == 0;
        other[1].bytes += i == 1;
        other[1].start += i == 2;
        other[1].end += i == 3;
        other[1].final = i == 4;
        other[1].skipped = i == 5;
        other[1].certainty += i == 6 ? 0.25F : 0; /* of itself it is no news */
        assert_int_equal(tell(&told, other, 5, 3, &from), i < 6 ? 2 : -1);
        assert_int_equal(from, i < 6 ? 6 : 0);
        assert_int_equal(tell(&told, other, 5, 3, &from), -1);
        told_fini(&told);
        assert_true(!told.at && told.n == 0);
    }
}

/* Words before those that were told, and such as follow them. */
static void words_are_compared_by_their_number(void **state)
{
    static utter_word words[100];
    struct told told = {0};
    uint64_t from;
    (void)state;
    for (size_t i = 0; i < 100; i++) {
        words[i] = (utter_word){.at = i, .bytes = 1, .start = i, .end = i + 1, .final = true};
    }
    assert_int_equal(tell(&told, words + 10, 10, 2, &from), 2);
    assert_int_equal(tell(&told, words + 10, 10, 5, &from), 3);
    assert_int_equal(from, 12);
    assert_int_equal(tell(&told, words + 14, 14, 86, &from), 85); /* those before it come no more */
    assert_int_equal(from, 15);
    assert_int_equal(tell(&told, words + 12, 12, 88, &from), 88); /* they do all the same */
    assert_int_equal(from, 12);
    assert_int_equal(tell(&told, words + 100, 100, 0, &from), -1); /* all have ended */
    assert_int_equal(tell(&told, words + 50, 50, 2, &from), 2);
    assert_int_equal(tell(&told, words + 50, 50, 1, &from), 0); /* one has gone */
    assert_int_equal(from, 51);
    told_fini(&told);
}

/* ---- The list ---- */

static void take(struct word_list *l, uint64_t first, const struct speech_word *at, size_t n)
{
    const struct speech_words words = {first, at, n, false};
    word_list_take(l, &words);
}

/* A letter a word, each of a second. */
static void make(struct speech_word *words, size_t n, bool final)
{
    for (size_t i = 0; i < n; i++) {
        words[i] =
            (struct speech_word){2 * i, 1, 1.0 * (double)i, 1.0 * (double)i + 0.5, 0.5F, final, false};
    }
}

static void a_list_has_no_gaps(void **state)
{
    struct speech_word words[40];
    struct word_list l = {0};
    (void)state;
    make(words, 40, true);
    take(&l, 1, words, 1); /* there is none before it */
    assert_true(l.n == 0 && l.room == 0);
    take(&l, 0, words, 2);
    assert_true(l.n == 2 && l.room >= 2);
    take(&l, 2, words + 2, 2); /* just behind the others */
    assert_int_equal(l.n, 4);
    take(&l, 5, words, 1);
    assert_int_equal(l.n, 4);
    take(&l, 1, words + 1, 1); /* those behind it are no more */
    assert_int_equal(l.n, 2);
    take(&l, 0, words, 40);
    assert_true(l.n == 40 && l.at[39].at == 78 && l.room >= 40);
    assert_int_equal(word_list_size(&l), l.room * sizeof *l.at);
    assert_int_equal(word_list_needs(&l), word_list_size(&l) + 40 * 160);
    word_list_forget(&l, 3);
    assert_true(l.first == 3 && l.n == 37 && l.at[0].at == 6);
    word_list_forget(&l, 3); /* it is the first, so there is nothing before it */
    word_list_forget(&l, 2);
    assert_true(l.first == 3 && l.n == 37);
    take(&l, 0, words, 3); /* as many as are forgotten, and nothing behind them */
    assert_true(l.first == 3 && l.n == 0);
    take(&l, 1, words + 1, 4);
    assert_true(l.first == 3 && l.n == 2 && l.at[0].at == 6 && l.at[1].at == 8);
    word_list_forget(&l, 100); /* no more than there are */
    assert_true(l.first == 5 && l.n == 0);
    take(&l, 5, words + 5, 1);
    assert_true(l.n == 1 && l.at[0].at == 10);
    /* The next speech: its words stand behind those of the one before, in the text and in the sound. */
    word_list_next(&l, 50, 7.5);
    word_list_next(&l, 3, 0.5); /* one without a word */
    take(&l, 0, words, 2);
    assert_true(l.n == 3 && l.at[1].at == 53 && l.at[1].start_s == 8 && l.at[1].end_s == 8.5);
    assert_true(l.at[2].at == 55 && l.at[2].start_s == 9);
    take(&l, 1, words, 1);
    assert_true(l.n == 3 && l.at[2].at == 53);
    l.failed = true; /* memory has ended: nothing is taken any more */
    take(&l, 2, words, 1);
    assert_int_equal(l.n, 3);
    word_list_fini(&l);
    assert_true(!l.at && l.n == 0 && l.first == 0);
}

static void expect_json(json_t *got, const char *want)
{
    json_t *right = json_loads(want, 0, NULL);
    if (!right || !json_equal(got, right)) {
        fail_msg("%s instead of %s", json_dumps(got, JSON_COMPACT), want);
    }
    json_decref(right);
    json_decref(got);
}

static void words_are_written_rounded_or_exactly(void **state)
{
    static const char text[] = "ab cd";
    const struct speech_word words[] = {{0, 2, 0.12345, 0.98764, 0.8125F, true, false},
        {3, 9, 2.5, 3.5, 0.5F, false, true}, {9, 1, 4, 5, 1, true, true}};
    (void)state;
    for (int exact = 0; exact < 2; exact++) {
        struct word_list l = {.exact = exact};
        struct wire_out out = {0};
        take(&l, 0, words, 3);
        static const char *const first[] = {
            "{\"index\":0,\"word\":\"ab\",\"start\":0.1235,\"end\":0.9876,\"at\":0,\"bytes\":2,"
            "\"certainty\":0.813,\"final\":true,\"skipped\":false}",
            "{\"index\":0,\"word\":\"ab\",\"start\":0.12345,\"end\":0.98764,\"at\":0,\"bytes\":2,"
            "\"certainty\":0.8125,\"final\":true,\"skipped\":false}"};
        static const char *const second =
            "{\"index\":1,\"word\":\"cd\",\"start\":2.5,\"end\":3.5,\"at\":3,\"bytes\":2,"
            "\"certainty\":0.5,\"final\":false,\"skipped\":true}";
        static const char *const third =
            "{\"index\":2,\"word\":\"\",\"start\":4.0,\"end\":5.0,\"at\":5,\"bytes\":0,"
            "\"certainty\":1.0,\"final\":true,\"skipped\":true}";
        char want[800];
        /* All that are final, as text. */
        word_list_write(&l, text, 5, &out);
        wire_put(&out, "", 1);
        snprintf(want, sizeof want, "[%s,%s]", first[exact], third);
        assert_false(out.failed);
        assert_string_equal((const char *)out.bytes, want);
        wire_fini(&out);
        snprintf(want, sizeof want, "[%s,%s,%s]", first[exact], second, third);
        expect_json(word_list_news(&l, text, 5), want);
        assert_true(l.n_told == 3 && l.n_final == 3 && !l.failed);
        assert_null(word_list_news(&l, text, 5));
        word_list_fini(&l);
        word_list_write(&l, text, 5, &out);
        assert_true(out.n == 2 && memcmp(out.bytes, "[]", 2) == 0);
        wire_fini(&out);
    }
}

/* ---- What is due, and what was heard ---- */

static void a_word_is_due_before_it_begins(void **state)
{
    struct speech_word words[4];
    struct word_list l = {0};
    (void)state;
    make(words, 4, false);
    words[0].final = true;
    take(&l, 0, words, 4);
    assert_int_equal(word_list_due(&l, -1), 1); /* what is final at once */
    assert_int_equal(word_list_due(&l, 1), 1);
    assert_int_equal(word_list_due(&l, 1.125), 2);
    assert_int_equal(word_list_due(&l, 2.125), 3);
    assert_int_equal(word_list_due(&l, 9), 3);
    l.n_told = 2;
    assert_int_equal(word_list_due(&l, 1), 0);
    assert_int_equal(word_list_due(&l, 9), 1);
    l.n_told = 4;
    assert_int_equal(word_list_due(&l, 9), 0);
    l.n_told = 1;
    word_list_forget(&l, 2); /* also those that nobody was told of */
    assert_int_equal(word_list_due(&l, 2.125), 1);
    words[3].final = true;
    take(&l, 0, words, 4);
    assert_int_equal(word_list_due(&l, 0), 0); /* those before it come first */
    assert_int_equal(word_list_due(&l, 9), 2);
    word_list_fini(&l);
}

static void what_has_begun_was_heard(void **state)
{
    static const char text[] = "ab cd, efgh  i";
    const struct speech_word words[] = {{0, 2, 0.5, 0.75, 1, true, false},
        {3, 2, 1, 1.5, 1, true, false}, {7, 2, 2, 2.5, 1, true, true}, {9, 2, 3, 3.5, 1, true, false},
        {13, 1, 4, 5, 1, true, false}};
    struct word_list l = {0};
    (void)state;
    take(&l, 0, words, 5);
    assert_int_equal(word_list_heard(&l, text, 14, 0.5), 0);
    assert_int_equal(word_list_heard(&l, text, 14, 0.625), 2);
    assert_int_equal(word_list_heard(&l, text, 14, 1), 2);
    assert_int_equal(word_list_heard(&l, text, 14, 1.125), 6); /* with the mark behind it */
    assert_int_equal(word_list_heard(&l, text, 14, 2.5), 6);   /* what nothing says was not */
    assert_int_equal(word_list_heard(&l, text, 14, 3.125), 11);
    assert_int_equal(word_list_heard(&l, text, 14, 9), 14);
    assert_int_equal(word_list_heard(&l, text, 13, 9), 11); /* of a text that is shorter */
    assert_int_equal(word_list_heard(&l, text, 11, 9), 11);
    assert_int_equal(word_list_heard(&l, text, 10, 9), 6);
    assert_int_equal(word_list_heard(&l, text, 5, 9), 5);
    assert_int_equal(word_list_heard(&l, "\0b", 2, 9), 2); /* a zero is no white space */
    word_list_fini(&l);
    /* Up to the next word, though it was told before the one that is heard. */
    const struct speech_word turned[] = {{6, 2, 5, 6, 1, true, false}, {0, 2, 0.5, 1, 1, true, false}};
    take(&l, 0, turned, 2);
    assert_int_equal(word_list_heard(&l, "ab----cd", 8, 1), 6);
    word_list_fini(&l);
}

/* Of a text whose words have no times each letter has its share. */
static void shares_of_a_text_are_heard(void **state)
{
    static const char text[] = " ab\tcd\n\v\f\ref";
    (void)state;
    assert_int_equal(words_share(text, 12, 1, 12), 0); /* "ab" begins behind a letter */
    assert_int_equal(words_share(text, 12, 1.125, 12), 3);
    assert_int_equal(words_share(text, 12, 4, 12), 3);
    assert_int_equal(words_share(text, 12, 4.125, 12), 6);
    assert_int_equal(words_share(text, 12, 10, 12), 6);
    assert_int_equal(words_share(text, 12, 10.125, 12), 12);
    assert_int_equal(words_share(text, 12, 20.25, 24), 12);
    assert_int_equal(words_share(text, 5, 5, 5), 5);
    assert_int_equal(words_share(text, 1, 5, 5), 0);
    assert_int_equal(words_share(text, 0, 5, 5), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_change_of_a_word_is_told),
        cmocka_unit_test(words_are_compared_by_their_number),
        cmocka_unit_test(a_list_has_no_gaps),
        cmocka_unit_test(words_are_written_rounded_or_exactly),
        cmocka_unit_test(a_word_is_due_before_it_begins),
        cmocka_unit_test(what_has_begun_was_heard),
        cmocka_unit_test(shares_of_a_text_are_heard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
