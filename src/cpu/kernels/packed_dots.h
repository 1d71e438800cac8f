/* SPDX-License-Identifier: Apache-2.0
 * Products of 8-bit weights with 16-bit columns by Arm's dot products of bytes. Included by packed.h.
 *
 * A code of 16 bits is 256 times its high byte, with a sign, and its low byte, without one. The two have sums of their
 * own, which are exact, so the total is the number that every other table has. usdot takes a byte without sign; where
 * there is only sdot, 128 is taken from the low byte, and given back as 128 times the sum of the weights. */

enum {
    PACKED_BY_DOTS = 1,
    DOTS_QUADS = PACK_GROUP / 4, /* elements go four at a time */
};

/* Four elements of KERN_LANES rows side by side, of two pairs as they lie. */
KERN_INLINE int8x16_t dots_weights(const uint8_t *codes, int quad, int v)
{
    const uint8_t *first = codes + quad * 4 * PACK_ROWS + v * 2 * KERN_LANES;
    int16x4_t a = vreinterpret_s16_u8(vld1_u8(first));
    int16x4_t b = vreinterpret_s16_u8(vld1_u8(first + 2 * PACK_ROWS));
    return vreinterpretq_s8_s16(vcombine_s16(vzip1_s16(a, b), vzip2_s16(a, b)));
}

/* The four bytes at p in every lane. */
KERN_INLINE int8x16_t dots_set(const int8_t *p)
{
    int32_t four;
    memcpy(&four, p, sizeof four);
    return vreinterpretq_s8_s32(vdupq_n_s32(four));
}

/* The low and the high bytes of one group's codes. */
KERN_INLINE void dots_split(int8_t *low, int8_t *high, const int16_t *x)
{
    for (int i = 0; i < PACK_GROUP; i += 16) {
        int8x16_t a = vreinterpretq_s8_s16(vld1q_s16(x + i)),
                  b = vreinterpretq_s8_s16(vld1q_s16(x + i + 8));
        int8x16_t bytes = vuzp1q_s8(a, b);
#if !defined(__ARM_FEATURE_MATMUL_INT8)
        bytes = veorq_s8(bytes, vdupq_n_s8(-128));
#endif
        vst1q_s8(low + i, bytes);
        vst1q_s8(high + i, vuzp2q_s8(a, b));
    }
}

/* sums + what the low bytes give. */
KERN_INLINE int32x4_t dots_low(int32x4_t sums, int8x16_t w, int8x16_t x)
{
#if defined(__ARM_FEATURE_MATMUL_INT8)
    return vusdotq_s32(sums, vreinterpretq_u8_s8(x), w);
#else
    return vdotq_s32(sums, w, x);
#endif
}

/* One group of a block against `columns` columns, as packed_group_q8. */
KERN_INLINE void packed_group_dots(
    int columns, vi (*sum)[PACKED_VECTORS], const uint8_t *codes, const int16_t *x, int64_t x_stride)
{
    int8_t low[PACKED_COLUMNS][PACK_GROUP], high[PACKED_COLUMNS][PACK_GROUP];
    for (int c = 0; c < columns; c++) {
        dots_split(low[c], high[c], x + c * x_stride);
    }
    KERN_UNROLL
    for (int v = 0; v < PACKED_VECTORS; v++) {
        int32x4_t lows[PACKED_COLUMNS], highs[PACKED_COLUMNS], weights = vdupq_n_s32(0);
        KERN_UNROLL
        for (int c = 0; c < columns; c++) {
            lows[c] = highs[c] = vdupq_n_s32(0);
        }
        KERN_UNROLL
        for (int q = 0; q < DOTS_QUADS; q++) {
            int8x16_t w = dots_weights(codes, q, v);
#if !defined(__ARM_FEATURE_MATMUL_INT8)
            weights = vdotq_s32(weights, w, vdupq_n_s8(1));
#endif
            KERN_UNROLL
            for (int c = 0; c < columns; c++) {
                lows[c] = dots_low(lows[c], w, dots_set(low[c] + 4 * q));
                highs[c] = vdotq_s32(highs[c], w, dots_set(high[c] + 4 * q));
            }
        }
        KERN_UNROLL
        for (int c = 0; c < columns; c++) {
            int32x4_t both = vaddq_s32(lows[c], vshlq_n_s32(highs[c], 8));
            sum[c][v] += (vi)vaddq_s32(both, vshlq_n_s32(weights, 7));
        }
    }
}
