/* SPDX-License-Identifier: Apache-2.0
 * Weights of every format on their way into a product (device/tiles.h), and the activations that they are multiplied
 * with. For all kernels of products; a kernel is compiled once for each format.
 *
 * bf16: activations go in two bf16 parts, and what the tensor cores add up is the result. Packed: activations are
 * rounded to integers as the CPU rounds them (cpu/kernels/kern.h), 32 columns with a scale; an integer is the sum of
 * a multiple of 256 and of what is left, which bf16 both hold. Sums of a unit are then integers too, and exact; they
 * are multiplied with the scales of weights and vector and added up unit after unit: all as on the CPU, where only the
 * sums of whole parts of the columns (README.md) are added in another order. */
#ifndef CUDA_PARTS_TILE_CUH
#define CUDA_PARTS_TILE_CUH

#include "cuda/lib/launch.cuh"
#include "cuda/lib/ptx_matrix.cuh"
#include "cuda/parts/finish.cuh"

template <int FORMAT> struct tile_format {
    static constexpr bool PACKED = FORMAT != CUDA_BF16;
    static constexpr int TILES = PACKED ? CUDA_UNIT_TILES : 1; /* of a unit */
    static constexpr int CODES = FORMAT == CUDA_BF16 ? CUDA_TILE_BYTES
                                 : FORMAT == CUDA_Q8 ? CUDA_Q8_CODES
                                                     : CUDA_Q4_CODES;
    static constexpr int BYTES = CODES + (PACKED ? CUDA_UNIT_SCALES : 0);
    static constexpr int PIECES = BYTES / 16;
    /* The thread's four columns of a tile: two from EACH * (threadIdx.x % 4) on, and two from OTHER further on. */
    static constexpr int EACH = PACKED ? 4 : 2, OTHER = PACKED ? 2 : 8;
    static constexpr int REACH = FORMAT == CUDA_Q8 ? 32767 : 127; /* of rounded activations */
};

/* Tiles of columns of each of n parts: whole units. */
template <int FORMAT> static __device__ __forceinline__ int tile_each(int n_k_tiles, int n)
{
    constexpr int TILES = tile_format<FORMAT>::TILES;
    const int units = (n_k_tiles + TILES - 1) / TILES;
    return (units + n - 1) / n * TILES;
}

/* ---- Weights ---- */

/* Where row tile `row` has its tile number k, the first of a unit. */
template <int FORMAT>
static __device__ __forceinline__ const uint4 *tile_at(const struct cuda_matrix &m, unsigned row, int k)
{
    typedef tile_format<FORMAT> F;
    const int units = (m.n_k_tiles + F::TILES - 1) / F::TILES;
    return (const uint4 *)m.tiles + ((size_t)row * units + k / F::TILES) * F::PIECES;
}

struct tile_q8 {
    uint4 codes;
    uint32_t scales; /* of rows g and g + 8 */
};
struct tile_q4 {
    uint2 codes;
    uint32_t scales;
};

/* Tile after tile as the tensor cores take them, and the scales of rows g and g + 8. */
struct tile_decoded {
    uint4 tile[CUDA_UNIT_TILES];
    float first, second;
};

template <int FORMAT> struct tile_kinds {
    typedef uint4 unit, operand;
};
template <> struct tile_kinds<CUDA_Q8> {
    typedef struct tile_q8 unit;
    typedef struct tile_decoded operand;
};
template <> struct tile_kinds<CUDA_Q4> {
    typedef struct tile_q4 unit;
    typedef struct tile_decoded operand;
};
/* What a thread has of a unit, as it lies in memory and as it is multiplied. */
template <int FORMAT> using tile_unit = typename tile_kinds<FORMAT>::unit;
template <int FORMAT> using tile_operand = typename tile_kinds<FORMAT>::operand;

/* From memory of either kind; mine: the unit's piece number `lane`. ONCE: from global memory, and nobody reads it
 * again. */
template <int FORMAT, bool ONCE>
static __device__ __forceinline__ tile_unit<FORMAT> tile_take(const uint4 *mine, int lane)
{
    if constexpr (FORMAT == CUDA_BF16) {
        return ONCE ? ptx_load_once(mine) : *mine;
    } else {
        tile_unit<FORMAT> u;
        const uint4 *unit = mine - lane;
        if constexpr (FORMAT == CUDA_Q4) {
            u.codes = ((const uint2 *)unit)[lane];
        } else {
            u.codes = ONCE ? ptx_load_once(mine) : *mine;
        }
        u.scales = ((const uint32_t *)unit)[tile_format<FORMAT>::CODES / 4 + lane / 4];
        return u;
    }
}

static __device__ __forceinline__ uint4 tile_of_bytes(uint32_t row, uint32_t lower_row)
{
    uint4 v;
    ptx_bytes_to_bf16(row, v.x, v.z);
    ptx_bytes_to_bf16(lower_row, v.y, v.w);
    return v;
}

static __device__ __forceinline__ uint4 tile_of_nibbles(uint32_t word)
{
    return make_uint4(ptx_nibbles_to_bf16(word), ptx_nibbles_to_bf16(word >> 4),
        ptx_nibbles_to_bf16(word >> 8), ptx_nibbles_to_bf16(word >> 12));
}

template <int FORMAT>
static __device__ __forceinline__ tile_operand<FORMAT> tile_decode(const tile_unit<FORMAT> &u)
{
    if constexpr (FORMAT == CUDA_BF16) {
        return u;
    } else {
        struct tile_decoded w;
        if constexpr (FORMAT == CUDA_Q8) {
            w.tile[0] = tile_of_bytes(u.codes.x, u.codes.y);
            w.tile[1] = tile_of_bytes(u.codes.z, u.codes.w);
        } else {
            w.tile[0] = tile_of_nibbles(u.codes.x);
            w.tile[1] = tile_of_nibbles(u.codes.y);
        }
        w.first = __uint_as_float(u.scales << 16);
        w.second = __uint_as_float(u.scales & 0xffff0000u);
        return w;
    }
}

/* ---- Activations ---- */

/* This thread's four columns of a tile, rounded: of a unit of which eight neighbouring threads have all. Returns the
 * scale. All threads of the warp come here. bf16: nothing to do. */
template <int FORMAT> static __device__ __forceinline__ float tile_round(float2 &x0, float2 &x1)
{
    if constexpr (!tile_format<FORMAT>::PACKED) {
        return 1;
    }
    constexpr float REACH = (float)tile_format<FORMAT>::REACH;
    constexpr int NO_NUMBER = 0x7f800000; /* and what is infinite: from here on */
    int most = max(max(__float_as_int(fabsf(x0.x)), __float_as_int(fabsf(x0.y))),
        max(__float_as_int(fabsf(x1.x)), __float_as_int(fabsf(x1.y))));
#pragma unroll
    for (int step = 1; step < 8; step *= 2) {
        most = max(most, __shfl_xor_sync(0xffffffffu, most, step));
    }
    const float largest = __uint_as_float((uint32_t)most);
    const bool some = most < NO_NUMBER && largest > 1e-30f;
    const float inverse = some ? REACH / largest : 0.0f;
    float *const x[4] = {&x0.x, &x0.y, &x1.x, &x1.y};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float code = __fadd_rn(__fadd_rn(__fmul_rn(*x[i], inverse), 0x1.8p23f), -0x1.8p23f);
        *x[i] = most < NO_NUMBER ? code : 0.0f;
    }
    return most >= NO_NUMBER ? __uint_as_float(0x7fc00000u) : some ? largest / REACH : 0.0f;
}

/* Two activations, behind tile_round, as bf16: their upper parts, or what these leave. */
template <int FORMAT> static __device__ __forceinline__ uint32_t tile_part(float a, float b, bool rest)
{
    if constexpr (!tile_format<FORMAT>::PACKED) {
        return finish_part(a, b, rest);
    }
    const float upper_a = 256 * __fadd_rn(__fadd_rn(a * (1.0f / 256), 0x1.8p23f), -0x1.8p23f),
                upper_b = 256 * __fadd_rn(__fadd_rn(b * (1.0f / 256), 0x1.8p23f), -0x1.8p23f);
    return rest ? pack_bf16(a - upper_a, b - upper_b) : pack_bf16(upper_a, upper_b);
}

/* ---- Products ---- */

/* d += a packed unit of weights times its vectors: b[i] of tile i, x_scale of the vector whose sums this thread has:
 * those of rows g and g + 8, in d[0] and d[2]. */
static __device__ __forceinline__ void tile_multiply(
    float (&d)[4], const struct tile_decoded &w, const uint2 (&b)[CUDA_UNIT_TILES], float x_scale)
{
    float whole[4] = {};
#pragma unroll
    for (int i = 0; i < CUDA_UNIT_TILES; i++) {
        ptx_mma(whole, w.tile[i], b[i].x, b[i].y);
    }
    d[0] = __fmaf_rn(__fadd_rn(whole[0], whole[1]), __fmul_rn(w.first, x_scale), d[0]);
    d[2] = __fmaf_rn(__fadd_rn(whole[2], whole[3]), __fmul_rn(w.second, x_scale), d[2]);
}

#endif
