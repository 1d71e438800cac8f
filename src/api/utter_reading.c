/* SPDX-License-Identifier: Apache-2.0
 * Readings behind utter.h. */
#include "api/api.h"
#include "reading/reading.h"

void utter_reading_options_init_sized(utter_reading_options *options, size_t size)
{
    const utter_reading_options all = {.retries = 2,
        .live = true,
        .lanes = 1,
        .clause_pause_s = 0.15,
        .sentence_pause_s = 0.35,
        .paragraph_pause_s = 0.7};
    api_init_sized(options, size, &all, sizeof all);
}

static bool is_pause(double seconds)
{
    return seconds >= 0 && seconds <= 60;
}

static utter_status check(const utter_reading_options *o, utter_error *error)
{
    bool good = o->retries >= 0 && o->retries <= 100 && o->lanes >= 1 && o->max_frames >= 0 &&
                (o->piece_length == 0 || (o->piece_length >= 20 && o->piece_length <= 10000)) &&
                is_pause(o->clause_pause_s) && is_pause(o->sentence_pause_s) &&
                is_pause(o->paragraph_pause_s);
    return good ? UTTER_OK
                : error_set(error, UTTER_E_ARGUMENT,
                      "an option of the reading is out of range (retries 0 to 100, lanes from 1, "
                      "max_frames from 0, "
                      "piece_length 20 to 10000, pauses 0 to 60 s)");
}

utter_status utter_reading_open(utter_reading **reading, utter_model *model,
    const utter_stream_options *voice, const utter_reading_options *options, utter_error *error)
{
    utter_stream_options v;
    utter_reading_options o;
    utter_status status = api_need(reading && model ? model : NULL, "reading or model", error);
    if (status) {
        return status;
    }
    *reading = NULL;
    utter_stream_options_init(&v, model);
    utter_reading_options_init(&o);
    if ((voice && (status = api_copy_sized(
                       &v, sizeof v, voice, voice->size, "utter_stream_options", error))) ||
        (options && (status = api_copy_sized(
                         &o, sizeof o, options, options->size, "utter_reading_options", error))) ||
        (status = check(&o, error))) {
        return status;
    }
    return reading_open(reading, &model->engine, &v, &o, error);
}

utter_status utter_reading_text(
    utter_reading *reading, const char *text, size_t bytes, utter_error *error)
{
    utter_status status = api_need(reading && text ? reading : NULL, "reading or text", error);
    return status ? status : reading_text(reading, text, bytes, error);
}

utter_status utter_reading_finish(utter_reading *reading, utter_error *error)
{
    utter_status status = api_need(reading, "reading", error);
    return status ? status : reading_finish(reading, error);
}

utter_status utter_reading_take(
    utter_reading *reading, float *pcm, size_t capacity, size_t *n, utter_error *error)
{
    utter_status status = api_need_room(reading, pcm, capacity, n, error);
    return status ? status : reading_take(reading, pcm, capacity, n, error);
}

utter_status utter_reading_read(
    utter_reading *reading, float *pcm, size_t capacity, size_t *n, utter_error *error)
{
    utter_status status = utter_reading_take(reading, pcm, capacity, n, error);
    while (status == UTTER_AGAIN) {
        struct engine *engine = reading_engine(reading);
        if (!reading_ready(reading)) {
            status = engine_check(engine, error);
            return status ? status : utter_reading_take(reading, pcm, capacity, n, error);
        }
        status = engine_step(engine, true, error);
        if (status < 0) {
            return status;
        }
        status = utter_reading_take(reading, pcm, capacity, n, error);
    }
    return status;
}

void utter_reading_hold(utter_reading *reading, bool held)
{
    if (reading) {
        reading_hold(reading, held);
    }
}

void utter_reading_cancel(utter_reading *reading)
{
    if (reading) {
        reading_cancel(reading);
    }
}

void utter_reading_free(utter_reading **reading)
{
    if (reading) {
        reading_free(reading);
    }
}

utter_status utter_reading_get_stats(const utter_reading *reading, utter_reading_stats *stats)
{
    if (!reading || !stats) {
        return UTTER_E_ARGUMENT;
    }
    utter_reading_stats full;
    reading_stats(reading, &full);
    full.size = stats->size;
    return api_copy_sized(stats, stats->size, &full, sizeof full, "utter_reading_stats", NULL);
}
