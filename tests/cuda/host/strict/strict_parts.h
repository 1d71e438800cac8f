/* SPDX-License-Identifier: Apache-2.0
 * What the parts of the strict checker share.
 *
 *   strict.c         accesses and copies: is this one ordered behind those that touched its bytes before?
 *   strict_memory.c  which addresses are device memory, and a cell of knowledge for each 4 bytes
 *   strict_object.c  what threads release to a place and acquire from it
 *   strict_order.c   threads of a launch: fences, barriers of a warp
 *   strict_clock.c   the vectors of times that threads know of each other
 *   strict_ops.c     streams: which operation comes after which
 *   strict_report.c  words for what was found
 *   strict_tsan.c    the functions that instrumented code calls
 *
 * Who acts is told by a unit, a lane and a time. A unit is up to 32 lanes that share a number: a warp, the copies in
 * the background of a warp (a lane for each thread), the bulk copies of a block (a lane for each of 32 under way), or
 * an operation of a stream as a whole. Units are numbered through all operations and never used twice, so a number
 * alone tells the launch. A lane's time grows whenever it tells others what it did; "A knows lane L to time t" means
 * that all that L did while its time was at most t happened before. A race is an access whose bytes were last touched
 * by a lane at a time that the accessing thread does not know. Where this file has no room to remember all, it
 * forgets accesses: races may be missed, none is invented. */
#ifndef TESTS_CUDA_HOST_STRICT_STRICT_PARTS_H
#define TESTS_CUDA_HOST_STRICT_STRICT_PARTS_H

/* These files are compiled into a bench that does not watch, too. */
#ifndef HOST_STRICT
#define HOST_STRICT
#endif
#include "tests/cuda/host/host.h"

/* ---- Clocks (strict_clock.c) ---- */

/* Times, counted by references. Shared ones are never changed: who has the only reference may. */
struct strict_vector {
    int refs, n;
    uint64_t serial; /* of these contents: differs from that of any other */
    uint32_t at[];
};
/* The lanes of a launch, a vector for each block; NULL: nothing is known of the block. */
struct strict_blocks {
    int refs, n;
    struct strict_vector *of[];
};

struct strict_vector *strict_vector_keep(struct strict_vector *v);
void strict_vector_drop(struct strict_vector *v);
/* *into learns all that `from` knows. NULL knows nothing. */
void strict_vector_join(struct strict_vector **into, struct strict_vector *from);
/* *into knows place i to `time` at least; it is made `n` long if it is shorter than i needs. */
void strict_vector_raise(struct strict_vector **into, int i, uint32_t time, int n);
struct strict_blocks *strict_blocks_keep(struct strict_blocks *b);
void strict_blocks_drop(struct strict_blocks *b);
void strict_blocks_join(struct strict_blocks **into, struct strict_blocks *from);
/* What *into knows of block `i` of `n`, to be changed: it belongs to *into alone from here on. */
struct strict_vector **strict_blocks_own(struct strict_blocks **into, int i, int n);
/* Results of joins are kept for the next who joins the same; this lets them go. */
void strict_joins_forget(void);

static inline uint32_t strict_time_of(const struct strict_vector *v, int i)
{
    return v && i < v->n ? v->at[i] : 0;
}

/* ---- Threads (strict_order.c, strict_object.c) ---- */

/* What a thread hands on to others is of four layers. */
enum {
    STRICT_KNOWN,  /* happened before */
    STRICT_PROXY,  /* ... and is seen by bulk copies: behind a proxy fence */
    STRICT_FENCED, /* ... and is handed on by relaxed writes: behind a fence for more than the block */
    STRICT_FENCED_NEAR, /* the same of a fence for the block */
    STRICT_HEARD, /* learnt from relaxed reads: happened before what stands behind a fence that follows */
    STRICT_LAYERS
};

struct strict_layer {
    struct strict_vector *mine;   /* of the lanes of the thread's own block */
    struct strict_blocks *others; /* of other blocks; what stands at its own is not used */
    uint32_t own, own_copies;     /* of itself, where `mine` is behind */
};

struct strict_thread {
    struct strict_grid *grid;    /* NULL: an operation by itself */
    struct strict_block *block;  /* NULL: likewise */
    uint32_t unit, lane, lanes;  /* lanes: its bit */
    uint32_t time, copies;       /* copies: begun by it, those of groups */
    uint32_t unit_of_copies;     /* of groups */
    int index;                   /* in its block */
    int op;                      /* strict_op_info */
    struct strict_vector *known; /* of streams: operations that ended before */
    struct strict_layer layer[STRICT_LAYERS];
};

enum { STRICT_BULK = 32 };

struct strict_block {
    int index;
    uint32_t unit;                 /* the first of its units */
    struct strict_thread *threads; /* grid->n_threads */
    uint32_t *left;                /* of each warp: lanes whose __syncwarp has been done for them */
    uint32_t bulk_under_way, bulk_next; /* lanes of bulk copies: a bit each; where to look next */
    uint32_t bulk_time[STRICT_BULK];
};

struct strict_objects; /* of a launch, by address */
struct strict_objects *strict_objects_new(void);
void strict_objects_drop(struct strict_grid *grid);

struct strict_grid {
    struct strict_op *op;
    const char *name;
    uint32_t unit; /* of block 0; that of the operation itself stands elsewhere */
    uint32_t n_units;
    int n_blocks, n_threads, n_warps;
    struct host_dim blocks_along, cluster;
    int block_units, short_lanes, all_lanes; /* of a block; short: without copies of groups */
    struct strict_block **blocks;            /* NULL: has not begun */
    struct strict_objects *objects;
    struct strict_copy *copies;  /* under way, or not seen yet */
    struct strict_vector *known; /* of streams, when it began */
    struct strict_chunk *chunk;  /* where the next object of a cell goes */
};

/* Which of the launch's clusters a block is of: they may lie along any direction of the grid. */
static inline int strict_cluster_of(const struct strict_grid *g, int block)
{
    const struct host_dim all = g->blocks_along, c = g->cluster;
    const unsigned i = (unsigned)block, x = i % all.x, y = i / all.x % all.y, z = i / (all.x * all.y);
    return (int)(x / c.x + all.x / c.x * (y / c.y + all.y / c.y * (z / c.z)));
}

/* A block's units: its warps, one of bulk copies, and one for the copies of groups of each warp. */
extern struct strict_thread *strict_now; /* NULL: nobody */

/* The clocks that were released to a place: by its address, or to a cell of memory by number. */
struct strict_object;
/* `later`: by a relaxed read, which needs a fence behind it. */
void strict_object_release(
    struct strict_thread *t, struct strict_object *o, enum strict_scope scope, int layer);
void strict_object_acquire(
    struct strict_thread *t, struct strict_object *o, enum strict_scope scope, bool later);
/* The object of a cell; `make`: there will be one. A number that is of no use any more becomes 0. */
struct strict_object *strict_object_of(struct strict_thread *t, uint32_t *number, bool make);
/* The thread's own place in `v` is as `l` has it. */
void strict_raise_own(
    const struct strict_thread *t, struct strict_vector **v, const struct strict_layer *l);
/* Lanes of a warp that waited for each other go on at the same time: so their accesses make one entry. */
void strict_same_time(struct strict_thread *t);
/* What a copy has done is told to whoever acquires from `told`. */
void strict_object_copied(struct strict_block *b, const void *told, int place, uint32_t time);

/* ---- Operations (strict_ops.c) ---- */

struct strict_op_info {
    const char *name;
    int stream;
    uint32_t time;
    int n_threads, block_units; /* of a launch; 0: none */
    uint32_t unit;              /* of its block 0 */
};

const struct strict_op_info *strict_op_info(int op);
int strict_op_of(uint32_t unit); /* -1: none */
/* Numbers for the units of a launch. */
uint32_t strict_units(struct strict_op *op, uint32_t n, int n_threads, int block_units);
/* The operation as who reads and writes. */
struct strict_thread *strict_op_self(struct strict_op *op);
/* Did the operation of this unit end before what `known` knows; `op` knows itself. */
bool strict_op_before(const struct strict_vector *known, int op, uint32_t unit);

/* ---- Memory (strict_memory.c) ---- */

enum {
    STRICT_PAGE = 4096,
    STRICT_CELL = 4,
    STRICT_LINE = 64,
    STRICT_CELLS = STRICT_PAGE / STRICT_CELL
};

/* Who touched a cell last. Entries of lanes that touched the same bytes at the same time are one. */
struct strict_entry {
    uint32_t unit;  /* 0: nobody */
    uint32_t when;  /* strict_when */
    uint32_t lanes; /* which of the unit, at this time */
    uint32_t site;  /* the program's address, from its beginning */
};

/* Time, which bytes of the cell (a bit each), for whom (atomic accesses only), atomic or plain. */
static inline uint32_t strict_when(uint32_t time, uint32_t bytes, enum strict_scope scope, bool atomic)
{
    return time << 7 | bytes << 3 | (atomic ? (uint32_t)scope << 1 | 1 : 0);
}

static inline uint32_t strict_when_time(uint32_t when)
{
    return when >> 7;
}

enum { STRICT_WHEN_BYTES = 15 << 3 }; /* the bytes in it */

struct strict_cell {
    struct strict_entry write, read;
    uint8_t written;    /* bytes that have ever been */
    uint8_t read_bytes; /* of all that stands in `read`; 0: nothing does */
    uint8_t many;       /* read.unit is the number of a strict_many in place of a unit */
    uint32_t object;    /* of releases; 0: none */
};

/* Reads of one cell that are not ordered among each other. */
enum { STRICT_MANY = 8 };
struct strict_many {
    struct strict_entry read[STRICT_MANY];
};
struct strict_many *strict_many_at(uint32_t number);
uint32_t strict_many_new(void);
void strict_many_free(uint32_t number);

struct strict_page {
    struct strict_cell *cells;  /* NULL: the page as a whole was written by `writer`, or never */
    const uint8_t *valid;       /* a bit for each byte that may be touched; NULL: all */
    uint32_t writer, reader[2]; /* operations, where there are no cells */
    uint64_t lines[2];          /* that each has read: bits */
    uint8_t kind, written, allowed;
};

/* The page of an address; NULL: no device memory. */
struct strict_page *strict_page_of(const void *at);
extern struct strict_page strict_page_allowed; /* the page of addresses that are let be */
struct strict_cell *strict_page_cells(struct strict_page *p);
/* Reads of these bytes are forgotten: they are overwritten. */
void strict_cell_unread(struct strict_cell *c, uint8_t bytes);
void strict_page_fold(struct strict_page *p); /* drops its cells */
/* The area of an address for reports: its label and what stands before it; false: none. */
bool strict_label_of(const void *at, const char **label, size_t *offset);
/* Cells of all pages forget who touched them: numbers of units begin again. */
void strict_memory_forget(void);

static inline bool strict_bytes_valid(const struct strict_page *p, unsigned offset, unsigned bytes)
{
    if (!p->valid) {
        return true;
    }
    for (unsigned i = offset; i < offset + bytes; i++) {
        if (!(p->valid[i / 8] >> i % 8 & 1)) {
            return false;
        }
    }
    return true;
}

/* ---- Accesses (strict.c) ---- */

enum strict_act { STRICT_READ = 1, STRICT_WRITE = 2, STRICT_UPDATE = 3 };
void strict_access(struct strict_thread *t, const void *at, size_t bytes, enum strict_act act,
    enum strict_order order, enum strict_scope scope, const void *site);
/* Copies of a launch that ends are given up. */
void strict_copies_drop(struct strict_grid *grid);
/* Is the entry, in all lanes but the thread's own, known to it? */
bool strict_known(const struct strict_thread *t, const struct strict_entry *e, uint32_t lanes);

/* ---- Findings (strict_report.c) ---- */

uint32_t strict_site(const void *code);
void strict_found_race(const struct strict_thread *t, const struct strict_entry *now,
    enum strict_act act, const void *at, size_t bytes, const struct strict_entry *before,
    bool was_write, const char *why);
void strict_found(const struct strict_thread *t, uint32_t site, const void *at, size_t bytes,
    enum strict_act act, const char *why);
const char *strict_intern(const char *name); /* a copy that stays */

#endif
