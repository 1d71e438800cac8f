/* SPDX-License-Identifier: Apache-2.0
 * What the front end has been told of the words of a speech: it hears only of what is new. */
#ifndef SERVER_TOLD_H
#define SERVER_TOLD_H

#include "server/protocol/wire.h"

/* Zero it before the first. */
struct told {
    utter_word *at; /* [n]: as they were told last, from word `first` on */
    size_t n, room;
    uint64_t first;
};

/* These are the words now, the first of them is word `first`: writes those that changed, and all behind them. */
void told_put(struct told *t, uint32_t id, const utter_word *words, uint64_t first, size_t n,
    bool approximate, struct wire_out *out);
void told_fini(struct told *t);

#endif
