/* SPDX-License-Identifier: Apache-2.0
 * The official order of processors on one vector of logits, then argmax or one draw. */
#include "cpu/cpu_sample.h"

#include <math.h>

#include "base/numeric.h"

/* Penalty, minimum length, suppression: what greedy decoding sees too. */
static void process(const struct sample_in *in, float *scores, bool *bad)
{
    float penalty = in->sampling->repetition_penalty;
    for (int i = 0; i < in->n; i++) {
        float s = in->logits[i];
        if (isnan(s) || s == INFINITY) {
            *bad = true;
            s = -INFINITY;
        }
        if (in->seen && in->seen[i]) {
            s = s < 0 ? s * penalty : s / penalty;
        }
        bool blocked = i == in->keep ? in->keep_blocked : i >= in->suppress_from;
        scores[i] = blocked ? -INFINITY : s;
    }
}

static int argmax(const float *scores, int n)
{
    int best = 0;
    for (int i = 1; i < n; i++) {
        best = scores[i] > scores[best] ? i : best;
    }
    return best;
}

/* A number that orders as the float does; -0 as 0. */
static uint32_t order_key(float f)
{
    uint32_t bits = numeric_to_bits(f + 0.0f);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

/* The k-th largest of n scores, 1 <= k <= n: the key is found digit by digit, largest digit first. */
static float kth_largest(const float *scores, int n, int k)
{
    uint32_t prefix = 0, mask = 0;
    for (int shift = 24; shift >= 0; shift -= 8) {
        int counts[256] = {0};
        for (int i = 0; i < n; i++) {
            uint32_t key = order_key(scores[i]);
            counts[key >> shift & 255] += (key & mask) == prefix;
        }
        int digit = 255;
        for (; counts[digit] < k; digit--) {
            k -= counts[digit];
        }
        prefix |= (uint32_t)digit << shift;
        mask |= 255u << shift;
    }
    return numeric_from_bits(prefix & 0x80000000u ? prefix & 0x7fffffffu : ~prefix);
}

/* True when id a comes before id b: smaller score, on a tie smaller id. */
static bool before(const float *scores, int32_t a, int32_t b)
{
    return scores[a] < scores[b] || (scores[a] == scores[b] && a < b);
}

static void sift(const float *scores, int32_t *heap, int root, int n)
{
    for (int child; (child = 2 * root + 1) < n; root = child) {
        child += child + 1 < n && before(scores, heap[child], heap[child + 1]);
        if (!before(scores, heap[root], heap[child])) {
            return;
        }
        int32_t swap = heap[root];
        heap[root] = heap[child];
        heap[child] = swap;
    }
}

/* Ascending heap sort: no memory of its own, no bad case. */
static void sort_ids(const float *scores, int32_t *ids, int n)
{
    for (int i = n / 2 - 1; i >= 0; i--) {
        sift(scores, ids, i, n);
    }
    for (int last = n - 1; last > 0; last--) {
        int32_t swap = ids[0];
        ids[0] = ids[last];
        ids[last] = swap;
        sift(scores, ids, 0, last);
    }
}

/* Drops the least likely ids whose mass together is at most 1 - top_p; the largest always stays. */
static void cut_top_p(float *scores, int32_t *ids, int n, float top_p)
{
    sort_ids(scores, ids, n);
    double largest = scores[ids[n - 1]], sum = 0, mass = 0;
    for (int i = 0; i < n; i++) {
        sum += exp((double)scores[ids[i]] - largest);
    }
    for (int i = 0; i + 1 < n; i++) {
        mass += exp((double)scores[ids[i]] - largest) / sum;
        if (mass > 1.0 - (double)top_p) {
            return;
        }
        scores[ids[i]] = -INFINITY;
    }
}

static int survivors(const float *scores, int n, int32_t *ids)
{
    int kept = 0;
    for (int i = 0; i < n; i++) {
        ids[kept] = i;
        kept += scores[i] > -INFINITY;
    }
    return kept;
}

/* Temperature, top-k, top-p. Returns the number of ids left, in rising order in ids. */
static int narrow(const struct sample_in *in, float *scores, int32_t *ids)
{
    const struct sampling *s = in->sampling;
    if (s->temperature != 1.0f) {
        for (int i = 0; i < in->n; i++) {
            scores[i] /= s->temperature;
        }
    }
    if (s->top_k > 0 && s->top_k < in->n) {
        float least = kth_largest(scores, in->n, s->top_k);
        for (int i = 0; i < in->n; i++) {
            scores[i] = scores[i] < least ? -INFINITY : scores[i];
        }
    }
    int n = survivors(scores, in->n, ids);
    if (s->top_p < 1.0f && n > 1) {
        cut_top_p(scores, ids, n, s->top_p);
        n = survivors(scores, in->n, ids);
    }
    return n;
}

static int race(const struct sample_in *in, const float *scores, const int32_t *ids, int n)
{
    const uint32_t key[2] = {(uint32_t)in->seed, (uint32_t)(in->seed >> 32)};
    uint32_t words[4], block = UINT32_MAX;
    int best = ids[0];
    double best_score = -INFINITY;
    for (int i = 0; i < n; i++) {
        uint32_t id = (uint32_t)ids[i];
        if (id / 4 != block) {
            block = id / 4;
            const uint32_t counter[4] = {in->frame, in->codebook, block, 0};
            philox(counter, key, words);
        }
        double v = ((double)words[id % 4] + 0.5) / 0x1p32;
        double score = (double)scores[id] - log(-log1p(-v));
        if (score > best_score) {
            best_score = score;
            best = (int)id;
        }
    }
    return best;
}

int sample_choose(const struct sample_in *in, float *scores, int32_t *order, bool *bad)
{
    process(in, scores, bad);
    int best = argmax(scores, in->n);
    if (scores[best] == -INFINITY) {
        *bad = true;
        return best;
    }
    if (in->sampling->temperature == 0) {
        return best;
    }
    int n = narrow(in, scores, order);
    return n ? race(in, scores, order, n) : best;
}

void sample_probabilities(const struct sample_in *in, float *scores, int32_t *order, double *out)
{
    bool bad = false;
    process(in, scores, &bad);
    int best = argmax(scores, in->n), n = 0;
    if (in->sampling->temperature != 0 && scores[best] > -INFINITY) {
        n = narrow(in, scores, order);
    }
    double largest = scores[best], sum = 0;
    for (int i = 0; i < in->n; i++) {
        out[i] = 0;
    }
    for (int i = 0; i < n; i++) {
        sum += out[order[i]] = exp((double)scores[order[i]] - largest);
    }
    for (int i = 0; i < n; i++) {
        out[order[i]] /= sum;
    }
    out[best] = n ? out[best] : 1;
}
