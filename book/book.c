/* SPDX-License-Identifier: Apache-2.0
 * Which kind of file it is; the way of a book out of the jail. */
#include "book/book.h"

#include <errno.h>
#include <fcntl.h>
#include <iconv.h>
#include <locale.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "book/parser/draft.h"
#include "book/parser/epub.h"
#include "book/parser/jail.h"
#include "book/parser/library.h"
#include "book/parser/page.h"
#include "book/parser/plain.h"

enum { MOST_FILE = 1 << 30, MOST_TEXT = 1 << 26 };

enum kind { KIND_TEXT, KIND_MARKDOWN, KIND_HTML, KIND_EPUB, KIND_SUBTITLES };

/* What the two ends of the pipe share */
static const char says_book[] = "book", says_wrong[] = "wrong", says_lacks[] = "lacks";

/* ---- In the jail ---- */

static struct library library;
static const char *lacking;

/* glibc finds its tables of encodings in files: what is open stays usable. The names in an archive come through the
 * locale: in one without letters beyond ASCII such names are lost. */
static void prepare(void)
{
    static const char *const encodings[] = {"UTF-16", "WINDOWS-1250", "WINDOWS-1251", "WINDOWS-1252",
        "KOI8-R", "GB18030", "GBK", "GB2312", "BIG5", "SHIFT_JIS", "EUC-JP", "ISO-2022-JP", "EUC-KR",
        "ISO-8859-2", "ISO-8859-5", "ISO-8859-15", "ASCII"};
    for (size_t i = 0; i < sizeof encodings / sizeof *encodings; i++) {
        (void)iconv_open("UTF-8", encodings[i]);
        (void)iconv_open(encodings[i], "UTF-8");
    }
    (void)setlocale(LC_CTYPE, "C.UTF-8");
    lacking = library_books(&library);
}

static enum kind kind_of(const char *name, const char *bytes, size_t n)
{
    const char *dot = strrchr(name, '.');
    const char *ending = dot ? dot + 1 : "";
    static const struct {
        const char *ending;
        enum kind kind;
    } kinds[] = {{"epub", KIND_EPUB}, {"html", KIND_HTML}, {"htm", KIND_HTML}, {"xhtml", KIND_HTML},
        {"md", KIND_MARKDOWN}, {"markdown", KIND_MARKDOWN}, {"srt", KIND_SUBTITLES},
        {"vtt", KIND_SUBTITLES}};
    if (n >= 4 && memcmp(bytes, "PK\3\4", 4) == 0) {
        return KIND_EPUB;
    }
    if (n >= 6 && memcmp(bytes, "WEBVTT", 6) == 0) {
        return KIND_SUBTITLES;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcasecmp(ending, kinds[i].ending) == 0) {
            return kinds[i].kind;
        }
    }
    return KIND_TEXT;
}

/* What people try that is no text. NULL: it may be one. */
static const char *what_else(const char *bytes, size_t n)
{
    return n >= 5 && memcmp(bytes, "%PDF-", 5) == 0 ? "a PDF (pdftotext FILE makes a text of it)"
           : n >= 68 && memcmp(bytes + 60, "BOOKMOBI", 8) == 0
               ? "a Kindle book (ebook-convert of Calibre makes an epub of it)"
           : memchr(bytes, 0, n < 4096 ? n : 4096) ? "no text"
                                                   : NULL;
}

static bool is_wide(const char *bytes, size_t n)
{
    return n >= 2 && (memcmp(bytes, "\xFF\xFE", 2) == 0 || memcmp(bytes, "\xFE\xFF", 2) == 0);
}

/* UTF-16 with its mark becomes UTF-8; everything else must be that. */
static const char *to_utf8(struct draft *d, const char *bytes, size_t *n)
{
    if (!is_wide(bytes, *n)) {
        size_t good = text_valid(bytes, *n);
        if (good < *n) {
            draft_fail(d, "it is not UTF-8 at byte %zu (iconv -f ENCODING -t UTF-8 makes it so)", good);
        }
        return bytes;
    }
    size_t room = 2 * *n + 4, left = *n, free_bytes = room;
    char *in = (char *)bytes, *made = memory_new(room, 1), *out = made;
    iconv_t converter = iconv_open("UTF-8", "UTF-16");
    if (!made || converter == (iconv_t)-1 ||
        iconv(converter, &in, &left, &out, &free_bytes) == (size_t)-1) {
        draft_fail(d, "it is not whole UTF-16");
    }
    *n = room - free_bytes;
    return made;
}

static void read_text(struct draft *d, enum kind kind, const char *bytes, size_t n)
{
    struct page page = {.library = &library, .chapters = PAGE_HEADINGS, .source = "", .about = true};
    const char *other = is_wide(bytes, n) ? NULL : what_else(bytes, n);
    if (other) {
        draft_fail(d, "it is %s", other);
    } else if (n > MOST_TEXT) {
        draft_fail(d, "it is larger than %d MB", MOST_TEXT >> 20);
    } else if (kind != KIND_HTML) {
        bytes = to_utf8(d, bytes, &n);
    }
    if (d->status) {
        return;
    }
    if (kind == KIND_HTML) {
        page_read(d, &page, bytes, n);
    } else if (kind == KIND_MARKDOWN) {
        markdown_read(d, &library, bytes, n);
    } else if (kind == KIND_SUBTITLES) {
        subtitles_read(d, bytes, n);
    } else {
        plain_read(d, bytes, n);
    }
}

static bool tell(const char *text, size_t n)
{
    uint64_t bytes = n;
    return jail_write(&bytes, sizeof bytes) && jail_write(text, n);
}

static bool tell_string(const char *text)
{
    return tell(text ? text : "", text ? strlen(text) : 0);
}

static void tell_book(const struct book *b)
{
    uint64_t n = b->n_chapters, timed = b->timed;
    bool good = tell_string(says_book) && tell_string(b->title) && tell_string(b->author) &&
                tell_string(b->language) && tell((const char *)b->cover, b->cover_bytes) &&
                jail_write(&timed, sizeof timed) && jail_write(&n, sizeof n);
    for (size_t i = 0; i < b->n_chapters && good; i++) {
        const struct chapter *c = &b->chapters[i];
        uint64_t level = (uint64_t)c->level;
        good = tell_string(c->title) && tell_string(c->text) && tell_string(c->source) &&
               jail_write(&level, sizeof level) && jail_write(&c->begin_s, sizeof c->begin_s) &&
               jail_write(&c->end_s, sizeof c->end_s);
    }
}

static void parse(const struct jail_work *work, const char *bytes, size_t n)
{
    struct draft d = {.name = work->name};
    enum kind kind = kind_of(work->name, bytes, n);
    if (lacking && kind != KIND_TEXT && kind != KIND_SUBTITLES) {
        (void)(tell_string(says_lacks) && tell_string(lacking));
        return;
    }
    if (kind == KIND_EPUB) {
        epub_read(&d, &library, bytes, n);
    } else {
        read_text(&d, kind, bytes, n);
    }
    if (d.status == UTTER_OK) {
        draft_finish(&d);
    }
    if (d.status == UTTER_OK) {
        tell_book(&d.book);
    } else {
        (void)(tell_string(says_wrong) && tell_string(d.error.text));
    }
}

/* ---- Outside, where every byte may be a lie ---- */

struct heard {
    const char *at;
    size_t left;
    bool good;
};

static void hear(struct heard *h, void *to, size_t n)
{
    h->good = h->good && h->left >= n;
    if (h->good) {
        memcpy(to, h->at, n);
        h->at += n;
        h->left -= n;
    }
}

/* The next string or bytes; the caller's. Zeros in a string end it. */
static char *hear_string(struct heard *h, size_t *n)
{
    uint64_t bytes = 0;
    hear(h, &bytes, sizeof bytes);
    h->good = h->good && bytes <= h->left;
    char *text = h->good ? memory_string_n(h->at, (size_t)bytes) : NULL;
    h->good = h->good && text;
    if (h->good) {
        h->at += bytes;
        h->left -= (size_t)bytes;
        *n = (size_t)bytes;
    }
    return text;
}

static void hear_book(struct heard *h, struct book *b)
{
    enum { LEAST_CHAPTER = 48 };
    size_t n;
    uint64_t n_chapters = 0, timed = 0, level = 0;
    b->title = hear_string(h, &n);
    b->author = hear_string(h, &n);
    b->language = hear_string(h, &n);
    b->cover = (unsigned char *)hear_string(h, &b->cover_bytes);
    hear(h, &timed, sizeof timed);
    hear(h, &n_chapters, sizeof n_chapters);
    b->timed = timed != 0;
    h->good = h->good && n_chapters > 0 && n_chapters <= h->left / LEAST_CHAPTER;
    b->chapters = h->good ? memory_new((size_t)n_chapters, sizeof *b->chapters) : NULL;
    h->good = h->good && b->chapters;
    for (uint64_t i = 0; i < n_chapters && h->good; i++) {
        struct chapter *c = &b->chapters[b->n_chapters++];
        c->title = hear_string(h, &n);
        c->text = hear_string(h, &n);
        c->source = hear_string(h, &n);
        hear(h, &level, sizeof level);
        hear(h, &c->begin_s, sizeof c->begin_s);
        hear(h, &c->end_s, sizeof c->end_s);
        c->level = level >= 1 && level <= 9 ? (int)level : 1;
        h->good = h->good && c->begin_s >= 0 && c->end_s >= c->begin_s && c->end_s <= BOOK_MOST_S &&
                  text_valid(c->text, strlen(c->text)) == strlen(c->text);
    }
    if (h->good && b->cover_bytes == 0) {
        memory_free(b->cover);
        b->cover = NULL;
    }
}

static utter_status hear_answer(
    struct book *book, const char *path, const char *bytes, size_t n, utter_error *error)
{
    struct heard h = {bytes, n, true};
    size_t length;
    char quoted[400];
    char *what = hear_string(&h, &length), *why = NULL;
    bool is_book = h.good && strcmp(what, says_book) == 0,
         lacks = h.good && strcmp(what, says_lacks) == 0;
    memory_free(what);
    if (is_book) {
        hear_book(&h, book);
        if (h.good) {
            return UTTER_OK;
        }
        book_close(book);
    } else if (h.good) {
        why = hear_string(&h, &length);
    }
    if (lacks && why) {
        error_set(error, UTTER_E_FILE,
            "%s: a book of this kind needs %s, which is not here (apt-get install %s)", path,
            error_quote(quoted, sizeof quoted, why, strlen(why)), quoted);
    } else {
        error_set(error, UTTER_E_FILE, "%s%s", why ? "" : path,
            why ? error_quote(quoted, sizeof quoted, why, strlen(why))
                : ": cannot be read: its reader was broken");
    }
    memory_free(why);
    return UTTER_E_FILE;
}

utter_status book_open(struct book *book, const char *path, utter_error *error)
{
    struct stat about;
    struct jail_work work = {prepare, parse, path};
    char *answer = NULL;
    size_t n = 0;
    *book = (struct book){0};
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0 || fstat(file, &about) != 0) {
        return file_error(error, path, "read", errno);
    }
    utter_status status = !S_ISREG(about.st_mode)
                              ? error_set(error, UTTER_E_FILE, "%s: a book is a file", path)
                          : about.st_size > MOST_FILE ? file_too_large(error, path, MOST_FILE)
                                                      : jail_run(&work, file, &answer, &n, error);
    close(file);
    if (status == UTTER_OK) {
        status = hear_answer(book, path, answer, n, error);
    }
    memory_free(answer);
    return status;
}
