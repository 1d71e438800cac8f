/* SPDX-License-Identifier: Apache-2.0
 * Number bits: bf16, f16, and Philox4x32-10. Compiles as C and as CUDA. */
#ifndef BASE_NUMERIC_H
#define BASE_NUMERIC_H

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define NUMERIC_FN static inline __host__ __device__
#else
#define NUMERIC_FN static inline
#endif

NUMERIC_FN float numeric_from_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, 4);
    return f;
}

NUMERIC_FN uint32_t numeric_to_bits(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, 4);
    return bits;
}

NUMERIC_FN float bf16_to_float(uint16_t h)
{
    return numeric_from_bits((uint32_t)h << 16);
}

/* Round to nearest even; NaN stays NaN. */
NUMERIC_FN uint16_t bf16_from_float(float f)
{
    uint32_t u = numeric_to_bits(f);
    if ((u & 0x7fffffffu) > 0x7f800000u) {
        return (uint16_t)(u >> 16 | 0x40);
    }
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1)) >> 16);
}

NUMERIC_FN float f16_to_float(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, e = h >> 10 & 31, m = h & 0x3ffu;
    if (e == 31) {
        return numeric_from_bits(sign | 0x7f800000u | m << 13);
    }
    if (e == 0) { /* zero and subnormal: m * 2^-24 */
        float f = (float)m * 5.9604644775390625e-8f;
        return sign ? -f : f;
    }
    return numeric_from_bits(sign | (e + 112) << 23 | m << 13);
}

/* Round to nearest even; beyond the range infinite, NaN stays NaN. */
NUMERIC_FN uint16_t f16_from_float(float f)
{
    uint32_t u = numeric_to_bits(f), sign = u >> 16 & 0x8000u, size = u & 0x7fffffffu;
    if (size > 0x7f800000u) {
        return (uint16_t)(sign | 0x7e00u);
    }
    if (size >= 0x477ff000u) {
        return (uint16_t)(sign | 0x7c00u);
    }
    if (size <
        0x38800000u) { /* subnormal: the sum puts the last bit that stays at the last place of its own */
        float shifted = numeric_from_bits(size) + 0.5f;
        return (uint16_t)(sign | (numeric_to_bits(shifted) - 0x3f000000u));
    }
    return (uint16_t)(sign | (size - 0x38000000u + 0xfffu + (size >> 13 & 1)) >> 13);
}

/* Philox4x32-10: 128 random bits that are a pure function of counter and key. */
NUMERIC_FN void philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3], k0 = key[0],
             k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1, c3 = (uint32_t)p0, c0 = n0, c2 = n2;
        k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
    out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

#endif
