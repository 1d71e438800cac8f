/* SPDX-License-Identifier: Apache-2.0
 * Copies from global to shared memory that go on by themselves: those of a thread, 16 bytes each, which it waits for
 * in groups (cp.async), and those in bulk, which an mbarrier counts (cp.async.bulk). Both read their source when they
 * land, at a time of the engine's. */
#include "tests/cuda/host/ptx/ptx.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_COPIES = 160,         /* of a thread, not waited for */
    MOST_RESTING = 8,          /* of them, that land no sooner */
    RESTS = 4,                 /* copies, of which one does, where there is a place */
    MOST_BULK = (1 << 20) - 16 /* bytes that a barrier can expect */
};

struct landing {
    const void *from;
    struct strict_copy *strict;
    uint32_t to, bytes, barrier;
    bool bulk;
};

static void land(void *data)
{
    const struct landing *l = (const struct landing *)data;
    if (l->bulk && host_shared_is_left(l->to)) {
        host_finding(
            "cp.async.bulk of %u bytes to %08x: the block ended before they came", l->bytes, l->to);
        return;
    }
    memcpy(host_shared_pointer(l->to, l->bytes), l->from, l->bytes);
    strict_copy_land(l->strict, l->bulk ? host_barrier_object(l->barrier) : NULL);
    if (l->bulk) {
        host_barrier_bytes(l->barrier, l->bytes);
    }
}

/* ---- Of a thread ---- */

struct copy16 {
    uint64_t number; /* of the engine's; 0: it rests */
    struct strict_copy *strict;
    unsigned group;
    int place; /* of those that rest */
};

/* Some copies rest until they are waited for: who asks for one long before he uses it would not miss his wait. */
struct copies {
    unsigned group; /* that is open */
    int n;
    struct copy16 of[MOST_COPIES];
    uint32_t taken; /* a bit for each place of `resting` */
    struct landing resting[MOST_RESTING];
};

static struct copies *copies_now(void)
{
    if (!host_now->kept[HOST_KEPT_COPIES]) {
        host_now->kept[HOST_KEPT_COPIES] = calloc(1, sizeof(struct copies));
    }
    return (struct copies *)host_now->kept[HOST_KEPT_COPIES];
}

/* Waits for those of groups before `group`. */
static void wait_for(struct copies *all, unsigned group)
{
    int kept = 0;
    for (int i = 0; i < all->n; i++) {
        const struct copy16 copy = all->of[i];
        if ((int)(copy.group - group) >= 0) {
            all->of[kept++] = copy;
            continue;
        }
        if (copy.number > 0) {
            host_later_now(copy.number);
        } else {
            land(&all->resting[copy.place]);
            all->taken &= ~(1u << copy.place);
        }
        strict_copy_seen(copy.strict);
    }
    all->n = kept;
}

void host_copy16(void *shared, const void *global)
{
    struct copies *all = copies_now();
    if (!host_is_shared(shared) || (uintptr_t)shared % 16 != 0 || (uintptr_t)global % 16 != 0 ||
        host_is_shared(global)) {
        host_finding("cp.async of 16 bytes from %p to %p: not multiples of 16, or not from global to "
                     "shared memory",
            global, shared);
        host_trap("cp.async");
    }
    struct landing l = {.from = global, .to = host_shared_address(shared), .bytes = 16};
    l.strict = strict_copy_begin(shared, global, 16, false);
    if (all->n == MOST_COPIES) { /* the bench keeps no more: the oldest lands */
        wait_for(all, all->of[0].group + 1);
    }
    if (all->n == MOST_COPIES) {
        host_finding("cp.async: more copies under way than the bench counts");
        host_trap("cp.async");
    }
    struct copy16 copy = {0, l.strict, all->group, __builtin_ctz(~all->taken)};
    if (copy.place < MOST_RESTING && host_chance(RESTS) == 0) {
        all->taken |= 1u << copy.place;
        all->resting[copy.place] = l;
    } else {
        copy.number = host_later(land, &l, sizeof l);
    }
    all->of[all->n++] = copy;
}

void host_copy_end(void)
{
    copies_now()->group++;
}

void host_copy_wait(int n)
{
    struct copies *all = copies_now();
    wait_for(all, n < 0 ? all->group + 1 : all->group - (unsigned)n);
}

/* ---- In bulk ---- */

static void bulk_to(uint32_t to, const void *from, uint32_t bytes, uint32_t barrier, int rank)
{
    struct landing l = {.from = from, .bytes = bytes, .bulk = true};
    l.to = rank < 0 ? to : host_shared_map(to, rank);
    l.barrier = rank < 0 ? barrier : host_shared_map(barrier, rank);
    l.strict = strict_copy_begin(host_shared_pointer(l.to, bytes), from, bytes, true);
    host_later(land, &l, sizeof l);
}

void host_bulk_copy(uint32_t to, const void *from, uint32_t bytes, uint32_t barrier, uint32_t mask)
{
    host_needs(host_card()->bulk_copies, "cp.async.bulk");
    if (to % 16 != 0 || (uintptr_t)from % 16 != 0 || bytes % 16 != 0 || bytes == 0 ||
        bytes > MOST_BULK || host_is_shared(from)) {
        host_finding("cp.async.bulk of %u bytes from %p to %08x", bytes, from, to);
        host_trap("cp.async.bulk");
    }
    if (host_now->heard) {
        host_finding(
            "cp.async.bulk of %u bytes from %p: no fence.proxy.async stands behind what its thread "
            "has heard of other blocks or of the launch before",
            bytes, from);
    }
    if (mask >> host_now->cluster != 0) {
        host_finding("cp.async.bulk: mask %x in a cluster of %d", mask, host_now->cluster);
        host_trap("cp.async.bulk");
    }
    if (mask == 0) {
        bulk_to(to, from, bytes, barrier, -1);
    }
    for (int rank = 0; mask >> rank != 0; rank++) {
        if (mask >> rank & 1) {
            bulk_to(to, from, bytes, barrier, rank);
        }
    }
}

void host_copies_see(void)
{
    host_copies_follow();
    host_now->heard = false;
}

void host_stage_read(void)
{
    host_now->reads_stage = true;
}

void host_copies_follow(void)
{
    host_needs(host_card()->bulk_copies, "fence.proxy.async");
    host_now->reads_stage = false;
    strict_proxy_fence();
}
