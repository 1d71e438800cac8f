/* SPDX-License-Identifier: Apache-2.0
 * Where requests begin and end, as the server cuts a stream of bytes: for tests/server/framing.py, which asks h11 the
 * same. Reads streams from standard input, each a length (4 bytes, little endian) and its bytes. Writes a line for
 * each: for every request METHOD BYTES-OF-THE-BODY END, where END counts from the beginning of the stream; at last what
 * came then: `more`, `bad`, `closed` or `switched` (to a WebSocket). */
#include <stdio.h>
#include <string.h>

#include "server/protocol/http.h"

enum { MOST = 1 << 20 };

struct cut {
    const char *at;
    size_t n, used;
};

/* The body behind a head; false: it is not whole, or not right (*end says which). */
static bool take_body(struct cut *c, const struct http_head *head, size_t *body, const char **end)
{
    struct http_chunks chunks = {0};
    *body = head->has_length ? (size_t)head->length : 0;
    if (!head->chunked) {
        *end = "more";
        bool whole = !head->has_length || head->length <= c->n - c->used;
        c->used += whole ? *body : 0;
        return whole;
    }
    for (enum http_progress progress = HTTP_MORE; progress != HTTP_DONE;) {
        const char *data = NULL;
        size_t used = 0, size = 0;
        progress = http_chunks_feed(&chunks, c->at + c->used, c->n - c->used, &used, &data, &size);
        c->used += used;
        *body += size;
        *end = progress == HTTP_BAD ? "bad" : "more";
        if (progress == HTTP_BAD || (progress == HTTP_MORE && used == 0)) {
            return false;
        }
    }
    return true;
}

/* The next request; NULL when it is whole, else how the stream ends. */
static const char *take_request(struct cut *c)
{
    static char head_text[HTTP_HEAD_BYTES + 1];
    struct http_head head;
    const char *end = NULL;
    size_t left = c->n - c->used, limit = left < HTTP_HEAD_BYTES ? left : HTTP_HEAD_BYTES, body = 0;
    size_t n = http_head_bytes(c->at + c->used, limit);
    if (n == 0) {
        return left >= HTTP_HEAD_BYTES ? "bad" : "more";
    }
    memcpy(head_text, c->at + c->used, n);
    head_text[n] = 0;
    c->used += n;
    if (http_head_parse(&head, head_text, n) != 0) {
        return "bad";
    }
    if (!take_body(c, &head, &body, &end)) {
        return end;
    }
    printf("%s %zu %zu ", head.method, body, c->used);
    return head.wants_websocket ? "switched" : head.keep_alive ? NULL : "closed";
}

int main(void)
{
    static char bytes[MOST];
    unsigned char length[4];
    while (fread(length, 1, sizeof length, stdin) == sizeof length) {
        struct cut c = {bytes,
            length[0] | (size_t)length[1] << 8 | (size_t)length[2] << 16 | (size_t)length[3] << 24, 0};
        const char *end = NULL;
        if (c.n > MOST || fread(bytes, 1, c.n, stdin) != c.n) {
            return 1;
        }
        while (!(end = take_request(&c))) {
        }
        puts(end);
    }
    return 0;
}
