/* SPDX-License-Identifier: Apache-2.0
 * Strict: vectors of times. Threads that know the same share one vector, so most joins are a comparison of pointers.
 * */
#include "tests/cuda/host/strict/strict_parts.h"

#include <stdlib.h>
#include <string.h>

enum { N_JOINS = 1024 };

/* The last joins: a, b and what came out. Each holds its references, so no address here is another vector's now. */
struct join {
    struct strict_vector *a, *b, *sum;
};
struct blocks_join {
    struct strict_blocks *a, *b, *sum;
};
static struct join joins[N_JOINS];
static struct blocks_join blocks_joins[N_JOINS];
static uint64_t last_serial;

static unsigned place_of(const void *a, const void *b)
{
    uint64_t h = ((uintptr_t)a >> 4) * 0x9e3779b97f4a7c15u ^ ((uintptr_t)b >> 4) * 0xc2b2ae3d27d4eb4fu;
    return (unsigned)(h >> 40) % N_JOINS;
}

static void *get(size_t bytes)
{
    void *p = malloc(bytes);
    if (!p) {
        abort();
    }
    return p;
}

/* ---- Vectors ---- */

static struct strict_vector *vector_new(int n, const struct strict_vector *from)
{
    struct strict_vector *v = get(sizeof *v + (size_t)n * sizeof v->at[0]);
    v->refs = 1;
    v->n = n;
    v->serial = ++last_serial;
    int k = from ? from->n < n ? from->n : n : 0;
    memcpy(v->at, from ? from->at : v->at, (size_t)k * sizeof v->at[0]);
    memset(v->at + k, 0, (size_t)(n - k) * sizeof v->at[0]);
    return v;
}

struct strict_vector *strict_vector_keep(struct strict_vector *v)
{
    if (v) {
        v->refs++;
    }
    return v;
}

void strict_vector_drop(struct strict_vector *v)
{
    if (v && --v->refs == 0) {
        free(v);
    }
}

/* *v becomes one that nobody else has, of at least n places. */
static void vector_own(struct strict_vector **v, int n)
{
    if (!*v || (*v)->refs > 1 || (*v)->n < n) {
        struct strict_vector *fresh = vector_new(*v && (*v)->n > n ? (*v)->n : n, *v);
        strict_vector_drop(*v);
        *v = fresh;
    } else {
        (*v)->serial = ++last_serial;
    }
}

/* Times are below 2^25. */
typedef int four __attribute__((vector_size(16)));

/* Bit 0: a has something that b lacks; bit 1: the other way round. */
static int compare(const struct strict_vector *a, const struct strict_vector *b)
{
    int n = a->n < b->n ? a->n : b->n, whole = n / 4 * 4;
    four above = {0}, below = {0};
    for (int i = 0; i < whole; i += 4) {
        four x, y;
        memcpy(&x, a->at + i, sizeof x);
        memcpy(&y, b->at + i, sizeof y);
        above |= x > y;
        below |= x < y;
    }
    uint32_t more = (above[0] | above[1] | above[2] | above[3]) != 0;
    uint32_t less = (below[0] | below[1] | below[2] | below[3]) != 0;
    for (int i = whole; i < n; i++) {
        more |= a->at[i] > b->at[i];
        less |= a->at[i] < b->at[i];
    }
    for (int i = n; i < a->n; i++) {
        more |= a->at[i] != 0;
    }
    for (int i = n; i < b->n; i++) {
        less |= b->at[i] != 0;
    }
    return (int)(more | less << 1);
}

static void vector_set(struct strict_vector **into, struct strict_vector *value)
{
    strict_vector_keep(value);
    strict_vector_drop(*into);
    *into = value;
}

void strict_vector_join(struct strict_vector **into, struct strict_vector *from)
{
    struct strict_vector *a = *into;
    if (!from || a == from) {
        return;
    }
    if (!a) {
        *into = strict_vector_keep(from);
        return;
    }
    struct join *last = &joins[place_of(a, from)];
    if (last->a == a && last->b == from) {
        vector_set(into, last->sum);
        return;
    }
    int which = compare(a, from);
    if (!(which & 2)) {
        return;
    }
    bool shared = a->refs > 1 && from->refs > 1; /* others will ask the same */
    strict_vector_keep(a);
    if (!(which & 1)) {
        vector_set(into, from);
        if (!shared) {
            strict_vector_drop(a);
            return;
        }
    } else {
        vector_own(into, a->n > from->n ? a->n : from->n);
        for (int i = 0; i < from->n; i++) {
            uint32_t *at = &(*into)->at[i];
            *at = *at > from->at[i] ? *at : from->at[i];
        }
    }
    struct join old = *last;
    *last = (struct join){a, strict_vector_keep(from), strict_vector_keep(*into)};
    strict_vector_drop(old.a);
    strict_vector_drop(old.b);
    strict_vector_drop(old.sum);
}

void strict_vector_raise(struct strict_vector **into, int i, uint32_t time, int n)
{
    if (strict_time_of(*into, i) < time) {
        vector_own(into, *into && i < (*into)->n ? 0 : n);
        (*into)->at[i] = time;
    }
}

/* ---- Blocks ---- */

struct strict_blocks *strict_blocks_keep(struct strict_blocks *b)
{
    if (b) {
        b->refs++;
    }
    return b;
}

void strict_blocks_drop(struct strict_blocks *b)
{
    if (b && --b->refs == 0) {
        for (int i = 0; i < b->n; i++) {
            strict_vector_drop(b->of[i]);
        }
        free(b);
    }
}

static struct strict_blocks *blocks_copy(const struct strict_blocks *from, int n)
{
    struct strict_blocks *b = get(sizeof *b + (size_t)n * sizeof b->of[0]);
    b->refs = 1;
    b->n = n;
    for (int i = 0; i < n; i++) {
        b->of[i] = from ? strict_vector_keep(from->of[i]) : NULL;
    }
    return b;
}

struct strict_vector **strict_blocks_own(struct strict_blocks **into, int i, int n)
{
    if (!*into || (*into)->refs > 1) {
        struct strict_blocks *fresh = blocks_copy(*into, n);
        strict_blocks_drop(*into);
        *into = fresh;
    }
    return &(*into)->of[i];
}

static void blocks_set(struct strict_blocks **into, struct strict_blocks *value)
{
    strict_blocks_keep(value);
    strict_blocks_drop(*into);
    *into = value;
}

void strict_blocks_join(struct strict_blocks **into, struct strict_blocks *from)
{
    struct strict_blocks *a = *into;
    if (!from || a == from) {
        return;
    }
    if (!a) {
        *into = strict_blocks_keep(from);
        return;
    }
    struct blocks_join *last = &blocks_joins[place_of(a, from)];
    if (last->a == a && last->b == from) {
        blocks_set(into, last->sum);
        return;
    }
    struct strict_blocks *sum = blocks_copy(a, a->n);
    bool is_a = true, is_from = true;
    for (int i = 0; i < a->n; i++) {
        strict_vector_join(&sum->of[i], from->of[i]);
        is_a = is_a && sum->of[i] == a->of[i];
        is_from = is_from && sum->of[i] == from->of[i];
    }
    if (is_a || is_from) {
        strict_blocks_drop(sum);
        sum = strict_blocks_keep(is_a ? a : from);
    }
    struct blocks_join old = *last;
    *last = (struct blocks_join){a, strict_blocks_keep(from), strict_blocks_keep(sum)};
    *into = sum; /* the reference to a is the table's from here on */
    strict_blocks_drop(old.a);
    strict_blocks_drop(old.b);
    strict_blocks_drop(old.sum);
}

void strict_joins_forget(void)
{
    for (int i = 0; i < N_JOINS; i++) {
        strict_vector_drop(joins[i].a);
        strict_vector_drop(joins[i].b);
        strict_vector_drop(joins[i].sum);
        strict_blocks_drop(blocks_joins[i].a);
        strict_blocks_drop(blocks_joins[i].b);
        strict_blocks_drop(blocks_joins[i].sum);
        joins[i] = (struct join){0};
        blocks_joins[i] = (struct blocks_join){0};
    }
}
