/* SPDX-License-Identifier: Apache-2.0
 * POST /v1/audio/speech: sound as it is made, events with sound in them, or one whole file. */
#include "server/front/speech_http.h"
#include "base/json.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "server/loop/conn/body.h"
#include "server/loop/conn/conn_base64.h"
#include "server/protocol/base64.h"
#include "server/speech/admission.h"
#include "server/speech/speech.h"
#include "server/speech/voices.h"
#include "server/speech/words.h"

struct answer {
    struct conn *conn;
    struct speech *speech; /* NULL: while its voice is made, and after its end */
    struct fields fields;
    bool begun;
    int rate; /* of the sound */
    double read_at;
    struct conn_whole whole; /* FIELDS_WHOLE: all of it */
    struct word_list words;
    char voice_file[4096]; /* of this request alone, or "" */
};

static void answer_free(struct answer *a)
{
    if (a->voice_file[0]) {
        unlink(a->voice_file);
    }
    fields_fini(&a->fields);
    conn_whole_fini(&a->whole);
    word_list_fini(&a->words);
    memory_free(a);
}

static void write_timing(char *out, size_t size, const struct speech_end *e)
{
    snprintf(out, size,
        "X-Finish-Reason: %s\r\nX-Utter-Finish: %s\r\nX-Utter-Not-Whole: %d\r\n"
        "Server-Timing: queue;dur=%.1f, first;dur=%.1f, prefill;dur=%.1f, talker;dur=%.1f, "
        "predictor;dur=%.1f, "
        "codec;dur=%.1f, total;dur=%.1f\r\nX-Audio-Seconds: %.2f\r\n",
        speech_finish_reason(e->finish), utter_finish_text(e->finish), e->model.n_broken,
        1e3 * e->queue_s, 1e3 * e->first_s, 1e3 * e->model.prefill_s, 1e3 * e->model.talker_s,
        1e3 * e->model.predictor_s, 1e3 * e->model.vocoder_s, 1e3 * e->total_s, e->audio_s);
}

static void begin(struct answer *a)
{
    char more[256];
    bool sse = a->fields.streaming == FIELDS_SSE;
    snprintf(more, sizeof more, "X-Sample-Rate: %d\r\n%s", speech_rate(a->speech),
        sse ? ""
            : "Trailer: X-Finish-Reason, X-Utter-Finish, X-Utter-Not-Whole, Server-Timing, "
              "X-Audio-Seconds\r\n");
    conn_begin(
        a->conn, 200, sse ? "text/event-stream" : encode_content_type(a->fields.sound.format), more);
    a->begun = true;
}

static void put(struct wire_out *out, const char *text)
{
    wire_put(out, text, strlen(text));
}

/* An event of one line, for the parsers that read only lines with data. */
static void send_line(struct conn *c, struct wire_out *line)
{
    put(line, "\n\n");
    line->failed ? conn_starve(c) : conn_piece(c, line->bytes, line->n);
    wire_fini(line);
}

static void send_event(struct conn *c, json_t *json)
{
    char *text = json_text_write(json, JSON_COMPACT | JSON_REAL_PRECISION(9));
    if (text) {
        struct wire_out line = {0};
        put(&line, "event: ");
        put(&line, json_string_value(json_object_get(json, "type")));
        put(&line, "\ndata: ");
        put(&line, text);
        send_line(c, &line);
        memory_plain_free(text);
    } else {
        conn_starve(c);
    }
    json_decref(json);
}

static void send_sound(struct answer *a, const void *bytes, size_t n)
{
    struct wire_out line = {0};
    put(&line, "event: speech.audio.delta\ndata: {\"type\":\"speech.audio.delta\",\"audio\":\"");
    base64_put(&line, bytes, n);
    put(&line, "\",\"response_format\":\"");
    put(&line, encode_format_name(a->fields.sound.format));
    put(&line, "\"}");
    send_line(a->conn, &line);
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

/* Of events: the words that are new. */
static void tell_words(struct answer *a)
{
    json_t *news = a->fields.streaming == FIELDS_SSE && a->begun
                       ? word_list_news(&a->words, a->fields.input, strlen(a->fields.input))
                       : NULL;
    if (news) {
        send_event(a->conn, json_pack("{s:s,s:o,s:b}", "type", "speech.audio.words", "words", news,
                                "approximate", a->words.approximate));
        word_list_forget(&a->words, a->words.n_final);
    }
}

static void on_words(void *user, const struct speech_words *words)
{
    struct answer *a = user;
    struct refusal r;
    word_list_take(&a->words, words);
    if (a->fields.streaming != FIELDS_WHOLE) {
        tell_words(a);
    } else if (!conn_whole_beside(&a->whole, word_list_needs(&a->words), &r)) {
        give_up(a, &r);
    }
}

static void on_bytes(void *user, const void *bytes, size_t n)
{
    struct answer *a = user;
    if (a->fields.streaming == FIELDS_WHOLE) {
        collect(a, bytes, n);
        return;
    }
    if (!a->begun) {
        begin(a);
    }
    if (a->fields.streaming == FIELDS_SSE) {
        send_sound(a, bytes, n);
        tell_words(a); /* that came while the coder was at work */
    } else {
        conn_piece(a->conn, bytes, n);
    }
    if (conn_unsent(a->conn) > LIMIT_UNSENT) {
        speech_hold(a->speech, true);
    }
}

static json_t *usage_json(const struct speech_end *e)
{
    return json_pack("{s:i,s:i,s:i}", "input_tokens", e->n_text_tokens, "output_tokens", e->n_frames,
        "total_tokens", e->n_text_tokens + e->n_frames);
}

/* The whole sound with its words. */
static void answer_words(struct answer *a, const char *timing, const struct speech_end *e)
{
    struct wire_out words = {0};
    json_t *json = json_pack("{s:s,s:i,s:s,s:i,s:f,s:b,s:o}", "media_type",
        encode_content_type(a->fields.sound.format), "sample_rate", a->rate, "finish_reason",
        speech_finish_reason(e->finish), "not_whole", e->model.n_broken, "audio_seconds", e->audio_s,
        "approximate", a->words.approximate, "usage", usage_json(e));
    wire_put(&words, "\"words\":", 8);
    word_list_write(&a->words, a->fields.input, strlen(a->fields.input), &words);
    conn_answer_base64(a->conn, timing, "audio_data", &a->whole, &words, json);
}

static void end_good(struct answer *a, const struct speech_end *e)
{
    char timing[512];
    write_timing(timing, sizeof timing, e);
    if (a->fields.streaming == FIELDS_SSE) {
        send_event(
            a->conn, json_pack("{s:s,s:s,s:s,s:i,s:i,s:i,s:f,s:f,s:o}", "type", "speech.audio.done",
                         "finish_reason", speech_finish_reason(e->finish), "finish",
                         utter_finish_text(e->finish), "not_whole", e->model.n_broken, "pieces",
                         e->model.n_pieces, "said_again", e->model.n_retries, "audio_seconds",
                         e->audio_s, "first_ms", 1e3 * e->first_s, "usage", usage_json(e)));
        conn_finish(a->conn, NULL);
    } else if (a->fields.streaming == FIELDS_WHOLE) {
        encode_true_sizes(a->fields.sound.format, a->whole.memory.bytes, a->whole.n, e->n_samples);
        if (a->fields.words) {
            answer_words(a, timing, e);
            return;
        }
        conn_answer_whole(a->conn, encode_content_type(a->fields.sound.format), timing, &a->whole);
    } else {
        conn_finish(a->conn, timing);
    }
}

static void on_end(void *user, const struct speech_end *e)
{
    struct answer *a = user;
    struct conn *c = a->conn;
    a->speech = NULL;
    bool failed = a->words.failed, good = e->good && !failed;
    struct refusal r = e->refusal;
    if (failed) {
        refuse(&r, 503, NULL, "out of memory");
    } else if (good && !a->begun && a->fields.streaming != FIELDS_WHOLE) {
        good = refuse(&r, 500, NULL, "the speech holds no sound");
    }
    if (good) {
        end_good(a, e);
    } else if (!a->begun) {
        r.never_retry = r.status == 500;
        conn_refuse(c, &r);
    } else if (a->fields.streaming == FIELDS_SSE) {
        json_t *event = refusal_json(&r);
        json_object_set_new(event, "type", json_string("speech.audio.error"));
        send_event(c, event);
        conn_break(c); /* who looks only at sound must not take half of it for the whole */
    } else {
        conn_break(c);
    }
    answer_free(a);
}

static void on_gone(void *user)
{
    struct answer *a = user;
    voices_abandon(a->conn->server, a);
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

static void refuse_answer(struct answer *a, const struct refusal *r)
{
    a->conn->server->metrics.rejected[METRICS_INVALID] += r->status < 500;
    conn_refuse(a->conn, r);
    answer_free(a);
}

static void speak(struct answer *a)
{
    struct refusal r;
    struct conn *c = a->conn;
    struct speech_request request = {&a->fields, METRICS_SPEECH, a->read_at, c->account, c->request_id,
        c->address, false, &c->trace};
    double bytes = admission_bytes(c->server, &a->fields);
    bool room =
        a->fields.streaming != FIELDS_WHOLE || conn_whole_begin(&a->whole, c->server, bytes, &r);
    a->speech = room ? speech_start(c->server, &request, &sink, a, &r) : NULL;
    if (!a->speech) {
        refuse_answer(a, &r);
        return;
    }
    a->rate = speech_rate(a->speech);
    a->words.exact = a->fields.background; /* for a result that is kept */
    conn_own(c, &owner, a);
    speech_text(a->speech, a->fields.input, strlen(a->fields.input));
    if (c->owner) { /* a failure may have ended it already */
        speech_finish(a->speech);
    }
}

static void on_voice(void *user, json_t *voice, const char *file, const struct refusal *r)
{
    struct answer *a = user;
    json_decref(voice);
    if (r) {
        refuse_answer(a, r);
        return;
    }
    snprintf(a->voice_file, sizeof a->voice_file, "%s", file);
    a->fields.voice_file = a->voice_file;
    speak(a);
}

/* The voice comes with the request: it is made first. */
static void make_voice(struct answer *a)
{
    struct wire_out sound = {0};
    struct refusal r;
    const struct fields *f = &a->fields;
    const bool is_base64 = base64_read(f->ref_audio, &sound);
    bool started = false;
    if (sound.failed) {
        refuse(&r, 503, NULL, "out of memory");
    } else if (!is_base64) {
        refuse(&r, 400, "ref_audio", "\"ref_audio\" is not base64");
    } else {
        struct voices_upload upload = {.transcript = f->x_vector_only ? NULL : f->ref_text,
            .sound = sound.bytes,
            .sound_bytes = sound.n,
            .once = true};
        started = voices_create(a->conn->server, &upload, on_voice, a, &r);
    }
    wire_fini(&sound);
    if (started) {
        conn_own(a->conn, &owner, a);
    } else {
        refuse_answer(a, &r);
    }
}

void speech_http_request(struct conn *c)
{
    struct refusal r;
    json_t *json = body_json(c);
    if (!json) {
        return;
    }
    struct answer *a = memory_new(1, sizeof *a);
    struct fields_model model = speech_fields_model(c->server);
    if (!a) {
        json_decref(json);
        refuse(&r, 503, NULL, "out of memory");
        conn_refuse(c, &r);
        return;
    }
    a->conn = c;
    a->read_at = c->read_at;
    bool good = fields_parse(&a->fields, json, NULL, FIELDS_FOR_SPEECH, &model, &r);
    json_decref(json);
    if (!good) {
        refuse_answer(a, &r);
        return;
    }
    if (a->fields.streaming == FIELDS_RAW &&
        http_value_has(http_field(&c->head, "Accept"), "text/event-stream")) {
        a->fields.streaming = FIELDS_SSE;
    }
    if (a->fields.words && a->fields.streaming == FIELDS_RAW) {
        refuse(&r, 400, "word_timestamps",
            "\"word_timestamps\" needs an answer that has room for them: \"stream_format\": \"sse\", "
            "or "
            "\"stream\": false");
        refuse_answer(a, &r);
    } else if (a->fields.ref_audio) {
        make_voice(a);
    } else {
        speak(a);
    }
}
