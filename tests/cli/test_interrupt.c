/* SPDX-License-Identifier: Apache-2.0
 * Signals that end a command, and what is waited for meanwhile. A signal stays, so that each life is a child's. poll
 * and pipe2 are posed. */
#include "cli/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "tests/support.h"

#define MUST(condition)                                                                                \
    do {                                                                                               \
        if (!(condition)) {                                                                            \
            _exit(__LINE__ % 100 + 1);                                                                 \
        }                                                                                              \
    } while (0)

/* ---- The system ---- */

static int wake_ends[2];
static bool pipe_fails;

int pipe2(int ends[2], int flags)
{
    MUST(flags == (O_CLOEXEC | O_NONBLOCK));
    if (pipe_fails) {
        errno = EMFILE;
        return -1;
    }
    MUST(pipe(ends) == 0 && fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0 &&
         fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0);
    memcpy(wake_ends, ends, sizeof wake_ends);
    return 0;
}

/* What poll answers, one after the other: a count, or an errno below zero. */
static struct {
    int answers[4], n, timeouts[4];
    short events;
    int raises; /* before the first answer */
} posed;

/* The system's header has what is asked for as written to alone. */
int posed_poll(struct pollfd *polled, nfds_t n, int timeout) __asm__("poll");
int posed_poll(struct pollfd *polled, nfds_t n, int timeout)
{
    MUST(n == 2 && posed.n < 4 && polled[0].fd == 0 && polled[1].fd == wake_ends[0]);
    MUST(polled[0].events == POLLIN && polled[1].events == POLLIN);
    int answer = posed.answers[posed.n];
    posed.timeouts[posed.n++] = timeout;
    if (posed.raises) {
        raise(posed.raises);
        posed.raises = 0;
    }
    polled[0].revents = posed.events;
    polled[1].revents = POLLIN;
    errno = answer < 0 ? -answer : EINTR; /* which is of an earlier call, where all went well */
    return answer < 0 ? -1 : answer;
}

/* ---- Signals ---- */

static void assert_life(void (*child)(void), int end)
{
    assert_int_equal(support_child_end(child), end);
}

static int number; /* of the signal that this life is about */

/* The flag is set, whoever waits is woken, and errno is as it was. */
static void a_signal_comes(void)
{
    char byte;
    MUST(interrupt_watch(NULL) && interrupt_signal() == 0);
    errno = EDOM;
    raise(number);
    MUST(errno == EDOM && interrupt_signal() == number);
    MUST(read(wake_ends[0], &byte, 1) == 1 && read(wake_ends[0], &byte, 1) < 0);
}

static void a_signal_comes_to_a_full_pipe(void)
{
    static const char bytes[4096];
    MUST(interrupt_watch(NULL));
    while (write(wake_ends[1], bytes, sizeof bytes) > 0) {
    }
    errno = EDOM;
    raise(number);
    MUST(errno == EDOM && interrupt_signal() == number);
}

static void a_signal_comes_twice(void)
{
    a_signal_comes();
    raise(number);
}

static void an_ignored_signal_comes(void)
{
    signal(number, SIG_IGN);
    MUST(interrupt_watch(NULL));
    raise(number);
    MUST(interrupt_signal() == 0);
    int other = number == SIGTERM ? SIGINT : SIGTERM;
    raise(other);
    MUST(interrupt_signal() == other);
}

/* A second speech has its handlers back, and the same pipe. */
static void a_signal_comes_to_the_second_watch(void)
{
    a_signal_comes();
    int kept = wake_ends[0];
    pipe_fails = true;
    MUST(interrupt_watch(NULL) && wake_ends[0] == kept);
    raise(number);
    MUST(interrupt_signal() == number);
}

static void no_pipe_is_to_be_had(void)
{
    pipe_fails = true;
    MUST(!interrupt_watch(NULL));
    raise(number); /* which nobody has taken over */
}

static void a_signal_is_told_and_a_second_one_ends_the_program(void **state)
{
    (void)state;
    static const int numbers[] = {SIGHUP, SIGINT, SIGTERM};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        number = numbers[i];
        assert_life(a_signal_comes, 0);
        assert_life(a_signal_comes_to_a_full_pipe, 0);
        assert_life(a_signal_comes_twice, 1000 + number);
        assert_life(a_signal_comes_to_the_second_watch, 0);
        assert_life(an_ignored_signal_comes, 0);
        assert_life(no_pipe_is_to_be_had, 1000 + number);
    }
}

/* ---- Waiting ---- */

static const struct {
    int answers[2];
    short events;
    bool wait;
    int raises; /* while it waits */
    bool comes;
    int calls, timeout;
} waits[] = {
    {{1}, POLLIN, true, 0, true, 1, -1},
    {{1}, POLLIN, false, 0, true, 1, 0},
    {{2}, POLLHUP, true, 0, true, 1, -1},
    {{1}, 0, true, 0, false, 1, -1}, /* a signal's byte alone */
    {{0}, POLLIN, false, 0, false, 1, 0},
    {{-EINTR, 1}, POLLIN, true, 0, true, 2, -1}, /* a signal that is not watched */
    {{-EINTR, 1}, POLLIN, true, SIGINT, false, 1, -1},
    {{-EBADF, 1}, POLLIN, true, 0, false, 1, -1},
    {{1, 1}, POLLIN, true, SIGINT, true, 1, -1},
};
static size_t row;

static void a_text_is_waited_for(void)
{
    MUST(interrupt_watch(NULL));
    memcpy(posed.answers, waits[row].answers, sizeof waits[row].answers);
    posed.events = waits[row].events;
    posed.raises = waits[row].raises;
    MUST(interrupt_poll(0, waits[row].wait) == waits[row].comes);
    MUST(posed.n == waits[row].calls);
    for (int i = 0; i < posed.n; i++) {
        MUST(posed.timeouts[i] == waits[row].timeout);
    }
}

static void nothing_is_waited_for_behind_a_signal(void)
{
    MUST(interrupt_watch(NULL));
    raise(SIGINT);
    MUST(!interrupt_poll(0, true) && posed.n == 1 && posed.timeouts[0] == 0);
}

static void text_is_waited_for_until_a_signal(void **state)
{
    (void)state;
    for (row = 0; row < sizeof waits / sizeof *waits; row++) {
        assert_life(a_text_is_waited_for, 0);
    }
    assert_life(nothing_is_waited_for_behind_a_signal, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signal_is_told_and_a_second_one_ends_the_program),
        cmocka_unit_test(text_is_waited_for_until_a_signal),
    };
    return cmocka_run_group_tests_name("interrupt", tests, NULL, NULL);
}
