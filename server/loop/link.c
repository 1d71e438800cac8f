/* SPDX-License-Identifier: Apache-2.0
 * Starts, watches, replaces the worker; cuts what it says into messages. */
#include "server/loop/link.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "server/loop/log.h"
#include "server/loop/spawn.h"

enum { SILENT_S = 30, LATE_S = 2, LATE_STEPS = 10, MAX_FIRST_STARTS = 3, SAME_STARTS = 5, GONE_S = 1 };
static const double restart_pauses[] = {0, 0.1, 0.25, 0.5, 1, 2};

struct link {
    const struct link_owner *owner;
    pid_t pid; /* 0: none */
    struct bufferevent *socket;
    struct wire_out out;
    double started, heard, restart_at; /* restart_at 0: not planned */
    double lost_at;                    /* when there was one last */
    int n_failed_starts;               /* workers in a row that ended before they were ready */
    int n_unborn;                      /* tries in a row to start one that gave no process */
    double step_s;                     /* of the worker's last step */
    bool broken;                       /* a message to it was lost: the loop will end it */
    bool closing;
};

static void lose_worker(struct server *s, const char *why);

static void take_ready(struct server *s, const struct wire_message *m)
{
    uint8_t *kept = memory_new(m->bytes + 1, 1);
    struct wire_message copy = *m;
    if (!kept) {
        lose_worker(s, "out of memory");
        return;
    }
    memcpy(kept, m->body, m->bytes);
    copy.body = kept;
    struct wire_ready ready;
    if (!wire_get_ready(&ready, &copy) || ready.version != WIRE_VERSION) {
        memory_free(kept);
        lose_worker(s, "a worker of another version");
        return;
    }
    memory_free(s->ready_bytes);
    s->ready_bytes = kept;
    s->ready = ready;
    s->link->n_failed_starts = 0;
    s->is_ready = true;
    s->is_waking = false;
    snprintf(s->kernels, sizeof s->kernels, "%s", ready.kernels ? ready.kernels : "");
    log_event(s, "worker_ready",
        json_pack("{s:i,s:f,s:s,s:s,s:i}", "pid", (int)s->link->pid, "seconds",
            clock_seconds() - s->link->started, "device", ready.device, "kernels", s->kernels, "lanes",
            ready.lanes));
    bool first = !s->was_ready;
    s->was_ready = true;
    s->link->owner->ready(s, first);
}

/* Why the worker ends. Before the model has been open once that is the end of the server, too. */
static void take_refused(struct server *s, const struct wire_message *m)
{
    struct wire_failed failed;
    if (!wire_get_failed(&failed, m)) {
        failed = (struct wire_failed){UTTER_E_INTERNAL, "the worker sent what is no message"};
    }
    if (s->was_ready) {
        log_event(s, "worker_refused",
            json_pack("{s:i,s:s}", "pid", (int)s->link->pid, "error", failed.text));
        return;
    }
    fprintf(stderr, "utter: %s\n", failed.text);
    s->exit_code = error_exit_code(failed.status);
    event_base_loopbreak(s->base);
}

static void take_kernels(struct server *s, const char *kernels)
{
    if (kernels) {
        log_event(s, "kernels_changed",
            json_pack("{s:i,s:s,s:s}", "pid", (int)s->link->pid, "before", s->kernels, "now", kernels));
        snprintf(s->kernels, sizeof s->kernels, "%s", kernels);
    }
}

static void take_message(struct server *s, const struct wire_message *m)
{
    struct wire_beat beat;
    s->link->heard = clock_seconds();
    if (m->kind == WIRE_READY) {
        take_ready(s, m);
    } else if (m->kind == WIRE_REFUSED) {
        take_refused(s, m);
    } else if (m->kind == WIRE_BEAT && wire_get_beat(&beat, m)) {
        s->metrics.batch = beat.n_stepped;
        s->capacity = beat.capacity;
        s->link->step_s = beat.step_s;
        if (beat.n_stepped > 0) {
            histogram_add(&s->metrics.step, beat.step_s);
        }
        s->link->owner->beat(s);
    } else if (m->kind == WIRE_KERNELS) {
        take_kernels(s, wire_get_kernels(m));
    } else {
        s->link->owner->message(s, m);
    }
}

static void on_read(struct bufferevent *b, void *user)
{
    struct server *s = user;
    struct evbuffer *in = bufferevent_get_input(b);
    struct link *link = s->link;
    while (link->socket == b) {
        uint8_t head[WIRE_HEADER_BYTES];
        struct wire_message m;
        size_t used = 0, n = evbuffer_get_length(in);
        if (n < sizeof head || link->broken) {
            return;
        }
        evbuffer_copyout(in, head, sizeof head);
        size_t need = wire_message_bytes(head);
        if (n < need && need <= sizeof head + WIRE_MAX_BODY) {
            return;
        }
        const uint8_t *bytes = evbuffer_pullup(in, (ev_ssize_t)(need <= n ? need : sizeof head));
        if (!bytes || wire_read(&m, bytes, need <= n ? need : sizeof head, &used) != WIRE_MESSAGE) {
            lose_worker(s, "the worker sent what is no message");
            return;
        }
        take_message(s, &m);
        if (link->socket == b) {
            evbuffer_drain(in, used);
        }
    }
}

static void on_event(struct bufferevent *b, short what, void *user)
{
    (void)b;
    if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR)) {
        const struct server *s = user;
        lose_worker(user, s->link->broken ? "out of memory" : "the worker has ended");
    }
}

/* What a worker is asked for. One that takes the place of another asks for the same device and as many lanes: what is
 * free just now, with the memory of the other one on its way back, must not decide that. When that cannot be had again
 * and again, the choice is open as at the beginning. */
static struct wire_hello hello_of(const struct server *s)
{
    const struct serve_options *o = s->options;
    struct wire_hello hello = {WIRE_VERSION, o->model, o->device, o->kernels, o->threads, o->lanes,
        o->weights, o->snapshot_bytes, o->cache};
    if (s->was_ready && s->ready.lanes > 0 && s->link->n_failed_starts < SAME_STARTS) {
        hello.lanes = s->ready.lanes;
        hello.device = strcmp(o->device, "auto") == 0 ? s->ready.device : o->device;
    }
    return hello;
}

static bool start_worker(struct server *s)
{
    struct link *link = s->link;
    int pair[2];
    static char name[] = "utter", command[] = "serve-worker", number[] = "3";
    char *arguments[] = {name, command, number, NULL};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        return false;
    }
    link->pid = spawn_program(arguments, pair[1], -1);
    close(pair[1]);
    evutil_make_socket_nonblocking(pair[0]);
    link->socket =
        link->pid > 0 ? bufferevent_socket_new(s->base, pair[0], BEV_OPT_CLOSE_ON_FREE) : NULL;
    if (!link->socket) {
        close(pair[0]);
        return false;
    }
    s->metrics.worker_starts++;
    link->n_unborn = 0;
    link->broken = false;
    link->started = link->heard = clock_seconds();
    link->restart_at = 0;
    bufferevent_priority_set(link->socket, SERVER_SOUND);
    bufferevent_setcb(link->socket, on_read, NULL, on_event, s);
    bufferevent_enable(link->socket, EV_READ | EV_WRITE);
    const struct wire_hello hello = hello_of(s);
    wire_put_hello(&link->out, &hello);
    link_send(s);
    return true;
}

/* The worker is of no use any more: its speeches fail, another one is started. */
static void lose_worker(struct server *s, const char *why)
{
    struct link *link = s->link;
    if (!link->socket) {
        return;
    }
    bufferevent_free(link->socket);
    link->socket = NULL;
    if (link->pid > 0) {
        kill(link->pid, SIGKILL);
    }
    link->out.n = 0;
    link->out.failed = false;
    bool was_ready = s->is_ready, was_waking = s->is_waking;
    s->is_ready = s->is_waking = false;
    s->capacity = 0;
    if (link->closing) {
        return;
    }
    s->metrics.worker_deaths++;
    link->lost_at = clock_seconds();
    link->n_failed_starts = was_ready ? 0 : link->n_failed_starts + 1;
    int i = link->n_failed_starts, last = (int)(sizeof restart_pauses / sizeof *restart_pauses) - 1;
    link->restart_at = clock_seconds() + restart_pauses[min(i, last)];
    log_event(s, "worker_lost", json_pack("{s:i,s:s}", "pid", (int)link->pid, "why", why));
    if (!s->was_ready && i >= MAX_FIRST_STARTS && s->exit_code == 0) {
        fprintf(stderr,
            "utter: the model has never been open: %d workers died as they opened it, or took too long "
            "(is there memory enough?)\n",
            i);
        s->exit_code = 2;
        event_base_loopbreak(s->base);
    }
    char unopened[96];
    snprintf(unopened, sizeof unopened, "the model could not be opened: %s", why);
    link->owner->lost(s, was_waking ? unopened : NULL);
    if (s->was_ready && i == 0) {
        link_tick(s, clock_seconds());
    }
}

/* Nobody has asked for long. With the process all that the model takes is free, also on a GPU. */
static void rest(struct server *s)
{
    struct link *link = s->link;
    log_event(s, "resting", json_pack("{s:i}", "pid", (int)link->pid));
    bufferevent_free(link->socket);
    link->socket = NULL;
    kill(link->pid, SIGKILL);
    link->lost_at = clock_seconds();
    link->restart_at = 0;
    s->is_ready = false;
    s->is_resting = true;
    s->capacity = 0;
}

void link_want(struct server *s)
{
    s->worked_at = clock_seconds(); /* it may be over before the next tick */
    if (s->is_resting) {
        s->is_resting = false;
        s->is_waking = true;
        s->link->restart_at = clock_seconds();
        link_tick(s, s->link->restart_at);
    }
}

bool link_open(struct server *s, const struct link_owner *owner)
{
    s->link = memory_new(1, sizeof *s->link);
    if (!s->link) {
        return false;
    }
    s->link->owner = owner;
    return start_worker(s);
}

void link_close(struct server *s)
{
    if (!s->link) {
        return;
    }
    s->link->closing = true;
    if (s->link->socket) {
        bufferevent_free(s->link->socket);
        s->link->socket = NULL;
    }
    if (s->link->pid > 0) {
        kill(s->link->pid, SIGKILL);
        waitpid(s->link->pid, NULL, 0);
    }
    wire_fini(&s->link->out);
    memory_free(s->link);
    s->link = NULL;
}

struct wire_out *link_out(struct server *s)
{
    return s->is_ready && !s->link->broken ? &s->link->out : NULL;
}

bool link_is_silent(const struct server *s)
{
    return clock_seconds() - s->link->heard > LATE_S + LATE_STEPS * s->link->step_s;
}

/* Callers hold speeches, which a lost worker would end under them: so it is only cut off here, and lost when the loop
 * reads the end of its socket. */
void link_send(struct server *s)
{
    struct link *link = s->link;
    bool good = !link->out.failed;
    if (good && link->out.n) {
        good = bufferevent_write(link->socket, link->out.bytes, link->out.n) == 0;
    }
    link->out.n = 0;
    link->out.failed = false;
    if (!good) {
        link->broken = true;
        shutdown(bufferevent_getfd(link->socket), SHUT_RDWR);
    }
}

/* It will be tried again. Who waits is told when that fails, too: the loop calls then, not who is about to wait. */
static void miss_worker(struct server *s, double now)
{
    struct link *link = s->link;
    link->restart_at = now + 1;
    if (link->n_unborn++ == 0) {
        log_event(s, "worker_not_started", json_pack("{s:s}", "why", strerror(errno)));
    } else if (s->is_waking) {
        s->is_waking = false;
        link->owner->lost(s, "the model could not be opened: no process could be started");
    }
}

void link_tick(struct server *s, double now)
{
    struct link *link = s->link;
    /* The memory of a GPU comes back with the end of the process that had it. */
    bool gone = link->pid <= 0 || now - link->lost_at > GONE_S;
    if (!link->socket && gone && link->restart_at > 0 && now >= link->restart_at && !start_worker(s)) {
        miss_worker(s, now);
    }
    /* It beats several times a second, but for long prefills and while it opens the model. */
    if (link->socket && s->is_ready && now - link->heard > SILENT_S) {
        lose_worker(s, "the worker does not answer");
    } else if (link->socket && !s->is_ready && s->options->opening_s > 0 &&
               now - link->started > s->options->opening_s) {
        lose_worker(s, "it took too long");
    }
    if (!s->is_ready || s->n_running + s->n_queued > 0) {
        s->worked_at = now;
    } else if (s->options->idle_minutes > 0 && now - s->worked_at > 60 * s->options->idle_minutes) {
        rest(s);
    }
}

void link_reap(struct server *s, pid_t pid, int status)
{
    if (!s->link || pid != s->link->pid) {
        return;
    }
    s->link->pid = 0;
    if (WIFSIGNALED(status) && !s->is_resting) {
        log_event(
            s, "worker_killed", json_pack("{s:i,s:i}", "pid", (int)pid, "signal", WTERMSIG(status)));
    }
    if (!s->was_ready && WIFEXITED(status) && WEXITSTATUS(status) != 0 && s->exit_code == 0) {
        s->exit_code = WEXITSTATUS(status) == 1 ? 1 : 2;
        event_base_loopbreak(s->base);
    }
    lose_worker(s, "the worker has ended");
    if (s->was_ready && !s->link->closing) {
        link_tick(s, clock_seconds());
    }
}
