/* SPDX-License-Identifier: Apache-2.0
 * How much of a long piece of work is done, for whoever asked to be told. */
#ifndef BASE_PROGRESS_H
#define BASE_PROGRESS_H

#include "base/error.h"

struct progress {
    bool (*tell)(void *user, double done); /* 0 to 1; false stops the work. NULL: nobody asked */
    void *user;
    const char *what;   /* for the message of a work that was stopped: "the packing" */
    double from, share; /* the stage that runs: where it begins in the whole, and its part of that */
    double done, all;   /* of the stage, in any unit */
};

/* Begins the next stage, `share` of the whole. `progress` may be NULL in both. */
void progress_begin(struct progress *progress, double share, double all);
/* Some more of the stage is done. UTTER_E_CANCELLED when the rest is not wanted. */
utter_status progress_add(struct progress *progress, double more, utter_error *error);

#endif
