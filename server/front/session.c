/* SPDX-License-Identifier: Apache-2.0
 * WebSocket /v1/audio/speech/stream: text in pieces, sound while it is made, any number of utterances. docs/server.md
 * has the messages. */
#include "server/front/session.h"

#include <string.h>
#include <sys/queue.h>

#include "base/memory.h"
#include "base/minmax.h"
#include "server/front/heard.h"
#include "server/front/sentence.h"
#include "server/loop/conn/body.h"
#include "server/speech/speech.h"
#include "server/speech/voices.h"

/* What one speech says: an utterance, or a sentence of it. */
struct part {
    TAILQ_ENTRY(part) entry;
    int utterance, sentence;
    struct wire_out text;
    bool ended; /* no more text will come for it */
    bool last;  /* and no part of its utterance after it */
};

TAILQ_HEAD(part_list, part);

enum { PART_BYTES = 384 }; /* what a part takes besides its text: two allocations */

struct session {
    struct conn *conn;
    struct fields config;
    bool configured, closing;
    bool going_on; /* go_on runs: a speech that ends at once would call it again */
    bool deaf; /* the utterance has ended before its text: what still comes of the text is not said */
    struct part_list parts; /* the first one is spoken, or waits for text */
    size_t waiting_bytes, n_parts;
    int utterance, sentence; /* of the part that text goes into next */
    struct speech *speech;   /* of the first part */
    bool told_start;         /* audio.start has been sent for it */
    size_t sound_bytes;
    struct heard heard; /* of the utterance that is spoken, or of the last one */
};

static const struct speech_sink sink;

/* The connection knows how much text waits in here. */
static void count_text(struct session *x)
{
    x->conn->owner_bytes = x->waiting_bytes + x->n_parts * PART_BYTES + heard_size(&x->heard);
    conn_count(x->conn);
}

static void drop_part(struct session *x, struct part *part)
{
    x->waiting_bytes -= part->text.n;
    x->n_parts--;
    count_text(x);
    TAILQ_REMOVE(&x->parts, part, entry);
    wire_fini(&part->text);
    memory_free(part);
}

static void drop_all(struct session *x)
{
    for (struct part *part; (part = TAILQ_FIRST(&x->parts));) {
        drop_part(x, part);
    }
}

/* `partial`: of a speech whose sound has begun to leave. */
static void send_error(struct session *x, const struct refusal *r, bool partial)
{
    json_t *error = refusal_json(r);
    json_object_set_new(error, "type", json_string("error"));
    json_object_set_new(error, "message", json_string(r->message));
    if (partial) {
        json_object_set_new(error, "partial_audio", json_true());
        json_object_set_new(error, "action", json_string("discard"));
    }
    conn_send_json(x->conn, error);
}

static void send_no_memory(struct session *x)
{
    struct refusal r;
    refuse(&r, 503, NULL, "out of memory");
    send_error(x, &r, false);
}

/* Memory is out for what the client has said: what follows would mean something else without it. Frees the session. */
static void hang_up(struct session *x)
{
    conn_close_socket(x->conn, WEBSOCKET_TRY_LATER, "out of memory");
}

static void send_plain_error(struct session *x, const char *param, const char *why)
{
    struct refusal r;
    refuse(&r, 400, param, "%s", why);
    x->conn->server->metrics.rejected[METRICS_INVALID]++;
    send_error(x, &r, false);
}

static void send_session_done(struct session *x, int utterance, int n_sentences)
{
    conn_send_json(x->conn, json_pack("{s:s,s:i,s:i}", "type", "session.done", "utterance_index",
                                utterance, "total_sentences", n_sentences));
}

static void feed(struct session *x, const char *text, size_t n)
{
    if (n && x->speech) {
        wire_put(&x->heard.text, text, n);
        speech_text(x->speech, text, n);
    }
}

/* No speech is to be had: what waits is forgotten, and the client hears of each utterance that it is over. */
static void refuse_all(struct session *x, const struct refusal *r)
{
    const struct part *part;
    send_error(x, r, false);
    TAILQ_FOREACH(part, &x->parts, entry)
    {
        x->deaf = !part->ended;
        if (part->last || x->deaf) {
            send_session_done(x, part->utterance, part->sentence);
        }
    }
    drop_all(x);
}

static void speak(struct session *x, const struct part *part)
{
    struct refusal r;
    x->told_start = false;
    x->sound_bytes = 0;
    const struct conn *c = x->conn;
    struct speech_request request = {&x->config, METRICS_STREAM, clock_seconds(), c->account,
        c->request_id, c->address,
        part->sentence > 0, /* who has heard the first sentence hears the others */
        &c->trace};
    x->speech = speech_start(c->server, &request, &sink, x, &r);
    if (!x->speech) {
        refuse_all(x, &r);
        return;
    }
    if (part->utterance != x->heard.utterance) {
        heard_begin(&x->heard, part->utterance);
    }
    x->heard.has_words = x->config.words;
    feed(x, (const char *)part->text.bytes, part->text.n);
    if (x->speech && part->ended) {
        speech_finish(x->speech);
    }
}

/* Lets the first part speak, as far as its text is there. Parts without a word are passed over. */
static void go_on(struct session *x)
{
    struct part *part;
    if (x->going_on) {
        return;
    }
    x->going_on = true;
    while (!x->speech && (part = TAILQ_FIRST(&x->parts))) {
        bool blank = sentence_is_blank((const char *)part->text.bytes, part->text.n);
        if (!part->ended && (blank || x->config.cut != FIELDS_CUT_NONE)) {
            break;
        }
        if (blank) {
            if (part->last) {
                send_session_done(x, part->utterance, part->sentence);
            }
            drop_part(x, part);
        } else {
            speak(x, part);
        }
    }
    x->going_on = false;
    if (TAILQ_EMPTY(&x->parts) && x->closing) {
        conn_close_socket(
            x->conn, x->conn->server->draining ? WEBSOCKET_GOING_AWAY : WEBSOCKET_NORMAL, "");
    }
}

/* The words that are new; those that come before the sound wait for it. */
static void tell_words(struct session *x)
{
    json_t *news = x->config.words && x->told_start ? heard_news(&x->heard) : NULL;
    if (news) {
        conn_send_json(x->conn, news);
    }
}

static void on_words(void *user, const struct speech_words *words)
{
    struct session *x = user;
    word_list_take(&x->heard.words, words);
    count_text(x);
    tell_words(x);
}

static void on_bytes(void *user, const void *bytes, size_t n)
{
    struct session *x = user;
    const struct part *part = TAILQ_FIRST(&x->parts);
    x->conn->deadline = clock_seconds() + WS_IDLE_S;
    if (!x->told_start) {
        x->told_start = true;
        conn_send_json(x->conn,
            json_pack("{s:s,s:i,s:i,s:s#,s:s,s:i,s:i}", "type", "audio.start", "utterance_index",
                part->utterance, "sentence_index", part->sentence, "sentence_text", part->text.bytes,
                (int)(x->config.cut == FIELDS_CUT_NONE ? 0 : part->text.n), "format",
                encode_format_name(x->config.sound.format), "sample_rate", speech_rate(x->speech),
                "channels", 1));
    }
    conn_send(x->conn, WEBSOCKET_BINARY, bytes, n);
    x->sound_bytes += n;
    tell_words(x);
    if (conn_unsent(x->conn) > LIMIT_UNSENT) {
        speech_hold(x->speech, true);
    }
}

static void on_end(void *user, const struct speech_end *e)
{
    struct session *x = user;
    struct part *part = TAILQ_FIRST(&x->parts);
    int utterance = part->utterance, sentence = part->sentence;
    x->speech = NULL;
    x->conn->deadline = clock_seconds() + WS_IDLE_S;
    if (!e->good) {
        send_error(x, &e->refusal, x->told_start);
    } else if (x->heard.text.failed || x->heard.words.failed) {
        send_no_memory(x);
    }
    word_list_next(&x->heard.words, part->text.n, e->audio_s);
    conn_send_json(
        x->conn, json_pack("{s:s,s:i,s:i,s:I,s:b,s:s,s:s,s:i,s:f,s:f,s:f,s:f}", "type", "audio.done",
                     "utterance_index", utterance, "sentence_index", sentence, "total_bytes",
                     (json_int_t)x->sound_bytes, "error", !e->good, "finish_reason",
                     speech_finish_reason(e->finish), "finish", utter_finish_text(e->finish),
                     "not_whole", e->model.n_broken, "audio_seconds", e->audio_s, "queue_ms",
                     1e3 * e->queue_s, "first_ms", 1e3 * e->first_s, "total_ms", 1e3 * e->total_s));
    if (part->ended && part->last) {
        send_session_done(x, utterance, sentence + 1);
    } else if (!part->ended) {
        x->deaf = true;
        send_session_done(x, utterance, sentence + 1);
    }
    drop_part(x, part);
    go_on(x);
}

static const struct speech_sink sink = {on_bytes, on_end, on_words};

/* ---- What the client says ---- */

static struct part *open_part(struct session *x)
{
    struct part *part = TAILQ_LAST(&x->parts, part_list);
    if (part && !part->ended) {
        return part;
    }
    part = memory_new(1, sizeof *part);
    if (part) {
        part->utterance = x->utterance;
        part->sentence = x->sentence;
        TAILQ_INSERT_TAIL(&x->parts, part, entry);
        x->n_parts++;
    }
    return part;
}

static void end_part(struct session *x, struct part *part, bool last)
{
    part->ended = true;
    part->last = last;
    x->sentence = last ? 0 : x->sentence + 1;
    x->utterance += last;
    if (part == TAILQ_FIRST(&x->parts) && x->speech) {
        speech_finish(x->speech);
    }
}

/* Whether n more bytes of text may wait: each part counts with what it takes besides its text, also the one that would
 * be begun for this text. */
static bool has_room(const struct session *x, size_t n)
{
    const struct part *last = TAILQ_LAST(&x->parts, part_list);
    size_t n_parts = x->n_parts + (size_t)(!last || last->ended);
    return x->waiting_bytes + n_parts * PART_BYTES + n <= LIMIT_WS_SESSION;
}

/* False: out of memory. */
static bool add_text(struct session *x, const char *text, size_t n)
{
    struct part *part = open_part(x);
    if (!part) {
        return false;
    }
    wire_put(&part->text, text, n);
    x->waiting_bytes += n;
    count_text(x);
    bool good = !part->text.failed;
    if (part == TAILQ_FIRST(&x->parts)) {
        feed(x, text, n); /* which may end the speech, and the part with it */
    }
    return good;
}

/* A sentence that came into the open part becomes a part of its own, in front of it. */
static bool put_sentence(struct session *x, struct part *open, const uint8_t *text, size_t n)
{
    struct part *part = memory_new(1, sizeof *part);
    uint8_t *own = memory_new(n, 1);
    if (!part || !own) {
        memory_free(part);
        memory_free(own);
        return false;
    }
    memcpy(own, text, n);
    *part = (struct part){.utterance = x->utterance,
        .sentence = x->sentence++,
        .text = {.bytes = own, .n = n, .room = n},
        .ended = true};
    TAILQ_INSERT_BEFORE(open, part, entry);
    x->n_parts++;
    return true;
}

/* Cuts whole sentences off the open part. False: out of memory. */
static bool cut_text(struct session *x)
{
    struct part *open = TAILQ_LAST(&x->parts, part_list);
    bool good = true;
    size_t from = 0, n;
    if (x->config.cut == FIELDS_CUT_NONE || !open || open->ended) {
        return true;
    }
    while (good && (n = sentence_bytes((const char *)open->text.bytes + from, open->text.n - from,
                        x->config.cut == FIELDS_CUT_CLAUSE))) {
        good = put_sentence(x, open, open->text.bytes + from, n);
        from += good ? n : 0;
    }
    if (from > 0) {
        memmove(open->text.bytes, open->text.bytes + from, open->text.n - from);
    }
    open->text.n -= from;
    open->sentence = x->sentence;
    count_text(x);
    return good;
}

static void take_text(struct session *x, const json_t *message)
{
    const json_t *value = json_object_get(message, "text");
    const char *text = json_string_value(value);
    size_t n = json_string_length(value);
    if (x->deaf) {
        return;
    }
    if (!text || strlen(text) != n) {
        send_plain_error(x, "text", "\"text\" must be a string without NUL");
    } else if (n > LIMIT_WS_TEXT) {
        send_plain_error(x, "text", "\"text\" must be at most 128 KiB in one message");
    } else if (!has_room(x, n)) {
        send_plain_error(x, "text", "more than 1 MiB of text waits in this session");
    } else if (!add_text(x, text, n) || !cut_text(x)) {
        hang_up(x);
    } else if (x->config.cut == FIELDS_CUT_NONE || TAILQ_FIRST(&x->parts)->ended) {
        go_on(x);
    }
}

static void next_utterance(struct session *x)
{
    x->utterance++;
    x->sentence = 0;
    x->deaf = false;
}

static void take_done(struct session *x)
{
    if (x->deaf) {
        next_utterance(x);
        return;
    }
    struct part *part = open_part(x);
    if (part) {
        end_part(x, part, true);
        go_on(x);
    } else {
        hang_up(x);
    }
}

/* What of the utterance was heard, in the answer to a cancel. */
static void tell_heard(struct session *x, json_t *answer, double played_s)
{
    const struct part *part = TAILQ_FIRST(&x->parts);
    struct wire_out rest = {0};
    double seconds = x->heard.words.s_before;
    if (x->speech) {
        double a_byte = x->conn->server->admission.seconds_a_byte;
        seconds = max(seconds + speech_seconds(x->speech), a_byte * (double)x->heard.text.n);
        part = TAILQ_NEXT(part, entry);
    }
    for (; part && part->utterance == x->heard.utterance; part = TAILQ_NEXT(part, entry)) {
        wire_put(&rest, part->text.bytes, part->text.n);
    }
    heard_split(&x->heard, answer, played_s, seconds, &rest);
    wire_fini(&rest);
}

static void take_cancel(struct session *x, const json_t *message)
{
    const struct part *part = TAILQ_FIRST(&x->parts);
    const json_t *played = json_object_get(message, "played_ms");
    double played_ms = json_number_value(played);
    bool has_played = played && !json_is_null(played);
    json_t *said = json_pack("{s:s,s:i,s:i,s:s}", "type", "audio.cancelled", "utterance_index",
        part ? part->utterance : x->utterance, "sentence_index", part ? part->sentence : 0, "reason",
        "client");
    if (has_played && json_is_number(played) && played_ms >= 0) {
        tell_heard(x, said, played_ms / 1e3);
    }
    speech_cancel(x->speech);
    x->speech = NULL;
    const struct part *last = TAILQ_LAST(&x->parts, part_list);
    if (x->deaf || !last || !last->ended) { /* the index that this answer names is used up */
        next_utterance(x);
    }
    x->sentence = 0;
    drop_all(x);
    conn_send_json(x->conn, said);
    if (has_played &&
        (!json_is_number(played) || played_ms < 0)) { /* what is spoken has ended all the same */
        send_plain_error(x, "played_ms", "\"played_ms\" must be a number, 0 or more");
    }
}

static void take_config(struct session *x, json_t *message)
{
    struct refusal r;
    struct fields_model model = speech_fields_model(x->conn->server);
    struct fields config;
    model.default_format = ENCODE_PCM;
    json_t *inner = json_object_get(message, "session");
    bool good = fields_parse(
        &config, json_is_object(inner) ? inner : message, NULL, FIELDS_FOR_SESSION, &model, &r);
    if (good && config.ref_audio) {
        good = refuse(&r, 400, "ref_audio", "\"ref_audio\" is not taken here (upload the voice first)");
    }
    if (good && TAILQ_FIRST(&x->parts)) {
        good = refuse(&r, 400, "type", "the session cannot be changed while it speaks");
    }
    struct voices_found voice; /* may have gone when a text comes, but is there now */
    good = good && voices_find(x->conn->server, &config, &voice, &r);
    if (!good) {
        fields_fini(&config);
        x->conn->server->metrics.rejected[METRICS_INVALID]++;
        send_error(x, &r, false);
        if (!x->configured) { /* nothing that follows could be done: who waits for its end must not wait long */
            conn_close_socket(x->conn, WEBSOCKET_POLICY, "the session was not configured");
        }
        return;
    }
    fields_fini(&x->config);
    x->config = config;
    x->configured = true;
    conn_send_json(
        x->conn, json_pack("{s:s,s:s,s:s}", "type", "session.created", "id", x->conn->request_id,
                     "format", encode_format_name(config.sound.format)));
}

static void take_typed(struct session *x, json_t *message, const char *type)
{
    if (strcmp(type, "session.config") == 0) {
        take_config(x, message);
    } else if (strcmp(type, "session.close") == 0) {
        conn_close_socket(x->conn, WEBSOCKET_NORMAL, "");
    } else if (!x->configured) {
        send_plain_error(x, "type", "the first message must be session.config");
    } else if (strcmp(type, "input.text") == 0) {
        take_text(x, message);
    } else if (strcmp(type, "input.done") == 0) {
        take_done(x);
    } else if (strcmp(type, "input.cancel") == 0) {
        take_cancel(x, message);
    } else {
        send_plain_error(x, "type",
            "\"type\" must be session.config, input.text, input.done, input.cancel or session.close");
    }
}

static void on_message(void *user, const struct websocket_event *event)
{
    struct session *x = user;
    json_t *message = NULL;
    utter_error error = {.text = ""};
    x->conn->deadline = clock_seconds() + WS_IDLE_S;
    if (event->kind != WEBSOCKET_TEXT) {
        conn_close_socket(x->conn, WEBSOCKET_NOT_TEXT, "only text messages are known here");
        return;
    }
    utter_status status =
        body_parse(&message, (const char *)event->data, event->bytes, "the message", &error);
    if (status != UTTER_OK) {
        status == UTTER_E_MEMORY ? hang_up(x) : send_plain_error(x, NULL, error.text);
        return;
    }
    const char *type = json_string_value(json_object_get(message, "type"));
    take_typed(x, message, type ? type : "");
    json_decref(message);
}

static void on_gone(void *user)
{
    struct session *x = user;
    speech_cancel(x->speech);
    drop_all(x);
    heard_fini(&x->heard);
    fields_fini(&x->config);
    memory_free(x);
}

static void on_drained(void *user)
{
    struct session *x = user;
    speech_hold(x->speech, false);
}

/* Too long without a word, or the server is about to stop. */
static void on_idle(void *user)
{
    struct session *x = user;
    const struct part *part = TAILQ_FIRST(&x->parts);
    bool speaks = part && part->ended;
    if (x->conn->server->draining && speaks) {
        x->closing = true;
        x->conn->deadline = clock_seconds() + WS_IDLE_S;
    } else if (x->conn->server->draining) {
        conn_close_socket(x->conn, WEBSOCKET_GOING_AWAY, "the server is about to stop");
    } else if (speaks) {
        x->conn->deadline = clock_seconds() + WS_IDLE_S;
    } else {
        send_plain_error(x, NULL, "the session was idle for too long");
        conn_close_socket(x->conn, WEBSOCKET_NORMAL, "idle");
    }
}

static bool speaks(const void *user)
{
    const struct session *x = user;
    return x->speech != NULL;
}

static const struct conn_owner owner = {on_gone, on_drained, on_message, on_idle, speaks};

void session_request(struct conn *c)
{
    char accept[29];
    if (!conn_handshake(c, accept)) {
        return;
    }
    struct session *x = memory_new(1, sizeof *x);
    if (!x) {
        struct refusal r;
        refuse(&r, 503, NULL, "out of memory");
        conn_refuse(c, &r);
        return;
    }
    x->conn = c;
    TAILQ_INIT(&x->parts);
    conn_own(c, &owner, x);
    conn_upgrade(c, accept, LIMIT_WS_MESSAGE);
    if (!c->socket) { /* memory is out, and the client knows */
        memory_free(x);
    }
}
