/* SPDX-License-Identifier: Apache-2.0
 * More comes than fits, for ten minutes: what those who are in hear, and what the others are told. */
#ifndef SIM_OVERLOAD_H
#define SIM_OVERLOAD_H

/* Of one model shape, or -1: of all; at one rate (in times of what fits), or 0: at all. Returns the exit status. */
int overload_run(int shape, double only);

#endif
