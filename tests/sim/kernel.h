/* SPDX-License-Identifier: Apache-2.0
 * The system that the server is linked to in here: descriptors, epoll, signals, processes, threads. The linker gives
 * the server these functions in place of those of the C library (--wrap), and libevent, too. */
#ifndef SIM_KERNEL_H
#define SIM_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/sim/world.h"

/* One end of a stream. */
struct end;

/* What a client is told, as it happens: it may send and close in there, not wait. */
struct end_watch {
    void (*came)(void *user); /* there is something to take, or to see that it has ended */
    void (*room)(void *user); /* what was sent is being read: more may be */
};

void kernel_begin(void);
/* All descriptors are closed and all processes are gone: fails otherwise. */
void kernel_end(void);

/* NULL: nobody listens. */
struct end *kernel_connect(const struct end_watch *watch, void *user, uint32_t address);
/* Takes up to n bytes; *ended: the other one writes no more, and this was all. */
size_t end_take(struct end *e, uint8_t *bytes, size_t n, bool *ended);
size_t end_waiting(const struct end *e);
/* How many were taken over. */
size_t end_send(struct end *e, const void *bytes, size_t n);
bool end_is_cut(const struct end *e);      /* the other one has closed */
void end_shut(struct end *e);              /* sends no more */
void end_is_of(struct end *e, void *user); /* whom its watch is called with */
void end_close(struct end *e, bool reset);

/* The worker: what it is (main.c of a worker, given its socket), and its faults. */
void kernel_worker_is(int (*run)(int socket));
bool kernel_has_worker(void);
void kernel_kill_worker(void);
void kernel_freeze_worker(void); /* it moves no more, until it is killed */
bool kernel_worker_is_frozen(void);
bool kernel_is_killed(void); /* the process of the task that runs */

/* The clock on the wall is put so many seconds forward or back. */
void kernel_move_wall(double seconds);
/* Seconds of a processor that the front end takes for a call, and for a KiB. */
void kernel_set_costs(double call_s, double kib_s);

/* Called whenever the front end has nothing to do at this moment. */
void kernel_on_idle(void (*look)(void));

#endif
