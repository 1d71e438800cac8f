/* SPDX-License-Identifier: Apache-2.0
 * Requests as they come from outside, to the byte: heads, queries, and bodies in chunks. */
#include "tests/support.h"

#include <stdio.h>
#include <string.h>

#include "server/protocol/http.h"

/* ---- Heads ---- */

static struct http_head head;

static int parse(const char *text)
{
    static char copy[HTTP_HEAD_BYTES * 2];
    strcpy(copy, text);
    return http_head_parse(&head, copy, strlen(text));
}

static void the_end_of_a_head_is_found(void **state)
{
    static const char bytes[] = "GET / HTTP/1.1\r\nHost: h\r\n\r\nmore\r\n\r\n";
    static const struct {
        const char *bytes;
        size_t needs;
    } cases[] = {{"", 4}, {"\r", 3}, {"\n", 4}, {"x\r\n", 2}, {"x\r\n\r", 1}, {"\r\n\r", 1},
        {"\r\r", 3}, {"\r\n\n", 4}, {"\r\n\r\r", 3}, {"abc", 4}};
    (void)state;
    for (size_t n = 0; n < sizeof bytes; n++) {
        assert_int_equal(http_head_bytes(bytes, n), n >= 27 ? 27 : 0);
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(http_head_needs(cases[i].bytes, strlen(cases[i].bytes)), cases[i].needs);
    }
}

static void a_request_line_says_what_is_asked(void **state)
{
    static const struct {
        int status;
        const char *line, *fault;
    } cases[] = {{0, "ABCDEFGHIJKLMNOPQRST / HTTP/1.1", NULL},
        {400, "ABCDEFGHIJKLMNOPQRSTU / HTTP/1.1", "the request line has no method"},
        {400, " / HTTP/1.1", "the request line has no method"},
        {400, "GET\t/ HTTP/1.1", "the request line has no method"},
        {400, "GE{ / HTTP/1.1", "the request line has no method"},
        {0, "!#$%&'*+-.^_`|~ / HTTP/1.1", NULL}, {0, "09azAZ / HTTP/1.1", NULL},
        {400, "GET  / HTTP/1.1", "the request line has no path"},
        {400, "GET a HTTP/1.1", "the request line has no path"},
        {400, "GET /\x7f HTTP/1.1", "the request line has no path"}, {0, "GET /~!{} HTTP/1.1", NULL},
        {400, "GET /", "the request line has no path"},
        {400, "GET / ", "the request line names no version"},
        {400, "GET / http/1.1", "the request line names no version"},
        {400, "GET / HTTP/1.10", "the request line names no version"},
        {400, "GET / HTTP/1.1 ", "the request line names no version"},
        {400, "GET / HTTP/1-1", "the request line names no version"},
        {505, "GET / HTTP/0.9", "only HTTP/1.0 and HTTP/1.1 are spoken here"},
        {505, "GET / HTTP/1./", "only HTTP/1.0 and HTTP/1.1 are spoken here"},
        {505, "GET / HTTP/1.:", "only HTTP/1.0 and HTTP/1.1 are spoken here"},
        {0, "GET / HTTP/1.9", NULL}, {400, "GET /%4 HTTP/1.1", "the path holds a broken escape"},
        {400, "GET /%g1 HTTP/1.1", "the path holds a broken escape"},
        {400, "GET /%1g HTTP/1.1", "the path holds a broken escape"},
        {400, "GET /a%00 HTTP/1.1", "the path holds a broken escape"},
        {0, "GET /?%00%g HTTP/1.1", NULL}, /* a query is looked at when it is asked for */
        {400, "GET http:// HTTP/1.1", "the request line has no path"},
        {400, "GET http://h?x/ HTTP/1.1", "the request line has no path"}};
    char text[200];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(text, sizeof text, "%s\r\nHost: h\r\n\r\n", cases[i].line);
        int status = parse(text);
        if (status != cases[i].status ||
            (cases[i].fault ? !head.fault || strcmp(head.fault, cases[i].fault) != 0
                            : head.fault != NULL)) {
            fail_msg("'%s': %d, %s", cases[i].line, status, head.fault);
        }
    }
    assert_int_equal(parse("GET /a%2Fb+%c3%A9?x=%41 HTTP/1.1\r\nHost: h\r\n\r\n"), 0);
    assert_string_equal(head.path, "/a/b+\xC3\xA9");
    assert_string_equal(head.query, "x=%41");
    assert_null(head.authority);
    assert_int_equal(parse("GET HTTP://H:80/a/b?c HTTP/1.1\r\nHost: h:80\r\n\r\n"), 0);
    assert_string_equal(head.authority, "H:80");
    assert_string_equal(head.path, "/a/b");
    assert_string_equal(head.query, "c");
    assert_int_equal(parse("GET / HTTP/1.0\r\n\r\n"), 0);
    assert_true(head.minor == 0 && head.query[0] == 0 && !head.has_length && !head.chunked);
}

static void fields_are_names_and_values(void **state)
{
    static const struct {
        int status;
        const char *lines, *fault;
    } cases[] = {{400, "a\r\n", "a header line is not NAME: VALUE"},
        {400, ": b\r\n", "a header line is not NAME: VALUE"},
        {400, "a b: c\r\n", "a header line is not NAME: VALUE"},
        {400, "a: b\x01\r\n", "a header value holds a control character"},
        {400, "a: \x7f\r\n", "a header value holds a control character"},
        {400, "a: b\rc\r\n", "a header line holds a control character"},
        {400, "a: b\n\r\n", "a header line does not end with CR LF"}, {0, "a: b\tc\r\n", NULL},
        {0, "a: \xC3\xA9\r\n", NULL}};
    char text[200];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: h\r\n%s\r\n", cases[i].lines);
        int status = parse(text);
        if (status != cases[i].status || (cases[i].fault && strcmp(head.fault, cases[i].fault) != 0)) {
            fail_msg("'%s': %d, %s", cases[i].lines, status, head.fault);
        }
    }
    assert_int_equal(parse("GET / HTTP/1.1\r\nHost:h\r\nA: \t b c \t \r\nB:\r\na: 2\r\n\r\n"), 0);
    assert_int_equal(head.n_fields, 4);
    assert_string_equal(http_field(&head, "host"), "h");
    assert_string_equal(http_field(&head, "A"), "b c");
    assert_string_equal(http_field(&head, "b"), "");
    assert_null(http_field(&head, "c"));
    assert_null(http_only_field(&head, "A")); /* there are two */
    assert_string_equal(http_only_field(&head, "B"), "");
    assert_null(http_only_field(&head, "c"));
    static const char zero[] = "GET / HTTP/1.1\r\nHost: h\0x\r\n\r\n";
    char copy[sizeof zero];
    memcpy(copy, zero, sizeof zero);
    assert_int_equal(http_head_parse(&head, copy, sizeof zero - 1), 400);
    assert_string_equal(head.fault, "a header line holds a control character");
    for (int n = HTTP_MAX_FIELDS; n <= HTTP_MAX_FIELDS + 1; n++) {
        char many[4096] = "GET / HTTP/1.1\r\nHost: h\r\n";
        for (int i = 1; i < n; i++) {
            strcat(many, "a: b\r\n");
        }
        assert_int_equal(parse(strcat(many, "\r\n")), n > HTTP_MAX_FIELDS ? 431 : 0);
    }
    assert_string_equal(head.fault, "too many header fields (at most 64)");
    assert_int_equal(parse("GET / HTTP/1.1\r\nHost: h\r\n"), 400);
    assert_string_equal(head.fault, "the head has no end");
    assert_int_equal(parse("\r\n"), 400);
    assert_string_equal(head.fault, "the request line is empty");
}

static void fields_say_where_a_body_ends(void **state)
{
    static const struct {
        int status;
        const char *fields, *fault;
    } cases[] = {{400, "", "one Host header is needed"},
        {400, "Host: a\r\nHost: a\r\n", "one Host header is needed"},
        {400, "Host: a/b\r\n", "the Host header names no host"}, {0, "Host: [::1]:8(a)_~%2\r\n", NULL},
        {400, "Host: a\r\nOrigin: b\r\nOrigin: b\r\n",
            "a header field that may come once is given more than once"},
        {400, "Host: a\r\nSec-WebSocket-Key: b\r\nSec-WebSocket-Key: b\r\n",
            "a header field that may come once is given more than once"},
        {400, "Host: a\r\nSec-WebSocket-Version: 1\r\nSec-WebSocket-Version: 1\r\n",
            "a header field that may come once is given more than once"},
        {400, "Host: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            "the length of the body is given more than once"},
        {501, "Host: a\r\nTransfer-Encoding: identity\r\n",
            "the only Transfer-Encoding known here is chunked"},
        {0, "Host: a\r\nTransfer-Encoding: CHUNKED\r\n", NULL},
        {400, "Host: a\r\nContent-Length:\r\n", "Content-Length is no number"},
        {400, "Host: a\r\nContent-Length: 1 2\r\n", "Content-Length is no number"},
        {400, "Host: a\r\nContent-Length: 1234567890123456789\r\n", "Content-Length is no number"},
        {0, "Host: a\r\nContent-Length: 123456789012345678\r\n", NULL},
        {417, "Host: a\r\nExpect: 200-ok\r\n", "the only Expect known here is 100-continue"}};
    char text[300];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(text, sizeof text, "POST / HTTP/1.1\r\n%s\r\n", cases[i].fields);
        int status = parse(text);
        if (status != cases[i].status || (cases[i].fault && strcmp(head.fault, cases[i].fault) != 0)) {
            fail_msg("'%s': %d, %s", cases[i].fields, status, head.fault);
        }
    }
    assert_int_equal(parse("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 123456789012345678\r\n"
                           "Expect: 100-Continue\r\n\r\n"),
        0);
    assert_true(head.has_length && head.length == 123456789012345678 && head.expects_continue &&
                !head.chunked && head.keep_alive && !head.wants_websocket);
    assert_int_equal(parse("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"), 0);
    assert_true(head.chunked && !head.has_length && !head.expects_continue);
    /* Of HTTP/1.0: no chunks, nothing is kept, and nobody waits for a 100. */
    assert_int_equal(parse("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 501);
    assert_int_equal(
        parse("GET / HTTP/1.0\r\nExpect: 100-continue\r\nConnection: keep-alive, upgrade\r\n"
              "Upgrade: websocket\r\n\r\n"),
        0);
    assert_false(head.expects_continue || head.keep_alive || head.wants_websocket);
    assert_int_equal(parse("GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n"), 400);
    assert_int_equal(parse("GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n"), 0);
    assert_false(head.wants_websocket);
    assert_int_equal(parse("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\n\r\n"), 0);
    assert_false(head.wants_websocket);
    assert_int_equal(parse("GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
    assert_string_equal(head.fault, "the request line names a host that no Host header names");
    assert_int_equal(parse("GET http://b/ HTTP/1.0\r\n\r\n"), 400);
}

static void lists_hold_words(void **state)
{
    static const struct {
        const char *value, *word;
        bool has;
    } cases[] = {{"a", "a", true}, {"A", "a", true}, {"ab", "a", false}, {"a", "ab", false},
        {"x, a", "a", true}, {",, \ta\t,x", "a", true}, {"a;q=1, b", "a", true}, {"x;a", "a", false},
        {"x a", "a", false}, {"x a, b", "b", true}, {"", "a", false}, {NULL, "a", false}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(http_value_has(cases[i].value, cases[i].word), cases[i].has);
    }
    /* Any field of the name, from the first to the last. */
    char text[] = "GET / HTTP/1.1\r\nX: a\r\nHost: h\r\nY: b\r\nx: c, d\r\n\r\n";
    assert_int_equal(parse(text), 0);
    assert_true(http_has(&head, "X", "a") && http_has(&head, "x", "d") && http_has(&head, "Host", "H"));
    assert_false(http_has(&head, "X", "b") || http_has(&head, "Y", "a") || http_has(&head, "Z", "a"));
}

static void a_query_has_parameters(void **state)
{
    static const struct {
        const char *query, *name, *value;
    } cases[] = {{"a=1&b=2", "a", "1"}, {"a=1&b=2", "b", "2"}, {"ab=1&a=2", "a", "2"}, {"a", "a", ""},
        {"a=", "a", ""}, {"b&a", "a", ""}, {"a=1&a=2", "a", "1"}, {"a=%41+%2b", "a", "A +"},
        {"a=%4", "a", NULL}, {"a=%00", "a", NULL}, {"a=%zz", "a", NULL}, {"b=a", "a", NULL},
        {"", "a", NULL}, {"&&a=7&", "a", "7"}, {"a=1234567", "a", "1234567"}, {"a=12345678", "a", NULL},
        {"a==", "a", "="}};
    char text[200], value[8];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(text, sizeof text, "GET /?%s HTTP/1.1\r\nHost: h\r\n\r\n", cases[i].query);
        assert_int_equal(parse(text), 0);
        bool found = http_query(&head, cases[i].name, value, sizeof value);
        if (found != (cases[i].value != NULL) || (found && strcmp(value, cases[i].value) != 0)) {
            fail_msg("%s: %s", cases[i].query, found ? value : "none");
        }
    }
}

/* ---- Chunks ---- */

/* What becomes of it when it comes so many bytes at a time. */
static enum http_progress decode(const char *in, size_t n, size_t piece, char *out, size_t *used_all)
{
    struct http_chunks c = {0};
    enum http_progress progress = HTTP_MORE;
    size_t at = 0, n_out = 0;
    for (size_t given = 0; at < n && progress == HTTP_MORE;) {
        size_t used, bytes;
        const char *data;
        given = at + piece < n ? at + piece : n;
        progress = http_chunks_feed(&c, in + at, given - at, &used, &data, &bytes);
        memcpy(out + n_out, data, bytes);
        n_out += bytes;
        at += used;
    }
    out[n_out] = 0;
    *used_all = at;
    return progress;
}

static void chunks_end_where_they_say(void **state)
{
    static const struct {
        const char *in, *out;
        enum http_progress progress;
        size_t used; /* 0: all */
    } cases[] = {{"0\r\n\r\n", "", HTTP_DONE, 0}, {"0\r\n\r\nGET", "", HTTP_DONE, 5},
        {"a\r\n0123456789\r\nF\r\n0123456789ABCDE\r\n0\r\n\r\n", "01234567890123456789ABCDE", HTTP_DONE,
            0},
        {"10\r\n0123456789ABCDEF\r\n00\r\n\r\n", "0123456789ABCDEF", HTTP_DONE, 0},
        {"000000000000001\r\nx\r\n0\r\n\r\n", "x", HTTP_DONE, 0},
        {"0000000000000001\r\n", "", HTTP_BAD, 16}, {"g\r\n", "", HTTP_BAD, 1},
        {"1 \r\n", "", HTTP_BAD, 2}, {"1\rx", "", HTTP_BAD, 3}, {"1\r\nx\n", "x", HTTP_BAD, 5},
        {"1\r\nx\r\r", "x", HTTP_BAD, 6}, {"1\r\nx\r\n\r\n", "x", HTTP_BAD, 7},
        {"1;a\t=\"b\"\r\nx\r\n0;c\r\n\r\n", "x", HTTP_DONE, 0}, {"1;\x7f", "", HTTP_BAD, 3},
        {"1;\x1f", "", HTTP_BAD, 3}, {"1;\r\rx", "", HTTP_BAD, 4},
        {"0\r\nA-b_1: c\td\r\nE:\r\n\r\n", "", HTTP_DONE, 0}, {"0\r\na b: c\r\n\r\n", "", HTTP_BAD, 5},
        {"0\r\n:\r\n", "", HTTP_BAD, 4}, {"0\r\na: b\r\r", "", HTTP_BAD, 9},
        {"0\r\n\rx", "", HTTP_BAD, 5}, {"0\r\nContent-Length: 1\r\n\r\n", "", HTTP_BAD, 18},
        {"0\r\ntransfer-encoding: x\r\n\r\n", "", HTTP_BAD, 21},
        {"0\r\nHOST: x\r\n\r\n", "", HTTP_BAD, 8}, {"0\r\nHosts: x\r\n\r\n", "", HTTP_DONE, 0},
        {"0\r\nX-Host: x\r\n\r\n", "", HTTP_DONE, 0},
        {"0\r\nA: b\r\nHost: x\r\n\r\n", "", HTTP_BAD, 14},
        {"0\r\nTransfer-Encoding-X: x\r\n\r\n", "", HTTP_DONE, 0}};
    char out[100];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n = strlen(cases[i].in), used, want = cases[i].used ? cases[i].used : n;
        for (size_t piece = 1; piece <= n; piece++) {
            enum http_progress progress = decode(cases[i].in, n, piece, out, &used);
            if (progress != cases[i].progress || used != want || strcmp(out, cases[i].out) != 0) {
                fail_msg("'%s' by %zu: %d, '%s', %zu", cases[i].in, piece, (int)progress, out, used);
            }
            for (size_t cut = 1; piece == 1 && cut < want;
                 cut++) { /* every beginning of it may go on */
                assert_int_equal(decode(cases[i].in, cut, piece, out, &used), HTTP_MORE);
                assert_int_equal(used, cut);
            }
        }
    }
}

static void lines_of_chunks_have_a_length(void **state)
{
    static const char *const begins[] = {"1;", "0\r\nn: ", "0\r\n"};
    static const size_t most[] = {4096, 4094, 4096}; /* behind the beginning: the name counts */
    static char in[5000], out[100];
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        for (size_t more = 0; more < 2; more++) {
            size_t n = strlen(begins[i]), used;
            memcpy(in, begins[i], n);
            memset(in + n, 'x', most[i] + more);
            n += most[i] + more;
            enum http_progress progress = decode(in, n, n, out, &used);
            if (progress != (more ? HTTP_BAD : HTTP_MORE)) {
                fail_msg("%s %zu: %d", begins[i], most[i] + more, (int)progress);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_end_of_a_head_is_found),
        cmocka_unit_test(a_request_line_says_what_is_asked),
        cmocka_unit_test(fields_are_names_and_values),
        cmocka_unit_test(fields_say_where_a_body_ends),
        cmocka_unit_test(lists_hold_words),
        cmocka_unit_test(a_query_has_parameters),
        cmocka_unit_test(chunks_end_where_they_say),
        cmocka_unit_test(lines_of_chunks_have_a_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
