/* SPDX-License-Identifier: Apache-2.0
 * Speeches that nobody hears, timed. */
#include "server/worker/warm.h"

#include <string.h>

#include "base/clock.h"
#include "base/minmax.h"

enum {
    STEPS_EACH = 3,  /* of a width: the quickest tells what it costs when nothing disturbs it */
    MOST_FRAMES = 40 /* of a speech: more than the widths ask of a lane */
};

static const char text[] = "One, two, three.";

struct warming {
    utter_model *model;
    struct slot *slots;
    int n_lanes, n_open;
    struct schedule_clock *clock;
    int next;            /* lane of the next step: all are to speak about as long */
    double one_s;        /* a step of one lane */
    utter_status status; /* of the last step, or why the model is broken */
    utter_error *error;
};

/* As many of n as there is memory for. */
static void open_lanes(struct warming *w, int n)
{
    const char *name = utter_model_voice_name(w->model, 0);
    struct wire_open o = {.voice_name = name, .max_frames = MOST_FRAMES, .live = true};
    utter_voice *voice = NULL;
    for (int p = 0; p < parameter_count; p++) {
        o.sampling[p] = parameter_own(&parameter_table[p]);
    }
    if (name && utter_voice_preset(&voice, w->model, name, NULL) != UTTER_OK) {
        voice = NULL;
    }
    utter_status status = UTTER_OK;
    for (w->n_open = 0; w->n_open < n; w->n_open++) {
        struct slot *slot = &w->slots[w->n_open];
        if ((status = slot_open(slot, w->model, 0, &o, voice, w->error)) != UTTER_OK ||
            (status = slot_text(slot, text, sizeof text - 1, w->error)) != UTTER_OK ||
            (status = slot_text(slot, NULL, 0, w->error)) != UTTER_OK) {
            break;
        }
    }
    w->status = slot_model_broke(status) ? status : w->status;
    utter_voice_free(&voice);
}

static void close_lanes(struct warming *w)
{
    for (int i = 0; i < w->n_lanes; i++) { /* also one that was opened in vain */
        slot_close(&w->slots[i]);
    }
    w->n_open = w->next = 0;
}

static utter_reading_stats stats_of(const struct slot *slot)
{
    utter_reading_stats stats = {.size = sizeof stats};
    utter_reading_get_stats(slot->reading, &stats);
    return stats;
}

/* The first steps read the prompts, in pieces where these are long, and touch memory for the first time. */
static void read_prompts(struct warming *w)
{
    bool is_reading = w->status == UTTER_OK && w->n_open > 0;
    while (is_reading && (w->status = utter_model_step(w->model, w->error)) == UTTER_OK) {
        is_reading = false;
        for (int i = 0; i < w->n_open; i++) {
            w->slots[i].stats = stats_of(&w->slots[i]);
            is_reading = is_reading || w->slots[i].stats.n_frames == 0;
        }
    }
}

/* Chooses so many of those that speak still, who have stepped least, and holds all others. False: fewer speak. */
static bool choose(struct warming *w, int width)
{
    int n = 0;
    const int first = w->next;
    for (int k = 0; k < w->n_open; k++) {
        const int i = (first + k) % w->n_open;
        struct slot *slot = &w->slots[i];
        slot->paused = n == width || slot->starved;
        utter_reading_hold(slot->reading, slot->paused);
        if (!slot->paused) {
            n++;
            w->next = (i + 1) % w->n_open;
        }
    }
    return n == width;
}

/* How many of those who were chosen made a frame. Who did not has come to its end, which can happen at any frame. */
static int look_back(struct warming *w)
{
    int n = 0;
    for (int i = 0; i < w->n_open; i++) {
        struct slot *slot = &w->slots[i];
        const uint64_t before = slot->stats.n_frames;
        slot->stats = stats_of(slot);
        slot->starved = slot->starved || (!slot->paused && slot->stats.n_frames == before);
        n += slot->stats.n_frames != before;
    }
    return n;
}

static int count_speaking(const struct warming *w)
{
    int n = 0;
    for (int i = 0; i < w->n_open; i++) {
        n += !w->slots[i].starved;
    }
    return n;
}

/* Seconds of a step of so many lanes; 0: so many do not step. A step in which one of them ends tells nothing. */
static double time_step(struct warming *w, int width)
{
    double step_s = 0;
    for (int k = 0; k < STEPS_EACH && w->status == UTTER_OK && choose(w, width); k++) {
        const double begin = clock_seconds();
        const utter_status status = utter_model_step(w->model, w->error);
        const double took = clock_seconds() - begin;
        w->status = status == UTTER_AGAIN ? UTTER_OK : status; /* all of them have ended */
        if (look_back(w) == width && status == UTTER_OK) {
            step_s = step_s <= 0 ? took : min(step_s, took);
        }
    }
    return w->status == UTTER_OK ? step_s : 0;
}

/* Whether a step of so many lanes, which is learnt, took hardly more than one of fewer and a step of their own for the
 * others (schedule.h), and is short enough. */
static bool try_width(struct warming *w, int width, int fewer, double fewer_s, double *step_s)
{
    *step_s = time_step(w, width);
    if (*step_s <= 0) {
        return false;
    }
    if (*step_s > schedule_most_s(fewer_s, (width - fewer) * w->one_s)) {
        schedule_learn_width(w->clock, width, *step_s);
        return false;
    }
    schedule_learn(w->clock, width, *step_s, 0, 0);
    return *step_s <= 1e-3 * SCHEDULE_STEP_MS;
}

/* Doubles the width while it pays, and finds the width where it ceases to between the last two; where a step is
 * too long, it tries only the width behind the last good one. Where a step could not be timed since some have ended,
 * it goes on with the others. */
static void try_widths(struct warming *w)
{
    int good = 1, bad = 0, most;
    double good_s = w->one_s, step_s;
    while (w->status == UTTER_OK && good < (most = count_speaking(w)) && bad != good + 1) {
        const int width = min(bad ? (good + bad) / 2 : 2 * good, most);
        if (try_width(w, width, good, good_s, &step_s)) {
            good = width;
            good_s = step_s;
        } else if (step_s > 1e-3 * SCHEDULE_STEP_MS) {
            /* Just behind the last good width some devices take a leap, which no line through the others tells. */
            if (width > good + 1) {
                try_width(w, good + 1, good, good_s, &step_s);
            }
            return;
        } else if (step_s <= 0 && count_speaking(w) == most) {
            return;
        } else if (step_s > 0) {
            bad = width;
        }
    }
}

utter_status warm_up(utter_model *model, struct slot *slots, int n_lanes, struct schedule_clock *clock,
    utter_error *error)
{
    struct warming w = {
        .model = model, .slots = slots, .n_lanes = n_lanes, .clock = clock, .error = error};
    open_lanes(&w, 1);
    read_prompts(&w);
    const double prompt_s = w.n_open ? stats_of(&slots[0]).prefill_s : 0;
    w.one_s = time_step(&w, 1);
    close_lanes(&w);
    if (w.one_s > 0) {
        schedule_learn(clock, 1, w.one_s, slot_prompt_size(sizeof text - 1), prompt_s);
    }
    if (w.one_s > 0 && w.one_s <= 1e-3 * SCHEDULE_STEP_MS) {
        open_lanes(&w, n_lanes);
        read_prompts(&w);
        try_widths(&w);
        close_lanes(&w);
    }
    return slot_model_broke(w.status) ? w.status : UTTER_OK;
}
