/* SPDX-License-Identifier: Apache-2.0
 * A growing list of token ids, and where in the text each stands: what this room makes. */
#ifndef TEXT_IDS_H
#define TEXT_IDS_H

#include "base/error.h"

/* Zero it before use. */
struct ids {
    int32_t *at;
    /* The first byte that each id stands for, in the text as it came; behind an opening (token_feed_begin_offsets)
     * counted from its end, and 0 for what begins in it. It may lie inside a character. */
    uint64_t *begin;
    size_t n, capacity;
};
utter_status ids_add(struct ids *ids, int32_t id, uint64_t begin, utter_error *error);
void ids_fini(struct ids *ids);

#endif
