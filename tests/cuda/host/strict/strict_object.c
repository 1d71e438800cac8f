/* SPDX-License-Identifier: Apache-2.0
 * Strict: objects, to which threads release what they know and from which others acquire it: barriers, mbarriers, and
 * cells of memory that atomic accesses touch. */
#include "tests/cuda/host/strict/strict_parts.h"

#include <stdlib.h>

/* Lanes of a block stand in its vector unit by unit: warps, bulk copies, copies of groups. */
static int place_of_thread(const struct strict_thread *t)
{
    return t->index;
}

static int place_of_copies(const struct strict_thread *t)
{
    return t->grid->short_lanes + t->index;
}

static int length_for(const struct strict_grid *g, int place)
{
    return place < g->short_lanes ? g->short_lanes : g->all_lanes;
}

static void *get(size_t n, size_t bytes)
{
    void *p = calloc(n, bytes);
    if (!p) {
        abort();
    }
    return p;
}

/* ---- Objects: what was released to a place ---- */

/* AT_ADDRESS: the level of objects of the bench, which whoever comes to shares. */
enum { HOME_NONE = -1, HOME_ALL = -2, OBJECTS = 256, AT_ADDRESS = STRICT_SYS + 1 };

/* A layer as released. While one block alone has released, `mine` is its vector; later all stand in `others`. */
struct part_layer {
    struct strict_vector *mine, *seen; /* seen: is in `mine` already */
    struct strict_blocks *others;
};

/* What reaches those of one group: a block, a cluster, the GPU. */
struct part {
    struct part *next;
    int level, group, home;
    struct part_layer layer[STRICT_LAYERS];
};

struct strict_object {
    struct strict_grid *grid;
    struct part *parts;
    struct strict_vector *known; /* of streams */
};

/* Objects of cells, whose numbers are chunk * OBJECTS + place. They go with their launch. */
struct strict_chunk {
    struct strict_grid *grid;
    struct strict_chunk *next; /* of the launch */
    uint32_t number;
    int n;
    struct strict_object object[OBJECTS];
};
static struct strict_chunk **chunks;
static uint32_t n_chunks = 1, n_chunks_held;

/* Objects by address: open addressing, a power of two. */
struct strict_objects {
    size_t n, held;
    const void **key;
    struct strict_object *object;
};

static size_t slot_of(const struct strict_objects *all, const void *key)
{
    size_t i = (size_t)(((uintptr_t)key >> 2) * 0x9e3779b97f4a7c15u >> 20) & (all->held - 1);
    while (all->key[i] && all->key[i] != key) {
        i = (i + 1) & (all->held - 1);
    }
    return i;
}

static struct strict_object *object_at(struct strict_grid *g, const void *key)
{
    struct strict_objects *all = g->objects;
    if (all->n * 2 >= all->held) {
        struct strict_objects more = {all->n, all->held ? all->held * 2 : 64, NULL, NULL};
        more.key = get(more.held, sizeof *more.key);
        more.object = get(more.held, sizeof *more.object);
        for (size_t i = 0; i < all->held; i++) {
            if (all->key[i]) {
                size_t to = slot_of(&more, all->key[i]);
                more.key[to] = all->key[i];
                more.object[to] = all->object[i];
            }
        }
        free(all->key);
        free(all->object);
        *all = more;
    }
    const void *name = key ? key : (const void *)all;
    size_t i = slot_of(all, name);
    if (!all->key[i]) {
        all->key[i] = name;
        all->object[i].grid = g;
        all->n++;
    }
    return &all->object[i];
}

static void part_clear(struct part *p)
{
    for (int i = 0; i < STRICT_LAYERS; i++) {
        strict_vector_drop(p->layer[i].mine);
        strict_vector_drop(p->layer[i].seen);
        strict_blocks_drop(p->layer[i].others);
        p->layer[i] = (struct part_layer){0};
    }
}

static void object_clear(struct strict_object *o)
{
    for (struct part *p = o->parts; p;) {
        struct part *next = p->next;
        part_clear(p);
        free(p);
        p = next;
    }
    strict_vector_drop(o->known);
}

static struct part *part_of(struct strict_object *o, int level, int group, bool make)
{
    struct part *p = o->parts;
    while (p && (p->level != level || p->group != group)) {
        p = p->next;
    }
    if (!p && make) {
        p = get(1, sizeof *p);
        p->level = level;
        p->group = group;
        p->home = HOME_NONE;
        p->next = o->parts;
        o->parts = p;
    }
    return p;
}

/* A launch beside this one has released to the object: all of that launch counts as known. What comes back to the
 * first launch by way of the second is not followed. */
static void knows_launch(struct strict_vector **known, const struct strict_object *o)
{
    const struct strict_op_info *info = strict_op_info(strict_op_self(o->grid->op)->op);
    strict_vector_join(known, o->known);
    strict_vector_raise(known, info->stream, info->time, info->stream + 1);
}

struct strict_object *strict_object_of(struct strict_thread *t, uint32_t *number, bool make)
{
    struct strict_chunk *c = *number ? chunks[*number / OBJECTS] : NULL;
    if (c && (c->grid == t->grid || !make)) {
        return &c->object[*number % OBJECTS];
    }
    struct strict_object *before = c ? &c->object[*number % OBJECTS] : NULL;
    *number = 0;
    if (!make) {
        return NULL;
    }
    struct strict_grid *g = t->grid;
    if (!g->chunk || g->chunk->n == OBJECTS) {
        if (n_chunks >= n_chunks_held) {
            n_chunks_held = n_chunks_held ? n_chunks_held * 2 : 256;
            chunks = realloc(chunks, n_chunks_held * sizeof *chunks);
            if (!chunks) {
                abort();
            }
        }
        struct strict_chunk *fresh = get(1, sizeof *fresh);
        fresh->grid = g;
        fresh->next = g->chunk;
        fresh->number = n_chunks++;
        chunks[fresh->number] = g->chunk = fresh;
    }
    struct strict_object *o = &g->chunk->object[g->chunk->n];
    *number = g->chunk->number * OBJECTS + (uint32_t)g->chunk->n++;
    o->grid = g;
    if (before) {
        knows_launch(&o->known, before);
    }
    return o;
}

struct strict_objects *strict_objects_new(void)
{
    return get(1, sizeof(struct strict_objects));
}

/* ---- Release ---- */

static void widen(struct part *p, int n_blocks)
{
    for (int i = 0; p->home >= 0 && i < STRICT_LAYERS; i++) {
        struct part_layer *l = &p->layer[i];
        if (l->mine) {
            strict_vector_join(strict_blocks_own(&l->others, p->home, n_blocks), l->mine);
        }
        strict_vector_drop(l->mine);
        strict_vector_drop(l->seen);
        l->mine = l->seen = NULL;
    }
    p->home = HOME_ALL;
}

void strict_raise_own(
    const struct strict_thread *t, struct strict_vector **v, const struct strict_layer *l)
{
    int place = place_of_thread(t);
    strict_vector_raise(v, place, l->own, length_for(t->grid, place));
    place = place_of_copies(t);
    strict_vector_raise(v, place, l->own_copies, length_for(t->grid, place));
}

static void layer_add(
    struct strict_thread *t, struct part *p, struct part_layer *to, const struct strict_layer *from)
{
    int block = t->block->index;
    strict_blocks_join(&to->others, from->others);
    if (p->home == block) {
        if (from->mine && from->mine != to->seen) {
            strict_vector_join(&to->mine, from->mine);
            strict_vector_drop(to->seen);
            to->seen = strict_vector_keep(from->mine);
        }
        strict_raise_own(t, &to->mine, from);
        return;
    }
    const struct strict_vector *now = to->others ? to->others->of[block] : NULL;
    if ((!from->mine || from->mine == now) && strict_time_of(now, place_of_thread(t)) >= from->own &&
        strict_time_of(now, place_of_copies(t)) >= from->own_copies) {
        return;
    }
    struct strict_vector **v = strict_blocks_own(&to->others, block, t->grid->n_blocks);
    strict_vector_join(v, from->mine);
    strict_raise_own(t, v, from);
}

/* The part is of what this block and perhaps others release. An object of the bench stands at an address that another
 * block's may have had before: what that released is over. */
static void settle(struct part *p, const struct strict_grid *g, int block)
{
    if (p->home >= 0 && p->home != block && p->level == AT_ADDRESS && !g->blocks[p->home]) {
        part_clear(p);
        p->home = block;
    }
    if (p->home == HOME_NONE) {
        p->home = block;
    } else if (p->home != block && p->home != HOME_ALL) {
        widen(p, g->n_blocks);
    }
}

/* What the thread knows by `layer` is known to whoever acquires from the part. */
static void part_add(struct strict_thread *t, struct part *p, int layer)
{
    settle(p, t->grid, t->block->index);
    t->layer[STRICT_KNOWN].own = t->time;
    for (int i = 0; i < STRICT_LAYERS; i++) {
        layer_add(t, p, &p->layer[i], &t->layer[i == STRICT_KNOWN ? layer : i]);
    }
}

static int group_of(const struct strict_thread *t, int level)
{
    return level == STRICT_CTA       ? t->block->index
           : level == STRICT_CLUSTER ? strict_cluster_of(t->grid, t->block->index)
                                     : 0;
}

static int widest(enum strict_scope scope)
{
    return scope < STRICT_GPU ? (int)scope : STRICT_GPU;
}

void strict_object_release(
    struct strict_thread *t, struct strict_object *o, enum strict_scope scope, int layer)
{
    for (int level = STRICT_CTA; level <= widest(scope); level++) {
        if (level != STRICT_CLUSTER || host_volume(t->grid->cluster) > 1) {
            part_add(t, part_of(o, level, group_of(t, level), true), layer);
        }
    }
    strict_vector_join(&o->known, t->known);
    if (layer == STRICT_KNOWN) {
        t->time++;
    }
}

/* ---- Acquire ---- */

/* Another block's vector becomes known; nothing is copied where it is already. */
static void learn(struct strict_blocks **into, int block, struct strict_vector *v, int n_blocks)
{
    struct strict_vector *now = *into ? (*into)->of[block] : NULL;
    if (!v || v == now) {
        return;
    }
    struct strict_vector *sum = strict_vector_keep(now);
    strict_vector_join(&sum, v);
    if (sum != now) {
        struct strict_vector **at = strict_blocks_own(into, block, n_blocks);
        strict_vector_drop(*at);
        *at = strict_vector_keep(sum);
    }
    strict_vector_drop(sum);
}

static void layer_get(const struct strict_thread *t, struct strict_layer *to, const struct part *p,
    const struct part_layer *from)
{
    int block = t->block->index;
    if (p->home == block) {
        strict_vector_join(&to->mine, from->mine);
    } else {
        strict_vector_join(&to->mine, from->others ? from->others->of[block] : NULL);
    }
    strict_blocks_join(&to->others, from->others);
    if (p->home >= 0 && p->home != block) {
        learn(&to->others, p->home, from->mine, t->grid->n_blocks);
    }
}

/* `later`: what was known there is only heard of here; what was fenced there is not. */
static void part_get(struct strict_thread *t, const struct part *p, bool later)
{
    for (int i = 0; i < STRICT_LAYERS; i++) {
        if (!later || i == STRICT_KNOWN || i == STRICT_PROXY || i == STRICT_HEARD) {
            layer_get(t, &t->layer[later && i == STRICT_KNOWN ? STRICT_HEARD : i], p, &p->layer[i]);
        }
    }
}

void strict_same_time(struct strict_thread *t)
{
    const struct strict_vector *v = t->layer[STRICT_KNOWN].mine;
    int first = t->index - (int)t->lane;
    for (int i = first; v && i < first + HOST_WARP && i < v->n; i++) {
        t->time = t->time > v->at[i] ? t->time : v->at[i] + 1;
    }
}

void strict_object_acquire(
    struct strict_thread *t, struct strict_object *o, enum strict_scope scope, bool later)
{
    const struct strict_vector *before = t->layer[STRICT_KNOWN].mine;
    if (o->grid != t->grid) {
        if (scope >= STRICT_GPU) {
            knows_launch(&t->known, o);
        }
        return;
    }
    for (int level = STRICT_CTA; level <= widest(scope); level++) {
        const struct part *p = part_of(o, level, group_of(t, level), false);
        if (p) {
            part_get(t, p, later);
            strict_vector_join(&t->known, o->known);
        }
    }
    if (t->layer[STRICT_KNOWN].mine != before) {
        strict_same_time(t);
    }
}

void strict_release_to(const void *object)
{
    struct strict_thread *t = strict_now;
    if (t) {
        struct strict_object *o = object_at(t->grid, object);
        part_add(t, part_of(o, AT_ADDRESS, 0, true), STRICT_KNOWN);
        strict_vector_join(&o->known, t->known);
        t->time++;
    }
}

void strict_acquire_from(const void *object)
{
    struct strict_thread *t = strict_now;
    if (t) {
        struct strict_object *o = object_at(t->grid, object);
        const struct part *p = part_of(o, AT_ADDRESS, 0, false);
        if (p) {
            const struct strict_vector *before = t->layer[STRICT_KNOWN].mine;
            part_get(t, p, false);
            strict_vector_join(&t->known, o->known);
            if (t->layer[STRICT_KNOWN].mine != before) {
                strict_same_time(t);
            }
        }
    }
}

void strict_object_copied(struct strict_block *b, const void *told, int place, uint32_t time)
{
    struct strict_thread *t = &b->threads[0];
    struct strict_grid *g = t->grid;
    struct part *p = part_of(object_at(g, told), AT_ADDRESS, 0, true);
    settle(p, g, b->index);
    struct part_layer *l = &p->layer[STRICT_KNOWN];
    strict_vector_raise(
        p->home == b->index ? &l->mine : strict_blocks_own(&l->others, b->index, g->n_blocks), place,
        time, length_for(g, place));
}

/* ---- The end ---- */

void strict_objects_drop(struct strict_grid *g)
{
    for (size_t i = 0; i < g->objects->held; i++) {
        object_clear(&g->objects->object[i]);
    }
    free(g->objects->key);
    free(g->objects->object);
    free(g->objects);
    for (struct strict_chunk *c = g->chunk; c;) {
        struct strict_chunk *next = c->next;
        for (int i = 0; i < c->n; i++) {
            object_clear(&c->object[i]);
        }
        chunks[c->number] = NULL;
        free(c);
        c = next;
    }
}
