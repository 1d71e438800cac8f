/* SPDX-License-Identifier: Apache-2.0
 * Bytes as base64 in JSON, and back. Pure but for memory. */
#ifndef SERVER_BASE64_H
#define SERVER_BASE64_H

#include <jansson.h>

#include "server/protocol/wire.h"

/* A JSON string, or NULL when out of memory. */
json_t *base64_write(const void *bytes, size_t n);
/* The letters alone, for JSON that is written piece by piece: a writer of JSON would look at each of them. */
void base64_put(struct wire_out *out, const void *bytes, size_t n);
/* Adds the bytes of a data URL, or of plain base64, to `out`. False: it is no base64, or memory lacks (out->failed). */
bool base64_read(const char *text, struct wire_out *out);

#endif
