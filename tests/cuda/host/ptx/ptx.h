/* SPDX-License-Identifier: Apache-2.0
 * What instructions do on the host: the bodies that include/cuda_host_*.h (instructions without a name in CUDA C) and
 * include/device_functions.h (those with one) call. They are C and know nothing of the compiler's instrumentation:
 * what they do with memory they tell strict.c themselves. */
#ifndef TESTS_CUDA_HOST_PTX_PTX_H
#define TESTS_CUDA_HOST_PTX_PTX_H

#include "tests/cuda/host/thread.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- ptx_plain.c ---- */

/* Which thread runs. The compiler may keep it: it is the same for all that a kernel's code does. */
enum host_id {
    HOST_THREAD_X,
    HOST_THREAD_Y,
    HOST_THREAD_Z,
    HOST_BLOCK_X,
    HOST_BLOCK_Y,
    HOST_BLOCK_Z,
    HOST_THREADS_X,
    HOST_THREADS_Y,
    HOST_THREADS_Z,
    HOST_BLOCKS_X,
    HOST_BLOCKS_Y,
    HOST_BLOCKS_Z,
    HOST_LANE
};
unsigned host_id(enum host_id which) __attribute__((const));
/* A finding that names the instruction, where the posed card does not have it; then the kernel ends. */
void host_needs(bool has, const char *instruction);
/* Memory that is read or written as a whole, by plain instructions with a hint. */
void host_read(const void *at, void *value, size_t bytes, const char *what);
void host_prefetch(const void *at);
/* elect.sync: true in one lane, the same one each time. */
bool host_elect(void);
uint32_t host_pack_bf16(float low, float high);
float host_reciprocal(float x);
float host_log2(float x);
float host_divide(float a, float b);
/* setmaxnreg; nothing in code that is not of one kind of card. */
void host_registers(int n, bool more);

/* ---- ptx_warp.c: all lanes of a mask ---- */

/* Shuffles of 4 or 8 bytes: each lane gets what lane `from` has; a finding where that is not of the mask. */
void host_shuffle(uint32_t mask, void *value, size_t bytes, int from);
void host_warp_sync(uint32_t mask);
uint32_t host_ballot(uint32_t mask, bool yes);
enum host_reduction { HOST_ADD, HOST_MIN, HOST_MAX, HOST_MIN_SIGNED, HOST_MAX_SIGNED };
uint32_t host_reduce(uint32_t mask, uint32_t value, enum host_reduction how);

/* ---- ptx_matrix.c, ptx_group.c: products ---- */

void host_mma(float *d, const void *a, uint32_t b0, uint32_t b1);
void host_mma_bytes(int32_t *d, const void *a, uint32_t b0, uint32_t b1);
void host_blocks(const void *row, bool transposed, void *words);
/* wgmma.fence, .mma_async of n columns (d: n / 2 sums of this thread), .commit_group and .wait_group 0. */
void host_group_begin(void);
void host_group_mma(float *d, int n, const void *a, uint64_t b, bool more, bool transposed);
void host_group_end(void);
void host_group_wait(void);

/* ---- ptx_copy.c: copies that go on by themselves ---- */

void host_copy16(void *shared, const void *global);
void host_copy_end(void);
/* Until at most n groups are under way; n < 0: all copies, in groups or not. */
void host_copy_wait(int n);
/* In bulk to one place in the blocks of `mask`; 0: in this one alone. */
void host_bulk_copy(uint32_t to, const void *from, uint32_t bytes, uint32_t barrier, uint32_t mask);
void host_copies_see(void);    /* fence.proxy.async of global memory */
void host_copies_follow(void); /* of the block's shared memory */
/* What bulk copies have filled is read: no arrival at an mbarrier before a host_copies_follow. */
void host_stage_read(void);

/* ---- ptx_barrier.c: mbarriers ---- */

void host_barrier_begin(uint64_t *barrier, uint32_t arrivals);
void host_barriers_ready(void);
/* One arrival, and bytes that are expected (0: none, mbarrier.arrive). */
void host_barrier_arrive(uint32_t barrier);
void host_barrier_expect(uint32_t barrier, uint32_t bytes);
/* `over`: a word that is not 0 when phases end that nobody waits for; NULL: there is none. */
bool host_barrier_try(uint32_t barrier, uint32_t parity, const uint32_t *over);
void host_barrier_wait(uint32_t barrier, uint32_t parity);
/* Bytes have come: of a copy that the running thread has asked for. */
void host_barrier_bytes(uint32_t barrier, uint32_t bytes);
/* What stands for a barrier in strict.c: the same for all blocks of a cluster. */
const void *host_barrier_object(uint32_t barrier);

/* ---- ptx_order.c ---- */

/* Relaxed: a word of global memory is stored; words beside each other are loaded, each of which is whole. */
void host_store_word(void *at, const void *value, size_t bytes);
void host_load_words(const void *at, void *value, size_t bytes, size_t word);
/* A plain load of `bytes`, of which the first `wanted` are of a result. */
void host_load_first(const void *at, void *value, size_t wanted, size_t bytes);
void host_store_alike(void *at, const void *value, size_t bytes);
void host_load_alike(const void *at, void *value, size_t bytes);
uint32_t host_load_acquire(const uint32_t *at);
/* Atomic; what was there. */
uint32_t host_atomic_add(uint32_t *at, uint32_t n, enum strict_order order);
uint32_t host_atomic_or(uint32_t *at, uint32_t bits);
uint64_t host_atomic_add_wide(uint64_t *at, uint64_t n, enum strict_order order);
void host_fence(enum strict_scope scope);
/* The same place in another block of the cluster: mapa. */
uint32_t host_cluster_map(uint32_t at, int rank);
void host_cluster_store(uint32_t *mine, int rank, const uint32_t *words, int n);
uint32_t host_cluster_load(const uint32_t *mine);
/* All that this thread has stored is seen by everybody: host_stores_seen, and stores to other blocks' shared memory.
 * */
void host_all_seen(void);
void host_cluster_barrier(void);
int host_some_barrier(int id, int n, bool yes);

#ifdef __cplusplus
}
#endif

#endif
