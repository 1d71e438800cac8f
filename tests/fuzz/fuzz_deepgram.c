/* SPDX-License-Identifier: Apache-2.0
 * Any JSON as a request and as a message of Deepgram, Aura's and Flux's; any bytes as a text that was interrupted. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/dialects/deepgram/deepgram_message.h"
#include "server/speech/words.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void interrupt(const char *text, size_t n)
{
    const struct deepgram_turn turn = {"dg_sp_0", 2, n};
    size_t spoken = words_share(text, n, 1, 2);
    json_t *m = spoken <= n ? deepgram_interrupted(&turn, 1000, text, n, (long long)spoken) : NULL;
    if (!m) {
        abort();
    }
    json_decref(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    json_t *json = NULL;
    struct refusal r = {0};
    struct deepgram_message m;
    char *text = malloc(bytes + 1);
    memcpy(text, data, bytes);
    text[bytes] = 0;
    interrupt(text, bytes);
    struct deepgram_query query = {text, NULL, bytes % 3 ? NULL : text, bytes % 5 ? NULL : text, NULL};
    json_t *socket = deepgram_fields(&query, NULL, &r);
    json_decref(socket);
    free(text);
    if (json_text(&json, (const char *)data, bytes, JSON_SMALL, "fuzz", NULL) != UTTER_OK) {
        return 0;
    }
    query = (struct deepgram_query){.encoding = "mp3", .speed = "1.5"};
    json_t *fields = deepgram_fields(&query, json, &r);
    bool read = deepgram_read(&m, json, bytes % 2, &r);
    if ((!fields || !read) && (r.status < 400 || !r.message[0])) {
        abort();
    }
    if (read && m.kind == DEEPGRAM_SPEAK && strlen(m.text) != m.bytes) {
        abort();
    }
    json_t *error = deepgram_error(&r), *refusal = deepgram_refusal(&r);
    if (!error || !refusal) {
        abort();
    }
    json_decref(error);
    json_decref(refusal);
    json_decref(fields);
    json_decref(json);
    return 0;
}
