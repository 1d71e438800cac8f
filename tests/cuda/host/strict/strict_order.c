/* SPDX-License-Identifier: Apache-2.0
 * Strict: threads of a launch: fences, warps, beginning and end. */
#include "tests/cuda/host/strict/strict_parts.h"

#include <stdlib.h>

struct strict_thread *strict_now;

static void *get(size_t n, size_t bytes)
{
    void *p = calloc(n, bytes);
    if (!p) {
        abort();
    }
    return p;
}

/* ---- Fences ---- */

static void layer_copy(struct strict_layer *to, const struct strict_layer *from)
{
    struct strict_layer old = *to;
    *to = *from;
    strict_vector_keep(to->mine);
    strict_blocks_keep(to->others);
    strict_vector_drop(old.mine);
    strict_blocks_drop(old.others);
}

void strict_fence(enum strict_scope scope)
{
    struct strict_thread *t = strict_now;
    if (!t) {
        return;
    }
    struct strict_layer *known = &t->layer[STRICT_KNOWN], *near = &t->layer[STRICT_FENCED_NEAR];
    strict_vector_join(&known->mine, t->layer[STRICT_HEARD].mine);
    strict_blocks_join(&known->others, t->layer[STRICT_HEARD].others);
    strict_same_time(t);
    known->own = t->time;
    layer_copy(near, known);
    strict_raise_own(t, &near->mine, near);
    if (scope != STRICT_CTA) {
        layer_copy(&t->layer[STRICT_FENCED], near);
    }
    t->time++;
}

void strict_proxy_fence(void)
{
    struct strict_thread *t = strict_now;
    if (t) {
        t->layer[STRICT_KNOWN].own = t->time++;
        layer_copy(&t->layer[STRICT_PROXY], &t->layer[STRICT_KNOWN]);
    }
}

/* ---- Warps ---- */

/* Layer i of all lanes of the mask becomes what they know together. */
static void lanes_join(struct strict_thread *first, uint32_t lanes, int i)
{
    struct strict_layer sum = {0};
    for (uint32_t left = lanes; left; left &= left - 1) {
        struct strict_layer *l = &first[__builtin_ctz(left)].layer[i];
        strict_vector_join(&sum.mine, l->mine);
        strict_blocks_join(&sum.others, l->others);
    }
    for (uint32_t left = lanes; left; left &= left - 1) {
        struct strict_thread *t = &first[__builtin_ctz(left)];
        strict_raise_own(t, &sum.mine, &t->layer[i]);
    }
    for (uint32_t left = lanes; left; left &= left - 1) {
        struct strict_layer *l = &first[__builtin_ctz(left)].layer[i];
        struct strict_layer old = *l;
        l->mine = strict_vector_keep(sum.mine);
        l->others = strict_blocks_keep(sum.others);
        strict_vector_drop(old.mine);
        strict_blocks_drop(old.others);
    }
    strict_vector_drop(sum.mine);
    strict_blocks_drop(sum.others);
}

/* All lanes have come when the first leaves, so it does the others' part: they have nothing left to do then. */
void strict_warp_sync(uint32_t mask)
{
    struct strict_thread *t = strict_now;
    if (!t) {
        return;
    }
    uint32_t *left = &t->block->left[t->index / HOST_WARP];
    if (*left & t->lanes) {
        *left &= ~t->lanes;
        return;
    }
    struct strict_thread *first = t - t->lane;
    int n = t->grid->n_threads - first->index;
    uint32_t lanes = (mask | t->lanes) & (n >= HOST_WARP ? 0xffffffffu : (1u << n) - 1);
    uint32_t time = 0;
    struct strict_vector *known = NULL;
    for (uint32_t of = lanes; of; of &= of - 1) {
        struct strict_thread *one = &first[__builtin_ctz(of)];
        one->layer[STRICT_KNOWN].own = one->time;
        time = time > one->time ? time : one->time;
        strict_vector_join(&known, one->known);
    }
    for (int i = 0; i < STRICT_LAYERS; i++) {
        lanes_join(first, lanes, i);
    }
    for (uint32_t of = lanes; of; of &= of - 1) {
        struct strict_thread *one = &first[__builtin_ctz(of)];
        one->time = time + 1;
        strict_vector_join(&one->known, known);
    }
    strict_vector_drop(known);
    *left |= lanes & ~t->lanes;
}

/* ---- Launches ---- */

struct strict_grid *strict_grid_begin(struct strict_op *op, const char *kernel, struct host_dim blocks,
    int n_threads, struct host_dim cluster)
{
    const int n_blocks = (int)host_volume(blocks);
    struct strict_grid *g = get(1, sizeof *g);
    g->op = op;
    g->name = strict_intern(kernel);
    g->n_blocks = n_blocks;
    g->n_threads = n_threads;
    g->n_warps = (n_threads + HOST_WARP - 1) / HOST_WARP;
    g->blocks_along = blocks;
    g->cluster = cluster;
    g->block_units = 2 * g->n_warps + 1;
    g->short_lanes = (g->n_warps + 1) * HOST_WARP;
    g->all_lanes = g->block_units * HOST_WARP;
    g->n_units = (uint32_t)n_blocks * (uint32_t)g->block_units;
    g->unit = strict_units(op, g->n_units, n_threads, g->block_units);
    g->blocks = get((size_t)n_blocks, sizeof(struct strict_block *));
    g->known = strict_vector_keep(strict_op_self(op)->known);
    g->objects = strict_objects_new();
    return g;
}

static struct strict_block *block_begin(struct strict_grid *g, int index)
{
    struct strict_block *b = get(1, sizeof *b);
    const struct strict_thread *op = strict_op_self(g->op);
    b->index = index;
    b->unit = g->unit + (uint32_t)index * (uint32_t)g->block_units;
    b->threads = get((size_t)g->n_threads, sizeof *b->threads);
    b->left = get((size_t)g->n_warps, sizeof *b->left);
    for (int i = 0; i < g->n_threads; i++) {
        struct strict_thread *t = &b->threads[i];
        t->grid = g;
        t->block = b;
        t->index = i;
        t->lane = (uint32_t)i % HOST_WARP;
        t->lanes = 1u << t->lane;
        t->unit = b->unit + (uint32_t)(i / HOST_WARP);
        t->unit_of_copies = t->unit + (uint32_t)g->n_warps + 1;
        t->time = 1;
        t->op = op->op;
        t->known = strict_vector_keep(g->known);
    }
    return b;
}

static void layers_drop(struct strict_layer *l)
{
    for (int i = 0; l && i < STRICT_LAYERS; i++) {
        strict_vector_drop(l[i].mine);
        strict_blocks_drop(l[i].others);
    }
}

void strict_block_end(struct strict_grid *g, int block)
{
    struct strict_block *b = g->blocks[block];
    if (!b) {
        return;
    }
    if (strict_now && strict_now->block == b) {
        strict_now = NULL;
    }
    for (int i = 0; i < g->n_threads; i++) {
        struct strict_thread *t = &b->threads[i];
        layers_drop(t->layer);
        strict_vector_drop(t->known);
    }
    free(b->threads);
    free(b->left);
    free(b);
    g->blocks[block] = NULL;
}

void strict_thread(struct strict_grid *grid, int block, int thread)
{
    if (!grid) {
        strict_now = NULL;
        return;
    }
    if (!grid->blocks[block]) {
        grid->blocks[block] = block_begin(grid, block);
    }
    strict_now = &grid->blocks[block]->threads[thread];
}

void strict_wait_for_earlier(void)
{
    struct strict_thread *t = strict_now;
    if (t) {
        strict_vector_join(&t->known, strict_op_self(t->grid->op)->known);
    }
}

void strict_grid_end(struct strict_grid *g)
{
    for (int i = 0; i < g->n_blocks; i++) {
        strict_block_end(g, i);
    }
    strict_objects_drop(g);
    strict_copies_drop(g);
    strict_vector_drop(g->known);
    free(g->blocks);
    free(g);
    strict_joins_forget();
}
