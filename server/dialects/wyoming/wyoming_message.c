/* SPDX-License-Identifier: Apache-2.0
 * Names and shapes as the protocol's own package has them. */
#include "server/dialects/wyoming/wyoming_message.h"

#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "base/minmax.h"
#include "base/tables/languages.h"

enum { VALUES = 10000 };

/* A length in the line: 0 without one. False: none, or more than `most`. */
static bool take_length(const json_t *line, const char *name, size_t most, size_t *length)
{
    const json_t *value = json_object_get(line, name);
    json_int_t n = json_integer_value(value);
    *length = (size_t)n;
    return !value || json_is_null(value) || (json_is_integer(value) && n >= 0 && (size_t)n <= most);
}

/* The bytes of data behind the line are merged over the data in it. */
static bool merge(struct wyoming_event *e, const uint8_t *bytes, size_t n)
{
    json_t *more = NULL, *data = json_object_get(e->json, "data");
    if (!data || json_is_null(data)) {
        data = json_object();
        json_object_set_new(e->json, "data", data);
    }
    bool good = json_is_object(data);
    if (good && n) {
        good = json_text(&more, (const char *)bytes, n, VALUES, "data", NULL) == UTTER_OK &&
               json_is_object(more) && json_object_update(data, more) == 0;
        json_decref(more);
    }
    e->data = data;
    return good;
}

enum wyoming_progress wyoming_read(struct wyoming_event *e, const uint8_t *in, size_t n, size_t *used)
{
    const uint8_t *feed = memchr(in, '\n', min(n, WYOMING_LINE));
    size_t data_bytes, line_bytes = feed ? (size_t)(feed - in) : 0;
    *e = (struct wyoming_event){.json = NULL};
    if (!feed) {
        return n < WYOMING_LINE ? WYOMING_MORE : WYOMING_BAD;
    }
    if (json_text(&e->json, (const char *)in, line_bytes, VALUES, "line", NULL) != UTTER_OK) {
        return WYOMING_BAD;
    }
    e->type = json_string_value(json_object_get(e->json, "type"));
    bool good = json_is_object(e->json) && e->type &&
                take_length(e->json, "data_length", WYOMING_DATA, &data_bytes) &&
                take_length(e->json, "payload_length", WYOMING_PAYLOAD, &e->payload_bytes);
    if (good && n - line_bytes - 1 < data_bytes + e->payload_bytes) {
        *used = line_bytes + 1 + data_bytes + e->payload_bytes;
        wyoming_event_fini(e);
        return WYOMING_MORE;
    }
    if (!good || !merge(e, feed + 1, data_bytes)) {
        wyoming_event_fini(e);
        return WYOMING_BAD;
    }
    *used = line_bytes + 1 + data_bytes + e->payload_bytes;
    return WYOMING_EVENT;
}

void wyoming_event_fini(struct wyoming_event *e)
{
    json_decref(e->json);
    *e = (struct wyoming_event){.json = NULL};
}

void wyoming_write(struct wire_out *out, const char *type, json_t *data, const void *payload, size_t n)
{
    const bool lacks = json_text_lacks();
    char *text = json_text_write(data, JSON_COMPACT);
    size_t data_bytes = text ? strlen(text) : 0;
    json_t *line = json_pack("{s:s,s:s,s:I,s:I}", "type", type, "version", "1.10.2", "data_length",
        (json_int_t)data_bytes, "payload_length", (json_int_t)n);
    char *head = json_text_write(line, JSON_COMPACT);
    if (head && !lacks && (text || !data)) {
        wire_put(out, head, strlen(head));
        wire_put(out, "\n", 1);
        wire_put(out, text ? text : "", data_bytes);
        wire_put(out, payload ? payload : "", n);
    } else {
        out->failed = true;
    }
    memory_plain_free(head);
    memory_plain_free(text);
    json_decref(line);
    json_decref(data);
}

static const char *plain_string(const json_t *value)
{
    const char *text = json_string_value(value);
    return text && strlen(text) == json_string_length(value) ? text : NULL;
}

const char *wyoming_string(const struct wyoming_event *e, const char *name)
{
    return plain_string(json_object_get(e->data, name));
}

const char *wyoming_voice(const struct wyoming_event *e, const char **language)
{
    const json_t *voice = json_object_get(e->data, "voice");
    const char *speaker = plain_string(json_object_get(voice, "speaker"));
    *language = plain_string(json_object_get(voice, "language"));
    return speaker ? speaker : plain_string(json_object_get(voice, "name"));
}

/* ---- What a program can ---- */

/* Home Assistant looks for codes. */
static json_t *code_of(const char *name)
{
    const char *code = language_code(name);
    return json_string(code ? code : name);
}

static json_t *artifact(const char *name, const char *what, const char *version)
{
    return json_pack("{s:s,s:s,s:s,s:b,s:{s:s,s:s}}", "name", name, "description", what, "version",
        version, "installed", 1, "attribution", "name", "utter", "url", "");
}

json_t *wyoming_info(const char *version, json_t *voices, json_t *languages)
{
    json_t *list = json_array(), *codes = json_array(), *name;
    size_t i;
    json_array_foreach(languages, i, name)
    {
        json_array_append_new(codes, code_of(json_string_value(name)));
    }
    if (json_array_size(codes) == 0) {
        json_array_append_new(codes, json_string("en"));
    }
    json_array_foreach(voices, i, name)
    {
        json_t *voice = artifact(json_string_value(name), json_string_value(name), version);
        json_object_set(voice, "languages", codes);
        json_array_append_new(list, voice);
    }
    json_t *program = artifact("utter", "utter", version);
    json_object_set_new(program, "voices", list);
    json_object_set_new(program, "supports_synthesize_streaming", json_true());
    json_decref(codes);
    json_decref(voices);
    json_decref(languages);
    return json_pack("{s:[o],s:[],s:[],s:[],s:[],s:[],s:[]}", "tts", program, "asr", "handle", "intent",
        "wake", "mic", "snd");
}

static json_t *keys_of(const json_t *object)
{
    json_t *names = json_array(), *value;
    const char *name;
    json_object_foreach((json_t *)object, name, value)
    {
        json_array_append_new(names, json_string(name));
    }
    return names;
}

void wyoming_config(const json_t *config, json_t **voices, json_t **languages)
{
    const json_t *talker = json_object_get(config, "talker_config");
    *voices = keys_of(json_object_get(talker, "spk_id"));
    *languages = keys_of(json_object_get(talker, "codec_language_id"));
}
