/* SPDX-License-Identifier: Apache-2.0
 * Clock, draws, alarms in a heap, and tasks on stacks of their own. Whoever waits lets the next one run; where nobody
 * can, the clock goes on to the next alarm. */
#include "tests/sim/world.h"

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <ucontext.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

enum { STACK_BYTES = 256 << 10, MOST_TASKS = 64, MOST_ALARMS = 1 << 16 };
static const int64_t begin_ns = 1000000000000; /* a machine that has been up for a while */

struct task {
    LIST_ENTRY(task) entry;
    jmp_buf at;
    ucontext_t first;
    void (*run)(void *user);
    void *user, *owner;
    uint8_t *stack;
    bool begun, over, queued, frozen, woken;
    struct alarm alarm;
    void *fake; /* of the sanitizer: what it keeps of the stack */
};

static struct {
    uint64_t random, digest, n_alarms_set;
    int64_t now;
    char command[512];
    FILE *says, *fails;
    struct alarm *alarms[MOST_ALARMS + 1]; /* a heap from 1 on */
    size_t n_alarms;
    struct task first, *current;
    struct task *ready[MOST_TASKS];
    int n_ready, n_tasks;
    LIST_HEAD(, task) all;       /* until they are freed */
    uint8_t *stacks[MOST_TASKS]; /* free ones */
    int n_stacks;
} world;

static void say_death(void)
{
    static const char words[] = "FAILED: the program died\n    again: ";
    if (write(fileno(world.fails), words, sizeof words - 1) < 0 ||
        write(fileno(world.fails), world.command, strlen(world.command)) < 0 ||
        write(fileno(world.fails), "\n", 1) < 0) {
        _exit(3);
    }
}

#ifndef __SANITIZE_ADDRESS__ /* which says more */
static void die(int number)
{
    say_death();
    _exit(128 + number);
}

static void catch_death(void)
{
    static const int deadly[] = {SIGSEGV, SIGBUS, SIGFPE, SIGABRT};
    static uint8_t stack[STACK_BYTES];
    const stack_t aside = {.ss_sp = stack, .ss_size = sizeof stack};
    const struct sigaction action = {.sa_handler = die, .sa_flags = SA_ONSTACK};
    sigaltstack(&aside, NULL);
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++) {
        sigaction(deadly[i], &action, NULL);
    }
}
#endif

void world_open(void)
{
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_set_death_callback(say_death);
#else
    catch_death();
#endif
    world.says = fdopen(dup(STDOUT_FILENO), "w");
    world.fails = fdopen(dup(STDERR_FILENO), "w");
    if (!world.says || !world.fails || !freopen("/dev/null", "w", stdout)) {
        abort();
    }
#ifndef __SANITIZE_ADDRESS__ /* which says what it finds there */
    if (!freopen("/dev/null", "w", stderr)) {
        abort();
    }
#endif
}

void world_say(const char *what, ...)
{
    va_list list;
    va_start(list, what);
    vfprintf(world.says, what, list);
    va_end(list);
    fflush(world.says);
}

void world_begin(uint64_t seed)
{
    if (world.n_alarms != 0 || world.n_tasks != 0) {
        world_fail("the life before has left %zu alarms and %d tasks", world.n_alarms, world.n_tasks);
    }
    world.random = seed * 0xD1342543DE82EF95u + 1;
    world.digest = seed;
    world.n_alarms_set = 0;
    world.now = begin_ns;
    world.first = (struct task){.begun = true};
    world.current = &world.first;
    world.n_ready = 0;
}

void world_repeat(const char *command)
{
    snprintf(world.command, sizeof world.command, "%s", command);
}

void world_fail(const char *what, ...)
{
    va_list list;
    fprintf(world.fails, "FAILED at %.3f s: ", 1e-9 * (double)(world.now - begin_ns));
    va_start(list, what);
    vfprintf(world.fails, what, list);
    va_end(list);
    fprintf(world.fails, "\n    again: %s\n", world.command);
    fflush(world.fails);
    _Exit(1);
}

void world_note(uint64_t what)
{
    world.digest = (world.digest ^ what) * 0x9E3779B97F4A7C15u;
    world.digest ^= world.digest >> 29;
}

uint64_t world_digest(void)
{
    return world.digest;
}

int64_t world_now_ns(void)
{
    return world.now;
}

double world_now(void)
{
    return 1e-9 * (double)world.now;
}

void world_spend(double seconds)
{
    world.now += (int64_t)(1e9 * seconds);
}

/* ---- Draws ---- */

/* SplitMix64. */
uint64_t draw(void)
{
    uint64_t z = world.random += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

double draw_unit(void)
{
    return (double)(draw() >> 11) * 0x1p-53;
}

double draw_between(double from, double to)
{
    return from + (to - from) * draw_unit();
}

double draw_wait(double mean)
{
    return -mean * log(1 - draw_unit());
}

int draw_below(int n)
{
    return (int)(draw() % (uint64_t)n);
}

bool draw_chance(double of_one)
{
    return draw_unit() < of_one;
}

/* ---- Alarms ---- */

static bool rings_before(const struct alarm *a, const struct alarm *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void put_alarm(struct alarm *a, size_t place)
{
    world.alarms[place] = a;
    a->place = place;
}

static void sift(struct alarm *a, size_t place)
{
    while (place > 1 && rings_before(a, world.alarms[place / 2])) {
        put_alarm(world.alarms[place / 2], place);
        place /= 2;
    }
    for (size_t below; (below = 2 * place) <= world.n_alarms; place = below) {
        below += below < world.n_alarms && rings_before(world.alarms[below + 1], world.alarms[below]);
        if (!rings_before(world.alarms[below], a)) {
            break;
        }
        put_alarm(world.alarms[below], place);
    }
    put_alarm(a, place);
}

static void alarm_set_at(struct alarm *a, int64_t at, void (*ring)(void *user), void *user)
{
    alarm_clear(a);
    if (world.n_alarms == MOST_ALARMS) {
        world_fail("too many alarms");
    }
    a->at = at;
    a->order = ++world.n_alarms_set;
    a->ring = ring;
    a->user = user;
    sift(a, ++world.n_alarms);
}

void alarm_set(struct alarm *a, double seconds, void (*ring)(void *user), void *user)
{
    alarm_set_at(a, world.now + (int64_t)(1e9 * (seconds > 0 ? seconds : 0)), ring, user);
}

void alarm_clear(struct alarm *a)
{
    if (a->place == 0) {
        return;
    }
    struct alarm *last = world.alarms[world.n_alarms--];
    size_t place = a->place;
    a->place = 0;
    if (last != a) {
        sift(last, place);
    }
}

static void ring_next(void)
{
    if (world.n_alarms == 0) {
        world_fail("everybody waits, and nothing will ever wake anybody");
    }
    struct alarm *a = world.alarms[1];
    alarm_clear(a);
    world.now = a->at > world.now ? a->at : world.now;
    a->ring(a->user);
}

/* ---- Tasks ---- */

struct task *task_self(void)
{
    return world.current;
}

void *task_owner(void)
{
    return world.current->owner;
}

bool task_is_over(const struct task *t)
{
    return t->over;
}

int task_count(void)
{
    return world.n_tasks;
}

void task_wake(struct task *t)
{
    if (!t || t->queued || t->over) {
        return;
    }
    t->woken = true;
    if (!t->frozen) {
        t->queued = true;
        world.ready[world.n_ready++] = t;
    }
}

/* It was to run next; it is woken when it may. */
static void leave_ready(struct task *t)
{
    for (int i = 0; t->queued && i < world.n_ready; i++) {
        if (world.ready[i] == t) {
            world.ready[i] = world.ready[--world.n_ready];
            t->queued = false;
        }
    }
}

void tasks_freeze(const void *owner, bool frozen)
{
    struct task *t;
    LIST_FOREACH(t, &world.all, entry)
    {
        if (t->owner == owner) {
            t->frozen = frozen;
            if (frozen) {
                leave_ready(t);
            } else if (t->woken) {
                task_wake(t);
            }
        }
    }
}

static struct task *take_ready(void)
{
    if (world.n_ready == 0) {
        return NULL;
    }
    int i = world.n_ready > 1 ? draw_below(world.n_ready) : 0;
    struct task *t = world.ready[i];
    world.ready[i] = world.ready[--world.n_ready];
    t->queued = t->woken = false;
    return t;
}

static void arrive(void)
{
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(world.current->fake, NULL, NULL);
#endif
}

static _Noreturn void task_end(void);

static void task_begin(void)
{
    arrive();
    world.current->run(world.current->user);
    task_end();
}

/* To another task; back when somebody has chosen this one again. */
static void switch_to(struct task *next)
{
    struct task *self = world.current;
    world.current = next;
#ifdef __SANITIZE_ADDRESS__
    static const void *main_stack;
    static size_t main_bytes;
    if (!main_stack) {
        __sanitizer_start_switch_fiber(&self->fake, NULL, 0);
        __sanitizer_finish_switch_fiber(self->fake, &main_stack, &main_bytes);
    }
    __sanitizer_start_switch_fiber(self->over ? NULL : &self->fake,
        next->stack ? next->stack : main_stack, next->stack ? STACK_BYTES : main_bytes);
#endif
    if (_setjmp(self->at) == 0) {
        if (next->begun) {
            _longjmp(next->at, 1);
        }
        next->begun = true;
        setcontext(&next->first);
    }
    arrive();
}

void task_wait(void)
{
    struct task *self = world.current, *next;
    while (!(next = take_ready())) {
        ring_next();
    }
    if (next != self) {
        switch_to(next);
    }
}

static void ring_task(void *user)
{
    task_wake(user);
}

void task_wait_until(int64_t at_ns)
{
    struct task *self = world.current;
    if (at_ns <= world.now) { /* others have their turn nevertheless */
        task_wake(self);
    } else {
        alarm_set_at(&self->alarm, at_ns, ring_task, self);
    }
    task_wait();
    alarm_clear(&self->alarm);
}

static _Noreturn void task_end(void)
{
    struct task *self = world.current;
    self->over = true;
    world.n_tasks--;
    task_wake(&world.first); /* it may wait for this one */
    struct task *next;
    while (!(next = take_ready())) {
        ring_next();
    }
    switch_to(next);
    abort();
}

struct task *task_new(void (*run)(void *user), void *user, void *owner)
{
    struct task *t = world_new(sizeof *t);
    if (world.n_tasks == MOST_TASKS - 1) {
        world_fail("too many tasks");
    }
    t->stack = world.n_stacks ? world.stacks[--world.n_stacks]
                              : mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (t->stack == MAP_FAILED || getcontext(&t->first) != 0) {
        world_fail("no stack");
    }
    t->first.uc_stack.ss_sp = t->stack;
    t->first.uc_stack.ss_size = STACK_BYTES;
    makecontext(&t->first, task_begin, 0);
    t->run = run;
    t->user = user;
    t->owner = owner;
    world.n_tasks++;
    LIST_INSERT_HEAD(&world.all, t, entry);
    task_wake(t);
    return t;
}

void task_free(struct task *t)
{
    if (!t->over || world.n_stacks == MOST_TASKS) {
        world_fail("a task is freed that is not over");
    }
    world.stacks[world.n_stacks++] = t->stack;
    LIST_REMOVE(t, entry);
    free(t);
}
