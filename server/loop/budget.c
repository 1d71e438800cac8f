/* SPDX-License-Identifier: Apache-2.0
 * Buckets, each filled at an even rate. */
#include "server/loop/budget.h"

#include "base/minmax.h"

/* A model that writes text says 200 words a second at most; a whole page comes as one message of some kilobytes. After
 * a silence as much as in two seconds may come at once. */
static const struct bucket_rate message_rate = {500, 1000}, byte_rate = {1 << 20, 2 << 20};

struct bucket bucket_full(const struct bucket_rate *rate, double now)
{
    return (struct bucket){rate->at_once, now};
}

void bucket_fill(struct bucket *b, const struct bucket_rate *rate, double now)
{
    b->left = min(b->left + rate->a_second * (now - b->at), rate->at_once);
    b->at = now;
}

double bucket_take(struct bucket *b, const struct bucket_rate *rate, double now, double n)
{
    bucket_fill(b, rate, now);
    b->left = max(b->left - n, -rate->at_once);
    return max(0.0, -b->left / rate->a_second);
}

void budget_begin(struct budget *b, double now)
{
    *b = (struct budget){bucket_full(&message_rate, now), bucket_full(&byte_rate, now)};
}

double budget_take(struct budget *b, double now, size_t bytes)
{
    double messages = bucket_take(&b->messages, &message_rate, now, 1);
    return max(messages, bucket_take(&b->bytes, &byte_rate, now, (double)bytes));
}
