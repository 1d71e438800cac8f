/* SPDX-License-Identifier: Apache-2.0
 * What the files of the engine share: a launch under way, its blocks and their threads. */
#ifndef TESTS_CUDA_HOST_SCHEDULER_H
#define TESTS_CUDA_HOST_SCHEDULER_H

#include "tests/cuda/host/fiber.h"
#include "tests/cuda/host/thread.h"

enum {
    FIBER_STACK = 64 << 10,
    MOST_CLUSTER = 16,   /* blocks */
    N_BARRIERS = 16,     /* of a block */
    N_LATE_STORES = 8,   /* of a thread */
    N_WARP_MEETINGS = 8, /* of a warp; their masks may overlap */
    NOT_SLOW = -1
};

enum fiber_state {
    FIBER_RUNS,
    FIBER_YIELDS, /* runs too, but has done nothing since it last ran */
    FIBER_RESTS,  /* the same until what it asks for changes (asks.c) */
    FIBER_MEETS,  /* until who comes last wakes it */
    FIBER_WAITS,  /* until ready(what) */
    FIBER_ENDED
};

/* A relaxed store that others do not see yet. */
struct late_store {
    void *at;
    size_t bytes;
    unsigned char value[16];
};

struct fiber {
    struct host_thread thread; /* first: host_now points to it */
    struct block *of;
    fiber_place place;
    void *stack;
    unsigned char *state;  /* enum fiber_state, in the block's states */
    const char *waits_for; /* what a finding calls it */
    bool (*ready)(const void *what);
    const void *what;
    int barrier;       /* at which it waits; -1: none */
    int cluster_phase; /* of the cluster's barrier that it arrived in */
    int n_late;
    struct late_store late[N_LATE_STORES];
};

/* Lanes of a warp on their way through host_warp_do. */
struct warp_meeting {
    uint32_t mask, here; /* mask 0: free */
    const char *what;
    size_t bytes_in, bytes_out;
    const void *in[HOST_WARP];
    void *out[HOST_WARP];
};

struct warp {
    struct warp_meeting barriers[N_WARP_MEETINGS];
};

struct barrier {
    int n, here, yes, result, phase;
};

/* Four warps, for instructions of all of them. */
struct team {
    int here, phase;
};

struct cluster {
    int here, phase; /* threads that have arrived at its barrier */
    struct block *blocks[MOST_CLUSTER];
};

struct block {
    struct run *of;
    int index, rank;
    struct host_dim id;
    struct cluster *cluster;
    struct fiber *fibers;  /* of->n_threads */
    unsigned char *states; /* theirs, beside each other: they are looked at in every turn */
    struct asks *asks;     /* theirs; NULL: nobody has asked for a word */
    struct warp *warps;
    struct barrier barriers[N_BARRIERS];
    struct team *teams;
    unsigned char *dynamic; /* dynamic shared memory, at a multiple of 1,024 */
    unsigned char *image;   /* static shared memory while another block's stands in its place */
    int n_left;             /* threads that have not ended */
    int n_late;             /* of them that have stores nobody sees yet */
    int n_later;            /* pieces of work that go on by themselves */
    bool lets;              /* the next launch may begin */
    uint64_t clock;
    int slow, slow_turns; /* the warp that falls behind, or NOT_SLOW; turns until another one does */
    bool stands;          /* that warp, also while its block only asks */
};

/* A variable of static shared memory: where the kernel's code finds it, and its place in a block's image. */
struct shared_variable {
    unsigned char *at;
    size_t bytes, place;
};

/* What the program's own symbols tell of a kernel (symbols.c). */
struct kernel_facts {
    const void *code;
    char *name;
    struct shared_variable *shared;
    int n_shared;
    size_t shared_bytes;
    bool in_pairs;     /* its blocks go in clusters of two, where there are clusters */
    bool needs_groups; /* it has a body only in code for exactly one kind (90a) */
    bool needs_moves;  /* only in that and in code for a family (120f) */
};
const struct kernel_facts *kernel_facts(const void *code);

struct later {
    uint64_t number; /* 0: free */
    int at;          /* in `live` */
    struct fiber *by;
    host_later_body *body;
    _Alignas(16) unsigned char data[HOST_LATER_BYTES];
};

struct run {
    struct host_launch launch;
    const struct kernel_facts *facts;
    void *args;
    int n_blocks, n_threads, n_warps, cluster;
    int n_begun, n_ended, n_let; /* blocks */
    int *order;                  /* in which clusters begin */
    struct block **resident;     /* those that run now */
    int n_resident, most_resident;
    struct cluster *clusters;
    struct later *laters;
    int *live; /* numbers of all slots of `laters`, those that are taken first */
    int n_laters, most_laters;
    uint64_t later_number;
    bool earlier_done, failed;
    bool all_let, pauses; /* all blocks let the next launch begin; and it has its chance now */
    uint64_t random, extra_clock;
    bool progress;     /* since it was last looked at: anything but asking again */
    bool news;         /* likewise: somebody asked for what he did not know, or let time go by */
    int idle, in_vain; /* rounds without progress, without news */
    int next;          /* resident block that runs next */
    struct strict_grid *grid;
};

/* The fiber that runs, and where the scheduler goes on when it waits. */
extern struct fiber *fiber_now;
static inline struct run *run_now(void)
{
    return fiber_now->of->of;
}
/* Back to the scheduler; `state` says when it goes on. */
void fiber_leave(enum fiber_state state);
void fiber_wake(struct fiber *f);
uint32_t run_chance(struct run *r, uint32_t n);

/* Stacks and shared memory of blocks (block_memory.c). */
struct block *block_new(struct run *r, struct cluster *cluster, int rank);
void block_free(struct block *b);
/* Brings the block's static shared memory to where the code finds it. */
void block_stand(struct block *b);
void block_forget_standing(void);

/* Whether a word that a thread which rests asks for has changed (asks.c). */
bool ask_has_news(const struct fiber *f);
/* Where the word is that it asks for, to standard error, and what that is. The thread is the one that runs. */
void ask_tell(const struct fiber *f);

/* Stores that nobody sees yet (late.c). */
void block_stores(struct block *b, bool all);
/* Work that goes on by itself: some of it, or all. Whether there was any. */
bool run_laters(struct run *r, bool all);

#endif
