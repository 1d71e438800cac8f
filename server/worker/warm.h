/* SPDX-License-Identifier: Apache-2.0
 * What a worker does before its first client comes. */
#ifndef SERVER_WARM_H
#define SERVER_WARM_H

#include "server/worker/schedule.h"
#include "server/worker/slot.h"

/* Every path once, with one lane and, where that is quick, with all, so that the first client waits for nothing that is
 * made only once; and the clock learns what steps cost, up to the width that no longer pays, so that of those who come
 * at once no more are promised a lane than the device is quick for. The slots, n_lanes of them, are zero before and
 * afterwards. Fails only when the model is broken. */
utter_status warm_up(utter_model *model, struct slot *slots, int n_lanes, struct schedule_clock *clock,
    utter_error *error);

#endif
