/* SPDX-License-Identifier: Apache-2.0
 * Matrix products with packed weights (weights/pack.h). Contracts in cpu/kern.h. Included by kern_body.h.
 *
 * Columns are rounded to 16 bits, with a scale for each group of PACK_GROUP numbers: next to weights of 8 or 4 bits
 * that is exact. Within a group sums are of whole numbers, the same in every table; groups are added in their
 * order, each with one fused step. Lanes are rows, so nothing is ever added across a vector. */

enum {
    PACKED_VECTORS = PACK_ROWS / KERN_LANES, /* of a block's rows */
    PACKED_COLUMNS = KERN_LANES == 16  ? 8
                     : KERN_LANES == 8 ? 4
                                       : 2,
    PACKED_AHEAD =
        4096, /* bytes that are asked for ahead: the blocks lie in the order they are read in */
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

/* Bits 4 i .. 4 i + 3 of every 16, and where they stand: 16^i times too large. */
KERN_INLINE pairs pairs_nibble(pairs words, int i)
{
    return (pairs)(((vu)words >> (4 * i)) & 0x000f000fu);
}

KERN_INLINE pairs pairs_nibble_there(pairs words, int i)
{
    return (pairs)((vu)words & (0x000f000fu << (4 * i)));
}

/* The same two columns in every lane. */
KERN_INLINE pairs pairs_set(const int16_t *p)
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

/* The same for few columns: every other pair has sums of its own, because one chain is slower than the third cache. */
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

/* The same. With few columns every other nibble stays where it is and has its sums, 16 times too large, apart. */
KERN_INLINE void packed_group_q4(
    int columns, vi (*sum)[PACKED_VECTORS], const uint8_t *codes, const int16_t *x, int64_t x_stride)
{
    bool apart = columns <= PACKED_COLUMNS / 2;
    vi high[PACKED_COLUMNS][PACKED_VECTORS] = {{{0}}};
    pairs w[PACKED_VECTORS];
    for (int q = 0; q < PACK_GROUP / 8; q++) {
        KERN_UNROLL
        for (int v = 0; v < PACKED_VECTORS; v++) {
            w[v] = pairs_load(codes + q * 4 * PACK_ROWS + v * 4 * KERN_LANES);
        }
        KERN_UNROLL
        for (int i = 0; i < 4; i++) {
            bool there = apart && i % 2;
            pairs n[PACKED_VECTORS];
            KERN_UNROLL
            for (int v = 0; v < PACKED_VECTORS; v++) {
                w[v] = apart && i == 2 ? (pairs)((vu)w[v] >> 8) : w[v];
                n[v] = there ? pairs_nibble_there(w[v], 1) : pairs_nibble(w[v], apart ? 0 : i);
            }
            KERN_UNROLL
            for (int c = 0; c < columns; c++) {
                pairs xs = pairs_set(x + c * x_stride + 8 * q + 2 * i);
                KERN_UNROLL
                for (int v = 0; v < PACKED_VECTORS; v++) {
                    vi *to = there ? &high[c][v] : &sum[c][v];
                    *to = pairs_dot(*to, n[v], xs);
                }
            }
        }
    }
    KERN_UNROLL
    for (int c = 0; c < columns && apart; c++) {
        KERN_UNROLL
        for (int v = 0; v < PACKED_VECTORS; v++) {
            sum[c][v] += high[c][v] >> 4;
        }
    }
}

KERN_INLINE void packed_group(enum dtype type, int columns, vi (*sum)[PACKED_VECTORS],
    const uint8_t *codes, const int16_t *x, int64_t x_stride)
{
    if (type == DTYPE_Q8 && columns <= PACKED_COLUMNS / 2) {
        packed_group_few(columns, sum, codes, x, x_stride);
    } else if (type == DTYPE_Q8) {
        packed_group_q8(columns, sum, codes, x, x_stride);
    } else {
        packed_group_q4(columns, sum, codes, x, x_stride);
    }
}

/* One block against columns c .. of x. */
KERN_INLINE void packed_tile(enum dtype type, int columns, float *y, int64_t y_stride, int64_t n_rows,
    const uint8_t *block, size_t scale_bytes, const struct kern_rounded *x, int64_t c)
{
    vf out[PACKED_COLUMNS][PACKED_VECTORS];
    int64_t x_stride = x->n_groups * PACK_GROUP;
    const int16_t *codes = x->codes + c * x_stride;
    const uint8_t *group = block + scale_bytes;
    const size_t group_bytes = PACK_ROWS * PACK_GROUP / (type == DTYPE_Q8 ? 1 : 2);
    KERN_UNROLL
    for (int i = 0; i < columns; i++) {
        KERN_UNROLL
        for (int v = 0; v < PACKED_VECTORS; v++) {
            out[i][v] = (vf){0};
        }
    }
    for (int64_t g = 0; g < x->n_groups; g++, group += group_bytes, codes += PACK_GROUP) {
        vi sum[PACKED_COLUMNS][PACKED_VECTORS];
        KERN_UNROLL
        for (int i = 0; i < columns; i++) {
            /* Codes of 4 bits stand 8 too high. */
            int32_t zero = type == DTYPE_Q8 ? 0 : -8 * x->sums[(c + i) * x->n_groups + g];
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
        packed_group(type, columns, sum, group, codes, x_stride);
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
#include "cpu/kern_packed_tiles.h"
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

/* One group: codes, their sum, and the scale that is returned. A number that is none makes the scale none. */
KERN_INLINE float round_group(int16_t *codes, int32_t *sum, const float *x)
{
    enum { N = PACK_GROUP / KERN_LANES };
    typedef int16_t shorts __attribute__((vector_size(2 * KERN_LANES)));
    vf most = {0}, zeros = {0}, v[N];
    KERN_UNROLL
    for (int i = 0; i < N; i++) {
        v[i] = vf_load(x + i * KERN_LANES);
        most = vf_max(vf_abs(v[i]), most);
        zeros += v[i] * 0.0f;
    }
    float largest = vf_largest(most), rest = vf_sum(zeros), scale;
    scale = largest > 1e-30f ? largest / 32767.0f : 0;
    float inverse = scale > 0 && rest == 0 ? 32767.0f / largest : 0;
    vi total = {0};
    KERN_UNROLL
    for (int i = 0; i < N; i++) {
        vf shifted = v[i] * inverse + 0x1.8p23f;
        vi code = (vi)shifted - (vi)vf_set(0x1.8p23f);
        code = rest == 0 ? code : (vi){0};
        total += code;
        shorts narrow = __builtin_convertvector(code, shorts);
        memcpy(codes + i * KERN_LANES, &narrow, sizeof narrow);
    }
    *sum = vi_sum(total);
    return rest == 0 ? scale : rest;
}

static void round_column(const struct kern_rounded *to, int c, const float *x, int64_t n_k)
{
    int64_t first = c * to->n_groups, whole = n_k / PACK_GROUP;
    for (int64_t g = 0; g < to->n_groups; g++) {
        float part[PACK_GROUP] = {0};
        const float *from = x + g * PACK_GROUP;
        if (g >= whole) {
            memcpy(part, from, (size_t)(n_k - g * PACK_GROUP) * sizeof *x);
            from = part;
        }
        to->scales[first + g] =
            round_group(to->codes + (first + g) * PACK_GROUP, &to->sums[first + g], from);
    }
}
