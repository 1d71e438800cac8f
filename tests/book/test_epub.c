/* SPDX-License-Identifier: Apache-2.0
 * An epub, file by file: which package, which pages in which order, what is told about the book, its chapters by either
 * kind of contents, its cover; and what is none. */
#include "book/parser/epub.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "book/parser/zip.h"
#include "tests/book/with_library.h"
#include "tests/book/zip.h"

#define CONTAINER(path) "<container><rootfiles><rootfile full-path='" path "'/></rootfiles></container>"
#define PACKAGE(about, items, spine)                                                                   \
    "<package><metadata>" about "</metadata><manifest>" items "</manifest><spine>" spine               \
    "</spine></package>"
#define ITEM(id, href) "<item id='" id "' href='" href "'/>"
#define REF(id) "<itemref idref='" id "'/>"
#define PNG "\x89PNG\r\n\x1A\nx"

enum { MOST_FILES = 12 };

/* What a reader leaves to the end of its process. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void)
{
    return "leak:epub_read\nleak:zip_read\nleak:libxml2\n";
}

static struct draft read_epub(const struct packed *files)
{
    struct draft d = {.name = "a.epub"};
    size_t n = 0, bytes;
    while (n < MOST_FILES && files[n].name) {
        n++;
    }
    char *whole = zip_make(files, n, &bytes);
    epub_read(&d, &library, whole, bytes);
    free(whole);
    return d;
}

/* "TITLE/LEVEL@SOURCE:TEXT" of each chapter, '|' between. */
static void epub_is(const struct packed *files, const char *wanted)
{
    struct draft d = read_epub(files);
    char all[2048] = "";
    for (size_t i = 0, at = 0; i < d.book.n_chapters; i++) {
        const struct chapter *c = &d.book.chapters[i];
        at += (size_t)snprintf(all + at, sizeof all - at, "%s%s/%d@%s:%s", i ? "|" : "", c->title,
            c->level, c->source, c->text);
    }
    assert_string_equal(d.error.text, "");
    assert_string_equal(all, wanted);
    book_close(&d.book);
}

static void refused(const struct packed *files, const char *text)
{
    struct draft d = read_epub(files);
    assert_int_equal(d.status, UTTER_E_FILE);
    assert_string_equal(d.error.text, text);
    book_close(&d.book);
}

/* Pages come as the spine has them; those that are not there, not to be read in line, or not in the list are passed
 * over. Without contents each page is a chapter. */
static void the_spine_orders_pages(void **state)
{
    static const struct packed files[] = {{"META-INF/container.xml", CONTAINER("x/book.opf"), 0},
        {"x/book.opf",
            PACKAGE("",
                ITEM("a", "a.html") ITEM("b", "p/%62.html") ITEM("c", "c.html")
                    ITEM("d", "no.html") "<item href='e.html'/><item id='f'/>" ITEM("z", "../z.html#x"),
                REF("b") REF("a") REF("d") "<itemref idref='c' linear='no'/>" REF(
                    "none") "<itemref/>" REF("z") "<itemref idref='a' linear='yes'/>"),
            0},
        {"x/a.html", "<title>Title A</title><p>A", 0}, {"x/p/b.html", "<h3>Head B</h3>", 0},
        {"x/c.html", "<p>C", 0}, {"z.html", "<p>Z", 0}, {NULL, NULL, 0}};
    (void)state;
    epub_is(files, "Head B/1@x/p/b.html:Head B|Title A/1@x/a.html:A|/1@z.html:Z|Title A/1@x/a.html:A");
}

/* The package is the container's first that is there, else the first of all. */
static void the_container_names_the_package(void **state)
{
    static const char *const containers[] = {CONTAINER("b.opf"), CONTAINER("./x/../b%2Eopf#y"),
        "<c><rootfile/><rootfile full-path='none.opf'/><rootfile full-path='b.opf'/><rootfile "
        "full-path='a.opf'/></c>",
        CONTAINER("none.opf"), "no xml"};
    (void)state;
    for (int i = 0; i < 5; i++) {
        const struct packed files[] = {{"b.opf", PACKAGE("", ITEM("a", "b.html"), REF("a")), 0},
            {"a.opf", PACKAGE("", ITEM("a", "a.html"), REF("a")), 0}, {"a.html", "<p>A", 0},
            {"b.html", "<p>B", 0}, {"META-INF/container.xml", containers[i], 0}, {NULL, NULL, 0}};
        epub_is(files, i < 3 ? "/1@b.html:B" : "/1@a.html:A");
    }
    static const struct packed none[] = {{"a.html", "<p>A", 0}, {"x.opfx", "x", 0}, {NULL, NULL, 0}};
    refused(none, "a.epub: it is a zip file, but no epub");
    static const struct packed broken[] = {{"x/b.opf", "", 0}, {NULL, NULL, 0}};
    refused(broken, "a.epub: its list of files (x/b.opf) cannot be read");
    static const struct packed empty[] = {{"b.opf", PACKAGE("", "", ""), 0}, {NULL, NULL, 0}};
    refused(empty, "a.epub: none of the pages that it lists is in it");
}

/* What the metadata say: of each the first, of authors four. */
static void metadata_are_about_the_book(void **state)
{
    static const struct packed files[] = {
        {"b.opf",
            PACKAGE(
                "<title> The \n book "
                "</title><title>Other</title><language>de</language><language>en</language>"
                "<creator>A</creator><creator> </creator><creator>B  b</creator><creator>C</creator>"
                "<creator>D</creator><creator>E</creator>",
                ITEM("a", "a.html") "<title>Third</title><creator>F</creator>", REF("a")),
            0},
        {"a.html", "<html lang=fr><title>No</title><p>A", 0}, {NULL, NULL, 0}};
    static const struct packed none[] = {{"b.opf", PACKAGE("", ITEM("a", "a.html"), REF("a")), 0},
        {"a.html", "<p>A", 0}, {NULL, NULL, 0}};
    (void)state;
    struct draft d = read_epub(files);
    assert_string_equal(d.book.title, "The book");
    assert_string_equal(d.book.language, "de");
    assert_string_equal(d.book.author, "A, B b, C, D");
    book_close(&d.book);
    d = read_epub(none);
    assert_true(!d.book.title && !d.book.language && !d.book.cover);
    assert_string_equal(d.book.author, "");
    book_close(&d.book);
}

/* Authors have a line of 512 bytes. */
static void long_names_of_authors_are_left_out(void **state)
{
    static char package[4096], name[300], other[211];
    const struct packed files[] = {{"b.opf", package, 0}, {"a.html", "<p>A", 0}, {NULL, NULL, 0}};
    (void)state;
    memset(name, 'x', sizeof name - 1);
    snprintf(package, sizeof package,
        "<p><creator>%s</creator><creator>%s</creator><creator>A</creator><manifest>" ITEM(
            "a", "a.html") "</manifest>" REF("a") "</p>",
        name, name);
    struct draft d = read_epub(files);
    assert_int_equal(strlen(d.book.author), sizeof name - 1 + 3);
    assert_string_equal(d.book.author + sizeof name - 1, ", A");
    book_close(&d.book);
    /* To the byte: two of 299 and 209 with a comma and a blank, and two zeros for it at their end. */
    memset(other, 'y', sizeof other - 1);
    for (size_t more = 0; more < 2; more++) {
        other[209] = more ? 'y' : 0;
        snprintf(package, sizeof package,
            "<p><creator>%s</creator><creator>%s</creator><manifest>" ITEM(
                "a", "a.html") "</manifest>" REF("a") "</p>",
            name, other);
        d = read_epub(files);
        assert_int_equal(strlen(d.book.author), more ? 299 : 299 + 2 + 209);
        book_close(&d.book);
    }
}

/* ---- Contents ---- */

#define NAV "<item id='n' href='t/nav.html' properties='x nav'/>"
#define NCX "<item id='c' href='toc.ncx' media-type='application/x-dtbncx+xml'/>"
#define PAGES ITEM("a", "a.html") ITEM("b", "b.html") ITEM("m", "m.html")
#define POINT(title, src, more)                                                                        \
    "<navPoint><navLabel><text>" title "</text></navLabel><content src='" src "'/>" more "</navPoint>"

static const char page_a[] = "<h1>Head</h1>before<p id=x>X<p id=y>Y", page_b[] = "<title>T</title><p>B",
                  page_m[] = "<p>More.";

static void contents_are(const char *items, const char *nav, const char *ncx, const char *wanted)
{
    char package[1024];
    snprintf(
        package, sizeof package, PACKAGE("", "%s" PAGES, REF("n") REF("a") REF("b") REF("m")), items);
    const struct packed files[] = {{"b.opf", package, 0}, {"a.html", page_a, 0}, {"b.html", page_b, 0},
        {"m.html", page_m, 0}, {nav ? "t/nav.html" : "x", nav ? nav : "x", 0},
        {ncx ? "toc.ncx" : "x", ncx ? ncx : "x", 0}, {NULL, NULL, 0}};
    epub_is(files, wanted);
}

/* The list that says it is one; else the first. Its depth is the level; a page that no entry names goes on with the one
 * before, and is a chapter of its own where there is none. Its own page is not read out. */
static void a_nav_names_chapters(void **state)
{
    static const char nested[] =
        "<ol><li><a href='../a.html#y'>Y</a></li><li><a href='../a.html'>A <i>a</i></a>"
        "<ol><li><a href='../a.html#x'> X </a></li></ol><a>No</a><b href='../m.html'>No</b></li>"
        "</ol>";
    static const char *const kinds[] = {
        "epub:type='toc'", "epub:type='x TOC'", "type=toc", "role=doc-toc"};
    static const char wanted[] = "A a/1@a.html:Head\n\nbefore|X/2@a.html:X|Y/1@a.html:Y\n\nB\n\nMore.";
    char nav[1024];
    (void)state;
    for (int i = 0; i < 4; i++) {
        snprintf(nav, sizeof nav,
            "<nav><ol><li><a href='../b.html'>Wrong</a></ol></nav><nav %s>%s</nav><nav><a "
            "href='../m.html'>Wrong</a></nav>",
            kinds[i], nested);
        contents_are(NAV, nav, NULL, wanted);
    }
    snprintf(nav, sizeof nav,
        "<p>x<nav type=landmarks>%s</nav><nav><a href='../m.html'>Wrong</a></nav>", nested);
    contents_are(NAV, nav, NULL, wanted);
    contents_are(NAV, "<nav type=toc><ol><li><a href='../b.html'>Bee</a></ol></nav>", NULL,
        "Head/1@a.html:Head\n\nbefore\n\nX\n\nY|Bee/1@b.html:B\n\nMore.");
    /* No list, and none in it: each page for itself. */
    static const char alone[] = "Head/1@a.html:Head\n\nbefore\n\nX\n\nY|T/1@b.html:B|/1@m.html:More.";
    contents_are(NAV, "<ol><li><a href='../b.html'>Bee</a></ol>", NULL, alone);
    contents_are(NAV, "<nav type=toc></nav>", NULL, alone);
    contents_are("", "<nav type=toc><a href='../b.html'>Bee</a></nav>", NULL, alone);
    contents_are(NAV, NULL, NULL, alone);
}

/* The older kind, where there is no other. */
static void an_ncx_names_chapters(void **state)
{
    static const char ncx[] = "<ncx><navMap>" POINT("One", "a.html",
        POINT("Two", "a.html#x",
            POINT("Three", "b.html", ""))) "<navPoint><content "
                                           "src='m.html'/></navPoint><navPoint><navLabel><text>No</"
                                           "text></navLabel></navPoint>"
                                           "</navMap></ncx>";
    static const char wanted[] =
        "One/1@a.html:Head\n\nbefore|Two/2@a.html:X\n\nY|Three/3@b.html:B|/1@m.html:More.";
    (void)state;
    contents_are(NCX, NULL, ncx, wanted);
    contents_are(NAV NCX, "<nav type=toc></nav>", ncx, wanted);
    contents_are(NAV NCX, "<nav type=toc><a href='../m.html'>Em</a></nav>", ncx,
        "Head/1@a.html:Head\n\nbefore\n\nX\n\nY\n\nB|Em/1@m.html:More.");
}

/* ---- The cover ---- */

static void cover_is(const char *about, const char *items, const char *picture, size_t n, bool wanted)
{
    char package[1024];
    snprintf(package, sizeof package, PACKAGE("%s", "%s" ITEM("a", "a.html"), REF("a")), about, items);
    const struct packed files[] = {{"b.opf", package, 0}, {"a.html", "<p>A", 0}, {"pic", picture, n},
        {"other", PNG "other", 0}, {NULL, NULL, 0}};
    struct draft d = read_epub(files);
    assert_int_equal(d.status, UTTER_OK);
    assert_int_equal(d.book.cover != NULL, wanted);
    assert_int_equal(d.book.cover_bytes, wanted ? n : 0);
    if (wanted) {
        assert_memory_equal(d.book.cover, picture, n);
    }
    book_close(&d.book);
}

/* By either kind of mark, a JPEG or PNG; what is no picture is left out. */
static void a_cover_is_a_picture(void **state)
{
    static const char marked[] = "<item id='p' href='pic' properties='x cover-image'/>",
                      plain[] = "<item id='o' href='other'/><item id='p' href='pic'/>",
                      meta[] = "<meta name='cover' content='p'/>",
                      jpeg[] = "\xFF\xD8\xFF"
                               "123456";
    (void)state;
    cover_is("", marked, PNG, 9, true);
    cover_is("<meta name='cover' content='o'/>", marked, jpeg, 9, true);
    cover_is(meta, plain, jpeg, 9, true);
    cover_is("<meta name='x' content='o'/><meta content='o'/>", plain, PNG, 9, false);
    cover_is("<meta name='cover' content='none'/><meta name='cover'/>", plain, PNG, 9, false);
    cover_is("", marked, "GIF8912345", 10, false);
    cover_is("", marked, PNG, 8, false);
    cover_is("", "<item id='p' href='none' properties='cover-image'/>", PNG, 9, false);
}

/* ---- Locks ---- */

static void locked_pages_are_told_from_scrambled_fonts(void **state)
{
    static const struct {
        const char *encryption;
        bool locked;
    } cases[] = {
        {"<e><EncryptionMethod Algorithm='http://www.w3.org/2001/04/xmlenc#aes128-cbc'/></e>", true},
        {"<e><EncryptionMethod Algorithm='http://www.idpf.org/2008/embedding'/><EncryptionMethod "
         "Algorithm='x'/></e>",
            true},
        {"<e><EncryptionMethod Algorithm='x'/><EncryptionMethod "
         "Algorithm='http://www.idpf.org/2008/embedding'/></e>",
            true},
        {"<e><EncryptionMethod Algorithm='http://www.idpf.org/2008/embedding'/></e>", false},
        {"<e><EncryptionMethod Algorithm='http://ns.adobe.com/pdf/enc#RC'/></e>", false},
        {"<e><EncryptedKey><EncryptionMethod Algorithm='x'/></EncryptedKey></e>", false},
        {"<e><EncryptionMethod/><Other Algorithm='x'/></e>", false},
        {"no xml", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct packed files[] = {{"b.opf", PACKAGE("", ITEM("a", "a.html"), REF("a")), 0},
            {"a.html", "<p>A", 0}, {"META-INF/encryption.xml", cases[i].encryption, 0},
            {NULL, NULL, 0}};
        if (cases[i].locked) {
            refused(files,
                "a.epub: its pages are encrypted (DRM), and only the shop's own reader can open them");
        } else {
            epub_is(files, "/1@a.html:A");
        }
    }
}

/* ---- The archive ---- */

static void only_pages_are_kept(void **state)
{
    static const struct packed files[] = {{"A.XHTML", "1", 0}, {"b.html", "22", 0}, {"./c.htm", "3", 0},
        {"d.xht", "4", 0}, {"e/../e.xml", "5", 0}, {"f.opf", "6", 0}, {"g.ncx", "7", 0},
        {"h.png", "8", 0}, {"html", "9", 0}, {"i.html.x", "0", 0}, {"/j%41.html", "1", 0}};
    static const char *const names[] = {
        "A.XHTML", "b.html", "c.htm", "d.xht", "e.xml", "f.opf", "g.ncx", "jA.html"};
    struct draft d = {.name = "a.epub"};
    struct zip zip = {0};
    size_t bytes, n = 7;
    (void)state;
    char *whole = zip_make(files, sizeof files / sizeof *files, &bytes);
    zip.whole = whole;
    zip.whole_bytes = bytes;
    zip_read(&d, &library, &zip);
    assert_string_equal(d.error.text, "");
    assert_int_equal(zip.n_files, 8);
    for (int i = 0; i < 8; i++) {
        assert_string_equal(zip.files[i].name, names[i]);
    }
    assert_int_equal(zip_find(&zip, "b.html")->n, 2);
    assert_memory_equal(zip_find(&zip, "b.html")->bytes, "22", 2);
    assert_memory_equal(zip_find(&zip, "g.ncx")->bytes, "7", 1);
    /* One file of any kind, up to a size. */
    char *one = zip_read_one(&zip, &library, "h.png", 1, &n);
    assert_true(n == 1 && one && one[0] == '8');
    memory_free(one);
    one = zip_read_one(&zip, &library, "b.html", 2, &n);
    assert_true(n == 2 && one);
    memory_free(one);
    assert_null(zip_read_one(&zip, &library, "b.html", 1, &n));
    assert_null(zip_read_one(&zip, &library, "none", 9, &n));
    /* Cut, or with a byte that is another: no whole epub, or damaged. */
    zip.n_files = 0;
    zip.whole_bytes = bytes - 30;
    zip_read(&d, &library, &zip);
    assert_int_equal(strncmp(d.error.text, "a.epub: it is not a whole epub", 30), 0);
    free(whole);
}

/* A reference is decoded and walked from the page that has it; a percent sign without two digits is itself. */
static void references_are_resolved(void **state)
{
    static const struct {
        const char *reference, *name, *fragment;
    } rows[] = {{"b.html", "x/b.html", NULL}, {"../b%2Ehtml#c", "b.html", "c"}, {"#c", "x/a.html", "c"},
        {"./y//b.html?q#", "x/y/b.html", NULL}, {"y\\b.html", "x/y/b.html", NULL},
        {"../../b.html", "b.html", NULL}, {"50%.html", "x/50%.html", NULL},
        {"%+1.html", "x/%+1.html", NULL}, {"% 1.html", "x/% 1.html", NULL},
        {"%0x.html", "x/%0x.html", NULL}, {"%00.html", "x/%00.html", NULL}, {"b%", "x/b%", NULL},
        {"b%4", "x/b%4", NULL}, {"%c3%A4", "x/\xc3\xa4", NULL}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *fragment, *name = zip_resolve("x/a.html", rows[i].reference, &fragment);
        assert_non_null(name);
        assert_string_equal(name, rows[i].name);
        assert_int_equal(fragment != NULL, rows[i].fragment != NULL);
        assert_string_equal(fragment ? fragment : "", rows[i].fragment ? rows[i].fragment : "");
        memory_free(name);
        memory_free(fragment);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_spine_orders_pages),
        cmocka_unit_test(the_container_names_the_package),
        cmocka_unit_test(metadata_are_about_the_book),
        cmocka_unit_test(long_names_of_authors_are_left_out),
        cmocka_unit_test(a_nav_names_chapters),
        cmocka_unit_test(an_ncx_names_chapters),
        cmocka_unit_test(a_cover_is_a_picture),
        cmocka_unit_test(locked_pages_are_told_from_scrambled_fonts),
        cmocka_unit_test(only_pages_are_kept),
        cmocka_unit_test(references_are_resolved),
    };
    return cmocka_run_group_tests_name("epub", tests, load, NULL);
}
