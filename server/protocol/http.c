/* SPDX-License-Identifier: Apache-2.0
 * The HTTP/1.1 grammar that this server takes. */
#include "server/protocol/http.h"

#include <string.h>
#include <strings.h>

size_t http_head_bytes(const char *bytes, size_t n)
{
    const char *end = n >= 4 ? memmem(bytes, n, "\r\n\r\n", 4) : NULL;
    return end ? (size_t)(end - bytes) + 4 : 0;
}

size_t http_head_needs(const char *bytes, size_t n)
{
    size_t have = 3;
    while (have > n || memcmp(bytes + n - have, "\r\n\r", have) != 0) {
        have--;
    }
    return 4 - have;
}

static bool is_token(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c && strchr("!#$%&'*+-.^_`|~", c));
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Replaces %XX in place up to `end`; false for a broken escape or a NUL. Returns the new end in *out. */
static bool unescape(char *text, const char *end, char **out, bool plus_is_blank)
{
    char *to = text;
    for (const char *from = text; from < end; from++) {
        if (*from == '%') {
            int high = end - from > 2 ? digit_of(from[1]) : -1,
                low = high >= 0 ? digit_of(from[2]) : -1;
            if (low < 0 || high * 16 + low == 0) {
                return false;
            }
            *to++ = (char)(high * 16 + low);
            from += 2;
        } else {
            *to++ = plus_is_blank && *from == '+' ? ' ' : *from;
        }
    }
    *out = to;
    return true;
}

static int fault(struct http_head *head, int status, const char *why)
{
    head->fault = why;
    return status;
}

/* A target may name the host too: http://HOST/PATH. The host is moved to the front of the target, where the scheme was,
 * and ended by a zero; returns the path. */
static char *skip_authority(struct http_head *head, char *target)
{
    static const char scheme[] = "http://";
    const size_t n_scheme = sizeof scheme - 1;
    if (strncasecmp(target, scheme, n_scheme) != 0) {
        return target;
    }
    size_t n = strcspn(target + n_scheme, "/? ");
    if (n == 0 || target[n_scheme + n] != '/') {
        return NULL;
    }
    memmove(target, target + n_scheme, n);
    target[n] = 0;
    head->authority = target;
    return target + n_scheme + n;
}

/* METHOD SP target SP HTTP/1.x, ended by a zero. */
static int parse_line(struct http_head *head, char *line, char *end)
{
    char *at = line;
    while (at < end && is_token(*at)) {
        at++;
    }
    if (at == line || at - line > 20 || *at != ' ') {
        return fault(head, 400, "the request line has no method");
    }
    *at++ = 0;
    head->method = line;
    char *target = at;
    while (at<end && * at> ' ' && *at < 127) {
        at++;
    }
    char *target_end = at;
    target = *at == ' ' ? skip_authority(head, target) : NULL;
    if (!target || *target != '/') {
        return fault(head, 400, "the request line has no path");
    }
    *at++ = 0;
    if (strncmp(at, "HTTP/", 5) != 0 || strlen(at) != 8 || at[6] != '.') {
        return fault(head, 400, "the request line names no version");
    }
    if (at[5] != '1' || at[7] < '0' || at[7] > '9') {
        return fault(head, 505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
    }
    head->minor = at[7] > '0'; /* a later 1.x is answered as 1.1, as RFC 9110 has it */
    char *query = strchr(target, '?'), *path_end = query ? query : target_end;
    head->query = query ? query + 1 : "";
    if (!unescape(target, path_end, &path_end, false)) {
        return fault(head, 400, "the path holds a broken escape");
    }
    *path_end = 0;
    head->path = target;
    return 0;
}

/* Name: value. The line ends with a zero. */
static int parse_field(struct http_head *head, char *line, char *end)
{
    char *at = line;
    while (is_token(*at)) {
        at++;
    }
    if (at == line || *at != ':') {
        return fault(head, 400, "a header line is not NAME: VALUE");
    }
    if (head->n_fields == HTTP_MAX_FIELDS) {
        return fault(head, 431, "too many header fields (at most 64)");
    }
    *at++ = 0;
    at += strspn(at, " \t");
    while (end > at && (end[-1] == ' ' || end[-1] == '\t')) {
        *--end = 0;
    }
    for (const char *c = at; c < end; c++) {
        if (((unsigned char)*c < ' ' && *c != '\t') || *c == 127) {
            return fault(head, 400, "a header value holds a control character");
        }
    }
    head->fields[head->n_fields++] = (struct http_field){line, at};
    return 0;
}

const char *http_field(const struct http_head *head, const char *name)
{
    for (int i = 0; i < head->n_fields; i++) {
        if (strcasecmp(head->fields[i].name, name) == 0) {
            return head->fields[i].value;
        }
    }
    return NULL;
}

static int count_fields(const struct http_head *head, const char *name)
{
    int n = 0;
    for (int i = 0; i < head->n_fields; i++) {
        n += strcasecmp(head->fields[i].name, name) == 0;
    }
    return n;
}

const char *http_only_field(const struct http_head *head, const char *name)
{
    return count_fields(head, name) == 1 ? http_field(head, name) : NULL;
}

bool http_value_has(const char *value, const char *word)
{
    size_t length = strlen(word);
    while (value && *value) {
        value += strspn(value, " \t,");
        size_t n = strcspn(value, ", \t;");
        if (n == length && strncasecmp(value, word, n) == 0) {
            return true;
        }
        value += strcspn(value, ",");
    }
    return false;
}

bool http_has(const struct http_head *head, const char *name, const char *word)
{
    for (int i = 0; i < head->n_fields; i++) {
        if (strcasecmp(head->fields[i].name, name) == 0 &&
            http_value_has(head->fields[i].value, word)) {
            return true;
        }
    }
    return false;
}

static int parse_length(struct http_head *head, const char *value)
{
    if (!*value || strlen(value) > 18 || strspn(value, "0123456789") != strlen(value)) {
        return fault(head, 400, "Content-Length is no number");
    }
    for (; *value; value++) {
        head->length = head->length * 10 + (uint64_t)(*value - '0');
    }
    head->has_length = true;
    return 0;
}

/* What the fields say together: how long the body is, and what happens after the answer. */
static int judge(struct http_head *head)
{
    static const char host_bytes[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~%!$&'()*+;=:[]";
    const char *host = http_field(head, "Host"), *length = http_field(head, "Content-Length"),
               *coding = http_field(head, "Transfer-Encoding"), *expect = http_field(head, "Expect");
    if (count_fields(head, "Host") > 1 || (head->minor == 1 && count_fields(head, "Host") == 0)) {
        return fault(head, 400, "one Host header is needed");
    }
    if (host && host[strspn(host, host_bytes)]) {
        return fault(head, 400, "the Host header names no host");
    }
    if (head->authority && (!host || strcasecmp(head->authority, host) != 0)) {
        return fault(head, 400, "the request line names a host that no Host header names");
    }
    if (count_fields(head, "Origin") > 1 || count_fields(head, "Sec-WebSocket-Key") > 1 ||
        count_fields(head, "Sec-WebSocket-Version") > 1) {
        return fault(head, 400, "a header field that may come once is given more than once");
    }
    if (count_fields(head, "Content-Length") + count_fields(head, "Transfer-Encoding") > 1) {
        return fault(head, 400, "the length of the body is given more than once");
    }
    if (coding && (head->minor == 0 || strcasecmp(coding, "chunked") != 0)) {
        return fault(head, 501, "the only Transfer-Encoding known here is chunked");
    }
    int status = length ? parse_length(head, length) : 0;
    if (status) {
        return status;
    }
    if (expect && strcasecmp(expect, "100-continue") != 0) {
        return fault(head, 417, "the only Expect known here is 100-continue");
    }
    head->chunked = coding != NULL;
    head->expects_continue = expect && head->minor == 1;
    /* Not with HTTP/1.0, whatever it asks for: what its proxies make of the next request is not agreed on. */
    head->keep_alive = head->minor == 1 && !http_has(head, "Connection", "close");
    head->wants_websocket = head->minor == 1 && http_has(head, "Connection", "upgrade") &&
                            http_has(head, "Upgrade", "websocket");
    return 0;
}

int http_head_parse(struct http_head *head, char *text, size_t n)
{
    *head = (struct http_head){.method = "", .path = "", .query = ""};
    char *line = text, *end = text + n;
    int status = 0;
    for (bool first = true; line < end && status == 0; first = false) {
        char *feed = memchr(line, '\n', (size_t)(end - line));
        if (!feed || feed == line || feed[-1] != '\r') {
            return fault(head, 400, "a header line does not end with CR LF");
        }
        feed[-1] = 0;
        if (memchr(line, 0, (size_t)(feed - 1 - line)) ||
            memchr(line, '\r', (size_t)(feed - 1 - line))) {
            return fault(head, 400, "a header line holds a control character");
        }
        if (line == feed - 1) {
            return first ? fault(head, 400, "the request line is empty") : judge(head);
        }
        status = first ? parse_line(head, line, feed - 1) : parse_field(head, line, feed - 1);
        line = feed + 1;
    }
    return status ? status : fault(head, 400, "the head has no end");
}

bool http_query(const struct http_head *head, const char *name, char *out, size_t size)
{
    size_t length = strlen(name);
    for (const char *at = head->query; *at; at += strcspn(at, "&"), at += *at == '&') {
        size_t n = strcspn(at, "&");
        if (n >= length && strncmp(at, name, length) == 0 && (n == length || at[length] == '=')) {
            size_t skip = n == length ? length : length + 1;
            if (n - skip >= size) {
                return false;
            }
            memcpy(out, at + skip, n - skip);
            char *end = NULL;
            if (!unescape(out, out + (n - skip), &end, true)) {
                return false;
            }
            *end = 0;
            return true;
        }
    }
    return false;
}

/* ---- A body in chunks ---- */

enum {
    SIZE,
    EXTENSION,
    SIZE_LF,
    DATA,
    DATA_CR,
    DATA_LF,
    TRAILER,
    TRAILER_NAME,
    TRAILER_VALUE,
    TRAILER_LF,
    LAST_LF,
    ENDED
};
enum { MAX_SIZE_DIGITS = 15, MAX_LINE = 4096 };

static int next_of_size(struct http_chunks *c, char byte)
{
    int digit = digit_of(byte);
    if (digit >= 0) {
        c->left = c->left * 16 + (uint64_t)digit;
        return ++c->n_digits <= MAX_SIZE_DIGITS ? SIZE : -1;
    }
    if (c->n_digits == 0) {
        return -1;
    }
    return byte == '\r' ? SIZE_LF : byte == ';' ? EXTENSION : -1;
}

/* The state after one byte of a line whose end leads to `ended`; -1: it may not stand there. */
static int next_of_line(struct http_chunks *c, char byte, int ended)
{
    bool control = ((unsigned char)byte < ' ' && byte != '\t') || byte == 127;
    return byte == '\r' ? ended : control || ++c->line_bytes > MAX_LINE ? -1 : c->state;
}

/* Fields of a trailer are read over. Those that say in a head where the body ends must not come so late. */
static int next_of_name(struct http_chunks *c, char byte)
{
    static const char *const late[] = {"Content-Length", "Transfer-Encoding", "Host"};
    for (size_t i = 0; byte == ':' && i < sizeof late / sizeof *late; i++) {
        if ((int)strlen(late[i]) == c->n_name && strncasecmp(late[i], c->name, strlen(late[i])) == 0) {
            return -1;
        }
    }
    if (byte == ':' && c->n_name > 0) {
        return TRAILER_VALUE;
    }
    if (!is_token(byte) || ++c->line_bytes > MAX_LINE) {
        return -1;
    }
    if (c->n_name < (int)sizeof c->name) {
        c->name[c->n_name++] = byte;
    }
    return TRAILER_NAME;
}

/* The state after one byte that is no data, or -1. */
static int next_state(struct http_chunks *c, char byte)
{
    switch (c->state) {
    case SIZE:
        return next_of_size(c, byte);
    case EXTENSION:
        return next_of_line(c, byte, SIZE_LF);
    case SIZE_LF:
        return byte != '\n' ? -1 : c->left ? DATA : TRAILER;
    case DATA_CR:
        return byte == '\r' ? DATA_LF : -1;
    case DATA_LF:
        c->n_digits = 0;
        return byte == '\n' ? SIZE : -1;
    case TRAILER: /* at the start of a line: an empty one ends the body */
        c->n_name = 0;
        return byte == '\r' ? LAST_LF : next_of_name(c, byte);
    case TRAILER_NAME:
        return next_of_name(c, byte);
    case TRAILER_VALUE:
        return next_of_line(c, byte, TRAILER_LF);
    case TRAILER_LF:
        return byte == '\n' ? TRAILER : -1;
    case LAST_LF:
        return byte == '\n' ? ENDED : -1;
    default:
        return -1;
    }
}

enum http_progress http_chunks_feed(struct http_chunks *c, const char *in, size_t n, size_t *used,
    const char **data, size_t *data_bytes)
{
    size_t at = 0;
    *data = in;
    *data_bytes = 0;
    while (at < n && c->state != ENDED && c->state != DATA) {
        int state = next_state(c, in[at++]);
        if (state < 0) {
            *used = at;
            return HTTP_BAD;
        }
        c->state = state;
    }
    if (c->state == DATA && at < n) {
        size_t take = n - at < c->left ? n - at : (size_t)c->left;
        *data = in + at;
        *data_bytes = take;
        c->left -= take;
        at += take;
        c->state = c->left ? DATA : DATA_CR;
    }
    *used = at;
    return c->state == ENDED ? HTTP_DONE : HTTP_MORE;
}
