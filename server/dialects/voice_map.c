/* SPDX-License-Identifier: Apache-2.0
 * What the file says goes first; then our own voices; then those that stock clients ask for unless told otherwise. */
#include "server/dialects/voice_map.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "server/speech/voices.h"

enum { MAX_FILE = 1 << 20 };

/* The voices that clients of these services choose by themselves, and the first of their catalogues. */
static const struct {
    const char *name, *stands_for;
} stock[] = {
    {"21m00Tcm4TlvDq8ikWAM", "nova"}, /* ElevenLabs: Rachel */
    {"EXAVITQu4vr4xnSDxMaL", "coral"},
    {"JBFqnCBsd6RMkjVDRZzb", "onyx"},
    {"bIHbv24MWmeRgasZH58o", "ash"},
    {"hpp4J3VqNfWAUOO0d1Us", "sage"},
    {"pNInz6obpgDQGcFmaJgB", "echo"},
    {"71a7ad14-091c-4e8e-a314-022ece01c121", "nova"}, /* Cartesia */
    {"794f9389-aac1-45b6-b726-9d9369183238", "coral"},
    {"a0e99841-438c-4a64-b679-ae501e7d6091", "ash"},
    {"f786b574-daa5-4673-aa0c-cbe3e8534c02", "sage"},
    {"aura-2-andromeda-en", "nova"}, /* Deepgram: a model is a voice */
    {"aura-2-apollo-en", "ash"},
    {"aura-2-helena-en", "coral"},
    {"aura-2-thalia-en", "sage"},
    {"aura-asteria-en", "nova"},
    {"aura-orion-en", "onyx"},
    {"flux-alexis-en", "nova"},
};

const char *voice_map_stock(const char *name)
{
    for (size_t i = 0; i < sizeof stock / sizeof *stock; i++) {
        if (strcasecmp(stock[i].name, name) == 0) {
            return stock[i].stands_for;
        }
    }
    return NULL;
}

const char *voice_map_entry(const json_t *map, const char *dialect, const char *name)
{
    const char *own = json_string_value(json_object_get(json_object_get(map, dialect), name));
    return own ? own : json_string_value(json_object_get(json_object_get(map, "*"), name));
}

static bool is_ours(struct server *s, const char *name)
{
    const struct fields asked = {.voice = name};
    struct voices_found found;
    struct refusal r;
    return voices_find(s, &asked, &found, &r);
}

const char *voice_map_find(struct server *s, const char *dialect, const char *name)
{
    const char *said = voice_map_entry(s->voice_map, dialect, name);
    if (!said && !is_ours(s, name)) {
        said = voice_map_stock(name);
        said = said ? said : voice_map_entry(s->voice_map, dialect, "*");
    }
    return said ? said : name;
}

static bool is_map(const json_t *map)
{
    const char *dialect, *name;
    json_t *names, *voice;
    json_object_foreach((json_t *)map, dialect, names)
    {
        if (!json_is_object(names)) {
            return false;
        }
        json_object_foreach(names, name, voice)
        {
            if (!json_is_string(voice)) {
                return false;
            }
        }
    }
    return json_is_object(map);
}

bool voice_map_read(struct server *s)
{
    json_t *map = NULL;
    utter_error error = {.text = ""};
    if (!s->options->voice_map) {
        return true;
    }
    if (json_file(&map, s->options->voice_map, MAX_FILE, JSON_SMALL, &error) != UTTER_OK) {
        fprintf(stderr, "utter: %s\n", error.text);
        return false;
    }
    if (!is_map(map)) {
        fprintf(stderr,
            "utter: %s: must be an object of objects: {\"elevenlabs\": {\"THEIR NAME\": \"OUR "
            "NAME\"}}\n",
            s->options->voice_map);
        json_decref(map);
        return false;
    }
    voice_map_free(s);
    s->voice_map = map;
    return true;
}

void voice_map_free(struct server *s)
{
    json_decref(s->voice_map);
    s->voice_map = NULL;
}
