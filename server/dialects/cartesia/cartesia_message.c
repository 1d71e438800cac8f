/* SPDX-License-Identifier: Apache-2.0
 * Names and shapes as the client packages have them. */
#include "server/dialects/cartesia/cartesia_message.h"

#include <string.h>

static bool is_text(const json_t *text)
{
    return json_is_string(text) && strlen(json_string_value(text)) == json_string_length(text);
}

static const json_t *given(const json_t *json, const char *name)
{
    const json_t *value = json_object_get(json, name);
    return json_is_null(value) ? NULL : value;
}

static bool take_flag(const json_t *json, const char *name, bool *flag, struct refusal *r)
{
    const json_t *value = given(json, name);
    *flag = json_is_true(value);
    return !value || json_is_boolean(value)
               ? true
               : refuse(r, 400, name, "\"%s\" must be true or false", name);
}

static bool take_number(
    const json_t *json, const char *name, double low, double high, double *number, struct refusal *r)
{
    const json_t *value = given(json, name);
    if (!value) {
        return true;
    }
    *number = json_number_value(value);
    return json_is_number(value) && *number >= low && *number <= high
               ? true
               : refuse(r, 400, name, "\"%s\" must be a number from %g to %g", name, low, high);
}

static bool take_string(
    const json_t *json, const char *name, size_t most, const char **text, struct refusal *r)
{
    const json_t *value = given(json, name);
    if (value && (!is_text(value) || json_string_length(value) > most)) {
        return refuse(
            r, 400, name, "\"%s\" must be a string of at most %zu bytes without NUL", name, most);
    }
    *text = value ? json_string_value(value) : *text;
    return true;
}

/* "ID", {"id": "ID"} or {"mode": "id", "id": "ID"}. */
static bool take_voice(const json_t *json, const char **voice, struct refusal *r)
{
    const json_t *value = given(json, "voice");
    const json_t *id = json_is_object(value) ? json_object_get(value, "id") : value;
    if (value && (!is_text(id) || json_string_length(id) > 200)) {
        return refuse(r, 400, "voice", "\"voice\" must be {\"mode\": \"id\", \"id\": ID}");
    }
    *voice = id ? json_string_value(id) : NULL;
    return true;
}

bool cartesia_read(struct cartesia_message *m, const json_t *json, struct refusal *r)
{
    const json_t *transcript = given(json, "transcript");
    double delay_ms = 3000;
    *m = (struct cartesia_message){.context = ""};
    bool good = take_string(json, "context_id", 128, &m->context, r) &&
                take_voice(json, &m->voice, r) && take_flag(json, "continue", &m->goes_on, r) &&
                take_flag(json, "flush", &m->flush, r) && take_flag(json, "cancel", &m->cancel, r) &&
                take_flag(json, "add_timestamps", &m->add_timestamps, r) &&
                take_number(json, "max_buffer_delay_ms", 0, 5000, &delay_ms, r);
    m->delay_s = delay_ms / 1000;
    if (!good || m->cancel) {
        return good;
    }
    if (!is_text(transcript)) {
        return refuse(r, 400, "transcript", "\"transcript\" must be a string without NUL");
    }
    m->transcript = json_string_value(transcript);
    m->bytes = json_string_length(transcript);
    return true;
}

/* The sound: {container, encoding, sample_rate, bit_rate}. */
static bool set_format(json_t *fields, const json_t *format, bool raw, struct refusal *r)
{
    static const char *const encodings[][2] = {
        {"pcm_s16le", "s16"}, {"pcm_f32le", "f32"}, {"pcm_mulaw", "ulaw"}, {"pcm_alaw", "alaw"}};
    const char *container = "raw", *encoding = "pcm_f32le", *samples = NULL;
    double rate = 44100, bit_rate = 128000;
    if (format && !json_is_object(format)) {
        return refuse(r, 400, "output_format", "\"output_format\" must be an object");
    }
    if (!take_string(format, "container", 16, &container, r) ||
        !take_string(format, "encoding", 16, &encoding, r) ||
        !take_number(format, "sample_rate", 8000, 48000, &rate, r) ||
        !take_number(format, "bit_rate", 32000, 192000, &bit_rate, r)) {
        return false;
    }
    bool mp3 = strcmp(container, "mp3") == 0, wav = strcmp(container, "wav") == 0;
    for (size_t i = 0; i < 4; i++) {
        samples = strcmp(encodings[i][0], encoding) == 0 ? encodings[i][1] : samples;
    }
    if (!mp3 && !wav && strcmp(container, "raw") != 0) {
        return refuse(r, 400, "container", "the container '%.16s' is not known (raw, wav and mp3 are)",
            container);
    }
    if (raw && (mp3 || wav)) {
        return refuse(r, 400, "container", "only the container raw is sent here");
    }
    if (!samples) {
        return refuse(r, 400, "encoding",
            "the encoding '%.16s' is not known (pcm_s16le, pcm_f32le, pcm_mulaw and pcm_alaw are)",
            encoding);
    }
    json_object_set_new(fields, "response_format", json_string(mp3 ? "mp3" : wav ? "wav" : "pcm"));
    json_object_set_new(fields, "sample_rate", json_integer((json_int_t)rate));
    if (mp3) {
        json_object_set_new(fields, "bit_rate", json_integer((json_int_t)bit_rate));
    } else {
        json_object_set_new(fields, "sample_format", json_string(samples));
    }
    return true;
}

static bool set_manner(json_t *fields, const json_t *json, struct refusal *r)
{
    const json_t *config = given(json, "generation_config"), *word = given(json, "speed");
    const char *name = json_string_value(word);
    double speed = 1, volume = 1;
    if (config && !json_is_object(config)) {
        return refuse(r, 400, "generation_config", "\"generation_config\" must be an object");
    }
    if (name && (strcmp(name, "slow") == 0 || strcmp(name, "fast") == 0)) {
        speed = name[0] == 's' ? 0.8 : 1.25;
    } else if (word && (!name || strcmp(name, "normal") != 0)) {
        return refuse(r, 400, "speed", "\"speed\" must be slow, normal or fast");
    }
    if (!take_number(config, "speed", 0.25, 4, &speed, r) ||
        !take_number(config, "volume", 0, 4, &volume, r)) {
        return false;
    }
    json_object_set_new(fields, "speed", json_real(speed));
    json_object_set_new(fields, "volume_multiplier", json_real(volume));
    return true;
}

json_t *cartesia_fields(const json_t *json, bool with_text, bool raw, struct refusal *r)
{
    json_t *fields = json_object();
    const char *language = NULL;
    bool good = fields ? true : refuse(r, 503, NULL, "out of memory");
    good = good && set_format(fields, given(json, "output_format"), raw, r) &&
           set_manner(fields, json, r) &&
           take_string(json, given(json, "locale") ? "locale" : "language", 32, &language, r);
    if (good && language) {
        json_object_set_new(fields, "language", json_string(language));
    }
    if (good && with_text) {
        json_object_set(fields, "input", json_object_get(json, "transcript"));
    }
    if (!good) {
        json_decref(fields);
        return NULL;
    }
    return fields;
}

/* ---- Words ---- */

static void end_word(struct cartesia_words *w)
{
    json_t *word = w->n ? json_stringn(w->word, w->n) : NULL;
    if (word && !w->words) {
        w->words = json_array();
        json_decref(w->starts); /* where there was no memory for the list of words */
        json_decref(w->ends);
        w->starts = json_array();
        w->ends = json_array();
    }
    if (word) { /* else it is no text */
        json_array_append_new(w->words, word);
        json_array_append_new(w->starts, json_real(w->from_s + w->start_s));
        json_array_append_new(w->ends, json_real(w->from_s + w->end_s));
    }
    w->n = 0;
}

/* Whether words of this script stand without spaces: Chinese from its radicals up to its compatibility forms, Japanese
 * among them, but not Hangul. */
static bool stands_alone(const char *letter, size_t bytes)
{
    const unsigned char *c = (const unsigned char *)letter;
    return bytes == 4 ? c[0] == 0xF0 && c[1] >= 0xA0
                      : bytes == 3 && ((c[0] == 0xE2 && c[1] >= 0xBA) ||
                                          (c[0] >= 0xE3 && c[0] <= 0xE9) || c[0] == 0xEF);
}

void cartesia_words_letter(void *user, const char *letter, size_t bytes, double start_s, double end_s)
{
    struct cartesia_words *w = user;
    bool white = bytes == 1 && strchr(" \t\r\n\v\f", letter[0]), alone = stands_alone(letter, bytes);
    if (white || alone || w->n + bytes > sizeof w->word) {
        end_word(w);
    }
    if (!white) {
        bool mark =
            bytes == 1 && strchr(".,;:!?)]}\"'", letter[0]); /* the pause behind it is not the word's */
        w->end_s = w->n && mark ? w->end_s : end_s;
        w->start_s = w->n ? w->start_s : start_s;
        memcpy(w->word + w->n, letter, bytes);
        w->n += bytes;
    }
    if (alone) {
        end_word(w);
    }
}

json_t *cartesia_words_take(struct cartesia_words *w)
{
    json_t *words =
        w->words ? json_pack("{s:O,s:O,s:O}", "words", w->words, "start", w->starts, "end", w->ends)
                 : NULL;
    json_decref(w->words);
    json_decref(w->starts);
    json_decref(w->ends);
    w->words = w->starts = w->ends = NULL;
    return words;
}

json_t *cartesia_words_end(struct cartesia_words *w)
{
    end_word(w);
    return cartesia_words_take(w);
}

/* ---- Messages ---- */

static json_t *message(const char *type, const char *context, bool done, int status)
{
    return json_pack("{s:s,s:s?,s:b,s:i}", "type", type, "context_id", *context ? context : NULL,
        "done", done, "status_code", status);
}

json_t *cartesia_chunk(const char *context, json_t *data, double step_ms)
{
    json_t *m = message("chunk", context, false, 206);
    json_object_set_new(m, "data", data);
    json_object_set_new(m, "step_time", json_real(step_ms));
    return m;
}

json_t *cartesia_timestamps(const char *context, json_t *words, bool approximate)
{
    json_t *m = message("timestamps", context, false, 206);
    json_object_set_new(m, "word_timestamps", words);
    if (approximate) {
        json_object_set_new(m, "approximate", json_true());
    }
    return m;
}

json_t *cartesia_flush_done(const char *context, int flush_id)
{
    json_t *m = message("flush_done", context, false, 206);
    json_object_set_new(m, "flush_id", json_integer(flush_id));
    json_object_set_new(m, "flush_done", json_true());
    return m;
}

json_t *cartesia_done(const char *context)
{
    return message("done", context, true, 200);
}

static void describe(json_t *m, const struct refusal *r)
{
    const char *title = r->status == 401   ? "Unauthorized"
                        : r->status == 404 ? "Not found"
                        : r->status == 429 ? "Too many requests"
                        : r->status == 503 ? "Busy"
                        : r->status >= 500 ? "Internal error"
                                           : "Invalid request";
    json_object_set_new(m, "title", json_string(title));
    json_object_set_new(m, "message", json_string(r->message));
    json_object_set_new(m, "error_code", json_string(r->code ? r->code : refusal_type(r)));
}

json_t *cartesia_error(const struct refusal *r, const char *context)
{
    json_t *m = message("error", context, true, r->status);
    describe(m, r);
    json_object_set_new(m, "error", json_string(r->message)); /* as earlier versions have it */
    return m;
}

json_t *cartesia_refusal(const struct refusal *r)
{
    json_t *m = json_pack("{s:i}", "status_code", r->status);
    describe(m, r);
    return m;
}
