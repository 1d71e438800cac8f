/* SPDX-License-Identifier: Apache-2.0
 * Products on tensor cores, and blocks of shared memory as their operands: those of a warp, and
 * those of sm_90a alone (wgmma), by four warps together whose second operand stands in shared
 * memory. For kernels only; two bodies, as ptx.cuh says. */
#ifndef CUDA_LIB_PTX_MATRIX_CUH
#define CUDA_LIB_PTX_MATRIX_CUH

#include "cuda/lib/ptx.cuh"

/* An operand in shared memory: blocks of 8 x 8 numbers, 128 bytes each; the two of a tile of 16 columns lie beside
 * each other, those of the next 8 rows `stride` bytes further. */
static __device__ __forceinline__ uint64_t ptx_group_operand(const void *at, uint32_t stride)
{
    return (uint64_t)((ptx_shared_at(at) & 0x3ffff) >> 4) | (uint64_t)(128 >> 4) << 16 |
           (uint64_t)(stride >> 4) << 32;
}

/* The same of lines of 128 bytes, 8 of which are a block of 1,024 with pieces of 16 bytes at their number ^ the
 * line's: the blocks of further numbers `across` bytes further (not used where a line has all), those behind them
 * `down`. */
static __device__ __forceinline__ uint64_t ptx_group_lines(
    const void *at, uint32_t across, uint32_t down)
{
    return (uint64_t)((ptx_shared_at(at) & 0x3ffff) >> 4) | (uint64_t)(across >> 4) << 16 |
           (uint64_t)(down >> 4) << 32 | (uint64_t)1 << 62;
}

#ifdef UTTER_CUDA_HOST
#include <cuda_host_matrix.h>
#else

/* ---- A warp ---- */

/* d += a b, a 16 x 16 and b 16 x 8 of bf16 in the instruction's order, d 16 x 8 in fp32. */
static __device__ __forceinline__ void ptx_mma(float (&d)[4], const uint4 &a, uint32_t b0, uint32_t b1)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
}

/* d += a b, a 16 x 32 and b 32 x 8 of signed bytes in the instruction's order, d 16 x 8 in 32 bits. */
static __device__ __forceinline__ void ptx_mma_bytes(
    int32_t (&d)[4], const uint4 &a, uint32_t b0, uint32_t b1)
{
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
}

/* Four signed bytes -> bf16, the first two in `low`. No float but the sum of 2^23, 128 and a byte has these bits. */
static __device__ __forceinline__ void ptx_bytes_to_bf16(uint32_t bytes, uint32_t &low, uint32_t &high)
{
    const uint32_t from_0 = bytes ^ 0x80808080u, two_23 = 0x4b000000u;
    float v[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        v[i] = __uint_as_float(__byte_perm(from_0, two_23, 0x7440u + (uint32_t)i)) - 0x1.0001p23f;
    }
    low = __byte_perm(__float_as_uint(v[0]), __float_as_uint(v[1]), 0x7632);
    high = __byte_perm(__float_as_uint(v[2]), __float_as_uint(v[3]), 0x7632);
}

/* The lowest four bits of both halves, less 8, as bf16. 128 and such a number are bf16 with these bits. */
static __device__ __forceinline__ uint32_t ptx_nibbles_to_bf16(uint32_t two)
{
    uint32_t v;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;"
        : "=r"(v)
        : "r"((two & 0x000f000fu) | 0x43004300u), "r"(0x3f803f80u), "r"(0xc308c308u));
    return v;
}

/* Four blocks of 8 x 8 bf16 from shared memory, as ptx_mma wants b0 and b1 of two operands; thread l points at row
 * l % 8 of block l / 8. */
static __device__ __forceinline__ uint4 ptx_blocks(const uint4 *at)
{
    uint4 v;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(ptx_shared_at(at)));
    return v;
}

/* The same, each block transposed: for an operand whose columns lie beside each other. */
static __device__ __forceinline__ uint4 ptx_blocks_transposed(const uint4 *at)
{
    uint4 v;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(ptx_shared_at(at)));
    return v;
}

/* ---- Four warps: only where PTX_GROUPS is 1 ---- */

/* Registers that products use are as the program left them. */
static __device__ __forceinline__ void ptx_group_begin()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

static __device__ __forceinline__ void ptx_group_end()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Waits for all products; from here on their sums can be read. */
template <int N> static __device__ __forceinline__ void ptx_group_wait(float (&d)[N])
{
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
    for (int i = 0; i < N; i++) {
        asm volatile("" : "+f"(d[i])::"memory");
    }
}

#define PTX_GROUP_8(d, i)                                                                              \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]),        \
        "+f"(d[i + 6]), "+f"(d[i + 7])
#define PTX_GROUP_NAMES_0 "%0,%1,%2,%3,%4,%5,%6,%7"
#define PTX_GROUP_NAMES_1 PTX_GROUP_NAMES_0 ",%8,%9,%10,%11,%12,%13,%14,%15"
#define PTX_GROUP_NAMES_2 PTX_GROUP_NAMES_1 ",%16,%17,%18,%19,%20,%21,%22,%23"
#define PTX_GROUP_NAMES_3 PTX_GROUP_NAMES_2 ",%24,%25,%26,%27,%28,%29,%30,%31"
#define PTX_GROUP_NAMES_4 PTX_GROUP_NAMES_3 ",%32,%33,%34,%35,%36,%37,%38,%39"
#define PTX_GROUP_NAMES_5 PTX_GROUP_NAMES_4 ",%40,%41,%42,%43,%44,%45,%46,%47"
#define PTX_GROUP_NAMES_6 PTX_GROUP_NAMES_5 ",%48,%49,%50,%51,%52,%53,%54,%55"
#define PTX_GROUP_NAMES_7 PTX_GROUP_NAMES_6 ",%56,%57,%58,%59,%60,%61,%62,%63"
#define PTX_GROUP_NAMES_8 PTX_GROUP_NAMES_7 ",%64,%65,%66,%67,%68,%69,%70,%71"
#define PTX_GROUP_NAMES_4_HALF PTX_GROUP_NAMES_1 ",%16,%17,%18,%19"
#define PTX_GROUP_NAMES_4_FULL PTX_GROUP_NAMES_3 ",%32,%33,%34,%35"
#define PTX_GROUP_D_0(d) PTX_GROUP_8(d, 0)
#define PTX_GROUP_D_1(d) PTX_GROUP_D_0(d), PTX_GROUP_8(d, 8)
#define PTX_GROUP_D_2(d) PTX_GROUP_D_1(d), PTX_GROUP_8(d, 16)
#define PTX_GROUP_D_3(d) PTX_GROUP_D_2(d), PTX_GROUP_8(d, 24)
#define PTX_GROUP_D_4(d) PTX_GROUP_D_3(d), PTX_GROUP_8(d, 32)
#define PTX_GROUP_D_5(d) PTX_GROUP_D_4(d), PTX_GROUP_8(d, 40)
#define PTX_GROUP_D_6(d) PTX_GROUP_D_5(d), PTX_GROUP_8(d, 48)
#define PTX_GROUP_D_7(d) PTX_GROUP_D_6(d), PTX_GROUP_8(d, 56)
#define PTX_GROUP_D_8(d) PTX_GROUP_D_7(d), PTX_GROUP_8(d, 64)

#define PTX_GROUP_D_4_HALF(d) PTX_GROUP_D_1(d), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19])

#define PTX_GROUP_D_4_FULL(d) PTX_GROUP_D_3(d), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35])

/* d += a b, by four warps: a 64 x 16, warp w has rows 16 w on as in ptx_mma; b 16 x n in shared memory; d[4 j ..] as
 * in ptx_mma for columns 8 j on. `more` 0: d = a b. Under way until ptx_group_wait. Transposed: what lies beside each
 * other in b's lines are the n numbers of a row, not the 16 of a column. */
#define PTX_GROUP_MMA(name, transposed, n, last, a0, a1, a2, a3, at, use)                              \
    static __device__ __forceinline__ void name(                                                       \
        float(&d)[n / 2], const uint4 &a, uint64_t b, uint32_t more)                                   \
    {                                                                                                  \
        asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, " use ", 0;\n"                                  \
                     "wgmma.mma_async.sync.aligned.m64n" #n                                            \
                     "k16.f32.bf16.bf16 {" PTX_GROUP_NAMES_##last                                      \
                     "}, {" a0 "," a1 "," a2 "," a3 "}, " at ", p, 1, 1, " transposed ";\n}"           \
                     : PTX_GROUP_D_##last(d)                                                           \
                     : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "l"(b), "r"(more));                     \
    }
PTX_GROUP_MMA(ptx_group_mma, "0", 40, 4_HALF, "%20", "%21", "%22", "%23", "%24", "%25")
PTX_GROUP_MMA(ptx_group_mma, "0", 72, 4_FULL, "%36", "%37", "%38", "%39", "%40", "%41")
PTX_GROUP_MMA(ptx_group_mma, "0", 64, 3, "%32", "%33", "%34", "%35", "%36", "%37")
PTX_GROUP_MMA(ptx_group_mma, "0", 80, 4, "%40", "%41", "%42", "%43", "%44", "%45")
PTX_GROUP_MMA(ptx_group_mma, "0", 128, 7, "%64", "%65", "%66", "%67", "%68", "%69")
PTX_GROUP_MMA(ptx_group_mma, "0", 144, 8, "%72", "%73", "%74", "%75", "%76", "%77")
PTX_GROUP_MMA(ptx_group_mma, "0", 16, 0, "%8", "%9", "%10", "%11", "%12", "%13")
PTX_GROUP_MMA(ptx_group_mma, "0", 32, 1, "%16", "%17", "%18", "%19", "%20", "%21")
PTX_GROUP_MMA(ptx_group_mma_transposed, "1", 128, 7, "%64", "%65", "%66", "%67", "%68", "%69")

#endif

#endif
