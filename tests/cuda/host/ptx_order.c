/* SPDX-License-Identifier: Apache-2.0
 * Words that threads tell each other: relaxed stores, which others see late; loads, which let others run first, as
 * they stand in loops that wait; atomic additions; fences; meetings. */
#include "tests/cuda/host/ptx.h"

#include <string.h>

static void check_place(const void *at, size_t bytes, const char *what, bool shared)
{
    if ((uintptr_t)at % bytes != 0) {
        host_finding("%s of %zu bytes at %p", what, bytes, at);
        host_trap(what);
    }
    if (host_is_shared(at) != shared) {
        host_finding("%s at %p: it is %sin shared memory", what, at, shared ? "not " : "");
        host_trap(what);
    }
}

void host_store_word(void *at, const void *value, size_t bytes, size_t word, enum strict_scope scope)
{
    if (scope == STRICT_GPU) {
        check_place(at, bytes, "st.relaxed.gpu.global", false);
    }
    for (size_t i = 0; i < bytes; i += word) { /* words of a vector come one by one */
        strict_write((unsigned char *)at + i, word, STRICT_RELAXED, scope);
        host_store_late((unsigned char *)at + i, (const unsigned char *)value + i, word);
    }
}

void host_load_word(const void *at, void *value, size_t bytes, size_t word, enum strict_scope scope)
{
    check_place(at, bytes, scope == STRICT_GPU ? "ld.relaxed.gpu.global" : "ld.relaxed.cluster.shared",
        scope != STRICT_GPU);
    host_yield();
    for (size_t i = 0; i < bytes; i += word) {
        strict_read((const unsigned char *)at + i, word, STRICT_RELAXED, scope);
        host_load((const unsigned char *)at + i, (unsigned char *)value + i, word);
    }
}

uint32_t host_load_acquire(const uint32_t *at)
{
    uint32_t v;
    check_place(at, 4, "ld.acquire.gpu.global", false);
    host_yield();
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
        host_stores_seen();
    }
}

static void begin_atomic(const void *at, size_t bytes, enum strict_order order)
{
    if ((uintptr_t)at % bytes != 0) {
        host_finding("an atomic addition of %zu bytes at %p", bytes, at);
        host_trap("atomic");
    }
    if (order == STRICT_RELEASE) {
        host_stores_seen();
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
    host_stores_seen();
    strict_fence(scope);
}

/* ---- Meetings ---- */

int host_some_meet(int id, int n, bool yes)
{
    if (id < 0 || id > 15 || n <= 0 || n % HOST_WARP != 0 || n > HOST_MOST_THREADS) {
        host_finding("bar %d of %d threads", id, n);
        host_trap("bar");
    }
    host_stores_seen();
    return host_block_meet(id, n, yes);
}

static void needs_clusters(void)
{
    host_needs(host_card()->clusters, "a cluster's shared memory and barrier");
}

void host_cluster_meet(void)
{
    needs_clusters();
    host_stores_seen();
    host_cluster_arrive();
    host_cluster_wait();
}

void host_cluster_store(uint32_t *mine, int rank, const uint32_t *words, int n)
{
    needs_clusters();
    const uint32_t at = host_shared_map(host_shared_address(mine), rank);
    if (at % (4 * (uint32_t)n) != 0) {
        host_finding("st.relaxed.cluster of %d words at %08x", n, at);
        host_trap("st.relaxed.cluster");
    }
    host_store_word(host_shared_pointer(at, 4 * (size_t)n), words, 4 * (size_t)n, 4, STRICT_CLUSTER);
}
