/* SPDX-License-Identifier: Apache-2.0
 * Routes, fields and sampling parameters -> OpenAPI 3.1. */
#include "server/front/openapi.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/tables/parameters.h"
#include "server/speech/field_table.h"
#include "utter.h"

/* ---- Fields ---- */

static json_t *words_json(const char *list)
{
    json_t *words = json_array();
    for (const char *at = list; at;) {
        size_t n = strcspn(at, "|");
        json_array_append_new(words, json_stringn(at, n));
        at = at[n] ? at + n + 1 : NULL;
    }
    return words;
}

static void put_range(json_t *j, double low, double high, bool whole)
{
    if (high > low) {
        json_object_set_new(j, "minimum", whole ? json_integer((json_int_t)low) : json_real(low));
        if (high < 0x1p63) { /* more than every whole number of JSON is no bound */
            json_object_set_new(j, "maximum", whole ? json_integer((json_int_t)high) : json_real(high));
        }
    }
}

static json_t *field_json(const struct field_row *row)
{
    static const char *const types[] = {[FIELD_IS_TEXT] = "string",
        [FIELD_IS_NUMBER] = "number",
        [FIELD_IS_INTEGER] = "integer",
        [FIELD_IS_FLAG] = "boolean",
        [FIELD_IS_WORD] = "string"};
    json_t *j = json_pack("{s:s}", "description", row->about);
    if (row->kind == FIELD_IS_VOICE) {
        json_object_set_new(j, "oneOf",
            json_pack("[{s:s},{s:s,s:[s],s:{s:{s:s}}}]", "type", "string", "type", "object", "required",
                "id", "properties", "id", "type", "string"));
        return j;
    }
    json_object_set_new(j, "type", json_string(types[row->kind]));
    if (row->kind == FIELD_IS_WORD) {
        json_object_set_new(j, "enum", words_json(row->words));
    } else if (row->kind == FIELD_IS_NUMBER || row->kind == FIELD_IS_INTEGER) {
        put_range(j, row->low, row->high, row->kind == FIELD_IS_INTEGER);
    } else if (row->high > 0) {
        json_object_set_new(j, "maxLength", json_integer((json_int_t)row->high));
    }
    if (row->fallback) {
        json_object_set_new(j, "default", json_loads(row->fallback, JSON_DECODE_ANY, NULL));
    }
    return j;
}

static json_t *parameter_json(const struct parameter *p)
{
    json_t *j = json_pack("{s:s,s:s+}", "type", p->integer ? "integer" : "number", "description",
        p->predictor ? "Of the predictor: " : "", p->predictor ? "as that of the talker." : p->help);
    put_range(j, p->least_json, p->most_asked, p->integer);
    return j;
}

/* The fields of a speech, or of the configuration of a session. */
static json_t *fields_json(bool session)
{
    json_t *fields = json_object();
    for (int i = 0; i < N_FIELDS; i++) {
        const struct field_row *row = &field_table[i];
        if (row->about && (session ? i != FIELD_INPUT : !row->session_only)) {
            json_object_set_new(fields, row->name, field_json(row));
        }
    }
    for (int i = 0; i < parameter_count; i++) {
        json_object_set_new(fields, parameter_table[i].field, parameter_json(&parameter_table[i]));
    }
    return fields;
}

static json_t *schemas_json(void)
{
    json_t *voice = json_pack("{s:s,s:[s,s],s:{s:{s:s,s:s},s:{s:s},s:{s:s},s:{s:s},s:{s:s},s:{s:s}}}",
        "type", "object", "required", "audio_sample", "name", "properties", "audio_sample", "type",
        "string", "format", "binary", "name", "type", "string", "ref_text", "type", "string",
        "speaker_description", "type", "string", "consent", "type", "string", "overwrite", "type",
        "boolean");
    json_t *error = json_pack("{s:s,s:{s:{s:s,s:{s:{s:s},s:{s:s},s:{s:[s,s]},s:{s:[s,s]}}}}}", "type",
        "object", "properties", "error", "type", "object", "properties", "message", "type", "string",
        "type", "type", "string", "param", "type", "string", "null", "code", "type", "string", "null");
    return json_pack("{s:{s:s,s:[s],s:o},s:{s:s,s:o},s:{s:s,s:[s],s:{s:{s:s,s:i,s:i,s:{s:s}}}},s:o,s:o,"
                     "s:{s:s,s:s}}",
        "Speech", "type", "object", "required", "input", "properties", fields_json(false), "Session",
        "type", "object", "properties", fields_json(true), "Batch", "type", "object", "required",
        "items", "properties", "items", "type", "array", "minItems", 1, "maxItems", LIMIT_BATCH,
        "items", "$ref", "#/components/schemas/Speech", "Voice", voice, "Error", error, "Theirs",
        "type", "object", "description", "As that service's interface has it.");
}

/* ---- Routes ---- */

/* The path as OpenAPI writes it, a name in braces for each star; and these names. */
static json_t *path_parameters(const char *pattern, char *path, size_t size)
{
    json_t *parameters = json_array();
    size_t n = 0;
    for (const char *at = pattern; *at; at++) {
        bool last_slash = *at == '/' && !at[1] && at > pattern, name = *at == '*' || last_slash;
        n += (size_t)snprintf(path + n, size - n, "%.*s%s", *at != '*', at, name ? "{name}" : "");
        if (name) {
            json_array_append_new(parameters, json_pack("{s:s,s:s,s:b,s:{s:s}}", "name", "name", "in",
                                                  "path", "required", 1, "schema", "type", "string"));
        }
    }
    return parameters;
}

static json_t *answers_json(const struct route *row)
{
    json_t *answers = json_object(), *errors;
    if (row->socket) {
        json_object_set_new(answers, "101", json_pack("{s:s}", "description", "the WebSocket is open"));
    } else {
        json_object_set_new(
            answers, "200", json_pack("{s:s,s:{s:{}}}", "description", "good", "content", row->gives));
    }
    errors = row->refusal ? json_pack("{s:s}", "description", "an error of that service's shape")
                          : json_pack("{s:s,s:{s:{s:{s:s}}}}", "description", "an error", "content",
                                "application/json", "schema", "$ref", "#/components/schemas/Error");
    json_object_set_new(answers, "default", errors);
    return answers;
}

static json_t *operation_json(const struct route *row, const char *service, json_t *parameters)
{
    json_t *j = json_pack(
        "{s:s,s:[s],s:o}", "summary", row->about, "tags", service, "responses", answers_json(row));
    if (json_array_size(parameters)) {
        json_object_set_new(j, "parameters", json_incref(parameters));
    }
    if (row->asks) {
        char schema[64];
        bool form = strcmp(row->asks, "Voice") == 0;
        snprintf(schema, sizeof schema, "#/components/schemas/%s", row->asks);
        json_object_set_new(j, "requestBody",
            json_pack("{s:b,s:{s:{s:{s:s}}}}", "required", 1, "content",
                form ? "multipart/form-data" : "application/json", "schema", "$ref", schema));
    }
    if (row->access != ROUTE_OPEN) {
        json_object_set_new(j, "security", json_pack("[{s:[]},{s:[]}]", "bearer", "key"));
    }
    if (row->socket) {
        json_object_set_new(j, "x-websocket", json_true());
    }
    return j;
}

static void put_route(json_t *paths, const struct route *row, const char *service)
{
    char path[128] = "", method[8] = "";
    json_t *parameters = path_parameters(row->path, path, sizeof path);
    json_t *at = json_object_get(paths, path);
    if (!at) {
        at = json_object();
        json_object_set_new(paths, path, at);
    }
    for (size_t i = 0; row->method[i] && i + 1 < sizeof method; i++) {
        method[i] = (char)(row->method[i] | 0x20); /* to lower case: the methods are letters */
    }
    json_object_set_new(at, method, operation_json(row, service, parameters));
    json_decref(parameters);
}

char *openapi_text(const struct route_table *tables, size_t n)
{
    json_t *paths = json_object();
    for (size_t k = 0; k < n; k++) {
        for (const struct route *row = tables[k].rows; row->method; row++) {
            put_route(paths, row, tables[k].service);
        }
    }
    json_t *all = json_pack("{s:s,s:{s:s,s:s,s:s,s:{s:s}},s:o,s:{s:o,s:{s:{s:s,s:s},s:{s:s,s:s,s:s}}}}",
        "openapi", "3.1.0", "info", "title", "utter", "version", utter_version_text(), "description",
        "Speech over HTTP and WebSocket. /docs shows this for people, with examples.", "license",
        "name", "Apache-2.0", "paths", paths, "components", "schemas", schemas_json(),
        "securitySchemes", "bearer", "type", "http", "scheme", "bearer", "key", "type", "apiKey", "in",
        "header", "name", "X-API-Key");
    char *text = json_text_write(all, JSON_COMPACT | JSON_REAL_PRECISION(9));
    json_decref(all);
    return text;
}
