/* SPDX-License-Identifier: Apache-2.0
 * POST /v1/audio/voices: a form with a recording, or JSON with one in base64. */
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "server/multipart.h"
#include "server/route.h"
#include "server/speech_parts.h"
#include "server/voices.h"

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

static const struct conn_owner owner = {on_gone, NULL, NULL, NULL};

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

/* A field of the form as a string, kept in *texts; NULL without it or when it holds a NUL. */
static const char *form_text(const struct multipart *form, const char *name, char **text)
{
    const struct multipart_part *part = multipart_find(form, name);
    *text =
        part && !memchr(part->data, 0, part->bytes) ? memory_string_n(part->data, part->bytes) : NULL;
    return *text && **text ? *text : NULL;
}

static void create_from_form(struct conn *c, const char *type)
{
    static const char *const names[] = {
        "name", "ref_text", "speaker_description", "consent", "overwrite"};
    struct multipart form;
    struct refusal r;
    size_t n = evbuffer_get_length(c->body);
    const char *body = n ? (const char *)evbuffer_pullup(c->body, -1) : "";
    const char *fault = multipart_parse(&form, type, body, n);
    const struct multipart_part *sound = fault ? NULL : multipart_find(&form, "audio_sample");
    if (!sound) {
        refuse(&r, 400, fault ? NULL : "audio_sample", "%s",
            fault ? fault : "\"audio_sample\" is missing");
        conn_refuse(c, &r);
        return;
    }
    char *texts[5];
    const char *values[5];
    for (int i = 0; i < 5; i++) {
        values[i] = form_text(&form, names[i], &texts[i]);
    }
    struct voices_upload upload = {values[0], values[1], values[2], values[3], sound->data,
        sound->bytes, is_yes(values[4]), false};
    create(c, &upload);
    for (int i = 0; i < 5; i++) {
        memory_free(texts[i]);
    }
}

static const char *json_text_of(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    const char *text = json_string_value(value);
    return text && *text && strlen(text) == json_string_length(value) ? text : NULL;
}

static void create_from_json(struct conn *c)
{
    struct refusal r;
    struct wire_out sound = {0};
    json_t *body = route_json(c);
    if (!body) {
        return;
    }
    const char *text = json_text_of(body, "audio_sample");
    text = text ? text : json_text_of(body, "ref_audio");
    if (!text || !speech_decode_sound(text, &sound)) {
        refuse(&r, 400, "audio_sample", "\"audio_sample\" must be a recording in base64");
        conn_refuse(c, &r);
    } else {
        struct voices_upload upload = {json_text_of(body, "name"), json_text_of(body, "ref_text"),
            json_text_of(body, "speaker_description"), json_text_of(body, "consent"), sound.bytes,
            sound.n, json_is_true(json_object_get(body, "overwrite")), false};
        create(c, &upload);
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
