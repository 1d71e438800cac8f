/* SPDX-License-Identifier: Apache-2.0
 * ElevenLabs' paths over HTTP: speech, speech with the times of its letters, voices, models. */
#include <string.h>

#include "server/dialects/answer.h"
#include "server/dialects/ask.h"
#include "server/dialects/elevenlabs/elevenlabs.h"
#include "server/dialects/elevenlabs/elevenlabs_message.h"
#include "server/dialects/elevenlabs/elevenlabs_socket.h"
#include "server/dialects/markup.h"
#include "server/loop/conn/body.h"
#include "server/protocol/base64.h"
#include "server/speech/voices.h"

/* ---- Speech ---- */

/* Letters up to the end of the words that are told, `end`: and the rest of the text. */
static json_t *alignment_of(const struct answer_said *said, bool end)
{
    struct elevenlabs_alignment a;
    size_t n = strlen(said->text);
    elevenlabs_alignment_begin(&a, false, 0);
    spoken_words(said->spoken, said->text, n, said->words, said->n_words, said->next,
        elevenlabs_alignment_letter, &a);
    if (end) {
        spoken_rest(said->spoken, said->text, n, said->seconds, elevenlabs_alignment_letter, &a);
    }
    return elevenlabs_alignment_end(&a);
}

static json_t *with_alignment(const struct answer_said *said, bool end)
{
    json_t *alignment = alignment_of(said, end);
    return json_pack("{s:O,s:o,s:b}", "alignment", alignment, "normalized_alignment", alignment,
        "approximate", said->approximate);
}

static json_t *say_sound(const struct answer_said *said)
{
    return json_pack("{s:o,s:n,s:n}", "audio_base64", base64_write(said->bytes, said->n), "alignment",
        "normalized_alignment");
}

/* A line of times has an empty sound. */
static json_t *line_of(json_t *json)
{
    json_object_set_new(json, "audio_base64", json_string(""));
    return json;
}

static json_t *say_words(const struct answer_said *said)
{
    return line_of(with_alignment(said, false));
}

static json_t *say_last(const struct answer_said *said)
{
    return line_of(with_alignment(said, true));
}

static json_t *say_all(const struct answer_said *said)
{
    return with_alignment(said, true);
}

static const struct answer_dialect lines = {
    say_sound, say_last, elevenlabs_refusal, say_words, "audio_base64"};
static const struct answer_dialect whole = {
    say_sound, say_all, elevenlabs_refusal, say_words, "audio_base64"};

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
        fields.words = way != ANSWER_SOUND;
        answer_speech(c, &fields, NULL, way, way == ANSWER_WHOLE ? &whole : &lines, NULL);
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
