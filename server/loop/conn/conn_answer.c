/* SPDX-License-Identifier: Apache-2.0
 * Writing: answers whole or in pieces, and WebSocket frames. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"
#include "server/loop/conn/conn_parts.h"
#include "server/loop/log.h"

static const struct {
    int status;
    const char *text;
} reasons[] = {{101, "Switching Protocols"}, {200, "OK"}, {201, "Created"}, {204, "No Content"},
    {400, "Bad Request"}, {401, "Unauthorized"}, {403, "Forbidden"}, {404, "Not Found"},
    {405, "Method Not Allowed"}, {408, "Request Timeout"}, {409, "Conflict"}, {411, "Length Required"},
    {413, "Content Too Large"}, {415, "Unsupported Media Type"}, {417, "Expectation Failed"},
    {426, "Upgrade Required"}, {429, "Too Many Requests"}, {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"}, {501, "Not Implemented"}, {503, "Service Unavailable"},
    {505, "HTTP Version Not Supported"}, {507, "Insufficient Storage"}};

static const char *reason_of(int status)
{
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        if (reasons[i].status == status) {
            return reasons[i].text;
        }
    }
    return "Status";
}

static struct evbuffer *out_of(const struct conn *c)
{
    return bufferevent_get_output(c->bev);
}

size_t conn_unsent(const struct conn *c)
{
    return c->unsent;
}

/* ---- Without memory ---- */

/* What can be said without any: straight to the kernel. */
void conn_turn_away(evutil_socket_t socket)
{
    static const char words[] =
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nConnection: close\r\n"
        "Retry-After: 1\r\nContent-Length: 91\r\n\r\n"
        "{\"error\":{\"message\":\"there is no room\",\"type\":\"overloaded_error\",\"param\":null,"
        "\"code\":null}}";
    char unread[4096]; /* a close would reset the connection for it, and with that the answer */
    (void)!recv(socket, unread, sizeof unread, MSG_DONTWAIT);
    (void)!send(
        socket, words, sizeof words - 1, MSG_DONTWAIT | MSG_NOSIGNAL); /* else it sees the end */
}

void conn_starve(struct conn *c)
{
    if (!c->starved && !c->begun && conn_unsent(c) == 0) {
        conn_turn_away(bufferevent_getfd(c->bev));
    }
    c->starved = true;
}

static void put(struct conn *c, const void *bytes, size_t n)
{
    if (!c->starved && evbuffer_add(out_of(c), bytes, n) != 0) {
        conn_starve(c);
    }
    c->begun = true;
}

__attribute__((format(printf, 2, 3))) static void put_text(struct conn *c, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    if (!c->starved && evbuffer_add_vprintf(out_of(c), format, list) < 0) {
        conn_starve(c);
    }
    va_end(list);
    c->begun = true;
}

/* ---- Answers ---- */

static void write_head(struct conn *c, int status, const char *type, const char *more)
{
    put_text(c, "HTTP/1.1 %d %s\r\nServer: utter/%s\r\nx-request-id: %s\r\n", status, reason_of(status),
        utter_version_text(), c->request_id);
    if (type) {
        put_text(c, "Content-Type: %s\r\n", type);
    }
    put_text(c,
        "Cache-Control: no-cache\r\nX-Accel-Buffering: no\r\nX-Content-Type-Options: nosniff\r\n"
        "Connection: %s\r\n%s",
        c->keep_alive && !c->server->draining ? "keep-alive" : "close", more ? more : "");
}

void conn_answer_more(
    struct conn *c, int status, const char *type, const char *more, const void *body, size_t n)
{
    bool head_only = strcmp(c->head.method, "HEAD") == 0;
    write_head(c, status, type, more);
    put_text(c, "Content-Length: %zu\r\n\r\n", n);
    if (n && !head_only) {
        put(c, body, n);
    }
    conn_answered(c);
}

void conn_answer(struct conn *c, int status, const char *type, const void *body, size_t n)
{
    conn_answer_more(c, status, type, NULL, body, n);
}

static void answer_json(struct conn *c, int status, const char *more, json_t *json)
{
    char *text = json_text_write(json, JSON_COMPACT | JSON_REAL_PRECISION(9));
    json_decref(json);
    if (!text) {
        conn_answer(c, 503, "application/json", "{}", 2);
        return;
    }
    conn_answer_more(c, status, "application/json", more, text, strlen(text));
    memory_plain_free(text);
}

void conn_answer_json(struct conn *c, int status, json_t *json)
{
    answer_json(c, status, NULL, json);
}

void conn_refuse(struct conn *c, const struct refusal *r)
{
    char more[256] = "", path[256]; /* the query may hold a key */
    error_quote(path, sizeof path, c->head.path, strlen(c->head.path));
    log_event(c->server, "refused",
        json_pack("{s:s,s:s,s:s*,s:s*,s:s,s:s,s:i,s:s?,s:s}", "request", c->request_id, "client",
            c->address, "trace_id", trace_id(&c->trace), "span_id", trace_span(&c->trace), "method",
            c->head.method, "path", path, "status", r->status, "param", r->param, "error", r->message));
    int n = 0;
    if (r->status == 401) {
        n += snprintf(more + n, sizeof more - (size_t)n, "WWW-Authenticate: Bearer\r\n");
    }
    if (r->status == 426) {
        n += snprintf(
            more + n, sizeof more - (size_t)n, "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n");
    }
    if (r->status == 405) {
        n += snprintf(more + n, sizeof more - (size_t)n, "Allow: %s\r\n", r->allow);
    }
    if (r->retry_ms > 0) {
        n += snprintf(more + n, sizeof more - (size_t)n, "Retry-After: %d\r\nretry-after-ms: %d\r\n",
            refusal_retry_s(r->retry_ms), r->retry_ms);
    }
    if (r->never_retry) {
        snprintf(more + n, sizeof more - (size_t)n, "x-should-retry: false\r\n");
    }
    answer_json(c, r->status, more, c->refusal_json ? c->refusal_json(r) : refusal_json(r));
}

void conn_begin(struct conn *c, int status, const char *type, const char *more)
{
    c->chunked_answer = c->head.minor == 1;
    c->keep_alive = c->keep_alive && c->chunked_answer;
    write_head(c, status, type, more);
    put_text(c, "%s\r\n", c->chunked_answer ? "Transfer-Encoding: chunked\r\n" : "");
}

void conn_begin_whole(struct conn *c, int status, const char *type, const char *more, size_t n)
{
    c->chunked_answer = false;
    write_head(c, status, type, more);
    put_text(c, "Content-Length: %zu\r\n\r\n", n);
}

void conn_piece(struct conn *c, const void *bytes, size_t n)
{
    if (n == 0) {
        return;
    }
    if (c->chunked_answer) {
        put_text(c, "%zx\r\n", n);
    }
    put(c, bytes, n);
    if (c->chunked_answer) {
        put(c, "\r\n", 2);
    }
}

void conn_finish(struct conn *c, const char *trailer)
{
    if (c->chunked_answer) {
        put_text(c, "0\r\n%s\r\n", trailer ? trailer : "");
    }
    conn_answered(c);
}

void conn_break(struct conn *c)
{
    c->keep_alive = false;
    conn_answered(c);
}

/* ---- WebSocket ---- */

bool conn_handshake(struct conn *c, char accept[29])
{
    struct refusal r;
    const char *key = http_field(&c->head, "Sec-WebSocket-Key"),
               *version = http_field(&c->head, "Sec-WebSocket-Version");
    if (!c->head.wants_websocket) {
        refuse(&r, 426, NULL, "this path speaks WebSocket only");
    } else if (!version || strcmp(version, "13") != 0) {
        refuse(&r, 426, NULL, "only version 13 of WebSocket is spoken here");
    } else if (strcmp(c->head.method, "GET") != 0 || !key || !websocket_accept(accept, key)) {
        refuse(&r, 400, NULL, "the WebSocket handshake is not that of version 13");
    } else if (c->server->draining) {
        refuse(&r, 503, NULL, "the server is about to stop");
    } else {
        return true;
    }
    conn_refuse(c, &r);
    return false;
}

void conn_upgrade(struct conn *c, const char *accept, size_t message_limit)
{
    c->socket = memory_new(1, sizeof *c->socket);
    if (!c->socket) {
        struct refusal r;
        refuse(&r, 503, NULL, "out of memory");
        conn_refuse(c, &r);
        return;
    }
    c->socket->limit = message_limit;
    bufferevent_setwatermark(c->bev, EV_READ, 0, message_limit + 64);
    conn_enter(c, CONN_SOCKET);
    c->deadline = clock_seconds() + WS_CONFIG_S;
    put_text(c,
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Accept: %s\r\nx-request-id: %s\r\n\r\n",
        accept, c->request_id);
}

void conn_send(struct conn *c, enum websocket_kind kind, const void *bytes, size_t n)
{
    uint8_t header[10];
    size_t header_bytes = websocket_header(header, kind, n);
    if (c->state == CONN_SOCKET) {
        put(c, header, header_bytes);
        put(c, bytes, n);
    }
}

void conn_send_json(struct conn *c, json_t *json)
{
    char *text = json_text_write(json, JSON_COMPACT | JSON_REAL_PRECISION(9));
    json_decref(json);
    if (text) {
        conn_send(c, WEBSOCKET_TEXT, text, strlen(text));
        memory_plain_free(text);
    } else {
        conn_starve(c);
    }
}

void conn_close_socket(struct conn *c, int code, const char *reason)
{
    uint8_t body[125] = {(uint8_t)(code >> 8), (uint8_t)code};
    size_t n = strlen(reason) < sizeof body - 2 ? strlen(reason) : 0;
    const struct conn_owner *owner = c->owner;
    memcpy(body + 2, reason, n);
    conn_send(c, WEBSOCKET_CLOSE, body, n + 2);
    c->owner = NULL;
    conn_enter(c, CONN_CLOSING);
    c->deadline = clock_seconds() + STALL_S;
    if (owner) {
        owner->gone(c->user);
    }
    conn_wrote(c);
}
