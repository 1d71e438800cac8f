/* SPDX-License-Identifier: Apache-2.0
 * What a client, an address and a key may ask for, to the last one that is taken: buckets, origins, lines of the key
 * file. Times are the test's. */
#include "tests/support.h"

#include <arpa/inet.h>
#include <math.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/loop/account.h"
#include "server/loop/address.h"
#include "server/loop/budget.h"
#include "server/loop/conn/origin.h"

static bool near(double a, double b)
{
    return fabs(a - b) < 1e-6;
}

static void a_bucket_fills_evenly_up_to_its_rim(void **state)
{
    static const struct bucket_rate rate = {10, 20};
    struct bucket b = bucket_full(&rate, 5);
    (void)state;
    assert_true(near(b.left, 20) && near(b.at, 5));
    assert_true(near(bucket_take(&b, &rate, 5, 20), 0)); /* to the last one */
    assert_true(near(bucket_take(&b, &rate, 5, 1), 0.1));
    assert_true(near(b.left, -1));
    bucket_fill(&b, &rate, 5.6);
    assert_true(near(b.left, 5) && near(b.at, 5.6));
    bucket_fill(&b, &rate, 7);
    assert_true(near(b.left, 19));
    bucket_fill(&b, &rate, 100);
    assert_true(near(b.left, 20) && near(b.at, 100));
    assert_true(near(bucket_take(&b, &rate, 100, 39), 1.9));
    assert_true(near(bucket_take(&b, &rate, 101, 0), 0.9)); /* nothing more, and the debt is less */
    assert_true(near(bucket_take(&b, &rate, 101, 1000), 2) && near(b.left, -20));
}

static void messages_and_bytes_are_counted_apart(void **state)
{
    enum { MIB = 1 << 20 };
    struct budget b;
    (void)state;
    budget_begin(&b, 3);
    for (int i = 0; i < 1000; i++) {
        assert_true(near(budget_take(&b, 3, 0), 0));
    }
    assert_true(near(budget_take(&b, 3, 0), 1 / 500.0));
    assert_true(near(b.bytes.left, 2 * MIB));
    budget_begin(&b, 3);
    assert_true(near(budget_take(&b, 3, 2 * MIB), 0));
    assert_true(near(budget_take(&b, 3, MIB / 2), 0.5));
    assert_true(near(b.messages.left, 998));
    assert_true(near(budget_take(&b, 4, 0), 0)); /* half of a megabyte is there again */
    assert_true(near(b.bytes.left, MIB / 2) && near(b.messages.left, 999));
    budget_begin(&b, 3); /* the longer of both */
    budget_take(&b, 3, 3 * MIB);
    for (int i = 0; i < 1499; i++) {
        budget_take(&b, 3, 0);
    }
    assert_true(near(budget_take(&b, 3, 0), 501 / 500.0));
}

/* ---- Addresses ---- */

static struct sockaddr_in6 address_of(const char *text)
{
    struct sockaddr_in6 a = {.sin6_family = AF_INET6};
    struct sockaddr_in old = {.sin_family = AF_INET};
    if (inet_pton(AF_INET, text, &old.sin_addr) == 1) {
        memcpy(&a, &old, sizeof old);
    } else {
        assert_int_equal(inet_pton(AF_INET6, text, &a.sin6_addr), 1);
    }
    return a;
}

static const struct sockaddr *from(const char *text)
{
    static struct sockaddr_in6 all[8];
    static int next;
    struct sockaddr_in6 *a = &all[next++ % 8];
    *a = address_of(text);
    return (const struct sockaddr *)a;
}

static void addresses_are_told_and_loopback_is_known(void **state)
{
    static const struct {
        const char *text;
        bool loopback;
    } cases[] = {{"127.0.0.1", true}, {"127.255.0.9", true}, {"128.0.0.1", false}, {"126.0.0.1", false},
        {"::1", true}, {"::2", false}, {"2001:db8::7", false}, {"10.0.0.127", false}};
    const struct sockaddr other = {.sa_family = AF_UNIX};
    char text[64];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        address_text(text, sizeof text, from(cases[i].text));
        assert_string_equal(text, cases[i].text);
        assert_int_equal(address_is_loopback(from(cases[i].text)), cases[i].loopback);
    }
    address_text(text, sizeof text, &other);
    assert_string_equal(text, "?");
    address_text(text, 8, from("127.0.0.1")); /* no room */
    assert_string_equal(text, "?");
}

static void an_origin_is_an_address_or_half_of_one(void **state)
{
    static struct origins all;
    (void)state;
    origins_begin(&all);
    all.secret = 0x123456789abcdefu;
    struct origin *four = origin_enter(&all, from("10.0.0.1"), 8, 0),
                  *six = origin_enter(&all, from("2001:db8:1:2::1"), 8, 0);
    assert_true(four && six && four != six);
    assert_ptr_equal(origin_find(&all, from("10.0.0.1")), four);
    assert_ptr_equal(origin_find(&all, from("::ffff:10.0.0.1")), four); /* the same, as IPv6 has it */
    assert_null(origin_find(&all, from("10.0.0.2")));
    assert_null(origin_find(&all, from("::ffff:10.0.0.2")));
    assert_ptr_equal(origin_find(&all, from("2001:db8:1:2:ffff::9")), six);
    assert_null(origin_find(&all, from("2001:db8:1:3::1")));
    assert_int_equal(all.n_left, 0);
    origin_leave(&all, four, 8, 0), origin_leave(&all, six, 8, 0);
    assert_null(origin_find(&all, from("10.0.0.1"))); /* did nothing, and is forgotten at once */
    assert_null(origin_find(&all, from("2001:db8:1:2::1")));
    assert_int_equal(all.n_left, 0);
    origins_end(&all);
}

static void who_holds_more_than_half_of_all_places_is_known(void **state)
{
    static struct origins all;
    enum { PLACES = 5 };
    struct origin *o = NULL;
    (void)state;
    origins_begin(&all);
    for (int i = 1; i <= 4; i++) {
        o = origin_enter(&all, from("10.0.0.1"), PLACES, 0);
        assert_int_equal(o->n_conns, i);
        assert_ptr_equal(all.majority, i > 2 ? o : NULL);
    }
    struct origin *other = origin_enter(&all, from("10.0.0.2"), PLACES, 0);
    assert_ptr_equal(all.majority, o);
    origin_leave(&all, other, PLACES, 0);
    assert_ptr_equal(all.majority, o);
    for (int i = 3; i >= 1; i--) {
        origin_leave(&all, o, PLACES, 0);
        assert_ptr_equal(all.majority, i > 2 ? o : NULL);
    }
    origin_leave(&all, o, PLACES, 0);
    assert_null(origin_find(&all, from("10.0.0.1")));
    origins_end(&all);
}

static void an_origin_that_did_much_is_remembered_until_it_is_as_new(void **state)
{
    enum { MIB = 1 << 20 };
    static struct origins all;
    (void)state;
    origins_begin(&all);
    for (int what = 0; what < 4; what++) { /* sent, asked, was thrown out, is in the log */
        const double until[] = {1, 0.2, 0.05, 60}, now = 1000 * (what + 1);
        struct origin *o = origin_enter(&all, from("10.0.0.1"), 8, now);
        assert_true(near(origin_take(o, now, what == 0 ? 64.0 * MIB : 0), 0));
        assert_true(near(origin_ask(o, now, what == 1 ? 1000 : 0), 0));
        assert_true(what != 2 || near(origin_throw_out(o, now), 0));
        assert_true(what != 3 || origin_is_news(o, now));
        origin_leave(&all, o, 8, now);
        assert_int_equal(all.n_left, 1);
        origins_tick(&all, now + until[what] - 1e-3);
        assert_ptr_equal(origin_find(&all, from("10.0.0.1")), o);
        assert_ptr_equal(origin_enter(&all, from("10.0.0.1"), 8, now), o); /* where it was */
        assert_int_equal(all.n_left, 0);
        origins_tick(&all, now + until[what] + 1);
        assert_ptr_equal(origin_find(&all, from("10.0.0.1")), o); /* it has a connection */
        origin_take(o, now + until[what] + 1, 1);
        origin_leave(&all, o, 8, now + until[what] + 1);
        assert_int_equal(all.n_left, 1);
        origins_tick(&all, now + until[what] + 2);
        assert_null(origin_find(&all, from("10.0.0.1")));
        assert_int_equal(all.n_left, 0);
    }
    origins_end(&all);
}

static void what_an_origin_may_do_is_bounded(void **state)
{
    enum { MIB = 1 << 20 };
    static struct origins all;
    (void)state;
    origins_begin(&all);
    struct origin *o = origin_enter(&all, from("10.0.0.1"), 8, 1);
    assert_true(near(origin_take(o, 1, 128.0 * MIB), 0));
    assert_true(near(origin_take(o, 1, 32.0 * MIB), 0.5));
    assert_true(near(origin_ask(o, 1, 5000), 0));
    assert_true(near(origin_ask(o, 1, 500), 0.1));
    for (int i = 0; i < 50; i++) {
        assert_true(near(origin_throw_out(o, 1), 0));
    }
    assert_true(near(origin_throw_out(o, 1), 0.05));
    assert_true(near(origin_take(o, 2, 0), 0) && near(o->bytes.left, 32.0 * MIB));
    assert_true(origin_is_news(o, 10));
    assert_false(origin_is_news(o, 70)); /* once a minute */
    assert_true(origin_is_news(o, 70.1));
    assert_true(near(o->told_at, 70.1));
    assert_false(origin_is_news(o, 71));
    origins_end(&all);
}

/* So many that nobody has a connection of: those that did something are not kept without bound. */
static void origins_without_connections_are_bounded(void **state)
{
    static struct origins all;
    (void)state;
    origins_begin(&all);
    all.secret = 99;
    for (int i = 0; i < ORIGINS_LEFT + 10; i++) {
        char text[32];
        snprintf(text, sizeof text, "10.%d.%d.1", i / 256, i % 256);
        struct origin *o = origin_enter(&all, from(text), 8, 1);
        origin_take(o, 1, 1000);
        origin_leave(&all, o, 8, 1);
    }
    assert_int_equal(all.n_left, ORIGINS_LEFT);
    assert_non_null(origin_find(&all, from("10.15.255.1")));
    assert_null(origin_find(&all, from("10.16.0.1")));
    int longest = 0, used = 0; /* they lie in all chains */
    for (int i = 0; i < ORIGIN_CHAINS; i++) {
        struct origin *o;
        int n = 0;
        LIST_FOREACH(o, &all.chains[i], entry)
        {
            n++;
        }
        longest = n > longest ? n : longest;
        used += n > 0;
    }
    assert_true(longest < 25 && used > ORIGIN_CHAINS / 2);
    origins_tick(&all, 2);
    assert_int_equal(all.n_left, 0);
    assert_null(origin_find(&all, from("10.15.255.1")));
    origins_end(&all);
}

/* ---- Keys ---- */

#define HEX_OF_ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

static void a_line_of_the_key_file_is_read(void **state)
{
    static const struct {
        enum account_line kind;
        const char *line;
        int speeches, per_minute;
        bool is_operator;
    } cases[] = {{ACCOUNT_LINE_KEY, "abc", 0, 0, false}, {ACCOUNT_LINE_KEY, "abc#1", 0, 0, false},
        {ACCOUNT_LINE_KEY, "sha256:" HEX_OF_ABC, 0, 0, false},
        {ACCOUNT_LINE_KEY, "sha256:", 0, 0, false}, {ACCOUNT_LINE_KEY, "\t abc\r", 0, 0, false},
        {ACCOUNT_LINE_KEY, "abc operator", 0, 0, true},
        {ACCOUNT_LINE_KEY, "abc operator speeches=1", 1, 0, true},
        {ACCOUNT_LINE_KEY, "abc speeches=100000 per-minute=99999", 100000, 99999, false},
        {ACCOUNT_LINE_KEY, "abc speeches=007", 7, 0, false},
        {ACCOUNT_LINE_KEY, "abc #speeches=2 x", 0, 0, false},
        {ACCOUNT_LINE_BAD, "abc per-minute=9#speeches", 0, 0, false},
        {ACCOUNT_LINE_EMPTY, "", 0, 0, false}, {ACCOUNT_LINE_EMPTY, "  \t\r", 0, 0, false},
        {ACCOUNT_LINE_EMPTY, "# abc", 0, 0, false}, {ACCOUNT_LINE_BAD, "abc operators", 0, 0, false},
        {ACCOUNT_LINE_BAD, "abc operato", 0, 0, false},
        {ACCOUNT_LINE_BAD, "abc operator operators", 0, 0, false},
        {ACCOUNT_LINE_BAD, "abc speeches=100001", 0, 0, false},
        {ACCOUNT_LINE_BAD, "abc per-minute=0", 0, 0, false},
        {ACCOUNT_LINE_BAD, "abc per-minute=1:", 0, 0, false},
        {ACCOUNT_LINE_BAD, "abc per-minute=1/", 0, 0, false},
        {ACCOUNT_LINE_BAD, "abc per-minute=1 per-minute=1", 0, 0, false},
        {ACCOUNT_LINE_BAD, "abc speeches", 0, 0, false}, {ACCOUNT_LINE_BAD, "abc abc", 0, 0, false},
        {ACCOUNT_LINE_BAD, "sha256:" HEX_OF_ABC "0", 0, 0, false},
        {ACCOUNT_LINE_BAD, "sha256:" HEX_OF_ABC "00", 0, 0, false},
        {ACCOUNT_LINE_BAD, "sha256:0" HEX_OF_ABC, 0, 0, false}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct account a;
        enum account_line kind = account_parse(&a, cases[i].line, strlen(cases[i].line));
        if (kind != cases[i].kind) {
            fail_msg("'%s' is of the kind %d", cases[i].line, (int)kind);
        }
        if (kind == ACCOUNT_LINE_KEY &&
            (a.most_speeches != cases[i].speeches || a.per_minute != cases[i].per_minute ||
                a.is_operator != cases[i].is_operator || !near(a.allowance, a.per_minute) ||
                a.n_holders != 1 || a.n_speeches != 0)) {
            fail_msg("'%s': %d %d %d", cases[i].line, a.most_speeches, a.per_minute, a.is_operator);
        }
    }
}

static void a_key_is_its_digest(void **state)
{
    struct account plain, hashed, upper, other;
    char mark[ACCOUNT_MARK], line[80], *at;
    uint8_t digest[ACCOUNT_DIGEST];
    (void)state;
    account_parse(&plain, "abc # of somebody", 17);
    account_parse(&hashed, "sha256:" HEX_OF_ABC, 7 + 64);
    snprintf(line, sizeof line, "sha256:%s", HEX_OF_ABC);
    for (at = line + 7; *at; at++) {
        *at = (char)(*at >= 'a' ? *at - 'a' + 'A' : *at);
    }
    assert_int_equal(account_parse(&upper, line, strlen(line)), ACCOUNT_LINE_KEY);
    assert_int_equal(account_parse(&other, "abd", 3), ACCOUNT_LINE_KEY);
    assert_memory_equal(plain.digest, hashed.digest, ACCOUNT_DIGEST);
    assert_memory_equal(plain.digest, upper.digest, ACCOUNT_DIGEST);
    assert_memory_not_equal(plain.digest, other.digest, ACCOUNT_DIGEST);
    assert_int_equal(plain.digest[0], 0xba);
    assert_int_equal(plain.digest[31], 0xad);
    account_digest(digest, "abcd", 3); /* so many bytes of it */
    assert_memory_equal(digest, plain.digest, ACCOUNT_DIGEST);
    for (size_t i = 0; i < 64; i++) { /* letters beside those of hexadecimal numbers, at each place */
        static const char beside[] = "/:@G`g";
        for (size_t k = 0; k < 6; k++) {
            char wrong[80];
            snprintf(wrong, sizeof wrong, "sha256:%s", HEX_OF_ABC);
            wrong[7 + i] = beside[k];
            assert_int_equal(account_parse(&other, wrong, strlen(wrong)), ACCOUNT_LINE_BAD);
        }
    }
    account_mark(mark, &plain); /* SHA-256 of the 32 bytes, its first eight */
    assert_string_equal(mark, "4f8b42c22dd3729b");
}

static void a_key_that_asks_too_often_is_told_when(void **state)
{
    struct account a;
    struct refusal r = {0};
    (void)state;
    account_parse(&a, "k per-minute=2 speeches=3", 25);
    assert_true(account_admit(&a, 1000, &r));
    account_count(&a, 1000);
    assert_true(near(a.allowance, 1) && near(a.counted_at, 1000) && a.n_speeches == 1);
    account_count(&a, 1000);
    assert_false(account_admit(&a, 1000, &r));
    assert_int_equal(r.status, 429);
    assert_string_equal(r.code, "rate_limit_exceeded");
    assert_string_equal(r.message, "this key may ask for 2 speeches a minute");
    assert_int_equal(r.retry_ms, 30001);
    assert_false(account_admit(&a, 1015, &r));
    assert_int_equal(r.retry_ms, 15001);
    assert_true(account_admit(&a, 1030, &r));
    account_count(&a, 1045); /* half of one is left */
    assert_true(near(a.allowance, 0.5) && a.n_speeches == 3);
    r = (struct refusal){0};
    assert_false(account_admit(&a, 5000, &r)); /* at once is looked at first */
    assert_string_equal(r.message, "this key may have 3 speeches at once (wait for one to end)");
    assert_true(r.status == 429 && r.retry_ms == 1000);
    assert_string_equal(r.code, "rate_limit_exceeded");
    a.n_speeches = 2;
    assert_true(account_admit(&a, 5000, &r));
    account_parse(&a, "k", 1);
    a.n_speeches = 1000; /* no limits */
    a.allowance = -1000;
    assert_true(account_admit(&a, 0, &r));
}

static void an_account_lives_as_long_as_somebody_holds_it(void **state)
{
    struct account *a = calloc(1, sizeof *a), *other = a, *none = NULL;
    (void)state;
    assert_non_null(a);
    a->n_holders = 1;
    assert_ptr_equal(account_share(a), a);
    assert_int_equal(a->n_holders, 2);
    assert_null(account_share(NULL));
    account_free(&other);
    assert_null(other);
    assert_int_equal(a->n_holders, 1);
    a->n_holders = 2; /* the last one is the test's */
    other = a;
    account_free(&other);
    assert_int_equal(a->n_holders, 1);
    account_free(&none);
    free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bucket_fills_evenly_up_to_its_rim),
        cmocka_unit_test(messages_and_bytes_are_counted_apart),
        cmocka_unit_test(addresses_are_told_and_loopback_is_known),
        cmocka_unit_test(an_origin_is_an_address_or_half_of_one),
        cmocka_unit_test(who_holds_more_than_half_of_all_places_is_known),
        cmocka_unit_test(an_origin_that_did_much_is_remembered_until_it_is_as_new),
        cmocka_unit_test(what_an_origin_may_do_is_bounded),
        cmocka_unit_test(origins_without_connections_are_bounded),
        cmocka_unit_test(a_line_of_the_key_file_is_read),
        cmocka_unit_test(a_key_is_its_digest),
        cmocka_unit_test(a_key_that_asks_too_often_is_told_when),
        cmocka_unit_test(an_account_lives_as_long_as_somebody_holds_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
