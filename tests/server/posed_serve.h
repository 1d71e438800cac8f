/* SPDX-License-Identifier: Apache-2.0
 * A front end as a process of its own, from serve_run to its exit code. Its worker is this program once more; its clock
 * stands where a test has stopped it. */
#ifndef TESTS_SERVER_POSED_SERVE_H
#define TESTS_SERVER_POSED_SERVE_H

#include <arpa/inet.h>
#include <fcntl.h>
#include <math.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/minmax.h"
#include "server/front/serve.h"
#include "tests/server/posed_front.h"

enum { LONG_S = 15, PLACES = 15, PLACES_FILES = 70 };

/* ---- What a server and its test have together ---- */

struct shared {
    pid_t server;
    double stands_at_s;       /* its clock; 0: that is the true one */
    int no_delay, send_bytes; /* as sockets were asked for it */
    volatile size_t n_turns;  /* of its loop */
};
static struct shared *shared; /* NULL: this is a worker */

int clock_gettime(clockid_t which, struct timespec *time)
{
    const double at_s = shared && shared->server == getpid() ? shared->stands_at_s : 0;
    if (at_s > 0) {
        *time = (struct timespec){(time_t)at_s, (long)(1e9 * (at_s - floor(at_s)))};
        return 0;
    }
    return (int)syscall(SYS_clock_gettime, which, time);
}

int setsockopt(int socket, int level, int option, const void *value, socklen_t n)
{
    if (shared && level == IPPROTO_TCP && option == TCP_NODELAY) {
        shared->no_delay = *(const int *)value;
    } else if (shared && level == SOL_SOCKET && option == SO_SNDBUF) {
        shared->send_bytes = *(const int *)value;
    }
    return (int)syscall(SYS_setsockopt, socket, level, option, value, n);
}

int epoll_wait(int epoll, struct epoll_event *events, int most, int timeout_ms)
{
    if (shared) {
        shared->n_turns++;
    }
    return (int)syscall(SYS_epoll_pwait, epoll, events, most, timeout_ms, NULL, 0);
}

/* ---- The worker ---- */

/* One of "cuda:8" ends before it is ready, as soon as this file is there; one of "cuda:7" says then that it has no GPU,
 * one of "cuda:9" at once. */
#define ENDS "UTTER_TEST_ENDS"

static inline void answer(struct wire_out *out, const struct wire_message *m)
{
    struct wire_hello hello;
    const bool is_hello = m->kind == WIRE_HELLO && wire_get_hello(&hello, m);
    const int number = is_hello ? atoi(hello.device + strlen("cuda:")) : 0;
    while ((number == 7 || number == 8) && access(getenv(ENDS), F_OK) != 0) {
        usleep(1000);
    }
    if (number == 8) {
        exit(0);
    }
    if (number == 7 || number == 9) {
        wire_put_refused(out, UTTER_E_DEVICE, "no such GPU");
        return;
    }
    posed_answer_all(out, m);
}

/* ---- The server ---- */

static const char *const one_device[] = {"cuda:0"};
static struct serve_options options;
static struct rlimit files; /* of descriptors */
static struct {
    pid_t pid;
    int said; /* its standard output */
    int port;
} served;

/* What the next one is asked for, where a test says no more. */
static inline void usual(void)
{
    options = (struct serve_options){.model = "models/posed",
        .host = "127.0.0.1",
        .format = "pcm",
        .devices = one_device,
        .n_devices = 1,
        .queue = 8,
        .patience_ms = 60000,
        .drain_s = 1000,
        .no_cage = true};
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    files.rlim_cur = min(files.rlim_cur, (rlim_t)1000);
    *shared = (struct shared){.stands_at_s = 0};
}

/* `before`: what is still done in the process of the server; may be NULL. */
static inline void begin(void (*before)(void))
{
    int ends[2], log = open(support_path("log"), O_CREAT | O_TRUNC | O_WRONLY | O_APPEND, 0600);
    assert_true(log >= 0 && pipe2(ends, O_CLOEXEC) == 0);
    served.pid = fork();
    if (served.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setrlimit(RLIMIT_NOFILE, &files);
        dup2(ends[1], STDOUT_FILENO);
        dup2(log, STDERR_FILENO);
        shared->server = getpid();
        if (before) {
            before();
        }
        _exit(serve_run(&options));
    }
    close(log), close(ends[1]);
    served.said = ends[0];
}

/* Whether there is a line on its standard output, or its end, within this time. */
static inline bool has_said(int ms)
{
    struct pollfd polled = {served.said, POLLIN, 0};
    return poll(&polled, 1, ms) == 1;
}

/* The line with which it says that it is ready. */
static inline const char *announced(void)
{
    static char line[1000];
    size_t n = 0;
    while (n < sizeof line - 1 && has_said(1000 * LONG_S) && read(served.said, line + n, 1) == 1 &&
           line[n] != '\n') {
        n++;
    }
    line[n] = 0;
    const char *port = strstr(line, ", model ");
    while (port && port > line && port[-1] != ':') {
        port--;
    }
    served.port = port ? atoi(port) : 0;
    return line;
}

/* Whether it is still there when it has done all that there is to do at this time: a hangup, of which nothing comes
 * where it has no files, has it look. */
static inline bool is_there(void)
{
    siginfo_t end = {.si_pid = 0};
    const double until = clock_seconds() + LONG_S;
    for (size_t n = shared->n_turns; shared->n_turns < n + 3 && end.si_pid == 0;) {
        kill(served.pid, SIGHUP);
        usleep(1000);
        assert_int_equal(waitid(P_PID, (id_t)served.pid, &end, WEXITED | WNOHANG | WNOWAIT), 0);
        assert_true(clock_seconds() < until);
    }
    return end.si_pid == 0;
}

/* Its clock goes on by so much, and stands. */
static inline void step(double seconds)
{
    const double now = shared->stands_at_s > 0 ? shared->stands_at_s : floor(clock_seconds()) + 2;
    shared->stands_at_s = now + seconds;
}

/* Its exit code, or 1000 + its signal. */
static inline int end_of(void)
{
    int status = 0;
    pid_t pid = 0;
    for (double until = clock_seconds() + LONG_S; pid == 0 && clock_seconds() < until;) {
        pid = waitpid(served.pid, &status, WNOHANG);
        usleep(1000);
    }
    if (pid == 0) {
        kill(served.pid, SIGKILL);
        waitpid(served.pid, &status, 0);
    }
    close(served.said);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static inline int stopped(int signal)
{
    kill(served.pid, signal);
    return end_of();
}

/* What it has written to standard error, to be freed with free(). */
static inline char *written(void)
{
    size_t n;
    char *log = support_read_file(support_path("log"), &n);
    assert_non_null(log);
    return log;
}

static inline int count_of(const char *words)
{
    char *log = written();
    int n = 0;
    for (const char *at = log; (at = strstr(at, words)); at++) {
        n++;
    }
    free(log);
    return n;
}

/* Until its log has these words so often. */
static inline void logs(const char *words, int n)
{
    const double until = clock_seconds() + LONG_S;
    while (count_of(words) < n && clock_seconds() < until) {
        usleep(1000);
    }
    if (count_of(words) != n) {
        fail_msg("%s: %d times in: %s", words, count_of(words), written());
    }
}

/* ---- Clients ---- */

/* The socket, or -1. */
static inline int try_to_come(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
        .sin_port = htons((uint16_t)served.port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct timeval patience = {LONG_S, 0};
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(client >= 0);
    syscall(SYS_setsockopt, client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect(client, (struct sockaddr *)&at, sizeof at) != 0) {
        close(client);
        return -1;
    }
    return client;
}

static inline int come(void)
{
    int client = try_to_come();
    assert_true(client >= 0);
    return client;
}

static inline void ask(int client, const char *path, const char *key, const char *body)
{
    char text[1000];
    int n = snprintf(text, sizeof text,
        "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n%s%s%sContent-Length: %zu\r\n\r\n%s",
        body[0] ? "POST" : "GET", path, key ? "Authorization: Bearer " : "", key ? key : "",
        key ? "\r\n" : "", strlen(body), body);
    assert_int_equal(send(client, text, (size_t)n, MSG_NOSIGNAL), n);
}

/* What comes up to the end of the connection, which is closed. */
static inline const char *heard(int client)
{
    static char text[1 << 16];
    size_t n = 0;
    for (ssize_t got;
         n < sizeof text - 1 && (got = recv(client, text + n, sizeof text - 1 - n, 0)) > 0;) {
        n += (size_t)got;
    }
    text[n] = 0;
    close(client);
    return text;
}

static inline int status_of(const char *path, const char *key, const char *body)
{
    int client = come();
    ask(client, path, key, body);
    return atoi(heard(client) + strlen("HTTP/1.1 "));
}

#define SPEECH "/v1/audio/speech"
#define SPEAKS_AS "/v1/text-to-speech/" /* of ElevenLabs */
#define SAYS "{\"input\":\"Hi\"}"
#define WAITS "{\"input\":\"wait\"}" /* a third of a second of sound; it is never through */

/* A speech that is never through, the head of whose answer has come. */
static inline int come_and_wait(void)
{
    char first;
    int client = come();
    ask(client, SPEECH, NULL, WAITS);
    assert_int_equal(recv(client, &first, 1, 0), 1);
    return client;
}

static inline const char *metrics(void)
{
    int client = come();
    ask(client, "/metrics", NULL, "");
    return heard(client);
}

/* Until this is a line of them. */
static inline void counts(const char *line)
{
    const double until = clock_seconds() + LONG_S;
    bool counted = false;
    while (!counted && clock_seconds() < until) {
        counted = strstr(metrics(), line) != NULL;
    }
    if (!counted) {
        fail_msg("no %s in %s", line, metrics());
    }
}

/* Its exit code, where this program is a worker or cannot go on; -1: it is the tests. */
static inline int posed_begins(int n, char **arguments)
{
    if (n == 3 && strcmp(arguments[1], "serve-worker") == 0) {
        return posed_worker(atoi(arguments[2]), answer);
    }
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return n > 1 ? 2 : shared == MAP_FAILED ? 1 : -1;
}

#endif
