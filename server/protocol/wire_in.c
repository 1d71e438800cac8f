/* SPDX-License-Identifier: Apache-2.0
 * One buffer, whose rest moves to its beginning before more comes. */
#include "server/protocol/wire_in.h"

#include <string.h>

#include "base/memory.h"
#include "base/minmax.h"

/* Room for some frames of sound: many of them cost few calls, and their reader is soon back. */
enum { ROOM_BYTES = 64 << 10 };

uint8_t *wire_in_room(struct wire_in *in, size_t *n)
{
    const size_t left = in->n - in->begin,
                 whole = left < WIRE_HEADER_BYTES ? 0 : wire_message_bytes(in->bytes + in->begin),
                 needed = min(whole, (size_t)WIRE_HEADER_BYTES + WIRE_MAX_BODY),
                 room = max(max(needed, left), (size_t)ROOM_BYTES);
    if (in->begin > 0) {
        memmove(in->bytes, in->bytes + in->begin, left);
        in->begin = 0;
        in->n = left;
    }
    if (in->room < room) {
        uint8_t *grown = memory_resize(in->bytes, in->room, room, 1);
        if (!grown) {
            return NULL;
        }
        in->bytes = grown;
        in->room = room;
    }
    /* Of a long message no more than its end: then nothing is left, and the room can go back. */
    *n = room - left;
    return in->bytes + left;
}

void wire_in_came(struct wire_in *in, size_t n)
{
    in->n += n;
}

enum wire_progress wire_next(struct wire_in *in, struct wire_message *m)
{
    size_t used;
    if (in->begin == in->n) {
        return WIRE_MORE;
    }
    const enum wire_progress progress = wire_read(m, in->bytes + in->begin, in->n - in->begin, &used);
    in->begin += used;
    return progress;
}

void wire_in_rest(struct wire_in *in)
{
    if (in->begin == in->n && in->room > ROOM_BYTES) {
        wire_in_fini(in);
    }
}

void wire_in_fini(struct wire_in *in)
{
    memory_free(in->bytes);
    *in = (struct wire_in){0};
}
