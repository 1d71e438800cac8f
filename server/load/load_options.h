/* SPDX-License-Identifier: Apache-2.0
 * What `utter load` was asked for. */
#ifndef SERVER_LOAD_OPTIONS_H
#define SERVER_LOAD_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct load_options {
    const char *host, *voice, *key; /* voice, key: NULL is none */
    int port;
    double rate;    /* requests a second, Poisson arrivals; or 0 and */
    int listeners;  /* each asks again when it has heard the last one out, */
    bool eager;     /* or as soon as it has all of it */
    double seconds; /* in which requests are sent */
    int least_words, most_words;
    int word_frames; /* at most so many frames a word, for models that do not end; 0: no such bound */
    uint64_t seed;
    double limit_ms; /* goodput: first audible sound within it, and never a gap */
    bool json;
};

#endif
