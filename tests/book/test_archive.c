/* SPDX-License-Identifier: Apache-2.0
 * The archive of an epub and its lists, at their bounds: large files and many, what is damaged, locked or no whole XML,
 * and where memory lacks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "book/parser/contents.h"
#include "tests/book/with_library.h"
#include "tests/book/zip.h"

/* What a reader leaves to the end of its process, as libarchive and libxml2 do. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);

const char *__lsan_default_suppressions(void)
{
    return "leak:libarchive\nleak:libxml2\n";
}

static void zip_free(struct zip *zip)
{
    for (size_t i = 0; i < zip->n_files; i++) {
        memory_free(zip->files[i].name);
        memory_free(zip->files[i].bytes);
    }
    memory_free(zip->files);
    free((char *)zip->whole);
    *zip = (struct zip){0};
}

static struct draft read_zip(struct zip *zip, const struct packed *files, size_t n)
{
    struct draft d = {.name = "a.epub"};
    *zip = (struct zip){0};
    zip->whole = zip_make(files, n, &zip->whole_bytes);
    zip_read(&d, &library, zip);
    return d;
}

/* ---- Files ---- */

static void a_large_file_is_whole(void **state)
{
    enum { LARGE = 1000003 };
    char *content = malloc(LARGE);
    struct zip zip;
    size_t n;
    (void)state;
    for (size_t i = 0; i < LARGE; i++) {
        content[i] = (char)(i * i >> 3);
    }
    const struct packed files[] = {{"a.html", content, LARGE}, {"b.html", content, LARGE / 2}};
    struct draft d = read_zip(&zip, files, 2);
    assert_string_equal(d.error.text, "");
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(zip.files[i].n, files[i].n);
        assert_memory_equal(zip.files[i].bytes, content, files[i].n);
    }
    char *one = zip_read_one(&zip, &library, "a.html", LARGE, &n);
    assert_int_equal(n, LARGE);
    assert_memory_equal(one, content, LARGE);
    memory_free(one);
    assert_null(zip_read_one(&zip, &library, "a.html", LARGE - 1, &n));
    zip_free(&zip);
    free(content);
}

static void many_files_are_found(void **state)
{
    enum { N = 150 };
    static char names[N][16];
    struct packed files[N];
    struct zip zip;
    (void)state;
    for (int i = 0; i < N; i++) {
        snprintf(names[i], sizeof names[i], "%d.html", i * 7 % N);
        files[i] = (struct packed){names[i], names[i], 0};
    }
    struct draft d = read_zip(&zip, files, N);
    assert_string_equal(d.error.text, "");
    assert_int_equal(zip.n_files, N);
    for (int i = 0; i < N; i++) {
        const struct zip_file *file = zip_find(&zip, names[i]);
        assert_non_null(file);
        assert_memory_equal(file->bytes, names[i], file->n);
    }
    assert_null(zip_find(&zip, "150.html"));
    zip_free(&zip);
    assert_null(zip_find(&zip, "1.html"));
}

/* The one behind it is damaged or locked: by what its heads say. */
static void a_file_that_cannot_be_read_is_named(void **state)
{
    static const struct packed files[] = {{"a.html", "first", 0}, {"b.html", "second", 0}};
    struct draft d = {.name = "a.epub"};
    struct zip zip = {0};
    (void)state;
    char *whole = zip_make(files, 2, &zip.whole_bytes);
    zip.whole = whole;
    *(char *)memmem(whole, zip.whole_bytes, "second", 6) ^= 1;
    zip_read(&d, &library, &zip);
    assert_int_equal(d.status, UTTER_E_FILE);
    assert_ptr_equal(strstr(d.error.text, "a.epub: its file b.html is damaged: "), d.error.text);
    assert_true(strlen(d.error.text) > strlen("a.epub: its file b.html is damaged: "));
    assert_int_equal(zip.n_files, 1);
    zip_free(&zip);
    /* Bit 0 of the flags: a page that is encrypted is none. */
    d = (struct draft){.name = "a.epub"};
    whole = zip_make(files, 2, &zip.whole_bytes);
    zip.whole = whole;
    for (char *at = whole; (at = memmem(at, zip.whole_bytes - (size_t)(at - whole), "b.html", 6));
         at++) {
        char *head = at - 30 >= whole && memcmp(at - 30, "PK\3\4", 4) == 0 ? at - 24 : at - 38;
        *head |= 1;
    }
    zip_read(&d, &library, &zip);
    assert_string_equal(d.error.text, "");
    assert_int_equal(zip.n_files, 1);
    assert_string_equal(zip.files[0].name, "a.html");
    zip_free(&zip);
    /* No archive at all. */
    d = (struct draft){.name = "a.epub"};
    zip.whole = strdup("no archive");
    zip.whole_bytes = 10;
    zip_read(&d, &library, &zip);
    assert_ptr_equal(strstr(d.error.text, "a.epub: it is not a whole epub"), d.error.text);
    size_t n;
    assert_null(zip_read_one(&zip, &library, "a.html", 100, &n));
    zip_free(&zip);
}

static void an_archive_without_memory_is_refused(void **state)
{
    static const struct packed files[] = {{"a.html", "first", 0}, {"b.html", "second", 0}};
    (void)state;
    size_t whole_bytes;
    char *whole = zip_make(files, 2, &whole_bytes);
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        struct draft d = {.name = "a.epub"};
        struct zip zip = {.whole = whole, .whole_bytes = whole_bytes};
        size_t bytes = 0;
        zip_read(&d, &library, &zip);
        char *one = zip_read_one(&zip, &library, "b.html", 100, &bytes);
        assert_true(support_failed() || (zip.n_files == 2 && one));
        assert_int_equal(bytes, one ? 6 : 0);
        memory_free(one);
        zip.whole = NULL;
        zip_free(&zip);
    }
    free(whole);
}

/* Of files and of bytes there may be so many, whatever was before. */
static void an_archive_has_bounds(void **state)
{
    static const struct packed files[] = {
        {"a.html", "first", 0}, {"b.png", "picture", 0}, {"c.html", "second", 0}};
    (void)state;
    size_t whole_bytes;
    char *whole = zip_make(files, 3, &whole_bytes);
    for (int more = 0; more < 2; more++) {
        struct draft d = {.name = "a.epub"};
        struct zip zip = {.whole = whole,
            .whole_bytes = whole_bytes,
            .bytes = ZIP_MOST_BYTES - 11 + (size_t)more}; /* of two pages, and of no picture */
        zip_read(&d, &library, &zip);
        assert_string_equal(
            d.error.text, more ? "a.epub: its file c.html makes the pages larger than 256 MB" : "");
        assert_int_equal(zip.n_files, more ? 1 : 2);
        assert_int_equal(zip.bytes, more ? ZIP_MOST_BYTES - 5 : ZIP_MOST_BYTES);
        zip.whole = NULL;
        zip_free(&zip);
        d = (struct draft){.name = "a.epub"};
        zip = (struct zip){.whole = whole,
            .whole_bytes = whole_bytes,
            .n_entries = ZIP_MOST_ENTRIES - 3 + (size_t)more};
        zip_read(&d, &library, &zip);
        assert_string_equal(d.error.text, more ? "a.epub: it holds more than 200000 files" : "");
        assert_int_equal(zip.n_files, more ? 1 : 2);
        zip.whole = NULL;
        zip_free(&zip);
    }
    free(whole);
}

/* ---- Lists ---- */

static const char
    ncx_begin[] = "<ncx><navMap>",
    ncx_end[] = "</navMap></ncx>",
    point[] = "<navPoint><navLabel><text>T</text></navLabel><content src='%d.html'/></navPoint>";

static char toc[] = "toc.ncx", in_folder[] = "x/toc.ncx", opf[] = "a.opf";

/* Lists of points, each of a page. */
static char *make_ncx(int n)
{
    char *text = malloc(sizeof ncx_begin + sizeof ncx_end + (size_t)n * (sizeof point + 8));
    size_t at = (size_t)sprintf(text, "%s", ncx_begin);
    for (int i = 0; i < n; i++) {
        at += (size_t)sprintf(text + at, point, n - i);
    }
    strcpy(text + at, ncx_end);
    return text;
}

static void many_entries_are_in_the_order_of_pages(void **state)
{
    enum { N = 150 };
    char *ncx = make_ncx(N), page[32];
    struct draft d = {.name = "a.epub"};
    struct contents c = {0};
    size_t n;
    const struct zip_file file = {in_folder, ncx, strlen(ncx)};
    (void)state;
    contents_read_ncx(&d, &library, &c, &file);
    contents_sort(&c);
    assert_int_equal(c.n, N);
    for (int i = 1; i <= N; i++) {
        snprintf(page, sizeof page, "x/%d.html", i);
        const struct contents_entry *e = contents_of(&c, page, &n);
        assert_int_equal(n, 1);
        assert_string_equal(e->page, page);
        assert_int_equal(e->order, N - i);
        assert_int_equal(e->level, 1);
    }
    assert_null(contents_of(&c, "x/0.html", &n));
    assert_int_equal(n, 0);
    assert_null(contents_of(&c, "y", &n));
    contents_fini(&c);
    free(ncx);
}

static void a_list_has_a_hundred_thousand_entries_at_most(void **state)
{
    char *ncx = make_ncx(2);
    struct contents c = {.n = DRAFT_MOST_CHAPTERS - 1, .room = DRAFT_MOST_CHAPTERS - 1};
    struct draft d = {.name = "a.epub"};
    const struct zip_file file = {toc, ncx, strlen(ncx)};
    (void)state;
    c.entries = memory_new(c.room, sizeof *c.entries);
    contents_read_ncx(&d, &library, &c, &file);
    assert_int_equal(c.n, DRAFT_MOST_CHAPTERS);
    assert_string_equal(c.entries[c.n - 1].page, "2.html");
    assert_string_equal(d.error.text, "a.epub: its table of contents has more than 100000 entries");
    contents_fini(&c);
    free(ncx);
}

static void entries_without_memory_are_left_out(void **state)
{
    char *ncx = make_ncx(3);
    const struct zip_file file = {toc, ncx, strlen(ncx)};
    (void)state;
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        struct draft d = {.name = "a.epub"};
        struct contents c = {0};
        contents_read_ncx(&d, &library, &c, &file);
        assert_true(c.n == 3 || (support_failed() && c.n < 3));
        for (size_t i = 0; i < c.n; i++) {
            assert_string_equal(c.entries[i].title, "T");
            assert_non_null(c.entries[i].page);
        }
        contents_fini(&c);
    }
    free(ncx);
}

static void xml_is_read_as_far_as_it_goes(void **state)
{
    static char text[] = "<package><title>A &nbsp; B</title><item id=x>&other;</package>";
    struct zip_file file = {opf, text, sizeof text - 1};
    (void)state;
    assert_null(contents_xml(&library, NULL));
    /* In silence: a terminal is the program's own. */
    const char *path = support_path("printed");
    const int before = dup(STDERR_FILENO);
    support_write_file(path, "", 0);
    assert_non_null(freopen(path, "w", stderr));
    xmlDocPtr doc = contents_xml(&library, &file);
    struct draft d = {.name = "a.html"};
    htmlDocPtr page = page_parse(&d, &library, text, sizeof text - 1);
    fflush(stderr);
    dup2(before, STDERR_FILENO);
    close(before);
    size_t n;
    char *printed = support_read_file(path, &n);
    assert_string_equal(printed, "");
    free(printed);
    assert_non_null(page);
    library.xmlFreeDoc(page);
    assert_non_null(doc);
    xmlNode *root = library.xmlDocGetRootElement(doc);
    assert_true(node_is(root, "package") && node_is(root->children, "title"));
    char *title = node_text(root->children);
    assert_string_equal(title, "A B");
    memory_free(title);
    library.xmlFreeDoc(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_large_file_is_whole),
        cmocka_unit_test(many_files_are_found),
        cmocka_unit_test(a_file_that_cannot_be_read_is_named),
        cmocka_unit_test(an_archive_without_memory_is_refused),
        cmocka_unit_test(an_archive_has_bounds),
        cmocka_unit_test(many_entries_are_in_the_order_of_pages),
        cmocka_unit_test(a_list_has_a_hundred_thousand_entries_at_most),
        cmocka_unit_test(entries_without_memory_are_left_out),
        cmocka_unit_test(xml_is_read_as_far_as_it_goes),
    };
    return cmocka_run_group_tests_name("archives", tests, load, NULL);
}
