/* SPDX-License-Identifier: Apache-2.0
 * What one client may ask of the front end's thread in a second: so many messages, so many bytes. Who asks for more is
 * not refused but read later, so that the others have their turn. */
#ifndef SERVER_BUDGET_H
#define SERVER_BUDGET_H

#include <stddef.h>

/* What may be taken, as of a time in seconds; negative: more has been taken than was there, of which so much is
 * forgotten that who stops is free again soon. It is filled at an even rate, up to `at_once`; the least is -at_once. */
struct bucket {
    double left, at;
};
struct bucket_rate {
    double a_second, at_once;
};

/* A full one. */
struct bucket bucket_full(const struct bucket_rate *rate, double now);
void bucket_fill(struct bucket *b, const struct bucket_rate *rate, double now);
/* Takes so many. Returns for how many seconds nothing more should be taken; 0: go on. */
double bucket_take(struct bucket *b, const struct bucket_rate *rate, double now, double n);

/* Of the heads of requests and the messages of one connection. */
struct budget {
    struct bucket messages, bytes;
};

void budget_begin(struct budget *b, double now);
/* Takes one message of so many bytes. Returns for how many seconds nothing more should be read; 0: go on. */
double budget_take(struct budget *b, double now, size_t bytes);

#endif
