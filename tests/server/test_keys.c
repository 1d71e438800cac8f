/* SPDX-License-Identifier: Apache-2.0
 * The file of keys as it is read, and read again while clients hold accounts of it: what is wrong with it is said, and
 * changes nothing; who stays keeps what it has used. */
#include "tests/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/front/keys.h"

static struct serve_options options;
static struct server s = {.options = &options};

static FILE *log_file;

/* What is said from now on. Returns where it was said before. */
static int tell_begin(void)
{
    int kept = dup(STDERR_FILENO);
    log_file = log_file ? log_file : tmpfile();
    assert_true(log_file && kept >= 0 && dup2(fileno(log_file), STDERR_FILENO) >= 0);
    assert_true(ftruncate(fileno(log_file), 0) == 0 && lseek(fileno(log_file), 0, SEEK_SET) == 0);
    return kept;
}

/* All of it, each time in the same place. */
static const char *tell_end(int kept)
{
    static char said[1000];
    fflush(stderr);
    assert_true(dup2(kept, STDERR_FILENO) >= 0);
    close(kept);
    const ssize_t n = pread(fileno(log_file), said, sizeof said - 1, 0);
    assert_true(n >= 0);
    said[n] = 0;
    return said;
}

/* Reads this file. Returns what was said of it. */
static const char *read_keys(const void *text, size_t n, bool wanted)
{
    options.key_file = support_path("keys");
    support_write_file(options.key_file, text, n);
    int kept = tell_begin();
    const bool good = keys_read(&s);
    const char *said = tell_end(kept);
    assert_int_equal(good, wanted);
    assert_true(!good || !said[0]);
    return said;
}
#define READ_KEYS(text, wanted) read_keys(text, sizeof(text) - 1, wanted)

/* NULL: it is no key. */
static struct account *account_of(const char *key)
{
    char text[200];
    struct http_head head;
    struct account *account;
    int n = snprintf(text, sizeof text, "GET / HTTP/1.1\r\nHost: a\r\nX-API-Key: %s\r\n\r\n", key);
    assert_int_equal(http_head_parse(&head, text, (size_t)n), 0);
    const bool is_shown = keys_check(&s, &head, &account);
    assert_int_equal(is_shown, account != NULL);
    return account;
}

static void lines_are_accounts(void **state)
{
    (void)state;
    READ_KEYS("# ours\n\none speeches=2 per-minute=30\r\ntwo operator\nthree", true);
    const struct account *one = account_of("one"), *two = account_of("two"),
                         *three = account_of("three");
    assert_true(one && two && three && !account_of("four") && !account_of("# ours"));
    assert_true(one->most_speeches == 2 && one->per_minute == 30 && !one->is_operator);
    assert_true(one->allowance == 30);
    assert_true(two->most_speeches == 0 && two->per_minute == 0 && two->is_operator);
    assert_true(three->most_speeches == 0 && !three->is_operator);
    keys_free(&s);
    assert_null(s.keys);
}

/* The number of the line, and that nothing of such a file holds. */
static void what_is_wrong_is_said_and_changes_nothing(void **state)
{
    static const struct {
        const char *text;
        int line;
    } cases[] = {{"one speeches=9\nother\nspeeches=1\none\n", 4}, {"one speeches=9\nother x", 2},
        {"\n\n# x\nsha256:1\n", 4}, {"one speeches=0", 1}};
    char wanted[1000];
    (void)state;
    READ_KEYS("one speeches=2 per-minute=30\ntwo", true);
    struct account *one = account_of("one");
    one->allowance = 7;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *said = read_keys(cases[i].text, strlen(cases[i].text), false);
        snprintf(wanted, sizeof wanted,
            "utter: %s: line %d: a key that is there already, or limits that are none (a line is KEY, "
            "or "
            "sha256: and 64 hex digits; then speeches=N, per-minute=N, operator)\n",
            options.key_file, cases[i].line);
        assert_string_equal(said, wanted);
        assert_true(account_of("one") == one && account_of("two") && !account_of("other"));
        assert_true(one->most_speeches == 2 && one->allowance == 7 && one->n_holders == 1);
    }
    snprintf(wanted, sizeof wanted,
        "utter: %s: holds no key (a line is KEY, or sha256: and 64 hex digits)\n", options.key_file);
    assert_string_equal(READ_KEYS("", false), wanted);
    assert_string_equal(READ_KEYS("# one\n \n", false), wanted);
    assert_ptr_equal(account_of("one"), one);
    keys_free(&s);
}

/* What it has used of its limits, and who holds it. */
static void who_stays_keeps_its_account(void **state)
{
    (void)state;
    READ_KEYS("one speeches=2 per-minute=30\ntwo per-minute=30\ngoes operator\n", true);
    struct account *one = account_of("one"), *two = account_of("two"),
                   *goes = account_share(account_of("goes"));
    one->allowance = two->allowance = 7;
    one->n_speeches = 2;
    READ_KEYS("new\ntwo per-minute=40\none operator per-minute=30", true);
    assert_true(account_of("one") == one && account_of("two") == two && account_of("new"));
    assert_true(one->n_holders == 1 && one->n_speeches == 2);
    assert_true(one->most_speeches == 0 && one->per_minute == 30 && one->is_operator);
    assert_true(one->allowance == 7); /* else who reads the file gives it all back */
    assert_true(two->per_minute == 40 && two->allowance == 40 && !two->is_operator);
    assert_null(account_of("goes"));
    assert_int_equal(goes->n_holders, 1); /* of a request that is not over */
    account_free(&goes);
    READ_KEYS("new operator", true);
    assert_true(account_of("new")->is_operator && !account_of("one"));
    keys_free(&s);
}

/* As many as there may be, in any order and read again, are each themselves; one more is too many. */
static void ten_thousand_keys_are_read(void **state)
{
    enum { N = 10000, LINE = 8 };
    static char text[(N + 1) * LINE + 1];
    char wanted[1000], key[16];
    (void)state;
    for (int i = 0; i <= N; i++) {
        snprintf(text + (size_t)i * LINE, LINE + 1, "k%06u\n", (unsigned)(i * 7919 % (N + 1)));
    }
    for (int round = 0; round < 2; round++) {
        read_keys(text, (size_t)N * LINE, true);
    }
    for (int i = 0; i < N; i += 97) {
        snprintf(key, sizeof key, "k%06u", (unsigned)(i * 7919 % (N + 1)));
        assert_non_null(account_of(key));
        assert_int_equal(account_of(key)->n_holders, 1);
    }
    snprintf(wanted, sizeof wanted, "utter: %s: line %d: there are more than %d keys\n",
        options.key_file, N + 1, N);
    assert_string_equal(read_keys(text, (size_t)(N + 1) * LINE, false), wanted);
    keys_free(&s);
}

static void without_a_file_nobody_is_asked(void **state)
{
    char text[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    struct http_head head;
    struct account *account;
    (void)state;
    options.key_file = NULL;
    assert_true(keys_read(&s) && !s.keys);
    assert_int_equal(http_head_parse(&head, text, sizeof text - 1), 0);
    assert_true(keys_check(&s, &head, &account) && !account);
}

/* Each allocation fails: the old keys stay. */
static void without_memory_the_old_ones_stay(void **state)
{
    (void)state;
    READ_KEYS("one\ntwo", true);
    support_write_file(options.key_file, "new\none", 7);
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        int kept = tell_begin();
        const bool good = keys_read(&s);
        const char *said = tell_end(kept);
        assert_true(good == !support_failed() && good == !strstr(said, "out of memory"));
        assert_true(account_of("one") && !account_of("two") == good && !account_of("new") == !good);
    }
    keys_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_accounts),
        cmocka_unit_test(what_is_wrong_is_said_and_changes_nothing),
        cmocka_unit_test(who_stays_keeps_its_account),
        cmocka_unit_test(ten_thousand_keys_are_read),
        cmocka_unit_test(without_a_file_nobody_is_asked),
        cmocka_unit_test(without_memory_the_old_ones_stay),
    };
    return cmocka_run_group_tests_name("keys", tests, NULL, NULL);
}
