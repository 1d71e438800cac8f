/* SPDX-License-Identifier: Apache-2.0
 * WebSocket /v1/speak: sound carries no name here, so that a client takes all that comes for its newest text. Nothing
 * of the old one comes behind Cleared, and little runs ahead of hearing: nobody can tell what of it was heard. */
#include <string.h>

#include "base/memory.h"
#include "server/dialects/deepgram/deepgram_message.h"
#include "server/dialects/deepgram/deepgram_socket.h"
#include "server/dialects/talk.h"

enum { QUIET_S = 300 };
static const double ahead_s = 2; /* of sound */

/* Flushes and clears so far, each counted from 0 as it is told. */
struct counts {
    int flushes, clears;
};

static void tell(struct talk *x, const char *type, int sequence)
{
    talk_send(x, json_pack("{s:s,s:i}", "type", type, "sequence_id", sequence));
}

static void on_sound(struct talk_context *t, const void *bytes, size_t n)
{
    talk_send_sound(t->talk, bytes, n);
}

static void on_piece(struct talk_context *t, const struct context_piece *piece)
{
    if (piece->tag > 0) {
        tell(t->talk, "Flushed", piece->tag - 1);
    }
}

static void on_ended(struct talk_context *t)
{
    (void)t; /* the connection closes */
}

static void on_failed(struct talk *x, const struct refusal *r, const char *name)
{
    (void)name;
    talk_send(x, deepgram_error(r));
}

static struct talk_context *context_of(struct talk *x, struct refusal *r)
{
    struct fields fields;
    struct talk_context *t = talk_find(x, "");
    return t                                         ? t
           : deepgram_ask(&fields, x->conn, NULL, r) ? talk_begin(x, "", &fields, ahead_s, r)
                                                     : NULL;
}

static void on_message(struct talk *x, const json_t *json)
{
    struct deepgram_message m;
    struct refusal r;
    struct counts *counts = x->own;
    if (!deepgram_read(&m, json, false, &r)) {
        talk_send(x, deepgram_warning("INVALID_MESSAGE", r.message));
        return;
    }
    struct talk_context *t = context_of(x, &r);
    if (!t) {
        talk_fail(x, &r, "");
    } else if (m.kind == DEEPGRAM_SPEAK) {
        if (!talk_text(t, m.text, m.bytes, &r)) {
            talk_fail(x, &r, "");
        }
    } else if (m.kind == DEEPGRAM_FLUSH) {
        talk_flush(t, ++counts->flushes);
    } else if (m.kind == DEEPGRAM_CLEAR) {
        talk_clear(t);
        tell(x, "Cleared", counts->clears++);
    } else {
        x->closing = true;
        talk_end(t);
    }
}

static const struct talk_dialect dialect = {
    on_message, on_sound, on_piece, on_ended, on_failed, NULL, NULL};

void deepgram_aura(struct conn *c)
{
    char accept[29];
    struct counts *counts = deepgram_begin(c, accept, sizeof *counts);
    if (!counts) {
        return;
    }
    json_t *said = deepgram_about(c, "Metadata");
    json_object_set_new(said, "model_uuid", json_string(c->server->model_id));
    struct talk *x = talk_open(c, accept, &dialect, QUIET_S, counts);
    if (x) {
        talk_send(x, said);
    } else {
        json_decref(said);
    }
}
