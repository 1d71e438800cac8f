/* SPDX-License-Identifier: Apache-2.0
 * Ids, words and normal forms are those of the official tokenizer. On a difference tools/oracle/
 * compare_tokens.py shows the line. */
#include "tests/support.h"

#include "tests/text/lines.h"
#include "tests/text/text_golden.h"
#include "text/feed.h"
#include "text/nfc.h"
#include "text/pretokens.h"

enum { N_LINES = 4096, LINE_BLOCK = 64, CODE_BLOCK = 4096 };

static const char *const names[] = {
    [PRETOKENIZER_MISTRAL] = "mistral", [PRETOKENIZER_NATIVE] = "native"};
static const char vocabulary[] = "tests/fixtures/vocabulary";

static struct tokenizer *open_tokenizer(enum pretokenizer pattern)
{
    struct tokenizer *tokenizer;
    utter_error error = {0};
    if (tokenizer_open(&tokenizer, vocabulary, file_read, pattern, &error) != UTTER_OK) {
        fail_msg("%s", error.text);
    }
    return tokenizer;
}

/* The line in pieces of 1 to 8 bytes gives the same ids. */
static void check_pieces(const struct tokenizer *tokenizer, struct line *line, const struct ids *wanted)
{
    struct token_feed *feed;
    struct ids ids = {0};
    assert_int_equal(token_feed_open(&feed, tokenizer, NULL), UTTER_OK);
    for (size_t at = 0, n; at < line->n; at += n) {
        n = 1 + line_draw(line, 8);
        n = n < line->n - at ? n : line->n - at;
        assert_int_equal(token_feed_text(feed, line->at + at, n, &ids, NULL), UTTER_OK);
        assert_memory_equal(ids.at, wanted->at, ids.n * sizeof *ids.at);
    }
    assert_int_equal(token_feed_finish(feed, &ids, NULL), UTTER_OK);
    assert_int_equal(ids.n, wanted->n);
    assert_memory_equal(ids.at, wanted->at, ids.n * sizeof *ids.at);
    ids_fini(&ids);
    token_feed_close(&feed);
}

static void check_lines(enum pretokenizer pattern)
{
    static struct line line;
    struct tokenizer *tokenizer = open_tokenizer(pattern);
    for (int block = 0; block < N_LINES / LINE_BLOCK; block++) {
        uint32_t crc = 0;
        for (int i = 0; i < LINE_BLOCK; i++) {
            struct ids ids = {0};
            line_make(&line, (uint64_t)(block * LINE_BLOCK + i));
            assert_int_equal(tokenizer_encode(tokenizer, line.at, line.n, &ids, NULL), UTTER_OK);
            check_pieces(tokenizer, &line, &ids);
            assert_int_equal(ids_add(&ids, -1, 0, NULL), UTTER_OK);
            crc = golden_crc(crc, ids.at, ids.n * sizeof *ids.at);
            ids_fini(&ids);
        }
        char name[40];
        snprintf(name, sizeof name, "%s-%d", names[pattern], block);
        if (crc != golden_find("lines", name)) {
            fail_msg("ids differ in lines %d to %d, %s", block * LINE_BLOCK,
                (block + 1) * LINE_BLOCK - 1, names[pattern]);
        }
    }
    tokenizer_close(&tokenizer);
}

static void ids_of_lines(void **state)
{
    (void)state;
    check_lines(PRETOKENIZER_MISTRAL);
    check_lines(PRETOKENIZER_NATIVE);
}

/* Writes before + code + after, '@' standing for the code point. */
static size_t expand(char *out, const char *form, uint32_t code)
{
    size_t n = 0;
    for (; *form; form++) {
        if (*form == '@') {
            n += utf8_put(code, out + n);
        } else {
            out[n++] = *form;
        }
    }
    return n;
}

static size_t count_characters(const char *text, size_t bytes)
{
    size_t n = 0;
    for (size_t i = 0; i < bytes; i++) {
        n += ((uint8_t)text[i] & 0xc0) != 0x80;
    }
    return n;
}

static bool is_surrogate(uint32_t code)
{
    return code >= 0xd800 && code < 0xe000;
}

static void check_words(enum pretokenizer pattern)
{
    static const char *const forms[] = {"a@", "A@", "@a", " @", "@@", "!@"};
    struct pretokens *pretokens;
    struct pretokens_match *match;
    assert_int_equal(pretokens_new(&pretokens, pattern, NULL), UTTER_OK);
    assert_int_equal(pretokens_match_new(&match, pretokens, NULL), UTTER_OK);
    for (uint32_t block = 0; block < 0x110; block++) {
        uint32_t crc = 0;
        for (uint32_t code = block * CODE_BLOCK; code < (block + 1) * CODE_BLOCK; code++) {
            for (int i = 0; i < 6 && !is_surrogate(code); i++) {
                char text[16];
                size_t n = expand(text, forms[i], code), length;
                assert_int_equal(
                    pretokens_next(pretokens, match, text, n, true, &length, NULL), UTTER_OK);
                uint8_t characters = (uint8_t)count_characters(text, length);
                crc = golden_crc(crc, &characters, 1);
            }
        }
        char name[40];
        snprintf(name, sizeof name, "%s-%u", names[pattern], block);
        if (crc != golden_find("words", name)) {
            fail_msg("words differ at U+%X to U+%X, %s (another PCRE2 or Unicode version?)",
                block * CODE_BLOCK, (block + 1) * CODE_BLOCK - 1, names[pattern]);
        }
    }
    pretokens_match_free(match);
    pretokens_free(pretokens);
}

static void words_of_every_character(void **state)
{
    (void)state;
    check_words(PRETOKENIZER_MISTRAL);
    check_words(PRETOKENIZER_NATIVE);
}

static void normal_form_of_every_character(void **state)
{
    static const char *const forms[] = {
        "@", "a@\u0301", "-\u0345@", "@\u0316", "-\u0301\u0316@\u0334", "\u1100@", "\uac00@"};
    (void)state;
    struct chars out = {0};
    for (uint32_t i = 0; i < 0x22; i++) {
        uint32_t block = i < 0x20 ? i : i == 0x20 ? 0x2f : 0xe0, crc = 0;
        for (uint32_t code = block * CODE_BLOCK; code < (block + 1) * CODE_BLOCK; code++) {
            for (int k = 0; k < 7 && !is_surrogate(code); k++) {
                char text[32];
                size_t n = expand(text, forms[k], code);
                out.n = 0;
                assert_int_equal(nfc_add(&out, text, n, NULL), UTTER_OK);
                assert_int_equal(chars_add(&out, "\n", 1, NULL), UTTER_OK);
                crc = golden_crc(crc, out.at, out.n);
            }
        }
        char name[40];
        snprintf(name, sizeof name, "%u", block);
        if (crc != golden_find("nfc", name)) {
            fail_msg("normal forms differ at U+%X to U+%X (another utf8proc or Unicode version?)",
                block * CODE_BLOCK, (block + 1) * CODE_BLOCK - 1);
        }
    }
    chars_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_of_lines),
        cmocka_unit_test(words_of_every_character),
        cmocka_unit_test(normal_form_of_every_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
