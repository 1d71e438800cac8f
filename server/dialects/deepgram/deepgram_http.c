/* SPDX-License-Identifier: Apache-2.0
 * Deepgram's POST /v1/speak, and what its sockets share: the query, how they open. */
#include "base/memory.h"
#include "server/dialects/answer.h"
#include "server/dialects/deepgram/deepgram.h"
#include "server/dialects/deepgram/deepgram_message.h"
#include "server/dialects/deepgram/deepgram_socket.h"
#include "server/dialects/markup.h"
#include "server/loop/conn/body.h"

bool deepgram_ask(struct fields *fields, struct conn *c, const json_t *body, struct refusal *r)
{
    char model[256], encoding[24], container[24], rate[24], bits[24], speed[24];
    struct deepgram_query query = {ask_query(c, "encoding", encoding, sizeof encoding),
        ask_query(c, "container", container, sizeof container),
        ask_query(c, "sample_rate", rate, sizeof rate), ask_query(c, "bit_rate", bits, sizeof bits),
        ask_query(c, "speed", speed, sizeof speed)};
    return ask_fields(fields, c, "deepgram", ask_query(c, "model", model, sizeof model),
        deepgram_fields(&query, body, r), body ? FIELDS_FOR_SPEECH : FIELDS_FOR_SESSION, r);
}

void *deepgram_begin(struct conn *c, char *accept, size_t state_bytes)
{
    struct refusal r;
    struct fields fields;
    if (!conn_handshake(c, accept)) {
        return NULL;
    }
    void *state = memory_new(1, state_bytes);
    if (!state) {
        refuse(&r, 503, NULL, "out of memory");
        conn_refuse(c, &r);
        return NULL;
    }
    if (!deepgram_ask(&fields, c, NULL, &r)) {
        memory_free(state);
        ask_refuse(c, &r);
        return NULL;
    }
    fields_fini(&fields);
    return state;
}

json_t *deepgram_about(const struct conn *c, const char *type)
{
    char model[256];
    const char *name = ask_query(c, "model", model, sizeof model);
    return json_pack("{s:s,s:s,s:s,s:s}", "type", type, "request_id", c->request_id, "model_name",
        name ? name : c->server->model_id, "model_version", utter_version_text());
}

static void speak(struct conn *c)
{
    static const struct answer_dialect dialect = {NULL, NULL, NULL, NULL, NULL};
    struct refusal r;
    struct fields fields;
    json_t *body = body_json(c);
    if (!body) {
        return;
    }
    if (markup_strip_field(body, "text", &r) && deepgram_ask(&fields, c, body, &r)) {
        answer_speech(c, &fields, NULL, ANSWER_SOUND, &dialect, NULL);
    } else {
        ask_refuse(c, &r);
    }
    json_decref(body);
}

const struct route deepgram_routes[] = {
    {"POST", "/v1/speak", ROUTE_KEY_AND_MODEL, LIMIT_JSON, speak, false, deepgram_refusal,
        "Speech, as it is made.", "Theirs", "audio/*"},
    {"GET", "/v1/speak", ROUTE_KEY_AND_MODEL, 0, deepgram_aura, true, deepgram_refusal,
        "WebSocket: Speak, Flush, Clear, Close.", NULL, NULL},
    {"GET", "/v2/speak", ROUTE_KEY_AND_MODEL, 0, deepgram_flux, true, deepgram_refusal,
        "WebSocket: turns, Interrupt with the text that is left, Configure.", NULL, NULL},
    {.method = NULL},
};
