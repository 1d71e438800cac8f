/* SPDX-License-Identifier: Apache-2.0
 * Which speeches get a lane when the worker keeps up with one, and what becomes of those that lose theirs. The worker
 * is this program once more: it says that it is ready, and gives two seconds of sound for each letter of "sound". */
#include "base/clock.h"
#include "tests/support.h"

#include <event2/event.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "server/loop/conn/conn.h"
#include "server/loop/conn/conn_whole.h"
#include "server/loop/jobs.h"
#include "server/loop/links.h"
#include "server/speech/admission.h"
#include "server/speech/speech.h"
#include "tests/server/posed_worker.h"

enum { RATE = 24000, FRAME = 1920, SOUND_S = 2, LANES = 4 };

/* ---- The worker ---- */

static void answer(struct wire_out *out, const struct wire_message *m)
{
    static float pcm[SOUND_S * RATE];
    struct wire_hello hello;
    if (m->kind == WIRE_HELLO && wire_get_hello(&hello, m)) {
        struct wire_beat beat = {.capacity = 1};
        struct wire_ready ready = {.version = WIRE_VERSION,
            .kind_name = "voice_design",
            .size_name = hello.device, /* to be seen from outside, as is width */
            .device = "cuda",
            .kernels = "frame",
            .weights = "",
            .sample_rate = RATE,
            .frame_samples = FRAME,
            .lanes = LANES,
            .width = hello.lanes};
        wire_put_beat(out, &beat);
        wire_put_ready(out, &ready);
    } else if (m->kind == WIRE_TEXT && m->bytes <= 5 && memcmp(m->body, "sound", m->bytes) == 0) {
        for (uint32_t i = 0; i < m->bytes; i++) {
            wire_message(out, WIRE_PCM, m->id, pcm, sizeof pcm);
        }
        const utter_word word = {.bytes = 4};
        wire_put_words(out, m->id, 0, &word, 1, false); /* nobody has asked for them */
    } else if (m->kind == WIRE_FINISH) {                /* as if a frame had been lost */
        wire_put_kernels(out, "graph");
    } else if (m->kind == WIRE_PAUSE) { /* to be seen from outside */
        struct wire_beat beat = {.capacity = LANES};
        wire_put_beat(out, &beat);
    }
}

/* ---- The front end ---- */

struct listener {
    struct server *server;
    size_t n_bytes;
    int n_ends, n_good;
    bool breaks_link;      /* with the first bytes, as if there were no memory for what is said next */
    struct listener *next; /* asks when this one has ended */
    struct speech *speech; /* of `next` */
};

static struct speech *start(struct server *s, enum encode_format format, struct listener *l);

static void on_bytes(void *user, const void *bytes, size_t n)
{
    struct listener *l = user;
    (void)bytes;
    l->n_bytes += n;
    if (l->breaks_link && link_out(l->server->links)) {
        link_out(l->server->links)->failed = true;
    }
}

static void on_end(void *user, const struct speech_end *end)
{
    struct listener *l = user;
    l->n_ends++;
    l->n_good += end->good;
    if (l->next) {
        l->server->links->beat.capacity = LANES;
        l->speech = start(l->server, ENCODE_PCM, l->next);
    }
}

static void on_words(void *user, const struct speech_words *words)
{
    (void)user, (void)words;
    fail_msg("words that nobody has asked for");
}

static const struct speech_sink sink = {on_bytes, on_end, on_words};

static void dispatch(struct link *l)
{
    speech_dispatch(l->server);
}

static const struct link_owner owner = {dispatch, dispatch, speech_message, speech_worker_lost, NULL};

/* Lets the loop run for so long, and lanes that have come free be given away. */
static void run_for(struct server *s, double seconds)
{
    double end = clock_seconds() + seconds;
    int status;
    while (clock_seconds() < end) {
        event_base_loop(s->base, EVLOOP_NONBLOCK);
        for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
            links_reap(s, pid, status);
        }
        links_tick(s, clock_seconds());
        usleep(1000);
    }
    speech_dispatch(s);
    event_base_loop(s->base, EVLOOP_NONBLOCK);
}

/* NULL: it is refused. */
static struct speech *ask_as(struct server *s, const char *id, enum encode_format format, bool patient,
    struct listener *l, struct refusal *refusal)
{
    struct fields fields = {.sound = {format, 1, 1, 0}, .max_frames = 100};
    struct speech_request request = {
        &fields, METRICS_SPEECH, clock_seconds(), NULL, id, "", patient, NULL};
    l->server = s;
    struct speech *p = speech_start(s, &request, &sink, l, refusal);
    if (p) {
        speech_text(p, "wait", 4);
    }
    return p;
}

static struct speech *ask(struct server *s, bool patient, struct listener *l, struct refusal *refusal)
{
    return ask_as(s, "", ENCODE_PCM, patient, l, refusal);
}

static struct speech *start(struct server *s, enum encode_format format, struct listener *l)
{
    struct refusal refusal;
    struct speech *p = ask_as(s, "", format, false, l, &refusal);
    assert_non_null(p);
    return p;
}

static void wait_until_ready(struct server *s)
{
    for (int i = 0; i < 6000 && links_ready(s) == 0; i++) {
        run_for(s, 0.01);
    }
    assert_int_equal(links_ready(s), 1);
    assert_int_equal(links_capacity(s), 1);
}

/* Of so many letters of "sound". Lanes that they make room for are given away too. */
static void wait_for_sound(struct server *s, const struct listener *l, size_t n_letters)
{
    for (int i = 0; i < 6000 && l->n_bytes < n_letters * SOUND_S * RATE * 2; i++) {
        run_for(s, 0.01);
    }
    run_for(s, 0.01);
}

enum { PATIENCE_S = 60 };

/* A server whose worker is ready. */
static void begin(struct server *s)
{
    static const char *const devices[] = {"auto"};
    static const struct serve_options options = {.model = "",
        .devices = devices,
        .n_devices = 1,
        .lanes = 0,
        .queue = 8,
        .patience_ms = PATIENCE_S * 1000,
        .paced = true,
        .quiet = true};
    *s = (struct server){.options = &options, .base = event_base_new(), .was_ready = true};
    assert_int_equal(event_base_priority_init(s->base, SERVER_PRIORITIES), 0);
    conn_places(s);
    TAILQ_INIT(&s->queued);
    TAILQ_INIT(&s->background.queued);
    admission_begin(s);
    s->jobs = jobs_new(s->base, 1);
    assert_non_null(s->jobs);
    assert_true(links_open(s, &owner));
    wait_until_ready(s);
}

/* Who listens waits for 300 ms, as usual. */
static void begin_impatient(struct server *s)
{
    static struct serve_options options;
    begin(s);
    options = *s->options;
    options.patience_ms = 300;
    s->options = &options;
}

/* All speeches have been cancelled or have ended. */
static void end(struct server *s)
{
    links_close(s);
    jobs_free(s->jobs);
    memory_free(s->ready_bytes);
    event_base_free(s->base);
}

static void who_waited_long_counts_like_others(void **state)
{
    struct server s;
    struct speech *speeches[3];
    struct listener listeners[3] = {{0}};
    (void)state;
    begin(&s);
    for (int i = 0; i < 3; i++) {
        speeches[i] = start(&s, ENCODE_PCM, &listeners[i]);
    }
    speech_finish(speeches[0]);
    assert_int_equal(s.n_running, 1);
    assert_int_equal(s.n_queued, 2);
    /* The texts of those that wait get old, as those of a session between two tokens. */
    run_for(&s, 1.2);
    assert_int_equal(s.n_running, 1);
    /* The first has so much sound in hand that it needs little more: a place for one, not for two. */
    speech_text(speeches[0], "soun", 4);
    wait_for_sound(&s, &listeners[0], 4);
    assert_int_equal(listeners[0].n_bytes, 4 * SOUND_S * RATE * 2);
    assert_int_equal(s.n_running, 2);
    assert_int_equal(s.n_queued, 1);
    for (int i = 0; i < 3; i++) {
        speech_cancel(speeches[i]);
    }
    end(&s);
}

/* The worker keeps up with one: whoever else would hear it too late is told at once when to come again; who does not
 * listen as it is made waits behind those who do. */
static void no_more_than_can_be_heard(void **state)
{
    struct server s;
    struct listener listeners[5] = {{0}};
    struct refusal refusal;
    (void)state;
    begin_impatient(&s);
    assert_false(speech_is_full(&s));
    struct speech *first = ask(&s, false, &listeners[0], &refusal);
    assert_true(first && s.n_running == 1 && speech_is_full(&s));
    assert_null(ask(&s, false, &listeners[1], &refusal));
    assert_true(refusal.status == 503 && refusal.retry_ms > 3000 && !refusal.never_retry);
    assert_non_null(strstr(refusal.message, "try again in 4 s)")); /* as long as a speech is */
    struct speech *patient = ask(&s, true, &listeners[2], &refusal);
    assert_true(patient && s.n_running == 1 && s.n_queued == 1);
    s.admission.speech_s = 0.1; /* ten end a second: a burst may wait for that, if it is short */
    s.admission.crowded_since = 0;
    struct speech *burst = ask(&s, false, &listeners[3], &refusal);
    assert_true(burst && s.n_queued == 2);
    s.admission.crowded_since = clock_seconds() - 0.4;
    assert_null(ask(&s, false, &listeners[4], &refusal));
    speech_cancel(first);
    for (int i = 0; i < 6000 && s.n_queued == 2; i++) {
        run_for(&s, 0.01);
    }
    assert_true(s.n_queued == 1 && TAILQ_FIRST(&s.queued) == patient);
    speech_tick(&s, clock_seconds());
    assert_true(s.admission.crowded_since > 0); /* someone waits still */
    speech_cancel(patient);
    speech_cancel(burst);
    double now = clock_seconds();
    speech_tick(&s, now);
    speech_tick(&s, now + 0.9);
    assert_true(s.admission.crowded_since > 0);
    speech_tick(&s, now + 1.1);
    assert_true(s.admission.crowded_since <= 0 && s.admission.crowded_since >= 0);
    end(&s);
}

/* A batch of two long texts on a slow machine: the second one is not told that it has waited too long for the first. */
static void an_item_waits_for_its_own(void **state)
{
    struct server s;
    struct listener listeners[3] = {{0}};
    struct refusal refusal;
    (void)state;
    begin_impatient(&s);
    struct speech *first = ask_as(&s, "req-1", ENCODE_PCM, true, &listeners[0], &refusal);
    struct speech *second = ask_as(&s, "req-1", ENCODE_PCM, true, &listeners[1], &refusal);
    assert_true(first && second && ask_as(&s, "req-2", ENCODE_PCM, true, &listeners[2], &refusal));
    assert_true(s.n_running == 1 && s.n_queued == 2);
    speech_tick(&s, clock_seconds() + 31);
    assert_true(s.n_queued == 1 && listeners[1].n_ends == 0 && listeners[2].n_ends == 1);
    speech_cancel(first);
    speech_cancel(second);
    end(&s);
}

/* Who is told that the queue was too long asks again, and that makes those behind go to lanes. */
static void the_end_of_one_moves_others(void **state)
{
    struct server s;
    struct speech *speeches[3];
    struct listener listeners[4] = {{0}};
    (void)state;
    begin(&s);
    for (int i = 0; i < 3; i++) {
        speeches[i] = start(&s, ENCODE_PCM, &listeners[i]);
    }
    assert_int_equal(s.n_queued, 2);
    listeners[1].next = &listeners[3];
    speech_tick(&s, clock_seconds() + PATIENCE_S + 1.5);
    assert_int_equal(listeners[1].n_ends, 1);
    assert_int_equal(listeners[0].n_ends + listeners[2].n_ends + listeners[3].n_ends, 0);
    assert_int_equal(s.n_queued, 0);
    assert_int_equal(s.n_running, 3);
    speech_cancel(speeches[0]);
    speech_cancel(speeches[2]);
    speech_cancel(listeners[1].speech);
    end(&s);
}

/* Who takes some of its sound now and then keeps no lane for hours. */
static void who_listens_too_slowly_is_ended(void **state)
{
    struct server s;
    struct listener listeners[2] = {{0}};
    (void)state;
    begin(&s);
    s.links->beat.capacity = LANES;
    struct speech *held = start(&s, ENCODE_PCM, &listeners[0]),
                  *other = start(&s, ENCODE_PCM, &listeners[1]);
    double began = clock_seconds();
    speech_text(held, "so", 2); /* four seconds of sound */
    speech_text(other, "s", 1);
    wait_for_sound(&s, &listeners[0], 2);
    wait_for_sound(&s, &listeners[1], 1);
    speech_hold(held, true);
    speech_tick(&s, began + SLOW_S + 4 * SOUND_S - 0.1);
    assert_int_equal(listeners[0].n_ends, 0);
    double ended = clock_seconds();
    speech_tick(&s, ended + SLOW_S + 4 * SOUND_S + 0.1);
    assert_true(listeners[0].n_ends == 1 && listeners[0].n_good == 0 && listeners[1].n_ends == 0);
    assert_int_equal(s.metrics.dropped_stalled, 1);
    speech_cancel(other);
    end(&s);
}

/* As if there were no memory for what is said to the worker next. */
static void break_link(struct server *s)
{
    assert_non_null(link_out(s->links));
    link_out(s->links)->failed = true;
}

static void wait_until_lost(struct server *s)
{
    for (int i = 0; i < 60000 && s->metrics.worker_deaths == 0; i++) {
        event_base_loop(s->base, EVLOOP_NONBLOCK);
        usleep(1000);
    }
    assert_int_equal(s->metrics.worker_deaths, 1);
}

/* Whoever says something to it may still look at what it holds. */
static void a_worker_is_lost_behind_whoever_notices(void **state)
{
    struct server s;
    struct speech *speeches[2];
    struct listener listeners[2] = {{0}};
    (void)state;
    begin(&s);
    for (int i = 0; i < 2; i++) {
        speeches[i] = start(&s, ENCODE_PCM, &listeners[i]);
    }
    speech_text(speeches[0], "soun", 4);
    wait_for_sound(&s, &listeners[0], 4);
    assert_int_equal(s.n_running, 2);
    break_link(&s);
    speech_text(speeches[0], "more", 4);
    assert_true(listeners[0].n_ends == 0 && s.n_running == 2 && !link_out(s.links));
    speech_cancel(speeches[1]);
    wait_until_lost(&s);
    assert_true(listeners[0].n_ends == 1 && listeners[0].n_good == 0 && s.n_running == 0);
    wait_until_ready(&s);
    struct listener third = {0};
    struct speech *p = start(&s, ENCODE_PCM, &third);
    assert_int_equal(s.n_running, 1);
    speech_cancel(p);
    assert_int_equal(listeners[1].n_ends + third.n_ends, 0);
    end(&s);
}

static void who_begins_again_waits_anew(void **state)
{
    struct server s;
    struct listener l = {0};
    (void)state;
    begin(&s);
    double asked = clock_seconds();
    struct speech *p = start(&s, ENCODE_PCM, &l);
    assert_int_equal(s.n_running, 1);
    run_for(&s, 0.1);
    break_link(&s);
    speech_finish(p);
    wait_until_lost(&s);
    assert_int_equal(s.n_queued, 1);
    speech_tick(&s, asked + PATIENCE_S + 1.01);
    assert_int_equal(l.n_ends, 0);
    wait_until_ready(&s);
    assert_int_equal(s.n_running, 1);
    speech_cancel(p);
    end(&s);
}

static void reap(struct server *s)
{
    int status;
    pid_t pid = waitpid(-1, &status, 0);
    assert_true(pid > 0);
    links_reap(s, pid, status);
}

/* Openings that fail count in a row only: each of these is followed by one that succeeds. */
static void a_rare_failure_leaves_the_choice_as_it_was(void **state)
{
    struct server s;
    (void)state;
    begin(&s);
    struct serve_options options = *s.options;
    s.options = &options;
    for (int i = 0; i < 6; i++) {
        options.idle_minutes = 1e-9;
        s.worked_at = 0;
        links_tick(&s, clock_seconds());
        assert_true(s.is_resting);
        reap(&s);
        options.idle_minutes = 0;
        options.opening_s = 1;
        links_want(&s);
        links_tick(&s, clock_seconds() + 2);
        reap(&s);
        options.opening_s = 0; /* the next one has as long as it takes */
        assert_false(links_up(&s));
        wait_until_ready(&s);
        assert_int_equal(s.ready.width, LANES);
    }
    end(&s);
}

/* What is free as a worker takes the place of another does not decide where it computes, and with how many lanes. */
static void the_next_worker_is_like_the_first(void **state)
{
    struct server s;
    (void)state;
    begin(&s);
    assert_true(s.ready.width == 0 && strcmp(s.ready.size_name, "auto") == 0);
    struct listener l = {0};
    struct speech *p = start(&s, ENCODE_PCM, &l);
    run_for(&s, 0.1);
    break_link(&s);
    speech_finish(p);
    wait_until_lost(&s);
    wait_until_ready(&s);
    assert_true(s.ready.width == LANES && strcmp(s.ready.size_name, "cuda") == 0);
    speech_cancel(p);
    end(&s);
}

/* A device that goes on in another way is told so, and its speeches go on. */
static void other_kernels_are_known(void **state)
{
    struct server s;
    struct listener l = {0};
    (void)state;
    begin(&s);
    assert_string_equal(s.links->kernels, "frame");
    struct speech *p = start(&s, ENCODE_PCM, &l);
    speech_text(p, "s", 1);
    wait_for_sound(&s, &l, 1);
    speech_finish(p);
    for (int i = 0; i < 6000 && strcmp(s.links->kernels, "graph") != 0; i++) {
        run_for(&s, 0.01);
    }
    assert_string_equal(s.links->kernels, "graph");
    assert_true(links_up(&s) && s.metrics.worker_deaths == 0 && l.n_ends == 0);
    speech_cancel(p);
    end(&s);
}

static atomic_bool thread_is_free;
static int n_kept;

static void keep_thread(struct job *job)
{
    (void)job;
    while (!thread_is_free) {
        usleep(1000);
    }
}

static void thread_was_kept(struct job *job)
{
    (void)job;
    n_kept++;
}

/* More comes than the encoder takes: the worker is told to pause, then to go on, and that finds no memory. */
static void a_worker_may_be_lost_as_one_is_encoded(void **state)
{
    struct server s;
    struct listener l = {.breaks_link = true};
    struct job other = {keep_thread, thread_was_kept};
    (void)state;
    begin(&s);
    assert_true(jobs_submit(s.jobs, &other));
    struct speech *p = start(&s, ENCODE_MP3, &l);
    speech_text(p, "sound", 5);
    for (int i = 0; i < 6000 && links_capacity(&s) == 1; i++) {
        run_for(&s, 0.01);
    }
    assert_int_equal(links_capacity(&s), LANES); /* paused */
    thread_is_free = true;
    for (int i = 0; i < 6000 && l.n_ends == 0; i++) {
        run_for(&s, 0.01);
    }
    assert_true(l.n_ends == 1 && l.n_good == 0 && l.n_bytes > 0);
    assert_true(jobs_submit(s.jobs, &other)); /* behind what the encoder still has of it */
    for (int i = 0; i < 6000 && n_kept < 2; i++) {
        run_for(&s, 0.01);
    }
    assert_int_equal(n_kept, 2);
    end(&s);
}

/* The loop only gives it away: to free it takes the system long. */
static void a_long_file_is_freed_by_a_thread(void **state)
{
    enum { PIECES = 40 };
    static char piece[1 << 20];
    struct server s;
    struct refusal r;
    struct conn_whole whole;
    struct job other = {keep_thread, thread_was_kept};
    (void)state;
    begin(&s);
    s.most_files = 1;
    thread_is_free = false;
    assert_true(jobs_submit(s.jobs, &other));
    assert_true(conn_whole_begin(&whole, &s, 0, &r));
    for (int i = 0; i < PIECES; i++) {
        assert_true(conn_whole_put(&whole, piece, sizeof piece, &r));
    }
    assert_int_equal(s.filed_bytes + s.unsent_bytes, PIECES * sizeof piece);
    conn_whole_fini(&whole);
    assert_true(s.n_files == 1 && s.filed_bytes == 0 && s.unsent_bytes == 0);
    thread_is_free = true;
    for (int i = 0; i < 6000 && s.n_files > 0; i++) {
        run_for(&s, 0.01);
    }
    assert_int_equal(s.n_files, 0);
    thread_is_free = false;
    assert_true(jobs_submit(s.jobs, &other)); /* its end comes with that of the threads */
    assert_true(conn_whole_begin(&whole, &s, 0, &r));
    for (int i = 0; i < PIECES; i++) {
        assert_true(conn_whole_put(&whole, piece, sizeof piece, &r));
    }
    conn_whole_fini(&whole);
    thread_is_free = true;
    end(&s);
    assert_int_equal(s.n_files, 0);
}

int main(int n, char **arguments)
{
    if (n == 3 && strcmp(arguments[1], "serve-worker") == 0) {
        return posed_worker(atoi(arguments[2]), answer);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_waited_long_counts_like_others),
        cmocka_unit_test(no_more_than_can_be_heard),
        cmocka_unit_test(an_item_waits_for_its_own),
        cmocka_unit_test(the_end_of_one_moves_others),
        cmocka_unit_test(who_listens_too_slowly_is_ended),
        cmocka_unit_test(a_worker_is_lost_behind_whoever_notices),
        cmocka_unit_test(who_begins_again_waits_anew),
        cmocka_unit_test(the_next_worker_is_like_the_first),
        cmocka_unit_test(a_rare_failure_leaves_the_choice_as_it_was),
        cmocka_unit_test(other_kernels_are_known),
        cmocka_unit_test(a_worker_may_be_lost_as_one_is_encoded),
        cmocka_unit_test(a_long_file_is_freed_by_a_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
