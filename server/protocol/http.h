/* SPDX-License-Identifier: Apache-2.0
 * HTTP/1.1 requests, strictly: a head (request line and fields) and a body in chunks. Pure: bytes in, structs out; no
 * socket, no allocation. What RFC 9112 lets a server refuse is refused: bare line feeds, folded fields, two lengths, a
 * length beside a transfer coding. */
#ifndef SERVER_HTTP_H
#define SERVER_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HTTP_HEAD_BYTES = 16384, HTTP_MAX_FIELDS = 64 };

struct http_field {
    const char *name, *value;
};

/* All strings point into the text that was parsed. */
struct http_head {
    const char *method;
    const char *path;      /* with its escapes resolved */
    const char *query;     /* as sent, "" without one */
    const char *authority; /* of a target http://HOST/PATH, or NULL */
    int minor;             /* 0: HTTP/1.0; 1: HTTP/1.1 or a later one */
    struct http_field fields[HTTP_MAX_FIELDS];
    int n_fields;
    bool keep_alive, chunked, has_length, expects_continue, wants_websocket;
    uint64_t length;   /* of the body, where has_length */
    const char *fault; /* one sentence, where the parse failed */
};

/* Bytes up to and with the empty line that ends a head, 0 when it is not there yet. */
size_t http_head_bytes(const char *bytes, size_t n);
/* Bytes that must still come, at least, before the end of a head that begins so can be there: 1 to 4. */
size_t http_head_needs(const char *bytes, size_t n);

/* Parses the n bytes of a head in place (text[n] is writable too). 0, or the status to answer with. */
int http_head_parse(struct http_head *head, char *text, size_t n);

/* The value of the first field of this name (any case), or NULL. */
const char *http_field(const struct http_head *head, const char *name);
/* The same, NULL where there are several. */
const char *http_only_field(const struct http_head *head, const char *name);
/* Whether one of the fields of this name, each a list with commas, holds this word (any case). */
bool http_has(const struct http_head *head, const char *name, const char *word);
/* Whether a comma-separated field value holds this word (any case). */
bool http_value_has(const char *value, const char *word);
/* Copies the query parameter `name`, without its escapes, into out[size]; false when there is none or it does
 * not fit. */
bool http_query(const struct http_head *head, const char *name, char *out, size_t size);

/* A body in chunks, decoded as it arrives. Zero it before use. */
struct http_chunks {
    int state;
    uint64_t left; /* bytes of the chunk, while reading its data */
    int n_digits, line_bytes;
    char name[20]; /* of the trailer's field, as far as it fits */
    int n_name;
};

enum http_progress { HTTP_MORE, HTTP_DONE, HTTP_BAD };

/* Takes some of in[0..n): *used says how many, *data and *data_bytes are body bytes among them (or 0). HTTP_MORE: call
 * again with the rest. */
enum http_progress http_chunks_feed(struct http_chunks *c, const char *in, size_t n, size_t *used,
    const char **data, size_t *data_bytes);

#endif
