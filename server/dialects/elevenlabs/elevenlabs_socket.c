/* SPDX-License-Identifier: Apache-2.0
 * Contexts of ElevenLabs. stream-input has one, without a name, which an empty text ends; multi-stream-input has
 * several at once, by name.
 *
 * Times of letters restart at each message that has some, so that a client may add them up; with sync_alignment=true in
 * the query they count from the start of the context: what the two stock clients that use it take them for. */
#include "server/dialects/elevenlabs/elevenlabs_socket.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/minmax.h"
#include "server/dialects/ask.h"
#include "server/dialects/elevenlabs/elevenlabs_message.h"
#include "server/dialects/talk.h"
#include "server/protocol/base64.h"

enum { QUIET_S = 20, MOST_QUIET_S = 180 };
/* Of sound: a client that knows what it has heard loses nothing by more. */
static const double ahead_s = 6;

/* What stands in the path and the query. */
struct asked {
    char voice[256], format[32], language[32], seed[24];
    bool many, sync;
};

static const struct asked *asked_of(const struct talk *x)
{
    return x->own;
}

/* ---- Back to the client ---- */

/* `alignment` is taken over. */
static void send_all(struct talk_context *t, const void *bytes, size_t n, json_t *alignment,
    bool approximate, bool final)
{
    json_t *m = json_pack("{s:o,s:o,s:O,s:o}", "audio", n ? base64_write(bytes, n) : json_null(),
        "isFinal", final ? json_true() : json_null(), "alignment", alignment, "normalizedAlignment",
        alignment);
    if (m && asked_of(t->talk)->many) {
        json_object_set_new(m, "contextId", json_string(t->name));
    }
    if (m && json_is_object(alignment) && approximate) {
        json_object_set_new(m, "approximate", json_true());
    }
    talk_send(t->talk, m);
}

static void send_sound(struct talk_context *t, const void *bytes, size_t n, bool final)
{
    send_all(t, bytes, n, json_null(), false, final);
}

static void on_sound(struct talk_context *t, const void *bytes, size_t n)
{
    send_sound(t, bytes, n, false);
}

static struct elevenlabs_alignment begin_alignment(
    const struct talk_context *t, const struct context_piece *piece)
{
    struct elevenlabs_alignment a;
    /* Who adds the messages up counts from the last letter. */
    elevenlabs_alignment_begin(&a, true, asked_of(t->talk)->sync ? -piece->from_s : t->spoken.letter_s);
    return a;
}

static void send_alignment(
    struct talk_context *t, const struct context_piece *piece, struct elevenlabs_alignment *a)
{
    json_t *alignment = elevenlabs_alignment_end(a);
    if (json_is_object(alignment)) {
        send_all(t, NULL, 0, alignment, piece->approximate, false);
    }
}

static void on_words(struct talk_context *t, const struct context_piece *piece,
    const struct speech_word *words, size_t n, bool next)
{
    struct elevenlabs_alignment a = begin_alignment(t, piece);
    spoken_words(
        &t->spoken, piece->text, piece->bytes, words, n, next, elevenlabs_alignment_letter, &a);
    send_alignment(t, piece, &a);
}

static void on_piece(struct talk_context *t, const struct context_piece *piece)
{
    if (piece->blank) {
        return;
    }
    struct elevenlabs_alignment a = begin_alignment(t, piece);
    spoken_rest(&t->spoken, piece->text, piece->bytes, piece->seconds, elevenlabs_alignment_letter, &a);
    send_alignment(t, piece, &a);
}

static void on_ended(struct talk_context *t)
{
    send_sound(t, NULL, 0, true);
}

static void on_failed(struct talk *x, const struct refusal *r, const char *name)
{
    talk_send(x, elevenlabs_error(r, name));
    if (!asked_of(x)->many) {
        talk_hang_up(x, r->status >= 500 ? WEBSOCKET_FAULT : WEBSOCKET_POLICY, "");
    }
}

/* ---- What the client says ---- */

static const char *given(const char *text)
{
    return *text ? text : NULL;
}

/* `message`: the first of the context, with its settings; or NULL. */
static bool fields_of(struct fields *fields, struct conn *c, const struct asked *asked,
    const json_t *message, struct refusal *r)
{
    struct elevenlabs_query query = {given(asked->format), given(asked->language), given(asked->seed)};
    bool good = ask_fields(fields, c, "elevenlabs", asked->voice,
        elevenlabs_fields(message, &query, false, r), FIELDS_FOR_SESSION, r);
    fields->words = good;
    return good;
}

/* An empty text ends stream-input: what has come is said to its end. */
static void end_one(struct talk *x)
{
    struct talk_context *t = talk_find(x, "");
    x->closing = true;
    if (t) {
        talk_end(t);
    } else {
        talk_close(x);
    }
}

/* The end of a turn; or, when that was told already, an interruption: Pipecat closes a context at both. */
static void close_context(struct talk_context *t)
{
    if (t->closing) {
        on_ended(t);
        talk_drop(t);
        return;
    }
    t->markup.n_held = 0;
    context_drop_open(t->speaks); /* what was not flushed is not said */
    talk_end(t);
}

static bool take_text(
    struct talk *x, const struct elevenlabs_message *m, const json_t *json, struct refusal *r)
{
    struct talk_context *t = talk_find(x, m->context);
    struct fields fields;
    if (t && t->closing) {
        return refuse(r, 400, "context_id", "the context '%.40s' has been closed", m->context);
    }
    if (!t && (m->bytes || !asked_of(x)->many)) {
        t = fields_of(&fields, x->conn, asked_of(x), json, r)
                ? talk_begin(x, m->context, &fields, ahead_s, r)
                : NULL;
        if (!t) {
            return false;
        }
    }
    return !t || m->bytes == 0 || talk_text(t, m->text, m->bytes, r);
}

static void on_message(struct talk *x, const json_t *json)
{
    struct elevenlabs_message m;
    struct talk_context *t;
    struct refusal r;
    bool many = asked_of(x)->many, good = elevenlabs_read(&m, json, &r);
    m.context = many ? m.context : "";
    if (!good) {
        talk_fail(x, &r, m.context);
    } else if (m.close_socket) {
        talk_close(x);
    } else if (!many && m.text && m.bytes == 0) {
        end_one(x);
    } else {
        if (m.text && !take_text(x, &m, json, &r)) {
            talk_fail(x, &r, m.context);
        }
        if (m.flush && (t = talk_find(x, m.context)) && talk_has_text(t)) {
            talk_flush(t, 0);
        }
        if (m.close_context && (t = talk_find(x, m.context))) {
            close_context(t);
        }
    }
}

static const struct talk_dialect dialect = {
    on_message, on_sound, on_piece, on_ended, on_failed, NULL, on_words};

const char *elevenlabs_voice(const struct conn *c, char *out, size_t size)
{
    const char *name = strstr(c->head.path, "/text-to-speech/") + strlen("/text-to-speech/");
    size_t n = strcspn(name, "/");
    n = min(n, size - 1);
    memcpy(out, name, n);
    out[n] = 0;
    return out;
}

static void open_socket(struct conn *c, bool many)
{
    char accept[29], word[16];
    struct refusal r;
    struct fields fields;
    if (!conn_handshake(c, accept)) {
        return;
    }
    struct asked *asked = memory_new(1, sizeof *asked);
    if (!asked) {
        refuse(&r, 503, NULL, "out of memory");
        conn_refuse(c, &r);
        return;
    }
    asked->many = many;
    elevenlabs_voice(c, asked->voice, sizeof asked->voice);
    ask_query(c, "output_format", asked->format, sizeof asked->format);
    ask_query(c, "language_code", asked->language, sizeof asked->language);
    ask_query(c, "seed", asked->seed, sizeof asked->seed);
    asked->sync = ask_query(c, "sync_alignment", word, sizeof word) && strcmp(word, "true") == 0;
    const char *idle = ask_query(c, "inactivity_timeout", word, sizeof word);
    double idle_s = idle ? strtod(idle, NULL) : QUIET_S;
    /* Of several contexts each may fail by itself, which clients pass over: what is wrong for all is told at once.
     * stream-input's client wants the reason in a message. */
    if (many && !fields_of(&fields, c, asked, NULL, &r)) {
        ask_refuse(c, &r);
        memory_free(asked);
        return;
    }
    if (many) {
        fields_fini(&fields);
    }
    talk_open(c, accept, &dialect, idle_s >= 1 && idle_s <= MOST_QUIET_S ? idle_s : QUIET_S, asked);
}

void elevenlabs_socket_one(struct conn *c)
{
    open_socket(c, false);
}

void elevenlabs_socket_many(struct conn *c)
{
    open_socket(c, true);
}
