/* SPDX-License-Identifier: Apache-2.0
 * container.xml names the package; its manifest names the files, its spine their order. */
#include "book/parser/epub.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "book/parser/contents.h"
#include "book/parser/page.h"
#include "book/parser/zip.h"

enum { MOST_COVER = 1 << 24, MOST_AUTHORS = 4 };

struct item {
    const char *id, *type, *properties;
    char *file;
};

struct epub {
    struct draft *d;
    const struct library *l;
    struct zip zip;
    struct contents contents;
    const struct zip_file *package;
    xmlDocPtr doc; /* of the package */
    xmlNode *root;
    struct item *items; /* by id */
    size_t n_items;
};

static int by_id(const void *a, const void *b)
{
    return strcmp(((const struct item *)a)->id, ((const struct item *)b)->id);
}

static const struct item *find_item(const struct epub *e, const char *id)
{
    struct item wanted = {.id = id};
    return id && e->n_items ? bsearch(&wanted, e->items, e->n_items, sizeof wanted, by_id) : NULL;
}

/* The package that container.xml names, else the first in the archive. */
static void find_package(struct epub *e)
{
    xmlDocPtr doc = contents_xml(e->l, zip_find(&e->zip, "META-INF/container.xml"));
    xmlNode *root = doc ? e->l->xmlDocGetRootElement(doc) : NULL;
    for (xmlNode *at = root; at && !e->package; at = node_next(at, root, false)) {
        const char *path = node_is(at, "rootfile") ? node_attribute(at, "full-path") : NULL;
        char *fragment = NULL, *name = path ? zip_resolve("", path, &fragment) : NULL;
        e->package = name ? zip_find(&e->zip, name) : NULL;
        memory_free(name);
        memory_free(fragment);
    }
    if (doc) {
        e->l->xmlFreeDoc(doc);
    }
    for (size_t i = 0; i < e->zip.n_files && !e->package; i++) {
        const char *dot = strrchr(e->zip.files[i].name, '.');
        e->package = dot && strcmp(dot, ".opf") == 0 ? &e->zip.files[i] : NULL;
    }
    e->doc = contents_xml(e->l, e->package);
    e->root = e->doc ? e->l->xmlDocGetRootElement(e->doc) : NULL;
    if (!e->root) {
        draft_fail(e->d,
            e->package ? "its list of files (%.80s) cannot be read"
                       : "it is a zip file, but no epub%.0s",
            e->package ? e->package->name : "");
    }
}

/* Pages that a shop has locked. Fonts may be scrambled, that locks nothing. */
static void check_locks(struct epub *e)
{
    xmlDocPtr doc = contents_xml(e->l, zip_find(&e->zip, "META-INF/encryption.xml"));
    xmlNode *root = doc ? e->l->xmlDocGetRootElement(doc) : NULL;
    bool locked = false;
    for (xmlNode *at = root; at; at = node_next(at, root, false)) {
        const char *how = node_is(at, "EncryptionMethod") ? node_attribute(at, "Algorithm") : NULL;
        bool in_key = at->parent && node_is(at->parent, "EncryptedKey");
        locked = locked || (how && !in_key && !strstr(how, "idpf.org/2008/embedding") &&
                               !strstr(how, "ns.adobe.com/pdf/enc#RC"));
    }
    if (doc) {
        e->l->xmlFreeDoc(doc);
    }
    if (locked) {
        draft_fail(e->d, "its pages are encrypted (DRM), and only the shop's own reader can open them");
    }
}

static void read_items(struct epub *e)
{
    size_t room = 0;
    for (xmlNode *at = e->root; at; at = node_next(at, e->root, false)) {
        room += node_is(at, "item");
    }
    e->items = memory_new(room + 1, sizeof *e->items);
    for (xmlNode *at = e->items ? e->root : NULL; at; at = node_next(at, e->root, false)) {
        const char *href = node_is(at, "item") ? node_attribute(at, "href") : NULL;
        const char *id = href ? node_attribute(at, "id") : NULL;
        if (id) {
            char *fragment;
            e->items[e->n_items] = (struct item){.id = id,
                .type = node_attribute(at, "media-type"),
                .properties = node_attribute(at, "properties"),
                .file = zip_resolve(e->package->name, href, &fragment)};
            e->n_items += e->items[e->n_items].file != NULL;
            memory_free(fragment);
        }
    }
    if (e->n_items > 0) {
        qsort(e->items, e->n_items, sizeof *e->items, by_id);
    }
}

static void set_text(struct draft *d, char **place, xmlNode *node)
{
    char *text = node_text(node);
    if (text) {
        draft_set(d, place, text, strlen(text));
    }
    memory_free(text);
}

static void read_about(struct epub *e)
{
    struct book *b = &e->d->book;
    int n_authors = 0;
    char authors[512] = "";
    for (xmlNode *at = e->root; at && !node_is(at, "manifest"); at = node_next(at, e->root, false)) {
        if (node_is(at, "title")) {
            set_text(e->d, &b->title, at);
        } else if (node_is(at, "language")) {
            set_text(e->d, &b->language, at);
        } else if (node_is(at, "creator") && n_authors < MOST_AUTHORS) {
            char *name = node_text(at);
            size_t n = strlen(authors);
            if (name && name[0] && n + strlen(name) + 3 < sizeof authors) {
                snprintf(authors + n, sizeof authors - n, "%s%s", n_authors++ ? ", " : "", name);
            }
            memory_free(name);
        }
    }
    draft_set(e->d, &b->author, authors, strlen(authors));
}

/* EPUB 3 marks the picture; in EPUB 2 a meta element has its id. */
static void read_cover(struct epub *e)
{
    const struct item *cover = NULL;
    for (size_t i = 0; i < e->n_items && !cover; i++) {
        const char *p = e->items[i].properties;
        cover = p && strstr(p, "cover-image") ? &e->items[i] : NULL;
    }
    for (xmlNode *at = e->root; at && !cover; at = node_next(at, e->root, false)) {
        const char *name = node_is(at, "meta") ? node_attribute(at, "name") : NULL;
        if (name && strcmp(name, "cover") == 0) {
            cover = find_item(e, node_attribute(at, "content"));
        }
    }
    size_t n = 0;
    char *bytes = cover ? zip_read_one(&e->zip, e->l, cover->file, MOST_COVER, &n) : NULL;
    bool picture =
        bytes && n > 8 &&
        (memcmp(bytes, "\xFF\xD8\xFF", 3) == 0 || memcmp(bytes, "\x89PNG\r\n\x1A\n", 8) == 0);
    if (picture) {
        e->d->book.cover = (unsigned char *)bytes;
        e->d->book.cover_bytes = n;
    } else {
        memory_free(bytes);
    }
}

static const struct item *read_contents(struct epub *e)
{
    const struct item *nav = NULL, *ncx = NULL;
    const struct zip_file *file;
    for (size_t i = 0; i < e->n_items; i++) {
        const struct item *item = &e->items[i];
        bool is_nav = item->properties && strstr(item->properties, "nav");
        bool is_ncx = item->type && strcmp(item->type, "application/x-dtbncx+xml") == 0;
        nav = is_nav ? item : nav;
        ncx = is_ncx ? item : ncx;
    }
    if (nav && (file = zip_find(&e->zip, nav->file))) {
        contents_read_nav(e->d, e->l, &e->contents, file);
    }
    if (e->contents.n == 0 && ncx && (file = zip_find(&e->zip, ncx->file))) {
        contents_read_ncx(e->d, e->l, &e->contents, file);
    }
    contents_sort(&e->contents);
    return nav;
}

static void read_page(struct epub *e, const struct zip_file *file)
{
    size_t n;
    struct contents_entry *entries = contents_of(&e->contents, file->name, &n);
    struct page_mark *marks = memory_new(n + 1, sizeof *marks);
    for (size_t i = 0; marks && i < n; i++) {
        marks[i] = (struct page_mark){entries[i].fragment, entries[i].title, entries[i].level, false};
    }
    bool first = e->d->book.n_chapters == 0;
    struct page page = {.library = e->l,
        .chapters = n > 0                         ? PAGE_MARKS
                    : e->contents.n == 0 || first ? PAGE_WHOLE
                                                  : PAGE_MARKS,
        .marks = marks,
        .n_marks = marks ? n : 0,
        .source = file->name};
    page_read(e->d, &page, file->bytes, file->n);
    memory_free(marks);
}

static void read_spine(struct epub *e, const struct item *nav)
{
    size_t n_pages = 0;
    for (xmlNode *at = e->root; at && e->d->status == UTTER_OK; at = node_next(at, e->root, false)) {
        const struct item *item =
            node_is(at, "itemref") ? find_item(e, node_attribute(at, "idref")) : NULL;
        const char *linear = item ? node_attribute(at, "linear") : NULL;
        const struct zip_file *file = item ? zip_find(&e->zip, item->file) : NULL;
        if (file && item != nav && !(linear && strcmp(linear, "no") == 0)) {
            read_page(e, file);
            n_pages++;
        }
    }
    if (n_pages == 0) {
        draft_fail(e->d, "none of the pages that it lists is in it");
    }
}

void epub_read(struct draft *d, const struct library *l, const char *bytes, size_t n)
{
    struct epub e = {.d = d, .l = l, .zip = {.whole = bytes, .whole_bytes = n}};
    zip_read(d, l, &e.zip);
    if (d->status == UTTER_OK) {
        find_package(&e);
    }
    if (d->status == UTTER_OK) {
        check_locks(&e);
    }
    if (d->status == UTTER_OK) {
        read_items(&e);
        read_about(&e);
        read_spine(&e, read_contents(&e));
    }
    if (d->status == UTTER_OK) {
        read_cover(&e);
    }
    contents_fini(&e.contents); /* the process ends soon; the rest goes with it */
}
