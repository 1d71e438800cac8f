/* SPDX-License-Identifier: Apache-2.0
 * Sounds that are answered whole: where they are kept, what is too much, and that they arrive as they were. */
#include <stdio.h>
#include <stdlib.h>

#include "base/minmax.h"
#include "server/loop/conn/conn_base64.h"
#include "server/loop/jobs.h"
#include "tests/server/posed_conns.h"

enum { MIB = 1 << 20, MOST = 12 * MIB };

static uint8_t sound[MOST], got[2 * MOST];
static struct refusal r;

/* Bytes that tell where they stand. */
static void build(int most_files)
{
    begin();
    s.jobs = jobs_new(s.base, 1);
    assert_non_null(s.jobs);
    s.most_files = most_files;
    for (size_t i = 0; i < MOST; i++) {
        sound[i] = (uint8_t)((i * 2654435761u) >> 13);
    }
    r = (struct refusal){.status = 0};
}

static void finish(void)
{
    jobs_free(s.jobs);
    s.jobs = NULL;
    end();
    assert_true(s.unsent_bytes == 0 && s.filed_bytes == 0 && s.n_files == 0);
}

static void put_all(struct conn_whole *w, size_t n, size_t piece)
{
    for (size_t at = 0; at < n; at += piece) {
        assert_true(conn_whole_put(w, sound + at, min(piece, n - at), &r));
        assert_int_equal(w->n, min(at + piece, n));
    }
}

/* ---- Where they are ---- */

static void what_memory_does_not_take_is_in_a_file(void **state)
{
    static const size_t sizes[] = {0, 1, LIMIT_WHOLE, LIMIT_WHOLE + 1, MOST}, piece = 700001;
    static const struct {
        size_t at, n;
    } takes[] = {{0, 10}, {5, 1}, {LIMIT_WHOLE - 5, 10}, {LIMIT_WHOLE - 1, 1}, {LIMIT_WHOLE, 1},
        {LIMIT_WHOLE + 3, 1000}, {0, LIMIT_WHOLE + 7}, {6999999, 2000000}};
    struct conn_whole w;
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        build(1);
        const size_t n = sizes[i];
        assert_true(conn_whole_begin(&w, &s, 0, &r));
        put_all(&w, n, piece);
        assert_int_equal(w.has_file, n > LIMIT_WHOLE);
        assert_int_equal(s.n_files, n > LIMIT_WHOLE);
        assert_int_equal(s.unsent_bytes, w.memory.n);
        assert_int_equal(s.filed_bytes, n - w.memory.n);
        assert_true(
            w.memory.n <= LIMIT_WHOLE && (n <= LIMIT_WHOLE || w.memory.n > LIMIT_WHOLE - piece));
        for (size_t k = 0; k < sizeof takes / sizeof *takes; k++) {
            if (takes[k].at + takes[k].n <= n) {
                assert_true(conn_whole_take(&w, takes[k].at, got, takes[k].n));
                assert_memory_equal(got, sound + takes[k].at, takes[k].n);
            }
        }
        if (w.has_file) { /* it has lost what it had */
            assert_int_equal(ftruncate(w.file, 10), 0);
            assert_true(conn_whole_take(&w, w.memory.n, got, 10));
            assert_false(conn_whole_take(&w, w.memory.n, got, 11));
        }
        conn_whole_fini(&w);
        assert_true(w.n == 0 && !w.server);
        conn_whole_fini(&w);
        finish();
    }
}

/* Where the folder for temporary files knows none without a name, the name is taken away at once; where that is not
 * there at all, memory takes what it has. */
static void a_file_never_has_a_name_for_long(void **state)
{
    struct conn_whole w;
    (void)state;
    for (int i = 0; i < 2; i++) {
        setenv("TMPDIR", i ? "no/folder" : support_folder(), 1);
        build(1);
        support_fail_at(SUPPORT_OPEN, 1);
        assert_true(conn_whole_begin(&w, &s, MOST, &r));
        assert_true(support_failed());
        support_fail_off();
        assert_true(w.has_file == (i == 0) && s.n_files == (i == 0));
        assert_int_equal(support_count_files(support_folder()), 0);
        put_all(&w, MOST, MIB);
        assert_true(conn_whole_take(&w, MOST - 10, got, 10));
        assert_memory_equal(got, sound + MOST - 10, 10);
        conn_whole_fini(&w);
        finish();
    }
    unsetenv("TMPDIR");
}

/* ---- What is too much ---- */

/* What is there stays, and no advice is given: neither files nor others are the reason. */
static void memory_may_lack(void **state)
{
    struct conn_whole w;
    (void)state;
    build(0);
    assert_true(conn_whole_begin(&w, &s, 0, &r));
    assert_true(conn_whole_put(&w, sound, 100, &r));
    support_fail_at(SUPPORT_MALLOC, 1);
    assert_false(conn_whole_put(&w, sound, MIB, &r));
    support_fail_off();
    assert_true(r.status == 503 && r.retry_ms == 0 && !r.param[0]);
    assert_string_equal(r.message, "out of memory");
    assert_true(w.n == 100 && s.unsent_bytes == 100);
    conn_whole_fini(&w);
    finish();
}

static void expect_no_room(bool good)
{
    assert_false(good);
    assert_true(r.status == 503 && r.retry_ms == RETRY_MS && strcmp(r.param, "stream") == 0);
}

/* Of a long one that is expected: a file, or memory for all of it. */
static void what_has_no_room_is_not_begun(void **state)
{
    static const struct {
        int most_files;
        size_t unsent, filed;
        double expected;
        bool good, has_file;
    } cases[] = {{0, LIMIT_UNSENT_ALL, 0, LIMIT_WHOLE, true, false},
        {0, LIMIT_UNSENT_ALL, 0, LIMIT_WHOLE + 1, false, false},
        {1, LIMIT_UNSENT_ALL, 0, LIMIT_WHOLE + 1, true, true},
        {0, LIMIT_UNSENT_ALL - 9 * MIB, 0, 9 * MIB, true, false},
        {0, LIMIT_UNSENT_ALL - 9 * MIB, 0, 9 * MIB + 1, false, false},
        {1, LIMIT_UNSENT_ALL, (size_t)8191 * MIB, 9 * MIB, false, false},
        {1, LIMIT_UNSENT_ALL, (size_t)8183 * MIB, 9 * MIB, true, true},
        {1, LIMIT_UNSENT_ALL, 0, 1e18, false, false}};
    struct conn_whole w;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        build(cases[i].most_files);
        s.unsent_bytes = cases[i].unsent;
        s.filed_bytes = cases[i].filed;
        const bool good = conn_whole_begin(&w, &s, cases[i].expected, &r);
        if (good != cases[i].good || w.has_file != cases[i].has_file) {
            fail_msg("row %zu: %d, %d", i, good, w.has_file);
        }
        if (!good) {
            expect_no_room(good);
        }
        conn_whole_fini(&w);
        s.unsent_bytes -= cases[i].unsent;
        s.filed_bytes -= cases[i].filed;
        finish();
    }
}

/* Others have all memory: the first MiB is let in, the rest goes to a file; without one it is refused. */
static void others_that_have_all_memory_leave_little(void **state)
{
    struct conn_whole w;
    (void)state;
    for (int most_files = 0; most_files < 2; most_files++) {
        build(most_files);
        s.unsent_bytes = LIMIT_UNSENT_ALL;
        assert_true(conn_whole_begin(&w, &s, 0, &r));
        assert_true(conn_whole_put(&w, sound, LIMIT_WHOLE_SMALL, &r) && !w.has_file);
        const bool good = conn_whole_put(&w, sound + LIMIT_WHOLE_SMALL, 1, &r);
        if (most_files > 0) {
            assert_true(good && w.has_file && w.n == LIMIT_WHOLE_SMALL + 1);
            s.filed_bytes += LIMIT_FILED - 2; /* of others */
            assert_true(conn_whole_put(&w, sound + w.n, 1, &r));
            expect_no_room(conn_whole_put(&w, sound + w.n, 1, &r));
            s.filed_bytes -= LIMIT_FILED - 2;
        } else {
            expect_no_room(good);
        }
        conn_whole_fini(&w);
        s.unsent_bytes -= LIMIT_UNSENT_ALL;
        finish();
    }
    build(0); /* memory that is free takes what no file does */
    assert_true(conn_whole_begin(&w, &s, 0, &r));
    put_all(&w, MOST, MIB);
    assert_true(!w.has_file && w.memory.n == MOST && s.unsent_bytes == MOST);
    conn_whole_fini(&w);
    finish();
}

static void what_is_kept_beside_it_counts(void **state)
{
    struct conn_whole w;
    (void)state;
    build(0);
    assert_true(conn_whole_begin(&w, &s, 0, &r));
    put_all(&w, 100, 100);
    assert_true(conn_whole_beside(&w, 5000, &r) && s.unsent_bytes == 5100);
    assert_true(conn_whole_beside(&w, 3000, &r) && s.unsent_bytes == 3100);
    s.unsent_bytes += LIMIT_UNSENT_ALL;
    assert_true(conn_whole_beside(&w, LIMIT_WHOLE_SMALL, &r));
    assert_int_equal(s.unsent_bytes, LIMIT_UNSENT_ALL + 100 + LIMIT_WHOLE_SMALL);
    expect_no_room(conn_whole_beside(&w, LIMIT_WHOLE_SMALL + 1, &r));
    assert_int_equal(w.beside, LIMIT_WHOLE_SMALL);
    s.unsent_bytes -= LIMIT_UNSENT_ALL;
    assert_true(conn_whole_beside(&w, 2 * LIMIT_WHOLE_SMALL, &r));
    s.unsent_bytes += LIMIT_UNSENT_ALL; /* less than before is no more for the others */
    assert_true(conn_whole_beside(&w, 2 * LIMIT_WHOLE_SMALL - 1, &r));
    s.unsent_bytes -= LIMIT_UNSENT_ALL;
    conn_whole_fini(&w);
    finish();
}

/* ---- On their way ---- */

static size_t n_got;

static struct client ask(void)
{
    struct client c = come("10.0.0.1");
    SAY(&c, ASKS), turn();
    assert_int_equal(c.conn->state, CONN_ANSWER);
    n_got = 0;
    return c;
}

/* Until nothing more comes. True: the connection has ended. */
static bool take_answer(const struct client *c)
{
    for (int i = 0; i < 3; i++) {
        for (ssize_t n; (n = recv(c->socket, got + n_got, sizeof got - n_got, 0)) != -1; i = 0) {
            if (n == 0) {
                return true;
            }
            n_got += (size_t)n;
            turn();
        }
        turn();
    }
    return false;
}

/* The body, whose length the head has told; *n is its length. */
static const char *body_of_answer(size_t *n)
{
    const char *end = memmem(got, n_got, "\r\n\r\n", 4),
               *length = strstr((char *)got, "Content-Length: ");
    assert_true(end && length && length < end);
    *n = n_got - (size_t)(end + 4 - (const char *)got);
    assert_int_equal(*n, strtoul(length + 16, NULL, 10));
    return end + 4;
}

static void begin_sound(struct conn_whole *w, size_t n)
{
    assert_true(conn_whole_begin(w, &s, 0, &r));
    put_all(w, n, 500000);
}

static void a_sound_arrives_as_it_was(void **state)
{
    static const size_t sizes[] = {1, 48 << 10, (48 << 10) + 1, MOST};
    struct conn_whole w;
    size_t n;
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        build(1);
        struct client c = ask();
        begin_sound(&w, sizes[i]);
        conn_answer_whole(c.conn, "audio/x", "More: 1\r\n", &w);
        assert_true(w.n == 0 && !w.has_file); /* is the answer's now */
        if (sizes[i] == MOST) {               /* no more than the client takes is got ready for it */
            assert_true(conn_unsent(c.conn) < 2 * LIMIT_UNSENT && c.conn->state == CONN_ANSWER);
        } else { /* what is little leaves with its head */
            assert_true(conn_unsent(c.conn) > sizes[i] && c.conn->state == CONN_HEAD);
        }
        assert_false(take_answer(&c));
        const char *body = body_of_answer(&n);
        assert_int_equal(n, sizes[i]);
        assert_memory_equal(body, sound, n);
        assert_true(
            strstr((char *)got, "Content-Type: audio/x\r\n") && strstr((char *)got, "More: 1\r\n"));
        assert_int_equal(c.conn->state, CONN_HEAD);
        assert_true(s.unsent_bytes == 0 && s.filed_bytes == 0);
        close(c.socket);
        finish();
    }
}

/* RFC 4648. Returns how many letters. */
static size_t spell_base64(char *out, const uint8_t *bytes, size_t n)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *at = out;
    for (size_t i = 0; i < n; i += 3) {
        const size_t here = n - i < 3 ? n - i : 3;
        uint32_t bits = (uint32_t)bytes[i] << 16;
        bits |= here > 1 ? (uint32_t)bytes[i + 1] << 8 : 0;
        bits |= here > 2 ? bytes[i + 2] : 0;
        for (size_t k = 0; k < 4; k++) {
            *at++ = k <= here ? letters[bits >> (18 - 6 * k) & 63] : '=';
        }
    }
    return (size_t)(at - out);
}

/* Texts with sounds between them, each sound in base64 without a seam. */
static void parts_are_joined(void **state)
{
    static const size_t sizes[] = {0, 3 * MIB + 1, 1, 49153};
    static char expected[2 * MOST];
    size_t n, n_expected = 0;
    (void)state;
    build(1);
    struct client c = ask();
    struct base64_part parts[5] = {{.text = {.n = 0}}};
    for (int i = 0; i < 5; i++) {
        char text[20];
        snprintf(text, sizeof text, "<%d>", i);
        base64_part_put(&parts[i], i == 2 ? "" : text);
        n_expected += (size_t)sprintf(expected + n_expected, "%s", i == 2 ? "" : text);
        if (i < 4) {
            begin_sound(&parts[i].sound, sizes[i]);
            n_expected += spell_base64(expected + n_expected, sound, sizes[i]);
        }
    }
    conn_answer_parts(c.conn, NULL, parts, 5);
    assert_false(take_answer(&c));
    const char *body = body_of_answer(&n);
    assert_int_equal(n, n_expected);
    assert_memory_equal(body, expected, n);
    close(c.socket);
    finish();
}

static void json_holds_a_sound(void **state)
{
    static const struct {
        const char *members, *json, *expected;
    } cases[] = {{"\"w\":[1]", "{\"a\":2}", "{\"s\":\"%s\",\"w\":[1],\"a\":2}"},
        {NULL, "{\"a\":[2,0.1234567894]}", "{\"s\":\"%s\",\"a\":[2,0.123456789]}"},
        {NULL, "{}", "{\"s\":\"%s\"}"}, {"\"w\":[1]", "{}", "{\"s\":\"%s\",\"w\":[1]}"}};
    char letters[200], expected[400];
    size_t n;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct wire_out members = {0};
        struct conn_whole w;
        build(1);
        struct client c = ask();
        begin_sound(&w, 100);
        if (cases[i].members) {
            wire_put(&members, cases[i].members, strlen(cases[i].members));
        }
        conn_answer_base64(c.conn, NULL, "s", &w, cases[i].members ? &members : NULL,
            json_loads(cases[i].json, 0, NULL));
        assert_false(take_answer(&c));
        const char *body = body_of_answer(&n);
        letters[spell_base64(letters, sound, 100)] = 0;
        snprintf(expected, sizeof expected, "%s", cases[i].expected);
        char *hole = strstr(expected, "%s");
        memmove(hole + strlen(letters), hole + 2, strlen(hole + 2) + 1);
        memcpy(hole, letters, strlen(letters));
        assert_int_equal(n, strlen(expected));
        assert_memory_equal(body, expected, n);
        close(c.socket);
        finish();
    }
}

/* Text for which there was no memory; a file that has lost what it had; a client that leaves in the middle. */
static void what_is_lost_is_not_told_as_whole(void **state)
{
    struct conn_whole w;
    (void)state;
    build(1);
    struct client c = ask();
    struct base64_part parts[2] = {{.text = {.n = 0}}, {.text = {.failed = true}}};
    begin_sound(&parts[0].sound, 1000);
    conn_answer_parts(c.conn, NULL, parts, 2);
    take_answer(&c);
    assert_memory_equal(got, "HTTP/1.1 503 ", 13);
    assert_int_equal(s.unsent_bytes, 0);
    close(c.socket);
    finish();
    for (int i = 0; i < 2; i++) {
        struct wire_out members = {.failed = i == 0};
        size_t n;
        build(1);
        c = ask();
        begin_sound(&w, 1000);
        conn_answer_base64(c.conn, NULL, "s", &w, &members, i == 0 ? json_object() : NULL);
        assert_false(take_answer(&c));
        assert_memory_equal(got, "HTTP/1.1 503 ", 13);
        assert_memory_equal(body_of_answer(&n), "{}", 2);
        assert_true(n == 2 && s.unsent_bytes == 0);
        close(c.socket);
        finish();
    }
    build(1);
    c = ask();
    begin_sound(&w, MOST);
    assert_int_equal(ftruncate(w.file, MIB), 0);
    conn_answer_whole(c.conn, "audio/x", NULL, &w);
    assert_true(take_answer(&c));
    assert_true(n_got > LIMIT_WHOLE && n_got < MOST && s.filed_bytes == 0);
    close(c.socket);
    finish();
    build(1);
    c = ask();
    begin_sound(&w, MOST);
    conn_answer_whole(c.conn, "audio/x", NULL, &w);
    conn_drop(c.conn);
    close(c.socket);
    finish();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_memory_does_not_take_is_in_a_file),
        cmocka_unit_test(a_file_never_has_a_name_for_long),
        cmocka_unit_test(memory_may_lack),
        cmocka_unit_test(what_has_no_room_is_not_begun),
        cmocka_unit_test(others_that_have_all_memory_leave_little),
        cmocka_unit_test(what_is_kept_beside_it_counts),
        cmocka_unit_test(a_sound_arrives_as_it_was),
        cmocka_unit_test(parts_are_joined),
        cmocka_unit_test(json_holds_a_sound),
        cmocka_unit_test(what_is_lost_is_not_told_as_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
