/* SPDX-License-Identifier: Apache-2.0
 * Where each id stands in the text as it came: with characters that normalisation changes, cut anywhere. */
#include "tests/support.h"

#include <string.h>

#include "text/feed.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_begins)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
