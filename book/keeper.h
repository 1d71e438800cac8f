/* SPDX-License-Identifier: Apache-2.0
 * A thread that puts the sound of sections into their files of the store while the model makes the next step: coding
 * and hashing take about as long as a step of a GPU. What one step has given goes there together. */
#ifndef BOOK_KEEPER_H
#define BOOK_KEEPER_H

#include "book/speaker.h"

/* A section whose sound is on its way into its file. */
struct spoken {
    struct task *task;
    utter_sound *sound;
    uint64_t n_samples;
    utter_reading_stats stats; /* of the reading that has ended */
};

struct keeper;

/* Called by its thread once the section's file is whole and in the store: `entry` says what it is. */
typedef void keeper_ended_fn(void *user, struct task *task, const struct store_entry *entry);

struct keeper_settings {
    struct store *store;
    int rate;
    uint64_t seed;
    keeper_ended_fn *ended;
    void *user;
};

utter_status keeper_start(
    struct keeper **keeper, const struct keeper_settings *settings, utter_error *error);
/* Samples of a section, in the order in which they come; copied. */
utter_status keeper_add(
    struct keeper *keeper, struct spoken *spoken, const float *pcm, size_t n, utter_error *error);
/* The section has ended, and with it what belongs to the caller: the keeper closes its sound and frees it. */
utter_status keeper_end(struct keeper *keeper, struct spoken *spoken, utter_error *error);
/* What was added is handed to the thread, once that has done what it had. Returns how that went. */
utter_status keeper_pass(struct keeper *keeper, utter_error *error);
/* Behind it the thread has nothing. Sections that have not ended are the caller's again. */
utter_status keeper_wait(struct keeper *keeper, utter_error *error);
/* What was not passed is dropped. Accepts NULL. */
void keeper_free(struct keeper *keeper);

#endif
