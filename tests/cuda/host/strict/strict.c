/* SPDX-License-Identifier: Apache-2.0
 * Strict: accesses. Each is compared with what stands in the cells of its bytes and is put there itself. */
#include "tests/cuda/host/strict/strict_parts.h"

#include <stdlib.h>
#include <string.h>

/* One access: who, where, and with what it is compared. */
struct access {
    struct strict_thread *t;
    struct strict_entry now;
    const void *at; /* as the code has it, for reports */
    size_t bytes;
    enum strict_act act;
    bool bulk; /* by a bulk copy, which does not see writes of threads without a fence */
    bool told; /* a finding of this access has been told */
    bool any;  /* what nobody has written may be read; any_content: here */
    bool any_content;
};

struct strict_copy {
    struct strict_copy *next, **from;
    struct strict_grid *grid;
    int block, thread, place;
    uint32_t time;
    bool bulk;
};

/* ---- What is known ---- */

/* Times are below 2^25. */
typedef int four __attribute__((vector_size(16)));

static bool lanes_known(const struct strict_vector *v, int place, uint32_t lanes, uint32_t time)
{
    if (!v || place + HOST_WARP > v->n) {
        return false;
    }
    const uint32_t *at = v->at + place;
    if (!(lanes & (lanes - 1))) {
        return at[__builtin_ctz(lanes)] >= time;
    }
    four behind = {0}, bits = {1, 2, 4, 8}, wanted = bits - bits + (int)lanes;
    for (int i = 0; i < HOST_WARP / 4; i++, bits <<= 4) {
        four times;
        memcpy(&times, at + 4 * i, sizeof times);
        behind |= (times < (int)time) & bits & wanted;
    }
    return !(behind[0] | behind[1] | behind[2] | behind[3]);
}

bool strict_known(const struct strict_thread *t, const struct strict_entry *e, uint32_t lanes)
{
    const struct strict_grid *g = t->grid;
    if (g && e->unit - g->unit < g->n_units) {
        uint32_t i = e->unit - t->block->unit, time = strict_when_time(e->when);
        if (i < (uint32_t)g->block_units) {
            if (e->unit == t->unit ||
                (e->unit == t->unit_of_copies && t->layer[STRICT_KNOWN].own_copies >= time)) {
                lanes &= ~t->lanes;
            }
            return !lanes || lanes_known(t->layer[STRICT_KNOWN].mine, (int)i * HOST_WARP, lanes, time);
        }
        uint32_t from_first = e->unit - g->unit, units = (uint32_t)g->block_units;
        const struct strict_blocks *others = t->layer[STRICT_KNOWN].others;
        return others && lanes_known(others->of[from_first / units],
                             (int)(from_first % units) * HOST_WARP, lanes, time);
    }
    return e->unit == 0 || strict_op_before(t->known, t->op, e->unit);
}

/* Has the thread a proxy fence behind this write of a thread of its launch? */
static bool seen_by_bulk(const struct strict_thread *t, const struct strict_entry *e)
{
    const struct strict_grid *g = t->grid;
    if (!g || e->unit - g->unit >= g->n_units) {
        return true;
    }
    uint32_t from_first = e->unit - g->unit, units = (uint32_t)g->block_units;
    int unit = (int)(from_first % units);
    if (unit >= g->n_warps) {
        return true; /* a copy's own */
    }
    const struct strict_layer *l = &t->layer[STRICT_PROXY];
    uint32_t time = strict_when_time(e->when), lanes = e->lanes;
    if (e->unit == t->unit && l->own >= time) {
        lanes &= ~t->lanes;
    }
    if (!lanes) {
        return true;
    }
    int block = (int)(from_first / units);
    const struct strict_vector *v = block == t->block->index ? l->mine
                                    : l->others              ? l->others->of[block]
                                                             : NULL;
    return lanes_known(v, unit * HOST_WARP, lanes, time);
}

/* Two atomic accesses do not race where each reaches the other. */
static bool both_atomic(const struct access *a, const struct strict_entry *e)
{
    if (!(e->when & a->now.when & 1)) {
        return false;
    }
    const struct strict_grid *g = a->t->grid;
    enum strict_scope one = e->when >> 1 & 3, other = a->now.when >> 1 & 3;
    enum strict_scope least = one < other ? one : other;
    if (least >= STRICT_GPU || !g || e->unit - g->unit >= g->n_units) {
        return least >= STRICT_GPU;
    }
    int block = (int)((e->unit - g->unit) / (uint32_t)g->block_units), mine = a->t->block->index;
    return block == mine ||
           (least == STRICT_CLUSTER && strict_cluster_of(g, block) == strict_cluster_of(g, mine));
}

static void race(struct access *a, const struct strict_entry *before, bool was_write, const char *why)
{
    if (!a->told) {
        strict_found_race(a->t, &a->now, a->act, a->at, a->bytes, before, was_write, why);
        a->told = true;
    }
}

static void other(struct access *a, const char *why)
{
    if (!a->told) {
        strict_found(a->t, a->now.site, a->at, a->bytes, a->act, why);
        a->told = true;
    }
}

/* ---- Cells ---- */

static void check_write(struct access *a, const struct strict_cell *c, uint32_t bytes)
{
    const struct strict_entry *e = &c->write;
    if (e->unit == a->t->unit && e->unit == a->now.unit && e->lanes == a->now.lanes) {
        return;
    }
    /* Lanes whose plain writes are one entry wrote bytes of their own: where not all of them are touched, one lane
     * that is known is enough. */
    bool some = !(e->when & 1) && e->lanes & (e->lanes - 1) && e->when >> 3 & 15 & ~bytes;
    bool mine = e->unit == a->t->unit && e->lanes & a->t->lanes && !(e->when & 1);
    bool known = mine || both_atomic(a, e);
    for (uint32_t left = e->lanes; some && left && !known; left &= left - 1) {
        known = strict_known(a->t, e, left & -left);
    }
    if (!known && !strict_known(a->t, e, e->lanes)) {
        race(a, e, true, "");
    } else if (a->bulk && !some && !seen_by_bulk(a->t, e)) {
        race(a, e, true, ": no fence.proxy.async stands between the write and the bulk copy");
    }
}

/* Does the read of `now` go into this entry, or is the entry not needed behind it? */
static bool merge_read(
    const struct strict_thread *t, struct strict_entry *e, const struct strict_entry *now)
{
    if (e->unit == now->unit && !((e->when ^ now->when) & ~(uint32_t)STRICT_WHEN_BYTES)) {
        if (e->when == now->when) {
            e->lanes |= now->lanes;
            return true;
        }
        if (e->lanes == now->lanes) {
            e->when |= now->when;
            return true;
        }
    }
    uint32_t bytes = e->when & STRICT_WHEN_BYTES;
    if (e->unit == 0 || (!(bytes & ~now->when) && strict_known(t, e, e->lanes))) {
        *e = *now;
        return true;
    }
    return false;
}

static void note_read(struct access *a, struct strict_cell *c, uint8_t bytes)
{
    struct strict_entry now = a->now;
    now.when |= (uint32_t)bytes << 3;
    if (!c->many) {
        if (c->read_bytes == 0) {
            c->read = now;
        } else if (!merge_read(a->t, &c->read, &now)) {
            uint32_t number = strict_many_new();
            struct strict_many *many = strict_many_at(number);
            many->read[0] = c->read;
            many->read[1] = now;
            c->read.unit = number;
            c->many = true;
        }
        c->read_bytes |= bytes;
        return;
    }
    c->read_bytes |= bytes;
    struct strict_many *many = strict_many_at(c->read.unit);
    for (int i = 0; i < STRICT_MANY; i++) {
        if (many->read[i].unit == now.unit && many->read[i].when == now.when) {
            many->read[i].lanes |= now.lanes;
            return;
        }
    }
    for (int i = 0; i < STRICT_MANY; i++) {
        if (merge_read(a->t, &many->read[i], &now)) {
            return;
        }
    }
    /* No room: one of them is forgotten, mostly another one next time. */
    many->read[(now.unit + (now.when >> 7)) % STRICT_MANY] = now;
}

static void check_reads(struct access *a, const struct strict_cell *c, uint32_t bytes)
{
    const struct strict_entry *e = c->many ? strict_many_at(c->read.unit)->read : &c->read;
    for (int i = 0; i < (c->many ? STRICT_MANY : 1); i++) {
        if (e[i].unit && e[i].when & bytes << 3 && !both_atomic(a, &e[i]) &&
            !strict_known(a->t, &e[i], e[i].lanes)) {
            race(a, &e[i], false, "");
        }
    }
}

static void note_write(struct access *a, struct strict_cell *c, uint8_t bytes)
{
    struct strict_entry now = a->now;
    now.when |= (uint32_t)bytes << 3;
    if (c->write.unit == now.unit && !((c->write.when ^ now.when) & ~(uint32_t)STRICT_WHEN_BYTES)) {
        now.lanes |= c->write.lanes;
        now.when |= c->write.when;
    }
    c->write = now;
    c->written |= bytes;
    if (c->read_bytes) {
        strict_cell_unread(c, bytes);
    }
}

static void cell_access(struct access *a, struct strict_cell *c, uint8_t bytes)
{
    if (a->act & STRICT_READ && (c->written & bytes) != bytes && !a->any_content) {
        other(a, "nobody has written it");
    }
    if (c->write.when & (uint32_t)bytes << 3) {
        check_write(a, c, bytes);
    }
    if (!(a->act & STRICT_WRITE)) {
        note_read(a, c, bytes);
        return;
    }
    if (c->read_bytes & bytes) {
        check_reads(a, c, bytes);
    }
    note_write(a, c, bytes);
}

/* ---- Pages ---- */

static const struct strict_entry *as_entry(uint32_t unit)
{
    static struct strict_entry e;
    e = (struct strict_entry){unit, strict_when(1, 15, STRICT_CTA, false), 1, 0};
    return &e;
}

static void page_check_writer(struct access *a, const struct strict_page *p)
{
    if (p->writer && !strict_known(a->t, as_entry(p->writer), 1)) {
        race(a, as_entry(p->writer), true, "");
    }
}

/* A bit for each line that holds bytes from first to last. */
static uint64_t lines_of(unsigned first, unsigned last)
{
    return (~(uint64_t)0 >> (63 - last / STRICT_LINE)) & ~(uint64_t)0 << first / STRICT_LINE;
}

/* A read of a page that only operations have written. */
static void page_read(struct access *a, struct strict_page *p, unsigned offset, unsigned n)
{
    if (!p->written && !a->any_content) {
        other(a, "nobody has written it");
    }
    page_check_writer(a, p);
    uint32_t unit = a->t->grid ? a->t->grid->unit : a->t->unit;
    int i = p->reader[0] == unit                                                     ? 0
            : p->reader[1] == unit                                                   ? 1
            : !p->reader[0] || strict_op_before(a->t->known, a->t->op, p->reader[0]) ? 0
                                                                                     : 1;
    if (p->reader[i] != unit) {
        p->reader[i] = unit;
        p->lines[i] = 0;
    }
    p->lines[i] |= lines_of(offset, offset + n - 1);
}

/* An operation writes whole lines that another one may be reading still. */
static void page_check_readers(struct access *a, const struct strict_page *p, uint64_t lines)
{
    for (int i = 0; i < 2; i++) {
        if (p->reader[i] && p->lines[i] & lines &&
            !strict_op_before(a->t->known, a->t->op, p->reader[i])) {
            race(a, as_entry(p->reader[i]), false, "");
        }
    }
}

/* An operation that writes all of a page needs no cells for it. */
static void page_write(struct access *a, struct strict_page *p)
{
    for (int i = 0; p->cells && i < STRICT_CELLS; i++) {
        const struct strict_cell *c = &p->cells[i];
        if (c->write.when & STRICT_WHEN_BYTES) {
            check_write(a, c, 15);
        }
        if (c->read_bytes) {
            check_reads(a, c, 15);
        }
    }
    if (!p->cells) {
        page_check_writer(a, p);
        page_check_readers(a, p, ~(uint64_t)0);
    }
    strict_page_fold(p);
    p->writer = a->t->unit;
    p->written = true;
}

static void page_access(struct access *a, struct strict_page *p, uintptr_t at, unsigned n)
{
    unsigned offset = at % STRICT_PAGE;
    if (!strict_bytes_valid(p, offset, n)) {
        if (!p->allowed) {
            other(a, "it lies outside of the memory that was allocated");
        }
        return;
    }
    a->any_content = a->any || p->kind == HOST_PINNED;
    if (p->kind == HOST_CONSTANT && a->act & STRICT_WRITE && a->t->grid) {
        other(a, "it is constant memory");
    }
    if (a->act == STRICT_WRITE && !a->t->grid && n == STRICT_PAGE) {
        page_write(a, p);
        return;
    }
    if (!p->cells && a->act == STRICT_READ) {
        page_read(a, p, offset, n);
        return;
    }
    unsigned whole = (offset + STRICT_LINE - 1) / STRICT_LINE * STRICT_LINE;
    if (!p->cells && !a->t->grid && whole + STRICT_LINE <= offset + n) {
        unsigned end = (offset + n) / STRICT_LINE * STRICT_LINE;
        page_check_readers(a, p, lines_of(whole, end - 1));
    }
    struct strict_cell *c = strict_page_cells(p) + offset / STRICT_CELL;
    for (unsigned i = offset % STRICT_CELL; n > 0; i = 0, c++) {
        unsigned here = STRICT_CELL - i < n ? STRICT_CELL - i : n;
        cell_access(a, c, (uint8_t)(((1u << here) - 1) << i));
        n -= here;
    }
}

static void range_access(struct access *a)
{
    uintptr_t at = (uintptr_t)a->at;
    for (size_t left = a->bytes; left > 0 && !(a->told && a->act == STRICT_READ);) {
        size_t n = STRICT_PAGE - at % STRICT_PAGE < left ? STRICT_PAGE - at % STRICT_PAGE : left;
        struct strict_page *p = strict_page_of((const void *)at);
        if (!p) {
            other(a, "it is no memory of the device");
        } else if (p != &strict_page_allowed) {
            page_access(a, p, at, (unsigned)n);
        }
        at += n;
        left -= n;
    }
}

/* ---- Atomic accesses ---- */

/* What is handed on by an atomic access stands at each cell it touches. */
static void sync_through(struct strict_thread *t, const void *at, size_t bytes, enum strict_act act,
    enum strict_order order, enum strict_scope scope)
{
    bool acquires = act & STRICT_READ && (order == STRICT_ACQUIRE || order == STRICT_ACQ_REL);
    bool releases = act & STRICT_WRITE && (order == STRICT_RELEASE || order == STRICT_ACQ_REL);
    bool fenced = t->layer[STRICT_FENCED_NEAR].mine != NULL;
    uintptr_t end = (uintptr_t)at + bytes;
    uint32_t time = t->time;
    for (uintptr_t to = (uintptr_t)at & -(uintptr_t)STRICT_CELL; to < end; to += STRICT_CELL) {
        struct strict_page *p = strict_page_of((const void *)to);
        if (!p || p == &strict_page_allowed || !p->cells) {
            continue;
        }
        struct strict_cell *c = &p->cells[to % STRICT_PAGE / STRICT_CELL];
        struct strict_object *o = c->object ? strict_object_of(t, &c->object, false) : NULL;
        if (o && act & STRICT_READ) {
            strict_object_acquire(t, o, scope, !acquires);
        }
        if (!(act & STRICT_WRITE) || (!releases && !fenced)) {
            continue;
        }
        o = strict_object_of(t, &c->object, true);
        if (releases) {
            strict_object_release(t, o, scope, STRICT_KNOWN);
            continue;
        }
        if (t->layer[STRICT_FENCED].mine) {
            strict_object_release(t, o, scope, STRICT_FENCED);
        }
        if (t->layer[STRICT_FENCED_NEAR].mine != t->layer[STRICT_FENCED].mine) {
            strict_object_release(t, o, STRICT_CTA, STRICT_FENCED_NEAR);
        }
    }
    if (releases && t->time == time) {
        t->time++;
    }
}

void strict_access(struct strict_thread *t, const void *at, size_t bytes, enum strict_act act,
    enum strict_order order, enum strict_scope scope, const void *site)
{
    const bool any = order == STRICT_ANY, atomic = order != STRICT_PLAIN && !any;
    struct access a = {.t = t, .at = at, .bytes = bytes, .act = act, .any = any};
    a.now = (struct strict_entry){
        t->unit, strict_when(t->time, 0, scope, atomic), t->lanes, strict_site(site)};
    range_access(&a);
    if (atomic) {
        sync_through(t, at, bytes, act, order, scope);
    }
}

void strict_read(const void *at, size_t bytes, enum strict_order order, enum strict_scope scope)
{
    if (strict_now) {
        strict_access(strict_now, at, bytes, STRICT_READ, order, scope, __builtin_return_address(0));
    }
}

void strict_write(void *at, size_t bytes, enum strict_order order, enum strict_scope scope)
{
    if (strict_now) {
        strict_access(strict_now, at, bytes, STRICT_WRITE, order, scope, __builtin_return_address(0));
    }
}

void strict_update(void *at, size_t bytes, enum strict_order order, enum strict_scope scope)
{
    if (strict_now) {
        strict_access(strict_now, at, bytes, STRICT_UPDATE,
            order == STRICT_PLAIN ? STRICT_RELAXED : order, scope, __builtin_return_address(0));
    }
}

void strict_aligned(const void *at, size_t bytes, const char *what)
{
    if (strict_now && (uintptr_t)at % bytes != 0) {
        strict_found(
            strict_now, strict_site(__builtin_return_address(0)), at, bytes, STRICT_READ, what);
    }
}

void strict_op_read(struct strict_op *op, const void *at, size_t bytes)
{
    strict_access(strict_op_self(op), at, bytes, STRICT_READ, STRICT_PLAIN, STRICT_SYS, NULL);
}

void strict_op_write(struct strict_op *op, void *at, size_t bytes)
{
    strict_access(strict_op_self(op), at, bytes, STRICT_WRITE, STRICT_PLAIN, STRICT_SYS, NULL);
}

/* ---- Copies in the background ---- */

/* A lane for a bulk copy: one that has landed, and not the one that did so last. */
static int bulk_lane(struct strict_block *b)
{
    uint32_t i = b->bulk_next;
    for (int k = 0; k < STRICT_BULK && b->bulk_under_way >> i % STRICT_BULK & 1; k++) {
        i++;
    }
    b->bulk_next = (i + 1) % STRICT_BULK;
    b->bulk_under_way |= 1u << i % STRICT_BULK;
    return (int)(i % STRICT_BULK);
}

struct strict_copy *strict_copy_begin(void *to, const void *from, size_t bytes, bool bulk)
{
    struct strict_thread *t = strict_now;
    if (!t) {
        return NULL;
    }
    struct strict_copy *copy = calloc(1, sizeof *copy);
    if (!copy) {
        abort();
    }
    struct strict_block *b = t->block;
    struct strict_grid *g = t->grid;
    *copy = (struct strict_copy){.next = g->copies,
        .from = &g->copies,
        .grid = g,
        .block = b->index,
        .thread = t->index,
        .bulk = bulk};
    struct access a = {.t = t, .at = from, .bytes = bytes, .act = STRICT_READ, .bulk = bulk};
    a.now = (struct strict_entry){0, 0, t->lanes, strict_site(__builtin_return_address(0))};
    if (bulk) {
        int lane = bulk_lane(b);
        copy->place = g->n_warps * HOST_WARP + lane;
        copy->time = ++b->bulk_time[lane];
        a.now.unit = b->unit + (uint32_t)g->n_warps;
        a.now.lanes = 1u << lane;
    } else {
        copy->place = g->short_lanes + t->index;
        copy->time = ++t->copies;
        a.now.unit = t->unit_of_copies;
    }
    a.now.when = strict_when(copy->time, 0, STRICT_SYS, false);
    range_access(&a);
    a.at = to;
    a.act = STRICT_WRITE;
    a.told = false;
    range_access(&a);
    if (copy->next) {
        copy->next->from = &copy->next;
    }
    g->copies = copy;
    return copy;
}

static void copy_free(struct strict_copy *copy)
{
    *copy->from = copy->next;
    if (copy->next) {
        copy->next->from = copy->from;
    }
    free(copy);
}

void strict_copy_land(struct strict_copy *copy, const void *told)
{
    struct strict_block *b = copy ? copy->grid->blocks[copy->block] : NULL;
    if (!b) {
        return;
    }
    if (copy->bulk) {
        b->bulk_under_way &= ~(1u << copy->place % HOST_WARP);
    }
    if (told) {
        strict_object_copied(b, told, copy->place, copy->time);
        copy_free(copy);
    }
}

void strict_copy_seen(struct strict_copy *copy)
{
    struct strict_block *b = copy ? copy->grid->blocks[copy->block] : NULL;
    if (!b) {
        return;
    }
    struct strict_layer *l = &b->threads[copy->thread].layer[STRICT_KNOWN];
    if (copy->bulk) {
        strict_vector_raise(&l->mine, copy->place, copy->time, copy->grid->short_lanes);
    } else if (l->own_copies < copy->time) {
        l->own_copies = copy->time;
    }
    copy_free(copy);
}

void strict_copies_drop(struct strict_grid *grid)
{
    while (grid->copies) {
        copy_free(grid->copies);
    }
}
