/* SPDX-License-Identifier: Apache-2.0
 * Names and shapes as the client packages have them. */
#include "server/dialects/deepgram/deepgram_message.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_text(const json_t *text)
{
    return json_is_string(text) && strlen(json_string_value(text)) == json_string_length(text);
}

static bool take_number(
    const char *text, const char *name, double low, double high, double *number, struct refusal *r)
{
    char *behind;
    if (!text) {
        return true;
    }
    *number = strtod(text, &behind);
    return behind != text && *behind == 0 && *number >= low && *number <= high
               ? true
               : refuse(r, 400, name, "\"%s\" must be a number from %g to %g", name, low, high);
}

/* Which format an encoding in a container is: "linear16" without one is raw on a socket, WAV in a request. */
static bool set_format(
    json_t *fields, const struct deepgram_query *query, bool whole, struct refusal *r)
{
    static const struct {
        const char *encoding, *format, *samples;
    } encodings[] = {{"linear16", NULL, "s16"}, {"mulaw", NULL, "ulaw"}, {"alaw", NULL, "alaw"},
        {"mp3", "mp3", NULL}, {"opus", "opus", NULL}, {"flac", "flac", NULL}, {"aac", "aac", NULL}};
    const char *encoding = query->encoding ? query->encoding : whole ? "mp3" : "linear16";
    const char *container = query->container ? query->container : whole ? "wav" : "none";
    size_t i = 0, n = whole ? 7 : 3;
    while (i < n && strcmp(encodings[i].encoding, encoding) != 0) {
        i++;
    }
    if (i == n) {
        return refuse(r, 400, "encoding", "the encoding '%.20s' is not known here (%s are)", encoding,
            whole ? "linear16, mulaw, alaw, mp3, opus, flac and aac" : "linear16, mulaw and alaw");
    }
    if (strcmp(container, "none") != 0 && strcmp(container, "wav") != 0 &&
        strcmp(container, "ogg") != 0) {
        return refuse(r, 400, "container", "the container '%.20s' is not known (none, wav and ogg are)",
            container);
    }
    bool wav = whole && strcmp(container, "wav") == 0;
    json_object_set_new(fields, "response_format",
        json_string(encodings[i].format ? encodings[i].format
                    : wav               ? "wav"
                                        : "pcm"));
    if (encodings[i].samples) {
        json_object_set_new(fields, "sample_format", json_string(encodings[i].samples));
    }
    bool telephone = i == 1 || i == 2;
    double rate = telephone ? 8000 : 24000, bit_rate = 0;
    if (!take_number(query->sample_rate, "sample_rate", 8000, 48000, &rate, r) ||
        !take_number(query->bit_rate, "bit_rate", 6000, 320000, &bit_rate, r)) {
        return false;
    }
    if (query->sample_rate || telephone) {
        json_object_set_new(fields, "sample_rate", json_integer((json_int_t)rate));
    }
    if (bit_rate > 0) {
        json_object_set_new(fields, "bit_rate", json_integer((json_int_t)bit_rate));
    }
    return true;
}

json_t *deepgram_fields(const struct deepgram_query *query, const json_t *body, struct refusal *r)
{
    json_t *fields = json_object();
    const json_t *text = json_object_get(body, "text");
    double speed = 1;
    bool good = fields ? true : refuse(r, 503, NULL, "out of memory");
    if (good && body && !is_text(text)) {
        good = refuse(r, 400, "text", "the body must be {\"text\": a string without NUL}");
    }
    good = good && set_format(fields, query, body != NULL, r) &&
           take_number(query->speed, "speed", 0.25, 4, &speed, r);
    if (good) {
        json_object_set_new(fields, "speed", json_real(speed));
    }
    if (good && body) {
        json_object_set_new(fields, "input", json_string(json_string_value(text)));
    }
    if (!good) {
        json_decref(fields);
        return NULL;
    }
    return fields;
}

/* {"type": "time_ms", "value": N} */
static bool take_offset(struct deepgram_message *m, const json_t *json, struct refusal *r)
{
    const json_t *offset = json_object_get(json, "playback_offset");
    const json_t *value = json_object_get(offset, "value");
    const char *type = json_string_value(json_object_get(offset, "type"));
    m->played_ms = -1;
    if (!offset || json_is_null(offset)) {
        return true;
    }
    m->played_ms = json_number_value(value);
    return type && strcmp(type, "time_ms") == 0 && json_is_number(value) && m->played_ms >= 0
               ? true
               : refuse(r, 400, "playback_offset",
                     "\"playback_offset\" must be {\"type\": \"time_ms\", \"value\": MILLISECONDS}");
}

bool deepgram_read(struct deepgram_message *m, const json_t *json, bool flux, struct refusal *r)
{
    static const struct {
        const char *type;
        bool aura, flux;
    } kinds[] = {{"Speak", true, true}, {"Flush", true, true}, {"Clear", true, false},
        {"Interrupt", false, true}, {"Configure", false, true}, {"Close", true, true}};
    const char *type = json_string_value(json_object_get(json, "type"));
    const json_t *text = json_object_get(json, "text"), *speed = json_object_get(json, "speed");
    size_t i = 0;
    *m = (struct deepgram_message){.played_ms = -1};
    while (type && i < 6 &&
           (strcmp(kinds[i].type, type) != 0 || !(flux ? kinds[i].flux : kinds[i].aura))) {
        i++;
    }
    if (!type || i == 6) {
        return refuse(r, 400, "type", "\"type\" must be %s",
            flux ? "Speak, Flush, Interrupt, Configure or Close" : "Speak, Flush, Clear or Close");
    }
    m->kind = (enum deepgram_kind)i;
    if (m->kind == DEEPGRAM_SPEAK) {
        if (!is_text(text)) {
            return refuse(r, 400, "text", "\"text\" must be a string without NUL");
        }
        m->text = json_string_value(text);
        m->bytes = json_string_length(text);
    }
    if (m->kind == DEEPGRAM_CONFIGURE) {
        m->speed = json_is_number(speed) ? json_number_value(speed) : -1;
    }
    return m->kind != DEEPGRAM_INTERRUPT || take_offset(m, json, r);
}

/* ---- Back ---- */

static json_t *metadata(const struct deepgram_turn *turn)
{
    return json_pack("{s:s,s:I,s:I,s:I,s:{s:i,s:i,s:i}}", "speech_id", turn->id, "audio_duration_ms",
        (json_int_t)llround(1e3 * turn->seconds), "input_character_count", (json_int_t)turn->chars,
        "billable_character_count", (json_int_t)turn->chars, "controls_applied",
        "pronunciations_applied", 0, "breaks_applied", 0, "pronunciation_warnings", 0);
}

json_t *deepgram_speech_metadata(const struct deepgram_turn *turn)
{
    json_t *m = metadata(turn);
    json_object_set_new(m, "type", json_string("SpeechMetadata"));
    return m;
}

json_t *deepgram_interrupted(
    const struct deepgram_turn *turn, double played_ms, const char *text, size_t n, long long spoken)
{
    json_t *m = json_pack("{s:s,s:s,s:I,s:o}", "type", "SpeechInterrupted", "speech_id", turn->id,
        "audio_played_ms", (json_int_t)llround(played_ms), "metadata", metadata(turn));
    if (m && spoken >= 0) {
        size_t rest = (size_t)spoken;
        while (rest < n && strchr(" \t\r\n", text[rest])) { /* no zero ends the text */
            rest++;
        }
        json_object_set_new(m, "text_spoken", json_stringn(text, (size_t)spoken));
        json_object_set_new(m, "text_remaining", json_stringn(text + rest, n - rest));
    }
    return m;
}

json_t *deepgram_warning(const char *code, const char *what)
{
    return json_pack(
        "{s:s,s:s,s:s,s:s}", "type", "Warning", "code", code, "description", what, "warn_msg", what);
}

static const char *code_of(const struct refusal *r)
{
    return r->status == 401   ? "INVALID_AUTH"
           : r->status == 404 ? "INVALID_MODEL"
           : r->status == 429 ? "TOO_MANY_REQUESTS"
           : r->status == 503 ? "SERVICE_UNAVAILABLE"
           : r->status >= 500 ? "INTERNAL_SERVER_ERROR"
                              : "INVALID_REQUEST";
}

json_t *deepgram_error(const struct refusal *r)
{
    return json_pack("{s:s,s:s,s:s,s:s,s:s}", "type", "Error", "code", code_of(r), "description",
        r->message, "err_code", code_of(r), "err_msg", r->message);
}

json_t *deepgram_refusal(const struct refusal *r)
{
    return json_pack("{s:s,s:s}", "err_code", code_of(r), "err_msg", r->message);
}
