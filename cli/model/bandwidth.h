/* SPDX-License-Identifier: Apache-2.0
 * How fast this machine reads memory: the limit that the bench stands beside. */
#ifndef CLI_BANDWIDTH_H
#define CLI_BANDWIDTH_H

/* Reads a large block with `n_threads` threads (0: one a core), several times, and returns the best in 1e9
 * bytes a second; 0 when it could not be measured. It runs in a process of its own, so that its block does not
 * count in this one's peak memory; call it before any thread is started. */
double bandwidth_measure(int n_threads);

#endif
