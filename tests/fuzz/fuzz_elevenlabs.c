/* SPDX-License-Identifier: Apache-2.0
 * Any JSON as a request and as a message of ElevenLabs; any bytes as text with markup whose letters are told. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/dialects/elevenlabs/elevenlabs_message.h"
#include "server/dialects/markup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

struct seen {
    size_t bytes;
    double end_s;
};

static void tell(void *user, const char *letter, size_t bytes, double start_s, double end_s)
{
    struct seen *seen = user;
    (void)letter;
    if (bytes == 0 || bytes > 4 || start_s < seen->end_s || end_s < start_s) {
        abort();
    }
    seen->bytes += bytes;
    seen->end_s = end_s;
}

static void strip_and_tell(const char *text, size_t n)
{
    char *once = malloc(n + MARKUP_MOST), *pieces = malloc(n + 2 * MARKUP_MOST);
    struct markup m = {.n_held = 0}, other = {.n_held = 0};
    size_t a = markup_strip(&m, text, n, once), b = 0;
    for (size_t i = 0; i < n; i++) {
        b += markup_strip(&other, text + i, 1, pieces + b);
    }
    if (a > n || a != b || m.n_held != other.n_held || memcmp(once, pieces, a) != 0) {
        abort(); /* the pieces in which a text comes do not matter */
    }
    struct spoken s = {0};
    struct seen seen = {0};
    struct speech_word words[2] = {
        {n / 3, n / 4, 0.5, 0.25, 1, true, false}, {n / 2, n, 1, 2, 1, true, false}};
    spoken_words(&s, text, n, words, 1 + n % 2, n % 2 == 0, tell, &seen);
    spoken_rest(&s, text, n, 3, tell, &seen);
    if (seen.bytes < n || seen.bytes > n + 1 || words_share(text, n, 1, 2) > n) {
        abort();
    }
    free(once);
    free(pieces);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    json_t *json = NULL;
    struct refusal r = {0};
    struct elevenlabs_message m;
    strip_and_tell((const char *)data, bytes);
    if (json_text(&json, (const char *)data, bytes, JSON_SMALL, "fuzz", NULL) != UTTER_OK) {
        return 0;
    }
    struct elevenlabs_query query = {.output_format = elevenlabs_format((int)(bytes % 22))};
    json_t *fields = elevenlabs_fields(json, &query, bytes % 2, &r);
    bool read = elevenlabs_read(&m, json, &r);
    if ((!fields || !read) && (r.status < 400 || !r.message[0])) {
        abort();
    }
    if (read && m.text && strlen(m.text) != m.bytes) {
        abort();
    }
    json_t *error = elevenlabs_error(&r, read ? m.context : "");
    if (!error) {
        abort();
    }
    json_decref(error);
    json_decref(fields);
    json_decref(json);
    return 0;
}
