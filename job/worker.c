/* SPDX-License-Identifier: Apache-2.0
 * Slots: a claim each. A step moves all that speak; those that have ended go to the finishers, and come back to be
 * acknowledged. There are more slots than lanes, so that no lane waits for a disk or a store. */
#include "job/worker.h"

#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "job/worker_parts.h"

enum { MOST_DEATHS = 30 }; /* of workers, which a line counts as the reason of */
static const double extend_s = 5, idle_pause_s = 0.2, rest_s = 1;

struct worker {
    const struct worker_settings *settings;
    struct worker_told *told;
    struct finishers finishers;
    struct slot *slots;
    int n_slots, n_speaking;
    double empty_s;    /* when the queue had nothing */
    double extend_s;   /* when claims were last extended */
    double rest_until; /* a line was given back: until then none is claimed */
    bool empty;
    bool ending; /* nothing is begun any more */
};

/* What is the worker's own trouble, and not the line's. */
static bool is_fatal(utter_status status)
{
    return status == UTTER_E_MEMORY || status == UTTER_E_DEVICE || status == UTTER_E_IO ||
           status == UTTER_E_CANCELLED;
}

/* ---- Slots ---- */

utter_status slot_sound(struct slot *slot, const float *pcm, size_t n, utter_error *error)
{
    slot->n_samples += n;
    return utter_sound_write(slot->sound, pcm, n, error);
}

utter_word *slot_words(struct slot *slot, uint64_t first, size_t n, utter_error *error)
{
    if (first + n > slot->words_room || !slot->words) {
        size_t room = 2 * (size_t)(first + n) + 1;
        utter_word *grown = memory_resize(slot->words, slot->words_room, room, sizeof *grown);
        if (!grown) {
            error_memory(error, "the words of a line");
            return NULL;
        }
        slot->words = grown;
        slot->words_room = room;
    }
    slot->n_words = max(slot->n_words, (size_t)first + n);
    return slot->words + first;
}

static void slot_clear(struct worker *w, struct slot *slot)
{
    w->settings->speaker->calls->drop(w->settings->speaker, slot);
    utter_sound_abort(&slot->sound);
    line_free(&slot->line);
    memory_free(slot->words);
    *slot = (struct slot){0};
}

/* The line waits again, or, where the slot has its result, is done. */
static utter_status slot_end(
    struct worker *w, struct slot *slot, bool has_result, bool failed, utter_error *error)
{
    struct queue *q = w->settings->queue;
    utter_status status = has_result ? q->calls->done(q, &slot->claim, failed, error)
                                     : q->calls->back(q, &slot->claim, failed, error);
    slot_clear(w, slot);
    return status;
}

/* A try has failed: the line is tried again, or failed for good. */
static utter_status slot_fail(
    struct worker *w, struct slot *slot, bool for_good, const utter_error *why, utter_error *error)
{
    const struct worker_settings *s = w->settings;
    int tries = slot->claim.tries + 1;
    for_good = for_good || tries >= s->most_tries;
    s->note(s->user, slot->line.id ? slot->line.id : "", why->text, for_good ? 0 : tries);
    s->speaker->calls->drop(s->speaker, slot);
    if (!for_good) {
        w->told->again++;
        return slot_end(w, slot, false, true, error);
    }
    slot->failed = true;
    slot->error = *why;
    slot->claim.tries = tries;
    slot->stage = SLOT_ENDED;
    finishers_give(&w->finishers, slot);
    return UTTER_OK;
}

/* A waiting slot gets a lane, and all of its text. UTTER_AGAIN: no lane is free. */
static utter_status slot_speak(struct worker *w, struct slot *slot, utter_error *error)
{
    char name[RESULT_NAME];
    struct results *r = w->settings->results;
    struct speaker *speaker = w->settings->speaker;
    int lanes = w->empty ? speaker->lanes : 1; /* behind the last line lanes are left over */
    utter_status status = speaker->calls->begin(speaker, slot, lanes, error);
    if (status) {
        return status;
    }
    result_name(name, slot->claim.key, slot->line.format);
    status = r->calls->place(r, name, slot->path, error);
    status = status ? status
                    : utter_sound_create(&slot->sound, slot->path, slot->line.format, UTTER_SAMPLE_S16,
                          speaker->rate, error);
    if (status) {
        return UTTER_E_IO; /* whatever it is, no other line will fare better */
    }
    slot->stage = SLOT_SPEAKING;
    w->n_speaking++;
    return UTTER_OK;
}

/* It is known whether there is a result already, or may be none. */
static utter_status slot_looked(struct worker *w, struct slot *slot, utter_error *error)
{
    if (slot->state != RESULT_NONE) {
        w->told->found++;
        return slot_end(w, slot, true, slot->state == RESULT_FAILED, error);
    }
    slot->stage = SLOT_WAITING;
    slot->looks = false;
    if (slot->claim.deaths >= MOST_DEATHS) {
        utter_error reason;
        error_set(&reason, UTTER_E_INTERNAL, "%d workers have died, or ended, while they made it",
            slot->claim.deaths);
        return slot_fail(w, slot, true, &reason, error);
    }
    return UTTER_OK;
}

/* A fresh claim. */
static utter_status slot_begin(struct worker *w, struct slot *slot, utter_error *error)
{
    const struct worker_settings *s = w->settings;
    utter_status status = line_take(&slot->line, slot->claim.wire, slot->claim.bytes, error);
    if (status) {
        return status;
    }
    if (s->results->is_far) {
        slot->stage = SLOT_LOOKING;
        slot->looks = true;
        finishers_give(&w->finishers, slot);
        return UTTER_OK;
    }
    status = result_look(s->results, slot->claim.key, false, &slot->state, NULL, error);
    return status ? status : slot_looked(w, slot, error);
}

/* Takes what has been made of a line; at its end its lane is free. */
static utter_status slot_take(struct worker *w, struct slot *slot, utter_error *error)
{
    struct speaker *speaker = w->settings->speaker;
    utter_status status = speaker->calls->take(speaker, slot, error);
    if (status == UTTER_AGAIN) { /* others may make it sooner */
        w->n_speaking--;
        w->told->given_back++;
        w->rest_until = clock_seconds() + rest_s;
        return slot_end(w, slot, false, false, error);
    }
    if (status != UTTER_END) {
        return status;
    }
    w->n_speaking--;
    slot->words_approximate = slot->stats.words_approximate;
    slot->stage = SLOT_ENDED;
    finishers_give(&w->finishers, slot);
    return UTTER_OK;
}

/* ---- A round ---- */

/* After a call about a slot: what is the line's fault ends a try of it, the rest ends the worker. */
static utter_status settle(struct worker *w, struct slot *slot, utter_status status, utter_error *error)
{
    if (status >= 0 || is_fatal(status) || w->settings->speaker->misfit) {
        return status < 0 ? status : UTTER_OK;
    }
    const utter_error why = *error;
    w->n_speaking -= slot->stage == SLOT_SPEAKING;
    return slot_fail(w, slot, false, &why, error);
}

/* Tells the queue of results that are there. */
static utter_status acknowledge(struct worker *w, utter_error *error)
{
    struct slot *slot;
    utter_status status = UTTER_OK;
    while (status == UTTER_OK && (slot = finishers_take(&w->finishers))) {
        if (slot->status) {
            *error = slot->error;
            status = is_fatal(slot->status) ? slot->status : UTTER_E_IO;
            slot_end(w, slot, false, false, &(utter_error){0});
            return status;
        }
        if (slot->stage == SLOT_LOOKING) {
            status = w->ending ? slot_end(w, slot, false, false, error) : slot_looked(w, slot, error);
            continue;
        }
        if (slot->state == RESULT_DONE) { /* another worker's */
            status = slot_looked(w, slot, error);
            continue;
        }
        w->told->made += !slot->failed;
        w->told->failed += slot->failed;
        w->told->not_whole += !slot->failed && slot->stats.n_broken > 0;
        w->told->seconds += slot->failed ? 0 : (double)slot->n_samples / w->finishers.rate;
        status = slot_end(w, slot, true, slot->failed, error);
    }
    return status;
}

/* Lines of one sound are made one after the other: behind the first, the others have a result. A line that workers
 * have died of is made alone. */
static bool may_begin(const struct worker *w, const struct slot *slot)
{
    for (int i = 0; i < w->n_slots; i++) {
        const struct slot *other = &w->slots[i];
        bool begun = other != slot && other->stage != SLOT_FREE && other->stage != SLOT_HELD;
        if (begun && (max(slot->claim.deaths, other->claim.deaths) >= SUSPECT_DEATHS ||
                         strcmp(slot->claim.key, other->claim.key) == 0)) {
            return false;
        }
    }
    return true;
}

static utter_status begin(struct worker *w, struct slot *slot, utter_error *error)
{
    if (!may_begin(w, slot)) {
        return UTTER_OK;
    }
    slot->stage = SLOT_WAITING;
    return settle(w, slot, slot_begin(w, slot, error), error);
}

/* Whether another line is wanted: for a lane that is free, and not beside one that is made alone. */
static bool wants_line(const struct worker *w)
{
    /* A line that is looked for is claimed ahead, so that no lane waits for the answer. */
    int n_taken = 0,
        most = w->settings->speaker->lanes + (w->settings->results->is_far ? N_FINISHERS : 0);
    for (int i = 0; i < w->n_slots; i++) {
        const struct slot *slot = &w->slots[i];
        n_taken +=
            slot->stage == SLOT_LOOKING || slot->stage == SLOT_WAITING || slot->stage == SLOT_SPEAKING;
        n_taken += slot->claim.deaths >= SUSPECT_DEATHS ? most : 0;
    }
    return n_taken < most;
}

static utter_status claim_lines(struct worker *w, utter_error *error)
{
    const struct worker_settings *s = w->settings;
    utter_status status = UTTER_OK;
    for (int i = 0; i < w->n_slots && status == UTTER_OK; i++) {
        status = w->slots[i].stage == SLOT_HELD ? begin(w, &w->slots[i], error) : UTTER_OK;
    }
    for (int i = 0; i < w->n_slots && status == UTTER_OK; i++) {
        struct slot *slot = &w->slots[i];
        double pause_s = w->n_speaking > 0 ? s->queue->pause_s : idle_pause_s;
        if (slot->stage != SLOT_FREE) {
            continue;
        }
        if (!wants_line(w) || clock_seconds() < w->rest_until ||
            (w->empty && clock_seconds() - w->empty_s < pause_s)) {
            break;
        }
        utter_status claimed = s->queue->calls->claim(s->queue, &slot->claim, error);
        w->empty = claimed == UTTER_AGAIN;
        w->empty_s = clock_seconds();
        if (claimed != UTTER_OK) {
            return claimed < 0 ? claimed : UTTER_OK;
        }
        slot->stage = SLOT_HELD;
        status = begin(w, slot, error);
    }
    return status;
}

static utter_status speak_lines(struct worker *w, utter_error *error)
{
    utter_status status = UTTER_OK;
    for (int i = 0; i < w->n_slots && status == UTTER_OK; i++) {
        struct slot *slot = &w->slots[i];
        if (slot->stage == SLOT_WAITING && w->n_speaking < w->settings->speaker->lanes) {
            status = settle(w, slot, slot_speak(w, slot, error), error);
        }
    }
    return status;
}

static utter_status step(struct worker *w, utter_error *error)
{
    struct speaker *speaker = w->settings->speaker;
    utter_status status = speaker->calls->step(speaker, error);
    for (int i = 0; i < w->n_slots && status >= 0; i++) {
        struct slot *slot = &w->slots[i];
        if (slot->stage == SLOT_SPEAKING) {
            status = settle(w, slot, slot_take(w, slot, error), error);
        }
    }
    return status < 0 ? status : UTTER_OK;
}

static utter_status extend(struct worker *w, utter_error *error)
{
    struct queue *q = w->settings->queue;
    utter_status status = UTTER_OK;
    if (clock_seconds() - w->extend_s < extend_s) {
        return UTTER_OK;
    }
    w->extend_s = clock_seconds();
    for (int i = 0; i < w->n_slots && status == UTTER_OK; i++) {
        if (w->slots[i].stage != SLOT_FREE) {
            status = q->calls->extend(q, &w->slots[i].claim, error);
        }
    }
    return status;
}

static bool is_idle(const struct worker *w)
{
    for (int i = 0; i < w->n_slots; i++) {
        if (w->slots[i].stage != SLOT_FREE) {
            return false;
        }
    }
    return true;
}

/* Of an idle worker: nothing waits, and nobody has a line that may come back. */
static utter_status look_for_end(struct worker *w, bool *ended, utter_error *error)
{
    const struct worker_settings *s = w->settings;
    struct queue_counts counts;
    utter_status status = UTTER_OK;
    if (s->until_empty && w->empty) {
        status = s->queue->calls->count(s->queue, &counts, error);
        *ended = status == UTTER_OK && counts.waiting == 0 && counts.claimed == 0;
    }
    if (status >= 0 && !*ended && (w->empty || clock_seconds() < w->rest_until)) {
        s->rest(s->user);
    }
    return status < 0 ? status : UTTER_OK;
}

static utter_status work(struct worker *w, utter_error *error)
{
    const struct worker_settings *s = w->settings;
    utter_status status = UTTER_OK;
    for (bool ended = false; !ended && status == UTTER_OK && !s->stop();) {
        status = acknowledge(w, error);
        status = status ? status : claim_lines(w, error);
        status = status ? status : speak_lines(w, error);
        status = status ? status : extend(w, error);
        if (status == UTTER_OK && w->n_speaking > 0) {
            status = step(w, error);
        } else if (status == UTTER_OK && !is_idle(w)) {
            finishers_wait(&w->finishers);
        } else if (status == UTTER_OK) {
            status = look_for_end(w, &ended, error);
        }
        s->told(s->user, w->told);
    }
    return status;
}

/* ---- Life ---- */

/* What is being spoken waits again; what was spoken gets its result. A machine that `failed` may have done so over one
 * of the lines that it was speaking, which counts as if it had died. */
static void give_back(struct worker *w, bool failed)
{
    utter_error ignored;
    w->ending = true;
    for (int i = 0; i < w->n_slots; i++) {
        struct slot *slot = &w->slots[i];
        if (slot->stage == SLOT_HELD || slot->stage == SLOT_WAITING || slot->stage == SLOT_SPEAKING) {
            slot->claim.deaths += failed && slot->stage == SLOT_SPEAKING;
            slot_end(w, slot, false, false, &ignored);
        }
    }
    finishers_end(&w->finishers);
    while (!is_idle(w)) {
        acknowledge(w, &ignored);
    }
    finishers_fini(&w->finishers);
}

utter_status worker_run(
    const struct worker_settings *settings, struct worker_told *told, utter_error *error)
{
    struct worker w = {.settings = settings, .told = told, .extend_s = clock_seconds()};
    *told = (struct worker_told){0};
    w.n_slots = 2 * settings->speaker->lanes + N_FINISHERS;
    w.slots = memory_new((size_t)w.n_slots, sizeof *w.slots);
    if (!w.slots) {
        return error_memory(error, "the lines that a worker has");
    }
    utter_status status =
        finishers_start(&w.finishers, settings->results, settings->speaker->rate, error);
    status = status ? status : work(&w, error);
    give_back(&w, status == UTTER_E_MEMORY || status == UTTER_E_DEVICE);
    memory_free(w.slots);
    return status;
}
