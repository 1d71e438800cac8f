/* SPDX-License-Identifier: Apache-2.0
 * Stacks and shared memory of the blocks that run.
 *
 * Dynamic shared memory is a piece of its own for each block. Static shared memory is what the compiler made of
 * `__shared__`: variables of the program, one for all blocks. So each block has an image of them, and before it runs
 * its image changes places with what stands there. */
#include "tests/cuda/host/scheduler.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    DYNAMIC_ALIGN = 1024,
    POISON = 0xff, /* of memory that nobody has written yet: NaN, and an index out of bounds */
    OWN = 1 << 23, /* of an address: static shared memory */
    MOST_OFFSET = OWN - 1,
    RANK_SHIFT = 24
};

static struct block *standing; /* whose static shared memory is where the code finds it */

/* ---- Stacks: kept, since the next launch wants as many ---- */

static void **free_stacks;
static size_t n_free_stacks, most_free_stacks;

static void *stack_take(void)
{
    if (n_free_stacks > 0) {
        return free_stacks[--n_free_stacks];
    }
    enum { AT_ONCE = 64 };
    unsigned char *all = mmap(NULL, (size_t)AT_ONCE * FIBER_STACK, PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) {
        abort();
    }
    strict_allow(all, (size_t)AT_ONCE * FIBER_STACK);
    most_free_stacks += AT_ONCE;
    free_stacks = realloc(free_stacks, most_free_stacks * sizeof *free_stacks);
    for (int i = 1; i < AT_ONCE; i++) {
        free_stacks[n_free_stacks++] = all + (size_t)i * FIBER_STACK;
    }
    return all;
}

/* ---- Blocks ---- */

static void set_thread(struct block *b, int i)
{
    const struct host_dim *dim = &b->of->launch.block;
    struct host_thread *t = &b->fibers[i].thread;
    t->thread_id = (struct host_dim){
        (unsigned)i % dim->x, (unsigned)i / dim->x % dim->y, (unsigned)i / (dim->x * dim->y)};
    t->block_id = b->id;
    t->block_dim = *dim;
    t->grid_dim = b->of->launch.grid;
    t->thread = i;
    t->lane = i % HOST_WARP;
    t->warp = i / HOST_WARP;
    t->block = b->index;
    t->rank = b->rank;
    t->which_cluster = (int)(b->cluster - b->of->clusters);
    t->cluster = b->of->cluster;
    b->fibers[i].of = b;
    b->fibers[i].barrier = -1;
    b->fibers[i].state = &b->states[i];
    b->fibers[i].stack = stack_take();
}

/* A block's place: the cluster's, x the fastest, and its own in the cluster. */
static struct host_dim place_of(const struct run *r, unsigned which, unsigned rank)
{
    const struct host_dim g = r->launch.grid, c = r->launch.cluster;
    const unsigned across = g.x / c.x, down = g.y / c.y;
    return (struct host_dim){which % across * c.x + rank % c.x,
        which / across % down * c.y + rank / c.x % c.y,
        which / (across * down) * c.z + rank / (c.x * c.y)};
}

struct block *block_new(struct run *r, struct cluster *cluster, int rank)
{
    const struct host_dim *grid = &r->launch.grid;
    struct block *b = calloc(1, sizeof *b);
    b->of = r;
    b->rank = rank;
    b->cluster = cluster;
    b->id = place_of(r, (unsigned)(cluster - r->clusters), (unsigned)rank);
    b->index = (int)(b->id.x + grid->x * (b->id.y + grid->y * b->id.z));
    b->n_left = r->n_threads;
    b->fibers = calloc((size_t)r->n_threads, sizeof *b->fibers);
    b->states = calloc((size_t)r->n_threads, sizeof *b->states);
    b->warps = calloc((size_t)r->n_warps, sizeof *b->warps);
    b->teams = calloc((size_t)(r->n_warps + 3) / 4, sizeof *b->teams);
    for (int i = 0; i < r->n_threads; i++) {
        set_thread(b, i);
    }
    const size_t dynamic = (r->launch.shared_bytes + DYNAMIC_ALIGN) / DYNAMIC_ALIGN * DYNAMIC_ALIGN;
    b->dynamic = aligned_alloc(DYNAMIC_ALIGN, dynamic);
    memset(b->dynamic, POISON, dynamic);
    strict_memory_add(b->dynamic, r->launch.shared_bytes, HOST_SHARED, "dynamic shared memory", false);
    if (r->facts->shared_bytes > 0) {
        b->image = malloc(r->facts->shared_bytes);
        memset(b->image, POISON, r->facts->shared_bytes);
        strict_memory_add(b->image, r->facts->shared_bytes, HOST_SHARED, "static shared memory", false);
    }
    return b;
}

void block_free(struct block *b)
{
    if (standing == b) { /* what the code sees is nobody's until another one stands there */
        block_forget_standing();
    }
    for (int i = 0; i < b->of->n_threads; i++) {
        for (int k = 0; k < HOST_KEPT; k++) {
            free(b->fibers[i].thread.kept[k]);
        }
        free_stacks[n_free_stacks++] = b->fibers[i].stack;
    }
    strict_block_end(b->of->grid, b->index);
    strict_memory_remove(b->dynamic);
    if (b->image) {
        strict_memory_remove(b->image);
    }
    free(b->image);
    free(b->dynamic);
    free(b->teams);
    free(b->warps);
    free(b->asks);
    free(b->states);
    free(b->fibers);
    free(b);
}

/* ---- Static shared memory ---- */

static void exchange(unsigned char *a, unsigned char *b, size_t n)
{
    unsigned char kept[1024];
    for (size_t at = 0; at < n; at += sizeof kept) {
        const size_t now = n - at < sizeof kept ? n - at : sizeof kept;
        memcpy(kept, a + at, now);
        memcpy(a + at, b + at, now);
        memcpy(b + at, kept, now);
    }
}

static void exchange_all(const struct block *b)
{
    const struct kernel_facts *facts = b->of->facts;
    for (int i = 0; i < facts->n_shared; i++) {
        const struct shared_variable *v = &facts->shared[i];
        exchange(v->at, b->image + v->place, v->bytes);
        strict_memory_swap(v->at, b->image + v->place, v->bytes);
    }
}

void block_forget_standing(void)
{
    if (standing && standing->image) {
        exchange_all(standing);
    }
    standing = NULL;
}

void block_stand(struct block *b)
{
    if (standing != b) {
        block_forget_standing();
        if (b->image) {
            exchange_all(b);
        }
        standing = b;
    }
}

/* ---- Addresses ---- */

void *host_dynamic_shared(void)
{
    return fiber_now->of->dynamic;
}

/* Where `at` is in the shared memory of the block that runs; -1: nowhere. */
static int64_t offset_of(const void *at)
{
    const struct block *b = fiber_now->of;
    const unsigned char *p = at;
    if (p >= b->dynamic && p <= b->dynamic + b->of->launch.shared_bytes) {
        return p - b->dynamic;
    }
    for (int i = 0; i < b->of->facts->n_shared; i++) {
        const struct shared_variable *v = &b->of->facts->shared[i];
        if (p >= v->at && p < v->at + v->bytes) {
            return OWN + (int64_t)v->place + (p - v->at);
        }
    }
    return -1;
}

bool host_is_shared(const void *at)
{
    return offset_of(at) >= 0;
}

uint32_t host_shared_address(const void *at)
{
    const int64_t offset = offset_of(at);
    if (offset < 0) {
        host_trap("an address that is not one of shared memory");
    }
    return (uint32_t)offset;
}

uint32_t host_shared_map(uint32_t address, int rank)
{
    if (rank < 0 || rank >= host_now->cluster) {
        host_trap("a block that the cluster does not have");
    }
    return (address & (OWN | MOST_OFFSET)) | (uint32_t)(rank + 1) << RANK_SHIFT;
}

static struct block *block_at(uint32_t address)
{
    struct block *own = fiber_now->of;
    const int rank = (int)(address >> RANK_SHIFT) - 1;
    return rank < 0 ? own : own->cluster->blocks[rank];
}

bool host_shared_is_left(uint32_t address)
{
    return block_at(address)->n_left == 0;
}

void *host_shared_pointer(uint32_t address, size_t bytes)
{
    struct block *b = block_at(address);
    const size_t offset = address & MOST_OFFSET;
    const struct kernel_facts *facts = b->of->facts;
    if (!(address & OWN)) {
        if (offset + bytes > b->of->launch.shared_bytes) {
            host_trap("an access behind the dynamic shared memory");
        }
        return b->dynamic + offset;
    }
    if (b != standing) {
        return offset + bytes <= facts->shared_bytes ? b->image + offset : NULL;
    }
    for (int i = 0; i < facts->n_shared; i++) {
        const struct shared_variable *v = &facts->shared[i];
        if (offset >= v->place && offset + bytes <= v->place + v->bytes) {
            return v->at + (offset - v->place);
        }
    }
    host_trap("an access behind a variable of shared memory");
}
