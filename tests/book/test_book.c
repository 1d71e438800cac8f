/* SPDX-License-Identifier: Apache-2.0
 * A file becomes a book, out of a process without rights: which kind it is, what is none, and that nothing is lost on
 * the way. */
#include "book/book.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "book/parser/library.h"
#include "tests/book/zip.h"
#include "tests/support.h"

static bool has_libraries;

static int look_for_libraries(void **state)
{
    struct library library;
    (void)state;
    has_libraries = !library_books(&library);
    return 0;
}

/* "TITLE;AUTHOR;LANGUAGE" and "|TITLE/LEVEL@SOURCE[BEGIN END]:TEXT" of each chapter; or what it is refused with,
 * without the path in front. */
static const char *read_back(const char *name, const void *content, size_t n)
{
    static char all[8192];
    const char *path = support_path(name);
    struct book book;
    utter_error error = {0};
    support_write_file(path, content, n);
    if (book_open(&book, path, &error)) {
        assert_int_equal(error.code, UTTER_E_FILE);
        assert_true(!book.chapters && book.n_chapters == 0 && !book.title);
        const size_t length = strlen(path);
        assert_memory_equal(error.text, path, length);
        snprintf(all, sizeof all, "%s", error.text + length);
        return all;
    }
    size_t at = (size_t)snprintf(all, sizeof all, "%s;%s;%s", book.title, book.author, book.language);
    for (size_t i = 0; i < book.n_chapters; i++) {
        const struct chapter *c = &book.chapters[i];
        at += (size_t)snprintf(all + at, sizeof all - at, "|%s/%d@%s[%g %g]:%s", c->title, c->level,
            c->source, c->begin_s, c->end_s, c->text);
    }
    assert_null(book.cover);
    book_close(&book);
    return all;
}

static void is(const char *name, const char *content, const char *wanted)
{
    assert_string_equal(read_back(name, content, strlen(content)), wanted);
}

/* By its ending, in any case, but for what its first bytes say; a text where neither is known. */
static void the_kind_of_a_file(void **state)
{
    static const char *const pages[] = {"a.html", "a.htm", "a.xhtml", "a.HTML"},
                             *const marked[] = {"a.md", "a.markdown"},
                             *const timed[] = {"a.srt", "a.vtt", "a.Srt"},
                             *const texts[] = {"a.txt", "a", "a.htmlx", "html"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        is(timed[i], "0:01 --> 0:02\n<b>x", ";;|1/1@[1 2]:x");
    }
    is("a.txt", "WEBVTT\n\n0:01 --> 0:02\n<b>x", ";;|1/1@[1 2]:x");
    is("a.txt", "WEBVTT", ": there is no text in it");
    is("a.txt", "WEBVT\n\nx", ";;|/1@[0 0]:WEBVT\n\nx");
    for (int i = 0; i < 4; i++) {
        is(texts[i], "<b>x", ";;|/1@[0 0]:<b>x");
    }
    if (!has_libraries) {
        skip();
    }
    for (int i = 0; i < 4; i++) {
        is(pages[i], "<html lang=de><title>T</title><meta name=author content=A><h1>x</h1><h2>y</h2>",
            "T;A;de|x/1@[0 0]:x|y/2@[0 0]:y");
    }
    for (int i = 0; i < 2; i++) {
        is(marked[i], "---\nauthor: A\n---\n# x\n*y*", "x;A;|x/1@[0 0]:x\n\ny");
    }
}

static void an_epub_is_known_by_its_bytes(void **state)
{
    static const char png[] = "\x89PNG\r\n\x1A\n\0more";
    static const struct packed files[] = {
        {"b.opf",
            "<p><title>T</title><manifest><item id='a' href='a.html'/><item id='p' href='p' "
            "properties='cover-image'/>"
            "</manifest><itemref idref='a'/></p>",
            0},
        {"a.html", "<h1>x</h1>", 0}, {"p", png, sizeof png}};
    const char *path = support_path("none.txt");
    size_t bytes;
    struct book book;
    (void)state;
    if (!has_libraries) {
        skip();
    }
    char *whole = zip_make(files, 3, &bytes);
    support_write_file(path, whole, bytes);
    assert_int_equal(book_open(&book, path, NULL), UTTER_OK);
    assert_string_equal(book.title, "T");
    assert_string_equal(book.chapters[0].source, "a.html");
    assert_int_equal(book.cover_bytes, sizeof png);
    assert_memory_equal(book.cover, png, sizeof png);
    assert_false(book.timed);
    book_close(&book);
    assert_true(!book.cover && !book.chapters);
    free(whole);
    assert_int_equal(strncmp(read_back("a.epub", "no zip", 6), ": it is not a whole epub", 24), 0);
    is("a.txt", "PK\3\4", ": it is not a whole epub");
    is("a.txt", "PK\3", ";;|/1@[0 0]:PK\3");
}

static void every_encoding_of_unicode(void **state)
{
    (void)state;
    assert_string_equal(read_back("a.txt", "\xFF\xFEh\0\xE9\0", 6), ";;|/1@[0 0]:h\xC3\xA9");
    assert_string_equal(read_back("a.txt", "\xFE\xFF\0h\0\xE9", 6), ";;|/1@[0 0]:h\xC3\xA9");
    assert_string_equal(read_back("a.txt", "\xFE\xFF\x4E\0", 4), ";;|/1@[0 0]:\xE4\xB8\x80");
    assert_string_equal(
        read_back("a.txt", "\xFF\xFE\x3D\xD8\0\xDEx\0", 8), ";;|/1@[0 0]:\xF0\x9F\x98\x80x");
    assert_string_equal(read_back("a.txt", "\xEF\xBB\xBFh", 4), ";;|/1@[0 0]:h");
    static char wide[4002] = "\xFF\xFE"; /* three bytes of each character in place of two */
    static char all[8000] = ";;|/1@[0 0]:";
    for (int i = 2; i < 4002; i += 2) {
        memcpy(wide + i, "\0\x4E", 2);
        strcat(all + i / 2 * 3 - 3, "\xE4\xB8\x80");
    }
    assert_string_equal(read_back("a.txt", wide, sizeof wide), all);
    if (has_libraries) {
        assert_string_equal(
            read_back("a.html", "\xFE\xFF\0<\0p\0>\0h\0\xE9", 12), ";;|/1@[0 0]:h\xC3\xA9");
        assert_string_equal(
            read_back("a.html", "<meta charset=latin1><p>\xE9", 25), ";;|/1@[0 0]:\xC3\xA9");
    }
    assert_string_equal(read_back("a.txt", "\xFF\xFE", 2), ": there is no text in it");
    assert_string_equal(read_back("a.txt", "\xFF\xFEh\0x", 5), ": it is not whole UTF-16");
    assert_string_equal(read_back("a.txt", "\xFF\xFE\0\xDE\0\xDE", 6), ": it is not whole UTF-16");
    assert_string_equal(read_back("a.txt", "ab\xE9", 3),
        ": it is not UTF-8 at byte 2 (iconv -f ENCODING -t UTF-8 makes it so)");
}

/* Tables of encodings are files, which are out of reach where a page is read: they were opened before. */
static void every_encoding_of_pages(void **state)
{
    static const struct {
        const char *name, *bytes, *text;
    } cases[] = {{"windows-1250", "\x9e\xe8", "\xC5\xBE\xC4\x8D"},
        {"windows-1251", "\xec\xe8\xf0", "\xD0\xBC\xD0\xB8\xD1\x80"},
        {"windows-1252", "\x93\xe9\x94", "\xE2\x80\x9C\xC3\xA9\xE2\x80\x9D"},
        {"koi8-r", "\xcd\xc9\xd2", "\xD0\xBC\xD0\xB8\xD1\x80"},
        {"gb18030", "\xd6\xd0\xce\xc4", "\xE4\xB8\xAD\xE6\x96\x87"},
        {"gbk", "\xd6\xd0\xce\xc4", "\xE4\xB8\xAD\xE6\x96\x87"},
        {"gb2312", "\xd6\xd0\xce\xc4", "\xE4\xB8\xAD\xE6\x96\x87"},
        {"big5", "\xa4\xa4\xa4\xe5", "\xE4\xB8\xAD\xE6\x96\x87"},
        {"shift_jis", "\x93\xfa\x96\x7b", "\xE6\x97\xA5\xE6\x9C\xAC"},
        {"euc-jp", "\xc6\xfc\xcb\xdc", "\xE6\x97\xA5\xE6\x9C\xAC"},
        {"euc-kr", "\xc7\xd1\xb1\xb9", "\xED\x95\x9C\xEA\xB5\xAD"},
        {"iso-8859-2", "\xbe\xbb", "\xC5\xBE\xC5\xA5"},
        {"iso-8859-5", "\xdc\xd8\xe0", "\xD0\xBC\xD0\xB8\xD1\x80"},
        {"iso-8859-15", "\xa4\xe9", "\xE2\x82\xAC\xC3\xA9"}};
    (void)state;
    if (!has_libraries) {
        skip();
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char page[128], wanted[64];
        snprintf(page, sizeof page, "<meta charset=%s><p>%s", cases[i].name, cases[i].bytes);
        snprintf(wanted, sizeof wanted, ";;|/1@[0 0]:%s", cases[i].text);
        is("a.html", page, wanted);
    }
}

static void what_is_no_book_is_named(void **state)
{
    static char kindle[68] = "title", noise[4097];
    (void)state;
    is("a.txt", "%PDF-1.4", ": it is a PDF (pdftotext FILE makes a text of it)");
    is("a.txt", "%PDF", ";;|/1@[0 0]:%PDF");
    memset(kindle, 'x', sizeof kindle);
    memcpy(kindle + 60, "BOOKMOBI", 8);
    assert_string_equal(read_back("a.azw", kindle, sizeof kindle),
        ": it is a Kindle book (ebook-convert of Calibre makes an epub of it)");
    assert_int_equal(strncmp(read_back("a.azw", kindle, sizeof kindle - 1), ";;|", 3), 0);
    memset(noise, 'x', sizeof noise);
    noise[4095] = 0;
    assert_string_equal(read_back("a.txt", noise, sizeof noise), ": it is no text");
    noise[4095] = 'x';
    noise[4096] = 0; /* not at the beginning: it is white space */
    assert_int_equal(strncmp(read_back("a.txt", noise, sizeof noise), ";;|/1@[0 0]:xxx", 15), 0);
    is("a.txt", "", ": there is no text in it");
    is("a.txt", " * \n", ": there is no text in it");
}

/* No file, a folder, a pipe that nobody writes into, and what is larger than any book. */
static void what_is_no_file_is_refused(void **state)
{
    const char *path = support_path("pipe");
    struct book book;
    utter_error error = {0};
    char text[5000];
    (void)state;
    assert_int_equal(book_open(&book, support_path("none"), &error), UTTER_E_FILE);
    assert_non_null(strstr(error.text, "none: cannot read"));
    snprintf(text, sizeof text, "%s: a book is a file", support_folder());
    assert_int_equal(book_open(&book, support_folder(), &error), UTTER_E_FILE);
    assert_string_equal(error.text, text);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(book_open(&book, path, &error), UTTER_E_FILE);
    assert_non_null(strstr(error.text, "pipe: a book is a file"));
    support_write_file(path, "x", 1);
    for (int more = 0; more < 2; more++) {
        assert_int_equal(truncate(path, (1 << 30) + more), 0);
        assert_int_equal(book_open(&book, path, &error), UTTER_E_FILE);
        snprintf(text, sizeof text, "%s: %s", path,
            more ? "too large: more than 1073741824 bytes" : "it is no text");
        assert_string_equal(error.text, text);
    }
    unlink(path);
    path = support_path("large.txt");
    support_write_file(path, "\xFF\xFE", 2); /* UTF-16, in which zeros are letters */
    assert_int_equal(truncate(path, (1 << 26) + 1), 0);
    assert_int_equal(book_open(&book, path, &error), UTTER_E_FILE);
    assert_non_null(strstr(error.text, "large.txt: it is larger than 64 MB"));
    if (has_libraries) { /* a page has half of that */
        const char *page = support_path("large.html");
        assert_int_equal(rename(path, page), 0);
        assert_int_equal(truncate(page, 1 << 26), 0);
        assert_int_equal(book_open(&book, page, &error), UTTER_E_FILE);
        assert_non_null(strstr(error.text, "large.html: a page of it has more than 32 MB"));
        unlink(page);
    }
    unlink(path);
}

/* Many chapters, and long ones: all of each comes. */
static void nothing_is_lost_on_the_way(void **state)
{
    enum { N = 3000, LONG = 200000 };
    char *text = malloc(N * 40 + LONG + 100);
    size_t n = 0;
    struct book book;
    (void)state;
    for (int i = 0; i < N; i++) {
        n += (size_t)sprintf(text + n, "Chapter %d\n\nWords of %d.\n\n", i + 1, i);
    }
    n += (size_t)sprintf(text + n, "Chapter 9\n\n");
    memset(text + n, 'x', LONG);
    support_write_file(support_path("long.txt"), text, n + LONG);
    free(text);
    assert_int_equal(book_open(&book, support_path("long.txt"), NULL), UTTER_OK);
    assert_int_equal(book.n_chapters, N + 1);
    for (size_t i = 0; i < N; i++) {
        char wanted[64];
        sprintf(wanted, "Chapter %zu\n\nWords of %zu.", i + 1, i);
        assert_string_equal(book.chapters[i].text, wanted);
    }
    assert_int_equal(strlen(book.chapters[N].text), strlen("Chapter 9\n\n") + LONG);
    book_close(&book);
}

static void without_memory_there_is_no_book(void **state)
{
    const char *path = support_path("memory.txt");
    (void)state;
    support_write_file(path, "Chapter 1\n\nx\n\nChapter 2\n\ny", 26);
    bool failed = true;
    for (long n = 1; failed; n++) {
        struct book book;
        utter_error error = {0};
        support_fail_at(SUPPORT_MALLOC, n);
        utter_status status = book_open(&book, path, &error);
        failed = support_failed();
        support_fail_off();
        /* What fails in the other process does so in each, and is told from there. */
        assert_true(status ? error.text[0] && !book.chapters && !book.title : book.n_chapters == 2);
        assert_true(!failed || status);
        failed = failed || status;
        book_close(&book);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_kind_of_a_file),
        cmocka_unit_test(an_epub_is_known_by_its_bytes),
        cmocka_unit_test(every_encoding_of_unicode),
        cmocka_unit_test(every_encoding_of_pages),
        cmocka_unit_test(what_is_no_book_is_named),
        cmocka_unit_test(what_is_no_file_is_refused),
        cmocka_unit_test(nothing_is_lost_on_the_way),
        cmocka_unit_test(without_memory_there_is_no_book),
    };
    return cmocka_run_group_tests_name("books", tests, look_for_libraries, NULL);
}
