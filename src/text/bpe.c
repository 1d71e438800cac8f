/* SPDX-License-Identifier: Apache-2.0
 * Merges one word: a linked list of symbols, and a heap of the merges that its neighbours could make. A
 * merge in the heap whose symbols have changed meanwhile is dropped when it comes up.
 *
 * The heap alone would cost log n a byte. So a long word is merged in windows of one size, of which each begins with
 * the last token that was taken from the one before. Why the tokens are those of the whole word: as long as no merge
 * crosses a place, both sides of it merge as each would alone, since the next merge of all is the next one of its
 * side too. Hence (1) some tokens in a row are what their bytes alone become, and (2) tokens are those of the whole
 * word if each two neighbours are what their bytes alone become: the first merge to cross a place between two would
 * do so in these two alone. In one window (1) shows that of its neighbours, and where windows meet they share a token:
 * its two neighbours are each in one window with it.
 *
 * Larger windows are tried for two reasons. Where two windows do not agree about the token they share, the end of one,
 * which is none of the word, had reached back so far. Where a window gives a quarter of its bytes or less, as a token
 * of more than a quarter of it may bring about, each byte would be merged in too many windows. So windows of w bytes
 * cost log w a byte, and their sizes double from one try to the next: O(n log^2 n) at most. */
#include "text/bpe.h"

#include "base/memory.h"
#include "base/minmax.h"

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
        return error_set(error, UTTER_E_ARGUMENT, "a word of %zu bytes or more is too long", n);
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

/* Merges some bytes as if they were the whole word: what they become stands in the symbols. */
static utter_status merge_window(const struct bpe *bpe, struct bpe_scratch *scratch, const char *word,
    size_t bytes, utter_error *error)
{
    utter_status status = scratch_reserve(scratch, bytes, error);
    if (status != UTTER_OK) {
        return status;
    }
    struct bpe_symbol *symbol = scratch->symbol;
    for (uint32_t i = 0; i < bytes; i++) { /* before the first: 0 - 1, which is NONE */
        symbol[i] = (struct bpe_symbol){bpe->byte_id[(uint8_t)word[i]], i - 1, i + 1};
    }
    symbol[bytes - 1].next = NONE;
    size_t n_heap = 0;
    for (uint32_t i = 0; i < bytes; i++) {
        wait_for(bpe, scratch, i, &n_heap);
    }
    merge_all(bpe, scratch, n_heap);
    return UTTER_OK;
}

/* Whether the token at `i` of a window is taken: the one behind it, which may be the first of the next window, ends
 * within the first `taken_to` bytes. NONE: the word ends in this window, and all are. */
static bool is_taken(const struct bpe_symbol *symbol, uint32_t i, uint32_t taken_to)
{
    const uint32_t next = symbol[i].next;
    return taken_to == NONE || (next != NONE && symbol[next].next <= taken_to);
}

utter_status bpe_encode_by(const struct bpe *bpe, struct bpe_scratch *scratch, size_t window,
    const char *word, size_t bytes, struct ids *ids, utter_error *error)
{
    const size_t n_before = ids->n;
    size_t begin = 0;
    /* Bytes of the token at `begin`, as the window before has it; 0: there is none. */
    uint32_t shared = 0;
    utter_status status = UTTER_OK;
    while (status == UTTER_OK && begin < bytes) {
        const size_t n = min(window, bytes - begin), quarter = n / 4;
        /* The end of a window is likely to have changed its last tokens: its last quarter is left to the next one. */
        const uint32_t taken_to = begin + n == bytes ? NONE : (uint32_t)(n - quarter);
        status = merge_window(bpe, scratch, word + begin, n, error);
        const struct bpe_symbol *symbol = scratch->symbol;
        uint32_t i = 0;
        const bool agrees = status == UTTER_OK && (shared == 0 || symbol[0].next == shared);
        while (status == UTTER_OK && agrees && i != NONE && is_taken(symbol, i, taken_to)) {
            status = ids_add(ids, symbol[i].id, begin + i, error);
            i = symbol[i].next;
        }
        if (i == NONE) { /* the end of the word */
            break;
        }
        if (i <= quarter) { /* nothing, where windows do not agree */
            ids->n = n_before;
            begin = shared = 0;
            window *= 2;
        } else {
            shared = symbol[i].next - i;
            begin += i;
        }
    }
    return status;
}

utter_status bpe_encode(const struct bpe *bpe, struct bpe_scratch *scratch, const char *word,
    size_t bytes, struct ids *ids, utter_error *error)
{
    enum { WINDOW = 2048 };
    return bpe_encode_by(bpe, scratch, WINDOW, word, bytes, ids, error);
}
