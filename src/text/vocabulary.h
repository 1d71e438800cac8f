/* SPDX-License-Identifier: Apache-2.0
 * vocab.json: an object from token to id. Tokens are written in the byte alphabet, in which each byte is
 * one printable character. */
#ifndef TEXT_VOCABULARY_H
#define TEXT_VOCABULARY_H

#include "base/file.h"

struct vocabulary_entry {
    uint32_t offset, bytes; /* in .bytes */
    int32_t id;
};

struct vocabulary {
    char *bytes;                    /* the file, in which each token stands decoded where it was read */
    struct vocabulary_entry *entry; /* [n], in the order of the file */
    size_t n, capacity;
    uint32_t *slot; /* [slot_mask + 1], hash table of index + 1 */
    size_t slot_mask;
    int32_t largest_id;
};

enum { VOCABULARY_ID_LIMIT = 1 << 22 }; /* ids of the family stay far below */

/* Reads vocab.json. All 256 bytes must be tokens; no token and no id may come twice. */
utter_status vocabulary_open(
    struct vocabulary *vocabulary, const char *path, file_reader *read_file, utter_error *error);
void vocabulary_close(struct vocabulary *vocabulary); /* accepts a zeroed one */

/* The index of the entry with these bytes, or -1. */
ptrdiff_t vocabulary_find(const struct vocabulary *vocabulary, const char *text, size_t bytes);
/* Whether the entry `index` has these bytes; an index out of range has none. */
bool vocabulary_is(const struct vocabulary *vocabulary, size_t index, const char *text, size_t bytes);

/* The byte of a character of the byte alphabet, or -1. */
int vocabulary_byte(uint32_t code);

#endif
