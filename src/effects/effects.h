/* SPDX-License-Identifier: Apache-2.0
 * Speed, rate and loudness of sound that is already made, as a stream: what the server, `utter say` and `utter read`
 * offer beside the model. Samples in, samples out. */
#ifndef EFFECTS_H
#define EFFECTS_H

#include <stdbool.h>
#include <stddef.h>

struct effects_settings {
    double speed, volume; /* 1 is as it is */
    int sample_rate;      /* of what comes out; 0: as it comes in */
};

struct effects;

/* NULL when out of memory. */
struct effects *effects_new(const struct effects_settings *settings, int rate);
/* *pcm[*n] becomes what comes out, the caller's own samples or the effects' (until the next call); `final` flushes
 * everything. False when out of memory. */
bool effects_feed(struct effects *e, float **pcm, size_t *n, bool final);
void effects_free(struct effects *e);      /* accepts NULL */
int effects_rate(const struct effects *e); /* of what comes out */
/* Whether it costs next to nothing: neither speed nor rate. */
bool effects_are_light(const struct effects *e);

#endif
