/* SPDX-License-Identifier: Apache-2.0
 * What a thread of a kernel asks of the engine (scheduler.c): who it is, barriers with others, shared memory, and
 * work that goes on by itself. Instructions (include/device_functions.h, the host's bodies in
 * src/cuda/cuda_ptx*.cuh) are written with these; kernels see none of it.
 *
 * Threads are fibers of one thread of the host. One runs until it waits in one of the calls below, so what stands
 * between two calls is never cut in half. */
#ifndef TESTS_CUDA_HOST_THREAD_H
#define TESTS_CUDA_HOST_THREAD_H

#include "tests/cuda/host/host.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Who ---- */

enum { HOST_KEPT_COPIES, HOST_KEPT_BARRIERS, HOST_KEPT_PRODUCTS, HOST_KEPT_STORES, HOST_KEPT };

struct host_thread {
    struct host_dim thread_id, block_id, block_dim, grid_dim;
    int thread, lane, warp; /* in its block: thread = warp * 32 + lane */
    int block;              /* in the grid, x the fastest */
    int which_cluster;      /* in the grid */
    int rank, cluster;      /* the block's place in its cluster, and blocks of a cluster */
    /* What instructions keep for this thread (copies under way ...), by HOST_KEPT_...: NULL when the thread begins;
     * the engine gives each to free() when it has ended. */
    void *kept[HOST_KEPT];
    /* It has read words that others wrote, and what stood before those is known behind a fence; it knows of what others
     * wrote, and its bulk copies do not see that yet. */
    bool heard_words, heard;
    bool reads_stage; /* it has read what bulk copies fill, with no fence behind it yet */
};

/* The one that runs; NULL: no kernel does, the host's own code. */
extern struct host_thread *host_now;

/* ---- Time ---- */

/* Lets others run. Every loop that waits for memory calls it each time round. */
void host_yield(void);
/* Before a load of a word, which may stand in a loop that waits: lets others run now and then, and a thread that asked
 * for it before, until it or another word of the loop has changed. */
void host_ask(const void *at, size_t bytes);
/* The same of one that was just looked at in vain; `name` as below. */
void host_rest_until_changed(const void *at, size_t bytes, const char *name);
/* Returns when ready(what) holds: the engine asks whenever others have run. `name` stands in the finding if the
 * launch is stuck. ready() changes nothing and makes no call of the engine's. */
void host_wait_until(bool (*ready)(const void *what), const void *what, const char *name);
/* Clocks since the launch began: grows with what ran. */
uint64_t host_clock(void);
/* A number from the launch's seed, for whatever a GPU leaves open; below `n`. */
uint32_t host_chance(uint32_t n);

/* ---- Barriers ---- */

/* bar.sync and bar.red of barrier `id` (0 to 15) by `n` threads of the block; how many of them said yes. */
int host_block_barrier(int id, int n, bool yes);
/* barrier.cluster.arrive (release) and .wait (acquire). */
void host_cluster_arrive(void);
void host_cluster_wait(void);

/* The lanes of `mask`, all of which come here with the same mask, `what` and sizes: each brings `bytes_in` bytes and
 * leaves with `bytes_out`. `all`, called once, makes them: in + lane * bytes_in of each lane of the mask (others are
 * 0), out + lane * bytes_out. It makes no call of the engine's but host_finding. Lanes that come to different
 * instructions, or with a mask that lacks them, are a finding. */
typedef void host_warp_body(uint32_t mask, const void *in, void *out, const void *same);
/* `same`: what does not differ between lanes, as the last that comes has it; NULL: nothing. */
void host_warp_do(const char *what, uint32_t mask, host_warp_body *all, const void *in, size_t bytes_in,
    void *out, size_t bytes_out, const void *same);
enum { HOST_WARP_BYTES = 64 }; /* the most that bytes_in and bytes_out may be */

/* Four warps in a row from a multiple of four, all their threads: setmaxnreg and wgmma are theirs. */
void host_team_barrier(const char *what);

/* ---- Shared memory ---- */

/* The block's dynamic shared memory, at a multiple of 1,024. */
void *host_dynamic_shared(void);
/* An address of shared memory, dynamic or static, as the 32 bits that instructions take; a finding if it is none. */
uint32_t host_shared_address(const void *at);
/* The same place in another block of the cluster (mapa). Bits from HOST_RANK_SHIFT on say which block's; 0: the
 * thread's own. */
enum { HOST_RANK_SHIFT = 24 };
uint32_t host_shared_map(uint32_t address, int rank);
/* Where that lies now. It may move when others run: resolve it again after each wait. `bytes` are checked to lie in
 * the block's shared memory. */
void *host_shared_pointer(uint32_t address, size_t bytes);
/* No thread of the block that has this memory goes on: on a GPU it may be another block's by now. */
bool host_shared_is_left(uint32_t address);
/* A pointer of the running thread, as it is to the runner: shared memory of its own block or global memory. */
bool host_is_shared(const void *at);

/* ---- Work that goes on by itself (copies in the background) ---- */

typedef void host_later_body(void *data);
/* Calls body(data) some time later, as the seed says, at the latest when the launch has nothing else to do. `data` is
 * copied. Returns its number. During the call host_now is the thread that asked. */
uint64_t host_later(host_later_body *body, const void *data, size_t bytes);
/* Calls it now, if that has not been. */
void host_later_now(uint64_t number);
enum { HOST_LATER_BYTES = 96 };

/* ---- Memory order ---- */

/* A relaxed store of 4, 8 or 16 bytes: others see it at a time that the seed says, at the latest after
 * host_stores_seen; stores to different places in any order. The thread's own host_load sees it at once. */
void host_store_late(void *at, const void *value, size_t bytes);
void host_load(const void *at, void *value, size_t bytes);
/* All stores of this thread are seen by everybody: fences, releases, and all barriers. */
void host_stores_seen(void);

/* ---- Dependent launches ---- */

void host_wait_for_earlier(void); /* griddepcontrol.wait */
void host_let_next_begin(void);   /* griddepcontrol.launch_dependents */

/* The kernel gives up: __trap, or a finding that it cannot go on from. */
void host_trap(const char *why) __attribute__((noreturn));

#ifdef __cplusplus
}
#endif

#endif
