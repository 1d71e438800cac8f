/* SPDX-License-Identifier: Apache-2.0
 * One life of the server: it starts, serves, meets what the seed has for it, and stops. */
#ifndef SIM_LIFE_H
#define SIM_LIFE_H

#include <stdbool.h>
#include <stdint.h>

#include "server/loop/serve_options.h"

struct server;

/* The server that runs, or NULL. */
struct server *life_server(void);
/* A life that `prepare` gives a model, alarms, and what its options have of their own; returns its seconds. */
double life_live(uint64_t seed, void (*prepare)(struct serve_options *options));
/* Ends one that nothing else ends. At once: all who are there are cut off. */
void life_stop(bool at_once);
/* From now on calls of the front end fail in each life. */
void life_calls_fail(bool fail);
/* Likewise allocations, those of workers, too. */
void life_memory_lacks(bool lacks);
/* Any life; returns its seconds. Fails, with the command that repeats it, when a promise is broken. */
double life_run(uint64_t seed);

#endif
