/* SPDX-License-Identifier: Apache-2.0
 * Copies that go on by themselves: those of a thread (cp.async), those in bulk, and the barriers in shared memory
 * that count their bytes. For kernels only; two bodies, as ptx.cuh says. What is copied in bulk, counts bytes or
 * speaks of a cluster is only for where PTX_BULK is 1. */
#ifndef CUDA_LIB_PTX_COPY_CUH
#define CUDA_LIB_PTX_COPY_CUH

#include "cuda/lib/ptx.cuh"

#ifdef UTTER_CUDA_HOST
#include <cuda_host_copy.h>
#else

/* ---- Copies of a thread ---- */

/* 16 bytes from global to shared memory, in the background; `keep`: through the L1 cache. A thread
 * sees its own copies after ptx_copy_wait of the groups that hold them. */
static __device__ __forceinline__ void ptx_copy(void *shared, const void *global, bool keep)
{
    uint32_t to = ptx_shared_at(shared);
    if (keep) {
        asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(to), "l"(global) : "memory");
    } else {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(global) : "memory");
    }
}

/* Ends a group of copies. */
static __device__ __forceinline__ void ptx_copy_end()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* Waits until at most N of this thread's groups are under way. */
template <int N> static __device__ __forceinline__ void ptx_copy_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

/* Waits for all of this thread's copies. */
static __device__ __forceinline__ void ptx_copy_wait_all()
{
    asm volatile("cp.async.wait_all;" ::: "memory");
}

/* ---- Barriers ----
 *
 * A barrier's phase ends when as many threads have arrived as it was begun with and all bytes that they expect have
 * come. Who waits says the parity of the phase whose end it waits for: the first one's is 0. */

static __device__ __forceinline__ void ptx_barrier_begin(uint64_t *barrier, uint32_t arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(ptx_shared_at(barrier)), "r"(arrivals)
                 : "memory");
}

/* What was begun is seen by the cluster and by copies. */
static __device__ __forceinline__ void ptx_barriers_ready()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* Arrives at a barrier of this block. */
static __device__ __forceinline__ void ptx_arrive(uint64_t *barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(ptx_shared_at(barrier)) : "memory");
}

/* Arrives at a barrier of any block of the cluster. */
static __device__ __forceinline__ void ptx_arrive_at(uint32_t barrier)
{
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/* Arrives, and `bytes` are yet to come. */
static __device__ __forceinline__ void ptx_expect(uint32_t barrier, uint32_t bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

/* The same by one thread of a warp, all of which come here. */
static __device__ __forceinline__ void ptx_expect_by_one(uint64_t *barrier, uint32_t bytes)
{
    asm volatile(
        "{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\n"
        "@p mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n}" ::"r"(ptx_shared_at(barrier)),
        "r"(bytes)
        : "memory");
}

/* True when the phase of this parity has ended; may wait a little. */
static __device__ __forceinline__ bool ptx_has_ended(uint64_t *barrier, uint32_t parity)
{
    uint32_t done;
    asm volatile(
        "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(ptx_shared_at(barrier)), "r"(parity)
        : "memory");
    return done != 0;
}

/* The same in a loop that also ends when the word `over` is not 0. Then nobody waits any more, and several phases may
 * end before this thread looks again; while it is 0 that is a mistake. A card does not read the word; the host bench
 * does, and tells of phases that nobody saw end while it is 0. */
static __device__ __forceinline__ bool ptx_has_ended_unless(
    uint64_t *barrier, uint32_t parity, const uint32_t *)
{
    return ptx_has_ended(barrier, parity);
}

static __device__ __forceinline__ void ptx_wait_at(uint32_t barrier, uint32_t parity)
{
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n"
                 "}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}

static __device__ __forceinline__ void ptx_wait(uint64_t *barrier, uint32_t parity)
{
    ptx_wait_at(ptx_shared_at(barrier), parity);
}

/* ---- Copies in bulk: multiples of 16 bytes, from and to such places ---- */

/* Bytes to this block, counted by its barrier; asked for by one thread. To a place that could be another block's the
 * code for sm_120f would call a routine of the driver's, and in a kernel that calls one setmaxnreg does nothing. */
static __device__ __forceinline__ void ptx_bulk_copy(
    uint32_t to, const void *from, uint32_t bytes, uint32_t barrier)
{
    asm volatile("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}

/* Bytes to the same place in all blocks of `mask`, counted by the same barrier in each; one copy for a
 * warp. */
static __device__ __forceinline__ void ptx_bulk_copy_to_all(
    void *to, const void *from, uint32_t bytes, uint64_t *barrier, uint16_t mask)
{
    asm volatile(
        "{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\n"
        "@p cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1], %2, [%3], %4;\n}" ::"r"(ptx_shared_at(to)),
        "l"(from), "r"(bytes), "r"(ptx_shared_at(barrier)), "h"(mask)
        : "memory");
}

/* What the L2 cache does with the bytes of a copy. `keep`: they are read again soon, so other data
 * should leave it before them; else they leave first. */
static __device__ __forceinline__ uint64_t ptx_policy(bool keep)
{
    uint64_t policy;
    if (keep) {
        asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    } else {
        asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    }
    return policy;
}

static __device__ __forceinline__ void ptx_bulk_copy_by(
    void *to, const void *from, uint32_t bytes, uint64_t *barrier, uint64_t policy)
{
    asm volatile("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.L2::cache_hint "
                 "[%0], [%1], %2, "
                 "[%3], %4;" ::"r"(ptx_shared_at(to)),
                 "l"(from), "r"(bytes), "r"(ptx_shared_at(barrier)), "l"(policy)
                 : "memory");
}

/* Copies that follow see what this thread could read here. */
static __device__ __forceinline__ void ptx_copies_see()
{
    asm volatile("fence.proxy.async.global;" ::: "memory");
}

/* Copies that follow, this thread's or those of others that reach a barrier with it, see what it wrote to shared
 * memory and do not overtake what it did there. It does not wait for what it stored elsewhere. */
static __device__ __forceinline__ void ptx_copies_follow()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* 16 bytes of a stage that copies fill again once this thread has arrived at a barrier. They could overtake the load:
 * ptx_copies_follow stands in front of the arrival, and the bench tells where it does not. */
static __device__ __forceinline__ uint4 ptx_load_stage(const void *at)
{
    return *(const uint4 *)at;
}

/* Bytes of a stage into which no copy goes: behind the last row of a matrix. They are read and multiplied with the
 * others, and the sums go nowhere. Only the bench asks, which tells of what is read and was never written. */
static __device__ __forceinline__ void ptx_spare(const void *, uint32_t)
{
}

#endif

#endif
