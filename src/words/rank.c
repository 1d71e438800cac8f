/* SPDX-License-Identifier: Apache-2.0
 * A way through the text for each head (path.h), and what it explains. */
#include "words/rank.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/minmax.h"
#include "words/shares.h"

/* Speech reaches the end of its text late: a head that looks at the rows that come in is there long before. */
static const double latest_end = 0.7;

utter_status rank_init(struct rank *r, const struct config *config, utter_error *error)
{
    const struct stack_config *t = &config->talker;
    const size_t n = (size_t)t->n_layers * (size_t)t->n_heads;
    r->n = (int)n;
    r->n_shares = config->max_positions;
    r->heads = memory_new(n, sizeof *r->heads);
    r->paths = memory_new(n, sizeof *r->paths);
    r->sums = memory_new(n, sizeof *r->sums);
    r->shares = memory_new((size_t)r->n_shares, sizeof *r->shares);
    utter_status status =
        r->heads && r->paths && r->sums && r->shares ? UTTER_OK : error_memory(error, "heads to rank");
    for (int i = 0; i < r->n && !status; i++) {
        r->heads[i] = (struct talker_head){i / t->n_heads, i % t->n_heads};
        status = path_init(&r->paths[i], RANK_FRAMES, error);
    }
    if (status) {
        rank_fini(r);
    }
    return status;
}

void rank_fini(struct rank *r)
{
    for (int i = 0; r->paths && i < r->n; i++) {
        path_fini(&r->paths[i]);
    }
    memory_free(r->heads);
    memory_free(r->paths);
    memory_free(r->sums);
    memory_free(r->shares);
    *r = (struct rank){0};
}

void rank_frame(struct rank *r, const float *scores, int n_scores, int n_places)
{
    int n = min(n_places, n_scores);
    n = min(n, r->n_shares);
    if (!scores || n < 1 || r->paths[0].n >= RANK_FRAMES) {
        return;
    }
    for (int i = 0; i < r->n; i++) {
        shares_clear(r->shares, n);
        shares_add(r->shares, scores + (ptrdiff_t)i * n_scores, n, 1);
        path_step(&r->paths[i], r->shares, n);
    }
}

/* Of one head and one utterance, 0 .. 1. */
static double score_of(const struct path *p, int n_tokens)
{
    double on_way = 0;
    int n_visited = 0, before = -1;
    for (int f = 0; f < p->n; f++) {
        int place = p->place[f];
        on_way += (double)path_share(p, f, place, place + 1);
        n_visited += place != before && place < n_tokens;
        before = place;
    }
    double end = min((double)path_enter(p, 0, n_tokens - 1) / p->n / latest_end, 1.0);
    return on_way / p->n * n_visited / n_tokens * end * end;
}

void rank_end(struct rank *r, int n_tokens, bool whole)
{
    const int n_frames = r->paths[0].n;
    const bool counts = whole && n_frames > 0 && n_tokens > 0 && n_frames < RANK_FRAMES;
    for (int i = 0; i < r->n; i++) {
        r->sums[i] += counts ? n_frames * score_of(&r->paths[i], n_tokens) : 0;
        r->paths[i].n = 0;
    }
    r->n_frames += counts ? n_frames : 0;
    r->n_tokens += counts ? n_tokens : 0;
    r->n_utterances += counts;
}

bool rank_enough(const struct rank *r)
{
    return r->n_frames >= RANK_LEAST_FRAMES && r->n_tokens >= RANK_LEAST_TOKENS &&
           r->n_utterances >= RANK_LEAST_UTTERANCES;
}

static int better_first(const void *a, const void *b)
{
    const struct ranked_head *x = a, *y = b;
    const int place =
        x->head.layer != y->head.layer ? x->head.layer - y->head.layer : x->head.head - y->head.head;
    return x->score > y->score ? -1 : x->score < y->score ? 1 : place;
}

void rank_order(const struct rank *r, struct ranked_head *at)
{
    for (int i = 0; i < r->n; i++) {
        at[i] = (struct ranked_head){r->heads[i], r->n_frames > 0 ? r->sums[i] / r->n_frames : 0};
    }
    qsort(at, (size_t)r->n, sizeof *at, better_first);
}

utter_status rank_choose(const struct rank *r, struct heads *heads, utter_error *error)
{
    struct ranked_head *at = memory_new((size_t)r->n, sizeof *at);
    *heads = (struct heads){0};
    if (!at) {
        return error_memory(error, "heads to rank");
    }
    rank_order(r, at);
    if (rank_enough(r) && at[0].score >= RANK_LEAST_SCORE) {
        *heads = (struct heads){.at = {at[0].head}, .n = 1};
    }
    memory_free(at);
    return UTTER_OK;
}
