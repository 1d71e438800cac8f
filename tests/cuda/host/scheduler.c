/* SPDX-License-Identifier: Apache-2.0
 * Runs launches: each thread of a kernel is a fiber, and the scheduler lets one after the other run until it waits.
 * In which order blocks begin, which block runs next and for how long come from the launch's seed.
 *
 * Blocks that cannot wait for one another (no cluster, not cooperative) mostly run one at a time from begin to end:
 * that is one of the orders that a GPU may take, and the cheapest. Now and then a few of them run beside each other. */
#include "tests/cuda/host/scheduler.h"

#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_TURNS = 48,   /* of a block before another one has its turn */
    FEW_TURNS = 4,     /* likewise, once the next launch may begin beside it */
    CLOCK_A_TURN = 32, /* clocks */
    SLOW_TURNS = 512,  /* of a block, in which one of its warps falls behind, at most */
    STANDS = 3,        /* such warps, of which one stands still however long the others ask */
    FEW = 4,           /* clusters at a time, where none waits for another, at most */
    TOGETHER = 3,      /* such launches, of which one has more than one cluster at a time */
    ASKS_AGAIN = 8,    /* turns of a block, of which one is for threads that only ask again */
    ALL_ASK = 32,      /* such turns, in one of which those that rest ask too */
    IDLE_BEFORE_HASTE = 64,
    CLOCK_OF_HASTE = 1000000, /* a launch that only asks gets old fast: its own patience ends it */
    IN_VAIN = 1024,           /* rounds in which all ask for what they know: no patience ends them */
    KERNELS = 4096
};

struct host_thread *host_now;
struct fiber *fiber_now;
static fiber_place scheduler;

/* ---- Kernels ---- */

static struct host_kernel kernels[KERNELS];

static unsigned kernel_slot(const void *code)
{
    unsigned at = (unsigned)((uintptr_t)code >> 4) % KERNELS;
    while (kernels[at].code && kernels[at].code != code) {
        at = (at + 1) % KERNELS;
    }
    return at;
}

void host_kernel_add(const struct host_kernel *kernel)
{
    kernels[kernel_slot(kernel->code)] = *kernel;
}

const struct host_kernel *host_kernel_find(const void *code)
{
    const struct host_kernel *k = &kernels[kernel_slot(code)];
    return code && k->code ? k : NULL;
}

static bool has_body(const struct kernel_facts *facts)
{
    const struct host_card *card = host_card();
    return card->code_specific || (!facts->needs_groups && (!facts->needs_moves || card->code_family));
}

size_t host_static_shared(const struct host_kernel *kernel)
{
    const struct kernel_facts *facts = kernel_facts(kernel->code);
    return has_body(facts) ? facts->shared_bytes : 0;
}

const char *host_kernel_name(const struct host_kernel *kernel)
{
    return kernel_facts(kernel->code)->name;
}

unsigned host_kernel_cluster(const struct host_kernel *kernel)
{
    return kernel_facts(kernel->code)->in_pairs && host_card()->clusters ? 2 : 1;
}

int host_blocks_per_sm(const struct host_kernel *kernel, int threads, size_t shared_bytes)
{
    enum { A_BLOCK_KEEPS = 1024 }; /* bytes of shared memory that the system takes */
    const struct host_card *card = host_card();
    const size_t shared = host_static_shared(kernel) + shared_bytes;
    if (threads < 1 || threads > HOST_MOST_THREADS || shared > (size_t)card->block_shared) {
        return 0;
    }
    int by_threads = card->sm_threads / threads;
    int by_shared = (int)((size_t)card->sm_shared / (shared + A_BLOCK_KEEPS));
    int n = by_threads < by_shared ? by_threads : by_shared;
    return n < 32 ? n : 32;
}

/* ---- Fibers ---- */

uint32_t run_chance(struct run *r, uint32_t n)
{
    uint64_t x = r->random; /* xorshift64* */
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    r->random = x;
    return n ? (uint32_t)((x * 2685821657736338717ull) >> 33) % n : 0;
}

void fiber_leave(enum fiber_state state)
{
    struct fiber *f = fiber_now;
    *f->state = (unsigned char)state;
    fiber_switch(&f->place, scheduler);
}

void fiber_wake(struct fiber *f)
{
    *f->state = FIBER_RUNS;
}

static void fiber_body(void)
{
    struct run *r = run_now();
    r->launch.kernel->call(r->launch.kernel->code, r->args);
    host_stores_seen();
    fiber_leave(FIBER_ENDED);
    abort(); /* nobody goes on here */
}

/* How far below the others' a fiber's frames lie, bytes: at the same place of all stacks they would share a few sets of
 * the host's caches. */
static size_t apart(const struct fiber *f)
{
    enum { PLACES = 64, STEP = 192 };
    return (size_t)(f->thread.thread + 7 * f->of->index) % PLACES * STEP;
}

static bool only_asks(const struct fiber *f)
{
    return *f->state == FIBER_YIELDS || *f->state == FIBER_RESTS;
}

static void fiber_run(struct fiber *f)
{
    struct run *r = f->of->of;
    if (!f->place) {
        f->place = fiber_new(f->stack, FIBER_STACK - apart(f), fiber_body);
    }
    *f->state = FIBER_RUNS;
    fiber_now = f;
    host_now = &f->thread;
    strict_thread(r->grid, f->of->index, f->thread.thread);
    fiber_switch(&scheduler, f->place);
    strict_thread(NULL, 0, 0);
    r->progress |= !only_asks(f);
    if (*f->state == FIBER_ENDED) {
        f->of->n_left--;
    }
    host_now = NULL;
    fiber_now = NULL;
}

void host_yield(void)
{
    run_now()->news = true; /* it may look at the clock, or count */
    fiber_leave(FIBER_YIELDS);
}

void host_wait_until(bool (*ready)(const void *what), const void *what, const char *name)
{
    struct fiber *f = fiber_now;
    while (!ready(what)) {
        f->ready = ready;
        f->what = what;
        f->waits_for = name;
        fiber_leave(FIBER_WAITS);
    }
}

uint64_t host_clock(void)
{
    return fiber_now->of->clock + run_now()->extra_clock;
}

uint32_t host_chance(uint32_t n)
{
    return run_chance(run_now(), n);
}

void host_trap(const char *why)
{
    host_finding("%s", why);
    run_now()->failed = true;
    fiber_leave(FIBER_ENDED);
    abort();
}

/* ---- Dependent launches ---- */

static bool earlier_done(const void *what)
{
    return ((const struct run *)what)->earlier_done;
}

void host_wait_for_earlier(void)
{
    if (host_card()->overlaps && run_now()->launch.overlaps) {
        host_wait_until(earlier_done, run_now(), "the launch before it (griddepcontrol.wait)");
        strict_wait_for_earlier();
        host_now->heard = true;
    }
}

void host_let_next_begin(void)
{
    struct block *b = fiber_now->of;
    if (!host_card()->overlaps) {
        return;
    }
    b->of->n_let += !b->lets;
    b->lets = true;
}

/* ---- Blocks ---- */

static bool is_ready(struct fiber *f)
{
    host_now = &f->thread;
    fiber_now = f;
    const bool ready = f->ready(f->what);
    host_now = NULL;
    fiber_now = NULL;
    return ready;
}

/* Threads that rest ask again: a warp of which one has news, since its lanes go round their loop together, or all. */
static void rests_end(struct block *b, bool all)
{
    for (int i = 0; i < b->of->n_threads; i++) {
        if (b->states[i] != FIBER_RESTS || (!all && !ask_has_news(&b->fibers[i]))) {
            continue;
        }
        const int warp = i - i % HOST_WARP;
        for (int t = warp; t < warp + HOST_WARP && t < b->of->n_threads; t++) {
            b->states[t] = b->states[t] == FIBER_RESTS ? FIBER_YIELDS : b->states[t];
        }
    }
}

/* Lets the thread run, if it can; one that only asks again for what it waits for, if `again`. Whether it did more. */
static bool thread_run(struct block *b, int which, bool again)
{
    struct run *r = b->of;
    const enum fiber_state state = b->states[which];
    struct fiber *f = &b->fibers[which];
    if (r->failed || !(state == FIBER_RUNS || (state == FIBER_WAITS && is_ready(f)) ||
                         (state == FIBER_YIELDS && again))) {
        return false;
    }
    const int before = host_findings();
    fiber_run(f);
    r->failed |= host_findings() != before;
    return !only_asks(f);
}

/* Lets each thread of the block that can run do so once, from thread `first` on, but for those of the slow warp.
 * Whether any did more than ask. */
static bool threads_run(struct block *b, int first, bool again)
{
    const int n = b->of->n_threads;
    bool any = false;
    if (again) {
        rests_end(b, run_chance(b->of, ALL_ASK) == 0);
    }
    for (int i = 0; i < n; i++) {
        const int which = i + first < n ? i + first : i + first - n;
        any |= which / HOST_WARP != b->slow && thread_run(b, which, again);
    }
    return any;
}

static bool slow_warp_runs(struct block *b)
{
    const int first = b->slow * HOST_WARP;
    bool any = false;
    for (int i = first; i >= 0 && i < first + HOST_WARP && i < b->of->n_threads; i++) {
        any |= thread_run(b, i, true);
    }
    return any;
}

/* A GPU promises no warp that it keeps up with the others: for some turns one stands still while any other does
 * more than ask. Not for ever: threads that poll by a vote of their warp count as going on. Now and then it stands
 * while its block only asks, too, and so other blocks go on without it; until nothing goes on at all (hasten). */
static void choose_slow(struct block *b)
{
    struct run *r = b->of;
    if (b->slow_turns-- == 0) {
        b->slow_turns = (int)run_chance(r, SLOW_TURNS);
        b->slow = run_chance(r, 2) ? (int)run_chance(r, (uint32_t)r->n_warps) : NOT_SLOW;
        b->stands = b->slow != NOT_SLOW && run_chance(r, STANDS) == 0;
    }
}

/* A turn of a block. Threads that ask again have their share of them, and those in which nobody else goes on: asking
 * is most of what some kernels do. Whether any did more. */
static bool block_turn(struct block *b)
{
    struct run *r = b->of;
    const int first = (int)run_chance(r, (uint32_t)r->n_warps) * HOST_WARP;
    const bool again = run_chance(r, ASKS_AGAIN) == 0;
    b->clock += CLOCK_A_TURN;
    choose_slow(b);
    return threads_run(b, first, again) || (!b->stands && slow_warp_runs(b)) ||
           (!again && threads_run(b, first, true));
}

static void begin_cluster(struct run *r)
{
    const int which = r->order[r->n_begun / r->cluster];
    struct cluster *c = &r->clusters[which];
    for (int i = 0; i < r->cluster; i++) {
        struct block *b = block_new(r, c, i);
        c->blocks[i] = b;
        r->resident[r->n_resident++] = b;
        r->n_begun++;
    }
    r->progress = true;
}

static void end_cluster(struct run *r, struct cluster *c)
{
    int kept = 0;
    for (int i = 0; i < r->n_resident; i++) {
        if (r->resident[i]->cluster != c) {
            r->resident[kept++] = r->resident[i];
        }
    }
    r->n_resident = kept;
    for (int i = 0; i < r->cluster; i++) {
        r->n_let += !c->blocks[i]->lets;
        r->n_ended++;
        block_free(c->blocks[i]);
    }
    r->progress = true;
}

static bool cluster_ended(const struct run *r, const struct cluster *c)
{
    for (int i = 0; i < r->cluster; i++) {
        if (c->blocks[i]->n_left > 0 || c->blocks[i]->n_later > 0) {
            return false;
        }
    }
    return true;
}

/* All blocks let the next launch begin since the last turn: it has its chance while the last ones work. */
static bool stops_early(struct run *r)
{
    if (r->all_let || r->n_let < r->n_blocks) {
        return false;
    }
    r->all_let = true;
    r->pauses = !r->launch.cooperative;
    return r->pauses;
}

/* One block has its turns. */
static int run_block(struct run *r)
{
    struct block *b = r->resident[r->next % r->n_resident];
    const bool beside = r->all_let && !r->launch.cooperative;
    int turns = 1 + (int)run_chance(r, beside ? FEW_TURNS : MOST_TURNS), done = 0;
    block_stand(b);
    for (; done < turns && b->n_left > 0 && !r->failed; done++) {
        if (!block_turn(b) || stops_early(r)) {
            break;
        }
        if (b->n_late > 0 && run_chance(r, 4) == 0) {
            block_stores(b, false);
        }
        if (r->n_laters > 0 && run_chance(r, 4) == 0) {
            run_laters(r, false);
        }
    }
    if (b->n_late > 0 && run_chance(r, 2) == 0) {
        block_stores(b, false); /* others may wait for what stands behind them */
    }
    if (b->n_left == 0 && b->n_later > 0) {
        run_laters(r, true);
    }
    if (cluster_ended(r, b->cluster)) {
        end_cluster(r, b->cluster);
    } else {
        r->next++;
    }
    return (done + 1) * r->n_threads;
}

/* Nothing went on in a whole round: what is under way by itself is done, slow warps follow, then the launch's clock
 * runs. False: nothing ever will. */
static bool hasten(struct run *r)
{
    r->in_vain = r->news ? 0 : r->in_vain + 1;
    r->news = false;
    if (run_laters(r, true)) {
        return true;
    }
    bool stood = false;
    for (int i = 0; i < r->n_resident; i++) {
        stood |= r->resident[i]->stands;
        r->resident[i]->stands = false;
    }
    if (stood) {
        return true;
    }
    bool asks = false, late = false;
    for (int i = 0; i < r->n_resident; i++) {
        struct block *b = r->resident[i];
        late |= b->n_late > 0;
        block_stores(b, true);
        rests_end(b, true);
        asks = asks || memchr(b->states, FIBER_YIELDS, (size_t)r->n_threads);
    }
    if (++r->idle > IDLE_BEFORE_HASTE) {
        r->extra_clock += CLOCK_OF_HASTE;
    }
    return (asks && r->in_vain < IN_VAIN) || late || r->idle < 4;
}

static enum host_run_state stuck(const struct run *r)
{
    for (int i = 0; i < r->n_resident; i++) {
        for (int t = 0; t < r->n_threads; t++) {
            if (only_asks(&r->resident[i]->fibers[t])) {
                return HOST_ASKS;
            }
        }
    }
    return HOST_STUCK;
}

/* One of them, for all of its warp. */
static void tell_waiting(struct fiber *f)
{
    const struct block *b = f->of;
    const bool asks = only_asks(f);
    fprintf(stderr, "  %s: block %d thread %d %s %s", b->of->facts->name, b->index, f->thread.thread,
        asks ? "asks in vain for" : "waits for", f->waits_for ? f->waits_for : "?");
    if (asks) {
        fiber_now = f;
        ask_tell(f);
        fiber_now = NULL;
    }
    fprintf(stderr, "\n");
}

void host_run_tell_stuck(const struct host_run *run)
{
    enum { MOST_TOLD = 8 };
    const struct run *r = (const struct run *)run;
    int n = 0, told = 0;
    for (int i = 0; i < r->n_resident; i++) {
        const struct block *b = r->resident[i];
        for (int t = 0, warp = -1; t < r->n_threads; t++) {
            if (b->states[t] == FIBER_RUNS || b->states[t] == FIBER_ENDED) {
                continue;
            }
            n++;
            if (t / HOST_WARP != warp && told < MOST_TOLD) {
                tell_waiting(&b->fibers[t]);
                told++;
            }
            warp = t / HOST_WARP;
        }
    }
    fprintf(stderr, "  %s: %d threads wait in all\n", r->facts->name, n);
}

enum host_run_state host_run_step(struct host_run *run, int n, bool earlier)
{
    struct run *r = (struct run *)run;
    r->earlier_done |= earlier;
    r->pauses = false;
    for (int done = 0; done < n && !r->failed && !r->pauses && r->n_ended < r->n_blocks;) {
        while (r->n_begun < r->n_blocks && r->n_resident + r->cluster <= r->most_resident) {
            begin_cluster(r);
        }
        if (r->next >= r->n_resident) {
            r->next = 0;
            if (r->progress) {
                r->idle = r->in_vain = 0;
            } else if (!r->earlier_done && r->launch.overlaps) {
                return r->n_let == r->n_blocks ? HOST_LETS : HOST_RUNS; /* it may wait for that alone */
            } else if (!hasten(r)) {
                return stuck(r);
            }
            r->progress = false;
        }
        done += run_block(r);
    }
    return r->failed                   ? HOST_FAILED
           : r->n_ended == r->n_blocks ? HOST_DONE
           : r->in_vain >= IN_VAIN && !r->progress && !r->news
               ? stuck(r) /* asked again, between two rounds */
           : r->n_let == r->n_blocks ? HOST_LETS
                                     : HOST_RUNS;
}

/* ---- Launches ---- */

static int cluster_of(const struct host_launch *l)
{
    return (int)(l->cluster.x * l->cluster.y * l->cluster.z);
}

static bool fits(const struct host_launch *l, const struct kernel_facts *facts)
{
    const struct host_card *card = host_card();
    const int64_t threads = (int64_t)l->block.x * l->block.y * l->block.z;
    const int64_t blocks = (int64_t)l->grid.x * l->grid.y * l->grid.z;
    if (threads < 1 || threads > HOST_MOST_THREADS || blocks < 1 || blocks > INT32_MAX) {
        host_finding(
            "%s: %lld blocks of %lld threads", facts->name, (long long)blocks, (long long)threads);
    } else if (!has_body(facts)) {
        host_finding("%s has no body in the code of a %s", facts->name, card->full_name);
    } else if (facts->shared_bytes + l->shared_bytes > (size_t)card->block_shared) {
        host_finding("%s: %zu bytes of shared memory, and a block of a %s has %d", facts->name,
            facts->shared_bytes + l->shared_bytes, card->full_name, card->block_shared);
    } else if (cluster_of(l) > 1 &&
               (!card->clusters || cluster_of(l) > MOST_CLUSTER || l->grid.x % l->cluster.x ||
                   l->grid.y % l->cluster.y || l->grid.z % l->cluster.z)) {
        host_finding("%s: clusters of %d blocks", facts->name, cluster_of(l));
    } else {
        return true;
    }
    return false;
}

/* The order in which clusters begin: any. */
static void shuffle(struct run *r, int n)
{
    for (int i = 0; i < n; i++) {
        r->order[i] = i;
    }
    for (int i = n - 1; i > 0; i--) {
        int j = (int)run_chance(r, (uint32_t)i + 1), kept = r->order[i];
        r->order[i] = r->order[j];
        r->order[j] = kept;
    }
}

/* Of a launch whose blocks do not wait for one another. Needs r->random. */
static int clusters_at_once(struct run *r)
{
    return run_chance(r, TOGETHER) == 0 ? 2 + (int)run_chance(r, FEW - 1) : 1;
}

struct host_run *host_run_begin(const struct host_launch *l)
{
    const struct kernel_facts *facts = kernel_facts(l->kernel->code);
    if (!fits(l, facts)) {
        return NULL;
    }
    mallopt(M_MMAP_THRESHOLD,
        1 << 30); /* blocks come and go: no memory is given back and asked for again */
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    struct run *r = calloc(1, sizeof *r);
    r->launch = *l;
    r->grid = l->watched;
    r->facts = facts;
    r->args = malloc(l->kernel->args_bytes + 1);
    memcpy(r->args, l->args, l->kernel->args_bytes);
    r->n_blocks = (int)(l->grid.x * l->grid.y * l->grid.z);
    r->n_threads = (int)(l->block.x * l->block.y * l->block.z);
    r->n_warps = (r->n_threads + HOST_WARP - 1) / HOST_WARP;
    r->cluster = cluster_of(l);
    r->random = (l->seed + 1) * 0x9e3779b97f4a7c15ull | 1;
    r->most_resident = l->cooperative ? r->n_blocks : r->cluster * clusters_at_once(r);
    r->resident = calloc((size_t)r->most_resident, sizeof(struct block *));
    r->clusters = calloc((size_t)(r->n_blocks / r->cluster), sizeof *r->clusters);
    r->order = calloc((size_t)(r->n_blocks / r->cluster), sizeof *r->order);
    shuffle(r, r->n_blocks / r->cluster);
    return (struct host_run *)r;
}

void host_run_end(struct host_run *run)
{
    struct run *r = (struct run *)run;
    for (int i = 0; i < r->n_resident; i++) {
        block_free(r->resident[i]);
    }
    free(r->order);
    free(r->clusters);
    free(r->resident);
    free(r->laters);
    free(r->live);
    free(r->args);
    free(r);
}
