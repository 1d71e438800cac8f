/* SPDX-License-Identifier: Apache-2.0
 * Where text that arrives in pieces may be cut. Pure. */
#ifndef SERVER_SENTENCE_H
#define SERVER_SENTENCE_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the first whole sentence (or clause) of text[0..n), with the white space after it; 0 when it may go on. */
size_t sentence_bytes(const char *text, size_t n, bool clauses);
bool sentence_is_blank(const char *text, size_t n);

#endif
