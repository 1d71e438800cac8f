/* SPDX-License-Identifier: Apache-2.0
 * A reading for each lane; one step moves them all. */
#include "book/speaker.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/minmax.h"
#include "book/keeper.h"

/* A lane, and the section that is spoken on it. */
struct lane {
    size_t task;
    utter_reading *reading; /* NULL: nothing */
    struct spoken *spoken;  /* the keeper's behind its end */
};

struct speaker {
    struct speaker_settings settings;
    int rate;
    struct task *tasks;
    size_t n_tasks, next;
    struct store *store;
    struct keeper *keeper; /* of its thread's run */
    struct lane *lanes;
    int n_lanes;
    pthread_t thread;
    pthread_mutex_t lock; /* of state and of the tasks' `ready` */
    struct speaker_state state;
    int wake[2];
    atomic_bool stop;
};

static void tell(struct speaker *s)
{
    while (write(s->wake[1], "", 1) < 0 && errno == EINTR) { /* a full pipe says the same */
    }
}

static utter_status begin(struct speaker *s, struct lane *lane, utter_error *error)
{
    char path[PATH_MAX];
    struct task *task = &s->tasks[lane->task];
    utter_reading_options o = *s->settings.reading;
    o.live = false;
    o.lanes = s->next == s->n_tasks ? s->n_lanes : 1; /* behind the last section lanes are left over */
    utter_status status =
        utter_reading_open(&lane->reading, s->settings.model, s->settings.voice, &o, error);
    if (status) {
        return status;
    }
    if (!(lane->spoken = memory_new(1, sizeof *lane->spoken))) {
        return error_memory(error, "a section of a book");
    }
    lane->spoken->task = task;
    store_path(s->store, path, task->entry.key);
    status = utter_sound_create(&lane->spoken->sound, path, "flac", UTTER_SAMPLE_S16, s->rate, error);
    const char *prefix = task->section->prefix;
    if (status == UTTER_OK && prefix) {
        status = utter_reading_text(lane->reading, prefix, strlen(prefix), error);
    }
    if (status == UTTER_OK) {
        status = utter_reading_text(lane->reading, task->section->text, task->section->bytes, error);
    }
    return status ? status : utter_reading_finish(lane->reading, error);
}

/* By the keeper's thread: the section's file is whole. */
static void ended(void *user, struct task *task, const struct store_entry *entry)
{
    struct speaker *s = user;
    pthread_mutex_lock(&s->lock);
    task->entry = *entry;
    task->ready = true;
    s->state.ready_bytes += task->section->bytes;
    s->state.spoken_bytes += task->section->bytes;
    s->state.spoken_s += entry->seconds;
    pthread_mutex_unlock(&s->lock);
    tell(s);
}

static utter_status finish(struct speaker *s, struct lane *lane, utter_error *error)
{
    struct spoken *spoken = lane->spoken;
    spoken->stats.size = sizeof spoken->stats;
    utter_reading_get_stats(lane->reading, &spoken->stats);
    utter_reading_free(&lane->reading);
    utter_status status = keeper_end(s->keeper, spoken, error);
    lane->spoken = status ? spoken : NULL;
    return status;
}

/* Takes what a reading has made; at its end, the lane is free. */
static utter_status take(struct speaker *s, struct lane *lane, utter_error *error)
{
    enum { BLOCK = 1920 };
    float pcm[BLOCK];
    size_t n;
    utter_status status;
    while ((status = utter_reading_take(lane->reading, pcm, BLOCK, &n, error)) == UTTER_OK) {
        status = keeper_add(s->keeper, lane->spoken, pcm, n, error);
        if (status) {
            return status;
        }
    }
    return status == UTTER_END ? finish(s, lane, error) : status == UTTER_AGAIN ? UTTER_OK : status;
}

/* The next task that is to be spoken, or n_tasks. */
static size_t next_task(struct speaker *s)
{
    while (s->next < s->n_tasks && s->tasks[s->next].ready) {
        s->next++;
    }
    return s->next < s->n_tasks ? s->next++ : s->n_tasks;
}

static utter_status speak(struct speaker *s, utter_error *error)
{
    utter_status status = UTTER_OK;
    for (bool busy = true; busy && status >= 0 && !atomic_load(&s->stop);) {
        busy = false;
        for (int i = 0; i < s->n_lanes && status >= 0; i++) {
            struct lane *lane = &s->lanes[i];
            if (!lane->reading && (lane->task = next_task(s)) < s->n_tasks) {
                status = begin(s, lane, error);
            }
            busy = busy || lane->reading;
        }
        status = status >= 0 && busy ? utter_model_step_together(s->settings.model, error) : status;
        for (int i = 0; i < s->n_lanes && status >= 0; i++) {
            status = s->lanes[i].reading ? take(s, &s->lanes[i], error) : status;
        }
        status = status >= 0 ? keeper_pass(s->keeper, error) : status;
    }
    return status < 0 ? status : keeper_wait(s->keeper, error);
}

static void *run(void *user)
{
    struct speaker *s = user;
    utter_error error = {0};
    const struct keeper_settings settings = {s->store, s->rate, s->settings.voice->seed, ended, s};
    utter_status status = keeper_start(&s->keeper, &settings, &error);
    status = status ? status : speak(s, &error);
    keeper_free(s->keeper);
    for (int i = 0; i < s->n_lanes; i++) {
        utter_reading_free(&s->lanes[i].reading);
        if (s->lanes[i].spoken) {
            utter_sound_abort(&s->lanes[i].spoken->sound);
            memory_free(s->lanes[i].spoken);
        }
    }
    pthread_mutex_lock(&s->lock);
    s->state.ended = true;
    s->state.status = status;
    s->state.error = error;
    pthread_mutex_unlock(&s->lock);
    tell(s);
    return NULL;
}

utter_status speaker_start(struct speaker **speaker, const struct speaker_settings *settings,
    struct task *tasks, size_t n, struct store *store, utter_error *error)
{
    utter_model_info info = {.size = sizeof info};
    utter_model_get_info(settings->model, &info);
    int n_lanes = settings->lanes;
    struct speaker *s = memory_new(1, sizeof *s);
    struct lane *lanes = memory_new((size_t)n_lanes, sizeof *lanes);
    if (!s || !lanes || pipe2(s->wake, O_CLOEXEC | O_NONBLOCK) != 0) {
        memory_free(s);
        memory_free(lanes);
        return error_memory(error, "the speaker of a book");
    }
    s->settings = *settings;
    s->rate = info.sample_rate;
    s->tasks = tasks;
    s->n_tasks = n;
    s->store = store;
    s->lanes = lanes;
    s->n_lanes = n_lanes;
    for (size_t i = 0; i < n; i++) {
        s->state.ready_bytes += tasks[i].ready ? tasks[i].section->bytes : 0;
    }
    pthread_mutex_init(&s->lock, NULL);
    int reason = pthread_create(&s->thread, NULL, run, s);
    if (reason) {
        close(s->wake[0]);
        close(s->wake[1]);
        memory_free(lanes);
        memory_free(s);
        return error_set(error, UTTER_E_MEMORY, "no thread can be started: %s", strerror(reason));
    }
    *speaker = s;
    return UTTER_OK;
}

int speaker_descriptor(const struct speaker *s)
{
    return s->wake[0];
}

struct speaker_state speaker_look(struct speaker *s)
{
    char bytes[256];
    while (read(s->wake[0], bytes, sizeof bytes) > 0) {
    }
    pthread_mutex_lock(&s->lock);
    struct speaker_state state = s->state;
    pthread_mutex_unlock(&s->lock);
    return state;
}

bool speaker_is_ready(struct speaker *s, size_t i)
{
    pthread_mutex_lock(&s->lock);
    bool ready = s->tasks[i].ready;
    pthread_mutex_unlock(&s->lock);
    return ready;
}

void speaker_free(struct speaker *s)
{
    if (s) {
        atomic_store(&s->stop, true);
        pthread_join(s->thread, NULL);
        pthread_mutex_destroy(&s->lock);
        close(s->wake[0]);
        close(s->wake[1]);
        memory_free(s->lanes);
        memory_free(s);
    }
}
