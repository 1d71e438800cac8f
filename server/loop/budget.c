/* SPDX-License-Identifier: Apache-2.0
 * A bucket of messages and one of bytes, each filled at an even rate. */
#include "server/loop/budget.h"

#include "base/minmax.h"

/* A model that writes text says 200 words a second at most; a whole page comes as one message of some kilobytes. */
static const double messages_a_second = 500, bytes_a_second = 1 << 20;
/* What may come at once after a silence: two seconds' worth. */
static const double burst_s = 2;

void budget_begin(struct budget *b, double now)
{
    *b = (struct budget){burst_s * messages_a_second, burst_s * bytes_a_second, now};
}

static double filled(double have, double rate, double seconds)
{
    return min(have + rate * seconds, burst_s * rate);
}

double budget_take(struct budget *b, double now, size_t bytes)
{
    b->messages = filled(b->messages, messages_a_second, now - b->at) - 1;
    b->bytes = filled(b->bytes, bytes_a_second, now - b->at) - (double)bytes;
    b->at = now;
    return max(0.0, max(-b->messages / messages_a_second, -b->bytes / bytes_a_second));
}
