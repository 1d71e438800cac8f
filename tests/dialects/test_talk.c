/* SPDX-License-Identifier: Apache-2.0
 * A WebSocket of another service by itself: how many contexts it has, what of a text goes to them and when it is
 * flushed, and how long the connection lives. Contexts, the connection and the clock are the test's own. */
#include "tests/server/happened.h"
#include "tests/server/posed_clock.h"

#include "base/memory.h"
#include "server/dialects/talk.h"

enum { AWAKE_S = 20, MOST_CONTEXTS = 16 };

static struct server server;
static struct conn conn;
static struct websocket websocket;
static const struct conn_owner *owner;
static struct talk *talk;

/* ---- The connection ---- */

void conn_own(struct conn *c, const struct conn_owner *told, void *user)
{
    assert_ptr_equal(c, &conn);
    owner = told;
    c->user = user;
}

void conn_upgrade(struct conn *c, const char *accept, size_t most)
{
    note("upgrade %s %zu|", accept, most);
    c->socket = server.draining ? NULL : &websocket; /* NULL: memory is out */
}

void conn_refuse(struct conn *c, const struct refusal *r)
{
    (void)c;
    note("refuse %d|", r->status);
}

void conn_starve(struct conn *c)
{
    (void)c;
    note("starve|");
}

void conn_close_socket(struct conn *c, int code, const char *why)
{
    assert_ptr_equal(c, &conn);
    note("close %d %s|", code, why);
}

void conn_send(struct conn *c, enum websocket_kind kind, const void *bytes, size_t n)
{
    assert_true(c == &conn && kind == WEBSOCKET_BINARY);
    note("sound %.*s|", (int)n, (const char *)bytes);
}

void conn_send_json(struct conn *c, json_t *json)
{
    assert_ptr_equal(c, &conn);
    note("send %s|", json_string_value(json_object_get(json, "say")));
    json_decref(json);
}

/* ---- Contexts ---- */

struct context {
    const struct context_sink *sink;
    void *user;
    bool speaks, has_text;
};
static bool refuses, has_no_memory;

struct context *context_new(
    struct conn *c, struct fields *fields, double ahead_s, const struct context_sink *sink, void *user)
{
    assert_true(c == &conn && ahead_s == 6);
    fields_fini(fields);
    struct context *x = has_no_memory ? NULL : test_calloc(1, sizeof *x);
    if (x) {
        *x = (struct context){.sink = sink, .user = user};
    }
    return x;
}

void context_free(struct context *x)
{
    note("free|");
    test_free(x);
}

bool context_text(struct context *x, const char *text, size_t n, struct refusal *r)
{
    note("\"%.*s\"|", (int)n, text);
    x->has_text = true;
    return refuses ? refuse(r, 400, "text", "too much text") : true;
}

bool context_flush(struct context *x, int tag, struct refusal *r)
{
    note("flush %d|", tag);
    x->speaks = x->speaks || x->has_text;
    x->has_text = false;
    return refuses ? refuse(r, 503, NULL, "too many flushes") : true;
}

void context_drop_open(struct context *x)
{
    note("drop|");
    x->has_text = false;
}

void context_clear(struct context *x)
{
    note("clear|");
    x->has_text = x->speaks = false;
}

void context_hold(struct context *x, bool held)
{
    (void)x;
    note(held ? "hold|" : "let go|");
}

bool context_speaks(const struct context *x)
{
    return x->speaks;
}

bool context_is_idle(const struct context *x)
{
    return !x->speaks && !x->has_text;
}

bool context_has_text(const struct context *x)
{
    return x->has_text;
}

/* ---- The dialect ---- */

static void (*meanwhile)(
    void); /* what it does when it is told of a piece, or of an end; NULL: nothing */

static void on_message(struct talk *x, const json_t *message)
{
    assert_true(x == talk && json_object_size(message) == 1);
    note("message|");
}

static void on_sound(struct talk_context *t, const void *bytes, size_t n)
{
    talk_send_sound(t->talk, bytes, n);
}

static void on_piece(struct talk_context *t, const struct context_piece *piece)
{
    note("piece %d of '%s' at %zu|", piece->tag, t->name, t->spoken.told);
    if (meanwhile) {
        meanwhile();
    }
}

static void on_ended(struct talk_context *t)
{
    note("'%s' ended|", t->name);
    if (meanwhile) {
        meanwhile();
    }
}

static void on_failed(struct talk *x, const struct refusal *r, const char *name)
{
    assert_ptr_equal(x, talk);
    note("'%s' failed: %d %s|", name, r->status, r->message);
}

static void on_gone(struct talk *x)
{
    assert_ptr_equal(x, talk);
    note("gone|");
}

static void on_words(struct talk_context *t, const struct context_piece *piece,
    const struct speech_word *words, size_t n, bool next)
{
    (void)words;
    note("%zu words%s of '%s' at %g|", n, next ? " and more" : "", t->name, piece->from_s);
}

static const struct talk_dialect dialect = {
    on_message, on_sound, on_piece, on_ended, on_failed, on_gone, on_words};

/* ---- Its life ---- */

static void open_talk(void)
{
    now_s = 2048;
    happened[0] = 0;
    refuses = has_no_memory = false;
    meanwhile = NULL;
    server = (struct server){.base = event_base_new()};
    assert_int_equal(event_base_priority_init(server.base, SERVER_PRIORITIES), 0);
    conn = (struct conn){.server = &server};
    talk = talk_open(&conn, "key", &dialect, AWAKE_S, NULL);
    assert_non_null(talk);
    EXPECT("upgrade key 1048576|");
    assert_true(conn.deadline == now_s + AWAKE_S);
}

static int n_timers(void)
{
    return event_base_get_num_events(server.base, EVENT_BASE_COUNT_ADDED);
}

static void leave(const char *words)
{
    owner->gone(conn.user);
    EXPECT(words);
    assert_int_equal(n_timers(), 0);
    event_base_free(server.base);
}

static void wait_for(double seconds)
{
    now_s += seconds;
    event_base_loop(server.base, EVLOOP_NONBLOCK);
}

static struct refusal refusal;

static struct talk_context *begin(const char *name)
{
    struct fields fields = {.object = json_object()};
    refusal = (struct refusal){.status = 0};
    struct talk_context *t = talk_begin(talk, name, &fields, 6, &refusal);
    assert_true(!fields.object && (t != NULL) == (refusal.status == 0));
    return t;
}

static void say(struct talk_context *t, const char *text)
{
    assert_int_equal(talk_text(t, text, strlen(text), &refusal), !refuses);
}

static void receive(enum websocket_kind kind, const char *text)
{
    const struct websocket_event event = {
        .kind = kind, .data = (uint8_t *)(uintptr_t)text, .bytes = strlen(text)};
    owner->message(conn.user, &event);
}

static void end_piece(struct talk_context *t, int tag)
{
    const struct context_piece piece = {.text = "x", .bytes = 1, .tag = tag};
    t->speaks->speaks = t->speaks->has_text;
    t->speaks->sink->piece(t, &piece);
}

/* ---- What is said on it ---- */

static void messages_are_objects(void **state)
{
    static const struct {
        const char *text, *told;
    } cases[] = {{"{\"a\":1}", "message|"}, {"[]", "'' failed: 400 a message must be a JSON object|"},
        {"{", "'' failed: 400 the message: not usable JSON: line 1, column 1: string or '}' expected "
              "near end of file|"}};
    (void)state;
    open_talk();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        now_s += 1;
        receive(WEBSOCKET_TEXT, cases[i].text);
        EXPECT(cases[i].told);
        assert_true(conn.deadline == now_s + AWAKE_S); /* whatever it was */
        assert_int_equal(server.metrics.rejected[METRICS_INVALID], i);
    }
    receive(WEBSOCKET_BINARY, "{\"a\":1}");
    EXPECT("close 1003 only text messages are known here|");
    talk->closing = true; /* it has said all */
    receive(WEBSOCKET_TEXT, "{");
    EXPECT("");
    struct refusal r = {.status = 499};
    for (; r.status <= 500; r.status++) { /* our own faults are not its */
        talk_fail(talk, &r, "");
        assert_int_equal(server.metrics.rejected[METRICS_INVALID], 3);
    }
    happened[0] = 0;
    leave("gone|");
}

static void it_has_so_many_contexts(void **state)
{
    struct talk_context *all[MOST_CONTEXTS];
    char name[200];
    (void)state;
    open_talk();
    for (int i = 0; i < MOST_CONTEXTS; i++) {
        snprintf(name, sizeof name, "%d", i);
        all[i] = begin(name);
        assert_ptr_equal(talk_find(talk, name), all[i]);
    }
    assert_null(begin("more"));
    assert_true(refusal.status == 429 && strcmp(refusal.param, "context_id") == 0);
    assert_string_equal(refusal.message, "a connection has at most 16 contexts at once");
    assert_null(talk_find(talk, "1x"));
    talk_drop(all[3]);
    EXPECT("free|");
    assert_null(talk_find(talk, "3"));
    has_no_memory = true;
    assert_null(begin("none"));
    assert_true(refusal.status == 503 && strcmp(refusal.message, "out of memory") == 0);
    has_no_memory = false;
    memset(name, 'n', sizeof name), name[128] = 0;
    assert_ptr_equal(talk_find(talk, name), NULL);
    all[3] = begin(name);
    assert_ptr_equal(talk_find(talk, name), all[3]); /* of 128 bytes all count */
    assert_null(begin("more"));
    leave("free|free|free|free|free|free|free|free|free|free|free|free|free|free|free|free|gone|");
}

/* White space in front of the first word is no text, markup nowhere is. */
static void text_goes_to_its_context(void **state)
{
    (void)state;
    open_talk();
    struct talk_context *t = begin("a");
    assert_false(talk_has_text(t));
    say(t, ""), say(t, " \t\r\n");
    EXPECT("");
    assert_int_equal(n_timers(), 0);
    say(t, " \n Hi");
    EXPECT("\"Hi\"|");
    say(t, "  you <b");
    EXPECT("\"  you \"|");
    say(t, ">now");
    EXPECT("\"now\"|");
    talk_flush(t, 7);
    EXPECT("flush 7|");
    say(t, " <");
    assert_true(talk_has_text(t)); /* it may become a word */
    say(t, " ");
    EXPECT("\"< \"|");
    say(t, "a<b");
    talk_flush(t, 8); /* it was no markup */
    EXPECT("\"a\"|\"<b\"|flush 8|");
    say(t, "b<c");
    t->spoken.told = 3;
    talk_clear(t);
    assert_true(t->markup.n_held == 0 && t->spoken.told == 0 && !talk_has_text(t));
    EXPECT("\"b\"|clear|");
    refuses = true;
    say(t, "much");
    assert_string_equal(refusal.message, "too much text");
    EXPECT("\"much\"|");
    t->markup.held[0] = '<', t->markup.n_held = 1;
    talk_flush(t, 9);
    EXPECT("\"<\"|'a' failed: 400 too much text|flush 9|'a' failed: 503 too many flushes|");
    leave("free|gone|");
}

/* A lane is not kept for text that does not come. */
static void text_is_flushed_after_a_while(void **state)
{
    (void)state;
    open_talk();
    struct talk_context *t = begin("a");
    say(t, "One ");
    wait_for(29.875);
    EXPECT("\"One \"|");
    say(t, "two ");
    wait_for(29.875);
    EXPECT("\"two \"|");
    wait_for(0.25);
    EXPECT("flush 0|");
    wait_for(100);
    EXPECT(""); /* once */
    say(t, "Three");
    talk_flush_after(t, 2.5); /* sooner, as its client wishes */
    wait_for(2.375);
    EXPECT("\"Three\"|");
    wait_for(0.25);
    EXPECT("flush 0|");
    say(t, "Four");
    talk_flush_after(t, -1); /* or not at all */
    assert_int_equal(n_timers(), 0);
    talk_flush_after(t, 0);
    assert_int_equal(n_timers(), 1);
    wait_for(0.125);
    EXPECT("\"Four\"|flush 0|");
    refuses = true;
    say(t, "Five"); /* is not taken */
    assert_int_equal(n_timers(), 0);
    refuses = false;
    say(t, "Six");
    talk_flush(t, 4);
    wait_for(60); /* there is nothing that could be flushed */
    EXPECT("\"Five\"|\"Six\"|flush 4|");
    say(t, "Seven");
    talk_drop(t);
    EXPECT("\"Seven\"|free|");
    assert_int_equal(n_timers(), 0);
    leave("gone|");
}

/* ---- Ends ---- */

static struct talk_context *first, *second;

static void a_context_ends_when_all_is_spoken(void **state)
{
    (void)state;
    open_talk();
    first = begin("a"), second = begin("b");
    say(first, "Hi");
    talk_end(first);
    assert_true(first->closing);
    EXPECT("\"Hi\"|flush 0|");
    end_piece(first, 0);
    EXPECT("piece 0 of 'a' at 0|'a' ended|free|");
    assert_null(talk_find(talk, "a"));
    say(second, "<"); /* may be a word */
    talk_end(second);
    EXPECT("\"<\"|flush 0|");
    first = begin("c");
    talk_end(first); /* has nothing to say */
    EXPECT("drop|'c' ended|free|");
    first = begin("d");
    first->speaks->speaks = true;
    talk_end(first); /* what was flushed is spoken first */
    EXPECT("drop|");
    talk->closing = true;
    end_piece(first, 3);
    EXPECT("piece 3 of 'd' at 0|'d' ended|free|");
    end_piece(second, 0); /* the last one closes the connection */
    EXPECT("piece 0 of 'b' at 0|'b' ended|free|close 1000 |");
    leave("gone|");
}

static void a_connection_closes_behind_its_contexts(void **state)
{
    (void)state;
    open_talk();
    talk_close(talk); /* without any */
    EXPECT("close 1000 |");
    leave("gone|");
    open_talk();
    first = begin("a"), second = begin("b");
    begin("c");
    first->speaks->speaks = second->speaks->speaks = true;
    now_s += 5;
    owner->idle(conn.user); /* too long without a word: the same */
    EXPECT("drop|drop|drop|'c' ended|free|");
    assert_true(talk->closing && first->closing && second->closing);
    assert_true(conn.deadline == now_s + AWAKE_S);
    talk_close(talk); /* once more */
    EXPECT("");
    server.draining = true;
    end_piece(first, 0);
    EXPECT("piece 0 of 'a' at 0|'a' ended|free|");
    second->speaks->sink->failed(second, &(struct refusal){.status = 503, .message = "why"});
    EXPECT("free|'b' failed: 503 why|close 1001 |"); /* the server goes */
    assert_int_equal(server.metrics.rejected[METRICS_INVALID], 0);
    server.draining = false;
    leave("gone|");
}

static void go(void)
{
    meanwhile = NULL;
    owner->gone(conn.user);
}

static void drop_first(void)
{
    meanwhile = NULL;
    talk_drop(first);
    talk_drop(first);
}

/* Who has gone in the middle of a call is told nothing more, and what was said to it then does nothing. */
static void it_may_go_at_any_time(void **state)
{
    struct fields fields = {.object = NULL};
    (void)state;
    open_talk();
    first = begin("a");
    say(first, "Hi <");
    talk->n_inside++; /* somebody still works on it */
    happened[0] = 0;
    owner->gone(conn.user);
    EXPECT("free|");
    say(first, "you");
    talk_flush(first, 1), talk_flush_after(first, 1), talk_clear(first), talk_end(first);
    talk_send(talk, json_pack("{s:s}", "say", "x"));
    talk_send_sound(talk, "x", 1);
    talk_fail(talk, &(struct refusal){.status = 400}, "");
    talk_hang_up(talk, 1000, "");
    talk_close(talk);
    assert_false(talk_has_text(first));
    assert_null(talk_begin(talk, "b", &fields, 6, &refusal));
    EXPECT("");
    assert_int_equal(server.metrics.rejected[METRICS_INVALID], 0);
    talk->n_inside--;
    leave("gone|"); /* as the last call returns */
    open_talk();
    first = begin("a");
    say(first, "Hi"), talk_end(first);
    happened[0] = 0;
    meanwhile = go;
    end_piece(first, 0);
    EXPECT("piece 0 of 'a' at 0|free|gone|");
    event_base_free(server.base);
    open_talk();
    first = begin("a");
    say(first, "Hi"), talk_end(first);
    happened[0] = 0;
    meanwhile = drop_first;
    end_piece(first, 0);
    EXPECT("piece 0 of 'a' at 0|free|");
    leave("gone|");
}

/* ---- What comes back ---- */

static void what_comes_back_goes_to_the_client(void **state)
{
    const struct context_piece piece = {.from_s = 2.5};
    (void)state;
    open_talk();
    first = begin("a"), second = begin("b");
    now_s += 3;
    first->speaks->sink->sound(first, "abc", 3);
    EXPECT("sound abc|");
    assert_true(conn.deadline == now_s + AWAKE_S); /* who is told something is awake */
    now_s += 3;
    first->spoken.told = 5;
    end_piece(first, 2);
    EXPECT("piece 2 of 'a' at 5|"); /* it has been told up to there; the next one begins anew */
    assert_true(first->spoken.told == 0 && conn.deadline == now_s + AWAKE_S);
    second->speaks->sink->words(second, &piece, NULL, 3, true);
    EXPECT("3 words and more of 'b' at 2.5|");
    assert_false(owner->speaks(conn.user));
    second->speaks->speaks = true;
    assert_true(owner->speaks(conn.user));
    owner->drained(conn.user);
    EXPECT("let go|let go|");
    second->speaks->sink->failed(second, &(struct refusal){.status = 404, .message = "why"});
    EXPECT("free|'b' failed: 404 why|");
    assert_int_equal(server.metrics.rejected[METRICS_INVALID], 1);
    assert_null(talk_find(talk, "b"));
    talk_send(talk, json_pack("{s:s}", "say", "x"));
    EXPECT("send x|");
    leave("free|gone|");
}

/* Memory that was out as the client was answered has told it so. */
static void it_is_not_opened_in_vain(void **state)
{
    (void)state;
    open_talk();
    leave("gone|");
    server = (struct server){.draining = true};
    conn = (struct conn){.server = &server};
    assert_null(talk_open(&conn, "key", &dialect, AWAKE_S, memory_new(1, 8)));
    EXPECT("upgrade key 1048576|");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_are_objects),
        cmocka_unit_test(it_has_so_many_contexts),
        cmocka_unit_test(text_goes_to_its_context),
        cmocka_unit_test(text_is_flushed_after_a_while),
        cmocka_unit_test(a_context_ends_when_all_is_spoken),
        cmocka_unit_test(a_connection_closes_behind_its_contexts),
        cmocka_unit_test(it_may_go_at_any_time),
        cmocka_unit_test(what_comes_back_goes_to_the_client),
        cmocka_unit_test(it_is_not_opened_in_vain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
