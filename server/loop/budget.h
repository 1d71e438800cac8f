/* SPDX-License-Identifier: Apache-2.0
 * What one client may ask of the front end's thread in a second: so many messages, so many bytes. Who asks for more is
 * not refused but read later, so that the others have their turn. */
#ifndef SERVER_BUDGET_H
#define SERVER_BUDGET_H

#include <stddef.h>

/* Messages and bytes that may be read at once; negative: more have been read than there was room for. */
struct budget {
    double messages, bytes;
    double at; /* when they were counted last, in seconds */
};

void budget_begin(struct budget *b, double now);
/* Takes one message of so many bytes. Returns for how many seconds nothing more should be read; 0: go on. */
double budget_take(struct budget *b, double now, size_t bytes);

#endif
