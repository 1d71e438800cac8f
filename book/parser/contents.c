/* SPDX-License-Identifier: Apache-2.0
 * Lists of links, whose depth is the level of a chapter. */
#include "book/parser/contents.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

xmlDocPtr contents_xml(const struct library *l, const struct zip_file *file)
{
    const int options = XML_PARSE_RECOVER | XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING |
                        XML_PARSE_NOCDATA | XML_PARSE_COMPACT;
    return file && file->n < (1 << 28)
               ? l->xmlReadMemory(file->bytes, (int)file->n, NULL, NULL, options)
               : NULL;
}

/* Takes over the title. */
static void add(struct draft *d, struct contents *c, const char *from, const char *reference,
    char *title, int level)
{
    if (c->n == c->room && c->n < DRAFT_MOST_CHAPTERS) {
        size_t room = c->room ? 2 * c->room : 64;
        struct contents_entry *grown = memory_resize(c->entries, c->room, room, sizeof *grown);
        if (grown) {
            c->entries = grown;
            c->room = room;
        }
    }
    struct contents_entry entry = {.title = title, .level = level, .order = c->n};
    entry.page = reference ? zip_resolve(from, reference, &entry.fragment) : NULL;
    if (c->n == DRAFT_MOST_CHAPTERS) {
        draft_fail(d, "its table of contents has more than %d entries", DRAFT_MOST_CHAPTERS);
    }
    if (c->n < c->room && entry.page && title && d->status == UTTER_OK) {
        c->entries[c->n++] = entry;
        return;
    }
    memory_free(entry.page);
    memory_free(entry.fragment);
    memory_free(title);
}

/* How many elements of the name stand around the node, below `top`. */
static int depth_of(const xmlNode *node, const xmlNode *top, const char *name)
{
    int depth = 0;
    for (const xmlNode *at = node->parent; at && at != top; at = at->parent) {
        depth += node_is(at, name);
    }
    return depth;
}

void contents_read_nav(
    struct draft *d, const struct library *l, struct contents *c, const struct zip_file *file)
{
    htmlDocPtr doc = page_parse(d, l, file->bytes, file->n);
    xmlNode *root = doc ? l->xmlDocGetRootElement(doc) : NULL, *nav = NULL;
    for (xmlNode *at = root; at; at = node_next(at, root, false)) {
        bool toc = node_is(at, "nav") &&
                   (node_has_word(at, "epub:type", "toc") || node_has_word(at, "type", "toc") ||
                       node_has_word(at, "role", "doc-toc"));
        nav = toc || (!nav && node_is(at, "nav")) ? at : nav;
        if (toc) {
            break;
        }
    }
    for (xmlNode *at = nav; at; at = node_next(at, nav, false)) {
        if (node_is(at, "a") && node_attribute(at, "href")) {
            add(d, c, file->name, node_attribute(at, "href"), node_text(at), depth_of(at, nav, "ol"));
        }
    }
    if (doc) {
        l->xmlFreeDoc(doc);
    }
}

static xmlNode *child(xmlNode *node, const char *name)
{
    xmlNode *at = node ? node->children : NULL;
    while (at && !node_is(at, name)) {
        at = at->next;
    }
    return at;
}

void contents_read_ncx(
    struct draft *d, const struct library *l, struct contents *c, const struct zip_file *file)
{
    xmlDocPtr doc = contents_xml(l, file);
    xmlNode *root = doc ? l->xmlDocGetRootElement(doc) : NULL;
    for (xmlNode *at = root; at; at = node_next(at, root, false)) {
        if (node_is(at, "navPoint")) {
            xmlNode *label = child(child(at, "navLabel"), "text"), *content = child(at, "content");
            add(d, c, file->name, content ? node_attribute(content, "src") : NULL,
                label ? node_text(label) : memory_string(""), 1 + depth_of(at, root, "navPoint"));
        }
    }
    if (doc) {
        l->xmlFreeDoc(doc);
    }
}

static int by_page(const void *a, const void *b)
{
    const struct contents_entry *x = a, *y = b;
    int order = strcmp(x->page, y->page);
    return order ? order : (x->order > y->order) - (x->order < y->order);
}

void contents_sort(struct contents *c)
{
    if (c->n > 0) {
        qsort(c->entries, c->n, sizeof *c->entries, by_page);
    }
}

struct contents_entry *contents_of(const struct contents *c, const char *page, size_t *n)
{
    size_t low = 0, high = c->n, end;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (strcmp(c->entries[middle].page, page) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    for (end = low; end < c->n && strcmp(c->entries[end].page, page) == 0;) {
        end++;
    }
    *n = end - low;
    return *n ? &c->entries[low] : NULL;
}

void contents_fini(struct contents *c)
{
    for (size_t i = 0; i < c->n; i++) {
        memory_free(c->entries[i].title);
        memory_free(c->entries[i].page);
        memory_free(c->entries[i].fragment);
    }
    memory_free(c->entries);
}
