/* SPDX-License-Identifier: Apache-2.0
 * Waiting for the GPU. A thread that spins would have a core of its own for as long as somebody speaks: it sleeps
 * through most of a wait, whose length is known from those before, looks all the time around its end, and now and
 * then where that is late. */
#ifndef CUDA_DEVICE_WAIT_H
#define CUDA_DEVICE_WAIT_H

#include "cuda/device/device.h"

/* One wait on its way: naps and looks in turn, a nap first. */
struct cuda_wait {
    double begin; /* on the clock */
    double awake; /* when the first nap, through most of the wait, was over; 0: not yet */
    double first; /* how long that nap is, in seconds; 0: there is none */
    double usual; /* how long such a wait takes at least, in seconds; 0: not known */
    int n_looks;
};

/* usual_s: how long such a wait takes at least, 0: not known; then the first nap is none. */
struct cuda_wait cuda_wait_begin(double usual_s);
void cuda_wait_nap(struct cuda_wait *wait);
double cuda_waited(const struct cuda_wait *wait);
/* How long the GPU may take for it before it is given up, in seconds: the device's patience where nothing is known, and
 * a tenth of it beyond many times the usual length: whoever listens to a GPU that has stopped is told soon. */
double cuda_wait_patience(const struct cuda_wait *wait, const struct cuda_device *device);

/* Until the event has come, or the device's patience has ended: then it is given up. */
utter_status cuda_wait_for(
    struct cuda_device *device, cudaEvent_t event, const char *what, utter_error *error);
/* The same for a wait that has begun, and that can be asked how long it was. */
utter_status cuda_wait_on(struct cuda_device *device, struct cuda_wait *wait, cudaEvent_t event,
    const char *what, utter_error *error);
/* The same until a stream has done all that was queued on it. */
utter_status cuda_wait_stream(
    struct cuda_device *device, cudaStream_t stream, const char *what, utter_error *error);

/* Between two tries of what was refused or lost, the first with i = 0: others may hold what it needs for a while. */
void cuda_wait_refused(int i);

/* Keeps the least of the last waits in *usual_s; at the end of a wait. One without a look says nothing. */
void cuda_wait_note(double *usual_s, const struct cuda_wait *wait);

#endif
