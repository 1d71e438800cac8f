/* SPDX-License-Identifier: Apache-2.0
 * Texts that become books: words, gaps and chapters of a draft; txt, Markdown and subtitles, line by line. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "book/parser/plain.h"
#include "tests/support.h"

/* What a reader leaves to the end of its process, as the library of Markdown asks for it. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void)
{
    return "leak:xrealloc\nleak:xcalloc\n";
}

/* "TITLE/LEVEL:TEXT" of each chapter, one behind the other with '|' between. */
static const char *chapters_of(const struct draft *d)
{
    static char all[4096];
    size_t n = 0;
    all[0] = 0;
    for (size_t i = 0; i < d->book.n_chapters; i++) {
        const struct chapter *c = &d->book.chapters[i];
        n += (size_t)snprintf(
            all + n, sizeof all - n, "%s%s/%d:%s", i ? "|" : "", c->title, c->level, c->text);
    }
    return all;
}

static void reads(
    void (*read)(struct draft *, const char *, size_t), const char *text, size_t n, const char *wanted)
{
    struct draft d = {.name = "a.txt"};
    read(&d, text, n);
    assert_string_equal(d.error.text, "");
    assert_int_equal(d.status, UTTER_OK);
    assert_string_equal(chapters_of(&d), wanted);
    book_close(&d.book);
    assert_true(!d.book.chapters && d.book.n_chapters == 0);
}

/* ---- The draft ---- */

/* White space of any kind and length is one blank, or what was asked for where that is more; nothing at the ends. What
 * is no character for a reader is not there. */
static void words_and_gaps_become_paragraphs(void **state)
{
    static const struct {
        const char *first, *second, *text;
        int line, paragraph; /* asked for between the two, before or behind white space */
    } cases[] = {
        {"one", "two", "onetwo", 0, 0},
        {" one ", "\t\n\v\f\r two ", "one two", 0, 0},
        {"one", "two", "one\ntwo", 1, 0},
        {"one ", " two", "one\ntwo", 1, 0},
        {"one", "two", "one\n\ntwo", 0, 1},
        {"one", "two", "one\n\ntwo", 1, 1},
        {"soft\xC2\xADhyphen", "\xEF\xBB\xBFx\xE2\x80\x8By\xE2\x81\xA0z", "softhyphenxyz", 0, 0},
        {"a\xC2\xA0 b\xE2\x80\xAF", "c\xE2\x80\x89\xC2\xAD d\xC2\xA0", "a b c d", 0, 0},
        {"\xC2\xA0 a",
            "\xC2\xA0"
            "b",
            "a\n\nb", 0, 1},
        {"\xC3\xA9\xC2\xA0\xC3\xA9t", "\xC3\xA9", "\xC3\xA9 \xC3\xA9t\xC3\xA9", 0, 0},
        {"\xC3\xA9\xC2\xADx\xE2\x80\x8B\xE2\x80\xA6", "y", "\xC3\xA9x\xE2\x80\xA6y", 0, 0},
        {"", "x", "x", 1, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct draft d = {.name = "a"};
        draft_chapter(&d, "", 1, "");
        draft_text(&d, cases[i].first, strlen(cases[i].first));
        if (cases[i].paragraph) {
            draft_paragraph(&d);
        }
        if (cases[i].line) {
            draft_line(&d);
        }
        draft_text(&d, cases[i].second, strlen(cases[i].second));
        draft_text(&d, " ", 1);
        assert_string_equal(d.book.chapters[0].text, cases[i].text);
        assert_int_equal(d.n, strlen(cases[i].text));
        assert_int_equal(d.all, d.n);
        book_close(&d.book);
    }
}

/* A zero is white space; half a character at the end stands for itself; a text without a chapter begins one. */
static void odd_bytes_are_kept_or_blank(void **state)
{
    struct draft d = {.name = "a"};
    (void)state;
    draft_text(&d, "a\0b\xC2", 4);
    draft_text(&d, "\xA0", 1);
    assert_string_equal(chapters_of(&d), "/1:a b\xC2\xA0");
    book_close(&d.book);
}

/* A chapter begins anew; its level is from 1 to 9; what stood there before stays. */
static void chapters_begin_anew(void **state)
{
    struct draft d = {.name = "a"};
    (void)state;
    draft_chapter(&d, " One \n more ", 0, "p 1");
    draft_text(&d, "first ", 6);
    draft_paragraph(&d);
    draft_chapter(&d, "", 10, "");
    draft_text(&d, "second", 6);
    draft_chapter(&d, "Three", 9, "");
    draft_chapter(&d, "Four", 1, "");
    draft_text(&d, "* *", 3);
    assert_string_equal(chapters_of(&d), "One more/1:first|/9:second|Three/9:|Four/1:* *");
    assert_string_equal(d.book.chapters[0].source, "p 1");
    draft_finish(&d);
    assert_string_equal(chapters_of(&d), "One more/1:first|/9:second");
    assert_int_equal(d.status, UTTER_OK);
    book_close(&d.book);
    d = (struct draft){.name = "a"};
    for (int i = 0; i < 40; i++) { /* more than there was room for at first */
        char title[16];
        snprintf(title, sizeof title, "%d", i);
        draft_chapter(&d, title, 2, "");
        draft_text(&d, title, strlen(title));
    }
    assert_int_equal(d.book.n_chapters, 40);
    assert_string_equal(d.book.chapters[0].text, "0");
    assert_string_equal(d.book.chapters[39].title, "39");
    book_close(&d.book);
}

static void nothing_to_say_is_a_failure(void **state)
{
    struct draft d = {.name = "a.txt"};
    (void)state;
    draft_text(&d, "...", 3);
    draft_finish(&d);
    assert_int_equal(d.status, UTTER_E_FILE);
    assert_string_equal(d.error.text, "a.txt: there is no text in it");
    /* The first failure stays, and nothing is done behind it. */
    draft_fail(&d, "other %d", 7);
    draft_chapter(&d, "x", 1, "");
    draft_text(&d, "x", 1);
    draft_set(&d, &d.book.title, "x", 1);
    assert_string_equal(d.error.text, "a.txt: there is no text in it");
    assert_true(d.book.n_chapters == 0 && !d.book.title);
    book_close(&d.book);
}

/* Bounds of what a file may make, which cost no more than they hold. */
static void a_book_has_bounds(void **state)
{
    struct draft d = {.name = "a.txt"};
    (void)state;
    draft_chapter(&d, "", 1, "");
    d.all = DRAFT_MOST_TEXT - 7;
    draft_text(&d, "abc", 3); /* with room for a gap */
    assert_int_equal(d.status, UTTER_OK);
    d.all = DRAFT_MOST_TEXT - 6;
    draft_text(&d, "abc", 3);
    assert_string_equal(d.error.text, "a.txt: it has more than 64 MB of text");
    book_close(&d.book);
    d = (struct draft){.name = "a.txt"};
    draft_chapter(&d, "", 1, "");
    d.book.n_chapters = DRAFT_MOST_CHAPTERS;
    draft_chapter(&d, "", 1, "");
    assert_string_equal(d.error.text, "a.txt: it has more than 100000 chapters");
    d.book.n_chapters = 1;
    book_close(&d.book);
}

static void what_is_set_stays(void **state)
{
    struct draft d = {.name = "a"};
    (void)state;
    draft_set(&d, &d.book.title, "", 0);
    assert_string_equal(d.book.title, "");
    draft_set(&d, &d.book.title, " The \n title, more", 12);
    assert_string_equal(d.book.title, "The title");
    draft_set(&d, &d.book.title, "Other", 5);
    assert_string_equal(d.book.title, "The title");
    book_close(&d.book);
}

/* Without memory, wherever: a failure that says so, and nothing lost on the way. */
static void a_draft_without_memory_fails(void **state)
{
    (void)state;
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        struct draft d = {.name = "a"};
        draft_set(&d, &d.book.title, "Title", 5);
        draft_text(&d, "some words and more of them", 27);
        draft_chapter(&d, "Two", 1, "page");
        draft_text(&d, "a", 1);
        assert_int_equal(d.status, support_failed() ? UTTER_E_FILE : UTTER_OK);
        assert_string_equal(
            d.error.text, support_failed() ? "a: it takes more than 1 GB of memory to read" : "");
        book_close(&d.book);
    }
}

static void squeezed(const char *text, size_t n, const char *wanted)
{
    char *have = text_squeezed(text, n);
    assert_string_equal(have, wanted);
    memory_free(have);
}

static void texts_are_squeezed_and_looked_at(void **state)
{
    (void)state;
    squeezed(" a  b\n\tc ", 9, "a b c");
    squeezed("a\0b ", 4, "a b");
    squeezed("abc", 2, "ab");
    squeezed("a b ", 3, "a b");
    squeezed(" \n", 2, "");
    squeezed("", 0, "");
    static const struct {
        const char *text;
        bool speaks;
    } speaks[] = {{"", false}, {" .,-*", false}, {"...a", true}, {"7", true},
        {"\xC2\xBD", true}, /* a half */
        {"\xE2\x85\xA7", true}, {"\xE7\xAC\xAC", true}, {"\xCC\x81", false},
        {"\xF0\x9F\x98\x80", false},
        {"\xFF"
         "a",
            false},
        {"A", true}, {"\xCA\xB0", true}, {"$+", false}};
    for (size_t i = 0; i < sizeof speaks / sizeof *speaks; i++) {
        assert_int_equal(text_speaks(speaks[i].text, strlen(speaks[i].text)), speaks[i].speaks);
    }
    assert_false(text_speaks("..a", 2));
    assert_int_equal(text_valid("a\xC3\xA9z", 4), 4);
    assert_int_equal(text_valid("a\xC3\xA9z", 2), 1);
    assert_int_equal(text_valid("a\xFFz", 3), 1);
    assert_int_equal(text_valid("a\0b", 3), 3);
    assert_int_equal(text_valid("\xED\xA0\x80", 3), 0);
    assert_int_equal(text_valid("", 0), 0);
}

/* ---- txt ---- */

static void plain(const char *text, const char *wanted)
{
    reads(plain_read, text, strlen(text), wanted);
}

/* Lines are broken anywhere, and blank ones stand between paragraphs; with returns or blanks in them, too. */
static void blank_lines_end_paragraphs(void **state)
{
    (void)state;
    plain("one\ntwo\n\nthree", "/1:one two\n\nthree");
    plain("one\r\n \t\f\v\r\ntwo\r\n", "/1:one\n\ntwo");
    plain("\n\n  one\n\n\n\ntwo\n\n", "/1:one\n\ntwo");
    plain("one", "/1:one");
    plain("one\n", "/1:one");
    reads(plain_read, "one\n\0\ntwo", 9, "/1:one two"); /* a zero is no blank line */
}

static bool begins_chapter(const char *line)
{
    char text[256];
    snprintf(text, sizeof text, "x\n\n%s\n\ny", line);
    struct draft d = {.name = "a"};
    plain_read(&d, text, strlen(text));
    const bool is = d.book.n_chapters == 2;
    if (is) {
        assert_string_equal(d.book.chapters[0].text, "x");
        assert_int_equal(d.book.chapters[1].level, 1);
        assert_memory_equal(
            d.book.chapters[1].text, d.book.chapters[1].title, strlen(d.book.chapters[1].title));
    } else {
        assert_int_equal(d.book.n_chapters, 1);
    }
    book_close(&d.book);
    return is;
}

/* A word for a part, then its number, and nothing else but what may follow one. */
static void a_line_of_its_own_begins_a_chapter(void **state)
{
    static const char *const yes[] = {"Chapter 1", "CHAPTER 12", "chapter iv", "Part XLC", " \tBook 3",
        "Kapitel 7.", "Teil 2: Der Anfang", "chapitre 3-4", "Partie 5 Suite", "cap\xC3\xADtulo 9",
        "Parte I", "Capitolo 0", "\xD0\x93\xD0\xBB\xD0\xB0\xD0\xB2\xD0\xB0 1",
        "\xD0\xA7\xD0\x90\xD0\xA1\xD0\xA2\xD0\xAC II", "\xE7\xAC\xAC\xE4\xB8\x80\xE7\xAB\xA0",
        "\xE7\xAC\xAC\xE4\xB8\x80\xE7\xAB\xA0 \xE5\xBC\x80\xE5\xA7\x8B", "\xEC\xA0\x9C 1 \xEC\x9E\xA5",
        "Chapter 1\r",
        "Chapter 1 of the seventy-nine bytes that there may "
        "be in it, which makes seventy",
        /* eight bytes of number at most, in characters of three */
        "\xE7\xAC\xAC\xE4\xBA\x8C\xE5\x8D\x81\xE4\xBA\x8C\xE5\x8D\x81\xE4\xBA\x8C\xE5\x8D\x81\xE7\xAB"
        "\xA0"};
    static const char *const no[] = {"Chapter", "Chapter ", "Chapter one", "Chapter1", "Chapters 1",
        "Chapter 1a", "Chapter 1, and", "A Chapter 1", "Partly 1", "1", "\xE7\xAC\xAC\xE4\xB8\x80",
        "\xE7\xAC\xAC", "\xE7\xAC\xAC\xE7\xAB\xA0", "\xE4\xB8\x80\xE7\xAC\xAC\xE7\xAB\xA0",
        "Chapter  1",
        "Chapter 1 of more than the eighty bytes that there may be in a line which is a title.",
        "\xE7\xAC\xAC\xE4\xBA\x8C\xE5\x8D\x81\xE4\xBA\x8C\xE5\x8D\x81\xE4\xBA\x8C\xE5\x8D\x81\xE4\xBA"
        "\x8C\xE7\xAB\xA0"};
    (void)state;
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
        if (!begins_chapter(yes[i])) {
            fail_msg("no chapter: %s", yes[i]);
        }
    }
    for (size_t i = 0; i < sizeof no / sizeof *no; i++) {
        if (begins_chapter(no[i])) {
            fail_msg("a chapter: %s", no[i]);
        }
    }
    char line[100] = "Chapter 1 ";
    memset(line + 10, 'x', 71);
    assert_false(begins_chapter(line)); /* 81 bytes */
    line[80] = 0;
    assert_true(begins_chapter(line));
}

/* Only between blank lines, or at an end of the text. */
static void a_chapter_stands_between_blank_lines(void **state)
{
    (void)state;
    plain("Chapter 1\n\nx", "Chapter 1/1:Chapter 1\n\nx");
    plain("x\n\nChapter 1", "/1:x|Chapter 1/1:Chapter 1");
    plain("x\n\nChapter 1\n", "/1:x|Chapter 1/1:Chapter 1");
    plain("x\nChapter 1\n\ny", "/1:x Chapter 1\n\ny");
    plain("x\n\nChapter 1\ny", "/1:x\n\nChapter 1 y");
    plain("Chapter 1\n\nChapter 2\n\nx", "Chapter 1/1:Chapter 1|Chapter 2/1:Chapter 2\n\nx");
}

/* ---- Markdown ---- */

static struct library library;

/* "TITLE;AUTHOR;LANGUAGE" and the chapters. */
static void marked(const char *text, const char *about, const char *wanted)
{
    struct draft d = {.name = "a.md"};
    char have[256];
    markdown_read(&d, &library, text, strlen(text));
    assert_int_equal(d.status, UTTER_OK);
    snprintf(have, sizeof have, "%s;%s;%s", d.book.title ? d.book.title : "",
        d.book.author ? d.book.author : "", d.book.language ? d.book.language : "");
    assert_string_equal(have, about);
    assert_string_equal(chapters_of(&d), wanted);
    book_close(&d.book);
}

static void the_front_of_markdown_names_the_book(void **state)
{
    (void)state;
    if (library_books(&library)) {
        skip();
    }
    marked("---\ntitle: \"A: 'b'\"\nauthor:   Ann  Able \nlang: 'de'\nother: x\n---\nWords.",
        "A: 'b';Ann Able;de", "/1:Words.");
    marked("---\ntitle: One\ntitle: Two\n...\n# Head\n\nWords.", "One;;", "Head/1:Head\n\nWords.");
    marked("# Head\n\nWords.", "Head;;", "Head/1:Head\n\nWords.");
    marked("--- \ntitle: 'One\"\nauthors: x\nlanguage: y\n----\nWords.", "'One\";;", "/1:Words.");
    marked("---\ntitle: '\n---\nWords.", "';;", "/1:Words.");
    marked("---\ntitle: ''\nauthor:\n---\nWords.", ";;", "/1:Words.");
    /* Without its end it is no front, but words as they stand. */
    marked("--\n\ntitle: One\n\nWords.", ";;", "/1:--\n\ntitle: One\n\nWords.");
    struct draft d = {.name = "a.md"};
    static const char open[] = "---\nauthor: Ann\nWords.";
    markdown_read(&d, &library, open, sizeof open - 1);
    assert_string_equal(d.book.author, "Ann");
    assert_string_equal(chapters_of(&d), "/1:author: Ann Words.");
    book_close(&d.book);
    marked("---\ntitle: One\n---", "One;;", "");
}

/* ---- Subtitles ---- */

static const char *subtitles_of(struct draft *d, const char *text, size_t n)
{
    static char all[2048];
    size_t at = 0;
    *d = (struct draft){.name = "a.srt"};
    subtitles_read(d, text, n);
    all[0] = 0;
    assert_true(d->book.timed);
    for (size_t i = 0; i < d->book.n_chapters; i++) {
        const struct chapter *c = &d->book.chapters[i];
        at += (size_t)snprintf(all + at, sizeof all - at, "%s%s[%.4f %.4f]%s", i ? "|" : "", c->title,
            c->begin_s, c->end_s, c->text);
    }
    return all;
}

static void timed(const char *text, const char *wanted)
{
    struct draft d;
    assert_string_equal(subtitles_of(&d, text, strlen(text)), wanted);
    assert_int_equal(d.status, UTTER_OK);
    book_close(&d.book);
}

static void subtitles_have_times(void **state)
{
    (void)state;
    timed("1\n01:02:03,456 --> 01:02:04,5\nHi.\n\n2\n00:05.25-->10:06 align:start\nBye.",
        "1[3723.4560 3724.5000]Hi.|2[5.2500 606.0000]Bye.");
    timed(" \t0:01 \t-->\t0:01\nHi.\n", "1[1.0000 1.0000]Hi.");
    timed("100:00:00 --> 100:00:00\nHi.", "1[360000.0000 360000.0000]Hi.");
    timed("0:099999 --> 0:099999.75\nx", "1[99999.0000 99999.7500]x");
    timed("0:00  --> 0:00.5\na\n\n0:00.5\t\t-->\t 0:01\nb", "1[0.0000 0.5000]a|2[0.5000 1.0000]b");
    /* What has no time is words, of a subtitle or of nobody. */
    static const char *const none[] = {"0:02 --> 0:01", "1 --> 2", ": --> 0:01", "0:01 -> 0:02",
        "0:01 --> x", "x 0:01 --> 0:02", "0: --> 0:01", "0:0:0:1 --> 0:0:0:2", "0:01 --> :02",
        "-0:01 --> 0:02", "0:0000001 --> 0:0000002", "--> 0:02"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        struct draft d;
        char text[128];
        snprintf(text, sizeof text, "%s\nx\n\n0:01 --> 0:02\na\n%s", none[i], none[i]);
        subtitles_of(&d, text, strlen(text));
        assert_int_equal(d.book.n_chapters, 1);
        snprintf(text, sizeof text, "a %s", none[i]);
        assert_string_equal(d.book.chapters[0].text, text);
        book_close(&d.book);
    }
}

static void subtitles_end_with_the_hundredth_hour(void **state)
{
    struct draft d;
    static const char late[] = "0:01 --> 0:02\nx\n\n1:00 --> 100:00:00.1\ny\n\n0:05 --> 0:06\nz";
    (void)state;
    subtitles_of(&d, late, sizeof late - 1);
    assert_int_equal(d.status, UTTER_E_FILE);
    assert_string_equal(d.error.text, "a.srt: its subtitle 2 ends after more than 100 hours");
    book_close(&d.book);
}

/* Words stand between a time and a blank line; tags, settings and entities are not words. */
static void subtitles_have_words(void **state)
{
    static const char zero[] = "0:01 --> 0:02\na\0b\n\nc";
    struct draft d;
    (void)state;
    timed("WEBVTT\n\nNOTE x\n\n0:01 --> 0:02\r\n<v Ann><i>One</i>\r\ntwo{\\an8}\r\n \t\r\nthree\r\n",
        "1[1.0000 2.0000]One two");
    timed("0:01 --> 0:02\n&amp;&lt;b&gt;&nbsp;c&lrm;d&rlm;&quot; &x; & 3 {5} {\\6 a < b",
        "1[1.0000 2.0000]&<b> cd\" &x; & 3 {5} {\\6 a < b");
    timed("0:01 --> 0:02\na\n   \nb", "1[1.0000 2.0000]a");
    timed("0:01 --> 0:02\n0:03 --> 0:04\nx", "1[1.0000 2.0000]|2[3.0000 4.0000]x");
    assert_string_equal(subtitles_of(&d, zero, sizeof zero - 1), "1[1.0000 2.0000]a b");
    book_close(&d.book);
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        subtitles_of(&d, zero, sizeof zero - 1);
        assert_int_equal(d.status, support_failed() ? UTTER_E_FILE : UTTER_OK);
        book_close(&d.book);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_and_gaps_become_paragraphs),
        cmocka_unit_test(odd_bytes_are_kept_or_blank),
        cmocka_unit_test(chapters_begin_anew),
        cmocka_unit_test(nothing_to_say_is_a_failure),
        cmocka_unit_test(a_book_has_bounds),
        cmocka_unit_test(what_is_set_stays),
        cmocka_unit_test(a_draft_without_memory_fails),
        cmocka_unit_test(texts_are_squeezed_and_looked_at),
        cmocka_unit_test(blank_lines_end_paragraphs),
        cmocka_unit_test(a_line_of_its_own_begins_a_chapter),
        cmocka_unit_test(a_chapter_stands_between_blank_lines),
        cmocka_unit_test(the_front_of_markdown_names_the_book),
        cmocka_unit_test(subtitles_have_times),
        cmocka_unit_test(subtitles_end_with_the_hundredth_hour),
        cmocka_unit_test(subtitles_have_words),
    };
    return cmocka_run_group_tests_name("plain texts", tests, NULL, NULL);
}
