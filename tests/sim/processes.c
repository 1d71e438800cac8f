/* SPDX-License-Identifier: Apache-2.0
 * Clocks, signals, threads, and the processes that the front end starts: workers. One that is killed does nothing any
 * more that others could see; then it goes to its own end, so that its memory comes back. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
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

static char front; /* threads of the front end wait where it may not */

pid_t kernel_pid(void)
{
    const void *owner = task_owner();
    return owner && owner != &front ? ((const struct process *)owner)->pid : 0;
}

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
    (void)a;
    if (call_fails(FAILS_THREAD)) {
        return EAGAIN;
    }
    struct thread *t = world_new(sizeof *t);
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

/* ---- The workers ---- */

void kernel_worker_is(int (*run)(int socket))
{
    kernel.run_worker = run;
}

void kernel_most_workers(int n)
{
    kernel.most_workers = n;
}

static bool lives(const struct process *p)
{
    return p && !p->killed && !p->over;
}

/* Where it is kept; NULL: nowhere. */
static struct process **find(pid_t pid)
{
    for (int i = 0; i < KERNEL_WORKERS; i++) {
        if (kernel.workers[i] && kernel.workers[i]->pid == pid) {
            return &kernel.workers[i];
        }
    }
    return NULL;
}

pid_t kernel_draw_worker(void)
{
    int from = draw_below(KERNEL_WORKERS);
    for (int i = 0; i < KERNEL_WORKERS; i++) {
        const struct process *p = kernel.workers[(from + i) % KERNEL_WORKERS];
        if (lives(p)) {
            return p->pid;
        }
    }
    return 0;
}

bool kernel_is_killed(void)
{
    const void *self = task_owner();
    for (int i = 0; self && i < KERNEL_WORKERS; i++) {
        if (kernel.workers[i] == self) {
            return kernel.workers[i]->killed;
        }
    }
    return false;
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
    int i = 0;
    (void)arguments, (void)error_pipe;
    while (i < kernel.most_workers && kernel.workers[i]) {
        i++;
    }
    if (i == kernel.most_workers) {
        world_fail("one more worker is started than there are devices");
    }
    if (draw_chance(model_plan.does_not_start)) {
        errno = EAGAIN;
        return -1;
    }
    struct process *p = kernel.workers[i] = world_new(sizeof *p);
    *p = (struct process){.pid = kernel.next_pid++, .socket = file_new(file_end(socket))};
    p->task = task_new(run_process, p, p);
    return p->pid;
}

void kernel_kill_worker(pid_t pid)
{
    struct process **at = find(pid), *p = at ? *at : NULL;
    if (!lives(p)) {
        return;
    }
    p->killed = true;
    p->status = SIGKILL;
    end_cut(file_end(p->socket));
    tasks_freeze(p, false);
    task_wake(p->task);
    raise(SIGCHLD);
}

void kernel_freeze_worker(pid_t pid)
{
    struct process **at = find(pid);
    if (at && lives(*at)) {
        (*at)->frozen = true;
        tasks_freeze(*at, true);
    }
}

void kernel_kill_frozen(void)
{
    for (int i = 0; i < KERNEL_WORKERS; i++) {
        if (lives(kernel.workers[i]) && kernel.workers[i]->frozen) {
            kernel_kill_worker(kernel.workers[i]->pid);
        }
    }
}

/* All processes in here are one: it stays as it is. */
CALL(int, sched_setscheduler, pid_t pid, int policy, const struct sched_param *parameters)
{
    (void)pid, (void)policy, (void)parameters;
    return 0;
}

CALL(int, kill, pid_t pid, int number)
{
    if (!find(pid) || number != SIGKILL) {
        errno = ESRCH;
        return -1;
    }
    kernel_kill_worker(pid);
    return 0;
}

CALL(bool, spawn_still, pid_t pid, bool still)
{
    struct process **at = find(pid);
    if (at && lives(*at)) {
        (*at)->stopped = still;
        tasks_freeze(*at, still || (*at)->frozen);
    }
    return at;
}

bool kernel_is_stopped(pid_t pid)
{
    struct process **at = find(pid);
    return at && lives(*at) && (*at)->stopped;
}

/* The place of one that may be waited for: that one, or with -1 any. */
static struct process **find_ended(pid_t pid)
{
    for (int i = 0; i < KERNEL_WORKERS; i++) {
        const struct process *p = kernel.workers[i];
        if (p && (pid == -1 || p->pid == pid) && (p->over || p->killed)) {
            return &kernel.workers[i];
        }
    }
    return NULL;
}

CALL(pid_t, waitpid, pid_t pid, int *status, int options)
{
    struct process **at = find_ended(pid);
    if (!at && (options & WNOHANG) && (pid == -1 || find(pid))) {
        return 0;
    }
    at = at ? at : find(pid);
    if (!at) {
        errno = ECHILD;
        return -1;
    }
    struct process *p = *at;
    while (!p->over || !task_is_over(p->task)) {
        task_wait_until(world_now_ns() + 1000);
    }
    if (status) {
        *status = p->status;
    }
    pid = p->pid;
    task_free(p->task);
    free(p);
    *at = NULL;
    return pid;
}
