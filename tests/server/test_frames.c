/* SPDX-License-Identifier: Apache-2.0
 * What else comes from outside, to the byte: WebSocket frames, forms, traces, base64; and what a refusal says. */
#include "tests/support.h"

#include <stdio.h>
#include <string.h>

#include "server/protocol/base64.h"
#include "server/protocol/multipart.h"
#include "server/protocol/refusal.h"
#include "server/protocol/trace.h"
#include "server/protocol/websocket.h"

/* ---- Frames ---- */

/* A masked frame with a length in so many bytes of its own; returns its length. */
static size_t frame(uint8_t *out, int first, size_t n_number, uint64_t told, const void *data, size_t n)
{
    static const uint8_t mask[4] = {1, 2, 4, 0x80};
    size_t at = 0;
    out[at++] = (uint8_t)first;
    out[at++] = (uint8_t)(0x80 | (n_number == 0 ? told : n_number == 2 ? 126 : 127));
    for (size_t i = 0; i < n_number; i++) {
        out[at++] = (uint8_t)(told >> 8 * (n_number - 1 - i));
    }
    memcpy(out + at, mask, 4), at += 4;
    for (size_t i = 0; i < n; i++) {
        out[at++] = ((const uint8_t *)data)[i] ^ mask[i % 4];
    }
    return at;
}

static void lengths_of_frames_are_in_their_shortest_form(void **state)
{
    static const struct {
        size_t n_number;
        uint64_t told;
        bool good;
    } cases[] = {{0, 0, true}, {0, 125, true}, {2, 0, false}, {2, 125, false}, {2, 126, true},
        {2, 65535, true}, {8, 0, false}, {8, 125, false}, {8, 65535, false}, {8, 65536, true},
        {8, 70000, true}, {8, UINT64_C(1) << 63, false}};
    static uint8_t in[70100], data[70000];
    (void)state;
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = (uint8_t)(i * 7);
    }
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct websocket w = {.limit = 70000};
        struct websocket_event e;
        size_t used, bytes = cases[i].told <= sizeof data ? (size_t)cases[i].told : 0;
        size_t n = frame(in, 0x82, cases[i].n_number, cases[i].told, data, bytes);
        enum websocket_progress progress = websocket_read(&w, in, n, &used, &e);
        assert_int_equal(progress, cases[i].good ? WEBSOCKET_EVENT : WEBSOCKET_BAD);
        if (cases[i].good) {
            assert_true(e.kind == WEBSOCKET_BINARY && e.bytes == bytes && used == n);
            assert_memory_equal(e.data, data, bytes);
            assert_int_equal(websocket_frame_bytes(in, n), n);
            for (size_t have = 0; have < n;
                 have += have < 20 ? 1 : 5000) { /* never before it is whole */
                struct websocket part = {.limit = 70000};
                assert_int_equal(websocket_read(&part, in, have, &used, &e), WEBSOCKET_MORE);
                assert_int_equal(used, 0);
                websocket_fini(&part);
            }
        } else {
            assert_int_equal(e.close_code, WEBSOCKET_PROTOCOL);
            assert_string_equal(e.fault, "a frame's length is not in its shortest form");
        }
        websocket_fini(&w);
    }
    assert_int_equal(websocket_frame_bytes(in, 0), 6);
    assert_int_equal(websocket_frame_bytes(in, 1), 6);
    frame(in, 0x82, 2, 300, "", 0);
    assert_int_equal(websocket_frame_bytes(in, 2), 8);
    assert_int_equal(websocket_frame_bytes(in, 7), 8);
    assert_int_equal(websocket_frame_bytes(in, 8), 308);
    frame(in, 0x82, 8, UINT64_MAX, "", 0);
    assert_int_equal(websocket_frame_bytes(in, 13), 14);
    assert_true(websocket_frame_bytes(in, 14) == UINT64_MAX);
    frame(in, 0x82, 8, UINT64_MAX - 14, "", 0);
    assert_true(websocket_frame_bytes(in, 14) == UINT64_MAX);
    frame(in, 0x82, 8, UINT64_MAX - 15, "", 0);
    assert_true(websocket_frame_bytes(in, 14) == UINT64_MAX - 1);
}

static void frames_are_refused_for_what_is_wrong(void **state)
{
    static uint8_t in[300], data[200];
    static const struct {
        int first, code;
        size_t n;
        const char *data, *fault;
    } cases[] = {{0xC1, 1002, 1, "x", "a reserved bit is set (no extension was agreed on)"},
        {0xA1, 1002, 1, "x", "a reserved bit is set (no extension was agreed on)"},
        {0x91, 1002, 1, "x", "a reserved bit is set (no extension was agreed on)"},
        {0x83, 1002, 1, "x", "an unknown kind of frame"},
        {0x87, 1002, 1, "x", "an unknown kind of frame"},
        {0x8B, 1002, 1, "x", "an unknown kind of frame"},
        {0x8F, 1002, 1, "x", "an unknown kind of frame"},
        {0x09, 1002, 1, "x", "a control frame is cut or longer than 125 bytes"},
        {0x89, 1002, 126, NULL, "a control frame is cut or longer than 125 bytes"},
        {0x80, 1002, 1, "x", "fragments are out of order"},
        {0x88, 1002, 1, "x", "a close frame holds half a code"},
        {0x88, 1002, 2, "\x03\xE7", "a close frame holds a code that must not be sent"},
        {0x88, 1002, 2, "\x03\xEC", "a close frame holds a code that must not be sent"}, /* 1004 */
        {0x88, 1002, 2, "\x03\xEE", "a close frame holds a code that must not be sent"}, /* 1006 */
        {0x88, 1002, 2, "\x03\xF7", "a close frame holds a code that must not be sent"}, /* 1015 */
        {0x88, 1002, 2, "\x0B\xB7", "a close frame holds a code that must not be sent"}, /* 2999 */
        {0x88, 1002, 2, "\x13\x88", "a close frame holds a code that must not be sent"}, /* 5000 */
        {0x88, 1007, 3, "\x03\xE8\x80", "the reason of a close frame is not UTF-8"},
        {0x81, 1007, 1, "\x80", "a text message is not UTF-8"},
        {0x81, 1007, 2, "a\xC3", "a text message is not UTF-8"}, /* it ends inside of a letter */
        {0x82, 1009, 101, NULL, "a message is too long"}, {0x88, 0, 0, "", NULL},
        {0x88, 0, 2, "\x03\xE8", NULL}, {0x88, 0, 2, "\x03\xEB", NULL}, {0x88, 0, 2, "\x03\xEF", NULL},
        {0x88, 0, 2, "\x03\xF6", NULL}, {0x88, 0, 2, "\x0B\xB8", NULL},
        {0x88, 0, 4, "\x13\x87\xC3\xA9", NULL}, {0x89, 0, 125, NULL, NULL}, {0x8A, 0, 0, "", NULL},
        {0x82, 0, 100, NULL, NULL}, {0x81, 0, 0, "", NULL}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct websocket w = {.limit = 100};
        struct websocket_event e;
        const void *body = cases[i].data ? (const void *)cases[i].data : data;
        size_t used,
            n = frame(in, cases[i].first, cases[i].n > 125 ? 2 : 0, cases[i].n, body, cases[i].n);
        enum websocket_progress progress = websocket_read(&w, in, n, &used, &e);
        if (progress != (cases[i].code ? WEBSOCKET_BAD : WEBSOCKET_EVENT) ||
            e.close_code != cases[i].code || (cases[i].fault && strcmp(e.fault, cases[i].fault) != 0)) {
            fail_msg("%zu: %d, %d, %s", i, (int)progress, e.close_code, e.fault);
        }
        if (!cases[i].code) {
            assert_true((int)e.kind == (cases[i].first & 15) && e.bytes == cases[i].n && used == n);
            assert_memory_equal(e.data, body, cases[i].n);
        }
        websocket_fini(&w);
    }
    struct websocket w = {.limit = 100};
    struct websocket_event e;
    size_t used;
    assert_int_equal(websocket_read(&w, (const uint8_t *)"\x81\x01x", 3, &used, &e), WEBSOCKET_BAD);
    assert_string_equal(e.fault, "a client's frame is not masked");
}

static void fragments_make_one_message(void **state)
{
    static uint8_t in[300], data[100];
    struct websocket w = {.limit = 100};
    struct websocket_event e;
    size_t used, n;
    (void)state;
    for (int k = 0; k < 2; k++) { /* and again, on the same connection */
        n = frame(in, 0x02, 0, 60, data, 60);
        assert_int_equal(websocket_read(&w, in, n, &used, &e), WEBSOCKET_MORE);
        assert_int_equal(used, n);
        n = frame(in, 0x89, 0, 1, "p", 1); /* between them */
        assert_int_equal(websocket_read(&w, in, n, &used, &e), WEBSOCKET_EVENT);
        assert_true(e.kind == WEBSOCKET_PING && e.bytes == 1 && e.data[0] == 'p');
        n = frame(in, 0x00, 0, 0, "", 0);
        n += frame(in + n, 0x80, 0, 40, data, 40);
        assert_int_equal(websocket_read(&w, in, n, &used, &e), WEBSOCKET_EVENT);
        assert_true(e.kind == WEBSOCKET_BINARY && e.bytes == 100 && used == n);
    }
    n = frame(in, 0x02, 0, 60, data, 60);
    assert_int_equal(websocket_read(&w, in, n, &used, &e), WEBSOCKET_MORE);
    n = frame(in, 0x80, 0, 41, data, 41);
    assert_int_equal(websocket_read(&w, in, n, &used, &e), WEBSOCKET_BAD);
    assert_int_equal(e.close_code, WEBSOCKET_TOO_BIG);
    websocket_fini(&w);
    assert_true(!w.message && w.message_room == 0 && w.message_bytes == 0);
    /* A text that is cut inside of a letter, and one inside of another message. */
    w = (struct websocket){.limit = 5000};
    n = frame(in, 0x01, 0, 2, "a\xE4", 2);
    n += frame(in + n, 0x00, 0, 1, "\xB8", 1);
    n += frame(in + n, 0x80, 0, 2, "\xAD.", 2);
    assert_int_equal(websocket_read(&w, in, n, &used, &e), WEBSOCKET_EVENT);
    assert_true(e.kind == WEBSOCKET_TEXT && e.bytes == 5);
    assert_memory_equal(e.data, "a\xE4\xB8\xAD.", 5);
    n = frame(in, 0x02, 0, 1, "\xFF", 1); /* bytes are no text */
    n += frame(in + n, 0x80, 0, 1, "\xFF", 1);
    assert_int_equal(websocket_read(&w, in, n, &used, &e), WEBSOCKET_EVENT);
    n = frame(in, 0x01, 0, 1, "a", 1);
    n += frame(in + n, 0x81, 0, 1, "b", 1);
    assert_int_equal(websocket_read(&w, in, n, &used, &e), WEBSOCKET_BAD);
    assert_string_equal(e.fault, "fragments are out of order");
    websocket_fini(&w);
}

/* Text of a frame that is not whole is looked at once, and only text is. */
static void what_is_foreseen_is_counted(void **state)
{
    static uint8_t in[3000], text[2000];
    struct websocket w = {.limit = 5000};
    struct websocket_event e;
    size_t used, n;
    (void)state;
    memset(text, 'a', sizeof text);
    n = frame(in, 0x81, 2, 2000, text, 2000);
    assert_int_equal(websocket_unforeseen(&w, in, 7), 0); /* the header is not there */
    assert_int_equal(websocket_unforeseen(&w, in, 8), 8);
    assert_int_equal(websocket_read(&w, in, 1000, &used, &e), WEBSOCKET_MORE);
    assert_int_equal(w.n_foreseen, 992);
    assert_int_equal(websocket_unforeseen(&w, in, 8), 1000);
    assert_int_equal(websocket_foresee(&w, in, 8, in + 1000, 600, &e), WEBSOCKET_MORE);
    assert_int_equal(w.n_foreseen, 1592);
    in[1700] ^= 0x80;
    assert_int_equal(websocket_foresee(&w, in, 8, in + 1600, 600, &e), WEBSOCKET_BAD);
    assert_int_equal(e.close_code, WEBSOCKET_BAD_DATA);
    in[1700] ^= 0x80;
    websocket_fini(&w);
    w = (struct websocket){.limit = 5000};
    assert_int_equal(websocket_read(&w, in, 1000, &used, &e), WEBSOCKET_MORE);
    assert_int_equal(websocket_read(&w, in, n, &used, &e), WEBSOCKET_EVENT);
    assert_true(e.bytes == 2000 && w.n_foreseen == 0 && used == n);
    assert_memory_equal(e.data, text, 2000);
    n = frame(in, 0x82, 2, 2000, text, 2000);
    assert_int_equal(websocket_unforeseen(&w, in, 8), 0);
    frame(in, 0x01, 0, 1, text, 1);
    assert_int_equal(websocket_read(&w, in, 7, &used, &e), WEBSOCKET_MORE);
    n = frame(in, 0x80, 2, 2000, text, 2000);
    assert_int_equal(websocket_unforeseen(&w, in, 8), 8); /* the text goes on */
    frame(in, 0x81, 2, 2000, text, 2000);
    assert_int_equal(websocket_unforeseen(&w, in, 8), 0); /* out of order */
    websocket_fini(&w);
}

static void what_is_utf8_is_known(void **state)
{
    static const struct {
        const char *text;
        bool good;
    } cases[] = {{"", true}, {"a\x7F", true}, {"\x80", false}, {"\xBF", false}, {"\xC0\x80", false},
        {"\xC1\xBF", false}, {"\xC2\x7F", false}, {"\xC2\x80", true}, {"\xDF\xBF", true},
        {"\xDF\xC0", false}, {"\xC2", false}, {"\xE0\x9F\xBF", false}, {"\xE0\xA0\x80", true},
        {"\xE0\xA0", false}, {"\xE1\x80\x80", true}, {"\xE1\x7F\x80", false}, {"\xED\x9F\xBF", true},
        {"\xED\xA0\x80", false}, {"\xEE\x80\x80", true}, {"\xEF\xBF\xBF", true},
        {"\xEF\xBF\xC0", false}, {"\xF0\x8F\xBF\xBF", false}, {"\xF0\x90\x80\x80", true},
        {"\xF3\xBF\xBF\xBF", true}, {"\xF4\x8F\xBF\xBF", true}, {"\xF4\x90\x80\x80", false},
        {"\xF5\x80\x80\x80", false}, {"\xF0\x90\x80", false}, {"\xF0\x90\x80\x7F", false},
        {"\xFF", false}, {"\xC2\x80\xC2\x80", true}, {"\xE4\xB8\xAD\xC3\xA9z", true}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n = strlen(cases[i].text);
        assert_int_equal(websocket_is_utf8((const uint8_t *)cases[i].text, n), cases[i].good);
        struct websocket_text t = {0};
        bool good = true;
        for (size_t k = 0; k < n && good; k++) { /* byte by byte */
            good = websocket_text_goes_on(&t, (const uint8_t *)cases[i].text + k, 1);
        }
        assert_int_equal(good && t.more == 0, cases[i].good);
    }
}

static void headers_of_frames_are_written(void **state)
{
    static const struct {
        enum websocket_kind kind;
        size_t bytes, n;
        uint8_t header[10];
    } cases[] = {{WEBSOCKET_TEXT, 0, 2, {0x81, 0}}, {WEBSOCKET_BINARY, 125, 2, {0x82, 125}},
        {WEBSOCKET_BINARY, 126, 4, {0x82, 126, 0, 126}},
        {WEBSOCKET_CLOSE, 0x1234, 4, {0x88, 126, 0x12, 0x34}},
        {WEBSOCKET_PONG, 65535, 4, {0x8A, 126, 0xFF, 0xFF}},
        {WEBSOCKET_TEXT, 65536, 10, {0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0}},
        {WEBSOCKET_TEXT, 0x0102030405, 10, {0x81, 127, 0, 0, 0, 1, 2, 3, 4, 5}}};
    char accept[29];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t out[10] = {0};
        assert_int_equal(websocket_header(out, cases[i].kind, cases[i].bytes), cases[i].n);
        assert_memory_equal(out, cases[i].header, cases[i].n);
    }
    assert_true(websocket_accept(accept, "AAAAAAAAAAAAAAAAAAAAAA=="));
    assert_string_equal(accept, "ICX+Yqv66kxgM0FcWaLWlFLwTAI=");
    static const char *const bad[] = {"",
        "AAAAAAAAAAAAAAAAAAAAA==", "AAAAAAAAAAAAAAAAAAAAAAA=", "AAAAAAAAAAAAAAAAAAAAAAAA",
        "AAAAAAAAAAAAAAAAAAAAA!==", "AAAAAAAAAAAAAAAAAAAAAA==A"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(websocket_accept(accept, bad[i]));
    }
}

/* ---- Forms ---- */

static const char *form_fault(struct multipart *form, const char *type, const char *body)
{
    return multipart_parse(form, type, body, strlen(body));
}

#define FORM "multipart/form-data; boundary=B"

static void forms_are_refused_for_what_is_wrong(void **state)
{
    static const struct {
        const char *type, *body, *fault;
    } cases[] = {{"multipart/form-date; boundary=B", "--B--",
                     "the body is no multipart/form-data with a boundary"},
        {"multipart/form-data", "--B--", "the body is no multipart/form-data with a boundary"},
        {"multipart/form-data; boundary=", "--B--",
            "the body is no multipart/form-data with a boundary"},
        {"multipart/form-data; boundary=\"B", "--B--",
            "the body is no multipart/form-data with a boundary"},
        {FORM, "", "the form does not begin with its boundary"},
        {FORM, "\r\n--B--", "the form does not begin with its boundary"},
        {FORM, "--C--", "the form does not begin with its boundary"},
        {FORM, "--B\r\nx", "the form has no end"},
        {FORM, "--B-", "the form does not begin with its boundary"},
        {FORM, "--B\r\n\r\n--B--", "a part of the form has no header"},
        {FORM, "--B\r\na: b\r\n\r\nx\r\n--B--", "a part of the form has no name of at most 63 bytes"},
        {FORM, "--B\r\nContent-Disposition: form-data\r\n\r\nx\r\n--B--",
            "a part of the form has no name of at most 63 bytes"},
        {FORM, "--B\r\nContent-Disposition: form-data; name=a\r\n\r\nx\r\n--Bx", "the form has no end"},
        {FORM, "--B\r\nContent-Disposition: form-data; name=a\r\n\r\nx\r\n--B-x",
            "the form has no end"},
        {FORM, "--B\r\nContent-Disposition: form-data; name=a\r\n\r\nx\r\n--B\r",
            "the form has no end"},
        {FORM, "--B\rxContent-Disposition: form-data; name=a\r\n\r\nx\r\n--B--",
            "the form has no end"}};
    struct multipart form;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *fault = form_fault(&form, cases[i].type, cases[i].body);
        if (!fault || strcmp(fault, cases[i].fault) != 0) {
            fail_msg("'%s', '%s': %s", cases[i].type, cases[i].body, fault);
        }
    }
    assert_null(form_fault(&form, FORM, "--B--"));
    assert_int_equal(form.n_parts, 0);
    assert_null(form_fault(&form, "MULTIPART/form-data; charset=x; BOUNDARY=B", "--B--"));
}

static void parts_have_names_and_bytes(void **state)
{
    static const char *const heads[] = {"Content-Disposition: form-data; name=a",
        "content-disposition: form-data; filename=\"f; name=x\"; name=\"a\"",
        "X: name=b\r\nContent-Disposition: form-data; name=\"a\"; filename=\"f; name=x\"\r\nY: z",
        "Content-Disposition:form-data; NAME=a; x", "Content-Disposition: form-data; xname=b; name=a"};
    struct multipart form;
    char body[300];
    (void)state;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        snprintf(body, sizeof body, "--B\r\n%s\r\n\r\none\r\n-two\r\n--B--\r\n", heads[i]);
        assert_null(form_fault(&form, FORM, body));
        assert_int_equal(form.n_parts, 1);
        assert_string_equal(form.parts[0].name, "a");
        assert_string_equal(form.parts[0].file_name, i == 1 || i == 2 ? "f; name=x" : "");
        assert_int_equal(form.parts[0].bytes, 9);
        assert_memory_equal(form.parts[0].data, "one\r\n-two", 9);
        assert_ptr_equal(multipart_find(&form, "a"), &form.parts[0]);
        assert_null(multipart_find(&form, "b"));
    }
    for (size_t n = 63; n <= 64; n++) { /* of a name */
        int at = sprintf(body, "--B\r\nContent-Disposition: form-data; name=");
        memset(body + at, 'n', n);
        strcpy(body + at + n, "\r\n\r\nx\r\n--B--");
        assert_int_equal(form_fault(&form, FORM, body) == NULL, n == 63);
    }
    for (size_t n = 70; n <= 71; n++) { /* of a boundary */
        char type[150] = "multipart/form-data; boundary=", end[100] = "--";
        memset(type + strlen(type), 'b', n), memset(end + 2, 'b', n);
        strcat(end, "--");
        assert_int_equal(form_fault(&form, type, end) == NULL, n == 70);
    }
    for (int n = MULTIPART_MAX_PARTS; n <= MULTIPART_MAX_PARTS + 1; n++) {
        char many[2000] = "--B";
        for (int i = 0; i < n; i++) {
            sprintf(many + strlen(many),
                "\r\nContent-Disposition: form-data; name=p%d\r\n\r\n%d\r\n--B", i, i);
        }
        const char *fault = form_fault(&form, FORM, strcat(many, "--"));
        if (n == MULTIPART_MAX_PARTS) {
            assert_null(fault);
            assert_int_equal(form.n_parts, n);
            assert_memory_equal(multipart_find(&form, "p15")->data, "15", 2);
        } else {
            assert_string_equal(fault, "the form has more than 16 parts");
        }
    }
}

/* ---- Small things ---- */

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define SPAN "b7ad6b7169203331"

static void a_trace_is_as_the_standard_has_it(void **state)
{
    static const struct {
        const char *value;
        bool good;
    } cases[] = {{"00-" TRACE "-" SPAN "-01", true}, {"00-" TRACE "-" SPAN "-00", true},
        {"cc-" TRACE "-" SPAN "-01-more", true}, {"cc-" TRACE "-" SPAN "-01", true},
        {"cc-" TRACE "-" SPAN "-01.more", false}, {"00-" TRACE "-" SPAN "-01-more", false},
        {"ff-" TRACE "-" SPAN "-01", false}, {"fg-" TRACE "-" SPAN "-01", false},
        {"00-" TRACE "-" SPAN "-0", false}, {"00-" TRACE "-" SPAN "-0g", false},
        {"00-00000000000000000000000000000000-" SPAN "-01", false},
        {"00-00000000000000000000000000000001-" SPAN "-01", true},
        {"00-" TRACE "-0000000000000000-01", false}, {"00-" TRACE "-1000000000000000-01", true},
        {"00-0AF7651916CD43DD8448EB211C80319C-" SPAN "-01", false}, {"00_" TRACE "-" SPAN "-01", false},
        {"00-" TRACE "_" SPAN "-01", false}, {"00-" TRACE "-" SPAN "_01", false}, {"", false},
        {"00-" TRACE "-" SPAN "g-01", false}, {NULL, false}};
    struct trace t;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memset(&t, 'x', sizeof t);
        trace_read(&t, cases[i].value);
        if ((trace_id(&t) != NULL) != cases[i].good || (trace_span(&t) != NULL) != cases[i].good) {
            fail_msg("%s", cases[i].value);
        }
        if (i == 0) {
            assert_string_equal(trace_id(&t), TRACE);
            assert_string_equal(trace_span(&t), SPAN);
        }
    }
    assert_null(trace_id(NULL));
    assert_null(trace_span(NULL));
}

static void base64_is_read_and_written(void **state)
{
    static const struct {
        const char *text, *bytes; /* NULL: it is none */
    } cases[] = {{"", ""}, {"YQ==", "a"}, {"YWI=", "ab"}, {"YWJj", "abc"},
        {"data:audio/wav;base64,YWJj", "abc"}, {"data:YWJj", NULL}, {"YWJ", NULL}, {"Y", NULL},
        {"YWJj!", NULL}, {"YQ=", NULL}, {"x,YWJj", NULL}, {"data:,", ""}, {"data:a,b,YWJj", NULL},
        {"YW Jj\n", "abc"}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct wire_out out = {0};
        wire_put(&out, "before", 6);
        bool good = base64_read(cases[i].text, &out);
        assert_false(out.failed);
        if (good != (cases[i].bytes != NULL) || out.n != 6 + (good ? strlen(cases[i].bytes) : 0) ||
            memcmp(out.bytes, "before", 6) != 0 ||
            (good && memcmp(out.bytes + 6, cases[i].bytes, out.n - 6) != 0)) {
            fail_msg("'%s': %d, %zu bytes", cases[i].text, good, out.n);
        }
        wire_fini(&out);
    }
    json_t *json = base64_write("abcd", 4), *none = base64_write("", 0);
    assert_string_equal(json_string_value(json), "YWJjZA==");
    assert_string_equal(json_string_value(none), "");
    json_decref(json);
    json_decref(none);
}

static void a_refusal_has_openai_s_shape(void **state)
{
    static const struct {
        int status;
        const char *type;
    } types[] = {{400, "invalid_request_error"}, {404, "invalid_request_error"},
        {428, "invalid_request_error"}, {429, "rate_limit_error"}, {499, "invalid_request_error"},
        {500, "server_error"}, {502, "server_error"}, {503, "overloaded_error"}, {504, "server_error"}};
    struct refusal r = {.code = "x", .retry_ms = 7, .never_retry = true, .type = "y"};
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        assert_false(refuse(&r, types[i].status, NULL, "%d", types[i].status));
        assert_string_equal(refusal_type(&r), types[i].type);
        assert_true(!r.code && r.retry_ms == 0 && !r.never_retry && !r.type && r.param[0] == 0);
        assert_int_equal(r.status, types[i].status);
    }
    static const int seconds[][2] = {{0, 0}, {1, 1}, {999, 1}, {1000, 1}, {1001, 2}, {3600000, 3600}};
    for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++) {
        assert_int_equal(refusal_retry_s(seconds[i][0]), seconds[i][1]);
    }
    refuse(&r, 400, "field", "no '%s'", "x");
    json_t *json = refusal_json(&r),
           *want = json_pack("{s:{s:s,s:s,s:s,s:n}}", "error", "message", "no 'x'", "type",
               "invalid_request_error", "param", "field", "code");
    assert_true(json_equal(json, want));
    json_decref(json), json_decref(want);
    r.code = "c", r.type = "t", r.param[0] = 0;
    json = refusal_json(&r);
    want = json_pack(
        "{s:{s:s,s:s,s:n,s:s}}", "error", "message", "no 'x'", "type", "t", "param", "code", "c");
    assert_true(json_equal(json, want));
    json_decref(json), json_decref(want);
    char longest[2000];
    memset(longest, 'a', sizeof longest - 1), longest[sizeof longest - 1] = 0;
    refuse(&r, 400, longest, "%s", longest); /* what is too long is cut */
    assert_int_equal(strlen(r.param), sizeof r.param - 1);
    assert_true(strlen(r.message) < sizeof r.message && strlen(r.message) > sizeof r.message - 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths_of_frames_are_in_their_shortest_form),
        cmocka_unit_test(frames_are_refused_for_what_is_wrong),
        cmocka_unit_test(fragments_make_one_message),
        cmocka_unit_test(what_is_foreseen_is_counted),
        cmocka_unit_test(what_is_utf8_is_known),
        cmocka_unit_test(headers_of_frames_are_written),
        cmocka_unit_test(forms_are_refused_for_what_is_wrong),
        cmocka_unit_test(parts_have_names_and_bytes),
        cmocka_unit_test(a_trace_is_as_the_standard_has_it),
        cmocka_unit_test(base64_is_read_and_written),
        cmocka_unit_test(a_refusal_has_openai_s_shape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
