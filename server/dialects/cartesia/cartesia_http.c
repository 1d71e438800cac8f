/* SPDX-License-Identifier: Apache-2.0
 * Cartesia's paths over HTTP: /tts/bytes, and /tts/sse with the times of words. */
#include <string.h>

#include "base/memory.h"
#include "server/dialects/answer.h"
#include "server/dialects/ask.h"
#include "server/dialects/cartesia/cartesia.h"
#include "server/dialects/cartesia/cartesia_message.h"
#include "server/dialects/cartesia/cartesia_socket.h"
#include "server/dialects/markup.h"
#include "server/loop/conn/body.h"
#include "server/protocol/base64.h"

static const char *context_of(const struct answer_said *said)
{
    const char *context = json_string_value(json_object_get(said->asked, "context_id"));
    return context ? context : "";
}

static json_t *say_sound(const struct answer_said *said)
{
    return cartesia_chunk(context_of(said), base64_write(said->bytes, said->n), 0);
}

static json_t *say_words(const struct answer_said *said)
{
    struct cartesia_words *told = said->own;
    spoken_words(said->spoken, said->text, strlen(said->text), said->words, said->n_words, said->next,
        cartesia_words_letter, told);
    json_t *words = cartesia_words_take(told);
    return words ? cartesia_timestamps(context_of(said), words, said->approximate) : NULL;
}

static json_t *say_end(const struct answer_said *said)
{
    json_t *all = json_array(), *words = said->own ? say_words(said) : NULL;
    struct cartesia_words *told = said->own;
    if (words) {
        json_array_append_new(all, words);
    }
    if (told) {
        spoken_rest(
            said->spoken, said->text, strlen(said->text), said->seconds, cartesia_words_letter, told);
        words = cartesia_words_end(told);
    }
    if (told && words) {
        json_array_append_new(all, cartesia_timestamps(context_of(said), words, said->approximate));
    }
    json_array_append_new(all, cartesia_done(context_of(said)));
    return all;
}

static json_t *say_fault(const struct refusal *r)
{
    return cartesia_error(r, "");
}

static const struct answer_dialect dialect = {say_sound, say_end, say_fault, say_words, NULL};

static void speak(struct conn *c, enum answer_way way)
{
    struct refusal r;
    struct cartesia_message m;
    struct fields fields;
    json_t *body = body_json(c);
    if (!body) {
        return;
    }
    bool good = cartesia_read(&m, body, &r);
    if (good && m.cancel) {
        good = refuse(&r, 400, "cancel", "\"cancel\" is for the WebSocket");
    }
    good = good && markup_strip_field(body, "transcript", &r) &&
           ask_fields(&fields, c, "cartesia", m.voice,
               cartesia_fields(body, true, way == ANSWER_EVENTS, &r), FIELDS_FOR_SPEECH, &r);
    if (good) {
        struct cartesia_words *words =
            m.add_timestamps && way == ANSWER_EVENTS ? memory_new(1, sizeof *words) : NULL;
        fields.words = words != NULL;
        answer_speech(c, &fields, body, way, &dialect, words);
    } else {
        ask_refuse(c, &r);
    }
    json_decref(body);
}

static void speak_bytes(struct conn *c)
{
    speak(c, ANSWER_SOUND);
}

static void speak_events(struct conn *c)
{
    speak(c, ANSWER_EVENTS);
}

const struct route cartesia_routes[] = {
    {"POST", "/tts/bytes", ROUTE_KEY_AND_MODEL, LIMIT_JSON, speak_bytes, false, cartesia_refusal,
        "Speech, as it is made.", "Theirs", "audio/*"},
    {"POST", "/tts/sse", ROUTE_KEY_AND_MODEL, LIMIT_JSON, speak_events, false, cartesia_refusal,
        "Speech in events, with times of words if asked for.", "Theirs", "text/event-stream"},
    {"GET", "/tts/websocket", ROUTE_KEY_AND_MODEL, 0, cartesia_socket, true, cartesia_refusal,
        "WebSocket: contexts, continue, flush, cancel, times of words.", NULL, NULL},
    {.method = NULL},
};
