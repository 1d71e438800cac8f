/* SPDX-License-Identifier: Apache-2.0
 * Byte-pair encoding: the table of merges, and the merging of one word. */
#ifndef TEXT_BPE_H
#define TEXT_BPE_H

#include "text/ids.h"
#include "text/vocabulary.h"

/* What two neighbours become, and when: the merge of lowest rank comes first. */
struct bpe_merge {
    uint64_t pair; /* bpe_pair */
    int32_t id;    /* -1: a free slot */
    uint32_t rank;
};

struct bpe {
    int32_t byte_id[256];
    struct bpe_merge *slot; /* [slot_mask + 1], hash table */
    size_t slot_mask;
};

/* Reads merges.txt (merges.c). The vocabulary is needed during the call only. */
utter_status bpe_open(struct bpe *bpe, const struct vocabulary *vocabulary, const char *path,
    file_reader *read_file, utter_error *error);
void bpe_close(struct bpe *bpe); /* accepts a zeroed one */

static inline uint64_t bpe_pair(int32_t left, int32_t right)
{
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

/* The slot of a pair, or the free one where it would stand. */
static inline struct bpe_merge *bpe_find(const struct bpe *bpe, int32_t left, int32_t right)
{
    uint64_t pair = bpe_pair(left, right), h = pair * 0x9e3779b97f4a7c15u;
    size_t at = (h ^ h >> 32) & bpe->slot_mask;
    while (bpe->slot[at].id >= 0 && bpe->slot[at].pair != pair) {
        at = (at + 1) & bpe->slot_mask;
    }
    return &bpe->slot[at];
}

/* Scratch of one user of bpe_encode; grows to what the largest window takes (bpe.c). Zero it before use. */
struct bpe_scratch {
    struct bpe_symbol *symbol; /* [capacity] */
    struct bpe_waiting *heap;  /* [2 * capacity] */
    size_t capacity;
};
void bpe_scratch_fini(struct bpe_scratch *scratch);

/* Appends the ids of one word to *ids; where they begin is counted from the beginning of the word. Linear in its
 * length, but for merges that make tokens of a quarter of a window (bpe.c), or let the end of a word change tokens as
 * far before it: O(n log^2 n) at most. */
utter_status bpe_encode(const struct bpe *bpe, struct bpe_scratch *scratch, const char *word,
    size_t bytes, struct ids *ids, utter_error *error);

/* The same by windows of this many bytes at first, at least 1: for tests, which choose small ones, or one window for
 * the whole word. */
utter_status bpe_encode_by(const struct bpe *bpe, struct bpe_scratch *scratch, size_t window,
    const char *word, size_t bytes, struct ids *ids, utter_error *error);

#endif
