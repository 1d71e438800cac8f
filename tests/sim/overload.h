/* SPDX-License-Identifier: Apache-2.0
 * More comes than fits, for ten minutes: what those who are in hear, and what the others are told. */
#ifndef SIM_OVERLOAD_H
#define SIM_OVERLOAD_H

#include <stdint.h>

/* Of one model shape, or -1: of all; at one rate (in times of what fits), or 0: at all. Another
 * seed is another draw of who comes when. Returns the exit status. */
int overload_run(int shape, double only, int n_workers, uint64_t seed);
/* At once, from the first second on: one in fifty may hear a gap, and the first sound comes within the patience.
 * Returns the exit status. */
int overload_burst(double times);
/* Ten times what fits for a model slower than hearing: who is let in hears the first sound about as soon as where it is
 * not full, and there nobody is refused. Returns the exit status. */
int overload_crowd(void);
/* A server that was measured, foretold from the times of its steps: at one rate, or 0: at all. Returns the exit status:
 * 1 where that is off by more than a tenth. */
int overload_predict(double only);

#endif
