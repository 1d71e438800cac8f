/* SPDX-License-Identifier: Apache-2.0
 * POST /v1/audio/voices: a form with a recording, or JSON with one in base64. */
#include "server/front/voices_http.h"

#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "server/loop/conn/body.h"
#include "server/protocol/base64.h"
#include "server/protocol/multipart.h"
#include "server/protocol/websocket.h"
#include "server/speech/voices.h"

static void on_voice(void *user, json_t *voice, const char *file, const struct refusal *r)
{
    struct conn *c = user;
    (void)file;
    c->owner = NULL;
    if (r) {
        conn_refuse(c, r);
        return;
    }
    json_t *copy = json_copy(voice);
    json_object_set_new(voice, "success", json_true());
    json_object_set_new(voice, "voice", copy);
    conn_answer_json(c, 200, voice);
}

static void on_gone(void *user)
{
    struct conn *c = user;
    voices_abandon(c->server, c);
}

static const struct conn_owner owner = {on_gone, NULL, NULL, NULL, NULL};

static bool is_yes(const char *text)
{
    return text &&
           (strcasecmp(text, "true") == 0 || strcmp(text, "1") == 0 || strcasecmp(text, "yes") == 0);
}

static void create(struct conn *c, const struct voices_upload *upload)
{
    struct refusal r;
    conn_own(c, &owner, c);
    if (!voices_create(c->server, upload, on_voice, c, &r)) {
        c->owner = NULL;
        conn_refuse(c, &r);
    }
}

enum { NAME, REF_TEXT, DESCRIPTION, CONSENT, OVERWRITE, N_TEXTS, MAX_TEXT = 4096 };
static const char *const text_names[N_TEXTS] = {
    "name", "ref_text", "speaker_description", "consent", "overwrite"};

/* Whether a field holds what can be kept. */
static bool check_text(int field, const char *text, size_t n, struct refusal *r)
{
    const char *name = text_names[field];
    if (memchr(text, 0, n) || !websocket_is_utf8((const uint8_t *)text, n)) {
        return refuse(r, 400, name, "\"%s\" must be UTF-8 without a NUL", name);
    }
    return n <= MAX_TEXT ? true
                         : refuse(r, 400, name, "\"%s\" must be at most %d bytes", name, MAX_TEXT);
}

static const char *unless_empty(const char *text)
{
    return text && *text ? text : NULL;
}

/* The fields of the form as strings, the caller's; NULL: not there. */
static bool take_form(const struct multipart *form, char *texts[N_TEXTS], struct refusal *r)
{
    for (int i = 0; i < N_TEXTS; i++) {
        const struct multipart_part *part = multipart_find(form, text_names[i]);
        if (part && !check_text(i, part->data, part->bytes, r)) {
            return false;
        }
        texts[i] = part ? memory_string_n(part->data, part->bytes) : NULL;
        if (part && !texts[i]) {
            return refuse(r, 503, NULL, "out of memory");
        }
    }
    return true;
}

static void create_from_form(struct conn *c, const char *type)
{
    struct multipart form;
    struct refusal r;
    char *texts[N_TEXTS] = {NULL};
    size_t n = evbuffer_get_length(c->body);
    const char *body = n ? (const char *)evbuffer_pullup(c->body, -1) : "";
    if (!body) {
        refuse(&r, 503, NULL, "out of memory");
        conn_refuse(c, &r);
        return;
    }
    const char *fault = multipart_parse(&form, type, body, n);
    const struct multipart_part *sound = fault ? NULL : multipart_find(&form, "audio_sample");
    bool good = sound || refuse(&r, 400, fault ? NULL : "audio_sample", "%s",
                             fault ? fault : "\"audio_sample\" is missing");
    if (good && take_form(&form, texts, &r)) {
        struct voices_upload upload = {unless_empty(texts[NAME]), unless_empty(texts[REF_TEXT]),
            unless_empty(texts[DESCRIPTION]), unless_empty(texts[CONSENT]), sound->data, sound->bytes,
            is_yes(texts[OVERWRITE]), false, c->account};
        create(c, &upload);
    } else {
        conn_refuse(c, &r);
    }
    for (int i = 0; i < N_TEXTS; i++) {
        memory_free(texts[i]);
    }
}

/* The same of a JSON object, whose strings they are. */
static bool take_json(const json_t *body, const char *texts[N_TEXTS], struct refusal *r)
{
    for (int i = 0; i < N_TEXTS; i++) {
        const json_t *value = json_object_get(body, text_names[i]);
        const bool flag = i == OVERWRITE && json_is_boolean(value);
        if (value && !flag && !json_is_null(value) && !json_is_string(value)) {
            return refuse(r, 400, text_names[i], "\"%s\" must be %s", text_names[i],
                i == OVERWRITE ? "true or false" : "a string");
        }
        texts[i] = flag && json_is_true(value) ? "true" : json_string_value(value);
        if (json_is_string(value) && !check_text(i, texts[i], json_string_length(value), r)) {
            return false;
        }
    }
    return true;
}

static void create_from_json(struct conn *c)
{
    struct refusal r;
    struct wire_out sound = {0};
    const char *texts[N_TEXTS];
    json_t *body = body_json(c);
    if (!body) {
        return;
    }
    const char *text = json_string_value(json_object_get(body, "audio_sample"));
    text = text ? text : json_string_value(json_object_get(body, "ref_audio"));
    bool good = text && *text && base64_read(text, &sound);
    if (sound.failed) {
        refuse(&r, 503, NULL, "out of memory");
    } else if (!good) {
        refuse(&r, 400, "audio_sample", "\"audio_sample\" must be a recording in base64");
    }
    if (good && take_json(body, texts, &r)) {
        struct voices_upload upload = {unless_empty(texts[NAME]), unless_empty(texts[REF_TEXT]),
            unless_empty(texts[DESCRIPTION]), unless_empty(texts[CONSENT]), sound.bytes, sound.n,
            is_yes(texts[OVERWRITE]), false, c->account};
        create(c, &upload);
    } else {
        conn_refuse(c, &r);
    }
    wire_fini(&sound);
    json_decref(body);
}

void voices_http_create(struct conn *c)
{
    const char *type = http_field(&c->head, "Content-Type");
    if (type && strncasecmp(type, "multipart/form-data", 19) == 0) {
        create_from_form(c, type);
    } else {
        create_from_json(c);
    }
}

static void refuse_delete(struct conn *c, const struct refusal *r)
{
    if (r->status == 404) {
        json_t *body = refusal_json(r);
        json_object_set_new(body, "success", json_false());
        conn_answer_json(c, 404, body);
    } else {
        conn_refuse(c, r);
    }
}

static void on_deleted(void *user, json_t *voice, const char *file, const struct refusal *r)
{
    struct conn *c = user;
    (void)voice, (void)file;
    c->owner = NULL;
    if (r) {
        refuse_delete(c, r);
    } else {
        conn_answer_json(c, 200, json_pack("{s:b,s:s}", "success", 1, "message", "the voice is gone"));
    }
}

void voices_http_delete(struct conn *c)
{
    struct refusal r;
    const char *name = strstr(c->head.path, "/voices/") + strlen("/voices/");
    conn_own(c, &owner, c);
    if (!voices_delete(c->server, name, c->account, on_deleted, c, &r)) {
        c->owner = NULL;
        refuse_delete(c, &r);
    }
}
