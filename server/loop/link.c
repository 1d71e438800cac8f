/* SPDX-License-Identifier: Apache-2.0
 * Starts, watches, replaces one worker; cuts what it says into messages. */
#include "server/loop/link.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "server/cage/cage.h"
#include "server/loop/log.h"
#include "server/loop/spare.h"
#include "server/loop/spawn.h"

enum {
    SILENT_S = 30,
    SILENT_IDLE_S = 600,
    LATE_S = 2,
    LATE_STEPS = 10,
    MAX_FIRST_STARTS = 3,
    SAME_STARTS = 5
};
/* A process that had a big model may take seconds to end; one that cannot end holds the next one back no longer. */
enum { GONE_S = 10 };
static const double restart_pauses[] = {0, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60};

static void lose_worker(struct link *l, const char *why);

/* This one cannot open the model, and never could. Where that is so of all, the server ends. */
static void give_up(struct link *l, int exit_code)
{
    struct server *s = l->server;
    l->start_fault = exit_code;
    LINKS_FOREACH(other, s)
    {
        if (other->start_fault == 0) {
            return;
        }
    }
    if (s->exit_code == 0) {
        s->exit_code = exit_code;
        l->owner->given_up(s);
    }
}

/* What is open to a fault in the worker. */
static void tell_cage(const struct server *s, int parts)
{
    if (parts != CAGE_WHOLE) {
        log_event(s, "cage_open",
            json_pack("{s:s,s:s}", "missing", cage_names(CAGE_WHOLE & ~parts), "why",
                s->options->no_cage ? "--no-cage"
                : parts == 0
                    ? "a GPU's driver does not work in it (--device cpu does), or this kernel lacks it"
                    : "this kernel lacks it"));
    }
}

static bool same_names(const char *const *a, int n_a, const char *const *b, int n_b)
{
    bool same = n_a == n_b;
    for (int i = 0; same && i < n_a; i++) {
        same = strcmp(a[i], b[i]) == 0;
    }
    return same;
}

/* Whether a speech may go to either: what requests are read by, and what their sound is encoded by. */
static bool same_model(const struct wire_ready *a, const struct wire_ready *b)
{
    return strcmp(a->kind_name, b->kind_name) == 0 && strcmp(a->size_name, b->size_name) == 0 &&
           a->takes_instructions == b->takes_instructions && a->sample_rate == b->sample_rate &&
           a->frame_samples == b->frame_samples && a->width == b->width &&
           same_names(a->voices, a->n_voices, b->voices, b->n_voices) &&
           same_names(a->languages, a->n_languages, b->languages, b->n_languages);
}

static bool some_is_ready(const struct server *s)
{
    bool some = false;
    LINKS_FOREACH(l, s)
    {
        some = some || l->is_ready;
    }
    return some;
}

/* What is the same for all workers goes to the server. */
static void take_ready(struct link *l, const struct wire_message *m)
{
    struct server *s = l->server;
    uint8_t *kept = memory_new(m->bytes + 1, 1);
    struct wire_message copy = *m;
    if (!kept) {
        lose_worker(l, "out of memory");
        return;
    }
    memcpy(kept, m->body, m->bytes);
    copy.body = kept;
    struct wire_ready ready;
    if (!wire_get_ready(&ready, &copy) || ready.version != WIRE_VERSION) {
        memory_free(kept);
        lose_worker(l, "a worker of another version");
        return;
    }
    if (some_is_ready(s) && !same_model(&ready, &s->ready)) {
        memory_free(kept);
        lose_worker(l, "its model is not the one that other workers have open");
        return;
    }
    memory_free(s->ready_bytes);
    s->ready_bytes = kept;
    s->ready = ready;
    l->n_failed_starts = l->start_fault = 0;
    l->lanes = ready.lanes;
    l->memory_bytes = ready.memory_bytes;
    l->is_ready = true;
    l->is_waking = false;
    snprintf(l->opened_on, sizeof l->opened_on, "%s", ready.device);
    snprintf(l->kernels, sizeof l->kernels, "%s", ready.kernels ? ready.kernels : "");
    log_event(s, "worker_ready",
        json_pack("{s:i,s:i,s:f,s:s,s:s,s:i,s:s,s:s*}", "worker", l->number, "pid", (int)l->pid,
            "seconds", clock_seconds() - l->started, "device", ready.device, "kernels", l->kernels,
            "lanes", ready.lanes, "cage", cage_names(ready.cage), "note", ready.note));
    tell_cage(s, ready.cage);
    s->was_ready = true;
    l->owner->ready(l);
}

/* Why the worker ends. Before the model has been open once that may be the end of the server, too. */
static void take_refused(struct link *l, const struct wire_message *m)
{
    struct wire_failed failed;
    l->is_asked = true; /* it ends by itself: that it is killed as it closes is no news */
    if (!wire_get_failed(&failed, m)) {
        failed = (struct wire_failed){UTTER_E_INTERNAL, "the worker sent what is no message"};
    }
    bool is_first = l->lanes == 0 && l->start_fault == 0;
    if (is_first) {
        give_up(l, error_exit_code(failed.status));
    }
    if (is_first && !l->server->was_ready) {
        fprintf(stderr, "utter: %s\n", failed.text);
    } else {
        log_event(l->server, "worker_refused",
            json_pack("{s:i,s:i,s:s}", "worker", l->number, "pid", (int)l->pid, "error", failed.text));
    }
}

static void take_kernels(struct link *l, const char *kernels)
{
    if (kernels) {
        log_event(l->server, "kernels_changed",
            json_pack("{s:i,s:i,s:s,s:s}", "worker", l->number, "pid", (int)l->pid, "before",
                l->kernels, "now", kernels));
        snprintf(l->kernels, sizeof l->kernels, "%s", kernels);
    }
}

static void take_message(struct link *l, const struct wire_message *m)
{
    struct wire_beat beat;
    l->heard = clock_seconds();
    if (m->kind == WIRE_READY) {
        take_ready(l, m);
    } else if (m->kind == WIRE_REFUSED) {
        take_refused(l, m);
    } else if (m->kind == WIRE_BEAT && wire_get_beat(&beat, m)) {
        l->beat = beat;
        if (beat.n_stepped > 0 && !l->is_idle) {
            histogram_add(&l->server->metrics.step, beat.step_s);
        }
        l->owner->beat(l);
    } else if (m->kind == WIRE_KERNELS) {
        take_kernels(l, wire_get_kernels(m));
    } else {
        l->owner->message(l, m);
    }
}

/* A bufferevent reads 4 KiB at a time, half of a frame of one listener. */
static void on_read(evutil_socket_t socket, short what, void *user)
{
    struct link *l = user;
    const struct bufferevent *b = l->socket;
    struct wire_message m;
    enum wire_progress progress = WIRE_MORE;
    size_t room;
    uint8_t *bytes = wire_in_room(&l->in, &room);
    const ssize_t n = bytes ? recv(socket, bytes, room, 0) : 0;
    (void)what;
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (n <= 0) {
        lose_worker(l, l->broken || !bytes ? "out of memory" : "the worker has ended");
        return;
    }
    wire_in_came(&l->in, (size_t)n);
    while (l->socket == b && !l->broken && (progress = wire_next(&l->in, &m)) == WIRE_MESSAGE) {
        take_message(l, &m);
    }
    if (l->socket == b && progress == WIRE_BAD) {
        lose_worker(l, "the worker sent what is no message");
    }
    wire_in_rest(&l->in);
}

static void on_event(struct bufferevent *b, short what, void *user)
{
    struct link *l = user;
    (void)b;
    if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)) {
        lose_worker(l, l->broken ? "out of memory" : "the worker has ended");
    }
}

/* What a worker is asked for. One that takes the place of another asks for the same device and as many lanes: what is
 * free just now, with the memory of the other one on its way back, must not decide that. When that cannot be had again
 * and again, the choice is open as at the beginning. */
static struct wire_hello hello_of(const struct link *l)
{
    const struct server *s = l->server;
    const struct serve_options *o = s->options;
    struct wire_hello hello = {WIRE_VERSION, o->model, l->device, o->kernels,
        o->threads ? o->threads : l->threads, o->lanes, o->weights, o->snapshot_bytes, o->cache,
        s->voice_folders[0], s->voice_folders[1], !o->no_cage, l->is_idle};
    if (l->is_idle) {
        hello.lanes = LINK_IDLE_LANES;
        hello.snapshot_bytes = 0; /* memory that listeners may need */
    }
    if (l->lanes > 0 && l->n_failed_starts < SAME_STARTS) {
        hello.lanes = l->lanes;
        hello.device = strcmp(l->device, "auto") == 0 ? l->opened_on : l->device;
    }
    return hello;
}

static bool start_worker(struct link *l)
{
    struct server *s = l->server;
    int pair[2];
    static char name[] = "utter", command[] = "serve-worker", number[] = "3";
    char *arguments[] = {name, command, number, NULL};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        return false;
    }
    evutil_make_socket_nonblocking(pair[0]);
    struct bufferevent *b =
        spare_keep() ? bufferevent_socket_new(s->base, pair[0], BEV_OPT_CLOSE_ON_FREE) : NULL;
    struct event *come = b ? event_new(s->base, pair[0], EV_READ | EV_PERSIST, on_read, l) : NULL;
    const int priority = l->is_idle ? SERVER_IDLE : SERVER_SOUND;
    bool watched = come && bufferevent_priority_set(b, priority) == 0 &&
                   event_priority_set(come, priority) == 0 && event_add(come, NULL) == 0;
    l->pid = watched ? spawn_program(arguments, pair[1], -1) : -1;
    close(pair[1]);
    if (l->pid <= 0) {
        if (come) {
            event_free(come);
        }
        b ? bufferevent_free(b) : (void)close(pair[0]);
        return false;
    }
    l->socket = b;
    l->come = come;
    s->metrics.worker_starts++;
    l->n_starts++;
    l->n_unborn = 0;
    l->broken = l->is_asked = false;
    l->started = l->heard = clock_seconds();
    l->restart_at = 0;
    bufferevent_setcb(l->socket, NULL, NULL, on_event, l);
    const struct wire_hello hello = hello_of(l);
    wire_put_hello(&l->out, &hello);
    link_send(l);
    return true;
}

/* There is no worker any more, wherever its process is in its end. */
static void cut_off(struct link *l)
{
    struct bufferevent *socket = l->socket;
    l->socket = NULL;
    event_free(l->come);
    bufferevent_free(socket);
    l->in.begin = l->in.n = 0; /* the message that this may be about stays valid */
    if (l->pid > 0) {
        kill(l->pid, SIGKILL);
    }
    l->out.n = 0;
    l->out.failed = false;
    l->is_ready = l->is_waking = l->is_leaving = l->is_still = false;
    l->beat = (struct wire_beat){0};
    l->lost_at = clock_seconds();
    l->restart_at = 0;
}

/* The worker is of no use any more: its speeches fail, another one is started. */
static void lose_worker(struct link *l, const char *why)
{
    struct server *s = l->server;
    if (!l->socket) {
        return;
    }
    bool was_ready = l->is_ready, was_waking = l->is_waking;
    cut_off(l);
    s->metrics.worker_deaths++;
    l->n_deaths++;
    l->n_failed_starts = was_ready ? 0 : l->n_failed_starts + 1;
    int i = l->n_failed_starts, last = (int)(sizeof restart_pauses / sizeof *restart_pauses) - 1;
    l->restart_at = l->is_out ? 0 : clock_seconds() + restart_pauses[min(i, last)];
    log_event(s, "worker_lost",
        json_pack("{s:i,s:i,s:s}", "worker", l->number, "pid", (int)l->pid, "why", why));
    if (l->lanes == 0 && i >= MAX_FIRST_STARTS && l->start_fault == 0) {
        if (!s->was_ready) { /* else the log has all there is to say */
            fprintf(stderr,
                "utter: the model has never been open: %d workers died as they opened it, or took too "
                "long (is there memory enough?)\n",
                i);
        }
        give_up(l, 2);
    }
    char unopened[96];
    snprintf(unopened, sizeof unopened, "the model could not be opened: %s", why);
    l->owner->lost(l, was_waking ? unopened : NULL);
    if (s->was_ready && i == 0) {
        link_tick(l, clock_seconds());
    }
}

/* With the process all that the model takes is free, also on a GPU. */
void link_rest(struct link *l)
{
    if (l->socket) {
        log_event(
            l->server, "resting", json_pack("{s:i,s:i}", "worker", l->number, "pid", (int)l->pid));
        l->is_asked = true;
        cut_off(l);
        wire_in_fini(&l->in);
    }
    l->is_waking = false;
    l->restart_at = 0;
}

void link_wake(struct link *l)
{
    if (!l->is_out) {
        l->is_waking = true;
        /* Tries that failed before the rest do not count: the second one now tells all who wait, and the speech that
         * wakes it is not among them yet. So the loop has to make that one. */
        l->n_unborn = 0;
        l->restart_at = clock_seconds();
        link_tick(l, l->restart_at);
    }
}

/* What changed may be that one is missing now, or that another one takes what waits. */
static void follow_order(struct link *l)
{
    if (!l->is_out && !l->socket && l->restart_at <= 0 && !l->server->is_resting) {
        l->restart_at = clock_seconds();
    }
    l->owner->beat(l);
}

void link_leave(struct link *l, bool stays_out)
{
    l->is_out = stays_out;
    l->is_leaving = l->socket != NULL;
    l->is_waking = l->is_waking && !stays_out;
    l->restart_at = stays_out ? 0 : l->restart_at;
    log_event(l->server, "worker_leaves",
        json_pack("{s:i,s:i,s:i,s:b}", "worker", l->number, "pid", (int)l->pid, "running", l->n_running,
            "stays_out", stays_out));
    follow_order(l);
}

void link_return(struct link *l)
{
    l->is_out = l->is_leaving = false;
    follow_order(l);
}

/* Its last speech has ended. Who comes until the next one is ready waits for a model. */
static void leave(struct link *l, double now)
{
    log_event(
        l->server, "worker_left", json_pack("{s:i,s:i}", "worker", l->number, "pid", (int)l->pid));
    l->is_asked = true;
    cut_off(l);
    wire_in_fini(&l->in);
    l->is_waking = !l->is_out;
    l->restart_at = l->is_out ? 0 : now;
}

bool link_open(struct link *l)
{
    if (start_worker(l)) {
        return true;
    }
    l->restart_at = clock_seconds() + 1;
    return false;
}

/* At idle priority it may find no processor to end on while others want them all: nobody waits long for that. */
static void wait_for_end(const struct link *l)
{
    static const double idle_s = 1;
    const double until = clock_seconds() + idle_s;
    while (waitpid(l->pid, NULL, l->is_idle ? WNOHANG : 0) == 0 && clock_seconds() < until) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

void link_close(struct link *l)
{
    if (l->socket) {
        cut_off(l);
    }
    if (l->pid > 0) {
        kill(l->pid, SIGKILL);
        wait_for_end(l);
        l->pid = 0;
    }
    wire_fini(&l->out);
    wire_in_fini(&l->in);
}

struct wire_out *link_out(struct link *l)
{
    return l->is_ready && !l->broken ? &l->out : NULL;
}

bool link_stays(const struct link *l)
{
    return l->is_ready && !l->is_leaving;
}

/* How well it would make a speech: who has only those that are worse off beside it takes what comes. */
enum { NOT_AT_ALL, PERHAPS, TOO_SLOWLY, WELL };

static int makes_speeches(const struct link *l)
{
    return !link_stays(l) || l->broken ? NOT_AT_ALL
           : link_is_silent(l)         ? PERHAPS
           : l->beat.falls_behind      ? TOO_SLOWLY
                                       : WELL;
}

bool link_takes(const struct link *l)
{
    int makes = makes_speeches(l);
    bool takes = makes > NOT_AT_ALL;
    if (makes < WELL) {
        LINKS_FOREACH(other, l->server)
        {
            takes = takes && makes_speeches(other) <= makes;
        }
    }
    return takes;
}

/* Seconds in which it could have said something, and has not. */
static double silence_s(const struct link *l, double now)
{
    return (l->is_still ? l->still_since : now) - l->heard;
}

bool link_is_silent(const struct link *l)
{
    return silence_s(l, clock_seconds()) > LATE_S + LATE_STEPS * l->beat.step_s;
}

/* SIGKILL, which ends it, and the death of this process reach also one that stands still. */
void link_still(struct link *l, bool still)
{
    if (l->is_ready && l->pid > 0 && l->is_still != still && spawn_still(l->pid, still)) {
        const double now = clock_seconds();
        l->heard = still ? l->heard : min(now, l->heard + now - l->still_since);
        l->still_since = now;
        l->is_still = still;
    }
}

/* Callers hold speeches, which a lost worker would end under them: so it is only cut off here, and lost when the loop
 * reads the end of its socket. */
void link_send(struct link *l)
{
    bool good = !l->out.failed;
    if (good && l->out.n) {
        good = bufferevent_write(l->socket, l->out.bytes, l->out.n) == 0;
    }
    l->out.n = 0;
    l->out.failed = false;
    if (!good) {
        l->broken = true;
        shutdown(bufferevent_getfd(l->socket), SHUT_RDWR);
    }
}

/* It will be tried again. Who waits is told when that fails, too: the loop calls then, not who is about to wait. */
static void miss_worker(struct link *l, double now)
{
    l->restart_at = now + 1;
    if (l->n_unborn++ == 0) {
        log_event(l->server, "worker_not_started",
            json_pack("{s:i,s:s}", "worker", l->number, "why", strerror(errno)));
    } else if (l->is_waking) {
        l->is_waking = false;
        l->owner->lost(l, "the model could not be opened: no process could be started");
    }
}

void link_tick(struct link *l, double now)
{
    const struct serve_options *o = l->server->options;
    if (l->is_leaving && TAILQ_EMPTY(&l->running)) { /* those that were cut have been told, too */
        leave(l, now);
    }
    /* The memory of a GPU comes back with the end of the process that had it. */
    bool gone = l->pid <= 0 || now - l->lost_at > GONE_S;
    if (!l->socket && gone && l->restart_at > 0 && now >= l->restart_at && !start_worker(l)) {
        miss_worker(l, now);
    }
    /* It beats several times a second, but for long prefills and while it opens the model. */
    if (l->socket && l->is_ready && silence_s(l, now) > (l->is_idle ? SILENT_IDLE_S : SILENT_S)) {
        lose_worker(l, "the worker does not answer");
    } else if (l->socket && !l->is_ready && !l->is_idle && o->opening_s > 0 &&
               now - l->started > o->opening_s) {
        lose_worker(l, "it took too long");
    }
}

void link_reap(struct link *l, int status)
{
    struct server *s = l->server;
    if (WIFSIGNALED(status) && !l->is_asked) {
        log_event(s, "worker_killed",
            json_pack(
                "{s:i,s:i,s:i}", "worker", l->number, "pid", (int)l->pid, "signal", WTERMSIG(status)));
    }
    l->pid = 0;
    if (l->lanes == 0 && WIFEXITED(status) && WEXITSTATUS(status) != 0 && l->start_fault == 0) {
        give_up(l, WEXITSTATUS(status) == 1 ? 1 : 2);
    }
    lose_worker(l, "the worker has ended");
    if (s->was_ready) {
        link_tick(l, clock_seconds());
    }
}
