/* SPDX-License-Identifier: Apache-2.0
 * RFC 6455 frames. */
#include "server/protocol/websocket.h"

#include <nettle/base64.h>
#include <nettle/sha1.h>
#include <string.h>

#include "base/memory.h"

enum {
    MASK_BIT = 0x80,
    FINAL_BIT = 0x80,
    RESERVED_BITS = 0x70,
    SMALL = 125,
    NUMBER_16 = 126,
    NUMBER_64 = 127
};

struct frame {
    int kind;
    bool final;
    uint64_t bytes;
    const uint8_t *mask;
    size_t header_bytes;
};

static enum websocket_progress bad(struct websocket_event *event, int code, const char *why)
{
    event->close_code = code;
    event->fault = why;
    return WEBSOCKET_BAD;
}

/* WEBSOCKET_EVENT: the header is whole and right. */
static enum websocket_progress read_header(
    struct frame *frame, const uint8_t *in, size_t n, struct websocket_event *event)
{
    if (n < 2) {
        return WEBSOCKET_MORE;
    }
    frame->final = in[0] & FINAL_BIT;
    frame->kind = in[0] & 15;
    frame->bytes = in[1] & 127;
    bool control = frame->kind & 8;
    if (in[0] & RESERVED_BITS) {
        return bad(event, WEBSOCKET_PROTOCOL, "a reserved bit is set (no extension was agreed on)");
    }
    if (!(in[1] & MASK_BIT)) {
        return bad(event, WEBSOCKET_PROTOCOL, "a client's frame is not masked");
    }
    if (frame->kind > WEBSOCKET_PONG || (frame->kind > WEBSOCKET_BINARY && !control)) {
        return bad(event, WEBSOCKET_PROTOCOL, "an unknown kind of frame");
    }
    if (control && (!frame->final || frame->bytes > SMALL)) {
        return bad(event, WEBSOCKET_PROTOCOL, "a control frame is cut or longer than 125 bytes");
    }
    size_t n_number = frame->bytes == NUMBER_16 ? 2 : frame->bytes == NUMBER_64 ? 8 : 0;
    if (n < 2 + n_number + 4) {
        return WEBSOCKET_MORE;
    }
    if (n_number) {
        frame->bytes = 0;
        for (size_t i = 0; i < n_number; i++) {
            frame->bytes = frame->bytes << 8 | in[2 + i];
        }
        if (frame->bytes <= SMALL ||
            (n_number == 8 && (frame->bytes <= UINT16_MAX || frame->bytes >> 63))) {
            return bad(event, WEBSOCKET_PROTOCOL, "a frame's length is not in its shortest form");
        }
    }
    frame->mask = in + 2 + n_number;
    frame->header_bytes = 2 + n_number + 4;
    return WEBSOCKET_EVENT;
}

/* Codes that RFC 6455 and its registry let an end send; 1004 to 1006 and 1015 stand for what no frame says. */
static bool may_close_with(int code)
{
    return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) ||
           (code >= 3000 && code <= 4999);
}

static enum websocket_progress take_control(
    struct websocket *w, const struct frame *frame, const uint8_t *data, struct websocket_event *event)
{
    for (size_t i = 0; i < frame->bytes; i++) {
        w->control[i] = data[i] ^ frame->mask[i % 4];
    }
    event->kind = (enum websocket_kind)frame->kind;
    event->data = w->control;
    event->bytes = (size_t)frame->bytes;
    if (frame->kind == WEBSOCKET_CLOSE && frame->bytes == 1) {
        return bad(event, WEBSOCKET_PROTOCOL, "a close frame holds half a code");
    }
    if (frame->kind == WEBSOCKET_CLOSE && frame->bytes &&
        !may_close_with(w->control[0] << 8 | w->control[1])) {
        return bad(event, WEBSOCKET_PROTOCOL, "a close frame holds a code that must not be sent");
    }
    if (frame->kind == WEBSOCKET_CLOSE && frame->bytes &&
        !websocket_is_utf8(w->control + 2, event->bytes - 2)) {
        return bad(event, WEBSOCKET_BAD_DATA, "the reason of a close frame is not UTF-8");
    }
    return WEBSOCKET_EVENT;
}

/* Copies n payload bytes from `at` on, as they were before the mask. */
static void unmask(uint8_t *to, const struct frame *frame, const uint8_t *bytes, size_t at, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        to[i] = bytes[i] ^ frame->mask[(at + i) % 4];
    }
}

/* Of a text message, where its order allows it: what begins inside of another one is refused for that, not read. */
static bool is_text(const struct websocket *w, const struct frame *frame)
{
    return w->kind == 0 ? frame->kind == WEBSOCKET_TEXT
                        : frame->kind == WEBSOCKET_CONTINUATION && w->kind == WEBSOCKET_TEXT;
}

static enum websocket_progress no_text(struct websocket_event *event)
{
    return bad(event, WEBSOCKET_BAD_DATA, "a text message is not UTF-8");
}

/* The payload's next n bytes have come, and the frame is not whole yet. */
static enum websocket_progress foresee(struct websocket *w, const struct frame *frame,
    const uint8_t *bytes, size_t n, struct websocket_event *event)
{
    uint8_t piece[512];
    for (size_t i = 0; is_text(w, frame) && i < n;) {
        size_t m = n - i < sizeof piece ? n - i : sizeof piece;
        unmask(piece, frame, bytes + i, w->n_foreseen, m);
        if (!websocket_text_goes_on(&w->text, piece, m)) {
            return no_text(event);
        }
        w->n_foreseen += m;
        i += m;
    }
    return WEBSOCKET_MORE;
}

static bool make_room(struct websocket *w, size_t more)
{
    size_t need = w->message_bytes + more;
    if (need <= w->message_room && w->message) {
        return true;
    }
    size_t room = w->message_room ? w->message_room : 1024;
    while (room < need) {
        room *= 2;
    }
    uint8_t *grown = memory_resize(w->message, w->message_room, room, 1);
    if (grown) {
        w->message = grown;
        w->message_room = room;
    }
    return grown != NULL;
}

static enum websocket_progress take_data(
    struct websocket *w, const struct frame *frame, const uint8_t *data, struct websocket_event *event)
{
    if (!make_room(w, (size_t)frame->bytes)) {
        return bad(event, WEBSOCKET_FAULT, "out of memory");
    }
    uint8_t *to = w->message + w->message_bytes;
    unmask(to, frame, data, 0, (size_t)frame->bytes);
    w->message_bytes += (size_t)frame->bytes;
    size_t n_seen = w->n_foreseen;
    w->n_foreseen = 0;
    if (w->kind == WEBSOCKET_TEXT &&
        !websocket_text_goes_on(&w->text, to + n_seen, (size_t)frame->bytes - n_seen)) {
        return no_text(event);
    }
    if (!frame->final) {
        return WEBSOCKET_MORE;
    }
    if (w->text.more > 0) {
        return no_text(event);
    }
    event->kind = (enum websocket_kind)w->kind;
    event->data = w->message;
    event->bytes = w->message_bytes;
    w->kind = 0;
    w->message_bytes = 0;
    return WEBSOCKET_EVENT;
}

enum websocket_progress websocket_read(
    struct websocket *w, const uint8_t *in, size_t n, size_t *used, struct websocket_event *event)
{
    *event = (struct websocket_event){0};
    *used = 0;
    struct frame frame = {0};
    while (true) {
        const uint8_t *at = in + *used;
        size_t left = n - *used;
        enum websocket_progress progress = read_header(&frame, at, left, event);
        if (progress != WEBSOCKET_EVENT) {
            return progress;
        }
        bool control = frame.kind & 8;
        if (!control && (frame.kind == WEBSOCKET_CONTINUATION) != (w->kind != 0)) {
            return bad(event, WEBSOCKET_PROTOCOL, "fragments are out of order");
        }
        if (!control && (frame.bytes > w->limit || w->message_bytes > w->limit - frame.bytes)) {
            return bad(event, WEBSOCKET_TOO_BIG, "a message is too long");
        }
        if (frame.bytes > left - frame.header_bytes) {
            size_t seen = frame.header_bytes + w->n_foreseen;
            return control ? WEBSOCKET_MORE : foresee(w, &frame, at + seen, left - seen, event);
        }
        *used += frame.header_bytes + (size_t)frame.bytes;
        if (control) {
            return take_control(w, &frame, at + frame.header_bytes, event);
        }
        w->kind = frame.kind ? frame.kind : w->kind;
        progress = take_data(w, &frame, at + frame.header_bytes, event);
        if (progress != WEBSOCKET_MORE) {
            return progress;
        }
    }
}

size_t websocket_unforeseen(const struct websocket *w, const uint8_t *in, size_t n)
{
    struct frame frame = {0};
    struct websocket_event event;
    bool known = read_header(&frame, in, n, &event) == WEBSOCKET_EVENT;
    return known && is_text(w, &frame) ? frame.header_bytes + w->n_foreseen : 0;
}

enum websocket_progress websocket_foresee(struct websocket *w, const uint8_t *in, size_t n_header,
    const uint8_t *bytes, size_t n, struct websocket_event *event)
{
    struct frame frame = {0};
    *event = (struct websocket_event){0};
    enum websocket_progress progress = read_header(&frame, in, n_header, event);
    return progress == WEBSOCKET_EVENT ? foresee(w, &frame, bytes, n, event) : progress;
}

uint64_t websocket_frame_bytes(const uint8_t *in, size_t n)
{
    uint64_t bytes = n >= 2 ? in[1] & 127 : 0;
    size_t n_number = bytes == NUMBER_16 ? 2 : bytes == NUMBER_64 ? 8 : 0, head = 2 + n_number + 4;
    if (n < head) {
        return head;
    }
    for (size_t i = 0; i < n_number; i++) {
        bytes = (i ? bytes : 0) << 8 | in[2 + i];
    }
    return bytes > UINT64_MAX - head ? UINT64_MAX : bytes + head;
}

void websocket_fini(struct websocket *w)
{
    memory_free(w->message);
    w->message = NULL;
    w->message_room = w->message_bytes = 0;
}

size_t websocket_header(uint8_t out[10], enum websocket_kind kind, size_t bytes)
{
    out[0] = (uint8_t)(FINAL_BIT | (int)kind);
    size_t n_number = bytes <= SMALL ? 0 : bytes <= UINT16_MAX ? 2 : 8;
    out[1] = n_number == 0 ? (uint8_t)bytes : n_number == 2 ? NUMBER_16 : NUMBER_64;
    for (size_t i = 0; i < n_number; i++) {
        out[2 + i] = (uint8_t)(bytes >> 8 * (n_number - 1 - i));
    }
    return 2 + n_number;
}

bool websocket_accept(char out[29], const char *key)
{
    static const char salt[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"; /* the RFC's */
    struct base64_decode_ctx decode;
    uint8_t raw[24];
    size_t n = sizeof raw;
    base64_decode_init(&decode);
    if (strlen(key) != 24 || !base64_decode_update(&decode, &n, raw, 24, key) ||
        !base64_decode_final(&decode) || n != 16) {
        return false;
    }
    struct sha1_ctx sha;
    uint8_t digest[SHA1_DIGEST_SIZE];
    sha1_init(&sha);
    sha1_update(&sha, 24, (const uint8_t *)key);
    sha1_update(&sha, sizeof salt - 1, (const uint8_t *)salt);
    sha1_digest(&sha, sizeof digest, digest);
    base64_encode_raw(out, sizeof digest, digest);
    out[28] = 0;
    return true;
}

bool websocket_text_goes_on(struct websocket_text *text, const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint8_t c = bytes[i];
        if (text->more > 0) {
            if (c < text->low || c > text->high) {
                return false;
            }
            *text = (struct websocket_text){(uint8_t)(text->more - 1), 0x80, 0xBF};
        } else if (c >= 0x80) {
            text->more = c >= 0xC2 && c < 0xE0   ? 1
                         : c >= 0xE0 && c < 0xF0 ? 2
                         : c >= 0xF0 && c < 0xF5 ? 3
                                                 : 0;
            /* The second byte also rules out long forms, surrogates and what lies above U+10FFFF. */
            text->low = c == 0xE0 ? 0xA0 : c == 0xF0 ? 0x90 : 0x80;
            text->high = c == 0xED ? 0x9F : c == 0xF4 ? 0x8F : 0xBF;
            if (text->more == 0) {
                return false;
            }
        }
    }
    return true;
}

bool websocket_is_utf8(const uint8_t *text, size_t n)
{
    struct websocket_text whole = {0};
    return websocket_text_goes_on(&whole, text, n) && whole.more == 0;
}
