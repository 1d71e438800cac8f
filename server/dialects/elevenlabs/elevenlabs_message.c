/* SPDX-License-Identifier: Apache-2.0
 * Names and shapes as the client packages have them. */
#include "server/dialects/elevenlabs/elevenlabs_message.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char *const formats[] = {"mp3_22050_32", "mp3_24000_48", "mp3_44100_32", "mp3_44100_64",
    "mp3_44100_96", "mp3_44100_128", "mp3_44100_192", "pcm_8000", "pcm_16000", "pcm_22050", "pcm_24000",
    "pcm_32000", "pcm_44100", "pcm_48000", "ulaw_8000", "alaw_8000", "opus_48000_32", "opus_48000_64",
    "opus_48000_96", "opus_48000_128", "opus_48000_192", NULL};

const char *elevenlabs_format(int i)
{
    return i >= 0 && i < (int)(sizeof formats / sizeof *formats) ? formats[i] : NULL;
}

/* CODER_RATE or CODER_RATE_KILOBITS. */
static bool set_format(json_t *fields, const char *name, struct refusal *r)
{
    int i = 0;
    while (formats[i] && strcmp(formats[i], name) != 0) {
        i++;
    }
    if (!formats[i]) {
        return refuse(r, 400, "output_format",
            "the output format '%.40s' is not known (mp3_44100_128, pcm_24000, ulaw_8000, "
            "opus_48000_64 are)",
            name);
    }
    size_t n = strcspn(name, "_");
    bool law = strncmp(name + 1, "law", 3) == 0;
    char *behind;
    long rate = strtol(name + n + 1, &behind, 10);
    json_object_set_new(fields, "response_format", law ? json_string("pcm") : json_stringn(name, n));
    json_object_set_new(fields, "sample_rate", json_integer(rate));
    if (law) {
        json_object_set_new(fields, "sample_format", json_stringn(name, n));
    }
    if (*behind) {
        json_object_set_new(fields, "bit_rate", json_integer(1000 * strtol(behind + 1, NULL, 10)));
    }
    return true;
}

static bool set_seed(json_t *fields, const json_t *body, const char *query, struct refusal *r)
{
    const json_t *seed = json_object_get(body, "seed");
    char none[] = "",
         *behind = none; /* what stands behind the number of a query: nothing, if it is one */
    long long value = json_is_integer(seed) ? json_integer_value(seed)
                      : query               ? strtoll(query, &behind, 10)
                                            : 0;
    bool good = !seed || json_is_null(seed) || json_is_integer(seed);
    if (!good || *behind || value < 0 || value > UINT32_MAX) {
        return refuse(r, 400, "seed", "\"seed\" must be a whole number from 0 to 4294967295");
    }
    json_object_set_new(fields, "seed", json_integer(value));
    return true;
}

static bool set_speed(json_t *fields, const json_t *body, struct refusal *r)
{
    const json_t *settings = json_object_get(body, "voice_settings");
    const json_t *speed = json_object_get(settings, "speed");
    if (settings && !json_is_object(settings) && !json_is_null(settings)) {
        return refuse(r, 400, "voice_settings", "\"voice_settings\" must be an object");
    }
    if (!speed || json_is_null(speed)) {
        return true;
    }
    double value = json_number_value(speed);
    if (!json_is_number(speed) || !(value >= 0.25 && value <= 4)) {
        return refuse(r, 400, "voice_settings", "\"speed\" must be a number from 0.25 to 4");
    }
    json_object_set_new(fields, "speed", json_real(value));
    return true;
}

static bool is_text(const json_t *text)
{
    return json_is_string(text) && strlen(json_string_value(text)) == json_string_length(text);
}

json_t *elevenlabs_fields(
    const json_t *body, const struct elevenlabs_query *query, bool with_text, struct refusal *r)
{
    json_t *fields = json_object();
    const json_t *text = json_object_get(body, "text"), *code = json_object_get(body, "language_code");
    const char *language = json_is_string(code) ? json_string_value(code) : query->language_code;
    bool good = fields != NULL;
    if (!good) {
        refuse(r, 503, NULL, "out of memory");
    } else if (with_text && !is_text(text)) {
        good = refuse(r, 422, "text", "\"text\" must be a string without NUL");
    }
    good = good &&
           set_format(fields, query->output_format ? query->output_format : "mp3_44100_128", r) &&
           set_seed(fields, body, query->seed, r) && set_speed(fields, body, r);
    if (good && with_text) {
        json_object_set_new(fields, "input", json_string(json_string_value(text)));
    }
    if (good && language && *language) {
        json_object_set_new(fields, "language", json_string(language));
    }
    if (!good) {
        json_decref(fields);
        return NULL;
    }
    return fields;
}

static bool take_flag(const json_t *json, const char *name, bool *flag, struct refusal *r)
{
    const json_t *value = json_object_get(json, name);
    *flag = json_is_true(value);
    return !value || json_is_boolean(value) || json_is_null(value)
               ? true
               : refuse(r, 400, name, "\"%s\" must be true or false", name);
}

bool elevenlabs_read(struct elevenlabs_message *m, const json_t *json, struct refusal *r)
{
    const json_t *text = json_object_get(json, "text"), *context = json_object_get(json, "context_id");
    *m = (struct elevenlabs_message){.context = ""};
    if (!json_is_object(json)) {
        return refuse(r, 400, NULL, "a message must be a JSON object");
    }
    if (context && !json_is_null(context)) {
        if (!is_text(context) || json_string_length(context) > 128) {
            return refuse(r, 400, "context_id", "\"context_id\" must be a string of at most 128 bytes");
        }
        m->context = json_string_value(context);
    }
    if (text && !json_is_null(text)) {
        if (!is_text(text)) {
            return refuse(r, 400, "text", "\"text\" must be a string without NUL");
        }
        m->text = json_string_value(text);
        m->bytes = json_string_length(text);
    }
    return take_flag(json, "flush", &m->flush, r) &&
           take_flag(json, "close_context", &m->close_context, r) &&
           take_flag(json, "close_socket", &m->close_socket, r);
}

/* ---- Back ---- */

void elevenlabs_alignment_begin(struct elevenlabs_alignment *a, bool of_socket, double from_s)
{
    *a = (struct elevenlabs_alignment){json_array(), json_array(), json_array(), of_socket, from_s};
}

void elevenlabs_alignment_letter(
    void *user, const char *letter, size_t bytes, double start_s, double end_s)
{
    struct elevenlabs_alignment *a = user;
    json_t *text = json_stringn(letter, bytes);
    double start = start_s - a->from_s, end = end_s - a->from_s;
    /* A part of a letter is no text. */
    json_array_append_new(a->letters, text ? text : json_string(""));
    if (a->of_socket) {
        /* Whole milliseconds that do not drift: each letter ends where the next one begins. */
        long long from = llround(1e3 * start), to = llround(1e3 * end);
        json_array_append_new(a->starts, json_integer(from));
        json_array_append_new(a->others, json_integer(to - from));
    } else {
        json_array_append_new(a->starts, json_real(start));
        json_array_append_new(a->others, json_real(end));
    }
}

json_t *elevenlabs_alignment_end(struct elevenlabs_alignment *a)
{
    if (json_array_size(a->letters) == 0) {
        json_decref(a->letters);
        json_decref(a->starts);
        json_decref(a->others);
        return json_null();
    }
    return a->of_socket
               ? json_pack("{s:o,s:o,s:o}", "chars", a->letters, "charStartTimesMs", a->starts,
                     "charDurationsMs", a->others)
               : json_pack("{s:o,s:o,s:o}", "characters", a->letters, "character_start_times_seconds",
                     a->starts, "character_end_times_seconds", a->others);
}

static const char *status_word(const struct refusal *r)
{
    return r->code            ? r->code
           : r->status == 401 ? "invalid_api_key"
           : r->status == 404 ? "not_found"
           : r->status == 422 ? "validation_error"
           : r->status == 429 ? "too_many_concurrent_requests"
           : r->status == 503 ? "system_busy"
           : r->status >= 500 ? "internal_error"
                              : "invalid_request";
}

json_t *elevenlabs_refusal(const struct refusal *r)
{
    return json_pack("{s:{s:s,s:s,s:s?}}", "detail", "status", status_word(r), "message", r->message,
        "param", r->param[0] ? r->param : NULL);
}

json_t *elevenlabs_error(const struct refusal *r, const char *context)
{
    json_t *json = json_pack("{s:s,s:s,s:i}", "message", r->message, "error", status_word(r), "code",
        r->status >= 500 ? 1011 : 1008);
    if (json && *context) {
        json_object_set_new(json, "contextId", json_string(context));
    }
    return json;
}
