/* SPDX-License-Identifier: Apache-2.0
 * The owner of a connection that still takes its answer. */
#include "server/loop/conn/conn_base64.h"

#include <nettle/base64.h>
#include <string.h>

#include "base/memory.h"
#include "base/minmax.h"

enum { CHUNK = 48 << 10 }; /* bytes of sound; a multiple of three, so that pieces of base64 join */

struct long_answer {
    struct conn *conn;
    struct server *server;
    size_t n, i; /* parts: all, and those that have been written */
    size_t at;   /* in the sound of part i, whose text has been written when `told` */
    bool told;
    struct base64_part parts[];
};

static void free_parts(struct server *s, struct base64_part *parts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        s->unsent_bytes -= parts[i].sound.n;
        wire_fini(&parts[i].text);
        wire_fini(&parts[i].sound);
    }
}

static void long_answer_free(struct long_answer *a)
{
    free_parts(a->server, a->parts, a->n);
    memory_free(a);
}

/* The text of the next part, or a piece of its sound. */
static void put_next(struct long_answer *a)
{
    const struct base64_part *part = &a->parts[a->i];
    char text[BASE64_ENCODE_RAW_LENGTH(CHUNK)];
    size_t n = min(part->sound.n - a->at, CHUNK);
    if (!a->told) {
        conn_piece(a->conn, part->text.bytes, part->text.n);
        a->told = true;
    } else if (n > 0) {
        base64_encode_raw(text, n, part->sound.bytes + a->at);
        conn_piece(a->conn, text, BASE64_ENCODE_RAW_LENGTH(n));
        a->at += n;
    } else {
        a->i++;
        a->at = 0;
        a->told = false;
    }
}

static void go_on(struct long_answer *a)
{
    while (a->i < a->n && conn_unsent(a->conn) < LIMIT_UNSENT) {
        put_next(a);
    }
    if (a->i == a->n) {
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

static const struct conn_owner owner = {on_gone, on_drained, NULL, NULL};

void conn_answer_parts(struct conn *c, const char *more, struct base64_part *parts, size_t n)
{
    struct long_answer *a = memory_new(1, sizeof *a + n * sizeof *parts);
    size_t bytes = 0;
    bool good = a != NULL;
    for (size_t i = 0; i < n; i++) {
        good = good && !parts[i].text.failed;
        bytes += parts[i].text.n + BASE64_ENCODE_RAW_LENGTH(parts[i].sound.n);
    }
    if (!good) {
        memory_free(a);
        free_parts(c->server, parts, n);
        conn_answer(c, 503, "application/json", "{}", 2);
        return;
    }
    a->conn = c;
    a->server = c->server;
    a->n = n;
    memcpy(a->parts, parts, n * sizeof *parts);
    conn_begin_whole(c, 200, "application/json", more, bytes);
    conn_own(c, &owner, a);
    go_on(a);
}

void base64_part_put(struct base64_part *part, const char *text)
{
    wire_put(&part->text, text, strlen(text));
}

void conn_answer_base64(
    struct conn *c, const char *more, const char *name, struct wire_out *sound, json_t *json)
{
    struct base64_part parts[2] = {{.sound = *sound}, {.sound = {0}}};
    char *rest = json ? json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(json);
    *sound = (struct wire_out){0};
    base64_part_put(&parts[0], "{\"");
    base64_part_put(&parts[0], name);
    base64_part_put(&parts[0], "\":\"");
    if (rest) {
        base64_part_put(&parts[1], rest[1] == '}' ? "\"" : "\",");
        base64_part_put(&parts[1], rest + 1); /* behind its bracket */
    }
    parts[1].text.failed |= !rest;
    memory_plain_free(rest);
    conn_answer_parts(c, more, parts, 2);
}
