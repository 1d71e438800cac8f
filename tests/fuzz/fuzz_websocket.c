/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as frames of a client, given at once and byte after byte: the same messages, the same end. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "server/protocol/websocket.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

enum { LIMIT = 1024 };

/* A sum over all that was read, so that two ways to read can be compared. */
static uint64_t read_all(const uint8_t *data, size_t bytes, size_t step)
{
    struct websocket w = {.limit = LIMIT};
    uint64_t sum = 1;
    size_t from = 0;
    for (size_t to = 0; from < bytes && to < bytes;) {
        to = bytes - to < step ? bytes : to + step;
        enum websocket_progress progress = WEBSOCKET_EVENT;
        while (progress == WEBSOCKET_EVENT) {
            struct websocket_event event;
            size_t used = 0;
            progress = websocket_read(&w, data + from, to - from, &used, &event);
            if (used > to - from || event.bytes > LIMIT) {
                abort();
            }
            from += used;
            if (progress == WEBSOCKET_EVENT) {
                sum = sum * 31 + (uint64_t)event.kind;
                for (size_t i = 0; i < event.bytes; i++) {
                    sum = sum * 31 + event.data[i];
                }
            } else if (progress == WEBSOCKET_BAD) {
                if (!event.fault || event.close_code < 1000) {
                    abort();
                }
                websocket_fini(&w);
                return sum * 31 + (uint64_t)event.close_code;
            }
        }
    }
    websocket_fini(&w);
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char accept[29], key[32] = "";
    memcpy(key, data, bytes < 31 ? bytes : 31);
    if (websocket_accept(accept, key) && strlen(accept) != 28) {
        abort();
    }
    if (read_all(data, bytes, 1) != read_all(data, bytes, bytes ? bytes : 1)) {
        abort();
    }
    websocket_frame_bytes(data, bytes < 14 ? bytes : 14);
    return 0;
}
