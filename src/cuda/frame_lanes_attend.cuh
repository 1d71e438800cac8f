/* SPDX-License-Identifier: Apache-2.0
 * Attention of several lanes. That of the predictor is done by one block for each lane and kv head; the talker's pages
 * are dealt out to all blocks of a kv head, lane by lane, and the parts joined by that one.
 * Reads: LANES_X_QKV, caches. Writes: caches, LANES_X_MIXED. */
#ifndef CUDA_FRAME_LANES_ATTEND_CUH
#define CUDA_FRAME_LANES_ATTEND_CUH

#include "cuda/frame_lanes_vector.cuh"

/* What this block has mixed for a lane: a dimension a thread. */
template <enum lanes_kind KIND>
DEV void lanes_put_mixed(struct block &b, int lane, float mixed, uint32_t mark)
{
    lanes_put<FRAME_KV_HEADS>(b, lanes_at<KIND>(b), lane, b.kv_head * FRAME_UNIT_K + b.thread,
        exchange_rounded(mixed), true, mark);
}

/* Rotary angles of each lane's own position; read after the next barrier. */
DEV void lanes_angles(struct block &b, const struct crowd &crowd, const float *freq)
{
    for (int t = b.thread; t < 64 * crowd.n; t += FRAME_THREADS) {
        float angle = (float)crowd.args->lane[t / 64].position * freq[t % 64];
        b.shared->cosine[t / 64][t % 64] = cosf(angle);
        b.shared->sine[t / 64][t % 64] = sinf(angle);
    }
}

/* What this block's lane, if it has one, mixes of the predictor's few keys -> words of KIND; the mark. */
template <enum lanes_kind KIND>
DEV uint32_t lanes_attend_predictor(struct block &b, const struct crowd &crowd,
    struct attend_kept &kept, const struct attend_norm &norm, uint32_t mark, int position)
{
    const uint32_t mixed_mark = lanes_mark(b, KIND);
    if (b.part < crowd.n) { /* lanes fall to the first parts */
        float mixed[1];
        attend_predictor<1>(b, kept, norm,
            lanes_at<LANES_X_QKV>(b) + (b.kv_head * LANES + b.part) * FRAME_GROUP, mark, position,
            mixed);
        lanes_put_mixed<KIND>(b, b.part, mixed[0], mixed_mark);
    }
    return mixed_mark;
}

/* The part of a lane's pages that this block has: the first part is another block's for each lane, for most lanes have
 * few. */
DEV int lanes_part(const struct block &b, int c)
{
    return (b.part + (FRAME_PARTS - 2) * c) % FRAME_PARTS;
}

DEV uint32_t *lanes_split_at(const struct block &b, int c)
{
    const int at = c * FRAME_BLOCKS + b.kv_head * FRAME_PARTS + lanes_part(b, c);
    return lanes_at<LANES_X_SPLIT>(b) + at * 2 * FRAME_SPLIT;
}

/* The lowest bit of a set, which it leaves. */
DEV int lanes_next(uint32_t &set)
{
    const int c = dev_popcount((set & (0 - set)) - 1);
    set &= set - 1;
    return c;
}

/* Queries of all lanes -> shared->placed, and the keys and values that this block keeps. A barrier must follow. */
DEV void lanes_place(
    struct block &b, const struct crowd &crowd, const struct attend_norm &norm, uint32_t mark)
{
    enum { EACH = (LANES + 1) / 2 };
    const int role = b.warp % 4;
    const uint32_t flip = mark - 1;
    const uint32_t *words =
        lanes_at<LANES_X_QKV>(b) + b.kv_head * LANES * FRAME_GROUP + role * FRAME_HEAD + 2 * b.lane;
    uint32_t wanted = 0, missing;
    uint2 v[EACH][2];
    for (int i = 0; i < EACH; i++) {
        const int c = b.warp / 4 + 2 * i;
        const bool mine =
            c < crowd.n &&
            (role < 2 || crowd.args->lane[c].position / CUDA_PAGE % FRAME_PARTS == lanes_part(b, c));
        wanted |= (uint32_t)mine << i;
    }
    missing = wanted;
    do {
        for (int i = 0; i < EACH; i++) {
            if (missing >> i & 1) {
                v[i][0] = dev_get2(words + (b.warp / 4 + 2 * i) * FRAME_GROUP);
                v[i][1] = dev_get2(words + (b.warp / 4 + 2 * i) * FRAME_GROUP + 64);
            }
        }
        for (int i = 0; i < EACH; i++) {
            const uint32_t ready =
                (v[i][0].x ^ flip) & (v[i][0].y ^ flip) & (v[i][1].x ^ flip) & (v[i][1].y ^ flip);
            missing &= ~((ready & 1) << i);
        }
    } while (missing && !block_is_late(b));
    dev_bar_warp();
    for (int i = 0; i < EACH; i++) {
        if (wanted >> i & 1) {
            const uint2 first = {v[i][0].x & ~1u, v[i][0].y & ~1u},
                        second = {v[i][1].x & ~1u, v[i][1].y & ~1u};
            attend_place_head(
                b, norm, b.args->weights.talker_eps, role, b.warp / 4 + 2 * i, first, second);
        }
    }
}

/* As many lanes as go side by side; those behind the first n are the first again. More have no registers. */
enum { LANES_ONCE = 2 };

/* Lanes whose part has keys -> LANES_X_SPLIT. Their first pages go side by side. */
DEV void lanes_split(struct block &b, const struct crowd &crowd, const int (&lane)[LANES_ONCE], int n,
    int layer, uint32_t mark)
{
    static_assert(LANES_ONCE * ATTEND_ALL_FLOATS * 4 <= FRAME_VECTOR_BYTES, "as many lanes at once");
    float *all = (float *)b.shared->vector;
    struct attend_ahead now[LANES_ONCE];
    struct attend_part part[LANES_ONCE];
#pragma unroll
    for (int i = 0; i < LANES_ONCE; i++) {
        const auto &of = crowd.args->lane[lane[i]];
        attend_ask(b, of.state, now[i], layer, lanes_part(b, lane[i]), of.position);
    }
#pragma unroll
    for (int i = 0; i < LANES_ONCE; i++) {
        const auto &of = crowd.args->lane[lane[i]];
        part[i] = attend_nothing();
        attend_fresh(b, of.state, now[i], lane[i], layer, lanes_part(b, lane[i]), of.position);
    }
#pragma unroll
    for (int k = 0; k < 2; k++) {
#pragma unroll
        for (int i = 0; i < LANES_ONCE; i++) {
            const int key = attend_key_of(b, lanes_part(b, lane[i]), k);
            attend_key(b, part[i], lane[i], now[i].k[k], now[i].v[k],
                key <= crowd.args->lane[lane[i]].position);
        }
    }
#pragma unroll
    for (int i = 0; i < LANES_ONCE; i++) {
        const auto &of = crowd.args->lane[lane[i]];
        const int page = lanes_part(b, lane[i]) + FRAME_PARTS;
        if (page * CUDA_PAGE <= of.position) {
            attend_ask(b, of.state, now[i], layer, page, of.position);
            attend_pages(b, of.state, now[i], part[i], lane[i], layer, page, of.position);
        }
        attend_note(b, part[i], all + i * ATTEND_ALL_FLOATS);
    }
    dev_bar();
#pragma unroll
    for (int i = 0; i < LANES_ONCE; i++) {
        if (i < n) {
            attend_put_split(b, all + i * ATTEND_ALL_FLOATS, lanes_split_at(b, lane[i]), mark);
        }
    }
    dev_bar(); /* before the memory is used again */
}

/* Words of parts without keys are read by nobody, but must not stay behind their kind. With an even number of layers
 * they do not: a frame turns the mark as often, so what is left of another frame is not what is waited for. */
DEV void lanes_put_nothing(
    const struct block &b, const struct crowd &crowd, uint32_t busy, uint32_t mark)
{
    for (int c = 0; c < crowd.n; c++) {
        uint32_t *words = lanes_split_at(b, c);
        for (int i = b.thread; !(busy >> c & 1) && i < 2 * FRAME_SPLIT; i += FRAME_THREADS) {
            exchange_put(words + i, 0, mark);
        }
    }
}

/* This block's pages of all lanes -> LANES_X_SPLIT; the mark. */
DEV uint32_t lanes_splits(struct block &b, const struct crowd &crowd, int layer)
{
    const uint32_t mark = lanes_mark(b, LANES_X_SPLIT);
    uint32_t busy = 0;
    for (int c = 0; c < crowd.n; c++) {
        busy |= (uint32_t)(lanes_part(b, c) < attend_n_parts(crowd.args->lane[c].position)) << c;
    }
    if (b.args->weights.n_talker % 2 != 0) {
        lanes_put_nothing(b, crowd, busy, mark);
    }
    while (busy) {
        const int n = dev_popcount(busy);
        int lane[LANES_ONCE];
        lane[0] = lanes_next(busy);
#pragma unroll
        for (int i = 1; i < LANES_ONCE; i++) {
            lane[i] = busy ? lanes_next(busy) : lane[0];
        }
        lanes_split(b, crowd, lane, n, layer, mark);
    }
    return mark;
}

DEV uint32_t lanes_attend_talker(struct block &b, const struct crowd &crowd,
    const struct attend_norm &norm, uint32_t mark, int layer)
{
    lanes_place(b, crowd, norm, mark);
    block_trace(b, 3);
    dev_bar();
    const uint32_t split_mark = lanes_splits(b, crowd, layer);
    const uint32_t mixed_mark = lanes_mark(b, LANES_X_MIXED);
    if (b.part < crowd.n) {
        const uint32_t *words = lanes_at<LANES_X_SPLIT>(b) +
                                (b.part * FRAME_BLOCKS + b.kv_head * FRAME_PARTS) * 2 * FRAME_SPLIT;
        const float mixed =
            attend_join(b, words, attend_n_parts(crowd.args->lane[b.part].position), split_mark);
        lanes_put_mixed<LANES_X_MIXED>(b, b.part, mixed, mixed_mark);
    }
    return mixed_mark;
}

#endif
