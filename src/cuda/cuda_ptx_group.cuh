/* SPDX-License-Identifier: Apache-2.0
 * Instructions of the H100 and its kin alone (sm_90a): products by four warps together whose second operand stands in
 * shared memory, barriers that count bytes, copies that reach all blocks of a cluster. For kernels only; empty for
 * other devices. */
#ifndef CUDA_CUDA_PTX_GROUP_CUH
#define CUDA_CUDA_PTX_GROUP_CUH

#include "cuda/cuda_ptx.cuh"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

static __device__ __forceinline__ uint32_t group_shared(const void *at)
{
    return (uint32_t)__cvta_generic_to_shared(at);
}

/* ---- Clusters ---- */

/* The same place in the shared memory of another block of the cluster. */
static __device__ __forceinline__ uint32_t group_map(uint32_t at, uint32_t rank)
{
    uint32_t there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at), "r"(rank));
    return there;
}

/* All threads of the cluster's blocks meet. */
static __device__ __forceinline__ void group_meet()
{
    asm volatile("barrier.cluster.arrive.release;\n"
                 "barrier.cluster.wait.acquire;" ::
                     : "memory");
}

/* One thread of a warp, all of which come here: the compiler knows that what follows is not done by two. */
static __device__ __forceinline__ bool group_one()
{
    uint32_t one;
    asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(one));
    return one != 0;
}

/* N threads of a block meet at its barrier number `id`. */
template <int ID, int N> static __device__ __forceinline__ void group_some_meet()
{
    asm volatile("bar.sync %0, %1;" ::"n"(ID), "n"(N) : "memory");
}

/* ---- Barriers ---- */

static __device__ __forceinline__ void group_barrier_begin(uint64_t *barrier, uint32_t arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(group_shared(barrier)), "r"(arrivals)
                 : "memory");
}

/* What was begun is seen by the cluster and by copies. */
static __device__ __forceinline__ void group_barriers_ready()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/* One thread of a warp arrives, and `bytes` are yet to come. */
static __device__ __forceinline__ void group_expect(uint64_t *barrier, uint32_t bytes)
{
    asm volatile(
        "{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\n"
        "@p mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n}" ::"r"(group_shared(barrier)),
        "r"(bytes)
        : "memory");
}

/* The same of a thread by itself. */
static __device__ __forceinline__ void group_expect_alone(uint32_t barrier, uint32_t bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

/* Arrives at a barrier of any block of the cluster. */
static __device__ __forceinline__ void group_arrive(uint32_t barrier)
{
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}

static __device__ __forceinline__ void group_wait_at(uint32_t barrier, uint32_t parity)
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

static __device__ __forceinline__ void group_wait(uint64_t *barrier, uint32_t parity)
{
    group_wait_at(group_shared(barrier), parity);
}

/* ---- Copies ---- */

/* Bytes to the same place in all blocks of `mask`, counted by the same barrier in each; one copy for a
 * warp. */
static __device__ __forceinline__ void group_copy(
    void *to, const void *from, uint32_t bytes, uint64_t *barrier, uint16_t mask)
{
    asm volatile(
        "{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\n"
        "@p cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1], %2, [%3], %4;\n}" ::"r"(group_shared(to)),
        "l"(from), "r"(bytes), "r"(group_shared(barrier)), "h"(mask)
        : "memory");
}

/* Bytes to this block, asked for by a thread by itself. */
static __device__ __forceinline__ void group_copy_alone(
    uint32_t to, const void *from, uint32_t bytes, uint32_t barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}

/* Copies that follow see what this thread could read here. */
static __device__ __forceinline__ void group_copies_see()
{
    asm volatile("fence.proxy.async.global;" ::: "memory");
}

/* Copies that follow, this thread's or those of others that meet it, see what it wrote to shared memory and do not
 * overtake what it did there. It does not wait for what it stored elsewhere. */
static __device__ __forceinline__ void group_copies_follow()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* ---- Registers ---- */

/* The warps of a team give registers away, or take more: at once, and all of them. */
template <int N> static __device__ __forceinline__ void group_registers_less()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}

template <int N> static __device__ __forceinline__ void group_registers_more()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}

/* ---- Products ---- */

/* Registers that products use are as the program left them. */
static __device__ __forceinline__ void group_mma_begin()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

static __device__ __forceinline__ void group_mma_end()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Waits for all products; from here on their sums can be read. */
template <int N> static __device__ __forceinline__ void group_mma_wait(float (&d)[N])
{
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
    for (int i = 0; i < N; i++) {
        asm volatile("" : "+f"(d[i])::"memory");
    }
}

/* An operand in shared memory: blocks of 8 x 8 numbers, 128 bytes each; the two of a tile of 16 columns lie beside each
 * other, those of the next 8 rows `stride` bytes further. */
static __device__ __forceinline__ uint64_t group_operand(const void *at, uint32_t stride)
{
    return (uint64_t)((group_shared(at) & 0x3ffff) >> 4) | (uint64_t)(128 >> 4) << 16 |
           (uint64_t)(stride >> 4) << 32;
}

/* The same of lines of 128 bytes, 8 of which are a block of 1,024 with pieces of 16 bytes at their number ^ the line's:
 * the blocks of further numbers `across` bytes further (not used where a line has all), those behind them `down`. */
static __device__ __forceinline__ uint64_t group_lines(const void *at, uint32_t across, uint32_t down)
{
    return (uint64_t)((group_shared(at) & 0x3ffff) >> 4) | (uint64_t)(across >> 4) << 16 |
           (uint64_t)(down >> 4) << 32 | (uint64_t)1 << 62;
}

#define GROUP_8(d, i)                                                                                  \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]),        \
        "+f"(d[i + 6]), "+f"(d[i + 7])
#define GROUP_NAMES_0 "%0,%1,%2,%3,%4,%5,%6,%7"
#define GROUP_NAMES_1 GROUP_NAMES_0 ",%8,%9,%10,%11,%12,%13,%14,%15"
#define GROUP_NAMES_2 GROUP_NAMES_1 ",%16,%17,%18,%19,%20,%21,%22,%23"
#define GROUP_NAMES_3 GROUP_NAMES_2 ",%24,%25,%26,%27,%28,%29,%30,%31"
#define GROUP_NAMES_4 GROUP_NAMES_3 ",%32,%33,%34,%35,%36,%37,%38,%39"
#define GROUP_NAMES_5 GROUP_NAMES_4 ",%40,%41,%42,%43,%44,%45,%46,%47"
#define GROUP_NAMES_6 GROUP_NAMES_5 ",%48,%49,%50,%51,%52,%53,%54,%55"
#define GROUP_NAMES_7 GROUP_NAMES_6 ",%56,%57,%58,%59,%60,%61,%62,%63"
#define GROUP_NAMES_8 GROUP_NAMES_7 ",%64,%65,%66,%67,%68,%69,%70,%71"
#define GROUP_NAMES_4_HALF GROUP_NAMES_1 ",%16,%17,%18,%19"
#define GROUP_NAMES_4_FULL GROUP_NAMES_3 ",%32,%33,%34,%35"
#define GROUP_D_0(d) GROUP_8(d, 0)
#define GROUP_D_1(d) GROUP_D_0(d), GROUP_8(d, 8)
#define GROUP_D_2(d) GROUP_D_1(d), GROUP_8(d, 16)
#define GROUP_D_3(d) GROUP_D_2(d), GROUP_8(d, 24)
#define GROUP_D_4(d) GROUP_D_3(d), GROUP_8(d, 32)
#define GROUP_D_5(d) GROUP_D_4(d), GROUP_8(d, 40)
#define GROUP_D_6(d) GROUP_D_5(d), GROUP_8(d, 48)
#define GROUP_D_7(d) GROUP_D_6(d), GROUP_8(d, 56)
#define GROUP_D_8(d) GROUP_D_7(d), GROUP_8(d, 64)

#define GROUP_D_4_HALF(d) GROUP_D_1(d), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19])

#define GROUP_D_4_FULL(d) GROUP_D_3(d), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35])

/* d += a b, by four warps: a 64 x 16, warp w has rows 16 w on as in ptx_mma; b 16 x n in shared memory; d[4 j ..] as in
 * ptx_mma for columns 8 j on. `more` 0: d = a b. Under way until group_mma_wait. Turned: what lies beside each other in
 * b's lines are the n numbers of a row, not the 16 of a column. */
#define GROUP_MMA(name, turned, n, last, a0, a1, a2, a3, at, use)                                      \
    static __device__ __forceinline__ void name(                                                       \
        float(&d)[n / 2], const uint4 &a, uint64_t b, uint32_t more)                                   \
    {                                                                                                  \
        asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, " use ", 0;\n"                                  \
                     "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32.bf16.bf16 {" GROUP_NAMES_##last   \
                     "}, {" a0 "," a1 "," a2 "," a3 "}, " at ", p, 1, 1, " turned ";\n}"               \
                     : GROUP_D_##last(d)                                                               \
                     : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(b), "r"(more));                     \
    }
GROUP_MMA(group_mma, "0", 40, 4_HALF, "%20", "%21", "%22", "%23", "%24", "%25")
GROUP_MMA(group_mma, "0", 72, 4_FULL, "%36", "%37", "%38", "%39", "%40", "%41")
GROUP_MMA(group_mma, "0", 64, 3, "%32", "%33", "%34", "%35", "%36", "%37")
GROUP_MMA(group_mma, "0", 80, 4, "%40", "%41", "%42", "%43", "%44", "%45")
GROUP_MMA(group_mma, "0", 128, 7, "%64", "%65", "%66", "%67", "%68", "%69")
GROUP_MMA(group_mma, "0", 144, 8, "%72", "%73", "%74", "%75", "%76", "%77")
GROUP_MMA(group_mma, "0", 16, 0, "%8", "%9", "%10", "%11", "%12", "%13")
GROUP_MMA(group_mma, "0", 32, 1, "%16", "%17", "%18", "%19", "%20", "%21")
GROUP_MMA(group_mma_turned, "1", 128, 7, "%64", "%65", "%66", "%67", "%68", "%69")

#endif

#endif
