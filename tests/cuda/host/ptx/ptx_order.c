/* SPDX-License-Identifier: Apache-2.0
 * Words that threads tell each other: relaxed stores, which others see late; loads, which let others run first, as
 * they stand in loops that wait; atomic additions; fences; barriers. */
#include "tests/cuda/host/ptx/ptx.h"

#include <stdlib.h>
#include <string.h>

/* ---- Words in another block's shared memory ---- */

/* Such a store is late like others, but where it goes to may move meanwhile, so it is work of the engine's that goes
 * on by itself. Those of a thread that may not have landed: */
enum { MOST_STORES = 16 };

struct cluster_store {
    uint64_t number;
    uint32_t at, word;
};

struct cluster_stores {
    int n;
    struct cluster_store of[MOST_STORES];
};

static void land(void *data)
{
    const struct cluster_store *s = (const struct cluster_store *)data;
    memcpy(host_shared_pointer(s->at, sizeof s->word), &s->word, sizeof s->word);
}

/* Those to a place, or all, in order. */
static void land_now(bool all, uint32_t at)
{
    struct cluster_stores *stores = (struct cluster_stores *)host_now->kept[HOST_KEPT_STORES];
    int kept = 0;
    for (int i = 0; stores && i < stores->n; i++) {
        const struct cluster_store s = stores->of[i];
        if (all || s.at == at) {
            host_later_now(s.number);
        } else {
            stores->of[kept++] = s;
        }
    }
    if (stores) {
        stores->n = kept;
    }
}

void host_all_seen(void)
{
    land_now(true, 0);
    host_stores_seen();
}

static void needs_clusters(void)
{
    host_needs(host_card()->clusters, "a cluster's shared memory and barrier");
}

uint32_t host_cluster_map(uint32_t at, int rank)
{
    host_needs(host_card()->clusters, "mapa");
    return host_shared_map(at, rank);
}

static void store_in_cluster(uint32_t at, uint32_t word)
{
    if (!host_now->kept[HOST_KEPT_STORES]) {
        host_now->kept[HOST_KEPT_STORES] = calloc(1, sizeof(struct cluster_stores));
    }
    struct cluster_stores *stores = (struct cluster_stores *)host_now->kept[HOST_KEPT_STORES];
    struct cluster_store s = {0, at, word};
    land_now(stores->n == MOST_STORES, at); /* stores to one place stay in order */
    strict_write(host_shared_pointer(at, sizeof word), sizeof word, STRICT_RELAXED, STRICT_CLUSTER);
    s.number = host_later(land, &s, sizeof s);
    stores->of[stores->n++] = s;
}

void host_cluster_store(uint32_t *mine, int rank, const uint32_t *words, int n)
{
    needs_clusters();
    const uint32_t at = host_shared_map(host_shared_address(mine), rank);
    if (at % (4 * (uint32_t)n) != 0) {
        host_finding("st.relaxed.cluster of %d words at %08x", n, at);
        host_trap("st.relaxed.cluster");
    }
    for (int i = 0; i < n; i++) { /* words of a vector come one by one */
        store_in_cluster(at + 4 * (uint32_t)i, words[i]);
    }
}

uint32_t host_cluster_load(const uint32_t *mine)
{
    uint32_t v;
    needs_clusters();
    land_now(false, host_shared_map(host_shared_address(mine), host_now->rank));
    host_ask(mine, sizeof v);
    strict_read(mine, sizeof v, STRICT_RELAXED, STRICT_CLUSTER);
    host_load(mine, &v, sizeof v);
    return v;
}

/* ---- Words in global memory ---- */

static void check_place(const void *at, size_t bytes, const char *what)
{
    if ((uintptr_t)at % bytes != 0) {
        host_finding("%s of %zu bytes at %p", what, bytes, at);
        host_trap(what);
    }
    if (host_is_shared(at)) {
        host_finding("%s at %p, in shared memory", what, at);
        host_trap(what);
    }
}

void host_store_word(void *at, const void *value, size_t bytes)
{
    check_place(at, bytes, "st.relaxed.gpu.global");
    strict_write(at, bytes, STRICT_RELAXED, STRICT_GPU);
    host_store_late(at, value, bytes);
}

void host_load_words(const void *at, void *value, size_t bytes, size_t word)
{
    check_place(at, bytes, "ld.relaxed.gpu.global");
    host_ask(at, bytes);
    host_now->heard_words = true;
    for (size_t i = 0; i < bytes; i += word) {
        strict_read((const unsigned char *)at + i, word, STRICT_RELAXED, STRICT_GPU);
        host_load((const unsigned char *)at + i, (unsigned char *)value + i, word);
    }
}

void host_load_first(const void *at, void *value, size_t wanted, size_t bytes)
{
    if ((uintptr_t)at % bytes != 0) {
        host_finding("a load of %zu bytes at %p", bytes, at);
        host_trap("a load");
    }
    (void)wanted; /* where nobody watches */
    strict_read(at, wanted, STRICT_PLAIN, STRICT_CTA);
    memcpy(value, at, bytes);
}

/* As a plain store and load, of which the watch only wants that the place is there. */
void host_store_alike(void *at, const void *value, size_t bytes)
{
    check_place(at, bytes, "a store");
    strict_write(at, bytes, STRICT_RELAXED, STRICT_GPU);
    memcpy(at, value, bytes);
}

void host_load_alike(const void *at, void *value, size_t bytes)
{
    check_place(at, bytes, "a load");
    strict_read(at, bytes, STRICT_RELAXED, STRICT_GPU);
    memcpy(value, at, bytes);
}

uint32_t host_load_acquire(const uint32_t *at)
{
    uint32_t v;
    check_place(at, 4, "ld.acquire.gpu.global");
    host_ask(at, 4);
    host_now->heard = true;
    strict_read(at, 4, STRICT_ACQUIRE, STRICT_GPU);
    host_load(at, &v, 4);
    return v;
}

/* ---- Atomic ---- */

/* What is at a place; a store of the thread's own to it has come before. */
static void settle(const void *at, void *value, size_t bytes)
{
    host_load(at, value, bytes);
    if (memcmp(at, value, bytes) != 0) {
        host_all_seen();
    }
}

static void begin_atomic(const void *at, size_t bytes, enum strict_order order)
{
    if ((uintptr_t)at % bytes != 0) {
        host_finding("an atomic addition of %zu bytes at %p", bytes, at);
        host_trap("atomic");
    }
    if (order == STRICT_RELEASE) {
        host_all_seen();
    }
}

uint32_t host_atomic_add(uint32_t *at, uint32_t n, enum strict_order order)
{
    uint32_t was;
    begin_atomic(at, sizeof *at, order);
    strict_update(at, sizeof *at, order, STRICT_GPU);
    settle(at, &was, sizeof was);
    *at = was + n;
    return was;
}

uint32_t host_atomic_or(uint32_t *at, uint32_t bits)
{
    uint32_t was;
    begin_atomic(at, sizeof *at, STRICT_RELAXED);
    strict_update(at, sizeof *at, STRICT_RELAXED, STRICT_GPU);
    settle(at, &was, sizeof was);
    *at = was | bits;
    return was;
}

uint64_t host_atomic_add_wide(uint64_t *at, uint64_t n, enum strict_order order)
{
    uint64_t was;
    begin_atomic(at, sizeof *at, order);
    strict_update(at, sizeof *at, order, STRICT_GPU);
    settle(at, &was, sizeof was);
    *at = was + n;
    return was;
}

void host_fence(enum strict_scope scope)
{
    host_all_seen();
    host_now->heard |= host_now->heard_words && scope != STRICT_CTA;
    strict_fence(scope);
}

/* ---- Barriers ---- */

int host_some_barrier(int id, int n, bool yes)
{
    if (id < 0 || id > 15 || n <= 0 || n % HOST_WARP != 0 || n > HOST_MOST_THREADS) {
        host_finding("bar %d of %d threads", id, n);
        host_trap("bar");
    }
    host_all_seen();
    return host_block_barrier(id, n, yes);
}

void host_cluster_barrier(void)
{
    needs_clusters();
    host_all_seen();
    host_cluster_arrive();
    host_cluster_wait();
}
