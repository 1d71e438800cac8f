/* SPDX-License-Identifier: Apache-2.0
 * Attention of several lanes. That of the predictor is done by one block for each lane and kv head, the talker's by
 * two that are a cluster: one has the even pages and the first query head's result, the other one the odd pages and
 * the second head's. Keys and values come through the ring with the weights, a page in a slot or in two half ones, so
 * they are there when the queries are. A lane's numbers are those of persistent/attend.cuh to the last bit: there each
 * of 16 blocks has a part of the pages and each of its warps two keys of a page; here a warp does for a query head what
 * such a block does for both, and keeps apart what its warps would have seen.
 * Reads: LANES_X_QKV, caches. Writes: caches, LANES_X_MIXED. */
#ifndef CUDA_PERSISTENT_LANES_LANES_ATTEND_CUH
#define CUDA_PERSISTENT_LANES_LANES_ATTEND_CUH

#include "cuda/persistent/lanes/lanes_vector.cuh"
#include "cuda/persistent/produce.cuh"

/* What has been mixed for a lane: a dimension of the kv head's two heads a thread, whole warps. */
template <enum lanes_kind KIND>
DEV void lanes_put_mixed(struct block &b, int lane, int dimension, float mixed, uint32_t mark)
{
    lanes_put<FRAME_KV_HEADS>(b, lanes_at<KIND>(b), lane, b.kv_head * FRAME_UNIT_K + dimension,
        exchange_rounded(mixed), true, mark);
}

/* A lane's query heads, key and value of this block's kv head. */
DEV const uint32_t *lanes_heads(const struct block &b, int lane)
{
    return lanes_at<LANES_X_QKV>(b) + (b.kv_head * LANES + lane) * FRAME_GROUP;
}

/* What this block's lane, if it has one, mixes of the predictor's few keys -> words of KIND; the mark. */
template <enum lanes_kind KIND>
DEV uint32_t lanes_attend_predictor(struct block &b, const struct lanes_launch &lanes,
    struct attend_kept &kept, const struct attend_norm &norm, uint32_t mark, int position)
{
    const uint32_t mixed_mark = lanes_mark(b, KIND);
    if (b.part < lanes.n) { /* lanes fall to the first parts */
        float mixed[1];
        attend_predictor<1>(b, kept, norm, lanes_heads(b, b.part), mark, position, mixed);
        lanes_put_mixed<KIND>(b, b.part, b.thread, mixed[0], mixed_mark);
        attend_keep_keys<1>(b, kept, position);
    }
    return mixed_mark;
}

/* ---- Talker ---- */

/* The lane for which this block and its neighbour attend; LANES or more: none. */
DEV int lanes_attended(const struct block &b)
{
    return b.part / 2;
}

/* This block's pages up to a position. */
DEV int lanes_n_pages(const struct block &b, int position)
{
    return (position / CUDA_PAGE + 2 - b.part % 2) / 2;
}

/* Rotary angles of this block's lane; read after the next barrier. */
DEV void lanes_angles(struct block &b, const struct lanes_launch &lanes, const float *freq)
{
    const int lane = lanes_attended(b);
    if (lane < lanes.n) {
        attend_angles<1>(b, freq, lanes.args->lane[lane].position);
    }
}

/* Keys and values of a page, whose layer has them from `keys` on: in a slot, or in one each. */
DEV bool lanes_produce_page(struct block &b, struct producer &p, const unsigned char *keys, int bytes)
{
    const unsigned char *values = keys + LANES_VALUES_AT;
    if (!produce_slot(b, p, (PTX_HALF_SLOTS ? 1 : 2) * (uint32_t)bytes)) {
        return false;
    }
    if (bytes > 0) { /* else its only key is the one of this step */
        produce_copy(b, p, 0, keys, bytes);
        if (!PTX_HALF_SLOTS) {
            produce_copy(b, p, LANES_VALUES_AT, values, bytes);
        }
    }
    ring_next(b, b.slot, b.phase);
    if (PTX_HALF_SLOTS) {
        if (!produce_slot(b, p, (uint32_t)bytes)) {
            return false;
        }
        if (bytes > 0) {
            produce_copy(b, p, 0, values, bytes);
        }
        ring_next(b, b.slot, b.phase);
    }
    return true;
}

/* Keys and values in front of the lane's position, of each page that this block has. */
DEV bool lanes_produce_pages(
    struct block &b, const struct lanes_launch &lanes, struct producer &p, int layer)
{
    if (lanes_attended(b) >= lanes.n) {
        return true;
    }
    const auto &lane = lanes.args->lane[lanes_attended(b)];
    const int n_pages = lanes_n_pages(b, lane.position);
    for (int i = n_pages > 0 ? 0 : -1; i >= 0; i = lanes_page_after(i, n_pages)) {
        const int page = b.part % 2 + 2 * i;
        const int left = lane.position - page * CUDA_PAGE, n = left < CUDA_PAGE ? left : CUDA_PAGE;
        const int bytes = n * FRAME_HEAD * (int)sizeof(float);
        const unsigned char *keys =
            (const unsigned char *)attend_heads_in(b, attend_page(lane.state, page), layer);
        if (!lanes_produce_page(b, p, keys, bytes)) {
            return false;
        }
    }
    return true;
}

/* What the warps of a block would have seen of a part's pages, for this warp's query head: warp lane l has maximum and
 * mass of warp l / 2 % 8, and of all of them 4 dimensions of their sums. */
struct lanes_seen {
    float largest, mass, sum[FRAME_WARPS][4];
};

DEV struct lanes_seen lanes_nothing()
{
    return (struct lanes_seen){ATTEND_NONE, 0, {{0}}};
}

/* This warp's query head, and its place among those that take turns with pages. */
DEV int lanes_head(const struct block &b)
{
    return b.warp % 2;
}

DEV int lanes_turn_of(const struct block &b)
{
    return b.warp / 2;
}

/* Notes of parts for the head of which this block has the result: words as in the exchange, 128 sums, maximum and
 * mass. Marks turn with each layer. */
enum { LANES_NOTES = FRAME_KEY_PARTS * FRAME_SPLIT, LANES_SHARED = 32 };

DEV uint32_t *lanes_note_at(const struct block &b, int part)
{
    return (uint32_t *)b.shared->vector + part * FRAME_SPLIT;
}

/* The sampler's list stands in the same memory, behind the talker: no mark there is that of the first layer. */
DEV void lanes_clear_notes(const struct block &b)
{
    for (int i = b.thread; i < LANES_NOTES; i += FRAME_ALL_THREADS) {
        lanes_note_at(b, 0)[i] = 0;
    }
}

DEV uint32_t lanes_note_mark(int layer)
{
    return (uint32_t)(layer + 1) & 1;
}

/* A warp's own place behind the notes, for numbers that all its threads want. */
DEV float *lanes_shared(const struct block &b)
{
    static_assert((LANES_NOTES + FRAME_WARPS * LANES_SHARED) * 4 <= FRAME_VECTOR_BYTES, "no room");
    return (float *)lanes_note_at(b, FRAME_KEY_PARTS) + b.warp * LANES_SHARED;
}

/* Each warp lane's share of 16 sums -> warp lane l has sum l / 2, added in the order of attend_dots: in each step but
 * the last a thread goes on with half of them. */
DEV float lanes_scatter(const struct block &b, float (&v)[CUDA_PAGE])
{
#pragma unroll
    for (int step = 0; step < 4; step++) {
        const int half = 8 >> step;
        const bool upper = b.lane & 2 * half;
#pragma unroll
        for (int i = 0; i < 8; i++) {
            if (i < half) {
                const float mine = upper ? v[i + half] : v[i], other = upper ? v[i] : v[i + half];
                v[i] = mine + dev_xor(other, 2 * half);
            }
        }
    }
    return v[0] + dev_xor(v[0], 1);
}

/* A page in the ring. `keys`, `values`: this thread's dimensions of its first ones. */
struct lanes_page {
    const float *keys, *values;
    int first; /* its first key's position */
    int n;     /* keys that count */
    int fresh; /* the key of this step, which stands in shared->placed; CUDA_PAGE: it is on another page */
};

/* Key or value (kind 2 or 3, as placed) `key` of the page. */
DEV void lanes_page_read(
    const struct block &b, const struct lanes_page &page, int kind, int key, float (&to)[4])
{
    const float *placed = &b.shared->placed[0][kind * FRAME_HEAD + b.lane * 4];
    block_read4(
        key == page.fresh ? placed : (kind == 3 ? page.values : page.keys) + key * FRAME_HEAD, to);
}

/* The scores of a page's keys for this warp's query head: warp lane l has key l / 2. */
DEV float lanes_scores(const struct block &b, const struct lanes_page &page)
{
    float q[4], share[CUDA_PAGE];
    block_read4(&b.shared->placed[0][lanes_head(b) * FRAME_HEAD + b.lane * 4], q);
#pragma unroll
    for (int key = 0; key < CUDA_PAGE; key++) {
        float k[4];
        lanes_page_read(b, page, 2, key, k);
        share[key] = fmaf(q[0], k[0], dev_mul(q[1], k[1])) + fmaf(q[2], k[2], dev_mul(q[3], k[3]));
    }
    return dev_mul(lanes_scatter(b, share), ATTEND_SCALE);
}

/* Where among the scores of its lane those of this warp's head begin; -1: it is not watched, or the lane looks at
 * nothing. */
DEV int lanes_look_at(const struct block &b, const struct cuda_look &look, int layer, int position)
{
    const int n = cuda_look_rows(&look, position);
    const int at =
        n > 0 ? b.args->control.watched[(layer * FRAME_KV_HEADS + b.kv_head) * 2 + lanes_head(b)] : -1;
    return at < 0 ? -1 : at * n;
}

/* The scores of a page's keys, as lanes_scores has them -> the lane's, from `at` on. */
DEV void lanes_tell(const struct block &b, const struct cuda_look &look, int at,
    const struct lanes_page &page, float score)
{
    const int key = b.lane / 2, position = page.first + key;
    if (b.lane % 2 == 0 && key < page.n && position >= look.begin && position < look.end) {
        look.scores[at + position - look.begin] = score;
    }
}

/* The keys of a page, of which `own` are the scores, join as attend_key has them, key i after key i - 8. What stands
 * behind them, whatever it is, counts for nothing. */
DEV void lanes_see(
    const struct block &b, struct lanes_seen &seen, const struct lanes_page &page, float own)
{
    const float other = dev_xor(own, 16);
    const int key = b.lane / 2, second = b.lane / 16;
    float keep[2], p[2], *shared = lanes_shared(b);
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const float score = second == i ? own : other, largest = fmaxf(seen.largest, score);
        const bool yes = key % 8 + 8 * i < page.n;
        keep[i] = yes ? dev_exp(seen.largest - largest) : 1;
        p[i] = yes ? dev_exp(score - largest) : 0;
        seen.largest = yes ? largest : seen.largest;
        seen.mass = fmaf(seen.mass, keep[i], p[i]);
    }
    const float of_keep = second ? keep[1] : keep[0], of_p = second ? p[1] : p[0];
    shared[b.lane % 2 * CUDA_PAGE + key] = b.lane % 2 ? of_p : of_keep;
    dev_bar_warp();
#pragma unroll
    for (int four = 0; four < CUDA_PAGE; four += 4) {
        float keeps[4], ps[4];
        block_read4(shared + four, keeps);
        block_read4(shared + CUDA_PAGE + four, ps);
#pragma unroll
        for (int j = 0; j < 4; j++) {
            float v[4], (&sum)[4] = seen.sum[(four + j) % FRAME_WARPS];
            lanes_page_read(b, page, 3, four + j, v);
#pragma unroll
            for (int d = 0; d < 4; d++) {
                sum[d] = fmaf(sum[d], keeps[j], dev_mul(ps[j], four + j < page.n ? v[d] : 0));
            }
        }
    }
    dev_bar_warp(); /* before they are written again */
}

/* Four numbers of a note -> the block of this warp's head. */
DEV void lanes_send_four(const struct block &b, uint32_t *mine, const float (&v)[4], uint32_t mark)
{
    uint32_t words[4];
    for (int i = 0; i < 4; i++) {
        words[i] = (numeric_to_bits(v[i]) & ~1u) | mark;
    }
    dev_pair_put4(mine, lanes_head(b), words);
}

/* What has been seen of a part, joined as attend_put_split does -> its note. */
DEV void lanes_note_part(const struct block &b, const struct lanes_seen &seen, int part, uint32_t mark)
{
    float largest = seen.largest, mass = 0, sum[4] = {0, 0, 0, 0};
    float *shared = lanes_shared(b);
    for (int mask = FRAME_KEY_PARTS / 2; mask > 1; mask /= 2) {
        largest = fmaxf(largest, dev_xor(largest, mask));
    }
    const float share = dev_exp(seen.largest - largest);
    shared[b.lane % 2 * CUDA_PAGE + b.lane / 2] = b.lane % 2 ? seen.mass : share;
    dev_bar_warp();
#pragma unroll
    for (int w = 0; w < FRAME_WARPS; w++) {
        const float of = shared[w];
        mass = fmaf(of, shared[CUDA_PAGE + w], mass);
#pragma unroll
        for (int d = 0; d < 4; d++) {
            sum[d] = fmaf(of, seen.sum[w][d], sum[d]);
        }
    }
    lanes_send_four(b, lanes_note_at(b, part) + b.lane * 4, sum, mark);
    if (b.lane == 0) {
        const float about[4] = {largest, mass, 0, 0};
        lanes_send_four(b, lanes_note_at(b, part) + FRAME_HEAD, about, mark);
    }
    dev_bar_warp(); /* before what is shared is written again */
}

/* The key and value of this step -> the cache. */
DEV void lanes_keep_fresh(const struct block &b, float *slot)
{
    for (int i = 0; i < 2; i++) {
        float fresh[4];
        block_read4(&b.shared->placed[0][(2 + i) * FRAME_HEAD + b.lane * 4], fresh);
        block_write4(slot + i * CUDA_PAGE * FRAME_HEAD, fresh);
    }
}

/* Waits for the page that stands next in the ring: where its keys begin, and its values. */
DEV void lanes_await_page(const struct block &b, const float *&keys, const float *&values)
{
    ring_wait(b, b.shared->full, b.slot, b.phase);
    keys = (const float *)(b.ring + b.slot * b.args->control.slot_bytes);
    values = keys + LANES_VALUES_AT / 4;
    if (PTX_HALF_SLOTS) {
        int slot = b.slot;
        uint32_t phase = b.phase;
        ring_next(b, slot, phase);
        ring_wait(b, b.shared->full, slot, phase);
        values = (const float *)(b.ring + slot * b.args->control.slot_bytes);
    }
}

/* Goes on behind a page that has been waited for. */
DEV void lanes_pass_page(struct block &b)
{
    ring_pass(b);
    if (PTX_HALF_SLOTS) {
        ring_pass(b);
    }
}

/* This block's pages of its lane, each read by one warp for each query head -> notes of parts that have keys. */
DEV void lanes_read_pages(struct block &b, const struct frame_state &state, int layer, int position)
{
    const int n_pages = lanes_n_pages(b, position), last = position / CUDA_PAGE,
              look_at = lanes_look_at(b, state.look, layer, position);
    struct lanes_seen seen = lanes_nothing();
    for (int i = n_pages > 0 ? 0 : -1; i >= 0; i = lanes_page_after(i, n_pages)) {
        const int page = b.part % 2 + 2 * i;
        const float *keys, *values;
        lanes_await_page(b, keys, values);
        if (i % LANES_GROUPS != lanes_turn_of(b)) {
            lanes_pass_page(b);
            continue;
        }
        const int fresh = page == last ? position % CUDA_PAGE : CUDA_PAGE;
        seen = i < LANES_PARTS ? lanes_nothing() : seen;
        const struct lanes_page of = {keys + b.lane * 4, values + b.lane * 4, page * CUDA_PAGE,
            page == last ? fresh + 1 : CUDA_PAGE, fresh};
        const float own = lanes_scores(b, of);
        if (look_at >= 0) {
            lanes_tell(b, state.look, look_at, of, own);
        }
        lanes_see(b, seen, of, own);
        dev_fence_copies(); /* as ring_leave */
        lanes_pass_page(b);
        if (i + LANES_PARTS >= n_pages) {
            lanes_note_part(b, seen, page % FRAME_KEY_PARTS, lanes_note_mark(layer));
        }
        if (page == last && lanes_head(b) == 0) { /* not before the fence, which would wait for it */
            lanes_keep_fresh(b, attend_slot_in(b, attend_page(state, page), layer, position));
        }
    }
}

/* The mean of all parts of a dimension; warp lane l has the largest score and the mass of part
 * l % FRAME_KEY_PARTS. */
DEV float lanes_mean(const float (&part)[FRAME_KEY_PARTS], float top, float weight)
{
    float largest = top, sum = 0, mass = 0;
    for (int mask = FRAME_KEY_PARTS / 2; mask > 0; mask >>= 1) {
        largest = fmaxf(largest, dev_xor(largest, mask));
    }
    const float share = dev_exp(top - largest);
    weight *= share;
    for (int s = 0; s < FRAME_KEY_PARTS; s++) {
        sum = fmaf(dev_from(share, s), part[s], sum);
        mass += dev_from(weight, s);
    }
    return dev_divide(sum, mass);
}

/* The mean of all parts, of this thread's dimension; their notes are waited for. */
DEV float lanes_join(const struct block &b, int n_parts, uint32_t mark)
{
    const int split = b.lane % FRAME_KEY_PARTS;
    const uint32_t flip = mark - 1, *about = lanes_note_at(b, split) + FRAME_HEAD;
    uint32_t missing = (1u << n_parts) - 1 + ((uint32_t)(split < n_parts) << FRAME_KEY_PARTS);
    uint32_t v[FRAME_KEY_PARTS] = {0}, top = numeric_to_bits(ATTEND_NONE), weight = 0;
    float part[FRAME_KEY_PARTS];
    do {
        dev_pair_get_if(missing >> FRAME_KEY_PARTS, about, top);
        dev_pair_get_if(missing >> FRAME_KEY_PARTS, about + 1, weight);
#pragma unroll
        for (int s = 0; s < FRAME_KEY_PARTS; s++) {
            dev_pair_get_if(missing >> s & 1, lanes_note_at(b, s) + b.thread, v[s]);
        }
        missing &= ~(((top ^ flip) & (weight ^ flip) & 1) << FRAME_KEY_PARTS);
#pragma unroll
        for (int s = 0; s < FRAME_KEY_PARTS; s++) {
            missing &= ~(((v[s] ^ flip) & 1) << s);
        }
    } while (missing && !block_is_late(b));
    dev_bar_warp();
#pragma unroll
    for (int s = 0; s < FRAME_KEY_PARTS; s++) {
        part[s] = exchange_value(v[s]);
    }
    return lanes_mean(part, exchange_value(top), exchange_value(weight));
}

/* The parts that have keys up to `position`. */
DEV int lanes_n_parts(int position)
{
    const int n_pages = position / CUDA_PAGE + 1;
    return n_pages < FRAME_KEY_PARTS ? n_pages : FRAME_KEY_PARTS;
}

/* What this block's lane, if it has one, mixes of the talker's keys -> LANES_X_MIXED; the mark. */
DEV uint32_t lanes_attend_talker(struct block &b, const struct lanes_launch &lanes,
    const struct attend_norm &norm, uint32_t mark, int layer)
{
    const uint32_t mixed_mark = lanes_mark(b, LANES_X_MIXED);
    const int at = lanes_attended(b);
    if (at < lanes.n) {
        const auto &lane = lanes.args->lane[at];
        const float eps = b.args->weights.talker_eps;
        attend_place<1, 0>(b, norm, eps, true, lanes_heads(b, at), NULL, mark, NULL);
        block_trace(b, 3);
        dev_bar();
        lanes_read_pages(b, lane.state, layer, lane.position);
        block_trace(b, 14);
        if (b.thread < FRAME_HEAD) {
            const float mixed = lanes_join(b, lanes_n_parts(lane.position), lanes_note_mark(layer));
            block_trace(b, 15);
            lanes_put_mixed<LANES_X_MIXED>(
                b, at, b.part % 2 * FRAME_HEAD + b.thread, mixed, mixed_mark);
        }
    }
    return mixed_mark;
}

#endif
