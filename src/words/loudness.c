/* SPDX-License-Identifier: Apache-2.0
 * Windows of root mean squares. Loud is what is above a hundredth of the loudest until there. */
#include "words/loudness.h"

#include <math.h>

#include "base/memory.h"
#include "base/minmax.h"

utter_status loudness_init(struct loudness *l, int window, int room, utter_error *error)
{
    l->window = window;
    l->room = room;
    l->at = memory_new((size_t)room, sizeof *l->at);
    l->loudest = memory_new((size_t)room, sizeof *l->loudest);
    return l->at && l->loudest ? UTTER_OK : error_memory(error, "words");
}

void loudness_fini(struct loudness *l)
{
    memory_free(l->at);
    memory_free(l->loudest);
    *l = (struct loudness){0};
}

void loudness_add(struct loudness *l, const float *pcm, size_t n)
{
    for (size_t i = 0; i < n && l->n < l->room; i++) {
        l->sum += (double)pcm[i] * (double)pcm[i];
        if (++l->n_sum == l->window) {
            float level = (float)sqrt(l->sum / l->window);
            l->at[l->n] = level;
            l->loudest[l->n] = l->n > 0 ? max(l->loudest[l->n - 1], level) : level;
            l->n++;
            l->sum = 0;
            l->n_sum = 0;
        }
    }
}

float loudness_threshold(const struct loudness *l, int n_windows)
{
    static const float share = 0.01f, least = 0.0005f;
    return n_windows > 0 ? max(share * l->loudest[n_windows - 1], least) : least;
}

/* The first window that begins at or behind sample `end`, of those that there are. */
static int window_behind(const struct loudness *l, int64_t end)
{
    int64_t at = (end + l->window - 1) / l->window;
    return (int)min(at, l->n);
}

int64_t loudness_onset(const struct loudness *l, int64_t from, int64_t end)
{
    int behind = window_behind(l, end);
    float least = loudness_threshold(l, behind);
    int64_t at = from / l->window;
    while (at < behind && (l->at[at] < least || (at + 1 < behind && l->at[at + 1] < least))) {
        at++;
    }
    return at < behind ? max(at * l->window, from) : from;
}

int64_t loudness_offset(const struct loudness *l, int64_t from, int64_t end)
{
    int64_t at = window_behind(l, end);
    float least = loudness_threshold(l, (int)at);
    while (at > 0 && at * l->window > from && l->at[at - 1] < least) {
        at--;
    }
    int64_t edge = at * l->window;
    edge = min(edge, end);
    return max(edge, from);
}
