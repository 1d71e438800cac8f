/* SPDX-License-Identifier: Apache-2.0
 * What comes out of the process without rights may be a lie, byte for byte: a book is taken whole and within its
 * bounds, or a sentence says that it is none. The process is posed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "book/book.h"
#include "book/parser/jail.h"
#include "tests/support.h"

static char answer[4096];
static size_t n_answer;

utter_status __wrap_jail_run(
    const struct jail_work *work, int in, char **given, size_t *bytes, utter_error *error);

utter_status __wrap_jail_run(
    const struct jail_work *work, int in, char **given, size_t *bytes, utter_error *error)
{
    assert_non_null(work->name);
    assert_true(in >= 0);
    *given = memory_string_n(answer, n_answer);
    *bytes = n_answer;
    return *given ? UTTER_OK : error_memory(error, "an answer");
}

static void put(const void *bytes, size_t n)
{
    memcpy(answer + n_answer, bytes, n);
    n_answer += n;
}

static void put_string(const char *text, size_t n)
{
    uint64_t bytes = n;
    put(&bytes, sizeof bytes);
    put(text, n);
}

static void put_text(const char *text)
{
    put_string(text, strlen(text));
}

static void put_number(uint64_t number)
{
    put(&number, sizeof number);
}

/* What is told of a chapter that is as it should be, and of each that is not in one thing. */
struct told {
    const char *text;
    uint64_t level;
    double begin_s, end_s;
};

static const struct told good = {"Words.", 2, 1.5, 360000};

static void put_book(uint64_t n_chapters, struct told c, const char *cover, size_t cover_bytes)
{
    n_answer = 0;
    put_text("book");
    put_text("Title");
    put_text("Author");
    put_text("de");
    put_string(cover, cover_bytes);
    put_number(1);
    put_number(n_chapters);
    for (int i = 0; i < 2; i++) {
        put_text(i ? "" : "One");
        put_text(i ? c.text : "First.");
        put_text(i ? "page" : "");
        put_number(i ? c.level : 1);
        put(i ? &c.begin_s : &(double){0}, sizeof(double));
        put(i ? &c.end_s : &(double){0}, sizeof(double));
    }
}

static const char *path;

static void refused_with(const char *text)
{
    struct book book;
    utter_error error = {0};
    assert_int_equal(book_open(&book, path, &error), UTTER_E_FILE);
    assert_string_equal(error.text, text);
    assert_true(!book.chapters && book.n_chapters == 0 && !book.title && !book.cover && !book.timed);
}

static void broken(void)
{
    char text[5000];
    snprintf(text, sizeof text, "%s: cannot be read: its reader was broken", path);
    refused_with(text);
}

static int make_file(void **state)
{
    (void)state;
    path = support_path("a.txt");
    support_write_file(path, "x", 1);
    return 0;
}

static void what_is_told_is_taken(void **state)
{
    static const uint64_t levels[] = {0, 1, 9, 10, UINT64_MAX}, taken[] = {1, 1, 9, 1, 1};
    struct book book;
    (void)state;
    put_book(2, good, "\x89PN\0G", 5);
    assert_int_equal(book_open(&book, path, NULL), UTTER_OK);
    assert_string_equal(book.title, "Title");
    assert_string_equal(book.author, "Author");
    assert_string_equal(book.language, "de");
    assert_true(book.timed);
    assert_int_equal(book.cover_bytes, 5);
    assert_memory_equal(book.cover, "\x89PN\0G", 5);
    assert_int_equal(book.n_chapters, 2);
    assert_string_equal(book.chapters[0].title, "One");
    assert_string_equal(book.chapters[0].text, "First.");
    assert_string_equal(book.chapters[1].source, "page");
    assert_int_equal(book.chapters[1].level, 2);
    assert_true(book.chapters[1].begin_s == 1.5 && book.chapters[1].end_s == BOOK_MOST_S);
    book_close(&book);
    for (int i = 0; i < 5; i++) {
        struct told c = good;
        c.level = levels[i];
        put_book(2, c, "", 0);
        assert_int_equal(book_open(&book, path, NULL), UTTER_OK);
        assert_int_equal(book.chapters[1].level, taken[i]);
        assert_null(book.cover);
        book_close(&book);
    }
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        utter_status status = book_open(&book, path, NULL);
        assert_int_equal(status != UTTER_OK, support_failed());
        book_close(&book);
    }
}

/* Of a chapter in which nothing is, 48 bytes are told. */
static void chapters_may_be_empty(void **state)
{
    enum { N = 60 };
    static const char nothing[48];
    struct book book;
    (void)state;
    put_book(N, good, "", 0);
    n_answer -= 2 * 48 + strlen("OneFirst.Words.page");
    for (int i = 0; i < N; i++) {
        put(nothing, sizeof nothing);
    }
    assert_int_equal(book_open(&book, path, NULL), UTTER_OK);
    assert_int_equal(book.n_chapters, N);
    assert_string_equal(book.chapters[N - 1].text, "");
    assert_int_equal(book.chapters[N - 1].level, 1);
    book_close(&book);
}

static void half_an_answer_is_none(void **state)
{
    (void)state;
    put_book(2, good, "cover", 5);
    for (const size_t all = n_answer; n_answer > 0;) {
        n_answer--;
        assert_true(n_answer < all);
        broken();
    }
}

static void what_is_out_of_bounds_is_refused(void **state)
{
    static const struct told wrong[] = {{"Words.", 2, -1, 2}, {"Words.", 2, 2, 1},
        {"Words.", 2, 1, 360000.001}, {"Words.", 2, NAN, 2}, {"Words.", 2, 1, NAN},
        {"Words\xff", 2, 1, 2}};
    static const uint64_t counts[] = {0, 3, 1000, UINT64_MAX, (uint64_t)1 << 61};
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        put_book(2, wrong[i], "", 0);
        broken();
    }
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        put_book(counts[i], good, "", 0);
        broken();
    }
    n_answer = 0;
    put_text("book");
    put_number(UINT64_MAX); /* bytes of a title */
    broken();
    n_answer = 0;
    put_text("books");
    put_text("x");
    refused_with("x"); /* of what was no book something may be said */
}

static void what_is_wrong_is_said(void **state)
{
    char text[5000];
    (void)state;
    n_answer = 0;
    put_text("wrong");
    put_text("a.txt: it is \x1b[1m no text");
    refused_with("a.txt: it is \\x1b[1m no text");
    n_answer = 0;
    put_text("lacks");
    put_text("lib\nxml2");
    snprintf(text, sizeof text,
        "%s: a book of this kind needs lib\\nxml2, which is not here (apt-get install lib\\nxml2)",
        path);
    refused_with(text);
    n_answer = 0;
    put_text("lacks");
    broken();
    n_answer = 0;
    put_text("wrong");
    broken();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_told_is_taken),
        cmocka_unit_test(chapters_may_be_empty),
        cmocka_unit_test(half_an_answer_is_none),
        cmocka_unit_test(what_is_out_of_bounds_is_refused),
        cmocka_unit_test(what_is_wrong_is_said),
    };
    return cmocka_run_group_tests_name("answers of a reader", tests, make_file, NULL);
}
