/* SPDX-License-Identifier: Apache-2.0
 * Earliest deadline first, in steps short enough that who comes next waits little. */
#include "server/worker/schedule.h"

#include <math.h>
#include <stddef.h>

/* Of the time, what a full house may take: the rest is for prompts, messages and encoders, and for steps that take
 * longer than others: with nine tenths listeners of a full house heard gaps of some milliseconds. */
static const double full = 0.8, memory = 0.97;
/* Of the line, in steps: so many of just as many lanes count as much. */
static const double line_weight = 0.5;
/* What a width has cost is forgotten slowly where it is not made again: else one that does not pay would be tried, and
 * promised, every few steps. */
static const double long_memory = 0.9995;
enum { OLDEST_EACH = 4 }; /* steps */

/* What is left of the weight that steps of so many lanes had when they were counted last. */
static double left_of(const struct schedule_clock *c, int n_lanes)
{
    return pow(long_memory, c->n_steps - c->by_lanes[n_lanes].step);
}

void schedule_learn(
    struct schedule_clock *c, int n_lanes, double seconds, double prompt, double prompt_s)
{
    c->n_steps++;
    if (n_lanes < 1) {
        return;
    }
    if (n_lanes <= SCHEDULE_MOST_LANES) {
        double left = memory * left_of(c, n_lanes);
        c->by_lanes[n_lanes].seconds = c->by_lanes[n_lanes].seconds * left + seconds;
        c->by_lanes[n_lanes].weight = c->by_lanes[n_lanes].weight * left + 1;
        c->by_lanes[n_lanes].step = c->n_steps;
    }
    c->weight = c->weight * memory + 1;
    c->lanes = c->lanes * memory + n_lanes;
    c->lanes_lanes = c->lanes_lanes * memory + (double)n_lanes * n_lanes;
    c->seconds = c->seconds * memory + seconds;
    c->lanes_seconds = c->lanes_seconds * memory + n_lanes * seconds;
    if (prompt > 0) {
        c->prompt_s += (c->prompt_s > 0 ? 0.2 : 1) * (prompt_s / prompt - c->prompt_s);
    }
}

double schedule_step_s(const struct schedule_clock *c, int n_lanes, double prompt)
{
    if (c->weight <= 0) {
        return 0;
    }
    double n = c->lanes / c->weight, s = c->seconds / c->weight;
    double spread = c->lanes_lanes / c->weight - n * n;
    /* Steps of about the same width say nothing about the slope: then all of it is counted for the lanes. */
    double lane_s = spread > 0.25 ? (c->lanes_seconds / c->weight - n * s) / spread : s / n;
    lane_s = lane_s < 0 ? 0 : lane_s > s / n ? s / n : lane_s;
    double line = s + (n_lanes - n) * lane_s, own = 0, own_weight = 0;
    if (n_lanes <= SCHEDULE_MOST_LANES) {
        double left = left_of(c, n_lanes);
        own = c->by_lanes[n_lanes].seconds * left;
        own_weight = c->by_lanes[n_lanes].weight * left;
    }
    return (line * line_weight + own) / (line_weight + own_weight) + prompt * c->prompt_s;
}

/* Whether one lane more makes a step longer by less than a step of its own takes, or hardly by more. */
static bool pays(const struct schedule_clock *c, int n_lanes)
{
    return schedule_step_s(c, n_lanes, 0) <=
           1.05 * (schedule_step_s(c, n_lanes - 1, 0) + schedule_step_s(c, 1, 0));
}

static bool fits(const struct schedule_clock *c, int n_lanes, double prompt)
{
    return schedule_step_s(c, n_lanes, prompt) <= 1e-3 * SCHEDULE_STEP_MS;
}

int schedule_capacity(const struct schedule_clock *c, int n_lanes, double frame_s)
{
    int width = 1;
    if (schedule_step_s(c, 1, 0) >= frame_s) {
        return n_lanes;
    }
    while (width < n_lanes && fits(c, width + 1, 0) && pays(c, width + 1)) {
        width++;
    }
    double n = width * full * frame_s / schedule_step_s(c, width, 0);
    return n < 1 ? 1 : n > n_lanes ? n_lanes : (int)n;
}

/* Whether, of two speeches without sound, this one's prompt is read first. */
static bool reads_before(
    const struct schedule_speech *a, const struct schedule_speech *b, bool oldest_first)
{
    return oldest_first || a->whole == b->whole ? a->due < b->due : a->whole < b->whole;
}

/* Who goes next: the frame that is due first, or the prompt whose turn it is, should that be due before. */
static struct schedule_speech *most_urgent(
    struct schedule_speech *speeches, int n, bool with_first, bool oldest_first)
{
    struct schedule_speech *frame = NULL, *prompt = NULL;
    for (int i = 0; i < n; i++) {
        struct schedule_speech *s = &speeches[i];
        if (!s->can_step || s->chosen) {
            continue;
        }
        if (s->has_sound && (!frame || s->due < frame->due)) {
            frame = s;
        } else if (!s->has_sound && with_first && (!prompt || reads_before(s, prompt, oldest_first))) {
            prompt = s;
        }
    }
    bool prompt_first = prompt && (!frame || prompt->due + 1e-3 * SCHEDULE_FIRST_MS < frame->due);
    return prompt_first ? prompt : frame;
}

int schedule_choose(
    struct schedule_speech *speeches, int n, double now, const struct schedule_clock *clock)
{
    int n_chosen = 0;
    double prompt = 0;
    bool someone_waits = false, with_first = true, oldest_first = clock->n_steps % OLDEST_EACH == 0;
    for (int i = 0; i < n; i++) {
        speeches[i].chosen = false;
        someone_waits = someone_waits || (speeches[i].can_step && !speeches[i].has_sound);
    }
    struct schedule_speech *s;
    while ((s = most_urgent(speeches, n, with_first, oldest_first))) {
        bool comfortable = s->has_sound && s->due - now > 1e-3 * SCHEDULE_LEAD_MS;
        if ((comfortable && someone_waits) ||
            (n_chosen > 0 && s->has_sound &&
                !(fits(clock, n_chosen + 1, prompt + s->prompt) && pays(clock, n_chosen + 1)))) {
            break;
        }
        if (n_chosen > 0 && !s->has_sound &&
            !(fits(clock, n_chosen + 1, prompt + s->prompt) && pays(clock, n_chosen + 1))) {
            with_first = false; /* its prompt is for the next step; a frame of others may still fit */
            continue;
        }
        s->chosen = true;
        n_chosen++;
        prompt += s->prompt;
    }
    return n_chosen;
}
