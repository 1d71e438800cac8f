/* SPDX-License-Identifier: Apache-2.0
 * A seal: one hash over a whole safetensors file, kept in its own metadata under "hash" as 16 hex digits,
 * which are taken as zeros while hashing. It finds damage, not malice. XXH64: every single flipped bit
 * changes it. Files that this program writes for itself are sealed. */
#ifndef WEIGHTS_SEAL_H
#define WEIGHTS_SEAL_H

#include "base/error.h"

/* Metadata key and the value to give to tensor_file_write, which then puts the hash in its place. */
#define SEAL_KEY "hash"
#define SEAL_EMPTY "0000000000000000"
enum { SEAL_DIGITS = 16 };

/* Where the digits stand in the first `bytes` bytes of a file (length and header); 0: nowhere. */
size_t seal_find(const void *file, size_t bytes);
/* A number as digits[SEAL_DIGITS], without a final zero. */
void seal_digits(char *digits, uint64_t hash);

/* Maps the file and compares. UTTER_E_FILE when it is damaged, cut short, or has no seal. */
utter_status seal_check(const char *path, utter_error *error);
/* The same of a file that is mapped already: what was checked is what is read then. `path` for the message. */
struct file_map;
utter_status seal_check_map(const struct file_map *map, const char *path, utter_error *error);

#endif
