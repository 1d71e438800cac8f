/* SPDX-License-Identifier: Apache-2.0
 * Strict: which addresses are device memory, and what is known of their bytes. Pages that only operations write and
 * kernels read, as weights, have no cells: their memory would be ten times theirs. */
#include "tests/cuda/host/strict/strict_parts.h"

#include <stdlib.h>
#include <string.h>

enum { TOP_BITS = 17, LEAF_BITS = 18, PAGE_BITS = 12, BUCKETS = 4096, MANY_CHUNK = 1024 };

struct piece {
    uintptr_t from, to;
    const char *label;
};
struct area {
    struct area *next;
    uintptr_t from, to;
    const char *label;
    enum host_memory kind;
    int n_pieces, n_held;
    struct piece *pieces;
};

static struct strict_page **leaves[1 << TOP_BITS];
static struct area *areas[BUCKETS];
static const uint8_t no_bytes[STRICT_PAGE / 8];
struct strict_page strict_page_allowed;
static bool begun;

/* Between them lies what the program may only read: code and constants. */
extern const char __executable_start[], __data_start[];

static void *get(size_t n, size_t bytes)
{
    void *p = calloc(n, bytes);
    if (!p) {
        abort();
    }
    return p;
}

/* ---- Pages by address ---- */

struct strict_page *strict_page_of(const void *at)
{
    uintptr_t top = (uintptr_t)at >> (PAGE_BITS + LEAF_BITS);
    if (top >= (uintptr_t)1 << TOP_BITS || !leaves[top]) {
        return NULL;
    }
    return leaves[top][(uintptr_t)at >> PAGE_BITS & ((1u << LEAF_BITS) - 1)];
}

static struct strict_page **place_of(uintptr_t at)
{
    uintptr_t top = at >> (PAGE_BITS + LEAF_BITS);
    if (top >= (uintptr_t)1 << TOP_BITS) {
        abort();
    }
    if (!leaves[top]) {
        leaves[top] = get((size_t)1 << LEAF_BITS, sizeof(struct strict_page *));
    }
    return &leaves[top][at >> PAGE_BITS & ((1u << LEAF_BITS) - 1)];
}

void strict_allow(const void *at, size_t bytes)
{
    uintptr_t end = (uintptr_t)at + bytes;
    for (uintptr_t page = (uintptr_t)at & -(uintptr_t)STRICT_PAGE; page < end; page += STRICT_PAGE) {
        struct strict_page **p = place_of(page);
        if (*p) {
            (*p)->allowed = true;
        } else {
            *p = &strict_page_allowed;
        }
    }
}

/* ---- Reads that are many ---- */

static struct strict_many **many_chunks;
static uint32_t n_many, n_many_chunks, *many_free;
static uint32_t n_many_free, n_many_free_held;

struct strict_many *strict_many_at(uint32_t number)
{
    return &many_chunks[number / MANY_CHUNK][number % MANY_CHUNK];
}

uint32_t strict_many_new(void)
{
    if (n_many_free) {
        uint32_t number = many_free[--n_many_free];
        memset(strict_many_at(number), 0, sizeof(struct strict_many));
        return number;
    }
    if (n_many == n_many_chunks * MANY_CHUNK) {
        many_chunks = realloc(many_chunks, (n_many_chunks + 1) * sizeof *many_chunks);
        if (!many_chunks) {
            abort();
        }
        many_chunks[n_many_chunks++] = get(MANY_CHUNK, sizeof(struct strict_many));
    }
    return n_many++;
}

void strict_many_free(uint32_t number)
{
    if (n_many_free == n_many_free_held) {
        n_many_free_held = n_many_free_held ? 2 * n_many_free_held : 1024;
        many_free = realloc(many_free, n_many_free_held * sizeof *many_free);
        if (!many_free) {
            abort();
        }
    }
    many_free[n_many_free++] = number;
}

/* ---- Cells ---- */

struct strict_cell *strict_page_cells(struct strict_page *p)
{
    if (p->cells) {
        return p->cells;
    }
    p->cells = get(STRICT_CELLS, sizeof(struct strict_cell));
    for (int i = 0; p->written && i < STRICT_CELLS; i++) {
        p->cells[i].write =
            (struct strict_entry){p->writer, strict_when(1, 15, STRICT_CTA, false), 1, 0};
        p->cells[i].written = 15;
    }
    return p->cells;
}

static void cell_clear(struct strict_cell *c)
{
    if (c->many) {
        strict_many_free(c->read.unit);
    }
    *c = (struct strict_cell){0};
}

void strict_cell_unread(struct strict_cell *c, uint8_t bytes)
{
    uint32_t mask = (uint32_t)bytes << 3;
    c->read_bytes &= (uint8_t)~bytes;
    if (!c->many) {
        c->read.when &= ~mask;
        return;
    }
    struct strict_entry *e = strict_many_at(c->read.unit)->read;
    if (!c->read_bytes) {
        strict_many_free(c->read.unit);
        c->many = false;
        return;
    }
    for (int i = 0; i < STRICT_MANY; i++) {
        e[i].when &= ~mask;
        e[i].unit = e[i].when & STRICT_WHEN_BYTES ? e[i].unit : 0;
    }
}

void strict_page_fold(struct strict_page *p)
{
    for (int i = 0; p->cells && i < STRICT_CELLS; i++) {
        if (p->cells[i].many) {
            strict_many_free(p->cells[i].read.unit);
        }
    }
    free(p->cells);
    p->cells = NULL;
    p->reader[0] = p->reader[1] = 0;
}

void strict_memory_forget(void)
{
    for (size_t top = 0; top < (size_t)1 << TOP_BITS; top++) {
        for (size_t i = 0; leaves[top] && i < (size_t)1 << LEAF_BITS; i++) {
            struct strict_page *p = leaves[top][i];
            if (!p || p == &strict_page_allowed) {
                continue;
            }
            p->writer = p->reader[0] = p->reader[1] = 0;
            for (int k = 0; p->cells && k < STRICT_CELLS; k++) {
                uint8_t written = p->cells[k].written;
                cell_clear(&p->cells[k]);
                p->cells[k].written = written;
            }
        }
    }
}

/* ---- Areas ---- */

static struct area **bucket_of(const void *at)
{
    return &areas[((uintptr_t)at >> 4) * 0x9e3779b97f4a7c15u >> 52];
}

/* The bytes of the page become valid or not. A page that is valid or not as a whole holds no bits of its own. */
static void set_valid(struct strict_page *p, unsigned from, unsigned to, bool valid)
{
    if (from == 0 && to == STRICT_PAGE) {
        if (p->valid != no_bytes) {
            free((void *)p->valid);
        }
        p->valid = valid ? NULL : no_bytes;
        return;
    }
    uint8_t *bits = p->valid && p->valid != no_bytes ? (uint8_t *)p->valid : get(1, STRICT_PAGE / 8);
    if (!p->valid) {
        memset(bits, 0xff, STRICT_PAGE / 8);
    }
    for (unsigned i = from; i < to; i++) {
        bits[i / 8] = (uint8_t)((bits[i / 8] & ~(1u << i % 8)) | (unsigned)valid << i % 8);
    }
    p->valid = bits;
}

/* Bytes of the page as if just added. */
static void set_fresh(struct strict_page *p, unsigned from, unsigned to, bool written)
{
    if (from == 0 && to == STRICT_PAGE) {
        strict_page_fold(p);
        p->writer = 0;
        p->written = written;
        return;
    }
    if (!p->cells && !p->written && !written) {
        return;
    }
    struct strict_cell *cells = strict_page_cells(p);
    for (unsigned i = from; i < to;) {
        struct strict_cell *c = &cells[i / STRICT_CELL];
        unsigned bit = 1u << i % STRICT_CELL;
        if (i % STRICT_CELL == 0 && i + STRICT_CELL <= to) {
            cell_clear(c);
            c->written = written ? 15 : 0;
            i += STRICT_CELL;
        } else {
            c->written = (uint8_t)((c->written & ~bit) | (written ? bit : 0));
            c->write.when &= ~(bit << 3);
            strict_cell_unread(c, (uint8_t)bit);
            i++;
        }
    }
}

/* What is done to each page of a range: from and to are bytes of the page. */
#define EACH_PAGE(at, end, page, from, to)                                                             \
    for (uintptr_t page = (at) & -(uintptr_t)STRICT_PAGE, from, to;                                    \
         (at) < (end) && page < (end) &&                                                               \
         (from = page < (at) ? (at)-page : 0,                                                          \
         to = (end)-page < STRICT_PAGE ? (end)-page : STRICT_PAGE, true);                              \
         page += STRICT_PAGE)

void strict_memory_add(void *at, size_t bytes, enum host_memory kind, const char *label, bool written)
{
    struct area *a = get(1, sizeof *a);
    if (!begun) {
        begun = true;
        strict_allow(__executable_start, (size_t)(__data_start - __executable_start));
    }
    a->from = (uintptr_t)at;
    a->to = a->from + bytes;
    a->kind = kind;
    a->label = strict_intern(label);
    a->next = *bucket_of(at);
    *bucket_of(at) = a;
    EACH_PAGE(a->from, a->to, page, from, to)
    {
        struct strict_page **p = place_of(page);
        if (!*p || *p == &strict_page_allowed) {
            struct strict_page *fresh = get(1, sizeof *fresh);
            fresh->valid = no_bytes;
            fresh->allowed = *p != NULL;
            fresh->kind = (uint8_t)kind;
            *p = fresh;
        } else if (kind == HOST_PINNED || (*p)->valid == no_bytes) {
            (*p)->kind = (uint8_t)kind; /* of two kinds that share a page, what asks for less */
        } else if ((*p)->kind != kind && (*p)->kind != HOST_PINNED) {
            (*p)->kind = HOST_GLOBAL;
        }
        set_valid(*p, (unsigned)from, (unsigned)to, true);
        set_fresh(*p, (unsigned)from, (unsigned)to, written);
    }
}

void strict_memory_remove(void *at)
{
    struct area **from_here = bucket_of(at);
    while (*from_here && (*from_here)->from != (uintptr_t)at) {
        from_here = &(*from_here)->next;
    }
    struct area *a = *from_here;
    if (!a) {
        host_finding("strict: memory at %p is removed and was never added", at);
        return;
    }
    *from_here = a->next;
    EACH_PAGE(a->from, a->to, page, from, to)
    {
        struct strict_page **p = place_of(page);
        set_fresh(*p, (unsigned)from, (unsigned)to, false);
        set_valid(*p, (unsigned)from, (unsigned)to, false);
        if ((*p)->valid && memcmp((*p)->valid, no_bytes, sizeof no_bytes) == 0) {
            bool allowed = (*p)->allowed;
            strict_page_fold(*p);
            if ((*p)->valid != no_bytes) {
                free((void *)(*p)->valid);
            }
            free(*p);
            *p = allowed ? &strict_page_allowed : NULL;
        }
    }
    free(a->pieces);
    free(a);
}

void strict_memory_spare(void *at, size_t bytes)
{
    EACH_PAGE((uintptr_t)at, (uintptr_t)at + bytes, page, from, to)
    {
        struct strict_page *p = strict_page_of((void *)page);
        if (p && p != &strict_page_allowed) {
            set_fresh(p, (unsigned)from, (unsigned)to, true);
        }
    }
}

/* The area that holds the address. It looks at all, so it is for reports and what is seldom. */
static struct area *area_of(const void *at)
{
    for (int i = 0; i < BUCKETS; i++) {
        for (struct area *a = areas[i]; a; a = a->next) {
            if ((uintptr_t)at >= a->from && (uintptr_t)at < a->to) {
                return a;
            }
        }
    }
    return NULL;
}

void strict_memory_piece(void *at, size_t bytes, const char *label)
{
    struct area *a = *bucket_of(at);
    while (a && a->from != (uintptr_t)at) {
        a = a->next;
    }
    a = a ? a : area_of(at);
    if (!a || (uintptr_t)at + bytes > a->to) {
        host_finding("strict: piece %s at %p lies in no memory that was added", label, at);
        return;
    }
    if (a->n_pieces == 0) {
        EACH_PAGE(a->from, a->to, page, from, to)
        {
            set_valid(*place_of(page), (unsigned)from, (unsigned)to, false);
        }
    }
    if (a->n_pieces == a->n_held) {
        a->n_held = a->n_held ? 2 * a->n_held : 16;
        a->pieces = realloc(a->pieces, (size_t)a->n_held * sizeof *a->pieces);
        if (!a->pieces) {
            abort();
        }
    }
    a->pieces[a->n_pieces++] =
        (struct piece){(uintptr_t)at, (uintptr_t)at + bytes, strict_intern(label)};
    EACH_PAGE((uintptr_t)at, (uintptr_t)at + bytes, page, from, to)
    {
        set_valid(*place_of(page), (unsigned)from, (unsigned)to, true);
    }
}

bool strict_label_of(const void *at, const char **label, size_t *offset)
{
    const struct area *a = area_of(at);
    if (!a) {
        return false;
    }
    *label = a->label;
    *offset = (uintptr_t)at - a->from;
    for (int i = 0; i < a->n_pieces; i++) {
        if ((uintptr_t)at >= a->pieces[i].from && (uintptr_t)at < a->pieces[i].to) {
            *label = a->pieces[i].label;
            *offset = (uintptr_t)at - a->pieces[i].from;
        }
    }
    return true;
}

/* What stands in `e` of the bytes `from` of its cell, as bytes `to` of another one. */
static struct strict_entry moved(struct strict_entry e, unsigned from, unsigned to)
{
    unsigned bytes = e.when >> 3 & from;
    bytes = to >= from ? bytes * (to / from) : bytes / (from / to);
    e.when = (e.when & ~(uint32_t)STRICT_WHEN_BYTES) | bytes << 3;
    return bytes ? e : (struct strict_entry){0};
}

/* The cell with the bytes `to` as those `from` of another one; where both have entries, the other's count. */
static struct strict_cell mixed(
    const struct strict_cell *c, const struct strict_cell *other, unsigned from, unsigned to)
{
    struct strict_cell sum = *c;
    unsigned rest = 15 & ~to;
    unsigned written =
        to >= from ? (other->written & from) * (to / from) : (other->written & from) / (from / to);
    sum.written = (uint8_t)((c->written & rest) | written);
    sum.write = moved(other->write, from, to);
    sum.write = sum.write.unit ? sum.write : moved(c->write, rest, rest);
    sum.read = other->many ? (struct strict_entry){0} : moved(other->read, from, to);
    sum.read = sum.read.unit || c->many ? sum.read : moved(c->read, rest, rest);
    sum.read_bytes = sum.read.when >> 3 & 15;
    sum.many = false;
    return sum;
}

static void swap_cells(struct strict_cell *c, struct strict_cell *d, unsigned i, unsigned j, unsigned n)
{
    struct strict_cell first = *c, second = *d;
    if (n == STRICT_CELL) {
        *c = second;
        *d = first;
        return;
    }
    unsigned from = ((1u << n) - 1) << i, to = ((1u << n) - 1) << j;
    *c = mixed(&first, &second, to, from);
    *d = mixed(&second, &first, from, to);
    if (first.many) {
        strict_many_free(first.read.unit);
    }
    if (second.many) {
        strict_many_free(second.read.unit);
    }
}

void strict_memory_swap(void *live, void *image, size_t bytes)
{
    uintptr_t a = (uintptr_t)live, b = (uintptr_t)image;
    const struct strict_page *there = strict_page_of(live);
    if (!there || there == &strict_page_allowed || !strict_bytes_valid(there, a % STRICT_PAGE, 1)) {
        strict_memory_add(live, bytes, HOST_SHARED, "a variable in shared memory", false);
    }
    for (size_t left = bytes; left > 0;) {
        struct strict_page *p = strict_page_of((void *)a), *q = strict_page_of((void *)b);
        if (!p || !q || p == &strict_page_allowed || q == &strict_page_allowed) {
            host_finding("strict: %p and %p change places, and not both are known", live, image);
            return;
        }
        unsigned i = a % STRICT_CELL, j = b % STRICT_CELL, n = STRICT_CELL - (i > j ? i : j);
        n = left < n ? (unsigned)left : n;
        if (p->cells || q->cells || p->written || q->written) {
            swap_cells(strict_page_cells(p) + a % STRICT_PAGE / STRICT_CELL,
                strict_page_cells(q) + b % STRICT_PAGE / STRICT_CELL, i, j, n);
        }
        a += n;
        b += n;
        left -= n;
    }
}
