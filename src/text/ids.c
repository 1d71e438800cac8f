/* SPDX-License-Identifier: Apache-2.0
 * The list of ids grows by doubling. */
#include "text/ids.h"

#include "base/memory.h"

utter_status ids_add(struct ids *ids, int32_t id, utter_error *error)
{
    if (ids->n == ids->capacity) {
        size_t capacity = ids->capacity * 2 + 64;
        int32_t *at = memory_resize(ids->at, ids->capacity, capacity, sizeof *at);
        if (!at) {
            return error_memory(error, "token ids");
        }
        ids->at = at;
        ids->capacity = capacity;
    }
    ids->at[ids->n++] = id;
    return UTTER_OK;
}

void ids_fini(struct ids *ids)
{
    memory_free(ids->at);
    *ids = (struct ids){0};
}
