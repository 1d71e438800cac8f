/* SPDX-License-Identifier: Apache-2.0
 * One door for all dialects into the fields of a speech. */
#include "server/dialects/ask.h"

#include <string.h>

#include "base/json.h"
#include "server/dialects/voice_map.h"
#include "server/speech/speech.h"
#include "server/speech/voices.h"

bool ask_fields(struct fields *fields, struct conn *c, const char *dialect, const char *voice,
    json_t *object, enum fields_for what, struct refusal *r)
{
    struct fields_model model = speech_fields_model(c->server);
    struct voices_found found;
    const bool is_named = !voice || !*voice ||
                          json_object_set_new(object, "voice",
                              json_string(voice_map_find(c->server, dialect, voice))) == 0;
    if (json_text_lacks()) {
        json_text_forget();
        json_decref(object);
        return refuse(r, 503, NULL, "out of memory");
    }
    if (!object) { /* it has been refused */
        return false;
    }
    model.default_format = ENCODE_PCM;
    if (!is_named) {
        json_decref(object);
        return refuse(r, 404, "voice", "no voice '%.80s'", voice); /* no UTF-8 */
    }
    bool good = fields_parse(fields, object, NULL, what, &model, r);
    json_decref(object);
    if (good && !voices_find(c->server, fields, &found, r)) {
        r->status = r->status == 400 ? 404 : r->status;
        r->code = "voice_not_found";
        good = false;
    }
    if (!good) {
        fields_fini(fields);
    }
    return good;
}

void ask_refuse(struct conn *c, const struct refusal *r)
{
    c->server->metrics.rejected[METRICS_INVALID] += r->status < 500;
    conn_refuse(c, r);
}

const char *ask_query(const struct conn *c, const char *name, char *out, size_t size)
{
    return http_query(&c->head, name, out, size) ? out : NULL;
}
