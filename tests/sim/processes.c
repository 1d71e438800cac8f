/* SPDX-License-Identifier: Apache-2.0
 * Clocks, signals, threads, and the one process that the front end starts: the worker. One that is killed does nothing
 * any more that others could see; then it goes to its own end, so that its memory comes back. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/sim/kernel_parts.h"
#include "tests/sim/model.h"
#include "tests/sim/world.h"

/* ---- Clocks, chance ---- */

enum { WALL_S = 1700000000 };

void kernel_move_wall(double seconds)
{
    kernel.wall += (int64_t)(1e9 * seconds);
}

CALL(int, clock_gettime, clockid_t clock, struct timespec *t)
{
    bool wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
    int64_t ns = world_now_ns() + (wall ? kernel.wall + WALL_S * (int64_t)1000000000 : 0);
    *t = (struct timespec){ns / 1000000000, ns % 1000000000};
    return 0;
}

CALL(int, gettimeofday, struct timeval *t, void *zone)
{
    struct timespec now;
    (void)zone;
    __wrap_clock_gettime(CLOCK_REALTIME, &now);
    *t = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return 0;
}

CALL(ssize_t, getrandom, void *bytes, size_t n, unsigned flags)
{
    uint64_t value = draw();
    (void)flags;
    memcpy(bytes, &value, n < sizeof value ? n : sizeof value);
    return (ssize_t)n;
}

/* ---- Signals of the whole program belong to the front end. ---- */

CALL(int, prctl, int what, ...)
{
    (void)what;
    return 0;
}

typedef void handler(int number);
CALL(handler *, signal, int number, handler *to)
{
    (void)number, (void)to;
    return SIG_DFL;
}

CALL(int, pthread_sigmask, int how, const sigset_t *set, sigset_t *old)
{
    (void)how, (void)set, (void)old;
    return 0;
}

/* ---- Threads ---- */

struct thread {
    void *(*run)(void *user);
    void *user;
    struct task *task;
};

static void run_thread(void *user)
{
    struct thread *t = user;
    t->run(t->user);
}

CALL(int, pthread_create, pthread_t *thread, const pthread_attr_t *a, void *(*run)(void *), void *user)
{
    static char front; /* threads of the front end wait where it may not */
    struct thread *t = calloc(1, sizeof *t);
    (void)a;
    if (!t) {
        return EAGAIN;
    }
    *t = (struct thread){run, user, NULL};
    t->task = task_new(run_thread, t, task_owner() ? task_owner() : &front);
    memcpy(thread, &t, sizeof t);
    return 0;
}

CALL(int, pthread_join, pthread_t thread, void **result)
{
    struct thread *t;
    (void)result;
    memcpy(&t, &thread, sizeof t);
    while (!task_is_over(t->task)) {
        task_wait_until(world_now_ns() + 1000000);
    }
    task_free(t->task);
    free(t);
    return 0;
}

static struct {
    pthread_cond_t *of;
    struct task *task;
} waiting[MOST_WAITING];

CALL(int, pthread_cond_wait, pthread_cond_t *c, pthread_mutex_t *lock)
{
    int i = 0;
    while (i < MOST_WAITING && waiting[i].of) {
        i++;
    }
    if (i == MOST_WAITING) {
        world_fail("too many wait for conditions");
    }
    waiting[i].of = c;
    waiting[i].task = task_self();
    pthread_mutex_unlock(lock);
    task_wait();
    waiting[i].of = NULL;
    pthread_mutex_lock(lock);
    return 0;
}

CALL(int, pthread_cond_broadcast, pthread_cond_t *c)
{
    for (int i = 0; i < MOST_WAITING; i++) {
        if (waiting[i].of == c) {
            task_wake(waiting[i].task);
        }
    }
    return 0;
}

/* ---- The worker ---- */

void kernel_worker_is(int (*run)(int socket))
{
    kernel.run_worker = run;
}

bool kernel_has_worker(void)
{
    return kernel.worker && !kernel.worker->killed && !kernel.worker->over;
}

bool kernel_worker_is_frozen(void)
{
    return kernel_has_worker() && kernel.worker->frozen;
}

bool kernel_is_killed(void)
{
    const struct process *p = task_owner();
    return p && p == kernel.worker && p->killed;
}

static void run_process(void *user)
{
    struct process *p = user;
    int code = kernel.run_worker(p->socket);
    file_close(p->socket);
    p->over = true;
    if (!p->killed) {
        p->status = code << 8;
        raise(SIGCHLD);
    }
}

CALL(pid_t, spawn_program, char *const *arguments, int socket, int error_pipe)
{
    (void)arguments, (void)error_pipe;
    if (kernel.worker) {
        world_fail("a second worker is started beside the first");
    }
    if (draw_chance(model_plan.does_not_start)) {
        errno = EAGAIN;
        return -1;
    }
    struct process *p = kernel.worker = calloc(1, sizeof *p);
    if (!p) {
        return -1;
    }
    *p = (struct process){.pid = kernel.next_pid++, .socket = file_new(file_end(socket))};
    p->task = task_new(run_process, p, p);
    return p->pid;
}

void kernel_kill_worker(void)
{
    struct process *p = kernel.worker;
    if (!p || p->killed || p->over) {
        return;
    }
    p->killed = true;
    p->status = SIGKILL;
    end_cut(file_end(p->socket));
    task_freeze(p->task, false);
    task_wake(p->task);
    raise(SIGCHLD);
}

void kernel_freeze_worker(void)
{
    if (kernel_has_worker()) {
        kernel.worker->frozen = true;
        task_freeze(kernel.worker->task, true);
    }
}

CALL(int, kill, pid_t pid, int number)
{
    if (!kernel.worker || kernel.worker->pid != pid || number != SIGKILL) {
        errno = ESRCH;
        return -1;
    }
    kernel_kill_worker();
    return 0;
}

CALL(pid_t, waitpid, pid_t pid, int *status, int options)
{
    struct process *p = kernel.worker;
    if (!p || (pid > 0 && pid != p->pid)) {
        errno = ECHILD;
        return -1;
    }
    if ((options & WNOHANG) && !p->over && !p->killed) {
        return 0;
    }
    while (!p->over || !task_is_over(p->task)) {
        task_wait_until(world_now_ns() + 1000);
    }
    if (status) {
        *status = p->status;
    }
    pid = p->pid;
    task_free(p->task);
    free(p);
    kernel.worker = NULL;
    return pid;
}
