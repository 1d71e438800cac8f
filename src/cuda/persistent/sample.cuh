/* SPDX-License-Identifier: Apache-2.0
 * Reads: words of FRAME_X_SCORES (or the lane's logits), settings, history. Writes: nothing but shared memory.
 * Shares: every block makes the same choice from the same words, so that nobody has to be told.
 * Waits for: FRAME_X_SCORES. The order of processors and the draw are those of cpu/talker/sample.h; the race is run in
 * fp32 first, and again in fp64 when it is too close for that. */
#ifndef CUDA_PERSISTENT_SAMPLE_CUH
#define CUDA_PERSISTENT_SAMPLE_CUH

#include "cuda/parts/choice.cuh"
#include "cuda/persistent/block.cuh"

enum {
    SAMPLE_EACH = FRAME_MAX_SCORES / FRAME_THREADS, /* scores that one thread looks at */
    SAMPLE_ENOUGH = 64,                             /* threads with a candidate that are few enough */
    SAMPLE_MANY_K = 200                             /* a larger top_k: all are candidates */
};

/* A score that may win, in shared memory. */
struct sample_candidate {
    float score;
    int32_t id; /* -1 - id: out of the race */
};

/* The float of a key (choice_key). */
DEV float sample_from_key(uint32_t key)
{
    return numeric_from_bits(key & 0x80000000u ? key & 0x7fffffffu : ~key);
}

/* The id of score i of this thread: four neighbours, every 1,024. */
DEV int sample_id(const struct block &b, int i)
{
    return i / 4 * 1024 + b.thread * 4 + i % 4;
}

/* The largest (smallest) key of all threads; place: one of shared->reduced, not used since the last barrier but
 * one. */
DEV uint32_t sample_largest(struct block &b, int place, uint32_t key)
{
    key = dev_max(key);
    if (b.lane == 0) {
        b.shared->reduced[place][b.warp] = key;
    }
    dev_bar();
    return dev_max(b.shared->reduced[place][b.lane % FRAME_WARPS]);
}

/* Which ids of this thread have been chosen before, a byte each; asked for long before it is needed. */
template <int EACH>
DEV void sample_history(
    const struct block &b, const struct choice_rule &rule, uint32_t (&seen)[EACH / 4])
{
    for (int i = 0; i < EACH / 4; i++) {
        seen[i] = rule.seen ? history_four(rule.seen, sample_id(b, 4 * i)) : 0;
    }
}

/* Processed scores over the temperature, rounded as divisions are: their own steps, with one reciprocal for all and
 * side by side, where no number is so large or so small that a step would go wrong. */
template <int EACH> DEV void sample_cool(const struct choice_rule &rule, float (&score)[EACH])
{
    const float t = rule.sampling.temperature;
    if (t == 0) {
        return;
    }
    const float about = dev_reciprocal(t), inverse = fmaf(about, fmaf(-t, about, 1.0f), about);
    bool usual = t > 0x1p-60f && t < 0x1p60f;
    for (int i = 0; i < EACH; i++) {
        const float size = fabsf(score[i]);
        usual = usual && (size == 0 || size == INFINITY || (size > 0x1p-60f && size < 0x1p60f));
    }
    if (usual) {
        for (int i = 0; i < EACH; i++) {
            const float near = dev_mul(score[i], inverse), rest = fmaf(-t, near, score[i]),
                        exact = fmaf(inverse, rest, near);
            score[i] = score[i] == 0 || score[i] == -INFINITY ? score[i] : exact;
        }
    } else {
        for (int i = 0; i < EACH; i++) {
            score[i] = score[i] / t;
        }
    }
}

/* A score that at least top_k others reach, and not many more where that is quickly found. `best`: this thread's
 * largest; lowest and highest: of all threads, finite. */
DEV float sample_threshold(struct block &b, int top_k, float best, float lowest, float highest)
{
    if (top_k <= 0 || top_k > SAMPLE_MANY_K) {
        return -INFINITY;
    }
    int n = dev_bar_count(best >= lowest);
    if (n < top_k) {
        return -INFINITY;
    }
    for (int turn = 0; turn < 24 && n > SAMPLE_ENOUGH; turn++) {
        float middle = lowest + (highest - lowest) * 0.5f;
        int above = dev_bar_count(best >= middle);
        if (above >= top_k) {
            lowest = middle;
            n = above;
        } else {
            highest = middle;
        }
    }
    return lowest;
}

/* -log(-log1p(-v)) to about 5e-5: a series where v is small, and logarithms with few bits elsewhere. */
DEV float sample_noise(uint32_t bits)
{
    const float v = ((float)bits + 0.5f) * 0x1p-32f, rest = ((float)~bits + 0.5f) * 0x1p-32f;
    const float small = v * (1 + v * (0.5f + v * (1 / 3.0f + v * 0.25f))), large = -dev_log(rest);
    return -dev_log(v < 0x1p-6f ? small : large);
}

DEV double sample_exact(const struct choice_rule &rule, const struct sample_candidate &c)
{
    return (double)c.score - choice_handicap(choice_bits(rule, (uint32_t)c.id));
}

/* The race among the candidates that are in it: the same id in every thread. */
DEV int sample_race(
    struct block &b, const struct choice_rule &rule, struct sample_candidate *list, int n)
{
    float best = -INFINITY, second = -INFINITY;
    int32_t id = 0;
    for (int at = b.thread; at < n; at += FRAME_THREADS) { /* once, mostly */
        const struct sample_candidate c = list[at];
        if (c.id >= 0) {
            float score = c.score + sample_noise(choice_bits(rule, (uint32_t)c.id));
            second = fmaxf(second, fminf(best, score));
            id = score > best ? c.id : id;
            best = fmaxf(best, score);
        }
    }
    const float first = sample_from_key(sample_largest(b, 2, choice_key(best)));
    const float near = first - (1e-3f + 1e-6f * fabsf(first));
    if (best >= near) {
        b.shared->winner = id;
    }
    if (dev_bar_count(best >= near) == 1 && dev_bar_count(second >= near) == 0) {
        return b.shared->winner;
    }
    int winner = 0;
    double winning = -INFINITY;
    for (int at = 0; at < n; at++) { /* every thread by itself, and all alike */
        if (list[at].id < 0 ||
            list[at].score + sample_noise(choice_bits(rule, (uint32_t)list[at].id)) < near) {
            continue;
        }
        double exact = sample_exact(rule, list[at]);
        if (exact > winning || (exact == winning && list[at].id < winner)) {
            winning = exact;
            winner = list[at].id;
        }
    }
    dev_bar();
    return winner;
}

/* How many candidates have a larger score: four neighbouring lanes share the list. */
DEV int sample_greater(const struct sample_candidate *list, int n, int lane, float score)
{
    int greater = 0;
#pragma unroll 8
    for (int j = lane % 4; j < n; j += 4) {
        greater += list[j].score > score;
    }
    float sum = (float)greater; /* small numbers, exact */
    sum += dev_xor(sum, 1);
    sum += dev_xor(sum, 2);
    return (int)sum;
}

/* What is not among the k largest scores, ties stay, leaves the race (k <= 0: all stay). The number that is left. */
DEV int sample_top_k(struct block &b, struct sample_candidate *list, int n, int k)
{
    enum { AT_ONCE = FRAME_THREADS / 4, TURNS = FRAME_MAX_SCORES / AT_ONCE };
    uint64_t out = 0; /* a bit for each of this thread's candidates */
    if (k <= 0 || k >= n) {
        return n;
    }
    if (b.thread == 0) {
        b.shared->counter[1] = 0;
    }
    for (int i = 0; i * AT_ONCE < n; i++) { /* once, mostly */
        const int at = i * AT_ONCE + b.thread / 4;
        const int greater = sample_greater(list, n, b.lane, at < n ? list[at].score : 0);
        out |= (uint64_t)(at < n && greater >= k && b.lane % 4 == 0) << i;
    }
    dev_bar();
    for (int i = 0; i * AT_ONCE < n; i++) {
        const bool leaves = out >> i & 1;
        if (leaves) {
            struct sample_candidate *c = &list[i * AT_ONCE + b.thread / 4];
            c->id = -1 - c->id;
        }
        const int n_leave = dev_popcount(dev_ballot(leaves));
        if (b.lane == 0 && n_leave > 0) {
            dev_add(&b.shared->counter[1], (uint32_t)n_leave);
        }
    }
    dev_bar();
    static_assert(TURNS <= 64, "a bit for each");
    return n - (int)b.shared->counter[1];
}

/* The least likely that together weigh at most 1 - top_p leave the race; sorts the list: what is left of the race
 * lies in [0, *n), smallest first. `left`: how many are in it. */
DEV void sample_top_p(struct block &b, struct sample_candidate *list, int *n, int left, float top_p)
{
    struct sample_candidate own[SAMPLE_EACH];
    int rank[SAMPLE_EACH];
    for (int i = 0; i < SAMPLE_EACH; i++) {
        const int at = b.thread + i * FRAME_THREADS;
        rank[i] = -1;
        if (at < *n && list[at].id >= 0) {
            own[i] = list[at];
            rank[i] = 0;
            for (int j = 0; j < *n; j++) { /* smaller score, on a tie larger id, comes first */
                rank[i] +=
                    list[j].id >= 0 && (list[j].score < own[i].score ||
                                           (list[j].score == own[i].score && list[j].id > own[i].id));
            }
        }
    }
    dev_bar();
    for (int i = 0; i < SAMPLE_EACH; i++) {
        if (rank[i] >= 0) {
            list[rank[i]] = own[i];
        }
    }
    dev_bar();
    *n = left;
    double largest = list[left - 1].score, sum = 0, mass = 0;
    for (int i = 0; i < left; i++) { /* every thread by itself, and all alike: sums in one order */
        sum += exp((double)list[i].score - largest);
    }
    int dropped = 0;
    for (; dropped < left - 1; dropped++) {
        mass += exp((double)list[dropped].score - largest) / sum;
        if (mass > 1.0 - (double)top_p) {
            break;
        }
    }
    dev_bar();
    for (int at = b.thread; at < dropped; at += FRAME_THREADS) {
        list[at].id = -1 - list[at].id;
    }
    dev_bar();
}

/* Scores that reach the threshold -> the list, in any order. A barrier must follow. */
template <int EACH>
DEV void sample_list(
    struct block &b, const float (&score)[EACH], float threshold, struct sample_candidate *list)
{
    uint32_t votes[EACH];
    int n = 0;
    for (int i = 0; i < EACH; i++) {
        votes[i] = dev_ballot(score[i] > -INFINITY && score[i] >= threshold);
        n += dev_popcount(votes[i]);
    }
    uint32_t at = 0;
    if (b.lane == 0 && n > 0) {
        at = dev_add(&b.shared->counter[0], (uint32_t)n);
    }
    at = dev_max(at);
    for (int i = 0; i < EACH; i++) {
        if (votes[i] >> b.lane & 1) {
            list[at + (uint32_t)dev_popcount(votes[i] & ((1u << b.lane) - 1))] =
                (struct sample_candidate){score[i], sample_id(b, i)};
        }
        at += (uint32_t)dev_popcount(votes[i]);
    }
}

/* ---- The race of all ----
 *
 * Mostly who wins the race of all scores is among the top_k: then nobody else has to be sorted out. */

/* A warp's first, as it stands in shared memory. */
struct sample_first {
    uint32_t first, second; /* keys */
    int32_t id;             /* SAMPLE_BAD added: the warp has seen what is no number */
    float score;
};
enum { SAMPLE_BAD = 1 << 16, SAMPLE_NOBODY = -1, SAMPLE_UNDECIDED = -2 };

/* What is added to this thread's scores; while the words are on their way. */
template <int EACH>
DEV void sample_draw(const struct block &b, const struct choice_rule &rule, float (&noise)[EACH])
{
    for (int i = 0; i < EACH; i += 4) {
        uint32_t words[4] = {0, 0, 0, 0};
        if (rule.sampling.temperature != 0) {
            choice_four(rule, (uint32_t)sample_id(b, i) / 4, words);
        }
        for (int j = 0; j < 4; j++) {
            noise[i + j] = rule.sampling.temperature != 0 ? sample_noise(words[j]) : 0;
        }
    }
}

/* The first of the race of those whose score is above `least`, or SAMPLE_NOBODY, or SAMPLE_UNDECIDED when another is
 * too near; its score. */
template <int EACH>
DEV int sample_first_of(struct block &b, const float (&score)[EACH], const float (&noise)[EACH],
    float least, bool *bad, float *winning)
{
    struct sample_first *firsts = (struct sample_first *)b.shared->vector;
    float best = -INFINITY, second = -INFINITY, own = -INFINITY;
    int32_t id = 0;
    for (int i = 0; i < EACH; i++) {
        const float sum = score[i] > least ? score[i] + noise[i] : -INFINITY;
        const bool better = sum > best;
        second = fmaxf(second, fminf(best, sum));
        id = better ? sample_id(b, i) : id;
        own = better ? score[i] : own;
        best = fmaxf(best, sum);
    }
    const uint32_t key = choice_key(best), top = dev_max(key);
    const bool first = dev_first(dev_ballot(key == top)) == b.lane;
    const uint32_t next = dev_max(choice_key(first ? second : best));
    const bool any = dev_ballot(*bad) != 0;
    if (first) {
        firsts[b.warp] = (struct sample_first){top, next, id + (any ? SAMPLE_BAD : 0), own};
    }
    dev_bar();
    const struct sample_first mine = firsts[b.lane % FRAME_WARPS];
    const uint32_t most = dev_max(mine.first);
    const int warp = dev_first(dev_ballot(mine.first == most));
    const float behind =
        sample_from_key(dev_max(b.lane % FRAME_WARPS == warp ? mine.second : mine.first));
    const float ahead = sample_from_key(most);
    *bad = dev_ballot(mine.id >= SAMPLE_BAD) != 0;
    *winning = firsts[warp].score;
    id = firsts[warp].id % SAMPLE_BAD;
    return !(ahead > -INFINITY)                              ? SAMPLE_NOBODY
           : behind < ahead - (1e-3f + 1e-6f * fabsf(ahead)) ? id
                                                             : SAMPLE_UNDECIDED;
}

/* How many scores are larger than a finite one, of all threads. */
template <int EACH> DEV int sample_larger(struct block &b, const float (&score)[EACH], float than)
{
    uint32_t n = 0;
    for (int i = 0; i < EACH; i++) {
        n += numeric_to_bits(than - score[i]) >> 31; /* comparisons would wait for each other */
    }
    n = dev_sum(n);
    if (b.lane == 0) {
        b.shared->reduced[0][b.warp] = n;
    }
    dev_bar();
    return (int)(dev_sum(b.shared->reduced[0][b.lane % FRAME_WARPS]) * FRAME_WARPS / 32);
}

/* The choice without a list: who wins but is not among the top_k leaves, with all whose scores are not larger, and
 * the others race again. SAMPLE_UNDECIDED: not to be had this way. */
template <int EACH>
DEV int sample_at_once(struct block &b, const struct choice_rule &rule, const float (&score)[EACH],
    const float (&noise)[EACH], bool bad, bool *not_a_number)
{
    const int k = rule.sampling.top_k;
    float winning = -INFINITY;
    for (bool first = true;; first = false) {
        const int id = sample_first_of(b, score, noise, winning, &bad, &winning);
        if (first) {
            *not_a_number = bad || id == SAMPLE_NOBODY;
        }
        if (id < 0 || k <= 0) {
            dev_bar(); /* some may still read what stands in the vector's memory, which is written next */
            return id == SAMPLE_NOBODY && first ? 0 : id < 0 ? SAMPLE_UNDECIDED : id;
        }
        if (sample_larger(b, score, winning) < k) {
            return id;
        }
    }
}

/* This thread's raw scores as the rules leave them; *bad: one of them is not a number. */
template <int EACH>
DEV void sample_process(const struct block &b, const struct choice_rule &rule, const float (&raw)[EACH],
    const uint32_t (&seen)[EACH / 4], float (&score)[EACH], bool &bad)
{
    for (int i = 0; i < EACH; i++) {
        score[i] =
            choice_process(rule, sample_id(b, i), raw[i], history_has_of(seen[i / 4], i % 4), bad);
    }
    sample_cool(rule, score);
}

/* The choice from this thread's processed scores and what is added to them in the race; the same id in every
 * thread. */
template <int EACH>
DEV int sample_choose(struct block &b, const struct choice_rule &rule, const float (&score)[EACH],
    const float (&noise)[EACH], bool bad, bool *not_a_number)
{
    if (rule.sampling.temperature != 0 && !(rule.sampling.top_p < 1.0f)) {
        const int id = sample_at_once(b, rule, score, noise, bad, not_a_number);
        if (id != SAMPLE_UNDECIDED) {
            return id;
        }
    }
    struct sample_candidate *list = (struct sample_candidate *)b.shared->vector;
    float best = -INFINITY;
    for (int i = 0; i < EACH; i++) {
        best = fmaxf(best, score[i]);
    }
    if (b.thread == 0) {
        b.shared->counter[0] = 0;
    }
    uint32_t inverse = dev_max(best > -INFINITY ? ~choice_key(best) : 0);
    if (b.lane == 0) {
        b.shared->reduced[1][b.warp] = inverse;
    }
    const float highest = sample_from_key(sample_largest(b, 0, choice_key(best)));
    const float least = sample_from_key(~dev_max(b.shared->reduced[1][b.lane % FRAME_WARPS]));
    *not_a_number = dev_bar_count(bad) > 0 || !(highest > -INFINITY);
    if (!(highest > -INFINITY)) {
        return 0;
    }
    if (rule.sampling.temperature == 0) {
        uint32_t first = 0; /* lowest id among the largest: the largest complement */
        for (int i = 0; i < EACH; i++) {
            const uint32_t other = ~(uint32_t)sample_id(b, i);
            first = score[i] == highest && other > first ? other : first;
        }
        return (int)~sample_largest(b, 3, first);
    }
    const float threshold = sample_threshold(b, rule.sampling.top_k, best, least, highest);
    block_trace(b, 14);
    sample_list(b, score, threshold, list);
    dev_bar();
    int n = (int)b.shared->counter[0];
    int left = sample_top_k(b, list, n, rule.sampling.top_k);
    block_trace(b, 15);
    if (rule.sampling.top_p < 1.0f) {
        sample_top_p(b, list, &n, left, rule.sampling.top_p);
    }
    return sample_race(b, rule, list, n);
}

/* One of this block's 16 scores of codebook j, in the first threads of a warp: the row of the one that would win among
 * them comes near, as it may win among all. */
DEV void sample_foresee(const struct block &b, const struct choice_rule &rule, float score,
    const uint16_t *table, int row_bytes)
{
    const int id = b.index * 16 + b.lane % 16;
    bool bad = false;
    score = choice_process(rule, id, score, false, bad);
    if (rule.sampling.temperature != 0) {
        score = dev_divide(score, rule.sampling.temperature) +
                sample_noise(choice_bits(rule, (uint32_t)id));
    }
    const uint32_t key = choice_key(score);
    const int best = b.index * 16 + dev_first(dev_ballot(key == dev_max(key))) % 16;
    if (b.lane * 128 < row_bytes) {
        dev_prefetch((const unsigned char *)table + (size_t)best * (size_t)row_bytes + b.lane * 128);
    }
}

/* The words of a head -> this thread's raw scores; copies go to `copy` (one block, or NULL). N: 3,072 with the last
 * 1,024 as two halves of the sum, or 2,048. */
template <int N>
DEV void sample_take(
    const struct block &b, const uint32_t *words, uint32_t mark, float (&score)[N / 256], float *copy)
{
    constexpr int READS = N == 2048 ? 2 : 4;
    uint4 v[READS];
    exchange_take4<READS>(b, words + b.thread * 4, 1024, (1u << READS) - 1, mark, v);
    if (READS == 4) {
        v[2] = exchange_sum(v[2], v[READS - 1]);
    }
    for (int i = 0; i < N / 1024; i++) {
        score[i * 4] = numeric_from_bits(v[i].x);
        score[i * 4 + 1] = numeric_from_bits(v[i].y);
        score[i * 4 + 2] = numeric_from_bits(v[i].z);
        score[i * 4 + 3] = numeric_from_bits(v[i].w);
    }
    for (int i = 0; copy && i < N / 256; i++) {
        copy[sample_id(b, i)] = score[i];
    }
}

#endif
