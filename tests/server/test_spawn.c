/* SPDX-License-Identifier: Apache-2.0
 * Another process of this program: it begins with the signals and files of a fresh one, whatever this one has done to
 * its own, and stands still as a whole. */
#include "tests/support.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/loop/spawn.h"

enum { LONG_S = 30, THREADS = 3 };

/* ---- The other process ---- */

static bool is_null(int file, int access)
{
    struct stat here, null;
    return fstat(file, &here) == 0 && stat("/dev/null", &null) == 0 && here.st_rdev == null.st_rdev &&
           (fcntl(file, F_GETFL) & O_ACCMODE) == access;
}

/* Says what it has, in one message. */
static int tell(void)
{
    char text[200];
    sigset_t blocked;
    struct sigaction term, pipe;
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    sigaction(SIGTERM, NULL, &term);
    sigaction(SIGPIPE, NULL, &pipe);
    int n = snprintf(text, sizeof text, "blocked %d, ignored %d %d, null %d %d",
        sigismember(&blocked, SIGUSR1), term.sa_handler == SIG_IGN, pipe.sa_handler == SIG_IGN,
        is_null(STDIN_FILENO, O_RDONLY), is_null(STDOUT_FILENO, O_WRONLY));
    fprintf(stderr, "it is there\n");
    return send(SPAWN_SOCKET, text, (size_t)n, 0) != n;
}

static void *turn(void *unused)
{
    while (true) {
        usleep(1000);
    }
    return unused;
}

/* Until nobody listens any more. */
static int live(void)
{
    pthread_t threads[THREADS - 1];
    char byte = 0;
    for (int i = 0; i < THREADS - 1; i++) {
        if (pthread_create(&threads[i], NULL, turn, NULL) != 0) {
            return 1;
        }
    }
    (void)!send(SPAWN_SOCKET, &byte, 1, 0);
    return recv(SPAWN_SOCKET, &byte, 1, 0) != 0;
}

/* ---- This one ---- */

static char name[] = "utter", asked_to_tell[] = "tell", asked_to_live[] = "live";

static int end_of(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void it_begins_as_a_fresh_one(void **state)
{
    char *const arguments[] = {name, asked_to_tell, NULL};
    int pair[2], words[2];
    char text[200] = "", said[200] = "";
    sigset_t blocked;
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    assert_int_equal(pipe2(words, O_CLOEXEC), 0);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    signal(SIGTERM, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    const int in = dup(STDIN_FILENO), out = dup(STDOUT_FILENO);
    fflush(stdout);
    assert_true(dup2(words[0], STDIN_FILENO) >= 0 && dup2(words[0], STDOUT_FILENO) >= 0);
    pid_t pid = spawn_program(arguments, pair[1], words[1]);
    assert_true(dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0);
    close(in), close(out);
    signal(SIGTERM, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &blocked, NULL);
    assert_true(pid > 0);
    close(pair[1]), close(words[1]);
    assert_true(recv(pair[0], text, sizeof text - 1, 0) > 0);
    assert_string_equal(text, "blocked 0, ignored 0 0, null 1 1");
    assert_int_equal(read(words[0], said, sizeof said - 1), strlen("it is there\n"));
    assert_string_equal(said, "it is there\n");
    assert_int_equal(end_of(pid), 0);
    close(pair[0]), close(words[0]);
}

/* Without a socket it has none, and what it says goes where this one's words go. */
static void it_may_have_nothing(void **state)
{
    char *const arguments[] = {name, asked_to_tell, NULL};
    int kept = dup(STDERR_FILENO);
    FILE *log = tmpfile();
    char said[200] = "";
    (void)state;
    assert_true(log && kept >= 0 && dup2(fileno(log), STDERR_FILENO) >= 0);
    fcntl(fileno(log), F_SETFD, FD_CLOEXEC);
    pid_t pid = spawn_program(arguments, -1, -1);
    assert_true(dup2(kept, STDERR_FILENO) >= 0);
    close(kept);
    assert_true(pid > 0);
    assert_int_equal(end_of(pid), 1);
    rewind(log);
    said[fread(said, 1, sizeof said - 1, log)] = 0;
    assert_string_equal(said, "it is there\n");
    fclose(log);
}

static void what_cannot_be_started_has_a_reason(void **state)
{
    char *const arguments[] = {name, asked_to_tell, NULL};
    (void)state;
    errno = 0;
    assert_int_equal(spawn_program(arguments, 9999, -1), -1);
    assert_int_equal(errno, EBADF);
}

/* All threads of it are in this state: T, or another one. */
static bool threads_stand(pid_t pid, bool still)
{
    char path[64];
    int n = 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    assert_non_null(folder);
    for (const struct dirent *e; (e = readdir(folder));) {
        char text[512] = "";
        snprintf(path, sizeof path, "/proc/%d/task/%.20s/stat", (int)pid, e->d_name);
        FILE *file = e->d_name[0] != '.' ? fopen(path, "r") : NULL;
        if (file && fgets(text, sizeof text, file) && strrchr(text, ')')) {
            n += (strrchr(text, ')')[2] == 'T') == still;
        }
        if (file) {
            fclose(file);
        }
    }
    closedir(folder);
    return n == THREADS;
}

static void expect_threads(pid_t pid, bool still)
{
    const double until = clock_seconds() + LONG_S;
    while (!threads_stand(pid, still) && clock_seconds() < until) {
        usleep(1000);
    }
    assert_true(threads_stand(pid, still));
}

static void it_stands_still_as_a_whole(void **state)
{
    char *const arguments[] = {name, asked_to_live, NULL};
    int pair[2];
    char byte;
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    pid_t pid = spawn_program(arguments, pair[1], -1);
    assert_true(pid > 0);
    close(pair[1]);
    assert_int_equal(recv(pair[0], &byte, 1, 0), 1);
    for (int i = 0; i < 2; i++) {
        assert_true(spawn_still(pid, true));
        expect_threads(pid, true);
        assert_true(spawn_still(pid, false));
        expect_threads(pid, false);
    }
    close(pair[0]);
    assert_int_equal(end_of(pid), 0);
    assert_false(spawn_still(pid, true)); /* it is no more */
    assert_false(spawn_still(pid, false));
}

int main(int n, char **arguments)
{
    if (n == 2 && strcmp(arguments[1], asked_to_tell) == 0) {
        return tell();
    }
    if (n == 2 && strcmp(arguments[1], asked_to_live) == 0) {
        return live();
    }
    if (n > 1) {
        return 2;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_begins_as_a_fresh_one),
        cmocka_unit_test(it_may_have_nothing),
        cmocka_unit_test(what_cannot_be_started_has_a_reason),
        cmocka_unit_test(it_stands_still_as_a_whole),
    };
    return cmocka_run_group_tests_name("spawn", tests, NULL, NULL);
}
