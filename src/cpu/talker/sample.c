/* SPDX-License-Identifier: Apache-2.0
 * The official order of processors on one vector of logits, then argmax or one draw. */
#include "cpu/talker/sample.h"

#include <math.h>
#include <string.h>

#include "base/numeric.h"

/* What is left of the logits after the steps that greedy decoding takes too. */
struct field {
    int n;    /* ids that can be chosen, */
    int best; /* and the one with the largest score, lowest id on a tie */
};

/* Penalty, minimum length, suppression. The possible ids go into `ids`, in rising order. */
static struct field process(const struct sample_in *in, float *scores, int32_t *ids, bool *bad)
{
    struct field field = {0, 0};
    float penalty = in->sampling->repetition_penalty, best = -INFINITY;
    for (int i = 0; i < in->n; i++) {
        float s = in->logits[i];
        if (!(s < INFINITY)) { /* NaN too */
            *bad = true;
            s = -INFINITY;
        }
        if (in->seen && in->seen[i]) {
            s = s < 0 ? s * penalty : s / penalty;
        }
        bool blocked = i == in->keep ? in->keep_blocked : i >= in->suppress_from;
        s = blocked ? -INFINITY : s;
        scores[i] = s;
        ids[field.n] = i;
        field.n += s > -INFINITY;
        if (s > best) {
            best = s;
            field.best = i;
        }
    }
    *bad = *bad || field.n == 0;
    return field;
}

/* A number that orders as the float does; -0 as 0. */
static uint32_t order_key(float f)
{
    uint32_t bits = numeric_to_bits(f + 0.0f);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

/* Drops all but the k largest scores of n ids, 1 <= k <= n; ties with the k-th stay. The key of the k-th is
 * found digit by digit, largest digit first, and what is below the digits so far goes at once. */
static int cut_top_k(float *scores, int32_t *ids, int n, int k)
{
    uint32_t prefix = 0, mask = 0;
    for (int shift = 24; shift >= 0; shift -= 8) {
        int counts[256] = {0}, digit = 255, kept = 0;
        for (int i = 0; i < n; i++) {
            uint32_t key = order_key(scores[ids[i]]);
            if ((key & mask) == prefix) {
                counts[key >> shift & 255]++;
            }
        }
        for (; counts[digit] < k; digit--) {
            k -= counts[digit];
        }
        prefix |= (uint32_t)digit << shift;
        mask |= 255u << shift;
        for (int i = 0; i < n; i++) {
            int32_t id = ids[i];
            bool keep = order_key(scores[id]) >= prefix;
            scores[id] = keep ? scores[id] : -INFINITY;
            ids[kept] = id;
            kept += keep;
        }
        n = kept;
    }
    return n;
}

/* True when id a comes before id b: smaller score, on a tie larger id, so that the lowest id is the last to
 * be dropped. */
static bool before(const float *scores, int32_t a, int32_t b)
{
    return scores[a] < scores[b] || (scores[a] == scores[b] && a > b);
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

/* Drops the least likely ids whose mass together is at most 1 - top_p; the largest always stays. Leaves ids
 * in the order of their scores. */
static int cut_top_p(float *scores, int32_t *ids, int n, float top_p)
{
    sort_ids(scores, ids, n);
    double largest = scores[ids[n - 1]], sum = 0, mass = 0;
    for (int i = 0; i < n; i++) {
        sum += exp((double)scores[ids[i]] - largest);
    }
    int dropped = 0;
    for (; dropped < n - 1; dropped++) {
        mass += exp((double)scores[ids[dropped]] - largest) / sum;
        if (mass > 1.0 - (double)top_p) {
            break;
        }
        scores[ids[dropped]] = -INFINITY;
    }
    memmove(ids, ids + dropped, (size_t)(n - dropped) * sizeof *ids);
    return n - dropped;
}

/* Temperature, top-k, top-p on n >= 1 possible ids. Returns the number of ids left. */
static int narrow(const utter_sampling *s, float *scores, int32_t *ids, int n)
{
    for (int i = 0; i < n; i++) {
        scores[ids[i]] /= s->temperature;
    }
    if (s->top_k > 0 && s->top_k < n) {
        n = cut_top_k(scores, ids, n, s->top_k);
    }
    return s->top_p < 1.0f ? cut_top_p(scores, ids, n, s->top_p) : n;
}

/* The draw: lowest id on a tie, whatever the order of ids. */
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
        if (score > best_score || (score == best_score && ids[i] < best)) {
            best_score = score;
            best = ids[i];
        }
    }
    return best;
}

int sample_choose(const struct sample_in *in, float *scores, int32_t *order, bool *bad)
{
    struct field field = process(in, scores, order, bad);
    if (field.n == 0 || in->sampling->temperature == 0) {
        return field.best;
    }
    return race(in, scores, order, narrow(in->sampling, scores, order, field.n));
}

struct likelihood sample_likelihood(
    const float *logits, int n, int suppress_from, int keep, int32_t code)
{
    double sum = 0, weighed = 0;
    float largest = logits[keep];
    for (int i = 0; i < suppress_from; i++) {
        largest = logits[i] > largest ? logits[i] : largest;
    }
    for (int i = 0; i < n; i++) {
        if (i < suppress_from || i == keep) {
            float below = logits[i] - largest, p = expf(below);
            sum += (double)p;
            weighed += (double)(p * below);
        }
    }
    return (struct likelihood){
        (float)((double)(logits[code] - largest) - log(sum)), (float)(weighed / sum - log(sum))};
}

void sample_probabilities(const struct sample_in *in, float *scores, int32_t *order, double *out)
{
    bool bad = false;
    struct field field = process(in, scores, order, &bad);
    for (int i = 0; i < in->n; i++) {
        out[i] = 0;
    }
    if (field.n == 0 || in->sampling->temperature == 0) {
        out[field.best] = 1;
        return;
    }
    int n = narrow(in->sampling, scores, order, field.n);
    double largest = scores[field.best], sum = 0;
    for (int i = 0; i < n; i++) {
        sum += out[order[i]] = exp((double)scores[order[i]] - largest);
    }
    for (int i = 0; i < n; i++) {
        out[order[i]] /= sum;
    }
}
