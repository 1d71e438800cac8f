/* SPDX-License-Identifier: Apache-2.0
 * Reads: queries, keys, values of the pass from the exchange, the caches. Writes: the caches; a dimension a thread of
 * what the two query heads of the block have mixed, in registers.
 * Shares: the 16 blocks of a kv head all see its two query heads, key and value. The predictor's few keys are
 * attended by each block alike, which costs less than telling; the talker's pages are dealt out to the blocks, two
 * keys of a page to a warp, FRAME_X_SPLIT brings the parts together, and each block joins them.
 * Waits for: FRAME_X_QKV of the kv head; the talker for FRAME_X_SPLIT. */
#ifndef CUDA_PERSISTENT_ATTEND_CUH
#define CUDA_PERSISTENT_ATTEND_CUH

#include "cuda/persistent/block.cuh"

/* 1 / sqrt(FRAME_HEAD) */
#define ATTEND_SCALE 0.088388347648318440f
/* The largest score of no keys: finite, so that it stands in a marked word. */
#define ATTEND_NONE -1e30f

/* Rotary angles of a pass, from the last layer of the one before on; read after the next barrier. */
template <int COLUMNS> DEV void attend_angles(struct block &b, const float *freq, int position)
{
    if (b.thread < 64 * COLUMNS) {
        float angle = (float)(position + b.thread / 64) * freq[b.thread % 64];
        b.shared->cosine[b.thread / 64][b.thread % 64] = cosf(angle);
        b.shared->sine[b.thread / 64][b.thread % 64] = sinf(angle);
    }
}

/* What a warp needs of a norm's weight: dimensions 2 l, 2 l + 1 and those 64 behind them. */
struct attend_norm {
    float weight[4];
};

/* Roles of the warps while queries and keys are placed, 4 for each column: a query head each, the key, the value. */
DEV struct attend_norm attend_norm_of(const struct block &b, const struct frame_layer *weights)
{
    const float *from = (b.warp % 4 < 2 ? weights->q_norm : weights->k_norm) + 2 * b.lane;
    const float2 first = *(const float2 *)from, second = *(const float2 *)(from + 64);
    return (struct attend_norm){{first.x, first.y, second.x, second.y}};
}

/* Waits for them here, and not with what is asked for later: loads are waited for in groups. */
DEV void attend_norm_here(struct attend_norm &norm)
{
    for (int i = 0; i < 4; i++) {
        uint32_t bits = numeric_to_bits(norm.weight[i]);
        dev_wait_for(bits);
        norm.weight[i] = numeric_from_bits(bits);
    }
}

/* A head's words -> shared->placed[c]: dimensions 2 l, 2 l + 1 and those 64 behind them; queries and keys normed and
 * rotated. */
DEV void attend_place_head(struct block &b, const struct attend_norm &norm, float eps, int role, int c,
    const uint2 &first, const uint2 &second)
{
    const float x[4] = {numeric_from_bits(first.x), numeric_from_bits(first.y),
        numeric_from_bits(second.x), numeric_from_bits(second.y)};
    float *placed = b.shared->placed[c] + role * FRAME_HEAD + 2 * b.lane;
    if (role == 3) {
        placed[0] = x[0], placed[1] = x[1], placed[64] = x[2], placed[65] = x[3];
        return;
    }
    const float squares =
        dev_warp_sum(fmaf(x[0], x[0], dev_mul(x[1], x[1])) + fmaf(x[2], x[2], dev_mul(x[3], x[3])));
    const float scale = dev_rsqrt(squares / (float)FRAME_HEAD + eps);
    for (int i = 0; i < 2; i++) {
        const float a = dev_mul(norm.weight[i], dev_mul(x[i], scale)),
                    z = dev_mul(norm.weight[2 + i], dev_mul(x[2 + i], scale));
        const float cosine = b.shared->cosine[c][2 * b.lane + i],
                    sine = b.shared->sine[c][2 * b.lane + i];
        placed[i] = fmaf(a, cosine, -dev_mul(z, sine));
        placed[64 + i] = fmaf(z, cosine, dev_mul(a, sine));
    }
}

/* The group's words, columns FRAME_GROUP apart -> shared->placed, a head a warp; and FRESH single words from `also`
 * on, asked for in the same wait. A barrier must follow. */
template <int COLUMNS, int FRESH>
DEV void attend_place(struct block &b, const struct attend_norm &norm, float eps, bool value,
    const uint32_t *words, const uint32_t *also, uint32_t mark, float *fresh)
{
    const int role = b.warp % 4, c = b.warp / 4;
    const bool places = c < COLUMNS && (role != 3 || value);
    const uint32_t *head = words + c * FRAME_GROUP + role * FRAME_HEAD + 2 * b.lane;
    const uint32_t flip = mark - 1; /* all ones for mark 0 */
    uint2 v[2] = {{mark, mark}, {mark, mark}};
    uint32_t word[FRESH > 0 ? FRESH : 1], ready;
    do {
        if (places) {
            v[0] = dev_get2(head);
            v[1] = dev_get2(head + 64);
        }
        for (int i = 0; i < FRESH; i++) {
            word[i] = dev_get(also + i * FRAME_GROUP);
        }
        dev_wait_for(v[0].x); /* all of them are on their way */
        dev_wait_for(v[1].x);
        for (int i = 0; i < FRESH; i++) {
            dev_wait_for(word[i]);
        }
        ready = (v[0].x ^ flip) & (v[0].y ^ flip) & (v[1].x ^ flip) & (v[1].y ^ flip);
        for (int i = 0; i < FRESH; i++) {
            ready &= word[i] ^ flip;
        }
    } while ((ready & 1) == 0 && !block_is_late(b));
    for (int i = 0; i < FRESH; i++) {
        fresh[i] = exchange_value(word[i]);
    }
    if (places) {
        const uint2 first = {v[0].x & ~1u, v[0].y & ~1u}, second = {v[1].x & ~1u, v[1].y & ~1u};
        attend_place_head(b, norm, eps, role, c, first, second);
    }
}

/* The scores of a key, 4 dimensions a thread, for two query heads; all threads of the warp get them. */
DEV void attend_dots(const float *q, const float (&k)[4], float (&score)[2])
{
    for (int h = 0; h < 2; h++) {
        float v[4];
        block_read4(q + h * FRAME_HEAD, v);
        score[h] = fmaf(v[0], k[0], dev_mul(v[1], k[1])) + fmaf(v[2], k[2], dev_mul(v[3], k[3]));
    }
    for (int mask = 16; mask > 0; mask >>= 1) { /* side by side */
        score[0] += dev_xor(score[0], mask);
        score[1] += dev_xor(score[1], mask);
    }
    score[0] = dev_mul(score[0], ATTEND_SCALE);
    score[1] = dev_mul(score[1], ATTEND_SCALE);
}

/* ---- Predictor ---- */

/* What this thread has kept of earlier positions of a layer: 4 dimensions of two keys, its dimension of all values.
 * */
struct attend_kept {
    float *at; /* of this block and layer */
    float key[2][4], value[FRAME_MAX_POSITIONS];
};

DEV void attend_recall(struct block &b, struct attend_kept &kept, int layer, int position)
{
    kept.at = b.args->scratch.kept +
              ((size_t)b.index * b.args->weights.n_predictor + layer) * FRAME_KEPT_FLOATS;
    for (int i = 0; i < 2; i++) {
        kept.key[i][0] = kept.key[i][1] = kept.key[i][2] = kept.key[i][3] = 0;
        if (b.warp + 8 * i < position) { /* this block wrote it in an earlier pass */
            block_read4(kept.at + (b.warp + 8 * i) * FRAME_HEAD + b.lane * 4, kept.key[i]);
        }
    }
    const float *values = kept.at + FRAME_KEY_FLOATS + b.thread % FRAME_HEAD * 4;
    for (int i = 0; i < FRAME_MAX_POSITIONS; i += 4) {
        float four[4] = {0, 0, 0, 0};
        if (i < position) { /* not looked at here: they may be on their way for long */
            block_read_first(values + i * FRAME_HEAD, position - i, four);
        }
        for (int j = 0; j < 4; j++) {
            kept.value[i + j] = four[j];
        }
    }
}

/* The scores of this warp's two keys for the two query heads of a column -> shared memory: in each step half of the
 * lanes go on with one of two values. */
DEV void attend_scores(const struct block &b, const struct attend_kept &kept, int column)
{
    const float *q = &b.shared->placed[column][b.lane * 4];
    float score[2][2]; /* [key][head] */
    for (int h = 0; h < 2; h++) {
        float v[4];
        block_read4(q + h * FRAME_HEAD, v);
        for (int i = 0; i < 2; i++) {
            const float(&k)[4] = kept.key[i];
            score[i][h] = fmaf(v[0], k[0], dev_mul(v[1], k[1])) + fmaf(v[2], k[2], dev_mul(v[3], k[3]));
        }
    }
    const bool second = b.lane & 16, other = b.lane & 8;
    float of[2];
    for (int h = 0; h < 2; h++) {
        of[h] = (second ? score[1][h] : score[0][h]) + dev_xor(second ? score[0][h] : score[1][h], 16);
    }
    float sum = (other ? of[1] : of[0]) + dev_xor(other ? of[0] : of[1], 8);
    for (int mask = 4; mask > 0; mask >>= 1) {
        sum += dev_xor(sum, mask);
    }
    if (b.lane % 8 == 0) {
        b.shared->scores[column][other][b.warp + 8 * second] = dev_mul(sum, ATTEND_SCALE);
    }
}

/* The largest score of all lanes. */
DEV float attend_largest(float score)
{
    const uint32_t bits = numeric_to_bits(score), sign = 0x80000000u;
    const uint32_t key = dev_max(bits & sign ? ~bits : bits | sign);
    return numeric_from_bits(key & sign ? key & ~sign : ~key);
}

/* Softmax over the keys up to `first` + column and the mean of this thread's dimension. fresh: its values at `first`
 * and on, where kept.value is 0. The weights go through memory: shuffles, each with its sum, would go one by one. */
template <int COLUMNS>
DEV float attend_few(const struct block &b, const struct attend_kept &kept, int column, int first,
    const float (&fresh)[COLUMNS])
{
    const int key = b.lane % 16;
    const float score = key <= first + column ? b.shared->scores[column][b.warp / 4][key] : -INFINITY,
                p = dev_exp(score - attend_largest(score));
    float *share = b.shared->shares[b.warp][column], mass = 0, sum = 0;
    if (b.lane < FRAME_MAX_POSITIONS) {
        share[b.lane] = key < first ? p : 0;
    }
    dev_bar_warp();
    for (int i = 0; i < FRAME_MAX_POSITIONS; i += 4) {
        float four[4];
        block_read4(share + i, four);
        for (int j = 0; j < 4; j++) {
            sum = fmaf(four[j], kept.value[i + j], sum);
            mass += four[j];
        }
    }
    for (int c = 0; c <= column; c++) {
        const float weight = dev_from(p, first + c);
        sum = fmaf(weight, fresh[c], sum);
        mass += weight;
    }
    return dev_divide(sum, mass);
}

/* This thread's fresh values -> what is kept. The first of four positions writes zeros for those behind it, so that
 * nothing of another frame is ever read. */
template <int COLUMNS>
DEV void attend_keep_values(
    const struct block &b, const struct attend_kept &kept, int position, const float (&fresh)[COLUMNS])
{
    static_assert(COLUMNS <= 2, "two columns begin at position 0");
    float *values =
        kept.at + FRAME_KEY_FLOATS + (position / 4 * FRAME_HEAD + b.thread % FRAME_HEAD) * 4;
    if (position % 4 == 0) {
        const float four[4] = {fresh[0], COLUMNS > 1 ? fresh[COLUMNS - 1] : 0, 0, 0};
        block_write4(values, four);
    } else {
        values[position % 4] = fresh[0];
    }
}

/* Fresh keys, which stand in shared->placed until a barrier behind this -> what is kept: a warp a column. */
template <int COLUMNS>
DEV void attend_keep_keys(const struct block &b, const struct attend_kept &kept, int position)
{
    const int c = b.warp - FRAME_WARPS / 2;
    if (c >= 0 && c < COLUMNS) {
        float key[4];
        block_read4(&b.shared->placed[c][2 * FRAME_HEAD + b.lane * 4], key);
        block_write4(kept.at + (position + c) * FRAME_HEAD + b.lane * 4, key);
    }
}

/* `position`: of column 0; words: of its queries, keys and values. Keys are kept later, by attend_keep_keys. */
template <int COLUMNS>
DEV void attend_predictor(struct block &b, struct attend_kept &kept, const struct attend_norm &norm,
    const uint32_t *words, uint32_t mark, int position, float (&mixed)[COLUMNS])
{
    const uint32_t *value = words + 3 * FRAME_HEAD + b.thread % FRAME_HEAD;
    float fresh[COLUMNS];
    attend_place<COLUMNS, COLUMNS>(
        b, norm, b.args->weights.predictor_eps, false, words, value, mark, fresh);
    if (b.thread >= FRAME_HEAD) { /* the other head has the same values, and its warps place heads */
        attend_keep_values<COLUMNS>(b, kept, position, fresh);
    }
    block_trace(b, 3);
    dev_bar();
    for (int i = 0; i < 2; i++) {
        const int key = b.warp + 8 * i, c = key - position;
        if (c >= 0 && c < COLUMNS) {
            block_read4(&b.shared->placed[c][256 + b.lane * 4], kept.key[i]);
        }
    }
    for (int column = 0; column < COLUMNS; column++) {
        attend_scores(b, kept, column); /* of keys that are still to come too, which nobody reads */
    }
    dev_bar();
    for (int c = 0; c < COLUMNS; c++) {
        mixed[c] = attend_few<COLUMNS>(b, kept, c, position, fresh);
    }
    block_trace(b, 4);
}

/* ---- Talker ---- */

/* What one warp has seen of the keys, for the two query heads: running maximum, mass, 4 dimensions a thread. */
struct attend_part {
    float largest[2], mass[2], sum[2][4];
};

/* Nothing seen. */
DEV struct attend_part attend_nothing()
{
    return (struct attend_part){{ATTEND_NONE, ATTEND_NONE}, {0, 0}, {{0}}};
}

/* A key joins. */
DEV void attend_key(
    const struct block &b, struct attend_part &part, const float (&k)[4], const float (&v)[4])
{
    float score[2];
    attend_dots(&b.shared->placed[0][b.lane * 4], k, score);
    for (int h = 0; h < 2; h++) {
        float largest = fmaxf(part.largest[h], score[h]);
        float keep = dev_exp(part.largest[h] - largest), p = dev_exp(score[h] - largest);
        part.largest[h] = largest;
        part.mass[h] = fmaf(part.mass[h], keep, p);
        for (int i = 0; i < 4; i++) {
            part.sum[h][i] = fmaf(part.sum[h][i], keep, dev_mul(p, v[i]));
        }
    }
}

/* A page in the cache. */
DEV float *attend_page(const struct frame_state &state, int page)
{
    return state.cache + (uint64_t)state.pages[page] * state.page_floats;
}

/* A page's keys of this layer and kv head; values lie CUDA_PAGE * FRAME_HEAD floats behind. */
DEV float *attend_heads_in(const struct block &b, float *page, int layer)
{
    return page + ((size_t)layer * FRAME_KV_HEADS + b.kv_head) * (2 * CUDA_PAGE * FRAME_HEAD);
}

/* This thread's dimensions of the key of `position`. */
DEV float *attend_slot_in(const struct block &b, float *page, int layer, int position)
{
    return attend_heads_in(b, page, layer) + position % CUDA_PAGE * FRAME_HEAD + b.lane * 4;
}

/* Keys and values of this warp's two keys of a page. */
struct attend_ahead {
    float k[2][4], v[2][4];
};

DEV int attend_key_of(const struct block &b, int page, int i)
{
    return page * CUDA_PAGE + b.warp + 8 * i;
}

/* What the warps of a block have seen of one lane: [2][8] maxima, [2][8] masses, [2][8][128] sums. */
enum { ATTEND_ALL_FLOATS = 4 * FRAME_WARPS + 2 * FRAME_WARPS * FRAME_HEAD };

DEV void attend_note(const struct block &b, const struct attend_part &part, float *all)
{
    float *sums = all + 4 * FRAME_WARPS;
    for (int h = 0; h < 2; h++) {
        if (b.lane == 0) {
            all[h * FRAME_WARPS + b.warp] = part.largest[h];
            all[(2 + h) * FRAME_WARPS + b.warp] = part.mass[h];
        }
        block_write4(sums + (h * FRAME_WARPS + b.warp) * FRAME_HEAD + b.lane * 4, part.sum[h]);
    }
}

/* The warps' parts joined -> the exchange: [2][FRAME_SPLIT] words. */
DEV void attend_put_split(const struct block &b, const float *all, uint32_t *words, uint32_t mark)
{
    const float *sums = all + 4 * FRAME_WARPS;
    const int h = b.thread / FRAME_HEAD, d = b.thread % FRAME_HEAD;
    float largest = ATTEND_NONE, mass = 0, sum = 0;
    for (int w = 0; w < FRAME_WARPS; w++) {
        largest = fmaxf(largest, all[h * FRAME_WARPS + w]);
    }
    for (int w = 0; w < FRAME_WARPS; w++) {
        float share = dev_exp(all[h * FRAME_WARPS + w] - largest);
        mass = fmaf(share, all[(2 + h) * FRAME_WARPS + w], mass);
        sum = fmaf(share, sums[(h * FRAME_WARPS + w) * FRAME_HEAD + d], sum);
    }
    words += h * FRAME_SPLIT;
    exchange_put(words + d, sum, mark);
    if (d == 0) {
        exchange_put(words + FRAME_HEAD, largest, mark);
        exchange_put(words + FRAME_HEAD + 1, mass, mark);
    }
}

/* ---- One lane: keys and values come through memory of the block ---- */

/* Where they lie in shared->vector, behind a product's vector of two times 1,024 and what attend_note keeps: [key or
 * value of two keys][thread] of 16 bytes. */
enum { ATTEND_COPIES_AT = 9216 };

DEV float *attend_copy(const struct block &b, int i)
{
    static_assert(FRAME_LANES > 1 || ATTEND_COPIES_AT + 4 * FRAME_THREADS * 16 <= FRAME_VECTOR_BYTES,
        "keys and values do not fit");
    static_assert(ATTEND_ALL_FLOATS * 4 <= ATTEND_COPIES_AT &&
                      2 * FRAME_WARPS * frame_row_bytes(8) <= ATTEND_COPIES_AT,
        "they would lie over one another");
    return (float *)(b.shared->vector + ATTEND_COPIES_AT) + (i * FRAME_THREADS + b.thread) * 4;
}

/* Begins to bring this warp's two keys of a page, of those before `position`; `at`: attend_page. Each thread copies
 * what it reads itself. */
DEV void attend_bring(const struct block &b, float *at, int layer, int page, int position)
{
    for (int i = 0; i < 2; i++) {
        const int key = attend_key_of(b, page, i);
        if (key < position) {
            const float *slot = attend_slot_in(b, at, layer, key);
            dev_copy16(attend_copy(b, 2 * i), slot);
            dev_copy16(attend_copy(b, 2 * i + 1), slot + CUDA_PAGE * FRAME_HEAD);
        }
    }
}

/* Keys and values that have been brought, or, of `position`, those in shared->placed, which go to the cache too; of
 * keys behind it nothing is brought, and nobody uses what is read. */
DEV void attend_brought(
    const struct block &b, struct attend_ahead &now, float *at, int layer, int page, int position)
{
    dev_copy_wait();
    for (int i = 0; i < 2; i++) {
        const int key = attend_key_of(b, page, i);
        const bool fresh = key == position;
        const int used = key <= position ? 4 : 0;
        block_read_first(
            fresh ? &b.shared->placed[0][256 + b.lane * 4] : attend_copy(b, 2 * i), used, now.k[i]);
        block_read_first(
            fresh ? &b.shared->placed[0][384 + b.lane * 4] : attend_copy(b, 2 * i + 1), used, now.v[i]);
        if (fresh) {
            float *slot = attend_slot_in(b, at, layer, position);
            block_write4(slot, now.k[i]);
            block_write4(slot + CUDA_PAGE * FRAME_HEAD, now.v[i]);
        }
    }
}

/* The first N parts of this thread's dimension, joined, 8 or 16: a part without a key has told that. words: of part 0
 * of the kv head, with two heads each. */
template <int N> DEV float attend_join_all(struct block &b, const uint32_t *words, uint32_t mark)
{
    static_assert(
        N <= FRAME_SHARES && (FRAME_LANES > 1 || FRAME_PLACED == 2), "no room for the shares");
    float part[N], sum = 0, mass = 0, *share = b.shared->shares[b.warp][0];
    uint2 about; /* largest score and mass of part lane % N */
    words += b.warp / 4 * FRAME_SPLIT;
    exchange_take_all<N>(b, words + b.thread % FRAME_HEAD, 2 * FRAME_SPLIT,
        words + b.lane % N * 2 * FRAME_SPLIT + FRAME_HEAD, mark, part, about);
    const float top = numeric_from_bits(about.x);
    float largest = top;
    for (int mask = N / 2; mask > 0; mask >>= 1) {
        largest = fmaxf(largest, dev_xor(largest, mask));
    }
    const float own = dev_exp(top - largest);
    if (b.lane < N) {
        share[b.lane] = own;
        share[FRAME_SHARES + b.lane] = dev_mul(numeric_from_bits(about.y), own);
    }
    dev_bar_warp();
    for (int s = 0; s < N; s += 4) {
        float of[4], masses[4];
        block_read4(share + s, of);
        block_read4(share + FRAME_SHARES + s, masses);
        for (int i = 0; i < 4; i++) {
            sum = fmaf(of[i], part[s + i], sum);
            mass += masses[i];
        }
    }
    return dev_divide(sum, mass);
}

/* What watched heads score of the rows that the lane looks at, of this block's pages; queries and the key of
 * `position` stand in shared->placed. Nobody in the kernel waits for it. */
DEV void attend_look(const struct block &b, const struct frame_state &state, int layer, int position)
{
    const struct cuda_look &look = state.look;
    const int n = cuda_look_rows(&look, position);
    if (n == 0) {
        return;
    }
    const int16_t *watched = b.args->control.watched + (layer * FRAME_KV_HEADS + b.kv_head) * 2;
    const int at = watched[b.lane % 2]; /* of the head that this warp lane tells of */
    if (!dev_ballot(at >= 0)) {
        return;
    }
    for (int page = b.part; page * CUDA_PAGE < look.begin + n; page += FRAME_KEY_PARTS) {
        float *in_cache = attend_page(state, page);
        for (int i = 0; i < 2; i++) {
            const int key = attend_key_of(b, page, i), row = key - look.begin;
            if (row >= 0 && row < n) {
                float k[4], score[2];
                block_read4(key == position ? &b.shared->placed[0][256 + b.lane * 4]
                                            : attend_slot_in(b, in_cache, layer, key),
                    k);
                attend_dots(&b.shared->placed[0][b.lane * 4], k, score);
                if (b.lane < 2 && at >= 0) {
                    look.scores[(int64_t)at * n + row] = b.lane == 0 ? score[0] : score[1];
                }
            }
        }
    }
}

/* `first`: this block's first page in the cache, of which keys and values have been asked for. */
DEV float attend_talker(struct block &b, float *first, const struct attend_norm &norm,
    const uint32_t *words, uint32_t mark, int layer, int position)
{
    static_assert(FRAME_KEY_PARTS == FRAME_KV_BLOCKS, "a block has one part of the keys");
    float *all = (float *)b.shared->vector, *at = first;
    attend_place<1, 0>(b, norm, b.args->weights.talker_eps, true, words, NULL, mark, NULL);
    block_trace(b, 3);
    dev_bar();
    struct attend_part part = attend_nothing();
    for (int page = b.part; page * CUDA_PAGE <= position; page += FRAME_KEY_PARTS) {
        struct attend_ahead now;
        attend_brought(b, now, at, layer, page, position);
        for (int i = 0; i < 2; i++) {
            if (attend_key_of(b, page, i) <= position) {
                attend_key(b, part, now.k[i], now.v[i]);
            }
        }
        const int next = page + FRAME_KEY_PARTS; /* what was brought has been used */
        if (next * CUDA_PAGE <= position) {
            at = attend_page(b.args->state, next);
            attend_bring(b, at, layer, next, position);
        }
    }
    const uint32_t split_mark = exchange_mark(b, FRAME_X_SPLIT);
    attend_note(b, part, all); /* without any key too: words must not stay behind their kind */
    dev_bar();
    attend_put_split(b, all, exchange_at<FRAME_X_SPLIT>(b) + b.index * 2 * FRAME_SPLIT, split_mark);
    attend_look(b, b.args->state, layer, position); /* while others' parts are on their way */
    dev_bar();                                      /* before the memory is a vector again */
    const uint32_t *parts =
        exchange_at<FRAME_X_SPLIT>(b) + b.kv_head * FRAME_KEY_PARTS * 2 * FRAME_SPLIT;
    const float mixed = position < FRAME_KEY_PARTS / 2 * CUDA_PAGE
                            ? attend_join_all<FRAME_KEY_PARTS / 2>(b, parts, split_mark)
                            : attend_join_all<FRAME_KEY_PARTS>(b, parts, split_mark);
    block_trace(b, 4);
    return mixed;
}

#endif
