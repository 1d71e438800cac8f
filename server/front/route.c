/* SPDX-License-Identifier: Apache-2.0
 * The table of paths, and the short answers. */
#include "server/front/route.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/json.h"
#include "server/dialects/cartesia/cartesia.h"
#include "server/dialects/deepgram/deepgram.h"
#include "server/dialects/elevenlabs/elevenlabs.h"
#include "server/front/keys.h"
#include "server/front/openapi.h"
#include "server/front/page.h"
#include "server/front/session.h"
#include "server/front/speech_batch.h"
#include "server/front/speech_http.h"
#include "server/front/voices_http.h"
#include "server/front/watch.h"
#include "server/loop/account.h"
#include "server/loop/links.h"
#include "server/loop/routes.h"
#include "server/speech/aliases.h"
#include "server/speech/speech.h"
#include "server/speech/voices.h"

/* A page of ours: nothing from outside, and nobody may frame it. */
static void answer_file(struct conn *c, const char *name)
{
    struct page_file file;
    if (!page_find(&file, name)) {
        struct refusal r;
        refuse(&r, 404, NULL, "no such path");
        conn_refuse(c, &r);
        return;
    }
    conn_answer_more(c, 200, file.type,
        "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; "
        "connect-src 'self'; img-src data:; media-src blob:; frame-ancestors 'none'; "
        "base-uri 'none'; form-action 'none'\r\n",
        file.bytes, file.n);
}

static void answer_page(struct conn *c)
{
    answer_file(c, "index.html");
}

static void answer_docs(struct conn *c)
{
    answer_file(c, "docs.html");
}

static void answer_part(struct conn *c)
{
    answer_file(c, strrchr(c->head.path, '/') + 1);
}

static json_t *model_json(const struct server *s, const char *id, bool whole)
{
    json_t *j =
        json_pack("{s:s,s:s,s:i,s:s}", "id", id, "object", "model", "created", 0, "owned_by", "utter");
    if (whole && s->was_ready) {
        json_t *languages = json_array(), *voices = json_array();
        for (int i = 0; i < s->ready.n_languages; i++) {
            json_array_append_new(languages, json_string(s->ready.languages[i]));
        }
        for (int i = 0; i < s->ready.n_voices; i++) {
            json_array_append_new(voices, json_string(s->ready.voices[i]));
        }
        json_object_set_new(j, "utter",
            json_pack("{s:s,s:s,s:b,s:i,s:s,s:s,s:i,s:i,s:o,s:o}", "kind", s->ready.kind_name, "size",
                s->ready.size_name, "takes_instructions", s->ready.takes_instructions, "sample_rate",
                s->ready.sample_rate, "device", s->ready.device, "weights", s->ready.weights, "lanes",
                links_lanes(s), "max_input_chars", FIELDS_MAX_INPUT, "languages", languages, "voices",
                voices));
    }
    return j;
}

static void answer_models(struct conn *c)
{
    const struct server *s = c->server;
    if (http_field(
            &c->head, "xi-api-key")) { /* the one path that two dialects share: the key's name tells */
        elevenlabs_models(c);
        return;
    }
    json_t *list = json_array();
    json_array_append_new(list, model_json(s, s->model_id, true));
    const char *alias;
    for (int i = 0; (alias = alias_model(i)); i++) {
        json_array_append_new(list, model_json(s, alias, false));
    }
    bool audio = strstr(c->head.path, "/audio/") != NULL;
    conn_answer_json(c, 200,
        audio ? json_pack("{s:o}", "models", list)
              : json_pack("{s:s,s:o}", "object", "list", "data", list));
}

static void answer_model(struct conn *c)
{
    const char *id = strrchr(c->head.path, '/') + 1;
    if (strcmp(id, c->server->model_id) == 0 || alias_is_model(id)) {
        conn_answer_json(c, 200, model_json(c->server, id, true));
        return;
    }
    struct refusal r;
    refuse(&r, 404, "model", "the model '%.80s' is not served here", id);
    r.code = "model_not_found";
    conn_refuse(c, &r);
}

static void answer_version(struct conn *c)
{
    conn_answer_json(c, 200, json_pack("{s:s}", "version", utter_version_text()));
}

static void answer_voices(struct conn *c)
{
    char legacy[8];
    bool names_only =
        http_query(&c->head, "legacy", legacy, sizeof legacy) && strcmp(legacy, "false") != 0;
    conn_answer_json(c, 200, voices_list(c->server, names_only));
}

static const char *voice_of_path(const struct conn *c)
{
    return strstr(c->head.path, "/voices/") + strlen("/voices/");
}

static void answer_voice(struct conn *c)
{
    json_t *voice = voices_one(c->server, voice_of_path(c));
    struct refusal r;
    if (voice) {
        conn_answer_json(c, 200, voice);
        return;
    }
    refuse(&r, 404, "name", "no voice '%.80s'", voice_of_path(c));
    conn_refuse(c, &r);
}

static void answer_openapi(struct conn *c);

#define JSON "application/json"

static const struct route own_routes[] = {
    {"POST", "/v1/audio/speech", ROUTE_KEY_AND_MODEL, LIMIT_JSON_SOUND, speech_http_request, false,
        NULL, "Speech: sound as it is made, events, or one whole file.", "Speech", "audio/*"},
    {"POST", "/v1/audio/speech/batch", ROUTE_KEY_AND_MODEL, LIMIT_JSON, speech_batch_request, false,
        NULL, "Up to 32 speeches in one answer, each in base64 or with its error.", "Batch", JSON},
    {"GET", "/v1/audio/speech/stream", ROUTE_KEY_AND_MODEL, 0, session_request, true, NULL,
        "WebSocket: text that is still being written, sound as it is made.", NULL, NULL},
    {"GET", "/v1/models", ROUTE_KEY, 0, answer_models, false, NULL,
        "The served model with what it can do, and the names that stand for it.", NULL, JSON},
    {"GET", "/v1/models/", ROUTE_KEY, 0, answer_model, false, NULL, "One of them.", NULL, JSON},
    {"GET", "/v1/audio/models", ROUTE_KEY, 0, answer_models, false, NULL, "The same list.", NULL, JSON},
    {"GET", "/v1/audio/voices", ROUTE_KEY, 0, answer_voices, false, NULL,
        "Who can speak; ?legacy=true: names only.", NULL, JSON},
    {"POST", "/v1/audio/voices", ROUTE_KEY_AND_MODEL, LIMIT_UPLOAD + (1 << 20), voices_http_create,
        false, NULL, "A voice from a recording of 1 to 30 s. Needs a base model and --voices.", "Voice",
        JSON},
    {"GET", "/v1/audio/voices/", ROUTE_KEY, 0, answer_voice, false, NULL, "One voice.", NULL, JSON},
    {"DELETE", "/v1/audio/voices/", ROUTE_KEY, LIMIT_JSON, voices_http_delete, false, NULL,
        "Removes an uploaded voice.", NULL, JSON},
    {"GET", "/metrics", ROUTE_KEY, 0, watch_metrics, false, NULL, "Counters, for Prometheus.", NULL,
        "text/plain"},
    {"GET", "/health", ROUTE_OPEN, 0, watch_health, false, NULL,
        "200 while the process is well; with a key also device, kernels and lanes.", NULL, JSON},
    {"GET", "/ready", ROUTE_OPEN, 0, watch_ready, false, NULL, "200 when a speech would be taken now.",
        NULL, JSON},
    {"GET", "/v1/workers", ROUTE_KEY, 0, watch_workers, false, NULL, "One for each device.", NULL,
        JSON},
    {"POST", "/v1/workers/*/drain", ROUTE_KEY, LIMIT_JSON, watch_drain, false, NULL,
        "It takes no more speeches, ends with its last one and stays out.", NULL, JSON},
    {"POST", "/v1/workers/*/replace", ROUTE_KEY, LIMIT_JSON, watch_replace, false, NULL,
        "The same, then another takes its place.", NULL, JSON},
    {"POST", "/v1/workers/*/start", ROUTE_KEY, LIMIT_JSON, watch_start, false, NULL,
        "It takes speeches again.", NULL, JSON},
    {"GET", "/version", ROUTE_OPEN, 0, answer_version, false, NULL, "Of the program.", NULL, JSON},
    {"GET", "/openapi.json", ROUTE_OPEN, 0, answer_openapi, false, NULL, "This description.", NULL,
        JSON},
    {"GET", "/docs", ROUTE_OPEN, 0, answer_docs, false, NULL, "The same for people, with examples.",
        NULL, "text/html"},
    {"GET", "/", ROUTE_OPEN, 0, answer_page, false, NULL, "A page that speaks.", NULL, "text/html"},
    {"GET", "/page/", ROUTE_OPEN, 0, answer_part, false, NULL, "What belongs to these two.", NULL,
        "*/*"},
    {.method = NULL},
};

static const struct route_table tables[] = {{"utter", own_routes}, {"ElevenLabs", elevenlabs_routes},
    {"Cartesia", cartesia_routes}, {"Deepgram", deepgram_routes}};

/* Of all short answers the one that is dear to put together, and the same for as long as the program runs. */
static void answer_openapi(struct conn *c)
{
    struct server *s = c->server;
    s->openapi = s->openapi ? s->openapi : openapi_text(tables, sizeof tables / sizeof *tables);
    if (s->openapi) {
        conn_answer(c, 200, JSON, s->openapi, strlen(s->openapi));
    } else {
        conn_answer_json(c, 503, NULL);
    }
}

static const char *without_version(const char *path)
{
    return strncmp(path, "/v1/", 4) == 0 ? path + 3 : path;
}

/* Whether the path is the pattern, in which a star stands for one name and a slash at the end for all that follows. */
static bool path_fits(const char *pattern, const char *path)
{
    const char *at = pattern;
    while (*at && (*at == *path || *at == '*')) {
        size_t n = *at == '*' ? strcspn(path, "/") : 1;
        if (n == 0) {
            return false;
        }
        path += n;
        at++;
    }
    bool goes_on = at - pattern > 1 && at[-1] == '/';
    return !*at && (goes_on ? *path != 0 : *path == 0);
}

/* NULL: there is none. `methods`, or NULL, gets those that the path has. */
static const struct route *find_route(const struct http_head *head, char *methods, size_t size)
{
    const char *path = without_version(head->path);
    const char *method = strcmp(head->method, "HEAD") == 0 ? "GET" : head->method;
    size_t n = 0;
    for (size_t k = 0; k < sizeof tables / sizeof *tables; k++) {
        for (const struct route *row = tables[k].rows; row->method; row++) {
            if (path_fits(without_version(row->path), path)) {
                if (strcmp(row->method, method) == 0) {
                    return row;
                }
                if (methods) {
                    n += (size_t)snprintf(
                        methods + n, n < size ? size - n : 0, "%s%s", n ? ", " : "", row->method);
                }
            }
        }
    }
    return NULL;
}

/* Of NAME, NAME:PORT or [ADDRESS]:PORT: the part in front of the port. */
static size_t host_name_bytes(const char *host)
{
    const char *closing = host[0] == '[' ? strchr(host, ']') : NULL;
    return closing ? (size_t)(closing + 1 - host) : strcspn(host, ":");
}

/* Whether the Host names this machine: otherwise a web page elsewhere could reach us by a name of its own. */
static bool host_is_ours(const struct server *s, const char *host)
{
    static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
    size_t n = host ? host_name_bytes(host) : 0;
    const char *port = host && host[n] == ':' ? host + n + 1 : NULL;
    if (host && (port ? port[strspn(port, "0123456789")] : host[n])) {
        return false; /* something stands behind the name */
    }
    bool ours = !host || (strlen(s->options->host) == n && strncasecmp(host, s->options->host, n) == 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        ours = ours || (strlen(names[i]) == n && strncasecmp(host, names[i], n) == 0);
    }
    return ours;
}

static bool comes_from_us(const struct http_head *head)
{
    const char *origin = http_field(head, "Origin"), *host = http_field(head, "Host");
    const char *name = origin ? strstr(origin, "://") : NULL;
    return !origin || (name && host && strcasecmp(name + 3, host) == 0);
}

static bool admit(struct conn *c, size_t *body_limit, struct refusal *refusal)
{
    char methods[sizeof refusal->allow] = "";
    const struct route *route = find_route(&c->head, methods, sizeof methods);
    struct server *s = c->server;
    c->refusal_json = route ? route->refusal : NULL;
    if (!s->keys && !s->options->insecure && !host_is_ours(s, http_field(&c->head, "Host"))) {
        return refuse(refusal, 403, NULL, "the Host of the request is not this server");
    }
    if (!comes_from_us(&c->head)) {
        return refuse(refusal, 403, NULL, "pages of other sites may not use this server");
    }
    if (!route) {
        refuse(refusal, methods[0] ? 405 : 404, NULL,
            methods[0] ? "this path has no %.20s" : "no such path", c->head.method);
        strcpy(refusal->allow, methods);
        return false;
    }
    struct account *account;
    bool known = keys_check(s, &c->head, &account);
    account_free(&c->account);
    c->account = account_share(account);
    if (route->access != ROUTE_OPEN && !known) {
        s->metrics.rejected[METRICS_KEY]++;
        refuse(refusal, 401, NULL, "an API key is needed (Authorization: Bearer KEY)");
        refusal->code = "invalid_api_key";
        return false;
    }
    if (route->access == ROUTE_KEY_AND_MODEL && !s->was_ready) {
        s->metrics.rejected[METRICS_NOT_READY]++;
        refuse(refusal, 503, NULL, "the model is being opened");
        refusal->retry_ms = RETRY_MS;
        return false;
    }
    /* A body where none belongs is read and not looked at. */
    *body_limit = route->body_limit ? route->body_limit : LIMIT_HELD_SMALL;
    if (route->body_limit == LIMIT_JSON_SOUND && strcmp(s->ready.kind_name, "base") != 0) {
        *body_limit = LIMIT_JSON; /* no recording can be in it */
    }
    return true;
}

static void answer(struct conn *c)
{
    const struct route *route = find_route(&c->head, NULL, 0);
    json_text_forget(); /* what others had put together and never sent */
    if (c->head.wants_websocket && !route->socket) {
        struct refusal r;
        refuse(&r, 400, NULL, "this path speaks no WebSocket");
        conn_refuse(c, &r);
        return;
    }
    route->answer(c);
}

const struct conn_service route_service = {admit, answer};
