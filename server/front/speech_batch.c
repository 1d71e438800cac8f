/* SPDX-License-Identifier: Apache-2.0
 * POST /v1/audio/speech/batch: up to 32 speeches, one answer. A bad item does not fail the others. */
#include "server/front/speech_batch.h"
#include "base/json.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "server/loop/account.h"
#include "server/loop/conn/body.h"
#include "server/loop/conn/conn_base64.h"
#include "server/speech/admission.h"
#include "server/speech/speech.h"
#include "server/speech/words.h"

enum {
    AT_ONCE = 4, /* items of one batch in the queue or on lanes: others are served between them */
};

struct batch;

struct item {
    struct batch *batch;
    int index;
    struct speech *speech;
    struct fields fields;
    struct conn_whole sound;
    struct word_list words;
    char *result;         /* of its end, as JSON; where it is good sound and words come first */
    struct wire_out said; /* these words, as text */
    bool good;
};

struct batch {
    struct conn *conn;
    json_t *body;
    int n, next, n_running, n_good;
    double read_at;
    bool starting; /* items that end at once must not start others */
    struct item items[LIMIT_BATCH];
};

static void batch_free(struct batch *b)
{
    for (int i = 0; i < b->n; i++) {
        fields_fini(&b->items[i].fields);
        conn_whole_fini(&b->items[i].sound);
        word_list_fini(&b->items[i].words);
        wire_fini(&b->items[i].said);
        memory_plain_free(b->items[i].result);
    }
    json_decref(b->body);
    memory_free(b);
}

static void set_result(struct item *item, bool good, json_t *result)
{
    item->result = json_text_write(result, JSON_COMPACT | JSON_REAL_PRECISION(9));
    item->good = good;
    item->batch->n_good += good;
    json_decref(result);
}

static void set_failed(struct item *item, const struct refusal *r)
{
    json_t *result = refusal_json(r);
    json_object_set_new(result, "index", json_integer(item->index));
    json_object_set_new(result, "status", json_string("error"));
    set_result(item, false, result);
}

static void set_good(struct item *item, const struct speech_end *e)
{
    enum encode_format format = item->fields.sound.format;
    encode_true_sizes(format, item->sound.memory.bytes, item->sound.n, e->n_samples);
    json_t *result = json_pack("{s:i,s:s,s:s,s:s,s:i,s:f,s:{s:i,s:i,s:i}}", "index", item->index,
        "status", "success", "media_type", encode_content_type(format), "finish_reason",
        speech_finish_reason(e->finish), "not_whole", e->model.n_broken, "audio_seconds", e->audio_s,
        "usage", "input_tokens", e->n_text_tokens, "output_tokens", e->n_frames, "total_tokens",
        e->n_text_tokens + e->n_frames);
    if (result && item->fields.words) {
        const char *text = item->fields.input;
        wire_put(&item->said, "\"words\":", 8);
        word_list_write(&item->words, text, strlen(text), &item->said);
        wire_put(&item->said, ",", 1);
        json_object_set_new(result, "approximate", json_boolean(item->words.approximate));
    }
    set_result(item, true, result);
}

static void go_on(struct batch *b);

/* In the middle of it: there is no more room. */
static void give_up(struct item *item, const struct refusal *r)
{
    speech_cancel(item->speech);
    item->speech = NULL;
    item->batch->n_running--;
    set_failed(item, r);
    conn_whole_fini(&item->sound);
    word_list_fini(&item->words);
    go_on(item->batch);
}

static void on_bytes(void *user, const void *bytes, size_t n)
{
    struct item *item = user;
    struct refusal r;
    if (!conn_whole_put(&item->sound, bytes, n, &r)) {
        give_up(item, &r);
    }
}

static void on_words(void *user, const struct speech_words *words)
{
    struct item *item = user;
    struct refusal r;
    word_list_take(&item->words, words);
    if (!conn_whole_beside(&item->sound, word_list_needs(&item->words), &r)) {
        give_up(item, &r);
    }
}

static void on_end(void *user, const struct speech_end *e)
{
    struct item *item = user;
    struct refusal r = e->refusal;
    item->speech = NULL;
    item->batch->n_running--;
    bool failed = item->words.failed;
    if (e->good && !failed) {
        set_good(item, e);
    } else {
        if (e->good) {
            refuse(&r, 503, NULL, "out of memory");
        }
        set_failed(item, &r);
        conn_whole_fini(&item->sound);
    }
    word_list_fini(&item->words);
    go_on(item->batch);
}

static const struct speech_sink sink = {on_bytes, on_end, on_words};

static void start_item(struct item *item)
{
    struct batch *b = item->batch;
    struct refusal r;
    struct fields_model model = speech_fields_model(b->conn->server);
    json_t *object = json_array_get(json_object_get(b->body, "items"), (size_t)item->index);
    bool good = fields_parse(&item->fields, object, b->body, FIELDS_FOR_SPEECH, &model, &r);
    if (good && item->fields.ref_audio) {
        good = refuse(
            &r, 400, "ref_audio", "\"ref_audio\" is not taken in a batch (upload the voice first)");
    }
    double bytes = good ? admission_bytes(b->conn->server, &item->fields) : 0;
    if (good && conn_whole_begin(&item->sound, b->conn->server, bytes, &r)) {
        const struct conn *c = b->conn;
        struct speech_request request = {&item->fields, METRICS_BATCH, b->read_at, c->account,
            c->request_id, c->address, true, &c->trace};
        item->speech = speech_start(c->server, &request, &sink, item, &r);
    }
    if (!item->speech) {
        set_failed(item, &r);
        conn_whole_fini(&item->sound);
        return;
    }
    b->n_running++;
    speech_text(item->speech, item->fields.input, strlen(item->fields.input));
    if (item->speech) {
        speech_finish(item->speech);
    }
}

/* Its key has no more speeches to give, and one of this batch will end: the next item waits for that. */
static bool key_is_full(const struct batch *b)
{
    const struct account *a = b->conn->account;
    return a && a->most_speeches > 0 && a->n_speeches >= a->most_speeches && b->n_running > 0;
}

/* Sounds are written while the client takes them. */
static void answer(struct batch *b)
{
    struct base64_part parts[LIMIT_BATCH + 1] = {{.sound = {.n = 0}}};
    char text[160];
    snprintf(text, sizeof text, "{\"id\":\"speech-batch-%s\",\"results\":[", b->conn->request_id);
    base64_part_put(&parts[0], text);
    for (int i = 0; i < b->n; i++) {
        struct item *item = &b->items[i];
        base64_part_put(&parts[i], i > 0 ? "," : "");
        if (item->good) {
            base64_part_put(&parts[i], "{\"audio_data\":\"");
            parts[i].sound = item->sound;
            item->sound = (struct conn_whole){.n = 0};
            base64_part_put(&parts[i + 1], "\",");
        }
        wire_put(&parts[i + 1].text, item->said.bytes, item->said.n);
        parts[i + 1].text.failed |= !item->result || item->said.failed;
        base64_part_put(&parts[i + 1], item->result ? item->result + item->good : "");
    }
    snprintf(text, sizeof text, "],\"total\":%d,\"succeeded\":%d,\"failed\":%d}", b->n, b->n_good,
        b->n - b->n_good);
    base64_part_put(&parts[b->n], text);
    b->conn->owner_bytes = 0;
    conn_answer_parts(b->conn, NULL, parts, (size_t)b->n + 1);
    batch_free(b);
}

static void go_on(struct batch *b)
{
    if (b->starting) {
        return;
    }
    b->starting = true;
    while (b->next < b->n && b->n_running < AT_ONCE && !key_is_full(b)) {
        start_item(&b->items[b->next++]);
    }
    b->starting = false;
    if (b->n_running == 0 && b->next == b->n) {
        answer(b);
    }
}

static void on_gone(void *user)
{
    struct batch *b = user;
    b->starting = true;
    for (int i = 0; i < b->n; i++) {
        speech_cancel(b->items[i].speech);
    }
    batch_free(b);
}

static const struct conn_owner owner = {on_gone, NULL, NULL, NULL, NULL};

void speech_batch_request(struct conn *c)
{
    struct refusal r;
    json_t *body = body_json(c);
    if (!body) {
        return;
    }
    json_t *items = json_object_get(body, "items");
    size_t n = json_array_size(items);
    bool good = n > 0 && n <= LIMIT_BATCH;
    struct batch *b = good ? memory_new(1, sizeof *b) : NULL;
    if (!good) {
        refuse(&r, 400, "items", "\"items\" must be a list of 1 to %d objects", LIMIT_BATCH);
    } else if (!b) {
        refuse(&r, 503, NULL, "out of memory");
    }
    if (!b) {
        json_decref(body);
        conn_refuse(c, &r);
        return;
    }
    b->conn = c;
    b->body = body;
    b->n = (int)n;
    b->read_at = c->read_at;
    c->owner_bytes = evbuffer_get_length(c->body); /* the strings of its JSON stay */
    for (int i = 0; i < b->n; i++) {
        b->items[i].batch = b;
        b->items[i].index = i;
    }
    conn_own(c, &owner, b);
    go_on(b);
}
