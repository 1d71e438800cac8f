/* SPDX-License-Identifier: Apache-2.0
 * Speeches that nobody waits for: where they are made, and that a listener has their lane at once. The worker is this
 * program once more; it is on a GPU, or on a processor, as the model is called. */
#include "base/clock.h"
#include "tests/support.h"

#include <event2/event.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "server/loop/conn/conn.h"
#include "server/loop/jobs.h"
#include "server/loop/links.h"
#include "server/speech/admission.h"
#include "server/speech/speech_parts.h"
#include "tests/server/posed_worker.h"

enum { RATE = 24000, LANES = 3 };

/* ---- The worker ---- */

/* "end" is all that it makes: everything else stays on its lane until it is cancelled. */
static void answer(struct wire_out *out, const struct wire_message *m)
{
    struct wire_hello hello;
    static const float pcm[RATE / 10];
    if (m->kind == WIRE_HELLO && wire_get_hello(&hello, m)) {
        const struct wire_beat beat = {.capacity = LANES};
        const struct wire_ready ready = {.version = WIRE_VERSION,
            .kind_name = "voice_design",
            .size_name = "",
            .device = hello.model, /* as the test likes it */
            .kernels = hello.idle && hello.snapshot_bytes == 0 ? "idle" : "busy",
            .weights = "",
            .sample_rate = RATE,
            .frame_samples = RATE / 10,
            .lanes = LANES};
        wire_put_beat(out, &beat);
        wire_put_ready(out, &ready);
    } else if (m->kind == WIRE_TEXT && m->bytes == 3) {
        const struct wire_done done = {.finish = UTTER_FINISH_EOS, .n_frames = 1, .n_pieces = 1};
        wire_message(out, WIRE_PCM, m->id, pcm, sizeof pcm);
        wire_put_done(out, m->id, &done);
    } else if (m->kind == WIRE_CANCEL) {
        wire_message(out, WIRE_FREED, m->id, NULL, 0);
    }
}

/* ---- The front end ---- */

struct asker {
    size_t n_bytes;
    int n_ends, n_good;
    char code[24];
    struct speech *speech;
};

static void on_bytes(void *user, const void *bytes, size_t n)
{
    (void)bytes;
    ((struct asker *)user)->n_bytes += n;
}

static void on_end(void *user, const struct speech_end *end)
{
    struct asker *a = user;
    a->n_ends++;
    a->n_good += end->good;
    a->speech = NULL;
    snprintf(a->code, sizeof a->code, "%s", end->refusal.code ? end->refusal.code : "");
}

static const struct speech_sink sink = {on_bytes, on_end, NULL};

static void dispatch(struct link *l)
{
    speech_dispatch(l->server);
}

static const struct link_owner link_owner = {
    dispatch, dispatch, speech_message, speech_worker_lost, NULL};

static void run_for(struct server *s, double seconds)
{
    int status;
    for (double end = clock_seconds() + seconds; clock_seconds() < end; usleep(500)) {
        event_base_loop(s->base, EVLOOP_NONBLOCK);
        for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
            links_reap(s, pid, status);
        }
        links_tick(s, clock_seconds());
    }
}

static void wait_for_ends(struct server *s, const struct asker *a, int n)
{
    for (int i = 0; i < 6000 && a->n_ends < n; i++) {
        run_for(s, 0.01);
    }
    assert_int_equal(a->n_ends, n);
}

static void begin(struct server *s, const char *device)
{
    static const char *const devices[] = {"auto"};
    static struct serve_options options;
    options = (struct serve_options){.model = device,
        .devices = devices,
        .n_devices = 1,
        .queue = 2,
        .patience_ms = 60000,
        .paced = true,
        .snapshot_bytes = 1 << 20, /* for listeners */
        .quiet = true};
    *s = (struct server){.options = &options, .base = event_base_new(), .was_ready = true};
    assert_int_equal(event_base_priority_init(s->base, SERVER_PRIORITIES), 0);
    conn_places(s);
    TAILQ_INIT(&s->queued);
    TAILQ_INIT(&s->background.queued);
    s->background.most_still_s = 1e6; /* a machine at other work may hold this process up for long */
    admission_begin(s);
    s->jobs = jobs_new(s->base, 1);
    assert_non_null(s->jobs);
    assert_true(links_open(s, &link_owner));
    for (int i = 0; i < 6000 && links_ready(s) == 0; i++) {
        run_for(s, 0.01);
    }
    assert_int_equal(links_ready(s), 1);
}

static void end(struct server *s, struct asker *askers, int n)
{
    for (int i = 0; i < n; i++) {
        speech_cancel(askers[i].speech);
    }
    links_close(s);
    jobs_free(s->jobs);
    memory_free(s->ready_bytes);
    event_base_free(s->base);
}

/* False: it is refused. */
static bool ask(struct server *s, bool background, const char *text, struct asker *a)
{
    const struct fields fields = {.sound = {ENCODE_PCM, 1, 1, 0}, .background = background};
    const struct speech_request request = {
        &fields, METRICS_SPEECH, clock_seconds(), NULL, "", "", false, NULL};
    struct refusal refusal;
    *a = (struct asker){.code = ""};
    a->speech = speech_start(s, &request, &sink, a, &refusal);
    if (a->speech) {
        speech_text(a->speech, text, strlen(text));
        speech_finish(a->speech);
    }
    return a->speech != NULL;
}

/* All lanes of a GPU are taken, and a listener has one at once; who came last gives it. */
static void a_listener_has_the_lane(void **state)
{
    struct server s;
    struct asker all[7];
    (void)state;
    begin(&s, "cuda");
    for (int i = 0; i < LANES + 1; i++) {
        assert_true(ask(&s, true, "wait", &all[i]));
    }
    assert_true(s.background.n_running == LANES && s.background.n_queued == 1);
    assert_true(s.n_running == 0 && s.n_queued == 0 && speech_room(&s) == LANES);
    assert_false(speech_is_full(&s));
    assert_true(ask(&s, false, "wait", &all[4])); /* in this very call */
    assert_true(s.n_running == 1 && s.background.n_running == LANES - 1);
    wait_for_ends(&s, &all[LANES - 1], 1);
    assert_true(all[LANES - 1].n_good == 0 && all[0].n_ends + all[1].n_ends + all[LANES].n_ends == 0);
    assert_string_equal(all[LANES - 1].code, "given_back");
    assert_int_equal(s.metrics.requests[METRICS_BACKGROUND][METRICS_GIVEN_BACK], 1);
    /* Its lane is nobody's any more: one that listeners need not, the next one gets. */
    speech_cancel(all[4].speech);
    all[4].speech = NULL;
    run_for(&s, 0.05);
    speech_dispatch(&s);
    assert_true(s.background.n_running == LANES && s.background.n_queued == 0 && s.n_running == 0);
    /* Listeners for all of them: nothing is left, and none of the listeners waits. */
    for (int i = 4; i < 7; i++) {
        assert_true(ask(&s, false, "wait", &all[i]));
    }
    assert_true(s.n_running == LANES && s.n_queued == 0 && s.background.n_running == 0);
    wait_for_ends(&s, &all[0], 1);
    assert_true(s.links->n_running == LANES && s.links->n_background == 0);
    assert_int_equal(s.metrics.cancelled[METRICS_FIRST], 1);
    end(&s, all, 7);
}

/* What is promised to listeners is not idle; who waits does so behind all of them, and not for ever. */
static void it_waits_for_idle_lanes(void **state)
{
    struct server s;
    struct asker all[5];
    (void)state;
    begin(&s, "cuda");
    s.links->beat.capacity = 1;
    assert_true(ask(&s, false, "wait", &all[0]));
    for (int i = 1; i < 4; i++) {
        assert_true(ask(&s, true, "wait", &all[i]));
    }
    assert_true(s.background.n_running == 0 && s.background.n_queued == 3);
    assert_false(ask(&s, true, "wait", &all[4])); /* as many wait as may */
    assert_int_equal(s.metrics.rejected[METRICS_BACKGROUND_FULL], 1);
    assert_int_equal(s.metrics.rejected[METRICS_QUEUE_FULL], 0);
    speech_tick(&s, clock_seconds() + 29);
    assert_int_equal(s.background.n_queued, 3);
    speech_tick(&s, clock_seconds() + 31);
    assert_true(all[1].n_ends == 1 && all[3].n_ends == 1 && all[0].n_ends == 0);
    assert_string_equal(all[1].code, "given_back");
    end(&s, all, 4);
}

/* Who comes may find that there is no memory to tell the worker of the lane that is given back. */
static void it_waits_for_another_worker(void **state)
{
    struct server s;
    struct asker all[2];
    (void)state;
    begin(&s, "cuda");
    s.links->beat.capacity = 1;
    assert_true(ask(&s, false, "wait", &all[0]) && ask(&s, false, "wait", &all[1]));
    assert_true(s.n_running == 1 && s.n_queued == 1);
    s.links->broken = true;
    speech_send(all[1].speech, s.links);
    assert_true(s.n_running == 1 && s.n_queued == 1);
    end(&s, all, 2);
}

/* A worker that leaves has nobody left whom only it can tell of the end, also of a lane that was given back. */
static void who_leaves_tells_first(void **state)
{
    struct server s;
    struct asker a;
    (void)state;
    begin(&s, "cuda");
    assert_true(ask(&s, true, "wait", &a) && s.background.n_running == 1);
    link_leave(s.links, false);
    speech_background_tick(&s, clock_seconds());
    assert_true(s.background.n_running == 0 && a.n_ends == 0);
    links_tick(&s, clock_seconds()); /* before the worker can have answered */
    wait_for_ends(&s, &a, 1);
    assert_string_equal(a.code, "given_back");
    end(&s, &a, 0);
}

/* It counts for nothing that says how listeners fare. */
static void listeners_are_not_counted_with_it(void **state)
{
    struct server s;
    struct asker a;
    (void)state;
    begin(&s, "cuda");
    const double speech_s = s.admission.speech_s;
    assert_true(ask(&s, true, "end", &a));
    wait_for_ends(&s, &a, 1);
    assert_true(a.n_good == 1 && a.n_bytes == RATE / 10 * 2);
    assert_true(s.metrics.ttfa.sum <= 0 && s.metrics.total.sum <= 0 && s.metrics.queue_wait.sum <= 0);
    assert_true(s.metrics.background_s > 0.09 && s.admission.speech_s >= speech_s);
    assert_int_equal(s.metrics.requests[METRICS_BACKGROUND][METRICS_OK], 1);
    end(&s, &a, 0);
}

/* On a processor a worker of its own is started for it, and ends when there is nothing for it. */
static void a_processor_has_a_worker_for_it(void **state)
{
    struct server s;
    struct asker all[2];
    (void)state;
    begin(&s, "cpu");
    assert_null(s.background.link);
    assert_true(ask(&s, true, "wait", &all[0]) && s.background.n_queued == 1);
    for (int i = 0; i < 6000 && s.background.n_running == 0; i++) {
        run_for(&s, 0.01);
    }
    assert_true(s.background.n_running == 1 && s.links->n_background == 0);
    assert_string_equal(s.background.link->kernels, "idle");
    assert_true(ask(&s, true, "end", &all[1]));
    wait_for_ends(&s, &all[1], 1);
    assert_int_equal(all[1].n_good, 1);
    speech_tick(&s, clock_seconds());
    assert_true(s.background.link->socket && links_ready(&s) == 1);
    s.draining = true; /* the first that goes */
    speech_tick(&s, clock_seconds());
    assert_true(!s.background.link->socket && s.background.n_running == 0);
    assert_true(all[0].n_ends == 1 && all[0].n_good == 0);
    assert_string_equal(all[0].code, "given_back");
    end(&s, all, 0);
}

/* Of a process, as the kernel tells it: 'T' is one that a signal has stopped. */
static char state_of(pid_t pid)
{
    char path[32], state = '?';
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (file) {
        assert_int_equal(fscanf(file, "%*d %*s %c", &state), 1);
        fclose(file);
    }
    return state;
}

/* The front end does nothing meanwhile. */
static void wait_for_state(const struct link *l, bool still)
{
    for (int i = 0; i < 60000 && (state_of(l->pid) == 'T') != still; i++) {
        usleep(1000);
    }
    assert_true(l->is_still == still && (state_of(l->pid) == 'T') == still);
}

/* The worker for it is there, with a speech on a lane. */
static struct link *begin_idle(struct server *s, struct asker *a)
{
    begin(s, "cpu");
    assert_true(ask(s, true, "wait", a));
    for (int i = 0; i < 6000 && s->background.n_running == 0; i++) {
        run_for(s, 0.01);
    }
    assert_int_equal(s->background.n_running, 1);
    return s->background.link;
}

/* From a listener's coming to its first sound, or to its going, nothing moves there; then all does. */
static void it_stands_still_for_a_first_sound(void **state)
{
    struct server s;
    struct asker all[4];
    (void)state;
    struct link *l = begin_idle(&s, &all[0]);
    wait_for_state(l, false);
    assert_true(ask(&s, false, "end", &all[1]) && l->is_still); /* in this very call */
    wait_for_state(l, true);
    wait_for_ends(&s, &all[1], 1);
    wait_for_state(l, false);
    assert_true(ask(&s, false, "wait", &all[2]) && l->is_still);
    assert_true(ask(&s, true, "end", &all[3]) && s.background.n_running == 2);
    run_for(&s, 0.1);
    wait_for_state(l, true);
    assert_int_equal(all[3].n_ends, 0);
    speech_cancel(all[2].speech);
    wait_for_ends(&s, &all[3], 1);
    wait_for_state(l, false);
    assert_true(all[3].n_good == 1 && l->n_deaths == 0);
    /* Who leaves us without text is not waited for, until there is more. */
    assert_true(ask(&s, false, "wait", &all[1]) && l->is_still);
    all[1].speech->text_ended = false;
    all[1].speech->moved_at -= 2;
    speech_tick(&s, clock_seconds());
    assert_false(l->is_still);
    speech_text(all[1].speech, "more", 4);
    assert_true(l->is_still);
    end(&s, all, 2);
}

/* However long a listener waits, it has half of the time; and the other half is no silence. */
static void it_stands_still_for_a_while_only(void **state)
{
    static const double silent_s = 100;
    struct server s;
    struct asker all[2];
    double still_s = 0, before, now;
    int n_times = 0;
    bool was_still = false;
    (void)state;
    struct link *l = begin_idle(&s, &all[0]);
    s.background.most_still_s = 0.2;
    const double from = before = clock_seconds();
    l->heard = from - silent_s;
    assert_true(ask(&s, false, "wait", &all[1]));
    for (; before - from < 60; before = now) {
        n_times += l->is_still && !was_still;
        was_still = l->is_still;
        if (n_times == 4) {
            break;
        }
        run_for(&s, 0.01);
        now = clock_seconds();
        still_s += was_still ? now - before : 0;
        speech_tick(&s, now);
    }
    assert_int_equal(n_times, 4);
    /* When it stands for the fourth time, it has run as long as it stood the first three times. */
    assert_true(still_s > 0.3 && still_s < 0.5 * (before - from) + 0.05);
    speech_cancel(all[1].speech);
    speech_tick(&s, clock_seconds());
    assert_false(l->is_still);
    const double silence_s = clock_seconds() - l->heard;
    assert_true(
        silence_s >= silent_s && silence_s - silent_s <= clock_seconds() - from - still_s + 0.05);
    assert_true(l->n_deaths == 0 && all[0].n_ends == 0);
    end(&s, all, 1);
}

/* It dies, or the server ends, as if it ran. */
static void it_dies_while_it_stands_still(void **state)
{
    struct server s;
    struct asker all[2];
    (void)state;
    struct link *l = begin_idle(&s, &all[0]);
    assert_true(ask(&s, false, "wait", &all[1]) && l->is_still);
    wait_for_state(l, true);
    kill(l->pid, SIGKILL);
    wait_for_ends(&s, &all[0], 1);
    assert_int_equal(l->n_deaths, 1);
    assert_string_equal(all[0].code, "worker_ended");
    assert_true(ask(&s, true, "wait", &all[0]));
    for (int i = 0; i < 6000 && s.background.n_running == 0; i++) {
        run_for(&s, 0.01);
    }
    wait_for_state(l, true); /* the next one, too */
    s.draining = true;
    speech_tick(&s, clock_seconds());
    assert_true(!l->socket && all[0].n_ends == 1);
    end(&s, &all[1], 1);
}

int main(int n, char **arguments)
{
    if (n == 3 && strcmp(arguments[1], "serve-worker") == 0) {
        return posed_worker(atoi(arguments[2]), answer);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_listener_has_the_lane),
        cmocka_unit_test(it_waits_for_idle_lanes),
        cmocka_unit_test(it_waits_for_another_worker),
        cmocka_unit_test(who_leaves_tells_first),
        cmocka_unit_test(listeners_are_not_counted_with_it),
        cmocka_unit_test(a_processor_has_a_worker_for_it),
        cmocka_unit_test(it_stands_still_for_a_first_sound),
        cmocka_unit_test(it_stands_still_for_a_while_only),
        cmocka_unit_test(it_dies_while_it_stands_still),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
