/* SPDX-License-Identifier: Apache-2.0
 * The list of accounts, and which of them a request belongs to. */
#include "server/front/keys.h"

#include <nettle/memops.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/memory.h"

enum { MAX_FILE = 1 << 20, MAX_KEYS = 10000 };

/* An account and its limits as the file has them: in force once all of it was read. */
struct entry {
    struct account *account;
    int most_speeches, per_minute;
    bool is_operator;
};

struct keys {
    int n;
    struct entry entries[MAX_KEYS]; /* in the order of their digests */
};

static void list_free(struct keys *keys)
{
    for (int i = 0; keys && i < keys->n; i++) {
        account_free(&keys->entries[i].account);
    }
    memory_free(keys);
}

/* For a client all are compared, whichever is equal: how long it takes tells nothing. */
static struct account *find(const struct keys *keys, const uint8_t digest[ACCOUNT_DIGEST])
{
    struct account *found = NULL;
    for (int i = 0; i < keys->n; i++) {
        struct account *a = keys->entries[i].account;
        found = memeql_sec(digest, a->digest, ACCOUNT_DIGEST) ? a : found;
    }
    return found;
}

/* For the file, whose lines are many, in few steps: how many digests are less, and the account of this one or NULL. */
static int place_of(
    const struct keys *keys, const uint8_t digest[ACCOUNT_DIGEST], struct account **account)
{
    int low = 0, high = keys ? keys->n : 0;
    *account = NULL;
    while (low < high) {
        const int middle = (low + high) / 2;
        const int order = memcmp(keys->entries[middle].account->digest, digest, ACCOUNT_DIGEST);
        *account = order == 0 ? keys->entries[middle].account : *account;
        low = order < 0 ? middle + 1 : low;
        high = order < 0 ? high : middle;
    }
    return low;
}

static const char out_of_memory[] = "out of memory";
static const char bad_line[] = "a key that is there already, or limits that are none (a line is KEY, "
                               "or sha256: and 64 hex digits; "
                               "then speeches=N, per-minute=N, operator)";

/* Adds a line's account: that of before, when its key was there. NULL, or why it is not added. */
static const char *add(struct keys *keys, const struct keys *before, const struct account *line)
{
    struct account *same, *known;
    const int place = place_of(keys, line->digest, &same);
    if (same) {
        return bad_line;
    }
    if (keys->n == MAX_KEYS) {
        return "there are more than 10000 keys";
    }
    place_of(before, line->digest, &known);
    struct account *a = known ? account_share(known) : memory_new(1, sizeof *a);
    if (!a) {
        return out_of_memory;
    }
    if (!known) {
        *a = *line;
    }
    struct entry *e = &keys->entries[place];
    memmove(e + 1, e, (size_t)(keys->n++ - place) * sizeof *e);
    *e = (struct entry){a, line->most_speeches, line->per_minute, line->is_operator};
    return NULL;
}

static void put_in_force(struct keys *keys)
{
    for (int i = 0; i < keys->n; i++) {
        const struct entry *e = &keys->entries[i];
        struct account *a = e->account;
        a->most_speeches = e->most_speeches;
        a->is_operator = e->is_operator;
        a->allowance = a->per_minute == e->per_minute ? a->allowance : e->per_minute;
        a->per_minute = e->per_minute;
    }
}

bool keys_read(struct server *s)
{
    char *text;
    size_t bytes;
    utter_error error = {.text = ""};
    if (!s->options->key_file) {
        return true;
    }
    if (file_read_any(s->options->key_file, MAX_FILE, &text, &bytes, &error) != UTTER_OK) {
        fprintf(stderr, "utter: %s\n", error.text);
        return false;
    }
    struct keys *keys = memory_new(1, sizeof *keys);
    const char *why = keys ? NULL : out_of_memory;
    int number = 0;
    for (const char *line = text, *end; !why && line < text + bytes; line = end + 1) {
        struct account account;
        const char *feed = memchr(line, '\n', (size_t)(text + bytes - line));
        end = feed ? feed : text + bytes;
        enum account_line kind = account_parse(&account, line, (size_t)(end - line));
        number++;
        why = kind == ACCOUNT_LINE_EMPTY ? NULL
              : kind == ACCOUNT_LINE_KEY ? add(keys, s->keys, &account)
                                         : bad_line;
    }
    memory_free(text);
    if (!why && keys->n == 0) {
        fprintf(stderr, "utter: %s: holds no key (a line is KEY, or sha256: and 64 hex digits)\n",
            s->options->key_file);
        list_free(keys);
        return false;
    }
    if (why) {
        fprintf(stderr, "utter: %s: line %d: %s\n", s->options->key_file, number, why);
        list_free(keys);
        return false;
    }
    put_in_force(keys);
    keys_free(s);
    s->keys = keys;
    return true;
}

void keys_free(struct server *s)
{
    list_free(s->keys);
    s->keys = NULL;
}

bool keys_check(const struct server *s, const struct http_head *head, struct account **account)
{
    static const char *const names[] = {"Authorization", "X-API-Key", "xi-api-key"};
    char query[512];
    const char *shown = NULL;
    *account = NULL;
    if (!s->keys) {
        return true;
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
    if (!shown && head->wants_websocket &&
        (http_query(head, "api_key", query, sizeof query) ||
            http_query(head, "authorization", query, sizeof query))) {
        shown = query;
    }
    if (shown) {
        uint8_t digest[ACCOUNT_DIGEST];
        account_digest(digest, shown, strlen(shown));
        *account = find(s->keys, digest);
    }
    return *account != NULL;
}
