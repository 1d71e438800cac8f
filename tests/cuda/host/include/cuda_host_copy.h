/* SPDX-License-Identifier: Apache-2.0
 * The host's bodies of src/cuda/lib/ptx_copy.cuh, which says what each does. */
#ifndef TESTS_CUDA_HOST_CUDA_HOST_COPY_H
#define TESTS_CUDA_HOST_CUDA_HOST_COPY_H

#include "tests/cuda/host/ptx/ptx.h"

static inline void ptx_copy(void *shared, const void *global, bool)
{
    host_copy16(shared, global);
}

static inline void ptx_copy_end()
{
    host_copy_end();
}

template <int N> static inline void ptx_copy_wait()
{
    host_copy_wait(N);
}

static inline void ptx_copy_wait_all()
{
    host_copy_wait(-1);
}

static inline void ptx_barrier_begin(uint64_t *barrier, uint32_t arrivals)
{
    host_barrier_begin(barrier, arrivals);
}

static inline void ptx_barriers_ready()
{
    host_barriers_ready();
}

static inline void ptx_arrive(uint64_t *barrier)
{
    host_barrier_arrive(host_shared_address(barrier));
}

static inline void ptx_arrive_at(uint32_t barrier)
{
    host_barrier_arrive(barrier);
}

static inline void ptx_expect(uint32_t barrier, uint32_t bytes)
{
    host_barrier_expect(barrier, bytes);
}

static inline void ptx_expect_by_one(uint64_t *barrier, uint32_t bytes)
{
    if (host_elect()) {
        host_barrier_expect(host_shared_address(barrier), bytes);
    }
}

static inline bool ptx_has_ended(uint64_t *barrier, uint32_t parity)
{
    return host_barrier_try(host_shared_address(barrier), parity, nullptr);
}

static inline bool ptx_has_ended_unless(uint64_t *barrier, uint32_t parity, const uint32_t *over)
{
    return host_barrier_try(host_shared_address(barrier), parity, over);
}

static inline void ptx_wait_at(uint32_t barrier, uint32_t parity)
{
    host_barrier_wait(barrier, parity);
}

static inline void ptx_wait(uint64_t *barrier, uint32_t parity)
{
    host_barrier_wait(host_shared_address(barrier), parity);
}

static inline void ptx_bulk_copy(uint32_t to, const void *from, uint32_t bytes, uint32_t barrier)
{
    host_bulk_copy(to, from, bytes, barrier, 0);
}

static inline void ptx_bulk_copy_to_all(
    void *to, const void *from, uint32_t bytes, uint64_t *barrier, uint16_t mask)
{
    if (host_elect()) {
        host_bulk_copy(host_shared_address(to), from, bytes, host_shared_address(barrier), mask);
    }
}

/* What a cache does with bytes has no effect here; that the copy has a policy of createpolicy is looked at. */
enum : uint64_t { HOST_POLICY = 0x9000 };

static inline uint64_t ptx_policy(bool keep)
{
    return HOST_POLICY + keep;
}

static inline void ptx_bulk_copy_by(
    void *to, const void *from, uint32_t bytes, uint64_t *barrier, uint64_t policy)
{
    if (policy - HOST_POLICY > 1) {
        host_finding("cp.async.bulk with the policy %llx", (unsigned long long)policy);
    }
    host_bulk_copy(host_shared_address(to), from, bytes, host_shared_address(barrier), 0);
}

static inline void ptx_spare(void *at, uint32_t bytes)
{
    strict_memory_spare(at, bytes);
}

static inline uint4 ptx_load_stage(const void *at)
{
    host_stage_read();
    return *(const uint4 *)at;
}

static inline void ptx_copies_see()
{
    host_copies_see();
}

static inline void ptx_copies_follow()
{
    host_copies_follow();
}

#endif
