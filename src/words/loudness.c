/* SPDX-License-Identifier: Apache-2.0
 * Windows of root mean squares. Loud is what is above a hundredth of the loudest so far. */
#include "words/loudness.h"

#include <math.h>

#include "base/memory.h"
#include "base/minmax.h"

utter_status loudness_init(struct loudness *l, int window, int room, utter_error *error)
{
    l->window = window;
    l->room = room;
    l->at = memory_new((size_t)room, sizeof *l->at);
    return l->at ? UTTER_OK : error_memory(error, "words");
}

void loudness_fini(struct loudness *l)
{
    memory_free(l->at);
    *l = (struct loudness){0};
}

void loudness_add(struct loudness *l, const float *pcm, size_t n)
{
    for (size_t i = 0; i < n && l->n < l->room; i++) {
        l->sum += (double)pcm[i] * (double)pcm[i];
        if (++l->n_sum == l->window) {
            float level = (float)sqrt(l->sum / l->window);
            l->at[l->n++] = level;
            l->loudest = max(l->loudest, level);
            l->sum = 0;
            l->n_sum = 0;
        }
    }
}

float loudness_threshold(const struct loudness *l)
{
    static const float share = 0.01f, least = 0.0005f;
    return max(share * l->loudest, least);
}

int64_t loudness_onset(const struct loudness *l, int64_t from, int64_t end)
{
    float least = loudness_threshold(l);
    int64_t at = from / l->window;
    while (at < l->n && at * l->window < end && l->at[at] < least) {
        at++;
    }
    bool found = at < l->n && at * l->window < end;
    return found ? max(at * l->window, from) : from;
}

int64_t loudness_offset(const struct loudness *l, int64_t from, int64_t end)
{
    float least = loudness_threshold(l);
    int64_t at = (end + l->window - 1) / l->window;
    at = min(at, l->n);
    while (at > 0 && at * l->window > from && l->at[at - 1] < least) {
        at--;
    }
    int64_t edge = at * l->window;
    edge = min(edge, end);
    return max(edge, from);
}
