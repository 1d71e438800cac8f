/* SPDX-License-Identifier: Apache-2.0
 * An archive for tests: files as they are, none of them packed. */
#ifndef TESTS_BOOK_ZIP_H
#define TESTS_BOOK_ZIP_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct packed {
    const char *name, *content;
    size_t n; /* 0: up to a zero */
};

static inline uint32_t zip_crc(const unsigned char *bytes, size_t n)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < n; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
        }
    }
    return ~crc;
}

static inline char *zip_put(char *at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        *at++ = (char)(value >> 8 * i);
    }
    return at;
}

/* What both heads of a file have: version, flags (names are UTF-8), method, time, sizes, length of the name. */
static inline char *zip_put_head(char *at, const struct packed *file, size_t n)
{
    at = zip_put(at, 20, 2);
    at = zip_put(at, 1 << 11, 2);
    at = zip_put(at, 0, 2);
    at = zip_put(at, 0x58210000, 4);
    at = zip_put(at, zip_crc((const unsigned char *)file->content, n), 4);
    at = zip_put(at, (uint32_t)n, 4);
    at = zip_put(at, (uint32_t)n, 4);
    at = zip_put(at, (uint32_t)strlen(file->name), 2);
    return zip_put(at, 0, 2);
}

/* The archive of n_files, to be freed; *bytes is its length. */
static inline char *zip_make(const struct packed *files, size_t n_files, size_t *bytes)
{
    size_t room = 22;
    for (size_t i = 0; i < n_files; i++) {
        room += 76 + 2 * strlen(files[i].name) + (files[i].n ? files[i].n : strlen(files[i].content));
    }
    char *whole = calloc(room, 1), *at = whole;
    uint32_t *places = calloc(n_files + 1, sizeof *places);
    for (size_t i = 0; i < n_files; i++) {
        size_t n = files[i].n ? files[i].n : strlen(files[i].content), name = strlen(files[i].name);
        places[i] = (uint32_t)(at - whole);
        at = zip_put_head(zip_put(at, 0x04034b50, 4), &files[i], n);
        memcpy(at, files[i].name, name);
        memcpy(at + name, files[i].content, n);
        at += name + n;
    }
    const uint32_t list = (uint32_t)(at - whole);
    for (size_t i = 0; i < n_files; i++) {
        size_t n = files[i].n ? files[i].n : strlen(files[i].content), name = strlen(files[i].name);
        at = zip_put_head(zip_put(zip_put(at, 0x02014b50, 4), 20, 2), &files[i], n);
        at = zip_put(zip_put(zip_put(at, 0, 6), 0, 4), places[i], 4);
        memcpy(at, files[i].name, name);
        at += name;
    }
    const uint32_t list_bytes = (uint32_t)(at - whole) - list;
    at = zip_put(zip_put(at, 0x06054b50, 4), 0, 4);
    at = zip_put(zip_put(at, (uint32_t)n_files, 2), (uint32_t)n_files, 2);
    at = zip_put(zip_put(zip_put(at, list_bytes, 4), list, 4), 0, 2);
    free(places);
    *bytes = (size_t)(at - whole);
    return whole;
}

#endif
