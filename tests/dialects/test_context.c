/* SPDX-License-Identifier: Apache-2.0
 * A context alone: which text goes into which speech, how far sound runs ahead of hearing, when words are told, and how
 * much its connection holds. The speeches, what the connection has not taken and the clock are the test's own. */
#include "tests/server/happened.h"
#include "tests/server/posed_clock.h"

#include <stdlib.h>

#include "base/clock.h"
#include "server/dialects/context.h"

static struct server server;
static struct conn conn;

static void wait_for(double seconds)
{
    now_s += seconds;
    event_base_loop(server.base, EVLOOP_NONBLOCK);
}

static size_t unsent, counted;

size_t conn_unsent(const struct conn *c)
{
    assert_ptr_equal(c, &conn);
    return unsent;
}

void conn_count(struct conn *c)
{
    counted = c->owner_bytes;
}

/* ---- Speeches ---- */

struct speech {
    const struct speech_sink *sink;
    void *user;
    double made_s;
};
static struct speech *speech; /* that is spoken */
static bool is_full, fails_at_once;

struct speech *speech_start(struct server *s, const struct speech_request *request,
    const struct speech_sink *sink, void *user, struct refusal *refusal)
{
    assert_true(s == &server && request->account == conn.account && request->trace == &conn.trace);
    assert_true(request->id == conn.request_id && request->client == conn.address);
    assert_true(request->endpoint == METRICS_STREAM && request->read_at == clock_seconds());
    note("start%s%s|", request->patient ? " patient" : "",
        request->fields->sound.speed == 1 ? "" : " quick");
    if (is_full) {
        refuse(refusal, 503, NULL, "full");
        return NULL;
    }
    assert_null(speech);
    speech = test_calloc(1, sizeof *speech);
    *speech = (struct speech){sink, user, 0};
    return speech;
}

static void end_speech(const char *why_not, double audio_s)
{
    struct speech_end e = {.good = !why_not, .audio_s = audio_s};
    struct speech *ends = speech;
    if (why_not) {
        refuse(&e.refusal, 400, NULL, "%s", why_not);
    }
    speech = NULL;
    ends->sink->end(ends->user, &e);
    test_free(ends);
}

void speech_text(struct speech *p, const char *text, size_t n)
{
    assert_ptr_equal(p, speech);
    note("\"%.*s\"|", (int)n, text);
    if (fails_at_once) {
        end_speech("at once", 0);
    }
}

void speech_finish(struct speech *p)
{
    assert_ptr_equal(p, speech);
    note("finish|");
}

void speech_cancel(struct speech *p)
{
    if (p) {
        assert_ptr_equal(p, speech);
        note("cancel|");
        test_free(p);
        speech = NULL;
    }
}

static bool held;

void speech_hold(struct speech *p, bool holds)
{
    if (p && holds != held) {
        note(holds ? "hold|" : "let go|");
    }
    held = p ? holds : held;
}

double speech_seconds(const struct speech *p)
{
    return p->made_s;
}

/* The model has made so much more sound. */
static void make(double seconds)
{
    speech->made_s += seconds;
    speech->sink->bytes(speech->user, "abc", 3);
}

/* Words so far, from the first one on: each a letter, which begins then; how many of them are final. */
static void tell_words(const double *starts, size_t n, size_t n_final)
{
    struct speech_word all[8];
    const struct speech_words words = {0, all, n, true};
    for (size_t i = 0; i < n; i++) {
        all[i] = (struct speech_word){i, 1, starts[i], starts[i] + 0.1, 1, i < n_final, false};
    }
    speech->sink->words(speech->user, &words);
}

/* ---- Who asked ---- */

static struct context *context;
static void (*meanwhile)(void); /* what it does when it is told something */

static void nothing(void)
{
}

static void do_meanwhile(void)
{
    void (*does)(void) = meanwhile;
    meanwhile = nothing;
    does();
}

static void on_sound(void *user, const void *bytes, size_t n)
{
    assert_true(user == &conn && n == 3 && memcmp(bytes, "abc", 3) == 0);
    note("sound|");
    do_meanwhile();
}

static void on_piece(void *user, const struct context_piece *p)
{
    assert_ptr_equal(user, &conn);
    note("piece \"%.*s\" %g+%g tag %d%s|", (int)p->bytes, p->text ? p->text : "", p->from_s, p->seconds,
        p->tag, p->blank ? " blank" : "");
    do_meanwhile();
}

static void on_failed(void *user, const struct refusal *r)
{
    assert_ptr_equal(user, &conn);
    note("failed: %s|", r->message);
    do_meanwhile();
}

static void on_words(
    void *user, const struct context_piece *p, const struct speech_word *words, size_t n, bool next)
{
    assert_true(user == &conn && p->approximate);
    note("words");
    for (size_t i = 0; i < n; i++) {
        note(" %zu", words[i].at);
    }
    note(" of \"%.*s\"%s|", (int)p->bytes, p->text, next ? " and more" : "");
    do_meanwhile();
}

static void begin(double ahead_s)
{
    static const struct context_sink sink = {on_sound, on_piece, on_failed, on_words};
    struct fields fields = {.sound.speed = 1};
    now_s = 2000;
    happened[0] = 0;
    meanwhile = nothing;
    held = is_full = fails_at_once = false;
    unsent = 0;
    server = (struct server){.base = event_base_new()};
    assert_int_equal(event_base_priority_init(server.base, SERVER_PRIORITIES), 0);
    conn = (struct conn){.server = &server, .account = (struct account *)&server};
    context = context_new(&conn, &fields, ahead_s, &sink, &conn);
    assert_non_null(context);
}

static void end(void)
{
    context_free(context);
    assert_null(speech);
    assert_true(conn.owner_bytes == 0 && counted == 0);
    event_base_free(server.base);
}

static struct refusal refusal;

static void say(const char *text)
{
    assert_true(context_text(context, text, strlen(text), &refusal));
}

static void flush(int tag)
{
    assert_true(context_flush(context, tag, &refusal));
}

static void pieces_are_spoken_in_a_row(void **state)
{
    (void)state;
    begin(9);
    assert_true(context_is_idle(context) && !context_speaks(context) && !context_has_text(context));
    say("Hi ");
    EXPECT("start|\"Hi \"|");
    assert_true(!context_is_idle(context) && context_speaks(context) && context_has_text(context));
    say("you");
    EXPECT("\"you\"|");
    flush(7);
    EXPECT("finish|");
    assert_false(context_has_text(context)); /* the piece is over */
    say("And ");
    say("then");
    flush(8);
    flush(9);
    say("End");
    EXPECT("");
    end_speech(NULL, 1.5);
    EXPECT("piece \"Hi you\" 0+1.5 tag 7|start patient|\"And then\"|finish|");
    end_speech(NULL, 0.25);
    EXPECT("piece \"And then\" 1.5+0.25 tag 8|piece \"\" 1.75+0 tag 9 blank|start patient|\"End\"|");
    flush(10);
    EXPECT("finish|");
    end_speech(NULL, 2);
    EXPECT("piece \"End\" 1.75+2 tag 10|");
    assert_true(context_is_idle(context) && !context_speaks(context));
    say("It");
    end_speech(NULL, 1); /* before its text has */
    EXPECT("start patient|\"It\"|piece \"It\" 3.75+1 tag -1|");
    end();
}

static void white_space_is_not_spoken(void **state)
{
    (void)state;
    begin(9);
    flush(1);
    EXPECT("piece \"\" 0+0 tag 1 blank|");
    say(" \t\r\n\v\f");
    assert_true(!context_speaks(context) && !context_is_idle(context) && !context_has_text(context));
    flush(2);
    EXPECT("piece \" \t\r\n\v\f\" 0+0 tag 2 blank|");
    say(" ");
    say("");
    EXPECT("");
    say("x");
    EXPECT("start|\" x\"|");
    say(" ");
    EXPECT("\" \"|");
    assert_true(context_has_text(context));
    end();
}

static void what_was_not_flushed_is_dropped(void **state)
{
    (void)state;
    begin(9);
    context_drop_open(context);
    say("One");
    context_drop_open(context);
    EXPECT("start|\"One\"|cancel|");
    assert_true(context_is_idle(context));
    say("Two"), flush(1), say("Three");
    context_drop_open(context);
    EXPECT("start patient|\"Two\"|finish|");
    context_drop_open(context); /* what was flushed stays */
    EXPECT("");
    end_speech(NULL, 1);
    EXPECT("piece \"Two\" 0+1 tag 1|");
    assert_true(context_is_idle(context));
    end();
}

static void all_is_cleared(void **state)
{
    struct context_piece now;
    (void)state;
    begin(1);
    say("One"), flush(1), say("Two");
    assert_false(context_now(context, &now)); /* nothing has sounded */
    make(3);
    assert_true(context_now(context, &now));
    assert_true(now.bytes == 3 && memcmp(now.text, "One", 3) == 0 && now.seconds == 3 && now.tag == 1);
    EXPECT("start|\"One\"|finish|sound|hold|");
    context_clear(context);
    EXPECT("cancel|");
    assert_true(context_is_idle(context) && conn.owner_bytes == 0);
    assert_false(context_now(context, &now));
    say("Three");
    assert_false(context_now(context, &now)); /* what the last one had made is not this one's */
    make(1);                                  /* nothing is ahead any more */
    EXPECT("start patient|let go|\"Three\"|sound|");
    end();
}

static void a_failure_ends_what_waits(void **state)
{
    (void)state;
    begin(9);
    say("One"), flush(1), say("Two"), flush(2);
    make(1);
    happened[0] = 0;
    end_speech("no lane", 1);
    EXPECT("failed: no lane|");
    assert_true(context_is_idle(context) && conn.owner_bytes == 0);
    is_full = true;
    say("Three");
    EXPECT("start patient|failed: full|");
    assert_true(context_is_idle(context));
    is_full = false;
    fails_at_once = true;
    say(" "), flush(1);
    say("Four");
    EXPECT("piece \" \" 0+0 tag 1 blank|start patient|\"Four\"|failed: at once|");
    assert_true(context_is_idle(context));
    fails_at_once = false;
    context_speed(context, 2);
    say("Five");
    EXPECT("start patient quick|\"Five\"|");
    end();
}

static void speak_more(void)
{
    say("More"), flush(5);
}

static void free_it(void)
{
    context_free(context);
    context = NULL;
}

static void clear_it(void)
{
    context_clear(context);
}

/* Who is told something may say more, or end it all, at once. */
static void who_is_told_may_do_anything(void **state)
{
    static const double starts[] = {0, 1}, late[] = {7, 8};
    static void (*const ends[])(void) = {clear_it, free_it};
    (void)state;
    begin(9);
    meanwhile = speak_more;
    flush(1);
    EXPECT("piece \"\" 0+0 tag 1 blank|start|\"More\"|finish|");
    say("Next"), flush(2);
    meanwhile = speak_more;
    end_speech(NULL, 1);
    EXPECT("piece \"More\" 0+1 tag 5|start patient|\"Next\"|finish|");
    end_speech(NULL, 1);
    EXPECT("piece \"Next\" 1+1 tag 2|start patient|\"More\"|finish|");
    end();
    for (int i = 0; i < 2; i++) {
        begin(9); /* a blank piece, with another one behind it */
        say("One"), flush(1), say(" "), flush(2), say("Two");
        meanwhile = ends[i];
        end_speech(NULL, 1);
        EXPECT("start|\"One\"|finish|piece \"One\" 0+1 tag 1|");
        end();
        begin(1); /* a sound, with which too much would be ahead */
        say("One"), flush(1), say("Two");
        tell_words(starts, 2, 2);
        meanwhile = ends[i];
        make(5);
        EXPECT("start|\"One\"|finish|sound|cancel|");
        end();
        begin(1); /* words, of one that would be held then */
        say("One"), flush(1), say("Two");
        tell_words(starts, 2, 1);
        happened[0] = 0;
        make(0.5);
        EXPECT("sound|words 0 of \"One\" and more|");
        meanwhile = ends[i];
        tell_words(starts, 2, 2);
        EXPECT("words 1 of \"One\"|cancel|");
        end();
        begin(9); /* the last words, at the end */
        say("One"), flush(1), say("Two");
        make(0.5);
        tell_words(late, 2, 0);
        meanwhile = ends[i];
        end_speech(NULL, 1);
        EXPECT("start|\"One\"|finish|sound|words 0 of \"One\" and more|");
        end();
        begin(9);
        say("One");
        meanwhile = ends[i];
        end_speech("why", 0);
        EXPECT("start|\"One\"|failed: why|");
        end();
    }
}

static void sound_runs_ahead_by_so_much(void **state)
{
    (void)state;
    begin(2);
    say("One");
    make(1), make(1);
    EXPECT("start|\"One\"|sound|sound|"); /* so much may be ahead */
    make(0.25);
    EXPECT("sound|hold|");
    wait_for(1.125);
    make(0.125); /* it was on its way */
    EXPECT("sound|");
    wait_for(0.0625); /* one second less and a quarter have been heard soon */
    EXPECT("");
    wait_for(0.0625);
    EXPECT("let go|");
    make(0.8125); /* 1.125 were left */
    EXPECT("sound|");
    make(0.5625);
    EXPECT("sound|hold|");
    wait_for(1.4375);
    EXPECT("");
    wait_for(0.0625);
    EXPECT("let go|");
    wait_for(9); /* who has heard all has nothing ahead, and no debt */
    make(2);
    EXPECT("sound|");
    make(1);
    EXPECT("sound|hold|");
    flush(1);
    end_speech(NULL, 6); /* what is ahead of one piece is ahead of the next */
    say("Two");
    EXPECT("finish|piece \"One\" 0+6 tag 1|start patient|\"Two\"|");
    wait_for(2);
    EXPECT("let go|");
    end();
}

static void who_does_not_read_is_waited_for(void **state)
{
    (void)state;
    begin(2);
    say("One");
    unsent = LIMIT_UNSENT;
    make(0.5);
    EXPECT("start|\"One\"|sound|");
    unsent++;
    make(0.5);
    EXPECT("sound|hold|");
    make(1.5); /* and there is enough to hear, too */
    wait_for(0.5);
    context_hold(context, false); /* one of the two reasons stays */
    EXPECT("sound|");
    context_hold(context, true);
    wait_for(1); /* the other one */
    EXPECT("");
    context_hold(context, false);
    EXPECT("let go|");
    end();
}

static void words_are_told_before_they_are_heard(void **state)
{
    static const double starts[] = {0, 0.75, 1.5, 2.25, 3, 9};
    (void)state;
    begin(5);
    say("abcdef");
    tell_words(starts, 3, 1);
    EXPECT("start|\"abcdef\"|"); /* of no sound nothing is told */
    make(1);
    EXPECT("sound|words 0 of \"abcdef\" and more|");
    wait_for(0.25);
    tell_words(starts, 3, 1); /* up to half a second before it begins */
    EXPECT("");
    wait_for(0.0625);
    tell_words(starts, 3, 1);
    EXPECT("words 1 of \"abcdef\" and more|");
    wait_for(5);
    tell_words(starts, 3, 1); /* where the last one ends is not known */
    EXPECT("");
    tell_words(starts, 5, 4);
    EXPECT("words 2 3 of \"abcdef\" and more|");
    tell_words(starts, 6, 4);
    EXPECT("");
    make(7); /* 2 too much: held for 3 s, in which the next one begins */
    EXPECT("sound|hold|words 4 of \"abcdef\" and more|");
    tell_words(starts, 6, 6);
    EXPECT("words 5 of \"abcdef\"|");
    flush(1);
    end_speech(NULL, 8);
    EXPECT("finish|piece \"abcdef\" 0+8 tag 1|");
    say("gh"), flush(2);
    tell_words(starts, 2, 2); /* the next piece has its own */
    EXPECT("start patient|\"gh\"|finish|");
    end_speech(NULL, 1); /* without a sound */
    EXPECT("piece \"gh\" 8+1 tag 2|");
    end();
}

static void text_that_waits_is_counted(void **state)
{
    enum { PIECE = 384 };
    static char text[LIMIT_WS_TEXT + 1];
    (void)state;
    memset(text, 'a', sizeof text);
    begin(9);
    assert_false(context_text(context, text, LIMIT_WS_TEXT + 1, &refusal));
    assert_true(refusal.status == 400 && strcmp(refusal.param, "text") == 0);
    assert_string_equal(refusal.message, "a message holds at most 128 KiB of text");
    assert_true(conn.owner_bytes == 0 && context_is_idle(context));
    assert_true(context_text(context, text, LIMIT_WS_TEXT, &refusal));
    assert_int_equal(conn.owner_bytes, PIECE + LIMIT_WS_TEXT);
    assert_int_equal(counted, PIECE + LIMIT_WS_TEXT);
    flush(1);
    say("One"), say("two");
    assert_int_equal(counted, 2 * PIECE + LIMIT_WS_TEXT + 6);
    end_speech(NULL, 1);
    assert_int_equal(counted, PIECE + 6);
    /* Its connection has others. */
    conn.owner_bytes += LIMIT_WS_SESSION - PIECE - 9;
    assert_false(context_text(context, "four", 4, &refusal));
    assert_true(refusal.status == 400 && strcmp(refusal.param, "text") == 0);
    assert_string_equal(refusal.message, "more than 1 MiB of text waits on this connection");
    say("six");
    flush(2); /* the piece is there already */
    assert_false(context_flush(context, 3, &refusal));
    assert_string_equal(refusal.message, "more than 1 MiB of text waits on this connection");
    conn.owner_bytes -= PIECE - 1;
    assert_false(context_flush(context, 3, &refusal));
    conn.owner_bytes--;
    flush(3);
    assert_int_equal(counted, LIMIT_WS_SESSION);
    conn.owner_bytes -= LIMIT_WS_SESSION - 2 * PIECE - 9;
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_spoken_in_a_row),
        cmocka_unit_test(white_space_is_not_spoken),
        cmocka_unit_test(what_was_not_flushed_is_dropped),
        cmocka_unit_test(all_is_cleared),
        cmocka_unit_test(a_failure_ends_what_waits),
        cmocka_unit_test(who_is_told_may_do_anything),
        cmocka_unit_test(sound_runs_ahead_by_so_much),
        cmocka_unit_test(who_does_not_read_is_waited_for),
        cmocka_unit_test(words_are_told_before_they_are_heard),
        cmocka_unit_test(text_that_waits_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
