/* SPDX-License-Identifier: Apache-2.0
 * Pages of HTML, as a reader would read them out: what is silent, what ends a paragraph, where chapters begin, whatever
 * the encoding; and names of files inside an epub. */
#include "book/parser/page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "book/parser/contents.h"
#include "book/parser/zip.h"
#include "tests/book/with_library.h"

static struct draft read_all(struct page page, const char *html, size_t n)
{
    struct draft d = {.name = "a.html"};
    page.library = &library;
    page.source = page.source ? page.source : "";
    page_read(&d, &page, html, n);
    return d;
}

/* "TITLE/LEVEL:TEXT" of each chapter, '|' between. */
static void page_is(struct page page, const char *html, size_t n, const char *wanted)
{
    struct draft d = read_all(page, html, n);
    char all[2048] = "";
    for (size_t i = 0, at = 0; i < d.book.n_chapters; i++) {
        const struct chapter *c = &d.book.chapters[i];
        at += (size_t)snprintf(
            all + at, sizeof all - at, "%s%s/%d:%s", i ? "|" : "", c->title, c->level, c->text);
        assert_string_equal(c->source, page.source ? page.source : "");
    }
    assert_string_equal(d.error.text, "");
    if (strcmp(all, wanted) != 0) {
        fail_msg("%s\nis \"%s\"\nnot \"%s\"", html, all, wanted);
    }
    book_close(&d.book);
}

static void text_is(const char *html, const char *wanted)
{
    char all[1024];
    snprintf(all, sizeof all, "%s%s", wanted[0] ? "/1:" : "", wanted);
    page_is((struct page){.chapters = PAGE_MARKS}, html, strlen(html), all);
}

/* ---- Words ---- */

static void what_nobody_reads_out_is_silent(void **state)
{
    static const char *const elements[] = {"script", "style", "svg", "math", "template", "noscript",
        "iframe", "object", "audio", "video", "rp", "rt", "textarea", "select", "button", "nav"};
    static const char *const attributes[] = {"hidden=\"x\"", "aria-hidden='true'",
        "style='color:red;display:none'", "style='display: none;'", "epub:type='noteref'",
        "type='noteref'", "epub:type=' x  NoteRef\ty'", "epub:type=pagebreak", "type=footnote",
        "type=rearnote", "type=endnote", "role=doc-noteref", "role=doc-pagebreak", "role=doc-footnote",
        "role='a doc-endnote'"};
    static const char *const heard[] = {"aria-hidden='false'", "style='display:block'", "type=noterefs",
        "epub:type='note ref'", "role=noteref", "type=doc-noteref", "class=hidden", "type"};
    char html[256];
    (void)state;
    for (size_t i = 0; i < sizeof elements / sizeof *elements; i++) {
        snprintf(html, sizeof html, "<p>a<%s><i>b</i></%s>c</p>", elements[i], elements[i]);
        text_is(html, "ac");
    }
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        snprintf(html, sizeof html, "<p>a<span %s>b<i>b</i></span>c</p>", attributes[i]);
        text_is(html, "ac");
    }
    for (size_t i = 0; i < sizeof heard / sizeof *heard; i++) {
        snprintf(html, sizeof html, "<p>a<span %s>b</span>c</p>", heard[i]);
        text_is(html, "abc");
    }
    text_is("<head><title>x</title></head><body>a<!-- x -->b<?x y?>c</body>", "abc");
}

static void blocks_end_paragraphs(void **state)
{
    static const char *const blocks[] = {"p", "div", "h1", "h2", "h3", "h4", "h5", "h6", "li", "ul",
        "ol", "dl", "dt", "dd", "blockquote", "section", "article", "aside", "header", "footer", "main",
        "figure", "figcaption", "table", "caption", "tr", "td", "th", "pre", "address", "form",
        "fieldset", "center", "details", "summary"};
    static const char *const others[] = {"b", "i", "span", "a", "em", "label", "h7", "x"};
    char html[256];
    (void)state;
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        snprintf(html, sizeof html, "<body>a<%s><i>b</i></%s>c</body>", blocks[i], blocks[i]);
        text_is(html, "a\n\nb\n\nc");
        snprintf(html, sizeof html, "<body>a<%s></%s>c</body>", blocks[i], blocks[i]);
        text_is(html, "a\n\nc");
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        snprintf(html, sizeof html, "<body>a<%s>b</%s>c</body>", others[i], others[i]);
        text_is(html, "abc");
    }
    text_is("a<hr>b<br>c<br/>d", "a\n\nb\nc\nd");
    text_is("a<div><div><div>b</div></div></div>c", "a\n\nb\n\nc");
    text_is("<div>a <b>b</b> <i> c</i></div>", "a b c");
    text_is("<p>a<nav><p>x</p></nav>b<p>c", "ab\n\nc");
    text_is("<p>a<aside type=footnote>x</aside>b</p>", "a\n\nb");
    text_is("", "");
}

/* ---- Chapters ---- */

static void headings_begin_chapters(void **state)
{
    static const struct page page = {.chapters = PAGE_HEADINGS};
    static const char html[] =
        "<p>Before.</p><h1>One <i>and</i><br>more</h1>x<h2>Two</h2>y<h3>Three</h3>z<h1>* *</h1>v"
        "<H1>Four</H1>w<header>a</header><hr>";
    (void)state;
    page_is(page, html, sizeof html - 1,
        "/1:Before.|One and more/1:One and\nmore\n\nx|Two/2:Two\n\ny\n\nThree\n\nz\n\n* "
        "*\n\nv|Four/1:Four\n\nw\n\na");
}

/* The page is one, by its first heading that says something, else by its title. */
static void a_page_is_a_chapter(void **state)
{
    static const char *const cases[][2] = {
        {"<title>T</title><body><h4>-</h4><h6>Head</h6><h1>Other</h1>x",
            "Head/1:-\n\nHead\n\nOther\n\nx"},
        {"<title> The  title</title><body><p>x", "The title/1:x"},
        {"<title>...</title><body><p>x", "/1:x"},
        {"<p>x", "/1:x"},
        {"<h7>No</h7>x", "/1:Nox"},
        {"<header>No</header>x", "/1:No\n\nx"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        page_is((struct page){.chapters = PAGE_WHOLE, .source = "p.html"}, cases[i][0],
            strlen(cases[i][0]), cases[i][1]);
    }
}

/* At the elements of their names, once each; a mark without a place is the page's beginning, and so is one whose place
 * is not there. */
static void marks_begin_chapters(void **state)
{
    static const char html[] =
        "<body>0<p id=a>1</p><i id=b>2</i><p id=a>3</p><a name=c>4</a><p name=d>5</p>"
        "<a id=e name=f>6</a><p id=g><b id=h>7</b></p>";
    struct page_mark marks[] = {{NULL, "Begin", 1, false}, {"x", "Gone", 9, false},
        {"a", "A", 2, false}, {"b", "B", 3, false}, {"c", "C", 4, false}, {"d", "D", 5, false},
        {"f", "F", 6, false}, {"e", "E", 7, false}, {"h", "H", 8, false}};
    const struct page page = {
        .chapters = PAGE_MARKS, .marks = marks, .n_marks = sizeof marks / sizeof *marks, .source = "s"};
    (void)state;
    page_is(page, html, sizeof html - 1,
        "Begin/1:|Gone/9:|D/5:|F/6:0|A/2:1|B/3:2\n\n3|C/4:4\n\n5|E/7:6|H/8:7");
    struct page_mark both[] = {{"a", "One", 1, false}, {"a", "Two", 2, false}};
    page_is((struct page){.chapters = PAGE_MARKS, .marks = both, .n_marks = 2}, "x<p id=a>1</p>", 14,
        "/1:x|One/1:|Two/2:1");
}

static void about_is(const char *html, const char *wanted)
{
    struct draft d =
        read_all((struct page){.chapters = PAGE_HEADINGS, .about = true}, html, strlen(html));
    char have[256];
    snprintf(have, sizeof have, "%s;%s;%s", d.book.title ? d.book.title : "-",
        d.book.author ? d.book.author : "-", d.book.language ? d.book.language : "-");
    assert_string_equal(have, wanted);
    book_close(&d.book);
}

static void a_head_tells_about_the_book(void **state)
{
    (void)state;
    about_is("<html lang=de><head><title>Ein Buch</title><meta name=Author content='Bert  "
             "B'></head><h1>x</h1>",
        "Ein Buch;Bert B;de");
    about_is("<html><head><meta name=author><meta name=writer "
             "content=A></head><h2>Two</h2><h1>One</h1><h1>Three</h1>",
        "One;-;-");
    about_is(
        "<head><title> - </title></head><body><meta name=author content=Ann><p lang=en>x</p>", "-;-;-");
    struct draft d = read_all(
        (struct page){.chapters = PAGE_HEADINGS}, "<html lang=de><title>T</title><h1>x</h1>", 39);
    assert_true(!d.book.title && !d.book.language);
    book_close(&d.book);
}

/* ---- Encodings ---- */

static void a_page_is_read_in_its_encoding(void **state)
{
    static const struct page page = {.chapters = PAGE_MARKS};
    static const struct {
        const char *html;
        size_t n;
        const char *text;
    } cases[] = {
        {"caf\xC3\xA9", 5, "/1:caf\xC3\xA9"},
        {"<?xml encoding='windows-1252'?>caf\xE9 \x93x\x94", 39,
            "/1:caf\xC3\xA9 \xE2\x80\x9Cx\xE2\x80\x9D"},
        {"<?xml version=\"1.0\" encoding=\"windows-1251\"?>\xE9", 46, "/1:\xD0\xB9"},
        {"<?xml version=\"1.0\" encoding=\"windows-1251\"?>caf\xC3\xA9", 50,
            "/1:caf\xC3\xA9"}, /* it is not */
        {"<meta charset=windows-1252><p>\xE9", 31, "/1:\xC3\xA9"},
        {"<?xml?><p>encoding='windows-1251'\xE9", 34, "/1:encoding='windows-1251'\xC3\xA9"},
        {"\xFF\xFEh\0i\0", 6, "/1:hi"},
        {"\xFE\xFF\0h\0i", 6, "/1:hi"},
        {"\xFF\xFE", 2, ""},
        {"\xFE"
         "b",
            2,
            "/1:\xC3\xBE"
            "b"},
        {"\xFF"
         "b",
            2,
            "/1:\xC3\xBF"
            "b"},
        {"a\xFF", 2, "/1:a\xC3\xBF"},
        {"a\xFE", 2, "/1:a\xC3\xBE"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        page_is(page, cases[i].html, cases[i].n, cases[i].text);
    }
    /* A name that is too long is none, and what stands behind the first bytes is not looked at. */
    char html[512];
    snprintf(html, sizeof html, "<?xml encoding='%064d'?><p>\xE9", 1);
    page_is(page, html, strlen(html), "/1:\xC3\xA9");
    snprintf(html, sizeof html, "<?xml encoding='windows-1251' %0300d?><p>\xE9", 1);
    page_is(page, html, strlen(html), "/1:\xC3\xA9");
}

/* Declarations of a document type are no words. */
static void declarations_are_passed_over(void **state)
{
    (void)state;
    text_is("<!DOCTYPE html [<!ENTITY a 'x'><!ENTITY b 'y'>]><p>[a] &b; c]></p>", "[a] &b; c]>");
    text_is("<!DOCTYPE html><p>[a]>b", "[a]>b");
    text_is("<!DOCTYPE html [<!ENTITY a 'x'><p>b", "]b" + 1);
    text_is("<p>a</p><p>[b]></p>", "a\n\n[b]>");
    /* The page ends where it did. */
    static const char html[] = "<!DOCTYPE html [<!ENTITY a 'x'>]><p>a</p><p>of another page</p>";
    page_is(
        (struct page){.chapters = PAGE_MARKS}, html, (size_t)(strstr(html, "<p>of") - html), "/1:a");
    static const char cut[] = "<!DOCTYPE html [<!ENTITY a 'x'><p>b<p>of another page ]>";
    page_is((struct page){.chapters = PAGE_MARKS}, cut, (size_t)(strstr(cut, "<p>of") - cut), "/1:b");
    /* It begins among the first 4,096 bytes. */
    static char far[4300];
    for (int more = 0; more < 2; more++) {
        const size_t n = 4096 - 9 + (size_t)more;
        memset(far, ' ', n);
        strcpy(far + n, "<!DOCTYPE html [<!ENTITY a 'x'><!ENTITY b 'y'>]><p>c");
        struct draft d = read_all((struct page){.chapters = PAGE_MARKS}, far, strlen(far));
        assert_int_equal(strcmp(d.book.chapters[0].text, "c") == 0, !more);
        book_close(&d.book);
    }
}

static void refused(const char *html, size_t n, const char *text)
{
    struct draft d = read_all((struct page){.chapters = PAGE_MARKS}, html, n);
    assert_int_equal(d.status, UTTER_E_FILE);
    assert_string_equal(d.error.text, text);
    book_close(&d.book);
}

static void pages_have_bounds(void **state)
{
    enum { DEEP = 300, MOST = 1 << 25 };
    char html[8 * DEEP] = "";
    (void)state;
    refused("", MOST + 1, "a.html: a page of it has more than 32 MB");
    for (int i = 0; i < DEEP; i++) {
        strcat(html, "<div>");
    }
    refused(html, strlen(html), "a.html: elements stand more than 256 deep in a page of it");
    text_is("<i><i><i><i><i><i>not deep", "not deep");
    struct draft d = {.name = "a", .status = UTTER_E_FILE};
    assert_null(page_parse(&d, &library, "<p>x", 4));
    assert_string_equal(d.error.text, "");
}

/* ---- Names ---- */

static void a_reference_names_a_file(void **state)
{
    static const struct {
        const char *from, *reference, *name, *fragment;
    } cases[] = {
        {"a/b.x", "c.x", "a/c.x", NULL},
        {"a/b.x", "c.x#d", "a/c.x", "d"},
        {"a/b.x", "c.x?q#d%20e", "a/c.x", "d%20e"},
        {"a/b.x", "#d", "a/b.x", "d"},
        {"a/b.x", "#", "a/b.x", NULL},
        {"a/b.x", "", "a/b.x", NULL},
        {"a/b.x", "c.x#", "a/c.x", NULL},
        {"b.x", "c/d.x", "c/d.x", NULL},
        {"a/b.x", "../c.x", "c.x", NULL},
        {"a/b/c.x", "../d/./e//f.x", "a/d/e/f.x", NULL},
        {"a/b.x", "../../../etc/passwd", "etc/passwd", NULL},
        {"a/b.x", "/c.x", "a/c.x", NULL},
        {"a/b.x", "c\\d.x", "a/c/d.x", NULL},
        {"a/b.x", "%63%2E%78", "a/c.x", NULL},
        {"a/b.x", "%2e%2e/%2E./c", "c", NULL},
        {"a/b.x", "%C3%A9", "a/\xC3\xA9", NULL},
        {"a/b.x", "%00%0g%g0%4", "a/%00%0g%g0%4", NULL},
        {"a/b.x", "100%", "a/100%", NULL},
        {"a/b.x", "c/..", "a/", NULL},
        {"a/b.x", "c/../..", "", NULL},
        {"a/b.x", "...", "a/...", NULL},
        {"a/b.x", ".c/..d/", "a/.c/..d/", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *fragment = (char *)1, *name = zip_resolve(cases[i].from, cases[i].reference, &fragment);
        assert_string_equal(name, cases[i].name);
        assert_int_equal(fragment != NULL, cases[i].fragment != NULL);
        assert_string_equal(fragment ? fragment : "", cases[i].fragment ? cases[i].fragment : "");
        memory_free(name);
        memory_free(fragment);
    }
    char *fragment = (char *)1;
    support_fail_at(SUPPORT_MALLOC, 1);
    assert_null(zip_resolve("a", "b#c", &fragment));
    support_fail_off();
    assert_null(fragment);
}

static void files_and_entries_are_found_by_name(void **state)
{
    static char a[] = "a", b[] = "b", c[] = "c";
    struct contents_entry entries[] = {{.page = b, .order = 0}, {.page = a, .order = 1},
        {.page = c, .order = 2}, {.page = b, .order = 3}, {.page = b, .order = 4}};
    struct contents contents = {.entries = entries, .n = 5};
    struct zip_file files[] = {{.name = a}, {.name = b}, {.name = c}};
    const struct zip zip = {.files = files, .n_files = 3}, none = {0};
    size_t n;
    (void)state;
    contents_sort(&contents);
    assert_ptr_equal(contents_of(&contents, "b", &n), &entries[1]);
    assert_int_equal(n, 3);
    assert_true(entries[1].order == 0 && entries[2].order == 3 && entries[3].order == 4);
    assert_ptr_equal(contents_of(&contents, "a", &n), &entries[0]);
    assert_int_equal(n, 1);
    assert_ptr_equal(contents_of(&contents, "c", &n), &entries[4]);
    assert_int_equal(n, 1);
    static const char *const others[] = {"", "aa", "bb", "d"};
    for (int i = 0; i < 4; i++) {
        assert_null(contents_of(&contents, others[i], &n));
        assert_int_equal(n, 0);
        assert_null(zip_find(&zip, others[i]));
    }
    contents.n = 0;
    contents_sort(&contents);
    assert_null(contents_of(&contents, "a", &n));
    assert_ptr_equal(zip_find(&zip, "a"), &files[0]);
    assert_ptr_equal(zip_find(&zip, "c"), &files[2]);
    assert_null(zip_find(&none, "a"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_nobody_reads_out_is_silent),
        cmocka_unit_test(blocks_end_paragraphs),
        cmocka_unit_test(headings_begin_chapters),
        cmocka_unit_test(a_page_is_a_chapter),
        cmocka_unit_test(marks_begin_chapters),
        cmocka_unit_test(a_head_tells_about_the_book),
        cmocka_unit_test(a_page_is_read_in_its_encoding),
        cmocka_unit_test(declarations_are_passed_over),
        cmocka_unit_test(pages_have_bounds),
        cmocka_unit_test(a_reference_names_a_file),
        cmocka_unit_test(files_and_entries_are_found_by_name),
    };
    return cmocka_run_group_tests_name("pages", tests, load, NULL);
}
