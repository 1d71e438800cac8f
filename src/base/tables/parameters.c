/* SPDX-License-Identifier: Apache-2.0
 * The table of sampling parameters, and its values in the options of a stream. */
#include "base/tables/parameters.h"

#include <math.h>

#include "base/error.h"

#define MEMBER(member) .name = #member, .offset = offsetof(utter_stream_options, member)

const struct parameter parameter_table[] = {
    {MEMBER(talker.temperature), .option = "temperature", .field = "temperature", .greedy = true,
        .high = 100, .most_asked = 100,
        .help =
            "0 is greedy (default of this and the next six: the checkpoint's generation_config.json)"},
    {MEMBER(talker.top_k), .option = "top-k", .field = "top_k", .integer = true, .high = INFINITY,
        .most_asked = 1000000, .help = "choose among the N likeliest, 0 is off"},
    {MEMBER(talker.top_p), .option = "top-p", .field = "top_p", .above = true, .high = 1,
        .least_json = 1e-6, .most_asked = 1,
        .help = "choose among the likeliest that make up X, 1 is off"},
    {MEMBER(talker.repetition_penalty), .option = "repetition-penalty", .field = "repetition_penalty",
        .above = true, .high = 1000, .least_json = 1e-3, .most_asked = 100, .help = "1 is off"},
    {MEMBER(predictor.temperature), .option = "sub-temperature", .field = "subtalker_temperature",
        .predictor = true, .greedy = true, .high = 100, .most_asked = 100,
        .help = "the same for the predictor, which makes the finer codes"},
    {MEMBER(predictor.top_k), .option = "sub-top-k", .field = "subtalker_top_k", .predictor = true,
        .integer = true, .high = INFINITY, .most_asked = 1000000, .help = "the same"},
    {MEMBER(predictor.top_p), .option = "sub-top-p", .field = "subtalker_top_p", .predictor = true,
        .above = true, .high = 1, .least_json = 1e-6, .most_asked = 1, .help = "the same"},
};

const int parameter_count = sizeof parameter_table / sizeof *parameter_table;
_Static_assert(sizeof parameter_table / sizeof *parameter_table <= MOST_PARAMETERS, "no room");

double parameter_own(const struct parameter *p)
{
    return p->integer ? -1 : NAN;
}

double parameter_get(const struct parameter *p, const utter_stream_options *options)
{
    const void *at = (const char *)options + p->offset;
    return p->integer ? *(const int *)at : (double)*(const float *)at;
}

void parameter_set(const struct parameter *p, utter_stream_options *options, double value)
{
    void *at = (char *)options + p->offset;
    if (p->integer && value >= 0) {
        *(int *)at = (int)value;
    } else if (!p->integer && !isnan(value)) {
        *(float *)at = (float)value;
    }
}

utter_status parameters_check(const utter_stream_options *options, utter_error *error)
{
    for (const struct parameter *p = parameter_table; p < parameter_table + parameter_count; p++) {
        double value = parameter_get(p, options);
        if ((p->above ? value > p->low : value >= p->low) && value <= p->high) {
            continue;
        }
        if (isinf(p->high)) {
            return error_set(
                error, UTTER_E_ARGUMENT, "%s %.0f is not at least %g", p->name, value, p->low);
        }
        return error_set(error, UTTER_E_ARGUMENT,
            p->above ? "%s %g is not above %g and at most %g" : "%s %g is not in %g..%g", p->name,
            value, p->low, p->high);
    }
    return UTTER_OK;
}
