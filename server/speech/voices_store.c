/* SPDX-License-Identifier: Apache-2.0
 * Voices that several servers share, in a store that speaks S3: the folder is a copy of it, which is looked through
 * every few seconds; what is uploaded comes into it from there. A thread of its own waits for the store. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "server/loop/jobs.h"
#include "server/loop/log.h"
#include "server/speech/voices_parts.h"
#include "store/mirror.h"

enum { LOOK_S = 5, FIRST_LOOK_S = 3 };

enum what { LOOK, PUT, DROP };

struct order {
    struct job job;
    TAILQ_ENTRY(order) entry;
    struct server *server;
    enum what what;
    char file[4096 + 80]; /* the voice, of DROP; of PUT, where it was made */
    json_t *changed;      /* names of files, of LOOK */
    voices_done *done;    /* NULL: nobody waits */
    void *user;
    utter_status status;
    utter_error error;
};

struct voices_store {
    struct mirror *mirror;
    struct jobs *jobs;
    struct event *timer;
    TAILQ_HEAD(orders, order) orders;
    bool is_away;         /* since the last time that it was asked */
    utter_error left_out; /* of the last look */
};

static atomic_bool ends;

static bool is_ending(void)
{
    return atomic_load(&ends);
}

/* The first look holds up everything else: what it does not bring in time comes behind. */
static time_t first_look_ends;

static time_t seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

static bool is_late(void)
{
    return seconds_now() > first_look_ends;
}

/* STEM of FOLDER/STEM.voice. */
static void stem_of(char *stem, size_t size, const char *file)
{
    const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file;
    snprintf(stem, size, "%.*s", (int)(strlen(name) - strlen(VOICE_ENDING)), name);
}

/* ---- In the thread ---- */

static void note_changed(void *user, const char *name)
{
    json_array_append_new(user, json_string(name));
}

static void run(struct job *job)
{
    struct order *o = (struct order *)job;
    struct mirror *m = o->server->voices->store->mirror;
    char stem[256];
    if (o->what == LOOK) {
        o->status = mirror_look(m, note_changed, o->changed, &o->error);
        return;
    }
    stem_of(stem, sizeof stem, o->file);
    o->status = o->what == PUT ? mirror_put(m, o->server->voices->temporary, stem, &o->error)
                               : mirror_drop(m, stem, &o->error);
}

/* ---- In the loop ---- */

static bool ends_with(const char *name, const char *ending)
{
    size_t n = strlen(name), m = strlen(ending);
    return n > m && strcmp(name + n - m, ending) == 0;
}

/* A file that has changed: a voice, or what is told of one, STEM.json or STEM.HASH.json. */
static void read_again(struct server *s, const char *name)
{
    enum { DIGITS = 16 };
    static const char told[] = ".json";
    char path[4096 + 512];
    size_t n = strlen(name);
    if (ends_with(name, told)) {
        n -= sizeof told - 1;
        n -= n > DIGITS + 1 && name[n - DIGITS - 1] == '.' ? DIGITS + 1 : 0;
    } else {
        n -= strlen(VOICE_ENDING);
    }
    snprintf(path, sizeof path, "%s/%.*s%s", s->voices->folder, (int)n, name, VOICE_ENDING);
    voices_read_again(s, path);
}

/* Told when it changes. */
static void note_away(struct server *s, utter_status status, const utter_error *error)
{
    struct voices_store *store = s->voices->store;
    const bool was_away = store->is_away;
    if (status == UTTER_E_CANCELLED) {
        return;
    }
    store->is_away = status != UTTER_OK;
    if (status && !was_away) {
        log_event(s, "voices_store_away", json_pack("{s:s}", "error", error->text));
    } else if (!status && was_away) {
        log_event(s, "voices_store_back", json_object());
    }
}

/* An object that cannot come: told when it is another one than before. */
static void note_left_out(struct server *s, const utter_error *error)
{
    struct voices_store *store = s->voices->store;
    if (error->text[0] && strcmp(error->text, store->left_out.text) != 0) {
        log_event(s, "voices_store_left_out", json_pack("{s:s}", "error", error->text));
    }
    store->left_out = *error;
}

static void look_later(struct server *s)
{
    const struct timeval later = {.tv_sec = LOOK_S};
    if (s->voices->store->timer) {
        event_add(s->voices->store->timer, &later);
    }
}

static void end_look(struct server *s, const struct order *o)
{
    size_t i;
    json_t *name;
    json_array_foreach(o->changed, i, name)
    {
        read_again(s, json_string_value(name));
    }
    if (o->status == UTTER_OK) {
        note_left_out(s, &o->error);
    }
    look_later(s);
}

static void refuse_away(const struct order *o, struct refusal *r)
{
    refuse(r, 503, NULL,
        "the voice cannot be %s, since the store of voices cannot be reached now (later "
        "it may be better)",
        o->what == PUT ? "kept" : "removed");
    r->retry_ms = 5000;
}

static void drop_made(const char *file)
{
    unlink(file);
    told_sweep(file);
}

static void end_put(struct server *s, const struct order *o)
{
    struct refusal r;
    char stem[256], kept[sizeof s->voices->folder + sizeof stem + sizeof VOICE_ENDING];
    drop_made(o->file);
    if (o->status == UTTER_OK) {
        stem_of(stem, sizeof stem, o->file);
        snprintf(kept, sizeof kept, "%s/%s" VOICE_ENDING, s->voices->folder, stem);
        voices_kept(s, kept, o->done, o->user);
        return;
    }
    refuse_away(o, &r);
    if (o->done) {
        o->done(o->user, NULL, NULL, &r);
    }
}

static void end_drop(struct server *s, const struct order *o)
{
    struct refusal r;
    voices_read_again(s, o->file);
    if (o->status) {
        refuse_away(o, &r);
    } else {
        log_event(s, "voice_deleted", json_pack("{s:s}", "file", strrchr(o->file, '/') + 1));
    }
    if (o->done) {
        o->done(o->user, o->status ? NULL : json_null(), NULL, o->status ? &r : NULL);
    }
}

static void end(struct job *job)
{
    struct order *o = (struct order *)job;
    struct server *s = o->server;
    TAILQ_REMOVE(&s->voices->store->orders, o, entry);
    note_away(s, o->status, &o->error);
    if (o->what == LOOK) {
        end_look(s, o);
    } else if (o->what == PUT) {
        end_put(s, o);
    } else {
        end_drop(s, o);
    }
    json_decref(o->changed);
    memory_free(o);
}

static void give(struct server *s, enum what what, const char *file, voices_done *done, void *user)
{
    struct voices_store *store = s->voices->store;
    struct order *o = memory_new(1, sizeof *o);
    struct refusal r;
    if (o) {
        *o = (struct order){.job = {run, end}, .server = s, .what = what, .done = done, .user = user};
        snprintf(o->file, sizeof o->file, "%s", file);
        o->changed = json_array();
    }
    if (o && o->changed && jobs_submit(store->jobs, &o->job)) {
        TAILQ_INSERT_TAIL(&store->orders, o, entry);
        return;
    }
    if (o) {
        json_decref(o->changed);
    }
    memory_free(o);
    if (what == LOOK) {
        look_later(s);
    } else if (what == PUT) {
        drop_made(file);
    }
    if (done) {
        refuse(&r, 503, NULL, "too many voices are on their way");
        done(user, NULL, NULL, &r);
    }
}

void voices_store_put(struct server *s, const char *file, voices_done *done, void *user)
{
    give(s, PUT, file, done, user);
}

bool voices_store_is_putting(const struct server *s, const char *file)
{
    const struct order *o = s->voices->store ? TAILQ_FIRST(&s->voices->store->orders) : NULL;
    while (o && (o->what != PUT || strcmp(o->file, file) != 0)) {
        o = TAILQ_NEXT(o, entry);
    }
    return o != NULL;
}

void voices_store_drop(struct server *s, const char *file, voices_done *done, void *user)
{
    give(s, DROP, file, done, user);
}

static void on_timer(evutil_socket_t socket, short what, void *user)
{
    (void)socket, (void)what;
    give(user, LOOK, "", NULL, NULL);
}

void voices_store_abandon(struct server *s, void *user)
{
    struct order *o;
    if (!s->voices->store) {
        return;
    }
    TAILQ_FOREACH(o, &s->voices->store->orders, entry)
    {
        if (o->user == user) {
            o->done = NULL;
        }
    }
}

bool voices_store_is_away(const struct server *s)
{
    return s->voices->store && s->voices->store->is_away;
}

/* ---- Life ---- */

static void ignore_changed(void *user, const char *name)
{
    (void)user, (void)name; /* the folder is read as a whole behind it */
}

/* Before there is a table of voices. When it is to go on behind this one: at once where it was not over in time. */
static struct timeval look_first(struct server *s)
{
    struct mirror *m = s->voices->store->mirror;
    utter_error error = {0};
    first_look_ends = seconds_now() + FIRST_LOOK_S;
    mirror_stop_by(m, is_late);
    utter_status status = mirror_look(m, ignore_changed, NULL, &error);
    mirror_stop_by(m, is_ending);
    if (status == UTTER_OK) {
        note_left_out(s, &error);
    }
    const bool was_late = status == UTTER_E_CANCELLED;
    if (was_late) {
        status = error_set(&error, UTTER_E_IO, "not all voices have come within %d s", FIRST_LOOK_S);
    }
    note_away(s, status, &error);
    return (struct timeval){.tv_sec = was_late ? 0 : LOOK_S};
}

bool voices_store_open(struct server *s, const char *url)
{
    static const char *const secrets[] = {"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"};
    struct voices_store *store = memory_new(1, sizeof *store);
    utter_error error = {0};
    if (!store) {
        fprintf(stderr, "utter: out of memory\n");
        return false;
    }
    TAILQ_INIT(&store->orders);
    s->voices->store = store;
    atomic_store(&ends, false);
    if (!s->options->cache) {
        fprintf(
            stderr, "utter: --voices %s: where is the copy to be? (set HOME or XDG_CACHE_HOME)\n", url);
        return false;
    }
    if (mirror_open(&store->mirror, url, "--voices", s->options->cache, &error) != UTTER_OK) {
        fprintf(stderr, "utter: %s\n", error.text);
        return false;
    }
    for (size_t i = 0; i < sizeof secrets / sizeof *secrets; i++) {
        unsetenv(secrets[i]); /* workers, who read what strangers send, are not to know them */
    }
    snprintf(s->voices->folder, sizeof s->voices->folder, "%s", mirror_folder(store->mirror));
    const struct timeval later = look_first(s);
    store->jobs = jobs_new(s->base, 1);
    store->timer = store->jobs ? evtimer_new(s->base, on_timer, s) : NULL;
    if (!store->timer || event_add(store->timer, &later) != 0) {
        fprintf(stderr, "utter: --voices %s: the server cannot start\n", url);
        return false;
    }
    return true;
}

/* What is on its way has a moment; nobody waits for it any more. */
void voices_store_close(struct server *s)
{
    struct voices_store *store = s->voices->store;
    if (!store) {
        return;
    }
    atomic_store(&ends, true);
    if (store->timer) {
        event_free(store->timer);
        store->timer = NULL;
    }
    jobs_free(store->jobs);
    mirror_close(store->mirror);
    memory_free(store);
    s->voices->store = NULL;
}
