/* SPDX-License-Identifier: Apache-2.0
 * Ctrl-C, SIGTERM and SIGHUP: the first one ends the speech, the second one kills the program. */
#ifndef CLI_INTERRUPT_H
#define CLI_INTERRUPT_H

#include <stdbool.h>

#include "utter.h"

/* From now on the first signal cancels the reading, if it is not NULL. False when the system refuses. */
bool interrupt_watch(utter_reading *reading);
/* Before the reading is freed. A later signal is only noted. */
void interrupt_forget(void);
/* The signal that came, or 0. */
int interrupt_signal(void);
/* Waits until `descriptor` can be read or a signal came. With `wait` false only looks. True: it can be read. */
bool interrupt_poll(int descriptor, bool wait);

#endif
