/* SPDX-License-Identifier: Apache-2.0
 * Compares words with those before. */
#include "server/worker/told.h"

#include <string.h>

#include "base/memory.h"

static bool is_same(const utter_word *a, const utter_word *b)
{
    return a->at == b->at && a->bytes == b->bytes && a->start == b->start && a->end == b->end &&
           a->final == b->final && a->skipped == b->skipped;
}

/* Without memory nothing counts as told, and comes again. */
static void keep(struct told *t, const utter_word *words, uint64_t first, size_t n)
{
    t->n = 0;
    t->first = first;
    if (n > t->room) {
        utter_word *grown = memory_resize(t->at, t->room, n + n / 2, sizeof *grown);
        if (!grown) {
            return;
        }
        t->at = grown;
        t->room = n + n / 2;
    }
    if (n > 0) {
        memcpy(t->at, words, n * sizeof *words);
    }
    t->n = n;
}

void told_put(struct told *t, uint32_t id, const utter_word *words, uint64_t first, size_t n,
    bool approximate, struct wire_out *out)
{
    uint64_t end = t->first + t->n; /* of what was told */
    size_t same = 0;
    while (same < n && first + same >= t->first && first + same < end &&
           is_same(&words[same], &t->at[first + same - t->first])) {
        same++;
    }
    if (same < n || first + n < end) {
        wire_put_words(out, id, first + same, words + same, n - same, approximate);
    }
    keep(t, words, first, n);
}

void told_fini(struct told *t)
{
    memory_free(t->at);
    *t = (struct told){0};
}
