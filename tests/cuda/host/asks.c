/* SPDX-License-Identifier: Apache-2.0
 * Threads that ask for words of memory until these change, which is most of what some kernels do. One that asks for
 * what it has seen before, and finds it as it was, rests until a word of its loop changes: those that it has asked
 * for since. What it would have done meanwhile is to ask and find nothing new. A loop may also end for another
 * reason (somebody gives up), so everybody who rests asks again from time to time. */
#include "tests/cuda/host/scheduler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ASKED = 16, MOST_BYTES = 16 };

struct ask {
    const void *at;
    size_t bytes;
    unsigned char seen[MOST_BYTES];
};

struct asks {
    unsigned n;    /* all; the last MOST_ASKED of them are kept */
    unsigned loop; /* of a thread that rests: how many it asks for in a round */
    unsigned more; /* that it asks for without a rest */
    struct ask of[MOST_ASKED];
};

static struct ask *back(struct asks *a, unsigned n)
{
    return &a->of[(a->n - n) % MOST_ASKED];
}

/* How many asks ago it was asked for; 0: not lately. */
static unsigned how_long_ago(struct asks *a, const void *at)
{
    for (unsigned n = 1; n <= MOST_ASKED && n <= a->n; n++) {
        if (back(a, n)->at == at) {
            return n;
        }
    }
    return 0;
}

bool ask_has_news(const struct fiber *f)
{
    struct asks *a = &f->of->asks[f->thread.thread];
    for (unsigned n = 1; n <= a->loop; n++) {
        const struct ask *one = back(a, n);
        if (memcmp(one->at, one->seen, one->bytes) != 0) {
            return true;
        }
    }
    return false;
}

static void note(struct asks *a, const void *at, size_t bytes)
{
    struct ask *one = &a->of[a->n++ % MOST_ASKED];
    one->at = at;
    one->bytes = bytes;
    memcpy(one->seen, at, bytes);
}

static struct asks *asks_of(const struct fiber *f)
{
    struct block *b = f->of;
    if (!b->asks) {
        b->asks = calloc((size_t)b->of->n_threads, sizeof *b->asks);
    }
    return &b->asks[f->thread.thread];
}

void host_ask(const void *at, size_t bytes)
{
    struct asks *a = asks_of(fiber_now);
    const unsigned ago = how_long_ago(a, at);
    const bool known = ago > 0 && memcmp(back(a, ago)->seen, at, bytes) == 0;
    run_now()->news |= !known;
    fiber_now->waits_for = "a word";
    if (a->more > 0) {
        a->more--;
    } else if (known) {
        a->loop = ago;
        fiber_leave(FIBER_RESTS);
        a->more = ago - 1;
    } else if (host_chance(4) > 0) { /* not always: the load behind such a loop comes at once, too */
        fiber_leave(FIBER_YIELDS);
    }
    note(a, at, bytes);
}

void host_rest_until_changed(const void *at, size_t bytes, const char *name)
{
    struct asks *a = asks_of(fiber_now);
    note(a, at, bytes);
    a->loop = 1;
    fiber_now->waits_for = name;
    fiber_leave(FIBER_RESTS);
}

void ask_tell(const struct fiber *f)
{
    if (!f->of->asks || f->of->asks[f->thread.thread].n == 0) {
        return;
    }
    const struct ask *one = back(&f->of->asks[f->thread.thread], 1);
    if (host_is_shared(one->at)) {
        fprintf(stderr, " at %08x of shared memory", host_shared_address(one->at));
    } else {
        fprintf(stderr, " at %p", one->at);
    }
    fprintf(stderr, ", and finds ");
    for (size_t i = one->bytes; i > 0; i--) {
        fprintf(stderr, "%02x", one->seen[i - 1]);
    }
}
