/* SPDX-License-Identifier: Apache-2.0
 * Two batches: one is filled by the speaker while the thread empties the other. */
#include "book/keeper.h"

#include <pthread.h>
#include <string.h>

#include "base/memory.h"

/* Samples of one section that follow each other; none: it has ended. */
struct run {
    struct spoken *spoken;
    size_t n;
};

struct batch {
    float *pcm;
    struct run *runs;
    size_t n_pcm, pcm_room, n_runs, runs_room;
};

struct keeper {
    struct keeper_settings settings;
    struct batch batches[2], *filled; /* filled: by the speaker */
    pthread_t thread;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    struct batch *passed; /* the thread's; NULL: it has nothing to do */
    bool closing;
    utter_status status; /* the first failure; behind it nothing is written */
    utter_error error;
};

/* ---- The thread ---- */

static utter_status finish(struct keeper *k, struct spoken *spoken, utter_error *error)
{
    struct store_entry entry = spoken->task->entry;
    utter_status status = utter_sound_close(&spoken->sound, error);
    entry.seed = k->settings.seed;
    entry.n_pieces = spoken->stats.n_pieces;
    entry.n_retries = spoken->stats.n_retries;
    entry.n_broken = spoken->stats.n_broken;
    entry.seconds = (double)spoken->n_samples / k->settings.rate;
    status = status ? status : store_add(k->settings.store, &entry, error);
    if (status == UTTER_OK) {
        k->settings.ended(k->settings.user, spoken->task, &entry);
    }
    return status;
}

/* With a failure what has ended is freed all the same. */
static utter_status empty(struct keeper *k, struct batch *b, utter_status status, utter_error *error)
{
    const float *pcm = b->pcm;
    for (size_t i = 0; i < b->n_runs; i++) {
        struct spoken *spoken = b->runs[i].spoken;
        const size_t n = b->runs[i].n;
        if (n > 0) {
            spoken->n_samples += n;
            status = status ? status : utter_sound_write(spoken->sound, pcm, n, error);
            pcm += n;
        } else {
            status = status ? status : finish(k, spoken, error);
            utter_sound_abort(&spoken->sound);
            memory_free(spoken);
        }
    }
    b->n_pcm = b->n_runs = 0;
    return status;
}

static void *work(void *user)
{
    struct keeper *k = user;
    pthread_mutex_lock(&k->lock);
    while (true) {
        while (!k->passed && !k->closing) {
            pthread_cond_wait(&k->changed, &k->lock);
        }
        if (!k->passed) {
            break;
        }
        utter_error error = k->error;
        utter_status status = k->status;
        pthread_mutex_unlock(&k->lock);
        status = empty(k, k->passed, status, &error);
        pthread_mutex_lock(&k->lock);
        k->status = status;
        k->error = error;
        k->passed = NULL;
        pthread_cond_broadcast(&k->changed);
    }
    pthread_mutex_unlock(&k->lock);
    return NULL;
}

/* ---- The speaker's side ---- */

utter_status keeper_start(
    struct keeper **keeper, const struct keeper_settings *settings, utter_error *error)
{
    struct keeper *k = memory_new(1, sizeof *k);
    if (!k) {
        return error_memory(error, "the keeper of a book");
    }
    k->settings = *settings;
    k->filled = &k->batches[0];
    pthread_mutex_init(&k->lock, NULL);
    pthread_cond_init(&k->changed, NULL);
    int reason = pthread_create(&k->thread, NULL, work, k);
    if (reason) {
        pthread_cond_destroy(&k->changed);
        pthread_mutex_destroy(&k->lock);
        memory_free(k);
        return error_set(error, UTTER_E_MEMORY, "no thread can be started: %s", strerror(reason));
    }
    *keeper = k;
    return UTTER_OK;
}

/* Room for n more of what *items has room for *room of; false: there is no memory. */
static bool make_room(void **items, size_t used, size_t *room, size_t n, size_t size)
{
    if (*room - used >= n) {
        return true;
    }
    const size_t wanted = 2 * (used + n);
    void *grown = memory_resize(*items, *room, wanted, size);
    if (grown) {
        *items = grown;
        *room = wanted;
    }
    return grown;
}

static utter_status add_run(struct keeper *k, struct spoken *spoken, size_t n, utter_error *error)
{
    struct batch *b = k->filled;
    void *runs = b->runs;
    if (!make_room(&runs, b->n_runs, &b->runs_room, 1, sizeof *b->runs)) {
        return error_memory(error, "the sound of a step");
    }
    b->runs = runs;
    b->runs[b->n_runs++] = (struct run){spoken, n};
    return UTTER_OK;
}

utter_status keeper_add(
    struct keeper *k, struct spoken *spoken, const float *pcm, size_t n, utter_error *error)
{
    struct batch *b = k->filled;
    if (n == 0) {
        return UTTER_OK;
    }
    void *samples = b->pcm;
    if (!make_room(&samples, b->n_pcm, &b->pcm_room, n, sizeof *b->pcm)) {
        return error_memory(error, "the sound of a step");
    }
    b->pcm = samples;
    memcpy(b->pcm + b->n_pcm, pcm, n * sizeof *pcm);
    utter_status status = add_run(k, spoken, n, error);
    b->n_pcm += status == UTTER_OK ? n : 0;
    return status;
}

utter_status keeper_end(struct keeper *k, struct spoken *spoken, utter_error *error)
{
    return add_run(k, spoken, 0, error);
}

utter_status keeper_wait(struct keeper *k, utter_error *error)
{
    pthread_mutex_lock(&k->lock);
    while (k->passed) {
        pthread_cond_wait(&k->changed, &k->lock);
    }
    utter_status status = k->status;
    if (status) {
        *error = k->error;
    }
    pthread_mutex_unlock(&k->lock);
    return status;
}

utter_status keeper_pass(struct keeper *k, utter_error *error)
{
    utter_status status = keeper_wait(k, error);
    if (status == UTTER_OK && k->filled->n_runs > 0) {
        pthread_mutex_lock(&k->lock);
        k->passed = k->filled;
        pthread_cond_broadcast(&k->changed);
        pthread_mutex_unlock(&k->lock);
        k->filled = &k->batches[k->filled == &k->batches[0]];
    }
    return status;
}

void keeper_free(struct keeper *k)
{
    if (!k) {
        return;
    }
    utter_error error;
    pthread_mutex_lock(&k->lock);
    k->closing = true; /* what was passed is emptied before */
    pthread_cond_broadcast(&k->changed);
    pthread_mutex_unlock(&k->lock);
    pthread_join(k->thread, NULL);
    empty(k, k->filled, UTTER_E_INTERNAL, &error); /* frees what has ended */
    for (size_t i = 0; i < 2; i++) {
        memory_free(k->batches[i].pcm);
        memory_free(k->batches[i].runs);
    }
    pthread_cond_destroy(&k->changed);
    pthread_mutex_destroy(&k->lock);
    memory_free(k);
}
