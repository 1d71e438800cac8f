/* SPDX-License-Identifier: Apache-2.0
 * libevent 2.1.12 does not look whether it got memory for what is called when a buffer changes: without it
 * bufferevent_setwatermark writes to nowhere, and what is put into one of bufferevent_socket_new never leaves. */
#include "server/loop/spare.h"

#include <event2/event.h>

#include "base/memory.h"

enum { SPARE_BYTES = 64 };

static void *spare;

static void *allocate(size_t bytes)
{
    void *block = memory_plain_new(bytes);
    if (!block && bytes <= SPARE_BYTES) {
        block = spare;
        spare = NULL;
    }
    return block;
}

void spare_begin(void)
{
    event_set_mem_functions(allocate, memory_plain_resize, memory_plain_free);
}

void spare_end(void)
{
    memory_plain_free(spare);
    spare = NULL;
}

bool spare_keep(void)
{
    spare = spare ? spare : memory_plain_new(SPARE_BYTES);
    return spare != NULL;
}
