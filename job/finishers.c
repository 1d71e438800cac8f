/* SPDX-License-Identifier: Apache-2.0
 * A spoken line -> its result: the sound completed, hashed, brought to its place; then the JSON. */
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "job/worker_parts.h"

/* The words with their times, or null. */
static json_t *list_words(const struct slot *slot, int rate)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < slot->n_words; i++) {
        const utter_word *w = &slot->words[i];
        bool inside = w->at + w->bytes <= slot->line.text_bytes;
        json_array_append_new(list,
            json_pack("{s:s%,s:I,s:I,s:f,s:f,s:f,s:b}", "text", inside ? slot->line.text + w->at : "",
                inside ? (size_t)w->bytes : (size_t)0, "at", (json_int_t)w->at, "bytes",
                (json_int_t)w->bytes, "start_s", (double)w->start / rate, "end_s",
                (double)w->end / rate, "certainty", (double)w->certainty, "skipped", (int)w->skipped));
    }
    return list;
}

static json_t *describe_sound(const struct slot *slot, int rate, const char *hash, uint64_t bytes)
{
    const utter_reading_stats *t = &slot->stats;
    json_t *words = slot->line.words ? list_words(slot, rate) : json_null();
    return json_pack("{s:s,s:s,s:s,s:s,s:f,s:s,s:I,s:I,s:I,s:o,s:b,s:s,s:I,s:n}", "id", slot->line.id,
        "key", slot->claim.key, "status", t->n_broken ? "not_whole" : "done", "format",
        slot->line.format, "seconds", (double)slot->n_samples / rate, "finish",
        utter_finish_text(t->finish), "pieces", (json_int_t)t->n_pieces, "retries",
        (json_int_t)t->n_retries, "not_whole", (json_int_t)t->n_broken, "words", words,
        "words_approximate", (int)(slot->line.words && slot->words_approximate), "sha256", hash,
        "bytes", (json_int_t)bytes, "error");
}

static json_t *describe_failure(const struct slot *slot)
{
    json_t *reason = json_string(slot->error.text);
    return json_pack("{s:s,s:s,s:s,s:f,s:i,s:o}", "id", slot->line.id ? slot->line.id : "", "key",
        slot->claim.key, "status", "failed", "seconds", 0.0, "tries", slot->claim.tries, "error",
        reason ? reason : json_null());
}

static utter_status look(const struct finishers *f, struct slot *slot)
{
    return result_look(f->results, slot->claim.key, false, &slot->state, NULL, &slot->error);
}

static utter_status finish(const struct finishers *f, struct slot *slot)
{
    char name[RESULT_NAME], hash[IDENTITY_SIZE];
    uint64_t bytes = 0;
    utter_error *error = &slot->error;
    utter_error trouble = {0}; /* that of a failed line stays what it is */
    json_t *about = NULL;
    /* Another worker may have made it meanwhile: a broker gives a line out twice where it must. The first result stays,
     * so that its two parts are of one making. */
    utter_status status = result_look(f->results, slot->claim.key, false, &slot->state, NULL, &trouble);
    if (slot->state == RESULT_DONE) {
        return UTTER_OK;
    }
    if (status &&
        status != UTTER_E_CANCELLED) { /* after a signal, what was spoken is kept all the same */
        *error = trouble;
        return status;
    }
    status = UTTER_OK;
    if (!slot->failed) {
        result_name(name, slot->claim.key, slot->line.format);
        status = utter_sound_close(&slot->sound, error);
        status = status ? status : result_hash(hash, &bytes, slot->path, error);
        status = status ? status : f->results->calls->keep(f->results, name, slot->path, error);
    }
    if (status == UTTER_OK) {
        about = slot->failed ? describe_failure(slot) : describe_sound(slot, f->rate, hash, bytes);
        status = about ? result_tell(f->results, slot->claim.key, about, error)
                       : error_memory(error, "a result");
        json_decref(about);
    }
    return status;
}

static void *run(void *user)
{
    struct finishers *f = user;
    pthread_mutex_lock(&f->lock);
    while (f->to_do || !f->ending) {
        struct slot *slot = f->to_do;
        if (!slot) {
            pthread_cond_wait(&f->given, &f->lock);
            continue;
        }
        f->to_do = slot->next;
        f->last = f->to_do ? f->last : &f->to_do;
        pthread_mutex_unlock(&f->lock);
        slot->status = slot->looks ? look(f, slot) : finish(f, slot);
        pthread_mutex_lock(&f->lock);
        slot->next = f->done;
        f->done = slot;
        pthread_cond_signal(&f->finished);
    }
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

utter_status finishers_start(struct finishers *f, struct results *results, int rate, utter_error *error)
{
    *f = (struct finishers){.results = results, .rate = rate};
    f->last = &f->to_do;
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->given, NULL);
    pthread_condattr_t steady;
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&f->finished, &steady);
    pthread_condattr_destroy(&steady);
    while (f->n_threads < N_FINISHERS && pthread_create(&f->threads[f->n_threads], NULL, run, f) == 0) {
        f->n_threads++;
    }
    return f->n_threads > 0 ? UTTER_OK : error_set(error, UTTER_E_MEMORY, "no thread can be started");
}

void finishers_give(struct finishers *f, struct slot *slot)
{
    pthread_mutex_lock(&f->lock);
    slot->next = NULL;
    *f->last = slot;
    f->last = &slot->next;
    pthread_cond_signal(&f->given);
    pthread_mutex_unlock(&f->lock);
}

struct slot *finishers_take(struct finishers *f)
{
    pthread_mutex_lock(&f->lock);
    struct slot *slot = f->done;
    f->done = slot ? slot->next : NULL;
    pthread_mutex_unlock(&f->lock);
    return slot;
}

void finishers_wait(struct finishers *f)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += 200000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&f->lock);
    if (!f->done) {
        pthread_cond_timedwait(&f->finished, &f->lock, &until);
    }
    pthread_mutex_unlock(&f->lock);
}

void finishers_end(struct finishers *f)
{
    pthread_mutex_lock(&f->lock);
    f->ending = true;
    pthread_cond_broadcast(&f->given);
    pthread_mutex_unlock(&f->lock);
    for (int i = 0; i < f->n_threads; i++) {
        pthread_join(f->threads[i], NULL);
    }
}

void finishers_fini(struct finishers *f)
{
    pthread_mutex_destroy(&f->lock);
    pthread_cond_destroy(&f->given);
    pthread_cond_destroy(&f->finished);
}
