/* SPDX-License-Identifier: Apache-2.0
 * What a seed draws: the options, the model, who comes and when, what fails; and what must be so at each moment. */
#include "tests/sim/life.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/json.h"
#include "server/front/serve.h"
#include "server/loop/links.h"
#include "server/loop/server.h"
#include "server/speech/speech_parts.h"
#include "server/worker/worker.h"
#include "tests/heap.h"
#include "tests/sim/client.h"
#include "tests/sim/kernel.h"
#include "tests/sim/model.h"

enum { N_KEYS = 4 };

static struct {
    struct serve_options options;
    struct server *server;
    double arrivals_s, faults_s; /* means between two; 0: none */
    double ends_at;
    double stopped_at; /* 0: it was not told to stop */
    bool storms;       /* it is stopped while it is at work */
    bool quiet;        /* nothing is drawn any more: all is well and must be served */
    bool is_alone;     /* nobody was here when wait_for_quiet looked last */
    int n_probes;
    struct alarm arrival, fault, end, second, lack;
    char key_file[64];
} life;

static bool failing, lacking;

struct server *life_server(void)
{
    return life.server;
}

/* ---- What must be so ---- */

static const struct link_owner *front_end;

/* From here on nobody is served, but who has asked is told. */
static void note_given_up(struct server *s)
{
    clients_know_of_end(false);
    front_end->given_up(s);
}

bool __real_links_open(struct server *s, const struct link_owner *owner);
bool __wrap_links_open(struct server *s, const struct link_owner *owner);
bool __wrap_links_open(struct server *s, const struct link_owner *owner)
{
    static struct link_owner watched;
    watched = *(front_end = owner);
    watched.given_up = note_given_up;
    return __real_links_open(life.server = s, &watched);
}

/* Every speech has ended in one way, and was counted once. */
static void look_at_counts(const struct server *s)
{
    const struct metrics *m = &s->metrics;
    uint64_t n[METRICS_N_OUTCOMES] = {0}, n_cancelled = 0;
    for (int i = 0; i < METRICS_N_ENDPOINTS; i++) {
        for (int k = 0; k < METRICS_N_OUTCOMES; k++) {
            n[k] += m->requests[i][k];
        }
    }
    for (int i = 0; i < METRICS_N_STAGES; i++) {
        n_cancelled += m->cancelled[i];
    }
    if (n[METRICS_OK] + n[METRICS_ERROR] + n[METRICS_CANCELLED] + n[METRICS_GIVEN_BACK] != s->next_id ||
        n_cancelled != n[METRICS_CANCELLED]) {
        world_fail("of %u speeches %llu were counted as good, %llu as failed, %llu (%llu by stage) as "
                   "cancelled",
            s->next_id, (unsigned long long)n[METRICS_OK], (unsigned long long)n[METRICS_ERROR],
            (unsigned long long)n[METRICS_CANCELLED], (unsigned long long)n_cancelled);
    }
    if (n[METRICS_OK] < seen.n_whole) {
        world_fail("%llu answers were whole, %llu are counted", (unsigned long long)seen.n_whole,
            (unsigned long long)n[METRICS_OK]);
    }
    if (s->n_conns != 0 || s->held_bytes != 0 || s->unsent_bytes != 0 || s->n_lingering != 0) {
        world_fail("without a connection, %d connections, %zu and %zu bytes, %d lingering are counted",
            s->n_conns, s->held_bytes, s->unsent_bytes, s->n_lingering);
    }
}

void __real_links_close(struct server *s);
void __wrap_links_close(struct server *s);
void __wrap_links_close(struct server *s)
{
    look_at_counts(s);
    if (life.stopped_at <= 0 && (s->was_ready || s->exit_code == 0)) {
        world_fail("the server has ended with %d, and nobody told it to", s->exit_code);
    }
    if (life.stopped_at > 0 && s->was_ready && s->exit_code != 0) {
        world_fail("told to stop, the server ends with %d", s->exit_code);
    }
    __real_links_close(s);
    clients_know_of_end(false);
    life.server = NULL;
}

/* It stands still for who listens, and never for long: a tick may come when that is over. */
static void look_at_idle(const struct link *l)
{
    static const double most_s = 0.5 + 0.1 + 0.05;
    const struct server *s = l->server;
    const double since_s = world_now() - l->still_since;
    const struct speech *p;
    bool some = false;
    if (l->is_still != (l->socket && kernel_is_stopped(l->pid))) {
        world_fail("the idle worker %s, and the front end thinks otherwise",
            l->is_still ? "runs" : "stands still");
    }
    if (l->is_still && since_s > most_s) {
        world_fail("the idle worker stands still since %.3f s", since_s);
    }
    if (l->is_still || s->background.is_due || !l->is_ready) {
        return;
    }
    LINKS_FOREACH(other, s)
    {
        TAILQ_FOREACH(p, &other->running, entry)
        {
            some = some || (p->live && p->first_samples <= 0 && p->text_ended && !p->held &&
                               !p->patient && speech_is_wanted(p));
        }
    }
    if (some) {
        world_fail("a listener waits for a first sound, and the idle worker runs");
    }
}

static void look_at_link(struct link *l)
{
    const struct server *s = l->server;
    const struct speech *p;
    int n = 0, n_background = 0, capacity = l->beat.capacity;
    TAILQ_FOREACH(p, &l->running, entry)
    {
        n += p->link == l && !p->background;
        n_background += p->link == l && p->background && !p->is_cut;
    }
    if (l->n_running + l->n_background > l->lanes || l->n_running != n ||
        l->n_background != n_background || (l->is_idle && n > 0)) {
        world_fail("worker %d: %d and, in the background, %d run on %d lanes, %d and %d are counted",
            l->number, n, n_background, l->lanes, l->n_running, l->n_background);
    }
    if (l->is_idle) { /* which is there when it is wanted */
        look_at_idle(l);
        return;
    }
    int room = s->options->paced && capacity > 0 && capacity < l->lanes ? capacity : l->lanes;
    if (l->is_out && !l->socket && l->restart_at > 0) {
        world_fail("worker %d was sent away, and is to be started", l->number);
    }
    if (!l->is_out && !l->socket && l->restart_at <= 0 && !s->is_resting) {
        world_fail("worker %d is not there, and none will be started", l->number);
    }
    int n_waiting = s->n_queued;
    TAILQ_FOREACH(p, &s->queued, entry)
    {
        n_waiting -= p->text.failed; /* it is refused with the next tick */
    }
    if (n_waiting > 0 && link_takes(l) && !link_is_silent(l) && n < room) {
        world_fail("%d wait, and only %d of %d lanes are taken", s->n_queued, n, room);
    }
}

/* Whenever the front end has nothing to do. */
static void look(void)
{
    struct server *s = life.server;
    if (!s) {
        return;
    }
    int n_running = 0, n_background = 0, n_lanes = 0;
    LINKS_FOREACH(l, s)
    {
        look_at_link(l);
        n_lanes += l->lanes;
        n_running += l->n_running;
        n_background += l->n_background;
    }
    if (s->background.link) {
        look_at_link(s->background.link);
        n_background += s->background.link->n_background;
    }
    if (n_background != s->background.n_running || s->background.n_queued < 0) {
        world_fail("%d run in the background, %d are counted, and %d wait", n_background,
            s->background.n_running, s->background.n_queued);
    }
    if (n_running != s->n_running || s->n_queued < 0 || s->n_queued > s->options->queue + n_lanes) {
        world_fail("%d run, %d are counted, and %d wait", n_running, s->n_running, s->n_queued);
    }
    const struct speech *p;
    TAILQ_FOREACH(p, &s->queued, entry)
    {
        if (!speech_is_wanted(p)) {
            world_fail("speech %u waits for a lane, and nobody wants it any more", p->id);
        }
    }
    if (s->held_bytes > LIMIT_HELD + (size_t)s->n_conns * LIMIT_HELD_SMALL + (8 << 20) ||
        s->unsent_bytes > LIMIT_UNSENT_ALL + (size_t)s->n_conns * 2 * LIMIT_UNSENT) {
        world_fail("clients hold %zu bytes, and have not taken %zu", s->held_bytes, s->unsent_bytes);
    }
}

/* ---- The end ---- */

static void not_ended(void *user)
{
    (void)user;
    world_fail("told to stop at %.3f s, with %d s for those who speak, it still runs", life.stopped_at,
        life.options.drain_s);
}

static void come_at_once(int n);

static void stop(void *user)
{
    bool again = user != NULL;
    if (!again && draw_chance(0.3)) {
        come_at_once(1 + draw_below(20));
    }
    clients_know_of_end(false);
    life.stopped_at = world_now();
    alarm_clear(&life.arrival);
    alarm_clear(&life.fault);
    alarm_set(&life.end, again ? 0.3 : life.options.drain_s + 1, not_ended, NULL);
    if (!again && draw_chance(0.2)) {
        alarm_set(&life.second, draw_between(0, life.options.drain_s), stop, &life);
    }
    raise(draw_chance(0.5) ? SIGTERM : SIGINT);
}

static void stop_now(void *user)
{
    (void)user;
    raise(SIGTERM);
}

static void probe(void *user);

/* All who came have been told: a second after the last has gone, lanes, queue and connections are as at first. */
static void wait_for_quiet(void *user)
{
    const struct server *s = life.server;
    (void)user;
    /* A worker at idle priority may stand still for long, with what was cut, and is not waited for by the server. */
    bool stands = s->background.link && model_open_speeches() > 0,
         well = (links_ready(s) == s->n_links || s->is_resting) && !stands,
         alone = clients_count() == 0 && well && world_now() >= life.ends_at + 5;
    bool since_a_second = alone && life.is_alone;
    life.is_alone = alone;
    if (!since_a_second) {
        if (world_now() > life.ends_at + 30000) {
            world_fail("long after the last fault, %d clients are left and %d of %d workers are ready",
                clients_count(), links_ready(s), s->n_links);
        }
        alarm_set(&life.end, 1, wait_for_quiet, NULL);
        return;
    }
    if (s->n_running != 0 || s->n_queued != 0 || model_open_speeches() != 0 ||
        s->background.n_running != 0 || s->background.n_queued != 0) {
        world_fail("nobody is here, and %d speeches run, %d wait, the worker has %d", s->n_running,
            s->n_queued, model_open_speeches());
    }
    life.n_probes = life.options.key_file ? N_KEYS : 1;
    probe(NULL);
}

/* Now each key's speech must be made. */
static void probe(void *user)
{
    (void)user;
    if (life.n_probes == 0 && clients_count() == 0) {
        stop(NULL);
        return;
    }
    if (clients_count() == 0) {
        life.n_probes--;
        client_new(&(struct client_plan){.kind = CLIENT_RAW,
            .n_requests = 1,
            .least_bytes = 20,
            .most_bytes = 40,
            .leaves_s = -1,
            .key = life.options.key_file ? life.n_probes : -1,
            .must_be_served = true});
    }
    alarm_set(&life.end, 1, probe, NULL);
}

static void end_arrivals(void *user)
{
    (void)user;
    alarm_clear(&life.arrival);
    alarm_clear(&life.fault);
    if (life.storms) {
        stop(NULL);
        return;
    }
    life.quiet = true;
    kernel_fail_calls(0);
    kernel_lack_memory(0);
    model_plan.does_not_open = model_plan.does_not_start = model_plan.breaks = 0;
    kernel_kill_frozen();
    struct server *s = life.server;
    LINKS_FOREACH(l, s)
    {
        link_return(l);
    }
    wait_for_quiet(NULL);
}

/* ---- What comes ---- */

static void draw_client(struct client_plan *p)
{
    static const int usual[] = {CLIENT_RAW, CLIENT_RAW, CLIENT_RAW, CLIENT_RAW, CLIENT_WHOLE,
        CLIENT_EVENTS, CLIENT_EVENTS, CLIENT_SESSION, CLIENT_SESSION, CLIENT_ASKS, CLIENT_BAD,
        CLIENT_HALF, CLIENT_SILENT};
    *p = (struct client_plan){.kind = (enum client_kind)usual[draw_below(sizeof usual / sizeof *usual)],
        .n_requests = draw_chance(0.7) ? 1 : 1 + draw_below(5),
        .least_bytes = 12,
        .most_bytes = draw_chance(0.85)  ? 50
                      : draw_chance(0.9) ? 250
                      : draw_chance(0.9) ? 1000
                                         : 6000,
        .leaves_s = draw_chance(0.3) ? draw_wait(draw_chance(0.5) ? 0.1 : 5) : -1,
        .send_s = draw_chance(0.2) ? draw_between(0, 3) : 0,
        .background = draw_chance(0.15),
        .key = -1,
        .address = 0x0A000000u + (uint32_t)draw_below(8)};
    if (lacking && draw_chance(0.4)) {
        p->kind = draw_chance(0.6) ? CLIENT_ELSE : CLIENT_TALK;
        p->leaves_s = p->kind == CLIENT_TALK ? draw_wait(10) : p->leaves_s;
    }
    p->handshake_s = draw_chance(0.3) ? draw_between(0, 0.7) : 0;
    int reading = draw_below(20);
    p->reading = reading == 0   ? READS_AS_HEARD
                 : reading == 1 ? READS_SLOWLY
                 : reading == 2 ? READS_NO_MORE
                                : READS_AT_ONCE;
    if (reading < 2 && draw_chance(0.25)) { /* more than what may wait unsent */
        p->least_bytes = 500;
        p->most_bytes = 1500;
        p->leaves_s = -1;
    }
    if (life.options.key_file) {
        p->key = draw_chance(0.9) ? draw_below(N_KEYS) : -1 - draw_below(2);
    }
}

static void come_at_once(int n)
{
    for (int i = 0; i < n; i++) {
        struct client_plan p;
        draw_client(&p);
        client_new(&p);
    }
}

static void arrive(void *user)
{
    (void)user;
    come_at_once(draw_chance(0.95) ? 1 : 1 + draw_below(20));
    alarm_set(&life.arrival, draw_wait(life.arrivals_s), arrive, NULL);
}

/* Somebody sends workers away, and brings them back. */
static void operate(struct link *l)
{
    int what = draw_below(3);
    if (what == 0) {
        link_leave(l, true);
    } else if (what == 1) {
        link_leave(l, false);
    } else {
        link_return(l);
    }
}

static void go_wrong(void *user)
{
    (void)user;
    if (life.server && draw_chance(0.3)) {
        operate(&life.server->links[draw_below(life.server->n_links)]);
    }
    switch (draw_below(5)) {
    case 0:
    case 1:
        kernel_kill_worker(kernel_draw_worker());
        break;
    case 2: /* while it opens the model only where such a worker is given up */
        if (life.server &&
            (links_ready(life.server) == life.server->n_links || life.options.opening_s > 0)) {
            kernel_freeze_worker(kernel_draw_worker());
        }
        break;
    case 3:
        raise(SIGHUP);
        break;
    default:
        kernel_move_wall(draw_between(-1e6, 1e6));
    }
    alarm_set(&life.fault, draw_wait(life.faults_s), go_wrong, NULL);
}

/* ---- A life ---- */

void life_calls_fail(bool fail)
{
    failing = fail;
}

void life_memory_lacks(bool lacks)
{
    lacking = lacks;
}

static void begin_lacking(void *user)
{
    (void)user;
    if (!life.quiet) {
        kernel_lack_memory(pow(10, draw_between(-3.5, -1.5)));
    }
}

/* In memory, so that nothing is left of it. */
static void write_keys(void)
{
    static const char keys[] =
        "key0\nkey1 speeches=1\nkey2 speeches=3 per-minute=600\nkey3 per-minute=30\n";
    static int file = -1;
    if (file < 0) {
        file = memfd_create("keys", MFD_CLOEXEC);
        if (file < 0 || pwrite(file, keys, sizeof keys - 1, 0) != (ssize_t)sizeof keys - 1) {
            world_fail("no room for keys");
        }
    }
    life.options.key_file = life.key_file;
    snprintf(life.key_file, sizeof life.key_file, "/proc/self/fd/%d", file);
}

static void draw_model(void)
{
    static const int rates[] = {8000, 8000, 8000, 8000, 8000, 8000, 8000, 8000, 16000, 24000};
    int rate = rates[draw_below(10)];
    bool bad = draw_chance(0.3);
    model_plan = (struct model_plan){.shape = &model_shapes[draw_below(MODEL_SHAPES)],
        .lanes = draw_chance(0.05) ? 0 : 24, /* a wide model is slow to simulate */
        .sample_rate = rate,
        .frame_samples = rate * 8 / 100,
        .unsteady = draw_between(0, 0.5),
        .fails = bad ? 0.05 : 0,
        .empty = bad ? 0.02 : 0,
        .does_not_open = draw_chance(0.2) ? 0.3 : 0,
        .does_not_start = draw_chance(0.2) ? 0.3 : 0,
        .breaks = draw_chance(0.1) ? 1e-3 : 0};
}

static void draw_life(struct serve_options *options)
{
    draw_model();
    static const double long_s[] = {20, 20, 60, 60, 200, 600, 5400};
    double most_s = long_s[draw_below(failing || lacking ? 2 : 7)],
           n_clients = 1 + draw_wait(draw_chance(0.9) ? 5 : 40);
    options->paced = draw_chance(0.8);
    options->n_devices = draw_chance(0.5) ? 1 : 1 + draw_below(KERNEL_DEVICES);
    options->lanes = options->paced ? 0 : 1 + draw_below(8);
    options->queue = draw_chance(0.1) ? 0 : 1 + draw_below(64);
    options->patience_ms = draw_chance(0.7) ? 300 : 20 + draw_below(3000);
    options->background = draw_chance(0.5) ? "idle" : "shared";
    options->idle_minutes = draw_chance(0.3) ? draw_between(0.1, 2) : 0;
    options->opening_s = draw_chance(0.5) ? 30 + draw_below(30) : 0; /* longer than it takes */
    options->drain_s = 1 + draw_below(30);
    if (draw_chance(0.3)) {
        write_keys();
    }
    double duration = draw_between(1, most_s);
    life.arrivals_s = duration / n_clients;
    life.faults_s = draw_chance(0.5) ? duration / draw_between(0.5, 6) : 0;
    life.storms = draw_chance(0.5);
    if (failing) {
        kernel_set_costs(2e-5, 1e-6); /* who asks again and again does not stop the clock */
        kernel_fail_calls(pow(10, draw_between(-2.5, -0.5)));
    }
    if (lacking) { /* from the start, or when it has begun to serve */
        kernel_set_costs(2e-5, 1e-6);
        draw_chance(0.2) ? begin_lacking(NULL)
                         : alarm_set(&life.lack, draw_between(0, duration / 2), begin_lacking, NULL);
    }
    life.ends_at = world_now() + duration;
    alarm_set(&life.end, duration, end_arrivals, NULL);
    alarm_set(&life.arrival, draw_wait(life.arrivals_s), arrive, NULL);
    if (life.faults_s > 0) {
        alarm_set(&life.fault, draw_wait(life.faults_s), go_wrong, NULL);
    }
}

/* The allocator keeps some of what was freed, so only what grows from one 500 lives to the next is told. */
static void look_for_leaks(void)
{
    enum { EVERY = 500, GROWS = 96 << 10 };
    static size_t before;
    static int n_lives;
    if (++n_lives % EVERY == 0) {
        size_t now = heap_used();
        if (n_lives > EVERY && now > before + GROWS) {
            world_fail("%zu bytes in use, %zu of them since %d lives", now, now - before, EVERY);
        }
        before = now;
    }
}

/* Until the server has ended, and all that it has left behind. */
static void serve(void)
{
    serve_run(&life.options);
    clients_know_of_end(true);
    clients_end();
    alarm_clear(&life.arrival);
    alarm_clear(&life.fault);
    alarm_clear(&life.end);
    alarm_clear(&life.second);
    alarm_clear(&life.lack);
    while (task_count() > 0) { /* what was killed goes to its end */
        task_wait_until(world_now_ns() + 1000);
    }
}

/* As every life begins. */
static void begin_options(struct serve_options *options)
{
    static const char *const devices[KERNEL_DEVICES] = {"auto", "cuda:1", "cuda:2", "cuda:3"};
    *options = (struct serve_options){.model = "simulated",
        .host = "127.0.0.1",
        .devices = devices,
        .n_devices = 1,
        .port = 8080,
        .threads = 2,
        .queue = 64,
        .patience_ms = 300,
        .paced = true,
        .format = "pcm",
        .drain_s = 30,
        .no_cage = true, /* all of it is one process */
        .quiet = true};
}

double life_live(uint64_t seed, void (*prepare)(struct serve_options *options))
{
    memset(&life, 0, sizeof life);
    world_begin(seed);
    kernel_begin();
    json_text_write(NULL, 0); /* forgets what the life before had no memory for */
    kernel_worker_is(worker_main);
    kernel_on_idle(look);
    double began = world_now();
    begin_options(&life.options);
    prepare(&life.options);
    kernel_most_workers(life.options.n_devices + 1);
    clients_begin(1e-3 * life.options.patience_ms, life.options.key_file != NULL,
        model_slowness(life.options.lanes));
    serve();
    kernel_end();
    return world_now() - began;
}

double life_run(uint64_t seed)
{
    double lived_s = life_live(seed, draw_life);
    clients_begin(0, false, 0);
    look_for_leaks();
    return lived_s;
}

void life_stop(bool at_once)
{
    life.stopped_at = world_now();
    clients_know_of_end(at_once);
    raise(SIGTERM);
    if (at_once) {
        alarm_set(&life.second, 0.01, stop_now, NULL);
    } else {
        alarm_set(&life.end, life.options.drain_s + 1, not_ended, NULL);
    }
}
