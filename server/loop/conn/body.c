/* SPDX-License-Identifier: Apache-2.0
 * JSON from clients: its type, its size, its form. */
#include "server/loop/conn/body.h"

#include <string.h>
#include <strings.h>

#include "base/json.h"

utter_status body_parse(json_t **json, const char *text, size_t n, const char *what, utter_error *error)
{
    return json_text(json, text, n, LIMIT_VALUES, what, error);
}

/* application/json, whose one meaningful parameter is a charset that JSON has given up: UTF-8, if any. */
static bool is_json(const char *type)
{
    static const char json[] = "application/json", charset[] = "charset=";
    if (strncasecmp(type, json, sizeof json - 1) != 0) {
        return false;
    }
    const char *rest = type + sizeof json - 1;
    const char *given = strcasestr(rest, charset);
    if (!strchr(" \t;", *rest)) { /* the zero at its end is in there, too */
        return false;
    }
    given = given ? given + sizeof charset - 1 : "utf-8";
    given += *given == '"';
    return strncasecmp(given, "utf-8", 5) == 0 || strncasecmp(given, "utf8", 4) == 0;
}

json_t *body_json(struct conn *c)
{
    json_t *json = NULL;
    size_t n = evbuffer_get_length(c->body);
    const char *text = n ? (const char *)evbuffer_pullup(c->body, -1) : "";
    utter_status status = UTTER_OK;
    utter_error error = {.text = ""};
    struct refusal r;
    const char *type = http_field(&c->head, "Content-Type"),
               *coding = http_field(&c->head, "Content-Encoding");
    if (type && *type && !is_json(type)) {
        refuse(&r, 415, NULL, "the body must be JSON in UTF-8 (Content-Type: application/json)");
    } else if (coding && *coding && strcasecmp(coding, "identity") != 0) {
        refuse(&r, 415, NULL, "the body must not be compressed (it has a Content-Encoding)");
    } else if (!text || (status = body_parse(&json, text, n, "the body", &error)) == UTTER_E_MEMORY) {
        refuse(&r, 503, NULL, "out of memory");
        r.retry_ms = RETRY_MS;
    } else if (status != UTTER_OK) {
        refuse(&r, 400, NULL, "%s", error.text);
    } else {
        return json;
    }
    c->server->metrics.rejected[METRICS_INVALID] += r.status < 500;
    conn_refuse(c, &r);
    return NULL;
}
