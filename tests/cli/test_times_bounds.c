/* SPDX-License-Identifier: Apache-2.0
 * Times of words where a text is odd: white space, broken characters and marks at the edges of lines, words that the
 * text has lost, and memory that is lacking. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/speak/times_file.h"
#include "tests/cli/heard.h"

enum { RATE = 1000, MOST_WORDS = 64 };

/* ---- The reading ---- */

static utter_word words[MOST_WORDS];
static size_t n_words;

const utter_word *__wrap_utter_reading_words(utter_reading *reading, uint64_t *first, size_t *n);

const utter_word *__wrap_utter_reading_words(utter_reading *reading, uint64_t *first, size_t *n)
{
    (void)reading;
    *first = 0;
    *n = n_words;
    return words;
}

/* What stands between white space is a word, one each 200 ms. */
static void cut(const char *text)
{
    n_words = 0;
    for (const char *at = text + strspn(text, " \t\r\n"); *at; at += strspn(at, " \t\r\n")) {
        size_t bytes = strcspn(at, " \t\r\n");
        words[n_words] = (utter_word){.at = (uint64_t)(at - text),
            .bytes = bytes,
            .start = 200 * n_words,
            .end = 200 * n_words + 150};
        n_words++;
        at += bytes;
    }
}

static void assert_srt(const char *text, const char *wanted)
{
    struct times_file t = {0};
    cut(text);
    assert_int_equal(times_file_open(&t, support_path("a.srt"), RATE, 1), 0);
    times_file_text(&t, 0, strlen(text), text, strlen(text));
    times_file_note(&t, NULL, 1e9);
    assert_int_equal(times_file_finish(&t, false), 0);
    times_file_abort(&t);
    support_assert_content(support_path("a.srt"), wanted);
}

/* ---- Columns ---- */

#define THREE "aaaaaaaaa bbbbbbbbb ccccccccc " /* 30 columns */
#define ONE_CUE "1\n00:00:00,000 --> 00:00:00,950\n"

/* A line has 42 columns, each mark of white space one. */
static void white_space_takes_a_column(void **state)
{
    (void)state;
    assert_srt(THREE "dddddd eeeee", ONE_CUE THREE "dddddd eeeee\n\n");
    assert_srt("aaaaaaaaa\nbbbbbbbbb\tccccccccc\rdddddd\neeeee", ONE_CUE THREE "dddddd eeeee\n\n");
    assert_srt(THREE "dddddd eeeeee", ONE_CUE "aaaaaaaaa bbbbbbbbb\nccccccccc dddddd eeeeee\n\n");
    assert_srt("aaaaaaaaa\nbbbbbbbbb\tccccccccc\rdddddd\neeeeee",
        ONE_CUE "aaaaaaaaa bbbbbbbbb\nccccccccc dddddd eeeeee\n\n");
    /* What is no character takes one a byte; accents that stand behind their letter take none. */
    assert_srt(THREE "dddddd eee\xff\xfe", ONE_CUE THREE "dddddd eee\xff\xfe\n\n");
    assert_srt(THREE "dddddd eee\xff\xfe\xfd",
        ONE_CUE "aaaaaaaaa bbbbbbbbb\nccccccccc dddddd eee\xff\xfe\xfd\n\n");
    assert_srt(THREE "dddddd eeeee\u0301\u0301", ONE_CUE THREE "dddddd eeeee\u0301\u0301\n\n");
    /* White space at the ends is no part of a line. */
    assert_srt(" \t" THREE "dddddd eeeee \r\n\t ", ONE_CUE THREE "dddddd eeeee\n\n");
}

/* ---- Marks ---- */

static void a_sentence_ends_behind_its_marks(void **state)
{
    (void)state;
    static const char *const ends[] = {
        ".", "!", "?", ".\"", ".')", "?) \"", "\u3002", "\uff01", "\uff1f", "\uff1f\u300d"};
    static const char *const others[] = {",", ";", ":", "-", "", "\"", "\u3001", "\u2026", "\u201d"};
    char text[64], wanted[256];
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct times_file t = {0};
        snprintf(text, sizeof text, "one%s two", ends[i]);
        n_words = 2;
        words[0] = (utter_word){.at = 0, .bytes = 3, .start = 0, .end = 1000};
        words[1] = (utter_word){.at = strlen(text) - 3, .bytes = 3, .start = 1000, .end = 2000};
        assert_int_equal(times_file_open(&t, support_path("a.srt"), RATE, 1), 0);
        times_file_text(&t, 0, strlen(text), text, strlen(text));
        times_file_note(&t, NULL, 1e9);
        assert_int_equal(times_file_finish(&t, false), 0);
        times_file_abort(&t);
        snprintf(wanted, sizeof wanted,
            "1\n00:00:00,000 --> 00:00:01,000\none%s\n\n2\n00:00:01,000 --> 00:00:02,000\ntwo\n\n",
            ends[i]);
        support_assert_content(support_path("a.srt"), wanted);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct times_file t = {0};
        snprintf(text, sizeof text, "one%s two", others[i]);
        n_words = 2;
        words[0] = (utter_word){.at = 0, .bytes = 3, .start = 0, .end = 1000};
        words[1] = (utter_word){.at = strlen(text) - 3, .bytes = 3, .start = 1000, .end = 2000};
        assert_int_equal(times_file_open(&t, support_path("a.srt"), RATE, 1), 0);
        times_file_text(&t, 0, strlen(text), text, strlen(text));
        times_file_note(&t, NULL, 1e9);
        assert_int_equal(times_file_finish(&t, false), 0);
        times_file_abort(&t);
        snprintf(wanted, sizeof wanted, "1\n00:00:00,000 --> 00:00:02,000\none%s two\n\n", others[i]);
        support_assert_content(support_path("a.srt"), wanted);
    }
}

/* Each sign of three bytes is a word of 100 ms, but for the mark behind the twelfth; what is made of it as one cue. */
static void assert_broken(const char *mark, int n_first, const char *wanted_first)
{
    struct times_file t = {0};
    char text[128] = "", wanted[256];
    n_words = 26;
    for (size_t i = 0; i < n_words; i++) {
        words[i] = (utter_word){.at = strlen(text), .bytes = 3, .start = 100 * i, .end = 100 * i + 90};
        strcat(text, "\u5929");
        strcat(text, i == 11 ? mark : "");
    }
    assert_int_equal(times_file_open(&t, support_path("a.srt"), RATE, 1), 0);
    times_file_text(&t, 0, strlen(text), text, strlen(text));
    times_file_note(&t, NULL, 1e9);
    assert_int_equal(times_file_finish(&t, false), 0);
    times_file_abort(&t);
    snprintf(wanted, sizeof wanted, "1\n00:00:00,000 --> 00:00:02,590\n%s\n", wanted_first);
    for (int i = n_first; i < 26; i++) {
        strcat(wanted, "\u5929");
    }
    support_assert_content(support_path("a.srt"), strcat(wanted, "\n\n"));
}

#define SIX "\u5929\u5929\u5929\u5929\u5929\u5929"

static void a_line_ends_behind_a_mark_of_east_asia(void **state)
{
    (void)state;
    assert_broken("\u3001", 12, SIX SIX "\u3001");
    assert_broken("\uff1b", 12, SIX SIX "\uff1b");
    assert_broken("\uff09", 12, SIX SIX "\uff09");
    /* Dots of other scripts are no place for it. */
    assert_broken("\u2026", 13, SIX SIX "\u2026\u5929");
}

/* What fits into no line stands alone in one. */
static void a_word_may_be_longer_than_a_line(void **state)
{
    (void)state;
    char text[512], wanted[1024], longest[101];
    memset(longest, 'w', 100);
    longest[100] = 0;
    snprintf(text, sizeof text, "aa %s bb", longest);
    snprintf(wanted, sizeof wanted,
        "1\n00:00:00,000 --> 00:00:00,160\naa\n\n2\n00:00:00,200 --> 00:00:00,360\n%s\n\n"
        "3\n00:00:00,400 --> 00:00:01,300\nbb\n\n",
        longest);
    assert_srt(text, wanted);
    longest[43] = 0; /* of two lines, one is its own */
    snprintf(text, sizeof text, "aa %s bb", longest);
    snprintf(wanted, sizeof wanted,
        "1\n00:00:00,000 --> 00:00:00,160\naa\n\n2\n00:00:00,200 --> 00:00:00,360\n%s\n\n"
        "3\n00:00:00,400 --> 00:00:01,300\nbb\n\n",
        longest);
    assert_srt(text, wanted);
    longest[42] = 0;
    snprintf(text, sizeof text, "aa %s bb", longest);
    snprintf(wanted, sizeof wanted,
        "1\n00:00:00,000 --> 00:00:00,360\naa\n%s\n\n2\n00:00:00,400 --> 00:00:01,300\nbb\n\n",
        longest);
    assert_srt(text, wanted);
}

static void an_hour_is_one(void **state)
{
    (void)state;
    struct times_file t = {0};
    size_t n;
    n_words = 2;
    words[0] = (utter_word){.at = 0, .bytes = 3, .start = 0, .end = 1000};
    words[1] = (utter_word){.at = 5, .bytes = 3, .start = 3600000, .end = 3601000};
    assert_int_equal(times_file_open(&t, support_path("a.ass"), RATE, 1), 0);
    times_file_text(&t, 0, 9, "One. Two.", 9);
    times_file_note(&t, NULL, 1e9);
    assert_int_equal(times_file_finish(&t, false), 0);
    times_file_abort(&t);
    char *made = support_read_file(support_path("a.ass"), &n);
    assert_non_null(strstr(made, "\nDialogue: 0,1:00:00.00,1:00:01.00,Default,,0,0,0,,{\\k100}Two.\n"));
    free(made);
}

/* What is cut keeps the marks that close its last word, and nothing behind them. */
static void a_cut_text_ends_with_its_marks(void **state)
{
    (void)state;
    static const struct {
        const char *text, *shown;
    } rows[] = {{"one.\" two", "one.\""}, {"one\u300d\u3002 two", "one\u300d\u3002"},
        {"one two", "one"}, {"one!)two", "one!)"}, {"one!two", "one!"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct times_file t = {0};
        char wanted[128];
        n_words = 2;
        words[0] = (utter_word){.at = 0, .bytes = 3, .start = 0, .end = 1000};
        words[1] = (utter_word){.at = strlen(rows[i].text) - 3, .bytes = 3, .start = 1000, .end = 2000};
        assert_int_equal(times_file_open(&t, support_path("a.srt"), RATE, 1), 0);
        times_file_text(&t, 0, strlen(rows[i].text), rows[i].text, strlen(rows[i].text));
        times_file_note(&t, NULL, 0.5);
        times_file_cut(&t, 0.5);
        assert_int_equal(times_file_finish(&t, false), 0);
        times_file_abort(&t);
        snprintf(wanted, sizeof wanted, "1\n00:00:00,000 --> 00:00:01,000\n%s\n\n", rows[i].shown);
        support_assert_content(support_path("a.srt"), wanted);
    }
}

/* ---- Memory ---- */

static void memory_that_is_lacking_is_told_in_the_end(void **state)
{
    (void)state;
    static const char text[] = "one two three";
    for (int i = 0; i < 2; i++) {
        struct times_file t = {0};
        cut(text);
        assert_int_equal(times_file_open(&t, support_path("lacking.json"), RATE, 1), 0);
        if (i == 0) {
            support_fail_malloc_at(1);
        }
        times_file_text(&t, 0, sizeof text - 1, text, sizeof text - 1);
        if (i == 1) {
            support_fail_malloc_at(1);
        }
        times_file_note(&t, NULL, 1e9);
        assert_true(support_failed());
        support_fail_off();
        assert_true(t.no_memory);
        times_file_note(&t, NULL, 1e9); /* nor is anything written later */
        assert_int_equal(t.n_items, 0);
        heard_begin();
        int code = times_file_finish(&t, false);
        heard_assert("utter: out of memory");
        assert_int_equal(code, 2);
        times_file_abort(&t);
        assert_int_not_equal(access(support_path("lacking.json"), F_OK), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(white_space_takes_a_column),
        cmocka_unit_test(a_sentence_ends_behind_its_marks),
        cmocka_unit_test(a_line_ends_behind_a_mark_of_east_asia),
        cmocka_unit_test(a_word_may_be_longer_than_a_line),
        cmocka_unit_test(an_hour_is_one),
        cmocka_unit_test(a_cut_text_ends_with_its_marks),
        cmocka_unit_test(memory_that_is_lacking_is_told_in_the_end),
    };
    return cmocka_run_group_tests_name("times_bounds", tests, NULL, NULL);
}
