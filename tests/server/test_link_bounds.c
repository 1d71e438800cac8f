/* SPDX-License-Identifier: Apache-2.0
 * One worker as the front end sees it, at its bounds: when it is taken to hang, when its start took too long, when the
 * next one is started and with what it is asked, and when the server gives up. Most workers here are only posed: a
 * socket, and the times that the test sets. One that is started is this program, and it tells what it was asked for. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/server/posed_link.h"
#include "tests/server/posed_worker.h"

/* ---- The worker ---- */

/* Says, as names of kernels, what it was asked for. */
static void tell_hello(struct wire_out *out, const struct wire_message *m)
{
    struct wire_hello h;
    char text[200];
    if (m->kind == WIRE_HELLO && wire_get_hello(&h, m)) {
        snprintf(text, sizeof text,
            "%s %s %s threads %d lanes %d weights %d snapshot %llu caged %d idle %d", h.model, h.device,
            h.kernels ? h.kernels : "-", h.threads, h.lanes, h.weights,
            (unsigned long long)h.snapshot_bytes, h.caged, h.idle);
        wire_put_kernels(out, text);
    }
}

/* ---- When it is lost ---- */

static void who_is_ready_may_be_silent_for_so_long(void **state)
{
    struct link *l = links;
    (void)state;
    begin();
    l->is_ready = true;
    assert_false(is_lost(l, STARTED + 30));
    assert_true(is_lost(l, STARTED + 30.001));
    assert_true(!l->is_ready && n_lost == 1 && s.metrics.worker_deaths == 1);
    assert_string_equal(lost_as, "nothing");
    l->is_ready = l->is_idle = true; /* it may find no processor for long */
    assert_false(is_lost(l, STARTED + 600));
    assert_true(is_lost(l, STARTED + 600.001));
    l->is_idle = false;
    l->is_ready = l->is_still = true; /* who stands still says nothing meanwhile */
    l->still_since = STARTED + 30;
    assert_false(is_lost(l, STARTED + 5000));
    l->still_since = STARTED + 30.001;
    assert_true(is_lost(l, STARTED + 5000));
    end();
}

static void who_opens_a_model_has_so_much_time(void **state)
{
    struct link *l = links;
    (void)state;
    begin();
    options.opening_s = 5;
    assert_false(is_lost(l, STARTED + 5));
    l->is_waking = true;
    assert_true(is_lost(l, STARTED + 5.001));
    assert_string_equal(lost_as, "the model could not be opened: it took too long");
    assert_false(l->is_waking);
    l->is_idle = true; /* nobody waits for it */
    assert_false(is_lost(l, STARTED + 5000));
    l->is_idle = false;
    options.opening_s = 0; /* without end */
    assert_false(is_lost(l, STARTED + 5000));
    options.opening_s = 1;
    assert_true(is_lost(l, STARTED + 1.001));
    assert_string_equal(lost_as, "nothing"); /* nobody had waited for it */
    assert_int_equal(n_lost, 2);
    end();
}

static void nothing_of_one_that_is_lost_stays(void **state)
{
    struct link *l = links;
    const double before = clock_seconds();
    (void)state;
    begin();
    l->beat = (struct wire_beat){.capacity = 3, .step_s = 1};
    l->is_ready = l->is_leaving = l->is_waking = l->is_still = true;
    l->still_since = STARTED + 31;
    struct speech *nobody = NULL; /* so that it does not leave of itself */
    l->running.tqh_first = (struct speech *)&nobody;
    l->in.begin = 1, l->in.n = 2;
    l->out.failed = true;
    assert_true(is_lost(l, STARTED + 31));
    assert_false(l->is_ready || l->is_leaving || l->is_waking || l->is_still || l->out.failed);
    assert_true(l->beat.capacity == 0 && l->in.begin == 0 && l->in.n == 0);
    assert_true(l->lost_at >= before && l->lost_at <= clock_seconds());
    TAILQ_INIT(&l->running);
    end();
}

/* ---- The next one ---- */

static void each_failure_is_followed_by_a_longer_pause(void **state)
{
    static const double pauses[] = {0, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 60, 60};
    struct link *l = links;
    (void)state;
    begin();
    options.opening_s = 1;
    for (int i = 1; i < (int)(sizeof pauses / sizeof *pauses); i++) {
        const double before = clock_seconds();
        assert_true(is_lost(l, STARTED + 2));
        assert_int_equal(l->n_failed_starts, i);
        assert_true(
            l->restart_at >= before + pauses[i] && l->restart_at <= clock_seconds() + pauses[i]);
    }
    l->is_ready = true; /* the first one after that was good */
    assert_true(is_lost(l, STARTED + 31));
    assert_true(l->n_failed_starts == 0 && l->restart_at > 0 && l->restart_at <= clock_seconds());
    l->is_out = true;
    assert_true(is_lost(l, STARTED + 2));
    assert_true(l->restart_at <= 0);
    end();
}

/* What stands on standard error while `l` is lost. */
static const char *said(struct link *l)
{
    static char text[300];
    int ends[2], kept = dup(STDERR_FILENO);
    assert_true(kept >= 0 && pipe(ends) == 0);
    pose(l);
    dup2(ends[1], STDERR_FILENO);
    link_tick(l, STARTED + 2);
    dup2(kept, STDERR_FILENO);
    close(kept), close(ends[1]), close(far[l->number]);
    far[l->number] = -1;
    const ssize_t n = read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    assert_true(!l->socket && n >= 0);
    text[n] = 0;
    return text;
}

/* Three that died as they opened it are enough where it was never open; each device has its own count, and while
 * another may still open it the server stays. */
static void a_model_that_was_never_open_is_given_up(void **state)
{
    (void)state;
    begin();
    options.opening_s = 1;
    links[0].lanes = links[1].lanes = 0;
    for (int k = 0; k < LINKS; k++) {
        for (int i = 0; i < 2; i++) {
            assert_string_equal(said(&links[k]), "");
            assert_int_equal(links[k].start_fault, 0);
        }
        assert_string_equal(said(&links[k]),
            "utter: the model has never been open: 3 workers died as they opened it, or took too "
            "long (is there memory enough?)\n");
        assert_int_equal(links[k].start_fault, 2);
        assert_int_equal(s.exit_code, k == 0 ? 0 : 2);
        assert_int_equal(n_given_up, k == 0 ? 0 : 1);
    }
    assert_string_equal(said(&links[1]), ""); /* once is enough */
    assert_int_equal(n_given_up, 1);
    s.exit_code = 0;
    s.was_ready = true;
    links[0].n_failed_starts = links[0].start_fault = 0;
    for (int i = 0; i < 3; i++) {
        assert_string_equal(said(&links[0]), "");
    }
    assert_int_equal(links[0].start_fault, 2);
    links[0].lanes = 2; /* it was open once */
    links[0].start_fault = 0;
    assert_string_equal(said(&links[0]), "");
    assert_int_equal(links[0].start_fault, 0);
    end();
}

static void an_end_that_says_why_is_believed_at_once(void **state)
{
    static const struct {
        int status, lanes, fault; /* status: as waitpid gives it */
    } cases[] = {
        {1 << 8, 0, 1}, {2 << 8, 0, 2}, {77 << 8, 0, 2}, {0, 0, 0}, {SIGKILL, 0, 0}, {1 << 8, 2, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        begin();
        pose(links);
        links[0].lanes = cases[i].lanes;
        links[1].start_fault = 1;
        links[0].pid = idler();
        bury(links[0].pid);
        link_reap(links, cases[i].status);
        assert_true(links[0].pid == 0 && !links[0].socket && n_lost == 1);
        assert_int_equal(links[0].start_fault, cases[i].fault);
        assert_int_equal(s.exit_code, cases[i].fault);
        assert_int_equal(n_given_up, cases[i].fault != 0);
        end();
    }
}

/* ---- Starts ---- */

/* The loop runs until the worker has told what it was asked for. */
static const char *asked_for(struct link *l)
{
    l->kernels[0] = 0;
    l->restart_at = STARTED;
    l->n_unborn = 3; /* tries that have failed are over */
    link_tick(l, STARTED);
    assert_true(l->socket && l->n_unborn == 0);
    for (double until = clock_seconds() + 60; clock_seconds() < until && !l->kernels[0];) {
        event_base_loop(s.base, EVLOOP_NONBLOCK);
        usleep(200);
    }
    link_rest(l);
    assert_true(!l->socket && l->pid > 0 && l->is_asked);
    assert_int_equal(waitpid(l->pid, NULL, 0), l->pid);
    l->pid = 0;
    return l->kernels;
}

static void the_next_one_is_asked_for_what_the_last_one_had(void **state)
{
    struct link *l = links;
    (void)state;
    begin();
    options.lanes = 9, options.weights = 3, options.snapshot_bytes = 77, options.kernels = "k";
    l->device = "auto";
    l->lanes = 0;
    l->threads = 5;
    assert_string_equal(
        asked_for(l), "m auto k threads 5 lanes 9 weights 3 snapshot 77 caged 0 idle 0");
    options.threads = 6, options.no_cage = false, options.kernels = NULL;
    l->lanes = 4;
    strcpy(l->opened_on, "cuda:1");
    l->n_failed_starts = 4;
    assert_string_equal(
        asked_for(l), "m cuda:1 - threads 6 lanes 4 weights 3 snapshot 77 caged 1 idle 0");
    l->device = "cuda:3"; /* who names one has that one */
    assert_string_equal(
        asked_for(l), "m cuda:3 - threads 6 lanes 4 weights 3 snapshot 77 caged 1 idle 0");
    l->device = "auto";
    l->n_failed_starts = 5; /* that cannot be had again */
    assert_string_equal(
        asked_for(l), "m auto - threads 6 lanes 9 weights 3 snapshot 77 caged 1 idle 0");
    l->is_idle = true;
    assert_string_equal(asked_for(l), "m auto - threads 6 lanes 8 weights 3 snapshot 0 caged 1 idle 1");
    assert_true(l->n_starts == 5 && s.metrics.worker_starts == 5 && l->n_deaths == 0);
    l->is_idle = false;
    end();
}

static void one_is_started_when_its_time_has_come(void **state)
{
    static const struct {
        bool has_process;
        double lost_at, restart_at;
        bool starts;
    } cases[] = {{false, STARTED, STARTED, true}, {false, STARTED, STARTED + 0.001, false},
        {false, STARTED, 0, false}, {false, STARTED, -1, false}, {true, STARTED - 10, STARTED, false},
        {true, STARTED - 10.001, STARTED, true}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct link *l = links;
        begin();
        const pid_t old = idler();
        l->pid = cases[i].has_process ? old : 0;
        l->lost_at = cases[i].lost_at;
        l->restart_at = cases[i].restart_at;
        link_tick(l, STARTED);
        assert_int_equal(l->socket != NULL, cases[i].starts);
        assert_int_equal(l->n_starts, cases[i].starts);
        assert_true(!cases[i].starts || (l->restart_at <= 0 && l->pid > 0 && l->pid != old));
        l->pid = l->pid == old ? 0 : l->pid;
        bury(old);
        end();
    }
}

/* Without memory none is started; each try is made a second after the other, and who waits is told of the second. */
static void what_cannot_be_started_is_tried_again(void **state)
{
    static const char none[] = "the model could not be opened: no process could be started";
    struct link *l = links;
    (void)state;
    begin();
    const double before = clock_seconds();
    support_fail_from(SUPPORT_MALLOC, 1);
    const bool opened = link_open(l);
    support_fail_off();
    assert_false(opened);
    assert_true(l->restart_at >= before + 1 && l->restart_at <= clock_seconds() + 1);
    assert_true(!l->socket && l->n_starts == 0 && s.metrics.worker_starts == 0);
    for (int i = 0; i < 4; i++) {
        l->is_waking = i > 0;
        l->restart_at = STARTED + i;
        support_fail_from(SUPPORT_MALLOC, 1);
        link_tick(l, STARTED + i);
        support_fail_off();
        assert_true(!l->socket && l->restart_at >= STARTED + i + 1 && l->restart_at <= STARTED + i + 1);
        assert_true(l->n_unborn == i + 1 && n_lost == i && !l->is_waking);
        assert_string_equal(lost_as, i ? none : "");
    }
    l->restart_at = STARTED;
    support_fail_from(SUPPORT_MALLOC, 1);
    link_tick(l, STARTED);
    support_fail_off();
    assert_int_equal(n_lost, 3); /* nobody waits */
    l->pid = 0;
    end();
}

/* What comes then cannot be read: it ends, and another one is started. */
static void what_has_no_room_ends_it(void **state)
{
    struct link *l = links;
    (void)state;
    begin();
    assert_true(link_open(l));
    struct pollfd polled = {bufferevent_getfd(l->socket), POLLIN, 0};
    event_base_loop(s.base, EVLOOP_NONBLOCK); /* it is asked */
    assert_int_equal(poll(&polled, 1, 30000), 1);
    support_fail_from(SUPPORT_MALLOC, 1);
    event_base_loop(s.base, EVLOOP_NONBLOCK);
    support_fail_off();
    assert_null(l->socket);
    assert_int_equal(n_lost, 1);
    end();
}

/* ---- Orders ---- */

static void an_order_is_followed_at_once(void **state)
{
    struct link *l = links;
    (void)state;
    begin();
    l->is_waking = true;
    l->restart_at = STARTED;
    link_leave(l, true);
    assert_true(l->is_out && !l->is_leaving && !l->is_waking && l->restart_at <= 0 && n_beats == 1);
    link_wake(l); /* whoever asks, it stays out */
    assert_true(!l->is_waking && l->restart_at <= 0);
    const double before = clock_seconds();
    link_return(l);
    assert_true(!l->is_out && l->restart_at >= before && n_beats == 2);
    l->restart_at = STARTED; /* has its time already */
    l->is_waking = true;
    link_leave(l, false);
    assert_true(!l->is_out && !l->is_leaving && l->is_waking && n_beats == 3);
    assert_true(l->restart_at >= STARTED && l->restart_at <= STARTED);
    l->restart_at = 0;
    s.is_resting = true;
    link_return(l);
    assert_true(l->restart_at <= 0); /* nobody wants any */
    s.is_resting = false;
    pose(l);
    l->is_ready = true;
    link_leave(l, false);
    assert_true(l->is_leaving && l->restart_at <= 0 && !link_stays(l));
    link_tick(l, STARTED); /* it has no speeches: the next one opens the model for those who wait */
    assert_true(!l->is_leaving && l->is_waking && l->socket && l->pid > 0 && l->n_starts == 1);
    link_leave(l, true);
    assert_true(l->is_leaving && !l->is_waking);
    link_tick(l, STARTED);
    assert_true(!l->is_leaving && !l->is_waking && !l->socket && l->is_asked && l->restart_at <= 0);
    assert_true(l->n_starts == 1 && l->n_deaths == 0 && n_lost == 0);
    end();
}

/* ---- Which one is given a speech ---- */

enum kind { ABSENT, LEAVING, BROKEN, SILENT, BEHIND, GOOD, KINDS };

static void become(struct link *l, enum kind kind)
{
    l->is_ready = kind != ABSENT;
    l->is_leaving = kind == LEAVING;
    l->broken = kind == BROKEN;
    l->heard = clock_seconds() - (kind == SILENT ? 60 : 0);
    l->beat.falls_behind = kind == BEHIND;
}

static void who_is_worse_off_takes_what_no_other_can(void **state)
{
    static const bool takes[KINDS][KINDS] = {
        [SILENT] = {1, 1, 1, 1, 0, 0}, [BEHIND] = {1, 1, 1, 1, 1, 0}, [GOOD] = {1, 1, 1, 1, 1, 1}};
    (void)state;
    begin();
    for (int one = 0; one < KINDS; one++) {
        for (int other = 0; other < KINDS; other++) {
            become(&links[0], one), become(&links[1], other);
            assert_int_equal(link_takes(&links[0]), takes[one][other]);
            assert_int_equal(link_takes(&links[1]), takes[other][one]);
        }
    }
    become(&links[0], GOOD);
    assert_ptr_equal(link_out(&links[0]), &links[0].out);
    become(&links[0], BROKEN);
    assert_null(link_out(&links[0]));
    become(&links[0], ABSENT);
    assert_null(link_out(&links[0]));
    end();
}

/* Two seconds, and ten of its steps. */
static void a_slow_step_explains_a_silence(void **state)
{
    struct link *l = links;
    (void)state;
    begin();
    const double now = clock_seconds();
    l->is_still = true; /* so that the time that passes here is not counted */
    l->still_since = now;
    static const double steps[] = {0, 0.01, 0.5};
    for (int i = 0; i < 3; i++) {
        l->beat.step_s = steps[i];
        l->heard = now - 2 - 10 * steps[i] + 0.001;
        assert_false(link_is_silent(l));
        l->heard -= 0.002;
        assert_true(link_is_silent(l));
    }
    l->is_still = false;
    l->still_since = now + 1000; /* not looked at then */
    l->beat.step_s = 0;
    assert_true(link_is_silent(l));
    end();
}

static char state_of(pid_t pid)
{
    char path[40], name[20], is = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%*d %19s %c", name, &is), 2);
    fclose(f);
    return is;
}

static void expect_state(pid_t pid, bool stopped)
{
    double until = clock_seconds() + 60;
    while ((state_of(pid) == 'T') != stopped && clock_seconds() < until) {
        usleep(200);
    }
    assert_int_equal(state_of(pid) == 'T', stopped);
}

static void time_in_which_it_stands_still_is_no_silence(void **state)
{
    struct link *l = links;
    (void)state;
    begin();
    pose(l);
    l->pid = idler();
    link_still(l, true); /* is not ready */
    assert_false(l->is_still);
    l->is_ready = true;
    link_still(l, false); /* it does run */
    assert_true(l->still_since <= 0);
    const double before = clock_seconds();
    l->heard = before - 3;
    link_still(l, true);
    assert_true(l->is_still && l->still_since >= before && l->heard <= before - 3);
    expect_state(l->pid, true);
    l->still_since = before - 2;
    link_still(l, true); /* does so already */
    assert_true(l->still_since <= before - 2);
    link_still(l, false);
    assert_false(l->is_still);
    expect_state(l->pid, false);
    assert_true(l->heard >= before - 1 - 1e-6 && l->heard <= clock_seconds() - 1 + 1e-6);
    assert_true(l->still_since >= before);
    l->is_still = true; /* longer than it had been heard of: what it said was said now */
    l->heard = before - 1;
    l->still_since = before - 5;
    link_still(l, false);
    assert_true(l->heard >= before && l->heard <= clock_seconds());
    end();
}

/* It is cut off, and nothing else yet: whoever sends holds speeches. */
static void what_cannot_be_sent_ends_it_later(void **state)
{
    struct link *l = links;
    char byte[2];
    (void)state;
    begin();
    pose(l);
    l->is_ready = true;
    link_send(l); /* nothing */
    assert_false(l->broken);
    wire_put(&l->out, "x", 1);
    link_send(l);
    event_base_loop(s.base, EVLOOP_NONBLOCK);
    assert_true(!l->broken && l->out.n == 0 && recv(far[0], byte, 2, 0) == 1 && byte[0] == 'x');
    wire_put(&l->out, "y", 1);
    l->out.failed = true;
    link_send(l);
    assert_true(l->broken && l->out.n == 0 && !l->out.failed && l->socket && n_lost == 0);
    assert_int_equal(recv(far[0], byte, 2, 0), 0);
    end();
}

int main(int n, char **arguments)
{
    if (n == 3 && strcmp(arguments[1], "serve-worker") == 0) {
        return posed_worker(atoi(arguments[2]), tell_hello);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_is_ready_may_be_silent_for_so_long),
        cmocka_unit_test(who_opens_a_model_has_so_much_time),
        cmocka_unit_test(nothing_of_one_that_is_lost_stays),
        cmocka_unit_test(each_failure_is_followed_by_a_longer_pause),
        cmocka_unit_test(a_model_that_was_never_open_is_given_up),
        cmocka_unit_test(an_end_that_says_why_is_believed_at_once),
        cmocka_unit_test(the_next_one_is_asked_for_what_the_last_one_had),
        cmocka_unit_test(one_is_started_when_its_time_has_come),
        cmocka_unit_test(what_cannot_be_started_is_tried_again),
        cmocka_unit_test(what_has_no_room_ends_it),
        cmocka_unit_test(an_order_is_followed_at_once),
        cmocka_unit_test(who_is_worse_off_takes_what_no_other_can),
        cmocka_unit_test(a_slow_step_explains_a_silence),
        cmocka_unit_test(time_in_which_it_stands_still_is_no_silence),
        cmocka_unit_test(what_cannot_be_sent_ends_it_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
