/* SPDX-License-Identifier: Apache-2.0
 * Matrix products with packed weights (weights/pack.h). Contracts in cpu/kernels/kern.h. Included by body.h.
 *
 * Columns are rounded to 16 bits beside weights of 8, and to 8 bits beside weights of 4, with a scale for each group
 * of PACK_GROUP numbers. Within a group sums are of integers, the same in every table; groups are added in their
 * order, each with one fused step. Lanes are rows, so nothing is ever added across a vector. */

enum {
    PACKED_VECTORS = PACK_ROWS / KERN_LANES, /* of a block's rows */
    PACKED_COLUMNS = KERN_LANES == 16  ? 8
                     : KERN_LANES == 8 ? 4
                                       : 2,
    /* Bytes that are asked for ahead: the blocks lie in the order they are read in */
    PACKED_AHEAD = 4096,
};

#if KERN_LANES == 16
typedef __m512i pairs; /* two numbers of 16 bits a row */
#elif KERN_LANES == 8
typedef __m256i pairs;
#else
typedef vi pairs;
#endif

/* The codes of 2 columns and KERN_LANES rows from 8 bits. */
KERN_INLINE pairs pairs_widen(const uint8_t *p)
{
#if KERN_LANES == 16
    return _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)p));
#elif KERN_LANES == 8
    return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)p));
#else
    typedef int8_t bytes __attribute__((vector_size(2 * KERN_LANES)));
    typedef int16_t halves __attribute__((vector_size(4 * KERN_LANES)));
    bytes b;
    memcpy(&b, p, sizeof b);
    return (pairs) __builtin_convertvector(b, halves);
#endif
}

KERN_INLINE pairs pairs_load(const uint8_t *p)
{
    pairs v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* The same two numbers of 16 bits, or four of 8, in every lane. */
KERN_INLINE pairs pairs_set(const void *p)
{
    int32_t both;
    memcpy(&both, p, sizeof both);
    return (pairs)(both - (vi){0});
}

/* sum + the product of the first numbers + the product of the second ones, in every lane. */
KERN_INLINE vi pairs_dot(vi sum, pairs a, pairs b)
{
#if KERN_LANES == 16 && defined(__AVX512VNNI__)
    return (vi)_mm512_dpwssd_epi32((__m512i)sum, a, b);
#elif KERN_LANES == 16
    return sum + (vi)_mm512_madd_epi16(a, b);
#elif KERN_LANES == 8 && defined(__AVXVNNI__)
    return (vi)_mm256_dpwssd_avx_epi32((__m256i)sum, a, b);
#elif KERN_LANES == 8
    return sum + (vi)_mm256_madd_epi16(a, b);
#elif defined(KERN_NEON)
    int16x8_t x = (int16x8_t)a, y = (int16x8_t)b;
    int32x4_t low = vmull_s16(vget_low_s16(x), vget_low_s16(y)), high = vmull_high_s16(x, y);
    return sum + (vi)vpaddq_s32(low, high);
#else
    return sum + ((a << 16) >> 16) * ((b << 16) >> 16) + (a >> 16) * (b >> 16);
#endif
}

/* Sums of four products in every lane: bytes of a without sign by bytes of b with one. Without instructions that
 * add to 32 bits sums have 16, two in a lane, enough for a group whose a are nibbles. */
#if KERN_LANES >= 8 && !defined(__AVX512VNNI__) && !defined(__AVXVNNI__)
enum { QUADS_NARROW = 1 };
#else
enum { QUADS_NARROW = 0 };
#endif

KERN_INLINE vi quads_add(vi sums, pairs a, pairs b)
{
#if KERN_LANES == 16 && defined(__AVX512VNNI__)
    return (vi)_mm512_dpbusd_epi32((__m512i)sums, a, b);
#elif KERN_LANES == 16
    return (vi)_mm512_add_epi16((__m512i)sums, _mm512_maddubs_epi16(a, b));
#elif KERN_LANES == 8 && defined(__AVXVNNI__)
    return (vi)_mm256_dpbusd_avx_epi32((__m256i)sums, a, b);
#elif KERN_LANES == 8
    return (vi)_mm256_add_epi16((__m256i)sums, _mm256_maddubs_epi16(a, b));
#elif defined(__ARM_FEATURE_MATMUL_INT8)
    return (vi)vusdotq_s32((int32x4_t)sums, (uint8x16_t)a, (int8x16_t)b);
#elif defined(__ARM_FEATURE_DOTPROD)
    return (vi)vdotq_s32((int32x4_t)sums, (int8x16_t)a, (int8x16_t)b);
#elif defined(KERN_NEON)
    uint8x16_t x = (uint8x16_t)a;
    int8x16_t y = (int8x16_t)b;
    int16x8_t low =
        vmulq_s16(vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(x))), vmovl_s8(vget_low_s8(y)));
    int16x8_t high = vmulq_s16(vreinterpretq_s16_u16(vmovl_high_u8(x)), vmovl_high_s8(y));
    return sums + (vi)vpaddq_s32(vpaddlq_s16(low), vpaddlq_s16(high));
#else
    for (int i = 0; i < 4; i++) {
        sums += (vi)(((vu)a >> (8 * i)) & 255u) * ((b << (24 - 8 * i)) >> 24);
    }
    return sums;
#endif
}

/* Whether a may have bytes above 127: sdot, which Arm has before usdot, takes both with a sign. */
#if defined(__ARM_FEATURE_DOTPROD) && !defined(__ARM_FEATURE_MATMUL_INT8)
enum { QUADS_SIGNED = 1 };
#else
enum { QUADS_SIGNED = 0 };
#endif

/* The sums as numbers of 32 bits. */
KERN_INLINE vi quads_total(vi sums)
{
#if KERN_LANES == 16 && !defined(__AVX512VNNI__)
    return (vi)_mm512_madd_epi16((__m512i)sums, _mm512_set1_epi16(1));
#elif KERN_LANES == 8 && !defined(__AVXVNNI__)
    return (vi)_mm256_madd_epi16((__m256i)sums, _mm256_set1_epi16(1));
#else
    return sums;
#endif
}

/* One group of a block against `columns` columns, whose codes are x and so on, x_stride apart. */
KERN_INLINE void packed_group_q8(
    int columns, vi (*sum)[PACKED_VECTORS], const uint8_t *codes, const int16_t *x, int64_t x_stride)
{
    pairs w[PACKED_VECTORS];
    KERN_UNROLL_SOME
    for (int p = 0; p < PACK_GROUP / 2; p++) {
        KERN_UNROLL
        for (int v = 0; v < PACKED_VECTORS; v++) {
            w[v] = pairs_widen(codes + p * 2 * PACK_ROWS + v * 2 * KERN_LANES);
        }
        KERN_UNROLL
        for (int c = 0; c < columns; c++) {
            pairs xs = pairs_set(x + c * x_stride + 2 * p);
            KERN_UNROLL
            for (int v = 0; v < PACKED_VECTORS; v++) {
                sum[c][v] = pairs_dot(sum[c][v], w[v], xs);
            }
        }
    }
}

/* The same for few columns: every other pair has sums of its own, because one chain is slower than the L3 cache. */
KERN_INLINE void packed_group_few(
    int columns, vi (*sum)[PACKED_VECTORS], const uint8_t *codes, const int16_t *x, int64_t x_stride)
{
    vi odd[PACKED_COLUMNS][PACKED_VECTORS] = {{{0}}};
    KERN_UNROLL_SOME
    for (int p = 0; p < PACK_GROUP / 2; p += 2) {
        KERN_UNROLL
        for (int v = 0; v < PACKED_VECTORS; v++) {
            pairs w = pairs_widen(codes + p * 2 * PACK_ROWS + v * 2 * KERN_LANES);
            pairs next = pairs_widen(codes + (p + 1) * 2 * PACK_ROWS + v * 2 * KERN_LANES);
            KERN_UNROLL
            for (int c = 0; c < columns; c++) {
                const int16_t *at = x + c * x_stride + 2 * p;
                sum[c][v] = pairs_dot(sum[c][v], w, pairs_set(at));
                odd[c][v] = pairs_dot(odd[c][v], next, pairs_set(at + 2));
            }
        }
    }
    KERN_UNROLL
    for (int c = 0; c < columns; c++) {
        KERN_UNROLL
        for (int v = 0; v < PACKED_VECTORS; v++) {
            sum[c][v] += odd[c][v];
        }
    }
}

/* The same for 4 bits, with bytes of x. With few columns high nibbles stay where they are and have their sums, 16 times
 * too large, apart. */
KERN_INLINE void packed_group_q4(
    int columns, vi (*sum)[PACKED_VECTORS], const uint8_t *codes, const int8_t *x, int64_t x_stride)
{
    const bool apart = !QUADS_NARROW && !QUADS_SIGNED && columns <= 2;
    const vu nibbles = vu_set(0x0f0f0f0fu);
    vi low[PACKED_COLUMNS][PACKED_VECTORS], high[PACKED_COLUMNS][PACKED_VECTORS];
    KERN_UNROLL
    for (int c = 0; c < columns; c++) {
        KERN_UNROLL
        for (int v = 0; v < PACKED_VECTORS; v++) {
            low[c][v] = QUADS_NARROW ? (vi){0} : sum[c][v];
            high[c][v] = (vi){0};
        }
    }
    KERN_UNROLL
    for (int q = 0; q < PACK_GROUP / 8; q++) {
        pairs first[PACKED_VECTORS], second[PACKED_VECTORS];
        KERN_UNROLL
        for (int v = 0; v < PACKED_VECTORS; v++) {
            vu w = (vu)pairs_load(codes + q * 4 * PACK_ROWS + v * 4 * KERN_LANES);
            first[v] = (pairs)(w & nibbles);
            second[v] = (pairs)(apart ? w & ~nibbles : (w >> 4) & nibbles);
        }
        KERN_UNROLL
        for (int c = 0; c < columns; c++) {
            const int8_t *at = x + c * x_stride + 8 * q;
            pairs xs = pairs_set(at), others = pairs_set(at + 4);
            KERN_UNROLL
            for (int v = 0; v < PACKED_VECTORS; v++) {
                vi *to = apart ? &high[c][v] : &low[c][v];
                low[c][v] = quads_add(low[c][v], first[v], xs);
                *to = quads_add(*to, second[v], others);
            }
        }
    }
    KERN_UNROLL
    for (int c = 0; c < columns; c++) {
        KERN_UNROLL
        for (int v = 0; v < PACKED_VECTORS; v++) {
            sum[c][v] = QUADS_NARROW ? sum[c][v] + quads_total(low[c][v]) : low[c][v];
            sum[c][v] += apart ? high[c][v] >> 4 : (vi){0};
        }
    }
}

#if defined(__ARM_FEATURE_DOTPROD)
#include "cpu/kernels/packed_dots.h"
#else
enum { PACKED_BY_DOTS = 0 };
KERN_INLINE void packed_group_dots(
    int columns, vi (*sum)[PACKED_VECTORS], const uint8_t *codes, const int16_t *x, int64_t x_stride)
{
    (void)columns, (void)sum, (void)codes, (void)x, (void)x_stride;
}
#endif

KERN_INLINE void packed_group(enum dtype type, int columns, vi (*sum)[PACKED_VECTORS],
    const uint8_t *codes, const struct kern_rounded *x, int64_t c, int64_t g)
{
    const int64_t x_stride = x->n_groups * PACK_GROUP, at = c * x_stride + g * PACK_GROUP;
    if (type == DTYPE_Q8 && PACKED_BY_DOTS) {
        packed_group_dots(columns, sum, codes, x->codes + at, x_stride);
    } else if (type == DTYPE_Q8 && columns <= PACKED_COLUMNS / 2) {
        packed_group_few(columns, sum, codes, x->codes + at, x_stride);
    } else if (type == DTYPE_Q8) {
        packed_group_q8(columns, sum, codes, x->codes + at, x_stride);
    } else {
        packed_group_q4(columns, sum, codes, x->bytes + at, x_stride);
    }
}

/* One block against columns c .. of x. */
KERN_INLINE void packed_tile(enum dtype type, int columns, float *y, int64_t y_stride, int64_t n_rows,
    const uint8_t *block, size_t scale_bytes, const struct kern_rounded *x, int64_t c)
{
    vf out[PACKED_COLUMNS][PACKED_VECTORS];
    const uint8_t *group = block + scale_bytes;
    const size_t group_bytes = PACK_ROWS * PACK_GROUP / (type == DTYPE_Q8 ? 1 : 2);
    KERN_UNROLL
    for (int i = 0; i < columns; i++) {
        KERN_UNROLL
        for (int v = 0; v < PACKED_VECTORS; v++) {
            out[i][v] = (vf){0};
        }
    }
    for (int64_t g = 0; g < x->n_groups; g++, group += group_bytes) {
        vi sum[PACKED_COLUMNS][PACKED_VECTORS];
        KERN_UNROLL
        for (int i = 0; i < columns; i++) {
            /* Codes of 4 bits stand 8 too high. */
            int32_t zero = type == DTYPE_Q8 ? 0 : x->zeros[(c + i) * x->n_groups + g];
            KERN_UNROLL
            for (int v = 0; v < PACKED_VECTORS; v++) {
                sum[i][v] = zero - (vi){0};
            }
        }
        if (columns <= 4) {
            KERN_UNROLL
            for (size_t line = 0; line < group_bytes; line += 64) {
                __builtin_prefetch(group + PACKED_AHEAD + line);
            }
        }
        packed_group(type, columns, sum, group, x, c, g);
        KERN_UNROLL
        for (int v = 0; v < PACKED_VECTORS; v++) {
            vf scale =
                vf_bf16((const uint16_t *)(const void *)(block + (g * PACK_ROWS + v * KERN_LANES) * 2));
            KERN_UNROLL
            for (int i = 0; i < columns; i++) {
                vf both = scale * vf_set(x->scales[(c + i) * x->n_groups + g]);
                out[i][v] = vf_fma(__builtin_convertvector(sum[i][v], vf), both, out[i][v]);
            }
        }
    }
    KERN_UNROLL
    for (int i = 0; i < columns; i++) {
        KERN_UNROLL
        for (int v = 0; v < PACKED_VECTORS; v++) {
            int64_t left = n_rows - v * KERN_LANES;
            if (left >= KERN_LANES) {
                vf_store(y + (c + i) * y_stride + v * KERN_LANES, out[i][v]);
            } else if (left > 0) {
                vf_store_part(y + (c + i) * y_stride + v * KERN_LANES, out[i][v], left);
            }
        }
    }
}

#if defined(KERN_TILES)
#include "cpu/kernels/packed_tiles.h"
#else
KERN_INLINE int packed_on_tiles(enum dtype type, float *y, int64_t y_stride, const struct weight *w,
    int64_t r0, int64_t r1, const struct kern_rounded *x, int n_c)
{
    (void)type, (void)y, (void)y_stride, (void)w, (void)r0, (void)r1, (void)x, (void)n_c;
    return 0;
}
#endif

KERN_INLINE void packed(enum dtype type, float *y, int64_t y_stride, const struct weight *w, int64_t r0,
    int64_t r1, const struct kern_rounded *x, int n_c)
{
    size_t block_bytes = pack_block_bytes(type, w->cols), scale_bytes = pack_scale_bytes(w->cols);
    const int n_done = packed_on_tiles(type, y, y_stride, w, r0, r1, x, n_c);
    for (int64_t r = r0; r < r1 && n_done < n_c; r += PACK_ROWS) {
        const uint8_t *block = (const uint8_t *)w->data + (size_t)(r / PACK_ROWS) * block_bytes;
        int64_t n = r1 - r;
        int c = n_done;
        for (; c + PACKED_COLUMNS <= n_c; c += PACKED_COLUMNS) {
            packed_tile(type, PACKED_COLUMNS, y + r, y_stride, n, block, scale_bytes, x, c);
        }
        for (; PACKED_COLUMNS > 4 && c + 4 <= n_c; c += 4) {
            packed_tile(type, 4, y + r, y_stride, n, block, scale_bytes, x, c);
        }
        for (; PACKED_COLUMNS > 2 && c + 2 <= n_c; c += 2) {
            packed_tile(type, 2, y + r, y_stride, n, block, scale_bytes, x, c);
        }
        for (; c < n_c; c++) {
            packed_tile(type, 1, y + r, y_stride, n, block, scale_bytes, x, c);
        }
    }
}

static void packed_q8(float *y, int64_t y_stride, const struct weight *w, int64_t r0, int64_t r1,
    const struct kern_rounded *x, int n_c)
{
    packed(DTYPE_Q8, y, y_stride, w, r0, r1, x, n_c);
}

static void packed_q4(float *y, int64_t y_stride, const struct weight *w, int64_t r0, int64_t r1,
    const struct kern_rounded *x, int n_c)
{
    packed(DTYPE_Q4, y, y_stride, w, r0, r1, x, n_c);
}

/* ---- Rounding ---- */

enum { ROUND_VECTORS = PACK_GROUP / KERN_LANES };

/* One group: codes of at most `reach`, and the scale, which is returned. A NaN makes the scale NaN. */
KERN_INLINE float round_group(vi *codes, const float *x, float reach)
{
    const int32_t no_number = 0x7f800000; /* and what is infinite: from here on */
    vf v[ROUND_VECTORS];
    vi most = {0};
    KERN_UNROLL
    for (int i = 0; i < ROUND_VECTORS; i++) {
        v[i] = vf_load(x + i * KERN_LANES);
        most = vi_max((vi)vf_abs(v[i]), most);
    }
    int32_t bits = vi_largest(most);
    float largest;
    memcpy(&largest, &bits, sizeof largest);
    bool some = bits < no_number && largest > 1e-30f;
    float inverse = some ? reach / largest : 0;
    KERN_UNROLL
    for (int i = 0; i < ROUND_VECTORS; i++) {
        const vf round = vf_set(0x1.8p23f); /* adding it rounds to an integer */
        codes[i] = ((vi)(v[i] * inverse + round) - (vi)round) & (bits < no_number ? -1 : 0);
    }
    return bits < no_number ? some ? largest / reach : 0 : NAN;
}

/* Group g of n_k numbers: where it is, or in `part` with zeros behind its end. */
KERN_INLINE const float *round_from(float *part, const float *x, int64_t n_k, int64_t g)
{
    if (n_k - g * PACK_GROUP >= PACK_GROUP) {
        return x + g * PACK_GROUP;
    }
    memset(part, 0, PACK_GROUP * sizeof *part);
    memcpy(part, x + g * PACK_GROUP, (size_t)(n_k - g * PACK_GROUP) * sizeof *x);
    return part;
}

static void round_q8(const struct kern_rounded *to, int c, const float *x, int64_t n_k)
{
    typedef int16_t shorts __attribute__((vector_size(2 * KERN_LANES)));
    int64_t first = c * to->n_groups;
    for (int64_t g = 0; g < to->n_groups; g++) {
        float part[PACK_GROUP];
        vi codes[ROUND_VECTORS];
        to->scales[first + g] = round_group(codes, round_from(part, x, n_k, g), 32767);
        KERN_UNROLL
        for (int i = 0; i < ROUND_VECTORS; i++) {
            shorts narrow = __builtin_convertvector(codes[i], shorts);
            memcpy(to->codes + (first + g) * PACK_GROUP + i * KERN_LANES, &narrow, sizeof narrow);
        }
    }
}

/* Bytes of a group in the order that struct kern_rounded has. */
KERN_INLINE void round_bytes(int8_t *to, const vi *codes)
{
#if KERN_LANES == 16
    const __m128i order = _mm_setr_epi8(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15);
    for (int i = 0; i < ROUND_VECTORS; i++) {
        __m128i bytes = _mm_shuffle_epi8(_mm512_cvtepi32_epi8((__m512i)codes[i]), order);
        _mm_storeu_si128((__m128i *)(void *)(to + i * KERN_LANES), bytes);
    }
#elif KERN_LANES == 8
    __m256i first = _mm256_packs_epi32((__m256i)codes[0], (__m256i)codes[1]),
            last = _mm256_packs_epi32((__m256i)codes[2], (__m256i)codes[3]);
    __m256i all = _mm256_packs_epi16(first, last); /* columns 0 .. 3 of each eight, then their 4 .. 7 */
    __m128i low = _mm256_castsi256_si128(all), high = _mm256_extracti128_si256(all, 1);
    _mm_storeu_si128((__m128i *)(void *)to, _mm_unpacklo_epi8(low, high));
    _mm_storeu_si128((__m128i *)(void *)(to + 16), _mm_unpackhi_epi8(low, high));
#else
    for (int i = 0; i < PACK_GROUP; i++) {
        int column = i / 8 * 8 + i % 8 / 4 * 2 + i % 2 * 4 + i % 4 / 2;
        to[i] = (int8_t)codes[column / KERN_LANES][column % KERN_LANES];
    }
#endif
}

static void round_q4(const struct kern_rounded *to, int c, const float *x, int64_t n_k)
{
    int64_t first = c * to->n_groups;
    for (int64_t g = 0; g < to->n_groups; g++) {
        float part[PACK_GROUP];
        vi codes[ROUND_VECTORS], total = {0};
        to->scales[first + g] = round_group(codes, round_from(part, x, n_k, g), 127);
        KERN_UNROLL
        for (int i = 0; i < ROUND_VECTORS; i++) {
            total += codes[i];
        }
        to->zeros[first + g] = -8 * vi_sum(total);
        round_bytes(to->bytes + (first + g) * PACK_GROUP, codes);
    }
}
