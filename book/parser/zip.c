/* SPDX-License-Identifier: Apache-2.0
 * libarchive over the mapped file; what a bomb would make is bounded in all. */
#include "book/parser/zip.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"

enum { BLOCK = 1 << 16 };

/* Decodes %XX, drops empty parts, "." and "..". In place. */
static void make_normal(char *name)
{
    char *out = name;
    for (const char *at = name; *at; at++) {
        bool two = at[0] == '%' && isxdigit((unsigned char)at[1]) && isxdigit((unsigned char)at[2]);
        const char hex[3] = {two ? at[1] : 0, two ? at[2] : 0, 0};
        long code = strtol(hex, NULL, 16);
        bool coded = code > 0;
        *out++ = coded ? (char)code : *at == '\\' ? '/' : *at;
        at += coded ? 2 : 0;
    }
    *out = 0;
    out = name;
    for (char *at = name; *at;) {
        size_t n = strcspn(at, "/");
        bool up = n == 2 && at[0] == '.' && at[1] == '.', here = n == 0 || (n == 1 && at[0] == '.');
        bool more = at[n] == '/';
        if (up && out > name) {
            do {
                out--;
            } while (out > name && out[-1] != '/');
        } else if (!up && !here) {
            memmove(out, at, n);
            out += n;
            if (more) {
                *out++ = '/';
            }
        }
        at += n + more;
    }
    *out = 0;
}

char *zip_resolve(const char *from, const char *reference, char **fragment)
{
    const char *slash = strrchr(from, '/');
    size_t folder = slash ? (size_t)(slash + 1 - from) : 0, n = strcspn(reference, "#?");
    char *name = memory_new(folder + n + strlen(from) + 1, 1);
    const char *hash = strchr(reference, '#');
    *fragment = name && hash && hash[1] ? memory_string(hash + 1) : NULL;
    if (name && n == 0) {
        strcpy(name, from);
    } else if (name) {
        memcpy(name, from, folder);
        memcpy(name + folder, reference, n);
        make_normal(name);
    }
    return name;
}

static bool is_page(const char *name)
{
    static const char *const endings[] = {
        ".xhtml", ".html", ".htm", ".xht", ".xml", ".opf", ".ncx", NULL};
    const char *dot = strrchr(name, '.');
    size_t i = 0;
    while (dot && endings[i] && strcasecmp(dot, endings[i]) != 0) {
        i++;
    }
    return dot && endings[i];
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct zip_file *)a)->name, ((const struct zip_file *)b)->name);
}

const struct zip_file *zip_find(const struct zip *zip, const char *name)
{
    struct zip_file wanted = {.name = (char *)name};
    return zip->n_files ? bsearch(&wanted, zip->files, zip->n_files, sizeof wanted, by_name) : NULL;
}

/* The bytes of the entry at hand; at most `most`. */
static char *read_entry(const struct library *l, struct archive *a, size_t most, size_t *n)
{
    char *bytes = NULL;
    size_t room = 0;
    *n = 0;
    for (;;) {
        if (*n + BLOCK + 1 > room) {
            size_t more = room + room / 2 + 2 * BLOCK;
            char *grown = memory_resize(bytes, room, more, 1);
            if (!grown) {
                break;
            }
            bytes = grown;
            room = more;
        }
        la_ssize_t got = l->archive_read_data(a, bytes + *n, BLOCK);
        if (got == 0) {
            return bytes;
        }
        if (got < 0 || *n + (size_t)got > most) {
            break;
        }
        *n += (size_t)got;
    }
    memory_free(bytes);
    return NULL;
}

static struct archive *open_archive(const struct zip *zip, const struct library *l)
{
    struct archive *a = l->archive_read_new();
    if (a && (l->archive_read_support_format_zip_seekable(a) != ARCHIVE_OK ||
                 l->archive_read_open_memory(a, zip->whole, zip->whole_bytes) != ARCHIVE_OK)) {
        l->archive_read_free(a);
        a = NULL;
    }
    return a;
}

static char *entry_name(const struct library *l, struct archive_entry *entry)
{
    const char *name = l->archive_entry_pathname_utf8(entry);
    name = name ? name : l->archive_entry_pathname(entry);
    char *copy = memory_string(name ? name : "");
    if (copy) {
        make_normal(copy);
    }
    return copy;
}

static bool add(struct zip *zip, struct zip_file file)
{
    if (zip->n_files == zip->room) {
        size_t room = zip->room ? 2 * zip->room : 64;
        struct zip_file *grown = memory_resize(zip->files, zip->room, room, sizeof *grown);
        if (!grown) {
            return false;
        }
        zip->files = grown;
        zip->room = room;
    }
    zip->files[zip->n_files++] = file;
    return true;
}

void zip_read(struct draft *d, const struct library *l, struct zip *zip)
{
    struct archive *a = open_archive(zip, l);
    struct archive_entry *entry;
    int status = a ? ARCHIVE_OK : ARCHIVE_FATAL;
    while (a && d->status == UTTER_OK &&
           (status = l->archive_read_next_header(a, &entry)) >= ARCHIVE_WARN && status != ARCHIVE_EOF) {
        struct zip_file file = {.name = entry_name(l, entry)};
        if (++zip->n_entries > ZIP_MOST_ENTRIES) {
            draft_fail(d, "it holds more than %d files", ZIP_MOST_ENTRIES);
        } else if (file.name && is_page(file.name) && !l->archive_entry_is_encrypted(entry)) {
            file.bytes = read_entry(l, a, ZIP_MOST_BYTES - zip->bytes, &file.n);
            if (!file.bytes) {
                const char *why = l->archive_error_string(a);
                draft_fail(d, "its file %.80s %s%.100s", file.name,
                    why ? "is damaged: " : "makes the pages larger than 256 MB", why ? why : "");
            }
        }
        zip->bytes += file.n;
        if (!file.bytes || !add(zip, file)) {
            memory_free(file.name);
            memory_free(file.bytes);
        }
    }
    if (d->status == UTTER_OK && status < ARCHIVE_WARN) {
        const char *why = a ? l->archive_error_string(a) : NULL;
        draft_fail(d, "it is not a whole epub%s%.200s", why ? ": " : "", why ? why : "");
    }
    if (a) {
        l->archive_read_free(a);
    }
    if (zip->n_files > 0) {
        qsort(zip->files, zip->n_files, sizeof *zip->files, by_name);
    }
}

char *zip_read_one(
    const struct zip *zip, const struct library *l, const char *name, size_t most, size_t *n)
{
    struct archive *a = open_archive(zip, l);
    struct archive_entry *entry;
    char *bytes = NULL;
    int status = ARCHIVE_OK;
    while (a && !bytes && (status = l->archive_read_next_header(a, &entry)) >= ARCHIVE_WARN &&
           status != ARCHIVE_EOF) {
        char *here = entry_name(l, entry);
        bool same = here && strcmp(here, name) == 0;
        memory_free(here);
        if (same) {
            bytes = read_entry(l, a, most, n);
            break;
        }
    }
    if (a) {
        l->archive_read_free(a);
    }
    return bytes;
}
