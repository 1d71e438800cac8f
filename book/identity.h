/* SPDX-License-Identifier: Apache-2.0
 * SHA-256 of what speech depends on, in hexadecimal: equal names mean equal sound. */
#ifndef BOOK_IDENTITY_H
#define BOOK_IDENTITY_H

#include "base/error.h"

enum { IDENTITY_SIZE = 65 };

/* Of texts one after the other, each with its length; the last is NULL. */
void identity_of_texts(char hex[IDENTITY_SIZE], const char *const *texts);
void identity_of_bytes(char hex[IDENTITY_SIZE], const void *bytes, size_t n);
utter_status identity_of_file(char hex[IDENTITY_SIZE], const char *path, utter_error *error);
/* Of a checkpoint, a folder or one file: names, sizes, and a block of each 16 MB, which differ when weights do.
 * Gigabytes are not read. */
utter_status identity_of_model(char hex[IDENTITY_SIZE], const char *path, utter_error *error);

#endif
