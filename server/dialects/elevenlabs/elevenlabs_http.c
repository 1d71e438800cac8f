/* SPDX-License-Identifier: Apache-2.0
 * ElevenLabs' paths over HTTP: speech, speech with the times of its letters, voices, models. */
#include <string.h>

#include "server/dialects/answer.h"
#include "server/dialects/ask.h"
#include "server/dialects/elevenlabs/elevenlabs.h"
#include "server/dialects/elevenlabs/elevenlabs_message.h"
#include "server/dialects/elevenlabs/elevenlabs_socket.h"
#include "server/dialects/markup.h"
#include "server/loop/body.h"
#include "server/protocol/base64.h"
#include "server/speech/voices.h"

/* ---- Speech ---- */

static json_t *alignment_of(const char *text, double seconds)
{
    struct elevenlabs_alignment a;
    struct spoken spoken = {0};
    elevenlabs_alignment_begin(&a, false, 0);
    spoken_rest(&spoken, text, strlen(text), seconds, elevenlabs_alignment_letter, &a);
    return elevenlabs_alignment_end(&a);
}

static json_t *say_sound(const struct answer_said *said)
{
    return json_pack("{s:o,s:n,s:n}", "audio_base64", base64_write(said->bytes, said->n), "alignment",
        "normalized_alignment");
}

static json_t *say_end(const struct answer_said *said)
{
    json_t *alignment = alignment_of(said->text, said->seconds);
    return json_pack("{s:o,s:O,s:o,s:b}", "audio_base64",
        base64_write(said->bytes ? said->bytes : "", said->n), "alignment", alignment,
        "normalized_alignment", alignment, "approximate", 1);
}

static const struct answer_dialect dialect = {say_sound, say_end, elevenlabs_refusal};

static void speak(struct conn *c, enum answer_way way)
{
    char voice[256], format[32], language[32], seed[24];
    struct refusal r;
    struct fields fields;
    json_t *body = body_json(c);
    if (!body) {
        return;
    }
    struct elevenlabs_query query = {ask_query(c, "output_format", format, sizeof format),
        ask_query(c, "language_code", language, sizeof language),
        ask_query(c, "seed", seed, sizeof seed)};
    bool good = markup_strip_field(body, "text", &r) &&
                ask_fields(&fields, c, "elevenlabs", elevenlabs_voice(c, voice, sizeof voice),
                    elevenlabs_fields(body, &query, true, &r), FIELDS_FOR_SPEECH, &r);
    json_decref(body);
    if (good) {
        answer_speech(c, &fields, NULL, way, &dialect);
    } else {
        ask_refuse(c, &r);
    }
}

static void speak_sound(struct conn *c)
{
    speak(c, ANSWER_SOUND);
}

static void speak_whole(struct conn *c)
{
    speak(c, ANSWER_WHOLE);
}

static void speak_lines(struct conn *c)
{
    speak(c, ANSWER_LINES);
}

/* ---- Lists ---- */

static json_t *voice_json(const char *name)
{
    return json_pack("{s:s,s:s,s:s,s:{},s:[],s:[]}", "voice_id", name, "name", name, "category",
        "premade", "labels", "available_for_tiers", "high_quality_base_model_ids");
}

static void answer_voices(struct conn *c)
{
    json_t *ours = voices_list(c->server, true), *list = json_array(), *name;
    const json_t *names = json_object_get(ours, "voices");
    size_t i;
    json_array_foreach(names, i, name)
    {
        json_array_append_new(list, voice_json(json_string_value(name)));
    }
    json_decref(ours);
    conn_answer_json(c, 200,
        json_pack("{s:o,s:b,s:I}", "voices", list, "has_more", 0, "total_count",
            (json_int_t)json_array_size(list)));
}

static void answer_voice(struct conn *c)
{
    struct refusal r;
    const char *name = strstr(c->head.path, "/voices/") + strlen("/voices/");
    json_t *voice = voices_one(c->server, name);
    if (voice) {
        json_decref(voice);
        conn_answer_json(c, 200, voice_json(name));
        return;
    }
    refuse(&r, 404, "voice_id", "no voice '%.80s'", name);
    r.code = "voice_not_found";
    conn_refuse(c, &r);
}

void elevenlabs_models(struct conn *c)
{
    const struct server *s = c->server;
    json_t *languages = json_array();
    for (int i = 0; s->was_ready && i < s->ready.n_languages; i++) {
        const char *name = s->ready.languages[i];
        json_array_append_new(languages, json_pack("{s:s,s:s}", "language_id", name, "name", name));
    }
    conn_answer_json(c, 200,
        json_pack("[{s:s,s:s,s:b,s:b,s:b,s:o}]", "model_id", s->model_id, "name", s->model_id,
            "can_do_text_to_speech", 1, "can_do_voice_conversion", 0, "can_be_finetuned", 0,
            "languages", languages));
}

#define ASKED(path, answer, about, gives)                                                              \
    {                                                                                                  \
        "POST", path, ROUTE_KEY_AND_MODEL, LIMIT_JSON, answer, false, elevenlabs_refusal, about,       \
            "Theirs", gives                                                                            \
    }
#define SOCKET(path, answer, about)                                                                    \
    {                                                                                                  \
        "GET", path, ROUTE_KEY_AND_MODEL, 0, answer, true, elevenlabs_refusal, about, NULL, NULL       \
    }
#define TOLD(path, answer, about)                                                                      \
    {                                                                                                  \
        "GET", path, ROUTE_KEY, 0, answer, false, elevenlabs_refusal, about, NULL, "application/json"  \
    }

const struct route elevenlabs_routes[] = {
    ASKED("/v1/text-to-speech/*", speak_sound, "Speech, as it is made.", "audio/*"),
    ASKED("/v1/text-to-speech/*/stream", speak_sound, "The same.", "audio/*"),
    ASKED("/v1/text-to-speech/*/with-timestamps", speak_whole,
        "One object: sound and times of letters.", "application/json"),
    ASKED("/v1/text-to-speech/*/stream/with-timestamps", speak_lines,
        "An object a line, as the sound is made.", "application/x-ndjson"),
    SOCKET("/v1/text-to-speech/*/stream-input", elevenlabs_socket_one, "WebSocket: text in pieces."),
    SOCKET("/v1/text-to-speech/*/multi-stream-input", elevenlabs_socket_many,
        "WebSocket: text in pieces, several contexts."),
    TOLD("/v1/voices", answer_voices, "Who can speak."),
    TOLD("/v2/voices", answer_voices, "The same."),
    TOLD("/v1/voices/", answer_voice, "One voice."),
    {.method = NULL},
};
