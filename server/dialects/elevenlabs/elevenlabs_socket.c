/* SPDX-License-Identifier: Apache-2.0
 * Contexts of ElevenLabs. stream-input has one, without a name, which an empty text ends; multi-stream-input has up to
 * MOST_CONTEXTS at once, which say under which name each piece of sound goes.
 *
 * Times of letters restart at each message that has some, so that a client may add them up; with sync_alignment=true in
 * the query they count from the start of the context: what the two stock clients that use it take them for. */
#include "server/dialects/elevenlabs/elevenlabs_socket.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "server/dialects/ask.h"
#include "server/dialects/context.h"
#include "server/dialects/elevenlabs/elevenlabs_message.h"
#include "server/dialects/markup.h"
#include "server/loop/body.h"
#include "server/protocol/base64.h"

enum { MOST_CONTEXTS = 16, QUIET_S = 20, MOST_QUIET_S = 180 };
static const double ahead_s =
    6; /* of sound: a client that knows what it has heard loses nothing by more */

struct el_context {
    TAILQ_ENTRY(el_context) entry;
    struct el_socket *socket;
    struct context *speaks;
    struct markup markup;
    char name[129];
    bool closing; /* the client has said all */
};

struct el_socket {
    struct conn *conn;
    TAILQ_HEAD(, el_context) contexts;
    char voice[256], format[32], language[32], seed[24];
    bool many, sync;
    bool closing; /* when nothing is spoken any more */
    double idle_s;
    int n_contexts;
};

/* ---- Back to the client ---- */

static void send_error(struct el_socket *x, const struct refusal *r, const char *name)
{
    x->conn->server->metrics.rejected[METRICS_INVALID] += r->status < 500;
    conn_send_json(x->conn, elevenlabs_error(r, name));
    if (!x->many) {
        conn_close_socket(x->conn, r->status >= 500 ? WEBSOCKET_FAULT : WEBSOCKET_POLICY, "");
    }
}

/* `alignment` is taken over. */
static void send_sound(struct el_context *t, const void *bytes, size_t n, json_t *alignment, bool final)
{
    json_t *m = json_pack("{s:o,s:o,s:O,s:o}", "audio", n ? base64_write(bytes, n) : json_null(),
        "isFinal", final ? json_true() : json_null(), "alignment", alignment, "normalizedAlignment",
        alignment);
    if (m && t->socket->many) {
        json_object_set_new(m, "contextId", json_string(t->name));
    }
    if (m && json_is_object(alignment)) {
        json_object_set_new(m, "approximate", json_true()); /* by the share of letters */
    }
    conn_send_json(t->socket->conn, m);
}

static void drop_context(struct el_context *t)
{
    TAILQ_REMOVE(&t->socket->contexts, t, entry);
    t->socket->n_contexts--;
    context_free(t->speaks);
    memory_free(t);
}

static void close_when_done(struct el_socket *x)
{
    if (x->closing && TAILQ_EMPTY(&x->contexts)) {
        conn_close_socket(
            x->conn, x->conn->server->draining ? WEBSOCKET_GOING_AWAY : WEBSOCKET_NORMAL, "");
    }
}

/* Tells that nothing more of the context will come. May close the connection. */
static void end_if_done(struct el_context *t)
{
    struct el_socket *x = t->socket;
    if (t->closing && context_is_idle(t->speaks)) {
        send_sound(t, NULL, 0, json_null(), true);
        drop_context(t);
        close_when_done(x);
    }
}

/* ---- From the context ---- */

static void on_sound(void *user, const void *bytes, size_t n)
{
    struct el_context *t = user;
    t->socket->conn->deadline = clock_seconds() + t->socket->idle_s;
    send_sound(t, bytes, n, json_null(), false);
}

static void on_piece(void *user, const struct context_piece *piece)
{
    struct el_context *t = user;
    t->socket->conn->deadline = clock_seconds() + t->socket->idle_s;
    if (!piece->blank) {
        struct elevenlabs_alignment a;
        struct spoken spoken = {0};
        elevenlabs_alignment_begin(&a, true, t->socket->sync ? -piece->from_s : 0);
        spoken_rest(
            &spoken, piece->text, piece->bytes, piece->seconds, elevenlabs_alignment_letter, &a);
        send_sound(t, NULL, 0, elevenlabs_alignment_end(&a), false);
    }
    end_if_done(t);
}

static void on_failed(void *user, const struct refusal *r)
{
    struct el_context *t = user;
    struct el_socket *x = t->socket;
    char name[sizeof t->name];
    memcpy(name, t->name, sizeof name);
    drop_context(t);
    send_error(x, r, name); /* of stream-input it closes the connection */
    if (x->many) {
        close_when_done(x);
    }
}

static const struct context_sink sink = {on_sound, on_piece, on_failed};

/* ---- What the client says ---- */

static struct el_context *find_context(struct el_socket *x, const char *name)
{
    struct el_context *t;
    TAILQ_FOREACH(t, &x->contexts, entry)
    {
        if (strcmp(t->name, name) == 0) {
            return t;
        }
    }
    return NULL;
}

static const char *given(const char *text)
{
    return *text ? text : NULL;
}

/* NULL after an error. `message`: the first of the context, with its settings. */
static struct el_context *open_context(
    struct el_socket *x, const char *name, const json_t *message, struct refusal *r)
{
    struct fields fields;
    struct elevenlabs_query query = {given(x->format), given(x->language), given(x->seed)};
    if (x->n_contexts == MOST_CONTEXTS) {
        refuse(r, 429, "context_id", "a connection has at most %d contexts at once", MOST_CONTEXTS);
        return NULL;
    }
    if (!ask_fields(&fields, x->conn, "elevenlabs", x->voice,
            elevenlabs_fields(message, &query, false, r), FIELDS_FOR_SESSION, r)) {
        return NULL;
    }
    struct el_context *t = memory_new(1, sizeof *t);
    struct context *speaks = t ? context_new(x->conn, &fields, ahead_s, &sink, t) : NULL;
    if (!speaks) {
        memory_free(t);
        refuse(r, 503, NULL, "out of memory");
        return NULL;
    }
    t->socket = x;
    t->speaks = speaks;
    strncat(t->name, name, sizeof t->name - 1);
    TAILQ_INSERT_TAIL(&x->contexts, t, entry);
    x->n_contexts++;
    return t;
}

/* Text without its markup, and without white space in front of the first word. */
static bool add_text(struct el_context *t, const char *text, size_t n, struct refusal *r)
{
    size_t skipped = context_has_text(t->speaks) || t->markup.n_held ? 0 : strspn(text, " \t\r\n");
    char *plain = memory_new(n + MARKUP_MOST, 1);
    if (!plain) {
        return refuse(r, 503, NULL, "out of memory");
    }
    size_t bytes = markup_strip(&t->markup, text + skipped, n - skipped, plain);
    bool good = bytes == 0 || context_text(t->speaks, plain, bytes, r);
    memory_free(plain);
    return good;
}

/* What is written after this may have been freed: a piece that fails at once takes its context with it. */
static void flush(struct el_socket *x, const char *name)
{
    struct refusal r;
    struct el_context *t = find_context(x, name);
    char rest[MARKUP_MOST];
    size_t n = t ? markup_end(&t->markup, rest) : 0;
    if (n && !context_text(t->speaks, rest, n, &r)) {
        send_error(x, &r, name);
        return;
    }
    t = find_context(x, name);
    if (t && context_has_text(t->speaks)) {
        context_flush(t->speaks);
    }
}

static void close_context(struct el_socket *x, const char *name)
{
    struct el_context *t = find_context(x, name);
    if (t) {
        t->closing = true;
        context_drop_open(t->speaks);
        end_if_done(t);
    }
}

static void close_all(struct el_socket *x)
{
    x->closing = true;
    for (struct el_context *t = TAILQ_FIRST(&x->contexts), *after; t; t = after) {
        after = TAILQ_NEXT(t, entry);
        t->closing = true;
        context_drop_open(t->speaks);
        if (context_is_idle(t->speaks)) {
            send_sound(t, NULL, 0, json_null(), true);
            drop_context(t);
        }
    }
    close_when_done(x);
}

/* An empty text ends stream-input: what has come is said to its end. */
static void end_one(struct el_socket *x)
{
    struct el_context *t = TAILQ_FIRST(&x->contexts);
    x->closing = true;
    if (!t) {
        close_when_done(x);
        return;
    }
    t->closing = true;
    if (context_has_text(t->speaks) || t->markup.n_held) {
        flush(x, "");
    } else {
        end_if_done(t);
    }
}

static void take_text(struct el_socket *x, const struct elevenlabs_message *m, const json_t *json)
{
    struct refusal r;
    struct el_context *t = find_context(x, m->context);
    if (t && t->closing) {
        refuse(&r, 400, "context_id", "the context '%.40s' has been closed", m->context);
        send_error(x, &r, m->context);
        return;
    }
    if (!t && (m->bytes || !x->many)) {
        t = open_context(x, m->context, json, &r);
        if (!t) {
            send_error(x, &r, m->context);
            return;
        }
    }
    if (t && m->bytes && !add_text(t, m->text, m->bytes, &r)) {
        send_error(x, &r, m->context);
    }
}

static void take(struct el_socket *x, const struct elevenlabs_message *m, const json_t *json)
{
    if (m->close_socket) {
        close_all(x);
    } else if (!x->many && m->text && m->bytes == 0) {
        end_one(x);
    } else {
        struct conn *c = x->conn;
        if (m->text) {
            take_text(x, m, json);
        }
        if (c->owner && m->flush) { /* an error may have closed the connection */
            flush(x, m->context);
        }
        if (c->owner && m->close_context) {
            close_context(x, m->context);
        }
    }
}

static void on_message(void *user, const struct websocket_event *event)
{
    struct el_socket *x = user;
    struct elevenlabs_message m;
    struct refusal r;
    json_t *json = NULL;
    utter_error error = {.text = ""};
    x->conn->deadline = clock_seconds() + x->idle_s;
    if (event->kind != WEBSOCKET_TEXT) {
        conn_close_socket(x->conn, WEBSOCKET_NOT_TEXT, "only text messages are known here");
        return;
    }
    if (x->closing) {
        return;
    }
    if (body_parse(&json, (const char *)event->data, event->bytes, "the message", &error) != UTTER_OK) {
        refuse(&r, 400, NULL, "%s", error.text);
        send_error(x, &r, "");
        return;
    }
    if (!elevenlabs_read(&m, json, &r)) {
        send_error(x, &r, m.context);
    } else {
        m.context = x->many ? m.context : "";
        take(x, &m, json);
    }
    json_decref(json);
}

static void on_gone(void *user)
{
    struct el_socket *x = user;
    for (struct el_context *t; (t = TAILQ_FIRST(&x->contexts));) {
        drop_context(t);
    }
    memory_free(x);
}

static void on_drained(void *user)
{
    struct el_socket *x = user;
    struct el_context *t;
    TAILQ_FOREACH(t, &x->contexts, entry)
    {
        context_hold(t->speaks, false);
    }
}

/* Too long without a word, or the server is about to stop: what was flushed is said. */
static void on_idle(void *user)
{
    struct el_socket *x = user;
    x->conn->deadline = clock_seconds() + x->idle_s;
    close_all(x);
}

static const struct conn_owner owner = {on_gone, on_drained, on_message, on_idle};

const char *elevenlabs_voice(const struct conn *c, char *out, size_t size)
{
    const char *name = strstr(c->head.path, "/text-to-speech/") + strlen("/text-to-speech/");
    size_t n = strcspn(name, "/");
    if (n >= size) {
        n = size - 1;
    }
    memcpy(out, name, n);
    out[n] = 0;
    return out;
}

/* Whether a context can be opened with what stands in the path and the query alone. */
static bool can_speak(struct el_socket *x, struct refusal *r)
{
    struct fields fields;
    struct elevenlabs_query query = {given(x->format), given(x->language), given(x->seed)};
    bool good = ask_fields(&fields, x->conn, "elevenlabs", x->voice,
        elevenlabs_fields(NULL, &query, false, r), FIELDS_FOR_SESSION, r);
    if (good) {
        fields_fini(&fields);
    }
    return good;
}

static void open_socket(struct conn *c, bool many)
{
    char accept[29], word[16];
    struct refusal r;
    if (!conn_handshake(c, accept)) {
        return;
    }
    struct el_socket *x = memory_new(1, sizeof *x);
    if (!x) {
        refuse(&r, 503, NULL, "out of memory");
        conn_refuse(c, &r);
        return;
    }
    x->conn = c;
    x->many = many;
    TAILQ_INIT(&x->contexts);
    elevenlabs_voice(c, x->voice, sizeof x->voice);
    ask_query(c, "output_format", x->format, sizeof x->format);
    ask_query(c, "language_code", x->language, sizeof x->language);
    ask_query(c, "seed", x->seed, sizeof x->seed);
    x->sync = ask_query(c, "sync_alignment", word, sizeof word) && strcmp(word, "true") == 0;
    const char *idle = ask_query(c, "inactivity_timeout", word, sizeof word);
    x->idle_s = idle ? strtod(idle, NULL) : QUIET_S;
    x->idle_s = x->idle_s >= 1 && x->idle_s <= MOST_QUIET_S ? x->idle_s : QUIET_S;
    /* Of several contexts each may fail by itself, which clients pass over: what is wrong for all is told at once.
     * stream-input's client wants the reason in a message. */
    if (many && !can_speak(x, &r)) {
        ask_refuse(c, &r);
        memory_free(x);
        return;
    }
    conn_own(c, &owner, x);
    conn_upgrade(c, accept, LIMIT_WS_MESSAGE);
}

void elevenlabs_socket_one(struct conn *c)
{
    open_socket(c, false);
}

void elevenlabs_socket_many(struct conn *c)
{
    open_socket(c, true);
}
