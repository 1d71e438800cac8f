/* SPDX-License-Identifier: Apache-2.0
 * What a load run has seen, and its table. */
#ifndef SERVER_LOAD_REPORT_H
#define SERVER_LOAD_REPORT_H

#include "server/load/load_options.h"

enum load_outcome { LOAD_GOOD, LOAD_REFUSED, LOAD_BROKEN };

/* Of one request; times in seconds from when it was sent. */
struct load_sample {
    enum load_outcome outcome;
    int status;     /* of HTTP, 0: no answer */
    double first_s; /* first sound */
    /* First sample above -50 dB, as it is heard: arrival plus the silence before it */
    double audible_s;
    double total_s, audio_s;
    double gap_s;     /* longest time between two arrivals */
    double starved_s; /* longest time in which the listener had nothing left */
    int n_starved;    /* how often, and in all */
    double starved_all_s;
};

/* Times between two pieces of an answer, over all answers, in bins of 0.1 ms; the last one holds what is longer. */
enum { LOAD_BINS = 20001, LOAD_BINS_A_SECOND = 10000 };

struct load_seen {
    struct load_sample *samples; /* [n], room for n_room */
    int n, n_room, most_at_once;
    double wall_s;
    uint32_t gaps[LOAD_BINS];
};

/* Prints the table, or one object of JSON. */
void load_print(const struct load_options *o, const struct load_seen *seen);

#endif
