/* SPDX-License-Identifier: Apache-2.0
 * The files inside an epub: those of text in memory, no byte of any on a disk. Their names are nothing but names. */
#ifndef BOOK_ZIP_H
#define BOOK_ZIP_H

#include "book/parser/draft.h"
#include "book/parser/library.h"

enum { ZIP_MOST_ENTRIES = 200000, ZIP_MOST_BYTES = 1 << 28 };

struct zip_file {
    char *name; /* normal: no ".", "..", or slash at its beginning */
    char *bytes;
    size_t n;
};

struct zip {
    const char *whole; /* the archive */
    size_t whole_bytes;
    struct zip_file *files; /* in the order of names */
    size_t n_files, room;
    size_t n_entries, bytes; /* seen so far: of any kind; of the files above */
};

/* Reads all files of the archive whose names say that they are pages or lists. */
void zip_read(struct draft *d, const struct library *l, struct zip *zip);
/* Borrowed; NULL: not there. */
const struct zip_file *zip_find(const struct zip *zip, const char *name);
/* One file of any kind, at most `most` bytes; NULL: not there, or too large. Freed with memory_free. */
char *zip_read_one(
    const struct zip *zip, const struct library *l, const char *name, size_t most, size_t *n);

/* The name that a reference from the file `from` means: decoded, normal, without its fragment; *fragment, the
 * caller's as the name, is NULL where there is none. NULL: no memory. */
char *zip_resolve(const char *from, const char *reference, char **fragment);

#endif
