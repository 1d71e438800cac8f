/* SPDX-License-Identifier: Apache-2.0
 * The owner of a connection that still takes its answer. */
#include "server/loop/conn/conn_base64.h"

#include <nettle/base64.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/minmax.h"

enum { CHUNK = 48 << 10 }; /* bytes of sound; a multiple of three, so that pieces of base64 join */

struct long_answer {
    struct conn *conn;
    struct server *server;
    struct wire_out sound;
    size_t at;
    char *rest; /* the JSON behind the sound */
};

static void long_answer_free(struct long_answer *a)
{
    a->server->unsent_bytes -= a->sound.n;
    wire_fini(&a->sound);
    memory_plain_free(a->rest);
    memory_free(a);
}

static void put_chunk(struct long_answer *a)
{
    char text[BASE64_ENCODE_RAW_LENGTH(CHUNK)];
    size_t n = min(a->sound.n - a->at, CHUNK);
    base64_encode_raw(text, n, a->sound.bytes + a->at);
    conn_piece(a->conn, text, BASE64_ENCODE_RAW_LENGTH(n));
    a->at += n;
}

static void go_on(struct long_answer *a)
{
    struct conn *c = a->conn;
    while (a->at < a->sound.n && conn_unsent(c) < LIMIT_UNSENT) {
        put_chunk(a);
    }
    if (a->at == a->sound.n) {
        conn_piece(c, "\"", 1);
        conn_piece(c, a->rest[1] == '}' ? "" : ",", a->rest[1] != '}');
        conn_piece(c, a->rest + 1, strlen(a->rest + 1)); /* behind its bracket */
        conn_finish(c, NULL);
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

void conn_answer_base64(
    struct conn *c, const char *more, const char *name, struct wire_out *sound, json_t *json)
{
    struct long_answer *a = memory_new(1, sizeof *a);
    char *rest = json ? json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(json);
    if (!a || !rest) {
        memory_free(a);
        memory_plain_free(rest);
        c->server->unsent_bytes -= sound->n;
        wire_fini(sound);
        conn_answer(c, 503, "application/json", "{}", 2);
        return;
    }
    *a = (struct long_answer){.conn = c, .server = c->server, .sound = *sound, .rest = rest};
    *sound = (struct wire_out){0};
    char begin[64];
    int n = snprintf(begin, sizeof begin, "{\"%s\":\"", name);
    size_t rest_n = strlen(rest + 1), comma = rest[1] != '}';
    conn_begin_whole(c, 200, "application/json", more,
        (size_t)n + BASE64_ENCODE_RAW_LENGTH(a->sound.n) + 1 + comma + rest_n);
    conn_piece(c, begin, (size_t)n);
    conn_own(c, &owner, a);
    go_on(a);
}
