/* SPDX-License-Identifier: Apache-2.0
 * The contexts of a WebSocket, and their lives. */
#include "server/dialects/talk.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/memory.h"
#include "server/loop/conn/body.h"

enum { MOST_CONTEXTS = 16 };

/* ---- Lives ---- */

/* What others had put together and never sent is no loss of this client. */
static void enter(struct talk *x)
{
    if (x->n_inside++ == 0) {
        json_text_forget();
    }
}

/* A client for which something could not be put together is not told the rest, either. */
static void leave(struct talk *x)
{
    if (!x->is_gone && json_text_lacks()) {
        conn_starve(x->conn);
    }
    if (--x->n_inside > 0) {
        return;
    }
    for (struct talk_context *t; (t = TAILQ_FIRST(&x->gone));) {
        TAILQ_REMOVE(&x->gone, t, entry);
        memory_free(t->own);
        memory_free(t);
    }
    if (x->is_gone) {
        if (x->dialect->gone) {
            x->dialect->gone(x);
        }
        memory_free(x->own);
        memory_free(x);
    }
}

void talk_drop(struct talk_context *t)
{
    struct talk *x = t->talk;
    if (t->is_gone) {
        return;
    }
    t->is_gone = true;
    TAILQ_REMOVE(&x->contexts, t, entry);
    TAILQ_INSERT_TAIL(&x->gone, t, entry);
    x->n_contexts--;
    context_free(t->speaks);
    if (t->wait) {
        event_free(t->wait);
    }
}

void talk_hang_up(struct talk *x, int code, const char *why)
{
    if (!x->is_gone) {
        conn_close_socket(x->conn, x->conn->server->draining ? WEBSOCKET_GOING_AWAY : code, why);
    }
}

static void close_when_done(struct talk *x)
{
    if (!x->is_gone && x->closing && TAILQ_EMPTY(&x->contexts)) {
        talk_hang_up(x, WEBSOCKET_NORMAL, "");
    }
}

static void end_if_done(struct talk_context *t)
{
    if (!t->is_gone && t->closing && context_is_idle(t->speaks)) {
        t->talk->dialect->ended(t);
        talk_drop(t);
        close_when_done(t->talk);
    }
}

/* ---- To the client ---- */

void talk_send(struct talk *x, json_t *json)
{
    if (x->is_gone) {
        json_decref(json);
    } else {
        conn_send_json(x->conn, json);
    }
}

void talk_send_sound(struct talk *x, const void *bytes, size_t n)
{
    if (!x->is_gone) {
        conn_send(x->conn, WEBSOCKET_BINARY, bytes, n);
    }
}

void talk_fail(struct talk *x, const struct refusal *r, const char *name)
{
    if (!x->is_gone) {
        x->conn->server->metrics.rejected[METRICS_INVALID] += r->status < 500;
        x->dialect->failed(x, r, name);
    }
}

static void stay_awake(struct talk *x)
{
    x->conn->deadline = clock_seconds() + x->idle_s;
}

static void on_sound(void *user, const void *bytes, size_t n)
{
    struct talk_context *t = user;
    struct talk *x = t->talk;
    enter(x);
    stay_awake(x);
    x->dialect->sound(t, bytes, n);
    leave(x);
}

static void on_piece(void *user, const struct context_piece *piece)
{
    struct talk_context *t = user;
    struct talk *x = t->talk;
    enter(x);
    stay_awake(x);
    x->dialect->piece(t, piece);
    t->spoken = (struct spoken){0};
    end_if_done(t);
    leave(x);
}

static void on_words(
    void *user, const struct context_piece *piece, const struct speech_word *words, size_t n, bool next)
{
    struct talk_context *t = user;
    struct talk *x = t->talk;
    enter(x);
    x->dialect->words(t, piece, words, n, next);
    leave(x);
}

static void on_failed(void *user, const struct refusal *r)
{
    struct talk_context *t = user;
    struct talk *x = t->talk;
    enter(x);
    talk_drop(t);
    talk_fail(x, r, t->name);
    close_when_done(x);
    leave(x);
}

static const struct context_sink sink = {on_sound, on_piece, on_failed, on_words};

/* ---- Contexts ---- */

struct talk_context *talk_find(struct talk *x, const char *name)
{
    struct talk_context *t;
    TAILQ_FOREACH(t, &x->contexts, entry)
    {
        if (strcmp(t->name, name) == 0) {
            return t;
        }
    }
    return NULL;
}

struct talk_context *talk_begin(
    struct talk *x, const char *name, struct fields *fields, double ahead_s, struct refusal *r)
{
    if (x->is_gone || x->n_contexts == MOST_CONTEXTS) {
        fields_fini(fields);
        refuse(r, 429, "context_id", "a connection has at most %d contexts at once", MOST_CONTEXTS);
        return NULL;
    }
    struct talk_context *t = memory_new(1, sizeof *t);
    struct context *speaks = t ? context_new(x->conn, fields, ahead_s, &sink, t) : NULL;
    if (!speaks) {
        if (!t) {
            fields_fini(fields);
        }
        memory_free(t);
        refuse(r, 503, NULL, "out of memory");
        return NULL;
    }
    t->talk = x;
    t->speaks = speaks;
    strncat(t->name, name, sizeof t->name - 1);
    TAILQ_INSERT_TAIL(&x->contexts, t, entry);
    x->n_contexts++;
    return t;
}

bool talk_has_text(const struct talk_context *t)
{
    return !t->is_gone && (t->markup.n_held || context_has_text(t->speaks));
}

bool talk_text(struct talk_context *t, const char *text, size_t n, struct refusal *r)
{
    size_t skipped = talk_has_text(t) ? 0 : strspn(text, " \t\r\n");
    char *plain = t->is_gone || skipped >= n ? NULL : memory_new(n + MARKUP_MOST, 1);
    if (t->is_gone || skipped >= n) {
        return true;
    }
    if (!plain) {
        return refuse(r, 503, NULL, "out of memory");
    }
    size_t bytes = markup_strip(&t->markup, text + skipped, n - skipped, plain);
    bool good = bytes == 0 || context_text(t->speaks, plain, bytes, r);
    memory_free(plain);
    if (good) {
        talk_flush_after(t, WS_IDLE_S); /* a lane is not kept for longer for text that does not come */
    }
    return good;
}

void talk_flush(struct talk_context *t, int tag)
{
    struct refusal r;
    char rest[MARKUP_MOST];
    size_t n = t->is_gone ? 0 : markup_end(&t->markup, rest);
    if (n && !context_text(t->speaks, rest, n, &r)) {
        talk_fail(t->talk, &r, t->name);
    }
    if (!t->is_gone && !context_flush(t->speaks, tag, &r)) {
        talk_fail(t->talk, &r, t->name);
    }
}

static void on_wait(evutil_socket_t socket, short what, void *user)
{
    struct talk_context *t = user;
    struct talk *x = t->talk;
    (void)socket, (void)what;
    enter(x);
    if (talk_has_text(t)) {
        talk_flush(t, 0);
    }
    leave(x);
}

void talk_flush_after(struct talk_context *t, double seconds)
{
    if (t->is_gone) {
        return;
    }
    if (t->wait) {
        event_del(t->wait);
    }
    if (seconds >= 0) {
        struct timeval time = {(time_t)seconds, (suseconds_t)(1e6 * (seconds - floor(seconds)))};
        t->wait = t->wait ? t->wait : event_new(t->talk->conn->server->base, -1, 0, on_wait, t);
        if (t->wait) {
            event_add(t->wait, &time);
        }
    }
}

void talk_clear(struct talk_context *t)
{
    if (!t->is_gone) {
        t->markup.n_held = 0;
        t->spoken = (struct spoken){0};
        context_clear(t->speaks);
    }
}

void talk_end(struct talk_context *t)
{
    t->closing = true;
    if (talk_has_text(t)) {
        talk_flush(t, 0);
    } else if (!t->is_gone) {
        context_drop_open(t->speaks); /* white space may have been left */
        end_if_done(t);
    }
}

void talk_close(struct talk *x)
{
    struct talk_context *t;
    x->closing = true;
    do { /* an end takes its context out of the list: each search begins anew */
        TAILQ_FOREACH(t, &x->contexts, entry)
        {
            if (!t->closing) {
                break;
            }
        }
        if (t) {
            t->closing = true;
            context_drop_open(t->speaks);
            end_if_done(t);
        }
    } while (t && !x->is_gone);
    close_when_done(x);
}

/* ---- The connection ---- */

static void take(struct talk *x, const struct websocket_event *event)
{
    json_t *json = NULL;
    struct refusal r;
    utter_error error = {.text = ""};
    utter_status status;
    if (event->kind != WEBSOCKET_TEXT) {
        talk_hang_up(x, WEBSOCKET_NOT_TEXT, "only text messages are known here");
    } else if (x->closing) {
        return;
    } else if ((status = body_parse(&json, (const char *)event->data, event->bytes, "the message",
                    &error)) == UTTER_E_MEMORY) {
        talk_hang_up(x, WEBSOCKET_TRY_LATER, "out of memory");
    } else if (status != UTTER_OK) {
        refuse(&r, 400, NULL, "%s", error.text);
        talk_fail(x, &r, "");
    } else if (!json_is_object(json)) {
        refuse(&r, 400, NULL, "a message must be a JSON object");
        talk_fail(x, &r, "");
    } else {
        x->dialect->message(x, json);
    }
    json_decref(json);
}

static void on_message(void *user, const struct websocket_event *event)
{
    struct talk *x = user;
    enter(x);
    stay_awake(x);
    take(x, event);
    leave(x);
}

static void on_gone(void *user)
{
    struct talk *x = user;
    enter(x);
    x->is_gone = true;
    for (struct talk_context *t; (t = TAILQ_FIRST(&x->contexts));) {
        talk_drop(t);
    }
    leave(x);
}

static void on_drained(void *user)
{
    struct talk *x = user;
    struct talk_context *t;
    TAILQ_FOREACH(t, &x->contexts, entry)
    {
        context_hold(t->speaks, false);
    }
}

/* Too long without a word, or the server is about to stop. */
static void on_idle(void *user)
{
    struct talk *x = user;
    enter(x);
    stay_awake(x);
    talk_close(x);
    leave(x);
}

static bool speaks(const void *user)
{
    const struct talk *x = user;
    const struct talk_context *t;
    TAILQ_FOREACH(t, &x->contexts, entry)
    {
        if (context_speaks(t->speaks)) {
            return true;
        }
    }
    return false;
}

static const struct conn_owner owner = {on_gone, on_drained, on_message, on_idle, speaks};

struct talk *talk_open(
    struct conn *c, const char *accept, const struct talk_dialect *dialect, double idle_s, void *own)
{
    struct talk *x = memory_new(1, sizeof *x);
    if (!x) {
        struct refusal r;
        memory_free(own);
        refuse(&r, 503, NULL, "out of memory");
        conn_refuse(c, &r);
        return NULL;
    }
    x->conn = c;
    x->dialect = dialect;
    x->idle_s = idle_s;
    x->own = own;
    TAILQ_INIT(&x->contexts);
    TAILQ_INIT(&x->gone);
    conn_own(c, &owner, x);
    conn_upgrade(c, accept, LIMIT_WS_MESSAGE);
    if (!c->socket) { /* memory is out, and the client knows */
        memory_free(own);
        memory_free(x);
        return NULL;
    }
    stay_awake(x); /* the first message has as much time as any other */
    return x;
}
