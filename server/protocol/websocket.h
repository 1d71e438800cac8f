/* SPDX-License-Identifier: Apache-2.0
 * WebSocket frames (RFC 6455, no extensions), the server's side. Pure: bytes in, messages out. */
#ifndef SERVER_WEBSOCKET_H
#define SERVER_WEBSOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum websocket_kind {
    WEBSOCKET_CONTINUATION = 0,
    WEBSOCKET_TEXT = 1,
    WEBSOCKET_BINARY = 2,
    WEBSOCKET_CLOSE = 8,
    WEBSOCKET_PING = 9,
    WEBSOCKET_PONG = 10,
};

/* Close codes that are sent from here. */
enum {
    WEBSOCKET_NORMAL = 1000,
    WEBSOCKET_GOING_AWAY = 1001,
    WEBSOCKET_PROTOCOL = 1002,
    WEBSOCKET_NOT_TEXT = 1003,
    WEBSOCKET_BAD_DATA = 1007,
    WEBSOCKET_POLICY = 1008,
    WEBSOCKET_TOO_BIG = 1009,
    WEBSOCKET_FAULT = 1011,
    WEBSOCKET_TRY_LATER = 1013,
};

/* A text that is checked piece by piece: what the next bytes of its last character must be. Zero it. */
struct websocket_text {
    uint8_t more, low, high;
};
/* False: with these bytes the text is no UTF-8, whatever follows. */
bool websocket_text_goes_on(struct websocket_text *text, const uint8_t *bytes, size_t n);

/* Reads frames and puts fragments together. `message` holds at most `limit` bytes and grows up to that. Zero it but for
 * `limit`; free with websocket_fini. */
struct websocket {
    size_t limit;
    uint8_t *message;
    size_t message_bytes, message_room;
    int kind; /* of the message being put together, 0: none */
    struct websocket_text text;
    size_t n_foreseen; /* payload bytes of the frame which is arriving that have been checked */
    uint8_t control[125];
};

struct websocket_event {
    enum websocket_kind kind; /* a whole message, or a control frame */
    const uint8_t *data;      /* valid until the next read */
    size_t bytes;
    int close_code; /* of a failure: what to close with */
    const char *fault;
};

enum websocket_progress { WEBSOCKET_MORE, WEBSOCKET_EVENT, WEBSOCKET_BAD };

/* Takes one frame from in[0..n) if it is all there: *used bytes are done with. */
enum websocket_progress websocket_read(
    struct websocket *w, const uint8_t *in, size_t n, size_t *used, struct websocket_event *event);
/* Of a frame that is not all there, whose header is in[0..n) and more: where the bytes of its text begin that have not
 * been checked yet, counted from the header; 0: it needs no check before it is there. */
size_t websocket_unforeseen(const struct websocket *w, const uint8_t *in, size_t n);
/* Checks n more of these bytes. WEBSOCKET_BAD: a text that is no UTF-8 is refused before all of it has come. */
enum websocket_progress websocket_foresee(struct websocket *w, const uint8_t *in, size_t n_header,
    const uint8_t *bytes, size_t n, struct websocket_event *event);
/* Bytes that the frame which begins with in[0..n) takes, as far as these bytes tell. */
uint64_t websocket_frame_bytes(const uint8_t *in, size_t n);
void websocket_fini(struct websocket *w);

/* Writes the header of an unmasked, whole frame into out[10]; returns its length. */
size_t websocket_header(uint8_t out[10], enum websocket_kind kind, size_t bytes);

/* Sec-WebSocket-Accept for a Sec-WebSocket-Key; false when the key is not 16 bytes in base64. */
bool websocket_accept(char out[29], const char *key);

/* Whether n bytes are UTF-8. */
bool websocket_is_utf8(const uint8_t *text, size_t n);

#endif
