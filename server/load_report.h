/* SPDX-License-Identifier: Apache-2.0
 * What a load run has seen, and its table. */
#ifndef SERVER_LOAD_REPORT_H
#define SERVER_LOAD_REPORT_H

#include "server/load.h"

enum load_outcome { LOAD_GOOD, LOAD_REFUSED, LOAD_BROKEN };

/* Of one request; times in seconds from when it was sent. */
struct load_sample {
    enum load_outcome outcome;
    int status;     /* of HTTP, 0: no answer */
    double first_s; /* first sound */
    double
        audible_s; /* first sample above -50 dB, as it is heard: arrival plus the silence before it */
    double total_s, audio_s;
    double gap_s;     /* longest time between two arrivals */
    double starved_s; /* longest time in which the listener had nothing left */
};

/* Prints the table, or one object of JSON. The samples are sorted in place. */
void load_print(
    const struct load_options *o, struct load_sample *samples, int n, int most_at_once, double wall_s);

#endif
