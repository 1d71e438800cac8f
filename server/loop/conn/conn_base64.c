/* SPDX-License-Identifier: Apache-2.0
 * The owner of a connection that still takes its answer. */
#include "server/loop/conn/conn_base64.h"
#include "base/json.h"

#include <nettle/base64.h>
#include <string.h>

#include "base/memory.h"
#include "base/minmax.h"

enum {
    CHUNK = 48 << 10
}; /* bytes of text or sound; a multiple of three, so that pieces of base64 join */

struct long_answer {
    struct conn *conn;
    bool plain;  /* sounds are sent as they are */
    size_t n, i; /* parts: all, and those that have been written */
    size_t at;   /* in part i: first its text, then its sound */
    struct base64_part parts[];
};

static void free_parts(struct base64_part *parts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        wire_fini(&parts[i].text);
        conn_whole_fini(&parts[i].sound);
    }
}

static void long_answer_free(struct long_answer *a)
{
    free_parts(a->parts, a->n);
    memory_free(a);
}

/* A piece of the next part. False: it is lost. */
static bool put_next(struct long_answer *a)
{
    const struct base64_part *part = &a->parts[a->i];
    char text[BASE64_ENCODE_RAW_LENGTH(CHUNK)];
    uint8_t bytes[CHUNK];
    size_t n_text = part->text.n - min(a->at, part->text.n), at = a->at - min(a->at, part->text.n);
    size_t n = min(n_text > 0 ? n_text : part->sound.n - at, CHUNK);
    if (n_text > 0) {
        conn_piece(a->conn, part->text.bytes + a->at, n);
        a->at += n;
    } else if (n > 0) {
        if (!conn_whole_take(&part->sound, at, bytes, n)) {
            return false;
        }
        base64_encode_raw(text, a->plain ? 0 : n, bytes);
        conn_piece(
            a->conn, a->plain ? (char *)bytes : text, a->plain ? n : BASE64_ENCODE_RAW_LENGTH(n));
        a->at += n;
    } else {
        a->i++;
        a->at = 0;
    }
    return true;
}

static void go_on(struct long_answer *a)
{
    bool good = true;
    while (good && a->i < a->n && conn_unsent(a->conn) < LIMIT_UNSENT) {
        good = put_next(a);
    }
    if (!good) {
        conn_break(a->conn);
        long_answer_free(a);
    } else if (a->i == a->n) {
        conn_finish(a->conn, NULL);
        long_answer_free(a);
    }
}

static void on_drained(void *user)
{
    go_on(user);
}

static void on_gone(void *user)
{
    long_answer_free(user);
}

static const struct conn_owner owner = {on_gone, on_drained, NULL, NULL, NULL};

/* `type`: that of one sound, which is sent as it is; NULL: JSON, with sounds in base64. */
static void answer(
    struct conn *c, const char *type, const char *more, struct base64_part *parts, size_t n)
{
    struct long_answer *a = memory_new(1, sizeof *a + n * sizeof *parts);
    size_t bytes = 0;
    bool good = a != NULL;
    for (size_t i = 0; i < n; i++) {
        good = good && !parts[i].text.failed;
        size_t sound = parts[i].sound.n;
        bytes += parts[i].text.n + (type ? sound : BASE64_ENCODE_RAW_LENGTH(sound));
    }
    if (!good) {
        memory_free(a);
        free_parts(parts, n);
        conn_answer(c, 503, "application/json", "{}", 2);
        return;
    }
    a->conn = c;
    a->plain = type != NULL;
    a->n = n;
    memcpy(a->parts, parts, n * sizeof *parts);
    conn_begin_whole(c, 200, type ? type : "application/json", more, bytes);
    conn_own(c, &owner, a);
    go_on(a);
}

void conn_answer_parts(struct conn *c, const char *more, struct base64_part *parts, size_t n)
{
    answer(c, NULL, more, parts, n);
}

void conn_answer_whole(struct conn *c, const char *type, const char *more, struct conn_whole *sound)
{
    struct base64_part part = {.sound = *sound};
    *sound = (struct conn_whole){.n = 0};
    answer(c, type, more, &part, 1);
}

void base64_part_put(struct base64_part *part, const char *text)
{
    wire_put(&part->text, text, strlen(text));
}

void conn_answer_base64(struct conn *c, const char *more, const char *name, struct conn_whole *sound,
    struct wire_out *members, json_t *json)
{
    struct base64_part parts[2] = {{.sound = *sound}, {.sound = {.n = 0}}};
    char *rest = json_text_write(json, JSON_COMPACT | JSON_REAL_PRECISION(9));
    json_decref(json);
    *sound = (struct conn_whole){.n = 0};
    base64_part_put(&parts[0], "{\"");
    base64_part_put(&parts[0], name);
    base64_part_put(&parts[0], "\":\"");
    base64_part_put(&parts[1], "\"");
    if (members) {
        base64_part_put(&parts[1], ",");
        wire_put(&parts[1].text, members->bytes, members->n);
        parts[1].text.failed |= members->failed;
        wire_fini(members);
    }
    if (rest) {
        base64_part_put(&parts[1], rest[1] == '}' ? "" : ",");
        base64_part_put(&parts[1], rest + 1); /* behind its bracket */
    }
    parts[1].text.failed |= !rest;
    memory_plain_free(rest);
    conn_answer_parts(c, more, parts, 2);
}
