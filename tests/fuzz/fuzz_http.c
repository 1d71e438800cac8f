/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as an HTTP request: the head, then the rest as a body in chunks. However the chunks are cut, the body is
 * the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "server/protocol/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { MAX_BODY = 8192 };

/* Decodes in pieces of `step` bytes; returns the progress at the end, the body in out. */
static enum http_progress decode(const char *in, size_t n, size_t step, char *out, size_t *n_out)
{
    struct http_chunks chunks = {0};
    enum http_progress progress = HTTP_MORE;
    *n_out = 0;
    for (size_t at = 0; at < n && progress == HTTP_MORE;) {
        size_t used = 0, size = 0, piece = n - at < step ? n - at : step;
        const char *data = NULL;
        progress = http_chunks_feed(&chunks, in + at, piece, &used, &data, &size);
        if (used > piece || size > used || (used == 0 && progress == HTTP_MORE)) {
            abort();
        }
        if (size && *n_out + size <= MAX_BODY) {
            memcpy(out + *n_out, data, size);
        }
        *n_out += size;
        at += used;
    }
    return progress;
}

static void check_head(struct http_head *head)
{
    char value[64];
    if (head->method[0] == 0 || head->path[0] != '/' || head->n_fields > HTTP_MAX_FIELDS ||
        (head->chunked && head->has_length)) {
        abort();
    }
    for (int i = 0; i < head->n_fields; i++) {
        if (!http_field(head, head->fields[i].name) || strpbrk(head->fields[i].value, "\r\n")) {
            abort();
        }
        http_value_has(head->fields[i].value, "close");
    }
    http_query(head, "api_key", value, sizeof value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static char one[MAX_BODY], other[MAX_BODY];
    const char *text = (const char *)data;
    size_t n = http_head_bytes(text, bytes), n_one, n_other;
    for (size_t i = 0; i < n; i++) {
        if (http_head_needs(text, i) > n - i) {
            abort();
        }
    }
    if (n) {
        struct http_head head;
        char *copy = malloc(n + 1);
        memcpy(copy, text, n);
        copy[n] = 0;
        int status = http_head_parse(&head, copy, n);
        if ((status == 0) != (head.fault == NULL)) {
            abort();
        }
        if (status == 0) {
            check_head(&head);
        }
        free(copy);
    }
    enum http_progress a = decode(text + n, bytes - n, 1, one, &n_one);
    enum http_progress b = decode(text + n, bytes - n, 4096, other, &n_other);
    if (a != b || n_one != n_other || (n_one <= MAX_BODY && memcmp(one, other, n_one) != 0)) {
        abort();
    }
    return 0;
}
