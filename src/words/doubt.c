/* SPDX-License-Identifier: Apache-2.0
 * Around a word that was not said the codes are less likely than codes usually are, for the model then expects to hear
 * it: the stretch of frames by the word that surprises most is what tells. */
#include "base/minmax.h"
#include "words/words_parts.h"

/* Frames before the way enters a word, and behind where it leaves it, that may be those without it. */
enum { BEFORE = 1, BEHIND = 2 };

/* Nats: a word whose frames surprise less was said. Of the built-in voice's own speech those of 793 words that were
 * came to at most 5.3, of 107 that were not to at least 18.6. */
static const double least_surprise = 12;

/* Of all stretches of frames from `from` to `to` the largest sum. */
static double most_surprise(const struct words *w, int from, int to)
{
    double most = 0, sum = 0;
    for (int f = from; f < to; f++) {
        sum = max(sum + (double)w->surprise[f], 0.0);
        most = max(most, sum);
    }
    return most;
}

/* Among those that surprise most, in their order. */
static int keep(struct words_doubt *at, int n, const struct words_doubt *doubt)
{
    int i = min(n, WORDS_DOUBTS - 1);
    if (n == WORDS_DOUBTS && at[i].surprise >= doubt->surprise) {
        return n;
    }
    for (; i > 0 && at[i - 1].surprise < doubt->surprise; i--) {
        at[i] = at[i - 1];
    }
    at[i] = *doubt;
    return min(n + 1, WORDS_DOUBTS);
}

int words_doubts(const struct words *w, const struct words_tokens *tokens, struct words_doubt *at)
{
    int n = 0;
    for (size_t i = 0; i < w->n_told && w->surprise; i++) {
        const struct words_place *p = &w->places[i];
        int leave = i + 1 < w->n_told ? p[1].enter : w->path.n;
        int from = max(p->enter - BEFORE, 0), to = min(max(leave, p->enter + 1) + BEHIND, w->path.n);
        struct words_doubt doubt = {i, p->token, p->token + 1, most_surprise(w, from, to)};
        uint64_t end = w->segmenter.at[i].at + w->segmenter.at[i].bytes;
        while (doubt.to < tokens->n && tokens->begin[doubt.to] < end) {
            doubt.to++;
        }
        bool all = doubt.from == 0 && doubt.to >= tokens->n; /* something was said */
        if (!all && (w->at[i].skipped || doubt.surprise >= least_surprise)) {
            n = keep(at, n, &doubt);
        }
    }
    return n;
}

void words_surprise(struct words *w, int frame, float nats)
{
    if (frame < w->path.n) {
        w->surprise[frame] = nats;
    }
}

void words_weighed(struct words *w, int64_t missed)
{
    w->weighed = true;
    w->missed = missed;
}
