/* SPDX-License-Identifier: Apache-2.0
 * Logits kept from a backend's taps, for runs whose logits must not differ. Each is its holder's to forget. */
#ifndef TESTS_CUDA_HEADS_H
#define TESTS_CUDA_HEADS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The logits of one slot, of a frame of n_slots slots: the talker's head and those of the predictor in turn. */
struct heads {
    int slot, n_slots, n_seen; /* n_seen: heads of all slots */
    float *data;
    int64_t n;
};

static inline void keep_heads(
    void *user, const char *tap, int index, const float *data, int64_t rows, int64_t cols)
{
    struct heads *h = user;
    (void)index;
    if (!strstr(tap, "logits") || h->n_seen++ % h->n_slots != h->slot) {
        return;
    }
    h->data = realloc(h->data, (size_t)(h->n + rows * cols) * sizeof *h->data);
    memcpy(h->data + h->n, data, (size_t)(rows * cols) * sizeof *data);
    h->n += rows * cols;
}

static inline bool same_heads(const struct heads *a, const struct heads *b)
{
    return a->n > 0 && a->n == b->n && memcmp(a->data, b->data, (size_t)a->n * sizeof *a->data) == 0;
}

static inline void forget(struct heads *h)
{
    free(h->data);
    *h = (struct heads){.slot = h->slot, .n_slots = h->n_slots};
}

#endif
