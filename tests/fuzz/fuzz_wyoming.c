/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as events of Wyoming; what is read is written and read again the same. Any JSON as a checkpoint's
 * config. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/dialects/wyoming/wyoming_message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void write_again(const struct wyoming_event *e, const uint8_t *payload)
{
    struct wire_out out = {0};
    struct wyoming_event twice;
    size_t used = 0;
    const char *language, *voice = wyoming_voice(e, &language), *text = wyoming_string(e, "text");
    if ((voice && strlen(voice) > 1 << 20) || (text && strlen(text) > 1 << 20)) {
        abort();
    }
    wyoming_write(&out, e->type, json_incref(e->data), payload, e->payload_bytes);
    if (!out.failed) {
        if (wyoming_read(&twice, out.bytes, out.n, &used) != WYOMING_EVENT || used != out.n ||
            strcmp(twice.type, e->type) != 0 || twice.payload_bytes != e->payload_bytes ||
            memcmp(out.bytes + out.n - e->payload_bytes, payload, e->payload_bytes) != 0) {
            abort();
        }
        wyoming_event_fini(&twice);
    }
    wire_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct wyoming_event e;
    size_t used, at = 0;
    json_t *config = NULL, *voices, *languages;
    while (at < bytes && wyoming_read(&e, data + at, bytes - at, &used) == WYOMING_EVENT) {
        if (used == 0 || used > bytes - at || !json_is_object(e.data)) {
            abort();
        }
        /* A type with a NUL inside would come back shorter. */
        if (strlen(e.type) == json_string_length(json_object_get(e.json, "type"))) {
            write_again(&e, data + at + used - e.payload_bytes);
        }
        wyoming_event_fini(&e);
        at += used;
    }
    if (json_text(&config, (const char *)data, bytes, JSON_SMALL, "fuzz", NULL) == UTTER_OK) {
        wyoming_config(config, &voices, &languages);
        json_decref(wyoming_info("0", voices, languages));
        json_decref(config);
    }
    return 0;
}
