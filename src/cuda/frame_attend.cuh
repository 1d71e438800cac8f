/* SPDX-License-Identifier: Apache-2.0
 * Reads: queries, keys, values of the pass from the exchange, the caches. Writes: the caches, FRAME_X_MIXED.
 * Shares: the 16 blocks of a kv head all see its two query heads, key and value. The predictor's few keys are
 * attended by each block for its 16 dimensions of one head; the talker's pages are dealt out to the blocks, a key
 * to a warp, and FRAME_X_SPLIT brings the parts together, again 16 dimensions a block.
 * Waits for: FRAME_X_QKV of the kv head; the talker for FRAME_X_SPLIT. */
#ifndef CUDA_FRAME_ATTEND_CUH
#define CUDA_FRAME_ATTEND_CUH

#include "cuda/frame_block.cuh"

/* 1 / sqrt(FRAME_HEAD) */
#define ATTEND_SCALE 0.088388347648318440f
/* The largest score of no keys: finite, so that it stands in a marked word. */
#define ATTEND_NONE -1e30f

/* Rotary angles of a pass; read after the next barrier. */
template <int COLUMNS> DEV void attend_angles(struct block &b, const float *freq, int position)
{
    if (b.thread < 64 * COLUMNS) {
        float angle = (float)(position + b.thread / 64) * freq[b.thread % 64];
        b.shared->cosine[b.thread / 64][b.thread % 64] = cosf(angle);
        b.shared->sine[b.thread / 64][b.thread % 64] = sinf(angle);
    }
}

/* The group's words -> shared->placed: queries and keys normed and rotated. Thread i has word i: 4 warps a head. */
template <int COLUMNS>
DEV void attend_place(struct block &b, const float *q_norm, const float *k_norm, float eps)
{
    const int d = b.thread % FRAME_HEAD, quarter = b.thread / FRAME_HEAD;
    const float *norm = quarter < 2 ? q_norm : k_norm;
    const float weight = norm[d], other_weight = norm[d ^ 64]; /* on their way before the wait */
    uint32_t mark = exchange_mark(b, FRAME_X_QKV);
    const uint32_t *words = exchange_at(b, FRAME_X_QKV) + b.kv_head * FRAME_MAX_COLUMNS * FRAME_GROUP;
    float *raw = b.shared->sums; /* [column][512] */
    float mine[COLUMNS];
    for (int c = 0; c < COLUMNS; c++) {
        mine[c] = exchange_take(b, words + c * FRAME_GROUP + b.thread, mark);
        float squares = dev_warp_sum(mine[c] * mine[c]);
        raw[c * FRAME_GROUP + b.thread] = mine[c];
        if (b.lane == 0) {
            b.shared->squares[c][b.warp] = squares;
        }
    }
    dev_bar();
    for (int c = 0; c < COLUMNS; c++) {
        float placed = mine[c];
        if (quarter < 3) {
            const float *sums = b.shared->squares[c] + quarter * 4;
            float scale =
                1.0f / sqrtf(((sums[0] + sums[1]) + (sums[2] + sums[3])) / (float)FRAME_HEAD + eps);
            float a = weight * (mine[c] * scale);
            float other = other_weight * (raw[c * FRAME_GROUP + (b.thread ^ 64)] * scale);
            float cosine = b.shared->cosine[c][d % 64], sine = b.shared->sine[c][d % 64];
            placed = d < 64 ? a * cosine - other * sine : a * cosine + other * sine;
        }
        b.shared->placed[c][b.thread] = placed;
    }
}

DEV float attend_dot(const float *a, const float (&k)[4])
{
    float q[4];
    block_read4(a, q);
    return dev_warp_sum((q[0] * k[0] + q[1] * k[1]) + (q[2] * k[2] + q[3] * k[3]));
}

/* ---- Predictor ---- */

/* Softmax over the keys up to `position` and the mean of this block's 16 dimensions, by one warp. */
DEV void attend_few(struct block &b, int layer, int column, int position, uint32_t mark)
{
    const int key = b.lane % 16, d = b.lane % 16, half = b.lane / 16;
    float score = key <= position ? b.shared->scores[column][key] : -INFINITY, largest = score;
    for (int mask = 8; mask > 0; mask >>= 1) {
        largest = fmaxf(largest, dev_xor(largest, mask));
    }
    float p = dev_exp(score - largest), mass = p, sum = 0;
    for (int mask = 8; mask > 0; mask >>= 1) {
        mass += dev_xor(mass, mask);
    }
    for (int i = 0; i < 8; i++) {
        float of = dev_from(p, half * 8 + i);
        if (half * 8 + i <= position) {
            sum += of * b.shared->values[layer][half * 8 + i][d];
        }
    }
    sum += dev_xor(sum, 16);
    if (half == 0) {
        exchange_put(
            exchange_at(b, FRAME_X_MIXED) + column * FRAME_MIXED + b.index * 16 + d, sum / mass, mark);
    }
}

/* `position`: of column 0. */
template <int COLUMNS>
DEV void attend_predictor(struct block &b, const struct frame_layer *weights, int layer, int position)
{
    float *keys =
        b.args->scratch.keys +
        (((size_t)b.index * b.args->weights.n_predictor + layer) * FRAME_MAX_POSITIONS + b.warp) *
            FRAME_HEAD +
        b.lane * 4;
    float k[4] = {0, 0, 0, 0};
    if (b.warp < position) { /* this thread wrote them in an earlier pass */
        block_read4(keys, k);
    }
    attend_place<COLUMNS>(b, weights->q_norm, weights->k_norm, b.args->weights.predictor_eps);
    const int d = b.thread - 384 -
                  b.part % 8 * 16; /* the threads that hold this block's dimensions of the value */
    for (int c = 0; c < COLUMNS && d >= 0 && d < 16; c++) {
        b.shared->values[layer][position + c][d] = b.shared->placed[c][b.thread];
    }
    dev_bar();
    if (b.warp >= position && b.warp < position + COLUMNS) {
        block_read4(&b.shared->placed[b.warp - position][256 + b.lane * 4], k);
        block_write4(keys, k);
    }
    for (int c = 0; c < COLUMNS; c++) {
        if (b.warp <= position + c) {
            float score = attend_dot(&b.shared->placed[c][b.part / 8 * FRAME_HEAD + b.lane * 4], k);
            if (b.lane == 0) {
                b.shared->scores[c][b.warp] = score * ATTEND_SCALE;
            }
        }
    }
    const uint32_t mark = exchange_next(b, FRAME_X_MIXED);
    dev_bar();
    if (b.warp < COLUMNS) {
        attend_few(b, layer, b.warp, position + b.warp, mark);
    }
}

/* ---- Talker ---- */

/* What one warp has seen of the keys, for the two query heads: running maximum, mass, 4 dimensions a lane. */
struct attend_part {
    float largest[2], mass[2], sum[2][4];
};

DEV void attend_key(
    const struct block &b, struct attend_part &part, const float (&k)[4], const float (&v)[4])
{
    for (int h = 0; h < 2; h++) {
        float score = attend_dot(&b.shared->placed[0][h * FRAME_HEAD + b.lane * 4], k) * ATTEND_SCALE;
        float largest = fmaxf(part.largest[h], score);
        float keep = dev_exp(part.largest[h] - largest), p = dev_exp(score - largest);
        part.largest[h] = largest;
        part.mass[h] = part.mass[h] * keep + p;
        for (int i = 0; i < 4; i++) {
            part.sum[h][i] = part.sum[h][i] * keep + p * v[i];
        }
    }
}

/* The cache of key `position` in this layer and kv head; values lie CUDA_PAGE * FRAME_HEAD floats behind. */
DEV float *attend_slot(const struct block &b, int layer, int position)
{
    return b.args->state.cache +
           (uint64_t)b.args->state.pages[position / CUDA_PAGE] * b.args->state.page_floats +
           ((size_t)layer * FRAME_KV_HEADS + b.kv_head) * (2 * CUDA_PAGE * FRAME_HEAD) +
           position % CUDA_PAGE * FRAME_HEAD + b.lane * 4;
}

DEV void attend_read(const float *slot, float (&k)[4], float (&v)[4])
{
    block_read4(slot, k);
    block_read4(slot + CUDA_PAGE * FRAME_HEAD, v);
}

/* The warps' parts of this block -> the exchange. `all`: [2][16] maxima, [2][16] masses, [2][16][128] sums. */
DEV void attend_put_split(struct block &b, const struct attend_part &part, uint32_t mark)
{
    float *all = (float *)b.shared->vector;
    for (int h = 0; h < 2; h++) {
        if (b.lane == 0) {
            all[h * 16 + b.warp] = part.largest[h];
            all[32 + h * 16 + b.warp] = part.mass[h];
        }
        for (int i = 0; i < 4; i++) {
            all[64 + (h * 16 + b.warp) * FRAME_HEAD + b.lane * 4 + i] = part.sum[h][i];
        }
    }
    dev_bar();
    if (b.thread < 2 * FRAME_HEAD) {
        const int h = b.thread / FRAME_HEAD, d = b.thread % FRAME_HEAD;
        float largest = ATTEND_NONE, mass = 0, sum = 0;
        for (int w = 0; w < FRAME_WARPS; w++) {
            largest = fmaxf(largest, all[h * 16 + w]);
        }
        for (int w = 0; w < FRAME_WARPS; w++) {
            float share = dev_exp(all[h * 16 + w] - largest);
            mass += share * all[32 + h * 16 + w];
            sum += share * all[64 + (h * 16 + w) * FRAME_HEAD + d];
        }
        uint32_t *words = exchange_at(b, FRAME_X_SPLIT) + (b.index * 2 + h) * FRAME_SPLIT;
        exchange_put(words + d, sum, mark);
        if (d == 0) {
            exchange_put(words + FRAME_HEAD, largest, mark);
            exchange_put(words + FRAME_HEAD + 1, mass, mark);
        }
    }
}

/* All parts of this block's 16 dimensions of one head -> the exchange. */
DEV void attend_join(struct block &b, uint32_t split_mark, uint32_t mark)
{
    float *all = b.shared->sums; /* [part][18]: 16 dimensions, maximum, mass */
    const int split = b.thread / 18, i = b.thread % 18;
    if (split < FRAME_PARTS) {
        const uint32_t *words = exchange_at(b, FRAME_X_SPLIT) +
                                ((b.kv_head * FRAME_PARTS + split) * 2 + b.part / 8) * FRAME_SPLIT;
        all[b.thread] =
            exchange_take(b, words + (i < 16 ? b.part % 8 * 16 + i : FRAME_HEAD + i - 16), split_mark);
    }
    dev_bar();
    if (b.thread < 16) {
        float largest = ATTEND_NONE, mass = 0, sum = 0;
        for (int s = 0; s < FRAME_PARTS; s++) {
            largest = fmaxf(largest, all[s * 18 + 16]);
        }
        for (int s = 0; s < FRAME_PARTS; s++) {
            float share = dev_exp(all[s * 18 + 16] - largest);
            mass += share * all[s * 18 + 17];
            sum += share * all[s * 18 + b.thread];
        }
        exchange_put(exchange_at(b, FRAME_X_MIXED) + b.index * 16 + b.thread, sum / mass, mark);
    }
}

DEV void attend_talker(struct block &b, const struct frame_layer *weights, int layer, int position)
{
    int key = b.part * CUDA_PAGE + b.warp; /* this warp's first; the next is 16 pages on */
    float k[4] = {0, 0, 0, 0}, v[4] = {0, 0, 0, 0};
    if (key < position) {
        attend_read(attend_slot(b, layer, key), k, v);
    }
    attend_place<1>(b, weights->q_norm, weights->k_norm, b.args->weights.talker_eps);
    dev_bar();
    struct attend_part part = {{ATTEND_NONE, ATTEND_NONE}, {0, 0}, {{0}}};
    for (; key <= position; key += FRAME_PARTS * CUDA_PAGE) {
        float next_k[4] = {0, 0, 0, 0}, next_v[4] = {0, 0, 0, 0};
        if (key + FRAME_PARTS * CUDA_PAGE < position) {
            attend_read(attend_slot(b, layer, key + FRAME_PARTS * CUDA_PAGE), next_k, next_v);
        }
        if (key == position) {
            float *slot = attend_slot(b, layer, position);
            block_read4(&b.shared->placed[0][256 + b.lane * 4], k);
            block_read4(&b.shared->placed[0][384 + b.lane * 4], v);
            block_write4(slot, k);
            block_write4(slot + CUDA_PAGE * FRAME_HEAD, v);
        }
        attend_key(b, part, k, v);
        for (int i = 0; i < 4; i++) {
            k[i] = next_k[i];
            v[i] = next_v[i];
        }
    }
    const uint32_t split_mark = exchange_mark(b, FRAME_X_SPLIT), mark = exchange_next(b, FRAME_X_MIXED);
    attend_put_split(
        b, part, split_mark); /* without any key too: words must not stay behind their kind */
    dev_bar();
    attend_join(b, split_mark, mark);
}

#endif
