/* SPDX-License-Identifier: Apache-2.0
 * Where each id stands in the text as it came: with characters that normalisation changes, cut anywhere. */
#include "tests/support.h"

#include <string.h>

#include "text/feed.h"
#include "text/places.h"

static struct tokenizer *open_fixture(void)
{
    struct tokenizer *tokenizer;
    assert_int_equal(
        tokenizer_open(&tokenizer, "tests/fixtures/vocabulary", file_read, PRETOKENIZER_NATIVE, NULL),
        UTTER_OK);
    return tokenizer;
}

/* In pieces of `piece` bytes, behind an opening. */
static struct ids feed(const struct tokenizer *tokenizer, const char *text, size_t piece)
{
    static const char opening[] = "<|im_start|>assistant\n";
    struct ids ids = {0};
    struct token_feed *f;
    size_t n = strlen(text);
    assert_int_equal(token_feed_open(&f, tokenizer, NULL), UTTER_OK);
    assert_int_equal(token_feed_text(f, opening, sizeof opening - 1, &ids, NULL), UTTER_OK);
    token_feed_begin_offsets(f, 0);
    for (size_t at = 0; at < n; at += piece) {
        size_t bytes = n - at < piece ? n - at : piece;
        assert_int_equal(token_feed_text(f, text + at, bytes, &ids, NULL), UTTER_OK);
    }
    assert_int_equal(token_feed_finish(f, &ids, NULL), UTTER_OK);
    token_feed_close(&f);
    return ids;
}

/* Some id begins exactly at `at`. */
static bool begins_at(const struct ids *ids, uint64_t at)
{
    bool found = false;
    for (size_t i = 3; i < ids->n; i++) {
        found = found || ids->begin[i] == at;
    }
    return found;
}

/* Words whose characters are composed, reordered or left alone; the sign for a beginning is a word behind a blank. */
static void test_begins(void **state)
{
    (void)state;
    static const char *const texts[] = {"Hello there, friend.", "Cafe\u0301 und Zu\u0308ge fahren.",
        "a\u0316\u0301 b\u0301\u0316 c", "\u212b ngstrom \u2126 ohm",
        "\u1112\u1161\u11ab \u1100\u1161 b", "emoji \U0001F600 and \U0001F469\u200d\U0001F469 end",
        "x <|im_end|> y e\u0301 z", "\u4e2d\u6587 a"};
    struct tokenizer *tokenizer = open_fixture();
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *text = texts[i];
        struct ids whole = feed(tokenizer, text, strlen(text));
        for (size_t k = 4; k < whole.n; k++) {
            assert_true(whole.begin[k] >= whole.begin[k - 1]);
        }
        for (const char *at = strchr(text, ' '); at; at = strchr(at + 1, ' ')) {
            uint64_t blank = (uint64_t)(at - text);
            assert_true(begins_at(&whole, blank) || begins_at(&whole, blank + 1));
        }
        for (size_t piece = 1; piece < 9; piece += 2) {
            struct ids ids = feed(tokenizer, text, piece);
            assert_int_equal(ids.n, whole.n);
            assert_memory_equal(ids.begin, whole.begin, whole.n * sizeof *whole.begin);
            ids_fini(&ids);
        }
        ids_fini(&whole);
    }
    tokenizer_close(&tokenizer);
}

static void add(
    struct places *p, uint64_t raw_at, const char *raw, uint64_t normal_at, const char *normal)
{
    assert_int_equal(
        places_add(p, raw_at, raw, strlen(raw), normal_at, normal, strlen(normal), NULL), UTTER_OK);
}

/* "ab" e with its accent "cd": what was changed stands where it began, the rest byte for byte. */
static void what_was_changed_stands_where_it_began(void **state)
{
    static const uint64_t wanted[] = {10, 11, 12, 12, 15, 16, 17, 18};
    struct places p = {0};
    (void)state;
    assert_int_equal(places_find(&p, 7), 0);
    add(&p, 10, "ab", 5, "ab");
    add(&p, 12, "e\u0301cd", 7, "\u00e9cd");
    add(&p, 17, "xy", 11, "xy"); /* goes on as before: no place of its own */
    assert_int_equal(p.n, 3);
    assert_int_equal(places_find(&p, 4), 0);
    for (uint64_t i = 0; i < 8; i++) {
        assert_int_equal(places_find(&p, 5 + i), wanted[i]);
    }
    add(&p, 19, "", 13, "");
    assert_int_equal(p.n, 3);
    places_fini(&p);
}

/* Marks that only change places: as many bytes as before, and none of them where it was. */
static void what_was_reordered_stands_where_it_began(void **state)
{
    static const uint64_t wanted[] = {40, 41, 41, 41, 41, 41, 46, 47};
    struct places p = {0};
    (void)state;
    add(&p, 40, "xq\u0301\u0316yz", 20, "xq\u0316\u0301yz");
    assert_int_equal(p.n, 3);
    for (uint64_t i = 0; i < 8; i++) {
        assert_int_equal(places_find(&p, 20 + i), wanted[i]);
    }
    places_fini(&p);
}

/* Text that is its own normal form is one run, and is not normalised again to know it. */
static void what_was_left_alone_is_not_gone_through(void **state)
{
    struct places p = {0};
    (void)state;
    add(&p, 3, "a caf\u00e9", 3, "a caf\u00e9");
    add(&p, 10, "\u4e2d\u6587", 10, "\u4e2d\u6587");
    assert_int_equal(p.n, 1);
    assert_null(p.stretch.at);
    assert_int_equal(places_find(&p, 15), 15);
    places_fini(&p);
}

/* What is forgotten goes, up to the place that holds the byte; what stays is found as before, however much came. */
static void what_is_forgotten_takes_no_room(void **state)
{
    struct places p = {0};
    (void)state;
    for (uint64_t i = 0; i < 1000; i++) {
        add(&p, 4 * i, "e\u0301x", 3 * i, "\u00e9x");
        assert_int_equal(places_find(&p, 3 * i), 4 * i);
        assert_int_equal(places_find(&p, 3 * i + 1), 4 * i);
        assert_int_equal(places_find(&p, 3 * i + 2), 4 * i + 3);
        if (i > 0) {
            places_drop(&p, 3 * i - 1); /* the letter before the last accent */
            assert_int_equal(p.n, 3);
            assert_int_equal(places_find(&p, 3 * i - 1), 4 * i - 1);
            assert_int_equal(places_find(&p, 3 * i), 4 * i);
        }
    }
    places_drop(&p, 0); /* is gone */
    assert_int_equal(p.n, 3);
    places_drop(&p, 10000);
    assert_int_equal(p.n, 1);
    assert_int_equal(places_find(&p, 2999), 3999);
    assert_true(p.room < 64);
    places_fini(&p);
}

static void memory_for_places_may_run_out(void **state)
{
    (void)state;
    SUPPORT_EACH_FAILURE(SUPPORT_MALLOC, n)
    {
        struct places p = {0};
        utter_error error = {0};
        utter_status status = places_add(&p, 0, "e\u0301x", 4, 0, "\u00e9x", 3, &error);
        assert_int_equal(status, support_failed() ? UTTER_E_MEMORY : UTTER_OK);
        places_fini(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_begins),
        cmocka_unit_test(what_was_changed_stands_where_it_began),
        cmocka_unit_test(what_was_reordered_stands_where_it_began),
        cmocka_unit_test(what_was_left_alone_is_not_gone_through),
        cmocka_unit_test(what_is_forgotten_takes_no_room),
        cmocka_unit_test(memory_for_places_may_run_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
