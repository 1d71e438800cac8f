/* SPDX-License-Identifier: Apache-2.0
 * Merges one word: a linked list of symbols, and a heap of the merges that its neighbours could make. A
 * merge in the heap whose symbols have changed meanwhile is dropped when it comes up. */
#include "text/bpe.h"

#include "base/memory.h"

struct bpe_symbol {
    int32_t id;          /* -1: merged into the one before */
    uint32_t prev, next; /* NONE at the ends */
};

struct bpe_waiting {
    uint64_t order; /* rank << 32 | position of the left symbol: lowest first, then leftmost */
    uint64_t pair;
};

#define NONE UINT32_MAX

void bpe_scratch_fini(struct bpe_scratch *scratch)
{
    memory_free(scratch->symbol);
    memory_free(scratch->heap);
    *scratch = (struct bpe_scratch){0};
}

static utter_status scratch_reserve(struct bpe_scratch *scratch, size_t n, utter_error *error)
{
    if (n <= scratch->capacity) {
        return UTTER_OK;
    }
    if (n >= NONE / 2) {
        return error_set(error, UTTER_E_ARGUMENT, "a word of %zu bytes is too long", n);
    }
    size_t capacity = n + n / 2 + 64;
    bpe_scratch_fini(scratch);
    /* Each merge takes one entry out and puts at most two in: never more than 2 n. */
    scratch->symbol = memory_new(capacity, sizeof *scratch->symbol);
    scratch->heap = memory_new(2 * capacity, sizeof *scratch->heap);
    if (!scratch->symbol || !scratch->heap) {
        bpe_scratch_fini(scratch);
        return error_memory(error, "a long word");
    }
    scratch->capacity = capacity;
    return UTTER_OK;
}

static void sift_up(struct bpe_waiting *heap, size_t at, struct bpe_waiting entry)
{
    while (at > 0 && heap[(at - 1) / 2].order > entry.order) {
        heap[at] = heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap[at] = entry;
}

/* Takes the first entry out of a heap of n. */
static struct bpe_waiting heap_take(struct bpe_waiting *heap, size_t n)
{
    struct bpe_waiting first = heap[0], last = heap[n - 1];
    size_t at = 0;
    n--;
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && heap[child + 1].order < heap[child].order) {
            child++;
        }
        if (heap[child].order >= last.order) {
            break;
        }
        heap[at] = heap[child];
    }
    heap[at] = last;
    return first;
}

/* Puts the merge of the symbol at `left` with the next one into the heap, if there is one. */
static void wait_for(const struct bpe *bpe, struct bpe_scratch *s, uint32_t left, size_t *n_heap)
{
    uint32_t right = s->symbol[left].next;
    if (right == NONE) {
        return;
    }
    const struct bpe_merge *merge = bpe_find(bpe, s->symbol[left].id, s->symbol[right].id);
    if (merge->id >= 0) {
        struct bpe_waiting entry = {(uint64_t)merge->rank << 32 | left, merge->pair};
        sift_up(s->heap, (*n_heap)++, entry);
    }
}

static void merge_all(const struct bpe *bpe, struct bpe_scratch *s, size_t n_heap)
{
    while (n_heap > 0) {
        struct bpe_waiting top = heap_take(s->heap, n_heap--);
        uint32_t at = (uint32_t)top.order;
        struct bpe_symbol *left = &s->symbol[at];
        if (left->id < 0 || left->next == NONE ||
            bpe_pair(left->id, s->symbol[left->next].id) != top.pair) {
            continue;
        }
        struct bpe_symbol *right = &s->symbol[left->next];
        left->id = bpe_find(bpe, left->id, right->id)->id;
        left->next = right->next;
        right->id = -1;
        if (left->next != NONE) {
            s->symbol[left->next].prev = at;
        }
        wait_for(bpe, s, at, &n_heap);
        if (left->prev != NONE) {
            wait_for(bpe, s, left->prev, &n_heap);
        }
    }
}

utter_status bpe_encode(const struct bpe *bpe, struct bpe_scratch *scratch, const char *word,
    size_t bytes, struct ids *ids, utter_error *error)
{
    utter_status status = scratch_reserve(scratch, bytes, error);
    if (status != UTTER_OK) {
        return status;
    }
    struct bpe_symbol *symbol = scratch->symbol;
    for (uint32_t i = 0; i < bytes; i++) {
        symbol[i] = (struct bpe_symbol){bpe->byte_id[(uint8_t)word[i]], i - 1, i + 1};
    }
    symbol[0].prev = NONE;
    symbol[bytes - 1].next = NONE;
    size_t n_heap = 0;
    for (uint32_t i = 0; i < bytes; i++) {
        wait_for(bpe, scratch, i, &n_heap);
    }
    merge_all(bpe, scratch, n_heap);
    for (uint32_t i = 0; status == UTTER_OK && i != NONE; i = symbol[i].next) {
        status = ids_add(ids, symbol[i].id, i, error);
    }
    return status;
}
