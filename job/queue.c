/* SPDX-License-Identifier: Apache-2.0
 * Which kind of queue an address names. */
#include "job/queue.h"

#include <string.h>

utter_status queue_open(struct queue **queue, const char *address, bool make, utter_error *error)
{
    *queue = NULL;
    if (strncmp(address, "nats://", 7) == 0 || strncmp(address, "tls://", 6) == 0) {
        return queue_nats_open(queue, address, make, error);
    }
    if (strstr(address, "://")) {
        return error_set(
            error, UTTER_E_ARGUMENT, "--queue %s: is no folder and no nats://HOST", address);
    }
    return queue_folder_open(queue, address, make, error);
}

const char *queue_line_key(const char *wire, size_t bytes)
{
    static const char begin[] = "{\"key\":\"";
    const char *key = wire + sizeof begin - 1;
    if (bytes < sizeof begin + IDENTITY_SIZE || memcmp(wire, begin, sizeof begin - 1) != 0) {
        return NULL;
    }
    for (size_t i = 0; i < IDENTITY_SIZE - 1; i++) {
        if (!memchr("0123456789abcdef", key[i], 16)) {
            return NULL;
        }
    }
    return key[IDENTITY_SIZE - 1] == '"' ? key : NULL;
}

void queue_close(struct queue **queue)
{
    if (*queue) {
        (*queue)->calls->close(*queue);
    }
    *queue = NULL;
}
