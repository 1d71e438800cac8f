/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/cuda_wait.h"

#include <time.h>

static const double FIRST_NAP = 0.5;       /* of the usual wait */
static const double SHORT_NAP_S = 0.00001; /* the kernel makes 60 microseconds of it */

double cuda_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct cuda_wait cuda_wait_begin(double usual_s)
{
    return (struct cuda_wait){cuda_seconds(), FIRST_NAP * usual_s};
}

void cuda_wait_nap(struct cuda_wait *wait)
{
    struct timespec t = {.tv_sec = (time_t)wait->next};
    t.tv_nsec = (long)(1e9 * (wait->next - (double)t.tv_sec));
    if (wait->next > 0) {
        nanosleep(&t, NULL);
    }
    wait->next = SHORT_NAP_S;
}

double cuda_waited(const struct cuda_wait *wait)
{
    return cuda_seconds() - wait->begin;
}

void cuda_wait_note(double *usual_s, double waited_s)
{
    *usual_s = *usual_s == 0 || waited_s < 1.05 * *usual_s ? waited_s : 1.05 * *usual_s;
}
