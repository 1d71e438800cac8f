/* SPDX-License-Identifier: Apache-2.0
 * Barriers in shared memory that count arrivals and bytes (mbarrier). Their state is in their own 64 bits, in an
 * order of the bench's: a sign that they were begun, whether others may see that, how many phases have ended,
 * arrivals of a phase, those still to come, and bytes expected that have not come (below 0: bytes came first). */
#include "tests/cuda/host/ptx/ptx.h"

#include <stdlib.h>
#include <string.h>

enum {
    SIGN = 0xb,
    SIGN_BITS = 4,
    READY_BITS = 1,
    PHASE_BITS = 12,
    COUNT_BITS = 13,
    MOST_ARRIVALS = (1 << COUNT_BITS) - 1,
    BYTES_BITS = 21,
    MOST_BYTES = (1 << 20) - 1, /* as the PTX manual says of a barrier's pending bytes */
    PHASES = 1 << PHASE_BITS,
    MOST_FRESH = 64
};

struct barrier {
    bool begun, ready;
    int phase, arrivals, pending, bytes;
};

static struct barrier opened(uint64_t word)
{
    struct barrier b;
    b.begun = (word & ((1u << SIGN_BITS) - 1)) == SIGN;
    word >>= SIGN_BITS;
    b.ready = word & 1;
    word >>= READY_BITS;
    b.phase = (int)(word & (PHASES - 1));
    word >>= PHASE_BITS;
    b.arrivals = (int)(word & MOST_ARRIVALS);
    word >>= COUNT_BITS;
    b.pending = (int)(word & MOST_ARRIVALS);
    word >>= COUNT_BITS;
    b.bytes = (int)(word & ((1u << BYTES_BITS) - 1)) - (1 << (BYTES_BITS - 1));
    b.begun = b.begun && b.arrivals > 0 && b.pending <= b.arrivals;
    return b;
}

static uint64_t closed(const struct barrier *b)
{
    uint64_t word = (uint64_t)(b->bytes + (1 << (BYTES_BITS - 1)));
    word = word << COUNT_BITS | (uint64_t)b->pending;
    word = word << COUNT_BITS | (uint64_t)b->arrivals;
    word = word << PHASE_BITS | (uint64_t)b->phase;
    word = word << READY_BITS | (uint64_t)b->ready;
    return word << SIGN_BITS | SIGN;
}

/* The barrier at an address of the cluster, and where its word is now. */
static struct barrier find(uint32_t address, const char *what, uint64_t **word)
{
    if (address % 8 != 0) {
        host_finding("%s: a barrier at %08x, not a multiple of 8", what, address);
        host_trap("mbarrier");
    }
    *word = (uint64_t *)host_shared_pointer(address, 8);
    const struct barrier b = opened(**word);
    if (!b.begun) {
        host_finding(
            "%s: no barrier was begun at %08x (%016llx)", what, address, (unsigned long long)**word);
        host_trap("mbarrier");
    }
    return b;
}

const void *host_barrier_object(uint32_t barrier)
{
    const uint64_t cluster = (uint64_t)host_now->which_cluster + 1;
    const bool own = barrier >> HOST_RANK_SHIFT == 0;
    const uint32_t mapped = own ? host_shared_map(barrier, host_now->rank) : barrier;
    return (const void *)(uintptr_t)(cluster << 32 | mapped);
}

/* ---- Beginning ---- */

/* Barriers that a thread has begun, and others may not see yet. */
struct fresh {
    int n;
    uint32_t at[MOST_FRESH];
};

void host_barrier_begin(uint64_t *barrier, uint32_t arrivals)
{
    const uint32_t address = host_shared_address(barrier);
    const struct barrier b = {true, false, 0, (int)arrivals, (int)arrivals, 0};
    if (arrivals == 0 || arrivals > MOST_ARRIVALS || address % 8 != 0) {
        host_finding("mbarrier.init at %08x for %u arrivals", address, arrivals);
        host_trap("mbarrier");
    }
    if (!host_now->kept[HOST_KEPT_BARRIERS]) {
        host_now->kept[HOST_KEPT_BARRIERS] = calloc(1, sizeof(struct fresh));
    }
    struct fresh *fresh = (struct fresh *)host_now->kept[HOST_KEPT_BARRIERS];
    if (fresh->n < MOST_FRESH) {
        fresh->at[fresh->n++] = address;
    }
    uint64_t *word = (uint64_t *)host_shared_pointer(address, 8);
    strict_write(word, 8, STRICT_PLAIN, STRICT_CTA);
    *word = closed(&b);
}

void host_barriers_ready(void)
{
    struct fresh *fresh = (struct fresh *)host_now->kept[HOST_KEPT_BARRIERS];
    host_needs(host_card()->clusters, "fence.mbarrier_init");
    host_all_seen();
    for (int i = 0; fresh && i < fresh->n; i++) {
        uint64_t *word;
        struct barrier b = find(fresh->at[i], "fence.mbarrier_init", &word);
        b.ready = true;
        *word = closed(&b);
    }
    if (fresh) {
        fresh->n = 0;
    }
    strict_fence(STRICT_CLUSTER);
    strict_proxy_fence();
}

/* ---- Phases ---- */

static void end_if_complete(struct barrier *b)
{
    if (b->pending == 0 && b->bytes == 0) {
        b->phase = (b->phase + 1) % PHASES;
        b->pending = b->arrivals;
    }
}

static void count_bytes(struct barrier *b, int bytes, uint32_t address)
{
    b->bytes += bytes;
    if (b->bytes > MOST_BYTES || b->bytes < -MOST_BYTES) {
        host_finding("mbarrier at %08x: %d bytes are expected at once", address, b->bytes);
        host_trap("mbarrier");
    }
}

static void arrive(uint32_t address, int bytes, const char *what)
{
    uint64_t *word;
    host_all_seen();
    struct barrier b = find(address, what, &word);
    if (b.pending == 0) {
        host_finding("%s at %08x: the phase has had all of its %d arrivals", what, address, b.arrivals);
        host_trap("mbarrier");
    }
    if (host_now->reads_stage) {
        host_finding(
            "%s at %08x: no fence.proxy.async stands behind what its thread has read of a stage", what,
            address);
    }
    strict_update(word, 8, STRICT_RELAXED, host_now->cluster > 1 ? STRICT_CLUSTER : STRICT_CTA);
    strict_release_to(host_barrier_object(address));
    count_bytes(&b, bytes, address);
    b.pending--;
    end_if_complete(&b);
    *word = closed(&b);
}

void host_barrier_arrive(uint32_t barrier)
{
    arrive(barrier, 0, "mbarrier.arrive");
}

void host_barrier_expect(uint32_t barrier, uint32_t bytes)
{
    host_needs(host_card()->bulk_copies, "mbarrier.arrive.expect_tx");
    if (bytes > MOST_BYTES) {
        host_finding("mbarrier.arrive.expect_tx of %u bytes", bytes);
        host_trap("mbarrier");
    }
    arrive(barrier, (int)bytes, "mbarrier.arrive.expect_tx");
}

void host_barrier_bytes(uint32_t barrier, uint32_t bytes)
{
    uint64_t *word;
    struct barrier b = find(barrier, "cp.async.bulk", &word);
    if (!b.ready) {
        host_finding(
            "cp.async.bulk: no fence.mbarrier_init behind the beginning of its barrier %08x", barrier);
    }
    count_bytes(&b, -(int)bytes, barrier);
    end_if_complete(&b);
    *word = closed(&b);
}

/* ---- Waiting ---- */

static void have_seen(uint32_t address, uint64_t *word)
{
    (void)word;
    strict_update(word, 8, STRICT_RELAXED, host_now->cluster > 1 ? STRICT_CLUSTER : STRICT_CTA);
    strict_acquire_from(host_barrier_object(address));
}

static bool has_ended(const struct barrier *b, uint32_t parity)
{
    return (uint32_t)b->phase % 2 != parity;
}

static void check_parity(uint32_t parity)
{
    if (parity > 1) {
        host_finding("mbarrier.try_wait.parity of parity %u", parity);
        host_trap("mbarrier");
    }
}

static void check_phases(uint32_t barrier, int before, int after)
{
    const int ended = (after - before + PHASES) % PHASES;
    if (ended > 1) {
        host_finding(
            "mbarrier at %08x ran over: %d phases ended while a thread waited for one", barrier, ended);
    }
}

bool host_barrier_try(uint32_t barrier, uint32_t parity, const uint32_t *over)
{
    uint64_t *word;
    check_parity(parity);
    host_needs(host_card()->bulk_copies, "mbarrier.try_wait");
    struct barrier b = find(barrier, "mbarrier.try_wait", &word);
    if (!has_ended(&b, parity)) {
        const int phase = b.phase;
        host_rest_until_changed(word, sizeof *word, "an mbarrier's phase");
        b = find(barrier, "mbarrier.try_wait", &word);
        if (!over || *(const volatile uint32_t *)over == 0) {
            check_phases(barrier, phase, b.phase);
        }
    }
    if (has_ended(&b, parity)) {
        have_seen(barrier, word);
        return true;
    }
    return false;
}

struct waiting {
    const uint64_t *word;
    int phase;
};

static bool phase_ended(const void *what)
{
    const struct waiting *w = (const struct waiting *)what;
    return opened(*w->word).phase != w->phase;
}

void host_barrier_wait(uint32_t barrier, uint32_t parity)
{
    uint64_t *word;
    check_parity(parity);
    host_needs(host_card()->bulk_copies, "mbarrier.try_wait");
    struct barrier b = find(barrier, "mbarrier.try_wait", &word);
    if (!has_ended(&b, parity)) {
        const struct waiting waiting = {word, b.phase};
        host_wait_until(phase_ended, &waiting, "an mbarrier's phase");
        b = find(barrier, "mbarrier.try_wait", &word);
        check_phases(barrier, waiting.phase, b.phase);
    }
    have_seen(barrier, word);
}
