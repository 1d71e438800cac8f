/* SPDX-License-Identifier: Apache-2.0
 * Messages come whole and in order, wherever the stream was cut. */
#include "tests/support.h"

#include <string.h>

#include "server/protocol/wire_in.h"

static void say(struct wire_in *in, const uint8_t *bytes, size_t n)
{
    size_t room = 0;
    uint8_t *at = wire_in_room(in, &room);
    assert_true(at && room >= n);
    memcpy(at, bytes, n);
    wire_in_came(in, n);
}

static void cut_anywhere_they_are_the_same(void **state)
{
    struct wire_out out = {0};
    struct wire_in in = {0};
    struct wire_message m;
    (void)state;
    wire_message(&out, WIRE_TEXT, 7, "abc", 3);
    const size_t first = out.n;
    wire_message(&out, WIRE_FINISH, 8, NULL, 0);
    for (size_t cut = 1; cut < out.n; cut++) {
        say(&in, out.bytes, cut);
        int n = 0;
        for (; wire_next(&in, &m) == WIRE_MESSAGE; n++) {
            assert_true(n == 0 && m.kind == WIRE_TEXT && m.id == 7 && m.bytes == 3);
            assert_memory_equal(m.body, "abc", 3);
        }
        assert_int_equal(n, cut >= first);
        say(&in, out.bytes + cut, out.n - cut);
        for (; wire_next(&in, &m) == WIRE_MESSAGE; n++) {
            assert_int_equal(m.kind, n == 0 ? WIRE_TEXT : WIRE_FINISH);
        }
        assert_int_equal(n, 2);
        assert_int_equal(m.id, 8);
    }
    assert_int_equal(wire_next(&in, &m), WIRE_MORE);
    wire_in_fini(&in);
    wire_fini(&out);
}

/* Longer than the usual room, and behind the beginning of it something is there already. */
static void a_long_one_has_room_and_leaves_none(void **state)
{
    enum { LONG = 300000, STEP = 50000 };
    static uint8_t body[LONG];
    struct wire_out out = {0};
    struct wire_in in = {0};
    struct wire_message m;
    (void)state;
    for (size_t i = 0; i < LONG; i++) {
        body[i] = (uint8_t)(i % 251);
    }
    wire_message(&out, WIRE_FINISH, 1, NULL, 0);
    const size_t usual = 64 << 10, before = out.n;
    wire_message(&out, WIRE_PCM, 2, body, LONG);
    const size_t all = out.n;
    wire_message(&out, WIRE_FREED, 3, NULL, 0);
    say(&in, out.bytes, before + 5);
    assert_int_equal(wire_next(&in, &m), WIRE_MESSAGE);
    assert_int_equal(m.id, 1);
    assert_int_equal(wire_next(&in, &m), WIRE_MORE);
    assert_int_equal(in.room, usual);
    for (size_t at = before + 5; at < all; at += STEP) {
        say(&in, out.bytes + at, at + STEP < all ? STEP : all - at);
        wire_in_rest(&in); /* nothing: it is not whole */
        if (at + STEP < all) {
            size_t room = 0;
            assert_int_equal(wire_next(&in, &m), WIRE_MORE);
            assert_non_null(wire_in_room(&in, &room));
            assert_int_equal(room, all - at - STEP); /* not beyond its end */
        }
    }
    assert_true(in.room >= LONG && in.room < LONG + usual);
    assert_int_equal(wire_next(&in, &m), WIRE_MESSAGE);
    assert_true(m.kind == WIRE_PCM && m.id == 2 && m.bytes == LONG);
    assert_memory_equal(m.body, body, LONG);
    wire_in_rest(&in);
    assert_int_equal(in.room, 0);
    say(&in, out.bytes + all, out.n - all);
    assert_int_equal(wire_next(&in, &m), WIRE_MESSAGE);
    assert_int_equal(m.id, 3);
    wire_in_rest(&in);
    assert_int_equal(in.room, usual); /* as the next ones need it */
    wire_in_fini(&in);
    wire_fini(&out);
}

static void what_is_none_is_told(void **state)
{
    static const uint8_t unknown[WIRE_HEADER_BYTES] = {0, 0, 0, 0, 99},
                         too_long[WIRE_HEADER_BYTES] = {1, 0, 64, 0, WIRE_TEXT};
    struct wire_in in = {0};
    struct wire_message m;
    (void)state;
    say(&in, unknown, sizeof unknown);
    assert_int_equal(wire_next(&in, &m), WIRE_BAD);
    wire_in_fini(&in);
    say(&in, too_long, sizeof too_long);
    assert_int_equal(wire_next(&in, &m), WIRE_BAD);
    wire_in_fini(&in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cut_anywhere_they_are_the_same),
        cmocka_unit_test(a_long_one_has_room_and_leaves_none),
        cmocka_unit_test(what_is_none_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
