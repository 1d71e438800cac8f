/* SPDX-License-Identifier: Apache-2.0
 * Contexts of Cartesia: voice, format and language are those of a context's first message. Text that nothing follows
 * for a while is spoken as it stands. */
#include "server/dialects/cartesia/cartesia_socket.h"

#include <string.h>

#include "base/memory.h"
#include "server/dialects/ask.h"
#include "server/dialects/cartesia/cartesia_message.h"
#include "server/dialects/talk.h"
#include "server/protocol/base64.h"

enum { QUIET_S = 300 };
/* Of sound: a client that knows what it has heard loses nothing by more. */
static const double ahead_s = 6;

/* ---- Back to the client ---- */

static void on_sound(struct talk_context *t, const void *bytes, size_t n)
{
    talk_send(t->talk, cartesia_chunk(t->name, base64_write(bytes, n), 0));
}

/* `words`: taken over, or NULL. */
static void send_words(struct talk_context *t, const struct context_piece *piece, json_t *words)
{
    if (words) {
        talk_send(t->talk, cartesia_timestamps(t->name, words, piece->approximate));
    }
}

static void on_words(struct talk_context *t, const struct context_piece *piece,
    const struct speech_word *words, size_t n, bool next)
{
    struct cartesia_words *told = t->own;
    told->from_s = piece->from_s;
    spoken_words(&t->spoken, piece->text, piece->bytes, words, n, next, cartesia_words_letter, told);
    send_words(t, piece, cartesia_words_take(told));
}

static void on_piece(struct talk_context *t, const struct context_piece *piece)
{
    struct cartesia_words *told = t->own;
    if (!piece->blank && told) {
        told->from_s = piece->from_s;
        spoken_rest(&t->spoken, piece->text, piece->bytes, piece->seconds, cartesia_words_letter, told);
        send_words(t, piece, cartesia_words_end(told));
    }
    if (piece->tag > 0) {
        talk_send(t->talk, cartesia_flush_done(t->name, piece->tag));
    }
}

static void on_ended(struct talk_context *t)
{
    talk_send(t->talk, cartesia_done(t->name));
}

static void on_failed(struct talk *x, const struct refusal *r, const char *name)
{
    talk_send(x, cartesia_error(r, name));
}

/* ---- What the client says ---- */

static struct talk_context *begin(
    struct talk *x, const struct cartesia_message *m, const json_t *json, struct refusal *r)
{
    struct fields fields;
    if (!ask_fields(&fields, x->conn, "cartesia", m->voice, cartesia_fields(json, false, true, r),
            FIELDS_FOR_SESSION, r)) {
        return NULL;
    }
    struct cartesia_words *words = m->add_timestamps ? memory_new(1, sizeof *words) : NULL;
    fields.words = words != NULL;
    struct talk_context *t = talk_begin(x, m->context, &fields, ahead_s, r);
    if (t) {
        t->own = words;
    } else {
        memory_free(words);
    }
    return t;
}

static void on_message(struct talk *x, const json_t *json)
{
    struct cartesia_message m;
    struct refusal r;
    if (!cartesia_read(&m, json, &r)) {
        talk_fail(x, &r, m.context);
        return;
    }
    struct talk_context *t = talk_find(x, m.context);
    if (m.cancel) {
        /* Not a word more of it: a `done` of a context that its client has forgotten would end another one's. */
        if (t) {
            talk_drop(t);
        }
        return;
    }
    if (t && t->closing) {
        refuse(&r, 400, "context_id", "the context has been told that no more text comes");
        talk_fail(x, &r, m.context);
        return;
    }
    t = t ? t : begin(x, &m, json, &r);
    if (!t || !talk_text(t, m.transcript, m.bytes, &r)) {
        talk_fail(x, &r, m.context);
        return;
    }
    if (m.flush) {
        talk_flush(t, ++t->n_flushes);
    } else if (m.goes_on && m.delay_s <= 0 && talk_has_text(t)) {
        talk_flush(t, 0);
    } else if (m.goes_on) {
        talk_flush_after(t, m.delay_s);
    }
    if (!m.goes_on) {
        talk_end(t);
    }
}

static const struct talk_dialect dialect = {
    on_message, on_sound, on_piece, on_ended, on_failed, NULL, on_words};

void cartesia_socket(struct conn *c)
{
    char accept[29];
    if (conn_handshake(c, accept)) {
        talk_open(c, accept, &dialect, QUIET_S, NULL);
    }
}
