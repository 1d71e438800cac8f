/* SPDX-License-Identifier: Apache-2.0
 * Earliest deadline first, in steps short enough that who comes next waits little. */
#include "server/worker/schedule.h"

#include <math.h>
#include <stddef.h>

#include "base/minmax.h"

/* Of the time, what a full house may take: the rest is for prompts, messages and encoders, and for steps that take
 * longer than others: with nine tenths listeners of a full house heard gaps of some milliseconds. */
static const double full = WIRE_FULL_PERCENT / 100.0, memory = 0.97;
/* Of the line, in steps: so many of just as many lanes count as much. */
static const double line_weight = 0.5;
/* What a width has cost is forgotten slowly where it is not made again: else one that does not pay would be tried, and
 * promised, every few steps. */
static const double long_memory = 0.9995;
/* Weight of a prompt in what one is taken to cost, and of one that costs more: of those that come at once the first few
 * steps must tell. */
static const double cheaper = 0.2, dearer = 0.5;
/* In one of so many steps the shortest prompt goes first, whoever has waited. */
enum { SHORTEST_EACH = 4 };
/* Of the lanes a second that the best width gives, a short step gives this share at least. */
static const double enough = 0.9;

/* What is left of the weight that steps of so many lanes had when they were counted last: of none nothing, as most
 * widths are never made. */
static double left_of(const struct schedule_clock *c, int n_lanes)
{
    return c->by_lanes[n_lanes].weight <= 0 ? 0
                                            : pow(long_memory, c->n_steps - c->by_lanes[n_lanes].step);
}

void schedule_learn_width(struct schedule_clock *c, int n_lanes, double seconds)
{
    if (n_lanes < 1 || n_lanes > SCHEDULE_MOST_LANES) {
        return;
    }
    double left = memory * left_of(c, n_lanes);
    c->by_lanes[n_lanes].seconds = c->by_lanes[n_lanes].seconds * left + seconds;
    c->by_lanes[n_lanes].weight = c->by_lanes[n_lanes].weight * left + 1;
    c->by_lanes[n_lanes].step = c->n_steps;
}

void schedule_learn(
    struct schedule_clock *c, int n_lanes, double seconds, double prompt, double prompt_s)
{
    c->n_steps++;
    if (prompt > 0) {
        const double told = prompt_s / prompt;
        c->prompt_s += (c->prompt_s <= 0        ? 1
                           : told > c->prompt_s ? dearer
                                                : cheaper) *
                       (told - c->prompt_s);
    }
    if (n_lanes < 1) {
        return;
    }
    schedule_learn_width(c, n_lanes, seconds);
    c->weight = c->weight * memory + 1;
    c->lanes = c->lanes * memory + n_lanes;
    c->lanes_lanes = c->lanes_lanes * memory + (double)n_lanes * n_lanes;
    c->seconds = c->seconds * memory + seconds;
    c->lanes_seconds = c->lanes_seconds * memory + n_lanes * seconds;
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

double schedule_most_s(double fewer_s, double others_s)
{
    static const double hardly_more = 1.05;
    return hardly_more * (fewer_s + others_s);
}

static double pays_up_to_s(const struct schedule_clock *c, int n_lanes)
{
    return schedule_most_s(schedule_step_s(c, n_lanes - 1, 0), schedule_step_s(c, 1, 0));
}

/* Whether one lane more does. A width that did not when it was made last is tried again once that is forgotten, but
 * none beyond it: else each time all of them would be tried, and promised. Its steps may be old, those that they are
 * compared with of today: a width that pays today is made next, and has steps of today then. */
static bool pays(const struct schedule_clock *c, int n_lanes)
{
    const int before = n_lanes - 1;
    const double weight = before > 1 && before <= SCHEDULE_MOST_LANES ? c->by_lanes[before].weight : 0;
    return schedule_step_s(c, n_lanes, 0) <= pays_up_to_s(c, n_lanes) &&
           (weight <= 0 || c->by_lanes[before].seconds <= weight * pays_up_to_s(c, before));
}

static bool fits(const struct schedule_clock *c, int n_lanes)
{
    return schedule_step_s(c, n_lanes, 0) <= 1e-3 * SCHEDULE_STEP_MS;
}

bool schedule_falls_behind(const struct schedule_clock *c, double frame_s)
{
    return schedule_step_s(c, 1, 0) >= frame_s;
}

int schedule_capacity(const struct schedule_clock *c, int n_lanes, double frame_s)
{
    int width = 1;
    if (schedule_falls_behind(c, frame_s)) {
        return n_lanes;
    }
    while (width < n_lanes && fits(c, width + 1) && pays(c, width + 1)) {
        width++;
    }
    double n = width * full * frame_s / schedule_step_s(c, width, 0);
    return n < 1 ? 1 : n > n_lanes ? n_lanes : (int)n;
}

/* Whether, of two speeches without sound, this one's prompt is read first: the shorter, but who came before `late` has
 * waited long enough. */
static bool reads_before(const struct schedule_speech *a, const struct schedule_speech *b, double late)
{
    return a->whole == b->whole || min(a->due, b->due) < late ? a->due < b->due : a->whole < b->whole;
}

/* Who goes next: the frame that is due first, or the prompt whose turn it is, should that be due before. */
static struct schedule_speech *most_urgent(
    struct schedule_speech *speeches, int n, double now, bool with_first, double late)
{
    struct schedule_speech *frame = NULL, *prompt = NULL;
    for (int i = 0; i < n; i++) {
        struct schedule_speech *s = &speeches[i];
        if (!s->can_step || s->chosen || s->background) {
            continue;
        }
        if (s->has_sound && (!frame || s->due < frame->due)) {
            frame = s;
        } else if (!s->has_sound && with_first && (!prompt || reads_before(s, prompt, late))) {
            prompt = s;
        }
    }
    if (!prompt || !frame) {
        return prompt ? prompt : frame;
    }
    /* Where those who hear have run dry, whose turn it is by due time comes after a frame of each of them: on a device
     * slower than hearing that is after seconds. */
    const double in_hand_s = frame->due - now;
    if (in_hand_s < 0 && now - prompt->due > 1e-3 * SCHEDULE_LONG_MS) {
        return prompt;
    }
    return in_hand_s > 1e-3 * SCHEDULE_SAFE_MS && prompt->due + 1e-3 * SCHEDULE_FIRST_MS < frame->due
               ? prompt
               : frame;
}

/* Until when a step beside listeners must be over, so that each of them gets a frame in time behind it. The time of
 * the first of them that runs out is *due: -INFINITY where one waits for the first sound. */
static double beside_s(const struct schedule_speech *speeches, int n, double now,
    const struct schedule_clock *clock, double *due)
{
    int n_heard = 0, width = 1;
    *due = INFINITY;
    for (int i = 0; i < n; i++) {
        const struct schedule_speech *s = &speeches[i];
        if (s->can_step && !s->background) {
            n_heard++;
            *due = !s->has_sound ? -INFINITY : s->due < *due ? s->due : *due;
        }
    }
    while (width < n_heard && fits(clock, width + 1) && pays(clock, width + 1)) {
        width++;
    }
    int n_steps = (n_heard + width - 1) / width;
    return full * (*due - now) - n_steps * schedule_step_s(clock, width, 0);
}

/* Of those in the background the one that came first. */
static struct schedule_speech *oldest_in_background(struct schedule_speech *speeches, int n)
{
    struct schedule_speech *oldest = NULL;
    for (int i = 0; i < n; i++) {
        struct schedule_speech *s = &speeches[i];
        if (s->background && s->can_step && !s->chosen && (!oldest || s->due < oldest->due)) {
            oldest = s;
        }
    }
    return oldest;
}

/* Behind the choice of n_chosen listeners. Returns how many lanes step in all. */
static int choose_background(struct schedule_speech *speeches, int n, double now,
    const struct schedule_clock *clock, int n_chosen)
{
    static const double little = 1.1;
    double due, left_s = beside_s(speeches, n, now, clock, &due), prompt = 0,
                most_s = 1e-3 * SCHEDULE_BACKGROUND_MS;
    const bool comfortable = due - now > 1e-3 * SCHEDULE_LEAD_MS;
    if (!comfortable) {
        most_s = little * schedule_step_s(clock, n_chosen, 0);
    }
    struct schedule_speech *s;
    while ((s = oldest_in_background(speeches, n))) {
        double step_s = schedule_step_s(clock, n_chosen + 1, prompt + s->prompt);
        /* A prompt takes what it takes: it goes alone. */
        bool first = n_chosen == 0 || (comfortable && s->prompt > 0 && prompt <= 0);
        if (step_s > left_s || (step_s > most_s && !first)) {
            break;
        }
        s->chosen = true;
        n_chosen++;
        prompt += s->prompt;
    }
    return n_chosen;
}

/* 0: the step would be too long. */
static double lanes_a_second(const struct schedule_clock *c, int n_lanes)
{
    return fits(c, n_lanes) ? n_lanes / schedule_step_s(c, n_lanes, 0) : 0;
}

/* How long a step of n_lanes at most may be that only makes what is heard later. Who comes meanwhile waits for its end,
 * so it is short, but not so short that it is dear. */
static double short_step_s(const struct schedule_clock *c, int n_lanes)
{
    const double short_s = 1e-3 * SCHEDULE_SHORT_MS;
    double best = 0;
    int width = 1;
    if (c->one_by_one) {
        return 1e-3 * SCHEDULE_ONE_BY_ONE_MS;
    }
    if (schedule_step_s(c, n_lanes, 0) <= short_s) {
        return short_s;
    }
    for (int n = 1; n <= n_lanes; n++) {
        best = max(best, lanes_a_second(c, n));
    }
    while (lanes_a_second(c, width) < enough * best) {
        width++;
    }
    return min(max(short_s, schedule_step_s(c, width, 0)), 1e-3 * SCHEDULE_STEP_MS);
}

int schedule_choose(
    struct schedule_speech *speeches, int n, double now, const struct schedule_clock *clock)
{
    int n_chosen = 0;
    double prompt = 0;
    double dry_s = INFINITY; /* from now: what the first to run dry of those chosen has in hand */
    double late = clock->n_steps % SHORTEST_EACH == 0 ? -INFINITY : now - 1e-3 * SCHEDULE_FIRST_MS;
    bool someone_waits = false, with_first = true;
    int n_heard = 0;
    for (int i = 0; i < n; i++) {
        const bool is_heard = speeches[i].can_step && !speeches[i].background;
        speeches[i].chosen = false;
        someone_waits = someone_waits || (is_heard && !speeches[i].has_sound);
        n_heard += is_heard;
    }
    /* Where all lanes are at work nobody can come before one has ended. */
    const double long_s = 1e-3 * SCHEDULE_STEP_MS,
                 ahead_s = n_heard == n ? long_s : short_step_s(clock, n_heard);
    struct schedule_speech *s;
    while ((s = most_urgent(speeches, n, now, with_first, late))) {
        const double in_hand_s = s->has_sound ? s->due - now : INFINITY;
        const bool cannot_wait = s->has_sound ? in_hand_s <= 1e-3 * SCHEDULE_SAFE_MS
                                              : now - s->due > 1e-3 * SCHEDULE_LONG_MS;
        /* All who are in the step get their frames at its end. */
        const double in_time_s = cannot_wait ? INFINITY : full * (dry_s - 1e-3 * SCHEDULE_WAY_MS);
        const double most_s = min(s->has_sound && !cannot_wait ? ahead_s : long_s, in_time_s);
        const bool fits_in =
            n_chosen == 0 || (schedule_step_s(clock, n_chosen + 1, prompt + s->prompt) <= most_s &&
                                 pays(clock, n_chosen + 1));
        if (s->has_sound &&
            ((in_hand_s > 1e-3 * SCHEDULE_STAND_BACK_MS && someone_waits) || !fits_in)) {
            break;
        }
        if (!fits_in) {
            /* Its prompt is for the next step; a frame of others may still fit. Where it went first as it had waited,
             * so may a shorter prompt. */
            with_first = late > -INFINITY;
            late = -INFINITY;
            continue;
        }
        s->chosen = true;
        n_chosen++;
        prompt += s->prompt;
        dry_s = min(dry_s, in_hand_s);
    }
    return choose_background(speeches, n, now, clock, n_chosen);
}
