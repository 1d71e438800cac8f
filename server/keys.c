/* SPDX-License-Identifier: Apache-2.0
 * Lines "KEY" or "sha256:HEX"; # begins a comment. */
#include "server/keys.h"

#include <nettle/memops.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/memory.h"

enum { MAX_FILE = 1 << 20, MAX_KEYS = 10000 };

struct keys {
    int n;
    uint8_t digests[][SHA256_DIGEST_SIZE];
};

static void digest_of(uint8_t digest[SHA256_DIGEST_SIZE], const char *key, size_t n)
{
    struct sha256_ctx sha;
    sha256_init(&sha);
    sha256_update(&sha, n, (const uint8_t *)key);
    sha256_digest(&sha, SHA256_DIGEST_SIZE, digest);
}

static bool from_hex(uint8_t digest[SHA256_DIGEST_SIZE], const char *hex, size_t n)
{
    for (size_t i = 0; n == 64 && i < 32; i++) {
        unsigned byte;
        if (strspn(hex + 2 * i, "0123456789abcdefABCDEF") < 2 ||
            sscanf(hex + 2 * i, "%2x", &byte) != 1) {
            return false;
        }
        digest[i] = (uint8_t)byte;
    }
    return n == 64;
}

bool keys_read(struct server *s)
{
    char *text;
    size_t bytes;
    utter_error error = {.text = ""};
    if (!s->options->key_file) {
        return true;
    }
    if (file_read(s->options->key_file, MAX_FILE, &text, &bytes, &error) != UTTER_OK) {
        fprintf(stderr, "utter: %s\n", error.text);
        return false;
    }
    struct keys *keys = memory_new(1, sizeof *keys + (size_t)MAX_KEYS * SHA256_DIGEST_SIZE);
    bool good = keys != NULL;
    int number = 0;
    for (char *line = text, *end; good && line < text + bytes; line = end + 1) {
        end = line + strcspn(line, "\n");
        line += strspn(line, " \t\r");
        size_t n = strcspn(line, " \t\r\n");
        number++;
        if (n == 0 || line[0] == '#') {
            continue;
        }
        good = keys->n < MAX_KEYS;
        if (good && strncmp(line, "sha256:", 7) == 0) {
            good = from_hex(keys->digests[keys->n], line + 7, n - 7);
        } else if (good) {
            digest_of(keys->digests[keys->n], line, n);
        }
        keys->n += good;
    }
    memory_free(text);
    if (!good || keys->n == 0) {
        fprintf(stderr, "utter: %s: line %d: no key (one KEY, or sha256: and 64 hex digits, a line)\n",
            s->options->key_file, number);
        memory_free(keys);
        return false;
    }
    keys_free(s);
    s->keys = keys;
    return true;
}

void keys_free(struct server *s)
{
    memory_free(s->keys);
    s->keys = NULL;
}

int keys_check(const struct server *s, const struct http_head *head)
{
    static const char *const names[] = {"Authorization", "X-API-Key", "xi-api-key"};
    char query[512];
    const char *shown = NULL;
    if (!s->keys) {
        return 0;
    }
    for (size_t i = 0; !shown && i < sizeof names / sizeof *names; i++) {
        shown = http_field(head, names[i]);
    }
    if (shown && strncasecmp(shown, "Bearer ", 7) == 0) {
        shown += 7;
    } else if (shown && strncasecmp(shown, "Token ", 6) == 0) {
        shown += 6;
    }
    /* A browser cannot add a header to a WebSocket. */
    if (!shown && head->wants_websocket && http_query(head, "api_key", query, sizeof query)) {
        shown = query;
    }
    if (!shown) {
        return -1;
    }
    uint8_t digest[SHA256_DIGEST_SIZE];
    digest_of(digest, shown, strlen(shown));
    int found = -1;
    for (int i = 0; i < s->keys->n; i++) {
        found = memeql_sec(digest, s->keys->digests[i], sizeof digest) ? i : found;
    }
    return found;
}
