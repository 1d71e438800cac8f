/* SPDX-License-Identifier: Apache-2.0
 * One life of the server: it starts, serves, meets what the seed has for it, and stops. */
#ifndef SIM_LIFE_H
#define SIM_LIFE_H

#include <stdbool.h>
#include <stdint.h>

struct server;

/* The server that runs, or NULL. */
struct server *life_server(void);
/* Any life; returns its seconds. Fails, with the command that repeats it, when a promise is broken. */
double life_run(uint64_t seed);

#endif
