/* SPDX-License-Identifier: Apache-2.0
 * Sleeps, looks, and gives a device up that does not answer. */
#include "cuda/device/wait.h"

#include <time.h>

#include "base/clock.h"

#ifndef CUDA_MOST_NAP_S /* a build for a device that goes on only while it is asked sets less */
#define CUDA_MOST_NAP_S 1
#endif

static const double EARLY_S =
    0.00012; /* the first nap ends so long before the usual end; the kernel adds 60 us */
static const double LOOKING_S = 0.0001; /* without naps, then */
/* Who finds the end at the first look has slept too long: how long the wait was is not known then, but that it was
 * shorter. Otherwise naps as long as the longest wait would make all waits that long. */
static const double TOO_LONG = 0.75;
static const double SHORT_NAP_S = 0.00001; /* the kernel makes 60 to 70 microseconds of it */
/* A wait of known length: 2 s of 20, and 10 times as long as usual. The frame kernel, which says by itself that a frame
 * is lost, counts clocks: a tenth of a second, and half of one on a GPU that is slowed down to its least clock. */
static const double KNOWN_PART = 0.1, KNOWN_TIMES = 10;

struct cuda_wait cuda_wait_begin(double usual_s)
{
    const double nap = usual_s > EARLY_S ? usual_s - EARLY_S : 0;
    return (struct cuda_wait){.begin = clock_seconds(),
        .first = nap < CUDA_MOST_NAP_S ? nap : CUDA_MOST_NAP_S,
        .usual = usual_s};
}

static void sleep_for(double seconds)
{
    struct timespec t = {.tv_sec = (time_t)seconds};
    t.tv_nsec = (long)(1e9 * (seconds - (double)t.tv_sec));
    nanosleep(&t, NULL);
}

void cuda_wait_nap(struct cuda_wait *wait)
{
    wait->n_looks++; /* one follows */
    if (wait->awake == 0) {
        if (wait->first > 0) {
            sleep_for(wait->first);
        }
        wait->awake = clock_seconds();
    } else if (clock_seconds() - wait->awake > LOOKING_S) {
        sleep_for(SHORT_NAP_S);
    }
}

double cuda_waited(const struct cuda_wait *wait)
{
    return clock_seconds() - wait->begin;
}

double cuda_wait_patience(const struct cuda_wait *wait, const struct cuda_device *device)
{
    const double known = KNOWN_PART * device->patience_s + KNOWN_TIMES * wait->usual;
    return wait->usual > 0 && known < device->patience_s ? known : device->patience_s;
}

/* event NULL: all of the stream. The patience counts from here on: a frame may have been made again before. */
static utter_status look_until(struct cuda_device *device, struct cuda_wait *wait, cudaEvent_t event,
    cudaStream_t stream, const char *what, utter_error *error)
{
    const double end = clock_seconds() + cuda_wait_patience(wait, device);
    cudaError_t result;
    do {
        cuda_wait_nap(wait);
        const bool late =
            clock_seconds() > end; /* before the GPU is asked: this thread may have stood still */
        result = event ? cudaEventQuery(event) : cudaStreamQuery(stream);
        if (result == cudaErrorNotReady && late) {
            return cuda_device_give_up(device, error);
        }
    } while (result == cudaErrorNotReady);
    return cuda_device_check(device, result, what, error);
}

utter_status cuda_wait_on(struct cuda_device *device, struct cuda_wait *wait, cudaEvent_t event,
    const char *what, utter_error *error)
{
    return look_until(device, wait, event, NULL, what, error);
}

utter_status cuda_wait_for(
    struct cuda_device *device, cudaEvent_t event, const char *what, utter_error *error)
{
    struct cuda_wait wait = cuda_wait_begin(0);
    return look_until(device, &wait, event, NULL, what, error);
}

utter_status cuda_wait_stream(
    struct cuda_device *device, cudaStream_t stream, const char *what, utter_error *error)
{
    struct cuda_wait wait = cuda_wait_begin(0);
    return look_until(device, &wait, NULL, stream, what, error);
}

void cuda_wait_refused(int i)
{
    static const double first = 0.002;
    sleep_for(i == 0 ? first : 5 * first);
}

void cuda_wait_note(double *usual_s, const struct cuda_wait *wait)
{
    if (wait->n_looks == 0) { /* all had ended before: how long it takes was not seen */
        return;
    }
    double waited_s = cuda_waited(wait);
    if (wait->first > 0 && wait->n_looks == 1) {
        *usual_s *= TOO_LONG;
        return;
    }
    *usual_s = *usual_s == 0 || waited_s < 1.05 * *usual_s ? waited_s : 1.05 * *usual_s;
}
