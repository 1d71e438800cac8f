/* SPDX-License-Identifier: Apache-2.0
 * WebSocket /v2/speak: turns, one after the other. A flush ends a turn; an interruption ends the turn that is heard and
 * all behind it, and tells what of its text was heard by the offset that the client gives, which counts the session's
 * sound from its start. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/minmax.h"
#include "server/dialects/deepgram/deepgram_message.h"
#include "server/dialects/deepgram/deepgram_socket.h"
#include "server/dialects/talk.h"

enum { QUIET_S = 300 };
static const double ahead_s = 4; /* of sound: the client says how far it was heard */

struct session {
    uint64_t n_request; /* of the one that opened the connection: turns are named by it */
    unsigned n_turns;
    bool speaks;      /* the turn has begun to sound */
    double turn_s;    /* of its sound, sent so far */
    double session_s; /* sound of the turns that are over; an interruption sets it to what was heard */
    double last_s;    /* of the last turn */
    char *last;       /* its text, which may still be heard */
    struct word_list words; /* of the turn that is spoken, or of the last one */
    double interrupted_ms;  /* the offset of the last interruption */
    size_t chars;           /* of all turns */
};

static struct session *session_of(struct talk *x)
{
    return x->own;
}

static size_t count_chars(const char *text, size_t n)
{
    size_t chars = 0;
    for (size_t i = 0; i < n; i++) {
        chars += ((unsigned char)text[i] & 0xC0) != 0x80;
    }
    return chars;
}

static const char *turn_id(const struct session *s, char out[24])
{
    unsigned long long id = (unsigned long long)s->n_request << 16 | (s->n_turns & 0xFFFF);
    snprintf(out, 24, "dg_sp_%012llx", id & 0xFFFFFFFFFFFFULL);
    return out;
}

static void tell(struct talk *x, const char *type)
{
    char id[24];
    talk_send(x, json_pack("{s:s,s:s}", "type", type, "speech_id", turn_id(session_of(x), id)));
}

static void begin_turn(struct talk *x)
{
    struct session *s = session_of(x);
    if (!s->speaks) {
        s->speaks = true;
        s->turn_s = 0;
        s->n_turns++;
        word_list_fini(&s->words);
        tell(x, "SpeechStarted");
    }
}

static void on_sound(struct talk_context *t, const void *bytes, size_t n)
{
    struct context_piece now;
    begin_turn(t->talk);
    if (context_now(t->speaks, &now)) {
        session_of(t->talk)->turn_s = now.seconds;
    }
    talk_send_sound(t->talk, bytes, n);
}

static void on_words(struct talk_context *t, const struct context_piece *piece,
    const struct speech_word *words, size_t n, bool next)
{
    struct session *s = session_of(t->talk);
    const struct speech_words more = {s->words.n, words, n, piece->approximate};
    (void)next;
    begin_turn(t->talk);
    word_list_take(&s->words, &more);
}

static void on_piece(struct talk_context *t, const struct context_piece *piece)
{
    struct talk *x = t->talk;
    struct session *s = session_of(x);
    char id[24];
    begin_turn(x);
    struct deepgram_turn turn = {
        turn_id(s, id), piece->seconds, count_chars(piece->text, piece->bytes)};
    if (piece->blank) {
        talk_send(x, deepgram_warning("NO_SYNTHESIZABLE_TEXT", "the turn has no words"));
    }
    tell(x, "Flushed");
    talk_send(x, deepgram_speech_metadata(&turn));
    s->speaks = false;
    s->session_s += piece->seconds;
    s->chars += turn.chars;
    memory_free(s->last);
    s->last = memory_string_n(piece->text ? piece->text : "", piece->bytes);
    s->last_s = piece->seconds;
}

static void on_ended(struct talk_context *t)
{
    const struct session *s = session_of(t->talk);
    talk_send(t->talk, json_pack("{s:s,s:I,s:I,s:I}", "type", "SessionMetadata", "audio_duration_ms",
                           (json_int_t)llround(1e3 * s->session_s), "input_character_count",
                           (json_int_t)s->chars, "billable_character_count", (json_int_t)s->chars));
}

static void forget_last(struct session *s)
{
    memory_free(s->last);
    s->last = NULL;
}

static void on_failed(struct talk *x, const struct refusal *r, const char *name)
{
    struct session *s = session_of(x);
    (void)name;
    if (s->speaks) { /* the client counts what it was sent, and cannot tell of the turn before any more */
        s->session_s += s->turn_s;
        forget_last(s);
    }
    s->speaks = false;
    talk_send(x, deepgram_error(r));
}

/* ---- Interruptions ---- */

/* Ends what is said, and tells what of it was heard: of the turn that sounds, or of the one before it. */
static void interrupt_turn(struct talk_context *t, double played_ms)
{
    struct talk *x = t->talk;
    struct session *s = session_of(x);
    struct context_piece now;
    char id[24];
    bool active = context_now(t->speaks, &now);
    double from_s = active ? s->session_s : s->session_s - s->last_s;
    const char *text = active ? now.text : s->last ? s->last : "";
    size_t n = active ? now.bytes : strlen(text);
    double total_ms = 1e3 * (s->session_s + (active ? now.seconds : 0));
    played_ms = min(played_ms, total_ms); /* nobody has heard more than there was */
    struct deepgram_turn turn = {
        turn_id(s, id), active ? now.seconds : s->last_s, count_chars(text, n)};
    long long spoken =
        played_ms < 0 ? -1 : (long long)word_list_heard(&s->words, text, n, played_ms / 1e3 - from_s);
    json_t *said = deepgram_interrupted(&turn, played_ms < 0 ? total_ms : played_ms, text, n, spoken);
    if (said && s->words.approximate) {
        json_object_set_new(said, "approximate", json_true());
    }
    talk_clear(t);
    talk_send(x, said);
    word_list_fini(&s->words);
    s->interrupted_ms = played_ms < 0 ? total_ms : played_ms;
    s->session_s = s->interrupted_ms / 1e3;
    s->chars += active ? turn.chars : 0;
    s->speaks = false;
    forget_last(s);
}

static void interrupt(struct talk_context *t, double played_ms)
{
    struct session *s = session_of(t->talk);
    struct context_piece now;
    bool active = context_now(t->speaks, &now);
    if (!active && !s->last && s->session_s <= 0) {
        talk_clear(t); /* text that has not begun to sound goes all the same */
        talk_send(t->talk, deepgram_warning("NO_AUDIO_GENERATED", "nothing has been said yet"));
    } else if (!active && !s->last) {
        talk_clear(t);
        talk_send(t->talk, deepgram_warning("NO_ACTIVE_SPEECH", "nothing is being said"));
    } else if (played_ms >= 0 && played_ms < s->interrupted_ms) {
        talk_send(t->talk, deepgram_warning("INVALID_INTERRUPT_OFFSET",
                               "the offset lies before that of the last interruption"));
    } else {
        interrupt_turn(t, played_ms);
    }
}

/* ---- What the client says ---- */

static void configure(struct talk_context *t, double speed)
{
    if (speed >= 0.25 && speed <= 4) {
        context_speed(t->speaks, speed);
        talk_send(
            t->talk, json_pack("{s:s,s:{s:f}}", "type", "ConfigureSuccess", "applied", "speed", speed));
    } else {
        talk_send(t->talk,
            json_pack("{s:s,s:s,s:s,s:s}", "type", "ConfigureFailure", "code", "SPEED_OUT_OF_RANGE",
                "field", "speed", "description", "\"speed\" must be a number from 0.25 to 4"));
    }
}

static struct talk_context *context_of(struct talk *x, struct refusal *r)
{
    struct fields fields;
    struct talk_context *t = talk_find(x, "");
    if (t || !deepgram_ask(&fields, x->conn, NULL, r)) {
        return t;
    }
    fields.words = true;
    return talk_begin(x, "", &fields, ahead_s, r);
}

static void on_message(struct talk *x, const json_t *json)
{
    struct deepgram_message m;
    struct refusal r;
    if (!deepgram_read(&m, json, true, &r)) {
        talk_fail(x, &r, "");
        return;
    }
    struct talk_context *t = context_of(x, &r);
    if (!t) {
        talk_fail(x, &r, "");
        return;
    }
    switch (m.kind) {
    case DEEPGRAM_SPEAK:
        if (!talk_text(t, m.text, m.bytes, &r)) {
            talk_fail(x, &r, "");
        }
        break;
    case DEEPGRAM_FLUSH:
        talk_flush(t, 1);
        break;
    case DEEPGRAM_INTERRUPT:
        interrupt(t, m.played_ms);
        break;
    case DEEPGRAM_CONFIGURE:
        configure(t, m.speed);
        break;
    case DEEPGRAM_CLOSE:
    case DEEPGRAM_CLEAR:
        x->closing = true;
        talk_end(t);
        break;
    }
}

static void on_gone(struct talk *x)
{
    memory_free(session_of(x)->last);
    word_list_fini(&session_of(x)->words);
}

static const struct talk_dialect dialect = {
    on_message, on_sound, on_piece, on_ended, on_failed, on_gone, on_words};

void deepgram_flux(struct conn *c)
{
    char accept[29];
    struct session *session = deepgram_begin(c, accept, sizeof *session);
    if (!session) {
        return;
    }
    session->n_request = c->server->n_requests;
    json_t *said = deepgram_about(c, "Connected");
    json_object_set_new(said, "model_uuids", json_pack("[s]", c->server->model_id));
    struct talk *x = talk_open(c, accept, &dialect, QUIET_S, session);
    if (x) {
        talk_send(x, said);
    } else {
        json_decref(said);
    }
}
