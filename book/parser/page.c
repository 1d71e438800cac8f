/* SPDX-License-Identifier: Apache-2.0
 * libxml2's parser of HTML, which takes anything, makes a tree, and the tree is walked without recursion. No entity is
 * loaded, nothing is asked of a network. */
#include "book/parser/page.h"

#include <string.h>
#include <strings.h>

#include "base/memory.h"

enum { MOST_PAGE = 1 << 25 };

/* ---- Trees ---- */

bool node_is(const xmlNode *node, const char *name)
{
    return node->type == XML_ELEMENT_NODE && strcasecmp((const char *)node->name, name) == 0;
}

const char *node_attribute(const xmlNode *node, const char *name)
{
    const xmlAttr *a = node->type == XML_ELEMENT_NODE ? node->properties : NULL;
    while (a && strcasecmp((const char *)a->name, name) != 0) {
        a = a->next;
    }
    return a && a->children && a->children->content ? (const char *)a->children->content : NULL;
}

bool node_has_word(const xmlNode *node, const char *attribute, const char *word)
{
    const char *at = node_attribute(node, attribute);
    size_t n = strlen(word);
    while (at && *at) {
        size_t length = strcspn(at, " \t\r\n");
        if (length == n && strncasecmp(at, word, n) == 0) {
            return true;
        }
        at += length;
        at += strspn(at, " \t\r\n");
    }
    return false;
}

xmlNode *node_next(xmlNode *node, const xmlNode *top, bool over)
{
    /* The children of an entity are its declaration's, and may lead back to it. */
    if (node->children && !over && node->type == XML_ELEMENT_NODE) {
        return node->children;
    }
    while (node && node != top && !node->next) {
        node = node->parent;
    }
    return !node || node == top ? NULL : node->next;
}

static bool is_text(const xmlNode *node)
{
    return (node->type == XML_TEXT_NODE || node->type == XML_CDATA_SECTION_NODE) && node->content;
}

char *node_text(xmlNode *node)
{
    size_t n = 0;
    for (xmlNode *at = node_next(node, node, false); at; at = node_next(at, node, false)) {
        n += is_text(at) ? strlen((char *)at->content) + 1 : 1;
    }
    char *text = memory_new(n + 1, 1), *squeezed = NULL;
    if (text) {
        n = 0;
        for (xmlNode *at = node_next(node, node, false); at; at = node_next(at, node, false)) {
            size_t bytes = is_text(at) ? strlen((char *)at->content) : 0;
            if (bytes > 0) {
                memcpy(text + n, at->content, bytes);
                n += bytes;
            } else if (node_is(at, "br")) {
                text[n++] = ' ';
            }
        }
        squeezed = text_squeezed(text, n);
    }
    memory_free(text);
    return squeezed;
}

/* ---- Elements ---- */

static bool is_one_of(const xmlNode *node, const char *const *names)
{
    while (*names && strcasecmp((const char *)node->name, *names) != 0) {
        names++;
    }
    return *names != NULL;
}

/* What nobody reads out: what is hidden, numbers of notes and pages, and notes where they interrupt. */
static bool is_silent(const xmlNode *node)
{
    static const char *const silent[] = {"head", "script", "style", "svg", "math", "template",
        "noscript", "iframe", "object", "audio", "video", "rp", "rt", "textarea", "select", "button",
        "nav", NULL};
    static const char *const kinds[] = {
        "noteref", "pagebreak", "footnote", "rearnote", "endnote", NULL};
    static const char *const roles[] = {
        "doc-noteref", "doc-pagebreak", "doc-footnote", "doc-endnote", NULL};
    const char *style = node_attribute(node, "style");
    const char *hidden = node_attribute(node, "aria-hidden");
    bool silence = is_one_of(node, silent) || node_attribute(node, "hidden") ||
                   (hidden && strcmp(hidden, "true") == 0) ||
                   (style && (strstr(style, "display:none") || strstr(style, "display: none")));
    for (size_t i = 0; !silence && kinds[i]; i++) {
        silence = node_has_word(node, "epub:type", kinds[i]) || node_has_word(node, "type", kinds[i]);
    }
    for (size_t i = 0; !silence && roles[i]; i++) {
        silence = node_has_word(node, "role", roles[i]);
    }
    return silence;
}

static bool is_block(const xmlNode *node)
{
    static const char *const blocks[] = {"p", "div", "h1", "h2", "h3", "h4", "h5", "h6", "li", "ul",
        "ol", "dl", "dt", "dd", "blockquote", "section", "article", "aside", "header", "footer", "main",
        "figure", "figcaption", "table", "caption", "tr", "td", "th", "pre", "hr", "address", "form",
        "fieldset", "body", "center", "details", "summary", NULL};
    return is_one_of(node, blocks);
}

/* 1 to 6, or 0. */
static int heading_level(const xmlNode *node)
{
    const char *name = (const char *)node->name;
    bool is = (name[0] | 0x20) == 'h' && name[1] >= '1' && name[1] <= '6' && !name[2];
    return is ? name[1] - '0' : 0;
}

/* ---- Pages ---- */

/* The encoding by its first bytes, or what an XML declaration says; NULL: the parser looks for a meta element. */
static const char *encoding_of(const char *bytes, size_t n, char name[64])
{
    const unsigned char *b = (const unsigned char *)bytes;
    if (n >= 2 && ((b[0] == 0xFF && b[1] == 0xFE) || (b[0] == 0xFE && b[1] == 0xFF))) {
        return b[0] == 0xFF ? "UTF-16LE" : "UTF-16BE"; /* "UTF-16" is little-endian for the parser */
    }
    if (text_valid(bytes, n) == n) {
        return "UTF-8";
    }
    char head[256] = "";
    memcpy(head, bytes, n < sizeof head - 1 ? n : sizeof head - 1);
    char *end = strstr(head, "?>"), *said = strstr(head, "encoding=");
    if (!end || !said || said > end) {
        return NULL;
    }
    said += strlen("encoding=") + 1;
    size_t length = strcspn(said, "'\"");
    if (length >= 64) {
        return NULL;
    }
    memcpy(name, said, length);
    name[length] = 0;
    return name;
}

/* A document type with declarations of its own: the parser of HTML would take them for text. Returns their length. */
static size_t declarations(const char *bytes, size_t n)
{
    size_t head = n < 4096 ? n : 4096;
    const char *type = memmem(bytes, head, "<!DOCTYPE", 9);
    const char *close = type ? memchr(type, '>', n - (size_t)(type - bytes)) : NULL;
    const char *open = close ? memchr(type, '[', (size_t)(close - type)) : NULL;
    const char *end = open ? memmem(open, n - (size_t)(open - bytes), "]>", 2) : NULL;
    return end ? (size_t)(end + 2 - bytes) : 0;
}

htmlDocPtr page_parse(struct draft *d, const struct library *l, const char *bytes, size_t n)
{
    const int options = HTML_PARSE_RECOVER | HTML_PARSE_NOERROR | HTML_PARSE_NOWARNING |
                        HTML_PARSE_NONET | HTML_PARSE_COMPACT;
    char name[64];
    if (d->status) {
        return NULL;
    }
    if (n > MOST_PAGE) {
        draft_fail(d, "a page of it has more than %d MB", MOST_PAGE >> 20);
        return NULL;
    }
    const char *encoding = encoding_of(bytes, n, name);
    size_t skipped = declarations(bytes, n);
    l->xmlResetLastError();
    htmlDocPtr doc = l->htmlReadMemory(bytes + skipped, (int)(n - skipped), NULL, encoding, options);
    const xmlError *wrong = l->xmlGetLastError();
    if (wrong && (wrong->code == XML_ERR_NO_MEMORY || wrong->code == XML_ERR_INTERNAL_ERROR)) {
        draft_fail(d, wrong->code == XML_ERR_NO_MEMORY
                          ? "it takes more than 1 GB of memory to read"
                          : "elements stand more than 256 deep in a page of it");
        l->xmlFreeDoc(doc);
        doc = NULL;
    }
    return doc;
}

/* The text of the first element of the name, or NULL. */
static char *first_text(xmlNode *root, bool (*is)(const xmlNode *node))
{
    for (xmlNode *at = root; at; at = node_next(at, root, false)) {
        if (at->type == XML_ELEMENT_NODE && is(at)) {
            char *text = node_text(at);
            if (!text || text_speaks(text, strlen(text))) {
                return text;
            }
            memory_free(text);
        }
    }
    return NULL;
}

static bool is_heading(const xmlNode *node)
{
    return heading_level(node) > 0;
}

static bool is_title(const xmlNode *node)
{
    return node_is(node, "title");
}

static void read_about(struct draft *d, xmlNode *root)
{
    const char *language = node_attribute(root, "lang");
    if (language) {
        draft_set(d, &d->book.language, language, strlen(language));
    }
    for (xmlNode *at = root; at && !node_is(at, "body"); at = node_next(at, root, false)) {
        const char *name = node_is(at, "meta") ? node_attribute(at, "name") : NULL;
        const char *content = name ? node_attribute(at, "content") : NULL;
        if (content && strcasecmp(name, "author") == 0) {
            draft_set(d, &d->book.author, content, strlen(content));
        }
    }
    char *title = first_text(root, is_title);
    if (title) {
        draft_set(d, &d->book.title, title, strlen(title));
    }
    memory_free(title);
}

static const char *name_of(const xmlNode *node, bool *is_anchor)
{
    const char *id = node_attribute(node, "id");
    *is_anchor = !id && node_is(node, "a");
    return id ? id : *is_anchor ? node_attribute(node, "name") : NULL;
}

/* Chapters begin at the page's first words: those whose mark has no place, or one that is not there. */
static void begin_page(struct draft *d, const struct page *page, xmlNode *root)
{
    if (page->chapters == PAGE_WHOLE) {
        char *title = first_text(root, is_heading);
        title = title ? title : first_text(root, is_title);
        draft_chapter(d, title ? title : "", 1, page->source);
        memory_free(title);
    }
    for (xmlNode *at = page->n_marks ? root : NULL; at; at = node_next(at, root, false)) {
        bool anchor;
        const char *id = at->type == XML_ELEMENT_NODE ? name_of(at, &anchor) : NULL;
        for (size_t i = 0; id && i < page->n_marks; i++) {
            page->marks[i].found |= page->marks[i].id && strcmp(page->marks[i].id, id) == 0;
        }
    }
    for (size_t i = 0; i < page->n_marks; i++) {
        if (!page->marks[i].found) {
            draft_chapter(d, page->marks[i].title, page->marks[i].level, page->source);
        }
    }
}

static void begin_at(struct draft *d, const struct page *page, xmlNode *node)
{
    int level = page->chapters == PAGE_HEADINGS ? heading_level(node) : 0;
    if (level == 1 || level == 2) {
        char *title = node_text(node);
        if (title && text_speaks(title, strlen(title))) {
            draft_chapter(d, title, level, page->source);
            if (level == 1 && page->about) {
                draft_set(d, &d->book.title, title, strlen(title));
            }
        }
        memory_free(title);
    }
    bool anchor;
    const char *id = page->n_marks ? name_of(node, &anchor) : NULL;
    for (size_t i = 0; id && i < page->n_marks; i++) {
        struct page_mark *m = &page->marks[i];
        if (m->found && m->id && strcmp(m->id, id) == 0) {
            draft_chapter(d, m->title, m->level, page->source);
            m->id = NULL; /* a second element of this name begins nothing */
        }
    }
}

static void walk(struct draft *d, const struct page *page, xmlNode *root)
{
    const xmlNode *in = NULL; /* the parent of the node before */
    for (xmlNode *at = root; at && d->status == UTTER_OK;) {
        bool over = false;
        /* What ended before this node: a block ends a paragraph. */
        for (const xmlNode *left = in; left && left != at->parent; left = left->parent) {
            if (is_block(left)) {
                draft_paragraph(d);
            }
        }
        in = at->parent;
        if (is_text(at)) {
            draft_text(d, (char *)at->content, strlen((char *)at->content));
        } else if (at->type == XML_ELEMENT_NODE) {
            begin_at(d, page, at);
            over = is_silent(at);
            if (is_block(at)) {
                draft_paragraph(d);
            } else if (node_is(at, "br")) {
                draft_line(d);
            }
            in = over || !at->children ? at->parent : at;
        }
        if (at->type == XML_ELEMENT_NODE && is_block(at) && !at->children) {
            draft_paragraph(d);
        }
        at = node_next(at, root, over);
    }
    draft_paragraph(d);
}

void page_read(struct draft *d, const struct page *page, const char *bytes, size_t n)
{
    htmlDocPtr doc = page_parse(d, page->library, bytes, n);
    xmlNode *root = doc ? page->library->xmlDocGetRootElement(doc) : NULL;
    if (root) {
        if (page->about) {
            read_about(d, root);
        }
        begin_page(d, page, root);
        walk(d, page, root);
    }
    if (doc) {
        page->library->xmlFreeDoc(doc);
    }
}
