/* SPDX-License-Identifier: Apache-2.0
 * What a GPU leaves open in time: when a relaxed store is seen by others, and when work that goes on by itself is
 * done. The launch's seed decides. */
#include "tests/cuda/host/scheduler.h"

#include <stdlib.h>
#include <string.h>

/* ---- Stores ---- */

static void fiber_store_one(struct fiber *f, int i)
{
    const struct late_store s = f->late[i];
    memcpy(s.at, s.value, s.bytes);
    memmove(&f->late[i], &f->late[i + 1], sizeof s * (size_t)(f->n_late - i - 1));
    if (--f->n_late == 0) {
        f->of->n_late--;
    }
    f->of->of->progress = true;
}

static bool overlap(const struct late_store *s, const void *at, size_t bytes)
{
    const char *a = s->at, *b = at;
    return a < b + bytes && b < a + s->bytes;
}

static void store_all(struct fiber *f)
{
    while (f->n_late > 0) {
        fiber_store_one(f, 0);
    }
}

/* Some of the block's late stores, or all: each thread's in any order, since none is to a place of another. */
void block_stores(struct block *b, bool all)
{
    for (int t = 0; t < b->of->n_threads && b->n_late > 0; t++) {
        struct fiber *f = &b->fibers[t];
        for (int i = f->n_late - 1; i >= 0; i--) {
            if (all || run_chance(b->of, 2) == 0) {
                fiber_store_one(f, i);
            }
        }
    }
}

void host_store_late(void *at, const void *value, size_t bytes)
{
    struct fiber *f = fiber_now;
    for (int i = f->n_late - 1; i >= 0; i--) {
        if (overlap(&f->late[i], at, bytes)) { /* stores to one place stay in order */
            fiber_store_one(f, i);
        }
    }
    if (f->n_late == N_LATE_STORES) {
        fiber_store_one(f, (int)host_chance(N_LATE_STORES));
    }
    if (host_chance(4) == 0 || bytes > sizeof f->late->value) {
        memcpy(at, value, bytes);
        f->of->of->progress = true;
        return;
    }
    f->of->n_late += f->n_late == 0;
    struct late_store *s = &f->late[f->n_late++];
    s->at = at;
    s->bytes = bytes;
    memcpy(s->value, value, bytes);
}

void host_load(const void *at, void *value, size_t bytes)
{
    struct fiber *f = fiber_now;
    for (int i = f->n_late - 1; i >= 0; i--) {
        if (overlap(&f->late[i], at, bytes)) {
            fiber_store_one(f, i);
        }
    }
    memcpy(value, at, bytes);
}

void host_stores_seen(void)
{
    store_all(fiber_now);
}

/* ---- Work that goes on by itself ---- */

/* Pieces of work have slots that stay; `live` has the numbers of all slots, first of those that are taken. The number
 * that is told has the slot in its lower bits. */
enum { SLOT_BITS = 24 };

static void do_later(struct run *r, int at)
{
    const int slot = r->live[at], last = r->live[--r->n_laters];
    struct later now = r->laters[slot];
    struct fiber *fiber = fiber_now;
    struct host_thread *thread = host_now;
    r->live[at] = last;
    r->laters[last].at = at;
    r->live[r->n_laters] = slot;
    r->laters[slot].number = 0;
    now.by->of->n_later--;
    fiber_now = now.by;
    host_now = &now.by->thread;
    now.body(now.data);
    fiber_now = fiber;
    host_now = thread;
    r->progress = true;
}

static void more_slots(struct run *r)
{
    const int n = r->most_laters ? 2 * r->most_laters : 64;
    if (n > 1 << SLOT_BITS) {
        host_trap("more work under way than the bench counts");
    }
    r->laters = realloc(r->laters, (size_t)n * sizeof *r->laters);
    r->live = realloc(r->live, (size_t)n * sizeof *r->live);
    for (int i = r->most_laters; i < n; i++) {
        r->live[i] = i;
    }
    r->most_laters = n;
}

uint64_t host_later(host_later_body *body, const void *data, size_t bytes)
{
    struct run *r = run_now();
    if (r->n_laters == r->most_laters) {
        more_slots(r);
    }
    const int slot = r->live[r->n_laters];
    struct later *l = &r->laters[slot];
    l->number = ++r->later_number << SLOT_BITS | (uint64_t)slot;
    l->at = r->n_laters++;
    l->by = fiber_now;
    l->body = body;
    memcpy(l->data, data, bytes <= sizeof l->data ? bytes : sizeof l->data);
    fiber_now->of->n_later++;
    return l->number;
}

void host_later_now(uint64_t number)
{
    struct run *r = run_now();
    const int slot = (int)(number & ((1u << SLOT_BITS) - 1));
    if (slot < r->most_laters && r->laters[slot].number == number) {
        do_later(r, r->laters[slot].at);
    }
}

bool run_laters(struct run *r, bool all)
{
    const bool any = r->n_laters > 0;
    for (int left = all ? r->n_laters : 1 + (int)run_chance(r, 4); left > 0 && r->n_laters > 0;
         left--) {
        do_later(r, (int)run_chance(r, (uint32_t)r->n_laters));
    }
    return any;
}
