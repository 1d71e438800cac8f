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
static const double ahead_s =
    6; /* of sound: a client that knows what it has heard loses nothing by more */

/* ---- Back to the client ---- */

static void on_sound(struct talk_context *t, const void *bytes, size_t n)
{
    talk_send(t->talk, cartesia_chunk(t->name, base64_write(bytes, n), 0));
}

static void on_piece(struct talk_context *t, const struct context_piece *piece)
{
    if (!piece->blank && t->tells_words) {
        struct cartesia_words words;
        struct spoken spoken = {0};
        cartesia_words_begin(&words, piece->from_s);
        spoken_rest(&spoken, piece->text, piece->bytes, piece->seconds, cartesia_words_letter, &words);
        talk_send(t->talk, cartesia_timestamps(t->name, cartesia_words_end(&words)));
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
    struct talk_context *t = ask_fields(&fields, x->conn, "cartesia", m->voice,
                                 cartesia_fields(json, false, true, r), FIELDS_FOR_SESSION, r)
                                 ? talk_begin(x, m->context, &fields, ahead_s, r)
                                 : NULL;
    if (t) {
        t->tells_words = m->add_timestamps;
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

static const struct talk_dialect dialect = {on_message, on_sound, on_piece, on_ended, on_failed, NULL};

void cartesia_socket(struct conn *c)
{
    char accept[29];
    if (conn_handshake(c, accept)) {
        talk_open(c, accept, &dialect, QUIET_S, NULL);
    }
}
