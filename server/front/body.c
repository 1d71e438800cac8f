/* SPDX-License-Identifier: Apache-2.0
 * JSON from clients: its type, its size, its form. */
#include "server/front/body.h"

#include <strings.h>

#include "base/json.h"

utter_status body_parse(json_t **json, const char *text, size_t n, const char *what, utter_error *error)
{
    return json_text(json, text, n, LIMIT_VALUES, what, error);
}

json_t *body_json(struct conn *c)
{
    json_t *json = NULL;
    size_t n = evbuffer_get_length(c->body);
    const char *text = n ? (const char *)evbuffer_pullup(c->body, -1) : "";
    utter_error error = {.text = ""};
    struct refusal r;
    const char *type = http_field(&c->head, "Content-Type");
    if (type && *type && strncasecmp(type, "application/json", 16) != 0) {
        refuse(&r, 415, NULL, "the body must be JSON (Content-Type: application/json)");
    } else if (body_parse(&json, text, n, "the body", &error) != UTTER_OK) {
        refuse(&r, 400, NULL, "%s", error.text);
    } else {
        return json;
    }
    c->server->metrics.rejected[METRICS_INVALID]++;
    conn_refuse(c, &r);
    return NULL;
}
