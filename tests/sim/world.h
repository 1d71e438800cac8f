/* SPDX-License-Identifier: Apache-2.0
 * A world that one seed decides: a clock that moves when nobody has anything to do, draws, alarms, and tasks, which are
 * what threads and processes are elsewhere. One thread runs all of it, so that a seed always gives the same life. */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the program says goes to these; what the server says of itself, to nobody. Call it once. */
void world_open(void);
void world_say(const char *what, ...) __attribute__((format(printf, 1, 2)));
/* Begins: the clock stands at the same time in each life. */
void world_begin(uint64_t seed);
/* Says what is wrong, and the command that shows it again; ends the program. */
_Noreturn void world_fail(const char *what, ...) __attribute__((format(printf, 1, 2)));
/* The command that repeats this life, for world_fail. */
void world_repeat(const char *command);
/* Everything that happened goes into one number: two lives of one seed have the same. */
void world_note(uint64_t what);
uint64_t world_digest(void);

/* Memory of the world itself, which never lacks any; given back by free(). Zeroed, where it is new. */
void *world_new(size_t bytes);
void *world_grow(void *block, size_t bytes);

double world_now(void);
int64_t world_now_ns(void);
/* Whoever computes takes time: the clock goes on by so much, and nobody else moves. */
void world_spend(double seconds);

/* ---- Draws ---- */
uint64_t draw(void);
double draw_unit(void); /* 0 to 1 */
double draw_between(double from, double to);
double draw_wait(double mean); /* until the next of events that come by chance */
int draw_below(int n);
bool draw_chance(double of_one);

/* ---- Alarms: zero them; they lie in what they are for. ---- */
struct alarm {
    int64_t at;
    uint64_t order;
    size_t place; /* in the heap, from 1 on; 0: it is not set */
    void (*ring)(void *user);
    void *user;
};

void alarm_set(struct alarm *a, double seconds, void (*ring)(void *user), void *user);
void alarm_clear(struct alarm *a);

/* ---- Tasks ---- */
struct task;

/* It runs when others wait. `owner` is what it belongs to, for task_owner. */
struct task *task_new(void (*run)(void *user), void *user, void *owner);
void *task_owner(void); /* of the one that runs; NULL: of the first */
struct task *task_self(void);
/* Waits until somebody wakes it, which may be for nothing: callers look again. */
void task_wait(void);
void task_wake(struct task *t); /* accepts NULL */
/* Waits until the time has come, or it is woken. */
void task_wait_until(int64_t at_ns);
/* While they are frozen, all tasks of this owner, they do not move, whoever wakes them. */
void tasks_freeze(const void *owner, bool frozen);
bool task_is_over(const struct task *t);
void task_free(struct task *t); /* one that is over */
int task_count(void);           /* that are not over, beside the first */

#endif
