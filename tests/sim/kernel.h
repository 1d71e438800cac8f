/* SPDX-License-Identifier: Apache-2.0
 * The system that the server is linked to in here: descriptors, epoll, signals, processes, threads. The linker gives
 * the server these functions in place of those of the C library (--wrap), and libevent, too. */
#ifndef SIM_KERNEL_H
#define SIM_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

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

/* NULL: nobody listens, or nobody is let in any more. The client has connected; the server hears of it when the last
 * packet of the handshake arrives. */
struct end *kernel_connect(
    const struct end_watch *watch, void *user, uint32_t address, struct end **theirs);
/* It has arrived. The client is reset if nobody listens then. */
void kernel_end_handshake(struct end *theirs);
/* Takes up to n bytes; *ended: the other one writes no more, and this was all. */
size_t end_take(struct end *e, uint8_t *bytes, size_t n, bool *ended);
size_t end_waiting(const struct end *e);
/* How many were taken over. */
size_t end_send(struct end *e, const void *bytes, size_t n);
bool end_is_cut(const struct end *e);      /* the other one has closed */
void end_shut(struct end *e);              /* sends no more */
void end_is_of(struct end *e, void *user); /* whom its watch is called with */
void end_close(struct end *e, bool reset);

enum { KERNEL_DEVICES = 4, KERNEL_WORKERS = KERNEL_DEVICES + 1 }; /* one for what nobody waits for */

/* The workers: what one is (main.c of a worker, given its socket), how many there may be, and their faults. */
void kernel_worker_is(int (*run)(int socket));
void kernel_most_workers(int n);
/* One that lives, drawn of all; 0: there is none. */
pid_t kernel_draw_worker(void);
void kernel_kill_worker(pid_t pid);   /* nothing, where it does not live */
void kernel_freeze_worker(pid_t pid); /* it moves no more, until it is killed */
void kernel_kill_frozen(void);
bool kernel_is_stopped(pid_t pid); /* by the front end */
bool kernel_is_killed(void);       /* the process of the task that runs */

/* Calls that may fail. */
enum failing {
    FAILS_ACCEPT,
    FAILS_READ,
    FAILS_WRITE,
    FAILS_PAIR,
    FAILS_WATCH,
    FAILS_THREAD,
    FAILS_MEMORY,        /* of the front end and its threads */
    FAILS_WORKER_MEMORY, /* of a worker */
    N_FAILING
};
struct failed_calls {
    uint64_t n[N_FAILING], n_lasting; /* of those, with all that came within a second */
};

/* So many of its calls about descriptors fail the front end: once, and some of them for a second or less; 0: none do.
 * What a stream loses by that is gone for both of its ends. */
void kernel_fail_calls(double of_one);
/* Likewise of allocations, those of workers, too. */
void kernel_lack_memory(double of_one);
bool kernel_lacked_memory(void); /* the front end, in this life */
/* At so many places of the program, each with those that called it, memory was lacking in all lives. */
int kernel_places_without_memory(void);
/* Adds those of this life. */
void kernel_count_failed(struct failed_calls *all);
/* A call about it failed: it may end without a word. */
bool end_is_lost(const struct end *e);
/* The front end may not know that it can write there again, until a deadline ends it. */
bool end_is_unwatched(const struct end *e);

/* The clock on the wall is put so many seconds forward or back. */
void kernel_move_wall(double seconds);
/* Seconds of a processor that the front end takes for a call, and for a KiB. */
void kernel_set_costs(double call_s, double kib_s);

/* Called whenever the front end has nothing to do at this moment. */
void kernel_on_idle(void (*look)(void));

#endif
