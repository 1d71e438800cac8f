/* SPDX-License-Identifier: Apache-2.0
 * When frames wait for their sound. */
#include "engine/pace.h"

/* Of the time that is expected: machines are not even. */
static const double margin = 1.5;
/* So much waiting tells that frames one by one are not fast enough. */
static const double most_waited_s = 0.1;

bool pace_waits(const struct pace *pace, int n, double ahead)
{
    if (pace->waited_s > most_waited_s && pace->codes_s + pace->sound_s > pace->frame_s) {
        return true; /* there are pauses whatever is done: fewer and longer ones then, and often no more at all */
    }
    return ahead > margin * (pace->codes_s + (n + 1) * pace->sound_s);
}
