/* SPDX-License-Identifier: Apache-2.0
 * Any JSON as a request and as a message of Cartesia; its transcript as words with times. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/dialects/cartesia/cartesia_message.h"
#include "server/dialects/markup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* As many words as times, which never go back. */
static void check_words(const char *text, size_t n)
{
    struct cartesia_words w = {.from_s = 1};
    struct spoken spoken = {0};
    spoken_rest(&spoken, text, n, 2, cartesia_words_letter, &w);
    json_t *words = cartesia_words_end(&w);
    const json_t *starts = json_object_get(words, "start"), *ends = json_object_get(words, "end");
    size_t n_words = json_array_size(json_object_get(words, "words"));
    double last = 1;
    if (json_array_size(starts) != n_words || json_array_size(ends) != n_words) {
        abort();
    }
    for (size_t i = 0; i < n_words; i++) {
        double start = json_real_value(json_array_get(starts, i)),
               end = json_real_value(json_array_get(ends, i));
        if (start < last - 1e-9 || end < start || end > 3 + 1e-9) {
            abort();
        }
        last = end;
    }
    json_decref(words);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    json_t *json = NULL;
    struct refusal r = {0};
    struct cartesia_message m;
    check_words((const char *)data, bytes);
    if (json_text(&json, (const char *)data, bytes, JSON_SMALL, "fuzz", NULL) != UTTER_OK ||
        !json_is_object(json)) {
        json_decref(json);
        return 0;
    }
    bool read = cartesia_read(&m, json, &r);
    if (read && !m.cancel && (strlen(m.transcript) != m.bytes || m.delay_s < 0 || m.delay_s > 5)) {
        abort();
    }
    if (read && !m.cancel) {
        if (!markup_strip_field(json, "transcript", &r)) {
            abort();
        }
        json_t *fields = cartesia_fields(json, true, bytes % 2, &r);
        read = fields != NULL;
        json_decref(fields);
    }
    if (!read && (r.status < 400 || !r.message[0])) {
        abort();
    }
    json_t *error = cartesia_error(&r, m.context), *other = cartesia_refusal(&r);
    if (!error || !other) {
        abort();
    }
    json_decref(error);
    json_decref(other);
    json_decref(json);
    return 0;
}
