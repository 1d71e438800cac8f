/* SPDX-License-Identifier: Apache-2.0
 * The vector layer under the kernels: KERN_LANES floats at once, in compiler vector extensions, with a
 * fused multiply-add where the instruction set has one. Everything is a pure function of its lanes, and
 * sums over lanes go by halves, so a kernel's order of sums is the same wherever it is called from. */
#ifndef CPU_KERNELS_VECTOR_H
#define CPU_KERNELS_VECTOR_H

#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
#include <immintrin.h>
#define KERN_LANES 16
#elif defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#define KERN_LANES 8
#else
#if defined(KERN_NEON)
#include <arm_neon.h>
#endif
#define KERN_LANES 4 /* the width that every 64-bit machine has */
#endif

#define KERN_INLINE static inline __attribute__((always_inline, unused))
#if defined(__clang__)
#define KERN_UNROLL _Pragma("clang loop unroll(full)")
#define KERN_UNROLL_SOME _Pragma("clang loop unroll_count(4)")
#else
#define KERN_UNROLL _Pragma("GCC unroll 16")
#define KERN_UNROLL_SOME _Pragma("GCC unroll 4")
#endif

typedef float vf __attribute__((vector_size(4 * KERN_LANES)));
typedef uint32_t vu __attribute__((vector_size(4 * KERN_LANES)));
typedef int32_t vi __attribute__((vector_size(4 * KERN_LANES)));
typedef uint16_t vh __attribute__((vector_size(2 * KERN_LANES)));

KERN_INLINE vf vf_load(const float *p)
{
    vf v;
    memcpy(&v, p, sizeof v);
    return v;
}

KERN_INLINE void vf_store(float *p, vf v)
{
    memcpy(p, &v, sizeof v);
}

/* The first n (0 .. KERN_LANES) values, zeros behind them. */
KERN_INLINE vf vf_load_part(const float *p, int64_t n)
{
    float part[KERN_LANES] = {0};
    memcpy(part, p, (size_t)n * sizeof *p);
    return vf_load(part);
}

KERN_INLINE void vf_store_part(float *p, vf v, int64_t n)
{
    float part[KERN_LANES];
    vf_store(part, v);
    memcpy(p, part, (size_t)n * sizeof *p);
}

KERN_INLINE vf vf_set(float x)
{
    return x - (vf){0}; /* not 0 + x: that would lose the sign of -0 */
}

KERN_INLINE vu vu_set(uint32_t x)
{
    return x - (vu){0};
}

/* a * b + c; rounded once where the machine can, else after the product and after the sum. */
KERN_INLINE vf vf_fma(vf a, vf b, vf c)
{
#if KERN_LANES == 16
    return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif KERN_LANES == 8
    return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(KERN_NEON)
    return (vf)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
    return a * b + c;
#endif
}

/* Lane by lane: where mask is all ones a, where it is 0 b. */
KERN_INLINE vf vf_select(vi mask, vf a, vf b)
{
    return (vf)(((vi)a & mask) | ((vi)b & ~mask));
}

/* b where one of them is not a number: as the instructions have it, where compilers would make five of one. */
KERN_INLINE vf vf_max(vf a, vf b)
{
#if KERN_LANES == 16
    return (vf)_mm512_max_ps((__m512)a, (__m512)b);
#elif KERN_LANES == 8
    return (vf)_mm256_max_ps((__m256)a, (__m256)b);
#else
    return vf_select(a > b, a, b);
#endif
}

KERN_INLINE vf vf_min(vf a, vf b)
{
#if KERN_LANES == 16
    return (vf)_mm512_min_ps((__m512)a, (__m512)b);
#elif KERN_LANES == 8
    return (vf)_mm256_min_ps((__m256)a, (__m256)b);
#else
    return vf_select(a < b, a, b);
#endif
}

KERN_INLINE vf vf_abs(vf a)
{
    return (vf)((vu)a & 0x7fffffffu);
}

/* The value of lane i ^ step in lane i, for step 1, 2, 4, 8. */
KERN_INLINE vf vf_swap(vf v, int step)
{
    float in[KERN_LANES], out[KERN_LANES];
    vf_store(in, v);
    KERN_UNROLL
    for (int i = 0; i < KERN_LANES; i++) {
        out[i] = in[i ^ step];
    }
    return vf_load(out);
}

KERN_INLINE float vf_sum(vf v)
{
#if KERN_LANES == 16
    v = v + __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
    v = v + __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
    v = v + __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
#elif KERN_LANES == 8
    v = v + __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3);
    v = v + __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5);
#else
    v = v + __builtin_shufflevector(v, v, 2, 3, 0, 1);
#endif
    return v[0] + v[1];
}

KERN_INLINE vi vi_max(vi a, vi b)
{
#if KERN_LANES == 16
    return (vi)_mm512_max_epi32((__m512i)a, (__m512i)b);
#elif KERN_LANES == 8
    return (vi)_mm256_max_epi32((__m256i)a, (__m256i)b);
#else
    return (a & (a > b)) | (b & ~(a > b));
#endif
}

KERN_INLINE int32_t vi_largest(vi v)
{
#if KERN_LANES == 16
    v = vi_max(v, __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7));
    v = vi_max(v, __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11));
    v = vi_max(v, __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13));
#elif KERN_LANES == 8
    v = vi_max(v, __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3));
    v = vi_max(v, __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5));
#else
    v = vi_max(v, __builtin_shufflevector(v, v, 2, 3, 0, 1));
#endif
    return v[0] > v[1] ? v[0] : v[1];
}

KERN_INLINE int32_t vi_sum(vi v)
{
#if KERN_LANES == 16
    v += __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
    v += __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
    v += __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
#elif KERN_LANES == 8
    v += __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3);
    v += __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5);
#else
    v += __builtin_shufflevector(v, v, 2, 3, 0, 1);
#endif
    return v[0] + v[1];
}

/* KERN_LANES numbers of 16 bits. By hand: compilers make four instructions of what is one. */
KERN_INLINE vu vu_widen(const uint16_t *p)
{
#if KERN_LANES == 16
    return (vu)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)p));
#elif KERN_LANES == 8
    return (vu)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
#else
    vh h;
    memcpy(&h, p, sizeof h);
    return __builtin_convertvector(h, vu);
#endif
}

/* KERN_LANES values of 16 bits as floats. */
KERN_INLINE vf vf_bf16(const uint16_t *p)
{
    return (vf)(vu_widen(p) << 16);
}

KERN_INLINE vf vf_f16(const uint16_t *p)
{
#if KERN_LANES == 16
    return (vf)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
#elif KERN_LANES == 8 && defined(__F16C__)
    return (vf)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p));
#else
    vu bits = vu_widen(p), sign = (bits & 0x8000u) << 16, value = (bits & 0x7fffu) << 13;
    /* The exponent is 112 too small: a product with 2^112 sets it, for subnormal numbers too. */
    vu magnitude = (vu)((vf)value * 0x1p112f);
    vu special = (vu)(value >= vu_set(0x0f800000u)); /* infinite or not a number */
    return (vf)(magnitude | (special & 0x7f800000u) | sign);
#endif
}

/* e^x = 2^n (1 + part), x from -104 to 89: returns n. */
KERN_INLINE vi vf_exp_parts(vf x, vf *part)
{
    const float round = 0x1.8p23f; /* adding it rounds to an integer */
    vf shifted = vf_fma(x, vf_set(0x1.715476p0f), vf_set(round)), n = shifted - round;
    vf r = vf_fma(n, vf_set(-0x1.62e400p-1f), x); /* ln 2 in two parts; the first times n is exact */
    r = vf_fma(n, vf_set(-0x1.7f7d1cp-20f), r);
    vf p = vf_set(0x1.6850e4p-10f);
    p = vf_fma(p, r, vf_set(0x1.123bccp-7f));
    p = vf_fma(p, r, vf_set(0x1.555b98p-5f));
    p = vf_fma(p, r, vf_set(0x1.55548ep-3f));
    p = vf_fma(p, r, vf_set(0x1.fffff8p-2f));
    *part = vf_fma(p * r, r, r);
    return (vi)shifted - (vi)vf_set(round);
}

/* e^x, relative error below 2 ulp; 0 far below, infinite far above, NaN stays. */
KERN_INLINE vf vf_exp(vf x)
{
    vf low = vf_set(-104.0f), high = vf_set(89.0f), p;
    vi n = vf_exp_parts(vf_select(x < low, low, vf_select(x > high, high, x)), &p), half = n >> 1;
    /* 2^n in two factors, so that results near the ends of the range come out right. */
    vf a = (vf)((half + 127) << 23), b = (vf)((n - half + 127) << 23);
    return vf_select(x == x, (p + 1.0f) * a * b, x);
}

#endif
