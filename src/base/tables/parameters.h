/* SPDX-License-Identifier: Apache-2.0
 * How the two heads choose their codes (utter_sampling): one row a parameter. The library's checks, the command line,
 * the JSON of requests and the messages of the server's processes all go by this table. */
#ifndef BASE_PARAMETERS_H
#define BASE_PARAMETERS_H

#include <stdbool.h>
#include <stddef.h>

#include "utter.h"

enum { MOST_PARAMETERS = 16 }; /* room for values of all; parameter_count says how many there are */

/* The default of each is the checkpoint's. */
struct parameter {
    const char *name;   /* in C: a member of utter_stream_options, which errors of the library name */
    const char *option; /* on the command line, after "--" */
    const char *field;  /* in JSON */
    size_t offset;      /* of the member */
    bool predictor;     /* it is the predictor's, else the talker's */
    bool greedy;        /* 0 is the likeliest code, always: what --greedy sets */
    bool integer;       /* an int, else a float */
    bool above;         /* `low` itself is not allowed */
    double low, high;   /* what the library takes; high INFINITY: no bound */
    double least_json;  /* what JSON may ask for is from here */
    double most_asked;  /* to here; so is what the command line may */
    const char *help;   /* of the option */
};

/* In the order of the help. */
extern const struct parameter parameter_table[];
extern const int parameter_count;

/* What stands for the checkpoint's own where a value must be there: NAN, or -1 for an integer. */
double parameter_own(const struct parameter *p);

double parameter_get(const struct parameter *p, const utter_stream_options *options);
/* Leaves the options as they are where the value is NAN, or a negative integer. */
void parameter_set(const struct parameter *p, utter_stream_options *options, double value);

/* Whether the library takes all of them; the first that it does not take is the error. */
utter_status parameters_check(const utter_stream_options *options, utter_error *error);

#endif
