/* SPDX-License-Identifier: Apache-2.0
 * The speech's sink, written to the connection. */
#include "server/dialects/answer.h"
#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "server/dialects/ask.h"
#include "server/loop/conn/conn_base64.h"
#include "server/speech/admission.h"

struct answer {
    struct conn *conn;
    struct speech *speech; /* NULL after its end */
    struct fields fields;
    json_t *asked;
    enum answer_way way;
    const struct answer_dialect *dialect;
    bool begun;
    struct conn_whole whole; /* ANSWER_WHOLE: all of the sound */
    struct word_list words;
    struct spoken spoken;
    double begun_at; /* when its sound began to leave: it is heard from then on */
    void *own;       /* the dialect's */
};

/* So long before a word is heard it is told, also when its times may still change. */
static const double soon_s = 0.5;

static void answer_free(struct answer *a)
{
    fields_fini(&a->fields);
    json_decref(a->asked);
    conn_whole_fini(&a->whole);
    word_list_fini(&a->words);
    memory_free(a->own);
    memory_free(a);
}

static const char *content_type(const struct answer *a)
{
    return a->way == ANSWER_LINES    ? "application/x-ndjson"
           : a->way == ANSWER_EVENTS ? "text/event-stream"
           : a->fields.sound.format == ENCODE_PCM && a->fields.sound.samples == SAMPLES_ULAW
               ? "audio/basic"
               : encode_content_type(a->fields.sound.format);
}

/* A line of JSON, as an event where events are asked for. */
static void send_one(struct answer *a, const json_t *json)
{
    const bool lacks = json_text_lacks();
    char *text = json_text_write(json, JSON_COMPACT | JSON_REAL_PRECISION(9));
    if (text) {
        struct wire_out line = {0};
        bool event = a->way == ANSWER_EVENTS;
        const char *type = json_string_value(json_object_get(json, "type"));
        if (event && type) {
            wire_put(&line, "event: ", 7);
            wire_put(&line, type, strlen(type));
            wire_put(&line, "\n", 1);
        }
        wire_put(&line, "data: ", event ? 6 : 0);
        wire_put(&line, text, strlen(text));
        wire_put(&line, "\n\n", event ? 2 : 1);
        line.failed ? conn_starve(a->conn) : conn_piece(a->conn, line.bytes, line.n);
        wire_fini(&line);
        memory_plain_free(text);
    } else if (json || lacks) { /* else there is nothing to say */
        conn_starve(a->conn);
    }
}

static void send_json(struct answer *a, json_t *json)
{
    size_t i;
    json_t *each;
    if (json_is_array(json)) {
        json_array_foreach(json, i, each)
        {
            send_one(a, each);
        }
    } else {
        send_one(a, json);
    }
    json_decref(json);
}

static struct answer_said said(struct answer *a)
{
    return (struct answer_said){.asked = a->asked,
        .text = a->fields.input,
        .approximate = a->words.approximate,
        .spoken = &a->spoken,
        .own = a->own};
}

/* Takes the words that will have begun before until_s of the sound have been heard. */
static void take_due(struct answer *a, double until_s, struct answer_said *to)
{
    struct word_list *l = &a->words;
    to->n_words = word_list_due(l, until_s);
    to->words = l->at ? l->at + (l->n_told - l->first) : NULL;
    l->n_told += to->n_words;
    to->next = l->n_told < l->first + l->n;
}

static void tell_words(struct answer *a)
{
    struct answer_said now = said(a);
    if (!a->begun || !a->fields.words) {
        return;
    }
    take_due(a, clock_seconds() - a->begun_at + soon_s, &now);
    if (now.n_words > 0) {
        send_json(a, a->dialect->words(&now));
        word_list_forget(&a->words, a->words.n_told);
    }
}

/* In the middle of it: a whole answer for which there is no more room. */
static void give_up(struct answer *a, const struct refusal *r)
{
    speech_cancel(a->speech);
    conn_refuse(a->conn, r);
    answer_free(a);
}

static void collect(struct answer *a, const void *bytes, size_t n)
{
    struct refusal r;
    if (!conn_whole_put(&a->whole, bytes, n, &r)) {
        give_up(a, &r);
    }
}

static void on_words(void *user, const struct speech_words *words)
{
    struct answer *a = user;
    struct refusal r;
    word_list_take(&a->words, words);
    if (a->way != ANSWER_WHOLE) {
        tell_words(a);
    } else if (!conn_whole_beside(&a->whole, word_list_needs(&a->words), &r)) {
        give_up(a, &r);
    }
}

static void on_bytes(void *user, const void *bytes, size_t n)
{
    struct answer *a = user;
    if (a->way == ANSWER_WHOLE) {
        collect(a, bytes, n);
        return;
    }
    if (!a->begun) {
        char more[64];
        snprintf(more, sizeof more, "X-Sample-Rate: %d\r\n", speech_rate(a->speech));
        conn_begin(a->conn, 200, content_type(a), more);
        a->begun = true;
        a->begun_at = clock_seconds();
    }
    if (a->way == ANSWER_SOUND) {
        conn_piece(a->conn, bytes, n);
    } else {
        struct answer_said piece = said(a);
        piece.bytes = bytes;
        piece.n = n;
        send_json(a, a->dialect->sound(&piece));
        tell_words(a);
    }
    if (conn_unsent(a->conn) > LIMIT_UNSENT) {
        speech_hold(a->speech, true);
    }
}

static void end_badly(struct answer *a, const struct refusal *r)
{
    if (!a->begun) {
        conn_refuse(a->conn, r);
        return;
    }
    if (a->way == ANSWER_EVENTS) {
        send_json(a, a->dialect->fault(r));
    }
    conn_break(a->conn); /* half of the sound must not be taken for the whole */
}

static void on_end(void *user, const struct speech_end *e)
{
    struct answer *a = user;
    struct refusal r = e->refusal;
    a->speech = NULL;
    bool good = e->good && !a->words.failed;
    if (e->good && !good) {
        refuse(&r, 503, NULL, "out of memory");
    }
    if (!good) {
        end_badly(a, &r);
    } else if (a->way == ANSWER_SOUND) {
        conn_finish(a->conn, NULL);
    } else {
        struct answer_said all = said(a);
        all.seconds = e->audio_s;
        take_due(a, INFINITY, &all);
        json_t *json = a->dialect->end(&all);
        if (a->way == ANSWER_WHOLE) {
            encode_true_sizes(a->fields.sound.format, a->whole.memory.bytes, a->whole.n, e->n_samples);
            conn_answer_base64(a->conn, NULL, a->dialect->sound_name, &a->whole, NULL, json);
        } else {
            send_json(a, json);
            conn_finish(a->conn, NULL);
        }
    }
    answer_free(a);
}

static void on_gone(void *user)
{
    struct answer *a = user;
    speech_cancel(a->speech);
    answer_free(a);
}

static void on_drained(void *user)
{
    struct answer *a = user;
    speech_hold(a->speech, false);
}

static const struct speech_sink sink = {on_bytes, on_end, on_words};
static const struct conn_owner owner = {on_gone, on_drained, NULL, NULL, NULL};

void answer_speech(struct conn *c, struct fields *fields, json_t *asked, enum answer_way way,
    const struct answer_dialect *dialect, void *own)
{
    struct refusal r;
    struct answer *a = memory_new(1, sizeof *a);
    if (!a) {
        fields_fini(fields);
        memory_free(own);
        refuse(&r, 503, NULL, "out of memory");
        conn_refuse(c, &r);
        return;
    }
    *a = (struct answer){.conn = c,
        .fields = *fields,
        .asked = json_incref(asked),
        .way = way,
        .dialect = dialect,
        .own = own};
    struct speech_request request = {&a->fields, METRICS_SPEECH, c->read_at, c->account, c->request_id,
        c->address, false, &c->trace};
    double bytes = admission_bytes(c->server, &a->fields);
    bool room = way != ANSWER_WHOLE || conn_whole_begin(&a->whole, c->server, bytes, &r);
    a->speech = room ? speech_start(c->server, &request, &sink, a, &r) : NULL;
    if (!a->speech) {
        ask_refuse(c, &r);
        answer_free(a);
        return;
    }
    conn_own(c, &owner, a);
    speech_text(a->speech, a->fields.input, strlen(a->fields.input));
    if (c->owner) { /* a failure may have ended it already */
        speech_finish(a->speech);
    }
}
