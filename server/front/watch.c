/* SPDX-License-Identifier: Apache-2.0
 * Health, readiness, metrics, and what an operator does with a worker. */
#include "server/front/watch.h"

#include <stdlib.h>
#include <string.h>

#include "server/loop/account.h"
#include "server/loop/links.h"
#include "server/protocol/devices.h"
#include "server/speech/speech.h"

static const char *state_of(const struct link *l)
{
    return l->is_leaving           ? "leaving"
           : l->is_ready           ? (link_is_silent(l) ? "silent" : "ready")
           : l->is_out             ? "out"
           : l->server->is_resting ? "resting"
           : l->is_waking          ? "waking"
           : l->lanes == 0         ? "opening"
                                   : "being replaced";
}

static json_t *worker_json(const struct link *l)
{
    return json_pack("{s:i,s:s,s:s,s:i,s:i,s:i,s:i}", "worker", l->number, "device", l->device, "state",
        state_of(l), "pid", (int)l->pid, "lanes", l->lanes, "running", l->n_running, "capacity",
        l->beat.capacity);
}

static json_t *workers_json(const struct server *s)
{
    json_t *list = json_array();
    LINKS_FOREACH(l, s)
    {
        json_array_append_new(list, worker_json(l));
    }
    return list;
}

/* It has no number: nobody sends it away. */
static json_t *idle_json(const struct link *l)
{
    return json_pack("{s:s,s:s,s:i,s:i,s:i}", "device", l->device, "state", state_of(l), "pid",
        (int)l->pid, "lanes", l->lanes, "running", l->n_background);
}

/* A stranger need not know the machine, nor how busy it is. */
static bool may_know(const struct conn *c)
{
    return c->account || !c->server->keys;
}

void watch_health(struct conn *c)
{
    const struct server *s = c->server;
    const struct link *l = links_first(s);
    bool good = l || links_up(s) || !s->was_ready || s->is_resting || links_out(s);
    json_t *said = json_pack("{s:s}", "status", good ? "ok" : "the worker is being replaced");
    if (l && may_know(c)) {
        json_object_set_new(said, "device", json_string(l->opened_on));
        json_object_set_new(said, "kernels", json_string(l->kernels));
        json_object_set_new(said, "weights", json_string(s->ready.weights));
        json_object_set_new(said, "lanes", json_integer(links_lanes(s)));
        json_object_set_new(said, "workers", workers_json(s));
        if (s->background.link) {
            json_object_set_new(said, "idle_worker", idle_json(s->background.link));
        }
    }
    conn_answer_json(c, good ? 200 : 503, said);
}

/* Whether a speech would be taken, and in a word why or why not. What is asked for while the model rests or wakes is
 * queued, and spoken: a balancer that left such a server alone would never wake it. */
static bool is_ready(const struct server *s, const char **status)
{
    bool takes = false, answers = false, up = s->is_resting;
    LINKS_FOREACH(l, s)
    {
        takes = takes || link_takes(l);
        answers = answers || (link_takes(l) && !link_is_silent(l));
        up = up || link_takes(l) || l->is_waking;
    }
    bool silent = takes && !answers, full = up && speech_is_full(s);
    *status = s->draining     ? "stopping"
              : links_out(s)  ? "out of service"
              : !up           ? "opening the model"
              : full          ? "full"
              : silent        ? "the worker does not answer"
              : s->is_resting ? "resting"
              : takes         ? "ready"
                              : "waking";
    return up && !s->draining && !full && !silent && !links_out(s);
}

void watch_ready(struct conn *c)
{
    const struct server *s = c->server;
    const char *status;
    bool good = is_ready(s, &status);
    json_t *said = json_pack("{s:s}", "status", status);
    if (may_know(c)) {
        json_object_set_new(said, "lanes", json_integer(links_lanes(s)));
        json_object_set_new(said, "running", json_integer(s->n_running));
        json_object_set_new(said, "queued", json_integer(s->n_queued));
    }
    conn_answer_json(c, good ? 200 : 503, said);
}

static struct metrics_worker worker_now(const struct link *l)
{
    return (struct metrics_worker){.number = l->number,
        .device = l->device,
        .values = {l->is_ready, l->n_running, l->lanes, l->beat.capacity, l->beat.n_stepped,
            (double)(l->is_ready ? l->memory_bytes : 0), (double)l->n_starts, (double)l->n_deaths,
            l->audio_s}};
}

/* How much of what can be promised is: who has sound in hand needs less than a whole lane. */
static double use_of(const struct server *s)
{
    int taken = s->n_running, room = speech_room(s);
    return taken + room > 0 ? (double)taken / (taken + room) : s->is_resting ? 0 : 1;
}

void watch_metrics(struct conn *c)
{
    const struct server *s = c->server;
    struct wire_out text = {0};
    struct metrics_worker workers[DEVICES_MOST];
    struct metrics_now now = {.running = s->n_running,
        .queued = s->n_queued,
        .background_running = s->background.n_running,
        .background_queued = s->background.n_queued,
        .lanes = links_lanes(s),
        .capacity = links_capacity(s),
        .use = use_of(s),
        .connections = s->n_conns,
        .ready = links_ready(s) > 0,
        .version = utter_version_text(),
        .model = s->model_id,
        .device = s->ready.device ? s->ready.device : "",
        .workers = workers};
    const struct link *idle = s->background.link;
    now.worker_memory_bytes = idle && idle->is_ready ? idle->memory_bytes : 0;
    LINKS_FOREACH(l, s)
    {
        now.batch += l->beat.n_stepped;
        now.worker_memory_bytes += l->is_ready ? l->memory_bytes : 0;
        workers[now.n_workers++] = worker_now(l);
    }
    metrics_print(&s->metrics, &now, &text);
    if (text.failed) {
        conn_answer_json(c, 503, NULL);
    } else {
        conn_answer(c, 200, "text/plain; version=0.0.4; charset=utf-8", text.bytes, text.n);
    }
    wire_fini(&text);
}

void watch_workers(struct conn *c)
{
    conn_answer_json(c, 200, json_pack("{s:o}", "workers", workers_json(c->server)));
}

/* ---- What an operator does ---- */

/* Whoever may speak need not be the one who looks after the server: that takes a key with the word "operator". Without
 * keys it is nobody, since behind a proxy strangers have an address of this machine, too. */
static bool is_operator(const struct conn *c, struct refusal *r)
{
    return (c->account && c->account->is_operator) ||
           refuse(r, 403, NULL,
               c->server->keys ? "this key may not change workers (its line says no \"operator\")"
                               : "workers are changed with a key whose line says \"operator\" (start "
                                 "the server with --api-key-file)");
}

/* The worker of the path; NULL: it has been refused. */
static struct link *find_worker(struct conn *c)
{
    struct server *s = c->server;
    const char *number = strstr(c->head.path, "/workers/") + strlen("/workers/");
    char *end;
    unsigned long i = strtoul(number, &end, 10);
    struct refusal r;
    bool good = is_operator(c, &r);
    if (good && (*number < '0' || *number > '9' || *end != '/' || i >= (unsigned long)s->n_links)) {
        good = refuse(&r, 404, "worker", "no such worker (there are %d, from 0 on)", s->n_links);
    }
    if (!good) {
        conn_refuse(c, &r);
        return NULL;
    }
    return &s->links[i];
}

static void answer_worker(struct conn *c, const struct link *l)
{
    conn_answer_json(c, 200, worker_json(l));
}

void watch_drain(struct conn *c)
{
    struct link *l = find_worker(c);
    if (l) {
        link_leave(l, true);
        answer_worker(c, l);
    }
}

void watch_replace(struct conn *c)
{
    struct link *l = find_worker(c);
    if (l) {
        link_leave(l, false);
        answer_worker(c, l);
    }
}

void watch_start(struct conn *c)
{
    struct link *l = find_worker(c);
    if (l) {
        link_return(l);
        answer_worker(c, l);
    }
}
