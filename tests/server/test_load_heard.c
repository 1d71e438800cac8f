/* SPDX-License-Identifier: Apache-2.0
 * What the listeners of `utter load` say that they heard, and when they ask, to the millisecond: their clock stands
 * until the test moves it, and the test is the server. */
#include "base/clock.h"
#include "tests/support.h"

#include <errno.h>
#include <math.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/load/load.h"
#include "server/protocol/refusal.h"

enum { RATE = 24000, LONG_S = 30, BEGIN_S = 1000 };

/* ---- The process of the listeners ---- */

static struct shared {
    volatile pid_t pid;
    volatile double now_s;
    volatile size_t n_read;  /* bytes */
    volatile size_t n_done;  /* of them, with which it has done what it does */
    volatile size_t n_turns; /* of its loop */
} * shared;

static bool is_theirs(void)
{
    return shared && shared->pid == getpid();
}

int clock_gettime(clockid_t which, struct timespec *time)
{
    if (!is_theirs()) {
        return (int)syscall(SYS_clock_gettime, which, time);
    }
    *time =
        (struct timespec){(time_t)shared->now_s, (long)(1e9 * (shared->now_s - floor(shared->now_s)))};
    return 0;
}

ssize_t readv(int file, const struct iovec *parts, int n)
{
    const ssize_t got = syscall(SYS_readv, file, parts, n);
    if (is_theirs() && got > 0) {
        shared->n_read += (size_t)got;
    }
    return got;
}

int epoll_wait(int epoll, struct epoll_event *events, int most, int timeout_ms)
{
    if (is_theirs()) {
        shared->n_done = shared->n_read;
        shared->n_turns++;
    }
    return (int)syscall(SYS_epoll_pwait, epoll, events, most, timeout_ms, NULL, 0);
}

static void look(int number)
{
    (void)number;
}

static struct {
    struct load_options options;
    int listening;
    FILE *told;
    size_t n_sent;
} load;

static void begin(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof at;
    load.listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(load.listening, (struct sockaddr *)&at, bytes), 0);
    assert_int_equal(listen(load.listening, 64), 0);
    assert_int_equal(getsockname(load.listening, (struct sockaddr *)&at, &bytes), 0);
    load.options = (struct load_options){.host = "127.0.0.1",
        .port = ntohs(at.sin_port),
        .seconds = 0.5,
        .listeners = 1,
        .eager = true,
        .least_words = 1,
        .most_words = 1,
        .seed = 7,
        .limit_ms = 1000,
        .json = true};
    load.told = tmpfile();
    load.n_sent = 0;
    assert_non_null(load.told);
}

static void start(void)
{
    *shared = (struct shared){.now_s = BEGIN_S};
    pid_t pid = fork();
    if (pid == 0) {
        const struct sigaction woken = {.sa_handler = look};
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        sigaction(SIGUSR1, &woken, NULL);
        dup2(fileno(load.told), STDOUT_FILENO);
        shared->pid = getpid();
        int code = load_run(&load.options);
        fflush(stdout);
        _exit(code);
    }
    while (shared->pid != pid) {
        usleep(100);
    }
}

static bool is_over(void)
{
    siginfo_t about = {.si_pid = 0};
    return waitid(P_PID, (id_t)shared->pid, &about, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           about.si_pid != 0;
}

/* Until they have done all that there is to do at this time with what they were sent. */
static void settle(void)
{
    const double until = clock_seconds() + LONG_S;
    for (size_t n = shared->n_turns; shared->n_turns < n + 2 || shared->n_done < load.n_sent;) {
        kill(shared->pid, SIGUSR1);
        usleep(200);
        if (clock_seconds() > until || is_over()) {
            break;
        }
    }
}

static void go_to(double seconds)
{
    settle();
    shared->now_s = BEGIN_S + seconds;
    settle();
}

/* ---- The server ---- */

static bool somebody_asks(int ms)
{
    struct pollfd polled = {load.listening, POLLIN, 0};
    return poll(&polled, 1, ms) == 1;
}

/* The next one who asks, when the request has come. */
static int asked(void)
{
    char text[2000] = "";
    size_t n = 0;
    assert_true(somebody_asks(1000 * LONG_S));
    int client = accept4(load.listening, NULL, NULL, SOCK_CLOEXEC);
    assert_true(client >= 0);
    for (ssize_t got = 1; got > 0 && !strchr(text, '}'); n += got > 0 ? (size_t)got : 0) {
        got = recv(client, text + n, sizeof text - 1 - n, 0);
    }
    return client;
}

static void answer(int client, const void *bytes, size_t n)
{
    assert_int_equal(send(client, bytes, n, MSG_NOSIGNAL), n);
    load.n_sent += n;
}

static void answer_words(int client, const char *words)
{
    answer(client, words, strlen(words));
}

#define GOOD "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
#define END "0\r\n\r\n"

/* So many samples, of which one is this and the others are as loud as what nobody hears. */
static void answer_sound(int client, size_t n, size_t which, int16_t loud)
{
    static uint8_t bytes[2 * RATE + 100];
    size_t at = (size_t)sprintf((char *)bytes, "%zx\r\n", 2 * n);
    for (size_t i = 0; i < n; i++, at += 2) {
        const int16_t sample = i == which ? loud : i % 2 ? 104 : -104;
        memcpy(bytes + at, &sample, 2);
    }
    memcpy(bytes + at, "\r\n", 2);
    answer(client, bytes, at + 2);
}

/* What they say. Nobody has asked meanwhile. */
static json_t *ended(void)
{
    int status = -1;
    pid_t pid = 0;
    for (double until = clock_seconds() + LONG_S; pid == 0 && clock_seconds() < until;) {
        pid = waitpid(shared->pid, &status, WNOHANG);
        usleep(200);
    }
    if (pid == 0) {
        kill(shared->pid, SIGKILL);
        waitpid(shared->pid, &status, 0);
    }
    assert_false(somebody_asks(0));
    close(load.listening);
    assert_int_equal(status, 0);
    rewind(load.told);
    json_t *j = json_loadf(load.told, 0, NULL);
    fclose(load.told);
    assert_non_null(j);
    return j;
}

static void expect(const json_t *j, const char *name, const char *inner, double wanted)
{
    const json_t *value = json_object_get(j, name);
    value = inner ? json_object_get(value, inner) : value;
    assert_non_null(value);
    if (fabs(json_number_value(value) - wanted) > 0.06) {
        fail_msg("%s is %g, not %g", name, json_number_value(value), wanted);
    }
}

/* ---- What they hear ---- */

static void what_is_heard_is_told(void **state)
{
    (void)state;
    begin();
    start();
    int client = asked();
    go_to(0.5);
    answer_words(client, GOOD);
    go_to(0.75); /* heard to 1 */
    answer_sound(client, 6000, 6000, 0);
    go_to(0.875); /* two pieces that come at once, heard from 1 to 1.125 */
    answer_sound(client, 1200, 1200, 0);
    answer_sound(client, 1800, 600, -105);
    go_to(1.5); /* heard to 1.625 */
    answer_sound(client, 3000, 0, 30000);
    go_to(1.75); /* heard to 1.8125 */
    answer_sound(client, 1500, 0, 30000);
    go_to(2);
    answer_words(client, END);
    json_t *j = ended();
    expect(j, "requests", NULL, 1);
    expect(j, "good", NULL, 1);
    expect(j, "first_ms", "max", 750);
    expect(j, "audible_ms", "max", 1000 + 50 + 25);
    expect(j, "worst_gap_ms", "max", 625);
    expect(j, "underrun_ms", "max", 375);
    expect(j, "total_ms", "max", 2000);
    expect(j, "gap_ms", "p50", 250.1);
    expect(j, "gap_ms", "max", 625.1);
    expect(j, "underruns", NULL, 1);
    expect(j, "pauses", NULL, 2);
    expect(j, "pauses_seconds", NULL, 0.375 + 0.125);
    expect(j, "goodput", NULL, 0);
    expect(j, "audio_seconds", NULL, 13500.0 / RATE);
    expect(j, "wall_seconds", NULL, 2);
    expect(j, "most_at_once", NULL, 1);
    json_decref(j);
    close(client);
}

/* Samples have two bytes, wherever they are cut. */
static void a_sample_may_be_cut(void **state)
{
    (void)state;
    begin();
    load.options.seconds = 0.1;
    start();
    int client = asked();
    answer_words(client, GOOD "3\r\n");
    answer(client, "\0\0\x69", 3); /* 105, in two pieces */
    answer_words(client, "\r\n");
    go_to(0.25);
    answer_words(client, "1\r\n");
    answer(client, "\0", 1);
    answer_words(client, "\r\n" END);
    json_t *j = ended();
    expect(j, "good", NULL, 1);
    expect(j, "first_ms", "max", 0);
    expect(j, "audible_ms", "max", 250); /* when all of it was there */
    expect(j, "total_ms", "max", 250);
    json_decref(j);
    close(client);
}

/* Who hears nothing for a minute goes. */
static void patience_has_an_end(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        begin();
        start();
        int client = asked();
        go_to(0.25);
        answer_words(client, GOOD);
        go_to(late ? 60.5 : 60);
        if (!late) {
            answer_words(client, "2\r\nab\r\n" END);
        }
        json_t *j = ended();
        expect(j, late ? "broken" : "good", NULL, 1);
        expect(j, "wall_seconds", NULL, late ? 60.5 : 60);
        json_decref(j);
        close(client);
    }
}

/* ---- When they ask ---- */

/* Again when all has been heard, or a tenth of a second after what was no sound; but not when the time is over. */
static void who_has_heard_it_out_asks_again(void **state)
{
    (void)state;
    begin();
    load.options.eager = false;
    load.options.seconds = 3;
    start();
    int client = asked();
    go_to(0.5);
    answer_words(client, GOOD);
    answer_sound(client, RATE, 0, 1000);
    answer_words(client, END);
    go_to(1.25);
    assert_false(somebody_asks(20));
    go_to(1.5);
    close(client);
    client = asked();
    answer_words(client, "HTTP/1.1 404 No\r\n\r\n");
    go_to(1.59);
    assert_false(somebody_asks(20));
    go_to(1.61);
    close(client);
    client = asked();
    close(client); /* it is broken */
    go_to(1.7);
    assert_false(somebody_asks(20));
    go_to(1.72);
    client = asked();
    go_to(2.75);
    answer_words(client, GOOD);
    answer_sound(client, RATE, 0, 1000); /* heard to 3.75 */
    answer_words(client, END);
    go_to(3.8);
    json_t *j = ended();
    expect(j, "requests", NULL, 4);
    expect(j, "good", NULL, 2);
    expect(j, "refused", NULL, 1);
    expect(j, "broken", NULL, 1);
    expect(j, "refused_ms", "max", 0);
    expect(j, "wall_seconds", NULL, 3.8);
    json_decref(j);
    close(client);
}

static void who_is_eager_asks_at_once(void **state)
{
    (void)state;
    begin();
    start();
    for (int i = 0; i < 3; i++) {
        int client = asked();
        go_to(0.25 * i);
        answer_words(client, GOOD);
        answer_sound(client, RATE, 0, 1000);
        answer_words(client, END);
        close(client);
    }
    json_t *j = ended();
    expect(j, "requests", NULL, 3);
    expect(j, "good", NULL, 3);
    expect(j, "most_at_once", NULL, 1);
    expect(j, "wall_seconds", NULL, 0.5);
    json_decref(j);
}

/* As people do: all of them within two seconds. */
static void listeners_come_one_after_another(void **state)
{
    int clients[4];
    (void)state;
    begin();
    load.options.listeners = 4;
    load.options.seconds = 3;
    start();
    for (int i = 0; i < 4; i++) {
        go_to(0.5 * i - 0.01);
        assert_false(i > 0 && somebody_asks(20));
        go_to(0.5 * i + 0.01);
        clients[i] = asked();
    }
    go_to(3.5);
    for (int i = 0; i < 4; i++) {
        answer_words(clients[i], GOOD "2\r\nab\r\n" END);
        close(clients[i]);
    }
    json_t *j = ended();
    expect(j, "good", NULL, 4);
    expect(j, "most_at_once", NULL, 4);
    expect(j, "total_ms", "max", 3500);
    json_decref(j);
}

/* By chance, four times a second as the mean; it does not matter that nobody is answered. */
static void arrivals_follow_from_the_seed(void **state)
{
    int n = 0, clients[64];
    char counts[200] = "";
    (void)state;
    begin();
    load.options.listeners = 0;
    load.options.rate = 4;
    load.options.seconds = 4;
    start();
    for (int i = 0; i <= 10; i++) {
        go_to(0.5 * i);
        while (somebody_asks(20)) {
            clients[n++] = asked();
        }
        snprintf(counts + strlen(counts), 14, "%d ", n);
    }
    assert_string_equal(counts, "1 3 3 5 9 12 15 17 19 19 19 ");
    answer_words(clients[0], GOOD "2\r\nab\r\n" END);
    go_to(70);
    json_t *j = ended();
    expect(j, "requests", NULL, n);
    expect(j, "good", NULL, 1);
    expect(j, "broken", NULL, n - 1);
    expect(j, "most_at_once", NULL, n);
    expect(j, "rate", NULL, 4);
    json_decref(j);
    for (int i = 0; i < n; i++) {
        close(clients[i]);
    }
}

int main(void)
{
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_heard_is_told),
        cmocka_unit_test(a_sample_may_be_cut),
        cmocka_unit_test(patience_has_an_end),
        cmocka_unit_test(who_has_heard_it_out_asks_again),
        cmocka_unit_test(who_is_eager_asks_at_once),
        cmocka_unit_test(listeners_come_one_after_another),
        cmocka_unit_test(arrivals_follow_from_the_seed),
    };
    return shared == MAP_FAILED ? 1 : cmocka_run_group_tests_name("load_heard", tests, NULL, NULL);
}
