/* SPDX-License-Identifier: Apache-2.0
 * HTTP heads, bodies in chunks, WebSocket frames, forms and sentences: what is taken, and what is refused how. */
#include "tests/support.h"

#include <stdlib.h>
#include <string.h>

#include "server/front/sentence.h"
#include "server/protocol/http.h"
#include "server/protocol/multipart.h"
#include "server/protocol/websocket.h"

static int parse(struct http_head *head, const char *text)
{
    static char copy[HTTP_HEAD_BYTES * 2];
    strcpy(copy, text);
    return http_head_parse(head, copy, strlen(text));
}

static void a_head_is_read(void **state)
{
    struct http_head head;
    char value[16];
    (void)state;
    assert_int_equal(
        parse(&head,
            "POST /v1/audio%20x?legacy=true&n=a+b HTTP/1.1\r\nhost: h\r\nContent-Length: 12\r\n"
            "Connection: close\r\nX-Empty:\r\n\r\n"),
        0);
    assert_string_equal(head.method, "POST");
    assert_string_equal(head.path, "/v1/audio x");
    assert_true(http_query(&head, "n", value, sizeof value));
    assert_string_equal(value, "a b");
    assert_false(http_query(&head, "lega", value, sizeof value));
    assert_true(head.has_length && head.length == 12 && !head.keep_alive && !head.chunked);
    assert_string_equal(http_field(&head, "x-empty"), "");
    assert_int_equal(
        parse(
            &head, "GET / HTTP/1.1\r\nHost: h\r\nConnection: x, Upgrade\r\nUpgrade: WebSocket\r\n\r\n"),
        0);
    assert_true(head.wants_websocket && head.keep_alive);
    assert_int_equal(parse(&head, "GET / HTTP/1.0\r\n\r\n"), 0);
    assert_false(head.keep_alive);
    /* Several lines of a list are one list. */
    assert_int_equal(
        parse(
            &head, "GET / HTTP/1.1\r\nHost: h\r\nConnection: keep-alive\r\nConnection: close\r\n\r\n"),
        0);
    assert_false(head.keep_alive);
    assert_int_equal(parse(&head, "GET / HTTP/1.1\r\nHost: h\r\nConnection: keep-alive\r\n"
                                  "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"),
        0);
    assert_true(head.wants_websocket);
    /* The host may stand in the request line; a later minor version is 1.1. */
    assert_int_equal(parse(&head, "GET http://h:80/a?b=c HTTP/1.2\r\nHost: h:80\r\n\r\n"), 0);
    assert_string_equal(head.path, "/a");
    assert_string_equal(head.query, "b=c");
    assert_int_equal(head.minor, 1);
}

static void bad_heads_are_refused(void **state)
{
    static const struct {
        int status;
        const char *text;
    } cases[] = {
        {400, "\r\n\r\n"},
        {400, "GET\r\n\r\n"},
        {400, "GET http://y/ HTTP/1.1\r\nHost: x\r\n\r\n"},
        {400, "GET http://y/ HTTP/1.0\r\n\r\n"},
        {400, "GET http:///a HTTP/1.1\r\nHost: x\r\n\r\n"},
        {400, "GET http://x HTTP/1.1\r\nHost: x\r\n\r\n"},
        {400, "GET ftp://x/ HTTP/1.1\r\nHost: x\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: x\r\nOrigin: http://x\r\nOrigin: http://y\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: x\r\nSec-WebSocket-Key: a\r\nSec-WebSocket-Key: b\r\n\r\n"},
        {400, "GET /%0 HTTP/1.1\r\nHost: x\r\n\r\n"},
        {400, "GET /%00 HTTP/1.1\r\nHost: x\r\n\r\n"},
        {505, "GET / HTTP/2.0\r\nHost: x\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: x\r\n folded: y\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost : x\r\n\r\n"},
        {400, "GET / HTTP/1.1\nHost: x\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n"},
        {400, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n"},
        {501, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"},
        {417, "POST / HTTP/1.1\r\nHost: x\r\nExpect: a miracle\r\n\r\n"},
    };
    struct http_head head;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int status = parse(&head, cases[i].text);
        if (status != cases[i].status || !head.fault) {
            fail_msg("%d instead of %d for %s", status, cases[i].status, cases[i].text);
        }
    }
}

static enum http_progress decode(const char *in, char *out)
{
    struct http_chunks c = {0};
    size_t n = strlen(in), used, size;
    const char *data;
    enum http_progress progress = HTTP_MORE;
    *out = 0;
    while (n > 0 && progress == HTTP_MORE) {
        progress = http_chunks_feed(&c, in, n, &used, &data, &size);
        strncat(out, data, size);
        in += used;
        n -= used;
    }
    return progress;
}

static void chunks_make_a_body(void **state)
{
    char out[64];
    (void)state;
    assert_int_equal(decode("3\r\nabc\r\n1;x=y\r\nd\r\n0\r\nT: 1\r\n\r\n", out), HTTP_DONE);
    assert_string_equal(out, "abcd");
    assert_int_equal(decode("3\r\nabc\r\n0\r\n", out), HTTP_MORE);
    assert_int_equal(decode("3\nabc", out), HTTP_BAD);
    assert_int_equal(decode("3\r\nabcd\r\n", out), HTTP_BAD);
    assert_int_equal(decode("\r\n", out), HTTP_BAD);
    assert_int_equal(decode("-1\r\n", out), HTTP_BAD);
    assert_int_equal(decode("ffffffffffffffff1\r\n", out), HTTP_BAD);
    assert_int_equal(decode("1;x=\"a b\"\r\nd\r\n0\r\nA-b: c d\r\n\r\n", out), HTTP_DONE);
    static const char *const bad[] = {"c a=b\r\n", "c 5\r\n", "1 ;x\r\n", "1;\001\r\n",
        "0\r\nno colon\r\n\r\n", "0\r\nGET / HTTP/1.1\r\n\r\n", "0\r\n: x\r\n\r\n",
        "0\r\nA: \001\r\n\r\n", "0\r\n a: b\r\n\r\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(decode(bad[i], out), HTTP_BAD);
    }
}

/* A masked frame of the client; returns its length. */
static size_t frame(uint8_t *out, int first, const void *data, size_t n)
{
    static const uint8_t mask[4] = {9, 8, 7, 6};
    size_t at = 0;
    out[at++] = (uint8_t)first;
    out[at++] = (uint8_t)(0x80 | (n < 126 ? n : 126));
    if (n >= 126) {
        out[at++] = (uint8_t)(n >> 8);
        out[at++] = (uint8_t)n;
    }
    memcpy(out + at, mask, 4);
    at += 4;
    for (size_t i = 0; i < n; i++) {
        out[at++] = ((const uint8_t *)data)[i] ^ mask[i % 4];
    }
    return at;
}

static void frames_make_messages(void **state)
{
    uint8_t in[2048], header[10];
    char accept[29];
    struct websocket w = {.limit = 1000};
    struct websocket_event event;
    size_t used, n = frame(in, 0x01, "Hel", 3);
    (void)state;
    n += frame(in + n, 0x89, "p", 1);
    n += frame(in + n, 0x80, "lo", 2);
    assert_int_equal(websocket_read(&w, in, n, &used, &event), WEBSOCKET_EVENT);
    assert_int_equal(event.kind, WEBSOCKET_PING);
    size_t at = used;
    assert_int_equal(websocket_read(&w, in + at, n - at, &used, &event), WEBSOCKET_EVENT);
    assert_int_equal(event.kind, WEBSOCKET_TEXT);
    assert_int_equal(event.bytes, 5);
    assert_memory_equal(event.data, "Hello", 5);
    websocket_fini(&w);
    assert_int_equal(websocket_header(header, WEBSOCKET_BINARY, 70000), 10);
    assert_int_equal(header[0] << 8 | header[1], 0x827f);
    assert_true(websocket_accept(accept, "dGhlIHNhbXBsZSBub25jZQ==")); /* the example of RFC 6455 */
    assert_string_equal(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    assert_false(websocket_accept(accept, "short"));
}

static void bad_frames_close_with_a_code(void **state)
{
    uint8_t in[2048];
    static char long_text[1100];
    static const struct {
        int first, code;
        const char *data;
        size_t n;
    } cases[] = {
        {0xC1, WEBSOCKET_PROTOCOL, "x", 1},        /* a reserved bit */
        {0x83, WEBSOCKET_PROTOCOL, "x", 1},        /* an unknown kind */
        {0x80, WEBSOCKET_PROTOCOL, "x", 1},        /* nothing to continue */
        {0x09, WEBSOCKET_PROTOCOL, "x", 1},        /* a cut ping */
        {0x88, WEBSOCKET_PROTOCOL, "x", 1},        /* half a close code */
        {0x88, WEBSOCKET_PROTOCOL, "\x03\xed", 2}, /* 1005 and 65535 are sent by nobody */
        {0x88, WEBSOCKET_PROTOCOL, "\xff\xff", 2},
        {0x88, WEBSOCKET_BAD_DATA, "\x03\xe8\xff", 3},
        {0x81, WEBSOCKET_BAD_DATA, "\xC0\x80", 2}, /* a long form */
        {0x81, WEBSOCKET_BAD_DATA, "\xF4\x90\x80\x80", 4},
        {0x82, WEBSOCKET_TOO_BIG, long_text, sizeof long_text},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct websocket w = {.limit = 1000};
        struct websocket_event event;
        size_t used, n = frame(in, cases[i].first, cases[i].data, cases[i].n);
        assert_int_equal(websocket_read(&w, in, n, &used, &event), WEBSOCKET_BAD);
        assert_int_equal(event.close_code, cases[i].code);
        websocket_fini(&w);
    }
    struct websocket w = {.limit = 1000};
    struct websocket_event event;
    size_t used;
    assert_int_equal(websocket_read(&w, (const uint8_t *)"\x81\x01x", 3, &used, &event), WEBSOCKET_BAD);
}

/* What becomes of a frame of text that comes byte by byte: how many had come when it was refused, 0: never. Beyond 14
 * bytes only what is new is looked at, as the connection does it. */
static size_t refused_at(const uint8_t *in, size_t n)
{
    struct websocket w = {.limit = 1000};
    struct websocket_event event;
    size_t used, at = 0;
    for (size_t have = 1; have <= n && at == 0; have++) {
        size_t seen = have > 14 && have < n ? websocket_unforeseen(&w, in, 14) : 0;
        enum websocket_progress progress =
            seen ? websocket_foresee(&w, in, 14, in + seen, have - seen, &event)
                 : websocket_read(&w, in, have, &used, &event);
        at = progress == WEBSOCKET_BAD ? have : 0;
        assert_true(progress != WEBSOCKET_EVENT || have == n);
        assert_true(progress != WEBSOCKET_BAD || event.close_code == WEBSOCKET_BAD_DATA);
    }
    websocket_fini(&w);
    return at;
}

/* A text inside of another one is out of order, whole or in pieces, whatever its bytes are. */
static void order_is_looked_at_before_text(void **state)
{
    struct websocket w = {.limit = 1000};
    struct websocket_event event;
    uint8_t in[300], bad[100];
    size_t used, n = frame(in, 0x01, "a", 1);
    (void)state;
    assert_int_equal(websocket_read(&w, in, n, &used, &event), WEBSOCKET_MORE);
    memset(bad, 0xff, sizeof bad);
    n = frame(in, 0x81, bad, sizeof bad);
    assert_int_equal(websocket_unforeseen(&w, in, 14), 0);
    assert_int_equal(websocket_read(&w, in, n / 2, &used, &event), WEBSOCKET_BAD);
    assert_int_equal(event.close_code, WEBSOCKET_PROTOCOL);
    websocket_fini(&w);
}

static void bad_text_is_refused_where_it_is_bad(void **state)
{
    static const char good[] = "\xce\xba\xe1\xbd\xb9\xf0\x9f\x98\x80, and \xe4\xb8\xad more of it";
    uint8_t in[300];
    const size_t n_good = sizeof good - 1, header = 6;
    (void)state;
    assert_int_equal(refused_at(in, frame(in, 0x81, good, n_good)), 0);
    for (size_t cut = 0; cut <= n_good; cut++) { /* a byte that no text has, anywhere */
        char bad[64];
        memcpy(bad, good, cut);
        bad[cut] = '\xff';
        memcpy(bad + cut + 1, good + cut, n_good - cut);
        assert_int_equal(refused_at(in, frame(in, 0x81, bad, n_good + 1)), header + cut + 1);
        assert_int_equal(refused_at(in, frame(in, 0x82, bad, n_good + 1)), 0); /* bytes may be any */
    }
    /* In two fragments, cut inside of characters too; the second begins with a wrong byte. */
    for (size_t cut = 1; cut < n_good; cut++) {
        struct websocket w = {.limit = 1000};
        struct websocket_event event;
        size_t used, n = frame(in, 0x01, good, cut);
        n += frame(in + n, 0x80, good + cut, n_good - cut);
        assert_int_equal(websocket_read(&w, in, n, &used, &event), WEBSOCKET_EVENT);
        assert_int_equal(event.bytes, n_good);
        n = frame(in, 0x01, good, cut);
        n += frame(in + n, 0x00, "\xff", 1);
        assert_int_equal(websocket_read(&w, in, n, &used, &event), WEBSOCKET_BAD);
        websocket_fini(&w);
    }
}

static void a_form_has_parts(void **state)
{
    static const char body[] =
        "--B\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\nanna\r\n"
        "--B\r\nContent-Disposition: form-data; name=\"audio_sample\"; filename=\"x; name=y\"\r\n"
        "Content-Type: audio/wav\r\n\r\n\r\n--B--\r\n";
    struct multipart form;
    (void)state;
    assert_null(multipart_parse(&form, "multipart/form-data; boundary=\"B\"", body, sizeof body - 1));
    assert_int_equal(form.n_parts, 2);
    assert_memory_equal(multipart_find(&form, "name")->data, "anna", 4);
    assert_int_equal(multipart_find(&form, "audio_sample")->bytes, 0);
    assert_null(multipart_find(&form, "y"));
    for (size_t n = 0; n < sizeof body - 5; n++) { /* every prefix */
        assert_non_null(multipart_parse(&form, "multipart/form-data; boundary=B", body, n));
    }
    assert_non_null(multipart_parse(&form, "text/plain; boundary=B", body, sizeof body - 1));
}

static void sentences_end_where_they_end(void **state)
{
    static const struct {
        const char *text;
        size_t bytes, clause;
    } cases[] = {{"Hello there. How", 13, 13}, {"Hello there.", 0, 0}, {"It is 3.5 m", 0, 0},
        {"Well, no", 0, 6}, {"\"Really?!\" he said", 11, 11}, {"你好。再见", 9, 9},
        {"line\nnext", 5, 5}, {"... ", 4, 4}, {"", 0, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(sentence_bytes(cases[i].text, strlen(cases[i].text), false), cases[i].bytes);
        assert_int_equal(sentence_bytes(cases[i].text, strlen(cases[i].text), true), cases[i].clause);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_head_is_read),
        cmocka_unit_test(bad_heads_are_refused),
        cmocka_unit_test(chunks_make_a_body),
        cmocka_unit_test(frames_make_messages),
        cmocka_unit_test(bad_frames_close_with_a_code),
        cmocka_unit_test(bad_text_is_refused_where_it_is_bad),
        cmocka_unit_test(order_is_looked_at_before_text),
        cmocka_unit_test(a_form_has_parts),
        cmocka_unit_test(sentences_end_where_they_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
