/* SPDX-License-Identifier: Apache-2.0
 * A growing list of token ids: what this room makes. */
#ifndef TEXT_IDS_H
#define TEXT_IDS_H

#include "base/error.h"

/* Zero it before use. */
struct ids {
    int32_t *at;
    size_t n, capacity;
};
utter_status ids_add(struct ids *ids, int32_t id, utter_error *error);
void ids_fini(struct ids *ids);

#endif
