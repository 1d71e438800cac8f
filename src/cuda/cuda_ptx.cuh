/* SPDX-License-Identifier: Apache-2.0
 * Instructions that have no name in CUDA C: tensor-core products, dependent launches. For kernels only. */
#ifndef CUDA_CUDA_PTX_CUH
#define CUDA_CUDA_PTX_CUH

#include <cuda_runtime.h>
#include <stdint.h>

/* The tests run the kernels on a CPU too; they bring their own. */
#ifndef UTTER_CUDA_EMULATED

/* d += a b, a 16 x 16 and b 16 x 8 of bf16 in the instruction's order, d 16 x 8 in fp32. */
static __device__ __forceinline__ void ptx_mma(float (&d)[4], const uint4 &a, uint32_t b0, uint32_t b1)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
}

/* 16 bytes that are read once: past the first cache, first out of the second. */
static __device__ __forceinline__ uint4 ptx_load_once(const void *at)
{
    uint4 v;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(at));
    return v;
}

static __device__ __forceinline__ void ptx_prefetch(const void *at)
{
    asm volatile("prefetch.global.L2 [%0];" ::"l"(at));
}

/* 16 bytes from global to shared memory, in the background; `keep`: through the first cache. A thread sees its own
 * copies after ptx_copy_wait of the groups that hold them. */
static __device__ __forceinline__ void ptx_copy(void *shared, const void *global, bool keep)
{
    uint32_t to = (uint32_t)__cvta_generic_to_shared(shared);
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

/* Waits until the kernels that this one depends on have ended and all that they wrote can be seen. Every kernel of the
 * room calls it before it reads or writes anything that is not a weight. */
static __device__ __forceinline__ void ptx_wait_for_earlier()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* From here on the next kernel may be put beside this one. */
static __device__ __forceinline__ void ptx_let_next_begin()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* Parameters that a kernel uses late, fetched now: those of a new launch lie in memory that no cache has seen. */
static __device__ __forceinline__ void ptx_need(const void *pointer)
{
    asm volatile("" ::"l"(pointer));
}

static __device__ __forceinline__ void ptx_need(int64_t value)
{
    asm volatile("" ::"l"(value));
}

static __device__ __forceinline__ void ptx_need(int value)
{
    asm volatile("" ::"r"(value));
}

#endif

/* The two bf16 of one register; `low` stands in the lower half. Rounded to nearest even. */
static __device__ __forceinline__ uint32_t pack_bf16(float low, float high)
{
#ifndef UTTER_CUDA_EMULATED
    uint32_t packed;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
    return packed;
#else
    return emulated_pack_bf16(low, high);
#endif
}

#endif
