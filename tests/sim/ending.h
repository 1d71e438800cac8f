/* SPDX-License-Identifier: Apache-2.0
 * Who has just connected, or is about to, when the server is told to stop. */
#ifndef SIM_ENDING_H
#define SIM_ENDING_H

/* The program's exit code. */
int ending_run(void);

#endif
