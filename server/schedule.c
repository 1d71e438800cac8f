/* SPDX-License-Identifier: Apache-2.0
 * Earliest deadline first, in steps short enough that who comes next waits little. */
#include "server/schedule.h"

#include <stddef.h>

/* The mean over the lanes of a step: on a CPU it hardly depends on how many there are; on a GPU it falls with every
 * lane that joins, so that the width grows step by step until all fit. */
void schedule_learn(struct schedule_clock *clock, int n_lanes, double seconds)
{
    if (n_lanes < 1) {
        return;
    }
    double share = clock->n_seen < 4 ? 0.5 : 0.1, each = seconds / n_lanes;
    clock->lane_s += (clock->n_seen ? share : 1) * (each - clock->lane_s);
    clock->n_seen++;
}

int schedule_width(const struct schedule_clock *clock, int n_lanes)
{
    double width = clock->lane_s > 0 ? 1e-3 * SCHEDULE_STEP_MS / clock->lane_s : 1;
    return width < 1 ? 1 : width > n_lanes ? n_lanes : (int)width;
}

/* Smaller goes first. */
static double urgency(const struct schedule_speech *s, double now)
{
    return s->has_sound ? s->due - now : s->due - now - 1e6;
}

static struct schedule_speech *most_urgent(struct schedule_speech *speeches, int n, double now)
{
    struct schedule_speech *best = NULL;
    for (int i = 0; i < n; i++) {
        struct schedule_speech *s = &speeches[i];
        if (s->can_step && !s->chosen && (!best || urgency(s, now) < urgency(best, now))) {
            best = s;
        }
    }
    return best;
}

int schedule_choose(struct schedule_speech *speeches, int n, double now, int width)
{
    int n_chosen = 0;
    bool someone_waits = false;
    for (int i = 0; i < n; i++) {
        speeches[i].chosen = false;
    }
    while (n_chosen < width) {
        struct schedule_speech *s = most_urgent(speeches, n, now);
        bool comfortable = s && s->has_sound && s->due - now > 1e-3 * SCHEDULE_LEAD_MS;
        if (!s || (comfortable && someone_waits)) {
            break;
        }
        someone_waits = someone_waits || !s->has_sound;
        s->chosen = true;
        n_chosen++;
    }
    return n_chosen;
}
