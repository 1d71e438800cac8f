/* SPDX-License-Identifier: Apache-2.0
 * Vectors of several lanes between blocks. Who has an element makes of it what the tensor cores take, two numbers of
 * bf16 whose sum it is, and tells that: so a reader's registers are filled by its loads alone, and nobody splits the
 * same number twice. A word holds the upper parts of two neighbouring elements, or what is left of both; a thread's
 * 16 bytes of a unit are one load.
 *
 * Elements are told times 2^-32, so that the highest bit of each exponent is free: the second number's is the mark,
 * the first one's says that the pair is no number (or as large as 2^32). Sums are multiplied by 2^32, which changes
 * nothing else: a lane's bits stay those of persistent/product.cuh.
 *
 * Behind a vector that a norm stands before stand the sums of squares of four elements each, marked by their signs.
 * */
#ifndef CUDA_PERSISTENT_LANES_LANES_VECTOR_CUH
#define CUDA_PERSISTENT_LANES_LANES_VECTOR_CUH

#include "cuda/persistent/embed.cuh"
#include "cuda/persistent/lanes/lanes_args.h"
#include "cuda/persistent/lanes/lanes_layout_body.h"

#define LANES_DOWN 0x1p-32f
#define LANES_UP 0x1p32f

enum { LANES_MARK_BIT = 30, LANES_BAD = 1 << 14 };

/* The utterances of a launch, as one block sees them. */
struct lanes_launch {
    const struct frame_lanes_args *args;
    int n;       /* utterances */
    int chooses; /* the one whose codes this block chooses, or -1 */
};

/* Turns the mark of a kind: the new one is written and waited for. Every thread of every block calls it once for
 * every use. */
DEV uint32_t lanes_mark(struct block &b, enum lanes_kind kind)
{
    const int bit = b.set * LANES_N_KINDS + kind;
    b.marks ^= 1u << bit;
    return b.marks >> bit & 1;
}

template <int KIND> DEV uint32_t *lanes_at(const struct block &b)
{
    constexpr int ALL = lanes_kind_at(LANES_N_KINDS), AT = lanes_kind_at(KIND);
    return b.args->scratch.words + b.set * ALL + AT;
}

/* ---- Telling ---- */

/* Two neighbouring elements as words. */
struct lanes_pair {
    uint32_t upper, lower;
};

DEV struct lanes_pair lanes_split(float v0, float v1, uint32_t mark)
{
    v0 = dev_mul(v0, LANES_DOWN), v1 = dev_mul(v1, LANES_DOWN);
    const uint32_t upper = pack_bf16(v0, v1), lower = pack_bf16(v0 - numeric_from_bits(upper << 16),
                                                  v1 - numeric_from_bits(upper & 0xffff0000u));
    const bool good = fabsf(v0) < 1.0f && fabsf(v1) < 1.0f;
    mark <<= LANES_MARK_BIT;
    return good ? (struct lanes_pair){upper | mark, lower | mark}
                : (struct lanes_pair){LANES_BAD | mark, mark};
}

/* Element `element` of a lane, where `mine`; neighbouring threads have neighbouring elements, and all of a warp come
 * here. */
template <int UNITS>
DEV void lanes_put(
    const struct block &b, uint32_t *words, int lane, int element, float v, bool mine, uint32_t mark)
{
    const float other = dev_xor(v, 1);
    const bool odd = b.lane & 1;
    const struct lanes_pair pair = lanes_split(odd ? other : v, odd ? v : other, mark);
    if (mine) {
        dev_put(words + lanes_word_at(UNITS, lane, element, odd), odd ? pair.lower : pair.upper);
    }
}

/* The squares of four neighbouring threads' elements of a state, by the first of them. */
template <int W>
DEV void lanes_put_square(
    const struct block &b, uint32_t *words, int lane, int element, float x, bool mine, uint32_t mark)
{
    const float next = dev_xor(x, 1), two = fmaf(x, x, dev_mul(next, next)),
                four = two + dev_xor(two, 2);
    if (mine && b.lane % 4 == 0) {
        dev_put(words + lanes_square_at(W, lane, element),
            (numeric_to_bits(four) & 0x7fffffffu) | mark << 31);
    }
}

/* A whole state of one lane by its block, which has it as vector_index() says, times the norm's weight. */
template <int W>
DEV void lanes_put_state(const struct block &b, uint32_t *words, int lane,
    const float (&x)[LAYER_EACH(W)], const float (&weight)[LAYER_EACH(W)], uint32_t mark)
{
#pragma unroll
    for (int i = 0; i < LAYER_EACH(W); i += 4) {
        const int element = vector_index(b, i / 4);
        float v[4];
        layer_times(x + i, weight + i, v);
#pragma unroll
        for (int j = 0; j < 4; j += 2) {
            const struct lanes_pair pair = lanes_split(v[j], v[j + 1], mark);
            dev_put(words + lanes_word_at(W / FRAME_UNIT_K, lane, element + j, 0), pair.upper);
            dev_put(words + lanes_word_at(W / FRAME_UNIT_K, lane, element + j, 1), pair.lower);
        }
        dev_put(words + lanes_square_at(W, lane, element),
            (numeric_to_bits(layer_squares(x + i)) & 0x7fffffffu) | mark << 31);
    }
}

/* ---- Taking ---- */

/* Of a thread's 16 bytes: all marks are there. bit: the mark's. */
DEV uint32_t lanes_ready(const uint4 &v, uint32_t mark, int bit)
{
    const uint32_t flip = mark - 1; /* all ones for mark 0 */
    return ((v.x ^ flip) & (v.y ^ flip) & (v.z ^ flip) & (v.w ^ flip)) >> bit & 1;
}

/* Marks off; what was no number becomes none: neither is the lane's sum. BITS: what a word has beside its mark. */
template <int N, uint32_t BITS> DEV void lanes_unmark(uint4 (&x)[N], int n)
{
    uint32_t any = 0;
#pragma unroll
    for (int i = 0; i < N; i++) {
        uint4 &v = x[i];
        const uint32_t rest = i < n ? BITS : 0x7fffffffu;
        v.x &= rest, v.y &= rest, v.z &= rest, v.w &= rest;
        any |= i < n ? (v.x | v.y | v.z | v.w) : 0;
    }
    if (any & LANES_BAD) {
#pragma unroll
        for (int i = 0; i < N; i++) {
            if (i < n && ((x[i].x | x[i].y | x[i].z | x[i].w) & LANES_BAD)) {
                x[i] = (uint4){0x7fc07fc0u, 0x7fc07fc0u, 0x7fc07fc0u, 0x7fc07fc0u};
            }
        }
    }
}

/* N neighbouring units of a vector from `unit` of `units` on, and where CHUNKS is not 0 what stands behind it: of a
 * thread, 16 bytes of each. Those of lanes that are not there are 0. One thread of a warp waits for its first alone,
 * for words that are asked for in vain stand in the way of those that are told; then all are on their way at once. */
template <int N, int CHUNKS>
DEV void lanes_take(const struct block &b, const struct lanes_launch &lanes, const uint32_t *words,
    int units, int unit, uint32_t mark, uint4 (&x)[LANES_FOURS][N + CHUNKS])
{
    constexpr int EACH = N + CHUNKS, ALL = LANES_FOURS * EACH;
    constexpr uint32_t GROUP = (1u << EACH) - 1;
    static_assert(ALL < 32, "a bit for each");
    const uint32_t *at = words + unit * LANES_UNIT_WORDS + b.warp * 128 + b.lane * 4,
                   *behind = words + lanes_vector_words(units) + b.warp * 128 + b.lane * 4;
    uint32_t missing = 0;
#pragma unroll
    for (int f = 0; f < LANES_FOURS; f++) {
        missing |= 4 * f + b.lane / 8 < lanes.n ? GROUP << f * EACH : 0;
        for (int i = 0; i < EACH; i++) {
            x[f][i] = (uint4){0, 0, 0, 0};
        }
    }
    uint32_t first = b.lane == 0;
    while (first && !block_is_late(b)) {
        dev_get4_if(first, N > 0 ? at : behind, x[0][0]);
        dev_wait_for(x[0][0].x);
        first &= ~lanes_ready(x[0][0], mark, N > 0 ? LANES_MARK_BIT : 31);
    }
    dev_bar_warp();
    missing &= ~(uint32_t)(b.lane == 0);
    while (missing && !block_is_late(b)) {
#pragma unroll
        for (int i = 0; i < ALL; i++) {
            const int f = i / EACH, k = i % EACH;
            dev_get4_if(missing >> i & 1,
                k < N ? at + (f * units + k) * LANES_UNIT_WORDS
                      : behind + (f * CHUNKS + k - N) * LANES_UNIT_WORDS,
                x[f][k]);
        }
#pragma unroll
        for (int i = 0; i < ALL; i++) {
            dev_wait_for(x[i / EACH][i % EACH].x);
        }
#pragma unroll
        for (int i = 0; i < ALL; i++) {
            const int bit = i % EACH < N ? LANES_MARK_BIT : 31;
            missing &= ~(lanes_ready(x[i / EACH][i % EACH], mark, bit) << i);
        }
    }
    dev_bar_warp(); /* the tensor cores want all threads of a warp together */
#pragma unroll
    for (int f = 0; f < LANES_FOURS; f++) {
        lanes_unmark<EACH, ~(1u << LANES_MARK_BIT)>(x[f], N);
    }
}

/* The sums of squares of this warp's columns, behind N units -> shared->squares, in the order of dev_warp_sum; eight
 * threads have a lane. */
template <int N, int CHUNKS>
DEV void lanes_squares(const struct block &b, const uint4 (&x)[LANES_FOURS][N + CHUNKS])
{
#pragma unroll
    for (int f = 0; f < LANES_FOURS; f++) {
        float part[4] = {0, 0, 0, 0};
#pragma unroll
        for (int i = N; i < N + CHUNKS; i++) {
            part[0] += numeric_from_bits(x[f][i].x), part[1] += numeric_from_bits(x[f][i].y);
            part[2] += numeric_from_bits(x[f][i].z), part[3] += numeric_from_bits(x[f][i].w);
        }
        float sum = (part[0] + part[2]) + (part[1] + part[3]);
        for (int mask = 4; mask > 0; mask >>= 1) {
            sum += dev_xor(sum, mask);
        }
        if (b.lane % 8 == 0 && 4 * f + b.lane / 8 < LANES) {
            ptx_follows(b.shared->squares);
            b.shared->squares[4 * f + b.lane / 8][b.warp] = sum;
        }
    }
}

/* ---- Products ---- */

template <class S> struct lanes_product {
    float d[LANES_FOURS][S::RUNS][S::CHAINS][4];
};

/* Units FIRST to FIRST + N of the product, in the order of product(); x: the vector from FIRST on, HAVE of which are
 * its own. */
template <class S, int FIRST, int N, int HAVE>
DEV void lanes_multiply(
    struct block &b, struct held<S> &h, struct lanes_product<S> &p, const uint4 (&x)[LANES_FOURS][HAVE])
{
    const bool half = b.index % 2; /* of a run that is cut, where others are not */
#pragma unroll
    for (int u = FIRST; u < FIRST + N; u++) {
        const bool whole = u < S::WHOLE * S::K;
        const int run = whole ? u / S::K : S::WHOLE, k = whole ? u % S::K : u - S::WHOLE * S::K;
#pragma unroll
        for (int f = 0; f < LANES_FOURS; f++) {
            uint4 v = x[f][HAVE == S::UNITS ? u : k - FIRST];
            if (!whole && S::WHOLE > 0) {
                const uint4 &other = x[f][S::CUT + k];
                v = (uint4){half ? other.x : v.x, half ? other.y : v.y, half ? other.z : v.z,
                    half ? other.w : v.w};
            }
            product_unit<S>(p.d[f][run], h, u % S::HELD, k, v);
        }
        if (u + S::HELD < S::UNITS) {
            product_load<S, true>(b, h, u + S::HELD);
        }
    }
}

/* -> shared->sums, as product() leaves them but for the factor. */
template <class S> DEV void lanes_note(struct block &b, const struct lanes_product<S> &p)
{
    static_assert(LANES * product_stride(S::ROWS) <= FRAME_SUM_FLOATS, "the sums do not fit");
    const int group = b.lane / 4, quarter = b.lane % 4;
    b.turn ^= 1; /* some may still add the sums of the product before */
#pragma unroll
    for (int f = 0; f < LANES_FOURS; f++) {
        float *sums = b.shared->sums[b.turn] + (4 * f + quarter) * product_stride(S::ROWS) +
                      b.warp * S::ROWS + group;
#pragma unroll
        for (int run = 0; run < S::RUNS; run++) {
            float low = 0, high = 0;
#pragma unroll
            for (int i = 0; i < S::CHAINS; i++) {
                const float(&sum)[4] = p.d[f][run][i];
                low += sum[0] + sum[1];
                high += sum[2] + sum[3];
            }
            sums[run * 16] = low;
            sums[run * 16 + 8] = high;
        }
    }
}

/* The sum of one of this block's rows. */
template <int ROWS> DEV float lanes_sum(const struct block &b, int lane, int row)
{
    return product_sum<ROWS>(b, lane, row) * LANES_UP;
}

#endif
