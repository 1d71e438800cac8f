/* SPDX-License-Identifier: Apache-2.0
 * Viterbi in a band that moves with the best place; the way back is taken again for the newest frames only. */
#include "words/path.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/minmax.h"

/* What passing over a place costs: about as much as a frame on which it gets half of the attention. */
static const float skip_cost = 0.7f;
/* A share that says nothing against a place: heads stray. */
static const float least_share = 0.001f;
static const float never = -1e30f;

utter_status path_init(struct path *p, int room, utter_error *error)
{
    p->room = room;
    p->base = memory_new((size_t)room, sizeof *p->base);
    p->back = memory_new((size_t)room, sizeof *p->back);
    p->share = memory_new((size_t)room, sizeof *p->share);
    p->place = memory_new((size_t)room, sizeof *p->place);
    return p->base && p->back && p->share && p->place ? UTTER_OK : error_memory(error, "words");
}

void path_fini(struct path *p)
{
    memory_free(p->base);
    memory_free(p->back);
    memory_free(p->share);
    memory_free(p->place);
    *p = (struct path){0};
}

/* The best way into `place` from the frame before; *over: so many places were passed. */
static float best_way(const struct path *p, int place, uint8_t *over)
{
    int before = p->base[p->n - 1];
    float best = never;
    *over = 0;
    for (int k = 0; k <= PATH_MOST && place - k >= before; k++) {
        if (place - k < before + PATH_BAND) {
            float score = p->score[place - k - before] - (k > 1 ? skip_cost * (float)(k - 1) : 0);
            if (score > best) {
                best = score;
                *over = (uint8_t)k;
            }
        }
    }
    return best;
}

/* Goes back from the best place of the newest frame over those that are not settled. */
static void trace(struct path *p)
{
    int frame = p->n - 1, at = 0;
    for (int i = 1; i < PATH_BAND; i++) {
        at = p->score[i] > p->score[at] ? i : at;
    }
    at += p->base[frame];
    int first = p->n - PATH_SETTLED;
    first = max(first, 0);
    for (;; frame--) {
        p->place[frame] = at;
        if (frame == first) {
            break;
        }
        at -= p->back[frame][at - p->base[frame]];
    }
    for (; first > 0 && frame < p->n; frame++) { /* what is settled stays */
        p->place[frame] = max(p->place[frame], p->place[frame - 1]);
    }
}

void path_step(struct path *p, const float *shares, int n)
{
    float score[PATH_BAND], best = never;
    int frame = p->n, base = 0;
    if (frame > 0) {
        base = max(p->base[frame - 1], p->place[frame - 1] - PATH_BEHIND);
    }
    for (int i = 0; i < PATH_BAND; i++) {
        int place = base + i;
        score[i] = never;
        p->back[frame][i] = 0;
        p->share[frame][i] = place < n ? (uint8_t)lrintf(255 * shares[place]) : 0;
        if (place < n) {
            float way = frame == 0 ? -skip_cost * (float)place : best_way(p, place, &p->back[frame][i]);
            score[i] = way > never / 2 ? way + logf(shares[place] + least_share) : never;
            best = max(best, score[i]);
        }
    }
    for (int i = 0; i < PATH_BAND; i++) {
        p->score[i] = score[i] > never / 2 ? score[i] - best : never;
    }
    p->base[frame] = base;
    p->n++;
    trace(p);
}

float path_share(const struct path *p, int frame, int from, int to)
{
    int first = from - p->base[frame], last = to - p->base[frame], sum = 0;
    first = max(first, 0);
    last = min(last, PATH_BAND);
    for (int i = first; i < last; i++) {
        sum += p->share[frame][i];
    }
    return (float)min(sum, 255) / 255;
}

int path_enter(const struct path *p, int frame, int place)
{
    while (frame < p->n && p->place[frame] < place) {
        frame++;
    }
    return frame;
}

double path_moment(const struct path *p, int frame, int place)
{
    if (frame == 0 || frame >= p->n) {
        return frame;
    }
    int from = max(frame - 2, 0), to = min(frame + 2, p->n);
    double moment = from;
    for (int i = from; i < to; i++) {
        moment += 1 - (double)path_share(p, i, place, p->base[i] + PATH_BAND);
    }
    double least = frame - 1, most = frame + 1;
    moment = max(moment, least);
    return min(moment, most);
}
