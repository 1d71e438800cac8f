/* SPDX-License-Identifier: Apache-2.0
 * The list of ids grows by doubling. */
#include "text/ids.h"

#include "base/memory.h"

utter_status ids_add(struct ids *ids, int32_t id, uint64_t begin, utter_error *error)
{
    if (ids->n == ids->capacity) {
        size_t capacity = ids->capacity * 2 + 64;
        int32_t *at = memory_resize(ids->at, ids->capacity, capacity, sizeof *at);
        if (!at) {
            return error_memory(error, "token ids");
        }
        ids->at = at;
        uint64_t *begins = memory_resize(ids->begin, ids->capacity, capacity, sizeof *begins);
        if (!begins) {
            return error_memory(error, "token ids");
        }
        ids->begin = begins;
        ids->capacity = capacity;
    }
    ids->begin[ids->n] = begin;
    ids->at[ids->n++] = id;
    return UTTER_OK;
}

void ids_fini(struct ids *ids)
{
    memory_free(ids->at);
    memory_free(ids->begin);
    *ids = (struct ids){0};
}
